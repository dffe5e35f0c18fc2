//! What the traffic of a scenario asks of the fabric, worked out without a run: how much enters and
//! leaves hosts and racks. What links above the racks carry is not looked at.

use std::collections::BTreeMap;

use endpoint::{Framing, UNBOUNDED};
use fabric::{Link, Node, Tier, Topology};
use units::{Dur, HostId, Rate, Time};
use workload::{Destinations, Plan, SizeDist, Start};

use crate::traffic::Traffic;
use crate::transport::Transports;

/// Amounts of something that hosts and racks send and receive.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    sent: Vec<f64>,
    received: Vec<f64>,
    /// Over the uplinks of each rack, to others.
    leaving: Vec<f64>,
    /// Over the same, from others.
    entering: Vec<f64>,
}

/// The link or links that a load fills first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bottleneck {
    /// What to call it.
    pub(crate) name: String,
    /// Its rate, both of several links together.
    pub(crate) rate: Rate,
    /// What is asked of it.
    pub(crate) amount: f64,
}

impl Bottleneck {
    /// How long it takes for the amount, if that is bytes; the share of its rate, if that is bytes
    /// per second.
    pub(crate) fn seconds(&self) -> f64 {
        self.amount * 8.0 / self.rate.0.max(1) as f64
    }
}

impl Load {
    pub(crate) fn new(topology: &Topology) -> Self {
        let (hosts, racks) = (topology.hosts() as usize, topology.racks() as usize);
        Self {
            sent: vec![0.0; hosts],
            received: vec![0.0; hosts],
            leaving: vec![0.0; racks],
            entering: vec![0.0; racks],
        }
    }

    /// What all hosts send.
    pub(crate) fn total(&self) -> f64 {
        self.sent.iter().sum()
    }

    /// What flows without an end get together, bytes per second, as far as hosts' links limit them.
    pub(crate) fn bottlenecked(&self, topology: &Topology) -> f64 {
        let rate = |(host, load): (u32, &f64)| match *load > 0.0 {
            true => topology.receive_rate(HostId(host)).0 as f64 / 8.0,
            false => 0.0,
        };
        (0..).zip(&self.received).map(rate).sum()
    }

    /// From one host to another.
    pub(crate) fn pair(&mut self, topology: &Topology, src: HostId, dst: HostId, amount: f64) {
        self.sent[src.index()] += amount;
        self.received[dst.index()] += amount;
        let (from, to) = (topology.rack(src) as usize, topology.rack(dst) as usize);
        if from != to {
            self.leaving[from] += amount;
            self.entering[to] += amount;
        }
    }

    /// From each of `senders`, `amount` in all, to its destinations.
    pub(crate) fn spread(
        &mut self,
        topology: &Topology,
        senders: &[(HostId, Destinations)],
        amount: f64,
    ) {
        let mut by_list: BTreeMap<usize, (&Destinations, Vec<HostId>)> = BTreeMap::new();
        for (host, to) in senders {
            by_list.entry(to.identity()).or_insert((to, Vec::new())).1.push(*host);
        }
        for (to, senders) in by_list.into_values() {
            for (list, share) in to.groups() {
                self.among(topology, &senders, &list, amount * share);
            }
        }
    }

    /// From each of `senders`, `amount` in all, to every host of `list` but itself the same. In a
    /// time that grows with their number, not with that of pairs.
    fn among(&mut self, topology: &Topology, senders: &[HostId], list: &[HostId], amount: f64) {
        if let [only] = list {
            let others = senders.iter().filter(|sender| *sender != only);
            others.for_each(|&sender| self.pair(topology, sender, *only, amount));
            return;
        }
        let rack = |host: HostId| topology.rack(host) as usize;
        let mut in_rack = vec![0.0; self.leaving.len()];
        list.iter().for_each(|&host| in_rack[rack(host)] += 1.0);
        // What one member gets of all senders, and of those of each rack, were it none of them.
        let (mut each, mut of_rack) = (0.0, vec![0.0; self.leaving.len()]);
        for &host in senders {
            let member = list.binary_search(&host).is_ok();
            let others = list.len() - usize::from(member);
            if others == 0 {
                continue;
            }
            let part = amount / others as f64;
            each += part;
            of_rack[rack(host)] += part;
            self.sent[host.index()] += amount;
            let near = in_rack[rack(host)] - f64::from(u8::from(member));
            self.leaving[rack(host)] += part * (others as f64 - near);
            if member {
                self.received[host.index()] -= part;
            }
        }
        list.iter().for_each(|host| self.received[host.index()] += each);
        for (rack, entering) in self.entering.iter_mut().enumerate() {
            *entering += (each - of_rack[rack]) * in_rack[rack];
        }
    }

    /// As [`Self::spread`], or if `back` from the destinations to each.
    fn spread_either(
        &mut self,
        topology: &Topology,
        senders: &[(HostId, Destinations)],
        (amount, back): (f64, bool),
    ) {
        if back {
            let mut there = Self::new(topology);
            there.spread(topology, senders, amount);
            self.answer(&there);
        } else {
            self.spread(topology, senders, amount);
        }
    }

    /// Add `other`, the other way round: what its hosts receive, these send.
    pub(crate) fn answer(&mut self, other: &Self) {
        let add = |mine: &mut [f64], theirs: &[f64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        };
        add(&mut self.sent, &other.received);
        add(&mut self.received, &other.sent);
        add(&mut self.leaving, &other.entering);
        add(&mut self.entering, &other.leaving);
    }

    /// The most loaded of the hosts' links and racks' uplinks, by time; `None` without a load.
    pub(crate) fn bottleneck(&self, topology: &Topology) -> Option<Bottleneck> {
        let mut worst: Option<Bottleneck> = None;
        let mut look = |amount: f64, rate: Rate, name: &dyn Fn() -> String| {
            let now = Bottleneck { name: String::new(), rate, amount };
            // Sums of shares differ in their last digits: the first of equals is named.
            let more = worst.as_ref().is_none_or(|w| now.seconds() > w.seconds() * (1.0 + 1e-9));
            if amount > 0.0 && rate > Rate(0) && more {
                worst = Some(Bottleneck { name: name(), ..now });
            }
        };
        let links = topology.links();
        for host in (0..topology.hosts()).map(HostId) {
            let up = &links[host.index()];
            look(self.sent[host.index()], up.rate, &|| up.to_string());
            let rate = topology.receive_rate(host);
            look(self.received[host.index()], rate, &|| format!("{} -> {}", up.to, up.from));
        }
        let (up, down) = uplinks(topology);
        for rack in 0..topology.racks() as usize {
            let name = |way: &str| format!("uplinks {way} rack {rack}");
            look(self.leaving[rack], up[rack], &|| name("of"));
            look(self.entering[rack], down[rack], &|| name("to"));
        }
        worst
    }
}

/// The rates of the links from each rack to other switches, and of those back.
fn uplinks(topology: &Topology) -> (Vec<Rate>, Vec<Rate>) {
    // A NIC's ports lead to the racks of its host in all planes.
    let host = |link: &Link| match (link.from, link.to) {
        (Node::Switch(Tier::Nic, _), Node::Host(_)) | (_, Node::Switch(Tier::Nic, _)) => None,
        (Node::Host(host) | Node::Switch(Tier::Nic, host), _) => Some(HostId(host)),
        _ => None,
    };
    let links = topology.links().iter();
    let rack_of: BTreeMap<Node, u32> =
        links.filter_map(|link| Some((link.to, topology.rack(host(link)?)))).collect();
    let mut rates =
        (vec![Rate(0); topology.racks() as usize], vec![Rate(0); topology.racks() as usize]);
    for link in topology.links().iter().filter(|link| link.up) {
        let above = |node: Node| node.tier().is_some_and(|tier| tier != Tier::Nic);
        let switches = above(link.from) && above(link.to);
        if let Some(&rack) = rack_of.get(&link.from).filter(|_| switches) {
            rates.0[rack as usize].0 += link.rate.0;
        }
        if let Some(&rack) = rack_of.get(&link.to).filter(|_| switches) {
            rates.1[rack as usize].0 += link.rate.0;
        }
    }
    rates
}

/// Connections that always have a message.
#[derive(Debug, Clone)]
pub(crate) struct Loop {
    /// How many.
    pub(crate) connections: f64,
    /// The mean size of a message, bytes.
    pub(crate) size: f64,
    /// From the end of a message to the next.
    pub(crate) gap: Dur,
}

/// What all tables ask.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    /// Payload of messages that end, bytes.
    pub(crate) bytes: Load,
    /// Payload of open loops, bytes per second.
    pub(crate) rate: Load,
    /// The same on the wire, with an acknowledgement for each message: the least there is.
    pub(crate) wire: Load,
    /// Flows without an end, and connections that always have a message.
    pub(crate) flows: Load,
    /// The latter, by table.
    pub(crate) loops: Vec<Loop>,
    /// How the transport of the table that is being looked at cuts messages.
    framing: Framing,
    /// Memory of training jobs, bytes.
    pub(crate) jobs: f64,
    /// How many messages are listed one by one.
    pub(crate) listed: u64,
    /// How many of them each wait for another one of the list.
    pub(crate) in_turn: u64,
    /// When the last of them starts.
    pub(crate) last_start: Time,
    /// Until when loops go on, of those that end.
    pub(crate) loops_until: Time,
    /// How many messages open loops begin in a second.
    pub(crate) messages_per_s: f64,
    /// How many packets with payload these take.
    pub(crate) packets_per_s: f64,
    /// How many of which sizes they begin in a second.
    pub(crate) drawn: Vec<(f64, SizeDist)>,
    /// Tables that are left out: those of queries.
    pub(crate) left_out: usize,
}

impl Demand {
    pub(crate) fn of(traffic: &Traffic, transports: &Transports, topology: &Topology) -> Self {
        let none = Load::new(topology);
        let mut demand = Self {
            bytes: none.clone(),
            rate: none.clone(),
            wire: none.clone(),
            flows: none,
            loops: Vec::new(),
            framing: Framing { payload: 1, overhead: 0 },
            jobs: 0.0,
            listed: 0,
            in_turn: 0,
            last_start: Time::ZERO,
            loops_until: Time::ZERO,
            messages_per_s: 0.0,
            packets_per_s: 0.0,
            drawn: Vec::new(),
            left_out: 0,
        };
        for part in &traffic.tables {
            if part.until < Time::NEVER {
                demand.loops_until = demand.loops_until.max(part.until);
            }
            if let Some(transport) = transports.at(part.transport) {
                demand.framing = transport.framing;
            }
            (part.ask)(&mut demand, topology);
        }
        demand
    }

    /// When messages that are listed should be through: four times as long after the last start as
    /// what they have to cross takes for them.
    pub(crate) fn time_needed(&self, topology: &Topology) -> Time {
        let least = self.bytes.bottleneck(topology).map_or(0.0, |busiest| busiest.seconds());
        // Far above any run, and far from overflow.
        self.last_start.saturating_add(Dur((least * 4e12).min(1e18) as u64))
    }

    /// Add open loops: from each of `senders` `per_s` messages of `sizes` in a second; or, for
    /// `answers`, to each.
    pub(crate) fn open_loop(
        &mut self,
        topology: &Topology,
        senders: &[(HostId, Destinations)],
        (per_s, sizes, answers): (f64, &SizeDist, bool),
    ) {
        let header = f64::from(self.framing.overhead);
        let packets = packets(sizes, self.framing);
        let wire = sizes.mean() + packets * header;
        let (rate, on_wire) = (&mut self.rate, &mut self.wire);
        let each = [(rate, sizes.mean(), answers), (on_wire, wire, answers)];
        for (load, bytes, back) in each {
            load.spread_either(topology, senders, (per_s * bytes, back));
        }
        self.wire.spread_either(topology, senders, (per_s * header, !answers));
        let per_s = per_s * senders.len() as f64;
        self.messages_per_s += per_s;
        self.packets_per_s += per_s * packets;
        self.drawn.push((per_s, sizes.clone()));
    }

    /// Add messages that are listed.
    pub(crate) fn list(&mut self, plan: &Plan, topology: &Topology) {
        for flow in &plan.flows {
            let (load, amount) = match flow.len {
                UNBOUNDED => (&mut self.flows, 1.0),
                len => (&mut self.bytes, len as f64),
            };
            load.pair(topology, flow.src, flow.dst, amount);
            if let Start::At(at) = flow.start {
                self.last_start = self.last_start.max(at);
            }
        }
        self.listed += plan.flows.len() as u64;
    }
}

/// How many packets a message of `sizes` takes on average.
fn packets(sizes: &SizeDist, Framing { payload, .. }: Framing) -> f64 {
    const DRAWS: u32 = 512;
    let payload = f64::from(payload.max(1));
    // The mean of what the last packet lacks varies little; that of the sizes is known.
    let lacks = |n: u32| {
        let size = sizes.sample((f64::from(n) + 0.5) / f64::from(DRAWS)) as f64 / payload;
        size.ceil() - size
    };
    sizes.mean() / payload + (0..DRAWS).map(lacks).sum::<f64>() / f64::from(DRAWS)
}
