//! Frames between simulated packets and P4: Ethernet and IPv4 as specs/nanotransport.md#3.2, has
//! them, then the transport header. (Captures show the frames of `wire::frame`, which carry more.)

use endpoint::{Flags, HDR_MAX, Packet};
use thiserror::Error;
use units::HostId;

use super::meta::ip_of;

/// Bytes of Ethernet and IPv4.
pub const OUTER: usize = 34;
/// Bytes of Ethernet.
const ETHERNET: u16 = 14;

/// `CHOP_FLAG` of `nano.p4`, in the first byte of every transport header.
const CHOP: u8 = wire::nano::flags::CHOP;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const VERSION_IHL: u8 = 0x45;
const TTL: u8 = 64;
/// The IPv4 type of service of the lowest class; classes count the other way.
const TOS_MAX: u8 = 7;
/// These bits of a type of service say that it is a codepoint for local use (RFC 2474, section 6)
/// with ECN (RFC 3168) below: the class, whether switches write telemetry, these, ECN. Without them
/// it is a rank, as in the prototype.
const LOCAL_USE: u8 = 0b0000_1100;
const TELEMETRY: u8 = 0b0001_0000;
const CLASS_SHIFT: u8 = 5;
const ECN: u8 = 0b11;
const NOT_ECT: u8 = 0b00;
const ECT: u8 = 0b10;
const CE: u8 = 0b11;
/// Locally administered; the address of a host follows in the low 32 bits.
const MAC_BASE: u64 = 0x0200_0000_0000;

/// The MAC address of a host's NIC, as in `wire::frame`.
#[must_use]
pub const fn mac_of(host: HostId) -> u64 {
    MAC_BASE | ip_of(host) as u64
}

/// The MAC address of the switch port at the other end of every link.
pub const SWITCH_MAC: u64 = MAC_BASE | 1;

/// The traffic class of a type of service, where there are so many `priorities`: rank zero is the
/// most urgent of them.
#[must_use]
pub const fn class_of(tos: u8, priorities: u8) -> u8 {
    let last = priorities.saturating_sub(1);
    let rank = match tos & LOCAL_USE {
        LOCAL_USE => TOS_MAX - (tos >> CLASS_SHIFT),
        _ => tos,
    };
    TOS_MAX.saturating_sub(if rank < last { rank } else { last })
}

/// The type of service of a packet: one for local use if it has anything to say of ECN or
/// telemetry.
const fn tos_of(pkt: &Packet) -> u8 {
    let telemetry = if pkt.flags.has(Flags::INT) { TELEMETRY } else { 0 };
    let ecn = match (pkt.flags.has(Flags::ECT), pkt.flags.has(Flags::CE)) {
        (_, true) => CE,
        (true, false) => ECT,
        (false, false) => NOT_ECT,
    };
    match telemetry | ecn {
        0 => TOS_MAX.saturating_sub(pkt.class),
        says => pkt.class << CLASS_SHIFT | LOCAL_USE | says,
    }
}

/// What a type of service asks switches for, or says.
const fn flags_of(tos: u8) -> Flags {
    if tos & LOCAL_USE != LOCAL_USE {
        return Flags(0);
    }
    let telemetry = if tos & TELEMETRY == 0 { Flags(0) } else { Flags::INT };
    telemetry.with(match tos & ECN {
        NOT_ECT => Flags(0),
        CE => Flags::ECT.with(Flags::CE),
        _ => Flags::ECT,
    })
}

/// Why what an egress pipeline has written is no frame of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Ethernet and IPv4 are not there.
    #[error("it has {0} bytes, Ethernet and IPv4 are {OUTER}")]
    Short(usize),
    /// The transport header does not fit a packet.
    #[error("its transport header has {0} bytes, {HDR_MAX} are possible")]
    LongHeader(usize),
    /// A field of Ethernet or IPv4 is not that of the packet.
    #[error("its `{field}` is {wrote:#x}, that of the packet is {wanted:#x}")]
    Field {
        /// Which.
        field: &'static str,
        /// What the program wrote.
        wrote: u64,
        /// What it must be.
        wanted: u64,
    },
}

/// Write the headers of `pkt` as a NIC receives them behind so many `switches`, payload left out,
/// into `frame`.
pub fn write(pkt: &Packet, switches: u32, frame: &mut Vec<u8>) {
    let mac = |mac: u64| {
        let [_, _, bytes @ ..] = mac.to_be_bytes();
        bytes
    };
    frame.clear();
    frame.extend(mac(mac_of(pkt.dst)));
    frame.extend(mac(SWITCH_MAC));
    frame.extend(ETHERTYPE_IPV4);
    frame.extend([VERSION_IHL, tos_of(pkt)]);
    frame.extend(pkt.wire_len.saturating_sub(14).to_be_bytes());
    // Identification 1, not fragmented; the checksum is not computed.
    let ttl = TTL.saturating_sub(switches.min(TTL.into()) as u8);
    frame.extend([0, 1, 0, 0, ttl, pkt.proto, 0, 0]);
    frame.extend(ip_of(pkt.src).to_be_bytes());
    frame.extend(ip_of(pkt.dst).to_be_bytes());
    frame.extend(pkt.header());
    if let (true, Some(first)) = (pkt.flags.has(Flags::TRIMMED), frame.get_mut(OUTER)) {
        *first |= CHOP;
    }
}

/// Read what an egress pipeline has written into `pkt`, whose source, destination, protocol and
/// payload (`span`) are known: class (of so many `priorities`), ECN, telemetry, length and
/// transport header.
///
/// # Errors
/// It is no frame that a packet can hold, or not of this packet: no peer would understand it.
pub fn read(frame: &[u8], priorities: u8, pkt: &mut Packet) -> Result<(), FrameError> {
    let header = frame.get(OUTER..).ok_or(FrameError::Short(frame.len()))?;
    let to = pkt.hdr.get_mut(..header.len()).ok_or(FrameError::LongHeader(header.len()))?;
    to.copy_from_slice(header);
    pkt.hdr_len = header.len() as u8;
    pkt.class = class_of(frame[15], priorities);
    pkt.flags.set(flags_of(frame[15]));
    let total_len = u16::from_be_bytes([frame[16], frame[17]]);
    pkt.wire_len = total_len.saturating_add(ETHERNET);
    check(frame, pkt)
}

/// Whether the fields of Ethernet and IPv4 that follow from `pkt` are in `frame`.
fn check(frame: &[u8], pkt: &Packet) -> Result<(), FrameError> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    // No packet is without payload, so that no frame is as short as a beat: where there is none, it
    // has a byte of nothing, in control packets any number.
    let total_len = number(&frame[16..18]);
    let headers = (frame.len() - usize::from(ETHERNET)) as u64;
    let least = headers + u64::from(pkt.span.len.max(1));
    let padded = pkt.flags.has(Flags::CONTROL) && total_len > least;
    let fields = [
        ("ethernet.ether_type", &frame[12..14], number(&ETHERTYPE_IPV4)),
        ("ipv4.version_ihl", &frame[14..15], VERSION_IHL.into()),
        ("ipv4.total_len", &frame[16..18], if padded { total_len } else { least }),
        ("ipv4.protocol", &frame[23..24], pkt.proto.into()),
        ("ipv4.src", &frame[26..30], ip_of(pkt.src).into()),
        ("ipv4.dst", &frame[30..34], ip_of(pkt.dst).into()),
    ];
    let wrong = fields.into_iter().find(|(_, wrote, wanted)| number(wrote) != *wanted);
    match wrong {
        None => Ok(()),
        Some((field, wrote, wanted)) => {
            Err(FrameError::Field { field, wrote: number(wrote), wanted })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nano::{Kind, Protocol, Repr};

    /// 14 + 20 + 30 = 64 bytes: one beat of the pipeline.
    #[test]
    fn a_frame_is_one_beat_and_reads_back() {
        let header = Repr {
            kind: Kind::Data { chopped: false },
            src_context: 1,
            dst_context: 2,
            msg_len: 3000,
            pkt_offset: 1,
            credit: 0,
            grant_prio: 0,
            tx_msg_id: 4,
            buf_ptr: 5,
            buf_size_class: 6,
        };
        let mut pkt = Packet { proto: 154, class: 6, wire_len: 1088, ..Packet::EMPTY };
        (pkt.src, pkt.dst, pkt.hdr_len) = (HostId(3), HostId(0x01_0203), 30);
        pkt.hdr[..30].copy_from_slice(&header.to_bytes(Protocol::Homa));
        let mut frame = Vec::new();
        write(&pkt, 0, &mut frame);
        assert_eq!(frame.len(), 64);
        assert_eq!(frame[..14], [2, 0, 10, 1, 2, 3, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(frame[14..26], [0x45, 1, 0x04, 0x32, 0, 1, 0, 0, 64, 154, 0, 0]);
        assert_eq!(frame[26..34], [10, 0, 0, 3, 10, 1, 2, 3]);
        pkt.span.len = 1024;
        let known = Packet { hdr: Packet::EMPTY.hdr, hdr_len: 0, class: 0, wire_len: 0, ..pkt };
        let mut back = known;
        read(&frame, 4, &mut back).unwrap();
        let parts = (back.class, back.wire_len, back.hdr);
        assert_eq!(parts, (pkt.class, pkt.wire_len, pkt.hdr));
        // Any other value in a field that follows from the packet is refused.
        for (at, field) in [
            (12, "ethernet.ether_type"),
            (14, "ipv4.version_ihl"),
            (16, "ipv4.total_len"),
            (17, "ipv4.total_len"),
            (23, "ipv4.protocol"),
            (29, "ipv4.src"),
            (30, "ipv4.dst"),
        ] {
            frame[at] ^= 1;
            let error = read(&frame, 4, &mut known.clone()).unwrap_err();
            assert!(matches!(error, FrameError::Field { field: f, .. } if f == field), "{error}");
            frame[at] ^= 1;
        }
        // A trimmed packet reaches the program with CHOP set.
        pkt.flags.set(Flags::TRIMMED);
        write(&pkt, 3, &mut frame);
        assert_eq!((frame[OUTER], frame[22]), (0x11, 61), "three switches");
    }

    /// Class 5, telemetry, a mark: 101 1 11 11. A packet with neither has its rank.
    #[test]
    fn a_type_of_service_for_local_use_says_ecn_and_telemetry() {
        let all = Flags::INT.with(Flags::ECT).with(Flags::CE);
        let mut frame = Vec::new();
        for (flags, tos) in [
            (all, 0b1011_1111),
            (Flags::ECT, 0b1010_1110),
            (Flags::INT, 0b1011_1100),
            (Flags(0), 0b0000_0010),
        ] {
            write(&Packet { class: 5, flags, wire_len: 35, ..Packet::EMPTY }, 1, &mut frame);
            assert_eq!(frame[15], tos);
            let mut back = Packet::EMPTY;
            read(&frame, 8, &mut back).unwrap();
            assert_eq!((back.class, back.flags), (5, flags));
        }
        assert_eq!(class_of(0b0010_1100, 4), 4, "the last of four is class 4");
    }

    #[test]
    fn what_is_no_frame_is_no_packet() {
        let refused = |frame: &[u8]| read(frame, 8, &mut Packet::EMPTY.clone()).unwrap_err();
        assert_eq!(refused(&[0; 33]), FrameError::Short(33));
        assert_eq!(refused(&[0; 34 + 65]), FrameError::LongHeader(65));
        assert_eq!([0, 3, 7, 200].map(|tos| class_of(tos, 8)), [7, 4, 0, 0]);
        assert_eq!([0, 3, 7].map(|tos| class_of(tos, 4)), [7, 4, 4]);
    }
}
