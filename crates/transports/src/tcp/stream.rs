//! What a connection has to send: messages one after the other, cut into segments.
//!
//! Sequence numbers are 64-bit stream positions from zero; only the header wraps. A message
//! occupies as many of them as it has bytes, and one if it has none, as FIN does; a message given
//! up half-way occupies those that were sent and one for the mark that says so. A segment never
//! spans two messages, and segments are always cut at the same places, so that what is sent again
//! is what was sent before.
//!
//! A subflow of MPTCP is a sender, too, of something else than whole messages: [`Source`].

use std::collections::VecDeque;
use std::ops::Range;

use endpoint::{Effects, FailReason, UNBOUNDED};
use units::{HostId, MsgId, MsgKey, Time};
use wire::tcp::Control;

use super::sender::Identity;

/// What a sender sends: positions from zero on, cut into segments.
pub(crate) trait Source: Default {
    /// Begin anew, keeping the memory.
    fn clear(&mut self);

    /// The message that is acknowledged next, and for which the connection is opened.
    fn in_front(&self) -> Option<MsgId>;

    /// The positions of the message that is acknowledged next.
    fn first(&self) -> Option<Range<u64>>;

    /// Where the segment of up to `mss` bytes begins that position `seq` is in.
    fn cut_before(&self, seq: u64, mss: u64) -> Option<u64>;

    /// The segment at position `seq` of connection `id`, if there is one, as if it echoed nothing
    /// and was sent for the first time. What was sent from a position is there until it is
    /// acknowledged.
    fn segment_at(&self, seq: u64, id: &Identity) -> Option<Segment>;

    /// Everything before position `una` is acknowledged.
    fn acknowledged(&mut self, una: u64, fx: &mut Effects);

    /// Where the message ends that position `una` is in, and when it should be there, if that
    /// matters.
    fn due(&self, una: u64) -> Option<(u64, Time)> {
        let _ = una;
        None
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    id: MsgId,
    /// Its first position in the stream.
    start: u64,
    /// Bytes to send: those of the message, or those that were sent when it was given up.
    len: u64,
    /// When all of it should be there; [`Time::NEVER`]: no deadline.
    deadline: Time,
    /// It ends with a mark that it was given up, not whole.
    given_up: bool,
    /// Its end has been reported to the application.
    reported: bool,
}

impl Outgoing {
    /// The first position after it. An unbounded message has none: `u64::MAX`.
    fn end(&self) -> u64 {
        self.start.saturating_add(if self.given_up { self.len + 1 } else { self.len.max(1) })
    }
}

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u64,
    /// Payload bytes; none for a message without any, and for the mark of one given up.
    pub(crate) len: u32,
    pub(crate) msg: MsgId,
    /// Position in the message.
    pub(crate) offset: u64,
    pub(crate) control: Control,
    /// The time that it echoes (RFC 7323, section 3.2).
    pub(crate) echo: u32,
    /// It was sent before.
    pub(crate) again: bool,
}

impl Segment {
    /// Sequence numbers that it occupies.
    pub(crate) fn space(&self) -> u64 {
        u64::from(self.len.max(1))
    }
}

/// The messages of one connection that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    messages: VecDeque<Outgoing>,
    /// Those of them whose end has not been reported to the application.
    open: u32,
}

impl Stream {
    /// Whether every message has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.messages.is_empty()
    }

    /// Messages whose end has not been reported to the application.
    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    /// Whether message `id` is here and has not ended.
    pub(crate) fn holds(&self, id: MsgId) -> bool {
        self.messages.iter().any(|m| m.id == id && !m.reported)
    }

    /// Take on a message of `len` bytes that should be there by `deadline`. `una`: everything
    /// before this position is acknowledged.
    pub(crate) fn submit(&mut self, id: MsgId, len: u64, deadline: Time, una: u64) {
        let start = self.messages.back().map_or(una, Outgoing::end);
        self.open += 1;
        let (given_up, reported) = (false, false);
        self.messages.push_back(Outgoing { id, start, len, deadline, given_up, reported });
    }

    /// The message that position `seq` is in. Most often it is the first.
    #[inline(always)] // at every packet
    fn message_at(&self, seq: u64) -> Option<&Outgoing> {
        match self.messages.front() {
            Some(first) if seq < first.end() => Some(first),
            _ => self.messages.get(self.messages.partition_point(|m| m.end() <= seq)),
        }
    }

    /// Fail every message of the host `me`.
    pub(crate) fn give_up(&mut self, me: HostId, fx: &mut Effects) {
        self.open = 0;
        for m in self.messages.drain(..).filter(|m| !m.reported) {
            fx.failed(MsgKey { src: me, id: m.id }, FailReason::TimedOut);
        }
    }

    /// Give message `id` up, of which what lies before position `sent` has been sent; false if it
    /// is not here or has already been given up.
    pub(crate) fn cancel(&mut self, id: MsgId, sent: u64) -> bool {
        let Some(i) = self.messages.iter().position(|m| m.id == id && !m.reported) else {
            return false;
        };
        let m = &mut self.messages[i];
        m.reported = true;
        self.open -= 1;
        if m.start >= sent {
            let start = m.start;
            self.messages.remove(i);
            self.renumber(i, start);
        } else if m.end() > sent {
            m.len = sent - m.start;
            m.given_up = true;
            let next = m.end();
            self.renumber(i + 1, next);
        }
        true
    }

    /// Bytes of whole segments of message `id` from position `sent` on, but for the last segment.
    pub(crate) fn unsent(&self, id: MsgId, sent: u64, mss: u64) -> Option<u64> {
        let m = self.messages.iter().find(|m| m.id == id && !m.reported)?;
        if m.len == UNBOUNDED {
            return Some(UNBOUNDED);
        }
        let bytes = m.end().saturating_sub(sent.max(m.start) + mss);
        Some(bytes / mss * mss)
    }

    /// Take up to `bytes` of that out. How many were taken.
    pub(crate) fn shorten(&mut self, id: MsgId, sent: u64, mss: u64, bytes: u64) -> u64 {
        let taken = self.unsent(id, sent, mss).map_or(0, |unsent| unsent.min(bytes) / mss * mss);
        if let Some(i) = self.messages.iter().position(|m| m.id == id) {
            self.messages[i].len -= taken;
            let next = self.messages[i].end();
            self.renumber(i + 1, next);
        }
        taken
    }

    /// Messages from `first` on follow one another from `start` on; none has been sent.
    fn renumber(&mut self, first: usize, mut start: u64) {
        for m in self.messages.range_mut(first..) {
            m.start = start;
            start = m.end();
        }
    }
}

impl Source for Stream {
    fn clear(&mut self) {
        self.messages.clear();
        self.open = 0;
    }

    fn in_front(&self) -> Option<MsgId> {
        self.messages.front().map(|m| m.id)
    }

    fn first(&self) -> Option<Range<u64>> {
        self.messages.front().map(|m| m.start..m.end())
    }

    fn cut_before(&self, seq: u64, mss: u64) -> Option<u64> {
        let m = self.message_at(seq)?;
        let offset = seq - m.start;
        let mark = m.given_up && offset == m.len;
        Some(if mark { seq } else { seq - offset % mss })
    }

    fn segment_at(&self, seq: u64, id: &Identity) -> Option<Segment> {
        let m = self.message_at(seq)?;
        let offset = seq - m.start;
        let len = m.len.saturating_sub(offset).min(u64::from(id.mss)) as u32;
        let mut control = Control::ACK;
        let last = if m.given_up { len == 0 } else { offset + u64::from(len) == m.len };
        if last {
            control = control.with(if id.channel == 0 { Control::FIN } else { Control::PSH });
        }
        if last && m.given_up {
            control = control.with(Control::RST);
        }
        Some(Segment { seq, len, msg: m.id, offset, control, echo: 0, again: false })
    }

    fn due(&self, una: u64) -> Option<(u64, Time)> {
        let m = self.message_at(una).filter(|m| m.deadline != Time::NEVER)?;
        Some((m.end(), m.deadline))
    }

    fn acknowledged(&mut self, una: u64, fx: &mut Effects) {
        while let Some(m) = self.messages.front()
            && m.end() <= una
        {
            if !m.reported {
                self.open -= 1;
                fx.acked(m.id);
            }
            self.messages.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use endpoint::Effect;

    use super::*;

    const CONNECTION: Identity =
        Identity { dst: HostId(1), conn: 0, path: 0, channel: 1, mss: 1000 };

    /// Messages of 2500, 0 and 700 bytes.
    fn stream() -> Stream {
        let mut stream = Stream::default();
        for (id, len) in [(0, 2_500), (1, 0), (2, 700)] {
            stream.submit(MsgId(id), len, Time::NEVER, 0);
        }
        stream
    }

    /// First position, payload, message and offset of every segment from `seq` on, and whether it
    /// ends its message (P), or says that this was given up (R).
    fn segments(stream: &Stream, mut seq: u64) -> Vec<(u64, u32, u64, u64, &'static str)> {
        let mut all = Vec::new();
        while let Some(s) = stream.segment_at(seq, &CONNECTION) {
            let end = match (s.control.has(Control::PSH), s.control.has(Control::RST)) {
                (true, true) => "R",
                (true, false) => "P",
                _ => "",
            };
            all.push((s.seq, s.len, s.msg.0, s.offset, end));
            assert_eq!(stream.cut_before(s.seq + s.space() - 1, 1000), Some(s.seq));
            seq += s.space();
        }
        all
    }

    #[test]
    fn no_segment_spans_two_messages() {
        let all = [
            (0, 1000, 0, 0, ""),
            (1000, 1000, 0, 1000, ""),
            (2000, 500, 0, 2000, "P"),
            (2500, 0, 1, 0, "P"),
            (2501, 700, 2, 0, "P"),
        ];
        assert_eq!(segments(&stream(), 0), all);
    }

    #[test]
    fn a_message_is_shortened_by_whole_segments_that_were_not_sent() {
        let mut stream = Stream::default();
        for (id, len) in [(0, 9_500), (1, 700)] {
            stream.submit(MsgId(id), len, Time::NEVER, 0);
        }
        assert_eq!(stream.unsent(MsgId(0), 3000, 1000), Some(5000), "not the last full one");
        assert_eq!(stream.shorten(MsgId(0), 3000, 1000, 2999), 2000);
        let whole = segments(&stream, 0);
        assert_eq!(whole[7], (7000, 500, 0, 7000, "P"));
        assert_eq!(whole[8], (7500, 700, 1, 0, "P"), "the next follows");
        assert_eq!(stream.shorten(MsgId(0), 3000, 1000, u64::MAX), 3000);
        assert_eq!(stream.unsent(MsgId(0), 3000, 1000), Some(0));
        assert_eq!(stream.unsent(MsgId(2), 0, 1000), None);
    }

    #[test]
    fn a_message_given_up_ends_after_what_was_sent() {
        let mut half = stream();
        assert!(half.cancel(MsgId(0), 1000) && !half.cancel(MsgId(0), 1000));
        let all = [(0, 1000, 0, 0, ""), (1000, 0, 0, 1000, "R"), (1001, 0, 1, 0, "P")];
        assert_eq!(segments(&half, 0)[..3], all);
        let mut unsent = stream();
        assert!(unsent.cancel(MsgId(1), 1000));
        assert_eq!(segments(&unsent, 2000), [(2000, 500, 0, 2000, "P"), (2500, 700, 2, 0, "P")]);
        let mut whole = stream();
        assert!(whole.cancel(MsgId(0), 2500));
        assert_eq!((segments(&whole, 0), whole.open()), (segments(&stream(), 0), 2));
        let mut fx = Effects::new();
        whole.acknowledged(2501, &mut fx);
        assert_eq!(
            fx.as_slice(),
            [Effect::Acked(MsgId(1))],
            "the first was reported when it was given up"
        );
    }
}
