//! Explicit static wear levelling: when a block is far more worn than the least worn block that
//! holds data, it gets that data and rests.

use super::heap::{BlockHeap, Top};
use super::{BuiltWear, FreeOrder, WearEntry, WearInput, WearPolicy};
use crate::geometry::BlockId;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

/// Explicit.
pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "static",
        summary: "Data of the least worn block moves to a block worn by a threshold more.",
        origin: "static wear levelling; flashsim, table 2 (explicit)",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 1] = [Param::with(
    "threshold",
    Kind::Count { min: 1, max: u32::MAX as u64 },
    "16",
    "Erases by which an erased block must exceed the least worn block that holds data.",
)];

struct Static {
    /// Per pool the blocks that hold data, by their erases.
    filled: Vec<BlockHeap>,
    threshold: u32,
}

fn build(input: &WearInput<'_>) -> BuiltWear {
    let count = input.blocks_per_pool();
    let heap = |pool| BlockHeap::new(Top::Least, pool as u32 * count, count);
    Ok(Box::new(Static {
        filled: (0..input.pools).map(heap).collect(),
        threshold: input.settings.count("threshold") as u32,
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

    fn erased(
        &mut self,
        pool: usize,
        _block: BlockId,
        erases: u32,
        may_move: bool,
    ) -> Option<BlockId> {
        let (least, cold) = self.filled[pool].top().filter(|_| may_move)?;
        if erases - least.min(erases) <= self.threshold {
            return None;
        }
        self.filled[pool].remove(cold);
        Some(cold)
    }

    fn save(&self, to: &mut Saver) {
        to.put(&self.filled);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let filled: Vec<BlockHeap> = from.take()?;
        state::same_length("the list of pools", filled.len(), self.filled.len())?;
        for (saved, own) in filled.iter().zip(&self.filled) {
            state::same_length("the table of blocks", saved.room(), own.room())?;
        }
        self.filled = filled;
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // An erase count of 4 bytes per block; the least is found by a slow scan in the background.
        self.filled.iter().map(|heap| heap.room() as u64 * 4).sum()
    }
}
