//! Hand-worked cases of the log-block scheme and of BAST.

use super::*;
use crate::ftl::bench::{Bench, Operation, copies, erases};
use crate::ftl::{FtlEntry, bast};
use crate::ops::OpKind::{Copy, Erase, Program, Read};
use ProgramOrder::Sequential;
use hybridsim_config::param::Value;

/// Eight blocks of four pages: data blocks 0, 1 and 2 (12 pages), the rest log blocks.
fn bench(entry: &FtlEntry, params: &[(&'static str, Value)]) -> Bench {
    Bench::new(entry, Sequential, (8, 4), 12, params)
}

fn check(entry: &FtlEntry, pages: &[u32], expected: &[Operation]) {
    let mut bench = bench(entry, &[]);
    let (last, before) = pages.split_last().expect("a page at least");
    bench.write_all(before);
    assert_eq!(bench.write(*last), expected, "{}, {pages:?}", entry.description.name);
    bench.audit();
}

#[test]
fn every_write_is_appended_to_the_log_block() {
    check(&ENTRY, &[2], &[(Program, 12)]);
    check(&ENTRY, &[2, 0], &[(Program, 13)]);
    check(&ENTRY, &[2, 2, 2], &[(Program, 14)]);
    check(&ENTRY, &[2, 5], &[(Program, 16)]);
}

#[test]
fn a_log_block_in_order_is_switched() {
    check(&ENTRY, &[0, 1, 2, 3], &[(Program, 15), (Erase, 0)]);
    check(&ENTRY, &[4, 8, 5, 6, 7], &[(Program, 15), (Erase, 1)]);
}

#[test]
fn any_other_full_log_block_is_merged_with_its_data_block() {
    // The log block is block 3; the merge copies to block 4.
    let merged = [(Program, 15), (Copy, 16), (Copy, 17), (Copy, 18), (Erase, 0), (Erase, 3)];
    check(&ENTRY, &[1, 0, 2, 0], &merged);
    // Pages 0 to 3 are in the data block, 0 is overwritten repeatedly.
    let merged =
        [(Program, 19), (Copy, 20), (Copy, 21), (Copy, 22), (Copy, 23), (Erase, 3), (Erase, 4)];
    check(&ENTRY, &[0, 1, 2, 3, 0, 0, 0, 0], &merged);
}

#[test]
fn a_log_block_may_be_merged_before_it_is_needed() {
    let write = |when: &str| {
        let params =
            [("log_blocks", Value::Count(2)), ("merge_when", Value::Text(when.to_owned()))];
        let mut bench = bench(&ENTRY, &params);
        // One of two log blocks is in use, so fewer than two blocks are free.
        bench.write_all(&[0]);
        let did = bench.write(1);
        bench.audit();
        did
    };
    assert_eq!(write("needed"), [(Program, 13)], "it has space");
    let short = write("short");
    assert_eq!((copies(&short), erases(&short)), (1, 2), "{short:?}: merged for one page");
}

#[test]
fn reads_prefer_the_log_block_to_the_data_block() {
    let mut bench = bench(&ENTRY, &[]);
    bench.write_all(&[0, 1, 2, 3, 2, 2]);
    assert_eq!(bench.read(2), [(Read, 17)]);
    assert_eq!(bench.read(1), [(Read, 13)]);
    assert_eq!(bench.read(4), []);
}

#[test]
fn bast_writes_in_place_first() {
    check(&bast::ENTRY, &[0], &[(Program, 0)]);
    check(&bast::ENTRY, &[0, 1], &[(Program, 1)]);
    check(&bast::ENTRY, &[0, 1, 1], &[(Program, 12)]);
    check(&bast::ENTRY, &[2], &[(Program, 12)]);
    // With a log block, erased pages of the data block are no longer used.
    check(&bast::ENTRY, &[0, 0, 1], &[(Program, 13)]);
    // The data block was never programmed and is not erased.
    check(&bast::ENTRY, &[1, 0, 2, 0], &{
        [(Program, 15), (Copy, 16), (Copy, 17), (Copy, 18), (Erase, 3)]
    });
}

#[test]
fn bast_completes_a_log_block_that_begins_in_order() {
    let mut bench = bench(&bast::ENTRY, &[("log_blocks", Value::Count(2))]);
    bench.write_all(&[0, 1, 2, 3, 4, 0, 1]);
    // Data block 0, log block 3: pages 2 and 3 are copied to it, and no other.
    let did = bench.write(4);
    assert_eq!(did[..3], [(Copy, 14), (Copy, 15), (Erase, 0)]);
    bench.audit();
}

/// The block that the merge of a victim erases last: the log block.
fn merged(victim: &str) -> (u32, usize) {
    let params = [("log_blocks", Value::Count(3)), ("victim", Value::Text(victim.to_owned()))];
    let mut bench = bench(&ENTRY, &params);
    // Log blocks 3 (pages 0, 0) and 4 (4, 4, 4); that of block 0 is older and was written last.
    bench.write_all(&[0, 4, 4, 4, 0]);
    let did = bench.write(8);
    bench.audit();
    let erased = did.iter().filter(|(kind, _)| *kind == Erase).map(|(_, block)| *block);
    (erased.max().expect("a merge"), copies(&did))
}

#[test]
fn the_victim_is_chosen_by_the_parameter() {
    assert_eq!(merged("oldest"), (3, 1));
    assert_eq!(merged("least-recent"), (4, 1));
    assert_eq!(merged("fullest"), (4, 1));
}

#[test]
fn a_partial_merge_completes_the_log_block() {
    let params = [("log_blocks", Value::Count(2)), ("partial_merge", Value::Flag(true))];
    let mut bench = bench(&ENTRY, &params);
    bench.write_all(&[0, 1, 2, 3, 0, 1]);
    // Data block 3, log block 4: pages 2 and 3 are copied to it.
    let did = bench.write(4);
    assert_eq!(did[..3], [(Copy, 18), (Copy, 19), (Erase, 3)]);
    bench.audit();
}

#[test]
fn a_log_block_whose_pages_are_trimmed_is_erased_without_a_merge() {
    let mut bench = bench(&ENTRY, &[("log_blocks", Value::Count(2))]);
    bench.write_all(&[0, 1]);
    assert_eq!((bench.trim(0), bench.trim(1)), (vec![], vec![]));
    assert_eq!(bench.write(4)[0], (Erase, 3));
    bench.audit();
}

#[test]
fn spare_blocks_replace_worn_out_ones() {
    let mut bench = bench(&ENTRY, &[("log_blocks", Value::Count(2))]).with_endurance(5);
    let (mut written, mut erased) = (0, 0);
    let error = loop {
        match bench.try_write(written % 3) {
            Ok(did) => erased += erases(&did),
            Err(error) => break error,
        }
        written += 1;
    };
    assert!(matches!(error, FtlError::WornOut(_)), "{error}");
    // Six blocks are used: all except the data blocks of the other two logical blocks.
    assert!(erased >= 5 * 5, "only {erased} erases");
    assert!((0..3).all(|page| bench.holds(page)), "old data stay readable");
    bench.audit();
}

#[test]
fn a_device_without_two_log_blocks_is_rejected() {
    let check = |exported_pages, log_blocks: Option<u64>, expected: &str| {
        let registry = crate::defaults::registry();
        let geometry = *bench(&ENTRY, &[]).flash.array().geometry();
        let mut settings = crate::defaults::settings(Parameters::PARAMS, &registry);
        if let Some(count) = log_blocks {
            settings.set("log_blocks", Value::Count(count));
        }
        let built = build(&FtlInput {
            settings: &settings,
            geometry: &geometry,
            exported_pages,
            registry: &registry,
            seed: 1,
            path: "test",
        });
        let Err(problems) = built else { panic!("{exported_pages} must be refused") };
        assert_eq!(problems[0].param, expected);
    };
    check(25, None, "over_provisioning");
    check(24, Some(3), "log_blocks");
}
