//! Implicit (dynamic) wear levelling: fresh data goes to the least worn free block.

use super::{BuiltWear, FreeOrder, WearEntry, WearInput, WearPolicy};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Implicit.
pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "implicit",
        summary: "The least worn free block takes the host's data, the most worn one moved data.",
        origin: "dynamic wear levelling; flashsim, table 2 (implicit)",
        params: &[],
    },
    build,
};

struct Implicit {
    blocks: u32,
}

fn build(input: &WearInput<'_>) -> BuiltWear {
    Ok(Box::new(Implicit { blocks: input.geometry.blocks() }))
}

impl WearPolicy for Implicit {
    fn order(&self) -> FreeOrder {
        FreeOrder::ByErases
    }

    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // An erase count of 4 bytes per block.
        u64::from(self.blocks) * 4
    }
}
