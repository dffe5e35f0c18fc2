//! A line of two switches, computed by hand (specs/rdma.md#1,2,I3,I4).
//!
//! Host 0 - tor 0 - tor 1 - host 1; 10 Gb/s and 1 us each, but 5 Gb/s from tor 1 to host 1. A
//! packet takes 851.2 ns, there 1702.4 ns; a frame 51.2 ns. Each switch takes two packets below its
//! threshold and pauses for the third.

use endpoint::Packet;
use trimline_fabric::{End, Node, Outcome, Tier, Topology};
use units::{Dur, Rate, Time};
use wire::pfc;

use super::script::{LINK, Log, PACKET, config, memory, ns, run, send};

const TOR_0: Node = Node::Switch(Tier::Tor, 0);
const TOR_1: Node = Node::Switch(Tier::Tor, 1);

fn line() -> Topology {
    let mut line = Topology::dumbbell(1, 1, LINK, LINK).unwrap();
    let last = link(&line, TOR_1, Node::Host(1));
    line.set_link(last, trimline_fabric::LinkSpec { rate: Rate(5_000_000_000), ..LINK });
    line
}

fn link(topology: &Topology, from: Node, to: Node) -> u32 {
    topology.find_link(from, to).unwrap()
}

/// Frames over `link`: when they arrive, and for how many quanta they stop class 0.
fn frames(log: &Log, link: u32) -> Vec<(Time, u16)> {
    let frames = log.frames.iter().filter(|(_, on, _)| *on == link);
    frames.map(|(at, _, frame)| (*at, frame.of(0).unwrap())).collect()
}

/// When the packets over `link` of which the n-th is the first began to leave.
fn starts(log: &Log, link: u32, first: usize) -> Vec<Time> {
    let arrivals = log.packets.iter().filter(|(_, on, _)| *on == link).map(|(at, ..)| *at);
    arrivals.skip(first).map(|at| Time(at.0 - 1_000_000 - 851_200)).collect()
}

fn fourteen() -> (Outcome, Log, Topology) {
    let line = line();
    let (outcome, log) = run(&line, config(memory()), &[send(0, 1, 14)], false);
    (outcome, log, line)
}

/// The first packet is in tor 1 after two hops, at 3702.4; every 851.2 ns another one comes, every
/// 1702.4 ns one is gone, a departure before an arrival at the same time. The fourth, at 6256.0, is
/// the third there: XOFF. It is there at 7307.2. Tor 0 has begun its seventh packet at 6958.4 and
/// finishes it. So packets 5, 6 and 7 come after XOFF. All but one of the seven have left at
/// 13916.8: XON, there at 14968.0.
#[test]
fn i3_i4_a_pause_by_hand() {
    let (outcome, log, line) = fourteen();
    let (there, back) = (link(&line, TOR_0, TOR_1), link(&line, TOR_1, TOR_0));
    let said = frames(&log, back);
    assert_eq!(said[..2], [(ns(73_072), u16::MAX), (ns(149_680), 0)]);
    assert_eq!(starts(&log, there, 6)[..2], [ns(69_584), ns(149_680)], "the 7th and the 8th");
    let after_xoff =
        |(at, on, _): &&(Time, u32, Packet)| *on == there && *at > ns(62_560) && *at < ns(149_680);
    let bytes = log.packets.iter().filter(after_xoff).count() as u64 * u64::from(PACKET);
    assert_eq!(bytes, 3 * u64::from(PACKET));
    // The fourth is in the headroom, too, and one of the four has left when the seventh comes.
    assert_eq!(outcome.memories[1].max_headroom, 2 * u32::from(PACKET));
    let stats = outcome.links[there as usize].pfc;
    assert!(stats.longest >= Dur(7_660_800), "{stats:?}");
}

/// Tor 0 fills from 7809.6 on, when the eighth packet comes and stays; the tenth comes at 9512.0:
/// XOFF, which reaches the host at 10563.2, in the middle of its thirteenth packet. From 14968.0 on
/// tor 0 sends again; five of its six packets have left at 19224.0: XON, there at 20275.2.
#[test]
fn i3_a_pause_goes_on_to_the_host() {
    let (outcome, log, line) = fourteen();
    let (there, back) = (link(&line, Node::Host(0), TOR_0), link(&line, TOR_0, Node::Host(0)));
    assert_eq!(frames(&log, back), [(ns(105_632), u16::MAX), (ns(202_752), 0)]);
    assert_eq!(starts(&log, there, 12), [ns(102_144), ns(202_752)], "the 13th and the 14th");
    let stats = outcome.links[there as usize].pfc;
    assert_eq!((stats.pauses, stats.resumes), (1, 1));
    assert_eq!((stats.paused, stats.longest), (Dur(9_712_000), Dur(9_712_000)));
    assert_eq!(outcome.links[back as usize].pfc.frames, 2);
    assert_eq!(outcome.links[back as usize].bytes, 2 * 64, "frames take the wire");
    // For the load, and for the pause that the load has made.
    let trunk = link(&line, TOR_0, TOR_1);
    assert_eq!((outcome.links[trunk as usize].pfc.depth, stats.depth), (1, 2));
}

#[test]
fn everything_comes_and_every_pause_is_over() {
    let (outcome, log, line) = fourteen();
    let last = link(&line, TOR_1, Node::Host(1));
    assert_eq!(log.packets.iter().filter(|(_, on, _)| *on == last).count(), 14);
    assert_eq!(outcome.end, End::Idle);
    assert!(outcome.deadlock.is_none());
    assert_eq!(outcome.conservation.received.packets, 14, "frames are no packets");
    for stats in outcome.links.iter().map(|link| link.pfc) {
        assert_eq!(stats.pauses, stats.resumes);
    }
    let held = outcome.samples.iter().map(|sample| sample.queue_bytes.total).max();
    assert!(held >= Some(8 * u64::from(PACKET)), "what is paused is sampled: {held:?}");
}

/// The frame waits for the packet in service, which leaves the other way, and goes before those
/// that wait.
#[test]
fn a_frame_waits_for_one_packet_only() {
    let line = line();
    let (there, back) = (link(&line, TOR_0, TOR_1), link(&line, TOR_1, TOR_0));
    // Back to back over tor 1, the first packet at 1851.2.
    let sends = [send(0, 1, 14), send(1, 0, 40)];
    let (_, log) = run(&line, config(memory()), &sends, false);
    // Packets the other way begin at 1851.2 + n * 851.2; the sixth is in service at 6256.0 and ends
    // at 6958.4.
    let (at, _) = frames(&log, back)[0];
    assert_eq!(at, ns(69_584 + 512 + 10_000));
    // The one behind it begins after the frame.
    assert_eq!(starts(&log, back, 6)[0], ns(69_584 + 512));
    // At 8009.6 tor 0 is in the middle of its eighth packet.
    assert!(starts(&log, there, 7)[0] < at && starts(&log, there, 8)[0] > at);
}

/// A frame names its time: here 4 us are 79 quanta of 51.2 ns. It is said again after half of it,
/// and the pause goes on.
#[test]
fn a_timed_pause_is_said_again_until_it_may_end() {
    let line = line();
    let (there, back) = (link(&line, TOR_0, TOR_1), link(&line, TOR_1, TOR_0));
    let pause = trimline_fabric::Pause::Timed(Dur::from_us(4));
    let pfc = trimline_fabric::PfcSpec { pause, ..Default::default() };
    let timed = trimline_fabric::Config { pfc, ..config(memory()) };
    let (outcome, log) = run(&line, timed, &[send(0, 1, 14)], false);
    // 79 quanta are 4044.8 ns: again 2022.4 ns after the one before, until XON at 13916.8.
    let said = frames(&log, back);
    let (first, again) = (73_072, 20_224);
    let stops = (0..4).map(|n| (ns(first + n * again), 79));
    assert!(said[..4].iter().copied().eq(stops), "{said:?}");
    assert_eq!(said[4], (ns(149_680), 0));
    assert_eq!(starts(&log, there, 7)[0], ns(149_680));
    let [plain, timed] = [fourteen().0, outcome].map(|outcome| outcome.links[there as usize].pfc);
    assert_eq!((plain.pauses, plain.paused), (timed.pauses, timed.paused), "no more pauses");
    assert_eq!(pfc::WIRE_LEN, 64);
}
