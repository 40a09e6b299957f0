//! Every controller with every policy against the reference model, over media that reorder.

mod common;

use common::{cleanup, count, entry_choice, hybrid_disk, nv_cache, registry, settings, threshold};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::{admission, cleanup as cleanups, replacement};
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::{Load, Rig};
use hybridsim_engine::{Flags, Lba, Op, Request};
use proptest::prelude::*;

fn rig<'a>(
    settings: &'a Settings,
    registry: &'a Registry,
    children: &'a [u64],
    seed: u64,
) -> Rig<'a> {
    Rig { entry: hybrid_disk(), settings, registry, children, seed }
}

fn defaults(admission: &str) -> Settings {
    match admission {
        "sequential" => Settings::default()
            .and("cutoff_sectors", Value::Count(24))
            .and("streams", Value::Count(2)),
        "second-touch" => Settings::default().and("remembered", Value::Count(64)),
        _ => Settings::default(),
    }
}

#[test]
fn every_policy_returns_what_was_written() {
    let registry = registry();
    let mut cleanings = 0;
    for cleaner in cleanups::ENTRIES {
        for order in replacement::ENTRIES {
            for admit in admission::ENTRIES {
                let mut settings = settings(8)
                    .and("cleanup", cleanup(cleaner.description.name))
                    .and("replacement", entry_choice(order.description.name, Settings::default()))
                    .and("admission", threshold(20));
                if admit.description.name != "threshold" {
                    let name = admit.description.name;
                    settings.set("admission", entry_choice(name, defaults(name)));
                }
                for (seed, depth) in [(1, 1), (2, 4), (3, 32)] {
                    settings.set("trim_cleaned", Value::Flag(seed == 2));
                    let load = Load { requests: 1500, sectors_max: 40, seed };
                    let rig = rig(&settings, &registry, &[64, 400], seed);
                    let seen = rig.check_random(&load, depth).expect("conforms");
                    cleanings += count(&seen.events, |event| {
                        matches!(event.event(), Some(CacheEvent::CleanupEnded { .. }))
                    });
                    let begun = count(&seen.events, |event| {
                        matches!(event.event(), Some(CacheEvent::CleanupStarted))
                    });
                    let ended = count(&seen.events, |event| {
                        matches!(event.event(), Some(CacheEvent::CleanupEnded { .. }))
                    });
                    assert!(begun - ended <= 1, "at most one is running at the end");
                    // The load marks no metadata, so that this policy admits none of it.
                    let admits = admit.description.name != "metadata";
                    assert!(ended > 3 || !admits, "{} was not tried", cleaner.description.name);
                }
            }
        }
    }
    assert!(cleanings > 1000, "{cleanings}");
}

/// One request of a generated load; `lba` and `sectors` are cut to what the device has.
#[derive(Clone, Debug)]
struct Step {
    op: Op,
    lba: u64,
    sectors: u64,
    pinned: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        6 => Just(Op::Read), 8 => Just(Op::Write), 2 => Just(Op::Trim), 1 => Just(Op::Flush)
    ];
    let sectors = prop_oneof![4 => 1u64..9, 1 => 1u64..80];
    (op, 0u64..200, sectors, prop::bool::weighted(0.05))
        .prop_map(|(op, lba, sectors, pinned)| Step { op, lba, sectors, pinned })
}

/// A machine drawn at random: sizes, depths and policies.
#[derive(Clone, Debug)]
struct Shape {
    page_sectors: u64,
    flash_pages: u64,
    disk_sectors: u64,
    cleaner: &'static str,
    threshold: u64,
    depths: (u64, u64, u64),
    merge: bool,
    destage_pages: u64,
}

fn shape() -> impl Strategy<Value = Shape> {
    let names: Vec<&'static str> = cleanups::ENTRIES.iter().map(|e| e.description.name).collect();
    (
        prop_oneof![Just(1u64), Just(3), Just(8), Just(64)],
        1u64..10,
        60u64..260,
        prop::sample::select(names),
        1u64..60,
        (1u64..8, 1u64..8, 1u64..5),
        any::<bool>(),
        1u64..5,
    )
        .prop_map(
            |(page_sectors, flash_pages, disk_sectors, cleaner, threshold, depths, merge, n)| {
                let destage_pages = n;
                Shape {
                    page_sectors,
                    flash_pages,
                    disk_sectors,
                    cleaner,
                    threshold,
                    depths,
                    merge,
                    destage_pages,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn any_shape_conforms(
        shape in shape(),
        steps in prop::collection::vec(step(), 1..120),
        depth in 1u32..33,
        seed in 0u64..1000,
    ) {
        let settings = settings(shape.page_sectors)
            .and("cleanup", cleanup(shape.cleaner))
            .and("admission", threshold(shape.threshold))
            .and("flash_queue_depth", Value::Count(shape.depths.0))
            .and("disk_queue_depth", Value::Count(shape.depths.1))
            .and("destage_depth", Value::Count(shape.depths.2))
            .and("destage_bytes", Value::Bytes(shape.destage_pages * shape.page_sectors * 512))
            .and("merge_writes", Value::Flag(shape.merge));
        let settings = match seed % 2 {
            0 => settings,
            _ => settings.and("queue_depth", Value::Count(1 + seed % 7)),
        };
        let registry = registry();
        let children = [shape.flash_pages * shape.page_sectors, shape.disk_sectors];
        let requests: Vec<Request> = steps
            .iter()
            .map(|step| {
                let lba = step.lba % shape.disk_sectors;
                let sectors = step.sectors.min(shape.disk_sectors - lba);
                let mut request = Request::new(step.op, Lba(lba), sectors as u32);
                request.flags = if step.pinned { Flags::PIN } else { Flags::NONE };
                request
            })
            .collect();
        let rig = rig(&settings, &registry, &children, seed);
        rig.check(&requests, depth).map_err(TestCaseError::fail)?;
        rig.check_bursts(&requests, depth).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn a_run_is_a_pure_function_of_its_input() {
    let registry = registry();
    let settings = settings(8).and("cleanup", cleanup("low-watermark"));
    let load = Load { requests: 2000, sectors_max: 40, seed: 5 };
    let run = || {
        let rig = rig(&settings, &registry, &[80, 500], 9);
        rig.check_random(&load, 16).expect("conforms").events
    };
    assert_eq!(run(), run());
}

#[test]
fn a_drive_with_an_nv_cache_conforms() {
    let registry = registry();
    let settings = nv_cache();
    for (seed, depth) in [(1, 1), (2, 4), (3, 32)] {
        let rig = Rig {
            entry: &hybridsim_hybrid::nv_cache::ENTRY,
            settings: &settings,
            registry: &registry,
            children: &[64, 400],
            seed,
        };
        let load = Load { requests: 1500, sectors_max: 40, seed };
        rig.check_random(&load, depth).expect("conforms");
    }
}
