//! [`Deadlines`]: one deadline for each of many slots, where most deadlines move later before
//! they come (retransmission timers). Moving one later costs nothing. `Armed`: the host's timers
//! that stand at such.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use endpoint::Effects;
use units::{Dur, Time, TimerId};

/// A deadline per slot; slots are dense from zero, as in a table.
///
/// The heap holds at most one current entry per slot, and never one later than the slot's true
/// deadline. An entry that comes early is put back. So [`Deadlines::next`] may be earlier than
/// any true deadline, never later.
#[derive(Debug, Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    slots: Vec<Slot>,
    /// How many slots have a deadline.
    armed: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The true deadline; `NEVER` if there is none.
    due: Time,
    /// The time of its current heap entry; `NEVER` if there is none.
    queued: Time,
}

impl Deadlines {
    /// No deadlines.
    #[must_use]
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), armed: 0 }
    }

    /// Set the deadline of `slot`, in place of any earlier one; `NEVER` for none.
    pub fn set(&mut self, slot: u32, due: Time) {
        let i = slot as usize;
        if self.slots.len() <= i {
            self.slots.resize(i + 1, Slot { due: Time::NEVER, queued: Time::NEVER });
        }
        let entry = &mut self.slots[i];
        self.armed += usize::from(due != Time::NEVER);
        self.armed -= usize::from(entry.due != Time::NEVER);
        entry.due = due;
        if due < entry.queued {
            entry.queued = due;
            self.heap.push(Reverse((due, slot)));
        }
        if self.armed == 0 {
            self.forget_entries();
        }
    }

    /// Have the deadline of `slot` as `timer` says; one that restarts comes after `timeout`.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        slot: u32,
        timer: Timer,
        now: Time,
        timeout: impl FnOnce() -> Dur,
    ) {
        match timer {
            Timer::Keep => {}
            Timer::Stop => self.set(slot, Time::NEVER),
            Timer::Restart => self.set(slot, now.saturating_add(timeout())),
        }
    }

    /// Whether `slot` has a deadline.
    #[must_use]
    pub fn is_set(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|s| s.due != Time::NEVER)
    }

    /// When to look next; `NEVER` if no slot has a deadline.
    #[must_use]
    pub fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// A slot whose deadline has come by `now`; it has none afterwards. To a caller who looks
    /// whenever [`Deadlines::next`] says, equal deadlines come in slot order.
    pub fn pop(&mut self, now: Time) -> Option<u32> {
        while let Some(&Reverse((at, slot))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let entry = &mut self.slots[slot as usize];
            if entry.queued != at {
                continue; // replaced by an earlier entry
            }
            entry.queued = Time::NEVER;
            let due = entry.due;
            if due <= now {
                self.set(slot, Time::NEVER);
                return Some(slot);
            }
            if due != Time::NEVER {
                self.set(slot, due);
            }
        }
        None
    }

    /// With no deadline left, every entry is stale.
    fn forget_entries(&mut self) {
        for Reverse((_, slot)) in self.heap.drain() {
            self.slots[slot as usize].queued = Time::NEVER;
        }
    }
}

/// What becomes of a deadline after something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Keep,
    Restart,
    Stop,
}

/// The timers of a host, numbered from zero, each at the earliest deadline of its kind: what they
/// stand at.
#[derive(Debug)]
pub(crate) struct Armed<const N: usize>([Time; N]);

impl<const N: usize> Armed<N> {
    /// None is armed.
    pub(crate) const NONE: Self = Self([Time::NEVER; N]);

    /// Let each stand at its time of `next`.
    pub(crate) fn move_to(&mut self, next: [Time; N], fx: &mut Effects) {
        for ((id, armed), next) in (0..).zip(&mut self.0).zip(next) {
            if *armed != next {
                *armed = next;
                fx.arm(TimerId(id), next);
            }
        }
    }

    /// Timer `id` has fired.
    pub(crate) fn fired(&mut self, id: TimerId) {
        if let Some(armed) = self.0.get_mut(id.0 as usize) {
            *armed = Time::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moving_a_deadline_later_adds_no_entry() {
        let mut deadlines = Deadlines::new();
        for t in 1..100 {
            deadlines.set(0, Time(t));
        }
        assert_eq!(deadlines.heap.len(), 1);
        assert_eq!(deadlines.next(), Time(1));
        assert_eq!(deadlines.pop(Time(50)), None);
        assert_eq!(deadlines.next(), Time(99));
        deadlines.set(0, Time::NEVER);
        assert_eq!(deadlines.next(), Time::NEVER);
    }

    proptest! {
        /// Against a plain table: the same slots fire at the same times, and `next` is never late.
        #[test]
        fn behaves_as_a_table(ops in proptest::collection::vec((0u32..6, 0u64..40, any::<bool>()), 1..200)) {
            let mut deadlines = Deadlines::new();
            let mut table = BTreeMap::new();
            let mut now = 0;
            for (slot, after, set) in ops {
                if set && after > 0 {
                    deadlines.set(slot, Time(now + after));
                    table.insert(slot, now + after);
                } else if set {
                    deadlines.set(slot, Time::NEVER);
                    table.remove(&slot);
                } else {
                    now += after / 4;
                    let mut fired: Vec<u32> = std::iter::from_fn(|| deadlines.pop(Time(now))).collect();
                    fired.sort_unstable();
                    let due: Vec<u32> = table.iter().filter(|(_, at)| **at <= now).map(|(s, _)| *s).collect();
                    prop_assert_eq!(fired, due);
                    table.retain(|_, at| *at > now);
                }
                let first = table.values().min().copied();
                prop_assert!(deadlines.next().0 <= first.unwrap_or(u64::MAX));
                prop_assert_eq!(deadlines.next() == Time::NEVER, first.is_none());
            }
        }
    }
}
