//! DFTL: page mapping with the map in flash, and only the entries in use in memory.
//!
//! Gupta, Kim, Urgaonkar, ASPLOS 2009; compared with others in flashsim, section 4. The map is cut
//! into translation pages. A directory in memory knows where each is; entries are fetched when they
//! are needed and written back when they leave. Garbage collection moves data and translation
//! pages apart: entries of moved data that are cached change in the cache alone (lazy copying),
//! the others are written back once per translation page (batch updates).
//!
//! Data pages stripe over all planes as in the page-mapped layer. Translation pages live in pools
//! of their own, each of which owns a share of the blocks of one plane, so that writing a
//! translation page never needs a data block: collecting data can always write the map back.
//!
//! Why it never gets stuck: a plane with `b` blocks for data takes `(b - 2)` blocks' worth of valid
//! pages. One block stays free to move into and one is the frontier, so that when one is left some
//! closed block holds an invalid page. A translation pool of `n` pages owns two blocks more than
//! they need, for the same reason.

mod cache;
mod collect;
#[cfg(test)]
mod tests;

use super::{BuiltFtl, EXPECTED_MAX, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::event::Cause;
use crate::gc::{GcEntry, GcInput, VictimPolicy};
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::ops::{After, FlashOps};
use cache::{Cache, Slot};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// DFTL.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "dftl",
        summary: "Page map kept in flash; the entries in use are cached in memory.",
        origin: "Gupta, Kim, Urgaonkar, ASPLOS 2009; flashsim, section 4. Unlike there, each \
                 plane's data and the map's blocks are collected apart, not the worst block of \
                 the device",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 7] = [
    Param::with(
        "cache_entries",
        Kind::Count { min: 1, max: u32::MAX as u64 },
        "8192",
        "Mapping entries held in memory, 8 bytes each.",
    ),
    Param::with(
        "cache_policy",
        Kind::Choice(&["segmented-lru", "lru"]),
        "\"segmented-lru\"",
        "Which entry leaves the cache; `segmented-lru` protects entries used again.",
    ),
    Param::with(
        "cache_protected",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.8",
        "The fraction of the cache that `segmented-lru` protects.",
    ),
    Param::with(
        "batch_updates",
        Kind::Flag,
        "true",
        "Whether writing a translation page takes along all changed entries that belong to it.",
    ),
    Param::with("gc", Kind::Entry("gc-policy"), "\"greedy\"", "Which block to collect next."),
    Param::with(
        "gc_free_blocks",
        Kind::Count { min: 1, max: 1 << 20 },
        "1",
        "Garbage collection runs in a plane while it has this many free data blocks or fewer.",
    ),
    Param::optional(
        "gc_idle_free_blocks",
        Kind::Count { min: 1, max: 1 << 20 },
        "An idle device collects a block in a plane while it has this many free data blocks or \
         fewer; gc_free_blocks when not given. Needs idle_after.",
    ),
];

/// Blocks per pool that cannot hold data: one to move into, one being filled.
const RESERVE_BLOCKS: u32 = 2;
/// Translation pools share the device so that there is one for so many blocks.
const BLOCKS_PER_TRANSLATION_POOL: u32 = 256;
/// Bytes of a mapping entry in flash; its place says which page it is for.
const ENTRY_BYTES: u32 = 4;
/// Bytes of a cached entry, which has to name its page.
const CACHED_BYTES: u64 = 8;

/// An open block, and the next page in it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Frontier {
    block: BlockId,
    next: u32,
}

/// The data side of a plane, and the plane's free blocks.
#[derive(Debug, Serialize, Deserialize)]
struct Plane {
    frontier: Frontier,
    /// First in, first out, which spreads erases over data and translation blocks.
    free: VecDeque<BlockId>,
    /// How many of the free blocks belong to the plane's translation pool.
    reserved: u32,
    /// Valid data pages.
    valid: u32,
    /// Valid data pages it can take.
    limit: u32,
}

impl Plane {
    /// Free blocks that data may use.
    #[inline]
    fn free_for_data(&self) -> u32 {
        (self.free.len() as u32).saturating_sub(self.reserved)
    }
}

/// Blocks that hold translation pages.
#[derive(Debug, Serialize, Deserialize)]
struct TranslationPool {
    plane: usize,
    frontier: Frontier,
}

struct Dftl {
    geometry: Geometry,
    /// Where every page is: what cache and translation pages together say.
    map: Vec<Ppn>,
    /// Where every translation page is; the global translation directory.
    directory: Vec<Ppn>,
    cache: Cache,
    planes: Vec<Plane>,
    pools: Vec<TranslationPool>,
    /// The plane the next host write tries first.
    turn: usize,
    policy: Box<dyn VictimPolicy>,
    free_low: u32,
    free_low_idle: u32,
    batch: bool,
    /// A translation page could not be written: what is stored can still be read.
    dead: bool,
    /// Pages moved by the running collection whose entries are not cached.
    moved: Vec<Lpn>,
    /// Translation pages they belong to, and per translation page whether it is among them.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// What the translation pages in flash say, kept by debug builds to prove that no change is
    /// ever lost; empty otherwise.
    stored: Vec<Ppn>,
}

/// How the blocks of a device are shared between data and translation pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    /// Entries in a translation page.
    entries_per_page: u32,
    /// Translation pages.
    pages: u32,
    /// Translation pools.
    pools: u32,
    /// Blocks each pool owns.
    blocks: u32,
}

impl Shares {
    fn new(geometry: &Geometry, exported_pages: u32) -> Option<Self> {
        let entries_per_page = geometry.page_bytes() / ENTRY_BYTES;
        let pages = exported_pages.div_ceil(entries_per_page);
        let wanted = (geometry.blocks() / BLOCKS_PER_TRANSLATION_POOL).max(1);
        let fewest = wanted.min(geometry.planes()).min(pages);
        // Half as much again as they need: the map is rewritten far more often than data.
        let blocks = |pools: u32| {
            let held = u64::from(pages.div_ceil(pools));
            (held * 3).div_ceil(u64::from(geometry.pages_per_block()) * 2) as u32 + RESERVE_BLOCKS
        };
        let fits = |pools: &u32| blocks(*pools) <= geometry.blocks_per_plane();
        let pools = (fewest..=geometry.planes().min(pages)).find(fits)?;
        Some(Self { entries_per_page, pages, pools, blocks: blocks(pools) })
    }

    /// The plane of translation pool `pool`.
    fn plane(&self, pool: u32, geometry: &Geometry) -> usize {
        (u64::from(pool) * u64::from(geometry.planes()) / u64::from(self.pools)) as usize
    }
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let geometry = *input.geometry;
    let mut problems = Vec::new();
    let shares = Shares::new(&geometry, input.exported_pages);
    let planes = shares.map(|shares| planes(&geometry, &shares));
    let room = planes.iter().flatten().map(|plane| u64::from(plane.limit)).sum::<u64>();
    // One more than exported: a page is written before its old copy is given up.
    if u64::from(input.exported_pages) + 1 > room {
        let message = format!(
            "{} pages are offered, but beside the map and {RESERVE_BLOCKS} spare blocks in each \
             of {} planes there is room for {}; raise over_provisioning or blocks_per_plane",
            input.exported_pages,
            geometry.planes(),
            room.saturating_sub(1)
        );
        problems.push(Problem::new("over_provisioning", message));
    }
    let policy = build_policy(input, shares.map_or(1, |shares| shares.pools), &mut problems);
    let (Some(shares), Some(planes), Some(policy)) = (shares, planes, policy) else {
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Box::new(Dftl::new(input, &shares, planes, policy)))
}

fn build_policy(
    input: &FtlInput<'_>,
    translation_pools: u32,
    problems: &mut Vec<Problem>,
) -> Option<Box<dyn VictimPolicy>> {
    let plug = input.settings.entry("gc");
    let Some(entry) = input.registry.find::<GcEntry>(&plug.name) else {
        problems.push(Problem::new("gc", format!("no {} called {}", GcEntry::CATEGORY, plug.name)));
        return None;
    };
    let policy = (entry.build)(&GcInput {
        settings: &plug.settings,
        geometry: input.geometry,
        pools: (input.geometry.planes() + translation_pools) as usize,
        seed: input.seed,
        path: input.path,
    });
    policy.map_err(|more| problems.extend(more)).ok()
}

fn planes(geometry: &Geometry, shares: &Shares) -> Vec<Plane> {
    let frontier = Frontier { block: BlockId::NONE, next: geometry.pages_per_block() };
    let mut planes: Vec<Plane> = (0..geometry.planes())
        .map(|plane| {
            let first = geometry.first_block(PlaneId(plane)).0;
            let free = (first..first + geometry.blocks_per_plane()).map(BlockId).collect();
            Plane { frontier, free, reserved: 0, valid: 0, limit: 0 }
        })
        .collect();
    for pool in 0..shares.pools {
        planes[shares.plane(pool, geometry)].reserved = shares.blocks;
    }
    for plane in &mut planes {
        plane.limit =
            plane.free_for_data().saturating_sub(RESERVE_BLOCKS) * geometry.pages_per_block();
    }
    planes
}

impl Dftl {
    fn new(
        input: &FtlInput<'_>,
        shares: &Shares,
        planes: Vec<Plane>,
        policy: Box<dyn VictimPolicy>,
    ) -> Self {
        let (settings, geometry) = (input.settings, *input.geometry);
        let capacity = settings.count("cache_entries").min(u64::from(input.exported_pages)) as u32;
        let protected = match settings.text("cache_policy") {
            "lru" => 0,
            _ => (f64::from(capacity) * settings.number("cache_protected")).round() as u32,
        };
        let frontier = Frontier { block: BlockId::NONE, next: geometry.pages_per_block() };
        let pool = |pool| TranslationPool { plane: shares.plane(pool, &geometry), frontier };
        let stored = if cfg!(debug_assertions) { input.exported_pages } else { 0 };
        Self {
            map: vec![Ppn::NONE; input.exported_pages as usize],
            directory: vec![Ppn::NONE; shares.pages as usize],
            cache: Cache::new(capacity, protected, shares.pages, shares.entries_per_page),
            planes,
            pools: (0..shares.pools).map(pool).collect(),
            turn: 0,
            policy,
            free_low: settings.count("gc_free_blocks") as u32,
            free_low_idle: (settings.count_opt("gc_idle_free_blocks"))
                .unwrap_or(settings.count("gc_free_blocks")) as u32,
            batch: settings.flag("batch_updates"),
            dead: false,
            moved: Vec::with_capacity(geometry.pages_per_block() as usize),
            touched: Vec::with_capacity(geometry.pages_per_block() as usize),
            is_touched: vec![false; shares.pages as usize],
            stored: vec![Ppn::NONE; stored as usize],
            geometry,
        }
    }

    /// Brings the entry of `lpn` into the cache; says what the mapping has to wait for.
    #[inline]
    fn load(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(Slot, After), FtlError> {
        if let Some(slot) = self.cache.find(lpn) {
            self.cache.touch(slot);
            return Ok((slot, After::NOTHING));
        }
        let after = if self.cache.is_full() { self.evict(flash)? } else { After::NOTHING };
        let after = self.fetch_entry(lpn, after, flash);
        Ok((self.cache.insert(lpn), after))
    }

    /// Reads the translation page of `lpn`, if it was ever written.
    fn fetch_entry(&self, lpn: Lpn, after: After, flash: &mut FlashOps) -> After {
        debug_assert!(
            self.dead || self.stored[lpn.0 as usize] == self.map[lpn.0 as usize],
            "the mapping of {lpn:?} was lost"
        );
        let page = self.directory[self.cache.translation_page(lpn) as usize];
        if page == Ppn::NONE {
            return after; // Nothing of this part of the map was ever written back.
        }
        flash.read(page, Cause::Mapping, after)
    }

    /// Makes room for one entry, writing it back first if it was changed.
    fn evict(&mut self, flash: &mut FlashOps) -> Result<After, FtlError> {
        let slot = self.cache.victim().expect("a full cache has a victim");
        let mut after = After::NOTHING;
        if self.cache.is_dirty(slot) {
            let page = self.cache.translation_page(self.cache.lpn(slot));
            after = self.write_translation(page, flash)?;
            self.write_back(slot);
            if self.batch {
                self.write_back_all(page);
            }
        }
        self.cache.remove(slot);
        Ok(after)
    }

    /// Notes that a translation page just written holds the entry of `slot`.
    #[inline]
    fn write_back(&mut self, slot: Slot) {
        self.cache.clean(slot);
        self.store(self.cache.lpn(slot));
    }

    /// As [`Self::write_back`] for every changed entry of `page`.
    fn write_back_all(&mut self, page: u32) {
        while let Some(slot) = self.cache.any_dirty(page) {
            self.write_back(slot);
        }
    }

    #[inline]
    fn store(&mut self, lpn: Lpn) {
        if let Some(stored) = self.stored.get_mut(lpn.0 as usize) {
            *stored = self.map[lpn.0 as usize];
        }
    }

    /// Marks the data page `page` as no longer needed.
    #[inline]
    fn give_up(&mut self, page: Ppn, flash: &mut FlashOps) {
        let block = self.geometry.block_of(page);
        let plane = self.geometry.plane_of(block).0 as usize;
        let valid = flash.invalidate(page);
        self.planes[plane].valid -= 1;
        self.policy.invalidated(plane, block, valid);
    }

    #[cold]
    fn no_room(&self, flash: &FlashOps) -> FtlError {
        let array = flash.array();
        let message = format!(
            "{} of {} blocks have reached their {} erases, and the rest cannot hold the {} pages \
             offered and their map; choose a higher endurance or over_provisioning, or a shorter \
             workload",
            array.retired_blocks(),
            self.geometry.blocks(),
            array.endurance(),
            self.map.len()
        );
        match array.retired_blocks() {
            0 => FtlError::Full(message),
            _ => FtlError::WornOut(message),
        }
    }
}

impl Ftl for Dftl {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let after = match self.load(lpn, flash) {
            Ok((_, after)) => after,
            // A worn-out device that cannot write an entry back reads round its cache.
            Err(_) => self.fetch_entry(lpn, After::NOTHING, flash),
        };
        let page = self.map[lpn.0 as usize];
        if page != Ppn::NONE {
            flash.host_read(page, after);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.dead {
            return Err(self.no_room(flash));
        }
        // Collecting garbage brings nothing into the cache, so the entry stays where it is.
        let (slot, after) = self.load(lpn, flash)?;
        let Some(plane) = self.place(flash)? else { return Err(self.no_room(flash)) };
        let (page, filled) = self.take_data_page(plane);
        flash.host_program(page, lpn, after);
        // Read only now: making room may have moved the old copy.
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], page);
        self.cache.mark_dirty(slot);
        self.planes[plane].valid += 1;
        if old != Ppn::NONE {
            self.give_up(old, flash);
        }
        self.close_if_full(plane, filled, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (slot, _) = self.load(lpn, flash)?;
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], Ppn::NONE);
        if old != Ppn::NONE {
            self.cache.mark_dirty(slot);
            self.give_up(old, flash);
        }
        Ok(())
    }

    fn expect(&self, lpns: &[Lpn], flash: &FlashOps) {
        let mut pages = [Ppn::NONE; EXPECTED_MAX];
        for (page, lpn) in pages.iter_mut().zip(lpns) {
            *page = self.map.get(lpn.0 as usize).copied().unwrap_or(Ppn::NONE);
        }
        for page in pages {
            if page != Ppn::NONE {
                std::hint::black_box(flash.array().state(page));
            }
        }
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        self.map[lpn.0 as usize] != Ppn::NONE
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        if self.dead {
            return Ok(false);
        }
        for plane in 0..self.planes.len() {
            // Nothing is gained by moving full blocks about, and it would go on for ever.
            let low = self.planes[plane].free_for_data() <= self.free_low_idle;
            if low && self.collect(plane, true, flash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn mapping_ram_bytes(&self) -> u64 {
        let directory = self.directory.len() as u64 * u64::from(ENTRY_BYTES);
        u64::from(self.cache.capacity()) * CACHED_BYTES + directory
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.map, &self.directory, &self.cache));
        to.put(&(&self.planes, &self.pools, self.turn, self.dead));
        self.policy.save(to);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (map, directory, cache): (Vec<Ppn>, Vec<Ppn>, Cache) = from.take()?;
        let (planes, pools, turn, dead): (Vec<Plane>, Vec<TranslationPool>, usize, bool) =
            from.take()?;
        state::same_length("the page map", map.len(), self.map.len())?;
        state::same_length("the directory", directory.len(), self.directory.len())?;
        self.cache.same_shape(&cache)?;
        state::same_length("the list of planes", planes.len(), self.planes.len())?;
        state::same_length("the list of translation pools", pools.len(), self.pools.len())?;
        if turn >= planes.len() {
            return Err(StateError(format!("there is no plane {turn}")));
        }
        if !self.stored.is_empty() {
            // What is changed and not written back differs from this, but is never compared.
            self.stored.clone_from(&map);
        }
        (self.map, self.directory, self.cache) = (map, directory, cache);
        (self.planes, self.pools, self.turn, self.dead) = (planes, pools, turn, dead);
        self.policy.restore(from)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        self.cache.audit()?;
        let is_some = |page: &&Ppn| **page != Ppn::NONE;
        let mapped = self.map.iter().filter(is_some).count() as u64;
        let written = self.directory.iter().filter(is_some).count() as u64;
        let held: u64 = self.planes.iter().map(|plane| u64::from(plane.valid)).sum();
        let valid = flash.array().valid_pages();
        if (mapped + written, mapped) != (valid, held) {
            return Err(format!("{mapped} + {written} mapped, {valid} valid, {held} in planes"));
        }
        let owners = (self.map.iter().chain(&self.directory))
            .zip(0..)
            .filter(|(page, _)| **page != Ppn::NONE);
        for (&page, owner) in owners {
            if flash.array().owner(page) != Lpn(owner) {
                return Err(format!("page {owner} of data and map is mapped to one of another"));
            }
        }
        for (lpn, (stored, truth)) in self.stored.iter().zip(&self.map).enumerate() {
            let cached = self.cache.find(Lpn(lpn as u32));
            if stored != truth && !cached.is_some_and(|slot| self.cache.is_dirty(slot)) {
                return Err(format!("the mapping of page {lpn} is neither in flash nor changed"));
            }
        }
        Ok(())
    }
}
