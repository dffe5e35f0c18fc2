//! What endpoints count for single messages. The book of messages (`messages`) does not have it:
//! the duplicate that proves a retransmission needless may come when its message is over at both
//! ends, and most messages have nothing to count.

use endpoint::Stat;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::MsgKey;

/// So many counts are kept; then they are handed over, so that they do not grow with the run.
const MANY: usize = 1 << 15;

/// Counts by message and kind.
#[derive(Debug, Default)]
pub(crate) struct PerMessageStats(HashMap<(MsgKey, Stat), u64, FxBuildHasher>);

impl PerMessageStats {
    pub(crate) fn count(&mut self, key: MsgKey, stat: Stat) {
        *self.0.entry((key, stat)).or_default() += 1;
    }

    pub(crate) fn is_many(&self) -> bool {
        self.0.len() >= MANY
    }

    /// All counts, in no order that means anything; then there are none.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = ((MsgKey, Stat), u64)> {
        self.0.drain()
    }
}
