//! Whether a loss was one: the Eifel detection algorithm (RFC 3522), by timestamps, and that by
//! duplicates reported (RFC 3708). What follows, the response, is in `sender/reordering.rs`.

use std::ops::Range;

use endpoint::RangeSet;

use super::window::Before;
use crate::rto::Rto;

/// A loss inferred, by duplicate acknowledgements or a timer, while it may prove to have been none.
#[derive(Clone, Debug, Default)]
pub(super) struct LossEvent {
    /// What stood before it; `None`: there is nothing to undo, or no longer.
    before: Option<Stood>,
    /// `RetransmitTS`: the stamp of the first segment sent again; `None` before it is sent.
    stamp: Option<u32>,
    /// Something new has been acknowledged since.
    acknowledged: bool,
    /// What has been sent again.
    repeated: RangeSet,
    /// Segments sent again whose duplicates have not been reported.
    unreported: u32,
}

/// What stood before a loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stood {
    /// A timer has shown it.
    pub(super) timeout: bool,
    /// The positions in flight.
    pub(super) flight: (u64, u64),
    pub(super) window: Before,
    /// `pipe_prev`, segments: FlightSize or ssthresh, whichever was more (RFC 4015, section 3.1,
    /// step 0).
    pub(super) pipe: f64,
    pub(super) rto: Rto,
    /// `recover` and `reduced_at` of the sender.
    pub(super) recover: u64,
    pub(super) reduced_at: u64,
}

/// What an acknowledgement of something new says to Eifel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptable {
    /// The stamp that it echoes.
    pub(super) echo: u32,
    /// It acknowledges everything outstanding.
    pub(super) everything: bool,
    /// It reports a duplicate.
    pub(super) duplicate: bool,
    /// One before it did.
    pub(super) duplicate_before: bool,
}

impl LossEvent {
    /// Begin anew, with what stood `before`, keeping the memory.
    pub(super) fn begin(&mut self, before: Stood) {
        self.repeated.clear();
        let repeated = std::mem::take(&mut self.repeated);
        *self = Self { before: Some(before), repeated, ..Self::default() };
    }

    /// It was congestion, or is over: nothing is to be undone.
    pub(super) fn end(&mut self) {
        self.before = None;
    }

    /// What to return to.
    pub(super) fn before(&self) -> Option<&Stood> {
        self.before.as_ref()
    }

    /// The positions `range` are sent again, stamped `stamp`.
    pub(super) fn on_repeat(&mut self, range: Range<u64>, stamp: u32) {
        self.stamp.get_or_insert(stamp);
        self.repeated.insert(range);
        self.unreported += 1;
    }

    /// Eifel: something new is acknowledged. True if the loss was none (RFC 3522, section 3.2,
    /// steps 4 to 6): the first such acknowledgement answers the original, as it echoes an older
    /// stamp than that of what was sent again, or that has not been sent at all. Where everything
    /// is acknowledged at once, acknowledgements of the originals may have been lost, unless the
    /// receiver is known to report duplicates.
    pub(super) fn is_spurious_by_stamp(&mut self, ack: Acceptable) -> bool {
        if self.before.is_none() || std::mem::replace(&mut self.acknowledged, true) {
            return false;
        }
        let older = |stamp: u32| (ack.echo.wrapping_sub(stamp) as i32) < 0;
        let certain = !ack.duplicate && (ack.duplicate_before || !ack.everything);
        certain && self.stamp.is_none_or(older)
    }

    /// The receiver reports the duplicate `range`. True if with it everything sent again came
    /// twice, and the loss was none (RFC 3708, section 3). A duplicate of what was in flight and
    /// not sent again is the network's: then they prove nothing.
    pub(super) fn is_spurious_by_report(&mut self, range: &Range<u64>) -> bool {
        let Some(before) = self.before else { return false };
        let (una, max) = before.flight;
        if range.start < una || range.end > max {
            return false; // of another event
        }
        if !self.repeated.contains(range.start) {
            self.end();
            return false;
        }
        self.unreported = self.unreported.saturating_sub(1);
        self.unreported == 0
    }
}
