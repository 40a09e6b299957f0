//! The commands for traces: check, info and convert.

use super::interrupt::on_interrupt;
use super::kv;
use super::output::{Exit, Failure, note, print, unwritable};
use super::progress::{Progress, When};
use hybridsim_config::check::Checker;
use hybridsim_config::diagnostic::{Diagnostics, SourceText};
use hybridsim_config::document::{self, Item, Table};
use hybridsim_config::param::{EntryChoice, Kind, Param};
use hybridsim_config::params::field;
use hybridsim_config::registry::Registry;
use hybridsim_report::json::pretty;
use hybridsim_simulation::state::NewFile;
use hybridsim_workload::native::Header;
use hybridsim_workload::profile;
use hybridsim_workload::record::{RecordReader, TraceError, Warning};
use hybridsim_workload::shape::volumes::VOLUME_BYTES_MAX;
use hybridsim_workload::trace::serving::{self, ServingTrace};
use hybridsim_workload::trace::{self, FormatEntry, OpenOptions, OpenTrace};
use hybridsim_workload::write::{self, ConvertError, WriterEntry};
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Options for opening a trace.
#[derive(clap::Args)]
pub struct OpenArgs {
    /// The trace, compressed or not; its format is detected from its content
    pub(super) file: PathBuf,
    /// The format, where the content is ambiguous: a name, or { kind = "name", ... } with options
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Leave out records that cannot be read, and report their number
    #[arg(long)]
    skip_bad_lines: bool,
    /// Show a progress bar
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub(super) progress: When,
}

#[derive(clap::Args)]
pub struct InfoArgs {
    #[command(flatten)]
    open: OpenArgs,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(clap::Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    open: OpenArgs,
    /// The file to write; its extension selects the format unless --to is given
    out: PathBuf,
    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// A note for the header of a native trace, such as command='tar xf'; may be repeated
    #[arg(long = "note", value_name = "KEY=TEXT")]
    notes: Vec<String>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::Message(Exit::Trace, error.to_string())
    }
}

/// The `--format` option has the syntax of a scenario's `workload.format`.
const FORMAT: &[Param] = &[Param::optional(
    "format",
    Kind::Entry("trace-format"),
    "The trace's format, with its options.",
)];

/// Reads an option that chooses an entry for the only parameter of `param`: a name, or a table with
/// parameters, as in scenarios.
pub(super) fn entry_option(
    registry: &Registry,
    param: &'static [Param],
    value: &str,
) -> Result<EntryChoice, Diagnostics> {
    let name = param[0].name;
    let is_table = value.trim_start().starts_with('{');
    let value = if is_table { value.to_owned() } else { format!("{value:?}") };
    let text = format!("{name} = {value}");
    let sources = vec![SourceText { name: format!("--{name}"), text }];
    let table: Table = match document::parse(&sources[0], 0) {
        Ok(table) => table,
        Err(list) => return Err(Diagnostics { sources, list }),
    };
    let mut checker = Checker::new(registry);
    let place = table.get(name).map(|item: &Item| item.span.clone());
    let settings = checker.settings(&table, &[param], &[], "", place.as_ref());
    match checker.problems.is_empty() {
        true => Ok(field(&settings, name)),
        false => Err(Diagnostics { sources, list: checker.problems }),
    }
}

/// Options for opening a trace. `format` has the syntax of a scenario's `workload.format`.
pub(super) fn open_options(
    registry: &Registry,
    format: Option<&str>,
    skip_bad_lines: bool,
) -> Result<OpenOptions, Failure> {
    let options = OpenOptions { skip_bad_lines, ..OpenOptions::default() };
    let Some(format) = format else { return Ok(options) };
    let choice = entry_option(registry, FORMAT, format)?;
    Ok(OpenOptions { format: Some(choice.name), settings: choice.settings, ..options })
}

impl OpenArgs {
    pub(super) fn options(&self, registry: &Registry) -> Result<OpenOptions, Failure> {
        open_options(registry, self.format.as_deref(), self.skip_bad_lines)
    }
}

fn open(registry: &Registry, args: &OpenArgs) -> Result<OpenTrace, Failure> {
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    let options = args.options(registry)?;
    Ok(trace::open_with(&formats, &args.file, &options)?)
}

/// Prints what was irregular about a trace, and which events of it were counted.
fn report(path: &Path, reader: &OpenTrace) {
    warn(path, reader.warnings());
    if let Some(choice) = reader.block_events().and_then(|events| events.note()) {
        note(&format!("{}: {choice}", path.display()));
    }
}

pub(super) fn warn(path: &Path, warnings: &[Warning]) {
    for warning in warnings {
        let times =
            if warning.count > 1 { format!(" ({} times)", warning.count) } else { String::new() };
        note(&format!(
            "warning: {}{}: {}{times}",
            path.display(),
            warning.location,
            warning.message
        ));
    }
}

/// Reads a trace to its end, which finds what is wrong with it, and says how much there was.
pub fn check(registry: &Registry, args: &CheckArgs) -> Result<(), Failure> {
    if let Some(trace) = serving(registry, &args.open)? {
        warn(&args.open.file, &trace.warnings);
        let (path, count) = (args.open.file.display(), trace.requests.len());
        return print(&format!("{path}: {count} requests as {}, read to the end", trace.format));
    }
    let mut reader = open(registry, &args.open)?;
    let progress = Progress::new(args.open.progress, "reading");
    let result = count(&mut reader, &progress);
    progress.finish();
    report(&args.open.file, &reader);
    let records = result?;
    let path = args.open.file.display();
    print(&format!("{path}: {records} records as {}, read to the end", reader.format.name))
}

/// Records up to the end of the trace.
fn count(reader: &mut OpenTrace, progress: &Progress) -> Result<u64, TraceError> {
    let (mut records, mut reported, mut batch) = (0, 0, Vec::new());
    loop {
        reader.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(records);
        }
        records += batch.len() as u64;
        if records - reported >= 65_536 {
            reported = records;
            let fraction = reader.progress();
            progress.reading(fraction);
        }
    }
}

/// The serving trace of `args`, if it is one: by its format, or by its content.
fn serving(registry: &Registry, args: &OpenArgs) -> Result<Option<ServingTrace>, Failure> {
    let skip = args.skip_bad_lines;
    let is_named =
        args.format.as_deref().map(|format| kv::serving_options(registry, Some(format), skip));
    match is_named {
        Some(Ok(options)) => Ok(Some(serving::read(&args.file, &options)?)),
        // The error of a format that is none is that of block traces.
        Some(Err(_)) => Ok(None),
        None => {
            let options = kv::serving_options(registry, None, skip)?;
            Ok(serving::open(&args.file, &options)?)
        }
    }
}

pub fn info(registry: &Registry, args: &InfoArgs) -> Result<(), Failure> {
    if let Some(trace) = serving(registry, &args.open)? {
        return kv::info(&args.open.file, &trace, args.json);
    }
    let mut reader = open(registry, &args.open)?;
    let progress = Progress::new(args.open.progress, "profiling");
    let result = profile::profile(&mut reader, &mut |fraction| {
        progress.reading(fraction);
    });
    progress.finish();
    warn(&args.open.file, reader.warnings());
    let profile = result?;
    if profile.volumes.iter().any(|volume| volume.extent_bytes > VOLUME_BYTES_MAX) {
        note(&format!(
            "warning: {}: addresses beyond 64 PiB are hardly addresses, and no run takes them; \
             name another format with --format, or `objects = \"dense\"` of a format with numbers \
             of objects",
            args.open.file.display()
        ));
    }
    let format = reader.format.name;
    let others: Vec<_> = reader
        .detection
        .others
        .iter()
        .map(|other| json!({ "reading": other.reading, "effect": other.effect }))
        .collect();
    if args.json {
        let document = json!({
            "file": args.open.file.display().to_string(),
            "format": format,
            "packing": reader.compression,
            "reading": reader.detection.reading,
            "guess": reader.detection.is_guess(),
            "evidence": reader.detection.evidence,
            "other_readings": others,
            "also_possible": reader.also,
            "profile": profile,
        });
        return print(&pretty(&document));
    }
    let packed = reader.compression.map_or_else(String::new, |packing| format!(", {packing}"));
    let mut out = format!("{:<20} {}{packed}\n", "format", reader.detection.reading);
    if reader.detection.is_guess() {
        out += &format!("{:<20} a guess: {}\n", "", reader.detection.evidence);
    }
    for other in &reader.detection.others {
        let label = "also possible";
        out += &format!("{label:<20} {}: {}\n", other.reading, other.effect);
    }
    for (label, value) in profile.rows() {
        out += &format!("{label:<20} {value}\n");
    }
    print(&out)
}

pub fn convert(registry: &Registry, args: &ConvertArgs) -> Result<(), Failure> {
    let entry = writer(registry, args)?;
    if args.out.exists() && !args.force {
        let message = format!("{} exists; add --force to replace it", args.out.display());
        return Err(Failure::usage(message));
    }
    let mut reader = open(registry, &args.open)?;
    let header =
        Header { has_times: reader.has_times(), notes: notes(&args.notes)?, ..Header::default() };
    let out = NewFile::at(&args.out);
    let unwritable = |error: std::io::Error| unwritable(&args.out, error);
    if out.partial() != args.out.as_path() {
        remove_at_interrupt(out.partial().to_owned());
    }
    let file = File::create(out.partial()).map_err(unwritable)?;
    let writer = (entry.create)(Box::new(BufWriter::new(file)), &header).map_err(unwritable)?;
    let progress = Progress::new(args.open.progress, "converting");
    let result = write::convert(&mut reader, writer, &mut |fraction| {
        progress.reading(fraction);
    });
    progress.finish();
    report(&args.open.file, &reader);
    // Half a trace under the right name would be taken for a whole one.
    let converted = result.map_err(|error| match error {
        ConvertError::Read(error) => error.into(),
        ConvertError::Write(error) => unwritable(error),
    })?;
    out.complete().map_err(unwritable)?;
    note(&format!(
        "{}: {} records as {}",
        args.out.display(),
        converted.records,
        entry.description.name
    ));
    if converted.left_out > 0 {
        note(&format!(
            "warning: {} records left out; the format has no way to say them",
            converted.left_out
        ));
    }
    if !entry.loses.is_empty() {
        note(&format!("the format does not keep: {}", entry.loses.join(", ")));
    }
    Ok(())
}

/// Ctrl-C ends the program without the half-written file at `partial`.
fn remove_at_interrupt(partial: PathBuf) {
    on_interrupt(move || {
        // A file that is complete stays: the program is about to end by itself.
        if std::fs::remove_file(&partial).is_ok() {
            note("interrupted: nothing was written");
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
    });
}

/// The writer named by `--to`, or by the file's ending.
fn writer(registry: &Registry, args: &ConvertArgs) -> Result<WriterEntry, Failure> {
    let found = match &args.to {
        Some(name) => registry.find::<WriterEntry>(name),
        None => registry.iter::<WriterEntry>().find(|entry| {
            args.out.extension().is_some_and(|extension| extension == entry.extension)
        }),
    };
    found.ok_or_else(|| {
        let known: Vec<String> = registry
            .iter::<WriterEntry>()
            .map(|entry| format!("{} (.{})", entry.description.name, entry.extension))
            .collect();
        let asked = args.to.clone().unwrap_or_else(|| args.out.display().to_string());
        Failure::usage(format!(
            "no format to write for `{asked}`; --to takes: {}",
            known.join(", ")
        ))
    })
}

fn notes(notes: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |note: &String| match note.split_once('=') {
        Some((key, text)) => Ok((key.to_owned(), text.to_owned())),
        None => Err(Failure::usage(format!("`--note {note}`: write it as key=text"))),
    };
    notes.iter().map(pair).collect()
}
