//! The pipes of a fabric: single links, and the stages of a tree over which packets are sprayed.

use endpoint::{Draw, Purpose, Routes};
use fabric::{LinkChange, Stage, Topology};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, MsgKey, Rate};

use crate::shares::Shares;

const PATH: Purpose = Purpose::new("flow: path");
const ENTROPY: Purpose = Purpose::new("entropy");

/// What a pipe is made of.
struct Pipe {
    links: Vec<u32>,
    /// Bytes that have gone through it, and those inside the measurement window.
    bytes: f64,
    in_window: f64,
}

/// Which pipe is which, and what their links carry now.
pub(crate) struct Pipes {
    index: HashMap<Stage, u32, FxBuildHasher>,
    pipes: Vec<Pipe>,
    /// By link, whether it carries anything and how much, and whether senders think that it does.
    carries: Vec<Rate>,
    has_signal: Vec<bool>,
    believed: Vec<bool>,
    /// By link, what it carried until something changed there, whole run and inside the window.
    carried: Vec<(f64, f64)>,
    /// Pipes of each link.
    of_link: HashMap<u32, Vec<u32>, FxBuildHasher>,
    draw: Draw,
    any_fault: bool,
}

impl Pipes {
    pub(crate) fn new(topology: &Topology, seed: u64) -> Self {
        let links = topology.links();
        Self {
            index: HashMap::default(),
            pipes: Vec::new(),
            carries: links.iter().map(|link| link.rate).collect(),
            has_signal: links.iter().map(|link| link.up).collect(),
            believed: links.iter().map(|link| link.up).collect(),
            carried: vec![(0.0, 0.0); links.len()],
            of_link: HashMap::default(),
            draw: Draw::new(seed, PATH, 0),
            any_fault: links.iter().any(|link| !link.up),
        }
    }

    /// The pipes of a message: those of one path, drawn for it, or of all.
    pub(crate) fn way(
        &mut self,
        topology: &Topology,
        shares: &mut Shares,
        (key, dst): (MsgKey, HostId),
        spray: bool,
    ) -> Vec<u32> {
        let stages = match topology.stages(key.src, dst).filter(|_| spray) {
            Some(stages) => stages,
            None => self.path(topology, key, dst).into_iter().map(Stage::Link).collect(),
        };
        stages.into_iter().map(|stage| self.pipe(topology, shares, stage)).collect()
    }

    /// The links of a path that works, as far as is known.
    fn path(&self, topology: &Topology, key: MsgKey, dst: HostId) -> Vec<u32> {
        let draw = self.draw.part(u64::from(key.src.0)).part(key.id.0);
        let paths = topology.paths(key.src, dst).max(1);
        let drawn = draw.below(ENTROPY, 0, paths.into()) as u32;
        let works = |path: &u32| {
            !self.any_fault
                || topology.way(key.src, dst, *path).iter().all(|l| self.believed[*l as usize])
        };
        if works(&drawn) {
            return topology.way(key.src, dst, drawn);
        }
        let working: Vec<u32> = (0..paths).filter(works).collect();
        let at = draw.below(ENTROPY, 1, working.len() as u64) as usize;
        topology.way(key.src, dst, working.get(at).copied().unwrap_or(drawn))
    }

    fn pipe(&mut self, topology: &Topology, shares: &mut Shares, stage: Stage) -> u32 {
        if let Some(&pipe) = self.index.get(&stage) {
            return pipe;
        }
        let links = topology.stage_links(stage);
        let pipe = shares.add_pipe(self.capacity(&links));
        for &link in &links {
            self.of_link.entry(link).or_default().push(pipe);
        }
        self.index.insert(stage, pipe);
        self.pipes.push(Pipe { links, bytes: 0.0, in_window: 0.0 });
        pipe
    }

    /// Bytes per picosecond. What is sprayed over several links goes over all alike, so that the
    /// slowest of those that are used holds up the others.
    fn capacity(&self, links: &[u32]) -> f64 {
        let used = links.iter().filter(|link| self.is_used(**link, links.len()));
        let (count, slowest) = used.fold((0_u32, u64::MAX), |(count, slowest), &link| {
            (count + 1, slowest.min(self.carries[link as usize].0))
        });
        if count == 0 { 0.0 } else { f64::from(count) * bytes_per_ps(Rate(slowest)) }
    }

    /// Whether anything goes over `link`, one of so many side by side.
    fn is_used(&self, link: u32, of: usize) -> bool {
        self.has_signal[link as usize] && (of == 1 || self.believed[link as usize])
    }

    /// Something changes at a link. Whether messages may have other paths now.
    pub(crate) fn change(&mut self, shares: &mut Shares, link: u32, change: LinkChange) -> bool {
        let at = link as usize;
        self.any_fault = true;
        let of_link = self.of_link.get(&link).cloned().unwrap_or_default();
        of_link.iter().for_each(|pipe| self.share_out(*pipe));
        match change {
            LinkChange::Rate(rate) => self.carries[at] = rate,
            LinkChange::Signal(has) => self.has_signal[at] = has,
            LinkChange::Believed(works) => self.believed[at] = works,
            LinkChange::Loss(_) => return false,
        }
        for pipe in of_link {
            let capacity = self.capacity(&self.pipes[pipe as usize].links);
            shares.set_capacity(pipe, capacity);
        }
        matches!(change, LinkChange::Believed(_))
    }

    /// So many bytes have gone through `pipe`.
    pub(crate) fn carry(&mut self, pipe: u32, bytes: f64, in_window: bool) {
        let pipe = &mut self.pipes[pipe as usize];
        pipe.bytes += bytes;
        pipe.in_window += if in_window { bytes } else { 0.0 };
    }

    /// What `pipe` has carried since the last change is what its links have carried, all alike.
    fn share_out(&mut self, pipe: u32) {
        let of = &mut self.pipes[pipe as usize];
        let bytes = (std::mem::take(&mut of.bytes), std::mem::take(&mut of.in_window));
        let links = std::mem::take(&mut of.links);
        let used: Vec<u32> =
            links.iter().copied().filter(|link| self.is_used(*link, links.len())).collect();
        for link in &used {
            let carried = &mut self.carried[*link as usize];
            carried.0 += bytes.0 / used.len() as f64;
            carried.1 += bytes.1 / used.len() as f64;
        }
        self.pipes[pipe as usize].links = links;
    }

    /// By link, what it has carried, whole run and inside the window.
    pub(crate) fn carried(&mut self) -> &[(f64, f64)] {
        (0..self.pipes.len() as u32).for_each(|pipe| self.share_out(pipe));
        &self.carried
    }
}

fn bytes_per_ps(rate: Rate) -> f64 {
    rate.0 as f64 / 8e12
}
