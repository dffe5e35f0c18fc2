//! What the traffic of a scenario asks of the fabric, worked out without a run: how much enters and
//! leaves hosts and racks. What links above the racks carry is not looked at.

use std::collections::BTreeMap;

use endpoint::UNBOUNDED;
use fabric::{Node, Topology};
use units::{Dur, HostId, Rate, Time};
use workload::{Arrivals, Destinations, Start};

use crate::traffic::{Part, Traffic};

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
    fn new(topology: &Topology) -> Self {
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
    fn pair(&mut self, topology: &Topology, src: HostId, dst: HostId, amount: f64) {
        self.sent[src.index()] += amount;
        self.received[dst.index()] += amount;
        let (from, to) = (topology.rack(src) as usize, topology.rack(dst) as usize);
        if from != to {
            self.leaving[from] += amount;
            self.entering[to] += amount;
        }
    }

    /// From each of `senders`, `amount` in all, to its destinations.
    fn spread(&mut self, topology: &Topology, senders: &[(HostId, Destinations)], amount: f64) {
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

    /// Add `other`, the other way round: what its hosts receive, these send.
    fn answer(&mut self, other: &Self) {
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
    // Switches with hosts are numbered first, and are all of one tier.
    let rack_of: BTreeMap<Node, u32> = topology
        .links()
        .iter()
        .take(topology.hosts() as usize)
        .filter_map(|link| match link.from {
            Node::Host(host) => Some((link.to, topology.rack(HostId(host)))),
            Node::Switch(..) => None,
        })
        .collect();
    let mut rates =
        (vec![Rate(0); topology.racks() as usize], vec![Rate(0); topology.racks() as usize]);
    for link in topology.links().iter().filter(|link| link.up) {
        let switches = matches!((link.from, link.to), (Node::Switch(..), Node::Switch(..)));
        if let Some(&rack) = rack_of.get(&link.from).filter(|_| switches) {
            rates.0[rack as usize].0 += link.rate.0;
        }
        if let Some(&rack) = rack_of.get(&link.to).filter(|_| switches) {
            rates.1[rack as usize].0 += link.rate.0;
        }
    }
    rates
}

/// What all tables ask.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    /// Payload of messages that end, bytes.
    pub(crate) bytes: Load,
    /// Payload of open loops, bytes per second.
    pub(crate) rate: Load,
    /// Flows without an end, and connections that always have a message.
    pub(crate) flows: Load,
    /// How many messages are listed one by one.
    pub(crate) listed: u64,
    /// When the last of them starts.
    pub(crate) last_start: Time,
    /// Until when loops go on, of those that end.
    pub(crate) loops_until: Time,
    /// How many messages open loops begin in a second.
    pub(crate) messages_per_s: f64,
    /// Tables that are left out: those of queries.
    pub(crate) left_out: usize,
}

impl Demand {
    pub(crate) fn of(traffic: &Traffic, topology: &Topology) -> Self {
        let none = Load::new(topology);
        let mut demand = Self {
            bytes: none.clone(),
            rate: none.clone(),
            flows: none,
            listed: 0,
            last_start: Time::ZERO,
            loops_until: Time::ZERO,
            messages_per_s: 0.0,
            left_out: 0,
        };
        traffic.tables.iter().for_each(|part| demand.add(part, topology));
        demand
    }

    /// When messages that are listed should be through: four times as long after the last start as
    /// what they have to cross takes for them.
    pub(crate) fn time_needed(&self, topology: &Topology) -> Time {
        let least = self.bytes.bottleneck(topology).map_or(0.0, |busiest| busiest.seconds());
        // Far above any run, and far from overflow.
        self.last_start.saturating_add(Dur((least * 4e12).min(1e18) as u64))
    }

    fn add(&mut self, part: &Part, topology: &Topology) {
        let until = match part {
            Part::Plan(_) => Time::NEVER,
            Part::Poisson(spec, _) => spec.until,
            Part::ClosedLoop(spec, _) => spec.until,
            Part::Barrier(spec) => spec.until,
            Part::Calls(spec, _) => spec.until,
            Part::Queries(spec) => spec.until,
        };
        if until < Time::NEVER {
            self.loops_until = self.loops_until.max(until);
        }
        match part {
            Part::Plan(plan) => {
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
            Part::Poisson(spec, senders) => {
                let per_s = 1e12 / spec.mean_gap_ps;
                self.rate.spread(topology, senders, per_s * spec.sizes.mean());
                self.messages_per_s += per_s * senders.len() as f64;
            }
            Part::ClosedLoop(spec, senders) => {
                self.flows.spread(topology, senders, f64::from(spec.connections));
            }
            Part::Barrier(spec) => {
                for &(sender, _) in &spec.senders {
                    self.flows.pair(topology, sender, spec.receiver, 1.0);
                }
            }
            Part::Calls(spec, clients) => match spec.arrivals {
                Arrivals::Poisson(gap_ps) => {
                    let per_s = 1e12 / gap_ps;
                    self.rate.spread(topology, clients, per_s * spec.requests.mean());
                    let mut answers = Load::new(topology);
                    answers.spread(topology, clients, per_s * spec.responses.mean());
                    self.rate.answer(&answers);
                    self.messages_per_s += 2.0 * per_s * clients.len() as f64;
                }
                Arrivals::Closed(_) => {
                    let mut answers = Load::new(topology);
                    answers.spread(topology, clients, f64::from(spec.slots));
                    self.flows.answer(&answers);
                }
            },
            Part::Queries(_) => self.left_out += 1,
        }
    }
}
