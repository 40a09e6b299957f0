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
    check("write_buffer = \"1MiB\"\n", &["component.ssd.write_buffer"]);
    check("write_buffer = \"1MiB\"\ntiming = \"queued\"\n", &[]);
    // The default may be spelt out, as resolved scenarios do.
    check("write_buffer = \"0B\"\nsuspends_max = 8\n", &[]);
    check("slc_program_time = \"99us\"\n", &["component.ssd.slc_program_time"]);
    check("slc_program_time = \"99us\"\nftl = \"slc-cache\"\n", &[]);
    let untimed = "timing = \"none\"\nslc_erase_time = \"2ms\"\nftl = \"slc-cache\"\n";
    check(untimed, &["component.ssd.channel_rate", "component.ssd.slc_erase_time"]);
    let dynamic = "slc_endurance = 99\nftl = \"slc-cache\"\n";
    check(dynamic, &["component.ssd.slc_endurance"]);
    let both = "slc_endurance = 99\nftl = { kind = \"slc-cache\", static_size = \"64KiB\" }\n";
    check(both, &[]);
    let anywhere = "timing = \"queued\"\nprogram_suspend_interval = \"90us\"\n";
    check(anywhere, &["component.ssd.program_suspend_interval"]);
    let unlimited = "timing = \"queued\"\nprogram_suspend_time = \"9us\"\n";
    check(&format!("{unlimited}suspend_reads_max = 1\n"), &["component.ssd.suspend_reads_max"]);
    let never = "timing = \"queued\"\nprogram_suspend_interval = \"90us\"\nsuspend_reads_max = 1\n";
    let both = ["component.ssd.program_suspend_interval", "component.ssd.suspend_reads_max"];
    check(never, &both);
    check("host_write_rate = \"1MB/s\"\n", &["component.ssd.host_write_rate"]);
    let unprotected = "timing = \"queued\"\nfree_flush = true\n";
    check(unprotected, &["component.ssd.free_flush"]);
    let cores = "timing = \"queued\"\nfirmware_cores = 2\n";
    check(cores, &["component.ssd.firmware_cores"]);
    check(&format!("{cores}read_overhead = \"9us\"\n"), &[]);
    check("precondition_fill = 0.5\n", &["component.ssd.precondition_fill"]);
    check("initial_wear = 0.5\n", &[]);
    check("rber_base = 1e-4\n", &["component.ssd.rber_base"]);
    let errors = "bit_errors = \"power-law\"\n";
    check(&format!("{errors}rber_base = 1e-4\n"), &[]);
    let errors = "bit_errors = \"power-law\"\nrber_base = 1e-4\n";
    check(&format!("{errors}read_wear_exponent = 2.0\n"), &["component.ssd.read_wear_exponent"]);
    check(&format!("{errors}retention_age = \"9d\"\n"), &["component.ssd.retention_age"]);
    check(
        &format!("{errors}retries_max = 0\nretry_rber_factor = 0.9\n"),
        &["component.ssd.retry_rber_factor"],
    );
    check(&format!("{errors}read_pages = 2\n"), &["component.ssd.read_pages"]);
    check(&format!("{errors}read_pages = 2\nrber_types = [0.5, 1.5]\n"), &[]);
    check(&format!("{errors}refresh_reads = 9\n"), &["component.ssd.refresh_reads"]);
    check(
        "ftl = { kind = \"dftl\", cache_policy = \"lru\", cache_protected = 0.5 }\n",
        &["component.ssd.ftl.cache_protected"],
    );
    let read_share = LOAD.replace("span", "rwmixread = 40, span");
    let found = without_effect(input(&format!("{read_share}{}", component("ssd", SSD))));
    let found = found.unwrap_or_else(|it| panic!("{it}"));
    assert!(found.len() == 1 && found[0].starts_with("workload.generator.rwmixread "), "{found:?}");
    assert!(found[0].contains("has an effect only with `rw = rw` or `randrw"), "{found:?}");
    let untimed = format!("{LOAD}{}timing = \"none\"\n", component("ssd", SSD));
    let found = without_effect(input(&untimed)).unwrap_or_else(|it| panic!("{it}"));
    let rate = found.iter().find(|it| it.starts_with("component.ssd.channel_rate "));
    let rate = rate.unwrap_or_else(|| panic!("{found:?}"));
    assert!(rate.contains("has no effect with `timing = none`"), "{rate}");
}

#[test]
fn a_zoned_device_below_another_component_is_rejected_before_the_run() {
    let members = ["a", "b"].map(|name| component(name, ZNS)).concat();
    let stripe = component("it", "kind = \"stripe\"\nmembers = [\"a\", \"b\"]\n");
    let registry = standard();
    let text = format!("system = \"it\"\n{LOAD}{stripe}{members}");
    let scenario = Scenario::check(input(&text), &registry).unwrap_or_else(|it| panic!("{it}"));
    let Err(error) = run::check(&scenario, &registry) else { panic!("it is accepted") };
    let error = error.to_string();
    let said = "`a` is a `zns-ssd`, whose zones a `stripe` neither writes in order nor resets";
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

/// Parameters whose conditions name no parameter of `params`, or values that one cannot have.
fn impossible_needs(registry: &Registry, params: &[Param], table: &str) -> Vec<String> {
    let mut found = Vec::new();
    for param in params {
        if let Kind::Tables(inner) = param.kind {
            found.extend(impossible_needs(registry, inner, &format!("{table}.{}", param.name)));
        }
        for need in param.needs {
            let (Needs::Is(name, words) | Needs::Not(name, words)) = *need;
            let other = params.iter().find(|it| it.name == name);
            let possible = |word: &&str| {
                other.is_some_and(|other| match other.kind {
                    _ if *word == "absent" => other.default == Some(""),
                    Kind::Choice(choices) => choices.contains(word),
                    Kind::Flag => ["true", "false"].contains(word),
                    Kind::Entry(category) => {
                        registry.descriptions(category).any(|it| it.name == *word)
                    }
                    _ => word.parse::<f64>().is_ok(),
                })
            };
            // `above_zero` serves optional parameters and others.
            let words: &[&str] = if words == ["absent", "0"] { &["0"] } else { words };
            if let Some(word) = words.iter().find(|word| !possible(word)) {
                found.push(format!("{table}.{} needs {name}, which is never {word}", param.name));
            }
        }
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
            checked += entry.params.iter().filter(|param| !param.needs.is_empty()).count();
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
            let (more, children) = match text.contains("kind = \"flash-cache\"") {
                true => (
                    "flash = \"flash\"\ndisk = \"disk\"\n",
                    component("flash", SSD) + &component("disk", DISK),
                ),
                false => ("", String::new()),
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
    check(&hybrid(complete), &["component.it.replacement: the policy `fifo`"]);
    check(&hybrid("cleanup = \"on-demand-complete\"\n"), &[]);
    let few =
        hybrid("replacement = \"arc\"\nadmission = \"always\"\ncleanup = \"idle-periodic\"\n")
            .replace("requests = 6000", "requests = 20")
            .replace("\"randrw\"", "\"randread\"");
    let all = ["component.it.admission", "component.it.cleanup", "component.it.replacement"];
    check(&few, &all);
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
