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
//!  4  version 2 | proto | class | flags    4 x 1
//!  8  source host                          4
//! 12  destination host                     4
//! 16  path                                 4
//! 20  wire_len                             2
//! 22  hdr_len (at most 64)                 1
//! 23  bytes of tags, 0 or 32               1
//! 24  message id                           8
//! 32  offset of the payload in the message 8
//! 40  span length                          4
//! 44  payload_len                          2
//! 46  tag of the message                   2
//! 48  token of the message                 8
//! 56  life of the source                   8
//! 64  life of the destination              8
//! 72  oldest unfinished message            8
//! 80  check of the headers                 4
//! 84  check of the payload                 4
//! 88  tag of the headers, tag of the payload  16 + 16, if there are tags
//!     transport header, payload
//! ```
//!
//! Both checks are CRC-32C (RFC 3720, appendix B.4). UDP's own checksum ends at every switch that
//! cuts payloads, and a virtual interface does not compute it. The check of the headers leaves out
//! what switches write: marks, the cut and the two lengths, telemetry, the turn of addresses of a
//! header that is sent back. So it survives a switch that knows nothing of it. The check of the
//! payload stands among the headers.
//!
//! Two hosts that share a [`Key`] put tags into their datagrams. The tag of the headers leaves out
//! what the check leaves out, and the checks; the tag of the payload stands among what it covers.
//! So who has no key can do no more than switches: cut, mark, send back, write telemetry, delay,
//! lose, repeat.
//!
//! A host that starts again lives anew: the number of its life rises. Each packet names the life
//! of its source, and that of its destination where the source knows it, otherwise zero. So a
//! host that hears of a new life forgets the old one, and late packets of any former life, or for
//! one, are recognised.

use std::ops::Range;

use thiserror::Error;
use units::{HostId, MsgId};

use crate::int;
use crate::key::{TAG_LEN, Tag, same};

pub use crate::key::Key;

/// Bytes of this header.
pub const SHIM_LEN: usize = 88;
/// Bytes of both tags.
pub const TAGS_LEN: usize = 2 * TAG_LEN;
/// The most bytes of transport header that may follow.
pub const MAX_HEADER: usize = 64;

const MAGIC: [u8; 4] = *b"TRML";
const VERSION: u8 = 2;

/// Bits of `flags` that switches have to do with, as `endpoint::Flags` has them.
pub mod flag {
    /// The payload has been cut off.
    pub const TRIMMED: u8 = 1;
    /// Sent back; the addresses are swapped.
    pub const BOUNCED: u8 = 2;
    /// Congestion is marked.
    pub const CE: u8 = 8;
    /// Switches write into the end of the transport header.
    pub const INT: u8 = 32;
}

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
    pub(super) const TAGS_LEN: usize = 23;
    pub(super) const MSG: Range<usize> = 24..32;
    pub(super) const OFFSET: Range<usize> = 32..40;
    pub(super) const SPAN_LEN: Range<usize> = 40..44;
    pub(super) const PAYLOAD_LEN: Range<usize> = 44..46;
    pub(super) const TAG: Range<usize> = 46..48;
    pub(super) const TOKEN: Range<usize> = 48..56;
    pub(super) const SRC_LIFE: Range<usize> = 56..64;
    pub(super) const DST_LIFE: Range<usize> = 64..72;
    pub(super) const OLDEST: Range<usize> = 72..80;
    pub(super) const HEADER_CHECK: Range<usize> = 80..84;
    pub(super) const PAYLOAD_CHECK: Range<usize> = 84..88;
    pub(super) const HEADER_TAG: Range<usize> = 88..104;
    pub(super) const PAYLOAD_TAG: Range<usize> = 104..120;
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
    #[error("version {0}, this is version 2")]
    Version(u8),
    /// Neither none nor two tags.
    #[error("{0} bytes of tags, where 0 or 32 may be")]
    Tags(u8),
    /// It has no tags, and its source has a key.
    #[error("no tags, though its source has a key")]
    Untagged,
    /// It has tags, and there is no key to check them with.
    #[error("tags, and no key to check them with")]
    NoKey,
    /// A tag is not that of the key: somebody else has made or changed it.
    #[error("a tag is not that of the key")]
    Forged,
    /// The headers are not those that were sent.
    #[error("the headers were damaged on the way")]
    HeaderDamaged,
    /// The payload is not the one that was sent.
    #[error("the payload was damaged on the way")]
    PayloadDamaged,
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
    /// Which part of the workload the message belongs to; zero in packets without payload.
    pub tag: u16,
    /// What the message says to the receiving application; zero in packets without payload.
    pub token: u64,
    /// The life of the sending host.
    pub src_life: u64,
    /// The life of the receiving host, zero if that is not known.
    pub dst_life: u64,
    /// All messages of the source to the destination below this one are over.
    pub oldest: MsgId,
    /// Whether there are tags.
    pub tagged: bool,
}

impl ShimRepr {
    /// Write this header, room for tags if there are any, `hdr`, and room for `payload_len` bytes
    /// into `buf`. Returns the bytes of the datagram; its last `payload_len` are the caller's to
    /// fill before [`seal`].
    ///
    /// # Errors
    /// The lengths are not legal, or `buf` is too small. `buf` is then unchanged.
    pub fn emit(&self, hdr: &[u8], payload_len: u16, buf: &mut [u8]) -> Result<usize, ShimError> {
        check_span(self.offset, self.span_len, usize::from(payload_len))?;
        let hdr_len = match u8::try_from(hdr.len()) {
            Ok(len) if usize::from(len) <= MAX_HEADER => len,
            _ => return Err(ShimError::HeaderTooLong(hdr.len())),
        };
        let tags = if self.tagged { TAGS_LEN } else { 0 };
        let need = SHIM_LEN + tags + hdr.len() + usize::from(payload_len);
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
        out[field::TAGS_LEN] = tags as u8;
        out[field::MSG].copy_from_slice(&self.msg.0.to_be_bytes());
        out[field::OFFSET].copy_from_slice(&self.offset.to_be_bytes());
        out[field::SPAN_LEN].copy_from_slice(&self.span_len.to_be_bytes());
        out[field::PAYLOAD_LEN].copy_from_slice(&payload_len.to_be_bytes());
        out[field::TAG].copy_from_slice(&self.tag.to_be_bytes());
        out[field::TOKEN].copy_from_slice(&self.token.to_be_bytes());
        out[field::SRC_LIFE].copy_from_slice(&self.src_life.to_be_bytes());
        out[field::DST_LIFE].copy_from_slice(&self.dst_life.to_be_bytes());
        out[field::OLDEST].copy_from_slice(&self.oldest.0.to_be_bytes());
        out[field::HEADER_CHECK.start..SHIM_LEN + tags].fill(0);
        out[SHIM_LEN + tags..SHIM_LEN + tags + hdr.len()].copy_from_slice(hdr);
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
            tag: get_u16(bytes, field::TAG),
            token: get_u64(bytes, field::TOKEN),
            src_life: get_u64(bytes, field::SRC_LIFE),
            dst_life: get_u64(bytes, field::DST_LIFE),
            oldest: MsgId(get_u64(bytes, field::OLDEST)),
            tagged: bytes[field::TAGS_LEN] > 0,
        }
    }
}

/// Bytes before the transport header.
fn header_start(datagram: &[u8]) -> usize {
    SHIM_LEN + usize::from(datagram[field::TAGS_LEN])
}

/// Bytes before the payload.
fn payload_start(datagram: &[u8]) -> usize {
    header_start(datagram) + usize::from(datagram[field::HDR_LEN])
}

/// Write the checks of `datagram`, which [`ShimRepr::emit`] has made and whose payload is in place;
/// and its tags, by `key`, if there is room for them.
///
/// # Panics
/// On fewer bytes than the headers have.
pub fn seal(datagram: &mut [u8], key: Option<&Key>) {
    let payload = payload_start(datagram);
    if let Some(key) = key.filter(|_| datagram[field::TAGS_LEN] > 0) {
        let tag = key.of_payload(&datagram[payload..]);
        datagram[field::PAYLOAD_TAG].copy_from_slice(&tag);
        let tag = header_tag(key, &datagram[..payload]);
        datagram[field::HEADER_TAG].copy_from_slice(&tag);
    }
    let check = payload_check(&datagram[payload..]);
    datagram[field::PAYLOAD_CHECK].copy_from_slice(&check.to_be_bytes());
    let check = header_check(&datagram[..payload]);
    datagram[field::HEADER_CHECK].copy_from_slice(&check.to_be_bytes());
}

/// What a switch does that cuts the payload of `datagram`: says so in its flags, that the packet
/// has `wire_len` bytes now, and that none follow the headers. Returns how many bytes are left.
/// The check of the headers holds.
///
/// # Panics
/// On fewer bytes than [`SHIM_LEN`].
pub fn trim(datagram: &mut [u8], wire_len: u16) -> usize {
    datagram[field::FLAGS] |= flag::TRIMMED;
    datagram[field::WIRE_LEN].copy_from_slice(&wire_len.to_be_bytes());
    datagram[field::PAYLOAD_LEN].fill(0);
    payload_start(datagram)
}

/// What a switch does that sends `datagram`, trimmed before, back to its source: says so in its
/// flags, and source and destination change places. The check of the headers holds.
///
/// # Panics
/// On fewer bytes than [`SHIM_LEN`].
pub fn bounce(datagram: &mut [u8]) {
    datagram[field::FLAGS] |= flag::BOUNCED;
    let (src, dst) = (array::<4>(datagram, field::SRC), array::<4>(datagram, field::DST));
    datagram[field::SRC].copy_from_slice(&dst);
    datagram[field::DST].copy_from_slice(&src);
}

/// The check of `payload`; of none it is zero.
fn payload_check(payload: &[u8]) -> u32 {
    if payload.is_empty() { 0 } else { crc32c::crc32c(payload) }
}

/// Bytes of the longest headers.
const HEADERS_MAX: usize = SHIM_LEN + TAGS_LEN + MAX_HEADER;

/// The check of `headers`, this one and the transport's, as they were before any switch.
fn header_check(headers: &[u8]) -> u32 {
    let sent = Sent::of(headers);
    crc32c::crc32c(&sent.bytes[..sent.len])
}

/// The tag of `headers`, which have room for it.
fn header_tag(key: &Key, headers: &[u8]) -> Tag {
    let mut sent = Sent::of(headers);
    sent.bytes[field::PAYLOAD_CHECK].fill(0);
    sent.bytes[field::HEADER_TAG].fill(0);
    key.of_headers(&sent.bytes[..sent.len])
}

/// Headers as they were before any switch, without their check: what of them no switch changes.
/// They begin at a word, as whoever goes over them word by word wants it.
#[repr(C, align(8))]
struct Sent {
    bytes: [u8; HEADERS_MAX],
    len: usize,
}

impl Sent {
    fn of(headers: &[u8]) -> Self {
        let mut sent = Self { bytes: [0; HEADERS_MAX], len: 0 };
        let Self { bytes, len } = &mut sent;
        bytes[..headers.len()].copy_from_slice(headers);
        let flags = bytes[field::FLAGS];
        if flags & flag::BOUNCED != 0 {
            bytes[field::SRC].copy_from_slice(&headers[field::DST]);
            bytes[field::DST].copy_from_slice(&headers[field::SRC]);
        }
        let cut = if flags & flag::INT != 0 { int::LEN } else { 0 };
        *len = headers.len().saturating_sub(cut).max(header_start(headers));
        bytes[field::FLAGS] &= !(flag::TRIMMED | flag::BOUNCED | flag::CE);
        bytes[field::WIRE_LEN].fill(0);
        bytes[field::PAYLOAD_LEN].fill(0);
        bytes[field::HEADER_CHECK].fill(0);
        sent
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
    /// Anything that [`ShimRepr::emit`] and [`seal`] never write.
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
        let tags = usize::from(bytes[field::TAGS_LEN]);
        if tags != 0 && tags != TAGS_LEN {
            return Err(ShimError::Tags(bytes[field::TAGS_LEN]));
        }
        let hdr_len = usize::from(bytes[field::HDR_LEN]);
        if hdr_len > MAX_HEADER {
            return Err(ShimError::HeaderTooLong(hdr_len));
        }
        let payload = usize::from(get_u16(bytes, field::PAYLOAD_LEN));
        check_span(get_u64(bytes, field::OFFSET), get_u32(bytes, field::SPAN_LEN), payload)?;
        let need = SHIM_LEN + tags + hdr_len + payload;
        match have.checked_sub(need) {
            None => Err(ShimError::Short { need, have }),
            Some(0) => Self(bytes).checked(),
            Some(rest) => Err(ShimError::Trailing(rest)),
        }
    }

    /// Itself, if both checks hold. Nothing is left of a payload that a switch has cut.
    fn checked(self) -> Result<Self, ShimError> {
        let headers = &self.0[..payload_start(self.0)];
        if header_check(headers) != get_u32(self.0, field::HEADER_CHECK) {
            return Err(ShimError::HeaderDamaged);
        }
        let payload = self.payload();
        let check = get_u32(self.0, field::PAYLOAD_CHECK);
        if !payload.is_empty() && payload_check(payload) != check {
            return Err(ShimError::PayloadDamaged);
        }
        Ok(self)
    }

    /// Whether who has `key`, the one of its source and this host, has made it; without a key,
    /// whether it has no tags.
    ///
    /// # Errors
    /// [`ShimError::Untagged`], [`ShimError::NoKey`] or [`ShimError::Forged`].
    pub fn is_by(&self, key: Option<&Key>) -> Result<(), ShimError> {
        let key = match (key, self.0[field::TAGS_LEN] > 0) {
            (None, false) => return Ok(()),
            (None, true) => return Err(ShimError::NoKey),
            (Some(_), false) => return Err(ShimError::Untagged),
            (Some(key), true) => key,
        };
        let headers = &self.0[..payload_start(self.0)];
        // First, so that a forgery costs little, however long it is.
        if !same(&header_tag(key, headers), &array(self.0, field::HEADER_TAG)) {
            return Err(ShimError::Forged);
        }
        let payload = self.payload();
        // A payload that a switch has cut has no tag to compare.
        match payload.is_empty()
            || same(&key.of_payload(payload), &array(self.0, field::PAYLOAD_TAG))
        {
            true => Ok(()),
            false => Err(ShimError::Forged),
        }
    }

    /// The transport header.
    #[must_use]
    pub fn header(&self) -> &'a [u8] {
        &self.0[header_start(self.0)..payload_start(self.0)]
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[payload_start(self.0)..]
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
        tag: 0x0c0d,
        token: 0x0e0f,
        src_life: 0x1011,
        dst_life: 0x1213,
        oldest: MsgId(0x1415),
        tagged: false,
    };
    fn key() -> Key {
        Key::new([0x5a; 32])
    }

    /// A whole datagram with the header `hdr`.
    fn sealed(repr: &ShimRepr, hdr: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xff; HEADERS_MAX + payload.len()];
        let len = repr.emit(hdr, payload.len() as u16, &mut bytes).unwrap();
        bytes.truncate(len);
        bytes[len - payload.len()..].copy_from_slice(payload);
        seal(&mut bytes, Some(&key()));
        bytes
    }

    #[test]
    fn a_datagram_byte_for_byte() {
        let bytes = sealed(&DATA, b"hd", b"pay");
        let head = *b"TRML\x02\xc7\x01\x04\0\0\0\x01\0\0\x02\x03\0\0\0\x07\x23\x68\x02\0\
            \0\0\0\0\0\0\x0a\x0b\0\0\0\0\0\0\x46\x50\0\0\0\x03\0\x03\x0c\x0d\0\0\0\0\0\0\x0e\x0f\
            \0\0\0\0\0\0\x10\x11\0\0\0\0\0\0\x12\x13\
            \0\0\0\0\0\0\x14\x15";
        assert_eq!(bytes[..80], head);
        assert_eq!(bytes[88..], *b"hdpay");
        assert_eq!(bytes[84..88], crc32c::crc32c(b"pay").to_be_bytes());
    }

    /// RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and counting up.
    #[test]
    fn the_check_is_that_of_the_rfc() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c::crc32c(&std::array::from_fn::<u8, 32, _>(|n| n as u8)), 0x46dd_794e);
    }

    #[test]
    fn every_rule_has_its_error() {
        let good = sealed(&DATA, b"hd", b"pay");
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Datagram::new_checked(&bytes).err()
        };
        assert_eq!(with(0, b'X'), Some(ShimError::Magic));
        assert_eq!(with(4, 1), Some(ShimError::Version(1)));
        assert_eq!(with(23, 1), Some(ShimError::Tags(1)));
        assert_eq!(with(22, 65), Some(ShimError::HeaderTooLong(65)));
        assert_eq!(with(22, 3), Some(ShimError::Short { need: 94, have: 93 }));
        assert_eq!(with(22, 1), Some(ShimError::Trailing(1)));
        assert_eq!(with(45, 4), Some(ShimError::PayloadBeyondSpan { payload: 4, span: 3 }));
        assert_eq!(with(92, b'x'), Some(ShimError::PayloadDamaged));
        let end = ShimRepr { offset: u64::MAX - 2, ..DATA };
        let mut buf = [0; 93];
        assert_eq!(end.emit(b"hd", 3, &mut buf), Err(ShimError::OffsetOverflow));
        assert_eq!(DATA.emit(&[0; 65], 3, &mut [0; 200]), Err(ShimError::HeaderTooLong(65)));
        let short = ShimError::Short { need: 93, have: 92 };
        assert_eq!(DATA.emit(b"hd", 3, &mut buf[..92]), Err(short));
    }

    /// Whatever bit is turned over on the way, but for those that switches write.
    #[test]
    fn damage_is_seen() {
        let good = sealed(&DATA, b"hd", b"pay");
        assert!(Datagram::new_checked(&good).is_ok());
        damage_is_found(&good);
        damage_is_found(&sealed(&ShimRepr { tagged: true, ..DATA }, b"hd", b"pay"));
    }

    fn damage_is_found(good: &[u8]) {
        let ours = |byte: usize, bit: u8| match byte {
            7 => 1 << bit & (flag::TRIMMED | flag::CE) != 0,
            20 | 21 => true,
            _ => false,
        };
        for (byte, bit) in (0..good.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
            let mut bytes = good.to_vec();
            bytes[byte] ^= 1 << bit;
            assert_eq!(Datagram::new_checked(&bytes).is_ok(), ours(byte, bit), "{byte} {bit}");
        }
    }

    /// Who has no key changes a bit and makes the checks anew.
    #[test]
    fn what_is_changed_without_the_key_is_found() {
        let good = sealed(&ShimRepr { tagged: true, ..DATA }, b"hd", b"pay");
        assert_eq!(good.len(), SHIM_LEN + TAGS_LEN + 5);
        fn judged(bytes: &[u8], key: Option<&Key>) -> Result<(), ShimError> {
            Datagram::new_checked(bytes).unwrap().is_by(key)
        }
        assert_eq!(judged(&good, Some(&key())), Ok(()));
        assert_eq!(judged(&good, Some(&Key::new([0x5b; 32]))), Err(ShimError::Forged));
        assert_eq!(judged(&good, None), Err(ShimError::NoKey));
        let plain = sealed(&DATA, b"hd", b"pay");
        assert_eq!(judged(&plain, None), Ok(()));
        assert_eq!(judged(&plain, Some(&key())), Err(ShimError::Untagged));
        let mut forged = 0;
        for (byte, bit) in (0..good.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
            // Not what makes it a datagram at all: beginning, version and lengths.
            if matches!(byte, 0..5 | 22 | 23 | 44 | 45) {
                continue;
            }
            let mut bytes = good.clone();
            bytes[byte] ^= 1 << bit;
            seal(&mut bytes, None);
            let Ok(datagram) = Datagram::new_checked(&bytes) else { continue };
            let may_change = match byte {
                7 => 1 << bit & (flag::TRIMMED | flag::CE) != 0,
                20 | 21 => true,
                // The checks, which are made anew.
                80..88 => true,
                _ => false,
            };
            let expected = if may_change { Ok(()) } else { Err(ShimError::Forged) };
            assert_eq!(datagram.is_by(Some(&key())), expected, "{byte} {bit}");
            forged += u32::from(!may_change);
        }
        assert!(forged > 8 * 95, "{forged}");
    }

    #[test]
    fn tags_survive_what_switches_do() {
        let mut bytes = sealed(&ShimRepr { tagged: true, ..DATA }, b"hd", b"pay");
        let len = trim(&mut bytes, 64);
        bytes.truncate(len);
        bytes[field::FLAGS] |= flag::CE;
        assert_eq!(Datagram::new_checked(&bytes).unwrap().is_by(Some(&key())), Ok(()));
        bounce(&mut bytes);
        let datagram = Datagram::new_checked(&bytes).unwrap();
        assert_eq!((datagram.is_by(Some(&key())), datagram.header()), (Ok(()), &b"hd"[..]));
        let telemetry = ShimRepr { flags: flag::INT, span_len: 0, tagged: true, ..DATA };
        let mut bytes = sealed(&telemetry, &[7; 2 + int::LEN], b"");
        *bytes.last_mut().unwrap() = 9;
        assert_eq!(Datagram::new_checked(&bytes).unwrap().is_by(Some(&key())), Ok(()));
    }

    #[test]
    fn headers_survive_what_switches_do() {
        let good = sealed(&DATA, b"hd", b"pay");
        let mut bytes = good;
        let len = trim(&mut bytes, 64);
        bytes.truncate(len);
        let datagram = Datagram::new_checked(&bytes).unwrap();
        let trimmed = ShimRepr { flags: 4 | flag::TRIMMED, wire_len: 64, ..DATA };
        assert_eq!((ShimRepr::parse(&datagram), datagram.payload()), (trimmed, &b""[..]));
        assert_eq!(datagram.header(), b"hd");

        let mut bounced = bytes.clone();
        bounce(&mut bounced);
        let back = ShimRepr::parse(&Datagram::new_checked(&bounced).unwrap());
        assert_eq!((back.src, back.dst), (DATA.dst, DATA.src));
        bounced[field::SRC].copy_from_slice(&bytes[field::SRC]);
        assert_eq!(Datagram::new_checked(&bounced).err(), Some(ShimError::HeaderDamaged));

        let telemetry = ShimRepr { flags: flag::INT, span_len: 0, ..DATA };
        let mut bytes = sealed(&telemetry, &[7; 2 + int::LEN], b"");
        *bytes.last_mut().unwrap() = 9;
        bytes[field::FLAGS] |= flag::CE;
        assert!(Datagram::new_checked(&bytes).is_ok());
        bytes[SHIM_LEN] = 9;
        assert_eq!(Datagram::new_checked(&bytes).err(), Some(ShimError::HeaderDamaged));
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
            said in any::<(u16, u64)>(),
            tagged in any::<bool>(),
            lives in any::<(u64, u64, u64)>(),
        ) -> ShimRepr {
            let (src, dst, msg) = (HostId(hosts.0), HostId(hosts.1), MsgId(msg));
            let ((proto, class, flags), (tag, token)) = (bytes, said);
            let (src_life, dst_life, oldest) = (lives.0, lives.1, MsgId(lives.2));
            ShimRepr {
                src, dst, proto, path, class, flags, wire_len, msg, offset, span_len, tag, token,
                src_life, dst_life, oldest, tagged,
            }
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
            let bytes = sealed(&repr, &hdr, &payload);
            let datagram = Datagram::new_checked(&bytes).unwrap();
            prop_assert_eq!(ShimRepr::parse(&datagram), repr);
            prop_assert_eq!(datagram.header(), &hdr[..]);
            prop_assert_eq!(datagram.payload(), &payload[..]);
            prop_assert_eq!(datagram.is_by(repr.tagged.then_some(&key())), Ok(()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Half of the inputs get a valid start and checks, so that all is reached.
        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), start in any::<bool>()) {
            if start && bytes.len() > SHIM_LEN + MAX_HEADER {
                bytes[..5].copy_from_slice(b"TRML\x02");
                bytes[22] %= MAX_HEADER as u8;
                bytes[23] = if bytes.len() > HEADERS_MAX { bytes[23] & TAGS_LEN as u8 } else { 0 };
                bytes[40] = 1;
                let payload = (bytes.len() - payload_start(&bytes)) as u16;
                bytes[44..46].copy_from_slice(&payload.to_be_bytes());
                seal(&mut bytes, Some(&key()));
                prop_assert!(bytes[32] == 0xff || Datagram::new_checked(&bytes).is_ok());
            }
            if let Ok(datagram) = Datagram::new_checked(&bytes) {
                let _ = (ShimRepr::parse(&datagram), datagram.header(), datagram.payload());
                let _ = (datagram.is_by(Some(&key())), datagram.is_by(None));
            }
        }
    }
}
