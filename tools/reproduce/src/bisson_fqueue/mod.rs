//! bisson-fqueue: flash-backed I/O requests.

mod distance;
mod fig11;
mod fig2;
mod fig7;
mod fqueue;
mod memory;
mod reasons;
mod spin_down;

use super::{Experiment, Job, JobOutput, Runner};
use hybridsim_observe::results::CustomResult;

pub const EXPERIMENTS: &[Experiment] = &[
    fig2::EXPERIMENT,
    distance::EXPERIMENT,
    fig7::EXPERIMENT,
    fqueue::EXPERIMENT,
    fig11::EXPERIMENT,
    memory::EXPERIMENT,
    spin_down::EXPERIMENT,
];

/// A machine and its week of requests.
#[derive(Clone, Debug)]
struct Machine {
    name: &'static str,
    /// The keys of its `[workload]` table.
    workload: String,
    /// Gigabytes of its disk.
    gigabytes: u64,
    /// Whether it was recorded, not generated.
    real: bool,
}

/// The generators, and the real week where it is at hand.
fn weeks(runner: &Runner) -> Vec<Machine> {
    let generated = [("Eng", "eng"), ("HP", "hp"), ("WinPC", "winpc"), ("Mac", "mac")];
    let mut all: Vec<Machine> = generated
        .map(|(name, preset)| {
            let workload = LINE.replace("eng", preset);
            Machine { name, workload, gigabytes: 120, real: false }
        })
        .into();
    if let Ok(path) = runner.data(REAL) {
        // The paper's traces are of one disk each: the busier of the two.
        let workload = format!("trace = {:?}\nvolumes = [1]", path.display().to_string());
        all.push(Machine { name: "HP, real", workload, gigabytes: 120, real: true });
    }
    all
}

/// The weeks, and the log of a Windows PC at work, of hours and not of a week.
fn machines(runner: &Runner) -> Vec<Machine> {
    let mut all = weeks(runner);
    if let Ok(path) = runner.data(LOG) {
        let workload = format!("trace = {:?}", path.display().to_string());
        all.push(Machine { name: "WinPC, real log", workload, gigabytes: 160, real: true });
    }
    all
}

/// HP Labs' "hplajw", one week of 1992: the same kind of machine as the paper's HP.
const REAL: &str = "traces/desktop/hpux-hplajw-1992-1week.srt.gz";
/// DiskMon on a Windows PC, 3.3 hours.
const LOG: &str = "traces/desktop/diskmon-mayun2.txt.gz";
/// The line of the scenario that a machine replaces, and that of its disk.
const LINE: &str = "generator = { kind = \"week\", preset = \"eng\" }";
const DISK: &str = "kind = \"curve-disk\"\ncapacity = \"120GB\"";

/// Seeds at which the claims of `row` are run.
fn seeds(row: &str) -> u32 {
    crate::seeds("bisson-fqueue", &[row])
}

/// The card and what the host knows of it, `times` as fast.
fn with_flash(job: Job, times: f64) -> Job {
    let latency = format!("\"{}us\"", 700.0 / times);
    let rate = format!("\"{}MB/s\"", 9.0 * times);
    job.set("component.scheduler.flash_latency", &latency)
        .set("component.scheduler.flash_rate", &rate)
        .set("component.nv.latency", &latency)
        .set("component.nv.rate", &rate)
}

impl Machine {
    /// The paper's simulator under this week.
    fn job(&self, what: &str) -> Job {
        let job =
            Job::paper("bisson-fqueue/scheduler.toml").named(format!("{}, {what}", self.name));
        let both = job.text.contains(LINE) && job.text.contains(DISK);
        assert!(both, "the scenario has the lines that are replaced");
        let disk = DISK.replace("120", &self.gigabytes.to_string());
        Job { text: job.text.replace(LINE, &self.workload).replace(DISK, &disk), ..job }
    }

    /// Without redirected writes.
    fn plain(&self, scheduler: &str) -> Job {
        self.job(&format!("{scheduler} alone"))
            .set("component.scheduler.redirect", false)
            .set("component.scheduler.scheduler", format!("\"{scheduler}\""))
    }

    /// Sectors of its disk.
    const fn sectors(&self) -> u64 {
        self.gigabytes * 1_000_000_000 / 512
    }

    /// The paper's simulator with an FQueue of `mb` megabytes.
    fn backed(&self, mb: f64) -> Job {
        let bytes = (mb * 1e6 / 512.0).ceil() as u64 * 512;
        self.job(&format!("{mb} MB")).set("component.drive.size", format!("\"{bytes}B\""))
    }
}

/// The custom value `name` that the scheduler emits.
fn reported<'a>(ran: &'a JobOutput, name: &str) -> Option<&'a CustomResult> {
    ran.results.components.get("scheduler")?.custom.get(name)
}

/// The largest custom value `name` of the scheduler.
fn largest(ran: &JobOutput, name: &str) -> f64 {
    reported(ran, name).map_or(0.0, |reported| reported.max as f64)
}

/// The sum of the custom values `name` of the scheduler.
fn sum(ran: &JobOutput, name: &str) -> f64 {
    reported(ran, name).map_or(0.0, |reported| reported.count as f64 * reported.mean.unwrap_or(0.0))
}

/// The number of custom values `name` of the scheduler.
fn count(ran: &JobOutput, name: &str) -> f64 {
    reported(ran, name).map_or(0.0, |reported| reported.count as f64)
}

/// Time of foreground writes: to disk, to flash, and flushing between the watermarks.
fn foreground_ns(ran: &JobOutput) -> f64 {
    ["disk_write_ns", "flash_write_ns", "coalesced_write_ns", "flush_back_ns"]
        .iter()
        .map(|name| sum(ran, name))
        .sum()
}
