//! The command for searches, which the Python package does (`hybridsim.optimize`).

use super::ReadingArgs;
use super::cluster::{ended, python, without_python};
use super::output::{Exit, Failure};
use hybridsim_sweep::{Values, Vary};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

#[derive(clap::Args)]
pub struct OptimizeArgs {
    /// The scenario
    scenario: PathBuf,
    /// Values of a key, such as component.ssd.ftl=page,dftl, or a range, such as 0.07..0.28 or
    /// log:16MiB..1GiB; may be repeated
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    vary: Vec<String>,
    /// A result by its path, such as latency_ns.all.p99, to minimise, to maximise (:max) or to
    /// bring close to a number (:1.5); or cost; several give a Pareto front
    #[arg(long = "objective", value_name = "PATH", required = true)]
    objectives: Vec<String>,
    /// A bound, such as totals.write_amplification<=1.5; may be repeated
    #[arg(long = "constraint", value_name = "PATH<=NUMBER")]
    constraints: Vec<String>,
    /// The price of a varied key or a result, a number or such as 0.08/GiB; the sum is `cost`
    #[arg(long = "price", value_name = "PATH=PRICE")]
    prices: Vec<String>,
    /// Combinations to try in all, those of earlier calls with the same folder included
    #[arg(long, value_name = "COUNT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// First simulate so many requests, and go on with the better half only; may be repeated
    #[arg(long = "part", value_name = "REQUESTS")]
    parts: Vec<u64>,
    /// Judge by the mean over this many seeds
    #[arg(long, value_name = "COUNT")]
    seeds: Option<u64>,
    /// Set a scenario key in every combination; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Replay this trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Store trials and points in this folder and resume from it; writes search.csv and search.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run the points on the Dask cluster whose scheduler has this address
    #[arg(long, value_name = "ADDRESS")]
    dask: Option<String>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// Searches.
pub fn optimize(args: &OptimizeArgs) -> Result<(), Failure> {
    let vary: Result<Vec<Vary>, _> = args.vary.iter().map(|option| Vary::parse(option)).collect();
    let vary: Vec<Value> = vary?.iter().map(varied).collect();
    let sets: Vec<String> = args.sets.iter().cloned().chain(args.reading.key_options()).collect();
    let request = json!({
        "scenario": args.scenario,
        "vary": vary,
        "objectives": args.objectives,
        "constraints": args.constraints,
        "prices": args.prices,
        "trials": args.trials,
        "parts": args.parts,
        "seeds": args.seeds,
        "sets": sets,
        "trace": args.trace,
        "out": args.out,
        "dask": args.dask,
        "json": args.json,
    });
    let mut child = python("hybridsim._optimize", "optimize", "optimize")?
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| without_python("optimize", "optimize", &error))?;
    let stdin = child.stdin.take();
    if let Some(mut stdin) = stdin {
        // A process that has ended reports why itself.
        let _ = stdin.write_all(request.to_string().as_bytes());
    }
    let status = child.wait()?;
    let failed = |exit| Err(Failure::AfterResults(exit, "the search failed".to_owned()));
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => failed(Exit::Usage),
        Some(130) => failed(Exit::Interrupted),
        _ => Err(ended("optimize", "optimize", status)),
    }
}

/// A key with a list of values or the ends of a range.
fn varied(vary: &Vary) -> Value {
    match &vary.values {
        Values::List(values) => json!([vary.key, values]),
        Values::Range(range) => {
            json!([vary.key, range.text(range.from), range.text(range.to), range.log])
        }
    }
}
