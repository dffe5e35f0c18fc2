//! Messages in flight to others: what has been delivered, what may be sent, what waits to be sent
//! (specs/nanotransport.md#6).

mod descriptors;

use endpoint::{Effects, FailReason, Flags, Msg, MsgId, Packet, Span, Stat};
use units::{HostId, MsgKey, Time};
use wire::nano::{Kind, PAYLOAD, Repr};

use super::buffers::{Buffer, Buffers};
use super::config::{Config, HEADERS, Program};
use super::control::{CLASS, put_header};
use super::homa::UNSCHEDULED;
use descriptors::{Descriptor, Descriptors, Next, Rank};

/// A message that is not delivered yet. Bit i of a bitmap is packet i.
#[derive(Debug)]
struct Message {
    id: MsgId,
    to: HostId,
    channel: u32,
    /// Its number in packets; `slot` in [`Packetization::slots`] is the low bits of it.
    number: u16,
    /// Bytes that the application gave.
    len: u16,
    buffer: Buffer,
    all: u64,
    delivered: u64,
    /// Waiting for credit, or refused (the specification's toBtx).
    held: u64,
    /// In a descriptor.
    queued: u64,
    sent: u64,
    /// Packets below this may be sent.
    credit: u16,
    /// The highest packet sent.
    sent_max: u8,
    /// The priority of its packets, 0 the highest.
    priority: u8,
    /// When its timer is looked at and found due.
    timer: Time,
    /// `sent_max` when the timer was set: what a timeout sends again ends there.
    repeat_to: u8,
    /// Something has been delivered since then.
    progress: bool,
    /// Timeouts in a row without progress.
    timeouts: u32,
}

impl Message {
    /// A number for the packets of message `id` in `slot` of `slots`. With the low bits of `id` as
    /// context it names 28 bits of it (for 16 slots).
    const fn number(id: MsgId, slot: usize, slots: u16) -> u16 {
        let generations = 65_536 / slots as u64;
        slot as u16 + slots * ((id.0 >> 16) % generations) as u16
    }

    const fn context(&self) -> u16 {
        self.id.0 as u16
    }

    /// The header's length: an empty message travels as one byte that means nothing.
    fn wire_len(&self) -> u16 {
        self.len.max(1)
    }

    /// Bytes that packet `n` carries on the wire, and those of them that are the application's.
    fn payload(&self, n: u16) -> (u16, u16) {
        let begin = n * PAYLOAD;
        let cut = |len: u16| (len - begin.min(len)).min(PAYLOAD);
        (cut(self.wire_len()), cut(self.len))
    }
}

/// The sending half of a NIC.
#[derive(Debug)]
pub(super) struct Packetization {
    slots: Vec<Option<Message>>,
    buffers: Buffers,
    descriptors: Descriptors,
}

/// Packets below `n`.
const fn below(n: u16) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

impl Packetization {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            slots: Vec::new(),
            buffers: Buffers::new(&config.buffers),
            descriptors: Descriptors::new(if config.clocked { CLOCKED_PLACES } else { usize::MAX }),
        }
    }

    /// The application writes `msg`, all of it at once: what a round trip holds may leave, the rest
    /// waits for credit. False if there is no number or no buffer for it, or if it has to wait for
    /// one before it on its channel (the NIC keeps no order between messages).
    pub(super) fn submit(&mut self, now: Time, msg: &Msg, config: &Config) -> bool {
        let ahead = |m: &Message| msg.channel != 0 && (m.to, m.channel) == (msg.dst, msg.channel);
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let full = slot >= usize::from(config.tx_messages);
        if full || self.slots.iter().flatten().any(ahead) {
            return false;
        }
        let Some(buffer) = self.buffers.take(&config.buffers, msg.len) else { return false };
        // Buffers hold less than 64 KiB.
        let len = msg.len as u16;
        let all = below(len.max(1).div_ceil(PAYLOAD));
        let first = all & below(config.rtt_packets);
        let message = Message {
            id: msg.id,
            to: msg.dst,
            channel: msg.channel,
            number: Message::number(msg.id, slot, config.tx_messages),
            len,
            buffer,
            all,
            delivered: 0,
            held: all & !first,
            queued: 0,
            sent: 0,
            credit: config.rtt_packets,
            sent_max: 0,
            priority: 0,
            timer: config.fires(now, config.timeout, slot, config.tx_messages),
            repeat_to: 0,
            progress: false,
            timeouts: 0,
        };
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        let message = self.slots[slot].insert(message);
        schedule(&mut self.descriptors, message, slot, Rank::Initial, first, false, now);
        true
    }

    /// The message that a control packet of `from` with `header` is about; none if that is over.
    fn find(&self, from: HostId, header: &Repr, config: &Config) -> Option<usize> {
        let slot = usize::from(header.tx_msg_id % config.tx_messages);
        let message = self.slots.get(slot)?.as_ref()?;
        let named = (message.to, message.number, message.context());
        (named == (from, header.tx_msg_id, header.dst_context)).then_some(slot)
    }

    /// A control packet has passed the ingress pipeline: the events of
    /// specs/nanotransport.md#10,11.
    pub(super) fn on_control(
        &mut self,
        now: Time,
        from: HostId,
        header: &Repr,
        config: &Config,
        fx: &mut Effects,
    ) {
        let Some(slot) = self.find(from, header, config) else {
            fx.count(Stat::Rejected);
            return;
        };
        let offset = u16::from(header.pkt_offset);
        let single = 1u64.checked_shl(u32::from(offset)).unwrap_or(0);
        let refused = matches!(header.kind, Kind::Nack { .. });
        let delivered = match (config.program, header.kind) {
            (Program::Ndp, Kind::Ack { .. }) => single,
            (Program::Ndp, _) => 0,
            (_, Kind::Nack { .. }) => below(header.credit),
            (_, _) => below(offset),
        };
        // What was never sent cannot have come: a peer that says so is not believed.
        let sent = self.slots[slot].as_ref().map_or(0, |message| message.sent);
        if delivered & !sent != 0 {
            fx.count(Stat::Rejected);
        }
        let delivered = delivered & sent;
        if self.deliver(slot, delivered, config, fx) {
            return;
        }
        let Some(message) = &mut self.slots[slot] else { return };
        if refused {
            message.held |= single & message.all & !message.delivered & !message.queued;
        }
        let credit = match (config.program, header.kind) {
            (Program::Ndp, Kind::Ack { pull } | Kind::Nack { pull }) => pull,
            (_, Kind::Credit) => true,
            _ => false,
        };
        if credit {
            message.credit = message.credit.max(header.credit);
        }
        if config.program != Program::Ndp && header.kind == Kind::Credit {
            message.priority = header.grant_prio;
        }
        // In nano-Homa's NACK this says that no GRANT will follow (E2).
        let at_once = refused && header.grant_prio != 0;
        if credit || at_once {
            let send = message.held & below(message.credit);
            message.held &= !send;
            schedule(&mut self.descriptors, message, slot, Rank::Credit, send, refused, now);
        }
    }

    /// `packets` have been delivered. Whether that ends the message.
    fn deliver(&mut self, slot: usize, packets: u64, config: &Config, fx: &mut Effects) -> bool {
        let Some(message) = &mut self.slots[slot] else { return true };
        message.progress |= packets & message.all & !message.delivered != 0;
        message.delivered |= packets & message.all;
        // What was refused and has come since is not sent again (E4).
        message.held &= !message.delivered;
        let whole = message.delivered == message.all;
        if whole {
            fx.acked(message.id);
            self.free(slot, config);
        }
        whole
    }

    fn free(&mut self, slot: usize, config: &Config) -> Option<Message> {
        let message = self.slots.get_mut(slot)?.take()?;
        self.buffers.give_back(&config.buffers, message.buffer);
        Some(message)
    }

    /// The application does not want `id` delivered any more. On a channel it is finished all the
    /// same: the receiver could complete it after the next one.
    pub(super) fn cancel(&mut self, id: MsgId, me: HostId, config: &Config, fx: &mut Effects) {
        let of_it =
            |slot: &Option<Message>| slot.as_ref().is_some_and(|m| m.id == id && m.channel == 0);
        if let Some(slot) = self.slots.iter().position(of_it) {
            self.free(slot, config);
            fx.failed(MsgKey { src: me, id }, FailReason::Cancelled);
        }
    }

    /// When the first timer will be found due.
    pub(super) fn next_timeout(&self) -> Time {
        self.slots.iter().flatten().map(|m| m.timer).min().unwrap_or(Time::NEVER)
    }

    /// Handle the timers that are found due by `now`. No two are at one instant.
    pub(super) fn on_timer(&mut self, now: Time, me: HostId, config: &Config, fx: &mut Effects) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].as_ref().is_some_and(|m| m.timer <= now) {
                self.timeout(now, slot, me, config, fx);
            }
        }
    }

    /// TimeoutEvent (specs/nanotransport.md#6.3).
    fn timeout(&mut self, now: Time, slot: usize, me: HostId, config: &Config, fx: &mut Effects) {
        let Some(message) = &mut self.slots[slot] else { return };
        let progress = message.progress || message.sent_max > message.repeat_to;
        message.timeouts = if progress { 0 } else { message.timeouts + 1 };
        if config.max_timeouts.is_some_and(|most| message.timeouts >= most) {
            fx.failed(MsgKey { src: me, id: message.id }, FailReason::TimedOut);
            self.free(slot, config);
            return;
        }
        let mut repeat = message.all & !message.delivered & below(u16::from(message.repeat_to) + 1);
        // Everything sent has arrived and what would permit more is lost: ask with the first packet
        // that waits.
        let idle = message.queued == 0 && message.sent_max <= message.repeat_to;
        if repeat == 0 && idle && config.probe {
            repeat = message.held & message.held.wrapping_neg();
        }
        message.held &= !repeat;
        message.repeat_to = message.sent_max;
        message.progress = false;
        message.timer = config.fires(now, config.timeout, slot, config.tx_messages);
        if schedule(&mut self.descriptors, message, slot, Rank::Timeout, repeat, true, now) {
            fx.timeout(Stat::OtherTimeout, message.id);
        }
    }

    /// Whether message `id`, which is at `place` if it is not over, is not.
    fn alive(slots: &[Option<Message>]) -> impl Fn(usize, MsgId) -> bool {
        |place, id| slots.get(place).and_then(Option::as_ref).is_some_and(|m| m.id == id)
    }

    /// Since when the first waits of those that a clocked arbiter may choose.
    pub(super) fn waiting(&self) -> Option<Time> {
        self.descriptors.waiting(Self::alive(&self.slots))
    }

    /// Whether a clocked arbiter has a descriptor to drop.
    pub(super) fn has_dead(&self) -> bool {
        self.descriptors.has_dead(Self::alive(&self.slots))
    }

    /// One cycle of a clocked arbiter: drop what is over, and write a packet of what came before
    /// `cycle` if one is `wanted`.
    pub(super) fn in_cycle(
        &mut self,
        cycle: Time,
        wanted: bool,
        me: HostId,
        config: &Config,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> bool {
        let next = self.descriptors.in_cycle(cycle, wanted, Self::alive(&self.slots));
        next.is_some_and(|next| self.send(next, me, config, slot, fx))
    }

    /// Write the packet of data that begins on the wire at `now`, if one has passed the pipeline.
    pub(super) fn poll(
        &mut self,
        now: Time,
        me: HostId,
        config: &Config,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> bool {
        let slots = &self.slots;
        let id_of = |place: usize| Some(slots.get(place)?.as_ref()?.id);
        let Some(next) = self.descriptors.next(now, config.egress(), id_of) else { return false };
        self.send(next, me, config, slot, fx)
    }

    /// Write the packet that was chosen.
    fn send(
        &mut self,
        next: Next,
        me: HostId,
        config: &Config,
        slot: &mut Packet,
        fx: &mut Effects,
    ) -> bool {
        let Some(message) = &mut self.slots[next.place] else { return false };
        let (n, bit) = (next.packet, 1 << next.packet);
        message.queued &= !bit;
        if message.sent & bit != 0 {
            fx.count_for(Stat::Retransmission, message.id);
        }
        message.sent |= bit;
        message.sent_max = message.sent_max.max(n as u8);
        let priority = match next.repeated {
            // Nothing that is sent again goes with the first packets.
            true if config.program != Program::Ndp => message.priority.max(UNSCHEDULED),
            _ => message.priority,
        };
        write(slot, me, message, n, priority, config);
        true
    }

    /// When the first descriptor came in that has not been drained.
    pub(super) fn first(&self) -> Option<Time> {
        self.descriptors.first()
    }
}

/// Descriptors that wait in each queue of a clocked NIC at most.
const CLOCKED_PLACES: usize = 256;

/// Have `packets` of a message sent, those left out that wait to be sent already. Whether any are:
/// where there is no place for a descriptor, they are held.
fn schedule(
    descriptors: &mut Descriptors,
    message: &mut Message,
    place: usize,
    rank: Rank,
    packets: u64,
    repeated: bool,
    now: Time,
) -> bool {
    let packets = packets & !message.queued;
    if packets == 0 {
        return false;
    }
    let descriptor = Descriptor { at: now, place, id: message.id, packets, repeated };
    let has_place = descriptors.push(rank, descriptor);
    *(if has_place { &mut message.queued } else { &mut message.held }) |= packets;
    has_place
}

/// The egress pipeline: packet `n` of a message.
fn write(slot: &mut Packet, me: HostId, message: &Message, n: u16, priority: u8, config: &Config) {
    let (on_wire, carried) = message.payload(n);
    slot.src = me;
    slot.dst = message.to;
    slot.class = CLASS.saturating_sub(priority);
    slot.wire_len = HEADERS + on_wire;
    slot.flags = Flags::default();
    let offset = u64::from(n) * u64::from(PAYLOAD);
    slot.span = Span { msg: message.id, offset, len: u32::from(carried) };
    let header = Repr {
        kind: Kind::Data { chopped: false },
        src_context: message.context(),
        dst_context: 0,
        msg_len: message.wire_len(),
        pkt_offset: n as u8,
        credit: 0,
        grant_prio: 0,
        tx_msg_id: message.number,
        buf_ptr: message.buffer.pointer,
        buf_size_class: message.buffer.class,
    };
    put_header(slot, config.program.protocol(), &header);
}
