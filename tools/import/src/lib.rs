//! Reads DiskSim 4 parameter files and writes scenarios.
//!
//! Text in, text out: [`disksim`] gets files through [`Files`], and hands back a commented TOML
//! scenario with a list of what could not be carried over. One table per DiskSim block
//! ([`TABLES`]) says where each parameter goes, so a new target is one line.

mod disk;
pub mod folder;
mod indexed;
mod mechanics;
mod model;
mod parse;
mod queue;
mod smart;
mod source;
mod syntax;
mod system;
mod table;
mod walk;
mod workload;
mod zoned;

pub use model::Override;
pub use queue::{POLICIES, Policy};
pub use source::{Files, ImportError};
pub use table::{Carry, Row, Table};
pub use workload::Trace;

use model::Model;
use parse::Reading;
use source::{Place, Trouble, quote};
use std::fmt::Write;
use table::{Lines, Notes, string, wrap};

/// The tables of all blocks, in the order of the DiskSim manual.
pub const TABLES: &[Table] = &[
    workload::GLOBAL,
    workload::IOSIM,
    workload::IOMAP,
    system::DRIVER,
    queue::QUEUE,
    queue::DRIVE_QUEUE,
    walk::BUS,
    walk::CONTROLLER,
    smart::CACHE_MEMORY,
    smart::CACHE_DEVICE,
    disk::DISK,
    mechanics::DM_DISK,
    mechanics::MECHANICS,
    zoned::LAYOUT,
    zoned::ZONE,
    indexed::LAYOUT,
    system::SIMPLE,
    system::LOGORG,
    system::SYNCSET,
    workload::PROCESSES,
    workload::SYNTHIO,
    workload::SYNTHGEN,
];

/// Kinds of blocks that say nothing about the system.
const SILENT: &[&str] = &[workload::STATS];

/// Kinds of blocks that are known but cannot become anything.
const KNOWN_ELSEWHERE: &[&str] = &["disksim_syncset"];

/// What to import.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The parameter file, as [`Files::read`] takes it.
    pub file: String,
    /// Changes of parameters, as on DiskSim's command line.
    pub overrides: Vec<Override>,
    /// Replay this instead of generating requests.
    pub trace: Option<Trace>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A scenario, or the keys of a part.
    pub text: String,
    /// Whether `text` is a preset: the file describes a drive and no system.
    pub is_preset: bool,
    /// What is not carried over, as `file:line:column: sentence`.
    pub warnings: Vec<String>,
}

/// Imports a DiskSim 4 parameter file. A file without a topology becomes a preset of the drive it
/// describes.
///
/// # Errors
/// The first thing that is wrong with the file, with its place and what was expected.
pub fn disksim(request: &Request, files: &mut dyn Files) -> Result<Imported, ImportError> {
    let mut reading = Reading::new(&mut *files);
    let model = read(request, &mut reading);
    let names = std::mem::take(&mut reading.names);
    let mut notes = Notes { warnings: Vec::new(), files: names };
    let text = model.and_then(|model| {
        let text = match &model.topology {
            Some(_) => scenario(request, &model, files, &mut notes).map(|text| (text, false)),
            None => preset(request, &model, files, &mut notes).map(|text| (text, true)),
        }?;
        Ok(text)
    });
    let (text, is_preset) = text.map_err(|trouble| trouble.named(&notes.files))?;
    let mut whole = heading(&request.file, is_preset, &notes.warnings);
    whole += &text;
    Ok(Imported { text: whole, is_preset, warnings: notes.warnings })
}

fn read(request: &Request, reading: &mut Reading<'_>) -> Result<Model, Trouble> {
    let statements = reading.statements(&request.file)?;
    let mut model = Model::read(statements)?;
    for change in &request.overrides {
        model.apply(change, reading)?;
    }
    Ok(model)
}

fn heading(file: &str, is_preset: bool, warnings: &[String]) -> String {
    let file = file.rsplit('/').next().unwrap_or(file).replace(char::is_control, "?");
    let mut out = match is_preset {
        true => format!("# The drive of {file}\n#\n"),
        false => format!("# {file}\n#\n"),
    };
    out += "# Imported from a DiskSim 4 parameter file; every value says where it comes from.\n";
    if warnings.is_empty() {
        out += "# Everything is carried over.\n";
    } else {
        out += "#\n# Not carried over, or only nearly:\n";
        for warning in warnings {
            // The folder of the files is nobody's concern.
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
    files: &mut dyn Files,
    notes: &mut Notes,
) -> Result<String, Trouble> {
    let top = model.topology.as_ref().expect("the caller has seen it");
    let system = system::build(model, top, files, notes)?;
    let workload = match &request.trace {
        Some(trace) => Some(workload::replay(model, trace, &system, notes)?),
        None => workload::synthetic(model, &system, notes)?,
    };
    let mut run = Lines::default();
    workload::run(model, &mut run, notes)?;
    others(model, notes);
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

fn section(out: &mut String, name: &str, lines: &Lines) {
    write!(out, "\n[{name}]\n").expect("text grows");
    lines.render(out);
}

/// Blocks nobody has looked at.
fn others(model: &Model, notes: &mut Notes) {
    for block in &model.blocks {
        let known = TABLES.iter().any(|table| table.kind == block.kind)
            || SILENT.contains(&block.kind.as_str())
            || KNOWN_ELSEWHERE.contains(&block.kind.as_str());
        if !known {
            let message = format!("a block of kind {} is not carried over", quote(&block.kind));
            notes.warn(block.place, message);
        }
    }
}

fn preset(
    request: &Request,
    model: &Model,
    files: &mut dyn Files,
    notes: &mut Notes,
) -> Result<String, Trouble> {
    let drives = model.of_kind("disksim_disk");
    let [drive] = drives.as_slice() else {
        let place = Place { file: 0, line: 1, column: 1 };
        let message = format!(
            "{} has no topology and {} drives; a scenario needs the one, a preset one drive",
            quote(&request.file),
            drives.len()
        );
        return Err(Trouble::new(place, message));
    };
    let lines = disk::lines(drive, disk::Link::default(), files, notes)?;
    let mut out = String::new();
    lines.render(&mut out);
    Ok(out)
}
