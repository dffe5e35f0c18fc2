//! One partition: its hosts, switches and ports, and what happens there. The loop: [`crate::slot`].

use std::collections::VecDeque;
use std::sync::Arc;

use endpoint::{
    AppEffect, AppEvent, Draw, Drop, Effects, Flags, JobRecord, Observer, Packet, PacketEvent,
    Purpose, RttRecord, Stat,
};
use hashbrown::HashMap;
use queues::{Desc, Disposition, Queue, SharedBuffer};
use rustc_hash::FxBuildHasher;
use units::{MsgKey, Time};

use crate::config::Config;
use crate::cut::Cut;
use crate::digest;
use crate::encoding::Tables;
use crate::events::{Event, EventQueue, Kind};
use crate::faults::{Change, Script};
use crate::host::{Host, Note};
use crate::messages::Report;
use crate::outcome::Violation;
use crate::pfc::Pfc;
use crate::port::{FarEnd, Mishaps, PORT, Port};
use crate::rounds::Post;
use crate::route::{Belief, Choose, Forwarding, Known};
use crate::slab::{self, Slab};
use crate::slot::{Onward, Slot};
use crate::tally::Tally;
use crate::topology::Topology;
use crate::valiant;

/// What all partitions read and none changes.
pub(crate) struct World {
    pub(crate) topology: Arc<Topology>,
    pub(crate) config: Config,
    pub(crate) forwarding: Forwarding,
    pub(crate) cut: Cut,
    pub(crate) tables: Tables,
}

/// A switch by the numbers of its partition.
#[derive(Clone, Copy)]
pub(crate) struct Switch {
    /// Its index among all switches.
    pub(crate) number: u32,
    /// Which digit of a host's home says whether it is below; in a graph always the first.
    pub(crate) tier: usize,
    /// What `Home::below` holds of the hosts below it.
    pub(crate) below: u32,
    /// Its first down port and its first up port.
    pub(crate) down: u32,
    pub(crate) up: u32,
}

/// The far end of a link to another partition.
#[derive(Clone, Copy)]
pub(crate) struct Elsewhere {
    pub(crate) part: u32,
    /// The link's number there.
    pub(crate) link: u32,
}

/// What a sample needs to know of ports, by port.
pub(crate) struct Sampled {
    /// Of its link.
    pub(crate) height: Vec<u8>,
    /// Bytes whose transmission had begun when it was last sampled.
    pub(crate) bytes: Vec<u64>,
}

/// Ports that a sample will look at, and packets that leave, are fetched so many ahead.
const SOON: usize = 8;

/// Any observer.
pub(crate) type Watcher = Box<dyn Observer + Send>;

/// `WATCHED`: whether an observer looks at packets. Constant, so that it costs nothing if none does.
pub(crate) struct Part<const WATCHED: bool> {
    pub(crate) index: u32,
    pub(crate) world: Arc<World>,
    /// Lent by the run while this partition is the only one.
    pub(crate) observer: Option<Watcher>,
    pub(crate) now: Time,
    pub(crate) events: EventQueue,
    pub(crate) slot: Slot,
    /// Hosts' ports first, by host; then those of switches; then receiving ends.
    pub(crate) ports: Vec<Port>,
    /// The first receiving end. Both before and after it, ports come in the order of their links.
    pub(crate) first_receiving: usize,
    /// Ports that have had packets since the last sample, and perhaps some that have not.
    pub(crate) active: Vec<u32>,
    pub(crate) sampled: Sampled,
    /// Bytes transmitted up to the last sample, by tier (see `Sample::tier_bytes`).
    pub(crate) tier_bytes: [u64; 3],
    pub(crate) hosts: Vec<Host>,
    /// The number in the fabric of the first host.
    pub(crate) first_host: u32,
    pub(crate) switches: Vec<Switch>,
    /// By switch its memory, if its ports share it; else empty.
    pub(crate) buffers: Vec<SharedBuffer>,
    /// If queues are lossless.
    pub(crate) pfc: Option<Box<Pfc>>,
    /// Per switch: its draws, and how many it has made.
    pub(crate) sprayed: Vec<(Draw, u64)>,
    pub(crate) elsewhere: Vec<Elsewhere>,
    pub(crate) slab: Slab,
    /// When a packet that waits for a link to another partition begins to leave.
    pub(crate) crossing_at: Time,
    /// What is said with the messages that its hosts have yet to receive, where anything is. As the book
    /// of messages, it keeps those that failed: the receiver may have all of such a message yet.
    pub(crate) notes: HashMap<MsgKey, Note, FxBuildHasher>,
    /// What has happened to messages since the run last asked.
    pub(crate) reports: Vec<Report>,
    /// What applications have reported since.
    pub(crate) jobs: Vec<JobRecord>,
    /// Round-trip samples of its hosts that the run has not heard of.
    pub(crate) rtts: Vec<RttRecord>,
    /// By partition: what crosses the cut.
    pub(crate) outbox: Vec<Post>,
    pub(crate) belief: Belief,
    pub(crate) script: Script,
    /// The first rule broken; the run stops.
    pub(crate) violation: Option<Violation>,
    /// An allocated packet that no endpoint wanted yet.
    pub(crate) spare: Option<u32>,
    pub(crate) fx: Effects,
    pub(crate) app_fx: Vec<AppEffect>,
    pub(crate) app_events: VecDeque<AppEvent>,
    /// Whether an application has called upon the endpoint since this was cleared.
    pub(crate) submitted: bool,
    /// Whether hosts are too many for the nearer caches, what is behind their pointers included.
    pub(crate) far_hosts: bool,
    /// Headers that a queue has turned back, until they are forwarded.
    pub(crate) returned: Vec<u32>,
    /// Events handled that are the same however the fabric is cut and departures are worked out.
    pub(crate) handled: u64,
    /// Bytes of messages that have reached their places.
    pub(crate) placed_bytes: u64,
    /// Packets lost by faults.
    pub(crate) faulted: u64,
    /// What its endpoints have counted.
    pub(crate) stats: [u64; Stat::COUNT],
    /// Of that, what they have counted for single messages.
    pub(crate) tally: Tally,
}

const COIN: Purpose = Purpose::new("queue: coin");

impl<const WATCHED: bool> Part<WATCHED> {
    /// Let `event` happen, which leads to `to`.
    #[inline(always)]
    pub(crate) fn happen(&mut self, event: Event, to: Onward) {
        self.now = event.at;
        let about = event.about();
        if about.is_arrival() {
            self.arrival(about.link(), about.packet, to);
        } else {
            self.happen_other(event);
        }
    }

    #[inline(never)]
    fn happen_other(&mut self, event: Event) {
        let (kind, packet) = (event.about().kind(), event.about().packet);
        let about = event.about().link();
        if kind == Kind::Departure && about as usize >= self.hosts.len() {
            self.handled -= 1;
            self.port_departure(about);
            return;
        }
        if kind == Kind::Timer && !self.events.wakes(about, event.at) {
            self.handled -= 1;
            return;
        }
        match kind {
            Kind::Arrival => self.arrival(about, packet, Onward::UNKNOWN),
            Kind::Departure => self.nic_departure(about),
            Kind::Timer => self.host_timer(about),
            Kind::App => self.host_app(about),
            Kind::Frame => self.frame_arrives(about, packet),
            Kind::Pause => self.pause_due(about),
            Kind::Fault => self.fault(),
        }
    }

    /// When something happens here next, or a bound below it.
    pub(crate) fn next_at(&self) -> Time {
        self.events.next_at().unwrap_or(Time::NEVER).min(self.crossing_at)
    }

    /// Whether no packet or frame is about.
    pub(crate) fn is_silent(&self) -> bool {
        let pausing = self.pfc.as_ref().is_some_and(|pfc| pfc.pending > 0);
        !pausing && self.slab.live() == usize::from(self.spare.is_some())
    }

    /// When something happens here next, exactly, if all is silent: the event queue may hold timers that have moved.
    pub(crate) fn next_if_silent(&self) -> Time {
        let fault = self.script.next_at().unwrap_or(Time::NEVER);
        self.hosts.iter().map(Host::next_at).fold(fault, Time::min)
    }

    /// `packet` has arrived at the far end of `link`.
    #[inline(always)]
    fn arrival(&mut self, link: u32, packet: u32, onward: Onward) {
        let now = self.now;
        let port = &mut self.ports[link as usize];
        port.go_on(link, now, &mut self.events);
        port.packets += 1;
        let pkt = &self.slab[packet];
        if !port.sound() && port.loses(self.world.config.seed) {
            self.lose(link, packet);
            return;
        }
        let desc = describe(packet, pkt);
        port.arrived = digest::chain(port.arrived, now.0, pkt.key, digest::Outcome::Arrived);
        if WATCHED {
            observe(&mut self.observer, self.now, port.rare.link, PacketEvent::Arrived, pkt);
        }
        if onward != Onward::UNKNOWN {
            let to = onward.port();
            if (to as usize) < self.hosts.len() {
                self.deliver(to, packet);
            } else {
                self.queue(link, to, desc, now);
            }
            return;
        }
        match port.end() {
            FarEnd::Host(host) => self.deliver(host, packet),
            FarEnd::Switch(_) if matches!(self.world.forwarding, Forwarding::Digits) => {
                let out = port.onward(pkt);
                self.queue(link, out, desc, now);
            }
            FarEnd::Switch(at) => self.forward(link, at, packet),
            FarEnd::Elsewhere(_) => {}
        }
    }

    /// A packet that has come over `link` is at switch `at`: queue it at an output port.
    #[inline(never)]
    fn forward(&mut self, link: u32, at: u32, packet: u32) {
        let out = match self.world.forwarding {
            Forwarding::Digits => self.port_back(at, packet),
            Forwarding::Choice(up) => self.choose(at, packet, up),
            Forwarding::Valiant(next) => self.port_valiant(at, packet, next),
            Forwarding::Encoded => self.port_encoded(at, packet),
        };
        let desc = describe(packet, &self.slab[packet]);
        self.queue(link, out, desc, self.now);
    }

    /// A packet that has come over `link` leaves the switch over port `out`.
    #[inline(always)]
    fn queue(&mut self, link: u32, out: u32, packet: Desc, now: Time) {
        let port = &mut self.ports[out as usize];
        port.note_active(out, &mut self.active);
        port.replay(out, now, &mut self.events);
        if !port.offer(out, packet, now, &mut self.events) {
            self.refuse(link, out, packet);
            self.send_back(link);
        }
    }

    /// Headers that have been turned back at the end of `link` are control now, and do not come back again.
    #[inline(never)]
    fn send_back(&mut self, link: u32) {
        let FarEnd::Switch(at) = self.ports[link as usize].end() else { return };
        let number = self.switches[at as usize].number;
        while let Some(packet) = self.returned.pop() {
            let World { topology, tables, .. } = &*self.world;
            let pkt = &mut self.slab[packet];
            tables.turn_back(topology, number, pkt);
            if topology.valiant {
                valiant::turn_back(pkt);
            }
            self.forward(link, at, packet);
        }
    }

    /// The output port for a header that turns back at switch `at`, along the path that its sender had chosen.
    fn port_back(&mut self, at: u32, packet: u32) -> u32 {
        let (switch, topology) = (&self.switches[at as usize], &self.world.topology);
        let pkt = &mut self.slab[packet];
        topology.stamp(pkt);
        switch.down + u32::from(topology.turn(switch.number, pkt))
    }

    /// The output port where the packet carries its path in one of the published forms.
    #[inline(never)]
    fn port_encoded(&mut self, at: u32, packet: u32) -> u32 {
        let World { topology, tables, .. } = &*self.world;
        let switch = self.switches[at as usize];
        switch.down + tables.port(topology, switch.number, &mut self.slab[packet])
    }

    /// The output port where switch `at`, which has drawn so often, chooses the way `up`.
    #[inline(never)]
    pub(crate) fn port_chosen(&self, at: u32, pkt: &Packet, up: Choose, draws: &mut u64) -> u32 {
        let switch = &self.switches[at as usize];
        let home = &self.world.topology.homes[pkt.dst.index()];
        if home.below[switch.tier] == switch.below {
            return switch.down + u32::from(home.down[switch.tier]);
        }
        let known = Known { topology: &self.world.topology, belief: &self.belief };
        let (draw, _) = self.sprayed[at as usize];
        switch.up + up(&known, switch.number, pkt, draw, draws)
    }

    /// The same for `packet`, with its draw, if one is made.
    fn choose(&mut self, at: u32, packet: u32, up: Choose) -> u32 {
        let (_, mut draws) = self.sprayed[at as usize];
        let out = self.port_chosen(at, &self.slab[packet], up, &mut draws);
        self.sprayed[at as usize].1 = draws;
        out
    }

    /// `packet`, which has come over link `from`, does not simply join the queue of `link`.
    #[inline(never)]
    fn refuse(&mut self, from: u32, link: u32, packet: Desc) {
        if self.pfc.is_some() {
            self.join(from, link, packet);
            return;
        }
        if !self.admits(link, packet) {
            self.decide(link, Disposition::Drop, packet);
            return;
        }
        let before = self.ports[link as usize].queued_bytes();
        self.enqueue(link, packet);
        let idle = !self.ports[link as usize].busy();
        self.ports[link as usize].kick(link, self.now, &mut self.events);
        self.queue_changed(link, before, idle);
    }

    /// `packet` joins the queue of `link`, which says what becomes of it.
    pub(crate) fn enqueue(&mut self, link: u32, packet: Desc) {
        let port = &mut self.ports[link as usize];
        let Some(queue) = port.queue.as_mut() else { return };
        let contents = queue.reads_packets().then(|| self.slab[packet.handle]);
        let rare = &mut *port.rare;
        let mut desk = Desk::<WATCHED> {
            slab: &mut self.slab,
            observer: &mut self.observer,
            chain: &mut port.chain,
            mishaps: rare.mishaps.get_or_insert_default(),
            returned: &mut self.returned,
            now: self.now,
            link: rare.link,
        };
        let (seed, number, coins) = (self.world.config.seed, rare.link, &mut rare.coins);
        let random = || {
            *coins += 1;
            Draw::new(seed, PORT, u64::from(number)).bits(COIN, *coins)
        };
        let mut fate = |fate, packet| desk.apply(fate, packet);
        match &contents {
            Some(contents) => queue.enqueue_read(packet, contents, random, &mut fate),
            None => queue.enqueue(packet, random, &mut fate),
        }
        port.note_queue();
        port.note_crowd(&mut self.events);
    }

    /// A switch port whose departures are events has finished a packet.
    #[inline(never)]
    fn port_departure(&mut self, link: u32) {
        if self.pfc.is_some() {
            self.lossless_departure(link);
            return;
        }
        let port = &mut self.ports[link as usize];
        let before = port.queued_bytes();
        port.depart(link, &mut self.events);
        self.queue_changed(link, before, true);
    }

    /// Whether the memory of the switch, if its ports share one, has room for `packet` in the queue of
    /// `link`.
    fn admits(&mut self, link: u32, packet: Desc) -> bool {
        let port = &self.ports[link as usize];
        let Some(buffer) = self.buffers.get_mut(port.rare.switch as usize) else { return true };
        buffer.admits(port.queued_bytes(), packet.len)
    }

    /// The queue of `link`, which held `before` bytes, has changed, or the packet in service has: keep
    /// the account of shared memory, and mark what begins to leave if the queue says so. `begins`: if one is in
    /// service, it begins to leave.
    fn queue_changed(&mut self, link: u32, before: u32, begins: bool) {
        let port = &mut self.ports[link as usize];
        let mark = port.queue.as_mut().and_then(Queue::take_mark);
        if let Some(buffer) = self.buffers.get_mut(port.rare.switch as usize) {
            let change = buffer.change(before, port.queued_bytes());
            self.require(None, change);
        }
        if let Some(packet) = mark {
            self.decide(link, Disposition::Mark, packet);
        }
        if begins {
            self.stamp(link);
        }
    }

    /// Let `fate` befall a packet at the transmitting end of `link`.
    pub(crate) fn decide(&mut self, link: u32, fate: Disposition, packet: Desc) {
        let port = &mut self.ports[link as usize];
        let mut desk = Desk::<WATCHED> {
            slab: &mut self.slab,
            observer: &mut self.observer,
            chain: &mut port.chain,
            mishaps: port.rare.mishaps.get_or_insert_default(),
            returned: &mut self.returned,
            now: self.now,
            link: port.rare.link,
        };
        desk.apply(fate, packet);
    }

    /// A packet is lost at the end of a link, by a fault.
    #[cold]
    fn lose(&mut self, link: u32, packet: u32) {
        let pkt = &self.slab[packet];
        let port = &mut self.ports[link as usize];
        let mishaps = port.rare.mishaps.get_or_insert_default();
        mishaps.dropped += 1;
        mishaps.dropped_bytes += u64::from(pkt.wire_len);
        self.faulted += 1;
        port.arrived = digest::chain(port.arrived, self.now.0, pkt.key, digest::Outcome::Dropped);
        if WATCHED {
            let why = if port.rare.loss < 1.0 { Drop::Lossy } else { Drop::Dead };
            let event = PacketEvent::Dropped(why);
            observe(&mut self.observer, self.now, port.rare.link, event, pkt);
        }
        self.slab.free(packet);
    }

    pub(crate) fn schedule_script(&mut self) {
        self.events.fault(self.script.next_at().unwrap_or(Time::NEVER));
    }

    /// Every partition hears of every fault; those at the ends of the link act on it.
    fn fault(&mut self) {
        self.handled -= u64::from(self.index > 0);
        let mut news = Vec::new();
        while let Some(step) = self.script.take(self.now) {
            match step.change {
                Change::Believed(up) => news.push((step.link, up)),
                Change::Loss(loss) => {
                    if let Some(port) = self.receiving_end(step.link) {
                        self.ports[port].set_loss(loss);
                    }
                }
                Change::Rate(rate) => {
                    if let Some(port) = self.transmitting_end(step.link) {
                        let (me, now) = (port as u32, self.now);
                        self.ports[port].set_rate(me, rate, now, &mut self.events);
                    }
                }
            }
        }
        self.belief.hear(&self.world.topology, &news);
        self.schedule_script();
    }

    fn transmitting_end(&self, link: u32) -> Option<usize> {
        let ports = &self.ports[..self.first_receiving];
        ports.binary_search_by_key(&link, |port| port.rare.link).ok()
    }

    fn receiving_end(&self, link: u32) -> Option<usize> {
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
            port.replay(me as u32, until, &mut self.events);
        }
    }

    /// Add to `queues` what is in each queue that is not empty, `now`. Only active ports are looked at:
    /// in a large fabric most are idle.
    pub(crate) fn sample(&mut self, now: Time, queues: &mut Vec<u32>) {
        let Self { ports, active, sampled, events, tier_bytes, .. } = self;
        let mut kept = 0;
        for n in 0..active.len() {
            if let Some(&soon) = active.get(n + SOON) {
                slab::prefetch::<_, 3>(&ports[soon as usize]);
            }
            let me = active[n];
            let (port, before) = (&mut ports[me as usize], &mut sampled.bytes[me as usize]);
            port.replay(me, now, events);
            let height = usize::from(sampled.height[me as usize]);
            tier_bytes[height] += port.bytes - std::mem::replace(before, port.bytes);
            if port.queued_bytes() > 0 {
                queues.push(port.queued_bytes());
            }
            active[kept] = me;
            kept += usize::from(port.stays_active());
        }
        active.truncate(kept);
    }

    /// Note how much has been sent so far: the measurement window begins (0) or ends (1).
    pub(crate) fn note_window(&mut self, edge: usize) {
        for port in &mut self.ports {
            port.rare.window_bytes[edge] = port.bytes;
        }
    }

    /// Put what leaves for other partitions into their posts.
    pub(crate) fn sort_post(&mut self) {
        let leaving = &self.events.leaving;
        for (n, &(place, packet, at)) in leaving.iter().enumerate() {
            if let Some(&(_, soon, _)) = leaving.get(n + SOON) {
                self.slab.prefetch(soon);
                self.slab.prefetch_header(soon);
            }
            let Elsewhere { part, link } = self.elsewhere[place as usize];
            let post = &mut self.outbox[part as usize];
            post.packets.push(self.slab[packet]);
            post.arrivals.push((link, at));
            self.slab.free(packet);
        }
        self.events.leaving.clear();
    }

    /// Take in what has come from another partition.
    pub(crate) fn receive(&mut self, post: &mut Post) {
        for (n, (pkt, &(link, at))) in post.packets.iter().zip(&post.arrivals).enumerate() {
            slab::prefetch_lines(&post.packets, (n + SOON) as u32, 0..2);
            self.slot.take_note(pkt);
            let packet = self.slab.insert(pkt);
            self.events.arrival(link, packet, at);
        }
        post.packets.clear();
        post.arrivals.clear();
        for (link, at, frame) in post.frames.drain(..) {
            self.frame_comes(link, at, frame);
        }
        for (host, signal) in post.signals.drain(..) {
            self.take_signal(host - self.first_host, signal);
        }
        self.notes.extend(post.notes.drain(..));
    }

    /// Remember the first broken rule.
    pub(crate) fn violate(&mut self, key: Option<MsgKey>, what: String) {
        let at = self.now;
        if self.violation.as_ref().is_none_or(|first| at < first.at) {
            self.violation = Some(Violation { at, key, what });
        }
    }

    pub(crate) fn require(&mut self, key: Option<MsgKey>, result: Result<(), String>) {
        if let Err(what) = result {
            self.violate(key, what);
        }
    }

    /// That the memory of each switch holds what its queues hold.
    pub(crate) fn check_buffers(&mut self) {
        let mut queued = vec![0; self.buffers.len()];
        for port in self.ports.iter().filter(|port| port.queue.is_some()) {
            if let Some(queued) = queued.get_mut(port.rare.switch as usize) {
                *queued += u64::from(port.queued_bytes());
            }
        }
        for (at, queued) in queued.into_iter().enumerate() {
            self.check_use(at, queued, self.buffers[at].used());
        }
    }

    /// Switch `at` holds `queued` bytes and counts `used`.
    pub(crate) fn check_use(&mut self, at: usize, queued: u64, used: u32) {
        if u64::from(used) != queued {
            let number = self.switches[at].number;
            let what = format!("switch {number} holds {queued} bytes and counts {used}");
            self.violate(None, what);
        }
    }

    /// Every packet in queues and on links.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Packet> {
        let waiting = self.ports.iter().flat_map(Port::waiting);
        waiting.chain(self.events.in_flight()).map(|packet| &self.slab[packet])
    }
}

pub(crate) fn observe(
    observer: &mut Option<Watcher>,
    now: Time,
    link: u32,
    event: PacketEvent,
    pkt: &Packet,
) {
    if let Some(observer) = observer {
        observer.packet(now, link, event, pkt);
    }
}

/// Carries out what a queue decides about packets.
struct Desk<'a, const WATCHED: bool> {
    slab: &'a mut Slab,
    observer: &'a mut Option<Watcher>,
    chain: &'a mut u64,
    mishaps: &'a mut Mishaps,
    returned: &'a mut Vec<u32>,
    now: Time,
    link: u32,
}

impl<const WATCHED: bool> Desk<'_, WATCHED> {
    fn apply(&mut self, fate: Disposition, packet: Desc) {
        let pkt = &mut self.slab[packet.handle];
        let (outcome, event) = match fate {
            Disposition::Trim => {
                self.mishaps.trimmed += 1;
                self.mishaps.trimmed_bytes += u64::from(pkt.wire_len - packet.len);
                pkt.flags.set(Flags::TRIMMED);
                pkt.wire_len = packet.len;
                (digest::Outcome::Trimmed, PacketEvent::Trimmed)
            }
            Disposition::Mark => {
                self.mishaps.marked += 1;
                pkt.flags.set(Flags::CE);
                (digest::Outcome::Marked, PacketEvent::Marked)
            }
            Disposition::Bounce => {
                self.mishaps.bounced += 1;
                pkt.flags.set(Flags::BOUNCED);
                std::mem::swap(&mut pkt.src, &mut pkt.dst);
                self.returned.push(packet.handle);
                (digest::Outcome::Bounced, PacketEvent::Bounced)
            }
            Disposition::Drop => {
                self.mishaps.dropped += 1;
                self.mishaps.dropped_bytes += u64::from(pkt.wire_len);
                (digest::Outcome::Dropped, PacketEvent::Dropped(Drop::Full))
            }
        };
        *self.chain = digest::chain(*self.chain, self.now.0, pkt.key, outcome);
        if WATCHED {
            observe(self.observer, self.now, self.link, event, &self.slab[packet.handle]);
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
