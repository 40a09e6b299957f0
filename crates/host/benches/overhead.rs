//! Host overhead per request: driver, machine and scheduler over a device of negligible cost.
//! Prints one line per case.

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
use std::time::Instant;

struct Random {
    stream: Stream,
    left: u64,
}

impl Source for Random {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let request = Request::new(Op::Read, Lba(self.stream.below(1 << 24)), 8);
        Ok(Some(Arrival { at: SimTime::ZERO, request }))
    }
}

/// CPU time of this thread in nanoseconds, where the system reports it.
fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn measure(name: &str, options: HostOptions, scheduler: Box<dyn Scheduler>) {
    let requests = 4_000_000;
    let source = Random { stream: Stream::new(1, "bench"), left: requests };
    let host = Host::new(options, Box::new(source), scheduler);
    let device = ConstantDevice::new(Timing::fixed(1 << 25, SimDuration::from_us(10)));
    let root = ComponentTree::inner("host", host, vec![ComponentTree::leaf("host/device", device)]);
    let mut machine = Machine::new(root, false);
    let start = Instant::now();
    let cpu = cpu_ns();
    machine.run(&mut (), &mut |_| true).expect("runs");
    let seconds = match cpu.zip(cpu_ns()) {
        Some((from, to)) => (to - from) as f64 / 1e9,
        None => start.elapsed().as_secs_f64(),
    };
    let depth = options.outstanding;
    println!(
        "{name:8} depth {:3}, {depth:4} outstanding: {:6.1} ns per request, {:5.2} M requests/s",
        options.queue_depth,
        seconds * 1e9 / requests as f64,
        requests as f64 / seconds / 1e6
    );
}

fn main() {
    for depth in [1, 32] {
        measure("direct", HostOptions::closed(depth), Box::new(Fcfs::default()));
    }
    let waiting = HostOptions { outstanding: 64, ..HostOptions::closed(32) };
    measure("fcfs", waiting, Box::new(Fcfs::default()));
    measure("sstf", waiting, Box::new(Nearest::default()));
    measure("look", waiting, Box::new(Elevator::default()));
    measure("c-look", waiting, Box::new(Elevator::c_look()));
    let sptf = ShortestFirst::new(256, Cost::Time(Estimate::Positioning));
    measure("sptf", waiting, Box::new(sptf));
}
