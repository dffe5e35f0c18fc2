//! VL2: Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, section
//! 4.1 and figure 5. A Clos network of aggregation and intermediate switches, each joined to each,
//! under which every top-of-rack switch is joined to two aggregation switches.
//!
//! Intermediate switches are called core switches here, as in other fabrics of three tiers. The
//! ToRs that share two aggregation switches, D_A/2 of them, count as a pod. How packets travel:
//! `crate::valiant`.

use units::Rate;

use super::builder::{Builder, Racks};
use super::{LINKS_MAX, LinkSpec, Node, Shape, Tier, Topology, TopologyError};

/// Aggregation switches to which a ToR is joined.
pub(crate) const AGGS: u32 = 2;

/// The shape of a VL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vl2 {
    /// Ports of an aggregation switch (the paper's D_A): even. Half of them lead to the
    /// intermediate switches, as many as that; the others to ToRs.
    pub aggregation_ports: u32,
    /// Ports of an intermediate switch (the paper's D_I): even. There are as many aggregation
    /// switches, and D_A * D_I / 4 ToRs, which are to be two or more.
    pub intermediate_ports: u32,
    /// Servers of a rack: not zero. The paper has 20.
    pub hosts_per_rack: u32,
    /// Links between servers and ToRs.
    pub host_link: LinkSpec,
    /// Links between switches. The paper's have 10 times the rate of the servers'.
    pub switch_link: LinkSpec,
    /// Packets between racks that share aggregation switches turn there, on the shortest way, not
    /// at an intermediate switch: not VL2 then, but a Clos network of the same shape with plain
    /// ECMP.
    pub shortcut: bool,
}

impl Topology {
    /// A VL2.
    ///
    /// # Errors
    /// A shape outside the ranges of [`Vl2`], or too large.
    pub fn vl2(shape: &Vl2) -> Result<Self, TopologyError> {
        check(shape)?;
        let Vl2 { hosts_per_rack, host_link, switch_link, .. } = *shape;
        let (cores, aggs) = (shape.aggregation_ports / 2, shape.intermediate_ports);
        let racks = Racks {
            pods: aggs / AGGS,
            tors_per_pod: shape.aggregation_ports / 2,
            hosts_per_tor: hosts_per_rack,
            aggs_per_pod: AGGS,
            host_link,
            uplink: switch_link,
        };
        let mut build = Builder::new("vl2", racks.pods * racks.tors_per_pod * hosts_per_rack);
        build.racks(&racks);
        for agg in 0..aggs {
            build.agg(&racks, agg);
            build.ups_begin(cores);
            for core in 0..cores {
                let core = Node::Switch(Tier::Core, core);
                build.link(Node::Switch(Tier::Agg, agg), core, switch_link);
            }
        }
        for core in 0..cores {
            build.switch(Tier::Core, 0, core);
            for agg in 0..aggs {
                let agg = Node::Switch(Tier::Agg, agg);
                build.link(Node::Switch(Tier::Core, core), agg, switch_link);
            }
            build.ups_begin(0);
        }
        let shape = Shape::Valiant { shortcut: shape.shortcut };
        Ok(Self { shape, ..build.finish(AGGS, cores) })
    }
}

fn check(shape: &Vl2) -> Result<(), TopologyError> {
    let error = |what: String| Err(TopologyError(what));
    let Vl2 { aggregation_ports, intermediate_ports, hosts_per_rack, .. } = *shape;
    for (name, ports) in [("aggregation", aggregation_ports), ("intermediate", intermediate_ports)]
    {
        if ports == 0 || !ports.is_multiple_of(2) || ports >= u32::from(u16::MAX) {
            return error(format!("{name} switches of {ports} ports: an even number to 65534"));
        }
    }
    let racks = u64::from(aggregation_ports) * u64::from(intermediate_ports) / 4;
    if racks < 2 {
        return error("one rack: aggregation and intermediate switches have nothing to do".into());
    }
    if hosts_per_rack == 0 || hosts_per_rack >= u32::from(u16::MAX) {
        return error(format!("{hosts_per_rack} hosts in a rack: from 1 to 65534"));
    }
    // Up and down: a rack's hosts, its two uplinks, and two more between aggregation and core.
    let links = 2 * racks * (u64::from(hosts_per_rack) + 2 * u64::from(AGGS));
    if links > LINKS_MAX {
        return error(format!("{links} directed links: at most {LINKS_MAX}"));
    }
    if [shape.host_link, shape.switch_link].iter().any(|link| link.rate == Rate(0)) {
        return error("a link of rate zero".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::{LINK, check_links};
    use endpoint::{Framing, Routes};
    use std::collections::BTreeSet;
    use units::{Dur, HostId};

    const FAST: LinkSpec = LinkSpec { rate: Rate(100_000_000_000), delay: LINK.delay };

    fn vl2(aggregation_ports: u32, intermediate_ports: u32) -> Topology {
        let shape = Vl2 {
            aggregation_ports,
            intermediate_ports,
            hosts_per_rack: 3,
            host_link: LINK,
            switch_link: FAST,
            shortcut: false,
        };
        Topology::vl2(&shape).unwrap()
    }

    /// The counts of section 4.1 of the paper, and figure 5: D_A/2 intermediate switches of D_I
    /// ports, D_I aggregation switches of D_A ports, D_A * D_I / 4 ToRs with two uplinks.
    #[test]
    fn the_paper_counts_switches_and_ports() {
        for (da, di) in [(2, 4), (4, 2), (4, 6), (8, 8)] {
            let fabric = vl2(da, di);
            let counts = [Tier::Tor, Tier::Agg, Tier::Core].map(|tier| fabric.switches_of(tier));
            assert_eq!(counts, [da * di / 4, di, da / 2]);
            assert_eq!(fabric.hosts(), 3 * counts[0]);
            let to = |from, tier: Tier| {
                let ends = fabric.links().iter().filter(|link| link.from == from);
                let to = ends.filter_map(|link| match link.to {
                    Node::Switch(t, n) if t == tier => Some(n),
                    _ => None,
                });
                to.collect::<BTreeSet<u32>>()
            };
            for tor in 0..counts[0] {
                assert_eq!(to(Node::Switch(Tier::Tor, tor), Tier::Agg).len(), 2);
            }
            for agg in (0..di).map(|agg| Node::Switch(Tier::Agg, agg)) {
                assert_eq!(to(agg, Tier::Tor).len() as u32, da / 2);
                assert!(to(agg, Tier::Core).into_iter().eq(0..da / 2), "every one of them");
            }
            for core in (0..da / 2).map(|core| Node::Switch(Tier::Core, core)) {
                assert!(to(core, Tier::Agg).into_iter().eq(0..di), "every one of them");
            }
        }
    }

    /// specs/mptcp.md#4: as many paths as there are intermediate switches and
    /// choices of aggregation switches up and down; all go over an intermediate switch, and are the
    /// way back, too.
    #[test]
    fn every_path_between_racks_climbs_to_an_intermediate_switch() {
        for (da, di) in [(2, 4), (4, 2), (4, 6)] {
            let fabric = vl2(da, di);
            check_links(&fabric);
            let hosts = || (0..fabric.hosts()).map(HostId);
            for (src, dst) in hosts().flat_map(|src| hosts().map(move |dst| (src, dst))) {
                let [a, b] = [src, dst].map(|host| fabric.homes[host.index()].tor());
                if a == b {
                    assert_eq!((fabric.paths(src, dst), fabric.hops(src, dst) <= 2), (1, true));
                    continue;
                }
                assert_eq!((fabric.paths(src, dst), fabric.hops(src, dst)), (2 * da / 2 * 2, 6));
                let ways: BTreeSet<Vec<Node>> = (0..fabric.paths(src, dst))
                    .map(|path| {
                        let nodes = way(&fabric, src, dst, path);
                        let mut back = way(&fabric, dst, src, path);
                        back.reverse();
                        assert_eq!(nodes, back, "the reverse of an index is the same way back");
                        assert!(matches!(nodes[3], Node::Switch(Tier::Core, _)), "{nodes:?}");
                        nodes
                    })
                    .collect();
                assert_eq!(ways.len() as u32, fabric.paths(src, dst), "distinct");
            }
        }
    }

    /// With a shortcut, racks 0 and 1 have the two paths of a fat-tree's pod, and racks 0 and 2
    /// those they had.
    #[test]
    fn a_shortcut_turns_at_aggregation_switches() {
        let fabric = Topology { shape: Shape::Valiant { shortcut: true }, ..vl2(4, 4) };
        let (near, far) = (HostId(3), HostId(6));
        assert_eq!([near, far].map(|to| fabric.paths(HostId(0), to)), [2, 8]);
        assert_eq!([near, far].map(|to| fabric.hops(HostId(0), to)), [4, 6]);
        for path in 0..2 {
            let nodes = |from, to| -> Vec<Node> {
                let links = fabric.path_links(from, to, path);
                links.map(|link| fabric.links()[link as usize].to).collect()
            };
            let [tor, agg] = [Tier::Tor, Tier::Agg].map(|tier| move |n| Node::Switch(tier, n));
            let there = nodes(HostId(0), near);
            assert_eq!(there, [tor(0), agg(path), tor(1), Node::Host(3)]);
            assert_eq!(nodes(near, HostId(0)), [tor(1), agg(path), tor(0), Node::Host(0)]);
        }
    }

    /// The nodes on a path, each joined to the next.
    fn way(fabric: &Topology, src: HostId, dst: HostId, path: u32) -> Vec<Node> {
        let links = fabric.path_links(src, dst, path).map(|link| fabric.links()[link as usize]);
        let links: Vec<_> = links.collect();
        assert!(links.windows(2).all(|pair| pair[0].to == pair[1].from), "{links:?}");
        assert_eq!((links[0].from, links[5].to), (Node::Host(src.0), Node::Host(dst.0)));
        links.iter().map(|link| link.from).chain([Node::Host(dst.0)]).collect()
    }

    /// Store and forward by hand: two links of hosts, four ten times as fast between switches.
    #[test]
    fn round_trips_and_ideal_times_are_those_of_six_links() {
        let fabric = vl2(4, 4).with_mtu(1500);
        let (near, far) = (HostId(3), HostId(11));
        let way = |bytes: u64| Dur(2 * bytes * 800 + 4 * bytes * 80 + 6 * 1_000_000);
        for dst in [near, far] {
            assert_eq!(fabric.base_rtt(HostId(0), dst), way(1500) + way(64));
            let framing = Framing { payload: 1460, overhead: 40 };
            let ideal = fabric.ideal(HostId(0), dst, 14_600, framing, true);
            assert_eq!(ideal, way(1500) + LINK.rate.serialise(1500) * 9);
        }
        assert_eq!((fabric.longest_rtt(), fabric.longest_path()), (way(1500) + way(64), 6));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let link = LINK;
        let refused = |aggregation_ports, intermediate_ports, hosts_per_rack| {
            let (host_link, switch_link) = (link, link);
            let shape = Vl2 {
                aggregation_ports,
                intermediate_ports,
                hosts_per_rack,
                host_link,
                switch_link,
                shortcut: false,
            };
            Topology::vl2(&shape).unwrap_err().to_string()
        };
        assert!(refused(5, 4, 20).contains("aggregation switches of 5 ports"));
        assert!(refused(4, 0, 20).contains("intermediate switches of 0 ports"));
        assert!(refused(2, 2, 20).contains("one rack"));
        assert!(refused(4, 4, 0).contains("0 hosts in a rack"));
        assert!(refused(60_000, 60_000, 1).contains("directed links"));
    }
}
