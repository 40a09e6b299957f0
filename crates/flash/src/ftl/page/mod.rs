//! The page-mapped FTL: any logical page can be on any physical page; the whole map is in memory.
//!
//! Every plane is a pool with write frontiers and free blocks of its own. Host writes go to the
//! pools round-robin, so they stripe over channels and dies; garbage collection stays within a
//! pool. A pool at its limit of valid pages is skipped. With several reclaim groups the pools are
//! divided among them, and a group whose pools are all at their limits gives way to the next.
//!
//! A pool of `b` usable blocks takes at most `(b - 2)` blocks' worth of valid pages: one block is
//! kept free for garbage collection to copy to and one is the frontier, so with one free block left
//! some closed block holds an invalid page, and collecting it gains at least that page. Each
//! further frontier, for classes of data and for data moved by wear levelling, costs one more
//! block.
//!
//! Trimmed pages are spare space: the effective over-provisioning follows the data the host keeps.

mod collect;

use super::frontier::{self, Frontier, RESERVE_BLOCKS, Rotation};
use super::page_table::PageTable;
use super::{
    BuiltFtl, EXPECTED_MAX, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties,
    REFRESH,
};
use crate::array::PageRun;
use crate::event::Cause;
use crate::gc::VictimPolicy;
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::ops::FlashOps;
use crate::placement::{Placement, PlacementEntry};
use crate::restore;
use crate::state::SavedState;
use crate::wear::{FreeBlocks, FreeOrder, WearEntry, WearInput, WearPolicy};
use collect::Collected;
use hybridsim_config::param::{EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "page",
        summary: "Maps every page freely; writes go to a log striped over all planes.",
        origin: "log-structured page mapping; flashsim's ideal reference, konanki chapter 2. \
                 Unlike there, each plane has logs of its own and is collected separately",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

hybridsim_config::choices! {
    /// Pace of garbage collection.
    enum Pace { Incremental = "incremental", Blocking = "blocking" }
}

hybridsim_config::params! {
    struct Parameters {
        gc: EntryChoice = Kind::Entry("gc-policy"), default "\"greedy\"",
            "The victim policy of garbage collection.";
        gc_free_blocks: usize = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Garbage collection runs in a plane while it has this many free blocks or fewer.";
        gc_pace: Pace = Kind::Choice(Pace::NAMES), default "\"incremental\"",
            "`incremental` copies a few pages after each host write, just enough to keep up; \
             `blocking` collects whole blocks before the write that needs a free block.";
        gc_separate: bool = Kind::Flag, default "true",
            "Whether pages copied by garbage collection, which tend to be cold, go to blocks of \
             their own. If not, the pace must be `blocking`.";
        gc_idle_free_blocks: Option<usize> = Kind::Count { min: 1, max: 1 << 20 }, optional,
            "An idle device collects in a plane while it has this many free blocks or fewer; \
             gc_free_blocks by default. Needs idle_after.";
        placement: EntryChoice = Kind::Entry("placement"), default "\"none\"",
            "Which host writes get blocks of their own.";
        wear: EntryChoice = Kind::Entry("wear-levelling"), default "\"none\"",
            "The wear-levelling policy.";
        stripe_pages: u32 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Pages that the host writes to one plane before the next.";
    }
}

/// The logs of a pool, whose frontiers are in [`Pool::open`]: one for each class of host writes,
/// those of garbage collection, and those of wear levelling. Where copies keep their class, the
/// latter are as many as classes.
#[derive(Debug)]
struct Logs {
    /// Number of classes.
    classes: u8,
    /// Whether copies have logs of their own.
    separate: bool,
    /// Classes of blocks, where copies keep theirs; else empty.
    of_blocks: Vec<u8>,
}

impl Logs {
    fn new(placement: &dyn Placement, separate: bool, geometry: &Geometry) -> Self {
        let blocks = if placement.isolates_copies() { geometry.blocks() } else { 0 };
        Self { classes: placement.classes(), separate, of_blocks: vec![0; blocks as usize] }
    }

    /// The log of host writes of a class.
    #[inline]
    const fn host(class: u8) -> usize {
        class as usize
    }

    /// The log that the copied pages of `block` go to.
    #[inline]
    fn copies(&self, cause: Cause, block: BlockId) -> usize {
        let class = self.of_blocks.get(block.0 as usize).copied().unwrap_or(0);
        match cause {
            Cause::Wear => self.wear() + usize::from(class),
            _ if self.separate => usize::from(self.classes) + usize::from(class),
            _ => Self::host(class),
        }
    }

    /// Classes of copies.
    #[inline]
    const fn of_copies(&self) -> usize {
        if self.of_blocks.is_empty() { 1 } else { self.classes as usize }
    }

    /// The first log of wear levelling.
    #[inline]
    const fn wear(&self) -> usize {
        self.classes as usize + self.of_copies()
    }

    /// Number of logs.
    const fn count(&self) -> usize {
        self.wear() + self.of_copies()
    }

    /// Notes that `block` is opened for `log`.
    fn opened(&mut self, block: BlockId, log: usize) {
        let class = log % usize::from(self.classes);
        if let Some(of_block) = self.of_blocks.get_mut(block.0 as usize) {
            *of_block = class as u8;
        }
    }
}

/// A block being collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Victim {
    block: BlockId,
    /// Offsets below have been copied.
    next: u32,
    /// Pages to copy after each host write so that the block is free in time.
    pace: u32,
    cause: Cause,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pool {
    /// By number of the log ([`Logs`]).
    open: Box<[Frontier]>,
    free: FreeBlocks,
    /// The worn block that takes the data the wear-levelling frontier has no pages for.
    worn: Option<BlockId>,
    victim: Option<Victim>,
    valid: u32,
    /// Most valid pages.
    limit: u32,
}

impl Pool {
    /// Free pages for `log`.
    fn room(&self, log: usize, geometry: &Geometry) -> u64 {
        self.open[log].room(self.free.len(), geometry)
    }

    #[inline(never)]
    fn begin_block(&mut self, log: usize, is_wear: bool) -> BlockId {
        let worn = if is_wear { self.worn.take() } else { None };
        let block = worn.or_else(|| self.free.take(true)).expect("a block is free");
        self.open[log] = Frontier::new(block);
        block
    }
}

struct PageMap {
    geometry: Geometry,
    map: PageTable,
    pools: Vec<Pool>,
    /// The order of the pools of each reclaim group.
    rotations: Box<[Rotation]>,
    policy: Box<dyn VictimPolicy>,
    wear: Box<dyn WearPolicy>,
    placement: Box<dyn Placement>,
    logs: Logs,
    /// Pages to copy; kept for its memory.
    run: PageRun,
    free_low: usize,
    free_low_idle: usize,
    incremental: bool,
}

/// The policies chosen by parameters.
struct Policies {
    policy: Box<dyn VictimPolicy>,
    wear: Box<dyn WearPolicy>,
    placement: Box<dyn Placement>,
}

impl Policies {
    fn build(
        input: &FtlInput<'_>,
        params: &Parameters,
        pools: usize,
    ) -> Result<Self, Vec<Problem>> {
        let policy = frontier::victim_policy(input, &params.gc, pools);
        let (wear, settings) = input.registry.chosen::<WearEntry>(&params.wear);
        let wear = (wear.build)(&WearInput { settings, geometry: input.geometry, pools });
        let (placement, settings) = input.registry.chosen::<PlacementEntry>(&params.placement);
        let placement = (placement.build)(settings);
        match (policy, wear, placement) {
            (Ok(policy), Ok(wear), Ok(placement)) => Ok(Self { policy, wear, placement }),
            (policy, wear, placement) => {
                let problems = [policy.err(), wear.err(), placement.err()];
                Err(problems.into_iter().flatten().flatten().collect())
            }
        }
    }

    /// Blocks of each pool that cannot hold data.
    fn reserve_blocks(&self, separate: bool) -> u32 {
        let classes = u32::from(self.placement.classes());
        let of_copies = if self.placement.isolates_copies() { classes } else { 1 };
        let separate = if separate { of_copies - 1 } else { 0 };
        let wear = if self.wear.moves_data() { of_copies } else { 0 };
        RESERVE_BLOCKS + (classes - 1) + separate + wear
    }
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    build_with(input, PageTable::new(input.geometry, input.exported_pages))
}

fn build_with(input: &FtlInput<'_>, map: PageTable) -> BuiltFtl {
    let params = Parameters::from_settings(input.settings);
    let geometry = *input.geometry;
    let pools = geometry.planes() as usize;
    let incremental = params.gc_pace == Pace::Incremental;
    let mut problems = Vec::new();
    if incremental && !params.gc_separate {
        let message = "incremental collection needs blocks of its own: \
                       set gc_pace = \"blocking\" or gc_separate = true";
        problems.push(Problem::new("gc_separate", message));
    }
    let policies = Policies::build(input, &params, pools);
    let policies = policies.map_err(|more| problems.extend(more)).ok();
    let groups = policies.as_ref().map_or(1, |it| u32::from(it.placement.groups()));
    if !geometry.dies().is_multiple_of(groups) {
        let message =
            format!("{} dies cannot be divided into {groups} equal groups", geometry.dies());
        problems.push(Problem::new("placement.reclaim_groups", message));
    }
    let reserve =
        policies.as_ref().map_or(RESERVE_BLOCKS, |it| it.reserve_blocks(params.gc_separate));
    let blocks = geometry.blocks_per_plane();
    let limit = blocks.saturating_sub(reserve) * geometry.pages_per_block();
    let reserved = format!("{reserve} of {blocks} blocks reserved");
    problems.extend(frontier::capacity_problem(input, u64::from(limit) * pools as u64, &reserved));
    let Some(Policies { policy, wear, placement }) = policies.filter(|_| problems.is_empty())
    else {
        return Err(problems);
    };
    let logs = Logs::new(&*placement, params.gc_separate, &geometry);
    let order = wear.order();
    Ok(Box::new(PageMap {
        map,
        pools: (0..geometry.planes())
            .map(|plane| Pool::new(&geometry, plane, (limit, logs.count()), order))
            .collect(),
        rotations: (0..groups)
            .map(|group| {
                let die = |plane: u32| u32::from(geometry.die_of_plane(PlaneId(plane)).0);
                let is_own = |plane: &u32| die(*plane) * groups / geometry.dies() == group;
                Rotation::new((0..geometry.planes()).filter(is_own), params.stripe_pages)
            })
            .collect(),
        policy,
        wear,
        placement,
        logs,
        run: PageRun::new(),
        free_low: params.gc_free_blocks,
        free_low_idle: params.gc_idle_free_blocks.unwrap_or(params.gc_free_blocks),
        incremental,
        geometry,
    }))
}

impl Pool {
    fn new(geometry: &Geometry, plane: u32, (limit, logs): (u32, usize), order: FreeOrder) -> Self {
        let first = geometry.first_block(PlaneId(plane)).0;
        Self {
            open: vec![Frontier::none(geometry); logs].into_boxed_slice(),
            free: FreeBlocks::new(order, first, geometry.blocks_per_plane()),
            worn: None,
            victim: None,
            valid: 0,
            limit,
        }
    }
}

impl PageMap {
    /// Selects the next pool that can take one more page, in `group` or else in those after it, and
    /// ensures that its frontier `log` has a free page.
    #[inline]
    fn select_pool(&mut self, group: u8, log: usize, flash: &mut FlashOps) -> Option<usize> {
        let group = usize::from(group);
        self.next_pool(group, log, flash).or_else(|| self.select_other(group, log, flash))
    }

    /// The pool whose turn it is in `group`, if it can take one more page.
    #[inline(always)]
    fn next_pool(&mut self, group: usize, log: usize, flash: &mut FlashOps) -> Option<usize> {
        let pool = self.rotations[group].next_page();
        let Pool { valid, limit, .. } = self.pools[pool];
        (valid < limit && self.ensure_page(pool, log, flash)).then_some(pool)
    }

    /// Selects a pool where the one whose turn it was in `group` cannot take a page.
    #[cold]
    fn select_other(&mut self, group: usize, log: usize, flash: &mut FlashOps) -> Option<usize> {
        self.rotations[group].skip();
        for group in (group..self.rotations.len()).chain(0..group) {
            for _ in 0..self.rotations[group].count() {
                if let Some(pool) = self.next_pool(group, log, flash) {
                    return Some(pool);
                }
                self.rotations[group].skip();
            }
        }
        None
    }

    /// Ensures that the host frontier `log` of `pool` has a free page.
    #[inline]
    fn ensure_page(&mut self, pool: usize, log: usize, flash: &mut FlashOps) -> bool {
        !self.pools[pool].open[log].is_full(&self.geometry)
            || self.open_host_block(pool, log, flash)
    }

    #[cold]
    fn open_host_block(&mut self, pool: usize, log: usize, flash: &mut FlashOps) -> bool {
        let low = if self.incremental { 1 } else { self.free_low };
        while self.pools[pool].free.len() <= low {
            match self.collect(pool, u32::MAX, flash) {
                Collected::Block | Collected::Partly => {}
                Collected::Nothing if self.pools[pool].free.len() > 1 => break,
                Collected::Nothing => return false, // Worn-out blocks have used up the reserve.
            }
            if self.pools[pool].valid >= self.pools[pool].limit {
                return false; // Blocks wore out just now, and collecting may never gain a block.
            }
            if !self.pools[pool].open[log].is_full(&self.geometry) {
                return true; // The collector opened a block and left pages in it.
            }
        }
        let block = self.pools[pool].free.take(false).expect("more than one is free");
        self.pools[pool].open[log] = Frontier::new(block);
        self.logs.opened(block, log);
        true
    }

    /// Opens a block for `log`, whose frontier is full, from those kept for copies.
    fn begin_block(&mut self, pool: usize, log: usize) {
        let block = self.pools[pool].begin_block(log, log >= self.logs.wear());
        self.logs.opened(block, log);
    }

    /// Takes the next page of a frontier that has one, for valid data. Returns it, its block, and
    /// whether it is the last.
    #[inline(always)]
    fn take_page(&mut self, pool: usize, log: usize) -> (Ppn, BlockId, bool) {
        let Pool { open, valid, .. } = &mut self.pools[pool];
        *valid += 1;
        let frontier = &mut open[log];
        let (page, filled) = frontier.take_page(&self.geometry);
        (page, frontier.block, filled.is_some())
    }

    /// The last page of `block` has been written.
    #[inline(never)]
    fn close(&mut self, pool: usize, block: BlockId, flash: &FlashOps) {
        self.policy.closed(pool, block, flash.array().valid(block));
        self.wear.filled(pool, block, flash.array().erases(block));
    }

    /// See [`Properties`]. Classes of data would fill blocks of their own.
    fn pages_before_collection(&self) -> Option<u64> {
        // Incremental collection begins when the last of these blocks is opened.
        let kept = self.free_low + usize::from(self.incremental);
        let blocks = self.pools.iter().map(|pool| pool.free.len().saturating_sub(kept) as u64);
        let pages = blocks.sum::<u64>() * u64::from(self.geometry.pages_per_block());
        (self.logs.classes == 1).then_some(pages)
    }

    // Always inlined: called for every page that the host writes.
    #[inline(always)]
    fn invalidate(&mut self, page: Ppn, flash: &mut FlashOps) {
        let block = self.geometry.block_of(page);
        let pool = self.geometry.plane_of(block).0 as usize;
        let valid = flash.invalidate_in(block, page);
        self.pools[pool].valid -= 1;
        self.policy.invalidated(pool, block, valid);
    }
}

impl SavedState for PageMap {
    fn save(&self, to: &mut Saver) {
        self.map.save(to);
        to.put(&(&self.pools, &self.rotations, &self.logs.of_blocks));
        self.policy.save(to);
        self.wear.save(to);
        self.placement.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.map.restore(from)?;
        let rotations: Box<[Rotation]>;
        let (blocks, logs) = (self.logs.of_blocks.len(), self.logs.count());
        (self.pools, rotations, self.logs.of_blocks) = from.take()?;
        let fits = rotations.len() == self.rotations.len()
            && self.pools.iter().all(|pool| pool.open.len() == logs)
            && self.logs.of_blocks.len() == blocks
            && self.logs.of_blocks.iter().all(|class| *class < self.logs.classes);
        restore::check(fits, "the logs of a plane or the classes of blocks differ")?;
        for (rotation, saved) in self.rotations.iter_mut().zip(rotations) {
            rotation.restore(saved)?;
        }
        self.policy.restore(from)?;
        self.wear.restore(from)?;
        self.placement.restore(from)
    }
}

impl Ftl for PageMap {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        self.map.get(lpn, flash.array())
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let class = if self.logs.classes > 1 { self.placement.class(lpn, hint) } else { 0 };
        let group = if self.rotations.len() > 1 {
            self.placement.place_of(hint.handle).map_or(0, |(group, _)| group)
        } else {
            0
        };
        let log = Logs::host(class);
        let Some(pool) = self.select_pool(group, log, flash) else {
            return Err(frontier::device_full(self.map.pages(), flash));
        };
        let (page, block, filled) = self.take_page(pool, log);
        // Looked up only now: a collection may have moved the old copy.
        let old = self.map.replace(lpn, page, flash.array());
        let die = self.geometry.die_of_plane(PlaneId(pool as u32));
        flash.host_program_in((die, block), page, lpn);
        if old != Ppn::NONE {
            self.invalidate(old, flash);
        }
        if filled {
            self.close(pool, block, flash);
        }
        self.keep_pace(pool, flash);
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

    fn expect(&self, lpns: &[Lpn], flash: &FlashOps) {
        let lpns = &lpns[..lpns.len().min(EXPECTED_MAX)];
        self.map.prefetch(lpns.iter().map(|lpn| lpn.0));
        self.prefetch_writes(lpns.len(), flash);
        let exists = |lpn: &&Lpn| (lpn.0 as usize) < self.map.pages();
        let pages = lpns.iter().filter(exists).map(|lpn| {
            let page = self.map.approximate(*lpn);
            self.map.prefetch_page(page, flash.array());
            page
        });
        flash.array().prefetch(pages);
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        self.map.holds(lpn)
    }

    fn unit_left(&self, handle: u8) -> Option<u64> {
        let (group, class) = self.placement.place_of(handle)?;
        let (pools, log) = (self.rotations[usize::from(group)].following(), Logs::host(class));
        let pages = self.geometry.pages_per_block();
        let left = |pool: &Pool| match pages - pool.open[log].next {
            0 => pages,
            left => left,
        };
        Some(pools.map(|pool| u64::from(left(&self.pools[pool]))).sum())
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        // One page of the first pool that is low on free blocks; started victims are finished. In a
        // mixed log the host could take the pages that a partially copied victim still needs.
        let budget = if self.logs.separate { 1 } else { u32::MAX };
        for pool in 0..self.pools.len() {
            let low = self.pools[pool].free.len() <= self.free_low_idle;
            if self.pools[pool].victim.is_none() && low {
                // Collecting full blocks would gain nothing and never end.
                self.pools[pool].victim = self.choose(pool, true, flash);
            }
            if self.pools[pool].victim.is_some() {
                self.collect(pool, budget, flash);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn properties(&self) -> Properties {
        let policies = self.wear.ram_bytes() + self.placement.ram_bytes();
        Properties {
            mapping_ram_bytes: self.map.pages() as u64 * 4 + policies,
            pages_before_collection: self.pages_before_collection(),
            data_pages: Some(self.pools.iter().map(|pool| u64::from(pool.limit)).sum()),
            unsaveable: self.policy.check_saveable().err(),
            ..Properties::default()
        }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let pooled = self.pools.iter().map(|pool| u64::from(pool.valid)).sum();
        self.map.audit(flash.array(), pooled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder;
    use crate::conformance::{Subject, check};
    use crate::defaults;

    fn build_with_dropped_bits(input: &FtlInput<'_>) -> BuiltFtl {
        build_with(input, PageTable::with_dropped_bits(input.geometry, input.exported_pages, 3))
    }

    #[test]
    fn it_conforms_with_a_table_of_partial_page_numbers() {
        let registry = defaults::registry();
        let settings = defaults::settings(Parameters::PARAMS, &registry);
        for order in [ProgramOrder::Sequential, ProgramOrder::Ascending, ProgramOrder::Any] {
            let entry = FtlEntry { build: build_with_dropped_bits, ..ENTRY };
            let subject =
                Subject { entry, settings: &settings, registry: &registry, order, saves: true };
            let coverage = check(&subject, 160, 9).unwrap_or_else(|failure| panic!("{failure}"));
            assert!(coverage.ran > 45 && coverage.erases > 1_000, "{coverage:?}");
        }
    }
}
