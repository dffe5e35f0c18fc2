//! Putting a topology together, node by node in the order in which links are numbered.

use std::ops::Range;

use units::Dur;

use super::{Home, Link, LinkSpec, Node, Shape, Switch, Tier, Topology};

/// Collects nodes and links in order.
pub(super) struct Builder {
    topology: Topology,
}

/// Racks in pods, below their aggregation switches.
#[derive(Clone, Copy)]
pub(super) struct Racks {
    pub(super) pods: u32,
    pub(super) tors_per_pod: u32,
    pub(super) hosts_per_tor: u32,
    pub(super) aggs_per_pod: u32,
    pub(super) host_link: LinkSpec,
    /// Between ToRs and aggregation switches.
    pub(super) uplink: LinkSpec,
}

impl Builder {
    pub(super) fn new(kind: &'static str, hosts: u32) -> Self {
        let topology = Topology {
            kind,
            links: Vec::new(),
            homes: Vec::with_capacity(hosts as usize),
            switches: Vec::new(),
            aggs: 0,
            cores_per_agg: 0,
            digits: [1; 2],
            agg_downs: 0,
            switches_in: [0; Tier::ALL.len()],
            shape: Shape::Tree,
            switch_latency: Dur::ZERO,
            switch_slot: None,
            slot_heap: false,
            mtu: 1500,
            uneven: false,
            slow_core: false,
            listed: Vec::new(),
        };
        Self { topology }
    }

    pub(super) fn link(&mut self, from: Node, to: Node, spec: LinkSpec) {
        let LinkSpec { rate, delay } = spec;
        self.topology.links.push(Link { from, to, rate, delay, up: true });
    }

    /// Begin a switch: its down ports follow.
    pub(super) fn switch(&mut self, tier: Tier, pod: u32, index: u32) {
        let down = self.topology.links.len() as u32;
        self.topology.switches_in[tier as usize] += 1;
        let (pod, index) = (pod as u16, index as u16);
        self.topology.switches.push(Switch { tier, pod, index, down, up: down, ups: 0 });
    }

    /// The up ports of the last switch follow.
    pub(super) fn ups_begin(&mut self, ups: u32) {
        let up = self.topology.links.len() as u32;
        if let Some(switch) = self.topology.switches.last_mut() {
            switch.up = up;
            switch.ups = ups;
        }
    }

    /// The next host hangs at down port `slot` of ToR `tor`.
    pub(super) fn home(&mut self, tor: u32, slot: usize, pod: u32) {
        let rack = self.topology.switches.last().map_or(0, |tor| tor.index);
        let home =
            Home { below: [tor, pod, 0], down: [slot as u16, rack, pod as u16], tor_downs: 0 };
        self.topology.homes.push(home);
    }

    /// The links of `hosts` hosts to their ToRs.
    pub(super) fn hosts(&mut self, hosts: u32, link: LinkSpec, tor_of: impl Fn(u32) -> u32) {
        for host in 0..hosts {
            self.link(Node::Host(host), Node::Switch(Tier::Tor, tor_of(host)), link);
        }
    }

    /// Begin ToR `tor`, the `index`-th of its pod, with its links to `hosts`.
    pub(super) fn tor(
        &mut self,
        (tor, pod, index): (u32, u32, u32),
        hosts: Range<u32>,
        link: LinkSpec,
    ) {
        self.switch(Tier::Tor, pod, index);
        for (slot, host) in hosts.enumerate() {
            self.home(tor, slot, pod);
            self.link(Node::Switch(Tier::Tor, tor), Node::Host(host), link);
        }
    }

    /// The links of all hosts, and every ToR with its hosts and its uplinks, one to each
    /// aggregation switch of its pod.
    pub(super) fn racks(&mut self, racks: &Racks) {
        let Racks { pods, tors_per_pod, hosts_per_tor, aggs_per_pod, host_link, uplink } = *racks;
        let tors = pods * tors_per_pod;
        self.hosts(tors * hosts_per_tor, host_link, |host| host / hosts_per_tor);
        for tor in 0..tors {
            let (pod, index) = (tor / tors_per_pod, tor % tors_per_pod);
            let me = Node::Switch(Tier::Tor, tor);
            let hosts = tor * hosts_per_tor..(tor + 1) * hosts_per_tor;
            self.tor((tor, pod, index), hosts, host_link);
            self.ups_begin(aggs_per_pod);
            for agg in 0..aggs_per_pod {
                self.link(me, Node::Switch(Tier::Agg, pod * aggs_per_pod + agg), uplink);
            }
        }
    }

    /// Begin aggregation switch `agg`, with its links to the ToRs of its pod.
    pub(super) fn agg(&mut self, racks: &Racks, agg: u32) {
        let Racks { tors_per_pod, aggs_per_pod, uplink, .. } = *racks;
        let pod = agg / aggs_per_pod;
        self.switch(Tier::Agg, pod, agg % aggs_per_pod);
        for tor in 0..tors_per_pod {
            let tor = Node::Switch(Tier::Tor, pod * tors_per_pod + tor);
            self.link(Node::Switch(Tier::Agg, agg), tor, uplink);
        }
    }

    pub(super) fn finish(mut self, aggs: u32, cores_per_agg: u32) -> Topology {
        let slowest = |core: bool| {
            let between = |l: &&Link| l.from.is_switch() && l.to.is_switch();
            let links = self.topology.links.iter().filter(move |link| between(link) == core);
            links.map(|link| link.rate).min()
        };
        let slow_core = slowest(true) < slowest(false) && slowest(true).is_some();
        for home in &mut self.topology.homes {
            home.tor_downs = self.topology.switches[home.tor() as usize].downs() as u16;
        }
        let digits = [aggs, cores_per_agg].map(|n| n.max(1));
        let agg = self.topology.switches.iter().find(|switch| switch.tier == Tier::Agg);
        let agg_downs = agg.map_or(0, Switch::downs);
        Topology { aggs, cores_per_agg, digits, agg_downs, slow_core, ..self.topology }
    }
}
