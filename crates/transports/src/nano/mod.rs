//! The transports of a programmable NIC, as models: nano-NDP, nano-Homa and Homa-Tr as the hardware
//! of nanoTransport runs them, which is not quite what the papers on NDP and Homa describe.
//!
//! S. Arslan, S. Ibanez, A. Mallery, C. Kim, N. McKeown: "NanoTransport: A Low-Latency,
//! Programmable Transport Layer for NICs", SOSR 2021; by specs/nanotransport.md and
//! specs/homa-tr.md. Departures are listed in `nano.deviations.toml`. The same NIC with its
//! programs in P4 is in crates/nic; the two share nothing but the headers (`wire::nano`), so that
//! each is the other's test.
//!
//! What of the NIC is seen from outside is here: so many messages in flight (`tx_messages`,
//! `rx_messages`) in buffers of fixed sizes, bitmaps of their packets, timers that are looked at in
//! turn, a pipeline that takes its time in both directions. A message that has been submitted waits
//! whole in `packetization`; what has arrived is noted in `reassembly`, and answered by the rules
//! of the program (`ndp`, `homa`).
//!
//! Two instants belong to a packet that arrives: its last bit's, and the one, `ingress_cycles`
//! later, at which it takes effect. What follows from data depends on nothing but the data before
//! it, so it is worked out at once and dated; control packets and deliveries wait until then. What
//! leaves has been in the pipeline for `egress_cycles`: when the wire is free, the choice is among
//! what was there by then, control before data.

mod buffers;
mod clock;
mod clocked;
mod config;
mod control;
mod homa;
mod ndp;
mod packetization;
mod reassembly;
mod scheduler;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use endpoint::{
    Cx, Effects, Endpoint, FailReason, Flags, Msg, MsgId, Packet, Purpose, Stat, Submit, TimerId,
    Tx, TxPort,
};
use units::{HostId, MsgKey, Time};
use wire::nano::{Header, Kind, PAYLOAD, Protocol, Repr};

pub use clocked::Clocked;
pub use config::{Config, Program, SizeClass};

use crate::config::ConfigError;

use control::{Controls, Data};
use packetization::Packetization;
use reassembly::{Lookup, Reassembly};

const INGRESS_TIMER: TimerId = TimerId(0);
const EGRESS_TIMER: TimerId = TimerId(1);

const PATH: Purpose = Purpose::new("nano path");
/// So many paths are drawn to find one that is up.
const PATH_DRAWS: u64 = 16;

/// A NIC with one of the programs.
#[derive(Debug)]
pub struct Nano {
    config: Arc<Config>,
    sender: Packetization,
    arrivals: Arrivals,
    /// What is in the ingress pipeline, with the instants at which it takes effect.
    ingress: VecDeque<(Time, Ingress)>,
}

/// The receiving half of a NIC.
#[derive(Debug)]
struct Arrivals {
    reassembly: Reassembly,
    receiver: Receiver,
    /// What it answers, dated.
    answers: Controls,
}

/// When something happens to a packet of data.
#[derive(Clone, Copy, Debug)]
struct Dates {
    /// It is looked up.
    lookup: Time,
    /// It is answered and delivered.
    effect: Time,
    /// The message that is granted more hears of that; `None`: in the lookup.
    granted: Option<Time>,
}

/// The receiving rules of a program.
#[derive(Debug)]
enum Receiver {
    Ndp(ndp::Receiver),
    Homa(homa::Receiver),
}

/// Something in the ingress pipeline.
#[derive(Clone, Copy, Debug)]
enum Ingress {
    /// A message that is whole.
    Delivered(MsgKey),
    /// A control packet of this host.
    Control(HostId, Repr),
}

impl Arrivals {
    fn new(config: &Config) -> Self {
        let receiver = match config.program {
            Program::Ndp => Receiver::Ndp(ndp::Receiver::new(config)),
            Program::Homa | Program::HomaTr => Receiver::Homa(homa::Receiver::new(config)),
        };
        let answers = Controls::new(config.program.protocol());
        Self { reassembly: Reassembly::new(config), receiver, answers }
    }

    /// A packet of data: its answers, dated, and the message that it makes whole.
    fn on_data(
        &mut self,
        dates: Dates,
        data: &Data,
        config: &Config,
        fx: &mut Effects,
    ) -> Option<MsgKey> {
        let Self { reassembly, receiver, answers } = self;
        let Dates { lookup: now, effect: at, granted } = dates;
        while let Some(rx) = reassembly.expire(now, config) {
            if let Receiver::Homa(receiver) = receiver {
                receiver.forget(rx);
            }
        }
        let lookup = reassembly.lookup(now, data, config);
        match receiver {
            Receiver::Ndp(receiver) => receiver.on_data(at, data, lookup, config, answers),
            Receiver::Homa(receiver) => {
                if let Some(rx) = receiver.on_data(at, data, lookup, config, answers) {
                    match granted {
                        None => reassembly.granted(now, rx, config),
                        Some(later) => reassembly.granted_later(later, rx),
                    }
                }
            }
        }
        let key = MsgKey { src: data.from, id: data.msg };
        let again = match lookup {
            Lookup::Fail => return None,
            Lookup::Done => true,
            Lookup::Known(info) => !info.is_new_packet,
        };
        if again && !data.chopped {
            fx.count_received(Stat::Duplicate, key);
        }
        let Lookup::Known(info) = lookup else { return None };
        if info.is_forgotten {
            fx.count_received(Stat::Forgotten, key);
        }
        if info.is_new_packet && !info.is_placed && !data.chopped && data.len > 0 {
            let offset = u64::from(data.header.pkt_offset) * u64::from(PAYLOAD);
            fx.place(key, offset, data.len);
        }
        if !info.is_last_packet {
            return None;
        }
        let twice = reassembly.delivered(now, info.rx, config);
        if twice {
            // The simulated application is notified of a message once; this counts the promise
            // broken.
            fx.count(Stat::DeliveredTwice);
        }
        (!twice).then_some(key)
    }
}

impl Nano {
    /// An idle NIC.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Arc<Config>) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sender: Packetization::new(&config),
            arrivals: Arrivals::new(&config),
            ingress: VecDeque::new(),
            config,
        })
    }

    /// A packet of data: all that follows from it, dated `at`.
    fn on_data(&mut self, cx: &mut Cx<'_>, at: Time, data: &Data) {
        let dates = Dates { lookup: at, effect: at, granted: None };
        if let Some(key) = self.arrivals.on_data(dates, data, &self.config, cx.fx) {
            self.enter(cx, at, Ingress::Delivered(key));
        }
    }

    /// `what` takes effect `at`.
    fn enter(&mut self, cx: &mut Cx<'_>, at: Time, what: Ingress) {
        if self.ingress.is_empty() {
            cx.fx.arm(INGRESS_TIMER, at);
        }
        self.ingress.push_back((at, what));
    }

    /// All that takes effect by now: packets first, then timeouts.
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        if self.ingress.front().is_some_and(|(at, _)| *at <= cx.now) {
            self.leave_ingress(cx);
        }
        if self.sender.next_timeout() <= cx.now {
            self.sender.on_timer(cx.now, cx.me, &self.config, cx.fx);
            cx.fx.arm(EGRESS_TIMER, self.sender.next_timeout());
        }
    }

    /// What has passed the ingress pipeline.
    fn leave_ingress(&mut self, cx: &mut Cx<'_>) {
        while let Some((at, what)) = self.ingress.front().copied() {
            if at > cx.now {
                cx.fx.arm(INGRESS_TIMER, at);
                break;
            }
            self.ingress.pop_front();
            match what {
                Ingress::Delivered(key) => cx.fx.delivered(key),
                Ingress::Control(from, header) => {
                    self.sender.on_control(cx.now, from, &header, &self.config, cx.fx);
                }
            }
        }
        cx.fx.arm(EGRESS_TIMER, self.sender.next_timeout());
    }

    /// When something will have passed the egress pipeline.
    fn next_departure(&self) -> Option<Time> {
        let pull = match &self.arrivals.receiver {
            Receiver::Ndp(receiver) => receiver.next_release(),
            Receiver::Homa(_) => None,
        };
        let first =
            [self.arrivals.answers.first(), self.sender.first(), pull].into_iter().flatten().min();
        first.map(|at| at + self.config.egress())
    }
}

/// A packet for this program, with its header; and whether it has lost its payload.
fn read(pkt: &Packet, program: Program) -> Option<(Repr, bool)> {
    let protocol = Protocol::of(pkt.proto).filter(|&protocol| protocol == program.protocol())?;
    let header = Header::new(protocol, pkt.header()).ok()?;
    let header = Repr::parse(&header).ok()?;
    let chopped = header.kind == Kind::Data { chopped: true } || pkt.flags.has(Flags::TRIMMED);
    let known = match header.kind {
        Kind::Data { .. } if chopped => homa::understands_chopped(program),
        // Data that says that it is control has no payload to place.
        Kind::Data { .. } => pkt.carries_payload(),
        _ => !chopped || homa::understands_chopped(program),
    };
    (known && !pkt.flags.has(Flags::BOUNCED)).then_some((header, chopped))
}

/// Whether the header and the environment's span speak of the same bytes. On a real network a peer
/// may say anything.
fn describes(pkt: &Packet, header: &Repr) -> bool {
    let offset = u64::from(header.pkt_offset) * u64::from(PAYLOAD);
    let rest = u64::from(header.msg_len).saturating_sub(offset).min(u64::from(PAYLOAD));
    let empty = header.msg_len == 1 && pkt.span.len == 0;
    pkt.span.msg.0 as u16 == header.src_context
        && pkt.span.offset == offset
        && (u64::from(pkt.span.len) == rest || empty)
}

/// A packet that makes sense.
enum Known {
    Data(Data),
    Control(Repr),
}

/// What a packet says to this program.
fn understand(pkt: &Packet, program: Program) -> Option<Known> {
    let (header, chopped) = read(pkt, program)?;
    if !matches!(header.kind, Kind::Data { .. }) {
        return Some(Known::Control(header));
    }
    let len = if chopped { 0 } else { pkt.span.len };
    let data = Data { from: pkt.src, msg: pkt.span.msg, header, chopped, len };
    describes(pkt, &header).then_some(Known::Data(data))
}

/// The path of a packet to `dst`, of message `msg` or in answer to it (docs/nic.md, rule 11): all
/// of a message take one, as long as it is up.
fn path(cx: &Cx<'_>, dst: HostId, msg: MsgId) -> u32 {
    let paths = cx.net.paths(dst);
    if paths <= 1 {
        return 0;
    }
    let draws = cx.draw.part(msg.0).stream(PATH);
    let up = |&path: &u32| cx.net.path_up(dst, path);
    let mut drawn = (0..PATH_DRAWS).map(|n| draws.below(n, u64::from(paths)) as u32);
    drawn.find(up).or_else(|| (0..paths).find(up)).unwrap_or(0)
}

impl Endpoint for Nano {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        if msg.len > self.config.longest() {
            cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        if !self.sender.submit(cx.now, msg, &self.config) {
            return Submit::Full;
        }
        cx.fx.arm(EGRESS_TIMER, self.sender.next_timeout());
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let at = cx.now + self.config.ingress();
        match understand(pkt, self.config.program) {
            None => cx.fx.count(Stat::Rejected),
            Some(Known::Data(data)) => self.on_data(cx, at, &data),
            Some(Known::Control(header)) => self.enter(cx, at, Ingress::Control(pkt.src, header)),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.catch_up(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        // One arbiter for all classes, so a pause of any of them pauses all.
        if port.open != u8::MAX {
            return Tx::Idle;
        }
        // The wire is free before timers of this instant are called.
        self.catch_up(cx);
        let egress = self.config.egress();
        if let (Receiver::Ndp(receiver), Some(until)) =
            (&mut self.arrivals.receiver, cx.now.0.checked_sub(egress.0))
        {
            receiver.release(Time(until), &self.config, &mut self.arrivals.answers);
        }
        if let Some(control) = self.arrivals.answers.pop(cx.now, egress) {
            control.write(self.config.program.protocol(), cx.me, slot);
        } else if !self.sender.poll(cx.now, cx.me, &self.config, slot, cx.fx) {
            return self.next_departure().map_or(Tx::Idle, Tx::NotBefore);
        }
        slot.path = path(cx, slot.dst, slot.span.msg);
        Tx::Sent
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.sender.cancel(id, cx.me, &self.config, cx.fx);
        cx.fx.arm(EGRESS_TIMER, self.sender.next_timeout());
    }
}
