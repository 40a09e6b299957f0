//! A program that extends the registry: its entries work in every command and on every thread.

use hybridsim_cache::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_disk::constant;
use hybridsim_engine::Fault;
use hybridsim_flash::ftl::{self, FtlEntry};
use hybridsim_flash::gc::{self, GcEntry};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::session::{self, Session};
use hybridsim_simulation::write_amplification;
use hybridsim_sweep::{Job, Memory, Outcome, Plan, Vary};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Evicts the page with the highest number.
#[derive(Default, Serialize, Deserialize)]
struct HighestFirst(Vec<CachedPage>);

impl Replacement for HighestFirst {
    fn update(&mut self, page: CachedPage, access: Access) {
        if access == Access::Add {
            self.0.push(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.0.retain(|other| *other != page);
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        self.0.sort_by_key(|page| std::cmp::Reverse(page.page));
        out.extend(self.0.iter().copied().filter(|page| eligible(*page)).take(count));
    }
}

const fn described(name: &'static str) -> Description {
    Description { name, summary: "from outside", origin: "this test", params: &[] }
}

fn extended() -> Registry {
    let mut registry = standard();
    registry.add(ReplacementEntry {
        description: described("highest-first"),
        build: |_, _| Ok(Box::new(HighestFirst::default())),
    });
    let block = ftl::block::ENTRY;
    let params = block.description.params;
    let description = Description { params, ..described("my-block") };
    registry.add(FtlEntry { description, ..block });
    let params = constant::ENTRY.description.params;
    let description = Description { params, ..described("my-device") };
    registry.add(ComponentEntry { description, ..constant::ENTRY });
    registry
}

const SCENARIO: &str = r#"
system = "hybrid"
[workload]
generator = { kind = "fio", requests = 3000, rw = "randrw", bs = "4KiB", norandommap = true,
              span = "8MiB", rate_iops = 500 }
[component.hybrid]
kind = "hybrid-disk"
flash = "flash"
disk = "disk"
cleanup = "on-demand-partial"
[component.flash]
kind = "ssd"
channels = 1
dies_per_channel = 1
blocks_per_plane = 32
pages_per_block = 8
over_provisioning = 0.5
read_time = "25us"
program_time = "200us"
erase_time = "1.5ms"
[component.disk]
preset = "seagate-cheetah-9lp"
"#;

fn scenario(folder: &Path) -> PathBuf {
    let path = folder.join("outside.toml");
    fs::write(&path, SCENARIO).expect("a writable folder");
    path
}

const VARY: [&str; 2] =
    ["component.hybrid.replacement=lru,highest-first", "component.flash.ftl=block,my-block"];

#[test]
fn entries_from_outside_can_be_swept_on_two_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let registry = extended();
    let vary = VARY.map(|option| Vary::parse(option).expect("a valid option"));
    let plan = Plan::read(&scenario(folder.path()), &[], &vary, &[]).expect("a valid plan");
    let points = plan.points(&registry).expect("valid points");
    let job = Job {
        registry: &registry,
        threads: 2,
        memory: &Memory::available(),
        store: None,
        cache: false,
        interrupted: &AtomicBool::new(false),
    };
    let mut finished = 0;
    let outcomes = hybridsim_sweep::run(&points, &job, |_| finished += 1);
    assert_eq!((outcomes.len(), finished), (4, 4));
    let fingerprints: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| match outcome {
            Some(Outcome::Done(results)) => results.fingerprint,
            other => panic!("{other:?}"),
        })
        .collect();
    let [lru_block, lru_own, own_block, own_own] = &fingerprints[..] else { unreachable!() };
    assert_eq!((lru_block, own_block), (lru_own, own_own), "the FTL is the same");
    assert_ne!(lru_block, own_block, "the policies are different");
}

fn call(registry: &Registry, args: &[&str]) -> u8 {
    hybridsim::cli(registry, ["hybridsim"].iter().chain(args).map(OsString::from))
}

#[test]
fn the_command_line_sweeps_and_profiles_with_entries_from_outside() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = scenario(folder.path());
    let out = folder.path().join("out");
    let (scenario, out) = (scenario.to_string_lossy(), out.to_string_lossy());
    let registry = extended();
    let sweep =
        ["sweep", &scenario, "--vary", VARY[0], "--vary", VARY[1], "-j", "2", "--out", &out];
    assert_eq!(call(&registry, &sweep), 0);
    let table = fs::read_to_string(Path::new(&*out).join("sweep.csv")).expect("a table");
    assert_eq!(table.lines().count(), 5, "{table}");
    assert_eq!(table.matches("highest-first").count(), 2, "{table}");
    assert_ne!(call(&standard(), &sweep[..4]), 0, "the standard registry has no such policy");
    let trace = folder.path().join("trace.csv");
    let rows: String = (0..200).map(|n| format!("{n}.5 0 {} 8 1\n", n % 40 * 8)).collect();
    fs::write(&trace, rows).expect("a writable folder");
    let trace = trace.to_string_lossy();
    let profile = ["trace", "mrc", &trace, "--policy", "highest-first"];
    assert_eq!(call(&registry, &profile), 0);
    let start = ["calibrate", "--disk", &scenario, "no-such-log"];
    assert_eq!(call(&registry, &start), 3, "the scenario is read, the log is missing");
}

#[test]
fn a_device_from_outside_can_be_planned_with() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a writable folder");
        path.to_string_lossy().into_owned()
    };
    file("mine.toml", "kind = \"my-device\"\ncapacity = \"1GiB\"\nlatency = \"1ms\"\n");
    let prices = "currency = \"EUR\"\nyears = 4\nenergy = 0.25\n[[device]]\nname = \"mine\"\n\
                  role = \"disk\"\npreset = \"mine.toml\"\nprice = 60\n";
    let prices = file("prices.toml", prices);
    let rows: String = (0..200).map(|n| format!("{n}.5 0 {} 8 1\n", n % 40 * 8)).collect();
    let trace = file("trace.csv", &rows);
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let plan = ["plan", &trace, "--prices", &prices, "--out", &out];
    assert_eq!(call(&extended(), &plan), 0);
    let plan = fs::read_to_string(Path::new(&out).join("plan.json")).expect("a plan");
    assert!(plan.contains("mine alone"), "{plan}");
}

thread_local! {
    static RAISED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

#[test]
fn an_error_that_a_policy_cannot_return_ends_its_run_and_no_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut registry = extended();
    registry.take_plugin_errors_from(|| RAISED.take().map(str::to_owned));
    registry.add(ReplacementEntry {
        description: described("raises"),
        build: |_, _| {
            RAISED.set(Some("a policy raised this"));
            Ok(Box::new(HighestFirst::default()))
        },
    });
    let path = scenario(folder.path());
    for (policy, fault) in [("raises", Some("a policy raised this")), ("lru", None)] {
        let sets = [format!("component.hybrid.replacement={policy}")];
        let scenario = Scenario::read(&path, &sets, &registry).expect("a valid scenario");
        let done = run::run(&scenario, &registry, Options::default()).expect("it runs");
        assert_eq!(done.fault, fault.map(raised), "{policy}");
        let session = Session::open(&scenario, &registry, session::Options::default());
        let session = session.unwrap_or_else(|error| panic!("{error}"));
        let done = session.finish(&registry, None, Vec::new()).expect("it ends");
        assert_eq!(done.fault, fault.map(raised), "{policy} in a session");
    }
    let message = raised("a policy raised this").to_string();
    assert!(!message.contains("defect of the simulator"), "{message}");
}

#[test]
fn an_error_of_a_policy_ends_a_count_of_write_amplification() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut registry = standard();
    registry.take_plugin_errors_from(|| RAISED.take().map(str::to_owned));
    registry.add(GcEntry {
        provides: &[],
        description: described("raises"),
        build: |input| {
            RAISED.set(Some("a policy raised this"));
            (gc::ENTRIES[0].build)(input)
        },
    });
    let path = folder.path().join("count.toml");
    let (workload, ssd) = SCENARIO.split_once("[component.hybrid]").expect("a hybrid");
    let ssd = &ssd[ssd.find("[component.flash]").expect("flash")..];
    let ssd = &ssd[..ssd.find("[component.disk]").expect("a disk")];
    let text = workload.replace("\"hybrid\"", "\"flash\"") + ssd;
    fs::write(&path, text.replace("8MiB", "512KiB")).expect("a writable folder");
    for (policy, fault) in [("raises", Some("a policy raised this")), ("greedy", None)] {
        let sets = [format!("component.flash.ftl={{ kind = \"page\", gc = \"{policy}\" }}")];
        let scenario = Scenario::read(&path, &sets, &registry).expect("a valid scenario");
        let options = write_amplification::Options::default();
        let counted = write_amplification::count(&scenario, &registry, options);
        let counted = counted.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(counted.fault, fault.map(raised), "{policy}");
    }
}

fn raised(message: &str) -> Fault {
    Fault::Plugin(message.to_owned())
}
