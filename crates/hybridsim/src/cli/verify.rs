//! The command that checks the installed program.

use super::output::{Exit, Failure, print};
use super::progress::{Steps, When};
use super::run::interrupt_flag;
use hybridsim_config::check::near;
use hybridsim_config::registry::Registry;
use hybridsim_report::json::pretty;
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_verify::{Bench, CHECKS, list, select, table};
use std::sync::atomic::Ordering;

#[derive(clap::Args)]
pub struct VerifyArgs {
    /// Checks to run, or groups of them (gc, disk, cache); without any, all
    names: Vec<String>,
    /// Only list the checks, with what each compares and its oracle
    #[arg(long, conflicts_with = "json")]
    list: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Checks at once; default: the number of processors
    #[arg(long, value_name = "COUNT", value_parser = super::at_least_one)]
    jobs: Option<usize>,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

/// Runs checks and shows their outcomes. A check that does not hold is a failure.
pub fn verify(registry: &Registry, args: &VerifyArgs) -> Result<(), Failure> {
    let checks = select(&args.names).map_err(|name| unknown(&name))?;
    if args.list {
        return print(&list(&checks));
    }
    let (steps, interrupted) = (Steps::new(args.progress, checks.len()), interrupt_flag());
    let go_on = || !interrupted.load(Ordering::Relaxed);
    let bench = Bench::new(registry, &go_on);
    let outcomes = parallel_map(
        checks,
        args.jobs.unwrap_or_else(processors),
        |check| check.outcome(&bench),
        |_, outcome| steps.end_of(outcome.check),
    );
    steps.finish();
    print(&if args.json { pretty(&outcomes) } else { table(&outcomes) })?;
    let failed = outcomes.iter().filter(|outcome| !outcome.ok).count();
    match (go_on(), failed) {
        (false, _) => Err(Failure::AfterResults(Exit::Interrupted, "interrupted".to_owned())),
        (true, 0) => Ok(()),
        (true, failed) => {
            let message = format!("{failed} of {} checks failed", outcomes.len());
            Err(Failure::AfterResults(Exit::Run, message))
        }
    }
}

fn unknown(name: &str) -> Failure {
    let hint = near(name, CHECKS.iter().map(|check| check.name));
    let hint = hint.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Failure::usage(format!("there is no check `{name}`{hint}; see `hybridsim verify --list`"))
}
