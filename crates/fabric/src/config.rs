//! How a fabric behaves.

use std::fmt;

use endpoint::{Framing, MsgKey};
use queues::{QueueSpec, SharedBufferSpec};
use units::{Dur, Rate, Time};

use crate::host_clock::HostClock;

/// Who chooses among equal ways up, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The packet's path index says (the sender's permuted list, or whatever the sender does).
    Source,
    /// The same choice, written into the packet as the network would have it: the same ports.
    Encoded(Encoding),
    /// Each switch hashes source, destination, protocol and the packet's entropy (ECMP).
    FlowHash,
    /// Each switch draws uniformly for each packet.
    PacketRandom,
    /// As [`Topology::with_paths`](crate::Topology::with_paths) lists it for a packet's source.
    Listed,
}

/// How the path that a sender has chosen is written into a packet (specs/ndp.md#6). All give the
/// same ports; [`Routing::Source`] works them out from the path's index and is the quickest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The list of output ports, one for each switch, which takes it off.
    SourceRoute,
    /// The label of the switch at which the packet turns down: a core switch or, within a pod, an
    /// aggregation switch. Switches know the port up to each label, and the hosts below them.
    CoreLabel,
    /// A destination address of which each host has one per core (and aggregation) switch. Switches
    /// have tables of address prefixes, of which the longest match says the port.
    CoreAddress,
}

/// Which event queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// The timing wheel.
    Wheel,
    /// A binary heap: slower, the cross-check.
    Heap,
}

/// How a switch port's departures are worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// Replayed when the port is next touched.
    Lazy,
    /// One event each: slower, the cross-check.
    Eager,
}

/// How many threads a run has, each with a partition of the fabric: no more than it can be cut
/// into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threads {
    /// So many, 1 or more.
    Fixed(u32),
    /// As many as pay. The fabric is cut so that partitions have work enough between two meetings;
    /// whether they meet, or one thread runs them all, is tried out while the run goes on.
    Auto {
        /// But no more than this.
        most: u32,
        /// How many packet-hops a second of simulated time has, about.
        hops_per_s: f64,
    },
}

/// Packet-hops of a partition between two meetings, at least: some microseconds of work, several
/// times what a meeting takes. With fewer, partitions also cost one thread more than a whole.
const WORTH_CUTTING: f64 = 64.0;

impl Threads {
    /// How many parts the fabric is to be cut into, if none runs ahead of another by more than
    /// `lookahead`.
    pub(crate) fn wanted(self, lookahead: Dur) -> u32 {
        match self {
            Self::Fixed(threads) => threads.max(1),
            Self::Auto { most, hops_per_s } => {
                let hops = hops_per_s * lookahead.as_s_f64();
                ((hops / WORTH_CUTTING) as u32).clamp(1, most.max(1))
            }
        }
    }

    /// Whether it is tried out if partitions gain by running side by side.
    pub(crate) fn is_auto(self) -> bool {
        matches!(self, Self::Auto { .. })
    }
}

/// Something that is wrong with a link for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// From when on.
    pub at: Time,
    /// Until when; [`Time::NEVER`]: for good, or until [`FaultAction::Up`] ends it.
    pub until: Time,
    /// Which directed link.
    pub link: u32,
    /// What.
    pub action: FaultAction,
    /// Whether switches and hosts learn of its beginning and its end, each
    /// [`Config::reroute_after`] later: in between, ECMP groups and path lists leave the link out.
    pub announced: bool,
}

impl Fault {
    /// `action` on `link` from `at` on, for good. Announced if the link is down: what a switch
    /// notices; not if it is slow or loses some packets.
    #[must_use]
    pub fn new(at: Time, link: u32, action: FaultAction) -> Self {
        let announced = matches!(action, FaultAction::Down | FaultAction::Up);
        Self { at, until: Time::NEVER, link, action, announced }
    }
}

/// What a fault does to a link. Several may hold at once: then the link is down if one says so, has
/// the lowest of their rates, and loses what any of them loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultAction {
    /// Whatever arrives over it is lost.
    Down,
    /// Not a fault but the end of every [`FaultAction::Down`] of the link, its failure from the
    /// start included. [`Fault::until`] means nothing.
    Up,
    /// Packets whose transmission begins are sent at this rate, not zero, instead of the link's
    /// own.
    Rate(Rate),
    /// Each packet that arrives is lost with this probability, from 0 to 1, independently.
    Loss(f64),
}

/// What ports do about priority flow control (IEEE 802.1Qbb) beside sending and obeying its frames.
/// Means something where the queue is [`QueueSpec::Lossless`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcSpec {
    /// How long a frame stops a class.
    pub pause: Pause,
    /// What is done about a class that has been paused for too long.
    pub watchdog: Option<Watchdog>,
    /// Ports that have been paused for longer than this and wait for one another are a deadlock.
    /// `None`: only those are that still do when nothing is left to happen.
    pub deadlock_after: Option<Dur>,
}

/// How long a PFC frame stops a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pause {
    /// Until another frame resumes it: what simulators do, and switches in effect, with the longest
    /// time that a frame can name.
    #[default]
    UntilResume,
    /// For so long, not zero, rounded up to quanta of 512 bit times, at most 65 535 of them, or
    /// until another frame resumes it. While the class is to stay stopped, the frame is sent again
    /// after half of that time.
    Timed(Dur),
}

/// What a switch port does about a class that has been paused for too long, until the pause is
/// over: in a deadlock that would be for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// How long is too long.
    pub after: Dur,
    /// What happens then.
    pub action: WatchdogAction,
}

/// What happens to the packets of a class that has been paused for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogAction {
    /// They are lost, and so are those that come.
    Drop,
    /// They are sent as if there were no pause.
    Forward,
}

/// How the messages of one transport travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// How it cuts them into packets.
    pub framing: Framing,
    /// Whether consecutive packets of a message may take different paths: a short last packet may
    /// then overtake, which the ideal completion time allows for.
    pub spray: bool,
}

/// How closely messages are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifeDetail {
    /// Not at all.
    #[default]
    None,
    /// How long each cause took.
    Sums,
    /// And when and where.
    Segments,
}

/// Everything about a run except its topology, endpoints and applications.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of every draw but those of phases.
    pub seed: u64,
    /// Seed of ties, clocks and jitter (specs/phases.md): another one moves only what hangs on
    /// phases.
    pub phase_seed: u64,
    /// How messages travel, by [`endpoint::Msg::transport`]: for ideal completion times.
    pub encapsulations: Vec<Encapsulation>,
    /// How far hosts differ in time.
    pub host_clock: HostClock,
    /// Who chooses paths.
    pub routing: Routing,
    /// The queue of every switch port.
    pub queue: QueueSpec,
    /// Switch ports with another one of the same kind: the links that they transmit over,
    /// ascending.
    pub queues_at: Vec<(u32, QueueSpec)>,
    /// The memory that the ports of each switch share; `None`: each port has what its queue holds
    /// to itself. With queues that drop what does not fit, drop-tail or RED.
    pub buffer: Option<SharedBufferSpec>,
    /// Priority flow control, where queues are lossless.
    pub pfc: PfcSpec,
    /// Whether switches write telemetry into packets that ask for it ([`endpoint::Flags::INT`]).
    pub telemetry: bool,
    /// Link faults, in any order.
    pub faults: Vec<Fault>,
    /// How long after the beginning or end of a fault the ECMP groups and path lists know of it.
    pub reroute_after: Dur,
    /// Which event queue. No effect on results.
    pub events: Events,
    /// Lazy or eager departures. No effect on results.
    pub departures: Departures,
    /// How many threads. No effect on results.
    pub threads: Threads,
    /// Stop conditions are checked at multiples of this.
    pub grid: Dur,
    /// The run ends here at the latest.
    pub limit: Time,
    /// The run ends when more messages than this are neither delivered nor failed: an open-loop
    /// load that the network does not carry would otherwise fill the memory.
    pub open_limit: u64,
    /// The measurement window. Messages submitted in it are waited for.
    pub window: (Time, Time),
    /// Sample queues and rates this often; `None`: never.
    pub sample_every: Option<Dur>,
    /// Whether transports' round-trip samples are reported to the observer. No effect on results.
    pub rtts: bool,
    /// Whether messages are followed, so that the observer learns where their time went. The fabric
    /// is not cut then. No effect on results.
    pub life: LifeDetail,
    /// Messages of which the observer learns what their transport lets them send, over time. As
    /// above.
    pub flows: Vec<MsgKey>,
    /// No packet is in flight for longer; [`Dur::MAX`]: nobody knows. Endpoints then remember what
    /// is over for as long as they would anywhere. No effect on results.
    pub packet_life: Dur,
    /// Check conservation at every grid step, not only at the end.
    pub check: bool,
    /// Skip simulated time in which everything repeats: another run, with errors of its own.
    pub skip: Option<SkipSpec>,
}

/// When time is skipped (docs/skip.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkipSpec {
    /// How far the windows compared may differ, in millionths of their mean: from 1 to 999 999.
    pub tolerance_ppm: u32,
    /// Of the time that could be skipped so many millionths are simulated, at places that are
    /// drawn: to see what skipping changes. 0: none; 1 000 000: all, and nothing is skipped.
    pub exact_ppm: u32,
}

impl Config {
    /// What most runs begin with: draws by `seed`, packets of `framing` that are sprayed over paths
    /// which their sources choose, and `queue` at every switch port. Clocks are exact. Nothing
    /// fails, is sampled, or ends the run, and what is checked at some cost is checked.
    #[must_use]
    pub fn new(seed: u64, framing: Framing, queue: QueueSpec) -> Self {
        Self {
            seed,
            phase_seed: seed,
            encapsulations: vec![Encapsulation { framing, spray: true }],
            host_clock: HostClock::EXACT,
            routing: Routing::Source,
            queue,
            queues_at: Vec::new(),
            buffer: None,
            pfc: PfcSpec::default(),
            telemetry: false,
            faults: Vec::new(),
            reroute_after: Dur::ZERO,
            events: Events::Wheel,
            departures: Departures::Lazy,
            threads: Threads::Fixed(1),
            grid: Dur::from_us(10),
            limit: Time::NEVER,
            open_limit: u64::MAX,
            window: (Time::ZERO, Time::NEVER),
            sample_every: None,
            rtts: false,
            life: LifeDetail::None,
            flows: Vec::new(),
            packet_life: Dur::MAX,
            check: true,
            skip: None,
        }
    }

    /// The queue of the switch port that transmits over `link`.
    #[must_use]
    pub fn queue_of(&self, link: u32) -> &QueueSpec {
        let other = self.queues_at.binary_search_by_key(&link, |(link, _)| *link);
        other.map_or(&self.queue, |at| &self.queues_at[at].1)
    }
}

/// Why a run cannot start. `Display` is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(crate) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
