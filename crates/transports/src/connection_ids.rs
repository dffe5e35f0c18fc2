//! Ids of connections: numbers of `BITS` bits, at most 31, that go round, counted per pair of
//! hosts.

use endpoint::{Draw, Purpose, RangeSet};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::HostId;

pub(crate) const FIRST_CONN: Purpose = Purpose::new("tcp first connection");

/// Ids for connections, counted per destination.
#[derive(Debug, Default)]
pub(crate) struct ConnectionIds<const BITS: u32>(HashMap<HostId, u32, FxBuildHasher>);

impl<const BITS: u32> ConnectionIds<BITS> {
    /// The next id for a connection to `dst`; `draw` is this host's draws for that destination. As
    /// with initial sequence numbers, the first id is drawn, so that a restarted host is unlikely
    /// to use again those its peers remember.
    pub(crate) fn next(&mut self, draw: Draw, dst: HostId) -> u32 {
        let first = || draw.bits(FIRST_CONN, 0) as u32 % (1 << BITS);
        let next = self.0.entry(dst).or_insert_with(first);
        let conn = *next;
        *next = (conn + 1) % (1 << BITS);
        conn
    }
}

/// The connections that are over. Those of one peer have consecutive ids, so that the set is one
/// range, but for those still open: memory that is bounded without forgetting anything, unlike a
/// time-wait (RFC 9293, section 3.6.1), which would need a timer and an entry per connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finished<const BITS: u32>(HashMap<HostId, FinishedIds, FxBuildHasher>);

/// The connections of one peer that are over.
#[derive(Clone, Debug)]
struct FinishedIds {
    ids: RangeSet,
    /// The highest id seen, unwrapped.
    reference: u64,
}

/// Ranges that are remembered of one peer: of honest peers it has few, one for each connection
/// still open.
const RANGES_MAX: usize = 1 << 16;

impl FinishedIds {
    /// Where a peer has left more gaps than anyone needs, the oldest is closed: its ids count as
    /// over.
    fn bound(&mut self) {
        if self.ids.fragments() <= RANGES_MAX {
            return;
        }
        let from = self.ids.iter().next().map_or(0, |oldest| oldest.end);
        let to = self.ids.iter().nth(1).map_or(0, |next| next.start);
        self.ids.insert(from..to);
    }
}

impl<const BITS: u32> Finished<BITS> {
    /// Whether connection `conn` of `peer` is over.
    pub(crate) fn contains(&self, peer: HostId, conn: u32) -> bool {
        self.0
            .get(&peer)
            .is_some_and(|f| unwrap(conn, f.reference, BITS).is_some_and(|id| f.ids.contains(id)))
    }

    /// How many ranges it takes to remember what is over of `peer`.
    #[cfg(test)]
    pub(crate) fn ranges(&self, peer: HostId) -> usize {
        self.0.get(&peer).map_or(0, |finished| finished.ids.fragments())
    }

    /// Nothing of `peer` is over: it numbers anew.
    pub(crate) fn forget(&mut self, peer: HostId) {
        self.0.remove(&peer);
    }

    /// Connection `conn` of `peer` is over.
    pub(crate) fn insert(&mut self, peer: HostId, conn: u32) {
        // Unwrapped ids start one wrap up, so that ids just below the first one fit too.
        let first =
            || FinishedIds { ids: RangeSet::new(), reference: (1 << BITS) + u64::from(conn) };
        let finished = self.0.entry(peer).or_insert_with(first);
        if let Some(id) = unwrap(conn, finished.reference, BITS) {
            finished.ids.insert(id..id + 1);
            finished.bound();
            finished.reference = finished.reference.max(id);
        }
    }
}

/// The number nearest to `reference` whose lowest `bits` are those of `value`; `None` if that is
/// below zero.
pub(crate) fn unwrap(value: u32, reference: u64, bits: u32) -> Option<u64> {
    let unused = 32 - bits;
    let difference = (value.wrapping_sub(reference as u32) << unused) as i32 >> unused;
    reference.checked_add_signed(i64::from(difference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_leaves_gaps_costs_a_bounded_memory() {
        let mut finished = Finished::<30>::default();
        let peer = HostId(1);
        for n in 0..RANGES_MAX as u32 + 1000 {
            finished.insert(peer, 2 * n);
        }
        assert_eq!(finished.ranges(peer), RANGES_MAX);
        assert!(finished.contains(peer, 2 * 70) && finished.contains(peer, 2 * 66_000));
        assert!(finished.contains(peer, 71), "the oldest gaps are closed");
        assert!(!finished.contains(peer, 2 * 66_000 + 1));
    }
}
