//! FAST TCP (Wei, Jin, Low and Hegde, IEEE/ACM ToN 2006): each flow keeps a number of packets
//! queued, by comparing its round-trip time with the least it has seen (specs/tcp.md#8.5).

use units::{Dur, Time};

use super::{Acked, Parameters, Rule, between, seconds};
use crate::config::ConfigError;

/// Parameters of FAST. None is published as the right one for every network: the paper sets alpha
/// for each experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Segments that each flow keeps queued, above 0.
    pub alpha: f64,
    /// Share of the way to the new window that an update goes, above 0 and at most 1 (0.5: the
    /// paper, section IV).
    pub gamma: f64,
    /// Queueing delay that ends slow start (0.75 ms: the ns-2 module, for wide areas).
    pub slow_start_delay: Dur,
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Fast {
    params: Params,
    /// baseRTT: the least round-trip time of the connection; zero without a sample.
    base: Dur,
    /// The last round-trip time.
    rtt: Dur,
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        between("fast_alpha", self.alpha, 0.0, f64::INFINITY, "it must be above 0 and finite")?;
        let must = "it must be above 0 and at most 1";
        between("fast_gamma", self.gamma, 0.0, 1.0 + f64::EPSILON, must)
    }
}

impl Fast {
    pub(super) fn new(params: Params) -> Self {
        Self { params, base: Dur::ZERO, rtt: Dur::ZERO }
    }
}

impl Rule for Fast {
    fn on_ack(&mut self, ack: &Acked) {
        if let Some(rtt) = ack.sample {
            self.base = if self.base == Dur::ZERO { rtt } else { self.base.min(rtt) };
            self.rtt = rtt;
        }
    }

    fn ends_slow_start(&self) -> bool {
        self.rtt - self.base > self.params.slow_start_delay
    }

    /// The paper's equation 6, once in a round trip: may be negative.
    fn increase(&mut self, cwnd: f64, _: f64, ack: &Acked) -> f64 {
        if !ack.new_round || self.rtt == Dur::ZERO {
            return 0.0;
        }
        let Params { alpha, gamma, .. } = self.params;
        let target = seconds(self.base) / seconds(self.rtt) * cwnd + alpha;
        let next = ((1.0 - gamma) * cwnd + gamma * target).min(2.0 * cwnd);
        next.max(1.0) - cwnd
    }

    /// As RFC 5681.
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        used / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: Params = Params { alpha: 10.0, gamma: 0.5, slow_start_delay: Dur::from_us(20) };

    fn round(rule: &mut Fast, cwnd: f64, us: u64) -> f64 {
        let sample = Some(Dur::from_us(us));
        let ack = Acked { sample, new_round: true, ..Acked::one(Time::ZERO) };
        rule.on_ack(&ack);
        cwnd + rule.increase(cwnd, 1.0, &ack)
    }

    /// Equation 6 by hand: from 40 at the base round trip, then at twice that.
    #[test]
    fn the_window_moves_towards_alpha_packets_queued() {
        let mut rule = Fast::new(PARAMS);
        assert_eq!(round(&mut rule, 40.0, 100), 45.0, "half of 40, and half of 40 + 10");
        assert_eq!(round(&mut rule, 40.0, 200), 35.0, "half of 40, and half of 20 + 10");
        assert_eq!(round(&mut rule, 20.0, 200), 20.0, "ten of twenty are queued");
        assert_eq!(round(&mut rule, 2.0, 100), 4.0, "at most doubled");
    }

    #[test]
    fn queueing_ends_slow_start() {
        let mut rule = Fast::new(PARAMS);
        assert!(!rule.ends_slow_start());
        round(&mut rule, 10.0, 100);
        round(&mut rule, 10.0, 120);
        assert!(!rule.ends_slow_start());
        round(&mut rule, 10.0, 121);
        assert!(rule.ends_slow_start());
    }
}
