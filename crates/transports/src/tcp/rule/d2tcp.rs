//! D2TCP (Vamanan, Hasan and Vijaykumar, SIGCOMM 2012): DCTCP whose decrease depends on the
//! deadline, by a gamma correction of its estimate. Far from their deadlines flows yield to those
//! that are near.

use units::Time;

use super::{Acked, Due, Parameters, Rule, between, dctcp, seconds};
use crate::config::{ConfigError, within};

/// Parameters of D2TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Those of DCTCP, which it is without deadlines.
    pub dctcp: dctcp::Params,
    /// d is never below this, above 0 and at most 1 (0.5: the paper, section 3).
    pub min_urgency: f64,
    /// d is never above this, at least 1 (2: the paper, section 3).
    pub max_urgency: f64,
}

impl Params {
    /// The values of the paper, over DCTCP's of RFC 8257.
    pub const PAPER: Self = Self { dctcp: dctcp::Params::RFC, min_urgency: 0.5, max_urgency: 2.0 };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        self.dctcp.check()?;
        let must = "it must be above 0 and at most 1";
        between("d2tcp_min_urgency", self.min_urgency, 0.0, 1.0 + f64::EPSILON, must)?;
        let must = "it must be at least 1 and finite";
        within("d2tcp_max_urgency", self.max_urgency, 1.0..=f64::MAX, must)
    }

    fn echoes_each_mark(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct D2tcp {
    params: Params,
    dctcp: dctcp::Dctcp,
    /// What the last acknowledgement left to do until the deadline.
    due: Option<Due>,
}

impl D2tcp {
    pub(super) fn new(params: Params) -> Self {
        Self { params, dctcp: dctcp::Dctcp::new(params.dctcp), due: None }
    }

    /// d = Tc / D (the paper, section 3): the time that the rest takes with a window that swings
    /// between `window` and half of it, three quarters of it per round trip, over the time that is
    /// left. 1 without a deadline; when it has passed, as much as there is.
    fn urgency(&self, window: f64) -> f64 {
        let Some(due) = self.due else { return 1.0 };
        let needed = due.segments / (0.75 * window) * seconds(due.rtt);
        // Over zero it is infinite.
        let urgency = needed / seconds(due.within);
        urgency.clamp(self.params.min_urgency, self.params.max_urgency)
    }
}

impl Rule for D2tcp {
    fn on_ack(&mut self, ack: &Acked) {
        self.due = ack.due;
        self.dctcp.on_ack(ack);
    }

    fn increase(&mut self, cwnd: f64, n: f64, ack: &Acked) -> f64 {
        self.dctcp.increase(cwnd, n, ack)
    }

    fn after_loss(&mut self, used: f64, now: Time) -> f64 {
        self.dctcp.after_loss(used, now)
    }

    /// The paper, section 3: W (1 - p/2) with p = alpha^d.
    fn after_mark(&mut self, used: f64, _: Time) -> f64 {
        let penalty = libm::pow(self.dctcp.alpha(), self.urgency(used));
        used * (1.0 - penalty / 2.0)
    }

    fn after_mark_and_loss(&mut self, before: f64, reduced: f64) -> f64 {
        self.dctcp.after_mark_and_loss(before, reduced)
    }

    fn least(&self) -> f64 {
        self.dctcp.least()
    }
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::*;

    const RTT: Dur = Dur::from_us(100);

    /// What is left of a window of 40 segments after a mark, with alpha = 1/4.
    fn left(due: Option<(f64, u64)>) -> f64 {
        let dctcp = dctcp::Params { initial_alpha: 0.25, ..dctcp::Params::RFC };
        let mut rule = D2tcp::new(Params { dctcp, ..Params::PAPER });
        let due = due.map(|(segments, us)| Due { segments, within: Dur::from_us(us), rtt: RTT });
        rule.on_ack(&Acked { due, ..Acked::one(Time::ZERO) });
        rule.after_mark(40.0, Time::ZERO)
    }

    /// By hand: 300 segments take 10 round trips of 3/4 of 40. alpha^d/2: 1/8 at d = 1, 1/32 at 2,
    /// 1/4 at 0.5.
    #[test]
    fn the_nearer_the_deadline_the_smaller_the_decrease() {
        assert_eq!(left(None), 35.0);
        assert_eq!(left(Some((300.0, 1_000))), 35.0, "just in time");
        assert_eq!(left(Some((300.0, 500))), 38.75);
        assert_eq!(left(Some((300.0, 2_000))), 30.0);
        // Limits of d.
        assert_eq!(left(Some((300.0, 20))), 38.75, "it cannot be met");
        assert_eq!(left(Some((300.0, 0))), 38.75, "it has passed");
        assert_eq!(left(Some((3.0, 2_000))), 30.0, "no hurry at all");
        let between = left(Some((300.0, 800)));
        assert!(35.0 < between && between < 38.75, "{between}");
    }

    /// Without a deadline it is DCTCP, to the last bit, whatever alpha is.
    #[test]
    fn without_a_deadline_it_is_dctcp() {
        let mut rules = (D2tcp::new(Params::PAPER), dctcp::Dctcp::new(dctcp::Params::RFC));
        for i in 0..1_000 {
            let (marked, new_round) = (i % 7 == 0, i % 10 == 9);
            let ack = Acked { marked, new_round, ..Acked::one(Time::ZERO) };
            rules.0.on_ack(&ack);
            rules.1.on_ack(&ack);
            let used = f64::from(i) / 3.0 + 2.0;
            assert_eq!(rules.0.after_mark(used, Time::ZERO), rules.1.after_mark(used, Time::ZERO));
        }
    }
}
