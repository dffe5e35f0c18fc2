//! EWTCP (Honda, Nishida, Eggert, Sarolahti and Tokuda, PFLDNeT 2009; Wischik et al., NSDI 2011,
//! section 2; specs/mptcp.md#3): each subflow is a TCP of a fixed, smaller weight, whatever the
//! others do.

use units::Time;

use super::{Acked, Group, Parameters, Rule};

/// The weight of each of n subflows: what NewReno adds times this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// 1 / sqrt(n) (NSDI 2011, section 2).
    InverseRoot,
    /// 1 / n^2 (htsim, `COUPLED_TCP`): as a window is proportional to the square root of its
    /// weight, all together then get what one TCP does at the same loss rate.
    InverseSquare,
}

impl Parameters for Weight {}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Ewtcp {
    weight: Weight,
    subflows: f64,
}

impl Ewtcp {
    pub(super) fn new(weight: Weight) -> Self {
        Self { weight, subflows: 1.0 }
    }
}

impl Rule for Ewtcp {
    fn on_group(&mut self, group: &Group) {
        self.subflows = f64::from(group.subflows);
    }

    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        let weight = match self.weight {
            Weight::InverseRoot => 1.0 / self.subflows.sqrt(),
            Weight::InverseSquare => 1.0 / (self.subflows * self.subflows),
        };
        weight * n / cwnd
    }

    /// As RFC 5681.
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        used / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subflow_is_a_tcp_of_its_weight() {
        for (weight, subflows, increase) in [
            (Weight::InverseRoot, 1, 0.1),
            (Weight::InverseRoot, 4, 0.05),
            (Weight::InverseSquare, 1, 0.1),
            (Weight::InverseSquare, 4, 0.00625),
        ] {
            let mut rule = Ewtcp::new(weight);
            rule.on_group(&Group { subflows, ..Group::ALONE });
            assert_eq!(rule.increase(10.0, 1.0, &Acked::one(Time::ZERO)), increase);
            assert_eq!(rule.after_loss(10.0, Time::ZERO), 5.0);
        }
    }
}
