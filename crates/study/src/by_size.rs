//! Slowdown by size of message, as the Homa paper (SIGCOMM 2018, figures 8 to 12) shows it:
//! messages are sorted by size and divided into ranges of about equally many, and percentiles are
//! taken within each.
//!
//! In two ways: of all messages of a range, and (`by_size.receivers`) as the scripts behind the
//! paper's figures do (`digestModulesStats` in analysis/MetricsDashBoard.py of
//! PlatformLab/HomaSimulation): of those of each receiving host apart, and then the mean over
//! hosts, weighted by their messages. With a hundred messages or fewer for a host the second is the
//! mean of the slowest of each, which is less the fewer they are.
//!
//! A range by counting and one of the paper differ where the sizes of a range lie on both sides of
//! what fits into a packet. So the paper's own ranges are there, too, as far as its table of
//! results names them ([`LISTED`]).

use metrics::{FlowRow, nearest_rank};

/// How percentiles are taken: the beginning of the metrics' names, and a percentile in thousandths.
type Way = (&'static str, fn(&Range, u32) -> Option<f64>);

/// Of all messages of a range, or for each receiving host.
const WAYS: [Way; 2] =
    [("by_size", Range::percentile), ("by_size.receivers", Range::mean_over_receivers)];

/// Where quantiles are, in thousandths of all messages, and what they are called.
const AT: [(usize, &str); 6] =
    [(100, "at10"), (500, "at50"), (750, "at75"), (900, "at90"), (990, "at99"), (999, "at999")];

/// Ranges in the configuration of the paper's simulator (`msgSizeRanges` in
/// homaTransportConfig.ini of PlatformLab/HomaSimulation) and in the script for its ns-2 programs
/// (`rangesDic` in outputParser.py), for which specs/homa.md#14.1 has results: the greatest size
/// of the range before, and its own. Those up to 5286 B are of W1, the others of W3.
const LISTED: [(u64, u64); 12] = [
    (1, 2),
    (25, 28),
    (28, 31),
    (186, 208),
    (454, 508),
    (1733, 1937),
    (4729, 5286),
    (32, 36),
    (256, 268),
    (433, 469),
    (1603, 1755),
    (30_468, 40_018),
];

/// Messages of neighbouring sizes.
struct Range {
    /// Those before it, and those up to its end.
    before: usize,
    end: usize,
    /// Receiver and slowdown, by slowdown ascending.
    messages: Vec<(u32, f64)>,
}

impl Range {
    fn percentile(&self, permille: u32) -> Option<f64> {
        nearest_rank(&self.messages, permille).map(|(_, slowdown)| slowdown)
    }

    fn mean_over_receivers(&self, permille: u32) -> Option<f64> {
        let mut by_receiver = self.messages.clone();
        // Stable: those of a receiver stay ascending.
        by_receiver.sort_by_key(|(receiver, _)| *receiver);
        let of_each = by_receiver.chunk_by(|a, b| a.0 == b.0);
        let weighted = of_each
            .filter_map(|own| Some(nearest_rank(own, permille)?.1 * own.len() as f64))
            .sum::<f64>();
        (!by_receiver.is_empty()).then(|| weighted / by_receiver.len() as f64)
    }
}

/// The names of the metrics, in the order of [`values`].
pub(crate) fn names() -> impl Iterator<Item = String> {
    let by_counting = WAYS.iter().flat_map(|(way, _)| {
        let worst = ["small_half_p99", "worst_p99"].map(|name| format!("{way}.{name}"));
        let at =
            AT.iter().flat_map(move |(_, at)| ["p50", "p99"].map(|p| format!("{way}.{at}.{p}")));
        worst.into_iter().chain(at)
    });
    let listed = LISTED.iter().flat_map(|(above, to)| {
        ["p50", "p99"].map(|p| format!("by_size.from_{}_to_{to}.{p}", above + 1))
    });
    by_counting.chain(listed)
}

/// Measured messages that are whole: size, receiver and slowdown, by size ascending.
struct Messages(Vec<(u64, (u32, f64))>);

impl Messages {
    fn of(rows: &[FlowRow]) -> Self {
        let measured = rows.iter().filter(|row| row.measured);
        let mut messages: Vec<_> =
            measured.filter_map(|row| Some((row.size?, (row.dst, row.slowdown()?)))).collect();
        messages.sort_unstable_by_key(|(size, _)| *size);
        Self(messages)
    }

    /// The slowdowns of those larger than `above` and up to `to`, ascending.
    fn slowdowns(&self, above: u64, to: u64) -> Vec<f64> {
        let [begin, end] = [above, to].map(|most| self.0.partition_point(|(s, _)| *s <= most));
        let mut slowdowns: Vec<f64> =
            self.0[begin..end].iter().map(|(_, (_, slowdown))| *slowdown).collect();
        slowdowns.sort_unstable_by(f64::total_cmp);
        slowdowns
    }
}

/// What curves can show of ranges of sizes.
pub(crate) const CURVES: [&str; 4] = ["p50", "p99", "receivers.p50", "receivers.p99"];

/// Over the share of messages, in %, that are no larger than the messages of a range: the
/// percentile of their slowdowns, one of [`CURVES`].
pub(crate) fn curve(name: &str, rows: &[FlowRow]) -> Vec<(f64, f64)> {
    let ranges = ranges(&Messages::of(rows));
    let all = ranges.last().map_or(0, |range| range.end) as f64;
    let permille = if name.ends_with("p50") { 500 } else { 990 };
    let (_, percentile) = WAYS[usize::from(name.starts_with("receivers."))];
    let at = |range: &Range| Some((100.0 * range.end as f64 / all, percentile(range, permille)?));
    ranges.iter().filter_map(at).collect()
}

/// The metrics of measured messages that are whole, as far as there are any.
pub(crate) fn values(rows: &[FlowRow]) -> Vec<Option<f64>> {
    let messages = Messages::of(rows);
    let ranges = ranges(&messages);
    let all = ranges.last().map_or(0, |range| range.end);
    let mut values = Vec::new();
    for (_, percentile) in WAYS {
        let p99 = |range: &Range| percentile(range, 990);
        let small = ranges.iter().filter(|range| range.before * 2 < all);
        values.push(small.filter_map(p99).max_by(f64::total_cmp));
        values.push(ranges.iter().filter_map(p99).max_by(f64::total_cmp));
        for (at, _) in AT {
            let range = ranges.iter().find(|range| range.end * 1000 >= all * at);
            values.push(range.and_then(|range| percentile(range, 500)));
            values.push(range.and_then(p99));
        }
    }
    for (above, to) in LISTED {
        let slowdowns = messages.slowdowns(above, to);
        values.extend([500, 990].map(|permille| nearest_rank(&slowdowns, permille)));
    }
    values
}

/// Ranges of sizes, ascending: each has at least a hundredth of all messages, beyond the largest
/// hundredth at least a thousandth, but for the last, which has what is left. Messages of one size
/// are in one range.
fn ranges(Messages(messages): &Messages) -> Vec<Range> {
    let all = messages.len();
    let (mut ranges, mut before) = (Vec::new(), 0);
    for (i, (size, _)) in messages.iter().enumerate() {
        let last_of_size = messages.get(i + 1).is_none_or(|(next, _)| next != size);
        let share = if before * 100 < all * 99 { 100 } else { 1000 };
        if last_of_size && ((i + 1 - before) * share >= all || i + 1 == all) {
            let mut messages: Vec<_> = messages[before..=i].iter().map(|(_, m)| *m).collect();
            messages.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
            ranges.push(Range { before, end: i + 1, messages });
            before = i + 1;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use units::{Dur, Time};

    use super::*;

    fn row(size: u64, slowdown: u64) -> FlowRow {
        let finish = Some(Time(slowdown * 10));
        FlowRow { size: Some(size), finish, ideal: Dur(10), measured: true, ..FlowRow::default() }
    }

    /// 600 messages of 10 B, 300 of 20 B, of which four are slow, 100 of sizes from 1000 B on.
    #[test]
    fn ranges_and_their_percentiles_by_hand() {
        let small = (0..600).map(|n| row(10, 1 + n % 2));
        let middle = (0..300).map(|n| row(20, if n < 4 { 9 } else { 3 }));
        let large = (0..100).map(|n| row(1000 + n, 20 + n));
        let rows: Vec<FlowRow> = small.chain(middle).chain(large).collect();
        let ends: Vec<usize> = ranges(&Messages::of(&rows)).iter().map(|range| range.end).collect();
        assert_eq!(ends[..4], [600, 900, 910, 920]);
        assert_eq!(ends[10..], [990, 991, 992, 993, 994, 995, 996, 997, 998, 999, 1000]);
        let values = values(&rows);
        let named = |name: &str| values[names().position(|n| n == name).unwrap()];
        assert_eq!(named("by_size.small_half_p99"), Some(2.0));
        assert_eq!(named("by_size.worst_p99"), Some(119.0));
        assert_eq!((named("by_size.at50.p50"), named("by_size.at75.p99")), (Some(1.0), Some(9.0)));
        assert_eq!(
            (named("by_size.at90.p50"), named("by_size.at999.p99")),
            (Some(3.0), Some(118.0))
        );
    }

    /// Three quarters are of 10 B, the rest of two larger sizes.
    #[test]
    fn a_curve_has_a_point_for_each_range() {
        let rows: Vec<FlowRow> =
            (0..8).map(|n| row([10, 10, 10, 10, 10, 10, 20, 30][n], n as u64 + 1)).collect();
        assert_eq!(curve("p50", &rows), [(75.0, 3.0), (87.5, 7.0), (100.0, 8.0)]);
        assert_eq!(curve("p99", &rows), [(75.0, 6.0), (87.5, 7.0), (100.0, 8.0)]);
        // Five of one receiver, whose median is 3, and one of another, with 6.
        let rows: Vec<FlowRow> =
            (1..=6).map(|n| FlowRow { dst: n / 6, ..row(10, n.into()) }).collect();
        assert_eq!(curve("receivers.p50", &rows), [(100.0, (5.0 * 3.0 + 6.0) / 6.0)]);
    }

    /// One receiver has 150 messages, of slowdowns 1 to 150, another has ten, of 1000. The 99th
    /// percentile of the first is 149, the median 75; the largest of all is that of the second.
    #[test]
    fn receivers_are_weighted_by_their_messages() {
        let one = (1..=150).map(|slowdown| FlowRow { dst: 3, ..row(10, slowdown) });
        let other = (0..10).map(|_| FlowRow { dst: 1, ..row(10, 1000) });
        let rows: Vec<FlowRow> = one.chain(other).collect();
        let values = values(&rows);
        let named = |name: &str| values[names().position(|n| n == name).unwrap()];
        assert_eq!(named("by_size.small_half_p99"), Some(1000.0));
        let expected = (149.0 * 150.0 + 1000.0 * 10.0) / 160.0;
        assert_eq!(named("by_size.receivers.small_half_p99"), Some(expected));
        let expected = (75.0 * 150.0 + 1000.0 * 10.0) / 160.0;
        assert_eq!(named("by_size.receivers.at50.p50"), Some(expected));
    }

    /// A range of the paper holds its greatest size, and not that of the range before.
    #[test]
    fn a_range_of_the_paper_by_hand() {
        let within = (1..=100).map(|slowdown| row(1733 + slowdown, slowdown));
        let beside = [row(1733, 1000), row(1938, 1000)];
        let unmeasured = FlowRow { measured: false, ..row(1800, 1000) };
        let rows: Vec<FlowRow> = within.chain(beside).chain([unmeasured]).collect();
        let values = values(&rows);
        let named = |name: &str| values[names().position(|n| n == name).unwrap()];
        assert_eq!(named("by_size.from_1734_to_1937.p50"), Some(50.0));
        assert_eq!(named("by_size.from_1734_to_1937.p99"), Some(99.0));
        assert_eq!(named("by_size.from_4730_to_5286.p99"), None);
    }

    #[test]
    fn nothing_has_no_slowdown() {
        let unfinished = FlowRow { finish: None, ..row(10, 1) };
        assert!(values(&[unfinished]).iter().all(Option::is_none));
    }
}
