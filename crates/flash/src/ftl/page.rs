//! The page-mapped translation layer: any logical page anywhere, the whole map in memory.
//!
//! Every plane is a pool with its own write frontiers and free blocks. Host writes go round the
//! pools, so they stripe over channels and dies; garbage collection stays within a pool. A pool
//! that would fill up is passed over.
//!
//! A pool with `b` usable blocks takes at most `(b - 2)` blocks' worth of valid pages: one block is
//! kept free for garbage collection to move into and one is its frontier, so with one free block
//! left some closed block holds an invalid page, and collecting it gains at least that page.

use super::{BuiltFtl, EXPECTED_MAX, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::gc::{GcEntry, GcInput, VictimPolicy};
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_engine::Cause;
use hybridsim_engine::param::{Kind, Param, Problem};
use hybridsim_engine::registry::{Description, Entry};
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The page-mapped translation layer.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "page",
        summary: "Maps every page freely; writes go to a log striped over all planes.",
        origin: "log-structured page mapping; paper 002's ideal reference, paper 000 chapter 2",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 4] = [
    Param::with("gc", Kind::Plug("gc-policy"), "\"greedy\"", "Which block to collect next."),
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
];

/// Blocks per pool that cannot hold host data: the reserve and the garbage collector's frontier.
const RESERVE_BLOCKS: u32 = 2;

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
}

#[derive(Debug, Serialize, Deserialize)]
struct Pool {
    host: Frontier,
    gc: Frontier,
    /// First in, first out, which spreads erases among the pool's blocks.
    free: VecDeque<BlockId>,
    victim: Option<Victim>,
    valid: u32,
    /// Valid pages it can take.
    limit: u32,
}

struct PageMap {
    geometry: Geometry,
    map: Vec<Ppn>,
    pools: Vec<Pool>,
    /// The pool the next host write tries first.
    turn: usize,
    policy: Box<dyn VictimPolicy>,
    free_low: usize,
    incremental: bool,
    separate: bool,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
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
    let blocks = geometry.blocks_per_plane();
    let limit = blocks.saturating_sub(RESERVE_BLOCKS) * geometry.pages_per_block();
    let room = u64::from(limit) * pools as u64;
    // One more than exported: a page is written before its old copy is given up.
    if u64::from(input.exported_pages) + 1 > room {
        let message = format!(
            "{} pages are offered, but of {blocks} blocks in each of {pools} planes \
             {RESERVE_BLOCKS} must stay spare, which leaves room for {}; \
             raise over_provisioning or blocks_per_plane",
            input.exported_pages,
            room.saturating_sub(1)
        );
        problems.push(Problem::new("over_provisioning", message));
    }
    let plug = settings.plug("gc");
    let entry = input.registry.find::<GcEntry>(&plug.name);
    let Some(entry) = entry else {
        problems.push(Problem::new("gc", format!("no {} called {}", GcEntry::SLOT, plug.name)));
        return Err(problems);
    };
    let policy = (entry.build)(&GcInput {
        settings: &plug.settings,
        geometry: &geometry,
        pools,
        seed: input.seed,
        path: input.path,
    });
    let policy = policy.map_err(|more| problems.extend(more)).ok().filter(|_| problems.is_empty());
    let Some(policy) = policy else { return Err(problems) };
    Ok(Box::new(PageMap {
        map: vec![Ppn::NONE; input.exported_pages as usize],
        pools: (0..geometry.planes()).map(|plane| Pool::new(&geometry, plane, limit)).collect(),
        turn: 0,
        policy,
        free_low: settings.count("gc_free_blocks") as usize,
        incremental,
        separate,
        geometry,
    }))
}

impl Pool {
    fn new(geometry: &Geometry, plane: u32, limit: u32) -> Self {
        let first = geometry.first_block(PlaneId(plane)).0;
        // A frontier without a block looks like a full one.
        let none = Frontier { block: BlockId::NONE, next: geometry.pages_per_block() };
        Self {
            host: none,
            gc: none,
            free: (first..first + geometry.blocks_per_plane()).map(BlockId).collect(),
            victim: None,
            valid: 0,
            limit,
        }
    }
}

/// What one turn of garbage collection led to.
enum Collected {
    /// The budget is used up, the victim is not finished.
    Partly,
    /// A block was erased.
    Block,
    /// No block is worth collecting, or there is no room to move its pages to.
    Nothing,
}

impl PageMap {
    /// Finds a pool with room for one more page, and makes that room.
    fn place(&mut self, flash: &mut FlashOps) -> Option<usize> {
        for _ in 0..self.pools.len() {
            let pool = self.turn;
            self.turn = if pool + 1 == self.pools.len() { 0 } else { pool + 1 };
            if self.pools[pool].valid < self.pools[pool].limit && self.make_room(pool, flash) {
                return Some(pool);
            }
        }
        None
    }

    /// Makes sure that the host frontier of `pool` has a free page.
    #[inline]
    fn make_room(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        if self.pools[pool].host.next < self.geometry.pages_per_block() {
            return true;
        }
        self.open_host_block(pool, flash)
    }

    #[cold]
    fn open_host_block(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
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
            if self.pools[pool].host.next < self.geometry.pages_per_block() {
                return true; // The collector moved pages into a new block and left room in it.
            }
        }
        let block = self.pools[pool].free.pop_front().expect("more than one is free");
        self.pools[pool].host = Frontier { block, next: 0 };
        true
    }

    /// Takes the next page of the host's frontier, or of the collector's.
    #[inline]
    fn take_page(&mut self, pool: usize, gc: bool) -> (Ppn, Option<BlockId>) {
        let pages_per_block = self.geometry.pages_per_block();
        let Pool { host, gc: own, free, .. } = &mut self.pools[pool];
        let frontier = if gc && self.separate { own } else { host };
        if frontier.next == pages_per_block {
            let block = free.pop_front().expect("room was made");
            *frontier = Frontier { block, next: 0 };
        }
        let page = self.geometry.page(frontier.block, frontier.next);
        frontier.next += 1;
        (page, (frontier.next == pages_per_block).then_some(frontier.block))
    }

    #[inline]
    fn close_if_full(&mut self, pool: usize, filled: Option<BlockId>, flash: &FlashOps) {
        if let Some(block) = filled {
            self.policy.closed(pool, block, flash.array().valid(block));
        }
    }

    /// Moves up to `budget` pages of the victim of `pool`, and erases it when it is empty.
    fn collect(&mut self, pool: usize, budget: u32, flash: &mut FlashOps) -> Collected {
        let Some(mut victim) = self.pools[pool].victim.take().or_else(|| self.choose(pool, flash))
        else {
            return Collected::Nothing;
        };
        let mut left = budget;
        while let Some(offset) = flash.array().next_valid(victim.block, victim.next) {
            if left == 0 {
                self.pools[pool].victim = Some(victim);
                return Collected::Partly;
            }
            left -= 1;
            victim.next = offset + 1;
            let from = self.geometry.page(victim.block, offset);
            let lpn = flash.array().owner(from);
            let (to, filled) = self.take_page(pool, true);
            flash.copy(from, to, Cause::Gc, After::NOTHING);
            self.map[lpn.0 as usize] = to;
            self.close_if_full(pool, filled, flash);
        }
        if flash.erase(victim.block, Cause::Gc, After::NOTHING) {
            self.pools[pool].free.push_back(victim.block);
        } else {
            let limit = &mut self.pools[pool].limit;
            *limit = limit.saturating_sub(self.geometry.pages_per_block());
        }
        Collected::Block
    }

    fn choose(&mut self, pool: usize, flash: &FlashOps) -> Option<Victim> {
        let block = self.policy.choose(pool, flash.array())?;
        let valid = flash.array().valid(block);
        let pages_per_block = self.geometry.pages_per_block();
        let Pool { host, gc, free, .. } = &self.pools[pool];
        let frontier = if self.separate { gc } else { host };
        let room = u64::from(pages_per_block - frontier.next)
            + free.len() as u64 * u64::from(pages_per_block);
        if u64::from(valid) > room {
            return None;
        }
        self.policy.removed(pool, block);
        let gained = (pages_per_block - valid).max(1);
        Some(Victim { block, next: 0, pace: valid.div_ceil(gained) })
    }

    /// Keeps garbage collection in step with host writes.
    #[inline]
    fn keep_pace(&mut self, pool: usize, flash: &mut FlashOps) {
        if self.incremental && self.pools[pool].free.len() <= self.free_low {
            let budget = match &self.pools[pool].victim {
                Some(victim) => victim.pace,
                None => match self.choose(pool, flash) {
                    Some(victim) => self.pools[pool].victim.insert(victim).pace,
                    None => return,
                },
            };
            self.collect(pool, budget, flash);
        }
    }

    /// Touches early what [`Self::give_up`] will need: on a large device each of these loads
    /// misses the caches, and they overlap with the work in between.
    #[inline]
    fn fetch(&self, lpn: Lpn, flash: &FlashOps) {
        let old = self.map[lpn.0 as usize];
        if old != Ppn::NONE {
            std::hint::black_box(flash.array().state(old));
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
            self.map.len()
        );
        match array.retired_blocks() {
            0 => FtlError::Full(message),
            _ => FtlError::WornOut(message),
        }
    }
}

impl Ftl for PageMap {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let page = self.map[lpn.0 as usize];
        if page != Ppn::NONE {
            flash.host_read(page, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.fetch(lpn, flash);
        let Some(pool) = self.place(flash) else { return Err(self.no_room(flash)) };
        let (page, filled) = self.take_page(pool, false);
        flash.host_program(page, lpn, After::NOTHING);
        // Read only now: making room may have moved the old copy.
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], page);
        self.pools[pool].valid += 1;
        if old != Ppn::NONE {
            self.give_up(old, flash);
        }
        self.close_if_full(pool, filled, flash);
        self.keep_pace(pool, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let old = std::mem::replace(&mut self.map[lpn.0 as usize], Ppn::NONE);
        if old != Ppn::NONE {
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
        // One page of the first pool that is low on free blocks; victims begun are finished. In a
        // mixed log the host could take the pages a half-moved victim still needs.
        let budget = if self.separate { 1 } else { u32::MAX };
        for pool in 0..self.pools.len() {
            let begun = self.pools[pool].victim.is_some();
            if begun || self.pools[pool].free.len() <= self.free_low {
                match self.collect(pool, budget, flash) {
                    Collected::Nothing => {}
                    Collected::Partly | Collected::Block => return Ok(true),
                }
            }
        }
        Ok(false)
    }

    fn mapping_ram_bytes(&self) -> u64 {
        self.map.len() as u64 * 4
    }

    fn save(&self, to: &mut Saver) {
        to.put(&(&self.map, &self.pools, self.turn));
        self.policy.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (map, pools, turn): (Vec<Ppn>, Vec<Pool>, usize) = from.take()?;
        state::same_length("the page map", map.len(), self.map.len())?;
        state::same_length("the list of planes", pools.len(), self.pools.len())?;
        if turn >= pools.len() {
            return Err(StateError(format!("there is no plane {turn}")));
        }
        (self.map, self.pools, self.turn) = (map, pools, turn);
        self.policy.restore(from)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mapped = self.map.iter().filter(|page| **page != Ppn::NONE).count() as u64;
        let pooled: u64 = self.pools.iter().map(|pool| u64::from(pool.valid)).sum();
        if (mapped, mapped) != (flash.array().valid_pages(), pooled) {
            let valid = flash.array().valid_pages();
            return Err(format!("{mapped} pages mapped, {valid} valid, {pooled} in pools"));
        }
        for (lpn, &page) in self.map.iter().enumerate() {
            if page != Ppn::NONE && flash.array().owner(page) != Lpn(lpn as u32) {
                return Err(format!("logical page {lpn} is mapped to a page of another"));
            }
        }
        Ok(())
    }
}
