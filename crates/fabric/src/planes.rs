//! Several planes: copies of one tree of tiers, of which every host has a port in each
//! (specs/uet.md#14). Which way a packet goes.
//!
//! Hosts have an interface ([`Tier::Nic`]) whose ports lead to the planes; in the tree that is
//! copied, hosts stand for it. A path's index is `path * planes + plane`: the plane, then the path
//! within it. The same index leads back over the same switches. No link joins two planes, so that
//! the NIC that a packet leaves decides for good.

use endpoint::{Draw, Packet, Routes};
use units::HostId;

use crate::link_state::{Choose, LinkState, RoutingView};
use crate::topology::{Node, Tier, Topology};

/// The planes of a fabric, and how their switches and links are numbered among all: NICs by host,
/// then plane after plane.
#[derive(Clone, Debug)]
pub(crate) struct Planes {
    count: u32,
    /// One of them.
    plane: Topology,
}

/// Where a switch is.
pub(crate) enum Place {
    /// In the host of this number.
    Nic(u32),
    /// The plane, and the switch's index there.
    Plane(u32, u32),
}

impl Planes {
    pub(crate) fn new(count: u32, plane: Topology) -> Self {
        Self { count, plane }
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// One of the planes, without NICs.
    pub(crate) fn plane(&self) -> &Topology {
        &self.plane
    }

    fn hosts(&self) -> u32 {
        self.plane.hosts()
    }

    /// The links of a plane but those from NICs.
    fn links(&self) -> u32 {
        self.plane.links().len() as u32 - self.hosts()
    }

    /// The first link of the NIC of `host`, which leads to the host. Those to planes follow.
    pub(crate) fn nic_down(&self, host: u32) -> u32 {
        self.hosts() + host * (1 + self.count)
    }

    /// The link of `plane` that is number `link` in the tree.
    pub(crate) fn link(&self, plane: u32, link: u32) -> u32 {
        match link.checked_sub(self.hosts()) {
            None => self.nic_down(link) + 1 + plane,
            Some(link) => self.nic_down(self.hosts()) + plane * self.links() + link,
        }
    }

    /// The plane of a link and its number in the tree; nothing of one between host and NIC.
    pub(crate) fn place_of_link(&self, link: u32) -> Option<(u32, u32)> {
        let hosts = self.hosts();
        if let Some(link) = link.checked_sub(self.nic_down(hosts)) {
            return Some((link / self.links(), hosts + link % self.links()));
        }
        let of_nic = link.checked_sub(hosts)?;
        let (host, port) = (of_nic / (1 + self.count), of_nic % (1 + self.count));
        Some((port.checked_sub(1)?, host))
    }

    /// Where switch `at`, an index among all, is.
    pub(crate) fn place(&self, at: u32) -> Place {
        let switches = self.plane.switches.len() as u32;
        match at.checked_sub(self.hosts()) {
            None => Place::Nic(at),
            Some(at) => Place::Plane(at / switches, at % switches),
        }
    }

    /// The index among all of switch `n` of a tier of a plane.
    pub(crate) fn switch_at(&self, plane: u8, tier: Tier, n: u32) -> u32 {
        let switches = self.plane.switches.len() as u32;
        self.hosts() + u32::from(plane) * switches + self.plane.switch_index(tier, n) as u32
    }

    /// What `node` of the tree is in `plane`.
    pub(crate) fn node(&self, plane: u32, node: Node) -> Node {
        match node {
            Node::Host(host) => Node::Switch(Tier::Nic, host),
            Node::Switch(tier, n) | Node::Plane(_, tier, n) => Node::Plane(plane as u8, tier, n),
        }
    }

    pub(crate) fn paths(&self, src: HostId, dst: HostId) -> u32 {
        self.count * self.plane.paths(src, dst)
    }

    /// `of` of each switch of the tree, for all switches: a NIC is where the switch of its host is.
    pub(crate) fn of_switches(&self, of: &[u32]) -> Vec<u32> {
        let nics = self.plane.homes.iter().map(|home| of[home.tor() as usize]);
        nics.chain((0..self.count).flat_map(|_| of.iter().copied())).collect()
    }

    /// The tree as those in `plane` know it.
    fn view<'a>(&'a self, state: &'a LinkState, plane: u32) -> RoutingView<'a> {
        RoutingView { topology: &self.plane, state: state.in_plane(plane) }
    }
}

impl Topology {
    /// The links between the NICs of two hosts over path `path`. Nothing if there is one plane.
    pub(crate) fn plane_links(
        &self,
        src: HostId,
        dst: HostId,
        path: u32,
    ) -> impl Iterator<Item = u32> {
        let planes = self.planes().filter(|_| src != dst);
        planes.into_iter().flat_map(move |planes| {
            let (plane, within) = (path % planes.count, path / planes.count);
            planes.plane.way(src, dst, within).into_iter().map(move |link| planes.link(plane, link))
        })
    }
}

/// Whether some believed-alive way in plane `plane` leads from NIC `nic` to `dst`.
pub(crate) fn leads_on(known: &RoutingView<'_>, nic: u32, plane: u32, dst: HostId) -> bool {
    let Some(planes) = known.topology.planes() else { return false };
    let view = planes.view(known.state, plane);
    view.state.is_whole() || view.any_works(HostId(nic), dst)
}

/// The output port of switch `at`, an index among all, counted from its first. The draw is the
/// switch's own, with how many it has made.
pub(crate) fn port(
    known: &RoutingView<'_>,
    at: u32,
    pkt: &Packet,
    choose: Option<Choose>,
    (draw, draws): &mut (Draw, u64),
) -> u32 {
    let Some(planes) = known.topology.planes() else { return 0 };
    match planes.place(at) {
        Place::Nic(host) if pkt.dst.0 == host => 0,
        Place::Nic(_) => match choose {
            None => 1 + pkt.path % planes.count,
            Some(up) => 1 + up(known, at, pkt, *draw, draws),
        },
        Place::Plane(plane, at) => {
            let tree = &planes.plane;
            let (home, (tier, below)) = (&tree.homes[pkt.dst.index()], tree.below(at));
            match choose.filter(|_| home.below[tier] != below) {
                None => u32::from(tree.turn(at, (pkt.dst, pkt.path / planes.count))),
                Some(up) => {
                    let view = planes.view(known.state, plane);
                    tree.switches[at as usize].downs() + up(&view, at, pkt, *draw, draws)
                }
            }
        }
    }
}
