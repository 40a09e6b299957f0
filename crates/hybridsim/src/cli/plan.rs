//! The command for plans: profile and miss-ratio curves, the first cut, simulations, the ranking.

use super::ReadingArgs;
use super::output::{Exit, Failure, note, print_beside, write_file};
use super::progress::{Progress, When};
use super::run::prepare;
use super::sweep::run_all;
use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_mrc::{Ask, Curves, Method, Policy};
use hybridsim_observe::RunResults;
use hybridsim_plan::{Bounds, Demand, FirstCut, Plan, Prices, first_cut, replacement_of};
use hybridsim_report::json::pretty;
use hybridsim_simulation::parallel::processors;
use hybridsim_simulation::scenario::Input;
use hybridsim_simulation::text;
use hybridsim_sweep::{Outcome, Point};
use hybridsim_workload::profile::{Profile, profile};
use hybridsim_workload::trace::{FormatEntry, open_with};
use std::path::{Path, PathBuf};

/// Caches tried unless others are named.
const CACHES: &str = "dm-cache,open-cas,open-cas-writeback";
/// Replacement policies whose curves are compared, beside those of the caches.
const POLICIES: [&str; 3] = ["lru", "arc", "s3-fifo"];
const PAGE_BYTES: u64 = 4096;
const SAMPLE_PAGES: usize = 1 << 20;
/// Unit in which the trace's footprint is laid out on a device.
const GRANULE_BYTES: u64 = 1 << 20;

#[derive(clap::Args)]
pub struct PlanArgs {
    /// The trace
    trace: PathBuf,
    /// A price table, as docs/how-to/plan.md shows; without it, assumed prices
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Most that a system may cost per year, devices by years of service and energy
    #[arg(long, value_name = "AMOUNT", value_parser = above_zero)]
    budget: Option<f64>,
    /// Longest 99th percentile of the latency, such as 5ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    p99: Option<u64>,
    /// Fewest years that flash must last
    #[arg(long, value_name = "YEARS", value_parser = above_zero)]
    life: Option<f64>,
    /// Share of the year in which the load is that of the trace
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    duty: f64,
    /// Capacity the data need; default: the trace's footprint
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    data: Option<u64>,
    /// Presets of caches to try, separated by commas; see docs/models/deployed-caches.md
    #[arg(long, value_name = "PRESET,PRESET", value_delimiter = ',', default_value = CACHES)]
    caches: Vec<String>,
    /// Set a key of all scenarios, such as workload.times='"after-completions"'; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Write plan.json and plan.html into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing results in the folder
    #[arg(long, requires = "out")]
    force: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

pub(super) fn above_zero(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    match number > 0.0 && number.is_finite() {
        true => Ok(number),
        false => Err("must be more than 0".to_owned()),
    }
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = above_zero(text)?;
    if share <= 1.0 { Ok(share) } else { Err("a share lies between 0 and 1".to_owned()) }
}

fn time(text: &str) -> Result<u64, String> {
    let ns = units::duration(text)?.as_ns();
    if ns > 0 { Ok(ns) } else { Err("must be more than 0".to_owned()) }
}

/// Plans.
pub fn plan(registry: &Registry, args: &PlanArgs) -> Result<(), Failure> {
    let prices = prices(args.prices.as_deref())?;
    let _folder = args.out.as_ref().map(|out| prepare(out, args.force)).transpose()?;
    let (profile, curves) = study(registry, args)?;
    let footprint = profile.footprint_bytes;
    if let Some(data) = args.data.filter(|data| *data < footprint) {
        let message = format!("--data {data}: the trace uses {footprint} bytes");
        return Err(Failure::usage(message));
    }
    let demand = Demand {
        data_bytes: args.data.unwrap_or(footprint).next_multiple_of(GRANULE_BYTES),
        written_bytes: profile.written_bytes,
        span_ns: if profile.has_times { profile.span_ns } else { 0 },
        duty: args.duty,
    };
    let bounds = Bounds { budget: args.budget, p99_ns: args.p99, life_years: args.life };
    let cut = first_cut(registry, &prices, &demand, &curves, &args.caches, &bounds);
    let cut = cut.map_err(Failure::usage)?;
    let outcomes = simulate(registry, args, &cut)?;
    let results: Vec<Result<&RunResults, String>> = outcomes.iter().map(result).collect();
    let failed = results.iter().filter(|result| result.is_err()).count();
    let count = results.len();
    let plan = Plan::new(cut, &results, &prices, demand, bounds);
    show(args, &plan)?;
    match failed {
        0 => Ok(()),
        _ => {
            let message = format!("{failed} of {count} simulations failed");
            Err(Failure::AfterResults(Exit::Points, message))
        }
    }
}

fn prices(path: Option<&Path>) -> Result<Prices, Failure> {
    let Some(path) = path else { return Ok(Prices::standard()) };
    let of = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    let text = text::read(path, text::SCENARIO_BYTES_MAX);
    let text = text.map_err(|error| of(error.to_string()))?;
    Prices::parse(&text, path.parent().unwrap_or(Path::new(""))).map_err(of)
}

/// The policies whose curves are compared: [`POLICIES`] and those of the caches.
fn policies(registry: &Registry, caches: &[String]) -> Result<Vec<Policy>, Failure> {
    let mut names = POLICIES.map(str::to_owned).to_vec();
    for preset in caches {
        let own = replacement_of(preset).map_err(Failure::usage)?;
        names.extend(own.filter(|own| !names.contains(own)));
    }
    let policy = |name: &String| {
        let entry = registry.find::<ReplacementEntry>(name)?;
        Some(Policy { entry, settings: Settings::default() })
    };
    Ok(names.iter().filter_map(policy).collect())
}

/// The trace's profile and its miss-ratio curves.
fn study(registry: &Registry, args: &PlanArgs) -> Result<(Profile, Curves), Failure> {
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    let options = args.reading.open_options(registry)?;
    let policies = policies(registry, &args.caches)?;
    let progress = Progress::new(args.progress, "reading");
    let mut on_progress = |fraction| {
        progress.reading(fraction);
    };
    let profiled = open_with(&formats, &args.trace, &options)
        .and_then(|mut reader| profile(&mut reader, &mut on_progress))?;
    let ask = Ask {
        page_bytes: PAGE_BYTES,
        policies,
        sizes: Vec::new(),
        pages_max: SAMPLE_PAGES,
        method: Method::Automatic,
        belady: false,
    };
    let open = || open_with(&formats, &args.trace, &options);
    let curves = hybridsim_mrc::curves(open, &ask, &mut on_progress);
    progress.finish();
    let curves = curves?;
    super::trace::warn(&args.trace, &curves.warnings);
    if profiled.requests == 0 {
        let message = format!("{}: there is no read or write to plan for", args.trace.display());
        return Err(Failure::Message(Exit::Trace, message));
    }
    Ok((profiled, curves))
}

/// Runs the candidates, as many at once as fit into memory.
fn simulate(
    registry: &Registry,
    args: &PlanArgs,
    cut: &FirstCut,
) -> Result<Vec<Option<Outcome>>, Failure> {
    let mut points: Vec<Point> = Vec::with_capacity(cut.candidates.len());
    for candidate in &cut.candidates {
        let text = format!("{}[workload]\nfit = true\n", candidate.scenario);
        let mut input = Input {
            source: SourceText { name: candidate.label(), text },
            base: PathBuf::new(),
            sets: args.sets.clone(),
            trace: Some(args.trace.clone()),
        };
        input.sets.extend(args.reading.key_options());
        for mut point in hybridsim_sweep::Plan::new(input).points_or_failures(registry)? {
            point.number = points.len();
            points.push(point);
        }
    }
    // A wrong key of --set is wrong in all of them.
    if let Some(problem) = points.first().and_then(|point| point.problem.clone())
        && points.iter().all(|point| point.problem.is_some())
    {
        return Err(Failure::usage(problem));
    }
    let outcomes = run_all(registry, &points, processors(), args.progress, true);
    if outcomes.iter().any(Option::is_none) {
        return Err(Failure::Message(Exit::Interrupted, "interrupted".to_owned()));
    }
    Ok(outcomes)
}

fn result(outcome: &Option<Outcome>) -> Result<&RunResults, String> {
    match outcome {
        Some(Outcome::Done(run)) => Ok(run),
        Some(Outcome::Failed(reason) | Outcome::Refused(reason)) => Err(reason.clone()),
        None => Err("interrupted".to_owned()),
    }
}

fn show(args: &PlanArgs, plan: &Plan) -> Result<(), Failure> {
    let json = pretty(plan);
    let saved = args.out.as_deref().map_or(Ok(()), |out| save(args, out, plan, &json));
    print_beside(saved, &if args.json { json } else { plan.terminal() })
}

fn save(args: &PlanArgs, out: &Path, plan: &Plan, json: &str) -> Result<(), Failure> {
    let file = args.trace.file_name().unwrap_or_default().to_string_lossy();
    write_file(out, "plan.json", json)?;
    write_file(out, "plan.html", &plan.html(&format!("Plan for {file}")))?;
    note(&format!("plan: {}", out.join("plan.html").display()));
    Ok(())
}
