//! Hosts whose process does not always run, as those of a real machine do not.

use endpoint::{Draw, Purpose};
use units::Dur;

const NAP: Purpose = Purpose::new("nap");

/// After each thing that a host does, and before it does the next, its process sleeps. What falls
/// due in that time it does all at once when it wakes. Its interface goes on sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Naps {
    /// The longest nap but for pauses; endpoints are told of it as [`endpoint::NetView::lateness`].
    pub max: Dur,
    /// How long a pause is, of which endpoints are told nothing.
    pub pause: Dur,
    /// One nap in so many is a pause; 0: none.
    pub pause_every: u64,
}

impl Naps {
    /// How long nap `n` of a host is.
    pub(crate) fn length(self, draw: Draw, n: u64) -> Dur {
        if self.pause_every > 0 && draw.below(NAP, 2 * n, self.pause_every) == 0 {
            return self.pause;
        }
        Dur(draw.below(NAP, 2 * n + 1, self.max.0 + 1))
    }
}
