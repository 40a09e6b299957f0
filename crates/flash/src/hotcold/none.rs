//! All writes are alike.

use super::{BuiltClassifier, HotColdClassifier, HotColdEntry};
use crate::ftl::Hint;
use crate::geometry::Lpn;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// None.
pub const ENTRY: HotColdEntry = HotColdEntry {
    description: Description {
        name: "none",
        summary: "All writes of the host share blocks.",
        origin: "the baseline",
        params: &[],
    },
    build,
};

struct Alike;

fn build(_settings: &Settings) -> BuiltClassifier {
    Ok(Box::new(Alike))
}

impl HotColdClassifier for Alike {
    fn separates(&self) -> bool {
        false
    }

    fn is_hot(&mut self, _lpn: Lpn, _hint: Hint) -> bool {
        false
    }

    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
