//! The NDP header: the 20 bytes that the authors' DPDK host puts after IPv4 (protocol 199, public
//! code `nets-cs-pub-ro/NDP`), and one word of our own after them.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 2 | flags, see [`flags`] |
//! | 2 | 2 | checksum; emitted as zero ("not computed"), never judged |
//! | 4 | 4 | source port |
//! | 8 | 4 | destination port |
//! | 12 | 4 | DATA, ACK, NACK: sequence number. PULL: pull number |
//! | 16 | 4 | DATA: pacer echo. ACK, NACK: pull number. PULL: pacer number |
//! | 20 | 4 | extension. DATA: priority (8 bits), zero (8), payload length (16). Otherwise: cumulative ACK |
//!
//! All big-endian. Where this differs from the DPDK host, or makes its use precise:
//!
//! * One connection carries one message, and the two ports are the two halves of the message id:
//!   `connection = source port << 32 | destination port`. Packets in both directions carry the
//!   ports of the data sender, unswapped.
//! * The sequence number is the packet's index in its message, from zero, so it is also the
//!   "offset in the first window" that SYN packets must carry.
//! * `FIN` is the paper's LAST: here the sender runs out of data. [`flags::RTX`] is our choice of
//!   a free bit. There is no receive window in an ACK: its word holds the pull number that belongs
//!   to the PULL bit.
//! * The payload length names the length before trimming, so a chopped header says what is missing.

use thiserror::Error;

/// IP protocol number of NDP (DPDK host).
pub const PROTOCOL: u8 = 199;

/// Bytes of the header.
pub const LEN: usize = 24;

/// Flag bits (DPDK host, except `RTX`).
pub mod flags {
    /// Carries payload, or did before it was chopped.
    pub const DATA: u16 = 0x001;
    /// Acknowledges one DATA packet.
    pub const ACK: u16 = 0x002;
    /// Asks for packets up to a pull number. Alone, or on an ACK or NACK.
    pub const PULL: u16 = 0x004;
    /// Reports one DATA packet whose payload was chopped.
    pub const NACK: u16 = 0x008;
    /// Keeps an idle connection known.
    pub const KEEPALIVE: u16 = 0x010;
    /// The pacer echo of a DATA packet is valid.
    pub const PACER_VALID: u16 = 0x020;
    /// LAST: the sender ran out of data with this packet.
    pub const FIN: u16 = 0x040;
    /// A switch has cut the payload off.
    pub const CHOPPED: u16 = 0x080;
    /// Belongs to the first window: may create the receiver's state.
    pub const SYN: u16 = 0x100;
    /// Sent before. Not in the DPDK host, which leaves this bit free.
    pub const RTX: u16 = 0x200;
}

/// Why bytes are not an NDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// Fewer than [`LEN`] bytes.
    #[error("an NDP header has {LEN} bytes, here are {0}")]
    Short(usize),
    /// None, or more than one, of DATA, ACK, NACK, KEEPALIVE; or PULL on something other than an
    /// ACK or NACK.
    #[error("flags {0:#06x} name no NDP packet type")]
    Kind(u16),
}

/// A view of an NDP header in someone's bytes. It reads and writes fields and never judges them.
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(T);

mod field {
    use std::ops::Range;

    pub(super) const FLAGS: Range<usize> = 0..2;
    pub(super) const CHECKSUM: Range<usize> = 2..4;
    pub(super) const CONNECTION: Range<usize> = 4..12;
    pub(super) const NUMBER: Range<usize> = 12..16;
    pub(super) const WORD: Range<usize> = 16..20;
    pub(super) const EXTENSION: Range<usize> = 20..24;
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `bytes`.
    ///
    /// # Errors
    /// [`Error::Short`] if `bytes` cannot hold a header. Afterwards no accessor panics.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let len = bytes.as_ref().len();
        if len < LEN { Err(Error::Short(len)) } else { Ok(Self(bytes)) }
    }

    fn get<const N: usize>(&self, at: std::ops::Range<usize>) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0.as_ref()[at]);
        out
    }

    /// What the flags say this packet is.
    ///
    /// # Errors
    /// [`Error::Kind`] if they name no packet type.
    #[inline]
    pub fn packet_type(&self) -> Result<Type, Error> {
        const TYPES: u16 = flags::DATA | flags::ACK | flags::NACK | flags::KEEPALIVE;
        let bits = self.flags();
        match (bits & TYPES, bits & flags::PULL != 0) {
            (flags::DATA, false) => Ok(Type::Data),
            (flags::ACK, _) => Ok(Type::Ack),
            (flags::NACK, _) => Ok(Type::Nack),
            (0, true) => Ok(Type::Pull),
            (flags::KEEPALIVE, false) => Ok(Type::Keepalive),
            _ => Err(Error::Kind(bits)),
        }
    }

    /// The flags, see [`flags`].
    #[must_use]
    pub fn flags(&self) -> u16 {
        u16::from_be_bytes(self.get(field::FLAGS))
    }

    /// The checksum; zero means "not computed".
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes(self.get(field::CHECKSUM))
    }

    /// Source port (high half) and destination port: the message id.
    #[must_use]
    pub fn connection(&self) -> u64 {
        u64::from_be_bytes(self.get(field::CONNECTION))
    }

    /// Sequence number or pull number.
    #[must_use]
    pub fn number(&self) -> u32 {
        u32::from_be_bytes(self.get(field::NUMBER))
    }

    /// Pacer echo, pull number or pacer number.
    #[must_use]
    pub fn word(&self) -> u32 {
        u32::from_be_bytes(self.get(field::WORD))
    }

    /// The extension word.
    #[must_use]
    pub fn extension(&self) -> u32 {
        u32::from_be_bytes(self.get(field::EXTENSION))
    }
}

/// A header from its fields. The checksum is zero.
#[inline]
fn header(flags: u16, connection: u64, number: u32, word: u32, extension: u32) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[field::FLAGS].copy_from_slice(&flags.to_be_bytes());
    bytes[field::CONNECTION].copy_from_slice(&connection.to_be_bytes());
    bytes[field::NUMBER].copy_from_slice(&number.to_be_bytes());
    bytes[field::WORD].copy_from_slice(&word.to_be_bytes());
    bytes[field::EXTENSION].copy_from_slice(&extension.to_be_bytes());
    bytes
}

/// The type of a packet, without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Payload, or a header that has lost it.
    Data,
    /// A DATA packet has arrived whole.
    Ack,
    /// A DATA packet has arrived without its payload.
    Nack,
    /// The receiver asks for packets.
    Pull,
    /// Nothing but a sign of life.
    Keepalive,
}

/// The fields of a DATA packet, whole or chopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Index of the packet in its message, modulo 2^32.
    pub seq: u32,
    /// Belongs to the first window.
    pub syn: bool,
    /// The message ends with this packet.
    pub last: bool,
    /// Sent before.
    pub retransmission: bool,
    /// The payload has been cut off.
    pub chopped: bool,
    /// Application priority, zero the most urgent.
    pub prio: u8,
    /// Payload bytes before any trimming.
    pub len: u16,
    /// The pacer number of the PULL that caused this packet.
    pub pacer_echo: Option<u32>,
}

/// The fields of an ACK or a NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The DATA packet that is answered.
    pub seq: u32,
    /// Every packet below this index has been received.
    pub cumulative: u32,
    /// The PULL bit and its pull number.
    pub pull: Option<u32>,
}

impl Data {
    /// The fields of a packet whose type is [`Type::Data`].
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
        let bits = header.flags();
        let [prio, _, hi, lo] = header.extension().to_be_bytes();
        Self {
            seq: header.number(),
            syn: bits & flags::SYN != 0,
            last: bits & flags::FIN != 0,
            retransmission: bits & flags::RTX != 0,
            chopped: bits & flags::CHOPPED != 0,
            prio,
            len: u16::from_be_bytes([hi, lo]),
            pacer_echo: (bits & flags::PACER_VALID != 0).then(|| header.word()),
        }
    }

    #[inline]
    fn to_bytes(self, connection: u64) -> [u8; LEN] {
        let bits = flags::DATA
            | bit(self.syn, flags::SYN)
            | bit(self.last, flags::FIN)
            | bit(self.retransmission, flags::RTX)
            | bit(self.chopped, flags::CHOPPED)
            | bit(self.pacer_echo.is_some(), flags::PACER_VALID);
        let extension = u32::from(self.prio) << 24 | u32::from(self.len);
        header(bits, connection, self.seq, self.pacer_echo.unwrap_or(0), extension)
    }
}

impl Feedback {
    /// The fields of a packet whose type is [`Type::Ack`] or [`Type::Nack`].
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
        Self {
            seq: header.number(),
            cumulative: header.extension(),
            pull: (header.flags() & flags::PULL != 0).then(|| header.word()),
        }
    }

    #[inline]
    fn to_bytes(self, kind: u16, connection: u64) -> [u8; LEN] {
        let bits = kind | bit(self.pull.is_some(), flags::PULL);
        header(bits, connection, self.seq, self.pull.unwrap_or(0), self.cumulative)
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload, or a header that has lost it.
    Data(Data),
    /// A DATA packet has arrived whole.
    Ack(Feedback),
    /// A DATA packet has arrived without its payload.
    Nack(Feedback),
    /// The receiver asks for packets.
    Pull {
        /// How many pulls this connection has been given so far, modulo 2^32.
        pull: u32,
        /// How many PULL packets this receiver has sent to anyone, modulo 2^32.
        pacer: u32,
        /// Every packet below this index has been received.
        cumulative: u32,
    },
    /// Nothing but a sign of life.
    Keepalive,
}

/// An NDP header as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The message id of the data sender.
    pub connection: u64,
    /// The packet type with its fields.
    pub kind: Kind,
}

const fn bit(set: bool, flag: u16) -> u16 {
    if set { flag } else { 0 }
}

impl Repr {
    /// Read a header. Bits that mean nothing for the packet's type are ignored.
    ///
    /// # Errors
    /// [`Error::Kind`] if the flags name no packet type.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        let kind = match header.packet_type()? {
            Type::Data => Kind::Data(Data::parse(header)),
            Type::Ack => Kind::Ack(Feedback::parse(header)),
            Type::Nack => Kind::Nack(Feedback::parse(header)),
            Type::Pull => Kind::Pull {
                pull: header.number(),
                pacer: header.word(),
                cumulative: header.extension(),
            },
            Type::Keepalive => Kind::Keepalive,
        };
        Ok(Self { connection: header.connection(), kind })
    }

    /// Write this header.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, header: &mut Header<T>) {
        header.0.as_mut()[..LEN].copy_from_slice(&self.to_bytes());
    }

    /// This header as on the wire.
    #[inline]
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let id = self.connection;
        match self.kind {
            Kind::Data(data) => data.to_bytes(id),
            Kind::Ack(feedback) => feedback.to_bytes(flags::ACK, id),
            Kind::Nack(feedback) => feedback.to_bytes(flags::NACK, id),
            Kind::Pull { pull, pacer, cumulative } => {
                header(flags::PULL, id, pull, pacer, cumulative)
            }
            Kind::Keepalive => header(flags::KEEPALIVE, id, 0, 0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(repr: Repr) -> [u8; LEN] {
        let mut bytes = [0xff; LEN];
        repr.emit(&mut Header::new(&mut bytes).unwrap());
        assert_eq!(bytes, repr.to_bytes());
        bytes
    }

    fn parsed(bytes: &[u8]) -> Result<Repr, Error> {
        Repr::parse(&Header::new(bytes)?)
    }

    const DATA: Data = Data {
        seq: 0x0102_0304,
        syn: true,
        last: false,
        retransmission: false,
        chopped: false,
        prio: 7,
        len: 9000,
        pacer_echo: None,
    };

    #[test]
    fn data_has_the_layout_of_the_dpdk_host() {
        let bytes = emitted(Repr { connection: 0xa1a2_a3a4_b1b2_b3b4, kind: Kind::Data(DATA) });
        #[rustfmt::skip]
        let expected = [
            0x01, 0x01, 0, 0,           // SYN | DATA, no checksum
            0xa1, 0xa2, 0xa3, 0xa4,     // source port: high half of the message id
            0xb1, 0xb2, 0xb3, 0xb4,     // destination port: low half
            1, 2, 3, 4,                 // sequence number
            0, 0, 0, 0,                 // no pacer echo
            7, 0, 0x23, 0x28,           // priority 7, 9000 B
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_chopped_header_still_says_what_is_missing() {
        let mut bytes = emitted(Repr { connection: 5, kind: Kind::Data(DATA) });
        bytes[1] |= flags::CHOPPED as u8;
        let chopped = Data { chopped: true, ..DATA };
        assert_eq!(parsed(&bytes), Ok(Repr { connection: 5, kind: Kind::Data(chopped) }));
        assert_eq!(parsed(&bytes[..LEN - 1]), Err(Error::Short(LEN - 1)));
    }

    #[test]
    fn contradicting_types_are_refused() {
        for bits in [
            0,
            flags::DATA | flags::ACK,
            flags::DATA | flags::PULL,
            flags::ACK | flags::NACK,
            flags::KEEPALIVE | flags::PULL,
        ] {
            let mut bytes = [0; LEN];
            bytes[..2].copy_from_slice(&bits.to_be_bytes());
            assert_eq!(parsed(&bytes), Err(Error::Kind(bits)));
        }
    }

    fn any_data() -> impl Strategy<Value = Kind> {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        (any::<u32>(), flags, any::<u8>(), any::<u16>(), any::<Option<u32>>()).prop_map(
            |(seq, (syn, last, retransmission, chopped), prio, len, pacer_echo)| {
                Kind::Data(Data { seq, syn, last, retransmission, chopped, prio, len, pacer_echo })
            },
        )
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let feedback = (any::<u32>(), any::<u32>(), any::<Option<u32>>())
            .prop_map(|(seq, cumulative, pull)| Feedback { seq, cumulative, pull });
        prop_oneof![
            any_data(),
            feedback.clone().prop_map(Kind::Ack),
            feedback.prop_map(Kind::Nack),
            (any::<u32>(), any::<u32>(), any::<u32>())
                .prop_map(|(pull, pacer, cumulative)| Kind::Pull { pull, pacer, cumulative }),
            Just(Kind::Keepalive),
        ]
    }

    proptest! {
        #[test]
        fn parse_undoes_emit(connection: u64, kind in any_kind()) {
            let repr = Repr { connection, kind };
            prop_assert_eq!(parsed(&emitted(repr)), Ok(repr));
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
            // What parses means the same after emitting it again.
            if let Ok(repr) = parsed(&bytes) {
                prop_assert_eq!(parsed(&emitted(repr)), Ok(repr));
            }
        }
    }
}
