//! What became of the messages to a host that are over, so that none starts again
//! (specs/ndp.md#8, at-most-once; the same in other transports that open their state with any
//! packet).

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, MsgKey, Time};

use crate::time_wait::TimeWait;

/// What happened to a message that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// It had so many packets.
    Complete(u64),
    /// It was given up, or its sender asks about it no more: nothing is said of it.
    Abandoned,
}

/// The messages that are over, for as long as their packets may still come. Where their senders say
/// how far they are done, that is a number for each sender, and what they may still ask about.
#[derive(Debug)]
pub(crate) struct OverMessages {
    remembered: TimeWait<MsgKey, Over>,
    /// All messages of a host below this one are over.
    floors: HashMap<HostId, MsgId, FxBuildHasher>,
    /// With so many remembered, look for those below the floors.
    sweep_at: usize,
}

/// It is not worth to look through fewer.
const FEW: usize = 64;

impl OverMessages {
    pub(crate) const fn new() -> Self {
        let floors = HashMap::with_hasher(FxBuildHasher);
        Self { remembered: TimeWait::new(), floors, sweep_at: FEW }
    }

    /// How many are remembered one by one.
    pub(crate) fn len(&self) -> usize {
        self.remembered.len()
    }

    /// What became of message `key`, if that is known.
    pub(crate) fn get(&mut self, now: Time, key: MsgKey) -> Option<Over> {
        if is_below(&self.floors, key) {
            return Some(Over::Abandoned);
        }
        self.remembered.get(now, &key)
    }

    /// Remember `key` for `wait`; forget the oldest if there are more than `max`.
    pub(crate) fn insert(&mut self, now: Time, wait: Dur, max: u32, key: MsgKey, over: Over) {
        if self.remembered.len() >= self.sweep_at && !self.floors.is_empty() {
            self.remembered.retain(|&key| !is_below(&self.floors, key));
            // So a look costs as much as what came since the last one.
            self.sweep_at = FEW.max(2 * self.remembered.len());
        }
        self.remembered.insert(now, wait, max, key, over);
    }

    /// Remember `key`, if it is remembered, for `wait` from now.
    pub(crate) fn refresh(&mut self, now: Time, wait: Dur, key: MsgKey) {
        self.remembered.refresh(now, wait, &key);
    }

    /// See [`endpoint::Endpoint::on_over`].
    pub(crate) fn forget(&mut self, key: MsgKey) {
        self.remembered.forget(&key);
    }

    /// See [`endpoint::Endpoint::on_over_below`].
    pub(crate) fn below(&mut self, host: HostId, oldest: MsgId) {
        self.floors.insert(host, oldest);
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(crate) fn restart(&mut self, host: HostId) {
        self.floors.remove(&host);
    }
}

fn is_below(floors: &HashMap<HostId, MsgId, FxBuildHasher>, key: MsgKey) -> bool {
    floors.get(&key.src).is_some_and(|&oldest| key.id < oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Dur = Dur::from_ms(10);
    const A: HostId = HostId(1);
    const B: HostId = HostId(2);

    fn insert(over: &mut OverMessages, src: HostId, id: u64) {
        let key = MsgKey { src, id: MsgId(id) };
        over.insert(Time(1), WAIT, u32::MAX, key, Over::Complete(id));
    }

    fn get(over: &mut OverMessages, src: HostId, id: u64) -> Option<Over> {
        over.get(Time(1), MsgKey { src, id: MsgId(id) })
    }

    /// Of a sender that says how far it is done, whatever another one says.
    #[test]
    fn what_is_remembered_does_not_grow_with_what_came() {
        let mut over = OverMessages::new();
        insert(&mut over, B, 0);
        for id in 0..10_000 {
            insert(&mut over, A, id);
            over.below(A, MsgId(id.saturating_sub(20)));
            assert!(over.len() <= 2 * FEW, "{id}");
            assert_eq!(get(&mut over, A, id), Some(Over::Complete(id)));
        }
        assert_eq!(get(&mut over, A, 9_978), Some(Over::Abandoned));
        assert_eq!(get(&mut over, A, 9_979), Some(Over::Complete(9_979)));
        assert_eq!(get(&mut over, A, 10_000), None);
        assert_eq!(get(&mut over, B, 0), Some(Over::Complete(0)));
        over.restart(A);
        assert_eq!(get(&mut over, A, 1), None, "its numbers begin anew");
    }

    /// One that is not over keeps those behind it, which is looked at seldom.
    #[test]
    fn looks_cost_no_more_than_what_came_since() {
        let mut over = OverMessages::new();
        over.below(A, MsgId(1));
        let mut sweeps = 0;
        for id in 1..=100_000 {
            let before = over.sweep_at;
            insert(&mut over, A, id);
            sweeps += u32::from(over.sweep_at != before);
        }
        assert_eq!((over.len(), sweeps), (100_000, 11));
        over.below(A, MsgId(100_001));
        for id in 100_001..200_000 {
            insert(&mut over, A, id);
        }
        assert!(over.len() < 140_000, "{}", over.len());
    }
}
