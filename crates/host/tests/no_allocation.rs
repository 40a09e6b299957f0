//! Once warm, a request takes no memory from the system.

use hybridsim_engine::schedule::Scheduler;
use hybridsim_engine::{
    Arrival, Lba, Machine, Node, Op, Request, SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::device::constant::{ConstantDevice, Timing};
use hybridsim_host::scheduler::{clook, fcfs, look, sptf, sstf};
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
        servers: 1,
        ..Timing::fixed(1 << 21, SimDuration::from_ns(10))
    });
    let root = Node::inner("host", host, vec![Node::leaf("host/device", device)]);
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
        || Box::new(fcfs::Fcfs::default()),
        || Box::new(sstf::Sstf::default()),
        || Box::new(look::Look::default()),
        || Box::new(clook::CLook::default()),
        || Box::new(sptf::Sptf::new(256)),
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
