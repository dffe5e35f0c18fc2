//! Rings: each member sends to the next one and receives from the one before
//! (specs/ai-jobs.md#1.1).

use super::Cut;
use super::moves::{Moves, Part};

/// A ring, and a member of it.
pub(super) struct Ring<'a> {
    /// The members in order, as the collective numbers them.
    pub(super) members: &'a [usize],
    /// The place of this member among them.
    pub(super) me: usize,
    pub(super) cut: Cut,
}

impl Ring<'_> {
    fn count(&self) -> usize {
        self.members.len()
    }

    /// The member `steps` before this one.
    fn before(&self, steps: usize) -> usize {
        (self.me + 2 * self.count() - steps) % self.count()
    }

    fn next(&self) -> usize {
        self.members[(self.me + 1) % self.count()]
    }

    fn previous(&self) -> usize {
        self.members[self.before(1)]
    }

    /// Into how many pieces each of the ring's parts of `whole` is cut: all alike, so that both
    /// ends count the same.
    pub(super) fn pieces(&self, whole: Part) -> u64 {
        self.cut.pieces(whole.bytes.div_ceil(self.count() as u64))
    }

    fn piece(&self, whole: Part, part: usize, piece: u64) -> Part {
        whole.nth(part as u64, self.count() as u64).nth(piece, self.pieces(whole))
    }

    /// This member's part of `whole` becomes the sum of all. Returns, for each piece of it, the
    /// move after which that is so.
    pub(super) fn reduce_scatter(
        &self,
        moves: &mut Moves,
        whole: Part,
        after: Option<u32>,
    ) -> Vec<Option<u32>> {
        let pieces = self.pieces(whole);
        let mut had = vec![after; pieces as usize];
        for step in 0..self.count() - 1 {
            for (piece, had) in (0..).zip(&mut had) {
                let sent = self.piece(whole, self.before(step + 1), piece);
                moves.send(self.next(), sent, [*had, after]);
                let got = self.piece(whole, self.before(step + 2), piece);
                *had = Some(moves.reduce(self.previous(), got));
            }
        }
        // The last of the others' values may be here before this member's own.
        had.into_iter().map(|had| moves.join(had.into_iter().chain(after))).collect()
    }

    /// All members get all parts of `whole`. A piece of this one's is there after the move that
    /// `after` names; with nothing in it, they are there already. Returns the last moves.
    pub(super) fn all_gather(
        &self,
        moves: &mut Moves,
        whole: Part,
        after: &[Option<u32>],
    ) -> Vec<u32> {
        let pieces = self.pieces(whole) as usize;
        let mut had: Vec<Option<u32>> =
            (0..pieces).map(|piece| after.get(piece).copied().flatten()).collect();
        let mut all = Vec::new();
        for step in 0..self.count() - 1 {
            for (piece, had) in (0..).zip(&mut had) {
                let sent = self.piece(whole, self.before(step), piece);
                moves.send(self.next(), sent, [*had, None]);
                let got = self.piece(whole, self.before(step + 1), piece);
                let got = moves.copy(self.previous(), got);
                *had = Some(got);
                all.push(got);
            }
        }
        all
    }

    /// All members get the sum of all. Returns the moves after which this one has it.
    pub(super) fn all_reduce(
        &self,
        moves: &mut Moves,
        whole: Part,
        after: Option<u32>,
    ) -> Vec<u32> {
        let own = self.reduce_scatter(moves, whole, after);
        let mut all: Vec<u32> = own.iter().flatten().copied().collect();
        all.extend(self.all_gather(moves, whole, &own));
        all
    }

    /// All members get what `root` has: along the ring, one piece after the other.
    pub(super) fn broadcast(&self, moves: &mut Moves, root: usize, whole: Part) {
        let pieces = self.cut.pieces(whole.bytes);
        let place = self.before(root);
        for piece in 0..pieces {
            let part = whole.nth(piece, pieces);
            let had = (place > 0).then(|| moves.copy(self.previous(), part));
            if place + 1 < self.count() {
                moves.send(self.next(), part, [had, None]);
            }
        }
    }
}
