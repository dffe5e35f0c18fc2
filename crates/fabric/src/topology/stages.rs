//! For models without packets: the ways that messages take, as lists of links, and as stages of a
//! tree whose links share what is sprayed over them.

use units::HostId;

use super::{Shape, Tier, Topology};

/// Links side by side, over which a tree of tiers spreads what is sprayed between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// One link.
    Link(u32),
    /// From a rack's switch up.
    RackUp(u32),
    /// From the aggregation switches of a pod up.
    PodUp(u32),
    /// From the core down to a pod.
    PodDown(u32),
    /// From the aggregation switches of its pod down to a rack's switch.
    RackDown(u32),
    /// From a host into all planes, where there are several.
    NicUp(HostId),
    /// From all planes to a host.
    NicDown(HostId),
}

impl Topology {
    /// The links from `src` to `dst` over path `path`, in order. Nothing if they are the same host.
    #[must_use]
    pub fn way(&self, src: HostId, dst: HostId, path: u32) -> Vec<u32> {
        self.path_links(src, dst, path).collect()
    }

    /// The stages from `src` to `dst` in a tree of tiers, in order; `None` in other fabrics.
    #[must_use]
    pub fn stages(&self, src: HostId, dst: HostId) -> Option<Vec<Stage>> {
        if let Some(planes) = self.planes() {
            let within = planes.plane().stages(src, dst)?;
            let between = within[1..within.len() - 1].iter().copied();
            let first = [Stage::Link(src.0), Stage::NicUp(src)];
            let last = [Stage::NicDown(dst), Stage::Link(planes.nic_down(dst.0))];
            return Some(first.into_iter().chain(between).chain(last).collect());
        }
        if !matches!(self.shape, Shape::Tree) {
            return None;
        }
        let (from, to) = (self.homes[src.index()], self.homes[dst.index()]);
        let mut stages = vec![Stage::Link(src.0)];
        if from.tor() != to.tor() {
            stages.push(Stage::RackUp(from.tor()));
            if from.pod() != to.pod() {
                stages.extend([Stage::PodUp(from.pod()), Stage::PodDown(to.pod())]);
            }
            // The two switches of a dumbbell are joined directly.
            if self.switches_of(Tier::Agg) > 0 {
                stages.push(Stage::RackDown(to.tor()));
            }
        }
        stages.push(Stage::Link(self.last_link(dst)));
        Some(stages)
    }

    /// The links of `stage`, which is one of [`Topology::stages`].
    #[must_use]
    pub fn stage_links(&self, stage: Stage) -> Vec<u32> {
        if let (Some(planes), false) = (self.planes(), matches!(stage, Stage::Link(_))) {
            let tree = planes.plane();
            let links = match stage {
                Stage::NicUp(host) => vec![host.0],
                Stage::NicDown(host) => vec![tree.last_link(host)],
                _ => tree.stage_links(stage),
            };
            let all = (0..planes.count()).flat_map(|n| links.iter().map(move |l| (n, *l)));
            return all.map(|(plane, link)| planes.link(plane, link)).collect();
        }
        let aggs = |pod: u32| (0..self.aggs).map(move |a| *self.agg(pod, a));
        match stage {
            Stage::Link(link) => vec![link],
            Stage::NicUp(host) => vec![host.0],
            Stage::NicDown(host) => vec![self.last_link(host)],
            Stage::RackUp(rack) => {
                let tor = self.switches[rack as usize];
                (tor.up..tor.up + tor.ups).collect()
            }
            Stage::PodUp(pod) => aggs(pod).flat_map(|agg| agg.up..agg.up + agg.ups).collect(),
            Stage::PodDown(pod) => {
                let first = self.switch_index(Tier::Core, 0);
                let cores = &self.switches[first..first + self.switches_of(Tier::Core) as usize];
                cores.iter().map(|core| core.down + pod).collect()
            }
            Stage::RackDown(rack) => {
                let tor = self.switches[rack as usize];
                aggs(u32::from(tor.pod)).map(|agg| agg.down + u32::from(tor.index)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use endpoint::Routes;
    use units::{Dur, Rate};

    use super::*;
    use crate::topology::LinkSpec;

    /// Over all paths, the links of each hop are those of its stage.
    #[test]
    fn stages_are_the_hops_of_all_paths() {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
        let fabric = Topology::fat_tree(4, 1, link).unwrap();
        for (src, dst) in [(0, 1), (0, 2), (0, 15), (9, 4)] {
            let (src, dst) = (HostId(src), HostId(dst));
            let stages = fabric.stages(src, dst).unwrap();
            let ways: Vec<Vec<u32>> =
                (0..fabric.paths(src, dst)).map(|path| fabric.way(src, dst, path)).collect();
            for (hop, stage) in stages.iter().enumerate() {
                let over: BTreeSet<u32> = ways.iter().map(|way| way[hop]).collect();
                let links: BTreeSet<u32> = fabric.stage_links(*stage).into_iter().collect();
                assert_eq!(over, links, "{src} {dst} {stage:?}");
            }
            assert!(ways.iter().all(|way| way.len() == stages.len()));
        }
    }
}
