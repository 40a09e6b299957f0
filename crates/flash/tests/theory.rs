//! Write amplification under uniform random writes against theory.

use hybridsim_engine::Stream;
use hybridsim_engine::param::Value;
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::{FtlInput, Hint, page};
use hybridsim_flash::geometry::{Geometry, Lpn, Shape};
use hybridsim_flash::ops::FlashOps;

/// Programs per host write in steady state.
fn measure(policy: &str, mixed: bool, blocks: u64, pages_per_block: u64, exported: u32) -> f64 {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block,
        page_bytes: 4096,
        spare_bytes: 0,
    };
    let geometry = Geometry::new(&shape).expect("a sound shape");
    let registry = defaults::registry();
    let pace = if mixed { "blocking" } else { "incremental" };
    let settings = defaults::settings(page::ENTRY.description.params, &registry)
        .and("gc", defaults::plug("gc-policy", policy, &registry))
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
    .expect("sound parameters");
    let mut flash = FlashOps::new(Array::new(geometry, ProgramOrder::Sequential, u32::MAX));
    flash.set_recording(false);
    let mut stream = Stream::new(3, "theory");
    let mut write = |lpn| {
        ftl.write(Lpn(lpn), Hint { request_pages: 1 }, &mut flash).expect("room");
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

/// The principal branch of Lambert's W, for -1/e < x < 0, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    (0..100).fold(-0.5, |w: f64, _| w - (w * w.exp() - x) / (w.exp() * (w + 1.0)))
}

/// FIFO cleaning (Desnoyers, SYSTOR 2012): a / (a + W(-a e^-a)), a = physical / exported.
fn fifo_theory(a: f64) -> f64 {
    a / (a + lambert_w(-a * (-a).exp()))
}

/// Greedy cleaning of very many blocks of `pages` pages, filled to `full`.
///
/// In the stationary state every level j above the threshold m is left at the rate the collector
/// refills blocks, so a share 1/j of them has j valid pages; of level m the collector takes a
/// share 1 - q directly and the rest from below. Filling: all shares add up to 1 and hold `full`.
fn greedy_theory(pages: u32, full: f64) -> f64 {
    let b = f64::from(pages);
    let harmonic = |from: u32| (from + 1..=pages).map(|j| 1.0 / f64::from(j)).sum::<f64>();
    let (mut low, mut high) = (0.0, b - 1e-9);
    for _ in 0..200 {
        let victim: f64 = (low + high) / 2.0;
        let m = victim.floor() as u32 + 1;
        let q = f64::from(m) - victim;
        let filled = (b - victim) / (harmonic(m) + q / f64::from(m)) / b;
        if filled < full { low = victim } else { high = victim }
    }
    b / (b - low)
}

fn assert_near(what: &str, measured: f64, theory: f64, tolerance: f64) {
    let error = measured / theory - 1.0;
    println!("{what}: measured {measured:.4}, theory {theory:.4}, {:+.2} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: measured {measured}, theory {theory}");
}

#[test]
fn the_formulas_meet_published_points() {
    assert!((fifo_theory(16_320.0 / 12_288.0) - 2.2240).abs() < 5e-4);
    // With large blocks greedy and FIFO meet: u = (u' - 1) / ln u'.
    assert!((greedy_theory(60_000, 0.7) - 1.876).abs() < 0.002);
}

#[test]
fn fifo_cleaning_meets_the_lambert_w_formula() {
    for (blocks, exported) in [(4_080, 3_072), (2_100, 2_000), (2_560, 2_000), (3_000, 2_000)] {
        let theory = fifo_theory(f64::from(blocks) / f64::from(exported));
        let measured = measure("fifo", true, u64::from(blocks as u32), 64, exported as u32 * 64);
        assert_near(&format!("fifo {blocks}/{exported}"), measured, theory, 0.02);
    }
}

#[test]
fn greedy_cleaning_meets_the_mean_field() {
    for ratio in [0.05, 0.07, 0.12, 0.28, 0.50] {
        let blocks = 8_192;
        let exported = (f64::from(blocks) * 32.0 / (1.0 + ratio)) as u32;
        let full = f64::from(exported) / f64::from(blocks * 32);
        let theory = greedy_theory(32, full);
        // One mixed log or two makes no difference as long as all pages are equally hot.
        let both: &[bool] = if ratio == 0.28 { &[false, true] } else { &[false] };
        for &mixed in both {
            let measured = measure("greedy", mixed, u64::from(blocks as u32), 32, exported);
            let what = format!("greedy at {ratio}, mixed {mixed}");
            assert_near(&what, measured, theory, 0.03);
            assert!(measured < fifo_theory(1.0 / full), "{what}: worse than FIFO");
        }
    }
}
