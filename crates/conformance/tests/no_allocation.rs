//! Once warm, a request takes no memory from the system.

#[path = "../../array/tests/support/mod.rs"]
mod support;

use hybridsim_config::build::{BuildInput, ChildView};
use hybridsim_config::registry::Registry;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::schedule::Scheduler;
use hybridsim_engine::{
    Arrival, ComponentTree, Lba, Machine, Op, Request, SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::scheduler::elevator::Elevator;
use hybridsim_host::scheduler::fcfs::Fcfs;
use hybridsim_host::scheduler::nearest::Nearest;
use hybridsim_host::scheduler::shortest_first::{Cost, Estimate, ShortestFirst};
use hybridsim_host::{Host, HostOptions};

/// Random reads without end, in bursts that keep a queue waiting.
struct Endless {
    stream: Stream,
    left: u64,
}

impl Source for Endless {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let at = SimTime::from_ns((1 << 30) - self.left / 64 * 700);
        let lba = self.stream.below(1 << 20);
        Ok(Some(Arrival { at, request: Request::new(Op::Read, Lba(lba), 8) }))
    }
}

fn allocations(options: HostOptions, scheduler: Box<dyn Scheduler>, requests: u64) -> u64 {
    let source = Endless { stream: Stream::new(1, "endless"), left: requests };
    let host = Host::new(options, Box::new(source), scheduler);
    let device = ConstantDevice::new(Timing {
        queue_depth: 1,
        ..Timing::fixed(1 << 21, SimDuration::from_ns(10))
    });
    let root = ComponentTree::inner("host", host, vec![ComponentTree::leaf("host/device", device)]);
    let mut machine = Machine::new(root, false);
    let run = || {
        machine.run(&mut (), &mut |_| true).expect("runs");
    };
    allocation_counter::measure(run).count_total
}

#[test]
fn a_request_takes_no_memory_once_warm() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1u8])));
    assert_eq!(counted.count_total, 1, "allocations are counted");
    let schedulers: [fn() -> Box<dyn Scheduler>; 5] = [
        || Box::new(Fcfs::default()),
        || Box::new(Nearest::default()),
        || Box::new(Elevator::default()),
        || Box::new(Elevator::c_look()),
        || Box::new(ShortestFirst::new(256, Cost::Time(Estimate::Positioning))),
    ];
    for make in schedulers {
        let waiting = HostOptions { outstanding: 40, ..HostOptions::closed(8) };
        for options in [HostOptions::open(8), HostOptions::closed(8), waiting] {
            let few = allocations(options, make(), 2_000);
            let many = allocations(options, make(), 40_000);
            assert_eq!(few, many, "{options:?}: 38,000 more requests took memory");
            assert!(few < 40, "{options:?}: {few} to warm up");
        }
    }
}

/// Random reads and writes without end.
struct Mixed(Stream, u64);

impl Source for Mixed {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.1 == 0 {
            return Ok(None);
        }
        self.1 -= 1;
        let op = if self.0.chance(0.5) { Op::Read } else { Op::Write };
        let sectors = 1 + self.0.below(300) as u32;
        let request = Request::new(op, Lba(self.0.below(1 << 16)), sectors);
        Ok(Some(Arrival { at: SimTime::ZERO, request }))
    }
}

/// Allocations of `requests` requests to an array with a member that fails and a spare.
fn array_allocations(name: &str, requests: u64) -> u64 {
    let settings = support::failing(16, 1, &[(1, 200_000)]);
    let children = 7;
    let view =
        |at: usize| ChildView { name: at.to_string(), capacity: 1 << 17, ..ChildView::default() };
    let views: Vec<_> = (0..children).map(view).collect();
    let input = BuildInput {
        settings: &settings,
        registry: &Registry::default(),
        seed: 1,
        path: "array",
        children: &views,
    };
    let component = (support::entry(name).build)(&input).expect("makes sense");
    let device = |at: usize| {
        let timing = Timing {
            queue_depth: 1,
            ..Timing::fixed(1 << 17, SimDuration::from_ns(100 + at as u64))
        };
        ComponentTree::leaf(&format!("host/array/{at}"), ConstantDevice::new(timing))
    };
    let children = (0..children).map(device).collect();
    let array = ComponentTree { path: "host/array".to_owned(), component, children };
    let source = Mixed(Stream::new(1, "mixed"), requests);
    let host = Host::plain(HostOptions::closed(32), source);
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![array]), false);
    let run = || {
        machine.run(&mut (), &mut |_| true).expect("runs");
    };
    allocation_counter::measure(run).count_total
}

#[test]
fn an_array_takes_no_memory_once_warm() {
    for name in ["stripe", "raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
        let (few, many) = (array_allocations(name, 20_000), array_allocations(name, 100_000));
        assert_eq!(few, many, "{name}: 80,000 more requests took memory");
        assert!((1..120).contains(&few), "{name}: {few} to warm up");
    }
}
