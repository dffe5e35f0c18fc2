//! The links of a partition: the ports at their ends, the packets that wait there or are on their
//! way, and the event queue that carries them.
//!
//! The layer below [`crate::network`] and [`crate::pfc`], which decide where packets go: here they
//! are queued, transmitted, marked, lost and observed.

use endpoint::{Drop, Flags, Life, Observer, Packet, PacketEvent};
use queues::{Desc, Disposition, draws};
use units::{MsgKey, Rate, Time};

use crate::config::Config;
use crate::core::Core;
use crate::digest::{self, Outcome};
use crate::host_clock::Jitter;
use crate::life::{Crossed, Lives};
use crate::outcome::Amount;
use crate::outgoing::Outgoing;
use crate::port::{DropCounters, FarEnd, Port};
use crate::slab::{self, Slab};
use crate::switch::{Elsewhere, Switch};
use crate::telemetry;
use crate::topology::HEIGHTS;

/// An observer of the run.
pub(crate) type Watcher<'o> = &'o mut (dyn Observer + Send);

/// The ports of a partition, and where they are.
pub(crate) struct Plan {
    /// Hosts' ports first, by host; then those of switches; then receiving ends.
    pub(crate) ports: Vec<Port>,
    /// How many of them are hosts'.
    pub(crate) hosts: usize,
    /// By port, the height of its link.
    pub(crate) heights: Vec<u8>,
    /// The first receiving end. Before it and from it on, ports come in the order of their links.
    pub(crate) first_receiving: usize,
    pub(crate) switches: Vec<Switch>,
    /// The links to other partitions.
    pub(crate) elsewhere: Vec<Elsewhere>,
    /// By host; empty if packets are never late.
    pub(crate) jitter: Vec<Jitter>,
    /// Packets for which memory is set aside.
    pub(crate) packets: usize,
}

/// What a sample needs to know of a port.
struct Sampled {
    /// Of its link.
    height: u8,
    /// Bytes whose transmission had begun when it was last sampled.
    bytes: u64,
}

/// `WATCHED`: whether an observer looks at packets. Constant: it costs nothing if none does.
pub(crate) struct Links<'o, const WATCHED: bool> {
    core: Core,
    ports: Vec<Port>,
    /// How many of them are hosts'.
    hosts: usize,
    first_receiving: usize,
    switches: Vec<Switch>,
    elsewhere: Vec<Elsewhere>,
    jitter: Vec<Jitter>,
    slab: Slab,
    /// Headers that a queue has turned back, until they are forwarded.
    returned: Vec<u32>,
    /// Lent by the run while this partition is the only one.
    observer: Option<Watcher<'o>>,
    /// If messages are followed, which takes an observer.
    lives: Option<Box<Lives>>,
    /// Ports that have had packets since the last sample, and perhaps some that have not.
    active: Vec<u32>,
    /// By port.
    sampled: Vec<Sampled>,
    /// Bytes transmitted up to the last sample, by tier (see `Sample::tier_bytes`).
    tier_bytes: [u64; HEIGHTS],
    /// Packets lost by faults.
    faulted: u64,
    seed: u64,
    /// Whether switch ports write telemetry into packets.
    telemetry: bool,
}

/// Ports that a sample will look at, and packets that leave, are fetched this far ahead.
const SOON: usize = 8;

impl<'o, const WATCHED: bool> Links<'o, WATCHED> {
    pub(crate) fn new(core: Core, plan: Plan, config: &Config) -> Self {
        let Plan { ports, hosts, heights, first_receiving, switches, elsewhere, jitter, packets } =
            plan;
        Self {
            core,
            sampled: heights.into_iter().map(|height| Sampled { height, bytes: 0 }).collect(),
            ports,
            hosts,
            first_receiving,
            switches,
            elsewhere,
            jitter,
            slab: Slab::with_capacity(packets),
            returned: Vec::new(),
            observer: None,
            lives: Lives::new(config.life, hosts).filter(|_| WATCHED),
            active: Vec::new(),
            tier_bytes: [0; HEIGHTS],
            faulted: 0,
            seed: config.seed,
            telemetry: config.telemetry,
        }
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    #[inline(always)]
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        &mut self.core
    }

    #[inline(always)]
    pub(crate) fn port(&self, link: u32) -> &Port {
        &self.ports[link as usize]
    }

    #[inline(always)]
    pub(crate) fn port_mut(&mut self, link: u32) -> &mut Port {
        &mut self.ports[link as usize]
    }

    #[inline(always)]
    pub(crate) fn ports(&self) -> &[Port] {
        &self.ports
    }

    #[inline(always)]
    pub(crate) fn ports_mut(&mut self) -> &mut [Port] {
        &mut self.ports
    }

    /// Whether `port` is a host's.
    #[inline(always)]
    pub(crate) fn is_host(&self, port: u32) -> bool {
        (port as usize) < self.hosts
    }

    #[inline(always)]
    pub(crate) fn switch(&self, at: u32) -> &Switch {
        &self.switches[at as usize]
    }

    pub(crate) fn switches(&self) -> &[Switch] {
        &self.switches
    }

    #[inline(always)]
    pub(crate) fn packet(&self, handle: u32) -> &Packet {
        &self.slab[handle]
    }

    #[inline(always)]
    pub(crate) fn packet_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.slab[handle]
    }

    #[inline(always)]
    pub(crate) fn slab(&self) -> &Slab {
        &self.slab
    }

    #[inline(always)]
    pub(crate) fn slab_mut(&mut self) -> &mut Slab {
        &mut self.slab
    }

    /// What follows messages, if anything does.
    pub(crate) fn lives_mut(&mut self) -> Option<&mut Lives> {
        self.lives.as_deref_mut()
    }

    /// The same, and packet `handle`.
    pub(crate) fn lives_and_packet(&mut self, handle: u32) -> Option<(&mut Lives, &Packet)> {
        Some((self.lives.as_deref_mut()?, &self.slab[handle]))
    }

    /// Message `key` is delivered now: report where its time went.
    pub(crate) fn end_life(&mut self, key: MsgKey) {
        let Some(lives) = &mut self.lives else { return };
        let delivered = self.core.now();
        match lives.deliver(key, delivered) {
            Ok(Some(ended)) => {
                let (submitted, spent, segments) = (ended.submitted, &ended.spent, &ended.segments);
                let life = Life { key, submitted, delivered, spent, segments };
                self.observer.iter_mut().for_each(|observer| observer.life(&life));
            }
            Ok(None) => {}
            Err(what) => self.core.violate(Some(key), what),
        }
    }

    /// The observer, if there is one.
    pub(crate) fn observer_mut(&mut self) -> Option<&mut Watcher<'o>> {
        self.observer.as_mut()
    }

    pub(crate) fn lend(&mut self, observer: Option<Watcher<'o>>) {
        self.observer = observer;
    }

    pub(crate) fn give_back(&mut self) -> Option<Watcher<'o>> {
        self.observer.take()
    }

    /// Whether headers wait in numbers somewhere.
    #[inline(always)]
    pub(crate) fn is_crowded(&self) -> bool {
        self.core.transit().is_crowded()
    }

    /// When something happens here next, or a bound below it.
    pub(crate) fn next_at(&self) -> Time {
        self.core.next_at()
    }

    /// Of all draws.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Packets lost by faults.
    pub(crate) fn faulted(&self) -> u64 {
        self.faulted
    }

    /// A packet has come to the far end of `link`. What a queue wants to know of it; nothing if it
    /// is lost there.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, link: u32, packet: u32) -> Option<Desc> {
        let now = self.core.now();
        let port = &mut self.ports[link as usize];
        port.catch_up_to(link, now, &mut self.core, &mut self.slab);
        port.packets += 1;
        let pkt = &self.slab[packet];
        if !port.sound() && port.loses(self.seed) {
            self.lose(link, packet);
            return None;
        }
        port.arrived = digest::chain(port.arrived, now.0, pkt.key, Outcome::Arrived);
        if WATCHED {
            observe(&mut self.observer, now, port.rare.link, PacketEvent::Arrived, pkt);
            if let Some(lives) = &mut self.lives {
                let over = Crossed {
                    link: port.rare.link,
                    serialization: port.serialise(pkt.wire_len),
                    delay: port.delay(),
                    from_host: (link as usize) < self.hosts,
                    to_host: matches!(port.end(), FarEnd::Host(_)),
                };
                lives.cross(packet, &over, now);
            }
        }
        Some(describe(packet, pkt))
    }

    /// A packet is lost at the end of a link, by a fault.
    #[cold]
    fn lose(&mut self, link: u32, packet: u32) {
        let pkt = &self.slab[packet];
        let port = &mut self.ports[link as usize];
        let counters = port.rare.drops.get_or_insert_default();
        counters.dropped += 1;
        counters.dropped_bytes += u64::from(pkt.wire_len);
        self.faulted += 1;
        let now = self.core.now();
        port.arrived = digest::chain(port.arrived, now.0, pkt.key, Outcome::Dropped);
        if WATCHED {
            let why = if port.rare.loss < 1.0 { Drop::Lossy } else { Drop::Dead };
            let event = PacketEvent::Dropped(why);
            observe(&mut self.observer, now, port.rare.link, event, pkt);
            if let Some(lives) = &mut self.lives {
                lives.lose(packet, port.rare.link);
            }
        }
        self.slab.free(packet);
    }

    /// Offer `packet` to the queue of `link`. Whether it has simply joined it.
    #[inline(always)]
    pub(crate) fn try_enqueue(&mut self, link: u32, packet: Desc) -> bool {
        let now = self.core.now();
        let port = &mut self.ports[link as usize];
        port.note_active(link, &mut self.active);
        port.replay(link, now, &mut self.core, &mut self.slab);
        port.try_enqueue(link, packet, &mut self.core)
    }

    /// A host's packet, `handle`, at its port.
    #[inline(always)]
    pub(crate) fn exit(&mut self, link: u32, handle: u32) -> Exit<'_, 'o, WATCHED> {
        Exit {
            packet: &mut self.slab[handle],
            port: &mut self.ports[link as usize],
            jitter: self.jitter.get_mut(link as usize),
            core: &mut self.core,
            active: &mut self.active,
            observer: &mut self.observer,
            link,
            handle,
        }
    }

    /// Begin to transmit `packet` over `link`.
    pub(crate) fn start(&mut self, link: u32, packet: Desc) {
        let now = self.core.now();
        let port = &mut self.ports[link as usize];
        port.start(link, packet, now, &mut self.core);
    }

    /// The packet in service at `link` has been sent; begin the next, if one waits.
    #[inline(always)]
    pub(crate) fn depart(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        port.depart(link, &mut self.core, &mut self.slab);
    }

    /// A packet has come that joins the queue of `link` as the next slot begins.
    pub(crate) fn expect(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        port.note_active(link, &mut self.active);
        port.expect(link, &mut self.core);
    }

    /// `packet` joins the queue of `link` as a slot begins: see [`Port::join`]. False if it may not
    /// join as it is.
    pub(crate) fn join(&mut self, link: u32, packet: Desc, began: Time) -> bool {
        self.ports[link as usize].join(packet, began)
    }

    /// The queue of `link` may have changed in any way: serve it if the port is idle.
    pub(crate) fn start_if_idle(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        port.start_if_idle(link, &mut self.core);
    }

    /// Begin to transmit a frame of flow control of `len` bytes. When it arrives.
    pub(crate) fn send_frame(&mut self, link: u32, len: u16) -> Time {
        let port = &mut self.ports[link as usize];
        port.note_active(link, &mut self.active);
        port.send_frame(link, len, &mut self.core)
    }

    /// `packet` joins the queue of `link`, which says what becomes of it.
    pub(crate) fn enqueue(&mut self, link: u32, packet: Desc) {
        let now = self.core.now();
        let port = &mut self.ports[link as usize];
        let Some(queue) = port.queue.as_mut() else { return };
        let contents = queue.reads_packets().then(|| self.slab[packet.handle]);
        let rare = &mut *port.rare;
        let mut applier = FateApplier::<WATCHED> {
            slab: &mut self.slab,
            observer: &mut self.observer,
            lives: &mut self.lives,
            chain: &mut port.chain,
            counters: rare.drops.get_or_insert_default(),
            returned: &mut self.returned,
            now,
            link: rare.link,
        };
        let (seed, number, coins) = (self.seed, rare.link, &mut rare.coins);
        let coin = || {
            *coins += 1;
            draws::random(seed, number, *coins)
        };
        let mut fate = |fate, packet| applier.apply(fate, packet);
        match &contents {
            Some(contents) => queue.enqueue_read(packet, contents, coin, &mut fate),
            None => queue.enqueue(packet, coin, &mut fate),
        }
        port.note_queue();
        port.note_crowd(&mut self.core);
    }

    /// Let `fate` befall a packet at the transmitting end of `link`.
    pub(crate) fn decide(&mut self, link: u32, fate: Disposition, packet: Desc) {
        let port = &mut self.ports[link as usize];
        let mut applier = FateApplier::<WATCHED> {
            slab: &mut self.slab,
            observer: &mut self.observer,
            lives: &mut self.lives,
            chain: &mut port.chain,
            counters: port.rare.drops.get_or_insert_default(),
            returned: &mut self.returned,
            now: self.core.now(),
            link: port.rare.link,
        };
        applier.apply(fate, packet);
    }

    /// Whether a queue has turned headers back that have not been forwarded.
    pub(crate) fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// The next header that a queue has turned back.
    pub(crate) fn pop_returned(&mut self) -> Option<u32> {
        self.returned.pop()
    }

    /// The packet in service at the switch port of `link` begins to leave now.
    pub(crate) fn stamp(&mut self, link: u32) {
        if self.telemetry {
            telemetry::stamp(&self.ports[link as usize], self.core.now(), &mut self.slab);
        }
    }

    /// Report `pkt`, which is none of the fabric's, at the end of link number `link`.
    pub(crate) fn observe(&mut self, link: u32, event: PacketEvent, pkt: &Packet) {
        observe(&mut self.observer, self.core.now(), link, event, pkt);
    }

    /// The rate of link number `link` changes, if it begins here.
    pub(crate) fn set_rate(&mut self, link: u32, rate: Rate) {
        if let Some(at) = self.transmitting_end(link) {
            self.ports[at].set_rate(at as u32, rate, &mut self.core, &mut self.slab);
        }
    }

    /// The loss of link number `link` changes, if it ends here.
    pub(crate) fn set_loss(&mut self, link: u32, loss: f64) {
        if let Some(at) = self.receiving_end(link) {
            self.ports[at].set_loss(loss);
        }
    }

    /// The ports at which packets are transmitted.
    pub(crate) fn transmitting(&self) -> &[Port] {
        &self.ports[..self.first_receiving]
    }

    /// The port that transmits over link number `link`, if it is here.
    pub(crate) fn transmitting_end(&self, link: u32) -> Option<usize> {
        self.transmitting().binary_search_by_key(&link, |port| port.rare.link).ok()
    }

    /// The port at which link number `link` ends, if it is here.
    pub(crate) fn receiving_end(&self, link: u32) -> Option<usize> {
        let ports = &self.ports[self.first_receiving..];
        match ports.binary_search_by_key(&link, |port| port.rare.link) {
            Ok(port) => Some(self.first_receiving + port),
            Err(_) => self
                .transmitting_end(link)
                .filter(|&port| !matches!(self.ports[port].end(), FarEnd::Elsewhere(_))),
        }
    }

    /// What switch ports have done up to and including `until`.
    pub(crate) fn replay(&mut self, until: Time) {
        for (me, port) in self.ports.iter_mut().enumerate() {
            port.replay(me as u32, until, &mut self.core, &mut self.slab);
        }
    }

    /// Add to `queues` what is in each queue that is not empty, `now`. Only active ports are looked
    /// at: in a large fabric most are idle.
    pub(crate) fn sample(&mut self, now: Time, queues: &mut Vec<u32>) -> [u64; HEIGHTS] {
        let Self { ports, active, sampled, core, slab, tier_bytes, .. } = self;
        let mut kept = 0;
        for n in 0..active.len() {
            if let Some(&soon) = active.get(n + SOON) {
                slab::prefetch_lines(ports, soon, 0..3);
            }
            let me = active[n];
            let (port, last) = (&mut ports[me as usize], &mut sampled[me as usize]);
            port.replay(me, now, core, slab);
            let sent = port.bytes - std::mem::replace(&mut last.bytes, port.bytes);
            tier_bytes[usize::from(last.height)] += sent;
            let queued = port.queued_bytes();
            active[kept] = me;
            kept += usize::from(port.stays_active(queued));
            if queued > 0 {
                queues.push(queued);
            }
        }
        active.truncate(kept);
        self.tier_bytes
    }

    /// Note how much has been sent so far: the measurement window begins (0) or ends (1).
    pub(crate) fn note_window(&mut self, edge: usize) {
        for port in &mut self.ports {
            port.rare.window_bytes[edge] = port.bytes;
        }
    }

    /// What ports to other partitions have done before `until`: nothing here asks for it, and the
    /// others need it before they go on.
    pub(crate) fn finish_round(&mut self, until: Time) {
        let Self { ports, core, slab, .. } = self;
        let last = Time(until.0.saturating_sub(1));
        let mut first: Option<Time> = None;
        let mut crossing = core.transit_mut().take_crossing();
        crossing.retain(|&me| {
            let port = &mut ports[me as usize];
            let next = port.finish_round(me, last, core, slab);
            first = first.into_iter().chain(next).min();
            port.is_crossing()
        });
        core.transit_mut().keep_crossing(crossing, first);
    }

    /// The other end of a link that leaves this partition, if `link` does.
    pub(crate) fn elsewhere(&self, link: u32) -> Option<Elsewhere> {
        match self.ports[link as usize].end() {
            FarEnd::Elsewhere(place) => Some(self.elsewhere[place as usize]),
            FarEnd::Host(_) | FarEnd::Switch(_) => None,
        }
    }

    /// Sort the packets that have begun to leave by the partition to which they go.
    pub(crate) fn sort_leaving(&mut self) {
        let leaving = self.core.transit_mut().take_leaving();
        for (n, gone) in leaving.iter().enumerate() {
            if let Some(soon) = leaving.get(n + SOON) {
                self.slab.prefetch(soon.packet);
                self.slab.prefetch_header(soon.packet);
            }
            let Elsewhere { part, link } = self.elsewhere[gone.place as usize];
            let outgoing = self.core.outgoing(part);
            outgoing.packets.push(self.slab[gone.packet]);
            outgoing.arrivals.push((link, gone.at));
            self.slab.free(gone.packet);
        }
        self.core.transit_mut().put_back(leaving);
    }

    /// Take in the packets that have come from another partition. `seen` is called for each.
    pub(crate) fn receive(&mut self, post: &mut Outgoing, mut seen: impl FnMut(&Packet)) {
        for (n, (pkt, &(link, at))) in post.packets.iter().zip(&post.arrivals).enumerate() {
            slab::prefetch_lines(&post.packets, (n + SOON) as u32, 0..2);
            seen(pkt);
            let packet = self.slab.insert(pkt);
            self.core.events_mut().arrival(link, packet, at);
        }
        post.packets.clear();
        post.arrivals.clear();
    }

    /// Every packet in queues and on links, together.
    pub(crate) fn in_flight(&self) -> Amount {
        let waiting = self.ports.iter().flat_map(Port::waiting);
        let mut amount = Amount::default();
        for packet in waiting.chain(self.core.events().in_flight()) {
            amount.add(u64::from(self.slab[packet].wire_len));
        }
        amount
    }

    /// Packets are needed no more, and in a large fabric what follows takes as much memory.
    pub(crate) fn drop_packets(&mut self) {
        self.slab = Slab::with_capacity(0);
    }
}

fn observe(
    observer: &mut Option<Watcher<'_>>,
    now: Time,
    link: u32,
    event: PacketEvent,
    pkt: &Packet,
) {
    if let Some(observer) = observer {
        observer.packet(now, link, event, pkt);
    }
}

/// A host's packet at its port. Both are looked up once, for all that is done with them.
pub(crate) struct Exit<'a, 'o, const WATCHED: bool> {
    packet: &'a mut Packet,
    port: &'a mut Port,
    jitter: Option<&'a mut Jitter>,
    core: &'a mut Core,
    active: &'a mut Vec<u32>,
    observer: &'a mut Option<Watcher<'o>>,
    link: u32,
    handle: u32,
}

impl<const WATCHED: bool> Exit<'_, '_, WATCHED> {
    #[inline(always)]
    pub(crate) fn packet_mut(&mut self) -> &mut Packet {
        self.packet
    }

    /// It begins to leave.
    #[inline(always)]
    pub(crate) fn send(self) {
        let Self { packet: pkt, port, jitter, core, active, observer, link, handle } = self;
        let now = core.now();
        pkt.key = digest::packet_key(pkt);
        let desc = describe(handle, pkt);
        if WATCHED {
            observe(observer, now, port.rare.link, PacketEvent::Sent, pkt);
        }
        port.chain = digest::chain(port.chain, now.0, pkt.key, Outcome::Sent);
        port.note_active(link, active);
        match jitter {
            None => port.start(link, desc, now, core),
            Some(jitter) => port.start_late(link, desc, now, jitter, core),
        }
    }
}

/// Carries out what a queue decides about packets.
struct FateApplier<'a, 'o, const WATCHED: bool> {
    slab: &'a mut Slab,
    observer: &'a mut Option<Watcher<'o>>,
    lives: &'a mut Option<Box<Lives>>,
    chain: &'a mut u64,
    counters: &'a mut DropCounters,
    returned: &'a mut Vec<u32>,
    now: Time,
    link: u32,
}

impl<const WATCHED: bool> FateApplier<'_, '_, WATCHED> {
    fn apply(&mut self, fate: Disposition, packet: Desc) {
        let pkt = &mut self.slab[packet.handle];
        let (outcome, event) = match fate {
            Disposition::Trim => {
                self.counters.trimmed += 1;
                self.counters.trimmed_bytes += u64::from(pkt.wire_len - packet.len);
                pkt.flags.set(Flags::TRIMMED.with(packet.flags));
                pkt.wire_len = packet.len;
                (Outcome::Trimmed, PacketEvent::Trimmed)
            }
            Disposition::Mark => {
                self.counters.marked += 1;
                pkt.flags.set(Flags::CE);
                (Outcome::Marked, PacketEvent::Marked)
            }
            Disposition::Bounce => {
                self.counters.bounced += 1;
                pkt.flags.set(Flags::BOUNCED);
                std::mem::swap(&mut pkt.src, &mut pkt.dst);
                self.returned.push(packet.handle);
                (Outcome::Bounced, PacketEvent::Bounced)
            }
            Disposition::Drop => {
                self.counters.dropped += 1;
                self.counters.dropped_bytes += u64::from(pkt.wire_len);
                (Outcome::Dropped, PacketEvent::Dropped(Drop::Full))
            }
        };
        *self.chain = digest::chain(*self.chain, self.now.0, pkt.key, outcome);
        if WATCHED {
            observe(self.observer, self.now, self.link, event, &self.slab[packet.handle]);
            if let Some(lives) = self.lives {
                match fate {
                    Disposition::Trim | Disposition::Bounce => lives.cut(packet.handle, self.link),
                    Disposition::Drop => lives.lose(packet.handle, self.link),
                    Disposition::Mark => {}
                }
            }
        }
        if fate == Disposition::Drop {
            self.slab.free(packet.handle);
        }
    }
}

#[inline(always)]
pub(crate) fn describe(handle: u32, pkt: &Packet) -> Desc {
    Desc { handle, len: pkt.wire_len, flags: pkt.flags, class: pkt.class }
}
