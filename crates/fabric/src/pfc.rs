//! Priority flow control (PFC, IEEE 802.1Qbb): switches that tell the far ends of their links to stop a class
//! before they would have to lose its packets. What is to be stopped when is decided in `queues::Memory`; here are the
//! frames that say so, and the ports that obey them.
//!
//! A switch whose ports share memory is one entity (see `Part::admits`): its ports' departures are events. A
//! packet that comes in is accounted to the port over which it came ([`Part::join`]), until it has left
//! ([`Part::lossless_departure`]). Either may change what is to be stopped at the far end of some port's link.
//! That port sends a frame as soon as the packet in service has left, before everything that waits, and
//! says in it all that has changed by then. A frame takes time on the wire as packets do, but is no packet: it
//! has no place in memory but its event, and does not count among packets sent and received.
//!
//! At the far end a switch closes the class in the queue of the port that transmits over the link, and
//! a host's interface sends nothing of it ([`Part::frame_arrives`]). What is being sent is sent.

pub(crate) mod deadlock;
mod line;
mod obey;

use queues::{Admit, Desc, Fate, Ingress, Memory, MemorySpec, Queue, QueueSpec};
use units::{Dur, Time};

use crate::config::{Config, PfcSpec};
use crate::digest;
use crate::outcome::PauseStats;
use crate::part::{Elsewhere, Part, Switch};
use crate::port::{FarEnd, Port};
use crate::topology::Topology;

pub(crate) use line::Frame;
use line::{Gate, Teller};
pub use obey::check_pause;

/// Flow control in one partition, where queues are lossless.
pub(crate) struct Pfc {
    spec: PfcSpec,
    /// By switch.
    pub(crate) memories: Vec<Memory>,
    /// By port.
    lines: Vec<Line>,
    /// By port, as the end of a link: the port of the same host or switch that transmits against it.
    /// [`NOWHERE`] where the link ends in another partition.
    back: Vec<u32>,
    /// By packet in a switch: the port over which it has come, among those of the switch.
    came: Vec<u32>,
    /// Events of flow control that are to come.
    pub(crate) pending: u64,
    /// Frames among them.
    coming: u64,
    /// Scratch: what may go on.
    resumed: Vec<(u32, u8)>,
}

const NOWHERE: u32 = u32::MAX;

/// Flow control at one port.
#[derive(Default)]
struct Line {
    teller: Teller,
    gate: Gate,
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
    /// How long after a frame of this port that stops somebody it is sent again, if it is.
    repeat: Option<Dur>,
    /// Of a host: a packet whose class was paused when the endpoint chose it.
    held: Option<u32>,
    /// A frame to it was lost on a broken link.
    missed: bool,
}

impl Line {
    /// The classes that it stops at the far end, and those that it is stopped in itself; none of these if what it has
    /// been told is not all that was said.
    fn stopped(&self) -> u8 {
        self.teller.told() | if self.missed { 0 } else { self.gate.paused() }
    }
}

impl Pfc {
    /// Of a partition with these switches and ports, of which those from `receiving` on only receive. `None`
    /// unless queues are lossless.
    pub(crate) fn new(
        topology: &Topology,
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
            let repeat = hold(topology.reverse(port.rare.link)).map(|hold| Dur(hold.0 / 2));
            Line { hold: hold(port.rare.link), repeat, ..Line::default() }
        };
        let memory = |switch: &Switch| memory(topology, &lossless.memory, switch.number).ok();
        Some(Self {
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

    /// Of port `port` by `now`.
    pub(crate) fn stats(&self, port: usize, now: Time) -> PauseStats {
        let line = &self.lines[port];
        PauseStats { frames: line.frames, ..line.gate.stats(now) }
    }
}

/// Whether the memory of every switch can hold what is reserved in it.
///
/// # Errors
/// A sentence, if one is too small.
pub fn check_memory(topology: &Topology, spec: &MemorySpec) -> Result<(), String> {
    let mut switches = 0..topology.switches.len() as u32;
    switches.try_for_each(|switch| memory(topology, spec, switch).map(drop))
}

/// The ports of switch number `switch` as packets come in over them, in their order.
fn ingress_ports(topology: &Topology, switch: u32) -> Vec<Ingress> {
    let own = &topology.switches[switch as usize];
    let ingress = |back: u32| {
        let link = topology.reverse(back);
        Ingress {
            rate: topology.links()[link as usize].rate,
            delay: topology.delay(link),
            back_rate: topology.links()[back as usize].rate,
            back_delay: topology.delay(back),
            mtu: topology.mtu(),
        }
    };
    (own.down..own.up + own.ups).map(ingress).collect()
}

/// The memory of switch number `switch`; a sentence if it is too small.
fn memory(topology: &Topology, spec: &MemorySpec, switch: u32) -> Result<Memory, String> {
    Memory::new(spec, &ingress_ports(topology, switch), topology.links()[0].rate)
}

impl<const WATCHED: bool> Part<WATCHED> {
    /// A packet has come over `link` and is to leave over port `out`.
    pub(crate) fn join(&mut self, link: u32, out: u32, packet: Desc) {
        let Some(pfc) = &mut self.pfc else { return };
        let at = self.ports[out as usize].rare.switch;
        let (back, class) = (pfc.back[link as usize], packet.class);
        if class > 7 {
            return self.violate(None, format!("a packet of class {class}"));
        }
        let port = back - self.switches[at as usize].down;
        if pfc.drops(out) & 1 << class != 0 {
            pfc.lines[out as usize].gate.count_drop();
            return self.decide(out, Fate::Drop, packet);
        }
        let memory = &mut pfc.memories[at as usize];
        let Admit::Joins { xoff } = memory.admit(port, class, packet.len) else {
            return self.decide(out, Fate::Drop, packet);
        };
        let handle = packet.handle as usize;
        if pfc.came.len() <= handle {
            pfc.came.resize(handle + 1, 0);
        }
        pfc.came[handle] = port;
        self.enqueue(out, packet);
        if xoff {
            self.want(at, port, class, true);
        }
        self.serve(out);
    }

    /// A switch port has finished a packet or a frame.
    pub(crate) fn lossless_departure(&mut self, link: u32) {
        let Some(pfc) = &mut self.pfc else { return };
        let (line, port) = (&mut pfc.lines[link as usize], &mut self.ports[link as usize]);
        let sent = port.finish();
        if std::mem::take(&mut line.in_service) {
            self.serve(link);
            return;
        }
        let (at, came) = (port.rare.switch, line.came);
        if let Some(queue) = &mut port.queue {
            queue.finish(sent);
        }
        self.give_back(at, came, sent);
        self.serve(link);
    }

    /// The memory of switch `at` holds `packet` no more, which had come over its port `came`.
    fn give_back(&mut self, at: u32, came: u32, packet: Desc) {
        let Some(pfc) = &mut self.pfc else { return };
        let mut resumed = std::mem::take(&mut pfc.resumed);
        let left =
            pfc.memories[at as usize].depart(came, packet.class, packet.len, &mut |port, class| {
                resumed.push((port, class));
            });
        self.require(None, left);
        for &(port, class) in &resumed {
            self.want(at, port, class, false);
        }
        resumed.clear();
        if let Some(pfc) = &mut self.pfc {
            pfc.resumed = resumed;
        }
    }

    /// From now on, `class` is to be stopped or not at the far end of port `port` of switch `at`.
    fn want(&mut self, at: u32, port: u32, class: u8, stop: bool) {
        let depth = if stop { self.depth(at, port, class) } else { 0 };
        let link = self.switches[at as usize].down + port;
        let Some(pfc) = &mut self.pfc else { return };
        let change = pfc.lines[link as usize].teller.want(class, stop, depth);
        self.require(None, change);
        self.serve(link);
    }

    /// How many pauses in a row stopping `class` at port `port` of switch `at` would make: one more than the
    /// most behind packets that have come that way and cannot leave.
    fn depth(&self, at: u32, port: u32, class: u8) -> u8 {
        let Some(pfc) = &self.pfc else { return 0 };
        let behind = self.outputs(at).filter_map(|out| {
            let (_, depth) = pfc.lines[out as usize].gate.pause(class)?;
            self.waiting(out, class).any(|came| came == port).then_some(depth)
        });
        behind.max().unwrap_or(0).saturating_add(1)
    }

    /// The ports of switch `at`.
    pub(crate) fn outputs(&self, at: u32) -> std::ops::Range<u32> {
        let switch = &self.switches[at as usize];
        let own = &self.world.topology.switches[switch.number as usize];
        switch.down..switch.up + own.ups
    }

    /// Over which ports of its switch the packets of `class` have come that wait at port `out`.
    pub(crate) fn waiting(&self, out: u32, class: u8) -> impl Iterator<Item = u32> {
        let queue = self.ports[out as usize].queue.iter();
        let waiting = queue.flat_map(Queue::waiting);
        waiting.filter(move |packet| packet.class == class).filter_map(|packet| {
            let pfc = self.pfc.as_ref()?;
            pfc.came.get(packet.handle as usize).copied()
        })
    }

    /// That the memory of each switch holds what its queues hold, classes apart that do not count
    /// (specs/rdma.md#I2).
    pub(crate) fn check_memories(&mut self) {
        for at in 0..self.pfc.as_ref().map_or(0, |pfc| pfc.memories.len()) {
            let held = self.outputs(at as u32).map(|out| self.counted(at, out)).sum();
            let Some(pfc) = &self.pfc else { return };
            self.check_use(at, held, pfc.memories[at].used());
        }
    }

    /// Whether switches hold nothing that counts, and no frame is on its way or is going to be sent.
    pub(crate) fn is_calm(&self) -> bool {
        self.pfc.as_ref().is_none_or(|pfc| {
            let silent = !pfc.lines.iter().any(|line| line.teller.has_news());
            silent && pfc.coming == 0 && pfc.memories.iter().all(|memory| memory.used() == 0)
        })
    }

    /// That every XOFF has had its XON (specs/rdma.md#I3), in a fabric that is calm everywhere.
    pub(crate) fn check_resumed(&mut self) {
        let Some(pfc) = &self.pfc else { return };
        let stopped = pfc.lines.iter().zip(&self.ports).find(|(line, _)| line.stopped() != 0);
        let memory = pfc.memories.iter().position(Memory::pauses_any);
        let what = match (stopped, memory) {
            (Some((line, port)), _) => {
                let (classes, link) = (line.stopped(), port.rare.link);
                let link = &self.world.topology.links()[link as usize];
                format!("classes {classes:#010b} beside {link}")
            }
            (None, Some(at)) => format!("what switch {} has paused", self.switches[at].number),
            (None, None) => return,
        };
        self.violate(None, format!("every queue is empty, and nobody has resumed {what}"));
    }

    /// Bytes at port `out` of switch `at` that count, the packet in service included.
    fn counted(&self, at: usize, out: u32) -> u64 {
        let (Some(pfc), port) = (&self.pfc, &self.ports[out as usize]) else { return 0 };
        let waiting = port.queue.iter().flat_map(Queue::waiting);
        let serving = port.serving().filter(|_| !pfc.lines[out as usize].in_service);
        let counts = |packet: &Desc| !pfc.memories[at].is_control(packet.class);
        waiting.chain(serving).filter(counts).map(|packet| u64::from(packet.len)).sum()
    }

    /// Since when `class` of port `out` has been paused, if it is and nothing is done about it.
    pub(crate) fn paused_since(&self, out: u32, class: u8) -> Option<Time> {
        let gate = &self.pfc.as_ref()?.lines[out as usize].gate;
        let (since, _) = gate.pause(class).filter(|_| gate.overdue() & 1 << class == 0)?;
        Some(since)
    }

    /// The number in the fabric of the link that comes in beside port `out`.
    pub(crate) fn incoming(&self, out: u32) -> u32 {
        self.world.topology.reverse(self.ports[out as usize].rare.link)
    }

    /// If the switch port of `link` is idle: send what it has to say, or a packet that may leave.
    fn serve(&mut self, link: u32) {
        let Some(pfc) = &mut self.pfc else { return };
        let port = &mut self.ports[link as usize];
        if port.busy() {
            return;
        }
        let line = &mut pfc.lines[link as usize];
        if line.teller.has_news() {
            return self.send_frame(link);
        }
        let Some(queue) = &mut port.queue else { return };
        let Some(packet) = queue.dequeue() else { return };
        let mark = queue.take_mark();
        line.came = pfc.came[packet.handle as usize];
        port.start(link, packet, self.now, &mut self.events);
        if let Some(packet) = mark {
            self.decide(link, Fate::Mark, packet);
        }
        self.stamp(link);
    }

    /// The port of `link` is idle and has something to say.
    fn send_frame(&mut self, link: u32) {
        let Some(pfc) = &mut self.pfc else { return };
        let (port, line) = (&mut self.ports[link as usize], &mut pfc.lines[link as usize]);
        let frame = line.teller.tell(line.repeat.is_some());
        if let Some(repeat) = line.repeat.filter(|_| frame.stop() != 0) {
            line.teller.again_at = self.now + repeat;
            pfc.pending += 1;
            self.events.pause(link, line.teller.again_at);
        }
        line.frames += 1;
        line.in_service = true;
        port.note_active(link, &mut self.active);
        let due = port.send_frame(link, wire::pfc::WIRE_LEN, self.now, &mut self.events);
        port.chain = frame.chain(port.chain, self.now, digest::Outcome::Sent);
        if let FarEnd::Elsewhere(place) = port.end() {
            let Elsewhere { part, link } = self.elsewhere[place as usize];
            self.outbox[part as usize].frames.push((link, due, frame));
        } else {
            self.frame_comes(link, due, frame);
        }
    }

    /// `frame` will arrive over `link`.
    pub(crate) fn frame_comes(&mut self, link: u32, at: Time, frame: Frame) {
        let Some(pfc) = &mut self.pfc else { return };
        pfc.pending += 1;
        pfc.coming += 1;
        self.events.frame(link, frame.0, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_heard_no_xon_is_stopped_unless_it_was_lost() {
        let mut line = Line::default();
        let mut far = Teller::default();
        far.want(3, true, 1).unwrap();
        let stop = far.tell(false);
        far.want(3, false, 0).unwrap();
        let go = far.tell(false);
        line.gate.hear(stop, Time(1), Time::NEVER);
        assert_eq!(line.stopped(), 1 << 3);
        line.missed = true;
        assert_eq!(line.stopped(), 0);
        line.missed = false;
        line.gate.hear(go, Time(2), Time::NEVER);
        assert_eq!(line.stopped(), 0);
        line.teller.want(0, true, 1).unwrap();
        line.teller.tell(false);
        assert_eq!(line.stopped(), 1, "and what it has stopped itself counts, too");
    }
}
