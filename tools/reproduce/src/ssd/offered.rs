//! Latency against the offered rate: reads beside uniform writes on drives in the steady state.

use super::fit::solve;
use super::tables::{self, MeasuredValue, median};
use super::{median_drive, percent_off};
use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::Curve;
use serde::Deserialize;

pub const CM7R: Experiment = Experiment {
    id: "ssd/kioxia-cm7-r",
    run: |runner| judged_at_rates(runner, "ssd/kioxia-cm7-r"),
};

pub const P5520: Experiment = Experiment {
    id: "ssd/solidigm-p5520-rates",
    run: |runner| judged_at_rates(runner, "ssd/solidigm-p5520-rates"),
};

pub const MEDIAN: Experiment = Experiment {
    id: "ssd/median-drive",
    run: |runner| judged_at_rates(runner, "ssd/median-drive"),
};

pub const WD: Experiment = Experiment {
    id: "ssd/wd-data-centre-rates",
    run: |runner| judged_at_rates(runner, "ssd/wd-data-centre-rates"),
};

/// The measured drives of an experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// A piece that is fitted, and others that are judged only.
    pieces: Vec<String>,
    /// Whether its writes are judged, and not its reads alone.
    judges_writes: bool,
    /// The constants before the fit.
    start: LatencyConstants,
}

/// Offered rates that constants are fitted to, beside the highest.
const LOW: f64 = 10_000.0;
const MIDDLE: f64 = 40_000.0;
/// Offered rates that the pauses of a drive are fitted to: where its writes begin to wait, well
/// above, and where they wait no longer at higher rates.
const WAITING: f64 = 90_000.0;
const LONGER: f64 = 130_000.0;
const LONGEST: f64 = 250_000.0;
/// The thread whose latencies are measured: requests per second, half of them reads.
pub(super) const THREAD: f64 = 10_000.0;
/// Share of reads in the other threads.
pub(super) const READ_SHARE: f64 = 0.01;
/// Requests per second that are offered beyond the nominal rate.
pub(super) const ABOVE_NOMINAL: f64 = 5_000.0;
/// Reads of that thread in a run that is fitted to a percentile, to one of the tail, and in one
/// that is judged.
const FITTED_READS: f64 = 8_000.0;
const TAIL_READS: f64 = 20_000.0;
const JUDGED_READS: f64 = 20_000.0;
/// Requests offered to a saturated drive, as a part of those it delivers, and those it completes.
const SATURATING: f64 = 1.5;
const SATURATED_REQUESTS: f64 = 250_000.0;
/// Requests that the other six threads have outstanding at a saturated drive.
const OUTSTANDING: f64 = 384.0;
/// Longest programs and erases that are tried.
const LONGEST_PROGRAM_US: f64 = 1_500.0;
const LONGEST_ERASE_US: f64 = 8_000.0;
/// Time to suspend a program, and how often reads may: more often than it has points for.
const SUSPEND_US: f64 = 5.0;
const SUSPENDS_MAX: u32 = 1_000;
/// Writes whose percentile exceeds this, in microseconds, wait; others take the host's time.
const WAITS_US: f64 = 100.0;
/// Requests before those that count, in the steady state.
const WARMUP: f64 = 30_000.0;
/// A drive that delivers less of what is offered is saturated.
const DELIVERED: f64 = 0.98;
/// Rounds in which the constants are fitted in turn.
const ROUNDS: u32 = 2;

/// Percentiles that are judged, and their claims.
const PERCENTILES: [(&str, &str); 3] = [
    ("p50", "ssd/latency-at-rates"),
    ("p99", "ssd/latency-at-rates"),
    ("p99.9", "ssd/tail-latency-at-rates"),
];

/// One offered rate.
pub(super) struct OfferedRate {
    pub offered: f64,
    /// Delivered, per second.
    reads: f64,
    writes: f64,
}

impl OfferedRate {
    pub fn total(&self) -> f64 {
        self.reads + self.writes
    }

    fn is_below_the_knee(&self) -> bool {
        self.total() > DELIVERED * (self.offered + ABOVE_NOMINAL)
    }

    /// The mean latency of the requests of the other threads, which are all outstanding when the
    /// drive is saturated, in microseconds.
    fn others_us(&self) -> f64 {
        let thread = (self.reads - READ_SHARE * self.total()) / (0.5 - READ_SHARE);
        1e6 * OUTSTANDING / (self.total() - thread)
    }
}

/// The measurements of one piece.
pub(super) struct Ladder<'a> {
    name: &'a str,
    rows: Vec<&'a MeasuredValue>,
    pub rates: Vec<OfferedRate>,
}

impl<'a> Ladder<'a> {
    pub fn new(name: &'a str, all: &'a [MeasuredValue]) -> Self {
        let rows: Vec<&MeasuredValue> = all.iter().filter(|row| row.device == name).collect();
        let mut offered: Vec<f64> = rows.iter().filter_map(|row| row.x).collect();
        offered.sort_by(f64::total_cmp);
        offered.dedup();
        let mut ladder = Self { name, rows, rates: Vec::new() };
        let rate = |offered: f64| OfferedRate {
            offered,
            reads: ladder.value(offered, "achieved reads"),
            writes: ladder.value(offered, "achieved writes"),
        };
        ladder.rates = offered.into_iter().map(rate).collect();
        ladder
    }

    pub fn value(&self, offered: f64, metric: &str) -> f64 {
        let of = |row: &&&MeasuredValue| row.x == Some(offered) && row.metric == metric;
        median(&self.rows.iter().filter(of).map(|row| row.value).collect::<Vec<_>>())
    }

    fn at(&self, offered: f64) -> Result<&OfferedRate, ExperimentError> {
        let found = self.rates.iter().find(|rate| rate.offered == offered);
        let missing = || format!("nothing measured at {offered}/s");
        found.ok_or_else(|| ExperimentError::of(self.name, missing()))
    }

    /// The lowest rate at which the drive is saturated.
    fn saturated(&self) -> Result<&OfferedRate, ExperimentError> {
        let found = self.rates.iter().find(|rate| !rate.is_below_the_knee());
        found.ok_or_else(|| ExperimentError::of(self.name, "never saturated"))
    }
}

/// The constants of a drive.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct LatencyConstants {
    dies_per_channel: u32,
    /// Commands that the drive executes at a time, while others wait in order of arrival; all of
    /// them if `None`.
    commands: Option<u32>,
    /// Time until a write is in the buffer, less its transfer.
    write_us: f64,
    read_us: f64,
    program_us: f64,
    /// Suspension of programs and erases by reads, which wait for the end of both if `None`.
    suspension: Option<Suspension>,
    erase_us: f64,
    over_provisioning: f64,
    pauses: Option<Pauses>,
}

/// The time from one point at which reads can suspend a program to the next, and the time to
/// suspend an erase. They are fitted instead of the times of both, which are given.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suspension {
    interval_us: f64,
    erase_us: f64,
}

/// Pauses in which the write buffer frees no entries: its size, the time and the interval of
/// pauses, and how long it may be full in one.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pauses {
    buffer_kib: f64,
    time_ms: f64,
    interval_ms: f64,
    full_ms: f64,
}

impl LatencyConstants {
    /// `rate` offered, until the thread that is measured has done so many reads.
    fn job(&self, name: &str, rate: &OfferedRate, reads: f64) -> Job {
        let seconds = WARMUP / rate.total() + 2.0 * reads / THREAD;
        self.offered(name, rate.total(), seconds)
    }

    /// More than the drive delivers, as measured at `rate`, up to the last arrival.
    fn saturating(&self, name: &str, rate: &OfferedRate) -> Job {
        let seconds = (WARMUP + SATURATED_REQUESTS) / rate.total();
        self.offered(name, SATURATING * rate.total(), seconds).set("host.end", "\"last-arrival\"")
    }

    /// `rate` requests per second for so long.
    fn offered(&self, name: &str, rate: f64, seconds: f64) -> Job {
        let ssd = |key: &str| format!("component.ssd.{key}");
        let time = |us: f64| format!("\"{us:.2}us\"");
        let mean = 1e3 / (rate - THREAD);
        let job = Job::paper("ssd/offered.toml")
            .named(format!("{name}, {rate:.0}/s"))
            .in_full()
            .set("run.warmup_requests", WARMUP)
            .set("workload.latency.generator.duration", time(1e6 * seconds))
            .set("workload.background.generator.duration", time(1e6 * seconds))
            .set(
                "workload.background.generator.interarrival_ms",
                format!("{{ kind = \"exponential\", mean = {mean:.7} }}"),
            )
            .set(&ssd("dies_per_channel"), self.dies_per_channel)
            .set(&ssd("read_time"), time(self.read_us))
            .set(&ssd("program_time"), time(self.program_us))
            .set(&ssd("erase_time"), time(self.erase_us))
            .set(&ssd("controller.write_overhead"), time(self.write_us))
            .set(&ssd("over_provisioning"), self.over_provisioning);
        let job = match self.commands {
            Some(commands) => job
                .set("component.commands.kind", "\"io-queue\"")
                .set("component.commands.device", "\"ssd\"")
                .set("component.commands.device_queue_depth", commands),
            None => job,
        };
        let job = match self.suspension {
            Some(Suspension { interval_us, erase_us }) => job
                .set(&ssd("timing.program_suspend_time"), time(SUSPEND_US))
                .set(&ssd("timing.program_suspend_interval"), time(interval_us))
                .set(&ssd("timing.erase_suspend_time"), time(erase_us))
                .set(&ssd("timing.suspends_max"), SUSPENDS_MAX),
            None => job,
        };
        let Some(pauses) = self.pauses else { return job };
        let Pauses { buffer_kib, time_ms, interval_ms, full_ms } = pauses;
        job.set(&ssd("timing.write_buffer"), format!("\"{buffer_kib:.0}KiB\""))
            .set(&ssd("timing.buffer_pause_time"), time(1e3 * time_ms))
            .set(&ssd("timing.buffer_pause_interval"), time(1e3 * interval_ms))
            .set(&ssd("timing.buffer_pause_full_max"), time(1e3 * full_ms))
    }

    /// These constants with another time that reads wait for programs.
    fn with_programs(&self, us: f64) -> Self {
        match self.suspension {
            Some(at) => Self { suspension: Some(Suspension { interval_us: us, ..at }), ..*self },
            None => Self { program_us: us, ..*self },
        }
    }

    /// These constants with another time that reads wait for erases.
    fn with_erases(&self, us: f64) -> Self {
        match self.suspension {
            Some(at) => Self { suspension: Some(Suspension { erase_us: us, ..at }), ..*self },
            None => Self { erase_us: us, ..*self },
        }
    }

    /// These constants with other pauses.
    fn with(&self, pauses: Pauses) -> Self {
        Self { pauses: Some(pauses), ..*self }
    }
}

/// A percentile of the reads or writes of the thread that is measured, in microseconds.
fn percentile(ran: &JobOutput, kind: &str, percentile: &str) -> f64 {
    let Some(thread) = ran.tenant("latency") else { return f64::NAN };
    let latency = &thread.latency_ns;
    let of = if kind == "read" { &latency.read } else { &latency.write };
    let ns = match percentile {
        "p50" => of.p50,
        "p95" => of.p95,
        "p99" => of.p99,
        _ => of.p999,
    };
    ns.map_or(f64::NAN, |ns| ns as f64 / 1e3)
}

/// The requests per second delivered.
fn delivered(ran: &JobOutput) -> f64 {
    ran.results.throughput.iops.unwrap_or(f64::NAN)
}

/// Reads by their median at the lowest rate, programs and erases by how long reads wait at a middle
/// rate, over-provisioning by the saturated rate.
fn fitted(
    runner: &Runner,
    ladder: &Ladder<'_>,
    mut found: LatencyConstants,
) -> Result<LatencyConstants, ExperimentError> {
    let (low, middle, saturated) = (ladder.at(LOW)?, ladder.at(MIDDLE)?, ladder.saturated()?);
    let read = |with: LatencyConstants, rate: &OfferedRate, which: &str| {
        let reads = if which == "p99.9" { TAIL_READS } else { FITTED_READS };
        let ran = runner.run(&[with.job(ladder.name, rate, reads)])?;
        Ok(percentile(&ran[0], "read", which))
    };
    let wanted =
        |rate: &OfferedRate, which: &str| ladder.value(rate.offered, &format!("read {which}"));
    let name = |constant: &str| format!("{}: {constant}", ladder.name);
    found.read_us = solve(&name("read time"), (20.0, 120.0), wanted(low, "p50"), |read_us| {
        read(LatencyConstants { read_us, ..found }, low, "p50")
    })?;
    // Reads that suspend an operation wait for less than all of it.
    let (program_limit, erase_limit) = match found.suspension {
        Some(_) => (found.program_us, found.erase_us),
        None => (LONGEST_PROGRAM_US, LONGEST_ERASE_US),
    };
    for _ in 0..ROUNDS {
        let (range, target) = ((100.0, program_limit), wanted(middle, "p99"));
        let wait = solve(&name("wait for programs"), range, target, |us| {
            read(found.with_programs(us), middle, "p99")
        })?;
        found = found.with_programs(wait);
        let (range, target) = ((200.0, erase_limit), wanted(middle, "p99.9"));
        let wait = solve(&name("wait for erases"), range, target, |us| {
            read(found.with_erases(us), middle, "p99.9")
        })?;
        found = found.with_erases(wait);
        found.over_provisioning = solve(
            &name("over-provisioning"),
            (0.12, 0.8),
            saturated.total(),
            |over_provisioning| {
                let with = LatencyConstants { over_provisioning, ..found };
                Ok(delivered(&runner.run(&[with.saturating(ladder.name, saturated)])?[0]))
            },
        )?;
        found.pauses = match found.pauses {
            Some(pauses) => Some(fitted_pauses(runner, ladder, (found, pauses))?),
            None => None,
        };
    }
    Ok(found)
}

/// The buffer by how much longer writes wait at the higher of two rates, the length of pauses by
/// how long they wait there, the interval by how many wait, and how long a full buffer makes them
/// wait by those at a rate at which it always does.
fn fitted_pauses(
    runner: &Runner,
    ladder: &Ladder<'_>,
    (others, mut found): (LatencyConstants, Pauses),
) -> Result<Pauses, ExperimentError> {
    let (waiting, longer, longest) = (ladder.at(WAITING)?, ladder.at(LONGER)?, ladder.at(LONGEST)?);
    let write = |pauses: Pauses, rate: &OfferedRate, which: &str| {
        let ran = runner.run(&[others.with(pauses).job(ladder.name, rate, FITTED_READS)])?;
        Ok(percentile(&ran[0], "write", which))
    };
    let wanted =
        |rate: &OfferedRate, which: &str| ladder.value(rate.offered, &format!("write {which}"));
    // Writes wait from when the buffer is full to the end of the pause: for the pause less the time
    // in which they fill the buffer.
    let later_us = wanted(longer, "p99") - wanted(waiting, "p99");
    let pages = later_us / (1e6 / waiting.writes - 1e6 / longer.writes);
    found.buffer_kib = 4.0 * pages;
    let range = (1.05 * found.full_ms, 20.0);
    found.time_ms = solve("time of a pause", range, wanted(longer, "p99"), |time_ms| {
        write(Pauses { time_ms, ..found }, longer, "p99")
    })?;
    found.interval_ms =
        solve("interval of pauses", (22.0, 100.0), wanted(longer, "p95"), |interval_ms| {
            write(Pauses { interval_ms, ..found }, longer, "p95")
        })?;
    let range = (3.0, 0.98 * found.time_ms);
    found.full_ms = solve("wait for a full buffer", range, wanted(longest, "p99"), |full_ms| {
        write(Pauses { full_ms, ..found }, longest, "p99")
    })?;
    Ok(found)
}

fn judged_at_rates(runner: &Runner, id: &str) -> Result<Findings, ExperimentError> {
    let Parameters { pieces, judges_writes, start } = parameters(id);
    let kinds: &[&str] = if judges_writes { &["read", "write"] } else { &["read"] };
    let mut rows: Vec<MeasuredValue> = tables::read(runner, "latency_rate")?;
    tables::name_percentiles(&mut rows);
    if pieces.iter().any(|name| name == median_drive::NAME) {
        rows = median_drive::rows(&rows);
    }
    let ladders: Vec<Ladder<'_>> = pieces.iter().map(|name| Ladder::new(name, &rows)).collect();
    let constants = fitted(runner, &ladders[0], start)?;
    let mut findings = Findings::default();
    let used: &[f64] = match start.pauses.is_some() {
        true => &[LOW, MIDDLE, WAITING, LONGER, LONGEST],
        false => &[LOW, MIDDLE],
    };
    for (at, ladder) in ladders.iter().enumerate() {
        let is_fitted = at == 0;
        let used = if is_fitted { used } else { &[] };
        saturated(runner, &mut findings, (ladder, is_fitted), constants)?;
        let below: Vec<&OfferedRate> =
            ladder.rates.iter().filter(|rate| rate.is_below_the_knee()).collect();
        let job = |rate: &&OfferedRate| constants.job(ladder.name, rate, JUDGED_READS);
        let ran = runner.run(&below.iter().map(job).collect::<Vec<_>>())?;
        for kind in kinds {
            percentiles(&mut findings, (ladder, used), kind, (&below, &ran));
        }
    }
    Ok(findings)
}

/// The rows of the saturated drive: its rate, with the constants, and how long reads take beside
/// the writes that wait.
fn saturated(
    runner: &Runner,
    findings: &mut Findings,
    (ladder, is_fitted): (&Ladder<'_>, bool),
    with: LatencyConstants,
) -> Result<(), ExperimentError> {
    let saturated = ladder.saturated()?;
    let pauses = with.pauses.map_or(String::new(), |it| {
        let Pauses { buffer_kib, time_ms, interval_ms, full_ms } = it;
        format!(
            "; buffer {buffer_kib:.0} KiB, pauses of {time_ms:.2} of {interval_ms:.1} ms, of which \
             it is full for {full_ms:.2} ms at most"
        )
    });
    let suspended = with.suspension.map_or(String::new(), |it| {
        let Suspension { interval_us, erase_us } = it;
        format!(
            "; reads suspend programs every {interval_us:.0} us, erases within {erase_us:.0} us"
        )
    });
    let ran = runner.run(&[with.saturating(ladder.name, saturated)])?;
    let claim = Claim::of("ssd/rate-when-saturated")
        .with("name", ladder.name)
        .published(saturated.total())
        .ours(delivered(&ran[0]))
        .with("dies", 16 * with.dies_per_channel)
        .with("suspended", suspended)
        .with("pauses", pauses)
        .with_figures(&[("read_us", with.read_us), ("program_us", with.program_us)])
        .with_figures(&[("erase_us", with.erase_us), ("spare", with.over_provisioning)]);
    findings.row(claim.given_if(is_fitted));
    for which in ["p50", "p99"] {
        // The queue of commands was chosen after a look at these rows.
        let is_known = with.commands.is_some();
        findings.row(
            Claim::of("ssd/reads-when-saturated")
                .with("name", ladder.name)
                .with("which", which)
                .with("others", format!("{:.0}", saturated.others_us()))
                .published(ladder.value(saturated.offered, &format!("read {which}")))
                .given_if(is_known)
                .ours(percentile(&ran[0], "read", which)),
        );
    }
    Ok(())
}

/// One percentile at one offered rate.
struct RatePoint {
    offered: f64,
    ours: f64,
    theirs: f64,
}

/// Rows and a picture of the percentiles of reads or writes below the knee.
fn percentiles(
    findings: &mut Findings,
    (ladder, fitted): (&Ladder<'_>, &[f64]),
    kind: &str,
    (below, ran): (&[&OfferedRate], &[JobOutput]),
) {
    let mut curves = Vec::new();
    for (which, id) in PERCENTILES {
        let metric = format!("{kind} {which}");
        let point = |(rate, ran): (&&OfferedRate, &JobOutput)| RatePoint {
            offered: rate.offered,
            ours: percentile(ran, kind, which),
            theirs: ladder.value(rate.offered, &metric),
        };
        let points: Vec<RatePoint> = below.iter().zip(ran).map(point).collect();
        let unloaded = points.first().map_or(f64::NAN, |point| point.theirs);
        let judged: Vec<&RatePoint> =
            points.iter().filter(|point| !fitted.contains(&point.offered)).collect();
        let name = format!("{}: {metric}", ladder.name);
        findings.row(mean_error(id, &name, &judged, unloaded));
        let waiting: Vec<&RatePoint> =
            judged.iter().copied().filter(|point| point.theirs > WAITS_US).collect();
        if kind == "write" && !waiting.is_empty() && waiting.len() < judged.len() {
            let name = format!("{name} where it is above {WAITS_US:.0} us,");
            findings.row(mean_error(id, &name, &waiting, unloaded));
        }
        let curve = |of: &dyn Fn(&RatePoint) -> f64| {
            points.iter().map(|point| (point.offered / 1e3, of(point))).collect::<Vec<_>>()
        };
        curves.push(Curve::ours(&format!("{which} simulated"), curve(&|point| point.ours)));
        curves.push(Curve::published(&format!("{which} measured"), curve(&|point| point.theirs)));
    }
    let values: [(&str, &dyn std::fmt::Display); 2] = [("name", &ladder.name), ("kind", &kind)];
    findings.plot("ssd/latency-by-offered-rate", &values, curves);
}

/// The row of the mean error of `judged`, beside that of one value for all rates.
fn mean_error(id: &str, name: &str, judged: &[&RatePoint], unloaded: f64) -> Claim {
    let off = |of: &dyn Fn(&RatePoint) -> f64| {
        percent_off(judged.iter().map(|point| of(point) / point.theirs))
    };
    Claim::of(id)
        .with("name", name)
        .with("rates", judged.len())
        .with("low", LOW)
        .with("unloaded", off(&|_| unloaded))
        .ours(off(&|point| point.ours))
}
