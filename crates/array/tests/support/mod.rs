//! Arrays over devices that log what they are asked.

#![allow(dead_code, reason = "each test file uses what it needs")]

use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::source::ListSource;
use hybridsim_engine::{
    Arrival, Completion, Component, ComponentInfo, ComponentTree, Contents, Ctx, EventRecord,
    Fault, LatencyBreakdown, LatencyPhase, Lba, Machine, Op, Request, RequestId, RunEnd,
    SimDuration, SimTime,
};
use hybridsim_host::{Host, HostOptions};
use std::cell::RefCell;
use std::rc::Rc;

/// The volume called `name`.
pub fn entry(name: &str) -> &'static ComponentEntry {
    let found = hybridsim_array::ENTRIES.iter().find(|entry| entry.description.name == name);
    found.unwrap_or_else(|| panic!("no volume called {name}"))
}

/// Every parameter any volume has, at its default but for the chunk.
pub fn settings(chunk_sectors: u64) -> Settings {
    let text = |word: &str| Value::Text(word.to_owned());
    Settings::default()
        .and("members", Value::Texts(Vec::new()))
        .and("spares", Value::Texts(Vec::new()))
        .and("chunk", Value::Bytes(chunk_sectors * 512))
        .and("copies", Value::Count(2))
        .and("width", Value::Count(3))
        .and("parity", Value::Count(1))
        .and("rotation", text("left-symmetric"))
        .and("small_write", text("cheaper"))
        .and("break_point", Value::Number(0.5))
        .and("write_order", text("together"))
        .and("parity_rows", Value::Count(1))
        .and("trim", text("ignore"))
        .and("in_progress", Value::Count(4096))
        .and("read_choice", text("shortest-queue-then-seek"))
        .and("failures", Value::Tables(Vec::new()))
        .and("rebuild_step", Value::Bytes(4 * 512))
        .and("rebuild_parallel", Value::Count(4))
        .and("rebuild_after_idle", Value::Duration(SimDuration::ZERO))
        .and("resync", text("full"))
        .and("bitmap_region", Value::Bytes(8 * 512))
        .and("bitmap_clear_after", Value::Duration(SimDuration::from_ms(1)))
        .and("unsynced_parity", text("refuse"))
}

/// As [`settings`], with `spares` spares and devices that fail at these times in ns.
pub fn failing(chunk_sectors: u64, spares: usize, failures: &[(u64, u64)]) -> Settings {
    let failure = |(member, ns): &(u64, u64)| {
        Settings::default()
            .and("member", Value::Count(*member))
            .and("at", Value::Duration(SimDuration::from_ns(*ns)))
    };
    settings(chunk_sectors)
        .and("failures", Value::Tables(failures.iter().map(failure).collect()))
        .and("spares", Value::Texts((0..spares).map(|at| format!("spare{at}")).collect()))
}

/// A request that a device received: its number, operation, first sector, sectors.
pub type Asked = (usize, Op, u64, u32);

/// Serves one request at a time in a fixed time, and may begin to fail them.
pub struct Device {
    pub number: usize,
    pub capacity: u64,
    pub service: SimDuration,
    /// Requests it serves before it fails all others.
    pub good_for: u64,
    pub log: Rc<RefCell<Vec<Asked>>>,
    contents: Contents,
    free_at: SimTime,
    failing: Vec<(SimTime, RequestId)>,
}

impl Device {
    pub fn new(number: usize, capacity: u64, log: &Rc<RefCell<Vec<Asked>>>) -> Self {
        Self {
            number,
            capacity,
            service: SimDuration::from_us(10),
            good_for: u64::MAX,
            log: Rc::clone(log),
            contents: Contents::default(),
            free_at: SimTime::ZERO,
            failing: Vec::new(),
        }
    }
}

impl Component for Device {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let Request { op, lba, sectors, data, .. } = *request;
        self.log.borrow_mut().push((self.number, op, lba.0, sectors));
        let start = self.free_at.max(ctx.now());
        self.free_at = start + self.service;
        if self.good_for == 0 {
            if op == Op::Read {
                ctx.data().versions_mut(data, sectors).fill(u64::MAX);
            }
            self.failing.push((self.free_at, id));
            ctx.wake_at(self.free_at, 0);
            return;
        }
        self.good_for -= 1;
        match op {
            Op::Read => self.contents.read(lba.0, ctx.data().versions_mut(data, sectors)),
            Op::Write => self.contents.write(lba.0, ctx.data().versions(data, sectors)),
            Op::Trim => self.contents.clear(lba.0, u64::from(sectors)),
            Op::Flush | Op::Zone(_) => {}
        }
        let wait = start.since(ctx.now());
        let breakdown = LatencyBreakdown::NONE
            .plus(LatencyPhase::Queue, wait)
            .plus(LatencyPhase::Overhead, self.service);
        ctx.complete_at(id, self.free_at, breakdown);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        let (_, id) = self.failing.remove(0);
        let breakdown =
            LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, ctx.now().since(ctx.issued(id)));
        ctx.fail_request(id, breakdown);
    }
}

/// The observations of a run.
pub struct Seen {
    pub end: RunEnd,
    pub events: Vec<EventRecord>,
    pub asked: Vec<Asked>,
}

impl Seen {
    /// Values reported of the array's own number `name`.
    pub fn reported(&self, name: &str) -> Vec<u64> {
        reported(&self.events, name)
    }

    /// Requests to devices of this kind.
    pub fn count(&self, op: Op) -> usize {
        self.asked.iter().filter(|asked| asked.1 == op).count()
    }
}

/// Values reported of an array's own number `name`.
pub fn reported(events: &[EventRecord], name: &str) -> Vec<u64> {
    let custom = hybridsim_array::rebuild::CUSTOM;
    let index = custom.iter().position(|known| *known == name).expect("a known name") as u8;
    let value = |record: &EventRecord| match record.event() {
        Some(CommonEvent::Custom { name, value }) if name == index && record.component().0 == 1 => {
            Some(value)
        }
        _ => None,
    };
    events.iter().filter_map(value).collect()
}

/// Runs `requests` through a volume over devices of `capacity` sectors, prepared by `prepare`.
pub fn run_over(
    name: &str,
    settings: &Settings,
    (children, capacity): (usize, u64),
    (requests, depth): (&[Request], u32),
    prepare: impl Fn(&mut Device),
) -> Result<Seen, Fault> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let view = |at: usize| ChildView { name: format!("d{at}"), capacity, ..ChildView::default() };
    let views: Vec<_> = (0..children).map(view).collect();
    let registry = Registry::default();
    let input =
        BuildInput { settings, registry: &registry, seed: 1, path: "array", children: &views };
    let component = (entry(name).build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    let child = |at: usize| {
        let mut device = Device::new(at, capacity, &log);
        prepare(&mut device);
        ComponentTree::leaf(&format!("host/array/d{at}"), device)
    };
    let array = ComponentTree {
        path: "host/array".to_owned(),
        component,
        children: (0..children).map(child).collect(),
    };
    let arrivals = requests.iter().map(|request| Arrival { at: SimTime::ZERO, request: *request });
    let host = Host::plain(HostOptions::closed(depth), ListSource::new(arrivals.collect()));
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![array]), true);
    let mut events = Vec::new();
    let end = machine.run(&mut events, &mut |_| true)?;
    let asked = log.borrow().clone();
    Ok(Seen { end, events, asked })
}

/// As [`run_over`] with sound devices.
pub fn run(
    name: &str,
    settings: &Settings,
    shape: (usize, u64),
    requests: &[Request],
    depth: u32,
) -> Seen {
    run_over(name, settings, shape, (requests, depth), |_| {}).expect("runs")
}

/// A write.
pub fn write(lba: u64, sectors: u32) -> Request {
    Request::new(Op::Write, Lba(lba), sectors)
}

/// A read.
pub fn read(lba: u64, sectors: u32) -> Request {
    Request::new(Op::Read, Lba(lba), sectors)
}
