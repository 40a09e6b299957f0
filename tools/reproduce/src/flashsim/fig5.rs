//! Figure 5: how drives and simulated drives respond to sequentiality.

use super::{FTLS, seeds, with_ftl};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig5", run: reproduce };

const SHARES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];

/// The device of `system`; a drive with the translation layer of its preset.
fn device(system: &str, read: u8, sequential: f64) -> Job {
    let job = Job::paper("flashsim/validation.toml")
        .named(format!("{system}, {} % sequential", sequential * 100.0))
        .set("workload.generator.read", read)
        .set("workload.generator.sequential", format!("{sequential:?}"));
    match DRIVES.contains(&system) {
        // A gigabyte of the drive, filled before: the rest of 32 GB would only be spare.
        true => job
            .set("component.ssd.preset", format!("\"{system}\""))
            .set("component.ssd.blocks_per_plane", 8448 / 32),
        false => job,
    }
}

fn job(system: &str, read: u8, sequential: f64) -> Job {
    let ftl = if DRIVES.contains(&system) { "page" } else { system };
    with_ftl(device(system, read, sequential), ftl)
}

/// MB/s.
fn throughput(ran: &JobOutput) -> f64 {
    ran.results.throughput.bytes_per_s.map_or(f64::NAN, |rate| rate / 1e6)
}

/// Outputs at every share of sequential requests, by seed.
fn sweep(runner: &Runner, system: &str, read: u8) -> Result<Vec<Vec<JobOutput>>, ExperimentError> {
    let jobs: Vec<Job> = SHARES.iter().map(|share| job(system, read, *share)).collect();
    runner.run_at_seeds(&jobs, seeds(&["F22", "F23"]))
}

fn throughputs(ran: &[Vec<JobOutput>]) -> Vec<Vec<f64>> {
    ran.iter().map(|seeds| seeds.iter().map(throughput).collect()).collect()
}

/// Models of the two drives of the figure, from Table 2.
const DRIVES: [&str; 2] = ["mtron-msp7000-like", "supertalent-fsd32-like"];

/// The systems that map pages and may collect beside host writes.
const PAGE_MAPS: [&str; 3] = ["page", DRIVES[0], DRIVES[1]];

/// The figure's FlashSim1 and FlashSim2, and the drives; FAST is drawn, but not in the figure.
fn systems() -> Vec<&'static str> {
    FTLS.into_iter().chain(DRIVES).collect()
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for system in systems() {
        let ran = sweep(runner, system, 0)?;
        let (written, read) = (throughputs(&ran), throughputs(&sweep(runner, system, 1)?));
        if system != "fast" {
            findings.row(rises(runner, system, &ran)?);
            findings.row(variation(system, &written, &read));
        }
        let points = |ran: &[Vec<f64>]| {
            SHARES.iter().zip(ran).map(|(share, values)| (*share, values[0])).collect()
        };
        writes.push(Curve::ours(system, points(&written)));
        reads.push(Curve::ours(system, points(&read)));
    }
    random_writes(runner, &mut findings)?;
    findings.plot("flashsim/throughput-by-sequentiality", &[("title", &"Writes")], writes);
    findings.plot("flashsim/throughput-by-sequentiality", &[("title", &"Reads")], reads);
    Ok(findings)
}

const NAMES: [&str; 6] = ["0", "0.2", "0.4", "0.6", "0.8", "1"];

/// Figure 5(a): throughput of writes by sequentiality.
fn rises(runner: &Runner, system: &str, ran: &[Vec<JobOutput>]) -> Result<Claim, ExperimentError> {
    let named: Vec<(&str, Vec<f64>)> = NAMES.into_iter().zip(throughputs(ran)).collect();
    let claim = Claim::of("flashsim/throughput-rises-sequentiality-writes").with("system", system);
    let claim = claim.ranked_at_seeds(&named);
    if !DRIVES.contains(&system) {
        return Ok(claim);
    }
    let amplification =
        |at: usize| ran[at][0].results.totals.page_write_amplification.unwrap_or(f64::NAN);
    let why = format!(
        "measured: {:.2} pages are programmed per page written without sequential requests and \
         {:.2} with 80 %. The page map that the preset assumes spreads the pages of requests over \
         the planes of all dies, so the few of a run do not share a block, as they do on the \
         chip's one plane, or with four neighbouring pages to a plane",
        amplification(0),
        amplification(4),
    );
    let logs = |share| with_ftl(device(system, 0, share), "fast");
    let stripes = |share| job(system, 0, share).set("component.ssd.ftl.stripe_pages", 4);
    let mut claim = claim.if_it_differs(&why);
    for (name, jobs) in [
        ("log blocks (FAST) instead of a page map", SHARES.map(logs)),
        ("four neighbouring pages to a plane", SHARES.map(stripes)),
    ] {
        let ran = runner.run(&jobs)?;
        let ran: Vec<(&str, f64)> = NAMES.into_iter().zip(ran.iter().map(throughput)).collect();
        claim = claim.sensitive_ranked(name, &ran);
    }
    Ok(claim)
}

/// The variation of reads with sequentiality over that of writes.
fn variation(system: &str, written: &[Vec<f64>], read: &[Vec<f64>]) -> Claim {
    let of = |ran: &[Vec<f64>], seed: usize| {
        let values: Vec<f64> = ran.iter().map(|values| values[seed]).collect();
        let (low, high) = bounds(&values);
        (high - low) / high
    };
    let ratios: Vec<f64> =
        (0..written[0].len()).map(|seed| of(read, seed) / of(written, seed)).collect();
    let claim = Claim::of("flashsim/reads-vary-much-less-highest").with("system", system);
    let claim = claim.ours_at_seeds(&ratios);
    // Nothing in the model of a page map makes a read depend on the one before.
    claim.given_if(PAGE_MAPS.contains(&system))
}

fn bounds(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
}

/// Figure 5(c): 80 % of the writes random.
fn random_writes(runner: &Runner, findings: &mut Findings) -> Result<(), ExperimentError> {
    let systems = systems();
    let jobs: Vec<Job> = systems.iter().map(|system| job(system, 0, 0.2)).collect();
    let ran = runner.run_at_seeds(&jobs, seeds(&["F24"]))?;
    let paced = |system: &str| {
        let job = match system {
            "page" => job(system, 0, 0.2)
                .set("component.ssd.ftl.gc_pace", "\"incremental\"")
                .set("component.ssd.ftl.gc_separate", true),
            drive => device(drive, 0, 0.2),
        };
        job.named(format!("{system}, collection beside host writes"))
    };
    let paced = runner.run(&PAGE_MAPS.map(paced))?;
    let tail = |ran: &JobOutput| {
        let latency = &ran.results.latency_ns.all;
        let of = |value: Option<u64>| value.map_or(f64::NAN, |ns| ns as f64);
        of(latency.p999) / of(latency.p50)
    };
    for (system, ran) in systems.iter().zip(&ran).filter(|(system, _)| **system != "fast") {
        let claim = Claim::of("flashsim/long-tail-99-9th-percentile-median");
        let tails: Vec<f64> = ran.iter().map(tail).collect();
        let claim = claim.with("system", system).ours_at_seeds(&tails);
        let beside = PAGE_MAPS.iter().position(|other| other == system).map(|at| tail(&paced[at]));
        findings.row(match beside {
            Some(tail) => claim.sensitive("collection beside host writes", tail),
            None => claim,
        });
    }
    findings.plot(
        "flashsim/response-times-of-random-writes",
        &[],
        systems
            .iter()
            .zip(&ran)
            .map(|(system, ran)| Curve::ours(system, ran[0].distribution("all")).stepped())
            .collect::<Vec<_>>(),
    );
    Ok(())
}
