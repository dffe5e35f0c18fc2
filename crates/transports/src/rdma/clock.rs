//! The clocks of round-trip times (specs/timely.md#2): the host notes when it hands a segment over,
//! the interface stamps the acknowledgement. The interface's clock drifts; now and then the host
//! reads both and draws a line through the last two pairs, by which it translates stamps. What
//! remains is an error of the stamp.

use endpoint::{Draw, Purpose};
use units::{Dur, Time};

use super::config::Clock;
use crate::config::{ConfigError, within};

const NOISE: Purpose = Purpose::new("rdma timestamp noise");
const DRIFT: Purpose = Purpose::new("rdma clock drift");
const READING: Purpose = Purpose::new("rdma clock reading");

const BILLION: i128 = 1_000_000_000;

impl Clock {
    /// Stamps without any error.
    pub const PERFECT: Self =
        Self { noise: Dur::ZERO, drift_ppb: 0, calibration: None, reading: Dur::ZERO };

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let ppb = f64::from(self.drift_ppb);
        within("clock_drift", ppb, 0.0..=1e6, "it must be at most 1000000 (0.1 %)")?;
        let must = "it must be above 0";
        let calibration = self.calibration.unwrap_or(Dur::MAX);
        within("clock_calibration", calibration.0 as f64, 1.0..=f64::MAX, must)
    }

    /// The stamp, as the host sees it, of what arrived at `at`: the `n`-th that the host with these
    /// draws looks at.
    pub(super) fn stamp(&self, draw: Draw, n: u64, at: Time) -> Time {
        if *self == Self::PERFECT {
            return at;
        }
        let noise = draw.below(NOISE, n, self.noise.0.saturating_add(1));
        let error = self.error(draw, at) + i128::from(noise);
        Time(u64::try_from(i128::from(at.0) + error).unwrap_or(0))
    }

    /// By how much the translated clock of the interface is ahead at `at`, picoseconds.
    fn error(&self, draw: Draw, at: Time) -> i128 {
        // Of this host's interface: as likely slow as quick.
        let most = u64::from(self.drift_ppb);
        let drift = i128::from(draw.below(DRIFT, 0, 2 * most + 1)) - i128::from(most);
        let since = |start: u64| i128::from(at.0 - start) * drift / BILLION;
        let Some(Dur(interval)) = self.calibration else { return since(0) };
        let n = at.0 / interval;
        let start = n * interval;
        let late = |n| i128::from(draw.below(READING, n, self.reading.0.saturating_add(1)));
        if n == 0 {
            return late(0) + since(0);
        }
        // Constant drift is a part of the line; what the host was late at either reading is not.
        late(n) + i128::from(at.0 - start) * (late(n) - late(n - 1)) / i128::from(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn worst(clock: Clock, from_ms: u64, to_ms: u64) -> i128 {
        let hosts = (0..20).map(|host| Draw::new(1, Purpose::new("host"), host));
        let errors = hosts.flat_map(|draw| {
            let times = (from_ms * 10..to_ms * 10).map(|n| Time(n * MS / 10 + 12_345));
            times.map(move |at| i128::from(clock.stamp(draw, 0, at).0) - i128::from(at.0))
        });
        errors.map(i128::abs).max().unwrap()
    }

    /// specs/timely.md#2, calibration to below 1 us: with 50 ppm the clocks are microseconds
    /// apart after as many tens of milliseconds, and what calibration leaves is at most three times
    /// what a reading is late.
    #[test]
    fn calibration_takes_the_drift_out() {
        let drift = Clock { drift_ppb: 50_000, ..Clock::PERFECT };
        let off = worst(drift, 0, 100);
        assert!((4_000_000..=5_000_000).contains(&off), "{off} ps in 100 ms");
        let reading = Dur::from_ns(200);
        let calibrated = Clock { calibration: Some(Dur::from_ms(10)), reading, ..drift };
        assert!(worst(calibrated, 10, 100) <= 3 * i128::from(reading.0));
        assert!(worst(calibrated, 10, 100) > 0);
        assert_eq!(worst(Clock::PERFECT, 0, 100), 0);
    }

    #[test]
    fn noise_is_uniform_up_to_its_most() {
        let clock = Clock { noise: Dur::from_us(100), ..Clock::PERFECT };
        let draw = Draw::new(1, Purpose::new("host"), 0);
        let noise: Vec<u64> = (0..10_000).map(|n| clock.stamp(draw, n, Time(MS)).0 - MS).collect();
        let mean = noise.iter().sum::<u64>() / 10_000;
        assert!(noise.iter().all(|&n| n <= 100_000_000));
        assert!((49_000_000..51_000_000).contains(&mean), "{mean} ps");
    }
}
