//! Single features of the drive and of the MEMS store, each seen from outside.

mod common;

use common::{build, build_at, machine, one_by_one, one_by_one_on};
use hybridsim_disk::{DiskCacheOutcome, DiskEvent};
use hybridsim_engine::Lba;
use hybridsim_engine::{
    CommonEvent, Completion, EventRecord, Flags, LatencyPhase, Op, PowerState, Request,
    SimDuration, Stream,
};
use std::cell::RefCell;
use std::rc::Rc;

const DRIVE: &str = r#"
kind = "hard-disk"
rpm = "6000rpm"
heads = 2
cylinders = 100
outer_sectors_per_track = 100
inner_sectors_per_track = 100
zone_count = 1
cache_segment_size = "32KiB"
cache_segments = 4
synchronised = true
seek = { kind = "linear", single = "1ms", full = "10ms" }
"#;

fn ms(ms: u64) -> SimDuration {
    SimDuration::from_ms(ms)
}

fn request(op: Op, lba: u64, sectors: u32) -> Request {
    Request::new(op, Lba(lba), sectors)
}

fn served(text: &str, work: &[(u64, Op, u64, u32)]) -> (Vec<Completion>, Vec<DiskCacheOutcome>) {
    let of =
        |&(wait, op, lba, sectors): &(u64, Op, u64, u32)| (ms(wait), request(op, lba, sectors));
    let (done, events) = one_by_one(text, work.iter().map(of).collect());
    let outcome = |event: &EventRecord| match event.event() {
        Some(DiskEvent::DiskCache { outcome, .. }) => Some(outcome),
        _ => None,
    };
    let outcomes = events.iter().filter_map(outcome).collect();
    (done, outcomes)
}

#[test]
fn what_the_host_wrote_is_read_from_the_buffer_if_the_drive_allows() {
    use DiskCacheOutcome::{Buffered, Hit, Miss};
    let work = [(0, Op::Write, 50, 8), (200, Op::Read, 50, 8)];
    assert_eq!(served(DRIVE, &work).1, [Buffered, Hit]);
    let not = format!("{DRIVE}read_hits_on_writes = false\n");
    assert_eq!(served(&not, &work).1, [Buffered, Miss]);
}

#[test]
fn a_dedicated_write_segment_leaves_what_was_read() {
    use DiskCacheOutcome::{Buffered, Hit, Miss};
    let text =
        DRIVE.replace("cache_segments = 4", "cache_segments = 2") + "read_ahead = \"none\"\n";
    let work = [
        (0, Op::Read, 50, 8),
        (200, Op::Write, 5_000, 8),
        (200, Op::Write, 9_000, 8),
        (200, Op::Read, 50, 8),
    ];
    let shared = text.clone() + "cache_write_segments = 2\n";
    assert_eq!(served(&shared, &work).1, [Miss, Buffered, Buffered, Miss]);
    let own = text + "separate_write_segment = true\n";
    assert_eq!(served(&own, &work).1, [Miss, Buffered, Buffered, Hit]);
}

#[test]
fn a_cache_for_appended_writes_lets_others_wait_for_the_medium() {
    let text = format!("{DRIVE}write_cache_appends_only = true\ndestage_delay = \"0us\"\n");
    let work = [(0, Op::Write, 50, 8), (0, Op::Write, 58, 8), (0, Op::Write, 9_000, 8)];
    let latencies = |text: &str| -> Vec<u64> {
        served(text, &work).0.iter().map(|done| done.latency.as_ns()).collect()
    };
    assert!(latencies(DRIVE).iter().all(|&ns| ns < 1_000));
    let waits = latencies(&text);
    assert!(waits[0] < 1_000 && waits[2] > 1_000_000, "{waits:?}");
}

#[test]
fn a_rested_drive_has_to_find_its_track_again() {
    let seek = |text: &str, wait| {
        let bare = text.replace("cache_segments = 4", "cache_segments = 0");
        let (done, _) = served(&bare, &[(0, Op::Read, 0, 1), (wait, Op::Read, 50, 1)]);
        done[1].breakdown.get(LatencyPhase::Seek)
    };
    let half = format!("{DRIVE}resettle_share = 0.5\n");
    assert_eq!(seek(&half, 11), SimDuration::from_us(500), "a turn takes 10 ms");
    assert_eq!(seek(&half, 9), SimDuration::ZERO);
    let none = format!("{DRIVE}resettle_share = 0\n");
    assert_eq!(seek(&none, 11), SimDuration::ZERO);
}

/// A read-ahead goes to the next track, which takes 1 ms, 0.1 ms after the first read is done.
#[test]
fn a_read_ahead_that_is_broken_off_finishes_its_movement() {
    let waited = |gap: u64| {
        let text = format!("{DRIVE}head_switch = \"1ms\"\nread_ahead_stops_in_sector = true\n");
        let gap = SimDuration::from_us(gap);
        let work =
            vec![(SimDuration::ZERO, request(Op::Read, 98, 1)), (gap, request(Op::Read, 5_000, 1))];
        (one_by_one(&text, work).0[1].breakdown.get(LatencyPhase::Queue).as_ns() + 500) / 1_000
    };
    assert_eq!([50, 200, 1_000, 1_200].map(waited), [0, 900, 100, 0]);
}

#[test]
fn overheads_around_the_data_add_up() {
    let text = DRIVE.replace("cache_segments = 4", "cache_segments = 0\nwrite_cache = false")
        + "resettle_share = 0\nhost_rate = \"5.12MB/s\"\nhost_write_rate = \"2.56MB/s\"\n";
    let all = text.clone()
        + "read_completion_overhead = \"3us\"\nwrite_completion_overhead = \"5us\"\n\
           data_preparation_overhead = \"7us\"\nfirst_reselect_overhead = \"11us\"\n\
           read_watermark = 1\n";
    let bus = |text: &str, op| {
        let (done, _) = served(text, &[(0, op, 0, 10)]);
        // Angles are rounded to the nanosecond below.
        SimDuration::from_us((done[0].breakdown.get(LatencyPhase::Bus).as_ns() + 500) / 1_000)
    };
    let us = SimDuration::from_us;
    // Ten sectors take 1 ms on the medium and 1 ms over the link, which begins with the first.
    assert_eq!(bus(&text, Op::Read), us(100));
    // At a watermark of all of it, the drive has connected again by then.
    assert_eq!(bus(&all, Op::Read), us(1_003));
    // Twice as long over the link as on the medium: the last sector has come when the ninth passed.
    assert_eq!(bus(&text, Op::Write), us(1_100));
    assert_eq!(bus(&all, Op::Write), us(1_100 + 7 + 11 + 5));
    let late = all + "minimum_seek_delay = \"2ms\"\n";
    // A write waits for the longer of data and movement, a read for neither.
    assert_eq!(bus(&late, Op::Write), us(2_000 + 11 + 5));
    assert_eq!(bus(&late, Op::Read), us(1_003));
}

#[test]
fn a_write_after_another_that_does_not_go_on_leaves_the_link_once_more() {
    let text = DRIVE.replace("cache_segments = 4", "cache_segments = 0\nwrite_cache = false")
        + "write_miss_overhead = \"80us\"\nextra_disconnect_command_overhead = \"100us\"\n\
           extra_disconnect_seek_delay = \"50us\"\n";
    let wait = SimDuration::from_ms(1);
    let asked = [(Op::Write, 0), (Op::Write, 10), (Op::Write, 30), (Op::Read, 80), (Op::Write, 0)];
    let work = asked.iter().map(|(op, lba)| (wait, request(*op, *lba, 10))).collect();
    let (done, _) = one_by_one(&text, work);
    let command = |at: usize| done[at].breakdown.get(LatencyPhase::Overhead);
    let (usual, extra) = (SimDuration::from_us(80), SimDuration::from_us(150));
    assert_eq!([command(0), command(1), command(2), command(4)], [usual, usual, extra, usual]);
}

#[test]
fn the_spindle_stops_when_the_energy_of_a_start_is_used_up() {
    // (12.39 W x 10.9 s + 8.67 W x 1.5 s - 2.5 W x 12.4 s) / (10.2 W - 2.5 W): IBM 36Z15.
    let text = DRIVE.to_owned()
        + "spin_down_at_break_even = true\nidle_power = \"10.2W\"\nstandby_power = \"2.5W\"\n\
           spin_up_power = \"12.39W\"\nspin_up_time = \"10.9s\"\nspin_down_power = \"8.67W\"\n\
           spin_down_time = \"1.5s\"\n";
    let started = |wait| {
        let (_, events) = one_by_one(&text, vec![(wait, request(Op::Read, 0, 1))]);
        let states = events.iter().filter_map(EventRecord::event).flat_map(CommonEvent::states);
        states.into_iter().any(|(state, _)| state == PowerState::SpinUp)
    };
    assert!(!started(SimDuration::from_ms(15_200)));
    assert!(started(SimDuration::from_ms(15_211)));
    let both = format!("{text}spin_down_after = \"1s\"\n").replace("10.2W", "1W");
    assert_eq!(build_at(&both, "disk").err().map(|problems| problems.len()), Some(2));
}

/// DiskSim's G4 in small: two cylinders of two tracks, the second surface run downwards, repeated.
const INDEX: &str = r#"
kind = "hard-disk"
rpm = "6000rpm"
heads = 2
track_patterns = [0, 9, 12]
layout_index = [
    { rows = [0, 0, 0.0, 10, 1, 0.25, 20, 2, 0, 0, 0,
              20, 1, 0.5, 10, 1, 0.25, 20, -2, 0, 0, 1] },
    { rows = [0, 0, 0.0, 40, 2, 0.125, 160, 8, 1, 0, 0] },
]
slips = [5, 2, 100, 1]
remaps = [8, 1, 159]
seek = { kind = "linear", single = "1ms", full = "10ms" }
"#;

#[test]
fn an_index_of_patterns_is_a_layout() {
    let component = build(INDEX);
    assert_eq!(component.capacity(), 157);
    let positioner = component.positioner().expect("a moving head");
    // Tracks: cylinders 0 and 1 on surface 0, 1 and 0 on surface 1, then the next two.
    let cylinder = |sector: u64| positioner.cylinder(Lba(sector));
    assert_eq!([0, 8, 9, 20, 30, 40, 50, 156].map(cylinder), [0, 6, 1, 1, 0, 2, 3, 6]);
    let check = |from: &str, to: &str, expect: &str| {
        let problems = build_at(&INDEX.replace(from, to), "disk").err().expect("refused");
        assert!(problems.iter().any(|p| p.to_string().contains(expect)), "{problems:?}");
    };
    check("160, 8, 1, 0", "160, 8, 1, 1", "does not come before");
    check("[0, 9, 12]", "[0, 9, 8]", "uses 0 to 9 of 8");
    check("20, 1, 0.5", "21, 1, 0.5", "20 comes next");
    check("20, 1, 0.5", "20, 0, 0.5", "cylinders -1 to");
    check("[5, 2, 100, 1]", "[5, 2, 6, 1]", "slips ascend");
    check("8, 1, 159", "8, 9, 159", "too far");
    check("0, 0, 1] }", "0, 0] }", "a row has 11");
}

#[test]
fn a_mems_store_reads_at_random_in_the_published_time_and_in_sequence_at_its_rate() {
    let text = "kind = \"mems\"\n";
    let capacity = build(text).capacity();
    assert_eq!(capacity, 2_500 * 5 * 27 * 20);
    let mut stream = Stream::new(1, "reads");
    let work: Vec<_> = (0..5_000)
        .map(|_| (SimDuration::ZERO, request(Op::Read, stream.below(capacity - 8), 8)))
        .collect();
    let (done, _) = one_by_one(text, work);
    let mean = done.iter().map(|done| done.latency.as_s_f64()).sum::<f64>() / 5_000.0;
    println!("random 4 KiB read {:.3} ms", mean * 1e3);
    // Published: 0.703 ms without, so 0.9 ms with the 0.2 ms of command processing.
    assert!((0.7e-3..1.1e-3).contains(&mean), "{mean}");
    let long = one_by_one(text, vec![(SimDuration::ZERO, request(Op::Read, 0, 540 * 100))]).0;
    let rate = 540.0 * 100.0 * 512.0 / long[0].latency.as_s_f64();
    assert!((70e6..79.6e6).contains(&rate), "{rate}");
}

#[test]
fn a_mems_store_keeps_data_and_accounts_for_its_time() {
    let text = "kind = \"mems\"\nstandby_after = \"5ms\"\n";
    let capacity = build(text).capacity();
    let mut stream = Stream::new(2, "mixed");
    let work: Vec<_> = (0..2_000)
        .map(|_| {
            let op = [Op::Read, Op::Write, Op::Flush, Op::Trim][stream.below(4) as usize];
            let mut request = request(op, stream.below(capacity - 900), 1);
            request.sectors = 1 + stream.below(900) as u32;
            request.flags = Flags::NONE;
            (SimDuration::from_ns(stream.below(9_000_000)), request)
        })
        .collect();
    let waits: u64 = work.iter().map(|(wait, _)| wait.as_ns()).sum();
    let (done, events) = one_by_one(text, work);
    let run = waits + done.iter().map(|done| done.latency.as_ns()).sum::<u64>();
    let states = events.iter().filter_map(EventRecord::event).flat_map(CommonEvent::states);
    assert_eq!(states.map(|(_, time)| time.as_ns()).sum::<u64>(), run);
    for done in &done {
        let breakdown: SimDuration =
            LatencyPhase::ALL.iter().map(|&part| done.breakdown.get(part)).sum();
        assert_eq!(breakdown, done.latency, "{:?}", done.request);
    }
}

#[test]
fn a_mems_store_without_room_is_refused() {
    for change in ["active_tips = 7000", "tips_per_sector = 1281", "bits_y = 89"] {
        let text = format!("kind = \"mems\"\n{change}\n");
        let problems = build_at(&text, "mems").err().expect("refused");
        assert!(problems[0].message.contains("no sector"), "{change}: {problems:?}");
    }
}

#[test]
fn an_idle_drive_reads_on_behind_a_hit_if_asked_to() {
    use DiskCacheOutcome::{Hit, Miss, Partial};
    let text = format!("{DRIVE}read_ahead_max = 20\n");
    // Sectors 0 to 29 are in the buffer after the first read, up to 39 or not after the second.
    let work = [(0, Op::Read, 0, 10), (50, Op::Read, 10, 10), (50, Op::Read, 30, 8)];
    let reported = |text: &str| served(text, &work).1;
    assert_eq!(reported(&format!("{text}read_ahead_on_hit = true\n")), [Miss, Hit, Hit]);
    assert_eq!(reported(&text), [Miss, Hit, Miss]);
    // What is there of a read goes out at once, the rest when it has come.
    let partly = [(0, Op::Read, 0, 10), (50, Op::Read, 25, 10)];
    let quick = "read_hit_overhead = \"1us\"\nread_miss_overhead = \"5us\"\n\
                 host_rate = \"5.12MB/s\"\n";
    let (done, reported) = served(&format!("{text}{quick}"), &partly);
    assert_eq!(reported, [Miss, Partial]);
    // The medium's last sector and its way over the link, or all of it over the link.
    assert!(done[1].latency >= SimDuration::from_us(5 + 100), "{:?}", done[1].latency);
}

#[test]
fn schedulers_know_what_the_buffer_would_serve() {
    let (read, write) = (
        |lba, sectors| request(Op::Read, lba, sectors),
        |lba, sectors| request(Op::Write, lba, sectors),
    );
    let reported =
        |text: &str, work: Vec<(SimDuration, Request)>, asked: &[Request]| -> Vec<bool> {
            let drive = build(text);
            let estimates = drive.positioner().expect("a drive has estimates");
            one_by_one_on(drive, work);
            asked.iter().map(|request| estimates.is_buffered(request)).collect()
        };
    let quiet = format!("{DRIVE}read_ahead = \"none\"\ncache_write_segments = 1\n");
    let asked = [
        read(50, 8),
        read(54, 8),
        Request { flags: Flags::FUA, ..read(50, 8) },
        write(50, 8),
        Request { flags: Flags::FUA, ..write(50, 8) },
        write(50, 80),
    ];
    let buffered_after = |text: &str, op| reported(text, vec![(ms(0), request(op, 50, 8))], &asked);
    assert_eq!(buffered_after(&quiet, Op::Read), [true, false, false, true, false, false]);
    let through = format!("{quiet}write_cache = false\n");
    assert_eq!(buffered_after(&through, Op::Read), [true, false, false, false, false, false]);
    // The only segment for writes is taken until it is on the medium: then what adds to it fits.
    let held = format!("{quiet}destage_delay = \"10s\"\n");
    let asked = [write(58, 8), write(500, 8), read(50, 8)];
    assert_eq!(reported(&held, vec![(ms(0), write(50, 8))], &asked), [true, false, true]);
    let written = format!("{quiet}destage_delay = \"0us\"\n");
    let work = vec![(ms(0), write(50, 8)), (ms(100), read(9_000, 8))];
    assert_eq!(reported(&written, work, &asked), [true, true, true]);
}

#[test]
fn sectors_that_pass_before_the_wanted_one_may_be_kept() {
    use DiskCacheOutcome::{Hit, Miss};
    // The head comes to the track at angle 0, so that 50 sectors pass; 32 KiB keep 64 sectors.
    let quiet = format!("{DRIVE}read_ahead = \"none\"\nread_free_blocks = true\n");
    let first = (0, Op::Read, 50, 30);
    assert_eq!(served(&quiet, &[first, (1, Op::Read, 16, 8)]).1, [Miss, Hit]);
    assert_eq!(served(&quiet, &[first, (1, Op::Read, 15, 8)]).1, [Miss, Miss]);
    let not = format!("{DRIVE}read_ahead = \"none\"\n");
    assert_eq!(served(&not, &[first, (1, Op::Read, 16, 8)]).1, [Miss, Miss]);
    // After 8 ms it comes back at sector 60, having read up to 50: from there on nothing is wanted
    // until the track begins again.
    let back = [(0, Op::Read, 44, 6), (1, Op::Read, 50, 1), (0, Op::Read, 0, 8)];
    assert_eq!(served(&quiet, &back).1, [Miss, Miss, Hit]);
}

/// Completion times of requests that come at once, or `apart`.
fn completions(text: &str, apart: SimDuration, work: Vec<Request>) -> Vec<u64> {
    let done = Rc::new(RefCell::new(vec![0; work.len()]));
    let seen = Rc::clone(&done);
    let mut next = 0;
    let mut machine = machine(text, false, move |ctx, completion| {
        if let Some(done) = completion {
            seen.borrow_mut()[done.tag as usize] = ctx.now().as_ns();
        } else if let Some(request) = work.get(next) {
            ctx.issue(0, *request, next as u64);
            next += 1;
            ctx.wake_after(apart, 0);
        }
    });
    machine.run(&mut (), &mut |_| true).expect("a good run");
    done.borrow().clone()
}

#[test]
fn hits_wait_for_their_turn_if_they_may_not_overtake() {
    let text = format!("{DRIVE}read_ahead = \"none\"\n");
    let reads = [50, 9_000, 50].map(|lba| request(Op::Read, lba, 8));
    let order = |text: &str| {
        let at = completions(text, ms(10), reads.to_vec());
        at[1] <= at[2]
    };
    assert!(!order(&text), "it overtakes");
    assert!(order(&format!("{text}hits_overtake = false\n")));
}

#[test]
fn a_hit_that_may_not_overtake_is_one_at_the_instant_the_drive_becomes_free() {
    let text = format!("{DRIVE}read_ahead = \"none\"\nhits_overtake = false\n");
    let read = |sectors| request(Op::Read, 50, sectors);
    let free_ns = completions(&text, SimDuration::ZERO, vec![read(16)])[0];
    let hits = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&hits);
    let mut issued = 0;
    let mut machine = machine(&text, false, move |ctx, completion| {
        if let Some(done) = completion {
            seen.borrow_mut().push((done.tag, ctx.now().as_ns()));
            return;
        }
        // The second waits; the third arrives when the first has just been read.
        for tag in if issued == 0 { 0..2 } else { 2..3 } {
            ctx.issue(0, read(if tag == 0 { 16 } else { 8 }), tag);
        }
        if issued == 0 {
            ctx.wake_after(SimDuration::from_ns(free_ns), 0);
        }
        issued += 1;
    });
    machine.run(&mut (), &mut |_| true).expect("a good run");
    let last = *hits.borrow().last().expect("all are served");
    assert!(last.0 == 2 && last.1 < free_ns + ms(2).as_ns(), "{last:?} after {free_ns}");
}

#[test]
fn the_arm_may_stay_until_the_link_is_free() {
    let slow = format!("{DRIVE}read_ahead = \"none\"\nhost_rate = \"1MB/s\"\n");
    let reads = [50, 9_000, 200].map(|lba| request(Op::Read, lba, 20));
    let last = |more: &str| {
        let at = completions(&format!("{slow}{more}"), SimDuration::ZERO, reads.to_vec());
        at[2]
    };
    let alone = last("queue_depth = 1\n");
    let (with, without) = (last("preseek = true\n"), last("preseek = false\n"));
    assert!(with < without, "{with} {without}");
    assert!(without <= alone, "{without} {alone}");
}

#[test]
fn a_drive_may_have_one_cylinder() {
    let text = DRIVE.replace("cylinders = 100", "cylinders = 1");
    let (done, _) = served(&text, &[(0, Op::Write, 0, 8), (0, Op::Read, 150, 8)]);
    assert_eq!(done.len(), 2);
}
