//! How a fabric is cut into partitions that are simulated in parallel.
//!
//! Hosts stay with their ToR (or relay), and whole pods together where there are enough of them;
//! aggregation switches go with their pod or, like core switches, are dealt out in equal blocks.
//! What crosses the cut is then only links between switches.

use std::ops::{Range, RangeInclusive};

use units::{Dur, HostId, Rate};

use crate::config::Threads;
use crate::topology::{Node, Tier, Topology};

/// Who owns what.
pub(crate) struct Partitioning {
    pub(crate) parts: u32,
    /// The first host of each partition, and one past the last host.
    starts: Vec<u32>,
    /// Part by switch.
    switches: Vec<u32>,
    /// How far a partition may run ahead of what it knows of the others: nothing that happens in
    /// one reaches another sooner. `None` if there is one partition.
    pub(crate) lookahead: Option<Dur>,
}

/// Rounds shorter than this cost more than they gain.
const LOOKAHEAD_MIN: Dur = Dur::from_ns(100);

impl Partitioning {
    /// At most as many partitions as `threads` wants; fewer where the fabric has no more to cut,
    /// and one where some link across the cut, or a signal between applications (the shortest
    /// takes `signals`), is too quick. `rates` are those of each link during the run.
    pub(crate) fn new(
        topology: &Topology,
        rates: &[RangeInclusive<Rate>],
        threads: Threads,
        signals: Option<Dur>,
    ) -> Self {
        let most = topology.racks().max(1);
        let mut parts = most.min(threads.wanted(Dur::MAX));
        loop {
            let mut cut = Self::blocks(topology, rates, parts);
            cut.lookahead = cut.lookahead.into_iter().chain(signals).min().filter(|_| parts > 1);
            let wanted = match cut.lookahead {
                Some(lookahead) if lookahead >= LOOKAHEAD_MIN => threads.wanted(lookahead),
                _ => 1,
            };
            if wanted >= parts {
                return cut;
            }
            parts = wanted;
        }
    }

    /// The part of each switch.
    fn dealt(topology: &Topology, parts: u32) -> Vec<u32> {
        if let Some(planes) = topology.planes() {
            return planes.of_switches(&Self::dealt(planes.plane(), parts));
        }
        let by_pod = topology.pods() >= parts;
        let block = |n: u32, of: u32| (u64::from(n) * u64::from(parts) / u64::from(of)) as u32;
        let tor_part = |n: u32| match by_pod {
            true => block(topology.pod_of(n), topology.pods()),
            false => block(n, topology.racks()),
        };
        let switch_part = |n: u32| {
            let (tier, n) = topology.switch_number(n);
            match tier {
                Tier::Nic | Tier::Tor | Tier::Relay => tor_part(n),
                Tier::Agg if by_pod => {
                    block(topology.pod_of(topology.switch_index(tier, n) as u32), topology.pods())
                }
                _ => block(n, topology.switches_of(tier)),
            }
        };
        (0..topology.switches.len() as u32).map(switch_part).collect()
    }

    fn blocks(topology: &Topology, rates: &[RangeInclusive<Rate>], parts: u32) -> Self {
        let switches = Self::dealt(topology, parts);
        let of_host = |h: u32| switches[topology.homes[h as usize].tor() as usize];
        let hosts = topology.hosts();
        // Hosts are numbered along their ToRs, so that a partition's are consecutive.
        let first = |part| (0..hosts).find(|&h| of_host(h) >= part).unwrap_or(hosts);
        let starts = (0..=parts).map(first).collect();
        let mut cut = Self { parts, starts, switches, lookahead: None };
        let crossing = (0..topology.links().len() as u32).filter(|&link| {
            let link = &topology.links()[link as usize];
            cut.owner(topology, link.from) != cut.owner(topology, link.to)
        });
        let quickest = |n| topology.delay(n) + rates[n as usize].end().serialise(1);
        cut.lookahead = crossing.map(quickest).min();
        cut
    }

    /// The partition that simulates `node`.
    pub(crate) fn owner(&self, topology: &Topology, node: Node) -> u32 {
        let at = match node {
            Node::Host(host) => Some(topology.homes[host as usize].tor()),
            _ => topology.switch_at(node),
        };
        at.map_or(0, |at| self.switches[at as usize])
    }

    /// The partition that simulates switch `at`, an index among all switches.
    pub(crate) fn switch_owner(&self, at: u32) -> u32 {
        self.switches[at as usize]
    }

    /// The hosts of a partition.
    pub(crate) fn hosts(&self, part: u32) -> Range<u32> {
        self.starts[part as usize]..self.starts[part as usize + 1]
    }

    /// The partition of a host.
    pub(crate) fn host_owner(&self, host: HostId) -> u32 {
        (self.starts.partition_point(|&start| start <= host.0) - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Fault, FaultAction};
    use crate::faults;
    use crate::topology::LinkSpec;
    use units::Time;

    const LINK: LinkSpec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };

    fn cut(topology: &Topology, wanted: u32, signals: Option<Dur>) -> Partitioning {
        Partitioning::new(topology, &faults::rates(topology, &[]), Threads::Fixed(wanted), signals)
    }

    #[test]
    fn a_fat_tree_is_cut_between_pods_and_cores_only() {
        let tree = Topology::fat_tree(8, 1, LINK).unwrap();
        for parts in [2, 3, 4, 8] {
            let cut = cut(&tree, parts, None);
            assert_eq!(cut.parts, parts);
            assert_eq!(cut.lookahead, Some(LINK.delay + LINK.rate.serialise(1)));
            for link in tree.links() {
                let crosses = cut.owner(&tree, link.from) != cut.owner(&tree, link.to);
                let core =
                    [link.from, link.to].iter().any(|n| matches!(n, Node::Switch(Tier::Core, _)));
                assert!(core || !crosses, "{link}");
            }
            let sizes: Vec<u32> = (0..parts).map(|part| cut.hosts(part).len() as u32).collect();
            assert_eq!(sizes.iter().sum::<u32>(), tree.hosts());
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 16, "{sizes:?}");
            for host in 0..tree.hosts() {
                let owner = cut.host_owner(HostId(host));
                assert_eq!(owner, cut.owner(&tree, Node::Host(host)));
                assert!(cut.hosts(owner).contains(&host));
            }
        }
    }

    #[test]
    fn other_shapes_are_cut_between_racks_or_not_at_all() {
        let leaves = Topology::leaf_spine(6, 3, 4, LINK, LINK).unwrap();
        assert_eq!(cut(&leaves, 3, None).parts, 3);
        assert_eq!(cut(&leaves, 100, None).parts, 6, "one rack each");
        let few_pods = Topology::fat_tree(4, 1, LINK).unwrap();
        assert_eq!(cut(&few_pods, 8, None).parts, 8);
        assert_eq!(cut(&Topology::dumbbell(3, 2, LINK, LINK).unwrap(), 4, None).parts, 2);
        assert_eq!(cut(&Topology::star(9, LINK).unwrap(), 4, None).parts, 1);
    }

    #[test]
    fn what_is_too_quick_is_not_cut_and_signals_count() {
        let quick = LinkSpec { delay: Dur(0), ..LINK };
        let leaves = Topology::leaf_spine(6, 3, 4, LINK, quick).unwrap();
        assert_eq!(cut(&leaves, 2, None).parts, 1);
        let leaves = Topology::leaf_spine(6, 3, 4, quick, LINK).unwrap();
        let signals = |least| cut(&leaves, 2, Some(least));
        assert_eq!(signals(Dur(1)).parts, 1);
        assert_eq!(signals(Dur::from_ns(500)).lookahead, Some(Dur::from_ns(500)));
    }

    /// As many parts as have work between two meetings, which are a microsecond apart here.
    #[test]
    fn what_has_little_to_do_is_not_cut() {
        let tree = Topology::fat_tree(8, 1, LINK).unwrap();
        let parts = |most, hops_per_us: f64| {
            let threads = Threads::Auto { most, hops_per_s: hops_per_us * 1e6 };
            Partitioning::new(&tree, &faults::rates(&tree, &[]), threads, None).parts
        };
        assert_eq!([0.0, 10.0, 120.0].map(|hops| parts(8, hops)), [1; 3]);
        assert_eq!([140.0, 300.0, 600.0, 1e9].map(|hops| parts(8, hops)), [2, 4, 8, 8]);
        assert_eq!((parts(1, 1e9), parts(3, f64::INFINITY)), (1, 3));
    }

    /// A fault may quicken a link: then its packets come sooner.
    #[test]
    fn the_lookahead_is_that_of_the_quickest_rate_of_the_run() {
        let leaves = Topology::leaf_spine(6, 3, 4, LINK, LINK).unwrap();
        // From the first rack to the last spine, which is in the other partition.
        let uplink = leaves.switches[0].up + 2;
        let quick = Fault::new(Time(1), uplink, FaultAction::Rate(Rate(8_000_000_000_000)));
        let slow = Fault::new(Time(1), uplink, FaultAction::Rate(Rate(1_000_000)));
        let lookahead = |fault| {
            Partitioning::new(&leaves, &faults::rates(&leaves, &[fault]), Threads::Fixed(2), None)
                .lookahead
        };
        assert_eq!(lookahead(quick), Some(LINK.delay + Dur(1)));
        assert_eq!(lookahead(slow), Some(LINK.delay + LINK.rate.serialise(1)));
    }
}
