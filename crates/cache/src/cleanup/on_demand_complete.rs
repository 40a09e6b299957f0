//! When a write finds no free page, everything is written back and everybody waits.
//!
//! The default of konanki (section 3.3): the next cleaning is as far off as it can be, the disk
//! may stay in a low power state until then, and sorting the whole cache makes the writes long.
//! The price is the wait.

use super::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_config::registry::Description;

/// The registered entry.
pub const ENTRY: CleanupEntry = CleanupEntry {
    description: Description {
        name: "on-demand-complete",
        summary: "a write that finds no free page has all pages written back; requests wait",
        origin: "konanki, section 3.3",
        params: &[],
    },
    build: |_, _| Ok(Box::new(OnDemandComplete)),
};

/// All, exclusively.
#[derive(Debug)]
pub struct OnDemandComplete;

impl Cleanup for OnDemandComplete {
    fn on_demand(&mut self, _state: CacheState, _needed: u32) -> Plan {
        Plan { pages: Plan::ALL, exclusive: true, yields: false }
    }
}
