//! Real traces, where `HYBRIDSIM_DATA` names a folder with them: the readers must reproduce every
//! figure of their lists.

use super::detect::choose;
use super::{ENTRIES, FileHead, OpenOptions, OpenTrace, TraceFile, open};
use crate::record::{Record, RecordReader, Warning};
use hybridsim_engine::{Op, SimTime};
use std::path::{Path, PathBuf};

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("HYBRIDSIM_DATA").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: HYBRIDSIM_DATA names no folder with traces");
    }
    folder
}

fn read(path: &Path, reorder_records: usize) -> (OpenTrace, Vec<Record>) {
    let options = OpenOptions { reorder_records, ..OpenOptions::default() };
    let mut trace = open(path, &options).unwrap_or_else(|error| panic!("{error}"));
    let mut records = Vec::new();
    while let Some(record) = trace.next().unwrap_or_else(|error| panic!("{error}")) {
        // The lists count requests with data only.
        if matches!(record.request.op, Op::Read | Op::Write) {
            records.push(record);
        }
    }
    assert_eq!(trace.next(), Ok(None));
    (trace, records)
}

/// Sectors in the union of all ranges, per volume.
fn footprint_sectors(records: &[Record]) -> u64 {
    let mut ranges: Vec<_> = records
        .iter()
        .map(|record| (record.request.volume, record.request.lba.0, record.request.end().0))
        .collect();
    ranges.sort_unstable();
    let (mut sum, mut last) = (0, (u16::MAX, 0));
    for (volume, start, end) in ranges {
        let from = if last.0 == volume { start.max(last.1) } else { start };
        sum += end.saturating_sub(from);
        last = (volume, if last.0 == volume { end.max(last.1) } else { end });
    }
    sum
}

fn sequential(records: &[Record]) -> usize {
    let mut ends = std::collections::BTreeMap::new();
    let follows = |record: &&Record| {
        let request = &record.request;
        ends.insert(request.volume, request.end()) == Some(request.lba)
    };
    records.iter().filter(follows).count()
}

/// Compares with a figure of the list, to as many digits as it has.
fn agrees(what: &str, listed: &str, ours: f64) -> Result<(), String> {
    let listed = listed.trim().replace(',', "");
    let digits = listed.split_once('.').map_or(0, |(_, digits)| digits.len());
    let value: f64 = listed.parse().map_err(|_| format!("{what}: cannot read {listed}"))?;
    let rounding = 0.5001 * 10f64.powi(-(digits as i32));
    if (value - ours).abs() <= rounding {
        return Ok(());
    }
    Err(format!("{what}: listed {listed}, ours {ours}"))
}

/// The format with this name in the list.
fn format_of(word: &str) -> &'static str {
    match word {
        "SSDsim ascii" => "ssdsim",
        "SPC text" => "spc",
        "MQSim ascii" => "mqsim",
        "replayer text, sectors" => "replayer-sectors",
        "replayer text, bytes" => "replayer-bytes",
        "MSR Cambridge CSV" => "msr",
        "FIU blkparse" => "fiu",
        "DiskMon log" => "diskmon",
        "FlashSim trace" => "flashsim",
        "HP SRT 1.3 (binary)" => "srt",
        "ARC .lis" => "arc",
        "DiskSim ascii" => "disksim",
        "blkparse default text" => "blkparse",
        "event text" => "events",
        "vscsi v1 (binary)" => "vscsi",
        "Tencent CBS CSV" => "tencent",
        "replay log" => "replay-log",
        "SYSTOR '17 CSV" => "systor17",
        "BIOtracer log" => "biotracer",
        "fio iolog v2" => "fio",
        other => panic!("unknown format: {other}"),
    }
}

fn check_row(folder: &Path, columns: &[&str]) -> Vec<String> {
    let path = folder.join(columns[0].trim_matches('`'));
    let (trace, records) = read(&path, 4096);
    let count = records.len() as f64;
    let mut wrong = Vec::new();
    let expected = format_of(columns[3]);
    let found = ENTRIES.iter().find(|entry| entry.description.name == trace.format.name).unwrap();
    if trace.format.name != expected && !found.same_as.contains(&expected) {
        wrong.push(format!("format: expected {expected}, found {}", trace.format.name));
    }
    let reads = records.iter().filter(|record| record.request.op == Op::Read).count() as f64;
    let bytes: u64 = records.iter().map(|record| record.request.bytes()).sum();
    let mut check = |what, listed: &str, ours| wrong.extend(agrees(what, listed, ours).err());
    check("rows", columns[2], count);
    check("read %", columns[4], 100.0 * reads / count);
    check("mean KiB", columns[5], bytes as f64 / 1024.0 / count);
    let span = records.last().unwrap().at.since(SimTime::ZERO).as_s_f64();
    if columns[6] == "-" {
        assert!(!trace.has_times() && span == 0.0);
    } else {
        assert!(trace.has_times());
        check("span", columns[6], span);
        check("mean gap", columns[7], span * 1000.0 / (count - 1.0));
    }
    check("footprint", columns[8], footprint_sectors(&records) as f64 * 512.0 / f64::from(1 << 30));
    // The lists count runs in the order of the file.
    let is_order = |warning: &Warning| warning.message.contains("out of time order");
    let unsorted = trace.warnings().iter().any(is_order);
    let in_file_order = if unsorted { sequential(&read(&path, 0).1) } else { sequential(&records) };
    check("sequential %", columns[9], 100.0 * in_file_order as f64 / count);
    assert!(records.is_sorted_by_key(|record| record.at), "times never go back");
    let responses = records.iter().filter(|record| record.response.is_some()).count();
    println!(
        "{}: {} ({responses} responses) {:?}",
        columns[0],
        trace.format.name,
        trace.warnings()
    );
    wrong
}

#[test]
fn every_trace_has_the_figures_of_its_list() {
    let Some(data) = data() else { return };
    let folder = data.join("traces");
    let list = std::fs::read_to_string(folder.join("MANIFEST.md")).unwrap();
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in list.lines().skip_while(|line| !line.starts_with("## Files")).skip(1) {
        if line.starts_with("## ") {
            break;
        }
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        if columns.len() == 11 && columns[0].starts_with('`') {
            // Drop the column with the title, to which no figure belongs.
            let columns: Vec<_> = [&columns[..1], &columns[1..]].concat();
            rows += 1;
            for problem in check_row(&folder, &columns) {
                wrong.push(format!("{}: {problem}", columns[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows, 29);
}

/// Windows of `rows` lines at offsets all over a trace of five columns, each a file of its own.
fn windows(path: &Path, rows: usize) -> Vec<Vec<u8>> {
    const WINDOWS: usize = 13;
    let mut file = TraceFile::open(path).unwrap();
    let (mut lines, mut number) = (Vec::new(), 0);
    while let Some((line, _)) = file.line(number + 1).unwrap() {
        number += 1;
        lines.push([line, b"\n"].concat());
    }
    let last = lines.len() - rows;
    let starts = (0..WINDOWS).map(|window| last * window / (WINDOWS - 1));
    starts.map(|start| lines[start..start + rows].concat()).collect()
}

#[test]
fn every_part_of_a_trace_of_five_columns_reads_as_the_whole() {
    let Some(data) = data() else { return };
    let traces = [
        ("desktop/desktop.flashsim.trace.gz", "flashsim"),
        ("desktop/jpeg_copy.flashsim.trace.gz", "flashsim"),
        ("server/disksim-ascii-14disk.trace.gz", "disksim"),
        ("msprod/msn-fs-first100000.trace.gz", "disksim"),
        ("oltp/financial1-first10000.ssdsim.ascii.gz", "mqsim"),
        ("search/websearch1-first24783.mqsim.trace.gz", "mqsim"),
        ("msr/msr.cut.per_10k.rw_20_80.105.trace.gz", "replayer-bytes"),
    ];
    for (name, expected) in traces {
        let (mut sure, mut all) = (0, 0);
        for rows in [200, 1000, 5000] {
            for (at, bytes) in windows(&data.join("traces").join(name), rows).iter().enumerate() {
                let head = FileHead { bytes: &bytes[..bytes.len().min(65_536)], whole: false };
                let found = choose(ENTRIES, &head);
                let found = found.unwrap_or_else(|error| panic!("{name} {rows} {at}: {error}"));
                assert_eq!(found.detection.reading, expected, "{name} {rows} {at}");
                sure += usize::from(!found.detection.is_guess());
                all += 1;
            }
        }
        println!("{name}: {sure} of {all} parts are read as {expected} without a doubt");
        assert!(expected == "mqsim" || sure * 10 >= all * 8, "{name}: {sure} of {all}");
    }
}

#[test]
fn validation_logs_of_drives() {
    let Some(data) = data() else { return };
    let folder = data.join("disksim");
    let list = std::fs::read_to_string(folder.join("MANIFEST.md")).unwrap();
    let mut logs = 0;
    for line in list.lines().filter(|line| line.starts_with("| disks/")) {
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let files = std::fs::read_dir(folder.join(columns[0])).unwrap();
        let mut paths = files.map(|file| file.unwrap().path());
        let path = paths.find(|path| path.to_string_lossy().ends_with(".trace.gz")).unwrap();
        let (trace, records) = read(&path, 4096);
        assert_eq!(trace.format.name, "disksim-validate");
        assert_eq!(records.len().to_string(), columns[3], "{}", path.display());
        let sum_ns: u64 = records.iter().map(|record| record.response.unwrap().as_ns()).sum();
        let mean_ms = sum_ns as f64 / 1e6 / records.len() as f64;
        agrees("observed mean (ms)", columns[4], mean_ms).unwrap();
        logs += 1;
    }
    assert_eq!(logs, 8);
}
