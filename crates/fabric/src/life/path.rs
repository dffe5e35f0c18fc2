//! What a message's time was spent on, from its submission up to some instant.

use std::sync::Arc;

use endpoint::{Cause, Segment};
use units::Dur;

/// The way of a message back from some instant to its submission, summed up, and on request in
/// segments. Paths that share their beginning share its memory.
#[derive(Clone)]
pub(super) struct Path {
    spent: [Dur; Cause::COUNT],
    /// `None`: only the sums are wanted.
    trail: Option<Trail>,
}

impl Path {
    /// Nothing has happened yet.
    pub(super) fn new(segments: bool) -> Self {
        Self { spent: [Dur::ZERO; Cause::COUNT], trail: segments.then(|| Trail(None)) }
    }

    /// One more segment, which begins where the last one ended.
    pub(super) fn spend(&mut self, segment: Segment) {
        if segment.length == Dur::ZERO {
            return;
        }
        self.spent[segment.cause as usize] += segment.length;
        if let Some(trail) = &mut self.trail {
            let before = Trail(trail.0.take());
            trail.0 = Some(Arc::new(Node { segment, before }));
        }
    }

    pub(super) fn spent(&self) -> &[Dur; Cause::COUNT] {
        &self.spent
    }

    pub(super) fn total(&self) -> Dur {
        self.spent.iter().fold(Dur::ZERO, |sum, part| sum + *part)
    }

    /// The segments, the first one first.
    pub(super) fn segments(&self) -> Vec<Segment> {
        let mut all = Vec::new();
        let mut next = self.trail.as_ref().and_then(|trail| trail.0.as_ref());
        while let Some(node) = next {
            all.push(node.segment);
            next = node.before.0.as_ref();
        }
        all.reverse();
        all
    }
}

/// Segments, the last one first.
#[derive(Clone)]
struct Trail(Option<Arc<Node>>);

struct Node {
    segment: Segment,
    before: Trail,
}

/// One by one: a trail may have more segments than a thread's stack has room for.
impl Drop for Trail {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(node) = next {
            next = Arc::into_inner(node).and_then(|mut node| node.before.0.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use endpoint::Place;
    use units::{HostId, Time};

    use super::*;

    fn segment(n: u64) -> Segment {
        let place = Place::Host(HostId(0));
        Segment { at: Time(n), length: Dur(1), cause: Cause::Pacing, place, packet: None }
    }

    #[test]
    fn a_long_path_is_summed_shared_and_dropped_without_recursion() {
        let mut path = Path::new(true);
        (0..500_000).for_each(|n| path.spend(segment(n)));
        let mut other = path.clone();
        other.spend(segment(500_000));
        drop(path);
        assert_eq!(other.total(), Dur(500_001));
        assert!(other.segments().iter().map(|s| s.at.0).eq(0..=500_000));
    }

    #[test]
    fn without_segments_only_sums_are_kept() {
        let mut path = Path::new(false);
        path.spend(segment(3));
        path.spend(Segment { length: Dur::ZERO, ..segment(4) });
        assert_eq!((path.total(), path.segments().len()), (Dur(1), 0));
    }
}
