//! No wear levelling beyond using free blocks in turn.

use super::{BuiltWear, FreeOrder, WearEntry, WearInput, WearPolicy};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// None.
pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "none",
        summary: "Free blocks are used in the order they became free; data stays where it is.",
        origin: "the baseline of the papers",
        params: &[],
    },
    build,
};

struct NoLevelling;

fn build(_input: &WearInput<'_>) -> BuiltWear {
    Ok(Box::new(NoLevelling))
}

impl WearPolicy for NoLevelling {
    fn order(&self) -> FreeOrder {
        FreeOrder::OldestFirst
    }

    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
