//! [`fold_flows`]: what the messages of a run say about it.

use std::collections::BTreeSet;

use units::{Rate, Time};

use crate::statistics::{Moments, nearest_rank};
use crate::{
    Deadlines, Distribution, Failed, Failure, FctUs, FlowGoodput, FlowRow, FlowStats, Measured,
    Messages, SizeBucket,
};

/// Bounds of the size buckets, in bytes.
const SIZE_BOUNDS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Below this many completed messages the 99th percentile (nearest rank) is the slowest of them.
const ENOUGH_FOR_P99: usize = 100;

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

/// Folds the messages of a run into [`FlowStats`] (which defines every number) and the warnings
/// that follow from them. `receiver_rate` is the sum of a host's link rates. The order of the rows
/// matters only to the last bits of means: give them sorted, as in `flows.parquet`.
pub fn fold_flows(
    rows: &[FlowRow],
    window: Window,
    receiver_rate: impl Fn(u32) -> Rate,
) -> (FlowStats, Vec<String>) {
    let done: Vec<&FlowRow> = done(rows).collect();
    let goodput_gbps = goodput(rows.iter().map(|r| r.placed_in_window).sum(), window);
    let measured =
        |of: fn(&FlowRow) -> bool| rows.iter().filter(|r| r.measured && of(r)).count() as u64;
    let stats = FlowStats {
        messages: messages(rows),
        deadlines: deadlines(rows),
        fct_us: completion_times(&done),
        slowdown: distribution(done.iter().filter_map(|r| r.slowdown()).collect()),
        slowdown_by_size: by_size(&done),
        last_completion_us: rows.iter().filter_map(|r| r.finish).max().map(Time::as_us_f64),
        goodput_gbps,
        utilization: goodput_gbps.and_then(|g| utilization(g, rows, window, receiver_rate)),
        measured: Measured {
            from_us: window.from.as_us_f64(),
            to_us: window.to.as_us_f64(),
            unfinished: measured(FlowRow::is_unfinished),
            failed: measured(FlowRow::has_failed),
        },
        flow_goodput_gbps: flow_goodput(&long_flow_goodputs(rows, window)),
    };
    let warnings = warnings(rows, &done, &stats, window);
    (stats, warnings)
}

fn messages(rows: &[FlowRow]) -> Messages {
    let measured: Vec<&FlowRow> = rows.iter().filter(|r| r.measured).collect();
    let mean = |count: fn(&FlowRow) -> u32| {
        let sum: u64 = measured.iter().map(|r| u64::from(count(r))).sum();
        (!measured.is_empty()).then(|| sum as f64 / measured.len() as f64)
    };
    Messages {
        submitted: rows.len() as u64,
        completed: rows.iter().filter(|r| r.finish.is_some()).count() as u64,
        failed: failed(rows),
        with_timeout: mean(|r| r.timeouts.min(1)),
        timeouts: mean(|r| r.timeouts),
        fast_retransmits: mean(|r| r.fast_retransmits),
        spurious_fast_retransmits: mean(|r| r.spurious_fast_retransmits),
    }
}

fn failed(rows: &[FlowRow]) -> Failed {
    let mut failed = Failed::default();
    for why in rows.iter().filter(|r| r.has_failed()).filter_map(|r| r.failed) {
        failed.total += 1;
        *match why {
            Failure::TimedOut => &mut failed.timed_out,
            Failure::Refused => &mut failed.refused,
            Failure::Cancelled => &mut failed.cancelled,
            Failure::Forgotten => &mut failed.forgotten,
        } += 1;
    }
    failed
}

fn deadlines(rows: &[FlowRow]) -> Deadlines {
    let of_measured = rows.iter().filter(|r| r.measured).filter_map(FlowRow::in_time);
    let (met, missed): (Vec<bool>, Vec<bool>) = of_measured.partition(|&in_time| in_time);
    Deadlines { met: met.len() as u64, missed: missed.len() as u64 }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The measured messages that completed.
fn done(rows: &[FlowRow]) -> impl Iterator<Item = &FlowRow> {
    rows.iter().filter(|r| r.measured && r.finish.is_some())
}

/// Completion times of measured messages in microseconds, ascending.
#[must_use]
pub fn fct_us(rows: &[FlowRow]) -> Vec<f64> {
    sorted(done(rows).filter_map(|r| Some(r.fct()?.as_us_f64())).collect())
}

/// Times from submission until the sender knows that it is complete, of measured messages in
/// microseconds, ascending.
#[must_use]
pub fn acked_us(rows: &[FlowRow]) -> Vec<f64> {
    sorted(done(rows).filter_map(|r| Some(r.acked?.since(r.start).as_us_f64())).collect())
}

/// Slowdowns of measured messages, ascending.
#[must_use]
pub fn slowdowns(rows: &[FlowRow]) -> Vec<f64> {
    sorted(done(rows).filter_map(FlowRow::slowdown).collect())
}

pub(crate) fn completion_times(done: &[&FlowRow]) -> FctUs {
    let values: Vec<f64> = done.iter().filter_map(|r| Some(r.fct()?.as_us_f64())).collect();
    let moments: Moments = values.iter().copied().collect();
    let values = sorted(values);
    FctUs {
        mean: moments.mean(),
        p50: nearest_rank(&values, 500),
        p90: nearest_rank(&values, 900),
        p99: nearest_rank(&values, 990),
        max: values.last().copied(),
        stdev: moments.stdev(),
    }
}

pub(crate) fn distribution(values: Vec<f64>) -> Distribution {
    let moments: Moments = values.iter().copied().collect();
    let values = sorted(values);
    Distribution {
        mean: moments.mean(),
        p50: nearest_rank(&values, 500),
        p99: nearest_rank(&values, 990),
    }
}

fn by_size(done: &[&FlowRow]) -> Vec<SizeBucket> {
    let mut buckets: [Vec<f64>; SIZE_BOUNDS.len() + 1] = Default::default();
    for row in done {
        if let (Some(size), Some(slowdown)) = (row.size, row.slowdown()) {
            buckets[SIZE_BOUNDS.partition_point(|&bound| bound <= size)].push(slowdown);
        }
    }
    let lower = std::iter::once(0).chain(SIZE_BOUNDS);
    let upper = SIZE_BOUNDS.into_iter().map(Some).chain([None]);
    let bucket = |((from_bytes, to_bytes), values): ((u64, Option<u64>), Vec<f64>)| {
        let count = values.len() as u64;
        let Distribution { mean, p50, p99 } = distribution(values);
        SizeBucket { from_bytes, to_bytes, count, mean, p50, p99 }
    };
    lower.zip(upper).zip(buckets).map(bucket).collect()
}

/// `bytes` over the window, in Gb/s; `None` if it has no length.
pub(crate) fn goodput(bytes: u64, window: Window) -> Option<f64> {
    let length = window.to.since(window.from).as_s_f64();
    (length > 0.0).then(|| bytes as f64 * 8.0 / length / 1e9)
}

fn utilization(
    goodput_gbps: f64,
    rows: &[FlowRow],
    window: Window,
    receiver_rate: impl Fn(u32) -> Rate,
) -> Option<f64> {
    let receivers: BTreeSet<u32> = rows.iter().filter(|r| window.meets(r)).map(|r| r.dst).collect();
    let gbps: f64 = receivers.into_iter().map(|host| receiver_rate(host).as_gbps_f64()).sum();
    (gbps > 0.0).then(|| goodput_gbps / gbps)
}

/// The goodput of each long flow, in Gb/s, ascending; see [`FlowStats::flow_goodput_gbps`].
#[must_use]
pub fn long_flow_goodputs(rows: &[FlowRow], window: Window) -> Vec<f64> {
    let length = window.to.since(window.from);
    let large = |r: &FlowRow| r.start <= window.from && r.ideal > length;
    let long = |r: &&FlowRow| window.meets(r) && (r.size.is_none() || large(r));
    let rate = |r: &FlowRow| {
        let to = r.finish.map_or(window.to, |t| t.min(window.to));
        goodput(r.placed_in_window, Window { from: window.from.max(r.start), to })
    };
    sorted(rows.iter().filter(long).filter_map(rate).collect())
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

fn warnings(rows: &[FlowRow], done: &[&FlowRow], stats: &FlowStats, window: Window) -> Vec<String> {
    let mut warnings = Vec::new();
    let unfinished = stats.measured.unfinished;
    if unfinished > 0 {
        warnings.push(format!(
            "{unfinished} of the measured messages had not completed when the run ended: the \
             completion times and slowdowns leave out what was slowest"
        ));
    }
    // Whoever cancels messages knows of it, and no transport has given up what a NIC forgot.
    let other = [Some(Failure::Cancelled), Some(Failure::Forgotten)];
    let given_up = |r: &&FlowRow| r.measured && r.has_failed() && !other.contains(&r.failed);
    let given_up = rows.iter().filter(given_up).count();
    if given_up > 0 {
        let Failed { timed_out, refused, .. } = stats.messages.failed;
        warnings.push(format!(
            "{given_up} of the measured messages were given up by their transport (of all, \
             {timed_out} timed out, {refused} refused): the completion times and slowdowns leave \
             them out"
        ));
    }
    warnings.extend(backlog(rows, window));
    if !done.is_empty() && done.len() < ENOUGH_FOR_P99 {
        warnings.push(format!(
            "only {} measured messages completed: the p99 is the maximum (measure longer, or over \
             several seeds)",
            done.len()
        ));
    }
    let faster = done.iter().filter(|r| r.fct().is_some_and(|fct| fct < r.ideal)).count();
    if faster > 0 {
        warnings.push(format!(
            "{faster} messages completed faster than the ideal: the ideal completion time does \
             not bound this scenario, do not trust its slowdowns"
        ));
    }
    if rows.iter().any(|r| window.meets(r)) && stats.goodput_gbps.is_none_or(|g| g == 0.0) {
        warnings.push("not a byte was delivered inside the measurement window".to_owned());
    }
    warnings
}

/// A warning if bounded messages in flight grew from the start of the window over its middle to
/// its end, in all by at least 20 and by 5 % of those submitted inside: then the load is more
/// than the network carries, and completion times depend on how long one measures.
fn backlog(rows: &[FlowRow], window: Window) -> Option<String> {
    let bounded = || rows.iter().filter(|r| r.size.is_some());
    let in_flight = |t: Time| {
        bounded().filter(|r| r.start <= t && r.finish.is_none_or(|finish| finish > t)).count()
    };
    let middle = Time(window.from.0 + window.to.since(window.from).0 / 2);
    let [first, half, last] = [window.from, middle, window.to].map(in_flight);
    let growth = last.saturating_sub(first);
    let submitted = bounded().filter(|r| r.measured).count();
    (first < half && half < last && growth >= 20 && growth * 20 >= submitted).then(|| {
        format!(
            "the backlog grew from {first} to {last} messages in flight during the measurement: \
             the load is more than the network carries, so completion times depend on how long \
             one measures"
        )
    })
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::*;

    const US: u64 = 1_000_000;
    const WINDOW: Window = Window { from: Time(10 * US), to: Time(110 * US) };

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
        let (stats, warnings) = fold_flows(&rows, WINDOW, ten_gig);
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
        let (stats, warnings) = fold_flows(&rows, WINDOW, ten_gig);
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
        let (_, warnings) = fold_flows(&growing, WINDOW, ten_gig);
        assert!(warnings[0].starts_with("the backlog grew from"), "{warnings:?}");
        let steady: Vec<_> = (0..100).map(|i| message(i, 10 + i, 20, 1000)).collect();
        let (_, warnings) = fold_flows(&steady, WINDOW, ten_gig);
        assert!(!warnings.iter().any(|w| w.contains("backlog")), "{warnings:?}");
    }

    #[test]
    fn faster_than_ideal_is_a_warning() {
        let (_, warnings) = fold_flows(&[message(0, 20, 1, 1000)], WINDOW, ten_gig);
        assert!(warnings.iter().any(|w| w.contains("faster than the ideal")), "{warnings:?}");
    }

    #[test]
    fn nothing_at_all_is_nulls() {
        let nowhen = Window { from: Time::ZERO, to: Time::ZERO };
        let (stats, warnings) = fold_flows(&[], nowhen, ten_gig);
        assert_eq!((stats.goodput_gbps, stats.utilization), (None, None));
        assert_eq!((stats.last_completion_us, stats.fct_us.max), (None, None));
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}
