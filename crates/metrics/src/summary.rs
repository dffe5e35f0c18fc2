//! [`Summary`]: the keys of `summary.json`. They are stable: a change of name or meaning bumps
//! [`RESULT_SCHEMA`]. Every key is always there; `null` means that there is nothing to state.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::flow_stats::ENOUGH_FOR_P99;
use crate::output::{read_json, write_json};
use crate::{FileError, JobStats, LifeStats, OutputDir, PacketLatency, Phase, Stats, StepStats};

/// Version of `summary.json` and of the columns of the parquet files. 2: results by traffic table,
/// latency of packets, phases. 3: jobs. 4: what transports count for each message. 5: deadlines.
/// 6: priority flow control, round-trip samples. 7: messages that failed, by cause, apart from
/// those unfinished; `pfc.depth` is `pfc.pause_depth`, `pfc.memory_bytes` is
/// `pfc.buffer_max_bytes`. 8: where the time of messages went. 9: partial results. 10: steps of
/// training jobs. 11: the same steps alone. 12: time that was skipped. 13: the error of flow level.
pub const RESULT_SCHEMA: u32 = 13;

/// A run in one page of numbers. All times are simulated except `wall_s`; all sizes that concern
/// messages are payload, without headers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`RESULT_SCHEMA`].
    pub schema: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The seed of every draw.
    pub seed: u64,
    /// The run's digest in hexadecimal: same scenario, seed and engine version, same digest.
    pub digest: String,
    /// Simulated time at the end of the run, in microseconds.
    pub sim_time_us: f64,
    /// Whether the run was interrupted there, so that everything is of what was simulated until
    /// then.
    pub partial: bool,
    /// Time that was skipped because everything repeated (`engine.skip`). docs/skip.md says what
    /// counts it.
    #[serde(default)]
    pub skipped: SkipStats,
    /// Which level was run, and how far it is from packets, if that was measured
    /// (`engine.calibrate`). docs/flow-level.md says how.
    #[serde(default)]
    pub calibration: Calibration,
    /// Real time that the run took, in seconds.
    pub wall_s: f64,
    /// Events processed.
    pub events: u64,
    /// Packets that crossed a link, once per link.
    pub packet_hops: u64,
    /// What the messages say.
    #[serde(flatten)]
    pub flows: FlowStats,
    /// What the messages of each `[[traffic]]` table that has a name say.
    pub traffic: BTreeMap<String, TrafficStats>,
    /// What the pieces of work of several messages say, those of all tables together.
    pub jobs: JobStats,
    /// What the steps of training jobs say, those of all tables together.
    pub steps: StepStats,
    /// Round-trip samples of transports inside the measurement window, in microseconds, as their
    /// rules got them; without numbers unless `measure.rtt` is set.
    pub rtt_us: Stats,
    /// From the first transmission of a packet to its acknowledgement; without numbers unless
    /// `measure.packet_latency` is set.
    pub packet_latency_us: PacketLatency,
    /// Where the time of measured messages went; without numbers unless `measure.life` is set.
    pub life_us: LifeStats,
    /// Messages that a receiver had forgotten and delivered a second time, over the whole run.
    /// Always 0 unless a NIC is told to remember the last messages only (`remember`).
    pub delivered_twice: u64,
    /// What happened to packets, over the whole run.
    pub packets: Packets,
    /// Retransmission timeouts by cause, over the whole run.
    pub timeouts: Timeouts,
    /// Lengths of the switch queues.
    pub queue_bytes: QueueBytes,
    /// Memory of the switches whose ports share it.
    pub shared_buffer: SharedBuffer,
    /// Priority flow control, where switches are lossless.
    pub pfc: Pfc,
    /// The run as its fault script divides it; empty without one.
    pub phases: Vec<Phase>,
    /// What a reader should know before trusting the numbers; empty if nothing.
    pub warnings: Vec<String>,
}

/// Time that was not simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkipStats {
    /// All of it, in microseconds.
    pub time_us: f64,
    /// The same as a share of the simulated time of the run.
    pub share: f64,
    /// In so many pieces.
    pub count: u64,
    /// What that changes, if it was asked for.
    #[serde(default)]
    pub verify: Verified,
}

/// A run that skips time beside the same with a share of what it skips simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// The share.
    pub share: Option<f64>,
    /// The share of its simulated time that the other run still skips.
    pub skipped: Option<f64>,
    /// Real time that the other run took, in seconds.
    pub wall_s: Option<f64>,
    /// Completion times against those of the other run.
    pub fct_error: RelativeError,
}

/// The level of a run that has a sample of its own packet by packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The level of the results: `packet` or `flow`; `null` unless a sample or `auto` is asked for.
    pub level: Option<String>,
    /// Why that one.
    pub why: Option<String>,
    /// Messages of the sample, over packets and as fluids.
    pub sample: u64,
    /// Of those, the later ones, on which the corrections of the others were tried.
    pub held_out: u64,
    /// The largest error among those after correction, see [`Self::of`].
    pub error: Option<f64>,
    /// Errors of slowdowns by size of message.
    pub by_size: Vec<SizeError>,
}

/// How far slowdowns of messages of `from_bytes <= size < to_bytes` at flow level are from those
/// over packets, of messages of which the corrections know nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeError {
    /// Smallest size.
    pub from_bytes: u64,
    /// The first size that is too large; `null` if none is.
    pub to_bytes: Option<u64>,
    /// Messages.
    pub count: u64,
    /// As fluids.
    pub uncorrected: RelativeError,
    /// After correction.
    pub corrected: RelativeError,
}

impl Calibration {
    /// Fewer messages of a size have no 99th percentile but the slowest of them.
    pub const ENOUGH: u64 = ENOUGH_FOR_P99;

    /// With the largest of the errors after correction, whatever their signs, of sizes with at
    /// least [`Self::ENOUGH`] messages: `None` without one.
    #[must_use]
    pub fn of(by_size: Vec<SizeError>) -> Self {
        let judged = by_size.iter().filter(|of| of.count >= Self::ENOUGH);
        let errors = judged.flat_map(|of| [of.corrected.mean, of.corrected.p50, of.corrected.p99]);
        let errors = errors.flatten().map(f64::abs);
        let error = errors.max_by(f64::total_cmp);
        Self { error, by_size, ..Self::default() }
    }
}

/// How far numbers are off, as shares: 0.01 is one per cent more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelativeError {
    /// Of the mean.
    pub mean: Option<f64>,
    /// Of the median.
    pub p50: Option<f64>,
    /// Of the 99th percentile.
    pub p99: Option<f64>,
}

impl Summary {
    /// Writes `summary.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: &OutputDir) -> Result<(), FileError> {
        write_json(out, "summary.json", self)
    }

    /// Reads a `summary.json`.
    ///
    /// # Errors
    /// The file is missing, broken or of another schema.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let summary: Self = read_json(path)?;
        if summary.schema != RESULT_SCHEMA {
            let cause = format!("its schema is {}, not {RESULT_SCHEMA}", summary.schema);
            let hint = "run the scenario again with this version";
            return Err(FileError::new("read", path, cause, hint));
        }
        Ok(summary)
    }
}

/// The part of the summary that [`FlowFold`](crate::FlowFold) makes from the messages.
///
/// A message is *measured* if it was submitted inside the measurement window. `fct_us`,
/// `slowdown` and `slowdown_by_size` are over measured messages that completed, however late;
/// percentiles are exact nearest ranks; `stdev` is the sample's (divided by n - 1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStats {
    /// Messages of the whole run.
    pub messages: Messages,
    /// Measured messages that have a deadline.
    pub deadlines: Deadlines,
    /// Completion times, from submission to the last byte placed, in microseconds.
    pub fct_us: FctUs,
    /// Completion time over that of the same message alone in the same fabric.
    pub slowdown: Distribution,
    /// Slowdown by message size.
    pub slowdown_by_size: Vec<SizeBucket>,
    /// The last completion of any message of the run, measured or not, in microseconds since the
    /// start of the run.
    pub last_completion_us: Option<f64>,
    /// Payload bits placed at receivers inside the measurement window, over its length.
    pub goodput_gbps: Option<f64>,
    /// `goodput_gbps` over the sum of the link rates of the receivers in use: the hosts that some
    /// message in flight during the window is addressed to.
    pub utilization: Option<f64>,
    /// The measurement window.
    pub measured: Measured,
    /// Goodput of the long flows: those unbounded, and those submitted before the window and so
    /// large that even alone they would take longer than it. Each one's payload bits placed inside
    /// the window over the part of the window between its submission and its completion.
    pub flow_goodput_gbps: FlowGoodput,
}

/// The numbers of [`FlowStats`] over the messages of one `[[traffic]]` table, and its jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficStats {
    /// Messages of the whole run.
    pub messages: Messages,
    /// Measured messages that have a deadline.
    pub deadlines: Deadlines,
    /// Completion times, in microseconds.
    pub fct_us: FctUs,
    /// Completion time over that of the same message alone in the same fabric.
    pub slowdown: Distribution,
    /// The last completion, in microseconds since the start of the run.
    pub last_completion_us: Option<f64>,
    /// Payload bits placed at receivers inside the measurement window, over its length.
    pub goodput_gbps: Option<f64>,
    /// Goodput of the long flows.
    pub flow_goodput_gbps: FlowGoodput,
    /// Pieces of work of several messages.
    pub jobs: JobStats,
    /// Steps, if it is a training job.
    pub steps: StepStats,
    /// Round-trip samples inside the window, in microseconds.
    pub rtt_us: Stats,
}

impl TrafficStats {
    /// What the messages, the jobs and the steps of a table say.
    #[must_use]
    pub fn new(stats: &FlowStats, jobs: JobStats, steps: StepStats, rtt_us: Stats) -> Self {
        Self {
            messages: stats.messages,
            deadlines: stats.deadlines,
            fct_us: stats.fct_us,
            slowdown: stats.slowdown,
            last_completion_us: stats.last_completion_us,
            goodput_gbps: stats.goodput_gbps,
            flow_goodput_gbps: stats.flow_goodput_gbps,
            jobs,
            steps,
            rtt_us,
        }
    }
}

/// Counts of messages, over the whole run, and what transports counted for measured ones, complete
/// or not, unbounded ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// Handed to a transport, unbounded ones included.
    pub submitted: u64,
    /// Placed whole at their receivers.
    pub completed: u64,
    /// Given up, and not whole when the run ended.
    pub failed: Failed,
    /// The share of measured messages with a timeout.
    pub with_timeout: Option<f64>,
    /// Timeouts per measured message.
    pub timeouts: Option<f64>,
    /// Fast retransmits per measured message.
    pub fast_retransmits: Option<f64>,
    /// Fast retransmits of what the receiver had already, per measured message.
    pub spurious_fast_retransmits: Option<f64>,
}

/// Messages that were given up before they were whole, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// All of them.
    pub total: u64,
    /// The peer did not answer for as long as the transport is willing to try.
    pub timed_out: u64,
    /// The peer refused them.
    pub refused: u64,
    /// The application cancelled them.
    pub cancelled: u64,
    /// A receiver had forgotten a part of them, and their senders took them for delivered.
    pub forgotten: u64,
}

/// Measured messages that have a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// Whole at their receivers by then.
    pub met: u64,
    /// Later, or not before the run ended.
    pub missed: u64,
}

/// Completion times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FctUs {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Standard deviation.
    pub stdev: Option<f64>,
}

/// Mean and percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// Slowdown of the messages of `from_bytes <= size < to_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeBucket {
    /// Smallest size.
    pub from_bytes: u64,
    /// The first size that is too large; `null` if none is.
    pub to_bytes: Option<u64>,
    /// Messages.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// The sizes of `from <= size < to` in words: `< 10 KB`, `1–10 MB`.
#[must_use]
pub fn size_range(from: u64, to: Option<u64>) -> String {
    let short = |n: u64| match n {
        1_000_000.. => format!("{} MB", n / 1_000_000),
        _ => format!("{} KB", n / 1_000),
    };
    match (from, to) {
        (0, Some(to)) => format!("< {}", short(to)),
        (from, Some(to)) => {
            let (from, to) = (short(from), short(to));
            let (amount, unit) = from.split_once(' ').unwrap_or((&from, ""));
            let amount = if to.ends_with(unit) { amount } else { &from };
            format!("{amount}–{to}")
        }
        (from, None) => format!("≥ {}", short(from)),
    }
}

/// The measurement window and what it left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its start, in microseconds since the start of the run.
    pub from_us: f64,
    /// Its end, in microseconds since the start of the run.
    pub to_us: f64,
    /// Bounded messages submitted inside it that had neither completed nor failed when the run
    /// ended.
    pub unfinished: u64,
    /// Messages submitted inside it that failed.
    pub failed: u64,
}

/// Goodput per long flow, in Gb/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowGoodput {
    /// Slowest flow.
    pub min: Option<f64>,
    /// 10th percentile.
    pub p10: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Fastest flow.
    pub max: Option<f64>,
}

/// Counts of packets, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Packets with payload that hosts have sent, retransmissions included.
    pub data_sent: u64,
    /// Packets without payload that hosts have sent.
    pub control_sent: u64,
    /// Packets with payload that hosts have sent again.
    pub retransmitted: u64,
    /// Packets whose payload a switch cut off.
    pub trimmed: u64,
    /// Headers that a switch returned to their sender.
    pub bounced: u64,
    /// Packets lost at a queue or by a fault of a link.
    pub dropped: u64,
    /// Packets lost in the device queues of hosts, which never were on a link: not among those
    /// sent.
    pub host_dropped: u64,
    /// Packets that a switch marked with congestion experienced.
    pub ecn_marked: u64,
    /// Times that a PFC frame paused a class of a link.
    pub pfc_pauses: u64,
    /// Recoveries begun because acknowledgements indicated a loss.
    pub fast_retransmits: u64,
    /// Those of them whose original arrived all the same.
    pub spurious_fast_retransmits: u64,
}

/// Retransmission timeouts. The four causes add up to the total; each timeout has the first that
/// applies. Source: specs/incast.md#3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// All of them.
    pub total: u64,
    /// Nothing of the message had been acknowledged.
    pub head: u64,
    /// Everything that was left of the message was within its last packets, too few for duplicate
    /// acknowledgements to prove the loss.
    pub tail: u64,
    /// What was lost had been retransmitted before.
    pub retransmission: u64,
    /// None of these.
    pub other: u64,
    /// What was sent again was there already; beside the causes.
    pub spurious: u64,
}

/// Lengths of the switch queues, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueBytes {
    /// 99th percentile (nearest rank) over all switch ports and the samples inside the window.
    pub p99: Option<u64>,
    /// The longest that any has been in the whole run.
    pub max: Option<u64>,
}

/// Memory of the switches whose ports share it, over the whole run; without numbers if they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBuffer {
    /// The most bytes that any one switch had in use.
    pub max_bytes: Option<u64>,
    /// Packets lost because their queue had its share of what was free.
    pub over_threshold: Option<u64>,
    /// Packets lost because the memory had no room for them.
    pub exhausted: Option<u64>,
}

/// Priority flow control over the whole run; without numbers where no switch is lossless.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pfc {
    /// PFC frames sent, to pause, to go on pausing and to resume.
    pub frames: Option<u64>,
    /// Pauses of a class of a link, over the simulated time.
    pub pauses_per_s: Option<f64>,
    /// How long classes of links were paused, all of them together, in microseconds.
    pub paused_us: Option<f64>,
    /// The longest pause, in microseconds.
    pub longest_pause_us: Option<f64>,
    /// The most pauses that were behind each other: each because of packets that the next one held
    /// up.
    pub pause_depth: Option<u64>,
    /// Packets of lossless classes that a switch had no room for. 0 unless the headroom is too
    /// small.
    pub lossless_violations: Option<u64>,
    /// Packets of other classes that a switch had no room for.
    pub lossy_drops: Option<u64>,
    /// Pauses that lasted too long for the watchdog.
    pub watchdog: Option<u64>,
    /// Packets that the watchdog dropped.
    pub watchdog_drops: Option<u64>,
    /// The most memory that any one switch had in use, in bytes.
    pub buffer_max_bytes: Option<u64>,
    /// The most headroom that a class of a port of a switch has used, in bytes.
    pub headroom_bytes: Option<u64>,
    /// The first deadlock that was found: the switches whose links waited for one another, and the
    /// class.
    pub deadlock: Option<String>,
    /// Since when, in microseconds since the start of the run.
    pub deadlock_since_us: Option<f64>,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::all_metrics;

    fn summary() -> Summary {
        Summary {
            schema: RESULT_SCHEMA,
            scenario: "incast".to_owned(),
            seed: u64::MAX,
            digest: "00ff".to_owned(),
            sim_time_us: 11_055.0,
            partial: false,
            skipped: SkipStats::default(),
            calibration: Calibration::of(vec![SizeError::default()]),
            wall_s: 0.25,
            events: 1,
            packet_hops: 2,
            flows: FlowStats {
                slowdown_by_size: vec![SizeBucket::default()],
                ..FlowStats::default()
            },
            traffic: [("x".to_owned(), TrafficStats::default())].into(),
            jobs: JobStats::default(),
            steps: StepStats::default(),
            rtt_us: Stats::default(),
            packet_latency_us: PacketLatency::default(),
            life_us: LifeStats::default(),
            delivered_twice: 0,
            packets: Packets::default(),
            timeouts: Timeouts::default(),
            queue_bytes: QueueBytes::default(),
            shared_buffer: SharedBuffer::default(),
            pfc: Pfc::default(),
            phases: vec![Phase::default()],
            warnings: vec!["too short".to_owned()],
        }
    }

    /// Every key as a path, sorted.
    fn keys(value: &Value, prefix: &str, into: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    keys(value, &format!("{prefix}.{key}"), into);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                items.iter().for_each(|item| keys(item, &format!("{prefix}[]"), into));
            }
            _ => into.push(prefix.trim_start_matches('.').to_owned()),
        }
    }

    /// The table of results has exactly the keys of the file.
    #[test]
    fn the_table_has_every_key() {
        let mut found = Vec::new();
        keys(&serde_json::to_value(summary()).unwrap(), "", &mut found);
        found.sort_unstable();
        let mut expected: Vec<String> = Vec::new();
        for key in all_metrics().map(|metric| metric.key()) {
            if key != "traffic.NAME" {
                expected.push(key);
            }
        }
        // What a named table has is a part of what the run has.
        let (of_table, of_run) = found.into_iter().partition(|k| k.starts_with("traffic.x."));
        let (of_table, found): (Vec<String>, Vec<String>) = (of_table, of_run);
        assert!(of_table.len() > 50, "{of_table:?}");
        for key in of_table {
            let whole = key.trim_start_matches("traffic.x.");
            assert!(expected.iter().any(|known| known == whole), "{key}");
        }
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn size_ranges_read_well() {
        assert_eq!(size_range(0, Some(10_000)), "< 10 KB");
        assert_eq!(size_range(10_000, Some(100_000)), "10–100 KB");
        assert_eq!(size_range(100_000, Some(1_000_000)), "100 KB–1 MB");
        assert_eq!(size_range(10_000_000, None), "≥ 10 MB");
    }

    #[test]
    fn reads_back_or_says_why_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.json");
        let write = |summary: &Summary| {
            let out = OutputDir::create(dir.path()).unwrap();
            summary.write(&out).unwrap();
            out.commit().unwrap();
        };
        assert!(Summary::read(&path).unwrap_err().cause.contains("no such file"));
        write(&summary());
        assert_eq!(Summary::read(&path).unwrap(), summary());
        write(&Summary { schema: 6, ..summary() });
        assert_eq!(Summary::read(&path).unwrap_err().cause, "its schema is 6, not 13");
        std::fs::write(&path, "{\"schema\": 1,").unwrap();
        assert!(Summary::read(&path).unwrap_err().cause.contains("line 1"));
    }
}
