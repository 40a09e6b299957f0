//! Every bus, controller, cache and idealised device against the conformance suite, whatever its
//! parameters.

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::check;
use hybridsim_config::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::{Load, Rig};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, ComponentTree, Ctx, Flags, LatencyBreakdown, Lba,
    Machine, Op, Request, RequestId, SimDuration, Stream,
};
use hybridsim_host::scheduler;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(scheduler::ENTRIES);
    registry
}

/// A value for `param`: any of its choices, small counts, short times.
fn draw(param: &Param, children: usize, registry: &Registry, stream: &mut Stream) -> Option<Value> {
    let optional = param.default == Some("");
    if optional && stream.chance(0.5) {
        return None;
    }
    Some(match param.kind {
        Kind::Count { min, max } => Value::Count((min + stream.below(40)).min(max)),
        Kind::Number { min, max } => Value::Number(min + (max.min(1.0) - min) * stream.unit()),
        Kind::Duration => {
            let ns = [0, 0, 700, 20_000, 900_000][stream.below(5) as usize];
            Value::Duration(SimDuration::from_ns(ns))
        }
        Kind::Bytes => Value::Bytes(512 << stream.below(6)),
        Kind::Rate => Value::Rate(1_000_000 << stream.below(8)),
        Kind::Flag => Value::Flag(stream.chance(0.5)),
        Kind::Choice(words) => {
            Value::Text(words[stream.below(words.len() as u64) as usize].to_owned())
        }
        Kind::Entry(slot) => {
            let names: Vec<_> = registry.descriptions(slot).collect();
            let chosen = names[stream.below(names.len() as u64) as usize];
            let mut settings = Settings::default();
            for param in chosen.params {
                if let Some(value) = draw(param, children, registry, stream) {
                    settings.set(param.name, value);
                }
            }
            Value::Entry(EntryChoice { name: chosen.name.to_owned(), settings })
        }
        Kind::Component => Value::Text("child0".to_owned()),
        Kind::Components => Value::Texts((0..children).map(|at| format!("child{at}")).collect()),
        other => panic!("{} has an unexpected kind {other:?}", param.name),
    })
}

fn settings(entry: &ComponentEntry, children: usize, registry: &Registry, seed: u64) -> Settings {
    let mut stream = Stream::new(seed, entry.description.name);
    let mut settings = Settings::default();
    for param in entry.description.params {
        if let Some(value) = draw(param, children, registry, &mut stream) {
            settings.set(param.name, value);
        }
    }
    settings
}

/// The only device among the entries: it conforms without children.
const IDEAL: &[ComponentEntry] = &[hybridsim_disk::constant::ENTRY];

fn entries() -> impl Iterator<Item = &'static ComponentEntry> {
    hybridsim_interconnect::ENTRIES.iter().chain(hybridsim_cache::ENTRIES).chain(IDEAL)
}

/// Children the entry takes: as many as its parameters name, or a few.
fn children_of(entry: &ComponentEntry, seed: u64) -> Vec<u64> {
    let singles =
        entry.description.params.iter().filter(|param| param.kind == Kind::Component).count();
    let count = match entry.description.name {
        "cache-device" => 2,
        "constant-device" => 0,
        _ if singles > 0 => singles,
        _ => 1 + (seed % 4) as usize,
    };
    (0..count as u64).map(|at| 60 + seed * 7 % 50 + 13 * at).collect()
}

/// Runs one random system; answers whether its parameters were accepted.
fn check(entry: &ComponentEntry, seed: u64, requests: usize, depth: u32) -> Result<bool, String> {
    let registry = registry();
    let children = children_of(entry, seed);
    let settings = settings(entry, children.len(), &registry, seed);
    let rig = Rig { entry, settings: &settings, registry: &registry, children: &children, seed };
    if rig.build().is_err() {
        return Ok(false);
    }
    let load = Load { requests, sectors_max: 40, seed };
    let explain = |error| format!("{error}\nsettings: {settings:?}, children {children:?}");
    rig.check_random(&load, depth).map_err(explain).map(|_| true)
}

#[test]
fn whatever_the_parameters_reads_return_what_was_written() {
    for entry in entries() {
        let mut accepted = 0;
        for seed in 0..60 {
            let depth = [1, 4, 32][(seed % 3) as usize];
            accepted += u32::from(check(entry, seed, 250, depth).unwrap_or_else(|e| panic!("{e}")));
        }
        assert!(accepted >= 20, "{}: only {accepted} accepted", entry.description.name);
    }
}

/// In a segmented cache that keeps the order of dirty lines, a line of a write that is used takes
/// another one's protection, which may be dirty and then stands in the way of the write's next.
#[test]
fn a_write_that_demotes_a_dirty_line_finds_the_room_it_counted() {
    let entry = entries().find(|entry| entry.description.name == "memory-cache");
    let accepted = check(entry.expect("it is registered"), 397_241, 80, 6);
    assert_eq!(accepted, Ok(true));
}

/// A memory cache of so many bytes, in pages of so many.
fn memory_cache((size, page): (u64, u64), replacement: &str, reads_wait: bool) -> Settings {
    let text = |text: &str| Value::Text(text.to_owned());
    Settings::default()
        .and("device", text("child0"))
        .and("size", Value::Bytes(size))
        .and("page_size", Value::Bytes(page))
        .and("replacement", text(replacement))
        .and("allocation", text("clean"))
        .and("protected_share", Value::Number(0.5))
        .and("write_scheme", text("back"))
        .and("flush", text("demand"))
        .and("flush_period", Value::Duration(SimDuration::from_ms(30)))
        .and("flush_cluster", Value::Count(8))
        .and("read_prefetch", text("none"))
        .and("reads_wait", Value::Flag(reads_wait))
        .and("shared_read_locks", Value::Flag(true))
}

/// Far more writes wait than the cache has lines: what waits must not be gone through at every
/// event, which would take minutes here.
#[test]
fn a_long_queue_before_a_small_memory_cache_is_served_in_time() {
    let registry = registry();
    let entry = entries().find(|entry| entry.description.name == "memory-cache");
    let entry = entry.expect("it is registered");
    let settings = memory_cache((16 * 512, 512), "lru", true);
    let children = [100_000];
    let rig = Rig { entry, settings: &settings, registry: &registry, children: &children, seed: 1 };
    let load = Load { requests: 12_000, sectors_max: 1, seed: 1 };
    let began = std::time::Instant::now();
    rig.check_random(&load, 12_000).unwrap_or_else(|error| panic!("{error}"));
    assert!(began.elapsed().as_secs() < 15, "{:?}", began.elapsed());
}

fn read(sector: u64) -> Request {
    Request::new(Op::Read, Lba(sector), 1)
}

/// Issues requests, or answers them: both ends of a cache or a controller.
struct End {
    left: VecDeque<Request>,
    /// Requests outstanding at a time, and now.
    depth: usize,
    outstanding: usize,
    /// First sectors of the requests that arrived.
    arrived: Rc<RefCell<Vec<u64>>>,
}

impl End {
    fn issue(&mut self, ctx: &mut Ctx<'_>) {
        while self.outstanding < self.depth
            && let Some(request) = self.left.pop_front()
        {
            ctx.issue(usize::from(request.volume), request, 0);
            self.outstanding += 1;
        }
        if self.outstanding == 0 {
            ctx.halt();
        }
    }
}

impl Component for End {
    fn capacity(&self) -> u64 {
        1_000
    }
    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if !self.left.is_empty() {
            self.issue(ctx);
        }
    }
    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.arrived.borrow_mut().push(request.lba.0);
        ctx.complete(id, LatencyBreakdown::NONE);
    }
    fn completion(&mut self, ctx: &mut Ctx<'_>, _: &Completion) {
        self.outstanding -= 1;
        self.issue(ctx);
    }
}

/// Sends `requests`, `depth` at a time, through `rig` to the children that are their volumes;
/// returns the first sectors of those that arrive.
fn arrivals(rig: &Rig<'_>, depth: usize, requests: &[Request]) -> Vec<u64> {
    let component = rig.build().unwrap_or_else(|error| panic!("{error}"));
    let arrived = Rc::new(RefCell::new(Vec::new()));
    let end = |requests: &[Request]| {
        let (left, arrived) = (requests.iter().copied().collect(), Rc::clone(&arrived));
        End { left, depth, outstanding: 0, arrived }
    };
    let device = |at| ComponentTree {
        path: format!("device{at}"),
        component: Box::new(end(&[])),
        children: Vec::new(),
    };
    let children = (0..rig.children.len()).map(device).collect();
    let tree = ComponentTree { path: "tested".into(), component, children };
    let mut machine = Machine::new(ComponentTree::inner("host", end(requests), vec![tree]), false);
    machine.run(&mut (), &mut |_| true).expect("a good run");
    arrived.take()
}

/// A read that finds only part of its sectors uses the page of those it finds.
#[test]
fn a_partial_hit_renews_its_page() {
    let entry = entries().find(|entry| entry.description.name == "memory-cache");
    for waits in [false, true] {
        // Two pages of two sectors.
        let settings = memory_cache((2 * 1024, 1024), "lru", waits);
        let rig = Rig {
            entry: entry.expect("it is registered"),
            settings: &settings,
            registry: &registry(),
            children: &[1_000],
            seed: 1,
        };
        // Page 0 in part, page 1, the rest of page 0; page 4 takes the place of page 1.
        let found = arrivals(&rig, 1, &[0, 2, 1, 8, 0, 2].map(read));
        assert_eq!(found, [0, 2, 1, 8, 2], "reads wait: {waits}");
    }
}

#[test]
fn devices_take_turns_where_a_controller_limits_the_requests_of_all() {
    let entry = entries().find(|entry| entry.description.name == "queueing-controller");
    let entry = entry.expect("it is registered");
    let registry = registry();
    let keys = "buses = [\"child0\", \"child1\"]\nqueue_depth = 1\n";
    let settings = check::read(keys, &[entry.description.params], &registry).expect("valid keys");
    let children = [1_000, 1_000];
    let rig = Rig { entry, settings: &settings, registry: &registry, children: &children, seed: 1 };
    let second = |sector| Request { volume: 1, ..read(sector) };
    let requests = [read(0), read(1), read(2), second(10), second(11), second(12)];
    let found = arrivals(&rig, 6, &requests);
    assert_eq!(found, [0, 10, 1, 11, 2, 12]);
}

/// The requests that arrive when the first of these keeps the device busy, and the third is nearer
/// than the second, which lies within it.
fn arrivals_of_overlapping(overlap: &str, [older, newer]: [Request; 2]) -> Vec<u64> {
    let entry = entries().find(|entry| entry.description.name == "io-queue");
    let entry = entry.expect("it is registered");
    let registry = registry();
    let keys = format!("device = \"child0\"\nscheduler = \"sstf\"\noverlap = \"{overlap}\"\n");
    let settings = check::read(&keys, &[entry.description.params], &registry).expect("valid keys");
    let rig = Rig { entry, settings: &settings, registry: &registry, children: &[1_000], seed: 1 };
    arrivals(&rig, 3, &[read(10), older, newer])
}

#[test]
fn requests_complete_with_a_later_one_around_them_where_they_may() {
    let older = Request::new(Op::Write, Lba(104), 2);
    let newer = Request::new(Op::Write, Lba(100), 8);
    let forced = Request { flags: Flags::FUA, ..older };
    let forces = Request { flags: Flags::FUA, ..newer };
    let beside = Request::new(Op::Write, Lba(106), 4);
    for (overlap, writes, expected) in [
        ("independent", [older, newer], &[10, 100, 104][..]),
        ("completed", [older, newer], &[10, 100]),
        ("completed", [beside, newer], &[10, 100, 106]),
        // It must be on the medium, which the later write need not reach.
        ("completed", [forced, newer], &[10, 100, 104]),
        ("completed", [forced, forces], &[10, 100]),
        ("completed", [Request { op: Op::Read, ..older }, newer], &[10, 100]),
        ("completed", [older, Request { op: Op::Read, ..newer }], &[10, 100, 104]),
        ("completed", [newer, Request { op: Op::Read, ..older }], &[10, 100, 104]),
        ("queued-writes", [newer, Request { op: Op::Read, ..older }], &[10, 100]),
        ("queued-writes", [newer, Request { op: Op::Read, ..forced }], &[10, 100, 104]),
    ] {
        assert_eq!(arrivals_of_overlapping(overlap, writes), expected, "{overlap}, {writes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_bus_or_controller_conforms(seed in 1_000u64..1_000_000, depth in 1u32..40) {
        for entry in entries() {
            if let Err(error) = check(entry, seed, 80, depth) {
                return Err(TestCaseError::fail(error));
            }
        }
    }
}

/// The message about `count` children.
fn refusal(entry: &ComponentEntry, param: &'static str, count: usize) -> String {
    let registry = registry();
    let mut settings = Settings::default();
    let mut stream = Stream::new(1, "topology");
    for param in entry.description.params {
        if let Some(value) = draw(param, count, &registry, &mut stream)
            && (matches!(param.kind, Kind::Components | Kind::Entry(_))
                || param.default != Some(""))
        {
            settings.set(param.name, value);
        }
    }
    let names = (0..count).map(|at| format!("child{at}")).collect();
    settings.set(param, Value::Texts(names));
    let children = vec![64; count];
    Rig { entry, settings: &settings, registry: &registry, children: &children, seed: 1 }
        .build()
        .err()
        .unwrap_or_default()
}

#[test]
fn buses_and_controllers_take_so_many_and_no_more() {
    let entry = |name: &str| entries().find(|it| it.description.name == name).expect("a kind");
    let said = refusal(entry("bus"), "devices", 16);
    assert!(said.contains("16 devices; a bus takes at most 15"), "{said}");
    assert!(!refusal(entry("bus"), "devices", 15).contains("at most 15"));
    for name in ["pass-through-controller", "queueing-controller"] {
        let said = refusal(entry(name), "buses", 5);
        assert!(said.contains("5 buses; a controller has at most 4 to devices"), "{said}");
        assert!(!refusal(entry(name), "buses", 4).contains("at most 4"));
    }
}
