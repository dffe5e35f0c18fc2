//! The Homa header. The paper (SIGCOMM 2018) was published without one; this has the fields of
//! specs/homa.md#3, in the lengths of its authors' simulator: 30 bytes before data, and control
//! packets that fit the least Ethernet payload. NACK is Homa-Tr's (specs/homa-tr.md#2).
//!
//! Messages between two hosts are numbered from zero by their sender, so that one number says that
//! everything below it is over. All integers are big-endian; numbers and indices are modulo 2^32.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | type: 1 DATA, 2 GRANT, 3 RESEND, 4 UNKNOWN, 5 BUSY, 6 NEED_ACK, 7 ACK, 8 NACK |
//! | 1 | 1 | GRANT, RESEND: priority level, 0 the highest. DATA, a sum: 1 marks a request whose response must begin with little (incast control), 2 a response, 4 one that begins with little. UNKNOWN, BUSY: 1 if the message is one of the packet's source |
//! | 2 | 2 | DATA: payload length, before any trimming |
//! | 4 | 4 | number of the message |
//! | 8 | 4 | GRANT: packets permitted so far. RESEND: first packet. NACK: the packet. ACK: the first number that is missing |
//! | 12 | 4 | RESEND: the packet after the last. NACK: packets permitted so far. ACK: bit n stands for the message n + 1 numbers after this one: set if it is whole |
//!
//! DATA goes on:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 8 | 4 | index of the packet in the message |
//! | 12 | 6 | length of the message in bytes, all ones if it never ends |
//! | 18 | 2 | packets that come unscheduled, counted from the first; all ones: so many or more. If the message begins with little: payload of its first packet, which alone comes unscheduled |
//! | 20 | 2 | how far below this number the sender's oldest open message to this host is; all ones: unknown |
//! | 22 | 4 | of the messages of the other direction, the first number that is missing |
//! | 26 | 4 | bit n stands for the message n + 1 numbers later: set if it is whole |

use thiserror::Error;

/// IP protocol number: that of Linux's Homa (HomaModule, `IPPROTO_HOMA`).
pub const PROTO: u8 = 146;
/// Bytes of the header of DATA.
pub const DATA_LEN: usize = 30;
/// Bytes of the header of any other packet.
pub const CONTROL_LEN: usize = 16;
/// The length of a message that never ends.
pub const ENDLESS: u64 = (1 << 48) - 1;

/// Why bytes are not a Homa header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Too few bytes for the packet's type.
    #[error("a Homa header of this type has {0} bytes, here are {1}")]
    Short(usize, usize),
    /// An unknown type.
    #[error("type {0} is no Homa packet")]
    Type(u8),
}

/// Which messages of one host have arrived whole at another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// The first number that is missing.
    pub first_missing: u32,
    /// Bit n: whether `first_missing + 1 + n` is whole.
    pub behind: u32,
}

/// Payload and all that a receiver must know to create the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Payload bytes.
    pub len: u16,
    /// Index of the packet in its message.
    pub index: u32,
    /// Bytes of the message; [`ENDLESS`] if it never ends.
    pub size: u64,
    /// Packets, from the first on, that come unscheduled. [`u16::MAX`]: so many or more. 1 if there
    /// is a `head`.
    pub unscheduled: u16,
    /// Payload of the first packet, if that is shorter than a full one though others follow (incast
    /// control); otherwise zero.
    pub head: u16,
    /// The sender's oldest open message to this host is so far below; [`u16::MAX`]: unknown.
    pub oldest: u16,
    /// A request whose response must begin with little (incast control).
    pub marked: bool,
    /// A response to a message of the other direction.
    pub response: bool,
    /// What the sender of this packet has received of its receiver.
    pub whole: Whole,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data(Data),
    /// Packets below `granted` may be sent, from now on at `level`.
    Grant {
        /// Packets permitted, from the first on.
        granted: u32,
        /// Priority level, 0 the highest.
        level: u8,
    },
    /// Send packets `first..end` again.
    Resend {
        /// The first packet.
        first: u32,
        /// The packet after the last.
        end: u32,
        /// Priority level, 0 the highest.
        level: u8,
    },
    /// The source of this packet knows nothing of the message.
    Unknown {
        /// Whether it is a message of the packet's source.
        mine: bool,
    },
    /// Alive, and nothing else to say.
    Busy {
        /// Whether it is a message of the packet's source.
        mine: bool,
    },
    /// Has this message arrived?
    NeedAck,
    /// This message is whole, and so are others.
    Ack {
        /// All messages below this number.
        first_missing: u32,
        /// Bit n: whether the message n + 1 numbers after this one is.
        next: u32,
    },
    /// Packet `index` has come without its payload (Homa-Tr).
    Nack {
        /// Which packet.
        index: u32,
        /// Packets permitted when this left: grants for more left later.
        granted: u32,
    },
}

/// A Homa header as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Number of the message, among those of its sender to its receiver.
    pub number: u32,
    /// The packet type with its fields.
    pub kind: Kind,
}

/// A header in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; DATA_LEN],
    len: usize,
}

impl Header {
    /// As on the wire.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Repr {
    /// Bytes of this header.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.kind {
            Kind::Data(_) => DATA_LEN,
            _ => CONTROL_LEN,
        }
    }

    /// Never: every header has bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Read a header. Fields that mean nothing for the packet's type are ignored, as is what
    /// follows.
    ///
    /// # Errors
    /// Too few bytes, or an unknown type.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let Some(control) = bytes.first_chunk::<CONTROL_LEN>() else {
            return Err(Error::Short(CONTROL_LEN, bytes.len()));
        };
        let (level, mine) = (control[1], control[1] & 1 == 1);
        let (number, a, b) = (get32(control, 4), get32(control, 8), get32(control, 12));
        let kind = match control[0] {
            1 => match bytes.first_chunk::<DATA_LEN>() {
                Some(bytes) => Kind::Data(parse_data(bytes)),
                None => return Err(Error::Short(DATA_LEN, bytes.len())),
            },
            2 => Kind::Grant { granted: a, level },
            3 => Kind::Resend { first: a, end: b, level },
            4 => Kind::Unknown { mine },
            5 => Kind::Busy { mine },
            6 => Kind::NeedAck,
            7 => Kind::Ack { first_missing: a, next: b },
            8 => Kind::Nack { index: a, granted: b },
            other => return Err(Error::Type(other)),
        };
        Ok(Self { number, kind })
    }

    /// This header as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Header {
        let mut header = Header { bytes: [0; DATA_LEN], len: self.len() };
        let bytes = &mut header.bytes;
        let (kind, second, a, b) = match self.kind {
            Kind::Data(data) => {
                put_data(bytes, &data);
                (1, flags(&data), data.index, get32(bytes, 12))
            }
            Kind::Grant { granted, level } => (2, level, granted, 0),
            Kind::Resend { first, end, level } => (3, level, first, end),
            Kind::Unknown { mine } => (4, u8::from(mine), 0, 0),
            Kind::Busy { mine } => (5, u8::from(mine), 0, 0),
            Kind::NeedAck => (6, 0, 0, 0),
            Kind::Ack { first_missing, next } => (7, 0, first_missing, next),
            Kind::Nack { index, granted } => (8, 0, index, granted),
        };
        bytes[0] = kind;
        bytes[1] = second;
        bytes[4..8].copy_from_slice(&u32::to_be_bytes(self.number));
        bytes[8..12].copy_from_slice(&u32::to_be_bytes(a));
        bytes[12..16].copy_from_slice(&u32::to_be_bytes(b));
        header
    }
}

/// The second byte of DATA.
fn flags(data: &Data) -> u8 {
    u8::from(data.marked) | u8::from(data.response) << 1 | u8::from(data.head > 0) << 2
}

fn parse_data(bytes: &[u8; DATA_LEN]) -> Data {
    let size = u64::from(get32(bytes, 12)) << 16 | u64::from(get16(bytes, 16));
    let first = get16(bytes, 18);
    let (unscheduled, head) = if bytes[1] & 4 == 4 { (1, first) } else { (first, 0) };
    Data {
        len: get16(bytes, 2),
        index: get32(bytes, 8),
        size,
        unscheduled,
        head,
        oldest: get16(bytes, 20),
        marked: bytes[1] & 1 == 1,
        response: bytes[1] & 2 == 2,
        whole: Whole { first_missing: get32(bytes, 22), behind: get32(bytes, 26) },
    }
}

/// The fields of `data` beyond the first twelve bytes, and its length.
fn put_data(bytes: &mut [u8; DATA_LEN], data: &Data) {
    bytes[2..4].copy_from_slice(&data.len.to_be_bytes());
    bytes[12..18].copy_from_slice(&data.size.min(ENDLESS).to_be_bytes()[2..]);
    let first = if data.head > 0 { data.head } else { data.unscheduled };
    bytes[18..20].copy_from_slice(&first.to_be_bytes());
    bytes[20..22].copy_from_slice(&data.oldest.to_be_bytes());
    bytes[22..26].copy_from_slice(&data.whole.first_missing.to_be_bytes());
    bytes[26..30].copy_from_slice(&data.whole.behind.to_be_bytes());
}

fn get16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn get32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATA: Data = Data {
        len: 1442,
        index: 5,
        size: 90_000,
        unscheduled: 7,
        head: 0,
        oldest: 3,
        marked: true,
        response: false,
        whole: Whole { first_missing: 0x0102_0304, behind: 6 },
    };

    #[test]
    fn data_byte_for_byte() {
        #[rustfmt::skip]
        let expected = [
            1, 1, 0x05, 0xa2,               // DATA, marked, of 1442 B
            0, 0, 0, 9,                     // message
            0, 0, 0, 5,                     // packet
            0, 0, 0, 1, 0x5f, 0x90,         // 90 000 B
            0, 7, 0, 3,                     // unscheduled, oldest
            1, 2, 3, 4, 0, 0, 0, 6,         // whole
        ];
        let header = Repr { number: 9, kind: Kind::Data(DATA) }.to_bytes();
        assert_eq!(header.as_slice(), expected);
        // A response that begins with 400 B: they replace the number of packets.
        let short = Data { unscheduled: 1, head: 400, marked: false, response: true, ..DATA };
        let header = Repr { number: 9, kind: Kind::Data(short) }.to_bytes();
        assert_eq!(header.as_slice()[..2], [1, 2 + 4]);
        assert_eq!(header.as_slice()[18..20], [0x01, 0x90]);
        assert_eq!(Repr::parse(header.as_slice()), Ok(Repr { number: 9, kind: Kind::Data(short) }));
    }

    #[test]
    fn a_resend_byte_for_byte() {
        let kind = Kind::Resend { first: 2, end: 4, level: 7 };
        let expected = [3, 7, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 4];
        assert_eq!(Repr { number: 9, kind }.to_bytes().as_slice(), expected);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let header = Repr { number: 7, kind: Kind::Data(DATA) }.to_bytes();
        assert_eq!(Repr::parse(&header.as_slice()[..29]), Err(Error::Short(30, 29)));
        assert_eq!(Repr::parse(&[2; 15]), Err(Error::Short(16, 15)));
        assert_eq!(Repr::parse(&[0; 16]), Err(Error::Type(0)));
        assert_eq!(Repr::parse(&[9; 16]), Err(Error::Type(9)));
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let words = (any::<u32>(), any::<u32>(), any::<u64>());
        let small = (any::<u16>(), any::<u16>(), any::<u16>(), any::<u8>(), any::<bool>());
        (0..8, words, small).prop_map(
            |(kind, (index, word, size), (len, unscheduled, oldest, level, marked))| {
                let whole = Whole { first_missing: word, behind: index };
                let size = size.min(ENDLESS);
                match kind {
                    0 => {
                        let response = level & 1 == 1;
                        let head = if level & 2 == 2 { oldest } else { 0 };
                        let unscheduled = if head > 0 { 1 } else { unscheduled };
                        let rest = Data { len, index, size, whole, ..DATA };
                        Kind::Data(Data { unscheduled, head, oldest, marked, response, ..rest })
                    }
                    1 => Kind::Grant { granted: index, level },
                    2 => Kind::Resend { first: index, end: word, level },
                    3 => Kind::Unknown { mine: marked },
                    4 => Kind::Busy { mine: marked },
                    5 => Kind::NeedAck,
                    6 => Kind::Ack { first_missing: word, next: index },
                    _ => Kind::Nack { index, granted: word },
                }
            },
        )
    }

    proptest! {
        #[test]
        fn parse_undoes_to_bytes(number: u32, kind in any_kind()) {
            let repr = Repr { number, kind };
            prop_assert_eq!(Repr::parse(repr.to_bytes().as_slice()), Ok(repr));
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(0..10u8, 0..48)) {
            if let Ok(repr) = Repr::parse(&bytes) {
                prop_assert_eq!(Repr::parse(repr.to_bytes().as_slice()), Ok(repr));
            }
        }
    }
}
