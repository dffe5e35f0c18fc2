//! The headers of RDMA over Converged Ethernet, version 2: the Base Transport Header of InfiniBand
//! and what follows it, over UDP (InfiniBand Architecture Specification, volume 1, chapter 9, and
//! annex A17).
//!
//! | offset | bits | field |
//! |---|---|---|
//! | 0 | 8 | opcode, see below |
//! | 1 | 1, 1, 2, 4 | solicited event: a message of the application ends here; migration; pad count; version: zeros |
//! | 2 | 16 | partition key: the default one, `ffff` |
//! | 4 | 1, 1, 6 | FECN: zero; BECN: an acknowledgement echoes a congestion mark; reserved |
//! | 5 | 24 | destination queue pair |
//! | 8 | 1, 7 | an acknowledgement is asked for; reserved. Ours: 1 the queue pair ends here, 2 the message is given up, 4 a bitmap follows |
//! | 9 | 24 | packet sequence number (PSN) |
//!
//! | opcode | packet | after these 12 bytes |
//! |---|---|---|
//! | 00, 01, 02, 04 | SEND: first, middle, last, only packet of a segment | payload |
//! | 0c | READ request: its PSN is the first that answers | address: the position in the stream of packets, 8; key: 4, zero; length: packets, 4 (RETH) |
//! | 0d, 0e, 0f, 10 | READ response: first, middle, last, only | payload |
//! | 11 | acknowledgement | syndrome: `1f`, or `60` for a NAK; messages received, 24 bits (AETH); then ours, see below |
//! | 81 | congestion notification (CNP) | 16 bytes, zero |
//! | c0 | ours, of the manufacturers' range: a message that is there to be READ, from this PSN on | message id 8, its length 8 |
//!
//! All big-endian. An acknowledgement names the last packet that it acknowledges, a NAK the first
//! that is missing. What is ours in an acknowledgement, as RoCE measures its round trips elsewhere:
//! the number of the packet that caused it, less that of the first packet that is missing, 2 bytes
//! (`8000`: of none); nanoseconds from the arrival of that packet to the departure of the
//! acknowledgement, 4 bytes; and perhaps a bitmap of 8 bytes, whose bit n from the lowest says that
//! packet `missing + 1 + n` has come. What is not here: the address (RETH, 16 bytes) of the RDMA
//! WRITEs that TIMELY's segments would be instead of SENDs, and the AETH of READ responses. Where
//! payload goes is known without.

use thiserror::Error;

/// The UDP port (annex A17.4.1).
pub const PORT: u16 = 4791;
/// What stands for that port where a packet has only an IP protocol number: unassigned.
pub const PROTO: u8 = 252;
/// Bytes of the Base Transport Header: all of a data packet's.
pub const BTH: usize = 12;
/// Bytes of an acknowledgement without a bitmap.
pub const ACK: usize = BTH + 10;
/// Bytes of the longest header.
pub const LEN_MAX: usize = ACK + 8;

const SOLICITED: u8 = 0x80;
const BECN: u8 = 0x40;
const ACK_REQUEST: u8 = 0x80;
const ENDS: u8 = 1;
const GIVEN_UP: u8 = 2;
const BITMAP: u8 = 4;
const POSITIVE: u8 = 0x1f;
const NAK: u8 = 0x60;
const NO_CAUSE: i16 = i16::MIN;
/// Bits of queue pair and packet numbers.
pub const BITS: u32 = 24;

/// Why bytes are not such a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Fewer than the opcode needs.
    #[error("{have} bytes where the headers need {need}")]
    Short {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// An opcode that no transport here sends.
    #[error("opcode {0:#04x} is not known")]
    Opcode(u8),
    /// An acknowledgement that is neither positive nor a NAK of a sequence error.
    #[error("syndrome {0:#04x} is not known")]
    Syndrome(u8),
}

/// Which packet of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The first and the last.
    Only,
}

/// A packet with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// It answers a READ request; otherwise it is a SEND.
    pub answers: bool,
    /// Its place in the segment.
    pub part: Part,
    /// An acknowledgement is asked for.
    pub ack: bool,
    /// A message of the application ends with it.
    pub ends_message: bool,
    /// The queue pair ends with it.
    pub ends_queue_pair: bool,
    /// The message that ends with it is not whole: its sender has given it up.
    pub given_up: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The next packet is missing, and one behind it has come.
    pub nak: bool,
    /// The queue pair is over: everything has come; with `nak`, its reader has given it up.
    pub over: bool,
    /// It echoes a congestion mark.
    pub marked: bool,
    /// Messages received, modulo 2^24.
    pub messages: u32,
    /// The packet that caused it, relative to the first missing one.
    pub cause: Option<i16>,
    /// Nanoseconds from the arrival of that packet to the departure of this one.
    pub remote: u32,
    /// Bit n: packet `missing + 1 + n` has come.
    pub bitmap: Option<u64>,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data(Data),
    /// A request for so many packets.
    ReadRequest {
        /// Position of the first in the stream of packets.
        position: u64,
        /// How many.
        packets: u32,
    },
    /// An acknowledgement.
    Ack(Ack),
    /// A congestion notification.
    Cnp,
    /// A message that can be READ.
    Advert {
        /// Its id at the host that has it.
        message: u64,
        /// Its length, bytes; all ones if it never ends.
        len: u64,
        /// The queue pair ends with it.
        ends_queue_pair: bool,
        /// It is given up.
        given_up: bool,
    },
}

/// The headers as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The queue pair that it is for, 24 bits.
    pub queue_pair: u32,
    /// The packet number, 24 bits: of this packet; of the first that a request asks for; of the
    /// first that is missing for an acknowledgement; zero for a congestion notification.
    pub psn: u32,
    /// The packet type with its fields.
    pub kind: Kind,
}

/// Headers as on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl Bytes {
    /// Those in use.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
    }
}

impl Repr {
    /// Read headers; what follows them is ignored, and so are fields that mean nothing for the
    /// packet's type.
    ///
    /// # Errors
    /// Too few bytes, or an unknown opcode or syndrome.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        let [opcode, event, _, _, congestion, q0, q1, q2, asks, p0, p1, p2] =
            take(bytes, &mut rest)?;
        let queue_pair = u32::from_be_bytes([0, q0, q1, q2]);
        let psn = u32::from_be_bytes([0, p0, p1, p2]);
        let (ends_queue_pair, given_up) = (asks & ENDS != 0, asks & GIVEN_UP != 0);
        let kind = match opcode {
            0x0c => {
                let position = u64::from_be_bytes(take(bytes, &mut rest)?);
                let _key: [u8; 4] = take(bytes, &mut rest)?;
                let packets = u32::from_be_bytes(take(bytes, &mut rest)?);
                Kind::ReadRequest { position, packets }
            }
            0x11 => Kind::Ack(Ack::parse(bytes, &mut rest, congestion, asks)?),
            0x81 => {
                let _zero: [u8; 16] = take(bytes, &mut rest)?;
                Kind::Cnp
            }
            0xc0 => {
                let message = u64::from_be_bytes(take(bytes, &mut rest)?);
                let len = u64::from_be_bytes(take(bytes, &mut rest)?);
                Kind::Advert { message, len, ends_queue_pair, given_up }
            }
            opcode => {
                let (answers, part) = part(opcode).ok_or(Error::Opcode(opcode))?;
                let (ack, ends_message) = (asks & ACK_REQUEST != 0, event & SOLICITED != 0);
                Kind::Data(Data { answers, part, ack, ends_message, ends_queue_pair, given_up })
            }
        };
        // The packet that a positive acknowledgement names has come; the next is missing.
        let acked = matches!(kind, Kind::Ack(Ack { nak: false, .. }));
        let psn = if acked { psn.wrapping_add(1) & ((1 << BITS) - 1) } else { psn };
        Ok(Self { queue_pair, psn, kind })
    }

    /// These headers as on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let (mut event, mut congestion, mut asks, mut psn) = (0, 0, 0, self.psn);
        let opcode = match self.kind {
            Kind::Data(data) => {
                event = flag(data.ends_message, SOLICITED);
                asks = flag(data.ack, ACK_REQUEST)
                    | flag(data.ends_queue_pair, ENDS)
                    | flag(data.given_up, GIVEN_UP);
                opcode(data.answers, data.part)
            }
            Kind::ReadRequest { .. } => 0x0c,
            Kind::Ack(ack) => {
                congestion = flag(ack.marked, BECN);
                asks = flag(ack.over, ENDS) | flag(ack.bitmap.is_some(), BITMAP);
                psn = psn.wrapping_sub(u32::from(!ack.nak));
                0x11
            }
            Kind::Cnp => 0x81,
            Kind::Advert { ends_queue_pair, given_up, .. } => {
                asks = flag(ends_queue_pair, ENDS) | flag(given_up, GIVEN_UP);
                0xc0
            }
        };
        let [_, q0, q1, q2] = self.queue_pair.to_be_bytes();
        let [_, p0, p1, p2] = psn.to_be_bytes();
        let mut out = Bytes { bytes: [0; LEN_MAX], len: 0 };
        out.put([opcode, event, 0xff, 0xff, congestion, q0, q1, q2, asks, p0, p1, p2]);
        self.put_rest(&mut out);
        out
    }

    /// What comes after the Base Transport Header.
    fn put_rest(&self, out: &mut Bytes) {
        match self.kind {
            Kind::Data(_) => {}
            Kind::ReadRequest { position, packets } => {
                out.put(position.to_be_bytes());
                out.put([0; 4]);
                out.put(packets.to_be_bytes());
            }
            Kind::Ack(ack) => ack.put(out),
            Kind::Cnp => out.put([0; 16]),
            Kind::Advert { message, len, .. } => {
                out.put(message.to_be_bytes());
                out.put(len.to_be_bytes());
            }
        }
    }
}

impl Ack {
    fn parse(all: &[u8], rest: &mut &[u8], congestion: u8, asks: u8) -> Result<Self, Error> {
        let [syndrome, m0, m1, m2, cause @ .., r0, r1, r2, r3]: [u8; ACK - BTH] = take(all, rest)?;
        let nak = match syndrome {
            POSITIVE => false,
            NAK => true,
            other => return Err(Error::Syndrome(other)),
        };
        let cause = i16::from_be_bytes(cause);
        let has_bitmap = asks & BITMAP != 0;
        let bitmap = if has_bitmap { Some(u64::from_be_bytes(take(all, rest)?)) } else { None };
        Ok(Self {
            nak,
            over: asks & ENDS != 0,
            marked: congestion & BECN != 0,
            messages: u32::from_be_bytes([0, m0, m1, m2]),
            cause: (cause != NO_CAUSE).then_some(cause),
            remote: u32::from_be_bytes([r0, r1, r2, r3]),
            bitmap,
        })
    }

    fn put(&self, out: &mut Bytes) {
        let [_, m0, m1, m2] = self.messages.to_be_bytes();
        out.put([if self.nak { NAK } else { POSITIVE }, m0, m1, m2]);
        out.put(self.cause.unwrap_or(NO_CAUSE).to_be_bytes());
        out.put(self.remote.to_be_bytes());
        if let Some(bitmap) = self.bitmap {
            out.put(bitmap.to_be_bytes());
        }
    }
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn opcode(answers: bool, part: Part) -> u8 {
    match (answers, part) {
        (false, Part::First) => 0x00,
        (false, Part::Middle) => 0x01,
        (false, Part::Last) => 0x02,
        (false, Part::Only) => 0x04,
        (true, Part::First) => 0x0d,
        (true, Part::Middle) => 0x0e,
        (true, Part::Last) => 0x0f,
        (true, Part::Only) => 0x10,
    }
}

/// The inverse of [`opcode`].
fn part(opcode: u8) -> Option<(bool, Part)> {
    let answers = opcode >= 0x0d;
    let part = match opcode {
        0x00 | 0x0d => Part::First,
        0x01 | 0x0e => Part::Middle,
        0x02 | 0x0f => Part::Last,
        0x04 | 0x10 => Part::Only,
        _ => return None,
    };
    Some((answers, part))
}

/// The first `N` bytes of `rest`, which then begins after them; `all` is what the header is read
/// from.
fn take<const N: usize>(all: &[u8], rest: &mut &[u8]) -> Result<[u8; N], Error> {
    let used = all.len() - rest.len();
    let short = Error::Short { need: used + N, have: all.len() };
    let (first, after) = rest.split_first_chunk().ok_or(short)?;
    *rest = after;
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANY_ACK: Ack = Ack {
        nak: false,
        over: false,
        marked: true,
        messages: 3,
        cause: Some(-1),
        remote: 0x0102_0304,
        bitmap: None,
    };

    #[test]
    fn data_byte_for_byte() {
        let data = Data {
            answers: false,
            part: Part::Last,
            ack: true,
            ends_message: true,
            ends_queue_pair: true,
            given_up: false,
        };
        let repr = Repr { queue_pair: 0x0a_0b0c, psn: 0x01_0203, kind: Kind::Data(data) };
        let expected = [2, 0x80, 0xff, 0xff, 0, 0x0a, 0x0b, 0x0c, 0x81, 1, 2, 3];
        assert_eq!(repr.to_bytes().as_slice(), expected);
    }

    /// IBA 9.7.5.1.2: an ACK names the packet acknowledged, a NAK the one expected.
    #[test]
    fn an_acknowledgement_names_what_came_and_a_nak_what_did_not() {
        let repr = Repr { queue_pair: 1, psn: 0, kind: Kind::Ack(ANY_ACK) };
        #[rustfmt::skip]
        let expected = [
            0x11, 0, 0xff, 0xff, 0x40, 0, 0, 1, 0, 0xff, 0xff, 0xff,
            0x1f, 0, 0, 3, 0xff, 0xff, 1, 2, 3, 4,
        ];
        assert_eq!(repr.to_bytes().as_slice(), expected);
        assert_eq!(Repr::parse(&expected), Ok(repr), "also where numbers go round");
        let nak = Repr { kind: Kind::Ack(Ack { nak: true, ..ANY_ACK }), ..repr };
        assert_eq!(nak.to_bytes().as_slice()[9..13], [0, 0, 0, 0x60]);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert_eq!(Repr::parse(&[0; 11]), Err(Error::Short { need: 12, have: 11 }));
        assert_eq!(Repr::parse(&[3; 12]), Err(Error::Opcode(3)));
        let mut ack = [0; ACK];
        ack[0] = 0x11;
        assert_eq!(Repr::parse(&ack), Err(Error::Syndrome(0)));
        assert_eq!(Repr::parse(&ack[..21]), Err(Error::Short { need: 22, have: 21 }));
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let parts = [Part::First, Part::Middle, Part::Last, Part::Only];
        let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<i16>());
        let flags = any::<[bool; 5]>();
        (0..5, numbers, flags, 0..4usize).prop_map(move |(kind, (a, b, c, d), flags, at)| {
            let [f0, f1, f2, f3, f4] = flags;
            match kind {
                0 => Kind::Data(Data {
                    answers: f0,
                    part: parts[at],
                    ack: f1,
                    ends_message: f2,
                    ends_queue_pair: f3,
                    given_up: f4,
                }),
                1 => Kind::ReadRequest { position: a, packets: c },
                2 => Kind::Ack(Ack {
                    nak: f0,
                    over: f1,
                    marked: f2,
                    messages: c >> 8,
                    cause: Some(d).filter(|d| *d != NO_CAUSE),
                    remote: c,
                    bitmap: f3.then_some(a),
                }),
                3 => Kind::Cnp,
                _ => Kind::Advert { message: a, len: b, ends_queue_pair: f0, given_up: f1 },
            }
        })
    }

    proptest! {
        #[test]
        fn parse_undoes_to_bytes(queue_pair in 0..1u32 << BITS, psn in 0..1u32 << BITS, kind in any_kind()) {
            let repr = Repr { queue_pair, psn, kind };
            prop_assert_eq!(Repr::parse(repr.to_bytes().as_slice()), Ok(repr));
        }

        #[test]
        fn random_bytes_never_panic(first in 0..0xd0u8, bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [&[first][..], &bytes].concat();
            if let Ok(repr) = Repr::parse(&bytes) {
                prop_assert_eq!(Repr::parse(repr.to_bytes().as_slice()), Ok(repr));
            }
        }
    }
}
