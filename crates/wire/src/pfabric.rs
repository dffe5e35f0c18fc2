//! The pFabric header. It is ours: pFabric (SIGCOMM 2013) was published as a simulation, over TCP's
//! header with one number more, which switches read.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | type: 1 DATA, 2 PROBE, 3 ACK, 4 END |
//! | 1 | 1 | zero |
//! | 2 | 2 | DATA: payload length, before any trimming |
//! | 4 | 4 | DATA, PROBE: bytes of the message that are not acknowledged, all ones if so many or more |
//! | 8 | 8 | message id of the data sender |
//! | 16 | 8 | DATA, PROBE, ACK: the packet's index in the message |
//! | 24 | 8 | DATA, PROBE: length of the message in bytes, all ones if it never ends. ACK: the first packet that the receiver misses |
//!
//! All big-endian. What is left is all that a switch sorts by ([`urgency`]): the less, the
//! more urgent. ACK and END have zero there.

use thiserror::Error;

use crate::plain::word;

/// IP protocol number, one of the two for experiments (RFC 3692, section 2.1).
pub const PROTO: u8 = 253;
/// Bytes of the header.
pub const LEN: usize = 32;

/// Why bytes are not a pFabric header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Fewer than [`LEN`] bytes.
    #[error("a pFabric header has {LEN} bytes, here are {0}")]
    Short(usize),
    /// An unknown type.
    #[error("type {0} is no pFabric packet")]
    Type(u8),
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data {
        /// Bytes of the message that were not acknowledged when it was sent.
        remaining: u32,
        /// Index of the packet in its message.
        seq: u64,
        /// Length of the message.
        size: u64,
        /// Payload bytes.
        len: u16,
    },
    /// As DATA, without its payload: asks for an ACK.
    Probe {
        /// Bytes of the message that were not acknowledged when it was sent.
        remaining: u32,
        /// Index of the first packet that is not acknowledged.
        seq: u64,
        /// Length of the message.
        size: u64,
    },
    /// Answers one packet.
    Ack {
        /// Its index in the message.
        seq: u64,
        /// The first packet that has not arrived. `seq` itself: only its probe has.
        missing: u64,
    },
    /// The sender has given the message up.
    End,
}

/// A pFabric header as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The message id of the data sender.
    pub message: u64,
    /// The packet type with its fields.
    pub kind: Kind,
}

/// What a switch reads: how much of its message is left, and whose the packet is. Packets of the
/// same message have the same key if they carry payload or ask for what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// The less, the more urgent.
    pub remaining: u32,
    /// The message id of the data sender.
    pub message: u64,
    /// Whether the packet is one of the message itself, no answer to it.
    pub forward: bool,
}

/// The urgency of a packet with this header; `None` if it has none.
#[must_use]
pub fn urgency(bytes: &[u8]) -> Option<Urgency> {
    let [kind, _, _, _, r0, r1, r2, r3, m0, m1, m2, m3, m4, m5, m6, m7] =
        *bytes.first_chunk::<16>()?;
    Some(Urgency {
        remaining: u32::from_be_bytes([r0, r1, r2, r3]),
        message: u64::from_be_bytes([m0, m1, m2, m3, m4, m5, m6, m7]),
        forward: kind <= 2,
    })
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
        let [kind, _, l0, l1, r0, r1, r2, r3, ..] = *bytes;
        let len = u16::from_be_bytes([l0, l1]);
        let remaining = u32::from_be_bytes([r0, r1, r2, r3]);
        let (message, seq, last) = (word(bytes, 8), word(bytes, 16), word(bytes, 24));
        let kind = match kind {
            1 => Kind::Data { remaining, seq, size: last, len },
            2 => Kind::Probe { remaining, seq, size: last },
            3 => Kind::Ack { seq, missing: last },
            4 => Kind::End,
            other => return Err(Error::Type(other)),
        };
        Ok(Self { message, kind })
    }

    /// This header as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let (kind, len, remaining, seq, last) = match self.kind {
            Kind::Data { remaining, seq, size, len } => (1, len, remaining, seq, size),
            Kind::Probe { remaining, seq, size } => (2, 0, remaining, seq, size),
            Kind::Ack { seq, missing } => (3, 0, 0, seq, missing),
            Kind::End => (4, 0, 0, 0, 0),
        };
        let mut bytes = [0; LEN];
        bytes[0] = kind;
        bytes[2..4].copy_from_slice(&u16::to_be_bytes(len));
        bytes[4..8].copy_from_slice(&u32::to_be_bytes(remaining));
        bytes[8..16].copy_from_slice(&self.message.to_be_bytes());
        bytes[16..24].copy_from_slice(&u64::to_be_bytes(seq));
        bytes[24..].copy_from_slice(&u64::to_be_bytes(last));
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
        let kind = Kind::Data { remaining: 0x0102_0304, seq: 5, size: 90_000, len: 1460 };
        #[rustfmt::skip]
        let expected = [
            1, 0, 0x05, 0xb4,               // DATA of 1460 B
            1, 2, 3, 4,                     // left
            0, 0, 0, 0, 0, 0, 0, 7,         // message
            0, 0, 0, 0, 0, 0, 0, 5,         // packet
            0, 0, 0, 0, 0, 1, 0x5f, 0x90,   // 90 000 B
        ];
        assert_eq!(Repr { message: 7, kind }.to_bytes(), expected);
    }

    #[test]
    fn a_switch_tells_messages_from_what_answers_them() {
        let of = |kind| urgency(&Repr { message: 7, kind }.to_bytes()).unwrap();
        let probe = of(Kind::Probe { remaining: 9, seq: 1, size: 10 });
        let data = of(Kind::Data { remaining: 9, seq: 2, size: 10, len: 1 });
        let ack = of(Kind::Ack { seq: 2, missing: 1 });
        assert_eq!(probe, data);
        assert_eq!(ack, Urgency { remaining: 0, message: 7, forward: false });
        assert_eq!(urgency(&[1; 15]), None);
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let numbers = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u16>());
        (0..4, numbers).prop_map(|(kind, (remaining, seq, last, len))| match kind {
            0 => Kind::Data { remaining, seq, size: last, len },
            1 => Kind::Probe { remaining, seq, size: last },
            2 => Kind::Ack { seq, missing: last },
            _ => Kind::End,
        })
    }

    plain_header_tests!(any_kind(), [0, 5]);
}
