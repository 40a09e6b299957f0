use super::*;
use crate::record::Record;
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, SimTime};

fn record(ms: u64, op: Op, volume: u16, lba: u64, sectors: u32) -> Record {
    let request = Request { volume, flags: Flags::NONE, ..Request::new(op, Lba(lba), sectors) };
    let response = (op == Op::Read).then(|| SimDuration::from_us(100));
    Record { at: SimTime::ZERO + SimDuration::from_ms(ms), request, response }
}

fn profiled(records: &[Record], has_times: bool) -> Profile {
    let mut profiler = Profiler::new(has_times);
    records.iter().for_each(|record| profiler.take(record));
    profiler.finish(&["a".to_owned()])
}

#[test]
fn a_small_trace_counted_by_hand() {
    let profile = profiled(
        &[
            record(0, Op::Write, 0, 0, 8),
            record(10, Op::Write, 0, 8, 8),
            record(20, Op::Read, 1, 16, 16),
            record(20, Op::Write, 0, 16, 1),
            record(30, Op::Write, 0, 0, 8),
            record(30, Op::Flush, 0, 0, 0),
            record(40, Op::Trim, 1, 32, 100),
            record(60, Op::Read, 0, 4, 8),
        ],
        true,
    );
    assert_eq!((profile.requests, profile.flushes, profile.trims), (7, 1, 1));
    assert_eq!((profile.reads, profile.writes), (2, 4));
    assert_eq!(profile.bytes, (8 + 8 + 16 + 1 + 8 + 100 + 8) * 512);
    // Volume 0: sectors 0 to 16; volume 1: 16 to 131.
    assert_eq!(profile.footprint_bytes, (17 + 116) * 512);
    assert_eq!(profile.footprint_sampled_fraction, 1.0);
    // The second write, the one-sector write, and the trim follow on their volumes.
    assert!((profile.sequential_fraction - 3.0 / 7.0).abs() < 1e-12);
    assert_eq!(profile.span_ns, 60_000_000);
    let gaps = profile.interarrival_ns.expect("seven requests");
    assert_eq!((gaps.count, gaps.min, gaps.max), (6, 0, 20_000_000));
    assert!((gaps.mean - 1e7).abs() < 1.0);
    assert_eq!(profile.response_ns.map(|d| (d.count, d.max)), Some((2, 100_000)));
    let updates: Vec<_> =
        profile.updates.iter().map(|class| (class.up_to_bytes, class.update_ratio)).collect();
    assert_eq!(updates, [(512, 1.0), (4096, 1.5)]);
    let sizes: Vec<_> = profile.sizes.iter().map(|class| class.up_to_bytes).collect();
    assert_eq!(sizes, [512, 4096, 8192, 65536]);
    assert_eq!((profile.volumes[0].name.as_str(), profile.volumes[1].requests), ("a", 2));
    assert_eq!(profile.volumes[1].extent_bytes, 132 * 512);
    // Volume 1 begins at the next MiB.
    assert_eq!(profile.device_bytes, (1 << 20) + 132 * 512);
    // Blocks used: 0 and 1 and 2 of volume 0, 2 and 3 of volume 1; uses 3, 2, 1, 1, 1.
    assert_eq!(profile.hot_spots.blocks, 5);
    assert!((profile.hot_spots.top_percent_fraction - 3.0 / 8.0).abs() < 1e-12);
    assert!((profile.reuse.cold_fraction - 5.0 / 8.0).abs() < 1e-12);
}

#[test]
fn a_trace_without_times_has_no_span() {
    let profile = profiled(&[record(0, Op::Read, 0, 0, 8), record(0, Op::Read, 0, 8, 8)], false);
    assert_eq!((profile.span_ns, profile.interarrival_ns), (0, None));
    assert!(profile.rows().iter().any(|(label, _)| label == "times"));
}

#[test]
fn hostile_requests_are_survived() {
    let profile = profiled(
        &[
            record(0, Op::Write, u16::MAX, u64::MAX, u32::MAX),
            record(0, Op::Read, 0, u64::MAX - 1, 1),
            record(0, Op::Write, 3, 0, u32::MAX),
            record(0, Op::Write, 3, 5, 0),
        ],
        true,
    );
    assert_eq!(profile.requests, 4);
    assert!(!profile.rows().is_empty());
}

#[test]
fn the_keys_are_stable() {
    let profile = profiled(&[record(0, Op::Write, 0, 0, 8)], true);
    let json = serde_json::to_value(&profile).expect("plain data");
    for key in ["requests", "read_fraction", "footprint_bytes", "interarrival_ns", "updates"] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["updates"][0]["update_ratio"], 1.0);
    assert_eq!(json["volumes"][0]["extent_bytes"], 4096);
}

/// Compares with a figure of the list, to as many digits as it has.
fn agrees(listed: &str, ours: f64) -> bool {
    let listed = listed.replace(',', "");
    let digits = listed.split_once('.').map_or(0, |(_, digits)| digits.len());
    let value: f64 = listed.parse().expect("a number");
    (value - ours).abs() <= 0.5001 * 10f64.powi(-(digits as i32))
}

#[test]
fn real_traces_have_the_figures_of_their_list() {
    use crate::trace::{OpenOptions, open};
    let Some(data) = std::env::var_os("HYBRIDSIM_DATA").map(std::path::PathBuf::from) else {
        println!("skipped: HYBRIDSIM_DATA names no folder with traces");
        return;
    };
    let list = std::fs::read_to_string(data.join("traces/MANIFEST.md")).expect("its list");
    let mut files = 0;
    // One of each kind: text and binary, with and without times, one and many volumes.
    for name in ["14disk", "cloudphysics", "arc-winnt-P3", "hpux", "systor17", "msr-hm0"] {
        let line = list.lines().find(|line| line.starts_with("| `") && line.contains(name));
        let columns: Vec<&str> = line.expect("in the list").split('|').map(str::trim).collect();
        let path = data.join("traces").join(columns[1].trim_matches('`'));
        // The list counts sequential requests in file order.
        let options = OpenOptions { reorder_records: 0, ..OpenOptions::default() };
        let mut trace = open(&path, &options).expect("a trace");
        let profile = profile(&mut trace, &mut |_| {}).expect("whole");
        let check = |column: usize, ours: f64| {
            assert!(agrees(columns[column], ours), "{name}: {} is not {ours}", columns[column]);
        };
        check(3, profile.requests as f64);
        check(5, profile.read_fraction * 100.0);
        check(6, profile.request_bytes_mean / 1024.0);
        check(9, profile.footprint_bytes as f64 / f64::from(1 << 30));
        check(10, profile.sequential_fraction * 100.0);
        if let Some(gaps) = profile.interarrival_ns.filter(|_| name != "systor17") {
            check(7, profile.span_ns as f64 / 1e9);
            check(8, gaps.mean / 1e6);
        }
        files += 1;
    }
    assert_eq!(files, 6);
}
