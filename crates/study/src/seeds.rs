//! [`Seeds`]: seeds as a text of ranges, `1-10` or `1-5, 8`.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use crate::run::RUNS_MAX;

/// Seeds in the order in which they are run, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// One after the other.
    #[must_use]
    pub fn list(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut seeds = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (from, to) = range(part)?;
            let count = (to - from).saturating_add(1).saturating_add(seeds.len() as u64);
            if count > RUNS_MAX {
                return Err(format!("`{part}` makes more than {RUNS_MAX} of them"));
            }
            seeds.extend(from..=to);
        }
        let mut ascending = seeds.clone();
        ascending.sort_unstable();
        match ascending.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("{} is there twice: it would count twice", pair[0])),
            None => Ok(Self(seeds)),
        }
    }
}

/// As it is read.
impl Display for Seeds {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let follows = |a: &u64, b: &u64| a + 1 == *b;
        for (i, range) in self.0.chunk_by(follows).enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match range {
                [from, .., to] => write!(f, "{comma}{from}-{to}")?,
                [only] => write!(f, "{comma}{only}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

/// First and last of `3`, or of `1-10`.
fn range(part: &str) -> Result<(u64, u64), String> {
    // The largest that a scenario takes.
    const LARGEST: u64 = i64::MAX as u64;
    let number = |text: &str| {
        let number = text.trim().parse::<u64>().ok().filter(|n| *n <= LARGEST);
        number.ok_or_else(|| format!("`{part}` is neither a seed nor a range such as 1-10"))
    };
    let (from, to) = part.split_once('-').unwrap_or((part, part));
    let (from, to) = (number(from)?, number(to)?);
    if from > to { Err(format!("`{part}` ends before it begins")) } else { Ok((from, to)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_what_is_none() {
        let of = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(of("1-3, 9,5 - 6"), Ok(vec![1, 2, 3, 9, 5, 6]));
        assert_eq!(of("0"), Ok(vec![0]));
        let shown = "1-3, 9,5 - 6,7".parse::<Seeds>().map(|seeds| seeds.to_string());
        assert_eq!(shown, Ok("1-3,9,5-7".to_owned()));
        for text in ["", "a", "1-", "-3", "1,,2", "3-1", "1-3,2", "9223372036854775808", "1.5"] {
            assert!(of(text).is_err(), "{text}");
        }
        let many = of("0-9223372036854775807").unwrap_err();
        assert!(many.contains("more than 100000"), "{many}");
    }
}
