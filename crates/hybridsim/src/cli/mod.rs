//! The command line: parses, dispatches and sets the exit code.

mod artefact;
mod cache;
mod calibrate;
mod cite;
mod cluster;
mod columns;
mod compare;
mod examples;
mod export;
mod generate;
mod import;
mod inspect;
mod interrupt;
mod kv;
mod mrc;
mod new;
mod optimize;
mod output;
mod plan;
mod progress;
mod reference;
mod reproduce;
mod run;
#[cfg(unix)]
mod serve;
mod surrogate;
mod sweep;
mod trace;
mod verify;
mod write_amplification;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Input;
use hybridsim_workload::trace::OpenOptions;
use std::path::{Path, PathBuf};

pub use output::{Exit, Failure};

/// Simulates storage that mixes media: hard disks, flash, and what combines them.
#[derive(Parser)]
#[command(name = "hybridsim", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate one scenario and print its results
    Run(RunArgs),
    /// Simulate several scenarios and compare their results
    Compare(CompareArgs),
    /// Run one scenario at every combination of some parameter values
    Sweep(sweep::SweepArgs),
    /// Count the flash operations of an SSD without simulating time: write amplification and wear
    WriteAmplification(write_amplification::WriteAmplificationArgs),
    /// Search for the values of some parameters that are best by some results
    Optimize(optimize::OptimizeArgs),
    /// Plan which devices and cache serve a trace: sizes, policies, life of flash, cost per year
    Plan(plan::PlanArgs),
    /// Key-value caches of language models on flash: hit ratio, wear, cost
    #[command(subcommand)]
    Kv(kv::KvCommand),
    /// Fit tables of latency and throughput to a system, for simulators that cannot run it
    Surrogate(Box<surrogate::SurrogateArgs>),
    /// Reproduce published figures and measurements of drives
    Reproduce(reproduce::ReproduceArgs),
    /// Fit the parameters of a flash device to measured latencies, or of a hard disk to a log
    Calibrate(calibrate::CalibrateArgs),
    /// Pack results with scenarios, traces and a script that reproduces them, for a publication
    Artefact(artefact::ArtefactArgs),
    /// Print what a publication that used the program should cite
    Cite(cite::CiteArgs),
    /// Serve a simulated system as a network block device to real programs
    #[cfg(unix)]
    Serve(serve::ServeArgs),
    /// Check a scenario without running it and report all problems
    Check(CheckArgs),
    /// Draw a scenario's system as a diagram (SVG)
    Draw(DrawArgs),
    /// Check, profile and convert traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Convert parameter files of other simulators into scenarios
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// List the categories of entries, or the entries of one category
    List(ListArgs),
    /// Explain a scenario key, an entry, a preset, a key of results, or a word of another tool
    Explain(ExplainArgs),
    /// Print the scenario format as JSON Schema, for editors
    Schema,
    /// Run random systems under random workloads with all checks enabled
    Fuzz(FuzzArgs),
    /// Check the installed program against closed forms and reference simulators
    Verify(verify::VerifyArgs),
    /// Write a commented scenario to start from, and the schema for editors beside it
    New(new::NewArgs),
    /// Write the example scenarios and recorded traces into a folder
    Examples(examples::ExamplesArgs),
    /// Show or clear the cached states of preconditioned devices
    Cache(cache::CacheArgs),
    /// Print a completion script for a shell
    Completions(generate::CompletionsArgs),
    /// Write manual pages
    Man(generate::ManArgs),
}

/// Options of the commands that simulate.
#[derive(Args, Clone)]
struct SimulateArgs {
    /// Replay this trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Set a scenario key, such as component.disk.rpm='"10000rpm"'; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Refused: `--set run.seed=` is the way
    #[arg(long, value_name = "NUMBER", hide = true)]
    seed: Option<String>,
    /// Also show this key of the results, such as components.ssd.erases; may be repeated
    #[arg(long = "column", value_name = "PATH")]
    columns: Vec<String>,
    /// Write results, the run over time, the resolved scenario and a report into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing results in the folder
    #[arg(long, requires = "out")]
    force: bool,
    /// Also write every request with its latency breakdown into requests.csv in the folder
    #[arg(long, requires = "out")]
    requests: bool,
    /// Also write the activity of every component in this window of simulated time into
    /// timeline.json in the folder, for ui.perfetto.dev
    #[arg(long, value_name = "FROM..TO", requires = "out", value_parser = export::Window::parse)]
    timeline: Option<export::Window>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Verify that every read returns valid data
    #[arg(long)]
    verify: bool,
    /// With several workloads: also run each alone, and report how much slower it is with the
    /// others
    #[arg(long)]
    slowdown: bool,
    /// Precondition devices again instead of restoring cached states
    #[arg(long)]
    no_cache: bool,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = progress::When::Auto)]
    progress: progress::When,
}

impl SimulateArgs {
    /// The scenario at `path` with the options that stand for its keys.
    fn input(&self, path: &Path) -> Result<Input, Failure> {
        let mut input = Input::read(path, &self.sets)?;
        input.trace.clone_from(&self.trace);
        let verify = self.verify.then(|| "run.verify=true".to_owned());
        input.sets.extend(self.reading.key_options().chain(verify));
        Ok(input)
    }
}

/// Options for reading and replaying a trace.
#[derive(Args, Clone)]
struct ReadingArgs {
    /// The trace's format, where its content is ambiguous: a name, or { kind = "name", ... }
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Make the trace fit: map its addresses onto the device, replay it in a closed loop of one
    /// request if it has no times
    #[arg(long)]
    fit: bool,
    /// Leave out records of the trace that cannot be read, and report their number
    #[arg(long)]
    skip_bad_lines: bool,
}

impl ReadingArgs {
    /// The options with which the command itself opens the trace.
    fn open_options(&self, registry: &Registry) -> Result<OpenOptions, Failure> {
        trace::open_options(registry, self.format.as_deref(), self.skip_bad_lines)
    }

    fn key_options(&self) -> impl Iterator<Item = String> + use<> {
        let flags = [
            (self.fit, "workload.fit=true"),
            (self.skip_bad_lines, "workload.skip_bad_lines=true"),
        ];
        let format = self.format.as_ref().map(|format| {
            let is_table = format.trim_start().starts_with('{');
            let value = if is_table { format.clone() } else { format!("{format:?}") };
            format!("workload.format={value}")
        });
        let given = flags.into_iter().filter(|(given, _)| *given);
        given.map(|(_, set)| set.to_owned()).chain(format)
    }
}

#[derive(Args)]
struct RunArgs {
    /// The scenario file; - reads it from standard input
    scenario: PathBuf,
    /// Write the system's state at the end of the run into this file
    #[arg(long, value_name = "FILE")]
    save_state: Option<PathBuf>,
    /// Start from the state in this file, saved from the same system
    #[arg(long, value_name = "FILE")]
    load_state: Option<PathBuf>,
    /// Let the faults in this file occur, a list `[[run.faults]]` as `serve --record` writes it, in
    /// place of those of the scenario
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    #[command(flatten)]
    simulate: SimulateArgs,
}

#[derive(Args)]
struct CompareArgs {
    /// The scenario files
    #[arg(required = true, num_args = 1..)]
    scenarios: Vec<PathBuf>,
    /// Run every scenario at this many seeds, its own and those after it, and show means with
    /// confidence intervals and which differences from the first scenario are within noise
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1000),
          conflicts_with_all = ["requests", "timeline", "slowdown"])]
    seeds: u64,
    /// Runs at a time; default: the number of processors, and one for classes in Python
    #[arg(short, long, value_name = "COUNT", value_parser = at_least_one)]
    jobs: Option<usize>,
    #[command(flatten)]
    simulate: SimulateArgs,
}

#[derive(Args)]
struct CheckArgs {
    /// The scenario files
    #[arg(required = true, num_args = 1..)]
    scenarios: Vec<PathBuf>,
    /// Set a scenario key first; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print the resolved scenario, with all defaults and presets expanded
    #[arg(long)]
    resolved: bool,
}

#[derive(Args)]
struct DrawArgs {
    /// The scenario file; - reads it from standard input
    scenario: PathBuf,
    /// Set a scenario key first; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Write the diagram into this file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Subcommand)]
enum TraceCommand {
    /// Read a trace to its end and report all problems
    Check(trace::CheckArgs),
    /// Profile a trace: operation mix, request sizes, footprint, locality
    Info(trace::InfoArgs),
    /// Convert a trace to the native format or a common text format
    Convert(trace::ConvertArgs),
    /// Compute miss-ratio curves: the miss ratio by cache size and replacement policy
    Mrc(mrc::MrcArgs),
}

#[derive(Args)]
struct ListArgs {
    /// A category, such as component, ftl, scheduler, generator, trace-format, preset
    category: Option<String>,
}

#[derive(Args)]
struct ExplainArgs {
    /// A key (rpm, host.queue_depth), an entry (hard-disk, greedy), a category (ftl), a preset
    /// (sata-ssd), a key of results (p99), or a word such as WAF, iodepth or konanki
    key: String,
}

#[derive(Args)]
struct FuzzArgs {
    /// The first seed; a seed always gives the same system
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of systems
    #[arg(long, default_value_t = 100)]
    runs: u64,
}

/// Runs the command line `args` (program name first) with the entries of `registry`; returns the
/// exit code.
pub fn run_with(registry: &Registry, args: impl IntoIterator<Item = std::ffi::OsString>) -> u8 {
    let args: Vec<std::ffi::OsString> = args.into_iter().collect();
    let wants_json = args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let printed = output::printed(error.print());
            // Help and version are not failures.
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                return printed.map_or_else(|failure| output::report(&failure, false), |()| 0);
            }
            if wants_json {
                let message = error.to_string();
                let message = message.trim_end().trim_start_matches("error: ");
                output::document(Exit::Usage, message, serde_json::json!([]));
            }
            return Exit::Usage as u8;
        }
    };
    match dispatch(registry, cli.command) {
        Ok(()) => 0,
        Err(failure) => output::report(&failure, wants_json),
    }
}

/// Reads a count above 0.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "must be at least 1".to_owned())
}

fn dispatch(registry: &Registry, command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::single(registry, args),
        Command::Compare(args) if args.seeds > 1 => compare::at_seeds(registry, &args),
        Command::Compare(args) => {
            let kind = run::Kind::Compare(compare::jobs(registry, &args));
            run::simulate(registry, &args.scenarios, &args.simulate, kind)
        }
        Command::Sweep(args) => sweep::sweep(registry, &args),
        Command::WriteAmplification(args) => write_amplification::run(registry, &args),
        Command::Optimize(args) => optimize::optimize(&args),
        Command::Plan(args) => plan::plan(registry, &args),
        Command::Kv(kv::KvCommand::Plan(args)) => kv::plan(registry, &args),
        Command::Kv(kv::KvCommand::Generate(args)) => kv::generate(registry, &args),
        Command::Surrogate(args) => surrogate::run(registry, &args),
        Command::Reproduce(args) => reproduce::reproduce(registry, &args),
        Command::Calibrate(args) => calibrate::run(registry, &args),
        Command::Artefact(args) => artefact::artefact(registry, &args),
        Command::Cite(args) => cite::cite(registry, &args),
        #[cfg(unix)]
        Command::Serve(args) => serve::serve(registry, &args),
        Command::Check(args) => inspect::check(registry, &args),
        Command::Draw(args) => inspect::draw(registry, &args),
        Command::Trace(TraceCommand::Check(args)) => trace::check(registry, &args),
        Command::Trace(TraceCommand::Info(args)) => trace::info(registry, &args),
        Command::Trace(TraceCommand::Convert(args)) => trace::convert(registry, &args),
        Command::Trace(TraceCommand::Mrc(args)) => mrc::run(registry, &args),
        Command::Import(command) => import::run(&command),
        Command::List(args) => inspect::list(registry, args.category.as_deref()),
        Command::Explain(args) => inspect::explain(registry, &args.key),
        Command::Schema => inspect::schema(registry),
        Command::Fuzz(args) => run::fuzz(registry, args.seed, args.runs),
        Command::Verify(args) => verify::verify(registry, &args),
        Command::New(args) => new::new(registry, &args),
        Command::Examples(args) => examples::examples(&args),
        Command::Cache(args) => cache::cache(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(registry, &args),
    }
}
