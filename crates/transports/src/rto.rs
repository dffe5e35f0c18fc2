//! The retransmission timeout of RFC 6298, with the clocks that real stacks have.

use units::Dur;

/// How a timeout is computed from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Least timeout (RFC 6298, rule 2.4, says 1 s; Linux 200 ms; data centres go to 200 us).
    pub min: Dur,
    /// Greatest timeout, backed off or not (RFC 6298, rule 2.5: at least 60 s). Equal to `min`: a
    /// fixed timer without backoff, as in the CMU incast sweeps (specs/tcp.md section 5).
    pub max: Dur,
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
}

/// Backoff doubles the timeout at most this often: 64 times (RFC 6298, rule 5.5, leaves the limit
/// open; 64 is that of ns-2 and BSD).
const BACKOFF_MAX: u8 = 6;

/// The estimator of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rto {
    /// Smoothed round-trip time.
    srtt: Dur,
    /// Its mean deviation.
    rttvar: Dur,
    /// Whether there was any sample.
    sampled: bool,
    /// How often the timer has expired since the last sign of life.
    backoff: u8,
}

impl Rto {
    /// An estimator without samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { srtt: Dur::ZERO, rttvar: Dur::ZERO, sampled: false, backoff: 0 }
    }

    /// The smoothed round-trip time, if there was a sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Dur> {
        self.sampled.then_some(self.srtt)
    }

    /// A segment that was sent once took `rtt` to be acknowledged (RFC 6298, rules 2.2, 2.3).
    pub fn sample(&mut self, config: &RtoConfig, rtt: Dur) {
        let rtt = to_ticks(config.tick, rtt);
        if self.sampled {
            let deviation = Dur(self.srtt.0.abs_diff(rtt.0));
            self.rttvar = Dur((3 * self.rttvar.0 + deviation.0) / 4);
            self.srtt = Dur((7 * self.srtt.0 + rtt.0) / 8);
        } else {
            self.srtt = rtt;
            self.rttvar = Dur(rtt.0 / 2);
            self.sampled = true;
        }
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

    /// The timeout now.
    #[must_use]
    pub fn timeout(&self, config: &RtoConfig) -> Dur {
        let variance = Dur(config.tick.0.max(4 * self.rttvar.0));
        let base = match (self.sampled, config.min_is_variance) {
            (false, _) => config.initial,
            (true, true) => self.srtt + variance.max(config.min),
            (true, false) => self.srtt + variance,
        };
        let base = base.clamp(config.min, config.max);
        let backed_off = Dur(base.0.saturating_mul(1 << self.backoff)).min(config.max);
        match config.tick.0 {
            0 => backed_off,
            tick => Dur(backed_off.0.div_ceil(tick) * tick),
        }
    }
}

/// `rtt` as a clock with this tick sees it: nearest, at least one tick.
fn to_ticks(tick: Dur, rtt: Dur) -> Dur {
    if tick == Dur::ZERO {
        return rtt;
    }
    Dur(((rtt.0 + tick.0 / 2) / tick.0).max(1) * tick.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: RtoConfig = RtoConfig {
        min: Dur::from_us(200),
        max: Dur::from_ms(60_000),
        initial: Dur::from_ms(1_000),
        tick: Dur::ZERO,
        min_is_variance: false,
        ack_ends_backoff: false,
    };

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

    /// Invariant T14 of specs/tcp.md.
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

    #[test]
    fn linux_adds_the_minimum_to_the_round_trip_time() {
        let config = RtoConfig { min_is_variance: true, min: Dur::from_ms(200), ..CONFIG };
        let mut rto = Rto::new();
        rto.sample(&config, Dur::from_ms(3));
        assert_eq!(rto.timeout(&config), Dur::from_ms(203));
    }
}
