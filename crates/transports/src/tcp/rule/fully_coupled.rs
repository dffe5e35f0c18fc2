//! COUPLED (Wischik et al., NSDI 2011, section 2; specs/mptcp.md#3): both increase and
//! decrease are those of the whole connection, so that only the least congested paths are used. It
//! is there to compare with: it gives up what a path has too readily.

use units::Time;

use super::{Acked, Group, Rule};

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct FullyCoupled {
    group: Group,
}

impl FullyCoupled {
    pub(super) fn new() -> Self {
        Self { group: Group::ALONE }
    }
}

impl Rule for FullyCoupled {
    fn on_group(&mut self, group: &Group) {
        self.group = *group;
    }

    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        n / self.group.total.max(cwnd)
    }

    /// Half of the whole connection's window is taken from this subflow, as far as it has that.
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        (used - self.group.total.max(used) / 2.0).max(self.least())
    }

    /// One segment (specs/mptcp.md#3).
    fn least(&self) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 30 segments in all.
    #[test]
    fn the_whole_connection_is_halved_at_one_subflow() {
        let mut rule = FullyCoupled::new();
        rule.on_group(&Group { total: 30.0, subflows: 2, ..Group::ALONE });
        assert_eq!(rule.increase(20.0, 3.0, &Acked::one(Time::ZERO)), 0.1);
        assert_eq!(rule.after_loss(20.0, Time::ZERO), 5.0);
        assert_eq!(rule.after_loss(10.0, Time::ZERO), 1.0, "it has not as much");
    }

    #[test]
    fn alone_it_is_newreno() {
        let mut rule = FullyCoupled::new();
        rule.on_group(&Group { total: 20.0, ..Group::ALONE });
        assert_eq!(rule.increase(20.0, 1.0, &Acked::one(Time::ZERO)), 0.05);
        assert_eq!(rule.after_loss(20.0, Time::ZERO), 10.0);
    }
}
