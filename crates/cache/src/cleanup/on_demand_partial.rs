//! When a write finds no free page, only as many as it needs are written back, or a batch.
//!
//! Other requests go on meanwhile (konanki, section 3.3, names the scheme).

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;

/// The registered entry.
pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "on-demand-partial",
        summary: "a write that finds no free page has just enough pages written back",
        origin: "konanki, section 3.3 (named as an alternative)",
        params: &[Param::with(
            "batch_pages",
            Kind::Count { min: 1, max: u32::MAX as u64 - 1 },
            "1",
            "Pages written back at least; more make longer disk writes and rarer cleaning",
        )],
    },
    build: |settings, _| {
        Ok(Box::new(OnDemandPartial { batch: settings.count("batch_pages") as u32 }))
    },
};

/// As many as needed, or a batch.
#[derive(Debug)]
pub struct OnDemandPartial {
    batch: u32,
}

impl Cleanup for OnDemandPartial {
    fn on_demand(&mut self, state: CacheState, needed: u32) -> Plan {
        let pages = needed.saturating_sub(state.free).max(self.batch);
        Plan { pages, exclusive: false, yields: false }
    }
}
