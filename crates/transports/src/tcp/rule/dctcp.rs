//! DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010): the window shrinks in proportion to the share
//! of marked bytes.

use units::Time;

use super::{Acked, Parameters, Rule, between};
use crate::config::{ConfigError, within};

/// Parameters of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// g: the weight of the newest window in the estimate, above 0 and at most 1 (1/16: RFC 8257,
    /// section 4.2).
    pub gain: f64,
    /// The estimate before anything was acknowledged, 0 to 1 (1: RFC 8257, section 3.3, so that
    /// the first mark halves; 0: htsim).
    pub initial_alpha: f64,
    /// The window is never below so many segments after a mark or a loss, at least 1 (2: Linux).
    pub min_window: f64,
}

impl Params {
    /// The values of RFC 8257 and, for `min_window`, of Linux.
    pub const RFC: Self = Self { gain: 1.0 / 16.0, initial_alpha: 1.0, min_window: 2.0 };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        let must = "it must be above 0 and at most 1";
        between("dctcp_gain", self.gain, 0.0, 1.0 + f64::EPSILON, must)?;
        let must = "it must be from 0 to 1";
        within("dctcp_initial_alpha", self.initial_alpha, 0.0..=1.0, must)?;
        let must = "it must be at least 1";
        within("dctcp_min_window", self.min_window, 1.0..=f64::INFINITY, must)
    }

    fn echoes_each_mark(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Dctcp {
    params: Params,
    /// DCTCP.Alpha: the estimated share of bytes that meet congestion.
    alpha: f64,
    /// Segments acknowledged in this observation window, and those of them with ECE.
    acked: f64,
    marked: f64,
}

impl Dctcp {
    pub(super) fn new(params: Params) -> Self {
        Self { params, alpha: params.initial_alpha, acked: 0.0, marked: 0.0 }
    }

    /// The estimated share of bytes that meet congestion.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Rule for Dctcp {
    /// RFC 8257, section 3.3, steps 1 to 8. The observation window is a round trip: it ends with
    /// the first acknowledgement beyond what had been sent when it began, which still counts.
    fn on_ack(&mut self, ack: &Acked) {
        self.acked += ack.segments;
        self.marked += if ack.marked { ack.segments } else { 0.0 };
        if ack.new_round {
            let share = self.marked / self.acked;
            let gain = self.params.gain;
            self.alpha = self.alpha * (1.0 - gain) + gain * share;
            (self.acked, self.marked) = (0.0, 0.0);
        }
    }

    /// As RFC 5681: RFC 8257 changes only the reaction to marks.
    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        n / cwnd
    }

    /// As RFC 5681 (RFC 8257, section 3.5).
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        used / 2.0
    }

    /// RFC 8257, section 3.3, step 9.
    fn after_mark(&mut self, used: f64, _: Time) -> f64 {
        used * (1.0 - self.alpha / 2.0)
    }

    /// A loss halves, whatever alpha is, and only once per window across all signals (RFC 8257,
    /// section 3.5): together they leave what the stronger of them does.
    fn after_mark_and_loss(&mut self, before: f64, reduced: f64) -> f64 {
        reduced.min(before / 2.0)
    }

    fn least(&self) -> f64 {
        self.params.min_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rule: &mut Dctcp, marked: u32) {
        for i in 0..10 {
            let (marked, new_round) = (i < marked, i == 9);
            rule.on_ack(&Acked { marked, new_round, ..Acked::one(Time::ZERO) });
        }
    }

    /// By hand: 15/16 of the estimate before, and 1/16 of 3/10; then of none; then of all.
    #[test]
    fn alpha_is_a_moving_average_of_the_marked_share() {
        let mut rule = Dctcp::new(Params::RFC);
        round(&mut rule, 3);
        assert!((rule.alpha - 0.95625).abs() < 1e-12, "{}", rule.alpha);
        assert!((rule.after_mark(20.0, Time::ZERO) - 20.0 * (1.0 - 0.478125)).abs() < 1e-12);
        round(&mut rule, 0);
        assert!((rule.alpha - 0.896_484_375).abs() < 1e-12, "{}", rule.alpha);
        round(&mut rule, 10);
        assert!((rule.alpha - 0.902_954_101_562_5).abs() < 1e-12, "{}", rule.alpha);
    }

    #[test]
    fn marks_everywhere_halve_and_marks_nowhere_leave_the_window() {
        let mut rule = Dctcp::new(Params { initial_alpha: 0.5, ..Params::RFC });
        for _ in 0..500 {
            round(&mut rule, 10);
        }
        assert!((rule.after_mark(40.0, Time::ZERO) - 20.0).abs() < 1e-6);
        for _ in 0..500 {
            round(&mut rule, 0);
        }
        assert!((rule.after_mark(40.0, Time::ZERO) - 40.0).abs() < 1e-6);
        assert_eq!(rule.after_loss(40.0, Time::ZERO), 20.0, "a loss halves whatever alpha is");
    }
}
