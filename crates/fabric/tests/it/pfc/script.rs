//! Hosts that send what they are told, and a log of what crosses the links.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use endpoint::{
    App, AppCx, Cx, Endpoint, Flags, Framing, Msg, Observer, Packet, PacketEvent, Submit, Tx,
    TxPort,
};
use queues::{Headroom, LosslessSpec, PfcBufferSpec, QueueSpec, Schedule, Threshold};
use trimline_fabric::{Config, LinkSpec, Outcome, Sim, Topology};
use units::{Dur, HostId, MsgId, Rate, Time, TimerId};
use wire::pfc;

/// Bytes of a packet on the wire: 851.2 ns at 10 Gb/s.
pub(crate) const PACKET: u16 = 1064;
pub(crate) const LINK: LinkSpec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur(1_000_000) };

/// From `from` on, host `src` sends `count` packets of a class to `dst` over a path, as quickly as
/// it may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) class: u8,
    pub(crate) path: u32,
    pub(crate) count: u32,
    pub(crate) from: Time,
}

pub(crate) fn send(src: u32, dst: u32, count: u32) -> Send {
    Send { src, dst, class: 0, path: 0, count, from: Time::ZERO }
}

/// Sends one thing after the other, or in turn what may be sent now.
struct Script {
    sends: VecDeque<Send>,
    /// Whether it looks at which classes are open.
    aware: bool,
    sent: u64,
}

impl Endpoint for Script {
    fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
        Submit::Taken
    }

    fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}

    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.sends.retain(|send| send.count > 0);
        let open = |send: &Send| !self.aware || port.open & 1 << send.class != 0;
        let ready = self.sends.iter().position(|send| send.from <= cx.now && open(send));
        let Some(mut send) = ready.and_then(|place| self.sends.remove(place)) else {
            let later = self.sends.iter().map(|send| send.from).filter(|&from| from > cx.now);
            return later.min().map_or(Tx::Idle, Tx::NotBefore);
        };
        send.count -= 1;
        (slot.src, slot.dst) = (cx.me, HostId(send.dst));
        (slot.class, slot.path, slot.proto) = (send.class, send.path, 253);
        (slot.wire_len, slot.flags) = (PACKET, Flags::ECT.with(Flags::INT));
        slot.hdr_len = wire::int::LEN as u8;
        slot.span = endpoint::Span { msg: MsgId(0), offset: self.sent, len: 1000 };
        self.sent += 1;
        self.sends.push_back(send);
        Tx::Sent
    }
}

/// Sends nothing itself, and is never done: a run ends when nothing happens any more.
struct Never;

impl App for Never {
    fn on_start(&mut self, _: &mut AppCx<'_>) {}

    fn more_to_come(&self) -> bool {
        true
    }
}

/// What has arrived, by time and link.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) packets: Vec<(Time, u32, Packet)>,
    pub(crate) frames: Vec<(Time, u32, pfc::Repr)>,
}

impl Observer for Log {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        match event {
            PacketEvent::Arrived => self.packets.push((at, link, *pkt)),
            PacketEvent::FlowControl => {
                assert_eq!(pkt.wire_len, pfc::WIRE_LEN);
                let frame = pfc::Frame::new_checked(pkt.header()).unwrap();
                self.frames.push((at, link, pfc::Repr::parse(&frame).unwrap()));
            }
            _ => {}
        }
    }
}

/// Class 0 is lossless, class 7 control. XOFF above 3000 bytes, XON at 2000.
pub(crate) fn memory() -> PfcBufferSpec {
    PfcBufferSpec {
        size: 1_000_000,
        reserve: 0,
        headroom: Headroom::Auto,
        headroom_beside: false,
        threshold: Threshold::Static(3_000),
        xon: 0,
        resume_offset: 1_000,
        lossless: 1,
        control: 1 << 7,
    }
}

pub(crate) fn config(memory: PfcBufferSpec) -> Config {
    let lossless = LosslessSpec { memory, schedule: Schedule::Strict, marking: [None; 8] };
    Config {
        limit: Time(20_000_000_000),
        sample_every: Some(Dur::from_us(1)),
        ..Config::new(
            1,
            Framing { payload: 1000, overhead: 64 },
            QueueSpec::Lossless(Box::new(lossless)),
        )
    }
}

/// Let hosts, which look at the classes that are open or do not, send until nothing happens any
/// more.
pub(crate) fn run(
    topology: &Topology,
    config: Config,
    sends: &[Send],
    aware: bool,
) -> (Outcome, Log) {
    let (outcome, log, _) = run_counting_steps(topology, config, sends, aware);
    (outcome, log)
}

/// The same, and how many steps of the grid that took.
pub(crate) fn run_counting_steps(
    topology: &Topology,
    config: Config,
    sends: &[Send],
    aware: bool,
) -> (Outcome, Log, u32) {
    let topology = topology.clone().with_mtu(PACKET);
    let hosts = topology.hosts();
    let endpoint = |host: u32| {
        let sends = sends.iter().copied().filter(|send| send.src == host).collect();
        Box::new(Script { sends, aware, sent: 0 }) as Box<dyn Endpoint>
    };
    let apps = (0..hosts).map(|_| Box::new(Never) as Box<dyn App>).collect();
    let endpoints = (0..hosts).map(endpoint).collect();
    let mut log = Log::default();
    let sim = Sim::new(topology, config, endpoints, apps, &mut log).unwrap();
    let mut steps = 0;
    let outcome = sim.run(&mut |_| {
        steps += 1;
        ControlFlow::Continue(())
    });
    (outcome.unwrap(), log, steps)
}

/// Nanoseconds to a tenth, as computed by hand.
pub(crate) fn ns(tenths: u64) -> Time {
    Time(tenths * 100)
}
