//! Receives from any source or with any tag.
//!
//! LogGOPSim gives such a receive the first message that arrives. Here the sends of the file are
//! dealt out before the run: receives that name source and tag first, then the others in the order
//! of the file, each the first send left to it by source, then by tag. Where that makes tasks wait
//! for each other, an error names them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Block, Op, What};
use crate::readers::Warnings;

const DEALT: &str = "receives from any source or with any tag; they get the first send of the \
                     file that fits, not the first to arrive";

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
                left.add(src, tag);
            }
        }
    }
    for (block, left) in blocks.iter_mut().zip(&mut left) {
        let Some(left) = left else { continue };
        for op in block.ops.iter().filter(|op| op.what == What::Recv) {
            if let (Some(src), Some(tag)) = (op.peer, op.tag) {
                left.take(src, tag);
            }
        }
        for op in block.ops.iter_mut().filter(|op| is_open(op)) {
            warnings.count(DEALT);
            let (src, tag) = left.first(op.peer, op.tag).ok_or(op.at)?;
            left.take(src, tag);
            (op.peer, op.tag) = (Some(src), Some(tag));
        }
    }
    Ok(())
}

/// The sends to a rank that no receive has yet.
#[derive(Default)]
struct Left {
    by_source: BTreeMap<(u32, u32), u64>,
    by_tag: BTreeSet<(u32, u32)>,
}

impl Left {
    fn add(&mut self, src: u32, tag: u32) {
        *self.by_source.entry((src, tag)).or_default() += 1;
        self.by_tag.insert((tag, src));
    }

    fn take(&mut self, src: u32, tag: u32) {
        let Some(count) = self.by_source.get_mut(&(src, tag)) else { return };
        *count -= 1;
        if *count == 0 {
            self.by_source.remove(&(src, tag));
            self.by_tag.remove(&(tag, src));
        }
    }

    fn first(&self, src: Option<u32>, tag: Option<u32>) -> Option<(u32, u32)> {
        match (src, tag) {
            (None, Some(tag)) => {
                let range = (tag, 0)..=(tag, u32::MAX);
                self.by_tag.range(range).next().map(|&(tag, src)| (src, tag))
            }
            (Some(src), None) => {
                let range = (src, 0)..=(src, u32::MAX);
                self.by_source.range(range).next().map(|(&found, _)| found)
            }
            _ => self.by_source.first_key_value().map(|(&found, _)| found),
        }
    }
}
