//! What a run reports about itself.

use std::fmt;

use endpoint::Stat;
use queues::{PfcBufferStats, SharedBufferStats};
use units::{Dur, MsgKey, Time};

use crate::livelock::Recent;
use crate::steady::Ratio;
use crate::topology::{HEIGHTS, Node};

/// How far a run has come; given to the caller at every grid step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Events so far.
    pub events: u64,
    /// Messages submitted so far.
    pub submitted: u64,
    /// Messages delivered so far.
    pub delivered: u64,
    /// Payload bytes placed so far.
    pub placed_bytes: u64,
}

/// Packets and bytes on the wire that entered and left the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conservation {
    /// Put on a host's link.
    pub sent: Amount,
    /// Arrived at a host.
    pub received: Amount,
    /// Lost at a full queue or by a fault of a link.
    pub dropped: Amount,
    /// Payload bytes cut off (and how often).
    pub trimmed: Amount,
    /// Still in queues and on links.
    pub in_flight: Amount,
}

/// A number of packets and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Conservation {
    /// Whether what went in is accounted for.
    #[must_use]
    pub fn holds(&self) -> bool {
        let out = [self.received, self.dropped, self.in_flight];
        let packets: u64 = out.iter().map(|a| a.packets).sum();
        let bytes: u64 = out.iter().map(|a| a.bytes).sum::<u64>() + self.trimmed.bytes;
        packets == self.sent.packets && bytes == self.sent.bytes
    }
}

/// Sums over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets with payload put on the wire by hosts.
    pub data_sent: u64,
    /// Packets without payload put on the wire by hosts.
    pub control_sent: u64,
    /// Payloads cut off.
    pub trimmed: u64,
    /// Headers sent back.
    pub bounced: u64,
    /// Packets lost.
    pub dropped: u64,
    /// Those of them that a fault of a link has taken.
    pub faulted: u64,
    /// Packets marked.
    pub marked: u64,
    /// What the transports counted, by [`Stat`].
    pub stats: [u64; Stat::COUNT],
    /// Messages submitted.
    pub submitted: u64,
    /// Messages delivered whole.
    pub delivered: u64,
    /// Messages that failed.
    pub failed: u64,
}

impl Counters {
    /// How often the transports counted `stat`.
    #[must_use]
    pub fn stat(&self, stat: Stat) -> u64 {
        self.stats[stat as usize]
    }
}

/// One directed link over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that crossed it.
    pub packets: u64,
    /// Bytes whose transmission began, whole run.
    pub bytes: u64,
    /// Bytes whose transmission began inside the measurement window.
    pub bytes_in_window: u64,
    /// The most bytes its queue held.
    pub max_queue_bytes: u32,
    /// Payloads cut off at its queue.
    pub trimmed: u64,
    /// Bytes cut off.
    pub trimmed_bytes: u64,
    /// Headers turned back at its queue.
    pub bounced: u64,
    /// Packets lost at its queue or, by a fault, on it.
    pub dropped: u64,
    /// Bytes of these.
    pub dropped_bytes: u64,
    /// Packets marked at its queue.
    pub marked: u64,
    /// Flow control.
    pub pfc: PauseStats,
}

/// Priority flow control of one directed link over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseStats {
    /// PFC frames whose transmission over it began. They are among its bytes and its packets, and
    /// not among those sent and received by hosts.
    pub frames: u64,
    /// Times that a class of it was paused by the far end.
    pub pauses: u64,
    /// Times that such a pause ended.
    pub resumes: u64,
    /// How long its classes were paused, together.
    pub paused: Dur,
    /// The longest of these pauses.
    pub longest: Dur,
    /// The most pauses in a row that ended in one of these: 1, if the far end paused it for packets
    /// that nothing but the load kept there; one more than that of the pause which kept them. (If
    /// one frame pauses several classes, the most of them counts for each.)
    pub depth: u8,
    /// Pauses of it that lasted too long for the watchdog.
    pub watchdog: u64,
    /// Packets that the watchdog dropped. They are among those lost.
    pub watchdog_drops: u64,
}

impl PauseStats {
    /// A pause has lasted for `time`.
    pub(crate) fn add(&mut self, time: Dur) {
        self.paused += time;
        self.longest = self.longest.max(time);
    }

    fn join(&mut self, other: &Self) {
        self.frames += other.frames;
        self.pauses += other.pauses;
        self.resumes += other.resumes;
        self.paused += other.paused;
        self.longest = self.longest.max(other.longest);
        self.depth = self.depth.max(other.depth);
        self.watchdog += other.watchdog;
        self.watchdog_drops += other.watchdog_drops;
    }
}

/// Paused classes of links that waited for one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found.
    pub at: Time,
    /// Since when all of the links had been paused.
    pub since: Time,
    /// Which class.
    pub class: u8,
    /// The switches in a circle: the link from each to the next, and from the last to the first,
    /// was paused.
    pub cycle: Vec<Node>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.cycle {
            write!(f, "{node} -> ")?;
        }
        match self.cycle.first() {
            Some(first) => write!(f, "{first} class {}", self.class),
            None => Ok(()),
        }
    }
}

impl LinkStats {
    /// Add what came over the link between two looks at it, scaled by `share`, but for maxima.
    /// `in_window`: inside the measurement window.
    pub(crate) fn grow(&mut self, from: &Self, to: &Self, share: Ratio, in_window: bool) {
        let more = |from: u64, to: u64| share.of(to.saturating_sub(from));
        let bytes = more(from.bytes, to.bytes);
        self.packets += more(from.packets, to.packets);
        self.bytes += bytes;
        self.bytes_in_window += if in_window { bytes } else { 0 };
        self.trimmed += more(from.trimmed, to.trimmed);
        self.trimmed_bytes += more(from.trimmed_bytes, to.trimmed_bytes);
        self.bounced += more(from.bounced, to.bounced);
        self.dropped += more(from.dropped, to.dropped);
        self.dropped_bytes += more(from.dropped_bytes, to.dropped_bytes);
        self.marked += more(from.marked, to.marked);
        let (from, to) = (&from.pfc, &to.pfc);
        self.pfc.frames += more(from.frames, to.frames);
        self.pfc.pauses += more(from.pauses, to.pauses);
        self.pfc.resumes += more(from.resumes, to.resumes);
        self.pfc.paused += Dur(more(from.paused.0, to.paused.0));
        self.pfc.watchdog += more(from.watchdog, to.watchdog);
        self.pfc.watchdog_drops += more(from.watchdog_drops, to.watchdog_drops);
    }

    /// Add what is known at the other end of the link.
    pub(crate) fn join(&mut self, end: &Self) {
        self.packets += end.packets;
        self.bytes += end.bytes;
        self.bytes_in_window += end.bytes_in_window;
        self.max_queue_bytes = self.max_queue_bytes.max(end.max_queue_bytes);
        self.trimmed += end.trimmed;
        self.trimmed_bytes += end.trimmed_bytes;
        self.bounced += end.bounced;
        self.dropped += end.dropped;
        self.dropped_bytes += end.dropped_bytes;
        self.marked += end.marked;
        self.pfc.join(&end.pfc);
    }
}

/// The fabric at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Time,
    /// Bytes in switch queues: median, 99th percentile and maximum over ports, and the sum.
    pub queue_bytes: QueueBytes,
    /// Payload bytes placed since the start.
    pub placed_bytes: u64,
    /// Packets that hosts have sent since the start.
    pub packets: u64,
    /// Messages submitted and not yet delivered or failed.
    pub messages_in_flight: u64,
    /// Bytes transmitted since the start, by the height ([`crate::Tier::height`]) of the links'
    /// upper ends: those at a ToR, an aggregation switch, a core switch, a NIC.
    pub tier_bytes: [u64; HEIGHTS],
}

/// How bytes are spread over switch queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBytes {
    /// Median over ports.
    pub p50: u32,
    /// 99th percentile over ports.
    pub p99: u32,
    /// The fullest port.
    pub max: u32,
    /// All ports together.
    pub total: u64,
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Chains everything that happened: equal digests, equal runs.
    pub digest: u64,
    /// When it ended.
    pub now: Time,
    /// Events handled.
    pub events: u64,
    /// In how many parts the fabric was simulated at once. All else is the same for any.
    pub partitions: u32,
    /// Packets times links crossed.
    pub packet_hops: u64,
    /// Sums.
    pub counters: Counters,
    /// What went in and came out.
    pub conservation: Conservation,
    /// Per directed link.
    pub links: Vec<LinkStats>,
    /// Per switch, if the ports of each share memory.
    pub buffers: Vec<SharedBufferStats>,
    /// Per switch, if queues are lossless.
    pub memories: Vec<PfcBufferStats>,
    /// The first deadlock of flow control that was found.
    pub deadlock: Option<Deadlock>,
    /// Samples over time.
    pub samples: Vec<Sample>,
    /// 99th percentile of sampled queue contents over ports and time inside the window, bytes.
    pub queue_bytes_p99: Option<u32>,
    /// What was not simulated: all else is in true time.
    pub skipped: Skipped,
    /// Why the run ended.
    pub end: End,
}

/// Time that was skipped because everything repeated ([`crate::SkipSpec`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// All of it.
    pub time: Dur,
    /// In so many pieces.
    pub count: u64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything it waits for was done.
    Complete,
    /// At [`crate::Config::limit`].
    Limit,
    /// More than [`crate::Config::open_limit`] messages were open.
    Backlog,
    /// Nothing was left to happen, although a message was still waited for.
    Idle,
    /// The caller stopped it.
    Stopped,
    /// An invariant was violated.
    Violated,
    /// Something outside of the simulator, on which a host rests, has ended.
    Broken,
}

/// An invariant of the contract or of the fabric was violated: a defect of a transport or of the
/// engine. Or a host is [broken](endpoint::Effect::Broken), which is neither's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Time,
    /// The message concerned, if one is.
    pub key: Option<MsgKey>,
    /// What rule, or what has broken.
    pub what: String,
    /// Something outside of the simulator, on which a host rests, has ended: no defect.
    pub is_outside: bool,
    /// Of a livelock, the last calls and events, the latest last.
    pub recent: Vec<Recent>,
}

impl Violation {
    pub(crate) fn new(at: Time, key: Option<MsgKey>, what: String) -> Self {
        Self { at, key, what, is_outside: false, recent: Vec::new() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}", self.at)?;
        if let Some(key) = self.key {
            write!(f, ", {key}")?;
        }
        write!(f, ": {}", self.what)?;
        for (n, recent) in self.recent.iter().enumerate() {
            write!(f, "{} {recent}", if n == 0 { "; the last:" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}

/// A run that a violation has ended, with all that it had come to.
#[derive(Clone, Debug)]
pub struct Violated {
    /// What was violated.
    pub violation: Violation,
    /// What the run did until then. Packets that were in hand may be missing from its conservation.
    pub outcome: Outcome,
}

impl fmt::Display for Violated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.violation.fmt(f)
    }
}

impl std::error::Error for Violated {}
