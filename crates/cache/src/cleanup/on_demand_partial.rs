//! A write that finds no free page destages as many as it needs, or a batch.
//!
//! Other requests are served meanwhile (konanki, section 3.3, names the scheme).

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        batch_pages: u32 = Kind::Count { min: 1, max: u32::MAX as u64 - 1 }, default "1",
            "Fewest pages destaged; more give longer disk writes and rarer cleanups.";
    }
}

pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "on-demand-partial",
        summary: "a write that finds no free page destages just enough pages",
        origin: "konanki, section 3.3 (named as an alternative)",
        params: Parameters::PARAMS,
    },
    build: |settings, _| {
        Ok(Box::new(OnDemandPartial { batch: Parameters::from_settings(settings).batch_pages }))
    },
};

/// Destages as many pages as needed, or a batch.
#[derive(Debug, Serialize, Deserialize)]
pub struct OnDemandPartial {
    batch: u32,
}

impl Cleanup for OnDemandPartial {
    fn on_demand(&mut self, state: CacheState, needed: u32) -> Plan {
        let pages = needed.saturating_sub(state.free).max(self.batch);
        Plan { pages, exclusive: false, yields: false }
    }
}
