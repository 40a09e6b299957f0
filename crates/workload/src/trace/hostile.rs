//! Hostile input, for every registered format: a located error or a valid prefix with a warning,
//! never a panic, a hang or unbounded memory.

use super::detect::choose;
use super::{Confidence, ENTRIES, FileHead, FormatEntry, OpenOptions, open, open_with};
use crate::record::{Record, RecordReader, SourceLocation, TraceResult};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::Stream;
use std::io::Write;
use std::path::{Path, PathBuf};

struct TempFolder(tempfile::TempDir);

impl TempFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("trace");
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

/// The records of a trace, and the number of warnings or the error at its end. Checks the
/// guarantees of every reader.
fn read(path: &Path, format: Option<&str>) -> (Vec<Record>, TraceResult<usize>) {
    read_with(path, &format.map_or_else(OpenOptions::default, named))
}

fn named(format: &str) -> OpenOptions {
    OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() }
}

fn read_with(path: &Path, options: &OpenOptions) -> (Vec<Record>, TraceResult<usize>) {
    let mut records = Vec::new();
    let mut trace = match open(path, options) {
        Ok(trace) => trace,
        Err(error) => return (records, Err(error)),
    };
    loop {
        let record = match trace.next() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                assert_eq!(trace.next(), Ok(None), "an error ends the trace");
                assert_eq!(error.path, path);
                let batches = read_in_batches(path, options, records.len() as u64);
                assert_eq!(batches, (records.clone(), Err(error.clone())));
                return (records, Err(error));
            }
        };
        assert!(records.last().is_none_or(|last: &Record| last.at <= record.at));
        assert!(record.request.end().0 <= 1 << 55);
        assert!((record.request.volume as usize) < trace.volumes().len());
        records.push(record);
        assert!(records.len() < 100_000, "no end");
    }
    assert!(!records.is_empty(), "a trace without requests is an error");
    let end = Ok(trace.warnings().len());
    let batches = read_in_batches(path, options, records.len() as u64);
    assert_eq!(batches, (records.clone(), end.clone()));
    (records, end)
}

/// As [`read_with`], by batches with some single records between them.
fn read_in_batches(
    path: &Path,
    options: &OpenOptions,
    seed: u64,
) -> (Vec<Record>, TraceResult<usize>) {
    let mut trace = open(path, options).expect("it was opened before");
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    let mut stream = Stream::new(seed, "batches");
    loop {
        let next = match stream.below(2) {
            0 => trace.next_batch(&mut batch),
            _ => {
                batch.clear();
                trace.next().map(|record| batch.extend(record))
            }
        };
        records.extend_from_slice(&batch);
        if let Err(error) = next {
            assert_eq!(trace.next_batch(&mut batch), Ok(()), "an error ends the trace");
            assert!(batch.is_empty());
            return (records, Err(error));
        }
        if batch.is_empty() {
            return (records, Ok(trace.warnings().len()));
        }
    }
}

/// Reads `bytes` as `entry`, with and without bad records, and by content; none may panic.
fn read_both(folder: &TempFolder, entry: &FormatEntry, bytes: &[u8]) {
    let path = folder.file(bytes);
    let _ = read(&path, None);
    let (strict, end) = read(&path, Some(entry.description.name));
    if let Err(error) = &end {
        assert!(!error.message.is_empty());
    }
    let skipping = OpenOptions { skip_bad_lines: true, ..named(entry.description.name) };
    let (lenient, _) = read_with(&path, &skipping);
    assert!(lenient.len() >= strict.len(), "{}", entry.description.name);
    if end.is_ok() {
        assert_eq!(lenient, strict, "nothing was bad");
    }
}

#[test]
fn lines_separated_by_carriage_returns_are_an_error() {
    let folder = TempFolder::new();
    let line = |at: u32| format!("{at}.5 0 {} 8 1", at * 8);
    let lines = |range: std::ops::Range<u32>| range.map(line).collect::<Vec<_>>();
    let text = format!("{}\n{}", lines(0..200).join("\n"), lines(200..400).join("\r"));
    let (records, end) = read(&folder.file(text.as_bytes()), Some("disksim"));
    let error = end.expect_err("half of it cannot be read");
    assert!(error.message.contains("carriage return"), "{error}");
    assert!(error.location == SourceLocation::Line(201) && records.len() <= 200, "{error}");
}

#[test]
fn samples_are_read_and_found_by_content() {
    let folder = TempFolder::new();
    for entry in ENTRIES {
        let name = entry.description.name;
        let path = folder.file(entry.sample);
        let (named, end) = read(&path, Some(name));
        assert!(end.is_ok(), "{name}: {end:?}");
        assert!(named.len() >= 2, "{name}: a sample has some records");
        if name == "binary" {
            // Described by the user, never found.
            continue;
        }
        let found = open(&path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let same = found.format.name == name || entry.same_as.contains(&found.format.name);
        assert!(same, "{name} was found to be {}", found.format.name);
        assert_eq!(read(&path, None).0, named, "{name} reads the same either way");
        assert_eq!(found.has_times(), named.last().is_some_and(|last| last.at.as_ns() > 0));
    }
}

#[test]
fn line_ends_do_not_matter() {
    let folder = TempFolder::new();
    for entry in ENTRIES {
        let Ok(text) = std::str::from_utf8(entry.sample) else { continue };
        let name = Some(entry.description.name);
        if !text.is_ascii() || entry.sample.contains(&0) {
            continue;
        }
        let plain = read(&folder.file(entry.sample), name);
        assert!(plain.1.is_ok());
        let unix = text.replace("\r\n", "\n");
        for other in [
            unix.clone(),
            unix.trim_end().to_owned(),
            unix.replace('\n', "\r\n"),
            format!("\u{feff}{unix}"),
            format!("{unix}\n  \n# a comment\n"),
        ] {
            let got = read(&folder.file(other.as_bytes()), name);
            assert_eq!(got.0, plain.0, "{name:?} {other:?}");
        }
    }
}

/// Every position of a sample, except in the middle of a long header.
fn positions(sample: &[u8]) -> impl Iterator<Item = usize> {
    let length = sample.len();
    (0..length).filter(move |at| length < 1000 || *at < 64 || at + 200 > length)
}

#[test]
fn truncated_at_every_byte() {
    let folder = TempFolder::new();
    for entry in ENTRIES {
        let name = entry.description.name;
        // No reordering: a truncated number may be any time.
        let format = Some(name.to_owned());
        let options = OpenOptions { format, reorder_records: 0, ..OpenOptions::default() };
        let whole = read_with(&folder.file(entry.sample), &options).0;
        for length in positions(entry.sample) {
            let path = folder.file(&entry.sample[..length]);
            let _ = read(&path, None);
            let (records, end) = read_with(&path, &options);
            // A truncated number is still a number, so the last record may differ, but no other.
            let intact = records.len().saturating_sub(1);
            let ops = |records: &[Record]| -> Vec<_> {
                records.iter().map(|record| (record.request, record.at)).collect()
            };
            assert_eq!(ops(&records[..intact]), ops(&whole[..intact]), "{name} cut at {length}");
            if let Err(error) = end {
                assert!(error.to_string().contains("trace"), "{name}: {error}");
            }
        }
    }
}

#[test]
fn flipped_bits_and_random_bytes() {
    let folder = TempFolder::new();
    let mut stream = Stream::new(11, "hostile");
    for entry in ENTRIES {
        for round in 0..150 {
            let mut bytes = entry.sample.to_vec();
            for _ in 0..=round % 4 {
                let at = stream.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << stream.below(8);
            }
            read_both(&folder, entry, &bytes);
        }
        for round in 0..50 {
            let mut bytes = entry.sample[..entry.sample.len().min(round)].to_vec();
            bytes.extend((0..stream.below(3000)).map(|_| stream.bits() as u8));
            read_both(&folder, entry, &bytes);
        }
    }
}

#[test]
fn second_shapes_of_formats() {
    let shapes: [(&str, &[u8]); 2] = [
        (
            "iotrace",
            b"{\"header\":{\"sid\":\"1\",\"timestamp\":\"500\"},\"deviceDescription\":\
              {\"id\":\"7\",\"name\":\"sda\"}}\n\
              {\"header\":{\"sid\":\"2\",\"timestamp\":\"900\"},\"io\":{\"lba\":\"64\",\
              \"len\":8,\"operation\":\"Read\",\"deviceId\":\"7\"}}\n\
              {\"header\":{\"sid\":\"3\",\"timestamp\":\"990\"},\"io\":{\"lba\":\"96\",\
              \"len\":16,\"operation\":\"Write\",\"fua\":true,\"latency\":\"40\"},\
              \"device\":{\"id\":\"9\",\"name\":\"sdb\"}}\n",
        ),
        (
            "tectonic",
            b"op_time,block_id,io_size,io_offset,op_name,op_count,rs_shard_id\n\
              5,b7,1024,512,getChunkData.Temp,1,2\n6,b7,512,0,putChunk.Permanent,2,2\n",
        ),
    ];
    let folder = TempFolder::new();
    let mut stream = Stream::new(12, "shapes");
    for (name, sample) in shapes {
        let found = open(&folder.file(sample), &OpenOptions::default());
        assert_eq!(found.map(|trace| trace.format.name), Ok(name));
        let entry = ENTRIES.iter().find(|entry| entry.description.name == name).expect("listed");
        for length in 0..sample.len() {
            read_both(&folder, entry, &sample[..length]);
            let mut bytes = sample.to_vec();
            bytes[length] ^= 1 << stream.below(8);
            read_both(&folder, entry, &bytes);
        }
    }
}

#[test]
fn implausible_numbers_in_every_column() {
    const IMPLAUSIBLE: &[&str] = &[
        "-1",
        "1e400",
        "-1e400",
        "NaN",
        "inf",
        "18446744073709551615",
        "18446744073709551616",
        "9e18",
        "4294967296",
        "99999999999999999999999999999999",
        "0x10",
        "",
        "-0",
        "1e-400",
        "\u{0}",
        "65536",
        "0.5",
    ];
    let folder = TempFolder::new();
    for entry in ENTRIES.iter().filter(|entry| entry.sample.is_ascii()) {
        let text = String::from_utf8_lossy(entry.sample);
        let mut rejected = 0;
        for (at, word) in text.split_inclusive([',', ' ', '\t', '\n']).scan(0, |at, word| {
            *at += word.len();
            Some((*at - word.len(), word))
        }) {
            let bare = word.trim_end_matches([',', ' ', '\t', '\n', '\r']);
            if bare.is_empty() {
                continue;
            }
            for number in IMPLAUSIBLE {
                let changed = format!("{}{number}{}", &text[..at], &text[at + bare.len()..]);
                let path = folder.file(changed.as_bytes());
                let _ = read(&path, None);
                rejected += usize::from(read(&path, Some(entry.description.name)).1.is_err());
            }
        }
        assert!(rejected > 10, "{}: {rejected} numbers rejected", entry.description.name);
    }
}

#[test]
fn implausible_binary_numbers() {
    let folder = TempFolder::new();
    for entry in ENTRIES.iter().filter(|entry| !entry.sample.is_ascii()) {
        for at in positions(entry.sample) {
            for (fill, width) in [(0xff, 4), (0xff, 8), (0, 4), (0, 8), (0x7f, 4), (0x80, 1)] {
                let mut bytes = entry.sample.to_vec();
                let end = (at + width).min(bytes.len());
                bytes[at..end].fill(fill);
                read_both(&folder, entry, &bytes);
            }
        }
    }
}

#[test]
fn nothing_to_read() {
    let folder = TempFolder::new();
    let check = |path: &Path, format: Option<&str>, expect: &str| {
        let (records, end) = read(path, format);
        let error = end.expect_err("nothing to read").to_string();
        assert!(records.is_empty() && error.contains(expect), "{error}");
        assert!(error.starts_with(&path.display().to_string()), "{error}");
    };
    for format in ENTRIES.iter().map(|entry| Some(entry.description.name)).chain([None]) {
        check(&folder.file(b""), format, "the file is empty");
        check(folder.0.path(), format, "is a directory");
        check(&folder.0.path().join("none"), format, "cannot be opened");
        let (records, end) = read(&folder.file(b"\n\n\n"), format);
        assert!(records.is_empty() && end.is_err());
    }
    check(&folder.file(b"hello world\n"), None, "matches no known trace format");
    // Two records of oracleGeneral could have these bytes.
    let named = b"size,ts,lba,rw\n4096,0.1,100,R\n4096,0.2,108,W\n";
    check(&folder.file(named), None, "time = \"ts\", op = \"rw\", offset = \"lba\"");
    check(&folder.file(b"hello world\n"), Some("spcc"), "there is no trace format \"spcc\"");
    check(&folder.file(&gzip(b"")), None, "decompresses to nothing");
    check(&folder.file(&gzip(b"")), Some("spc"), "decompresses to nothing");
    check(&folder.file(b"\x1f\x8b\x08"), None, "the gzip data are truncated");
    check(&folder.file(b"BZh9garbage"), None, "the bzip2 data are truncated");
}

#[test]
fn the_first_bad_record_names_both_remedies() {
    let folder = TempFolder::new();
    let bad = folder.file(b"1,x,8,0,1\n1,1,8,0,1\n1,1,8,0,1\n");
    let error = read(&bad, Some("tencent")).1.expect_err("a bad line").message;
    assert!(error.contains("--format") && error.contains("--skip-bad-lines"), "{error}");
}

#[test]
fn traces_without_arrivals_say_so() {
    let folder = TempFolder::new();
    let line = |act: char, at: u32| format!("8,0 1 1 {at}.5 5 {act} R {} + 8 [x]\n", at * 8);
    let only = |act: char| (0..20).map(|at| line(act, at)).collect::<String>();
    let error = read(&folder.file(only('C').as_bytes()), None).1.expect_err("none").message;
    assert!(error.contains("20 C events (completions), but none of Q, I or D"), "{error}");
    let mut queued = named("blkparse");
    queued.settings = Settings::default().and("event", Value::Text("D".into()));
    let error = read_with(&folder.file(only('Q').as_bytes()), &queued).1.expect_err("none");
    assert!(error.message.contains("20 Q events, but no D event"), "{error}");
}

#[test]
fn an_unknown_table_with_names_is_described_by_them() {
    let folder = TempFolder::new();
    let table = "Timestamp,op,offset,size,x,y\n17,R,4096,512,1,2\n18,W,8192,512,1,2\n";
    let path = folder.file(table.as_bytes());
    let error = read(&path, None).1.expect_err("units are not known").message;
    let named = "--format '{ kind = \"columns\", time = \"Timestamp\", op = \"op\", offset = \
                 \"offset\", size = \"size\", time_unit = \"s\", unit = \"1B\" }'";
    assert!(error.contains(named), "{error}");
    let table = "time_us,op,lba,sectors,x,y\n17,R,8,1,1,2\n18,W,16,1,1,2\n";
    let error = read(&folder.file(table.as_bytes()), None).1.expect_err("no guess").message;
    assert!(error.contains("time_unit = \"us\", unit = \"512B\" }"), "{error}");
    let error = read(&folder.file(b"a,b\n1,2\n"), None).1.expect_err("no names").message;
    assert!(error.contains("time = \"1\""), "{error}");
}

/// A tar archive of one file with this content, as `tar` writes it.
fn tar(bytes: &[u8]) -> Vec<u8> {
    let mut archive = vec![0u8; 512];
    archive[..5].copy_from_slice(b"a.csv");
    archive[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    archive[156] = b'0';
    archive[257..265].copy_from_slice(b"ustar\x0000");
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    archive
}

#[test]
fn archives_are_no_traces() {
    let folder = TempFolder::new();
    let msr =
        |at: u64| format!("{},hm,0,Read,{},4096,70\n", 128_166_372_003_061_629 + at, at * 512);
    let text: String = (0..200).map(msr).collect();
    let check = |bytes: &[u8], expect: &str| {
        let error = read(&folder.file(bytes), None).1.expect_err("an archive").message;
        assert_eq!(error, expect);
    };
    let tar_message = "is a tar archive: unpack it (tar xf) and name one of its files";
    check(&tar(text.as_bytes()), tar_message);
    check(&gzip(&tar(text.as_bytes())), tar_message);
    let zip = [&b"PK\x03\x04\x14\0\0\0\0\0"[..], text.as_bytes()].concat();
    check(&zip, "is a zip archive: unpack it (unzip) and name one of its files");
    let named = read(&folder.file(&zip), Some("msr")).1.expect_err("an archive").message;
    assert!(named.contains("zip archive"), "{named}");
    // FIU's reader skips the header of a member.
    let fiu = ENTRIES.iter().find(|entry| entry.description.name == "fiu").expect("a format");
    let records = fiu.sample.splitn(2, |byte| *byte == b'\n').nth(1).expect("lines");
    let (records, end) = read(&folder.file(&tar(records)), None);
    assert!(end.is_ok() && records.len() == 2, "{end:?}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn truncated_gzip() {
    let folder = TempFolder::new();
    for entry in ENTRIES {
        let name = entry.description.name;
        let whole = gzip(entry.sample);
        let unnamed = (name != "binary").then_some(()).map_or(Some(name), |()| None);
        assert!(read(&folder.file(&whole), unnamed).1.is_ok(), "{name}");
        for length in 2..whole.len() {
            let path = folder.file(&whole[..length]);
            let error = read(&path, Some(name)).1.expect_err("a cut file").message;
            assert!(error.contains("gzip data are truncated"), "{name}: {error}");
            assert!(read(&path, None).1.is_err(), "{name} cut at {length}");
        }
    }
}

#[test]
fn ambiguous_content_is_an_error() {
    const fn certain(_: &FileHead<'_>) -> Confidence {
        Confidence::Certain
    }
    let entries = [
        FormatEntry { sniff: certain, ..ENTRIES[0] },
        FormatEntry { sniff: certain, ..ENTRIES[1] },
    ];
    let head = FileHead { bytes: b"x", whole: true };
    let error = choose(&entries, &head).err().expect("ambiguous");
    assert!(error.starts_with("the content matches several formats"), "{error}");
    assert!(error.ends_with("with --format (`format`): alibaba, arc"), "{error}");
    let folder = TempFolder::new();
    let path = folder.file(b"1 2 3 4\n");
    assert!(open_with(&entries, &path, &OpenOptions::default()).is_err());
    assert!(open_with(&entries, &path, &named("arc")).is_ok());
    // Sequential runs match both units equally well.
    let both = "0.5 0 8 1 1\n1.5 0 9 8 1\n1.5 0 17 8 0\n1.5 0 25 1 1\n1.5 0 33 1 1\n1.5 0 41 1 1\n\
                1.5 0 49 1 1\n1.5 0 50 1 1\n1.5 0 51 1 0\n";
    let error = read(&folder.file(both.as_bytes()), None).1.expect_err("ambiguous").message;
    assert!(error.contains("no reading stands out: disksim (one request every"), "{error}");
    assert!(error.contains(", flashsim (one request every"), "{error}");
}

#[test]
fn settings_are_checked() {
    let folder = TempFolder::new();
    let check = |format: &str, sample: &[u8], settings: Settings, expect: Option<&str>| {
        let path = folder.file(sample);
        let format = Some(format.to_owned());
        let options = OpenOptions { format, settings, ..OpenOptions::default() };
        match (open(&path, &options), expect) {
            (Ok(_), None) => {}
            (Err(error), Some(expect)) => assert!(error.message.contains(expect), "{error}"),
            (Ok(_), Some(expect)) => panic!("no error, but {expect}"),
            (Err(error), None) => panic!("{error}"),
        }
    };
    let unit = |word: &str| Settings::default().and("time_unit", Value::Text(word.into()));
    check("mqsim", b"1 1 1 1 1\n", unit("us"), None);
    check("mqsim", b"1 1 1 1 1\n", unit("weeks"), Some("`time_unit` cannot be"));
    check("spc", b"1,1,512,r,1\n", unit("us"), Some("format spc has no parameter `time_unit`"));
    let count = Settings::default().and("time_unit", Value::Count(3));
    check("mqsim", b"1 1 1 1 1\n", count, Some("`time_unit` cannot be"));
    let block = |bytes| Settings::default().and("block_bytes", Value::Bytes(bytes));
    check("arc", b"1 1 1 1\n", block(4096), None);
    check("arc", b"1 1 1 1\n", block(100), Some("`block_bytes` cannot be"));
}

#[test]
fn settings_change_what_is_read() {
    let folder = TempFolder::new();
    let spans = |format: &str, text: &str, name: &'static str, value: Value| {
        let options = OpenOptions {
            format: Some(format.to_owned()),
            settings: Settings::default().and(name, value),
            ..OpenOptions::default()
        };
        let mut trace = open(&folder.file(text.as_bytes()), &options).unwrap();
        let records: Vec<_> = std::iter::from_fn(|| trace.next().unwrap()).collect();
        let last = records.last().unwrap();
        (last.at.as_ns(), last.request.lba.0, last.request.sectors)
    };
    let text = |word: &str| Value::Text(word.into());
    for (unit, ns) in [("s", 2_000_000_000), ("ms", 2_000_000), ("us", 2000), ("ns", 2), ("ps", 0)]
    {
        let got = spans("mqsim", "1 0 7 8 1\n3 0 9 8 1\n", "time_unit", text(unit));
        assert_eq!(got, (ns, 9, 8), "{unit}");
    }
    let pages = |bytes| spans("flashsim", "1.0 0 7 2 1\n", "page_bytes", Value::Bytes(bytes));
    assert_eq!(pages(4096), (0, 7, 16));
    assert_eq!(pages(8192), (0, 7, 32));
    let default = open(&folder.file(b"1.0 0 7 2 1\n"), &named("flashsim")).unwrap().next();
    assert_eq!(default.unwrap().unwrap().request.sectors, 16);
    let blocks = spans("arc", "5 2 0 0\n", "block_bytes", Value::Bytes(4096));
    assert_eq!(blocks, (0, 40, 16));
    let q = "8,0 1 1 0.1 5 Q R 8 + 8 [x]\n8,0 1 1 0.3 5 Q R 16 + 8 [x]\n\
             8,0 1 1 0.7 5 D R 8 + 16 [x]\n";
    assert_eq!(spans("blkparse", q, "event", text("best")), (0, 8, 16));
    assert_eq!(spans("blkparse", q, "event", text("Q")), (200_000_000, 16, 8));
    assert_eq!(spans("blkparse", q, "event", text("D")), (0, 8, 16));
}

#[test]
fn blktrace_files_of_all_cpus_are_merged() {
    let folder = TempFolder::new();
    let record = |order_big: bool, time_ns: u64, sector: u64, action: u32| {
        let mut bytes = Vec::new();
        let mut put = |little: &[u8]| {
            let mut field = little.to_vec();
            if order_big {
                field.reverse();
            }
            bytes.extend(field);
        };
        put(&0x6561_7407u32.to_le_bytes());
        put(&0u32.to_le_bytes());
        put(&time_ns.to_le_bytes());
        put(&sector.to_le_bytes());
        put(&4096u32.to_le_bytes());
        put(&action.to_le_bytes());
        put(&9u32.to_le_bytes());
        put(&(8u32 << 20 | 16).to_le_bytes());
        put(&0u32.to_le_bytes());
        put(&0u32.to_le_bytes());
        bytes
    };
    for big in [false, true] {
        let (issue_read, issue_write) = (0x41 << 16 | 7, 0x42 << 16 | 7);
        let done = 0x81 << 16 | 8;
        let first = [record(big, 10, 64, issue_read), record(big, 40, 80, issue_write)].concat();
        let second = [record(big, 20, 96, issue_read), record(big, 25, 64, done)].concat();
        let paths = ["x.blktrace.0", "x.blktrace.1.gz"].map(|name| folder.0.path().join(name));
        std::fs::write(&paths[0], first).unwrap();
        std::fs::write(&paths[1], gzip(&second)).unwrap();
        std::fs::write(folder.0.path().join("x.blktrace.2"), b"").unwrap();
        std::fs::write(folder.0.path().join("y.blktrace.0"), b"not of this trace").unwrap();
        for path in &paths {
            let mut trace = open(path, &OpenOptions::default()).unwrap();
            let got: Vec<_> = std::iter::from_fn(|| trace.next().unwrap())
                .map(|r| (r.at.as_ns(), r.request.lba.0, r.response.map(|time| time.as_ns())))
                .collect();
            assert_eq!(got, [(0, 64, Some(15)), (10, 96, None), (30, 80, None)]);
            assert_eq!(trace.volumes(), ["8,16"]);
        }
    }
    // An error in another CPU's file names that file.
    let damaged = folder.0.path().join("x.blktrace.3");
    std::fs::write(&damaged, [b'?'; 100]).unwrap();
    let mut trace = open(&folder.0.path().join("x.blktrace.0"), &OpenOptions::default()).unwrap();
    let error = trace.next().expect_err("a damaged file");
    assert_eq!((error.path, error.location), (damaged, SourceLocation::Record(1)));
}
