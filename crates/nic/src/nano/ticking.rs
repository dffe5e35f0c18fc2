//! A machine of cycles on a host's clock and wire, as an [`Endpoint`] (docs/nic.md, C1 and C5).

use std::ops::RangeInclusive;

use endpoint::{
    Cx, Effects, Endpoint, FailReason, Flags, Msg, MsgId, Packet, Stat, Submit, TimerId, Tx, TxPort,
};
use units::{HostId, MsgKey, Time};

use super::clock::Edges;
use super::config::Config;
use super::mac::Mac;
use super::paths::Paths;
use super::submissions::Submissions;

/// The only timer: when something happens by itself.
const WAKE: TimerId = TimerId(0);

/// A NIC of cycles (docs/nic.md, C1 to C11): the model ([`super::blocks::clocked::Clocked`]), or a
/// circuit that keeps to the same law.
///
/// Whoever drives it gives all inputs of a cycle before its step, and steps in the order of time.
pub trait Machine: Send {
    /// The application of host `me` submits `msg` in `cycle`: one in a cycle.
    fn submit(&mut self, cycle: u64, me: HostId, msg: &Msg, fx: &mut Effects) -> Submit;

    /// The application of host `me` does not want message `id` delivered any more.
    fn cancel(&mut self, cycle: u64, me: HostId, id: MsgId);

    /// `pkt` has come to host `me` in `cycle`, from behind so many switches.
    fn receive(&mut self, cycle: u64, me: HostId, packet: (&Packet, u32), fx: &mut Effects);

    /// The next cycle in which something may happen without an input, the arbiter's choice aside.
    fn next(&self) -> Option<u64>;

    /// The cycle in which the arbiter takes a packet if nothing else happens before and the wire
    /// lets it in these cycles.
    fn chooses(&self, open: RangeInclusive<u64>) -> Option<u64>;

    /// All of `cycle` at host `me`; the arbiter may choose if `tx_open`. Whether a packet is in
    /// `slot`, and in which cycle the arbiter has chosen it. Its path is not chosen.
    fn step(
        &mut self,
        cycle: u64,
        tx_open: bool,
        me: HostId,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> Option<u64>;
}

/// See the top of the file.
pub struct Ticking<M> {
    machine: M,
    submissions: Submissions,
    mac: Mac,
    paths: Paths,
    armed: Time,
}

impl<M: Machine> Ticking<M> {
    /// `machine`, in its reset, is a NIC of `config`.
    pub fn new(machine: M, config: &Config) -> Self {
        let mac = Mac::new(config.egress_cycles.into());
        let (submissions, paths) = (Submissions::default(), Paths::new(config, false));
        Self { machine, submissions, mac, paths, armed: Time::NEVER }
    }

    pub(super) const fn machine(&self) -> &M {
        &self.machine
    }

    pub(super) const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    pub(super) fn into_machine(self) -> M {
        self.machine
    }

    /// Everything of the cycles that have begun.
    pub(super) fn advance(&mut self, cx: &mut Cx<'_>) {
        let edges = Edges::of(cx.draw);
        let Some(last) = edges.last_by(cx.now) else { return };
        loop {
            let chooses = self.machine.chooses(self.mac.open(edges));
            let happens = self.machine.next().into_iter().chain(chooses).min();
            let enters = self.submissions.next();
            let next = happens.into_iter().chain(enters).min();
            let Some(cycle) = next.filter(|next| *next <= last) else { return };
            if enters == Some(cycle) {
                // An input of the cycle, which comes after this.
                self.enter(cycle, cx);
                continue;
            }
            let before = cx.fx.as_slice().len();
            let (mut packet, open) = (Packet::EMPTY, chooses == Some(cycle));
            if let Some(chosen) = self.machine.step(cycle, open, cx.me, &mut packet, cx.fx) {
                let takes = cx.net.rate(0).serialise(u64::from(packet.wire_len));
                self.mac.push(edges, chosen, takes, packet);
            }
            self.submissions.after(cycle, &cx.fx.as_slice()[before..]);
        }
    }

    /// The message that has waited for longest enters in `cycle`, if there is room.
    fn enter(&mut self, cycle: u64, cx: &mut Cx<'_>) {
        let Some(msg) = self.submissions.pop() else { return };
        match self.machine.submit(cycle, cx.me, &msg, cx.fx) {
            Submit::Taken => self.submissions.entered(cycle),
            Submit::Full => self.submissions.refused(msg),
        }
    }

    /// Be woken when the next thing happens by itself.
    pub(super) fn arm(&mut self, cx: &mut Cx<'_>) {
        let next = self.machine.next().into_iter().chain(self.submissions.next()).min();
        let next = next.map_or(Time::NEVER, |cycle| Edges::of(cx.draw).begin(cycle));
        if next != self.armed {
            self.armed = next;
            cx.fx.arm(WAKE, next);
        }
    }

    /// The wire is free: the packet that begins now.
    fn poll(&mut self, cx: &Cx<'_>, slot: &mut Packet) -> Tx {
        let edges = Edges::of(cx.draw);
        if let Some(packet) = self.mac.take(cx.now) {
            *slot = packet;
            slot.path = self.paths.next(cx, slot.dst, slot.span.msg, None);
            return Tx::Sent;
        }
        let chooses = || self.machine.chooses(self.mac.open(edges));
        let starts = || Some(self.mac.start(edges, chooses()?));
        self.mac.next().or_else(starts).map_or(Tx::Idle, Tx::NotBefore)
    }
}

/// The cycle of an input now.
pub(super) const fn input_cycle(cx: &Cx<'_>) -> u64 {
    Edges::of(cx.draw).first_after(cx.now)
}

impl<M: Machine> Endpoint for Ticking<M> {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.advance(cx);
        let cycle = input_cycle(cx);
        let mut taken = Submit::Taken;
        if self.submissions.wait_in(cycle) {
            self.submissions.push(*msg);
        } else {
            taken = self.machine.submit(cycle, cx.me, msg, cx.fx);
            if taken == Submit::Taken {
                self.submissions.entered(cycle);
            }
        }
        self.arm(cx);
        taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.advance(cx);
        if pkt.flags.has(Flags::BOUNCED) {
            cx.fx.count(Stat::Rejected);
        } else {
            let switches = cx.net.hops(pkt.src).saturating_sub(1);
            self.machine.receive(input_cycle(cx), cx.me, (pkt, switches), cx.fx);
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
        // Which class the next packet has is known once it is made, so a pause of any pauses all.
        if port.open == u8::MAX { self.poll(cx, slot) } else { Tx::Idle }
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.advance(cx);
        if self.submissions.cancel(input_cycle(cx), id) {
            cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
        } else {
            self.machine.cancel(input_cycle(cx), cx.me, id);
        }
        self.arm(cx);
    }
}
