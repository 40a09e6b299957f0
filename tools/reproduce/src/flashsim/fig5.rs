//! Figure 5: how drives and simulated drives respond to sequentiality.

use super::{LAYERS, with_layer};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Order, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

/// The figure.
pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig5", run: reproduce };

const SHARES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
fn job(component: &str, read: u8, sequential: f64) -> Job {
    let job = Job::paper("flashsim/validation.toml")
        .named(format!("{component}, {} % sequential", sequential * 100.0))
        .set("workload.generator.read", read)
        .set("workload.generator.sequential", format!("{sequential:?}"));
    with_layer(job, component)
}

/// MB/s.
fn throughput(ran: &JobOutput) -> f64 {
    ran.results.throughput.bytes_per_s.map_or(f64::NAN, |rate| rate / 1e6)
}

/// Throughput at every share of sequential requests.
fn sweep(runner: &Runner, component: &str, read: u8) -> Result<Vec<f64>, ExperimentError> {
    let jobs: Vec<Job> = SHARES.iter().map(|share| job(component, read, *share)).collect();
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
    for component in LAYERS {
        let written = sweep(runner, component, 0)?;
        let named: Vec<(String, f64)> =
            SHARES.iter().map(|share| format!("{share}")).zip(written.iter().copied()).collect();
        let named: Vec<(&str, f64)> = named.iter().map(|(name, v)| (name.as_str(), *v)).collect();
        let claim = format!("{component}: throughput rises with the sequentiality of writes, MB/s");
        findings.row(Claim::new("F22", claim).ordered(Order::Rising).ranked(&named));
        let read = sweep(runner, component, 1)?;
        let (low, high) = bounds(&read);
        findings.row(
            Claim::of("flashsim/reads-vary-much-less-highest")
                .with("component", component)
                .ours((high - low) / high),
        );
        let points = |values: Vec<f64>| SHARES.iter().copied().zip(values).collect();
        writes.push(Curve::ours(component, points(written)));
        reads.push(Curve::ours(component, points(read)));
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
    let ran = runner.run(&LAYERS.map(|component| job(component, 0, 0.2)))?;
    let tail = |ran: &JobOutput| {
        let latency = &ran.results.latency_ns.all;
        let of = |value: Option<u64>| value.map_or(f64::NAN, |ns| ns as f64);
        of(latency.p999) / of(latency.p50)
    };
    for (component, ran) in LAYERS.iter().zip(&ran) {
        findings.row(
            Claim::of("flashsim/long-tail-99-9th-percentile-median")
                .with("component", component)
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
        curves: LAYERS
            .iter()
            .zip(&ran)
            .map(|(component, ran)| Curve::ours(component, ran.distribution("all")).stepped())
            .collect(),
    });
    Ok(())
}
