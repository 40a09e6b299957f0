//! The archive: its files, in which order and how they are written.

use crate::inputs::{InputFile, Inputs, Sum};
use crate::readme;
use crate::study::{Simulation, Study};
use flate2::Compression;
use flate2::write::GzEncoder;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::resolve::Resolved;
use hybridsim_simulation::state;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tar::{Builder, Header};

/// The folder that unpacking creates.
const TOP: &str = "artefact";
const RERUN: &str = "rerun.sh";

/// The contents of a file.
enum Contents {
    Text(String),
    CopyOf(PathBuf),
}

/// A study that can be run again from its files.
pub struct Archive {
    /// Files by their paths in the archive.
    files: BTreeMap<String, Contents>,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

impl Archive {
    /// Reads the results in `folders` and the files that their scenarios read. Traces of more than
    /// `trace_bytes_max` bytes are left out, all if that is 0, and named by their checksums.
    ///
    /// # Errors
    /// Fails at a folder without complete results, a scenario with Python code, and a file that
    /// cannot be read.
    pub fn new(
        folders: &[PathBuf],
        trace_bytes_max: u64,
        registry: &Registry,
    ) -> Result<Self, String> {
        let study = Study::read(folders, registry)?;
        let mut files = BTreeMap::new();
        let mut inputs = Inputs::default();
        for it in &study.simulations {
            let text = rewritten(it, &mut inputs, trace_bytes_max, registry)
                .map_err(|message| format!("{}: {message}", it.scenario.name))?;
            files.insert(format!("{}/scenario.toml", it.folder), Contents::Text(text));
            let (name, text) = it.stored();
            files.insert(format!("{}/{name}", it.folder), Contents::Text(text));
        }
        files.extend(
            study.files.iter().map(|(at, from)| (at.clone(), Contents::CopyOf(from.clone()))),
        );
        for (at, input) in inputs.files.iter().filter(|(_, input)| input.is_kept) {
            files.insert(at.clone(), Contents::CopyOf(input.source.clone()));
        }
        let programs = programs(&study);
        let version: String = programs.iter().map(|(name, _)| format!("{name}\n")).collect();
        files.insert("VERSION".to_owned(), Contents::Text(version));
        files.insert(RERUN.to_owned(), Contents::Text(include_str!("rerun.sh").to_owned()));
        let readme = readme::text(&study, &inputs, &programs, registry);
        files.insert("README.md".to_owned(), Contents::Text(readme));
        let manifest = manifest(&files, &inputs)?;
        files.insert("MANIFEST".to_owned(), Contents::Text(manifest));
        Ok(Self { files, notes: notes(&inputs, &programs) })
    }

    /// Writes it, compressed: the same files give the same bytes.
    ///
    /// # Errors
    /// Fails when a file cannot be read any more, or `to` not be written.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        let mut tar = Builder::new(GzEncoder::new(to, Compression::default()));
        for (at, contents) in &self.files {
            let mut header = Header::new_ustar();
            header.set_mode(if at == RERUN { 0o755 } else { 0o644 });
            let at = Path::new(TOP).join(at);
            match contents {
                Contents::Text(text) => {
                    header.set_size(text.len() as u64);
                    tar.append_data(&mut header, at, text.as_bytes())?;
                }
                Contents::CopyOf(path) => {
                    let file = File::open(path)?;
                    let bytes = file.metadata()?.len();
                    header.set_size(bytes);
                    tar.append_data(&mut header, at, file.take(bytes))?;
                }
            }
        }
        tar.into_inner()?.finish()?.flush()
    }
}

/// The scenario of a simulation, with paths that start from its folder in the archive.
fn rewritten(
    it: &Simulation,
    inputs: &mut Inputs,
    trace_bytes_max: u64,
    registry: &Registry,
) -> Result<String, String> {
    let scenario = &it.scenario;
    let entries = scenario.entries(registry);
    if let Some((category, _)) = entries.iter().find(|(_, entry)| entry.name == "python") {
        return Err(format!(
            "its {category} is a Python class, whose code an archive cannot contain yet: without \
             it the results cannot be reproduced"
        ));
    }
    let up = "../".repeat(it.folder.split('/').count());
    let state = scenario.run.state.as_ref().map(|state| scenario.base.join(state));
    let mut failure = None;
    let resolved = Resolved::new(scenario, registry).with_files(scenario, |path| {
        let found = match &state {
            Some(state) if state == path => inputs.state(path),
            _ => inputs.trace(path, trace_bytes_max),
        };
        let at = found.unwrap_or_else(|message| {
            failure.get_or_insert(message);
            String::new()
        });
        format!("{up}{at}")
    });
    let values = if it.values.is_empty() { String::new() } else { format!("# {}\n", it.values) };
    failure.map_or(Ok(values + &resolved), Err)
}

/// SHA-256, size and path of each file, and of the inputs that are left out.
fn manifest(files: &BTreeMap<String, Contents>, inputs: &Inputs) -> Result<String, String> {
    let mut sums: BTreeMap<&str, Sum> =
        inputs.files.iter().map(|(at, input)| (at.as_str(), input.sum.clone())).collect();
    for (at, contents) in files.iter().filter(|(at, _)| !inputs.files.contains_key(*at)) {
        let sum = match contents {
            Contents::Text(text) => Sum::of(text.as_bytes()),
            Contents::CopyOf(path) => File::open(path).and_then(Sum::of),
        };
        sums.insert(at, sum.map_err(|error| format!("cannot read {at}: {error}"))?);
    }
    let line = |(at, sum): (&str, Sum)| format!("{} {} {at}\n", sum.hash, sum.bytes);
    Ok(sums.into_iter().map(line).collect())
}

/// The programs that wrote the results: name with version, and a hash of the code.
pub(crate) type Programs = BTreeSet<(String, String)>;

fn programs(study: &Study) -> Programs {
    let results = study.simulations.iter().filter_map(Simulation::results);
    let word = |versions: &BTreeMap<String, String>, key| versions.get(key).cloned();
    let mut programs: Programs = results
        .map(|it| &it.label.versions)
        .map(|it| {
            (word(it, "hybridsim").unwrap_or_default(), word(it, "sources").unwrap_or_default())
        })
        .collect();
    if programs.is_empty() {
        programs.insert((env!("CARGO_PKG_VERSION").to_owned(), state::SOURCES.to_owned()));
    }
    programs.into_iter().map(|(version, code)| (format!("hybridsim {version}"), code)).collect()
}

fn notes(inputs: &Inputs, programs: &Programs) -> Vec<String> {
    let left_out = |(at, input): (&String, &InputFile)| {
        (!input.is_kept).then(|| format!("note: {at} is left out: {}", input.source.display()))
    };
    let mut notes: Vec<String> = inputs.files.iter().filter_map(left_out).collect();
    if programs.iter().any(|(_, code)| code != state::SOURCES) {
        notes.push(
            "warning: some results are of another build of hybridsim than this one; run them \
             again, or check that they are equal"
                .to_owned(),
        );
    }
    notes
}
