//! What an array costs per request of the workload, and per request to its members, over devices
//! that cost next to nothing. Prints one line per case.

#[path = "../tests/support/mod.rs"]
mod support;

use hybridsim_config::build::{BuildInput, ChildView};
use hybridsim_config::registry::Registry;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::{
    Arrival, ComponentTree, Lba, Machine, Op, Request, SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::{Host, HostOptions};
use std::time::Instant;

struct Random {
    stream: Stream,
    op: Op,
    left: u64,
}

impl Source for Random {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let request = Request::new(self.op, Lba(self.stream.below(1 << 21) * 8), 8);
        Ok(Some(Arrival { at: SimTime::ZERO, request }))
    }
}

const MEMBERS: usize = 8;
const CAPACITY: u64 = 1 << 25;

fn measure(name: &str, op: Op, failures: &[(u64, u64)], requests: u64) {
    let settings = support::failing(128, 0, failures);
    let view =
        |at: usize| ChildView { name: at.to_string(), capacity: CAPACITY, ..ChildView::default() };
    let views: Vec<_> = (0..MEMBERS).map(view).collect();
    let registry = Registry::default();
    let input = BuildInput {
        settings: &settings,
        registry: &registry,
        seed: 1,
        path: "a",
        children: &views,
    };
    let component = (support::entry(name).build)(&input).expect("makes sense");
    let device = |at: usize| {
        let timing = Timing::fixed(CAPACITY, SimDuration::from_us(10));
        ComponentTree::leaf(&format!("host/array/{at}"), ConstantDevice::new(timing))
    };
    let children = (0..MEMBERS).map(device).collect();
    let array = ComponentTree { path: "host/array".to_owned(), component, children };
    let source = Random { stream: Stream::new(1, "bench"), op, left: requests };
    let host = Host::plain(HostOptions::closed(32), source);
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![array]), false);
    let start = Instant::now();
    let end = machine.run(&mut (), &mut |_| true).expect("runs");
    let seconds = start.elapsed().as_secs_f64();
    let state = if failures.is_empty() { "" } else { ", one member lost" };
    println!(
        "{name:12} 4 KiB {:5} {:7.1} ns per request, {:5.2} M requests/s, {:.1} events each{state}",
        op.name(),
        seconds * 1e9 / requests as f64,
        requests as f64 / seconds / 1e6,
        end.events as f64 / requests as f64,
    );
}

fn main() {
    for name in ["stripe", "raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
        for op in [Op::Read, Op::Write] {
            measure(name, op, &[], 1_000_000);
        }
    }
    for op in [Op::Read, Op::Write] {
        measure("raid5", op, &[(2, 0)], 1_000_000);
        measure("raid6", op, &[(2, 0), (3, 0)], 1_000_000);
    }
    for requests in [100_000, 1_000_000, 4_000_000] {
        measure("raid5", Op::Write, &[], requests);
    }
}
