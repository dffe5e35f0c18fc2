//! A deadlock, which a fabric without up and down can have: four switches, each joined to every
//! other one, of which three pass packets on in a circle.

use std::collections::BTreeSet;

use trimline_fabric::{
    Config, Jellyfish, Node, Outcome, PfcSpec, Tier, Topology, Watchdog, WatchdogAction,
};
use units::{Dur, Time};

use super::script::{LINK, Send, config, memory, run, send};

fn all_joined() -> Topology {
    let shape = Jellyfish {
        switches: 4,
        degree: 3,
        hosts_per_switch: 2,
        seed: 1,
        paths: 8,
        stretch: 1,
        link: LINK,
    };
    Topology::jellyfish(&shape).unwrap()
}

/// The index of the path from `src` to `dst` whose second switch is `via`: found by trying.
fn path(topology: &Topology, src: u32, dst: u32, via: u32) -> u32 {
    let tor = |n| Node::Switch(Tier::Tor, n);
    let link = topology.find_link(tor(src / 2), tor(via)).unwrap();
    let paths = endpoint::Routes::paths(topology, units::HostId(src), units::HostId(dst));
    let goes = |path: &u32| {
        let try_it = Send { path: *path, ..send(src, dst, 1) };
        let (_, log) = run(topology, config(memory()), &[try_it], false);
        log.packets.iter().any(|(_, on, _)| *on == link)
    };
    (0..paths).find(goes).unwrap()
}

/// Hosts of switches 0, 1 and 2 send to the switch after the next one, by the next one.
fn circle(topology: &Topology, count: u32) -> Vec<Send> {
    let of_switch = |n: u32| {
        [0, 1].map(|host| {
            let (src, dst) = (2 * n + host, 2 * ((n + 2) % 3) + host);
            Send { path: path(topology, src, dst, (n + 1) % 3), ..send(src, dst, count) }
        })
    };
    (0..3).flat_map(of_switch).collect()
}

fn run_circle(pfc: PfcSpec, more: &[Send]) -> (Outcome, u64) {
    let topology = all_joined();
    let mut sends = circle(&topology, 400);
    sends.extend(more);
    let total = sends.iter().map(|send| u64::from(send.count)).sum();
    (run(&topology, Config { pfc, ..config(memory()) }, &sends, false).0, total)
}

fn nodes(outcome: &Outcome) -> BTreeSet<Node> {
    outcome.deadlock.iter().flat_map(|deadlock| deadlock.cycle.iter().copied()).collect()
}

/// specs/rdma.md#I5. Nothing moves any more, and the circle is named.
#[test]
fn i5_a_ring_of_three_switches_deadlocks() {
    let (outcome, total) = run_circle(PfcSpec::default(), &[]);
    assert!(outcome.conservation.received.packets < total / 2);
    let deadlock = outcome.deadlock.clone().unwrap();
    assert_eq!(nodes(&outcome), (0..3).map(|n| Node::Switch(Tier::Tor, n)).collect());
    assert_eq!(deadlock.to_string(), "tor 0 -> tor 1 -> tor 2 -> tor 0 class 0");
    assert!(deadlock.since < deadlock.at);
    assert_eq!(outcome.counters.dropped, 0, "lossless it is");
    let waiting = outcome.conservation.in_flight.packets;
    assert_eq!(outcome.conservation.received.packets + waiting, outcome.counters.data_sent);
}

/// While other traffic goes on, it is found when the pauses have lasted for the time given, and not
/// before.
#[test]
fn i5_a_deadlock_is_found_while_other_traffic_goes_on() {
    // From the fourth switch, in a class that nobody pauses, for three milliseconds.
    let other = Send { class: 7, ..send(6, 7, 4_000) };
    let after = Dur::from_us(500);
    let (outcome, _) =
        run_circle(PfcSpec { deadlock_after: Some(after), ..PfcSpec::default() }, &[other]);
    let deadlock = outcome.deadlock.unwrap();
    let took = deadlock.at.since(deadlock.since);
    assert!(took >= after && took <= after + Dur::from_us(20), "{took}");
    assert!(deadlock.at < Time(1_000_000_000) && outcome.now > Time(3_000_000_000));
}

/// The watchdog gives up the packets of the class, or the pause; either way the others get on.
#[test]
fn a_watchdog_ends_the_deadlock() {
    let run = |action| {
        let watchdog = Some(Watchdog { after: Dur::from_us(50), action });
        let (outcome, total) = run_circle(PfcSpec { watchdog, ..PfcSpec::default() }, &[]);
        assert!(outcome.deadlock.is_none());
        assert_eq!(outcome.conservation.in_flight.packets, 0);
        assert_eq!(outcome.counters.data_sent, total, "every host has sent everything");
        assert!(outcome.links.iter().any(|link| link.pfc.watchdog > 0));
        let dropped: u64 = outcome.links.iter().map(|link| link.pfc.watchdog_drops).sum();
        let violations: u64 = outcome.memories.iter().map(|memory| memory.violations).sum();
        assert_eq!(dropped + violations, outcome.counters.dropped);
        (dropped, violations)
    };
    let (dropped, violations) = run(WatchdogAction::Drop);
    assert!(dropped > 0 && violations == 0, "{dropped} {violations}");
    let (dropped, _) = run(WatchdogAction::Forward);
    assert_eq!(dropped, 0);
}

/// The same switches, and packets that take the shortest way.
#[test]
fn i5_without_a_circle_of_paths_there_is_no_deadlock() {
    let topology = all_joined();
    let sends: Vec<Send> = circle(&topology, 400).iter().map(|s| Send { path: 0, ..*s }).collect();
    let (outcome, _) = run(&topology, config(memory()), &sends, false);
    assert!(outcome.deadlock.is_none());
    assert_eq!(outcome.conservation.received.packets, 6 * 400);
}
