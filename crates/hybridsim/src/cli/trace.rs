//! The commands that look at traces: info and convert.

use super::output::{Exit, Failure, note, print};
use super::progress::{Progress, When};
use crate::scenario::check::Checker;
use crate::scenario::diagnostic::{Diagnostics, SourceText};
use crate::scenario::document::{self, Item, Table};
use hybridsim_engine::SimTime;
use hybridsim_engine::param::{Kind, Param, Settings};
use hybridsim_engine::registry::Registry;
use hybridsim_workload::profile;
use hybridsim_workload::record::{RecordReader, TraceError, Warning};
use hybridsim_workload::trace::{self, FormatEntry, OpenOptions, OpenTrace};
use serde_json::json;
use std::path::{Path, PathBuf};

/// How a trace is opened.
#[derive(clap::Args)]
pub struct OpenArgs {
    /// The trace; compressed or not, its format is found by content
    file: PathBuf,
    /// The format, where content leaves a doubt: a name, or { kind = "name", ... } with options
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    progress: When,
}

#[derive(clap::Args)]
pub struct InfoArgs {
    #[command(flatten)]
    open: OpenArgs,
    /// Print one JSON document instead of rows
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    open: OpenArgs,
    /// The file to write; its ending chooses the format unless --to does
    out: PathBuf,
    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// A note for the header of a native trace, such as command='tar xf'; may be repeated
    #[arg(long = "note", value_name = "KEY=TEXT")]
    notes: Vec<String>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::Message(Exit::Trace, error.to_string())
    }
}

/// The `--format` option means what a scenario's `workload.format` means.
const FORMAT: &[Param] = &[Param::optional(
    "format",
    Kind::Plug("trace-format"),
    "The trace's format, with its options.",
)];

fn format_settings(registry: &Registry, format: &str) -> Result<Settings, Diagnostics> {
    let is_table = format.trim_start().starts_with('{');
    let value = if is_table { format.to_owned() } else { format!("{format:?}") };
    let text = format!("format = {value}");
    let sources = vec![SourceText { name: "--format".to_owned(), text }];
    let table: Table = match document::parse(&sources[0], 0) {
        Ok(table) => table,
        Err(list) => return Err(Diagnostics { sources, list }),
    };
    let mut checker = Checker { registry, problems: Vec::new() };
    let place = table.get("format").map(|item: &Item| item.span.clone());
    let settings = checker.settings(&table, &[FORMAT], &[], "", place.as_ref());
    match checker.problems.is_empty() {
        true => Ok(settings),
        false => Err(Diagnostics { sources, list: checker.problems }),
    }
}

fn open(registry: &Registry, args: &OpenArgs) -> Result<OpenTrace, Failure> {
    let mut options = OpenOptions { reorder_records: 0, ..OpenOptions::default() };
    if let Some(format) = &args.format {
        let settings = format_settings(registry, format)?;
        let plug = settings.plug("format");
        options.format = Some(plug.name.clone());
        options.settings = plug.settings.clone();
    }
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    Ok(trace::open_with(&formats, &args.file, &options)?)
}

fn warn(path: &Path, warnings: &[Warning]) {
    for warning in warnings {
        let times =
            if warning.count > 1 { format!(" ({} times)", warning.count) } else { String::new() };
        note(&format!("warning: {}{}: {}{times}", path.display(), warning.place, warning.message));
    }
}

pub fn info(registry: &Registry, args: &InfoArgs) -> Result<(), Failure> {
    let mut reader = open(registry, &args.open)?;
    let progress = Progress::new(args.open.progress, "profiling");
    let result = profile::profile(&mut reader, &mut |fraction| {
        progress.update(fraction, 0, SimTime::ZERO);
    });
    progress.finish();
    warn(&args.open.file, reader.warnings());
    let profile = result?;
    let format = reader.format.name;
    if args.json {
        let document = json!({
            "file": args.open.file.display().to_string(),
            "format": format,
            "packing": reader.packing,
            "also_possible": reader.also,
            "profile": profile,
        });
        return print(&serde_json::to_string_pretty(&document).expect("plain data is JSON"));
    }
    let packed = reader.packing.map_or_else(String::new, |packing| format!(", {packing}"));
    let mut out = format!("{:<20} {format}{packed}\n", "format");
    for (label, value) in profile.rows() {
        out += &format!("{label:<20} {value}\n");
    }
    print(&out)
}

pub fn convert(_registry: &Registry, _args: &ConvertArgs) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
