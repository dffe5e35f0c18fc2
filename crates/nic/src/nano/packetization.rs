//! Packetization: messages that are being sent, which of their packets may go, must go again, or
//! have arrived (specs/nanotransport.md#6).
//!
//! A message is here whole from its submission. A packet is waiting for credit (`to_btx`), or for
//! the wire in one descriptor (`waiting`), or sent; `delivered` says which have arrived.
//! Descriptors stand in three queues: first transmissions, what credit has released, what a timeout
//! repeats.

use std::collections::VecDeque;

use units::{Dur, Time};

use super::bits::{PACKETS_MAX, PAYLOAD, below, bit, packets};
use super::buffers::{Buffer, Buffers, FreeList};
use super::config::Config;
use super::flows::{Flows, Pace, flow_of};
use super::timers::Timers;

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The transport: its IP protocol.
    pub protocol: u8,
    /// The receiving host.
    pub dst_ip: u32,
    /// The context there.
    pub dst_context: u16,
    /// The context that sends.
    pub src_context: u16,
    /// Bytes, at least 1.
    pub msg_len: u16,
    /// What stands in the bits of its number above those that choose the cell.
    pub generation: u16,
    /// What the user calls it.
    pub tag: u64,
}

#[cfg(test)]
impl Outgoing {
    /// A message of one packet.
    pub(super) const fn for_test(tag: u64) -> Self {
        let (dst_ip, dst_context, src_context) = (1, 0, 3);
        Self { protocol: 155, dst_ip, dst_context, src_context, msg_len: 1024, generation: 0, tag }
    }
}

/// A packet to send: metadata for the egress pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket {
    /// Its message.
    pub message: Outgoing,
    /// The message's number.
    pub tx_msg_id: u16,
    /// Its buffer.
    pub buffer: Buffer,
    /// Index of the packet.
    pub pkt_offset: u8,
    /// Nothing of the message has been sent before.
    pub is_new_msg: bool,
    /// A timeout or a NACK asked for it.
    pub is_rtx: bool,
    /// It has been sent before, whoever asked for it.
    pub again: bool,
}

/// A `creditToBtx` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// This packet is to be sent again.
    pub rtx: Option<u8>,
    /// Raise the credit to this, and send what waits below it.
    pub new_credit: Option<u16>,
}

/// What a timeout has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// The message's tag.
    pub tag: u64,
    /// The message was given up and is gone.
    pub gave_up: bool,
    /// Packets that it sends again.
    pub repeats: u32,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    out: Outgoing,
    packets: u8,
    buffer: Buffer,
    delivered: u64,
    credit: u16,
    to_btx: u64,
    waiting: u64,
    sent: u64,
    /// Sent, not in flight any more, and not sent again: the program said so.
    trimmed: u64,
    /// Highest packet that was sent.
    max_tx: u8,
    /// `delivered` when the timer was last started.
    delivered_before: u64,
    timeouts: u32,
    /// Whether packets have been repeated since the timer was last started.
    repeated: bool,
    /// How many messages came before it: tells it from others that had its id.
    serial: u64,
}

/// Packets of a message that wait for the wire.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    since: Time,
    id: u16,
    serial: u64,
    bits: u64,
    is_rtx: bool,
}

/// The three queues, by falling priority.
#[derive(Clone, Copy, Debug)]
enum Queue {
    Init,
    Credit,
    Timeout,
}

/// Places of each queue of a clocked NIC, descriptors' and control's (C8).
pub(super) const QUEUE_PLACES: usize = 256;

/// See the top of the file.
#[derive(Debug)]
pub struct Packetization {
    messages: Vec<Option<Message>>,
    ids: FreeList,
    buffers: Buffers,
    timers: Timers<u8>,
    queues: [VecDeque<Descriptor>; 3],
    /// Descriptors that find room in each of them.
    places: usize,
    rtt_pkts: u16,
    timeout: Dur,
    max_timeouts: Option<u32>,
    probe: bool,
    accepted: u64,
    /// Where senders decide by flow how fast they send; then messages need no credit.
    flows: Option<Flows>,
}

impl Packetization {
    /// Nothing is being sent. With `by_flow`, windows are those of flows (see [`Flows`]),
    /// `rtt_packets` each at first.
    #[must_use]
    pub fn new(config: &Config, by_flow: bool) -> Self {
        let rtt_pkts = if by_flow { u16::from(PACKETS_MAX) } else { config.rtt_packets };
        Self {
            messages: vec![None; usize::from(config.tx_messages)],
            ids: FreeList::new(config.tx_messages),
            buffers: Buffers::new(&config.classes),
            timers: Timers::new(config.tx_messages, config.tick()),
            queues: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            rtt_pkts,
            timeout: config.tick().of(config.timeout),
            places: if config.clocked { QUEUE_PLACES } else { usize::MAX },
            max_timeouts: config.max_timeouts,
            probe: config.probe,
            accepted: 0,
            flows: by_flow.then(|| Flows::new(config.rtt_packets)),
        }
    }

    /// The longest message that has a buffer, bytes.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.buffers.longest()
    }

    /// Take a message, if an id and a buffer are free: its first packets may go, the others wait
    /// for credit (specs/nanotransport.md#6.2).
    pub fn submit(&mut self, now: Time, out: Outgoing) -> bool {
        if self.ids.left() == 0 {
            return false;
        }
        let Some(buffer) = self.buffers.take(u32::from(out.msg_len)) else { return false };
        let Some(id) = self.ids.take() else { return false };
        let packets = packets(out.msg_len);
        let all = below(u16::from(packets));
        self.messages[usize::from(id)] = Some(Message {
            out,
            packets,
            buffer,
            delivered: 0,
            credit: self.rtt_pkts,
            to_btx: all & !below(self.rtt_pkts),
            waiting: 0,
            sent: 0,
            trimmed: 0,
            max_tx: 0,
            delivered_before: 0,
            timeouts: 0,
            repeated: false,
            serial: self.accepted,
        });
        self.accepted += 1;
        self.timers.schedule(id, now + self.timeout, 0);
        self.schedule(now, Queue::Init, id, all & below(self.rtt_pkts), false);
        true
    }

    /// The id of the message that a control packet names, unless that is over: its number and the
    /// context that sends it must be those of the message that has the cell now.
    #[must_use]
    pub fn id_of(&self, tx_msg_id: u16, src_context: u16) -> Option<u16> {
        let id = self.cell(tx_msg_id);
        let out = self.messages.get(usize::from(id))?.as_ref()?.out;
        let same = self.number(id, out.generation) == tx_msg_id && out.src_context == src_context;
        same.then_some(id)
    }

    /// The low bits of a message's number choose its cell.
    #[must_use]
    pub fn cell(&self, tx_msg_id: u16) -> u16 {
        tx_msg_id & (self.messages.len() as u16).wrapping_sub(1)
    }

    fn number(&self, id: u16, generation: u16) -> u16 {
        id | generation.wrapping_mul(self.messages.len() as u16)
    }

    fn message(&mut self, id: u16) -> Option<&mut Message> {
        self.messages.get_mut(usize::from(id)).and_then(Option::as_mut)
    }

    /// The packets of message `id` that have been sent. Bit i: packet i.
    #[must_use]
    pub fn sent(&self, id: u16) -> u64 {
        let message = self.messages.get(usize::from(id)).and_then(Option::as_ref);
        message.map_or(0, |message| message.sent)
    }

    /// A `delivered` event: these packets have arrived. Returns the tag of a message of which all
    /// have; its id is free then.
    pub fn delivered(&mut self, now: Time, id: u16, arrived: u64) -> Option<u64> {
        let message = self.message(id)?;
        let all = below(u16::from(message.packets));
        let before = message.in_flight();
        message.delivered |= arrived & all;
        message.to_btx &= !message.delivered;
        let done = (before & !message.in_flight()).count_ones();
        let (flow, whole) = (message.flow(), message.delivered == all);
        if let Some(flows) = &mut self.flows {
            flows.done(now, flow, done);
        }
        if whole { self.free(now, id) } else { None }
    }

    /// The program's word on a flow.
    pub fn set_flow(&mut self, now: Time, flow: usize, pace: Pace) {
        if let Some(flows) = &mut self.flows {
            flows.set(now, flow, pace);
        }
    }

    /// A `creditToBtx` event (specs/nanotransport.md#6.3). A packet that has arrived is not marked
    /// (specs/homa-tr.md#E4), and a credit that is lower than what there was means nothing (a PULL
    /// was overtaken).
    pub fn credit(&mut self, now: Time, id: u16, event: Credit) {
        let Some(message) = self.message(id) else { return };
        if let Some(offset) = event.rtx {
            let all = below(u16::from(message.packets));
            message.to_btx |= bit(offset) & all & !message.delivered & !message.waiting;
            let lost = bit(offset) & message.in_flight();
            message.trimmed |= lost;
            let flow = message.flow();
            if let Some(flows) = &mut self.flows {
                flows.done(now, flow, lost.count_ones());
            }
        }
        let Some(message) = self.message(id) else { return };
        if let Some(credit) = event.new_credit {
            message.credit = message.credit.max(credit);
            let send = message.to_btx & below(message.credit);
            self.schedule(now, Queue::Credit, id, send, event.rtx.is_some());
        }
    }

    /// Put packets into a descriptor, those that do not wait in one already. How many that are;
    /// where the queue is full they wait as if for credit (C8).
    fn schedule(&mut self, now: Time, queue: Queue, id: u16, bits: u64, is_rtx: bool) -> u32 {
        let has_room = self.queues[queue as usize].len() < self.places;
        let Some(message) = self.message(id) else { return 0 };
        message.to_btx &= !bits;
        let bits = bits & !message.waiting;
        if !has_room {
            message.to_btx |= bits;
            return 0;
        }
        message.waiting |= bits;
        let serial = message.serial;
        if bits != 0 {
            let descriptor = Descriptor { since: now, id, serial, bits, is_rtx };
            self.queues[queue as usize].push_back(descriptor);
        }
        bits.count_ones()
    }

    /// When the next timeout comes.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// The next timeout at or before `now` (specs/nanotransport.md#6.3): repeat what was sent
    /// before the timer was started and has not arrived.
    pub fn on_timeout(&mut self, now: Time) -> Option<Timeout> {
        let (at, id, rtx_offset) = self.timers.pop(now)?;
        let (limit, by_flow) = (self.max_timeouts, self.flows.is_some());
        let message = self.message(id)?;
        let (tag, max_tx) = (message.out.tag, message.max_tx);
        let moved = max_tx > rtx_offset || message.delivered != message.delivered_before;
        // What its flow holds back makes no progress of its own. What is repeated may.
        let held = by_flow && message.waiting != 0 && !message.repeated;
        message.repeated = false;
        message.timeouts = match (moved, held) {
            (true, _) => 0,
            (false, true) => message.timeouts,
            (false, false) => message.timeouts + 1,
        };
        message.delivered_before = message.delivered;
        if limit.is_some_and(|limit| message.timeouts >= limit) {
            self.free(at, id);
            return Some(Timeout { tag, gave_up: true, repeats: 0 });
        }
        // What was trimmed has waited for room until now: from here on it is taken as in flight.
        let (flow, trimmed) = (message.flow(), message.trimmed & !message.delivered);
        message.trimmed = 0;
        if let Some(flows) = &mut self.flows {
            flows.again(flow, trimmed.count_ones());
        }
        let message = self.message(id)?;
        let mut rtx = below(u16::from(rtx_offset) + 1) & !message.delivered;
        rtx &= below(u16::from(message.packets));
        let stuck = rtx == 0 && max_tx <= rtx_offset && message.waiting == 0;
        if self.probe && stuck {
            // A lost GRANT or PULL with everything acknowledged: no packet is left that could be
            // answered, so one goes beyond the credit.
            let message = self.message(id)?;
            rtx = message.to_btx & message.to_btx.wrapping_neg();
        }
        let repeats = self.schedule(at, Queue::Timeout, id, rtx, true);
        self.timers.schedule(id, at + self.timeout, max_tx);
        Some(Timeout { tag, gave_up: false, repeats })
    }

    /// When the packet that [`Packetization::next`] would give began to wait, at the earliest; or
    /// will, if its flow is paced.
    #[must_use]
    pub fn waiting_since(&mut self) -> Option<Time> {
        self.drop_finished();
        let Some(flows) = &self.flows else {
            return self.queues.iter().filter_map(|queue| Some(queue.front()?.since)).min();
        };
        let waiting = self.queues.iter().flatten();
        waiting.filter_map(|descriptor| released(&self.messages, flows, descriptor)).min()
    }

    /// Descriptors of messages that are over are passed over at no cost.
    fn drop_finished(&mut self) {
        while self.drop_fronts() {}
    }

    /// Of each queue the front goes if its message is over (C8: one in a cycle). Whether any did.
    pub fn drop_fronts(&mut self) -> bool {
        let Self { messages, queues, .. } = self;
        let over = |d: &mut Descriptor| !d.is_alive(messages);
        queues.iter_mut().fold(false, |any, queue| queue.pop_front_if(over).is_some() | any)
    }

    /// Whether [`Packetization::drop_fronts`] would drop one.
    #[must_use]
    pub fn has_finished_front(&self) -> bool {
        self.queues.iter().filter_map(VecDeque::front).any(|d| !d.is_alive(&self.messages))
    }

    /// Since when the front waits that has waited longest, of those whose messages are not over.
    #[must_use]
    pub fn fronts_since(&self) -> Option<Time> {
        let fronts = self.queues.iter().filter_map(VecDeque::front);
        fronts.filter(|d| d.is_alive(&self.messages)).map(|d| d.since).min()
    }

    /// C8: in one cycle, the next packet of those that wait since `since` or longer, from the first
    /// queue whose front's message is not over; and each other front goes. `wanted`: whether a
    /// packet is to be taken.
    pub fn next_in_cycle(&mut self, since: Time, wanted: bool) -> Option<DataPacket> {
        let ready = |queue: &VecDeque<Descriptor>| {
            queue.front().is_some_and(|d| d.since <= since && d.is_alive(&self.messages))
        };
        let queue = self.queues.iter().position(ready).filter(|_| wanted);
        self.drop_fronts();
        self.take(queue?, 0, since)
    }

    /// The next packet of those that wait since `since` or longer.
    pub fn next(&mut self, since: Time) -> Option<DataPacket> {
        self.drop_finished();
        let (queue, place) = self.ready(since)?;
        self.take(queue, place, since)
    }

    /// The lowest packet of the descriptor at `place` of `queue`.
    fn take(&mut self, queue: usize, place: usize, since: Time) -> Option<DataPacket> {
        let queue = &mut self.queues[queue];
        let descriptor = queue.get_mut(place)?;
        let Descriptor { id, bits, is_rtx, .. } = *descriptor;
        let lowest = bits & bits.wrapping_neg();
        descriptor.bits &= !lowest;
        if descriptor.bits == 0 {
            queue.remove(place);
        }
        let message = self.messages.get_mut(usize::from(id))?.as_mut()?;
        let pkt_offset = lowest.trailing_zeros() as u8;
        message.waiting &= !lowest;
        let (again, is_new_msg) = (message.sent & lowest != 0, message.sent == 0);
        message.repeated |= again;
        if let Some(flows) = &mut self.flows {
            let (flow, counted) = (message.flow(), message.has_room(lowest));
            flows.sent(flow, counted, message.payload(pkt_offset), since);
        }
        message.sent |= lowest;
        message.trimmed &= !lowest;
        message.max_tx = message.max_tx.max(pkt_offset);
        let (out, buffer) = (message.out, message.buffer);
        let tx_msg_id = self.number(id, out.generation);
        Some(DataPacket { message: out, tx_msg_id, buffer, pkt_offset, is_new_msg, is_rtx, again })
    }

    /// The queue of the next packet and its descriptor's place there, which is the front unless the
    /// flows of those before it may not send. What waits for room to go again goes before what is
    /// new (specs/uet.md#4).
    fn ready(&self, since: Time) -> Option<(usize, usize)> {
        let Some(flows) = &self.flows else {
            let first =
                |queue: &VecDeque<Descriptor>| queue.front().is_some_and(|d| d.since <= since);
            return self.queues.iter().position(first).map(|at| (at, 0));
        };
        let may = |d: &Descriptor| {
            released(&self.messages, flows, d).is_some_and(|released| released <= since)
        };
        let order = [Queue::Credit, Queue::Init, Queue::Timeout].map(|queue| queue as usize);
        order.into_iter().find_map(|at| Some((at, self.queues[at].iter().position(may)?)))
    }

    /// Give the message up that the user calls `tag`. Returns whether there was one.
    pub fn cancel(&mut self, now: Time, tag: u64) -> bool {
        let is_it = |m: &Option<Message>| m.is_some_and(|message| message.out.tag == tag);
        let id = self.messages.iter().position(is_it);
        id.is_some_and(|id| self.free(now, id as u16).is_some())
    }

    fn free(&mut self, now: Time, id: u16) -> Option<u64> {
        let message = self.messages.get_mut(usize::from(id))?.take()?;
        if let Some(flows) = &mut self.flows {
            flows.done(now, message.flow(), message.in_flight().count_ones());
        }
        self.buffers.give(message.buffer);
        self.ids.give(id);
        self.timers.cancel(id);
        Some(message.out.tag)
    }
}

impl Descriptor {
    /// Whether its message is not over.
    fn is_alive(&self, messages: &[Option<Message>]) -> bool {
        let message = messages.get(usize::from(self.id)).and_then(Option::as_ref);
        message.is_some_and(|message| message.serial == self.serial)
    }
}

impl Message {
    /// Packets that have been sent and, as far as is known, have neither arrived nor been trimmed.
    const fn in_flight(&self) -> u64 {
        self.sent & !self.delivered & !self.trimmed
    }

    /// Whether this packet needs no room in its flow's window: it is in flight, or has arrived.
    const fn has_room(&self, packet: u64) -> bool {
        self.sent & packet & !(self.trimmed & !self.delivered) != 0
    }

    const fn flow(&self) -> usize {
        flow_of(self.out.dst_ip)
    }

    /// Bytes of payload in packet `index`.
    fn payload(&self, index: u8) -> u16 {
        self.out.msg_len.saturating_sub(u16::from(index) * PAYLOAD).min(PAYLOAD)
    }
}

/// Since when the next packet of a descriptor may be in the arbiter; `None`: its flow's window is
/// shut, or the message is over.
fn released(messages: &[Option<Message>], flows: &Flows, d: &Descriptor) -> Option<Time> {
    let message = messages.get(usize::from(d.id))?.as_ref().filter(|m| m.serial == d.serial)?;
    let lowest = d.bits & d.bits.wrapping_neg();
    let open = flows.open_since(message.flow(), message.has_room(lowest))?;
    Some(open.max(d.since))
}

#[cfg(test)]
mod tests;
