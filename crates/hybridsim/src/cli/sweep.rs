//! The command for parameter sweeps.

use super::ReadingArgs;
use super::at_least_one;
use super::cluster::Cluster;
use super::columns;
use super::output::{Exit, Failure, note, print_beside, unwritable, write_file};
use super::progress::{Steps, When};
use super::run::interrupt_flag;
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_simulation::parallel::processors;
use hybridsim_sweep::{
    Job, Memory, Outcome, Plan, Planned, Point, Sampling, Seeds, Shard, Store, Table, Vary,
};
use std::path::{Path, PathBuf};

/// The remedy for an interrupted sweep.
const RESUME: &str = "; with --out, the same command resumes there";

#[derive(clap::Args)]
pub struct SweepArgs {
    /// A scenario, or a sweep file that names one and the values to vary
    file: PathBuf,
    /// Values of a scenario key, such as component.ssd.over_provisioning=0.07,0.28 or a range, such
    /// as 0.07..0.28 or log:16MiB..1GiB; may be repeated
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    vary: Vec<String>,
    /// The combinations to run: grid (all), random:COUNT or latin-hypercube:COUNT
    #[arg(long, value_name = "HOW", value_parser = Sampling::parse)]
    sample: Option<Sampling>,
    /// Set a scenario key at every point; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Run every combination at this many seeds: the scenario's and those after it
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Show this key of the results, such as components.ssd.write_amplification; may be repeated
    #[arg(long = "column", value_name = "PATH")]
    columns: Vec<String>,
    /// Replay this trace instead of the scenario's workload; repeated, each at every combination
    #[arg(long = "trace", value_name = "FILE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Points run in parallel; default: the number of processors
    #[arg(short, long, value_name = "COUNT", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// Memory for all points that run at the same time; default: nine tenths of what is available
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory: Option<u64>,
    /// Run the points on the Dask cluster whose scheduler has this address, such as
    /// tcp://node1:8786; needs Python with `pip install "hybridsim[dask]"`
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "memory"])]
    dask: Option<String>,
    /// Run only shard I of N, counted from 0; all shards may share one folder
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Store every point in this folder and resume from it; writes sweep.csv, sweep.html and
    /// scenarios.jsonl, which has the scenario of each point
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

fn plan(args: &SweepArgs) -> Result<Plan, Failure> {
    let vary: Result<Vec<Vary>, _> = args.vary.iter().map(|option| Vary::parse(option)).collect();
    let sets: Vec<String> = args.sets.iter().cloned().chain(args.reading.key_options()).collect();
    let mut plan = Plan::read(&args.file, &sets, &vary?, &args.traces)?;
    if let Some(sampling) = args.sample {
        plan.sample(sampling);
    }
    if let Some(count) = args.seeds {
        plan.repeat(Seeds::Count(count))?;
    }
    Ok(plan)
}

/// Runs all points, or those of a shard.
pub fn sweep(registry: &Registry, args: &SweepArgs) -> Result<(), Failure> {
    columns::check(&args.columns)?;
    let plan = plan(args)?;
    let all = plan.points(registry)?;
    columns::check_components(registry, &args.columns, &all)?;
    let is_mine = |point: &Point| args.shard.is_none_or(|shard| shard.has(&point.key));
    let points: Vec<Point> = all.iter().filter(|point| is_mine(point)).cloned().collect();
    let store = match &args.out {
        Some(out) => {
            let store = Store::open(&out.join("points"), args.retry).map_err(Failure::usage)?;
            Planned::write(out, &plan.keys(), &all, registry)
                .map_err(|error| unwritable(&out.join(Planned::FILE), error))?;
            Some(store)
        }
        None => None,
    };
    let outcomes = run(registry, args, &points, store.as_ref())?;
    let finished = points.iter().zip(outcomes);
    let mut rows: Vec<(&Point, Outcome)> =
        finished.filter_map(|(point, outcome)| Some((point, outcome?))).collect();
    let verdict = match store.as_ref().and_then(Store::problem) {
        None => verdict(&rows, points.len(), RESUME),
        Some(problem) => Err(match verdict(&rows, points.len(), "") {
            Err(Failure::AfterResults(exit, message)) => {
                Failure::AfterResults(exit, format!("{message}; {problem}"))
            }
            Err(other) => other,
            Ok(()) => Failure::AfterResults(Exit::Run, problem.to_owned()),
        }),
    };
    if let Some(store) = &store {
        // Points finished by other shards.
        let theirs = all.iter().filter(|point| !is_mine(point));
        rows.extend(theirs.filter_map(|point| Some((point, store.load(&point.key)?))));
        rows.sort_by_key(|(point, _)| point.number);
    }
    let rows: Vec<(&Point, &Outcome)> =
        rows.iter().map(|(point, outcome)| (*point, outcome)).collect();
    show(args, &plan.keys(), &rows)?;
    verdict
}

fn run(
    registry: &Registry,
    args: &SweepArgs,
    points: &[Point],
    store: Option<&Store>,
) -> Result<Vec<Option<Outcome>>, Failure> {
    let interrupted = interrupt_flag();
    let steps = Steps::new(args.progress, points.len());
    let finished = |point: &Point| steps.end_of(&point.name());
    let outcomes = match &args.dask {
        Some(address) => {
            let cluster = Cluster { address, cache: !args.no_cache, interrupted: &interrupted };
            cluster.run(points, store, finished)
        }
        None => {
            let job = Job {
                registry,
                threads: args.jobs.unwrap_or_else(processors),
                memory: &args.memory.map_or_else(Memory::available, Memory::new),
                store,
                cache: !args.no_cache,
                interrupted: &interrupted,
            };
            Ok(hybridsim_sweep::run(points, &job, finished))
        }
    };
    steps.finish();
    outcomes
}

/// Runs all points in this process, on up to `threads` threads.
pub(super) fn run_all(
    registry: &Registry,
    points: &[Point],
    threads: usize,
    progress: When,
    cache: bool,
) -> Vec<Option<Outcome>> {
    let steps = Steps::new(progress, points.len());
    let job = Job {
        registry,
        threads,
        memory: &Memory::available(),
        store: None,
        cache,
        interrupted: &interrupt_flag(),
    };
    let outcomes = hybridsim_sweep::run(points, &job, |point| steps.end_of(&point.name()));
    steps.finish();
    outcomes
}

fn show(args: &SweepArgs, keys: &[&str], rows: &[(&Point, &Outcome)]) -> Result<(), Failure> {
    let (table, columns) = table(keys, &args.columns, rows)?;
    let title = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let title = format!("Sweep of {title}");
    let write = |out| write_tables(out, "sweep", &table, &title);
    let saved = args.out.as_deref().map_or(Ok(()), write);
    print_beside(saved, &if args.json { table.json() } else { table.terminal() })?;
    columns
}

/// The table of `rows` with the further `columns`, and the failure of a column that no run has:
/// the runs are not lost, there is a table of the other columns.
pub(super) fn table<'p>(
    keys: &[&str],
    columns: &[String],
    rows: &[(&'p Point, &'p Outcome)],
) -> Result<(Table<'p>, Result<(), Failure>), Failure> {
    match Table::new(keys, columns, rows) {
        Ok(table) => Ok((table, Ok(()))),
        Err(unknown) => {
            let table = Table::new(keys, &[], rows).map_err(Failure::usage)?;
            let message = format!("--column: {unknown}");
            Ok((table, Err(Failure::AfterResults(Exit::Usage, message))))
        }
    }
}

/// Writes the table as `NAME.csv` and its charts as `NAME.html` into a folder.
pub(super) fn write_tables(
    out: &Path,
    name: &str,
    table: &Table<'_>,
    title: &str,
) -> Result<(), Failure> {
    let [csv, html] = ["csv", "html"].map(|ending| format!("{name}.{ending}"));
    write_file(out, &csv, &table.csv())?;
    write_file(out, &html, &table.html(title, &csv))?;
    note(&format!("table: {}", out.join(csv).display()));
    note(&format!("charts: {}", out.join(html).display()));
    Ok(())
}

/// The exit code of the points that were asked for; `resume` is how to go on after an interrupt.
pub(super) fn verdict(
    rows: &[(&Point, Outcome)],
    asked: usize,
    resume: &str,
) -> Result<(), Failure> {
    if rows.len() < asked {
        let message = format!("interrupted: {} of {asked} points are done{resume}", rows.len());
        return Err(Failure::AfterResults(Exit::Interrupted, message));
    }
    let failed = |(_, outcome): &&(&Point, Outcome)| !matches!(outcome, Outcome::Done(_));
    match rows.iter().filter(failed).count() {
        0 => Ok(()),
        count => {
            let message = format!("{count} of {asked} points failed; the table has the reasons");
            Err(Failure::AfterResults(Exit::Points, message))
        }
    }
}
