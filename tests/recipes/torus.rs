//! A torus: switches in rows and columns, each with hosts, joined to its four neighbours.

use endpoint::{Draw, Purpose};

use super::builder::Builder;
use super::{LinkSpec, Node, Shape, Tier, Topology, TopologyError};
use crate::graph::Graph;
use crate::shortest;

/// The shape of a torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Switches of a row: 3 or more, or neighbours were joined twice.
    pub columns: u32,
    /// Switches of a column: the same.
    pub rows: u32,
    /// Hosts of each switch.
    pub hosts_per_switch: u32,
    /// Every link.
    pub link: LinkSpec,
}

const PATHS: Purpose = Purpose::new("torus: paths");

impl Topology {
    /// A torus, with at most eight shortest paths between two switches.
    ///
    /// # Errors
    /// A shape outside the ranges of [`Torus`], or too large for its lists of paths.
    pub fn torus(shape: &Torus) -> Result<Self, TopologyError> {
        let Torus { columns, rows, hosts_per_switch, .. } = *shape;
        if columns < 3 || rows < 3 || hosts_per_switch == 0 || columns * rows > 1024 {
            return Err(TopologyError(format!("{columns} x {rows} switches: 3 x 3 to 1024 in all")));
        }
        let neighbours: Vec<Vec<u32>> = (0..columns * rows).map(|at| beside(shape, at)).collect();
        let mut topology = build(shape, &neighbours);
        let graph = Graph::new(&topology, |from, to, distances| {
            let draw = Draw::new(0, PATHS, u64::from(from) << 32 | u64::from(to));
            let distance = |at| distances.between(at, to);
            let most = shortest::Most { paths: 8, stretch: 0 };
            shortest::paths(&neighbours, distance, from, to, most, draw)
        })?;
        topology.shape = Shape::Graph(graph);
        Ok(topology)
    }
}

fn beside(shape: &Torus, at: u32) -> Vec<u32> {
    let Torus { columns, rows, .. } = *shape;
    let (x, y) = (at % columns, at / columns);
    let place = |x: u32, y: u32| x % columns + y % rows * columns;
    let mut all = vec![
        place(x + 1, y),
        place(x + columns - 1, y),
        place(x, y + 1),
        place(x, y + rows - 1),
    ];
    all.sort_unstable();
    all
}

fn build(shape: &Torus, neighbours: &[Vec<u32>]) -> Topology {
    let Torus { columns, rows, hosts_per_switch, link } = *shape;
    let switch = |n| Node::Switch(Tier::Tor, n);
    let hosts = columns * rows * hosts_per_switch;
    let mut build = Builder::new("torus", hosts);
    for host in 0..hosts {
        build.link(Node::Host(host), switch(host / hosts_per_switch), link);
    }
    for (at, neighbours) in (0..).zip(neighbours) {
        build.switch(Tier::Tor, 0, at);
        for slot in 0..hosts_per_switch {
            build.home(at, slot as usize, 0);
            build.link(switch(at), Node::Host(at * hosts_per_switch + slot), link);
        }
        build.ups_begin(neighbours.len() as u32);
        for &next in neighbours {
            build.link(switch(at), switch(next), link);
        }
    }
    build.finish(1, 1)
}
