//! The sending half of one connection: what is sent when, by RFC 5681, 6582, 6675, 6298 and 3042.
//! What there is to send is in `stream.rs`.

mod reordering;

use endpoint::{Draw, Effects, FlowState, Purpose, Stat};
use units::{Dur, HostId, MsgId, Time};
use wire::tcp::Control;

use super::config::{Config, IdleRestart, ReceiveWindow, Recovery, Reduces};
use super::handshake::{self, Opening};
use super::retransmission::Retransmission;
use super::rule::{Acked, Due, Group, Standing};
use super::scoreboard::Scoreboard;
use super::stream::{Segment, Source, Stream};
use super::timestamps;
use super::window::{Phase, Window};
use crate::deadlines::Timer;
use crate::rto::Rto;
use reordering::Reordering;

const SPREAD: Purpose = Purpose::new("tcp timeout");

/// Which connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) dst: HostId,
    /// Unique among the connections from this host to `dst`; 30 bits.
    pub(crate) conn: u32,
    /// What switches hash.
    pub(crate) path: u32,
    /// The channel whose messages it carries in order; zero: a single message.
    pub(crate) channel: u32,
    /// Largest payload.
    pub(crate) mss: u16,
}

/// The sending half of a connection (specs/tcp.md#1.1), or of a subflow
/// of one.
#[derive(Clone, Debug)]
pub(crate) struct Sender<S = Stream> {
    pub(crate) id: Identity,
    opening: Opening,
    /// Lowest position not acknowledged.
    una: u64,
    /// Next position to send; falls back to `una` at a timeout.
    nxt: u64,
    /// Highest position ever sent, plus one.
    max: u64,
    /// The first position that the receiver's window does not cover. It never moves back.
    edge: u64,
    /// The time in the latest acknowledgement, as it stood there; zero if there was none.
    stamp: u32,
    /// `max` when the last loss was inferred, zero if there was none: RFC 6582's recover, plus one.
    recover: u64,
    window: Window,
    /// Duplicate acknowledgements that mean loss here.
    dup_threshold: u32,
    rto: Rto,
    /// The segment being timed: the position after it, and when it was sent.
    timed: Option<(u64, Time)>,
    /// Most bytes in flight in the current round trip, which ends when `round_end` is passed.
    peak: u64,
    round_end: u64,
    last_send: Time,
    /// Since when nothing is in flight, if something was before.
    idle_since: Option<Time>,
    /// Timeouts since the last progress.
    timeouts: u32,
    /// The next segment is sent because the timer has expired.
    timed_out: bool,
    /// The next segment is sent because a recovery has begun.
    fast: bool,
    /// Timeouts so far.
    expiries: u32,
    /// The first position after everything retransmitted, but for the rescue at `rescued`.
    sent_again: u64,
    rescued: Option<u64>,
    /// The segment at `una` is to be sent again, whatever the window says.
    resend: bool,
    /// A partial acknowledgement has come in this recovery.
    partial_seen: bool,
    /// What the receiver holds out of order; empty without SACK.
    scoreboard: Scoreboard,
    /// `max` when the window was last reduced: marks of what was sent before say nothing new
    /// (RFC 3168, section 6.1.2).
    reduced_at: u64,
    /// A mark did it, not a loss.
    reduced_by_mark: bool,
    /// The next new segment says that the window was reduced (CWR).
    tell_reduced: bool,
    /// Whether losses were any; `None` where it is not asked.
    reordering: Option<Box<Reordering>>,
    /// The connection stands in the endpoint's round.
    pub(crate) in_round: bool,
    stream: S,
}

/// An acknowledgement as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    /// Everything below this position is acknowledged.
    pub(crate) ack: u64,
    /// The first position beyond the receiver's window; `u64::MAX` where that has no end.
    pub(crate) edge: u64,
    /// When it left, as it says; zero if it does not.
    pub(crate) stamp: u32,
    /// The stamp of the data that it answers, as it says.
    pub(crate) echo: u32,
    /// The whole connection is.
    pub(crate) complete: bool,
    /// It echoes congestion (ECE).
    pub(crate) marked: bool,
    /// What the receiver holds beyond: blocks, each its first position and the one after its last.
    pub(crate) sack: &'a [(u64, u64)],
}

/// Why a segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// It is the first one missing, and a loss is known.
    First,
    /// It is next in the stream.
    Next,
    /// A hole in what the receiver holds (RFC 6675, NextSeg, rules 1 and 3).
    Hole,
    /// NextSeg, rule 4.
    Rescue,
    /// It opens the connection.
    Syn,
}

impl<S: Source> Sender<S> {
    /// A connection without messages.
    pub(crate) fn new(config: &Config, id: Identity) -> Self {
        Self { reordering: Reordering::new(config), ..Self::without_memory(config, id) }
    }

    /// As [`Self::new`], but for what has memory that can be kept.
    fn without_memory(config: &Config, id: Identity) -> Self {
        Self {
            id,
            opening: Opening::new(config),
            una: 0,
            nxt: 0,
            max: 0,
            edge: match config.receive_window {
                ReceiveWindow::Unlimited => u64::MAX,
                ReceiveWindow::Ictcp(params) => params.first_window(id.mss),
            },
            stamp: 0,
            recover: 0,
            window: Window::new(config),
            dup_threshold: config.dup_threshold,
            rto: Rto::new(),
            timed: None,
            peak: 0,
            round_end: 0,
            last_send: Time::ZERO,
            idle_since: None,
            timeouts: 0,
            timed_out: false,
            fast: false,
            expiries: 0,
            sent_again: 0,
            rescued: None,
            resend: false,
            partial_seen: false,
            scoreboard: Scoreboard::default(),
            reduced_at: 0,
            reduced_by_mark: false,
            tell_reduced: false,
            reordering: None,
            in_round: false,
            stream: S::default(),
        }
    }

    /// Begin anew as another connection, keeping the memory and the place in the round.
    pub(crate) fn reopen(&mut self, config: &Config, id: Identity) {
        let mut stream = std::mem::take(&mut self.stream);
        stream.clear();
        let mut scoreboard = std::mem::take(&mut self.scoreboard);
        scoreboard.clear();
        let mut reordering = self.reordering.take();
        if let Some(reordering) = &mut reordering {
            reordering.clear();
        }
        let in_round = self.in_round;
        *self =
            Self { stream, scoreboard, reordering, in_round, ..Self::without_memory(config, id) };
    }

    /// The next position expected by acknowledgements, for unwrapping their 32 bits.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// What it sends from.
    pub(crate) fn source(&self) -> &S {
        &self.stream
    }

    /// What it sends from.
    pub(crate) fn source_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// How often the timer has expired.
    pub(crate) fn expiries(&self) -> u32 {
        self.expiries
    }

    /// The congestion window, segments, without inflation.
    pub(crate) fn cwnd(&self) -> f64 {
        self.window.cwnd()
    }

    /// Whether a fast recovery is in flight.
    pub(crate) fn is_recovering(&self) -> bool {
        self.window.phase() == Phase::Recovery
    }

    /// Whether it is in slow start, repairs a loss, or sends again what was in flight at a timeout.
    pub(crate) fn is_unsettled(&self, config: &Config) -> bool {
        self.window.phase() != Phase::Open
            || self.window.in_slow_start(config)
            || self.nxt < self.max
    }

    /// Halve the window, because this subflow holds up its connection. False if it repairs a loss,
    /// for which that has been done.
    pub(crate) fn penalise(&mut self) -> bool {
        let open = self.window.phase() == Phase::Open;
        if open {
            self.window.penalise();
        }
        open
    }

    /// Whether the window is full, so that nothing may be sent whatever there is to send. No
    /// segment is asked for: most subflows of a connection are full most of the time. False where
    /// it takes more than the window to know.
    pub(crate) fn is_full(&self, config: &Config) -> bool {
        let by_window = match self.window.phase() {
            Phase::Open => true,
            Phase::Recovery => config.recovery != Recovery::Sack,
            Phase::Loss => false,
        };
        let asks = self.opening == Opening::Open && !self.resend && by_window;
        asks && self.nxt - self.una >= self.allowed(config)
    }

    /// Whether the connection is open and its next segment, if any, has not been sent before.
    pub(crate) fn sends_new_only(&self) -> bool {
        let settled = self.window.phase() == Phase::Open && !self.resend && self.nxt == self.max;
        self.opening == Opening::Open && settled
    }

    /// What may be in flight, bytes.
    fn allowed(&self, config: &Config) -> u64 {
        (self.window.allowed(config) * f64::from(self.id.mss)) as u64
    }

    /// What may be sent, for traces.
    pub(crate) fn state(&self, config: &Config) -> FlowState {
        FlowState {
            window: Some(self.allowed(config)),
            in_flight: Some(self.in_flight()),
            ..FlowState::default()
        }
    }

    /// The segment that may be sent now.
    pub(crate) fn peek(&self, config: &Config) -> Option<Segment> {
        self.sendable(config).map(|(segment, _)| segment)
    }

    pub(crate) fn rto(&self) -> &Rto {
        &self.rto
    }

    /// What this subflow contributes to its connection's [`Group`]s.
    pub(crate) fn standing(&self) -> Standing {
        self.window.standing(self.rto.exact_srtt())
    }

    /// What its connection is like now: to be said before every other call that may move the window
    /// (an acknowledgement, a timeout).
    pub(crate) fn on_group(&mut self, group: &Group) {
        self.window.on_group(group);
    }

    /// Draw where in its random range the timeout is, anew for each expiry.
    pub(crate) fn spread_timeout(&mut self, config: &Config, draw: Draw) {
        if config.rto.random > 0.0 {
            let mine = draw.part(u64::from(self.id.dst.0)).part(u64::from(self.id.conn));
            self.rto.spread(mine.unit(SPREAD, u64::from(self.expiries)));
        }
    }

    /// FlightSize (RFC 5681, section 2). After a timeout only what was sent again since; of that,
    /// what the receiver is known to hold was not (see [`Self::sendable`]).
    fn in_flight(&self) -> u64 {
        match self.window.phase() {
            Phase::Loss => self.scoreboard.missing(self.una..self.nxt),
            _ => self.nxt - self.una,
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.id.mss)
    }

    /// What a loss reduces, in segments, if the congestion window and the cap are not less.
    fn to_reduce(&self, config: &Config) -> f64 {
        self.segments(match config.ssthresh_of {
            Reduces::Flight => self.in_flight(),
            Reduces::Window => self.edge.saturating_sub(self.una),
        })
    }

    /// From now on at most `bytes` on the wire may be in flight, headers included: whole segments,
    /// and one at least. A smaller cap than what is in flight takes nothing back. `u64::MAX`: only
    /// the cap of `config` holds.
    pub(crate) fn cap_window(&mut self, config: &Config, bytes: u64) {
        let full = u64::from(self.id.mss) + u64::from(config.overhead);
        let segments = if bytes == u64::MAX { f64::INFINITY } else { (bytes / full).max(1) as f64 };
        self.window.set_cap(segments.min(config.window_cap));
    }

    /// The segment at position `seq`, if any message has one there.
    fn segment_at(&self, seq: u64) -> Option<Segment> {
        let segment = self.stream.segment_at(seq, &self.id)?;
        Some(Segment { echo: self.stamp, again: seq < self.max, ..segment })
    }

    /// What may be sent now.
    fn sendable(&self, config: &Config) -> Option<(Segment, Cause)> {
        match self.opening {
            Opening::Open => {}
            Opening::Syn => return Some((self.syn(config)?, Cause::Syn)),
            Opening::Sent(_) => return None,
        }
        if self.resend {
            return Some((self.segment_at(self.una)?, Cause::First));
        }
        let sack = config.recovery == Recovery::Sack;
        let (segment, cause, flight) = match self.window.phase() {
            Phase::Recovery if sack => self.next_by_sack()?,
            // What SACK says arrived is not sent again after a timeout (RFC 6675, section 5.1).
            Phase::Loss if sack => {
                let next = self.scoreboard.next_missing(self.nxt);
                (self.segment_at(next)?, Cause::Next, self.in_flight())
            }
            _ => (self.segment_at(self.nxt)?, Cause::Next, self.in_flight()),
        };
        let fits = flight + segment.space() <= self.allowed(config);
        (fits && self.covers(&segment)).then_some((segment, cause))
    }

    /// Whether `segment` is within the receiver's window.
    fn covers(&self, segment: &Segment) -> bool {
        segment.seq + segment.space() <= self.edge
    }

    /// The SYN, as soon as there is a message to open the connection for.
    fn syn(&self, config: &Config) -> Option<Segment> {
        Some(handshake::syn(config, self.stream.in_front()?))
    }

    /// NextSeg of RFC 6675, section 4, and pipe.
    fn next_by_sack(&self) -> Option<(Segment, Cause, u64)> {
        let (una, mss, dup) = (self.una, u64::from(self.id.mss), self.dup_threshold);
        let pipe = self.scoreboard.pipe(una, self.max, mss, dup);
        let hole = self.scoreboard.next_hole(una, mss, dup);
        let hole_at = |at| Some((self.segment_at(at)?, Cause::Hole, pipe));
        if let Some((at, true)) = hole {
            return hole_at(at);
        }
        if let Some(new) = self.segment_at(self.nxt).filter(|new| self.covers(new)) {
            return Some((new, Cause::Next, pipe));
        }
        if let Some((at, false)) = hole {
            return hole_at(at);
        }
        let last = self.stream.cut_before(self.scoreboard.rescue(una, self.max)?, mss)?;
        Some((self.segment_at(last)?, Cause::Rescue, pipe))
    }

    /// Whether anything may be sent now.
    pub(crate) fn can_send(&self, config: &Config) -> bool {
        self.sendable(config).is_some()
    }

    /// Take the next segment to send, if anything may be sent now.
    pub(crate) fn next_segment(&mut self, config: &Config, now: Time) -> Option<Segment> {
        let (mut segment, cause) = self.sendable(config)?;
        if cause == Cause::Syn {
            self.opening = Opening::Sent(now);
            return Some(segment);
        }
        let end = segment.seq + segment.space();
        if let Some(since) = self.idle_since.take() {
            self.after_idle(config, now, since);
        }
        self.last_send = now;
        let kind = match (std::mem::take(&mut self.timed_out), std::mem::take(&mut self.fast)) {
            (true, _) => Retransmission::Timeout,
            (false, true) => Retransmission::FastRetransmit,
            (false, false) if segment.again => Retransmission::Other,
            (false, false) => Retransmission::No,
        };
        segment.control = segment.control.with(kind.mark());
        if segment.again {
            self.note_repeat(now, &segment);
            // Karn: nothing measured across a retransmission.
            self.timed = None;
        } else if self.timed.is_none() {
            self.timed = Some((end, now));
        }
        if config.ecn && !segment.again && std::mem::take(&mut self.tell_reduced) {
            segment.control = segment.control.with(Control::CWR);
        }
        match cause {
            Cause::First => {
                self.resend = false;
                self.nxt = self.nxt.max(end);
                self.scoreboard.retransmitted(end);
            }
            Cause::Next => self.nxt = end,
            Cause::Hole => self.scoreboard.retransmitted(end),
            Cause::Rescue => {
                self.scoreboard.rescue_sent();
                self.rescued = Some(segment.seq);
            }
            Cause::Syn => {}
        }
        if segment.again && cause != Cause::Rescue {
            self.sent_again = self.sent_again.max(end);
        }
        self.max = self.max.max(self.nxt);
        self.peak = self.peak.max(self.in_flight());
        Some(segment)
    }

    /// Nothing has been in flight since `since`, and now something will be. The window is judged by
    /// the time since data was last sent (RFC 5681, section 4.1), in ns-2 by that since the last
    /// acknowledgement, which set the timer (specs/tcp.md#7).
    fn after_idle(&mut self, config: &Config, now: Time, since: Time) {
        let silent = match config.idle_restart {
            IdleRestart::OneSegment => now.since(since),
            // Longer than a timeout, not as long.
            _ => Dur(now.since(self.last_send).0.saturating_sub(1)),
        };
        let timeouts = silent.0 / self.rto.timeout(&config.rto).0.max(1);
        self.window.after_idle(config, now.since(since), timeouts);
    }

    /// Whether data may be sent: no handshake, or it is over.
    pub(crate) fn is_open(&self) -> bool {
        self.opening == Opening::Open
    }

    /// A SYN-ACK, which echoes the stamp `echo`. If it `measures`, it gives the first sample of the
    /// round-trip time, unless several SYNs were sent (Karn); it does not let the window grow (RFC
    /// 5681, section 3.1).
    pub(crate) fn on_syn_ack(
        &mut self,
        config: &Config,
        now: Time,
        echo: u32,
        measures: bool,
    ) -> Timer {
        let sent = match self.opening {
            Opening::Open => return Timer::Keep, // it was answered before
            Opening::Syn => None,
            Opening::Sent(at) => Some(at).filter(|_| self.expiries == 0),
        };
        self.opening = Opening::Open;
        self.timeouts = 0;
        let measured = if config.timestamps {
            Some(timestamps::since(echo, now))
        } else {
            sent.map(|at| now.since(at))
        };
        match measured.filter(|_| measures) {
            Some(rtt) => self.rto.sample(&config.rto, rtt),
            None => self.rto.on_progress(&config.rto),
        }
        if self.expiries > 0 {
            self.window.after_lost_syn();
        }
        Timer::Stop
    }

    /// An acknowledgement.
    pub(crate) fn on_ack(
        &mut self,
        config: &Config,
        now: Time,
        incoming: &Incoming<'_>,
        fx: &mut Effects,
    ) -> Timer {
        let ack = if incoming.complete { self.max } else { incoming.ack };
        if (self.una..=self.max).contains(&ack) {
            self.edge = self.edge.max(incoming.edge);
            self.stamp = incoming.stamp;
        }
        if self.reordering.is_some() && ack <= self.max {
            self.note_ack(config, now, ack, incoming);
        }
        if ack > self.max || ack < self.una || self.una == self.max {
            return Timer::Keep; // never sent, old, or nothing outstanding
        }
        let fresh = match config.recovery {
            Recovery::Sack => self.scoreboard.add(0..ack),
            Recovery::Reno | Recovery::NewReno => ack - self.una,
        };
        let news = config.recovery == Recovery::Sack && self.note_held(ack, incoming.sack);
        let timer = if ack > self.una {
            self.on_new_ack(config, now, ack, fresh, incoming, fx)
        } else if news || config.recovery != Recovery::Sack {
            self.on_duplicate(config, now, fx)
        } else {
            Timer::Keep // a duplicate acknowledgement is one that says something new (RFC 6675)
        };
        if incoming.marked {
            self.on_mark(now);
        }
        timer
    }

    /// Take in what SACK blocks say. True if that is news.
    fn note_held(&mut self, ack: u64, blocks: &[(u64, u64)]) -> bool {
        let mut news = false;
        for &(left, right) in blocks {
            if ack < left && left < right && right <= self.max {
                news |= self.scoreboard.add(left..right) > 0;
            }
        }
        news
    }

    /// Congestion was marked: reduce the window, once for each window of data. A loss has reduced
    /// it already.
    fn on_mark(&mut self, now: Time) {
        if self.una > self.reduced_at && self.window.phase() == Phase::Open {
            self.window.on_mark(now);
            self.reduced_at = self.max;
            self.reduced_by_mark = true;
            self.tell_reduced = true;
        }
    }

    /// An acknowledgement of everything below `ack`, some of it new; `fresh` bytes of it SACK had
    /// not named before.
    fn on_new_ack(
        &mut self,
        config: &Config,
        now: Time,
        ack: u64,
        fresh: u64,
        incoming: &Incoming<'_>,
        fx: &mut Effects,
    ) -> Timer {
        if std::mem::take(&mut self.timed_out) {
            fx.count(Stat::SpuriousTimeout); // nothing has been sent since
        }
        if std::mem::take(&mut self.fast) {
            self.count_in_front(Stat::SpuriousFastRetransmit, fx); // nor here
        }
        let undone = self.undo_by_stamp(config, ack, incoming.echo);
        let (acked, flight) = (ack - self.una, self.nxt.max(ack) - self.una);
        self.una = ack;
        // After go-back-N the receiver may hold more than was sent again: skip it.
        self.nxt = self.nxt.max(ack);
        self.timeouts = 0;
        let sample = self.measure(config, now, incoming.echo);
        if let (Some(rtt), Some(message)) = (sample, self.stream.in_front()) {
            fx.rtt(message, rtt);
        }
        let new_round = self.una > self.round_end;
        let (segments, srtt) = (self.segments(acked), self.rto.srtt());
        let (open, marked) = (self.window.phase() == Phase::Open, incoming.marked);
        let due = self.due(now);
        let acked = Acked { now, segments, open, marked, new_round, sample, srtt, due };
        let restart = if undone {
            self.window.on_ack(&acked);
            true
        } else {
            self.advance(config, &acked, self.segments(fresh))
        };
        if new_round {
            self.round_end = self.nxt;
            self.peak = flight;
        }
        self.stream.acknowledged(self.una, fx);
        if self.una == self.max {
            self.idle_since = Some(now);
        }
        match () {
            () if self.una == self.max => Timer::Stop,
            () if restart => Timer::Restart,
            () => Timer::Keep,
        }
    }

    /// What is left of the message that is acknowledged next, if that has a deadline and the path
    /// has been measured.
    fn due(&self, now: Time) -> Option<Due> {
        let (end, deadline) = self.stream.due(self.una)?;
        let (segments, rtt) = (self.segments(end - self.una), self.rto.exact_srtt()?);
        Some(Due { segments, within: Dur(deadline.0.saturating_sub(now.0)), rtt })
    }

    /// The round-trip time that this acknowledgement measures, if it does; `echo` is the stamp in
    /// it.
    fn measure(&mut self, config: &Config, now: Time, echo: u32) -> Option<Dur> {
        let timed = self.timed.filter(|&(end, _)| self.una >= end);
        if timed.is_some() {
            self.timed = None;
        }
        let sample = match config.timestamps {
            true => Some(timestamps::since(echo, now)),
            false => timed.map(|(_, sent)| now.since(sent)),
        };
        match sample {
            Some(rtt) => self.sample(config, rtt),
            None => self.rto.on_progress(&config.rto),
        }
        sample
    }

    /// New data was acknowledged, `fresh` segments of it not by SACK before: move the window.
    /// Whether the timer restarts.
    fn advance(&mut self, config: &Config, acked: &Acked, fresh: f64) -> bool {
        let past_loss = self.una >= self.recover;
        self.resend = false;
        self.window.on_ack(acked);
        if self.window.phase() == Phase::Recovery {
            if past_loss || config.recovery == Recovery::Reno {
                self.window.leave_recovery(config, self.segments(self.in_flight()));
                return true;
            }
            if config.recovery == Recovery::Sack {
                return true;
            }
            self.window.on_partial(acked.segments);
            self.resend = true;
            let first = !std::mem::replace(&mut self.partial_seen, true);
            return first || !config.impatient;
        }
        let mut counted = *acked;
        if self.window.phase() == Phase::Loss {
            // What arrived before the timeout has not left the network since.
            counted.segments = fresh;
            if past_loss {
                self.window.reopen();
            }
        }
        self.window.grow(config, &counted, self.segments(self.peak));
        true
    }

    fn on_duplicate(&mut self, config: &Config, now: Time, fx: &mut Effects) -> Timer {
        let threshold = self.dup_threshold(config);
        let at_threshold = self.window.on_duplicate(config, threshold);
        if !self.proves_loss(config, at_threshold, threshold) {
            return Timer::Keep;
        }
        let marked = self.reduced_by_mark && self.una < self.reduced_at;
        let cwnd = self.window.cwnd();
        self.note_loss(now, false);
        self.window.enter_recovery(config, now, self.to_reduce(config), marked);
        self.note_reduction(now, cwnd);
        self.scoreboard.forget_retransmissions();
        self.recover = self.max;
        self.reduced_at = self.max;
        self.reduced_by_mark = false;
        self.tell_reduced = true;
        self.resend = true;
        self.fast = true;
        self.partial_seen = false;
        self.count_in_front(Stat::FastRetransmit, fx);
        Timer::Restart
    }

    /// How many duplicate acknowledgements mean loss now. Early retransmit (RFC 5827, section 3.2):
    /// all that can come, where they are fewer than usual, and nothing new can be sent to cause
    /// more.
    fn dup_threshold(&self, config: &Config) -> u32 {
        let mss = u64::from(self.id.mss);
        let outstanding = (self.max - self.una).div_ceil(mss);
        if !config.early_retransmit || outstanding > u64::from(self.dup_threshold) {
            return self.dup_threshold;
        }
        let one_more = (outstanding + 1) as f64;
        let room = self.window.capped(one_more) >= one_more;
        match self.segment_at(self.max) {
            Some(next) if room && self.covers(&next) => self.dup_threshold,
            _ => (outstanding as u32).saturating_sub(1).max(1),
        }
    }

    /// Whether this duplicate acknowledgement begins a recovery; `at_threshold`: it is the one
    /// whose number says so, of `threshold` that mean loss.
    fn proves_loss(&self, config: &Config, at_threshold: bool, threshold: u32) -> bool {
        match config.recovery {
            // RFC 5681, section 3.2: they always do, one window of data may halve it several times.
            Recovery::Reno => at_threshold,
            // RFC 6582, section 3.2, step 2: until an acknowledgement covers more than recover,
            // duplicates may come from what was sent again needlessly, and prove no new loss.
            Recovery::NewReno => at_threshold && (self.recover == 0 || self.una > self.recover),
            // RFC 6675, section 5, steps 1 and 2, and section 5.1.
            Recovery::Sack => {
                let mss = u64::from(self.id.mss);
                let lost = || self.scoreboard.first_is_lost(self.una, mss, threshold);
                self.window.phase() == Phase::Open && (at_threshold || lost())
            }
        }
    }

    /// The retransmission timer has expired. False if the connection gives up.
    pub(crate) fn on_timeout(&mut self, config: &Config, now: Time, fx: &mut Effects) -> bool {
        if self.in_flight() == 0 && !matches!(self.opening, Opening::Sent(_)) {
            return true; // what is to be sent again still waits for its turn at the interface
        }
        self.timeouts += 1;
        self.expiries += 1;
        self.count_in_front(Stat::Timeout, fx);
        fx.count(self.timeout_cause());
        if self.timeouts >= config.max_timeouts {
            return false;
        }
        self.rto.on_timeout();
        if !self.is_open() {
            self.opening = Opening::Syn;
            return true;
        }
        if self.timeouts == 1 {
            self.note_loss(now, true);
        }
        self.window.on_timeout(now, self.to_reduce(config), self.timeouts > 1);
        self.scoreboard.forget_retransmissions();
        self.recover = self.max;
        self.reduced_at = self.max;
        self.reduced_by_mark = false;
        self.tell_reduced = true;
        self.nxt = self.una;
        self.timed = None;
        self.timed_out = true;
        self.fast = false;
        self.resend = false;
        true
    }

    /// Why a timer had to repair the loss of the segment at `una` (specs/incast.md#3).
    fn timeout_cause(&self) -> Stat {
        let last = u64::from(self.dup_threshold) * u64::from(self.id.mss);
        match self.stream.first() {
            Some(m) if self.una == m.start => Stat::HeadTimeout,
            Some(m) if m.end - self.una <= last => Stat::TailTimeout,
            _ if self.una < self.sent_again || self.rescued == Some(self.una) => {
                Stat::RetransmissionTimeout
            }
            _ => Stat::OtherTimeout,
        }
    }

    /// Count what happened to the connection for the message that is acknowledged next: it waits
    /// for it.
    fn count_in_front(&self, stat: Stat, fx: &mut Effects) {
        match self.stream.in_front() {
            Some(message) => fx.count_for(stat, message),
            None => fx.count(stat),
        }
    }
}

impl Sender {
    /// Whether every message has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.stream.is_done()
    }

    /// Messages whose end has not been reported to the application.
    pub(crate) fn open_messages(&self) -> u32 {
        self.stream.open()
    }

    /// Take on a message of `len` bytes that should be there by `deadline`.
    pub(crate) fn submit(&mut self, id: MsgId, len: u64, deadline: Time) {
        self.stream.submit(id, len, deadline, self.una);
    }

    /// Give message `id` up; false if it is not here or has already been given up. Of a message
    /// not begun nothing is sent; one begun ends after what was sent of it, with a mark.
    pub(crate) fn cancel(&mut self, id: MsgId) -> bool {
        self.stream.cancel(id, self.max)
    }

    /// See [`endpoint::Endpoint::unsent`].
    pub(crate) fn unsent(&self, id: MsgId) -> Option<u64> {
        self.stream.unsent(id, self.max, u64::from(self.id.mss))
    }

    /// See [`endpoint::Endpoint::shorten`].
    pub(crate) fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        self.stream.shorten(id, self.max, u64::from(self.id.mss), bytes)
    }

    /// Fail every message.
    pub(crate) fn give_up(&mut self, me: HostId, fx: &mut Effects) {
        self.stream.give_up(me, fx);
    }
}

#[cfg(test)]
impl<S: Source + std::fmt::Debug> Sender<S> {
    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn flight(&self) -> u64 {
        self.in_flight()
    }

    /// Invariant specs/tcp.md#T1.
    pub(crate) fn assert_in_range(&self) {
        assert!(self.una <= self.nxt && self.nxt <= self.max, "{self:?}");
        assert!(self.recover <= self.max && self.round_end <= self.max, "{self:?}");
    }
}
