//! LIA, the linked increases of MPTCP (RFC 6356; Wischik, Raiciu, Greenhalgh and Handley, NSDI
//! 2011, where it is called MPTCP; specs/mptcp.md#3): all subflows together grow as one TCP on
//! the best of their paths would. Decreases are NewReno's.

use units::Time;

use super::{Acked, Group, Parameters, Rule};
use crate::config::{ConfigError, within};

/// Parameters of LIA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Never more than what NewReno on this subflow alone would add (RFC 6356, section 3, the
    /// second argument of its minimum). Without: "linked increases" of the reference code, which
    /// does not heed RFC 6356's second goal, to harm no path more than a TCP would.
    pub capped: bool,
    /// An acknowledgement adds at least so many segments, 0 to 1 (0: RFC 6356; one byte: the
    /// reference code of MMPTCP, as all of ns-3's window rules).
    pub min_increase: f64,
}

impl Params {
    /// RFC 6356.
    pub const RFC: Self = Self { capped: true, min_increase: 0.0 };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        let must = "it must be from 0 to 1 segment";
        within("lia_min_increase", self.min_increase, 0.0..=1.0, must)
    }
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Lia {
    params: Params,
    group: Group,
}

impl Lia {
    pub(super) fn new(params: Params) -> Self {
        Self { params, group: Group::ALONE }
    }
}

impl Rule for Lia {
    fn on_group(&mut self, group: &Group) {
        self.group = *group;
    }

    /// RFC 6356, equation 1.
    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        let linked = self.group.alpha * n / self.group.total.max(cwnd);
        let increase = if self.params.capped { linked.min(n / cwnd) } else { linked };
        increase.max(self.params.min_increase)
    }

    /// As RFC 5681 (RFC 6356, section 3).
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        used / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn increase(params: Params, alpha: f64, cwnd: f64) -> f64 {
        let mut rule = Lia::new(params);
        rule.on_group(&Group { total: 40.0, alpha, ..Group::ALONE });
        rule.increase(cwnd, 1.0, &Acked::one(Time::ZERO))
    }

    /// By hand, 40 segments in all: alpha / 40, but at most 1 / cwnd.
    #[test]
    fn the_increase_is_linked_and_capped() {
        assert_eq!(increase(Params::RFC, 0.5, 10.0), 0.0125);
        assert_eq!(increase(Params::RFC, 8.0, 10.0), 0.1);
        assert_eq!(increase(Params { capped: false, ..Params::RFC }, 8.0, 10.0), 0.2);
        let byte = 1.0 / 1400.0;
        assert_eq!(increase(Params { min_increase: byte, ..Params::RFC }, 0.01, 10.0), byte);
    }

    #[test]
    fn alone_it_is_newreno() {
        let mut rule = Lia::new(Params::RFC);
        for cwnd in [1.0, 2.5, 7.0 / 3.0, 1234.56] {
            rule.on_group(&Group { total: cwnd, ..Group::ALONE });
            assert_eq!(rule.increase(cwnd, 2.0, &Acked::one(Time::ZERO)), 2.0 / cwnd);
            // Slow start has just ended above the window of which the group was reckoned.
            assert_eq!(rule.increase(cwnd + 1.0, 1.0, &Acked::one(Time::ZERO)), 1.0 / (cwnd + 1.0));
            assert_eq!(rule.after_loss(cwnd, Time::ZERO), cwnd / 2.0);
        }
    }
}
