//! The Clos family: stars, leaf-spines, fat-trees, and the dumbbell. All are trees of tiers.

use units::Rate;

use super::builder::{Builder, Racks};
use super::{LINKS_MAX, LinkSpec, Node, Tier, Topology, TopologyError};

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

impl Topology {
    /// One switch, `hosts` hosts. From 2 to 65 534 hosts.
    pub fn star(hosts: u32, link: LinkSpec) -> Result<Self, TopologyError> {
        if hosts < 2 {
            return Err(TopologyError(format!("a star of {hosts} hosts has no pair of hosts")));
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
        build.hosts(left + right, host_link, |host| u32::from(host >= left));
        for (side, hosts) in [(0, 0..left), (1, left..left + right)] {
            let me = Node::Switch(Tier::Tor, side);
            build.tor((side, 0, side), hosts, host_link);
            build.ups_begin(1);
            build.link(me, Node::Switch(Tier::Tor, 1 - side), trunk);
        }
        // Hosts were homed left then right, which is their order.
        Ok(build.finish(1, 0))
    }

    /// Any Clos fabric of one to three tiers.
    pub fn clos(shape: Clos) -> Result<Self, TopologyError> {
        check(&shape)?;
        let Clos { pods, tors_per_pod, hosts_per_tor, aggs_per_pod, cores_per_agg, links } = shape;
        let cores = aggs_per_pod * cores_per_agg;
        let [host_link, uplink, core_link] = links;
        let racks = Racks { pods, tors_per_pod, hosts_per_tor, aggs_per_pod, host_link, uplink };
        let mut build = Builder::new("clos", pods * tors_per_pod * hosts_per_tor);
        build.racks(&racks);
        for agg in 0..pods * aggs_per_pod {
            build.agg(&racks, agg);
            build.ups_begin(cores_per_agg);
            for core in 0..cores_per_agg {
                let core = agg % aggs_per_pod * cores_per_agg + core;
                build.link(Node::Switch(Tier::Agg, agg), Node::Switch(Tier::Core, core), core_link);
            }
        }
        for core in 0..cores {
            let me = Node::Switch(Tier::Core, core);
            build.switch(Tier::Core, 0, core);
            for pod in 0..pods {
                let agg = pod * aggs_per_pod + core / cores_per_agg;
                build.link(me, Node::Switch(Tier::Agg, agg), core_link);
            }
            build.ups_begin(0);
        }
        Ok(build.finish(aggs_per_pod, cores_per_agg))
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
    // Packets carry the number of a port in 16 bits.
    let tor = hosts_per_tor.saturating_add(aggs_per_pod);
    let agg = tors_per_pod.saturating_add(cores_per_agg);
    if let Some(most) = [tor, agg, pods].into_iter().find(|&n| n >= u32::from(u16::MAX)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::{LINK, check_shape};
    use endpoint::Routes;
    use units::{Dur, HostId};

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

    /// The fabric of the MMPTCP paper: specs/mptcp.md#6 (sizes, 240 us of propagation
    /// between pods) and section 4 (P).
    #[test]
    fn an_oversubscribed_k8_fat_tree_is_that_of_mmptcp() {
        let link = LinkSpec { rate: Rate(100_000_000), delay: Dur::from_us(20) };
        let tree = Topology::fat_tree(8, 4, link).unwrap().with_mtu(1460);
        let switches = [Tier::Tor, Tier::Agg, Tier::Core].map(|tier| tree.switches_of(tier));
        assert_eq!((tree.hosts(), switches), (512, [32, 32, 16]));
        let (here, same_rack, same_pod, far) = (HostId(0), HostId(15), HostId(16), HostId(64));
        assert_eq!([same_rack, same_pod, far].map(|to| tree.paths(here, to)), [1, 4, 16]);
        // 1460 B take 116.8 us, the 64 B of a reply 5.12 us.
        let sending = |links: u64| Dur(links * (116_800_000 + 5_120_000));
        let rtt = |to| tree.base_rtt(here, to);
        assert_eq!(rtt(same_rack), Dur::from_us(80) + sending(2));
        assert_eq!(rtt(same_pod), Dur::from_us(160) + sending(4));
        assert_eq!(rtt(far), Dur::from_us(240) + sending(6));
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
            check_shape(&shape);
            assert_eq!(shape.find_link(Node::Host(99), Node::Switch(Tier::Tor, 0)), None);
        }
    }

    #[test]
    fn oversubscription_is_that_of_the_tier_that_carries_least() {
        let half = LinkSpec { rate: Rate(LINK.rate.0 / 2), ..LINK };
        let shapes = [
            (Topology::star(5, LINK), 1.0),
            (Topology::dumbbell(3, 3, LINK, LINK), 3.0),
            (Topology::leaf_spine(4, 2, 4, LINK, LINK), 2.0),
            (Topology::leaf_spine(4, 2, 4, LINK, half), 4.0),
            (Topology::leaf_spine(4, 8, 4, LINK, LINK), 1.0),
            (Topology::fat_tree(4, 1, LINK), 1.0),
            (Topology::fat_tree(4, 4, LINK), 4.0),
        ];
        for (shape, expected) in shapes {
            let shape = shape.unwrap();
            assert_eq!(shape.oversubscription(), expected, "{shape:?}");
        }
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
