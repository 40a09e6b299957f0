//! The folders of a study, as `run --out` and `sweep --out` wrote them.

use crate::inputs::Names;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_observe::RunResults;
use hybridsim_report::json::pretty;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_sweep::{Outcome, Planned, Store};
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIO: &str = "scenario.toml";
const RESULTS: &str = "results.json";

/// A simulation of a study.
pub struct Simulation {
    /// Folder of the simulation in the archive.
    pub folder: String,
    /// The values that distinguish a point of a sweep; empty for a run.
    pub values: String,
    /// The resolved scenario.
    pub scenario: Scenario,
    /// Results, or the reason of the failure.
    pub outcome: Outcome,
}

impl Simulation {
    /// The results of one that did not fail.
    pub fn results(&self) -> Option<&RunResults> {
        match &self.outcome {
            Outcome::Done(results) => Some(results),
            Outcome::Failed(_) | Outcome::Refused(_) => None,
        }
    }

    /// The name and text of the file with its outcome.
    pub fn stored(&self) -> (&'static str, String) {
        match &self.outcome {
            Outcome::Done(results) => (RESULTS, pretty(&**results)),
            Outcome::Failed(reason) | Outcome::Refused(reason) => {
                ("error.txt", format!("{reason}\n"))
            }
        }
    }
}

/// All simulations of a study.
#[derive(Default)]
pub struct Study {
    /// The simulations.
    pub simulations: Vec<Simulation>,
    /// Other stored files, such as reports: their paths in the archive, and where they are.
    pub files: Vec<(String, PathBuf)>,
    /// Names of folders in the archive.
    names: Names,
}

impl Study {
    /// Reads the folders.
    ///
    /// # Errors
    /// Fails at a folder without results, or with those of an unfinished run.
    pub fn read(folders: &[PathBuf], registry: &Registry) -> Result<Self, String> {
        let mut study = Self::default();
        for folder in folders {
            let has = |name: &str| folder.join(name).is_file();
            let absolute = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
            if has(Planned::FILE) {
                study.sweep(folder, &absolute, registry)
            } else if has(SCENARIO) && has(RESULTS) {
                study.run(folder, &absolute, registry)
            } else {
                Err("no results of `hybridsim run --out` or `hybridsim sweep --out` are there"
                    .to_owned())
            }
            .map_err(|message| format!("{}: {message}", folder.display()))?;
        }
        Ok(study)
    }

    fn run(&mut self, folder: &Path, named: &Path, registry: &Registry) -> Result<(), String> {
        let wrong = |error: String| format!("{RESULTS}: {error}");
        let text = fs::read_to_string(folder.join(RESULTS)).map_err(|it| wrong(it.to_string()))?;
        let results: RunResults =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if !results.complete {
            return Err("its run ended early, so that the results are partial; run it to its end"
                .to_owned());
        }
        let input = Input::read(&folder.join(SCENARIO), &[]);
        let scenario = input.and_then(|input| Scenario::check(input, registry));
        let name = format!("runs/{}", self.names.free(named));
        self.keep_files(folder, &name)?;
        self.simulations.push(Simulation {
            folder: name,
            values: String::new(),
            scenario: scenario.map_err(|problems| problems.to_string())?,
            outcome: Outcome::Done(Box::new(results)),
        });
        Ok(())
    }

    fn sweep(&mut self, folder: &Path, named: &Path, registry: &Registry) -> Result<(), String> {
        let planned = Planned::read(folder);
        let planned = planned.map_err(|error| format!("{}: {error}", Planned::FILE))?;
        let store = Store::open(&folder.join("points"), false)?;
        let outcomes: Vec<Outcome> =
            planned.iter().filter_map(|point| store.load(&point.key)).collect();
        if outcomes.len() < planned.len() {
            let missing = planned.len() - outcomes.len();
            return Err(format!(
                "{missing} of {} points of the sweep are unfinished; the same command resumes it",
                planned.len()
            ));
        }
        let name = format!("sweeps/{}", self.names.free(named));
        self.keep_files(folder, &name)?;
        let width = planned.len().to_string().len();
        for (at, (point, outcome)) in planned.into_iter().zip(outcomes).enumerate() {
            let source_name = format!("{} of {}", point.name, folder.display());
            let source = SourceText { name: source_name, text: point.scenario };
            let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
            self.simulations.push(Simulation {
                folder: format!("{name}/points/{:0width$}", at + 1),
                values: point.name,
                scenario: Scenario::check(input, registry).map_err(|it| it.to_string())?,
                outcome,
            });
        }
        Ok(())
    }

    /// Keeps the other files in `folder`, without those in folders within it.
    fn keep_files(&mut self, folder: &Path, name: &str) -> Result<(), String> {
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let known = [SCENARIO, RESULTS, Planned::FILE].contains(&&*file);
            if !known && !file.starts_with('.') && entry.path().is_file() {
                let file = crate::inputs::plain(&file);
                self.files.push((format!("{name}/{file}"), entry.path()));
            }
        }
        Ok(())
    }
}
