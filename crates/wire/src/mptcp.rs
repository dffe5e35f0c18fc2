//! Multipath TCP: a TCP header ([`crate::tcp`]) with one option more, which every packet of a
//! connection carries (RFC 8684; the 20 bytes and the scatter bit: the reference code of MMPTCP,
//! specs/mptcp.md#1).
//!
//! ```text
//!  0       8       16      24      31
//! +-------+-------+-------+-------+
//! | 253   | 20    | 4d54          |   an experimental option, and which (RFC 6994)
//! +-------+-------+-------+-------+
//! |type|..SA| id  | token         |   type: MP_CAPABLE 0, MP_JOIN 1, DSS 2; S: scattered; A: DATA_ACK
//! +-------+-------+---------------+   id: which subflow; token: which connection
//! | token         | data sequence |   of the first byte of payload, or the next one that is
//! +---------------+               |   expected (DATA_ACK); zero in a handshake
//! | number, 64 bits               |
//! +               +---------------+
//! |               | data length   |   positions that the payload takes
//! +---------------+---------------+
//! ```
//!
//! RFC 8684 puts less into each packet: mappings may cover several segments, and the token goes
//! only with MP_JOIN. So this is not its option, kind 30, which programs know that read captures.

use thiserror::Error;

use crate::tcp::{self, TcpError};

/// Bytes of the option.
pub const OPTION_BYTES: usize = 20;
/// SACK blocks that fit beside the option.
pub const SACK_BLOCKS_MAX: usize = 2;

/// The kind of experimental options (RFC 4727), and which of them this is (RFC 6994, section 3; the
/// number is not registered).
const KIND: u8 = 253;
const EXPERIMENT: [u8; 2] = *b"MT";
/// The bits of the byte with the type, below it.
const ACK: u8 = 1;
const SCATTERED: u8 = 2;

/// What a packet says of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// SYN, or its answer, of the first subflow.
    Capable,
    /// That of another.
    Join,
    /// Where the payload belongs.
    Data {
        /// Its first data sequence number.
        dsn: u64,
        /// How many of them it takes.
        len: u16,
    },
    /// Everything before this data sequence number has come.
    DataAck(u64),
}

/// The option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Which connection of its pair of hosts.
    pub token: u32,
    /// Which of its subflows.
    pub subflow: u8,
    /// The segment takes a path of its own.
    pub scattered: bool,
    /// The rest.
    pub body: Body,
}

/// Why bytes are not a header of Multipath TCP.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MptcpError {
    /// Not a TCP header.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// A TCP header without the option, or with one of another length.
    #[error("no Multipath TCP option of {OPTION_BYTES} bytes")]
    NoOption,
    /// A type that is none of those used here.
    #[error("Multipath TCP option of type {0}, which is none of 0 to 2")]
    Type(u8),
}

impl Signal {
    /// Read the option of a TCP header.
    ///
    /// # Errors
    /// If `bytes` are no TCP header, or it has no such option.
    pub fn parse(bytes: &[u8]) -> Result<Self, MptcpError> {
        let header = tcp::Header::new_checked(bytes)?;
        let body = tcp::find_option(header.options(), KIND).ok_or(MptcpError::NoOption)?;
        let body = body.strip_prefix(&EXPERIMENT).ok_or(MptcpError::NoOption)?;
        let &[flags, subflow, a, b, c, d, ref rest @ ..] = body else {
            return Err(MptcpError::NoOption);
        };
        let &[n0, n1, n2, n3, n4, n5, n6, n7, l0, l1] = rest else {
            return Err(MptcpError::NoOption);
        };
        let number = u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        let body = match flags >> 4 {
            0 => Body::Capable,
            1 => Body::Join,
            2 if flags & ACK != 0 => Body::DataAck(number),
            2 => Body::Data { dsn: number, len: u16::from_be_bytes([l0, l1]) },
            other => return Err(MptcpError::Type(other)),
        };
        let (token, scattered) = (u32::from_be_bytes([a, b, c, d]), flags & SCATTERED != 0);
        Ok(Self { token, subflow, scattered, body })
    }

    /// Add the option to the TCP header at the front of `buf`. Returns the bytes of header then.
    ///
    /// # Errors
    /// If there is no TCP header, or no room in `buf` or among the options of the header.
    pub fn append(&self, buf: &mut [u8]) -> Result<usize, TcpError> {
        let (kind, number, len) = match self.body {
            Body::Capable => (0, 0, 0),
            Body::Join => (1, 0, 0),
            Body::Data { dsn, len } => (2, dsn, len),
            Body::DataAck(next) => (2, next, 0),
        };
        let ack = if matches!(self.body, Body::DataAck(_)) { ACK } else { 0 };
        let scattered = if self.scattered { SCATTERED } else { 0 };
        let mut option = [0; OPTION_BYTES];
        option[..2].copy_from_slice(&[KIND, OPTION_BYTES as u8]);
        option[2..4].copy_from_slice(&EXPERIMENT);
        option[4..6].copy_from_slice(&[kind << 4 | scattered | ack, self.subflow]);
        option[6..10].copy_from_slice(&self.token.to_be_bytes());
        option[10..18].copy_from_slice(&number.to_be_bytes());
        option[18..20].copy_from_slice(&len.to_be_bytes());
        tcp::append_option(buf, &option)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tcp::{Control, Repr, SackBlocks};

    const TCP: Repr = Repr {
        src_port: 0x8001,
        dst_port: 80,
        seq: 7,
        ack: 9,
        control: Control(0x18),
        window: 0xabcd,
        sack: SackBlocks::NONE,
        timestamps: None,
    };

    fn emit(tcp: &Repr, signal: &Signal) -> Result<Vec<u8>, TcpError> {
        let mut buf = [0xff; 64];
        tcp.emit(&mut buf)?;
        let len = signal.append(&mut buf)?;
        Ok(buf[..len].to_vec())
    }

    /// The bytes written out from the figure above.
    #[test]
    fn the_option_follows_those_of_tcp() {
        let body = Body::Data { dsn: 0x0102_0304_0506_0708, len: 1400 };
        let signal = Signal { token: 0xa1b2_c3d4, subflow: 5, scattered: true, body };
        let mut tcp = TCP;
        tcp.sack.push(0x10, 0x20);
        let bytes = emit(&tcp, &signal).unwrap();
        assert_eq!((bytes.len(), bytes[12]), (52, 0xd0));
        let option = [
            253, 20, 0x4d, 0x54, 0x22, 5, 0xa1, 0xb2, 0xc3, 0xd4, 1, 2, 3, 4, 5, 6, 7, 8, 0x05,
            0x78,
        ];
        assert_eq!(bytes[32..], option);
        assert_eq!(Signal::parse(&bytes), Ok(signal));
        assert_eq!(Repr::parse(&bytes), Ok(tcp), "TCP skips it");
    }

    #[test]
    fn what_is_no_option_is_none() {
        let signal = Signal { token: 1, subflow: 0, scattered: false, body: Body::Capable };
        let mut bytes = emit(&TCP, &signal).unwrap();
        assert_eq!(Signal::parse(&bytes[..20]), Err(TcpError::Short { need: 40, have: 20 }.into()));
        bytes[24] = 0x30;
        assert_eq!(Signal::parse(&bytes), Err(MptcpError::Type(3)));
        bytes[23] = 0;
        assert_eq!(Signal::parse(&bytes), Err(MptcpError::NoOption), "another experiment");
        bytes[21] = 19;
        assert_eq!(Signal::parse(&bytes), Err(MptcpError::NoOption));
        let mut plain = [0; 20];
        TCP.emit(&mut plain).unwrap();
        assert_eq!(Signal::parse(&plain), Err(MptcpError::NoOption));
        assert_eq!(
            signal.append(&mut plain),
            Err(TcpError::Short { need: 40, have: 20 }),
            "no room behind the header"
        );
    }

    /// RFC 9293: 40 bytes of options. Two SACK blocks take the 20 that this option leaves.
    #[test]
    fn two_sack_blocks_fit_beside_it() {
        let signal = Signal { token: 1, subflow: 0, scattered: false, body: Body::DataAck(9) };
        let mut tcp = TCP;
        for n in 0..=SACK_BLOCKS_MAX as u32 {
            assert!(emit(&tcp, &signal).is_ok());
            tcp.sack.push(2 * n + 1, 2 * n + 2);
        }
        assert_eq!(emit(&tcp, &signal), Err(TcpError::Options(48)));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Signal::parse(&bytes);
        }

        #[test]
        fn append_then_parse_is_identity(
            token in any::<u32>(), subflow in any::<u8>(), scattered in any::<bool>(),
            kind in 0..4, number in any::<u64>(), len in any::<u16>(),
        ) {
            let body = match kind {
                0 => Body::Capable,
                1 => Body::Join,
                2 => Body::Data { dsn: number, len },
                _ => Body::DataAck(number),
            };
            let signal = Signal { token, subflow, scattered, body };
            prop_assert_eq!(Signal::parse(&emit(&TCP, &signal).unwrap()), Ok(signal));
        }
    }
}
