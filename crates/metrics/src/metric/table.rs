//! The entries of the table of results, in a reader's order.

use crate::life::CAUSE_NAMES;

use super::Shown::{Always, IfNotZero, IfThere};
use super::Unit::{Bytes, Gbps, PerSecond, Plain, Seconds, Share, Text, Us};
use super::{Entry, Shown, Unit};

const FCT: &[&str] = &["mean", "p50", "p90", "p99", "max", "stdev"];
const BRIEF: &[&str] = &["mean", "p50", "p99"];
const SPREAD: &[&str] = &["mean", "min", "p50", "p90", "p99", "max", "stdev"];

/// A number; `shown` says when stdout has it.
const fn one(
    key: &'static str,
    label: &'static str,
    unit: Unit,
    shown: Shown,
    about: &'static str,
) -> Entry {
    Entry { key, parts: &[], label, unit, shown: (&[""], shown), about }
}

/// A number that only the files have.
const fn filed(key: &'static str, label: &'static str, unit: Unit, about: &'static str) -> Entry {
    Entry { key, parts: &[], label, unit, shown: (&[], Always), about }
}

/// Several parts; `shown` says which stdout has, and when.
const fn several(
    (key, parts): (&'static str, &'static [&'static str]),
    label: &'static str,
    unit: Unit,
    shown: (&'static [&'static str], Shown),
    about: &'static str,
) -> Entry {
    Entry { key, parts, label, unit, shown, about }
}

/// The table, two lines an entry.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    one("messages.submitted", "messages submitted", Plain, Always,
        "messages handed to a transport in the whole run, unbounded ones included"),
    one("messages.completed", "messages completed", Plain, Always,
        "of those, placed whole at their receivers"),
    one("messages.failed.total", "messages failed", Plain, IfNotZero,
        "of those submitted, given up by an end before they were whole, and not whole when the \
         run ended; the sum of the next four"),
    one("messages.failed.timed_out", "failed: timed out", Plain, IfNotZero,
        "given up because the peer did not answer for as long as the transport is willing to try"),
    one("messages.failed.refused", "failed: refused", Plain, IfNotZero,
        "given up because the peer refused them: a connection inside its time-wait, or no \
         listener"),
    one("messages.failed.cancelled", "failed: cancelled", Plain, IfNotZero,
        "given up because the application cancelled them"),
    one("messages.failed.forgotten", "failed: forgotten", Plain, IfNotZero,
        "acknowledged and never whole, because a NIC had forgotten a part of them; 0 unless \
         [`remember`](nic.md#what-the-nic-promises) is a number"),
    one("delivered_twice", "delivered twice", Plain, IfNotZero,
        "messages delivered a second time by a NIC that had forgotten them; 0 unless \
         [`remember`](nic.md#what-the-nic-promises) is a number. Completion times are those of the \
         first time; whole run"),
    one("measured.unfinished", "unfinished (in window)", Plain, Always,
        "bounded messages submitted inside the window that had neither completed nor failed when \
         the run ended"),
    one("measured.failed", "failed (in window)", Plain, IfNotZero,
        "messages submitted inside the window that failed, whatever the cause"),
    one("deadlines.met", "deadlines met", Plain, IfNotZero,
        "measured messages with a `deadline` that were whole at their receivers by then"),
    one("deadlines.missed", "deadlines missed", Plain, IfNotZero,
        "measured messages with a `deadline` that were whole later, or not when the run ended"),
    several(("fct_us", FCT), "completion time", Us, (&["mean", "p50", "p99", "max"], Always),
        "from submission to the last byte placed at the receiver, of measured messages that \
         completed, however late; `stdev` divides by n - 1"),
    several(("slowdown", BRIEF), "slowdown", Plain, (&["p50", "p99"], Always),
        "completion time over that of the same message alone in the same fabric; the same \
         messages"),
    filed("slowdown_by_size[].from_bytes", "size from", Bytes,
        "the smallest size of a range: `from_bytes` <= size < `to_bytes`"),
    filed("slowdown_by_size[].to_bytes", "size below", Bytes,
        "the first size above the range; `null` for the last"),
    filed("slowdown_by_size[].count", "messages of such sizes", Plain,
        "measured messages of such sizes that completed"),
    several(("slowdown_by_size[]", BRIEF), "slowdown", Plain, (&[], Always), "their slowdown"),
    one("last_completion_us", "last completion", Us, Always,
        "the last completion of any message, measured or not, since the start of the run"),
    one("goodput_gbps", "goodput", Gbps, Always,
        "payload placed at receivers inside the window, over its length"),
    one("utilization", "utilization", Share, Always,
        "`goodput_gbps` over the sum of the link rates of the receivers in use: the hosts to \
         which some message in flight during the window is addressed"),
    several(("flow_goodput_gbps", &["min", "p10", "p50", "mean", "max"]), "long flow goodput",
        Gbps, (&["min", "mean"], IfThere),
        "goodput of the long flows: unbounded ones, and those submitted before the window and so \
         large that even alone they would take longer than it. Payload placed inside the window \
         over the part of the window between submission and completion"),
    filed("measured.from_us", "window from", Us,
        "start of the measurement window, since the start of the run"),
    filed("measured.to_us", "window to", Us,
        "its end. Without `measure.to` the last completion, or the end of the run if something is \
         unfinished"),
    filed("messages.with_timeout", "messages with a timeout", Share,
        "the share of measured messages with at least one timeout of the sender while they were \
         the next of their connection to be acknowledged; whether complete or not, unbounded ones \
         included"),
    filed("messages.timeouts", "timeouts per message", Plain, "such timeouts per measured message"),
    filed("messages.fast_retransmits", "fast retransmits per message", Plain,
        "recoveries begun because acknowledgements indicated a loss, per measured message; \
         attributed to messages by TCP and its kin only"),
    filed("messages.spurious_fast_retransmits", "spurious fast retransmits per message", Plain,
        "of measured messages, fast retransmits of what the receiver had, per message"),
    one("jobs.completed", "jobs completed", Plain, IfNotZero,
        "jobs (pieces of work of several messages: a block of a `barrier`, a query, a call) that \
         began inside the window and are complete. All below is over these"),
    one("jobs.failed", "jobs failed", Plain, IfNotZero,
        "jobs that began inside the window and were given up, because a message of theirs failed"),
    one("jobs.goodput_gbps", "job goodput", Gbps, IfThere,
        "payload of all of them, over the time from the start of the first to the end of the last"),
    several(("jobs.time_us", SPREAD), "job time", Us, (&["mean", "p50", "p99"], IfThere),
        "how long they took"),
    several(("jobs.idle", SPREAD), "link idle", Share, (&[], Always),
        "the share of a job's time in which nothing arrived on the link of the host that waits \
         for it, by the link's rate in the topology: a fault that changes the rate is not seen"),
    one("jobs.idle_overall", "link idle overall", Share, IfThere,
        "the same share of the time of all jobs together: long ones count for more"),
    several(("jobs.quality", SPREAD), "answers within deadline", Share, (&["mean"], IfThere),
        "the share of a job's results that came in time; 1 for a block of a `barrier` or a call"),
    one("steps.completed", "steps completed", Plain, IfNotZero,
        "steps of training jobs (`kind = \"job\"`) that all ranks have completed; whole run, as is \
         all below of steps"),
    one("steps.unfinished", "steps unfinished", Plain, IfNotZero,
        "steps that had begun at some rank and were not completed at all when the run ended"),
    several(("steps.time_us", SPREAD), "step time", Us, (&["p50", "max"], IfThere),
        "from the end of the step before it, or the start of its first rank if that is later, to \
         the end of its last rank"),
    several(("steps.exposed_us", SPREAD), "exposed communication", Us, (&["p50", "max"], IfThere),
        "of the time from a rank's own start to its own end, how much it did not compute; the mean \
         over ranks"),
    several(("steps.alone_us", SPREAD), "step time alone", Us, (&["p50", "max"], IfThere),
        "with `measure.alone`: how long the same steps take where all other traffic is left out"),
    several(("steps.slowdown", SPREAD), "step slowdown", Plain, (&["p50", "max"], IfThere),
        "the time of each step over that of the same step alone"),
    one("packets.data_sent", "data packets sent", Plain, Always,
        "with payload, sent by hosts, retransmissions included; whole run, as are all counts of \
         packets"),
    one("packets.control_sent", "control packets sent", Plain, Always,
        "without payload, sent by hosts"),
    one("packets.retransmitted", "retransmitted", Plain, Always,
        "with payload, sent again by hosts"),
    one("packets.trimmed", "trimmed", Plain, Always, "payload cut off by a switch"),
    one("packets.bounced", "bounced", Plain, Always,
        "headers that a switch returned to their sender"),
    one("packets.dropped", "dropped", Plain, Always, "lost at a queue or by a fault of a link"),
    one("packets.host_dropped", "dropped in hosts", Plain, IfNotZero,
        "lost in the device queue of a host (`[host]` of the scenario), or a control packet that \
         found its queue in a clocked NIC full; never on a link, and so in none of the counts \
         above"),
    one("packets.ecn_marked", "ECN-marked", Plain, Always,
        "marked with congestion experienced by a switch"),
    one("packets.fast_retransmits", "fast retransmits", Plain, IfNotZero,
        "recoveries begun because acknowledgements indicated a loss"),
    one("packets.spurious_fast_retransmits", "spurious fast retransmits", Plain, IfNotZero,
        "of those, the ones whose first segment's original arrived all the same (TCP), before or \
         after what was sent again, or was acknowledged before it could be"),
    one("timeouts.total", "timeouts", Plain, IfNotZero,
        "expiries of a retransmission timer that made a sender send again; the sum of the four \
         causes, of which each has the first that applies"),
    filed("timeouts.head", "timeouts: head", Plain, "nothing of the message had been acknowledged"),
    filed("timeouts.tail", "timeouts: tail", Plain,
        "all that was left of it were its last `dup_threshold` segments: too few for duplicate \
         acknowledgements"),
    filed("timeouts.retransmission", "timeouts: retransmission", Plain,
        "the segment lost had been retransmitted before"),
    filed("timeouts.other", "timeouts: other", Plain,
        "none of these; also every timeout of a transport other than TCP"),
    filed("timeouts.spurious", "timeouts: spurious", Plain,
        "the data sent, or to be sent, again was at the receiver already (TCP); beside the causes"),
    one("queue_bytes.max", "max queue", Bytes, Always,
        "the longest that any switch queue has been in the whole run, exact"),
    one("queue_bytes.p99", "p99 queue", Bytes, Always,
        "99th percentile of the switch queues' lengths over all switch ports and the samples \
         inside the window: 0 where one port is busy and a thousand are not"),
    one("shared_buffer.max_bytes", "max shared-buffer occupancy", Bytes, IfThere,
        "with `[buffer]`: the most memory that any one switch had in use in the whole run; `null` \
         without, as are the next two"),
    one("shared_buffer.over_threshold", "dropped: over threshold", Plain, IfThere,
        "packets lost because their queue had its share, `alpha` times the free memory; part of \
         `packets.dropped`"),
    one("shared_buffer.exhausted", "dropped: buffer exhausted", Plain, IfThere,
        "packets lost because the memory had no room for them; part of `packets.dropped`"),
    one("packets.pfc_pauses", "PFC pauses", Plain, IfNotZero,
        "times that a PFC frame paused a class of a link; what extends a pause is not counted"),
    filed("pfc.frames", "PFC frames", Plain,
        "with `kind = \"lossless\"` in `[queue]`: PFC frames sent, to pause, to extend a pause \
         and to resume; `null` without, as are all `pfc` keys. They are on the links, but not \
         among the packets above"),
    filed("pfc.pauses_per_s", "PFC pauses per second", PerSecond,
        "`packets.pfc_pauses` over the simulated time"),
    one("pfc.paused_us", "total pause time", Us, IfThere,
        "how long classes of links were paused, all of them together"),
    one("pfc.longest_pause_us", "max pause time", Us, IfThere, "the longest pause"),
    one("pfc.pause_depth", "max cascade depth", Plain, IfThere,
        "the most pauses behind each other: 1 if the packets for which a link was paused waited \
         for nothing but other packets, 2 if they waited at a port that was paused itself, and so \
         on"),
    one("pfc.lossless_violations", "dropped: lossless", Plain, IfThere,
        "packets of lossless classes, lost because a switch had no room; part of \
         `packets.dropped`. 0 unless the headroom is too small"),
    one("pfc.lossy_drops", "dropped: lossy", Plain, IfNotZero,
        "packets of other classes, lost at their threshold; part of `packets.dropped`"),
    one("pfc.watchdog", "watchdog expiries", Plain, IfNotZero,
        "pauses that lasted too long for the watchdog"),
    one("pfc.watchdog_drops", "dropped: watchdog", Plain, IfNotZero,
        "packets that the watchdog dropped; part of `packets.dropped`"),
    one("pfc.buffer_max_bytes", "max PFC buffer occupancy", Bytes, IfThere,
        "the most memory that any one switch had in use"),
    one("pfc.headroom_bytes", "max headroom occupancy", Bytes, IfThere,
        "the most headroom that a class of a port used"),
    one("pfc.deadlock", "deadlock", Text, IfThere,
        "the first deadlock that was found, or `null`: the switches in a circle, of which each \
         has paused the link from the one before, and the class"),
    one("pfc.deadlock_since_us", "deadlock since", Us, IfThere,
        "since when all of these links had been paused, or `null`"),
    several(("rtt_us", SPREAD), "round-trip time", Us, (&["mean", "p50", "p99"], IfThere),
        "round-trip samples inside the window, as the transports' rules got them: of `timely` and \
         its kin one per completion, of TCP one per acknowledgement that measures; no numbers \
         without `measure.rtt`"),
    one("packet_latency_us.count", "ACKed packets", Plain, IfNotZero,
        "packets with payload first transmitted inside the window and acknowledged; 0 without \
         `measure.packet_latency`, as is `.unacknowledged`"),
    one("packet_latency_us.unacknowledged", "un-ACKed packets", Plain, IfNotZero,
        "of those transmitted, not acknowledged when the run ended, which is when the last \
         message is whole: their latencies are missing"),
    several(("packet_latency_us", &["mean", "p50", "p90", "p99", "max"]),
        "packet latency (first transmission to ACK)", Us, (&["p50", "p99", "max"], IfThere),
        "from the beginning of a packet's first transmission by its sender to the arrival of its \
         acknowledgement there, with everything in between: trimming, waiting for a pull, \
         retransmission"),
    several(("life_us.mean", &CAUSE_NAMES), "mean time:", Us, (&CAUSE_NAMES, IfNotZero),
        "how much of the completion time of measured messages went on each cause, with \
         `measure.life`: together the mean completion time. [What each cause is](explain.md)"),
    several(("life_us.tail", &CAUSE_NAMES), "p99 and above:", Us, (&CAUSE_NAMES, IfNotZero),
        "the same of the tail: the messages that took no less than the 99th \
         percentile"),
    filed("traffic.NAME", "", Text,
        "`messages`, `deadlines`, `fct_us`, `slowdown`, `last_completion_us`, `goodput_gbps`, \
         `flow_goodput_gbps`, `jobs` and `rtt_us` over the messages, and jobs, of one table \
         `[[traffic]]` with a `name`; empty if no table has one"),
    filed("phases[].from_us", "from", Us,
        "the parts of the run into which the fault script divides it: the beginning of one. Empty \
         without a `[[fault]]`"),
    filed("phases[].to_us", "to", Us, "its end"),
    filed("phases[].what", "what happens", Text, "what happens at its beginning"),
    filed("phases[].submitted", "messages", Plain, "measured messages submitted in the phase"),
    filed("phases[].carried_over", "carried over", Plain,
        "of those, bounded ones that were not complete when the phase ended, so that what came \
         next hit them, too"),
    filed("phases[].unfinished", "unfinished", Plain,
        "of those, bounded ones that had neither completed nor failed when the run ended"),
    filed("phases[].failed", "failed", Plain, "of those, the ones that failed"),
    several(("phases[].fct_us", FCT), "completion time", Us, (&[], Always),
        "as above, of measured messages submitted in the phase that completed, however late"),
    several(("phases[].slowdown", BRIEF), "slowdown", Plain, (&[], Always), "of the same messages"),
    filed("phases[].goodput_gbps", "goodput", Gbps,
        "payload placed at receivers, of any message, between the first and the last sample (of \
         `series.parquet`, before merging) in the phase"),
    filed("warnings", "warnings", Text,
        "sentences: what to know before trusting the numbers; empty if nothing"),
    filed("schema", "result schema", Plain, "version of this file and of the parquet columns"),
    filed("scenario", "scenario", Text, "the scenario's name"),
    one("seed", "seed", Text, Always, "seed of every draw"),
    one("digest", "digest", Text, Always,
        "hexadecimal; same scenario, seed and engine version, same digest"),
    one("sim_time_us", "simulated time", Us, Always, "simulated time at the end of the run"),
    filed("partial", "partial results", Text,
        "whether the run was interrupted at `sim_time_us`: everything is then of what was \
         simulated until that"),
    one("skipped.share", "skipped time", Share, IfNotZero,
        "of the simulated time, what was skipped because everything repeated ([skip.md](skip.md)); \
         what else counts it stands there; 0 unless `engine.skip` is set"),
    filed("skipped.time_us", "time skipped", Us, "the same"),
    filed("skipped.count", "skips", Plain, "in so many pieces"),
    one("skipped.verify.share", "verified share", Share, IfThere,
        "the share of what is skipped that another run simulated (`--verify`), to see what \
         skipping changes"),
    filed("skipped.verify.skipped", "verified: skipped time", Share,
        "of that run's simulated time, what it still skipped"),
    several(("skipped.verify.fct_error", BRIEF), "error of completion time", Share,
        (BRIEF, IfThere), "against that run"),
    one("skipped.verify.wall_s", "verified: wall time", Seconds, IfThere, "real time that run took"),
    one("calibration.level", "level", Text, IfThere,
        "`packet` or `flow`: of what the results are; `null` unless `engine.calibrate` or `auto` \
         is set ([flow-level.md](flow-level.md))"),
    filed("calibration.why", "why this level", Text, "in words"),
    filed("calibration.sample", "messages of the sample", Plain,
        "measured messages of the part of the window that was run both over packets and as fluids"),
    one("calibration.held_out", "messages held out", Plain, IfNotZero,
        "of those, the later ones: corrections that were learned from the others were tried on them"),
    one("calibration.error", "largest error held out", Share, IfThere,
        "the largest error after correction, without its sign, of mean, median and 99th percentile \
         of sizes with at least 100 messages held out; `null` without such a size"),
    filed("calibration.by_size[].from_bytes", "size from", Bytes,
        "as of `slowdown_by_size`, of the messages held out"),
    filed("calibration.by_size[].to_bytes", "size below", Bytes, "the same"),
    filed("calibration.by_size[].count", "messages held out", Plain, "so many"),
    several(("calibration.by_size[].uncorrected", BRIEF), "fluids, error", Share,
        (&[], Always), "how far slowdowns at flow level are from those over packets"),
    several(("calibration.by_size[].corrected", BRIEF), "corrected, error", Share,
        (&[], Always), "the same after correction"),
    one("wall_s", "wall time", Seconds, Always, "real time that the run took"),
    filed("events", "events", Plain, "events processed"),
    one("packet_hops", "packet-hops", Plain, Always, "packets that crossed a link, once per link"),
];
