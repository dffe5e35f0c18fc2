//! Between whom the messages of a `[traffic]` table go: its sources, its destinations, its
//! receiver.

use endpoint::Routes;
use fabric::Topology;
use units::HostId;
use workload::matrix::{self, MatrixError, Pair};
use workload::{Destinations, HostSet};

use super::{Context, Sender, Written};
use crate::diagnostic::Checked;
use crate::key::keys;

keys! { "traffic.sources" SOURCES: Written {
    sources: HostSet,
        "who sends. `incast`, `barrier`: among whom `senders` are drawn. `rpc`: the clients"
            .default("");
}}

keys! { "traffic.destinations" TO: Written {
    destinations: HostSet, "to whom; no host sends to itself. `rpc`: the servers".default("");
    hotspots (maybe hotspots when |w| !w.longest_path): HostSet,
        "these draw the share `hotspot_share` of all messages, alike; the rest goes to the other \
         destinations, alike. A sender that would find only itself sends to the others"
            .range("among `destinations`").default("none").only("`longest_path = false`");
    hotspot_share (hotspot_share when |w| w.hotspots.is_some()): f64 [0.0..=1.0],
        "their share".written().only("`hotspots`");
}}

keys! { "traffic.farthest" SENDERS: Written {
    longest_path: bool,
        "each source draws only from those of its destinations to which the path is as long as \
         any in the fabric: hosts of other pods".default("");
}}

keys! { "traffic.incast" INCAST: Written {
    senders: u32, "how many of the sources send, drawn without replacement; never the receiver"
        .range("1 to the number of sources").written();
    receiver: u32, "who receives".range("a host").written();
    other_racks: bool,
        "hosts of the receiver's rack send only when all others do already".default("");
}}

/// `sources` and `destinations`, with `hotspots` among these. Every source needs a destination
/// other than itself.
pub(super) fn ends(cx: &Context<'_, '_>) -> Checked<(Vec<HostId>, Destinations)> {
    let sources = cx.members("sources", &cx.written.sources)?;
    let destinations = cx.members("destinations", &cx.written.destinations)?;
    if let [only] = destinations[..]
        && sources.contains(&only)
    {
        let message = format!("{only} would send to itself: {only} is the only destination");
        let error = cx.table.error("destinations", message, "here");
        return Err(error.hint("leave that host out of `sources`, or add destinations"));
    }
    let all = destinations.len() == cx.topology.hosts() as usize;
    let to = match &cx.written.hotspots {
        Some(set) => hotspots(cx, set, cx.written.hotspot_share, &destinations)?,
        None if all => Destinations::all(cx.topology.hosts()),
        None => Destinations::among(destinations),
    };
    Ok((sources, to))
}

/// Who sends one message after another to destinations drawn for each: any, or with `longest_path`
/// only those that no other host is further away from.
pub(super) fn senders(cx: &Context<'_, '_>) -> Checked<Vec<Sender>> {
    if !cx.written.longest_path {
        let (sources, to) = ends(cx)?;
        return Ok(sources.into_iter().map(|host| (host, to.clone())).collect());
    }
    let sources = cx.members("sources", &cx.written.sources)?;
    let destinations = cx.members("destinations", &cx.written.destinations)?;
    farthest(&sources, &destinations, cx.topology).map_err(|(source, longest)| {
        let message = format!("{source} has no destination {longest} links away");
        let error = cx.table.error("longest_path", message, "here");
        error.hint("add destinations, or leave that host out of `sources`")
    })
}

/// Each of `sources` with those of `destinations` that no other host is further away from, or the
/// first source that has none and how far away they would be. How far two hosts are apart depends
/// on their racks alone, so that racks are compared, not hosts.
fn farthest(
    sources: &[HostId],
    destinations: &[HostId],
    topology: &Topology,
) -> Result<Vec<Sender>, (HostId, u32)> {
    // Hosts of one rack are joined by its switch; those of several planes, by their NICs, too.
    let in_rack = if topology.plane_count() > 1 { 4 } else { 2 };
    let longest = topology.longest_path();
    let mut racks: Vec<Option<HostId>> = vec![None; topology.racks() as usize];
    for &host in destinations {
        racks[topology.rack(host) as usize].get_or_insert(host);
    }
    let far = |source: HostId, (rack, host): (u32, &Option<HostId>)| match *host {
        None => false,
        Some(_) if rack == topology.rack(source) => longest == in_rack,
        Some(host) => topology.hops(source, host) == longest,
    };
    let mut senders: Vec<Sender> = Vec::with_capacity(sources.len());
    // Neighbours have the same far racks, and share the list.
    let mut before: Option<(u32, Vec<bool>, Vec<HostId>, Destinations)> = None;
    for &source in sources {
        let rack = topology.rack(source);
        let known = before.as_ref().filter(|(of, ..)| *of == rack);
        if known.is_none() {
            let racks: Vec<bool> = (0..).zip(&racks).map(|at| far(source, at)).collect();
            let same = before.take().filter(|(_, other, ..)| *other == racks);
            let (list, to) = match same {
                Some((.., list, to)) => (list, to),
                None => {
                    let far = |host: &&HostId| racks[topology.rack(**host) as usize];
                    let list: Vec<HostId> = destinations.iter().filter(far).copied().collect();
                    (list.clone(), Destinations::among(list))
                }
            };
            before = Some((rack, racks, list, to));
        }
        let Some((.., list, to)) = &before else { continue };
        if list.iter().all(|&host| host == source) {
            return Err((source, longest));
        }
        senders.push((source, to.clone()));
    }
    Ok(senders)
}

/// Some of the `destinations` draw a share of all messages: those of `set`.
fn hotspots(
    cx: &Context<'_, '_>,
    set: &HostSet,
    share: f64,
    destinations: &[HostId],
) -> Checked<Destinations> {
    let hotspots = cx.members("hotspots", set)?;
    if let Some(host) = hotspots.iter().find(|host| destinations.binary_search(host).is_err()) {
        let message = format!("{host} is a hotspot and no destination");
        let error = cx.table.error("hotspots", message, "here");
        return Err(error.hint("hotspots are some of the `destinations`"));
    }
    let others = destinations.iter().filter(|host| hotspots.binary_search(host).is_err());
    let others: Vec<HostId> = others.copied().collect();
    Ok(Destinations::with_hotspots(hotspots, share, others))
}

/// `senders` of the `sources`, each with the `receiver`.
pub(super) fn incast_pairs(cx: &Context<'_, '_>) -> Checked<Vec<Pair>> {
    let hosts = cx.topology.hosts();
    let receiver = HostId(cx.table.within("receiver", cx.written.receiver, 0..=hosts - 1)?);
    let mut sources = cx.members("sources", &cx.written.sources)?;
    sources.retain(|&host| host != receiver);
    let most = (sources.len() as u32).max(1);
    let senders = cx.table.within("senders", cx.written.senders, 1..=most)?;
    let rack = cx.written.other_racks.then_some(hosts / cx.topology.racks().max(1));
    let pairs = matrix::incast(&sources, receiver, senders, rack, cx.draw);
    possible(cx, "senders", pairs)
}

/// The pairs of a matrix, or an error at `key`.
pub(super) fn possible<T>(
    cx: &Context<'_, '_>,
    key: &str,
    pairs: Result<T, MatrixError>,
) -> Checked<T> {
    pairs.map_err(|why| {
        let error = cx.table.error(key, format!("impossible traffic: {why}"), "here");
        error.hint("change this, or the number of hosts of the topology")
    })
}

#[cfg(test)]
mod tests {
    use fabric::{Bcube, Jellyfish, LinkSpec, Vl2};
    use units::{Dur, Rate};

    use super::*;

    /// By racks the same destinations as host by host.
    #[test]
    fn the_farthest_destinations_are_those_of_every_pair() {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
        let vl2 = Vl2 {
            aggregation_ports: 4,
            intermediate_ports: 4,
            hosts_per_rack: 2,
            host_link: link,
            switch_link: link,
            shortcut: true,
        };
        let (switches, hosts_per_switch, degree) = (10, 2, 3);
        let (seed, paths, stretch) = (1, 4, 1);
        let jellyfish =
            Jellyfish { switches, degree, hosts_per_switch, seed, paths, stretch, link };
        let shapes = [
            Topology::star(5, link),
            Topology::leaf_spine(3, 2, 4, link, link),
            Topology::fat_tree(4, 1, link),
            Topology::vl2(&vl2),
            Topology::bcube(&Bcube { n: 3, k: 1, stretch: 0, link }),
            Topology::jellyfish(&jellyfish),
        ];
        for topology in shapes.map(Result::unwrap) {
            let hosts: Vec<HostId> = (0..topology.hosts()).map(HostId).collect();
            let some: Vec<HostId> = hosts.iter().copied().filter(|host| host.0 % 3 != 1).collect();
            let found = farthest(&hosts, &some, &topology);
            let far = |src| {
                let longest = topology.longest_path();
                let far = |&&dst: &&HostId| dst != src && topology.hops(src, dst) == longest;
                some.iter().filter(far).copied().collect::<Vec<_>>()
            };
            match hosts.iter().find(|&&src| far(src).is_empty()) {
                Some(&lonely) => {
                    assert_eq!(found.err(), Some((lonely, topology.longest_path())));
                }
                None => {
                    for (src, to) in found.unwrap() {
                        let mut list = to.groups().remove(0).0;
                        list.retain(|&host| host != src);
                        assert_eq!(list, far(src), "{src} of {}", topology.kind());
                    }
                }
            }
        }
    }
}
