//! Fault injection into disks: a slow mechanism.

use hybridsim_engine::{Ctx, Inject, Injected, SimDuration, Slowdown};
use serde::{Deserialize, Serialize};

/// Slowdown of the mechanism of a disk.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SlowMechanism(Slowdown);

impl SlowMechanism {
    /// As fast as usual.
    pub const NONE: Self = Self(Slowdown::NONE);

    /// `time`, multiplied by the slowdown.
    #[inline]
    pub fn of(self, time: SimDuration) -> SimDuration {
        self.0.of(time)
    }

    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == Slowdown::NONE
    }
}

impl Inject for SlowMechanism {
    fn supported(&self) -> &'static [&'static str] {
        &["slow"]
    }

    fn check(&self, fault: &Injected) -> Result<(), String> {
        match fault {
            Injected::Slow { die: Some(_), .. } => {
                Err("a disk has no dies: leave out `die`".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn inject(&mut self, _ctx: &mut Ctx<'_>, fault: &Injected) {
        if let Injected::Slow { factor, .. } = *fault {
            self.0 = Slowdown::by(factor);
        }
    }
}
