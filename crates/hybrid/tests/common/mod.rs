//! Settings of the hybrid disk, as a scenario would give them.

#![allow(dead_code, reason = "every test file uses some of it")]

pub mod heard;

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{EventRecord, SimDuration};

/// Everything a hybrid disk can be chosen together from.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    hybridsim_cache::register(&mut registry);
    registry.add_all(hybridsim_hybrid::ENTRIES);
    registry.add_all(hybridsim_host::scheduler::ENTRIES);
    registry
}

/// The controller under test.
pub fn hybrid_disk() -> &'static ComponentEntry {
    &hybridsim_hybrid::hybrid_disk::ENTRY
}

/// A choice of the entry `name` with these settings.
pub fn entry_choice(name: &str, settings: Settings) -> Value {
    Value::Entry(EntryChoice { name: name.to_owned(), settings })
}

/// The cleanup policy of this name, cleaning early and small so that tests see much of it.
pub fn cleanup(name: &str) -> Value {
    let settings = Settings::default()
        .and("batch_pages", Value::Count(2))
        .and("low", Value::Number(0.3))
        .and("high", Value::Number(0.5))
        .and("free_min", Value::Number(0.0))
        .and("idle", Value::Duration(SimDuration::from_us(50)));
    entry_choice(name, settings)
}

/// Writes longer than this many sectors bypass the cache.
pub fn threshold(sectors: u64) -> Value {
    entry_choice("threshold", Settings::default().and("threshold_sectors", Value::Count(sectors)))
}

/// The defaults but for a page size in sectors.
pub fn settings(page_sectors: u64) -> Settings {
    Settings::default()
        .and("page_size", Value::Bytes(page_sectors * 512))
        .and("admission", threshold(255))
        .and("replacement", entry_choice("lru", Settings::default()))
        .and("cleanup", cleanup("on-demand-complete"))
        .and("flash_queue_depth", Value::Count(32))
        .and("disk_queue_depth", Value::Count(32))
        .and("disk_scheduler", entry_choice("fcfs", Settings::default()))
        .and("destage_bytes", Value::Bytes(128 * 1024))
        .and("destage_depth", Value::Count(8))
        .and("merge_writes", Value::Flag(false))
        .and("force_destage", Value::Flag(true))
        .and("trim_cleaned", Value::Flag(false))
        .and("pinned", Value::Tables(Vec::new()))
        .and("journal", Value::Flag(false))
}

/// A flash cache that adjusts often and in small steps.
pub fn flash_cache(scheme: &str, space: f64, mapping: bool) -> Settings {
    let us = |us| Value::Duration(SimDuration::from_us(us));
    Settings::default()
        .and("scheme", Value::Text(scheme.to_owned()))
        .and("caching_space", Value::Number(space))
        .and("over_provisioning", Value::Number(1.0 / 19.0))
        .and("page_size", Value::Bytes(4096))
        .and("sequential_bytes", Value::Bytes(16 << 10))
        .and("streams", Value::Count(1))
        .and("destage_pages", Value::Count(4))
        .and("period_pages", Value::Count(100))
        .and("segments", Value::Count(4))
        .and("sampled", Value::Count(1))
        .and("u_steps", Value::Count(16))
        .and("r_steps", Value::Count(8))
        .and("shrink_max_pages", Value::Count(1000))
        .and("program_time", us(200))
        .and("read_time", us(25))
        .and("erase_time", us(1500))
        .and("bus_time", us(102))
        .and("pages_per_block", Value::Count(64))
        .and("disk_read_position", us(4400))
        .and("disk_write_position", us(4900))
        .and("disk_rate", Value::Rate(72_000_000))
        .and("erase_worth", us(0))
        .and("adjust", Value::Text("idle".into()))
        .and("write_ahead", Value::Count(0))
        .and("write_ahead_pause", us(300))
        .and("replacement", entry_choice("lru", Settings::default()))
        .and("costs", Value::Text("given".to_owned()))
        .and("mapping", Value::Flag(mapping))
        .and("write_policy", Value::Text("back".to_owned()))
        .and("promote_after", Value::Count(1))
        .and("promote_all_below", Value::Number(0.0))
        .and("checkpoint_pages", Value::Count(0))
}

/// Parameters of an NV cache drive.
pub fn nv_cache() -> Settings {
    Settings::default()
        .and("command_time", Value::Duration(SimDuration::from_us(10)))
        .and("entry_time", Value::Duration(SimDuration::from_us(1)))
        .and("unpin", Value::Text("discard".to_owned()))
        .and("spin_down_after", Value::Duration(SimDuration::ZERO))
        .and("artificial_idle", Value::Flag(false))
        .and("cache_writes", Value::Text("always".to_owned()))
        .and("cache_reads", Value::Text("none".to_owned()))
        .and("read_share", Value::Number(0.5))
}

/// How many events are so.
pub fn count(events: &[EventRecord], is: impl Fn(&EventRecord) -> bool) -> usize {
    events.iter().filter(|record| is(record)).count()
}
