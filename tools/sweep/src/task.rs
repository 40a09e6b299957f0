//! A point as text, for another process or computer.

use crate::Point;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_simulation::scenario::Input;
use hybridsim_simulation::state::SOURCES;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A point with everything its simulation needs besides the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The point's number in its plan.
    pub number: usize,
    /// The point's key.
    pub key: String,
    /// Memory it needs in bytes, an estimate.
    pub memory: u64,
    /// Name of the scenario.
    pub name: String,
    /// The text of the scenario.
    pub text: String,
    /// Folder that relative paths start from.
    pub base: PathBuf,
    /// The keys that are set.
    pub sets: Vec<String>,
    /// The trace to replay, if the scenario's workload is replaced.
    pub trace: Option<PathBuf>,
    /// The trace that is replayed in any case, and the hash of its contents.
    pub replayed: Option<(PathBuf, String)>,
    /// The hash of the code that planned it.
    pub sources: String,
}

impl Task {
    /// The task of a point; its paths are absolute.
    pub fn of(point: &Point) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let Input { source, base, sets, trace } = &point.input;
        // An empty path is the current folder.
        let base = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        Self {
            number: point.number,
            key: point.key.clone(),
            memory: point.memory,
            name: source.name.clone(),
            text: source.text.clone(),
            base: absolute(base),
            sets: sets.clone(),
            trace: trace.as_deref().map(absolute),
            replayed: point.trace.as_ref().map(|(path, hash)| (absolute(path), hash.clone())),
            sources: SOURCES.to_owned(),
        }
    }

    /// The scenario, replaying the copy of its trace at `trace` where there is one.
    ///
    /// # Errors
    /// Fails when the task was planned by another version of the program, whose results may differ.
    pub fn into_input(mut self, trace: Option<PathBuf>) -> Result<Input, String> {
        if self.sources != SOURCES {
            return Err(format!(
                "this computer has another build of hybridsim ({SOURCES}) than the one that \
                 planned the sweep ({}); install the same on all",
                self.sources
            ));
        }
        match (trace, &mut self.trace) {
            (Some(copy), Some(given)) => *given = copy,
            (Some(copy), None) => {
                let quoted = toml::Value::from(copy.to_string_lossy().into_owned());
                self.sets.push(format!("workload.trace={quoted}"));
            }
            (None, _) => {}
        }
        let source = SourceText { name: self.name, text: self.text };
        Ok(Input { source, base: self.base, sets: self.sets, trace: self.trace })
    }
}
