//! Where the time of messages went, on the page of a run.

use maud::{Markup, html};
use metrics::{ByCause, CAUSES, LifeStats, Span, Timeline};

use crate::number::{number, percent};
use crate::page::table;
use crate::timeline::picture;

/// What takes a smaller share of the time is drawn together.
const SMALL: f64 = 0.02;

/// How to get it, unless messages were followed.
pub(crate) fn life(stats: &LifeStats) -> Markup {
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
        }
    }
}

fn of(by: &ByCause, name: &str) -> f64 {
    by.0.get(name).copied().flatten().unwrap_or_default()
}

fn total(by: &ByCause) -> f64 {
    by.0.values().flatten().sum()
}

/// The causes one after the other, in the order of the table.
fn bar(title: &str, by: &ByCause) -> Markup {
    let all = total(by);
    let (large, small): (Vec<_>, Vec<_>) = CAUSES
        .iter()
        .map(|cause| (cause.name.replace('_', " "), of(by, cause.name)))
        .filter(|(_, us)| *us > 0.0)
        .partition(|(_, us)| *us >= all * SMALL);
    let others: f64 = small.iter().map(|(_, us)| us).sum();
    let others = Some(("others".to_owned(), others)).filter(|(_, us)| *us > 0.0);
    let mut at = 0.0;
    let span = |(n, (label, us)): (usize, (String, f64))| {
        let from_us = at;
        at += us;
        Span { from_us, to_us: at, label, accent: n % 2 == 1 }
    };
    let spans = large.into_iter().chain(others).enumerate().map(span).collect();
    picture(&Timeline {
        title: title.to_owned(),
        about: "Each cause takes its share of the completion time; what is below 2 % is drawn \
                together. The order says nothing."
            .to_owned(),
        lanes: vec![("time".to_owned(), spans)],
    })
}

fn numbers(mean: &ByCause, tail: &ByCause) -> Markup {
    let head = ["Cause", "mean (µs)", "share", "p99 and above (µs)", "share", "what it is"];
    let share = |by: &ByCause, us: f64| percent(Some(us / total(by)));
    let row = |cause: &metrics::LifeCause| {
        let (all, late) = (of(mean, cause.name), of(tail, cause.name));
        let cells = [
            cause.name.replace('_', " "),
            number(Some(all)),
            share(mean, all),
            number(Some(late)),
            share(tail, late),
            cause.about.to_owned(),
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
        assert!(life(&stats).into_string().contains("measure.life=true"), "not followed");
        for (name, us) in [("serialization", 98.5), ("control", 1.0), ("timeout", 0.5)] {
            stats.mean.0.insert(name.to_owned(), Some(us));
            stats.tail.0.insert(name.to_owned(), Some(2.0 * us));
        }
        let page = life(&stats).into_string();
        assert!(page.contains("others: 98.5 to 100 µs"), "{page}");
        assert!(page.contains("<th scope=\"row\">control</th><td>1.00</td><td>1.0 %</td>"));
        assert!(!page.contains("propagation</th>"), "takes no time");
    }
}
