//! A scale of colours for how much there is of something.
//!
//! The colours are cividis: Nuñez, Anderton, Renslow, "Optimizing colormaps with consideration for
//! color vision deficiency", PLoS ONE 13(7), 2018. The most is what differs most from the paper.

use maud::{Markup, html};

/// From nothing, 0, to the most.
pub(crate) const LEVELS: usize = COLOURS.len() - 1;

/// On light paper, the most last; on dark paper the other way round.
const COLOURS: [&str; 6] = ["#ffea46", "#cab969", "#958f78", "#666970", "#31446b", "#00204d"];

/// Which level `value` of at most `most` is.
pub(crate) fn level(value: f64, most: f64) -> usize {
    if value <= 0.0 || most <= 0.0 {
        return 0;
    }
    (libm::ceil(value / most * LEVELS as f64) as usize).clamp(1, LEVELS)
}

/// The variables of the colours in CSS.
pub(crate) fn css() -> String {
    let line = |(i, colour): (usize, &&str)| format!("--heat{i}: {colour};");
    let light: String = COLOURS.iter().enumerate().map(line).collect();
    let dark: String = COLOURS.iter().rev().enumerate().map(line).collect();
    let class = |i: usize| format!(".heat{i} {{ stroke: var(--heat{i}); fill: none; }}");
    let classes: String = (0..=LEVELS).map(class).collect();
    format!(
        ":root {{ {light} }} @media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }} \
         {classes}"
    )
}

/// What the colours mean, from the level `first` on.
pub(crate) fn key(first: usize, least: &str, most: &str) -> Markup {
    html! {
        p.note {
            (least) " "
            @for i in first..=LEVELS { span.step style={ "background: var(--heat" (i) ")" } {} }
            " " (most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_level_of_its_own() {
        assert_eq!([0.0, 1e-9, 0.2, 0.21, 1.0, 2.0].map(|v| level(v, 1.0)), [0, 1, 1, 2, 5, 5]);
        assert_eq!(level(0.0, 0.0), 0);
    }
}
