//! Fabrics that are not trees: which ways lead from rack to rack is listed, not computed.
//!
//! A list holds the paths of one pair of racks (switches with hosts), shortest first, once for both
//! directions: path `p` back is path `p` there with every link turned round, which is what a
//! bounced header needs. A packet carries the index of its path only; each switch finds itself on
//! it.
//!
//! Where switches choose, they go by distance: any next switch that is one link nearer.

use std::collections::VecDeque;

use units::HostId;

use crate::topology::{Node, Topology, TopologyError};

/// More links on listed paths than this are refused: 64 MB.
pub(crate) const LISTED_LINKS_MAX: usize = 16_000_000;

/// More racks than this are refused: there is a word for each of 2 million pairs.
pub(crate) const RACKS_MAX: u64 = 2048;

/// So many pairs of racks say how many links there are in all, within a factor of 4.
const TELLING: usize = 64;

/// Of a switch from which a rack cannot be reached.
pub(crate) const UNREACHABLE: u16 = u16::MAX;

/// The paths between the racks of a fabric.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// By link between switches: the link the other way.
    back: Vec<u32>,
    /// By pair of racks (see [`pair`]): its first path, and one past the last path of all.
    first_path: Vec<u32>,
    /// By path: where its links begin, and one past the last link of all.
    first_link: Vec<u32>,
    /// From the rack of the lower number to the other.
    links: Vec<u32>,
    /// Over all links: see [`Distances`].
    pub(crate) distances: Distances,
}

impl Graph {
    /// The paths that `list` gives for each pair of racks, the lower number first. A path is its
    /// switches, both racks included.
    pub(crate) fn new(
        topology: &Topology,
        mut list: impl FnMut(u32, u32, &Distances) -> Vec<Vec<u32>>,
    ) -> Result<Self, TopologyError> {
        let back = back(topology);
        let distances = Distances::new(topology, &back, |_| true);
        let (mut first_path, mut first_link, mut links) = (vec![0], vec![0], Vec::new());
        let racks = topology.racks() as usize;
        for high in 1..topology.racks() {
            for low in 0..high {
                for path in list(low, high, &distances) {
                    let hops = path.windows(2);
                    links.extend(hops.filter_map(|hop| link_between(topology, hop[0], hop[1])));
                    first_link.push(links.len() as u32);
                }
                first_path.push(first_link.len() as u32 - 1);
                let pairs = first_path.len() - 1;
                // Listing them all may take minutes. Racks are alike, so the first pairs tell.
                let all = links.len() / pairs * (racks * (racks - 1) / 2);
                if links.len() > LISTED_LINKS_MAX || pairs >= TELLING && all > 4 * LISTED_LINKS_MAX
                {
                    return Err(TopologyError(format!(
                        "the paths between {racks} racks have more than {LISTED_LINKS_MAX} links \
                         together: list fewer or shorter paths, or build fewer racks"
                    )));
                }
            }
        }
        Ok(Self { back, first_path, first_link, links, distances })
    }

    /// How many paths are listed between two racks.
    pub(crate) fn paths(&self, a: u32, b: u32) -> u32 {
        let pair = pair(a, b);
        self.first_path[pair + 1] - self.first_path[pair]
    }

    /// The links from switch `a` to `b`, different racks, over path `path` (modulo their number).
    pub(crate) fn path(&self, a: u32, b: u32, path: u32) -> impl Iterator<Item = u32> {
        let path = (self.first_path[pair(a, b)] + path % self.paths(a, b).max(1)) as usize;
        let links = &self.links[self.first_link[path] as usize..self.first_link[path + 1] as usize];
        (0..links.len()).map(move |hop| {
            if a < b { links[hop] } else { self.back[links[links.len() - 1 - hop] as usize] }
        })
    }

    /// Links of the longest path.
    pub(crate) fn longest(&self) -> u32 {
        self.first_link.windows(2).map(|path| path[1] - path[0]).max().unwrap_or(0)
    }

    /// Distances over the links that `alive` names.
    pub(crate) fn distances_over(
        &self,
        topology: &Topology,
        alive: impl Fn(u32) -> bool,
    ) -> Distances {
        Distances::new(topology, &self.back, alive)
    }
}

/// The number of a pair of different racks, in either order.
fn pair(a: u32, b: u32) -> usize {
    let (low, high) = (a.min(b) as usize, a.max(b) as usize);
    high * (high - 1) / 2 + low
}

/// How many links it takes at least from each switch to each rack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distances {
    switches: usize,
    /// At `rack * switches + switch`.
    links: Vec<u16>,
}

impl Distances {
    fn new(topology: &Topology, back: &[u32], alive: impl Fn(u32) -> bool) -> Self {
        let switches = topology.switches.len();
        let mut links = vec![UNREACHABLE; switches * topology.racks() as usize];
        let mut reached = VecDeque::new();
        for (rack, links) in links.chunks_mut(switches.max(1)).enumerate() {
            links[rack] = 0;
            reached.push_back(rack as u32);
            while let Some(at) = reached.pop_front() {
                for (link, next) in neighbours(topology, at) {
                    let coming = back[link as usize];
                    if links[next as usize] == UNREACHABLE && alive(coming) {
                        links[next as usize] = links[at as usize] + 1;
                        reached.push_back(next);
                    }
                }
            }
        }
        Self { switches, links }
    }

    /// From `switch` to `rack`.
    pub(crate) fn between(&self, switch: u32, rack: u32) -> u16 {
        self.links[rack as usize * self.switches + switch as usize]
    }
}

/// The links of switch `at` to other switches, and which these are.
pub(crate) fn neighbours(topology: &Topology, at: u32) -> impl Iterator<Item = (u32, u32)> {
    let switch = &topology.switches[at as usize];
    let links = switch.up..switch.up + switch.ups;
    links.filter_map(|link| Some((link, topology.switch_at(topology.links()[link as usize].to)?)))
}

fn link_between(topology: &Topology, a: u32, b: u32) -> Option<u32> {
    neighbours(topology, a).find(|&(_, next)| next == b).map(|(link, _)| link)
}

/// By link between switches, the link the other way; by others, nothing of use.
fn back(topology: &Topology) -> Vec<u32> {
    let back = topology.links().iter().map(|link| {
        let between = topology.switch_at(link.from).zip(topology.switch_at(link.to));
        between.and_then(|(from, to)| link_between(topology, to, from)).unwrap_or(u32::MAX)
    });
    back.collect()
}

impl Topology {
    /// The index among all switches of `node`, if it is one.
    pub(crate) fn switch_at(&self, node: Node) -> Option<u32> {
        match node {
            Node::Host(_) => None,
            Node::Switch(tier, n) => Some(self.switch_index(tier, n) as u32),
            Node::Plane(plane, tier, n) => {
                self.planes().map(|planes| planes.switch_at(plane, tier, n))
            }
        }
    }

    /// The links between the switches of two hosts over path `path`. Nothing in a tree of tiers, or
    /// if it is one switch.
    pub(crate) fn listed_links(
        &self,
        src: HostId,
        dst: HostId,
        path: u32,
    ) -> impl Iterator<Item = u32> {
        let (a, b) = (self.homes[src.index()].tor(), self.homes[dst.index()].tor());
        let graph = self.graph().filter(|_| a != b);
        graph.into_iter().flat_map(move |graph| graph.path(a, b, path))
    }
}
