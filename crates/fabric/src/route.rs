//! Which way a packet goes.
//!
//! In a tree of tiers that is computed: a path index is `u * aggs + a`: aggregation switch `a` of
//! the pod, then core `u` above it. Pairs within a pod use only `a`. The same index leads back over
//! the same switches. A VL2 has paths of its own (`crate::valiant`). In a graph they are looked up
//! (`crate::graph`).

use endpoint::{Draw, Packet, Purpose, Routes};
use units::HostId;

use crate::config::{Config, Routing};
use crate::graph::{Distances, UNREACHABLE};
use crate::link_state::{Choose, RoutingView};
use crate::planes;
use crate::topology::{Link, Node, Shape, Tier, Topology};
use crate::valiant;

impl Topology {
    /// The links from `src` to `dst` over path `path`, in order. Nothing if they are the same host.
    pub(crate) fn path_links(
        &self,
        src: HostId,
        dst: HostId,
        path: u32,
    ) -> impl Iterator<Item = u32> {
        let apart = src != dst;
        let between = self.computed_links(src, dst, path).chain(self.listed_links(src, dst, path));
        let between = between.chain(self.plane_links(src, dst, path));
        let first = apart.then_some(src.0).into_iter();
        first.chain(between).chain(apart.then(|| self.last_link(dst)))
    }

    /// The links between the switches of two hosts over path `path` in a tree of tiers or a VL2.
    fn computed_links(&self, src: HostId, dst: HostId, path: u32) -> impl Iterator<Item = u32> {
        let (from, to) = (self.homes[src.index()], self.homes[dst.index()]);
        let mut links = [u32::MAX; 4];
        let mut count = 0;
        let mut push = |link| {
            links[count] = link;
            count += 1;
        };
        if from.tor() == to.tor() || self.graph().is_some() || self.planes().is_some() {
            // None, or listed, or in a plane.
        } else if matches!(self.shape, Shape::Valiant { .. }) && !self.turns_in_pod(src, dst) {
            (links, count) = (self.valiant_links(src, dst, path), 4);
        } else {
            let tor = self.switches[from.tor() as usize];
            let (a, u) = (path % self.aggs, path / self.aggs);
            push(tor.up + a);
            if self.agg_switches() == 0 {
                // A dumbbell: the other ToR already.
            } else if from.pod() == to.pod() {
                let agg = self.agg(from.pod(), a);
                push(agg.down + u32::from(to.rack()));
            } else {
                push(self.agg(from.pod(), a).up + u);
                let core = self.switch_index(Tier::Core, a * self.cores_per_agg + u);
                push(self.switches[core].down + to.pod());
                let agg = self.agg(to.pod(), a);
                push(agg.down + u32::from(to.rack()));
            }
        }
        links.into_iter().take(count)
    }

    /// The first host at the end of link `down` or below it.
    fn some_host_below(&self, down: u32) -> HostId {
        match self.links()[down as usize].to {
            Node::Host(host) => HostId(host),
            node => {
                let below = self.switch_at(node).map_or(0, |at| self.switches[at as usize].down);
                self.some_host_below(below)
            }
        }
    }

    fn agg_switches(&self) -> u32 {
        self.switches_of(Tier::Agg)
    }

    /// Aggregation switch `a` of a pod.
    pub(crate) fn agg(&self, pod: u32, a: u32) -> &crate::topology::Switch {
        &self.switches[self.switch_index(Tier::Agg, pod * self.aggs + a)]
    }
}

/// Draws of a switch.
pub(crate) const SPRAY: Purpose = Purpose::new("fabric: spray");

/// Where a packet is on its way through a tree of tiers, which follows from the link that it has
/// come over. A packet carries, by leg, which of the next switch's ports it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Leg {
    /// At the ToR of its source.
    First,
    /// At an aggregation switch, from below.
    UpAgg,
    Core,
    /// At an aggregation switch, from above.
    DownAgg,
    /// At the ToR of its destination, from above.
    Last,
}

impl Leg {
    /// Of a packet that has come over `link`.
    pub(crate) fn after(link: &Link) -> Self {
        match (link.from, link.to) {
            (Node::Host(_), _) => Self::First,
            (Node::Switch(Tier::Core, _), Node::Switch(Tier::Agg, _)) => Self::DownAgg,
            (_, Node::Switch(Tier::Agg, _)) => Self::UpAgg,
            (_, Node::Switch(Tier::Core, _)) => Self::Core,
            _ => Self::Last,
        }
    }
}

impl Topology {
    /// In a tree of tiers: write into a packet which port its path takes at each switch, in the
    /// order of their links.
    #[inline(always)]
    pub(crate) fn stamp(&self, pkt: &mut Packet) {
        let (from, to) = (&self.homes[pkt.src.index()], &self.homes[pkt.dst.index()]);
        let [agg, core] = self.uplinks(pkt.path);
        let first = if from.tor() == to.tor() { to.slot() } else { from.tor_downs + agg };
        let second = if from.pod() == to.pod() { to.rack() } else { self.agg_downs as u16 + core };
        pkt.scratch = [first, second, to.pod() as u16, to.rack(), to.slot()];
    }

    /// Which uplink of a ToR, then of an aggregation switch, path `path` takes.
    #[inline(always)]
    fn uplinks(&self, path: u32) -> [u16; 2] {
        let [aggs, cores_per_agg] = self.digits;
        [path % aggs, path / aggs % cores_per_agg].map(|up| up as u16)
    }

    /// Which port of switch `at` leads on to `dst`, where path `path` does not lead by.
    pub(crate) fn turn(&self, at: u32, (dst, path): (HostId, u32)) -> u16 {
        let home = &self.homes[dst.index()];
        let (tier, below) = self.below(at);
        if home.below[tier] == below {
            return home.down[tier];
        }
        let [agg, core] = self.uplinks(path);
        let switch = &self.switches[at as usize];
        switch.downs() as u16 + if switch.tier == Tier::Agg { core } else { agg }
    }
}

/// How switches find the way up for a packet.
#[derive(Clone, Copy)]
pub(crate) enum Forwarding {
    /// The sender has chosen, and the packet carries the uplinks themselves: see `stamp`.
    Digits,
    /// Switches hash, and nothing changes what they choose from: the same, for what they would
    /// choose.
    Hashes,
    /// Something has to be worked out.
    Choice(Choose),
    /// In a VL2: the same, for packets that climb and for those that come down.
    Valiant(Choose),
    /// The sender has chosen, and written it into the packet as `crate::encoding` says.
    Encoded,
    /// In a fabric of several planes: how NICs and switches choose; `None`: the sender has chosen.
    Planes(Option<Choose>),
}

impl Forwarding {
    pub(crate) fn new(config: &Config, topology: &Topology) -> Self {
        let choose: Choose = match (config.routing, &topology.shape) {
            (Routing::Encoded(_), _) => return Self::Encoded,
            (Routing::Source, Shape::Planes(_)) => return Self::Planes(None),
            (Routing::Source, Shape::Tree) => return Self::Digits,
            (Routing::Source, Shape::Valiant { .. }) => valiant::by_path,
            (Routing::Source, Shape::Graph(_)) => by_list,
            (Routing::FlowHash, Shape::Tree) if config.faults.is_empty() => return Self::Hashes,
            (Routing::FlowHash, _) => by_hash,
            (Routing::PacketRandom, _) => by_draw,
            (Routing::Listed, _) => by_source,
        };
        match topology.shape {
            Shape::Valiant { .. } => Self::Valiant(choose),
            Shape::Planes(_) => Self::Planes(Some(choose)),
            Shape::Tree | Shape::Graph(_) => Self::Choice(choose),
        }
    }

    /// Whether packets carry the uplinks.
    #[inline(always)]
    pub(crate) fn is_carried(self) -> bool {
        matches!(self, Self::Digits | Self::Hashes)
    }

    /// Whether a packet's next port at a switch follows from what it carries, and does not change
    /// it.
    pub(crate) fn is_fixed(self, routing: Routing) -> bool {
        match self {
            Self::Digits | Self::Hashes => true,
            Self::Choice(_) => routing != Routing::PacketRandom,
            Self::Valiant(_) | Self::Encoded | Self::Planes(_) => false,
        }
    }
}

/// [`Routing::Source`] in a graph: the uplink that is on the packet's path.
fn by_list(known: &RoutingView<'_>, at: u32, pkt: &Packet, _: Draw, _: &mut u64) -> u32 {
    let switch = &known.topology.switches[at as usize];
    let ups = switch.up..switch.up + switch.ups;
    let mut links = known.topology.listed_links(pkt.src, pkt.dst, pkt.path);
    // A path comes through a switch once; a packet never leaves its path.
    links.find(|link| ups.contains(link)).map_or(0, |link| link - switch.up)
}

/// [`Routing::FlowHash`]: the same uplink for all packets of equal entropy.
pub(crate) fn by_hash(
    known: &RoutingView<'_>,
    at: u32,
    pkt: &Packet,
    draw: Draw,
    _: &mut u64,
) -> u32 {
    let hash = draw.part(u64::from(pkt.src.0) << 32 | u64::from(pkt.dst.0));
    let entropy = u64::from(pkt.path) << 8 | u64::from(pkt.proto);
    choose(known, at, pkt, |n| hash.below(SPRAY, entropy, n))
}

impl RoutingView<'_> {
    /// As [`Topology::stamp`], of the uplinks that [`by_hash`] gives at each switch, whose `draws`
    /// these are. What is believed of links must not change while the packet is on its way.
    #[inline(never)]
    pub(crate) fn stamp_hashes(&self, draws: &[Draw], pkt: &mut Packet) {
        let topology = self.topology;
        let (from, to) = (&topology.homes[pkt.src.index()], &topology.homes[pkt.dst.index()]);
        let up = |at: u32| by_hash(self, at, pkt, draws[at as usize], &mut 0);
        let (mut first, mut second) = (to.slot(), to.rack());
        if from.tor() != to.tor() {
            let agg = up(from.tor());
            first = from.tor_downs + agg as u16;
            // A dumbbell has no aggregation switches.
            if from.pod() != to.pod() && topology.agg_switches() > 0 {
                let at = topology.switch_index(Tier::Agg, from.pod() * topology.aggs + agg);
                second = (topology.agg_downs + up(at as u32)) as u16;
            }
        }
        pkt.scratch = [first, second, to.pod() as u16, to.rack(), to.slot()];
    }
}

/// [`Routing::PacketRandom`]: any uplink for any packet.
pub(crate) fn by_draw(
    known: &RoutingView<'_>,
    at: u32,
    pkt: &Packet,
    draw: Draw,
    draws: &mut u64,
) -> u32 {
    *draws += 1;
    choose(known, at, pkt, |n| draw.below(SPRAY, *draws, n))
}

/// [`Routing::Listed`]: the uplinks of the path that is listed for the packet's source.
pub(crate) fn by_source(
    known: &RoutingView<'_>,
    at: u32,
    pkt: &Packet,
    _: Draw,
    _: &mut u64,
) -> u32 {
    let topology = known.topology;
    let path = topology.listed.get(pkt.src.index()).copied().unwrap_or(0);
    let [agg, core] = topology.uplinks(path);
    let tier = topology.switches[at as usize].tier;
    let up = u64::from(if tier == Tier::Agg { core } else { agg });
    choose(known, at, pkt, |n| up % n)
}

/// One of the uplinks (next switches) of switch `at` over which the destination can be reached, in
/// a graph by the shortest way: `pick(n)` below n.
fn choose(known: &RoutingView<'_>, at: u32, pkt: &Packet, mut pick: impl FnMut(u64) -> u64) -> u32 {
    let topology = known.topology;
    // The usual case comes first: it takes one look at the shape.
    if matches!(topology.shape, Shape::Tree) && known.state.is_whole() {
        return pick(u64::from(topology.switches[at as usize].ups)) as u32;
    }
    let ups = match topology.shape {
        Shape::Valiant { .. } => topology.valiant_choices(at),
        Shape::Tree | Shape::Graph(_) | Shape::Planes(_) => topology.switches[at as usize].ups,
    };
    if known.state.is_whole() && topology.graph().is_none() {
        return pick(u64::from(ups)) as u32;
    }
    let live = || (0..ups).filter(|&up| leads_on(known, at, up, pkt.dst));
    match live().count() {
        0 => pick(u64::from(ups)) as u32,
        n => live().nth(pick(n as u64) as usize).unwrap_or(0),
    }
}

/// Whether some believed-alive way from switch `at` over its uplink `up` reaches `dst`; in a graph,
/// whether it is the shortest, or the shortest there would be if no link were dead.
fn leads_on(known: &RoutingView<'_>, at: u32, up: u32, dst: HostId) -> bool {
    let topology = known.topology;
    match &topology.shape {
        Shape::Graph(graph) => return nearer(known, &graph.distances, at, up, dst),
        Shape::Valiant { .. } => return valiant::leads_on(known, at, up, dst),
        // Of several, this is the NIC: an uplink is a plane.
        Shape::Planes(_) => return planes::leads_on(known, at, up, dst),
        Shape::Tree => {}
    }
    let switch = &topology.switches[at as usize];
    // Any host below stands for all of them: the links from here on are the same.
    let src = topology.some_host_below(switch.down);
    let works = |path, links_below| {
        let mut links = topology.path_links(src, dst, path).skip(links_below);
        links.all(|link| known.state.alive(link))
    };
    match switch.tier {
        Tier::Tor => {
            let cores = topology.paths(src, dst) / topology.aggs.max(1);
            (0..cores).any(|core| works(core * topology.aggs + up, 1))
        }
        _ => works(up * topology.aggs + u32::from(switch.index), 2),
    }
}

/// Whether uplink `up` of switch `at`, in a graph, leads to a switch that is one link nearer to
/// `dst`'s, over links believed alive; if `dst` cannot be reached over these, over `all`.
fn nearer(known: &RoutingView<'_>, all: &Distances, at: u32, up: u32, dst: HostId) -> bool {
    let RoutingView { topology, state } = known;
    let link = topology.switches[at as usize].up + up;
    let Some(next) = topology.switch_at(topology.links()[link as usize].to) else { return false };
    let rack = topology.homes[dst.index()].tor();
    let closer =
        |distances: &Distances| distances.between(next, rack) < distances.between(at, rack);
    let reached = !state.is_whole() && state.distances().between(at, rack) != UNREACHABLE;
    if reached { state.alive(link) && closer(state.distances()) } else { closer(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_state::LinkState;
    use crate::topology::{Bcube, Clos, Jellyfish, LinkSpec};
    use units::{Dur, Rate};

    const LINK: LinkSpec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };

    fn graphs() -> [Topology; 2] {
        let (switches, degree, hosts_per_switch) = (16, 4, 1);
        let (paths, stretch, seed, link) = (8, u32::MAX, 3, LINK);
        let jellyfish =
            Jellyfish { switches, degree, hosts_per_switch, paths, stretch, seed, link };
        let bcube = Bcube { n: 3, k: 1, stretch, link };
        [Topology::jellyfish(&jellyfish).unwrap(), Topology::bcube(&bcube).unwrap()]
    }

    fn pairs(topology: &Topology) -> impl Iterator<Item = (HostId, HostId)> {
        let hosts = topology.hosts();
        let pairs = (0..hosts).flat_map(move |a| (0..hosts).map(move |b| (HostId(a), HostId(b))));
        pairs.filter(|(a, b)| a != b)
    }

    /// With unequal numbers of everything.
    fn trees() -> [Topology; 4] {
        let shape = Clos {
            pods: 3,
            tors_per_pod: 2,
            hosts_per_tor: 4,
            aggs_per_pod: 3,
            cores_per_agg: 2,
            links: [LINK; 3],
        };
        [
            Topology::clos(shape).unwrap(),
            Topology::fat_tree(4, 3, LINK).unwrap(),
            Topology::leaf_spine(4, 3, 2, LINK, LINK).unwrap(),
            Topology::dumbbell(2, 5, LINK, LINK).unwrap(),
        ]
    }

    /// The links over which a packet goes on that has come over `link`.
    fn follow(topology: &Topology, pkt: &Packet, mut link: u32) -> Vec<u32> {
        let mut links = Vec::new();
        while let Some(at) = topology.switch_at(topology.links()[link as usize].to) {
            let leg = Leg::after(&topology.links()[link as usize]) as usize;
            link = topology.switches[at as usize].down + u32::from(pkt.scratch[leg]);
            links.push(link);
            assert!(links.len() < 10, "round and round");
        }
        links
    }

    /// What a packet carries leads it along its path; turned back anywhere, over the same
    /// switches home.
    #[test]
    fn packets_in_trees_carry_their_way() {
        for topology in trees() {
            for (src, dst) in pairs(&topology) {
                for path in 0..topology.paths(src, dst) {
                    let mut pkt = Packet { src, dst, path, ..Packet::EMPTY };
                    topology.stamp(&mut pkt);
                    let links: Vec<u32> = topology.path_links(src, dst, path).collect();
                    assert_eq!(follow(&topology, &pkt, src.0), links[1..], "{src} to {dst}");
                    let mut back = Packet { src: dst, dst: src, ..pkt };
                    topology.stamp(&mut back);
                    let whole: Vec<u32> = topology.path_links(dst, src, path).collect();
                    for (n, &link) in links[..links.len() - 1].iter().enumerate() {
                        let at = topology.switch_at(topology.links()[link as usize].to).unwrap();
                        let down = topology.switches[at as usize].down;
                        let first = down + u32::from(topology.turn(at, (back.dst, path)));
                        let rest = follow(&topology, &back, first);
                        let home: Vec<u32> = [first].into_iter().chain(rest).collect();
                        assert_eq!(home, whole[whole.len() - n - 1..], "from switch {at}");
                    }
                }
            }
        }
    }

    /// The link that a packet takes from switch `at` in a tree where switches hash, and so on to
    /// its host.
    fn hashed(known: &RoutingView<'_>, pkt: &Packet, draws: &[Draw], mut at: u32) -> Vec<u32> {
        let topology = known.topology;
        let home = &topology.homes[pkt.dst.index()];
        let mut links = Vec::new();
        loop {
            let switch = &topology.switches[at as usize];
            let (tier, below) = topology.below(at);
            let link = if home.below[tier] == below {
                switch.down + u32::from(home.down[tier])
            } else {
                switch.up + by_hash(known, at, pkt, draws[at as usize], &mut 0)
            };
            links.push(link);
            match topology.switch_at(topology.links()[link as usize].to) {
                Some(next) => at = next,
                None => return links,
            }
        }
    }

    /// What a packet carries leads it where switches that hash would; turned back anywhere, too.
    #[test]
    fn packets_carry_what_hashes_choose() {
        for topology in trees() {
            let state = LinkState::new(&topology);
            let known = RoutingView { topology: &topology, state: &state };
            let switches = 0..topology.switches.len() as u64;
            let draws: Vec<Draw> = switches.map(|at| Draw::new(1, SPRAY, at)).collect();
            for (src, dst) in pairs(&topology) {
                for path in 0..5 {
                    let mut pkt = Packet { src, dst, path, ..Packet::EMPTY };
                    known.stamp_hashes(&draws, &mut pkt);
                    let links = follow(&topology, &pkt, src.0);
                    let tor = topology.homes[src.index()].tor();
                    assert_eq!(links, hashed(&known, &pkt, &draws, tor), "{src} to {dst}");
                    let mut back = Packet { src: dst, dst: src, ..pkt };
                    known.stamp_hashes(&draws, &mut back);
                    let passed = [src.0].into_iter().chain(links);
                    let ends = passed.map(|link| topology.links()[link as usize].to);
                    for at in ends.filter_map(|end| topology.switch_at(end)) {
                        let home = hashed(&known, &back, &draws, at);
                        assert_eq!(follow(&topology, &back, home[0]), home[1..], "from {at}");
                    }
                }
            }
        }
    }

    /// The links that a packet crosses from its host's switch to its destination's.
    fn walk(known: &RoutingView<'_>, pkt: &Packet, choose: Choose) -> Vec<u32> {
        let topology = known.topology;
        let rack = topology.homes[pkt.dst.index()].tor();
        let (mut at, mut draws) = (topology.homes[pkt.src.index()].tor(), 0);
        let mut links = Vec::new();
        while at != rack {
            let draw = Draw::new(1, SPRAY, u64::from(at));
            let link = topology.switches[at as usize].up + choose(known, at, pkt, draw, &mut draws);
            links.push(link);
            at = topology.switch_at(topology.links()[link as usize].to).unwrap();
            assert!(links.len() < 100, "round and round");
        }
        links
    }

    /// The least number of links between the switches of two hosts, by relaxing all links that are
    /// not in `dead` until nothing changes.
    fn shortest(topology: &Topology, src: HostId, dst: HostId, dead: &[u32]) -> Option<usize> {
        let mut reach = vec![None; topology.switches.len()];
        reach[topology.homes[src.index()].tor() as usize] = Some(0);
        for _ in 0..topology.switches.len() {
            for (n, link) in (0..).zip(topology.links()) {
                let ends = topology.switch_at(link.from).zip(topology.switch_at(link.to));
                let Some((from, to)) = ends.filter(|_| !dead.contains(&n)) else { continue };
                let over = reach[from as usize].map(|links: usize| links + 1);
                let best = reach[to as usize].into_iter().chain(over).min();
                reach[to as usize] = best;
            }
        }
        reach[topology.homes[dst.index()].tor() as usize]
    }

    /// Some links between switches: every eleventh, and in one direction only.
    fn some_dead(topology: &Topology) -> Vec<u32> {
        let hosts = topology.hosts() as usize;
        let links = (0..).zip(topology.links()).skip(hosts);
        let between = links.filter(|(_, link)| !matches!(link.to, Node::Host(_)));
        between.step_by(11).map(|(n, _)| n).collect()
    }

    fn to_last_switch(jellyfish: &Topology) -> Vec<u32> {
        let links = (0..).zip(jellyfish.links()).skip(jellyfish.hosts() as usize);
        links.filter(|(_, link)| link.to == Node::Switch(Tier::Tor, 15)).map(|(n, _)| n).collect()
    }

    fn update(state: &mut LinkState, topology: &Topology, links: &[u32], up: bool) {
        let changes: Vec<(u32, bool)> = links.iter().map(|&link| (link, up)).collect();
        state.update(topology, &changes);
    }

    /// specs/mptcp.md#5: over 10^5 random ports each of 4 next hops gets 25 % +- 1 %, and
    /// the joint choice of two tiers is uniform over 16: every switch hashes with a salt of its
    /// own.
    #[test]
    fn hashes_spread_flows_evenly_and_independently_over_both_tiers() {
        const FLOWS: u64 = 100_000;
        let tree = Topology::fat_tree(8, 4, LINK).unwrap();
        let known = RoutingView { topology: &tree, state: &LinkState::new(&tree) };
        let ports = Draw::new(7, Purpose::new("ports"), 0);
        let (mut joint, mut other_tor) = ([[0u64; 4]; 4], [[0u64; 4]; 4]);
        for flow in 0..FLOWS {
            let path = 1 + ports.below(SPRAY, flow, 65_530) as u32;
            let pkt = Packet { src: HostId(0), dst: HostId(511), path, ..Packet::EMPTY };
            let choice = |at: u32| {
                let draw = Draw::new(1, SPRAY, u64::from(at));
                by_hash(&known, at, &pkt, draw, &mut 0) as usize
            };
            let tor = choice(0);
            let agg = tree.switch_index(Tier::Agg, tor as u32) as u32;
            joint[tor][choice(agg)] += 1;
            other_tor[tor][choice(1)] += 1;
        }
        let share = |flows: u64| flows as f64 / FLOWS as f64;
        for counts in [joint, other_tor] {
            for n in 0..4 {
                let row = share(counts[n].iter().sum());
                let column = share(counts.iter().map(|row| row[n]).sum());
                assert!(
                    [row, column].iter().all(|share| (share - 0.25).abs() < 0.01),
                    "{counts:?}"
                );
                let cells = counts[n].map(share);
                // A standard deviation is 0.08 %.
                assert!(cells.iter().all(|share| (share - 0.0625).abs() < 0.004), "{counts:?}");
            }
        }
    }

    #[test]
    fn a_listed_path_is_followed_there_and_back_from_anywhere_on_it() {
        for topology in graphs() {
            let known = RoutingView { topology: &topology, state: &LinkState::new(&topology) };
            for (src, dst) in pairs(&topology) {
                // One more index than there are paths: entropy of a sender that does not choose.
                for path in 0..=topology.paths(src, dst) {
                    let pkt = Packet { src, dst, path, ..Packet::EMPTY };
                    let links = walk(&known, &pkt, by_list);
                    assert!(links.iter().copied().eq(topology.listed_links(src, dst, path)));
                    // A header that is turned back on the way.
                    let bounced = Packet { src: dst, dst: src, ..pkt };
                    for (n, &link) in links.iter().enumerate().skip(1) {
                        let here = topology.switch_at(topology.links()[link as usize].from);
                        let here = here.unwrap();
                        let draw = Draw::new(1, SPRAY, 0);
                        let up = by_list(&known, here, &bounced, draw, &mut 0);
                        let back = topology.switches[here as usize].up + up;
                        let (back, came) = (back as usize, links[n - 1] as usize);
                        assert_eq!(topology.links()[back].to, topology.links()[came].from);
                    }
                }
            }
        }
    }

    #[test]
    fn switches_that_choose_use_every_shortest_way_and_no_other() {
        for topology in graphs() {
            for dead in [Vec::new(), some_dead(&topology)] {
                let mut state = LinkState::new(&topology);
                update(&mut state, &topology, &dead, false);
                let known = RoutingView { topology: &topology, state: &state };
                for (src, dst) in pairs(&topology) {
                    let wanted = shortest(&topology, src, dst, &dead).unwrap();
                    for path in 0..20 {
                        let pkt = Packet { src, dst, path, ..Packet::EMPTY };
                        for choose in [by_hash, by_draw] {
                            let links = walk(&known, &pkt, choose);
                            assert_eq!(links.len(), wanted, "{src} to {dst}");
                            assert!(links.iter().all(|link| !dead.contains(link)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ties_between_next_switches_are_all_drawn() {
        // In a BCube, servers that differ in both digits have a shortest way over either level.
        let [_, bcube] = graphs();
        let known = RoutingView { topology: &bcube, state: &LinkState::new(&bcube) };
        let first = |path, choose| {
            let pkt = Packet { src: HostId(0), dst: HostId(4), path, ..Packet::EMPTY };
            walk(&known, &pkt, choose)[0]
        };
        let both: Vec<u32> = (0..2).map(|level| bcube.switches[0].up + level).collect();
        let hashed: std::collections::BTreeSet<u32> = (0..40).map(|n| first(n, by_hash)).collect();
        assert!(hashed.into_iter().eq(both));
        assert_eq!(first(7, by_hash), first(7, by_hash), "one flow, one way");
    }

    #[test]
    fn where_nothing_leads_packets_still_go_somewhere_and_end() {
        let [jellyfish, _] = graphs();
        let mut state = LinkState::new(&jellyfish);
        update(&mut state, &jellyfish, &to_last_switch(&jellyfish), false);
        let known = RoutingView { topology: &jellyfish, state: &state };
        let pkt = Packet { src: HostId(0), dst: HostId(15), ..Packet::EMPTY };
        let wanted = shortest(&jellyfish, HostId(0), HostId(15), &[]).unwrap();
        assert_eq!(walk(&known, &pkt, by_draw).len(), wanted, "as if nothing were dead");
    }

    #[test]
    fn dead_links_leave_the_path_lists() {
        for topology in graphs() {
            let dead = some_dead(&topology);
            let mut state = LinkState::new(&topology);
            let version = state.version();
            update(&mut state, &topology, &dead, false);
            assert_ne!(state.version(), version);
            let known = RoutingView { topology: &topology, state: &state };
            let mut down = 0;
            for (src, dst) in pairs(&topology) {
                let uses = |path| topology.listed_links(src, dst, path).any(|l| dead.contains(&l));
                let paths = 0..topology.paths(src, dst);
                let none = paths.clone().all(uses);
                for path in paths {
                    assert_eq!(known.path_up(src, dst, path), none || !uses(path));
                    down += u32::from(uses(path));
                }
            }
            assert!(down > 10, "{down}");
            update(&mut state, &topology, &dead, true);
            assert!(state.is_whole());
        }
    }

    #[test]
    fn a_rack_without_a_way_is_named() {
        let [jellyfish, _] = graphs();
        let mut state = LinkState::new(&jellyfish);
        let known = |state: &LinkState| RoutingView { topology: &jellyfish, state }.cut_off();
        assert_eq!(known(&state), None);
        update(&mut state, &jellyfish, &to_last_switch(&jellyfish), false);
        assert_eq!(known(&state), Some((HostId(0), HostId(15))));
    }
}
