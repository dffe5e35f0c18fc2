//! Frames in the switch: what a queue wants to know of one, and where its bytes are meanwhile.

use endpoint::{Flags, Packet};
use units::HostId;
use wire::frame::{self, Ecn, Frame};
use wire::shim::{Datagram, ShimRepr};

/// EtherTypes (IEEE 802.3): ARP, of which the switch reads for whom it asks (RFC 826).
const ARP: [u8; 2] = [0x08, 0x06];
/// Where an ARP packet over Ethernet names its sender and its target.
const ARP_SENDER: std::ops::Range<usize> = 28..32;
const ARP_TARGET: std::ops::Range<usize> = 38..42;

/// Bytes of a long frame, with all its headers.
const LONG: usize = 9_300;

/// The packet in `bytes`, a frame from Ethernet on. None if it names no hosts.
///
/// A Trimline datagram is what its shim says: it counts `wire_len` bytes, as in the simulator, and
/// takes the path that the shim names. Anything else counts its IP packet and is control: it can be
/// lost or marked, but not trimmed. The class of either is its DSCP.
pub(crate) fn packet(bytes: &[u8]) -> Option<Packet> {
    let Ok(frame) = Frame::new_checked(bytes) else { return arp(bytes) };
    let ip = frame.ipv4();
    let class = frame::class_of(ip[1]);
    if let Some(pkt) = frame.udp().and_then(|_| of_datagram(frame.body())) {
        return Some(Packet { class, ..pkt });
    }
    let ecn = match Ecn::from_bits(ip[1]) {
        Ecn::NotCapable => Flags(0),
        Ecn::Marked => Flags::ECT.with(Flags::CE),
        Ecn::Capable | Ecn::Capable1 => Flags::ECT,
    };
    Some(Packet {
        src: frame::host(&ip[12..16]).ok()?,
        dst: frame::host(&ip[16..20]).ok()?,
        proto: ip[9],
        class,
        path: ports(frame.body(), frame.udp()),
        wire_len: u16::from_be_bytes([ip[2], ip[3]]),
        flags: Flags::CONTROL.with(ecn),
        ..Packet::EMPTY
    })
}

/// The packet in a whole Trimline datagram.
fn of_datagram(datagram: &[u8]) -> Option<Packet> {
    let datagram = Datagram::new_checked(datagram).ok()?;
    let pkt = Packet::from_shim(&ShimRepr::parse(&datagram), datagram.header());
    let whole = datagram.payload().len() == pkt.payload_len() as usize;
    // One that names fewer bytes than it has would take the port's time from others.
    (whole && u32::from(pkt.wire_len) > pkt.payload_len()).then_some(pkt)
}

/// The entropy of a flow: its ports, where UDP and TCP have them.
fn ports(body: &[u8], udp: Option<&[u8]>) -> u32 {
    let ports = udp.unwrap_or(body).first_chunk::<4>();
    ports.map_or(0, |ports| u32::from_be_bytes(*ports))
}

/// An ARP packet goes where its target is.
fn arp(bytes: &[u8]) -> Option<Packet> {
    if bytes.get(12..14)? != ARP {
        return None;
    }
    let host = |at: std::ops::Range<usize>| frame::host(bytes.get(at)?).ok();
    let (src, dst): (HostId, HostId) = (host(ARP_SENDER)?, host(ARP_TARGET)?);
    let wire_len = u16::try_from(bytes.len()).ok()?;
    Some(Packet { src, dst, wire_len, flags: Flags::CONTROL, ..Packet::EMPTY })
}

/// A frame in the switch.
pub(crate) struct Held {
    pub(crate) pkt: Packet,
    pub(crate) bytes: Vec<u8>,
    /// It could not be rewritten as its queue wanted: it is not sent.
    pub(crate) broken: bool,
}

/// The frames in the switch, by handle. Memory is kept and used again.
#[derive(Default)]
pub(crate) struct Frames {
    held: Vec<Held>,
    free: Vec<u32>,
}

impl Frames {
    /// Have memory for `count` frames, and have the kernel give it now: the first frames of a run,
    /// which come all at once, do not wait for it.
    pub(crate) fn prepare(&mut self, count: usize) {
        let any = [1; LONG];
        let made: Vec<u32> = (0..count).map(|_| self.insert(Packet::EMPTY, &any)).collect();
        self.free.extend(made);
    }

    pub(crate) fn insert(&mut self, pkt: Packet, bytes: &[u8]) -> u32 {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.held.push(Held { pkt, bytes: Vec::new(), broken: false });
            self.held.len() as u32 - 1
        });
        let held = &mut self.held[handle as usize];
        (held.pkt, held.broken) = (pkt, false);
        held.bytes.clear();
        held.bytes.extend_from_slice(bytes);
        handle
    }

    pub(crate) fn get(&self, handle: u32) -> &Held {
        &self.held[handle as usize]
    }

    pub(crate) fn get_mut(&mut self, handle: u32) -> &mut Held {
        &mut self.held[handle as usize]
    }

    /// The frame is gone; its handle is another's from the next `insert` on.
    pub(crate) fn free(&mut self, handle: u32) {
        self.free.push(handle);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.held.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_holds_nothing_and_is_used_first() {
        let mut frames = Frames::default();
        frames.prepare(2);
        assert_eq!((frames.len(), frames.held.len()), (0, 2));
        let all = [1, 2, 3].map(|n| frames.insert(Packet::EMPTY, &[n; 70]));
        assert_eq!((frames.len(), frames.held.len()), (3, 3));
        assert_eq!(all.map(|at| frames.get(at).bytes[69]), [1, 2, 3]);
    }
}
