//! What a queue pair carries: messages one after the other, cut into packets and segments.
//!
//! Packets are numbered from zero; only the header wraps. A message has one packet at least, also
//! without any bytes; one given up half-way has those that were sent, and one more that says so. A
//! segment never spans two messages, and is always cut at the same places.

use std::collections::VecDeque;
use std::ops::Range;

use endpoint::{Effects, FailReason, UNBOUNDED};
use units::{HostId, MsgId, MsgKey};
use wire::roce::Part;

/// How messages are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Payload of a full packet, at least 1.
    pub(super) payload: u64,
    /// Bytes on the wire beside it.
    pub(super) overhead: u64,
    /// Packets of a full segment, at least 1.
    pub(super) segment: u64,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    id: MsgId,
    /// Its first packet.
    start: u64,
    /// How many it has.
    packets: u64,
    /// Bytes to send: those of the message, or those that were sent when it was given up.
    len: u64,
    /// It ends with a packet that says that it was given up.
    given_up: bool,
    /// Nothing of it is sent any more, though it keeps its numbers.
    abandoned: bool,
    /// Its end has been reported to the application.
    reported: bool,
}

/// A message all of whose packets are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) id: MsgId,
    /// It is not whole.
    pub(super) abandoned: bool,
    /// Its end has been reported to the application before.
    pub(super) reported: bool,
}

impl Outgoing {
    fn end(&self) -> u64 {
        self.start + self.packets
    }
}

/// A packet of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) msg: MsgId,
    /// Position in the message.
    pub(super) offset: u64,
    /// Payload bytes.
    pub(super) len: u32,
    /// Its place in the segment.
    pub(super) part: Part,
    /// It is the last of its message.
    pub(super) ends_message: bool,
    /// Its message ends with it, not whole.
    pub(super) given_up: bool,
}

/// The messages of one queue pair that are not acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    cut: Cut,
    messages: VecDeque<Outgoing>,
    /// The first packet after all of them.
    end: u64,
}

impl Stream {
    pub(super) fn new(cut: Cut) -> Self {
        Self { cut, messages: VecDeque::new(), end: 0 }
    }

    /// Begin anew, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.end = 0;
    }

    /// Whether every message has ended.
    pub(super) fn is_done(&self) -> bool {
        self.messages.is_empty()
    }

    /// The first packet after all messages.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The message that is acknowledged next.
    pub(super) fn in_front(&self) -> Option<MsgId> {
        self.messages.front().map(|m| m.id)
    }

    pub(super) fn submit(&mut self, id: MsgId, len: u64) {
        let packets = len.div_ceil(self.cut.payload).max(1);
        let start = self.end;
        self.end = start.saturating_add(packets);
        let (given_up, abandoned, reported) = (false, false, false);
        let message = Outgoing { id, start, packets, len, given_up, abandoned, reported };
        self.messages.push_back(message);
    }

    /// The message that packet `psn` is of, if that is not over. Most often it is the first.
    fn message_at(&self, psn: u64) -> Option<&Outgoing> {
        let message = match self.messages.front() {
            Some(first) if psn < first.end() => Some(first),
            _ => self.messages.get(self.messages.partition_point(|m| m.end() <= psn)),
        };
        message.filter(|m| m.start <= psn)
    }

    /// Packet `psn`.
    pub(super) fn piece(&self, psn: u64) -> Option<Piece> {
        let Cut { payload, segment, .. } = self.cut;
        let m = self.message_at(psn)?;
        let at = psn - m.start;
        if m.abandoned {
            let (msg, part) = (m.id, Part::Only);
            return Some(Piece {
                msg,
                offset: 0,
                len: 0,
                part,
                ends_message: true,
                given_up: true,
            });
        }
        let offset = m.len.min(at.saturating_mul(payload));
        let ends_message = at + 1 == m.packets;
        let part =
            match (at.is_multiple_of(segment), ends_message || (at + 1).is_multiple_of(segment)) {
                (true, true) => Part::Only,
                (true, false) => Part::First,
                (false, true) => Part::Last,
                (false, false) => Part::Middle,
            };
        // At most the 16 bits of `payload`.
        let len = (m.len - offset).min(payload) as u32;
        Some(Piece {
            msg: m.id,
            offset,
            len,
            part,
            ends_message,
            given_up: ends_message && m.given_up,
        })
    }

    /// The first packet after the segment that `psn` is in.
    pub(super) fn segment_end(&self, psn: u64) -> u64 {
        let Some(m) = self.message_at(psn) else { return psn };
        let segments = (psn - m.start) / self.cut.segment + 1;
        m.end().min(m.start.saturating_add(segments.saturating_mul(self.cut.segment)))
    }

    /// Bytes on the wire of `packets`.
    pub(super) fn wire_bytes(&self, packets: Range<u64>) -> u64 {
        let Cut { payload, overhead, .. } = self.cut;
        let first = self.messages.partition_point(|m| m.end() <= packets.start);
        let inside = self.messages.iter().skip(first).take_while(|m| m.start < packets.end);
        let bytes = inside.map(|m| {
            let from = packets.start.max(m.start) - m.start;
            let to = packets.end.min(m.end()) - m.start;
            let before = |packet: u64| m.len.min(packet.saturating_mul(payload));
            before(to) - before(from) + (to - from) * overhead
        });
        bytes.sum()
    }

    /// Take out the first message, if everything of it is before packet `una`.
    pub(super) fn pop_ended(&mut self, una: u64) -> Option<Ended> {
        let m = self.messages.pop_front_if(|m| m.end() <= una)?;
        Some(Ended { id: m.id, abandoned: m.abandoned, reported: m.reported })
    }

    /// The messages, each with its first packet and its length.
    pub(super) fn messages(&self) -> impl Iterator<Item = (MsgId, u64, u64)> {
        self.messages.iter().map(|m| (m.id, m.start, m.len))
    }

    /// Send nothing of message `id` any more, which is as good as acknowledged by its first packet
    /// that is asked for; false if it is not here, or has been given up before.
    pub(super) fn abandon(&mut self, id: MsgId) -> bool {
        let Some(m) = self.messages.iter_mut().find(|m| m.id == id && !m.reported) else {
            return false;
        };
        (m.abandoned, m.reported) = (true, true);
        true
    }

    /// The message that packet `psn` is of will not be whole. Returns the first packet after it.
    pub(super) fn skip(&mut self, psn: u64) -> u64 {
        let i = self.messages.partition_point(|m| m.end() <= psn);
        let Some(m) = self.messages.get_mut(i) else { return psn };
        m.abandoned = true;
        m.end()
    }

    /// The first packet after the message that packet `psn` is of, if that has been given up.
    pub(super) fn abandoned_end(&self, psn: u64) -> Option<u64> {
        self.message_at(psn).filter(|m| m.abandoned).map(Outgoing::end)
    }

    /// Fail every message, sent by host `src`.
    pub(super) fn fail(&mut self, src: HostId, why: FailReason, fx: &mut Effects) {
        for m in self.messages.drain(..).filter(|m| !m.reported) {
            fx.failed(MsgKey { src, id: m.id }, why);
        }
    }

    /// Whether message `id` is here and has not ended.
    pub(super) fn holds(&self, id: MsgId) -> bool {
        self.messages.iter().any(|m| m.id == id && !m.reported)
    }

    /// Give message `id` up, of which packets before `sent` have been sent; false if it is not
    /// here, or has been given up before.
    pub(super) fn cancel(&mut self, id: MsgId, sent: u64) -> bool {
        let Some(i) = self.messages.iter().position(|m| m.id == id && !m.reported) else {
            return false;
        };
        let m = &mut self.messages[i];
        m.reported = true;
        if m.start >= sent {
            let start = m.start;
            self.messages.remove(i);
            self.renumber(i, start);
        } else if m.end() > sent {
            m.packets = sent - m.start + 1;
            m.len = m.len.min((sent - m.start).saturating_mul(self.cut.payload));
            m.given_up = true;
            let next = m.end();
            self.renumber(i + 1, next);
        }
        true
    }

    /// Bytes of whole segments of message `id` from packet `sent` on, which begins one, but for the
    /// last segment.
    pub(super) fn unsent(&self, id: MsgId, sent: u64) -> Option<u64> {
        let Cut { payload, segment, .. } = self.cut;
        let m = self.messages.iter().find(|m| m.id == id && !m.reported)?;
        if m.len == UNBOUNDED {
            return Some(UNBOUNDED);
        }
        let packets = m.end().saturating_sub(sent.max(m.start) + segment);
        Some(packets / segment * segment * payload)
    }

    /// Take up to `bytes` of that out. How many were taken.
    pub(super) fn shorten(&mut self, id: MsgId, sent: u64, bytes: u64) -> u64 {
        let Cut { payload, segment, .. } = self.cut;
        let unsent = self.unsent(id, sent).unwrap_or(0).min(bytes);
        let packets = unsent / (payload * segment) * segment;
        if let Some(i) = self.messages.iter().position(|m| m.id == id) {
            let m = &mut self.messages[i];
            m.packets -= packets;
            m.len -= packets * payload;
            let next = m.end();
            self.renumber(i + 1, next);
        }
        packets * payload
    }

    /// Let messages from the `i`-th on begin at packet `next`.
    fn renumber(&mut self, i: usize, mut next: u64) {
        for m in self.messages.iter_mut().skip(i) {
            m.start = next;
            next = next.saturating_add(m.packets);
        }
        self.end = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUT: Cut = Cut { payload: 1000, overhead: 62, segment: 4 };

    fn stream(messages: &[u64]) -> Stream {
        let mut stream = Stream::new(CUT);
        for (id, len) in (0..).zip(messages) {
            stream.submit(MsgId(id), *len);
        }
        stream
    }

    #[test]
    fn segments_end_with_their_message_and_bytes_add_up() {
        let stream = stream(&[5_500, 0, 4_000]);
        let parts: Vec<Part> = (0..11).map(|psn| stream.piece(psn).unwrap().part).collect();
        use Part::{First, Last, Middle, Only};
        let message = [First, Middle, Middle, Last];
        assert_eq!(parts, [&message[..], &[First, Last], &[Only], &message].concat());
        let ends: Vec<u64> = (0..12).map(|psn| stream.segment_end(psn)).collect();
        assert_eq!(ends, [4, 4, 4, 4, 6, 6, 7, 11, 11, 11, 11, 11]);
        for to in 0..=11 {
            let each: u64 = (0..to).map(|psn| u64::from(stream.piece(psn).unwrap().len) + 62).sum();
            assert_eq!(stream.wire_bytes(0..to), each);
        }
        assert_eq!(stream.wire_bytes(5..8), 500 + 1000 + 3 * 62);
        assert_eq!(stream.piece(11), None);
    }

    #[test]
    fn a_message_is_shortened_by_whole_segments_that_were_not_sent() {
        let mut stream = stream(&[25_500, 700]);
        assert_eq!(stream.unsent(MsgId(0), 8), Some(12_000), "14 packets are left, less a segment");
        assert_eq!(stream.shorten(MsgId(0), 8, 7_999), 4_000);
        assert_eq!((stream.end(), stream.segment_end(8)), (23, 12));
        let last = stream.piece(21).unwrap();
        assert!(last.ends_message && last.len == 500 && last.offset == 21_000);
        assert_eq!(stream.piece(22).unwrap().msg, MsgId(1), "the next follows");
        assert_eq!(stream.shorten(MsgId(0), 8, u64::MAX), 8_000);
        assert_eq!((stream.unsent(MsgId(0), 8), stream.unsent(MsgId(2), 8)), (Some(0), None));
    }

    #[test]
    fn what_is_given_up_ends_where_it_had_got_to() {
        let mut stream = stream(&[5_500, 4_000, 100]);
        assert!(stream.cancel(MsgId(0), 5) && !stream.cancel(MsgId(0), 5));
        let mark = stream.piece(5).unwrap();
        assert!(mark.given_up && mark.ends_message && mark.len == 0 && mark.offset == 5_000);
        assert_eq!(stream.piece(6).unwrap().msg, MsgId(1));
        assert!(stream.cancel(MsgId(1), 6), "nothing of it had been sent");
        assert_eq!((stream.piece(6).unwrap().msg, stream.end()), (MsgId(2), 7));
        let ended = [(); 2].map(|()| stream.pop_ended(7).unwrap());
        assert_eq!(ended.map(|m| (m.id.0, m.reported)), [(0, true), (2, false)]);
        assert!(stream.is_done() && stream.piece(3).is_none());
    }
}
