//! Who suffers under a pause: those who share the class, and nobody else.
//!
//! Hosts 0 and 1 - tor 0 - tor 1 - hosts 2 and 3, all at 10 Gb/s, but 2.5 Gb/s to host 2.

use queues::{Capacity, DropTailSpec, PfcBufferSpec, QueueSpec, Threshold};
use trimline_fabric::{Config, LinkSpec, Node, Tier, Topology};
use units::{Rate, Time};

use super::script::{LINK, Log, Send, config, memory, ns, run, send};

const SLOW: Rate = Rate(2_500_000_000);

fn dumbbell() -> (Topology, [u32; 2]) {
    let mut dumbbell = Topology::dumbbell(2, 2, LINK, LINK).unwrap();
    let last = [2, 3]
        .map(|host| dumbbell.find_link(Node::Switch(Tier::Tor, 1), Node::Host(host)).unwrap());
    dumbbell.set_link(last[0], LinkSpec { rate: SLOW, ..LINK });
    (dumbbell, last)
}

/// When packets have arrived over `link`.
fn arrivals(log: &Log, link: u32) -> Vec<Time> {
    log.packets.iter().filter(|(_, on, _)| *on == link).map(|(at, ..)| *at).collect()
}

/// How many packets came to host 3 while a hundred came to host 2.
fn while_a_hundred(config: Config, sends: &[Send], aware: bool) -> usize {
    let (dumbbell, [slow, quick]) = dumbbell();
    let (_, log) = run(&dumbbell, config, sends, aware);
    let hundred = arrivals(&log, slow)[99];
    arrivals(&log, quick).iter().filter(|&&at| at <= hundred).count()
}

/// Both classes of the test.
fn two_classes() -> PfcBufferSpec {
    PfcBufferSpec { lossless: 0b11, ..memory() }
}

/// Host 1's packets to host 3 go over no slow link. But tor 1 pauses tor 0 for those to host 2,
/// which wait in between: they get no more than these (head-of-line blocking). With room for all of
/// them at tor 1, they get half of the trunk.
#[test]
fn a_victim_behind_a_pause() {
    let sends = [send(0, 2, 1000), send(1, 3, 1000)];
    let lossless = while_a_hundred(config(memory()), &sends, false);
    assert!((95..=115).contains(&lossless), "{lossless}");
    let capacity = Capacity::Bytes(4_000_000);
    let queue = QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None });
    let roomy = while_a_hundred(Config { queue, ..config(memory()) }, &sends, false);
    assert!((195..=215).contains(&roomy), "{roomy}");
}

/// In a class of its own, served first, it takes what it takes alone, and perhaps a packet that is
/// in service when the first of it comes.
#[test]
fn another_class_is_not_paused() {
    let (dumbbell, [_, quick]) = dumbbell();
    let sends = [send(0, 2, 200), Send { class: 1, ..send(1, 3, 200) }];
    let (outcome, log) = run(&dumbbell, config(two_classes()), &sends, false);
    let alone = 200 * 8_512 + 2 * 8_512 + 3 * 10_000;
    let last = *arrivals(&log, quick).last().unwrap();
    assert!((ns(alone)..=ns(alone + 8_512)).contains(&last), "{last}");
    assert!(log.frames.len() > 20);
    assert!(log.frames.iter().all(|(_, _, frame)| frame.of(1).is_none()));
    assert_eq!(outcome.counters.dropped, 0);
}

/// A host that sends both classes, by turns if it may. An endpoint that looks at which classes are
/// open sends the other one during a pause; one that does not has a packet waiting in the
/// interface, and nothing leaves.
#[test]
fn a_paused_host_sends_what_may_leave() {
    let sends = [Send { class: 1, ..send(0, 2, 1000) }, send(0, 3, 1000)];
    let unaware = while_a_hundred(config(two_classes()), &sends, false);
    assert!((95..=115).contains(&unaware), "{unaware}");
    let aware = while_a_hundred(config(two_classes()), &sends, true);
    // Most of the rest of the link, 7.5 Gb/s of 10: while both are open, tor 0 stores some of what
    // is paused there.
    assert!((230..=310).contains(&aware), "{aware}");
}

/// A class that is not lossless is lost at its threshold, is never paused, and takes nothing of the
/// others' headroom.
#[test]
fn a_lossy_class_is_lost_and_not_paused() {
    let (dumbbell, [slow, _]) = dumbbell();
    let sends = [send(0, 2, 500), Send { class: 3, ..send(1, 2, 500) }];
    let (outcome, log) = run(&dumbbell, config(memory()), &sends, false);
    let [_, tor] = outcome.memories[..] else { panic!("two switches") };
    assert!(tor.refused > 100 && tor.violations == 0, "{tor:?}");
    assert_eq!(outcome.counters.dropped, tor.refused + outcome.memories[0].refused);
    assert!(log.frames.iter().all(|(_, _, frame)| frame.classes == 1));
    let came = |class| {
        let class =
            move |&&(_, on, pkt): &&(Time, u32, endpoint::Packet)| on == slow && pkt.class == class;
        log.packets.iter().filter(class).count()
    };
    assert_eq!(came(0), 500);
    assert_eq!(came(3) as u64, 500 - outcome.counters.dropped);
}

/// The control class is neither counted nor paused, whatever it fills (specs/rdma.md#1).
#[test]
fn the_control_class_is_not_paused() {
    let (dumbbell, [slow, _]) = dumbbell();
    let none = PfcBufferSpec { threshold: Threshold::Static(0), lossless: 1, ..memory() };
    let (outcome, log) =
        run(&dumbbell, config(none), &[Send { class: 7, ..send(0, 2, 300) }], false);
    assert_eq!((arrivals(&log, slow).len(), log.frames.len()), (300, 0));
    assert_eq!(outcome.memories[1].max_bytes, 0);
}
