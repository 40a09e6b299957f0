//! Settings of the hybrid disk, as a scenario would give them.

#![allow(dead_code, reason = "every test file uses some of it")]

pub mod heard;

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::check;
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

/// The settings that `text` gives a component, with defaults for all others.
pub fn read(entry: &ComponentEntry, text: &str) -> Settings {
    let settings = check::read(text, &[entry.description.params], &registry());
    settings.unwrap_or_else(|problems| panic!("{problems}"))
}

/// The defaults but for a page size in sectors.
pub fn settings(page_sectors: u64) -> Settings {
    let text =
        format!("flash = \"flash\"\ndisk = \"disk\"\npage_size = \"{}B\"", page_sectors * 512);
    read(hybrid_disk(), &text).and("cleanup", cleanup("on-demand-complete"))
}

/// A flash cache that adjusts often and in small steps.
pub fn flash_cache(scheme: &str, space: f64, mapping: bool) -> Settings {
    let text = format!(
        "flash = \"flash\"\ndisk = \"disk\"\nscheme = \"{scheme}\"\ncaching_space = {space:?}\n\
         mapping = {mapping}\nsequential_bytes = \"16KiB\"\ndestage_pages = 4\nsegments = 4\n\
         u_steps = 16\nr_steps = 8\nshrink_max_pages = 1000\nbus_time = \"102us\"\n\
         write_ahead_pause = \"300us\""
    );
    read(&hybridsim_hybrid::flash_cache::ENTRY, &text).and("period_pages", Value::Count(100))
}

/// Parameters of an NV cache drive.
pub fn nv_cache() -> Settings {
    read(&hybridsim_hybrid::nv_cache::ENTRY, "flash = \"flash\"\ndisk = \"disk\"")
}

/// Number of events for which `is` holds.
pub fn count(events: &[EventRecord], is: impl Fn(&EventRecord) -> bool) -> usize {
    events.iter().filter(|record| is(record)).count()
}
