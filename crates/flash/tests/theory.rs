//! Write amplification under uniform random writes against theory.

use hybridsim_config::param::Value;
use hybridsim_conformance::mean_field;
use hybridsim_engine::Stream;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{FtlInput, Hint, page};
use hybridsim_flash::geometry::{Geometry, Lpn, Shape};
use hybridsim_flash::ops::FlashOps;

/// Programs per host write in steady state.
fn measure(policy: Value, mixed: bool, blocks: u64, pages_per_block: u64, exported: u32) -> f64 {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block,
        page_bytes: 4096,
        spare_bytes: 0,
    };
    let geometry = Geometry::new(&shape).expect("a valid shape");
    let registry = defaults::registry();
    let pace = if mixed { "blocking" } else { "incremental" };
    let settings = defaults::settings(page::ENTRY.description.params, &registry)
        .and("gc", policy)
        .and("gc_pace", Value::Text(pace.to_owned()))
        .and("gc_separate", Value::Flag(!mixed));
    let mut ftl = (page::ENTRY.build)(&FtlInput {
        settings: &settings,
        geometry: &geometry,
        exported_pages: exported,
        registry: &registry,
        seed: 1,
        path: "theory",
    })
    .expect("valid parameters");
    let mut flash = FlashOps::new(Array::new(geometry, ProgramOrder::Sequential, u32::MAX));
    flash.set_recording(false);
    let mut stream = Stream::new(3, "theory");
    let mut write = |lpn| {
        ftl.write(Lpn(lpn), Hint::of_pages(1), &mut flash).expect("a device that is not full");
        flash.array().programs()
    };
    (0..exported).for_each(|lpn| drop_number(write(lpn)));
    let mut random =
        |count: u32| (0..count).fold(0, |_, _| write(stream.below(u64::from(exported)) as u32));
    let before = random(exported * 2);
    let after = random(exported);
    (after - before) as f64 / f64::from(exported)
}

fn drop_number(_: u64) {}

/// The victim policy `name`, with one of its parameters changed.
fn policy(name: &str, param: Option<(&'static str, Value)>) -> Value {
    let mut value = defaults::entry("gc-policy", name, &defaults::registry());
    if let (Value::Entry(entry), Some((name, value))) = (&mut value, param) {
        entry.settings.set(name, value);
    }
    value
}

/// Over-provisioning as (physical - exported) / exported.
const RATIOS: [f64; 5] = [0.05, 0.07, 0.12, 0.28, 0.50];

/// Blocks of the measured devices: as many as time allows, as the theory assumes very many.
const BLOCKS: u32 = if cfg!(debug_assertions) { 4_096 } else { 16_384 };
const PAGES: u32 = 32;

/// Pages exported at over-provisioning `ratio`, and the utilisation of the physical pages.
fn exported_pages(ratio: f64) -> (u32, f64) {
    let exported = (f64::from(BLOCKS * PAGES) / (1.0 + ratio)) as u32;
    (exported, f64::from(exported) / f64::from(BLOCKS * PAGES))
}

fn assert_near(what: &str, measured: f64, theory: f64, tolerance: f64) {
    let error = measured / theory - 1.0;
    println!("{what}: measured {measured:.4}, theory {theory:.4}, {:+.2} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: measured {measured}, theory {theory}");
}

#[test]
fn the_formulas_meet_published_points() {
    assert!((mean_field::fifo(16_320.0 / 12_288.0) - 2.2240).abs() < 5e-4);
    // With large blocks greedy and FIFO converge: u = (u' - 1) / ln u'.
    assert!((mean_field::greedy(60_000, 0.7) - 1.876).abs() < 0.002);
}

#[test]
fn the_mean_field_of_choices_lies_between_random_and_greedy() {
    for ratio in RATIOS {
        let full = 1.0 / (1.0 + ratio);
        let one = mean_field::choices(1, 32, full);
        assert!((one * (1.0 - full) - 1.0).abs() < 1e-6, "d = 1 at {ratio}: {one}");
        let greedy = mean_field::greedy(32, full);
        let many = mean_field::choices(2_000, 32, full);
        assert!((many / greedy - 1.0).abs() < 0.002, "many at {ratio}: {many}, greedy {greedy}");
        let between = [2, 3, 10, 30].map(|d| mean_field::choices(d, 32, full));
        assert!(between.is_sorted_by(|few, more| few > more), "{between:?}");
        assert!(one > between[0] && between[3] > greedy);
    }
}

#[test]
fn fifo_cleaning_meets_the_lambert_w_formula() {
    for ratio in RATIOS {
        let (exported, full) = exported_pages(ratio);
        let measured = measure(policy("fifo", None), true, u64::from(BLOCKS), 32, exported);
        assert_near(&format!("fifo at {ratio}"), measured, mean_field::fifo(1.0 / full), 0.02);
    }
    // The published point: 2.2240 at a = 4080 / 3072.
    let measured = measure(policy("fifo", None), true, 4_080, 64, 3_072 * 64);
    assert_near("fifo 4080/3072", measured, mean_field::fifo(4_080.0 / 3_072.0), 0.02);
}

#[test]
fn greedy_cleaning_meets_the_mean_field() {
    for ratio in RATIOS {
        let (exported, full) = exported_pages(ratio);
        let theory = mean_field::greedy(PAGES, full);
        // One mixed log or two makes no difference while all pages are equally hot.
        let both: &[bool] = if ratio == 0.28 { &[false, true] } else { &[false] };
        for &mixed in both {
            let greedy = policy("greedy", None);
            let measured = measure(greedy, mixed, u64::from(BLOCKS), u64::from(PAGES), exported);
            let what = format!("greedy at {ratio}, mixed {mixed}");
            assert_near(&what, measured, theory, 0.03);
            assert!(measured < mean_field::fifo(1.0 / full), "{what}: worse than FIFO");
        }
    }
}

#[test]
fn random_choices_meet_the_mean_field() {
    for ratio in RATIOS {
        let (exported, full) = exported_pages(ratio);
        for d in [2, 3, 10, 30] {
            let choices = policy("d-choices", Some(("choices", Value::Count(d.into()))));
            let measured = measure(choices, false, u64::from(BLOCKS), u64::from(PAGES), exported);
            let theory = mean_field::choices(d, PAGES, full);
            assert_near(&format!("{d} choices at {ratio}"), measured, theory, 0.03);
        }
    }
}

#[test]
fn a_random_victim_is_as_full_as_the_device() {
    for ratio in [0.28, 0.50] {
        let (exported, full) = exported_pages(ratio);
        let both = [
            policy("random", None),
            policy("partial-search", Some(("fraction", Value::Number(0.0)))),
        ];
        for random in both {
            let measured = measure(random, false, u64::from(BLOCKS), u64::from(PAGES), exported);
            assert_near(&format!("random at {ratio}"), measured, mean_field::random(full), 0.03);
        }
    }
}

#[test]
fn a_partial_search_comes_close_to_greedy_soon() {
    let (exported, full) = exported_pages(0.12);
    let shares = [0.0, 0.001, 0.01, 0.1, 1.0].map(|share| {
        let partial = policy("partial-search", Some(("fraction", Value::Number(share))));
        measure(partial, false, u64::from(BLOCKS), u64::from(PAGES), exported)
    });
    println!("partial search: {shares:?}");
    assert!(shares.is_sorted_by(|less, more| *less > more * 0.995), "{shares:?}");
    assert_near("full search", shares[4], mean_field::greedy(PAGES, full), 0.03);
    // Searching k of very many blocks equals k choices.
    let k = (f64::from(BLOCKS) * 0.001).ceil() as u32;
    assert_near("0.1 % searched", shares[1], mean_field::choices(k, PAGES, full), 0.03);
}
