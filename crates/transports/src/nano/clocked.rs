//! The same NIC by the clocked law (docs/nic.md, rules C1 to C11): whatever happens does so in a
//! cycle of the host's own clock, and times in here count cycles.
//!
//! [`Clocked::advance`] goes from one cycle in which something happens to the next, and in each
//! through the parts of the NIC in the order of C3. The arbiter decides ahead of the wire, so what
//! it has decided waits in a [`Line`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use endpoint::{
    Cx, Effect, Effects, Endpoint, FailReason, Msg, MsgId, Packet, Stat, Submit, TimerId, Tx,
    TxPort,
};
use units::{Dur, HostId, MsgKey, Time};
use wire::nano::Repr;

use super::clock::Clock;
use super::config::Config;
use super::control::Controls;
use super::packetization::Packetization;
use super::{Arrivals, Dates, Known, Receiver, path, understand};
use crate::config::ConfigError;

/// Cycles from a packet's arrival to its lookup.
pub(super) const LOOKUP: u64 = 4;
/// And from there to the timer of the message that is granted more.
const GRANT_RESTART: u64 = 8;

const WAKE: TimerId = TimerId(0);

/// A NIC of cycles with one of the programs.
#[derive(Debug)]
pub struct Clocked {
    config: Arc<Config>,
    sender: Packetization,
    arrivals: Arrivals,
    /// What the arbiter chooses from beside the sender's packets.
    controls: Controls,
    /// What is to happen, by cycle.
    due: BTreeMap<u64, Vec<Due>>,
    line: Line,
    /// The first cycle that is still to come.
    next: u64,
    entrance: Entrance,
    /// The first cycle in which a cancelling may be the only one.
    cancels: u64,
    armed: Time,
}

/// One message comes in a cycle (C3): the others.
#[derive(Debug, Default)]
struct Entrance {
    queue: VecDeque<Msg>,
    /// Open from this cycle on; [`u64::MAX`]: when there is room again.
    opens: u64,
}

/// Something that happens in a given cycle.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// The application wants a message no longer.
    Cancel(MsgId),
    /// A control packet has passed the ingress pipeline.
    Control(HostId, Repr),
    /// A packet has that made a message whole.
    Delivered(MsgKey),
}

impl Clocked {
    /// An idle NIC.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Arc<Config>) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sender: Packetization::new(&config),
            arrivals: Arrivals::new(&config),
            controls: Controls::clocked(config.program.protocol()),
            due: BTreeMap::new(),
            line: Line::default(),
            next: 0,
            entrance: Entrance::default(),
            cancels: 0,
            armed: Time::NEVER,
            config,
        })
    }

    /// Everything of the cycles that have begun.
    fn advance(&mut self, cx: &mut Cx<'_>) {
        let clock = Clock::of(cx.draw);
        loop {
            let decides = self.decides(clock);
            let Some(cycle) = self.happens().into_iter().chain(decides).min() else { break };
            if clock.begin(cycle) > cx.now {
                break;
            }
            self.cycle(cycle, decides == Some(cycle), clock, cx);
        }
    }

    /// The next cycle in which something happens, but for decisions.
    fn happens(&self) -> Option<u64> {
        let over = self.sender.has_dead().then_some(self.next);
        let comes = (!self.entrance.queue.is_empty()).then_some(self.entrance.opens);
        let comes = comes.filter(|cycle| *cycle != u64::MAX);
        let due = self.due.first_key_value().map(|(cycle, _)| *cycle);
        let pull = match &self.arrivals.receiver {
            Receiver::Ndp(receiver) => receiver.next_release(),
            Receiver::Homa(_) => None,
        };
        let timeout = Some(self.sender.next_timeout()).filter(|at| *at != Time::NEVER);
        let dated = [pull, timeout, self.arrivals.answers.first()].into_iter().flatten();
        dated.map(|at| at.0).chain(over).chain(due).chain(comes).min()
    }

    /// The cycle in which the arbiter decides, if nothing comes before (C5).
    fn decides(&self, clock: Clock) -> Option<u64> {
        let waiting = [self.controls.first(), self.sender.waiting()].into_iter().flatten().min()?;
        let wire = clock.last(self.line.free()) - i128::from(self.config.egress_cycles);
        let first = self.next.max(waiting.0 + 1).max(wire.max(0) as u64);
        let overdue = self.line.start().is_some_and(|start| start < clock.begin(first));
        (!overdue).then_some(first)
    }

    /// One cycle, in the order of C3. Of submissions the arbiter sees those that came before.
    fn cycle(&mut self, cycle: u64, decides: bool, clock: Clock, cx: &mut Cx<'_>) {
        let now = Time(cycle);
        let before = cx.fx.as_slice().len();
        self.come_in(cycle);
        if let Some(packet) = self.arbiter(now, decides, cx.me, cx.fx) {
            let ready = clock.begin(cycle + u64::from(self.config.egress_cycles));
            let takes = cx.net.rate(0).serialise(u64::from(packet.wire_len));
            self.line.decided.push_back(Decided { ready, takes, packet });
        }
        let due = self.due.remove(&cycle).unwrap_or_default();
        // Cancelling is a submission's like: an input of the application.
        let (cancels, packets): (Vec<Due>, Vec<Due>) =
            due.into_iter().partition(|due| matches!(due, Due::Cancel(_)));
        for due in cancels.into_iter().chain(packets) {
            self.take_effect(now, due, cx);
        }
        self.answer(now, cx.fx);
        if self.sender.next_timeout() <= now {
            self.sender.on_timer(now, cx.me, &self.config, cx.fx);
        }
        if let Receiver::Ndp(receiver) = &mut self.arrivals.receiver {
            receiver.release(now, &self.config, &mut self.arrivals.answers);
        }
        self.answer(now, cx.fx);
        self.next = cycle + 1;
        let over = |effect: &Effect| matches!(effect, Effect::Acked(_) | Effect::Failed(..));
        if self.entrance.opens == u64::MAX && cx.fx.as_slice()[before..].iter().any(over) {
            self.entrance.opens = self.next;
        }
    }

    /// The message whose turn it is.
    fn come_in(&mut self, cycle: u64) {
        let Entrance { queue, opens } = &mut self.entrance;
        let Some(msg) = queue.front().filter(|_| *opens <= cycle) else { return };
        if self.sender.submit(Time(cycle), msg, &self.config) {
            queue.pop_front();
            *opens = cycle + 1;
        } else {
            *opens = u64::MAX;
        }
    }

    fn take_effect(&mut self, now: Time, due: Due, cx: &mut Cx<'_>) {
        match due {
            Due::Cancel(id) => self.sender.cancel(id, cx.me, &self.config, cx.fx),
            Due::Delivered(key) => cx.fx.delivered(key),
            Due::Control(from, header) => {
                self.sender.on_control(now, from, &header, &self.config, cx.fx);
            }
        }
    }

    /// Answers whose cycle it is go to the arbiter, as far as there is room.
    fn answer(&mut self, now: Time, fx: &mut Effects) {
        let lost = self.arrivals.answers.forward(now, &mut self.controls);
        (0..lost).for_each(|_| fx.count(Stat::HostDrop));
    }

    /// The packet that is decided on, of what came before `now`.
    fn arbiter(
        &mut self,
        now: Time,
        decides: bool,
        me: HostId,
        fx: &mut Effects,
    ) -> Option<Packet> {
        let Self { config, sender, controls, .. } = self;
        let mut slot = Packet::EMPTY;
        let before = Time(now.0.saturating_sub(1));
        let control = if decides { controls.pop(before, Dur::ZERO) } else { None };
        let wants_data = decides && control.is_none();
        let data = sender.in_cycle(now, wants_data, me, config, &mut slot, fx);
        if let Some(control) = control {
            control.write(config.program.protocol(), me, &mut slot);
        }
        (data || control.is_some()).then_some(slot)
    }

    /// The packet of data that has arrived in `cycle`.
    fn due(&mut self, cycle: u64, what: Due) {
        self.due.entry(cycle).or_default().push(what);
    }

    fn arm(&mut self, cx: &mut Cx<'_>) {
        let clock = Clock::of(cx.draw);
        let at = self.happens().map_or(Time::NEVER, |cycle| clock.begin(cycle));
        if at != self.armed {
            self.armed = at;
            cx.fx.arm(WAKE, at);
        }
    }
}

/// A packet that the arbiter has decided on.
#[derive(Clone, Copy, Debug)]
struct Decided {
    /// It has passed the egress pipeline.
    ready: Time,
    takes: Dur,
    packet: Packet,
}

/// The wire, and what has been decided for it, first first.
#[derive(Debug, Default)]
struct Line {
    /// When it is free of what has gone.
    gone: Time,
    decided: VecDeque<Decided>,
}

impl Line {
    /// When the first begins.
    fn start(&self) -> Option<Time> {
        self.decided.front().map(|first| first.ready.max(self.gone))
    }

    /// When it is free of all, if each goes as soon as it can.
    fn free(&self) -> Time {
        self.decided.iter().fold(self.gone, |free, next| next.ready.max(free) + next.takes)
    }

    /// The first goes now, if it can.
    fn go(&mut self, now: Time) -> Option<Packet> {
        let Decided { takes, packet, .. } = *self.decided.front()?;
        if self.start()? > now {
            return None;
        }
        self.decided.pop_front();
        self.gone = now + takes;
        Some(packet)
    }
}

impl Endpoint for Clocked {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.advance(cx);
        if msg.len > self.config.longest() {
            cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        let cycle = Clock::of(cx.draw).input(cx.now);
        let Entrance { queue, opens } = &mut self.entrance;
        let taken = if queue.is_empty() && *opens <= cycle {
            self.sender.submit(Time(cycle), msg, &self.config)
        } else {
            queue.push_back(*msg);
            true
        };
        if taken && queue.is_empty() {
            *opens = cycle + 1;
        }
        self.arm(cx);
        if taken { Submit::Taken } else { Submit::Full }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.advance(cx);
        let cycle = Clock::of(cx.draw).input(cx.now);
        let effect = cycle + u64::from(self.config.ingress_cycles);
        match understand(pkt, self.config.program) {
            None => cx.fx.count(Stat::Rejected),
            Some(Known::Control(header)) => self.due(effect, Due::Control(pkt.src, header)),
            Some(Known::Data(data)) => {
                let lookup = cycle + LOOKUP;
                let granted = Some(Time(lookup + GRANT_RESTART));
                let dates = Dates { lookup: Time(lookup), effect: Time(effect), granted };
                let whole = self.arrivals.on_data(dates, &data, &self.config, cx.fx);
                if let Some(key) = whole {
                    self.due(effect, Due::Delivered(key));
                }
            }
        }
        self.arm(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.armed = Time::NEVER;
        self.advance(cx);
        self.arm(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.advance(cx);
        self.arm(cx);
        // One arbiter for all classes, so a pause of any of them pauses all.
        if port.open != u8::MAX {
            return Tx::Idle;
        }
        if let Some(packet) = self.line.go(cx.now) {
            *slot = packet;
            slot.path = path(cx, slot.dst, slot.span.msg);
            return Tx::Sent;
        }
        let clock = Clock::of(cx.draw);
        let out = u64::from(self.config.egress_cycles);
        let decided = || Some(clock.begin(self.decides(clock)? + out).max(self.line.free()));
        self.line.start().or_else(decided).map_or(Tx::Idle, Tx::NotBefore)
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.advance(cx);
        let cycle = Clock::of(cx.draw).input(cx.now);
        let Entrance { queue, opens } = &mut self.entrance;
        if let Some(place) = queue.iter().position(|msg| msg.id == id) {
            queue.remove(place);
            if place == 0 && *opens == u64::MAX {
                *opens = cycle;
            }
            cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
        } else {
            let cycle = cycle.max(self.cancels);
            self.cancels = cycle + 1;
            self.due(cycle, Due::Cancel(id));
        }
        self.arm(cx);
    }
}
