//! What unpacks to much more than it is must not need more memory. Alone in its process, so that
//! the peak is its own.

use hybridsim_workload::record::RecordReader;
use hybridsim_workload::trace::{ENTRIES, OpenOptions, open};
use std::io::Write;

const BOMB_BYTES: usize = 24 << 20;
const GROWTH_BYTES_MAX: u64 = 12 << 20;

/// Peak resident memory of this process so far, where the system reports it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn bomb(fill: u8) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    let chunk = vec![fill; 1 << 20];
    for _ in 0..BOMB_BYTES / chunk.len() {
        encoder.write_all(&chunk).expect("memory");
    }
    encoder.finish().expect("memory")
}

#[test]
fn gzip_bombs_need_constant_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bomb");
    // Any bytes are records of `binary`.
    let entries = ENTRIES.iter().filter(|entry| entry.description.name != "binary");
    let names = entries.map(|entry| Some(entry.description.name.to_owned()));
    let formats: Vec<_> = names.chain([None]).collect();
    let before = peak_bytes();
    for fill in [0u8, b'1', b' ', 0xff] {
        std::fs::write(&path, bomb(fill)).expect("a temporary file");
        for format in &formats {
            let options = OpenOptions { format: format.clone(), ..OpenOptions::default() };
            let end = open(&path, &options).and_then(|mut trace| trace.next());
            assert!(end.is_err(), "{format:?} of bytes {fill} gave {end:?}");
        }
    }
    match (before, peak_bytes()) {
        (Some(before), Some(after)) => {
            assert!(after - before < GROWTH_BYTES_MAX, "{} MiB", (after - before) >> 20);
        }
        _ => println!("skipped: this system does not report peak memory"),
    }
}

#[test]
fn endless_records_need_constant_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("long");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    for number in 0..300_000u64 {
        // Times in no order at all, over many volumes.
        let time = number * 7919 % 100_003;
        writeln!(file, "{time},{},8,0,{}", number * 131 % 999_983, number % 60_000).expect("disk");
    }
    file.flush().expect("disk");
    let mut trace = open(&path, &OpenOptions::default()).expect("a trace");
    let before = peak_bytes();
    let mut count = 0;
    while trace.next().expect("a good trace").is_some() {
        count += 1;
    }
    assert_eq!(count, 300_000);
    assert!(trace.warnings().len() <= 3, "one warning a kind");
    if let (Some(before), Some(after)) = (before, peak_bytes()) {
        assert!(after - before < GROWTH_BYTES_MAX, "{} MiB", (after - before) >> 20);
    }
}
