//! Victim selection for garbage collection. One file per policy, listed in [`ENTRIES`].

mod choices;
mod cost_benefit;
mod drawn;
mod fifo;
mod greedy;
mod partial;
mod random;
mod ranked;
mod windowed;

use crate::geometry::BlockId;
use crate::state::SavedState;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{StateError, Stream};

/// Selects victims among the closed blocks of each pool. Passive: the FTL reports what happens to
/// blocks and asks for a victim.
///
/// A pool is the set of blocks the FTL collects separately, usually a plane. A block is a candidate
/// from [`VictimPolicy::closed`] until [`VictimPolicy::removed`].
pub trait VictimPolicy: SavedState {
    /// `block` of `pool` is full and holds `valid` valid pages: it becomes a candidate.
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32);

    /// A page of `block` was invalidated and `valid` are left. Also called for blocks that are not
    /// candidates.
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32);

    /// `block` is no longer a candidate.
    fn removed(&mut self, pool: usize, block: BlockId);

    /// The victim among the candidates of `pool`, of which `valid` gives the valid pages; it stays
    /// a candidate. `None` without a candidate, or when collecting would gain nothing.
    fn choose(&mut self, pool: usize, valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId>;

    /// Blocks a real controller would have searched for the last choice.
    fn searched(&self) -> u32 {
        0
    }

    /// Checks that [`SavedState::save`] saves the whole state of the policy.
    ///
    /// # Errors
    /// When the state of this kind of policy cannot be saved.
    fn check_saveable(&self) -> Result<(), StateError> {
        Ok(())
    }
}

/// Capability of policies: [`VictimPolicy::searched`] counts blocks.
pub const SEARCH: &str = "a search for victims";

/// The input of a policy's builder.
pub struct GcInput<'a> {
    pub settings: &'a Settings,
    pub blocks: u32,
    pub pages_per_block: u32,
    /// Number of pools.
    pub pools: usize,
    pub seed: u64,
    /// The device's path, which names the policy's random stream.
    pub path: &'a str,
}

impl GcInput<'_> {
    fn stream(&self) -> Stream {
        Stream::new(self.seed, &format!("{}/gc", self.path))
    }

    fn ranked(&self) -> ranked::Ranked {
        ranked::Ranked::new(self.pools, self.blocks, self.pages_per_block)
    }
}

/// A victim policy, or all problems with its parameters.
pub type BuiltPolicy = Result<Box<dyn VictimPolicy>, Vec<Problem>>;

/// A registered victim policy.
#[derive(Clone, Copy)]
pub struct GcEntry {
    pub description: Description,
    /// [`SEARCH`], or nothing.
    pub provides: &'static [&'static str],
    pub build: fn(&GcInput<'_>) -> BuiltPolicy,
}

hybridsim_config::entry!(GcEntry, "gc-policy", provides);

/// All victim policies.
pub const ENTRIES: &[GcEntry] = &[
    greedy::ENTRY,
    fifo::ENTRY,
    random::ENTRY,
    choices::ENTRY,
    windowed::ENTRY,
    cost_benefit::ENTRY,
    partial::ENTRY,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;

    #[test]
    fn policies_that_search_provide_it() {
        for entry in ENTRIES {
            let settings = defaults::settings(entry.description.params, &defaults::registry());
            let (settings, path) = (&settings, "t");
            let input =
                GcInput { settings, blocks: 8, pages_per_block: 4, pools: 1, seed: 1, path };
            let mut policy = (entry.build)(&input).expect("defaults fit");
            policy.closed(0, BlockId(0), 3);
            policy.closed(0, BlockId(1), 2);
            assert!(policy.choose(0, &|block| 3 - block.0).is_some(), "{}", entry.description.name);
            let searches = entry.provides.contains(&SEARCH);
            assert_eq!(policy.searched() > 0, searches, "{}", entry.description.name);
        }
    }
}
