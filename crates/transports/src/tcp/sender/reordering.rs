//! What a sender does about reordering: it undoes reductions that prove needless (`undo.rs`), by
//! the Eifel response (RFC 4015), and lets RR-TCP (`rr.rs`) learn its duplicate threshold.

use units::{Dur, Time};

use super::{Incoming, Sender};
use crate::rto::Rto;
use crate::tcp::config::{Config, Undo};
use crate::tcp::rr::{self, Rr};
use crate::tcp::stream::{Segment, Source};
use crate::tcp::undo::{Acceptable, LossEvent, Stood};
use crate::tcp::window::Phase;
use crate::tcp::{dsack, timestamps};

/// What a sender knows of reordering.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    event: LossEvent,
    /// Whether the receiver has reported a duplicate, before the latest acknowledgement and in it.
    reports: bool,
    reported_now: bool,
    /// The last timeout was spurious: what was estimated before it, until something beyond this
    /// position is acknowledged.
    spurious: Option<(u64, Rto)>,
    rr: Option<Rr>,
}

impl Reordering {
    /// Nothing, where nothing is to be done about it.
    pub(super) fn new(config: &Config) -> Option<Box<Self>> {
        let wanted = config.undo != Undo::None || config.rr.is_some();
        wanted.then(|| {
            Box::new(Self {
                event: LossEvent::default(),
                reports: false,
                reported_now: false,
                spurious: None,
                rr: config.rr.map(Rr::new),
            })
        })
    }

    /// Begin anew as another connection, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.event.end();
        (self.reports, self.reported_now, self.spurious) = (false, false, None);
        if let Some(rr) = &mut self.rr {
            rr.clear();
        }
    }
}

impl<S: Source> Sender<S> {
    /// A recovery begins, or a `timeout` reduces the window: before it does.
    pub(super) fn note_loss(&mut self, now: Time, timeout: bool) {
        let flight = self.segments(self.max - self.una);
        let (window, srtt) = (self.window.before(), self.rto.srtt());
        let stood = Stood {
            timeout,
            flight: (self.una, self.max),
            window,
            pipe: flight.max(window.ssthresh),
            rto: self.rto,
            recover: self.recover,
            reduced_at: self.reduced_at,
        };
        let (cwnd, silent) = (self.window.cwnd(), now.since(self.last_send));
        let waited = self.has_waited();
        let Some(reordering) = &mut self.reordering else { return };
        reordering.event.begin(stood);
        if let Some(rr) = reordering.rr.as_mut().filter(|_| waited) {
            let restart = if timeout { rr::slow_start(cwnd) } else { 0.0 };
            rr.on_waited(rr::unsent(cwnd, silent, srtt) + restart);
        }
    }

    /// Whether the least threshold would have inferred this loss before.
    fn has_waited(&self) -> bool {
        let first = self.window.phase() == Phase::Open && self.una >= self.sent_again;
        first && self.dup_threshold > rr::LEAST && self.held() >= rr::LEAST
    }

    /// Segments that the receiver is known to hold beyond the first that is missing.
    fn held(&self) -> u32 {
        self.scoreboard.held_above(self.una).div_ceil(u64::from(self.id.mss)) as u32
    }

    /// The recovery that [`Self::note_loss`] began has reduced the window, which was `cwnd`.
    pub(super) fn note_reduction(&mut self, now: Time, cwnd: f64) {
        let reduction = cwnd - self.window.cwnd();
        if let Some(rr) = self.reordering.as_mut().and_then(|r| r.rr.as_mut()) {
            rr.on_fast_retransmit(now, self.una, reduction);
        }
    }

    /// `segment` is sent again.
    pub(super) fn note_repeat(&mut self, now: Time, segment: &Segment) {
        if let Some(reordering) = &mut self.reordering {
            let range = segment.seq..segment.seq + segment.space();
            reordering.event.on_repeat(range, timestamps::stamp(now));
        }
    }

    /// An acknowledgement of everything below `ack`, before anything is made of it.
    pub(super) fn note_ack(
        &mut self,
        config: &Config,
        now: Time,
        ack: u64,
        incoming: &Incoming<'_>,
    ) {
        let (una, srtt, cwnd) = (self.una, self.rto.srtt(), self.window.cwnd());
        let length = self.held();
        let once = una >= self.sent_again;
        let Some(reordering) = &mut self.reordering else { return };
        let report = dsack::duplicate(ack, incoming.sack).filter(|_| config.dsack);
        reordering.reports |= reordering.reported_now;
        reordering.reported_now = report.is_some();
        if incoming.marked {
            reordering.event.end(); // congestion it was (RFC 4015, step 9)
        }
        if let Some(rr) = &mut reordering.rr {
            match (ack > una, once) {
                (true, true) if length > 0 => rr.on_reordered(length),
                (true, false) => rr.on_repaired(una, length),
                _ => {}
            }
            if let Some(range) = &report {
                rr.on_duplicate(now, range, srtt);
            }
            self.dup_threshold = rr.threshold(cwnd);
        }
        let proves = |range| reordering.event.is_spurious_by_report(&range);
        if config.undo == Undo::Dsack && report.is_some_and(proves) {
            self.undo(config, ack.max(una));
        }
    }

    /// Something new is acknowledged, everything below `ack`. True if that proves the last loss to
    /// have been none, by timestamps, and it has been undone: nothing else is to be made of it.
    pub(super) fn undo_by_stamp(&mut self, config: &Config, ack: u64, echo: u32) -> bool {
        let Some(reordering) = &mut self.reordering else { return false };
        let (duplicate, duplicate_before) = (reordering.reported_now, reordering.reports);
        let everything = ack == self.max;
        let acceptable = Acceptable { echo, everything, duplicate, duplicate_before };
        let spurious =
            config.undo == Undo::Eifel && reordering.event.is_spurious_by_stamp(acceptable);
        if spurious {
            self.undo(config, ack);
        }
        spurious
    }

    /// Restore what the last loss has taken (RFC 4015, section 3.1, steps 8 to 11); everything
    /// below `ack` is acknowledged.
    fn undo(&mut self, config: &Config, ack: u64) {
        let Some(reordering) = &mut self.reordering else { return };
        let Some(&stood) = reordering.event.before() else { return };
        reordering.event.end();
        if stood.timeout {
            reordering.spurious = Some((self.max, stood.rto));
            self.nxt = self.max;
        }
        let (flight, acked) = (self.segments(self.max - ack), self.segments(ack - self.una));
        self.window.restore(config, &stood.window, stood.pipe, flight, acked);
        (self.recover, self.reduced_at) = (stood.recover, stood.reduced_at);
        (self.resend, self.fast, self.timed_out) = (false, false, false);
        self.scoreboard.forget_retransmissions();
    }

    /// Take in a sample of the round-trip time.
    pub(super) fn sample(&mut self, config: &Config, rtt: Dur) {
        let spurious =
            self.reordering.as_mut().and_then(|r| r.spurious.take_if(|s| self.una > s.0));
        match spurious {
            Some((_, before)) => self.rto.sample_after_spurious(&config.rto, before, rtt),
            None => self.rto.sample(&config.rto, rtt),
        }
    }
}
