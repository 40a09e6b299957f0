use super::*;
use crate::record::{Record, RecordReader, SourceLocation, TraceResult, Warning};
use crate::testing::settings;
use hybridsim_engine::{Arrival, Lba, Op, Request, SimDuration, SimTime, Source};
use proptest::prelude::*;

#[derive(Clone)]
struct List {
    records: Vec<Record>,
    at: usize,
    timed: bool,
}

impl RecordReader for List {
    fn next(&mut self) -> TraceResult<Option<Record>> {
        self.at += 1;
        Ok(self.records.get(self.at - 1).copied())
    }
    fn warnings(&self) -> &[Warning] {
        &[]
    }
    fn progress(&self) -> Option<f64> {
        Some(self.at as f64 / (self.records.len() + 1) as f64)
    }
    fn has_times(&self) -> bool {
        self.timed
    }
}

/// (ms, volume, first sector, sectors)
type Row = (u64, u16, u64, u32);

fn record(&(ms, volume, lba, sectors): &Row) -> Record {
    let request = Request { volume, ..Request::new(Op::Write, Lba(lba), sectors) };
    Record { at: SimTime::ZERO + SimDuration::from_ms(ms), request, response: None }
}

fn replayed(rows: &[Row], text: &str, capacity: u64) -> Result<(Vec<Row>, Warnings), String> {
    let list = List { records: rows.iter().map(record).collect(), at: 0, timed: true };
    let settings = settings(PARAMS, text);
    let open = move || Ok(Box::new(list.clone()) as Box<dyn RecordReader>);
    let mut source = replay(&settings, open, capacity).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    while let Some(Arrival { at, request }) = source.next()? {
        out.push((at.as_ns() / 1_000_000, request.volume, request.lba.0, request.sectors));
    }
    assert_eq!(source.progress(), Some(1.0));
    Ok((out, source.warnings()))
}

const ROWS: &[Row] = &[(0, 0, 0, 8), (10, 1, 100, 8), (20, 0, 5_000, 16), (40, 1, 0, 8)];

#[track_caller]
fn check(text: &str, expect: &[Row]) {
    let (rows, warnings) = replayed(ROWS, text, 1 << 20).expect("a replay");
    assert_eq!(rows, expect, "{text}");
    assert!(warnings.list().is_empty());
}

#[track_caller]
fn check_error(rows: &[Row], text: &str, capacity: u64, words: &[&str]) {
    let error = match replayed(rows, text, capacity) {
        Ok((rows, _)) => panic!("{text:?} gave {rows:?}"),
        Err(error) => error,
    };
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

#[test]
fn volumes_are_laid_out() {
    // Volume 0 reaches to sector 5,016, so volume 1 starts at the next MiB: 6,144.
    check("", &[(0, 0, 0, 8), (10, 1, 6_244, 8), (20, 0, 5_000, 16), (40, 1, 6_144, 8)]);
    check("volume_layout = \"overlay\"", ROWS);
    check(
        "volume_layout = \"stride\"\nvolume_stride = \"4MiB\"",
        &[(0, 0, 0, 8), (10, 1, 8_292, 8), (20, 0, 5_000, 16), (40, 1, 8_192, 8)],
    );
    check("volumes = [1]", &[(10, 1, 100, 8), (40, 1, 0, 8)]);
    check(
        "volumes = [1, 0]\nvolume_layout = \"stride\"\nvolume_stride = \"4MiB\"",
        &[(0, 0, 8_192, 8), (10, 1, 100, 8), (20, 0, 13_192, 16), (40, 1, 0, 8)],
    );
}

#[test]
fn times_are_scaled_or_dropped() {
    let overlay = "volume_layout = \"overlay\"\n";
    let times = |text: &str| {
        let (rows, _) = replayed(ROWS, &format!("{overlay}{text}"), 1 << 20).expect("a replay");
        rows.iter().map(|row| row.0).collect::<Vec<_>>()
    };
    assert_eq!(times("time_scale = 2.5"), [0, 25, 50, 100]);
    assert_eq!(times("time_scale = 0.5"), [0, 5, 10, 20]);
    assert_eq!(times("times = \"at-once\""), [0, 0, 0, 0]);
    // 40 ms in three gaps: the next pass starts 13 ms after the last request.
    assert_eq!(times("loops = 3"), [0, 10, 20, 40, 53, 63, 73, 93, 106, 116, 126, 146]);
    assert_eq!(times("loops = 2\ntime_scale = 0.5"), [0, 5, 10, 20, 26, 31, 36, 46]);
}

#[test]
fn slices_by_number_and_time() {
    let overlay = "volume_layout = \"overlay\"\n";
    let check = |text: &str, expect: &[Row]| check(&format!("{overlay}{text}"), expect);
    check("first = 2\ncount = 2", &[(0, 1, 100, 8), (10, 0, 5_000, 16)]);
    check("from = \"15ms\"", &[(5, 0, 5_000, 16), (25, 1, 0, 8)]);
    check("from = \"10ms\"\nuntil = \"40ms\"", &[(0, 1, 100, 8), (10, 0, 5_000, 16)]);
    check("count = 1\nloops = 2", &[(0, 0, 0, 8), (0, 0, 0, 8)]);
    check(
        "first = 3\nloops = 2",
        &[(0, 0, 5_000, 16), (20, 1, 0, 8), (40, 0, 5_000, 16), (60, 1, 0, 8)],
    );
}

#[test]
fn large_requests_are_cut() {
    let text = "request_max = \"3KiB\"\nvolumes = [0]";
    check(
        text,
        &[(0, 0, 0, 6), (0, 0, 6, 2), (20, 0, 5_000, 6), (20, 0, 5_006, 6), (20, 0, 5_012, 4)],
    );
}

#[test]
fn out_of_range_is_an_error_with_a_remedy() {
    let overlay = "volume_layout = \"overlay\"";
    check_error(ROWS, overlay, 5_010, &["record 3", "5010 sectors", "wrap", "remap"]);
    let far = &[(0, 0, u64::MAX - 3, 8)];
    check_error(far, overlay, 5_010, &["record 1"]);
    check_error(far, "address = \"wrap\"", 5_010, &["record 1"]);
}

#[test]
fn wrapping_keeps_every_sector_and_warns() {
    let rows = &[(0, 0, 95, 10), (1, 0, 205, 250)];
    let (out, warnings) = replayed(rows, "address = \"wrap\"", 100).expect("a replay");
    assert_eq!(out, [(0, 0, 95, 5), (0, 0, 0, 5), (1, 0, 5, 95), (1, 0, 0, 100), (1, 0, 0, 55)]);
    let list = warnings.list();
    assert_eq!((list.len(), list[0].count, list[0].location), (1, 5, SourceLocation::Record(1)));
}

#[test]
fn remapping_packs_what_is_accessed_in_order_of_address() {
    // Granules of 64 KiB are 128 sectors.
    let text = "address = \"remap\"\ngranule = \"64KiB\"";
    let rows = &[
        (0, 0, 1_000_000, 8),
        (1, 3, 1_000_000, 8),
        (2, 0, 1_000_000 + 60, 8),
        (3, 0, 5, 8),
        (4, 0, 120, 300),
    ];
    let (out, _) = replayed(rows, text, 128 * 7).expect("a replay");
    let within = 1_000_000 % 128;
    // Granules 0 to 3, then 7812 and 7813, then that of volume 3: every request stays whole.
    let expect = [
        (0, 0, 4 * 128 + within, 8),
        (1, 3, 6 * 128 + within, 8),
        (2, 0, 4 * 128 + within + 60, 8),
        (3, 0, 5, 8),
        (4, 0, 120, 300),
    ];
    assert_eq!(out, expect);
    check_error(rows, text, 128 * 6, &["6 granules", "workload.granule", "--fit"]);
}

#[test]
fn fit_changes_only_what_does_not_fit() {
    let rows = &[(0, 0, 1_000_000, 8), (1, 1, 5_000_000, 16), (2, 0, 1_000_008, 8)];
    let (out, warnings) = replayed(rows, "fit = true", 1 << 23).expect("a replay");
    assert_eq!((out[0].2, warnings.list().len()), (1_000_000, 0), "it fits as it is");
    let (out, warnings) = replayed(rows, "fit = true", 5_000).expect("a replay");
    let within = 1_000_000 % 2048;
    assert_eq!(out[0], (0, 0, within, 8));
    assert_eq!(out[1], (1, 1, 2048 + 5_000_000 % 2048, 16));
    assert_eq!(out[2], (2, 0, within + 8, 8));
    let notes: Vec<_> = warnings.list().iter().map(|w| w.message.clone()).collect();
    assert!(notes[0].starts_with("fit: ") && notes[0].contains("2 granules of 1024 KiB"));
    // Smaller granules where the device is small.
    let (_, warnings) = replayed(rows, "fit = true", 1_500).expect("a replay");
    assert!(warnings.list()[0].message.contains("2 granules of 256 KiB"));
    check_error(rows, "fit = true", 12, &["`fit`", "4 KiB", "larger device"]);
    check_error(rows, "", 5_000, &["needs a device of", "workload.address", "--fit"]);
}

#[test]
fn scaling_squeezes_by_whole_granules() {
    let text = "address = \"scale\"\ngranule = \"64KiB\"";
    let rows: Vec<Row> = (0..100).map(|index| (index, 0, index * 128 + 3, 8)).collect();
    let (out, _) = replayed(&rows, text, 128 * 10).expect("a replay");
    for (index, row) in out.iter().enumerate() {
        assert_eq!(row.2, index as u64 / 10 * 128 + 3);
    }
    let (same, _) = replayed(&rows, text, 128 * 100).expect("a replay");
    assert_eq!(same, rows);
    // Requests across granules stay whole.
    let rows: Vec<Row> = (0..100).map(|index| (index, 0, index * 128 + 100, 90)).collect();
    let (out, _) = replayed(&rows, text, 128 * 10).expect("a replay");
    assert!(out.len() == 100 && out.iter().all(|row| row.3 == 90 && row.2 + 90 <= 1280));
}

#[test]
fn flushes_have_no_address_and_empty_requests_are_left_out() {
    let mut flush = record(&(5, 0, u64::MAX, 9));
    flush.request.op = Op::Flush;
    let records = vec![record(&(0, 0, 0, 0)), flush, record(&(6, 0, 8, 8))];
    let list = List { records, at: 0, timed: true };
    let open = move || Ok(Box::new(list.clone()) as Box<dyn RecordReader>);
    let mut source = replay(&settings(PARAMS, ""), open, 100).expect("a replay");
    let first = source.next().expect("fine").expect("a flush").request;
    assert_eq!((first.op, first.lba, first.sectors), (Op::Flush, Lba(0), 0));
    assert_eq!(source.next().expect("fine").expect("a write").request.lba, Lba(8));
    assert_eq!(source.next(), Ok(None));
    assert!(source.warnings().list()[0].message.contains("length zero"));
}

#[test]
fn a_trace_without_times_arrives_at_once_with_a_warning() {
    let list = List { records: ROWS.iter().map(record).collect(), at: 0, timed: false };
    let open = move || Ok(Box::new(list.clone()) as Box<dyn RecordReader>);
    let source = replay(&settings(PARAMS, ""), open, 1 << 20).expect("a replay");
    assert!(!source.has_times());
    assert!(source.warnings().list()[0].message.contains("no times"));
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    check_error(ROWS, "from = \"5ms\"\nuntil = \"5ms\"", 100, &["until"]);
    check_error(ROWS, "volumes = []", 100, &["volumes"]);
    check_error(ROWS, "volumes = [70000]", 100, &["volumes"]);
    check_error(ROWS, "volumes = [9]", 100, &["volumes", "4 records"]);
    check_error(ROWS, "first = 9", 100, &["first"]);
    check_error(&[], "", 100, &["no request"]);
    check_error(ROWS, "volume_layout = \"stride\"", 100, &["volume_stride"]);
    check_error(ROWS, "volume_stride = \"1MiB\"", 100, &["volume_stride"]);
    let stride = "volume_layout = \"stride\"\nvolume_stride = \"1MiB\"";
    check_error(ROWS, stride, 1 << 20, &["record 3", "volume_stride"]);
    check_error(ROWS, "request_max = \"100B\"", 100, &["request_max"]);
    check_error(ROWS, "address = \"remap\"\ngranule = \"4KiB\"", 1 << 20, &["granule"]);
    check_error(ROWS, "address = \"remap\"", 100, &["granule"]);
    check_error(ROWS, "fit = true\ngranule = \"4KiB\"", 100, &["granule"]);
    check_error(
        ROWS,
        "request_max = \"0B\"\nvolumes = []",
        0,
        &["request_max", "volumes", "capacity"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pieces_stay_in_the_device_and_cover_the_request(
        mut rows in proptest::collection::vec(
            (0u64..50, 0u16..4, 0u64..20_000, 1u32..700), 1..40),
        mode in 0usize..3,
        capacity in 1_000u64..30_000,
        loops in 1u64..3,
    ) {
        rows.sort_unstable_by_key(|row| row.0);
        let mode = ["wrap", "scale", "remap"][mode];
        let text = format!(
            "address = {mode:?}\ngranule = \"64KiB\"\nloops = {loops}\nrequest_max = \"100KiB\""
        );
        match replayed(&rows, &text, capacity) {
            Err(error) => {
                prop_assert!(mode == "remap" && error.contains("granules"), "{error}");
            },
            Ok((out, _)) => {
                let total = |rows: &[Row]| rows.iter().map(|row| u64::from(row.3)).sum::<u64>();
                prop_assert_eq!(total(&out), total(&rows) * loops);
                prop_assert!(out.iter().all(|row| row.2 + u64::from(row.3) <= capacity));
                prop_assert!(out.iter().all(|row| row.3 >= 1 && row.3 <= 200));
                prop_assert!(out.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            }
        }
    }
}
