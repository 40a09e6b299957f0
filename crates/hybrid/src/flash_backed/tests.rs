//! The scheduler over a drive: data, the two FQueues, watermarks, idle time, power failures.

use super::*;
use crate::nv_cache::{self, NvCacheDisk};
use crate::testing::{Outcome, Part as Place, drive_settings, play, run, views};
use hybridsim_config::check;
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::Load;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Arrival, ComponentTree, EventRecord, Fault, Op, PowerFailure, PowerFailureInjector,
};
use hybridsim_host::HostOptions;
use proptest::prelude::*;
use std::cell::RefCell;

/// Sectors of the disk.
const DISK: u64 = 400;

/// A component that others may look into.
struct Shared<L>(Rc<RefCell<L>>, Box<dyn Fn()>);

impl<L: Component> Component for Shared<L> {
    fn capacity(&self) -> u64 {
        self.0.borrow().capacity()
    }
    fn info(&self) -> ComponentInfo {
        self.0.borrow().info()
    }
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.0.borrow_mut().start(ctx);
    }
    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.0.borrow_mut().request(ctx, id, request);
        (self.1)();
    }
    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, request: &Request) {
        self.0.borrow_mut().command(ctx, id, command, request);
    }
    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.0.borrow_mut().completion(ctx, done);
        (self.1)();
    }
    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        self.0.borrow_mut().wake(ctx, token);
        (self.1)();
    }

    hybridsim_engine::supports!(PowerFailure);
}

impl<L: Component> PowerFailure for Shared<L> {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.0.borrow_mut().power_failure().expect("modelled").power_cut(now)
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.0.borrow_mut().power_failure().expect("modelled").power_on(ctx);
    }
}

/// Sectors take longer the farther they are.
struct Linear;

impl Positioner for Linear {
    fn positioning(&self, _now: SimTime, last: Lba, to: &Request) -> SimDuration {
        SimDuration::from_us(5 * last.0.abs_diff(to.lba.0))
    }
    fn cylinder(&self, lba: Lba) -> u32 {
        lba.0 as u32
    }
}

fn settings(scheduler: &str) -> Settings {
    let by = if scheduler == "fcfs" { "" } else { ", by = \"lbn\"" };
    let text = format!(
        "drive = \"drive\"\nscheduler = {{ kind = \"{scheduler}\"{by} }}\naccess = \"exact\"\n\
         flash_latency = \"100us\"\nflash_rate = \"100MB/s\"\nlow = 0.6\nmerge_max = \"32KiB\""
    );
    let settings = check::read(&text, &[Parameters::PARAMS], &registry());
    settings.unwrap_or_else(|problems| panic!("{problems}"))
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(hybridsim_host::scheduler::ENTRIES);
    registry
}

/// The scheduler over a drive with `flash` sectors; after every message the FQueues are compared.
fn system(settings: &Settings, flash: u64, seed: u64) -> (ComponentTree, Rc<RefCell<FlashBacked>>) {
    shared_system(settings, flash, 0, seed)
}

/// The same, but `taken` sectors are pinned already, beyond the end of the disk.
fn shared_system(
    settings: &Settings,
    flash: u64,
    taken: u64,
    seed: u64,
) -> (ComponentTree, Rc<RefCell<FlashBacked>>) {
    let registry = registry();
    let input = |settings, children| BuildInput {
        settings,
        registry: &registry,
        seed,
        path: "component",
        children,
    };
    let of_drive = views(&[flash, DISK], Some(Rc::new(Linear)));
    let own = drive_settings();
    let mut drive =
        nv_cache::make(&input(&own, &of_drive), nv_cache::Parameters::from_settings(&own));
    drive.extents.reserve(2 * DISK, taken, true);
    let of_scheduler = views(&[DISK], Some(Rc::new(Linear)));
    let made = make(&input(settings, &of_scheduler));
    let scheduler = made.unwrap_or_else(|problems| panic!("{problems:?}"));
    let (scheduler, drive) = (Rc::new(RefCell::new(scheduler)), Rc::new(RefCell::new(drive)));
    let (one, other) = (Rc::clone(&scheduler), Rc::clone(&drive));
    let compare = Box::new(move || compare(&one.borrow(), &other.borrow()));
    let children = vec![
        Place::new("flash", flash, 40).restless(seed),
        Place::new("disk", DISK, 400).restless(seed),
    ];
    let drive = ComponentTree::inner("host/component/nv", Shared(drive, Box::new(|| ())), children);
    (
        ComponentTree::inner("host/component", Shared(Rc::clone(&scheduler), compare), vec![drive]),
        scheduler,
    )
}

/// Sector by sector, what is in memory is what is pinned with data, but for what the operation
/// under way is about.
fn compare(scheduler: &FlashBacked, drive: &NvCacheDisk) {
    let own = [Step::Sizing, Step::Query, Step::Restore];
    let busy = scheduler.active;
    if busy.is_some_and(|active| own.contains(&active.step)) {
        return;
    }
    let mut about = vec![false; DISK as usize];
    for active in busy.iter().chain(scheduler.redirects.iter().flatten()) {
        active.range().for_each(|sector| about[sector as usize] = true);
    }
    let mut memory = vec![false; DISK as usize];
    let mut pinned = memory.clone();
    for (lba, sectors) in scheduler.fqueue.iter() {
        (lba..lba + sectors).for_each(|sector| memory[sector as usize] = true);
    }
    for (lba, extent) in drive.extents.iter().filter(|(_, extent)| extent.pinned && extent.valid) {
        (lba..lba + extent.sectors).for_each(|sector| pinned[sector as usize] = true);
    }
    for sector in (0..DISK as usize).filter(|sector| !about[*sector]) {
        assert_eq!(memory[sector], pinned[sector], "sector {sector}, {busy:?}");
    }
    let used = memory.iter().filter(|held| **held).count() as u64;
    assert_eq!(used, scheduler.fqueue.used());
    assert!(used <= scheduler.fqueue.size());
}

fn total(events: &[EventRecord], what: Metric) -> u64 {
    let value = |event: &EventRecord| match event.event() {
        Some(CommonEvent::Custom { name, value }) if name == what as u8 => value,
        _ => 0,
    };
    // The drive below reports a number 0 of its own; the tests do not use that number.
    events.iter().map(value).sum()
}

fn option(settings: Settings, name: &'static str, value: &str) -> Settings {
    settings.and(name, Value::Text(value.to_owned()))
}

#[test]
fn every_order_and_option_returns_what_was_written() {
    let (mut redirected, mut along, mut obsolete, mut back, mut idle) = (0, 0, 0, 0, 0);
    for scheduler in ["fcfs", "sstf", "c-look", "look"] {
        for coalesce in ["touching", "overlapping"] {
            for overwrites in ["coalesce", "replace"] {
                for order in ["safe", "printed"] {
                    for (flash, depth, seed) in [(40, 1, 1), (64, 16, 2), (0, 4, 3), (9, 32, 4)] {
                        let settings = option(settings(scheduler), "coalesce", coalesce);
                        let settings = option(settings, "overwrites", overwrites);
                        let settings = option(settings, "order", order);
                        let load = Load { requests: 700, sectors_max: 30, seed }.draw(DISK);
                        let (system, _) = system(&settings, flash.max(1), seed);
                        let Outcome { fault, events } = run(system, &load, depth, None);
                        assert_eq!(fault, None, "{scheduler} {coalesce} {overwrites} {order}");
                        redirected += total(&events, Metric::Redirected);
                        along += total(&events, Metric::Coalesced);
                        obsolete += total(&events, Metric::Overwritten);
                        back += total(&events, Metric::FlushedBack);
                        idle += total(&events, Metric::IdleSynced);
                    }
                }
            }
        }
    }
    for (name, count) in
        [("to flash", redirected), ("along", along), ("obsolete", obsolete), ("back", back)]
    {
        assert!(count > 1000, "{name}: {count}");
    }
    assert!(idle > 500, "idle: {idle}");
}

#[test]
fn reads_are_current_when_another_host_component_pins() {
    for overwrites in ["coalesce", "replace"] {
        for seed in 0..40 {
            let settings = option(settings("c-look"), "overwrites", overwrites);
            let settings = settings.and("idle", Value::Flag(false));
            let settings = settings.and("flash_queue_depth", Value::Count(1 + seed % 4));
            let load = Load { requests: 500, sectors_max: 30, seed }.draw(DISK);
            let (system, _) = shared_system(&settings, 100, 60, seed);
            let Outcome { fault, events } = run(system, &load, 8, None);
            assert_eq!(fault, None, "{overwrites} {seed}");
            assert!(total(&events, Metric::Redirected) > 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn both_fqueues_are_the_same_at_all_times(
        seed in 0u64..1_000_000,
        flash in 1u64..120,
        depth in 1u32..40,
        scheduler in prop::sample::select(vec!["fcfs", "sstf", "c-look"]),
        touching in any::<bool>(),
        replace in any::<bool>(),
        every in prop::option::of(20u64..400),
        in_flight in 1u64..6,
    ) {
        let settings = option(
            settings(scheduler), "coalesce", if touching { "touching" } else { "overlapping" },
        );
        let settings = option(settings, "overwrites", if replace { "replace" } else { "coalesce" });
        let settings = settings.and("flash_queue_depth", Value::Count(in_flight));
        let load = Load { requests: 300, sectors_max: 30, seed }.draw(DISK);
        let cuts = |mean| PowerFailureInjector::new(mean, 10_000, Stream::new(seed, "cuts"));
        let cuts = every.map(cuts);
        let (system, _) = system(&settings, flash, seed);
        let fault = run(system, &load, depth, cuts).fault;
        prop_assert_eq!(fault, None);
    }
}

/// The head is at 0, a sector takes 5 µs to pass and a write of two to flash 110 µs. Is a write at
/// `lba` redirected when `next` comes after it?
fn is_redirected(lba: u64, next: Option<u64>, (key, value): (&'static str, &str)) -> bool {
    let settings = option(settings("fcfs"), key, value)
        .and("flash_rate", Value::Rate(102_400_000))
        .and("idle", Value::Flag(false));
    let (system, _) = system(&settings, 40, 1);
    let arrival = |request| Arrival { at: SimTime::ZERO, request };
    let mut arrivals = vec![arrival(Request::new(Op::Write, Lba(lba), 2))];
    arrivals.extend(next.map(|next| arrival(Request::new(Op::Read, Lba(next), 2))));
    let Outcome { fault, events } = play(system, arrivals, HostOptions::open(8), None);
    assert_eq!(fault, None);
    total(&events, Metric::Redirected) > 0
}

#[test]
fn worked_examples_of_the_rule_in_the_scheduler() {
    let both =
        |lba, next| ["redirect", "disk"].map(|ties| is_redirected(lba, next, ("ties", ties)));
    // None after it: 110 µs to it are not more than flash takes, 115 are.
    assert_eq!(both(22, None), [false; 2], "a tie stays");
    assert_eq!(both(23, None), [true; 2]);
    assert!(!is_redirected(23, None, ("last", "disk")));
    assert!(is_redirected(22, Some(0), ("last", "disk")), "it has a successor");
    // On the way: 110 + 110 to the disk, 110 + 220 by flash.
    assert_eq!(both(22, Some(44)), [false; 2]);
    // There and back: 110 + 110, and 110 + 0.
    assert_eq!(both(22, Some(0)), [true; 2]);
    // A tie, 55 + 55 and 110 + 0: the text redirects, figure 6 does not.
    assert_eq!(both(11, Some(0)), [true, false]);
    assert_eq!(both(10, Some(0)), [false; 2]);
    assert_eq!(both(12, Some(0)), [true; 2]);
}

/// Runs under power failures; the fault, and how many there were.
fn fails(scheduler: &str, order: &str, in_flight: u64, seed: u64) -> (Option<Fault>, usize) {
    let settings = option(settings(scheduler), "order", order);
    let settings = settings.and("flash_queue_depth", Value::Count(in_flight));
    let load = Load { requests: 8000, sectors_max: 20, seed }.draw(DISK);
    let cuts = PowerFailureInjector::new(25, 100_000, Stream::new(seed, "cuts"));
    let (system, _) = system(&settings, 100, seed);
    let seen = run(system, &load, 8, Some(cuts));
    let cuts = seen
        .events
        .iter()
        .filter(|s| matches!(s.event(), Some(CommonEvent::PowerCut { .. })))
        .count();
    (seen.fault, cuts)
}

#[test]
fn nothing_acknowledged_is_lost_but_in_the_printed_order() {
    let mut all = 0;
    for scheduler in ["fcfs", "sstf", "c-look", "look"] {
        let mut lost = 0;
        for (in_flight, seed) in [(1, 0), (1, 1), (4, 2), (4, 3)] {
            let (fault, cuts) = fails(scheduler, "safe", in_flight, seed);
            assert_eq!(fault, None, "{scheduler}, {in_flight} in flight, seed {seed}");
            all += cuts;
            let (fault, _) = fails(scheduler, "printed", in_flight, seed);
            lost += u32::from(matches!(fault, Some(Fault::WrongData { .. })));
        }
        assert!(lost >= 2, "{scheduler}: unpinning first loses data, {lost} of 4 runs found it");
    }
    assert!(all >= 10_000, "{all} power failures");
}

/// Far writes at once, from the end of the disk: 40 of two sectors, none beside another.
fn burst() -> Vec<Arrival> {
    let place = |at: u64| if at.is_multiple_of(2) { at * 4 } else { DISK - 4 - at * 4 };
    let write = |at| Request::new(Op::Write, Lba(place(at)), 2);
    (0..40).map(|at| Arrival { at: SimTime::ZERO, request: write(at) }).collect()
}

#[test]
fn flushing_alternates_with_requests_down_to_the_low_watermark() {
    let settings = settings("fcfs").and("idle", Value::Flag(false));
    let (system, _) = system(&settings, 20, 1);
    let Outcome { fault, events } = play(system, burst(), HostOptions::open(64), None);
    assert_eq!(fault, None);
    let mut flushes = Vec::new();
    let mut foreground = 0;
    let mut level = 0;
    for record in &events {
        match record.event() {
            Some(CommonEvent::Custom { name, value }) if name == Metric::Level as u8 => {
                level = value
            }
            Some(CommonEvent::Custom { name, .. }) if name == Metric::FlushedBack as u8 => {
                flushes.push((foreground, level));
                foreground = 0;
            }
            Some(CommonEvent::Completed { .. }) => foreground += 1,
            _ => {}
        }
    }
    // Full with ten writes of two sectors; it goes down to 12 of 20 in steps of 2.
    assert!(flushes.len() >= 4, "{flushes:?}");
    assert!(flushes[0].0 >= 10, "the first when it is full: {flushes:?}");
    assert!(flushes[1..4].iter().all(|(between, _)| *between == 1), "one to one: {flushes:?}");
    assert!(level <= 20);
}

#[test]
fn writes_to_flash_may_overlap() {
    let took = |in_flight| {
        let settings = settings("fcfs").and("idle", Value::Flag(false));
        let settings = settings.and("flash_queue_depth", Value::Count(in_flight));
        let (system, _) = system(&settings, 100, 1);
        let Outcome { fault, events } = play(system, burst(), HostOptions::open(64), None);
        assert_eq!(fault, None);
        assert!(total(&events, Metric::Redirected) > 30);
        (events.last().expect("some").time.as_ns(), total(&events, Metric::FlashWrite))
    };
    let ((one, flash), (four, _)) = (took(1), took(4));
    assert!(one - four > flash * 7 / 10, "{one} ns, of which {flash} of flash; then {four}");
}

#[test]
fn a_write_too_long_for_what_is_free_makes_room_for_those_to_come() {
    // Down to 90 % would leave a tenth free: never enough for a quarter.
    let settings = settings("fcfs").and("idle", Value::Flag(false)).and("low", Value::Number(0.9));
    let (system, _) = system(&settings, 40, 1);
    let place = |at: u64| if at.is_multiple_of(2) { at * 8 } else { DISK - 20 - at * 8 };
    let sectors = |at| if at < 9 { 4 } else { 10 };
    let write = |at| Request::new(Op::Write, Lba(place(at)), sectors(at));
    let arrivals = (0..24).map(|at| Arrival { at: SimTime::ZERO, request: write(at) }).collect();
    let Outcome { fault, events } = play(system, arrivals, HostOptions::open(64), None);
    assert_eq!(fault, None);
    let redirected = Metric::Redirected as u8;
    let long = events.iter().filter(|record| {
        matches!(record.event(), Some(CommonEvent::Custom { name, value: 10 })
            if name == redirected)
    });
    assert!(long.count() > 2);
}

#[test]
fn idle_processing_empties_the_fqueue_and_delays_by_one_operation_at_most() {
    let settings = settings("c-look");
    let (system, scheduler) = system(&settings, 40, 5);
    let mut stream = Stream::new(8, "idle");
    let arrivals = (0..200).map(|at| {
        let lba = stream.below(DISK - 4);
        let request = Request::new(Op::Write, Lba(lba), 4);
        // Pairs: the second comes while the first is being written back.
        let us = at / 2 * 4000 + at % 2 * 300;
        Arrival { at: SimTime::ZERO + SimDuration::from_us(us), request }
    });
    let Outcome { fault, events } = play(system, arrivals.collect(), HostOptions::open(64), None);
    assert_eq!(fault, None);
    assert!(total(&events, Metric::IdleSynced) > 100);
    assert_eq!(total(&events, Metric::FlushedBack), 0);
    // A disk write takes 400 to 800 µs, an unpin 11: no request waits for more than one of them.
    let phases = events.iter().filter_map(EventRecord::event).flat_map(CommonEvent::phases);
    let waits = phases.filter(|(phase, _)| *phase == hybridsim_engine::LatencyPhase::Queue);
    let longest = waits.map(|(_, time)| time).max().expect("some wait");
    assert!(longest <= SimDuration::from_us(811), "{longest}");
    drop(scheduler);
}

#[test]
fn idle_processing_may_end_at_a_level() {
    let kept = |idle_to: f64| {
        let settings = settings("fcfs").and("idle_to", Value::Number(idle_to));
        let (system, scheduler) = system(&settings, 40, 5);
        // Far apart, so that every one is redirected.
        let writes = (0..9).map(|at| {
            let lba = if at % 2 == 0 { 100 + at * 8 } else { 390 - at * 8 };
            let request = Request::new(Op::Write, Lba(lba), 4);
            Arrival { at: SimTime::ZERO + SimDuration::from_ms(at * 20), request }
        });
        let ran = play(system, writes.collect(), HostOptions::open(64), None);
        assert_eq!(ran.fault, None);
        scheduler.borrow().fqueue.used()
    };
    // The run ends with the last write, before that is destaged.
    assert_eq!(kept(0.0), 4);
    assert_eq!(kept(0.5), 24, "half of 40 sectors stay");
    assert_eq!(kept(1.0), 36, "all that was redirected stays");
}

#[test]
fn sizes_that_differ_are_refused() {
    let settings = settings("fcfs").and("fqueue", Value::Bytes(41 * 512));
    let (system, _) = system(&settings, 40, 1);
    let fault = run(system, &burst().iter().map(|a| a.request).collect::<Vec<_>>(), 1, None).fault;
    let message = fault.expect("they must be equal").to_string();
    assert!(message.contains("41 sectors and the NV cache of the drive 40"), "{message}");
}

#[test]
fn a_device_that_knows_no_commands_says_so() {
    let registry = registry();
    let settings = settings("fcfs");
    let views = views(&[DISK], Some(Rc::new(Linear)));
    let input = BuildInput {
        settings: &settings,
        registry: &registry,
        seed: 1,
        path: "l",
        children: &views,
    };
    let scheduler = make(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    let system = ComponentTree::inner(
        "host/component",
        scheduler,
        vec![Place::new("disk", DISK, 10).steady()],
    );
    let fault = run(system, &[], 1, None).fault.expect("it is not a drive with an NV cache");
    assert!(fault.to_string().contains("does not support the NV cache command"), "{fault}");
}

#[test]
fn wrong_parameters_are_reported_together() {
    let registry = registry();
    let settings = settings("fcfs")
        .and("low", Value::Number(0.9))
        .and("high", Value::Number(0.5))
        .and("merge_max", Value::Bytes(5));
    let views = views(&[1 << 33], None);
    let input = BuildInput {
        settings: &settings,
        registry: &registry,
        seed: 1,
        path: "l",
        children: &views,
    };
    let problems = make(&input).err().expect("refused");
    let names: Vec<_> = problems.iter().map(|problem| problem.param).collect();
    assert_eq!(names, ["low", "merge_max", "drive", "drive"]);
}
