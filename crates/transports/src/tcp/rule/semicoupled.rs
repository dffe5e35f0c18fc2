//! The family of rules between fully coupled and uncoupled (Raiciu, Wischik and Handley, "Practical
//! congestion control for multipath transport protocols", UCL 2009; htsim, `COUPLED_EPSILON`;
//! specs/mptcp.md#3). With the exponent 1 it is SEMICOUPLED of Wischik et al. (NSDI 2011,
//! section 2). Where the loss rates are p, windows settle in proportion to p^(-1/phi).

use units::Time;

use super::{Acked, Group, Parameters, Rule, between};
use crate::config::{ConfigError, within};

/// Parameters of the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// phi, 0 to 2: 0 moves everything to the best paths, 1 is SEMICOUPLED, 2 is uncoupled.
    pub exponent: f64,
    /// a: how aggressive all subflows together are, above 0 and at most 1 (NSDI 2011 gives no
    /// value: 1 with one subflow is NewReno).
    pub weight: f64,
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Semicoupled {
    params: Params,
    group: Group,
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        within("semicoupled_exponent", self.exponent, 0.0..=2.0, "it must be from 0 to 2")?;
        let must = "it must be above 0 and at most 1";
        between("semicoupled_weight", self.weight, 0.0, 1.0 + f64::EPSILON, must)
    }
}

impl Semicoupled {
    pub(super) fn new(params: Params) -> Self {
        Self { params, group: Group::ALONE }
    }
}

impl Rule for Semicoupled {
    fn on_group(&mut self, group: &Group) {
        self.group = *group;
    }

    /// a w^(1 - phi) / w_tot^(2 - phi), which is NewReno's increase times a (w / w_tot)^(2 - phi).
    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        let share = cwnd / self.group.total.max(cwnd);
        self.params.weight * libm::pow(share, 2.0 - self.params.exponent) * n / cwnd
    }

    /// As RFC 5681.
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        used / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn increase(exponent: f64, weight: f64, subflows: (f64, f64)) -> f64 {
        let mut rule = Semicoupled::new(Params { exponent, weight });
        rule.on_group(&Group { total: subflows.0 + subflows.1, subflows: 2, ..Group::ALONE });
        rule.increase(subflows.0, 1.0, &Acked::one(Time::ZERO))
    }

    /// By hand, windows of 10 and 30: uncoupled 1/10, SEMICOUPLED a/40, phi 0: 10/40^2.
    #[test]
    fn the_exponent_leads_from_coupled_to_uncoupled() {
        for (exponent, weight, expected) in
            [(2.0, 1.0, 0.1), (1.0, 1.0, 0.025), (1.0, 0.5, 0.0125), (0.0, 1.0, 0.006_25)]
        {
            let increase = increase(exponent, weight, (10.0, 30.0));
            assert!((increase - expected).abs() < 1e-12, "{exponent} {weight}: {increase}");
        }
        for exponent in [0.0, 0.7, 1.0, 2.0] {
            assert_eq!(increase(exponent, 1.0, (10.0, 0.0)), 0.1, "alone it is NewReno");
        }
    }

    /// Losses take p w / 2 per segment, acknowledgements add a w^(1-phi) / w_tot^(2-phi): in
    /// balance the windows are in proportion to p^(-1/phi). Two paths, one of which loses four
    /// times as much.
    #[test]
    fn windows_settle_by_the_exponent() {
        for (exponent, ratio) in [(2.0, 2.0), (1.0, 4.0), (0.5, 16.0)] {
            let mut windows = [50.0, 50.0];
            let losses = [0.001, 0.004];
            for _ in 0..400_000 {
                let total = windows[0] + windows[1];
                for (w, p) in windows.iter_mut().zip(losses) {
                    let grows = increase(exponent, 1.0, (*w, total - *w));
                    *w += 0.5 * (grows - p * *w / 2.0) * *w / 50.0;
                }
            }
            let got = windows[0] / windows[1];
            assert!((got / ratio - 1.0).abs() < 0.01, "{exponent}: {windows:?}");
        }
    }
}
