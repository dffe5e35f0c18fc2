//! Each member sends to every other at once (specs/ai-jobs.md#1.5), the next one first.

use super::Cut;
use super::moves::{Moves, Part};

/// All other members, from the next one on.
fn others(me: usize, count: usize) -> impl Iterator<Item = usize> {
    (1..count).map(move |step| (me + step) % count)
}

/// Pieces of part `part` of `whole`.
fn pieces(whole: Part, part: usize, count: usize, cut: Cut) -> impl Iterator<Item = Part> {
    let pieces = cut.pieces(whole.bytes.div_ceil(count as u64));
    let part = whole.nth(part as u64, count as u64);
    (0..pieces).map(move |piece| part.nth(piece, pieces))
}

/// Member m's n-th part goes to member n, as its m-th.
pub(super) fn all_to_all(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    // Every pair has the same number of messages of the same sizes.
    let part = Part { offset: 0, bytes: whole.bytes / count as u64 };
    let rest = whole.bytes % count as u64;
    let at = |from: usize, to: usize| {
        let bytes = part.bytes + u64::from((from + to) % count < rest as usize);
        Part { offset: whole.offset, bytes }
    };
    let messages = cut.pieces(whole.bytes.div_ceil(count as u64));
    for peer in others(me, count) {
        for piece in 0..messages {
            moves.send(peer, at(me, peer).nth(piece, messages), [None; 2]);
        }
    }
    for peer in others(me, count) {
        for piece in 0..messages {
            moves.copy(peer, at(peer, me).nth(piece, messages));
        }
    }
}

/// Each member gets the sum of its part. Returns the move after which that is so.
fn scatter(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) -> Option<u32> {
    for peer in others(me, count) {
        for piece in pieces(whole, peer, count, cut) {
            moves.send(peer, piece, [None; 2]);
        }
    }
    let mut got = Vec::new();
    for peer in others(me, count) {
        got.extend(pieces(whole, me, count, cut).map(|piece| moves.reduce(peer, piece)));
    }
    moves.join(got)
}

/// Each member gets the sum of its part.
pub(super) fn reduce_scatter(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    scatter(moves, me, count, whole, cut);
}

/// All members get all parts; this one's is there after `after`.
pub(super) fn all_gather(
    moves: &mut Moves,
    me: usize,
    count: usize,
    whole: Part,
    (cut, after): (Cut, Option<u32>),
) {
    for peer in others(me, count) {
        for piece in pieces(whole, me, count, cut) {
            moves.send(peer, piece, [after, None]);
        }
    }
    for peer in others(me, count) {
        for piece in pieces(whole, peer, count, cut) {
            moves.copy(peer, piece);
        }
    }
}

/// All members get the sum of all.
pub(super) fn all_reduce(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    let after = scatter(moves, me, count, whole, cut);
    all_gather(moves, me, count, whole, (cut, after));
}
