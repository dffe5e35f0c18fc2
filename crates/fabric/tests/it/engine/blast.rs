//! A transport that only blasts, traffic at random, and the fabrics under test.

use std::ops::ControlFlow;

use endpoint::{
    App, AppCx, Cx, Endpoint, Flags, Framing, Msg, Packet, Purpose, Submit, Tx, TxPort,
};
use queues::{
    ByClassSpec, Capacity, CutPayloadSpec, DropTailSpec, Headroom, LosslessSpec, MarkAt, Marking,
    NdpSpec, NotEct, PfcBufferSpec, QueueSpec, Ramp, RedSpec, Schedule, SharedBufferSpec,
    Threshold, Unit,
};
use trimline_fabric::{Config, LinkSpec, Outcome, Pause, PfcSpec, Sim, Topology, Vl2};
use units::{Dur, HostId, MsgId, Rate, Time, TimerId};

pub(crate) const PAYLOAD: u64 = 1000;
pub(crate) const OVERHEAD: u64 = 64;
pub(crate) const LINK: LinkSpec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };
pub(crate) const TEST: Purpose = Purpose::new("test");

/// Sends every message at line rate, over paths and in classes 0 and 1 in turn; delivers what
/// arrives whole; answers each packet with a control packet. What is trimmed or lost stays lost.
#[derive(Default)]
pub(crate) struct Blast {
    queue: std::collections::VecDeque<(Msg, u64)>,
    answers: std::collections::VecDeque<(HostId, MsgId)>,
    received: std::collections::BTreeMap<(HostId, MsgId), u64>,
    sent: u32,
}

impl Endpoint for Blast {
    fn on_submit(&mut self, _: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.queue.push_back((*msg, 0));
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        if !pkt.carries_payload() {
            return;
        }
        let key = units::MsgKey { src: pkt.src, id: pkt.span.msg };
        cx.fx.place(key, pkt.span.offset, pkt.span.len);
        self.answers.push_back((pkt.src, pkt.span.msg));
        let so_far = self.received.entry((pkt.src, pkt.span.msg)).or_default();
        *so_far += u64::from(pkt.span.len);
        let total = u64::from_le_bytes(pkt.hdr[..8].try_into().unwrap());
        if *so_far == total {
            cx.fx.delivered(key);
        }
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut Packet) -> Tx {
        self.sent += 1;
        slot.src = cx.me;
        slot.proto = 253;
        slot.class = (self.sent % 2) as u8;
        if let Some((dst, msg)) = self.answers.pop_front() {
            slot.dst = dst;
            slot.span.msg = msg;
            slot.wire_len = OVERHEAD as u16;
            slot.flags = Flags::CONTROL;
            slot.path = self.sent % cx.net.paths(dst);
            return Tx::Sent;
        }
        let Some((msg, offset)) = self.queue.front_mut() else { return Tx::Idle };
        let len = PAYLOAD.min(msg.len - *offset);
        slot.dst = msg.dst;
        slot.path = self.sent % cx.net.paths(msg.dst);
        slot.span = endpoint::Span { msg: msg.id, offset: *offset, len: len as u32 };
        slot.wire_len = (len + OVERHEAD) as u16;
        slot.hdr[..8].copy_from_slice(&msg.len.to_le_bytes());
        slot.hdr_len = 8;
        slot.flags = Flags::ECT;
        *offset += len;
        if *offset == msg.len {
            self.queue.pop_front();
        }
        Tx::Sent
    }
}

/// Submits `count` messages of up to `most` bytes to random hosts at random times.
pub(crate) struct Random {
    pub(crate) count: u32,
    pub(crate) most: u64,
    pub(crate) hosts: u64,
    pub(crate) left: u32,
}

impl App for Random {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        self.left = self.count;
        for n in 0..self.count {
            cx.arm(TimerId(n), Time(cx.draw.below(TEST, u64::from(n), 50_000) * 1000));
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        self.left -= 1;
        let n = 1000 + 2 * u64::from(id.0);
        let other = cx.draw.below(TEST, n, self.hosts - 1);
        let dst = HostId(((u64::from(cx.me.0) + 1 + other) % self.hosts) as u32);
        cx.submit(dst, 1 + cx.draw.below(TEST, n + 1, self.most));
    }

    fn more_to_come(&self) -> bool {
        self.left > 0
    }
}

pub(crate) fn config(seed: u64) -> Config {
    Config {
        reroute_after: Dur::from_us(20),
        limit: Time(400_000_000),
        sample_every: Some(Dur::from_us(3)),
        ..Config::new(
            seed,
            Framing { payload: PAYLOAD as u16, overhead: OVERHEAD as u16 },
            ndp(8, 4000),
        )
    }
}

pub(crate) fn ndp(packets: u32, header_bytes: u32) -> QueueSpec {
    QueueSpec::Ndp(NdpSpec {
        data_capacity: Capacity::Packets(packets),
        header_capacity: Capacity::Bytes(header_bytes),
        ..NdpSpec::PAPER
    })
}

pub(crate) fn drop_tail() -> QueueSpec {
    QueueSpec::DropTail(DropTailSpec { capacity: Capacity::Bytes(20_000), ecn_threshold: None })
}

/// Marks data and loses control early, by the queue as it is or as it was on average.
pub(crate) fn red(mark_at: MarkAt, weight: Option<f64>) -> QueueSpec {
    let ramp = Ramp { unit: Unit::Bytes, min: 1_000, max: 12_000, probability: 0.4 };
    let (capacity, not_ect) = (Capacity::Bytes(15_000), NotEct::Drop);
    RedSpec { capacity, ramp, weight, mark_at, not_ect }.into()
}

/// Drop-tail and RED in a buffer that the ports of a switch share: half as much again as one of
/// them may have.
pub(crate) fn shared() -> [(QueueSpec, Option<SharedBufferSpec>); 2] {
    let buffer = SharedBufferSpec { size: 30_000, alpha: 1.0 };
    [drop_tail(), red(MarkAt::Departure, None)].map(|queue| (queue, Some(buffer)))
}

/// Class 0 is lossless, and class 1 too in one of them; pauses are for good or for a time. Marks as
/// packets leave.
pub(crate) fn lossless() -> [(QueueSpec, PfcSpec); 2] {
    let ramp = Ramp { unit: Unit::Bytes, min: 1_000, max: 12_000, probability: 0.4 };
    let marking = Marking { ramp, mark_at: MarkAt::Departure, per: None };
    let spec = |lossless: u8, threshold| {
        let memory = PfcBufferSpec {
            size: 150_000,
            reserve: 1_100,
            headroom: Headroom::Auto,
            headroom_beside: false,
            threshold,
            xon: 0,
            resume_offset: 1_100,
            lossless,
            control: 0,
        };
        let marking = [Some(marking), None, None, None, None, None, None, None];
        let schedule = Schedule::fair(1_064);
        QueueSpec::Lossless(Box::new(LosslessSpec { memory, schedule, marking }))
    };
    let timed = PfcSpec { pause: Pause::Timed(Dur::from_us(4)), ..PfcSpec::default() };
    [
        (spec(0b11, Threshold::Static(3_000)), PfcSpec::default()),
        (spec(0b01, Threshold::Dynamic { alpha: 0.25, with_rate: true }), timed),
    ]
}

/// Class 0 in a small NDP queue, class 1 in a Cut-Payload queue.
pub(crate) fn fair() -> QueueSpec {
    let cut_payload = CutPayloadSpec {
        capacity: Capacity::Bytes(6_000),
        trim_threshold: Capacity::Bytes(3_000),
        trim_to: 64,
    };
    let classes = vec![(0, ndp(4, 640)), (1, cut_payload.into())];
    ByClassSpec::new(Schedule::fair(1064), classes).into()
}

/// Both classes in queues that mark, one of them as packets leave.
pub(crate) fn fair_red() -> QueueSpec {
    let classes = vec![(0, red(MarkAt::Departure, None)), (1, red(MarkAt::Arrival, Some(0.1)))];
    ByClassSpec::new(Schedule::fair(1064), classes).into()
}

pub(crate) fn run(topology: &Topology, config: Config, count: u32, most: u64) -> Outcome {
    let topology = topology.clone().with_mtu(1064);
    let hosts = topology.hosts();
    let endpoints = (0..hosts).map(|_| Box::new(Blast::default()) as Box<dyn Endpoint>).collect();
    let app =
        |_| Box::new(Random { count, most, hosts: u64::from(hosts), left: 0 }) as Box<dyn App>;
    let apps = (0..hosts).map(app).collect();
    let mut observer = ();
    let sim = Sim::new(topology, config, endpoints, apps, &mut observer).unwrap();
    sim.run(&mut |_| ControlFlow::Continue(())).unwrap()
}

/// Why no run can start with `config`.
pub(crate) fn refusal(config: Config) -> String {
    let topology = Topology::star(2, LINK).unwrap();
    let endpoints = (0..2).map(|_| Box::new(Blast::default()) as Box<dyn Endpoint>).collect();
    let app = |_| Box::new(Random { count: 0, most: 1, hosts: 2, left: 0 }) as Box<dyn App>;
    let mut observer = ();
    let sim = Sim::new(topology, config, endpoints, (0..2).map(app).collect(), &mut observer);
    sim.err().unwrap().to_string()
}

pub(crate) fn shapes() -> Vec<Topology> {
    let slow = LinkSpec { rate: Rate(3_000_000_000), delay: Dur(0) };
    vec![
        Topology::star(6, LINK).unwrap(),
        Topology::dumbbell(3, 2, LINK, slow).unwrap(),
        Topology::leaf_spine(3, 2, 4, LINK, LINK).unwrap().with_switch_latency(Dur::from_ns(300)),
        Topology::fat_tree(4, 2, LINK).unwrap(),
        Topology::vl2(&VL2).unwrap(),
    ]
}

/// Four racks, of which two and two share aggregation switches.
const VL2: Vl2 = Vl2 {
    aggregation_ports: 4,
    intermediate_ports: 4,
    hosts_per_rack: 2,
    host_link: LINK,
    switch_link: LinkSpec { rate: Rate(20_000_000_000), delay: LINK.delay },
    shortcut: false,
};
