//! Reads DiskSim 4 parameter files, its MEMS and SSD models included, and configurations of MQSim,
//! and writes scenarios.
//!
//! [`disksim`] reads files through [`FileSource`] and returns a commented TOML scenario with a list
//! of what is not supported. One table per DiskSim block ([`TABLES`]) maps its parameters.

mod cache_controller;
mod components;
mod disk;
mod indexed;
mod mechanics;
mod mems;
mod model;
mod mqsim;
mod parse;
mod queue;
pub mod search_path;
mod simple;
mod source;
mod ssd;
mod syntax;
mod system;
mod table;
mod topology;
mod workload;
mod zoned;

pub use model::Override;
pub use mqsim::{MqsimRequest, mqsim};
pub use queue::{POLICIES, Policy};
pub use source::{FileSource, ImportError};
pub use table::{Conversion, ParameterRow, ParameterTable};
pub use workload::Trace;

use model::Model;
use parse::SourceReader;
use source::{LocatedError, Result, SourceLocation, quote};
use std::fmt::Write;
use syntax::Block;
use table::{ImportLog, TomlTable, string, wrap};

/// The tables of all blocks, in the order of the DiskSim manual.
pub const TABLES: &[ParameterTable] = &[
    workload::GLOBAL,
    workload::IOSIM,
    workload::IOMAP,
    system::DRIVER,
    queue::QUEUE,
    queue::DRIVE_QUEUE,
    topology::BUS,
    topology::CONTROLLER,
    cache_controller::CACHE_MEMORY,
    cache_controller::CACHE_DEVICE,
    disk::DISK,
    mechanics::DM_DISK,
    mechanics::MECHANICS,
    zoned::LAYOUT,
    zoned::ZONE,
    indexed::LAYOUT,
    simple::SIMPLE,
    mems::MEMS,
    ssd::SSD,
    system::LOGORG,
    system::SYNCSET,
    workload::PROCESSES,
    workload::SYNTHIO,
    workload::SYNTHGEN,
];

/// Kinds of blocks that do not describe the system.
const IGNORED: &[&str] = &[workload::STATS];

/// Kinds of blocks that are converted without a table of their own.
const KNOWN_ELSEWHERE: &[&str] = &["disksim_syncset"];

/// A system to import.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The parameter file, as [`FileSource::read`] takes it.
    pub file: String,
    /// Changes of parameters, as on DiskSim's command line.
    pub overrides: Vec<Override>,
    /// The trace to replay instead of the synthetic workload.
    pub trace: Option<Trace>,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A scenario, or the keys of a component.
    pub text: String,
    /// Whether `text` is a preset: the file describes a drive without a system.
    pub is_preset: bool,
    /// The features that are not supported, as `file:line:column: sentence`.
    pub warnings: Vec<String>,
}

/// Imports a DiskSim 4 parameter file. A file without a topology becomes a preset of the drive it
/// describes.
///
/// # Errors
/// The first error in the file, with its location and what was expected.
pub fn disksim(request: &Request, files: &mut dyn FileSource) -> Result<Imported, ImportError> {
    let mut reading = SourceReader::new(&mut *files);
    let model = read(request, &mut reading);
    let names = std::mem::take(&mut reading.names);
    let mut log = ImportLog { warnings: Vec::new(), files: names };
    let text = model.and_then(|model| {
        let text = match &model.topology {
            Some(_) => scenario(request, &model, files, &mut log).map(|text| (text, false)),
            None => preset(request, &model, files, &mut log).map(|text| (text, true)),
        }?;
        Ok(text)
    });
    let (text, is_preset) = text.map_err(|trouble| trouble.named(&log.files))?;
    let of = "a DiskSim 4 parameter file";
    let mut whole = heading(of, &request.file, is_preset, &log.warnings);
    whole += &text;
    Ok(Imported { text: whole, is_preset, warnings: log.warnings })
}

fn read(request: &Request, reading: &mut SourceReader<'_>) -> Result<Model> {
    let statements = reading.statements(&request.file)?;
    let mut model = Model::read(statements)?;
    for change in &request.overrides {
        model.apply(change, reading)?;
    }
    Ok(model)
}

fn heading(what: &str, file: &str, is_preset: bool, warnings: &[String]) -> String {
    let file = file.rsplit('/').next().unwrap_or(file).replace(char::is_control, "?");
    let mut out = match is_preset {
        true => format!("# The drive of {file}\n#\n"),
        false => format!("# {file}\n#\n"),
    };
    out += &format!("# Imported from {what}; comments name the source of every value.\n");
    if warnings.is_empty() {
        out += "# All parameters are supported.\n";
    } else {
        out += "#\n# Not supported, or only approximately:\n";
        for warning in warnings {
            // Without the folder, which depends on the machine.
            let short = warning.split_once(": ").map_or_else(
                || warning.clone(),
                |(at, rest)| format!("{}: {rest}", at.rsplit('/').next().unwrap_or(at)),
            );
            for (at, line) in wrap(&short.replace(char::is_control, "?"), 94).iter().enumerate() {
                let lead = if at == 0 { "- " } else { "  " };
                writeln!(out, "# {lead}{line}").expect("text grows");
            }
        }
    }
    out
}

fn scenario(
    request: &Request,
    model: &Model,
    files: &mut dyn FileSource,
    log: &mut ImportLog,
) -> Result<String> {
    let top = model.topology.as_ref().expect("the caller has seen it");
    let system = system::build(model, top, files, log)?;
    let workload = match &request.trace {
        Some(trace) => Some(workload::replay(model, trace, &system, log)?),
        None => workload::synthetic(model, &system, log)?,
    };
    let mut run = TomlTable::default();
    workload::run(model, &mut run, log)?;
    check_kinds(model, log);
    let stem = request.file.rsplit('/').next().unwrap_or(&request.file);
    let stem = stem.strip_suffix(".parv").unwrap_or(stem);
    let mut out = format!("title = {}\nsystem = {}\n", string(stem), string(&system.top));
    match workload {
        Some(lines) => section(&mut out, "workload", &lines),
        None => {
            out += "\n# The parameter file has no synthetic workload: give a trace with --trace.\n";
        }
    }
    section(&mut out, "host", &system.host);
    section(&mut out, "run", &run);
    for part in &system.parts {
        section(&mut out, &format!("component.{}", part.name), &part.lines);
    }
    Ok(out)
}

fn section(out: &mut String, name: &str, lines: &TomlTable) {
    write!(out, "\n[{name}]\n").expect("text grows");
    lines.render(out);
}

/// Warns of blocks of unknown kinds.
fn check_kinds(model: &Model, log: &mut ImportLog) {
    for block in &model.blocks {
        let known = TABLES.iter().any(|table| table.kind == block.kind)
            || IGNORED.contains(&block.kind.as_str())
            || KNOWN_ELSEWHERE.contains(&block.kind.as_str());
        if !known {
            let message = format!("a block of kind {} is not supported", quote(&block.kind));
            log.warn(block.location, message);
        }
    }
}

fn preset(
    request: &Request,
    model: &Model,
    files: &mut dyn FileSource,
    log: &mut ImportLog,
) -> Result<String> {
    let drives: Vec<&Block> =
        topology::DEVICES.iter().flat_map(|kind| model.of_kind(kind)).collect();
    let [drive] = drives.as_slice() else {
        let location = SourceLocation { file: 0, line: 1, column: 1 };
        let message = format!(
            "{} has no topology and {} devices; a scenario needs a topology, a preset one device",
            quote(&request.file),
            drives.len()
        );
        return Err(LocatedError::new(location, message));
    };
    let (lines, _) = topology::device(drive, disk::Link::default(), files, log)?;
    let mut out = String::new();
    lines.render(&mut out);
    Ok(out)
}
