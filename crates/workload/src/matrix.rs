//! Traffic matrices: who sends to whom, as plain lists of (source, destination).

use endpoint::{Draw, Purpose};
use units::HostId;

use crate::Destinations;

/// A source and its destination.
pub type Pair = (HostId, HostId);

const PERMUTATION: Purpose = Purpose::new("workload.permutation");
const RANDOM: Purpose = Purpose::new("workload.random-pairs");
const SOURCES: Purpose = Purpose::new("workload.random-sources");
const INCAST: Purpose = Purpose::new("workload.incast");

/// Why a matrix cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// Nobody to send to.
    #[error("{0} hosts are too few: a host needs another one to send to")]
    TooFewHosts(u32),
    /// A source without a destination.
    #[error("{0} has no destination but itself")]
    NobodyElse(HostId),
    /// More senders than other hosts.
    #[error("{wanted} senders are too many: beside the receiver there are {others} hosts")]
    TooManySenders {
        /// The senders asked for.
        wanted: u32,
        /// The hosts beside the receiver.
        others: u32,
    },
    /// All-to-all on so many hosts does not fit into memory as a list.
    #[error("all-to-all among {0} hosts is too large: use at most {ALL_TO_ALL_MAX}")]
    AllToAllTooLarge(usize),
}

/// The most hosts of an all-to-all: 16.8 million pairs.
pub const ALL_TO_ALL_MAX: usize = 4096;

fn enough(hosts: &[HostId]) -> Result<(), MatrixError> {
    if hosts.len() < 2 { Err(MatrixError::TooFewHosts(hosts.len() as u32)) } else { Ok(()) }
}

/// Each of `hosts` (each once) sends to one other and receives from one other: a uniformly random
/// derangement, drawn by shuffling until no host is its own destination (2.7 shuffles on average).
/// Sorted as `hosts`.
pub fn permutation(hosts: &[HostId], draw: Draw) -> Result<Vec<Pair>, MatrixError> {
    enough(hosts)?;
    let mut to = hosts.to_vec();
    let mut round = 0;
    while to.iter().zip(hosts).any(|(dst, src)| dst == src) {
        draw.shuffle(PERMUTATION, round, &mut to);
        round += 1;
    }
    Ok(hosts.iter().copied().zip(to).collect())
}

/// `flows` flows, each to a destination drawn uniformly from `to` except its source: flow `i`
/// starts at host `i` (modulo their number) of `sources`, so that as many flows as sources let each
/// of them send once. Destinations may repeat.
pub fn random_pairs(
    sources: &[HostId],
    to: &Destinations,
    flows: u32,
    draw: Draw,
) -> Result<Vec<Pair>, MatrixError> {
    let pair = |(flow, &src): (u32, &HostId)| match to.pick(src, draw, RANDOM, u64::from(flow)) {
        Some(dst) => Ok((src, dst)),
        None => Err(MatrixError::NobodyElse(src)),
    };
    (0..flows).zip(sources.iter().cycle()).map(pair).collect()
}

/// The sources of `flows` flows, each drawn uniformly from `hosts`: some send several times, some
/// not at all. With [`random_pairs`] this is the random matrix of the NDP authors' simulator
/// (nets-cs-pub-ro/NDP, `ConnectionMatrix::setRandom`).
pub fn random_sources(hosts: &[HostId], flows: u32, draw: Draw) -> Vec<HostId> {
    let one = |flow| draw.below(SOURCES, u64::from(flow), hosts.len() as u64) as usize;
    (0..flows).filter_map(|flow| hosts.get(one(flow)).copied()).collect()
}

/// `senders` hosts of `sources` (each once) send to `receiver`: a uniform choice without
/// replacement among those that are not the receiver.
///
/// With `rack` (hosts per rack, racks being consecutive host numbers), hosts of the receiver's own
/// rack are chosen only when all others send already: such an incast crosses the fabric.
pub fn incast(
    sources: &[HostId],
    receiver: HostId,
    senders: u32,
    rack: Option<u32>,
    draw: Draw,
) -> Result<Vec<Pair>, MatrixError> {
    let mut from: Vec<HostId> = sources.iter().copied().filter(|&src| src != receiver).collect();
    let others = from.len() as u32;
    if senders > others {
        return Err(MatrixError::TooManySenders { wanted: senders, others });
    }
    draw.shuffle(INCAST, 0, &mut from);
    if let Some(rack) = rack.filter(|&rack| rack > 0) {
        from.sort_by_key(|src| src.0 / rack == receiver.0 / rack);
    }
    from.truncate(senders as usize);
    Ok(from.into_iter().map(|src| (src, receiver)).collect())
}

/// Each of `hosts` (each once) sends to every other. In rounds, each of them a permutation: in
/// round `r` (from 1) the `i`-th host sends to the one `r` further, so that a host's first messages
/// do not all meet at the first host. At most [`ALL_TO_ALL_MAX`] hosts.
pub fn all_to_all(hosts: &[HostId]) -> Result<Vec<Pair>, MatrixError> {
    enough(hosts)?;
    if hosts.len() > ALL_TO_ALL_MAX {
        return Err(MatrixError::AllToAllTooLarge(hosts.len()));
    }
    let further = |r: usize| hosts.iter().cycle().skip(r);
    let round = |r: usize| hosts.iter().copied().zip(further(r).copied());
    Ok((1..hosts.len()).flat_map(round).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draw(seed: u64) -> Draw {
        Draw::new(seed, Purpose::new("test"), 0)
    }

    fn all(hosts: u32) -> Vec<HostId> {
        (0..hosts).map(HostId).collect()
    }

    fn sorted(hosts: impl Iterator<Item = HostId>) -> Vec<u32> {
        let mut ids: Vec<u32> = hosts.map(|host| host.0).collect();
        ids.sort_unstable();
        ids
    }

    proptest! {
        #[test]
        fn a_permutation_is_a_derangement(hosts in 2u32..300, seed in any::<u64>()) {
            let pairs = permutation(&all(hosts), draw(seed)).unwrap();
            prop_assert!(pairs.iter().all(|(src, dst)| src != dst));
            prop_assert_eq!(sorted(pairs.iter().map(|p| p.1)), (0..hosts).collect::<Vec<_>>());
            prop_assert_eq!(sorted(pairs.iter().map(|p| p.0)), (0..hosts).collect::<Vec<_>>());
            prop_assert_eq!(&pairs, &permutation(&all(hosts), draw(seed)).unwrap());
        }

        #[test]
        fn incast_senders_are_distinct_others(
            hosts in 2u32..200, receiver in 0u32..200, share in 0.0..1.0, seed in any::<u64>(),
        ) {
            let receiver = HostId(receiver % hosts);
            let senders = (f64::from(hosts - 1) * share) as u32;
            let pairs = incast(&all(hosts), receiver, senders, Some(8), draw(seed)).unwrap();
            let mut from = sorted(pairs.iter().map(|p| p.0));
            let mine = from.iter().filter(|&&src| src / 8 == receiver.0 / 8).count() as u32;
            let elsewhere = (0..hosts).filter(|host| host / 8 != receiver.0 / 8).count() as u32;
            prop_assert_eq!(mine, senders.saturating_sub(elsewhere), "own rack only when it must");
            from.dedup();
            prop_assert_eq!(from.len() as u32, senders);
            prop_assert!(pairs.iter().all(|&(src, dst)| dst == receiver && src != receiver));
        }
    }

    #[test]
    fn derangements_are_drawn_uniformly() {
        // Four hosts have nine derangements.
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..9_000 {
            *counts.entry(permutation(&all(4), draw(seed)).unwrap()).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 9);
        // 1000 expected, standard deviation 30; five of them.
        assert!(counts.values().all(|count| (850..=1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn random_pairs_cover_all_others_and_never_oneself() {
        let pairs = random_pairs(&all(5), &Destinations::all(5), 5_000, draw(3)).unwrap();
        let mut counts = [[0u32; 5]; 5];
        for (src, dst) in pairs {
            counts[src.index()][dst.index()] += 1;
        }
        for (src, row) in counts.iter().enumerate() {
            for (dst, &count) in row.iter().enumerate() {
                // 250 expected, standard deviation 14; five of them.
                let expected = if src == dst { 0..=0 } else { 180..=320 };
                assert!(expected.contains(&count), "{src}->{dst}: {count}");
            }
        }
    }

    #[test]
    fn random_sources_are_drawn_one_by_one() {
        let sources = random_sources(&all(5), 5_000, draw(3));
        for host in all(5) {
            let count = sources.iter().filter(|&&src| src == host).count();
            // 1000 expected, standard deviation 28; five of them.
            assert!((860..=1140).contains(&count), "{host}: {count}");
        }
        assert!(sources[..5] != all(5), "not in turns");
    }

    #[test]
    fn all_to_all_goes_in_permutations() {
        let pairs = all_to_all(&all(4)).unwrap();
        assert_eq!(pairs.len(), 12);
        for round in pairs.chunks(4) {
            assert_eq!(sorted(round.iter().map(|p| p.1)), [0, 1, 2, 3]);
        }
        assert!(pairs.iter().all(|(src, dst)| src != dst));
    }

    #[test]
    fn impossible_matrices_are_errors() {
        assert_eq!(permutation(&all(1), draw(0)), Err(MatrixError::TooFewHosts(1)));
        assert_eq!(all_to_all(&all(4097)), Err(MatrixError::AllToAllTooLarge(4097)));
        let incast = |receiver, senders| incast(&all(4), HostId(receiver), senders, None, draw(0));
        assert_eq!(incast(0, 4), Err(MatrixError::TooManySenders { wanted: 4, others: 3 }));
        assert_eq!(incast(9, 4).map(|pairs| pairs.len()), Ok(4), "from elsewhere");
        let alone = random_pairs(&all(1), &Destinations::all(1), 1, draw(0));
        assert_eq!(alone, Err(MatrixError::NobodyElse(HostId(0))));
    }

    #[test]
    fn parts_of_the_hosts_keep_to_themselves() {
        let [some, others] = [[9, 3, 5], [1, 3, 8]].map(|hosts| hosts.map(HostId));
        let pairs = permutation(&some, draw(1)).unwrap();
        assert_eq!(sorted(pairs.iter().map(|p| p.1)), [3, 5, 9]);
        let pairs = random_pairs(&some, &Destinations::among(others.to_vec()), 300, draw(1));
        let pairs = pairs.unwrap();
        let from = |src: HostId| {
            let mut to = sorted(pairs.iter().filter(|p| p.0 == src).map(|p| p.1));
            assert_eq!(to.len(), 100, "each sends equally often");
            to.dedup();
            to
        };
        assert_eq!(some.map(from), [vec![1, 3, 8], vec![1, 8], vec![1, 3, 8]]);
    }
}
