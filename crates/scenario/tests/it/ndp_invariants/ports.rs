//! The invariants of NDP that concern switch ports: I1, I2, I3 and I10 of specs/ndp.md#10.
//!
//! The queues of every port are worked out anew from what happens to packets: when one arrived at a
//! switch, whether it was trimmed there, and when it arrived at the far end of the link that it
//! left by, from which the start of its transmission follows. No code of the simulator's queues is
//! used.

use std::collections::BTreeMap;

use endpoint::{Drop, Flags, Packet, PacketEvent};
use fabric::{Node, Tier, Topology};
use queues::{Capacity, NdpSpec};
use units::{Dur, Time};

/// A packet between two events.
struct Pending {
    /// Where it was last.
    from: Node,
    /// The port it waits at, if that is known.
    link: Option<u32>,
    since: Time,
    /// Whether it had its payload when it came.
    data: bool,
    trimmed: Option<Time>,
    bounced: bool,
    len: u16,
}

/// A packet as it was before what happens to it now.
#[derive(Clone, Copy)]
struct Seen {
    whole: bool,
    bounced: bool,
    /// It has been sent. Of copies that are alike a queue sends the first and loses the last.
    sent: bool,
}

impl Seen {
    fn of(pkt: &Packet) -> Self {
        let (whole, bounced) = (pkt.carries_payload(), pkt.flags.has(Flags::BOUNCED));
        Self { whole, bounced, sent: false }
    }
}

/// One packet's stay at one port.
struct Stay {
    since: Time,
    data: bool,
    trimmed: Option<Time>,
    /// When its transmission began and ended; `None` if it was turned back or dropped.
    sent: Option<(Time, Time)>,
    len: u16,
    len_before: u16,
}

/// Violations of one invariant beyond these are not kept.
const KEPT: usize = 5;

/// The checker.
pub(crate) struct Ports {
    topology: Topology,
    queue: NdpSpec,
    /// By packet and path: copies of a packet are alike but for the path.
    pending: BTreeMap<(u64, u32), Vec<Pending>>,
    stays: BTreeMap<u32, Vec<Stay>>,
    violations: Vec<String>,
    /// Whether two copies that are alike may leave a switch by different ports: then which of them
    /// is where cannot be told, and nothing is judged that comes later.
    switches_choose: bool,
    judged_until: Time,
    /// How many services were contested between the two queues.
    pub(crate) contested: u64,
}

impl Ports {
    pub(crate) fn new(topology: Topology, queue: NdpSpec, switches_choose: bool) -> Self {
        let (pending, stays, violations) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self {
            topology,
            queue,
            pending,
            stays,
            violations,
            switches_choose,
            judged_until: Time::NEVER,
            contested: 0,
        }
    }

    pub(crate) fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        match event {
            PacketEvent::Sent => self.wait(at, self.topology.links()[link as usize].from, pkt),
            PacketEvent::Arrived => self.arrived(at, link, pkt),
            PacketEvent::Trimmed => self.trimmed(at, link, pkt),
            PacketEvent::Bounced => self.bounced(at, link, pkt),
            PacketEvent::Dropped(Drop::Full) => self.dropped(at, link, pkt),
            PacketEvent::Dropped(Drop::Dead | Drop::Lossy) => {
                self.leave(at, link, pkt);
            }
            PacketEvent::Marked | PacketEvent::FlowControl => {}
        }
    }

    /// A packet has come to `node`, and will be sent on.
    fn wait(&mut self, at: Time, node: Node, pkt: &Packet) {
        self.pending.entry((pkt.key, pkt.path)).or_default().push(Pending {
            from: node,
            link: None,
            since: at,
            data: pkt.carries_payload(),
            trimmed: None,
            bounced: pkt.flags.has(Flags::BOUNCED),
            len: pkt.wire_len,
        });
    }

    /// I3: a packet is where it was last seen, as it was seen. Nothing appears, and with the count
    /// of what is in flight at the end nothing disappears.
    fn i3_take(&mut self, at: Time, link: u32, pkt: &Packet, seen: Seen) -> Option<Pending> {
        let from = self.topology.links()[link as usize].from;
        let there = |p: &Pending| {
            let is_whole = p.data && p.trimmed.is_none();
            let same = is_whole == seen.whole && p.bounced == seen.bounced;
            same && p.from == from && p.link.is_none_or(|l| l == link)
        };
        let all = self.pending.get_mut(&(pkt.key, pkt.path));
        let found = all.and_then(|all| {
            if self.switches_choose && all.iter().filter(|p| there(p)).count() > 1 {
                self.judged_until = all.iter().map(|p| p.since).fold(self.judged_until, Time::min);
            }
            let mut places = all.iter();
            let i = if seen.sent { places.position(there) } else { places.rposition(there) };
            i.map(|i| all.remove(i))
        });
        if found.is_none() {
            let name = self.topology.links()[link as usize];
            self.violated("I3", at, &format!("a packet on {name} that was not at {from}"));
        }
        found
    }

    /// A packet has come to the end of `link`.
    fn arrived(&mut self, at: Time, link: u32, pkt: &Packet) {
        self.leave(at, link, pkt);
        let to = self.topology.links()[link as usize].to;
        if to.is_switch() {
            self.wait(at, to, pkt);
        }
    }

    /// A packet that has come to the end of `link` left its port some time ago.
    fn leave(&mut self, at: Time, link: u32, pkt: &Packet) {
        let Some(p) = self.i3_take(at, link, pkt, Seen { sent: true, ..Seen::of(pkt) }) else {
            return;
        };
        let about = self.topology.links()[link as usize];
        if matches!(about.from, Node::Host(_)) {
            return;
        }
        let latency = match about.to {
            Node::Host(_) | Node::Switch(Tier::Nic, _) => Dur::ZERO,
            Node::Switch(..) | Node::Plane(..) => self.topology.switch_latency(),
        };
        let end = Time(at.0 - about.delay.0 - latency.0);
        let start = Time(end.0 - about.rate.serialise(u64::from(pkt.wire_len)).0);
        self.stayed(link, &p, Some((start, end)), pkt.wire_len);
    }

    fn stayed(&mut self, link: u32, p: &Pending, sent: Option<(Time, Time)>, len: u16) {
        let Pending { since, data, trimmed, len: len_before, .. } = *p;
        let stay = Stay { since, data, trimmed, sent, len, len_before };
        self.stays.entry(link).or_default().push(stay);
    }

    fn trimmed(&mut self, at: Time, link: u32, pkt: &Packet) {
        let Some(mut p) = self.i3_take(at, link, pkt, Seen { whole: true, ..Seen::of(pkt) }) else {
            return;
        };
        (p.link, p.trimmed) = (Some(link), Some(at));
        self.pending.entry((pkt.key, pkt.path)).or_default().push(p);
    }

    /// I3: only a header on its way out is turned back, and only if the queue is to do that.
    fn bounced(&mut self, at: Time, link: u32, pkt: &Packet) {
        let Some(p) = self.i3_take(at, link, pkt, Seen { bounced: false, ..Seen::of(pkt) }) else {
            return;
        };
        if p.bounced || !pkt.flags.has(Flags::TRIMMED) || !self.queue.bounce {
            self.violated("I3", at, "a bounce of what must not bounce");
        }
        self.stayed(link, &p, None, pkt.wire_len);
        self.wait(at, p.from, pkt);
    }

    /// I3: payload is trimmed, headers bounce; only control and what has bounced is dropped.
    fn dropped(&mut self, at: Time, link: u32, pkt: &Packet) {
        let Some(p) = self.i3_take(at, link, pkt, Seen::of(pkt)) else {
            return;
        };
        let header = pkt.flags.has(Flags::TRIMMED) && !p.bounced;
        if pkt.carries_payload() || header && self.queue.bounce {
            self.violated("I3", at, "a full queue has dropped a header of data");
        }
        self.stayed(link, &p, None, pkt.wire_len);
    }

    fn violated(&mut self, id: &str, at: Time, what: &str) {
        let same = format!("{id} at ");
        if self.violations.iter().filter(|v| v.starts_with(&same)).count() < KEPT {
            self.violations.push(format!("{same}{at}: {what}"));
        }
    }

    /// What was violated. `in_flight` is how many packets the fabric says it still holds.
    pub(crate) fn finish(mut self, in_flight: u64) -> (Vec<String>, u64) {
        let left: Vec<&Pending> = self.pending.values().flatten().collect();
        if left.len() as u64 != in_flight {
            let what =
                format!("I3: {} packets have not arrived, {in_flight} are under way", left.len());
            self.violations.push(what);
        }
        // Where a packet waits that has not been sent is not known: what came after it is not
        // judged.
        let at_switch = left.iter().filter(|p| p.from.is_switch());
        let until = at_switch.map(|p| p.since).fold(self.judged_until, Time::min);
        for (link, stays) in std::mem::take(&mut self.stays) {
            self.port(link, &stays, until);
        }
        (self.violations, self.contested)
    }

    /// Go through everything that happened at one port, in order.
    fn port(&mut self, link: u32, stays: &[Stay], until: Time) {
        let name = self.topology.links()[link as usize].to_string();
        let slack = excess(stays);
        let mut port = Port::default();
        let mut changes = changes(stays);
        changes.retain(|change| change.at < until);
        for (i, change) in changes.iter().enumerate() {
            if change.what == What::Start {
                self.i2_ten_headers_to_a_packet(change.at, &name, &mut port, change.data);
                self.i10_data_has_its_share(change.at, &name, &mut port, change.data);
            }
            port.apply(change);
            if changes.get(i + 1).is_none_or(|next| next.at > change.at) {
                self.i1_within_capacity(change.at, &name, &port, slack);
            }
        }
    }

    /// I1: neither queue holds more than its capacity, the packet in service included. Where
    /// packets differ in length, two shorter victims may not make room enough: less than one packet
    /// more.
    fn i1_within_capacity(&mut self, at: Time, name: &str, port: &Port, slack: i64) {
        let exceeds = |capacity, packets: i64, bytes: i64, slack: i64| match capacity {
            Capacity::Packets(n) => packets > i64::from(n),
            Capacity::Bytes(n) => bytes > i64::from(n) + slack,
        };
        let Port { data, data_bytes, headers, header_bytes, .. } = *port;
        if exceeds(self.queue.data_capacity, data, data_bytes, slack)
            || exceeds(self.queue.header_capacity, headers, header_bytes, 0)
        {
            let what = format!(
                "{name}: {data} packets of {data_bytes} B, {headers} headers of {header_bytes} B"
            );
            self.violated("I1", at, &what);
        }
    }

    /// I2: of any 11 services while both queues wait, exactly one is data (10 to 1).
    fn i2_ten_headers_to_a_packet(&mut self, at: Time, name: &str, port: &mut Port, data: bool) {
        if port.data_waiting == 0 || port.headers_waiting == 0 {
            return;
        }
        self.contested += 1;
        let round = usize::from(self.queue.header_weight) + usize::from(self.queue.data_weight);
        port.round.push_back(data);
        if port.round.len() > round {
            port.round.pop_front();
        }
        let served = port.round.iter().filter(|data| **data).count();
        if port.round.len() == round && served != usize::from(self.queue.data_weight) {
            let what = format!("{name}: {served} packets in a round: {:?}", port.round);
            self.violated("I2", at, &what);
        }
    }

    /// I10: while data waits, at most ten headers are sent to each packet but for one round,
    /// whatever is offered: of full packets of M bytes and headers of 64, a share of M / (M + 640)
    /// at least, 93.4 % at 9 KB.
    fn i10_data_has_its_share(&mut self, at: Time, name: &str, port: &mut Port, data: bool) {
        if port.data_waiting == 0 {
            port.share = (0, 0);
            return;
        }
        port.share.0 += u64::from(data);
        port.share.1 += u64::from(!data);
        let (packets, headers) = port.share;
        let (h, d) = (u64::from(self.queue.header_weight), u64::from(self.queue.data_weight));
        if headers * d > h * (packets + d) {
            let what = format!("{name}: {headers} headers to {packets} packets while data waits");
            self.violated("I10", at, &what);
        }
    }
}

/// By how much a queue counted in bytes may be over: its longest packet, if they differ in length.
fn excess(stays: &[Stay]) -> i64 {
    let lengths = || stays.iter().filter(|s| s.data).map(|s| s.len_before);
    let (min, max) = (lengths().min(), lengths().max());
    if min == max { 0 } else { max.map_or(0, i64::from) }
}

/// What can happen at a port, in the order in which it does at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A packet has been sent: it is gone.
    End,
    /// The transmission of a packet that waited begins.
    Start,
    /// A packet joins a queue.
    Join,
    /// A packet leaves a queue unsent: it is trimmed, turned back or dropped.
    Quit,
}

struct Change {
    at: Time,
    what: What,
    /// Of the data queue, or of the header queue.
    data: bool,
    len: i64,
    /// It waits (does not go straight out).
    waits: bool,
}

/// Everything that happened at a port, in order.
fn changes(stays: &[Stay]) -> Vec<Change> {
    let mut all = Vec::new();
    for stay in stays {
        let start = stay.sent.map(|(start, _)| start);
        let mut push = |at, what, data, len: u16| {
            let waits = start != Some(stay.since);
            all.push(Change { at, what, data, len: i64::from(len), waits });
        };
        // Trimmed on arrival: it was never in the data queue.
        let data = stay.data && stay.trimmed != Some(stay.since);
        let now_data = stay.data && stay.trimmed.is_none();
        let Some((start, end)) = stay.sent else {
            // Turned back or dropped as it came, or as a victim in the data queue.
            if let Some(trimmed) = stay.trimmed.filter(|_| data) {
                push(stay.since, What::Join, true, stay.len_before);
                push(trimmed, What::Quit, true, stay.len_before);
            }
            continue;
        };
        push(stay.since, What::Join, data, if data { stay.len_before } else { stay.len });
        if let Some(trimmed) = stay.trimmed.filter(|_| data) {
            push(trimmed, What::Quit, true, stay.len_before);
            push(trimmed, What::Join, false, stay.len);
        }
        if start > stay.since {
            push(start, What::Start, now_data, stay.len);
        }
        push(end, What::End, now_data, stay.len);
    }
    all.sort_by_key(|change| (change.at, change.what));
    all
}

/// The queues of a port. Waiting ones are those not in service.
#[derive(Default)]
struct Port {
    data: i64,
    data_bytes: i64,
    data_waiting: i64,
    headers: i64,
    header_bytes: i64,
    headers_waiting: i64,
    /// The latest contested services: whether they were data.
    round: std::collections::VecDeque<bool>,
    /// Packets and headers sent while data waited.
    share: (u64, u64),
}

impl Port {
    fn apply(&mut self, change: &Change) {
        let (held, waiting) = match change.what {
            What::Join => (1, i64::from(change.waits)),
            What::Quit => (-1, -i64::from(change.waits)),
            What::Start => (0, -1),
            What::End => (-1, 0),
        };
        let (packets, bytes, waits) = if change.data {
            (&mut self.data, &mut self.data_bytes, &mut self.data_waiting)
        } else {
            (&mut self.headers, &mut self.header_bytes, &mut self.headers_waiting)
        };
        *packets += held;
        *bytes += held * change.len;
        *waits += waiting;
    }
}
