//! DFTL: page mapping with the map in flash and a cached mapping table in memory.
//!
//! Gupta, Kim, Urgaonkar, ASPLOS 2009; compared with others in flashsim, section 4. The map is
//! divided into translation pages. The global translation directory in memory holds their
//! addresses; entries are fetched on demand and written back when evicted. Garbage collection
//! treats data and translation pages separately: cached entries of copied data are updated in the
//! cache alone (lazy copying), the others are written once per translation page (batch updates).
//!
//! Data pages stripe over all planes as in the page-mapped FTL. Translation pages are in pools of
//! their own, each of which owns a share of the blocks of one plane, so that writing a translation
//! page never needs a data block: collecting data can always write the map.
//!
//! Why it cannot deadlock: a plane with `b` blocks for data takes `(b - 2)` blocks' worth of valid
//! pages. One block stays free to copy to and one is the frontier, so that with one free block some
//! closed block holds an invalid page. A translation pool owns two blocks more than its pages need,
//! for the same reason.

mod cache;
mod collect;
mod host_buffer;
#[cfg(test)]
mod tests;

use super::frontier::{self, Frontier, RESERVE_BLOCKS, Rotation};
use super::{
    BuiltFtl, EXPECTED_MAX, Ftl, FtlEntry, FtlError, FtlInput, HOST_BUFFER, Hint, Maintenance,
    Properties, REFRESH,
};
use crate::event::Cause;
use crate::gc::VictimPolicy;
use crate::geometry::{Geometry, Lpn, PlaneId, Ppn};
use crate::ops::{After, FlashOps};
use crate::state::SavedState;
use crate::wear::{FreeBlocks, FreeOrder};
use cache::{MappingCache, Slot};
use host_buffer::HostBuffer;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "dftl",
        summary: "Page map in flash; recently used entries are cached in memory.",
        origin: "Gupta, Kim, Urgaonkar, ASPLOS 2009; flashsim, section 4. Unlike there, victims \
                 are chosen separately for the data of each plane and for the map, not from the \
                 whole device",
        params: Parameters::PARAMS,
    },
    provides: &[HOST_BUFFER, REFRESH],
    build,
};

hybridsim_config::choices! {
    /// Eviction order of the cache of entries.
    enum CachePolicy { SegmentedLru = "segmented-lru", Lru = "lru" }
}

hybridsim_config::params! {
    struct Parameters {
        cache_entries: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "8192",
            "Mapping entries cached in memory, 8 bytes each.";
        cache_policy: CachePolicy = Kind::Choice(CachePolicy::NAMES), default "\"segmented-lru\"",
            "The eviction order of the cache; `segmented-lru` protects entries used more than \
             once.";
        cache_protected: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.8"
            needs &[Needs::Is("cache_policy", &["segmented-lru"])],
            "The protected segment of `segmented-lru` as a fraction of the cache.";
        batch_updates: bool = Kind::Flag, default "true",
            "Whether a write of a translation page includes all its dirty entries.";
        host_buffer: u64 = Kind::Bytes, default "\"0B\"",
            "Memory of the host that holds translation pages (NVMe host memory buffer), as drives \
             without DRAM have it: entries that are not in the controller's memory are read there. \
             0 for none.";
        stripe_pages: u32 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Pages that the host writes to one plane before the next.";
        gc: EntryChoice = Kind::Entry("gc-policy"), default "\"greedy\"",
            "The victim policy of garbage collection.";
        gc_free_blocks: u32 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Garbage collection runs in a plane while it has this many free data blocks or fewer.";
        gc_idle_free_blocks: Option<u32> = Kind::Count { min: 1, max: 1 << 20 }, optional,
            "An idle device collects a block in a plane while it has this many free data blocks or \
             fewer; gc_free_blocks by default. Needs idle_after.";
    }
}

/// Blocks of the device for each translation pool.
const BLOCKS_PER_TRANSLATION_POOL: u32 = 256;
/// Bytes of a mapping entry in flash, whose position gives its logical page.
const ENTRY_BYTES: u32 = 4;
/// Bytes of a cached entry, which has to name its logical page.
const CACHED_BYTES: u64 = 8;

/// The data frontier of a plane, and the plane's free blocks.
#[derive(Debug, Serialize, Deserialize)]
struct Plane {
    frontier: Frontier,
    /// Used in turn for data and translation pages, which spreads erases.
    free: FreeBlocks,
    /// Free blocks that belong to the plane's translation pool.
    reserved: u32,
    /// Valid data pages.
    valid: u32,
    /// Most valid data pages.
    limit: u32,
}

impl Plane {
    /// Free blocks for data.
    #[inline]
    fn free_for_data(&self) -> u32 {
        (self.free.len() as u32).saturating_sub(self.reserved)
    }

    /// Opens a free block for data.
    fn begin_block(&mut self) {
        self.frontier = Frontier::new(self.free.take(false).expect("a block is free"));
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
    /// The physical page of every logical page, as cache and translation pages together hold it.
    map: Vec<Ppn>,
    /// The global translation directory: the physical page of every translation page.
    directory: Vec<Ppn>,
    cache: MappingCache,
    host: Option<Box<HostBuffer>>,
    planes: Vec<Plane>,
    pools: Vec<TranslationPool>,
    rotation: Rotation,
    policy: Box<dyn VictimPolicy>,
    free_low: u32,
    free_low_idle: u32,
    batch: bool,
    /// A translation page could not be written; the data can still be read.
    read_only: bool,
    /// Pages copied by the running collection whose entries are not cached.
    copied: Vec<Lpn>,
    /// Their translation pages, and for each translation page whether it is among these.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// The map as the translation pages in flash and in the host's memory hold it, kept by debug
    /// builds to check that no update is lost; empty otherwise.
    stored: Vec<Ppn>,
}

/// Shares of data and translation pages in the blocks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    entries_per_page: u32,
    translation_pages: u32,
    pools: u32,
    blocks_per_pool: u32,
}

impl Shares {
    fn new(geometry: &Geometry, exported_pages: u32) -> Option<Self> {
        let entries_per_page = geometry.page_bytes() / ENTRY_BYTES;
        let translation_pages = exported_pages.div_ceil(entries_per_page);
        let wanted = (geometry.blocks() / BLOCKS_PER_TRANSLATION_POOL).max(1);
        let fewest = wanted.min(geometry.planes()).min(translation_pages);
        // 50 % more blocks than their pages fill, as the map is rewritten far more often than data.
        let blocks = |pools: u32| {
            let pages = u64::from(translation_pages.div_ceil(pools));
            (pages * 3).div_ceil(u64::from(geometry.pages_per_block()) * 2) as u32 + RESERVE_BLOCKS
        };
        let fits = |pools: &u32| blocks(*pools) <= geometry.blocks_per_plane();
        let pools = (fewest..=geometry.planes().min(translation_pages)).find(fits)?;
        Some(Self { entries_per_page, translation_pages, pools, blocks_per_pool: blocks(pools) })
    }

    fn plane(&self, pool: u32, geometry: &Geometry) -> usize {
        (u64::from(pool) * u64::from(geometry.planes()) / u64::from(self.pools)) as usize
    }

    fn planes(&self, geometry: &Geometry) -> Vec<Plane> {
        let blocks = geometry.blocks_per_plane();
        let plane = |plane| {
            let first = geometry.first_block(PlaneId(plane)).0;
            let free = FreeBlocks::new(FreeOrder::OldestFirst, first, blocks);
            Plane { frontier: Frontier::none(geometry), free, reserved: 0, valid: 0, limit: 0 }
        };
        let mut planes: Vec<Plane> = (0..geometry.planes()).map(plane).collect();
        for pool in 0..self.pools {
            planes[self.plane(pool, geometry)].reserved = self.blocks_per_pool;
        }
        for plane in &mut planes {
            plane.limit =
                plane.free_for_data().saturating_sub(RESERVE_BLOCKS) * geometry.pages_per_block();
        }
        planes
    }
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let geometry = input.geometry;
    let shares = Shares::new(geometry, input.exported_pages);
    let planes = shares.map(|shares| shares.planes(geometry));
    let capacity = planes.iter().flatten().map(|plane| u64::from(plane.limit)).sum();
    let reserved = format!("the map and {RESERVE_BLOCKS} blocks reserved");
    let mut problems = Vec::from_iter(frontier::capacity_problem(input, capacity, &reserved));
    let params = Parameters::from_settings(input.settings);
    let page = u64::from(geometry.page_bytes());
    if params.host_buffer > 0 && params.host_buffer < page {
        let message = format!("must hold a translation page, of {page} bytes; or 0 for none");
        problems.push(Problem::new("host_buffer", message));
    }
    let pools = geometry.planes() + shares.map_or(1, |shares| shares.pools);
    match (frontier::victim_policy(input, &params.gc, pools as usize), shares, planes) {
        (Ok(policy), Some(shares), Some(planes)) if problems.is_empty() => {
            Ok(Box::new(Dftl::new(input, &params, &shares, planes, policy)))
        }
        (policy, ..) => {
            problems.extend(policy.err().into_iter().flatten());
            Err(problems)
        }
    }
}

/// The part of the map in the memory of the host, of `bytes`; none where it has no room for a page.
fn host_buffer(bytes: u64, shares: &Shares, geometry: &Geometry) -> Option<Box<HostBuffer>> {
    let pages = bytes / u64::from(geometry.page_bytes());
    let pages = pages.min(u64::from(shares.translation_pages)) as u32;
    (pages > 0).then(|| Box::new(HostBuffer::new(pages, shares.translation_pages)))
}

impl Dftl {
    fn new(
        input: &FtlInput<'_>,
        params: &Parameters,
        shares: &Shares,
        planes: Vec<Plane>,
        policy: Box<dyn VictimPolicy>,
    ) -> Self {
        let geometry = *input.geometry;
        let capacity = params.cache_entries.min(input.exported_pages);
        let protected = match params.cache_policy {
            CachePolicy::Lru => 0,
            CachePolicy::SegmentedLru => {
                (f64::from(capacity) * params.cache_protected).round() as u32
            }
        };
        let pool = |pool| TranslationPool {
            plane: shares.plane(pool, &geometry),
            frontier: Frontier::none(&geometry),
        };
        let stored = if cfg!(debug_assertions) { input.exported_pages } else { 0 };
        Self {
            map: vec![Ppn::NONE; input.exported_pages as usize],
            directory: vec![Ppn::NONE; shares.translation_pages as usize],
            cache: MappingCache::new(
                capacity,
                protected,
                shares.translation_pages,
                shares.entries_per_page,
            ),
            host: host_buffer(params.host_buffer, shares, &geometry),
            planes,
            pools: (0..shares.pools).map(pool).collect(),
            rotation: Rotation::new(0..geometry.planes(), params.stripe_pages),
            policy,
            free_low: params.gc_free_blocks,
            free_low_idle: params.gc_idle_free_blocks.unwrap_or(params.gc_free_blocks),
            batch: params.batch_updates,
            read_only: false,
            copied: Vec::with_capacity(geometry.pages_per_block() as usize),
            touched: Vec::with_capacity(geometry.pages_per_block() as usize),
            is_touched: vec![false; shares.translation_pages as usize],
            stored: vec![Ppn::NONE; stored as usize],
            geometry,
        }
    }

    /// Caches the entry of `lpn`; returns its slot and the operation that the access depends on.
    #[inline]
    fn load(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(Slot, After), FtlError> {
        if let Some(slot) = self.cache.find(lpn) {
            self.cache.touch(slot);
            return Ok((slot, After::NOTHING));
        }
        let after = if self.cache.is_full() { self.evict(flash)? } else { After::NOTHING };
        let after = self.fetch_entry(lpn, after, flash);
        if self.host.is_some() {
            self.keep_in_host(self.cache.translation_page(lpn), flash);
        }
        Ok((self.cache.insert(lpn), after))
    }

    /// Reads the entry of `lpn` from the host's memory, or its translation page from flash, if it
    /// was ever written.
    fn fetch_entry(&mut self, lpn: Lpn, after: After, flash: &mut FlashOps) -> After {
        debug_assert!(
            self.read_only || self.stored[lpn.0 as usize] == self.map[lpn.0 as usize],
            "the mapping of {lpn:?} was lost"
        );
        let page = self.cache.translation_page(lpn);
        if let Some(host) = self.host.as_mut().filter(|host| host.holds(page)) {
            if host.access(page, lpn) {
                flash.note_host_access();
            }
            return after;
        }
        let at = self.directory[page as usize];
        if at == Ppn::NONE {
            return after; // This translation page was never written.
        }
        flash.read(at, Cause::Mapping, after)
    }

    /// Puts translation page `page`, which was read from flash, into the host's memory. Only a
    /// worn-out device cannot program the page that has to leave; then it stays.
    fn keep_in_host(&mut self, page: u32, flash: &mut FlashOps) {
        let Some(host) = &self.host else { return };
        if host.holds(page) || self.directory[page as usize] == Ppn::NONE {
            return;
        }
        if let Some(victim) = host.victim() {
            if host.is_dirty(victim) {
                if self.write_translation(victim, flash).is_err() {
                    return;
                }
                if self.batch {
                    self.entries_written(victim);
                }
            }
            self.host.as_mut().expect("it has one").remove(victim);
        }
        self.host.as_mut().expect("it has one").insert(page);
    }

    /// Writes changed entries of translation page `page` to the host's memory, where it is there,
    /// or else to flash. Returns the operation that a read of the page depends on.
    fn update_translation(&mut self, page: u32, flash: &mut FlashOps) -> Result<After, FtlError> {
        match self.host.as_mut().filter(|host| host.holds(page)) {
            Some(host) => {
                host.update(page);
                Ok(After::NOTHING)
            }
            None => self.write_translation(page, flash),
        }
    }

    /// Evicts an entry, which is written back first if it is dirty.
    fn evict(&mut self, flash: &mut FlashOps) -> Result<After, FtlError> {
        let slot = self.cache.victim().expect("a full cache has a victim");
        let mut after = After::NOTHING;
        if self.cache.is_dirty(slot) {
            let page = self.cache.translation_page(self.cache.lpn(slot));
            after = self.update_translation(page, flash)?;
            self.entry_written(slot);
            if self.batch {
                self.entries_written(page);
            }
        }
        self.cache.remove(slot);
        Ok(after)
    }

    /// Marks the entry of `slot` as clean: its translation page was just written.
    #[inline]
    fn entry_written(&mut self, slot: Slot) {
        self.cache.clean(slot);
        self.store(self.cache.lpn(slot));
    }

    /// As [`Self::entry_written`] for every dirty entry of translation page `page`.
    fn entries_written(&mut self, page: u32) {
        while let Some(slot) = self.cache.any_dirty(page) {
            self.entry_written(slot);
        }
    }

    #[inline]
    fn store(&mut self, lpn: Lpn) {
        if let Some(stored) = self.stored.get_mut(lpn.0 as usize) {
            *stored = self.map[lpn.0 as usize];
        }
    }

    #[inline]
    fn invalidate(&mut self, page: Ppn, flash: &mut FlashOps) {
        let block = self.geometry.block_of(page);
        let plane = self.geometry.plane_of(block).0 as usize;
        let valid = flash.invalidate(page);
        self.planes[plane].valid -= 1;
        self.policy.invalidated(plane, block, valid);
    }

    fn device_full(&self, flash: &FlashOps) -> FtlError {
        frontier::device_full(self.map.len(), flash)
    }
}

impl SavedState for Dftl {
    fn save(&self, to: &mut Saver) {
        to.put(&(&self.map, &self.directory, &self.cache));
        to.put(&(&self.planes, &self.pools, &self.rotation, self.read_only));
        to.put(&self.host);
        self.policy.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.map, self.directory, self.cache) = from.take()?;
        let rotation;
        (self.planes, self.pools, rotation, self.read_only) = from.take()?;
        self.rotation.restore(rotation)?;
        self.host = from.take()?;
        if !self.stored.is_empty() {
            // Differs from the translation pages in the dirty entries, which are never compared.
            self.stored.clone_from(&self.map);
        }
        self.policy.restore(from)
    }
}

impl Ftl for Dftl {
    fn lookup(&self, lpn: Lpn, _flash: &FlashOps) -> Ppn {
        self.map[lpn.0 as usize]
    }

    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let after = match self.load(lpn, flash) {
            Ok((_, after)) => after,
            // A worn-out device that cannot write back an entry bypasses its cache.
            Err(_) => self.fetch_entry(lpn, After::NOTHING, flash),
        };
        let page = self.map[lpn.0 as usize];
        if page != Ppn::NONE {
            flash.host_read(page, after);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.read_only {
            return Err(self.device_full(flash));
        }
        // Garbage collection caches no entry, so this one stays cached.
        let (slot, after) = self.load(lpn, flash)?;
        let Some(plane) = self.select_plane(flash)? else { return Err(self.device_full(flash)) };
        let (page, filled) = self.take_data_page(plane);
        flash.host_program(page, lpn, after);
        // Looked up only now: a collection may have moved the old copy.
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], page);
        self.cache.mark_dirty(slot);
        self.planes[plane].valid += 1;
        if old != Ppn::NONE {
            self.invalidate(old, flash);
        }
        self.close_if_full(plane, filled, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (slot, _) = self.load(lpn, flash)?;
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], Ppn::NONE);
        if old != Ppn::NONE {
            self.cache.mark_dirty(slot);
            self.invalidate(old, flash);
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

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        if self.read_only {
            return Ok(false);
        }
        for plane in 0..self.planes.len() {
            // Collecting full blocks would gain nothing and never end.
            let low = self.planes[plane].free_for_data() <= self.free_low_idle;
            if low && self.collect(plane, true, flash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn properties(&self) -> Properties {
        let directory = self.directory.len() as u64 * u64::from(ENTRY_BYTES);
        Properties {
            mapping_ram_bytes: u64::from(self.cache.capacity()) * CACHED_BYTES + directory,
            data_pages: Some(self.planes.iter().map(|plane| u64::from(plane.limit)).sum()),
            unsaveable: self.policy.check_saveable().err(),
            ..Properties::default()
        }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        self.cache.audit()?;
        if let Some(host) = &self.host {
            host.audit()?;
        }
        let is_some = |page: &&Ppn| **page != Ppn::NONE;
        let mapped = self.map.iter().filter(is_some).count() as u64;
        let written = self.directory.iter().filter(is_some).count() as u64;
        let counted: u64 = self.planes.iter().map(|plane| u64::from(plane.valid)).sum();
        let valid = flash.array().valid_pages();
        if (mapped + written, mapped) != (valid, counted) {
            return Err(format!("{mapped} + {written} mapped, {valid} valid, {counted} in planes"));
        }
        let owners = (self.map.iter().chain(&self.directory))
            .zip(0..)
            .filter(|(page, _)| **page != Ppn::NONE);
        for (&page, owner) in owners {
            if flash.array().owner(page) != Lpn(owner) {
                return Err(format!("page {owner} of data and map is mapped to another page"));
            }
        }
        for (lpn, (stored, truth)) in self.stored.iter().zip(&self.map).enumerate() {
            let cached = self.cache.find(Lpn(lpn as u32));
            if stored != truth && !cached.is_some_and(|slot| self.cache.is_dirty(slot)) {
                return Err(format!("the entry of page {lpn} is stale in flash and not dirty"));
            }
        }
        Ok(())
    }
}
