//! The pHost header. It is ours: pHost (CoNEXT 2015) was published as a simulation without one. It
//! carries the fields of its authors' simulator (public code `NetSys/simulator`).
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | type: 1 REQ, 2 TOKEN, 3 DATA, 4 ACK, 5 END |
//! | 1 | 1 | zero |
//! | 2 | 2 | DATA: payload length, before any trimming |
//! | 4 | 4 | REQ: free tokens. TOKEN: its number. DATA: number of the token it uses |
//! | 8 | 8 | message id of the data sender |
//! | 16 | 8 | TOKEN, DATA: the packet's index in the message |
//! | 24 | 8 | REQ, DATA: length of the message in bytes, all ones if it never ends. TOKEN: packets that the receiver still misses |
//!
//! All big-endian.

use thiserror::Error;

use crate::plain::word;

/// IP protocol number, one of the two for experiments (RFC 3692, section 2.1).
pub const PROTO: u8 = 254;
/// Bytes of the header.
pub const LEN: usize = 32;

/// Why bytes are not a pHost header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Fewer than [`LEN`] bytes.
    #[error("a pHost header has {LEN} bytes, here are {0}")]
    Short(usize),
    /// An unknown type.
    #[error("type {0} is no pHost packet")]
    Type(u8),
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message of so many bytes wants tokens (the papers' RTS).
    Req {
        /// Length of the message.
        size: u64,
        /// Tokens numbered from zero that the sender has given itself, for its first packets; zero
        /// once they are used up or have expired.
        free: u32,
    },
    /// One packet may be sent.
    Token {
        /// Counts the tokens of this message, modulo 2^32.
        number: u32,
        /// Which packet.
        seq: u64,
        /// Packets that the receiver still misses.
        missing: u64,
    },
    /// Payload.
    Data {
        /// The token that it uses.
        number: u32,
        /// Index of the packet in its message.
        seq: u64,
        /// Length of the message.
        size: u64,
        /// Payload bytes.
        len: u16,
    },
    /// All of the message has arrived.
    Ack,
    /// The sender knows nothing of the message, or no longer.
    End,
}

/// A pHost header as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The message id of the data sender.
    pub message: u64,
    /// The packet type with its fields.
    pub kind: Kind,
}

impl Repr {
    /// Read a header. Fields that mean nothing for the packet's type are ignored, as is what
    /// follows.
    ///
    /// # Errors
    /// Too few bytes, or an unknown type.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let Some(bytes) = bytes.first_chunk::<LEN>() else {
            return Err(Error::Short(bytes.len()));
        };
        let [kind, _, l0, l1, n0, n1, n2, n3, ..] = *bytes;
        let len = u16::from_be_bytes([l0, l1]);
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        let (message, seq, size) = (word(bytes, 8), word(bytes, 16), word(bytes, 24));
        let kind = match kind {
            1 => Kind::Req { size, free: number },
            2 => Kind::Token { number, seq, missing: size },
            3 => Kind::Data { number, seq, size, len },
            4 => Kind::Ack,
            5 => Kind::End,
            other => return Err(Error::Type(other)),
        };
        Ok(Self { message, kind })
    }

    /// This header as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let (kind, len, number, seq, size) = match self.kind {
            Kind::Req { size, free } => (1, 0, free, 0, size),
            Kind::Token { number, seq, missing } => (2, 0, number, seq, missing),
            Kind::Data { number, seq, size, len } => (3, len, number, seq, size),
            Kind::Ack => (4, 0, 0, 0, 0),
            Kind::End => (5, 0, 0, 0, 0),
        };
        let mut bytes = [0; LEN];
        bytes[0] = kind;
        bytes[2..4].copy_from_slice(&u16::to_be_bytes(len));
        bytes[4..8].copy_from_slice(&u32::to_be_bytes(number));
        bytes[8..16].copy_from_slice(&self.message.to_be_bytes());
        bytes[16..24].copy_from_slice(&u64::to_be_bytes(seq));
        bytes[24..].copy_from_slice(&u64::to_be_bytes(size));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plain::plain_header_tests;

    #[test]
    fn data_byte_for_byte() {
        let kind = Kind::Data { number: 0x0102_0304, seq: 5, size: 90_000, len: 9000 };
        #[rustfmt::skip]
        let expected = [
            3, 0, 0x23, 0x28,               // DATA of 9000 B
            1, 2, 3, 4,                     // token number
            0, 0, 0, 0, 0, 0, 0, 7,         // message
            0, 0, 0, 0, 0, 0, 0, 5,         // packet
            0, 0, 0, 0, 0, 1, 0x5f, 0x90,   // 90 000 B
        ];
        assert_eq!(Repr { message: 7, kind }.to_bytes(), expected);
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let numbers = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u16>());
        (0..5, numbers).prop_map(|(kind, (number, seq, size, len))| match kind {
            0 => Kind::Req { size, free: number },
            1 => Kind::Token { number, seq, missing: size },
            2 => Kind::Data { number, seq, size, len },
            3 => Kind::Ack,
            _ => Kind::End,
        })
    }

    plain_header_tests!(any_kind(), [0, 6]);
}
