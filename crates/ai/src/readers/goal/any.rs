//! Receives from any source or with any tag.
//!
//! LogGOPSim gives such a receive the first message that arrives, whatever its size. Here the sends
//! of the file are dealt out before the run. A rank's receives get theirs in the order of the file,
//! and the n-th send of a source with one tag is for the n-th receive that gets one of these. So
//! one from anywhere gets, of the sends that are next in their turn and that no receive names which
//! comes later, the first of its own size by source, then by tag; if none has its size, the first
//! of all, with the size of that. Where it makes tasks wait for each other, an error names them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Block, Op, What};
use crate::readers::Warnings;

const DEALT: &str = "receives from any source or with any tag; they get the first send of the \
                     file that fits, not the first to arrive";

const RESIZED: &str = "receives from any source or with any tag whose size no send has that is \
                       left; they have the size of the one that they get";

/// Put numbers where receives have none.
///
/// # Errors
/// The byte of a receive for which no send is left.
pub(super) fn resolve(blocks: &mut [Block], warnings: &mut Warnings) -> Result<(), usize> {
    let is_open = |op: &Op| op.what == What::Recv && (op.peer.is_none() || op.tag.is_none());
    let mut left: Vec<Option<Left>> = Vec::new();
    for block in &*blocks {
        left.push(block.ops.iter().any(is_open).then(Left::default));
    }
    if left.iter().all(Option::is_none) {
        return Ok(());
    }
    for (src, block) in (0..).zip(&*blocks) {
        for op in block.ops.iter().filter(|op| op.what == What::Send) {
            let dst = op.peer.and_then(|dst| left.get_mut(dst as usize));
            if let (Some(Some(left)), Some(tag)) = (dst, op.tag) {
                left.lines.entry((src, tag)).or_default().sizes.push_back(op.size);
            }
        }
    }
    for (block, left) in blocks.iter_mut().zip(&mut left) {
        let Some(left) = left else { continue };
        for op in block.ops.iter().filter(|op| op.what == What::Recv) {
            left.promise(op);
        }
        left.offer_all();
        for op in block.ops.iter_mut().filter(|op| op.what == What::Recv) {
            if let (Some(src), Some(tag)) = (op.peer, op.tag) {
                left.take_promised((src, tag));
                continue;
            }
            warnings.count(DEALT);
            let (src, tag) = left.choose(op).ok_or(op.at)?;
            let size = left.take((src, tag)).unwrap_or(op.size);
            if size != op.size {
                warnings.count(RESIZED);
            }
            (op.peer, op.tag, op.size) = (Some(src), Some(tag), size);
        }
    }
    Ok(())
}

/// A source and a tag.
type Line = (u32, u32);

/// The sends of a source with one tag that no receive has yet.
#[derive(Default)]
struct Sends {
    /// In order.
    sizes: VecDeque<u64>,
    /// How many receives to come name this source and tag.
    promised: usize,
}

/// The sends to a rank that no receive has yet.
#[derive(Default)]
struct Left {
    lines: BTreeMap<Line, Sends>,
    /// Of the lines with more sends than are promised: source and tag, and the reverse, ...
    by_source: BTreeSet<Line>,
    by_tag: BTreeSet<Line>,
    /// ... and the same after the size of the next send.
    sized: BTreeSet<(u64, u32, u32)>,
    sized_by_tag: BTreeSet<(u64, u32, u32)>,
}

impl Left {
    /// `op` will take a send of the line that it names, if it names one.
    fn promise(&mut self, op: &Op) {
        if let (Some(src), Some(tag)) = (op.peer, op.tag)
            && let Some(sends) = self.lines.get_mut(&(src, tag))
        {
            sends.promised += 1;
        }
    }

    fn offer_all(&mut self) {
        for line in self.lines.keys().copied().collect::<Vec<_>>() {
            self.offer(line);
        }
    }

    /// Let receives from anywhere find `line`, if it has a send for them.
    fn offer(&mut self, line: Line) {
        let Some(sends) = self.lines.get(&line) else { return };
        let Some(&size) = sends.sizes.front().filter(|_| sends.sizes.len() > sends.promised) else {
            return;
        };
        let (src, tag) = line;
        self.by_source.insert((src, tag));
        self.by_tag.insert((tag, src));
        self.sized.insert((size, src, tag));
        self.sized_by_tag.insert((size, tag, src));
    }

    /// Take the next send of `line`: its size.
    fn take(&mut self, line: Line) -> Option<u64> {
        let size = self.lines.get_mut(&line)?.sizes.pop_front()?;
        let (src, tag) = line;
        self.by_source.remove(&(src, tag));
        self.by_tag.remove(&(tag, src));
        self.sized.remove(&(size, src, tag));
        self.sized_by_tag.remove(&(size, tag, src));
        self.offer(line);
        Some(size)
    }

    fn take_promised(&mut self, line: Line) {
        if let Some(sends) = self.lines.get_mut(&line) {
            sends.promised = sends.promised.saturating_sub(1);
        }
        self.take(line);
    }

    /// The line whose next send is for `op`.
    fn choose(&self, op: &Op) -> Option<Line> {
        let (size, from, to) = (op.size, 0, u32::MAX);
        let sized = |set: &BTreeSet<(u64, u32, u32)>, (a, b): (u32, u32), (c, d): (u32, u32)| {
            set.range((size, a, b)..=(size, c, d)).next().map(|&(_, x, y)| (x, y))
        };
        let any = |set: &BTreeSet<Line>, a: u32| set.range((a, from)..=(a, to)).next().copied();
        let swap = |(tag, src): (u32, u32)| (src, tag);
        match (op.peer, op.tag) {
            (None, Some(tag)) => sized(&self.sized_by_tag, (tag, from), (tag, to))
                .or_else(|| any(&self.by_tag, tag))
                .map(swap),
            (Some(src), None) => {
                sized(&self.sized, (src, from), (src, to)).or_else(|| any(&self.by_source, src))
            }
            _ => sized(&self.sized, (from, from), (to, to))
                .or_else(|| self.by_source.first().copied()),
        }
    }
}
