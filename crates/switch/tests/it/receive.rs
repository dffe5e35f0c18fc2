//! The whole receive path of a switch: drawn and altered frames, through every kind of queue. No
//! bytes stop it, none are lost to the count, and what was a whole Trimline datagram still is one
//! when it leaves: marked, trimmed or sent back.
//!
//! `make fuzz` sends ten million (`TRIMLINE_FUZZ`). A failure names its seed;
//! `TRIMLINE_FUZZ_SEED` begins there.

use std::panic::{catch_unwind, resume_unwind};

use endpoint::{Draw, Packet, Purpose};
use queues::{Capacity, CutPayloadSpec, DropTailSpec, NdpSpec, PFabricSpec, QueueSpec};
use trimline_switch::{Counters, Switch};
use units::{Dur, Time};
use wire::frame::{Frame, FrameRepr};
use wire::shim::{Datagram, ShimRepr, seal};

use crate::replayed::{HOSTS, SWITCH, config, frame, packet, star};

/// Frames in all, unless `TRIMLINE_FUZZ` says how many.
const FRAMES: u64 = 40_000;
/// To one switch.
const RUN: u64 = 1_000;
/// Before a datagram: Ethernet, IPv4, UDP.
const HEADERS: usize = 14 + 20 + 8;

/// The first byte of the source's MAC address, which no switch reads; of frames that are not
/// altered it is this.
const SOURCE_MAC: usize = 6;
const AS_SENT: u8 = 6;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn queues() -> [QueueSpec; 5] {
    let capacity = Capacity::Bytes(20_000);
    [
        NdpSpec::PAPER.into(),
        NdpSpec { header_capacity: Capacity::Bytes(500), ..NdpSpec::PAPER }.into(),
        DropTailSpec { capacity, ecn_threshold: Some(Capacity::Bytes(9_000)) }.into(),
        CutPayloadSpec { capacity, trim_threshold: capacity, trim_to: 64 }.into(),
        PFabricSpec { capacity }.into(),
    ]
}

/// A frame that a host could have sent, or something near it, or noise.
fn bytes(draw: Draw, n: u64, src: u32) -> Vec<u8> {
    let below = |what: &'static str, bound| draw.below(Purpose::new(what), n, bound);
    let mut bytes = frame(&packet(draw, n, src));
    match below("kind", 8) {
        0 => {
            let bit = below("bit", 8 * 200) as usize;
            let at = bit / 8 % bytes.len();
            bytes[at] ^= 1 << (bit % 8);
        }
        // Among the headers, and as if a host had meant it.
        1 => {
            let at = HEADERS + below("field", 88) as usize;
            bytes[at] = below("value", 256) as u8;
            let lengths = usize::from(bytes[HEADERS + 22]) <= 64
                && matches!(bytes[HEADERS + 23], 0 | 32)
                && bytes.len() >= HEADERS + 88 + 32 + 64;
            if lengths {
                seal(&mut bytes[HEADERS..], None);
            }
        }
        2 => bytes.truncate(below("cut", bytes.len() as u64 + 1) as usize),
        3 => bytes.resize(bytes.len() + below("more", 100) as usize, 1),
        4 => {
            let len = below("len", 120) as usize;
            bytes = (0..len as u64)
                .map(|at| draw.bits(Purpose::new("noise"), n << 8 | at) as u8)
                .collect();
            // ARP, or IPv4 of anything.
            if let Some(kind) = bytes.get_mut(12..15) {
                kind.copy_from_slice(&[8, if below("arp", 2) == 0 { 6 } else { 0 }, 0x45]);
            }
        }
        _ => bytes[SOURCE_MAC] = AS_SENT,
    }
    bytes
}

/// Whether a host would take the datagram in `frame`: with its payload, or with none if that was
/// cut.
fn is_whole(frame: &[u8]) -> bool {
    let frame = Frame::new_checked(frame).unwrap();
    assert!(frame.udp().is_some() && FrameRepr::parse(&frame).is_ok());
    Datagram::new_checked(frame.body()).is_ok_and(|datagram| {
        let pkt = Packet::from_shim(&ShimRepr::parse(&datagram), datagram.header());
        pkt.payload_len() as usize == datagram.payload().len()
    })
}

/// What became of frames: of all ports together.
fn run(seed: u64) -> Counters {
    let queues = queues();
    let draw = Draw::new(seed, Purpose::new("frames"), 0);
    let config = config(queues[seed as usize % queues.len()].clone());
    let mut switch = Switch::new(&star(), &config, SWITCH).unwrap();
    let mut now = Time::ZERO + Dur::from_us(1);
    let (mut whole, mut left) = (0, 0);
    for n in 0..RUN {
        let src = draw.below(Purpose::new("src"), n, HOSTS.into()) as u32;
        let burst = draw.below(Purpose::new("burst"), n, 20) > 0;
        now += if burst { Dur::from_us(4) } else { Dur::from_us(800) };
        let bytes = bytes(draw, n, src);
        whole += u64::from(bytes.get(SOURCE_MAC) == Some(&AS_SENT));
        switch.arrive(now, src as usize, &bytes);
        // The last one empties the queues.
        let until = if n + 1 == RUN { Dur::from_ms(1_000) } else { Dur::from_us(30) };
        switch.advance(now + until);
        switch.departures(|_, _, frame| {
            // What is sent back has its addresses changed.
            if frame[SOURCE_MAC] == AS_SENT || frame[0] == AS_SENT {
                left += 1;
                assert!(is_whole(frame), "a datagram was whole, and is no more");
            }
        });
    }
    assert!(0 < left && left <= whole, "{left} whole datagrams of {whole}");
    assert_eq!(switch.held(), 0, "frames stayed in the switch");
    let mut all = Counters::default();
    for c in switch.counters() {
        all.received += c.received;
        all.unknown += c.unknown;
        all.lost += c.lost;
        all.dropped += c.dropped;
        all.trimmed += c.trimmed;
        all.bounced += c.bounced;
        all.marked += c.marked;
        all.sent += c.sent;
        all.damaged += c.damaged;
    }
    assert_eq!(all.received, RUN);
    assert_eq!(all.received, all.sent + all.unknown + all.lost + all.dropped + all.damaged);
    all
}

#[test]
fn no_frame_stops_a_switch_and_all_are_counted() {
    let first = number("TRIMLINE_FUZZ_SEED").unwrap_or(0);
    let runs = number("TRIMLINE_FUZZ").unwrap_or(FRAMES).div_ceil(RUN);
    let mut all = Counters::default();
    for seed in first..first + runs {
        let ran = catch_unwind(|| run(seed)).unwrap_or_else(|panic| {
            println!("TRIMLINE_FUZZ_SEED={seed}");
            resume_unwind(panic)
        });
        all.received += ran.received;
        all.unknown += ran.unknown;
        all.dropped += ran.dropped;
        all.trimmed += ran.trimmed;
        all.bounced += ran.bounced;
        all.marked += ran.marked;
        all.sent += ran.sent;
        all.damaged += ran.damaged;
    }
    println!("{all:?}");
    let each = [all.unknown, all.dropped, all.trimmed, all.bounced, all.marked, all.sent];
    assert!(each.into_iter().all(|count| count > 0), "something was never reached");
}
