//! Everything is written back whenever there was no request for a while; a request that arrives
//! stops it. When a write finds no free page all the same, everything is cleaned on demand
//! (konanki, section 3.3, names the scheme).

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

/// The registered entry.
pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "idle-periodic",
        summary: "all pages are written back when no request came for a while, else on demand",
        origin: "konanki, section 3.3 (named as an alternative)",
        params: &[Param::with(
            "idle",
            Kind::Duration,
            "\"1s\"",
            "Time without a request after which cleaning starts",
        )],
    },
    build: |settings, _| Ok(Box::new(IdlePeriodic { idle: settings.duration("idle") })),
};

/// After a pause.
#[derive(Debug)]
pub struct IdlePeriodic {
    idle: SimDuration,
}

impl Cleanup for IdlePeriodic {
    fn on_demand(&mut self, _state: CacheState, _needed: u32) -> Plan {
        Plan { pages: Plan::ALL, exclusive: true, yields: false }
    }

    fn idle_after(&self) -> Option<SimDuration> {
        Some(self.idle)
    }

    fn idle(&mut self, _state: CacheState) -> Option<Plan> {
        Some(Plan { pages: Plan::ALL, exclusive: false, yields: true })
    }
}
