//! 4 KiB uniform random writes on a preconditioned 64 GiB device while garbage collection runs,
//! through the whole machine with a closed loop of 32 requests, which announces its requests as the
//! host does.
//!
//! `cargo bench -p hybridsim-ssd -- [op28|op7|op34..] [die|channel|none|untimed] [requests] [GiB]
//! [ftl] [incremental|blocking]`; `dftl` caches 32,768 entries. Untimed means that only the
//! FTL and the array run, as for write amplification alone; with 34 % over-provisioning the write
//! amplification is 2.2.

use hybridsim_config::build::BuildInput;
use hybridsim_config::param::Value;
use hybridsim_engine::{
    Arrival, Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, EventSink, Lba,
    Machine, Op, Request, RequestId, SimDuration, SimTime, Stream,
};
use hybridsim_flash::Cause;
use hybridsim_flash::FlashEvent;
use hybridsim_flash::defaults;
use hybridsim_flash::ftl::EXPECTED_MAX;
use hybridsim_flash::geometry::Lpn;
use hybridsim_ssd::device::{Ssd, SsdParams, build_ssd};
use std::time::Instant;

/// Processor seconds of this process: the machine may be shared. Falls back to wall time.
fn cpu_seconds(since: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<f64>().ok());
    match (ticks(), ticks()) {
        (Some(user), Some(system)) => (user + system) / 100.0,
        _ => since.elapsed().as_secs_f64(),
    }
}

struct ClosedLoop {
    left: u64,
    depth: u64,
    pages: u64,
    stream: Stream,
    /// Pages drawn and not yet requested, the next one last.
    drawn: Vec<Lpn>,
}

/// Draws the pages of the next requests, the next one last.
fn draw(drawn: &mut Vec<Lpn>, stream: &mut Stream, pages: u64) {
    drawn.extend((0..EXPECTED_MAX).map(|_| Lpn(stream.below(pages) as u32)));
    drawn.reverse();
}

impl ClosedLoop {
    fn issue(&mut self, ctx: &mut Ctx<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let request = |lpn: Lpn| Request::new(Op::Write, Lba(u64::from(lpn.0) * 8), 8);
            if self.drawn.is_empty() {
                draw(&mut self.drawn, &mut self.stream, self.pages);
                ctx.expect(0, self.drawn.iter().copied().map(request));
            }
            ctx.issue(0, request(self.drawn.pop().expect("drawn just now")), 0);
        }
    }
}

impl Component for ClosedLoop {
    fn capacity(&self) -> u64 {
        self.pages * 8
    }
    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        for _ in 0..self.depth {
            self.issue(ctx);
        }
    }
    fn request(&mut self, _ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {}
    fn completion(&mut self, ctx: &mut Ctx<'_>, _done: &Completion) {
        self.issue(ctx);
    }
}

/// Counts programs and the time of the first event, which ends preconditioning.
#[derive(Default)]
struct Programs {
    host: u64,
    other: u64,
    first: Option<f64>,
}

impl EventSink for Programs {
    fn take(&mut self, events: &[EventRecord]) {
        self.first.get_or_insert_with(|| cpu_seconds(Instant::now()));
        for record in events {
            match record.event() {
                Some(FlashEvent::Program { cause: Cause::Host, .. }) => self.host += 1,
                Some(FlashEvent::Program { .. }) => self.other += 1,
                _ => {}
            }
        }
    }
}

fn device(
    (ratio, gib): (f64, u64),
    timing: &'static str,
    copy: &'static str,
    (ftl, pace): (&str, &str),
) -> Ssd {
    let registry = hybridsim_ssd::registry();
    let us = |us| Value::Duration(SimDuration::from_us(us));
    let pages = gib as f64 * 262_144.0 * (1.0 + ratio);
    let blocks_per_plane = (pages / 256.0 / 64.0).ceil() as u64;
    let mut choice = defaults::entry("ftl", ftl, &registry);
    if let (Value::Entry(entry), "dftl") = (&mut choice, ftl) {
        entry.settings.set("cache_entries", Value::Count(32_768));
    }
    if let (Value::Entry(entry), "page") = (&mut choice, ftl) {
        entry.settings.set("gc_pace", Value::Text(pace.to_owned()));
    }
    let settings = defaults::settings(SsdParams::PARAMS, &registry)
        .and("ftl", choice)
        .and("blocks_per_plane", Value::Count(blocks_per_plane))
        .and("over_provisioning", Value::Number(ratio))
        .and("timing", defaults::entry("timing", timing, &registry))
        .and("copy_back.within", Value::Text(copy.to_owned()))
        .and("channel_rate", Value::Rate(800_000_000))
        .and("controller.host_rate", Value::Rate(3_360_000_000))
        .and("read_time", us(30))
        .and("program_time", us(185))
        .and("erase_time", us(3_000))
        .and("precondition", Value::Text("steady".to_owned()));
    let input = BuildInput {
        settings: &settings,
        registry: &registry,
        seed: 1,
        path: "ssd",
        children: &[],
    };
    build_ssd(&input).expect("valid parameters")
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let arg = |at: usize, default: &str| args.get(at).cloned().unwrap_or(default.to_owned());
    let number = |at, default| arg(at, default).parse().expect("a whole number");
    let (requests, gib): (u64, u64) = (number(2, "10000000"), number(3, "64"));
    let percent = arg(0, "all").strip_prefix("op").and_then(|number| number.parse::<f64>().ok());
    let ratios = percent.map_or(vec![0.28, 0.07], |percent| vec![percent / 100.0]);
    let modes = match arg(1, "all").as_str() {
        "all" => vec!["die".to_owned(), "channel".to_owned(), "untimed".to_owned()],
        mode => vec![mode.to_owned()],
    };
    for ratio in ratios {
        for mode in &modes {
            measure((ratio, gib), mode, requests, (&arg(4, "page"), &arg(5, "incremental")));
        }
    }
}

fn measure((ratio, gib): (f64, u64), mode: &str, requests: u64, (ftl, pace): (&str, &str)) {
    let timing = if mode == "none" { "none" } else { "interleaved" };
    let copy = if mode == "channel" { "none" } else { "die" };
    let mut ssd = device((ratio, gib), timing, copy, (ftl, pace));
    let pages = ssd.capacity() / 8;
    let clock = Instant::now();
    let built = cpu_seconds(clock);
    let (ready, seconds, amplification);
    if mode == "untimed" {
        let mut stream = Stream::new(1, "bench");
        let preparation = ssd.preparation().expect("it is preconditioned");
        preparation.prepare(&mut |_| true).expect("a working device");
        ready = cpu_seconds(clock) - built;
        let mut untimed = ssd.untimed("ssd");
        let (start, before) = (cpu_seconds(clock), untimed.array().programs());
        let mut batch = Vec::with_capacity(EXPECTED_MAX);
        for _ in 0..requests.div_ceil(EXPECTED_MAX as u64) {
            batch.clear();
            batch.extend((0..EXPECTED_MAX).map(|_| {
                let request = Request::new(Op::Write, Lba(stream.below(pages) * 8), 8);
                Arrival { at: SimTime::ZERO, request }
            }));
            untimed.serve(&batch).expect("a device that is not full");
        }
        seconds = cpu_seconds(clock) - start;
        let written = untimed.served().writes;
        amplification = (untimed.array().programs() - before) as f64 / written as f64;
    } else {
        let (stream, drawn) = (Stream::new(1, "bench"), Vec::with_capacity(EXPECTED_MAX));
        let root = ClosedLoop { left: requests, depth: 32, pages, stream, drawn };
        let node = ComponentTree::inner("root", root, vec![ComponentTree::leaf("ssd", ssd)]);
        let mut machine = Machine::new(node, false);
        let mut sink = Programs::default();
        let end = machine.run(&mut sink, &mut |_| true).expect("a run without a fault");
        let first = sink.first.expect("there were events");
        ready = first - built;
        seconds = cpu_seconds(clock) - first;
        amplification = (sink.host + sink.other) as f64 / sink.host as f64;
        let simulated = end.time.since(SimTime::ZERO).as_s_f64();
        print!("simulated {:.0} writes/s, ", requests as f64 / simulated);
    }
    println!(
        "{gib} GiB, {ftl} ({pace}), over-provisioning {:.0} %, {mode}: {:.3} M writes per \
         CPU-second, write amplification {amplification:.3}, preconditioned in {ready:.1} s",
        ratio * 100.0,
        requests as f64 / seconds / 1e6
    );
}
