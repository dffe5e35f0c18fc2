//! Reading quantities as people write them: "9000B", "100Gbps", "1us". The unit is mandatory.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Dur, Rate, Time};

/// Largest unit first.
pub(crate) const TIME: &[(&str, u64)] =
    &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
pub(crate) const RATE: &[(&str, u64)] = &[
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
];
/// Decimal prefixes are powers of ten, the `i` ones powers of two.
const SIZE: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Why a quantity could not be read. `Display` is a sentence for the user, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// A bare number.
    MissingUnit {
        /// What was written.
        text: String,
        /// A quantity of the right kind.
        example: &'static str,
    },
    /// A number with a unit that does not exist, or of another kind.
    UnknownUnit {
        /// What was written after the number.
        unit: String,
        /// The units that exist, largest first.
        known: Vec<&'static str>,
    },
    /// No number at the front.
    NotANumber {
        /// What was written.
        text: String,
        /// A quantity of the right kind.
        example: &'static str,
    },
    /// Below zero.
    Negative(String),
    /// Larger than fits (213 days, 18 EB, 18 Eb/s).
    TooLarge(String),
    /// A fraction that is not a whole number of the smallest unit.
    NotWhole {
        /// What was written.
        text: String,
        /// The smallest unit.
        smallest: &'static str,
    },
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingUnit { text, example } => {
                write!(f, "{text:?} has no unit: write it like {example:?}")
            }
            Self::UnknownUnit { unit, known } => {
                write!(f, "unknown unit {unit:?}: use one of {}", known.join(", "))
            }
            Self::NotANumber { text, example } => {
                write!(f, "{text:?} does not start with a number: write it like {example:?}")
            }
            Self::Negative(text) => write!(f, "{text:?} is negative"),
            Self::TooLarge(text) => write!(f, "{text:?} is too large"),
            Self::NotWhole { text, smallest } => {
                write!(f, "{text:?} is not a whole number of {smallest}")
            }
        }
    }
}

impl std::error::Error for UnitError {}

/// `unit` as it is listed: results are printed in Gb/s and µs, with either of the two characters.
fn spelling(unit: &str) -> String {
    unit.replace(['\u{b5}', '\u{3bc}'], "u").replace("bit/s", "bps").replace("b/s", "bps")
}

/// `text` as a whole number of the smallest unit of `scale`, exactly: decimal arithmetic, no
/// floats.
fn parse(
    text: &str,
    scale: &[(&'static str, u64)],
    example: &'static str,
) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let owned = || trimmed.to_owned();
    if trimmed.starts_with('-') {
        return Err(UnitError::Negative(owned()));
    }
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
    let (number, unit) = trimmed.split_at(split.unwrap_or(trimmed.len()));
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(UnitError::NotANumber { text: owned(), example });
    }
    let unit = spelling(unit.trim());
    if unit.is_empty() && number != "0" {
        return Err(UnitError::MissingUnit { text: owned(), example });
    }
    let size = match scale.iter().find(|(name, _)| *name == unit) {
        Some((_, size)) => *size,
        None if unit.is_empty() => 1,
        None => {
            let known = scale.iter().map(|(name, _)| *name).collect();
            return Err(UnitError::UnknownUnit { unit, known });
        }
    };
    let too_large = || UnitError::TooLarge(owned());
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let part = fraction_of(fraction, size)
        .ok_or_else(|| UnitError::NotWhole { text: owned(), smallest: scale[scale.len() - 1].0 })?;
    whole.checked_mul(size).and_then(|n| n.checked_add(part)).ok_or_else(too_large)
}

/// `0.digits` of `size`, if that is a whole number.
fn fraction_of(digits: &str, size: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let denominator = 10u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    let numerator = digits.parse::<u128>().ok()?.checked_mul(u128::from(size))?;
    (numerator % denominator == 0).then(|| (numerator / denominator) as u64)
}

impl FromStr for Dur {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, TIME, "20us").map(Self)
    }
}

impl FromStr for Time {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, TIME, "20us").map(Self)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, SIZE, "9000B").map(Self)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, RATE, "10Gbps").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("9000B".parse(), Ok(Bytes(9000)));
        assert_eq!("135 KB".parse(), Ok(Bytes(135_000)));
        assert_eq!("1.5MiB".parse(), Ok(Bytes(1_572_864)));
        assert_eq!("2.5Gbps".parse(), Ok(Rate(2_500_000_000)));
        assert_eq!("7.251us".parse(), Ok(Dur(7_251_000)));
        assert_eq!("0".parse(), Ok(Dur(0)), "zero needs no unit");
    }

    /// Defects, row 22: what the program prints.
    #[test]
    fn reads_what_it_prints() {
        for text in ["2.5 Gb/s", "2.5Gb/s", "2.5Gbit/s", "2500 Mb/s", "2500000 kb/s"] {
            assert_eq!(text.parse(), Ok(Rate(2_500_000_000)), "{text}");
        }
        for text in ["7.25 µs", "7.25μs", "7250 ns"] {
            assert_eq!(text.parse(), Ok(Dur(7_250_000)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        let error = |s: &str| s.parse::<Dur>().unwrap_err().to_string();
        assert_eq!(error("20"), "\"20\" has no unit: write it like \"20us\"");
        assert_eq!(error("20Gbps"), "unknown unit \"Gbps\": use one of s, ms, us, ns, ps");
        assert_eq!(error("-1us"), "\"-1us\" is negative");
        assert_eq!(error("fast"), "\"fast\" does not start with a number: write it like \"20us\"");
        assert_eq!(error("0.1ps"), "\"0.1ps\" is not a whole number of ps");
        assert_eq!(error("99999999999s"), "\"99999999999s\" is too large");
    }
}
