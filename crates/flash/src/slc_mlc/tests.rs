//! The device without a clock against a map of what was written, after everything that is done
//! and after power failures.

use super::build_slc_mlc;
use super::device::SlcMlcSsd;
use super::params::PARAMS;
use super::work::{Act, Medium, Number};
use crate::defaults;
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Problem, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Component, Stream};

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

const SECTORS: u64 = 20 * 8 * 4;

/// Every variant that changes where data go.
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
    let level = defaults::plug("wear-levelling", "dual-pool", registry);
    let Value::Entry(mut level) = level else { panic!("a plug") };
    level.settings.set("threshold", Value::Count(2));
    all.push(("eager levelling", with("wear_levelling", Value::Entry(level))));
    all.into_iter().map(|(name, settings)| (name.to_owned(), settings)).collect()
}

/// Random reads, writes, trims, idle times and power failures against a map.
fn run(name: &str, settings: &Settings, registry: &Registry, seed: u64) -> u64 {
    let mut device = build(settings, registry).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    assert_eq!(device.capacity() % 4, 0);
    let store = device.store();
    store.verify();
    let mut stream = Stream::new(seed, name);
    let sectors = SECTORS.min(store.mlc.map.len() as u64 * u64::from(store.mlc.sectors));
    // (stamp, trimmed since)
    let mut map = vec![(0u64, false); sectors as usize];
    let hot = 1 + stream.below(60);
    for step in 1..=2_500u64 {
        store.work.clear();
        let bound = if stream.chance(0.6) { hot } else { sectors };
        let first = stream.below(bound);
        let longest = if stream.chance(0.7) { 4 } else { 40 };
        let count = (1 + stream.below(longest)).min(sectors - first);
        let range = first as usize..(first + count) as usize;
        match stream.below(40) {
            0 => {
                store.trim(first as u32, count as u32);
                map[range].iter_mut().for_each(|(_, trimmed)| *trimmed = true);
            }
            1 => drop(store.idle().unwrap_or_else(|why| panic!("{name}: {why}"))),
            2 if stream.chance(0.5) => {
                store.rebuild().unwrap_or_else(|why| panic!("{name}, step {step}: {why}"));
            }
            3..12 => {
                let mut got = vec![u64::MAX; count as usize];
                store.read(first as u32, count as u32, &mut got).expect("it is sound");
                for (sector, (got, (stamp, trimmed))) in (first..).zip(got.iter().zip(&map[range]))
                {
                    let right = got == stamp || (*trimmed && *got == 0);
                    assert!(right, "{name}, step {step}, sector {sector}: {got} for {stamp}");
                }
            }
            _ => {
                let stamps = vec![step; count as usize];
                let done = store.write(first as u32, count as u32, &stamps);
                done.unwrap_or_else(|why| panic!("{name}, step {step}: {why}"));
                map[range].fill((step, false));
            }
        }
        assert_eq!(store.violation(), None, "{name}, step {step}");
        if step % 50 == 0 {
            store.audit().unwrap_or_else(|why| panic!("{name}, step {step}: {why}"));
        }
    }
    store.mlc.erases + store.cache.as_ref().map_or(0, |cache| cache.log.erases)
}

#[test]
fn every_variant_returns_what_was_written() {
    let registry = defaults::registry();
    for (name, settings) in variants(&registry) {
        let erases: u64 = (0..8).map(|seed| run(&name, &settings, &registry, seed)).sum();
        assert!(erases > 1_000, "{name}: only {erases} erases");
    }
}

#[test]
fn a_rebuild_finds_the_tables_as_they_were() {
    let registry = defaults::registry();
    let (mut rebuilt, mut on_slc) = (0, 0);
    for seed in 0..20 {
        let mut device = build(&small(&registry), &registry).expect("a device");
        let store = device.store();
        let mut stream = Stream::new(seed, "rebuild");
        for _ in 0..400 {
            let first = stream.below(SECTORS) as u32;
            let longest = if stream.chance(0.7) { 4 } else { 40 };
            let count = 1 + stream.below(longest.min(SECTORS - u64::from(first)));
            store.write(first, count as u32, &[]).expect("it is sound");
        }
        let tables = |store: &super::store::Store| {
            let mlc = &store.mlc;
            let chains: Vec<Vec<u32>> =
                (0..20).map(|logical| mlc.chain(logical).collect()).collect();
            (mlc.map.clone(), chains, mlc.last.clone(), mlc.in_order.clone(), mlc.spares.len())
        };
        let before = tables(store);
        let hash = store.cache.as_ref().map(|cache| cache.log.hash.entries());
        let spares = store.mlc.spares.len();
        store.work.clear();
        store.rebuild().expect("everything is found");
        let hash_now = store.cache.as_ref().map(|cache| cache.log.hash.entries());
        if store.work.runs().iter().any(|run| run.act == Act::Program) {
            // Some sectors had no bucket in the order they were found in, and moved.
            continue;
        }
        on_slc += hash.as_ref().map_or(0, Vec::len);
        assert_eq!((hash_now, store.mlc.spares.len()), (hash, spares));
        assert!(tables(store) == before, "seed {seed}");
        rebuilt += 1;
    }
    assert!(rebuilt > 5 && on_slc > 20, "{rebuilt} rebuilt, {on_slc} sectors on SLC");
}

#[test]
fn it_wears_out_with_a_word() {
    let registry = defaults::registry();
    for (name, settings) in variants(&registry) {
        let settings = settings
            .and("mlc_endurance", Value::Count(6))
            .and("slc_endurance", Value::Count(40))
            .and("throttle", Value::Flag(name.len() % 2 == 0));
        let mut device = build(&settings, &registry).expect("a device");
        let store = device.store();
        store.verify();
        let sectors = store.mlc.map.len() as u64 * u64::from(store.mlc.sectors);
        let mut stream = Stream::new(1, &name);
        let mut map = vec![0; sectors as usize];
        let why = (1..2_000_000u64).find_map(|step| {
            store.work.clear();
            let first = stream.below(sectors) as u32;
            let count = (1 + stream.below(9)).min(sectors - u64::from(first));
            let done = store.write(first, count as u32, &vec![step; count as usize]).err();
            if done.is_none() {
                map[first as usize..first as usize + count as usize].fill(step);
            }
            done
        });
        let why = why.unwrap_or_else(|| panic!("{name} did not wear out")).to_string();
        assert!(why.contains("worn out"), "{name}: {why}");
        assert_eq!(store.violation(), None, "{name}");
        assert!(map.iter().any(|step| *step > 0));
    }
}

/// The numbers called `number` that `act` made the device tell.
fn told(store: &super::store::Store, number: Number) -> Vec<u64> {
    let numbers = store.work.numbers().iter();
    numbers.filter(|(other, _)| *other == number).map(|(_, value)| *value).collect()
}

#[test]
fn writes_go_where_figure_2_says() {
    let registry = defaults::registry();
    let mut device = build(&small(&registry), &registry).expect("a device");
    let store = device.store();
    let check = |store: &mut super::store::Store, first, sectors, slc: &[u64], mlc: &[u64]| {
        store.work.clear();
        store.write(first, sectors, &[]).expect("it is sound");
        assert_eq!(told(store, Number::SlcWrite), slc, "{sectors} at {first}");
        assert_eq!(told(store, Number::MlcWrite), mlc, "{sectors} at {first}");
    };
    // Larger than the threshold of 4: cold.
    check(store, 0, 5, &[], &[5]);
    check(store, 100, 4, &[4], &[]);
    let in_log = |store: &super::store::Store, sector| {
        store.cache.as_ref().expect("it has one").log.hash.place(sector).is_some()
    };
    assert!(in_log(store, 100) && !in_log(store, 104));
    // A large write over it: the entries go first.
    check(store, 96, 8, &[], &[8]);
    assert!(!in_log(store, 100));
    // A cold write of part of a page reads the rest of it.
    let partial = store.work.runs().iter().filter(|run| run.act == Act::Read).count();
    assert_eq!(partial, 0, "whole pages need no read");
    check(store, 201, 5, &[], &[5]);
    let reads: u32 = store
        .work
        .runs()
        .iter()
        .filter(|run| run.act == Act::Read && run.medium == Medium::Mlc)
        .map(|run| run.count)
        .sum();
    assert_eq!(reads, 2, "the heads of two pages");
}

#[test]
fn the_throttle_refuses_what_it_does_not_know_and_takes_it_the_second_time() {
    let registry = defaults::registry();
    let mut device = build(&small(&registry), &registry).expect("a device");
    let store = device.store();
    // As if the SLC flash were worn twenty times as much as the MLC flash, and more.
    let cache = store.cache.as_mut().expect("it has one");
    cache.log.erases = 1_000;
    let mut write = |first| {
        store.work.clear();
        store.write(first, 2, &[]).expect("it is sound");
        (told(store, Number::SlcWrite).len(), told(store, Number::ThrottleReject).len())
    };
    assert_eq!(write(40), (0, 1), "unknown: refused, but marked");
    assert_eq!(write(40), (1, 0), "marked: accepted");
    assert_eq!(write(40), (1, 0), "there: accepted");
    assert_eq!(write(41), (0, 1), "one of two is not known");
}

#[test]
fn while_writes_are_refused_nothing_goes_back_to_the_head() {
    let registry = defaults::registry();
    for (worn, kept) in [(0, 4), (1_000, 0)] {
        let mut device = build(&small(&registry), &registry).expect("a device");
        let store = device.store();
        // A block of four pages, whose chains have no log, and one page of the next.
        (0..5).for_each(|at| store.write(at * 32, 2, &[]).expect("hot"));
        store.cache.as_mut().expect("it has one").log.erases += worn;
        store.work.clear();
        store.clean_tail(false).expect("it is sound");
        assert_eq!(told(store, Number::TailValid), [4]);
        assert_eq!(told(store, Number::TailKept), [kept], "{worn} erases");
        store.audit().expect("sound");
    }
}

#[test]
fn a_scan_for_a_fold_is_no_miss_of_a_write() {
    let registry = defaults::registry();
    let settings = small(&registry).and("slc_size", Value::Bytes(0));
    let mut device = build(&settings, &registry).expect("a device");
    let store = device.store();
    // Chains get their first log, for which nothing is scanned; five logs have room, and the cache
    // knows three chains.
    (0..20).for_each(|logical| store.write(logical * 32, 4, &[]).expect("sound"));
    assert_eq!(told(store, Number::Scan), []);
    assert_eq!(told(store, Number::GcScan), [1; 15]);
    store.work.clear();
    // The chain that was written to first of those with a log: the write misses, for a page.
    store.write(15 * 32, 4, &[]).expect("sound");
    assert_eq!((told(store, Number::Scan), told(store, Number::GcScan)), (vec![1], vec![]));
}

#[test]
fn what_leaves_the_log_is_a_write_to_the_chains_like_any_other() {
    let registry = defaults::registry();
    let settings = small(&registry).and("mapping_cache", Value::Count(1));
    let mut device = build(&settings, &registry).expect("a device");
    let store = device.store();
    // Chain 0 has a log of two pages, and is not cached any more.
    store.write(8, 8, &[]).expect("cold");
    store.write(32, 8, &[]).expect("cold");
    // A page of it on the SLC flash, whose log moves on.
    store.write(4, 4, &[]).expect("hot");
    (5..6).for_each(|at| store.write(at * 32, 4, &[]).expect("hot"));
    store.work.clear();
    store.clean_tail(false).expect("it is sound");
    assert_eq!(told(store, Number::Scan), [2], "all of the log was scanned");
}

#[test]
fn folding_takes_slc_data_along_and_marks_them() {
    let registry = defaults::registry();
    let mut device = build(&small(&registry), &registry).expect("a device");
    let store = device.store();
    store.write(0, 8, &[]).expect("a log");
    store.write(4, 2, &[]).expect("hot");
    store.work.clear();
    store.fold(0).expect("it is sound");
    assert_eq!(told(store, Number::FoldErases), [2]);
    let log = &store.cache.as_ref().expect("it has one").log;
    assert!(log.hash.place(4).is_none() && log.knows(4) && log.knows(5) && !log.knows(6));
    assert!(!store.mlc.has_log(0));
    store.audit().expect("sound");
}

#[test]
fn a_log_filled_in_order_is_switched() {
    let registry = defaults::registry();
    let mut device = build(&small(&registry), &registry).expect("a device");
    let store = device.store();
    store.write(32, 32, &[]).expect("a whole block");
    let copies = store.work.runs().iter().filter(|run| run.act == Act::Read).count();
    assert_eq!((told(store, Number::Switch), copies), (vec![1], 0));
    assert!(!store.mlc.has_log(1));
    store.audit().expect("sound");
}

#[test]
fn a_buffer_in_front_agrees_with_a_map() {
    let registry = defaults::registry();
    let settings = small(&registry).and("nvram", Value::Bytes(6 * 2048));
    for seed in 0..20 {
        let mut device = build(&settings, &registry).expect("a device");
        device.store().verify();
        let (store, buffer) = device.remembered_mut();
        let buffer = buffer.expect("it has one");
        let mut stream = Stream::new(seed, "buffer");
        let mut map = vec![(0u64, false); SECTORS as usize];
        for step in 1..=1_000u64 {
            store.work.clear();
            let bound = if stream.chance(0.6) { 40 } else { SECTORS };
            let first = stream.below(bound);
            let longest = if stream.chance(0.1) { SECTORS } else { 6 };
            let count = (1 + stream.below(longest)).min(SECTORS - first);
            let range = first as usize..(first + count) as usize;
            match stream.below(10) {
                0 => {
                    buffer.trim(first as u32, count as u32);
                    store.trim(first as u32, count as u32);
                    map[range].iter_mut().for_each(|(_, trimmed)| *trimmed = true);
                }
                1..6 => {
                    let stamps = vec![step; count as usize];
                    buffer.write(store, first as u32, count as u32, &stamps).expect("it is sound");
                    map[range].fill((step, false));
                }
                _ => {
                    let mut got = vec![u64::MAX; count as usize];
                    buffer.read(store, first as u32, count as u32, &mut got).expect("it is sound");
                    let pairs = got.iter().zip(&map[range]);
                    for (sector, (got, (stamp, trimmed))) in (first..).zip(pairs) {
                        let right = got == stamp || (*trimmed && *got == 0);
                        assert!(right, "seed {seed}, step {step}, {sector}: {got} for {stamp}");
                    }
                }
            }
        }
        store.audit().expect("sound");
    }
}

#[test]
fn nonsense_is_refused() {
    let registry = defaults::registry();
    let check = |name, value, says: &str| {
        let problems = match build(&small(&registry).and(name, value), &registry) {
            Ok(_) => panic!("{name} was taken"),
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
    check("slc_size", Value::Bytes(4096), "make no log");
    check("mlc_page_size", Value::Bytes(1000), "multiple of 512");
    check("slc_page_size", Value::Bytes(0), "multiple of 512");
    check("density_size", Value::Bytes(u64::MAX), "density control");
    check("nvram", Value::Bytes(u64::MAX), "nvram");
}
