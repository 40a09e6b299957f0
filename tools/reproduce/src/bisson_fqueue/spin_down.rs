//! Section V: the four algorithms for spin-down of hybrid disks that the paper cites.

use super::{LINE, weeks};
use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_observe::results::Component;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/spin-down", run: reproduce };

/// An algorithm: its name, and the keys of the drive that turn it on.
type Algorithm = (&'static str, &'static [(&'static str, &'static str)]);

const ALGORITHMS: [Algorithm; 4] = [
    ("artificial idle periods", &[("artificial_idle", "true")]),
    ("read-miss cache", &[("cache_reads", "\"spin-up\"")]),
    ("anticipatory spin-up", &[("spin_up_at", "0.9")]),
    // About half of what Eng writes.
    ("write throttling", &[("write_rate_max", "\"1200B/s\"")]),
];

/// The jobs of a machine: without, with each of [`ALGORITHMS`], with all.
const WITHOUT: usize = 0;
const IDLE: usize = 1;
const READS: usize = 2;
const ANTICIPATES: usize = 3;
const THROTTLES: usize = 4;
const ALL: usize = 5;
const JOBS: usize = 6;

fn jobs(name: &str, workload: &str) -> Vec<Job> {
    let job = |what: &str| {
        let job = Job::paper("bisson-fqueue/spin-down.toml").named(format!("{name}, {what}"));
        assert!(job.text.contains(LINE), "the scenario has the line that is replaced");
        Job { text: job.text.replace(LINE, workload), ..job }
    };
    let with = |job: Job, (_, keys): &Algorithm| {
        keys.iter().fold(job, |job, (key, value)| job.set(&format!("component.drive.{key}"), value))
    };
    let mut jobs = vec![job("time-out alone")];
    jobs.extend(ALGORITHMS.iter().map(|algorithm| with(job(algorithm.0), algorithm)));
    jobs.push(ALGORITHMS.iter().fold(job("all four"), with));
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
    let all: Vec<Job> =
        machines.iter().flat_map(|machine| jobs(machine.name, &machine.workload)).collect();
    let time_out = |name: &str, time: &'static str| Setting::key(name, TIME_OUT, time);
    let settings = [
        time_out("time-out of 2 s", "\"2s\""),
        time_out("time-out of 60 s", "\"60s\""),
        Setting::key("NV cache of 1 MB", "component.drive.size", "\"1MB\""),
        Setting::new("throttled at 160 kB/s: 100,000 erases in five years", |at, job| {
            match [THROTTLES, ALL].contains(&(at % JOBS)) {
                true => job.set("component.drive.write_rate_max", "\"160kB/s\""),
                false => job,
            }
        }),
    ];
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
        let alone: Vec<String> = ALGORITHMS
            .iter()
            .zip(IDLE..)
            .map(|((name, _), job)| format!("{name} {:.3}", over(job)))
            .collect();
        let filled = ran.first().iter().skip(ANTICIPATES).step_by(JOBS).map(cached);
        let why = format!(
            "with over without at seed 1, alone: {}; with anticipation the cache holds at most \
             {:.1} MB",
            alone.join(", "),
            filled.fold(0.0, f64::max)
        );
        let claim = Claim::of(id).if_it_differs(&why);
        findings.row(ran.order(claim, pair));
    }
    Ok(findings)
}

const TIME_OUT: &str = "component.drive.spin_down_after";
