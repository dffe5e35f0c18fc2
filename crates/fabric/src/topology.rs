//! What is joined to what: Clos fabrics of one to three tiers, and the dumbbell.
//!
//! Every topology here is a tree of tiers in which a packet goes up for as long as its destination
//! is not below, then down the only way there is. So a route is a few digits (which uplink at each
//! tier), computed where it is needed; no table grows with pairs of hosts.
//!
//! Links are directed and numbered per transmitting node: hosts first, then the switches from the
//! lowest tier up, and for each switch its down ports (by the child's position) before its up ports.

use std::fmt;

use endpoint::{Framing, Routes, UNBOUNDED};
use units::{Dur, HostId, Rate};

/// A host or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host.
    Host(u32),
    /// A switch of a tier, numbered from zero within the tier.
    Switch(Tier, u32),
}

/// The tiers of a Clos fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tier {
    /// Top of rack: hosts below. The leaves of a leaf-spine, the only switch of a star.
    Tor,
    /// Aggregation: the ToRs of a pod below. The spines of a leaf-spine.
    Agg,
    /// Core: one link to every pod.
    Core,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tor => "tor",
            Self::Agg => "agg",
            Self::Core => "core",
        })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(n) => write!(f, "host {n}"),
            Self::Switch(tier, n) => write!(f, "{tier} {n}"),
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
    /// The tier of a link: that of its upper end.
    pub(crate) fn tier(&self) -> Tier {
        let tier = |node| match node {
            Node::Host(_) => Tier::Tor,
            Node::Switch(tier, _) => tier,
        };
        tier(self.from).max(tier(self.to))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// The shape of a Clos fabric. Every pod has the same; core switch `a * cores_per_agg + u` is
/// joined to aggregation switch `a` of every pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
    /// Pods. 1 for a leaf-spine and a star.
    pub pods: u32,
    /// ToRs of a pod.
    pub tors_per_pod: u32,
    /// Hosts of a ToR.
    pub hosts_per_tor: u32,
    /// Aggregation switches of a pod, each joined to all its ToRs. 0 for a star.
    pub aggs_per_pod: u32,
    /// Core switches above each aggregation switch. 0 for a leaf-spine.
    pub cores_per_agg: u32,
    /// Links between hosts and ToRs, ToRs and aggregation, aggregation and core.
    pub links: [LinkSpec; 3],
}

/// Where a host is attached. Indexed by tier: a switch leads down to the host if its own number is
/// the one here, over the down port given beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    /// Its ToR (as a switch index), its pod, and 0: every core switch leads to every host.
    pub(crate) below: [u32; 3],
    /// Its place at its ToR, its ToR's within the pod, its pod's at a core switch.
    pub(crate) down: [u16; 3],
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
    tors: u32,
    agg_switches: u32,
    switch_latency: Dur,
    mtu: u16,
    /// Whether some link differs from the rest of its tier: the ideal time then depends on the path.
    uneven: bool,
    /// Whether links between switches are slower than those of hosts.
    slow_core: bool,
}

/// Why a topology cannot be built. `Display` is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TopologyError {}

/// More directed links than this are refused: a k=64 fat-tree has 393 216.
const LINKS_MAX: u64 = 4_000_000;

impl Topology {
    /// One switch, `hosts` hosts. From 2 to 65 534 hosts.
    pub fn star(hosts: u32, link: LinkSpec) -> Result<Self, TopologyError> {
        if hosts < 2 {
            return Err(TopologyError(format!("a star of {hosts} hosts has nobody to talk to")));
        }
        let shape = Clos {
            pods: 1,
            tors_per_pod: 1,
            hosts_per_tor: hosts,
            aggs_per_pod: 0,
            cores_per_agg: 0,
            links: [link; 3],
        };
        Ok(Self { kind: "star", ..Self::clos(shape)? })
    }

    /// `leaves` x `hosts_per_leaf` hosts, every leaf joined to every one of `spines`.
    pub fn leaf_spine(
        leaves: u32,
        spines: u32,
        hosts_per_leaf: u32,
        host_link: LinkSpec,
        spine_link: LinkSpec,
    ) -> Result<Self, TopologyError> {
        let shape = Clos {
            pods: 1,
            tors_per_pod: leaves,
            hosts_per_tor: hosts_per_leaf,
            aggs_per_pod: spines,
            cores_per_agg: 0,
            links: [host_link, spine_link, spine_link],
        };
        Ok(Self { kind: "leaf-spine", ..Self::clos(shape)? })
    }

    /// The k-ary three-tier fat-tree (Al-Fares et al., SIGCOMM'08) with `oversubscription` times as
    /// many hosts per ToR as it has uplinks: k^3/4 hosts at 1.
    pub fn fat_tree(k: u32, oversubscription: u32, link: LinkSpec) -> Result<Self, TopologyError> {
        if k < 2 || !k.is_multiple_of(2) || k > 128 {
            let what = format!("k = {k}: a fat-tree needs an even k from 2 to 128");
            return Err(TopologyError(what));
        }
        if oversubscription == 0 {
            return Err(TopologyError("oversubscription must be at least 1".into()));
        }
        let half = k / 2;
        let shape = Clos {
            pods: k,
            tors_per_pod: half,
            hosts_per_tor: half.saturating_mul(oversubscription),
            aggs_per_pod: half,
            cores_per_agg: half,
            links: [link; 3],
        };
        Ok(Self { kind: "fat-tree", ..Self::clos(shape)? })
    }

    /// Two switches joined by `trunk`, with `left` and `right` hosts.
    pub fn dumbbell(
        left: u32,
        right: u32,
        host_link: LinkSpec,
        trunk: LinkSpec,
    ) -> Result<Self, TopologyError> {
        if left == 0 || right == 0 {
            return Err(TopologyError("a dumbbell needs hosts on both sides".into()));
        }
        let most = u32::from(u16::MAX) - 1;
        if left > most || right > most {
            return Err(TopologyError(format!("a switch has at most {most} hosts")));
        }
        let mut build = Builder::new("dumbbell", left + right);
        for host in 0..left + right {
            build.link(
                Node::Host(host),
                Node::Switch(Tier::Tor, u32::from(host >= left)),
                host_link,
            );
        }
        for (side, hosts) in [(0, 0..left), (1, left..left + right)] {
            let me = Node::Switch(Tier::Tor, side);
            build.switch(Tier::Tor, 0, side);
            for (slot, host) in hosts.enumerate() {
                build.home(side, slot, 0);
                build.link(me, Node::Host(host), host_link);
            }
            build.ups_begin(1);
            build.link(me, Node::Switch(Tier::Tor, 1 - side), trunk);
        }
        // Hosts were homed left then right, which is their order.
        Ok(build.finish(1, 0, 2, 0))
    }

    /// Any Clos fabric of one to three tiers.
    pub fn clos(shape: Clos) -> Result<Self, TopologyError> {
        check(&shape)?;
        let Clos { pods, tors_per_pod, hosts_per_tor, aggs_per_pod, cores_per_agg, links } = shape;
        let tors = pods * tors_per_pod;
        let hosts = tors * hosts_per_tor;
        let cores = aggs_per_pod * cores_per_agg;
        let mut build = Builder::new("clos", hosts);
        for host in 0..hosts {
            let tor = Node::Switch(Tier::Tor, host / hosts_per_tor);
            build.link(Node::Host(host), tor, links[0]);
        }
        for tor in 0..tors {
            let (pod, index) = (tor / tors_per_pod, tor % tors_per_pod);
            let me = Node::Switch(Tier::Tor, tor);
            build.switch(Tier::Tor, pod, index);
            for slot in 0..hosts_per_tor {
                build.home(tor, slot as usize, pod);
                build.link(me, Node::Host(tor * hosts_per_tor + slot), links[0]);
            }
            build.ups_begin(aggs_per_pod);
            for agg in 0..aggs_per_pod {
                build.link(me, Node::Switch(Tier::Agg, pod * aggs_per_pod + agg), links[1]);
            }
        }
        for agg in 0..pods * aggs_per_pod {
            let (pod, index) = (agg / aggs_per_pod, agg % aggs_per_pod);
            let me = Node::Switch(Tier::Agg, agg);
            build.switch(Tier::Agg, pod, index);
            for tor in 0..tors_per_pod {
                build.link(me, Node::Switch(Tier::Tor, pod * tors_per_pod + tor), links[1]);
            }
            build.ups_begin(cores_per_agg);
            for core in 0..cores_per_agg {
                build.link(me, Node::Switch(Tier::Core, index * cores_per_agg + core), links[2]);
            }
        }
        for core in 0..cores {
            let me = Node::Switch(Tier::Core, core);
            build.switch(Tier::Core, 0, core);
            for pod in 0..pods {
                let agg = pod * aggs_per_pod + core / cores_per_agg;
                build.link(me, Node::Switch(Tier::Agg, agg), links[2]);
            }
            build.ups_begin(0);
        }
        Ok(build.finish(aggs_per_pod, cores_per_agg, tors, pods * aggs_per_pod))
    }

    /// The same fabric whose switches each take `latency` between a packet's last bit and its
    /// arrival at the output queue.
    #[must_use]
    pub fn with_switch_latency(self, latency: Dur) -> Self {
        Self { switch_latency: latency, ..self }
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
        match tier {
            Tier::Tor => self.tors,
            Tier::Agg => self.agg_switches,
            Tier::Core => self.switches.len() as u32 - self.tors - self.agg_switches,
        }
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

    /// The largest packet, bytes on the wire.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The number of the link from `from` to `to`, if they are joined.
    #[must_use]
    pub fn find_link(&self, from: Node, to: Node) -> Option<u32> {
        let first = match from {
            Node::Host(host) if host < self.hosts() => host,
            Node::Switch(tier, n) if n < self.switches_of(tier) => {
                self.switches[self.switch_index(tier, n)].down
            }
            _ => return None,
        };
        self.links[first as usize..]
            .iter()
            .take_while(|link| link.from == from)
            .position(|link| link.to == to)
            .map(|position| first + position as u32)
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
        let home = self.homes[host.index()];
        self.links[(self.switches[home.tor() as usize].down + u32::from(home.slot())) as usize].rate
    }

    /// How many pods there are.
    pub(crate) fn pods(&self) -> u32 {
        self.homes.last().map_or(1, |home| home.pod() + 1)
    }

    /// The pod of switch `at`, an index among all switches.
    pub(crate) fn pod_of(&self, at: u32) -> u32 {
        u32::from(self.switches[at as usize].pod)
    }

    /// Tier and number within it of switch `at`, an index among all switches.
    pub(crate) fn switch_number(&self, at: u32) -> (Tier, u32) {
        let tier = self.switches[at as usize].tier;
        (tier, at - self.switch_index(tier, 0) as u32)
    }

    pub(crate) fn switch_index(&self, tier: Tier, n: u32) -> usize {
        let before = match tier {
            Tier::Tor => 0,
            Tier::Agg => self.tors,
            Tier::Core => self.tors + self.agg_switches,
        };
        (before + n) as usize
    }

    /// Propagation over a link plus the latency of the switch at its end.
    pub(crate) fn delay(&self, link: u32) -> Dur {
        let link = &self.links[link as usize];
        match link.to {
            Node::Host(_) => link.delay,
            Node::Switch(..) => link.delay + self.switch_latency,
        }
    }

    /// The time for a message of `len` bytes alone in the fabric, from its submission to the
    /// arrival of its last byte, when its packets leave back to back: the ideal completion time.
    /// With links of different rates, the best path's. With `spray`, consecutive packets may take
    /// different paths.
    #[must_use]
    pub fn ideal(&self, src: HostId, dst: HostId, len: u64, framing: Framing, spray: bool) -> Dur {
        if len == UNBOUNDED {
            return Dur::ZERO;
        }
        let payload = u64::from(framing.payload).max(1);
        let packets = len.div_ceil(payload).max(1);
        let overhead = u64::from(framing.overhead);
        let cut = Cut {
            full: payload + overhead,
            last: len - (packets - 1) * payload + overhead,
            packets,
        };
        let all = self.paths(src, dst);
        let usable =
            |path: &u32| self.path_links(src, dst, *path).all(|l| self.links[l as usize].up);
        if !self.uneven && !self.slow_core {
            let in_order = self.pipeline(src, dst, 0, cut);
            return if spray && all > 1 && packets > 1 {
                in_order.min(self.overtaking(src, dst, 0, cut))
            } else {
                in_order
            };
        }
        let mut paths: Vec<u32> = (0..all).filter(usable).collect();
        if paths.is_empty() {
            paths.extend(0..all);
        }
        if spray && paths.len() > 1 && packets > 1 {
            return self.sprayed(src, dst, &paths, cut);
        }
        paths.iter().map(|&path| self.pipeline(src, dst, path, cut)).min().unwrap_or(Dur::ZERO)
    }

    /// A bound for a message sprayed over paths whose links differ, or are slower than the hosts':
    /// at each hop, the bytes have to get through all links of that hop together, after the first
    /// packet has come there and before the last has gone the rest of the way.
    fn sprayed(&self, src: HostId, dst: HostId, paths: &[u32], cut: Cut) -> Dur {
        let hops: Vec<Vec<u32>> =
            paths.iter().map(|&path| self.path_links(src, dst, path).collect()).collect();
        let time = |links: &[u32], bytes: u64| {
            links.iter().fold(Dur::ZERO, |sum, &link| {
                sum + self.links[link as usize].rate.serialise(bytes) + self.delay(link)
            })
        };
        let least = |of: &dyn Fn(&[u32]) -> Dur| hops.iter().map(|path| of(path)).min();
        let first_rate = self.links[src.index()].rate;
        let before_last = first_rate.serialise(cut.full) * (cut.packets - 1);
        let bytes = cut.full * (cut.packets - 1) + cut.last;
        let through = |hop: usize| {
            let mut links: Vec<u32> = hops.iter().map(|path| path[hop]).collect();
            links.sort_unstable();
            links.dedup();
            let rate = links.iter().map(|&link| self.links[link as usize].rate.0).sum();
            let delay = links.iter().map(|&link| self.delay(link)).min().unwrap_or(Dur::ZERO);
            let full = least(&|path| time(&path[..hop], cut.full)).unwrap_or(Dur::ZERO);
            let short = least(&|path| time(&path[..hop], cut.last)).unwrap_or(Dur::ZERO);
            let rest = least(&|path| time(&path[hop + 1..], cut.last)).unwrap_or(Dur::ZERO);
            full.min(before_last + short) + Rate(rate).serialise(bytes) + delay + rest
        };
        (0..hops[0].len()).map(through).max().unwrap_or(Dur::ZERO)
    }

    /// Store and forward over one path. With packets of one size, the n-th leaves a link after the
    /// sum of the serialisations so far plus n-1 times the slowest of them; the last, shorter one
    /// follows at once or waits for the one before.
    fn pipeline(&self, src: HostId, dst: HostId, path: u32, cut: Cut) -> Dur {
        let (mut first, mut slowest, mut last) = (Dur::ZERO, Dur::ZERO, Dur::ZERO);
        for link in self.path_links(src, dst, path) {
            let (rate, delay) = (self.links[link as usize].rate, self.delay(link));
            let full = rate.serialise(cut.full);
            slowest = slowest.max(full);
            let before = match cut.packets {
                1 => Dur::ZERO,
                n => first + full + slowest * (n - 2),
            };
            last = last.max(before) + rate.serialise(cut.last) + delay;
            first = first + full + delay;
        }
        last
    }

    /// The last packet, shorter, takes another path of the same rates and waits behind nothing
    /// before the last link, where it may even come before the first one. Full packets keep the last
    /// link busy from the arrival of the first.
    fn overtaking(&self, src: HostId, dst: HostId, path: u32, cut: Cut) -> Dur {
        let (mut first, mut short, mut slowest) = (Dur::ZERO, Dur::ZERO, Dur::ZERO);
        let mut links = self.path_links(src, dst, path).map(|link| {
            let rate = self.links[link as usize].rate;
            (rate.serialise(cut.full), rate.serialise(cut.last), self.delay(link))
        });
        let (mut full, mut last, mut delay) = links.next().unwrap_or_default();
        let before = full * (cut.packets - 1);
        for next in links {
            slowest = slowest.max(full);
            first = first + full + delay;
            short = short + last + delay;
            (full, last, delay) = next;
        }
        short += before;
        let last_full = first + slowest * (cut.packets - 2);
        let end = if full < slowest {
            // The last link idles between full packets.
            (last_full + full).max(short + last)
        } else if short < first {
            first.max(short + last) + full * (cut.packets - 1)
        } else {
            short.max(first + full * (cut.packets - 1)) + last
        };
        end + delay
    }
}

/// A message cut into packets: their number, and bytes on the wire.
#[derive(Clone, Copy)]
struct Cut {
    full: u64,
    last: u64,
    packets: u64,
}

impl Routes for Topology {
    fn paths(&self, src: HostId, dst: HostId) -> u32 {
        let (a, b) = (self.homes[src.index()], self.homes[dst.index()]);
        if a.tor() == b.tor() {
            1
        } else if a.pod() == b.pod() {
            self.aggs.max(1)
        } else {
            self.aggs * self.cores_per_agg
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

fn check(shape: &Clos) -> Result<(), TopologyError> {
    let error = |what: String| Err(TopologyError(what));
    let Clos { pods, tors_per_pod, hosts_per_tor, aggs_per_pod, cores_per_agg, links } = *shape;
    if pods == 0 || tors_per_pod == 0 || hosts_per_tor == 0 {
        return error("pods, ToRs per pod and hosts per ToR must be at least 1".into());
    }
    if (tors_per_pod > 1 || pods > 1) && aggs_per_pod == 0 {
        return error("several ToRs need aggregation switches (spines) above them".into());
    }
    if pods > 1 && cores_per_agg == 0 {
        return error("several pods need core switches above them".into());
    }
    let port_counts = [pods, tors_per_pod, hosts_per_tor, aggs_per_pod, cores_per_agg];
    if let Some(&most) = port_counts.iter().find(|&&n| n >= u32::from(u16::MAX)) {
        return error(format!("{most} ports on one switch: at most 65534"));
    }
    let hosts = u64::from(pods) * u64::from(tors_per_pod) * u64::from(hosts_per_tor);
    let tor_ups = u64::from(pods) * u64::from(tors_per_pod) * u64::from(aggs_per_pod);
    let agg_ups = u64::from(pods) * u64::from(aggs_per_pod) * u64::from(cores_per_agg);
    let total = hosts.saturating_add(tor_ups).saturating_add(agg_ups).saturating_mul(2);
    if total > LINKS_MAX {
        return error(format!("{total} directed links: at most {LINKS_MAX}"));
    }
    if u64::from(aggs_per_pod) * u64::from(cores_per_agg) > u64::from(u16::MAX) {
        return error("more than 65535 core switches".into());
    }
    if links.iter().any(|link| link.rate == Rate(0)) {
        return error("a link of rate zero".into());
    }
    Ok(())
}

/// Collects nodes and links in order.
struct Builder {
    topology: Topology,
}

impl Builder {
    fn new(kind: &'static str, hosts: u32) -> Self {
        let topology = Topology {
            kind,
            links: Vec::new(),
            homes: Vec::with_capacity(hosts as usize),
            switches: Vec::new(),
            aggs: 0,
            cores_per_agg: 0,
            tors: 0,
            agg_switches: 0,
            switch_latency: Dur::ZERO,
            mtu: 1500,
            uneven: false,
            slow_core: false,
        };
        Self { topology }
    }

    fn link(&mut self, from: Node, to: Node, spec: LinkSpec) {
        let LinkSpec { rate, delay } = spec;
        self.topology.links.push(Link { from, to, rate, delay, up: true });
    }

    /// Begin a switch: its down ports follow.
    fn switch(&mut self, tier: Tier, pod: u32, index: u32) {
        let down = self.topology.links.len() as u32;
        let (pod, index) = (pod as u16, index as u16);
        self.topology.switches.push(Switch { tier, pod, index, down, up: down, ups: 0 });
    }

    /// The up ports of the last switch follow.
    fn ups_begin(&mut self, ups: u32) {
        let up = self.topology.links.len() as u32;
        if let Some(switch) = self.topology.switches.last_mut() {
            switch.up = up;
            switch.ups = ups;
        }
    }

    /// The next host hangs at down port `slot` of ToR `tor`.
    fn home(&mut self, tor: u32, slot: usize, pod: u32) {
        let rack = self.topology.switches.last().map_or(0, |tor| tor.index);
        let home = Home { below: [tor, pod, 0], down: [slot as u16, rack, pod as u16] };
        self.topology.homes.push(home);
    }

    fn finish(self, aggs: u32, cores_per_agg: u32, tors: u32, agg_switches: u32) -> Topology {
        let slowest = |core: bool| {
            let between =
                |l: &&Link| matches!((l.from, l.to), (Node::Switch(..), Node::Switch(..)));
            let links = self.topology.links.iter().filter(move |link| between(link) == core);
            links.map(|link| link.rate).min()
        };
        let slow_core = slowest(true) < slowest(false) && slowest(true).is_some();
        Topology { aggs, cores_per_agg, tors, agg_switches, slow_core, ..self.topology }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkSpec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };
    const NDP: Framing = Framing { payload: 9000, overhead: 64 };

    #[test]
    fn a_k12_fat_tree_has_432_hosts_and_36_paths() {
        let tree = Topology::fat_tree(12, 1, LINK).unwrap();
        assert_eq!(tree.hosts(), 432);
        assert_eq!(tree.links().len(), 432 * 6);
        assert_eq!(tree.switches_of(Tier::Core), 36);
        let (here, same_rack, same_pod, far) = (HostId(0), HostId(5), HostId(6), HostId(431));
        assert_eq!([same_rack, same_pod, far].map(|to| tree.paths(here, to)), [1, 6, 36]);
        assert_eq!([same_rack, same_pod, far].map(|to| tree.hops(here, to)), [2, 4, 6]);
    }

    #[test]
    fn every_path_of_every_shape_is_connected_and_distinct() {
        let shapes = [
            Topology::star(5, LINK).unwrap(),
            Topology::dumbbell(3, 2, LINK, LINK).unwrap(),
            Topology::leaf_spine(4, 3, 2, LINK, LINK).unwrap(),
            Topology::fat_tree(4, 2, LINK).unwrap(),
        ];
        for shape in shapes {
            for (src, dst) in
                (0..shape.hosts()).flat_map(|s| (0..shape.hosts()).map(move |d| (s, d)))
            {
                let (src, dst) = (HostId(src), HostId(dst));
                if src != dst {
                    check_paths(&shape, src, dst);
                }
            }
        }
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
            assert!(!seen.contains(&links), "paths are distinct");
            seen.push(links);
        }
    }

    #[test]
    fn find_link_and_link_agree() {
        let tree = Topology::fat_tree(4, 1, LINK).unwrap();
        for (n, link) in tree.links().iter().enumerate() {
            assert_eq!(tree.find_link(link.from, link.to), Some(n as u32), "{link}");
        }
        assert_eq!(tree.find_link(Node::Host(0), Node::Host(1)), None);
        assert_eq!(tree.find_link(Node::Host(99), Node::Switch(Tier::Tor, 0)), None);
    }

    /// The bound of the incast target in ndp.md: store and forward over six hops by hand.
    #[test]
    fn the_ideal_time_is_the_pipeline_by_hand() {
        let tree = Topology::fat_tree(12, 1, LINK).unwrap();
        let far = |len| tree.ideal(HostId(0), HostId(431), len, NDP, false);
        let full = 9064 * 800;
        assert_eq!(far(9000), Dur(6 * (full + 1_000_000)));
        assert_eq!(far(27_000), Dur(6 * (full + 1_000_000) + 2 * full));
        // One byte more: a 65-byte packet leaves right behind and follows to the end, unless it
        // goes another way.
        assert_eq!(far(9001), Dur(6 * (full + 1_000_000) + 65 * 800));
        let sprayed = tree.ideal(HostId(0), HostId(431), 9001, NDP, true);
        assert_eq!(sprayed, Dur(6 * (full + 1_000_000)));
        // Two full packets and one of 2365 bytes, which is at the last link before both.
        let sprayed = tree.ideal(HostId(0), HostId(431), 20_301, NDP, true);
        assert_eq!(sprayed, Dur(6 * (full + 1_000_000) + full));
        // It comes too late to overtake the first of thirty.
        let many = 29 * 9000 + 1;
        assert_eq!(tree.ideal(HostId(0), HostId(431), many, NDP, true), far(many));
        let star = Topology::star(2, LINK).unwrap().with_switch_latency(Dur::from_ns(300));
        assert_eq!(star.ideal(HostId(0), HostId(1), 1, NDP, true), Dur(2 * 65 * 800 + 2_300_000));
    }

    #[test]
    fn the_slowest_hop_paces_and_the_best_path_counts() {
        let mut tree = Topology::leaf_spine(2, 2, 1, LINK, LINK).unwrap();
        let slow = LinkSpec { rate: Rate(1_000_000_000), delay: LINK.delay };
        let tor = Node::Switch(Tier::Tor, 0);
        let link = tree.find_link(tor, Node::Switch(Tier::Agg, 0)).unwrap();
        tree.set_link(link, slow);
        let (full, delay) = (9064 * 800, 1_000_000);
        let best = tree.ideal(HostId(0), HostId(1), 27_000, NDP, false);
        assert_eq!(best, Dur(4 * (full + delay) + 2 * full));
        let cut = Cut { full: 9064, last: 9064, packets: 3 };
        let over_slow = tree.pipeline(HostId(0), HostId(1), 0, cut);
        assert_eq!(over_slow, Dur(3 * full + 10 * full + 4 * delay + 2 * 10 * full));
    }

    /// Four uplinks of a quarter of the hosts' rate carry a message as fast as the hosts can.
    #[test]
    fn slow_links_side_by_side_are_used_together() {
        let quarter = LinkSpec { rate: Rate(2_500_000_000), delay: LINK.delay };
        let fabric = Topology::leaf_spine(2, 4, 1, LINK, quarter).unwrap();
        let len = 9000 * 1000;
        let sprayed = fabric.ideal(HostId(0), HostId(1), len, NDP, true);
        let at_least = Dur(9064 * 800 * 1000);
        assert!(sprayed > at_least && sprayed < at_least + Dur::from_us(100), "{sprayed}");
        let single = fabric.ideal(HostId(0), HostId(1), len, NDP, false);
        assert!(single > at_least * 4);
    }

    #[test]
    fn a_failed_path_is_nobodys_ideal() {
        let mut fabric = Topology::leaf_spine(2, 2, 1, LINK, LINK).unwrap();
        let tor = Node::Switch(Tier::Tor, 0);
        let [fast, slow] =
            [0, 1].map(|n| fabric.find_link(tor, Node::Switch(Tier::Agg, n)).unwrap());
        fabric.set_link(slow, LinkSpec { rate: Rate(1_000_000_000), delay: LINK.delay });
        let ideal = |fabric: &Topology| fabric.ideal(HostId(0), HostId(1), 900_000, NDP, true);
        let before = ideal(&fabric);
        fabric.fail_link(fast);
        assert!(ideal(&fabric) > before * 5);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(Topology::fat_tree(5, 1, LINK).is_err());
        assert!(Topology::fat_tree(128, 1000, LINK).is_err());
        assert!(Topology::star(1, LINK).is_err());
        assert!(Topology::leaf_spine(2, 0, 4, LINK, LINK).is_err());
        assert!(Topology::dumbbell(0, 4, LINK, LINK).is_err());
    }
}
