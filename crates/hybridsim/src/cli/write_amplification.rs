//! The command that counts flash operations without a clock.

use super::ReadingArgs;
use super::output::{Exit, Failure, apart, note, print, write_path};
use super::progress::{Progress, Steps, When};
use super::run::interrupt_flag;
use hybridsim_config::registry::Registry;
use hybridsim_report::chart;
use hybridsim_report::figures::{drive_writes_per_day, number, written};
use hybridsim_report::json::pretty;
use hybridsim_report::study::{Axis, Curve, Plot};
use hybridsim_simulation::memory;
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_simulation::run::RunProgress;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::state::PreconditionCache;
use hybridsim_simulation::write_amplification::{
    Counted, CurvePoint, Options, WriteAmplification, count,
};
use hybridsim_sweep::{Plan, Point, Vary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most rows of the table of a curve; the JSON document has all points.
const ROWS_MAX: usize = 16;

#[derive(clap::Args)]
pub struct WriteAmplificationArgs {
    /// The scenario file; - reads it from standard input
    scenario: PathBuf,
    /// Take the requests of this trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Set a scenario key, such as component.ssd.over_provisioning=0.28; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Count at each of these values of a scenario key, such as
    /// component.ssd.over_provisioning=0.07,0.28; repeated, at every combination
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    vary: Vec<String>,
    /// Draw write amplification over drive writes into this file, as SVG
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Precondition the SSD again instead of restoring its cached state
    #[arg(long)]
    no_cache: bool,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

/// Counts the flash operations of one scenario, or of it at several values.
pub fn run(registry: &Registry, args: &WriteAmplificationArgs) -> Result<(), Failure> {
    apart([&args.scenario].into_iter().chain(&args.trace), args.out.as_ref())?;
    match args.vary.is_empty() {
        true => one(registry, args),
        false => several(registry, args),
    }
}

fn cache(args: &WriteAmplificationArgs) -> Option<PreconditionCache> {
    PreconditionCache::standard().filter(|_| !args.no_cache)
}

fn one(registry: &Registry, args: &WriteAmplificationArgs) -> Result<(), Failure> {
    let mut input = Input::read(&args.scenario, &args.sets)?;
    input.trace.clone_from(&args.trace);
    input.sets.extend(args.reading.key_options());
    let scenario = Scenario::check(input, registry)?;
    let name = args.scenario.display();
    scenario.notes.iter().for_each(|text| note(&format!("note: {name}: {text}")));
    let (progress, interrupted) = (Progress::new(args.progress, &scenario.title), interrupt_flag());
    let mut on_progress = |now: &RunProgress| {
        progress.update(now);
        !interrupted.load(Ordering::Relaxed)
    };
    let options = Options { on_progress: Some(&mut on_progress), cache: cache(args) };
    let counted = count(&scenario, registry, options);
    progress.finish();
    let Counted { results, fault, .. } = counted?;
    print(&match args.json {
        true => pretty(&results),
        false => table(&results),
    })?;
    if let Some(out) = &args.out {
        draw(out, &[(String::new(), &results)]).map_err(Failure::after_results)?;
    }
    match fault {
        None => Ok(()),
        Some(fault) => {
            let message = format!("{}: {fault}", results.label.title);
            Err(Failure::AfterResults(Exit::of(&fault), message))
        }
    }
}

/// The counts at a point, with the reason if it ended early; or the reason why there are none.
type Outcome = Result<(WriteAmplification, Option<String>), String>;

/// Why a point failed, if it did.
fn error_of(outcome: &Outcome) -> Option<&String> {
    outcome.as_ref().map_or_else(Some, |(_, ended)| ended.as_ref())
}

fn several(registry: &Registry, args: &WriteAmplificationArgs) -> Result<(), Failure> {
    let vary: Result<Vec<Vary>, _> = args.vary.iter().map(|option| Vary::parse(option)).collect();
    let sets: Vec<String> = args.sets.iter().cloned().chain(args.reading.key_options()).collect();
    let traces: Vec<PathBuf> = args.trace.iter().cloned().collect();
    let plan = Plan::read(&args.scenario, &sets, &vary?, &traces)?;
    let keys: Vec<String> = plan.keys().into_iter().map(str::to_owned).collect();
    let points = plan.points(registry)?;
    let (steps, interrupted) = (Steps::new(args.progress, points.len()), interrupt_flag());
    let cache = cache(args);
    let largest = points.iter().map(|point| point.memory).max().unwrap_or(0).max(1);
    let fitting = memory::available().map_or(u64::MAX, |bytes| bytes / largest);
    let threads = processors().min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1);
    let outcomes = parallel_map(
        points.clone(),
        threads,
        |point| at_point(registry, point, cache.clone(), &interrupted),
        |_, _| steps.end(),
    );
    steps.finish();
    let rows: Vec<(&Point, &Outcome)> = points.iter().zip(&outcomes).collect();
    print(&match args.json {
        true => pretty(&document(&keys, &rows)),
        false => points_table(&keys, &rows),
    })?;
    if let Some(out) = &args.out {
        let done = rows.iter().filter_map(|(point, outcome)| match outcome {
            Ok((results, _)) => Some((point.name(), results)),
            Err(_) => None,
        });
        draw(out, &done.collect::<Vec<_>>()).map_err(Failure::after_results)?;
    }
    let failed = outcomes.iter().filter(|outcome| error_of(outcome).is_some()).count();
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::AfterResults(Exit::Interrupted, "interrupted".to_owned()));
    }
    match failed {
        0 => Ok(()),
        failed => {
            let of = outcomes.len();
            let message = format!("{failed} of {of} points failed; the output has the reasons");
            Err(Failure::AfterResults(Exit::Points, message))
        }
    }
}

fn at_point(
    registry: &Registry,
    point: Point,
    cache: Option<PreconditionCache>,
    interrupted: &AtomicBool,
) -> Outcome {
    if let Some(problem) = point.problem {
        return Err(problem);
    }
    let scenario = Scenario::check(point.input, registry).map_err(|list| list.to_string())?;
    let mut on_progress = |_: &RunProgress| !interrupted.load(Ordering::Relaxed);
    let options = Options { on_progress: Some(&mut on_progress), cache };
    let counted = count(&scenario, registry, options).map_err(|error| error.to_string())?;
    Ok((counted.results, counted.fault.map(|fault| fault.to_string())))
}

/// The document of several points: values by key, with `results` or `error`.
fn document(keys: &[String], rows: &[(&Point, &Outcome)]) -> Value {
    let row = |(point, outcome): &(&Point, &Outcome)| {
        let values: BTreeMap<&String, &String> = keys.iter().zip(&point.values).collect();
        match outcome {
            Ok((results, None)) => json!({ "values": values, "results": results }),
            Ok((results, Some(error))) => {
                json!({ "values": values, "results": results, "error": error })
            }
            Err(error) => json!({ "values": values, "error": error }),
        }
    };
    rows.iter().map(row).collect()
}

fn points_table(keys: &[String], rows: &[(&Point, &Outcome)]) -> String {
    let mut head: Vec<&str> =
        keys.iter().map(|key| key.rsplit('.').next().unwrap_or(key)).collect();
    head.extend([
        "write amplification",
        "drive writes",
        "other programs",
        "erases",
        "erases/block max",
        "life",
    ]);
    let mut lines: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    let (mut errors, mut warnings) = (Vec::new(), Vec::<String>::new());
    for (point, outcome) in rows {
        let mut line = point.values.clone();
        match outcome {
            Ok((results, _)) => {
                line.extend(cells(results));
                let named = |text: &String| format!("{}: {text}", point.name());
                warnings.extend(results.warnings.iter().map(named));
            }
            Err(_) => line.push("failed".to_owned()),
        }
        errors.extend(error_of(outcome).map(|error| format!("{}: {error}\n", point.name())));
        lines.push(line);
    }
    let warnings: String = warnings.iter().map(|text| format!("warning: {text}\n")).collect();
    aligned(&lines) + &warnings + &errors.concat()
}

fn cells(results: &WriteAmplification) -> [String; 6] {
    let wear = results.erase_count.map_or(0, |count| count.max);
    [
        results.write_amplification.map_or_else(|| "-".to_owned(), number),
        number(results.drive_writes),
        number((results.programs - results.host_programs) as f64),
        number(results.erases as f64),
        number(wear as f64),
        results.life_host_bytes.map_or_else(|| "-".to_owned(), written),
    ]
}

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let length =
        |line: &Vec<String>, at: usize| line.get(at).map_or(0, |cell| cell.chars().count());
    let widths: Vec<usize> = (0..columns)
        .map(|at| lines.iter().map(|line| length(line, at)).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        out += cells.join("  ").trim_end();
        out.push('\n');
    }
    out
}

fn table(results: &WriteAmplification) -> String {
    let whole = |count: u64| number(count as f64);
    let causes = |counts: &BTreeMap<&'static str, u64>| {
        let shown = counts.iter().filter(|(_, count)| **count > 0);
        shown.map(|(cause, count)| format!("{cause} {}", whole(*count))).collect::<Vec<_>>()
    };
    let parts = |total: u64, counts| match causes(counts).as_slice() {
        [] => whole(total),
        parts => format!("{} ({})", whole(total), parts.join(", ")),
    };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let none = || "-".to_owned();
    let mut rows = vec![
        ("write amplification", results.write_amplification.map_or_else(none, number)),
        ("drive writes", number(results.drive_writes)),
        ("requests", parts(results.requests, &results.requests_by_op)),
        ("pages programmed", parts(results.programs, &results.programs_by_cause)),
        ("pages read", parts(results.reads, &results.reads_by_cause)),
        ("blocks erased", parts(results.erases, &results.erases_by_cause)),
        ("victim utilisation", results.victim_utilisation.map_or_else(none, percent)),
    ];
    if let Some(application) = results.application {
        let store = application.write_amplification.map_or_else(none, number);
        let total = application.total_write_amplification.map_or_else(none, number);
        rows.insert(1, ("  of the store", store));
        rows.insert(2, ("  total", total));
    }
    let by_pages = results.page_write_amplification.map(number);
    if let Some(pages) = by_pages.filter(|pages| *pages != rows[0].1) {
        rows.insert(1, ("  by pages", pages));
    }
    if results.trimmed_pages > 0 {
        rows.push(("pages trimmed", whole(results.trimmed_pages)));
    }
    if let Some(count) = results.erase_count {
        let (min, max) = (whole(count.min), whole(count.max));
        let (mean, deviation) = (number(count.mean), number(count.stddev));
        let text = format!("min {min}, mean {mean}, max {max}, standard deviation {deviation}");
        rows.push(("erases of a block", text));
    }
    if let Some(bytes) = results.life_host_bytes {
        let daily = drive_writes_per_day(&results.constants, bytes).map_or_else(none, number);
        let text =
            format!("{} of host writes, {daily} drive writes a day for 5 years", written(bytes));
        rows.push(("life, evenly worn", text));
    }
    rows.push(("free blocks at the end", whole(results.free_blocks_end)));
    let label = &results.label;
    let mut out = format!("{}: {} on {}\n\n", label.title, label.trace, results.component);
    for (name, value) in rows {
        writeln!(out, "{name:<24}{value}").expect("a text takes everything");
    }
    let curve = joined(&results.curve);
    if curve.len() > 1 {
        let head = ["drive writes", "write amplification"].map(str::to_owned).to_vec();
        let rows =
            curve.into_iter().map(|(at, amplification)| vec![number(at), number(amplification)]);
        out += "\n";
        out += &aligned(&[head].into_iter().chain(rows).collect::<Vec<_>>());
    }
    for warning in &results.warnings {
        writeln!(out, "\nwarning: {warning}").expect("a text takes everything");
    }
    out
}

/// The curve with at most [`ROWS_MAX`] intervals: their ends, and the write amplification in them.
fn joined(curve: &[CurvePoint]) -> Vec<(f64, f64)> {
    let mut begin = 0.0;
    let groups = curve.chunks(curve.len().div_ceil(ROWS_MAX).max(1));
    let rows = groups.filter_map(|group| {
        let (mut programs, from) = (0.0, begin);
        for point in group {
            programs += point.write_amplification * (point.drive_writes - begin);
            begin = point.drive_writes;
        }
        (begin > from).then(|| (begin, programs / (begin - from)))
    });
    rows.collect()
}

fn draw(out: &Path, counted: &[(String, &WriteAmplification)]) -> Result<(), Failure> {
    let curve = |(name, results): &(String, &WriteAmplification)| {
        let points = results.curve.iter().map(|it| (it.drive_writes, it.write_amplification));
        let name = if name.is_empty() { &results.label.title } else { name };
        Curve::ours(name, points.collect())
    };
    let plot = Plot {
        title: "Write amplification over drive writes".to_owned(),
        caption: String::new(),
        x: Axis::linear("Drive writes", ""),
        y: Axis::linear("Write amplification", ""),
        curves: counted.iter().map(curve).collect(),
    };
    write_path(out, &chart::svg(&plot))?;
    note(&format!("picture: {}", out.display()));
    Ok(())
}
