//! Slowdown by size of message, as the Homa paper (SIGCOMM 2018, figures 8 to 12) shows it: messages are sorted by
//! size and divided into ranges of about equally many, and percentiles are taken within each.

use metrics::{FlowRow, nearest_rank};

/// The names of the metrics, in the order of [`values`].
pub(crate) const NAMES: [&str; 14] = [
    "by_size.small_half_p99",
    "by_size.worst_p99",
    "by_size.at10.p50",
    "by_size.at10.p99",
    "by_size.at50.p50",
    "by_size.at50.p99",
    "by_size.at75.p50",
    "by_size.at75.p99",
    "by_size.at90.p50",
    "by_size.at90.p99",
    "by_size.at99.p50",
    "by_size.at99.p99",
    "by_size.at999.p50",
    "by_size.at999.p99",
];

/// Where the quantiles of `NAMES` are, in thousandths of all messages.
const AT: [usize; 6] = [100, 500, 750, 900, 990, 999];

/// Messages of neighbouring sizes.
struct Range {
    /// Those before it, and those up to its end.
    before: usize,
    end: usize,
    /// Their slowdowns, ascending.
    slowdowns: Vec<f64>,
}

/// The metrics of measured messages that are whole, as far as there are any.
pub(crate) fn values(rows: &[FlowRow]) -> Vec<Option<f64>> {
    let ranges = ranges(rows);
    let all = ranges.last().map_or(0, |range| range.end);
    let p99 = |range: &Range| nearest_rank(&range.slowdowns, 990);
    let worst =
        |ranges: &mut dyn Iterator<Item = &Range>| ranges.filter_map(p99).max_by(f64::total_cmp);
    let small = worst(&mut ranges.iter().filter(|range| range.before * 2 < all));
    let mut values = vec![small, worst(&mut ranges.iter())];
    for at in AT {
        let range = ranges.iter().find(|range| range.end * 1000 >= all * at);
        values.push(range.and_then(|range| nearest_rank(&range.slowdowns, 500)));
        values.push(range.and_then(p99));
    }
    values
}

/// Ranges of sizes, ascending: each has at least a hundredth of all messages, beyond the largest hundredth at
/// least a thousandth. Messages of one size are in one range.
fn ranges(rows: &[FlowRow]) -> Vec<Range> {
    let measured = rows.iter().filter(|row| row.measured);
    let mut messages: Vec<(u64, f64)> =
        measured.filter_map(|row| Some((row.size?, row.slowdown()?))).collect();
    messages.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let all = messages.len();
    let (mut ranges, mut before) = (Vec::new(), 0);
    for (i, (size, _)) in messages.iter().enumerate() {
        let last_of_size = messages.get(i + 1).is_none_or(|(next, _)| next != size);
        let share = if before * 100 < all * 99 { 100 } else { 1000 };
        if last_of_size && ((i + 1 - before) * share >= all || i + 1 == all) {
            let mut slowdowns: Vec<f64> = messages[before..=i].iter().map(|(_, s)| *s).collect();
            slowdowns.sort_unstable_by(f64::total_cmp);
            ranges.push(Range { before, end: i + 1, slowdowns });
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
        let ends: Vec<usize> = ranges(&rows).iter().map(|range| range.end).collect();
        assert_eq!(ends[..4], [600, 900, 910, 920]);
        assert_eq!(ends[10..], [990, 991, 992, 993, 994, 995, 996, 997, 998, 999, 1000]);
        let values = values(&rows);
        let named = |name: &str| values[NAMES.iter().position(|n| *n == name).unwrap()];
        assert_eq!(named("by_size.small_half_p99"), Some(2.0));
        assert_eq!(named("by_size.worst_p99"), Some(119.0));
        assert_eq!((named("by_size.at50.p50"), named("by_size.at75.p99")), (Some(1.0), Some(9.0)));
        assert_eq!(
            (named("by_size.at90.p50"), named("by_size.at999.p99")),
            (Some(3.0), Some(118.0))
        );
    }

    #[test]
    fn nothing_has_no_slowdown() {
        let unfinished = FlowRow { finish: None, ..row(10, 1) };
        assert!(values(&[unfinished]).iter().all(Option::is_none));
    }
}
