//! The retransmission timeout of RFC 6298, with the clocks that real stacks have.

use units::Dur;

/// How a timeout is computed from samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtoConfig {
    /// Least timeout (RFC 6298, rule 2.4, says 1 s; Linux 200 ms; data centres go to 200 us).
    pub min: Dur,
    /// Greatest timeout, backed off or not (RFC 6298, rule 2.5: at least 60 s).
    pub max: Dur,
    /// The timeout is `min`, whatever is measured, and never backed off: least and greatest timeout
    /// are the same in the scripts of the CMU incast study (specs/tcp.md#5).
    pub fixed: bool,
    /// x: a timeout of t, backed off, is drawn from t to (1 + x) t, so that timers which were
    /// started together do not expire together (Vasudevan and others, SIGCOMM 2009, section 6:
    /// 0.5). At least 0, which draws nothing. Beyond `max` too.
    pub random: f64,
    /// Timeout before the first sample (RFC 6298, rule 2.1: 1 s).
    pub initial: Dur,
    /// Clock granularity G (RFC 6298, section 2). Zero is an ideal clock. Otherwise samples are
    /// rounded to whole ticks, one at least, and timeouts up to whole ticks, as ns-2 does with
    /// its tick of 10 ms.
    pub tick: Dur,
    /// `min` bounds the term of the variance instead of the sum: the timeout is at least
    /// srtt + min (Linux, `tcp_rto_min`).
    pub min_is_variance: bool,
    /// Any acknowledgement of new data ends the backoff (Linux), not only a valid sample
    /// (RFC 6298, rule 5.7 and Karn's algorithm).
    pub ack_ends_backoff: bool,
    /// Weight of the newest sample in the smoothed round-trip time, above 0 and at most 1 (alpha of
    /// RFC 6298, rule 2.3: 1/8; ns-3.17: 0.1).
    pub srtt_gain: f64,
    /// Weight of the newest deviation in the mean deviation, above 0 and at most 1 (beta of RFC
    /// 6298, rule 2.3: 1/4; ns-3.17: 0.1).
    pub rttvar_gain: f64,
    /// The mean deviation after the first sample, as a share of it, at least 0 (RFC 6298, rule 2.2:
    /// 1/2; ns-3.17: 1).
    pub first_rttvar: f64,
}

impl RtoConfig {
    /// By RFC 6298, with an ideal clock and the greatest timeout of 60 s that its rule 2.5 allows.
    pub const RFC_6298: Self = Self {
        min: Dur::from_ms(1_000),
        max: Dur::from_ms(60_000),
        fixed: false,
        random: 0.0,
        initial: Dur::from_ms(1_000),
        tick: Dur::ZERO,
        min_is_variance: false,
        ack_ends_backoff: false,
        srtt_gain: 1.0 / 8.0,
        rttvar_gain: 1.0 / 4.0,
        first_rttvar: 1.0 / 2.0,
    };
}

/// Backoff doubles the timeout at most this often: 64 times (RFC 6298, rule 5.5, leaves the limit
/// open; 64 is that of ns-2 and BSD).
const BACKOFF_MAX: u8 = 6;

/// The estimator of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rto {
    /// Smoothed round-trip time.
    srtt: Dur,
    /// The same by an ideal clock.
    exact: Dur,
    /// Its mean deviation.
    rttvar: Dur,
    /// Whether there was any sample.
    sampled: bool,
    /// How often the timer has expired since the last sign of life.
    backoff: u8,
    /// Where in the range of `random` the timeout is, 0 to 1.
    spread: f64,
}

impl Rto {
    /// An estimator without samples.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            srtt: Dur::ZERO,
            exact: Dur::ZERO,
            rttvar: Dur::ZERO,
            sampled: false,
            backoff: 0,
            spread: 0.0,
        }
    }

    /// The smoothed round-trip time, if there was a sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Dur> {
        self.sampled.then_some(self.srtt)
    }

    /// The smoothed round-trip time by an ideal clock, if there was a sample: for congestion
    /// control, which tells paths apart by it that are much shorter than a tick of the timers'
    /// clock (Linux measures for the one in microseconds and sets the other in ticks).
    #[must_use]
    pub fn exact_srtt(&self) -> Option<Dur> {
        self.sampled.then_some(self.exact)
    }

    /// A segment that was sent once took `rtt` to be acknowledged (RFC 6298, rules 2.2, 2.3).
    pub fn sample(&mut self, config: &RtoConfig, rtt: Dur) {
        self.exact = if self.sampled { average(self.exact, rtt, config.srtt_gain) } else { rtt };
        let rtt = to_ticks(config.tick, rtt);
        if self.sampled {
            let deviation = Dur(self.srtt.0.abs_diff(rtt.0));
            self.rttvar = average(self.rttvar, deviation, config.rttvar_gain);
            self.srtt = average(self.srtt, rtt, config.srtt_gain);
        } else {
            self.srtt = rtt;
            self.rttvar = average(Dur::ZERO, rtt, config.first_rttvar);
            self.sampled = true;
        }
        self.backoff = 0;
    }

    /// A sample that is the first of what was sent after a timeout proved spurious; `before`: what
    /// was estimated before it. The timeout then allows for both (RFC 4015, steps 0 and 11).
    pub fn sample_after_spurious(&mut self, config: &RtoConfig, before: Self, rtt: Dur) {
        let rtt = to_ticks(config.tick, rtt);
        self.srtt = (before.srtt + config.tick * 2).max(rtt);
        self.rttvar = before.rttvar.max(Dur(rtt.0 / 2));
        self.sampled = true;
        self.backoff = 0;
    }

    /// New data was acknowledged, with or without a sample.
    pub fn on_progress(&mut self, config: &RtoConfig) {
        if config.ack_ends_backoff {
            self.backoff = 0;
        }
    }

    /// The timer expired (RFC 6298, rule 5.5).
    pub fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// Where in the range of [`RtoConfig::random`] timeouts are from now on, 0 to 1: to be drawn
    /// once for each expiry.
    pub fn spread(&mut self, share: f64) {
        self.spread = share;
    }

    /// The timeout now.
    #[must_use]
    pub fn timeout(&self, config: &RtoConfig) -> Dur {
        let mut timeout = if config.fixed { config.min } else { self.backed_off(config) };
        if config.random > 0.0 {
            timeout = timeout + Dur((timeout.0 as f64 * config.random * self.spread) as u64);
        }
        match config.tick.0 {
            0 => timeout,
            tick => Dur(tick) * timeout.0.div_ceil(tick),
        }
    }

    fn backed_off(&self, config: &RtoConfig) -> Dur {
        let variance = config.tick.max(self.rttvar * 4);
        let base = match (self.sampled, config.min_is_variance) {
            (false, _) => config.initial,
            (true, true) => self.srtt + variance.max(config.min),
            (true, false) => self.srtt + variance,
        };
        let base = base.clamp(config.min, config.max);
        Dur(base.0.saturating_mul(1 << self.backoff)).min(config.max)
    }
}

/// The moving average of `old` and the `new` value with weight `gain`, in whole picoseconds.
fn average(old: Dur, new: Dur, gain: f64) -> Dur {
    Dur((old.0 as f64 * (1.0 - gain) + new.0 as f64 * gain) as u64)
}

/// `rtt` as a clock with this tick sees it: nearest, at least one tick.
fn to_ticks(tick: Dur, rtt: Dur) -> Dur {
    if tick == Dur::ZERO {
        return rtt;
    }
    tick * ((rtt + Dur(tick.0 / 2)).0 / tick.0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: RtoConfig = RtoConfig { min: Dur::from_us(200), ..RtoConfig::RFC_6298 };

    #[test]
    fn follows_rfc_6298_section_2() {
        let mut rto = Rto::new();
        assert_eq!(rto.timeout(&CONFIG), Dur::from_ms(1_000));
        rto.sample(&CONFIG, Dur::from_us(800));
        assert_eq!(rto.timeout(&CONFIG), Dur::from_us(800 + 4 * 400));
        rto.sample(&CONFIG, Dur::from_us(1_600));
        // rttvar first: 3/4 * 400 + 1/4 * 800 = 500; srtt = 7/8 * 800 + 1/8 * 1600 = 900.
        assert_eq!(rto.timeout(&CONFIG), Dur::from_us(900 + 4 * 500));
    }

    #[test]
    fn backoff_doubles_to_the_maximum_and_ends_with_a_sample() {
        let config = RtoConfig { max: Dur::from_ms(10_000), ..CONFIG };
        let mut rto = Rto::new();
        let series: Vec<u64> = (0..6)
            .map(|_| {
                let timeout = rto.timeout(&config);
                rto.on_timeout();
                timeout.0 / Dur::from_ms(1_000).0
            })
            .collect();
        assert_eq!(series, [1, 2, 4, 8, 10, 10]);
        rto.on_progress(&config);
        assert_eq!(rto.timeout(&config), config.max, "RFC 6298: progress is not a sample");
        rto.on_progress(&RtoConfig { ack_ends_backoff: true, ..config });
        assert_eq!(rto.timeout(&config), config.initial);
        rto.on_timeout();
        rto.sample(&config, Dur::from_us(10));
        assert_eq!(rto.timeout(&config), config.min);
    }

    /// RFC 4015, step 11: the greater of what was and of what the sample alone says.
    #[test]
    fn a_spurious_timeout_makes_the_timeout_longer() {
        let mut before = Rto::new();
        before.sample(&CONFIG, Dur::from_us(800));
        let mut rto = before;
        rto.on_timeout();
        rto.sample_after_spurious(&CONFIG, before, Dur::from_us(3_000));
        assert_eq!(rto.timeout(&CONFIG), Dur::from_us(3_000 + 4 * 1_500));
        rto.sample_after_spurious(&CONFIG, before, Dur::from_us(100));
        assert_eq!(rto.timeout(&CONFIG), Dur::from_us(800 + 4 * 400));
    }

    /// Invariant specs/tcp.md#T14.
    #[test]
    fn a_coarse_clock_bounds_the_timeout() {
        let tick = Dur::from_ms(10);
        let config = RtoConfig { tick, min: Dur::from_ms(1), ..CONFIG };
        let mut rto = Rto::new();
        for _ in 0..100 {
            rto.sample(&config, Dur::from_us(100));
            assert!(rto.timeout(&config) >= tick);
            assert_eq!(rto.timeout(&config).0 % tick.0, 0);
        }
        assert_eq!(rto.timeout(&config), tick * 2, "one tick of RTT and one of G");
    }

    /// Equal weights of 0.1 and a first deviation as great as the sample (ns-3.17), by hand.
    #[test]
    fn gains_are_parameters() {
        let config = RtoConfig { srtt_gain: 0.1, rttvar_gain: 0.1, first_rttvar: 1.0, ..CONFIG };
        let mut rto = Rto::new();
        rto.sample(&config, Dur::from_us(1_000));
        assert_eq!(rto.timeout(&config), Dur::from_us(5_000));
        rto.sample(&config, Dur::from_us(2_000));
        // rttvar = 0.9 * 1000 + 0.1 * 1000 = 1000; srtt = 0.9 * 1000 + 0.1 * 2000 = 1100.
        assert_eq!(rto.timeout(&config), Dur::from_us(1_100 + 4_000));
    }

    /// What is measured, and how often the timer has expired, changes nothing.
    #[test]
    fn a_fixed_timeout_stays() {
        let config = RtoConfig { fixed: true, min: Dur::from_us(500), ..CONFIG };
        let mut rto = Rto::new();
        assert_eq!(rto.timeout(&config), Dur::from_us(500));
        rto.sample(&config, Dur::from_ms(3));
        rto.on_timeout();
        rto.on_timeout();
        assert_eq!(rto.timeout(&config), Dur::from_us(500));
    }

    /// (RTO + U[0, x] RTO) 2^backoff.
    #[test]
    fn a_random_timeout_is_spread_before_and_after_backoff() {
        let config = RtoConfig { random: 0.5, ..CONFIG };
        let mut rto = Rto::new();
        rto.sample(&config, Dur::from_us(1));
        for (share, us) in [(0.0, 200), (0.5, 250), (1.0, 300)] {
            rto.spread(share);
            assert_eq!(rto.timeout(&config), Dur::from_us(us));
        }
        rto.on_timeout();
        assert_eq!(rto.timeout(&config), Dur::from_us(600));
        let greatest = RtoConfig { max: Dur::from_us(200), ..config };
        assert_eq!(rto.timeout(&greatest), Dur::from_us(300), "beyond the greatest, too");
    }

    /// specs/tcp.md#T14, and edge case 8 of specs/tcp.md#12: whatever the clock, a timeout is at
    /// least the least one and a tick; and with round trips of 100 us, a least timeout of 1 ms and
    /// a tick of 10 ms, no less than 10 ms.
    #[test]
    fn t14_no_clock_shortens_a_timeout() {
        let us = |us| if us == 0 { Dur::ZERO } else { Dur::from_us(us) };
        for tick in [0, 1, 700, 1_000, 4_000, 10_000].map(us) {
            for min in [200, 1_000, 5_001, 40_000, 200_000].map(us) {
                let config = RtoConfig { tick, min, ..CONFIG };
                let mut rto = Rto::new();
                for i in 0..200 {
                    rto.sample(&config, Dur::from_us(50 + 97 * (i % 7)));
                    let timeout = rto.timeout(&config);
                    assert!(timeout >= min.max(tick), "{timeout} with {min} and {tick}");
                }
            }
        }
    }

    /// Parameters at the end of their ranges make timeouts that never come, not ones that wrap
    /// round to nothing.
    #[test]
    fn no_parameter_makes_a_timeout_wrap_round() {
        let (tick, longest) = (Dur::from_ms(1), Dur(u64::MAX - 1));
        for config in [
            RtoConfig { random: f64::MAX, tick, ..CONFIG },
            RtoConfig { first_rttvar: f64::MAX, tick, max: longest, ..CONFIG },
            RtoConfig { tick: longest, max: longest, ..CONFIG },
        ] {
            let mut rto = Rto::new();
            rto.spread(0.5);
            rto.sample(&config, Dur::from_us(100));
            rto.sample(&config, Dur::from_us(100));
            assert!(rto.timeout(&config) >= Dur(u64::MAX / 2), "{config:?}");
        }
    }

    #[test]
    fn linux_adds_the_minimum_to_the_round_trip_time() {
        let config = RtoConfig { min_is_variance: true, min: Dur::from_ms(200), ..CONFIG };
        let mut rto = Rto::new();
        rto.sample(&config, Dur::from_ms(3));
        assert_eq!(rto.timeout(&config), Dur::from_ms(203));
    }
}
