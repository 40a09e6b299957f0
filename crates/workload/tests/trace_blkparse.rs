//! blktrace's own printer as an oracle: the binary files of three CPUs, merged by us, against what
//! blkparse makes of them, read back from its text.

use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::Stream;
use hybridsim_workload::record::{Record, RecordReader};
use hybridsim_workload::trace::{OpenOptions, open};
use std::path::Path;
use std::process::{Command, Stdio};

const READ: u32 = 1;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const AHEAD: u32 = 1 << 11;
const META: u32 = 1 << 12;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;

struct Event {
    time_ns: u64,
    cpu: u32,
    sector: u64,
    bytes: u32,
    category: u32,
    act: u32,
}

fn events() -> Vec<Event> {
    const KINDS: [u32; 9] = [
        READ,
        READ | AHEAD,
        READ | META,
        WRITE,
        WRITE | SYNC,
        WRITE | SYNC | META,
        WRITE | SYNC | FLUSH,
        WRITE | SYNC | FUA,
        WRITE | SYNC | DISCARD,
    ];
    let mut stream = Stream::new(5, "blkparse");
    let (mut events, mut now_ns) = (Vec::new(), 1000);
    for number in 0..3000 {
        now_ns += 1 + stream.below(200_000);
        let category = KINDS[stream.below(KINDS.len() as u64) as usize];
        let (sector, bytes) = (stream.below(1 << 30), (1 + stream.below(63) as u32) * 512);
        let cpu = stream.below(3) as u32;
        let done_ns = now_ns + 1000 + stream.below(400_000);
        let other_cpu = stream.below(3) as u32;
        for (time_ns, cpu, act) in
            [(now_ns, cpu, QUEUE), (now_ns + 500, cpu, ISSUE), (done_ns, other_cpu, COMPLETE)]
        {
            events.push(Event { time_ns, cpu, sector, bytes, category, act });
        }
        if number % 50 == 0 {
            let category = WRITE | SYNC | FLUSH;
            let time_ns = now_ns + 600;
            events.push(Event { time_ns, cpu, sector: 0, bytes: 0, category, act: ISSUE });
        }
    }
    events.sort_by_key(|event| event.time_ns);
    events
}

fn write_binary(folder: &Path) {
    let mut files = [Vec::new(), Vec::new(), Vec::new()];
    for (number, event) in events().iter().enumerate() {
        let file: &mut Vec<u8> = &mut files[event.cpu as usize];
        file.extend(0x6561_7407u32.to_le_bytes());
        file.extend((number as u32).to_le_bytes());
        file.extend(event.time_ns.to_le_bytes());
        file.extend(event.sector.to_le_bytes());
        file.extend(event.bytes.to_le_bytes());
        file.extend((event.category << 16 | event.act).to_le_bytes());
        file.extend(77u32.to_le_bytes());
        file.extend((8u32 << 20 | 16).to_le_bytes());
        file.extend(event.cpu.to_le_bytes());
        file.extend([0; 4]);
    }
    for (cpu, file) in files.iter().enumerate() {
        std::fs::write(folder.join(format!("x.blktrace.{cpu}")), file).expect("a file");
    }
}

fn read(path: &Path, event: &str) -> (&'static str, Vec<Record>) {
    let settings = Settings::default().and("event", Value::Text(event.to_owned()));
    let options = OpenOptions { settings, ..OpenOptions::default() };
    let mut trace = open(path, &options).expect("a trace");
    let mut records = Vec::new();
    while let Some(record) = trace.next().expect("a good trace") {
        records.push(record);
    }
    assert_eq!(trace.volumes(), ["8,16"]);
    assert!(trace.warnings().is_empty(), "{:?}", trace.warnings());
    (trace.format.name, records)
}

#[test]
fn binary_and_printed_events_agree() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_binary(folder.path());
    let mut blkparse = Command::new("blkparse");
    blkparse.args(["-q", "-i", "x", "-o", "x.txt"]).current_dir(folder.path());
    if !blkparse.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: blkparse is not installed");
        return;
    }
    for (event, count, responses) in [("Q", 3000, 3000), ("D", 3060, 3000), ("best", 3060, 3000)] {
        let (binary, ours) = read(&folder.path().join("x.blktrace.1"), event);
        let (text, printed) = read(&folder.path().join("x.txt"), event);
        assert_eq!((binary, text), ("blktrace", "blkparse"));
        assert_eq!(ours.len(), count);
        assert_eq!(ours.iter().filter(|r| r.response.is_some()).count(), responses);
        for (number, (ours, printed)) in ours.iter().zip(&printed).enumerate() {
            assert_eq!(ours, printed, "record {number} of {event} events");
        }
        assert_eq!(ours.len(), printed.len());
    }
}
