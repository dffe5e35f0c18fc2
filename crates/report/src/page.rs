//! What both pages are made of: the shell, warnings, numbers with an explanation, figures.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use metrics::Plot;

use crate::ReportError;
use crate::chart::Chart;
use crate::heat;
use crate::palette::{self, Style};
use crate::plot_data;
use crate::values::values;

/// uPlot 1.6.32 with its licence, which has to go with it.
const UPLOT: [&str; 3] = [
    include_str!("../vendor/uplot/LICENSE"),
    include_str!("../vendor/uplot/uPlot.iife.min.js"),
    include_str!("../vendor/uplot/uPlot.min.css"),
];

/// What the page may load: nothing.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The whole page.
pub(crate) fn shell(title: &str, body: &Markup) -> String {
    let [licence, uplot, uplot_css] = UPLOT;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style {
                    (PreEscaped(uplot_css)) (PreEscaped(palette::css())) (PreEscaped(heat::css()))
                    (PreEscaped(include_str!("style.css")))
                }
                script { "document.documentElement.classList.add('js')" }
            }
            body {
                main { (body) }
                script { (PreEscaped(format!("/*\n{licence}\n*/\n{uplot}"))) }
                script { (PreEscaped(include_str!("plots.js"))) }
            }
        }
    };
    page.into_string()
}

/// How many warnings are not folded.
const WARNINGS: usize = 8;

/// What to know before trusting the numbers; nothing if there is nothing.
pub(crate) fn warnings(heading: &str, warnings: &[String]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            section.warnings role="alert" {
                h2 { (heading) }
                @let (first, others) = warnings.split_at(warnings.len().min(WARNINGS));
                ul { @for warning in first { li { (warning) } } }
                @if !others.is_empty() {
                    details {
                        summary { (others.len()) " more" }
                        ul { @for warning in others { li { (warning) } } }
                    }
                }
            }
        }
    }
}

/// Commands, or other text as it is written.
pub(crate) fn code(text: &str) -> Markup {
    html! { pre tabindex="0" { (text) } }
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

/// How the i-th curve of a chart is drawn.
fn swatch(i: usize, drawn: Plot) -> Markup {
    let style = Style::of(i);
    let colour = style.colour();
    html! {
        svg.swatch viewBox="0 0 36 12" aria-hidden="true" {
            @if drawn == Plot::Dots {
                circle cx="18" cy="6" r="3" fill=(colour) {}
            } @else {
                path d="M0 6h36" stroke=(colour) stroke-width="2" stroke-dasharray=(style.dashes(1)) {}
                path d=(style.mark_at(18.0, 6.0, 4.5)) fill=(colour) {}
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
    if chart.is_empty() {
        return Ok(html! { figure { h3 { (heading) } p.empty { (empty) } } });
    }
    let pictures = chart.pictures(heading)?;
    let mut names = legend.to_vec();
    names.resize(chart.lines.len(), String::new());
    let called = names.iter().map(|name| if name.is_empty() { heading } else { name });
    let called: Vec<String> = called.map(str::to_owned).collect();
    Ok(html! {
        figure.plot {
            h3 { (heading) }
            @if !legend.is_empty() {
                ul.legend {
                    @for (i, name) in legend.iter().enumerate() {
                        @if !name.is_empty() { li data-curve=(i) { (swatch(i, chart.drawn)) (name) } }
                    }
                }
            }
            div.static { @for picture in &pictures { (PreEscaped(picture)) } }
            figcaption { (about) }
            details.values { summary { "The plot in numbers" } (values(chart, &called)) }
            (plot_data::element(chart, &names))
        }
    })
}

/// A longer cell is words, not a number.
const SENTENCE: usize = 40;

/// A table of more rows than this is folded.
const FOLDED: usize = 24;

/// A table; the first column is text, the others are numbers.
pub(crate) fn table(head: &[String], rows: &[Vec<String>]) -> Markup {
    let about = head.first().map_or("", String::as_str);
    let table = scroll(
        about,
        &html! {
            table {
                thead { tr { @for cell in head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } }
                                @else if cell.chars().count() > SENTENCE { td.text.wide { (cell) } }
                                @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        },
    );
    folded(rows.len(), table)
}

/// `table` of so many rows, folded if they are many.
pub(crate) fn folded(rows: usize, table: Markup) -> Markup {
    if rows <= FOLDED {
        return table;
    }
    html! { details { summary { "Table of " (rows) " rows" } (table) } }
}

/// What may be wider than the page, in a box that scrolls, by keys, too.
pub(crate) fn scroll(about: &str, inside: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label={ "Table: " (about) } { (inside) }
    }
}
