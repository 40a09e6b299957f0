//! The page-mapped translation layer: any logical page anywhere, the whole map in memory.
//!
//! Every plane is a pool with its own write frontiers and free blocks. Host writes go round the
//! pools, so they stripe over channels and dies; garbage collection stays within a pool. A pool
//! that would fill up is passed over.
//!
//! A pool with `b` usable blocks takes at most `(b - 2)` blocks' worth of valid pages: one block is
//! kept free for garbage collection to move into and one is its frontier, so with one free block
//! left some closed block holds an invalid page, and collecting it gains at least that page. Each
//! further frontier, for hot data and for data moved by wear levelling, costs one block more.
//!
//! Trimmed pages are spare space: over-provisioning grows and shrinks with what the host keeps,
//! while the run goes on.

mod collect;

use super::page_table::PageTable;
use super::{BuiltFtl, EXPECTED_MAX, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::array::Run;
use crate::gc::{GcEntry, GcInput, VictimPolicy};
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::hotcold::{HotColdClassifier, HotColdEntry};
use crate::ops::{After, FlashOps};
use crate::wear::{FreeBlocks, FreeOrder, WearEntry, WearInput, WearPolicy};
use collect::Collected;
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// The page-mapped translation layer.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "page",
        summary: "Maps every page freely; writes go to a log striped over all planes.",
        origin: "log-structured page mapping; flashsim's ideal reference, konanki chapter 2. \
                 Unlike there, each plane has logs of its own and is collected by itself",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 7] = [
    Param::with("gc", Kind::Entry("gc-policy"), "\"greedy\"", "Which block to collect next."),
    Param::with(
        "gc_free_blocks",
        Kind::Count { min: 1, max: 1 << 20 },
        "1",
        "Garbage collection runs in a plane while it has this many free blocks or fewer.",
    ),
    Param::with(
        "gc_pace",
        Kind::Choice(&["incremental", "blocking"]),
        "\"incremental\"",
        "`incremental` moves a few pages behind each host write, just enough to keep up; \
         `blocking` collects whole blocks before the write that needs the room.",
    ),
    Param::with(
        "gc_separate",
        Kind::Flag,
        "true",
        "Whether pages moved by garbage collection, which tend to be cold, go to blocks of their \
         own. Without it the pace must be `blocking`.",
    ),
    Param::optional(
        "gc_idle_free_blocks",
        Kind::Count { min: 1, max: 1 << 20 },
        "An idle device collects in a plane while it has this many free blocks or fewer; \
         gc_free_blocks when not given. Needs idle_after.",
    ),
    Param::with(
        "hot_cold",
        Kind::Entry("hot-cold"),
        "\"none\"",
        "Which writes of the host go to blocks for hot data.",
    ),
    Param::with("wear", Kind::Entry("wear-levelling"), "\"none\"", "How wear is kept even."),
];

/// Blocks per pool that cannot hold host data: the reserve and the garbage collector's frontier.
const RESERVE_BLOCKS: u32 = 2;

/// What a frontier is for; an index into [`Pool::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Host = 0,
    Gc = 1,
    Hot = 2,
    Wear = 3,
}

/// An open block, and the next page in it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Frontier {
    block: BlockId,
    next: u32,
}

/// A block being collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Victim {
    block: BlockId,
    /// Offsets below are done.
    next: u32,
    /// Pages to move behind each host write so that the block is free in time.
    pace: u32,
    /// Collected for the sake of wear levelling.
    wear: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pool {
    /// By [`Log`].
    open: [Frontier; 4],
    free: FreeBlocks,
    /// The worn block that will take the data the wear-levelling frontier has no room for.
    worn: Option<BlockId>,
    victim: Option<Victim>,
    valid: u32,
    /// Valid pages it can take.
    limit: u32,
}

impl Pool {
    /// Opens a free block for `log`.
    #[inline(never)]
    fn begin_block(&mut self, log: Log) {
        let worn = if log == Log::Wear { self.worn.take() } else { None };
        let block = worn.or_else(|| self.free.take(true)).expect("room was made");
        self.open[log as usize] = Frontier { block, next: 0 };
    }
}

struct PageMap {
    geometry: Geometry,
    /// The physical page of each logical one.
    map: PageTable,
    pools: Vec<Pool>,
    /// The pool the next host write tries first.
    turn: usize,
    policy: Box<dyn VictimPolicy>,
    wear: Box<dyn WearPolicy>,
    temperature: Box<dyn HotColdClassifier>,
    /// Pages on the move; kept for its memory.
    run: Run,
    free_low: usize,
    free_low_idle: usize,
    incremental: bool,
    separate: bool,
    separate_hot: bool,
}

/// The policies chosen into the layer.
struct Plugs {
    policy: Box<dyn VictimPolicy>,
    wear: Box<dyn WearPolicy>,
    temperature: Box<dyn HotColdClassifier>,
}

impl Plugs {
    fn build(input: &FtlInput<'_>, pools: usize) -> Result<Self, Vec<Problem>> {
        let FtlInput { geometry, seed, path, .. } = *input;
        let policy = input.chosen::<GcEntry>("gc").and_then(|(entry, settings)| {
            (entry.build)(&GcInput { settings, geometry, pools, seed, path })
        });
        let wear = input
            .chosen::<WearEntry>("wear")
            .and_then(|(entry, settings)| (entry.build)(&WearInput { settings, geometry, pools }));
        let temperature = input
            .chosen::<HotColdEntry>("hot_cold")
            .and_then(|(entry, settings)| (entry.build)(settings));
        match (policy, wear, temperature) {
            (Ok(policy), Ok(wear), Ok(temperature)) => Ok(Self { policy, wear, temperature }),
            (policy, wear, temperature) => {
                let problems = [policy.err(), wear.err(), temperature.err()];
                Err(problems.into_iter().flatten().flatten().collect())
            }
        }
    }

    /// Blocks per pool that cannot hold host data.
    fn reserve_blocks(&self) -> u32 {
        let more = [self.temperature.separates(), self.wear.moves_data()];
        RESERVE_BLOCKS + more.map(u32::from).iter().sum::<u32>()
    }
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    build_with(input, PageTable::new(input.geometry, input.exported_pages))
}

fn build_with(input: &FtlInput<'_>, map: PageTable) -> BuiltFtl {
    let settings = input.settings;
    let geometry = *input.geometry;
    let pools = geometry.planes() as usize;
    let incremental = settings.text("gc_pace") == "incremental";
    let separate = settings.flag("gc_separate");
    let mut problems = Vec::new();
    if incremental && !separate {
        let message = "pages moved step by step need blocks of their own: \
                       set gc_pace = \"blocking\" or gc_separate = true";
        problems.push(Problem::new("gc_separate", message));
    }
    let plugs = Plugs::build(input, pools).map_err(|more| problems.extend(more)).ok();
    let reserve = plugs.as_ref().map_or(RESERVE_BLOCKS, Plugs::reserve_blocks);
    let blocks = geometry.blocks_per_plane();
    let limit = blocks.saturating_sub(reserve) * geometry.pages_per_block();
    let room = u64::from(limit) * pools as u64;
    // One more than exported: a page is written before its old copy is given up.
    if u64::from(input.exported_pages) + 1 > room {
        let message = format!(
            "{} pages are offered, but of {blocks} blocks in each of {pools} planes \
             {reserve} must stay spare, which leaves room for {}; \
             raise over_provisioning or blocks_per_plane",
            input.exported_pages,
            room.saturating_sub(1)
        );
        problems.push(Problem::new("over_provisioning", message));
    }
    let Some(Plugs { policy, wear, temperature }) = plugs.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let free_low = settings.count("gc_free_blocks");
    let order = wear.order();
    Ok(Box::new(PageMap {
        map,
        pools: (0..geometry.planes())
            .map(|plane| Pool::new(&geometry, plane, limit, order))
            .collect(),
        turn: 0,
        separate_hot: temperature.separates(),
        policy,
        wear,
        temperature,
        run: Run::new(),
        free_low: free_low as usize,
        free_low_idle: settings.count_opt("gc_idle_free_blocks").unwrap_or(free_low) as usize,
        incremental,
        separate,
        geometry,
    }))
}

impl Pool {
    fn new(geometry: &Geometry, plane: u32, limit: u32, order: FreeOrder) -> Self {
        let first = geometry.first_block(PlaneId(plane)).0;
        // A frontier without a block looks like a full one.
        let none = Frontier { block: BlockId::NONE, next: geometry.pages_per_block() };
        Self {
            open: [none; 4],
            free: FreeBlocks::new(order, first, geometry.blocks_per_plane()),
            worn: None,
            victim: None,
            valid: 0,
            limit,
        }
    }
}

impl PageMap {
    /// Finds a pool with room for one more page of `log`, and makes that room.
    #[inline]
    fn place(&mut self, log: Log, flash: &mut FlashOps) -> Option<usize> {
        for _ in 0..self.pools.len() {
            let pool = self.turn;
            self.turn = if pool + 1 == self.pools.len() { 0 } else { pool + 1 };
            if self.pools[pool].valid < self.pools[pool].limit && self.make_room(pool, log, flash) {
                return Some(pool);
            }
        }
        None
    }

    /// Makes sure that a frontier of the host in `pool` has a free page.
    #[inline]
    fn make_room(&mut self, pool: usize, log: Log, flash: &mut FlashOps) -> bool {
        if self.pools[pool].open[log as usize].next < self.geometry.pages_per_block() {
            return true;
        }
        self.open_host_block(pool, log, flash)
    }

    #[cold]
    fn open_host_block(&mut self, pool: usize, log: Log, flash: &mut FlashOps) -> bool {
        let low = if self.incremental { 1 } else { self.free_low };
        while self.pools[pool].free.len() <= low {
            match self.collect(pool, u32::MAX, flash) {
                Collected::Block | Collected::Partly => {}
                Collected::Nothing if self.pools[pool].free.len() > 1 => break,
                Collected::Nothing => return false, // Retired blocks ate the reserve.
            }
            if self.pools[pool].valid >= self.pools[pool].limit {
                return false; // Blocks retired just now: collecting might gain nothing for ever.
            }
            if self.pools[pool].open[log as usize].next < self.geometry.pages_per_block() {
                return true; // The collector moved pages into a new block and left room in it.
            }
        }
        let block = self.pools[pool].free.take(false).expect("more than one is free");
        self.pools[pool].open[log as usize] = Frontier { block, next: 0 };
        true
    }

    /// Takes the next page of a frontier; also says which block is full with it.
    #[inline(always)]
    fn take_page(&mut self, pool: usize, log: Log) -> (Ppn, Option<BlockId>) {
        let pages_per_block = self.geometry.pages_per_block();
        let pool = &mut self.pools[pool];
        if pool.open[log as usize].next == pages_per_block {
            pool.begin_block(log);
        }
        let frontier = &mut pool.open[log as usize];
        let page = self.geometry.page(frontier.block, frontier.next);
        frontier.next += 1;
        (page, (frontier.next == pages_per_block).then_some(frontier.block))
    }

    #[inline]
    fn close_if_full(&mut self, pool: usize, filled: Option<BlockId>, flash: &FlashOps) {
        if let Some(block) = filled {
            self.policy.closed(pool, block, flash.array().valid(block));
            self.wear.filled(pool, block, flash.array().erases(block));
        }
    }

    #[inline]
    fn give_up(&mut self, page: Ppn, flash: &mut FlashOps) {
        let block = self.geometry.block_of(page);
        let pool = self.geometry.plane_of(block).0 as usize;
        let valid = flash.invalidate(page);
        self.pools[pool].valid -= 1;
        self.policy.invalidated(pool, block, valid);
    }

    #[cold]
    fn no_room(&self, flash: &FlashOps) -> FtlError {
        let array = flash.array();
        let message = format!(
            "{} of {} blocks have reached their {} erases, and the rest cannot hold the {} pages \
             offered; choose a higher endurance or over_provisioning, or a shorter workload",
            array.retired_blocks(),
            self.geometry.blocks(),
            array.endurance(),
            self.map.pages()
        );
        match array.retired_blocks() {
            0 => FtlError::Full(message),
            _ => FtlError::WornOut(message),
        }
    }
}

impl Ftl for PageMap {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let page = self.map.get(lpn, flash.array());
        if page != Ppn::NONE {
            flash.host_read(page, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let hot = self.separate_hot && self.temperature.is_hot(lpn, hint);
        let log = if hot { Log::Hot } else { Log::Host };
        let Some(pool) = self.place(log, flash) else { return Err(self.no_room(flash)) };
        let (page, filled) = self.take_page(pool, log);
        // Only now: making room may have moved the old copy.
        let old = self.map.replace(lpn, page, flash.array());
        flash.host_program(page, lpn, After::NOTHING);
        self.pools[pool].valid += 1;
        if old != Ppn::NONE {
            self.give_up(old, flash);
        }
        self.close_if_full(pool, filled, flash);
        self.keep_pace(pool, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let old = self.map.get(lpn, flash.array());
        if old != Ppn::NONE {
            self.map.set(lpn, Ppn::NONE);
            self.give_up(old, flash);
        }
        Ok(())
    }

    fn expect(&self, lpns: &[Lpn], flash: &FlashOps) {
        let mut pages = [Ppn::NONE; EXPECTED_MAX];
        let mut indices = [0; EXPECTED_MAX];
        indices.iter_mut().zip(lpns).for_each(|(index, lpn)| *index = lpn.0);
        self.map.touch(&indices);
        self.expect_turns(lpns.len(), flash);
        for (page, lpn) in pages.iter_mut().zip(lpns) {
            if (lpn.0 as usize) < self.map.pages() {
                *page = self.map.about(*lpn);
                self.map.touch_page(*page, flash.array());
            }
        }
        flash.array().touch(&pages);
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        self.map.holds(lpn)
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        // One page of the first pool that is low on free blocks; victims begun are finished. In a
        // mixed log the host could take the pages a half-moved victim still needs.
        let budget = if self.separate { 1 } else { u32::MAX };
        for pool in 0..self.pools.len() {
            let low = self.pools[pool].free.len() <= self.free_low_idle;
            if self.pools[pool].victim.is_none() && low {
                // Nothing is gained by moving full blocks about, and it would go on for ever.
                self.pools[pool].victim = self.choose(pool, true, flash);
            }
            if self.pools[pool].victim.is_some() {
                self.collect(pool, budget, flash);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn mapping_ram_bytes(&self) -> u64 {
        let policies =
            [self.policy.ram_bytes(), self.wear.ram_bytes(), self.temperature.ram_bytes()];
        self.map.pages() as u64 * 4 + policies.iter().skip(1).sum::<u64>()
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.map.save(to);
        to.put(&(&self.pools, self.turn));
        self.policy.save(to);
        self.wear.save(to);
        self.temperature.save(to);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.map.restore(from)?;
        let (pools, turn): (Vec<Pool>, usize) = from.take()?;
        state::same_length("the list of planes", pools.len(), self.pools.len())?;
        if turn >= pools.len() {
            return Err(StateError(format!("there is no plane {turn}")));
        }
        if !pools.iter().zip(&self.pools).all(|(saved, own)| saved.free.same_shape(&own.free)) {
            return Err(StateError("the free blocks are in another order".to_owned()));
        }
        (self.pools, self.turn) = (pools, turn);
        self.policy.restore(from)?;
        self.wear.restore(from)?;
        self.temperature.restore(from)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mapped = self.map.audit(flash.array())?;
        let pooled: u64 = self.pools.iter().map(|pool| u64::from(pool.valid)).sum();
        if (mapped, mapped) != (flash.array().valid_pages(), pooled) {
            let valid = flash.array().valid_pages();
            return Err(format!("{mapped} pages mapped, {valid} valid, {pooled} in pools"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder;
    use crate::conformance::{Subject, check};
    use crate::defaults;

    fn build_near(input: &FtlInput<'_>) -> BuiltFtl {
        build_with(input, PageTable::with_near(input.geometry, input.exported_pages, 3))
    }

    #[test]
    fn it_conforms_when_page_numbers_are_kept_in_part() {
        let registry = defaults::registry();
        let settings = defaults::settings(&PARAMS, &registry);
        for order in [ProgramOrder::Sequential, ProgramOrder::Ascending, ProgramOrder::Any] {
            let entry = FtlEntry { build: build_near, ..ENTRY };
            let subject =
                Subject { entry, settings: &settings, registry: &registry, order, saves: true };
            let coverage = check(&subject, 160, 9).unwrap_or_else(|failure| panic!("{failure}"));
            assert!(coverage.ran > 45 && coverage.erases > 1_000, "{coverage:?}");
        }
    }
}
