//! What a user gives acts, or the run says that it does not: keys without effect, policies that
//! make no decision, policies that return no victims.

#[allow(dead_code, reason = "it has systems for all kinds of components")]
mod common;

use common::{DISK, SSD, ZNS, component};
use hybridsim::presets;
use hybridsim_cache::policy_state::PolicyState;
use hybridsim_cache::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::{Fault, Loader, Saver, StateError};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

fn input(text: &str) -> Input {
    let source = SourceText { name: "test.toml".to_owned(), text: text.to_owned() };
    Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None }
}

fn run(text: &str, registry: &Registry) -> RunOutput {
    let scenario = Scenario::check(input(text), registry).unwrap_or_else(|it| panic!("{it}"));
    run::run(&scenario, registry, Options::default()).unwrap_or_else(|it| panic!("{it}"))
}

/// The keys that a scenario's warnings say have no effect.
fn without_effect(input: Input) -> Result<Vec<String>, String> {
    let registry = standard();
    let scenario = Scenario::check(input, &registry).map_err(|it| it.to_string())?;
    let checked = run::check(&scenario, &registry).map_err(|it| it.to_string())?;
    let warnings = checked.warnings.into_iter();
    Ok(warnings.filter(|it| it.contains("changes nothing in this run")).collect())
}

const LOAD: &str = "[workload]\ngenerator = { kind = \"fio\", requests = 10, rw = \"randwrite\", \
                    span = \"4MiB\", norandommap = true }\n[host]\nmode = \"closed\"\n";

#[test]
fn a_key_without_effect_is_reported_with_its_path() {
    let check = |keys: &str, expect: &[&str]| {
        let found = without_effect(input(&format!("{LOAD}{}{keys}", component("ssd", SSD))))
            .unwrap_or_else(|it| panic!("{it}"));
        let keys: Vec<&str> = found.iter().map(|it| it.split(' ').next().expect("a key")).collect();
        assert_eq!(keys, expect, "{found:?}");
    };
    check("", &[]);
    let queued = "timing.kind = \"queued\"\n";
    check(&format!("{queued}timing.write_buffer = \"1MiB\"\n"), &[]);
    // The default may be spelt out, as resolved scenarios do.
    check(&format!("{queued}timing.write_buffer = \"4MiB\"\ntiming.suspends_max = 8\n"), &[]);
    let unsuspended = ["component.ssd.timing.resume_time", "component.ssd.timing.suspends_max"];
    let never = "timing.resume_time = \"9us\"\ntiming.suspends_max = 9\n";
    check(&format!("{queued}{never}"), &unsuspended);
    check("spare_size = \"64B\"\n", &[]);
    check("controller.search_time = \"9us\"\n", &["component.ssd.controller.search_time"]);
    let searched = "ftl.gc = \"d-choices\"\ncontroller.search_time = \"9us\"\n";
    check(searched, &[]);
    check("recovery = \"pages\"\n", &["component.ssd.recovery"]);
    check("slc.program_time = \"99us\"\n", &["component.ssd.slc"]);
    check("slc.program_time = \"99us\"\nftl = \"slc-cache\"\n", &[]);
    let untimed = "timing.kind = \"none\"\nslc.erase_time = \"2ms\"\nftl = \"slc-cache\"\n";
    let no_times = [
        "component.ssd.channel_rate",
        "component.ssd.erase_time",
        "component.ssd.program_time",
        "component.ssd.slc.erase_time",
    ];
    check(untimed, &no_times);
    let dynamic = "slc.endurance = 99\nftl = \"slc-cache\"\n";
    check(dynamic, &["component.ssd.slc.endurance"]);
    let both = "slc.endurance = 99\nftl = { kind = \"slc-cache\", static_size = \"64KiB\" }\n";
    check(both, &[]);
    let anywhere = "timing.kind = \"queued\"\ntiming.program_suspend_interval = \"90us\"\n";
    check(anywhere, &["component.ssd.timing.program_suspend_interval"]);
    let unlimited = "timing.kind = \"queued\"\ntiming.program_suspend_time = \"9us\"\n";
    check(
        &format!("{unlimited}timing.suspend_reads_max = 1\n"),
        &["component.ssd.timing.suspend_reads_max"],
    );
    let never = "timing.kind = \"queued\"\ntiming.program_suspend_interval = \"90us\"\n\
        timing.suspend_reads_max = 1\n";
    let both =
        ["component.ssd.timing.program_suspend_interval", "component.ssd.timing.suspend_reads_max"];
    check(never, &both);
    check(
        "controller.host_write_rate = \"1MB/s\"\n",
        &["component.ssd.controller.host_write_rate"],
    );
    let unbuffered = "timing.kind = \"queued\"\ntiming.write_buffer = \"0B\"\n\
                      timing.power_loss_protection = true\n";
    check(unbuffered, &["component.ssd.timing.power_loss_protection"]);
    let cores = "timing.kind = \"queued\"\ncontroller.firmware_cores = 2\n";
    check(cores, &["component.ssd.controller.firmware_cores"]);
    check(&format!("{cores}controller.read_overhead = \"9us\"\n"), &[]);
    check("precondition_fill = 0.5\n", &["component.ssd.precondition_fill"]);
    check("initial_wear = 0.5\n", &[]);
    let errors = "errors.kind = \"power-law\"\n";
    check(&format!("{errors}errors.rber_base = 1e-4\n"), &[]);
    let errors = "errors.kind = \"power-law\"\nerrors.rber_base = 1e-4\n";
    check(
        &format!("{errors}errors.read_wear_exponent = 2.0\n"),
        &["component.ssd.errors.read_wear_exponent"],
    );
    check(
        &format!("{errors}errors.retention_age = \"9d\"\n"),
        &["component.ssd.errors.retention_age"],
    );
    check(
        &format!("{errors}errors.retries_max = 0\nerrors.retry_rber_factor = 0.9\n"),
        &["component.ssd.errors.retry_rber_factor"],
    );
    let untimed = "timing.kind = \"none\"\nread_pages = 2\n";
    let one_page = [
        "component.ssd.channel_rate",
        "component.ssd.erase_time",
        "component.ssd.program_time",
        "component.ssd.read_pages",
    ];
    check(untimed, &one_page);
    check(&format!("{errors}read_pages = 2\n"), &[]);
    check(&format!("{errors}errors.refresh_reads = 9\n"), &["component.ssd.errors.refresh_reads"]);
    check(
        "ftl = { kind = \"dftl\", cache_policy = \"lru\", cache_protected = 0.5 }\n",
        &["component.ssd.ftl.cache_protected"],
    );
    let read_share = LOAD.replace("span", "rwmixread = 40, span");
    let found = without_effect(input(&format!("{read_share}{}", component("ssd", SSD))));
    let found = found.unwrap_or_else(|it| panic!("{it}"));
    assert!(found.len() == 1 && found[0].starts_with("workload.generator.rwmixread "), "{found:?}");
    assert!(found[0].contains("has an effect only with `rw = rw` or `randrw"), "{found:?}");
    let untimed = format!("{LOAD}{}timing.kind = \"none\"\n", component("ssd", SSD));
    let found = without_effect(input(&untimed)).unwrap_or_else(|it| panic!("{it}"));
    let rate = found.iter().find(|it| it.starts_with("component.ssd.channel_rate "));
    let rate = rate.unwrap_or_else(|| panic!("{found:?}"));
    assert!(rate.contains("only with a `timing` that has operation times"), "{rate}");
}

/// The keys of which the scenario `text` warns.
fn warned(text: &str) -> Vec<String> {
    let found = without_effect(input(text)).unwrap_or_else(|it| panic!("{text}: {it}"));
    found.iter().map(|it| it.split(' ').next().expect("a key").to_owned()).collect()
}

#[test]
fn keys_of_disks_arrays_controllers_and_schedulers_are_reported() {
    let disk = |keys: &str, expect: &[&str]| {
        let expect: Vec<_> = expect.iter().map(|key| format!("component.it.{key}")).collect();
        let found = warned(&format!("{LOAD}{}{keys}", component("it", DISK)));
        assert_eq!(found, expect, "{keys}");
    };
    disk("", &[]);
    disk("zone_count = 4\n", &["zone_count"]);
    disk("band_cylinders = 8\n", &["band_cylinders"]);
    let none = "cache_segments = 0\ncache_write_segments = 0\n";
    disk(none, &["cache_write_segments"]);
    let hits = format!("{none}read_hit_overhead = \"9us\"\n");
    disk(&hits, &["cache_write_segments", "read_hit_overhead"]);
    disk("cache_write_segments = 0\ncombine_writes = false\n", &["combine_writes"]);
    disk("write_cache = false\nread_hits_on_writes = true\n", &[]);
    disk("queue_depth = 1\npreseek = false\n", &["preseek"]);
    disk("other_reselect_overhead = \"9us\"\n", &["other_reselect_overhead"]);
    let extra = "extra_disconnect_command_overhead = \"9us\"\n";
    disk(&format!("other_reselect_overhead = \"9us\"\n{extra}"), &[]);
    let unused = "scheduler = { kind = \"anticipatory\", wait = \"0us\", near = \"1MiB\" }\n";
    disk(unused, &["scheduler.near"]);

    let members = ["a", "b", "c"].map(|name| component(name, DISK)).concat();
    let array = |keys: &str, expect: &[&str]| {
        let it = "kind = \"raid5\"\nmembers = [\"a\", \"b\", \"c\"]\n";
        let it = component("it", &format!("{it}{keys}"));
        let spare = component("spare", DISK);
        let expect: Vec<_> = expect.iter().map(|key| format!("component.it.{key}")).collect();
        let spare = if keys.contains("spare\"") { spare } else { String::new() };
        let found = warned(&format!("system = \"it\"\n{LOAD}{it}{members}{spare}"));
        assert_eq!(found, expect, "{keys}");
    };
    array("rebuild_parallel = 2\nunsynced_parity = \"trust\"\n", &[]);
    let none = "resync = \"none\"\nrebuild_parallel = 2\n";
    array(none, &["rebuild_parallel"]);
    array(&format!("{none}spares = [\"spare\"]\n"), &[]);
    array("resync = \"none\"\nunsynced_parity = \"trust\"\n", &["unsynced_parity"]);

    let queue = |keys: &str, expect: &[&str]| {
        let it = component("it", &format!("kind = \"io-queue\"\ndevice = \"a\"\n{keys}"));
        let expect: Vec<_> = expect.iter().map(|key| format!("component.it.{key}")).collect();
        let found = warned(&format!("system = \"it\"\n{LOAD}{it}{}", component("a", DISK)));
        assert_eq!(found, expect, "{keys}");
    };
    let both = "priority_scheduler = \"sstf\"\ntimeout_scheduler = \"sstf\"\n";
    queue(both, &["priority_scheduler", "timeout_scheduler"]);
    queue(&format!("{both}timeout = \"half\"\n"), &[]);
    queue(&format!("{both}timeout = \"full\"\n"), &["priority_scheduler"]);
    let full = format!("{both}timeout = \"full\"\npriority = \"sync\"\n");
    queue(&full, &["timeout_scheduler"]);
}

#[test]
fn keys_of_a_trace_format_are_reported_where_they_do_not_act() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |content: &[u8], format: &str, expect: &[&str]| {
        let trace = folder.path().join("trace");
        fs::write(&trace, content).expect("a file");
        let workload = format!("[workload]\ntrace = {trace:?}\nformat = {{ {format} }}\n");
        let disk = component("it", DISK);
        let found = warned(&format!("{workload}[host]\nmode = \"closed\"\n{disk}"));
        let expect: Vec<_> = expect.iter().map(|key| format!("workload.format.{key}")).collect();
        assert_eq!(found, expect, "{format}");
    };
    let table = b"time,op,offset,size\n0.5,R,4096,1\n0.75,W,8192,1\n";
    let columns = "kind = \"columns\", time_unit = \"ms\"";
    check(table, &format!("{columns}, unit = \"512B\", separator = \"comma\""), &[]);
    check(table, &format!("{columns}, time = \"\""), &["time_unit"]);
    let records = [8_u64, 1, 9, 1].map(u64::to_le_bytes).concat();
    let binary = "kind = \"binary\", layout = \"<QQ\", size_unit = \"512B\"";
    check(&records, &format!("{binary}, size = 2"), &[]);
    check(&records, &format!("{binary}, read = 7"), &["read", "size_unit"]);
}

#[test]
fn keys_of_generators_and_replays_are_reported_where_they_do_not_act() {
    let check = |generator: &str, expect: &[&str]| {
        let load = format!("[workload]\ngenerator = {{ requests = 9, {generator} }}\n");
        let found = warned(&format!("{load}[host]\nmode = \"closed\"\n{}", component("it", DISK)));
        let expect: Vec<_> = expect.iter().map(|key| format!("workload.generator.{key}")).collect();
        assert_eq!(found, expect, "{generator}");
    };
    check("kind = \"fio\", rw = \"randread\", random_distribution = \"zipf:1.2\"", &[]);
    check("kind = \"fio\", random_distribution = \"zipf:1.2\"", &["random_distribution"]);
    check("kind = \"fio\", bs = \"8KiB\", bssplit = \"4k/100\"", &["bs"]);
    check("kind = \"disksim\", local_distance_sectors = 9", &[]);
    check("kind = \"disksim\", local = 0, local_distance_sectors = 9", &["local_distance_sectors"]);
    check("kind = \"desktop\", hot_run = 2", &["hot_run"]);
}

#[test]
fn a_zoned_device_below_another_component_is_rejected_before_the_run() {
    let members = ["a", "b"].map(|name| component(name, ZNS)).concat();
    let mirror = component("it", "kind = \"raid1\"\nmembers = [\"a\", \"b\"]\n");
    let registry = standard();
    let text = format!("system = \"it\"\n{LOAD}{mirror}{members}");
    let scenario = Scenario::check(input(&text), &registry).unwrap_or_else(|it| panic!("{it}"));
    let Err(error) = run::check(&scenario, &registry) else { panic!("it is accepted") };
    let error = error.to_string();
    let said = "`a` is a `zns-ssd`, whose zones a `raid1` neither writes in order nor resets";
    assert!(error.contains(said) && error.contains("system = \"a\""), "{error}");
}

#[test]
fn what_a_zoned_device_refuses_is_reported_by_status() {
    let done = run(&format!("{LOAD}{}", component("it", ZNS)), &standard());
    let refused = |it: &&String| it.contains(" requests failed ");
    let warning = done.results.warnings.iter().find(refused).expect("writes at random");
    assert!(warning.contains("it refused ") && warning.contains(" with zone_invalid_write"));
    assert!(warning.contains("from its write pointer on"), "{warning}");
}

#[test]
fn a_generator_of_other_zones_than_the_device_has_is_rejected_before_the_run() {
    let registry = standard();
    let check = |keys: &str| {
        let load = format!(
            "[workload]\ngenerator = {{ kind = \"zones\", requests = 100, \
             zone_capacity = \"1000KiB\"{keys} }}\n[host]\nmode = \"open\"\n"
        );
        let text = input(&format!("{load}{}", component("ssd", ZNS)));
        let scenario = Scenario::check(text, &registry).unwrap_or_else(|it| panic!("{it}"));
        run::check(&scenario, &registry).err().map(|error| error.to_string())
    };
    let rejects = |keys: &str, words: [&str; 2]| {
        let error = check(keys).unwrap_or_else(|| panic!("{keys} is accepted"));
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    assert_eq!(check(", zone_size = \"1MiB\", active = 5"), None);
    rejects(", zone_size = \"2MiB\"", ["generator.zone_size", "not the 1MiB"]);
    rejects(", zone_size = \"1MiB\", active = 6", ["generator.active", "max_active_zones"]);
    let open = ", zone_size = \"1MiB\", active = 4, open = true";
    rejects(open, ["explicitly open", "max_open_zones"]);
    rejects(", zone_size = \"1MiB\", fill = 0.5", ["stay active", "max_active_zones"]);
    assert_eq!(check(", zone_size = \"1MiB\", fill = 0.5, span = \"5MiB\""), None);
    assert_eq!(check(", zone_size = \"1MiB\", fill = 0.5, finish = true"), None);
}

/// The parameter at `path` below `params`, in whichever entry it leads into.
fn at_path<'a>(registry: &Registry, params: &'a [Param], path: &str) -> Option<&'a Param> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let param = params.iter().find(|it| it.name == first)?;
    match (param.kind, rest) {
        (_, "") => Some(param),
        (Kind::Entry(category), rest) => {
            let mut entries = registry.descriptions(category);
            entries.find_map(|entry| at_path(registry, entry.params, rest))
        }
        _ => None,
    }
}

/// Whether a condition names a parameter below `params`, and values that it can have.
fn is_possible(registry: &Registry, params: &[Param], need: &Needs) -> bool {
    let (name, words) = match *need {
        Needs::Any(needs) => return needs.iter().any(|it| is_possible(registry, params, it)),
        // Of the table around it.
        Needs::Is(name, _) | Needs::Not(name, _) | Needs::Provides(name, _)
            if name.starts_with("^.") =>
        {
            return true;
        }
        Needs::Provides(name, capability) => {
            let other = at_path(registry, params, name).map(|it| it.kind);
            let Some(Kind::Entry(category)) = other else { return false };
            let mut entries = registry.descriptions(category);
            return entries.any(|it| registry.provides(category, it.name).contains(&capability));
        }
        Needs::Is(name, words) | Needs::Not(name, words) => (name, words),
    };
    let other = at_path(registry, params, name);
    let possible = |word: &&str| {
        other.is_some_and(|other| match other.kind {
            _ if *word == "absent" => {
                matches!(other.default, Some("" | "[]")) || name.contains('.')
            }
            Kind::Choice(choices) => choices.contains(word),
            Kind::Flag => ["true", "false"].contains(word),
            Kind::Text => true,
            Kind::Entry(category) => registry.descriptions(category).any(|it| it.name == *word),
            _ => word.parse::<f64>().is_ok(),
        })
    };
    // `above_zero` serves optional parameters and others.
    let words: &[&str] = if words == ["absent", "0"] { &["0"] } else { words };
    words.iter().all(possible)
}

/// Parameters whose conditions cannot be met or not met.
fn impossible_needs(registry: &Registry, params: &[Param], table: &str) -> Vec<String> {
    let mut found = Vec::new();
    for param in params {
        if let Kind::Tables(inner) = param.kind {
            found.extend(impossible_needs(registry, inner, &format!("{table}.{}", param.name)));
        }
        let impossible = param.all_needs().filter(|it| !is_possible(registry, params, it));
        found.extend(impossible.map(|need| format!("{table}.{}: {need:?}", param.name)));
    }
    found
}

#[test]
fn conditions_name_parameters_of_the_same_table_and_values_they_can_have() {
    const WRONG: &[Param] = &[
        Param::with("a", Kind::Flag, "true", "").needs(&[Needs::Is("b", &["x", "z"])]),
        Param::with("b", Kind::Choice(&["x", "y"]), "\"x\"", "").needs(&[Needs::given("c")]),
    ];
    let registry = standard();
    assert_eq!(impossible_needs(&registry, WRONG, "it").len(), 2);
    let (mut found, mut checked) = (Vec::new(), 0);
    for category in registry.categories() {
        for entry in registry.descriptions(category) {
            let table = format!("{category} {}", entry.name);
            found.extend(impossible_needs(&registry, entry.params, &table));
            checked +=
                entry.params.iter().filter(|param| param.all_needs().next().is_some()).count();
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(checked > 100, "{checked} conditions");
}

/// All scenarios below `folder`.
fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of scenarios") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml")
            && fs::read_to_string(&path).expect("a text").contains("[component.")
        {
            found.push(path);
        }
    }
}

#[test]
fn no_shipped_scenario_or_preset_has_a_key_without_effect() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["examples", "papers", "tests/golden"] {
        scenarios(&repository.join(folder), &mut files);
    }
    files.sort();
    let (mut found, mut checked, mut skipped) = (Vec::new(), 0, Vec::new());
    for path in &files {
        match Input::read(path, &[]).map_err(|it| it.to_string()).and_then(without_effect) {
            Ok(warnings) => {
                checked += 1;
                found.extend(warnings.into_iter().map(|it| format!("{}: {it}", path.display())));
            }
            // Needs a trace that is not bundled, or a workload that the paper's runs set.
            Err(reason) => skipped.push(format!("{}: {reason}", path.display())),
        }
    }
    for (name, _) in presets::list() {
        let text = presets::load(&name, Path::new("")).expect("an embedded preset").text;
        if !text.contains("kind = \"bus\"") {
            // Keys of a preset may wait for another key of the user, such as `write_cache`.
            let is = |kind: &str| text.contains(&format!("kind = \"{kind}\""));
            let (more, children) = if is("flash-cache") {
                (
                    "flash = \"flash\"\ndisk = \"disk\"\n",
                    component("flash", SSD) + &component("disk", DISK),
                )
            } else if is("smr-disk") {
                let disk = "preset = \"seagate-archive-8tb\"\n";
                ("device = \"disk\"\n", component("disk", disk))
            } else {
                ("", String::new())
            };
            let it = component("it", &format!("preset = \"{name}\"\n{more}"));
            let text = format!("system = \"it\"\n{LOAD}{it}{children}");
            let warnings = without_effect(input(&text)).unwrap_or_else(|it| panic!("{name}: {it}"));
            found.extend(warnings.into_iter().map(|it| format!("{name}: {it}")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(checked > 3 * skipped.len(), "{checked} checked, skipped {skipped:#?}");
}

fn hybrid(keys: &str) -> String {
    let flash = format!("{SSD}blocks_per_plane = 8\n").replacen("blocks_per_plane = 12\n", "", 1);
    format!(
        "system = \"it\"\n[workload]\ngenerator = {{ kind = \"fio\", requests = 6000, \
         rw = \"randrw\", bs = \"4KiB\", span = \"24MiB\", \
         norandommap = true, rate_iops = 150 }}\n{}{}{}",
        component("flash", &flash),
        component("disk", DISK),
        component(
            "it",
            &format!("kind = \"hybrid-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n{keys}")
        ),
    )
}

fn idle(output: &RunOutput) -> Vec<&String> {
    output.results.warnings.iter().filter(|it| it.contains("made no decision")).collect()
}

#[test]
fn a_replacement_policy_acts_with_the_default_cleanup() {
    let registry = standard();
    let lru = run(&hybrid(""), &registry);
    let fifo = run(&hybrid("replacement = \"fifo\"\n"), &registry);
    assert_ne!(lru.results.fingerprint, fifo.results.fingerprint);
    assert!(idle(&fifo).is_empty(), "{:?}", fifo.results.warnings);
}

#[test]
fn a_policy_that_made_no_decision_is_reported() {
    let registry = standard();
    let check = |text: &str, keys: &[&str]| {
        let output = run(text, &registry);
        let found = idle(&output);
        assert_eq!(found.len(), keys.len(), "{found:?}");
        for (warning, key) in found.iter().zip(keys) {
            assert!(warning.starts_with(key), "{warning}");
        }
    };
    let complete = "replacement = \"fifo\"\ncleanup = \"on-demand-complete\"\n";
    check(&hybrid(complete), &[]);
    let declared = without_effect(input(&hybrid(complete))).expect("valid");
    assert!(declared.len() == 1 && declared[0].starts_with("component.it.replacement "));
    check(&hybrid("cleanup = \"on-demand-complete\"\n"), &[]);
    let few =
        hybrid("replacement = \"arc\"\nadmission = \"always\"\ncleanup = \"idle-periodic\"\n")
            .replace("requests = 6000", "requests = 20")
            .replace("\"randrw\"", "\"randread\"");
    check(&few, &["component.it.admission", "component.it.cleanup"]);
    let unmarked = hybrid("admission = \"metadata\"\ncleanup = \"on-demand-complete\"\n")
        .replace("requests = 6000", "requests = 200");
    check(&unmarked, &["component.it.cleanup", "component.it.admission: the policy `metadata`"]);
    let ssd = |rw: &str| {
        let load = LOAD.replace("randwrite", rw).replace("requests = 10", "requests = 5000");
        let gc = "ftl = { kind = \"page\", gc = \"fifo\" }\n";
        format!("{load}{}{gc}", component("ssd", SSD))
    };
    check(&ssd("randread"), &["component.ssd.ftl.gc: the policy `fifo`"]);
    check(&ssd("randwrite"), &[]);
    let scheduled = |depth: u32| {
        let host = format!("[host]\nqueue_depth = {depth}\nscheduler = \"sstf\"\n");
        let disk = component("it", DISK);
        let load = "[workload]\ngenerator = { kind = \"uniform\", requests = 300, \
                    interarrival_ms = { kind = \"constant\", value = 2 } }\n";
        format!("{load}{host}{disk}")
    };
    check(&scheduled(1), &[]);
    check(&scheduled(65_536), &["host.scheduler: the policy `sstf`"]);
}

/// A policy that returns nothing.
struct Lazy;

impl PolicyState for Lazy {
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }
    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}

impl Replacement for Lazy {
    fn update(&mut self, _page: CachedPage, _access: Access) {}
    fn remove(&mut self, _page: CachedPage) {}
    fn victims(
        &mut self,
        _count: usize,
        _eligible: &dyn Fn(CachedPage) -> bool,
        _out: &mut Vec<CachedPage>,
    ) {
    }
}

#[test]
fn a_replacement_policy_without_victims_ends_the_run() {
    let mut registry = standard();
    let description =
        Description { name: "lazy", summary: "returns nothing", origin: "", params: &[] };
    registry.add(ReplacementEntry { description, build: |_, _| Ok(Box::new(Lazy)) });
    let flash_cache = |scheme: &str| {
        let keys = format!("scheme = \"{scheme}\"\n");
        hybrid(&keys).replace("hybrid-disk", "flash-cache")
    };
    let texts = [hybrid(""), flash_cache("op"), flash_cache("fp")];
    for text in texts.map(|text| text + "replacement = \"lazy\"\n") {
        match run(&text, &registry).fault {
            Some(Fault::Policy { device, reason }) => {
                assert_eq!(device, "it");
                assert!(reason.contains("replacement policy `lazy` returned 0 of"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_closed_loop_ends_by_time() {
    let registry = standard();
    let text = "[workload]\ngenerator = { kind = \"uniform\", duration = \"1s\" }\n[host]\n\
                mode = \"closed\"\nqueue_depth = 4\n[component.it]\nkind = \"constant-device\"\n\
                capacity = \"1GiB\"\nlatency = \"1ms\"\n";
    let output = run(text, &registry);
    assert_eq!(output.results.requests, 4004);
    assert_eq!(output.results.simulated_ns, 1_001_000_000);
    assert!(output.results.complete);
    let open = text.replace("mode = \"closed\"\n", "");
    let scenario = Scenario::check(input(&open), &registry).unwrap_or_else(|it| panic!("{it}"));
    let refused = run::check(&scenario, &registry).err().map(|it| it.to_string());
    let message = refused.expect("an open loop needs times");
    assert!(message.contains("workload.generator.duration: needs arrival times"), "{message}");
}

#[test]
fn a_run_that_ended_as_asked_is_complete() {
    let run_with = |end: &str| {
        let text = format!(
            "[workload]\ngenerator = {{ kind = \"uniform\", requests = 50, interarrival_ms = 1 }}\n\
             [host]\nend = \"{end}\"\n[component.it]\nkind = \"constant-device\"\n\
             capacity = \"1GiB\"\nlatency = \"20ms\"\n"
        );
        run(&text, &standard()).results
    };
    let early = run_with("last-arrival");
    assert!(early.complete && early.requests < 50, "{} requests", early.requests);
    assert_eq!(early.ended_by.as_deref(), Some("last-arrival"));
    assert!(early.violations.is_empty(), "{:?}", early.violations);
    let whole = run_with("completed");
    assert_eq!(whole.ended_by.as_deref(), Some("completion"));
    assert_eq!((whole.complete, whole.requests), (true, 50));
}
