//! Ethernet II and IPv4 (with optional UDP) around a transport header: what a simulated packet
//! looks like in a capture, on a socket, or to a P4 parser.
//!
//! A frame is derived from plain fields, and the derivation is fixed:
//!
//! | field | becomes |
//! |---|---|
//! | host id (24 bits) | IPv4 address `10.x.y.z`; MAC `02:00:0a:x:y:z` (locally administered) |
//! | class 0..=7 | DSCP class selector `class << 3` (RFC 2474, section 4.2.2.1) |
//! | ECN | the two low bits of the traffic class byte (RFC 3168, section 5) |
//! | path | IPv4 identification; under UDP also the source port, which ECMP hashes |
//! | body length | IPv4 total length, even where a capture holds fewer bytes |
//!
//! The identification field may carry anything, because every frame is atomic (Don't Fragment is
//! set; RFC 6864, section 4.1). Only its 16 bits of the path survive: larger ones are folded.

use thiserror::Error;
use units::HostId;

use crate::{nano, ndp};

/// Bytes of Ethernet II and IPv4 header, without options and frame check sequence.
pub(crate) const IP_OVERHEAD: usize = ETHERNET_LEN + IPV4_LEN;
/// Bytes of a UDP header (RFC 768).
pub const UDP_LEN: usize = 8;
/// The IP protocol number of UDP.
pub const UDP: u8 = 17;

pub(crate) const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const ETHERTYPE_IPV4: u16 = 0x0800;
const VERSION_AND_IHL: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
const TTL: u8 = 64;
/// All host ids below this have an address in 10.0.0.0/8 (RFC 1918).
const HOSTS: u32 = 1 << 24;
/// The first dynamic port (RFC 6335, section 6); 14 bits of entropy follow, as in RFC 7510.
const ENTROPY_PORTS: u16 = 0xc000;

/// Why a frame cannot be built or read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// Fewer bytes than the headers need.
    #[error("{have} bytes where the headers need {need}")]
    Short {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A host id of more than 24 bits.
    #[error("{0} has no address in 10.0.0.0/8: ids end at 16777215")]
    NoAddress(HostId),
    /// More than eight classes.
    #[error("class {0} has no DSCP class selector: classes end at 7")]
    NoClass(u8),
    /// UDP has a carrier of its own, so that a frame reads back as it was written.
    #[error("protocol 17 is written with the UDP carrier")]
    PlainUdp,
    /// The packet does not fit IPv4, or more body is given than the packet has.
    #[error("body of {0} bytes is too long")]
    TooLong(usize),
    /// Not a frame of this module.
    #[error("not a Trimline frame: {0}")]
    Foreign(&'static str),
    /// The IPv4 header checksum does not match.
    #[error("wrong IPv4 header checksum")]
    Checksum,
}

/// Explicit congestion notification (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotCapable = 0b00,
    /// Capable, the codepoint that RFC 8311 leaves to experiments.
    Capable1 = 0b01,
    /// Capable: ECT(0), the usual codepoint.
    Capable = 0b10,
    /// A switch has marked congestion.
    Marked = 0b11,
}

impl Ecn {
    /// The codepoint in the two low bits of `byte`.
    #[must_use]
    pub const fn from_bits(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable,
            _ => Self::Marked,
        }
    }
}

/// The byte of the IP header that says class and marks: for a class of 0..=7 its DSCP class
/// selector, `class << 3` (RFC 2474, section 4.2.2.1), and ECN. Of a greater class the low bits.
#[must_use]
pub const fn tos(class: u8, ecn: Ecn) -> u8 {
    class << 5 | ecn as u8
}

/// The class in the byte that [`tos`] makes.
#[must_use]
pub const fn class_of(tos: u8) -> u8 {
    tos >> 5
}

/// What lies between IPv4 and the transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Nothing.
    Ip {
        /// The IP protocol number, not [`UDP`].
        proto: u8,
    },
    /// A UDP header. Its checksum is zero, "none" (RFC 768), as the payload may be cut away.
    Udp {
        /// The destination port, which names the transport.
        port: u16,
    },
}

/// The legal contents of a frame's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRepr {
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// What the transport header follows.
    pub carrier: Carrier,
    /// Traffic class, 0..=7.
    pub class: u8,
    /// Congestion marks.
    pub ecn: Ecn,
    /// Path index or entropy.
    pub path: u32,
    /// Bytes after IPv4 and UDP in the original packet: transport header and payload.
    pub body_len: u16,
}

impl FrameRepr {
    /// Bytes before the transport header.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        match self.carrier {
            Carrier::Ip { .. } => IP_OVERHEAD,
            Carrier::Udp { .. } => IP_OVERHEAD + UDP_LEN,
        }
    }

    /// The length of the whole frame without frame check sequence: the "original length" of a
    /// capture that holds only the first bytes.
    #[must_use]
    pub const fn original_len(&self) -> usize {
        self.overhead() + self.body_len as usize
    }

    /// Write the headers and `body` into `buf`. Returns the bytes written. `body` may be shorter
    /// than `body_len`: a simulated packet has its transport header but no payload.
    ///
    /// # Errors
    /// A field has no place in the headers, or `buf` is too small. `buf` is then unchanged.
    pub fn emit(&self, body: &[u8], buf: &mut [u8]) -> Result<usize, FrameError> {
        let ip_len = self.check(body)?;
        let (start, need) = (self.overhead(), self.overhead() + body.len());
        let have = buf.len();
        let short = FrameError::Short { need, have };
        let out = buf.get_mut(..need).ok_or(short)?;
        let (headers, rest) = out.split_at_mut(start);
        rest.copy_from_slice(body);
        let (ethernet, ip) = headers.split_at_mut(ETHERNET_LEN);
        ethernet[..6].copy_from_slice(&mac(self.dst));
        ethernet[6..12].copy_from_slice(&mac(self.src));
        put(ethernet, 12, ETHERTYPE_IPV4);
        let (ip, udp) = ip.split_at_mut(IPV4_LEN);
        self.emit_ipv4(ip_len, ip);
        if let Carrier::Udp { port } = self.carrier {
            put(udp, 0, ENTROPY_PORTS | (fold(self.path) & !ENTROPY_PORTS));
            put(udp, 2, port);
            put(udp, 4, ip_len - IPV4_LEN as u16);
            put(udp, 6, 0);
        }
        Ok(need)
    }

    /// The IPv4 total length, if every field has a place.
    fn check(&self, body: &[u8]) -> Result<u16, FrameError> {
        for host in [self.src, self.dst] {
            if host.0 >= HOSTS {
                return Err(FrameError::NoAddress(host));
            }
        }
        if self.class > 7 {
            return Err(FrameError::NoClass(self.class));
        }
        if self.carrier == (Carrier::Ip { proto: UDP }) {
            return Err(FrameError::PlainUdp);
        }
        if body.len() > usize::from(self.body_len) {
            return Err(FrameError::TooLong(body.len()));
        }
        u16::try_from(self.original_len() - ETHERNET_LEN)
            .map_err(|_| FrameError::TooLong(usize::from(self.body_len)))
    }

    /// RFC 791, section 3.1.
    fn emit_ipv4(&self, total_len: u16, ip: &mut [u8]) {
        ip[0] = VERSION_AND_IHL;
        ip[1] = tos(self.class, self.ecn);
        put(ip, 2, total_len);
        put(ip, 4, fold(self.path));
        put(ip, 6, DONT_FRAGMENT);
        ip[8] = TTL;
        ip[9] = match self.carrier {
            Carrier::Ip { proto } => proto,
            Carrier::Udp { .. } => UDP,
        };
        put(ip, 10, 0);
        ip[12..16].copy_from_slice(&address(self.src));
        ip[16..20].copy_from_slice(&address(self.dst));
        put(ip, 10, checksum(ip));
    }

    /// The contents of `frame`. MAC addresses, time to live and UDP source port are not judged:
    /// switches rewrite them.
    ///
    /// # Errors
    /// The frame is damaged, or has something that [`FrameRepr::emit`] never writes.
    pub fn parse(frame: &Frame<'_>) -> Result<Self, FrameError> {
        let ip = frame.ipv4();
        if checksum(ip) != 0 {
            return Err(FrameError::Checksum);
        }
        let (src, dst) = (host(&ip[12..16])?, host(&ip[16..20])?);
        if ip[1] & 0b0001_1100 != 0 {
            return Err(FrameError::Foreign("DSCP is not a class selector"));
        }
        let overhead = (frame.body_start() - ETHERNET_LEN) as u16;
        let body_len = get(ip, 2)
            .checked_sub(overhead)
            .ok_or(FrameError::Foreign("IPv4 total length is below the headers"))?;
        let carrier = match frame.udp() {
            None => Carrier::Ip { proto: ip[9] },
            Some(udp) if get(udp, 4) == body_len + UDP_LEN as u16 => {
                Carrier::Udp { port: get(udp, 2) }
            }
            Some(_) => return Err(FrameError::Foreign("UDP and IPv4 lengths differ")),
        };
        Ok(Self {
            src,
            dst,
            carrier,
            class: class_of(ip[1]),
            ecn: Ecn::from_bits(ip[1]),
            path: u32::from(get(ip, 4)),
            body_len,
        })
    }
}

/// A view over the bytes of a frame, which may be cut off anywhere after the headers.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a>(&'a [u8]);

impl<'a> Frame<'a> {
    /// A view over `bytes`, if they hold all headers of an IPv4 frame without options that is
    /// not a fragment. No accessor panics on it.
    ///
    /// # Errors
    /// Too short, or another kind of frame.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let need = |need| match bytes.len() {
            have if have < need => Err(FrameError::Short { need, have }),
            _ => Ok(()),
        };
        need(IP_OVERHEAD)?;
        let frame = Self(bytes);
        if get(bytes, 12) != ETHERTYPE_IPV4 {
            return Err(FrameError::Foreign("the EtherType is not IPv4"));
        }
        if frame.ipv4()[0] != VERSION_AND_IHL {
            return Err(FrameError::Foreign("the IP version is not 4 or there are IP options"));
        }
        // All but Don't Fragment: the reserved bit, More Fragments, the fragment offset.
        if get(frame.ipv4(), 6) & !DONT_FRAGMENT != 0 {
            return Err(FrameError::Foreign("an IPv4 fragment"));
        }
        need(frame.body_start())?;
        Ok(frame)
    }

    /// The IPv4 header.
    #[must_use]
    pub fn ipv4(&self) -> &'a [u8] {
        &self.0[ETHERNET_LEN..IP_OVERHEAD]
    }

    /// The UDP header, if there is one.
    #[must_use]
    pub fn udp(&self) -> Option<&'a [u8]> {
        (self.ipv4()[9] == UDP).then(|| &self.0[IP_OVERHEAD..IP_OVERHEAD + UDP_LEN])
    }

    /// The bytes there are of the transport header and payload, without Ethernet padding.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        let end = ETHERNET_LEN + usize::from(get(self.ipv4(), 2));
        self.0.get(self.body_start()..end.min(self.0.len())).unwrap_or(&[])
    }

    fn body_start(&self) -> usize {
        IP_OVERHEAD + if self.ipv4()[9] == UDP { UDP_LEN } else { 0 }
    }
}

/// Set in the transport header of a trimmed packet what a real switch sets there when it cuts the
/// payload off: the CHOPPED flag of NDP, CHOP of the headers of [`nano`]. Simulated switches leave
/// the header alone and mark the packet beside it. Other protocols have no such bit, and none has
/// one for a bounced packet.
pub fn mirror_trimmed(proto: u8, header: &mut [u8]) {
    let [high, low] = ndp::flags::CHOPPED.to_be_bytes();
    match (proto, header) {
        (ndp::PROTOCOL, [first, second, ..]) => {
            *first |= high;
            *second |= low;
        }
        (_, [first, ..]) if nano::Protocol::of(proto).is_some() => *first |= nano::flags::CHOP,
        _ => {}
    }
}

/// The Internet checksum of `bytes` (RFC 1071): the complement of the ones' complement sum of
/// 16-bit words, an odd last byte padded with zero. Zero over bytes that contain their checksum.
#[must_use]
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    // Of 32 bits each, which comes to the same (RFC 1071, 2 (C)).
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]);
    let sum: u64 = all.map(|&word| u64::from(u32::from_be_bytes(word))).sum();
    // Each fold brings the carries in from above; four of them leave 16 bits of any 64.
    let folded = (0..4).fold(sum, |s, _| (s & 0xffff) + (s >> 16));
    !(folded as u16)
}

/// 32 bits of path as 16; those below 65536 stay what they are.
const fn fold(path: u32) -> u16 {
    (path ^ (path >> 16)) as u16
}

/// The IPv4 address of a host, whose id has 24 bits.
#[must_use]
pub const fn address(host: HostId) -> [u8; 4] {
    let [_, x, y, z] = host.0.to_be_bytes();
    [10, x, y, z]
}

/// The MAC address of a host, whose id has 24 bits.
#[must_use]
pub const fn mac(host: HostId) -> [u8; 6] {
    let [a, x, y, z] = address(host);
    [0x02, 0x00, a, x, y, z]
}

/// The host whose address `address` is.
///
/// # Errors
/// It is none in 10.0.0.0/8.
pub fn host(address: &[u8]) -> Result<HostId, FrameError> {
    match *address {
        [10, x, y, z] => Ok(HostId(u32::from_be_bytes([0, x, y, z]))),
        _ => Err(FrameError::Foreign("an address outside 10.0.0.0/8")),
    }
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: FrameRepr = FrameRepr {
        src: HostId(0x01_0203),
        dst: HostId(1),
        carrier: Carrier::Ip { proto: 199 },
        class: 1,
        ecn: Ecn::Capable,
        path: 5,
        body_len: 9020,
    };

    #[test]
    fn a_frame_byte_for_byte() {
        let mut buf = [0xff; 64];
        assert_eq!(PLAIN.emit(b"header", &mut buf), Ok(40));
        // 4522+2350+0005+4000+40c7+0a01+0203+0a00+0001 is ff43, its complement 00bc.
        let ip = [0x45, 0x22, 0x23, 0x50, 0, 5, 0x40, 0, 64, 199, 0x00, 0xbc];
        assert_eq!(buf[..14], [2, 0, 10, 0, 0, 1, 2, 0, 10, 1, 2, 3, 8, 0]);
        assert_eq!(buf[14..26], ip);
        assert_eq!(buf[26..34], [10, 1, 2, 3, 10, 0, 0, 1]);
        assert_eq!(buf[34..41], *b"header\xff");
        assert_eq!(PLAIN.original_len(), 9054);
    }

    /// The example of RFC 1071, section 3: the sum is ddf2.
    #[test]
    fn the_checksum_of_the_rfc() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0x01]), !0x0100, "an odd byte is the high one");
    }

    #[test]
    fn entropy_is_the_udp_source_port() {
        let udp = FrameRepr { carrier: Carrier::Udp { port: 4791 }, path: 0x1_0002, ..PLAIN };
        let mut buf = [0; 64];
        assert_eq!(udp.emit(&[], &mut buf), Ok(42));
        assert_eq!(buf[34..42], [0xc0, 0x03, 0x12, 0xb7, 0x23, 0x44, 0, 0]);
    }

    #[test]
    fn a_trimmed_ndp_header_says_so() {
        let mut header = [0x01, 0x01, 0, 0];
        mirror_trimmed(ndp::PROTOCOL, &mut header);
        assert_eq!(header, [0x01, 0x81, 0, 0]);
        mirror_trimmed(6, &mut header);
        mirror_trimmed(ndp::PROTOCOL, &mut header[..1]);
        assert_eq!(header, [0x01, 0x81, 0, 0], "TCP has no such bit, one byte no flags");
        mirror_trimmed(154, &mut header);
        assert_eq!(header, [0x11, 0x81, 0, 0], "nano-Homa's flags are one byte");
    }

    #[test]
    fn says_what_does_not_fit() {
        let error = |repr: FrameRepr| repr.emit(b"header", &mut [0; 64]).unwrap_err().to_string();
        let host = HostId(1 << 24);
        assert!(
            error(FrameRepr { dst: host, ..PLAIN }).starts_with("host 16777216 has no address")
        );
        assert!(error(FrameRepr { class: 8, ..PLAIN }).starts_with("class 8"));
        assert!(error(FrameRepr { carrier: Carrier::Ip { proto: 17 }, ..PLAIN }).contains("17"));
        assert!(error(FrameRepr { body_len: 65516, ..PLAIN }).contains("65516 bytes is too long"));
        assert!(error(FrameRepr { body_len: 5, ..PLAIN }).contains("6 bytes is too long"));
        let short = PLAIN.emit(b"header", &mut [0; 39]);
        assert_eq!(short, Err(FrameError::Short { need: 40, have: 39 }));
    }

    prop_compose! {
        fn any_repr()(
            hosts in (0..HOSTS, 0..HOSTS),
            udp in any::<bool>(),
            proto in any::<u8>().prop_filter("UDP", |&p| p != UDP),
            port in any::<u16>(),
            class in 0..8u8,
            ecn in 0..4u8,
            path in 0..0x1_0000u32,
            body_len in 0..=65507u16,
        ) -> FrameRepr {
            let carrier = if udp { Carrier::Udp { port } } else { Carrier::Ip { proto } };
            let ecn = Ecn::from_bits(ecn);
            FrameRepr { src: HostId(hosts.0), dst: HostId(hosts.1), carrier, class, ecn, path, body_len }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn reads_back_what_it_writes(repr in any_repr(), body in prop::collection::vec(any::<u8>(), 0..100)) {
            let body = &body[..body.len().min(usize::from(repr.body_len))];
            let mut buf = [0; 200];
            let len = repr.emit(body, &mut buf).unwrap();
            let frame = Frame::new_checked(&buf[..len]).unwrap();
            prop_assert_eq!(FrameRepr::parse(&frame), Ok(repr));
            prop_assert_eq!(frame.body(), body);
        }

        #[test]
        fn a_flipped_bit_of_the_ipv4_header_is_noticed(repr in any_repr(), bit in 0..8 * IPV4_LEN) {
            let mut buf = [0; 64];
            let len = repr.emit(&[], &mut buf).unwrap();
            buf[ETHERNET_LEN + bit / 8] ^= 1 << (bit % 8);
            let parsed = Frame::new_checked(&buf[..len]).and_then(|f| FrameRepr::parse(&f));
            prop_assert!(parsed.is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Half of the inputs get a valid start, so that the later checks are reached too.
        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), start in any::<bool>()) {
            if start && bytes.len() > 22 {
                put(&mut bytes, 12, ETHERTYPE_IPV4);
                bytes[14] = VERSION_AND_IHL;
                put(&mut bytes, 20, DONT_FRAGMENT);
            }
            if let Ok(frame) = Frame::new_checked(&bytes) {
                let _ = (frame.body(), frame.udp(), FrameRepr::parse(&frame));
            }
        }
    }
}
