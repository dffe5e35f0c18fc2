//! TIMELY (Mittal and others, SIGCOMM 2015): the rate follows the gradient of the round-trip time
//! between two thresholds, and the round-trip time itself beyond them (specs/timely.md#3, whose
//! step numbers the code bears).

use units::{Dur, Rate, Time};

use super::super::config::{Initial, Speed};
use super::{Ack, Parameters, PathView, Rule, patched, rate};
use crate::config::{ConfigError, within};

/// When the rate is worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// At each acknowledgement that measures a round-trip time (the paper).
    Completion,
    /// At the first of them for what was sent after the last time; the first of all is only
    /// remembered (HPCC's authors).
    RoundTrip,
}

/// What counts towards hyperactive increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calm {
    /// A gradient that lets the rate grow, between the thresholds (the paper's text, "gradient < 0
    /// for five completion events", with the gradient of the rule).
    Gradient,
    /// A round-trip time below the one before, wherever it is: the newest difference, not their
    /// average (the code that the paper's authors put on the web, timely-code-snippet.cc; eRPC has
    /// it from there).
    Difference,
}

/// What the rate follows between the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// The gradient: steps 4c and 4d.
    Gradient,
    /// The gradient and the queue: patched TIMELY.
    Weighted,
}

/// Whether hyperactive increase works below `t_low`, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaiBelow {
    /// No: delta alone (the paper's text).
    Never,
    /// Acknowledgements without a positive gradient count, as above `t_low`.
    Calm,
    /// All count (HPCC's authors).
    Always,
}

/// Parameters of TIMELY.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Below this round-trip time the rate grows, whatever the gradient. At most `t_high`; where
    /// both are the same, the gradient is never looked at: the "queue size" rule of the paper's
    /// figures 9 and 10.
    pub t_low: Dur,
    /// Above it the rate shrinks, whatever the gradient.
    pub t_high: Dur,
    /// Between them.
    pub middle: Middle,
    /// delta: what the rate grows by.
    pub delta: Speed,
    /// beta: how strongly it shrinks, above 0 and at most 1.
    pub beta: f64,
    /// alpha: the weight of the newest difference of round-trip times in their average, above 0 and
    /// at most 1. No source says what the paper used.
    pub alpha: f64,
    /// What the gradient is measured in; also the least interval between updates that count in full
    /// (`scaled`).
    pub min_rtt: Dur,
    /// Hyperactive increase: delta is multiplied by this, at least 1.
    pub hai_factor: f64,
    /// So many acknowledgements in a row that count begin hyperactive increase, at least 1.
    pub hai_after: u32,
    /// Which count.
    pub hai_by: Calm,
    /// What becomes of it below `t_low`.
    pub hai_below_t_low: HaiBelow,
    /// The rate is never lower.
    pub min_rate: Speed,
    /// The rate is never higher.
    pub max_rate: Speed,
    /// The first rate.
    pub initial_rate: Initial,
    /// When the rate is worked out.
    pub update: Update,
    /// A gradient of zero lets the rate grow (the paper's "at most 0"), not only a negative one.
    pub zero_gradient_increases: bool,
    /// An update leaves at least this share of the rate, 0 to 1 (eRPC: 0.5).
    pub min_factor: f64,
    /// delta and beta of an update that comes less than `min_rtt` after the last are scaled down by
    /// that.
    pub scaled: bool,
    /// The rate grows only if the application has used more than this share of it, 0 to 1 (the
    /// paper: 0.8).
    pub min_use: f64,
    /// Nothing is worked out at the greatest rate while the round-trip time is at most `t_low`
    /// (eRPC).
    pub bypass: bool,
}

impl Params {
    /// The paper (specs/timely.md#3, column `paper`), with the weight that it recommends
    /// where none is published.
    pub const PAPER: Self = Self {
        t_low: Dur::from_us(50),
        t_high: Dur::from_us(500),
        middle: Middle::Gradient,
        delta: Speed::Fixed(Rate(10_000_000)),
        beta: 0.8,
        alpha: 0.025,
        min_rtt: Dur::from_us(20),
        hai_factor: 5.0,
        hai_after: 5,
        hai_by: Calm::Gradient,
        hai_below_t_low: HaiBelow::Never,
        min_rate: Speed::Share(0.001),
        max_rate: Speed::Share(1.0),
        initial_rate: Initial::Share,
        update: Update::Completion,
        zero_gradient_increases: true,
        min_factor: 0.0,
        scaled: false,
        min_use: 0.8,
        bypass: false,
    };

    /// eRPC (Kalia and others, NSDI 2019) as in its public code.
    pub const ERPC: Self = Self {
        t_high: Dur::from_us(1_000),
        delta: Speed::Fixed(Rate(40_000_000)),
        beta: 0.26,
        alpha: 0.46,
        min_rtt: Dur::from_us(2),
        hai_by: Calm::Difference,
        min_rate: Speed::Fixed(Rate(120_000_000)),
        initial_rate: Initial::At(Speed::Share(1.0)),
        min_factor: 0.5,
        scaled: true,
        min_use: 0.0,
        bypass: true,
        ..Self::PAPER
    };

    /// TIMELY in the simulations of HPCC's authors (their code, and the least rate of their runs).
    /// There five increases in a row, whatever the gradient below `t_low`, make the sixth
    /// hyperactive.
    pub const HPCC: Self = Self {
        delta: Speed::Share(0.001),
        alpha: 0.875,
        hai_factor: 5.0,
        hai_after: 6,
        hai_below_t_low: HaiBelow::Always,
        min_rate: Speed::Fixed(Rate(1_000_000_000)),
        initial_rate: Initial::At(Speed::Share(1.0)),
        update: Update::RoundTrip,
        min_use: 0.0,
        ..Self::PAPER
    };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        let share = "it must be from 0 to 1";
        let positive_share = "it must be above 0 and at most 1";
        let low = f64::MIN_POSITIVE;
        within("beta", self.beta, low..=1.0, positive_share)?;
        within("alpha", self.alpha, low..=1.0, positive_share)?;
        within("hai_factor", self.hai_factor, 1.0..=1e6, "it must be at least 1")?;
        within("hai_after", f64::from(self.hai_after), 1.0..=1e9, "it must be at least 1")?;
        within("min_factor", self.min_factor, 0.0..=1.0, share)?;
        within("min_use", self.min_use, 0.0..=1.0, share)?;
        within("min_rtt", self.min_rtt.0 as f64, 1.0..=1e18, "it must be above 0")?;
        self.delta.check("delta")?;
        self.min_rate.check("min_rate")?;
        self.max_rate.check("max_rate")?;
        self.initial_rate.check("initial_rate")?;
        if self.t_low > self.t_high {
            return Err(ConfigError::new(["t_low", "t_high"], "t_low must be at most t_high"));
        }
        Ok(())
    }
}

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct Timely {
    params: Params,
    /// R, bits per second; between `least` and `most`.
    rate: f64,
    least: f64,
    most: f64,
    /// delta, bits per second.
    delta: f64,
    /// The last round-trip time.
    previous: Option<Dur>,
    /// The average of differences between them, picoseconds.
    difference: f64,
    /// Acknowledgements in a row that count towards hyperactive increase.
    calm: u32,
    updated: Time,
    /// The packet that was next when the rate was last worked out.
    round_end: u64,
}

impl Timely {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            rate: 1.0,
            least: 1.0,
            most: 1.0,
            delta: 0.0,
            previous: None,
            difference: 0.0,
            calm: 0,
            updated: Time::ZERO,
            round_end: 0,
        }
    }

    /// Steps 1 to 3: the gradient after a sample of `rtt`.
    fn gradient(&mut self, rtt: Dur) -> f64 {
        let Params { alpha, min_rtt, .. } = self.params;
        let new = self.previous.map_or(0.0, |previous| rtt.0 as f64 - previous.0 as f64);
        self.previous = Some(rtt);
        if self.params.hai_by == Calm::Difference {
            self.calm = if new < 0.0 { self.calm.saturating_add(1) } else { 0 };
        }
        self.difference = (1.0 - alpha) * self.difference + alpha * new;
        self.difference / min_rtt.0 as f64
    }

    /// Step 4: what the rate becomes, with delta and beta scaled by `scale`.
    fn next(&mut self, rtt: Dur, gradient: f64, scale: f64) -> f64 {
        let Params { t_low, t_high, beta, .. } = self.params;
        let rising =
            if self.params.zero_gradient_increases { gradient > 0.0 } else { gradient >= 0.0 };
        if rtt < t_low {
            return self.rate + scale * self.step_below(rising);
        }
        if rtt > t_high || t_low == t_high {
            self.count(false);
            return self.rate * (1.0 - beta * scale * (1.0 - t_high.0 as f64 / rtt.0 as f64));
        }
        if self.params.middle == Middle::Weighted {
            return patched::next(
                self.rate,
                scale * self.delta,
                scale * beta,
                gradient,
                rtt,
                t_low,
            );
        }
        self.count(!rising);
        if rising {
            return self.rate * (1.0 - beta * scale * gradient).max(0.0);
        }
        self.rate + scale * self.step()
    }

    /// An acknowledgement with a gradient that lets the rate grow, or without.
    fn count(&mut self, calm: bool) {
        if self.params.hai_by == Calm::Gradient {
            self.calm = if calm { self.calm.saturating_add(1) } else { 0 };
        }
    }

    /// delta, or more of it in hyperactive increase.
    fn step(&self) -> f64 {
        let hyperactive = self.calm >= self.params.hai_after;
        if hyperactive { self.params.hai_factor * self.delta } else { self.delta }
    }

    /// The same for a round-trip time below `t_low`.
    fn step_below(&mut self, rising: bool) -> f64 {
        let counts = match self.params.hai_below_t_low {
            HaiBelow::Never => return self.delta,
            HaiBelow::Calm => !rising,
            HaiBelow::Always => true,
        };
        self.count(counts);
        self.step()
    }

    /// How much of an update counts that comes now (step 6).
    fn scale(&mut self, now: Time) -> f64 {
        let since = now.since(std::mem::replace(&mut self.updated, now));
        if self.params.scaled {
            (since.0 as f64 / self.params.min_rtt.0 as f64).min(1.0)
        } else {
            1.0
        }
    }
}

impl Rule for Timely {
    fn start(&mut self, path: &PathView, now: Time) {
        let line = path.line_rate;
        self.least = self.params.min_rate.of(line);
        self.most = self.params.max_rate.of(line).max(self.least);
        self.delta = self.params.delta.of(line);
        let first = self.params.initial_rate.of(line, path.others);
        self.rate = first.clamp(self.least, self.most);
        self.updated = now;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let Some(rtt) = ack.rtt else { return };
        let Params { update, bypass, t_low, min_factor, min_use, .. } = self.params;
        if update == Update::RoundTrip && ack.acked <= self.round_end
            || bypass && self.rate >= self.most && rtt <= t_low
        {
            return;
        }
        self.round_end = ack.next;
        if update == Update::RoundTrip && self.previous.is_none() {
            self.previous = Some(rtt);
            return;
        }
        let gradient = self.gradient(rtt);
        let scale = self.scale(ack.now);
        let limited = ack.achieved <= min_use * self.rate;
        let calm = self.calm;
        let next = self.next(rtt, gradient, scale).max(min_factor * self.rate);
        if limited && next > self.rate {
            self.calm = calm;
            return;
        }
        // Step 5.
        self.rate = next.clamp(self.least, self.most);
    }

    fn rate(&self) -> Rate {
        rate(self.rate)
    }
}

/// Invariants of specs/timely.md#7, by their numbers.
#[cfg(test)]
mod tests {
    use super::super::bench::{PATH, ack};
    use super::*;

    const PAPER: Params = Params::PAPER;
    /// The rate of the tests' connections at first, Mb/s.
    const FIRST: f64 = 1_000.0;

    fn timely(params: Params) -> Timely {
        let mut rule = Timely::new(params);
        rule.start(&PATH, Time::ZERO);
        rule.rate = FIRST * 1e6;
        rule
    }

    /// The rate after a round-trip time of `us`, Mb/s.
    fn after(rule: &mut Timely, us: u64) -> f64 {
        let sample = ack(rule, Time::ZERO, Dur::from_us(us));
        rule.on_ack(&sample);
        rule.rate / 1e6
    }

    #[track_caller]
    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-9, "{value}, not {expected}");
    }

    #[test]
    fn i3_a_constant_time_between_the_thresholds_adds_delta_and_five_delta_from_the_fifth_on() {
        let mut rule = timely(PAPER);
        let rates = [(); 7].map(|()| after(&mut rule, 100));
        assert_eq!(rates, [1_010.0, 1_020.0, 1_030.0, 1_040.0, 1_090.0, 1_140.0, 1_190.0]);
    }

    #[test]
    fn i3_below_t_low_hyperactive_increase_is_a_choice() {
        for (hai_below_t_low, last) in
            [(HaiBelow::Never, 1_070.0), (HaiBelow::Calm, 1_190.0), (HaiBelow::Always, 1_190.0)]
        {
            let mut rule = timely(Params { hai_below_t_low, ..PAPER });
            let rates = [(); 7].map(|()| after(&mut rule, 40));
            assert_eq!((rates[3], rates[6]), (1_040.0, last));
        }
        let rising = |hai_below_t_low| {
            let mut rule = timely(Params { hai_below_t_low, ..PAPER });
            [30, 31, 32, 33, 34, 35, 36].map(|us| after(&mut rule, us))[6]
        };
        assert_eq!(rising(HaiBelow::Calm), 1_070.0, "the gradient is positive");
        assert_eq!(rising(HaiBelow::Always), 1_190.0);
    }

    /// HPCC's authors: `UpdateRateTimely` looks at the count of increases before it counts this
    /// one.
    #[test]
    fn hpccs_authors_begin_hyperactive_increase_with_the_sixth() {
        let mut rule = timely(Params::HPCC);
        let mut at = 0;
        let rates = [30, 31, 32, 33, 34, 35, 36].map(|us| {
            at += 10;
            let sample = ack(&rule, Time::ZERO, Dur::from_us(us));
            rule.on_ack(&Ack { acked: at, next: at + 5, ..sample });
            rule.rate / 1e6
        });
        assert_eq!(rates, [1_000.0, 1_010.0, 1_020.0, 1_030.0, 1_040.0, 1_050.0, 1_100.0]);
    }

    #[test]
    fn i3_one_positive_gradient_ends_hyperactive_increase() {
        let mut rule = timely(Params { alpha: 1.0, ..PAPER });
        for _ in 0..6 {
            after(&mut rule, 100);
        }
        let low = after(&mut rule, 101);
        assert!(low < 1_140.0);
        close(after(&mut rule, 101), low + 10.0);
    }

    /// What falls on average need not fall each time: after a steep descent the average stays
    /// negative, although single samples rise.
    #[test]
    fn i3_hyperactive_increase_may_count_falling_samples_instead() {
        let fourth = |hai_by| {
            let mut rule = timely(Params { hai_by, ..PAPER });
            after(&mut rule, 400);
            for us in [60, 61, 60, 61, 60] {
                after(&mut rule, us);
            }
            let before = rule.rate / 1e6;
            after(&mut rule, 59) - before
        };
        assert_eq!((fourth(Calm::Gradient), fourth(Calm::Difference)), (50.0, 10.0));
        let mut rule = timely(Params { hai_by: Calm::Difference, ..PAPER });
        let rates = [46, 45, 44, 43, 42, 400, 60, 59, 58].map(|us| after(&mut rule, us));
        assert_eq!(rates[4], 1_050.0, "none of it below t_low");
        assert!(rates[5] < 1_050.0 && rates[8] - rates[7] < 11.0, "400 us ended the row");
    }

    #[test]
    fn i4_a_step_up_costs_one_factor_exactly() {
        for alpha in [0.025, 0.46, 0.875, 1.0] {
            let mut rule = timely(Params { alpha, ..PAPER });
            let before = after(&mut rule, 100);
            close(after(&mut rule, 110), before * (1.0 - 0.8 * alpha * 10.0 / 20.0));
        }
    }

    #[test]
    fn i5_beyond_t_high_the_factor_goes_from_one_to_one_minus_beta() {
        for (us, factor) in [(1_000, 0.6), (2_000, 0.4), (1_000_000_000, 0.2)] {
            let after = after(&mut timely(PAPER), us);
            assert!((after / FIRST - factor).abs() < 1e-6, "{us} us: {after}");
        }
        assert_eq!(after(&mut timely(PAPER), 500), 1_010.0, "at t_high itself the gradient counts");
    }

    /// Whatever the samples; with the greatest weight, single steps have gradients far beyond 1 /
    /// beta.
    #[test]
    fn i6_the_rate_stays_in_its_bounds() {
        for params in
            [PAPER, Params { alpha: 1.0, ..PAPER }, Params::ERPC, Params::HPCC, Params::PATCHED]
        {
            let mut rule = timely(params);
            for n in 0..20_000_u64 {
                let us = [1, 40, 60, 480, 490, 20, 501, 5_000][(n * n / 7 % 8) as usize];
                let before = rule.rate;
                let rate = after(&mut rule, us) * 1e6;
                assert!((rule.least..=rule.most).contains(&rate));
                assert!(
                    rate >= (params.min_factor * before).min(rule.most) - 1.0 || rate == rule.least
                );
            }
        }
        // g = 400 / 20.
        let mut rule = timely(Params { alpha: 1.0, ..PAPER });
        after(&mut rule, 60);
        assert_eq!(after(&mut rule, 460), 10.0, "R_min, not below zero and clamped from there");
    }

    #[test]
    fn i7_a_sender_that_uses_half_of_its_rate_gets_no_more() {
        for us in [10, 40, 100] {
            let mut rule = timely(PAPER);
            for _ in 0..20 {
                let sample =
                    Ack { achieved: rule.rate / 2.0, ..ack(&rule, Time::ZERO, Dur::from_us(us)) };
                rule.on_ack(&sample);
                assert_eq!(rule.rate, FIRST * 1e6);
            }
            let sample =
                Ack { achieved: rule.rate * 0.81, ..ack(&rule, Time::ZERO, Dur::from_us(us)) };
            rule.on_ack(&sample);
            assert_eq!(rule.rate, 1_010e6, "above 80 % it does, and has not counted towards more");
        }
        let mut rule = timely(PAPER);
        rule.on_ack(&Ack { achieved: 0.0, ..ack(&rule, Time::ZERO, Dur::from_us(1_000)) });
        assert_eq!(rule.rate, 600e6, "decreases always apply");
    }

    /// The rate then follows the last round-trip time alone.
    #[test]
    fn i9_with_one_threshold_the_gradient_never_matters() {
        let target = Dur::from_us(100);
        for before in [20, 90, 100, 400] {
            for (us, expected) in [(99, 1_010.0), (100, 1_000.0), (200, 600.0)] {
                let mut rule =
                    timely(Params { t_low: target, t_high: target, alpha: 1.0, ..PAPER });
                after(&mut rule, before);
                rule.rate = FIRST * 1e6;
                close(after(&mut rule, us), expected);
            }
        }
    }

    #[test]
    fn the_first_rate_is_a_share_of_the_line() {
        for (others, mbps) in [(0, 10_000), (3, 2_500), (39, 250)] {
            let mut rule = Timely::new(PAPER);
            rule.start(&PathView { others, ..PATH }, Time::ZERO);
            assert_eq!(rule.rate(), Rate(mbps * 1_000_000));
        }
    }

    /// specs/timely.md#3, variant `grad_zero_increases`: with "< 0", a flat round-trip time changes
    /// nothing.
    #[test]
    fn a_gradient_of_zero_may_leave_the_rate_alone() {
        let mut rule = timely(Params { zero_gradient_increases: false, ..PAPER });
        assert_eq!([(); 9].map(|()| after(&mut rule, 100)), [FIRST; 9]);
        assert!(after(&mut rule, 99) > FIRST);
    }

    /// Step 6: half a minRTT after the last update, half of it.
    #[test]
    fn an_early_update_counts_in_part() {
        for (us, expected) in [(5, 1_002.5), (10, 1_005.0), (20, 1_010.0), (90, 1_010.0)] {
            let mut rule = timely(Params { scaled: true, ..PAPER });
            let sample = ack(&rule, Time::ZERO + Dur::from_us(us), Dur::from_us(40));
            rule.on_ack(&sample);
            close(rule.rate / 1e6, expected);
        }
    }

    #[test]
    fn one_update_in_a_round_trip_if_so_chosen() {
        let mut rule = timely(Params { update: Update::RoundTrip, ..PAPER });
        let sample =
            |acked, next| Ack { acked, next, ..ack(&timely(PAPER), Time::ZERO, Dur::from_us(40)) };
        for (acked, next, mbps) in [
            (1, 9, 1_000.0),
            (9, 17, 1_000.0),
            (10, 18, 1_010.0),
            (18, 30, 1_010.0),
            (19, 31, 1_020.0),
        ] {
            rule.on_ack(&sample(acked, next));
            assert_eq!(rule.rate / 1e6, mbps, "{acked}");
        }
    }

    #[test]
    fn at_line_rate_below_t_low_erpc_works_nothing_out() {
        let mut rule = timely(Params::ERPC);
        rule.rate = rule.most;
        after(&mut rule, 50);
        assert_eq!(rule.previous, None);
        after(&mut rule, 51);
        assert_eq!(rule.previous, Some(Dur::from_us(51)));
    }
}
