//! Figure 7 (the text's; the caption says 8): schedulers.

use super::{Machine, count, foreground_ns, machines, seeds, sum};
use crate::published::settings;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Variants};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/fig7", run: reproduce };

const SCHEDULERS: [&str; 3] = ["fcfs", "sstf", "c-look"];
const C_LOOK: usize = 2;

/// Each scheduler without an FQueue, then each with one of 80 MB.
fn jobs(machine: &Machine) -> Vec<Job> {
    let mut jobs: Vec<Job> = SCHEDULERS.iter().map(|name| machine.plain(name)).collect();
    jobs.extend(SCHEDULERS.map(|scheduler| {
        let job = machine.backed(80.0).named(format!("{}, {scheduler}", machine.name));
        job.set("component.scheduler.scheduler", format!("\"{scheduler}\""))
    }));
    jobs
}

/// Write access time without an FQueue.
fn raw(ran: &[JobOutput], scheduler: usize) -> f64 {
    sum(&ran[scheduler], "disk_write_ns")
}

/// Write access time with an FQueue over that without, under one scheduler.
fn normalised(ran: &[JobOutput], scheduler: usize) -> f64 {
    foreground_ns(&ran[SCHEDULERS.len() + scheduler]) / raw(ran, scheduler)
}

/// Least and greatest.
fn ends(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    (values.clone().fold(f64::MAX, f64::min), values.fold(0.0, f64::max))
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut all: Vec<(Machine, Variants)> = Vec::new();
    let mut readings = settings("bisson-fqueue/idle-readings", &[]);
    readings.extend(settings("bisson-fqueue/flash-times", &[]));
    for machine in machines(runner) {
        let ran = Variants::run(runner, &jobs(&machine), seeds("B11"), &readings)?;
        let figures = figures(ran.first());
        let claim = |id: &str| Claim::of(id).with("name", machine.name).with_figures(&figures);
        let spread = |ran: &[JobOutput]| {
            let (least, most) = ends((0..SCHEDULERS.len()).map(|at| normalised(ran, at)));
            most - least
        };
        let id = "bisson-fqueue/spread-schedulers-each-itself";
        findings.row(ran.number(claim(id), spread));
        let id = "bisson-fqueue/raw-numbers-of-schedulers-differ";
        findings.row(ran.number(claim(id), |ran| {
            let (least, most) = ends((0..SCHEDULERS.len()).map(|at| raw(ran, at)));
            most / least
        }));
        let id = "bisson-fqueue/write-access-time-less-without";
        findings.row(ran.number(claim(id), |ran| normalised(ran, C_LOOK)));
        all.push((machine, ran));
    }
    reduction(&all, &mut findings);
    findings.row(across_workloads(&all));
    plot(&all, &mut findings);
    Ok(findings)
}

fn reduction(all: &[(Machine, Variants)], findings: &mut Findings) {
    for real in [false, true] {
        let of = all.iter().filter(|(machine, _)| machine.real == real);
        let least = of.min_by(|a, b| {
            let time = |ran: &Variants| normalised(ran.first(), C_LOOK);
            time(&a.1).total_cmp(&time(&b.1))
        });
        let Some((machine, ran)) = least else { continue };
        let claim = Claim::of("bisson-fqueue/reduction-80-mb-c-look").with("name", machine.name);
        findings.row(ran.number(claim, |ran| 1.0 - normalised(ran, C_LOOK)));
    }
}

/// The largest normalised time of a machine over the smallest, at each seed.
fn across_workloads(all: &[(Machine, Variants)]) -> Claim {
    let generated = || all.iter().filter(|(machine, _)| !machine.real).map(|(_, ran)| ran);
    let ratio = |times: Vec<f64>| {
        let (least, most) = ends(times.into_iter());
        most / least
    };
    let seeds = generated().map(|ran| ran.seeds.len()).min().unwrap_or(0);
    let at =
        |seed: usize| ratio(generated().map(|ran| normalised(&ran.seeds[seed], C_LOOK)).collect());
    let values: Vec<f64> = (0..seeds).map(at).collect();
    let mut claim =
        Claim::of("bisson-fqueue/varies-from-workload-to-workload").ours_at_seeds(&values);
    let names = generated().next().map_or(&[][..], |ran| ran.others.as_slice());
    for (at, (name, _)) in names.iter().enumerate() {
        let times = generated().map(|ran| normalised(&ran.others[at].1, C_LOOK)).collect();
        claim = claim.sensitive(name, ratio(times));
    }
    claim
}

fn plot(all: &[(Machine, Variants)], findings: &mut Findings) {
    let number = |at: usize| (at + 1) as f64;
    let curve = |(scheduler, name): (usize, &&str)| {
        let point = |(at, (_, ran)): (usize, &(Machine, Variants))| {
            (number(at), normalised(ran.first(), scheduler))
        };
        Curve::ours(name, all.iter().enumerate().map(point).collect())
    };
    let names: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(at, (machine, _))| format!("{} {}", at + 1, machine.name))
        .collect();
    let mut curves: Vec<Curve> = SCHEDULERS.iter().enumerate().map(curve).collect();
    let lowest = vec![(1.0, 0.3), (number(all.len() - 1), 0.3)];
    curves.push(Curve::published("up to 70 % less, published", lowest));
    findings.plot(
        "bisson-fqueue/access-time-by-scheduler",
        &[("machines", &names.join(", "))],
        curves,
    );
}

/// The numbers in the reasons why the schedulers take the same time or not: how long writes wait in
/// the request queue, and what sorting saves without an FQueue and with one.
fn figures(ran: &[JobOutput]) -> [(&'static str, f64); 5] {
    let plain = &ran[C_LOOK];
    let response_ms = plain.results.latency_ns.write.mean.unwrap_or(f64::NAN) / 1e6;
    let access_ms = raw(ran, C_LOOK) / count(plain, "disk_write_ns") / 1e6;
    let waits_ms = response_ms - access_ms;
    let saved = |time: &dyn Fn(usize) -> f64| 100.0 * (1.0 - time(C_LOOK) / time(0));
    [
        ("access_ms", access_ms),
        ("waits_ms", waits_ms),
        ("waits", waits_ms / access_ms),
        ("saved", saved(&|at| raw(ran, at))),
        ("saved_backed", saved(&|at| foreground_ns(&ran[SCHEDULERS.len() + at]))),
    ]
}
