//! Compaction styles: which sorted runs of a log-structured merge tree are merged, and when. One
//! file per style, listed in [`ENTRIES`].

mod fifo;
mod leveled;
mod tiered;

use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::Description;
use std::ops::Range;

/// A file of a sorted run.
#[derive(Debug)]
pub struct File {
    /// Sorted keys.
    pub keys: Vec<u32>,
    /// Extents on the device.
    pub extents: Vec<u32>,
}

/// Files that share no key, sorted by key.
pub type Run = Vec<File>;

/// Entries of a run.
pub(super) fn entries(run: &Run) -> u64 {
    run.iter().map(|file| file.keys.len() as u64).sum()
}

/// The next change of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Merges files into one run. A single file is moved, not rewritten.
    Merge {
        /// Runs by their place in the list, and the files of each.
        from: Vec<(usize, Range<usize>)>,
        /// Place of the run that the new files belong to.
        to: usize,
    },
    /// Deletes the files of the run at a place.
    Delete(usize),
}

/// Converts bytes to entries.
#[derive(Clone, Copy, Debug)]
pub struct EntrySize(pub u64);

impl EntrySize {
    /// Entries in `bytes`, at least one.
    fn entries(self, bytes: u64) -> u64 {
        (bytes / self.0).max(1)
    }
}

/// A compaction style. Passive: asked after each flush, and again after each step.
pub trait Compaction {
    /// Runs at the end of the list that stay when they are empty: the levels of the tree.
    fn levels(&self) -> usize {
        0
    }

    /// Whether a merge writes files of the target size at most; otherwise it writes one file.
    fn splits(&self) -> bool {
        true
    }

    /// The next step for the sorted runs of the tree, newest first; each flush has added one.
    /// `None` until the next flush.
    fn next(&mut self, runs: &[Run]) -> Option<Step>;
}

/// A registered compaction style.
#[derive(Clone, Copy)]
pub struct CompactionEntry {
    pub description: Description,
    /// Builds the style from its parameters.
    pub build: fn(&Settings, EntrySize) -> Built<dyn Compaction>,
}

hybridsim_config::entry!(CompactionEntry, "compaction");

/// All compaction styles.
pub const ENTRIES: &[CompactionEntry] = &[leveled::ENTRY, tiered::ENTRY, fifo::ENTRY];

/// Runs of one file each with these numbers of entries, for tests; newest first.
#[cfg(test)]
fn runs_of(sizes: &[u32]) -> Vec<Run> {
    let file = |size: &u32| vec![File { keys: (0..*size).collect(), extents: Vec::new() }];
    sizes.iter().map(file).collect()
}
