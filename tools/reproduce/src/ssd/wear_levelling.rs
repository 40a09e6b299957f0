//! Static wear levelling, as the rate of a drive with much static data shows it.
//!
//! Blocks with more static than overwritten pages are never the emptiest, so a greedy collector
//! leaves their invalid pages there. Wear levelling moves these blocks when the others have been
//! erased often enough: the invalid pages become spare, and the rate rises.

use super::drive::{Jobs, Load, SaturatedDrive};
use super::fit;
use super::saturated::{LoadSeries, PRO, Tables, fitted_max, pro, skewed};
use super::tables::median;
use super::{compared, worst};
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};

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

/// The rate over the data written of `drive` under `one`, with the wear levelling `wear`.
fn course(
    runner: &Runner,
    drive: &SaturatedDrive,
    one: &LoadSeries,
    wear: &str,
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let name = format!("{PRO}, {}, {wear}", one.words);
    let job = drive.job(&name, one.load, 1.0, one.writes).set("component.ssd.ftl.wear", wear);
    Ok(drive.outcome(&runner.run(&[job])?[0].pictures).course)
}

fn policy(kind: &str, threshold: f64) -> String {
    format!("{{ kind = \"{kind}\", threshold = {threshold:.0} }}")
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let tables = Tables::read(runner)?;
    let drive = pro(&fitted_max(runner, &tables)?.0);
    let series = skewed(&tables.skew, PRO);
    let missing = || ExperimentError::of(PRO, "no load with 80 % static data");
    let one = series.iter().find(|one| one.load == RISING).ok_or_else(missing)?;
    let points = tables.course_of(PRO, &one.words);
    let measured = Rise::of(&points);
    let threshold =
        fit::solve("threshold of wear levelling", THRESHOLDS, measured.at, |threshold| {
            Ok(Rise::of(&course(runner, &drive, one, &policy("dual-pool", threshold))?).at)
        })?
        .round();
    let ours = course(runner, &drive, one, &policy("dual-pool", threshold))?;
    let rise = Rise::of(&ours);
    let all = Rise::of(&course(runner, &drive, one, &policy("static", threshold))?);
    let without = Rise::of(&course(runner, &drive, one, "\"none\"")?);
    let mut findings = Findings::default();
    findings.row(
        Claim::of("ssd/begin-of-the-rise")
            .with("threshold", threshold)
            .published(measured.at)
            .given_if(true)
            .ours(rise.at),
    );
    for (id, published, value) in [
        ("ssd/rate-before-the-rise", measured.before, &(|it: &Rise| it.before) as &dyn Fn(_) -> _),
        ("ssd/rate-after-the-rise", measured.after, &|it: &Rise| it.after),
    ] {
        let claim = Claim::of(id).published(published).ours(value(&rise));
        findings.row(
            claim
                .sensitive("wear = \"static\", which moves every lagging block", value(&all))
                .sensitive("no wear levelling", value(&without)),
        );
    }
    let mut changes = Vec::new();
    for other in series.iter().filter(|other| other.load != RISING) {
        let last = |wear: &str| -> Result<f64, ExperimentError> {
            Ok(Rise::of(&course(runner, &drive, other, wear)?).after)
        };
        let (with, without) = (last(&policy("dual-pool", threshold))?, last("\"none\"")?);
        changes.push(100.0 * (with / without - 1.0).abs());
    }
    findings.row(
        Claim::of("ssd/wear-levelling-elsewhere")
            .with("count", changes.len())
            .ours(worst(&changes)),
    );
    let curves = compared(ours, points);
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
