//! The SSD component in a machine: timing to the nanosecond, verified data, events, failures.

mod common;

use common::{Host, build, chosen, page_ftl, run, settings, text, us};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{
    CommonEvent, Component, EventRecord, Fault, LatencyPhase, Lba, Op, Request, SimDuration,
    SimTime, Stream,
};
use hybridsim_flash::event::joules::VICTIM_SEARCH;
use hybridsim_flash::{Cause, FlashEvent};

fn at(us: u64) -> SimTime {
    SimTime::from_ns(us * 1_000)
}

fn pages(op: Op, first: u64, count: u32) -> Request {
    Request::new(op, Lba(first * 4), count * 4)
}

/// Completion times in microseconds, by order of issue.
fn completions(settings: &Settings, requests: &[(u64, Request)]) -> Vec<f64> {
    let listed = requests.iter().map(|(us, request)| (at(*us), *request)).collect();
    let (mut done, _, end) = run(build(settings).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    done.sort_by_key(|done| (done.issued, done.request.lba));
    done.iter().map(|done| done.completed.as_ns() as f64 / 1e3).collect()
}

#[test]
fn serial_reads_take_overhead_and_the_sum_of_their_pages() {
    // konanki, table 4.1: L = n * RL + C.
    let serial = settings()
        .and("timing", chosen("timing", "serial"))
        .and("precondition", text("fill"))
        .and("controller.read_overhead", us(70))
        .and("controller.write_overhead", us(90));
    for n in [1, 2, 7, 30] {
        let request = pages(Op::Read, 3, n);
        assert_eq!(completions(&serial, &[(5, request)]), [5.0 + 70.0 + 25.0 * f64::from(n)]);
    }
    let fresh = serial.clone().and("precondition", text("none"));
    assert_eq!(completions(&fresh, &[(0, pages(Op::Write, 0, 5))]), [90.0 + 5.0 * 300.0]);
    let queued = [(0, pages(Op::Read, 0, 1)), (10, pages(Op::Read, 1, 1))];
    assert_eq!(completions(&serial, &queued), [95.0, 190.0]);
}

#[test]
fn reads_leave_the_channel_free_while_the_cells_are_read() {
    // flashsim, figure 4. One channel, three dies; control 2 us, cells 25 us, data 10 us (2,048 B
    // at 204.8 MB/s). Pages written in order lie on dies 0, 1, 2.
    let figure = settings()
        .and("channels", Value::Count(1))
        .and("dies_per_channel", Value::Count(3))
        .and("command_time", us(2))
        .and("channel_rate", Value::Rate(204_800_000))
        .and("precondition", text("fill"));
    let read = |us, page| (us, pages(Op::Read, page, 1));
    // Read 0: control 0..2, cells ..27, data 27..37. Read 1: control in the gap 2..4, cells ..29,
    // data behind read 0's: 37..47. Read 2 at 26: its control of 2 us does not fit before 27 and
    // not between 27 and 47, so it goes 47..49, cells ..74, data ..84.
    assert_eq!(completions(&figure, &[read(0, 0), read(0, 1), read(26, 2)]), [37.0, 47.0, 84.0]);
    // At 25 it just fits: control 25..27, cells ..52, data ..62.
    assert_eq!(completions(&figure, &[read(0, 0), read(0, 1), read(25, 2)]), [37.0, 47.0, 62.0]);
    // Two pages of one die are read in sequence: the register is occupied until 37.
    assert_eq!(completions(&figure, &[read(0, 0), read(0, 3)]), [37.0, 74.0]);
    // Writes: one slot of control and data, then the die alone.
    let fresh = figure.clone().and("precondition", text("none"));
    let write = |us, page| (us, pages(Op::Write, page, 1));
    assert_eq!(completions(&fresh, &[write(0, 0), write(0, 1), write(0, 2)]), [312., 324., 336.]);
}

#[test]
fn channels_and_dies_work_in_parallel() {
    let fresh = settings();
    let write = |count| (0, pages(Op::Write, 0, count));
    assert_eq!(completions(&fresh, &[write(4)]), [300.0], "four dies");
    assert_eq!(completions(&fresh, &[write(5)]), [600.0]);
    let linked = fresh
        .clone()
        .and("controller.host_rate", Value::Rate(2_048_000_000))
        .and("controller.write_overhead", us(7));
    // A page per microsecond over the host link; the last of four is in the device at 7 + 4.
    assert_eq!(completions(&linked, &[write(4)]), [311.0]);
}

#[test]
fn a_partial_write_reads_the_rest_of_its_page_first() {
    let settings = settings().and("precondition", text("fill"));
    let half = Request::new(Op::Write, Lba(6), 1);
    let listed = vec![(at(0), half), (at(5_000), pages(Op::Read, 1, 1))];
    let (done, events, end) = run(build(&settings).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    assert_eq!(done[0].completed, at(325));
    let part = |part| done[0].breakdown.get(part).as_ns();
    assert_eq!(
        (part(LatencyPhase::FlashRead), part(LatencyPhase::FlashProgram)),
        (25_000, 300_000)
    );
    let partial = |s: &&EventRecord| {
        matches!(s.event(), Some(FlashEvent::Read { cause: Cause::Partial, .. }))
    };
    assert_eq!(events.iter().filter(partial).count(), 1);
}

#[test]
fn waiting_for_garbage_collection_is_a_latency_phase_of_its_own() {
    let settings = settings()
        .and("channels", Value::Count(1))
        .and("dies_per_channel", Value::Count(1))
        .and("copy_back.within", text("die"))
        .and("precondition", text("steady"));
    let (done, _, end) = run(build(&settings).expect("valid settings"), Host::random(400, 4, 100));
    end.expect("a run without a fault");
    let total = |part| done.iter().map(|done| done.breakdown.get(part)).sum::<SimDuration>();
    assert!(total(LatencyPhase::Gc) > SimDuration::from_ms(10), "{}", total(LatencyPhase::Gc));
    assert!(
        total(LatencyPhase::Queue) > SimDuration::from_ms(10),
        "{}",
        total(LatencyPhase::Queue)
    );
}

/// Every combination of timing model, copies, pace, links and initial state, with all data, sums of
/// latency phases and sums of state times checked.
#[test]
fn reads_return_the_last_write_on_every_device() {
    let base = settings()
        .and("command_time", Value::Duration(SimDuration::from_ns(350)))
        .and("channel_rate", Value::Rate(40_000_000))
        .and("controller.read_overhead", us(3))
        .and("controller.write_overhead", us(4));
    for (number, (timing, copy, start)) in [
        ("interleaved", "die", "none"),
        ("interleaved", "none", "steady"),
        ("interleaved", "none", "fill-random"),
        ("serial", "none", "fill"),
        ("serial", "die", "steady"),
        ("none", "die", "fill"),
        ("interleaved", "plane", "steady"),
        ("queued", "plane", "steady"),
        ("queued", "none", "fill-random"),
        ("queued", "die", "steady"),
    ]
    .into_iter()
    .enumerate()
    {
        for (depth, duplex) in [(1, "half"), (9, "full"), (9, "half")] {
            let settings = base
                .clone()
                .and("timing", chosen("timing", timing))
                .and("copy_back.within", text(copy))
                .and("precondition", text(start))
                .and("controller.host_duplex", text(duplex))
                .and("timing.write_buffer", Value::Bytes([0, 10_000][number % 2]))
                .and("timing.multi_plane", Value::Flag(depth == 9))
                .and("timing.program_suspend_time", us(7))
                .and("timing.erase_suspend_time", us(20))
                .and("timing.schedule_slots", Value::Count([512, 3, 1][number % 3]))
                .and("controller.host_rate", Value::Rate([0, 100_000_000][number % 2]));
            let settings = match depth {
                1 => settings.and("idle_after", us(50)),
                _ => settings,
            };
            let ssd = build(&settings).expect("valid settings");
            let capacity = ssd.capacity();
            let (done, events, end) = run(ssd, Host::random(4_000, depth, capacity));
            let end = end.expect("a run without a fault");
            assert_eq!(done.len(), 4_000);
            for done in &done {
                assert_eq!(done.breakdown.total(), done.completed.since(done.issued));
            }
            check_events(&events, end.time);
        }
    }
}

fn check_events(events: &[EventRecord], end: SimTime) {
    let mut states = SimDuration::ZERO;
    let (mut erased, mut worn, mut programs) = (0, 0, 0);
    for record in events {
        if let Some(CommonEvent::StateTime { duration, .. }) = record.event() {
            states += duration;
        }
        match record.event() {
            Some(FlashEvent::Erase { .. }) => erased += 1,
            Some(FlashEvent::Program { .. }) => programs += 1,
            Some(FlashEvent::Wear { erases, blocks }) => {
                worn += u64::from(erases) * u64::from(blocks)
            }
            _ => {}
        }
    }
    assert_eq!(states, end.since(SimTime::ZERO), "state times add up to the run");
    assert!(worn >= erased && erased > 100 && programs > 1_000);
}

#[test]
fn idle_time_is_used_if_enabled() {
    let collected = |settings: &Settings| {
        let writes = (5..300).map(|n| (at(n * 20_000), pages(Op::Write, n % 90, 1))).collect();
        let (done, _, end) = run(build(settings).expect("valid settings"), Host::new(writes));
        end.expect("a run without a fault");
        done.iter().map(|done| done.breakdown.get(LatencyPhase::Gc)).sum::<SimDuration>()
    };
    let blocking = settings().and("precondition", text("steady"));
    let params = [("gc_pace", text("blocking")), ("gc_free_blocks", Value::Count(2))];
    let blocking = blocking.and("ftl", page_ftl(&params));
    assert!(collected(&blocking) > SimDuration::from_ms(10));
    assert_eq!(collected(&blocking.and("idle_after", us(100))), SimDuration::ZERO);
}

#[test]
fn a_worn_out_device_reports_it() {
    let settings = settings().and("endurance", Value::Count(3));
    let (done, _, end) =
        run(build(&settings).expect("valid settings"), Host::random(1 << 20, 2, 400));
    let Err(Fault::Device { device, reason }) = end else { panic!("it never wore out: {end:?}") };
    assert_eq!(device, "ssd");
    assert!(reason.starts_with("worn out: ") && reason.contains("3 erases"), "{reason}");
    assert!(done.len() > 300);
}

#[test]
fn invalid_devices_are_rejected_with_all_problems() {
    let check = |settings: Settings, expected: &[&str]| {
        let problems = build(&settings).err().expect("impossible");
        let params: Vec<_> = problems.iter().map(|problem| problem.param).collect();
        assert_eq!(params, expected, "{problems:?}");
    };
    check(settings().and("over_provisioning", Value::Number(0.0)), &["over_provisioning"]);
    check(settings().and("over_provisioning", Value::Number(1000.0)), &["over_provisioning"]);
    check(settings().and("blocks_per_plane", Value::Count(2)), &["over_provisioning"]);
    let huge = settings().and("blocks_per_plane", Value::Count(u64::from(u32::MAX)));
    check(huge.and("page_size", Value::Bytes(100)), &["page_size", "blocks_per_plane"]);
    let registry = hybridsim_ssd::registry();
    let drawn = settings().and("precondition", text("steady-drawn"));
    assert!(build(&drawn).is_ok());
    let dftl = hybridsim_flash::defaults::entry("ftl", "dftl", &registry);
    check(drawn.clone().and("ftl", dftl), &["precondition"]);
    let keeps_free = page_ftl(&[("gc_free_blocks", Value::Count(5))]);
    check(drawn.and("ftl", keeps_free), &["precondition"]);
}

#[test]
fn searches_and_the_mapping_memory_cost_energy() {
    let registry = hybridsim_ssd::registry();
    let gc = hybridsim_flash::defaults::entry("gc-policy", "partial-search", &registry);
    let settings = settings()
        .and("ftl", page_ftl(&[("gc", gc)]))
        .and("precondition", text("steady"))
        .and("energy.ram_power", Value::Number(0.5))
        .and("energy.search_energy", Value::Number(2e-6));
    let ssd = build(&settings).expect("valid settings");
    let info = ssd.info();
    let ram =
        info.constants.iter().find(|(name, _)| *name == "mapping_ram_bytes").expect("reported").1;
    assert!(ram > 0.0);
    assert_eq!(info.always_watts, [("mapping_ram", 0.5 * ram / 1_048_576.0)]);
    assert!(info.operation_joules.contains(&(VICTIM_SEARCH, 2e-6)));
    let (_, events, end) = run(ssd, Host::random(400, 4, 100));
    end.expect("a run without a fault");
    let (mut searches, mut erases) = (0, 0);
    for event in events {
        match event.event() {
            Some(FlashEvent::VictimSearch { blocks }) => searches += u64::from(blocks),
            Some(FlashEvent::Erase { .. }) => erases += 1,
            _ => {}
        }
    }
    // Every victim was searched for among several of the twelve blocks of a plane.
    assert!(erases > 50 && (erases..=erases * 12).contains(&searches), "{searches} of {erases}");
}

#[test]
fn factory_bad_blocks_reduce_the_spare_space() {
    let bad = |share| {
        let settings = settings()
            .and("blocks_per_plane", Value::Count(400))
            .and("factory_bad", Value::Number(share));
        let ssd = build(&settings).expect("valid settings");
        let capacity = ssd.capacity();
        let constants = ssd.info().constants;
        let constant =
            |wanted| constants.iter().find(|(name, _)| *name == wanted).expect("reported").1;
        (
            capacity,
            constant("blocks"),
            constant("factory_bad_blocks"),
            constant("over_provisioning"),
        )
    };
    let (capacity, blocks, none, spare) = bad(0.0);
    assert_eq!((blocks, none), (1600.0, 0.0));
    let (same, fewer, some, less) = bad(0.02);
    assert_eq!(same, capacity, "what is offered stays");
    // 32 of 1,600 are expected, with a standard deviation of 5.6; the worst of four planes decides.
    assert!((10.0..60.0).contains(&some) && fewer <= 1600.0 - some && fewer > 1500.0, "{some}");
    assert!(less < spare && less > 0.4, "{less}");
    assert_eq!(bad(0.02), bad(0.02));
}

/// Bad blocks take spare space, down to none: what is left is enough, or there is one error.
#[test]
fn every_ftl_works_with_factory_bad_blocks_or_is_refused() {
    let registry = hybridsim_ssd::registry();
    let (mut worked, mut refused) = (0, 0);
    for ftl in hybridsim_flash::ftl::ENTRIES.iter().map(|entry| entry.description.name) {
        let base = settings()
            .and("ftl", hybridsim_flash::defaults::entry("ftl", ftl, &registry))
            .and("program_order", text("any"));
        for (blocks, spare) in [(12, 0.07), (12, 0.5), (40, 0.28), (40, 1.0), (40, 3.0)] {
            for share in [0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5] {
                let settings = base
                    .clone()
                    .and("blocks_per_plane", Value::Count(blocks))
                    .and("over_provisioning", Value::Number(spare))
                    .and("factory_bad", Value::Number(share));
                let name = format!("{ftl}, {blocks} blocks, {spare} spare, {share} bad");
                let ssd = match build(&settings) {
                    Ok(ssd) => ssd,
                    Err(problems) => {
                        let [problem] = &problems[..] else { panic!("{name}: {problems:?}") };
                        let remedy = ["lower it", "raise", "use ", "add "];
                        let helps = remedy.iter().any(|it| problem.message.contains(it));
                        assert!(helps, "{name}: {problem:?}");
                        refused += 1;
                        continue;
                    }
                };
                let constants = ssd.info().constants;
                assert!(constants.iter().all(|(_, value)| *value >= 0.0), "{name}: {constants:?}");
                if ftl == "raw" {
                    continue; // Overwriting is an error there.
                }
                let capacity = ssd.capacity();
                let (.., end) = run(ssd, Host::random(1_500, 1, capacity));
                end.unwrap_or_else(|fault| panic!("{name}: {fault}"));
                worked += 1;
            }
        }
    }
    assert!(worked > 100 && refused > 100, "{worked} work, {refused} are refused");
}

#[test]
fn a_request_waits_for_the_search_it_causes() {
    let registry = hybridsim_ssd::registry();
    let gc = hybridsim_flash::defaults::entry("gc-policy", "partial-search", &registry);
    let ftl = page_ftl(&[("gc", gc)]);
    let settings = settings().and("ftl", ftl).and("precondition", text("steady"));
    for timing in ["serial", "interleaved"] {
        let measure = |search_ns| {
            let search = Value::Duration(SimDuration::from_ns(search_ns));
            let settings = settings
                .clone()
                .and("timing", chosen("timing", timing))
                .and("controller.search_time", search);
            let (done, events, end) =
                run(build(&settings).expect("valid settings"), Host::random(400, 1, 100));
            let searched: u64 = (events.iter())
                .map(|record| match record.event() {
                    Some(FlashEvent::VictimSearch { blocks }) => u64::from(blocks),
                    _ => 0,
                })
                .sum();
            let waited: u64 =
                done.iter().map(|done| done.breakdown.get(LatencyPhase::Gc).as_ns()).sum();
            (end.expect("a run without a fault").time.as_ns(), waited, searched)
        };
        let (end, waited, searched) = measure(0);
        let (end_later, waited_longer, same) = measure(700);
        assert!(searched > 100 && searched == same, "{searched} blocks, then {same}");
        if timing == "serial" {
            // One request and one operation at a time: the whole search shows.
            assert_eq!(end_later - end, 700 * searched);
            assert_eq!(waited_longer - waited, 700 * searched);
        } else {
            assert!(end_later > end, "{end} to {end_later}");
        }
    }
}

#[test]
fn wear_is_the_same_with_and_without_timing() {
    let registry = hybridsim_ssd::registry();
    for ftl in hybridsim_flash::ftl::ENTRIES.iter().map(|entry| entry.description.name) {
        if ftl == "raw" {
            continue; // Overwriting is an error there.
        }
        let choice = hybridsim_flash::defaults::entry("ftl", ftl, &registry);
        let settings = settings().and("ftl", choice).and("program_order", text("any"));
        let mut stream = Stream::new(3, "requests");
        let mut draw = |number: u64| {
            let op = [Op::Write, Op::Write, Op::Read, Op::Trim][stream.below(4) as usize];
            let sectors = 1 + stream.below(40) as u32;
            (at(number * 1_000_000), Request::new(op, Lba(stream.below(500)), sectors))
        };
        let requests: Vec<_> = (0..800).map(&mut draw).collect();
        let erases = |settings: &Settings| {
            let (_, events, end) =
                run(build(settings).expect("valid settings"), Host::new(requests.clone()));
            end.expect("a run without a fault");
            events.iter().filter(|it| matches!(it.event(), Some(FlashEvent::Erase { .. }))).count()
        };
        let timed = erases(&settings);
        assert_eq!(
            erases(&settings.clone().and("timing", chosen("timing", "none"))),
            timed,
            "{ftl}"
        );
        assert!(timed > 20, "{ftl}: only {timed} erases");
    }
}
