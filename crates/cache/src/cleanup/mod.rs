//! Cleanup policies: when dirty pages are destaged, and how many. One file for each policy.

pub mod idle_periodic;
pub mod low_watermark;
pub mod on_demand_complete;
pub mod on_demand_partial;

use crate::policy_state::PolicyState;
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

/// Occupancy of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheState {
    /// Size in pages.
    pub pages: u32,
    pub free: u32,
}

/// A cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Pages to destage; [`Plan::ALL`] for all that are not pinned.
    pub pages: u32,
    /// Requests wait until it has ended.
    pub exclusive: bool,
    /// It ends early when a request arrives.
    pub yields: bool,
}

impl Plan {
    /// All pages.
    pub const ALL: u32 = u32::MAX;
}

/// A cleanup policy.
///
/// It cannot affect data integrity or progress: after a plan that frees too few pages the policy is
/// asked again, and a write for which no page can be freed bypasses the cache.
pub trait Cleanup: PolicyState {
    /// A write needs `needed` free pages, more than there are.
    fn on_demand(&mut self, state: CacheState, needed: u32) -> Plan;

    /// Pages that a write has to leave free, or else [`Cleanup::on_demand`] is called first. A
    /// cache without dirty pages serves the write in any case.
    fn free_min(&self) -> u32 {
        0
    }

    /// Called after every event while no cleanup is in progress.
    fn background(&mut self, _state: CacheState) -> Option<Plan> {
        None
    }

    /// Idle time after which [`Cleanup::idle`] is called.
    fn idle_after(&self) -> Option<SimDuration> {
        None
    }

    /// The cache has been idle for that time and has dirty pages.
    fn idle(&mut self, _state: CacheState) -> Option<Plan> {
        None
    }
}

/// Builds a policy from its parameters and the number of pages of the cache.
pub type BuildCleanup = fn(&Settings, u32) -> Built<dyn Cleanup>;

/// A registered cleanup policy.
#[derive(Clone, Copy)]
pub struct CleanupEntry {
    pub description: Description,
    pub build: BuildCleanup,
}

hybridsim_config::entry!(CleanupEntry, "cleanup");

/// All cleanup policies.
pub const ENTRIES: &[CleanupEntry] = &[
    on_demand_complete::ENTRY,
    on_demand_partial::ENTRY,
    low_watermark::ENTRY,
    idle_periodic::ENTRY,
];
