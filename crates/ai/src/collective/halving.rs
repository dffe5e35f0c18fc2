//! Partners at doubling distances: recursive halving and recursive doubling
//! (specs/ai-jobs.md#1.3), and the dissemination barrier.

use super::Cut;
use super::moves::{Moves, Part};

/// A power of two of members, by their place among them, as the collective numbers them.
struct Cube<'a> {
    member: &'a dyn Fn(usize) -> usize,
    me: usize,
    count: usize,
    whole: Part,
    cut: Cut,
}

impl Cube<'_> {
    /// Parts `from..to` in pieces.
    fn pieces(&self, from: usize, to: usize) -> impl Iterator<Item = Part> + use<> {
        let span = self.whole.span(from as u64, to as u64, self.count as u64);
        // As many for both partners, whose spans differ by a byte or so.
        let most = self.whole.bytes.div_ceil(self.count as u64) * (to - from) as u64;
        let pieces = self.cut.pieces(most);
        (0..pieces).map(move |piece| span.nth(piece, pieces))
    }

    /// The parts that this member and its partner at `distance` have together, halved: those that
    /// are its own, and those of its partner.
    fn halves(&self, distance: usize) -> [(usize, usize); 2] {
        let own = self.me & !(distance - 1);
        let others = own ^ distance;
        [(own, own + distance), (others, others + distance)]
    }

    /// This member's part becomes the sum of all.
    fn reduce_scatter(&self, moves: &mut Moves, mut after: Option<u32>) -> Option<u32> {
        let mut distance = self.count / 2;
        while distance > 0 {
            let peer = (self.member)(self.me ^ distance);
            let [own, others] = self.halves(distance);
            for part in self.pieces(others.0, others.1) {
                moves.send(peer, part, [after, None]);
            }
            let got: Vec<u32> =
                self.pieces(own.0, own.1).map(|part| moves.reduce(peer, part)).collect();
            after = moves.join(after.into_iter().chain(got));
            distance /= 2;
        }
        after
    }

    /// All get all parts.
    fn all_gather(&self, moves: &mut Moves, mut after: Option<u32>) -> Option<u32> {
        let mut distance = 1;
        while distance < self.count {
            let peer = (self.member)(self.me ^ distance);
            let [own, others] = self.halves(distance);
            for part in self.pieces(own.0, own.1) {
                moves.send(peer, part, [after, None]);
            }
            let got: Vec<u32> =
                self.pieces(others.0, others.1).map(|part| moves.copy(peer, part)).collect();
            after = moves.join(after.into_iter().chain(got));
            distance *= 2;
        }
        after
    }
}

/// All members get the sum of all. Without a power of two, members in excess first give theirs to
/// a neighbour, and last get the sum from it.
pub(super) fn all_reduce(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    let power = 1 << count.ilog2();
    let excess = count - power;
    let pieces = cut.pieces(whole.bytes);
    let parts = || (0..pieces).map(|piece| whole.nth(piece, pieces));
    // Of the first pairs, the even ones stand aside.
    let is_paired = me < 2 * excess;
    if is_paired && me.is_multiple_of(2) {
        for part in parts() {
            moves.send(me + 1, part, [None; 2]);
        }
        for part in parts() {
            moves.copy(me + 1, part);
        }
        return;
    }
    let mut after = None;
    if is_paired {
        let got: Vec<u32> = parts().map(|part| moves.reduce(me - 1, part)).collect();
        after = moves.join(got);
    }
    let place = if is_paired { me / 2 } else { me - excess };
    let member = |place: usize| if place < excess { 2 * place + 1 } else { place + excess };
    let cube = Cube { member: &member, me: place, count: power, whole, cut };
    let after = cube.reduce_scatter(moves, after);
    let after = cube.all_gather(moves, after);
    if is_paired {
        for part in parts() {
            moves.send(me - 1, part, [after, None]);
        }
    }
}

/// Each member gets the sum of its part. `count` is a power of two.
pub(super) fn reduce_scatter(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    Cube { member: &|place| place, me, count, whole, cut }.reduce_scatter(moves, None);
}

/// All members get all parts. `count` is a power of two.
pub(super) fn all_gather(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    Cube { member: &|place| place, me, count, whole, cut }.all_gather(moves, None);
}

/// None goes on before all have come: in round k each member tells the one 2^k after it.
pub(super) fn barrier(moves: &mut Moves, me: usize, count: usize) {
    let nothing = Part { offset: 0, bytes: 0 };
    let mut after = None;
    let mut distance = 1;
    while distance < count {
        moves.send((me + distance) % count, nothing, [after, None]);
        let got = moves.copy((me + count - distance) % count, nothing);
        after = moves.join(after.into_iter().chain([got]));
        distance *= 2;
    }
}
