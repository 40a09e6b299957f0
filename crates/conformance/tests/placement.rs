//! Placement semantics of the FTL that places by handle, with every collector, and of arrays of
//! SSDs with it.

use hybridsim_array::{concat, stripe};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{EntryChoice, Problem, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::over;
use hybridsim_conformance::placement::{Coverage, OBSERVED, PlacementRig, System};
use hybridsim_engine::{Arrival, ComponentTree, SimDuration, SimTime, Stream};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::page;
use hybridsim_flash::gc::GcEntry;
use hybridsim_flash::wear::WearEntry;
use hybridsim_ssd::device::{Ssd, SsdParams, build_ssd};
use proptest::prelude::*;

/// Sectors of a page.
const PAGE: u64 = 4;

/// Choices of an SSD that places by handle.
#[derive(Clone, Debug)]
struct Drive {
    groups: u64,
    handles: u64,
    isolation: &'static str,
    gc: &'static str,
    wear: &'static str,
    /// Pace, and whether copies have blocks of their own.
    collector: (&'static str, bool),
    gc_free_blocks: u64,
    stripe_pages: u64,
    timing: &'static str,
    dies_per_channel: u64,
    planes_per_die: u64,
    merge_pages: u64,
    /// Whether data are refreshed, and the device collects when it is idle.
    background: bool,
}

impl Default for Drive {
    fn default() -> Self {
        Self {
            groups: 1,
            handles: 3,
            isolation: "initially",
            gc: "greedy",
            wear: "none",
            collector: ("incremental", true),
            gc_free_blocks: 1,
            stripe_pages: 1,
            timing: "interleaved",
            dies_per_channel: 2,
            planes_per_die: 1,
            merge_pages: 0,
            background: false,
        }
    }
}

const COLLECTORS: [(&str, bool); 3] =
    [("incremental", true), ("blocking", true), ("blocking", false)];
const ISOLATIONS: [&str; 2] = ["initially", "persistently"];
const WEAR: [&str; 4] = ["none", "implicit", "static", "dual-pool"];
const TIMINGS: [&str; 4] = ["none", "serial", "interleaved", "queued"];

fn registry() -> Registry {
    let mut registry = hybridsim_ssd::registry();
    registry.add(OBSERVED);
    registry
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// The entry `name` with some of its settings.
fn entry(
    registry: &Registry,
    (category, name): (&str, &str),
    settings: &[(&'static str, Value)],
) -> Value {
    let mut value = defaults::entry(category, name, registry);
    if let Value::Entry(EntryChoice { settings: of_entry, .. }) = &mut value {
        for (key, value) in settings {
            of_entry.set(key, value.clone());
        }
    }
    value
}

impl Drive {
    fn ftl(&self, registry: &Registry) -> Value {
        let placement = [
            ("handles", Value::Count(self.handles)),
            ("reclaim_groups", Value::Count(self.groups)),
            ("isolation", text(self.isolation)),
        ];
        let wear = match self.wear {
            "static" | "dual-pool" => vec![("threshold", Value::Count(2))],
            _ => Vec::new(),
        };
        let mut settings = vec![
            ("placement", entry(registry, ("placement", "handles"), &placement)),
            ("gc", entry(registry, ("gc-policy", self.gc), &[])),
            ("wear", entry(registry, ("wear-levelling", self.wear), &wear)),
            ("gc_pace", text(self.collector.0)),
            ("gc_separate", Value::Flag(self.collector.1)),
            ("gc_free_blocks", Value::Count(self.gc_free_blocks)),
            ("stripe_pages", Value::Count(self.stripe_pages)),
        ];
        if self.background {
            settings.push(("gc_idle_free_blocks", Value::Count(3)));
        }
        entry(registry, ("ftl", page::ENTRY.description.name), &settings)
    }

    fn settings(&self, registry: &Registry) -> Settings {
        let mut settings = defaults::settings(SsdParams::PARAMS, registry);
        let counts = [
            ("channels", 2),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", 40),
            ("pages_per_block", 8),
        ];
        for (name, count) in counts {
            settings.set(name, Value::Count(count));
        }
        let time = |us| Value::Duration(SimDuration::from_us(us));
        for (name, us) in [("read_time", 25), ("program_time", 300), ("erase_time", 2_000)] {
            settings.set(name, time(us));
        }
        settings.set("page_size", Value::Bytes(PAGE * 512));
        settings.set("merge_buffer", Value::Bytes(self.merge_pages * PAGE * 512));
        settings.set("over_provisioning", Value::Number(0.7));
        settings.set("timing", entry(registry, ("timing", self.timing), &[]));
        settings.set("ftl", self.ftl(registry));
        if self.background {
            settings.set("idle_after", time(1_000));
            let refresh = [("refresh_reads", Value::Count(4))];
            settings.set("errors", entry(registry, ("errors", "power-law"), &refresh));
        }
        settings
    }

    /// The SSD, whose FTL is that of `registry`.
    fn try_build(&self, registry: &Registry, path: &str) -> Result<Ssd, Vec<Problem>> {
        let settings = self.settings(registry);
        build_ssd(&BuildInput { settings: &settings, registry, seed: 1, path, children: &[] })
    }

    fn build(&self, registry: &Registry, path: &str) -> Ssd {
        self.try_build(registry, path).unwrap_or_else(|it| panic!("{self:?}: {it:?}"))
    }

    fn tree(&self, path: &str) -> ComponentTree {
        ComponentTree::leaf(path, self.build(&registry(), path))
    }

    /// A system of a kind of [`KINDS`].
    fn system(&self, kind: &str) -> System {
        let merges = self.merge_pages > 0;
        let capacity = self.tree("host/it").component.capacity();
        let drive = self.clone();
        let names = Settings::default().and("members", Value::Texts(Vec::new()));
        let members = move |count: usize| -> Vec<ComponentTree> {
            (0..count).map(|at| drive.tree(&format!("host/it/{at}"))).collect()
        };
        match kind {
            "ssd" => {
                let drive = self.clone();
                let build = Box::new(move || drive.tree("host/it"));
                System { build, locate: Box::new(|sector| (0, sector)), merges }
            }
            "concat" => {
                let build = Box::new(move || {
                    over(&concat::ENTRY, &names, &hybridsim_ssd::registry(), members(2))
                });
                let locate = move |at| ((at / capacity) as usize, at % capacity);
                System { build, locate: Box::new(locate), merges }
            }
            "stripe" => {
                // A chunk of one page and a half.
                let chunk = 6;
                let names = names.and("chunk", Value::Bytes(chunk * 512));
                let build = Box::new(move || {
                    over(&stripe::ENTRY, &names, &hybridsim_ssd::registry(), members(3))
                });
                let locate = move |at: u64| {
                    let (row, within) = (at / (3 * chunk), at % (3 * chunk));
                    ((within / chunk) as usize, row * chunk + within % chunk)
                };
                System { build, locate: Box::new(locate), merges }
            }
            other => panic!("no system `{other}`"),
        }
    }

    fn check(&self, kind: &str, verifies: bool, seed: u64, batches: usize) -> Coverage {
        let mut rig = PlacementRig::new(self.system(kind), verifies);
        let cuts_power = seed.is_multiple_of(2);
        let checked = rig.check_random(seed, batches, cuts_power);
        checked.unwrap_or_else(|error| panic!("{kind} of {self:?}: {error}"))
    }
}

const KINDS: [&str; 3] = ["ssd", "concat", "stripe"];

#[test]
fn every_victim_policy_and_collector_places_by_the_rules() {
    for gc in registry().iter::<GcEntry>() {
        for isolation in ISOLATIONS {
            for (seed, collector) in (0..).zip(COLLECTORS) {
                let gc = gc.description.name;
                let drive = Drive { gc, isolation, collector, ..Drive::default() };
                let covered = drive.check("ssd", seed != 1, seed, 1_000);
                let copies = covered.copies.get("gc").copied().unwrap_or(0);
                assert!(copies > 300 && covered.opened > 90, "{drive:?}: {covered:?}");
            }
        }
    }
}

#[test]
fn every_wear_policy_places_by_the_rules() {
    for wear in registry().iter::<WearEntry>() {
        for isolation in ISOLATIONS {
            for (seed, collector) in (0..).zip(COLLECTORS) {
                let wear = wear.description.name;
                let drive = Drive { wear, isolation, collector, ..Drive::default() };
                let covered = drive.check("ssd", seed != 1, seed, 1_000);
                let copies = covered.copies.get("wear").copied().unwrap_or(0);
                let moves = matches!(wear, "static" | "dual-pool");
                assert!(moves == (copies > 50), "{drive:?}: {covered:?}");
            }
        }
    }
}

#[test]
fn data_stay_in_their_reclaim_group_and_move_on_when_it_is_full() {
    for gc in registry().iter::<GcEntry>() {
        for isolation in ISOLATIONS {
            for ((seed, collector), groups) in (0..).zip(COLLECTORS).zip([2, 4, 2]) {
                let gc = gc.description.name;
                let drive = Drive { groups, gc, isolation, collector, ..Drive::default() };
                let covered = drive.check("ssd", seed != 1, seed, 600);
                let copies = covered.copies.get("gc").copied().unwrap_or(0);
                assert!(copies > 300 && covered.moved_on > 100, "{drive:?}: {covered:?}");
            }
        }
    }
}

#[test]
fn reclaim_groups_that_dies_or_identifiers_do_not_hold_are_refused() {
    for (groups, handles, key) in [
        (3, 2, "placement.reclaim_groups"),
        (8, 2, "placement.reclaim_groups"),
        (4, 65, "placement.handles"),
    ] {
        let drive = Drive { groups, handles, ..Drive::default() };
        let problems = drive.try_build(&registry(), "ssd").err().unwrap_or_default();
        assert!(
            problems.iter().any(|problem| problem.param.ends_with(key)),
            "{drive:?}: {problems:?}"
        );
    }
}

#[test]
fn refresh_and_idle_collection_place_by_the_rules() {
    for isolation in ISOLATIONS {
        for (seed, collector) in (0..).zip(COLLECTORS) {
            let drive = Drive { isolation, collector, background: true, ..Drive::default() };
            let covered = drive.check("ssd", seed != 1, seed, 600);
            let copies = covered.copies.get("refresh").copied().unwrap_or(0);
            assert!(copies > 60, "{drive:?}: {covered:?}");
        }
    }
}

#[test]
fn an_untimed_ssd_puts_every_page_where_a_timed_one_does() {
    for isolation in ISOLATIONS {
        for merge_pages in [0, 4] {
            let drive = Drive { isolation, merge_pages, timing: "none", ..Drive::default() };
            let mut rig = PlacementRig::new(drive.system("ssd"), true);
            let mut ssd = drive.build(&hybridsim_ssd::registry(), "ssd");
            let mut untimed = ssd.untimed("ssd");
            let mut stream = Stream::new(3, "untimed");
            for _ in 0..500 {
                let requests = rig.draw_batch(&mut stream, false);
                let arrivals: Vec<_> = requests
                    .iter()
                    .map(|request| Arrival { at: SimTime::ZERO, request: *request })
                    .collect();
                untimed.serve(&arrivals).unwrap_or_else(|fault| panic!("{fault}"));
                let served = rig.serve(&requests);
                let same = served.and_then(|()| rig.compare_array(0, untimed.array()));
                same.unwrap_or_else(|error| panic!("{drive:?}: {error}"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Random requests to random devices and arrays of them agree with the model.
    #[test]
    fn random_systems_place_by_the_rules(
        kind in 0..KINDS.len(),
        // Three groups need two bits, which also name a fourth group.
        (groups, dies_per_channel) in
            prop_oneof![Just((1u64, 2u64)), Just((2, 2)), Just((4, 2)), Just((3, 3))],
        planes_per_die in 1u64..3,
        (handles, stripe_pages, gc_free_blocks) in (2u64..6, 1u64..5, 1u64..3),
        (isolation, collector, timing) in (0..2usize, 0..3usize, 0..4usize),
        wear in 0..4usize,
        merge_pages in prop_oneof![Just(0), 1u64..9],
        background in any::<bool>(),
        verifies in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let drive = Drive {
            groups,
            dies_per_channel,
            planes_per_die,
            handles,
            isolation: ISOLATIONS[isolation],
            collector: COLLECTORS[collector],
            timing: TIMINGS[timing],
            wear: WEAR[wear],
            stripe_pages,
            gc_free_blocks,
            merge_pages,
            background,
            ..Drive::default()
        };
        drive.check(KINDS[kind], verifies, seed, 200);
    }
}
