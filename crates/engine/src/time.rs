//! Simulated time: whole nanoseconds since the start of the run.
//!
//! An instant and a duration are different types. Both saturate instead of wrapping, so a hostile
//! trace can at worst push a request to [`SimTime::NEVER`], which every queue refuses by name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

const NS_PER_S: u64 = 1_000_000_000;

/// An instant, in nanoseconds since the start of the run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SimTime(u64);

/// A length of time, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SimDuration(u64);

impl SimTime {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// An instant no event may have.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start of the run.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> SimDuration {
        SimDuration(self.0.saturating_sub(earlier.0))
    }
}

impl SimDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest duration there is.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// `s` seconds.
    pub const fn from_s(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Rounds `ns` to the nearest nanosecond; negative and NaN become zero.
    pub fn from_ns_f64(ns: f64) -> Self {
        Self(libm::round(ns) as u64)
    }

    /// The time `bytes` take at `bytes_per_s`, rounded once to the nearest nanosecond.
    ///
    /// A rate of zero stands for "takes no time".
    #[inline]
    pub fn transfer(bytes: u64, bytes_per_s: u64) -> Self {
        if bytes_per_s == 0 {
            return Self::ZERO;
        }
        // 128-bit division is a function call, which most transfers do without.
        let scaled = bytes.checked_mul(NS_PER_S).and_then(|it| it.checked_add(bytes_per_s / 2));
        scaled.map_or_else(|| Self::long_transfer(bytes, bytes_per_s), |it| Self(it / bytes_per_s))
    }

    #[cold]
    fn long_transfer(bytes: u64, bytes_per_s: u64) -> Self {
        let rate = u128::from(bytes_per_s);
        let ns = (u128::from(bytes) * u128::from(NS_PER_S) + rate / 2) / rate;
        Self(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Whole nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds, for formulas and reports.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether no time passes.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<SimDuration> for SimTime {
    type Output = Self;
    fn add(self, rhs: SimDuration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<SimDuration> for SimTime {
    fn add_assign(&mut self, rhs: SimDuration) {
        *self = *self + rhs;
    }
}

impl Add for SimDuration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for SimDuration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub<SimDuration> for SimTime {
    type Output = Self;
    #[inline]
    fn sub(self, earlier: SimDuration) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Sub for SimDuration {
    type Output = Self;
    /// Panics in debug builds when `rhs` is longer: a negative duration is a defect of a model.
    fn sub(self, rhs: Self) -> Self {
        debug_assert!(self.0 >= rhs.0, "negative duration: {self} - {rhs}");
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl SubAssign for SimDuration {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for SimDuration {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}

impl Div<u64> for SimDuration {
    type Output = Self;
    fn div(self, rhs: u64) -> Self {
        Self(self.0 / rhs)
    }
}

impl std::iter::Sum for SimDuration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |total, item| total + item)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SimDuration(self.0).fmt(f)
    }
}

impl fmt::Display for SimDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.3} us", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} ms", ns / 1e6),
            _ => write!(f, "{:.3} s", ns / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_rounds_once_to_the_nearest_nanosecond() {
        assert_eq!(SimDuration::transfer(512, 1_000_000_000).as_ns(), 512);
        assert_eq!(SimDuration::transfer(1, 3_000_000_000).as_ns(), 0);
        assert_eq!(SimDuration::transfer(2, 3_000_000_000).as_ns(), 1);
        assert_eq!(SimDuration::transfer(u64::MAX, 1).as_ns(), u64::MAX);
        assert_eq!(SimDuration::transfer(4096, 0), SimDuration::ZERO);
        for bytes in [0, 1, 4096, u64::MAX / NS_PER_S - 1, u64::MAX / NS_PER_S + 1] {
            for rate in [1, 3, 100_000_000, 7_000_000_001, u64::MAX] {
                let transfer = SimDuration::transfer(bytes, rate);
                assert_eq!(transfer, SimDuration::long_transfer(bytes, rate), "{bytes} {rate}");
            }
        }
    }

    #[test]
    fn time_saturates_at_never() {
        assert_eq!(SimTime::from_ns(u64::MAX - 1) + SimDuration::from_ns(5), SimTime::NEVER);
    }
}
