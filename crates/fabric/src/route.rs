//! Which way a packet goes, computed from the shape.
//!
//! A path index is `u * aggs + a`: aggregation switch `a` of the pod, then core `u` above it. Pairs
//! within a pod use only `a`. The same index leads back over the same switches.

use endpoint::{Draw, Packet, Purpose, Routes};
use units::HostId;

use crate::topology::{Node, Tier, Topology};

/// What links the hosts and switches believe to work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Belief {
    /// Links believed dead, sorted. Empty in the usual case, and then nothing below costs anything.
    dead: Vec<u32>,
    /// Grows with each change.
    version: u32,
}

impl Belief {
    pub(crate) fn new(topology: &Topology) -> Self {
        let mut belief = Self::default();
        for (link, _) in topology.links().iter().enumerate().filter(|(_, link)| !link.up) {
            belief.set(link as u32, false);
        }
        belief
    }

    pub(crate) fn set(&mut self, link: u32, up: bool) {
        match (self.dead.binary_search(&link), up) {
            (Ok(at), true) => drop(self.dead.remove(at)),
            (Err(at), false) => self.dead.insert(at, link),
            _ => return,
        }
        self.version += 1;
    }

    /// Whether nothing is believed dead.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.dead.is_empty()
    }

    fn alive(&self, link: u32) -> bool {
        self.dead.binary_search(&link).is_err()
    }
}

/// The topology as hosts may know it now.
pub(crate) struct Known<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) belief: &'a Belief,
}

impl Routes for Known<'_> {
    fn paths(&self, src: HostId, dst: HostId) -> u32 {
        self.topology.paths(src, dst)
    }

    fn path_up(&self, src: HostId, dst: HostId, path: u32) -> bool {
        self.belief.dead.is_empty() || self.works(src, dst, path) || !self.any_works(src, dst)
    }

    fn version(&self) -> u32 {
        self.belief.version
    }

    fn hops(&self, src: HostId, dst: HostId) -> u32 {
        self.topology.hops(src, dst)
    }

    fn base_rtt(&self, src: HostId, dst: HostId) -> units::Dur {
        self.topology.base_rtt(src, dst)
    }
}

impl Known<'_> {
    fn works(&self, src: HostId, dst: HostId, path: u32) -> bool {
        self.topology.path_links(src, dst, path).all(|link| self.belief.alive(link))
    }

    fn any_works(&self, src: HostId, dst: HostId) -> bool {
        (0..self.topology.paths(src, dst)).any(|path| self.works(src, dst, path))
    }

    /// Whether every pair of hosts has a way; if not, one pair that has none.
    pub(crate) fn cut_off(&self) -> Option<(HostId, HostId)> {
        if self.belief.dead.is_empty() || self.topology.hosts() < 2 {
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
            up.into_iter().chain(down).any(|link| !self.belief.alive(link))
        });
        if let Some(host) = lone {
            return Some((host, other(host.0)));
        }
        let mut racks: Vec<HostId> = Vec::new();
        for host in (0..hosts).map(HostId) {
            let tor = topology.homes[host.index()].tor();
            if racks.last().is_none_or(|last| topology.homes[last.index()].tor() != tor) {
                racks.push(host);
            }
        }
        let pairs = racks.iter().flat_map(|&a| racks.iter().map(move |&b| (a, b)));
        pairs.filter(|(a, b)| a != b).find(|&(a, b)| !self.any_works(a, b))
    }
}

impl Topology {
    /// The links from `src` to `dst` over path `path`, in order. Nothing if they are the same host.
    pub(crate) fn path_links(
        &self,
        src: HostId,
        dst: HostId,
        path: u32,
    ) -> impl Iterator<Item = u32> {
        let (from, to) = (self.homes[src.index()], self.homes[dst.index()]);
        let mut links = [u32::MAX; 6];
        let mut count = 0;
        let mut push = |link| {
            links[count] = link;
            count += 1;
        };
        if src != dst {
            push(src.0);
            if from.tor() != to.tor() {
                let tor = self.switches[from.tor() as usize];
                let (a, u) = (path % self.aggs, path / self.aggs);
                push(tor.up + a);
                if self.agg_switches() == 0 {
                    // A dumbbell: the other ToR already.
                } else if from.pod() == to.pod() {
                    let agg = self.agg(from.pod(), a);
                    push(agg.down + u32::from(to.rack()));
                } else {
                    push(self.agg(from.pod(), a).up + u);
                    let core = self.switch_index(Tier::Core, a * self.cores_per_agg + u);
                    push(self.switches[core].down + to.pod());
                    let agg = self.agg(to.pod(), a);
                    push(agg.down + u32::from(to.rack()));
                }
            }
            push(self.switches[to.tor() as usize].down + u32::from(to.slot()));
        }
        links.into_iter().take(count)
    }

    /// The first host at the end of link `down` or below it.
    fn some_host_below(&self, down: u32) -> HostId {
        match self.links()[down as usize].to {
            Node::Host(host) => HostId(host),
            Node::Switch(tier, n) => {
                self.some_host_below(self.switches[self.switch_index(tier, n)].down)
            }
        }
    }

    fn agg_switches(&self) -> u32 {
        self.switches_of(Tier::Agg)
    }

    fn agg(&self, pod: u32, a: u32) -> &crate::topology::Switch {
        &self.switches[self.switch_index(Tier::Agg, pod * self.aggs + a)]
    }
}

/// Draws of a switch.
pub(crate) const SPRAY: Purpose = Purpose::new("fabric: spray");

impl Topology {
    /// Write into a packet which uplink its path takes at each tier.
    #[inline(always)]
    pub(crate) fn stamp(&self, pkt: &mut Packet) {
        let aggs = self.aggs.max(1);
        pkt.scratch[Tier::Tor as usize] = (pkt.path % aggs) as u16;
        pkt.scratch[Tier::Agg as usize] = (pkt.path / aggs % self.cores_per_agg.max(1)) as u16;
    }
}

/// How a switch, named by its index, chooses an uplink for a packet; the last two are its draws and
/// how many it has made.
pub(crate) type ChooseUp = fn(&Known<'_>, u32, &Packet, Draw, &mut u64) -> u32;

/// [`crate::Routing::FlowHash`]: the same uplink for all packets of equal entropy.
pub(crate) fn by_hash(known: &Known<'_>, at: u32, pkt: &Packet, draw: Draw, _: &mut u64) -> u32 {
    let hash = draw.part(u64::from(pkt.src.0) << 32 | u64::from(pkt.dst.0));
    let entropy = u64::from(pkt.path) << 8 | u64::from(pkt.proto);
    choose(known, at, pkt, |n| hash.below(SPRAY, entropy, n))
}

/// [`crate::Routing::PacketRandom`]: any uplink for any packet.
pub(crate) fn by_draw(
    known: &Known<'_>,
    at: u32,
    pkt: &Packet,
    draw: Draw,
    draws: &mut u64,
) -> u32 {
    *draws += 1;
    choose(known, at, pkt, |n| draw.below(SPRAY, *draws, n))
}

/// One of the uplinks of switch `at` over which the destination can be reached: `pick(n)` below n.
fn choose(known: &Known<'_>, at: u32, pkt: &Packet, mut pick: impl FnMut(u64) -> u64) -> u32 {
    let ups = known.topology.switches[at as usize].ups;
    if known.belief.dead.is_empty() {
        return pick(u64::from(ups)) as u32;
    }
    let live = || (0..ups).filter(|&up| leads_on(known, at, up, pkt.dst));
    match live().count() {
        0 => pick(u64::from(ups)) as u32,
        n => live().nth(pick(n as u64) as usize).unwrap_or(0),
    }
}

/// Whether some believed-alive way from switch `at` over its uplink `up` reaches `dst`.
fn leads_on(known: &Known<'_>, at: u32, up: u32, dst: HostId) -> bool {
    let topology = known.topology;
    let switch = &topology.switches[at as usize];
    // Any host below stands for all of them: the links from here on are the same.
    let src = topology.some_host_below(switch.down);
    let works = |path, links_below| {
        let mut links = topology.path_links(src, dst, path).skip(links_below);
        links.all(|link| known.belief.alive(link))
    };
    match switch.tier {
        Tier::Tor => {
            let cores = topology.paths(src, dst) / topology.aggs.max(1);
            (0..cores).any(|core| works(core * topology.aggs + up, 1))
        }
        _ => works(up * topology.aggs + u32::from(switch.index), 2),
    }
}
