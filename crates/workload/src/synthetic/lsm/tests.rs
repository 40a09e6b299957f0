use super::*;
use crate::testing::{registry, settings};
use std::collections::HashMap;

const CAPACITY_SECTORS: u64 = 1 << 18;

fn store(text: &str) -> Store {
    let registry = registry();
    let settings = settings(Parameters::PARAMS, text);
    let input = GeneratorInput {
        settings: &settings,
        registry: &registry,
        seed: 1,
        path: "workload",
        capacity_sectors: CAPACITY_SECTORS,
        may_be_endless: true,
    };
    let params = Parameters::from_settings(&settings);
    let mut problems = Vec::new();
    let mut store = params.store(&input, &mut problems).unwrap_or_else(|| panic!("{problems:?}"));
    if params.loaded {
        store.load(params.keys as u32).expect("the store fits");
    }
    store.advance();
    store
}

/// A small store of 16 MiB with files of 1 MiB.
fn small(style: &str) -> Store {
    store(&format!(
        "keys = 16384\nentry = \"1KiB\"\nmemtable = \"1MiB\"\nfile = \"1MiB\"\nlog = \"64KiB\"\n\
         compaction = {style}\nlifetimes = true"
    ))
}

const STYLES: [&str; 3] = [
    "{ kind = \"leveled\", base = \"1MiB\", levels = 3 }",
    "{ kind = \"tiered\", runs = 4 }",
    "{ kind = \"fifo\", size = \"12MiB\", merge_files = 4, merge_bytes = \"4MiB\" }",
];

#[test]
fn files_are_written_once_read_whole_and_trimmed_before_their_space_is_used_again() {
    for style in STYLES {
        let mut store = small(style);
        let mut written = vec![false; CAPACITY_SECTORS as usize];
        let (mut reads, mut trims) = (0, 0);
        for _ in 0..20_000 {
            let Request { op, lba, sectors, .. } = store.draw();
            assert!(store.end().is_none(), "{style}");
            for sector in &mut written[lba.0 as usize..][..sectors as usize] {
                assert_eq!(*sector, op != Op::Write, "{style}: {op:?} of {lba:?}");
                *sector = op != Op::Trim;
            }
            reads += u64::from(op == Op::Read);
            trims += u64::from(op == Op::Trim);
        }
        assert!(reads > 100 && trims > 100, "{style}: {reads} reads, {trims} trims");
    }
}

#[test]
fn every_updated_key_is_in_a_file_and_runs_are_sorted() {
    for style in &STYLES[..2] {
        let mut store = small(style);
        for _ in 0..20_000 {
            store.draw();
        }
        let mut keys: Vec<u32> = Vec::new();
        for run in &store.runs {
            let of_run: Vec<u32> = run.iter().flat_map(|file| file.keys.clone()).collect();
            assert!(of_run.is_sorted_by(|one, other| one < other), "{style}");
            keys.extend(of_run);
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 16_384, "{style}: keys are lost");
    }
}

#[test]
fn writes_have_a_handle_by_lifetime() {
    for (style, handles) in STYLES.iter().zip([1..=5, 1..=4, 1..=4]) {
        let mut store = small(style);
        let mut seen: HashMap<u8, u64> = HashMap::new();
        for _ in 0..20_000 {
            let request = store.draw();
            if request.op == Op::Write {
                *seen.entry(request.flags.handle()).or_default() += u64::from(request.sectors);
            }
        }
        let mut all: Vec<u8> = seen.keys().copied().collect();
        all.sort_unstable();
        assert!(all.iter().all(|it| handles.contains(it)), "{style}: {seen:?}");
        assert!(all.len() >= 3, "{style}: {seen:?}");
    }
}

#[test]
fn a_store_that_outgrows_its_span_ends_with_an_error() {
    let mut store = store("keys = 100000\nentry = \"1KiB\"\ncompaction = \"tiered\"");
    while store.end().is_none() {
        store.draw();
    }
    let end = store.end().expect("ended").expect_err("no space");
    assert!(end.contains("`span`"), "{end}");
    let bytes: u64 = end.split(' ').find_map(|word| word.parse().ok()).expect("a size");
    assert!(bytes >= 100_000 << 10, "{end}");
}

#[test]
fn a_fifo_store_gives_up_its_load_file_by_file() {
    let mut store = small(STYLES[2]);
    assert_eq!(store.runs.len(), 16);
    while store.runs.len() == 16 {
        store.draw();
    }
    let left: u64 = store.runs.iter().map(entries).sum();
    assert!((11 << 10..=12 << 10).contains(&left), "{left} entries of 12 MiB");
}

#[test]
fn a_sorted_load_is_written_once_and_keys_in_order_are_moved() {
    let mut store = small(STYLES[0]);
    assert_eq!(store.application_bytes, 0);
    for _ in 0..store.pending.len() - 1 {
        store.draw();
    }
    let last = store.pending[0];
    assert_eq!(store.application_bytes + last.bytes(), 16_384 << 10, "the load, and nothing else");
    let mut store = small(STYLES[0]);
    let place = store.runs.len() - 2;
    let file = File { keys: vec![20_000], extents: vec![99] };
    store.runs[place].push(file);
    store.pending.clear();
    store.apply(Step::Merge { from: vec![(place, 0..1)], to: place + 1 }).expect("a move");
    assert!(store.pending.is_empty(), "no file was written");
    assert_eq!(store.runs[place + 1].last().expect("a file").keys, [20_000]);
}
