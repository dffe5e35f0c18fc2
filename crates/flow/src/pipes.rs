//! The pipes of a fabric: single links, and the stages of a tree over which packets are sprayed.

use endpoint::{Draw, Purpose, Routes};
use fabric::{LinkChange, Node, Stage, Topology};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, MsgKey, Rate};

use crate::shares::Shares;

const PATH: Purpose = Purpose::new("flow: path");
const ENTROPY: Purpose = Purpose::new("entropy");

/// Draws of a path for a message before one that does not work is taken.
const TRIES: u64 = 64;

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
        let paths = u64::from(topology.paths(key.src, dst).max(1));
        let mut way = Vec::new();
        for attempt in 0..TRIES {
            way = topology.way(key.src, dst, draw.below(ENTROPY, attempt, paths) as u32);
            if !self.any_fault || way.iter().all(|link| self.believed[*link as usize]) {
                break;
            }
        }
        way
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
        let used = links.iter().filter(|link| self.believed[**link as usize] || links.len() == 1);
        let (count, slowest) = used.fold((0_u32, u64::MAX), |(count, slowest), &link| {
            (count + 1, slowest.min(self.carries[link as usize].0))
        });
        let dead = links.len() == 1 && !self.has_signal[links[0] as usize];
        if count == 0 || dead { 0.0 } else { f64::from(count) * bytes_per_ps(Rate(slowest)) }
    }

    /// Something changes at a link. Whether messages may have other paths now.
    pub(crate) fn change(&mut self, shares: &mut Shares, link: u32, change: LinkChange) -> bool {
        let at = link as usize;
        self.any_fault = true;
        match change {
            LinkChange::Rate(rate) => self.carries[at] = rate,
            LinkChange::Signal(has) => self.has_signal[at] = has,
            LinkChange::Believed(works) => self.believed[at] = works,
            LinkChange::Loss(_) => return false,
        }
        for &pipe in self.of_link.get(&link).into_iter().flatten() {
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

    /// What each link has carried, whole run and inside the window; links of a pipe alike.
    pub(crate) fn carried(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        self.pipes.iter().flat_map(|pipe| {
            let used = pipe.links.iter().filter(|link| self.believed[**link as usize]);
            let share = 1.0 / used.clone().count().max(1) as f64;
            used.map(move |&link| (link, pipe.bytes * share, pipe.in_window * share))
        })
    }
}

pub(crate) fn bytes_per_ps(rate: Rate) -> f64 {
    rate.0 as f64 / 8e12
}

/// How high the upper end of a link is: 0 to 2.
pub(crate) fn height(topology: &Topology, link: u32) -> usize {
    let height = |node| match node {
        Node::Host(_) => 0,
        Node::Switch(tier, _) => tier.height(),
    };
    let link = &topology.links()[link as usize];
    height(link.from).max(height(link.to))
}
