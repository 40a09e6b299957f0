//! Settings of the hybrid disk, as a scenario would give them.

#![allow(dead_code, reason = "every test file uses some of it")]

pub mod heard;

use hybridsim_engine::build::LayerEntry;
use hybridsim_engine::param::{Plug, Settings, Value};
use hybridsim_engine::registry::Registry;
use hybridsim_engine::{Fact, SimDuration, Stamped};

/// Everything a hybrid disk can be plugged together from.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    hybridsim_hybrid::register(&mut registry);
    registry.add_all(hybridsim_host::scheduler::ENTRIES);
    registry
}

/// The controller under test.
pub fn hybrid_disk() -> &'static LayerEntry {
    &hybridsim_hybrid::hybrid_disk::ENTRY
}

/// A plug with these settings.
pub fn plug(name: &str, settings: Settings) -> Value {
    Value::Plug(Plug { name: name.to_owned(), settings })
}

/// The cleanup policy of this name, cleaning early and small so that tests see much of it.
pub fn cleanup(name: &str) -> Value {
    let settings = Settings::default()
        .and("batch_pages", Value::Count(2))
        .and("low", Value::Number(0.3))
        .and("high", Value::Number(0.5))
        .and("idle", Value::Duration(SimDuration::from_us(50)));
    plug(name, settings)
}

/// Writes longer than so many sectors go round the cache.
pub fn threshold(sectors: u64) -> Value {
    plug("threshold", Settings::default().and("threshold_sectors", Value::Count(sectors)))
}

/// The defaults but for a page size in sectors.
pub fn settings(page_sectors: u64) -> Settings {
    Settings::default()
        .and("page_bytes", Value::Bytes(page_sectors * 512))
        .and("admission", threshold(255))
        .and("replacement", plug("lru", Settings::default()))
        .and("cleanup", cleanup("on-demand-complete"))
        .and("flash_depth", Value::Count(32))
        .and("disk_depth", Value::Count(32))
        .and("disk_scheduler", plug("fcfs", Settings::default()))
        .and("destage_bytes", Value::Bytes(128 * 1024))
        .and("destage_depth", Value::Count(8))
        .and("merge_writes", Value::Flag(false))
        .and("force_destage", Value::Flag(true))
        .and("pinned", Value::Tables(Vec::new()))
        .and("journal", Value::Flag(false))
}

/// How many facts are so.
pub fn count(facts: &[Stamped], is: impl Fn(&Fact) -> bool) -> usize {
    facts.iter().filter(|stamped| is(&stamped.fact)).count()
}
