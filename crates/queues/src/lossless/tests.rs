use endpoint::{Draw, Flags, Purpose};

use super::*;
use crate::{Desc, Disposition, Queue, Unit};

const HOSTS: Rate = Rate(100_000_000_000);
const MTU: u16 = 1_064;
const XOFF: Admit = Admit::Joins { xoff: true };
const JOINS: Admit = Admit::Joins { xoff: false };

/// 100 Gb/s and 1 us both ways.
const LINK: Ingress = Ingress {
    rate: HOSTS,
    delay: Dur::from_us(1),
    back_rate: HOSTS,
    back_delay: Dur::from_us(1),
    mtu: MTU,
};

/// A static threshold of 10 000 B without reserve, headroom of 5000 B, XON 2000 B below.
fn plain() -> PfcBufferSpec {
    PfcBufferSpec {
        size: 100_000,
        reserve: 0,
        headroom: Headroom::Bytes(5_000),
        headroom_beside: false,
        threshold: Threshold::Static(10_000),
        xon: 0,
        resume_offset: 2_000,
        lossless: 0b0000_0011,
        control: 0b1000_0000,
    }
}

fn memory(spec: &PfcBufferSpec, ports: usize) -> PfcBuffer {
    PfcBuffer::new(spec, &vec![LINK; ports], HOSTS).unwrap()
}

/// A packet that came in over `port` leaves; who is resumed.
fn depart(memory: &mut PfcBuffer, port: u32, class: u8, len: u16) -> Vec<(u32, u8)> {
    let mut resumed = Vec::new();
    memory.depart(port, class, len, &mut |port, class| resumed.push((port, class))).unwrap();
    resumed
}

/// Drawn arrivals and departures at one switch, whose neighbours send for as long as XOFF takes to
/// reach them.
struct Swarm {
    draw: Draw,
    drawn: u64,
    memory: PfcBuffer,
    ports: u32,
    /// What neighbours may still send after XOFF.
    deaf: u32,
    /// What is in the switch, as (port, class, len).
    queued: Vec<(u32, u8, u16)>,
    /// For each (port, class) that is paused, bytes that came after XOFF.
    paused: Vec<((u32, u8), u32)>,
}

impl Swarm {
    fn below(&mut self, n: u64) -> u64 {
        self.drawn += 1;
        self.draw.below(Purpose::new("swarm"), self.drawn, n)
    }

    fn arrive(&mut self) {
        let port = self.below(u64::from(self.ports)) as u32;
        let class = [0, 0, 1, 2, 7][self.below(5) as usize];
        let len = 64 + self.below(u64::from(MTU) - 63) as u16;
        let pause = self.paused.iter_mut().find(|(key, _)| *key == (port, class));
        if let Some((_, after)) = pause {
            if *after + u32::from(len) > self.deaf {
                return;
            }
            *after += u32::from(len);
        }
        match self.memory.admit(port, class, len) {
            Admit::Refused => {}
            Admit::Joins { xoff } => {
                self.queued.push((port, class, len));
                if xoff {
                    let again = self.paused.iter().any(|(key, _)| *key == (port, class));
                    assert!(!again && class < 2, "XOFF of {port} class {class}");
                    self.paused.push(((port, class), 0));
                }
            }
        }
    }

    fn leave(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let at = self.below(self.queued.len() as u64) as usize;
        let (port, class, len) = self.queued.swap_remove(at);
        for resumed in depart(&mut self.memory, port, class, len) {
            let at = self.paused.iter().position(|(key, _)| *key == resumed);
            self.paused.swap_remove(at.expect("XON without XOFF"));
        }
    }

    /// I2, and that both sides agree on what is paused.
    fn check(&self) {
        let counted = self.queued.iter().filter(|(_, class, _)| *class != 7);
        let bytes: u32 = counted.map(|(_, _, len)| u32::from(*len)).sum();
        assert_eq!(self.memory.used(), bytes);
        let accounts = self.memory.ports.iter().flat_map(|port| port.classes);
        let sum: u32 = accounts.map(|account| account.held + account.headroom).sum();
        assert_eq!(sum, bytes);
        assert!(bytes <= self.memory.spec.size && self.memory.shared <= self.memory.pool);
        for port in 0..self.ports {
            let of_port = self.paused.iter().filter(|((paused, _), _)| *paused == port);
            let mask = of_port.fold(0, |mask, ((_, class), _)| mask | 1 << class);
            assert_eq!(self.memory.paused(port), mask);
        }
    }
}

/// The memory after a swarm's 20 000 steps and after everything has left.
fn swarm(seed: u64, spec: &PfcBufferSpec, deaf: u32) -> PfcBuffer {
    let ports = 6;
    let draw = Draw::new(seed, Purpose::new("test"), 0);
    let memory = memory(spec, ports as usize);
    let (queued, paused) = (Vec::new(), Vec::new());
    let mut swarm = Swarm { draw, drawn: 0, memory, ports, deaf, queued, paused };
    for step in 0..20_000 {
        // Filling and emptying in turn.
        let arrives = if step / 2_000 % 2 == 0 { 9 } else { 1 };
        if swarm.below(10) < arrives {
            swarm.arrive();
        } else {
            swarm.leave();
        }
        swarm.check();
    }
    while !swarm.queued.is_empty() {
        swarm.leave();
        swarm.check();
    }
    swarm.memory
}

fn specs() -> Vec<PfcBufferSpec> {
    let dynamic = |alpha| Threshold::Dynamic { alpha, with_rate: false };
    let mut specs = Vec::new();
    for threshold in [Threshold::Static(10_000), dynamic(0.125), dynamic(1.0), dynamic(16.0)] {
        for (reserve, size) in [(0, 100_000), (1_000, 150_000), (4_000, 300_000)] {
            specs.push(PfcBufferSpec { threshold, reserve, size, ..plain() });
        }
    }
    specs
}

/// I1 and I2: whatever comes and goes, nothing lossless is lost while neighbours keep to the
/// headroom (I4), what is accounted is what is queued, XOFF and XON alternate, and in the end every
/// XOFF has had its XON.
#[test]
fn i1_i2_nothing_is_lost_and_everything_is_accounted() {
    for (n, spec) in specs().iter().enumerate() {
        // The packet that led to XOFF may be in the headroom already.
        let memory = swarm(n as u64, spec, 5_000 - u32::from(MTU));
        let stats = memory.stats();
        assert_eq!(stats.violations, 0, "{spec:?}");
        assert!(stats.pauses > 20 && stats.max_headroom <= 5_000, "{spec:?}: {stats:?}");
        assert_eq!((memory.used(), memory.shared, memory.paused.len()), (0, 0, 0), "{spec:?}");
    }
}

/// I1: without headroom, what is in flight when XOFF is sent is lost.
#[test]
fn i1_without_headroom_packets_are_lost() {
    for (n, spec) in specs().into_iter().enumerate() {
        let spec = PfcBufferSpec { headroom: Headroom::Bytes(0), ..spec };
        let memory = swarm(n as u64, &spec, 5_000 - u32::from(MTU));
        assert!(memory.stats().violations > 0, "{spec:?}");
    }
}

#[test]
fn at_the_threshold_a_class_is_paused_and_goes_on_in_the_headroom() {
    let mut memory = memory(&plain(), 2);
    for n in 1..10 {
        assert_eq!(memory.admit(0, 0, 1_000), JOINS, "packet {n}");
    }
    assert_eq!(memory.admit(0, 0, 1_000), XOFF, "10 000 of 10 000");
    assert_eq!(memory.admit(0, 1, 1_000), JOINS, "another class");
    assert_eq!(memory.admit(1, 0, 1_000), JOINS, "another port");
    for n in 1..=5 {
        assert_eq!(memory.admit(0, 0, 1_000), JOINS, "{n} of headroom, and no second XOFF");
    }
    assert_eq!(memory.admit(0, 0, 64), Admit::Refused);
    let stats = memory.stats();
    assert_eq!((stats.violations, stats.max_headroom, stats.max_bytes), (1, 5_000, 17_000));
    assert_eq!(memory.paused(0), 1);
    // Five leave the headroom, two more are the resume offset.
    for n in 1..7 {
        assert!(depart(&mut memory, 0, 0, 1_000).is_empty(), "departure {n}");
    }
    assert_eq!(depart(&mut memory, 0, 0, 1_000), [(0, 0)], "8000 + 2000 is no more than 10 000");
    assert_eq!(memory.paused(0), 0);
}

/// The trap of ns-3's first port: with headroom in use, the room below the threshold is not taken
/// again.
#[test]
fn once_headroom_is_in_use_everything_goes_there() {
    let mut memory = memory(&plain(), 1);
    for _ in 0..9 {
        memory.admit(0, 0, 1_000);
    }
    assert_eq!(memory.admit(0, 0, 1_500), XOFF, "10 500 would be above the threshold");
    assert_eq!(memory.ports[0].classes[0].headroom, 1_500);
    assert_eq!(memory.admit(0, 0, 500), JOINS, "9500 would be below it");
    assert_eq!((memory.ports[0].classes[0].headroom, memory.shared), (2_000, 9_000));
    assert!(depart(&mut memory, 0, 0, 1_900).is_empty());
    assert_eq!(
        (memory.ports[0].classes[0].headroom, memory.shared),
        (100, 9_000),
        "headroom first"
    );
    assert!(depart(&mut memory, 0, 0, 1_000).is_empty(), "8100 is not 2000 below");
    assert_eq!((memory.ports[0].classes[0].headroom, memory.shared), (0, 8_100));
    assert_eq!(depart(&mut memory, 0, 0, 100), [(0, 0)]);
}

#[test]
fn what_the_threshold_allows_is_not_lost_because_the_headroom_is_full() {
    let mut memory = memory(&PfcBufferSpec { headroom: Headroom::Bytes(1_500), ..plain() }, 1);
    for _ in 0..9 {
        memory.admit(0, 0, 1_000);
    }
    assert_eq!(memory.admit(0, 0, 1_500), XOFF);
    assert_eq!(memory.admit(0, 0, 1_000), JOINS, "10 000 in all");
    assert_eq!((memory.ports[0].classes[0].headroom, memory.shared), (1_500, 10_000));
    assert_eq!(memory.admit(0, 0, 64), Admit::Refused);
}

/// A departure of another port raises a dynamic threshold: that ends a pause, too.
#[test]
fn a_departure_resumes_everybody_whose_threshold_it_raises() {
    let threshold = Threshold::Dynamic { alpha: 1.0, with_rate: false };
    let spec = PfcBufferSpec { threshold, size: 60_000, resume_offset: 0, ..plain() };
    // Three ports with two lossless classes of 5000 B of headroom: 30 000 B to share.
    let mut memory = memory(&spec, 3);
    for _ in 0..10 {
        assert_eq!(memory.admit(0, 0, 1_000), JOINS);
    }
    for n in 1..=5 {
        assert_eq!(
            memory.admit(1, 0, 2_000),
            if n == 5 { XOFF } else { JOINS },
            "10 000 of 10 000 free"
        );
    }
    assert_eq!(memory.admit(0, 0, 1_000), XOFF);
    assert_eq!(memory.ports[0].classes[0].headroom, 1_000);
    assert_eq!(
        depart(&mut memory, 0, 0, 1_000),
        [(1, 0), (0, 0)],
        "10 000 of 10 000 is enough for XON at 0"
    );
}

#[test]
fn the_reserve_is_nobody_elses() {
    let spec = PfcBufferSpec { reserve: 2_000, size: 80_000, ..plain() };
    // Two ports with two lossless classes: 52 000 B to share.
    let mut memory = memory(&PfcBufferSpec { threshold: Threshold::Static(52_000), ..spec }, 2);
    assert_eq!(memory.pool, 80_000 - 2 * 2 * (2_000 + 5_000));
    let joined = (0..100).take_while(|_| memory.admit(0, 2, 1_000) == JOINS).count();
    assert_eq!(
        (joined, memory.shared, memory.stats().refused),
        (52, 52_000, 1),
        "lossy: neither reserve nor headroom"
    );
    assert_eq!(memory.admit(1, 2, 1_000), Admit::Refused);
    assert_eq!(memory.admit(1, 0, 1_500), JOINS, "in its reserve");
    assert_eq!(memory.admit(1, 0, 1_000), XOFF, "in the headroom");
    assert_eq!(memory.admit(1, 1, 2_000), JOINS, "in its reserve");
    assert_eq!(memory.admit(1, 7, 1_000), JOINS, "control is not counted");
    assert_eq!(memory.used(), 52_000 + 2_500 + 2_000);
    depart(&mut memory, 1, 7, 1_000);
    assert_eq!(memory.used(), 56_500);
}

/// XON at a threshold that has gone to nothing: when `xon` bytes are left.
#[test]
fn xon_comes_at_the_latest_when_the_shared_memory_is_free() {
    for (xon, left) in [(0, 0), (1_248, 1_000)] {
        let threshold = Threshold::Dynamic { alpha: 0.125, with_rate: false };
        let spec = PfcBufferSpec { threshold, xon, size: 56_000, lossless: 1, ..plain() };
        // One port: 51 000 B to share.
        let mut memory = memory(&spec, 1);
        while memory.admit(0, 0, 1_000) == JOINS {}
        while memory.admit(0, 1, 1_000) == JOINS {}
        // Class 1 holds its threshold for good, and the offset is more than what class 0 may hold.
        memory.spec.resume_offset = 10_000;
        let held = || memory.ports[0].classes[0];
        let packets = (held().held + held().headroom) / 1_000;
        let resumed = (1..=packets).find(|_| !depart(&mut memory, 0, 0, 1_000).is_empty());
        assert_eq!(resumed, Some(packets - left / 1_000));
    }
}

/// specs/rdma.md#2, from the DCQCN paper: 32 ports, 12 MB, 8 priorities, 22.4 KB of headroom each.
fn dcqcn(threshold: Threshold) -> PfcBufferSpec {
    let headroom = Headroom::Bytes(22_400);
    PfcBufferSpec {
        size: 12_000_000,
        headroom,
        threshold,
        lossless: u8::MAX,
        control: 0,
        ..plain()
    }
}

/// The paper's bound of a static XOFF, 24.47 KB: as long as every (port, class) can have it, none
/// goes on into the headroom before it has.
#[test]
fn static_xoff_has_room_for_everybody_up_to_the_bound() {
    let fill = |xoff: u32| {
        let mut memory = memory(&dcqcn(Threshold::Static(xoff)), 32);
        for port in 0..32 {
            for class in 0..8 {
                while memory.admit(port, class, 10) == JOINS {}
            }
        }
        memory.stats().max_headroom
    };
    assert_eq!(fill(24_470), 0);
    assert!(fill(24_490) > 0, "above the bound");
}

/// The paper's bound of the ECN threshold under a dynamic XOFF with beta = 8 (alpha = beta / 8 for
/// each class), 21.75 KB: one port's packets fill the queues of all 32 ports and 8 classes up to it
/// before any class is paused.
#[test]
fn ecn_before_pfc_up_to_the_bound() {
    let threshold = Threshold::Dynamic { alpha: 1.0, with_rate: false };
    let mut memory = memory(&dcqcn(threshold), 32);
    let each = 10;
    let mut queue = 0;
    'fill: loop {
        for class in 0..8 {
            for _ in 0..32 {
                if memory.admit(0, class, each) == XOFF {
                    break 'fill;
                }
            }
        }
        queue += u32::from(each);
    }
    let bound = 8.0 * f64::from(memory.pool) / (8.0 * 32.0 * 9.0);
    assert!((bound - 21_755.0).abs() < 1.0, "{bound}");
    assert!((f64::from(queue) - bound).abs() <= 2.0 * f64::from(each), "{queue}");
}

#[test]
fn headroom_is_what_a_link_needs() {
    let headroom_of = |headroom| PfcBufferSpec { headroom, ..plain() }.headroom_of(&LINK);
    // The example of specs/rdma.md#2: 100 Gb/s and 1 us make 12.5 KB.
    assert_eq!(headroom_of(Headroom::Delays(3)), 37_500);
    // Two delays, the packet that makes the frame wait and the frame, the packet that led to XOFF,
    // and the one that the far end has begun.
    assert_eq!(headroom_of(Headroom::Auto), 25_000 + 1_064 + 64 + 2 * 1_064);
    // A frame that goes back at a tenth of the rate leaves ten times as much room for what comes
    // meanwhile.
    let slow = Ingress { back_rate: Rate(HOSTS.0 / 10), ..LINK };
    assert_eq!(slow.most_after_xoff(), 25_000 + 10 * (1_064 + 64) + 2 * 1_064);
}

#[test]
fn alpha_grows_with_the_rate_of_a_port_up_to_one() {
    let spec = PfcBufferSpec::hpcc();
    let alphas = [1, 2, 4, 8, 16].map(|times| spec.alpha_of(Rate(HOSTS.0 * times), HOSTS));
    assert_eq!(alphas, [0.125, 0.25, 0.5, 1.0, 1.0]);
    let odd =
        PfcBufferSpec { threshold: Threshold::Dynamic { alpha: 0.3, with_rate: true }, ..spec };
    assert_eq!([2, 4, 8].map(|times| odd.alpha_of(Rate(HOSTS.0 * times), HOSTS)), [0.6, 1.0, 1.0]);
    assert_eq!(PfcBufferSpec::sonic(0).alpha_of(Rate(HOSTS.0 * 4), HOSTS), 0.125);
}

#[test]
fn presets_fit_the_switches_they_are_for() {
    let pool = |spec: &PfcBufferSpec, ports: usize| memory(spec, ports).pool;
    // 20 ports of HPCC's FatTree, as `SwitchMmu::ConfigNPort` of its authors counts them.
    assert_eq!(pool(&PfcBufferSpec::hpcc(), 20), 12 * 1024 * 1024 - 20 * (37_500 + 4 * 1024));
    assert_eq!(pool(&PfcBufferSpec::legacy(), 32), 9_000_000 - 32 * (103_000 + 1_030));
    assert_eq!(pool(&PfcBufferSpec::sonic(0), 32), 18_000_000, "headroom beside it");
}

#[test]
fn what_does_not_add_up_is_an_error() {
    let error = PfcBuffer::new(&plain(), &[LINK; 10], HOSTS).unwrap_err();
    assert_eq!(
        error,
        "a switch with 10 ports needs 0 bytes for reserves and 100000 for headroom, and has a memory of 100000"
    );
    let mut memory = memory(&plain(), 1);
    memory.admit(0, 0, 1_000);
    assert!(memory.depart(0, 0, 1_001, &mut |_, _| {}).is_err());
    assert!(memory.depart(0, 1, 1, &mut |_, _| {}).is_err());
    assert_eq!(memory.used(), 1_000);
}

fn packet(handle: u32, class: u8) -> Desc {
    Desc { handle, len: 1_000, flags: Flags::ECT, class }
}

/// A port's queue; each packet's class and fate as it joins.
fn port(marking: [Option<Marking>; 8], classes: &[u8]) -> (Queue, Vec<(u8, Disposition)>) {
    let spec = LosslessSpec { memory: plain(), schedule: Schedule::Strict, marking };
    let mut queue = Queue::new(&QueueSpec::Lossless(Box::new(spec)));
    let mut fates = Vec::new();
    for (n, &class) in classes.iter().enumerate() {
        assert!(
            !queue.try_enqueue(packet(n as u32, class))
                && !queue.cut_through(packet(n as u32, class))
        );
        queue.enqueue(packet(n as u32, class), || 0, &mut |fate, packet| {
            fates.push((packet.class, fate));
        });
    }
    (queue, fates)
}

fn sent(queue: &mut Queue) -> Option<u32> {
    let packet = queue.dequeue()?;
    queue.finish(packet);
    Some(packet.handle)
}

/// I3, the queue's part of it: a closed class is not served, and the others are.
#[test]
fn i3_a_closed_class_waits_and_the_highest_of_the_others_goes() {
    let (mut queue, _) = port([None; 8], &[0, 3, 7, 0, 3]);
    queue.set_open(!(1 << 3));
    assert_eq!(sent(&mut queue), Some(2));
    assert_eq!(sent(&mut queue), Some(0));
    queue.set_open(!1);
    assert_eq!([sent(&mut queue), sent(&mut queue), sent(&mut queue)], [Some(1), Some(4), None]);
    assert_eq!((queue.waiting().count(), queue.bytes()), (1, 1_000));
    queue.set_open(u8::MAX);
    assert_eq!(sent(&mut queue), Some(3));
}

#[test]
fn what_is_discarded_is_of_one_class() {
    let (mut queue, _) = port([None; 8], &[0, 1, 0, 1, 1]);
    let mut lost = Vec::new();
    queue.discard(1, &mut |fate, packet| lost.push((fate, packet.handle)));
    assert_eq!(lost, [1, 3, 4].map(|handle| (Disposition::Drop, handle)));
    assert_eq!(queue.bytes(), 2_000);
}

/// Each class is marked by what it holds itself; ramps that grow with the rate are those of the
/// port.
#[test]
fn classes_are_marked_by_their_own_queues_at_the_ports_rate() {
    let ramp = Ramp { unit: Unit::Bytes, min: 500, max: 500, probability: 1.0 };
    let per = Some(Rate(25_000_000_000));
    let marking = Marking { ramp, mark_at: MarkAt::Arrival, per };
    let scaled = marking.at_rate(HOSTS);
    assert_eq!((scaled.ramp.min, scaled.ramp.max, scaled.per), (2_000, 2_000, None));
    let marking = std::array::from_fn(|class| (class == 1).then_some(scaled));
    let (_, fates) = port(marking, &[0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(fates, [(1, Disposition::Mark)], "the fourth finds 3000 B");
}
