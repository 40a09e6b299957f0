//! The `examples` command: writes the scenarios and recorded traces that the documentation uses.

use super::output::{Failure, note};
use clap::Args;
use hybridsim_data::{EXAMPLES, WORKLOADS};
use hybridsim_simulation::state;
use include_dir::{Dir, File};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct ExamplesArgs {
    /// The folder to write `examples` and `workloads` into
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

pub fn examples(args: &ExamplesArgs) -> Result<(), Failure> {
    let mut scenarios = Vec::new();
    files(&EXAMPLES, &mut scenarios);
    // Beside the traces are the scripts that recorded them, which stay in the repository.
    let traces = WORKLOADS.files().filter(|file| has_extension(file, "hst"));
    let all: Vec<(PathBuf, &[u8])> = scenarios
        .iter()
        .map(|file| (args.folder.join("examples").join(file.path()), file.contents()))
        .chain(
            traces.map(|file| (args.folder.join("workloads").join(file.path()), file.contents())),
        )
        .collect();
    if let Some((path, _)) = all.iter().find(|(path, _)| path.exists() && !args.force) {
        return Err(Failure::usage(format!(
            "{} exists already; add --force to replace existing files",
            path.display()
        )));
    }
    for (path, contents) in &all {
        write(path, contents)
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    }
    let [examples, workloads] = ["examples", "workloads"].map(|name| args.folder.join(name));
    note(&format!(
        "{} scenarios are in {}, recorded traces in {}; try `hybridsim run {}`",
        scenarios.iter().filter(|file| has_extension(file, "toml")).count(),
        examples.display(),
        workloads.display(),
        examples.join("ssd.toml").display()
    ));
    Ok(())
}

fn has_extension(file: &File<'_>, wanted: &str) -> bool {
    file.path().extension().is_some_and(|extension| extension == wanted)
}

fn files(folder: &'static Dir<'static>, found: &mut Vec<&'static File<'static>>) {
    found.extend(folder.files());
    folder.dirs().for_each(|inner| files(inner, found));
}

fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    state::write(path, contents)
}
