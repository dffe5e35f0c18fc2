//! OLIA, opportunistic linked increases (Khalili, Gast, Popovic and Le Boudec, CoNEXT 2012 and ToN
//! 2013; specs/mptcp.md#3): a part that is optimal where loss rates stand still, and a part that
//! moves the window from the paths with the largest to the best ones that have less. Decreases are
//! NewReno's.

use units::Time;

use super::{Acked, Group, Rule};

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Olia {
    group: Group,
    /// Segments acknowledged since the last loss, and between the last two: l_2 and l_1 of the
    /// paper.
    since_loss: f64,
    between_losses: f64,
}

impl Olia {
    pub(super) fn new() -> Self {
        Self { group: Group::ALONE, since_loss: 0.0, between_losses: 0.0 }
    }
}

impl Rule for Olia {
    /// l, the larger of l_1 and l_2, so that a loss does not make a good path look bad at once.
    fn loss_interval(&self) -> f64 {
        self.since_loss.max(self.between_losses)
    }

    fn on_group(&mut self, group: &Group) {
        self.group = *group;
    }

    fn on_ack(&mut self, ack: &Acked) {
        self.since_loss += ack.segments;
    }

    /// The paper's equation 5: (w/rtt^2) / (sum of w/rtt)^2 is the square of the subflow's share of
    /// the rate, over w. May be negative; a window keeps a segment.
    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        let Group { rate_share, shift, .. } = self.group;
        (n * (rate_share * rate_share + shift) / cwnd).max(1.0 - cwnd)
    }

    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        // Losses in a row, without anything acknowledged between them, are one (Linux).
        if self.since_loss > 0.0 {
            self.between_losses = self.since_loss;
            self.since_loss = 0.0;
        }
        used / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: half of the rate, window 10.
    #[test]
    fn the_increase_has_two_parts() {
        let mut rule = Olia::new();
        let mut increase = |rate_share, shift| {
            rule.on_group(&Group { rate_share, shift, ..Group::ALONE });
            rule.increase(10.0, 1.0, &Acked::one(Time::ZERO))
        };
        assert!((increase(0.5, 0.0) - 0.025).abs() < 1e-12);
        assert!((increase(0.5, 0.5) - 0.075).abs() < 1e-12);
        assert!((increase(0.5, -0.5) + 0.025).abs() < 1e-12);
    }

    #[test]
    fn a_window_keeps_a_segment() {
        let mut rule = Olia::new();
        rule.on_group(&Group { rate_share: 0.1, shift: -0.5, ..Group::ALONE });
        let increase = rule.increase(1.0, 1.0, &Acked::one(Time::ZERO));
        assert_eq!(increase, 0.0);
    }

    /// By hand: 5, 20, 3, 4 segments between losses.
    #[test]
    fn the_interval_is_the_larger_of_the_last_two() {
        let mut rule = Olia::new();
        let mut after = |segments: u32| {
            (0..segments).for_each(|_| rule.on_ack(&Acked::one(Time::ZERO)));
            let before = rule.loss_interval();
            rule.after_loss(10.0, Time::ZERO);
            rule.after_loss(10.0, Time::ZERO);
            before
        };
        assert_eq!([5, 20, 3, 4].map(&mut after), [5.0, 20.0, 20.0, 4.0]);
    }
}
