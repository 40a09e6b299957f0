//! A write that finds no free page destages all pages; all requests wait meanwhile.
//!
//! The default of konanki (section 3.3): cleanups are as rare as possible, the disk may stay in a
//! low-power state between them, and sorting the whole cache gives long writes, at the price of the
//! waiting time.

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

/// The registered entry.
pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "on-demand-complete",
        summary: "a write that finds no free page destages all pages; requests wait",
        origin: "konanki, section 3.3",
        params: &[],
    },
    build: |_, _| Ok(Box::new(OnDemandComplete)),
};

/// Destages all pages exclusively.
#[derive(Debug, Serialize, Deserialize)]
pub struct OnDemandComplete;

impl Cleanup for OnDemandComplete {
    fn on_demand(&mut self, _state: CacheState, _needed: u32) -> Plan {
        Plan { pages: Plan::ALL, exclusive: true, yields: false }
    }
}
