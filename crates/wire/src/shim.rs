//! The header between UDP and the transport header where two Trimline hosts talk over sockets.
//!
//! In a simulator the first cache line of a packet travels beside the transport header: addresses,
//! class, marks, and which bytes of which message it is about. On a real network this header
//! carries it. It belongs to the environment: transports never see it.
//!
//! All integers are big-endian. The transport header and the payload follow; the datagram ends
//! with the payload.
//!
//! ```text
//!  0  magic "TRML"                         4
//!  4  version 1 | proto | class | flags    4 x 1
//!  8  source host                          4
//! 12  destination host                     4
//! 16  path                                 4
//! 20  wire_len                             2
//! 22  hdr_len (at most 64)                 1
//! 23  reserved, zero                       1
//! 24  message id                           8
//! 32  offset of the payload in the message 8
//! 40  span length                          4
//! 44  payload_len                          2
//! 46  reserved, zero                       2
//! 48  transport header, payload
//! ```

use std::ops::Range;

use thiserror::Error;
use units::{HostId, MsgId};

/// Bytes of this header.
pub const SHIM_LEN: usize = 48;
/// The most bytes of transport header that may follow.
pub const MAX_HEADER: usize = 64;

const MAGIC: [u8; 4] = *b"TRML";
const VERSION: u8 = 1;

mod field {
    use super::Range;
    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const VERSION: usize = 4;
    pub(super) const PROTO: usize = 5;
    pub(super) const CLASS: usize = 6;
    pub(super) const FLAGS: usize = 7;
    pub(super) const SRC: Range<usize> = 8..12;
    pub(super) const DST: Range<usize> = 12..16;
    pub(super) const PATH: Range<usize> = 16..20;
    pub(super) const WIRE_LEN: Range<usize> = 20..22;
    pub(super) const HDR_LEN: usize = 22;
    pub(super) const RESERVED_1: Range<usize> = 23..24;
    pub(super) const MSG: Range<usize> = 24..32;
    pub(super) const OFFSET: Range<usize> = 32..40;
    pub(super) const SPAN_LEN: Range<usize> = 40..44;
    pub(super) const PAYLOAD_LEN: Range<usize> = 44..46;
    pub(super) const RESERVED_2: Range<usize> = 46..48;
}

/// Why a datagram cannot be built or read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ShimError {
    /// Fewer bytes than needed.
    #[error("{have} bytes where {need} are needed")]
    Short {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Something else than a Trimline datagram.
    #[error("does not begin with TRML")]
    Magic,
    /// Written by another version.
    #[error("version {0}, this is version 1")]
    Version(u8),
    /// A reserved byte is not zero.
    #[error("reserved bytes are not zero")]
    Reserved,
    /// More transport header than a packet can hold.
    #[error("transport header of {0} bytes, at most 64 fit")]
    HeaderTooLong(usize),
    /// Lengths that contradict one another.
    #[error("payload of {payload} bytes for a span of {span}")]
    PayloadBeyondSpan {
        /// Payload bytes.
        payload: usize,
        /// Bytes of the message that the packet names.
        span: u32,
    },
    /// The message does not end below 2^64.
    #[error("span ends beyond 2^64")]
    OffsetOverflow,
    /// Bytes after the payload.
    #[error("{0} bytes after the payload")]
    Trailing(usize),
}

/// The legal contents of the header. Field meanings are those of `endpoint::Packet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShimRepr {
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Transport protocol.
    pub proto: u8,
    /// Path index or entropy.
    pub path: u32,
    /// Traffic class.
    pub class: u8,
    /// Trimmed, bounced, ECN and control flags.
    pub flags: u8,
    /// Bytes that the packet has on a simulated wire.
    pub wire_len: u16,
    /// The message.
    pub msg: MsgId,
    /// Position of the payload in the message.
    pub offset: u64,
    /// Bytes of the message that the packet is about, also where it carries no payload.
    pub span_len: u32,
}

impl ShimRepr {
    /// Write this header, `hdr`, and room for `payload_len` bytes into `buf`. Returns the bytes
    /// of the datagram; its last `payload_len` are the caller's to fill.
    ///
    /// # Errors
    /// The lengths are not legal, or `buf` is too small. `buf` is then unchanged.
    pub fn emit(&self, hdr: &[u8], payload_len: u16, buf: &mut [u8]) -> Result<usize, ShimError> {
        check_span(self.offset, self.span_len, usize::from(payload_len))?;
        let hdr_len = match u8::try_from(hdr.len()) {
            Ok(len) if usize::from(len) <= MAX_HEADER => len,
            _ => return Err(ShimError::HeaderTooLong(hdr.len())),
        };
        let need = SHIM_LEN + hdr.len() + usize::from(payload_len);
        let have = buf.len();
        let out = buf.get_mut(..need).ok_or(ShimError::Short { need, have })?;
        out[field::MAGIC].copy_from_slice(&MAGIC);
        out[field::VERSION] = VERSION;
        out[field::PROTO] = self.proto;
        out[field::CLASS] = self.class;
        out[field::FLAGS] = self.flags;
        out[field::SRC].copy_from_slice(&self.src.0.to_be_bytes());
        out[field::DST].copy_from_slice(&self.dst.0.to_be_bytes());
        out[field::PATH].copy_from_slice(&self.path.to_be_bytes());
        out[field::WIRE_LEN].copy_from_slice(&self.wire_len.to_be_bytes());
        out[field::HDR_LEN] = hdr_len;
        out[field::RESERVED_1].fill(0);
        out[field::MSG].copy_from_slice(&self.msg.0.to_be_bytes());
        out[field::OFFSET].copy_from_slice(&self.offset.to_be_bytes());
        out[field::SPAN_LEN].copy_from_slice(&self.span_len.to_be_bytes());
        out[field::PAYLOAD_LEN].copy_from_slice(&payload_len.to_be_bytes());
        out[field::RESERVED_2].fill(0);
        out[SHIM_LEN..SHIM_LEN + hdr.len()].copy_from_slice(hdr);
        Ok(need)
    }

    /// The contents of `datagram`.
    #[must_use]
    pub fn parse(datagram: &Datagram<'_>) -> Self {
        let bytes = datagram.0;
        Self {
            src: HostId(get_u32(bytes, field::SRC)),
            dst: HostId(get_u32(bytes, field::DST)),
            proto: bytes[field::PROTO],
            path: get_u32(bytes, field::PATH),
            class: bytes[field::CLASS],
            flags: bytes[field::FLAGS],
            wire_len: get_u16(bytes, field::WIRE_LEN),
            msg: MsgId(get_u64(bytes, field::MSG)),
            offset: get_u64(bytes, field::OFFSET),
            span_len: get_u32(bytes, field::SPAN_LEN),
        }
    }
}

/// A view over a whole datagram whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a>(&'a [u8]);

impl<'a> Datagram<'a> {
    /// A view over `bytes`, if they are exactly one datagram of this version. No accessor panics
    /// on it.
    ///
    /// # Errors
    /// Anything that [`ShimRepr::emit`] never writes.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, ShimError> {
        let have = bytes.len();
        if have < SHIM_LEN {
            return Err(ShimError::Short { need: SHIM_LEN, have });
        }
        if bytes[field::MAGIC] != MAGIC {
            return Err(ShimError::Magic);
        }
        if bytes[field::VERSION] != VERSION {
            return Err(ShimError::Version(bytes[field::VERSION]));
        }
        if bytes[field::RESERVED_1] != [0] || bytes[field::RESERVED_2] != [0, 0] {
            return Err(ShimError::Reserved);
        }
        let hdr_len = usize::from(bytes[field::HDR_LEN]);
        if hdr_len > MAX_HEADER {
            return Err(ShimError::HeaderTooLong(hdr_len));
        }
        let payload = usize::from(get_u16(bytes, field::PAYLOAD_LEN));
        check_span(get_u64(bytes, field::OFFSET), get_u32(bytes, field::SPAN_LEN), payload)?;
        let need = SHIM_LEN + hdr_len + payload;
        match have.checked_sub(need) {
            None => Err(ShimError::Short { need, have }),
            Some(0) => Ok(Self(bytes)),
            Some(rest) => Err(ShimError::Trailing(rest)),
        }
    }

    /// The transport header.
    #[must_use]
    pub fn header(&self) -> &'a [u8] {
        &self.0[SHIM_LEN..self.payload_start()]
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.payload_start()..]
    }

    fn payload_start(&self) -> usize {
        SHIM_LEN + usize::from(self.0[field::HDR_LEN])
    }
}

fn check_span(offset: u64, span: u32, payload: usize) -> Result<(), ShimError> {
    if payload > span as usize {
        return Err(ShimError::PayloadBeyondSpan { payload, span });
    }
    match offset.checked_add(u64::from(span)) {
        Some(_) => Ok(()),
        None => Err(ShimError::OffsetOverflow),
    }
}

// The ranges of `field` have the length of the integer, inside `SHIM_LEN` checked bytes.
fn array<const N: usize>(bytes: &[u8], range: Range<usize>) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[range]);
    out
}

fn get_u16(bytes: &[u8], range: Range<usize>) -> u16 {
    u16::from_be_bytes(array(bytes, range))
}

fn get_u32(bytes: &[u8], range: Range<usize>) -> u32 {
    u32::from_be_bytes(array(bytes, range))
}

fn get_u64(bytes: &[u8], range: Range<usize>) -> u64 {
    u64::from_be_bytes(array(bytes, range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATA: ShimRepr = ShimRepr {
        src: HostId(1),
        dst: HostId(0x0203),
        proto: 199,
        path: 7,
        class: 1,
        flags: 4,
        wire_len: 9064,
        msg: MsgId(0x0a0b),
        offset: 18_000,
        span_len: 3,
    };

    #[test]
    fn a_datagram_byte_for_byte() {
        let mut buf = [0xff; 64];
        assert_eq!(DATA.emit(b"hd", 3, &mut buf), Ok(53));
        buf[50..53].copy_from_slice(b"pay");
        let expected = *b"TRML\x01\xc7\x01\x04\0\0\0\x01\0\0\x02\x03\0\0\0\x07\x23\x68\x02\0\
            \0\0\0\0\0\0\x0a\x0b\0\0\0\0\0\0\x46\x50\0\0\0\x03\0\x03\0\0hdpay";
        assert_eq!(buf[..53], expected);
    }

    #[test]
    fn every_rule_has_its_error() {
        let mut good = [0; 53];
        DATA.emit(b"hd", 3, &mut good).unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            Datagram::new_checked(&bytes).err()
        };
        assert_eq!(with(0, b'X'), Some(ShimError::Magic));
        assert_eq!(with(4, 2), Some(ShimError::Version(2)));
        assert_eq!(with(23, 1), Some(ShimError::Reserved));
        assert_eq!(with(47, 1), Some(ShimError::Reserved));
        assert_eq!(with(22, 65), Some(ShimError::HeaderTooLong(65)));
        assert_eq!(with(22, 3), Some(ShimError::Short { need: 54, have: 53 }));
        assert_eq!(with(22, 1), Some(ShimError::Trailing(1)));
        assert_eq!(with(45, 4), Some(ShimError::PayloadBeyondSpan { payload: 4, span: 3 }));
        let end = ShimRepr { offset: u64::MAX - 2, ..DATA };
        assert_eq!(end.emit(b"hd", 3, &mut good), Err(ShimError::OffsetOverflow));
        assert_eq!(DATA.emit(&[0; 65], 3, &mut [0; 200]), Err(ShimError::HeaderTooLong(65)));
        assert_eq!(DATA.emit(b"hd", 3, &mut [0; 52]), Err(ShimError::Short { need: 53, have: 52 }));
    }

    prop_compose! {
        fn any_repr()(
            hosts in any::<(u32, u32)>(),
            bytes in any::<(u8, u8, u8)>(),
            path in any::<u32>(),
            wire_len in any::<u16>(),
            msg in any::<u64>(),
            offset in 0..=u64::MAX - u64::from(u32::MAX),
            span_len in any::<u32>(),
        ) -> ShimRepr {
            let (src, dst, msg) = (HostId(hosts.0), HostId(hosts.1), MsgId(msg));
            let (proto, class, flags) = bytes;
            ShimRepr { src, dst, proto, path, class, flags, wire_len, msg, offset, span_len }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn reads_back_what_it_writes(
            repr in any_repr(),
            hdr in prop::collection::vec(any::<u8>(), 0..=MAX_HEADER),
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let repr = ShimRepr { span_len: repr.span_len.max(payload.len() as u32), ..repr };
            let mut buf = [0; 400];
            let len = repr.emit(&hdr, payload.len() as u16, &mut buf).unwrap();
            buf[len - payload.len()..len].copy_from_slice(&payload);
            let datagram = Datagram::new_checked(&buf[..len]).unwrap();
            prop_assert_eq!(ShimRepr::parse(&datagram), repr);
            prop_assert_eq!(datagram.header(), &hdr[..]);
            prop_assert_eq!(datagram.payload(), &payload[..]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Half of the inputs get a valid start, so that the later checks are reached too.
        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), start in any::<bool>()) {
            if start && bytes.len() > SHIM_LEN {
                bytes[..5].copy_from_slice(b"TRML\x01");
                bytes[22] %= MAX_HEADER as u8;
                for reserved in [23, 44, 46, 47] {
                    bytes[reserved] = 0;
                }
            }
            if let Ok(datagram) = Datagram::new_checked(&bytes) {
                let _ = (ShimRepr::parse(&datagram), datagram.header(), datagram.payload());
            }
        }
    }
}
