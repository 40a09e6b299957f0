//! Once warm, neither requests nor cleaning take memory from the system.

mod common;

use common::{cleanup, hybrid_disk, registry, settings};
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

fn allocations(policy: &str, requests: u64) -> u64 {
    let registry = registry();
    let settings = settings(8).and("cleanup", cleanup(policy));
    let children = [1000, 10_000];
    let rig = Rig {
        entry: hybrid_disk(),
        settings: &settings,
        registry: &registry,
        children: &children,
        seed: 0,
    };
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

#[test]
fn a_request_takes_no_memory_once_warm() {
    for entry in ENTRIES {
        let policy = entry.description.name;
        let few = allocations(policy, 10_000);
        let many = allocations(policy, 100_000);
        assert!((1..80).contains(&few), "{policy}: {few} to warm up");
        assert!(many <= few + 3, "{policy}: {few}, then {many}");
    }
}
