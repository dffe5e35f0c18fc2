//! The messages of a connection, and which of its packets are theirs (specs/uet.md#12).

use std::collections::VecDeque;

use endpoint::{Msg, MsgId};

/// A message at its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) msg: Msg,
    /// The numbers of its first packet and of the one after its last.
    pub(super) first: u64,
    pub(super) end: u64,
    /// The application has cancelled it: what was sent of it is all there is.
    cancelled: bool,
}

/// Messages at their sender that are not acknowledged, in order.
#[derive(Debug)]
pub(super) struct Leaving {
    pieces: VecDeque<Piece>,
    /// The number after the last packet of all.
    end: u64,
}

impl Leaving {
    /// `msg` with so many packets is the first.
    pub(super) fn new(msg: Msg, packets: u64) -> Self {
        let mut all = Self { pieces: VecDeque::new(), end: 0 };
        all.push(msg, packets);
        all
    }

    /// `msg` with so many packets comes next.
    pub(super) fn push(&mut self, msg: Msg, packets: u64) {
        let (first, end) = (self.end, self.end.saturating_add(packets));
        self.pieces.push_back(Piece { msg, first, end, cancelled: false });
        self.end = end;
    }

    /// How many packets there are and have been.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The message that packet `seq` is of.
    pub(super) fn of(&self, seq: u64) -> Option<&Piece> {
        let last = self.pieces.back()?;
        if seq >= last.first {
            return Some(last);
        }
        self.pieces.get(self.pieces.partition_point(|piece| piece.end <= seq))
    }

    /// The next message of which all packets are below `base`, unless it was cancelled.
    pub(super) fn pop(&mut self, base: u64) -> Option<MsgId> {
        while self.pieces.front()?.end <= base {
            let piece = self.pieces.pop_front()?;
            if !piece.cancelled {
                return Some(piece.msg.id);
            }
        }
        None
    }

    /// Message `id` ends with the last of its packets that is below `sent`. It as it was, if it is
    /// here.
    pub(super) fn cancel(&mut self, id: MsgId, sent: u64) -> Option<Piece> {
        let at = self.pieces.iter().position(|piece| piece.msg.id == id && !piece.cancelled)?;
        let before = self.pieces[at];
        let end = sent.clamp(before.first, before.end);
        let fewer = before.end - end;
        for piece in self.pieces.range_mut(at + 1..) {
            (piece.first, piece.end) = (piece.first - fewer, piece.end - fewer);
        }
        self.end -= fewer;
        match end > before.first {
            true => {
                (self.pieces[at].end, self.pieces[at].cancelled) = (end, true);
            }
            false => drop(self.pieces.remove(at)),
        }
        Some(before)
    }

    /// Message `id`, unless it was cancelled.
    pub(super) fn get(&self, id: MsgId) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.msg.id == id && !piece.cancelled)
    }

    /// Message `id` is shorter by so many packets and bytes.
    pub(super) fn shorten(&mut self, id: MsgId, packets: u64, bytes: u64) {
        let Some(at) = self.pieces.iter().position(|piece| piece.msg.id == id) else { return };
        self.pieces[at].msg.len -= bytes;
        self.pieces[at].end -= packets;
        for piece in self.pieces.range_mut(at + 1..) {
            (piece.first, piece.end) = (piece.first - packets, piece.end - packets);
        }
        self.end -= packets;
    }

    /// The messages that are not cancelled.
    pub(super) fn ids(&self) -> impl Iterator<Item = MsgId> {
        self.pieces.iter().filter(|piece| !piece.cancelled).map(|piece| piece.msg.id)
    }
}

/// A message at its receiver.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: MsgId,
    size: u64,
    first: u64,
    end: u64,
    /// The next message begins before its end: it was cancelled.
    cut: bool,
    /// It was shortened by so many bytes: packets sent before say a greater size.
    skipped: u64,
}

impl Known {
    /// Whether a packet that says so is of this message.
    fn is(&self, id: MsgId, size: u64) -> bool {
        self.id == id && size >= self.size && size - self.size <= self.skipped
    }
}

/// Messages at their receiver of which something has come, in order.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    known: VecDeque<Known>,
    /// The last that was taken out.
    last: Option<MsgId>,
}

impl Arriving {
    /// The connection of one message alone.
    pub(super) fn only(id: MsgId, size: u64, packets: u64) -> Self {
        let one = Known { id, size, first: 0, end: packets, cut: false, skipped: 0 };
        Self { known: VecDeque::from([one]), last: None }
    }

    /// Whether the first is `id`, of `size` bytes.
    pub(super) fn has(&self, id: MsgId, size: u64) -> bool {
        self.known.front().is_some_and(|one| one.is(id, size))
    }

    /// Whether the packets of the last that is known end here.
    pub(super) fn ends_at(&self, seq: u64) -> bool {
        self.known.back().is_some_and(|one| one.end == seq)
    }

    /// Packet `seq` has come, of message `id` with `size` bytes, whose packets are so many from
    /// `first` on. Whether that agrees with what is known: messages follow one another in the order
    /// of their ids, and one that begins before the end of another has cut it off.
    pub(super) fn put(
        &mut self,
        seq: u64,
        (id, size): (MsgId, u64),
        (first, packets): (u64, u64),
    ) -> bool {
        let at = self.known.partition_point(|one| one.first < first);
        if let Some(one) = self.known.get(at).filter(|one| one.first == first) {
            return one.is(id, size) && seq < one.end;
        }
        let before = at.checked_sub(1).and_then(|at| self.known.get(at));
        let (before, after) = (before.map(|one| one.id).or(self.last), self.known.get(at));
        let begins = after.map_or(u64::MAX, |one| one.first);
        let in_order =
            before.is_none_or(|before| before < id) && after.is_none_or(|one| id < one.id);
        if !in_order || seq >= begins {
            return false;
        }
        let end = first.saturating_add(packets);
        let (end, cut) = (end.min(begins), end > begins);
        self.known.insert(at, Known { id, size, first, end, cut, skipped: 0 });
        if let Some(before) = at.checked_sub(1).and_then(|at| self.known.get_mut(at))
            && before.end > first
        {
            (before.end, before.cut) = (first, true);
        }
        true
    }

    /// The next message of which all packets are below `prefix`, and whether it was cut off.
    pub(super) fn pop(&mut self, prefix: u64) -> Option<(MsgId, bool)> {
        let one = self.known.front().filter(|one| one.end <= prefix)?;
        let (id, cut) = (one.id, one.cut);
        self.known.pop_front();
        self.last = Some(id);
        Some((id, cut))
    }

    /// Message `id` is shorter by so many packets and bytes, if it is here.
    pub(super) fn shorten(&mut self, id: MsgId, packets: u64, bytes: u64) {
        if let Some(one) = self.known.iter_mut().find(|one| one.id == id) {
            one.size -= bytes;
            one.end -= packets;
            one.skipped += bytes;
        }
    }

    /// Those that are not complete.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = MsgId> {
        self.known.iter().map(|one| one.id)
    }
}

#[cfg(test)]
mod tests {
    use units::HostId;

    use super::*;

    fn msg(id: u64) -> Msg {
        Msg { id: MsgId(id), ..Msg::new(HostId(1), 1) }
    }

    #[test]
    fn packets_count_through_the_messages() {
        let mut all = Leaving::new(msg(4), 10);
        all.push(msg(6), 1);
        all.push(msg(7), 5);
        let of = |all: &Leaving, seq| all.of(seq).map(|piece| (piece.msg.id.0, piece.first));
        let found = [0, 9, 10, 11, 15].map(|seq| of(&all, seq).unwrap());
        assert_eq!(found, [(4, 0), (4, 0), (6, 10), (7, 11), (7, 11)]);
        assert_eq!((all.end(), all.pop(9)), (16, None));
        assert_eq!((all.pop(11), all.pop(11), all.pop(11)), (Some(MsgId(4)), Some(MsgId(6)), None));
        assert_eq!(of(&all, 12), Some((7, 11)));
    }

    #[test]
    fn of_a_cancelled_message_what_was_sent_is_left() {
        let mut all = Leaving::new(msg(4), 10);
        all.push(msg(6), 8);
        all.push(msg(7), 5);
        assert!(all.cancel(MsgId(6), 12).is_some() && all.cancel(MsgId(6), 12).is_none());
        assert_eq!(
            (all.end(), all.of(11).unwrap().msg.id, all.of(12).unwrap().msg.id.0),
            (17, MsgId(6), 7)
        );
        assert!(all.cancel(MsgId(7), 12).is_some(), "nothing of it was sent");
        assert_eq!((all.end(), all.ids().collect::<Vec<_>>()), (12, vec![MsgId(4)]));
        assert_eq!((all.pop(12), all.pop(12)), (Some(MsgId(4)), None));
    }

    #[test]
    fn messages_are_known_by_any_packet_of_theirs() {
        let mut all = Arriving::default();
        assert!(all.put(12, (MsgId(7), 5), (11, 5)) && all.put(3, (MsgId(4), 10), (0, 10)));
        assert!(all.put(10, (MsgId(6), 1), (10, 1)) && all.put(4, (MsgId(4), 10), (0, 10)));
        assert!(!all.put(5, (MsgId(4), 11), (0, 11)), "another length");
        assert!(!all.put(5, (MsgId(9), 5), (5, 3)), "not in the order of ids");
        assert!(!all.put(13, (MsgId(8), 9), (9, 9)), "another message is there");
        assert_eq!((all.pop(9), all.pop(11)), (None, Some((MsgId(4), false))));
        assert_eq!(
            (all.pop(11), all.pop(11), all.ends_at(16)),
            (Some((MsgId(6), false)), None, true)
        );
        assert!(!all.put(17, (MsgId(6), 1), (17, 1)), "delivered before");
    }

    #[test]
    fn of_a_shortened_message_packets_may_say_either_size() {
        let mut all = Arriving::default();
        assert!(all.put(3, (MsgId(4), 10), (0, 10)));
        all.shorten(MsgId(4), 5, 5);
        assert!(all.put(4, (MsgId(4), 10), (0, 10)) && all.put(4, (MsgId(4), 5), (0, 5)));
        assert!(!all.put(4, (MsgId(4), 11), (0, 11)) && !all.put(4, (MsgId(4), 4), (0, 4)));
        assert!(all.put(6, (MsgId(6), 3), (5, 3)), "the next follows");
        assert_eq!((all.pop(4), all.pop(5)), (None, Some((MsgId(4), false))));
        let mut leaving = Leaving::new(msg(4), 10);
        leaving.push(msg(6), 8);
        leaving.shorten(MsgId(4), 5, 0);
        let found = [4, 5].map(|seq| leaving.of(seq).map(|piece| (piece.msg.id.0, piece.first)));
        assert_eq!((found, leaving.end()), ([Some((4, 0)), Some((6, 5))], 13));
    }

    #[test]
    fn a_message_that_begins_early_cuts_off_the_one_before() {
        for early in [true, false] {
            let mut all = Arriving::default();
            let (a, b) = ((2, (MsgId(4), 10), (0, 10)), (6, (MsgId(6), 3), (6, 3)));
            for (seq, message, packets) in if early { [b, a] } else { [a, b] } {
                assert!(all.put(seq, message, packets));
            }
            assert!(!all.put(7, (MsgId(4), 10), (0, 10)), "no packet of it follows");
            assert_eq!((all.pop(9), all.pop(9)), (Some((MsgId(4), true)), Some((MsgId(6), false))));
        }
    }
}
