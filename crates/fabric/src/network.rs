//! The network of a partition: which way packets go over its links, and what its switches do with
//! them. It knows nothing of hosts: what is theirs it hands back.

use std::sync::Arc;

use endpoint::{Draw, Packet, Purpose};
use queues::{
    Desc, Disposition, HEADER_MAX, PfcBufferStats, Queue, SharedBuffer, SharedBufferStats,
};
use units::{Dur, HostId, MsgKey, Time};

use crate::batch::{self, Held};
use crate::core::Core;
use crate::event::Event;
use crate::faults::{Change, Script};
use crate::life::Lives;
use crate::link_state::{Choose, LinkState, RoutingView};
use crate::links::{Links, Watcher};
use crate::outcome::{Amount, LinkStats};
use crate::outgoing::Outgoing;
use crate::pfc::Pfc;
use crate::pfc::deadlock::Stuck;
use crate::planes;
use crate::port::{FarEnd, Port};
use crate::route::{Forwarding, by_hash};
use crate::slab;
use crate::slot::Onward;
use crate::topology::{HEIGHTS, Shape};
use crate::valiant;
use crate::world::World;

/// Draws of a switch.
pub(crate) const SWITCH: Purpose = Purpose::new("switch");

/// The lengths of packets for which slots were made: see [`crate::event_loop`].
pub(crate) struct Lengths {
    /// Whether only the events of one port or host have to be handled in order.
    by_entity: bool,
    /// Then, no packet is shorter than this, and no header longer.
    shortest: u16,
    longest_header: u16,
}

impl Lengths {
    /// `shortest`: if only events of one port or host have to be handled in order, the length that
    /// no packet falls below. `bounces`: whether queues send headers back.
    pub(crate) fn new(shortest: Option<u16>, bounces: bool) -> Self {
        Self {
            by_entity: shortest.is_some(),
            shortest: shortest.unwrap_or(0),
            longest_header: if bounces { HEADER_MAX } else { u16::MAX },
        }
    }

    /// A packet appears: slots were not made for one that is shorter, or for a longer header than
    /// queues allow for.
    #[inline(always)]
    fn observe_length(&mut self, pkt: &Packet) {
        if pkt.wire_len < self.shortest
            || pkt.wire_len > self.longest_header && !pkt.carries_payload()
        {
            self.by_entity = false;
        }
    }
}

/// What a host has sent.
pub(crate) struct Sent {
    pub(crate) token: u32,
    /// Bytes.
    pub(crate) len: u16,
    /// Whether it carries a part of a message.
    pub(crate) payload: bool,
}

pub(crate) struct Network<'o, const WATCHED: bool> {
    world: Arc<World>,
    links: Links<'o, WATCHED>,
    /// By switch its memory, if its ports share it; else empty.
    buffers: Vec<SharedBuffer>,
    /// If queues are lossless.
    pfc: Option<Box<Pfc>>,
    /// Per switch: its draws, and how many it has made.
    sprayed: Vec<(Draw, u64)>,
    link_state: LinkState,
    script: Script,
    lengths: Lengths,
    /// Whether a packet's next port follows from the packet alone.
    settled: bool,
    /// Where switches take what comes within a slot together: what has come.
    held: Option<Vec<Held>>,
}

impl<'o, const WATCHED: bool> Network<'o, WATCHED> {
    /// `settled`: whether the port to which a packet goes on follows from the packet alone.
    pub(crate) fn new(
        world: &Arc<World>,
        links: Links<'o, WATCHED>,
        pfc: Option<Pfc>,
        (link_state, script): (LinkState, Script),
        lengths: Lengths,
        settled: bool,
    ) -> Self {
        let config = &world.config;
        let draw = |number: u32| (world.draws[number as usize], 0);
        let switches = links.switches();
        let buffers = config.buffer.map(|spec| vec![SharedBuffer::new(spec); switches.len()]);
        Self {
            world: Arc::clone(world),
            buffers: buffers.unwrap_or_default(),
            pfc: pfc.map(Box::new),
            sprayed: switches.iter().map(|switch| draw(switch.number)).collect(),
            links,
            link_state,
            script,
            lengths,
            settled,
            held: world.topology.slot_heap().then(Vec::new),
        }
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        self.links.core()
    }

    #[inline(always)]
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        self.links.core_mut()
    }

    /// The topology as hosts may know it now.
    #[inline(always)]
    pub(crate) fn view(&self) -> RoutingView<'_> {
        RoutingView { topology: &self.world.topology, state: &self.link_state }
    }

    /// The same, and a packet to be written.
    #[inline(always)]
    pub(crate) fn view_and_packet(&mut self, handle: u32) -> (RoutingView<'_>, &mut Packet) {
        let view = RoutingView { topology: &self.world.topology, state: &self.link_state };
        (view, self.links.packet_mut(handle))
    }

    #[inline(always)]
    pub(crate) fn packet(&self, handle: u32) -> &Packet {
        self.links.packet(handle)
    }

    /// A cleared packet.
    #[inline(always)]
    pub(crate) fn alloc(&mut self) -> u32 {
        self.links.slab_mut().alloc()
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, packet: u32) {
        self.links.slab_mut().free(packet);
    }

    /// Whether only events of one port or host have to be handled in order, now.
    #[inline(always)]
    pub(crate) fn is_by_entity(&self) -> bool {
        self.lengths.by_entity && !self.links.is_crowded()
    }

    /// When something happens here next, or a bound below it.
    pub(crate) fn next_at(&self) -> Time {
        self.links.next_at()
    }

    /// When the next fault begins or ends.
    pub(crate) fn next_fault(&self) -> Time {
        self.script.next_at().unwrap_or(Time::NEVER)
    }

    /// Steps of the fault script so far.
    pub(crate) fn faults_done(&self) -> usize {
        self.script.done()
    }

    /// `time` has been skipped: faults are nearer.
    pub(crate) fn skip(&mut self, time: Dur) {
        self.script.skip(time);
        self.schedule_script();
    }

    /// Whether no frame of flow control is about, and no packet but `spare`.
    pub(crate) fn is_silent(&self, spare: usize) -> bool {
        let pausing = self.pfc.as_ref().is_some_and(|pfc| pfc.is_busy());
        !pausing && self.links.slab().live() == spare
    }

    pub(crate) fn lend(&mut self, observer: Option<Watcher<'o>>) {
        self.links.lend(observer);
    }

    pub(crate) fn give_back(&mut self) -> Option<Watcher<'o>> {
        self.links.give_back()
    }

    /// `packet` has arrived at the far end of `link`, from where it goes `onward`. The host, if it
    /// is one's.
    #[inline(always)]
    pub(crate) fn arrival(&mut self, link: u32, packet: u32, onward: Onward) -> Option<u32> {
        let desc = self.links.arrive(link, packet)?;
        if onward != Onward::UNKNOWN {
            let to = onward.port();
            if self.links.is_host(to) {
                return Some(to);
            }
            self.queue(link, to, desc);
            return None;
        }
        let port = self.links.port(link);
        match port.end() {
            FarEnd::Host(host) => return Some(host),
            FarEnd::Switch(_) if self.world.forwarding.is_carried() => {
                let out = port.onward(self.links.packet(packet));
                self.queue(link, out, desc);
            }
            FarEnd::Switch(at) => self.forward(link, at, packet),
            FarEnd::Elsewhere(_) => {}
        }
        None
    }

    /// A packet that has come over `link` is at switch `at`: queue it at an output port.
    #[inline(never)]
    fn forward(&mut self, link: u32, at: u32, packet: u32) {
        let out = match self.world.forwarding {
            Forwarding::Digits => self.port_back(at, packet),
            Forwarding::Hashes => self.hash_back(at, packet),
            Forwarding::Choice(up) => self.choose(at, packet, up),
            Forwarding::Valiant(next) => self.port_valiant(at, packet, next),
            Forwarding::Encoded => self.port_encoded(at, packet),
            Forwarding::Planes(choose) => self.port_in_planes(at, packet, choose),
        };
        let desc = crate::links::describe(packet, self.links.packet(packet));
        self.queue(link, out, desc);
    }

    /// A packet that has come over `link` leaves the switch over port `out`.
    #[inline(always)]
    fn queue(&mut self, link: u32, out: u32, packet: Desc) {
        if !self.links.try_enqueue(out, packet) {
            self.refuse(link, out, packet);
            if self.links.has_returned() {
                self.send_back(link);
            }
        }
    }

    /// Headers that have been turned back at the end of `link` are control now, and do not come
    /// back again.
    #[inline(never)]
    fn send_back(&mut self, link: u32) {
        let FarEnd::Switch(at) = self.links.port(link).end() else { return };
        let number = self.links.switch(at).number;
        while let Some(packet) = self.links.pop_returned() {
            let World { topology, tables, .. } = &*self.world;
            let pkt = self.links.packet_mut(packet);
            tables.turn_back(topology, number, pkt);
            if matches!(topology.shape, Shape::Valiant { .. }) {
                valiant::turn_back(pkt);
            }
            self.forward(link, at, packet);
        }
    }

    /// The output port for a header that turns back at switch `at`, along the path that its sender
    /// had chosen.
    fn port_back(&mut self, at: u32, packet: u32) -> u32 {
        let (switch, topology) = (*self.links.switch(at), &self.world.topology);
        let pkt = self.links.packet_mut(packet);
        topology.stamp(pkt);
        switch.down + u32::from(topology.turn(switch.number, (pkt.dst, pkt.path)))
    }

    /// The same where switches hash: from here on as if from a host of its own.
    fn hash_back(&mut self, at: u32, packet: u32) -> u32 {
        let view = RoutingView { topology: &self.world.topology, state: &self.link_state };
        view.stamp_hashes(&self.world.draws, self.links.packet_mut(packet));
        self.choose(at, packet, by_hash)
    }

    /// The output port where the packet carries its path in one of the published forms.
    #[inline(never)]
    fn port_encoded(&mut self, at: u32, packet: u32) -> u32 {
        let World { topology, tables, .. } = &*self.world;
        let switch = *self.links.switch(at);
        switch.down + tables.port(topology, switch.number, self.links.packet_mut(packet))
    }

    /// The output port in a VL2, where `choose` says which of several next switches.
    fn port_valiant(&mut self, at: u32, packet: u32, choose: Choose) -> u32 {
        let view = RoutingView { topology: &self.world.topology, state: &self.link_state };
        let switch = *self.links.switch(at);
        let (draw, draws) = &mut self.sprayed[at as usize];
        let pkt = self.links.packet_mut(packet);
        valiant::port(&view, &switch, pkt, |view, pkt| {
            choose(view, switch.number, pkt, *draw, draws)
        })
    }

    /// The output port in a fabric of several planes.
    fn port_in_planes(&mut self, at: u32, packet: u32, choose: Option<Choose>) -> u32 {
        let view = RoutingView { topology: &self.world.topology, state: &self.link_state };
        let switch = *self.links.switch(at);
        let draws = &mut self.sprayed[at as usize];
        let pkt = self.links.packet(packet);
        switch.down + planes::port(&view, switch.number, pkt, choose, draws)
    }

    /// The output port where switch `at`, which has drawn `draws` times, chooses the way `up`.
    #[inline(never)]
    fn port_chosen(&self, at: u32, pkt: &Packet, up: Choose, draws: &mut u64) -> u32 {
        let switch = self.links.switch(at);
        let home = &self.world.topology.homes[pkt.dst.index()];
        if home.below[switch.tier] == switch.below {
            return switch.down + u32::from(home.down[switch.tier]);
        }
        let (draw, _) = self.sprayed[at as usize];
        switch.up + up(&self.view(), switch.number, pkt, draw, draws)
    }

    /// The same for `packet`, with its draw, if one is made.
    fn choose(&mut self, at: u32, packet: u32, up: Choose) -> u32 {
        let (_, mut draws) = self.sprayed[at as usize];
        let out = self.port_chosen(at, self.links.packet(packet), up, &mut draws);
        self.sprayed[at as usize].1 = draws;
        out
    }

    /// `packet`, which has come over link `from`, does not simply join the queue of `link`.
    #[inline(never)]
    fn refuse(&mut self, from: u32, link: u32, packet: Desc) {
        if self.held.is_some() {
            self.hold(from, link, packet);
            return;
        }
        if let Some(pfc) = &mut self.pfc {
            pfc.join(&mut self.links, from, link, packet);
            return;
        }
        if !self.admits(link, packet) {
            self.links.decide(link, Disposition::Drop, packet);
            return;
        }
        let before = self.links.port(link).queued_bytes();
        self.links.enqueue(link, packet);
        let idle = !self.links.port(link).busy();
        self.links.start_if_idle(link);
        self.queue_changed(link, before, idle);
    }

    /// `packet`, which has come over link `from`, waits for the slot to end.
    fn hold(&mut self, from: u32, out: u32, packet: Desc) {
        let FarEnd::Switch(switch) = self.links.port(from).end() else { return };
        let came = self.core().now();
        let took = self.links.port(from).serialise(packet.len);
        let began = Time(came.0.saturating_sub(took.0));
        let number = self.link_number(from);
        self.links.expect(out);
        if let Some(held) = &mut self.held {
            held.push(Held { came, began, switch, number, out, packet });
        }
    }

    /// A slot begins: what has come before it joins the queues.
    fn join_held(&mut self) {
        let now = self.core().now();
        let Some(held) = &mut self.held else { return };
        for Held { out, packet, began, .. } in batch::take(held, now) {
            if !self.links.join(out, packet, began) {
                self.links.enqueue(out, packet);
            }
        }
    }

    /// A switch port whose departures are events has finished a packet.
    #[inline(never)]
    pub(crate) fn port_departure(&mut self, link: u32) {
        self.join_held();
        if let Some(pfc) = &mut self.pfc {
            pfc.departure(&mut self.links, link);
            return;
        }
        let before = self.links.port(link).queued_bytes();
        self.links.depart(link);
        self.queue_changed(link, before, true);
    }

    /// A host's port has finished a packet.
    #[inline(always)]
    pub(crate) fn nic_departure(&mut self, h: u32) {
        self.links.depart(h);
    }

    /// Whether the memory of the switch, if its ports share one, has room for `packet` in the queue
    /// of `link`.
    fn admits(&mut self, link: u32, packet: Desc) -> bool {
        let port = self.links.port(link);
        let Some(buffer) = self.buffers.get_mut(port.rare.switch as usize) else { return true };
        buffer.admits(port.queued_bytes(), packet.len)
    }

    /// The queue of `link`, which held `before` bytes, has changed, or the packet in service has:
    /// keep the account of shared memory, and mark what begins to leave if the queue says so.
    /// `begins`: if one is in service, it begins to leave.
    fn queue_changed(&mut self, link: u32, before: u32, begins: bool) {
        let port = self.links.port_mut(link);
        let mark = port.queue.as_mut().and_then(Queue::take_mark);
        if let Some(buffer) = self.buffers.get_mut(port.rare.switch as usize) {
            let change = buffer.change(before, port.queued_bytes());
            self.links.core_mut().require(None, change);
        }
        if let Some(packet) = mark {
            self.links.decide(link, Disposition::Mark, packet);
        }
        if begins {
            self.links.stamp(link);
        }
    }

    /// The classes of which host `h` may send now; `None` if it is not to be asked.
    #[inline(always)]
    pub(crate) fn open_classes(&self, h: u32) -> Option<u8> {
        self.pfc.as_ref().map_or(Some(u8::MAX), |pfc| pfc.asks(h))
    }

    /// Whether the port of host `h` has a packet in service.
    #[inline(always)]
    pub(crate) fn is_busy(&self, h: u32) -> bool {
        self.links.port(h).busy()
    }

    /// Whether `packet` of host `h` has to wait in its interface, because its class is paused.
    #[inline(never)]
    pub(crate) fn holds(&mut self, h: u32, packet: u32) -> bool {
        let class = self.links.packet(packet).class;
        self.pfc.as_mut().is_some_and(|pfc| pfc.holds(h, packet, class))
    }

    /// The packet that the interface of host `h` has kept.
    pub(crate) fn take_held(&mut self, h: u32) -> Option<u32> {
        self.pfc.as_mut().and_then(|pfc| pfc.take_held(h))
    }

    /// Put `packet` on the link of host `h`, which is `me`; nothing if it may not send it.
    #[inline(always)]
    pub(crate) fn send(&mut self, h: u32, packet: u32, me: HostId) -> Option<Sent> {
        let World { topology, forwarding, tables, draws, .. } = &*self.world;
        let mut exit = self.links.exit(h, packet);
        let pkt = exit.packet_mut();
        let bad = pkt.src != me
            || pkt.dst == me
            || pkt.dst.0 >= topology.hosts()
            || pkt.wire_len == 0
            || pkt.wire_len > topology.mtu();
        if bad {
            return None;
        }
        self.lengths.observe_length(pkt);
        match forwarding {
            Forwarding::Digits => topology.stamp(pkt),
            Forwarding::Hashes => {
                RoutingView { topology, state: &self.link_state }.stamp_hashes(draws, pkt);
            }
            Forwarding::Encoded => tables.write(topology, pkt),
            Forwarding::Choice(_) | Forwarding::Valiant(_) | Forwarding::Planes(_) => {}
        }
        let sent = Sent { token: pkt.token, len: pkt.wire_len, payload: pkt.carries_payload() };
        exit.send();
        Some(sent)
    }

    /// What follows messages, if anything does.
    pub(crate) fn lives_mut(&mut self) -> Option<&mut Lives> {
        self.links.lives_mut()
    }

    /// Messages are followed: `packet` of host `h` has begun to leave.
    pub(crate) fn follow_sent(&mut self, h: u32, packet: u32) {
        let (now, end) = (self.core().now(), self.links.port(h).free_at);
        let paused = self.paused(h);
        if let Some((lives, pkt)) = self.links.lives_and_packet(packet) {
            lives.send((h, packet), pkt, (now, end), paused);
        }
    }

    /// Messages are followed: `packet` has come to host `h`, which is `me`.
    pub(crate) fn follow_received(&mut self, (h, me): (u32, HostId), packet: u32) {
        let (now, paused) = (self.core().now(), self.paused(h));
        if let Some(lives) = self.links.lives_mut() {
            lives.call(h, now, false);
            lives.receive(packet, me, now, paused);
        }
    }

    /// Messages are followed: host `h` has been handed message `key` of `len` bytes for `dst`.
    pub(crate) fn follow_submitted(&mut self, h: u32, key: MsgKey, (dst, len): (HostId, u64)) {
        let (now, paused) = (self.core().now(), self.paused(h));
        if let Some(lives) = self.links.lives_mut() {
            lives.submit(key, (dst, len), now, paused);
        }
    }

    /// Messages are followed: host `h` is called because its port has sent a packet.
    pub(crate) fn follow_departed(&mut self, h: u32) {
        let (now, paused) = (self.core().now(), self.paused(h));
        if let Some(lives) = self.links.lives_mut() {
            lives.call(h, now, false);
            lives.depart(h, paused);
        }
    }

    /// Message `key` is delivered now.
    pub(crate) fn end_life(&mut self, key: MsgKey) {
        self.links.end_life(key);
    }

    /// The observer, if there is one.
    pub(crate) fn observer_mut(&mut self) -> Option<&mut Watcher<'o>> {
        self.links.observer_mut()
    }

    /// How long each class has been paused at the port of host `h` by now.
    fn paused(&self, h: u32) -> [Dur; 8] {
        let now = self.core().now();
        self.pfc.as_ref().map_or([Dur::ZERO; 8], |pfc| pfc.paused_for(h, now))
    }

    /// A frame of flow control has arrived over `link`. The host that may send now, if one may.
    pub(crate) fn frame_arrives(&mut self, link: u32, frame: u32) -> Option<u32> {
        self.pfc.as_mut()?.frame_arrives(&mut self.links, link, frame)
    }

    /// Something that flow control waits for may be due at the port of `link`. The same.
    pub(crate) fn pause_due(&mut self, link: u32) -> Option<u32> {
        self.pfc.as_mut()?.pause_due(&mut self.links, link)
    }

    pub(crate) fn schedule_script(&mut self) {
        let next = self.next_fault();
        self.core_mut().events_mut().fault(next);
    }

    /// Faults begin or end. They reach every partition; those at the ends of the link act on them.
    /// The hosts that may send now because a pause is over.
    pub(crate) fn fault(&mut self) -> Vec<u32> {
        let now = self.core().now();
        let (mut changes, mut resumed) = (Vec::new(), Vec::new());
        while let Some(step) = self.script.take(now) {
            match step.change {
                Change::Believed(up) => changes.push((step.link, up)),
                Change::Loss(loss) => self.links.set_loss(step.link, loss),
                Change::Rate(rate) => self.links.set_rate(step.link, rate),
                Change::Signal(signal) => {
                    let pfc = self.pfc.as_mut();
                    resumed.extend(
                        pfc.and_then(|pfc| pfc.set_signal(&mut self.links, step.link, signal)),
                    );
                }
            }
        }
        self.link_state.update(&self.world.topology, &changes);
        self.schedule_script();
        resumed
    }

    /// What ports have done up to and including `until`.
    pub(crate) fn replay(&mut self, until: Time) {
        self.links.replay(until);
    }

    /// As [`Links::sample`]. Bytes transmitted so far, by tier.
    pub(crate) fn sample(&mut self, now: Time, queues: &mut Vec<u32>) -> [u64; HEIGHTS] {
        self.links.sample(now, queues)
    }

    pub(crate) fn note_window(&mut self, edge: usize) {
        self.links.note_window(edge);
    }

    pub(crate) fn finish_round(&mut self, until: Time) {
        self.links.finish_round(until);
    }

    /// Sort what leaves by the partition to which it goes.
    pub(crate) fn sort_leaving(&mut self) {
        self.links.sort_leaving();
    }

    /// Take in packets and frames that have come from another partition.
    pub(crate) fn receive(&mut self, outgoing: &mut Outgoing) {
        let Self { links, lengths, pfc, .. } = self;
        links.receive(outgoing, |pkt| lengths.observe_length(pkt));
        for (link, at, frame) in outgoing.frames.drain(..) {
            pfc.iter_mut().for_each(|pfc| pfc.frame_comes(links, link, at, frame));
        }
    }

    /// That the memory of each switch holds what its queues hold.
    pub(crate) fn check_memories(&mut self) {
        let mut queued = vec![0; self.buffers.len()];
        for port in self.links.ports().iter().filter(|port| port.queue.is_some()) {
            if let Some(queued) = queued.get_mut(port.rare.switch as usize) {
                *queued += u64::from(port.queued_bytes());
            }
        }
        let shared = queued.into_iter().zip(&self.buffers).enumerate();
        let mut uses: Vec<_> = shared.map(|(at, (held, of))| (at, held, of.used())).collect();
        uses.extend(self.pfc.iter().flat_map(|pfc| pfc.uses(&self.links)));
        for (at, queued, used) in uses {
            if u64::from(used) != queued {
                let number = self.links.switches()[at].number;
                let what = format!("switch {number} holds {queued} bytes and counts {used}");
                self.core_mut().violate(None, what);
            }
        }
    }

    /// Whether nothing waits in switches, and no pause is about to change.
    pub(crate) fn is_calm(&self) -> bool {
        self.pfc.as_ref().is_none_or(|pfc| pfc.is_calm())
    }

    /// That no pause is left, in a fabric that is calm everywhere.
    pub(crate) fn check_resumed(&mut self) {
        if let Some(pfc) = &self.pfc {
            pfc.check_resumed(&mut self.links);
        }
    }

    /// Every class of a port here that has been paused since `since` or longer.
    pub(crate) fn stuck(&self, since: Time) -> Vec<Stuck> {
        self.pfc.as_ref().map_or_else(Vec::new, |pfc| pfc.stuck(&self.links, since))
    }

    /// When the next pause here will have lasted for `after`, later than `now`.
    pub(crate) fn next_stuck(&self, now: Time, after: Dur) -> Option<Time> {
        self.pfc.as_ref().and_then(|pfc| pfc.next_stuck(&self.links, now, after))
    }

    /// Packets in queues and on links, or on the way from one to the other.
    pub(crate) fn in_flight(&self) -> Amount {
        let mut amount = self.links.in_flight();
        for held in self.held.iter().flatten() {
            amount.add(u64::from(held.packet.len));
        }
        amount
    }

    /// How many links the whole fabric has.
    pub(crate) fn link_count(&self) -> usize {
        self.world.topology.links().len()
    }

    /// The number in the fabric of the link of `port`.
    pub(crate) fn link_number(&self, port: u32) -> u32 {
        self.links.port(port).rare.link
    }

    /// The message of `packet`, if it carries a part of one.
    pub(crate) fn message(&self, packet: u32) -> Option<MsgKey> {
        let pkt = self.links.packet(packet);
        pkt.carries_payload().then_some(MsgKey { src: pkt.src, id: pkt.span.msg })
    }

    pub(crate) fn ports(&self) -> &[Port] {
        self.links.ports()
    }

    /// By port, what is known here of its link by `now`.
    pub(crate) fn link_stats(&self, now: Time) -> impl Iterator<Item = (u32, LinkStats)> {
        self.ports().iter().enumerate().map(move |(n, port)| {
            let pfc = self.pfc.as_ref().map(|pfc| pfc.stats(n, now));
            (port.rare.link, LinkStats { pfc: pfc.unwrap_or_default(), ..port.stats() })
        })
    }

    /// By switch: its number, and what its shared memory has seen.
    pub(crate) fn buffer_stats(&self) -> impl Iterator<Item = (u32, SharedBufferStats)> {
        self.numbers().zip(self.buffers.iter().map(SharedBuffer::stats))
    }

    /// The same of lossless memory.
    pub(crate) fn memory_stats(&self) -> impl Iterator<Item = (u32, PfcBufferStats)> {
        let memories = self.pfc.iter().flat_map(|pfc| pfc.memory_stats());
        self.numbers().zip(memories)
    }

    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.links.switches().iter().map(|switch| switch.number)
    }

    /// Packets lost by faults.
    pub(crate) fn faulted(&self) -> u64 {
        self.links.faulted()
    }

    pub(crate) fn drop_packets(&mut self) {
        self.links.drop_packets();
    }

    /// Have at hand what `event` will touch, as far as it follows from the event.
    #[inline(always)]
    pub(crate) fn prefetch(&self, event: Event) {
        slab::prefetch_lines(self.links.ports(), event.id().link(), 0..4);
        self.links.slab().prefetch(event.id().packet);
    }

    /// The same of the port to which it leads, a host's or a switch's.
    #[inline(always)]
    pub(crate) fn prefetch_onward(&self, event: Event, to: Onward, host: bool) {
        if host {
            slab::prefetch_lines(self.links.ports(), to.port(), 0..2);
            self.links.slab().prefetch_header(event.id().packet);
        } else if to != Onward::UNKNOWN {
            slab::prefetch_lines(self.links.ports(), to.port(), 0..4);
        }
    }

    /// Where an event leads.
    #[inline(always)]
    pub(crate) fn find_onward(&self, event: Event) -> Onward {
        let id = event.id();
        if !id.is_arrival() {
            return Onward::to(id.link());
        }
        let (port, packet) = (self.links.port(id.link()), self.links.slab().get(id.packet));
        match (self.world.forwarding, packet) {
            (forwarding, Some(pkt)) if forwarding.is_carried() => Onward::to(port.onward(pkt)),
            (forwarding, Some(pkt)) => self.find_choice(port, forwarding, pkt),
            (_, None) => Onward::UNKNOWN,
        }
    }

    /// The same where switches choose.
    #[inline(never)]
    fn find_choice(&self, port: &Port, forwarding: Forwarding, pkt: &Packet) -> Onward {
        match (port.end(), forwarding) {
            (FarEnd::Host(host), _) => Onward::to(host),
            (FarEnd::Switch(at), Forwarding::Choice(up)) if self.settled => {
                Onward::to(self.port_chosen(at, pkt, up, &mut 0))
            }
            _ => Onward::UNKNOWN,
        }
    }

    /// The ports, which note their latest event in the open slot.
    pub(crate) fn ports_mut(&mut self) -> &mut [Port] {
        self.links.ports_mut()
    }
}
