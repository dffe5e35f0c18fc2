//! The two headers of the programmable transport pipeline (specs/nanotransport.md#3.2):
//! nano-NDP (IP protocol 155) and nano-Homa (154), 30 bytes each, so that Ethernet, IPv4 and the
//! header together are 64 bytes, one beat of the pipeline.
//!
//! | bytes | nano-NDP | nano-Homa |
//! |---|---|---|
//! | 1 | flags, see [`flags`] | the same |
//! | 2 + 2 | source and destination context (a port) | the same |
//! | 2 | message length, bytes | the same |
//! | 1 | index of the packet | the same; in ACK and GRANT the first packet that is missing (ackNo) |
//! | 2 | pull offset: packets below it may be sent | grant offset, likewise; in NACK the ackNo |
//! | 1 | - | priority that a GRANT assigns |
//! | 2 | the sender's number of the message | the same |
//! | 2 | pointer to the message's buffer at the sender | the same |
//! | 1 | size class of that buffer | the same |
//! | 15, 14 | zero | zero |
//!
//! All big-endian. What describes the message at its sender (its number, its buffer, the class of
//! that) travels in every packet and is echoed by the receiver: a sender looks nothing up to find
//! it.

use thiserror::Error;

/// Bytes of either header.
pub const LEN: usize = 30;

/// Payload bytes of a full packet.
pub const PAYLOAD: u16 = 1024;

/// Flag bits (the public P4 programs and the ns-3 model use the same).
pub mod flags {
    /// Carries payload, or did before it was chopped.
    pub const DATA: u8 = 0x01;
    /// Acknowledges: in nano-NDP one packet, in nano-Homa all below the ackNo.
    pub const ACK: u8 = 0x02;
    /// Reports one packet whose payload was chopped.
    pub const NACK: u8 = 0x04;
    /// nano-NDP's PULL, alone or on an ACK or NACK.
    pub const PULL: u8 = 0x08;
    /// nano-Homa's GRANT, the same bit.
    pub const GRANT: u8 = PULL;
    /// A switch has cut the payload off.
    pub const CHOP: u8 = 0x10;
}

/// Which of the two headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Pulls, acknowledgements of single packets.
    Ndp,
    /// Grants with a priority, cumulative acknowledgements.
    Homa,
}

impl Protocol {
    /// Its IP protocol number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Ndp => 155,
            Self::Homa => 154,
        }
    }

    /// The protocol with this number, if it is one of the two.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            155 => Some(Self::Ndp),
            154 => Some(Self::Homa),
            _ => None,
        }
    }

    /// Where the message's number begins: nano-Homa has a byte more before it.
    const fn tx_msg_id(self) -> usize {
        match self {
            Self::Ndp => 10,
            Self::Homa => 11,
        }
    }
}

/// Why bytes are not one of these headers.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Fewer than [`LEN`] bytes.
    #[error("a header of 30 bytes was expected, here are {0}")]
    Short(usize),
    /// The flags name no packet that the protocol has.
    #[error("flags {0:#04x} name no packet type")]
    Kind(u8),
}

/// A view of a header in someone's bytes. It reads fields and never judges them.
#[derive(Clone, Copy, Debug)]
pub struct Header<T> {
    protocol: Protocol,
    bytes: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `bytes` as a header of `protocol`.
    ///
    /// # Errors
    /// [`Error::Short`] if `bytes` cannot hold one. Afterwards no accessor panics.
    pub fn new(protocol: Protocol, bytes: T) -> Result<Self, Error> {
        let len = bytes.as_ref().len();
        if len < LEN { Err(Error::Short(len)) } else { Ok(Self { protocol, bytes }) }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.as_ref()[at]
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// The flags, see [`flags`].
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.byte(0)
    }

    /// The context that sent the packet.
    #[must_use]
    pub fn src_context(&self) -> u16 {
        self.word(1)
    }

    /// The context that it is for.
    #[must_use]
    pub fn dst_context(&self) -> u16 {
        self.word(3)
    }

    /// Bytes of the message.
    #[must_use]
    pub fn msg_len(&self) -> u16 {
        self.word(5)
    }

    /// Index of the packet, or the ackNo.
    #[must_use]
    pub fn pkt_offset(&self) -> u8 {
        self.byte(7)
    }

    /// Pull offset or grant offset; the ackNo in nano-Homa's NACK.
    #[must_use]
    pub fn credit(&self) -> u16 {
        self.word(8)
    }

    /// The priority that a GRANT assigns; zero in nano-NDP, which has none.
    #[must_use]
    pub fn grant_prio(&self) -> u8 {
        match self.protocol {
            Protocol::Ndp => 0,
            Protocol::Homa => self.byte(10),
        }
    }

    /// The sender's number of the message.
    #[must_use]
    pub fn tx_msg_id(&self) -> u16 {
        self.word(self.protocol.tx_msg_id())
    }

    /// Where the sender has the message.
    #[must_use]
    pub fn buf_ptr(&self) -> u16 {
        self.word(self.protocol.tx_msg_id() + 2)
    }

    /// The size class of that buffer.
    #[must_use]
    pub fn buf_size_class(&self) -> u8 {
        self.byte(self.protocol.tx_msg_id() + 4)
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload, or a header that has lost it. CHOP without DATA, as the ns-3 model writes it, is
    /// read as a chopped packet, too.
    Data {
        /// The payload has been cut off.
        chopped: bool,
    },
    /// Packets have arrived.
    Ack {
        /// The packet is a PULL as well (nano-NDP only).
        pull: bool,
    },
    /// A packet has arrived without its payload.
    Nack {
        /// The packet is a PULL as well (nano-NDP only).
        pull: bool,
    },
    /// A PULL or GRANT alone.
    Credit,
}

impl Kind {
    /// What `bits` say in `protocol`.
    ///
    /// # Errors
    /// [`Error::Kind`] if they name no packet type.
    pub const fn from_flags(protocol: Protocol, bits: u8) -> Result<Self, Error> {
        const CHOPPED: u8 = flags::DATA | flags::CHOP;
        const ACK_PULL: u8 = flags::ACK | flags::PULL;
        const NACK_PULL: u8 = flags::NACK | flags::PULL;
        Ok(match (bits, protocol) {
            (flags::DATA, _) => Self::Data { chopped: false },
            (flags::CHOP | CHOPPED, _) => Self::Data { chopped: true },
            (flags::ACK, _) => Self::Ack { pull: false },
            (flags::NACK, _) => Self::Nack { pull: false },
            (flags::PULL, _) => Self::Credit,
            (ACK_PULL, Protocol::Ndp) => Self::Ack { pull: true },
            (NACK_PULL, Protocol::Ndp) => Self::Nack { pull: true },
            _ => return Err(Error::Kind(bits)),
        })
    }

    /// The flags of such a packet.
    #[must_use]
    pub const fn flags(self) -> u8 {
        match self {
            Self::Data { chopped: false } => flags::DATA,
            Self::Data { chopped: true } => flags::DATA | flags::CHOP,
            Self::Ack { pull: false } => flags::ACK,
            Self::Ack { pull: true } => flags::ACK | flags::PULL,
            Self::Nack { pull: false } => flags::NACK,
            Self::Nack { pull: true } => flags::NACK | flags::PULL,
            Self::Credit => flags::PULL,
        }
    }
}

/// A header as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The packet type.
    pub kind: Kind,
    /// The context that sends.
    pub src_context: u16,
    /// The context that it is for.
    pub dst_context: u16,
    /// Bytes of the message.
    pub msg_len: u16,
    /// Index of the packet, or the ackNo.
    pub pkt_offset: u8,
    /// Pull offset or grant offset; the ackNo in nano-Homa's NACK.
    pub credit: u16,
    /// The priority that a GRANT assigns. nano-NDP does not carry it.
    pub grant_prio: u8,
    /// The data sender's number of the message.
    pub tx_msg_id: u16,
    /// Where the data sender has the message.
    pub buf_ptr: u16,
    /// The size class of that buffer.
    pub buf_size_class: u8,
}

impl Repr {
    /// Read a header.
    ///
    /// # Errors
    /// [`Error::Kind`] if the flags name no packet that the protocol has.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self {
            kind: Kind::from_flags(header.protocol, header.flags())?,
            src_context: header.src_context(),
            dst_context: header.dst_context(),
            msg_len: header.msg_len(),
            pkt_offset: header.pkt_offset(),
            credit: header.credit(),
            grant_prio: header.grant_prio(),
            tx_msg_id: header.tx_msg_id(),
            buf_ptr: header.buf_ptr(),
            buf_size_class: header.buf_size_class(),
        })
    }

    /// This header as on the wire.
    #[must_use]
    pub fn to_bytes(&self, protocol: Protocol) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut put = |at: usize, value: u16| {
            bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        };
        put(1, self.src_context);
        put(3, self.dst_context);
        put(5, self.msg_len);
        put(8, self.credit);
        let id = protocol.tx_msg_id();
        put(id, self.tx_msg_id);
        put(id + 2, self.buf_ptr);
        bytes[id + 4] = self.buf_size_class;
        bytes[0] = self.kind.flags();
        bytes[7] = self.pkt_offset;
        if protocol == Protocol::Homa {
            bytes[10] = self.grant_prio;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRANT: Repr = Repr {
        kind: Kind::Credit,
        src_context: 0x0102,
        dst_context: 0x0304,
        msg_len: 0x0506,
        pkt_offset: 7,
        credit: 0x0809,
        grant_prio: 10,
        tx_msg_id: 0x0b0c,
        buf_ptr: 0x0d0e,
        buf_size_class: 15,
    };

    /// The order of the fields in specs/nanotransport.md#3.2, each byte another number.
    #[test]
    fn the_layouts_of_the_specification() {
        let homa = GRANT.to_bytes(Protocol::Homa);
        assert_eq!(homa[..16], [8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(homa[16..], [0; 14]);
        let ndp = GRANT.to_bytes(Protocol::Ndp);
        assert_eq!(ndp[..15], [8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]);
        assert_eq!(ndp[15..], [0; 15]);
    }

    #[test]
    fn only_nano_ndp_joins_a_pull_to_an_acknowledgement() {
        let bits = flags::ACK | flags::PULL;
        assert_eq!(Kind::from_flags(Protocol::Ndp, bits), Ok(Kind::Ack { pull: true }));
        assert_eq!(Kind::from_flags(Protocol::Homa, bits), Err(Error::Kind(0x0a)));
        // RESEND, BUSY and BOGUS of the ns-3 model, nothing, and contradictions.
        for bits in [0x20, 0x40, 0x80, 0, flags::DATA | flags::ACK, flags::ACK | flags::NACK] {
            assert_eq!(Kind::from_flags(Protocol::Ndp, bits), Err(Error::Kind(bits)));
        }
    }

    #[test]
    fn protocol_numbers_read_back() {
        for protocol in [Protocol::Ndp, Protocol::Homa] {
            assert_eq!(Protocol::of(protocol.number()), Some(protocol));
        }
        assert_eq!(Protocol::of(17), None);
        assert_eq!(Header::new(Protocol::Ndp, [0; LEN - 1]).unwrap_err(), Error::Short(29));
    }

    fn any_protocol() -> impl Strategy<Value = Protocol> {
        prop_oneof![Just(Protocol::Ndp), Just(Protocol::Homa)]
    }

    fn parsed(protocol: Protocol, bytes: &[u8]) -> Result<Repr, Error> {
        Repr::parse(&Header::new(protocol, bytes)?)
    }

    proptest! {
        /// Any 30 bytes that parse are written again as they were, but for the padding and for a
        /// CHOP without its DATA.
        #[test]
        fn emit_undoes_parse(protocol in any_protocol(), bits in 0..32u8, mut bytes: [u8; LEN]) {
            bytes[0] = bits;
            if let Ok(repr) = parsed(protocol, &bytes) {
                let again = repr.to_bytes(protocol);
                let used = protocol.tx_msg_id() + 5;
                prop_assert_eq!(&again[1..used], &bytes[1..used]);
                prop_assert!(again[0] == bits || bits == flags::CHOP);
                prop_assert_eq!(parsed(protocol, &again), Ok(repr));
            }
        }

        #[test]
        fn no_bytes_panic(protocol in any_protocol(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parsed(protocol, &bytes);
        }
    }
}
