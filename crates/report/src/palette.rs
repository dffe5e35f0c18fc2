//! How curves of one plot are told apart: by a colour, a dash and a mark each.
//!
//! Colours: Matthew A. Petroff, "Accessible Color Sequences for Data Visualization", 2021
//! (arXiv:2107.02270), the sequence of eight, in its order.

/// Colours of curves, on light and on dark paper.
pub(crate) const COLOURS: [&str; 8] =
    ["#1845fb", "#ff5e02", "#c91f16", "#c849a9", "#adad7d", "#86c8dd", "#578dff", "#656364"];

/// Lengths of dashes and gaps, in pixels of a screen.
const DASHES: [&[u32]; 8] =
    [&[], &[9, 3], &[4, 3], &[2, 2], &[9, 3, 2, 3], &[5, 3, 2, 3, 2, 3], &[14, 3], &[3, 6]];

/// Corners of marks, from -1 to 1 on both axes, down the screen.
const MARKS: [&[(f64, f64)]; 8] = [
    &[
        (1.0, 0.0),
        (0.71, 0.71),
        (0.0, 1.0),
        (-0.71, 0.71),
        (-1.0, 0.0),
        (-0.71, -0.71),
        (0.0, -1.0),
        (0.71, -0.71),
    ],
    &[(0.0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.1), (1.1, -0.9), (-1.1, -0.9)],
    &[(-1.1, -1.1), (1.1, -1.1), (-1.1, 1.1), (1.1, 1.1)],
    &[(-1.1, 0.0), (0.9, -1.1), (0.9, 1.1)],
    &[(1.1, 0.0), (-0.9, -1.1), (-0.9, 1.1)],
];

/// How the curve of one index is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Style {
    /// Of [`COLOURS`].
    pub(crate) colour: usize,
    pub(crate) dash: &'static [u32],
    pub(crate) mark: &'static [(f64, f64)],
}

impl Style {
    /// Curves of the same colour have another dash and another mark: the first 64 all differ.
    pub(crate) const fn of(i: usize) -> Self {
        let (colour, round) = (i % COLOURS.len(), i / COLOURS.len());
        let other = (colour + round) % COLOURS.len();
        Self { colour, dash: DASHES[other], mark: MARKS[other] }
    }

    /// As CSS knows it.
    pub(crate) fn colour(self) -> String {
        format!("var(--line{})", self.colour)
    }

    /// The attribute of an SVG whose units are `scale` to a pixel.
    pub(crate) fn dashes(self, scale: u32) -> String {
        let lengths: Vec<String> = self.dash.iter().map(|l| (l * scale).to_string()).collect();
        lengths.join(" ")
    }

    /// The outline of the mark around a point, as an SVG path.
    pub(crate) fn mark_at(self, x: f64, y: f64, size: f64) -> String {
        let round = |v: f64| libm::round(v * 10.0) / 10.0;
        let corner = |(dx, dy): &(f64, f64)| format!("{} {}", round(dx * size), round(dy * size));
        let mut path = String::new();
        let mut from = (0.0, 0.0);
        for to in self.mark {
            let step = (to.0 - from.0, to.1 - from.1);
            path += if path.is_empty() { "m" } else { "l" };
            path += &corner(&step);
            from = *to;
        }
        format!("M{} {}{path}z", round(x), round(y))
    }
}

/// The variables of [`COLOURS`] in CSS.
pub(crate) fn css() -> String {
    let line = |(i, colour): (usize, &&str)| format!("--line{i}: {colour};");
    let lines: String = COLOURS.iter().enumerate().map(line).collect();
    format!(":root {{ {lines} }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Matrix = [[f64; 3]; 3];

    /// What is seen of linear RGB: Machado, Oliveira, Fernandes, "A Physiologically-based Model for
    /// Simulation of Color Vision Deficiency", 2009, table 1, severity 1.0.
    const SEEN: [(&str, Matrix); 4] = [
        ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protan",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deutan",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritan",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    /// From sRGB to XYZ (IEC 61966-2-1), each row over the white of D65.
    const XYZ: (Matrix, [f64; 3]) = (
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ],
        [0.95047, 1.0, 1.08883],
    );

    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let v = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { libm::pow((v + 0.055) / 1.055, 2.4) }
        })
    }

    fn apply(matrix: &Matrix, v: [f64; 3]) -> [f64; 3] {
        (*matrix).map(|row| row.iter().zip(v).map(|(m, v)| m * v).sum::<f64>())
    }

    /// CIE L*a*b* of linear RGB.
    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let xyz = apply(&XYZ.0, rgb);
        let f = |t: f64| {
            let linear = (24389.0 / 27.0 * t + 16.0) / 116.0;
            if t > 216.0 / 24389.0 { libm::cbrt(t) } else { linear }
        };
        let [x, y, z] = [0, 1, 2].map(|i| f(xyz[i] / XYZ.1[i]));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// CIE 1976 colour difference of what is seen.
    fn distance(matrix: &Matrix, a: &str, b: &str) -> f64 {
        let seen = |hex| lab(apply(matrix, linear(hex)).map(|v| v.clamp(0.0, 1.0)));
        let squares = seen(a).into_iter().zip(seen(b)).map(|(a, b)| (a - b) * (a - b));
        libm::sqrt(squares.sum())
    }

    /// About 2.3 is just noticeable side by side; ours are far apart on a plot.
    #[test]
    fn colours_differ_for_all_eyes() {
        for (eyes, matrix) in &SEEN {
            for (i, a) in COLOURS.iter().enumerate() {
                for b in &COLOURS[..i] {
                    let distance = distance(matrix, a, b);
                    assert!(distance > 17.0, "{eyes}: {a} {b}: {distance}");
                }
            }
        }
        let known = distance(&SEEN[0].1, "#ffffff", "#000000");
        assert!((known - 100.0).abs() < 0.1, "white and black are 100 apart: {known}");
        let old = distance(&SEEN[1].1, "#0b62c4", "#8a4fc7");
        assert!((old - 2.9).abs() < 0.1, "a pair that does not do: {old}");
    }

    #[test]
    fn no_two_of_64_are_drawn_alike() {
        let styles: Vec<Style> = (0..64).map(Style::of).collect();
        for (i, a) in styles.iter().enumerate() {
            for (j, b) in styles[..i].iter().enumerate() {
                assert_ne!(a, b, "{j} and {i}");
                let one_plot = i < COLOURS.len();
                let alike = a.colour == b.colour || a.dash == b.dash || a.mark == b.mark;
                assert!(!one_plot || !alike, "{j} and {i} share something");
            }
        }
    }
}
