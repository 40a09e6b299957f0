//! Drives that write as fast as they can: write amplification, and the rate of the host.

use super::drive::{Collector, Jobs, Load, Outcome, SaturatedDrive, Words};
use super::fit::{self, Fill, measured};
use super::tables::{self, MeasuredValue, median};
use super::{compared, worst};
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/micron-7450", run: micron_7450 };

/// The measured tables.
pub(super) struct Tables {
    pub fill: Vec<MeasuredValue>,
    pub skew: Vec<MeasuredValue>,
    pub streams: Vec<MeasuredValue>,
    pub course: Vec<tables::Course>,
}

impl Tables {
    pub fn read(runner: &Runner) -> Result<Self, ExperimentError> {
        Ok(Self {
            fill: tables::read(runner, "wa_fill")?,
            skew: tables::read(runner, "skew_throughput")?,
            streams: tables::read(runner, "wa_streams")?,
            course: tables::read(runner, "timecourse")?,
        })
    }

    /// The rate of `device` in its first run under `words` over the data written: drive writes and
    /// MB/s. Empty if there is no such run.
    pub fn course_of(&self, device: &str, words: &str) -> Vec<(f64, f64)> {
        let of = |row: &&tables::Course| row.device == device && row.workload == words;
        let run = self.course.iter().find(of).map(|row| &row.run);
        let points = self.course.iter().filter(of).filter(|row| Some(&row.run) == run);
        points.map(|row| (row.drive_writes, row.host_mb_s)).collect()
    }
}

/// A load that was measured: in words, what it is, for how many drive writes, and a figure.
pub(super) struct LoadSeries {
    pub words: String,
    pub load: Load,
    pub writes: f64,
    pub measured: f64,
}

impl LoadSeries {
    /// The streams, into regions that are overwritten without a trim.
    pub fn untrimmed(&self) -> Self {
        let load = match self.load {
            Load::Streams { active, region_gib, .. } => {
                Load::Streams { active, region_gib, trims: false }
            }
            load => load,
        };
        Self { words: format!("{}, not trimmed", self.words), load, ..*self }
    }
}

/// The values of `rows` by key, in the order of the keys' first appearance; repeats are one, by
/// their median.
fn grouped<'a, K: PartialEq>(
    rows: impl Iterator<Item = &'a MeasuredValue>,
    key: impl Fn(&MeasuredValue) -> Option<K>,
) -> Vec<(K, f64)> {
    let mut found: Vec<(K, Vec<f64>)> = Vec::new();
    for row in rows {
        let Some(key) = key(row) else { continue };
        match found.iter_mut().find(|it| it.0 == key) {
            Some((_, values)) => values.push(row.value),
            None => found.push((key, vec![row.value])),
        }
    }
    found.into_iter().map(|(key, values)| (key, median(&values))).collect()
}

/// The skewed loads of `device`.
pub(super) fn skewed(rows: &[MeasuredValue], device: &str) -> Vec<LoadSeries> {
    let rates = rows.iter().filter(|row| row.device == device && row.metric == "host write");
    let found = grouped(rates, |row| Some((row.workload.clone(), row.drive_writes()?)));
    let series = |((words, writes), measured): ((String, f64), f64)| {
        Some(LoadSeries { load: Load::of_words(&words)?, words, writes, measured })
    };
    found.into_iter().filter_map(series).collect()
}

/// Drive writes of the stream experiment.
const STREAM_WRITES: f64 = 4.0;

/// The streams of `device` with their `metric`.
pub(super) fn streams(rows: &[MeasuredValue], device: &str, metric: &str) -> Vec<LoadSeries> {
    let of = rows.iter().filter(|row| row.device == device && row.metric == metric);
    let series = |((active, region_gib), measured): ((u32, f64), f64)| LoadSeries {
        words: format!("{active} streams into regions of {region_gib:.2} GiB"),
        load: Load::Streams { active, region_gib, trims: true },
        writes: STREAM_WRITES,
        measured,
    };
    grouped(of, MeasuredValue::streams).into_iter().map(series).collect()
}

/// The claim of the rate of the host under `load`.
fn rate_claim(load: Load) -> Claim {
    Claim::of(match load {
        Load::Uniform => "ssd/rate-under-uniform-writes",
        Load::Zipf(_) => "ssd/rate-under-zipf-writes",
        Load::Hot { .. } => "ssd/rate-under-static-data",
        Load::Streams { .. } => "ssd/rate-under-streams",
    })
}

/// The precision to which the size of the flash is fitted, as a part of it.
const UNCERTAIN: f64 = 0.01;

/// Whether so much of the data is static that the rate jumps from one drive to a similar one.
fn jumps(load: Load) -> bool {
    matches!(load, Load::Hot { pages, writes } if pages <= 0.1 && writes == 1.0)
}

/// The rates under `one` with a little less and a little more flash, and `rate` with as much as
/// there is, as words.
fn interval(
    runner: &Runner,
    (name, drive): (&str, &SaturatedDrive),
    one: &LoadSeries,
    rate: f64,
) -> Result<String, ExperimentError> {
    let (mut low, mut high) = (rate, rate);
    for factor in [1.0 - UNCERTAIN, 1.0 + UNCERTAIN] {
        let drive = SaturatedDrive { hidden_gib: factor * drive.hidden_gib, ..*drive };
        let words = format!("{}, {factor} of the flash", one.words);
        let ran = drive.run(runner, name, &[(words, one.load, one.writes)])?;
        (low, high) = (low.min(ran[0].host_mb_s), high.max(ran[0].host_mb_s));
    }
    let percent = 100.0 * UNCERTAIN;
    Ok(format!("; {low:.0} to {high:.0} MB/s with up to {percent:.0} % less or more flash"))
}

/// Rows for `series` on `drive`: the rates of those in `fitted` are given.
pub(super) fn judge(
    runner: &Runner,
    findings: &mut Findings,
    (name, drive): (&str, &SaturatedDrive),
    series: &[LoadSeries],
    fitted: &dyn Fn(&LoadSeries) -> bool,
) -> Result<Vec<Outcome>, ExperimentError> {
    let load = |one: &LoadSeries| (one.words.clone(), one.load, one.writes);
    let outcomes = drive.run(runner, name, &series.iter().map(load).collect::<Vec<_>>())?;
    let uniform = series.iter().find(|one| one.load == Load::Uniform).map(|one| one.measured);
    let (mut errors, mut trivial) = (Vec::new(), Vec::new());
    for (one, outcome) in series.iter().zip(&outcomes) {
        let interval = match jumps(one.load) {
            true => interval(runner, (name, drive), one, outcome.host_mb_s)?,
            false => String::new(),
        };
        findings.row(
            rate_claim(one.load)
                .with("interval", interval)
                .with("name", name)
                .with("load", &one.words)
                .with("amplification", outcome.amplification)
                .published(one.measured)
                .given_if(fitted(one))
                .ours(outcome.host_mb_s),
        );
        if !fitted(one) {
            errors.push((outcome.host_mb_s / one.measured - 1.0).abs());
            trivial.extend(uniform.map(|uniform| (uniform / one.measured - 1.0).abs()));
        }
    }
    let mut remark = String::new();
    if !trivial.is_empty() {
        remark = format!(
            "; the rate of uniform writes instead would be off by {:.1} %, at worst {:.1} %",
            100.0 * median(&trivial),
            100.0 * worst(&trivial)
        );
    }
    if !errors.is_empty() {
        median_row(findings, &format!("{name}: median error of the rate"), &errors, &remark);
    }
    Ok(outcomes)
}

/// The row of the median of `errors`, of series that nothing was fitted to.
fn median_row(findings: &mut Findings, words: &str, errors: &[f64], remark: &str) {
    findings.row(
        Claim::of("ssd/median-error")
            .with("words", words)
            .with("count", errors.len())
            .with("worst", format!("{:.1}", 100.0 * worst(errors)))
            .with("remark", remark)
            .ours(100.0 * median(errors)),
    );
}

/// The rate of the host over the data written, measured and simulated.
pub(super) fn course_plots(
    findings: &mut Findings,
    tables: &Tables,
    device: &str,
    series: &[LoadSeries],
    outcomes: &[Outcome],
    wanted: &[&str],
) {
    for words in wanted {
        let Some(at) = series.iter().position(|one| one.words == *words) else { continue };
        let measured = tables.course_of(device, words);
        if measured.is_empty() {
            continue;
        }
        let curves = compared(outcomes[at].course.clone(), measured);
        findings.plot("ssd/course", &[("device", &device), ("words", words)], curves);
    }
}

pub(super) const MAX: &str = "Micron 7450 MAX 800GB";
pub(super) const PRO: &str = "Micron 7450 PRO 960GB";
const UNIFORM: &str = "uniform random write 4 KiB, 4 threads x QD128";
/// Streams that the size of blocks is fitted to: a region smaller than a block leaves parts of
/// blocks valid.
pub(super) const FITTED_STREAMS: [Load; 2] = [stream_into(8.0), stream_into(1.0)];

const fn stream_into(region_gib: f64) -> Load {
    Load::Streams { active: 1, region_gib, trims: true }
}

/// Fill levels that the drive is fitted to.
const FITTED_RANGES: [f64; 3] = [0.5, 0.8, 1.0];

/// Units of 4 KiB, as drives map them, in a page of the chip: 16 KiB, usual for TLC.
pub(super) const READ_PAGES: u32 = 4;

/// Sizes of blocks that are tried, in GiB.
const BLOCKS_GIB: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// The 7450 MAX with its constants, and by what its counter exceeds the pages programmed.
pub(super) fn fitted_max(
    runner: &Runner,
    tables: &Tables,
) -> Result<(SaturatedDrive, f64), ExperimentError> {
    let start = SaturatedDrive {
        user_gib: 745.21,
        hidden_gib: 1.4 * 745.21,
        block_gib: 1.0,
        program_us: 3.0,
        read_us: 2.0,
        read_pages: READ_PAGES,
        scale: 512.0,
        collector: Collector::Greedy,
    };
    let counted = streams(&tables.streams, MAX, "WA");
    let few: Vec<(Load, f64)> = counted
        .iter()
        .filter(|one| FITTED_STREAMS.contains(&one.load))
        .map(|one| (one.load, one.measured))
        .collect();
    let block_gib = fit::block_gib(runner, MAX, start, &BLOCKS_GIB, &few)?;
    let fill = |range: f64| Fill {
        range,
        amplification: at_range(&tables.fill, MAX, "WA", range),
        host_mb_s: at_range(&tables.fill, MAX, "host write", range),
    };
    fit::to_fills(runner, MAX, SaturatedDrive { block_gib, ..start }, &FITTED_RANGES.map(fill))
}

/// The 7450 PRO: the hardware of the MAX with another exported capacity.
pub(super) const fn pro(max: &SaturatedDrive) -> SaturatedDrive {
    SaturatedDrive { user_gib: 894.25, ..*max }
}

/// The `metric` of uniform writes to a share `range` of `device`.
pub(super) fn at_range(rows: &[MeasuredValue], device: &str, metric: &str, range: f64) -> f64 {
    measured(rows, |row| {
        let same = row.x.is_some_and(|x| (x - range).abs() < 0.005);
        same && row.device == device && row.metric == metric && row.workload == UNIFORM
    })
}

/// The fill levels at which `device` was measured.
fn ranges(rows: &[MeasuredValue], device: &str) -> Vec<f64> {
    let of = rows.iter().filter(|row| row.device == device && row.workload == UNIFORM);
    let mut found: Vec<f64> = of.filter_map(|row| row.x).collect();
    found.sort_by(f64::total_cmp);
    found.dedup_by(|a, b| (*a - *b).abs() < 0.005);
    found
}

/// Rows of write amplification, by the drive's counter, or of the rate where it has none.
fn fills(
    runner: &Runner,
    findings: &mut Findings,
    (name, drive, counter): (&str, &SaturatedDrive, f64),
    rows: &[MeasuredValue],
) -> Result<(), ExperimentError> {
    let ranges = ranges(rows, name);
    let job =
        |range: &f64| drive.job(&format!("{name}, range {range}"), Load::Uniform, *range, 4.0);
    let ran = runner.run(&ranges.iter().map(job).collect::<Vec<_>>())?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut counted_errors, mut rate_errors) = (Vec::new(), Vec::new());
    for (&range, ran) in ranges.iter().zip(&ran) {
        let outcome = drive.outcome(&ran.pictures);
        let is_fitted = name == MAX && FITTED_RANGES.iter().any(|it| (it - range).abs() < 0.005);
        let mut row = |id: &str, published: f64, ours: f64| {
            let claim = Claim::of(id).with("name", name);
            let claim = claim.with("percent", format!("{:.0}", 100.0 * range));
            findings.row(claim.published(published).given_if(is_fitted).ours(ours));
        };
        let counted = at_range(rows, name, "WA", range);
        let rate = at_range(rows, name, "host write", range);
        if counted.is_finite() {
            let simulated = counter * outcome.amplification;
            row("ssd/amplification-at-a-fill-level", counted, simulated);
            ours.push((range, simulated));
            theirs.push((range, counted));
            if !is_fitted {
                counted_errors.push((simulated / counted - 1.0).abs());
            }
        }
        if !is_fitted {
            rate_errors.push((outcome.host_mb_s / rate - 1.0).abs());
        }
        row("ssd/rate-at-a-fill-level", rate, outcome.host_mb_s);
    }
    let fill = |what: &str| format!("{name}: uniform writes by fill level, median error of {what}");
    if !counted_errors.is_empty() {
        median_row(findings, &fill("write amplification"), &counted_errors, "");
    }
    median_row(findings, &fill("the rate"), &rate_errors, "");
    if !ours.is_empty() {
        let curves = compared(ours, theirs);
        findings.plot("ssd/amplification-by-fill-level", &[("name", &name)], curves);
    }
    Ok(())
}

/// The constants of a fit, as a remark.
fn constants(drive: &SaturatedDrive) -> String {
    format!(
        "{:.0} GiB of flash in blocks of {} GiB; {:.3} us a program of 4 KiB, {:.3} us a read of \
         16 KiB",
        drive.hidden_gib, drive.block_gib, drive.program_us, drive.read_us
    )
}

fn micron_7450(runner: &Runner) -> Result<Findings, ExperimentError> {
    let tables = Tables::read(runner)?;
    let (max, counter) = fitted_max(runner, &tables)?;
    let mut findings = Findings::default();
    findings.row(Claim::of("ssd/constants-of-a-drive").with("name", MAX).remark(&format!(
        "{}; the counter exceeds the pages programmed by {:.1} %",
        constants(&max),
        100.0 * (counter - 1.0)
    )));
    fills(runner, &mut findings, (MAX, &max, counter), &tables.fill)?;
    let pro = pro(&max);
    fills(runner, &mut findings, (PRO, &pro, counter), &tables.fill)?;
    let is_uniform = |one: &LoadSeries| one.load == Load::Uniform;
    for (name, drive) in [(MAX, &max), (PRO, &pro)] {
        let skewed = skewed(&tables.skew, name);
        let nothing = |_: &LoadSeries| false;
        let fitted: &dyn Fn(&LoadSeries) -> bool = if name == MAX { &is_uniform } else { &nothing };
        let outcomes = judge(runner, &mut findings, (name, drive), &skewed, fitted)?;
        let wanted = [
            "zones-shuffle s0.95 f0.05 s0.05 f0.95",
            "zones-shuffle s0.6 f0 s0.4 f1",
            "zones-shuffle s0.8 f0 s0.2 f1",
        ];
        course_plots(&mut findings, &tables, name, &skewed, &outcomes, &wanted);
        let regions = streams(&tables.streams, name, "host write");
        // That regions are trimmed was seen in them.
        let fitted_stream = |_: &LoadSeries| name == MAX;
        judge(runner, &mut findings, (name, drive), &regions, &fitted_stream)?;
    }
    Ok(findings)
}
