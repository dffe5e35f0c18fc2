//! [`HostSet`]: the hosts that take part, as one writes them: `"all"`, `"0-15, 20"`,
//! `"all but 0, 1"`.

use std::fmt;
use std::str::FromStr;

use units::HostId;

/// Some of the hosts of a fabric whose size is not yet known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSet {
    /// Whether `ranges` are the hosts that do not take part.
    but: bool,
    /// First and last host of each range, as written.
    ranges: Vec<(u32, u32)>,
}

/// Why a text is no set of hosts, or a fabric has no such hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostSetError {
    /// It cannot be read.
    #[error("\"{0}\" names no hosts")]
    Malformed(String),
    /// A range that ends before it begins.
    #[error("the range {0}-{1} ends before it begins")]
    Backwards(u32, u32),
    /// A host that the fabric does not have.
    #[error("host {host} does not exist: the fabric has {hosts} hosts, numbered from 0")]
    NoSuchHost {
        /// The host.
        host: u32,
        /// How many there are.
        hosts: u32,
    },
    /// Nobody is left.
    #[error("no host is left")]
    Empty,
}

impl HostSet {
    /// Every host.
    #[must_use]
    pub const fn all() -> Self {
        Self { but: true, ranges: Vec::new() }
    }

    /// The members in a fabric of `hosts` hosts: ascending, each once, at least one.
    ///
    /// # Errors
    /// A host that does not exist, or nobody left.
    pub fn members(&self, hosts: u32) -> Result<Vec<HostId>, HostSetError> {
        let mut named = vec![false; hosts as usize];
        for &(first, last) in &self.ranges {
            let Some(range) = named.get_mut(first as usize..=last as usize) else {
                return Err(HostSetError::NoSuchHost { host: last, hosts });
            };
            range.fill(true);
        }
        let wanted = !self.but;
        let members = (0..hosts).zip(named).filter(|&(_, named)| named == wanted);
        let members: Vec<HostId> = members.map(|(host, _)| HostId(host)).collect();
        if members.is_empty() { Err(HostSetError::Empty) } else { Ok(members) }
    }
}

impl Default for HostSet {
    fn default() -> Self {
        Self::all()
    }
}

impl FromStr for HostSet {
    type Err = HostSetError;

    fn from_str(text: &str) -> Result<Self, HostSetError> {
        let text = text.trim();
        if text == "all" {
            return Ok(Self::all());
        }
        let (but, list) = match text.strip_prefix("all but ") {
            Some(list) => (true, list),
            None => (false, text),
        };
        let ranges = list.split(',').map(range).collect::<Result<_, _>>()?;
        Ok(Self { but, ranges })
    }
}

/// `3` or `3-7`.
fn range(text: &str) -> Result<(u32, u32), HostSetError> {
    let number = |digits: &str| {
        let malformed = || HostSetError::Malformed(text.trim().to_owned());
        digits.trim().parse().map_err(|_| malformed())
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    if last < first { Err(HostSetError::Backwards(first, last)) } else { Ok((first, last)) }
}

impl fmt::Display for HostSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.but, self.ranges.is_empty()) {
            (true, true) => return f.write_str("all"),
            (true, false) => f.write_str("all but ")?,
            (false, _) => {}
        }
        for (i, &(first, last)) in self.ranges.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<Vec<u32>, HostSetError> {
        let set: HostSet = text.parse()?;
        assert_eq!(set.to_string().parse(), Ok(set.clone()), "{text} survives being written");
        Ok(set.members(8)?.into_iter().map(|host| host.0).collect())
    }

    #[test]
    fn sets_are_sorted_and_have_no_repeats() {
        assert_eq!(members("all"), Ok((0..8).collect()));
        assert_eq!(members("5"), Ok(vec![5]));
        assert_eq!(members(" 6-7, 0 - 2,1"), Ok(vec![0, 1, 2, 6, 7]));
        assert_eq!(members("all but 0, 2-6"), Ok(vec![1, 7]));
    }

    #[test]
    fn what_names_no_hosts_is_an_error() {
        for text in ["", "all but", "everybody", "1,,2", "-3", "1-2-3", "4294967296"] {
            assert!(matches!(members(text), Err(HostSetError::Malformed(_))), "{text}");
        }
        assert_eq!(members("3-2"), Err(HostSetError::Backwards(3, 2)));
        assert_eq!(members("2-8"), Err(HostSetError::NoSuchHost { host: 8, hosts: 8 }));
        assert_eq!(members("9"), Err(HostSetError::NoSuchHost { host: 9, hosts: 8 }));
        assert_eq!(members("all but 0-7"), Err(HostSetError::Empty));
        assert_eq!("0-4294967295".parse::<HostSet>().unwrap().members(2).ok(), None);
    }
}
