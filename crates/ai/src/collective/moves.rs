//! [`Moves`]: the sends and receives of one member of a collective, and what they wait for.

use std::collections::VecDeque;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// No move.
const NONE: u32 = u32::MAX;

/// A part of the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Part {
    /// Number `n` of `count` parts of it, which are equal within a byte.
    pub(super) fn nth(self, n: u64, count: u64) -> Self {
        let at = |n: u64| (u128::from(self.bytes) * u128::from(n) / u128::from(count)) as u64;
        Self { offset: self.offset + at(n), bytes: at(n + 1) - at(n) }
    }

    /// Parts `from` up to `to` of `count`, as one.
    pub(super) fn span(self, from: u64, to: u64, count: u64) -> Self {
        let (first, end) = (self.nth(from, count), self.nth(to - 1, count));
        Self { offset: first.offset, bytes: end.offset + end.bytes - first.offset }
    }
}

/// What a move does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Send.
    Send,
    /// Receive, and add to what is there.
    Reduce,
    /// Receive, in place of what is there.
    Copy,
    /// Nothing: a point at which others meet.
    Join,
}

/// A send or a receive.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// What it does.
    pub act: Act,
    /// On which channel.
    pub channel: u32,
    /// With which member; of a join, 0.
    pub peer: u32,
    /// Where in the vector its bytes are.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Moves that end before it begins.
    after: [u32; 3],
}

impl Move {
    /// The moves that end before it begins: a receive when it is there, a send when it is
    /// acknowledged.
    pub fn after(&self) -> impl Iterator<Item = u32> {
        self.after.into_iter().filter(|&index| index != NONE)
    }
}

/// The moves of one member.
#[derive(Clone, Debug)]
pub struct Moves {
    list: Vec<Move>,
    channel: u32,
    in_flight: u32,
    /// By channel and peer: the last sends there, as many as may be in flight.
    last: HashMap<(u32, u32), VecDeque<u32>, FxBuildHasher>,
}

impl Moves {
    pub(super) fn new(in_flight: u32) -> Self {
        Self { list: Vec::new(), channel: 0, in_flight: in_flight.max(1), last: HashMap::default() }
    }

    /// All of them.
    #[must_use]
    pub fn as_slice(&self) -> &[Move] {
        &self.list
    }

    /// What follows is on this channel.
    pub(super) fn on_channel(&mut self, channel: u32) {
        self.channel = channel;
    }

    fn push(&mut self, act: Act, peer: usize, part: Part, after: [Option<u32>; 3]) -> u32 {
        let index = self.list.len() as u32;
        let after = after.map(|after| after.unwrap_or(NONE));
        let (peer, channel) = (peer as u32, self.channel);
        let Part { offset, bytes } = part;
        self.list.push(Move { act, channel, peer, offset, bytes, after });
        index
    }

    /// Send `part` to `peer` after two others at most.
    pub(super) fn send(&mut self, peer: usize, part: Part, after: [Option<u32>; 2]) -> u32 {
        let [first, second] = after;
        let limit = self.in_flight as usize;
        let last = self.last.entry((self.channel, peer as u32)).or_default();
        let oldest = if last.len() >= limit { last.pop_front() } else { None };
        let index = self.push(Act::Send, peer, part, [first, second, oldest]);
        if limit < u32::MAX as usize {
            self.last.entry((self.channel, peer as u32)).or_default().push_back(index);
        }
        index
    }

    /// Receive `part` from `peer` and add it to what is there.
    pub(super) fn reduce(&mut self, peer: usize, part: Part) -> u32 {
        self.push(Act::Reduce, peer, part, [None; 3])
    }

    /// Receive `part` from `peer`.
    pub(super) fn copy(&mut self, peer: usize, part: Part) -> u32 {
        self.push(Act::Copy, peer, part, [None; 3])
    }

    /// A point after all of `moves`; none if there are none.
    pub(super) fn join(&mut self, moves: impl IntoIterator<Item = u32>) -> Option<u32> {
        let nothing = Part { offset: 0, bytes: 0 };
        let mut moves = moves.into_iter();
        let mut last = moves.next()?;
        while let Some(second) = moves.next() {
            last = self.push(Act::Join, 0, nothing, [Some(last), Some(second), moves.next()]);
        }
        Some(last)
    }
}
