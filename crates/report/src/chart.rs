//! [`Chart`]: lines on two axes, as inline SVG by `plotters`.
//!
//! It is drawn at twice its size, since `plotters` places points on whole pixels, and in stand-in
//! colours that are then replaced by the page's CSS variables, so that it follows light and dark.

use std::collections::BTreeSet;

use metrics::Plot;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;

use crate::ReportError;
use crate::axis::Axis;
use crate::results::Curve;

/// Twice the size at which it is shown.
const SIZE: (u32, u32) = (1400, 680);
const FONT: (&str, i32) = ("inherit", 35);

const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(1, 1, 2);

/// How many colours `style.css` has for lines.
const COLOURS: usize = 8;

/// Lines on two axes.
pub(crate) struct Chart {
    /// What it shows, for errors.
    pub(crate) title: &'static str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// One curve each, in the order of [`colour`].
    pub(crate) lines: Vec<Vec<(f64, f64)>>,
    pub(crate) drawn: Plot,
    /// What else to draw.
    pub(crate) over: Overlay,
}

/// What some charts draw over their lines, each in the colour of the line of the same index.
#[derive(Default)]
pub(crate) struct Overlay {
    /// Open marks.
    pub(crate) open: Vec<Vec<(f64, f64)>>,
    /// Vertical bars: x, middle, half of the length.
    pub(crate) bars: Vec<Vec<(f64, f64, f64)>>,
}

/// The CSS colour of the i-th line.
pub(crate) fn colour(i: usize) -> String {
    format!("var(--line{})", i % COLOURS)
}

fn stand_in(i: usize) -> RGBColor {
    RGBColor(2, 2, (i % COLOURS) as u8)
}

/// What is drawn on.
type On<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

impl Chart {
    /// The distributions `runs`: `x` says of what, `share` of how many.
    pub(crate) fn distribution(title: &'static str, x: &str, share: &str, runs: &[Curve]) -> Self {
        Self {
            title,
            x: Axis::around(x, runs.iter().flatten().map(|(value, _)| *value), None),
            y: Axis::linear(share, 0.0, 1.0),
            lines: runs.to_vec(),
            drawn: Plot::Line,
            over: Overlay::default(),
        }
    }

    /// The chart as an `svg` element.
    pub(crate) fn svg(&self) -> Result<String, ReportError> {
        let mut svg = String::new();
        let clouds = self
            .draw(&mut svg)
            .map_err(|e| ReportError::Plot { plot: self.title.to_owned(), cause: e.to_string() })?;
        let end = svg.rfind("</svg>").unwrap_or(svg.len());
        svg.insert_str(end, &clouds);
        // Inline SVG needs no XML prolog and no name space; the page has no address in it.
        let start = svg.find("<svg").unwrap_or(0);
        let mut svg = svg[start..].replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
        svg = svg.replace(&hex(INK), "var(--ink)").replace(&hex(GRID), "var(--grid)");
        for i in 0..COLOURS {
            svg = svg.replace(&hex(stand_in(i)), &colour(i));
        }
        Ok(svg)
    }

    /// Draw all but clouds of dots, which come back.
    fn draw(&self, svg: &mut String) -> Result<String, Box<dyn std::error::Error + '_>> {
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
        let mut clouds = String::new();
        for (i, line) in self.lines.iter().enumerate() {
            if self.drawn == Plot::Dots {
                let pixels = line.iter().map(|at| chart.backend_coord(at)).collect();
                clouds.push_str(&cloud(&pixels, &colour(i)));
                continue;
            }
            let style = stand_in(i).stroke_width(4);
            chart
                .draw_series(LineSeries::new(line.iter().copied(), style))
                .map_err(|e| e.to_string())?;
            if self.drawn == Plot::Points {
                marks(&mut chart, i, line, 8, stand_in(i).filled())?;
            }
        }
        self.overlay(&mut chart)?;
        area.present().map_err(|e| e.to_string())?;
        Ok(clouds)
    }

    fn overlay<'a>(&self, chart: &mut On<'a>) -> Result<(), String> {
        for (i, open) in self.over.open.iter().enumerate() {
            marks(chart, i, open, 12, stand_in(i).stroke_width(3))?;
        }
        for (i, bars) in self.over.bars.iter().enumerate() {
            let style = stand_in(i).stroke_width(3);
            let bar = |&(x, y, half): &(f64, f64, f64)| {
                PathElement::new(vec![(x, y - half), (x, y + half)], style)
            };
            chart.draw_series(bars.iter().map(bar)).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

/// Mark points of the i-th line, in a shape of its own: those who see no colours tell lines apart,
/// too.
fn marks<'a>(
    chart: &mut On<'a>,
    i: usize,
    points: &[(f64, f64)],
    size: i32,
    style: ShapeStyle,
) -> Result<(), String> {
    let points = points.iter().copied();
    let corners = match i % 4 {
        0 => {
            let circles = points.map(|at| Circle::new(at, size, style));
            return chart.draw_series(circles).map(drop).map_err(|e| e.to_string());
        }
        1 => vec![(0, -size), (size, size), (-size, size)],
        2 => vec![(-size, -size), (size, -size), (size, size), (-size, size)],
        _ => vec![(0, -size - 2), (size + 2, 0), (0, size + 2), (-size - 2, 0)],
    };
    let drawn = if style.filled {
        let shape = || Polygon::new(corners.clone(), style);
        chart.draw_series(points.map(|at| EmptyElement::at(at) + shape())).map(drop)
    } else {
        let outline: Vec<_> = corners.iter().chain(&corners[..2]).copied().collect();
        let shape = || PathElement::new(outline.clone(), style);
        chart.draw_series(points.map(|at| EmptyElement::at(at) + shape())).map(drop)
    };
    drawn.map_err(|e| e.to_string())
}

/// A dot at each of the `pixels`. One path for all of them takes a tenth of the bytes that an
/// element each would, and there are thousands.
fn cloud(pixels: &BTreeSet<(i32, i32)>, colour: &str) -> String {
    let dots: String = pixels.iter().map(|(x, y)| format!("M{x} {y}h0")).collect();
    format!(
        "<path d=\"{dots}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"7\" \
         stroke-linecap=\"round\" stroke-opacity=\"0.6\"/>"
    )
}

/// As `plotters` writes it.
fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}
