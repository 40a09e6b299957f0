//! The memory that a simulation needs, estimated before it starts, so that many can run at once.

use crate::scenario::{Scenario, ScenarioComponent};
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::registry::Registry;
use std::fs;
use std::path::Path;

/// Memory of a run besides the tables of its devices: program, readers, queues, statistics.
const BASE_BYTES: u64 = 16 << 20;

/// Memory for a run of `scenario` in bytes: the tables of its flash devices and the directories of
/// its caches when full. The versions that `verify` keeps of written sectors are not in it.
pub fn needed(scenario: &Scenario, registry: &Registry) -> u64 {
    let components = &scenario.components;
    let entry = |component: &ScenarioComponent| -> Option<ComponentEntry> {
        registry.find(component.description.name)
    };
    let capacity = |name: &str| {
        let component = components.iter().find(|component| component.name == name);
        let known = component.and_then(|it| Some(entry(it)?.capacity?(&it.settings)));
        known.unwrap_or(0)
    };
    let tables =
        components.iter().filter_map(|it| Some(entry(it)?.memory?(&it.settings, &capacity)));
    tables.fold(BASE_BYTES, u64::saturating_add)
}

/// A warning that `scenario` may take more memory than the computer has.
pub fn shortage(scenario: &Scenario, registry: &Registry) -> Option<String> {
    let (needed, total) = (needed(scenario, registry), total()?);
    (needed > total).then(|| {
        format!(
            "once every page has been written, the tables of this system take about {} MiB, and \
             there are {} MiB: the operating system may end the run without results; write less \
             of it, or use larger pages or a smaller device",
            needed >> 20,
            total >> 20
        )
    })
}

/// The memory of the computer in bytes; `None` where that is not known: Linux only.
fn total() -> Option<u64> {
    entry(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// The entry of `/proc/meminfo` with this name, in bytes.
fn entry(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// Whether there is memory for the devices of `scenario` and a copy of their states, which the
/// cache of preconditioned devices takes while it is read or written.
pub fn holds_states_twice(scenario: &Scenario, registry: &Registry) -> bool {
    available().is_none_or(|free| needed(scenario, registry).saturating_mul(2) <= free)
}

/// Memory that can be used now without swapping, in bytes: what the system has available, or the
/// limit of the control group (version 2). `None` where that is not known: Linux only.
pub fn available() -> Option<u64> {
    let free = entry(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = in_groups(Path::new("/sys/fs/cgroup"), &groups).unwrap_or(u64::MAX);
    Some(free.min(limit))
}

/// The memory that the control groups below `root` leave, of which `groups` is `/proc/self/cgroup`:
/// the least of the process's own group and those above it. `None` without a limit.
fn in_groups(root: &Path, groups: &str) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    let left = |group: &Path| {
        let read = |name: &str| fs::read_to_string(root.join(group).join(name)).ok();
        let limit: u64 = read("memory.max")?.trim().parse().ok()?;
        let used: u64 = read("memory.current")?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
        // Cached file pages that were not used lately are freed on demand.
        let cached: u64 = cached.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    };
    Path::new(own).ancestors().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_files_count_as_free_and_every_group_limits() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |group: &str, max: &str, current: &str, cached: &str| {
            let group = folder.path().join(group);
            fs::create_dir_all(&group).expect("it can be made");
            let stat = format!("anon 5\ninactive_file {cached}\nactive_file 9\n");
            for (name, text) in
                [("memory.max", max), ("memory.current", current), ("memory.stat", &stat)]
            {
                fs::write(group.join(name), text).expect("it can be written");
            }
        };
        let groups = "1:cpu:/\n0::/user/job\n";
        assert_eq!(in_groups(folder.path(), groups), None);
        write("user/job", "1000\n", "900\n", "700");
        assert_eq!(in_groups(folder.path(), groups), Some(800));
        write("user", "500\n", "400\n", "50");
        assert_eq!(in_groups(folder.path(), groups), Some(150));
        write("user", "max\n", "400\n", "50");
        assert_eq!(in_groups(folder.path(), groups), Some(800));
        assert_eq!(in_groups(folder.path(), "0::/\n"), None);
    }
}
