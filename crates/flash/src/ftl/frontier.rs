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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rotation {
    /// The first die of the group, and the one after its last.
    dies: (usize, usize),
    /// Dies and pools of the device; the pools with the same number of their die follow one
    /// another.
    device: (usize, usize),
    stripe_pages: u32,
    /// The pool of the next page.
    pool: usize,
    /// The pool after the last of the group of the same number in their die.
    row_end: usize,
    /// Pages of its stripe that it has taken.
    in_stripe: u32,
}

impl Rotation {
    /// All pools of a device.
    pub const fn new(pools: usize, stripe_pages: u32) -> Self {
        Self::of_group((0, pools), (pools, pools), stripe_pages)
    }

    /// The pools of some dies of a device with so many dies and pools.
    pub const fn of_group(dies: (usize, usize), device: (usize, usize), stripe_pages: u32) -> Self {
        Self { dies, device, stripe_pages, pool: dies.0, row_end: dies.1, in_stripe: 0 }
    }

    /// The pools of the group.
    pub fn pools(&self) -> impl Iterator<Item = usize> + use<> {
        let ((first, end), (dies, pools)) = (self.dies, self.device);
        (0..pools).step_by(dies).flat_map(move |row| row + first..row + end)
    }

    /// The pool of the next page.
    #[inline]
    pub const fn pool(&self) -> usize {
        self.pool
    }

    /// Returns the pool of the next page, and goes on to the page after it.
    #[inline]
    pub const fn next_page(&mut self) -> usize {
        let pool = self.pool;
        self.in_stripe += 1;
        if self.in_stripe >= self.stripe_pages {
            self.next_pool();
        }
        pool
    }

    /// Leaves out the rest of the stripe of the pool that did not take the last page.
    #[inline]
    pub const fn skip(&mut self) {
        if self.in_stripe > 0 {
            self.next_pool();
        }
    }

    #[inline]
    const fn next_pool(&mut self) {
        let ((first, end), (dies, pools)) = (self.dies, self.device);
        self.pool += 1;
        if self.pool == self.row_end {
            self.row_end = if self.row_end + dies > pools { end } else { self.row_end + dies };
            self.pool = self.row_end - (end - first);
        }
        self.in_stripe = 0;
    }

    /// Continues as `saved`, unless that has other pools.
    pub fn restore(&mut self, saved: Self) -> Result<(), StateError> {
        let (first, end) = self.dies;
        let row = saved.row_end.checked_sub(end);
        let fits = (saved.dies, saved.device) == (self.dies, self.device)
            && row.is_some_and(|row| row.is_multiple_of(self.device.0))
            && row.is_some_and(|row| (row + first..row + end).contains(&saved.pool))
            && saved.row_end <= self.device.1;
        restore::check(fits, "the pool of the next page does not exist")?;
        (self.pool, self.row_end, self.in_stripe) = (saved.pool, saved.row_end, saved.in_stripe);
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
