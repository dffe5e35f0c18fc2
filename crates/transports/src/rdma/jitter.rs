//! Feedback that comes late: a receiver holds each acknowledgement and congestion notification for
//! a time drawn from zero to a limit, each by itself, so that they may overtake one another ("ECN
//! or Delay", CoNEXT 2016, section 5). It stands for jitter of interfaces, and of whatever the
//! feedback crosses.

use std::collections::BTreeMap;

use endpoint::{Cx, Purpose};
use units::{Dur, Time};

use super::control::{Control, OUTBOX_MAX, Outbox};

const JITTER: Purpose = Purpose::new("rdma feedback jitter");

/// Control packets of one host that are held.
#[derive(Debug)]
pub(super) struct Jitter {
    /// Just written, not held yet.
    fresh: Outbox,
    /// By when they go; of those that go at one instant, the older one first.
    held: BTreeMap<(Time, u64), Control>,
    /// Held so far.
    count: u64,
}

impl Default for Jitter {
    fn default() -> Self {
        Self { fresh: Outbox::new(OUTBOX_MAX), held: BTreeMap::new(), count: 0 }
    }
}

impl Jitter {
    /// Where receivers write.
    pub(super) fn fresh(&mut self) -> &mut Outbox {
        &mut self.fresh
    }

    /// Hold what has been written, each packet for up to `longest`. What finds no room is lost, as
    /// in an outbox.
    pub(super) fn hold(&mut self, cx: &Cx<'_>, longest: Dur) {
        while let Some(control) = self.fresh.pop() {
            let held = cx.draw.below(JITTER, self.count, longest.0.saturating_add(1));
            if self.held.len() < OUTBOX_MAX {
                self.held.insert((cx.now.saturating_add(Dur(held)), self.count), control);
            }
            self.count += 1;
        }
    }

    /// When [`Self::release`] is wanted.
    pub(super) fn next(&self) -> Time {
        self.held.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at)
    }

    /// Let go what has been held for long enough by `now`.
    pub(super) fn release(&mut self, now: Time, out: &mut Outbox) {
        while let Some(first) = self.held.first_entry()
            && first.key().0 <= now
        {
            out.push(first.remove());
        }
    }
}
