//! This host's messages that are not over: to whom they go, and what they say.

use std::collections::{BTreeMap, BTreeSet};

use units::{HostId, MsgId};

use crate::link::Said;

/// The messages to one host.
#[derive(Default)]
struct Unfinished {
    ids: BTreeSet<MsgId>,
    /// After the last one that was ever submitted.
    end: MsgId,
}

/// The messages of one host that are not over.
#[derive(Default)]
pub(crate) struct Outbox {
    to: BTreeMap<HostId, Unfinished>,
    /// To whom each of them goes.
    whom: BTreeMap<MsgId, HostId>,
    /// What they say, where that is not nothing.
    said: BTreeMap<MsgId, Said>,
}

impl Outbox {
    /// `id` goes to `dst` and says `said`.
    pub(crate) fn insert(&mut self, id: MsgId, dst: HostId, said: Said) {
        if said != Said::default() {
            self.said.insert(id, said);
        }
        let to = self.to.entry(dst).or_default();
        to.ids.insert(id);
        to.end = to.end.max(MsgId(id.0.saturating_add(1)));
        self.whom.insert(id, dst);
    }

    /// `id` is over.
    pub(crate) fn remove(&mut self, id: MsgId) {
        self.said.remove(&id);
        let dst = self.whom.remove(&id);
        if let Some(to) = dst.and_then(|dst| self.to.get_mut(&dst)) {
            to.ids.remove(&id);
        }
    }

    /// The messages to `dst`, oldest first.
    pub(crate) fn to(&self, dst: HostId) -> impl Iterator<Item = MsgId> {
        self.to.get(&dst).into_iter().flat_map(|to| to.ids.iter().copied())
    }

    /// To whom `id` goes, if it is not over.
    pub(crate) fn whom(&self, id: MsgId) -> Option<HostId> {
        self.whom.get(&id).copied()
    }

    /// What `id` says.
    pub(crate) fn said(&self, id: MsgId) -> Said {
        self.said.get(&id).copied().unwrap_or_default()
    }

    /// All messages to `dst` below this one are over.
    pub(crate) fn oldest(&self, dst: HostId) -> MsgId {
        let oldest = |to: &Unfinished| to.ids.first().copied().unwrap_or(to.end);
        self.to.get(&dst).map_or(MsgId(0), oldest)
    }

    /// Whether nothing is remembered that a message says.
    #[cfg(test)]
    pub(crate) fn is_silent(&self) -> bool {
        self.said.is_empty()
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
        assert!(outbox.is_silent() && outbox.to(a).next().is_none());
    }
}
