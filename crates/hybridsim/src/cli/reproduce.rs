//! The command that reproduces published figures.

use super::output::{Exit, Failure, note, print, print_beside, write_file};
use super::progress::{Steps, When};
use super::run::{interrupt_flag, prepare, wants_ansi};
use hybridsim_config::check::near;
use hybridsim_config::registry::Registry;
use hybridsim_report::study::{self, Study};
use hybridsim_report::terminal::Style;
use hybridsim_reproduce::{ExperimentError, Runner};
use hybridsim_simulation::scenario::manual;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct ReproduceArgs {
    /// Claims to reproduce: all, a source (flashsim, disk), or one of its figures and tables
    /// (flashsim/fig6); without any, lists what there is
    ids: Vec<String>,
    /// Only list the available figures and tables
    #[arg(long, conflicts_with_all = ["json", "out"])]
    list: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Write tables and charts into this folder: reproduction.html and reproduction.json
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into folders that are not empty
    #[arg(long)]
    force: bool,
    /// Also write every scenario that is run into this folder, for `hybridsim run`
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

/// Reproduces what was asked for and shows it. A claim that differs is a result, not a failure.
pub fn reproduce(registry: &Registry, args: &ReproduceArgs) -> Result<(), Failure> {
    let ids: Vec<String> = args.ids.iter().filter(|id| *id != "all").cloned().collect();
    let mut experiments = hybridsim_reproduce::select(&ids).map_err(|id| unknown(&id))?;
    if ids.len() < args.ids.len() {
        experiments = hybridsim_reproduce::select(&[]).map_err(|id| unknown(&id))?;
    }
    if args.ids.is_empty() && (args.json || args.out.is_some() || args.scenarios.is_some()) {
        return Err(Failure::usage("name what to reproduce: `all`, or an entry of --list"));
    }
    if args.list || args.ids.is_empty() {
        return print(&list(&experiments));
    }
    let folders = [&args.out, &args.scenarios].into_iter().flatten();
    let _folders =
        folders.map(|folder| prepare(folder, args.force)).collect::<Result<Vec<_>, _>>()?;
    let interrupted = interrupt_flag();
    let steps = Steps::new(args.progress, experiments.len());
    let finished = |name: &str| steps.message(name);
    let mut studies: Vec<Study> = Vec::with_capacity(experiments.len());
    let mut stopped = None;
    for experiment in experiments {
        steps.begin(experiment.id);
        let runner = Runner::new(registry, &interrupted, &finished);
        let runner = match &args.scenarios {
            Some(folder) => runner.writing_scenarios(folder.join(experiment.id)),
            None => runner,
        };
        match hybridsim_reproduce::run(experiment, &runner) {
            Ok(study) => studies.push(study),
            Err(error) => {
                stopped = Some((experiment.id, error));
                break;
            }
        }
        steps.end();
    }
    steps.finish();
    show(args, &studies)?;
    match stopped {
        None => Ok(()),
        Some((id, ExperimentError::Interrupted)) => {
            Err(Failure::AfterResults(Exit::Interrupted, format!("{id}: interrupted")))
        }
        Some((id, error)) => Err(Failure::AfterResults(Exit::Run, format!("{id}: {error}"))),
    }
}

/// The experiments below the source they belong to, and how to run them.
fn list(experiments: &[&hybridsim_reproduce::Experiment]) -> String {
    let source = |experiment: &hybridsim_reproduce::Experiment| {
        experiment.id.split('/').next().unwrap_or_default()
    };
    let width = experiments.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for group in experiments.chunk_by(|one, other| source(one) == source(other)) {
        let key = source(group[0]);
        let title = manual::paper(key).unwrap_or_default();
        out += &format!("{key}: {title}\n");
        for experiment in group {
            out += &format!("  {:<width$}  {}\n", experiment.id, experiment.title());
        }
        out.push('\n');
    }
    out + "Run one with `hybridsim reproduce NAME`, a source with its key, everything with \
           `hybridsim reproduce all`.\n"
}

fn unknown(id: &str) -> Failure {
    let hint = near(id, hybridsim_reproduce::all().map(|experiment| experiment.id));
    let hint = hint.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Failure::usage(format!(
        "there is no figure, table or source called `{id}`{hint}; see `hybridsim reproduce --list`"
    ))
}

fn show(args: &ReproduceArgs, studies: &[Study]) -> Result<(), Failure> {
    let title = match args.ids.as_slice() {
        ids if ids.iter().any(|id| id == "all") => "Reproduction of published figures".to_owned(),
        ids => format!("Reproduction of {}", ids.join(", ")),
    };
    let write = |out| {
        write_file(out, "reproduction.json", &study::json(studies))?;
        write_file(out, "reproduction.html", &study::page(&title, studies))
    };
    let saved = args.out.as_deref().map_or(Ok(()), write);
    let text = match args.json {
        true => study::json(studies),
        false => study::terminal(studies, Style { ansi: wants_ansi() }),
    };
    print_beside(saved, &text)?;
    if let Some(out) = &args.out {
        note(&format!("report: {}", out.join("reproduction.html").display()));
    }
    Ok(())
}
