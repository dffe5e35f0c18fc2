//! Double binary trees (specs/ai-jobs.md#1.2): two trees, each with half of the vector. Who is a
//! leaf in one has children in the other, so each link carries about as much both ways.

use super::Cut;
use super::moves::{Moves, Part};

/// A member's place in a tree.
struct Node {
    parent: Option<usize>,
    children: [Option<usize>; 2],
}

/// The place of `at` in the tree of `count` nodes with root 0. Node 2^k * odd stands k levels above
/// the leaves.
fn node(at: usize, count: usize) -> Node {
    if at == 0 {
        let top = count.next_power_of_two() / 2;
        return Node { parent: None, children: [(count > 1).then_some(top), None] };
    }
    let level = at & at.wrapping_neg();
    let above = (at ^ level) | (level << 1);
    let parent = if above < count { above } else { at ^ level };
    let mut down = level / 2;
    let left = (down > 0).then(|| at - down);
    // On the right, subtrees are cut off where there are no more nodes.
    while down > 0 && at + down >= count {
        down /= 2;
    }
    let right = (down > 0).then(|| at + down);
    Node { parent: Some(parent), children: [left, right] }
}

/// The place of member `me` in tree `tree` of two: the second is the first mirrored, or shifted by
/// one if `count` is odd.
fn of_member(me: usize, count: usize, tree: usize) -> Node {
    let is_mirrored = count.is_multiple_of(2);
    let (at, member): (usize, &dyn Fn(usize) -> usize) = match (tree, is_mirrored) {
        (0, _) => (me, &|at| at),
        (_, true) => (count - 1 - me, &|at| count - 1 - at),
        (_, false) => ((me + count - 1) % count, &|at| (at + 1) % count),
    };
    let Node { parent, children } = node(at, count);
    Node { parent: parent.map(member), children: children.map(|child| child.map(member)) }
}

/// All members get the sum of all.
pub(super) fn all_reduce(moves: &mut Moves, me: usize, count: usize, whole: Part, cut: Cut) {
    for tree in 0..2 {
        let half = whole.nth(tree as u64, 2);
        let pieces = cut.pieces(half.bytes);
        let Node { parent, children } = of_member(me, count, tree);
        // Upwards as soon as the children's are here, downwards as soon as the parent's is.
        for piece in 0..pieces {
            let part = half.nth(piece, pieces);
            let had = children.map(|child| child.map(|child| moves.reduce(child, part)));
            let had = match parent {
                Some(parent) => {
                    moves.send(parent, part, had);
                    [Some(moves.copy(parent, part)), None]
                }
                None => had,
            };
            for child in children.into_iter().flatten() {
                moves.send(child, part, had);
            }
        }
    }
}

/// All members get what `root` has: down one tree.
pub(super) fn broadcast(
    moves: &mut Moves,
    me: usize,
    count: usize,
    root: usize,
    whole: Part,
    cut: Cut,
) {
    let pieces = cut.pieces(whole.bytes);
    let Node { parent, children } = node((me + count - root) % count, count);
    let member = |at: usize| (at + root) % count;
    for piece in 0..pieces {
        let part = whole.nth(piece, pieces);
        let had = parent.map(|parent| moves.copy(member(parent), part));
        for child in children.into_iter().flatten() {
            moves.send(member(child), part, [had, None]);
        }
    }
}
