//! Section V: the four algorithms for spin-down of hybrid disks that the paper cites.

use super::{LINE, weeks};
use crate::published::settings;
use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_observe::results::Component;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/spin-down", run: reproduce };

/// The jobs of a machine: without, with each of the algorithms, with all.
const WITHOUT: usize = 0;
const IDLE: usize = 1;
const READS: usize = 2;
const ANTICIPATES: usize = 3;
const THROTTLES: usize = 4;
const ALL: usize = 5;
const JOBS: usize = 6;

fn jobs(name: &str, workload: &str, algorithms: &[Setting]) -> Vec<Job> {
    let job = |what: &str| {
        let job = Job::paper("bisson-fqueue/spin-down.toml").named(format!("{name}, {what}"));
        assert!(job.text.contains(LINE), "the scenario has the line that is replaced");
        Job { text: job.text.replace(LINE, workload), ..job }
    };
    let mut jobs = vec![job("time-out alone")];
    jobs.extend(algorithms.iter().map(|algorithm| job(&algorithm.name).at(algorithm)));
    jobs.push(algorithms.iter().fold(job("all four"), Job::at));
    jobs
}

fn component<'a>(ran: &'a JobOutput, name: &str) -> Option<&'a Component> {
    let mut components = ran.results.components.iter();
    components.find(|(path, _)| path.rsplit('/').next() == Some(name)).map(|found| found.1)
}

/// Kilojoules of the disk.
fn energy(ran: &JobOutput) -> f64 {
    let power = component(ran, "disk").and_then(|disk| disk.power.as_ref());
    power.and_then(|power| power.energy_j).unwrap_or(f64::NAN) / 1e3
}

fn spin_ups(ran: &JobOutput) -> f64 {
    let disk = component(ran, "disk").and_then(|disk| disk.disk.as_ref());
    disk.map_or(f64::NAN, |disk| disk.spin_ups as f64)
}

/// Seconds that requests waited for spin-ups.
fn spin_up_latency(ran: &JobOutput) -> f64 {
    let of_phase = |phase: &str| ran.results.breakdown_ns.all.get(phase).copied();
    let mean = of_phase("spin_up").unwrap_or(0.0);
    mean * ran.results.latency_ns.all.count as f64 / 1e9
}

/// Megabytes written to the NV cache.
fn flash_writes(ran: &JobOutput) -> f64 {
    let drive = component(ran, "drive");
    let sectors = |name: &str| {
        let written = drive.and_then(|drive| drive.custom.get(name));
        written.map_or(0.0, |it| it.count as f64 * it.mean.unwrap_or(0.0))
    };
    (sectors("write_cached_sectors") + sectors("read_cached_sectors")) * 512e-6
}

/// Megabytes in the NV cache at most.
fn cached(ran: &JobOutput) -> f64 {
    let level = component(ran, "drive").and_then(|drive| drive.custom.get("cached_sectors"));
    level.map_or(0.0, |level| level.max as f64) * 512e-6
}

type Value = fn(&JobOutput) -> f64;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let machines: Vec<_> = weeks(runner).into_iter().filter(|machine| !machine.real).collect();
    let algorithms = settings("bisson-fqueue/spin-down-algorithms", &[]);
    let jobs = machines.iter().map(|it| jobs(it.name, &it.workload, &algorithms));
    let all: Vec<Job> = jobs.flatten().collect();
    let settings = settings("bisson-fqueue/spin-down", &[]);
    let ran = Variants::run(runner, &all, super::seeds("B21"), &settings)?;
    let sum = |ran: &[JobOutput], job: usize, value: Value| -> f64 {
        ran.iter().skip(job).step_by(JOBS).map(value).sum()
    };
    for (id, job, value) in [
        ("bisson-fqueue/artificial-idle-periods-save-energy", IDLE, energy as Value),
        ("bisson-fqueue/read-miss-cache-saves-spin-ups", READS, spin_ups),
        ("bisson-fqueue/anticipation-saves-spin-up-latency", ANTICIPATES, spin_up_latency),
        ("bisson-fqueue/throttling-saves-flash-writes", THROTTLES, flash_writes),
        ("bisson-fqueue/all-four-save-energy", ALL, energy),
        ("bisson-fqueue/all-four-save-spin-ups", ALL, spin_ups),
        ("bisson-fqueue/all-four-save-spin-up-latency", ALL, spin_up_latency),
        ("bisson-fqueue/all-four-save-flash-writes", ALL, flash_writes),
    ] {
        let pair = |ran: &[JobOutput]| {
            vec![("without", sum(ran, WITHOUT, value)), ("with", sum(ran, job, value))]
        };
        let over = |job: usize| sum(ran.first(), job, value) / sum(ran.first(), WITHOUT, value);
        let alone = algorithms.iter().zip(IDLE..);
        let alone: Vec<String> =
            alone.map(|(it, job)| format!("{} {:.3}", it.name, over(job))).collect();
        let cached = ran.first().iter().skip(ANTICIPATES).step_by(JOBS).map(cached);
        let claim = Claim::of(id).with("alone", alone.join(", "));
        let claim = claim.with("cached", cached.fold(0.0, f64::max));
        findings.row(ran.order(claim, pair));
    }
    Ok(findings)
}
