//! Numbers for people.

/// Separates thousands: a narrow space that does not break.
const THOUSANDS: char = '\u{202f}';

/// Three significant digits or all of the integer part, thousands separated; a dash for nothing.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return "–".to_owned() };
    let decimals = match value.abs() {
        0.0 => 0,
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    };
    separate(&format!("{value:.decimals$}"))
}

/// A mean with half of its interval.
pub(crate) fn estimate(mean: Option<f64>, half: Option<f64>) -> String {
    let half = half.map(|half| format!(" ± {}", number(Some(half))));
    number(mean) + &half.unwrap_or_default()
}

/// A count, thousands separated.
pub(crate) fn count(value: u64) -> String {
    separate(&value.to_string())
}

/// A share of one as a percentage.
pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{:.1} %", v * 100.0))
}

/// A size in bytes, with a decimal prefix.
pub(crate) fn bytes(value: u64) -> String {
    let (unit, size) = match value {
        0..1_000 => return format!("{value} B"),
        1_000..1_000_000 => ("KB", 1e3),
        1_000_000..1_000_000_000 => ("MB", 1e6),
        _ => ("GB", 1e9),
    };
    format!("{} {unit}", number(Some(value as f64 / size)))
}

/// A label of an axis: no more digits than it takes.
pub(crate) fn tick(value: f64) -> String {
    // Beyond nine decimals is the rounding of the tick's own computation.
    let text = format!("{value:.9}");
    separate(text.trim_end_matches('0').trim_end_matches('.'))
}

fn separate(text: &str) -> String {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.trim_start_matches('-');
    let mut out = whole[..whole.len() - digits.len()].to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(THOUSANDS);
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let cases = [(0.0, "0"), (0.9254, "0.925"), (0.01234, "0.0123"), (1.0, "1.00")];
        for (value, text) in cases {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!(number(Some(99.96)), "100");
        assert_eq!(number(Some(11_055.3)), "11\u{202f}055");
        assert_eq!(number(None), "–");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!((bytes(999), bytes(72_000)), ("999 B".to_owned(), "72.0 KB".to_owned()));
        assert_eq!(percent(Some(0.9251)), "92.5 %");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(
            (tick(0.1 + 0.2), tick(1e4), tick(-2.5)),
            ("0.3".to_owned(), "10\u{202f}000".to_owned(), "-2.5".to_owned())
        );
    }
}
