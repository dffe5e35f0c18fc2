//! [`FlowFold`]: what the messages of a run say about it.

use std::collections::BTreeSet;
use std::path::Path;

use units::{Dur, Rate, Time};

use crate::statistics::{Moments, Values, nearest_rank};
use crate::{
    Deadlines, Distribution, Failed, Failure, FctUs, FileError, FlowGoodput, FlowRow, FlowStats,
    Measured, Messages, SizeBucket,
};

/// Bounds of the size buckets, in bytes.
const SIZE_BOUNDS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Below this many completed messages the 99th percentile (nearest rank) is the slowest of them.
pub(crate) const ENOUGH_FOR_P99: u64 = 100;

/// The measurement window: messages submitted at `from <= t < to` are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

impl Window {
    /// Whether a message submitted at `t` is measured.
    #[must_use]
    pub fn contains(&self, t: Time) -> bool {
        self.from <= t && t < self.to
    }

    /// Whether a message was in flight during some of the window.
    fn meets(&self, row: &FlowRow) -> bool {
        row.start < self.to && row.finish.is_none_or(|t| t > self.from)
    }
}

/// Folds the messages of a run, one after the other, into [`FlowStats`] (which defines every
/// number) and the warnings that follow from them. Their order matters only to the last bits of
/// means: give them as in `flows.parquet`.
#[derive(Debug)]
pub struct FlowFold {
    window: Window,
    counts: Counts,
    deadlines: Deadlines,
    fct_us: Values,
    slowdown: Values,
    by_size: [Values; SIZE_BOUNDS.len() + 1],
    last_completion: Option<Time>,
    placed_in_window: u64,
    /// Who some message in flight during the window is addressed to.
    receivers: BTreeSet<u32>,
    /// Of those that are long only: there are as many as in flight when the window begins.
    long_goodputs: Vec<f64>,
    backlog: Backlog,
}

/// How many messages there are of which kind.
#[derive(Debug, Default)]
struct Counts {
    submitted: u64,
    completed: u64,
    failed: Failed,
    measured: u64,
    measured_unfinished: u64,
    measured_failed: u64,
    /// Of the measured ones that failed, those that their transport gave up.
    given_up: u64,
    /// Sums over the measured ones.
    with_timeout: u64,
    timeouts: u64,
    fast_retransmits: u64,
    spurious_fast_retransmits: u64,
    faster_than_ideal: u64,
}

impl FlowFold {
    /// Of messages of which those submitted in `window` are measured. With many of them it writes
    /// to `dir`, if there is one ([`Sorter`](crate::Sorter)).
    #[must_use]
    pub fn new(window: Window, dir: Option<&Path>) -> Self {
        Self {
            window,
            counts: Counts::default(),
            deadlines: Deadlines::default(),
            fct_us: Values::new(dir),
            slowdown: Values::new(dir),
            by_size: std::array::from_fn(|_| Values::new(dir)),
            last_completion: None,
            placed_in_window: 0,
            receivers: BTreeSet::new(),
            long_goodputs: Vec::new(),
            backlog: Backlog::new(window),
        }
    }

    /// One more message.
    ///
    /// # Errors
    /// `dir` cannot be written.
    pub fn add(&mut self, row: &FlowRow) -> Result<(), FileError> {
        self.counts.add(row);
        self.backlog.add(row);
        self.last_completion = self.last_completion.max(row.finish);
        self.placed_in_window += row.placed_in_window;
        if self.window.meets(row) {
            self.receivers.insert(row.dst);
        }
        self.long_goodputs.extend(long_flow_goodput(row, self.window));
        match row.in_time().filter(|_| row.measured) {
            Some(true) => self.deadlines.met += 1,
            Some(false) => self.deadlines.missed += 1,
            None => {}
        }
        if is_done(row) {
            self.fct_us.extend(row.fct().map(Dur::as_us_f64))?;
            let slowdown = row.slowdown();
            self.slowdown.extend(slowdown)?;
            if let Some(size) = row.size {
                self.by_size[size_bucket(size)].extend(slowdown)?;
            }
        }
        Ok(())
    }

    /// What they say. `receiver_rate` is the sum of a host's link rates.
    ///
    /// # Errors
    /// `dir` cannot be read or written.
    pub fn finish(
        mut self,
        receiver_rate: impl Fn(u32) -> Rate,
    ) -> Result<(FlowStats, Vec<String>), FileError> {
        self.long_goodputs.sort_unstable_by(f64::total_cmp);
        let Self { window, counts, .. } = &self;
        let goodput_gbps = goodput(self.placed_in_window, *window);
        let gbps: f64 = self.receivers.iter().map(|&host| receiver_rate(host).as_gbps_f64()).sum();
        let mut stats = FlowStats {
            messages: counts.messages(),
            deadlines: self.deadlines,
            last_completion_us: self.last_completion.map(Time::as_us_f64),
            goodput_gbps,
            utilization: goodput_gbps.filter(|_| gbps > 0.0).map(|g| g / gbps),
            measured: Measured {
                from_us: window.from.as_us_f64(),
                to_us: window.to.as_us_f64(),
                unfinished: counts.measured_unfinished,
                failed: counts.measured_failed,
            },
            flow_goodput_gbps: flow_goodput(&self.long_goodputs),
            ..FlowStats::default()
        };
        let warnings = self.warnings(&stats);
        stats.fct_us = self.fct_us.completion_times()?;
        stats.slowdown = self.slowdown.distribution()?;
        stats.slowdown_by_size = buckets(self.by_size)?;
        Ok((stats, warnings))
    }

    fn warnings(&self, stats: &FlowStats) -> Vec<String> {
        let mut warnings = Vec::new();
        let Counts { measured_unfinished: unfinished, given_up, faster_than_ideal, .. } =
            self.counts;
        if unfinished > 0 {
            warnings.push(format!(
                "{unfinished} of the measured messages had not completed when the run ended: the \
                 completion times and slowdowns leave out what was slowest"
            ));
        }
        if given_up > 0 {
            let Failed { timed_out, refused, .. } = stats.messages.failed;
            warnings.push(format!(
                "{given_up} of the measured messages were given up by their transport (of all, \
                 {timed_out} timed out, {refused} refused): the completion times and slowdowns \
                 leave them out"
            ));
        }
        warnings.extend(self.backlog.warning());
        let done = self.fct_us.count();
        if done > 0 && done < ENOUGH_FOR_P99 {
            warnings.push(format!(
                "only {done} measured messages completed: the p99 is the maximum (measure longer, \
                 or over several seeds)"
            ));
        }
        if faster_than_ideal > 0 {
            warnings.push(format!(
                "{faster_than_ideal} messages completed faster than the ideal: the ideal \
                 completion time does not bound this scenario, do not trust its slowdowns"
            ));
        }
        if !self.receivers.is_empty() && stats.goodput_gbps.is_none_or(|g| g == 0.0) {
            warnings.push("not a byte was delivered inside the measurement window".to_owned());
        }
        warnings
    }
}

impl Counts {
    fn add(&mut self, row: &FlowRow) {
        self.submitted += 1;
        self.completed += u64::from(row.finish.is_some());
        if let Some(why) = row.failed.filter(|_| row.has_failed()) {
            self.failed.total += 1;
            *match why {
                Failure::TimedOut => &mut self.failed.timed_out,
                Failure::Refused => &mut self.failed.refused,
                Failure::Cancelled => &mut self.failed.cancelled,
                Failure::Forgotten => &mut self.failed.forgotten,
            } += 1;
        }
        if row.measured {
            self.add_measured(row);
        }
    }

    fn add_measured(&mut self, row: &FlowRow) {
        // Whoever cancels messages knows of it, and no transport has given up what a NIC forgot.
        let other = [Some(Failure::Cancelled), Some(Failure::Forgotten)];
        self.measured += 1;
        self.measured_unfinished += u64::from(row.is_unfinished());
        self.measured_failed += u64::from(row.has_failed());
        self.given_up += u64::from(row.has_failed() && !other.contains(&row.failed));
        self.with_timeout += u64::from(row.timeouts.min(1));
        self.timeouts += u64::from(row.timeouts);
        self.fast_retransmits += u64::from(row.fast_retransmits);
        self.spurious_fast_retransmits += u64::from(row.spurious_fast_retransmits);
        self.faster_than_ideal += u64::from(row.fct().is_some_and(|fct| fct < row.ideal));
    }

    fn messages(&self) -> Messages {
        let mean = |sum: u64| (self.measured > 0).then(|| sum as f64 / self.measured as f64);
        Messages {
            submitted: self.submitted,
            completed: self.completed,
            failed: self.failed,
            with_timeout: mean(self.with_timeout),
            timeouts: mean(self.timeouts),
            fast_retransmits: mean(self.fast_retransmits),
            spurious_fast_retransmits: mean(self.spurious_fast_retransmits),
        }
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Whether it is measured and has completed.
fn is_done(row: &FlowRow) -> bool {
    row.measured && row.finish.is_some()
}

/// Completion times of measured messages in microseconds, ascending.
#[must_use]
pub fn fct_us(rows: &[FlowRow]) -> Vec<f64> {
    let done = rows.iter().filter(|r| is_done(r));
    sorted(done.filter_map(|r| Some(r.fct()?.as_us_f64())).collect())
}

/// Times from submission until the sender knows that it is complete, of measured messages in
/// microseconds, ascending.
#[must_use]
pub fn acked_us(rows: &[FlowRow]) -> Vec<f64> {
    let done = rows.iter().filter(|r| is_done(r));
    sorted(done.filter_map(|r| Some(r.acked?.since(r.start).as_us_f64())).collect())
}

/// Slowdowns of measured messages, ascending.
#[must_use]
pub fn slowdowns(rows: &[FlowRow]) -> Vec<f64> {
    sorted(rows.iter().filter(|r| is_done(r)).filter_map(FlowRow::slowdown).collect())
}

impl Values {
    /// As the completion times that they are.
    pub(crate) fn completion_times(self) -> Result<FctUs, FileError> {
        let moments = self.moments();
        let [p50, p90, p99, max] = self.sort()?.at([500, 900, 990, 1000])?;
        Ok(FctUs { mean: moments.mean(), p50, p90, p99, max, stdev: moments.stdev() })
    }

    pub(crate) fn distribution(self) -> Result<Distribution, FileError> {
        let mean = self.moments().mean();
        let [p50, p99] = self.sort()?.at([500, 990])?;
        Ok(Distribution { mean, p50, p99 })
    }
}

/// The bucket of messages of `size` bytes, among [`size_buckets`].
#[must_use]
pub fn size_bucket(size: u64) -> usize {
    SIZE_BOUNDS.partition_point(|&bound| bound <= size)
}

/// The buckets of sizes: the smallest size of each, and the first that is too large.
pub fn size_buckets() -> impl Iterator<Item = (u64, Option<u64>)> {
    let lower = std::iter::once(0).chain(SIZE_BOUNDS);
    lower.zip(SIZE_BOUNDS.into_iter().map(Some).chain([None]))
}

/// Slowdowns by size.
fn buckets(by_size: [Values; SIZE_BOUNDS.len() + 1]) -> Result<Vec<SizeBucket>, FileError> {
    let bucket = |((from_bytes, to_bytes), values): ((u64, Option<u64>), Values)| {
        let count = values.count();
        let Distribution { mean, p50, p99 } = values.distribution()?;
        Ok(SizeBucket { from_bytes, to_bytes, count, mean, p50, p99 })
    };
    size_buckets().zip(by_size).map(bucket).collect()
}

/// `bytes` over the window, in Gb/s; `None` if it has no length.
pub(crate) fn goodput(bytes: u64, window: Window) -> Option<f64> {
    let length = window.to.since(window.from).as_s_f64();
    (length > 0.0).then(|| bytes as f64 * 8.0 / length / 1e9)
}

/// The goodput of each long flow, in Gb/s, ascending; see [`FlowStats::flow_goodput_gbps`].
#[must_use]
pub fn long_flow_goodputs(rows: &[FlowRow], window: Window) -> Vec<f64> {
    sorted(rows.iter().filter_map(|row| long_flow_goodput(row, window)).collect())
}

/// That of `row`, if it is long.
fn long_flow_goodput(row: &FlowRow, window: Window) -> Option<f64> {
    let large = row.start <= window.from && row.ideal > window.to.since(window.from);
    if !window.meets(row) || !(row.size.is_none() || large) {
        return None;
    }
    let to = row.finish.map_or(window.to, |t| t.min(window.to));
    goodput(row.placed_in_window, Window { from: window.from.max(row.start), to })
}

fn flow_goodput(ascending: &[f64]) -> FlowGoodput {
    FlowGoodput {
        min: ascending.first().copied(),
        p10: nearest_rank(ascending, 100),
        p50: nearest_rank(ascending, 500),
        mean: ascending.iter().copied().collect::<Moments>().mean(),
        max: ascending.last().copied(),
    }
}

/// Bounded messages in flight at the start of the window, in its middle and at its end.
#[derive(Debug)]
struct Backlog {
    at: [Time; 3],
    in_flight: [u64; 3],
    /// Those submitted inside.
    submitted: u64,
}

impl Backlog {
    fn new(window: Window) -> Self {
        let middle = Time(window.from.0 + window.to.since(window.from).0 / 2);
        Self { at: [window.from, middle, window.to], in_flight: [0; 3], submitted: 0 }
    }

    fn add(&mut self, row: &FlowRow) {
        if row.size.is_none() {
            return;
        }
        self.submitted += u64::from(row.measured);
        for (at, in_flight) in self.at.into_iter().zip(&mut self.in_flight) {
            let is_over = row.finish.is_some_and(|finish| finish <= at);
            *in_flight += u64::from(row.start <= at && !is_over);
        }
    }

    /// A warning if they grew from the start over the middle to the end, in all by at least 20 and
    /// by 5 % of those submitted inside: then the load is more than the network carries, and
    /// completion times depend on how long one measures.
    fn warning(&self) -> Option<String> {
        let [first, half, last] = self.in_flight;
        let growth = last.saturating_sub(first);
        let grows = first < half && half < last && growth >= 20 && growth * 20 >= self.submitted;
        grows.then(|| {
            format!(
                "the backlog grew from {first} to {last} messages in flight during the \
                 measurement: the load is more than the network carries, so completion times \
                 depend on how long one measures"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;
    const WINDOW: Window = Window { from: Time(10 * US), to: Time(110 * US) };

    fn fold(
        rows: &[FlowRow],
        window: Window,
        receiver_rate: fn(u32) -> Rate,
    ) -> (FlowStats, Vec<String>) {
        let mut fold = FlowFold::new(window, None);
        rows.iter().for_each(|row| fold.add(row).unwrap());
        fold.finish(receiver_rate).unwrap()
    }

    fn message(msg: u64, start_us: u64, fct_us: u64, size: u64) -> FlowRow {
        let start = Time(start_us * US);
        FlowRow {
            src: 0,
            dst: 1,
            msg,
            size: Some(size),
            start,
            finish: Some(start + Dur::from_us(fct_us)),
            ideal: Dur::from_us(2),
            placed: size,
            measured: WINDOW.contains(start),
            ..FlowRow::default()
        }
    }

    fn ten_gig(_: u32) -> Rate {
        Rate(10_000_000_000)
    }

    #[test]
    fn by_hand() {
        let mut rows = vec![
            message(0, 0, 5, 1_000),        // before the window
            message(1, 10, 2, 1_000),       // slowdown 1
            message(2, 20, 4, 9_999),       // slowdown 2
            message(3, 30, 12, 10_000),     // slowdown 6, in the next bucket
            message(4, 109, 20, 1_000_000), // completes after the window, counts
            message(5, 110, 3, 1_000),      // at its end: not measured
        ];
        rows[1].placed_in_window = 62_500;
        rows[3].placed_in_window = 62_500;
        rows.push(FlowRow { finish: None, timeouts: 2, ..message(6, 50, 0, 5) });
        (rows[0].timeouts, rows[1].timeouts, rows[3].fast_retransmits) = (5, 1, 1);
        // In time to the picosecond, late, unfinished; and one that is not measured.
        for (row, us) in [(1, 2), (3, 11), (6, 1_000), (0, 9)] {
            rows[row].deadline = Some(Dur::from_us(us));
        }
        // Given up outside the window, in it twice; and one that became whole all the same.
        let given_up = |start, failed| FlowRow { finish: None, failed, ..message(7, start, 0, 5) };
        rows.push(given_up(3, Some(Failure::Refused)));
        rows.push(given_up(60, Some(Failure::Cancelled)));
        rows.push(given_up(60, Some(Failure::TimedOut)));
        rows[4].failed = Some(Failure::TimedOut);
        let (stats, warnings) = fold(&rows, WINDOW, ten_gig);
        assert_eq!(stats.deadlines, Deadlines { met: 1, missed: 2 });
        let counts = Messages {
            submitted: 10,
            completed: 6,
            failed: Failed { total: 3, timed_out: 1, refused: 1, cancelled: 1, forgotten: 0 },
            with_timeout: Some(2.0 / 7.0),
            timeouts: Some(3.0 / 7.0),
            fast_retransmits: Some(1.0 / 7.0),
            spurious_fast_retransmits: Some(0.0),
        };
        assert_eq!(stats.messages, counts, "of the seven measured ones");
        let fct = stats.fct_us;
        assert_eq!([fct.mean, fct.p50, fct.p90], [Some(9.5), Some(4.0), Some(20.0)]);
        assert_eq!([fct.p99, fct.max], [Some(20.0), Some(20.0)]);
        assert_eq!(stats.slowdown.p50, Some(2.0));
        assert_eq!(stats.last_completion_us, Some(129.0));
        assert_eq!(stats.goodput_gbps, Some(10.0), "125 kB in 100 us");
        assert_eq!(stats.utilization, Some(1.0), "one receiver in use");
        let measured = Measured { from_us: 10.0, to_us: 110.0, unfinished: 1, failed: 2 };
        assert_eq!(stats.measured, measured);
        assert_eq!(stats.flow_goodput_gbps, FlowGoodput::default(), "no long flow");
        let counts: Vec<u64> = stats.slowdown_by_size.iter().map(|b| b.count).collect();
        assert_eq!(counts, [2, 1, 0, 1, 0]);
        assert_eq!(stats.slowdown_by_size[0].p99, Some(2.0));
        assert_eq!(stats.slowdown_by_size[2].p99, None);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].starts_with("1 of the measured messages had"), "{warnings:?}");
        assert!(warnings[1].starts_with("1 of the measured messages were given"), "{warnings:?}");
        assert!(warnings[1].contains("of all, 1 timed out, 1 refused"), "{warnings:?}");
        assert!(warnings[2].starts_with("only 4 measured"), "{warnings:?}");
    }

    #[test]
    fn long_flows_get_a_goodput_each() {
        let flow = |dst, start_us, bytes| FlowRow {
            dst,
            start: Time(start_us * US),
            placed_in_window: bytes,
            ..FlowRow::default()
        };
        // 9 Gb/s over the whole window, 8 Gb/s over its second half; the third is a bounded one
        // that would take longer than the window even alone, the fourth is merely slow.
        let large =
            FlowRow { size: Some(1 << 20), ideal: Dur::from_us(101), ..flow(2, 0, 100_000) };
        let slow = FlowRow { size: Some(1000), ideal: Dur::from_us(9), ..flow(2, 0, 0) };
        let rows = [flow(1, 0, 112_500), flow(2, 60, 50_000), large, slow];
        let (stats, warnings) = fold(&rows, WINDOW, ten_gig);
        let goodput = stats.flow_goodput_gbps;
        assert_eq!([goodput.min, goodput.p50, goodput.max], [Some(8.0), Some(8.0), Some(9.0)]);
        assert_eq!(goodput.mean, Some(25.0 / 3.0));
        assert_eq!(stats.utilization, Some(1.05), "262.5 kB at two receivers: made up");
        assert_eq!(stats.measured.unfinished, 0, "an unbounded flow is not unfinished");
        assert_eq!(stats.fct_us, FctUs::default());
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn a_growing_backlog_is_a_warning() {
        let growing: Vec<_> = (0..100).map(|i| message(i, 10 + i, 20 + i, 1000)).collect();
        let (_, warnings) = fold(&growing, WINDOW, ten_gig);
        assert!(warnings[0].starts_with("the backlog grew from"), "{warnings:?}");
        let steady: Vec<_> = (0..100).map(|i| message(i, 10 + i, 20, 1000)).collect();
        let (_, warnings) = fold(&steady, WINDOW, ten_gig);
        assert!(!warnings.iter().any(|w| w.contains("backlog")), "{warnings:?}");
    }

    #[test]
    fn faster_than_ideal_is_a_warning() {
        let (_, warnings) = fold(&[message(0, 20, 1, 1000)], WINDOW, ten_gig);
        assert!(warnings.iter().any(|w| w.contains("faster than the ideal")), "{warnings:?}");
    }

    #[test]
    fn nothing_at_all_is_nulls() {
        let nowhen = Window { from: Time::ZERO, to: Time::ZERO };
        let (stats, warnings) = fold(&[], nowhen, ten_gig);
        assert_eq!((stats.goodput_gbps, stats.utilization), (None, None));
        assert_eq!((stats.last_completion_us, stats.fct_us.max), (None, None));
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}
