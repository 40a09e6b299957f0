//! Destages all pages after an idle time; an arriving request stops it. A write that finds no free
//! page destages all pages on demand (konanki, section 3.3, names the scheme).

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        idle: SimDuration = Kind::Duration, default "\"1s\"",
            "Idle time after which cleanup starts.";
    }
}

pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "idle-periodic",
        summary: "destages all pages after an idle time, else on demand",
        origin: "konanki, section 3.3 (named as an alternative)",
        params: Parameters::PARAMS,
    },
    build: |settings, _| {
        Ok(Box::new(IdlePeriodic { idle: Parameters::from_settings(settings).idle }))
    },
};

/// The idle time.
#[derive(Debug, Serialize, Deserialize)]
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
