//! Once warm, neither requests nor cleaning take memory from the system.

mod common;

use common::{cleanup, flash_cache, hybrid_disk, plug, registry, settings};
use hybridsim_engine::build::LayerEntry;
use hybridsim_engine::param::Settings;
use hybridsim_engine::{
    Arrival, Lba, Machine, Node, Op, Request, SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::conformance::Rig;
use hybridsim_host::device::constant::{ConstantDevice, Timing};
use hybridsim_host::{Host, HostOptions};
use hybridsim_hybrid::cleanup::ENTRIES;

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

fn allocations(entry: &LayerEntry, settings: &Settings, requests: u64) -> u64 {
    let registry = registry();
    let children = [1000, 10_000];
    let rig = Rig { entry, settings, registry: &registry, children: &children, seed: 0 };
    let device = |path: &str, capacity, us| {
        Node::leaf(path, ConstantDevice::new(Timing::fixed(capacity, SimDuration::from_us(us))))
    };
    let layer = rig.build().expect("fine");
    let children = vec![device("flash", 1000, 50), device("disk", 10_000, 5000)];
    let source = Mix { stream: Stream::new(1, "mix"), left: requests };
    let host = Host::plain(HostOptions::closed(16), source);
    let hybrid = Node { path: "hybrid".into(), layer, children };
    let mut machine = Machine::new(Node::inner("host", host, vec![hybrid]), false);
    let run = || {
        machine.run(&mut (), &mut |_| true).expect("runs");
    };
    allocation_counter::measure(run).count_total
}

fn check(name: &str, entry: &LayerEntry, settings: &Settings) {
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
    for entry in hybridsim_hybrid::replacement::ENTRIES {
        let policy = entry.description.name;
        let settings = settings(8)
            .and("replacement", plug(policy, Settings::default()))
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
