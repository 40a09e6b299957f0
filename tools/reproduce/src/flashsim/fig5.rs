//! Figure 5: how drives and simulated drives respond to sequentiality.

use super::{LAYERS, with_layer};
use crate::{Artefact, Claim, Findings, Job, Lab, LabError, Order, Ran};
use hybridsim_report::study::{Axis, Curve, Plot};

/// The figure.
pub const ARTEFACT: Artefact = Artefact {
    id: "flashsim/fig5",
    title: "Throughput against sequentiality; response times of random writes",
    method: "One 4 KB request at a time to the chip of Table 2, one plane (section 4), written \
             in full before. The measured curves survive only as an image, so the claims are those \
             of the text.",
    run: reproduce,
};

const SHARES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
fn job(component: &str, read: u8, sequential: f64) -> Job {
    let job = Job::paper("flashsim/validation.toml")
        .named(format!("{component}, {} % sequential", sequential * 100.0))
        .set("workload.generator.read", read)
        .set("workload.generator.sequential", format!("{sequential:?}"));
    with_layer(job, component)
}

/// MB/s.
fn throughput(ran: &Ran) -> f64 {
    ran.results.throughput.bytes_per_s.map_or(f64::NAN, |rate| rate / 1e6)
}

/// Throughput at every share of sequential requests.
fn sweep(lab: &Lab, component: &str, read: u8) -> Result<Vec<f64>, LabError> {
    let jobs: Vec<Job> = SHARES.iter().map(|share| job(component, read, *share)).collect();
    Ok(lab.run(&jobs)?.iter().map(throughput).collect())
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

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for component in LAYERS {
        let written = sweep(lab, component, 0)?;
        let named: Vec<(String, f64)> =
            SHARES.iter().map(|share| format!("{share}")).zip(written.iter().copied()).collect();
        let named: Vec<(&str, f64)> = named.iter().map(|(name, v)| (name.as_str(), *v)).collect();
        let claim = format!("{component}: throughput rises with the sequentiality of writes, MB/s");
        findings.row(Claim::new("F22", claim).ranked(Order::Rising, &named));
        let read = sweep(lab, component, 1)?;
        let (low, high) = bounds(&read);
        findings.row(
            Claim::new(
                "F23",
                format!("{component}: reads vary much less, (highest - lowest) / highest"),
            )
            .at_most("much less variation", 0.10)
            .ours((high - low) / high),
        );
        let points = |values: Vec<f64>| SHARES.iter().copied().zip(values).collect();
        writes.push(Curve::ours(component, points(written)));
        reads.push(Curve::ours(component, points(read)));
    }
    random_writes(lab, &mut findings)?;
    findings.plot(plot("Writes", writes));
    findings.plot(plot("Reads", reads));
    Ok(findings)
}

fn bounds(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
}

/// Figure 5(c): 80 % of the writes random.
fn random_writes(lab: &Lab, findings: &mut Findings) -> Result<(), LabError> {
    let ran = lab.run(&LAYERS.map(|component| job(component, 0, 0.2)))?;
    let tail = |ran: &Ran| {
        let latency = &ran.results.latency_ns.all;
        let of = |value: Option<u64>| value.map_or(f64::NAN, |ns| ns as f64);
        of(latency.p999) / of(latency.p50)
    };
    for (component, ran) in LAYERS.iter().zip(&ran) {
        findings.row(
            Claim::new("F24", format!("{component}: a long tail, 99.9th percentile over median"))
                .at_least("long-tailed", 3.0)
                .ours(tail(ran)),
        );
    }
    let mean = |at: usize| ran[at].mean_ms();
    findings.row(
        Claim::new("F24", "80 % random writes, mean response, ms")
            .ranked(Order::NotRising, &[("FAST", mean(2)), ("DFTL", mean(1)), ("page", mean(0))]),
    );
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
