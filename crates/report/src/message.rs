//! The page of one message: its life, cause by cause, in the order of time.

use maud::{Markup, html};
use metrics::{CAUSES, LifeCause, Span, Timeline};

use crate::life::{meaning, named};
use crate::number::{number, percent};
use crate::page::{Tile, code, shell, table, tiles};
use crate::timeline::picture;

/// So many of the longest parts are drawn and listed, at most.
const SHOWN: usize = 1000;

/// A part of a message's life with one cause at one place.
#[derive(Clone, Debug)]
pub struct Part {
    /// How long after the submission it begins, microseconds.
    pub after_us: f64,
    /// How long it takes, microseconds.
    pub for_us: f64,
    /// Why.
    pub cause: LifeCause,
    /// The host, or the link with the queue at its beginning.
    pub place: String,
    /// What was on its way, or waited to leave; empty if that was nothing.
    pub packet: String,
}

/// The life of a message that has been delivered.
#[derive(Clone, Debug)]
pub struct MessageLife {
    /// Source and number, as in `flows.parquet`.
    pub name: String,
    /// From where to where, how much, when.
    pub about: String,
    /// Its completion time, microseconds: that of all parts.
    pub fct_us: f64,
    /// That of the same message alone in the same fabric.
    pub ideal_us: f64,
    /// In the order of time, without gaps.
    pub parts: Vec<Part>,
    /// The command that says so.
    pub command: String,
}

/// The page of the life of one message.
#[must_use]
pub fn message_page(life: &MessageLife) -> String {
    let title = format!("Message {}", life.name);
    let parts = longest(&life.parts);
    let body = html! {
        header {
            h1 { (title) }
            p.subtitle { (life.about) }
        }
        (tiles(&headline(life)))
        h2 { "Where its time went" }
        (sums(life))
        (lanes(&parts))
        h3 { "In the order of time" }
        (listed(&parts))
        @if parts.len() < life.parts.len() {
            p.note {
                "The longest " (parts.len()) " of " (life.parts.len()) " parts. "
                code { "--all" } " prints all of them."
            }
        }
        h2 { "How to repeat this" }
        (code(&life.command))
    };
    shell(&format!("{title} · Trimline"), &body)
}

/// The longest parts, in the order of time.
fn longest(parts: &[Part]) -> Vec<&Part> {
    let mut kept: Vec<&Part> = parts.iter().collect();
    kept.sort_by(|a, b| b.for_us.total_cmp(&a.for_us));
    kept.truncate(SHOWN);
    kept.sort_by(|a, b| a.after_us.total_cmp(&b.after_us));
    kept
}

fn headline(life: &MessageLife) -> Vec<Tile> {
    let tile = |name: &str, value: f64, unit, about: &str| Tile {
        name: name.to_owned(),
        value: number(Some(value)),
        unit,
        about: about.to_owned(),
    };
    vec![
        tile("completion time", life.fct_us, "µs", "from submission to delivery"),
        tile("alone", life.ideal_us, "µs", "the same message alone in the same fabric"),
        tile("slowdown", life.fct_us / life.ideal_us.max(1e-6), "", "the first over the second"),
    ]
}

/// What each cause took, with what it is.
fn sums(life: &MessageLife) -> Markup {
    let row = |cause: &LifeCause| {
        let of = life.parts.iter().filter(|part| part.cause.name == cause.name);
        let us: f64 = of.map(|part| part.for_us).sum();
        let share = percent(Some(us / life.fct_us));
        (us > 0.0).then(|| vec![named(cause), number(Some(us)), share, meaning(cause)])
    };
    let rows: Vec<Vec<String>> = CAUSES.iter().filter_map(row).collect();
    table(&["Cause", "time (µs)", "share", "what it is"].map(str::to_owned), &rows)
}

/// A lane for each cause.
fn lanes(parts: &[&Part]) -> Markup {
    let span = |part: &&Part| Span {
        from_us: part.after_us,
        to_us: part.after_us + part.for_us,
        label: match part.packet.as_str() {
            "" => part.place.clone(),
            packet => format!("{}, {packet}", part.place),
        },
        accent: true,
    };
    let lane = |cause: &LifeCause| {
        let of = parts.iter().filter(|part| part.cause.name == cause.name);
        let spans: Vec<Span> = of.map(span).collect();
        (!spans.is_empty()).then(|| (named(cause), spans))
    };
    picture(&Timeline {
        title: "Its life".to_owned(),
        about: "From submission to delivery: at each instant its time went on one cause, at the \
                place of the box. A link stands for itself and the queue at its beginning."
            .to_owned(),
        lanes: CAUSES.iter().filter_map(lane).collect(),
    })
}

fn listed(parts: &[&Part]) -> Markup {
    let head = ["After (µs)", "for (µs)", "cause", "where", "packet"].map(str::to_owned);
    let row = |part: &&Part| {
        let Part { after_us, for_us, cause, place, packet } = part;
        let (after, length) = (number(Some(*after_us)), number(Some(*for_us)));
        vec![after, length, named(cause), place.clone(), packet.clone()]
    };
    table(&head, &parts.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_parts_the_longest_are_kept_in_their_order() {
        let part = |n: u32| Part {
            after_us: f64::from(n),
            for_us: f64::from(n % 7 + 1),
            cause: CAUSES[0],
            place: String::new(),
            packet: String::new(),
        };
        let parts: Vec<Part> = (0..7_000).map(part).collect();
        let kept = longest(&parts);
        assert_eq!(kept.len(), SHOWN);
        assert!(kept.iter().all(|part| part.for_us == 7.0));
        assert!(kept.is_sorted_by(|a, b| a.after_us < b.after_us));
    }
}
