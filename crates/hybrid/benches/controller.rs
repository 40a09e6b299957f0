//! What the hybrid disk itself costs per request, over ideal media. Prints one line per case.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{cleanup, hybrid_disk, registry, settings};
use hybridsim_conformance::Rig;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::{
    Arrival, ComponentTree, Lba, Machine, Op, Request, SimDuration, SimTime, Source, Stream,
};
use hybridsim_host::{Host, HostOptions};
use std::time::Instant;

const FLASH: u64 = 256 << 11;
const DISK: u64 = 64 << 21;

/// Random requests of one page, in a range of the disk.
struct Random {
    stream: Stream,
    left: u64,
    pages: u64,
    write_share: f64,
}

impl Source for Random {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let op = if self.stream.chance(self.write_share) { Op::Write } else { Op::Read };
        let request = Request::new(op, Lba(self.stream.below(self.pages) * 8), 8);
        Ok(Some(Arrival { at: SimTime::ZERO, request }))
    }
}

/// Processor time of this thread in ns, where the system reports it.
fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn measure(name: &str, policy: &str, pages: u64, write_share: f64, depth: u32) {
    let requests = 2_000_000;
    let registry = registry();
    let settings = settings(8).and("cleanup", cleanup(policy));
    let children = [FLASH, DISK];
    let rig = Rig {
        entry: hybrid_disk(),
        settings: &settings,
        registry: &registry,
        children: &children,
        seed: 0,
    };
    let source = Random { stream: Stream::new(1, "bench"), left: requests, pages, write_share };
    let device = |path: &str, capacity, us| {
        ComponentTree::leaf(
            path,
            ConstantDevice::new(Timing::fixed(capacity, SimDuration::from_us(us))),
        )
    };
    let component = rig.build().expect("fine");
    let children = vec![device("flash", FLASH, 50), device("disk", DISK, 5000)];
    let host = Host::plain(HostOptions::closed(depth), source);
    let hybrid = ComponentTree { path: "hybrid".into(), component, children };
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![hybrid]), false);
    let start = Instant::now();
    let cpu = cpu_ns();
    machine.run(&mut (), &mut |_| true).expect("runs");
    let seconds = match cpu.zip(cpu_ns()) {
        Some((from, to)) => (to - from) as f64 / 1e9,
        None => start.elapsed().as_secs_f64(),
    };
    println!(
        "{name:34} depth {depth:2}: {:6.1} ns per request, {:5.2} M requests/s",
        seconds * 1e9 / requests as f64,
        requests as f64 / seconds / 1e6
    );
}

fn main() {
    let complete = "on-demand-complete";
    for depth in [1, 32] {
        measure("reads, empty cache", complete, DISK / 8, 0.0, depth);
        measure("writes and reads that stay in flash", complete, 50_000, 0.5, depth);
        measure("writes, complete cleaning", complete, DISK / 8, 1.0, depth);
        measure("writes, partial cleaning", "on-demand-partial", DISK / 8, 1.0, depth);
        measure("writes, low watermark", "low-watermark", DISK / 8, 1.0, depth);
    }
}
