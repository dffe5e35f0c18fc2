//! Rate-controlled transports over (mostly) lossless fabrics: queue pairs of RDMA over Converged
//! Ethernet that send segments at the rate of a rule ([`rule`]): TIMELY (SIGCOMM 2015), patched
//! TIMELY (CoNEXT 2016), a FAST-like one, DCQCN (SIGCOMM 2015), HPCC (SIGCOMM 2019), Swift (SIGCOMM
//! 2020), or none at all. By specs/timely.md and specs/rdma.md; departures are
//! listed in `rdma.deviations.toml` beside this directory.
//!
//! # Queue pairs
//!
//! A message with channel zero has a queue pair of its own, which ends with it. The messages of
//! another channel to one host share a queue pair, in order, and its rate survives from one to the
//! next. A queue pair carries data in one direction; its first packet opens it. Its number is
//! counted per pair of hosts, the same at both ends, so that acknowledgements need no second one.
//!
//! # Sending
//!
//! Messages are cut into packets and segments (`stream.rs`). A rule gives each queue pair a rate,
//! and perhaps a window (`flow.rs`). Each segment is released when the gap behind the one before is
//! over (`pace.rs`), waits for those of other queue pairs (`pacer.rs`), and leaves as a burst, or
//! paced by the interface. Its last packet asks for an acknowledgement, which gives a round-trip
//! time (`flight.rs`). Control packets go first; a class that the fabric has paused holds back only
//! its own.
//!
//! # Cost
//!
//! Per packet one hash lookup and O(1) work, O(log n) in the queue pairs of the host where segments
//! are released. With selective recovery an acknowledgement that shows a hole walks over what the
//! queue pair has in flight.

mod clock;
mod config;
mod control;
mod flight;
mod flow;
mod jitter;
mod offers;
mod pace;
mod pacer;
mod quiet;
mod reader;
mod receiver;
pub mod rule;
mod stream;
#[cfg(test)]
mod tests;

use endpoint::{
    Cx, Endpoint, FailReason, Flags, FlowState, Msg, Packet, Purpose, Span, Stat, Submit, Tx,
    TxPort,
};
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};
use wire::int;
use wire::roce::{Ack, BITS, Data, Kind, PROTO, Repr};

pub use config::{
    Clock, Config, Initial, NicPacing, Operation, Recovery, Segment, Speed, Subtract, Timestamps,
};
use control::{OUTBOX_MAX, Outbox, put_header};
use flow::{Departure, Flow, Identity, Incoming};
use jitter::Jitter;
use offers::Offers;
use pacer::Pacer;
use reader::Offered;
use receiver::Receivers;
pub use rule::RuleConfig;
use stream::Stream;

use crate::config::ConfigError;
use crate::connection_ids::{Finished, unwrap};
use crate::connections::{BARE_MAX, Connections, OpenCounts};
use crate::deadlines::{Armed, Deadlines, Timer};

const PATH: Purpose = Purpose::new("rdma path");

/// One host's queue pairs.
#[derive(Debug)]
pub struct Rdma {
    config: Config,
    /// By peer and number of the queue pair.
    flows: Connections<Flow, BITS>,
    /// Flows that have something in flight.
    active: u32,
    pacer: Pacer,
    /// Retransmission timers, by slot.
    timeouts: Deadlines,
    /// Timers of the rules, by slot.
    rule_timers: Deadlines,
    receivers: Receivers,
    /// What others read from this host.
    offers: Offers,
    /// Queue pairs that this host reads, and of which nothing has come.
    bare: OpenCounts,
    /// Queue pairs that this host has read, and that are over.
    read: Finished<BITS>,
    /// Those of them that it has given up.
    given_up: Finished<BITS>,
    out: Outbox,
    /// Feedback that is held.
    held: Jitter,
    /// Stamps taken.
    stamps: u64,
    /// The timers of the host: for retransmissions, for rules, for offers, and for feedback that is
    /// held.
    armed: Armed<4>,
}

impl Rdma {
    /// A host without queue pairs.
    ///
    /// # Errors
    /// If `config` is impossible.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            flows: Connections::new(),
            active: 0,
            pacer: Pacer::default(),
            timeouts: Deadlines::new(),
            rule_timers: Deadlines::new(),
            receivers: Receivers::default(),
            offers: Offers::default(),
            bare: OpenCounts::up_to(BARE_MAX),
            read: Finished::default(),
            given_up: Finished::default(),
            out: Outbox::new(OUTBOX_MAX),
            held: Jitter::default(),
            stamps: 0,
            armed: Armed::NONE,
        })
    }

    /// The flow for a new message: that of its channel, or a new one.
    fn flow_for(&mut self, cx: &Cx<'_>, msg: &Msg) -> u32 {
        if let Some(slot) = self.flows.of_channel(msg.dst, msg.channel) {
            return slot;
        }
        let id = self.new_identity(cx, msg);
        self.open(cx, id)
    }

    fn new_identity(&mut self, cx: &Cx<'_>, msg: &Msg) -> Identity {
        let draw = cx.draw.part(u64::from(msg.dst.0));
        let queue_pair = self.flows.next_id(draw, msg.dst);
        let path = draw.bits(PATH, u64::from(queue_pair)) as u32;
        Identity { peer: msg.dst, queue_pair, path, channel: msg.channel }
    }

    /// A new flow for queue pair `id`.
    fn open(&mut self, cx: &Cx<'_>, id: Identity) -> u32 {
        let view = rule::PathView {
            line_rate: cx.net.rate(0),
            base_rtt: cx.net.base_rtt(id.peer),
            hops: cx.net.hops(id.peer),
            packet: u32::from(self.config.payload) + u32::from(self.config.overhead),
            others: self.active,
        };
        let new = || Flow::new(&self.config, id, &view, cx.now);
        let slot = self.flows.open((id.peer, id.queue_pair), id.channel, new);
        self.flows[slot].reopen(&self.config, id, &view, cx.now);
        slot
    }

    /// Bring everything about the flow in `slot` in line with its state: its place in the pacer,
    /// its timers, its end. What it may send it may send from `at` on.
    fn settle(&mut self, now: Time, at: Time, slot: u32, timer: Timer) {
        let flow = &mut self.flows[slot];
        let active = !flow.stream.is_done();
        if flow.active != active {
            flow.active = active;
            self.active = if active { self.active + 1 } else { self.active - 1 };
        }
        if active && flow.rule().deadline() <= now {
            // Nothing woke the rule while the queue pair was idle.
            flow.on_rule_timer(&self.config, now);
        }
        if !active && flow.id.channel == 0 {
            self.close(slot);
            return;
        }
        let waits = !flow.queued && flow.can_send();
        if waits && !flow.waits {
            flow.pace.ready(at);
        }
        flow.waits = waits;
        self.pacer.set(slot, if waits { flow.due() } else { Time::NEVER });
        let due = if active { flow.rule().deadline() } else { Time::NEVER };
        self.rule_timers.set(slot, due);
        self.timeouts.follow(slot, timer, now, || flow.timeout(&self.config));
    }

    fn close(&mut self, slot: u32) {
        let flow = &mut self.flows[slot];
        self.active -= u32::from(std::mem::take(&mut flow.active));
        let queued = std::mem::take(&mut flow.queued);
        let (id, bare) = (flow.id, flow.una() == 0);
        self.flows.close(slot, (id.peer, id.queue_pair), id.channel);
        if self.config.operation == Operation::Read {
            if bare {
                self.bare.leave(id.peer);
            }
            self.read.insert(id.peer, id.queue_pair);
        }
        self.pacer.remove(slot, queued);
        self.timeouts.set(slot, Time::NEVER);
        self.rule_timers.set(slot, Time::NEVER);
    }

    /// Let the host's timers stand at the earliest deadlines.
    fn arm_timers(&mut self, cx: &mut Cx<'_>) {
        let next = [
            self.timeouts.next(),
            self.rule_timers.next(),
            self.offers.deadline(),
            self.held.next(),
        ];
        self.armed.move_to(next, cx.fx);
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, header: &Repr, ack: Ack, pkt: &Packet) {
        let Some(slot) = self.flows.find((pkt.src, header.queue_pair)) else {
            return; // of a queue pair that is over
        };
        let (stamp, local) = (self.stamp(cx), self.time_here(cx));
        let flow = &mut self.flows[slot];
        let next = match ack.over {
            true => Some(flow.max()),
            false => unwrap(header.psn, flow.una(), BITS),
        };
        let Some(next) = next else { return };
        let telemetry = self.config.telemetry.then(|| int::Stack::parse(pkt.header())).flatten();
        let incoming = Incoming {
            next,
            nak: ack.nak,
            cause: ack.cause.and_then(|cause| next.checked_add_signed(i64::from(cause))),
            bitmap: ack.bitmap.unwrap_or(0),
            stamp,
            remote: Dur::from_ns(u64::from(ack.remote)),
            local,
            marked: ack.marked,
            hops: telemetry.as_ref().map_or(&[], |stack| stack.hops()),
        };
        let Some(timer) = flow.on_ack(&self.config, cx.now, &incoming, cx.fx) else { return };
        report_ended(&mut flow.stream, next, cx);
        self.settle(cx.now, cx.now, slot, timer);
    }

    /// When the packet just come came, by the clock of round-trip times.
    fn stamp(&mut self, cx: &Cx<'_>) -> Time {
        self.stamps += 1;
        let clock = &self.config.clock;
        match self.config.timestamps {
            Timestamps::Nic => clock.stamp(cx.draw, self.stamps, cx.rx_at),
            Timestamps::Host => {
                let own = Clock { noise: clock.noise, ..Clock::PERFECT };
                own.stamp(cx.draw, self.stamps, cx.now)
            }
        }
    }

    /// How long the packet just come has been in this host since its stamp.
    fn time_here(&self, cx: &Cx<'_>) -> Dur {
        match self.config.timestamps {
            Timestamps::Nic => cx.now.since(cx.rx_at),
            Timestamps::Host => Dur::ZERO,
        }
    }

    fn on_cnp(&mut self, cx: &Cx<'_>, header: &Repr, pkt: &Packet) {
        if let Some(slot) = self.flows.find((pkt.src, header.queue_pair)) {
            self.flows[slot].on_cnp(&self.config, cx.now);
            self.settle(cx.now, cx.now, slot, Timer::Keep);
        }
    }

    /// The next packet of the flow whose turn it is: data, or a request for them. False if no
    /// segment has been released.
    fn send_next(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> bool {
        while let Some(released) = self.pacer.released(cx.now) {
            self.flows[released].enqueued();
            self.pacer.enqueue(released);
        }
        while let Some(turn) = self.pacer.front() {
            let sent = match self.config.operation {
                Operation::Write => self.send_data(cx, turn, slot),
                Operation::Read => self.send_request(cx, turn, slot),
            };
            if sent {
                return true;
            }
            self.pacer.dequeue();
            self.flows[turn].queued = false;
            self.settle(cx.now, cx.now, turn, Timer::Keep);
        }
        false
    }

    /// The next packet of the flow in `turn`, if there still is one.
    fn send_data(&mut self, cx: &mut Cx<'_>, turn: u32, slot: &mut Packet) -> bool {
        let flow = &mut self.flows[turn];
        let Some(departure) = flow.send(&self.config, cx.now) else { return false };
        if departure.stamp {
            slot.token = token(turn, departure.psn + 1);
        }
        fill_data(&self.config, &flow.id, &departure, slot);
        self.after_departure(cx, turn, &departure, slot.wire_len);
        true
    }

    /// `departure` of the flow in `slot`, `bytes` long, begins to leave.
    fn after_departure(&mut self, cx: &mut Cx<'_>, slot: u32, departure: &Departure, bytes: u16) {
        if departure.again {
            cx.fx.count_for(Stat::Retransmission, departure.piece.msg);
        }
        let flow = &mut self.flows[slot];
        let line = cx.net.rate(0);
        let left = cx.now + line.serialise(u64::from(bytes));
        let paced = match self.config.nic_pacing {
            NicPacing::Line => None,
            NicPacing::At(rate) => Some(rate),
            NicPacing::Own => Some(flow.rule().rate()),
        };
        let paced = paced.filter(|pacing| *pacing < line);
        if let (true, Some(pacing)) = (departure.more, paced) {
            flow.pause_burst(cx.now + pacing.serialise(u64::from(bytes)));
        }
        if !departure.more || paced.is_some() {
            self.pacer.dequeue();
            flow.queued = false;
        }
        let timer = match departure.restarts_timer || !self.timeouts.is_set(slot) {
            true => Timer::Restart,
            false => Timer::Keep,
        };
        self.settle(cx.now, left, slot, timer);
    }
}

impl Endpoint for Rdma {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        match self.config.operation {
            Operation::Write => {
                let slot = self.flow_for(cx, msg);
                self.flows[slot].stream.submit(msg.id, msg.len);
                self.settle(cx.now, cx.now, slot, Timer::Keep);
            }
            Operation::Read => {
                let id = self.offers.identity(msg).unwrap_or_else(|| self.new_identity(cx, msg));
                self.offers.submit(cx, &self.config, id, msg, &mut self.out);
            }
        }
        self.arm_timers(cx);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        // A trimmed packet fails its checksum, and a bounced one belongs to no queue pair.
        let damaged = pkt.flags.has(Flags::TRIMMED) || pkt.flags.has(Flags::BOUNCED);
        let header = match Repr::parse(pkt.header()) {
            // Data that says that it is control has no payload.
            Ok(Repr { kind: Kind::Data(_), .. }) if !pkt.carries_payload() => {
                return cx.fx.count(Stat::Rejected);
            }
            Ok(header) if pkt.proto == PROTO && !damaged => header,
            _ => return cx.fx.count(Stat::Rejected),
        };
        let id = (header.queue_pair, header.psn);
        match (self.config.operation, header.kind) {
            (Operation::Write, Kind::Data(data)) if !data.answers => {
                let held = self.config.feedback_jitter > Dur::ZERO;
                let out = if held { self.held.fresh() } else { &mut self.out };
                self.receivers.on_data(cx, &self.config, id, data, pkt, out);
                self.held.hold(cx, self.config.feedback_jitter);
            }
            (Operation::Write, Kind::Ack(ack)) => self.on_ack(cx, &header, ack, pkt),
            (Operation::Write, Kind::Cnp) => self.on_cnp(cx, &header, pkt),
            (Operation::Read, Kind::Advert { message, len, ends_queue_pair, given_up }) => {
                let offer = Offered { message, len, ends_queue_pair, given_up };
                self.on_offer(cx, id, offer, pkt);
            }
            (Operation::Read, Kind::Data(data)) if data.answers => {
                self.on_answer(cx, id, data, pkt);
            }
            (Operation::Read, Kind::ReadRequest { position, packets }) => {
                let asked = (position, packets);
                self.offers.on_request(cx, &self.config, id.0, asked, pkt, &mut self.out);
            }
            (Operation::Read, Kind::Ack(ack)) => self.offers.on_ack(cx, &self.config, id, ack, pkt),
            _ => cx.fx.count(Stat::Rejected),
        }
        self.arm_timers(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.armed.fired(id);
        while let Some(slot) = self.timeouts.pop(cx.now) {
            let flow = &mut self.flows[slot];
            if flow.on_timeout(&self.config, cx.now, cx.fx) {
                // Nothing is on its way until the repetition leaves, which starts the timer again.
                self.settle(cx.now, cx.now, slot, Timer::Stop);
            } else {
                let src = match self.config.operation {
                    Operation::Write => cx.me,
                    Operation::Read => {
                        self.given_up.insert(flow.id.peer, flow.id.queue_pair);
                        flow.id.peer
                    }
                };
                flow.stream.fail(src, FailReason::TimedOut, cx.fx);
                self.close(slot);
            }
        }
        while let Some(slot) = self.rule_timers.pop(cx.now) {
            self.flows[slot].on_rule_timer(&self.config, cx.now);
            self.settle(cx.now, cx.now, slot, Timer::Keep);
        }
        self.offers.on_timer(cx, &self.config, &mut self.out);
        self.held.release(cx.now, &mut self.out);
        self.arm_timers(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        slot.src = cx.me;
        if port.opens(self.config.ack_class)
            && let Some(control) = self.out.pop()
        {
            control.fill(&self.config, cx.now, slot);
            return Tx::Sent;
        }
        let paced = port.opens(match self.config.operation {
            Operation::Write => self.config.class,
            Operation::Read => self.config.ack_class, // requests, which go before answers
        });
        let sent = paced && self.send_next(cx, slot);
        self.arm_timers(cx);
        let answers = port.opens(self.config.class);
        if sent || answers && self.offers.poll(cx, &self.config, slot) {
            return Tx::Sent;
        }
        let own = if paced { self.pacer.next() } else { Time::NEVER };
        let answer = if answers { self.offers.next_at() } else { Time::NEVER };
        match own.min(answer) {
            Time::NEVER => Tx::Idle,
            next => Tx::NotBefore(next),
        }
    }

    /// Of a reader it says nothing, as [`Endpoint::flow_state`].
    fn unsent(&self, id: MsgId) -> Option<u64> {
        match self.config.operation {
            Operation::Write => self.flows.slots().find_map(|slot| self.flows[slot].unsent(id)),
            Operation::Read => None,
        }
    }

    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        // A message is in one of them.
        self.flows.slots().map(|slot| self.flows[slot].shorten(id, bytes)).sum()
    }

    /// Of a reader it says nothing: the messages that it reads are of other hosts.
    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        if self.config.operation == Operation::Read {
            return None;
        }
        self.flows.slots().find_map(|slot| self.flows[slot].state(id))
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let src = match self.config.operation {
            Operation::Write => cx.me,
            Operation::Read => host,
        };
        for slot in self.flows.to(host) {
            self.flows[slot].stream.fail(src, FailReason::Cancelled, cx.fx);
            self.close(slot);
        }
        self.receivers.restart(host);
        self.read.forget(host);
        self.given_up.forget(host);
        self.arm_timers(cx);
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        // Rare, so a walk over all flows is cheaper than an index kept for every message.
        if self.config.operation == Operation::Read {
            self.offers.cancel(cx, id);
            return;
        }
        for slot in self.flows.slots() {
            if self.flows[slot].cancel(id) {
                cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
                self.settle(cx.now, cx.now, slot, Timer::Keep);
                break;
            }
        }
        self.arm_timers(cx);
    }

    fn on_sent(&mut self, _: &mut Cx<'_>, token: u32, at: Time) {
        let (slot, low) = ((token >> 8).wrapping_sub(1), token as u8);
        if let Some(flow) = self.flows.get_mut(slot) {
            flow.departed(low, at);
        }
    }
}

/// Tell the application of its messages all of whose packets before `una` are acknowledged.
fn report_ended(stream: &mut Stream, una: u64, cx: &mut Cx<'_>) {
    while let Some(ended) = stream.pop_ended(una) {
        if !ended.reported {
            cx.fx.acked(ended.id);
        }
    }
}

/// What [`Endpoint::on_sent`] gets for the last packet of a segment of flow `slot`, before packet
/// `end`.
fn token(slot: u32, end: u64) -> u32 {
    (slot + 1) << 8 | end as u32 & 0xff
}

/// Write the packet of `departure`.
fn fill_data(config: &Config, id: &Identity, departure: &Departure, slot: &mut Packet) {
    let Departure { psn, piece, .. } = *departure;
    slot.dst = id.peer;
    slot.path = id.path;
    slot.class = config.class;
    slot.span = Span { msg: piece.msg, offset: piece.offset, len: piece.len };
    // Fits: Config::check has added the largest values of both.
    slot.wire_len = piece.len as u16 + config.overhead;
    if config.ecn {
        slot.flags.set(Flags::ECT);
    }
    if config.telemetry {
        slot.flags.set(Flags::INT);
    }
    let data = Data {
        answers: config.operation == Operation::Read,
        part: piece.part,
        ack: departure.ack,
        ends_message: piece.ends_message,
        ends_queue_pair: piece.ends_message && id.channel == 0,
        given_up: piece.given_up,
    };
    let psn = psn as u32 & ((1 << BITS) - 1);
    let header = Repr { queue_pair: id.queue_pair, psn, kind: Kind::Data(data) };
    let room = int::Stack::default();
    put_header(slot, header, config.telemetry.then_some(&room));
}
