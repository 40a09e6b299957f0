//! The translation layer, without simulated time, against a map of written versions, in random
//! operations and after power failures.

use super::hybrid_ftl::HybridFtl;
use super::operations::{Command, Medium, Statistic};
use super::translation::SlcMlcTranslation;
use super::{PARAMS, SlcMlcSsd, build_slc_mlc};
use hybridsim_config::build::BuildInput;
use hybridsim_config::check::read;
use hybridsim_config::ineffective::without_effect;
use hybridsim_config::param::{Problem, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Component, Stream};
use hybridsim_flash::array::Violation;
use hybridsim_flash::defaults;

/// The first violation of a NAND rule on either medium.
fn violation(ftl: &HybridFtl) -> Option<Violation> {
    let slc = ftl.slc.as_ref().and_then(|slc| slc.log.array.violation());
    ftl.mlc.array.violation().or(slc)
}

fn settings(registry: &Registry) -> Settings {
    defaults::settings(PARAMS, registry)
}

fn build(settings: &Settings, registry: &Registry) -> Result<SlcMlcSsd, Vec<Problem>> {
    build_slc_mlc(&BuildInput { settings, registry, seed: 1, path: "test", children: &[] })
}

/// A device of 20 logical and 26 physical blocks of 8 pages of 4 sectors, and 8 SLC blocks of 4
/// pages of 2 sectors.
fn small(registry: &Registry) -> Settings {
    settings(registry)
        .and("capacity", Value::Bytes(20 * 8 * 2048))
        .and("mlc_size", Value::Bytes(26 * 8 * 2048))
        .and("mlc_page_size", Value::Bytes(2048))
        .and("mlc_pages_per_block", Value::Count(8))
        .and("slc_size", Value::Bytes(8 * 4 * 1024))
        .and("slc_page_size", Value::Bytes(1024))
        .and("slc_pages_per_block", Value::Count(4))
        .and("mapping_cache", Value::Count(3))
        .and("threshold_every", Value::Count(20))
        .and("throttle_every", Value::Count(10))
        .and("throttle_step", Value::Count(2))
        .and("threshold_first", Value::Count(4))
}

fn small_device() -> SlcMlcSsd {
    small_device_with("throttle", Value::Flag(true))
}

fn small_device_with(name: &'static str, value: Value) -> SlcMlcSsd {
    let registry = crate::registry();
    build(&small(&registry).and(name, value), &registry).expect("a device")
}

const SECTORS: u64 = 20 * 8 * 4;

/// Every variant that changes where data are placed.
fn variants(registry: &Registry) -> Vec<(String, Settings)> {
    let plain = small(registry);
    let with = |name, value| plain.clone().and(name, value);
    let text = |text: &str| Value::Text(text.to_owned());
    let mut all = vec![
        ("plain", plain.clone()),
        ("conventional", with("slc_size", Value::Bytes(0))),
        ("not premapped", with("premapped", Value::Flag(false))),
        ("no write-back", with("write_back", Value::Flag(false))),
        ("no pull", with("pull", Value::Flag(false))),
        ("no throttle", with("throttle", Value::Flag(false))),
        ("throttled early", with("slc_endurance", Value::Count(5000))),
        ("quadratic", with("probing", text("quadratic"))),
        ("one probe", with("probes", Value::Count(1))),
        ("large table", with("hash_entries", Value::Count(64))),
        ("a table of sectors", with("hash_unit", text("sector"))),
        ("no mapping cache", with("mapping_cache", Value::Count(0))),
        ("all to SLC", with("filter", text("all"))),
        ("long chains", with("logs_max", Value::Count(100))),
        ("Lloyd", with("threshold_search", text("lloyd"))),
    ];
    let dynamic = with("cache_mode", text("dynamic")).and("premapped", Value::Flag(false));
    all.push(("dynamic", dynamic.and("filter", text("all"))));
    let dense = with("density_size", Value::Bytes(3 * 8 * 2048)).and("density_up", Value::Count(5));
    let dense = dense.and("density_halve", Value::Count(40));
    all.push(("density", dense.and("slc_size", Value::Bytes(0))));
    let same = with("slc_page_size", Value::Bytes(2048)).and("slc_size", Value::Bytes(16 * 4096));
    all.push(("same geometry", same));
    let narrow =
        with("mlc_page_size", Value::Bytes(512)).and("slc_pages_per_block", Value::Count(1));
    all.push(("pages of a sector", narrow.and("slc_page_size", Value::Bytes(4096))));
    let level = defaults::entry("wear-levelling", "dual-pool", registry);
    let Value::Entry(mut level) = level else { panic!("an entry") };
    level.settings.set("threshold", Value::Count(2));
    all.push(("eager levelling", with("wear_levelling", Value::Entry(level))));
    all.into_iter().map(|(name, settings)| (name.to_owned(), settings)).collect()
}

/// Random reads, writes, trims, idle times and power failures against a map.
fn run(name: &str, settings: &Settings, registry: &Registry, seed: u64) -> u64 {
    let mut device = build(settings, registry).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    assert_eq!(device.capacity() % 4, 0);
    let ftl = &mut device.translation.ftl;
    ftl.verify();
    let mut stream = Stream::new(seed, name);
    let sectors = SECTORS.min(ftl.mlc.page_map.len() as u64 * u64::from(ftl.mlc.sectors_per_page));
    // (version, trimmed since)
    let mut map = vec![(0u64, false); sectors as usize];
    let hot = 1 + stream.below(60);
    for step in 1..=2_500u64 {
        ftl.operations.clear();
        let bound = if stream.chance(0.6) { hot } else { sectors };
        let first = stream.below(bound);
        let longest = if stream.chance(0.7) { 4 } else { 40 };
        let count = (1 + stream.below(longest)).min(sectors - first);
        let range = first as usize..(first + count) as usize;
        match stream.below(40) {
            0 => {
                ftl.trim(first as u32, count as u32);
                map[range].iter_mut().for_each(|(_, trimmed)| *trimmed = true);
            }
            1 => drop(ftl.idle().unwrap_or_else(|why| panic!("{name}: {why}"))),
            2 if stream.chance(0.5) => {
                ftl.rebuild().unwrap_or_else(|why| panic!("{name}, step {step}: {why}"));
            }
            3..12 => {
                let mut got = vec![u64::MAX; count as usize];
                ftl.read(first as u32, count as u32, &mut got).expect("it is sound");
                check_read(&got, &map[range], &format!("{name}, step {step}, from {first}"));
            }
            _ => {
                let versions = vec![step; count as usize];
                let done = ftl.write(first as u32, count as u32, &versions);
                done.unwrap_or_else(|why| panic!("{name}, step {step}: {why}"));
                map[range].fill((step, false));
            }
        }
        assert_eq!(violation(ftl), None, "{name}, step {step}");
        if step % 50 == 0 {
            ftl.audit().unwrap_or_else(|why| panic!("{name}, step {step}: {why}"));
        }
    }
    ftl.mlc.erases + ftl.slc.as_ref().map_or(0, |slc| slc.log.erases)
}

/// Every sector returns its version, or zero if it was trimmed since.
fn check_read(got: &[u64], map: &[(u64, bool)], context: &str) {
    for (at, (got, (version, trimmed))) in got.iter().zip(map).enumerate() {
        let right = got == version || (*trimmed && *got == 0);
        assert!(right, "{context}, sector {at}: {got} for {version}");
    }
}

#[test]
fn keys_of_slc_flash_need_it() {
    let registry = crate::registry();
    let of = |text: &str| -> Vec<String> {
        let settings = read(text, &[PARAMS], &registry).expect("valid");
        without_effect(&settings, PARAMS, &registry, "").into_iter().map(|(key, _)| key).collect()
    };
    let keys =
        "slc_read_time = \"20us\"\nslc_endurance = 9\nthreshold_every = 5\nidle_keep = 0.5\n";
    assert_eq!(of(keys), ["idle_keep"]);
    let none = format!("{keys}slc_size = \"0B\"\nidle_after = \"1ms\"\n");
    let all = ["idle_after", "idle_keep", "slc_endurance", "slc_read_time", "threshold_every"];
    assert_eq!(of(&none), all);
    let dense = of(&format!("{none}density_size = \"1GiB\""));
    assert_eq!(dense, ["idle_after", "idle_keep", "slc_endurance", "threshold_every"]);
}

#[test]
fn every_variant_returns_what_was_written() {
    let registry = crate::registry();
    for (name, settings) in variants(&registry) {
        let erases: u64 = (0..8).map(|seed| run(&name, &settings, &registry, seed)).sum();
        assert!(erases > 1_000, "{name}: only {erases} erases");
    }
}

#[test]
fn a_rebuild_finds_the_tables_as_they_were() {
    let (mut rebuilt, mut on_slc) = (0, 0);
    for seed in 0..20 {
        let mut device = small_device();
        let ftl = &mut device.translation.ftl;
        let mut stream = Stream::new(seed, "rebuild");
        for _ in 0..400 {
            let first = stream.below(SECTORS) as u32;
            let longest = if stream.chance(0.7) { 4 } else { 40 };
            let count = 1 + stream.below(longest.min(SECTORS - u64::from(first)));
            ftl.write(first, count as u32, &[]).expect("it is sound");
        }
        let tables = |ftl: &HybridFtl| {
            let mlc = &ftl.mlc;
            let chains: Vec<Vec<u32>> =
                (0..20).map(|logical| mlc.chain(logical).collect()).collect();
            (
                mlc.page_map.clone(),
                chains,
                mlc.last_log.clone(),
                mlc.in_order.clone(),
                mlc.free.len(),
            )
        };
        let before = tables(ftl);
        let hash = ftl.slc.as_ref().map(|slc| slc.log.hash.entries());
        let free = ftl.mlc.free.len();
        ftl.operations.clear();
        ftl.rebuild().expect("everything is found");
        let hash_now = ftl.slc.as_ref().map(|slc| slc.log.hash.entries());
        if ftl.operations.batches().iter().any(|batch| batch.command == Command::Program) {
            // Some sectors had no bucket in the order of recovery, and moved.
            continue;
        }
        on_slc += hash.as_ref().map_or(0, Vec::len);
        assert_eq!((hash_now, ftl.mlc.free.len()), (hash, free));
        assert!(tables(ftl) == before, "seed {seed}");
        rebuilt += 1;
    }
    assert!(rebuilt > 5 && on_slc > 20, "{rebuilt} rebuilt, {on_slc} sectors on SLC");
}

#[test]
fn a_worn_out_device_reports_it() {
    let registry = crate::registry();
    for (name, settings) in variants(&registry) {
        let settings = settings
            .and("mlc_endurance", Value::Count(6))
            .and("slc_endurance", Value::Count(40))
            .and("throttle", Value::Flag(name.len() % 2 == 0));
        let mut device = build(&settings, &registry).expect("a device");
        let ftl = &mut device.translation.ftl;
        ftl.verify();
        let sectors = ftl.mlc.page_map.len() as u64 * u64::from(ftl.mlc.sectors_per_page);
        let mut stream = Stream::new(1, &name);
        let mut map = vec![0; sectors as usize];
        let why = (1..2_000_000u64).find_map(|step| {
            ftl.operations.clear();
            let first = stream.below(sectors) as u32;
            let count = (1 + stream.below(9)).min(sectors - u64::from(first));
            let done = ftl.write(first, count as u32, &vec![step; count as usize]).err();
            if done.is_none() {
                map[first as usize..first as usize + count as usize].fill(step);
            }
            done
        });
        let why = why.unwrap_or_else(|| panic!("{name} did not wear out")).to_string();
        assert!(why.contains("worn out"), "{name}: {why}");
        assert_eq!(violation(ftl), None, "{name}");
        assert!(map.iter().any(|step| *step > 0));
    }
}

/// The values recorded of `statistic`.
fn recorded(ftl: &HybridFtl, statistic: Statistic) -> Vec<u64> {
    let all = ftl.operations.statistics().iter();
    all.filter(|(other, _)| *other == statistic).map(|(_, value)| *value).collect()
}

#[test]
fn writes_are_directed_as_in_figure_2() {
    let mut device = small_device();
    let ftl = &mut device.translation.ftl;
    let check = |ftl: &mut HybridFtl, first, sectors, slc: &[u64], mlc: &[u64]| {
        ftl.operations.clear();
        ftl.write(first, sectors, &[]).expect("it is sound");
        assert_eq!(recorded(ftl, Statistic::SlcWrite), slc, "{sectors} at {first}");
        assert_eq!(recorded(ftl, Statistic::MlcWrite), mlc, "{sectors} at {first}");
    };
    // Larger than the threshold of 4: cold.
    check(ftl, 0, 5, &[], &[5]);
    check(ftl, 100, 4, &[4], &[]);
    let in_log = |ftl: &HybridFtl, sector| {
        ftl.slc.as_ref().expect("it has one").log.hash.slot(sector).is_some()
    };
    assert!(in_log(ftl, 100) && !in_log(ftl, 104));
    // A large write over it removes the entries.
    check(ftl, 96, 8, &[], &[8]);
    assert!(!in_log(ftl, 100));
    // A cold write of part of a page reads the rest of it.
    let partial =
        ftl.operations.batches().iter().filter(|batch| batch.command == Command::Read).count();
    assert_eq!(partial, 0, "whole pages need no read");
    check(ftl, 201, 5, &[], &[5]);
    let reads: u32 = ftl
        .operations
        .batches()
        .iter()
        .filter(|batch| batch.command == Command::Read && batch.medium == Medium::Mlc)
        .map(|batch| batch.count)
        .sum();
    assert_eq!(reads, 2, "the other sectors of two pages");
}

#[test]
fn the_throttle_rejects_unknown_sectors_and_accepts_them_the_second_time() {
    let mut device = small_device();
    let ftl = &mut device.translation.ftl;
    // The SLC flash is worn more than twenty times as much as the MLC flash.
    let slc = ftl.slc.as_mut().expect("it has one");
    slc.log.erases = 1_000;
    let mut write = |first| {
        ftl.operations.clear();
        ftl.write(first, 2, &[]).expect("it is sound");
        (recorded(ftl, Statistic::SlcWrite).len(), recorded(ftl, Statistic::ThrottleReject).len())
    };
    assert_eq!(write(40), (0, 1), "unknown: rejected, with a virtual entry");
    assert_eq!(write(40), (1, 0), "virtual entry: accepted");
    assert_eq!(write(40), (1, 0), "regular entry: accepted");
    assert_eq!(write(41), (0, 1), "one of two is unknown");
}

#[test]
fn while_writes_are_rejected_nothing_is_copied_to_the_head() {
    for (worn, kept) in [(0, 4), (1_000, 0)] {
        let mut device = small_device();
        let ftl = &mut device.translation.ftl;
        // A block of four pages, whose chains have no log, and one page of the next.
        (0..5).for_each(|at| ftl.write(at * 32, 2, &[]).expect("hot"));
        ftl.slc.as_mut().expect("it has one").log.erases += worn;
        ftl.operations.clear();
        ftl.clean_tail(false).expect("it is sound");
        assert_eq!(recorded(ftl, Statistic::TailValid), [4]);
        assert_eq!(recorded(ftl, Statistic::TailKept), [kept], "{worn} erases");
        ftl.audit().expect("sound");
    }
}

#[test]
fn the_log_is_no_longer_than_its_parameter() {
    // Sixteen blocks of data, on eight.
    let longest = [2, 5].map(|k: u32| {
        let mut device = small_device_with("log_blocks_max", Value::Count(u64::from(k)));
        let ftl = &mut device.translation.ftl;
        let used = (0..64).map(|at| {
            ftl.write(at % 4 * 8, 2, &[]).expect("hot");
            let ring = ftl.slc.as_ref().expect("it has one").log.ring;
            assert!(ring.used <= k && ring.k == k, "{ring:?}");
            ring.used
        });
        let longest = used.max();
        ftl.audit().expect("sound");
        longest
    });
    assert!(longest[0] < longest[1], "{longest:?}");
}

#[test]
fn a_scan_for_a_fold_is_not_counted_for_a_write() {
    let mut device = small_device_with("slc_size", Value::Bytes(0));
    let ftl = &mut device.translation.ftl;
    // A first log needs no scan. There is space for five logs, and three mappings are cached.
    (0..20).for_each(|logical| ftl.write(logical * 32, 4, &[]).expect("sound"));
    assert_eq!(recorded(ftl, Statistic::Scan), []);
    assert_eq!(recorded(ftl, Statistic::GcScan), [1; 15]);
    ftl.operations.clear();
    // The least recently written chain with a log: the write misses and scans one page.
    ftl.write(15 * 32, 4, &[]).expect("sound");
    assert_eq!(
        (recorded(ftl, Statistic::Scan), recorded(ftl, Statistic::GcScan)),
        (vec![1], vec![])
    );
}

#[test]
fn moving_a_page_from_the_log_looks_up_its_chain() {
    let mut device = small_device_with("mapping_cache", Value::Count(1));
    let ftl = &mut device.translation.ftl;
    // Chain 0 has a log of two pages, and its mapping is no longer cached.
    ftl.write(8, 8, &[]).expect("cold");
    ftl.write(32, 8, &[]).expect("cold");
    // A page of it on the SLC flash, whose log advances.
    ftl.write(4, 4, &[]).expect("hot");
    (5..6).for_each(|at| ftl.write(at * 32, 4, &[]).expect("hot"));
    ftl.operations.clear();
    ftl.clean_tail(false).expect("it is sound");
    assert_eq!(recorded(ftl, Statistic::Scan), [2], "all of the log was scanned");
}

#[test]
fn a_fold_includes_slc_data_and_leaves_virtual_entries() {
    let mut device = small_device();
    let ftl = &mut device.translation.ftl;
    ftl.write(0, 8, &[]).expect("a log");
    ftl.write(4, 2, &[]).expect("hot");
    ftl.operations.clear();
    ftl.fold(0).expect("it is sound");
    assert_eq!(recorded(ftl, Statistic::FoldErases), [2]);
    let log = &ftl.slc.as_ref().expect("it has one").log;
    let is_known = |sector| log.hash.get(sector).is_some();
    assert!(log.hash.slot(4).is_none() && is_known(4) && is_known(5) && !is_known(6));
    assert!(!ftl.mlc.has_log(0));
    ftl.audit().expect("sound");
}

#[test]
fn a_log_filled_in_order_is_switched() {
    let mut device = small_device();
    let ftl = &mut device.translation.ftl;
    ftl.write(32, 32, &[]).expect("a whole block");
    let copies =
        ftl.operations.batches().iter().filter(|batch| batch.command == Command::Read).count();
    assert_eq!((recorded(ftl, Statistic::Switch), copies), (vec![1], 0));
    assert!(!ftl.mlc.has_log(1));
    ftl.audit().expect("sound");
}

#[test]
fn a_chain_is_folded_once_all_its_logs_are_full() {
    let registry = crate::registry();
    for logs_max in [1, 3] {
        let settings = small(&registry).and("slc_size", Value::Bytes(0));
        let settings = settings.and("logs_max", Value::Count(logs_max));
        let mut device = build(&settings, &registry).expect("a device");
        let ftl = &mut device.translation.ftl;
        // The last of the 8 pages of a block, so that no log is in order.
        let mut logs = |writes: u64| {
            (0..writes).for_each(|_| ftl.write(28, 4, &[]).expect("a page"));
            ftl.mlc.logs(0).count() as u64
        };
        assert_eq!(logs(8 * logs_max), logs_max);
        assert_eq!(logs(1), 1, "{logs_max} logs are folded for the next page");
    }
}

#[test]
fn a_buffer_agrees_with_a_map() {
    for seed in 0..20 {
        let mut device = small_device_with("nvram", Value::Bytes(6 * 2048));
        device.translation.ftl.verify();
        let SlcMlcTranslation { ftl, nvram, .. } = &mut device.translation;
        let buffer = nvram.as_mut().expect("it has one");
        let mut stream = Stream::new(seed, "buffer");
        let mut map = vec![(0u64, false); SECTORS as usize];
        for step in 1..=1_000u64 {
            ftl.operations.clear();
            let bound = if stream.chance(0.6) { 40 } else { SECTORS };
            let first = stream.below(bound);
            let longest = if stream.chance(0.1) { SECTORS } else { 6 };
            let count = (1 + stream.below(longest)).min(SECTORS - first);
            let range = first as usize..(first + count) as usize;
            match stream.below(10) {
                0 => {
                    buffer.trim(first as u32, count as u32);
                    ftl.trim(first as u32, count as u32);
                    map[range].iter_mut().for_each(|(_, trimmed)| *trimmed = true);
                }
                1..6 => {
                    let versions = vec![step; count as usize];
                    buffer.write(ftl, first as u32, count as u32, &versions).expect("it is sound");
                    map[range].fill((step, false));
                }
                _ => {
                    let mut got = vec![u64::MAX; count as usize];
                    buffer.read(ftl, first as u32, count as u32, &mut got).expect("it is sound");
                    check_read(&got, &map[range], &format!("seed {seed}, step {step}"));
                }
            }
        }
        ftl.audit().expect("sound");
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let registry = crate::registry();
    let check = |name, value, says: &str| {
        let problems = match build(&small(&registry).and(name, value), &registry) {
            Ok(_) => panic!("{name} was accepted"),
            Err(problems) => problems,
        };
        let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert!(text.contains(says), "{text}");
    };
    check("capacity", Value::Bytes(26 * 8 * 2048), "mlc_size");
    check("capacity", Value::Bytes(100), "at least one MLC block");
    check("capacity", Value::Bytes(u64::MAX), "mlc_size");
    check("mlc_size", Value::Bytes(u64::MAX), "mlc_size");
    check("slc_size", Value::Bytes(u64::MAX), "slc_size");
    check("slc_size", Value::Bytes(4096), "too few for a log");
    check("mlc_page_size", Value::Bytes(1000), "multiple of 512");
    check("slc_page_size", Value::Bytes(0), "multiple of 512");
    check("density_size", Value::Bytes(u64::MAX), "density control");
    check("nvram", Value::Bytes(u64::MAX), "nvram");
    check("log_blocks_max", Value::Count(6), "must be at most 5");
}
