//! [`LatencyMeter`]: how long packets take from their first transmission to their acknowledgement.

use endpoint::{Flags, Packet, PacketEvent};
use fabric::{Node, Topology};
use hashbrown::HashMap;
use metrics::PacketLatency;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, Time};

/// Whether a control packet acknowledges the payload that its span names, and nothing else.
pub(crate) type Acknowledges = fn(&Packet) -> bool;

/// What names a packet with payload: its sender, its message and its first byte.
type PacketKey = (HostId, MsgId, u64);

/// Times packets, from what happens to them.
pub(crate) struct LatencyMeter {
    acknowledges: Acknowledges,
    /// The host at the far end of each link, if it is one.
    hosts: Vec<Option<HostId>>,
    /// Packets first transmitted at `from <= t < to` are timed.
    from: Time,
    to: Time,
    /// When each packet not yet acknowledged was first transmitted; also those from before `from`,
    /// which may be transmitted again inside the window.
    first_sent: HashMap<PacketKey, Time, FxBuildHasher>,
    latencies: Vec<Dur>,
}

/// The latencies of a run.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// Ascending.
    pub ascending: Vec<Dur>,
    /// Packets that were not acknowledged when the run ended.
    pub unacknowledged: u64,
}

impl Latencies {
    /// What a summary says of them.
    pub(crate) fn stats(&self) -> PacketLatency {
        PacketLatency::of(&self.ascending, self.unacknowledged)
    }
}

impl LatencyMeter {
    pub(crate) fn new(
        acknowledges: Acknowledges,
        topology: &Topology,
        (from, to): (Time, Time),
    ) -> Self {
        let host = |node| match node {
            Node::Host(host) => Some(HostId(host)),
            Node::Switch(..) | Node::Plane(..) => None,
        };
        Self {
            acknowledges,
            hosts: topology.links().iter().map(|link| host(link.to)).collect(),
            from,
            to,
            first_sent: HashMap::default(),
            latencies: Vec::new(),
        }
    }

    /// Something happened to a packet; as [`endpoint::Observer::packet`].
    pub(crate) fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        match event {
            PacketEvent::Sent => self.sent(at, pkt),
            PacketEvent::Arrived => self.arrived(at, link, pkt),
            _ => {}
        }
    }

    pub(crate) fn finish(mut self) -> Latencies {
        self.latencies.sort_unstable();
        let missing = self.first_sent.values().filter(|&&sent| self.from <= sent);
        let unacknowledged = missing.count() as u64;
        Latencies { ascending: self.latencies, unacknowledged }
    }

    fn sent(&mut self, at: Time, pkt: &Packet) {
        if pkt.carries_payload() && at < self.to {
            let key = (pkt.src, pkt.span.msg, pkt.span.offset);
            self.first_sent.entry(key).or_insert(at);
        }
    }

    fn arrived(&mut self, at: Time, link: u32, pkt: &Packet) {
        let here = self.hosts.get(link as usize).copied().flatten();
        let whole = pkt.flags.has(Flags::CONTROL) && !pkt.flags.has(Flags::BOUNCED);
        if !whole || here != Some(pkt.dst) || !(self.acknowledges)(pkt) {
            return;
        }
        let sent = self.first_sent.remove(&(pkt.dst, pkt.span.msg, pkt.span.offset));
        if let Some(sent) = sent.filter(|&sent| self.from <= sent) {
            self.latencies.push(at.since(sent));
        }
    }
}
