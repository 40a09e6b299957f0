//! The command that converts parameter files of other simulators.

use super::output::{Exit, Failure, apart, note, print, write_path};
use clap::Subcommand;
use hybridsim_import::search_path::SearchPath;
use hybridsim_import::{
    ImportError, Imported, MqsimRequest, Override, Request, Trace, disksim, mqsim,
};
use std::path::{Path, PathBuf};
use std::{env, fs};

#[derive(Subcommand)]
pub enum ImportCommand {
    /// Convert a DiskSim 4 parameter file into a scenario, or the description of a drive into a
    /// preset
    Disksim(DisksimArgs),
    /// Convert MQSim's configuration of an SSD, with a scenario of its workload file, into a
    /// scenario, or alone into a preset
    Mqsim(MqsimArgs),
}

/// The file of a converted scenario.
#[derive(clap::Args)]
struct Output {
    /// Write the scenario here instead of printing it
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

#[derive(clap::Args)]
pub struct MqsimArgs {
    /// The configuration (ssdconfig.xml)
    config: PathBuf,
    /// The workload file (workload.xml)
    #[arg(short, long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// The IO_Scenario of the workload file, counted from 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "workload")]
    scenario: usize,
    #[command(flatten)]
    output: Output,
}

#[derive(clap::Args)]
pub struct DisksimArgs {
    /// The parameter file (.parv), or the description of a drive (.diskspecs)
    file: PathBuf,
    #[command(flatten)]
    output: Output,
    /// Search this folder for files that are not beside the one that names them; may be repeated
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Replay this trace instead of the synthetic workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The trace's format, where its content is ambiguous
    #[arg(long, value_name = "FORMAT", requires = "trace")]
    format: Option<String>,
    /// Change a parameter first, as on DiskSim's command line; may be repeated
    #[arg(
        long = "override",
        num_args = 3,
        value_names = ["COMPONENT", "PARAMETER", "VALUE"],
        allow_negative_numbers = true
    )]
    overrides: Vec<String>,
}

/// Converts a file.
pub fn run(command: &ImportCommand) -> Result<(), Failure> {
    match command {
        ImportCommand::Disksim(args) => from_disksim(args),
        ImportCommand::Mqsim(args) => {
            let name = |path: &Path| path.to_string_lossy().into_owned();
            let request = MqsimRequest {
                config: name(&args.config),
                workload: args.workload.as_deref().map(name),
                scenario: args.scenario,
                folder: folder_of(args.output.out.as_deref()).and_then(|_| env::current_dir().ok()),
            };
            let inputs = [&args.config].into_iter().chain(&args.workload);
            apart(inputs, args.output.out.as_ref())?;
            write(mqsim(&request, &mut SearchPath::default()), &args.output)
        }
    }
}

fn from_disksim(args: &DisksimArgs) -> Result<(), Failure> {
    apart([&args.file].into_iter().chain(&args.trace), args.output.out.as_ref())?;
    let overrides = args
        .overrides
        .chunks_exact(3)
        .map(|three| Override {
            component: three[0].clone(),
            parameter: three[1].clone(),
            value: three[2].clone(),
        })
        .collect();
    let trace = match &args.trace {
        Some(path) => Some(Trace {
            path: beside(path, args.output.out.as_deref())?,
            format: args.format.clone(),
        }),
        None => None,
    };
    let request = Request { file: args.file.to_string_lossy().into_owned(), overrides, trace };
    let mut folder = SearchPath { include: args.include.clone() };
    write(disksim(&request, &mut folder), &args.output)
}

fn write(imported: Result<Imported, ImportError>, output: &Output) -> Result<(), Failure> {
    let imported = imported.map_err(|error| Failure::usage(error.to_string()))?;
    for warning in &imported.warnings {
        note(&format!("warning: {warning}"));
    }
    let Some(out) = &output.out else { return print(&imported.text) };
    if out.exists() && !output.force {
        let message = format!("{} exists; add --force to replace it", out.display());
        return Err(Failure::usage(message));
    }
    write_path(out, &imported.text)?;
    let what = if imported.is_preset { "preset" } else { "scenario" };
    let count = imported.warnings.len();
    let end = if count == 1 { "" } else { "s" };
    note(&format!("{}: a {what} with {count} warning{end}", out.display()));
    Ok(())
}

/// The path of the trace relative to a scenario at `out`.
fn beside(trace: &Path, out: Option<&Path>) -> Result<String, Failure> {
    let unclear = |error: std::io::Error| {
        Failure::Message(Exit::Trace, format!("{}: {error}", trace.display()))
    };
    let path = match folder_of(out) {
        None => trace.to_owned(),
        Some(_) => fs::canonicalize(trace).map_err(unclear)?,
    };
    Ok(path.to_string_lossy().into_owned())
}

/// The folder of a scenario at `out`, where it is not the current one.
fn folder_of(out: Option<&Path>) -> Option<&Path> {
    out?.parent().filter(|folder| !folder.as_os_str().is_empty())
}
