//! Drives whose collector separates static data, and drives that are predicted from their data
//! sheet and their uniform writes alone.
//!
//! Two kinds of collector show in the measurements: with a growing share of static data some drives
//! become slower, as a greedy collector does, and others faster, as one that prefers old blocks.

use super::drive::{Collector, Jobs, Load, Outcome, SaturatedDrive, simulated_us, whole_copy_us};
use super::fit::{self, page_us};
use super::saturated::{
    FITTED_STREAMS, LoadSeries, READ_PAGES, Tables, course_plots, fitted_max, judge, skewed,
    streams,
};
use super::tables::{self, MeasuredValue};
use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use serde::Deserialize;

pub const P5520: Experiment = Experiment { id: "ssd/solidigm-p5520", run: p5520 };
pub const LEFT_OUT: Experiment = Experiment { id: "ssd/left-out", run: left_out };

const P5520_NAME: &str = "Solidigm D7-P5520 1.92TB #1";
/// The static data that the collector of the P5520 is fitted to: 60 % of its pages.
const FITTED_STATIC: Load = Load::Hot { pages: 0.4, writes: 1.0 };
/// The sequential fill in its tables.
const SEQUENTIAL: &str = "sequential-noshuffle write 524288 B";
/// The uniform writes in its tables.
const UNIFORM: &str = "uniform write 4096 B";
/// Sizes of blocks that are tried, in GiB. What decides between them are two runs of one stream, of
/// which that into 1 GiB was measured six days before that into 8 GiB: the drive was in unlike
/// states, so the size is uncertain.
const BLOCKS_GIB: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Hidden capacities that are tried, as parts of the exported one.
const HIDDEN: (f64, f64) = (1.05, 1.6);
/// Numbers of blocks drawn for a victim that are tried.
const DRAWN: [u32; 5] = [3, 4, 5, 6, 8];
/// Sizes of blocks that are tried on a drive left out, in those that the fitted drive of its kind
/// suggests.
const BLOCK_FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// The load that decides between them: the hottest pages are a few blocks.
const STRONG_SKEW: Load = Load::Zipf(1.0);
/// Powers of the age that are tried: beyond, the rate falls again.
const EXPONENTS: (f64, f64) = (0.0, 0.5);
/// Drive writes of uniform writes until their rate is constant.
const UNIFORM_WRITES: f64 = 3.0;
/// Streams of the P5520 in the run that ended after 1.13 drive writes; all others went on to 4.
const SHORT_RUN: Load = Load::Streams { active: 32, region_gib: 8.0, trims: true };
/// Scale of these drives: so many times smaller.
const SCALE: f64 = 2048.0;

/// The drives left out of all fitting.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    sheets: Vec<Sheet>,
}

/// A drive as its data sheet and the kind of its collector describe it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    name: String,
    user_gib: f64,
    /// Rated sequential writes, MB/s.
    write_mb_s: f64,
    /// Whether it becomes faster with static data, as the P5520.
    separates: bool,
    /// The piece of the same drive whose strongest skew its blocks are fitted to in a second model.
    blocks_of: Option<String>,
    /// Whether one request of 512 KiB at a time, as its streams were measured, takes longer than
    /// its flash: then they do not show write amplification.
    is_stream_bound: bool,
}

/// The outcome of `drive` under `load`.
fn steady(
    runner: &Runner,
    name: &str,
    drive: &SaturatedDrive,
    (load, writes): (Load, f64),
) -> Result<Outcome, ExperimentError> {
    let SaturatedDrive { user_gib, hidden_gib, collector, .. } = drive;
    let words = format!("fit, {:.3} times the capacity, {collector:?}", hidden_gib / user_gib);
    let mut ran = drive.run(runner, name, &[(words, load, writes)])?;
    Ok(ran.remove(0))
}

fn with_hidden(drive: &SaturatedDrive, hidden: f64) -> SaturatedDrive {
    SaturatedDrive { hidden_gib: hidden * drive.user_gib, ..*drive }
}

/// The drive with the read time that gives uniform writes `rate`.
fn with_reads(
    runner: &Runner,
    name: &str,
    drive: &SaturatedDrive,
    rate: f64,
) -> Result<SaturatedDrive, ExperimentError> {
    let ran = steady(runner, name, drive, (Load::Uniform, UNIFORM_WRITES))?;
    let programs_us = ran.amplification * simulated_us(drive.program_us);
    let read_us = (page_us(rate) - programs_us) / ran.reads(drive);
    fit::with_times(name, drive, (drive.program_us, read_us))
}

fn uniform(series: &[LoadSeries]) -> f64 {
    let found = series.iter().find(|one| one.load == Load::Uniform);
    found.map_or(f64::NAN, |one| one.measured)
}

/// The `metric` of the only row of `workload` on a drive in the state `before`.
fn initial(rows: &[MeasuredValue], workload: &str, before: &str, metric: &str) -> f64 {
    fit::measured(rows, |row| {
        row.workload == workload && row.condition.contains(before) && row.metric == metric
    })
}

/// The skewed loads of the P5520. The rate of uniform writes is the median of four runs: three from
/// different states, and one five months later with the skewed loads.
fn p5520_series(counted: &[MeasuredValue], tables: &Tables) -> Vec<LoadSeries> {
    let mut series = skewed(&tables.skew, P5520_NAME);
    let of = |row: &&MeasuredValue| row.workload == UNIFORM && row.metric == "host write";
    let rates = counted.iter().filter(of).map(|row| row.value).chain([uniform(&series)]);
    let rates: Vec<f64> = rates.collect();
    for one in series.iter_mut().filter(|one| one.load == Load::Uniform) {
        one.words = format!("uniform, median of {} runs", rates.len());
        one.measured = tables::median(&rates);
    }
    series
}

/// The P5520: programs and reads by the rates without and with garbage collection, blocks by two
/// sequential streams, hidden capacity by the amplification of uniform writes, the power of the age
/// by one load with static data.
fn fitted_p5520(runner: &Runner, tables: &Tables) -> Result<SaturatedDrive, ExperimentError> {
    let counted: Vec<MeasuredValue> = tables::read(runner, "wa_init")?;
    let skewed = &p5520_series(&counted, tables);
    let filled = "init07; state before: sanitized + one seq fill";
    let sanitized = "init07; state before: sanitized;";
    let counter = initial(&counted, SEQUENTIAL, sanitized, "WA");
    let amplification = initial(&counted, UNIFORM, filled, "WA") / counter;
    let fresh = initial(&counted, "sequential-shuffle write 4096 B", sanitized, "host write");
    let program_us = page_us(fresh);
    let still = skewed.iter().find(|one| one.load == FITTED_STATIC);
    let still =
        still.ok_or_else(|| ExperimentError::of(P5520_NAME, "no load with 60 % static data"))?;
    let mut drive = SaturatedDrive {
        user_gib: 1788.5,
        hidden_gib: 1.2 * 1788.5,
        block_gib: 1.0,
        program_us,
        read_us: 1.0,
        read_pages: READ_PAGES,
        scale: SCALE,
        collector: Collector::CostBenefit(0.25),
    };
    let hidden = |drive: &SaturatedDrive| {
        let name = format!("{P5520_NAME}: hidden capacity");
        fit::solve(&name, HIDDEN, amplification, |hidden| {
            let load = (Load::Uniform, UNIFORM_WRITES);
            Ok(steady(runner, P5520_NAME, &with_hidden(drive, hidden), load)?.amplification)
        })
    };
    let settle = |drive: &SaturatedDrive| {
        let drive = with_hidden(drive, hidden(drive)?);
        with_reads(runner, P5520_NAME, &drive, uniform(skewed))
    };
    drive = settle(&drive)?;
    let copy_us = whole_copy_us(&drive);
    let sequential = initial(&counted, SEQUENTIAL, sanitized, "host write");
    let few: Vec<(Load, f64)> = streams(&tables.streams, P5520_NAME, "host write")
        .iter()
        .filter(|one| FITTED_STREAMS.contains(&one.load))
        .map(|one| (one.load, 1.0 + (page_us(one.measured) - page_us(sequential)) / copy_us))
        .collect();
    drive.block_gib = fit::block_gib(runner, P5520_NAME, drive, &BLOCKS_GIB, &few)?;
    drive = settle(&drive)?;
    let name = format!("{P5520_NAME}: power of the age");
    let exponent = fit::solve(&name, EXPONENTS, still.measured, |exponent| {
        let drive = SaturatedDrive { collector: Collector::CostBenefit(exponent), ..drive };
        Ok(steady(runner, P5520_NAME, &drive, (still.load, still.writes))?.host_mb_s)
    })?;
    drive.collector = Collector::CostBenefit(exponent);
    // Uniform writes hardly depend on the power of the age.
    settle(&drive)
}

/// The row of the constants of a drive.
fn constants(findings: &mut Findings, name: &str, drive: &SaturatedDrive, words: &str) {
    let collector = match drive.collector {
        Collector::Greedy => "greedy".to_owned(),
        Collector::CostBenefit(exponent) => format!("cost-benefit with age to the {exponent:.2}"),
        Collector::Choices(drawn) => format!("the fewest valid pages of {drawn} blocks drawn"),
    };
    findings.row(Claim::of("ssd/constants-of-a-drive").with("name", name).remark(&format!(
        "{words}: {:.0} GiB of flash in blocks of {:.1} GiB; {:.3} us a program of 4 KiB, \
                 {:.3} us a read of 16 KiB; collector {collector}",
        drive.hidden_gib, drive.block_gib, drive.program_us, drive.read_us
    )));
}

/// Loads whose course is drawn.
const PICTURED: [&str; 3] =
    ["zones-shuffle s0.4 f0 s0.6 f1", "zones-shuffle s0.8 f0 s0.2 f1", "zipf-shuffle 1"];

/// Whether the rate under this load went into the drive: as a constant, or because it was seen
/// there that the drive becomes faster or slower with static data.
fn is_known(one: &LoadSeries) -> bool {
    [Load::Uniform, FITTED_STATIC].contains(&one.load)
}

fn p5520(runner: &Runner) -> Result<Findings, ExperimentError> {
    let tables = Tables::read(runner)?;
    let series = p5520_series(&tables::read(runner, "wa_init")?, &tables);
    let drive = fitted_p5520(runner, &tables)?;
    let mut findings = Findings::default();
    constants(&mut findings, P5520_NAME, &drive, "fitted");
    let outcomes = judge(runner, &mut findings, (P5520_NAME, &drive), &series, &is_known)?;
    course_plots(&mut findings, &tables, P5520_NAME, &series, &outcomes, &PICTURED);
    let regions = streams(&tables.streams, P5520_NAME, "host write");
    let (short, regions): (Vec<LoadSeries>, Vec<LoadSeries>) =
        regions.into_iter().partition(|one| one.load == SHORT_RUN);
    let is_fitted = |one: &LoadSeries| FITTED_STREAMS.contains(&one.load);
    judge(runner, &mut findings, (P5520_NAME, &drive), &regions, &is_fitted)?;
    let reason =
        "the run ended after 1.13 drive writes, and what counts is simulated after 2.4 to 4";
    not_comparable(&mut findings, P5520_NAME, &short, reason);
    Ok(findings)
}

/// The drive of `sheet`: a read takes as many times a program as on `like`, whose collector
/// and number of blocks it has, and the rate of uniform writes gives the hidden capacity.
fn predicted(
    runner: &Runner,
    sheet: &Sheet,
    like: &SaturatedDrive,
    series: &[LoadSeries],
) -> Result<SaturatedDrive, ExperimentError> {
    let program_us = page_us(sheet.write_mb_s);
    let drive = SaturatedDrive {
        user_gib: sheet.user_gib,
        hidden_gib: HIDDEN.0 * sheet.user_gib,
        block_gib: like.block_gib * sheet.user_gib / like.user_gib,
        program_us,
        read_us: program_us * like.read_us / like.program_us,
        read_pages: like.read_pages,
        scale: SCALE,
        collector: like.collector,
    };
    to_uniform(runner, sheet, &drive, series)
}

/// `drive` with the hidden capacity that gives the rate of uniform writes.
fn to_uniform(
    runner: &Runner,
    sheet: &Sheet,
    drive: &SaturatedDrive,
    series: &[LoadSeries],
) -> Result<SaturatedDrive, ExperimentError> {
    let name = format!("{}: hidden capacity", sheet.name);
    let hidden = fit::solve(&name, HIDDEN, uniform(series), |hidden| {
        let load = (Load::Uniform, UNIFORM_WRITES);
        Ok(steady(runner, &sheet.name, &with_hidden(drive, hidden), load)?.host_mb_s)
    })?;
    Ok(with_hidden(drive, hidden))
}

/// By how many times the blocks of `drive` are to be larger to meet the strongest skew of `series`
/// best, and the drive with such blocks.
fn with_fitted_blocks(
    runner: &Runner,
    sheet: &Sheet,
    drive: &SaturatedDrive,
    series: &[LoadSeries],
) -> Result<(f64, SaturatedDrive), ExperimentError> {
    let strong = series.iter().find(|one| one.load == STRONG_SKEW);
    let strong = strong.ok_or_else(|| ExperimentError::of(&sheet.name, "no strong skew"))?;
    let mut best = (f64::INFINITY, 1.0, *drive);
    for factor in BLOCK_FACTORS {
        let drive = with_blocks(runner, sheet, drive, (factor, series))?;
        let ran = steady(runner, &sheet.name, &drive, (strong.load, strong.writes))?;
        let error = libm::log(ran.host_mb_s / strong.measured).abs();
        if error < best.0 {
            best = (error, factor, drive);
        }
    }
    Ok((best.1, best.2))
}

/// `drive` with blocks `factor` times as large, and the hidden capacity that gives the rate of
/// uniform writes.
fn with_blocks(
    runner: &Runner,
    sheet: &Sheet,
    drive: &SaturatedDrive,
    (factor, series): (f64, &[LoadSeries]),
) -> Result<SaturatedDrive, ExperimentError> {
    let drive = SaturatedDrive { block_gib: factor * drive.block_gib, ..*drive };
    to_uniform(runner, sheet, &drive, series)
}

/// The streams that the number of blocks drawn is fitted to: 1 and 8 into regions of 8 GiB.
fn is_fitted_stream(one: &LoadSeries) -> bool {
    matches!(one.load, Load::Streams { active: 1 | 8, region_gib, .. } if region_gib == 8.0)
}

/// `drive` with victims drawn at random, as many as meet the rates of two of `regions` best.
fn drawing(
    runner: &Runner,
    sheet: &Sheet,
    drive: &SaturatedDrive,
    (series, regions): (&[LoadSeries], &[LoadSeries]),
) -> Result<SaturatedDrive, ExperimentError> {
    let few: Vec<&LoadSeries> = regions.iter().filter(|one| is_fitted_stream(one)).collect();
    if few.is_empty() {
        return Err(ExperimentError::of(&sheet.name, "no streams to fit the collector to"));
    }
    let mut best = (f64::INFINITY, *drive);
    for drawn in DRAWN {
        let drive = SaturatedDrive { collector: Collector::Choices(drawn), ..*drive };
        let drive = to_uniform(runner, sheet, &drive, series)?;
        let load =
            |one: &&LoadSeries| (format!("{}, {drawn} drawn", one.words), one.load, one.writes);
        let ran = drive.run(runner, &sheet.name, &few.iter().map(load).collect::<Vec<_>>())?;
        let error =
            |(ran, one): (&Outcome, &&LoadSeries)| libm::log(ran.host_mb_s / one.measured).powi(2);
        let error = ran.iter().zip(&few).map(error).sum::<f64>();
        if error < best.0 {
            best = (error, drive);
        }
    }
    Ok(best.1)
}

/// Rows of a drive that draws its victims, with regions that are written without a trim. Both were
/// chosen after a look at its streams, which are therefore given.
fn judge_drawing(
    runner: &Runner,
    findings: &mut Findings,
    sheet: &Sheet,
    (drive, series, regions): (&SaturatedDrive, &[LoadSeries], &[LoadSeries]),
) -> Result<(), ExperimentError> {
    let regions: Vec<LoadSeries> = regions.iter().map(LoadSeries::untrimmed).collect();
    let drive = drawing(runner, sheet, drive, (series, &regions))?;
    let name = format!("{}, victims drawn", sheet.name);
    constants(findings, &name, &drive, "by uniform writes and two streams");
    judge(runner, findings, (&name, &drive), series, &is_known)?;
    judge(runner, findings, (&name, &drive), &regions, &|_| true)?;
    Ok(())
}

/// The rows of streams that cannot be compared for this `reason`.
fn not_comparable(findings: &mut Findings, name: &str, regions: &[LoadSeries], reason: &str) {
    for one in regions {
        let claim = Claim::of("ssd/rate-not-compared").with("name", name).with("load", &one.words);
        findings.row(claim.published(one.measured).not_comparable(reason));
    }
}

fn left_out(runner: &Runner) -> Result<Findings, ExperimentError> {
    let tables = Tables::read(runner)?;
    let separating = fitted_p5520(runner, &tables)?;
    let (mixing, _) = fitted_max(runner, &tables)?;
    let mut findings = Findings::default();
    let mut factor = 1.0;
    for sheet in &parameters::<Parameters>("ssd/left-out").sheets {
        let series = skewed(&tables.skew, &sheet.name);
        let like = if sheet.separates { &separating } else { &mixing };
        let drive = predicted(runner, sheet, like, &series)?;
        constants(&mut findings, &sheet.name, &drive, "by the rate of uniform writes");
        let outcomes = judge(runner, &mut findings, (&sheet.name, &drive), &series, &is_known)?;
        course_plots(&mut findings, &tables, &sheet.name, &series, &outcomes, &PICTURED);
        if let Some(of) = &sheet.blocks_of {
            let is_fitted = *of == sheet.name;
            let drive = if is_fitted {
                let (fitted, drive) = with_fitted_blocks(runner, sheet, &drive, &series)?;
                factor = fitted;
                drive
            } else {
                with_blocks(runner, sheet, &drive, (factor, &series))?
            };
            let name = format!("{}, blocks by Zipf 1 of {of}", sheet.name);
            constants(&mut findings, &name, &drive, "by uniform writes and Zipf 1");
            let is_given = |one: &LoadSeries| is_known(one) || is_fitted && one.load == STRONG_SKEW;
            judge(runner, &mut findings, (&name, &drive), &series, &is_given)?;
        }
        let regions = streams(&tables.streams, &sheet.name, "host write");
        if sheet.is_stream_bound {
            let rated = sheet.write_mb_s;
            let reason = format!(
                "one request of 512 KiB at a time takes longer than the flash, rated {rated:.0} \
                 MB/s"
            );
            not_comparable(&mut findings, &sheet.name, &regions, &reason);
        } else {
            judge(runner, &mut findings, (&sheet.name, &drive), &regions, &|_| false)?;
            judge_drawing(runner, &mut findings, sheet, (&drive, &series, &regions))?;
        }
    }
    Ok(findings)
}
