//! Windowed greedy: greedy among the blocks closed longest ago.
//!
//! The window holds the oldest candidates of a pool; when one leaves, the next oldest enters.
//! Blocks in the window are listed by valid pages, younger blocks by age, so nothing is searched.

use super::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::geometry::BlockId;
use crate::lists::Lists;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "windowed-greedy",
        summary: "Collects the block with the fewest valid pages among the oldest ones.",
        origin: "Hu, Eleftheriou, Haas, Iliadis and Pletka, SYSTOR 2009",
        params: Parameters::PARAMS,
    },
    provides: &[],
    build,
};

hybridsim_config::params! {
    struct Parameters {
        window: u64 = Kind::Count { min: 1, max: 1 << 31 }, default "64",
            "Blocks in the window of each plane; 1 is FIFO, all blocks is greedy.";
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Window {
    blocks: u64,
    /// A lower bound of the valid pages of the blocks in the window.
    least: u32,
}

#[derive(Serialize, Deserialize)]
struct Windowed {
    /// For each pool, a list of the window's blocks for each number of valid pages, and a list of
    /// the younger blocks by age.
    lists: Lists,
    windows: Vec<Window>,
    window_max: u64,
    pages_per_block: u32,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let pages_per_block = input.pages_per_block;
    let lists = input.pools * (pages_per_block as usize + 2);
    Ok(Box::new(Windowed {
        lists: Lists::new(lists, input.blocks as usize),
        windows: vec![Window { blocks: 0, least: pages_per_block + 1 }; input.pools],
        window_max: Parameters::from_settings(input.settings).window,
        pages_per_block,
    }))
}

impl Windowed {
    const fn list(&self, pool: usize, valid: u32) -> usize {
        pool * (self.pages_per_block as usize + 2) + valid as usize
    }

    /// The list of the blocks that are too young for the window.
    const fn younger(&self, pool: usize) -> usize {
        self.list(pool, self.pages_per_block + 1)
    }

    fn enlist(&mut self, pool: usize, block: u32, valid: u32) {
        self.lists.move_to(self.list(pool, valid), block);
        self.windows[pool].least = self.windows[pool].least.min(valid);
    }

    /// Moves the oldest of the younger blocks into a window that is not full.
    fn fill(&mut self, pool: usize, valid: &dyn Fn(BlockId) -> u32) {
        while self.windows[pool].blocks < self.window_max {
            let Some(next) = self.lists.first(self.younger(pool)) else { return };
            self.enlist(pool, next, valid(BlockId(next)));
            self.windows[pool].blocks += 1;
        }
    }

    fn in_window(&self, pool: usize, block: BlockId) -> bool {
        self.lists.list_of(block.0).is_some_and(|list| list != self.younger(pool))
    }
}

impl VictimPolicy for Windowed {
    fn closed(&mut self, pool: usize, block: BlockId, _valid: u32) {
        self.lists.push(self.younger(pool), block.0);
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        if self.in_window(pool, block) {
            self.enlist(pool, block.0, valid);
        }
    }

    fn removed(&mut self, pool: usize, block: BlockId) {
        self.windows[pool].blocks -= u64::from(self.in_window(pool, block));
        self.lists.remove(block.0);
    }

    fn choose(&mut self, pool: usize, valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId> {
        // The window is used only here, so it may be filled as late as here.
        self.fill(pool, valid);
        for valid in self.windows[pool].least..=self.pages_per_block {
            let head = self.lists.first(self.list(pool, valid)).map(BlockId);
            if head.is_some() {
                self.windows[pool].least = valid;
                // With only full blocks in the window, moving the oldest is the only way to reach
                // the younger ones; there is no gain when the window holds all candidates.
                let no_gain =
                    valid == self.pages_per_block && self.lists.first(self.younger(pool)).is_none();
                return head.filter(|_| !no_gain);
            }
        }
        None
    }
}
