//! The programs of `p4/` on NICs, for tests.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::path::Path;
use std::sync::Arc;

use crate::bytes::device::Device;
use crate::bytes::payload::PayloadStage;
use endpoint::{
    Cx, Draw, Effects, Endpoint, Flags, Msg, NetView, Packet, Purpose, Span, Submit, Tx, TxPort,
};
use p4::interp::Machine;
use p4::ir;
use testkit::Star;
use trimline_nic::nano::config::Config;
use trimline_nic::nano::endpoint::Nano;
use units::{Dur, HostId, MsgId, Rate, Time};
use wire::nano::{Header, Kind, Protocol, Repr};

/// Constants that make Homa-Tr of `homa.p4`.
pub(crate) const HOMA_TR: &[(&str, i128)] = &[("TRIM", 1)];

/// A program of `p4/` with other values for some of its constants.
pub(crate) fn compile(name: &str, constants: &[(&str, i128)]) -> Arc<ir::Program> {
    compile_with(name, constants, name, |text| text)
}

/// A program of `p4/` whose main file is changed so.
pub(crate) fn compile_changed(name: &str, change: impl Fn(String) -> String) -> Arc<ir::Program> {
    compile_with(name, &[], name, change)
}

/// A program of `p4/` in which `file`, which it includes, is changed so.
pub(crate) fn compile_including(
    name: &str,
    file: &str,
    change: impl Fn(String) -> String,
) -> Arc<ir::Program> {
    compile_with(name, &[], file, change)
}

fn compile_with(
    name: &str,
    constants: &[(&str, i128)],
    changed: &str,
    change: impl Fn(String) -> String,
) -> Arc<ir::Program> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let files = |file: &str| {
        let text = std::fs::read_to_string(dir.join(file)).map_err(|e| e.to_string())?;
        Ok(if file == changed { change(text) } else { text })
    };
    let constants: Vec<_> =
        constants.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    match p4::front::compile(&files, name, &constants) {
        Ok(program) => Arc::new(program),
        Err(errors) => panic!("{name}: {errors:#?}"),
    }
}

/// The prototype's NIC for `protocol`.
pub(crate) fn config(protocol: Protocol, rtt_packets: u16) -> Config {
    let protocols = vec![protocol.number()];
    Config { protocols, ..Config::prototype(rtt_packets, Dur::from_us(7)) }
}

/// A NIC that runs `program` by the interpreter.
pub(crate) fn nic(program: &Arc<ir::Program>, config: Config) -> Nano {
    let machine = Machine::new(Arc::clone(program));
    Nano::new(program, Box::new(machine), config).unwrap()
}

/// A NIC with bytes of `host` that runs `program` by the interpreter.
pub(crate) fn device(host: HostId, program: &Arc<ir::Program>, config: Config) -> Device {
    device_with(host, program, config, None)
}

/// The same with a stage for payload.
pub(crate) fn device_with(
    host: HostId,
    program: &Arc<ir::Program>,
    config: Config,
    stage: Option<Box<dyn PayloadStage>>,
) -> Device {
    let machine = Machine::new(Arc::clone(program));
    Device::new(host, program, Box::new(machine), config, stage).unwrap()
}

/// One NIC, to which packets are given by hand, and which is asked what it answers.
pub(crate) struct Bench {
    nano: Nano,
    protocol: Protocol,
    now: Time,
    pub(crate) fx: Effects,
}

/// What a test says of a DATA packet.
#[derive(Clone, Copy)]
pub(crate) struct Data {
    pub(crate) from: u32,
    pub(crate) tx_msg_id: u16,
    pub(crate) packets: u16,
    pub(crate) offset: u8,
    pub(crate) chop: bool,
}

const ME: HostId = HostId(0);
const NICS: [Rate; 1] = [Rate(200_000_000_000)];

impl Bench {
    pub(crate) fn new(program: &Arc<ir::Program>, config: Config) -> Self {
        let protocol = Protocol::of(config.protocols[0]).unwrap();
        Self { nano: nic(program, config), protocol, now: Time::ZERO, fx: Effects::new() }
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut Nano, &mut Cx<'_>) -> R) -> R {
        let star = Star::new(1, Dur::from_ns(525));
        let net = NetView {
            me: ME,
            nics: &NICS,
            mtu: 1088,
            whole: true,
            lateness: Dur::ZERO,
            routes: &star,
        };
        let draw = Draw::new(1, Purpose::new("bench"), 0);
        let now = self.now;
        let mut cx =
            Cx { now, rx_at: now, me: ME, room: u64::MAX, net: &net, draw, fx: &mut self.fx };
        call(&mut self.nano, &mut cx)
    }

    /// A DATA packet arrives; the answers that leave within 100 ns: each header and who gets it.
    pub(crate) fn data(&mut self, data: Data) -> Vec<(u32, Repr)> {
        let header = Repr {
            kind: Kind::Data { chopped: false },
            src_context: data.tx_msg_id,
            dst_context: 0,
            msg_len: data.packets * 1024,
            pkt_offset: data.offset,
            credit: 0,
            grant_prio: 0,
            tx_msg_id: data.tx_msg_id,
            buf_ptr: 608 * data.tx_msg_id,
            buf_size_class: 0,
        };
        let offset = u64::from(data.offset) * 1024;
        let span = Span { msg: MsgId(data.tx_msg_id.into()), offset, len: 1024 };
        let flags = if data.chop { Flags::TRIMMED } else { Flags::default() };
        self.packet(data.from, header, Packet { span, flags, wire_len: 1088, ..Packet::EMPTY })
    }

    /// A message of this host is submitted; what leaves at once.
    pub(crate) fn submit(&mut self, dst: u32, id: u64, len: u64) -> Vec<(u32, Repr)> {
        let msg = Msg { id: MsgId(id), ..Msg::new(HostId(dst), len) };
        let taken = self.call(|nano, cx| nano.on_submit(cx, &msg));
        assert_eq!(taken, Submit::Taken);
        self.departures()
    }

    /// A control packet with `header` but these `flags` arrives from host `from`.
    pub(crate) fn flagged(&mut self, from: u32, header: Repr, flags: u8) {
        let mut pkt = Packet { flags: Flags::CONTROL, wire_len: 65, ..Packet::EMPTY };
        (pkt.src, pkt.dst, pkt.class) = (HostId(from), ME, 7);
        pkt.proto = self.protocol.number();
        let bytes = header.to_bytes(self.protocol);
        pkt.hdr[..bytes.len()].copy_from_slice(&bytes);
        pkt.hdr[0] = flags;
        pkt.hdr_len = bytes.len() as u8;
        self.call(|nano, cx| nano.on_packet(cx, &pkt));
    }

    /// A packet with `header` arrives from host `from`; the answers as in [`Bench::data`].
    pub(crate) fn packet(&mut self, from: u32, header: Repr, mut pkt: Packet) -> Vec<(u32, Repr)> {
        (pkt.src, pkt.dst, pkt.class) = (HostId(from), ME, 7);
        pkt.proto = self.protocol.number();
        let bytes = header.to_bytes(self.protocol);
        pkt.hdr[..bytes.len()].copy_from_slice(&bytes);
        pkt.hdr_len = bytes.len() as u8;
        self.call(|nano, cx| nano.on_packet(cx, &pkt));
        self.now += Dur::from_ns(100);
        self.departures()
    }

    /// Everything that may leave now.
    pub(crate) fn departures(&mut self) -> Vec<(u32, Repr)> {
        let mut sent = Vec::new();
        loop {
            let mut slot = Packet::EMPTY;
            let port = TxPort { nic: 0, open: u8::MAX };
            if self.call(|nano, cx| nano.poll_tx(cx, port, &mut slot)) != Tx::Sent {
                return sent;
            }
            let header = Header::new(self.protocol, slot.header()).unwrap();
            sent.push((slot.dst.0, Repr::parse(&header).unwrap()));
        }
    }

    /// Let time pass.
    pub(crate) fn wait(&mut self, dur: Dur) {
        self.now += dur;
    }
}
