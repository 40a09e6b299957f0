//! A device without DRAM: what a lookup of the map costs in each place where an entry can be.

mod common;

use common::{answers, chosen, settings, text};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::Op;
use hybridsim_flash::defaults;

/// One entry in the controller's memory, and as many bytes of translation pages in the host's. The
/// map of its 853 pages has two of 512 entries.
fn device(host_buffer: u64) -> Settings {
    let mut ftl = defaults::entry("ftl", "dftl", &hybridsim_ssd::registry());
    if let Value::Entry(dftl) = &mut ftl {
        dftl.settings.set("cache_entries", Value::Count(1));
        dftl.settings.set("host_buffer", Value::Bytes(host_buffer));
    }
    settings()
        .and("blocks_per_plane", Value::Count(40))
        .and("precondition", text("fill"))
        .and("ftl", ftl)
}

/// Latencies of reads of these pages, in microseconds, one every 10 ms.
fn latencies(settings: &Settings, pages: &[u64]) -> Vec<u64> {
    let read = |(at, page): (u64, &u64)| (at * 10_000, Op::Read, *page, 1);
    let asked: Vec<_> = (0..).zip(pages).map(read).collect();
    let ends = answers(settings, &asked);
    ends.iter().zip(&asked).map(|(end, asked)| end - asked.0).collect()
}

#[test]
fn an_entry_takes_a_flash_read_an_access_or_nothing() {
    // Cells are read in 25 us, the host's memory in 1 us.
    let pages = [0, 700, 701, 702, 720, 0, 0];
    for timing in ["interleaved", "queued", "serial"] {
        let with = |host_buffer| device(host_buffer).and("timing", chosen("timing", timing));
        let found = latencies(&with(2_048), &pages);
        // After the first, which finds what filling left: the page of 700 is read from flash; 701
        // takes an access, which brings 702; 720 another; the page of 0 is read and replaces it in
        // the buffer; the entry of 0 is in the controller's memory at last.
        assert_eq!(found[1..], [50, 26, 25, 26, 50, 25], "{timing}");
        let found = latencies(&with(4_096), &pages);
        assert_eq!(found[1..], [26, 25, 25, 26, 26, 25], "{timing}: both pages are in the buffer");
        let found = latencies(&with(0), &pages);
        assert_eq!(found[1..], [50, 50, 50, 50, 50, 25], "{timing}: without a buffer");
    }
}

#[test]
fn consecutive_pages_of_a_request_share_an_access() {
    let read =
        |pages| answers(&device(4_096), &[(0, Op::Read, 0, 1), (9_000, Op::Read, 640, pages)]);
    // Four dies read 32 pages in eight turns; 640 to 671 are two accesses.
    let took = read(32)[1] - 9_000;
    assert!((200..=202).contains(&took), "{took} us");
}
