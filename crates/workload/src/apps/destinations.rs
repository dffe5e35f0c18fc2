//! [`Destinations`]: to whom an application sends.

use std::sync::Arc;

use endpoint::{Draw, Purpose};
use units::HostId;

/// The hosts among which an application draws, uniformly and never itself.
#[derive(Clone, Debug)]
pub struct Destinations(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Hosts `0..n`.
    All(u32),
    /// These, sorted, each once.
    Among(Arc<[HostId]>),
}

impl Destinations {
    /// All `hosts` hosts of the fabric, except the sender.
    #[must_use]
    pub fn all(hosts: u32) -> Self {
        Self(Kind::All(hosts))
    }

    /// The hosts of `list`, except the sender. A list of one is a fixed destination. Clone the
    /// result for further hosts: the list is shared.
    #[must_use]
    pub fn among(mut list: Vec<HostId>) -> Self {
        list.sort_unstable();
        list.dedup();
        Self(Kind::Among(list.into()))
    }

    /// The `n`-th destination of `me` for `purpose`; `None` if there is nobody else.
    pub(crate) fn pick(&self, me: HostId, draw: Draw, purpose: Purpose, n: u64) -> Option<HostId> {
        let (hosts, mine) = match &self.0 {
            Kind::All(hosts) => (*hosts as usize, (me.0 < *hosts).then_some(me.index())),
            Kind::Among(list) => (list.len(), list.binary_search(&me).ok()),
        };
        let others = hosts - usize::from(mine.is_some());
        if others == 0 {
            return None;
        }
        let drawn = draw.below(purpose, n, others as u64) as usize;
        let index = drawn + usize::from(mine.is_some_and(|mine| drawn >= mine));
        match &self.0 {
            Kind::All(_) => Some(HostId(index as u32)),
            Kind::Among(list) => list.get(index).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_everybody_else_equally() {
        let draw = Draw::new(5, Purpose::new("test"), 0);
        let purpose = Purpose::new("dst");
        let list = [4, 2, 9, 2].map(HostId).to_vec();
        for (to, me, expected) in [
            (Destinations::all(4), 1, vec![0, 2, 3]),
            (Destinations::all(4), 7, vec![0, 1, 2, 3]),
            (Destinations::among(list.clone()), 4, vec![2, 9]),
            (Destinations::among(list), 3, vec![2, 4, 9]),
        ] {
            let mut counts = std::collections::BTreeMap::new();
            for n in 0..12_000 {
                let dst = to.pick(HostId(me), draw, purpose, n).expect("somebody");
                *counts.entry(dst.0).or_insert(0u32) += 1;
            }
            assert_eq!(counts.keys().copied().collect::<Vec<_>>(), expected);
            let share = 12_000 / expected.len() as u32;
            assert!(counts.values().all(|count| count.abs_diff(share) < 300), "{counts:?}");
        }
        assert_eq!(Destinations::all(1).pick(HostId(0), draw, purpose, 0), None);
        assert_eq!(Destinations::among(vec![]).pick(HostId(0), draw, purpose, 0), None);
    }
}
