//! Patched TIMELY (Zhu and others: "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
//! TIMELY", CoNEXT 2016): between the thresholds, the gradient only says how much the rate should
//! grow and how much it should follow the queue, so that there is one fixed point
//! (specs/timely.md#5). Elsewhere it is TIMELY, without hyperactive increase.

use units::Dur;

use super::timely::{Middle, Params};

impl Params {
    /// The paper's constants. The weight of new differences is that of its authors' simulator.
    pub const PATCHED: Self = Self {
        middle: Middle::Weighted,
        beta: 0.008,
        alpha: 0.875,
        hai_factor: 1.0,
        min_use: 0.0,
        ..Self::PAPER
    };
}

/// w(g): how much the queue counts at gradient `g`, from 0 to 1.
fn weight(g: f64) -> f64 {
    (2.0 * g + 0.5).clamp(0.0, 1.0)
}

/// The rate after an update between the thresholds, from `rate`.
pub(super) fn next(rate: f64, delta: f64, beta: f64, gradient: f64, rtt: Dur, t_low: Dur) -> f64 {
    let reference = t_low.0 as f64;
    let error = (rtt.0 as f64 - reference) / reference;
    let w = weight(gradient);
    (1.0 - w) * delta + rate * (1.0 - beta * w * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// specs/timely.md#5, line "weight".
    #[test]
    fn the_weight_is_linear_between_minus_and_plus_a_quarter() {
        for (g, w) in
            [(-1.0, 0.0), (-0.25, 0.0), (0.0, 0.5), (0.125, 0.75), (0.25, 1.0), (9.0, 1.0)]
        {
            assert_eq!(weight(g), w);
        }
    }

    /// specs/timely.md#5, "fixed point": with g = 0 and C / N each, the rate stays where the
    /// queueing delay is T_low (1 + N delta / (beta C)): 62.5 us for 2 flows at 10 Gb/s, 300 us for
    /// 40.
    #[test]
    fn the_fixed_point_is_that_of_the_paper() {
        let (c, delta, beta, t_low) = (10e9, 10e6, 0.008, Dur::from_us(50));
        for (n, ns) in [(2.0, 62_500), (10.0, 112_500), (20.0, 175_000), (40.0, 300_000)] {
            let rate = c / n;
            let stays = next(rate, delta, beta, 0.0, Dur::from_ns(ns), t_low);
            assert!((stays / rate - 1.0).abs() < 1e-12, "{n}: {stays}");
            assert!(next(rate, delta, beta, 0.0, Dur::from_ns(ns + 1_000), t_low) < rate);
        }
    }
}
