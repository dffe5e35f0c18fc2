//! The three queues of packetization: packets of a message that may be sent, in the order in which
//! they were permitted (specs/nanotransport.md#6.1).

use std::collections::VecDeque;

use endpoint::MsgId;
use units::{Dur, Time};

/// Why packets are sent; the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// The application has written them.
    Initial,
    /// There is credit for them.
    Credit,
    /// They were not acknowledged in time.
    Timeout,
}

/// Some packets of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    /// When it came in.
    pub(super) at: Time,
    /// Where the message is kept.
    pub(super) place: usize,
    /// Which message: if another one is there by now, this one is over.
    pub(super) id: MsgId,
    /// Bit i: packet i.
    pub(super) packets: u64,
    /// They are sent again, in the eyes of what permitted them.
    pub(super) repeated: bool,
}

/// One packet, chosen to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) place: usize,
    pub(super) packet: u16,
    pub(super) repeated: bool,
}

/// The queues.
#[derive(Debug)]
pub(super) struct Descriptors {
    queues: [VecDeque<Descriptor>; 3],
    /// How many wait in each at most.
    places: usize,
}

impl Descriptors {
    pub(super) const fn new(places: usize) -> Self {
        Self { queues: [const { VecDeque::new() }; 3], places }
    }

    /// Whether there is a place for it.
    pub(super) fn push(&mut self, rank: Rank, descriptor: Descriptor) -> bool {
        let queue = &mut self.queues[rank as usize];
        if queue.len() == self.places {
            return false;
        }
        queue.push_back(descriptor);
        true
    }

    /// The packet that goes next of those that have been in the pipeline for `egress` at `now`: of
    /// each descriptor the lowest first, one descriptor after another. `id_of` says which message
    /// is kept where.
    pub(super) fn next(
        &mut self,
        now: Time,
        egress: Dur,
        id_of: impl Fn(usize) -> Option<MsgId>,
    ) -> Option<Next> {
        for queue in &mut self.queues {
            while let Some(first) = queue.front_mut().filter(|first| first.at + egress <= now) {
                let Descriptor { place, repeated, packets, id, .. } = *first;
                if id_of(place) != Some(id) {
                    queue.pop_front();
                    continue;
                }
                first.packets &= packets - 1;
                if first.packets == 0 {
                    queue.pop_front();
                }
                return Some(Next { place, packet: packets.trailing_zeros() as u16, repeated });
            }
        }
        None
    }

    /// When the first came in of the fronts that are `alive`.
    pub(super) fn waiting(&self, alive: impl Fn(usize, MsgId) -> bool) -> Option<Time> {
        let fronts = self.queues.iter().filter_map(VecDeque::front);
        fronts.filter(|front| alive(front.place, front.id)).map(|front| front.at).min()
    }

    /// Whether a front is not.
    pub(super) fn has_dead(&self, alive: impl Fn(usize, MsgId) -> bool) -> bool {
        self.queues.iter().filter_map(VecDeque::front).any(|front| !alive(front.place, front.id))
    }

    /// Fronts that are not `alive` go, one of each queue in a cycle; of the others the first that
    /// came before `cycle` gives a packet, if one is `wanted` (docs/nic.md, C8).
    pub(super) fn in_cycle(
        &mut self,
        cycle: Time,
        wanted: bool,
        alive: impl Fn(usize, MsgId) -> bool,
    ) -> Option<Next> {
        let mut next = None;
        for queue in &mut self.queues {
            let Some(front) = queue.front_mut() else { continue };
            let Descriptor { at, place, id, packets, repeated } = *front;
            if !alive(place, id) {
                queue.pop_front();
            } else if wanted && next.is_none() && at < cycle {
                next = Some(Next { place, packet: packets.trailing_zeros() as u16, repeated });
                front.packets &= packets - 1;
                queue.pop_front_if(|front| front.packets == 0);
            }
        }
        next
    }

    /// When the first came in that is still there.
    pub(super) fn first(&self) -> Option<Time> {
        self.queues.iter().filter_map(VecDeque::front).map(|first| first.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(at: u64, place: usize, packets: u64) -> Descriptor {
        Descriptor { at: Time(at), place, id: MsgId(place as u64), packets, repeated: false }
    }

    #[test]
    fn a_descriptor_is_drained_before_the_next_but_a_higher_queue_goes_between() {
        let mut queues = Descriptors::new(usize::MAX);
        queues.push(Rank::Timeout, descriptor(0, 1, 0b101));
        queues.push(Rank::Timeout, descriptor(0, 2, 0b1));
        queues.push(Rank::Credit, descriptor(3, 3, 0b10));
        queues.push(Rank::Initial, descriptor(5, 4, 0b1));
        let id_of = |place| Some(MsgId(place as u64));
        let next = |queues: &mut Descriptors, now| {
            queues.next(Time(now), Dur(10), id_of).map(|next| (next.place, next.packet))
        };
        assert_eq!(next(&mut queues, 9), None, "the pipeline takes 10");
        assert_eq!(queues.first(), Some(Time(0)));
        let order: Vec<_> = [10, 13, 14, 15, 16, 17].map(|now| next(&mut queues, now)).to_vec();
        let expected = [(1, 0), (3, 1), (1, 2), (4, 0), (2, 0)].map(Some);
        assert_eq!(order[..5], expected);
        assert_eq!((order[5], queues.first()), (None, None));
    }

    #[test]
    fn packets_of_a_message_that_is_over_are_skipped() {
        let mut queues = Descriptors::new(usize::MAX);
        queues.push(Rank::Credit, descriptor(0, 1, 0b111));
        queues.push(Rank::Credit, descriptor(0, 2, 0b1));
        let id_of = |place| (place != 1).then_some(MsgId(place as u64));
        let next = queues.next(Time(0), Dur(0), id_of).unwrap();
        assert_eq!((next.place, queues.first()), (2, None));
    }
}
