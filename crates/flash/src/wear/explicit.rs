//! Explicit (static) wear levelling: when an erased block is far more worn than the least worn
//! block that holds data, these data are relocated to it.

use super::{BuiltWear, FreeOrder, WearEntry, WearInput, WearPolicy};
use crate::geometry::BlockId;
use crate::heap::{BlockHeap, Top};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "static",
        summary: "Data of the least worn block are relocated to a block worn by a threshold more.",
        origin: "static wear levelling; flashsim, table 2 (explicit)",
        params: Parameters::PARAMS,
    },
    build,
};

hybridsim_config::params! {
    struct Parameters {
        threshold: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "16",
            "Erases by which an erased block must exceed the least worn block that holds data.";
    }
}

#[derive(Serialize, Deserialize)]
struct Static {
    /// For each pool, the blocks that hold data, by erase count.
    filled: Vec<BlockHeap>,
    threshold: u32,
}

fn build(input: &WearInput<'_>) -> BuiltWear {
    let count = input.blocks_per_pool();
    let heap = |pool| BlockHeap::new(Top::Least, pool as u32 * count, count);
    Ok(Box::new(Static {
        filled: (0..input.pools).map(heap).collect(),
        threshold: Parameters::from_settings(input.settings).threshold,
    }))
}

impl WearPolicy for Static {
    fn order(&self) -> FreeOrder {
        FreeOrder::ByErases
    }

    fn moves_data(&self) -> bool {
        true
    }

    fn filled(&mut self, pool: usize, block: BlockId, erases: u32) {
        self.filled[pool].set(block, erases);
    }

    fn taken(&mut self, pool: usize, block: BlockId) {
        self.filled[pool].remove(block);
    }

    fn erased(&mut self, pool: usize, _block: BlockId, erases: u32) -> Option<BlockId> {
        let (least, cold) = self.filled[pool].top()?;
        if erases - least.min(erases) <= self.threshold {
            return None;
        }
        self.filled[pool].remove(cold);
        Some(cold)
    }

    fn ram_bytes(&self) -> u64 {
        // A 4-byte erase count for each block; a background scan finds the least.
        self.filled.iter().map(|heap| heap.capacity() as u64 * 4).sum()
    }
}
