//! What theory says about a disk, against what the drive does.

mod common;

use common::one_by_one;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::{
    CommonEvent, Completion, EventRecord, Flags, LatencyPhase, Lba, Op, PowerState, Request,
    SimDuration, Stream,
};

/// A drive without buffer, overheads or link time, for exact figures.
const BARE: &str = r#"
kind = "hard-disk"
rpm = "7200rpm"
heads = 4
cylinders = 2000
outer_sectors_per_track = 600
inner_sectors_per_track = 300
zone_count = 4
cache_segments = 0
write_cache = false
idle_power = "5W"
resettle_share = 0
seek = { kind = "curve", single = "1ms", average = "8ms", full = "16ms" }
"#;

const TURN_NS: f64 = 60e9 / 7200.0;

fn random_reads(text: &str, count: usize, sectors: u32) -> (Vec<Completion>, Vec<EventRecord>) {
    let capacity = common::build(text).capacity();
    let mut stream = Stream::new(3, "reads");
    let work = (0..count)
        .map(|_| {
            let lba = Lba(stream.below(capacity - u64::from(sectors)));
            // A random pause, or the arrivals would keep step with the platter.
            let pause = SimDuration::from_ns(stream.below(20_000_000) + 1);
            (pause, Request::new(Op::Read, lba, sectors))
        })
        .collect();
    one_by_one(text, work)
}

fn mean(done: &[Completion], part: LatencyPhase) -> f64 {
    let total: f64 = done.iter().map(|done| done.breakdown.get(part).as_ns() as f64).sum();
    total / done.len() as f64
}

fn close(got: f64, expected: f64, tolerance: f64) {
    let error = (got / expected - 1.0).abs();
    assert!(error < tolerance, "{got} against {expected}: off by {error}");
}

#[test]
fn the_mean_rotational_latency_is_half_a_turn() {
    let (done, _) = random_reads(BARE, 40_000, 1);
    close(mean(&done, LatencyPhase::Rotate), TURN_NS / 2.0, 0.01);
}

#[test]
fn the_mean_random_seek_is_the_integral_of_the_curve() {
    // One zone, so that random sectors are random cylinders; Lee's curve has this mean built in.
    let text = BARE.replace("zone_count = 4", "zone_count = 1");
    let (done, events) = random_reads(&text, 40_000, 1);
    close(mean(&done, LatencyPhase::Seek), 8e6, 0.01);
    let reported: u64 = events
        .iter()
        .filter_map(EventRecord::event)
        .flat_map(DiskEvent::parts)
        .map(|part| if let DiskEvent::Seek { duration, .. } = part { duration.as_ns() } else { 0 })
        .sum();
    close(reported as f64 / done.len() as f64, mean(&done, LatencyPhase::Seek), 1e-9);
}

#[test]
fn transfer_time_follows_the_zone() {
    let (done, _) = one_by_one(BARE, vec![(SimDuration::ZERO, Request::new(Op::Read, Lba(0), 60))]);
    close(done[0].breakdown.get(LatencyPhase::Transfer).as_ns() as f64, TURN_NS / 10.0, 1e-6);
    let last = common::build(BARE).capacity() - 60;
    let request = Request::new(Op::Read, Lba(last), 60);
    let (done, _) = one_by_one(BARE, vec![(SimDuration::ZERO, request)]);
    close(done[0].breakdown.get(LatencyPhase::Transfer).as_ns() as f64, TURN_NS / 5.0, 1e-6);
}

/// Sequential access in one large request takes one turn per track and the skews between.
#[test]
fn sequential_reads_run_at_media_rate_including_skews() {
    let skewed = BARE.replace("zone_count = 4", "zone_count = 1\nskew_unit = \"turns\"")
        + "head_switch = \"0.5ms\"\n";
    let text = skewed + "track_skew = 0.1\ncylinder_skew = 0.25\n";
    let (tracks, per_track) = (400u32, 600u32);
    let request = Request::new(Op::Read, Lba(0), tracks * per_track);
    let (done, _) = one_by_one(&text, vec![(SimDuration::ZERO, request)]);
    let latency = done[0].latency - done[0].breakdown.get(LatencyPhase::Seek);
    let first_wait = latency.as_ns() as f64;
    // 300 head switches and 99 cylinder switches at their skews; the first wait is under a turn.
    let expected = TURN_NS * (f64::from(tracks) + 300.0 * 0.1 + 99.0 * 0.25);
    let whole = first_wait + done[0].breakdown.get(LatencyPhase::Seek).as_ns() as f64;
    assert!((0.0..TURN_NS).contains(&(whole - expected)), "{whole} {expected}");

    // A skew that is too small for the switch costs a whole turn more.
    let short = text.replace("track_skew = 0.1", "track_skew = 0.05");
    let (done, _) = one_by_one(&short, vec![(SimDuration::ZERO, request)]);
    let expected = TURN_NS * (f64::from(tracks) + 300.0 * 1.05 + 99.0 * 0.25);
    let whole = done[0].latency.as_ns() as f64;
    assert!((0.0..TURN_NS).contains(&(whole - expected)), "{whole} {expected}");
}

/// One request after the other, read-ahead in between: still the rate of the medium.
#[test]
fn a_stream_of_small_reads_is_kept_at_media_rate_by_read_ahead() {
    let text = BARE.replace("cache_segments = 0", "cache_segments = 8")
        + "skew_unit = \"turns\"\nhead_switch = \"0.5ms\"\ntrack_skew = 0.1\ncylinder_skew = 0.25\n\
           host_rate = \"300MB/s\"\n";
    let reads = 2_000u32;
    let read = |i: u32| (SimDuration::ZERO, Request::new(Op::Read, Lba(u64::from(i) * 60), 60));
    let (done, events) = one_by_one(&text, (0..reads).map(read).collect());
    let total: f64 = done.iter().map(|done| done.latency.as_ns() as f64).sum();
    // 200 tracks: 150 head switches, 50 cylinder switches.
    let expected = TURN_NS * (200.0 + 149.0 * 0.1 + 50.0 * 0.25);
    assert!((total - expected).abs() < 1.5 * TURN_NS, "{total} {expected}");
    let parts = events.iter().filter_map(EventRecord::event).flat_map(DiskEvent::parts);
    let seeks = parts.filter(|part| matches!(part, DiskEvent::Seek { .. })).count();
    assert_eq!(seeks, 0, "the head never left the stream");
}

#[test]
fn buffered_sequential_writes_reach_media_rate() {
    let text = BARE
        .replace("cache_segments = 0", "cache_segments = 16\ncache_segment_size = \"64KiB\"")
        .replace("write_cache = false", "write_cache = true")
        + "skew_unit = \"turns\"\nhead_switch = \"0.5ms\"\ntrack_skew = 0.1\n\
           cylinder_skew = 0.25\n";
    let write = |i: u32| (SimDuration::ZERO, Request::new(Op::Write, Lba(u64::from(i) * 60), 60));
    let mut work: Vec<_> = (0..4_000).map(write).collect();
    work.push((SimDuration::ZERO, Request::new(Op::Flush, Lba(0), 0)));
    let (done, _) = one_by_one(&text, work);
    let total: f64 = done.iter().map(|done| done.latency.as_ns() as f64).sum();
    let expected = TURN_NS * (400.0 + 300.0 * 0.1 + 100.0 * 0.25);
    close(total, expected, 0.05);
}

#[test]
fn a_zero_latency_drive_reads_a_whole_track_in_one_turn() {
    let text = BARE.replace("cache_segments = 0", "cache_segments = 0\nzero_latency = true");
    for start in 0..20u64 {
        let wait = SimDuration::from_ns(start * 777_777 + 1);
        let work = vec![(wait, Request::new(Op::Read, Lba(0), 600))];
        let (done, _) = one_by_one(&text, work.clone());
        let latency = done[0].latency.as_ns() as f64;
        let sector = TURN_NS / 600.0;
        assert!((TURN_NS - 2.0..=TURN_NS + sector + 2.0).contains(&latency), "{latency}");
        let (usual, _) = one_by_one(BARE, work);
        assert!(usual[0].latency >= done[0].latency);
        close(done[0].breakdown.get(LatencyPhase::Transfer).as_ns() as f64, TURN_NS, 1e-6);
    }
}

#[test]
fn state_times_add_up_to_the_run_time() {
    let spinning =
        "spin_down_after = \"50ms\"\nspin_down_time = \"30ms\"\nspin_up_time = \"90ms\"\n";
    let cached = BARE
        .replace("cache_segments = 0", "cache_segments = 4")
        .replace("write_cache = false", "write_cache = true");
    for text in [BARE.to_owned(), format!("{BARE}{spinning}"), cached.clone(), cached + spinning] {
        let capacity = common::build(&text).capacity();
        let mut stream = Stream::new(5, "mixed");
        let work: Vec<_> = (0..3_000)
            .map(|_| {
                let ops = [Op::Read, Op::Write, Op::Read, Op::Write, Op::Flush];
                let op = ops[stream.below(5) as usize];
                let mut request = Request::new(op, Lba(stream.below(capacity - 900)), 8);
                if stream.chance(0.2) {
                    request.flags = Flags::FUA;
                }
                request.sectors = 1 + stream.below(900) as u32;
                (SimDuration::from_ns(stream.below(200_000_000)), request)
            })
            .collect();
        let waits: u64 = work.iter().map(|(wait, _)| wait.as_ns()).sum();
        let (done, events) = one_by_one(&text, work);
        let run = waits + done.iter().map(|done| done.latency.as_ns()).sum::<u64>();
        let mut by_state = [0; PowerState::COUNT];
        for (state, time) in
            events.iter().filter_map(EventRecord::event).flat_map(CommonEvent::states)
        {
            by_state[state as usize] += time.as_ns();
        }
        assert_eq!(by_state.iter().sum::<u64>(), run, "{by_state:?}");
        let spun = by_state[PowerState::SpinUp as usize] > 0;
        assert_eq!(spun, text.contains("spin_down_after"));
    }
}
