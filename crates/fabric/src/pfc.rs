//! Priority flow control (PFC, IEEE 802.1Qbb): switches that stop a class at the far ends of their
//! links before they would have to lose its packets. `queues::PfcBuffer` decides what is to be
//! stopped when; here are the frames that say so (`PauseTx`), and the ports that obey them
//! (`PauseRx`).
//!
//! A switch whose ports share memory is one entity (see `Network::admits`): its ports' departures
//! are events. A packet that comes in is accounted to the port over which it came ([`Pfc::join`]),
//! until it has left ([`Pfc::departure`]). Either may change what is to be stopped at the far end
//! of some port's link. That port sends a frame as soon as the packet in service has left, before
//! everything that waits, and says in it all that has changed by then. A frame takes time on the
//! wire as packets do, but is no packet: it has no place in memory but its event, and does not
//! count among packets sent and received.
//!
//! At the far end a switch closes the class in the queue of the port that transmits over the link,
//! and a host's interface sends nothing of it ([`Pfc::frame_arrives`]). What is being sent is sent.

pub(crate) mod deadlock;
pub(crate) mod frame;
mod pause;
mod port;
mod rx;

use std::sync::Arc;

use queues::{
    Admit, Desc, Disposition, Ingress, PfcBuffer, PfcBufferSpec, PfcBufferStats, Queue, QueueSpec,
};
use units::{Dur, Time};

use crate::config::{Config, PfcSpec, WatchdogAction};
use crate::digest;
use crate::host_clock::HostClock;
use crate::links::Links;
use crate::outcome::PauseStats;
use crate::port::Port;
use crate::switch::{Elsewhere, Switch};
use crate::topology::Topology;

use self::port::{PauseRx, PauseTx};
use deadlock::Stuck;
use frame::Frame;
pub use pause::check_pause;

/// Flow control in one partition, where queues are lossless.
pub(crate) struct Pfc {
    topology: Arc<Topology>,
    spec: PfcSpec,
    /// By switch.
    memories: Vec<PfcBuffer>,
    /// By port.
    lines: Vec<Line>,
    /// By port, as the end of a link: the port of the same host or switch that transmits against
    /// it. [`NOWHERE`] where the link ends in another partition.
    back: Vec<u32>,
    /// By packet in a switch: the port over which it has come, among those of the switch.
    came: Vec<u32>,
    /// Events of flow control that are to come.
    pending: u64,
    /// Frames among them.
    coming: u64,
    /// Scratch: what may resume.
    resumed: Vec<(u32, u8)>,
}

const NOWHERE: u32 = u32::MAX;

/// Flow control at one port.
#[derive(Default)]
struct Line {
    tx: PauseTx,
    rx: PauseRx,
    /// Whether a frame is in service, and no packet.
    in_service: bool,
    /// When the watchdog looks next; never, unless a class is paused.
    dog_at: Option<Time>,
    /// Over which port of the switch the packet in service has come.
    came: u32,
    /// Frames sent.
    frames: u64,
    /// How long a frame stops this port; `None`: until another one resumes it.
    hold: Option<Dur>,
    /// How long after a frame of this port that stops a class it is refreshed, if it is.
    refresh_after: Option<Dur>,
    /// Of a host: a packet whose class was paused when the endpoint chose it.
    held: Option<u32>,
    /// A frame to it was lost on a broken link.
    missed: bool,
}

impl Line {
    /// The classes that it stops at the far end, and those in which it is stopped itself; none of
    /// these if a frame to it was lost.
    fn stopped(&self) -> u8 {
        self.tx.advertised() | if self.missed { 0 } else { self.rx.paused() }
    }
}

impl Pfc {
    /// Of a partition with these switches and ports, of which those from `receiving` on only
    /// receive. `None` unless queues are lossless.
    pub(crate) fn new(
        topology: &Arc<Topology>,
        config: &Config,
        switches: &[Switch],
        ports: &[Port],
        receiving: usize,
    ) -> Option<Self> {
        let QueueSpec::Lossless(lossless) = &config.queue else { return None };
        let spec = config.pfc;
        let back = |port: &Port| {
            let back = topology.reverse(port.rare.link);
            let found = ports[..receiving].binary_search_by_key(&back, |port| port.rare.link);
            found.map_or(NOWHERE, |port| port as u32)
        };
        let hold = |link: u32| spec.pause.time(topology.links()[link as usize].rate);
        let line = |port: &Port| {
            let refresh_after = hold(topology.reverse(port.rare.link)).map(|hold| Dur(hold.0 / 2));
            Line { hold: hold(port.rare.link), refresh_after, ..Line::default() }
        };
        let memory = |switch: &Switch| {
            memory(topology, &lossless.memory, config.host_clock, switch.number).ok()
        };
        Some(Self {
            topology: Arc::clone(topology),
            spec,
            memories: switches.iter().filter_map(memory).collect(),
            lines: ports.iter().map(line).collect(),
            back: ports.iter().map(back).collect(),
            came: Vec::new(),
            pending: 0,
            coming: 0,
            resumed: Vec::new(),
        })
    }

    /// What the memory of each switch has seen.
    pub(crate) fn memory_stats(&self) -> Vec<PfcBufferStats> {
        self.memories.iter().map(PfcBuffer::stats).collect()
    }

    /// Whether something of flow control is to come.
    pub(crate) fn is_busy(&self) -> bool {
        self.pending > 0
    }

    /// The classes of which port `port` may send.
    fn open(&self, port: u32) -> u8 {
        let rx = &self.lines[port as usize].rx;
        let forwards = self.spec.watchdog.is_some_and(|dog| dog.action == WatchdogAction::Forward);
        !rx.paused() | if forwards { rx.overdue() } else { 0 }
    }

    /// The classes whose packets port `port` drops.
    fn drops(&self, port: u32) -> u8 {
        let drops = self.spec.watchdog.is_some_and(|dog| dog.action == WatchdogAction::Drop);
        if drops { self.lines[port as usize].rx.overdue() } else { 0 }
    }

    /// The classes of which the endpoint of host `h` may send now; `None` if it is not to be asked,
    /// because its interface has a packet already.
    #[inline(never)]
    pub(crate) fn asks(&self, h: u32) -> Option<u8> {
        self.lines[h as usize].held.is_none().then(|| self.open(h))
    }

    /// Whether host `h` may send `packet`, of `class`, now. If not, the interface keeps it until
    /// the class may leave.
    pub(crate) fn holds(&mut self, h: u32, packet: u32, class: u8) -> bool {
        let paused = self.open(h) & 1 << class.min(7) == 0;
        if paused {
            self.lines[h as usize].held = Some(packet);
        }
        paused
    }

    /// The packet that the interface of host `h` has kept.
    pub(crate) fn take_held(&mut self, h: u32) -> Option<u32> {
        self.lines[h as usize].held.take()
    }

    /// How long each class has been paused at port `port` by `now`.
    pub(crate) fn paused_for(&self, port: u32, now: Time) -> [Dur; 8] {
        std::array::from_fn(|class| self.lines[port as usize].rx.paused_for(class as u8, now))
    }

    /// Of port `port` by `now`.
    pub(crate) fn stats(&self, port: usize, now: Time) -> PauseStats {
        let line = &self.lines[port];
        PauseStats { frames: line.frames, ..line.rx.stats(now) }
    }
}

/// Whether the memory of every switch can hold what is reserved in it.
///
/// # Errors
/// A sentence, if one is too small.
pub fn check_memory(
    topology: &Topology,
    spec: &PfcBufferSpec,
    clock: HostClock,
) -> Result<(), String> {
    let mut switches = 0..topology.switches.len() as u32;
    switches.try_for_each(|switch| memory(topology, spec, clock, switch).map(drop))
}

/// The first link over which more can come after XOFF than `spec` has headroom for, where a class
/// is lossless: the link, the headroom, and what can come; bytes.
#[must_use]
pub fn little_headroom(topology: &Topology, spec: &PfcBufferSpec) -> Option<(String, u32, u32)> {
    let (own, auto) = (spec, PfcBufferSpec { headroom: queues::Headroom::Auto, ..*spec });
    if spec.lossless == 0 {
        return None;
    }
    (0..topology.switches.len() as u32).find_map(|switch| {
        // Hosts' send jitter comes on top, but no full link has it.
        let ports = ingress_ports(topology, HostClock::EXACT, switch);
        // Of the three full packets that `auto` has room for, one is for a pause that waits behind
        // data the other way: that is rare where data goes one way.
        let short =
            |port: &Ingress| own.headroom_of(port) + u32::from(port.mtu) < auto.headroom_of(port);
        let at = ports.iter().position(short)?;
        let back = topology.switches[switch as usize].down + at as u32;
        let link = &topology.links()[topology.reverse(back) as usize];
        Some((link.to_string(), own.headroom_of(&ports[at]), auto.headroom_of(&ports[at])))
    })
}

/// The ports of switch number `switch` as packets come in over them, in their order.
fn ingress_ports(topology: &Topology, clock: HostClock, switch: u32) -> Vec<Ingress> {
    let own = &topology.switches[switch as usize];
    let ingress = |back: u32| {
        let link = topology.reverse(back);
        Ingress {
            rate: topology.links()[link as usize].rate,
            delay: topology.delay(link) + clock.longest_delay(topology, link),
            back_rate: topology.links()[back as usize].rate,
            back_delay: topology.delay(back),
            mtu: topology.mtu(),
        }
    };
    (own.down..own.up + own.ups).map(ingress).collect()
}

/// The memory of switch number `switch`; a sentence if it is too small.
fn memory(
    topology: &Topology,
    spec: &PfcBufferSpec,
    clock: HostClock,
    switch: u32,
) -> Result<PfcBuffer, String> {
    PfcBuffer::new(spec, &ingress_ports(topology, clock, switch), topology.links()[0].rate)
}

impl Pfc {
    /// A packet has come over `link` and is to leave over port `out`.
    pub(crate) fn join<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
        out: u32,
        packet: Desc,
    ) {
        let at = links.port(out).rare.switch;
        let (back, class) = (self.back[link as usize], packet.class);
        if class > 7 {
            return links.core_mut().violate(None, format!("a packet of class {class}"));
        }
        let port = back - links.switch(at).down;
        if self.drops(out) & 1 << class != 0 {
            self.lines[out as usize].rx.count_drop();
            return links.decide(out, Disposition::Drop, packet);
        }
        let memory = &mut self.memories[at as usize];
        let Admit::Joins { xoff } = memory.admit(port, class, packet.len) else {
            return links.decide(out, Disposition::Drop, packet);
        };
        let handle = packet.handle as usize;
        if self.came.len() <= handle {
            self.came.resize(handle + 1, 0);
        }
        self.came[handle] = port;
        if WATCHED {
            let so_far = self.lines[out as usize].rx.paused_for(class, links.core().now());
            links.lives_mut().into_iter().for_each(|lives| lives.join(packet.handle, so_far));
        }
        links.enqueue(out, packet);
        if xoff {
            self.want(links, (at, port, class), true);
        }
        self.serve(links, out);
    }

    /// A switch port has finished a packet or a frame.
    pub(crate) fn departure<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
    ) {
        let (line, port) = (&mut self.lines[link as usize], links.port_mut(link));
        let sent = port.finish();
        if std::mem::take(&mut line.in_service) {
            self.serve(links, link);
            return;
        }
        let (at, came) = (port.rare.switch, line.came);
        if let Some(queue) = &mut port.queue {
            queue.finish(sent);
        }
        self.give_back(links, at, came, sent);
        self.serve(links, link);
    }

    /// The memory of switch `at` holds `packet` no more, which had come over its port `came`.
    fn give_back<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        at: u32,
        came: u32,
        packet: Desc,
    ) {
        let Self { memories, resumed, .. } = self;
        let left =
            memories[at as usize].depart(came, packet.class, packet.len, &mut |port, class| {
                resumed.push((port, class));
            });
        links.core_mut().require(None, left);
        if self.resumed.is_empty() {
            return;
        }
        let mut resumed = std::mem::take(&mut self.resumed);
        for (port, class) in resumed.drain(..) {
            self.want(links, (at, port, class), false);
        }
        self.resumed = resumed;
    }

    /// From now on, the class is to be stopped or not at the far end of a port of switch `at`.
    fn want<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        (at, port, class): (u32, u32, u8),
        stop: bool,
    ) {
        let depth = if stop { self.depth(links, at, port, class) } else { 0 };
        let link = links.switch(at).down + port;
        let change = self.lines[link as usize].tx.want(class, stop, depth);
        links.core_mut().require(None, change);
        self.serve(links, link);
    }

    /// How many pauses in a row stopping `class` at port `port` of switch `at` would make: one more
    /// than the most behind packets that have come that way and cannot leave.
    fn depth<const WATCHED: bool>(
        &self,
        links: &Links<'_, WATCHED>,
        at: u32,
        port: u32,
        class: u8,
    ) -> u8 {
        let behind = outputs(links.switch(at)).filter_map(|out| {
            let (_, depth) = self.lines[out as usize].rx.pause(class)?;
            self.waiting(links.port(out), class).any(|came| came == port).then_some(depth)
        });
        behind.max().unwrap_or(0).saturating_add(1)
    }

    /// Over which ports of its switch the packets of `class` have come that wait at port `out`.
    fn waiting(&self, out: &Port, class: u8) -> impl Iterator<Item = u32> {
        let waiting = out.queue.iter().flat_map(Queue::waiting);
        waiting
            .filter(move |packet| packet.class == class)
            .filter_map(|packet| self.came.get(packet.handle as usize).copied())
    }

    /// That the memory of each switch holds what its queues hold, classes apart that do not count
    /// (specs/rdma.md#I2). For each switch: its number here, what its queues hold and what it
    /// counts.
    pub(crate) fn uses<const WATCHED: bool>(
        &self,
        links: &Links<'_, WATCHED>,
    ) -> Vec<(usize, u64, u32)> {
        let uses = self.memories.iter().enumerate().map(|(at, memory)| {
            let held = outputs(&links.switches()[at]).map(|out| self.counted(links, at, out)).sum();
            (at, held, memory.used())
        });
        uses.collect()
    }

    /// Whether switches hold nothing that counts, and no frame is on its way or is going to be
    /// sent.
    pub(crate) fn is_calm(&self) -> bool {
        let silent = !self.lines.iter().any(|line| line.tx.pending());
        silent && self.coming == 0 && self.memories.iter().all(|memory| memory.used() == 0)
    }

    /// That every XOFF has had its XON (specs/rdma.md#I3), in a fabric that is calm everywhere.
    pub(crate) fn check_resumed<const WATCHED: bool>(&self, links: &mut Links<'_, WATCHED>) {
        let stopped = self.lines.iter().zip(links.ports()).find(|(line, _)| line.stopped() != 0);
        let memory = self.memories.iter().position(PfcBuffer::pauses_any);
        let what = match (stopped, memory) {
            (Some((line, port)), _) => {
                let (classes, link) = (line.stopped(), port.rare.link);
                let link = &self.topology.links()[link as usize];
                format!("classes {classes:#010b} beside {link}")
            }
            (None, Some(at)) => format!("what switch {} has paused", links.switches()[at].number),
            (None, None) => return,
        };
        let what = format!("every queue is empty, and nothing has resumed {what}");
        links.core_mut().violate(None, what);
    }

    /// Bytes at port `out` of switch `at` that count, the packet in service included.
    fn counted<const WATCHED: bool>(&self, links: &Links<'_, WATCHED>, at: usize, out: u32) -> u64 {
        let port = links.port(out);
        let waiting = port.queue.iter().flat_map(Queue::waiting);
        let serving = port.serving().filter(|_| !self.lines[out as usize].in_service);
        let counts = |packet: &Desc| !self.memories[at].is_control(packet.class);
        waiting.chain(serving).filter(counts).map(|packet| u64::from(packet.len)).sum()
    }

    /// Every class of a port here that has been paused since `since` or longer.
    pub(crate) fn stuck<const WATCHED: bool>(
        &self,
        links: &Links<'_, WATCHED>,
        since: Time,
    ) -> Vec<Stuck> {
        let mut all = Vec::new();
        for switch in links.switches() {
            for (out, class) in outputs(switch).flat_map(|out| (0..8).map(move |c| (out, c))) {
                let Some(paused) = self.paused_since(out, class).filter(|&at| at <= since) else {
                    continue;
                };
                let mut waiting: Vec<u32> = self.waiting(links.port(out), class).collect();
                waiting.sort_unstable();
                waiting.dedup();
                let number = |port: u32| links.port(port).rare.link;
                let incoming = |port: u32| self.topology.reverse(number(switch.down + port));
                let waiting = waiting.into_iter().map(incoming).collect();
                all.push(Stuck { class, link: number(out), since: paused, waiting });
            }
        }
        all
    }

    /// When the next of the pauses that [`Pfc::stuck`] looks at will have lasted for `after`, later
    /// than `now`.
    pub(crate) fn next_stuck<const WATCHED: bool>(
        &self,
        links: &Links<'_, WATCHED>,
        now: Time,
        after: Dur,
    ) -> Option<Time> {
        let ports = links.switches().iter().flat_map(outputs);
        let classes = ports.flat_map(|out| (0..8).map(move |class| (out, class)));
        let due = classes.filter_map(|(out, class)| Some(self.paused_since(out, class)? + after));
        due.filter(|&due| due > now).min()
    }

    /// Since when `class` of port `out` has been paused, if it is and nothing is done about it.
    fn paused_since(&self, out: u32, class: u8) -> Option<Time> {
        let rx = &self.lines[out as usize].rx;
        let (since, _) = rx.pause(class).filter(|_| rx.overdue() & 1 << class == 0)?;
        Some(since)
    }

    /// If the switch port of `link` is idle: send a frame if one is pending, or a packet that may
    /// leave.
    fn serve<const WATCHED: bool>(&mut self, links: &mut Links<'_, WATCHED>, link: u32) {
        let port = links.port_mut(link);
        if port.busy() {
            return;
        }
        let line = &mut self.lines[link as usize];
        if line.tx.pending() {
            return self.send_frame(links, link);
        }
        let Some(queue) = &mut port.queue else { return };
        let Some(packet) = queue.dequeue() else { return };
        let mark = queue.take_mark();
        line.came = self.came[packet.handle as usize];
        if WATCHED {
            let so_far = line.rx.paused_for(packet.class, links.core().now());
            links.lives_mut().into_iter().for_each(|lives| lives.leave(packet.handle, so_far));
        }
        links.start(link, packet);
        if let Some(packet) = mark {
            links.decide(link, Disposition::Mark, packet);
        }
        links.stamp(link);
    }

    /// The port of `link` is idle and has a frame to send.
    fn send_frame<const WATCHED: bool>(&mut self, links: &mut Links<'_, WATCHED>, link: u32) {
        let line = &mut self.lines[link as usize];
        let frame = line.tx.next_frame(line.refresh_after.is_some());
        let now = links.core().now();
        if let Some(after) = line.refresh_after.filter(|_| frame.stop() != 0) {
            line.tx.again_at = now + after;
            self.pending += 1;
            links.core_mut().events_mut().pause(link, line.tx.again_at);
        }
        line.frames += 1;
        line.in_service = true;
        let due = links.send_frame(link, wire::pfc::WIRE_LEN);
        let port = links.port_mut(link);
        port.chain = frame.chain(port.chain, now, digest::Outcome::Sent);
        match links.elsewhere(link) {
            Some(Elsewhere { part, link }) => {
                links.core_mut().outgoing(part).frames.push((link, due, frame));
            }
            None => self.frame_comes(links, link, due, frame),
        }
    }

    /// `frame` will arrive over `link`.
    pub(crate) fn frame_comes<const WATCHED: bool>(
        &mut self,
        links: &mut Links<'_, WATCHED>,
        link: u32,
        at: Time,
        frame: Frame,
    ) {
        self.pending += 1;
        self.coming += 1;
        links.core_mut().events_mut().frame(link, frame.0, at);
    }
}

/// The ports of a switch.
fn outputs(switch: &Switch) -> std::ops::Range<u32> {
    switch.down..switch.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_an_xon_is_stopped_unless_the_xon_was_lost() {
        let mut line = Line::default();
        let mut far = PauseTx::default();
        far.want(3, true, 1).unwrap();
        let stop = far.next_frame(false);
        far.want(3, false, 0).unwrap();
        let go = far.next_frame(false);
        line.rx.hear(stop, Time(1), Time::NEVER);
        assert_eq!(line.stopped(), 1 << 3);
        line.missed = true;
        assert_eq!(line.stopped(), 0);
        line.missed = false;
        line.rx.hear(go, Time(2), Time::NEVER);
        assert_eq!(line.stopped(), 0);
        line.tx.want(0, true, 1).unwrap();
        line.tx.next_frame(false);
        assert_eq!(line.stopped(), 1, "and what it has stopped itself counts, too");
    }
}
