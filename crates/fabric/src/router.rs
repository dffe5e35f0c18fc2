//! [`Router`]: the ports that one switch chooses, for those who run a switch outside of the
//! simulator. The same choices: of the same topology, seed and packets, the same ports.

use std::sync::Arc;

use endpoint::{Draw, Packet};

use crate::config::{ConfigError, Routing};
use crate::link_state::{Choose, LinkState, RoutingView};
use crate::network::SWITCH;
use crate::route::{by_draw, by_hash, by_source};
use crate::topology::{Node, Shape, Topology};

/// The ports that one switch of a tree of tiers chooses.
pub struct Router {
    topology: Arc<Topology>,
    /// The switch's index among all.
    at: u32,
    /// How it chooses among ways up; `None`: the packet's path index says.
    choose: Option<Choose>,
    draw: Draw,
    draws: u64,
    state: LinkState,
}

impl Router {
    /// That of `switch`, with the draws that it has under `seed`.
    ///
    /// # Errors
    /// The topology is no tree of tiers, or has no such switch.
    pub fn new(
        topology: Arc<Topology>,
        routing: Routing,
        seed: u64,
        switch: Node,
    ) -> Result<Self, ConfigError> {
        let kind = topology.kind();
        if !matches!(topology.shape, Shape::Tree) {
            return Err(ConfigError(format!("a switch of a {kind} cannot run by itself")));
        }
        let at = match switch {
            Node::Switch(tier, n) if n < topology.switches_of(tier) => {
                topology.switch_index(tier, n) as u32
            }
            _ => return Err(ConfigError(format!("there is no {switch} in this {kind}"))),
        };
        let choose: Option<Choose> = match routing {
            Routing::Source | Routing::Encoded(_) => None,
            Routing::FlowHash => Some(by_hash),
            Routing::PacketRandom => Some(by_draw),
            Routing::Listed => Some(by_source),
        };
        let state = LinkState::new(&topology);
        let draw = Draw::new(seed, SWITCH, u64::from(at));
        Ok(Self { topology, at, choose, draw, draws: 0, state })
    }

    /// From now on `link` is believed to work, or not to.
    pub fn believe(&mut self, link: u32, works: bool) {
        self.state.update(&self.topology, &[(link, works)]);
    }

    /// The link over which a packet leaves; none if it names hosts that there are not.
    pub fn link(&mut self, pkt: &Packet) -> Option<u32> {
        let hosts = self.topology.hosts();
        if pkt.src.0 >= hosts || pkt.dst.0 >= hosts {
            return None;
        }
        let switch = &self.topology.switches[self.at as usize];
        let (tier, below) = self.topology.below(self.at);
        match self.choose.filter(|_| self.topology.homes[pkt.dst.index()].below[tier] != below) {
            None => Some(switch.down + u32::from(self.topology.turn(self.at, (pkt.dst, pkt.path)))),
            Some(choose) => {
                let known = RoutingView { topology: &self.topology, state: &self.state };
                Some(switch.up + choose(&known, self.at, pkt, self.draw, &mut self.draws))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use units::{Dur, HostId, Rate};

    use super::*;
    use crate::topology::{LinkSpec, Tier};

    fn fat_tree() -> Arc<Topology> {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
        Arc::new(Topology::fat_tree(4, 1, link).unwrap())
    }

    /// Whatever path the packets have, those of host `n` take path `3 - n % 4`, there and back
    /// alike: they are listed by source.
    #[test]
    fn listed_paths_are_those_of_the_source() {
        let listed = fat_tree().as_ref().clone().with_paths((0..16).map(|n| 3 - n % 4).collect());
        let topology = Arc::new(listed.unwrap());
        let router = |node| Router::new(Arc::clone(&topology), Routing::Listed, 1, node).unwrap();
        let pairs = (0..16).flat_map(|src| (0..16).map(move |dst| (HostId(src), HostId(dst))));
        for (src, dst) in pairs.filter(|(src, dst)| src != dst) {
            let pkt = Packet { src, dst, path: 1, ..Packet::EMPTY };
            let expected: Vec<u32> = topology.path_links(src, dst, 3 - src.0 % 4).collect();
            for pair in expected.windows(2) {
                let at = topology.links()[pair[0] as usize].to;
                assert_eq!(router(at).link(&pkt), Some(pair[1]), "{src} {dst} {at}");
            }
        }
        let why = fat_tree().as_ref().clone().with_paths(vec![0; 15]).unwrap_err();
        assert_eq!(why.to_string(), "15 paths are listed for 16 hosts");
    }

    /// From switch to switch every packet takes the links of its path.
    #[test]
    fn the_links_are_those_of_the_path() {
        let topology = fat_tree();
        let router = |node| Router::new(Arc::clone(&topology), Routing::Source, 1, node).unwrap();
        let pairs = (0..16).flat_map(|src| (0..16).map(move |dst| (HostId(src), HostId(dst))));
        for (src, dst) in pairs.filter(|(src, dst)| src != dst) {
            for path in 0..4 {
                let pkt = Packet { src, dst, path, ..Packet::EMPTY };
                let expected: Vec<u32> = topology.path_links(src, dst, path % 4).collect();
                for pair in expected.windows(2) {
                    let at = topology.links()[pair[0] as usize].to;
                    assert_eq!(router(at).link(&pkt), Some(pair[1]), "{src} {dst} {path} {at}");
                }
            }
        }
    }

    #[test]
    fn equal_entropy_takes_one_way_and_others_take_all() {
        let topology = fat_tree();
        let tor = Node::Switch(Tier::Tor, 0);
        let mut router = Router::new(Arc::clone(&topology), Routing::FlowHash, 1, tor).unwrap();
        let mut link =
            |path| router.link(&Packet { src: HostId(0), dst: HostId(15), path, ..Packet::EMPTY });
        let all: std::collections::BTreeSet<_> = (0..64).map(&mut link).collect();
        assert_eq!((all.len(), link(7)), (2, link(7)));
        let down = Packet { src: HostId(15), dst: HostId(1), ..Packet::EMPTY };
        assert_eq!(router.link(&down), topology.find_link(tor, Node::Host(1)));
        assert_eq!(router.link(&Packet { dst: HostId(16), ..Packet::EMPTY }), None);
    }

    #[test]
    fn switches_that_there_are_not_are_refused() {
        let error = |node| {
            let router = Router::new(fat_tree(), Routing::Source, 1, node);
            router.err().unwrap().to_string()
        };
        assert_eq!(error(Node::Switch(Tier::Tor, 8)), "there is no tor 8 in this fat-tree");
        assert_eq!(error(Node::Host(1)), "there is no host 1 in this fat-tree");
    }
}
