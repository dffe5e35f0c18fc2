//! [`Switch`]: one switch of a topology, with real frames instead of simulated packets.
//!
//! It has no sockets and no clock: frames come in with the instants at which they came, and go out
//! when somebody says how late it is.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use endpoint::{Flags, Packet};
use fabric::{Config, FaultScript, FaultStep, LinkChange, Node, Router, Topology};
use queues::{Desc, Disposition, QueueSpec, draws};
use units::{Dur, Rate, Time};
use wire::rewrite;

use crate::frames::{self, Frames};
use crate::port::{Happened, Port, What};
use crate::record::{Entry, Event, Recorder};

/// One link has one speed, this at the most: a frame comes at least so much after the one before it
/// over the same link. So the simulator can have the same arrivals ([`crate::replay()`]).
pub(crate) const FASTEST: Rate = Rate(8_000_000_000_000);
/// Of such a link, the shortest that there is.
pub(crate) const PROPAGATION: Dur = Dur(1);

/// What has happened at one port so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came in by it.
    pub received: u64,
    /// Those of them that a fault of a link took.
    pub lost: u64,
    /// Those of them that go nowhere: no IPv4 or ARP, or for a host that there is not.
    pub unknown: u64,
    /// Packets that had their payload cut off at its queue.
    pub trimmed: u64,
    /// Packets that were marked at its queue.
    pub marked: u64,
    /// Headers that turned back at its queue.
    pub bounced: u64,
    /// Packets that its queue lost.
    pub dropped: u64,
    /// Frames that left by it, and their bytes as the port counts them.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Frames that could not be trimmed, since they were damaged: not sent.
    pub damaged: u64,
    /// Bytes in its queue now, the packet in service included.
    pub queue_bytes: u32,
    /// The most that were.
    pub max_queue_bytes: u32,
}

/// Why a switch cannot run by itself. `Display` is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SwitchError {
    /// The table of a scenario that asks for what there is not.
    pub table: &'static str,
    what: String,
}

/// A port: both directions of a link.
struct Both {
    /// The number of the link out, and of the one in.
    out: u32,
    back: u32,
    port: Port,
    /// The probability with which what comes in is lost, and, where a host is at the other end,
    /// with which what goes out is.
    loss: [f64; 2],
    /// How many have come in and gone out.
    count: [u64; 2],
    /// When the latest came in.
    latest: Time,
    counters: Counters,
}

/// One switch of a topology.
pub struct Switch {
    topology: Arc<Topology>,
    seed: u64,
    router: Router,
    script: FaultScript,
    ports: Vec<Both>,
    by_out: BTreeMap<u32, usize>,
    by_back: BTreeMap<u32, usize>,
    frames: Frames,
    /// Nothing happens before this any more.
    now: Time,
    arrivals: u64,
    happened: Vec<Happened>,
    /// Headers to be sent back, and since when.
    returned: Vec<(Time, u32)>,
    /// What has left: port, when, frame.
    departures: Vec<(usize, Time, u32)>,
    recorder: Option<Recorder>,
    /// The first thing that could not be recorded.
    error: Option<io::Error>,
}

impl Switch {
    /// The switch `node` of `topology`, with queues, routing, faults and seed of `config`.
    ///
    /// # Errors
    /// What of these the software switch does not have.
    pub fn new(topology: &Arc<Topology>, config: &Config, node: Node) -> Result<Self, SwitchError> {
        check(topology, config)?;
        let router = Router::new(Arc::clone(topology), config.routing, config.seed, node);
        let refused =
            |e: fabric::ConfigError| SwitchError { table: "topology", what: e.to_string() };
        let router = router.map_err(refused)?;
        let links = (0..).zip(topology.links()).filter(|(_, link)| link.from == node);
        let both = |(out, link): (u32, &fabric::Link)| Both {
            out,
            // Every link has one that leads back.
            back: topology.find_link(link.to, node).unwrap_or(out),
            port: Port::new(out, config.seed, link.rate, config.queue_of(out)),
            loss: [0.0; 2],
            count: [0; 2],
            latest: Time::ZERO,
            counters: Counters::default(),
        };
        let ports: Vec<Both> = links.map(both).collect();
        Ok(Self {
            topology: Arc::clone(topology),
            seed: config.seed,
            router,
            script: FaultScript::new(topology, &config.faults, config.reroute_after),
            by_out: (0..).zip(&ports).map(|(n, port)| (port.out, n)).collect(),
            by_back: (0..).zip(&ports).map(|(n, port)| (port.back, n)).collect(),
            ports,
            frames: Frames::default(),
            now: Time::ZERO,
            arrivals: 0,
            happened: Vec::new(),
            returned: Vec::new(),
            departures: Vec::new(),
            recorder: None,
            error: None,
        })
    }

    /// Write down what comes and what becomes of it, from now on ([`crate::record`]).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record(&mut self, to: Box<dyn Write + Send>) -> io::Result<()> {
        self.recorder = Some(Recorder::new(to)?);
        Ok(())
    }

    /// Where its ports lead, in their order.
    pub fn ports(&self) -> impl Iterator<Item = Node> {
        self.ports.iter().map(|both| self.topology.links()[both.out as usize].to)
    }

    /// The numbers of the links in and out of each port.
    pub fn links(&self) -> impl Iterator<Item = (u32, u32)> {
        self.ports.iter().map(|both| (both.back, both.out))
    }

    /// What has happened at each port, in their order.
    pub fn counters(&self) -> impl Iterator<Item = Counters> {
        self.ports.iter().map(|both| {
            let (queue_bytes, max_queue_bytes) = both.port.bytes();
            Counters { queue_bytes, max_queue_bytes, ..both.counters }
        })
    }

    /// Have memory for this many frames from the start.
    pub(crate) fn prepare(&mut self, frames: usize) {
        self.frames.prepare(frames);
    }

    /// Frames that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.frames.len()
    }

    /// When the next frame leaves or the next fault begins or ends, if nothing comes.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        let departures = self.ports.iter().filter_map(|both| both.port.next());
        departures.chain(self.script.next_at()).min()
    }

    /// `frame` has come in by port `port` at `at`. Arrivals are one after the other: what came
    /// before something that has happened already comes right after it.
    pub fn arrive(&mut self, at: Time, port: usize, frame: &[u8]) {
        let both = &mut self.ports[port];
        both.counters.received += 1;
        let Some(mut pkt) = frames::packet(frame) else {
            both.counters.unknown += 1;
            return;
        };
        let distance = FASTEST.serialise(u64::from(pkt.wire_len)) + PROPAGATION;
        let at = at.max(Time(self.now.0 + 1)).max(both.latest + distance);
        self.faults(at);
        let both = &mut self.ports[port];
        (self.now, both.latest) = (at, at);
        both.count[0] += 1;
        if draws::is_lost(self.seed, both.back, both.count[0], both.loss[0]) {
            both.counters.lost += 1;
            return;
        }
        let back = both.back;
        let out = self.router.link(&pkt).and_then(|link| self.by_out.get(&link).copied());
        let Some(out) = out.filter(|&out| out != port) else {
            self.ports[port].counters.unknown += 1;
            return;
        };
        pkt.key = self.arrivals;
        self.arrivals += 1;
        let handle = self.frames.insert(pkt, frame);
        self.note(at, Event::Arrived, out, (pkt.key, pkt.wire_len), Some((back, pkt)));
        self.enqueue(at, out, handle);
        while let Some((at, handle)) = self.returned.pop() {
            self.send_back(at, handle);
        }
    }

    /// Let everything happen that does up to and including `until`.
    pub fn advance(&mut self, until: Time) {
        self.faults(until);
        for port in 0..self.ports.len() {
            self.ports[port].port.catch_up(until, &mut self.happened);
            self.apply(port);
        }
        self.now = self.now.max(until);
    }

    /// Hand what has left since the last call to `send`: by which port, when, and the frame.
    pub fn departures(&mut self, mut send: impl FnMut(usize, Time, &[u8])) {
        for (port, at, handle) in self.departures.drain(..) {
            send(port, at, &self.frames.get(handle).bytes);
            self.frames.free(handle);
        }
    }

    /// It is over: everything recorded is in its file.
    ///
    /// # Errors
    /// What could not be recorded.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.recorder.as_mut().map_or(Ok(()), Recorder::flush)
    }

    /// Offer a frame to the queue of port `out`.
    fn enqueue(&mut self, at: Time, out: usize, handle: u32) {
        let pkt = self.frames.get(handle).pkt;
        let packet = Desc { handle, len: pkt.wire_len, flags: pkt.flags, class: pkt.class };
        self.ports[out].port.arrive(at, packet, &pkt, &mut self.happened);
        self.apply(out);
    }

    /// A header that a queue has turned back goes to its sender.
    fn send_back(&mut self, at: Time, handle: u32) {
        let held = self.frames.get_mut(handle);
        let pkt = held.pkt;
        held.broken |= rewrite::bounce(&mut held.bytes).is_err();
        let out = self.router.link(&pkt).and_then(|link| self.by_out.get(&link).copied());
        match out {
            Some(out) => {
                self.note(at, Event::Bounced, out, (pkt.key, pkt.wire_len), None);
                self.enqueue(at, out, handle);
            }
            None => self.frames.free(handle),
        }
    }

    /// Carry out what has happened at port `port`.
    fn apply(&mut self, port: usize) {
        let mut happened = std::mem::take(&mut self.happened);
        for &Happened { at, what, packet } in &happened {
            match what {
                What::Sent => self.sent(at, port, packet),
                What::Fate(fate) => self.decide(at, port, fate, packet),
            }
        }
        happened.clear();
        self.happened = happened;
    }

    fn sent(&mut self, at: Time, port: usize, packet: Desc) {
        let key = self.frames.get(packet.handle).pkt.key;
        self.note(at, Event::Sent, port, (key, packet.len), None);
        let both = &mut self.ports[port];
        both.count[1] += 1;
        if draws::is_lost(self.seed, both.out, both.count[1], both.loss[1]) {
            both.counters.lost += 1;
            self.frames.free(packet.handle);
        } else if self.frames.get(packet.handle).broken {
            both.counters.damaged += 1;
            self.frames.free(packet.handle);
        } else {
            both.counters.sent += 1;
            both.counters.sent_bytes += u64::from(packet.len);
            self.departures.push((port, at, packet.handle));
        }
    }

    /// What the simulator's ports do to packets, done to frames.
    fn decide(&mut self, at: Time, port: usize, fate: Disposition, packet: Desc) {
        let counters = &mut self.ports[port].counters;
        let held = self.frames.get_mut(packet.handle);
        let event = match fate {
            Disposition::Trim => {
                counters.trimmed += 1;
                held.pkt.flags.set(Flags::TRIMMED);
                held.pkt.wire_len = packet.len;
                held.broken |= rewrite::trim(&mut held.bytes, packet.len).is_err();
                Event::Trimmed
            }
            Disposition::Mark => {
                counters.marked += 1;
                held.pkt.flags.set(Flags::CE);
                held.broken |= rewrite::mark(&mut held.bytes).is_err();
                Event::Marked
            }
            Disposition::Bounce => {
                counters.bounced += 1;
                held.pkt.flags.set(Flags::BOUNCED);
                std::mem::swap(&mut held.pkt.src, &mut held.pkt.dst);
                self.returned.push((at, packet.handle));
                return;
            }
            Disposition::Drop => {
                counters.dropped += 1;
                Event::Dropped
            }
        };
        let key = held.pkt.key;
        self.note(at, event, port, (key, packet.len), None);
        if fate == Disposition::Drop {
            self.frames.free(packet.handle);
        }
    }

    fn note(
        &mut self,
        at: Time,
        event: Event,
        port: usize,
        (packet, len): (u64, u16),
        arrival: Option<(u32, Packet)>,
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let entry = Entry { at, event, packet, out: self.ports[port].out, len, arrival };
        if let Err(error) = recorder.note(&entry) {
            self.error.get_or_insert(error);
            self.recorder = None;
        }
    }

    /// Let faults begin and end up to and including `until`.
    fn faults(&mut self, until: Time) {
        while let Some(FaultStep { at, link, change }) = self.script.take(until) {
            match change {
                LinkChange::Loss(loss) => self.set_loss(link, loss),
                LinkChange::Rate(rate) => {
                    if let Some(&port) = self.by_out.get(&link) {
                        self.ports[port].port.set_rate(at, rate, &mut self.happened);
                        self.apply(port);
                    }
                }
                LinkChange::Believed(works) => self.router.believe(link, works),
                LinkChange::Signal(_) => {}
            }
        }
    }

    /// Losses are at the receiving end, so of links between switches at the other one.
    fn set_loss(&mut self, link: u32, loss: f64) {
        if let Some(&port) = self.by_back.get(&link) {
            self.ports[port].loss[0] = loss;
        }
        if let Some(&port) = self.by_out.get(&link)
            && matches!(self.topology.links()[link as usize].to, Node::Host(_))
        {
            self.ports[port].loss[1] = loss;
        }
    }
}

/// Refuse what only the simulator has.
fn check(topology: &Topology, config: &Config) -> Result<(), SwitchError> {
    let lossless = matches!(config.queue, QueueSpec::Lossless(_));
    let slots = topology.switch_slot().is_some();
    let refused = [
        ("queue", lossless, "no lossless queues: the software switch has no flow control (PFC)"),
        ("buffer", config.buffer.is_some(), "ports of the software switch share no memory"),
        ("transport", config.telemetry, "the software switch writes no telemetry into packets"),
        ("topology", slots, "the software switch has no slots: frames leave when they can"),
    ];
    match refused.iter().find(|(_, is, _)| *is) {
        Some((table, _, what)) => Err(SwitchError { table, what: (*what).to_owned() }),
        None => Ok(()),
    }
}
