//! Entries from outside are fuzzed as they are registered, and samples belong to parameters.

use super::*;
use crate::coverage::Coverage;
use crate::relations::NotApplicable;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::params::field;
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, LatencyBreakdown, LatencyPhase, Loader,
    Request, RequestId, Saver, SimDuration, StateError,
};
use hybridsim_observe::results::Flash;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::write_amplification::WriteAmplification;
use std::cell::Cell;
use std::io::Read;

thread_local! {
    static BUILT: Cell<u64> = const { Cell::new(0) };
}

/// A concatenation with required parameters of every kind.
fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let entry = standard().find::<ComponentEntry>("concat").expect("it is registered");
    let first: String = field(input.settings, "first");
    let rest: Vec<String> = field(input.settings, "others");
    let members =
        hybridsim_config::param::Value::Texts(std::iter::once(first).chain(rest).collect());
    let settings = &Settings::default().and("members", members);
    assert!((2..=9).contains(&field::<u64>(input.settings, "units")));
    assert!((5.0..=7.0).contains(&field::<f64>(input.settings, "number")));
    let tables: Vec<Settings> = field(input.settings, "tables");
    // Panics where it is missing; 0 is drawn as well.
    for table in &tables {
        let _: u64 = field(table, "bytes");
    }
    let built = (entry.build)(&BuildInput { settings, ..*input });
    BUILT.set(BUILT.get() + u64::from(built.is_ok()));
    built
}

const PARAMS: &[Param] = &[
    Param::required("first", Kind::Component, ""),
    Param::required("others", Kind::Components, ""),
    Param::required("units", Kind::Count { min: 2, max: 9 }, ""),
    Param::required("number", Kind::Number { min: 5.0, max: 7.0 }, ""),
    Param::required("duration", Kind::Duration, ""),
    Param::required("bytes", Kind::Bytes, ""),
    Param::required("mean", Kind::MeanBytes, ""),
    Param::required("rate", Kind::Rate, ""),
    Param::required("rpm", Kind::Rpm, ""),
    Param::required("power", Kind::Power, ""),
    Param::required("energy", Kind::Energy, ""),
    Param::required("flag", Kind::Flag, ""),
    Param::required("text", Kind::Text, ""),
    Param::required("choice", Kind::Choice(&["a", "b"]), ""),
    Param::required("entry", Kind::Entry("seek-model"), ""),
    Param::required("counts", Kind::Counts, ""),
    Param::required("numbers", Kind::Numbers, ""),
    Param::required("curve", Kind::Curve, ""),
    Param::required("tables", Kind::Tables(&[Param::required("bytes", Kind::Bytes, "")]), ""),
];

#[test]
fn a_component_from_outside_is_fuzzed_without_samples() {
    let mut registry = standard();
    let (name, summary, origin) = ("outside", "", "");
    let description = Description { name, summary, origin, params: PARAMS };
    registry.add(ComponentEntry::new(description, build));
    // The top of every system; its children have no children, or most systems would be refused.
    let runs = |seed| {
        let mut draw = Draw::new(&registry, seed);
        let system = draw.component("outside", DEPTH_MAX - 1);
        run(&registry, seed, draw.scenario(seed, &system))
    };
    let mut passed = 0;
    for seed in 1..=12 {
        match runs(seed) {
            Verdict::Passed => passed += 1,
            Verdict::Refused(_) => {}
            Verdict::Failed { scenario, reason } => panic!("{reason}\n{scenario}"),
        }
    }
    assert!(passed >= 3 && BUILT.get() >= passed, "{passed} passed");
}

#[test]
fn nearly_every_key_is_drawn() {
    let registry = standard();
    let mut coverage = Coverage::new(&registry);
    for seed in 1..=2000 {
        coverage.add(drawn(&registry, seed).1, &Verdict::Passed);
    }
    assert!(coverage.shares()[0] > 0.95, "{coverage}");
}

#[test]
fn the_power_does_not_fail_where_acknowledged_writes_may_be_lost() {
    let registry = standard();
    let verdict = |write_cache: bool| {
        let scenario = format!(
            "system = \"disk\"\n[run]\nverify = true\npower_cut_every = 100\n\
             power_cuts_max = 10000\n[host]\nmode = \"closed\"\nqueue_depth = 8\n\
             [workload]\ngenerator = {{ kind = \"fio\", requests = 2000, rw = \"randrw\", \
             span = \"64KiB\", norandommap = true }}\n\
             [component.disk]\npreset = \"seagate-cheetah-9lp\"\nwrite_cache = {write_cache}\n"
        );
        run(&registry, 1, scenario)
    };
    for write_cache in [true, false] {
        let verdict = verdict(write_cache);
        assert!(matches!(verdict, Verdict::Passed), "write_cache = {write_cache}: {verdict:?}");
    }
}

#[test]
fn samples_belong_to_parameters_of_registered_components() {
    let registry = standard();
    let coverage = Coverage::new(&registry);
    let mut checked = 0;
    for (owner, key) in registry.sampled() {
        let label = coverage::label(owner, key);
        assert!(coverage.never().any(|known| known == label), "there is no key {label}");
        checked += 1;
    }
    assert!(checked > 30, "{checked}");
}

#[test]
fn every_seed_passes_the_check_of_its_target() {
    for target in targets::TARGETS {
        let seeds = (target.seeds)();
        // The first byte is a choice; a file that has moved would leave it alone.
        assert!(!seeds.is_empty() && seeds.iter().all(|it| it.len() > 1), "{}", target.name);
        seeds.iter().for_each(|seed| targets::check(target.name, seed));
    }
}

#[test]
fn what_fuzzing_found_passes_the_check_of_its_target() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in targets::TARGETS {
        let path = folder.join(format!("{}.tar.zst", target.name));
        let packed = std::fs::read(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
        let unpacked = hybridsim_codecs::zstd_reader(&*packed).expect("a decoder");
        let mut archive = tar::Archive::new(unpacked);
        let mut inputs = 0;
        for entry in archive.entries().expect("a tar") {
            let mut entry = entry.expect("an entry");
            if entry.header().entry_type().is_file() {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).expect("a file");
                targets::check(target.name, &bytes);
                inputs += 1;
            }
        }
        assert!(inputs > 0, "{}", target.name);
    }
}

#[cfg(unix)]
#[test]
fn seeds_of_clients_are_served() {
    let registry = standard();
    for seed in seeds::nbd() {
        let requests = client::nbd(&registry, &seed);
        // The client of the last in each group only lists exports.
        let aborts = seed.ends_with(&[b"IHAVEOPT", &[0, 0, 0, 2, 0, 0, 0, 0][..]].concat());
        assert_eq!(requests.map(|it| it > 0), Some(!aborts), "{seed:?}");
    }
}

#[cfg(unix)]
#[test]
fn seeds_of_hosts_reach_the_drive() {
    let registry = standard();
    for (at, seed) in seeds::nvme().iter().enumerate() {
        let requests = client::nvme(&registry, seed).expect("two connections");
        // Every other host only has an admin queue. A write waits for data that never come.
        assert_eq!(requests >= 5, at % 2 == 0, "{at}: {requests}");
    }
}

#[test]
fn seeds_of_states_are_saved_and_restored() {
    let registry = standard();
    let saved = (0..64).filter(|number| input::numbered(&registry, *number).is_some()).count();
    assert!(saved >= 10, "{saved}");
}

/// A device that serves some requests slowly, but does not save how many it has served, and whose
/// time is spent in another phase after a restart.
struct Forgetful {
    served: u64,
    slow_every: u64,
    phase: LatencyPhase,
    phase_restored: LatencyPhase,
}

impl Forgetful {
    fn new(served: u64) -> Self {
        let phase = LatencyPhase::Overhead;
        Self { served, slow_every: 10, phase, phase_restored: phase }
    }
}

impl Component for Forgetful {
    fn capacity(&self) -> u64 {
        1 << 20
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: "forgetful", ..ComponentInfo::default() }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, _request: &Request) {
        self.served += 1;
        let slow = self.served.is_multiple_of(self.slow_every);
        let time = SimDuration::from_us(if slow { 900 } else { 10 });
        let breakdown = LatencyBreakdown::NONE.plus(self.phase, time);
        ctx.complete_at(id, ctx.now() + time, breakdown);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}

    hybridsim_engine::supports!(Checkpoint);
}

impl Checkpoint for Forgetful {
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        self.phase = self.phase_restored;
        Ok(())
    }
}

fn forgetful(_input: &BuildInput<'_>) -> Built<dyn Component> {
    Ok(Box::new(Forgetful::new(0)))
}

/// After a restart, requests complete at the same times.
fn relabelling(_input: &BuildInput<'_>) -> Built<dyn Component> {
    let phase_restored = LatencyPhase::Seek;
    Ok(Box::new(Forgetful { slow_every: u64::MAX, phase_restored, ..Forgetful::new(0) }))
}

/// Other requests are slow in each device that is built.
fn unrepeatable(_input: &BuildInput<'_>) -> Built<dyn Component> {
    BUILT.set(BUILT.get() + 1);
    Ok(Box::new(Forgetful::new(BUILT.get())))
}

/// The outcomes of `relations` for the system of `text`.
fn found(relations: &[Relation], text: &str) -> Vec<relations::Applied> {
    let mut registry = standard();
    let description = |name| Description { name, summary: "", origin: "", params: &[] };
    registry.add(ComponentEntry::new(description("forgetful"), forgetful));
    registry.add(ComponentEntry::new(description("relabelling"), relabelling));
    registry.add(ComponentEntry::new(description("unrepeatable"), unrepeatable));
    let source = SourceText { name: "related".to_owned(), text: text.to_owned() };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let scenario = Scenario::check(input, &registry).unwrap_or_else(|it| panic!("{it}"));
    let output = run::run(&scenario, &registry, run::Options::default()).expect("a run");
    let ran = Ran { registry: &registry, scenario: &scenario, text, output: &output };
    relations.iter().map(|it| (it.check)(&ran)).collect()
}

const TWO_DEVICES: &str = "system = \"both\"\n[host]\nmode = \"open\"\n[workload]\n\
    generator = { kind = \"fio\", requests = 200, rw = \"randrw\", span = \"1MiB\", \
    norandommap = true, rate_iops = 2000 }\n\
    [component.both]\nkind = \"concat\"\nmembers = [\"a\", \"b\"]\n\
    [component.a]\nkind = \"constant-device\"\ncapacity = \"512KiB\"\nlatency = \"10us\"\n\
    [component.b]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\nlatency = \"20us\"\n";

/// `TWO_DEVICES` with a device of `kind`.
fn with(kind: &str) -> String {
    const DEVICE: &str = "constant-device\"\ncapacity = \"1MiB\"\nlatency = \"20us\"";
    TWO_DEVICES.replace(DEVICE, &format!("{kind}\""))
}

#[test]
fn every_relation_holds_and_can_fail() {
    for (relation, applied) in RELATIONS.iter().zip(found(RELATIONS, TWO_DEVICES)) {
        assert_eq!(applied, Ok(None), "{}", relation.name);
    }
    for (relation, applied) in RELATIONS.iter().zip(found(RELATIONS, &with("unrepeatable"))) {
        assert!(matches!(applied, Ok(Some(_))), "{}: {applied:?}", relation.name);
    }
    // Only their states differ.
    for (kind, said) in [("forgetful", "completion"), ("relabelling", "ns of `")] {
        for (relation, applied) in RELATIONS.iter().zip(found(RELATIONS, &with(kind))) {
            let found = applied.expect("it applies");
            let differs = found.as_ref().is_some_and(|found| found.contains(said));
            let is_right = match relation.name {
                "saving its state halfway" => differs,
                _ => found.is_none(),
            };
            assert!(is_right, "{} of {kind}: {found:?}", relation.name);
        }
    }
}

#[test]
fn data_that_no_request_reads_are_read_back() {
    let read_back =
        |text: &str| found(&[read_back::READ_BACK], &text.replace("randrw", "randwrite")).remove(0);
    assert_eq!(read_back(TWO_DEVICES), Ok(None));
    let lost = read_back(&with("forgetful"));
    assert!(matches!(&lost, Ok(Some(it)) if it.contains("wrong data")), "{lost:?}");
}

/// The times of `forgetful` are no settings.
#[test]
fn times_that_no_setting_changes_are_found() {
    let scaled = |text: &str| found(&[scaled::SCALED], text).remove(0);
    assert_eq!(scaled(TWO_DEVICES), Ok(None));
    let fixed = scaled(&with("forgetful"));
    assert!(matches!(&fixed, Ok(Some(it)) if it.contains("latencies of")), "{fixed:?}");
    let learns = TWO_DEVICES.replace("[host]", "[host]\nscheduler = \"smtf\"");
    assert_eq!(scaled(&learns), Err(NotApplicable));
}

/// The mirror sets a timer at the last completion, for a round time later. An uninterrupted run
/// reads the next arrival before that, one from the saved state after it: a tie would differ.
#[test]
fn a_timer_of_a_round_time_is_no_difference_between_saved_and_uninterrupted() {
    let device = "kind = \"constant-device\"\ncapacity = \"1MiB\"\nlatency = \"10us\"\n\
                  queue_depth = 1\n";
    let mirror = format!(
        "system = \"mirror\"\n[host]\nmode = \"open\"\n[workload]\n\
         generator = {{ kind = \"fio\", requests = 4, rw = \"randwrite\", span = \"64KiB\", \
         norandommap = true, rate_iops = 100 }}\n\
         [component.mirror]\nkind = \"raid1\"\nmembers = [\"a\", \"b\"]\n\
         resync = \"bitmap\"\nbitmap_clear_after = \"1ms\"\n\
         [component.a]\n{device}[component.b]\n{device}"
    );
    let all = RELATIONS.iter().zip(found(RELATIONS, &mirror));
    let resumed = all.filter(|(relation, _)| relation.name == "saving its state halfway");
    assert_eq!(resumed.map(|it| it.1).collect::<Vec<_>>(), [Ok(None)]);
}

/// Runs the system of `text` and passes it to `check`, unless it is rejected or ends early.
fn with_run<T>(registry: &Registry, text: &str, check: impl FnOnce(&Ran<'_>) -> T) -> Option<T> {
    let source = SourceText { name: "related".to_owned(), text: text.to_owned() };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let scenario = Scenario::check(input, registry).ok()?;
    let output = run::run(&scenario, registry, run::Options::default()).ok()?;
    output
        .fault
        .is_none()
        .then(|| check(&Ran { registry, scenario: &scenario, text, output: &output }))
}

#[test]
fn flash_operations_of_random_ssds_are_counted() {
    let registry = standard();
    let mut applied = 0;
    for seed in 1..=300 {
        let mut draw = Draw::new(&registry, seed);
        let system = draw.component("ssd", DEPTH_MAX);
        let text = draw.scenario(seed, &system);
        let outcome = with_run(&registry, &text, |ran| (counted::COUNTED.check)(ran));
        assert!(!matches!(outcome, Some(Ok(Some(_)))), "seed {seed}: {outcome:?}");
        applied += u64::from(outcome.is_some_and(|it| it.is_ok()));
    }
    assert!(applied >= 50, "{applied}");
}

#[test]
fn one_flash_operation_more_is_a_difference() {
    type Change = fn(&mut WriteAmplification);
    let changes: [(Change, &str); 5] = [
        (|it| _ = it.reads_by_cause.insert("gc", 1), "reads {\"gc\": 1}, not {}"),
        (|it| _ = it.programs_by_cause.insert("gc", 1), "programs {\"gc\": 1}, not {}"),
        (|it| _ = it.erases_by_cause.insert("gc", 1), "erases {\"gc\": 1}, not {}"),
        (|it| it.unwritten_reads = 1, "reads of pages never written 1, not 0"),
        (|it| it.host_bytes = 512, "bytes written 512, not 0"),
    ];
    for (change, said) in changes {
        let mut found = WriteAmplification::default();
        assert_eq!(counted::difference(&found, &Flash::default()), None);
        change(&mut found);
        assert_eq!(counted::difference(&found, &Flash::default()).as_deref(), Some(said));
    }
}

#[test]
fn zones_are_striped_and_concatenated() {
    let registry = standard();
    let mut ran = [("stripe", 0), ("concat", 0)];
    for seed in 1..=60 {
        let mut draw = Draw::new(&registry, seed);
        let system = draw.component("zns-ssd", DEPTH_MAX);
        let text = draw.scenario(seed, &system);
        let kind = draw.components.get("above").and_then(|it| it["kind"].as_str());
        let written =
            with_run(&registry, &text, |ran| ran.output.results.throughput.write_bytes > 0);
        for (name, count) in &mut ran {
            *count += u64::from(kind == Some(*name) && written == Some(true));
        }
    }
    assert!(ran.iter().all(|(_, count)| *count >= 2), "{ran:?}");
}

#[test]
fn relations_apply_to_random_systems() {
    let registry = standard();
    let mut counts = [0; RELATIONS.len() + 2];
    for seed in 1..=60 {
        with_run(&registry, &drawn(&registry, seed).0, |ran| {
            let all = RELATIONS.iter().chain([&read_back::READ_BACK, &scaled::SCALED]);
            for (count, relation) in counts.iter_mut().zip(all) {
                let applied = (relation.check)(ran);
                assert!(
                    !matches!(applied, Ok(Some(_))),
                    "{} of seed {seed}: {applied:?}",
                    relation.name
                );
                *count += u64::from(applied.is_ok());
            }
        });
    }
    assert!(counts.iter().all(|count| *count >= 2), "{counts:?}");
}
