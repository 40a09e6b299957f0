//! Experiments at several seeds, and at other settings of what their sources leave open.

use crate::{Claim, ExperimentError, Job, JobOutput, Runner};
use serde::Deserialize;

/// A setting of what a source leaves open, or one of several systems compared: its name, and the
/// keys that make it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The name in words.
    pub name: String,
    /// Keys with their values, as `--set` takes them.
    #[serde(default)]
    pub set: Vec<String>,
    /// Numbers of the jobs in which `set` applies; all without.
    pub jobs: Option<Vec<usize>>,
    /// Keys that apply in all jobs.
    #[serde(default)]
    pub set_all: Vec<String>,
}

impl Setting {
    /// The job number `at` of an experiment with this setting.
    pub fn make(&self, at: usize, mut job: Job) -> Job {
        job.sets.extend(self.set_all.iter().cloned());
        match self.jobs.as_ref().is_none_or(|jobs| jobs.contains(&at)) {
            true => job.at(self),
            false => job,
        }
    }
}

/// An experiment of several jobs, such as one for each system compared: its outputs at every seed,
/// and at every other setting at the first seed.
#[derive(Debug)]
pub struct Variants {
    /// Outputs in the order of the jobs, by seed.
    pub seeds: Vec<Vec<JobOutput>>,
    /// Outputs in the order of the jobs, by setting.
    pub others: Vec<(String, Vec<JobOutput>)>,
}

impl Variants {
    /// Runs `jobs` at the seeds 1 to `seeds`, and at each of `settings` at seed 1.
    ///
    /// # Errors
    /// The first job, in order, that does not run to its end.
    pub fn run(
        runner: &Runner,
        jobs: &[Job],
        seeds: u32,
        settings: &[Setting],
    ) -> Result<Self, ExperimentError> {
        let by_seed = (1..=seeds).flat_map(|seed| jobs.iter().map(move |job| job.at_seed(seed)));
        let by_setting = settings.iter().flat_map(|setting| {
            let made = |(at, job): (usize, &Job)| {
                let name = format!("{}, {}", job.name, setting.name);
                setting.make(at, job.at_seed(1)).named(name)
            };
            jobs.iter().enumerate().map(made).collect::<Vec<_>>()
        });
        let all: Vec<Job> = by_seed.chain(by_setting).collect();
        let mut ran = once_each(runner, &all)?.into_iter();
        let mut next = || ran.by_ref().take(jobs.len()).collect::<Vec<_>>();
        let seeds = (0..seeds).map(|_| next()).collect();
        let others = settings.iter().map(|setting| (setting.name.clone(), next())).collect();
        Ok(Self { seeds, others })
    }

    /// The outputs at the first seed.
    pub fn first(&self) -> &[JobOutput] {
        &self.seeds[0]
    }

    /// `claim` about the number that `value` takes from the outputs.
    pub fn number(&self, claim: Claim, value: impl Fn(&[JobOutput]) -> f64) -> Claim {
        let values: Vec<f64> = self.seeds.iter().map(|ran| value(ran)).collect();
        let claim = claim.ours_at_seeds(&values);
        self.others.iter().fold(claim, |claim, (name, ran)| claim.sensitive(name, value(ran)))
    }

    /// `claim` about the order of the named numbers that `values` takes from the outputs.
    pub fn order<'n>(
        &self,
        claim: Claim,
        values: impl Fn(&[JobOutput]) -> Vec<(&'n str, f64)>,
    ) -> Claim {
        let by_seed: Vec<_> = self.seeds.iter().map(|ran| values(ran)).collect();
        let named: Vec<(&str, Vec<f64>)> = by_seed[0]
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (*name, by_seed.iter().map(|values| values[at].1).collect()))
            .collect();
        let claim = claim.ranked_at_seeds(&named);
        let other = |claim: Claim, (name, ran): &(String, Vec<JobOutput>)| {
            claim.sensitive_ranked(name, &values(ran))
        };
        self.others.iter().fold(claim, other)
    }
}

/// Runs `jobs`; those that a setting does not change run once.
pub fn once_each(runner: &Runner, jobs: &[Job]) -> Result<Vec<JobOutput>, ExperimentError> {
    let mut unique: Vec<Job> = Vec::new();
    let places: Vec<usize> = jobs
        .iter()
        .map(|job| {
            let same = |other: &Job| (&other.text, &other.sets) == (&job.text, &job.sets);
            unique.iter().position(same).unwrap_or_else(|| {
                unique.push(job.clone());
                unique.len() - 1
            })
        })
        .collect();
    let ran = runner.run(&unique)?;
    Ok(places.into_iter().map(|at| ran[at].clone()).collect())
}
