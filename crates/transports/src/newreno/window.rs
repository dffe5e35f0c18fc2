//! The congestion window of NewReno: RFC 5681 and RFC 6582 as arithmetic, without packets.
//! All in segments, as real numbers (specs/tcp.md, section 1).

use super::config::{Config, Increase};

/// Where a sender stands (specs/tcp.md, "Per-connection sender state").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No loss known.
    Open,
    /// Fast recovery (RFC 6582).
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
    /// after a large partial acknowledgement.
    inflation: f64,
    phase: Phase,
    /// Duplicate acknowledgements in a row.
    dup_acks: u32,
}

/// ssthresh after a loss is at least this (RFC 5681, equation 4).
const SSTHRESH_MIN: f64 = 2.0;

impl Window {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            cwnd: config.initial_window,
            ssthresh: config.initial_ssthresh,
            inflation: 0.0,
            phase: Phase::Open,
            dup_acks: 0,
        }
    }

    /// Where the sender stands.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// What may be in flight, segments.
    pub(super) fn allowed(&self, config: &Config) -> f64 {
        let limited_transmit = match self.phase {
            Phase::Open if config.limited_transmit => f64::from(self.dup_acks.min(2)),
            _ => 0.0,
        };
        (self.cwnd + self.inflation + limited_transmit).max(1.0).min(config.window_cap)
    }

    /// Whether the window is the bottleneck, given the most that was in flight in the last round
    /// trip (Linux, `tcp_is_cwnd_limited`): in slow start half of it suffices, as it doubles.
    fn is_limiting(&self, config: &Config, peak_flight: f64) -> bool {
        if config.grow_unused {
            true
        } else if self.cwnd < self.ssthresh {
            self.cwnd < 2.0 * peak_flight
        } else {
            self.cwnd < peak_flight + 1.0
        }
    }

    /// New data of `acked` segments was acknowledged outside recovery.
    pub(super) fn grow(&mut self, config: &Config, acked: f64, peak_flight: f64) {
        self.dup_acks = 0;
        if !self.is_limiting(config, peak_flight) {
            return;
        }
        self.cwnd += match config.increase {
            Increase::PerAck if self.cwnd < self.ssthresh => 1.0,
            Increase::PerAck => 1.0 / self.cwnd,
            Increase::PerByte { slow_start_limit } if self.cwnd < self.ssthresh => {
                // Slow start ends at ssthresh; what is left of an acknowledgement that crosses it
                // counts as congestion avoidance (Linux, tcp_slow_start).
                let slow = acked.min(slow_start_limit).min(self.ssthresh - self.cwnd);
                let crossed = self.cwnd + slow >= self.ssthresh;
                slow + if crossed { (acked - slow) / self.ssthresh } else { 0.0 }
            }
            Increase::PerByte { .. } => acked / self.cwnd,
        };
    }

    /// A duplicate acknowledgement came. True if it is the one that means loss; the caller
    /// decides whether to believe it.
    pub(super) fn on_duplicate(&mut self, config: &Config) -> bool {
        if self.phase == Phase::Recovery {
            self.inflation += 1.0;
            return false;
        }
        self.dup_acks += 1;
        self.dup_acks == config.dup_threshold
    }

    /// Loss inferred with `flight` segments outstanding (RFC 6582, section 3.2, step 2). The
    /// window halved is the one in use: never one that limited transmit or the cap has stretched.
    pub(super) fn enter_recovery(&mut self, config: &Config, flight: f64) {
        self.halve(config, flight);
        self.cwnd = self.ssthresh;
        self.inflation = f64::from(config.dup_threshold);
        self.phase = Phase::Recovery;
    }

    /// In recovery, `acked` segments were acknowledged, but not all (step 3, partial).
    pub(super) fn on_partial(&mut self, acked: f64) {
        self.inflation -= acked;
        if acked >= 1.0 {
            self.inflation += 1.0;
        }
    }

    /// In recovery, everything was acknowledged that was in flight when it began (step 3, full).
    pub(super) fn leave_recovery(&mut self, config: &Config, flight: f64) {
        if config.conservative_exit {
            self.cwnd = self.ssthresh.min(flight.max(1.0) + 1.0);
        } else {
            self.cwnd = self.ssthresh;
        }
        self.reopen();
    }

    /// The retransmission timer expired with `flight` segments outstanding. `again`: the same
    /// segment as the time before, which leaves ssthresh alone (RFC 5681, section 3.1).
    pub(super) fn on_timeout(&mut self, config: &Config, flight: f64, again: bool) {
        if !again {
            self.halve(config, flight);
        }
        self.reopen();
        self.cwnd = 1.0;
        self.phase = Phase::Loss;
    }

    /// What was in flight at the timeout is acknowledged.
    pub(super) fn reopen(&mut self) {
        self.phase = Phase::Open;
        self.inflation = 0.0;
        self.dup_acks = 0;
    }

    /// The connection was idle (RFC 5681, section 4.1).
    pub(super) fn restart(&mut self, config: &Config) {
        self.cwnd = self.cwnd.min(config.initial_window);
    }

    fn halve(&mut self, config: &Config, flight: f64) {
        let used = flight.min(self.cwnd).min(config.window_cap);
        self.ssthresh = (used / 2.0).max(SSTHRESH_MIN);
    }
}

#[cfg(test)]
impl Window {
    /// The congestion window, segments, without inflation.
    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The slow-start threshold, segments.
    pub(super) fn ssthresh(&self) -> f64 {
        self.ssthresh
    }
}
