//! The memory that a simulation needs, estimated before it starts, so that many can run at once.

use crate::scenario::Scenario;
use std::fs;

/// What a run takes besides the tables of its devices: readers, queues, statistics.
const BASE_BYTES: u64 = 8 << 20;
/// Directory, order and locks of a page in a cache.
const CACHED_PAGE_BYTES: u64 = 96;

/// Memory for a run of `scenario` in bytes: the tables of its flash devices and the directories of
/// its caches when full. The versions that `verify` keeps of written sectors are not in it.
pub fn needed(scenario: &Scenario) -> u64 {
    let components = scenario.components.iter();
    components.fold(BASE_BYTES, |sum, component| {
        let (kind, settings) = (component.description.name, &component.settings);
        let cached = match kind {
            "memory-cache" => settings.bytes("size") / settings.bytes("page_size").max(1),
            "hybrid-disk" | "flash-cache" => cached_pages(scenario, component),
            _ => 0,
        };
        let tables = hybridsim_flash::table_bytes(kind, settings).unwrap_or(0);
        sum.saturating_add(tables).saturating_add(cached.saturating_mul(CACHED_PAGE_BYTES))
    })
}

/// Pages of the flash device behind a cache.
fn cached_pages(scenario: &Scenario, cache: &crate::scenario::ScenarioComponent) -> u64 {
    let name = cache.settings.text("flash");
    let Some(flash) = scenario.components.iter().find(|component| component.name == name) else {
        return 0;
    };
    let page = cache.settings.bytes("page_size").max(1);
    flash_bytes(flash.description.name, &flash.settings) / page
}

fn flash_bytes(kind: &str, settings: &hybridsim_config::param::Settings) -> u64 {
    match kind {
        "constant-device" => settings.bytes("capacity"),
        _ => hybridsim_flash::capacity_bytes(kind, settings).unwrap_or(0),
    }
}

/// Memory that can be used now without swapping, in bytes: what the system has available, or the
/// limit of the control group (version 2). `None` where that is not known: Linux only.
pub fn available() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    let group = |name: &str| {
        fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok()
    };
    let used = group("memory.current").unwrap_or(0);
    let limit = group("memory.max").map_or(u64::MAX, |limit| limit.saturating_sub(used));
    Some((kib * 1024).min(limit))
}
