//! What the formats make of content that several of them accept; shown in
//! `docs/reference/traces.md`.

use super::detect::choose;
use super::{Confidence, ENTRIES, FileHead};
use crate::testing::scattered;
use std::fmt::Write;
use std::path::Path;

/// Lines of five columns: `time` by row, addresses `align` apart plus `offset`, some sizes.
fn lines(time: impl Fn(u64) -> String, align: u64, offset: u64, sizes: &[u64]) -> Vec<u8> {
    let line = |row: u64| {
        let (address, size) = (scattered(row) * align + offset, sizes[row as usize % sizes.len()]);
        format!("{} {} {address} {size} {}\n", time(row), row % 3, row % 2)
    };
    (0..200).map(line).collect::<String>().into_bytes()
}

/// Content by name: the samples of all formats, and traces whose columns mean something else than
/// their look suggests.
fn contents() -> Vec<(String, Vec<u8>)> {
    let sample = |entry: &super::FormatEntry| {
        (format!("sample of `{}`", entry.description.name), entry.sample.to_vec())
    };
    let mut list: Vec<_> = ENTRIES.iter().map(sample).collect();
    let whole = |gap: u64| move |row: u64| (row * gap + row % 7).to_string();
    let ms = |row: u64| format!("{}.{:03}", row * 9, row * 37 % 1000);
    for (name, bytes) in [
        ("SSDsim, ns, a request every 4 ms", lines(whole(4_000_000), 8, 0, &[8])),
        ("SSDsim, us, a request every 27 ms", lines(whole(27_000), 8, 0, &[8])),
        ("DiskSim, whole ms, every 15 ms", lines(whole(15), 8, 0, &[8])),
        ("DiskSim, 4 KiB blocks", lines(ms, 8, 0, &[8, 16, 8, 64])),
        ("DiskSim, any sector, 1 to 40 KiB", lines(ms, 1, 3, &[2, 9, 31, 80])),
        ("FlashSim, at pages", lines(ms, 8, 7, &[1, 2, 1, 5])),
        ("FlashSim, small, at any sector", lines(ms, 1, 3, &[1, 2, 1, 5])),
        ("replayer, bytes", lines(ms, 4096, 0, &[4096, 512, 65536])),
    ] {
        list.push((name.to_owned(), bytes));
    }
    list
}

/// The rows of the table: content that more than one format accepts.
fn table() -> String {
    let mut out =
        "| content | formats that accept it | read as | why, and what else is possible |\n\
                   |---|---|---|---|\n"
            .to_owned();
    for (name, bytes) in contents() {
        let head = FileHead { bytes: &bytes, whole: true };
        let accept: Vec<_> = ENTRIES
            .iter()
            .filter(|entry| (entry.sniff)(&head) > Confidence::No)
            .map(|entry| entry.description.name)
            .collect();
        if accept.len() < 2 {
            continue;
        }
        let (read_as, why) = match choose(ENTRIES, &head) {
            Ok(choice) => {
                let found = choice.detection;
                let others: Vec<_> =
                    found.others.iter().map(|o| format!("`{}`: {}", o.reading, o.effect)).collect();
                let why = match (found.is_guess(), others.is_empty()) {
                    (false, _) => "every other reading is implausible".to_owned(),
                    (true, true) => format!("a guess: {}", found.evidence),
                    _ => format!("a guess: {}; or {}", found.evidence, others.join(", ")),
                };
                (format!("`{}`", found.reading), why)
            }
            Err(message) => {
                let list = message.split_once("stands out: ").expect("an ambiguity").1;
                let list = list.split_once("; name").expect("a remedy").0;
                ("asks".to_owned(), format!("undecided: {list}"))
            }
        };
        let _ = writeln!(out, "| {name} | {} | {read_as} | {why} |", accept.join(", "));
    }
    out
}

const BEGIN: &str = "<!-- ambiguous formats: generated -->\n\n";
const END: &str = "\n<!-- end -->";

#[test]
fn the_table_of_ambiguous_content_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/traces.md");
    let page = std::fs::read_to_string(&path).expect("a page");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (written, after) = rest.split_once(END).expect("where the table ends");
    let table = table();
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("writable");
    } else {
        assert_eq!(written, table, "run this test with HYBRIDSIM_BLESS=1");
    }
    // What was confused in silence: microseconds taken for nanoseconds, pages for sectors.
    let row = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(&format!("| {name}")));
        row.expect("a row").split(" | ").map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("SSDsim, us")[2], "asks");
    assert_eq!(row("FlashSim, at pages")[2], "`flashsim`");
    assert_eq!(row("FlashSim, small, at any sector")[2], "asks");
    assert_eq!(row("DiskSim, any sector")[2], "`disksim`");
    assert_eq!(row("replayer, bytes")[2], "`replayer-bytes`");
    assert!(row("SSDsim, ns")[3].starts_with("a guess"));
}
