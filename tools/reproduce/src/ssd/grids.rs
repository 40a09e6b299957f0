//! Drives measured by jobs of fio over sizes and depths: latencies, and the limits of rates.
//!
//! Every drive is fitted by [`calibrate_ssd`] from the same start to half of its jobs, as a user's
//! drive would be, and judged by the other half; mixes of reads and writes are judged only.

use super::tables;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_calibrate::ssd::{
    Delivered, Drive, JobResult, Judged, MeasuredJob, REFINED_MAX, SsdCalibration, calibrate_ssd,
    every_other, trivial,
};
use hybridsim_calibrate::{CalibrateError, block_size};
use hybridsim_engine::Op;
use hybridsim_report::study::{Axis, Curve, Plot};
use serde::Deserialize;

/// A row of the tables of fio's results.
#[derive(Debug, Deserialize)]
struct Row {
    device: String,
    engine: String,
    workload: String,
    bs: String,
    qd: Option<u64>,
    jobs: Option<u64>,
    zones: Option<String>,
    dir: String,
    iops: f64,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    p99_9_us: Option<f64>,
    member: String,
}

impl Row {
    fn delivered(&self) -> Option<Delivered> {
        let op = if self.dir == "read" { Op::Read } else { Op::Write };
        let percentiles =
            [(50.0, self.p50_us), (99.0, self.p99_us), (99.9, self.p99_9_us)].into_iter();
        let percentiles = percentiles.filter_map(|(percent, us)| Some((percent, us?))).collect();
        Some(Delivered { op, iops: self.iops, mean_us: self.mean_us?, percentiles })
    }

    fn bytes(&self) -> Option<u64> {
        block_size(&self.bs)
    }

    fn depth(&self) -> Option<u64> {
        Some(self.qd? * self.jobs.unwrap_or(1))
    }
}

/// Jobs that are judged only, in words and in code.
type JudgedOnly = (&'static str, fn(&MeasuredJob) -> bool);

/// Where the jobs of a drive are.
struct Grid {
    name: &'static str,
    /// Table, device, workload there, and fio's word for it. Only results with SPDK are taken, in
    /// which the host takes little time.
    sources: &'static [(&'static str, &'static str, &'static str, &'static str)],
    judged_only: Option<JudgedOnly>,
    /// The device of the mixes of reads and writes.
    mixes: Option<&'static str>,
}

impl Grid {
    fn is_judged_only(&self, job: &MeasuredJob) -> bool {
        self.judged_only.is_some_and(|(_, is_one)| is_one(job))
    }
}

/// Smaller requests are changed in place by some of the drives, which is not modelled.
const BYTES_MIN: u64 = 4096;
/// Bytes outstanding: all drives write at their limit with far fewer, and more only wait.
const OUTSTANDING_MAX: u64 = 4 << 20;

fn jobs(runner: &Runner, grid: &Grid) -> Result<Vec<MeasuredJob>, ExperimentError> {
    let mut found = Vec::new();
    for (table, device, workload, rw) in grid.sources {
        let rows: Vec<Row> = tables::read(runner, table)?;
        let wanted = rows.iter().filter(|row| {
            let one_zone = row.zones.as_deref().is_none_or(|zones| ["", "1"].contains(&zones));
            (row.device.as_str(), row.workload.trim(), row.engine.as_str())
                == (*device, *workload, "spdk")
                && one_zone
        });
        found.extend(wanted.filter_map(|row| {
            let bytes = row.bytes().filter(|bytes| *bytes >= BYTES_MIN)?;
            let depth = row.depth().filter(|depth| depth * bytes <= OUTSTANDING_MAX)?;
            MeasuredJob::new(rw, (bytes, depth), 50, vec![row.delivered()?])
        }));
    }
    found.sort_by_key(MeasuredJob::key);
    found.dedup_by(|a, b| a.key() == b.key());
    Ok(found)
}

/// The mixes of reads and writes of `device`: one loop that reads with the given probability.
fn mixes(runner: &Runner, device: &str) -> Result<Vec<MeasuredJob>, ExperimentError> {
    let rows: Vec<Row> = tables::read(runner, "mixed_interference")?;
    let of = |row: &&Row| {
        row.device == device && row.engine == "spdk" && row.workload.starts_with("randrw")
    };
    let mut found = Vec::new();
    for read in rows.iter().filter(of).filter(|row| row.dir == "read") {
        let same = |row: &&Row| row.dir == "write" && row.member == read.member;
        let write = rows.iter().filter(of).find(same);
        let percent = read.workload.rsplit('=').next().and_then(|text| text.parse().ok());
        let job = write.zip(percent).and_then(|(write, percent)| {
            let delivered = vec![read.delivered()?, write.delivered()?];
            MeasuredJob::new("randrw", (read.bytes()?, read.depth()?), percent, delivered)
        });
        found.extend(job);
    }
    found.sort_by_key(MeasuredJob::key);
    Ok(found)
}

/// Goals: mean error of requests per second, of the median and of the 99th percentile of latency.
pub(super) const RATE: f64 = 0.05;
const LATENCY: f64 = 0.10;

fn calibrated(runner: &Runner, grid: &Grid) -> Result<Findings, ExperimentError> {
    let jobs = jobs(runner, grid)?;
    let start = Job::paper("ssd/parallel.toml").text;
    let failed =
        |error: &dyn std::fmt::Display| ExperimentError::Failed(format!("{}: {error}", grid.name));
    let drive = Drive::of_scenario(grid.name, &start, runner.registry());
    let drive = drive.map_err(|error| failed(&error))?;
    let mut fits = every_other(&jobs);
    fits.iter_mut().zip(&jobs).for_each(|(fits, job)| *fits &= !grid.is_judged_only(job));
    runner.done(&format!("{}: {} jobs", grid.name, jobs.len()))?;
    let found = calibrate_ssd(&drive, &jobs, &fits, &|| !runner.is_interrupted());
    let found = found.map_err(|error| match error {
        CalibrateError::Interrupted => ExperimentError::Interrupted,
        error => failed(&error),
    })?;
    runner.done(&format!("{}: fitted", grid.name))?;
    let mut findings = Findings::default();
    given(&mut findings, grid.name, &found);
    judged_by_direction(&mut findings, grid, &found);
    saturated(&mut findings, grid.name, &found.jobs);
    plots(&mut findings, grid.name, &found.jobs);
    if let Some(device) = grid.mixes {
        let mixes = mixes(runner, device)?;
        let results = found.simulate(&mixes).map_err(|error| failed(&error))?;
        let all = Judged::of(&results, false);
        judged(&mut findings, grid.name, "mixes of reads and appends, none fitted to", &all, None);
        plots(&mut findings, grid.name, &results);
    }
    Ok(findings)
}

/// Rows for the jobs held out, reads and writes apart, and for those that are judged only.
fn judged_by_direction(findings: &mut Findings, grid: &Grid, found: &SsdCalibration<'_>) {
    let ops = [(Op::Read, "reads held out"), (Op::Write, "writes held out")];
    for (op, words) in ops {
        let is_wanted = |result: &JobResult| {
            let is_judged_only = grid.is_judged_only(&result.measured);
            !result.fitted && !is_judged_only && result.measured.delivered[0].op == op
        };
        let trivial = Some(trivial(&found.jobs, is_wanted));
        judged(findings, grid.name, words, &Judged::among(&found.jobs, is_wanted), trivial);
    }
    if let Some((words, is_one)) = grid.judged_only {
        let others = Judged::among(&found.jobs, |result| is_one(&result.measured));
        judged(findings, grid.name, &format!("{words}, none fitted to"), &others, None);
    }
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// The row of what was fitted.
pub(super) fn given(findings: &mut Findings, name: &str, found: &SsdCalibration<'_>) {
    let [_, (channels, dies)] = found.dies;
    let mut constants = Vec::new();
    if found.are_dies_searched {
        constants.push(format!("{channels} channels of {dies} dies"));
    }
    for constant in &found.constants {
        constants.extend(constant.to.as_ref().map(|to| format!("{} {to}", constant.name)));
    }
    let fitted = &found.fitted[1];
    findings.row(
        Claim::new(
            "–",
            format!("{name}: mean error of requests/s, {} jobs fitted to", fitted.jobs),
        )
        .unit("%")
        .at_most("", percent(RATE))
        .ours(percent(fitted.rate_mean))
        .given()
        .remark(&format!(
            "{} constants fitted: {}{}",
            constants.len(),
            constants.join(", "),
            if found.is_stopped {
                format!("; the search was stopped after {REFINED_MAX} simulations")
            } else {
                String::new()
            }
        )),
    );
}

/// Rows for the mean errors of jobs that were not fitted to, if there are any.
pub(super) fn judged(
    findings: &mut Findings,
    name: &str,
    which: &str,
    judged: &Judged,
    trivial: Option<f64>,
) {
    if judged.jobs == 0 {
        return;
    }
    let words = |what: &str| format!("{name}: {} {which}, mean error of {what}", judged.jobs);
    let mut remark = format!("at worst {:.1} %", percent(judged.rate_worst));
    if let Some(trivial) = trivial {
        remark += &format!(
            "; latency at the least depth and the highest rate alone would be off by {:.1} %",
            percent(trivial)
        );
    }
    let rows = [
        ("requests/s", judged.rate_mean, RATE, remark.as_str()),
        ("the median latency", judged.p50_mean, LATENCY, ""),
        ("the 99th percentile", judged.p99_mean, LATENCY, ""),
    ];
    for (what, error, goal, remark) in rows {
        findings.row(
            Claim::new("–", words(what))
                .unit("%")
                .at_most("", percent(goal))
                .ours(percent(error))
                .remark(remark)
                .if_it_differs("see the pictures for the jobs at which it does"),
        );
    }
}

/// Rows of the highest rate of every size.
fn saturated(findings: &mut Findings, name: &str, results: &[JobResult]) {
    for row in results.chunk_by(|a, b| a.measured.is_of_row(&b.measured)) {
        let rate =
            |one: &Delivered, result: &JobResult| one.iops * result.measured.bytes as f64 / 1e6;
        let best = |of: &dyn Fn(&JobResult) -> f64| row.iter().map(of).fold(0.0, f64::max);
        let theirs = best(&|result| rate(&result.measured.delivered[0], result));
        let ours = best(&|result| rate(&result.simulated[0], result));
        let measured = &row[0].measured;
        let words = format!("{} {} KiB", measured.workload, measured.bytes / 1024);
        let top = row.iter().find(|result| rate(&result.measured.delivered[0], result) == theirs);
        let claim = Claim::new("–", format!("{name}: {words}, highest rate at any depth"))
            .unit("MB/s")
            .within_share(theirs, RATE)
            .ours(ours)
            .if_it_differs("one constant each for all sizes: the drive treats this one otherwise");
        let fitted = top.is_some_and(|result| result.fitted);
        findings.row(if fitted { claim.given() } else { claim });
    }
}

/// A picture of the rates and one of the latencies of every row of depths.
pub(super) fn plots(findings: &mut Findings, name: &str, results: &[JobResult]) {
    for row in results.chunk_by(|a, b| a.measured.is_of_row(&b.measured)) {
        let MeasuredJob { workload, bytes, read_percent, .. } = &row[0].measured;
        let mix =
            if *workload == "randrw" { format!(", {read_percent} % reads") } else { "".into() };
        let title = format!("{name}: {workload} {} KiB{mix}", bytes / 1024);
        let points = |value: &dyn Fn(&Delivered) -> Option<f64>, ours: bool| {
            let one = |result: &JobResult| {
                let of = if ours { &result.simulated } else { &result.measured.delivered };
                Some((result.measured.depth as f64, value(&of[0])?))
            };
            row.iter().filter_map(one).collect::<Vec<_>>()
        };
        let both = |what: &str, value: &dyn Fn(&Delivered) -> Option<f64>| {
            [
                Curve::ours(&format!("{what} simulated"), points(value, true)),
                Curve::published(&format!("{what} measured"), points(value, false)),
            ]
        };
        let latencies = [50.0, 99.0]
            .map(|percent| both(&format!("p{percent:.0}"), &|one| one.percentile(percent)));
        findings.plot(Plot {
            title: title.clone(),
            caption: "Requests per second by requests outstanding.".to_owned(),
            x: Axis::logarithmic("Depth", ""),
            y: Axis::logarithmic("Rate", "1/s"),
            curves: both("", &|one| Some(one.iops)).into(),
        });
        findings.plot(Plot {
            title,
            caption: "Latency by requests outstanding.".to_owned(),
            x: Axis::logarithmic("Depth", ""),
            y: Axis::logarithmic("Latency", "us"),
            curves: latencies.concat(),
        });
    }
}

pub const ZN540: Experiment = Experiment {
    id: "ssd/wd-zn540",
    run: |runner| {
        const GRID: Grid = Grid {
            name: "WD Ultrastar DC ZN540",
            sources: &[
                ("nvme_grid", "zns-a lbaf2", "randread", "randread"),
                ("nvme_grid", "zns-a lbaf3nvme", "write", "write"),
            ],
            judged_only: Some(("writes below 8 KiB", |job| {
                job.workload == "write" && job.bytes < 8192
            })),
            mixes: Some("WD Ultrastar DC ZN540 1TB (zns-a)"),
        };
        calibrated(runner, &GRID)
    },
};

pub const S980_PRO: Experiment = Experiment {
    id: "ssd/samsung-980-pro",
    run: |runner| {
        const GRID: Grid = Grid {
            name: "Samsung 980 PRO",
            sources: &[("980pro_grid", "Samsung 980 PRO 1TB", "randread", "randread")],
            judged_only: None,
            mixes: None,
        };
        calibrated(runner, &GRID)
    },
};

pub const NVME_A: Experiment = Experiment {
    id: "ssd/nvme-a",
    run: |runner| {
        const GRID: Grid = Grid {
            name: "nvme-a (not named)",
            sources: &[
                ("nvme_grid", "nvme-a lbaf3", "write", "write"),
                ("nvme_grid", "nvme-a lbaf3", "writerand", "randwrite"),
            ],
            judged_only: Some(("random writes", |job| job.workload == "randwrite")),
            mixes: None,
        };
        calibrated(runner, &GRID)
    },
};

pub const NVME_B: Experiment = Experiment {
    id: "ssd/nvme-b",
    run: |runner| {
        const GRID: Grid = Grid {
            name: "nvme-b (not named)",
            sources: &[("nvme_grid", "nvme-b lbaf0", "write", "write")],
            judged_only: None,
            mixes: None,
        };
        calibrated(runner, &GRID)
    },
};
