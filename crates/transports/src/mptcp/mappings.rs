//! What a subflow sends: pieces of its connection's data, each at a place in the subflow's own
//! sequence space that never changes (specs/mptcp.md#1).

use std::collections::VecDeque;
use std::ops::Range;

use endpoint::Effects;
use units::MsgId;
use wire::tcp::Control;

use crate::tcp::sender::Identity;
use crate::tcp::stream::{Segment, Source};

/// A piece of the connection's data, one segment of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Its first data sequence number.
    pub(super) dsn: u64,
    /// Payload bytes; none for a message without any, and for the mark of one given up.
    pub(super) len: u32,
    pub(super) msg: MsgId,
    /// Position in the message.
    pub(super) offset: u64,
    pub(super) control: Control,
}

impl Chunk {
    /// The first data sequence number after it.
    pub(super) fn end(&self) -> u64 {
        self.dsn + self.space()
    }

    fn space(&self) -> u64 {
        u64::from(self.len.max(1))
    }
}

/// Where a chunk is in the subflow's sequence space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    /// Its first subflow sequence number.
    ssn: u64,
    pub(super) chunk: Chunk,
    /// It has been queued for other subflows.
    pub(super) reinjected: bool,
}

impl Mapping {
    fn end(&self) -> u64 {
        self.ssn + self.chunk.space()
    }
}

/// The mappings of one subflow that are not acknowledged, and what may become the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    queue: VecDeque<Mapping>,
    /// The first subflow sequence number that is not taken.
    end: u64,
    /// What the scheduler offers: it is mapped when it is sent, not before.
    offered: Option<Chunk>,
    /// The message that the connection waits for.
    front: Option<MsgId>,
}

impl Mappings {
    /// From now on `chunk` is what would be sent next after everything mapped; `front` is the
    /// message that the connection waits for.
    pub(super) fn offer(&mut self, chunk: Option<Chunk>, front: Option<MsgId>) {
        (self.offered, self.front) = (chunk, front);
    }

    /// Whether `segment` is the one offered.
    pub(super) fn is_new(&self, segment: &Segment) -> bool {
        segment.seq == self.end
    }

    /// What was offered is being sent: map it.
    pub(super) fn map(&mut self) -> Option<Chunk> {
        let chunk = self.offered.take()?;
        let mapping = Mapping { ssn: self.end, chunk, reinjected: false };
        self.end = mapping.end();
        self.queue.push_back(mapping);
        Some(chunk)
    }

    /// The data sequence number of what is at subflow position `seq`.
    pub(super) fn dsn(&self, seq: u64) -> Option<u64> {
        self.at(seq).map(|m| m.chunk.dsn + (seq - m.ssn))
    }

    /// Everything mapped that is not acknowledged, oldest first.
    pub(super) fn outstanding(&mut self) -> impl Iterator<Item = &mut Mapping> {
        self.queue.iter_mut()
    }

    /// Whether what begins at data sequence number `dsn` is outstanding here.
    pub(super) fn holds(&self, dsn: u64) -> bool {
        self.queue.iter().any(|m| m.chunk.dsn == dsn)
    }

    /// The mapping that position `seq` is in. Most often there is none yet, or it is the first.
    fn at(&self, seq: u64) -> Option<&Mapping> {
        if seq >= self.end {
            return None;
        }
        match self.queue.front() {
            Some(first) if seq < first.end() => Some(first),
            _ => self.queue.get(self.queue.partition_point(|m| m.end() <= seq)),
        }
    }
}

impl Source for Mappings {
    fn clear(&mut self) {
        self.queue.clear();
        (self.end, self.offered, self.front) = (0, None, None);
    }

    fn in_front(&self) -> Option<MsgId> {
        self.queue.front().map(|m| m.chunk.msg).or(self.front)
    }

    /// From the beginning of the message, as far as that came this way, to the end of what is
    /// mapped.
    fn first(&self) -> Option<Range<u64>> {
        let first = self.queue.front()?;
        Some(first.ssn.saturating_sub(first.chunk.offset)..self.end)
    }

    fn cut_before(&self, seq: u64, _: u64) -> Option<u64> {
        self.at(seq).map(|m| m.ssn)
    }

    fn segment_at(&self, seq: u64, _: &Identity) -> Option<Segment> {
        let (start, chunk) = match self.at(seq) {
            Some(m) => (m.ssn, m.chunk),
            None => (self.end, self.offered?),
        };
        // Acknowledgements end at the ends of segments, unless somebody invents them.
        let skip = seq - start;
        let Chunk { len, msg, offset, control, .. } = chunk;
        let (len, offset) = (len.saturating_sub(skip as u32), offset + skip);
        Some(Segment { seq, len, msg, offset, control, echo: 0, again: false })
    }

    fn acknowledged(&mut self, una: u64, _: &mut Effects) {
        while self.queue.front().is_some_and(|m| m.end() <= una) {
            self.queue.pop_front();
        }
    }
}
