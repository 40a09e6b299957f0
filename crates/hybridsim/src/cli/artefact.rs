//! The command that packs a study for an artefact evaluation.

use super::output::{Failure, note, probe, unwritable};
use hybridsim_artefact::Archive;
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_simulation::state::NewFile;
use std::fs::File;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct ArtefactArgs {
    /// Folders that `run --out` or `sweep --out` wrote
    #[arg(required = true, num_args = 1..)]
    folders: Vec<PathBuf>,
    /// The archive to write, such as study.tar.gz
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// The largest trace that the archive contains; larger ones are named by their checksums, and
    /// so are all with 0, for traces that may not be passed on
    #[arg(long, value_name = "SIZE", default_value = "100MiB", value_parser = size)]
    traces_up_to: u64,
}

fn size(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { units::bytes(text) }
}

pub fn artefact(registry: &Registry, args: &ArtefactArgs) -> Result<(), Failure> {
    if args.out.is_file() && !args.force {
        let message = format!("{} exists; add --force to replace it", args.out.display());
        return Err(Failure::usage(message));
    }
    probe(&args.out)?;
    let archive =
        Archive::new(&args.folders, args.traces_up_to, registry).map_err(Failure::usage)?;
    let new = NewFile::at(&args.out);
    File::create(new.partial())
        .and_then(|file| archive.write(file))
        .and_then(|()| new.complete())
        .map_err(|error| unwritable(&args.out, error))?;
    archive.notes.iter().for_each(|text| note(text));
    note(&format!("archive: {}; complete the lines TODO in its README.md", args.out.display()));
    Ok(())
}
