//! Figure 8: how much of the blocks garbage collection searches for a victim.

use super::{dftl, flash};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig8", run: reproduce };

const FRACTIONS: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
/// Entries of the map in memory; about as many as FAST's tables take.
const ENTRIES: u64 = 6 * 1024;

fn job(fraction: f64) -> Job {
    let gc = format!("{{ kind = \"partial-search\", fraction = {fraction:?} }}");
    dftl("financial", ENTRIES).named(format!("search {fraction}")).set("component.ssd.ftl.gc", gc)
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = runner.run(&FRACTIONS.map(job))?;
    let full = ran.last().expect("there are fractions");
    let response: Vec<f64> = ran.iter().map(|ran| ran.mean_ms() / full.mean_ms()).collect();
    let mut findings = Findings::default();
    findings.row(
        Claim::of("flashsim/less-search-longer-response-mean-response")
            .ranked(&[("random victim", response[0]), ("full search", 1.0)]),
    );
    let copied: Vec<f64> = ran.iter().map(|ran| flash(ran).gc_programs as f64).collect();
    findings.row(
        Claim::of("flashsim/fuller-search-finds-blocks-fewer-valid")
            .ranked(&[("random victim", copied[0]), ("full search", copied[5])]),
    );
    findings.row(Claim::of("flashsim/partial-search-lies-between-mean-response").ranked(&[
        ("random victim", response[0]),
        ("a fifth", response[1]),
        ("full search", 1.0),
    ]));
    let searched: Vec<(String, f64)> = FRACTIONS
        .iter()
        .zip(&ran)
        .map(|(fraction, ran)| (format!("{fraction}"), flash(ran).searched_blocks as f64))
        .collect();
    let named: Vec<(&str, f64)> = searched.iter().map(|(name, of)| (&**name, *of)).collect();
    findings.row(Claim::of("flashsim/more-search-costs-more-energy-blocks").ranked(&named));
    let points = FRACTIONS.iter().copied().zip(response).collect();
    findings.plot(Plot {
        title: "Mean response against the fraction searched".to_owned(),
        caption: "Relative to a full search.".to_owned(),
        x: Axis::linear("Fraction of the blocks searched", ""),
        y: Axis::linear("Mean response, full search = 1", ""),
        curves: vec![Curve::ours("DFTL, Financial", points)],
    });
    Ok(findings)
}
