//! The identity of a point: a hash of everything its result depends on.

use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::scenario::resolve::Resolved;
use hybridsim_simulation::state;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The hashes of files, each read once.
#[derive(Debug, Default)]
pub struct Contents {
    known: HashMap<PathBuf, String>,
}

impl Contents {
    /// The hash of all inputs of a result: scenario, the program's code, and what is in the trace
    /// and the saved state. It is the same on every computer.
    pub fn key(&mut self, scenario: &Scenario, registry: &Registry) -> String {
        let resolved = Resolved::new(scenario, registry);
        let text = resolved.with_files(scenario, |path| self.of(path));
        let text = format!("{}\n{text}\n", state::SOURCES);
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// The hash of a file's bytes; of a folder or a pipe, size and time of the last change.
    pub fn of(&mut self, path: &Path) -> String {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let about = fs::metadata(path).ok();
        let hash = match about.as_ref().filter(|about| about.is_file()) {
            Some(_) => hash(path),
            None => None,
        };
        let times = || format!("{:?}", about.and_then(|it| Some((it.len(), it.modified().ok()?))));
        let found = hash.unwrap_or_else(times);
        self.known.insert(path.to_owned(), found.clone());
        found
    }
}

fn hash(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs::File::open(path).ok()?).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}
