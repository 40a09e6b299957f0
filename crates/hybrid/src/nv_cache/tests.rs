//! The drive under a host that pins, unpins, flushes and changes the power mode as it likes.

use super::*;
use crate::testing::{Outcome, Part as Place, drive_settings, run, views};
use hybridsim_cache::CacheEvent;
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
            4..7 => Command::Unpin,
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

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for Whimsical {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        Ok(())
    }
}

/// A drive over so many sectors of flash and of disk.
fn drive(unpin: &str, seed: u64, flash: u64, disk: u64) -> NvCacheDisk {
    let registry = Registry::default();
    let settings = drive_settings(unpin);
    let views = views(&[flash, disk], None);
    let input =
        BuildInput { settings: &settings, registry: &registry, seed, path: "nv", children: &views };
    make(&input)
}

fn system(seed: u64, flash: u64, disk: u64) -> ComponentTree {
    let children = vec![
        Place::new("flash", flash, 30).restless(seed),
        Place::new("disk", disk, 300).restless(seed),
    ];
    let drive = ComponentTree::inner("host/w/nv", drive("keep", seed, flash, disk), children);
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
            assert!(flash < 10 || events.iter().filter(|s| cached(s)).count() > 50);
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

/// Plays `steps` on a drive of 50 sectors of flash (30 µs a request) and 1000 of disk (300 µs).
fn play(unpin: &str, steps: &[Step]) -> Vec<Seen> {
    play_on(unpin, steps, Place::new("flash", 50, 30).steady())
}

/// The same on other flash.
fn play_on(unpin: &str, steps: &[Step], flash: ComponentTree) -> Vec<Seen> {
    let children = vec![flash, Place::new("disk", 1000, 300).steady()];
    let drive = ComponentTree::inner("host/s/nv", drive(unpin, 1, 50, 1000), children);
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
        (Send(Command::Unpin, 100, 5), (11, true, vec![])),
        (Send(Command::QueryPinned, 0, 0), (11, true, vec![(105, 5)])),
        (Ask(read, none, 100, 5), (300, true, vec![])),
        (Send(PIN, 700, 5), (11, true, vec![])),
    ];
    let seen = play("discard", &steps.each_ref().map(|step| step.0));
    for (at, (seen, (_, expect))) in seen.iter().zip(&steps).enumerate() {
        assert_eq!(seen, expect, "step {at}");
    }
    assert_eq!(seen.len(), steps.len());
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
    let seen = play("keep", &steps.each_ref().map(|step| step.0));
    for (at, (seen, (_, expect))) in seen.iter().zip(&steps).enumerate() {
        assert_eq!(seen, expect, "step {at}");
    }
    assert_eq!(seen.len(), steps.len());
}

#[test]
fn hits_and_misses_are_sectors_however_scattered() {
    let mut drive = drive("discard", 1, 50, 1000);
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
    let seen = play_on("keep", &steps, flash);
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
    let mut drive = drive("keep", 1, 50, 100);
    drive.spindle.enter(0);
    let children =
        vec![Place::new("flash", 50, 30).steady(), Place::new("disk", 100, 300).steady()];
    let system = ComponentTree::inner("host/nv", drive, children);
    let options = hybridsim_host::HostOptions::open(u32::MAX);
    let run = move || crate::testing::play(system, arrivals, options, None).fault;
    assert_eq!(run(), None);
}
