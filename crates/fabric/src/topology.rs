//! What is joined to what: trees of tiers (`clos`), VL2 (`vl2`), and graphs (`jellyfish`, `bcube`).
//!
//! In a tree of tiers a packet goes up for as long as its destination is not below, then down the
//! only way there is. So a route is a few digits (which uplink at each tier), computed where it is
//! needed; no table grows with pairs of hosts. So it is in a VL2, where every way between racks
//! goes up to a core switch (`crate::valiant`). In a graph the paths of each pair of racks are
//! listed (`crate::graph`). Several planes are copies of one tree (`crate::planes`).
//!
//! Links are directed and numbered per transmitting node: hosts first, then the switches from the
//! lowest tier up, and for each switch its down ports (by the child's position) before its up
//! ports. Of a graph's switch, down ports lead to hosts and up ports to other switches.

mod bcube;
mod builder;
mod clos;
mod ideal;
mod jellyfish;
mod planes;
mod stages;
mod vl2;

use std::collections::BTreeMap;
use std::fmt;

use endpoint::Routes;
use units::{Dur, HostId, Rate};

use crate::config::{Fault, FaultAction};
use crate::graph::Graph;
use crate::planes::Planes;

pub use bcube::Bcube;
pub use clos::Clos;
pub use jellyfish::Jellyfish;
pub use planes::PLANES_MAX;
pub use stages::Stage;
pub use vl2::Vl2;

pub(crate) use vl2::AGGS;

/// A host or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host.
    Host(u32),
    /// A switch of a tier, numbered from zero within the tier.
    Switch(Tier, u32),
    /// A switch of one of several planes, numbered from zero within its tier there.
    Plane(u8, Tier, u32),
}

impl Node {
    /// The tier of a switch.
    #[must_use]
    pub fn tier(self) -> Option<Tier> {
        match self {
            Self::Host(_) => None,
            Self::Switch(tier, _) | Self::Plane(_, tier, _) => Some(tier),
        }
    }

    /// Whether it is a switch, or what forwards within a host.
    #[must_use]
    pub fn is_switch(self) -> bool {
        self.tier().is_some()
    }
}

/// The kinds of switches, by where they stand, from the hosts up. A fabric has either some of
/// `Tor`, `Agg` and `Core`, with `Nic` if it has several planes, or the last two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tier {
    /// The interface of a host of several planes: one port into each.
    Nic,
    /// Top of rack: hosts below. The leaves of a leaf-spine, the only switch of a star, every
    /// switch of a Jellyfish.
    Tor,
    /// Aggregation: the ToRs of a pod below. The spines of a leaf-spine.
    Agg,
    /// Core: one link to every pod; in a VL2, where they are called intermediate, two.
    Core,
    /// What forwards packets in a server of a BCube: one host below.
    Relay,
    /// A switch of a BCube, which joins servers: level 0 first. Written `switch`.
    Level,
}

impl Tier {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Nic, Self::Tor, Self::Agg, Self::Core, Self::Relay, Self::Level];

    /// How many tiers of switches are below this one, 0 to 2; 3 of a NIC, whose links are counted
    /// by themselves.
    #[must_use]
    pub const fn height(self) -> usize {
        match self {
            Self::Tor | Self::Relay => 0,
            Self::Agg | Self::Level => 1,
            Self::Core => 2,
            Self::Nic => 3,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nic => "nic",
            Self::Tor => "tor",
            Self::Agg => "agg",
            Self::Core => "core",
            Self::Relay => "relay",
            Self::Level => "switch",
        })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(n) => write!(f, "host {n}"),
            Self::Switch(tier, n) => write!(f, "{tier} {n}"),
            Self::Plane(plane, tier, n) => write!(f, "plane {plane} {tier} {n}"),
        }
    }
}

/// How fast and how long links are, by the tier of their upper end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits per second, each direction. Not zero.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Dur,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The transmitting end.
    pub from: Node,
    /// The receiving end.
    pub to: Node,
    /// Bits per second.
    pub rate: Rate,
    /// Propagation.
    pub delay: Dur,
    /// Whether it works at the start of the run.
    pub up: bool,
}

impl Link {
    /// The height of the tier of its upper end, less than [`HEIGHTS`].
    #[must_use]
    pub fn height(&self) -> usize {
        self.from.tier().max(self.to.tier()).map_or(0, Tier::height)
    }

    /// Whether it leads to a host, or to the port of one.
    #[must_use]
    pub fn is_last_hop(&self) -> bool {
        matches!(self.to, Node::Host(_) | Node::Switch(Tier::Nic, _))
            && self.from.tier() != Some(Tier::Nic)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// Where a host is attached. Indexed by tier: a switch leads down to the host if its own number is
/// the one here, over the down port given beside it. In a graph only the first of each matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    /// Its ToR (as a switch index), its pod, and 0: every core switch leads to every host.
    pub(crate) below: [u32; 3],
    /// Its place at its ToR, its ToR's within the pod, its pod's at a core switch.
    pub(crate) down: [u16; 3],
    /// How many down ports its ToR has.
    pub(crate) tor_downs: u16,
}

impl Home {
    pub(crate) fn tor(&self) -> u32 {
        self.below[0]
    }

    pub(crate) fn pod(&self) -> u32 {
        self.below[1]
    }

    pub(crate) fn slot(&self) -> u16 {
        self.down[0]
    }

    /// Its ToR's number within the pod.
    pub(crate) fn rack(&self) -> u16 {
        self.down[1]
    }
}

/// A switch's ports and place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) tier: Tier,
    /// Its pod; 0 for a core switch.
    pub(crate) pod: u16,
    /// Its number within the pod (ToR, aggregation) or the tier (core).
    pub(crate) index: u16,
    /// Its first down port, as a link number.
    pub(crate) down: u32,
    /// Its first up port, as a link number.
    pub(crate) up: u32,
    /// How many up ports it has.
    pub(crate) ups: u32,
}

impl Switch {
    pub(crate) fn downs(&self) -> u32 {
        self.up - self.down
    }
}

/// How paths follow from where switches stand.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A tree of tiers: up while the destination is not below, then down the only way.
    Tree,
    /// A VL2: packets between racks go up to any core switch. With `shortcut`, those between
    /// racks of one pod turn at its aggregation switches instead.
    Valiant { shortcut: bool },
    /// The paths of each pair of racks are listed.
    Graph(Graph),
    /// Copies of a tree of tiers side by side.
    Planes(Box<Planes>),
}

/// A fabric: nodes and links.
#[derive(Clone, Debug)]
pub struct Topology {
    kind: &'static str,
    links: Vec<Link>,
    pub(crate) homes: Vec<Home>,
    pub(crate) switches: Vec<Switch>,
    /// Uplinks of a ToR.
    pub(crate) aggs: u32,
    /// Uplinks of an aggregation switch.
    pub(crate) cores_per_agg: u32,
    /// The same two, at least 1: how many values each digit of a path index has.
    pub(crate) digits: [u32; 2],
    /// Down ports of an aggregation switch; in a tree of tiers all have as many.
    pub(crate) agg_downs: u32,
    /// How many switches there are, by tier.
    switches_in: [u32; Tier::ALL.len()],
    pub(crate) shape: Shape,
    switch_latency: Dur,
    switch_slot: Option<Dur>,
    slot_heap: bool,
    mtu: u16,
    /// Whether some link differs from the rest of its tier: the ideal time then depends on the
    /// path.
    uneven: bool,
    /// Whether links between switches are slower than those of hosts.
    slow_core: bool,
    /// By source, the path of its packets under `Routing::Listed`; empty where there is no list.
    pub(crate) listed: Vec<u32>,
}

/// Why a topology cannot be built. `Display` is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(pub(crate) String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TopologyError {}

/// How many heights there are ([`Tier::height`]).
pub const HEIGHTS: usize = 4;

/// More directed links than this are refused: a k=64 fat-tree has 393 216.
const LINKS_MAX: u64 = 4_000_000;

impl Topology {
    /// The same fabric whose switches each take `latency` between a packet's last bit and its
    /// arrival at the output queue.
    #[must_use]
    pub fn with_switch_latency(self, latency: Dur) -> Self {
        Self { switch_latency: latency, ..self }
    }

    /// The same fabric whose switches send in slots of `slot`, not zero, from time 0 on: what has
    /// come before a slot begins may leave in it, as much as ends within it, but one packet at
    /// least. So does the switch model of FireSim, in batches of the latency of its links.
    #[must_use]
    pub fn with_switch_slot(self, slot: Option<Dur>) -> Self {
        Self { switch_slot: slot.filter(|slot| *slot > Dur::ZERO), ..self }
    }

    /// With slots: what comes within one joins the queues together as it ends, first bits first,
    /// and of equal first bits in the order of the heap that FireSim's switch model fills port by
    /// port. None leaves, in the slot that begins then, before its first bit came in the last. A
    /// run refuses what [`Topology::check_slot_heap`] does.
    #[must_use]
    pub fn with_slot_heap(self, slot_heap: bool) -> Self {
        Self { slot_heap, ..self }
    }

    /// The same fabric, in which the packets of each host take path `paths[host]` under
    /// [`Routing::Listed`](crate::Routing::Listed), modulo the number of paths to where they go.
    ///
    /// # Errors
    /// It is no tree of tiers, or has not as many hosts.
    pub fn with_paths(self, paths: Vec<u32>) -> Result<Self, TopologyError> {
        if !matches!(self.shape, Shape::Tree) {
            return Err(TopologyError(format!(
                "the paths of this {} cannot be listed: it has several planes, or is no tree of tiers",
                self.kind
            )));
        }
        let hosts = self.hosts();
        if paths.len() != hosts as usize {
            let message = format!("{} paths are listed for {hosts} hosts", paths.len());
            return Err(TopologyError(message));
        }
        Ok(Self { listed: paths, ..self })
    }

    /// The same fabric, known to its hosts to carry packets of up to `mtu` bytes (on the wire).
    #[must_use]
    pub fn with_mtu(self, mtu: u16) -> Self {
        Self { mtu, ..self }
    }

    /// What kind of fabric this is.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.homes.len() as u32
    }

    /// How many switches a tier has.
    #[must_use]
    pub fn switches_of(&self, tier: Tier) -> u32 {
        self.switches_in[tier as usize]
    }

    /// Whether `node` is one of its hosts or switches.
    #[must_use]
    pub fn has(&self, node: Node) -> bool {
        match (node, self.planes()) {
            (Node::Host(n), _) => n < self.hosts(),
            (Node::Switch(Tier::Nic, n), Some(_)) => n < self.hosts(),
            (Node::Switch(tier, n), None) => n < self.switches_of(tier),
            (Node::Plane(plane, tier, n), Some(planes)) => {
                u32::from(plane) < planes.count() && planes.plane().has(Node::Switch(tier, n))
            }
            (Node::Switch(..), Some(_)) | (Node::Plane(..), None) => false,
        }
    }

    /// How many racks there are, each the hosts of one switch, or of one in each plane.
    #[must_use]
    pub fn racks(&self) -> u32 {
        let tree = self.planes().map_or(self, Planes::plane);
        tree.switches_of(Tier::Tor) + tree.switches_of(Tier::Relay)
    }

    /// The directed links, in their order.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The time that each switch takes.
    #[must_use]
    pub fn switch_latency(&self) -> Dur {
        self.switch_latency
    }

    /// The slots in which switches send, if they do.
    #[must_use]
    pub fn switch_slot(&self) -> Option<Dur> {
        self.switch_slot
    }

    /// Whether what comes within a slot joins the queues as it ends.
    #[must_use]
    pub fn slot_heap(&self) -> bool {
        self.slot_heap && self.switch_slot.is_some()
    }

    /// Whether all ports begin their slots together, as joining in batches needs: each packet fits
    /// a slot, and no rate changes.
    ///
    /// # Errors
    /// What does not.
    pub fn check_slot_heap(&self, faults: &[Fault]) -> Result<(), String> {
        let Some(slot) = self.switch_slot.filter(|_| self.slot_heap()) else { return Ok(()) };
        let of_switches = self.links.iter().filter(|link| link.from.is_switch());
        let slowest = of_switches.min_by_key(|link| link.rate);
        let longest = slowest.map(|link| (link, link.rate.serialise(u64::from(self.mtu))));
        if let Some((link, time)) = longest.filter(|(_, time)| *time > slot) {
            let mtu = self.mtu;
            return Err(format!("a packet of {mtu} B takes {time} on {link}, more than a slot"));
        }
        let rate = faults.iter().find(|fault| matches!(fault.action, FaultAction::Rate(_)));
        match rate {
            Some(fault) => Err(format!("the rate of {} changes", self.links[fault.link as usize])),
            None => Ok(()),
        }
    }

    /// The largest packet, bytes on the wire.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The number of the link from `from` to `to`, if they are joined.
    #[must_use]
    pub fn find_link(&self, from: Node, to: Node) -> Option<u32> {
        if !self.has(from) {
            return None;
        }
        let first = match (from, self.switch_at(from)) {
            (Node::Host(host), _) => host,
            (_, Some(at)) => {
                let switch = &self.switches[at as usize];
                // Most shapes list a switch's ports by what they lead to. One with thousands of
                // hosts would make building the fabric quadratic if each were looked for in turn.
                let (down, up) = (switch.down as usize, switch.up as usize);
                let (downs, ups) = (down..up, up..up + switch.ups as usize);
                let found = [downs, ups].into_iter().find_map(|ports| {
                    let first = ports.start;
                    let ports = self.links.get(ports)?;
                    let at = ports.binary_search_by(|link| link.to.cmp(&to)).ok()?;
                    Some((first + at) as u32)
                });
                if found.is_some() {
                    return found;
                }
                switch.down
            }
            (_, None) => return None,
        };
        self.links[first as usize..]
            .iter()
            .take_while(|link| link.from == from)
            .position(|link| link.to == to)
            .map(|position| first + position as u32)
    }

    /// The rack of `host`: a number from 0, less than [`Topology::racks`].
    ///
    /// # Panics
    /// There is no such host.
    #[must_use]
    pub fn rack(&self, host: HostId) -> u32 {
        self.planes().map_or(self, Planes::plane).homes[host.index()].tor()
    }

    /// The number of the same link in the other direction.
    pub(crate) fn reverse(&self, link: u32) -> u32 {
        let Link { from, to, .. } = self.links[link as usize];
        // Every link has one; `check_links` in the tests.
        self.find_link(to, from).unwrap_or(link)
    }

    /// Change one direction of a link.
    pub fn set_link(&mut self, link: u32, spec: LinkSpec) {
        let link = &mut self.links[link as usize];
        link.rate = spec.rate;
        link.delay = spec.delay;
        self.uneven = true;
    }

    /// Take one direction of a link out of service from the start: every host and switch knows.
    pub fn fail_link(&mut self, link: u32) {
        self.links[link as usize].up = false;
        self.uneven = true;
    }

    /// The rate at which a host can receive: that of its ToR's link to it.
    #[must_use]
    pub fn receive_rate(&self, host: HostId) -> Rate {
        self.links[self.last_link(host) as usize].rate
    }

    /// The link over which a host receives.
    pub(crate) fn last_link(&self, host: HostId) -> u32 {
        let home = &self.homes[host.index()];
        self.switches[home.tor() as usize].down + u32::from(home.slot())
    }

    /// The longest base round-trip time. In a tree of tiers, that between the first host and the
    /// last; in a graph, between any two.
    #[must_use]
    pub fn longest_rtt(&self) -> Dur {
        let last = HostId(self.hosts() - 1);
        if self.graph().is_none() {
            return self.base_rtt(HostId(0), last);
        }
        let racks = self.rack_firsts();
        let pairs = racks.iter().flat_map(|&a| racks.iter().map(move |&b| (a, b)));
        let apart = pairs.filter(|(a, b)| a != b);
        apart.map(|(a, b)| self.base_rtt(a, b)).max().unwrap_or(Dur::ZERO)
    }

    /// What hosts can send together, over what the links between one tier of switches and the next
    /// carry where that is least; 1 at least. A switch's tier is its distance from the nearest
    /// host. Of the last tier, links between its own switches count.
    #[must_use]
    pub fn oversubscription(&self) -> f64 {
        let mut tiers: BTreeMap<Node, usize> = BTreeMap::new();
        let mut edge: Vec<Node> = (0..self.hosts()).map(Node::Host).collect();
        let mut carried = Vec::new();
        while !edge.is_empty() {
            let tier = carried.len();
            tiers.extend(edge.drain(..).map(|node| (node, tier)));
            let of = |link: &&Link| tiers.get(&link.from) == Some(&tier);
            let up = |link: &Link| !tiers.contains_key(&link.to);
            let level = |link: &Link| tiers.get(&link.to) == Some(&tier);
            let from: Vec<&Link> = self.links.iter().filter(of).collect();
            let last = !from.iter().any(|link| up(link));
            let links = from.iter().filter(|link| if last { level(link) } else { up(link) });
            carried.push(links.map(|link| link.rate.0 as f64).sum::<f64>());
            edge.extend(from.iter().filter(|link| up(link)).map(|link| link.to));
        }
        let most = carried.first().copied().unwrap_or(0.0);
        let rates = carried.into_iter().filter(|&rate| rate > 0.0);
        rates.map(|rate| most / rate).fold(1.0, f64::max)
    }

    /// The greatest bandwidth-delay product between two hosts, bytes: the least rate on the best
    /// path, times the base round trip. Hosts are alike if their links are; of each kind the first
    /// and the last are looked at, and in a graph one of each rack.
    #[must_use]
    pub fn bandwidth_delay(&self) -> u64 {
        const KINDS: usize = 32;
        const PATHS: u32 = 64;
        let mut kinds: BTreeMap<(Rate, Dur, Rate), [HostId; 2]> = BTreeMap::new();
        for host in (0..self.hosts()).map(HostId) {
            let up = &self.links[host.index()];
            let kind = (up.rate, up.delay, self.receive_rate(host));
            kinds.entry(kind).and_modify(|[_, last]| *last = host).or_insert([host; 2]);
        }
        let mut ends: Vec<HostId> = kinds.into_values().take(KINDS).flatten().collect();
        if self.graph().is_some() {
            ends.extend(self.rack_firsts());
        }
        let rate = |a, b, path| self.path_links(a, b, path).map(|l| self.links[l as usize].rate);
        let product = |(a, b): (HostId, HostId)| {
            let paths = 0..self.paths(a, b).min(PATHS);
            let best = paths.filter_map(|path| rate(a, b, path).min()).max();
            best.map_or(0, |rate| rate.bytes_in(self.base_rtt(a, b)).0)
        };
        let pairs = ends.iter().flat_map(|&a| ends.iter().map(move |&b| (a, b)));
        pairs.filter(|(a, b)| a != b).map(product).max().unwrap_or(0)
    }

    /// Links on the longest path between any two hosts, theirs included.
    #[must_use]
    pub fn longest_path(&self) -> u32 {
        match &self.shape {
            Shape::Graph(graph) => 2 + graph.longest(),
            Shape::Tree | Shape::Valiant { .. } | Shape::Planes(_) => {
                self.hops(HostId(0), HostId(self.hosts() - 1))
            }
        }
    }

    /// The listed paths, if they are listed.
    pub(crate) fn graph(&self) -> Option<&Graph> {
        match &self.shape {
            Shape::Graph(graph) => Some(graph),
            Shape::Tree | Shape::Valiant { .. } | Shape::Planes(_) => None,
        }
    }

    /// Its planes, if it has several.
    pub(crate) fn planes(&self) -> Option<&Planes> {
        match &self.shape {
            Shape::Planes(planes) => Some(planes),
            Shape::Tree | Shape::Valiant { .. } | Shape::Graph(_) => None,
        }
    }

    /// How many planes it has, each with a port of every host.
    #[must_use]
    pub fn plane_count(&self) -> u32 {
        self.planes().map_or(1, Planes::count)
    }

    /// One host of each rack.
    pub(crate) fn rack_firsts(&self) -> Vec<HostId> {
        let mut racks: Vec<HostId> = (0..self.hosts()).map(HostId).collect();
        racks.dedup_by_key(|host| self.homes[host.index()].tor());
        racks
    }

    /// How many pods there are.
    pub(crate) fn pods(&self) -> u32 {
        self.homes.last().map_or(1, |home| home.pod() + 1)
    }

    /// The pod of switch `at`, an index among all switches.
    pub(crate) fn pod_of(&self, at: u32) -> u32 {
        u32::from(self.switches[at as usize].pod)
    }

    /// What hosts below switch `at`, an index among all switches, have in common: the place in
    /// `Home::below`, and what is there. In a graph that is always the first.
    pub(crate) fn below(&self, at: u32) -> (usize, u32) {
        let switch = &self.switches[at as usize];
        match switch.tier {
            Tier::Agg => (1, u32::from(switch.pod)),
            Tier::Core => (2, 0),
            Tier::Nic | Tier::Tor | Tier::Relay | Tier::Level => (0, at),
        }
    }

    /// Tier and number within it of switch `at`, an index among all switches.
    pub(crate) fn switch_number(&self, at: u32) -> (Tier, u32) {
        let tier = self.switches[at as usize].tier;
        (tier, at - self.switch_index(tier, 0) as u32)
    }

    pub(crate) fn switch_index(&self, tier: Tier, n: u32) -> usize {
        let before: u32 = self.switches_in[..tier as usize].iter().sum();
        (before + n) as usize
    }

    /// Propagation over a link plus the latency of the switch at its end.
    pub(crate) fn delay(&self, link: u32) -> Dur {
        let link = &self.links[link as usize];
        match link.to {
            Node::Host(_) | Node::Switch(Tier::Nic, _) => link.delay,
            Node::Switch(..) | Node::Plane(..) => link.delay + self.switch_latency,
        }
    }
}

impl Routes for Topology {
    fn paths(&self, src: HostId, dst: HostId) -> u32 {
        if let Some(planes) = self.planes() {
            return planes.paths(src, dst);
        }
        let (a, b) = (self.homes[src.index()], self.homes[dst.index()]);
        if a.tor() == b.tor() {
            return 1;
        }
        match &self.shape {
            Shape::Graph(graph) => graph.paths(a.tor(), b.tor()),
            Shape::Valiant { .. } if !self.turns_in_pod(src, dst) => {
                AGGS * self.cores_per_agg * AGGS
            }
            _ if a.pod() == b.pod() => self.aggs.max(1),
            _ => self.aggs * self.cores_per_agg,
        }
    }

    fn hops(&self, src: HostId, dst: HostId) -> u32 {
        self.path_links(src, dst, 0).count() as u32
    }

    fn base_rtt(&self, src: HostId, dst: HostId) -> Dur {
        let one_way = |from, to, bytes| {
            self.path_links(from, to, 0).fold(Dur::ZERO, |sum, link| {
                sum + self.links[link as usize].rate.serialise(bytes) + self.delay(link)
            })
        };
        one_way(src, dst, u64::from(self.mtu)) + one_way(dst, src, 64)
    }
}

/// What tests of all shapes share.
#[cfg(test)]
mod testing {
    use super::*;

    pub(super) const LINK: LinkSpec =
        LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };

    /// Between any two hosts, every path is a way from one to the other without loops, differs from
    /// the others, and is the way back too; and links are found by their ends.
    pub(super) fn check_shape(shape: &Topology) {
        let hosts = (0..shape.hosts()).map(HostId);
        for (src, dst) in hosts.clone().flat_map(|src| hosts.clone().map(move |dst| (src, dst))) {
            if src != dst {
                check_paths(shape, src, dst);
            }
        }
        check_links(shape);
    }

    pub(super) fn check_links(shape: &Topology) {
        for (n, link) in shape.links().iter().enumerate() {
            assert_eq!(shape.find_link(link.from, link.to), Some(n as u32), "{link}");
            assert!(shape.find_link(link.to, link.from).is_some(), "{link}");
        }
        assert_eq!(shape.find_link(Node::Host(0), Node::Host(1)), None);
    }

    fn check_paths(shape: &Topology, src: HostId, dst: HostId) {
        let mut seen = Vec::new();
        for path in 0..shape.paths(src, dst) {
            let links: Vec<Link> =
                shape.path_links(src, dst, path).map(|l| shape.links()[l as usize]).collect();
            assert_eq!(links.first().map(|l| l.from), Some(Node::Host(src.0)));
            assert_eq!(links.last().map(|l| l.to), Some(Node::Host(dst.0)));
            assert!(links.windows(2).all(|pair| pair[0].to == pair[1].from), "{links:?}");
            let back: Vec<Node> =
                shape.path_links(dst, src, path).map(|l| shape.links()[l as usize].to).collect();
            let there: Vec<Node> = links.iter().rev().map(|l| l.from).collect();
            assert_eq!(back, there, "the reverse of an index is the same way back");
            let mut nodes = back;
            nodes.sort_unstable();
            nodes.dedup();
            assert_eq!(nodes.len(), links.len(), "no node twice");
            assert!(!seen.contains(&links), "paths are distinct");
            seen.push(links);
        }
    }
}
