//! BCube: Guo et al., "BCube: A High Performance, Server-centric Network Architecture for Modular
//! Data Centers", SIGCOMM 2009. Servers have a port per level and forward for each other.
//!
//! A server is modelled as a host and a relay beside it. The relay is a switch of the server: it has
//! the server's ports, and queues like those of any other switch. Host and relay are joined by a link
//! without delay whose rate is that of all ports together.

use units::{Dur, Rate};

use super::builder::Builder;
use super::{LinkSpec, Node, Shape, Tier, Topology, TopologyError};
use crate::graph::{Graph, RACKS_MAX};

/// The shape of a `BCube_k` (the paper's name): n^(k+1) servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bcube {
    /// Ports of a switch: 2 or more.
    pub n: u32,
    /// Number of the highest level. A server has k+1 ports, and there are n^k switches per level.
    /// At most 2048 servers.
    pub k: u32,
    /// No path is listed that is more than so many links longer than the shortest. From server to
    /// server a packet crosses two links, so that the longer paths are 4 links longer.
    pub stretch: u32,
    /// Every link between a server and a switch.
    pub link: LinkSpec,
}

impl Topology {
    /// A BCube whose paths are those of the paper's `BuildPathSet`: one for each port that the
    /// servers have, and no two of them with a switch or server in common.
    ///
    /// # Errors
    /// A shape outside the ranges of [`Bcube`], or one whose paths do not fit the lists.
    pub fn bcube(shape: &Bcube) -> Result<Self, TopologyError> {
        let numbers = Numbers::new(shape)?;
        let mut topology = build(shape, numbers);
        let graph = Graph::new(&topology, |from, to, _| {
            let mut paths: Vec<Vec<u32>> =
                (0..=numbers.k).rev().map(|level| numbers.path(from, to, level)).collect();
            paths.sort_by_key(Vec::len);
            let longest = paths[0].len().saturating_add(shape.stretch as usize);
            paths.retain(|path| path.len() <= longest);
            paths
        })?;
        topology.shape = Shape::Graph(graph);
        Ok(topology)
    }
}

/// What servers and switches are called. A server's number has k+1 digits to the base n; servers that
/// differ in digit l alone are joined by one switch of level l.
#[derive(Clone, Copy)]
struct Numbers {
    n: u32,
    k: u32,
    servers: u32,
    /// Of one level.
    switches: u32,
}

impl Numbers {
    fn new(shape: &Bcube) -> Result<Self, TopologyError> {
        let Bcube { n, k, link, .. } = *shape;
        let servers = k.checked_add(1).and_then(|digits| n.checked_pow(digits)).map(u64::from);
        let servers = servers.filter(|&servers| n >= 2 && servers <= RACKS_MAX);
        let Some(servers) = servers else {
            let what =
                format!("n = {n}, k = {k}: n is at least 2, and n^(k+1) at most {RACKS_MAX}");
            return Err(TopologyError(what));
        };
        if link.rate == Rate(0) || link.rate.0.checked_mul(u64::from(k) + 1).is_none() {
            return Err(TopologyError(format!("{} links of {}", k + 1, link.rate)));
        }
        let servers = servers as u32;
        Ok(Self { n, k, servers, switches: servers / n })
    }

    /// What digit `level` of a server's number counts.
    fn weight(self, level: u32) -> u32 {
        self.n.pow(level)
    }

    fn digit(self, server: u32, level: u32) -> u32 {
        server / self.weight(level) % self.n
    }

    /// The server with another digit.
    fn with(self, server: u32, level: u32, digit: u32) -> u32 {
        server - self.digit(server, level) * self.weight(level) + digit * self.weight(level)
    }

    /// The switch of `level` that a server is joined to, numbered over all levels: its number
    /// within the level is the server's without that digit.
    fn switch(self, server: u32, level: u32) -> u32 {
        let weight = self.weight(level);
        level * self.switches + server / (weight * self.n) * weight + server % weight
    }

    /// The servers joined to a switch, by digit.
    fn servers_of(self, switch: u32) -> impl Iterator<Item = u32> {
        let (level, within) = (switch / self.switches, switch % self.switches);
        let weight = self.weight(level);
        let first = within / weight * weight * self.n + within % weight;
        (0..self.n).map(move |digit| first + digit * weight)
    }

    /// The path of `BuildPathSet` that leaves `from` over `level`, as the relays and switches on
    /// it (as indices among all switches): digits are corrected from `level` downwards, round to
    /// the one above it. Where that digit is equal already (`AltDCRouting`), the path goes by the
    /// neighbour with the next digit, and puts it right last.
    fn path(self, from: u32, to: u32, level: u32) -> Vec<u32> {
        let (mut at, mut path) = (from, vec![from]);
        let mut go = |level, digit| {
            if self.digit(at, level) != digit {
                let next = self.with(at, level, digit);
                path.extend([self.servers + self.switch(at, level), next]);
                at = next;
            }
        };
        let first = self.digit(from, level);
        if first == self.digit(to, level) {
            go(level, (first + 1) % self.n);
        } else {
            go(level, self.digit(to, level));
        }
        // Down to level 0, then from k to the one above `level`, then `level` itself.
        for next in (0..level).rev().chain((level..=self.k).rev()) {
            go(next, self.digit(to, next));
        }
        path
    }
}

/// Nodes and links, without paths.
fn build(shape: &Bcube, numbers: Numbers) -> Topology {
    let Numbers { k, servers, switches, .. } = numbers;
    let link = shape.link;
    let inner = LinkSpec { rate: Rate(link.rate.0 * (u64::from(k) + 1)), delay: Dur::ZERO };
    let mut build = Builder::new("bcube", servers);
    let relay = |server| Node::Switch(Tier::Relay, server);
    for server in 0..servers {
        build.link(Node::Host(server), relay(server), inner);
    }
    for server in 0..servers {
        build.switch(Tier::Relay, 0, server);
        build.home(server, 0, 0);
        build.link(relay(server), Node::Host(server), inner);
        build.ups_begin(k + 1);
        for level in 0..=k {
            let switch = Node::Switch(Tier::Level, numbers.switch(server, level));
            build.link(relay(server), switch, link);
        }
    }
    for switch in 0..switches * (k + 1) {
        build.switch(Tier::Level, 0, switch);
        build.ups_begin(shape.n);
        for server in numbers.servers_of(switch) {
            build.link(Node::Switch(Tier::Level, switch), relay(server), link);
        }
    }
    build.finish(1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::{LINK, check_shape};
    use endpoint::Routes;
    use std::collections::BTreeSet;
    use units::HostId;

    fn bcube(n: u32, k: u32, stretch: u32) -> Topology {
        Topology::bcube(&Bcube { n, k, stretch, link: LINK }).unwrap()
    }

    /// Digits in which two servers differ (the paper's h), worked out on its own.
    fn differing(mut a: u32, mut b: u32, n: u32) -> usize {
        let mut count = 0;
        while a != b {
            count += usize::from(a % n != b % n);
            (a, b) = (a / n, b / n);
        }
        count
    }

    #[test]
    fn every_switch_joins_the_servers_that_differ_in_its_digit() {
        let fabric = bcube(4, 2, 4);
        assert_eq!((fabric.hosts(), fabric.switches_of(Tier::Level)), (64, 3 * 16));
        for link in fabric.links() {
            let (Node::Switch(Tier::Relay, server), Node::Switch(Tier::Level, switch)) =
                (link.from, link.to)
            else {
                continue;
            };
            let others = fabric.links().iter().filter(|other| other.from == link.to);
            let others: Vec<u32> = others
                .map(|other| match other.to {
                    Node::Switch(Tier::Relay, server) => server,
                    _ => panic!("{other}"),
                })
                .collect();
            assert_eq!(others.len(), 4);
            let level = switch / 16;
            for other in others {
                let apart = other.abs_diff(server);
                assert!(apart.is_multiple_of(4u32.pow(level)) && differing(other, server, 4) <= 1);
            }
        }
        // The paper's picture of a BCube_1 with n = 4: switch 0 of level 0 has servers 0 to 3, of level 1
        // every fourth.
        let small = bcube(4, 1, 4);
        let to = |tier, n, server| {
            small.find_link(Node::Switch(tier, n), Node::Switch(Tier::Relay, server)).is_some()
        };
        assert!((0..4).all(|server| to(Tier::Level, 0, server)));
        assert!((0..4).all(|n| to(Tier::Level, 4, 4 * n)));
    }

    /// What the paper proves: k+1 paths with nothing in common but their ends, of h or of h + 2 steps
    /// from server to server, each two links.
    #[test]
    fn paths_are_parallel_and_as_long_as_the_paper_says() {
        for (n, k) in [(2, 3), (4, 1), (3, 2)] {
            let fabric = bcube(n, k, 4);
            check_shape(&fabric);
            for (a, b) in (0..fabric.hosts()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let (src, dst) = (HostId(a), HostId(b));
                assert_eq!(fabric.paths(src, dst), k + 1);
                let mut met = BTreeSet::new();
                let mut lengths = Vec::new();
                for path in 0..=k {
                    let links: Vec<u32> = fabric.path_links(src, dst, path).collect();
                    lengths.push((links.len() - 2) / 2);
                    for &link in &links[1..links.len() - 2] {
                        let node = fabric.links()[link as usize].to;
                        assert!(met.insert(node), "{node} twice between {src} and {dst}");
                    }
                }
                let h = differing(a, b, n);
                let mut wanted = vec![h; h];
                wanted.resize(k as usize + 1, h + 2);
                assert_eq!(lengths, wanted);
            }
        }
    }

    /// `BuildPathSet` by hand, from 0001 to 1011 in a BCube_3 (digits from level 3 down).
    #[test]
    fn digits_are_corrected_from_the_first_one_downwards() {
        let numbers = Numbers::new(&Bcube { n: 4, k: 3, stretch: 4, link: LINK }).unwrap();
        let server = |digits: &str| u32::from_str_radix(digits, 4).unwrap();
        let digits = |at| (0..4).rev().map(move |l| numbers.digit(at, l).to_string());
        let path = |level| {
            let path = numbers.path(server("0001"), server("1011"), level);
            path.into_iter().step_by(2).map(|at| digits(at).collect()).collect::<Vec<String>>()
        };
        assert_eq!(path(3), ["0001", "1001", "1011"]);
        assert_eq!(path(1), ["0001", "0011", "1011"]);
        assert_eq!(path(2), ["0001", "0101", "0111", "1111", "1011"]);
        assert_eq!(path(0), ["0001", "0002", "1002", "1012", "1011"]);
    }

    #[test]
    fn without_stretch_the_shortest_paths_remain() {
        let fabric = bcube(4, 2, 0);
        for (a, b) in (0..64).flat_map(|a| (0..a).map(move |b| (a, b))) {
            assert_eq!(fabric.paths(HostId(a), HostId(b)) as usize, differing(a, b, 4));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (n, k) in [(1, 1), (0, 0), (2, 12), (65, 1), (u32::MAX, u32::MAX)] {
            assert!(Topology::bcube(&Bcube { n, k, stretch: 4, link: LINK }).is_err(), "{n} {k}");
        }
        let many = Topology::bcube(&Bcube { n: 12, k: 2, stretch: 4, link: LINK });
        assert!(many.unwrap_err().to_string().contains("16000000 links"));
    }
}
