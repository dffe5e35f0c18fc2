//! Where the time of messages went: on the page of a run, of all of them and of the slowest.

use maud::{Markup, html};
use metrics::{
    ByCause, CAUSES, LIFE_CAUSES, LifeCause, LifeRow, LifeStats, Metric, Numbers, Span, Timeline,
    metrics_under,
};
use units::Dur;

use crate::number::{number, percent};
use crate::numbers::by_row;
use crate::page::table;
use crate::timeline::picture;

/// What takes a smaller share of the time is drawn together.
const SMALL: f64 = 0.02;

/// How to get it, unless messages were followed. `slowest` are those that took the longest.
pub(crate) fn life(stats: &LifeStats, slowest: &[LifeRow]) -> Markup {
    let LifeStats { mean, tail } = stats;
    html! {
        @if total(mean) == 0.0 {
            p.note {
                "Where the time of messages went: run with "
                code { "--set measure.life=true" } "."
            }
        } @else {
            h2 { "Where the time went" }
            (bar("Mean of measured messages", mean))
            (bar("Those at p99 and above", tail))
            (numbers(mean, tail))
            (lives(slowest))
        }
    }
}

/// The mean life of each run, a column for each cause; nothing unless a run has followed messages.
pub(crate) fn compared(runs: &[(String, Numbers)]) -> Markup {
    let causes: Vec<Metric> = metrics_under("life_us.mean").collect();
    let followed = |(_, numbers): &(String, Numbers)| {
        causes.iter().any(|cause| cause.value(numbers).is_some())
    };
    html! {
        @if runs.iter().any(followed) {
            h2 { "Where the time went" }
            (by_row("Run", &causes, runs))
            p.note {
                "Means of measured messages: together the mean completion time. A run that has not \
                 followed its messages has none; the page of each run has the slowest ones."
            }
        }
    }
}

/// What a reader calls it.
pub(crate) fn named(cause: &LifeCause) -> String {
    cause.name.replace('_', " ")
}

/// What it is, without the marks of code.
pub(crate) fn meaning(cause: &LifeCause) -> String {
    cause.about.replace('`', "")
}

fn of(by: &ByCause, name: &str) -> f64 {
    by.0.get(name).copied().flatten().unwrap_or_default()
}

fn total(by: &ByCause) -> f64 {
    by.0.values().flatten().sum()
}

/// The causes one after the other, in the order of the table.
fn bar(title: &str, by: &ByCause) -> Markup {
    picture(&Timeline {
        title: title.to_owned(),
        about: "Each cause takes its share of the completion time; what is below 2 % is drawn \
                together. The order says nothing."
            .to_owned(),
        lanes: vec![("time".to_owned(), spans(CAUSES.map(|cause| of(by, cause.name))))],
    })
}

/// A stretch for each of [`CAUSES`] that took so many microseconds, one after the other; the small
/// ones are one. A cause is in the same colour wherever it stands.
fn spans(us: [f64; LIFE_CAUSES]) -> Vec<Span> {
    let all: f64 = us.iter().sum();
    let (large, small): (Vec<_>, Vec<_>) = CAUSES
        .iter()
        .zip(us)
        .enumerate()
        .map(|(n, (cause, us))| (named(cause), us, n % 2 == 1))
        .filter(|(_, us, _)| *us > 0.0)
        .partition(|(_, us, _)| *us >= all * SMALL);
    let others: f64 = small.iter().map(|(_, us, _)| us).sum();
    let others = Some(("others".to_owned(), others, false)).filter(|(_, us, _)| *us > 0.0);
    let mut at = 0.0;
    let span = |(label, us, accent): (String, f64, bool)| {
        let from_us = at;
        at += us;
        Span { from_us, to_us: at, label, accent }
    };
    large.into_iter().chain(others).map(span).collect()
}

/// A lane for each of these messages.
fn lives(slowest: &[LifeRow]) -> Markup {
    let us = |row: &LifeRow| row.spent.map(Dur::as_us_f64);
    let lane = |row: &LifeRow| (format!("{}:{}", row.src, row.msg), spans(us(row)));
    html! {
        @if !slowest.is_empty() {
            (picture(&Timeline {
                title: "The slowest messages".to_owned(),
                about: "The measured messages that took the longest, each as source and number, and \
                        how long each cause took of its completion time. The order says nothing."
                    .to_owned(),
                lanes: slowest.iter().map(lane).collect(),
            }))
            p.note {
                "The life of one, hop by hop: "
                code { "trimline explain DIR SRC:MSG --page FILE" } ", with the directory of this run."
            }
        }
    }
}

fn numbers(mean: &ByCause, tail: &ByCause) -> Markup {
    let head = ["Cause", "mean (µs)", "share", "p99 and above (µs)", "share", "what it is"];
    let share = |by: &ByCause, us: f64| percent(Some(us / total(by)));
    let row = |cause: &LifeCause| {
        let (all, late) = (of(mean, cause.name), of(tail, cause.name));
        let cells = [
            named(cause),
            number(Some(all)),
            share(mean, all),
            number(Some(late)),
            share(tail, late),
            meaning(cause),
        ];
        (all > 0.0 || late > 0.0).then_some(cells.to_vec())
    };
    let rows: Vec<Vec<String>> = CAUSES.iter().filter_map(row).collect();
    table(&head.map(str::to_owned), &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_their_shares_and_small_ones_are_drawn_together() {
        let mut stats = LifeStats::default();
        assert!(life(&stats, &[]).into_string().contains("measure.life=true"), "not followed");
        for (name, us) in [("serialization", 98.5), ("control", 1.0), ("timeout", 0.5)] {
            stats.mean.0.insert(name.to_owned(), Some(us));
            stats.tail.0.insert(name.to_owned(), Some(2.0 * us));
        }
        let page = life(&stats, &[]).into_string();
        assert!(page.contains("others: 98.5 to 100 µs"), "{page}");
        assert!(page.contains("<th scope=\"row\">control</th><td>1.00</td><td>1.0 %</td>"));
        assert!(!page.contains("propagation</th>"), "takes no time");
        assert!(!page.contains("The slowest messages"), "there is no message");
    }

    #[test]
    fn a_message_has_a_lane_with_its_causes() {
        let mut stats = LifeStats::default();
        stats.mean.0.insert("trimmed".to_owned(), Some(7.0));
        let mut row = LifeRow { src: 3, msg: 5, fct: Dur::from_us(10), ..LifeRow::default() };
        let cause = |name| CAUSES.iter().position(|cause| cause.name == name).unwrap();
        row.spent[cause("serialization")] = Dur::from_us(3);
        row.spent[cause("trimmed")] = Dur::from_us(7);
        let page = life(&stats, &[row]).into_string();
        for text in [">3:5</text>", "serialization: 0 to 3 µs", "trimmed: 3 to 10 µs"] {
            assert!(page.contains(text), "{text} in {page}");
        }
    }
}
