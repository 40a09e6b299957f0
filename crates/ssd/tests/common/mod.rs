//! A device with a small host, for tests.
#![allow(dead_code)]

use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Problem, Settings, Value};
use hybridsim_engine::reference_model::ReferenceModel;
use hybridsim_engine::{
    Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, Fault, LatencyBreakdown,
    Lba, Machine, Op, Outcome, Request, RequestId, RunEnd, SimDuration, SimTime, Stream,
    ZoneAction,
};
use hybridsim_flash::defaults;
use hybridsim_ssd::device::{Ssd, SsdParams, build_ssd};
use std::cell::RefCell;
use std::rc::Rc;

pub fn us(us: u64) -> Value {
    Value::Duration(SimDuration::from_us(us))
}

pub fn text(name: &str) -> Value {
    Value::Text(name.to_owned())
}

/// The entry of `category` called `name`, with its defaults.
pub fn chosen(category: &str, name: &str) -> Value {
    defaults::entry(category, name, &hybridsim_ssd::registry())
}

/// A small device: 2 channels, 2 dies each, 1 plane, 2 KiB pages, no transfer times.
pub fn settings() -> Settings {
    defaults::settings(SsdParams::PARAMS, &hybridsim_ssd::registry())
        .and("channels", Value::Count(2))
        .and("dies_per_channel", Value::Count(2))
        .and("planes_per_die", Value::Count(1))
        .and("blocks_per_plane", Value::Count(12))
        .and("pages_per_block", Value::Count(8))
        .and("page_size", Value::Bytes(2048))
        .and("over_provisioning", Value::Number(0.5))
        .and("read_time", us(25))
        .and("program_time", us(300))
        .and("erase_time", us(2_000))
}

/// The page-mapped FTL with these parameters.
pub fn page_ftl(params: &[(&'static str, Value)]) -> Value {
    let Value::Entry(mut ftl) = defaults::entry("ftl", "page", &hybridsim_ssd::registry()) else {
        panic!("an entry")
    };
    params.iter().for_each(|(name, value)| ftl.settings.set(name, value.clone()));
    Value::Entry(ftl)
}

pub fn build(settings: &Settings) -> Result<Ssd, Vec<Problem>> {
    let registry = hybridsim_ssd::registry();
    build_ssd(&BuildInput { settings, registry: &registry, seed: 1, path: "ssd", children: &[] })
}

/// The timing model called `name`, without a write buffer.
pub fn unbuffered(name: &str) -> Value {
    let mut value = chosen("timing", name);
    if let Value::Entry(choice) = &mut value
        && choice.settings.has("write_buffer")
    {
        choice.settings.set("write_buffer", Value::Bytes(0));
    }
    value
}

/// A completed request: issue and completion times, and its latency breakdown.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub request: Request,
    pub issued: SimTime,
    pub completed: SimTime,
    pub breakdown: LatencyBreakdown,
    pub outcome: Outcome,
}

/// Issues listed requests at their times, or random ones in a closed loop, and checks all reads.
pub struct Host {
    pub listed: Vec<(SimTime, Request)>,
    pub random: u64,
    pub depth: u64,
    pub capacity: u64,
    pub stream: Stream,
    pub reference: ReferenceModel,
    pub done: Rc<RefCell<Vec<Done>>>,
    /// Whether the run ends with the last request; otherwise when nothing more happens.
    pub halts: bool,
    outstanding: Vec<(SimTime, u64)>,
}

impl Host {
    pub fn new(listed: Vec<(SimTime, Request)>) -> Self {
        Self {
            listed,
            random: 0,
            depth: 0,
            capacity: 0,
            stream: Stream::new(5, "host"),
            reference: ReferenceModel::default(),
            done: Rc::default(),
            halts: false,
            outstanding: Vec::new(),
        }
    }

    pub fn random(count: u64, depth: u64, capacity: u64) -> Self {
        Self { random: count, depth, capacity, ..Self::new(Vec::new()) }
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, mut request: Request) {
        let now = ctx.now();
        let version = self.reference.next_version();
        if matches!(request.op, Op::Read | Op::Write) {
            request.data = ctx.take_data(request.sectors);
        }
        if request.op == Op::Write {
            ctx.data().versions_mut(request.data, request.sectors).fill(version);
            self.reference.write_begins(request.lba, request.sectors, version, now);
        }
        if matches!(request.op, Op::Trim | Op::Zone(ZoneAction::Reset)) {
            self.reference.trim(request.lba, request.sectors, now);
        }
        self.outstanding.push((now, version));
        ctx.issue(0, request, version);
    }

    fn issue_random(&mut self, ctx: &mut Ctx<'_>) {
        if self.random == 0 {
            return;
        }
        self.random -= 1;
        let sectors = 1 + self.stream.below(13.min(self.capacity)) as u32;
        // Trims race with writes in flight to the same address; use them at queue depth 1 only.
        let ops = if self.depth == 1 { 100 } else { 92 };
        let op = match self.stream.below(ops) {
            0..55 => Op::Write,
            55..90 => Op::Read,
            90..92 => Op::Flush,
            _ => Op::Trim,
        };
        let span = self.capacity - u64::from(sectors) + 1;
        let hot = self.stream.chance(0.3);
        let lba = self.stream.below(if hot { span.min(40) } else { span });
        self.issue(ctx, Request::new(op, Lba(lba), sectors));
    }
}

impl Component for Host {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        for (number, (at, _)) in self.listed.iter().enumerate() {
            ctx.wake_at(*at, number as u64);
        }
        for _ in 0..self.depth {
            self.issue_random(ctx);
        }
    }

    fn request(&mut self, _ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {}

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        self.issue(ctx, self.listed[token as usize].1);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let now = ctx.now();
        let Completion { request, tag, breakdown, outcome, .. } = *done;
        let at = self.outstanding.iter().position(|(_, version)| *version == tag).expect("issued");
        let (issued, _) = self.outstanding.swap_remove(at);
        let oldest = self.outstanding.iter().map(|(from, _)| *from).min().unwrap_or(now);
        if request.op == Op::Write && outcome == Outcome::Done {
            self.reference.write_ends(request.lba, request.sectors, tag, now, oldest);
        }
        if request.op == Op::Read {
            let versions = ctx.data().versions(request.data, request.sectors);
            if !versions.is_empty() {
                self.reference.check_read(request.lba, versions, issued).expect("the last write");
            }
        }
        ctx.data().give_back(request.data);
        self.done.borrow_mut().push(Done { request, issued, completed: now, breakdown, outcome });
        self.issue_random(ctx);
        if self.halts && self.done.borrow().len() == self.listed.len() {
            ctx.halt();
        }
    }
}

/// Runs `host` over `ssd`; returns the completed requests, the events, and the outcome.
pub fn run(
    ssd: impl Component + 'static,
    host: Host,
) -> (Vec<Done>, Vec<EventRecord>, Result<RunEnd, Fault>) {
    let done = host.done.clone();
    let root = ComponentTree::inner("host", host, vec![ComponentTree::leaf("ssd", ssd)]);
    let mut events: Vec<EventRecord> = Vec::new();
    let end = Machine::new(root, true).run(&mut events, &mut |_| true);
    let done = done.take();
    (done, events, end)
}

/// One die behind one channel, with a write buffer of so many pages.
pub fn queued(pages: u64) -> Settings {
    settings()
        .and("timing", chosen("timing", "queued"))
        .and("channels", Value::Count(1))
        .and("dies_per_channel", Value::Count(1))
        .and("precondition", text("fill"))
        .and("timing.write_buffer", Value::Bytes(pages * 2048))
}

/// Programs can be suspended, which takes 10 us, and 5 us to resume.
pub fn pausing(settings: Settings) -> Settings {
    settings.and("timing.program_suspend_time", us(10)).and("timing.resume_time", us(5))
}

/// Completion times, in microseconds, of requests issued at the given microseconds.
pub fn answers(settings: &Settings, asked: &[(u64, Op, u64, u32)]) -> Vec<u64> {
    let request = |op, page, pages| match op {
        Op::Flush => Request::new(Op::Flush, Lba(0), 0),
        _ => Request::new(op, Lba(page * 4), pages * 4),
    };
    let ask = |&(us, op, page, pages)| (SimTime::from_ns(us * 1_000), request(op, page, pages));
    let listed: Vec<_> = asked.iter().map(ask).collect();
    let (mut done, _, end) = run(build(settings).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    done.sort_by_key(|done| (done.issued, done.request.lba));
    done.iter().map(|done| done.completed.as_ns() / 1_000).collect()
}
