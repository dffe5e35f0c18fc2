//! Jellyfish: Singla, Hong, Popa, Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI
//! 2012. A random regular graph of top-of-rack switches, and the k shortest paths between any two.

use endpoint::{Draw, Purpose};
use units::Rate;

use super::builder::Builder;
use super::{LINKS_MAX, LinkSpec, Node, Shape, Tier, Topology, TopologyError};
use crate::graph::{Graph, RACKS_MAX};
use crate::shortest;

/// The shape of a Jellyfish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jellyfish {
    /// Switches, all alike: more than `degree`, at most 2048.
    pub switches: u32,
    /// Ports of each that lead to other switches (the paper's r): 2, which makes a ring, to 256. An
    /// even number of ports in all, so that none is left over.
    pub degree: u32,
    /// Hosts of each. Not zero.
    pub hosts_per_switch: u32,
    /// Seed of the graph.
    pub seed: u64,
    /// Paths listed between two switches, at most (the paper's k, which it sets to 8). Not zero.
    pub paths: u32,
    /// How many links longer than the shortest a listed path is at most.
    pub stretch: u32,
    /// Every link.
    pub link: LinkSpec,
}

const GRAPH: Purpose = Purpose::new("jellyfish: graph");
const PATHS: Purpose = Purpose::new("jellyfish: paths");

/// Beyond what switches have; equally long paths would be very many.
const DEGREE_MAX: u32 = 256;

/// A graph that is not connected, or cannot be completed, is drawn again. At degree 3 and more that
/// is rare; at degree 2 it happens to several rings instead of one.
const ATTEMPTS: u64 = 100;

impl Topology {
    /// A Jellyfish. The graph and the choice among equally long paths depend on `shape.seed` alone.
    ///
    /// # Errors
    /// A shape outside the ranges of [`Jellyfish`], or one whose paths do not fit the lists.
    pub fn jellyfish(shape: &Jellyfish) -> Result<Self, TopologyError> {
        check(shape)?;
        let draw = |attempt| Draw::new(shape.seed, GRAPH, attempt);
        let neighbours = (0..ATTEMPTS).find_map(|n| random_graph(shape, draw(n)));
        let neighbours = neighbours.ok_or_else(|| {
            TopologyError(format!(
                "no connected graph of {} switches of degree {} in {ATTEMPTS} draws",
                shape.switches, shape.degree
            ))
        })?;
        let mut topology = build(shape, &neighbours);
        let graph = Graph::new(&topology, |from, to, distances| {
            let draw = Draw::new(shape.seed, PATHS, u64::from(from) << 32 | u64::from(to));
            let most = shortest::Most { paths: shape.paths as usize, stretch: shape.stretch };
            let distance = |at| distances.between(at, to);
            shortest::paths(&neighbours, distance, from, to, most, draw)
        })?;
        topology.shape = Shape::Graph(graph);
        Ok(topology)
    }
}

fn check(shape: &Jellyfish) -> Result<(), TopologyError> {
    let error = |what: String| Err(TopologyError(what));
    let Jellyfish { switches, degree, hosts_per_switch, paths, link, .. } = *shape;
    if !(2..=DEGREE_MAX).contains(&degree) || switches <= degree {
        let range = format!("2 to {DEGREE_MAX}, and fewer than switches");
        return error(format!("{switches} switches of degree {degree}: {range}"));
    }
    if u64::from(switches) > RACKS_MAX {
        return error(format!("{switches} switches: at most {RACKS_MAX}"));
    }
    if !(u64::from(switches) * u64::from(degree)).is_multiple_of(2) {
        return error(format!("{switches} switches of degree {degree} leave one port over"));
    }
    if hosts_per_switch == 0 || hosts_per_switch >= u32::from(u16::MAX) {
        return error(format!("{hosts_per_switch} hosts on one switch: from 1 to 65534"));
    }
    let links = u64::from(switches) * (2 * u64::from(hosts_per_switch) + u64::from(degree));
    if links > LINKS_MAX {
        return error(format!("{links} directed links: at most {LINKS_MAX}"));
    }
    if paths == 0 || link.rate == Rate(0) {
        return error("no paths, or a link of rate zero".into());
    }
    Ok(())
}

/// Of each switch its neighbours, in order: a random graph in which all have `degree`. Section 3 of
/// the paper: join two random switches that have free ports and are no neighbours, until there are
/// none; then break random links to place the ports that are left. `None` if the result is not
/// connected or some port finds no place.
fn random_graph(shape: &Jellyfish, draw: Draw) -> Option<Vec<Vec<u32>>> {
    let mut graph = Growing::new(shape.switches, shape.degree, draw);
    graph.join_free_ports();
    graph.place_left_over()?;
    let neighbours: Vec<Vec<u32>> =
        (0..shape.switches).map(|at| graph.neighbours(at).collect()).collect();
    connected(&neighbours).then_some(neighbours)
}

/// A graph under construction.
struct Growing {
    /// Free ports of each switch.
    free: Vec<u32>,
    /// By pair of switches, in either order: whether they are joined.
    joined: Vec<bool>,
    draw: Draw,
    drawn: u64,
}

impl Growing {
    fn new(switches: u32, degree: u32, draw: Draw) -> Self {
        let n = switches as usize;
        Self { free: vec![degree; n], joined: vec![false; n * n], draw, drawn: 0 }
    }

    fn switches(&self) -> u32 {
        self.free.len() as u32
    }

    /// Join random pairs for as long as there is one to join.
    fn join_free_ports(&mut self) {
        let mut open: Vec<u32> = (0..self.switches()).collect();
        while !open.is_empty() {
            let place = self.below(open.len());
            let a = open[place];
            let others: Vec<u32> = open.iter().copied().filter(|&b| self.may_join(a, b)).collect();
            if others.is_empty() {
                // No switch becomes free again, so none will do later.
                open.swap_remove(place);
                continue;
            }
            let b = others[self.below(others.len())];
            self.join(a, b);
            open.retain(|&at| self.free[at as usize] > 0);
        }
    }

    /// Two ports that are free, of switches that cannot be joined or of one: put them into the
    /// middle of a random link between others. `None` if there is no such link.
    fn place_left_over(&mut self) -> Option<()> {
        while let Some((a, b)) = self.two_free_ports() {
            let pairs = (0..self.switches()).flat_map(|x| self.neighbours(x).map(move |y| (x, y)));
            let fit = |&(x, y): &(u32, u32)| self.may_join(a, x) && self.may_join(b, y);
            let links: Vec<(u32, u32)> = pairs.filter(fit).collect();
            let &(x, y) = links.get(self.below(links.len()))?;
            self.part(x, y);
            self.join(a, x);
            self.join(b, y);
        }
        Some(())
    }

    fn two_free_ports(&self) -> Option<(u32, u32)> {
        let ports = (0..).zip(&self.free);
        let mut ports = ports.flat_map(|(at, &free)| std::iter::repeat_n(at, free as usize));
        ports.next().zip(ports.next())
    }

    fn neighbours(&self, at: u32) -> impl Iterator<Item = u32> {
        (0..self.switches()).filter(move |&other| self.joined[self.pair(at, other)])
    }

    fn pair(&self, a: u32, b: u32) -> usize {
        a as usize * self.free.len() + b as usize
    }

    /// Whether these are two, and not neighbours yet.
    fn may_join(&self, a: u32, b: u32) -> bool {
        a != b && !self.joined[self.pair(a, b)]
    }

    fn join(&mut self, a: u32, b: u32) {
        self.set(a, b, true);
    }

    fn part(&mut self, a: u32, b: u32) {
        self.set(a, b, false);
    }

    fn set(&mut self, a: u32, b: u32, joined: bool) {
        for (at, other) in [(a, b), (b, a)] {
            let pair = self.pair(at, other);
            self.joined[pair] = joined;
            let free = &mut self.free[at as usize];
            *free = if joined { *free - 1 } else { *free + 1 };
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        self.draw.below(GRAPH, self.drawn, bound as u64) as usize
    }
}

fn connected(neighbours: &[Vec<u32>]) -> bool {
    let mut seen = vec![false; neighbours.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut seen[at as usize], true) {
            open.extend(&neighbours[at as usize]);
        }
    }
    seen.iter().all(|&seen| seen)
}

/// Nodes and links, without paths.
fn build(shape: &Jellyfish, neighbours: &[Vec<u32>]) -> Topology {
    let Jellyfish { switches, hosts_per_switch, link, .. } = *shape;
    let hosts = switches * hosts_per_switch;
    let mut build = Builder::new("jellyfish", hosts);
    build.hosts(hosts, link, |host| host / hosts_per_switch);
    for (tor, neighbours) in (0..switches).zip(neighbours) {
        let me = Node::Switch(Tier::Tor, tor);
        let hosts = tor * hosts_per_switch..(tor + 1) * hosts_per_switch;
        build.tor((tor, 0, tor), hosts, link);
        build.ups_begin(neighbours.len() as u32);
        for &next in neighbours {
            build.link(me, Node::Switch(Tier::Tor, next), link);
        }
    }
    build.finish(1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::{LINK, check_shape};
    use endpoint::Routes;
    use units::HostId;

    fn shape(switches: u32, degree: u32) -> Jellyfish {
        let link = LINK;
        Jellyfish { switches, degree, hosts_per_switch: 2, seed: 1, paths: 8, stretch: 9, link }
    }

    /// The ToRs beside each ToR, from the links alone.
    fn neighbours(fabric: &Topology) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); fabric.racks() as usize];
        for link in fabric.links() {
            if let (Node::Switch(_, from), Node::Switch(_, to)) = (link.from, link.to) {
                all[from as usize].push(to);
            }
        }
        all
    }

    #[test]
    fn the_graph_is_regular_simple_and_connected() {
        for seed in 0..20 {
            // The last two leave ports over in most draws: there is hardly another such graph.
            for (switches, degree) in [(3, 2), (9, 2), (4, 3), (20, 3), (50, 6), (12, 9), (12, 10)]
            {
                let shape = Jellyfish { seed, paths: 1, ..shape(switches, degree) };
                let neighbours = neighbours(&Topology::jellyfish(&shape).unwrap());
                for (n, all) in (0..).zip(&neighbours) {
                    assert_eq!(all.len(), degree as usize, "regular");
                    assert!(!all.contains(&n) && all.is_sorted_by(|a, b| a < b), "simple: {all:?}");
                    assert!(all.iter().all(|&to| neighbours[to as usize].contains(&n)));
                }
                assert!(connected(&neighbours));
            }
        }
    }

    #[test]
    fn ports_that_are_left_over_break_into_links() {
        // Switch 3 has two free ports and the others none: one link gives way.
        let triangle = |switches, degree| {
            let mut graph = Growing::new(switches, degree, Draw::new(1, GRAPH, 0));
            [(0, 1), (1, 2), (2, 0)].into_iter().for_each(|(a, b)| graph.join(a, b));
            graph
        };
        let mut graph = triangle(4, 2);
        graph.place_left_over().unwrap();
        let neighbours: Vec<Vec<u32>> = (0..4).map(|at| graph.neighbours(at).collect()).collect();
        assert!(neighbours.iter().all(|all| all.len() == 2), "{neighbours:?}");
        assert!(connected(&neighbours));
        // Three switches cannot have four neighbours each.
        assert!(triangle(3, 4).place_left_over().is_none());
    }

    #[test]
    fn the_seed_decides_and_every_graph_is_another() {
        let links = |seed| {
            let shape = Jellyfish { seed, ..shape(20, 4) };
            Topology::jellyfish(&shape).unwrap().links().to_vec()
        };
        assert_eq!(links(7), links(7));
        assert_ne!(links(7), links(8));
    }

    #[test]
    fn paths_are_ways_there_and_back() {
        for (switches, degree) in [(5, 2), (4, 3), (20, 4)] {
            check_shape(&Topology::jellyfish(&shape(switches, degree)).unwrap());
        }
    }

    #[test]
    fn a_limit_of_stretch_leaves_the_shortest() {
        let all = Topology::jellyfish(&shape(30, 4)).unwrap();
        let near = Topology::jellyfish(&Jellyfish { stretch: 0, ..shape(30, 4) }).unwrap();
        let hops = |of: &Topology, dst, path| of.path_links(HostId(0), dst, path).count();
        for dst in (2..60).map(HostId) {
            let shortest = hops(&all, dst, 0);
            let equal = (0..8).filter(|&path| hops(&all, dst, path) == shortest).count();
            assert_eq!(all.paths(HostId(0), dst), 8);
            assert_eq!(near.paths(HostId(0), dst), equal as u32);
            assert!((0..equal as u32).all(|path| hops(&near, dst, path) == shortest));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let refused = |shape: &Jellyfish| Topology::jellyfish(shape).unwrap_err().to_string();
        assert!(refused(&shape(20, 1)).contains("2 to 256"));
        assert!(refused(&shape(5, 5)).contains("fewer than switches"));
        assert!(refused(&shape(9, 3)).contains("leave one port over"));
        assert!(refused(&shape(5000, 3)).contains("at most 2048"));
        let many = Jellyfish { paths: 64, ..shape(800, 4) };
        assert!(refused(&many).contains("16000000 links"), "{}", refused(&many));
    }
}
