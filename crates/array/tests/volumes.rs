//! Every volume against the conformance suite, and what it must cost.

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::param::Value;
use hybridsim_config::registry::Registry;
use hybridsim_conformance::{Load, Rig};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{Lba, Op, Request};
use proptest::prelude::*;

mod support;
use support::settings;

fn check(
    entry: &ComponentEntry,
    chunk: u64,
    children: &[u64],
    load: Load,
    depth: u32,
) -> Result<(), String> {
    let (settings, registry) = (settings(chunk), Registry::default());
    let rig = Rig { entry, settings: &settings, registry: &registry, children, seed: load.seed };
    rig.check_random(&load, depth).map(|_| ())
}

#[test]
fn every_volume_returns_what_was_written() {
    for entry in hybridsim_array::ENTRIES.iter().filter(|entry| fits(entry, 3)) {
        for seed in 0..8 {
            for depth in [1, 4, 32] {
                let load = Load { requests: 600, sectors_max: 150, seed };
                check(entry, 1 + seed, &[64, 80, 71], load, depth).expect("conforms");
            }
        }
    }
}

/// Whether a volume takes so many members.
fn fits(entry: &ComponentEntry, members: usize) -> bool {
    match entry.description.name {
        "raid10" => members.is_multiple_of(2),
        "raid4" | "raid5" => members >= 2,
        "raid6" | "declustered" => members >= 3,
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_shape_of_volume_conforms(
        children in prop::collection::vec(16u64..100, 1..6),
        chunk in 1u64..16,
        depth in 1u32..33,
        seed in 0u64..1000,
    ) {
        for entry in hybridsim_array::ENTRIES.iter().filter(|entry| fits(entry, children.len())) {
            let load = Load { requests: 150, sectors_max: 120, seed };
            // A tile of the declustered layout is three chunks high.
            let chunk = if entry.description.name == "declustered" { chunk.min(5) } else { chunk };
            check(entry, chunk, &children, load, depth).map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn a_request_costs_each_member_one_request_and_the_slowest_counts() {
    let (settings, registry) = (settings(8), Registry::default());
    let entry = hybridsim_array::ENTRIES.iter().find(|entry| entry.description.name == "stripe");
    let rig = Rig {
        entry: entry.expect("registered"),
        settings: &settings,
        registry: &registry,
        children: &[800, 800, 801],
        seed: 1,
    };
    assert_eq!(rig.build().expect("fine").capacity(), 2400);
    let wide = Request::new(Op::Write, Lba(4), 2000);
    let seen = rig.check(&[wide], 1).expect("conforms");
    let first = seen.events.iter().find_map(|record| match record.event() {
        Some(CommonEvent::Completed { latency, .. }) => Some(latency.as_ns()),
        _ => None,
    });
    // One request per member, each at most 20 us + jitter of up to 900 us.
    assert!(first.expect("completed") <= 920_000);
}

#[test]
fn all_wrong_parameters_are_reported() {
    let registry = Registry::default();
    let problems = |name: &str, bytes: u64, children: &[u64]| {
        let settings = settings(8).and("chunk", Value::Bytes(bytes));
        let entry = hybridsim_array::ENTRIES.iter().find(|entry| entry.description.name == name);
        let entry = entry.expect("registered");
        Rig { entry, settings: &settings, registry: &registry, children, seed: 0 }
            .build()
            .err()
            .unwrap_or_default()
    };
    assert!(problems("stripe", 1000, &[]).contains("multiple of 512"));
    assert!(problems("stripe", 1000, &[]).contains("at least one device"));
    assert!(problems("stripe", 4096, &[7]).contains("smallest member of 7"));
    assert!(problems("stripe", 512, &[u64::MAX, u64::MAX]).contains("2^64"));
    assert!(problems("concat", 512, &[]).contains("at least one device"));
    assert!(problems("concat", 512, &[u64::MAX, 1]).contains("2^64"));
}
