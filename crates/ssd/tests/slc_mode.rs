//! The page-mapped SLC cache in a device: times of both modes, folding in idle time, endurance.

mod common;

use common::{Host, answers, build, chosen, run, settings, text, unbuffered, us};
use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_engine::{Arrival, Component, Event, Lba, Op, Outcome, Request, SimTime};
use hybridsim_flash::defaults;
use hybridsim_flash::event::{Cause, FlashEvent};

const PAGE_BYTES: u64 = 2048;
const TIMINGS: [&str; 3] = ["interleaved", "queued", "serial"];

/// An SSD of one die with the FTL `slc-cache`; blocks of 12 pages, 4 in SLC mode.
fn cached(ftl: &[(&'static str, Value)]) -> Settings {
    with_native_times(ftl)
        .and("slc.read_time", us(10))
        .and("slc.program_time", us(100))
        .and("slc.erase_time", us(1_000))
}

/// A device with the times of native mode in SLC mode, too.
fn with_native_times(ftl: &[(&'static str, Value)]) -> Settings {
    let registry = hybridsim_ssd::registry();
    let mut choice = defaults::entry("ftl", "slc-cache", &registry);
    if let Value::Entry(EntryChoice { settings, .. }) = &mut choice {
        ftl.iter().for_each(|(name, value)| settings.set(name, value.clone()));
    }
    settings()
        .and("channels", Value::Count(1))
        .and("dies_per_channel", Value::Count(1))
        .and("blocks_per_plane", Value::Count(20))
        .and("pages_per_block", Value::Count(12))
        .and("ftl", choice)
}

/// A static cache of so many pages, and no other.
fn fixed(pages: u64) -> [(&'static str, Value); 2] {
    [("static_size", Value::Bytes(pages * PAGE_BYTES)), ("dynamic_size", Value::Bytes(0))]
}

#[test]
fn every_timing_model_has_times_for_both_modes() {
    use Op::{Read, Write};
    // Four pages fill the cache; the fifth is written to native flash.
    let mut asked: Vec<_> = (0..5).map(|page| (page * 1_000, Write, page, 1)).collect();
    asked.extend([(5_000, Read, 0, 1), (6_000, Read, 4, 1)]);
    // The device looks every 10 ms whether it was idle for so long, and folds at 20,000: four times
    // 10 + 300, and 1,000 for the erase. A read then finds native flash, and a write the cache.
    asked.extend([(30_000, Read, 0, 1), (31_000, Write, 0, 1), (32_000, Read, 0, 1)]);
    let expected = [100, 1_100, 2_100, 3_100, 4_300, 5_010, 6_025, 30_025, 31_100, 32_010];
    for timing in TIMINGS {
        let settings =
            cached(&fixed(4)).and("timing", unbuffered(timing)).and("idle_after", us(10_000));
        assert_eq!(answers(&settings, &asked), expected, "{timing}");
        let native = with_native_times(&fixed(4)).and("timing", unbuffered(timing));
        assert_eq!(answers(&native, &asked)[..2], [300, 1_300], "{timing}");
    }
}

#[test]
fn a_write_waits_for_a_step_of_folding_and_copy_back_takes_the_times_of_both_modes() {
    use Op::{Read, Write};
    let mut asked: Vec<_> = (0..4).map(|page| (page * 1_000, Write, page, 1)).collect();
    // Folding begins at 20,000 and takes 4 * 310 + 1,000.
    asked.push((20_200, Read, 9, 1));
    asked.push((20_300, Write, 9, 1));
    for copy in ["none", "plane"] {
        for timing in ["interleaved", "serial"] {
            let settings = cached(&fixed(4))
                .and("timing", chosen("timing", timing))
                .and("copy_back.within", text(copy))
                .and("idle_after", us(10_000));
            let ends = answers(&settings, &asked);
            assert_eq!(ends[5], 20_000 + 2_240 + 100, "{timing}, {copy}: {ends:?}");
        }
    }
}

#[test]
fn a_program_in_slc_mode_takes_one_bit_of_each_cell() {
    use Op::{Flush, Write};
    let settings = cached(&fixed(8))
        .and("timing", chosen("timing", "queued"))
        .and("program_pages", Value::Count(12))
        .and("timing.write_buffer", Value::Bytes(24 * PAGE_BYTES));
    // Two programs of four pages in SLC mode; one of twelve in native mode.
    let asked = [(0, Write, 0, 8), (1, Flush, 0, 0), (1_000, Write, 8, 12), (1_001, Flush, 0, 0)];
    assert_eq!(answers(&settings, &asked), [0, 200, 1_000, 1_300]);
    let odd = settings.clone().and("program_pages", Value::Count(4));
    let problems = build(&odd).err().expect("pages of three bits each");
    assert!(problems.iter().any(|problem| problem.param == "program_pages"), "{problems:?}");
    let types = settings
        .and("timing.read_spread", Value::Number(0.5))
        .and("timing.page_types", Value::Count(2));
    let problems = build(&types).err().expect("two page types, three bits");
    assert!(problems.iter().any(|problem| problem.param == "timing.page_types"), "{problems:?}");
}

#[test]
fn reads_return_the_last_write_while_data_are_folded() {
    for timing in TIMINGS {
        for when_full in ["direct", "fold"] {
            let mut ftl = fixed(12).to_vec();
            ftl[1].1 = Value::Bytes(24 * PAGE_BYTES);
            ftl.push(("when_full", text(when_full)));
            let settings = cached(&ftl)
                .and("timing", chosen("timing", timing))
                .and("precondition", text("fill"));
            let ssd = build(&settings).expect("valid settings");
            let sectors = ssd.capacity();
            let (done, events, end) = run(ssd, Host::random(4_000, 4, sectors));
            end.expect("a run without a fault");
            let folded = |event: &FlashEvent| {
                matches!(event, FlashEvent::Program { cause: Cause::Fold, .. })
            };
            let folds = events.iter().filter_map(FlashEvent::decode).filter(folded).count();
            // The device is never idle.
            let least = if when_full == "fold" { 500 } else { 1 };
            assert!(done.len() == 4_000 && folds >= least, "{timing}, {when_full}: {folds}");
        }
    }
}

#[test]
fn worn_out_blocks_of_the_static_cache_leave_the_device_without_one() {
    let mut ftl = fixed(12).to_vec();
    ftl.push(("when_full", text("fold")));
    let settings = cached(&ftl).and("slc.endurance", Value::Count(5));
    // Worn by 60 %, a block has 2 of 5 erases left.
    for (initial_wear, erases) in [(0.0, 5), (0.6, 2)] {
        let settings = settings.clone().and("initial_wear", Value::Number(initial_wear));
        let mut ssd = build(&settings).expect("valid settings");
        let mut untimed = ssd.untimed("ssd");
        untimed.serve(&writes(4_000)).expect("native blocks remain");
        // Each of three blocks took four pages before each erase.
        let operations = untimed.operations();
        let retired = untimed.array().retired_blocks();
        assert_eq!((retired, operations.erases(Cause::Fold)), (3, 3 * erases));
        assert_eq!(operations.programs(Cause::Host), 4_000);
        let folded = operations.programs(Cause::Fold);
        assert!(folded <= 12 * erases, "no more than the cache took: {folded}");
    }
}

#[test]
fn a_worn_out_device_reports_both_endurances() {
    let settings = cached(&fixed(12))
        .and("endurance", Value::Count(10))
        .and("slc.endurance", Value::Count(500));
    let mut ssd = build(&settings).expect("valid settings");
    let error = ssd.untimed("ssd").serve(&writes(100_000)).expect_err("it is worn out");
    let error = format!("{error:?}");
    assert!(error.contains("their 10 erases (static SLC cache: 500)"), "{error}");
}

#[test]
fn blocks_in_slc_mode_have_bit_errors_at_a_rate_of_their_own() {
    let settings = cached(&fixed(4))
        .and("errors", chosen("errors", "power-law"))
        .and("errors.rber_base", Value::Number(0.4))
        .and("errors.retries_max", Value::Count(0))
        .and("errors.slc_rber_factor", Value::Number(0.0));
    let at = |ms: u64| SimTime::from_ns(ms * 1_000_000);
    let page = |op, page: u64| Request::new(op, Lba(page * 4), 4);
    // Four pages fill the cache; the fifth is written to native flash.
    let writes = (0..5).map(|number| (at(number), page(Op::Write, number)));
    let reads = [(at(10), page(Op::Read, 0)), (at(20), page(Op::Read, 4))];
    let host = Host::new(writes.chain(reads).collect());
    let (done, ..) = run(build(&settings).expect("valid settings"), host);
    let outcomes: Vec<_> = done[5..].iter().map(|done| done.outcome).collect();
    assert_eq!(outcomes, [Outcome::Done, Outcome::Failed]);
}

/// Writes of single pages, all over 100.
fn writes(count: u64) -> Vec<Arrival> {
    let write = |number: u64| Arrival {
        at: SimTime::ZERO,
        request: Request::new(Op::Write, Lba(number * 7 % 100 * 4), 4),
    };
    (0..count).map(write).collect()
}
