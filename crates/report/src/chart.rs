//! [`Chart`]: curves on two axes, as inline SVG: axes by `plotters`, curves as one path each.
//!
//! It is drawn at twice its size, since `plotters` places points on whole pixels, and in stand-in
//! colours that are then replaced by the page's CSS variables, so that it follows light and dark.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use metrics::Plot;
use plotters::prelude::*;

use crate::ReportError;
use crate::axis::Axis;
use crate::palette::Style;
use crate::results::Curve;

/// Twice the size at which it is shown.
const SIZE: (u32, u32) = (1400, 680);
const FONT: (&str, i32) = ("inherit", 35);

const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(1, 1, 2);

/// Between marks of a curve that has more points than marks.
const MARK_EVERY: i32 = 240;

/// How many curves a plot shows at first: so many have colours, dashes and marks of their own.
pub(crate) const SHOWN: usize = crate::palette::COLOURS.len();

/// Curves on two axes.
pub(crate) struct Chart {
    /// What it shows, for errors.
    pub(crate) title: &'static str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// One each, drawn in the style of its place.
    pub(crate) lines: Vec<Curve>,
    pub(crate) drawn: Plot,
    /// What else to draw.
    pub(crate) over: Overlay,
    /// Whether the lines are shares of what is at most so large.
    pub(crate) distribution: bool,
    /// The same curves of a part of the messages each, called by what they are.
    pub(crate) parts: Vec<(String, Vec<Curve>)>,
}

/// What some charts draw over their lines, each in the style of the line of the same index.
#[derive(Default)]
pub(crate) struct Overlay {
    /// Open marks.
    pub(crate) open: Vec<Curve>,
    /// Vertical bars: x, middle, half of the length.
    pub(crate) bars: Vec<Vec<(f64, f64, f64)>>,
}

/// A place in the picture.
type Pixel = (i32, i32);

impl Chart {
    /// Curves and nothing else.
    pub(crate) fn new(title: &'static str, x: Axis, y: Axis, lines: Vec<Curve>, of: Plot) -> Self {
        let (over, parts) = (Overlay::default(), Vec::new());
        Self { title, x, y, lines, drawn: of, over, distribution: false, parts }
    }

    /// The distributions `runs`: `x` says of what, `share` of how many.
    pub(crate) fn distribution(title: &'static str, x: &str, share: &str, runs: &[Curve]) -> Self {
        let x = Axis::around(x, runs.iter().flatten().map(|(value, _)| *value), None);
        let y = Axis::linear(share, 0.0, 1.0);
        Self { distribution: true, ..Self::new(title, x, y, runs.to_vec(), Plot::Line) }
    }

    /// Whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(Vec::is_empty)
    }

    /// The curves as `svg` elements, [`SHOWN`] in each. `label` says what they show.
    pub(crate) fn pictures(&self, label: &str) -> Result<Vec<String>, ReportError> {
        let starts = (0..self.lines.len().max(1)).step_by(SHOWN);
        let ranges = starts.map(|from| from..(from + SHOWN).min(self.lines.len()));
        let any = |range: &Range<usize>| !self.lines[range.clone()].iter().all(Vec::is_empty);
        ranges.filter(any).map(|range| self.svg(range, label)).collect()
    }

    fn svg(&self, lines: Range<usize>, label: &str) -> Result<String, ReportError> {
        let mut svg = String::new();
        let curves = self
            .draw(lines, &mut svg)
            .map_err(|cause| ReportError::Plot { plot: self.title.to_owned(), cause })?;
        let end = svg.rfind("</svg>").unwrap_or(svg.len());
        svg.insert_str(end, &curves);
        // Inline SVG needs no XML prolog and no name space; the page has no address in it.
        let start = svg.find("<svg").unwrap_or(0);
        let label = maud::html! { (label) }.into_string();
        let svg = svg[start..].replace(
            " xmlns=\"http://www.w3.org/2000/svg\"",
            &format!(" role=\"img\" aria-label=\"{label}\""),
        );
        Ok(svg.replace(&hex(INK), "var(--ink)").replace(&hex(GRID), "var(--grid)"))
    }

    /// Draw the axes; the curves come back.
    fn draw(&self, lines: Range<usize>, svg: &mut String) -> Result<String, String> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(20)
            // Half of the longest label of the last tick.
            .margin_right(90)
            .x_label_area_size(104)
            .y_label_area_size(150)
            .build_cartesian_2d(self.x.clone(), self.y.clone())
            .map_err(|e| e.to_string())?;
        let text = TextStyle::from(FONT).color(&INK);
        chart
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(2))
            .axis_style(INK.stroke_width(2))
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .x_desc(self.x.label.as_str())
            .y_desc(self.y.label.as_str())
            .draw()
            .map_err(|e| e.to_string())?;
        let at = |point: &(f64, f64)| chart.backend_coord(point);
        let curves = lines.map(|i| self.curve(i, &at)).collect();
        area.present().map_err(|e| e.to_string())?;
        Ok(curves)
    }

    /// The i-th line with its marks and what is drawn over it; `at` says where.
    fn curve(&self, i: usize, at: &impl Fn(&(f64, f64)) -> Pixel) -> String {
        let (style, pixels) = (Style::of(i), self.lines[i].iter().map(at));
        let colour = style.colour();
        let mut out = match self.drawn {
            Plot::Dots => dots(&pixels.clone().collect(), &colour),
            Plot::Line | Plot::Points => line(pixels.clone(), style),
        };
        let solid: Vec<Pixel> = match self.drawn {
            Plot::Dots => Vec::new(),
            Plot::Points => pixels.collect(),
            Plot::Line => spread(pixels, i),
        };
        let open = self.over.open.get(i).into_iter().flatten().map(at);
        let bars = self.over.bars.get(i).into_iter().flatten();
        let bars: String = bars.map(|bar| bar_path(bar, at)).collect();
        for (path, fill, width) in [
            (marks(solid.into_iter(), style, 9.0), colour.as_str(), 0),
            (marks(open, style, 12.0), "none", 3),
            (bars, "none", 3),
        ] {
            if !path.is_empty() {
                let _ = write!(
                    out,
                    "<path d=\"{path}\" fill=\"{fill}\" stroke=\"{colour}\" \
                     stroke-width=\"{width}\"/>"
                );
            }
        }
        out
    }
}

/// The pixels at which a line of many points has its marks. Those of other lines are elsewhere.
fn spread(pixels: impl Iterator<Item = Pixel>, i: usize) -> Vec<Pixel> {
    let mut next = None;
    let mark = |at: &Pixel| {
        let from = *next.get_or_insert(at.0 + (i as i32 * 70) % MARK_EVERY);
        let here = at.0 >= from;
        if here {
            next = Some(at.0 + MARK_EVERY);
        }
        here
    };
    pixels.filter(mark).collect()
}

fn line(pixels: impl Iterator<Item = Pixel>, style: Style) -> String {
    let mut path = String::new();
    let mut last: Option<Pixel> = None;
    for at in pixels {
        match last {
            None => _ = write!(path, "M{} {}l", at.0, at.1),
            Some(before) if before == at => {}
            Some(before) => _ = write!(path, "{} {} ", at.0 - before.0, at.1 - before.1),
        }
        last = Some(at);
    }
    if path.is_empty() {
        return path;
    }
    format!(
        "<path class=\"line\" d=\"{}\" stroke=\"{}\" stroke-dasharray=\"{}\"/>",
        path.trim_end_matches([' ', 'l']),
        style.colour(),
        style.dashes(2)
    )
}

fn marks(pixels: impl Iterator<Item = Pixel>, style: Style, size: f64) -> String {
    pixels.map(|(x, y)| style.mark_at(f64::from(x), f64::from(y), size)).collect()
}

fn bar_path(&(x, y, half): &(f64, f64, f64), at: &impl Fn(&(f64, f64)) -> Pixel) -> String {
    let (low, high) = (at(&(x, y - half)), at(&(x, y + half)));
    format!("M{} {}V{}", low.0, low.1, high.1)
}

/// A dot at each of the `pixels`. One path for all of them takes a tenth of the bytes that an
/// element each would, and there are thousands.
fn dots(pixels: &BTreeSet<Pixel>, colour: &str) -> String {
    let dots: String = pixels.iter().map(|(x, y)| format!("M{x} {y}h0")).collect();
    format!("<path class=\"dots\" d=\"{dots}\" stroke=\"{colour}\"/>")
}

/// As `plotters` writes it.
fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_curves_are_three_pictures() {
        let lines = vec![vec![(0.0, 0.0), (1.0, 1.0)]; 20];
        let axis = || Axis::linear("", 0.0, 1.0);
        let chart = Chart::new("test", axis(), axis(), lines, Plot::Line);
        let pictures = chart.pictures("A & B").unwrap();
        let lines: Vec<usize> =
            pictures.iter().map(|p| p.matches("class=\"line\"").count()).collect();
        assert_eq!(lines, [8, 8, 4]);
        assert!(pictures[0].contains("aria-label=\"A &amp; B\""));
    }

    #[test]
    fn a_line_has_few_marks() {
        let marks = spread((0..1000).map(|x| (x, 0)), 1);
        assert_eq!(marks, [70, 310, 550, 790].map(|x| (x, 0)));
    }
}
