//! What both pages are made of: the shell, warnings, numbers with an explanation, figures.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use metrics::Plot;

use crate::ReportError;
use crate::chart::{Chart, colour};

/// The whole page.
pub(crate) fn shell(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

/// What to know before trusting the numbers; nothing if there is nothing.
pub(crate) fn warnings(heading: &str, warnings: &[String]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            section.warnings role="alert" {
                h2 { (heading) }
                ul { @for warning in warnings { li { (warning) } } }
            }
        }
    }
}

/// A headline number.
pub(crate) struct Tile {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) unit: &'static str,
    /// What it is, in a few words.
    pub(crate) about: String,
}

/// Headline numbers, side by side.
pub(crate) fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        dl.tiles {
            @for tile in tiles {
                div {
                    dt { (tile.name) }
                    dd.value { (tile.value) @if !tile.unit.is_empty() { " " small { (tile.unit) } } }
                    dd.about { (tile.about) }
                }
            }
        }
    }
}

/// A piece of the i-th line of a chart, or one of its dots.
fn swatch(i: usize, drawn: Plot) -> Markup {
    html! {
        svg.swatch viewBox="0 0 70 16" aria-hidden="true" {
            @if drawn == Plot::Dots {
                circle cx="35" cy="8" r="6" fill=(colour(i)) {}
            } @else {
                polyline points="0,8 70,8" stroke=(colour(i)) stroke-width="4" {}
            }
        }
    }
}

/// A plot with its heading, its legend and a sentence on how to read it; without anything to
/// plot, the sentence `empty` instead.
pub(crate) fn figure(
    heading: &str,
    legend: &[String],
    chart: &Chart,
    about: &str,
    empty: &str,
) -> Result<Markup, ReportError> {
    let nothing = chart.lines.iter().all(Vec::is_empty);
    let svg = if nothing { String::new() } else { chart.svg()? };
    Ok(html! {
        figure {
            h3 { (heading) }
            @if nothing {
                p.empty { (empty) }
            } @else {
                @if !legend.is_empty() {
                    ul.legend {
                        @for (i, name) in legend.iter().enumerate() {
                            @if !name.is_empty() { li { (swatch(i, chart.drawn)) (name) } }
                        }
                    }
                }
                (PreEscaped(svg))
                figcaption { (about) }
            }
        }
    })
}

/// A table; the first column is text, the others are numbers.
pub(crate) fn table(head: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for cell in head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
