//! Writes a report of three made-up runs, to work on the report without running the simulator:
//! `cargo run -p hybridsim-report --example sample_report -- report.html`.
//!
//! The facts are drawn from simple distributions; only the report's looks are real.

use hybridsim_engine::{
    Cause, Fact, FactSink, FlashAct, FlashUnit, LayerInfo, Lba, NodeId, Op, Part, PowerState,
    SimDuration, SimTime, Stamped, Stream,
};
use hybridsim_observe::{Cost, Detail, Ending, Label, Recorder, Warmup};
use hybridsim_report::{Run, html, terminal};

const REQUESTS: u64 = 40_000;
const HOST: NodeId = NodeId(0);
const DISK: NodeId = NodeId(1);
const FLASH: NodeId = NodeId(2);

/// A queue with one server, told as facts.
struct Server {
    facts: Vec<Stamped>,
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
            facts: Vec::new(),
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

    fn tell(&mut self, time_ns: u64, node: NodeId, fact: Fact) {
        self.facts.push(Stamped { time: SimTime::from_ns(time_ns), node, fact });
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.stream.unit() * limit as f64) as u64
    }

    fn state(&mut self, node: NodeId, state: PowerState, start: u64, end: u64) {
        let idle = &mut self.idle_since[node.0 as usize];
        let since = std::mem::replace(idle, end);
        if start > since {
            let time = SimDuration::from_ns(start - since);
            self.tell(start, node, Fact::StateTime { state: PowerState::Idle, time });
        }
        let time = SimDuration::from_ns(end - start);
        self.tell(end, node, Fact::StateTime { state, time });
    }

    /// The disk serves the request from `start` on; the time of each part.
    fn disk(&mut self, start: u64, lba: u64, sectors: u32) -> Vec<(Part, u64)> {
        let distance = self.head.abs_diff(lba);
        self.head = lba + u64::from(sectors);
        let (cylinders, near) = ((distance / 2000) as u32, distance < 64);
        let seek = if near { 0 } else { 600_000 + (f64::from(cylinders).sqrt() * 28e3) as u64 };
        let rotate = if near { 20_000 } else { self.below(8_333_333) };
        let transfer = u64::from(sectors) * 4_000;
        let ns = SimDuration::from_ns;
        let (positioned, end) = (start + seek + rotate, start + seek + rotate + transfer);
        if seek > 0 {
            self.tell(start + seek, DISK, Fact::Seek { distance: cylinders, time: ns(seek) });
        }
        self.tell(positioned, DISK, Fact::Rotate { time: ns(rotate) });
        self.tell(end, DISK, Fact::MediaTransfer { sectors, time: ns(transfer) });
        self.state(DISK, PowerState::Seek, start, start + seek);
        self.state(DISK, PowerState::Active, start + seek, end);
        vec![(Part::Seek, seek), (Part::Rotate, rotate), (Part::Transfer, transfer)]
    }

    fn busy(&mut self, die: u16, act: FlashAct, cause: Cause, begin: u64, end: u64) {
        let (begin_at, end) = (SimTime::from_ns(begin), SimTime::from_ns(end));
        let unit = FlashUnit::Die(die);
        let busy = Fact::FlashBusy { unit, act, cause, begin: begin_at, end };
        self.tell(begin, FLASH, busy);
        let (unit, end) = (FlashUnit::Channel(die / 4), SimTime::from_ns(begin + 20_000));
        self.tell(begin, FLASH, Fact::FlashBusy { unit, act, cause, begin: begin_at, end });
    }

    fn flash(&mut self, start: u64, op: Op, at: u64, sectors: u32) -> Vec<(Part, u64)> {
        let (pages, die) = (sectors.div_ceil(8), (at % 8) as u16);
        let bus = u64::from(pages) * 20_000;
        if op == Op::Read {
            let fact = Fact::FlashRead { cause: Cause::Host, die };
            (0..pages).for_each(|_| self.tell(start, FLASH, fact));
            self.state(FLASH, PowerState::Read, start, start + 60_000 + bus);
            self.busy(die, FlashAct::Read, Cause::Host, start, start + 60_000 + bus);
            return vec![(Part::FlashBus, bus), (Part::FlashRead, 60_000)];
        }
        let collecting = self.free_blocks < 40 && at.is_multiple_of(11);
        let gc = if collecting { 2_000_000 + self.below(3_000_000) } else { 0 };
        if at.is_multiple_of(16) {
            self.free_blocks -= u32::from(self.free_blocks > 20);
            self.tell(start, FLASH, Fact::FreeBlocks { free: self.free_blocks });
        }
        if collecting {
            let (cause, moved) = (Cause::Gc, 8 + self.below(24));
            (0..moved).for_each(|_| {
                self.tell(start, FLASH, Fact::FlashRead { cause, die });
                self.tell(start, FLASH, Fact::FlashProgram { cause, die });
            });
            let block = self.below(4096) as u32;
            self.tell(start, FLASH, Fact::FlashErase { cause, die, block, erases: 3 });
            self.free_blocks += u32::from(self.free_blocks < 60) * 2;
        }
        let fact = Fact::FlashProgram { cause: Cause::Host, die };
        (0..pages).for_each(|_| self.tell(start, FLASH, fact));
        self.state(FLASH, PowerState::Write, start, start + 220_000 + bus + gc);
        if collecting {
            self.busy(die, FlashAct::Copy, Cause::Gc, start, start + gc * 3 / 4);
            self.busy(die, FlashAct::Erase, Cause::Gc, start + gc * 3 / 4, start + gc);
        }
        let programmed = start + gc + 220_000 + bus;
        self.busy(die, FlashAct::Program, Cause::Host, start + gc, programmed);
        vec![(Part::Gc, gc), (Part::FlashBus, bus), (Part::FlashProgram, 220_000)]
    }

    fn hybrid(&mut self, start: u64, op: Op, at: u64, lba: u64, sectors: u32) -> Vec<(Part, u64)> {
        let learned = 0.35 + 0.5 * (at as f64 / REQUESTS as f64).sqrt();
        let hit = op == Op::Write || self.stream.chance(learned);
        let pages = sectors.div_ceil(8);
        let (hits, misses) = if hit { (pages, 0) } else { (0, pages) };
        self.tell(start, HOST, Fact::CacheLookup { op, hits, misses });
        if op == Op::Write {
            self.dirty += pages;
            if self.dirty > 12_000 {
                self.dirty -= 4_000;
                self.tell(start, HOST, Fact::Destaged { sectors: 32_000 });
            }
            self.tell(start, HOST, Fact::DirtyPages { pages: self.dirty });
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
        self.tell(arrival, HOST, Fact::Arrived { op, sectors, lba: Lba(lba) });
        while self.waiting.front().is_some_and(|&done| done <= arrival) {
            self.waiting.pop_front();
        }
        self.tell(arrival, HOST, Fact::QueueDepth { depth: self.waiting.len() as u32 });
        let parts = match kind {
            "disk" => self.disk(start, lba, sectors),
            "ssd" => self.flash(start, op, at, sectors),
            _ => self.hybrid(start, op, at, lba, sectors),
        };
        let end = start + parts.iter().map(|part| part.1).sum::<u64>();
        for (part, ns) in parts.into_iter().chain([(Part::Queue, start - arrival)]) {
            if ns > 0 {
                let time = SimDuration::from_ns(ns);
                self.tell(end, HOST, Fact::Spent { op, part, time });
            }
        }
        let latency = SimDuration::from_ns(end - arrival);
        self.tell(end, HOST, Fact::Completed { op, sectors, lba: Lba(lba), latency });
        self.waiting.push_back(end);
        self.free_ns = end;
    }

    fn finish(&mut self, kind: &str) -> u64 {
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
                    self.tell(end, FLASH, Fact::Wear { erases, blocks });
                }
            }
        }
        self.facts.sort_by_key(|stamped| stamped.time);
        end
    }
}

fn nodes(kind: &str) -> Vec<(String, LayerInfo)> {
    let watts = |idle: f64, active: f64| {
        let mut watts = [active; PowerState::COUNT];
        watts[PowerState::Idle as usize] = idle;
        Some(watts)
    };
    let host = LayerInfo { kind: "host", ..LayerInfo::default() };
    let disk = LayerInfo { kind: "hard-disk", watts: watts(5.0, 9.0), ..LayerInfo::default() };
    let flash = LayerInfo {
        kind: "ssd",
        watts: watts(0.6, 2.2),
        flash_joules: Some([6e-6, 3e-5, 2e-4]),
        ..LayerInfo::default()
    };
    let unused = LayerInfo { kind: "nothing", ..LayerInfo::default() };
    let disk = if kind == "ssd" { unused.clone() } else { disk };
    let flash = if kind == "disk" { unused } else { flash };
    vec![("system".into(), host), ("system/disk".into(), disk), ("system/flash".into(), flash)]
}

/// A made-up run of a `disk`, an `ssd` or a `hybrid`.
pub fn run(kind: &str, title: &str) -> Run {
    let mut server = Server::new(kind);
    (0..REQUESTS).for_each(|at| server.request(at, kind));
    let end = server.finish(kind);
    let mut recorder = Recorder::new(nodes(kind), Detail::Full, Warmup::Requests(REQUESTS / 10));
    server.facts.chunks(256).for_each(|facts| recorder.take(facts));
    let ending = Ending { time: SimTime::from_ns(end), events: REQUESTS * 3, complete: true };
    let label = Label {
        title: title.to_owned(),
        scenario: format!("examples/{kind}.toml"),
        trace: "made up".to_owned(),
        seed: 7,
        versions: [("hybridsim".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
    };
    let cost = Cost { wall_s: 0.02, peak_rss_bytes: Some(30 << 20) };
    let finished = recorder.finish(ending, label, cost, Vec::new());
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
