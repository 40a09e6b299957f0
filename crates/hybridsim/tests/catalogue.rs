//! A golden fingerprint for everything that is registered, every example and every preset.
//!
//! A new entry fails until it is blessed with `HYBRIDSIM_BLESS=1`; any other difference means that
//! a model changed. Names of components, parameters and types do not enter a fingerprint, except
//! that the random stream of a component is derived from its path.

mod common;

use common::{DISK, SSD, component, system_around};
use hybridsim::{build, presets};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Random reads, writes and trims of one to four pages within the first `KiB` kibibytes.
fn load(requests: u32, kib: u32) -> String {
    format!(
        "[workload]\ngenerator = {{ kind = \"fio\", requests = {requests}, rw = \"randtrimwrite\", \
         bs = \"4KiB\", span = \"{kib}KiB\", norandommap = true, rate_iops = 2000, \
         rate_process = \"poisson\" }}\n"
    )
}

/// As [`load`], but reads and writes.
fn mixed(requests: u32, kib: u32) -> String {
    load(requests, kib).replace("\"randtrimwrite\"", "\"randrw\", rwmixread = 40")
}

/// As [`mixed`], of two sizes and with a Zipf popularity: so that there are hot and cold pages.
fn skewed(requests: u32, kib: u32) -> String {
    mixed(requests, kib)
        .replace("bs = \"4KiB\"", "bssplit = \"4k/70:32k/30\", random_distribution = \"zipf:1.1\"")
        .replace("rate_iops = 2000", "rate_iops = 150")
}

/// Writes with two placement handles.
fn two_handles() -> String {
    let job = |kind: &str, handle: u8| {
        format!("{{ kind = \"{kind}\", read = 0.0, span = \"8192KiB\", handle = {handle} }}")
    };
    format!(
        "[workload]\ngenerator = {{ kind = \"jobs\", requests = 8000, interarrival_ms = 7, \
         jobs = [{}, {}] }}\n",
        job("zipf", 1),
        job("uniform", 0)
    )
}

/// Zones that are appended to, finished, reset and read.
fn zoned() -> String {
    "[workload]\ngenerator = { kind = \"zones\", requests = 3000, zone_size = \"1MiB\", \
     zone_capacity = \"1000KiB\", active = 4, block = \"16KiB\", write = \"append\", depth = 2, \
     fill = 0.7, finish = true, readers = 2 }\n"
        .to_owned()
}

fn hybrid(keys: &str) -> String {
    let (flash, disk) = (component("flash", SSD), component("disk", DISK));
    format!(
        "system = \"it\"\n{}{}{flash}{disk}",
        skewed(6000, 24_576),
        component(
            "it",
            &format!("kind = \"hybrid-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n{keys}")
        )
    )
}

/// A run of a system around one component of `kind`.
fn of_kind(kind: &str) -> String {
    let load = match kind {
        "slc-mlc-ssd" => mixed(3000, 12288),
        "nv-cache-host" | "flash-backed" => mixed(1000, 8192),
        "zns-ssd" => zoned(),
        _ => load(1000, 8192),
    };
    format!("system = \"it\"\n{load}{}", system_around(kind))
}

fn generated(kind: &str) -> String {
    let keys = match kind {
        "processes" => {
            ", processes = [{ count = 2, general_ms = { kind = \"exponential\", mean = 10.0 } }]"
        }
        "histogram" => ", mix = \"firefox-analysis\"",
        "jobs" => ", jobs = [{ kind = \"uniform\" }, { kind = \"fio\", rw = \"write\" }]",
        "lsm" => ", keys = 20000, memtable = \"1MiB\", file = \"1MiB\", log = \"64KiB\"",
        "streams" => ", region = \"16MiB\", active = 3",
        "zones" => ", zone_size = \"16MiB\", active = 3, readers = 1",
        _ => "",
    };
    format!(
        "[workload]\ngenerator = {{ kind = \"{kind}\", requests = 1000{keys} }}\n{}",
        component("it", "kind = \"constant-device\"\ncapacity = \"512GiB\"\nlatency = \"1ms\"\n")
    )
}

fn compacted(kind: &str) -> String {
    let keys = if kind == "fifo" { ", size = \"30MiB\", merge_files = 3" } else { "" };
    let chosen = format!("keys = 20000, compaction = {{ kind = \"{kind}\"{keys} }}");
    generated("lsm").replace("keys = 20000", &chosen)
}

fn seek(kind: &str) -> String {
    let keys = match kind {
        "constant" => "time = \"5ms\"",
        "linear" => "single = \"1ms\", full = \"9ms\"",
        "curve" => "single = \"1ms\", average = \"5ms\", full = \"9ms\"",
        "hpl" => "values = [100, 1.0, 0.1, 3.0, 0.01, 2.0]",
        "hpl-plus-10" => {
            "first_ten = [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9], \
             values = [100, 1.0, 0.1, 3.0, 0.001]"
        }
        _ => "points = [[1, \"1ms\"], [100, \"4ms\"], [3000, \"9ms\"]]",
    };
    format!(
        "{}[component.it]\nkind = \"hard-disk\"\nrpm = \"7200rpm\"\nheads = 2\ncylinders = 3000\n\
         outer_sectors_per_track = 100\ninner_sectors_per_track = 60\n\
         seek = {{ kind = \"{kind}\", {keys} }}\n",
        mixed(800, 131_072)
    )
}

/// A drive that is too warm when it is active.
const HOT: &str = "energy.idle_power = \"1W\"\nenergy.active_power = \"5W\"\n";

fn throttle(kind: &str) -> String {
    let keys = match kind {
        "thermal" => {
            ", thermal_resistance = 20.0, heat_capacity = 0.01, tmt1_celsius = 60.0, \
             tmt1_end_celsius = 55.0, tmt1_rate = \"20MB/s\""
        }
        _ => "",
    };
    format!("{{ kind = \"{kind}\"{keys} }}")
}

/// Requests with idle times of the distribution `kind`.
fn distributed(kind: &str) -> String {
    let keys = match kind {
        "constant" => "value = 2.5",
        "uniform" => "min = 1.0, max = 4.0",
        "normal" => "mean = 3.0, stddev = 1.0",
        "two-valued" => "default = 2.0, second = 9.0, probability = 0.2",
        _ => "base = 1.0, mean = 2.0",
    };
    generated("processes")
        .replace("kind = \"exponential\", mean = 10.0", &format!("kind = \"{kind}\", {keys}"))
}

/// Every entry in every category that takes part in a simulation.
fn entries(registry: &Registry, all: &mut BTreeMap<String, String>) {
    let mut put = |category: &str, text: &dyn Fn(&str) -> String| {
        for entry in registry.descriptions(category) {
            all.insert(format!("{category}/{}", entry.name), text(entry.name));
        }
    };
    let ssd = |keys: String| format!("{}{}{keys}", load(3000, 8192), component("it", SSD));
    let read = |keys: String| format!("{}{}{keys}", mixed(3000, 8192), component("it", SSD));
    let steady = "precondition = \"steady\"\nidle_after = \"5ms\"\n";
    let in_page_map = |key: &str, name: &str| {
        let load = match name {
            "handles" => two_handles(),
            _ => skewed(8000, 8192).replace("rwmixread = 40", "rwmixread = 5"),
        };
        format!(
            "{load}{}ftl = {{ kind = \"page\", {key} = \"{name}\" }}\n{steady}",
            component("it", SSD)
        )
    };
    put("component", &of_kind);
    put("ftl", &|name| match name {
        // Pages have to be erased before they are written again.
        "raw" => ssd("ftl = \"raw\"\n".to_owned())
            .replace("\"randtrimwrite\"", "\"write\"")
            .replace("requests = 3000", "requests = 1500"),
        _ => ssd(format!("ftl = \"{name}\"\n{steady}")),
    });
    put("timing", &|name| ssd(format!("timing = \"{name}\"\n{steady}")));
    let rates = "rber_base = 9e-3, rber_read = 1e-6, retries_max = 2, refresh_retries = 2";
    put("errors", &|name| match name {
        "power-law" => read(format!("errors = {{ kind = \"{name}\", {rates} }}\n{steady}")),
        _ => read(format!("errors = \"{name}\"\n{steady}")),
    });
    put("throttle", &|name| ssd(format!("{HOT}throttle = {}\n", throttle(name))));
    put("stage", &|name| ssd(format!("stages = [\"{name}\"]\n")));
    put("distribution", &distributed);
    put("compaction", &compacted);
    put("gc-policy", &|name| in_page_map("gc", name));
    put("placement", &|name| in_page_map("placement", name));
    put("wear-levelling", &|name| in_page_map("wear", name));
    put("replacement", &|name| {
        hybrid(&format!("replacement = \"{name}\"\ncleanup = \"on-demand-partial\"\n"))
    });
    put("admission", &|name| hybrid(&format!("admission = \"{name}\"\n")));
    put("cleanup", &|name| hybrid(&format!("cleanup = \"{name}\"\n")));
    put("scheduler", &|name| {
        // Arrivals outrun the disk, so that requests queue in the host.
        format!(
            "{}[host]\nqueue_depth = 1\nscheduler = \"{name}\"\n{}",
            mixed(800, 1_048_576).replace("bs = \"4KiB\"", "bssplit = \"4k/60:64k/40\""),
            component("it", DISK)
        )
    });
    put("seek-model", &seek);
    put("smr-management", &|name| {
        let cache = match name {
            "host-managed" => "",
            _ => ", cache_size = \"8MiB\", cache_records = 100, clean_after = \"20ms\"",
        };
        let size = if name == "drive-managed" { "band_size" } else { "zone_size" };
        format!(
            "system = \"it\"\n{}{}{}",
            match name {
                "drive-managed" => mixed(2000, 65_536),
                _ => zoned()
                    .replace("zone_capacity = \"1000KiB\", ", "")
                    .replace("\"append\"", "\"write\""),
            },
            component(
                "it",
                &format!(
                    "kind = \"smr-disk\"\ndevice = \"disk\"\n\
                     management = {{ kind = \"{name}\", {size} = \"1MiB\"{cache} }}\n"
                )
            ),
            component("disk", DISK)
        )
    });
    put("generator", &generated);
}

/// Every preset, with the keys that only its surroundings can give.
fn all_presets(all: &mut BTreeMap<String, String>) {
    for (name, _) in presets::list() {
        let text = presets::load(&name, Path::new("")).expect("an embedded preset").text;
        let keys = format!("preset = \"{name}\"\n");
        let (more, children) = match text.lines().find(|line| line.starts_with("kind = ")) {
            Some("kind = \"bus\"") => ("devices = [\"below\"]\n", component("below", DISK)),
            Some("kind = \"smr-disk\"") => {
                ("device = \"below\"\n", component("below", "preset = \"seagate-archive-8tb\"\n"))
            }
            Some("kind = \"flash-cache\"") => (
                "flash = \"flash\"\ndisk = \"disk\"\n",
                component("flash", SSD) + &component("disk", DISK),
            ),
            _ => ("", String::new()),
        };
        let it = component("it", &(keys + more));
        let text = format!("system = \"it\"\n{}{it}{children}", mixed(400, 32768));
        all.insert(format!("preset/{name}"), text);
    }
}

/// The examples, cut short, with their own folder as the base of relative paths.
fn examples(folder: &Path, all: &mut Vec<(String, Input)>) {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of examples")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    for path in files {
        if path.is_dir() {
            examples(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            let mut input = Input::read(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            let generated = input.source.text.contains("generator");
            let key = if generated { "workload.generator.requests" } else { "workload.count" };
            if !input.source.text.contains("duration") {
                input.sets.push(format!("{key}=2000"));
            }
            if input.source.text.contains("precondition = \"steady\"") {
                input.sets.push("component.ssd.blocks_per_plane=64".to_owned());
            }
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            all.push((format!("example/{stem}"), input));
        }
    }
}

fn fingerprint(input: Input, registry: &Registry) -> Result<String, String> {
    let scenario = Scenario::check(input, registry).map_err(|list| list.to_string())?;
    build::system(&scenario, registry).map_err(|list| list.to_string())?;
    let done = run::run(&scenario, registry, Options::default()).map_err(|why| why.to_string())?;
    match done.fault {
        Some(fault) => Err(fault.to_string()),
        None if done.results.requests == 0 => Err("nothing was simulated".to_owned()),
        None => Ok(done.results.fingerprint),
    }
}

#[test]
fn everything_registered_has_a_golden_fingerprint() {
    let registry = standard();
    let mut texts = BTreeMap::new();
    entries(&registry, &mut texts);
    all_presets(&mut texts);
    let mut inputs: Vec<(String, Input)> = texts
        .into_iter()
        .map(|(name, text)| {
            let source = SourceText { name: name.clone(), text };
            (name, Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None })
        })
        .collect();
    examples(&repository().join("examples"), &mut inputs);
    let found: String = inputs
        .into_iter()
        .map(|(name, input)| match fingerprint(input, &registry) {
            Ok(fingerprint) => format!("{name} {fingerprint}\n"),
            Err(reason) => format!("{name} FAILED: {reason}\n"),
        })
        .collect();
    assert!(!found.contains("FAILED"), "{found}");
    let list = repository().join("tests/golden/catalogue.txt");
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        fs::write(&list, &found).expect("a writable repository");
    }
    let golden = fs::read_to_string(&list).expect("the list of fingerprints");
    for (found, golden) in found.lines().zip(golden.lines()) {
        assert_eq!(found, golden, "a model changed; if on purpose, see the head of this test");
    }
    assert_eq!(found.lines().count(), golden.lines().count(), "an entry is new or gone");
}
