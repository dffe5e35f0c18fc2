//! Links that are down, slow or lossy for a while.

use std::ops::ControlFlow;

use endpoint::{App, AppCx, Drop, Endpoint, Observer, Packet, PacketEvent};
use trimline_fabric::{
    Config, Departures, Events, Fault, FaultAction, Node, Routing, Sim, Threads, Tier, Topology,
};
use units::{Dur, HostId, Rate, Time};

use super::blast::{Blast, LINK, config, drop_tail, ndp, refusal, run, shapes, shared};

const US: u64 = 1_000_000;

fn during(from_us: u64, to_us: u64, link: u32, action: FaultAction) -> Fault {
    Fault { until: Time(to_us * US), ..Fault::new(Time(from_us * US), link, action) }
}

/// Every kind of fault, on links of every tier, some at the same time.
fn all_kinds(topology: &Topology) -> Vec<Fault> {
    let links = topology.links().len() as u32;
    let action = |n: u32| match n % 5 {
        0 => FaultAction::Down,
        1 => FaultAction::Rate(Rate(1_000_000_000)),
        2 => FaultAction::Loss(0.3),
        3 => FaultAction::Rate(Rate(39_000_000_000)),
        _ => FaultAction::Loss(0.01),
    };
    let fault = |n: u32| {
        let from = u64::from(n) % 7 * 5;
        let announced = n.is_multiple_of(3);
        Fault { announced, ..during(from, from + 20, n * 5 % links, action(n)) }
    };
    (0..links).map(fault).collect()
}

/// Departures with and without events, event queues and threads agree, for links whose rate changes
/// while packets wait.
#[test]
fn any_fault_is_the_same_on_every_way_through_the_engine() {
    for topology in shapes().into_iter().chain([Topology::fat_tree(6, 1, LINK).unwrap()]) {
        let unshared = [ndp(4, 640), drop_tail()].map(|queue| (queue, None));
        for (seed, (queue, buffer)) in (1..).zip(unshared.into_iter().chain(shared())) {
            let faults = all_kinds(&topology);
            let routing = if seed == 1 { Routing::Source } else { Routing::PacketRandom };
            let base = Config { faults, queue, buffer, routing, ..config(seed) };
            let reference = run(&topology, base.clone(), 6, 30_000);
            assert!(reference.counters.dropped > 0);
            for (events, departures, threads) in [
                (Events::Wheel, Departures::Eager, 1),
                (Events::Heap, Departures::Lazy, 1),
                (Events::Wheel, Departures::Lazy, 2),
                (Events::Wheel, Departures::Lazy, 3),
                (Events::Heap, Departures::Eager, 8),
            ] {
                let other =
                    Config { events, departures, threads: Threads::Fixed(threads), ..base.clone() };
                let other = run(&topology, other, 6, 30_000);
                assert_eq!(other.digest, reference.digest, "{events:?} {departures:?} {threads}");
                assert_eq!(other.links, reference.links);
                assert_eq!(other.samples, reference.samples);
                assert_eq!(other.counters, reference.counters);
                assert_eq!(other.buffers, reference.buffers);
                assert_eq!((other.events, other.now), (reference.events, reference.now));
            }
        }
    }
}

/// What arrives at host 1, or is lost on its link: when and why.
struct Watch(u32, Vec<(Time, Option<Drop>)>);

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        if link == self.0 && pkt.dst == HostId(1) {
            match event {
                PacketEvent::Arrived => self.1.push((at, None)),
                PacketEvent::Dropped(why) => self.1.push((at, Some(why))),
                _ => {}
            }
        }
    }
}

/// Host 0 sends `packets` full packets to host 1 of a star, whose link has these faults.
fn one_burst(
    packets: u64,
    faults: impl Fn(u32) -> Vec<Fault>,
    departures: Departures,
) -> Vec<(Time, Option<Drop>)> {
    struct Burst(u64);
    impl App for Burst {
        fn on_start(&mut self, cx: &mut AppCx<'_>) {
            if cx.me.0 == 0 {
                cx.submit(HostId(1), self.0);
            }
        }
    }
    let topology = Topology::star(2, LINK).unwrap().with_mtu(1064);
    let link = topology.find_link(Node::Switch(Tier::Tor, 0), Node::Host(1)).unwrap();
    let endpoints = (0..2).map(|_| Box::new(Blast::default()) as Box<dyn Endpoint>).collect();
    let apps = (0..2).map(|_| Box::new(Burst(packets * 1000)) as Box<dyn App>).collect();
    let queue = ndp(1000, 72_000);
    let limit = Time(100_000 * US);
    let config = Config { faults: faults(link), queue, departures, limit, ..config(1) };
    let mut watch = Watch(link, Vec::new());
    let sim = Sim::new(topology, config, endpoints, apps, &mut watch).unwrap();
    sim.run(&mut |_| ControlFlow::Continue(())).unwrap();
    watch.1
}

/// By hand: a packet takes 851.2 ns on a link of 10 Gb/s and 8.512 us at a tenth of it. The first
/// comes to the switch at 1.8512 us and departs at 2.7024 us.
#[test]
fn the_packet_in_service_finishes_at_the_old_rate() {
    const FAST: u64 = 851_200;
    let first = FAST + US;
    let tenth = FaultAction::Rate(Rate(1_000_000_000));
    for departures in [Departures::Lazy, Departures::Eager] {
        let arrivals = |from: u64, until: u64| {
            let slow = |link| {
                let fault = Fault::new(Time(from), link, tenth);
                vec![Fault { until: Time(until), ..fault }]
            };
            let seen = one_burst(5, slow, departures);
            let departed = |(at, lost): &(Time, Option<Drop>)| {
                assert_eq!(*lost, None);
                at.0 - US - first
            };
            seen.iter().map(departed).collect::<Vec<u64>>()
        };
        // Within the second packet, until within the fourth.
        let by_hand = [FAST, 2 * FAST, 12 * FAST, 22 * FAST, 23 * FAST];
        assert_eq!(arrivals(first + FAST + 1, first + 12 * FAST + 1), by_hand);
        // At the instant at which the first departs: the second is slow already.
        assert_eq!(arrivals(first + FAST, first + 3 * FAST)[..3], [FAST, 11 * FAST, 12 * FAST]);
    }
}

#[test]
fn a_lossy_link_loses_its_share_and_a_dead_one_everything() {
    let lossy = |share| move |link| vec![Fault::new(Time(0), link, FaultAction::Loss(share))];
    let seen = one_burst(20_000, lossy(0.1), Departures::Lazy);
    let lost = seen.iter().filter(|(_, why)| *why == Some(Drop::Lossy)).count();
    // The standard deviation of 2000 is 42; five of them.
    assert!(seen.len() > 19_000 && lost.abs_diff(seen.len() / 10) < 210, "{lost}");
    let gap = |(_, why): &(Time, Option<Drop>)| why.is_some();
    let pairs = seen.windows(2).filter(|pair| gap(&pair[0]) && gap(&pair[1])).count();
    // Independent: 200 times two in a row.
    assert!((130..270).contains(&pairs), "{pairs}");
    let down = |link| vec![during(5, 9, link, FaultAction::Down)];
    for (at, why) in one_burst(20, down, Departures::Lazy) {
        let dead = (5 * US..9 * US).contains(&at.0);
        assert_eq!(why, dead.then_some(Drop::Dead), "{at}");
    }
    assert!(one_burst(20, lossy(0.0), Departures::Lazy).iter().all(|(_, why)| why.is_none()));
}

/// Who announces that a link is slow has it avoided, and brought back.
#[test]
fn an_announced_fault_is_avoided_after_the_news() {
    let topology = Topology::leaf_spine(2, 2, 2, LINK, LINK).unwrap();
    let link = topology.find_link(Node::Switch(Tier::Tor, 0), Node::Switch(Tier::Agg, 1)).unwrap();
    let slow = during(0, 40, link, FaultAction::Rate(Rate(1_000_000_000)));
    let bytes = |announced| {
        let faults = vec![Fault { announced, ..slow }];
        let routing = Routing::PacketRandom;
        let queue = ndp(1000, 72_000);
        let config = Config { faults, routing, queue, reroute_after: Dur(1), ..config(5) };
        run(&topology, config, 4, 50_000).links[link as usize].bytes
    };
    let (avoided, unheard_of) = (bytes(true), bytes(false));
    assert!(avoided > 0 && 10 * avoided < 9 * unheard_of, "{avoided} of {unheard_of}");
}

#[test]
fn impossible_faults_are_refused() {
    let impossible =
        [FaultAction::Rate(Rate(0)), FaultAction::Loss(1.5), FaultAction::Loss(f64::NAN)];
    let all = impossible.map(|action| Fault::new(Time(1), 0, action));
    for fault in all.into_iter().chain([Fault::new(Time(1), 99, FaultAction::Down)]) {
        let why = refusal(Config { faults: vec![fault], ..config(1) });
        assert!(why.starts_with("a fault of link"), "{why}");
    }
}
