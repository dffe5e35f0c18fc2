//! Several planes: copies of one tree of tiers, and a NIC for each host with a port into each.
//!
//! The NIC is modelled as what forwards packets in the host, beside it, with queues like those of
//! any other port, and no latency. Host and NIC are joined by a link without delay whose rate is
//! that of all ports together.

use std::ops::Range;

use units::{Dur, Rate};

use super::builder::Builder;
use super::{LINKS_MAX, Link, LinkSpec, Node, Shape, Switch, Tier, Topology, TopologyError};
use crate::planes::Planes;

/// The most planes. Multipath Reliable Connection (MRC) has eight (specs/uet.md#14).
pub const PLANES_MAX: u32 = 8;

impl Topology {
    /// `count` copies of `plane`, each with a port of every host; the links of hosts there are the
    /// ports. 1: `plane` as it is.
    ///
    /// # Errors
    /// Not 1 to [`PLANES_MAX`]; a fabric that is no tree of tiers, or has changed links or slots;
    /// too many links.
    pub fn in_planes(plane: Self, count: u32) -> Result<Self, TopologyError> {
        if count == 1 {
            return Ok(plane);
        }
        check(&plane, count)?;
        let hosts = plane.hosts();
        let mut build = Builder::new(plane.kind, hosts);
        let inner = |host: u32| {
            let rate = plane.links[host as usize].rate;
            LinkSpec { rate: Rate(rate.0 * u64::from(count)), delay: Dur::ZERO }
        };
        let nic = |host| Node::Switch(Tier::Nic, host);
        let planes = Planes::new(count, plane.clone());
        for host in 0..hosts {
            build.link(Node::Host(host), nic(host), inner(host));
        }
        for host in 0..hosts {
            build.switch(Tier::Nic, 0, host);
            build.home(host, 0, 0);
            build.link(nic(host), Node::Host(host), inner(host));
            build.ups_begin(count);
            for n in 0..count {
                let Link { to, rate, delay, .. } = plane.links[host as usize];
                build.link(nic(host), planes.node(n, to), LinkSpec { rate, delay });
            }
        }
        for n in 0..count {
            for &Switch { tier, pod, index, down, up, ups } in &plane.switches {
                let copy = |build: &mut Builder, ports: Range<usize>| {
                    for &Link { from, to, rate, delay, .. } in &plane.links[ports] {
                        let (from, to) = (planes.node(n, from), planes.node(n, to));
                        build.link(from, to, LinkSpec { rate, delay });
                    }
                };
                build.switch(tier, pod.into(), index.into());
                copy(&mut build, down as usize..up as usize);
                build.ups_begin(ups);
                copy(&mut build, up as usize..(up + ups) as usize);
            }
        }
        let built = build.finish(0, 0).with_switch_latency(plane.switch_latency);
        Ok(Self { shape: Shape::Planes(Box::new(planes)), mtu: plane.mtu, ..built })
    }
}

fn check(plane: &Topology, count: u32) -> Result<(), TopologyError> {
    let error = |what: String| Err(TopologyError(what));
    if !(1..=PLANES_MAX).contains(&count) {
        return error(format!("{count} planes: from 1 to {PLANES_MAX}"));
    }
    if !matches!(plane.shape, Shape::Tree) {
        return error(format!("a {} has no planes: its hosts have one place each", plane.kind));
    }
    if plane.uneven || plane.switch_slot.is_some() {
        return error("planes are copies of a fabric whose links are alike, without slots".into());
    }
    let links = u64::from(count) * plane.links.len() as u64 + 2 * u64::from(plane.hosts());
    if links > LINKS_MAX {
        return error(format!("{links} directed links: at most {LINKS_MAX}"));
    }
    let rates = plane.links.iter().map(|link| link.rate.0.checked_mul(count.into()));
    if rates.min().flatten().is_none() {
        return error(format!("{count} ports of such a rate"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use endpoint::{Framing, Routes};
    use units::HostId;

    use super::*;
    use crate::topology::Stage;
    use crate::topology::testing::{LINK, check_shape};

    fn shapes() -> Vec<(Topology, Topology)> {
        let trees = [
            Topology::star(5, LINK).unwrap(),
            Topology::dumbbell(3, 2, LINK, LINK).unwrap(),
            Topology::leaf_spine(4, 3, 2, LINK, LINK).unwrap(),
            Topology::fat_tree(4, 2, LINK).unwrap(),
        ];
        let all = trees.into_iter().flat_map(|tree| [2, 3, 8].map(|n| (n, tree.clone())));
        all.map(|(n, tree)| (tree.clone(), Topology::in_planes(tree, n).unwrap())).collect()
    }

    #[test]
    fn each_plane_has_every_path_of_its_tree_and_no_link_joins_two() {
        for (tree, fabric) in shapes() {
            let planes = fabric.plane_count();
            check_shape(&fabric);
            assert_eq!((fabric.hosts(), fabric.racks()), (tree.hosts(), tree.racks()));
            let (src, dst) = (HostId(0), HostId(tree.hosts() - 1));
            assert_eq!(fabric.paths(src, dst), planes * tree.paths(src, dst));
            assert_eq!(fabric.hops(src, dst), tree.hops(src, dst) + 2);
            let mut in_plane: BTreeMap<u8, u32> = BTreeMap::new();
            for path in 0..fabric.paths(src, dst) {
                let links = fabric.way(src, dst, path);
                let nodes = links.iter().map(|&link| fabric.links()[link as usize].to);
                let met: BTreeSet<u8> = nodes
                    .filter_map(|node| match node {
                        Node::Plane(plane, ..) => Some(plane),
                        _ => None,
                    })
                    .collect();
                assert_eq!(met.len(), 1, "path {path} of {src} to {dst}");
                *in_plane.entry(met.into_iter().next().unwrap()).or_default() += 1;
            }
            assert_eq!(in_plane.len() as u32, planes);
            assert!(in_plane.values().all(|&paths| paths == tree.paths(src, dst)));
        }
    }

    #[test]
    fn links_and_switches_are_found_by_their_plane() {
        for (tree, fabric) in shapes() {
            let planes = fabric.planes().unwrap();
            let mut met = BTreeSet::new();
            for (plane, link) in (0..planes.count())
                .flat_map(|n| (0..tree.links().len() as u32).map(move |l| (n, l)))
            {
                let number = planes.link(plane, link);
                assert!(met.insert(number));
                assert_eq!(planes.place_of_link(number), Some((plane, link)));
                let (mine, theirs) = (fabric.links()[number as usize], tree.links()[link as usize]);
                assert_eq!(mine.from, planes.node(plane, theirs.from));
                assert_eq!(mine.to, planes.node(plane, theirs.to));
            }
            // The rest joins hosts and NICs.
            assert_eq!(met.len() + 2 * fabric.hosts() as usize, fabric.links().len());
        }
    }

    #[test]
    fn a_host_has_the_rate_of_its_ports_together() {
        let tree = Topology::leaf_spine(2, 2, 2, LINK, LINK).unwrap();
        let fabric = Topology::in_planes(tree, 4).unwrap();
        assert_eq!(fabric.receive_rate(HostId(1)), Rate(4 * LINK.rate.0));
        assert_eq!(fabric.oversubscription(), 1.0);
        let rates: Vec<u64> = fabric
            .way(HostId(0), HostId(3), 5)
            .iter()
            .map(|&l| fabric.links[l as usize].rate.0)
            .collect();
        assert_eq!(rates, [4, 1, 1, 1, 1, 4].map(|ports| ports * LINK.rate.0));
        // Sprayed over all ports, a message takes a quarter of what it takes over one.
        let framing = Framing { payload: 9000, overhead: 64 };
        let ideal = |spray| fabric.ideal(HostId(0), HostId(3), 9_000_000, framing, spray).0;
        let (one, all) = (9064 * 800 * 1000, 9064 * 200 * 1000);
        assert!((one..one * 11 / 10).contains(&ideal(false)), "{}", ideal(false));
        assert!((all..all * 11 / 10).contains(&ideal(true)), "{}", ideal(true));
    }

    #[test]
    fn what_is_sprayed_goes_over_all_planes_alike() {
        let tree = Topology::fat_tree(4, 1, LINK).unwrap();
        let fabric = Topology::in_planes(tree, 2).unwrap();
        for (src, dst) in [(0, 1), (0, 2), (0, 15)] {
            let (src, dst) = (HostId(src), HostId(dst));
            let stages = fabric.stages(src, dst).unwrap();
            let ways = (0..fabric.paths(src, dst)).map(|path| fabric.way(src, dst, path));
            let ways: Vec<Vec<u32>> = ways.collect();
            assert!(ways.iter().all(|way| way.len() == stages.len()));
            for (hop, stage) in stages.iter().enumerate() {
                let over: BTreeSet<u32> = ways.iter().map(|way| way[hop]).collect();
                assert_eq!(over, fabric.stage_links(*stage).into_iter().collect(), "{stage:?}");
            }
            assert!(stages.contains(&Stage::NicDown(dst)));
        }
    }

    #[test]
    fn what_has_no_planes_is_refused() {
        let star = || Topology::star(2, LINK).unwrap();
        for count in [0, 9] {
            assert!(Topology::in_planes(star(), count).is_err());
        }
        let bcube = crate::Bcube { n: 2, k: 1, stretch: 0, link: LINK };
        let why = Topology::in_planes(Topology::bcube(&bcube).unwrap(), 2).unwrap_err();
        assert!(why.to_string().contains("bcube"), "{why}");
        let mut odd = star();
        odd.fail_link(0);
        assert!(Topology::in_planes(odd, 2).is_err());
        assert!(Topology::in_planes(star(), 1).unwrap().planes().is_none());
    }
}
