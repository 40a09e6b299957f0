//! The log over a device without zones: the conformance suite, power failures, and closed forms of
//! its write amplification.

use hybridsim_config::build::{BuildInput, ChildView};
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::{Load, Rig, mean_field};
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::event::Event;
use hybridsim_engine::{
    Arrival, CommonEvent, Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord,
    EventSink, Flags, LatencyBreakdown, LatencyPhase, Lba, Machine, Op, Request, RequestId,
    SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::{Host, HostOptions};
use hybridsim_layer::LayerEvent;
use hybridsim_layer::log_structured::ENTRY;
use std::sync::LazyLock;

/// The log and the victim policies.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = hybridsim_flash::defaults::registry();
    registry.add_all(hybridsim_layer::ENTRIES);
    registry
});

/// Settings with these values in place of the defaults.
fn settings(values: &[(&'static str, Value)]) -> Settings {
    let mut settings = hybridsim_flash::defaults::settings(ENTRY.description.params, &REGISTRY);
    settings.set("device", Value::Text("child0".to_owned()));
    for (name, value) in values {
        settings.set(name, value.clone());
    }
    settings
}

fn word(word: &str) -> Value {
    Value::Text(word.to_owned())
}

fn gc(policy: &str) -> Value {
    hybridsim_flash::defaults::entry("gc-policy", policy, &REGISTRY)
}

const POLICIES: [&str; 7] =
    ["greedy", "fifo", "random", "d-choices", "windowed-greedy", "cost-benefit", "partial-search"];

/// A log of these settings over devices of these sectors.
fn rig<'a>(settings: &'a Settings, children: &'a [u64], seed: u64) -> Rig<'a> {
    Rig { entry: &ENTRY, settings, registry: &REGISTRY, children, seed }
}

/// Small segments that are cleaned all the time, with blocks of these sectors, under many settings.
fn varied(seed: u64) -> (Settings, u64) {
    let mut stream = Stream::new(seed, "settings");
    let mut pick = |words: &[&str]| word(words[stream.below(words.len() as u64) as usize]);
    let policy = POLICIES[seed as usize % POLICIES.len()];
    let separate = pick(&["none", "handle", "temperature", "lifetime"]);
    let cleaned = pick(&["own", "shared"]);
    let block = 512 << stream.below(4);
    let blocks = 6 + stream.below(40);
    let mut values = vec![
        ("gc", gc(policy)),
        ("separate", separate),
        ("cleaned", cleaned),
        ("block_size", Value::Bytes(block)),
        ("segment_size", Value::Bytes(block * blocks)),
        ("over_provisioning", Value::Number(1.0 + stream.unit())),
        ("free_segments", Value::Count(1 + stream.below(3))),
        ("cleaning_depth", Value::Count(1 + stream.below(20))),
    ];
    if stream.chance(0.5) {
        values.push(("idle_after", Value::Duration(SimDuration::from_us(700))));
        values.push(("idle_free_segments", Value::Count(1 + stream.below(6))));
    }
    (settings(&values), block * blocks / 512 * (18 + stream.below(20)) + stream.below(9))
}

fn count(events: &[EventRecord], is: impl Fn(LayerEvent) -> bool) -> usize {
    events.iter().filter(|record| LayerEvent::decode(record).is_some_and(&is)).count()
}

#[test]
fn every_read_returns_the_newest_data_while_segments_are_cleaned() {
    let mut cleaned = 0;
    for seed in 0..60 {
        let (settings, sectors) = varied(seed);
        let children = [sectors];
        let rig = rig(&settings, &children, seed);
        let load = Load { requests: 3_000, sectors_max: 60, seed };
        let seen = rig.check_random(&load, [1, 4, 32][seed as usize % 3]);
        let seen = seen.unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        let freed = count(&seen.events, |it| matches!(it, LayerEvent::SegmentFreed { .. }));
        assert!(freed > 10, "{settings:?}: {freed} freed");
        cleaned += count(&seen.events, |it| matches!(it, LayerEvent::SegmentCleaned));
    }
    assert!(cleaned > 60 * 10, "{cleaned} cleaned");
}

#[test]
fn acknowledged_writes_survive_power_failures() {
    for seed in 0..40 {
        let (settings, sectors) = varied(seed);
        let children = [sectors];
        let rig = rig(&settings, &children, seed);
        let load = Load { requests: 3_000, sectors_max: 60, seed };
        let depth = [2, 8, 32][seed as usize % 3];
        let seen = rig.check_power_cuts(&load, depth, (60 + 20 * u64::from(depth), 20));
        let seen = seen.unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        let recovered =
            |it: &&EventRecord| matches!(it.event(), Some(CommonEvent::Recovered { .. }));
        assert!(seen.events.iter().filter(recovered).count() > 5, "{settings:?}");
    }
}

#[test]
fn a_log_without_spare_segments_accepts_writes_after_any_number_of_power_failures() {
    for seed in 0..60 {
        let mut stream = Stream::new(seed, "few");
        let blocks = 10 + stream.below(20);
        let cleaned = ["own", "shared"][stream.below(2) as usize];
        let free = 1 + stream.below(2);
        let spare = free + if cleaned == "own" { 3 } else { 2 };
        let segments = spare + 4 + stream.below(20);
        let values = [
            ("gc", gc(POLICIES[seed as usize % POLICIES.len()])),
            ("cleaned", word(cleaned)),
            ("block_size", Value::Bytes(512)),
            ("segment_size", Value::Bytes(512 * blocks)),
            ("free_segments", Value::Count(free)),
            ("over_provisioning", Value::Number(spare as f64 / (segments - spare) as f64 + 1e-9)),
        ];
        let (settings, children) = (settings(&values), [segments * blocks]);
        let rig = rig(&settings, &children, seed);
        let load = Load { requests: 3_000, sectors_max: 16, seed };
        let every = 20 + stream.below(200);
        let seen = rig.check_power_cuts(&load, 8, (every, 500));
        let seen = seen.unwrap_or_else(|error| panic!("{values:?}: {error}"));
        let failed = |it: &&EventRecord| {
            it.component().0 == 0 && matches!(it.event(), Some(CommonEvent::Custom { .. }))
        };
        let failed = seen.events.iter().filter(failed).count();
        assert_eq!(failed, 0, "seed {seed}: {values:?}");
    }
}

/// A device that fails all writes after the first `left`.
struct WearsOut {
    sectors: u64,
    left: u64,
}

impl Component for WearsOut {
    fn capacity(&self) -> u64 {
        self.sectors
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let time = SimDuration::from_us(10);
        let breakdown = LatencyBreakdown::NONE.plus(LatencyPhase::Transfer, time);
        if request.op == Op::Write && self.left == 0 {
            return ctx.fail_at(id, ctx.now() + time, breakdown);
        }
        self.left -= u64::from(request.op == Op::Write);
        ctx.complete_at(id, ctx.now() + time, breakdown);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}
}

#[test]
fn cleaning_ends_over_a_device_that_cannot_be_written_any_more() {
    for cleaning_depth in [1, 8] {
        let settings = settings(&[
            ("segment_size", Value::Bytes(64 << 10)),
            ("over_provisioning", Value::Number(0.6)),
            ("cleaning_depth", Value::Count(cleaning_depth)),
        ]);
        let sectors = 30 * 128;
        let child = ChildView { capacity: sectors, ..ChildView::default() };
        let (path, children) = ("log", &[child][..]);
        let input =
            BuildInput { settings: &settings, registry: &REGISTRY, seed: 1, path, children };
        let component = (ENTRY.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        let blocks = component.capacity() / 8;
        let device = ComponentTree::leaf("host/log/it", WearsOut { sectors, left: 2_000 });
        let log = ComponentTree { path: "host/log".to_owned(), component, children: vec![device] };
        let stream = Stream::new(1, "uniform");
        let source = Writes { stream, blocks, next: 0, left: 3_000, skewed: false };
        let host = Host::plain(HostOptions::closed(4), source);
        let mut machine = Machine::new(ComponentTree::inner("host", host, vec![log]), false);
        machine.finish_requests_at_end();
        let mut steps = 0..1_000;
        let end = machine.run(&mut (), &mut |_| steps.next().is_some());
        assert!(end.is_ok(), "{cleaning_depth}: {end:?}");
    }
}

/// Writes of one block: all in order, then random ones.
struct Writes {
    stream: Stream,
    blocks: u64,
    next: u64,
    left: u64,
    /// Nine of ten random writes go to a tenth of the blocks, with a handle of their own.
    skewed: bool,
}

impl Source for Writes {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let random = self.stream.below(self.blocks);
        let block = if self.next < self.blocks { self.next } else { random };
        self.next += 1;
        let is_hot = self.skewed && self.stream.chance(0.9);
        let block = if is_hot && self.next > self.blocks { block / 10 } else { block };
        let hot = self.skewed && block < self.blocks / 10;
        let flags = Flags::NONE.with_handle(u8::from(hot));
        let request = Request { flags, ..Request::new(Op::Write, Lba(block * 8), 8) };
        Ok(Some(Arrival { at: SimTime::ZERO, request }))
    }
}

/// Sectors that were requested and moved, the first `skip` requests left out.
#[derive(Default)]
struct Written {
    skip: u64,
    requested: u64,
    moved: u64,
}

impl EventSink for Written {
    fn take(&mut self, events: &[EventRecord]) {
        for record in events {
            match LayerEvent::decode(record) {
                Some(LayerEvent::LogWrite { .. }) if self.skip > 0 => self.skip -= 1,
                Some(LayerEvent::LogWrite { requested, .. }) => {
                    self.requested += u64::from(requested);
                }
                Some(LayerEvent::BlocksMoved { sectors }) if self.skip == 0 => {
                    self.moved += u64::from(sectors);
                }
                _ => {}
            }
        }
    }
}

/// A system whose host writes `per_block` times as many blocks as it has, and their number.
fn system(
    values: &[(&'static str, Value)],
    segments: u64,
    (per_block, skewed): (u64, bool),
) -> (Machine, u64) {
    let settings = settings(values);
    let sectors = segments * 4_096;
    let child = ChildView { name: "device".to_owned(), capacity: sectors, ..ChildView::default() };
    let input = BuildInput {
        settings: &settings,
        registry: &REGISTRY,
        seed: 1,
        path: "log",
        children: &[child],
    };
    let component = (ENTRY.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    let blocks = component.capacity() / 8;
    let timing = Timing::fixed(sectors, SimDuration::from_us(1));
    let device = ComponentTree::leaf("host/log/device", ConstantDevice::new(timing));
    let log = ComponentTree { path: "host/log".to_owned(), component, children: vec![device] };
    let stream = Stream::new(1, "uniform");
    let source = Writes { stream, blocks, next: 0, left: per_block * blocks, skewed };
    let host = Host::plain(HostOptions::closed(1), source);
    (Machine::new(ComponentTree::inner("host", host, vec![log]), false), blocks)
}

#[test]
fn uniform_writes_have_the_write_amplification_of_the_mean_field() {
    const SEGMENTS: u64 = 400;
    const BLOCKS: u32 = 511;
    for (policy, ratio) in [("greedy", 0.12), ("greedy", 0.28), ("fifo", 0.28), ("greedy", 0.5)] {
        let values = [("gc", gc(policy)), ("over_provisioning", Value::Number(ratio))];
        let (mut machine, blocks) = system(&values, SEGMENTS, (6, false));
        let mut sums = Written { skip: 3 * blocks, ..Written::default() };
        machine.run(&mut sums, &mut |_| true).expect("runs");
        let measured = 1.0 + sums.moved as f64 / sums.requested as f64;
        // Two segments are open, two free; a segment has a summary of one block.
        let ratio = (SEGMENTS - 4) as f64 * f64::from(BLOCKS) / blocks as f64;
        let theory = match policy {
            "fifo" => mean_field::fifo(ratio),
            _ => mean_field::greedy(BLOCKS, 1.0 / ratio),
        };
        println!("{policy} at {ratio}: measured {measured:.4}, theory {theory:.4}");
        assert!((measured / theory - 1.0).abs() < 0.015, "{policy} {ratio}: {measured}, {theory}");
    }
}

#[test]
fn logs_by_handle_and_cost_benefit_lower_the_write_amplification_of_skewed_writes() {
    let measure = |separate: &str, policy: &str| {
        let values = [
            ("gc", gc(policy)),
            ("separate", word(separate)),
            ("over_provisioning", Value::Number(0.25)),
        ];
        let (mut machine, blocks) = system(&values, 200, (8, true));
        let mut sums = Written { skip: 4 * blocks, ..Written::default() };
        machine.run(&mut sums, &mut |_| true).expect("runs");
        1.0 + sums.moved as f64 / sums.requested as f64
    };
    let [mixed, by_handle, by_lifetime, by_benefit] = [
        ("none", "greedy"),
        ("handle", "greedy"),
        ("lifetime", "greedy"),
        ("none", "cost-benefit"),
    ]
    .map(|(separate, policy)| measure(separate, policy));
    println!(
        "mixed {mixed:.3}, by handle {by_handle:.3}, by lifetime {by_lifetime:.3}, \
         cost-benefit {by_benefit:.3}"
    );
    // Moved blocks share a log, so that handles separate new blocks only.
    assert!(by_handle < 0.95 * mixed, "{by_handle} of {mixed}");
    assert!(by_lifetime < 0.95 * mixed, "{by_lifetime} of {mixed}");
    assert!(by_benefit < 0.7 * mixed, "{by_benefit} of {mixed}");
}

#[test]
fn a_request_takes_no_memory_once_warm() {
    let values = [("over_provisioning", Value::Number(0.3))];
    let allocations = |per_block| {
        let (mut machine, _) = system(&values, 40, (per_block, false));
        let run = || {
            machine.run(&mut (), &mut |_| true).expect("runs");
        };
        allocation_counter::measure(run).count_total
    };
    let (few, many) = (allocations(10), allocations(40));
    assert_eq!(few, many, "more requests took memory");
}
