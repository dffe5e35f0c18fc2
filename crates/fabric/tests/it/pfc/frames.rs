//! What holds of every run: nothing is lost while there is headroom, and stops and resumes
//! alternate. And what becomes of frames that are lost themselves.

use std::collections::BTreeMap;

use endpoint::{Draw, Purpose};
use queues::{Headroom, PfcBufferSpec, Threshold};
use trimline_fabric::{
    Config, Fault, FaultAction, LinkSpec, Node, Outcome, Pause, PfcSpec, Tier, Topology,
};
use units::{Dur, Rate, Time};

use super::script::{LINK, Log, Send, config, memory, run, run_counting_steps, send};

const TEST: Purpose = Purpose::new("test");

/// Numbers by a seed.
struct Dice(Draw, u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.1 += 1;
        self.0.below(TEST, self.1, bound)
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

/// Links of any rate and length, and hosts that overload some of them.
fn drawn(seed: u64) -> (Topology, PfcBufferSpec, Vec<Send>, Dice) {
    let mut dice = Dice(Draw::new(seed, TEST, 0), 0);
    let mut topology = match dice.below(3) {
        0 => Topology::leaf_spine(3, 2, 3, LINK, LINK).unwrap(),
        1 => Topology::fat_tree(4, 1, LINK).unwrap(),
        _ => Topology::dumbbell(4, 3, LINK, LINK).unwrap(),
    };
    topology = topology.with_switch_latency(Dur::from_ns(dice.pick(&[0, 300])));
    for link in 0..topology.links().len() as u32 {
        let rate = Rate(1_000_000_000 * dice.pick(&[1, 7, 10, 25]));
        topology.set_link(link, LinkSpec { rate, delay: Dur::from_ns(dice.below(5_000)) });
    }
    let threshold = match dice.below(2) {
        0 => Threshold::Static(dice.pick(&[0, 2_000, 20_000])),
        _ => Threshold::Dynamic { alpha: dice.pick(&[0.01, 0.125, 1.0]), with_rate: true },
    };
    let reserve = dice.pick(&[0, 1_500]);
    let spec = PfcBufferSpec { threshold, reserve, lossless: 0b11, size: 2_000_000, ..memory() };
    let hosts = u64::from(topology.hosts());
    let sends = (0..30).map(|_| {
        let (src, away) = (dice.below(hosts), 1 + dice.below(hosts - 1));
        // Most to a few.
        let dst = if away % 2 == 0 { (src + away) % hosts } else { u64::from(src == 0) };
        let from = Time(dice.below(100_000_000));
        let class = dice.pick(&[0, 0, 1, 7]);
        let count = 1 + dice.below(120) as u32;
        Send { src: src as u32, dst: dst as u32, class, path: dice.below(2) as u32, count, from }
    });
    let sends = sends.collect();
    (topology, spec, sends, dice)
}

fn check_alternation(log: &Log, seed: u64) {
    let mut stopped = BTreeMap::new();
    for (at, link, frame) in &log.frames {
        for class in 0..8 {
            let Some(quanta) = frame.of(class) else { continue };
            let before = stopped.insert((*link, class), quanta > 0).unwrap_or(false);
            assert_ne!(before, quanta > 0, "seed {seed}: at {at} over link {link}");
        }
    }
    assert!(stopped.values().all(|stopped| !stopped), "seed {seed}: an XOFF without its XON");
}

/// Headroom by the rule of thumb is enough, whatever links there are and whatever comes.
/// specs/rdma.md#I1,I3,I4.
#[test]
fn i1_i3_i4_nothing_is_lost_and_stops_and_resumes_alternate() {
    let mut paused = 0;
    for seed in 0..60 {
        let (topology, spec, sends, mut dice) = drawn(seed);
        let (outcome, log) = run(&topology, config(spec.clone()), &sends, dice.below(2) == 0);
        let sent: u32 = sends.iter().map(|send| send.count).sum();
        assert_eq!(outcome.conservation.received.packets, u64::from(sent), "seed {seed}");
        assert!(outcome.memories.iter().all(|memory| memory.violations == 0), "seed {seed}");
        assert!(outcome.deadlock.is_none(), "seed {seed}: {:?}", outcome.deadlock);
        check_alternation(&log, seed);
        paused += outcome.links.iter().map(|link| link.pfc.pauses).sum::<u64>();
        // I1: and without it, there are losses where there were pauses before the last hop.
        let none = PfcBufferSpec { headroom: Headroom::Bytes(0), ..spec };
        let (bare, _) = run(&topology, config(none), &sends, false);
        let violations: u64 = bare.memories.iter().map(|memory| memory.violations).sum();
        assert_eq!(bare.counters.dropped, violations, "seed {seed}");
        assert!(
            violations > 0 || outcome.memories.iter().all(|m| m.max_headroom == 0),
            "seed {seed}"
        );
    }
    assert!(paused > 1000, "{paused}");
}

/// Tor 1's frames to tor 0 are lost from some time on.
fn lossy_line(lost_from: u64, pause: Pause) -> Outcome {
    let fault = |link| Fault::new(Time(lost_from), link, FaultAction::Loss(1.0));
    faulty_line(fault, pause, &[send(0, 1, 60)]).0
}

/// Something is wrong with the link from tor 1 to tor 0; see `line`, whose XOFF is at 6256 ns and
/// whose XON is at 13917 ns. Also how many steps of the grid it takes.
fn faulty_line(fault: impl Fn(u32) -> Fault, pause: Pause, sends: &[Send]) -> (Outcome, Log, u32) {
    let mut line = Topology::dumbbell(1, 1, LINK, LINK).unwrap();
    let tor = |n| Node::Switch(Tier::Tor, n);
    let last = line.find_link(tor(1), Node::Host(1)).unwrap();
    line.set_link(last, LinkSpec { rate: Rate(5_000_000_000), ..LINK });
    let back = line.find_link(tor(1), tor(0)).unwrap();
    let faults = vec![fault(back)];
    let deadlock_after = Some(Dur::from_us(50));
    let pfc = PfcSpec { pause, deadlock_after, ..PfcSpec::default() };
    run_counting_steps(&line, Config { faults, pfc, ..config(memory()) }, sends, false)
}

/// The XOFF has come when the link dies, and no XON can: the pause is over with the link, and what
/// comes now overflows what headroom there is.
#[test]
fn a_dead_link_pauses_nobody() {
    let dead = |link| Fault::new(Time(10_000_000), link, FaultAction::Down);
    let (dead, ..) = faulty_line(dead, Pause::UntilResume, &[send(0, 1, 60)]);
    let received = dead.conservation.received.packets;
    assert_eq!((dead.conservation.in_flight.packets, received + dead.counters.dropped), (0, 60));
    assert!(dead.links.iter().all(|link| link.pfc.pauses == link.pfc.resumes));
}

/// A link that is down for a moment has forgotten the XOFF that came before: it is said again.
#[test]
fn a_link_that_works_again_is_paused_again() {
    let back = |until| {
        let down = move |link| Fault {
            until: Time(until),
            ..Fault::new(Time(10_000_000), link, FaultAction::Down)
        };
        let (outcome, log, _) = faulty_line(down, Pause::UntilResume, &[send(0, 1, 60)]);
        assert_eq!(outcome.conservation.received.packets, 60, "nothing is lost");
        assert!(outcome.links.iter().all(|link| link.pfc.pauses == link.pfc.resumes));
        let mut to_tor =
            log.frames.iter().filter(|(_, link, _)| outcome.links[*link as usize].pfc.frames > 0);
        to_tor.any(|(at, _, frame)| {
            frame.of(0).is_some_and(|quanta| quanta > 0)
                && (Time(until)..Time(until + 2_000_000)).contains(at)
        })
    };
    assert!(back(10_500_000));
}

/// A pause for ever while hosts wait for something far away takes no steps on the way there.
#[test]
fn a_pause_for_ever_takes_no_steps() {
    let lossy = |link| Fault::new(Time(10_000_000), link, FaultAction::Loss(1.0));
    let late = Send { class: 7, from: Time(15_000_000_000), ..send(1, 0, 1) };
    let (outcome, _, steps) = faulty_line(lossy, Pause::UntilResume, &[send(0, 1, 60), late]);
    assert!(
        outcome.now > late.from
            && outcome.links.iter().any(|link| link.pfc.pauses > link.pfc.resumes)
    );
    assert!(steps < 30, "{steps} of 1500");
}

/// When an XON is lost, a pause without end does not end; one for a time does.
#[test]
fn a_lost_xon_matters_only_if_pauses_last_until_it() {
    let lost = lossy_line(10_000_000, Pause::UntilResume);
    assert_eq!(lost.conservation.received.packets, 7, "and nothing more");
    assert!(lost.deadlock.is_none(), "nobody waits in a circle");
    let stuck = lost.links.iter().map(|link| link.pfc).filter(|pfc| pfc.pauses > pfc.resumes);
    let stuck: Vec<_> = stuck.collect();
    // Tor 0 and, because of it, the host.
    let depths = stuck.iter().map(|pfc| pfc.depth);
    assert!(depths.eq([2, 1]));
    let stuck = stuck[1];
    assert_eq!(stuck.longest, lost.now.since(Time(7_307_200)), "up to the end of the run");
    let timed = lossy_line(10_000_000, Pause::Timed(Dur::from_us(5)));
    assert_eq!(timed.conservation.in_flight.packets, 0);
    assert!(timed.conservation.received.packets > 7);
}

/// When an XOFF is lost, the headroom overflows; counted as what it is.
#[test]
fn a_lost_xoff_is_a_violation() {
    let lost = lossy_line(0, Pause::UntilResume);
    let violations: u64 = lost.memories.iter().map(|memory| memory.violations).sum();
    assert!(violations > 0);
    assert_eq!(violations, lost.counters.dropped);
}
