//! [`Destinations`]: to whom an application sends.

use std::sync::Arc;

use endpoint::{Draw, Purpose};
use units::HostId;

const HOT: Purpose = Purpose::new("workload.hotspot");

/// The hosts among which an application draws, never itself: uniformly, unless some are hotspots.
#[derive(Clone, Debug)]
pub struct Destinations(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Hosts `0..n`.
    All(u32),
    /// These, sorted, each once.
    Among(Arc<[HostId]>),
    /// Some draw more than others.
    Hotspots(Arc<Hotspots>),
}

#[derive(Debug)]
struct Hotspots {
    hotspots: Destinations,
    /// The share of the messages that go to the hotspots.
    share: f64,
    others: Destinations,
}

impl Hotspots {
    /// As [`Destinations::pick`]. A sender that finds nobody but itself where the draw says sends to
    /// the rest.
    fn pick(&self, me: HostId, draw: Draw, purpose: Purpose, n: u64) -> Option<HostId> {
        let hot = draw.unit(HOT, n) < self.share;
        let (to, else_to) =
            if hot { (&self.hotspots, &self.others) } else { (&self.others, &self.hotspots) };
        to.pick(me, draw, purpose, n).or_else(|| else_to.pick(me, draw, purpose, n))
    }
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

    /// The share `share` of all messages to `hotspots`, the others to `others`; uniformly in each of
    /// the two lists, and nobody to itself.
    #[must_use]
    pub fn with_hotspots(hotspots: Vec<HostId>, share: f64, others: Vec<HostId>) -> Self {
        let (hotspots, others) = (Self::among(hotspots), Self::among(others));
        Self(Kind::Hotspots(Arc::new(Hotspots { hotspots, share, others })))
    }

    /// Groups of hosts, each ascending and with its share of the messages. Within a group all hosts but
    /// the sender are equally likely.
    #[must_use]
    pub fn groups(&self) -> Vec<(Vec<HostId>, f64)> {
        match &self.0 {
            Kind::All(hosts) => vec![((0..*hosts).map(HostId).collect(), 1.0)],
            Kind::Among(list) => vec![(list.to_vec(), 1.0)],
            Kind::Hotspots(both) => {
                let of = |part: &Self, share: f64| {
                    part.groups().into_iter().map(move |(hosts, all)| (hosts, all * share))
                };
                let (hot, others) = (of(&both.hotspots, both.share), 1.0 - both.share);
                hot.chain(of(&both.others, others)).collect()
            }
        }
    }

    /// A number that clones have in common, and that tells them from all others.
    #[must_use]
    pub fn identity(&self) -> usize {
        match &self.0 {
            // Lower than any address.
            Kind::All(hosts) => *hosts as usize,
            Kind::Among(list) => Arc::as_ptr(list).addr(),
            Kind::Hotspots(both) => Arc::as_ptr(both).addr(),
        }
    }

    /// The `n`-th destination of `me` for `purpose`; `None` if there is nobody else.
    pub(crate) fn pick(&self, me: HostId, draw: Draw, purpose: Purpose, n: u64) -> Option<HostId> {
        let (hosts, mine) = match &self.0 {
            Kind::All(hosts) => (*hosts as usize, (me.0 < *hosts).then_some(me.index())),
            Kind::Among(list) => (list.len(), list.binary_search(&me).ok()),
            Kind::Hotspots(both) => return both.pick(me, draw, purpose, n),
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
            Kind::Hotspots(_) => None,
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
    #[test]
    fn hotspots_draw_their_share() {
        let draw = Draw::new(5, Purpose::new("test"), 0);
        let purpose = Purpose::new("dst");
        let list = |hosts: &[u32]| hosts.iter().copied().map(HostId).collect::<Vec<_>>();
        let to = Destinations::with_hotspots(list(&[0, 1]), 0.6, list(&[2, 3, 4]));
        let counts = |to: &Destinations, me| {
            let mut counts = [0i32; 5];
            for n in 0..10_000 {
                counts[to.pick(HostId(me), draw, purpose, n).expect("somebody").index()] += 1;
            }
            counts
        };
        // A hotspot sends to the other one; sigma is at most 50.
        for (me, expected) in
            [(7, [3000, 3000, 1333, 1333, 1333]), (0, [0, 6000, 1333, 1333, 1333])]
        {
            let counts = counts(&to, me);
            assert!((0..5).all(|i| (counts[i] - expected[i]).abs() < 200), "{me}: {counts:?}");
        }
        let alone = Destinations::with_hotspots(list(&[0]), 0.6, list(&[1, 2]));
        assert_eq!(counts(&alone, 0)[0], 0, "the only hotspot does not send to itself");
        let groups = to.groups();
        assert_eq!(groups, [(list(&[0, 1]), 0.6), (list(&[2, 3, 4]), 0.4)]);
        assert_eq!(to.identity(), to.clone().identity());
        assert_ne!(to.identity(), alone.identity());
        let none = Destinations::with_hotspots(list(&[0]), 1.0, Vec::new());
        assert_eq!(none.pick(HostId(0), draw, purpose, 0), None);
    }
}
