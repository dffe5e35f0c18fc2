//! The end of a queue pair that holds its congestion state: what it sends next and when, what
//! acknowledgements do, and how losses are repaired (specs/timely.md#2,4;
//! specs/rdma.md#6).

use endpoint::{Effects, FlowState, Stat};
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time};
use wire::int::Hop;
use wire::roce::Part;

use super::config::{Config, NicPacing, Operation, Recovery, Segment, Subtract, Timestamps};
use super::flight::{Flight, Stamp};
use super::pace::Pace;
use super::quiet::{Named, Notices};
use super::rule::{self, PathView};
use super::stream::{Piece, Stream};
use crate::deadlines::Timer;
use crate::rto::Rto;

/// Packets in flight at most: what acknowledgements can tell apart, and more than any fabric holds.
pub(super) const OUTSTANDING_MAX: u64 = 1 << 15;

/// Which queue pair this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The other end.
    pub(super) peer: HostId,
    /// Its number, unique among those from this host to `peer`; 24 bits.
    pub(super) queue_pair: u32,
    /// What switches hash.
    pub(super) path: u32,
    /// The channel whose messages it carries in order; zero: a single message.
    pub(super) channel: u32,
}

/// The state of a queue pair.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) id: Identity,
    pub(super) stream: Stream,
    pub(super) pace: Pace,
    flight: Flight,
    rule: rule::State,
    /// Of the host's interface.
    line: Rate,
    /// The first packet not acknowledged.
    una: u64,
    /// The next packet to send; falls back to `una` where recovery goes back.
    nxt: u64,
    /// The highest packet ever sent, plus one.
    max: u64,
    /// The first packet after the segment that is leaving; `nxt` or less: none is.
    burst_end: u64,
    /// When the interface sends the next packet of that segment.
    next_packet: Time,
    /// When the segment was released that waits in the interface's queue.
    released: Time,
    /// `max` when the last loss was noticed: it is repaired once that is acknowledged.
    recover: u64,
    /// A reader: the hole that was last noticed, and when.
    pub(super) named: Named,
    /// A reader: when marks were last noticed, as if notifications came.
    pub(super) notices: Notices,
    rto: Rto,
    /// Timeouts since the last progress.
    timeouts: u32,
    /// It waits for its release.
    pub(super) waits: bool,
    /// It waits in the interface's queue.
    pub(super) queued: bool,
    /// It has something in flight: it is one of the host's active queue pairs.
    pub(super) active: bool,
}

/// A packet to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    pub(super) psn: u64,
    pub(super) piece: Piece,
    /// It asks for an acknowledgement.
    pub(super) ack: bool,
    /// The moment it has left is wanted.
    pub(super) stamp: bool,
    /// It was sent before.
    pub(super) again: bool,
    /// More packets of the segment follow at once.
    pub(super) more: bool,
    /// The retransmission timer starts anew with it.
    pub(super) restarts_timer: bool,
}

/// A segment to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Its first packet.
    pub(super) psn: u64,
    /// The first one after it.
    pub(super) end: u64,
    /// The moment the request has left is wanted.
    pub(super) stamp: bool,
    /// The retransmission timer starts anew with it.
    pub(super) restarts_timer: bool,
}

/// An acknowledgement as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    /// The first packet that is missing.
    pub(super) next: u64,
    /// One behind that has come.
    pub(super) nak: bool,
    /// The packet that caused it.
    pub(super) cause: Option<u64>,
    /// Bit n: packet `next + 1 + n` has come.
    pub(super) bitmap: u64,
    /// When it came, by the clock of round-trip times.
    pub(super) stamp: Time,
    pub(super) remote: Dur,
    /// How long it has been in this host, `stamp` being before that.
    pub(super) local: Dur,
    pub(super) marked: bool,
    pub(super) hops: &'a [Hop],
}

impl Flow {
    /// A queue pair without messages.
    pub(super) fn new(config: &Config, id: Identity, path: &PathView, now: Time) -> Self {
        let mut rule = rule::State::new(&config.rule);
        rule.get_mut().start(path, now);
        Self {
            id,
            stream: Stream::new(config.cut()),
            pace: Pace::new(now),
            flight: Flight::default(),
            rule,
            line: path.line_rate,
            una: 0,
            nxt: 0,
            max: 0,
            burst_end: 0,
            next_packet: Time::ZERO,
            released: Time::ZERO,
            recover: 0,
            named: Named::default(),
            notices: Notices::default(),
            rto: Rto::new(),
            timeouts: 0,
            waits: false,
            queued: false,
            active: false,
        }
    }

    /// Begin anew as another queue pair, keeping the memory.
    pub(super) fn reopen(&mut self, config: &Config, id: Identity, path: &PathView, now: Time) {
        let mut stream = std::mem::replace(&mut self.stream, Stream::new(config.cut()));
        let mut flight = std::mem::take(&mut self.flight);
        stream.clear();
        flight.clear();
        *self = Self { stream, flight, ..Self::new(config, id, path, now) };
    }

    /// For unwrapping the numbers of acknowledgements.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The first packet that has never been sent.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    pub(super) fn rule(&self) -> &dyn rule::Rule {
        self.rule.get()
    }

    /// The retransmission timeout now.
    pub(super) fn timeout(&self, config: &Config) -> Dur {
        self.rto.timeout(&config.rto)
    }

    /// Whether there is a packet that may leave, pacing aside.
    pub(super) fn can_send(&self) -> bool {
        if self.nxt < self.burst_end {
            return true;
        }
        let bytes = match self.flight.first_lost() {
            Some((_, bytes)) => bytes,
            None if self.nxt >= self.stream.end() || self.nxt - self.una >= OUTSTANDING_MAX => {
                return false;
            }
            None if self.rule().window() == u64::MAX => return true,
            None => self.stream.wire_bytes(self.nxt..self.stream.segment_end(self.nxt)),
        };
        let flying = self.flight.bytes();
        flying == 0 || flying.saturating_add(bytes) <= self.rule().window()
    }

    /// When it may send next, if it can.
    pub(super) fn due(&self) -> Time {
        if self.nxt < self.burst_end { self.next_packet } else { self.pace.due() }
    }

    /// When the segment was released that waits in the interface's queue, or left it last.
    pub(super) fn released(&self) -> Time {
        self.released
    }

    /// It has begun to wait in the interface's queue.
    pub(super) fn enqueued(&mut self) {
        self.released = self.due();
        (self.queued, self.waits) = (true, false);
    }

    /// The next packet of its turn, if there still is one.
    pub(super) fn send(&mut self, config: &Config, now: Time) -> Option<Departure> {
        if !self.can_send() {
            return None;
        }
        if self.nxt >= self.burst_end
            && let Some((psn, bytes)) = self.flight.first_lost()
        {
            self.flight.repeat();
            self.pace.release(self.released, bytes, self.rule().rate());
            return self.departure(config, now, psn, bytes);
        }
        let psn = self.nxt;
        if psn >= self.burst_end {
            self.begin_segment(config, self.released);
        }
        let bytes = self.stream.wire_bytes(psn..psn + 1);
        self.flight.add(bytes);
        self.nxt = psn + 1;
        self.departure(config, now, psn, bytes)
    }

    /// The next segment to ask for, if its turn still is.
    pub(super) fn request(&mut self, config: &Config, now: Time) -> Option<Request> {
        if !self.can_send() {
            return None;
        }
        let psn = self.nxt;
        self.begin_segment(config, self.released);
        let end = self.burst_end;
        let bytes = self.stream.wire_bytes(psn..end);
        self.flight.add(bytes);
        self.nxt = end;
        let again = psn < self.max;
        self.max = self.max.max(end);
        self.rule.get_mut().on_sent(bytes, now);
        let stamp = !again && config.stamps_departures();
        Some(Request { psn, end, stamp, restarts_timer: self.flight.len() == 1 })
    }

    /// The message that packet `psn` is of ends before its end. Returns the first packet after it.
    pub(super) fn skip(&mut self, psn: u64) -> u64 {
        let end = self.stream.skip(psn);
        self.max = self.max.max(end);
        end
    }

    /// The segment that `nxt` is in begins to leave.
    fn begin_segment(&mut self, config: &Config, released: Time) {
        let end = self.stream.segment_end(self.nxt);
        let bytes = self.stream.wire_bytes(self.nxt..end);
        let by_departure = config.stamps_departures();
        let stamp = match (self.nxt < self.max, by_departure) {
            (true, _) => Stamp::Void,
            (false, true) => Stamp::Awaited,
            (false, false) => Stamp::At(released),
        };
        let own = match (by_departure, config.operation) {
            (true, Operation::Write) => Dur::ZERO,
            _ => self.serialisation(config, end, bytes),
        };
        self.flight.begin(end, stamp, own);
        self.burst_end = end;
        self.pace.release(released, bytes, self.rule().rate());
    }

    /// The time that the interface takes for `bytes`, the segment from `nxt` to `end`, as far as
    /// round-trip times leave it out.
    fn serialisation(&self, config: &Config, end: u64, bytes: u64) -> Dur {
        if config.subtract == Subtract::Packet {
            return self.line.serialise(self.stream.wire_bytes(end - 1..end));
        }
        match config.nic_pacing {
            NicPacing::At(pacing) if pacing < self.line => {
                let last = self.stream.wire_bytes(end - 1..end);
                let others = end - 1 - self.nxt;
                let each = (bytes - last).checked_div(others).unwrap_or(0);
                pacing.serialise(each) * others + self.line.serialise(last)
            }
            _ => self.line.serialise(bytes),
        }
    }

    /// The next packet of the segment that is leaving is the interface's affair at `at`.
    pub(super) fn pause_burst(&mut self, at: Time) {
        self.next_packet = at;
    }

    fn departure(&mut self, config: &Config, now: Time, psn: u64, bytes: u64) -> Option<Departure> {
        let again = psn < self.max;
        self.max = self.max.max(psn + 1);
        self.rule.get_mut().on_sent(bytes, now);
        let piece = self.stream.piece(psn)?;
        let more = self.nxt < self.burst_end && psn + 1 == self.nxt;
        let ack =
            config.segment == Segment::Packet || matches!(piece.part, Part::Last | Part::Only);
        let restarts_timer = self.flight.len() == 1;
        let stamp = !more && !again && config.stamps_departures();
        Some(Departure { psn, piece, ack, stamp, again, more, restarts_timer })
    }

    /// The last packet of a segment, the low bits of whose number these are, has left.
    pub(super) fn departed(&mut self, low: u8, at: Time) {
        self.flight.departed(low, at);
    }

    /// An acknowledgement has come. `None` if it says what cannot be: that packets have come which
    /// were never sent, or that some have not which it said had.
    pub(super) fn on_ack(
        &mut self,
        config: &Config,
        now: Time,
        incoming: &Incoming<'_>,
        fx: &mut Effects,
    ) -> Option<Timer> {
        let &Incoming { next, cause, bitmap, stamp, .. } = incoming;
        if next > self.max || next < self.una {
            return None;
        }
        let rtt = cause.and_then(|cause| self.flight.sample(cause, stamp));
        if let Some(rtt) = rtt {
            self.rto.sample(&config.rto, rtt);
            let piece = cause.and_then(|cause| self.stream.piece(cause));
            match (config.operation, piece) {
                (Operation::Write, Some(piece)) => fx.rtt(piece.msg, rtt),
                (Operation::Read, Some(piece)) => {
                    fx.rtt_received(MsgKey { src: self.id.peer, id: piece.msg }, rtt);
                }
                (_, None) => {}
            }
        }
        let mut bytes = self.flight.acknowledge(next);
        let progress = next > self.una;
        self.una = next;
        self.nxt = self.nxt.max(next);
        if let Recovery::Selective { .. } = config.recovery {
            bytes += self.note_arrivals(next, cause, bitmap);
        }
        self.notice_loss(config, now, incoming, fx);
        self.tell_rule(config, now, incoming, bytes, rtt);
        if progress || bytes > 0 {
            self.timeouts = 0;
            self.rto.on_progress(&config.rto);
        }
        // What is lost, and waits for its turn or for a paused class, has no timeout.
        Some(match (self.flight.bytes() == 0, progress || bytes > 0) {
            (true, _) => Timer::Stop,
            (false, true) => Timer::Restart,
            (false, false) => Timer::Keep,
        })
    }

    /// Packets behind the first that is missing have arrived: the one that caused the
    /// acknowledgement, and those of the bitmap. Returns the bytes of those of which that was not
    /// known.
    fn note_arrivals(&mut self, next: u64, cause: Option<u64>, mut bitmap: u64) -> u64 {
        let mut bytes = cause.map_or(0, |cause| self.flight.arrived(cause));
        while bitmap != 0 {
            bytes += self.flight.arrived(next + 1 + u64::from(bitmap.trailing_zeros()));
            bitmap &= bitmap - 1;
        }
        bytes
    }

    /// Go back, or mark what is lost, if the acknowledgement just come shows a loss.
    fn notice_loss(
        &mut self,
        config: &Config,
        now: Time,
        incoming: &Incoming<'_>,
        fx: &mut Effects,
    ) {
        let nak = incoming.nak;
        let holes = incoming.bitmap != 0 || incoming.cause.is_some_and(|cause| cause > self.una);
        let lost = match config.recovery {
            Recovery::GoBackN { .. } => nak && self.una < self.nxt,
            Recovery::Selective { reordering } => holes && self.flight.mark_lost(reordering),
        };
        if !lost {
            return;
        }
        if let Recovery::GoBackN { .. } = config.recovery {
            self.go_back();
        }
        // What was sent before the last loss was noticed is a part of that.
        if self.una >= self.recover {
            self.recover = self.max;
            self.rule.get_mut().on_nack(now);
            self.count(config, Stat::FastRetransmit, fx);
        }
    }

    /// Count `stat` for the message that is acknowledged next.
    fn count(&self, config: &Config, stat: Stat, fx: &mut Effects) {
        match (config.operation, self.stream.in_front()) {
            (Operation::Write, Some(id)) => fx.count_for(stat, id),
            (Operation::Read, Some(id)) => {
                fx.count_received(stat, MsgKey { src: self.id.peer, id });
            }
            (_, None) => fx.count(stat),
        }
    }

    /// Send everything from the first packet on that is not acknowledged.
    fn go_back(&mut self) {
        if self.nxt < self.burst_end {
            let unsent = self.stream.wire_bytes(self.nxt..self.burst_end);
            self.pace.shorten(unsent, self.rule().rate());
        }
        self.flight.forget();
        self.nxt = self.una;
        self.burst_end = self.una;
    }

    /// Pass an acknowledgement of `bytes`, acknowledged for the first time, on to the rule.
    fn tell_rule(
        &mut self,
        config: &Config,
        now: Time,
        incoming: &Incoming<'_>,
        bytes: u64,
        rtt: Option<Dur>,
    ) {
        let before = self.rule().rate();
        let ack = rule::Ack {
            now,
            acked: self.una,
            next: self.nxt,
            bytes,
            rtt,
            remote: incoming.remote,
            local: incoming.local,
            ce: incoming.marked,
            hops: incoming.hops,
            achieved: self.pace.achieved(now).unwrap_or(before.0 as f64),
            recovering: self.una < self.recover,
        };
        self.rule.get_mut().on_ack(&ack);
        self.follow_rule(config, before);
        if rtt.is_some() {
            self.pace.start_meter(now);
        }
    }

    /// The rule may have changed the rate, which was `before`.
    fn follow_rule(&mut self, config: &Config, before: Rate) {
        let rate = self.rule().rate();
        if config.recompute_gap && rate != before {
            self.pace.retime(rate);
        }
    }

    /// A congestion notification has come.
    pub(super) fn on_cnp(&mut self, config: &Config, now: Time) {
        let before = self.rule().rate();
        self.rule.get_mut().on_cnp(now);
        self.follow_rule(config, before);
    }

    /// The deadline of the rule has come.
    pub(super) fn on_rule_timer(&mut self, config: &Config, now: Time) {
        let before = self.rule().rate();
        self.rule.get_mut().on_timer(now);
        self.follow_rule(config, before);
    }

    /// The retransmission timer has expired. False if that was once too often.
    pub(super) fn on_timeout(&mut self, config: &Config, now: Time, fx: &mut Effects) -> bool {
        self.count(config, Stat::Timeout, fx);
        fx.count(Stat::OtherTimeout);
        self.timeouts += 1;
        self.rto.on_timeout();
        match config.recovery {
            Recovery::GoBackN { .. } => self.go_back(),
            Recovery::Selective { .. } => self.flight.lose_all(),
        }
        self.recover = self.max;
        let before = self.rule().rate();
        self.rule.get_mut().on_timeout(now);
        self.follow_rule(config, before);
        self.timeouts <= config.max_timeouts
    }

    /// What may be sent of message `id`, if that is here; for traces.
    pub(super) fn state(&self, id: MsgId) -> Option<FlowState> {
        let window = Some(self.rule().window()).filter(|&window| window != u64::MAX);
        let (in_flight, rate) = (Some(self.flight.bytes()), Some(self.rule().rate()));
        let state = FlowState { window, in_flight, rate, ..FlowState::default() };
        self.stream.holds(id).then_some(state)
    }

    /// See [`endpoint::Endpoint::unsent`]. What of a segment is leaving counts as sent.
    pub(super) fn unsent(&self, id: MsgId) -> Option<u64> {
        self.stream.unsent(id, self.segments_sent())
    }

    /// See [`endpoint::Endpoint::shorten`].
    pub(super) fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        self.stream.shorten(id, self.segments_sent(), bytes)
    }

    /// The first packet after the segments of which something was sent.
    fn segments_sent(&self) -> u64 {
        match self.max.checked_sub(1) {
            Some(last) => self.stream.segment_end(last).max(self.max),
            None => 0,
        }
    }

    /// Give message `id` up; false if it is not here.
    pub(super) fn cancel(&mut self, id: MsgId) -> bool {
        let found = self.stream.cancel(id, self.max);
        if found && self.nxt < self.burst_end {
            // The segment that is leaving may be shorter now.
            self.burst_end = self.stream.segment_end(self.nxt).max(self.nxt);
            self.flight.shorten(self.burst_end);
        }
        found
    }
}

impl Config {
    /// Whether round-trip times begin when the last packet of a segment has left the interface.
    pub(super) fn stamps_departures(&self) -> bool {
        self.timestamps == Timestamps::Nic && !self.count_nic_wait
    }
}
