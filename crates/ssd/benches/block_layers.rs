//! Uniform random 4 KiB writes over block-mapped FTLs, through the whole machine with a
//! closed loop of 32 requests: flash operations simulated per CPU-second.
//!
//! `cargo bench -p hybridsim-ssd --bench block_layers -- [ftl,ftl,..] [writes] [GiB]`

use hybridsim_config::build::BuildInput;
use hybridsim_config::param::Value;
use hybridsim_engine::{
    Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, EventSink, Lba, Machine,
    Op, Request, RequestId, SimDuration, Stream,
};
use hybridsim_flash::FlashEvent;
use hybridsim_flash::defaults;
use hybridsim_ssd::device::{Ssd, SsdParams, build_ssd};

/// Processor seconds of this process: the machine may be shared.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

struct ClosedLoop {
    left: u64,
    pages: u64,
    stream: Stream,
}

impl ClosedLoop {
    fn issue(&mut self, ctx: &mut Ctx<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let lba = Lba(self.stream.below(self.pages) * 8);
            ctx.issue(0, Request::new(Op::Write, lba, 8), 0);
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
        for _ in 0..32 {
            self.issue(ctx);
        }
    }
    fn request(&mut self, _ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {}
    fn completion(&mut self, ctx: &mut Ctx<'_>, _done: &Completion) {
        self.issue(ctx);
    }
}

/// Counts flash operations, from the first event on, which ends preconditioning.
#[derive(Default)]
struct Operations {
    programs: u64,
    others: u64,
    first: Option<f64>,
}

impl EventSink for Operations {
    fn take(&mut self, events: &[EventRecord]) {
        self.first.get_or_insert_with(cpu_seconds);
        for record in events {
            match record.event() {
                Some(FlashEvent::Program { .. }) => self.programs += 1,
                Some(FlashEvent::Read { .. } | FlashEvent::Erase { .. }) => self.others += 1,
                _ => {}
            }
        }
    }
}

fn device(ftl: &str, gib: u64) -> Ssd {
    let registry = hybridsim_ssd::registry();
    let us = |us| Value::Duration(SimDuration::from_us(us));
    let blocks_per_plane = (gib as f64 * 1024.0 * 1.07 / 64.0).ceil() as u64;
    let settings = defaults::settings(SsdParams::PARAMS, &registry)
        .and("ftl", defaults::entry("ftl", ftl, &registry))
        .and("blocks_per_plane", Value::Count(blocks_per_plane))
        .and("over_provisioning", Value::Number(0.07))
        .and("program_order", Value::Text("any".to_owned()))
        .and("channel_rate", Value::Rate(800_000_000))
        .and("read_time", us(30))
        .and("program_time", us(185))
        .and("erase_time", us(3_000))
        .and("precondition", Value::Text("fill".to_owned()));
    let (settings, registry) = (&settings, &registry);
    build_ssd(&BuildInput { settings, registry, seed: 1, path: "ssd", children: &[] })
        .expect("valid parameters")
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let arg = |at: usize, default: &str| args.get(at).cloned().unwrap_or(default.to_owned());
    let number = |at, default| arg(at, default).parse::<u64>().expect("a whole number");
    let (writes, gib) = (number(1, "300000"), number(2, "4"));
    for ftl in arg(0, "log-block,bast,anand,fmax,in-place").split(',') {
        let ssd = device(ftl, gib);
        let pages = ssd.capacity() / 8;
        let root = ClosedLoop { left: writes, pages, stream: Stream::new(1, "bench") };
        let node = ComponentTree::inner("root", root, vec![ComponentTree::leaf("ssd", ssd)]);
        let mut sink = Operations::default();
        Machine::new(node, false).run(&mut sink, &mut |_| true).expect("a run without a fault");
        let seconds = cpu_seconds() - sink.first.expect("there were events");
        let operations = sink.programs + sink.others;
        println!(
            "{gib} GiB, {ftl}: {:.1} M flash operations and {:.3} M writes per CPU-second, write \
             amplification {:.1}",
            operations as f64 / seconds / 1e6,
            writes as f64 / seconds / 1e6,
            sink.programs as f64 / writes as f64
        );
    }
}
