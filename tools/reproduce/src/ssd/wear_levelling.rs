//! Static wear levelling, as the rate of a drive with much static data shows it.
//!
//! Blocks with more static than overwritten pages are never the emptiest, so a greedy collector
//! leaves their invalid pages there. Wear levelling moves these blocks when the others have been
//! erased often enough: the invalid pages become spare, and the rate rises.

use super::drive::{Jobs, Load, Outcome, SaturatedDrive};
use super::fit;
use super::saturated::{LoadSeries, MAX, PRO, Tables, fitted_max, pro, skewed};
use super::tables::median;
use super::{compared, worst};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/wear-levelling", run };

/// The load whose rate rises: 80 % static data.
const RISING: Load = Load::Hot { pages: 0.2, writes: 1.0 };
/// Drive writes after which the rate is level, and before which it has not risen yet.
const LEVEL: (f64, f64) = (2.0, 4.0);
/// Drive writes from the end that count as after the rise.
const AFTER: f64 = 1.0;
/// A rate of so many times the level has risen.
const RISEN: f64 = 1.15;
/// Thresholds that are tried, in erases.
const THRESHOLDS: (f64, f64) = (32.0, 96.0);

/// A rise of the rate over the data written.
struct Rise {
    /// Drive writes at which it begins.
    at: f64,
    /// MB/s before and after.
    before: f64,
    after: f64,
}

impl Rise {
    /// The rise in `course`, of drive writes and MB/s; it is at infinity if there is none.
    fn of(course: &[(f64, f64)]) -> Self {
        let within = |from: f64, to: f64| {
            let of = course.iter().filter(move |point| (from..to).contains(&point.0));
            median(&of.map(|point| point.1).collect::<Vec<f64>>())
        };
        let before = within(LEVEL.0, LEVEL.1);
        let end = course.last().map_or(0.0, |point| point.0);
        let risen = course
            .windows(2)
            .find(|two| two[1].0 > LEVEL.0 && two.iter().all(|point| point.1 > RISEN * before));
        let at = risen.map_or(f64::INFINITY, |two| two[0].0);
        Self { at, before, after: within(end - AFTER, f64::INFINITY) }
    }
}

const NONE: &str = "\"none\"";

fn policy(kind: &str, threshold: f64) -> String {
    format!("{{ kind = \"{kind}\", threshold = {threshold:.0} }}")
}

/// The drive called `name` under each load with wear levelling.
fn outcomes(
    runner: &Runner,
    (name, drive): (&str, &SaturatedDrive),
    loads: &[(&LoadSeries, &str)],
) -> Result<Vec<Outcome>, ExperimentError> {
    let job = |(one, wear): &(&LoadSeries, &str)| {
        let name = format!("{name}, {}, {wear}", one.words);
        drive.job(&name, one.load, 1.0, one.writes).set("component.ssd.ftl.wear", wear)
    };
    let ran = runner.run(&loads.iter().map(job).collect::<Vec<Job>>())?;
    Ok(ran.iter().map(|ran| drive.outcome(&ran.pictures)).collect())
}

/// Changes of the rate by `wear` under the loads of a drive but the rising one, in percent.
fn changes(
    runner: &Runner,
    (name, drive): (&str, &SaturatedDrive),
    (series, wear): (&[LoadSeries], &str),
) -> Result<Vec<f64>, ExperimentError> {
    let others = || series.iter().filter(|one| name != PRO || one.load != RISING);
    let loads: Vec<_> = others().flat_map(|one| [(one, wear), (one, NONE)]).collect();
    let ran = outcomes(runner, (name, drive), &loads)?;
    let change = |two: &[Outcome]| 100.0 * (two[0].host_mb_s / two[1].host_mb_s - 1.0).abs();
    Ok(ran.chunks(2).map(change).collect())
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let tables = Tables::read(runner)?;
    let max = fitted_max(runner, &tables)?.0;
    let drive = pro(&max);
    let series = skewed(&tables.skew, PRO);
    let missing = || ExperimentError::of(PRO, "no load with 80 % static data");
    let one = series.iter().find(|one| one.load == RISING).ok_or_else(missing)?;
    let points = tables.course_of(PRO, &one.words);
    let measured = Rise::of(&points);
    let under = |wear: &[&str]| {
        let loads: Vec<_> = wear.iter().map(|wear| (one, *wear)).collect();
        outcomes(runner, (PRO, &drive), &loads)
    };
    let begin =
        |threshold: f64| Ok(Rise::of(&under(&[&policy("dual-pool", threshold)])?[0].course).at);
    let threshold = fit::solve("threshold of wear levelling", THRESHOLDS, measured.at, begin)?;
    let threshold = threshold.round();
    let levelled = policy("dual-pool", threshold);
    let ran = under(&[&levelled, &policy("static", threshold), NONE])?;
    let [rise, all, none] = [0, 1, 2].map(|at| Rise::of(&ran[at].course));
    let mut findings = Findings::default();
    findings.row(
        Claim::of("ssd/begin-of-the-rise")
            .with("threshold", threshold)
            .published(measured.at)
            .given_if(true)
            .ours(rise.at),
    );
    let mut row = |id: &str, published: f64, [ours, all, none]: [f64; 3]| {
        let claim = Claim::of(id).published(published).ours(ours);
        let claim = claim.sensitive("wear = \"static\", which moves every lagging block", all);
        findings.row(claim.sensitive("no wear levelling", none));
    };
    let before = [rise.before, all.before, none.before];
    row("ssd/rate-before-the-rise", measured.before, before);
    row("ssd/rate-after-the-rise", measured.after, [rise.after, all.after, none.after]);
    let counted = [0, 1, 2].map(|at: usize| ran[at].host_mb_s);
    row("ssd/rate-with-wear-levelling", one.measured, counted);
    let mut others = changes(runner, (PRO, &drive), (&series, &levelled))?;
    let of_max = skewed(&tables.skew, MAX);
    others.extend(changes(runner, (MAX, &max), (&of_max, &levelled))?);
    findings.row(
        Claim::of("ssd/wear-levelling-elsewhere").with("count", others.len()).ours(worst(&others)),
    );
    let curves = compared(ran[0].course.clone(), points);
    findings.plot("ssd/course", &[("device", &PRO), ("words", &one.words)], curves);
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::Rise;

    #[test]
    fn a_rise_begins_where_the_rate_stays_above_its_level() {
        let rate = |at: f64| match at {
            // A single high value is none.
            3.0 => 200.0,
            at if at < 5.0 => 100.0,
            _ => 140.0,
        };
        let course: Vec<(f64, f64)> =
            (0..28).map(|at| f64::from(at) / 4.0).map(|at| (at, rate(at))).collect();
        let rise = Rise::of(&course);
        assert_eq!((rise.at, rise.before, rise.after), (5.0, 100.0, 140.0));
        let level: Vec<(f64, f64)> = course.iter().map(|point| (point.0, 100.0)).collect();
        assert!(Rise::of(&level).at.is_infinite());
    }
}
