//! Table 3: the workloads of the evaluation, as generators.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};

/// The table.
pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/table3", run: reproduce };

struct Row {
    title: &'static str,
    preset: &'static str,
    size_kb: f64,
    read: f64,
    sequential: f64,
    interarrival_ms: f64,
    seconds: f64,
}

const ROWS: [Row; 2] = [
    Row {
        title: "Financial",
        preset: "financial",
        size_kb: 4.38,
        read: 0.09,
        sequential: 0.02,
        interarrival_ms: 133.50,
        seconds: 43_712.0,
    },
    Row {
        title: "TPC-H",
        preset: "tpc-h",
        size_kb: 12.82,
        read: 0.95,
        sequential: 0.18,
        interarrival_ms: 155.56,
        seconds: 37_058.0,
    },
];

/// 32 GB, the drives of Table 2.
const CAPACITY_SECTORS: u64 = 62_500_000;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for row in &ROWS {
        let text = format!("generator = {{ kind = \"server\", preset = \"{}\" }}", row.preset);
        let job = Job::of_workload(row.title, &text);
        let profile = runner.profile(&job, CAPACITY_SECTORS, &mut |_| {})?;
        let claim =
            |what: &str| Claim::of("flashsim/of-each").with("title", row.title).with("what", what);
        let size = profile.request_bytes_mean / 1024.0;
        findings
            .row(claim("mean request size").unit("KB").within_share(row.size_kb, 0.02).ours(size));
        findings.row(claim("share of reads").within(row.read, 0.005).ours(profile.read_fraction));
        let sequential = profile.sequential_fraction;
        findings.row(
            claim("share of sequential requests").within(row.sequential, 0.01).ours(sequential),
        );
        let gap = profile.interarrival_ns.map_or(f64::NAN, |gaps| gaps.mean / 1e6);
        findings.row(
            claim("mean inter-arrival time")
                .unit("ms")
                .within_share(row.interarrival_ms, 0.02)
                .ours(gap),
        );
        let span = profile.span_ns as f64 / 1e9;
        findings.row(claim("simulated time").unit("s").within_share(row.seconds, 0.02).ours(span));
    }
    Ok(findings)
}
