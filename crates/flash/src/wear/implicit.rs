//! Implicit (dynamic) wear levelling: new data go to the least worn free block.

use super::{FreeOrder, WearEntry, WearPolicy};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "implicit",
        summary: "The least worn free block takes host data, the most worn one relocated data.",
        origin: "dynamic wear levelling; flashsim, table 2 (implicit)",
        params: &[],
    },
    build: |input| Ok(Box::new(Implicit { blocks: input.geometry.blocks() })),
};

#[derive(Serialize, Deserialize)]
struct Implicit {
    blocks: u32,
}

impl WearPolicy for Implicit {
    fn order(&self) -> FreeOrder {
        FreeOrder::ByErases
    }

    fn ram_bytes(&self) -> u64 {
        // A 4-byte erase count for each block.
        u64::from(self.blocks) * 4
    }
}
