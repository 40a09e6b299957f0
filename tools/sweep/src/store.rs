//! Finished points, one file each, so that a sweep can be interrupted and resumed.

use hybridsim_observe::RunResults;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The outcome of a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It completed.
    Done(Box<RunResults>),
    /// It failed, with this message.
    Failed(String),
}

/// A folder of outcomes by the key of their point.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Whether points that failed are run again.
    retry: bool,
}

impl Store {
    /// The store in `folder`, made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path, retry: bool) -> Result<Self, String> {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), retry })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    /// The outcome of the point `key`, if it is stored. Points with unreadable files are run again.
    pub fn load(&self, key: &str) -> Option<Outcome> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        let outcome = serde_json::from_str(&text).ok()?;
        match outcome {
            Outcome::Failed(_) if self.retry => None,
            known => Some(known),
        }
    }

    /// Stores `outcome`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, key: &str, outcome: &Outcome) -> Result<(), String> {
        let text = serde_json::to_string(outcome).expect("results can be written as JSON");
        hybridsim_simulation::state::write(&self.path(key), text.as_bytes())
            .map_err(|error| format!("cannot write to {}: {error}", self.folder.display()))
    }
}
