//! Which of the host's writes are hot, so that they get blocks of their own: pages that will soon
//! be written again become invalid together. One file per classifier, listed in [`ENTRIES`].

mod none;
mod request_size;
mod write_count;

use crate::ftl::Hint;
use crate::geometry::Lpn;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Tells hot writes from cold ones. Passive: asked once for each page the host writes.
pub trait HotColdClassifier {
    /// Whether it ever calls a write hot; if not, no blocks are set aside for hot data.
    fn separates(&self) -> bool {
        true
    }

    /// Whether this write of `lpn` is hot. Remembers the write.
    fn is_hot(&mut self, lpn: Lpn, hint: Hint) -> bool;

    /// Puts down everything it remembers.
    fn save(&self, to: &mut Saver);

    /// Takes back what [`HotColdClassifier::save`] put down.
    ///
    /// # Errors
    /// When its tables are not as long as this one's.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;

    /// Bytes of controller memory it needs.
    fn ram_bytes(&self) -> u64;
}

/// A classifier, or everything that is wrong with its parameters.
pub type BuiltClassifier = Result<Box<dyn HotColdClassifier>, Vec<Problem>>;

/// A registered classifier.
#[derive(Clone, Copy)]
pub struct HotColdEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one.
    pub build: fn(&Settings) -> BuiltClassifier,
}

impl Entry for HotColdEntry {
    const CATEGORY: &'static str = "hot-cold";
    fn description(&self) -> Description {
        self.description
    }
}

/// All classifiers.
pub const ENTRIES: &[HotColdEntry] = &[none::ENTRY, request_size::ENTRY, write_count::ENTRY];
