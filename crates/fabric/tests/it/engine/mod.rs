//! The engine on its own, under a transport that only blasts: no feedback, no recovery. What is
//! tested is order, conservation and determinism, on every path through the engine.

mod blast;
mod encoding;
mod faults;

use std::ops::ControlFlow;

use endpoint::{App, AppCx, Cx, Draw, Endpoint, Msg, Packet, Purpose, Submit, Tx, TxPort};
use trimline_fabric::{
    Bcube, Config, Departures, End, Events, Fault, FaultAction, Jellyfish, LinkSpec, Node, Pause,
    PfcSpec, Routing, Sim, Threads, Tier, Topology,
};
use units::{Dur, HostId, Rate, Time, TimerId};

use blast::{
    Blast, LINK, PAYLOAD, Random, TEST, config, drop_tail, fair, fair_red, lossless, ndp, red,
    refusal, run, shapes, shared,
};
use queues::{MarkAt, QueueSpec, SharedBufferSpec};

const ROUTINGS: [Routing; 3] = [Routing::Source, Routing::FlowHash, Routing::PacketRandom];

/// Fabrics whose paths differ in length.
fn graphs() -> Vec<Topology> {
    let jellyfish = Jellyfish {
        switches: 8,
        degree: 3,
        hosts_per_switch: 2,
        seed: 1,
        paths: 8,
        stretch: u32::MAX,
        link: LINK,
    };
    let bcube = Bcube { n: 3, k: 1, stretch: u32::MAX, link: LINK };
    vec![Topology::jellyfish(&jellyfish).unwrap(), Topology::bcube(&bcube).unwrap()]
}

/// The cross-checks of the engine: one digest on every way.
#[test]
fn wheel_heap_lazy_and_eager_agree() {
    let (mut marked, mut refused, mut paused) = (0, 0, 0);
    for (shape, topology) in shapes().into_iter().chain(graphs()).enumerate() {
        for seed in 0..2 {
            let reds = [red(MarkAt::Arrival, None), red(MarkAt::Departure, Some(0.1)), fair_red()];
            let usual = [ndp(4, 640), ndp(8, 72_000), drop_tail(), fair()];
            let unshared = usual.into_iter().chain(reds).map(|queue| (queue, None));
            let lossy = unshared.chain(shared()).map(|queue| (queue, PfcSpec::default()));
            let lossless = lossless().map(|(queue, pfc)| ((queue, None), pfc));
            for (n, ((queue, buffer), pfc)) in lossy.chain(lossless).enumerate() {
                // Every queue meets every routing, over the shapes.
                let routing = ROUTINGS[(shape + seed as usize + n) % ROUTINGS.len()];
                let base = Config { routing, queue, buffer, pfc, ..config(seed) };
                let reference = run(&topology, base.clone(), 4, 30_000);
                assert!(reference.packet_hops > 100);
                marked += reference.counters.marked;
                refused += reference.buffers.iter().map(|b| b.over_threshold).sum::<u64>();
                paused += reference.links.iter().map(|link| link.pfc.pauses).sum::<u64>();
                for (events, departures) in [
                    (Events::Wheel, Departures::Eager),
                    (Events::Heap, Departures::Lazy),
                    (Events::Heap, Departures::Eager),
                ] {
                    let other = Config { events, departures, ..base.clone() };
                    let other = run(&topology, other, 4, 30_000);
                    assert_eq!(other.digest, reference.digest, "{events:?} {departures:?}");
                    assert_eq!(other.links, reference.links);
                    assert_eq!(other.samples, reference.samples);
                    assert_eq!(other.counters, reference.counters);
                    assert_eq!(other.buffers, reference.buffers);
                    assert_eq!(other.memories, reference.memories);
                    assert_eq!(other.deadlock, reference.deadlock);
                }
            }
        }
    }
    assert!(marked > 1000 && refused > 1000 && paused > 1000, "{marked}, {refused}, {paused}");
}

/// However the fabric is cut, the run is the same.
#[test]
fn any_number_of_threads_agrees() {
    let link = |from, to| (Node::Switch(Tier::Agg, from), Node::Switch(Tier::Core, to));
    let more = [Topology::fat_tree(6, 1, LINK).unwrap()].into_iter().chain(graphs());
    for (shape, topology) in shapes().into_iter().chain(more).enumerate() {
        let core = topology.find_link(link(0, 1).0, link(0, 1).1);
        // In a graph any link between switches will do.
        let last = graphs().iter().any(|graph| graph.kind() == topology.kind());
        let last = last.then(|| topology.links().len() as u32 - 1);
        let faults = match core.or(last) {
            Some(link) => vec![
                Fault::new(Time(20_000_000), link, FaultAction::Down),
                Fault::new(Time(60_000_000), link, FaultAction::Up),
            ],
            None => Vec::new(),
        };
        for (seed, routing) in (1..).zip(ROUTINGS) {
            let unshared = [ndp(4, 640), drop_tail(), fair(), red(MarkAt::Departure, None)];
            let lossy = unshared.map(|queue| (queue, None)).into_iter().chain(shared());
            let lossy = lossy.map(|queue| (queue, PfcSpec::default()));
            let lossless = lossless().map(|(queue, pfc)| ((queue, None), pfc));
            let all = lossy.chain(lossless).enumerate();
            // Every queue meets every routing, over the shapes.
            for (n, ((queue, buffer), pfc)) in
                all.filter(|(n, _)| (n + shape) % 3 != seed as usize % 3)
            {
                let window = (Time(7_000_000), Time(90_000_000));
                let faults = faults.clone();
                let base = Config { routing, queue, buffer, pfc, faults, window, ..config(seed) };
                let one = run(&topology, base.clone(), 6, 30_000);
                // And all four numbers.
                for threads in [[2, 8], [3, 4]][(n + seed as usize) % 2] {
                    let many = run(
                        &topology,
                        Config { threads: Threads::Fixed(threads), ..base.clone() },
                        6,
                        30_000,
                    );
                    assert_eq!(many.digest, one.digest, "{} in {threads}", topology.kind());
                    assert_eq!(many.links, one.links);
                    assert_eq!(many.samples, one.samples);
                    assert_eq!(many.counters, one.counters);
                    assert_eq!(many.buffers, one.buffers);
                    assert_eq!(many.memories, one.memories);
                    assert_eq!(many.deadlock, one.deadlock);
                    assert_eq!((many.events, many.now), (one.events, one.now));
                }
            }
        }
    }
}

/// Where switches send in slots: the same on every way, and nothing leaves within another slot than
/// the one it began in. So it is where what comes within a slot joins queues together.
#[test]
fn slots_agree_on_every_way() {
    for topology in shapes().into_iter().chain(graphs()) {
        let free = run(&topology, Config { queue: drop_tail(), ..config(1) }, 6, 30_000);
        let slots = |ns| topology.clone().with_switch_slot(Some(Dur::from_ns(ns)));
        let base = Config { queue: drop_tail(), ..config(1) };
        // Shorter than a packet on the slowest link; as long, which batches need.
        for topology in [slots(1300), slots(2838).with_slot_heap(true)] {
            let reference = run(&topology, base.clone(), 6, 30_000);
            assert_ne!(reference.digest, free.digest);
            for (events, threads) in [(Events::Heap, 1), (Events::Wheel, 3), (Events::Wheel, 8)] {
                let other = run(
                    &topology,
                    Config { events, threads: Threads::Fixed(threads), ..base.clone() },
                    6,
                    30_000,
                );
                assert_eq!(other.digest, reference.digest, "{events:?}, {threads}");
                assert_eq!(other.links, reference.links);
                assert_eq!(other.counters, reference.counters);
            }
        }
    }
}

/// Batches whose ports do not begin their slots together would depend on how the fabric is cut.
#[test]
fn packets_in_batches_fit_a_slot_and_rates_stay() {
    let heap = |ns| {
        let slots = shapes().remove(0).with_switch_slot(Some(Dur::from_ns(ns)));
        slots.with_slot_heap(true).with_mtu(1064)
    };
    // 1064 B at 10 Gb/s.
    assert!(heap(852).check_slot_heap(&[]).is_ok());
    let why = heap(851).check_slot_heap(&[]).unwrap_err();
    assert!(why.contains("more than a slot"), "{why}");
    assert!(heap(851).with_slot_heap(false).check_slot_heap(&[]).is_ok());
    let rate = Fault::new(Time(1), 3, FaultAction::Rate(Rate(1_000_000_000)));
    assert!(heap(852).check_slot_heap(&[rate]).unwrap_err().contains("changes"));
    let down = Fault::new(Time(1), 3, FaultAction::Down);
    assert!(heap(852).check_slot_heap(&[down]).is_ok());
}

#[test]
fn another_seed_is_another_run_and_sampling_changes_nothing() {
    let topology = Topology::fat_tree(4, 1, LINK).unwrap();
    let digest = |config| run(&topology, config, 4, 30_000).digest;
    assert_eq!(digest(config(1)), digest(config(1)));
    assert_ne!(digest(config(1)), digest(config(2)));
    assert_eq!(digest(config(1)), digest(Config { sample_every: None, ..config(1) }));
}

#[test]
fn a_lone_message_takes_its_ideal_time() {
    let quarter = LinkSpec { rate: Rate(2_500_000_000), delay: Dur(1_000_000) };
    let slow_core = Topology::leaf_spine(2, 4, 2, LINK, quarter).unwrap();
    let bounds = graphs().into_iter().chain([slow_core]).map(|shape| (shape, true));
    for (topology, slow) in shapes().into_iter().map(|shape| (shape, false)).chain(bounds) {
        let topology = topology.with_mtu(1064);
        let hosts = topology.hosts();
        for len in [1, 999, 1000, 1001, 1990, 2001, 2900, 3001, 5500, 54_321] {
            struct Once(u64, u32);
            impl App for Once {
                fn on_start(&mut self, cx: &mut AppCx<'_>) {
                    if cx.me.0 == 0 {
                        cx.submit(HostId(self.1 - 1), self.0);
                    }
                }
            }
            struct Record(Vec<endpoint::MessageRecord>);
            impl endpoint::Observer for Record {
                fn message(&mut self, record: &endpoint::MessageRecord) {
                    self.0.push(*record);
                }
            }
            let endpoints = (0..hosts).map(|_| Box::new(Blast::default()) as Box<dyn Endpoint>);
            let apps = (0..hosts).map(|_| Box::new(Once(len, hosts)) as Box<dyn App>);
            let config = Config { queue: ndp(100, 72_000), ..config(1) };
            let mut seen = Record(Vec::new());
            let sim =
                Sim::new(topology.clone(), config, endpoints.collect(), apps.collect(), &mut seen);
            sim.unwrap().run(&mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(seen.0.len(), 1);
            let (took, ideal) = (seen.0[0].delivered.unwrap().0, seen.0[0].ideal.0);
            let paths = u64::from(endpoint::Routes::paths(&topology, HostId(0), HostId(hosts - 1)));
            if !slow && (len <= paths * PAYLOAD || paths == 1) {
                assert_eq!(took, ideal, "{len} bytes");
            } else if slow {
                assert!(ideal <= took, "{len} bytes: {ideal} {took}");
            } else {
                // The last packet shares its path with an earlier one and may have to wait.
                assert!(ideal <= took && took - ideal <= 1064 * 800, "{len} bytes");
            }
        }
    }
}

#[test]
fn overload_trims_bounces_and_conserves() {
    let topology = Topology::leaf_spine(2, 2, 8, LINK, LINK).unwrap();
    let outcome = run(&topology, Config { queue: ndp(2, 128), ..config(3) }, 8, 100_000);
    let count = outcome.counters;
    assert!(count.trimmed > 0 && count.bounced > 0 && count.dropped > 0, "{count:?}");
    assert!(outcome.conservation.holds());
    assert_eq!(count.trimmed, outcome.conservation.trimmed.packets);
}

/// A dead link loses what crosses it until the news is out; then everybody goes round it.
#[test]
fn after_the_news_of_a_dead_link_nothing_is_lost() {
    let topology = Topology::leaf_spine(2, 2, 2, LINK, LINK).unwrap();
    let dead = topology.find_link(Node::Switch(Tier::Tor, 0), Node::Switch(Tier::Agg, 1)).unwrap();
    let lost = |at: u64, routing| {
        let down = Fault::new(Time(at), dead, FaultAction::Down);
        let queue = ndp(1000, 72_000);
        let config =
            Config { faults: vec![down], routing, queue, reroute_after: Dur(1), ..config(5) };
        run(&topology, config, 4, 50_000).counters.dropped
    };
    assert_eq!(lost(0, Routing::PacketRandom), 0);
    assert_eq!(lost(0, Routing::FlowHash), 0);
    assert!(lost(30_000_000, Routing::PacketRandom) > 0, "what was on the wire is lost");
}

#[test]
fn a_fabric_cut_in_two_is_refused() {
    let mut topology = Topology::leaf_spine(2, 1, 2, LINK, LINK).unwrap();
    let only = topology.find_link(Node::Switch(Tier::Agg, 0), Node::Switch(Tier::Tor, 1)).unwrap();
    topology.fail_link(only);
    let endpoints = (0..4).map(|_| Box::new(Blast::default()) as Box<dyn Endpoint>).collect();
    let apps =
        (0..4).map(|_| Box::new(Random { count: 0, most: 1, hosts: 4, left: 0 }) as Box<dyn App>);
    let error = Sim::new(topology, config(1), endpoints, apps.collect(), &mut ()).err().unwrap();
    assert_eq!(error.to_string(), "the failed links leave no path from host 0 to host 2");
}

#[test]
fn buffers_that_cannot_be_shared_are_refused() {
    let refused = |queue, alpha| {
        let buffer = Some(SharedBufferSpec { size: 30_000, alpha });
        refusal(Config { queue, buffer, ..config(1) })
    };
    for queue in [ndp(4, 640), fair()] {
        assert_eq!(refused(queue, 1.0), "a shared buffer for queues that do more than drop");
    }
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let why = refused(drop_tail(), alpha);
        assert_eq!(why, format!("a shared buffer with an alpha of {alpha}"));
    }
}

#[test]
fn lossless_queues_that_cannot_work_are_refused() {
    let [(queue, pfc), _] = lossless();
    let mixed = Config { queue: queue.clone(), queues_at: vec![(2, drop_tail())], ..config(1) };
    assert_eq!(refusal(mixed), "lossless queues at some ports and others at others");
    let QueueSpec::Lossless(mut spec) = queue.clone() else { panic!("it is") };
    spec.memory.size = 4_000;
    let why = refusal(Config { queue: QueueSpec::Lossless(spec), ..config(1) });
    assert!(why.starts_with("a switch with 2 ports needs 4400 bytes for reserves"), "{why}");
    let paused = |us| {
        let pfc = PfcSpec { pause: Pause::Timed(Dur::from_us(us)), ..pfc };
        refusal(Config { queue: queue.clone(), pfc, ..config(1) })
    };
    assert_eq!(paused(0), "a pause of no time is none");
    // 65535 quanta of 51.2 ns.
    let most = "a frame stops host 0 -> tor 0 for 65535 quanta, 3355392ns, at most; not for 3356us";
    assert_eq!(paused(3_356), most);
}

#[test]
fn a_run_says_why_it_ended() {
    let topology = Topology::star(6, LINK).unwrap();
    let end = |config| run(&topology, config, 4, 30_000).end;
    // The blast does not repair what is trimmed, so something stays open.
    assert_eq!(end(Config { queue: ndp(1, 72_000), ..config(1) }), End::Idle);
    assert_eq!(end(Config { queue: ndp(999, 72_000), ..config(1) }), End::Complete);
    assert_eq!(end(Config { limit: Time(40_000_000), ..config(1) }), End::Limit);
    let crowded = Config { open_limit: 3, queue: ndp(1, 72_000), ..config(1) };
    assert_eq!(end(crowded), End::Backlog);
}

/// Draws differ between hosts even where applications are alike.
#[test]
fn hosts_draw_apart() {
    let draw = |host| Draw::new(1, Purpose::new("application"), host).bits(TEST, 0);
    assert_ne!(draw(0), draw(1));
}

/// An endpoint that never comes to rest is found out, not waited for.
#[test]
fn a_timer_that_is_armed_for_now_for_ever_is_a_violation() {
    struct Circles;
    impl Endpoint for Circles {
        fn on_submit(&mut self, cx: &mut Cx<'_>, _: &Msg) -> Submit {
            cx.fx.arm(TimerId(0), cx.now + Dur(1));
            Submit::Taken
        }
        fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}
        fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
            cx.fx.arm(id, cx.now);
        }
        fn poll_tx(&mut self, _: &mut Cx<'_>, _: TxPort, _: &mut Packet) -> Tx {
            Tx::Idle
        }
    }
    let topology = Topology::star(2, LINK).unwrap();
    let endpoints = (0..2).map(|_| Box::new(Circles) as Box<dyn Endpoint>).collect();
    let app = |_| Box::new(Random { count: 1, most: 9, hosts: 2, left: 0 }) as Box<dyn App>;
    let mut observer = ();
    let sim =
        Sim::new(topology, config(1), endpoints, (0..2).map(app).collect(), &mut observer).unwrap();
    let violation = sim.run(&mut |_| ControlFlow::Continue(())).err().unwrap();
    assert!(violation.to_string().contains("livelock: more than"), "{violation}");
}

/// Neither sampling nor the way events are kept decides when a run ends: its window does.
#[test]
fn a_quiet_fabric_waits_for_the_end_of_the_window() {
    let topology = Topology::star(6, LINK).unwrap();
    let window = (Time(20_000_000), Time(3_000_000_000));
    let base = Config { window, limit: Time(9_000_000_000), queue: ndp(999, 72_000), ..config(1) };
    for sample_every in [None, Some(Dur::from_us(3)), Some(Dur::from_ms(2))] {
        for events in [Events::Wheel, Events::Heap] {
            for departures in [Departures::Lazy, Departures::Eager] {
                let config = Config { sample_every, events, departures, ..base.clone() };
                let outcome = run(&topology, config, 4, 30_000);
                assert_eq!((outcome.end, outcome.now), (End::Complete, window.1));
            }
        }
    }
}

/// An endpoint may arm a timer or count whenever it is polled.
#[test]
fn effects_of_an_idle_poll_do_not_poll_again() {
    struct Fidgety(Blast);
    impl Endpoint for Fidgety {
        fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
            self.0.on_submit(cx, msg)
        }
        fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
            self.0.on_packet(cx, pkt);
        }
        fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
        fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
            cx.fx.arm(TimerId(0), cx.now + Dur::from_us(100));
            cx.fx.count(endpoint::Stat::Rejected);
            self.0.poll_tx(cx, port, slot)
        }
    }
    let topology = Topology::star(2, LINK).unwrap().with_mtu(1064);
    let endpoint = |_| Box::new(Fidgety(Blast::default())) as Box<dyn Endpoint>;
    let app = |_| Box::new(Random { count: 2, most: 9000, hosts: 2, left: 0 }) as Box<dyn App>;
    let (endpoints, apps) = ((0..2).map(endpoint).collect(), (0..2).map(app).collect());
    let mut observer = ();
    let sim = Sim::new(topology, config(1), endpoints, apps, &mut observer).unwrap();
    let outcome = sim.run(&mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(outcome.counters.delivered, 4);
}

/// Slots are made for packets of 64 bytes and more; what is shorter is handled as well.
#[test]
fn packets_shorter_than_slots_were_made_for_change_nothing() {
    /// Sends packets of 1 to 200 bytes, the long ones first.
    struct Dribble(u16);
    impl Endpoint for Dribble {
        fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
            Submit::Taken
        }
        fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}
        fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
        fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
            let Some(left) = self.0.checked_sub(1) else { return Tx::Idle };
            self.0 = left;
            (slot.src, slot.dst) = (cx.me, HostId((cx.me.0 + 3 + u32::from(left) % 5) % 16));
            (slot.wire_len, slot.path) = (1 + left / 4, u32::from(left) % 4);
            Tx::Sent
        }
    }
    impl App for Dribble {
        fn on_start(&mut self, cx: &mut AppCx<'_>) {
            cx.submit(HostId(cx.me.0 ^ 8), 1);
        }
    }
    let topology = Topology::fat_tree(4, 1, LINK).unwrap();
    let run = |events, threads| {
        let limit = Time(Dur::from_us(300).0);
        let config = Config {
            queue: ndp(8, 72_000),
            events,
            threads: Threads::Fixed(threads),
            limit,
            ..config(1)
        };
        let endpoints = (0..16).map(|_| Box::new(Dribble(800)) as Box<dyn Endpoint>).collect();
        let apps = (0..16).map(|_| Box::new(Dribble(0)) as Box<dyn App>).collect();
        let mut observer = ();
        let sim = Sim::new(topology.clone(), config, endpoints, apps, &mut observer).unwrap();
        sim.run(&mut |_| ControlFlow::Continue(())).unwrap()
    };
    let reference = run(Events::Heap, 1);
    assert!(reference.packet_hops > 16 * 800);
    for threads in [1, 2, 3] {
        let other = run(Events::Wheel, threads);
        assert_eq!((other.digest, other.links), (reference.digest, reference.links.clone()));
    }
}
