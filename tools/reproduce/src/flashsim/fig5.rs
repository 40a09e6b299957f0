//! Figure 5: how drives and simulated drives respond to sequentiality.

use super::{FTLS, with_ftl};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Order, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig5", run: reproduce };

const SHARES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
fn job(ftl: &str, read: u8, sequential: f64) -> Job {
    let job = Job::paper("flashsim/validation.toml")
        .named(format!("{ftl}, {} % sequential", sequential * 100.0))
        .set("workload.generator.read", read)
        .set("workload.generator.sequential", format!("{sequential:?}"));
    with_ftl(job, ftl)
}

/// MB/s.
fn throughput(ran: &JobOutput) -> f64 {
    ran.results.throughput.bytes_per_s.map_or(f64::NAN, |rate| rate / 1e6)
}

/// Throughput at every share of sequential requests.
fn sweep(runner: &Runner, ftl: &str, read: u8) -> Result<Vec<f64>, ExperimentError> {
    let jobs: Vec<Job> = SHARES.iter().map(|share| job(ftl, read, *share)).collect();
    Ok(runner.run(&jobs)?.iter().map(throughput).collect())
}

fn plot(title: &str, curves: Vec<Curve>) -> Plot {
    Plot {
        title: title.to_owned(),
        caption: "One request of 4 KB at a time.".to_owned(),
        x: Axis::linear("Sequential requests", "share"),
        y: Axis::linear("Throughput", "MB/s"),
        curves,
    }
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for ftl in FTLS {
        let written = sweep(runner, ftl, 0)?;
        let named: Vec<(String, f64)> =
            SHARES.iter().map(|share| format!("{share}")).zip(written.iter().copied()).collect();
        let named: Vec<(&str, f64)> = named.iter().map(|(name, v)| (name.as_str(), *v)).collect();
        let claim = format!("{ftl}: throughput rises with the sequentiality of writes, MB/s");
        findings.row(Claim::new("F22", claim).ordered(Order::Rising).ranked(&named));
        let read = sweep(runner, ftl, 1)?;
        let (low, high) = bounds(&read);
        findings.row(
            Claim::of("flashsim/reads-vary-much-less-highest")
                .with("ftl", ftl)
                .ours((high - low) / high),
        );
        let points = |values: Vec<f64>| SHARES.iter().copied().zip(values).collect();
        writes.push(Curve::ours(ftl, points(written)));
        reads.push(Curve::ours(ftl, points(read)));
    }
    random_writes(runner, &mut findings)?;
    findings.plot(plot("Writes", writes));
    findings.plot(plot("Reads", reads));
    Ok(findings)
}

fn bounds(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
}

/// Figure 5(c): 80 % of the writes random.
fn random_writes(runner: &Runner, findings: &mut Findings) -> Result<(), ExperimentError> {
    let ran = runner.run(&FTLS.map(|ftl| job(ftl, 0, 0.2)))?;
    let tail = |ran: &JobOutput| {
        let latency = &ran.results.latency_ns.all;
        let of = |value: Option<u64>| value.map_or(f64::NAN, |ns| ns as f64);
        of(latency.p999) / of(latency.p50)
    };
    for (ftl, ran) in FTLS.iter().zip(&ran) {
        findings.row(
            Claim::of("flashsim/long-tail-99-9th-percentile-median")
                .with("ftl", ftl)
                .ours(tail(ran)),
        );
    }
    let mean = |at: usize| ran[at].mean_ms();
    findings.row(Claim::of("flashsim/80-random-writes-mean-response-ms").ranked(&[
        ("FAST", mean(2)),
        ("DFTL", mean(1)),
        ("page", mean(0)),
    ]));
    findings.plot(Plot {
        title: "80 % random writes".to_owned(),
        caption: "Share of requests that took at most so long.".to_owned(),
        x: Axis::logarithmic("Response time", "ns"),
        y: Axis::linear("Requests", "share"),
        curves: FTLS
            .iter()
            .zip(&ran)
            .map(|(ftl, ran)| Curve::ours(ftl, ran.distribution("all")).stepped())
            .collect(),
    });
    Ok(())
}
