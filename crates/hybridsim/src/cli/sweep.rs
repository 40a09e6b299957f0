//! The command for parameter sweeps.

use super::output::{Exit, Failure, note, print, write_file};
use super::progress::{Steps, When};
use super::run::interrupt_flag;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::parallel::processors;
use hybridsim_sweep::{Job, Outcome, Plan, Point, Shard, Store, Table, Vary};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct SweepArgs {
    /// A scenario, or a sweep file that names one and the values to vary
    file: PathBuf,
    /// Values of a scenario key, such as component.ssd.over_provisioning=0.07,0.28; may be repeated
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    vary: Vec<String>,
    /// Set a scenario key at every point; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Run every combination at this many seeds: the scenario's and those after it
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Show this key of the results, such as components.ssd.write_amplification; may be repeated
    #[arg(long = "column", value_name = "PATH")]
    columns: Vec<String>,
    /// Replay this trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Points run in parallel; default: the number of processors
    #[arg(short, long, value_name = "COUNT")]
    jobs: Option<usize>,
    /// Run only shard I of N, counted from 0; all shards may share one folder
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Store every point in this folder and resume from it; writes sweep.csv and sweep.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run failed points again
    #[arg(long, requires = "out")]
    retry: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Precondition devices again instead of restoring cached states
    #[arg(long)]
    no_cache: bool,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

fn shard(text: &str) -> Result<Shard, String> {
    let read = |text: &str| text.parse::<u64>().ok();
    let parts = text.split_once('/').and_then(|(i, n)| Some((read(i)?, read(n)?)));
    match parts {
        Some((index, count)) if index < count => Ok(Shard { index, count }),
        _ => Err("write it as I/N with I below N, such as 0/4".to_owned()),
    }
}

/// Runs all points, or those of a shard.
pub fn sweep(registry: &Registry, args: &SweepArgs) -> Result<(), Failure> {
    let vary: Result<Vec<Vary>, _> = args.vary.iter().map(|option| Vary::parse(option)).collect();
    let plan = Plan::read(&args.file, &args.sets, &vary?)?.repeated(args.seeds)?;
    let all = plan.points(registry, args.trace.as_deref())?;
    let is_mine = |point: &&Point| args.shard.is_none_or(|shard| shard.has(&point.key));
    let points: Vec<Point> = all.iter().filter(is_mine).cloned().collect();
    let store = match &args.out {
        Some(out) => Some(Store::open(&out.join("points"), args.retry).map_err(Failure::usage)?),
        None => None,
    };
    let interrupted = interrupt_flag();
    let steps = Steps::new(args.progress, points.len());
    let job = Job {
        registry,
        threads: args.jobs.unwrap_or_else(processors),
        store: store.as_ref(),
        cache: !args.no_cache,
        interrupted: &interrupted,
    };
    let outcomes = hybridsim_sweep::run(&points, &job, |point| {
        steps.message(&point.name());
        steps.end();
    });
    steps.finish();
    let finished = points.iter().zip(outcomes);
    let mine: Vec<(&Point, Outcome)> =
        finished.filter_map(|(point, outcome)| Some((point, outcome?))).collect();
    let others = others(&all, &points, store.as_ref());
    show(args, &plan.keys(), &in_order(&all, mine.iter().chain(&others)))?;
    verdict(&mine, points.len())
}

/// Points finished by other shards.
fn others<'p>(
    all: &'p [Point],
    mine: &[Point],
    store: Option<&Store>,
) -> Vec<(&'p Point, Outcome)> {
    let Some(store) = store else { return Vec::new() };
    let theirs = all.iter().filter(|point| !mine.iter().any(|own| own.is_same(point)));
    theirs.filter_map(|point| Some((point, store.load(&point.key)?))).collect()
}

/// Rows in the order of the plan.
fn in_order<'p>(
    all: &[Point],
    rows: impl Iterator<Item = &'p (&'p Point, Outcome)>,
) -> Vec<(&'p Point, &'p Outcome)> {
    let mut rows: Vec<_> = rows.map(|(point, outcome)| (*point, outcome)).collect();
    rows.sort_by_key(|(point, _)| all.iter().position(|other| other.is_same(point)));
    rows
}

fn show(args: &SweepArgs, keys: &[&str], rows: &[(&Point, &Outcome)]) -> Result<(), Failure> {
    let (table, unknown) = match Table::new(keys, &args.columns, rows) {
        Ok(table) => (table, None),
        // The points are not lost: without the columns there is a table of the others.
        Err(unknown) => (Table::new(keys, &[], rows).map_err(Failure::usage)?, Some(unknown)),
    };
    if let Some(out) = &args.out {
        let title = args.file.file_stem().unwrap_or_default().to_string_lossy();
        write_file(out, "sweep.csv", &table.csv())?;
        write_file(out, "sweep.html", &table.html(&format!("Sweep of {title}")))?;
    }
    print(&if args.json { table.json() } else { table.terminal() })?;
    if let Some(out) = &args.out {
        note(&format!("table: {}", out.join("sweep.csv").display()));
        note(&format!("charts: {}", out.join("sweep.html").display()));
    }
    match unknown {
        Some(message) => Err(Failure::AfterResults(Exit::Usage, format!("--column: {message}"))),
        None => Ok(()),
    }
}

fn verdict(rows: &[(&Point, Outcome)], asked: usize) -> Result<(), Failure> {
    if rows.len() < asked {
        let message = format!(
            "interrupted: {} of {asked} points are done; with --out, the same command resumes \
             there",
            rows.len()
        );
        return Err(Failure::AfterResults(Exit::Interrupted, message));
    }
    let failed = |(_, outcome): &&(&Point, Outcome)| matches!(outcome, Outcome::Failed(_));
    match rows.iter().filter(failed).count() {
        0 => Ok(()),
        count => {
            let message = format!("{count} of {asked} points failed; the table has the reasons");
            Err(Failure::AfterResults(Exit::Points, message))
        }
    }
}
