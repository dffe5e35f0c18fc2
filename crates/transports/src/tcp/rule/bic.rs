//! BIC (Xu, Harfoush and Rhee, INFOCOM 2004): a binary search for the window of the last loss.
//! With the constants and the slow-start clause of Linux (specs/tcp.md#8.1).

use units::Time;

use super::super::config::Increase;
use super::{Acked, Parameters, Rule, between};
use crate::config::ConfigError;

/// Parameters of BIC. Linux's names in parentheses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Up to this window it is Reno, segments, above 0 (`low_window`, 14).
    pub low_window: f64,
    /// Smax: the greatest increase in a round trip, segments, above 0 (`max_increment`, 16).
    pub max_increment: f64,
    /// The factor of the window after a loss, between 0 and 1 (`beta`, 819/1024).
    pub beta: f64,
    /// A flow that loses below its last maximum leaves room to newer ones (`fast_convergence`).
    pub fast_convergence: bool,
    /// Round trips that the last segment before the maximum, and the first after it, take in
    /// units of 1/`SEARCH`, above 0 (`smooth_part`, 20).
    pub smooth: f64,
}

/// B: each step of the search goes this part of the way (`BICTCP_B`).
const SEARCH: f64 = 4.0;
/// Before any loss the window grows by at least 1/20 segment per acknowledgement.
const FIRST_COUNT: f64 = 20.0;

impl Params {
    /// The values of Linux.
    pub const LINUX: Self = Self {
        low_window: 14.0,
        max_increment: 16.0,
        beta: 819.0 / 1024.0,
        fast_convergence: true,
        smooth: 20.0,
    };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        let positive = "it must be above 0 and finite";
        between("bic_low_window", self.low_window, 0.0, f64::INFINITY, positive)?;
        between("bic_max_increment", self.max_increment, 0.0, f64::INFINITY, positive)?;
        between("bic_smooth", self.smooth, 0.0, f64::INFINITY, positive)?;
        between("bic_beta", self.beta, 0.0, 1.0, "it must be above 0 and below 1")
    }
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bic {
    params: Params,
    /// Wlast: the window of the last loss, less by fast convergence; zero before any.
    last_max: f64,
    /// Segments per acknowledgement, a moving average: growth per acknowledgement is scaled by
    /// it, so that delayed acknowledgements do not slow it down.
    ratio: f64,
    /// Growth counts acknowledgements, not segments, which allow for delays already.
    per_ack: bool,
}

impl Bic {
    pub(super) fn new(params: Params) -> Self {
        Self { params, last_max: 0.0, ratio: 2.0, per_ack: false }
    }

    /// The segments that must be acknowledged for the window to grow by one.
    fn count(&self, cwnd: f64) -> f64 {
        let Params { low_window, max_increment: most, smooth, .. } = self.params;
        if cwnd <= low_window {
            return cwnd;
        }
        let max = self.last_max;
        let count = if cwnd < max {
            let distance = (max - cwnd) / SEARCH;
            if distance > most {
                cwnd / most
            } else if distance <= 1.0 {
                cwnd * smooth / SEARCH
            } else {
                cwnd / distance
            }
        } else if cwnd < max + SEARCH {
            cwnd * smooth / SEARCH
        } else if cwnd < max + most * (SEARCH - 1.0) {
            cwnd * (SEARCH - 1.0) / (cwnd - max)
        } else {
            cwnd / most
        };
        if max == 0.0 { count.min(FIRST_COUNT) } else { count }
    }
}

impl Rule for Bic {
    fn start(&mut self, increase: Increase) {
        self.per_ack = increase == Increase::PerAck;
    }

    /// What is acknowledged at once after a loss says nothing of delays (Linux, `bictcp_acked`).
    fn on_ack(&mut self, ack: &Acked) {
        if ack.open {
            self.ratio += (ack.segments - self.ratio) / 16.0;
        }
    }

    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        let scaled = self.per_ack && cwnd > self.params.low_window;
        let scale = if scaled { self.ratio } else { 1.0 };
        n / (self.count(cwnd) / scale).max(1.0)
    }

    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        let Params { beta, low_window, fast_convergence, .. } = self.params;
        let yields = fast_convergence && used < self.last_max;
        self.last_max = if yields { used * (1.0 + beta) / 2.0 } else { used };
        if used <= low_window { used / 2.0 } else { used * beta }
    }

    /// A timeout forgets the maximum.
    fn after_timeout(&mut self, used: f64, now: Time) -> f64 {
        let ssthresh = self.after_loss(used, now);
        (self.last_max, self.ratio) = (0.0, 2.0);
        ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bic(increase: Increase) -> Bic {
        let mut rule = Bic::new(Params::LINUX);
        rule.start(increase);
        rule
    }

    /// Each row of the table in specs/tcp.md#8.1, by hand, with Wlast = 200.
    #[test]
    fn counts_follow_the_table() {
        let rule = Bic { last_max: 200.0, ..bic(Increase::PerAck) };
        for (cwnd, count) in [
            (10.0, 10.0),
            (100.0, 100.0 / 16.0), // 25 of distance, more than 16
            (160.0, 160.0 / 10.0), // 10 of distance
            (198.0, 198.0 * 5.0),  // half a segment of distance
            (202.0, 202.0 * 5.0),  // just beyond
            (210.0, 210.0 * 3.0 / 10.0),
            (300.0, 300.0 / 16.0),
        ] {
            assert_eq!(rule.count(cwnd), count, "{cwnd}");
        }
        let fresh = bic(Increase::PerAck);
        assert_eq!(fresh.count(1_000.0), 20.0, "never lost");
    }

    #[test]
    fn a_loss_at_a_small_window_halves_it() {
        let mut rule = bic(Increase::PerAck);
        assert_eq!(rule.after_loss(14.0, Time::ZERO), 7.0);
        assert_eq!(rule.after_loss(100.0, Time::ZERO), 100.0 * 819.0 / 1024.0);
        assert_eq!(rule.last_max, 100.0);
        rule.after_loss(50.0, Time::ZERO);
        assert_eq!(rule.last_max, 50.0 * (1.0 + 819.0 / 1024.0) / 2.0);
        rule.after_timeout(50.0, Time::ZERO);
        assert_eq!(rule.last_max, 0.0);
    }

    /// Every acknowledgement of an odd and an even number of segments alike: with a ratio of 1.5, a
    /// window of 320 far below its maximum grows by 16 / 320 * 1.5 for each; where growth counts
    /// segments, by 16 / 320 for each segment.
    #[test]
    fn delayed_acknowledgements_are_allowed_for_once() {
        let per_segment = Increase::PerByte { slow_start_limit: 2.0 };
        for (increase, counts) in [(Increase::PerAck, 1.5), (per_segment, 1.0)] {
            let fresh = bic(increase);
            let mut rule = Bic { last_max: 1_000.0, ratio: 1.5, ..fresh };
            for segments in [1.0, 2.0] {
                let n = if increase == Increase::PerAck { 1.0 } else { segments };
                let ack = Acked { segments, ..Acked::one(Time::ZERO) };
                assert_eq!(rule.increase(320.0, n, &ack), n * counts / 20.0, "{increase:?}");
            }
        }
    }

    /// An acknowledgement of 20 segments ends a recovery; another of a delayed acknowledgement
    /// follows.
    #[test]
    fn the_end_of_a_recovery_is_no_delayed_acknowledgement() {
        let mut rule = Bic { ratio: 1.0, ..bic(Increase::PerAck) };
        rule.on_ack(&Acked { segments: 20.0, open: false, ..Acked::one(Time::ZERO) });
        assert_eq!(rule.ratio, 1.0);
        rule.on_ack(&Acked { segments: 2.0, ..Acked::one(Time::ZERO) });
        assert_eq!(rule.ratio, 1.0 + 1.0 / 16.0);
    }
}
