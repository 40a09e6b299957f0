//! Writes a report of three made-up runs, to work on the report without running the simulator:
//! `cargo run -p hybridsim-report --example sample_report -- report.html`.
//!
//! The events are drawn from simple distributions; only the report's looks are real.

use hybridsim_cache::CacheEvent;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::{
    CommonEvent, ComponentId, ComponentInfo, Event, EventRecord, EventSink, LatencyPhase, Lba, Op,
    PowerState, RedundancyChange, SimDuration, SimTime, Stream,
};
use hybridsim_flash::event::joules::{ERASES, PROGRAMS, READS};
use hybridsim_flash::{Cause, FlashAct, FlashBusy, FlashEvent, FlashUnit};
use hybridsim_observe::{Cost, Detail, EndedBy, Ending, Label, Recorder, Warmup};
use hybridsim_report::diagram::{self, Item, Shape};
use hybridsim_report::{Run, html, terminal};

const REQUESTS: u64 = 40_000;
const HOST: ComponentId = ComponentId(0);
const DISK: ComponentId = ComponentId(1);
const FLASH: ComponentId = ComponentId(2);

/// A queue with one server, as a stream of events.
struct Server {
    events: Vec<EventRecord>,
    stream: Stream,
    arrival_ns: u64,
    free_ns: u64,
    idle_since: [u64; 3],
    free_blocks: u32,
    dirty: u32,
    head: u64,
    waiting: std::collections::VecDeque<u64>,
}

impl Server {
    fn new(name: &str) -> Self {
        Self {
            events: Vec::new(),
            stream: Stream::new(7, name),
            arrival_ns: 0,
            free_ns: 0,
            idle_since: [0; 3],
            free_blocks: 400,
            dirty: 0,
            head: 0,
            waiting: std::collections::VecDeque::new(),
        }
    }

    fn emit(&mut self, time_ns: u64, node: ComponentId, event: impl Event) {
        self.events.push(EventRecord::new(SimTime::from_ns(time_ns), node, event));
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.stream.unit() * limit as f64) as u64
    }

    fn state(&mut self, node: ComponentId, state: PowerState, start: u64, end: u64) {
        let idle = &mut self.idle_since[node.0 as usize];
        let since = std::mem::replace(idle, end);
        if start > since {
            let time = SimDuration::from_ns(start - since);
            self.emit(
                start,
                node,
                CommonEvent::StateTime { state: PowerState::Idle, duration: time },
            );
        }
        let time = SimDuration::from_ns(end - start);
        self.emit(end, node, CommonEvent::StateTime { state, duration: time });
    }

    /// The disk serves the request from `start` on; the time of each part.
    fn disk(&mut self, start: u64, lba: u64, sectors: u32) -> Vec<(LatencyPhase, u64)> {
        let distance = self.head.abs_diff(lba);
        self.head = lba + u64::from(sectors);
        let (cylinders, near) = ((distance / 2000) as u32, distance < 64);
        let seek = if near { 0 } else { 600_000 + (f64::from(cylinders).sqrt() * 28e3) as u64 };
        let rotate = if near { 20_000 } else { self.below(8_333_333) };
        let transfer = u64::from(sectors) * 4_000;
        let ns = SimDuration::from_ns;
        let (positioned, end) = (start + seek + rotate, start + seek + rotate + transfer);
        if seek > 0 {
            self.emit(
                start + seek,
                DISK,
                DiskEvent::Seek { distance: cylinders, duration: ns(seek) },
            );
        }
        self.emit(positioned, DISK, DiskEvent::Rotate { duration: ns(rotate) });
        self.emit(end, DISK, DiskEvent::MediaTransfer { sectors, duration: ns(transfer) });
        self.state(DISK, PowerState::Seek, start, start + seek);
        self.state(DISK, PowerState::Active, start + seek, end);
        vec![
            (LatencyPhase::Seek, seek),
            (LatencyPhase::Rotate, rotate),
            (LatencyPhase::Transfer, transfer),
        ]
    }

    fn busy(&mut self, die: u16, act: FlashAct, cause: Cause, begin: u64, end: u64) {
        let (begin_at, end) = (SimTime::from_ns(begin), SimTime::from_ns(end));
        let unit = FlashUnit::Die(die);
        let busy = FlashBusy { unit, act, cause, begin: begin_at, end };
        self.emit(begin, FLASH, busy);
        let (unit, end) = (FlashUnit::Channel(die / 4), SimTime::from_ns(begin + 20_000));
        let busy = FlashBusy { unit, act, cause, begin: begin_at, end };
        self.emit(begin, FLASH, busy);
    }

    fn flash(&mut self, start: u64, op: Op, at: u64, sectors: u32) -> Vec<(LatencyPhase, u64)> {
        let (pages, die) = (sectors.div_ceil(8), (at % 8) as u16);
        let bus = u64::from(pages) * 20_000;
        if op == Op::Read {
            let event = FlashEvent::Read { cause: Cause::Host, die };
            (0..pages).for_each(|_| self.emit(start, FLASH, event));
            self.state(FLASH, PowerState::Read, start, start + 60_000 + bus);
            self.busy(die, FlashAct::Read, Cause::Host, start, start + 60_000 + bus);
            return vec![(LatencyPhase::FlashBus, bus), (LatencyPhase::FlashRead, 60_000)];
        }
        let collecting = self.free_blocks < 40 && at.is_multiple_of(11);
        let gc = if collecting { 2_000_000 + self.below(3_000_000) } else { 0 };
        if at.is_multiple_of(16) {
            self.free_blocks -= u32::from(self.free_blocks > 20);
            self.emit(start, FLASH, FlashEvent::FreeBlocks { free: self.free_blocks });
        }
        if collecting {
            let (cause, moved) = (Cause::Gc, 8 + self.below(24));
            (0..moved).for_each(|_| {
                self.emit(start, FLASH, FlashEvent::Read { cause, die });
                self.emit(start, FLASH, FlashEvent::Program { cause, die });
            });
            let block = self.below(4096) as u32;
            self.emit(start, FLASH, FlashEvent::Erase { cause, die, block, erases: 3 });
            self.free_blocks += u32::from(self.free_blocks < 60) * 2;
        }
        let event = FlashEvent::Program { cause: Cause::Host, die };
        (0..pages).for_each(|_| self.emit(start, FLASH, event));
        self.state(FLASH, PowerState::Write, start, start + 220_000 + bus + gc);
        if collecting {
            self.busy(die, FlashAct::Copy, Cause::Gc, start, start + gc * 3 / 4);
            self.busy(die, FlashAct::Erase, Cause::Gc, start + gc * 3 / 4, start + gc);
        }
        let programmed = start + gc + 220_000 + bus;
        self.busy(die, FlashAct::Program, Cause::Host, start + gc, programmed);
        vec![
            (LatencyPhase::Gc, gc),
            (LatencyPhase::FlashBus, bus),
            (LatencyPhase::FlashProgram, 220_000),
        ]
    }

    fn hybrid(
        &mut self,
        start: u64,
        op: Op,
        at: u64,
        lba: u64,
        sectors: u32,
    ) -> Vec<(LatencyPhase, u64)> {
        let learned = 0.35 + 0.5 * (at as f64 / REQUESTS as f64).sqrt();
        let hit = op == Op::Write || self.stream.chance(learned);
        let pages = sectors.div_ceil(8);
        let (hits, misses) = if hit { (pages, 0) } else { (0, pages) };
        self.emit(start, HOST, CacheEvent::CacheLookup { op, hits, misses });
        if op == Op::Write {
            self.dirty += pages;
            if self.dirty > 12_000 {
                self.dirty -= 4_000;
                self.emit(start, HOST, CacheEvent::Destaged { sectors: 32_000 });
            }
            self.emit(start, HOST, CacheEvent::DirtyPages { pages: self.dirty });
        }
        if hit { self.flash(start, op, at, sectors) } else { self.disk(start, lba, sectors) }
    }

    fn request(&mut self, at: u64, kind: &str) {
        let burst = if at / 4000 % 3 == 1 { 6 } else { 14 };
        self.arrival_ns += self.below(burst * 2_000_000);
        let op = if self.stream.chance(0.6) { Op::Read } else { Op::Write };
        let sequential = self.stream.chance(0.3);
        let (hot, sweep) = (self.stream.chance(0.5), at * 9000);
        let spread = if hot { 20_000_000 } else { 400_000_000 };
        let lba = if sequential { sweep } else { self.below(spread) };
        let sectors = 8 << self.below(5);
        let (arrival, start) = (self.arrival_ns, self.arrival_ns.max(self.free_ns));
        self.emit(arrival, HOST, CommonEvent::Arrived { op, sectors, lba: Lba(lba) });
        while self.waiting.front().is_some_and(|&done| done <= arrival) {
            self.waiting.pop_front();
        }
        self.emit(arrival, HOST, CommonEvent::QueueDepth { depth: self.waiting.len() as u32 });
        let breakdown = match kind {
            "disk" => self.disk(start, lba, sectors),
            "ssd" => self.flash(start, op, at, sectors),
            _ => self.hybrid(start, op, at, lba, sectors),
        };
        let end = start + breakdown.iter().map(|phase| phase.1).sum::<u64>();
        for (phase, ns) in breakdown.into_iter().chain([(LatencyPhase::Queue, start - arrival)]) {
            if ns > 0 {
                let time = SimDuration::from_ns(ns);
                self.emit(end, HOST, CommonEvent::PhaseTime { op, phase, duration: time });
            }
        }
        let latency = SimDuration::from_ns(end - arrival);
        self.emit(end, HOST, CommonEvent::Completed { op, sectors, lba: Lba(lba), latency });
        self.waiting.push_back(end);
        self.free_ns = end;
    }

    /// A failed member and its rebuild, as arrays report them.
    fn failure(&mut self) {
        let (half, took) = (self.arrival_ns / 2, SimDuration::from_ns(self.arrival_ns / 5));
        let change = |change, degraded, took| CommonEvent::Redundancy { change, degraded, took };
        let none = SimDuration::ZERO;
        self.emit(half, HOST, change(RedundancyChange::MemberFailed, 1, none));
        self.emit(half, HOST, change(RedundancyChange::RebuildStarted, 1, none));
        let end = half + took.as_ns();
        self.emit(end, HOST, change(RedundancyChange::RebuildEnded, 0, took));
    }

    fn finish(&mut self, kind: &str) -> u64 {
        if kind == "hybrid" {
            self.failure();
        }
        let end = self.free_ns.max(self.arrival_ns) + 1;
        for node in [DISK, FLASH] {
            let used = kind == "hybrid" || (node == DISK) == (kind == "disk");
            if used {
                self.state(node, PowerState::Idle, end, end);
            }
        }
        if kind != "disk" {
            let peak = if kind == "ssd" { 60.0 } else { 25.0 };
            for erases in 0..80u32 {
                let off = (f64::from(erases) - peak) / 8.0;
                let blocks = (500.0 * (-off * off / 2.0).exp()) as u32;
                if blocks > 0 {
                    self.emit(end, FLASH, FlashEvent::Wear { erases, blocks });
                }
            }
        }
        self.events.sort_by_key(|record| record.time);
        end
    }
}

fn nodes(kind: &str) -> Vec<(String, ComponentInfo)> {
    let watts = |idle: f64, active: f64| {
        let mut watts = [active; PowerState::COUNT];
        watts[PowerState::Idle as usize] = idle;
        Some(watts)
    };
    let host = ComponentInfo { kind: "host", ..ComponentInfo::default() };
    let disk =
        ComponentInfo { kind: "hard-disk", watts: watts(5.0, 9.0), ..ComponentInfo::default() };
    let flash = ComponentInfo {
        kind: "ssd",
        watts: watts(0.6, 2.2),
        operation_joules: vec![(READS, 6e-6), (PROGRAMS, 3e-5), (ERASES, 2e-4)],
        ..ComponentInfo::default()
    };
    let unused = ComponentInfo { kind: "nothing", ..ComponentInfo::default() };
    let disk = if kind == "ssd" { unused.clone() } else { disk };
    let flash = if kind == "disk" { unused } else { flash };
    vec![("system".into(), host), ("system/disk".into(), disk), ("system/flash".into(), flash)]
}

/// The system, for its diagram.
fn system(kind: &str) -> Item {
    let item = |name: &str, shape, children| {
        let lines = vec!["made up".to_owned(), "10 GB".to_owned()];
        Item { name: name.to_owned(), lines, shape, copies: 1, children }
    };
    let (disk, flash) =
        (|| item("disk", Shape::Disk, Vec::new()), || item("flash", Shape::Chip, Vec::new()));
    let below = match kind {
        "disk" => disk(),
        "ssd" => flash(),
        _ => item("hybrid", Shape::Box, vec![flash(), disk()]),
    };
    item("host", Shape::Box, vec![below])
}

/// A made-up run of a `disk`, an `ssd` or a `hybrid`.
pub fn run(kind: &str, title: &str) -> Run {
    let mut server = Server::new(kind);
    (0..REQUESTS).for_each(|at| server.request(at, kind));
    let end = server.finish(kind);
    let mut recorder = Recorder::new(nodes(kind), Detail::Full, Warmup::Requests(REQUESTS / 10));
    server.events.chunks(256).for_each(|events| recorder.take(events));
    let ending =
        Ending { time: SimTime::from_ns(end), events: REQUESTS * 3, by: EndedBy::Completion };
    let label = Label {
        title: title.to_owned(),
        scenario: format!("examples/{kind}.toml"),
        trace: "made up".to_owned(),
        seed: 7,
        versions: [("hybridsim".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
    };
    let cost = Cost { wall_s: 0.02, peak_rss_bytes: Some(30 << 20) };
    let mut finished = recorder.finish(ending, label, cost, Vec::new());
    if let Some(pictures) = &mut finished.pictures {
        pictures.diagram = diagram::inline(title, &system(kind));
    }
    let scenario_text = format!("title = \"{title}\"\nseed = 7\n\n[device]\nkind = \"{kind}\"\n");
    Run { results: finished.results, pictures: finished.pictures, scenario_text }
}

fn main() -> std::io::Result<()> {
    let runs = [run("disk", "Hard disk"), run("ssd", "SSD"), run("hybrid", "Hybrid, 256 MB flash")];
    let results: Vec<_> = runs.iter().map(|run| &run.results).collect();
    println!("{}", terminal::table(&results, terminal::Style::default()));
    println!("{}", terminal::single(results[2], terminal::Style { ansi: true }));
    let Some(path) = std::env::args().nth(1) else { return Ok(()) };
    std::fs::write(&path, html::page("Disk, SSD and hybrid", &runs))?;
    if let Some(path) = std::env::args().nth(2) {
        std::fs::write(&path, html::page("One hybrid", &runs[2..]))?;
    }
    Ok(())
}
