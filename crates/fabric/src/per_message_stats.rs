//! What endpoints count for single messages. The book of messages (`messages`) does not have it: the
//! duplicate that proves a retransmission needless may come when its message is over at both ends, and
//! most messages have nothing to count.

use endpoint::Stat;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::MsgKey;

use crate::outcome::Counted;

/// Counts by message and kind.
#[derive(Debug, Default)]
pub(crate) struct PerMessageStats(HashMap<(MsgKey, Stat), u64, FxBuildHasher>);

impl PerMessageStats {
    pub(crate) fn count(&mut self, key: MsgKey, stat: Stat) {
        *self.0.entry((key, stat)).or_default() += 1;
    }

    /// All counts, by message and kind. The two ends of a message may be in different partitions.
    pub(crate) fn sum(parts: impl Iterator<Item = Self>) -> Vec<Counted> {
        let mut all = Self::default();
        for ((key, stat), times) in parts.flat_map(|part| part.0) {
            *all.0.entry((key, stat)).or_default() += times;
        }
        let counted = all.0.into_iter().map(|((key, stat), times)| Counted { key, stat, times });
        let mut counted: Vec<Counted> = counted.collect();
        counted.sort_unstable_by_key(|counted| (counted.key, counted.stat));
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{HostId, MsgId};

    #[test]
    fn the_counts_of_both_ends_are_one() {
        let key = |src, id| MsgKey { src: HostId(src), id: MsgId(id) };
        let (mut sender, mut receiver) = (PerMessageStats::default(), PerMessageStats::default());
        for (src, id) in [(2, 0), (1, 7), (2, 0)] {
            sender.count(key(src, id), Stat::Retransmission);
        }
        receiver.count(key(2, 0), Stat::Duplicate);
        receiver.count(key(1, 7), Stat::Retransmission);
        let counted = |key, stat, times| Counted { key, stat, times };
        assert_eq!(
            PerMessageStats::sum([receiver, sender].into_iter()),
            [
                counted(key(1, 7), Stat::Retransmission, 2),
                counted(key(2, 0), Stat::Retransmission, 2),
                counted(key(2, 0), Stat::Duplicate, 1),
            ]
        );
    }
}
