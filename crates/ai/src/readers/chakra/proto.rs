//! The records of a `.et` file: a varint length and a protobuf message, again and again. Fields
//! that nothing here needs are not in the messages below; the decoder skips them.

use prost::{DecodeError, Message};

use super::{Place, RecordError};

/// The records of a file, each with its place.
pub(super) struct Records<'a> {
    name: &'a str,
    bytes: &'a [u8],
    offset: usize,
    record: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self { name, bytes, offset: 0, record: 0 }
    }

    fn cut(&mut self) -> Result<(Place, &'a [u8]), RecordError> {
        self.record += 1;
        let place = Place { record: self.record, offset: self.offset };
        let wrong = |value: String, message: String| {
            place.wrong(self.name, value, message, "is the file cut off, or compressed?")
        };
        let mut rest = self.bytes.get(self.offset..).unwrap_or(&[]);
        let len = prost::decode_length_delimiter(&mut rest)
            .map_err(|_| wrong(String::new(), "its length is cut off or too long".to_owned()))?;
        let Some(record) = rest.get(..len) else {
            let message = format!("a record of {len} bytes, but the file has {} more", rest.len());
            return Err(wrong(String::new(), message));
        };
        self.offset = self.bytes.len() - rest.len() + len;
        Ok((place, record))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(Place, &'a [u8]), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.bytes.len() {
            return None;
        }
        let record = self.cut();
        if record.is_err() {
            self.offset = self.bytes.len();
        }
        Some(record)
    }
}

/// Whether `bytes` are the first record.
pub(super) fn metadata(bytes: &[u8]) -> Result<(), DecodeError> {
    GlobalMetadata::decode(bytes).map(drop)
}

/// The node that `bytes` are.
pub(super) fn node(bytes: &[u8]) -> Result<Node, DecodeError> {
    Node::decode(bytes)
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) attr: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_us: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<IoInfo>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IoInfo {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(string, tag = "29")]
    Text(String),
}

impl Node {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attr.iter().find(|attribute| attribute.name == name)
    }

    /// An attribute of any of the types of integers.
    pub(super) fn integer(&self, name: &str) -> Option<i128> {
        Some(match self.attribute(name)?.value.as_ref()? {
            Value::Int32(n) | Value::Sint32(n) | Value::Sfixed32(n) => i128::from(*n),
            Value::Int64(n) | Value::Sint64(n) | Value::Sfixed64(n) => i128::from(*n),
            Value::Uint32(n) | Value::Fixed32(n) => i128::from(*n),
            Value::Uint64(n) | Value::Fixed64(n) => i128::from(*n),
            Value::Bool(_) | Value::Text(_) => return None,
        })
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        let value = self.attribute(name).and_then(|attribute| attribute.value.as_ref());
        matches!(value, Some(Value::Bool(true)))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)?.value.as_ref()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeType {
    Invalid,
    Metadata,
    MemLoad,
    MemStore,
    Compute,
    Send,
    Recv,
    Collective,
}

impl NodeType {
    /// The number of [`NodeType::Metadata`].
    pub(super) const METADATA: i32 = Self::Metadata as i32;

    pub(super) fn of(number: i32) -> Option<Self> {
        let all = [
            Self::Invalid,
            Self::Metadata,
            Self::MemLoad,
            Self::MemStore,
            Self::Compute,
            Self::Send,
            Self::Recv,
            Self::Collective,
        ];
        all.get(usize::try_from(number).ok()?).copied()
    }
}

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommType {
    AllReduce,
    Reduce,
    AllGather,
    Gather,
    Scatter,
    Broadcast,
    AllToAll,
    ReduceScatter,
    ReduceScatterBlock,
    Barrier,
}

impl CommType {
    pub(super) fn of(number: u32) -> Option<Self> {
        let all = [
            Self::AllReduce,
            Self::Reduce,
            Self::AllGather,
            Self::Gather,
            Self::Scatter,
            Self::Broadcast,
            Self::AllToAll,
            Self::ReduceScatter,
            Self::ReduceScatterBlock,
            Self::Barrier,
        ];
        all.get(number as usize).copied()
    }
}
