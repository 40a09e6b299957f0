//! Fault injection: faults that a scenario, a server or a program injects into a component.
//!
//! A fault is addressed to one component by name ([`crate::Machine::schedule_fault`]) and occurs at
//! a given time, before everything else of that instant. Runs that schedule the same faults at the
//! same times are therefore equal, whichever way they were asked for.

use crate::machine::Ctx;
use crate::time::SimDuration;
use serde::{Deserialize, Serialize};

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Injected {
    /// A member of an array fails, as one that fails at a time of the scenario does.
    Fail {
        /// Index of the device: from 0 in the members, continued in the spares.
        member: u64,
    },
    /// Operations take longer from now on.
    Slow {
        /// The die that does; without, the whole component.
        die: Option<u64>,
        /// Factor of the usual time, at least 1; 1 ends the slowdown.
        factor: f64,
    },
    /// Flash is brought to a level of wear.
    Wear {
        /// The share of the nominal endurance that every block has used up afterwards, 0 to 1.
        /// Blocks that fail earlier keep their own limit.
        fraction: f64,
    },
    /// Flash is written, without time and without requests, where it holds no data.
    Fill {
        /// The share of the device's capacity, from its start, 0 to 1.
        fraction: f64,
    },
}

impl Injected {
    /// The names of all, as users write them.
    pub const NAMES: &'static [&'static str] = &["fail", "slow", "wear", "fill"];

    /// The name of this one.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::Fail { .. } => 0,
            Self::Slow { .. } => 1,
            Self::Wear { .. } => 2,
            Self::Fill { .. } => 3,
        }]
    }
}

/// A component into which faults can be injected.
pub trait Inject {
    /// The names of the faults it supports, of [`Injected::NAMES`].
    fn supported(&self) -> &'static [&'static str];

    /// Checks that `fault`, which is one of them, can occur.
    ///
    /// # Errors
    /// Why it cannot, such as a member that does not exist.
    fn check(&self, fault: &Injected) -> Result<(), String>;

    /// `fault`, which was checked when it was asked for, occurs now.
    fn inject(&mut self, ctx: &mut Ctx<'_>, fault: &Injected);
}

/// The factor by which operations take longer than usual.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slowdown(f64);

impl Slowdown {
    /// No slowdown.
    pub const NONE: Self = Self(1.0);

    /// `factor` times as long.
    pub const fn by(factor: f64) -> Self {
        Self(factor)
    }

    /// `time`, multiplied by the slowdown.
    #[inline]
    pub fn of(self, time: SimDuration) -> SimDuration {
        if self == Self::NONE {
            return time;
        }
        SimDuration::from_ns_f64(time.as_ns() as f64 * self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_name() {
        let all = [
            Injected::Fail { member: 0 },
            Injected::Slow { die: None, factor: 1.0 },
            Injected::Wear { fraction: 1.0 },
            Injected::Fill { fraction: 1.0 },
        ];
        assert_eq!(all.map(|fault| fault.name()), Injected::NAMES);
    }

    #[test]
    fn a_slowdown_is_rounded_to_the_nearest_nanosecond_and_may_be_none() {
        let time = SimDuration::from_ns(u64::MAX / 3);
        assert_eq!(Slowdown::NONE.of(time), time);
        assert_eq!(Slowdown::by(2.5).of(SimDuration::from_ns(3)), SimDuration::from_ns(8));
        assert_eq!(Slowdown::by(1e6).of(SimDuration::from_ns(u64::MAX)).as_ns(), u64::MAX);
    }
}
