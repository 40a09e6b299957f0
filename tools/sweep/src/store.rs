//! Finished points, one file each, so that a sweep can be interrupted and resumed.

use hybridsim_observe::RunResults;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The outcome of a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done(Box<RunResults>),
    /// It failed, with this message.
    Failed(String),
    /// It did not fit into the memory of this computer; another may have more.
    Refused(String),
}

/// A file of the store. The key makes sure that a file copied over another is not taken for it.
#[derive(Serialize, Deserialize)]
struct Stored<O> {
    key: String,
    outcome: O,
}

/// A folder of outcomes by the key of their point.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Whether points that failed are run again.
    retry: bool,
    unwritable: OnceLock<String>,
}

impl Store {
    /// The store in `folder`, made if it is not there.
    ///
    /// # Errors
    /// Fails when it cannot be made.
    pub fn open(folder: &Path, retry: bool) -> Result<Self, String> {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), retry, unwritable: OnceLock::new() })
    }

    /// The store's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    /// The outcome of the point `key`, if it is stored. Points with unreadable files are run again.
    pub fn load(&self, key: &str) -> Option<Outcome> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        let stored: Stored<Outcome> = serde_json::from_str(&text).ok()?;
        match stored.outcome {
            _ if stored.key != key => None,
            Outcome::Failed(_) if self.retry => None,
            Outcome::Refused(_) => None,
            known => Some(known),
        }
    }

    /// Stores `outcome`, unless it depends on the computer. An error of the write does not discard
    /// the run: [`Store::problem`] reports the first.
    pub fn save(&self, key: &str, outcome: &Outcome) {
        if matches!(outcome, Outcome::Refused(_)) {
            return;
        }
        let stored = Stored { key: key.to_owned(), outcome };
        let text = serde_json::to_string(&stored).expect("results can be written as JSON");
        if let Err(error) = hybridsim_simulation::state::write(&self.path(key), text.as_bytes()) {
            let folder = self.folder.display();
            self.unwritable.get_or_init(|| format!("cannot write to {folder}: {error}"));
        }
    }

    /// The first error of a write, after which outcomes may be missing in the store.
    pub fn problem(&self) -> Option<&str> {
        self.unwritable.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_point_is_not_its_outcome() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path(), false).expect("a store");
        store.save("one", &Outcome::Failed("worn out".to_owned()));
        fs::copy(store.path("one"), store.path("two")).expect("one's own folder");
        assert!(store.load("one").is_some() && store.load("two").is_none());
        assert_eq!(store.problem(), None);
    }

    #[test]
    fn what_depends_on_the_computer_is_not_stored() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path(), false).expect("a store");
        store.save("small", &Outcome::Refused("needs 9GiB".to_owned()));
        store.save("wrong", &Outcome::Failed("worn out".to_owned()));
        assert!(store.load("small").is_none());
        assert!(matches!(store.load("wrong"), Some(Outcome::Failed(_))));
    }
}
