//! Rotation: where on the track the head is at an instant, by integer arithmetic from time zero.
//!
//! Angles are fractions of a turn in units of 2^-64, so they wrap as the platter does. The angle
//! at an instant is one multiplication of the absolute time by an exact rational speed; nothing is
//! accumulated, so the ten-billionth turn is as precise as the first (error below 2^-63 turn).

use hybridsim_engine::{SimDuration, SimTime};

/// An angle, or a span smaller than a turn: units of 2^-64 turn.
pub type Angle = u64;

/// Thousandths of a revolution per minute make up one turn per nanosecond.
const MILLI_RPM_PER_TURN_PER_NS: u128 = 60_000_000_000_000;
/// Fraction bits of the period kept for turning angles into times.
const PERIOD_FRACTION_BITS: u32 = 32;
/// Angles that differ by less (5e-7 ns at 7200 rpm) are the same place: below what rounding in
/// sector angles and periods can cause, far below a nanosecond of rotation.
const SLACK: Angle = 1 << 24;

/// Slowest rotation a drive may have, in rpm.
pub const RPM_MIN: f64 = 600.0;
/// Fastest rotation a drive may have, in rpm.
pub const RPM_MAX: f64 = 100_000.0;

/// A platter turning at constant speed.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Turns per nanosecond in units of 2^-128.
    turns_per_ns: u128,
    /// Nanoseconds per turn in units of 2^-32.
    period: u64,
    /// Angle under the head at time zero.
    offset: Angle,
}

impl Rotation {
    /// A platter at `rpm`, within [`RPM_MIN`] and [`RPM_MAX`], rounded to a thousandth of an rpm;
    /// `offset` is the angle under the head at time zero.
    pub fn new(rpm: f64, offset: Angle) -> Self {
        let milli_rpm = (rpm.clamp(RPM_MIN, RPM_MAX) * 1000.0).round() as u128;
        let quotient = u128::MAX / MILLI_RPM_PER_TURN_PER_NS;
        let rest = u128::MAX % MILLI_RPM_PER_TURN_PER_NS;
        let turns_per_ns = quotient * milli_rpm + rest * milli_rpm / MILLI_RPM_PER_TURN_PER_NS;
        let period = (MILLI_RPM_PER_TURN_PER_NS << PERIOD_FRACTION_BITS) / milli_rpm;
        Self { turns_per_ns, period: period as u64, offset }
    }

    /// The angle under the head at `time`.
    #[inline]
    pub fn angle_at(&self, time: SimTime) -> Angle {
        self.span_of(time.since(SimTime::ZERO)).wrapping_add(self.offset)
    }

    /// The angle turned in `time`, whole turns left out.
    #[inline]
    pub fn span_of(&self, time: SimDuration) -> Angle {
        (u128::from(time.as_ns()).wrapping_mul(self.turns_per_ns) >> 64) as u64
    }

    /// The time `span` takes, rounded down, so that a head never arrives late by rounding.
    /// `span` may be up to some turns.
    #[inline]
    pub fn time_of(&self, span: u128) -> SimDuration {
        let ns = (span * u128::from(self.period)) >> (64 + PERIOD_FRACTION_BITS);
        SimDuration::from_ns(ns as u64)
    }

    /// One turn, rounded down.
    pub fn period(&self) -> SimDuration {
        self.time_of(1 << 64)
    }

    /// Angle from `from` ahead to `target`; 0 where they are the same place.
    #[inline]
    pub fn ahead(from: Angle, target: Angle) -> Angle {
        target.wrapping_sub(from).wrapping_add(SLACK).saturating_sub(SLACK)
    }
}

/// `turns` as an angle, whole turns left out.
pub fn angle_of_turns(turns: f64) -> Angle {
    let fraction = turns - turns.floor();
    (fraction * 18_446_744_073_709_551_616.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_angle_is_exact_after_days() {
        // 7200 rpm: three turns in exactly 25 ms, so a year of them ends where it began.
        let rotation = Rotation::new(7200.0, 12_345);
        for turns in [1u64, 40, 86_400 * 40, 365 * 86_400 * 40] {
            let angle = rotation.angle_at(SimTime::from_ns(turns * 25_000_000));
            let off = angle.wrapping_sub(12_345) as i64;
            assert!(off.abs() <= 1, "{turns}: {off}");
        }
        assert_eq!(rotation.period().as_ns(), 8_333_333);
    }

    proptest! {
        /// Waiting for an angle ends at it: never late, at most a nanosecond early.
        #[test]
        fn a_wait_ends_at_the_angle(
            rpm in RPM_MIN..RPM_MAX, start in 0u64..1 << 60, target: u64, offset: u64,
        ) {
            let rotation = Rotation::new(rpm, offset);
            let start = SimTime::from_ns(start);
            let wait = rotation.time_of(Rotation::ahead(rotation.angle_at(start), target).into());
            let left = Rotation::ahead(rotation.angle_at(start + wait), target);
            prop_assert!(rotation.time_of(left.into()).as_ns() <= 1);
        }

        /// The angle agrees with exact rational arithmetic.
        #[test]
        fn agrees_with_rational_arithmetic(
            milli_rpm in 600_000u64..100_000_000, ns in 0u64..1 << 62,
        ) {
            let rotation = Rotation::new(milli_rpm as f64 / 1000.0, 0);
            let whole = u128::from(ns) * u128::from(milli_rpm) % MILLI_RPM_PER_TURN_PER_NS;
            let expected = ((whole << 64) / MILLI_RPM_PER_TURN_PER_NS) as u64;
            let off = rotation.angle_at(SimTime::from_ns(ns)).wrapping_sub(expected) as i64;
            prop_assert!(off.abs() <= 2, "{off}");
        }
    }
}
