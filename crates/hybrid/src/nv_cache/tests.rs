//! The drive under a host that pins, unpins, flushes and changes the power mode as it likes.

use super::*;
use crate::testing::{Outcome, Part as Place, drive_settings, run, views};
use hybridsim_cache::CacheEvent;
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::Load;
use hybridsim_engine::{
    Arrival, ComponentTree, EventRecord, Flags, Lba, Op, PowerFailure, PowerFailureInjector, Stream,
};

/// Passes requests on and sends a random command with every other one.
struct Whimsical {
    capacity: u64,
    stream: Stream,
    refused: u64,
}

impl Component for Whimsical {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: "whimsical", ..ComponentInfo::default() }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        ctx.issue(0, *request, u64::from(id.0));
        let lba = self.stream.below(self.capacity);
        let sectors = 1 + self.stream.below((self.capacity - lba).min(30)) as u32;
        let command = match self.stream.below(12) {
            0..3 => Command::Pin { populate: false },
            3 => Command::Pin { populate: true },
            4..7 => Command::Unpin { discard: false },
            7 => Command::FlushUnpinned,
            8 if self.stream.chance(0.5) => Command::LeavePowerMode,
            8 => Command::EnterPowerMode { spinning_s_min: 0 },
            9 => Command::QueryPinned,
            _ => return,
        };
        ctx.command(0, command, (Lba(lba), sectors), u64::MAX);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.tag != u64::MAX {
            ctx.complete(RequestId(done.tag as u32), done.breakdown);
            return;
        }
        ctx.take_answer(done.id);
        self.refused += u64::from(done.outcome == hybridsim_engine::Outcome::Failed);
    }

    hybridsim_engine::supports!(PowerFailure);
}

impl PowerFailure for Whimsical {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        Ok(())
    }
}

/// A drive over so many sectors of flash and of disk.
fn drive(seed: u64, flash: u64, disk: u64) -> NvCacheDisk {
    drive_with(&drive_settings(), seed, flash, disk)
}

fn drive_with(settings: &Settings, seed: u64, flash: u64, disk: u64) -> NvCacheDisk {
    let registry = Registry::default();
    let views = views(&[flash, disk], None);
    let input = BuildInput { settings, registry: &registry, seed, path: "nv", children: &views };
    make(&input, Parameters::from_settings(settings))
}

/// Settings of the power mode: as without, and with its algorithms, in turn.
fn power_settings(turn: u64) -> Settings {
    let text = |text: &str| Value::Text(text.to_owned());
    let settings = drive_settings();
    match turn % 4 {
        0 => settings,
        1 => settings.and("cache_reads", text("all")).and("spin_up_at", Value::Number(0.3)),
        2 => settings
            .and("cache_reads", text("spin-up"))
            .and("cache_writes", text("standby"))
            .and("read_share", Value::Number(1.0))
            .and("artificial_idle", Value::Flag(true))
            .and("spin_down_after", Value::Duration(SimDuration::from_us(500))),
        _ => settings
            .and("cache_reads", text("all"))
            .and("write_rate_max", Value::Rate(1_000_000))
            .and("spin_up_at", Value::Number(0.0)),
    }
}

fn system(seed: u64, flash: u64, disk: u64) -> ComponentTree {
    let children = vec![
        Place::new("flash", flash, 30).restless(seed),
        Place::new("disk", disk, 300).restless(seed),
    ];
    let drive = drive_with(&power_settings(seed), seed, flash, disk);
    let drive = ComponentTree::inner("host/w/nv", drive, children);
    let stream = Stream::new(seed, "whimsical");
    ComponentTree::inner("host/w", Whimsical { capacity: disk, stream, refused: 0 }, vec![drive])
}

#[test]
fn nothing_a_host_commands_changes_what_is_read() {
    for seed in 0..30 {
        for (flash, depth) in [(40, 1), (64, 8), (7, 32), (300, 8)] {
            let load = Load { requests: 800, sectors_max: 40, seed }.draw(300);
            let Outcome { fault, events, .. } = run(system(seed, flash, 300), &load, depth, None);
            assert_eq!(fault, None, "seed {seed}, flash {flash}, depth {depth}");
            let moved =
                |event: &EventRecord| matches!(event.event(), Some(CacheEvent::Destaged { .. }));
            let cached = |event: &EventRecord| {
                matches!(event.event(), Some(CacheEvent::CacheLookup { hits: 1.., .. }))
            };
            assert!(flash < 10 || events.iter().filter(|s| moved(s)).count() > 5);
            assert!(flash < 10 || events.iter().filter(|s| cached(s)).count() > 50, "{seed}");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_fails() {
    let mut all = 0;
    for seed in 0..20 {
        let load = Load { requests: 6000, sectors_max: 40, seed }.draw(300);
        let cuts = PowerFailureInjector::new(25, 100_000, Stream::new(seed, "cuts"));
        let seen = run(system(seed, 64, 300), &load, 8, Some(cuts));
        assert_eq!(seen.fault, None, "seed {seed}");
        all += seen
            .events
            .iter()
            .filter(|s| matches!(s.event(), Some(CommonEvent::PowerCut { .. })))
            .count();
    }
    assert!(all >= 10_000, "{all} power failures");
}

/// Sends commands and requests one after the other, and keeps what came of them.
struct Script {
    steps: Vec<Step>,
    at: usize,
    root: Option<RequestId>,
    seen: std::rc::Rc<std::cell::RefCell<Vec<Seen>>>,
}

#[derive(Clone, Copy)]
enum Step {
    Send(Command, u64, u32),
    Ask(Op, Flags, u64, u32),
}

/// Microseconds, whether it was done, and the answer.
type Seen = (u64, bool, Vec<(u64, u64)>);

impl Script {
    fn next(&mut self, ctx: &mut Ctx<'_>) {
        match self.steps.get(self.at) {
            Some(Step::Send(command, lba, sectors)) => {
                ctx.command(0, *command, (Lba(*lba), *sectors), 0);
            }
            Some(Step::Ask(op, flags, lba, sectors)) => {
                let request = Request::new(*op, Lba(*lba), *sectors);
                ctx.issue(0, Request { flags: *flags, ..request }, 0);
            }
            None => {
                let id = self.root.take().expect("it began with a request");
                let waited = ctx.now().since(ctx.issued(id));
                let breakdown = hybridsim_engine::LatencyBreakdown::NONE;
                ctx.complete(id, breakdown.plus(hybridsim_engine::LatencyPhase::Queue, waited));
            }
        }
        self.at += 1;
    }
}

impl Component for Script {
    fn capacity(&self) -> u64 {
        1000
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: "script", ..ComponentInfo::default() }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, _request: &Request) {
        self.root = Some(id);
        self.next(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let answer = ctx.take_answer(done.id).into_iter().map(|(lba, n)| (lba.0, n)).collect();
        let good = done.outcome == hybridsim_engine::Outcome::Done;
        self.seen.borrow_mut().push((done.latency.as_ns() / 1000, good, answer));
        self.next(ctx);
    }
}

/// Plays steps on a drive of 50 sectors of flash (30 µs a request) and 1000 of disk (300 µs), and
/// checks what came of each.
fn check_steps(settings: &Settings, steps: &[(Step, Seen)]) {
    let script: Vec<Step> = steps.iter().map(|step| step.0).collect();
    let seen = play_on(settings, &script, Place::new("flash", 50, 30).steady());
    for (at, (seen, (_, expect))) in seen.iter().zip(steps).enumerate() {
        assert_eq!(seen, expect, "step {at}");
    }
    assert_eq!(seen.len(), steps.len());
}

/// Plays `steps` on other flash.
fn play_on(settings: &Settings, steps: &[Step], flash: ComponentTree) -> Vec<Seen> {
    let children = vec![flash, Place::new("disk", 1000, 300).steady()];
    let drive = ComponentTree::inner("host/s/nv", drive_with(settings, 1, 50, 1000), children);
    let seen = std::rc::Rc::default();
    let script =
        Script { steps: steps.to_vec(), at: 0, root: None, seen: std::rc::Rc::clone(&seen) };
    let load = [Request::new(Op::Flush, Lba(0), 0)];
    let outcome = run(ComponentTree::inner("host/s", script, vec![drive]), &load, 1, None);
    assert_eq!(outcome.fault, None);
    seen.take()
}

const PIN: Command = Command::Pin { populate: false };
const POPULATE: Command = Command::Pin { populate: true };

#[test]
fn commands_take_microseconds_and_do_what_they_say() {
    use Step::{Ask, Send};
    let (read, write, none) = (Op::Read, Op::Write, Flags::NONE);
    let steps = [
        (Send(Command::QuerySize, 0, 0), (11, true, vec![(0, 50)])),
        (Send(PIN, 100, 10), (11, true, vec![])),
        // Reserved, but the data are still on the disk.
        (Send(Command::QueryPinned, 0, 0), (10, true, vec![])),
        (Ask(read, none, 100, 10), (300, true, vec![])),
        (Ask(write, none, 104, 4), (30, true, vec![])),
        (Send(Command::QueryPinned, 0, 0), (11, true, vec![(104, 4)])),
        (Ask(read, none, 104, 4), (30, true, vec![])),
        (Ask(read, none, 100, 10), (300, true, vec![])),
        (Ask(write, Flags::PAST_CACHE, 104, 4), (300, true, vec![])),
        // Populate reads from the disk (two gaps) and writes to flash.
        (Send(POPULATE, 100, 10), (11 + 2 * 330, true, vec![])),
        (Send(Command::QueryPinned, 0, 0), (11, true, vec![(100, 10)])),
        // No room for 41 more.
        (Send(PIN, 500, 41), (11, false, vec![])),
        (Send(PIN, 500, 40), (11, true, vec![])),
        (Send(Command::Unpin { discard: true }, 100, 5), (11, true, vec![])),
        (Send(Command::QueryPinned, 0, 0), (11, true, vec![(105, 5)])),
        (Ask(read, none, 100, 5), (300, true, vec![])),
        (Send(PIN, 700, 5), (11, true, vec![])),
        // Without discarding, what only the cache holds stays there.
        (Ask(write, none, 105, 2), (30, true, vec![])),
        (Send(Command::Unpin { discard: false }, 105, 5), (11, true, vec![])),
        (Send(Command::QueryPinned, 105, 5), (10, true, vec![])),
        (Ask(read, none, 105, 2), (30, true, vec![])),
        (Ask(read, none, 107, 3), (300, true, vec![])),
    ];
    check_steps(&drive_settings(), &steps);
}

#[test]
fn the_power_mode_caches_writes_and_flushes_its_own_set() {
    use Step::{Ask, Send};
    let (read, write, none) = (Op::Read, Op::Write, Flags::NONE);
    let steps = [
        (Ask(write, none, 10, 8), (300, true, vec![])),
        (Send(Command::EnterPowerMode { spinning_s_min: 0 }, 0, 0), (10, true, vec![])),
        (Ask(write, none, 10, 8), (30, true, vec![])),
        (Ask(write, none, 30, 40), (30, true, vec![])),
        (Ask(read, none, 10, 8), (30, true, vec![])),
        // Its own sectors are not the host's.
        (Send(Command::QueryPinned, 0, 0), (10, true, vec![])),
        (Send(PIN, 300, 10), (11, false, vec![])),
        // The oldest go first.
        (Send(Command::FlushUnpinned, 0, 10), (10 + 330, true, vec![])),
        // The disk turns, so the others follow.
        (Ask(read, none, 10, 8), (300, true, vec![])),
        (Send(PIN, 300, 10), (11, true, vec![])),
        (Ask(read, none, 30, 40), (330 - 311 + 300, true, vec![])),
        (Ask(write, none, 10, 8), (30, true, vec![])),
        // 33 sectors do not fit: the disk, and then its own set.
        (Ask(write, none, 200, 33), (300, true, vec![])),
        (Ask(read, none, 10, 8), (330 + 300, true, vec![])),
        (Ask(write, none, 10, 8), (30, true, vec![])),
        (Send(Command::LeavePowerMode, 0, 0), (10 + 330, true, vec![])),
    ];
    check_steps(&drive_settings(), &steps);
}

#[test]
fn cached_reads_are_not_dropped_for_a_write_that_cannot_fit() {
    use Step::{Ask, Send};
    let (read, write, none) = (Op::Read, Op::Write, Flags::NONE);
    let steps = [
        (Send(Command::EnterPowerMode { spinning_s_min: 0 }, 0, 0), (10, true, vec![])),
        (Ask(read, none, 10, 8), (300, true, vec![])),
        (Ask(write, none, 200, 64), (300, true, vec![])),
        (Ask(read, none, 10, 8), (30, true, vec![])),
        // One that fits takes their space.
        (Ask(write, none, 200, 50), (30, true, vec![])),
        (Ask(read, none, 10, 8), (300, true, vec![])),
    ];
    check_steps(&drive_settings().and("cache_reads", Value::Text("all".into())), &steps);
}

#[test]
fn a_write_rate_of_zero_is_rejected() {
    let settings = drive_settings().and("write_rate_max", Value::Rate(0));
    let (registry, children) = (Registry::default(), views(&[50, 1000], None));
    let (settings, children) = (&settings, &children[..]);
    let input = BuildInput { settings, registry: &registry, seed: 1, path: "nv", children };
    let problems = (super::ENTRY.build)(&input).err().expect("it is rejected");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("leave it out for no limit"), "{problems:?}");
}

#[test]
fn hits_and_misses_are_sectors_however_scattered() {
    let mut drive = drive(1, 50, 1000);
    // Three pieces in the cache, the last of which with data.
    for (lba, sectors) in [(10, 3), (13, 5), (20, 7)] {
        drive.extents.reserve(lba, sectors, true);
    }
    drive.extents.change(20, 27, |extent| extent.valid = true);
    let children =
        vec![Place::new("flash", 50, 30).steady(), Place::new("disk", 1000, 300).steady()];
    let system = ComponentTree::inner("host/nv", drive, children);
    let request = |op| Arrival { at: SimTime::ZERO, request: Request::new(op, Lba(10), 20) };
    let options = hybridsim_host::HostOptions::closed(1);
    let arrivals = vec![request(Op::Write), request(Op::Read)];
    let events = crate::testing::play(system, arrivals, options, None).events;
    let looked = events.iter().filter_map(|record| match record.event() {
        Some(CacheEvent::CacheLookup { op, hits, misses }) => Some((op, hits, misses)),
        _ => None,
    });
    assert_eq!(looked.collect::<Vec<_>>(), [(Op::Write, 15, 5), (Op::Read, 15, 5)]);
}

#[test]
fn sectors_written_to_the_cache_are_reported_in_the_power_mode() {
    let mut drive = drive(1, 50, 1000);
    drive.spindle.enter(0);
    let children =
        vec![Place::new("flash", 50, 30).steady(), Place::new("disk", 1000, 300).steady()];
    let system = ComponentTree::inner("host/nv", drive, children);
    let write = |lba, sectors| Arrival {
        at: SimTime::ZERO,
        request: Request::new(Op::Write, Lba(lba), sectors),
    };
    let options = hybridsim_host::HostOptions::closed(1);
    // The second write finds its space there; the third does not fit.
    let arrivals = vec![write(10, 20), write(10, 20), write(200, 40)];
    let events = crate::testing::play(system, arrivals, options, None).events;
    let written = events.iter().filter_map(|record| match record.event() {
        Some(CommonEvent::Custom { name: WRITE_CACHED, value }) => Some(value),
        _ => None,
    });
    assert_eq!(written.collect::<Vec<_>>(), [20, 20]);
}

/// A device that fails writes.
struct NoWrites(u64);

impl Component for NoWrites {
    fn capacity(&self) -> u64 {
        self.0
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: "no-writes", ..ComponentInfo::default() }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let none = hybridsim_engine::LatencyBreakdown::NONE;
        if request.op == Op::Write {
            ctx.fail_request(id, none);
        } else {
            ctx.complete(id, none);
        }
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}
}

#[test]
fn a_write_that_fails_leaves_no_reservation_behind() {
    use Step::{Ask, Send};
    let steps = [
        Send(Command::EnterPowerMode { spinning_s_min: 0 }, 0, 0),
        Ask(Op::Write, Flags::NONE, 10, 40),
        // All of the cache is free again.
        Send(PIN, 300, 50),
    ];
    let flash = ComponentTree::leaf("host/s/nv/flash", NoWrites(50));
    let seen = play_on(&drive_settings(), &steps, flash);
    let done: Vec<bool> = seen.iter().map(|(_, done, _)| *done).collect();
    assert_eq!(done, [true, false, true]);
}

#[test]
fn a_long_queue_of_trims_takes_no_stack() {
    // Behind a read of the same sectors, so that all of them end at one instant.
    let trims = 10_000;
    let pinned = Arrival { at: SimTime::ZERO, request: Request::new(Op::Write, Lba(0), 8) };
    let trim = Arrival { at: SimTime::ZERO, request: Request::new(Op::Trim, Lba(0), 8) };
    let mut arrivals = vec![pinned; 2];
    arrivals.extend(vec![trim; trims]);
    let mut drive = drive(1, 50, 100);
    drive.spindle.enter(0);
    let children =
        vec![Place::new("flash", 50, 30).steady(), Place::new("disk", 100, 300).steady()];
    let system = ComponentTree::inner("host/nv", drive, children);
    let options = hybridsim_host::HostOptions::open(u32::MAX);
    let run = move || crate::testing::play(system, arrivals, options, None).fault;
    assert_eq!(run(), None);
}

const MODE: Command = Command::EnterPowerMode { spinning_s_min: 0 };
const NONE: Flags = Flags::NONE;

#[test]
fn cached_reads_are_dropped_for_others() {
    use Step::{Ask, Send};
    let (read, write) = (Op::Read, Op::Write);
    let all = drive_settings().and("cache_reads", Value::Text("all".to_owned()));
    let steps = [
        (Send(MODE, 0, 0), (10, true, vec![])),
        (Ask(read, NONE, 100, 10), (300, true, vec![])),
        (Ask(read, NONE, 200, 10), (300, true, vec![])),
        // More than its share of 25: not cached.
        (Ask(read, NONE, 300, 26), (300, true, vec![])),
        (Ask(read, NONE, 300, 26), (300, true, vec![])),
        // No space among 25 clean sectors: the oldest are dropped.
        (Ask(read, NONE, 400, 10), (300, true, vec![])),
        (Ask(read, NONE, 200, 10), (30, true, vec![])),
        (Ask(read, NONE, 100, 10), (300, true, vec![])),
        // A write makes cached sectors dirty, one that needs the space drops the clean ones.
        (Ask(write, NONE, 400, 10), (30, true, vec![])),
        (Ask(write, NONE, 600, 40), (30, true, vec![])),
        (Ask(read, NONE, 400, 10), (30, true, vec![])),
        // The second is in two places on flash.
        (Send(Command::LeavePowerMode, 0, 0), (10 + 3 * 330, true, vec![])),
    ];
    check_steps(&all, &steps);
}

#[test]
fn throttled_writes_go_to_the_disk() {
    use Step::{Ask, Send};
    let write = Op::Write;
    // A sector a second, and at first the 50 of the cache.
    let settings = drive_settings().and("write_rate_max", Value::Rate(512));
    let steps = [
        (Send(MODE, 0, 0), (10, true, vec![])),
        (Ask(write, NONE, 10, 20), (30, true, vec![])),
        // What is cached is written there, and counts.
        (Ask(write, NONE, 10, 20), (30, true, vec![])),
        (Ask(write, NONE, 100, 11), (300, true, vec![])),
        (Ask(write, NONE, 100, 10), (30, true, vec![])),
    ];
    check_steps(&settings, &steps);
}

/// A disk that takes a millisecond, and keeps the commands and requests it gets.
struct Listener {
    capacity: u64,
    heard: std::rc::Rc<std::cell::RefCell<Vec<String>>>,
}

impl Listener {
    fn hear(&self, ctx: &Ctx<'_>, what: impl std::fmt::Debug, at: u64) {
        let ms = ctx.now().as_ns() / 1_000_000;
        self.heard.borrow_mut().push(format!("{ms} {what:?} {at}"));
    }
}

impl Component for Listener {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: "listener", ..ComponentInfo::default() }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if request.op != Op::Flush {
            self.hear(ctx, request.op, request.lba.0);
        }
        let took = SimDuration::from_ms(1);
        let transfer = hybridsim_engine::LatencyPhase::Transfer;
        let breakdown = hybridsim_engine::LatencyBreakdown::NONE.plus(transfer, took);
        ctx.complete_at(id, ctx.now() + took, breakdown);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, _: &Request) {
        self.hear(ctx, command, 0);
        ctx.complete(id, hybridsim_engine::LatencyBreakdown::NONE);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}
}

/// Requests to the disk of a drive in the power mode, with their milliseconds.
fn heard(settings: &Settings, load: &[(u64, Op, u64, u32)]) -> Vec<String> {
    let heard = std::rc::Rc::default();
    let disk = Listener { capacity: 1000, heard: std::rc::Rc::clone(&heard) };
    let mut drive = drive_with(settings, 1, 50, 1000);
    drive.spindle.enter(0);
    let disk = ComponentTree::leaf("host/nv/disk", disk);
    let children = vec![Place::new("flash", 50, 30).steady(), disk];
    let system = ComponentTree::inner("host/nv", drive, children);
    let arrival = |(ms, op, lba, sectors): &(u64, Op, u64, u32)| Arrival {
        at: SimTime::ZERO + SimDuration::from_ms(*ms),
        request: Request::new(*op, Lba(*lba), *sectors),
    };
    let options = hybridsim_host::HostOptions::open(u32::MAX);
    // A run ends with its last request.
    let last = (1000, Op::Flush, 0, 0);
    let arrivals = load.iter().chain([&last]).map(arrival).collect();
    crate::testing::play_unchecked(system, arrivals, options);
    heard.take().into_iter().filter(|line: &String| !line.starts_with("1001 ")).collect()
}

#[test]
fn only_reads_end_an_artificial_idle_period() {
    let (read, write) = (Op::Read, Op::Write);
    let settings =
        drive_settings().and("spin_down_after", Value::Duration(SimDuration::from_ms(100)));
    // The disk spins when the run begins. Writes are cached; reads go to the disk for 1 ms, which
    // lets it destage.
    let load = [(9, read, 0, 1), (70, write, 10, 1), (130, write, 20, 1), (199, read, 0, 1)];
    let tail = ["199 Read 0", "200 Write 10", "201 Write 20", "300 Standby 0"];
    assert_eq!(heard(&settings, &load), [&["9 Read 0"], &tail[..]].concat());
    let artificial = settings.and("artificial_idle", Value::Flag(true));
    // 100 ms after each read, whatever was written meanwhile.
    assert_eq!(heard(&artificial, &load), [&["9 Read 0", "110 Standby 0"], &tail[..]].concat());
}

#[test]
fn writes_are_cached_in_standby_only_where_it_says_so() {
    let (read, write) = (Op::Read, Op::Write);
    let settings = drive_settings()
        .and("spin_down_after", Value::Duration(SimDuration::from_ms(100)))
        .and("cache_writes", Value::Text("standby".to_owned()));
    // The first finds the disk spinning, the second stopped.
    let load = [(0, write, 10, 1), (150, write, 20, 1), (199, read, 0, 1), (250, write, 30, 1)];
    let expected = [
        "0 Write 10",
        "101 Standby 0",
        "199 Read 0",
        "200 Write 20",
        "250 Write 30",
        "351 Standby 0",
    ];
    assert_eq!(heard(&settings, &load), expected);
}

#[test]
fn reads_that_start_the_disk_are_cached() {
    let read = Op::Read;
    let settings = drive_settings()
        .and("spin_down_after", Value::Duration(SimDuration::from_ms(100)))
        .and("cache_reads", Value::Text("spin-up".to_owned()));
    let load = [
        (0, read, 0, 1),
        (150, read, 10, 1),
        (200, read, 20, 1),
        (350, read, 10, 1),
        (410, read, 20, 1),
    ];
    // The second starts the disk and is cached; the third finds it spinning and is not.
    let expected = [
        "0 Read 0",
        "101 Standby 0",
        "150 Read 10",
        "200 Read 20",
        "301 Standby 0",
        "410 Read 20",
        "511 Standby 0",
    ];
    assert_eq!(heard(&settings, &load), expected);
}

#[test]
fn a_nearly_full_cache_starts_the_disk() {
    let write = Op::Write;
    let settings = drive_settings();
    let load = [(0, write, 0, 30), (10, write, 300, 15), (20, write, 400, 15)];
    // The third does not fit. While the disk spins for it, the others are destaged.
    let expected = ["0 Standby 0", "20 Write 400", "21 Write 0", "22 Write 300", "23 Standby 0"];
    assert_eq!(heard(&settings, &load), expected);
    let early = settings.and("spin_up_at", Value::Number(0.8));
    // 45 of 50 are more than 0.8: started and destaged before the third, which fits.
    let expected = ["0 Standby 0", "10 Idle 0", "10 Write 0", "11 Write 300", "12 Standby 0"];
    assert_eq!(heard(&early, &load), expected);
}
