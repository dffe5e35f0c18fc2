//! Valiant load balancing: which way a packet goes in a VL2 (`crate::topology::Vl2`; Greenberg et al.,
//! SIGCOMM 2009, section 4.2).
//!
//! Every packet between racks goes up to an intermediate (core) switch, any of them, and down from there,
//! also where both racks hang at one aggregation switch. VL2 wraps it into a header whose destination is
//! an address of all intermediate switches alike; whichever gets it takes that header off. Until then a packet
//! *climbs*. Here a word of its scratch says so.
//!
//! With a shortcut ([`crate::topology::Vl2::shortcut`]), packets between racks of one pod turn at its aggregation
//! switches, as in a fat-tree: two paths.
//!
//! Three choices make a path: the aggregation switch up (of two), the core switch, the aggregation switch
//! down (of two). A path's index is `(high * cores + core) * 2 + low`, where `low` is the choice at
//! the rack of the lower number: so the same index leads back over the same switches.

use endpoint::{Draw, Packet};
use units::HostId;

use crate::link_state::RoutingView;
use crate::links;
use crate::topology::{AGGS, Shape, Tier, Topology};

/// The word of a packet's scratch that says whether it climbs.
const CLIMBS: usize = 4;

impl Topology {
    /// Whether packets between two hosts of a VL2, of different racks, turn below the core switches.
    pub(crate) fn turns_in_pod(&self, src: HostId, dst: HostId) -> bool {
        let shortcut = matches!(self.shape, Shape::Valiant { shortcut: true });
        shortcut && self.homes[src.index()].pod() == self.homes[dst.index()].pod()
    }

    /// What path `path` chooses at each tier: the aggregation switch up, the core switch, the
    /// aggregation switch down.
    fn choices(&self, src: HostId, dst: HostId, path: u32) -> [u32; 3] {
        if self.turns_in_pod(src, dst) {
            return [path % AGGS, 0, 0];
        }
        let cores = self.cores_per_agg;
        let (low, core, high) = (path % AGGS, path / AGGS % cores, path / AGGS / cores % AGGS);
        if self.homes[src.index()].tor() < self.homes[dst.index()].tor() {
            [low, core, high]
        } else {
            [high, core, low]
        }
    }

    /// The links between the ToRs of two hosts, which are different ones, over path `path`.
    pub(crate) fn valiant_links(&self, src: HostId, dst: HostId, path: u32) -> [u32; 4] {
        let [up, core, down] = self.choices(src, dst, path);
        let from = &self.homes[src.index()];
        let [core_to_agg, agg_to_tor] = self.links_down(core, down, dst);
        let tor_to_agg = self.switches[from.tor() as usize].up + up;
        [tor_to_agg, self.agg(from.pod(), up).up + core, core_to_agg, agg_to_tor]
    }

    /// The links from a core switch to the ToR of `dst` over one of its two aggregation switches.
    fn links_down(&self, core: u32, agg: u32, dst: HostId) -> [u32; 2] {
        let to = &self.homes[dst.index()];
        let core = &self.switches[self.switch_index(Tier::Core, core)];
        let down = self.agg(to.pod(), agg).down + u32::from(to.rack());
        [core.down + to.pod() * AGGS + agg, down]
    }

    /// Among how many next switches switch `at` chooses.
    pub(crate) fn valiant_choices(&self, at: u32) -> u32 {
        let switch = &self.switches[at as usize];
        if switch.tier == Tier::Core { AGGS } else { switch.ups }
    }
}

/// Whether some way from switch `at` over its next switch `choice` reaches the rack of `dst`, all links
/// of it believed alive, for a packet that climbs or is at a core switch.
pub(crate) fn leads_on(known: &RoutingView<'_>, at: u32, choice: u32, dst: HostId) -> bool {
    let topology = known.topology;
    let alive = |link| known.state.alive(link);
    let from_core = |core, agg| topology.links_down(core, agg, dst).into_iter().all(alive);
    let from_agg = |switch: &crate::topology::Switch, core: u32| {
        alive(switch.up + core) && (0..AGGS).any(|agg| from_core(core, agg))
    };
    let switch = &topology.switches[at as usize];
    match switch.tier {
        Tier::Core => from_core(u32::from(switch.index), choice),
        Tier::Agg => from_agg(switch, choice),
        _ => {
            let agg = topology.agg(u32::from(switch.pod), choice);
            let home = &topology.homes[dst.index()];
            let shortcut = matches!(topology.shape, Shape::Valiant { shortcut: true });
            if shortcut && home.pod() == u32::from(switch.pod) {
                return alive(switch.up + choice) && alive(agg.down + u32::from(home.rack()));
            }
            alive(switch.up + choice) && (0..agg.ups).any(|core| from_agg(agg, core))
        }
    }
}

/// [`crate::Routing::Source`]: what the packet's path says.
pub(crate) fn by_path(known: &RoutingView<'_>, at: u32, pkt: &Packet, _: Draw, _: &mut u64) -> u32 {
    let choices = known.topology.choices(pkt.src, pkt.dst, pkt.path);
    choices[known.topology.switches[at as usize].tier.height()]
}

/// A header turns back, its source and destination already exchanged: what climbed comes down, and the other
/// way round. ToRs and core switches know without being told.
pub(crate) fn turn_back(pkt: &mut Packet) {
    pkt.scratch[CLIMBS] ^= 1;
}

/// The output port of `switch` for a packet, where `choose` says which of several next switches.
pub(crate) fn port(
    view: &RoutingView<'_>,
    switch: &links::Switch,
    pkt: &mut Packet,
    choose: impl FnOnce(&RoutingView<'_>, &Packet) -> u32,
) -> u32 {
    let topology = view.topology;
    let home = &topology.homes[pkt.dst.index()];
    let down = switch.down + u32::from(home.down[switch.tier]);
    let tier = topology.switches[switch.number as usize].tier;
    match tier {
        Tier::Core => pkt.scratch[CLIMBS] = 0,
        Tier::Agg if pkt.scratch[CLIMBS] == 0 => return down,
        Tier::Agg if topology.turns_in_pod(pkt.src, pkt.dst) => {
            pkt.scratch[CLIMBS] = 0;
            return down;
        }
        Tier::Agg => {}
        _ if home.tor() == switch.number => return down,
        _ => pkt.scratch[CLIMBS] = 1,
    }
    let choice = choose(view, pkt);
    if tier == Tier::Core { switch.down + home.pod() * AGGS + choice } else { switch.up + choice }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_state::{Choose, LinkState};
    use crate::route::{by_draw, by_hash};
    use crate::topology::{LinkSpec, Node, Vl2};
    use endpoint::Routes;
    use std::collections::BTreeMap;
    use units::{Dur, Rate};

    /// Four core switches, four aggregation switches, eight racks of two hosts.
    fn vl2() -> Topology {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };
        let shape = Vl2 {
            aggregation_ports: 8,
            intermediate_ports: 4,
            hosts_per_rack: 2,
            host_link: link,
            switch_link: link,
            shortcut: false,
        };
        Topology::vl2(&shape).unwrap()
    }

    /// The links between the racks of a packet's hosts, chosen at each switch with draws of its own.
    fn walk(known: &RoutingView<'_>, pkt: &Packet, choose: Choose, draws: &mut u64) -> [u32; 4] {
        let topology = known.topology;
        let to = &topology.homes[pkt.dst.index()];
        let mut at_next = |at: u32| {
            let draw = Draw::new(1, crate::route::SPRAY, u64::from(at));
            choose(known, at, pkt, draw, draws)
        };
        let end = |link: u32| topology.switch_at(topology.links()[link as usize].to).unwrap();
        let tor = topology.homes[pkt.src.index()].tor();
        let up = topology.switches[tor as usize].up + at_next(tor);
        let agg = end(up);
        let over = topology.switches[agg as usize].up + at_next(agg);
        let core = end(over);
        let core_down = topology.switches[core as usize].down;
        let down = core_down + to.pod() * AGGS + at_next(core);
        let last = topology.switches[end(down) as usize].down + u32::from(to.rack());
        [up, over, down, last]
    }

    /// The racks of hosts 0 and 3 share both aggregation switches; those of 0 and 15 none.
    const PAIRS: [(HostId, HostId); 2] = [(HostId(0), HostId(3)), (HostId(0), HostId(15))];

    #[test]
    fn senders_find_their_paths() {
        let topology = vl2();
        let known = RoutingView { topology: &topology, state: &LinkState::new(&topology) };
        for (src, dst) in PAIRS {
            // One more than there are: entropy of whoever does not choose.
            for path in 0..=topology.paths(src, dst) {
                let pkt = Packet { src, dst, path, ..Packet::EMPTY };
                let links = walk(&known, &pkt, by_path, &mut 0);
                assert_eq!(links, topology.valiant_links(src, dst, path));
            }
        }
    }

    /// Each of the 16 paths gets a 16th of 16 000 flows (or packets): 1000, give or take five standard
    /// deviations of 31.
    #[test]
    fn switches_that_choose_spread_evenly_over_all_paths() {
        let topology = vl2();
        let known = RoutingView { topology: &topology, state: &LinkState::new(&topology) };
        for (src, dst) in PAIRS {
            for choose in [by_hash, by_draw] {
                let (mut taken, mut draws) = (BTreeMap::new(), 0);
                for path in 0..16_000 {
                    let pkt = Packet { src, dst, path, ..Packet::EMPTY };
                    *taken.entry(walk(&known, &pkt, choose, &mut draws)).or_insert(0u32) += 1;
                }
                assert_eq!(taken.len(), 16);
                assert!(taken.values().all(|n| n.abs_diff(1000) < 155), "{taken:?}");
            }
        }
    }

    /// What is believed dead is left out at each of the three choices, wherever on the way it is.
    #[test]
    fn dead_links_are_nobodys_choice() {
        let topology = vl2();
        let (tor, agg) = (|n| Node::Switch(Tier::Tor, n), |n| Node::Switch(Tier::Agg, n));
        let core = |n| Node::Switch(Tier::Core, n);
        let (_, far) = PAIRS[1];
        let first_uplink = (tor(0), agg(0));
        // Far away: core 0 no longer reaches the destination's pod, core 1 only by one way.
        let down = [(core(0), agg(2)), (core(0), agg(3)), (core(1), agg(2))];
        let last = (agg(3), tor(7));
        for (dead, paths) in [
            (vec![], 16),
            (vec![first_uplink], 8),
            (down.to_vec(), 2 * (1 + 2 + 2)),
            (vec![last], 8),
            (vec![first_uplink, last], 4),
        ] {
            let dead: Vec<u32> =
                dead.iter().map(|&(a, b)| topology.find_link(a, b).unwrap()).collect();
            let mut state = LinkState::new(&topology);
            let changes: Vec<(u32, bool)> = dead.iter().map(|&link| (link, false)).collect();
            state.update(&topology, &changes);
            let known = RoutingView { topology: &topology, state: &state };
            let mut taken = std::collections::BTreeSet::new();
            for path in 0..2000 {
                let pkt = Packet { src: HostId(0), dst: far, path, ..Packet::EMPTY };
                for choose in [by_hash, by_draw] {
                    let links = walk(&known, &pkt, choose, &mut u64::from(path));
                    assert!(links.iter().all(|link| !dead.contains(link)), "{links:?}");
                    taken.insert(links);
                }
            }
            assert_eq!(taken.len(), paths);
            let up = (0..16).filter(|&path| known.path_up(HostId(0), far, path)).count();
            assert_eq!(up, paths, "path lists leave out the same");
            assert_eq!(known.cut_off(), None);
        }
    }
}
