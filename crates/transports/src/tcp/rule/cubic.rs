//! CUBIC (RFC 9438): the window is a cubic function of the time since the last loss, and never
//! below what a Reno flow would have. Without HyStart, whose thresholds are milliseconds
//! (specs/tcp.md#8.3).

use units::{Dur, Time};

use super::{Acked, Parameters, Rule, between, seconds};
use crate::config::ConfigError;

/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// C, segments per second cubed, above 0 (0.4: RFC 9438, section 5.1).
    pub c: f64,
    /// The factor of the window after a loss, between 0 and 1 (0.7: RFC 9438, section 4.6; 0.8:
    /// Linux before 2.6.30).
    pub beta: f64,
    /// A flow that loses below its last maximum leaves room to newer ones (RFC 9438, section 4.7).
    pub fast_convergence: bool,
}

impl Params {
    /// The values of RFC 9438.
    pub const RFC: Self = Self { c: 0.4, beta: 0.7, fast_convergence: true };
}

impl Parameters for Params {
    fn check(&self) -> Result<(), ConfigError> {
        between("cubic_c", self.c, 0.0, f64::INFINITY, "it must be above 0 and finite")?;
        between("cubic_beta", self.beta, 0.0, 1.0, "it must be above 0 and below 1")
    }
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Cubic {
    params: Params,
    /// W_max: the window before the last loss, less by fast convergence; zero before any.
    w_max: f64,
    /// cwnd_prior: the window before the last loss.
    prior: f64,
    /// The last loss was a timeout.
    timed_out: bool,
    /// The current stage of congestion avoidance, once it has begun.
    pub(in super::super) epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Epoch {
    pub(in super::super) began: Time,
    /// The window around which the curve turns.
    origin: f64,
    /// K: when the curve is there, seconds after `began`.
    k: f64,
    /// W_est: the window that a Reno flow would have.
    reno: f64,
}

impl Cubic {
    pub(super) fn new(params: Params) -> Self {
        Self { params, w_max: 0.0, prior: 0.0, timed_out: false, epoch: None }
    }

    /// The stage that begins at `cwnd` (RFC 9438, sections 4.2 and 4.8).
    fn begin(&self, cwnd: f64, now: Time) -> Epoch {
        let on_plateau = self.timed_out || cwnd >= self.w_max;
        let origin = if on_plateau { cwnd } else { self.w_max };
        let k = libm::cbrt((origin - cwnd) / self.params.c);
        Epoch { began: now, origin, k, reno: cwnd }
    }

    /// alpha_cubic of RFC 9438, section 4.3: Reno's share at CUBIC's beta, until it has caught up.
    fn reno_gain(&self, reno: f64) -> f64 {
        let beta = self.params.beta;
        if reno < self.prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 }
    }
}

impl Rule for Cubic {
    fn increase(&mut self, cwnd: f64, n: f64, ack: &Acked) -> f64 {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(cwnd, ack.now));
        epoch.reno += n * self.reno_gain(epoch.reno) / cwnd;
        self.epoch = Some(epoch);
        let t = seconds(ack.now.since(epoch.began));
        // W_cubic of RFC 9438, equation 1.
        let curve =
            |t: f64| self.params.c * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + epoch.origin;
        if curve(t) < epoch.reno {
            return (epoch.reno - cwnd).max(0.0); // section 4.3
        }
        let target = curve(t + ack.srtt.map_or(0.0, seconds)).clamp(cwnd, 1.5 * cwnd);
        n * (target - cwnd) / cwnd // sections 4.4 and 4.5
    }

    /// RFC 9438, sections 4.6 and 4.7.
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        let beta = self.params.beta;
        let yields = self.params.fast_convergence && used < self.w_max;
        self.w_max = if yields { used * (1.0 + beta) / 2.0 } else { used };
        self.prior = used;
        self.timed_out = false;
        self.epoch = None;
        used * beta
    }

    /// RFC 9438, section 4.8.
    fn after_timeout(&mut self, used: f64, now: Time) -> f64 {
        let ssthresh = self.after_loss(used, now);
        self.timed_out = true;
        ssthresh
    }

    /// Time without data does not count (RFC 9438, section 4.2), and what follows slow start is a
    /// new stage.
    fn after_idle(&mut self, idle: Dur, restarts: bool) {
        if restarts {
            self.epoch = None;
        } else if let Some(epoch) = &mut self.epoch {
            epoch.began = epoch.began.saturating_add(idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after `time` from `now` on, with acknowledgements evenly spread over each round
    /// trip.
    fn after(rule: &mut Cubic, cwnd: f64, now: &mut Time, time: Dur, rtt: Dur) -> f64 {
        let (mut cwnd, end) = (cwnd, *now + time);
        while *now < end {
            cwnd += rule.increase(cwnd, 1.0, &Acked { srtt: Some(rtt), ..Acked::one(*now) });
            *now += Dur((rtt.0 as f64 / cwnd) as u64);
        }
        cwnd
    }

    /// Equation 1 of RFC 9438: after a loss at 1000 segments, K = cbrt(0.3 * 1000 / 0.4) = 9.0856
    /// s.
    #[test]
    fn the_window_follows_the_cubic_curve() {
        let mut rule = Cubic::new(Params::RFC);
        let mut cwnd = rule.after_loss(1000.0, Time::ZERO);
        assert_eq!(cwnd, 700.0);
        let (mut now, rtt) = (Time::ZERO, Dur::from_ms(100));
        for t in 1..=15 {
            cwnd = after(&mut rule, cwnd, &mut now, Dur::from_ms(1_000), rtt);
            let past = f64::from(t) - 9.085_603;
            let curve = 0.4 * past * past * past + 1000.0;
            assert!((cwnd / curve - 1.0).abs() < 0.01, "{t} s: {cwnd}, curve {curve}");
        }
    }

    /// Section 4.3: where round trips are short, CUBIC grows by 0.5294 segments in each until it is
    /// at the window before the loss, then by one.
    #[test]
    fn in_a_data_centre_it_is_reno_at_its_beta() {
        let mut rule = Cubic::new(Params::RFC);
        let start = rule.after_loss(20.0, Time::ZERO);
        let (mut now, rtt) = (Time::ZERO, Dur::from_us(200));
        let ten = after(&mut rule, start, &mut now, rtt * 10, rtt);
        assert!((ten - start - 10.0 * 0.9 / 1.7).abs() < 0.1, "{ten}");
        let beyond = after(&mut rule, ten, &mut now, rtt * 2, rtt);
        let twenty = after(&mut rule, beyond, &mut now, rtt * 10, rtt);
        assert!((twenty - beyond - 10.0).abs() < 0.2, "{beyond} to {twenty}");
    }

    #[test]
    fn fast_convergence_lowers_the_maximum() {
        for (fast_convergence, w_max) in [(true, 80.0 * 1.7 / 2.0), (false, 80.0)] {
            let mut rule = Cubic::new(Params { fast_convergence, ..Params::RFC });
            rule.after_loss(100.0, Time::ZERO);
            rule.after_loss(80.0, Time::ZERO);
            assert_eq!(rule.w_max, w_max);
        }
    }

    /// Section 4.2: a pause stops the curve's clock; a restart by slow start begins a new curve.
    #[test]
    fn a_pause_is_no_time_on_the_curve() {
        let began = |restarts| {
            let mut rule = Cubic::new(Params::RFC);
            rule.after_loss(100.0, Time::ZERO);
            rule.increase(70.0, 1.0, &Acked::one(Time::ZERO));
            rule.after_idle(Dur::from_ms(500), restarts);
            rule.epoch.map(|epoch| epoch.began)
        };
        assert_eq!(began(false), Some(Time::ZERO + Dur::from_ms(500)));
        assert_eq!(began(true), None);
    }

    /// Section 4.8: after a timeout the curve starts flat where slow start ends.
    #[test]
    fn after_a_timeout_the_curve_starts_at_its_plateau() {
        let mut rule = Cubic::new(Params::RFC);
        assert_eq!(rule.after_timeout(100.0, Time::ZERO), 70.0);
        let epoch = rule.begin(70.0, Time::ZERO);
        assert_eq!((epoch.k, epoch.origin, epoch.reno), (0.0, 70.0, 70.0));
        rule.after_loss(100.0, Time::ZERO);
        assert!(rule.begin(70.0, Time::ZERO).k > 0.0);
    }
}
