//! DCQCN (Zhu et al., SIGCOMM 2015, section 5): marks come back as congestion notification packets
//! (CNPs), which cut the rate by half of alpha, an estimate of how much is marked; a timer and a
//! byte counter raise it again, first back to what it was, then beyond. specs/rdma.md#4.
//!
//! [`Cuts::Clocked`] is the form of HPCC's authors' simulator (there "mlx"), where every
//! acknowledgement echoes its mark, alpha is worked out on a clock of its own, and so are cuts.

use units::{Dur, Rate, Time};

use super::super::config::Speed;
use super::{Ack, Parameters, PathView, Rule, rate};
use crate::config::{ConfigError, within};

/// Parameters of DCQCN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// g: the weight of a new observation in alpha, above 0 and at most 1.
    pub g: f64,
    /// What cuts the rate.
    pub cuts: Cuts,
    /// [`Cuts::Cnp`]: alpha falls whenever there was no CNP for so long. [`Cuts::Clocked`]: alpha
    /// is worked out so often.
    pub alpha_timer: Dur,
    /// The rate is raised so long after a cut, and so often from then on (the paper's T).
    pub rate_timer: Dur,
    /// It is also raised after so many bytes (the paper's B); [`u64::MAX`]: never.
    pub byte_counter: u64,
    /// F: from which expiry of a timer or of the counter on the target is raised too, at least 1.
    pub f: u32,
    /// R_AI: by how much the target is raised.
    pub r_ai: Speed,
    /// R_HAI: by how much it is raised when both have expired F times, times how often beyond that.
    /// Without a byte counter: when the timer has expired more than F times, and not times
    /// anything. `None`: R_AI there, too.
    pub r_hai: Option<Speed>,
    /// R_min: the rate is never below.
    pub min_rate: Speed,
    /// Whether every cut brings the target down to the rate; if not, only the first after an
    /// increase.
    pub clamp_target: bool,
    /// Whether a CNP raises alpha before it cuts (some code), not after (the paper, equation 1).
    pub alpha_first: bool,
}

/// What cuts the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Every CNP. The receiver sends no more than one in an interval.
    Cnp,
    /// Marks that acknowledgements echo: there is a cut at the end of each interval of this length
    /// in which one came. The first mark begins the first interval.
    Clocked(Dur),
}

impl Params {
    /// The paper's, for 40 Gb/s (sections 5 and 6). It does not state R_HAI, nor R_min: 1 Mb/s, as
    /// NICs have it.
    pub const PAPER: Self = Self {
        g: 1.0 / 256.0,
        cuts: Cuts::Cnp,
        alpha_timer: Dur::from_us(55),
        rate_timer: Dur::from_us(55),
        byte_counter: 10_000_000,
        f: 5,
        r_ai: Speed::Fixed(Rate(40_000_000)),
        r_hai: None,
        min_rate: Speed::Fixed(Rate(1_000_000)),
        clamp_target: true,
        alpha_first: false,
    };

    /// The first public simulator's (`bobzhuyb/ns3-rdma`).
    pub const NS3_RDMA: Self = Self {
        rate_timer: Dur::from_us(60),
        byte_counter: 300_000_000,
        r_hai: Some(Speed::Fixed(Rate(200_000_000))),
        ..Self::PAPER
    };

    /// Of HPCC's evaluation: its simulator's, where F is 1, but counted from zero. 5 and 50 Mb/s
    /// per 25 Gb/s of the line; R_min is 1 Gb/s at 100 Gb/s.
    pub const MLX: Self = Self {
        cuts: Cuts::Clocked(Dur::from_us(4)),
        alpha_timer: Dur::from_us(1),
        rate_timer: Dur::from_us(300),
        byte_counter: u64::MAX,
        f: 2,
        r_ai: Speed::Share(0.0002),
        r_hai: Some(Speed::Share(0.002)),
        min_rate: Speed::Share(0.01),
        clamp_target: false,
        ..Self::PAPER
    };

    /// The same with intervals like the paper's (`dcqcn_paper` in its script).
    pub const MLX_PAPER: Self = Self {
        cuts: Cuts::Clocked(Dur::from_us(50)),
        alpha_timer: Dur::from_us(50),
        rate_timer: Dur::from_us(55),
        ..Self::MLX
    };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        within("g", self.g, f64::MIN_POSITIVE..=1.0, "it must be above 0 and at most 1")?;
        let must = "it must be at least 1";
        within("f", f64::from(self.f), 1.0..=f64::MAX, must)?;
        self.r_ai.check("r_ai")?;
        self.min_rate.check("min_rate")?;
        if let Some(speed) = self.r_hai {
            speed.check("r_hai")?;
        }
        let must = "it must be above zero";
        let every = match self.cuts {
            Cuts::Cnp => Dur::MAX,
            Cuts::Clocked(every) => every,
        };
        within("byte_counter", self.byte_counter as f64, 1.0..=f64::MAX, must)?;
        // What expires while a queue pair is idle is made up for one by one.
        let must = "it must be at least 1 ns";
        for (name, value) in [("alpha_timer", self.alpha_timer), ("cut_interval", every)] {
            within(name, value.0 as f64, 1e3..=f64::MAX, must)?;
        }
        let must = "it must be at least 1 us";
        within("rate_timer", self.rate_timer.0 as f64, 1e6..=f64::MAX, must)
    }
}

/// The reaction point of one queue pair. Rates are in bits per second.
#[derive(Clone, Copy, Debug)]
pub struct Dcqcn {
    params: Params,
    line: f64,
    /// R_AI, R_HAI and R_min.
    step: f64,
    hyper_step: f64,
    least: f64,
    /// R_C.
    current: f64,
    /// R_T.
    target: f64,
    /// As of the last expiry before `alpha_at`.
    alpha: f64,
    /// When alpha is worked out next; never before the first CNP.
    alpha_at: Time,
    /// When the rate timer expires next; never while the rate is the line's.
    rate_at: Time,
    /// Clocked cuts: when an interval ends that has begun, perhaps in the past; never before the
    /// first mark.
    cut_at: Time,
    /// Clocked cuts: a mark has come since alpha was worked out, and since the last cut.
    marked: Marked,
    /// Since the byte counter last expired.
    sent: u64,
    /// Expiries since the last cut.
    timer_stage: u32,
    byte_stage: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marked {
    alpha: bool,
    cut: bool,
}

/// An alpha below this is none: nothing is left to decay.
const NO_ALPHA: f64 = 1e-12;

impl Dcqcn {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            line: 1.0,
            step: 0.0,
            hyper_step: 0.0,
            least: 1.0,
            current: 1.0,
            target: 1.0,
            alpha: 1.0,
            alpha_at: Time::NEVER,
            rate_at: Time::NEVER,
            cut_at: Time::NEVER,
            marked: Marked::default(),
            sent: 0,
            timer_stage: 0,
            byte_stage: 0,
        }
    }

    /// An acknowledgement echoes a mark.
    fn on_mark(&mut self, now: Time, every: Dur) {
        self.decay(now);
        if self.alpha_at == Time::NEVER {
            self.alpha_at = now + self.params.alpha_timer;
            self.cut_at = now + every;
        } else {
            self.marked.alpha = true;
        }
        if !self.marked.cut {
            self.marked.cut = true;
            // Intervals without marks have gone by unseen.
            let over = now.since(self.cut_at).0 / every.0.max(1);
            self.cut_at += every * (over + u64::from(self.cut_at <= now));
        }
    }

    fn cut(&mut self, now: Time) {
        if self.params.clamp_target || self.timer_stage + self.byte_stage > 0 {
            self.target = self.current;
        }
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(self.least).min(self.line);
        self.target = self.target.max(self.current);
        (self.timer_stage, self.byte_stage, self.sent) = (0, 0, 0);
        self.rate_at = now + self.params.rate_timer;
    }

    fn raise_alpha(&mut self) {
        let gain = self.params.g;
        self.alpha = (1.0 - gain) * self.alpha + gain;
    }

    /// Alpha as of `now`: it is nobody else's business, so its timer needs no events.
    fn decay(&mut self, now: Time) {
        while self.alpha_at <= now {
            if std::mem::take(&mut self.marked.alpha) {
                self.raise_alpha();
            } else {
                self.alpha *= 1.0 - self.params.g;
            }
            self.alpha_at += self.params.alpha_timer;
            if self.alpha < NO_ALPHA {
                let period = self.params.alpha_timer;
                self.alpha_at += period * (now.since(self.alpha_at).0 / period.0);
            }
        }
    }

    /// Fast recovery, additive or hyper increase, by the stages reached.
    fn increase(&mut self) {
        let Params { f: stages, byte_counter, .. } = self.params;
        let (least, most) =
            (self.timer_stage.min(self.byte_stage), self.timer_stage.max(self.byte_stage));
        if most >= stages {
            self.target += if least >= stages {
                f64::from(least - stages + 1) * self.hyper_step
            } else if byte_counter == u64::MAX && most > stages {
                self.hyper_step
            } else {
                self.step
            };
            self.target = self.target.min(self.line);
        }
        self.current = (self.target + self.current) / 2.0;
        if self.line - self.current < 1.0 {
            // To the bit per second there is nothing left to recover.
            (self.current, self.target) = (self.line, self.line);
            self.rate_at = Time::NEVER;
        }
    }
}

impl Rule for Dcqcn {
    /// It starts at the line's rate.
    fn start(&mut self, path: &PathView, _: Time) {
        let (params, line) = (&self.params, path.line_rate);
        self.line = line.0 as f64;
        self.step = params.r_ai.of(line);
        self.hyper_step = params.r_hai.map_or(self.step, |speed| speed.of(line));
        self.least = params.min_rate.of(line);
        (self.current, self.target) = (self.line, self.line);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Cuts::Clocked(every) = self.params.cuts
            && ack.ce
        {
            self.on_mark(ack.now, every);
        }
    }

    fn on_cnp(&mut self, now: Time) {
        self.decay(now);
        if self.params.alpha_first {
            self.raise_alpha();
        }
        self.cut(now);
        if !self.params.alpha_first {
            self.raise_alpha();
        }
        self.alpha_at = now + self.params.alpha_timer;
    }

    fn on_sent(&mut self, bytes: u64, _: Time) {
        if self.rate_at == Time::NEVER || self.params.byte_counter == u64::MAX {
            return;
        }
        self.sent += bytes;
        while self.sent >= self.params.byte_counter {
            self.sent -= self.params.byte_counter;
            self.byte_stage += 1;
            self.increase();
        }
    }

    fn deadline(&self) -> Time {
        if self.marked.cut { self.rate_at.min(self.cut_at) } else { self.rate_at }
    }

    fn on_timer(&mut self, now: Time) {
        if self.marked.cut && self.cut_at <= now {
            // Alpha first, where both are due.
            self.decay(now);
            self.marked.cut = false;
            self.cut(now);
        }
        while self.rate_at <= now {
            self.rate_at += self.params.rate_timer;
            self.timer_stage += 1;
            self.increase();
        }
    }

    fn rate(&self) -> Rate {
        rate(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{self, PATH};
    use super::*;

    const GBPS: f64 = 1e9;

    fn begun(params: Params, gbps: u64) -> Dcqcn {
        let mut rule = Dcqcn::new(params);
        rule.start(&PathView { line_rate: Rate(gbps * 1_000_000_000), ..PATH }, Time::ZERO);
        rule
    }

    /// An acknowledgement echoes a mark.
    fn mark(rule: &mut Dcqcn, now: Time) {
        let ack = Ack { ce: true, ..bench::ack(rule, now, Dur::from_us(20)) };
        rule.on_ack(&ack);
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// Let every timer up to `until` expire.
    fn run(rule: &mut Dcqcn, until: Time) {
        while rule.deadline() <= until {
            rule.on_timer(rule.deadline());
        }
    }

    fn is(what: f64, expected: f64) {
        assert!((what - expected).abs() <= expected.abs() * 1e-12, "{what}, not {expected}");
    }

    /// specs/rdma.md#I6.
    #[test]
    fn i6_the_first_cnp_halves() {
        let mut rule = begun(Params::PAPER, 40);
        is(rule.current, 40.0 * GBPS);
        assert_eq!(rule.deadline(), Time::NEVER, "no timers before the first CNP");
        rule.on_cnp(at(100));
        is(rule.current, 20.0 * GBPS);
        is(rule.target, 40.0 * GBPS);
        is(rule.alpha, 1.0);
    }

    /// specs/rdma.md#I6: alpha stays in [0, 1] and the rate between R_min and the line's, whatever
    /// comes.
    #[test]
    fn i6_bounds_hold_for_any_sequence() {
        for params in [Params::PAPER, Params::NS3_RDMA, Params::MLX, Params::MLX_PAPER] {
            let mut rule = begun(params, 40);
            let mut bits: u64 = 7;
            let mut now = Time::ZERO;
            for _ in 0..20_000 {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += Dur::from_ns(bits >> 48);
                run(&mut rule, now);
                match bits >> 40 & 3 {
                    0 => rule.on_cnp(now),
                    1 => mark(&mut rule, now),
                    _ => rule.on_sent(bits >> 42 & 0xff_ffff, now),
                }
                assert!((0.0..=1.0).contains(&rule.alpha), "{rule:?}");
                assert!(rule.least <= rule.current && rule.current <= rule.target, "{rule:?}");
                assert!(rule.target <= rule.line, "{rule:?}");
            }
        }
    }

    /// specs/rdma.md#I7: R_C = R_T - (R_T - R_C0)/2^k after k < F expiries; the F-th raises R_T by
    /// R_AI first.
    #[test]
    fn i7_fast_recovery_then_additive_increase() {
        let mut rule = begun(Params::PAPER, 40);
        rule.on_cnp(at(0));
        rule.on_cnp(at(50));
        let (target, start) = (20.0 * GBPS, 10.0 * GBPS);
        is(rule.target, target);
        is(rule.current, start);
        for k in 1..5 {
            run(&mut rule, at(50 + 55 * k));
            is(rule.current, target - (target - start) / f64::from(1 << k));
            is(rule.target, target);
        }
        let before = rule.current;
        run(&mut rule, at(50 + 55 * 5));
        is(rule.target, target + 0.04 * GBPS);
        is(rule.current, (target + 0.04 * GBPS + before) / 2.0);
    }

    /// specs/rdma.md#I8: alpha after k idle timers is alpha0 (1-g)^k; seen by what the next CNP
    /// leaves.
    #[test]
    fn i8_alpha_decays_without_cnps() {
        let mut rule = begun(Params::PAPER, 40);
        rule.on_cnp(at(0));
        let k = 100;
        run(&mut rule, at(55 * k + 54));
        let (rate, mut alpha) = (rule.current, 1.0);
        for _ in 0..k {
            alpha *= 255.0 / 256.0;
        }
        rule.on_cnp(at(55 * k + 54));
        is(rule.current, rate * (1.0 - alpha / 2.0));
        is(rule.alpha, alpha * 255.0 / 256.0 + 1.0 / 256.0);
    }

    /// The byte counter alone, then both: the third expiry of both after F is 3 R_HAI.
    #[test]
    fn stages_of_both_make_it_hyper() {
        let params = Params { r_hai: Some(Speed::Fixed(Rate(200_000_000))), ..Params::PAPER };
        let mut rule = begun(params, 40);
        rule.on_cnp(at(0));
        rule.on_cnp(at(1));
        rule.on_sent(10_000_000 * 7, at(1));
        assert_eq!((rule.timer_stage, rule.byte_stage), (0, 7));
        is(rule.target, 20.0 * GBPS + 3.0 * 0.04 * GBPS);
        let mut target = rule.target;
        for timer in 1..=7 {
            run(&mut rule, at(1 + 55 * timer));
            target += if timer < 5 { 0.04 } else { 0.2 * (timer - 4) as f64 } * GBPS;
            is(rule.target, target);
        }
    }

    /// It comes to rest at the line's rate, and a CNP wakes it.
    #[test]
    fn timers_end_at_the_line_rate() {
        let mut rule = begun(Params::PAPER, 40);
        rule.on_cnp(at(0));
        run(&mut rule, at(5_000));
        assert_eq!((rule.current, rule.deadline()), (40.0 * GBPS, Time::NEVER));
        rule.on_cnp(at(1_000_000_000));
        assert!(rule.current > 39.999 * GBPS, "alpha is gone: {}", rule.current);
        assert_eq!(rule.deadline(), at(1_000_000_055));
    }

    /// HPCC's simulator: a cut every 4 us at most, the first 4 us after the first mark, alpha on
    /// its clock of 1 us, recovery in one step of 300 us, then R_AI, then R_HAI, at 100 Gb/s four
    /// times those of 25 Gb/s.
    #[test]
    fn clocked_cuts() {
        let mut rule = begun(Params::MLX, 100);
        mark(&mut rule, at(10));
        is(rule.current, 100.0 * GBPS);
        mark(&mut rule, at(11));
        mark(&mut rule, at(12));
        assert_eq!(rule.deadline(), at(14));
        // Alpha at 14 us: marks came in two of four periods, of which the last before 12 us is at
        // its end.
        let g = 1.0 / 256.0;
        let mut alpha = 1.0;
        for marked in [0.0, 1.0, 1.0, 0.0] {
            alpha = alpha * (1.0 - g) + g * marked;
        }
        run(&mut rule, at(14));
        is(rule.alpha, alpha);
        let rate = 100.0 * GBPS * (1.0 - alpha / 2.0);
        is(rule.current, rate);
        is(rule.target, 100.0 * GBPS);
        run(&mut rule, at(314));
        let target = (100.0 * GBPS + rate) / 2.0;
        is(rule.current, target);
        // Intervals end at 14 us and every 4 us from then on, marks or not.
        mark(&mut rule, at(315));
        assert_eq!(rule.deadline(), at(318));
        run(&mut rule, at(318));
        is(rule.target, target);
        run(&mut rule, at(318 + 600));
        is(rule.target, target + 0.02 * GBPS);
        run(&mut rule, at(318 + 900));
        is(rule.target, target + 0.22 * GBPS);
    }

    /// Its `dcqcn_paper`: the same with longer intervals, without a clamp: a second cut in a row
    /// leaves the target.
    #[test]
    fn clocked_cuts_with_intervals_like_the_papers() {
        let mut rule = begun(Params::MLX_PAPER, 100);
        for us in [10, 61] {
            mark(&mut rule, at(us));
            let end = at(us / 50 * 50 + 60);
            assert_eq!(rule.deadline(), end);
            run(&mut rule, end);
        }
        assert_eq!(rule.timer_stage, 0, "cut at 110 us, before 55 us were over");
        is(rule.target, 100.0 * GBPS);
        assert!(rule.current < 26.0 * GBPS, "{}", rule.current);
    }
}
