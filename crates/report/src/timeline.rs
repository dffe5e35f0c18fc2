//! A [`Timeline`] as inline SVG: one lane per place, a box per stretch.

use maud::{Markup, html};
use metrics::{Span, Timeline};

use crate::number::tick;

/// Sizes in the picture's own units; it is scaled to the page.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 130.0;
const LANE: f64 = 44.0;
const BOX: f64 = 28.0;
/// A box is at least so wide, to be seen.
const NARROW: f64 = 4.0;
/// The label of a narrower box stands beneath it.
const ROOM_FOR_LABEL: f64 = 16.0;

/// The picture and how to read it.
pub(crate) fn picture(timeline: &Timeline) -> Markup {
    let ends = timeline.lanes.iter().flat_map(|(_, spans)| spans).map(|span| span.to_us);
    let end = ends.fold(0.0, f64::max).max(1e-3);
    let x = |us: f64| LEFT + us / end * (WIDTH - LEFT - 20.0);
    let height = LANE * timeline.lanes.len() as f64 + 40.0;
    html! {
        figure {
            h3 { (timeline.title) }
            div.scroll tabindex="0" role="group" aria-label=(timeline.title) { svg.timeline viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(timeline.about) {
                (scale(end, &x, height))
                @for (i, (name, spans)) in timeline.lanes.iter().enumerate() {
                    @let top = LANE * i as f64 + 8.0;
                    text x="0" y=(top + BOX * 0.7) { (name) }
                    // Narrow ones over their neighbours.
                    @for span in wide_first(spans) { (of_span(span, &x, top)) }
                }
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
    let label = if to - from < ROOM_FOR_LABEL { top + BOX + 12.0 } else { top + BOX * 0.7 };
    html! {
        rect.(class) x=(from) y=(top) width=((to - from).max(NARROW)) height=(BOX) {
            title { @if !span.label.is_empty() { (span.label) ": " } (tick(span.from_us)) " to " (tick(span.to_us)) " µs" }
        }
        text.inside x=((from + to) / 2.0) y=(label) { (span.label) }
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
