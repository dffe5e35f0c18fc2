//! The header of Ultra Ethernet's reliable, unordered delivery. Packet types, the state of NSCC in
//! acknowledgements and what else has a published width follow specs/uet.md#7; where the fields
//! stand is ours, as the text is not public.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | type: 2 REQUEST, 8 ACK, 10 NACK, 11 control |
//! | 1 | 1 | flags, see [`flags`]; control: 0 CLOSE, 1 CREDIT, 2 REQ, 3 PROBE |
//! | 2 | 2 | entropy value; ACK, NACK: that of the packet answered |
//! | 4 | 4 | packet number in the connection, modulo 2^32; ACK, NACK: of the packet answered; PROBE and its ACK: the probe's own; REQ: 1 if the connection is kept |
//! | 8 | 8 | connection: the id of its first message, of the data sender. Unless it is kept, it has no other |
//! | 16 | 8 | REQUEST, REQ: length of the message in bytes, all ones if it never ends. ACK: bitmap |
//! | 24 | 4 | REQUEST: payload length before any trimming. ACK: next packet number expected |
//! | 28 | 4 | ACK: the packet number of the bitmap's lowest bit. REQUEST, REQ: credit target, CREDIT: credit given, in units of 256 B, modulo 2^32 |
//! | 32 | 8 | ACK: state of NSCC: zero (24 bits), bytes received in units of 256 B (24), packets out of order (16) |
//!
//! All big-endian. The first 24 bits of the state are service time, restore flag and penalty, which
//! nobody here sends.

use thiserror::Error;

use crate::plain::word;

/// IP protocol number. It is one of those that IANA has left unassigned.
pub const PROTO: u8 = 251;
/// Bytes of the header.
pub const LEN: usize = 40;
/// The bytes that a receiver has counted are told in units of so many, rounded up.
pub const UNIT: u64 = 256;
/// How many units are counted before it begins again.
pub const UNITS: u32 = 1 << 24;

/// Flag bits.
pub mod flags {
    /// REQUEST: an acknowledgement is asked for (AR).
    pub const ACK_REQUEST: u8 = 1;
    /// REQUEST: sent before. ACK: so was the packet answered.
    pub const REPEATED: u8 = 2;
    /// ACK, NACK: the packet answered had a congestion mark (M).
    pub const MARKED: u8 = 4;
    /// NACK: it was trimmed at the last hop.
    pub const LAST_HOP: u8 = 8;
    /// ACK: of a probe.
    pub const PROBE: u8 = 16;
    /// REQUEST: the connection stays when its messages are complete, and has more than one.
    pub const KEPT: u8 = 32;
}

/// Why bytes are not such a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Fewer than [`LEN`] bytes.
    #[error("a header of Ultra Ethernet has {LEN} bytes here, not {0}")]
    Short(usize),
    /// An unknown type.
    #[error("type {0} is no packet of Ultra Ethernet that is known here")]
    Type(u8),
    /// An unknown control packet.
    #[error("control packet {0} of Ultra Ethernet is not known here")]
    Control(u8),
}

/// What an acknowledgement says beside the packet that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The packet answered had been sent before.
    pub repeated: bool,
    /// The packet answered had a congestion mark.
    pub marked: bool,
    /// The packet answered was a probe.
    pub probe: bool,
    /// All packets below have arrived, modulo 2^32.
    pub expected: u32,
    /// Bit n: whether packet `base + n` has arrived.
    pub bitmap: u64,
    /// See `bitmap`.
    pub base: u32,
    /// Bytes on the wire of all packets that have arrived, in units of [`UNIT`], modulo [`UNITS`].
    pub received: u32,
    /// Packets that have arrived out of order, at most 65535.
    pub out_of_order: u16,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Request {
        /// The packet's entropy value.
        entropy: u16,
        /// Its number.
        psn: u32,
        /// Length of the message.
        size: u64,
        /// Payload bytes.
        len: u16,
        /// It asks for an acknowledgement.
        ack_request: bool,
        /// It was sent before.
        repeated: bool,
        /// The connection is kept for more messages. Which one this packet is of, and where in it,
        /// the semantic layer says; `psn` counts through all of them.
        kept: bool,
        /// The credit that the sender has asked for since the message began, in units of [`UNIT`],
        /// modulo 2^32; zero where receivers give none.
        target: u32,
    },
    /// Packets have arrived, packet `psn` as the last of them.
    Ack {
        /// The entropy value that it had.
        entropy: u16,
        /// Its number.
        psn: u32,
        /// The rest.
        ack: Ack,
    },
    /// A packet has arrived without its payload.
    Nack {
        /// The entropy value that it had.
        entropy: u16,
        /// Its number.
        psn: u32,
        /// It had a congestion mark.
        marked: bool,
        /// It was trimmed at the last hop.
        last_hop: bool,
    },
    /// The sender has given the message up.
    Close,
    /// The receiver gives credit.
    Credit {
        /// All that it has given since the message began, in units of [`UNIT`], modulo 2^32.
        given: u32,
    },
    /// The sender waits for credit (REQ).
    CreditRequest {
        /// Length of the message; of a connection that is kept, zero.
        size: u64,
        /// As in a packet with payload.
        kept: bool,
        /// As in a packet with payload.
        target: u32,
    },
    /// The sender wants to know what has arrived.
    Probe {
        /// The packet's entropy value.
        entropy: u16,
        /// The probe's number.
        number: u32,
    },
}

/// A header as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The message id of the data sender.
    pub message: u64,
    /// The packet type with its fields.
    pub kind: Kind,
}

fn bit(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
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
        let [kind, bits, e0, e1, p0, p1, p2, p3, ..] = *bytes;
        let has = |flag: u8| bits & flag != 0;
        let entropy = u16::from_be_bytes([e0, e1]);
        let psn = u32::from_be_bytes([p0, p1, p2, p3]);
        let [message, long, pair, state] = [8, 16, 24, 32].map(|at| word(bytes, at));
        let (first, second) = ((pair >> 32) as u32, pair as u32);
        let kind = match kind {
            2 => Kind::Request {
                entropy,
                psn,
                size: long,
                len: first as u16,
                ack_request: has(flags::ACK_REQUEST),
                repeated: has(flags::REPEATED),
                kept: has(flags::KEPT),
                target: second,
            },
            8 => {
                let ack = Ack {
                    repeated: has(flags::REPEATED),
                    marked: has(flags::MARKED),
                    probe: has(flags::PROBE),
                    expected: first,
                    bitmap: long,
                    base: second,
                    received: (state >> 16) as u32 % UNITS,
                    out_of_order: state as u16,
                };
                Kind::Ack { entropy, psn, ack }
            }
            10 => {
                let (marked, last_hop) = (has(flags::MARKED), has(flags::LAST_HOP));
                Kind::Nack { entropy, psn, marked, last_hop }
            }
            11 => match bits {
                0 => Kind::Close,
                1 => Kind::Credit { given: second },
                2 => Kind::CreditRequest { size: long, kept: psn == 1, target: second },
                3 => Kind::Probe { entropy, number: psn },
                other => return Err(Error::Control(other)),
            },
            other => return Err(Error::Type(other)),
        };
        Ok(Self { message, kind })
    }

    /// This header as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let (kind, bits, entropy, psn, words) = match self.kind {
            Kind::Request { entropy, psn, size, len, ack_request, repeated, kept, target } => {
                let bits = bit(ack_request, flags::ACK_REQUEST)
                    | bit(repeated, flags::REPEATED)
                    | bit(kept, flags::KEPT);
                (2, bits, entropy, psn, [size, u64::from(len) << 32 | u64::from(target), 0])
            }
            Kind::Ack { entropy, psn, ack } => {
                let bits = bit(ack.repeated, flags::REPEATED)
                    | bit(ack.marked, flags::MARKED)
                    | bit(ack.probe, flags::PROBE);
                let pair = u64::from(ack.expected) << 32 | u64::from(ack.base);
                let state = u64::from(ack.received % UNITS) << 16 | u64::from(ack.out_of_order);
                (8, bits, entropy, psn, [ack.bitmap, pair, state])
            }
            Kind::Nack { entropy, psn, marked, last_hop } => {
                let bits = bit(marked, flags::MARKED) | bit(last_hop, flags::LAST_HOP);
                (10, bits, entropy, psn, [0; 3])
            }
            Kind::Close => (11, 0, 0, 0, [0; 3]),
            Kind::Credit { given } => (11, 1, 0, 0, [0, u64::from(given), 0]),
            Kind::CreditRequest { size, kept, target } => {
                (11, 2, 0, u32::from(kept), [size, u64::from(target), 0])
            }
            Kind::Probe { entropy, number } => (11, 3, entropy, number, [0; 3]),
        };
        let mut bytes = [0; LEN];
        bytes[0] = kind;
        bytes[1] = bits;
        bytes[2..4].copy_from_slice(&entropy.to_be_bytes());
        bytes[4..8].copy_from_slice(&psn.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.message.to_be_bytes());
        for (place, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plain::plain_header_tests;

    #[test]
    fn an_acknowledgement_byte_for_byte() {
        let ack = Ack {
            repeated: true,
            marked: true,
            probe: false,
            expected: 0x0102_0304,
            bitmap: 0x8000_0000_0000_0001,
            base: 0x0102_0306,
            received: 0x00ab_cdef,
            out_of_order: 0x1122,
        };
        let kind = Kind::Ack { entropy: 0x7f01, psn: 0x0102_0340, ack };
        #[rustfmt::skip]
        let expected = [
            8, 6, 0x7f, 0x01,               // ACK of a marked repetition, entropy value
            1, 2, 3, 0x40,                  // packet answered
            0, 0, 0, 0, 0, 0, 0, 7,         // message
            0x80, 0, 0, 0, 0, 0, 0, 1,      // bitmap
            1, 2, 3, 4, 1, 2, 3, 6,         // expected, base
            0, 0, 0, 0xab, 0xcd, 0xef, 0x11, 0x22,
        ];
        assert_eq!(Repr { message: 7, kind }.to_bytes(), expected);
    }

    fn any_ack() -> impl Strategy<Value = Ack> {
        let words = (any::<u32>(), any::<u64>(), any::<u32>(), 0..UNITS, any::<u16>());
        (any::<[bool; 3]>(), words).prop_map(
            |([repeated, marked, probe], (expected, bitmap, base, received, out_of_order))| Ack {
                repeated,
                marked,
                probe,
                expected,
                bitmap,
                base,
                received,
                out_of_order,
            },
        )
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let numbers = (any::<u16>(), any::<u32>(), any::<u64>(), any::<u16>(), any::<u32>());
        (0..7, any::<[bool; 2]>(), numbers, any_ack()).prop_map(
            |(kind, [a, b], (entropy, psn, size, len, units), ack)| match kind {
                0 => Kind::Request {
                    entropy,
                    psn,
                    size,
                    len,
                    ack_request: a,
                    repeated: b,
                    kept: len % 2 == 1,
                    target: units,
                },
                1 => Kind::Ack { entropy, psn, ack },
                2 => Kind::Nack { entropy, psn, marked: a, last_hop: b },
                3 => Kind::Credit { given: units },
                4 => Kind::CreditRequest { size, kept: a, target: units },
                5 => Kind::Probe { entropy, number: psn },
                _ => Kind::Close,
            },
        )
    }

    #[test]
    fn an_unknown_control_packet_is_refused() {
        let mut bytes = Repr { message: 7, kind: Kind::Close }.to_bytes();
        bytes[1] = 9;
        assert_eq!(Repr::parse(&bytes), Err(Error::Control(9)));
    }

    plain_header_tests!(any_kind(), [0, 7]);
}
