//! Requests per second of wall time through the machine: 4 KiB random reads.
//!
//! `cargo bench -p hybridsim-disk` prints one line per case; a number as argument sets how many
//! requests are served, words choose cases by name.

#[path = "../tests/common/mod.rs"]
mod common;

use hybridsim_engine::{Lba, Op, Request, Stream};
use std::time::Instant;

/// Seconds on a processor so far (Linux); wall time misleads on a machine that is shared.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    ns.map_or(f64::NAN, |ns| ns / 1e9)
}

fn case(name: &str, text: &str, depth: u32, requests: u32) {
    let words = std::env::args().skip(1).filter(|a| a.starts_with(char::is_alphabetic));
    if words.into_iter().any(|word| !name.contains(&word)) {
        return;
    }
    let capacity = common::build(text).capacity() - 8;
    let mut stream = Stream::new(1, "bench");
    let mut left = requests;
    let mut machine = common::machine(text, false, move |ctx, completion| {
        for _ in 0..if completion.is_some() { 1 } else { depth } {
            if left == 0 {
                return;
            }
            left -= 1;
            ctx.issue(0, Request::new(Op::Read, Lba(stream.below(capacity)), 8), 0);
        }
    });
    let (begin, cpu) = (Instant::now(), cpu_s());
    let end = machine.run(&mut (), &mut |_| true).expect("a good run");
    let wall = begin.elapsed().as_secs_f64();
    let cpu = cpu_s() - cpu;
    println!(
        "{name}: {:.0} requests/s of wall time, {:.0} of processor time ({:.0} ns each), \
         {:.1} simulated IOPS",
        f64::from(requests) / wall,
        f64::from(requests) / cpu,
        cpu * 1e9 / f64::from(requests),
        f64::from(requests) / (end.time.as_ns() as f64 / 1e9)
    );
}

fn main() {
    let requests = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(2_000_000);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets/disk");
    for name in ["seagate-cheetah-15k5-146gb", "generic-sata-7200-250gb", "seagate-cheetah-9lp"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("a preset");
        let plain = text.replace("queue_depth = ", "scheduler = \"fcfs\"\nqueue_depth = ");
        case(&format!("{name}, FCFS, depth 1"), &plain, 1, requests);
        let mut table: toml::Table = text.parse().expect("TOML");
        table.insert("cache_segments".into(), 0.into());
        table.remove("cache_write_segments");
        table.insert("scheduler".into(), "sptf".into());
        table.insert("queue_depth".into(), 32.into());
        case(&format!("{name}, SPTF, depth 32, no buffer"), &table.to_string(), 32, requests / 4);
    }
}
