use super::*;
use crate::trace::{OpenOptions, open};
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, SimTime, Stream, ZoneAction};
use std::path::Path;

/// Records that all formats can represent: times in whole milliseconds, reads and writes.
fn records(count: u64) -> Vec<Record> {
    let mut stream = Stream::new(5, "write");
    let mut at = 0;
    (0..count)
        .map(|index| {
            let op = if stream.chance(0.5) { Op::Read } else { Op::Write };
            let lba = Lba(100 + stream.below(1 << 30));
            let mut request = Request::new(op, lba, 1 + stream.below(255) as u32);
            // Readers number volumes in order of first appearance.
            request.volume = if index < 3 { index as u16 } else { stream.below(3) as u16 };
            at += if index == 0 { 0 } else { 1 + stream.below(5) };
            let at = SimTime::ZERO + SimDuration::from_ms(at);
            Record { at, request, response: Some(SimDuration::from_us(stream.below(5_000))) }
        })
        .collect()
}

fn written(entry: &WriterEntry, records: &[Record], path: &Path) -> u64 {
    let file = std::fs::File::create(path).expect("a temporary folder");
    let mut writer = (entry.create)(Box::new(file), &Header::default()).expect("begun");
    let said = records.iter().filter(|record| writer.write(record).expect("written")).count();
    writer.finish().expect("finished");
    said as u64
}

fn read(path: &Path, format: Option<&str>) -> Vec<Record> {
    let options = OpenOptions { format: format.map(str::to_owned), ..OpenOptions::default() };
    let mut trace = open(path, &options).unwrap_or_else(|error| panic!("{error}"));
    let mut records = Vec::new();
    while let Some(record) = trace.next().unwrap_or_else(|error| panic!("{error}")) {
        records.push(record);
    }
    records
}

#[test]
fn what_is_written_is_read_back_by_name_and_by_content() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let expected = records(2_000);
    for entry in ENTRIES {
        let name = entry.description.name;
        let path = folder.path().join(format!("trace.{}", entry.extension));
        assert_eq!(written(entry, &expected, &path), 2_000, "{name}");
        let keeps_responses = !entry.loses.contains(&"response times");
        let expected: Vec<Record> = expected
            .iter()
            .map(|record| Record {
                response: record.response.filter(|_| keeps_responses),
                ..*record
            })
            .collect();
        assert!(read(&path, Some(name)) == expected, "{name}");
        assert!(read(&path, None) == expected, "{name} by content");
    }
}

#[test]
fn operations_and_flags_are_kept_or_counted_as_left_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut list = records(9);
    list[1].request = Request::new(Op::Trim, Lba(8), 64);
    list[2].request = Request { volume: 0, ..Request::new(Op::Flush, Lba(0), 0) };
    list[3].request.flags = Flags::FUA.with(Flags::SYNC).with(Flags::META);
    for (record, action) in list[4..8].iter_mut().zip(ZoneAction::ALL) {
        record.request = Request::new(Op::Zone(action), Lba(4096), 2048);
    }
    list[8].request.op = Op::Write;
    list[8].request.flags = Flags::APPEND;
    list.iter_mut().for_each(|record| {
        record.request.volume = 0;
        record.response = None;
    });
    for entry in ENTRIES {
        let name = entry.description.name;
        let path = folder.path().join(format!("trace.{}", entry.extension));
        let loses = |what| entry.loses.contains(&what);
        let expected: Vec<Record> = list
            .iter()
            .filter(|record| !(loses("trims") && record.request.op == Op::Trim))
            .filter(|record| !(loses("flushes") && record.request.op == Op::Flush))
            .filter(|record| {
                !(loses("zone management") && matches!(record.request.op, Op::Zone(_)))
            })
            .map(|record| {
                let mut record = *record;
                let is_append = record.request.flags == Flags::APPEND;
                if loses("flags") || loses("the pin, append and background flags") && is_append {
                    record.request.flags = Flags::NONE;
                }
                record
            })
            .collect();
        assert_eq!(written(entry, &list, &path), expected.len() as u64, "{name}");
        let back: Vec<Record> = read(&path, Some(name))
            .into_iter()
            .map(|record| Record { response: None, ..record })
            .collect();
        assert_eq!(back, expected, "{name}");
    }
}

#[test]
fn hostile_records_are_written_without_a_panic() {
    let request = Request {
        volume: u16::MAX,
        flags: Flags(0x7FF),
        ..Request::new(Op::Write, Lba(u64::MAX), u32::MAX)
    };
    let record = Record { at: SimTime::NEVER, request, response: Some(SimDuration::MAX) };
    for entry in ENTRIES {
        let mut writer = (entry.create)(Box::new(io::sink()), &Header::default()).expect("begun");
        writer.name_volumes(&["a b,c\n\"d".to_owned()]);
        assert!(writer.write(&record).is_ok(), "{}", entry.description.name);
        assert!(writer.finish().is_ok(), "{}", entry.description.name);
    }
}

/// Converts every available trace to the native format and back; prints the sizes.
#[test]
fn real_traces_survive_the_native_format() {
    let Some(folder) = std::env::var_os("HYBRIDSIM_DATA") else {
        println!("skipped: HYBRIDSIM_DATA names no folder with traces");
        return;
    };
    let traces = Path::new(&folder).join("traces");
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let path = scratch.path().join("trace.hst");
    let mut files = 0;
    for group in std::fs::read_dir(traces).expect("a folder of traces").flatten() {
        let Ok(list) = std::fs::read_dir(group.path()) else { continue };
        for file in list.flatten() {
            let expected = read(&file.path(), None);
            assert_eq!(written(&native::ENTRY, &expected, &path), expected.len() as u64);
            assert!(read(&path, None) == expected, "{}", file.path().display());
            let bytes = std::fs::metadata(&path).expect("written").len();
            let each = bytes as f64 / expected.len() as f64;
            println!("{each:6.2} bytes/record {:>8} {:?}", expected.len(), file.file_name());
            files += 1;
        }
    }
    assert!(files > 0, "no traces found");
}
