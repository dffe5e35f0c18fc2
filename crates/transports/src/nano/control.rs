//! Control packets: what they answer, and in which order they leave (specs/nanotransport.md#8).

use endpoint::{Flags, MsgId, Packet, Span};
use units::{Dur, HostId, Time};
use wire::nano::{Kind, Protocol, Repr};

use super::config::CONTROL;
use crate::outbox::Outbox;

/// Control packets that may wait for the interface; more are lost.
const WAITING_MAX: usize = 1 << 16;
/// Of each kind in a clocked NIC.
const CLOCKED_MAX: usize = 256;

/// The traffic class of control packets: ToS 0.
pub(super) const CLASS: u8 = 7;

/// A packet of data, or what a switch has left of it, as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) from: HostId,
    pub(super) msg: MsgId,
    pub(super) header: Repr,
    pub(super) chopped: bool,
    /// Bytes of the application in it.
    pub(super) len: u32,
}

impl Data {
    /// Packets of its message.
    pub(super) fn packets(&self) -> u16 {
        self.header.msg_len.div_ceil(wire::nano::PAYLOAD)
    }

    /// A control packet to its sender. What describes the message there is echoed.
    pub(super) fn reply(&self, kind: Kind, pkt_offset: u16, credit: u16) -> Control {
        let header = Repr {
            kind,
            src_context: self.header.dst_context,
            dst_context: self.header.src_context,
            // At most 64.
            pkt_offset: pkt_offset as u8,
            credit,
            grant_prio: 0,
            ..self.header
        };
        Control { to: self.from, answers: self.msg, header }
    }
}

/// A control packet that waits for the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) to: HostId,
    pub(super) answers: MsgId,
    pub(super) header: Repr,
}

impl Control {
    pub(super) fn write(&self, protocol: Protocol, me: HostId, slot: &mut Packet) {
        slot.src = me;
        slot.dst = self.to;
        slot.class = CLASS;
        slot.wire_len = CONTROL;
        slot.flags = Flags::CONTROL;
        slot.span = Span { msg: self.answers, offset: 0, len: 0 };
        put_header(slot, protocol, &self.header);
    }
}

/// Write the transport header of a packet.
pub(super) fn put_header(slot: &mut Packet, protocol: Protocol, header: &Repr) {
    slot.proto = protocol.number();
    slot.put_header(&header.to_bytes(protocol));
}

/// The control side of the arbiter. nano-NDP has one queue; nano-Homa sends acknowledgements before
/// refusals before grants.
#[derive(Debug)]
pub(super) struct Controls {
    protocol: Protocol,
    /// With the instant at which each came in, which never falls within a queue.
    queues: [Outbox<(Time, Control)>; 3],
}

impl Controls {
    pub(super) const fn new(protocol: Protocol) -> Self {
        Self { protocol, queues: [const { Outbox::new(WAITING_MAX) }; 3] }
    }

    /// Those at the arbiter of a clocked NIC.
    pub(super) const fn clocked(protocol: Protocol) -> Self {
        Self { protocol, queues: [const { Outbox::new(CLOCKED_MAX) }; 3] }
    }

    /// Those that come in by `now` go on to `to`. How many find no room there.
    pub(super) fn forward(&mut self, now: Time, to: &mut Self) -> u64 {
        let mut lost = 0;
        for (from, to) in self.queues.iter_mut().zip(&mut to.queues) {
            while from.front().is_some_and(|(at, _)| *at <= now) {
                let Some(control) = from.pop() else { break };
                lost += u64::from(to.is_full());
                to.push(control);
            }
        }
        lost
    }

    pub(super) fn push(&mut self, at: Time, control: Control) {
        let queue = match (self.protocol, control.header.kind) {
            (Protocol::Ndp, _) | (_, Kind::Ack { .. } | Kind::Data { .. }) => 0,
            (Protocol::Homa, Kind::Nack { .. }) => 1,
            (Protocol::Homa, Kind::Credit) => 2,
        };
        self.queues[queue].push((at, control));
    }

    /// The first to leave of those that have been in the pipeline for `egress` at `now`.
    pub(super) fn pop(&mut self, now: Time, egress: Dur) -> Option<Control> {
        let ready = |queue: &&mut Outbox<(Time, Control)>| {
            queue.front().is_some_and(|(at, _)| *at + egress <= now)
        };
        self.queues.iter_mut().find(ready)?.pop().map(|(_, control)| control)
    }

    /// When the first came in.
    pub(super) fn first(&self) -> Option<Time> {
        self.queues.iter().filter_map(Outbox::front).map(|(at, _)| *at).min()
    }
}
