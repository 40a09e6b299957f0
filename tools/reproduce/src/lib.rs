//! Published figures and measured drives, each beside our result.
//!
//! One file per experiment (a figure, a table, a set of drives): it selects the scenarios to
//! run, computes what has to be computed, and draws the curves. Scenarios and claims are in
//! `papers/`.
//! An experiment never judges with a number tuned to pass: tolerances are those of the checklist
//! the project was begun with, parameters come from the paper or a datasheet, and where a claim
//! does not hold, the row says `differs` and why.

mod bisson_fqueue;
mod chang_slc_mlc;
mod claim;
mod disk;
mod flashsim;
mod konanki;
mod op_fcl;
mod published;
mod runner;
mod ssd;
mod variants;

pub use claim::{Claim, Findings, Order};
pub use published::seeds;
pub use runner::{ExperimentError, Job, JobOutput, Runner, ServedRequest};
pub use variants::{Setting, Variants};

use hybridsim_report::study::Study;

/// A figure, a table, or a set of measurements that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The name, such as `flashsim/fig6`: the source, then the experiment.
    pub id: &'static str,
    /// Runs its scenarios and compares.
    pub run: fn(&Runner) -> Result<Findings, ExperimentError>,
}

impl Experiment {
    /// The title in reports.
    pub fn title(&self) -> &'static str {
        &published::experiment(self.id).title
    }

    /// The runs and the assumptions, in a few sentences.
    pub fn method(&self) -> &'static str {
        published::method(self.id)
    }
}

/// All experiments, in the order of the reports.
pub const EXPERIMENTS: &[&[Experiment]] = &[
    disk::EXPERIMENTS,
    ssd::EXPERIMENTS,
    konanki::EXPERIMENTS,
    bisson_fqueue::EXPERIMENTS,
    flashsim::EXPERIMENTS,
    op_fcl::EXPERIMENTS,
    chang_slc_mlc::EXPERIMENTS,
];

/// All experiments in one row.
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    EXPERIMENTS.iter().copied().flatten()
}

/// The experiments `ids` name: a whole source (`flashsim`) or one of its experiments
/// (`flashsim/fig6`); all without any.
///
/// # Errors
/// The id that names nothing.
pub fn select(ids: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let names = |id: &str, experiment: &Experiment| {
        let rest = experiment.id.strip_prefix(id.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(unknown) = ids.iter().find(|id| !all().any(|experiment| names(id, experiment))) {
        return Err(unknown.clone());
    }
    let wanted =
        |experiment: &&Experiment| ids.is_empty() || ids.iter().any(|id| names(id, experiment));
    Ok(all().filter(wanted).collect())
}

/// Runs `experiment`.
///
/// # Errors
/// When a scenario does not run, or the run was interrupted. Missing data is no error: its rows
/// say so.
pub fn run(experiment: &Experiment, runner: &Runner) -> Result<Study, ExperimentError> {
    let findings = match (experiment.run)(runner) {
        Err(ExperimentError::NoData(reason)) => {
            let mut findings = Findings::default();
            findings.row(Claim::without_data(experiment.title(), &reason));
            findings
        }
        other => other?,
    };
    Ok(Study {
        experiment: experiment.id.to_owned(),
        title: experiment.title().to_owned(),
        method: experiment.method().to_owned(),
        rows: findings.rows.into_iter().map(|claim| claim.judged(experiment.id)).collect(),
        plots: findings.plots,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_select_sources_and_experiments() {
        let check = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            select(&ids).map(|found| found.len())
        };
        assert_eq!(check(&[]), Ok(all().count()));
        assert_eq!(check(&["flashsim/table3"]), Ok(1));
        assert!(check(&["konanki"]).is_ok_and(|found| found > 0 && found < all().count()));
        assert_eq!(check(&["flashsim/"]), check(&["flashsim"]));
        assert_eq!(check(&["00"]), Err("00".to_owned()));
        assert_eq!(check(&["flashsim/fig"]), Err("flashsim/fig".to_owned()));
    }

    #[test]
    fn ids_are_unique() {
        let ids: BTreeSet<&str> = all().map(|experiment| experiment.id).collect();
        assert_eq!(ids.len(), all().count());
    }
}
