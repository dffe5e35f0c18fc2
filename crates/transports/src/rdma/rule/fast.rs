//! A rate controller in the manner of FAST TCP (Wei and others, ToN 2006), the "FAST*" that TIMELY
//! was compared with: FAST's equation 6 for a pacing rate in place of a window, once in a round
//! trip. The paper does not say how it was mapped; this is the mapping of specs/timely.md#6.

use units::{Dur, Rate, Time};

use super::super::config::{Initial, Speed};
use super::{Ack, Parameters, PathView, Rule, rate};
use crate::config::{ConfigError, within};

/// Parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// alpha: how much of its rate each queue pair keeps queued (TIMELY's Table 1: 10, 50 and 100
    /// Mb/s).
    pub alpha: Speed,
    /// gamma: the share of the way to the new rate that an update goes, above 0 and at most 1.
    pub gamma: f64,
    /// The rate is never lower.
    pub min_rate: Speed,
    /// The rate is never higher.
    pub max_rate: Speed,
    /// The first rate.
    pub initial_rate: Initial,
}

impl Params {
    /// For the comparison of the TIMELY paper: what it does not say is ours, and as for TIMELY
    /// here. alpha is to be chosen.
    pub const TIMELY_PAPER: Self = Self {
        alpha: Speed::Fixed(Rate(10_000_000)),
        gamma: 0.5,
        min_rate: Speed::Share(0.001),
        max_rate: Speed::Share(1.0),
        initial_rate: Initial::Share,
    };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        let must = "it must be above 0 and at most 1";
        within("gamma", self.gamma, f64::MIN_POSITIVE..=1.0, must)?;
        self.alpha.check("alpha")?;
        self.min_rate.check("min_rate")?;
        self.max_rate.check("max_rate")?;
        self.initial_rate.check("initial_rate")
    }
}

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct Fast {
    params: Params,
    /// R, bits per second; between `least` and `most`.
    rate: f64,
    least: f64,
    most: f64,
    /// alpha, bits per second.
    alpha: f64,
    /// baseRTT: the least round-trip time seen.
    base: Dur,
    /// The packet that was next when the rate was last worked out.
    round_end: u64,
}

impl Fast {
    pub(super) fn new(params: Params) -> Self {
        let base = Dur::MAX;
        Self { params, rate: 1.0, least: 1.0, most: 1.0, alpha: 0.0, base, round_end: 0 }
    }
}

impl Rule for Fast {
    fn start(&mut self, path: &PathView, _: Time) {
        let line = path.line_rate;
        self.least = self.params.min_rate.of(line);
        self.most = self.params.max_rate.of(line).max(self.least);
        self.alpha = self.params.alpha.of(line);
        self.rate = self.params.initial_rate.of(line, path.others).clamp(self.least, self.most);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let Some(rtt) = ack.rtt.filter(|rtt| *rtt > Dur::ZERO) else { return };
        self.base = self.base.min(rtt);
        if ack.acked <= self.round_end {
            return;
        }
        self.round_end = ack.next;
        let gamma = self.params.gamma;
        let target = self.rate * (self.base.0 as f64 / rtt.0 as f64) + self.alpha;
        let next = (1.0 - gamma) * self.rate + gamma * target;
        self.rate = next.min(2.0 * self.rate).clamp(self.least, self.most);
    }

    fn rate(&self) -> Rate {
        rate(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{PATH, ack};
    use super::*;

    const PARAMS: Params = Params {
        alpha: Speed::Fixed(Rate(100_000_000)),
        gamma: 0.5,
        min_rate: Speed::Fixed(Rate(1_000_000)),
        max_rate: Speed::Share(1.0),
        initial_rate: Initial::At(Speed::Fixed(Rate(1_000_000_000))),
    };

    fn round(rule: &mut Fast, n: u64, us: u64) -> u64 {
        let sample =
            Ack { acked: 2 * n, next: 2 * n + 1, ..ack(rule, Time::ZERO, Dur::from_us(us)) };
        rule.on_ack(&sample);
        rule.rate().0 / 1_000_000
    }

    /// specs/timely.md#6, line FAST*, by hand.
    #[test]
    fn the_rate_moves_half_way_to_alpha_queued() {
        let mut rule = Fast::new(PARAMS);
        rule.start(&PATH, Time::ZERO);
        assert_eq!(round(&mut rule, 1, 20), 1_050, "1000 and 1000 + 100");
        assert_eq!(round(&mut rule, 2, 40), 837, "1050 and 525 + 100");
        assert_eq!(round(&mut rule, 2, 40), 837, "once in a round trip");
        rule.rate = 50e6;
        assert_eq!(round(&mut rule, 3, 20), 100, "50 and 50 + 100");
        rule.rate = 10e6;
        assert_eq!(round(&mut rule, 4, 20), 20, "at most doubled");
    }
}
