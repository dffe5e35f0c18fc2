//! The congestion window: RFC 5681, 6582 and 6675 as arithmetic, without packets. What a rule
//! decides, it decides ([`super::rule`]); the rest is here. All in segments, as real numbers
//! (specs/tcp.md#1).

use units::{Dur, Time};

use super::config::{Config, IdleRestart, Increase, Recovery};
use super::rule::{Acked, Group, Standing, State};

/// Where a sender stands (specs/tcp.md#1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No loss known.
    Open,
    /// Fast recovery (RFC 6582 or 6675).
    Recovery,
    /// After a timeout, until what was in flight then is acknowledged.
    Loss,
}

/// The window of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    cwnd: f64,
    ssthresh: f64,
    /// Extra window in recovery, for segments known to have left the network. May be negative
    /// after a large partial acknowledgement. Zero with SACK, which knows what has left it.
    inflation: f64,
    phase: Phase,
    /// Administrative cap, segments, at least 1: limits what may be in flight, not how `cwnd` moves
    /// (specs/tcp.md#10).
    cap: f64,
    /// Duplicate acknowledgements in a row.
    dup_acks: u32,
    /// The window is below ssthresh because of a timeout.
    after_timeout: bool,
    /// The window in use before the last mark reduced it.
    before_mark: f64,
    /// RR-TCP learns the duplicate threshold: limited transmit is extended.
    extends: bool,
    rule: State,
}

/// What stands before a loss takes some of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) ssthresh: f64,
    rule: State,
}

impl Window {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            cwnd: config.initial_window,
            ssthresh: config.initial_ssthresh,
            inflation: 0.0,
            phase: Phase::Open,
            cap: config.window_cap,
            dup_acks: 0,
            after_timeout: false,
            before_mark: 0.0,
            extends: config.rr.is_some(),
            rule: State::started(&config.rule, config.increase),
        }
    }

    /// Where the sender stands.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// What this window contributes to a multipath connection, whose path has the round-trip time
    /// `srtt`. In fast recovery `cwnd` is ssthresh, as RFC 6356 wants it.
    pub(super) fn standing(&self, srtt: Option<Dur>) -> Standing {
        Standing { window: self.cwnd, srtt, loss_interval: self.rule.get().loss_interval() }
    }

    /// What the multipath connection is like, of which this is a subflow's window.
    pub(super) fn on_group(&mut self, group: &Group) {
        self.rule.get_mut().on_group(group);
    }

    /// The congestion window, segments, without inflation.
    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Halve the window of a subflow that holds up its connection, and ssthresh unless that is
    /// above it, so that slow start goes on (Raiciu and others, NSDI 2012, section 4.2, as in
    /// Linux).
    pub(super) fn penalise(&mut self) {
        if self.cwnd >= self.ssthresh {
            self.ssthresh = (self.ssthresh / 2.0).max(2.0);
        }
        self.cwnd = (self.cwnd / 2.0).max(1.0);
    }

    /// From now on the cap is `cap`.
    pub(super) fn set_cap(&mut self, cap: f64) {
        self.cap = cap;
    }

    /// `segments`, or as many as the cap allows.
    pub(super) fn capped(&self, segments: f64) -> f64 {
        segments.min(self.cap)
    }

    /// What may be in flight, segments.
    pub(super) fn allowed(&self, config: &Config) -> f64 {
        let limited_transmit = match self.phase {
            // One for each, up to a window more (RR-TCP, extended limited transmit).
            Phase::Open if self.extends => f64::from(self.dup_acks).min(self.cwnd),
            Phase::Open if config.limited_transmit => f64::from(self.dup_acks.min(2)),
            _ => 0.0,
        };
        (self.cwnd + self.inflation + limited_transmit).max(1.0).min(self.cap)
    }

    /// Whether the window is the bottleneck, given the most that was in flight in the last round
    /// trip (Linux, `tcp_is_cwnd_limited`): in slow start half of it suffices, as it doubles.
    fn is_limiting(&self, config: &Config, peak_flight: f64) -> bool {
        if config.grow_unused {
            true
        } else if self.in_slow_start(config) {
            self.cwnd < 2.0 * peak_flight
        } else {
            self.cwnd < peak_flight + 1.0
        }
    }

    /// Whether the window grows exponentially.
    pub(super) fn in_slow_start(&self, config: &Config) -> bool {
        config.slow_start && self.cwnd < self.ssthresh
    }

    /// New data was acknowledged, wherever the sender stands; before anything else.
    pub(super) fn on_ack(&mut self, ack: &Acked) {
        self.rule.get_mut().on_ack(ack);
    }

    /// New data was acknowledged outside recovery.
    pub(super) fn grow(&mut self, config: &Config, ack: &Acked, peak_flight: f64) {
        self.dup_acks = 0;
        // A marked acknowledgement never lets the window grow (RFC 3168, section 6.1.2).
        if ack.marked || !self.is_limiting(config, peak_flight) {
            return;
        }
        let cwnd = self.cwnd;
        if self.rule.get_mut().ends_slow_start() {
            self.ssthresh = self.ssthresh.min(cwnd);
        }
        let slow_start = self.in_slow_start(config);
        let rule = self.rule.get_mut();
        let increase = match config.increase {
            Increase::PerAck if slow_start => 1.0,
            Increase::PerAck => rule.increase(cwnd, 1.0, ack),
            Increase::PerByte { slow_start_limit } if slow_start => {
                // RFC 3465, section 2.3; a sender without a limit is none of that RFC's.
                let limited = self.after_timeout && slow_start_limit.is_finite();
                let limit = if limited { slow_start_limit.min(1.0) } else { slow_start_limit };
                // Slow start ends at ssthresh; what is left of an acknowledgement that crosses it
                // counts as congestion avoidance (Linux, tcp_slow_start).
                let slow = ack.segments.min(limit).min(self.ssthresh - cwnd);
                let left = ack.segments - slow;
                let crossed = cwnd + slow >= self.ssthresh && left > 0.0;
                slow + if crossed { rule.increase(self.ssthresh, left, ack) } else { 0.0 }
            }
            Increase::PerByte { .. } => rule.increase(cwnd, ack.segments, ack),
        };
        self.cwnd += increase;
        self.after_timeout &= self.cwnd < self.ssthresh;
        if increase < 0.0 {
            // Slow start is over: a rule that takes the window down itself stays in charge of it.
            self.ssthresh = self.ssthresh.min(self.cwnd);
        }
    }

    /// Congestion was marked, for the first time in this window of data.
    pub(super) fn on_mark(&mut self, now: Time) {
        let rule = self.rule.get_mut();
        let used = self.cwnd.min(self.cap);
        self.ssthresh = rule.after_mark(used, now).max(rule.least());
        // A window of one segment, after a timeout, stays one.
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.before_mark = used;
    }

    /// A duplicate acknowledgement came. True if `threshold` mean loss and it is not before the
    /// last of these; the caller decides whether to believe it.
    pub(super) fn on_duplicate(&mut self, config: &Config, threshold: u32) -> bool {
        if self.phase == Phase::Recovery {
            if config.recovery != Recovery::Sack {
                self.inflation += 1.0;
            }
            return false;
        }
        self.dup_acks += 1;
        self.dup_acks >= threshold
    }

    /// Loss inferred with `outstanding` segments to reckon with (RFC 5681, section 3.2, steps 2 and
    /// 3; RFC 6582, section 3.2, step 2; RFC 6675, section 5, step 4). The window reduced is the
    /// one in use: never one that limited transmit or the cap has stretched. `marked`: what is lost
    /// was sent before a mark reduced the window, so that both are one event of congestion.
    pub(super) fn enter_recovery(
        &mut self,
        config: &Config,
        now: Time,
        outstanding: f64,
        marked: bool,
    ) {
        let used = self.used(outstanding);
        let rule = self.rule.get_mut();
        let left = match marked {
            true => rule.after_mark_and_loss(self.before_mark, self.ssthresh),
            false => rule.after_loss(used, now),
        };
        self.ssthresh = left.max(rule.least());
        self.cwnd = self.ssthresh;
        self.after_timeout = false;
        self.inflation = match config.recovery {
            // The segments that have left the network: three, if not by early retransmit.
            Recovery::Reno | Recovery::NewReno => f64::from(self.dup_acks),
            Recovery::Sack => 0.0,
        };
        self.phase = Phase::Recovery;
    }

    /// In NewReno's recovery, `acked` segments were acknowledged, but not all (step 3, partial).
    pub(super) fn on_partial(&mut self, acked: f64) {
        self.inflation -= acked;
        if acked >= 1.0 {
            self.inflation += 1.0;
        }
    }

    /// In recovery, everything was acknowledged that was in flight when it began (RFC 6582, section
    /// 3.2, step 3, full; Reno: anything, RFC 5681, section 3.2, step 6).
    pub(super) fn leave_recovery(&mut self, config: &Config, flight: f64) {
        if config.conservative_exit && config.recovery == Recovery::NewReno {
            self.cwnd = self.ssthresh.min(flight.max(1.0) + 1.0);
        } else {
            self.cwnd = self.ssthresh;
        }
        self.reopen();
    }

    /// The retransmission timer expired with `outstanding` segments to reckon with. `again`: the
    /// same segment as the time before, which leaves ssthresh alone (RFC 5681, section 3.1).
    pub(super) fn on_timeout(&mut self, now: Time, outstanding: f64, again: bool) {
        if !again {
            let used = self.used(outstanding);
            let rule = self.rule.get_mut();
            self.ssthresh = rule.after_timeout(used, now).max(rule.least());
        }
        self.reopen();
        self.cwnd = 1.0;
        self.after_timeout = true;
        self.phase = Phase::Loss;
    }

    /// The connection is open after a SYN or its answer was lost: it begins with one segment (RFC
    /// 5681, section 3.1).
    pub(super) fn after_lost_syn(&mut self) {
        self.cwnd = 1.0;
    }

    /// What was in flight at the timeout is acknowledged.
    pub(super) fn reopen(&mut self) {
        self.phase = Phase::Open;
        self.inflation = 0.0;
        self.dup_acks = 0;
    }

    /// What [`Self::restore`] needs of now.
    pub(super) fn before(&self) -> Before {
        Before { ssthresh: self.ssthresh, rule: self.rule }
    }

    /// What reduced the window was no congestion: slow start takes it from what is in `flight` to
    /// `pipe`, where it was, so that no burst follows (RFC 4015, step 9); `acked` segments are
    /// newly acknowledged. What the rule concluded is forgotten (RFC 9438, section 4.9).
    pub(super) fn restore(
        &mut self,
        config: &Config,
        before: &Before,
        pipe: f64,
        flight: f64,
        acked: f64,
    ) {
        self.reopen();
        self.cwnd = self.cwnd.max(flight + acked.min(config.initial_window));
        self.ssthresh = pipe;
        self.after_timeout = false;
        self.rule = before.rule;
    }

    /// The connection was idle for `idle` and is to send again; it has been silent for so many
    /// `timeouts`.
    pub(super) fn after_idle(&mut self, config: &Config, idle: Dur, timeouts: u64) {
        let window = match config.idle_restart {
            IdleRestart::Never => self.cwnd,
            IdleRestart::InitialWindow => config.initial_window,
            IdleRestart::OneSegment => 1.0,
            // Halved 1074 times, the largest number is zero.
            IdleRestart::Halving => libm::ldexp(self.cwnd, -(timeouts.min(1_074) as i32)),
        };
        let window = match config.idle_restart {
            IdleRestart::OneSegment => window,
            _ => window.max(config.initial_window),
        };
        let restarts = timeouts > 0 && window < self.cwnd;
        if restarts {
            if config.idle_restart == IdleRestart::Halving {
                self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
            }
            self.cwnd = window;
            self.after_timeout = false;
        }
        self.rule.get_mut().after_idle(idle, restarts);
    }

    /// The window to reduce: never more than the congestion window and the cap.
    fn used(&self, outstanding: f64) -> f64 {
        outstanding.min(self.cwnd).min(self.cap)
    }
}

#[cfg(test)]
impl Window {
    pub(super) fn rule(&self) -> &State {
        &self.rule
    }

    /// The slow-start threshold, segments.
    pub(super) fn ssthresh(&self) -> f64 {
        self.ssthresh
    }
}
