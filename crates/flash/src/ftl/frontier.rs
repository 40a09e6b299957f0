//! What the page-mapped FTLs share: write frontiers, and victim selection in their pools.

use super::{FtlError, FtlInput};
use crate::gc::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::geometry::{BlockId, Geometry, Ppn};
use crate::ops::FlashOps;
use crate::restore;
use hybridsim_config::param::{EntryChoice, Problem};
use hybridsim_engine::StateError;
use serde::{Deserialize, Serialize};

/// Blocks of each pool that cannot hold data: a free one to copy to, and an open one.
pub(super) const RESERVE_BLOCKS: u32 = 2;

/// An open block, and the next page in it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Frontier {
    pub block: BlockId,
    pub next: u32,
}

impl Frontier {
    /// No open block, which looks like a full one.
    pub const fn none(geometry: &Geometry) -> Self {
        Self { block: BlockId::NONE, next: geometry.pages_per_block() }
    }

    pub const fn new(block: BlockId) -> Self {
        Self { block, next: 0 }
    }

    #[inline]
    pub const fn is_full(&self, geometry: &Geometry) -> bool {
        self.next == geometry.pages_per_block()
    }

    /// Free pages of the open block and of `free` erased blocks.
    pub fn room(&self, free: usize, geometry: &Geometry) -> u64 {
        let pages_per_block = u64::from(geometry.pages_per_block());
        pages_per_block - u64::from(self.next) + free as u64 * pages_per_block
    }

    /// Takes the next page; also returns the block if that was its last page.
    #[inline(always)]
    pub fn take_page(&mut self, geometry: &Geometry) -> (Ppn, Option<BlockId>) {
        let page = geometry.page(self.block, self.next);
        self.next += 1;
        (page, self.is_full(geometry).then_some(self.block))
    }
}

/// The order in which the pools of a reclaim group take host pages: round-robin, each a stripe of
/// pages in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rotation {
    pools: Box<[u32]>,
    stripe_pages: u32,
    /// The place in `pools` of the pool of the next page.
    at: usize,
    /// Pages of its stripe that it has taken.
    in_stripe: u32,
}

impl Rotation {
    pub fn new(pools: impl Iterator<Item = u32>, stripe_pages: u32) -> Self {
        Self { pools: pools.collect(), stripe_pages, at: 0, in_stripe: 0 }
    }

    /// Number of pools.
    pub fn count(&self) -> usize {
        self.pools.len()
    }

    /// Each pool once, from that of the next page on.
    pub fn following(&self) -> impl Iterator<Item = usize> + '_ {
        let (before, after) = self.pools.split_at(self.at);
        after.iter().chain(before).map(|pool| *pool as usize)
    }

    /// Returns the pool of the next page, and goes on to the page after it.
    #[inline]
    pub fn next_page(&mut self) -> usize {
        let pool = self.pools[self.at] as usize;
        self.in_stripe += 1;
        if self.in_stripe >= self.stripe_pages {
            self.next_pool();
        }
        pool
    }

    /// Leaves out the rest of the stripe of the pool that did not take the last page.
    #[inline]
    pub fn skip(&mut self) {
        if self.in_stripe > 0 {
            self.next_pool();
        }
    }

    #[inline]
    fn next_pool(&mut self) {
        self.at += 1;
        if self.at == self.pools.len() {
            self.at = 0;
        }
        self.in_stripe = 0;
    }

    /// Continues as `saved`, unless that has other pools.
    pub fn restore(&mut self, saved: Self) -> Result<(), StateError> {
        let fits = saved.pools == self.pools && saved.at < self.pools.len();
        restore::check(fits, "the pool of the next page does not exist")?;
        (self.at, self.in_stripe) = (saved.at, saved.in_stripe);
        Ok(())
    }
}

/// Builds the victim policy `gc` for `pools` pools.
pub(super) fn victim_policy(input: &FtlInput<'_>, gc: &EntryChoice, pools: usize) -> BuiltPolicy {
    let FtlInput { geometry, registry, seed, path, .. } = *input;
    let (entry, settings) = registry.chosen::<GcEntry>(gc);
    let (blocks, pages_per_block) = (geometry.blocks(), geometry.pages_per_block());
    (entry.build)(&GcInput { settings, blocks, pages_per_block, pools, seed, path })
}

/// Takes a victim of `pool` with at most as many valid pages as `valid_max` gives for it.
pub(super) fn take_victim(
    policy: &mut dyn VictimPolicy,
    pool: usize,
    valid_max: impl FnOnce(BlockId) -> u64,
    flash: &mut FlashOps,
) -> Option<BlockId> {
    let array = flash.array();
    let chosen = policy.choose(pool, &|block| array.valid(block));
    flash.note_search(policy.searched());
    let block =
        chosen.filter(|block| u64::from(flash.array().valid(*block)) <= valid_max(*block))?;
    policy.removed(pool, block);
    Some(block)
}

/// The problem of a device whose blocks hold fewer than the exported pages; `reserve` is what is
/// set aside.
pub(super) fn capacity_problem(
    input: &FtlInput<'_>,
    capacity: u64,
    reserve: &str,
) -> Option<Problem> {
    // One page more than exported: a page is written before its old copy is invalidated.
    (u64::from(input.exported_pages) + 1 > capacity).then(|| {
        let message = format!(
            "{} pages are exported, but {reserve} in each of {} planes leave a capacity of {}; \
             raise over_provisioning or blocks_per_plane",
            input.exported_pages,
            input.geometry.planes(),
            capacity.saturating_sub(1)
        );
        Problem::new("over_provisioning", message)
    })
}

/// The error of a device that exports `pages` pages and cannot write another one.
#[cold]
pub(super) fn device_full(pages: usize, flash: &FlashOps) -> FtlError {
    let array = flash.array();
    let of_static = array.static_endurance();
    let of_static = of_static.map_or(String::new(), |it| format!(" (static SLC cache: {it})"));
    let message = format!(
        "{} of {} blocks have reached their {} erases{of_static}, and the rest cannot hold the \
         {pages} pages exported; choose a higher endurance or over_provisioning, or a shorter \
         workload",
        array.retired_blocks(),
        array.geometry().blocks(),
        array.endurance(),
    );
    match array.retired_blocks() {
        0 => FtlError::Full(message),
        _ => FtlError::WornOut(message),
    }
}
