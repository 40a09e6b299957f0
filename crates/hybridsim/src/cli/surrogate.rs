//! The command that writes a system as a table for other simulators.

use super::output::{Exit, Failure, apart, note, print_beside, probe, write_path};
use super::progress::{Progress, When};
use super::run::end_at_interrupt;
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_simulation::parallel::processors;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::state::PreconditionCache;
use hybridsim_surrogate::{Access, Axes, DeviceState, FitError, FitOptions, fit, terminal};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

#[derive(clap::Args)]
pub struct SurrogateArgs {
    /// The scenario file; its workload is ignored; - reads it from standard input
    scenario: PathBuf,
    /// Set a scenario key, such as component.ssd.over_provisioning=0.28; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Write the tables into this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    force: bool,
    /// States of the devices: as-given, fresh (filled once), steady (overwritten at random),
    /// cache-full (written in order until the rate falls)
    #[arg(long, value_name = "STATE,STATE", value_delimiter = ',', default_value = "as-given",
          value_parser = DeviceState::parse)]
    states: Vec<DeviceState>,
    /// Addresses follow one another, those of reads and of writes apart, instead of being random
    #[arg(long)]
    sequential: bool,
    /// Sizes of requests: least, most, and others to begin with
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', default_value = "4KiB,64KiB,1MiB",
          value_parser = units::bytes)]
    sizes: Vec<u64>,
    /// Shares of reads: least, most, and others to begin with
    #[arg(
        long,
        value_name = "SHARE,SHARE",
        value_delimiter = ',',
        default_value = "0,0.05,0.5,0.95,1"
    )]
    read_shares: Vec<f64>,
    /// Requests outstanding in closed loops: least, most, and others to begin with
    #[arg(long, value_name = "COUNT,COUNT", value_delimiter = ',', default_value = "1,8,32",
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    depths: Vec<u64>,
    /// Rates of open loops, as parts of the throughput at the largest depth
    #[arg(long, value_name = "SHARE,SHARE", value_delimiter = ',', default_value = "0.1,0.5,0.85")]
    utilizations: Vec<f64>,
    /// Most knots of each table, which grows until its errors between knots are small
    #[arg(long, value_name = "COUNT", default_value_t = 600,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    knots: u32,
    /// Requests of each simulation, for sizes up to 4 KiB; of others a part that falls with the
    /// square root of the size
    #[arg(long, value_name = "COUNT", default_value_t = 40_000,
          value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    requests: u64,
    /// Loads outside the fit, drawn at random, that validate each table
    #[arg(long, value_name = "COUNT", default_value_t = 40,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    validation: u32,
    /// Seed of the loads
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Print the tables as JSON instead of the errors
    #[arg(long)]
    json: bool,
    /// Precondition devices again instead of restoring cached states
    #[arg(long)]
    no_cache: bool,
    /// Simulations at once; default: the number of processors
    #[arg(long, value_name = "COUNT", value_parser = super::at_least_one)]
    jobs: Option<usize>,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

/// Fits the tables and writes them.
pub fn run(registry: &Registry, args: &SurrogateArgs) -> Result<(), Failure> {
    if let Some(out) = args.out.as_ref().filter(|out| out.is_file() && !args.force) {
        let message = format!("{} exists; add --force to replace it", out.display());
        return Err(Failure::usage(message));
    }
    apart([&args.scenario], args.out.as_ref())?;
    args.out.iter().try_for_each(|out| probe(out))?;
    let scenario = Scenario::check_system(Input::read(&args.scenario, &args.sets)?, registry)?;
    let name = args.scenario.display();
    scenario.notes.iter().for_each(|text| note(&format!("note: {name}: {text}")));
    let options = FitOptions {
        states: args.states.clone(),
        access: if args.sequential { Access::Sequential } else { Access::Random },
        axes: Axes {
            read_share: args.read_shares.clone(),
            bytes: args.sizes.clone(),
            depth: args.depths.clone(),
            utilization: args.utilizations.clone(),
        },
        requests: args.requests,
        knots_max: args.knots as usize,
        validation: args.validation as usize,
        seed: args.seed,
        jobs: args.jobs.unwrap_or_else(processors),
        cache: PreconditionCache::standard().filter(|_| !args.no_cache),
    };
    let is_done = end_at_interrupt(args.json, "interrupted; nothing was written");
    let progress = Progress::new(args.progress, "simulating");
    let most = 2 * options.states.len() * (2 * options.knots_max + 2 * options.validation);
    let fitted = fit(&scenario, registry, &options, &mut |done| {
        progress.reading(Some(done as f64 / most as f64))
    });
    progress.finish();
    let fitted = fitted.map_err(|error| match error {
        FitError::Unsuitable(message) => Failure::usage(format!("{name}: {message}")),
        FitError::Failed(message) => Failure::Message(Exit::Run, format!("{name}: {message}")),
    })?;
    is_done.store(true, Ordering::Relaxed);
    // In one line: indented, each number would take a line.
    let document = serde_json::to_string(&fitted).expect("tables have only plain values") + "\n";
    let saved = args.out.as_ref().map_or(Ok(()), |out| write_path(out, &document));
    print_beside(saved, &if args.json { document } else { terminal(&fitted) })
}
