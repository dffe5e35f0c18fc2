//! `Time`, `Dur`, `Bytes`, `Rate`.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// An instant, in picoseconds since the start of the run. `u64` reaches 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A span of time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dur(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

const PS_PER_S: u64 = 1_000_000_000_000;

impl Time {
    /// The start of a run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens; a timer armed for `NEVER` is disarmed.
    pub const NEVER: Self = Self(u64::MAX);

    /// The span since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }

    /// `self + d`, or `NEVER` if that does not fit.
    #[must_use]
    pub const fn saturating_add(self, d: Dur) -> Self {
        Self(self.0.saturating_add(d.0))
    }

    /// Microseconds since the start, for people; not for ordering.
    #[must_use]
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Dur {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any other.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` nanoseconds.
    #[must_use]
    pub const fn from_ns(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` microseconds.
    #[must_use]
    pub const fn from_us(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` milliseconds.
    #[must_use]
    pub const fn from_ms(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// Microseconds, for people; not for ordering.
    #[must_use]
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for rates and rules that count in `f64`; not for ordering.
    #[must_use]
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Rate {
    /// The time to serialise `bytes` at this rate, rounded up to a picosecond. This is the one
    /// place where serialisation is rounded. A rate of zero never finishes: `Dur(u64::MAX)`.
    #[must_use]
    pub const fn serialise(self, bytes: u64) -> Dur {
        if self.0 == 0 {
            return Dur(u64::MAX);
        }
        let bit_ps = bytes as u128 * 8 * PS_PER_S as u128;
        let ps = bit_ps.div_ceil(self.0 as u128);
        Dur(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }

    /// Picoseconds per byte when that is a whole number (as at 1, 10, 25, 40, 100, 400 Gb/s).
    #[must_use]
    pub const fn whole_ps_per_byte(self) -> Option<u64> {
        if self.0 != 0 && (8 * PS_PER_S).is_multiple_of(self.0) {
            Some(8 * PS_PER_S / self.0)
        } else {
            None
        }
    }

    /// How many whole bytes this rate carries in `d`.
    #[must_use]
    pub const fn bytes_in(self, d: Dur) -> Bytes {
        Bytes((self.0 as u128 * d.0 as u128 / (8 * PS_PER_S as u128)) as u64)
    }

    /// Gigabits per second, for people.
    #[must_use]
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Dur> for Time {
    type Output = Self;
    /// Saturates: what is later than everything stays so.
    fn add(self, d: Dur) -> Self {
        self.saturating_add(d)
    }
}

impl Sub<Dur> for Time {
    type Output = Self;
    fn sub(self, d: Dur) -> Self {
        Self(self.0 - d.0)
    }
}

impl AddAssign<Dur> for Time {
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}

impl Add for Dur {
    type Output = Self;
    /// Saturates.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Dur {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Dur {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Dur {
    type Output = Self;
    /// Saturates.
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

/// Writes `n` in the largest unit of `scale` that divides it, so that parsing gives `n` back.
fn write_exact(f: &mut fmt::Formatter<'_>, n: u64, scale: &[(&str, u64)]) -> fmt::Result {
    let (unit, size) =
        scale.iter().find(|(_, size)| n.is_multiple_of(*size)).unwrap_or(&scale[scale.len() - 1]);
    write!(f, "{}{unit}", n / size)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Dur(self.0).fmt(f)
    }
}

impl fmt::Display for Dur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0ps");
        }
        write_exact(f, self.0, crate::parse::TIME)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0bps");
        }
        write_exact(f, self.0, crate::parse::RATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_is_rounded_up() {
        let ten_gig = Rate(10_000_000_000);
        assert_eq!(ten_gig.serialise(9064), Dur(9064 * 800));
        assert_eq!(ten_gig.whole_ps_per_byte(), Some(800));
        let odd = Rate(3_000_000_000);
        assert_eq!(odd.whole_ps_per_byte(), None);
        assert_eq!(odd.serialise(1), Dur(2667), "8/3 ns = 2666.67 ps");
        assert_eq!(Rate(0).serialise(1), Dur(u64::MAX));
    }

    #[test]
    fn display_parses_back() {
        for ps in [0, 1, 999, 1_000, 7_251_200, 1_000_000, 20_000_000_000, 3 * PS_PER_S] {
            assert_eq!(Dur(ps).to_string().parse(), Ok(Dur(ps)));
        }
        for bps in [0, 1, 1_000, 2_500_000_000, 10_000_000_000, 400_000_000_000] {
            assert_eq!(Rate(bps).to_string().parse(), Ok(Rate(bps)));
        }
    }
}
