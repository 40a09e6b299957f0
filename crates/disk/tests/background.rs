//! What the mechanism does while commands arrive and data cross the link: when buffered writes own
//! it, when command times run, and when the link is idle. The rules are DiskSim's.

mod common;

use common::{build, one_by_one, one_by_one_on};
use hybridsim_engine::{LatencyPhase, Lba, Op, Request, SimDuration};

/// A turn takes 10 ms, a sector 0.1 ms; a sector takes as long on its way from the host.
const DRIVE: &str = r#"
kind = "hard-disk"
rpm = "6000rpm"
heads = 2
cylinders = 100
outer_sectors_per_track = 100
inner_sectors_per_track = 100
zone_count = 1
head_switch = "1ms"
cache_segment_size = "32KiB"
cache_segments = 4
synchronised = true
write_hit_overhead = "500us"
read_miss_overhead = "500us"
host_write_rate = "5.12MB/s"
seek = { kind = "linear", single = "1ms", full = "10ms" }
"#;

/// A sector that passes 0.5 ms after an arm that left 0.5 ms after the start has arrived: a seek of
/// fifty cylinders takes 5.5 ms.
const FAR: u64 = 50 * 200 + 65;

const fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

fn write(lba: u64) -> Request {
    Request::new(Op::Write, Lba(lba), 10)
}

/// The completion of each request that comes at the completion before, in microseconds.
fn completions_us(text: &str, work: &[Request]) -> Vec<u64> {
    let work = work.iter().map(|request| (SimDuration::ZERO, *request)).collect();
    let mut at = 0;
    let end = |latency: SimDuration| {
        at += latency.as_ns();
        (at + 500) / 1_000
    };
    let (done, _) = one_by_one(text, work);
    done.iter().map(|done| done.latency).map(end).collect()
}

#[test]
fn the_arm_leaves_with_the_command_of_a_buffered_write() {
    let flush = Request::new(Op::Flush, Lba(0), 0);
    // Buffered after command and link; on the medium from 6.5 ms on, not a turn later.
    assert_eq!(completions_us(DRIVE, &[write(FAR), flush]), [1_500, 7_500]);
    let waiting = |text: &str| {
        let work = [write(FAR), Request::new(Op::Read, Lba(0), 8)];
        let work = work.map(|request| (SimDuration::ZERO, request)).to_vec();
        one_by_one(text, work).0[1].breakdown.get(LatencyPhase::Queue)
    };
    assert!(waiting(DRIVE) > us(5_000), "a read waits until the write is on the medium");
    let later = format!("{DRIVE}destage_delay = \"10s\"\n");
    assert_eq!(waiting(&later), SimDuration::ZERO, "unless the drive delays it");
}

/// Data that arrive after the arm: the write waits for them, a turn later.
#[test]
fn a_buffered_write_waits_for_its_data() {
    let flush = Request::new(Op::Flush, Lba(0), 0);
    let slow = format!("{DRIVE}data_preparation_overhead = \"6ms\"\n");
    assert_eq!(completions_us(&slow, &[write(FAR), flush]), [7_500, 17_500]);
}

#[test]
fn without_prebuffering_a_write_waits_for_the_mechanism_unless_it_goes_on() {
    let other = completions_us(DRIVE, &[write(FAR), write(0)]);
    assert_eq!(other, [1_500, 3_000]);
    for depth in [1, 32] {
        let text = format!("{DRIVE}write_prebuffering = false\nqueue_depth = {depth}\n");
        // It has been looked at when the mechanism is free at 7.5 ms, so its data follow at once.
        assert_eq!(completions_us(&text, &[write(FAR), write(0)]), [1_500, 8_500]);
        assert_eq!(completions_us(&text, &[write(FAR), write(FAR + 10)]), [1_500, 3_000]);
        // And its arm leaves then: 5.5 ms to sector 30, which passes at 13 ms.
        let flush = Request::new(Op::Flush, Lba(0), 0);
        let flushed = completions_us(&text, &[write(FAR), write(30), flush]);
        assert_eq!(flushed[1..], [8_500, 14_000]);
    }
}

#[test]
fn schedulers_see_no_free_buffer_where_a_write_needs_the_mechanism() {
    for (prebuffers, expect) in [(true, true), (false, false)] {
        let drive = build(&format!("{DRIVE}write_prebuffering = {prebuffers}\n"));
        let estimates = drive.positioner().expect("a drive has estimates");
        one_by_one_on(drive, vec![(SimDuration::ZERO, write(FAR))]);
        assert_eq!(estimates.is_buffered(&write(0)), expect);
    }
}

/// A command is processed while the drive writes its own buffer, so that nothing is missed when
/// that is done.
#[test]
fn command_times_run_from_the_arrival() {
    for depth in [1, 32] {
        let text = format!("{DRIVE}queue_depth = {depth}\n");
        let read = Request::new(Op::Read, Lba(FAR + 10), 8);
        assert_eq!(completions_us(&text, &[write(FAR), read]), [1_500, 8_300]);
    }
}

/// A link half as fast as the medium is idle while the head moves to the next track: what is read
/// there starts to cross it when it has come.
#[test]
fn the_link_is_idle_during_a_track_switch() {
    let text = DRIVE.replace("\"500us\"", "\"0us\"") + "host_rate = \"2.56MB/s\"\n";
    let read = |lba, sectors| Request::new(Op::Read, Lba(lba), sectors);
    let cached = format!("{text}resettle_share = 0\n");
    let bare = cached.replace("cache_segments = 4", "cache_segments = 0");
    // Ten sectors until 10 ms; the next track's first one has passed at 20.1 ms.
    assert_eq!(completions_us(&bare, &[read(90, 20)]), [22_100]);
    // The same with a read that joins a read-ahead.
    assert_eq!(completions_us(&cached, &[read(80, 5), read(85, 20)]), [9_100, 21_100]);
}
