//! The zoned SSD: states and statuses of the specification, and the times of zone management.

mod common;

use common::{Done, Host, chosen, run, text, us};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Problem, Settings, Value};
use hybridsim_engine::{
    CommonEvent, Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, Flags,
    LatencyPhase, Lba, Machine, Op, Outcome, PowerFailure, PowerFailureInjector, Request,
    RequestId, SimDuration, SimTime, Stream, ZoneAction,
};
use hybridsim_flash::defaults;
use hybridsim_flash::{Cause, FlashEvent};
use hybridsim_ssd::zns::{STATISTIC_NAMES, ZnsParams, ZnsSsd, build_zns};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Sectors of a page, of a zone that can be written, and from zone to zone.
const PAGE: u64 = 4;
const CAPACITY: u64 = 60 * PAGE;
const STRIDE: u64 = 64 * PAGE;

/// 2 channels of 2 dies, blocks of 8 pages of 2 KiB: a zone of 60 pages takes 2 blocks of each die.
fn small() -> Settings {
    defaults::settings(ZnsParams::PARAMS, &hybridsim_ssd::registry())
        .and("channels", Value::Count(2))
        .and("dies_per_channel", Value::Count(2))
        .and("planes_per_die", Value::Count(1))
        .and("blocks_per_plane", Value::Count(12))
        .and("pages_per_block", Value::Count(8))
        .and("page_size", Value::Bytes(512 * PAGE))
        .and("zone_capacity", Value::Bytes(512 * CAPACITY))
        .and("zone_size", Value::Bytes(512 * STRIDE))
        .and("read_time", us(25))
        .and("program_time", us(300))
        .and("erase_time", us(2_000))
}

fn build(settings: &Settings) -> Result<ZnsSsd, Vec<Problem>> {
    let registry = hybridsim_ssd::registry();
    build_zns(&BuildInput { settings, registry: &registry, seed: 1, path: "ssd", children: &[] })
}

fn zone(number: u64) -> Lba {
    Lba(number * STRIDE)
}

fn manage(action: ZoneAction, number: u64) -> Request {
    Request::new(Op::Zone(action), zone(number), STRIDE as u32)
}

fn write(number: u64, page: u64, pages: u64) -> Request {
    Request::new(Op::Write, zone(number).offset(page * PAGE), (pages * PAGE) as u32)
}

fn append(number: u64, page: u64, pages: u64) -> Request {
    Request { flags: Flags::APPEND, ..write(number, page, pages) }
}

fn read(number: u64, page: u64, pages: u64) -> Request {
    Request { op: Op::Read, ..write(number, page, pages) }
}

/// Runs requests, each long after the one before.
fn one_by_one(settings: &Settings, requests: &[Request]) -> (Vec<Done>, Vec<EventRecord>) {
    let at = |number: u64| SimTime::from_ns(number * 1_000_000_000);
    let listed = (0..).map(at).zip(requests.iter().copied()).collect();
    // Refresh never ends.
    let mut host = Host::new(listed);
    host.halts = settings.has("idle_after");
    let (done, events, end) = run(build(settings).expect("a device"), host);
    end.expect("a run without a fault");
    assert_eq!(done.len(), requests.len());
    (done, events)
}

/// The statuses and other numbers that the device reported, in order.
fn reported(events: &[EventRecord]) -> Vec<(&'static str, u64)> {
    let name = |record: &EventRecord| match record.event() {
        Some(CommonEvent::Custom { name, value }) => Some((STATISTIC_NAMES[name as usize], value)),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

/// Checks that the last of `requests` fails with `status`, and all others are served.
fn fails(settings: &Settings, requests: &[Request], status: &str) {
    let (done, events) = one_by_one(settings, requests);
    let (last, others) = done.split_last().expect("a request");
    assert!(others.iter().all(|done| done.outcome == Outcome::Done), "{status}: {others:?}");
    assert_eq!(last.outcome, Outcome::Failed, "{status}");
    let statuses: Vec<_> = reported(&events).into_iter().map(|(name, _)| name).collect();
    assert!(statuses.contains(&status), "{status}: {statuses:?}");
}

#[test]
fn writes_fail_with_the_status_of_the_specification() {
    use ZoneAction::{Close, Finish, Open, Reset};
    let plain = small();
    fails(&plain, &[write(0, 1, 1)], "zone_invalid_write");
    fails(&plain, &[write(0, 0, 4), write(0, 0, 1)], "zone_invalid_write");
    fails(&plain, &[write(0, 0, 60), write(0, 60, 1)], "zone_is_full");
    fails(&plain, &[write(0, 0, 60), append(0, 0, 1)], "zone_is_full");
    fails(&plain, &[write(0, 0, 59), write(0, 59, 2)], "zone_boundary_error");
    fails(&plain, &[write(0, 0, 61)], "zone_boundary_error");
    fails(&plain, &[Request::new(Op::Write, Lba(1), PAGE as u32)], "invalid_field");
    fails(&plain, &[Request::new(Op::Write, Lba(0), 1)], "invalid_field");
    fails(&plain, &[Request::new(Op::Zone(Reset), Lba(0), 1)], "invalid_field");
    fails(&plain, &[Request::new(Op::Zone(Finish), Lba(PAGE), STRIDE as u32)], "invalid_field");
    fails(&plain, &[manage(Close, 0)], "invalid_zone_state_transition");
    fails(&plain, &[write(0, 0, 60), manage(Open, 0)], "invalid_zone_state_transition");
    fails(&plain, &[write(0, 0, 1), manage(Finish, 0), write(0, 1, 1)], "zone_is_full");
    let two = small().and("max_open_zones", Value::Count(2));
    let opened = [manage(Open, 0), manage(Open, 1), write(2, 0, 1)];
    fails(&two, &opened, "too_many_open_zones");
    let active = two.and("max_active_zones", Value::Count(3));
    let three = [write(0, 0, 1), write(1, 0, 1), write(2, 0, 1), write(3, 0, 1)];
    fails(&active, &three, "too_many_active_zones");
}

/// With random write areas of 8 pages for two zones, whose write pointers move by 2 pages.
fn with_areas() -> Settings {
    small()
        .and("zrwa_size", Value::Bytes(512 * 8 * PAGE))
        .and("zrwa_granularity", Value::Bytes(512 * 2 * PAGE))
        .and("zrwa_zones", Value::Count(2))
}

fn open_random(number: u64) -> Request {
    Request { flags: Flags::RANDOM_WRITE_AREA, ..manage(ZoneAction::Open, number) }
}

fn commit(number: u64, pages: u64) -> Request {
    Request::new(Op::Zone(ZoneAction::Commit), zone(number), (pages * PAGE) as u32)
}

#[test]
fn random_write_areas_fail_with_the_status_of_the_specification() {
    let areas = with_areas();
    let unsupported = "invalid_zone_operation_request";
    fails(&small(), &[open_random(0)], "invalid_field");
    fails(&areas, &[write(0, 0, 1), open_random(0)], unsupported);
    fails(&areas, &[open_random(0), append(0, 0, 1)], unsupported);
    fails(&areas, &[manage(ZoneAction::Open, 0), commit(0, 2)], unsupported);
    let both = [open_random(0), open_random(1)];
    let third = [&both[..], &[open_random(2)]].concat();
    fails(&areas, &third, "zrwa_resources_unavailable");
    fails(&areas, &[open_random(0), write(0, 16, 1)], "zone_invalid_write");
    fails(&areas, &[open_random(0), write(0, 8, 1), write(0, 1, 1)], "zone_invalid_write");
    fails(&areas, &[open_random(0), commit(0, 3)], "invalid_field");
    fails(&areas, &[open_random(0), commit(0, 10)], "invalid_field");
    let full = (0..8).map(|at| write(0, 8 * at, (60 - 8 * at).min(8)));
    let full: Vec<Request> =
        [open_random(0)].into_iter().chain(full).chain([commit(0, 60), write(0, 0, 1)]).collect();
    fails(&areas, &full, "zone_is_full");
}

#[test]
fn a_random_write_area_programs_what_the_write_pointer_passes() {
    let programs = |events: &[EventRecord], cause: Cause| {
        let of = |record: &EventRecord| match record.event() {
            Some(FlashEvent::Program { cause, .. }) => Some(cause),
            _ => None,
        };
        events.iter().filter_map(of).filter(|of| *of == cause).count()
    };
    let rewrites = [open_random(0), write(0, 2, 2), write(0, 3, 1), write(0, 2, 2)];
    let (done, events) = one_by_one(&with_areas(), &rewrites);
    assert_eq!(programs(&events, Cause::Host), 0, "they are in the memory of the device");
    assert!(done.iter().all(|done| took_us(done) < 300), "{done:?}");
    assert_eq!(
        reported(&events),
        [("open_zones", 1), ("overwritten_pages", 1), ("overwritten_pages", 2)]
    );
    // Pages 0 to 3 are passed, of which the first two were never written.
    let (_, events) = one_by_one(&with_areas(), &[&rewrites[..], &[write(0, 11, 1)]].concat());
    assert_eq!((programs(&events, Cause::Host), programs(&events, Cause::Padding)), (2, 2));
    let (done, events) = one_by_one(&with_areas(), &[&rewrites[..], &[commit(0, 4)]].concat());
    assert_eq!((programs(&events, Cause::Host), programs(&events, Cause::Padding)), (2, 2));
    // The four pages are on four dies.
    assert_eq!(took_us(done.last().expect("the commit")), 300);
    // All of the zone is programmed when it is finished, the rest of it padded.
    let finished = [&rewrites[..], &[manage(ZoneAction::Finish, 0)]].concat();
    let (_, events) = one_by_one(&with_areas(), &finished);
    assert_eq!((programs(&events, Cause::Host), programs(&events, Cause::Padding)), (2, 58));
    let reset = [&rewrites[..], &[manage(ZoneAction::Reset, 0), open_random(0)]].concat();
    let (_, events) = one_by_one(&with_areas(), &[&reset[..], &[commit(0, 8)]].concat());
    assert_eq!((programs(&events, Cause::Host), programs(&events, Cause::Padding)), (0, 8));
}

#[test]
fn the_device_closes_the_least_recently_used_zone() {
    let two = small().and("max_open_zones", Value::Count(2));
    // Zone 1 is closed for zone 2; opening it again closes zone 0.
    let requests = [write(0, 0, 1), write(1, 0, 1), write(0, 1, 1), write(2, 0, 1), write(1, 1, 1)];
    let (done, events) = one_by_one(&two, &requests);
    assert!(done.iter().all(|done| done.outcome == Outcome::Done));
    let closed = reported(&events).iter().filter(|it| it.0 == "implicitly_closed_zones").count();
    assert_eq!(closed, 2);
    let explicit = [manage(ZoneAction::Open, 0), write(1, 0, 1), write(2, 0, 1), write(0, 0, 1)];
    let (done, _) = one_by_one(&two, &explicit);
    assert!(done.iter().all(|done| done.outcome == Outcome::Done), "zone 1 is closed, not 0");
}

#[test]
fn data_are_read_until_their_zone_is_reset() {
    let reset = manage(ZoneAction::Reset, 1);
    let trim = Request::new(Op::Trim, zone(1), STRIDE as u32);
    for erase in ["reset", "open"] {
        let requests = [
            write(1, 0, 10),
            append(1, 10, 3),
            read(1, 0, 13),
            read(1, 12, 4),
            trim,
            write(1, 13, 1),
            reset,
            read(1, 0, 13),
            write(1, 0, 5),
            read(1, 0, 5),
        ];
        // The host checks what is read.
        let (done, events) = one_by_one(&small().and("erase", text(erase)), &requests);
        assert!(done.iter().all(|done| done.outcome == Outcome::Done), "{erase}");
        let flash_reads =
            events.iter().filter(|it| matches!(it.event(), Some(FlashEvent::Read { .. }))).count();
        assert_eq!(flash_reads, 13 + 1 + 5, "{erase}: unwritten pages are not read from flash");
    }
}

fn took_us(done: &Done) -> u64 {
    done.completed.since(done.issued).as_ns() / 1_000
}

fn count(events: &[EventRecord], of: fn(FlashEvent) -> bool) -> usize {
    events.iter().filter(|it| it.event().is_some_and(of)).count()
}

#[test]
fn a_reset_takes_the_time_of_the_controller_or_of_its_erases_whichever_is_longer() {
    let per_page = us(10 * 1_048_576 / (512 * PAGE));
    let timed = small().and("reset_time", us(1_000)).and("reset_data_time", per_page);
    let timed = timed.and("finish_time", us(50)).and("stripe_pages", Value::Count(2));
    let reset = manage(ZoneAction::Reset, 0);
    let check = |settings: &Settings, before: &[Request], expected_us: u64| {
        let requests: Vec<Request> = before.iter().copied().chain([reset]).collect();
        let (done, _) = one_by_one(settings, &requests);
        assert_eq!(took_us(done.last().expect("a reset")), expected_us, "{before:?}");
    };
    check(&timed, &[], 1_000);
    // One block of one die, less than a stripe; then those of all dies; then a second one of each.
    check(&timed, &[write(0, 0, 1)], 2_000);
    check(&timed, &[write(0, 0, 32)], 2_000);
    check(&timed, &[write(0, 0, 60)], 4_000);
    let fast = timed.clone().and("erase_time", us(800));
    check(&fast, &[write(0, 0, 1)], 1_000 + 10);
    check(&fast, &[write(0, 0, 32)], 1_000 + 320 + 50);
    check(&fast, &[write(0, 0, 60)], 1_000 + 600);
    // Padding is no data of the host, and a finished zone has ended.
    check(&fast, &[write(0, 0, 32), manage(ZoneAction::Finish, 0)], 1_000 + 320);
    check(&timed.and("erase", text("open")), &[write(0, 0, 60)], 1_000 + 600);
}

#[test]
fn what_is_not_erased_at_the_reset_is_erased_before_it_is_written() {
    let erases = |erase: &str, finish: bool| {
        let settings = small().and("erase", text(erase)).and("zones", Value::Count(1));
        let settings = settings.and("blocks_per_plane", Value::Count(2));
        let mut requests = vec![write(0, 0, 32)];
        requests.extend(finish.then(|| manage(ZoneAction::Finish, 0)));
        requests.extend([manage(ZoneAction::Reset, 0), write(0, 0, 1), write(0, 1, 1)]);
        let (done, events) = one_by_one(&settings, &requests);
        let erases = |cause: fn(Cause) -> bool| {
            let is_it = |it: &&EventRecord| {
                let of = match it.event() {
                    Some(FlashEvent::Erase { cause, .. }) => Some(cause),
                    _ => None,
                };
                of.is_some_and(cause)
            };
            events.iter().filter(is_it).count()
        };
        let first = took_us(&done[done.len() - 2]);
        (erases(|it| it == Cause::Host), erases(|it| it == Cause::Gc), first)
    };
    assert_eq!(erases("reset", false), (4, 0, 300));
    assert_eq!(erases("reset", true), (8, 0, 2_300));
    assert_eq!(erases("open", true), (8, 0, 4_300));
}

#[test]
fn a_finish_pads_the_rest_at_the_speed_of_the_flash() {
    let timed = small().and("finish_time", us(50));
    let finish = manage(ZoneAction::Finish, 0);
    for (written, rounds) in [(1, 15), (30, 8), (59, 1)] {
        let (done, events) = one_by_one(&timed, &[write(0, 0, written), finish]);
        assert_eq!(took_us(&done[1]), 50 + rounds * 300, "{written} pages written");
        let padded =
            count(&events, |it| matches!(it, FlashEvent::Program { cause: Cause::Padding, .. }));
        assert_eq!(padded as u64, 60 - written);
        assert_eq!(done[1].breakdown.get(LatencyPhase::Overhead).as_ns(), 50_000);
    }
    for before in [vec![], vec![write(0, 0, 60)]] {
        let (done, _) = one_by_one(&timed, &[before, vec![finish]].concat());
        assert_eq!(took_us(done.last().expect("a finish")), 50, "nothing to pad");
    }
}

#[test]
fn a_zone_with_pages_left_to_pad_or_blocks_left_to_erase_takes_no_other_request() {
    use ZoneAction::{Finish, Reset};
    let at = |us: u64| SimTime::from_ns(us * 1_000);
    // Two blocks of each die are erased one after the other.
    let pads = (1, manage(Finish, 0), manage(Reset, 0));
    let erases = (60, manage(Reset, 0), write(0, 0, 1));
    for (pages, long, meanwhile) in [pads, erases] {
        let listed = vec![
            (at(0), write(0, 0, pages)),
            (at(10_000), long),
            (at(10_100), meanwhile),
            (at(1_000_000), meanwhile),
        ];
        let (mut done, events, end) = run(build(&small()).expect("a device"), Host::new(listed));
        end.expect("a run without a fault");
        done.sort_by_key(|done| done.issued);
        let outcomes: Vec<Outcome> = done.iter().map(|done| done.outcome).collect();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Done, Outcome::Failed, Outcome::Done]);
        let refused = ("invalid_zone_state_transition", 1);
        assert!(reported(&events).contains(&refused), "{:?}", reported(&events));
    }
}

#[test]
fn writes_to_another_zone_share_the_dies_with_a_finish() {
    let buffered = small()
        .and("timing", chosen("timing", "queued"))
        .and("timing.write_buffer", Value::Bytes(16_384));
    let at = |us: u64| SimTime::from_ns(us * 1_000);
    let mut listed = vec![(at(0), write(0, 0, 1)), (at(1_000), manage(ZoneAction::Finish, 0))];
    listed.extend((0..60).map(|page| (at(1_100 + 100 * page), write(1, page, 1))));
    let (done, _, end) = run(build(&buffered).expect("a device"), Host::new(listed));
    end.expect("a run without a fault");
    let finish = done
        .iter()
        .find(|done| done.request.op == Op::Zone(ZoneAction::Finish))
        .expect("the finish");
    // Alone it takes 15 rounds of 300 us, and the writes of the time take as long again at most.
    let took = took_us(finish);
    assert!((5_500..9_300).contains(&took), "{took} us");
    let during =
        done.iter().filter(|it| it.request.lba >= zone(1) && it.completed < finish.completed);
    assert!(during.count() >= 15, "writes go on meanwhile");
}

/// Seven groups for six zones, which are moved when their data are `seconds` old.
fn refreshed_after(seconds: u64) -> Settings {
    small()
        .and("blocks_per_plane", Value::Count(14))
        .and("zones", Value::Count(6))
        .and("idle_after", us(100))
        .and("errors", chosen("errors", "power-law"))
        .and("errors.rber_base", Value::Number(1e-9))
        .and("errors.refresh_age", Value::Duration(SimDuration::from_s(seconds)))
}

const fn is_refresh(event: FlashEvent) -> bool {
    matches!(event, FlashEvent::Program { cause: Cause::Refresh, .. })
}

#[test]
fn a_zone_is_moved_when_its_data_are_too_old() {
    let mut requests = vec![write(0, 0, 60), write(1, 0, 21), manage(ZoneAction::Close, 1)];
    requests.extend([read(0, 0, 60), read(1, 0, 21)].repeat(2));
    requests.extend([write(1, 21, 39), read(1, 0, 60), read(0, 0, 60)]);
    let (done, events) = one_by_one(&refreshed_after(5), &requests);
    assert!(done.iter().all(|done| done.outcome == Outcome::Done));
    assert_eq!(count(&events, is_refresh), 60 + 21, "each zone once");
    let seven = refreshed_after(5).and("zones", Value::Count(7));
    let (_, events) = one_by_one(&seven, &requests);
    assert_eq!(count(&events, is_refresh), 81, "an empty zone needs no flash");
    let seven = refreshed_after(7).and("zones", Value::Count(7));
    let reads = [read(0, 0, 60); 5];
    let full: Vec<_> = (0..7).map(|zone| write(zone, 0, 60)).chain(reads).collect();
    let (_, events) = one_by_one(&seven, &full);
    assert_eq!(count(&events, is_refresh), 0, "no flash is left to move them to");
}

#[test]
fn what_the_host_does_to_a_zone_ends_its_move() {
    // A step of the move takes 1.3 ms, and begins 100 us after the end of the last request.
    let at = |us: u64| SimTime::from_ns(us * 1_000);
    for (request, kept) in [(manage(ZoneAction::Reset, 0), 0), (write(1, 0, 1), 60)] {
        let listed = vec![
            (at(0), write(0, 0, 60)),
            (at(2_000_000), read(0, 0, 1)),
            (at(2_003_000), request),
            (at(2_100_000), read(0, 0, 60)),
        ];
        let ssd = build(&refreshed_after(2)).expect("a device");
        let mut host = Host::new(listed);
        host.halts = true;
        let (done, events, end) = run(ssd, host);
        end.expect("a run without a fault");
        assert!(done.iter().all(|done| done.outcome == Outcome::Done));
        let moved = count(&events, is_refresh);
        assert_eq!(moved == 60, kept == 60, "{moved} pages");
        assert!(moved > 0, "it had begun");
    }
}

#[test]
fn idle_time_erases_what_was_reset() {
    let settings = small().and("erase", text("open"));
    let requests = [write(0, 0, 60), manage(ZoneAction::Reset, 0), read(0, 0, 1), write(0, 0, 1)];
    let several = |settings: &Settings| {
        let requests = [&requests[..], &requests[1..].repeat(5)].concat();
        let (done, events) = one_by_one(settings, &requests);
        (
            took_us(&done[done.len() - 1]),
            count(&events, |it| matches!(it, FlashEvent::Erase { .. })),
        )
    };
    // Six groups follow one another, so the seventh write is where the first was: on eight blocks,
    // of which those of a die are erased one after the other.
    let (took, erases) = several(&settings);
    assert_eq!((took, erases), (300 + 2 * 2_000, 8));
    let (took, erases) = several(&settings.and("idle_after", us(100)));
    assert!(took == 300 && erases > 8, "{took} us, {erases} erases");
}

#[test]
fn bad_blocks_leave_flash_for_fewer_zones() {
    let settings = small().and("factory_bad", Value::Number(0.1));
    let problems = build(&settings).err().expect("no zone can be spared");
    assert!(problems[0].param == "factory_bad", "{problems:?}");
    assert!(problems[0].message.contains("of the 6 zones"), "{problems:?}");
    let settings = settings.and("zones", Value::Count(3));
    let constants = build(&settings).expect("three zones").info().constants;
    assert!(constants.iter().any(|(name, bad)| *name == "factory_bad_blocks" && *bad > 0.0));
}

#[test]
fn faults_wear_fill_and_slow_a_zoned_device() {
    let mut ssd = build(&small()).expect("a device");
    let faults = ssd.faults().expect("faults").supported();
    assert_eq!(faults, ["slow", "wear", "fill"]);
}

/// A model of what a host knows, which the device has to agree with in random operations.
#[test]
fn random_operations_agree_with_a_simple_model() {
    let limited = small().and("max_open_zones", Value::Count(2));
    let limited = limited
        .and("timing", chosen("timing", "queued"))
        .and("timing.write_buffer", Value::Bytes(8_192));
    let moved = refreshed_after(20).and("max_open_zones", Value::Count(2));
    let moved = moved.and("erase", text("open"));
    for (seed, settings) in (0..).zip([&limited, &limited, &limited, &limited, &moved, &moved]) {
        let mut stream = Stream::new(seed, "zns");
        // Pages written by zone, and whether it is finished.
        // No write crosses the end of the last zone of the device, which ends the run.
        let mut zones = [(0_u64, false); 5];
        let mut requests = Vec::new();
        let mut fails = Vec::new();
        for _ in 0..1_500 {
            let number = stream.below(5);
            let (written, finished) = &mut zones[number as usize];
            let (request, fail) = match stream.below(12) {
                0 => {
                    (*written, *finished) = (0, false);
                    (manage(ZoneAction::Reset, number), false)
                }
                1 => {
                    *finished = true;
                    (manage(ZoneAction::Finish, number), false)
                }
                2..6 => {
                    let first = stream.below(60);
                    (read(number, first, 1 + stream.below(60 - first)), false)
                }
                drawn => {
                    let pages = 1 + stream.below(9);
                    let at = if drawn == 6 { stream.below(60) } else { *written };
                    let fits = !*finished && at == *written && at + pages <= 60;
                    *written += if fits { pages } else { 0 };
                    *finished |= *written == 60;
                    (write(number, at, pages), !fits)
                }
            };
            requests.push(request);
            fails.push(fail);
        }
        // The host checks what is read.
        let (done, events) = one_by_one(settings, &requests);
        assert_eq!(count(&events, is_refresh) > 100, seed > 3, "zones are moved");
        for (done, fail) in done.iter().zip(fails) {
            assert_eq!(done.outcome == Outcome::Failed, fail, "{:?}", done.request);
        }
    }
}

#[test]
fn zones_go_offline_when_their_flash_is_worn_out_and_spare_flash_is_used_before() {
    let settings = small().and("endurance", Value::Count(3)).and("zones", Value::Count(1));
    let cycles = |groups: u64| {
        let settings = settings.clone().and("blocks_per_plane", Value::Count(2 * groups));
        let cycle = [write(0, 0, 60), manage(ZoneAction::Reset, 0)];
        let (done, events) = one_by_one(&settings, &cycle.repeat(9));
        let by_outcome = done.iter().filter(|it| it.request.op == Op::Write).fold(
            BTreeMap::new(),
            |mut sums, done| {
                *sums.entry(done.outcome == Outcome::Done).or_insert(0) += 1;
                sums
            },
        );
        assert!(reported(&events).iter().any(|it| it.0 == "zone_is_offline"));
        by_outcome[&true]
    };
    assert_eq!((cycles(1), cycles(2)), (3, 6), "three cycles of each group");
}

/// An erase at the open finds the last usable group worn out: what it erased is reported and takes
/// its time, no other zone is closed for it, and reads of the zone fail as well.
#[test]
fn a_zone_that_goes_offline_closes_no_other() {
    let settings = small()
        .and("endurance", Value::Count(1))
        .and("zones", Value::Count(2))
        .and("blocks_per_plane", Value::Count(4))
        .and("max_open_zones", Value::Count(1))
        .and("erase", text("open"));
    let requests = [
        write(0, 0, 60),
        manage(ZoneAction::Reset, 0),
        write(1, 0, 1),
        write(0, 0, 1),
        write(1, 1, 1),
        read(0, 0, 1),
        read(1, 0, 2),
    ];
    let (done, events) = one_by_one(&settings, &requests);
    let failed: Vec<usize> =
        (0..done.len()).filter(|at| done[*at].outcome == Outcome::Failed).collect();
    assert_eq!(failed, [3, 5], "zone 0 is offline");
    let reported = reported(&events);
    assert!(reported.iter().all(|it| it.0 != "implicitly_closed_zones"), "{reported:?}");
    assert_eq!(reported.iter().filter(|it| it.0 == "zone_is_offline").count(), 2);
    assert_eq!(count(&events, |it| matches!(it, FlashEvent::Erase { .. })), 8);
    assert_eq!(took_us(&done[3]), 4_000, "two erases of each die");
}

#[test]
fn a_refused_request_takes_the_overhead_of_a_command() {
    for (overhead, expected) in [(0, 1), (7, 7_000)] {
        let settings = small().and("controller.write_overhead", us(overhead));
        let (done, _) = one_by_one(&settings, &[write(0, 3, 1), manage(ZoneAction::Close, 0)]);
        for done in done {
            assert_eq!(done.outcome, Outcome::Failed);
            assert_eq!(done.completed.since(done.issued).as_ns(), expected);
        }
    }
}

/// Writes a zone, resets it and writes it again; reads it after a power failure. Meanwhile it sends
/// flushes, as the power fails between two messages.
struct Rewrites {
    /// Number of the last write begun, and the versions read.
    found: Rc<RefCell<(u64, Vec<u64>)>>,
}

impl Rewrites {
    fn issue(&self, ctx: &mut Ctx<'_>, mut request: Request, number: u64) {
        if matches!(request.op, Op::Write | Op::Read) {
            request.data = ctx.take_data(request.sectors);
            ctx.data().versions_mut(request.data, request.sectors).fill(number);
        }
        if (1..4).contains(&number) {
            self.found.borrow_mut().0 = number;
        }
        ctx.issue(0, request, number);
    }
}

impl Component for Rewrites {
    fn capacity(&self) -> u64 {
        0
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.issue(ctx, write(0, 0, 60), 1);
        ctx.wake_after(SimDuration::from_us(100), 0);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        self.issue(ctx, Request::new(Op::Flush, Lba(0), 0), 0);
        if token < 130 {
            ctx.wake_after(SimDuration::from_us(100), token + 1);
        }
    }

    fn request(&mut self, _ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {}

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        match done.tag {
            1 => self.issue(ctx, manage(ZoneAction::Reset, 0), 2),
            2 => self.issue(ctx, write(0, 0, 60), 3),
            9 => {
                let versions = ctx.data().versions(done.request.data, done.request.sectors);
                self.found.borrow_mut().1 = versions.to_vec();
            }
            _ => {}
        }
        ctx.data().give_back(done.request.data);
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for Rewrites {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.issue(ctx, read(0, 0, 60), 9);
    }
}

#[test]
fn a_power_failure_brings_nothing_back_from_before_a_reset() {
    for erase in ["reset", "open"] {
        let mut torn = 0;
        for seed in 0..300 {
            let found = Rc::new(RefCell::new((0, Vec::new())));
            let ssd = build(&small().and("erase", text(erase))).expect("a device");
            let root = Rewrites { found: found.clone() };
            let tree = ComponentTree::inner("host", root, vec![ComponentTree::leaf("ssd", ssd)]);
            let mut machine = Machine::new(tree, true);
            machine.fail_power(PowerFailureInjector::new(200, 1, Stream::new(seed, "power")));
            let mut events: Vec<EventRecord> = Vec::new();
            machine.run(&mut events, &mut |_| true).expect("a run without a fault");
            let (during, read) = found.take();
            if during == 2 {
                assert!(read.iter().all(|version| [0, 1].contains(version)), "{read:?}");
            }
            if during == 3 && !read.is_empty() {
                let landed = read.iter().take_while(|version| **version == 3).count();
                assert!(read[landed..].iter().all(|version| *version == 0), "{erase}: {read:?}");
                torn += usize::from(landed < read.len());
            }
        }
        assert!(torn > 5, "{erase}: {torn} writes were in flight");
    }
}

#[test]
fn impossible_sizes_are_rejected_by_name() {
    let rejects = |name: &'static str, value: Value, key: &str| {
        let Err(problems) = build(&small().and(name, value)) else { panic!("{name} passes") };
        assert_eq!(problems[0].param, key, "{problems:?}");
    };
    rejects("zone_capacity", Value::Bytes(1_000), "zone_capacity");
    rejects("zone_capacity", Value::Bytes(0), "zone_capacity");
    rejects("zone_capacity", Value::Bytes(1 << 40), "zone_size");
    rejects("zone_size", Value::Bytes(1 << 50), "zone_size");
    rejects("zones", Value::Count(7), "zones");
    // 2^24 zones of 1 TiB have more bytes than 64 bits can count.
    let many = small()
        .and("blocks_per_plane", Value::Count(1 << 24))
        .and("pages_per_block", Value::Count(1))
        .and("dies_per_channel", Value::Count(1))
        .and("channels", Value::Count(1))
        .and("zone_capacity", Value::Bytes(512 * PAGE))
        .and("zone_size", Value::Bytes(1 << 40))
        .and("zones", Value::Count(1 << 24));
    let Err(problems) = build(&many) else { panic!("an address space of 2^64 bytes") };
    assert_eq!(problems[0].param, "zone_size", "{problems:?}");
    rejects("blocks_per_plane", Value::Count(1), "zone_capacity");
    rejects("stripe_pages", Value::Count(3), "stripe_pages");
    for (key, sectors) in [
        ("zrwa_size", 0),
        ("zrwa_size", 3 * PAGE),
        ("zrwa_size", CAPACITY + 2 * PAGE),
        ("zrwa_granularity", 0),
        ("zrwa_granularity", 1),
    ] {
        let problems = build(&with_areas().and(key, Value::Bytes(512 * sectors))).err();
        let problems = problems.unwrap_or_else(|| panic!("{key} of {sectors} sectors passes"));
        assert_eq!(problems[0].param, key, "{sectors}: {problems:?}");
    }
    let four = small().and("max_active_zones", Value::Count(3));
    let Err(problems) = build(&four.and("max_open_zones", Value::Count(4))) else {
        panic!("more open than active zones")
    };
    assert_eq!(problems[0].param, "max_open_zones");
}
