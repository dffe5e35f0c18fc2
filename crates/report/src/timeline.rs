//! A [`Timeline`] as inline SVG: one lane per place, a box per stretch.

use maud::{Markup, html};
use metrics::{Span, Timeline};

use crate::number::tick;

/// Sizes in the picture's own units; it is scaled to the page.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 20.0;
/// Between lanes.
const GAP: f64 = 16.0;
const BOX: f64 = 28.0;
/// A box is at least so wide, to be seen.
const NARROW: f64 = 4.0;
/// What a letter of a label takes, about.
const LETTER: f64 = 6.4;
/// Labels that do not fit into their boxes stand in rows beneath them.
const ROW: f64 = 15.0;
/// At most so many: what finds no room is in the table, and shown by hovering.
const ROWS: usize = 4;

/// The picture and how to read it.
pub(crate) fn picture(timeline: &Timeline) -> Markup {
    let ends = timeline.lanes.iter().flat_map(|(_, spans)| spans).map(|span| span.to_us);
    let end = ends.fold(0.0, f64::max).max(1e-3);
    let x = |us: f64| LEFT + us / end * (WIDTH - LEFT - RIGHT);
    let mut height = 8.0;
    let mut lane = |(name, spans): &(String, Vec<Span>)| {
        let top = height;
        let labels = labels(spans, &x);
        let rows = labels.iter().filter_map(|label| label.row).max().map_or(0, |row| row + 1);
        height += BOX + ROW * rows as f64 + GAP;
        html! {
            text x="0" y=(top + BOX * 0.7) { (name) }
            // Narrow ones over their neighbours.
            @for span in wide_first(spans) { (of_span(span, &x, top)) }
            @for label in &labels { (of_label(label, top)) }
        }
    };
    let lanes: Vec<Markup> = timeline.lanes.iter().map(&mut lane).collect();
    height += 24.0;
    html! {
        figure {
            h3 { (timeline.title) }
            div.scroll tabindex="0" role="group" aria-label=(timeline.title) { svg.timeline viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(timeline.about) {
                (scale(end, &x, height))
                @for lane in &lanes { (lane) }
            } }
            figcaption { (timeline.about) }
        }
    }
}

fn wide_first(spans: &[Span]) -> Vec<&Span> {
    let mut spans: Vec<&Span> = spans.iter().collect();
    let width = |span: &Span| span.to_us - span.from_us;
    spans.sort_by(|a, b| width(b).total_cmp(&width(a)));
    spans
}

fn of_span(span: &Span, x: &impl Fn(f64) -> f64, top: f64) -> Markup {
    let (from, to) = (x(span.from_us), x(span.to_us));
    let class = if span.accent { "accent" } else { "plain" };
    html! {
        rect.(class) x=(from) y=(top) width=((to - from).max(NARROW)) height=(BOX) {
            title { @if !span.label.is_empty() { (span.label) ": " } (tick(span.from_us)) " to " (tick(span.to_us)) " µs" }
        }
    }
}

/// Where a label stands.
struct Label<'a> {
    text: &'a str,
    /// Its middle, and that of its box.
    middle: f64,
    of_box: f64,
    /// The row beneath the box, unless it stands inside.
    row: Option<usize>,
    accent: bool,
}

/// Inside its box if there is room, else in the first row with room beneath it, from the left.
fn labels<'a>(spans: &'a [Span], x: &impl Fn(f64) -> f64) -> Vec<Label<'a>> {
    let mut spans: Vec<&Span> = spans.iter().filter(|span| !span.label.is_empty()).collect();
    spans.sort_by(|a, b| (a.from_us + a.to_us).total_cmp(&(b.from_us + b.to_us)));
    let mut taken = [0.0; ROWS];
    let mut label = |span: &&'a Span| {
        let (from, to) = (x(span.from_us), x(span.to_us));
        let width = LETTER * span.label.chars().count() as f64;
        let of_box = (from + to) / 2.0;
        let middle = of_box.clamp(width / 2.0, (WIDTH - width / 2.0).max(width / 2.0));
        let inside = width <= to - from;
        let row = (0..ROWS).find(|row| taken[*row] <= middle - width / 2.0);
        if let (false, Some(row)) = (inside, row) {
            taken[row] = middle + width / 2.0 + LETTER;
        }
        let row = if inside { None } else { Some(row?) };
        Some(Label { text: &span.label, middle, of_box, row, accent: span.accent })
    };
    spans.iter().filter_map(&mut label).collect()
}

fn of_label(label: &Label, top: f64) -> Markup {
    let Some(row) = label.row else {
        let class = if label.accent { "inside on" } else { "inside" };
        return html! { text class=(class) x=(label.middle) y=(top + BOX * 0.7) { (label.text) } };
    };
    let base = top + BOX + ROW * row as f64;
    html! {
        @if row > 0 { line.grid x1=(label.of_box) x2=(label.of_box) y1=(top + BOX) y2=(base + 3.0) {} }
        text.inside x=(label.middle) y=(base + 12.0) { (label.text) }
    }
}

/// The axis of time, with about ten labels.
fn scale(end: f64, x: &impl Fn(f64) -> f64, height: f64) -> Markup {
    let rough = end / 10.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough);
    let step = step.unwrap_or(rough);
    let labels = (0..=10).map(|i| f64::from(i) * step).take_while(|us| *us <= end);
    html! {
        @for us in labels {
            line.grid x1=(x(us)) x2=(x(us)) y1="0" y2=(height - 24.0) {}
            text.inside x=(x(us)) y=(height - 6.0) { (tick(us)) " µs" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_beneath_narrow_boxes_stand_clear_of_each_other() {
        let span = |n: u32| {
            let from_us = f64::from(n) * 3.0;
            Span { from_us, to_us: from_us + 3.0, label: format!("cause {n}"), accent: false }
        };
        let mut spans: Vec<Span> = (0..4).map(span).collect();
        spans.push(Span { from_us: 12.0, to_us: 100.0, label: "long".to_owned(), accent: true });
        let labels = labels(&spans, &|us| 8.0 * us);
        let rows: Vec<Option<usize>> = labels.iter().map(|label| label.row).collect();
        assert_eq!(rows, [Some(0), Some(1), Some(2), Some(0), None]);
        for (n, a) in labels.iter().enumerate() {
            for b in labels[n + 1..].iter().filter(|b| b.row.is_some() && b.row == a.row) {
                assert!(b.middle - a.middle > LETTER * 7.0, "{} and {}", a.text, b.text);
            }
        }
    }
}
