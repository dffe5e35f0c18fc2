//! What a switch did to what came, against the simulator's word on the same arrivals: every
//! discipline, every packet, every picosecond.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use endpoint::{Draw, Flags, Framing, Packet, Purpose, Span};
use fabric::{Config, Encapsulation, Fault, FaultAction, LinkSpec, Node, Tier, Topology};
use queues::{
    Capacity, CutPayloadSpec, DropTailSpec, MarkAt, NdpSpec, NotEct, PFabricSpec, QueueSpec, Ramp,
    RedSpec, Unit,
};
use trimline_switch::record::{self, Entry, Event};
use trimline_switch::{ReplayError, Switch, replay};
use units::{Dur, HostId, MsgId, Rate, Time};
use wire::frame::{Carrier, Ecn, FrameRepr};

pub(crate) const HOSTS: u32 = 8;
const LINK: LinkSpec = LinkSpec { rate: Rate(1_000_000_000), delay: Dur(1_000_000) };

/// A file in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn star() -> Arc<Topology> {
    Arc::new(Topology::star(HOSTS, LINK).unwrap().with_mtu(9_064))
}

pub(crate) const SWITCH: Node = Node::Switch(Tier::Tor, 0);

/// A fabric with such queues, which draws by seed 7.
pub(crate) fn config(queue: QueueSpec) -> Config {
    let framing = Framing { payload: 9_000, overhead: 64 };
    Config {
        grid: Dur::from_ms(100),
        encapsulations: vec![Encapsulation { framing, spray: false }],
        ..Config::new(7, framing, queue)
    }
}

pub(crate) fn ndp() -> QueueSpec {
    NdpSpec::PAPER.into()
}

/// The frame of `pkt` between two hosts.
pub(crate) fn frame(pkt: &Packet) -> Vec<u8> {
    let (mut body, mut frame) = (vec![0; 10_000], vec![0; 10_000]);
    let payload = u16::try_from(pkt.payload_len()).unwrap();
    let len = pkt.shim().emit(pkt.header(), payload, &mut body).unwrap();
    wire::shim::seal(&mut body[..len], None);
    let repr = FrameRepr {
        src: pkt.src,
        dst: pkt.dst,
        carrier: Carrier::Udp { port: 4_000 },
        class: pkt.class,
        ecn: if pkt.flags.has(Flags::ECT) { Ecn::Capable } else { Ecn::NotCapable },
        path: 0,
        body_len: len as u16,
    };
    let len = repr.emit(&body[..len], &mut frame).unwrap();
    frame.truncate(len);
    frame
}

/// The `n`-th packet: to host 0 mostly, a tenth of them control.
pub(crate) fn packet(draw: Draw, n: u64, src: u32) -> Packet {
    let any = |what: &'static str, bound| draw.below(Purpose::new(what), n, bound);
    let dst = if any("elsewhere", 8) == 0 { (src + 1) % HOSTS } else { 0 };
    let control = any("control", 10) == 0;
    let len = if any("short", 5) == 0 { 1 + any("len", 9_000) as u32 } else { 9_000 };
    let ect = if any("ect", 3) > 0 { Flags::ECT } else { Flags(0) };
    let mut pkt = Packet {
        src: HostId(src),
        dst: HostId(dst),
        proto: if control { 200 } else { 199 },
        wire_len: if control { 64 } else { 64 + len as u16 },
        class: 0,
        flags: if control { Flags::CONTROL } else { ect },
        span: Span { msg: MsgId(n), offset: 0, len },
        ..Packet::EMPTY
    };
    pkt.put_header(&[n as u8; 24]);
    pkt
}

/// Bursts of all hosts, looked at late: a thousand packets.
fn drive(config: &Config) -> Vec<Entry> {
    let memory = Memory::default();
    let mut switch = Switch::new(&star(), config, SWITCH).unwrap();
    switch.record(Box::new(memory.clone())).unwrap();
    let draw = Draw::new(3, Purpose::new("test"), 0);
    let mut now = Time::ZERO + Dur::from_us(1);
    for n in 0..1_000 {
        let src = draw.below(Purpose::new("src"), n, 8) as u32;
        let burst = draw.below(Purpose::new("burst"), n, 20) > 0;
        now += if burst { Dur::from_us(4) } else { Dur::from_us(800) };
        let pkt = packet(draw, n, src);
        if pkt.dst != pkt.src {
            switch.arrive(now, src as usize, &frame(&pkt));
        }
        if n % 7 == 0 {
            switch.advance(now + Dur::from_us(30));
        }
        switch.departures(|_, _, _| ());
    }
    switch.advance(now + Dur::from_ms(20));
    switch.departures(|_, _, _| ());
    switch.finish().unwrap();
    assert_eq!(switch.held(), 0, "a frame was forgotten");
    record::read(&memory.text()).unwrap()
}

fn count(record: &[Entry], event: Event) -> usize {
    record.iter().filter(|entry| entry.event == event).count()
}

/// Drives a switch with `queue`; of its record, what the simulator agrees with must be everything,
/// and each of `wanted` must be in it.
fn agrees(queue: impl Into<QueueSpec>, wanted: &[Event]) {
    let config = config(queue.into());
    let record = drive(&config);
    for event in wanted {
        assert!(count(&record, *event) > 0, "no packet was {event}");
    }
    let agreement = replay(&star(), &config, &record).unwrap();
    assert_eq!(agreement.packets, count(&record, Event::Arrived) as u64);
    assert_eq!(agreement.events, (record.len() - count(&record, Event::Arrived)) as u64);
}

const CAPACITY: Capacity = Capacity::Bytes(72_000);

#[test]
fn ndp_trims_and_sends_back_as_in_the_simulator() {
    agrees(ndp(), &[Event::Trimmed]);
    let small = NdpSpec { header_capacity: Capacity::Bytes(500), ..NdpSpec::PAPER };
    agrees(small, &[Event::Trimmed, Event::Bounced, Event::Sent]);
}

#[test]
fn drop_tail_and_its_marks_too() {
    agrees(DropTailSpec { capacity: CAPACITY, ecn_threshold: None }, &[Event::Dropped]);
    let ecn_threshold = Some(Capacity::Bytes(20_000));
    agrees(DropTailSpec { capacity: CAPACITY, ecn_threshold }, &[Event::Marked, Event::Dropped]);
}

#[test]
fn random_marks_at_arrival_and_departure_too() {
    for mark_at in [MarkAt::Arrival, MarkAt::Departure] {
        let ramp = Ramp { unit: Unit::Packets, min: 1, max: 6, probability: 0.5 };
        let spec =
            RedSpec { capacity: CAPACITY, ramp, weight: None, mark_at, not_ect: NotEct::Pass };
        agrees(spec, &[Event::Marked, Event::Dropped]);
    }
}

#[test]
fn cut_payload_and_pfabric_too() {
    let spec = CutPayloadSpec { capacity: CAPACITY, trim_threshold: CAPACITY, trim_to: 64 };
    agrees(spec, &[Event::Trimmed]);
    agrees(PFabricSpec { capacity: CAPACITY }, &[Event::Dropped]);
}

/// The check must be able to fail: one coin, one picosecond, one packet that was not there.
#[test]
fn a_record_that_was_changed_is_found_out() {
    let config = config(ndp());
    let record = drive(&config);
    let changed = |change: fn(&mut Vec<Entry>)| {
        let mut record = record.clone();
        change(&mut record);
        replay(&star(), &config, &record)
    };
    let different = |result| matches!(result, Err(ReplayError::Different { .. }));
    assert!(different(changed(|record| record.last_mut().unwrap().at.0 -= 1)));
    assert!(different(changed(|record| {
        let at = record.iter().position(|e| e.event == Event::Trimmed).unwrap();
        record.remove(at);
    })));
    assert!(different(changed(|record| {
        let at = record.iter().position(|e| e.event == Event::Arrived).unwrap();
        record.remove(at);
    })));
    let other = Config { seed: 8, ..config.clone() };
    assert!(different(replay(&star(), &other, &record)), "other coins");
    let spine = Topology::leaf_spine(2, 2, 2, LINK, LINK).unwrap();
    assert_eq!(replay(&spine, &config, &record), Err(ReplayError::NoStar("leaf-spine")));
}

/// Losses of links take what comes in and what goes out, down for a while, slow for a while.
#[test]
fn faults_of_the_scenario_happen_to_frames() {
    let ms = |n| Time::ZERO + Dur::from_ms(n);
    let quiet = config(DropTailSpec { capacity: CAPACITY, ecn_threshold: None }.into());
    let between = |at, until, link, action| Fault { until, ..Fault::new(at, link, action) };
    let faults = vec![
        between(ms(0), ms(10), 3, FaultAction::Down),
        between(ms(10), ms(20), HOSTS + 4, FaultAction::Loss(0.5)),
        between(ms(20), ms(30), HOSTS + 4, FaultAction::Rate(Rate(100_000_000))),
    ];
    let faulty = Config { faults, ..quiet };
    let mut switch = Switch::new(&star(), &faulty, SWITCH).unwrap();
    let mut sent = [0; 3];
    for n in 0..300 {
        let at = Time::ZERO + Dur::from_us(100 * n + 1);
        let src = HostId(3);
        let pkt = Packet {
            src,
            dst: HostId(4),
            wire_len: 1_064,
            span: Span { msg: MsgId(n), offset: 0, len: 1_000 },
            ..Packet::EMPTY
        };
        switch.arrive(at, 3, &frame(&pkt));
        switch.advance(at + Dur::from_us(99));
        switch.departures(|port, _, _| {
            assert_eq!(port, 4);
            sent[n as usize / 100] += 1;
        });
    }
    // 85 us a frame at 100 Mb/s, 8.5 at 1 Gb/s; one comes every 100 us.
    let counters: Vec<_> = switch.counters().collect();
    assert_eq!((counters[3].received, counters[3].lost), (300, 100), "down");
    assert_eq!((sent[0], sent[1] + counters[4].lost), (0, 100), "half");
    assert!((35..=65).contains(&counters[4].lost), "{}", counters[4].lost);
    assert_eq!(sent[2], 100, "slow");
    assert!(counters[4].max_queue_bytes < 2_200);
}

#[test]
fn what_goes_nowhere_is_counted() {
    let mut switch = Switch::new(&star(), &config(ndp()), SWITCH).unwrap();
    let at = Time::ZERO + Dur::from_us(1);
    switch.arrive(at, 0, b"no frame");
    switch.arrive(
        at,
        0,
        &frame(&Packet { dst: HostId(HOSTS), ..packet(Draw::new(1, Purpose::new("x"), 0), 1, 3) }),
    );
    let to_itself = Packet { dst: HostId(0), src: HostId(1), wire_len: 100, ..Packet::EMPTY };
    switch.arrive(at, 0, &frame(&to_itself));
    let counters: Vec<_> = switch.counters().collect();
    assert_eq!((counters[0].received, counters[0].unknown, switch.held()), (3, 3, 0));
}

#[test]
fn what_only_the_simulator_has_is_refused() {
    let shared = queues::SharedBufferSpec { size: 100_000, alpha: 1.0 };
    let buffer = Config { buffer: Some(shared), ..config(ndp()) };
    let error = Switch::new(&star(), &buffer, SWITCH).err().unwrap();
    assert_eq!((error.table, error.to_string().contains("no memory")), ("buffer", true));
    let elsewhere = Node::Switch(Tier::Agg, 0);
    let error = Switch::new(&star(), &config(ndp()), elsewhere).err().unwrap().to_string();
    assert!(error.contains("no agg 0"), "{error}");
}
