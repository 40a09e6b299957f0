//! No wear levelling; free blocks are used in turn.

use super::{BuiltWear, FreeOrder, WearEntry, WearInput, WearPolicy};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "none",
        summary: "Free blocks are used in the order they became free; no data are relocated.",
        origin: "the baseline of the papers",
        params: &[],
    },
    build,
};

#[derive(Serialize, Deserialize)]
struct NoLevelling;

fn build(_input: &WearInput<'_>) -> BuiltWear {
    Ok(Box::new(NoLevelling))
}

impl WearPolicy for NoLevelling {
    fn order(&self) -> FreeOrder {
        FreeOrder::OldestFirst
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
