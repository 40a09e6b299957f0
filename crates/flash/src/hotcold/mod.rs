//! Hot/cold separation: host writes classified as hot get blocks of their own, so that pages that
//! will soon be overwritten become invalid together. One file per classifier, listed in
//! [`ENTRIES`].

mod none;
mod request_size;
mod write_count;

use crate::geometry::Lpn;
use crate::request::Hint;
use crate::state::SavedState;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;

/// Classifies writes as hot or cold. Passive: called once for each page the host writes.
pub trait HotColdClassifier: SavedState {
    /// Whether any write can be hot; if not, no blocks are set aside for hot data.
    fn separates(&self) -> bool {
        true
    }

    /// Whether this write of `lpn` is hot; records the write.
    fn is_hot(&mut self, lpn: Lpn, hint: Hint) -> bool;

    /// Controller memory it needs, in bytes.
    fn ram_bytes(&self) -> u64 {
        0
    }
}

/// A classifier, or all problems with its parameters.
pub type BuiltClassifier = Result<Box<dyn HotColdClassifier>, Vec<Problem>>;

/// A registered classifier.
#[derive(Clone, Copy)]
pub struct HotColdEntry {
    pub description: Description,
    pub build: fn(&Settings) -> BuiltClassifier,
}

hybridsim_config::entry!(HotColdEntry, "hot-cold");

/// All classifiers.
pub const ENTRIES: &[HotColdEntry] = &[none::ENTRY, request_size::ENTRY, write_count::ENTRY];
