//! This host's messages that are not over: to whom they go, and what they say.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, MsgId};

use crate::link::Said;

/// So many ids of messages that are over are never too many.
const FEW: usize = 64;

/// The messages to one host.
#[derive(Default)]
struct Unfinished {
    /// Their ids, ascending. Behind the first there may be some of messages that are over.
    ids: VecDeque<MsgId>,
    /// How many are not over.
    open: usize,
    /// After the last one that was ever submitted.
    end: MsgId,
}

/// The messages of one host that are not over.
#[derive(Default)]
pub(crate) struct Outbox {
    to: BTreeMap<HostId, Unfinished>,
    /// To whom each of them goes, and what it says.
    open: HashMap<MsgId, (HostId, Said), FxBuildHasher>,
}

impl Outbox {
    /// `id` goes to `dst` and says `said`.
    pub(crate) fn insert(&mut self, id: MsgId, dst: HostId, said: Said) {
        let to = self.to.entry(dst).or_default();
        if id < to.end {
            let place = to.ids.partition_point(|&other| other < id);
            to.ids.insert(place, id);
        } else {
            to.ids.push_back(id);
            to.end = MsgId(id.0.saturating_add(1));
        }
        to.open += 1;
        self.open.insert(id, (dst, said));
    }

    /// `id` is over.
    pub(crate) fn remove(&mut self, id: MsgId) {
        let Some((dst, _)) = self.open.remove(&id) else { return };
        let Some(to) = self.to.get_mut(&dst) else { return };
        to.open -= 1;
        while to.ids.front().is_some_and(|id| !self.open.contains_key(id)) {
            to.ids.pop_front();
        }
        if to.ids.len() > 2 * to.open + FEW {
            to.ids.retain(|id| self.open.contains_key(id));
        }
    }

    /// The messages to `dst`, oldest first.
    pub(crate) fn to(&self, dst: HostId) -> impl Iterator<Item = MsgId> {
        let ids = self.to.get(&dst).into_iter().flat_map(|to| to.ids.iter().copied());
        ids.filter(|id| self.open.contains_key(id))
    }

    /// To whom `id` goes, if it is not over.
    pub(crate) fn whom(&self, id: MsgId) -> Option<HostId> {
        self.open.get(&id).map(|&(dst, _)| dst)
    }

    /// What `id` says.
    pub(crate) fn said(&self, id: MsgId) -> Said {
        self.open.get(&id).map_or_else(Said::default, |&(_, said)| said)
    }

    /// All messages to `dst` below this one are over.
    pub(crate) fn oldest(&self, dst: HostId) -> MsgId {
        let oldest = |to: &Unfinished| to.ids.front().copied().unwrap_or(to.end);
        self.to.get(&dst).map_or(MsgId(0), oldest)
    }

    /// Whether nothing is remembered of any message.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.to.values().all(|to| to.ids.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_forgotten_and_the_oldest_rises() {
        let (a, b) = (HostId(1), HostId(2));
        let mut outbox = Outbox::default();
        for (id, dst) in [(5, a), (6, b), (7, a)] {
            outbox.insert(MsgId(id), dst, (0, id % 2));
        }
        assert_eq!(outbox.to(a).collect::<Vec<_>>(), [MsgId(5), MsgId(7)]);
        assert_eq!((outbox.said(MsgId(6)), outbox.said(MsgId(7))), ((0, 0), (0, 1)));
        assert_eq!((outbox.whom(MsgId(6)), outbox.whom(MsgId(8))), (Some(b), None));
        assert_eq!((outbox.oldest(a), outbox.oldest(HostId(3))), (MsgId(5), MsgId(0)));
        outbox.remove(MsgId(5));
        assert_eq!(outbox.oldest(a), MsgId(7));
        outbox.remove(MsgId(7));
        assert_eq!((outbox.oldest(a), outbox.oldest(b)), (MsgId(8), MsgId(6)));
        outbox.remove(MsgId(6));
        assert!(outbox.is_empty() && outbox.to(a).next().is_none());
    }

    #[test]
    fn behind_one_that_is_never_over_what_is_remembered_stays_little() {
        let mut outbox = Outbox::default();
        outbox.insert(MsgId(3), HostId(1), (1, 2));
        for id in 4..10_000 {
            outbox.insert(MsgId(id), HostId(1), (0, 0));
            if id > 4 {
                outbox.remove(MsgId(id - 1));
            }
            assert_eq!(outbox.oldest(HostId(1)), MsgId(3));
            assert!(outbox.to[&HostId(1)].ids.len() <= 2 * 3 + FEW);
        }
        assert_eq!(outbox.said(MsgId(3)), (1, 2));
        assert_eq!(outbox.to(HostId(1)).collect::<Vec<_>>(), [MsgId(3), MsgId(9_999)]);
    }
}
