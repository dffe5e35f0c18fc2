//! The ends of a directed link: at its transmitting end the queue and the packet in service, at its
//! receiving end the count of what arrived. Both are one [`Port`], except where a link crosses from
//! one partition to another: then each partition has one, and uses its half.
//!
//! No other entity reads a port's state, so departures need no events: [`Port::replay`] works out,
//! when the port is next touched, what it has sent in the meantime. The arrival at the far end
//! needs one event per packet, which also touches the port, so nothing is ever late. Where the far
//! end is in another partition, the port is touched when a round ends (`Links::finish_round`).
//!
//! Where somebody else does read it (the ports of a switch share memory) or hears it (flow control,
//! an observer of marks), departures are events: `Network::port_departure`.

use endpoint::{Flags, Packet};
use queues::{Desc, Queue, draws};
use units::{Dur, Rate, Time};

use crate::core::Core;
use crate::digest::{self, Outcome};
use crate::host_clock::Jitter;
use crate::outcome::{LinkStats, PauseStats};
use crate::route::Leg;
use crate::slab::Slab;
use crate::topology::Link;

/// The far end of a link, by numbers of this partition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FarEnd {
    Host(u32),
    Switch(u32),
    /// In another partition: the place in the list of such links.
    Elsewhere(u32),
}

/// The same in four bytes.
#[derive(Clone, Copy)]
struct PackedEnd(u32);

impl PackedEnd {
    const HOST: u32 = 1 << 31;
    const ELSEWHERE: u32 = 1 << 30;
}

impl From<FarEnd> for PackedEnd {
    fn from(end: FarEnd) -> Self {
        Self(match end {
            FarEnd::Host(host) => host | Self::HOST,
            FarEnd::Switch(at) => at,
            FarEnd::Elsewhere(place) => place | Self::ELSEWHERE,
        })
    }
}

/// In order of use: a packet that arrives over the link touches the first line; one that goes into
/// the queue or out of it the second, and one more if it waits.
#[repr(C, align(64))]
pub(crate) struct Port {
    /// When the packet in service will have been, or was, sent.
    pub(crate) free_at: Time,
    /// The packet in service, if there is one.
    serving: Desc,
    /// From the last bit sent to its arrival, the receiving switch's latency included.
    delay: Dur,
    /// The digest chain of what arrived.
    pub(crate) arrived: u64,
    /// Packets that arrived.
    pub(crate) packets: u64,
    /// Picoseconds per byte if that is a whole number, else zero.
    ps_per_byte: u32,
    end: PackedEnd,
    /// The host at the far end, or the first port of the switch there.
    onward: u32,
    /// The number of the latest event that leads here: see [`crate::slot`].
    pub(crate) latest: u32,
    /// The most bytes the queue held.
    pub(crate) max_queue_bytes: u32,
    /// What of a packet's scratch is added to `onward`, if anything is.
    leg: Leg,
    adds: bool,
    service: Service,
    /// [`LOSSY`], [`CROWDED`], [`ACTIVE`], [`DEPARTS`], [`MARKS`].
    traits: u8,
    /// Bytes whose transmission has begun.
    pub(crate) bytes: u64,
    /// Waiting packets; `None` for a host's port, whose endpoint chooses when it is free, and for
    /// the receiving end of a link from another partition.
    pub(crate) queue: Option<Queue>,
    /// The digest chain of what happened at the transmitting end.
    pub(crate) chain: u64,
    pub(crate) rare: Box<Rare>,
    /// Whether it is among those that are looked at when a round ends.
    crossing: bool,
}

/// Not everything that arrives over the link arrives.
const LOSSY: u8 = 1;
/// Headers wait here in numbers.
const CROWDED: u8 = 2;
/// It is among the partition's active ports.
const ACTIVE: u8 = 4;
/// Departures are events: of hosts, whose endpoint is asked at that moment; of switches whose ports
/// share memory or whose marks are observed; of all ports on the eager path.
const DEPARTS: u8 = 8;
/// Departures are no events, and its queue marks packets as they leave.
const MARKS: u8 = 16;

/// Whether a packet is in service.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Service {
    Idle,
    /// And its departure is worked out when the port is next touched.
    Replayed,
    /// And its departure is an event.
    Scheduled,
}

/// In service while a port waits for its next slot.
const NOTHING: Desc = Desc { handle: u32::MAX, len: 0, flags: Flags(0), class: 0 };

/// What is seldom touched of a port.
pub(crate) struct Rare {
    /// The link's number in the whole fabric.
    pub(crate) link: u32,
    /// The place among the partition's switches of the one whose port this is, if it is one's.
    pub(crate) switch: u32,
    rate: Rate,
    /// The probability with which a packet that arrives is lost.
    pub(crate) loss: f64,
    /// If there were any: in a large fabric most ports have none.
    pub(crate) drops: Option<Box<DropCounters>>,
    /// Bytes sent by the ends of the measurement window, as far as they have come; else `u64::MAX`.
    pub(crate) window_bytes: [u64; 2],
    /// Random choices made so far.
    pub(crate) coins: u64,
    /// Packets leave in slots: see `Topology::with_switch_slot`. Departures are events then.
    slots: Option<Box<Slots>>,
}

/// How packets leave in slots.
pub(crate) struct Slots {
    every: Dur,
    /// Packets come to the queue only as a slot begins: see `Topology::with_slot_heap`.
    batches: bool,
    /// Those that have come so, and before when, in the slot that begins, they may not leave.
    fresh: Vec<(u32, Time)>,
}

impl Slots {
    pub(crate) fn new(every: Dur, batches: bool) -> Self {
        Self { every, batches, fresh: Vec::new() }
    }
}

const _: () = assert!(
    size_of::<Port>() == 320,
    "five cache lines, of which one to three are touched at a time"
);
const _: () = assert!(std::mem::offset_of!(Port, bytes) == 64, "line 0 is for arrivals");

const _: () = assert!(size_of::<Rare>() == 64, "65 536 hosts have 400 000 ports");

/// What happens to packets at a port beside being sent; see `LinkStats`.
#[derive(Default)]
pub(crate) struct DropCounters {
    pub(crate) trimmed: u64,
    pub(crate) trimmed_bytes: u64,
    pub(crate) bounced: u64,
    pub(crate) dropped: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) marked: u64,
}

impl Port {
    /// The port of link number `number`.
    pub(crate) fn new(
        (number, link): (u32, &Link),
        end: FarEnd,
        delay: Dur,
        queue: Option<Queue>,
        departs: bool,
    ) -> Self {
        Self {
            free_at: Time::ZERO,
            serving: Desc { handle: 0, len: 0, flags: Flags(0), class: 0 },
            delay,
            ps_per_byte: ps_per_byte(link.rate),
            end: end.into(),
            onward: if let FarEnd::Host(host) = end { host } else { 0 },
            latest: 0,
            leg: Leg::Last,
            adds: false,
            service: Service::Idle,
            arrived: 0,
            packets: 0,
            bytes: 0,
            max_queue_bytes: 0,
            traits: if link.up { 0 } else { LOSSY } | if departs { DEPARTS } else { 0 },
            crossing: false,
            queue,
            chain: 0,
            rare: Box::new(Rare {
                link: number,
                switch: 0,
                rate: link.rate,
                loss: if link.up { 0.0 } else { 1.0 },
                drops: None,
                window_bytes: [u64::MAX; 2],
                coins: 0,
                slots: None,
            }),
        }
    }

    /// Its link ends at the switch with this first port, at which packets are on this leg.
    pub(crate) fn set_onward(&mut self, first: u32, leg: Leg) {
        (self.onward, self.leg, self.adds) = (first, leg, true);
    }

    /// In a tree of tiers, with the path chosen by the sender: to which port, or host, a packet
    /// goes on that has arrived over its link.
    #[inline(always)]
    pub(crate) fn onward(&self, pkt: &Packet) -> u32 {
        // Without a branch: to a host or to a switch is as good as random.
        let kept = u16::from(self.adds).wrapping_neg();
        self.onward + u32::from(pkt.scratch[self.leg as usize] & kept)
    }

    #[inline(always)]
    fn has(&self, what: u8) -> bool {
        self.traits & what != 0
    }

    fn set(&mut self, what: u8, on: bool) {
        self.traits = if on { self.traits | what } else { self.traits & !what };
    }

    /// Whether everything that arrives over its link arrives: its loss is zero.
    #[inline(always)]
    pub(crate) fn sound(&self) -> bool {
        !self.has(LOSSY)
    }

    /// Where its link ends.
    #[inline(always)]
    pub(crate) fn end(&self) -> FarEnd {
        match self.end.0 {
            host if host >= PackedEnd::HOST => FarEnd::Host(host ^ PackedEnd::HOST),
            at if at < PackedEnd::ELSEWHERE => FarEnd::Switch(at),
            place => FarEnd::Elsewhere(place ^ PackedEnd::ELSEWHERE),
        }
    }

    /// At which packets begin to be transmitted now.
    pub(crate) fn rate(&self) -> Rate {
        self.rare.rate
    }

    /// From the last bit sent to its arrival, the receiving switch's latency included.
    pub(crate) fn delay(&self) -> Dur {
        self.delay
    }

    /// Whether a packet is in service.
    #[inline(always)]
    pub(crate) fn busy(&self) -> bool {
        self.service != Service::Idle
    }

    /// What is in service.
    pub(crate) fn serving(&self) -> Option<Desc> {
        self.busy().then_some(self.serving)
    }

    /// A packet comes: the port joins the partition's `active` ones.
    #[inline(always)]
    pub(crate) fn note_active(&mut self, me: u32, active: &mut Vec<u32>) {
        if !self.has(ACTIVE) {
            self.traits |= ACTIVE;
            active.push(me);
        }
    }

    /// Whether it, which holds `queued_bytes`, remains one of them.
    pub(crate) fn stays_active(&mut self, queued_bytes: u32) -> bool {
        // What is paused may wait at an idle port.
        let stays = self.busy() || queued_bytes > 0;
        self.set(ACTIVE, stays);
        stays
    }

    /// Begin to transmit `packet` at `at`, and schedule what follows from it. `me` is this port's
    /// number in its partition.
    #[inline(always)]
    pub(crate) fn start(&mut self, me: u32, packet: Desc, at: Time, core: &mut Core) {
        let due = self.occupy(me, packet, at, core);
        self.launch(me, packet.handle, due, core);
    }

    /// The same for a host's port, whose packets travel late by its jitter.
    #[inline(always)]
    pub(crate) fn start_late(
        &mut self,
        me: u32,
        packet: Desc,
        at: Time,
        jitter: &mut Jitter,
        core: &mut Core,
    ) {
        let due = self.occupy(me, packet, at, core);
        let due = jitter.delay(due, self.free_at.since(at));
        self.launch(me, packet.handle, due, core);
    }

    /// Packet `handle` is on its way, and arrives when it is `due`.
    #[inline(always)]
    fn launch(&mut self, me: u32, handle: u32, due: Time, core: &mut Core) {
        if let FarEnd::Elsewhere(place) = self.end() {
            core.transit_mut().leave(place, handle, due);
            if !self.crossing && !self.has(DEPARTS) {
                self.cross(me, core);
            }
            return;
        }
        core.events_mut().arrival(me, handle, due);
    }

    /// Transmit `packet` from `at` on. When its last bit arrives at the far end.
    #[inline(always)]
    fn occupy(&mut self, me: u32, packet: Desc, at: Time, core: &mut Core) -> Time {
        self.serving = packet;
        self.free_at = at + self.serialise(packet.len);
        self.bytes += u64::from(packet.len);
        if self.has(DEPARTS) {
            self.service = Service::Scheduled;
            core.events_mut().departure(me, self.free_at);
        } else {
            self.service = Service::Replayed;
        }
        self.free_at + self.delay
    }

    /// Begin to transmit a frame of flow control of `len` bytes, now, of a port whose departures
    /// are events. When it arrives at the far end.
    pub(crate) fn send_frame(&mut self, me: u32, len: u16, core: &mut Core) -> Time {
        let frame = Desc { handle: u32::MAX, len, flags: Flags::CONTROL, class: u8::MAX };
        self.occupy(me, frame, core.now(), core)
    }

    /// What is in service has been sent; the caller says what comes next.
    pub(crate) fn finish(&mut self) -> Desc {
        self.service = Service::Idle;
        self.serving
    }

    /// The other partition needs the next packet, too, by the end of the round in which it leaves:
    /// so this port is looked at then.
    #[inline(never)]
    fn cross(&mut self, me: u32, core: &mut Core) {
        self.crossing = true;
        core.transit_mut().cross(me);
    }

    /// A round has ended: do what came up to `last`, and stay among the ports that are looked at if
    /// a packet is in service. When the next one that waits begins to leave.
    pub(crate) fn finish_round(
        &mut self,
        me: u32,
        last: Time,
        core: &mut Core,
        slab: &mut Slab,
    ) -> Option<Time> {
        self.replay(me, last, core, slab);
        self.crossing = self.busy();
        self.waits().then_some(self.free_at)
    }

    /// Whether it is among the ports that are looked at when a round ends.
    pub(crate) fn is_crossing(&self) -> bool {
        self.crossing
    }

    /// Whether packets wait behind the one in service.
    fn waits(&self) -> bool {
        self.queued_bytes() > u32::from(self.serving.len)
    }

    /// The packet in service has been sent; begin the next, if one waits.
    #[inline(always)]
    pub(crate) fn depart(&mut self, me: u32, core: &mut Core, slab: &mut Slab) {
        let at = self.free_at;
        if self.has_slots() {
            self.begin_slot(me, core);
        } else if let Some(queue) = &mut self.queue
            && let Some(next) = queue.next(self.serving)
        {
            self.start(me, next, at, core);
        } else {
            self.service = Service::Idle;
        }
        if self.has(CROWDED | MARKS) {
            self.note_crowd(core);
            self.mark(at, slab);
        }
    }

    /// Mark the packet that has begun to leave at `at`, if its queue says so and no event does it.
    #[inline(never)]
    fn mark(&mut self, at: Time, slab: &mut Slab) {
        if !self.has(MARKS) {
            return;
        }
        if let Some(packet) = self.queue.as_mut().and_then(Queue::take_mark) {
            let pkt = &mut slab[packet.handle];
            pkt.flags.set(Flags::CE);
            self.rare.drops.get_or_insert_default().marked += 1;
            self.chain = digest::chain(self.chain, at.0, pkt.key, Outcome::Marked);
        }
    }

    /// The same where packets leave in slots, of which one begins. What leaves in it counts as
    /// queued no longer.
    #[inline(never)]
    fn begin_slot(&mut self, me: u32, core: &mut Core) {
        self.service = Service::Idle;
        let Some(slots) = &mut self.rare.slots else { return };
        let (slot, fresh) = (slots.every, std::mem::take(&mut slots.fresh));
        let begin = self.free_at;
        let mut at = begin;
        while let Some(next) = self.queue.as_ref().and_then(Queue::peek) {
            let came = fresh.iter().find(|(handle, _)| *handle == next.handle);
            let from = came.map_or(at, |(_, came)| at.max(*came));
            let end = from + self.serialise(next.len);
            if from > begin && end > begin + slot {
                break;
            }
            if let Some(queue) = &mut self.queue {
                queue.dequeue();
                queue.finish(next);
            }
            self.bytes += u64::from(next.len);
            self.launch(me, next.handle, end + self.delay, core);
            at = end;
        }
        if at > begin || self.queued_bytes() > 0 {
            self.await_slot(me, at.max(begin + slot), core);
        }
    }

    /// Nothing is sent before the next slot begins, `now` or later.
    fn await_slot(&mut self, me: u32, now: Time, core: &mut Core) {
        let Some(slots) = &self.rare.slots else { return };
        self.serving = NOTHING;
        self.free_at = Time(now.0.next_multiple_of(slots.every.0));
        self.service = Service::Scheduled;
        core.events_mut().departure(me, self.free_at);
    }

    /// A packet has come that joins the queue as the next slot begins.
    pub(crate) fn expect(&mut self, me: u32, core: &mut Core) {
        if self.service == Service::Idle {
            self.await_slot(me, Time(core.now().0 + 1), core);
        }
    }

    /// `packet`, whose first bit came at `began`, joins the queue as a slot begins: as long after
    /// that it may leave. False if it may not join as it is.
    pub(crate) fn join(&mut self, packet: Desc, began: Time) -> bool {
        if let Some(slots) = &mut self.rare.slots {
            slots.fresh.push((packet.handle, began + slots.every));
        }
        let taken = self.queue.as_mut().is_some_and(|queue| queue.try_enqueue(packet));
        self.note_queue();
        taken
    }

    /// Its queue marks packets as they leave.
    pub(crate) fn set_marks(&mut self) {
        self.set(MARKS, !self.has(DEPARTS));
    }

    /// From now on, packets leave in slots, if there are any.
    pub(crate) fn set_slots(&mut self, slots: Option<Slots>) {
        self.rare.slots = slots.map(Box::new);
    }

    /// Whether packets leave in slots. Other ports are known by their first line alone.
    #[inline(always)]
    fn has_slots(&self) -> bool {
        self.has(DEPARTS) && self.rare.slots.is_some()
    }

    /// How long a packet of `len` bytes takes.
    #[inline(always)]
    pub(crate) fn serialise(&self, len: u16) -> Dur {
        let len = u64::from(len);
        match self.ps_per_byte {
            0 => self.rare.rate.serialise(len),
            ps => Dur(u64::from(ps) * len),
        }
    }

    /// The number of headers that wait may have changed.
    #[inline(never)]
    pub(crate) fn note_crowd(&mut self, core: &mut Core) {
        let crowded = self.queue.as_ref().is_some_and(Queue::bounce_possible);
        if crowded != self.has(CROWDED) {
            self.set(CROWDED, crowded);
            core.transit_mut().note_crowd(crowded);
        }
    }

    /// A packet has arrived at the far end: what this port did when it had sent it. Later
    /// departures are left for later: there may be packets that come before them.
    #[inline(always)]
    pub(crate) fn catch_up_to(&mut self, me: u32, arrival: Time, core: &mut Core, slab: &mut Slab) {
        self.replay(me, Time(arrival.0.saturating_sub(self.delay.0)), core, slab);
    }

    /// Everything this port has done up to and including `until`, unless that takes events.
    #[inline(always)]
    pub(crate) fn replay(&mut self, me: u32, until: Time, core: &mut Core, slab: &mut Slab) {
        // Not `while`: what the loop has ready before it begins would be made ready for nothing.
        if self.is_due(until) {
            loop {
                self.depart(me, core, slab);
                if !self.is_due(until) {
                    break;
                }
            }
        }
    }

    /// Whether the packet in service has been sent by `until`, and no event says so.
    #[inline(always)]
    fn is_due(&self, until: Time) -> bool {
        self.service == Service::Replayed && self.free_at <= until
    }

    /// `packet` joins the queue, or goes straight out if the port is idle. False if it may not join
    /// as it is; then nothing has happened.
    #[inline(always)]
    pub(crate) fn try_enqueue(&mut self, me: u32, packet: Desc, core: &mut Core) -> bool {
        if self.has_slots() {
            return self.try_enqueue_for_slot(me, packet, core);
        }
        let idle = self.service == Service::Idle;
        let Some(queue) = &mut self.queue else { return false };
        let taken = if idle { queue.cut_through(packet) } else { queue.try_enqueue(packet) };
        if taken {
            self.max_queue_bytes = self.max_queue_bytes.max(queue.bytes());
            if idle {
                self.start(me, packet, core.now(), core);
            } else if queue.bounce_possible() {
                self.note_crowd(core);
            }
        }
        taken
    }

    /// The same where packets leave in slots. In batches they join only as a slot begins.
    #[inline(never)]
    fn try_enqueue_for_slot(&mut self, me: u32, packet: Desc, core: &mut Core) -> bool {
        let batches = self.rare.slots.as_ref().is_some_and(|slots| slots.batches);
        let taken = !batches && self.queue.as_mut().is_some_and(|queue| queue.try_enqueue(packet));
        if taken {
            self.start_if_idle(me, core);
        }
        taken
    }

    /// The queue may have grown.
    pub(crate) fn note_queue(&mut self) {
        self.max_queue_bytes = self.max_queue_bytes.max(self.queued_bytes());
    }

    /// The queue may have changed in any way: serve it from now on if the port is idle.
    pub(crate) fn start_if_idle(&mut self, me: u32, core: &mut Core) {
        self.note_queue();
        let idle = self.service == Service::Idle;
        if idle && self.has_slots() {
            if self.queued_bytes() > 0 {
                self.await_slot(me, Time(core.now().0 + 1), core);
            }
            return;
        }
        let Some(queue) = &mut self.queue else { return };
        if idle && let Some(next) = queue.dequeue() {
            self.start(me, next, core.now(), core);
        }
    }

    /// From now on, packets are sent at `rate`; the one in service goes on at the old one.
    pub(crate) fn set_rate(&mut self, me: u32, rate: Rate, core: &mut Core, slab: &mut Slab) {
        // Faults come before departures: what departs now makes way for the new rate.
        self.replay(me, Time(core.now().0.saturating_sub(1)), core, slab);
        self.rare.rate = rate;
        self.ps_per_byte = ps_per_byte(rate);
    }

    /// Whether the packet that has just arrived is lost.
    #[cold]
    pub(crate) fn loses(&self, seed: u64) -> bool {
        draws::is_lost(seed, self.rare.link, self.packets, self.rare.loss)
    }

    /// From now on, packets that arrive are lost with this probability.
    pub(crate) fn set_loss(&mut self, loss: f64) {
        self.rare.loss = loss;
        self.set(LOSSY, loss != 0.0);
    }

    /// Every packet that waits here.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.queue.iter().flat_map(Queue::waiting).map(|packet| packet.handle)
    }

    /// Bytes in the queue, the packet in service included.
    pub(crate) fn queued_bytes(&self) -> u32 {
        self.queue.as_ref().map_or(0, Queue::bytes)
    }

    /// What is known here of the link: of both ends, or of the one that is in this partition.
    pub(crate) fn stats(&self) -> LinkStats {
        let at = |edge: usize| self.rare.window_bytes[edge].min(self.bytes);
        let none = DropCounters::default();
        let drops = self.rare.drops.as_deref().unwrap_or(&none);
        LinkStats {
            packets: self.packets,
            bytes: self.bytes,
            bytes_in_window: at(1) - at(0),
            max_queue_bytes: self.max_queue_bytes,
            trimmed: drops.trimmed,
            trimmed_bytes: drops.trimmed_bytes,
            bounced: drops.bounced,
            dropped: drops.dropped,
            dropped_bytes: drops.dropped_bytes,
            marked: drops.marked,
            // Kept elsewhere: [`crate::pfc`].
            pfc: PauseStats::default(),
        }
    }
}

/// Picoseconds per byte if that is a whole number, else zero.
fn ps_per_byte(rate: Rate) -> u32 {
    rate.whole_ps_per_byte().and_then(|ps| u32::try_from(ps).ok()).unwrap_or(0)
}
