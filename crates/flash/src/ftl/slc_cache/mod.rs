//! The page-mapped FTL with an SLC cache, as in consumer SSDs.
//!
//! Host writes go to blocks in SLC mode, which use only the first `pages_per_block /
//! bits_per_cell` pages. *Folding* moves what is still valid to blocks in native mode later. Data
//! overwritten or trimmed before never reach a block in native mode.
//!
//! Every plane is a pool, and pools take host pages round-robin. A pool has
//!
//! - the *static* cache: its first blocks, always in SLC mode;
//! - the *dynamic* cache: other blocks, put into SLC mode while enough erased blocks remain and up
//!   to a maximum. It shrinks as the drive fills;
//! - blocks in native mode, collected by a victim policy.
//!
//! When the cache of a pool is full, host writes go to native blocks directly, or the oldest block
//! of the cache is folded first (`when_full`). While the device is idle the oldest blocks are
//! folded, in all pools at once, until the cache holds `low_mark`. A pool with one erased block
//! left collects the block with fewer valid pages: the victim of the policy, or the oldest block of
//! the dynamic cache.
//!
//! Folding and collection share one open block. As in the FTL `page`, one block of each pool is
//! kept free to copy to and one is open; the valid pages of a pool, cached ones included, never
//! exceed what its other native blocks hold. So collection always finds room, and so does folding a
//! block of the dynamic cache: it has fewer pages in SLC mode than in native mode, and folding it
//! gains the difference. A static block gives no native block back: it is folded only where one
//! remains erased, if need be after collection. The static cache adds nothing to the exported
//! capacity.
//!
//! Collection is not paced: it runs in whole blocks before the write that needs a block. Erased
//! blocks are reused in the order of their erases, so that wear evens out among the static blocks
//! and among the others.

mod moves;

use super::frontier::{self, Frontier, RESERVE_BLOCKS, Rotation};
use super::page_table::PageTable;
use super::{
    BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH, SLC_MODE,
    SlcBlocks,
};
use crate::array::PageRun;
use crate::gc::VictimPolicy;
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::ops::{After, FlashOps};
use crate::state::SavedState;
use crate::wear::{FreeBlocks, FreeOrder};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "slc-cache",
        summary: "Maps every page freely; writes go to an SLC cache first, static or dynamic.",
        origin: "the caches of consumer SSDs as their vendors describe them (Samsung TurboWrite, \
                 Intel 660p)",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH, SLC_MODE],
    build,
};

const DYNAMIC: Needs = Needs::Not("dynamic_size", &["0"]);
const CACHE: &[Needs] = &[Needs::Any(&[Needs::above_zero("static_size"), DYNAMIC])];

hybridsim_config::choices! {
    /// Target of host writes that find the cache full.
    enum WhenFull { Direct = "direct", Fold = "fold" }
}

hybridsim_config::params! {
    struct Parameters {
        bits_per_cell: u32 = Kind::Count { min: 2, max: 4 }, default "3",
            "Bits per cell in native mode (TLC 3, QLC 4): a block in SLC mode holds this fraction \
             of its pages.";
        static_size: u64 = Kind::Bytes, default "\"0B\"",
            "Data that the static cache holds: blocks that are always in SLC mode, rounded up to \
             whole blocks per plane. They add nothing to the exported capacity.";
        dynamic_size: Option<u64> = Kind::Bytes, optional,
            "Most data that the dynamic cache holds, rounded up to whole blocks per plane; \
             default: as much as free blocks allow.";
        keep_free: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0"
            needs &[DYNAMIC],
            "Blocks are put into SLC mode only while at least this fraction of the native blocks \
             of their plane, and at least one, remains erased.";
        when_full: WhenFull = Kind::Choice(WhenFull::NAMES), default "\"direct\"" needs CACHE,
            "Host writes that find the cache full: `direct` writes them to native blocks; `fold` \
             empties the oldest blocks of the cache first, until one can be put into SLC mode, and \
             writes directly where emptying all of them does not suffice.";
        low_mark: u64 = Kind::Bytes, default "\"0B\"" needs CACHE,
            "Idle folding stops when the full blocks of the cache hold no more than this, rounded \
             down to whole blocks per plane. Idle folding needs idle_after.";
        gc: EntryChoice = Kind::Entry("gc-policy"), default "\"greedy\"",
            "The victim policy of garbage collection in native blocks.";
        gc_idle_free_blocks: usize = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "An idle device collects in a plane while it has this many free blocks or fewer, after \
             folding. Needs idle_after.";
    }
}

/// Blocks of each plane.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// In the static cache; the first ones of the plane.
    fixed: u32,
    dynamic_max: u32,
    /// Erased blocks that the dynamic cache leaves, at least.
    keep_free: usize,
    /// Full blocks that idle folding leaves in the cache.
    low: usize,
}

impl Sizes {
    fn new(params: &Parameters, geometry: &Geometry, slc_pages: u32) -> Self {
        let planes = u64::from(geometry.planes());
        let row = planes * u64::from(slc_pages) * u64::from(geometry.page_bytes());
        let blocks = geometry.blocks_per_plane();
        let at_most = |rows: u64| rows.min(u64::from(blocks)) as u32;
        let fixed = at_most(params.static_size.div_ceil(row));
        let dynamic = params.dynamic_size.map(|size| size.div_ceil(row));
        let kept = params.keep_free * f64::from(blocks - fixed);
        Self {
            fixed,
            dynamic_max: dynamic.map_or(u32::MAX, at_most),
            keep_free: (libm::ceil(kept) as usize).max(1),
            low: (params.low_mark / row) as usize,
        }
    }
}

/// A block whose valid pages are being moved.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Moving {
    block: BlockId,
    /// Offsets below have been copied.
    next: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pool {
    /// The open block of the cache.
    cache: Frontier,
    /// The open native block for host writes.
    direct: Frontier,
    /// The open native block for folded and collected pages.
    moved: Frontier,
    /// Erased blocks of the static cache.
    free_static: VecDeque<BlockId>,
    /// Other erased blocks.
    free: FreeBlocks,
    /// Full blocks of the cache, the oldest first.
    full: VecDeque<BlockId>,
    /// The block of the cache being folded.
    folding: Option<Moving>,
    /// The native block being collected.
    collecting: Option<Moving>,
    /// Blocks of the dynamic cache that are not erased.
    dynamic: u32,
    valid: u32,
    /// Most valid pages.
    limit: u32,
}

/// Destination of the next host page of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Cache,
    Direct,
}

struct SlcCache {
    geometry: Geometry,
    slc_pages: u32,
    bits: u32,
    sizes: Sizes,
    map: PageTable,
    pools: Vec<Pool>,
    rotation: Rotation,
    policy: Box<dyn VictimPolicy>,
    /// Pages to copy; kept for its memory.
    run: PageRun,
    folds_when_full: bool,
    free_low_idle: usize,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let (params, geometry) = (Parameters::from_settings(input.settings), *input.geometry);
    let bits = params.bits_per_cell;
    let slc_pages = geometry.pages_per_block() / bits;
    if slc_pages == 0 {
        let message = format!(
            "cells of {bits} bits need blocks of at least {bits} pages, not of {}",
            geometry.pages_per_block()
        );
        return Err(vec![Problem::new("bits_per_cell", message)]);
    }
    let sizes = Sizes::new(&params, &geometry, slc_pages);
    let pools = geometry.planes() as usize;
    let policy = frontier::victim_policy(input, &params.gc, pools)?;
    let native = geometry.blocks_per_plane() - sizes.fixed;
    let limit = native.saturating_sub(RESERVE_BLOCKS) * geometry.pages_per_block();
    let reserved = format!(
        "{} of {} blocks for the static cache and {RESERVE_BLOCKS} reserved",
        sizes.fixed,
        geometry.blocks_per_plane()
    );
    let capacity = u64::from(limit) * u64::from(geometry.planes());
    if let Some(mut problem) = frontier::capacity_problem(input, capacity, &reserved) {
        if sizes.fixed > 0 {
            problem.message.push_str(", or lower static_size");
        }
        return Err(vec![problem]);
    }
    Ok(Box::new(SlcCache {
        map: PageTable::new(&geometry, input.exported_pages),
        pools: (0..geometry.planes()).map(|plane| Pool::new(&geometry, plane, &sizes)).collect(),
        rotation: Rotation::new(0..geometry.planes(), 1),
        policy,
        run: PageRun::new(),
        folds_when_full: params.when_full == WhenFull::Fold,
        free_low_idle: params.gc_idle_free_blocks,
        geometry,
        slc_pages,
        bits,
        sizes,
    }))
}

impl Pool {
    fn new(geometry: &Geometry, plane: u32, sizes: &Sizes) -> Self {
        let first = geometry.first_block(PlaneId(plane)).0;
        let (native, none) = (geometry.blocks_per_plane() - sizes.fixed, Frontier::none(geometry));
        Self {
            cache: none,
            direct: none,
            moved: none,
            free_static: (first..first + sizes.fixed).map(BlockId).collect(),
            free: FreeBlocks::new(FreeOrder::OldestFirst, first + sizes.fixed, native),
            full: VecDeque::new(),
            folding: None,
            collecting: None,
            dynamic: 0,
            valid: 0,
            limit: native.saturating_sub(RESERVE_BLOCKS) * geometry.pages_per_block(),
        }
    }
}

impl SlcCache {
    /// Selects the next pool that can take one more page, and where it goes.
    fn select(&mut self, flash: &mut FlashOps) -> Option<(usize, Target)> {
        for _ in 0..self.pools.len() {
            let pool = self.rotation.next_page();
            let Pool { valid, limit, cache, .. } = self.pools[pool];
            if valid >= limit {
                continue;
            }
            if cache.next < self.slc_pages {
                return Some((pool, Target::Cache));
            }
            if let Some(target) = self.open(pool, flash) {
                return Some((pool, target));
            }
        }
        None
    }

    /// Opens a block of the cache, or ensures that the native block for host writes has a page.
    #[cold]
    fn open(&mut self, pool: usize, flash: &mut FlashOps) -> Option<Target> {
        if self.open_cache(pool, flash) {
            return Some(Target::Cache);
        }
        while self.folds_when_full && self.fold(pool, flash) {
            if self.open_cache(pool, flash) {
                return Some(Target::Cache);
            }
        }
        self.open_direct(pool, flash).then_some(Target::Direct)
    }

    fn open_cache(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        let Sizes { dynamic_max, keep_free, .. } = self.sizes;
        let pool = &mut self.pools[pool];
        let mut block = pool.free_static.pop_front();
        if block.is_none() && pool.dynamic < dynamic_max && pool.free.len() > keep_free {
            block = pool.free.take(false);
            pool.dynamic += 1;
        }
        let Some(block) = block else { return false };
        flash.begin_slc(block);
        pool.cache = Frontier::new(block);
        true
    }

    fn open_direct(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        if !self.pools[pool].direct.is_full(&self.geometry) {
            return true;
        }
        while self.pools[pool].free.len() <= 1 {
            // With no free block left, worn-out blocks have used up the reserve.
            if !self.collect(pool, (false, u32::MAX), flash) {
                return false;
            }
            if self.pools[pool].valid >= self.pools[pool].limit {
                return false; // Blocks wore out just now, and collecting may never gain a block.
            }
        }
        let block = self.pools[pool].free.take(false).expect("more than one is free");
        self.pools[pool].direct = Frontier::new(block);
        true
    }

    fn take_page(&mut self, pool: usize, target: Target) -> (Ppn, Option<BlockId>) {
        let pool = &mut self.pools[pool];
        if target == Target::Direct {
            return pool.direct.take_page(&self.geometry);
        }
        let page = self.geometry.page(pool.cache.block, pool.cache.next);
        pool.cache.next += 1;
        if pool.cache.next == self.slc_pages {
            pool.full.push_back(pool.cache.block);
            pool.cache = Frontier::none(&self.geometry);
        }
        (page, None)
    }

    fn invalidate(&mut self, page: Ppn, flash: &mut FlashOps) {
        let block = self.geometry.block_of(page);
        let pool = self.geometry.plane_of(block).0 as usize;
        let valid = flash.invalidate(page);
        self.pools[pool].valid -= 1;
        if !flash.array().is_slc(block) {
            self.policy.invalidated(pool, block, valid);
        }
    }

    fn is_static(&self, block: BlockId) -> bool {
        let first = self.geometry.first_block(self.geometry.plane_of(block)).0;
        block.0 - first < self.sizes.fixed
    }
}

impl SavedState for SlcCache {
    fn save(&self, to: &mut Saver) {
        self.map.save(to);
        to.put(&(&self.pools, &self.rotation));
        self.policy.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.map.restore(from)?;
        let rotation;
        (self.pools, rotation) = from.take()?;
        self.rotation.restore(rotation)?;
        self.policy.restore(from)
    }
}

impl Ftl for SlcCache {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        self.map.get(lpn, flash.array())
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let Some((pool, target)) = self.select(flash) else {
            return Err(frontier::device_full(self.map.pages(), flash));
        };
        let (page, filled) = self.take_page(pool, target);
        // Looked up only now: the old copy may have been moved.
        let old = self.map.replace(lpn, page, flash.array());
        flash.host_program(page, lpn, After::NOTHING);
        self.pools[pool].valid += 1;
        if old != Ppn::NONE {
            self.invalidate(old, flash);
        }
        if let Some(block) = filled {
            self.policy.closed(pool, block, flash.array().valid(block));
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let old = self.map.get(lpn, flash.array());
        if old != Ppn::NONE {
            self.map.set(lpn, Ppn::NONE);
            self.invalidate(old, flash);
        }
        Ok(())
    }

    fn expect_filling(&mut self) {
        self.map.expect_filling();
    }

    fn expect(&self, lpns: &[Lpn], _flash: &FlashOps) {
        self.map.prefetch(lpns.iter().map(|lpn| lpn.0));
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        self.map.holds(lpn)
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        let mut worked = false;
        for pool in 0..self.pools.len() {
            worked |= self.idle_step(pool, flash);
        }
        Ok(worked)
    }

    fn properties(&self) -> Properties {
        Properties {
            mapping_ram_bytes: self.map.pages() as u64 * 4,
            slc_blocks: Some(SlcBlocks {
                bits: self.bits,
                pages_per_block: self.slc_pages,
                static_per_plane: self.sizes.fixed,
            }),
            data_pages: Some(self.pools.iter().map(|pool| u64::from(pool.limit)).sum()),
            settles: true,
            unsaveable: self.policy.check_saveable().err(),
            ..Properties::default()
        }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let array = flash.array();
        self.map.audit(array, self.pools.iter().map(|pool| u64::from(pool.valid)).sum())?;
        for (number, pool) in self.pools.iter().enumerate() {
            let open = (pool.cache.next < self.slc_pages).then_some(pool.cache.block);
            let folding = pool.folding.map(|moving| moving.block);
            let cached = pool.full.iter().copied().chain(open).chain(folding);
            let native = cached.clone().find(|block| !array.is_slc(*block));
            let dynamic = cached.filter(|block| !self.is_static(*block)).count();
            if native.is_some() || dynamic != pool.dynamic as usize {
                return Err(format!(
                    "pool {number}: block {native:?} of the cache is in native mode, or {dynamic} \
                     dynamic blocks were counted as {}",
                    pool.dynamic
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
