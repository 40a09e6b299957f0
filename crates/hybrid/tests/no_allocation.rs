//! Once warm, neither requests nor cleaning take memory from the system.

mod common;

use common::{cleanup, entry_choice, flash_cache, hybrid_disk, nv_cache, registry, settings};
use hybridsim_cache::cleanup::ENTRIES;
use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::check;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_conformance::Rig;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::{
    Arrival, ComponentTree, Lba, Machine, Op, Request, SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::{Host, HostOptions};

/// Mostly writes, a few reads and trims, on a thousand pages.
struct Mix {
    stream: Stream,
    left: u64,
}

impl Source for Mix {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let op = match self.stream.below(20) {
            0..6 => Op::Read,
            6 => Op::Trim,
            _ => Op::Write,
        };
        let request = Request::new(op, Lba(self.stream.below(8000)), 8);
        Ok(Some(Arrival { at: SimTime::ZERO, request }))
    }
}

fn allocations(entry: &ComponentEntry, settings: &Settings, requests: u64) -> u64 {
    let registry = registry();
    let children = [1000, 10_000];
    let rig = Rig { entry, settings, registry: &registry, children: &children, seed: 0 };
    let device = |path: &str, capacity, us| {
        ComponentTree::leaf(
            path,
            ConstantDevice::new(Timing::fixed(capacity, SimDuration::from_us(us))),
        )
    };
    let component = rig.build().expect("fine");
    let children = vec![device("flash", 1000, 50), device("disk", 10_000, 5000)];
    measure(ComponentTree { path: "hybrid".into(), component, children }, requests)
}

fn measure(system: ComponentTree, requests: u64) -> u64 {
    let source = Mix { stream: Stream::new(1, "mix"), left: requests };
    let host = Host::plain(HostOptions::closed(16), source);
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![system]), false);
    let run = || {
        machine.run(&mut (), &mut |_| true).expect("runs");
    };
    allocation_counter::measure(run).count_total
}

fn check(name: &str, entry: &ComponentEntry, settings: &Settings) {
    let few = allocations(entry, settings, 10_000);
    let many = allocations(entry, settings, 100_000);
    assert!((1..200).contains(&few), "{name}: {few} to warm up");
    assert!(many <= few + 5, "{name}: {few}, then {many}");
}

#[test]
fn a_request_takes_no_memory_once_warm() {
    for entry in ENTRIES {
        let policy = entry.description.name;
        check(policy, hybrid_disk(), &settings(8).and("cleanup", cleanup(policy)));
    }
}

#[test]
fn choosing_victims_takes_no_memory_once_warm() {
    for entry in hybridsim_cache::replacement::ENTRIES {
        let policy = entry.description.name;
        let settings = settings(8)
            .and("replacement", entry_choice(policy, Settings::default()))
            .and("cleanup", cleanup("on-demand-partial"));
        check(policy, hybrid_disk(), &settings);
    }
}

#[test]
fn a_flash_cache_takes_no_memory_for_requests_once_warm() {
    for scheme in ["fp", "rw", "op"] {
        check(scheme, &hybridsim_hybrid::flash_cache::ENTRY, &flash_cache(scheme, 0.9, true));
    }
}

fn part(
    registry: &Registry,
    name: &str,
    settings: &Settings,
    children: Vec<ComponentTree>,
) -> ComponentTree {
    let view = |node: &ComponentTree| ChildView {
        name: node.path.clone(),
        capacity: node.component.capacity(),
        positioner: node.component.positioner(),
        constants: node.component.info().constants,
        zones: node.zone_layout(),
        loses_writes: node.component.info().loses_writes,
    };
    let views: Vec<ChildView> = children.iter().map(view).collect();
    let input = BuildInput { settings, registry, seed: 1, path: name, children: &views };
    let entry = registry.find::<ComponentEntry>(name).expect("registered");
    let component = (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    ComponentTree { path: name.to_owned(), component, children }
}

/// The scheduler of bisson-fqueue over a drive with 300 sectors of NV cache.
fn flash_backed(in_flight: u64, overwrites: &str) -> ComponentTree {
    let mut registry = registry();
    registry.add_all(hybridsim_host::scheduler::ENTRIES);
    registry.add_all(hybridsim_disk::ENTRIES);
    let settings = |kind: &str, text: &str| {
        let params = registry.find::<ComponentEntry>(kind).expect("registered").description.params;
        check::read(text, &[params], &registry).unwrap_or_else(|problems| panic!("{problems}"))
    };
    let curve = settings(
        "curve-disk",
        "capacity = \"5000KiB\"\nhalf_turn = \"5556us\"\nsingle = \"1.1ms\"\naverage = \"13ms\"\n\
         full = \"21ms\"\nrate = \"44MB/s\"",
    );
    let disk = part(&registry, "curve-disk", &curve, Vec::new());
    let flash = ComponentTree::leaf(
        "flash",
        ConstantDevice::new(Timing::fixed(300, SimDuration::from_us(700))),
    );
    let drive = part(&registry, "nv-cache-disk", &nv_cache(), vec![flash, disk]);
    let text = format!(
        "drive = \"drive\"\nscheduler = {{ kind = \"c-look\", by = \"lbn\" }}\n\
         flash_queue_depth = {in_flight}\noverwrites = \"{overwrites}\""
    );
    let settings = settings("flash-backed", &text);
    part(&registry, "flash-backed", &settings, vec![drive])
}

#[test]
fn flash_backed_requests_take_no_memory_once_warm() {
    for (in_flight, overwrites) in [(1, "coalesce"), (1, "replace"), (4, "coalesce")] {
        let name = format!("{in_flight} at once, {overwrites}");
        let few = measure(flash_backed(in_flight, overwrites), 10_000);
        let many = measure(flash_backed(in_flight, overwrites), 100_000);
        assert!((1..300).contains(&few), "{name}: {few} to warm up");
        assert!(many <= few + 8, "{name}: {few}, then {many}");
    }
}
