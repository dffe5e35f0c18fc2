//! Poisson arrivals at a stated load.
//!
//! **Load** is the share of a sending host's link rate that message *payload* uses: 0.6 on a
//! 10 Gb/s link offers 6 Gb/s of payload per host. Headers, acknowledgements and retransmissions
//! come on top, so a load near 1 saturates the link. This is the practice of pFabric (SIGCOMM
//! 2013, section 5) and of HPCC (SIGCOMM 2019; `traffic_gen.py`: mean gap = mean size / (load x
//! rate)), and it compares transports of different framing on the same offered work.

use units::{Dur, Rate};

/// The mean time between two messages of one host, in picoseconds, when messages of `mean_size`
/// bytes are to use the share `load` of `rate` with their payload.
///
/// `None` if that is not a positive finite number: a load, rate or size of zero, below zero or not
/// a number. A load above 1 is allowed: it overloads the host on purpose.
#[must_use]
pub fn mean_gap_ps(load: f64, rate: Rate, mean_size: f64) -> Option<f64> {
    let bits_per_ps = load * rate.0 as f64 / 1e12;
    let gap = mean_size * 8.0 / bits_per_ps;
    (load > 0.0 && mean_size > 0.0 && gap.is_finite() && gap > 0.0).then_some(gap)
}

/// An exponential gap of mean `mean_ps` picoseconds, from a uniform draw `u` in `[0, 1)`: the
/// inverse of the distribution, `-mean ln(1 - u)`, with the pinned logarithm of `libm`. Rounded to
/// the nearest picosecond and at least one, so that time always advances.
#[must_use]
pub fn exponential(mean_ps: f64, u: f64) -> Dur {
    let gap = -mean_ps * libm::log(1.0 - u);
    Dur(((gap + 0.5) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose};

    use super::*;

    #[test]
    fn sixty_percent_of_ten_gigabit() {
        // 7500 B = 60 000 bits at 6 Gb/s: 10 us.
        let gap = mean_gap_ps(0.6, Rate(10_000_000_000), 7500.0).expect("valid");
        assert!((gap - 1e7).abs() < 1e-3, "{gap}");
    }

    #[test]
    fn absurd_loads_have_no_gap() {
        let rate = Rate(10_000_000_000);
        for load in [0.0, -0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(mean_gap_ps(load, rate, 1000.0), None, "{load}");
        }
        assert_eq!(mean_gap_ps(0.5, Rate(0), 1000.0), None);
        assert_eq!(mean_gap_ps(0.5, rate, 0.0), None);
        assert_eq!(mean_gap_ps(0.5, rate, f64::NAN), None);
    }

    #[test]
    fn gaps_are_exponential() {
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let (n, mean) = (100_000u64, 1e7);
        let gaps = (0..n).map(|i| exponential(mean, draw.unit(Purpose::new("gap"), i)).0 as f64);
        let (mut sum, mut longer) = (0.0, 0u32);
        for gap in gaps {
            sum += gap;
            longer += u32::from(gap > mean);
        }
        // The mean of n exponentials is off by mean / sqrt(n) = 0.32 %; four of them.
        assert!((sum / n as f64 / mean - 1.0).abs() < 0.0127, "{}", sum / n as f64);
        // A share of exp(-1) = 0.36788 is longer than the mean; sigma is 0.0015.
        assert!((f64::from(longer) / n as f64 - 0.36788).abs() < 0.006, "{longer}");
    }

    #[test]
    fn the_ends_of_the_draw_are_finite() {
        assert_eq!(exponential(1e7, 0.0), Dur(1));
        let largest = 1.0 - 1.0 / (1u64 << 53) as f64;
        assert_eq!(exponential(1e7, largest).0 / 1_000_000, 367, "-ln(2^-53) = 36.7 means");
    }
}
