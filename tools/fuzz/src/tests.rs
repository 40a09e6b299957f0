//! Entries from outside are fuzzed as they are registered, and samples belong to parameters.

use super::*;
use crate::coverage::Coverage;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::params::field;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;
use hybridsim_simulation::registry::standard;
use std::cell::Cell;

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
fn seeds_of_traces_are_read_to_their_end() {
    seeds::traces().iter().for_each(|seed| input::trace(seed));
}

#[cfg(unix)]
#[test]
fn seeds_of_clients_are_served() {
    let registry = standard();
    for seed in seeds::clients() {
        let requests = client::converses(&registry, &seed);
        // The client of the last in each group only lists exports.
        let aborts = seed.ends_with(&[b"IHAVEOPT", &[0, 0, 0, 2, 0, 0, 0, 0][..]].concat());
        assert_eq!(requests.map(|it| it > 0), Some(!aborts), "{seed:?}");
    }
}

#[test]
fn examples_are_valid_scenarios() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let bytes = std::fs::read(entry.expect("a file").path()).unwrap_or_default();
        input::scenario(&standard(), &bytes);
    }
}

#[test]
fn a_run_that_depends_on_how_it_is_observed_is_found() {
    let text = "[workload]\ngenerator = { kind = \"uniform\", requests = 9 }\n[component.d]\n\
                kind = \"constant-device\"\ncapacity = \"1MiB\"\nlatency = \"1us\"\n";
    let source = SourceText { name: "twin".to_owned(), text: text.to_owned() };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let registry = standard();
    let scenario = Scenario::check(input, &registry).expect("a scenario");
    let ran = run::run(&scenario, &registry, run::Options::default()).expect("a run");
    assert_eq!(twin(scenario.clone(), &registry, &ran.results), None);
    let mut other = ran.results;
    other.fingerprint.push('0');
    let reason = twin(scenario, &registry, &other).expect("they differ");
    assert!(reason.contains("without it"), "{reason}");
}
