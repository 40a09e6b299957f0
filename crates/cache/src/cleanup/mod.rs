//! When a cache is cleaned and how much of it. One policy a file.

pub mod idle_periodic;
pub mod low_watermark;
pub mod on_demand_complete;
pub mod on_demand_partial;

use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::SimDuration;

/// How full a cache is, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheState {
    /// Pages there are.
    pub pages: u32,
    /// Pages that hold nothing.
    pub free: u32,
}

/// What to clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Pages to write back; [`Plan::ALL`] for all that are not pinned.
    pub pages: u32,
    /// Everything else waits until it is done.
    pub exclusive: bool,
    /// It ends early when a request arrives.
    pub yields: bool,
}

impl Plan {
    /// All pages.
    pub const ALL: u32 = u32::MAX;
}

/// Decides about cleaning.
///
/// Whatever it answers, data stay right and requests go on: a plan that frees too little is asked
/// for again, and a write for which no room can be made goes round the cache.
pub trait Cleanup {
    /// A write needs `needed` free pages, more than there are.
    fn on_demand(&mut self, state: CacheState, needed: u32) -> Plan;

    /// Asked after everything that happens, while nothing is being cleaned.
    fn background(&mut self, _state: CacheState) -> Option<Plan> {
        None
    }

    /// How long there must have been no request before [`Cleanup::idle`] is asked.
    fn idle_after(&self) -> Option<SimDuration> {
        None
    }

    /// There was no request for that long, and there are pages to clean.
    fn idle(&mut self, _state: CacheState) -> Option<Plan> {
        None
    }
}

/// Builds a policy for a cache of so many pages from the policy's own parameters.
pub type BuildCleanup = fn(&Settings, u32) -> Result<Box<dyn Cleanup>, Vec<Problem>>;

/// A registered cleanup policy.
#[derive(Clone, Copy)]
pub struct CleanupEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one.
    pub build: BuildCleanup,
}

impl Entry for CleanupEntry {
    const CATEGORY: &'static str = "cleanup";
    fn description(&self) -> Description {
        self.description
    }
}

/// All cleanup policies.
pub const ENTRIES: &[CleanupEntry] = &[
    on_demand_complete::ENTRY,
    on_demand_partial::ENTRY,
    low_watermark::ENTRY,
    idle_periodic::ENTRY,
];
