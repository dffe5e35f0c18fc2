//! Frames between simulated packets and P4: Ethernet and IPv4 as nanotransport.md, section 3.2, has
//! them, then the transport header. (Captures show the frames of `wire::frame`, which carry more.)

use endpoint::{Flags, Packet};
use units::HostId;

use super::meta::ip_of;

/// Bytes of Ethernet and IPv4.
pub const OUTER: usize = 34;

/// `CHOP_FLAG` of `nano.p4`, in the first byte of every transport header.
const CHOP: u8 = wire::nano::flags::CHOP;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const VERSION_IHL: u8 = 0x45;
const TTL: u8 = 64;
/// The IPv4 type of service of the lowest class; classes count the other way.
const TOS_MAX: u8 = 7;
/// Locally administered; the address of a host follows in the low 32 bits.
const MAC_BASE: u64 = 0x0200_0000_0000;

/// The MAC address of a host's NIC, as in `wire::frame`.
#[must_use]
pub const fn mac_of(host: HostId) -> u64 {
    MAC_BASE | ip_of(host) as u64
}

/// The MAC address of the switch port at the other end of every link.
pub const SWITCH_MAC: u64 = MAC_BASE | 1;

/// The traffic class of a type of service, where there are so many `priorities`: zero is the most urgent
/// of them.
#[must_use]
pub const fn class_of(tos: u8, priorities: u8) -> u8 {
    let last = priorities.saturating_sub(1);
    TOS_MAX.saturating_sub(if tos < last { tos } else { last })
}

/// Write the headers of `pkt` as a NIC receives them, payload left out, into `frame`.
pub fn write(pkt: &Packet, frame: &mut Vec<u8>) {
    let mac = |mac: u64| {
        let [_, _, bytes @ ..] = mac.to_be_bytes();
        bytes
    };
    frame.clear();
    frame.extend(mac(mac_of(pkt.dst)));
    frame.extend(mac(SWITCH_MAC));
    frame.extend(ETHERTYPE_IPV4);
    frame.extend([VERSION_IHL, TOS_MAX.saturating_sub(pkt.class)]);
    frame.extend(pkt.wire_len.saturating_sub(14).to_be_bytes());
    // Identification 1, not fragmented; the checksum is not computed.
    frame.extend([0, 1, 0, 0, TTL, pkt.proto, 0, 0]);
    frame.extend(ip_of(pkt.src).to_be_bytes());
    frame.extend(ip_of(pkt.dst).to_be_bytes());
    frame.extend(pkt.header());
    if let (true, Some(first)) = (pkt.flags.has(Flags::TRIMMED), frame.get_mut(OUTER)) {
        *first |= CHOP;
    }
}

/// Read what an egress pipeline has written into `pkt`: protocol, class (of so many `priorities`), length
/// and transport header. `None` if it has not written a frame that a packet can hold.
pub fn read(frame: &[u8], priorities: u8, pkt: &mut Packet) -> Option<()> {
    let header = frame.get(OUTER..)?;
    pkt.hdr.get_mut(..header.len())?.copy_from_slice(header);
    pkt.hdr_len = header.len() as u8;
    pkt.class = class_of(frame[15], priorities);
    pkt.wire_len = u16::from_be_bytes([frame[16], frame[17]]).checked_add(14)?;
    pkt.proto = frame[23];
    Some(())
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
        write(&pkt, &mut frame);
        assert_eq!(frame.len(), 64);
        assert_eq!(frame[..14], [2, 0, 10, 1, 2, 3, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(frame[14..26], [0x45, 1, 0x04, 0x32, 0, 1, 0, 0, 64, 154, 0, 0]);
        assert_eq!(frame[26..34], [10, 0, 0, 3, 10, 1, 2, 3]);
        let mut back = Packet::EMPTY;
        read(&frame, 4, &mut back).unwrap();
        let parts = (back.proto, back.class, back.wire_len, back.hdr);
        assert_eq!(parts, (pkt.proto, pkt.class, pkt.wire_len, pkt.hdr));
        // A trimmed packet reaches the program with CHOP set.
        pkt.flags.set(Flags::TRIMMED);
        write(&pkt, &mut frame);
        assert_eq!(frame[OUTER], 0x11);
    }

    #[test]
    fn what_is_no_frame_is_no_packet() {
        assert_eq!(read(&[0; 33], 8, &mut Packet::EMPTY.clone()), None);
        assert_eq!(
            read(&[0; 34 + 65], 8, &mut Packet::EMPTY.clone()),
            None,
            "64 bytes of header at most"
        );
        assert_eq!([0, 3, 7, 200].map(|tos| class_of(tos, 8)), [7, 4, 0, 0]);
        assert_eq!([0, 3, 7].map(|tos| class_of(tos, 4)), [7, 4, 4]);
    }
}
