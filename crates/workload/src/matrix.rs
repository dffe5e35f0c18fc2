//! Traffic matrices: who sends to whom, as plain lists of (source, destination).

use endpoint::{Draw, Purpose};
use units::HostId;

/// A source and its destination.
pub type Pair = (HostId, HostId);

const PERMUTATION: Purpose = Purpose::new("workload.permutation");
const RANDOM: Purpose = Purpose::new("workload.random-pairs");
const INCAST: Purpose = Purpose::new("workload.incast");

/// Why a matrix cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// Nobody to send to.
    #[error("{0} hosts are too few: a host needs another one to send to")]
    TooFewHosts(u32),
    /// A host that the fabric does not have.
    #[error("{host} does not exist: the fabric has {hosts} hosts, numbered from 0")]
    NoSuchHost {
        /// The host asked for.
        host: HostId,
        /// How many there are.
        hosts: u32,
    },
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
    AllToAllTooLarge(u32),
}

/// The most hosts of an all-to-all: 16.8 million pairs.
pub const ALL_TO_ALL_MAX: u32 = 4096;

fn enough(hosts: u32) -> Result<(), MatrixError> {
    if hosts < 2 { Err(MatrixError::TooFewHosts(hosts)) } else { Ok(()) }
}

/// The `n`-th of the hosts other than `me`.
fn other(me: u32, n: u32) -> HostId {
    HostId(if n < me { n } else { n + 1 })
}

/// Every host sends to one other and receives from one other: a uniformly random derangement,
/// drawn by shuffling until no host is its own destination (2.7 shuffles on average). Sorted by
/// source.
pub fn permutation(hosts: u32, draw: Draw) -> Result<Vec<Pair>, MatrixError> {
    enough(hosts)?;
    let mut to: Vec<u32> = (0..hosts).collect();
    let mut round = 0;
    while to.iter().zip(0..).any(|(&dst, src)| dst == src) {
        draw.shuffle(PERMUTATION, round, &mut to);
        round += 1;
    }
    Ok(to.iter().zip(0..).map(|(&dst, src)| (HostId(src), HostId(dst))).collect())
}

/// `flows` flows, each to a destination drawn uniformly from all other hosts: flow `i` starts at
/// host `i mod hosts`, so that `flows == hosts` lets every host send once. Destinations may repeat.
pub fn random_pairs(hosts: u32, flows: u32, draw: Draw) -> Result<Vec<Pair>, MatrixError> {
    enough(hosts)?;
    let pair = |flow: u32| {
        let src = flow % hosts;
        let n = draw.below(RANDOM, u64::from(flow), u64::from(hosts - 1)) as u32;
        (HostId(src), other(src, n))
    };
    Ok((0..flows).map(pair).collect())
}

/// `senders` hosts send to `receiver`: a uniform choice without replacement among the others.
///
/// With `rack` (hosts per rack, racks being consecutive host numbers), hosts of the receiver's own
/// rack are chosen only when all others send already: such an incast crosses the fabric.
pub fn incast(
    hosts: u32,
    receiver: HostId,
    senders: u32,
    rack: Option<u32>,
    draw: Draw,
) -> Result<Vec<Pair>, MatrixError> {
    enough(hosts)?;
    if receiver.0 >= hosts {
        return Err(MatrixError::NoSuchHost { host: receiver, hosts });
    }
    if senders > hosts - 1 {
        return Err(MatrixError::TooManySenders { wanted: senders, others: hosts - 1 });
    }
    let mut from: Vec<HostId> = (0..hosts - 1).map(|n| other(receiver.0, n)).collect();
    draw.shuffle(INCAST, 0, &mut from);
    if let Some(rack) = rack.filter(|&rack| rack > 0) {
        from.sort_by_key(|src| src.0 / rack == receiver.0 / rack);
    }
    from.truncate(senders as usize);
    Ok(from.into_iter().map(|src| (src, receiver)).collect())
}

/// Every host sends to every other. In rounds, each of them a permutation: in round `r` (from 1)
/// host `i` sends to `i + r` modulo the number of hosts, so that a host's first messages do not all
/// meet at host 0. At most [`ALL_TO_ALL_MAX`] hosts.
pub fn all_to_all(hosts: u32) -> Result<Vec<Pair>, MatrixError> {
    enough(hosts)?;
    if hosts > ALL_TO_ALL_MAX {
        return Err(MatrixError::AllToAllTooLarge(hosts));
    }
    let round = |r: u32| (0..hosts).map(move |src| (HostId(src), HostId((src + r) % hosts)));
    Ok((1..hosts).flat_map(round).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draw(seed: u64) -> Draw {
        Draw::new(seed, Purpose::new("test"), 0)
    }

    fn sorted(hosts: impl Iterator<Item = HostId>) -> Vec<u32> {
        let mut ids: Vec<u32> = hosts.map(|host| host.0).collect();
        ids.sort_unstable();
        ids
    }

    proptest! {
        #[test]
        fn a_permutation_is_a_derangement(hosts in 2u32..300, seed in any::<u64>()) {
            let pairs = permutation(hosts, draw(seed)).unwrap();
            prop_assert!(pairs.iter().all(|(src, dst)| src != dst));
            prop_assert_eq!(sorted(pairs.iter().map(|p| p.1)), (0..hosts).collect::<Vec<_>>());
            prop_assert_eq!(sorted(pairs.iter().map(|p| p.0)), (0..hosts).collect::<Vec<_>>());
            prop_assert_eq!(&pairs, &permutation(hosts, draw(seed)).unwrap());
        }

        #[test]
        fn incast_senders_are_distinct_others(
            hosts in 2u32..200, receiver in 0u32..200, share in 0.0..1.0, seed in any::<u64>(),
        ) {
            let receiver = HostId(receiver % hosts);
            let senders = (f64::from(hosts - 1) * share) as u32;
            let pairs = incast(hosts, receiver, senders, Some(8), draw(seed)).unwrap();
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
            *counts.entry(permutation(4, draw(seed)).unwrap()).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 9);
        // 1000 expected, standard deviation 30; five of them.
        assert!(counts.values().all(|count| (850..=1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn random_pairs_cover_all_others_and_never_oneself() {
        let pairs = random_pairs(5, 5_000, draw(3)).unwrap();
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
    fn all_to_all_goes_in_permutations() {
        let pairs = all_to_all(4).unwrap();
        assert_eq!(pairs.len(), 12);
        for round in pairs.chunks(4) {
            assert_eq!(sorted(round.iter().map(|p| p.1)), [0, 1, 2, 3]);
        }
        assert!(pairs.iter().all(|(src, dst)| src != dst));
    }

    #[test]
    fn impossible_matrices_are_errors() {
        assert_eq!(permutation(1, draw(0)), Err(MatrixError::TooFewHosts(1)));
        assert_eq!(all_to_all(4097), Err(MatrixError::AllToAllTooLarge(4097)));
        let incast = |receiver, senders| incast(4, HostId(receiver), senders, None, draw(0));
        assert_eq!(incast(0, 4), Err(MatrixError::TooManySenders { wanted: 4, others: 3 }));
        assert_eq!(
            incast(4, 1).unwrap_err().to_string(),
            "host 4 does not exist: the fabric has 4 hosts, numbered from 0"
        );
    }
}
