//! What hosts and switches believe of links, and the topology as they know it.

use endpoint::{Draw, Packet, Routes};
use units::HostId;

use crate::graph::Distances;
use crate::topology::{Shape, Topology};

/// What links the hosts and switches believe to work.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkState {
    /// Links believed dead, sorted. Empty in the usual case, and then nothing below costs anything.
    dead: Vec<u32>,
    /// Grows with each change.
    version: u32,
    /// In a graph with links believed dead: distances without them.
    distances: Distances,
    /// Of several planes each, by the numbers of links in one.
    planes: Vec<Self>,
}

impl LinkState {
    pub(crate) fn new(topology: &Topology) -> Self {
        let links = (0..).zip(topology.links());
        let changes: Vec<(u32, bool)> =
            links.filter(|(_, link)| !link.up).map(|(n, _)| (n, false)).collect();
        let planes = topology.planes().map_or(0, |planes| planes.count() as usize);
        let mut state = Self { planes: vec![Self::default(); planes], ..Self::default() };
        state.update(topology, &changes);
        state
    }

    /// From now on these links are believed to work, or not to work. All that is learnt at one
    /// instant goes together: in a large graph, working out the distances takes a second.
    pub(crate) fn update(&mut self, topology: &Topology, changes: &[(u32, bool)]) {
        let before = self.version;
        for &(link, up) in changes {
            match (self.dead.binary_search(&link), up) {
                (Ok(at), true) => drop(self.dead.remove(at)),
                (Err(at), false) => self.dead.insert(at, link),
                _ => continue,
            }
            self.version += 1;
        }
        if self.version == before {
            return;
        }
        if let Some(planes) = topology.planes() {
            for &(link, up) in changes {
                let Some((plane, link)) = planes.place_of_link(link) else { continue };
                self.planes[plane as usize].update(planes.plane(), &[(link, up)]);
            }
        }
        self.distances = match &topology.shape {
            Shape::Graph(graph) if !self.is_whole() => {
                graph.distances_over(topology, |link| self.alive(link))
            }
            _ => Distances::default(),
        };
    }

    /// Whether nothing is believed dead.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.dead.is_empty()
    }

    /// Grows with each change.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn alive(&self, link: u32) -> bool {
        self.dead.binary_search(&link).is_err()
    }

    /// The links of one of several planes.
    pub(crate) fn in_plane(&self, plane: u32) -> &Self {
        &self.planes[plane as usize]
    }

    /// In a graph with links believed dead: distances without them.
    pub(crate) fn distances(&self) -> &Distances {
        &self.distances
    }
}

/// The topology as hosts may know it now.
pub(crate) struct RoutingView<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) state: &'a LinkState,
}

impl Routes for RoutingView<'_> {
    fn paths(&self, src: HostId, dst: HostId) -> u32 {
        self.topology.paths(src, dst)
    }

    fn path_up(&self, src: HostId, dst: HostId, path: u32) -> bool {
        self.state.dead.is_empty() || self.works(src, dst, path) || !self.any_works(src, dst)
    }

    fn version(&self) -> u32 {
        self.state.version()
    }

    fn hops(&self, src: HostId, dst: HostId) -> u32 {
        self.topology.hops(src, dst)
    }

    fn base_rtt(&self, src: HostId, dst: HostId) -> units::Dur {
        self.topology.base_rtt(src, dst)
    }
}

impl RoutingView<'_> {
    fn works(&self, src: HostId, dst: HostId, path: u32) -> bool {
        self.topology.path_links(src, dst, path).all(|link| self.state.alive(link))
    }

    pub(crate) fn any_works(&self, src: HostId, dst: HostId) -> bool {
        (0..self.topology.paths(src, dst)).any(|path| self.works(src, dst, path))
    }

    /// Whether every pair of hosts has a way; if not, one pair that has none.
    pub(crate) fn cut_off(&self) -> Option<(HostId, HostId)> {
        if self.state.dead.is_empty() || self.topology.hosts() < 2 {
            return None;
        }
        // Only the links of hosts and the tiers between ToRs matter: one host per ToR stands for
        // its rack between racks; host links are checked one by one.
        let topology = self.topology;
        let hosts = topology.hosts();
        let other = |h: u32| HostId(if h == 0 { 1 } else { 0 });
        let lone = (0..hosts).map(HostId).find(|&h| {
            let up = topology.path_links(h, other(h.0), 0).next();
            let down = topology.path_links(other(h.0), h, 0).last();
            up.into_iter().chain(down).any(|link| !self.state.alive(link))
        });
        if let Some(host) = lone {
            return Some((host, other(host.0)));
        }
        let racks = topology.rack_firsts();
        let pairs = racks.iter().flat_map(|&a| racks.iter().map(move |&b| (a, b)));
        pairs.filter(|(a, b)| a != b).find(|&(a, b)| !self.any_works(a, b))
    }
}

/// How a switch, named by its index, chooses for a packet among its uplinks, in a VL2 among its
/// next switches; the last two are its draws and how many it has made.
pub(crate) type Choose = fn(&RoutingView<'_>, u32, &Packet, Draw, &mut u64) -> u32;
