//! LAST: separate log blocks for large and for small requests, the latter for hot and cold data.
//!
//! Lee, Shin, Kim, Kim, SPEED 2008 (reference 17 of flashsim). Large requests count as sequential
//! and go to sequential log blocks, which each belong to one logical block and are switched or
//! merged partially as in FAST. Small requests go to random log blocks. A page overwritten soon
//! after it was written is hot; hot pages fill log blocks of their own, which soon hold no valid
//! page and are erased without a merge. When the random log blocks are full, the oldest one with
//! cold pages is merged, and one with hot pages only when there is no other.
//!
//! The paper's own sizes are not known here: the shares, the threshold and the window are assumed
//! defaults.

use super::log_map::{self, LogMap, LogShare, Sequential};
use super::merge::{self, NONE};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::lists::{Lists, LruList};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "last",
        summary: "Separate log blocks for large requests, and for hot and cold small ones.",
        origin: "Lee, Shin, Kim, Kim, SPEED 2008; named in flashsim, section 2.3. Sizes, \
                 threshold and window are assumed; a page is hot while its log block is young, and \
                 the victim is the oldest cold log block, whatever its merges cost",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

hybridsim_config::params! {
    struct Parameters includes { log: LogShare } {
        sequential_share: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.25",
            "Sequential log blocks as a fraction of all log blocks (assumed).";
        sequential_pages: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "8",
            "Requests of at least this many pages are large (assumed).";
        hot_window: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.5",
            "A page is hot while its old version is in this fraction of the random log blocks, the \
             youngest ones (assumed).";
    }
}

const COLD: usize = 0;
const HOT: usize = 1;
/// One sequential log block, one for hot and one for cold pages.
const LOG_BLOCKS_MIN: u32 = 3;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RandomLog {
    /// [`COLD`], [`HOT`], or [`NO_LOG`] for other blocks.
    part: u8,
    /// Random log blocks begun before it.
    begun: u64,
}

const NO_LOG: u8 = u8::MAX;

#[derive(Serialize, Deserialize)]
struct Last {
    map: LogMap,
    sequential: Vec<Sequential>,
    sequential_max: u32,
    /// By logical block, the index of its sequential log block.
    sequential_of: Vec<u32>,
    /// The logical blocks with a sequential log block.
    recency: LruList,
    /// By physical block.
    logs: Vec<RandomLog>,
    /// The random log blocks being filled, for cold and hot pages.
    open: [u32; 2],
    /// The full random log blocks, for cold and hot pages, oldest first.
    full: Lists,
    /// Number of random log blocks, open and full.
    random: u32,
    random_max: u32,
    /// Random log blocks begun so far.
    begun: u64,
    window: u64,
    large: u32,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let params = Parameters::from_settings(input.settings);
    let log_blocks = log_map::log_blocks(input, &params.log, LOG_BLOCKS_MIN)?;
    let share = f64::from(log_blocks) * params.sequential_share;
    let sequential_max = (share.round() as u32).clamp(1, log_blocks - 2);
    let random_max = log_blocks - sequential_max;
    let map = LogMap::new(input);
    let blocks = input.geometry.blocks() as usize;
    Ok(Box::new(Last {
        sequential: Vec::with_capacity(sequential_max as usize),
        sequential_max,
        sequential_of: vec![NONE; map.logical_blocks() as usize],
        recency: LruList::new(map.logical_blocks()),
        logs: vec![RandomLog { part: NO_LOG, begun: 0 }; blocks],
        open: [NONE; 2],
        full: Lists::new(2, blocks),
        random: 0,
        random_max,
        begun: 0,
        window: (f64::from(random_max) * params.hot_window) as u64,
        large: params.sequential_pages,
        map,
    }))
}

impl Last {
    fn slot_of(&self, logical: u32) -> Option<usize> {
        let slot = self.sequential_of[logical as usize];
        (slot != NONE).then_some(slot as usize)
    }

    fn remove_sequential(&mut self, slot: usize) {
        let log = self.sequential.swap_remove(slot);
        self.sequential_of[log.logical as usize] = NONE;
        self.recency.remove(log.logical);
        if let Some(moved) = self.sequential.get(slot) {
            self.sequential_of[moved.logical as usize] = slot as u32;
        }
    }

    /// Merges the sequential log block at `slot`, with the host's page `pending` in place of its
    /// old version. Newer versions of its pages stay in random log blocks unless `whole` is set.
    fn merge_sequential(
        &mut self,
        slot: usize,
        pending: Option<Lpn>,
        whole: bool,
        flash: &mut FlashOps,
    ) -> Result<After, FtlError> {
        let log = self.sequential[slot];
        let last = if whole {
            let last = self.map.merge_fully(log.logical, pending, flash)?;
            self.map.erase(BlockId(log.block), last, flash);
            last
        } else {
            self.map.complete(log, pending, flash)
        };
        self.remove_sequential(slot);
        Ok(last)
    }

    fn begin_sequential(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let logical = self.map.split(lpn).0;
        if let Some(slot) = self.slot_of(logical) {
            self.merge_sequential(slot, None, false, flash)?;
        }
        let limit = self.map.log_blocks().saturating_sub(2).min(self.sequential_max) as usize;
        if limit == 0 {
            return Err(self.map.worn_out(flash));
        }
        while self.sequential.len() >= limit {
            let oldest = self.recency.least_recent().expect("every sequential log block is listed");
            let slot = self.sequential_of[oldest as usize] as usize;
            self.merge_sequential(slot, None, false, flash)?;
        }
        let block = self.map.take(flash)?;
        let slot = self.sequential.len() as u32;
        self.sequential.push(Sequential { logical, block: block.0, next: 1 });
        self.sequential_of[logical as usize] = slot;
        self.recency.touch(logical);
        self.program(lpn, block, 0, flash);
        Ok(())
    }

    /// Programs a page, and erases the random log block of its old version if it has no other valid
    /// page.
    fn program(&mut self, lpn: Lpn, block: BlockId, offset: u32, flash: &mut FlashOps) {
        if let Some(emptied) = self.map.program(lpn, block, offset, flash) {
            self.erase_if_full(emptied, flash);
        }
    }

    /// Erases `block`, which has no valid page left, if it is a full random log block.
    fn erase_if_full(&mut self, block: BlockId, flash: &mut FlashOps) {
        let part = self.logs[block.0 as usize].part;
        if part != NO_LOG && !self.open.contains(&block.0) {
            self.release(block, After::NOTHING, flash);
        }
    }

    fn release(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        let log = &mut self.logs[block.0 as usize];
        self.full.remove(block.0);
        log.part = NO_LOG;
        self.random -= 1;
        self.map.erase(block, after, flash);
    }

    /// Whether `lpn` was recently written to a random log block.
    fn is_hot(&self, lpn: Lpn) -> bool {
        let page = self.map.find(lpn);
        if page == Ppn::NONE {
            return false;
        }
        let log = self.logs[self.map.geometry().block_of(page).0 as usize];
        log.part != NO_LOG && self.begun - log.begun < self.window
    }

    fn append_random(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let part = usize::from(self.is_hot(lpn));
        let block = self.open_random(part, flash)?;
        let offset = flash.array().next_page(block);
        self.program(lpn, block, offset, flash);
        if offset + 1 == self.map.geometry().pages_per_block() {
            self.open[part] = NONE;
            self.full.push(part, block.0);
        }
        Ok(())
    }

    /// The random log block being filled for cold or hot pages (`part`).
    fn open_random(&mut self, part: usize, flash: &mut FlashOps) -> Result<BlockId, FtlError> {
        if self.open[part] != NONE {
            return Ok(BlockId(self.open[part]));
        }
        loop {
            while let Some(block) = self.map.emptied() {
                if flash.array().valid(block) == 0 {
                    self.erase_if_full(block, flash);
                }
            }
            // Reclaiming may wear out blocks, which leaves fewer log blocks.
            let sequential = self.sequential.len().max(1) as u32;
            let limit = self.map.log_blocks().saturating_sub(sequential).min(self.random_max);
            if limit < 2 {
                return Err(self.map.worn_out(flash));
            }
            if self.random < limit {
                break;
            }
            self.reclaim(self.victim(), flash)?;
        }
        let block = self.map.take(flash)?;
        self.begun += 1;
        self.logs[block.0 as usize] = RandomLog { part: part as u8, begun: self.begun };
        self.open[part] = block.0;
        self.random += 1;
        Ok(block)
    }

    /// The oldest full random log block of cold pages, or of hot pages if there is none.
    fn victim(&self) -> BlockId {
        let victim = self.full.first(COLD).or_else(|| self.full.first(HOT));
        BlockId(victim.expect("of two or more log blocks one is full"))
    }

    /// Merges every logical block with a valid page in the full random log block `victim`, and
    /// erases it.
    fn reclaim(&mut self, victim: BlockId, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (mut offset, mut last) = (0, After::NOTHING);
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            let lpn = flash.array().owner(self.map.geometry().page(victim, at));
            let (logical, offset_of_page) = self.map.split(lpn);
            last = match self.slot_of(logical) {
                Some(slot) => {
                    let whole = offset_of_page < self.sequential[slot].next;
                    self.merge_sequential(slot, None, whole, flash)?
                }
                None => self.map.merge_fully(logical, None, flash)?,
            };
        }
        self.release(victim, last, flash);
        Ok(())
    }

    fn write_large(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.map.split(lpn);
        if let Some(slot) = self.slot_of(logical) {
            let log = self.sequential[slot];
            if offset == log.next {
                self.sequential[slot].next += 1;
                self.recency.touch(logical);
                self.program(lpn, BlockId(log.block), offset, flash);
                return Ok(());
            }
            if offset != 0 {
                return self.merge_sequential(slot, Some(lpn), offset < log.next, flash).map(drop);
            }
        } else if self.map.write_in_place(lpn, flash)? {
            return Ok(());
        }
        if offset == 0 { self.begin_sequential(lpn, flash) } else { self.append_random(lpn, flash) }
    }
}

impl Ftl for Last {
    fn lookup(&self, lpn: Lpn, _flash: &FlashOps) -> Ppn {
        self.map.find(lpn)
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        if hint.request_pages >= self.large {
            return self.write_large(lpn, flash);
        }
        // A sequential log block is going to replace the data block, which gets no more pages then.
        if self.slot_of(self.map.split(lpn).0).is_none() && self.map.write_in_place(lpn, flash)? {
            return Ok(());
        }
        self.append_random(lpn, flash)
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        if let Some(emptied) = self.map.trim(lpn, flash) {
            self.erase_if_full(emptied, flash);
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        // Logical block, block and next page of each sequential log block; the age of each random
        // one.
        let logs = u64::from(self.sequential_max) * 12 + u64::from(self.random_max) * 4;
        let mapping_ram_bytes = self.map.ram_bytes(self.random_max) + logs;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        for (slot, log) in self.sequential.iter().enumerate() {
            if self.slot_of(log.logical) != Some(slot) {
                return Err(format!(
                    "sequential log block {slot} is not that of its logical block"
                ));
            }
        }
        let logs: Vec<u32> =
            (0..).zip(&self.logs).filter(|(_, log)| log.part != NO_LOG).map(|(at, _)| at).collect();
        if logs.len() as u32 != self.random {
            return Err(format!("{} random log blocks, counted {}", logs.len(), self.random));
        }
        self.map.audit(&self.sequential, logs.into_iter(), flash)
    }
}

impl Maintenance for Last {
    /// Merges the logical blocks with pages in `block`. Returns false for a random log block that
    /// is being filled.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let Some(logical) = merge::logical_block(block, flash) else { return false };
        if self.logs[block.0 as usize].part != NO_LOG {
            return !self.open.contains(&block.0) && self.reclaim(block, flash).is_ok();
        }
        let merged = match self.slot_of(logical) {
            Some(slot) => {
                let whole = self.sequential[slot].block == block.0;
                self.merge_sequential(slot, None, whole, flash)
            }
            None => self.map.merge_fully(logical, None, flash),
        };
        merged.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, Operation, copies, erases};
    use super::*;
    use crate::array::ProgramOrder;
    use crate::ops::OpKind::{Copy, Erase, Program};
    use hybridsim_config::param::Value;

    /// Three logical blocks of four pages, one sequential log block and three random ones; large
    /// is two pages or more. Blocks 0, 1, 2 hold the data.
    fn filled(window: f64) -> Bench {
        let params = [
            ("log_share", Value::Number(4.0 / 3.0)),
            ("sequential_share", Value::Number(0.0)),
            ("sequential_pages", Value::Count(2)),
            ("hot_window", Value::Number(window)),
        ];
        let mut bench = Bench::new(&ENTRY, ProgramOrder::Sequential, (9, 4), 12, &params);
        bench.write_all(&(0..12).collect::<Vec<_>>());
        bench
    }

    fn write_large(bench: &mut Bench, page: u32) -> Vec<Operation> {
        bench.flash.clear();
        let hint = Hint::of_pages(4);
        bench.ftl.write(Lpn(page), hint, &mut bench.flash).expect("a device that is not full");
        bench.flash.list().iter().map(|op| (op.kind, op.page)).collect()
    }

    #[test]
    fn large_requests_are_switched_or_merged_partially() {
        let mut bench = filled(0.0);
        for (page, at) in [(4, 12), (5, 13), (6, 14), (7, 15)] {
            assert_eq!(write_large(&mut bench, page), [(Program, at)]);
        }
        assert_eq!(write_large(&mut bench, 8), [(Erase, 1), (Program, 16)]);
        let merged = [(Copy, 17), (Copy, 18), (Copy, 19), (Erase, 2), (Program, 20)];
        assert_eq!(write_large(&mut bench, 0), merged);
        bench.audit();
    }

    #[test]
    fn small_writes_do_not_end_a_sequential_log_block() {
        let mut bench = filled(0.0);
        write_large(&mut bench, 4);
        assert_eq!(bench.write(4), [(Program, 16)], "into the random log");
        assert_eq!(write_large(&mut bench, 5), [(Program, 13)]);
        assert_eq!(bench.read(4).len(), 1);
        bench.audit();
    }

    #[test]
    fn hot_pages_become_invalid_together_without_a_merge() {
        let mut bench = filled(1.0);
        let did: Vec<Operation> = (0..100).flat_map(|_| bench.write(5)).collect();
        assert_eq!(copies(&did), 0);
        assert!(erases(&did) > 20, "each is erased when its last page is old");
        bench.audit();
    }

    #[test]
    fn cold_blocks_are_merged_before_hot_ones() {
        let mut bench = filled(1.0);
        // One page each of three blocks, then 1 again: it is hot, the others stay cold.
        bench.write_all(&[1, 5, 9, 2, 1, 1, 1]);
        bench.write_all(&[6, 10, 3, 7]);
        let did = bench.write(11);
        assert!(copies(&did) > 0 && erases(&did) > 0, "{did:?}");
        bench.audit();
        assert!((0..12).all(|page| bench.read(page).len() == 1));
    }

    #[test]
    fn a_log_block_whose_pages_were_all_overwritten_in_place_needs_no_merge() {
        let params = [
            ("log_share", Value::Number(4.0 / 3.0)),
            ("sequential_share", Value::Number(0.0)),
            ("hot_window", Value::Number(0.0)),
        ];
        let mut bench = Bench::new(&ENTRY, ProgramOrder::Sequential, (9, 4), 12, &params);
        bench.write_all(&[9, 10, 11, 9]); // No data block yet: the oldest log block.
        bench.write_all(&[1, 2, 3, 5]); // The second one.
        bench.write_all(&[0, 1, 2, 3, 4, 5]); // In place, so the second holds no valid page.
        // The third, and one more.
        let did: Vec<Operation> =
            [1, 2, 3, 1, 2].into_iter().flat_map(|page| bench.write(page)).collect();
        assert_eq!((copies(&did), erases(&did)), (0, 1), "{did:?}");
        bench.audit();
    }

    #[test]
    fn the_state_does_not_grow_with_the_number_of_writes() {
        let mut bench = filled(0.0);
        let mut size_after = |rounds: u32| {
            for round in 0..rounds {
                write_large(&mut bench, round % 3 * 4);
            }
            let mut saver = hybridsim_engine::Saver::default();
            bench.ftl.save(&mut saver);
            saver.into_bytes().len()
        };
        let (early, late) = (size_after(12), size_after(2_000));
        assert!(late < early + 64, "{early} bytes, and later {late}");
    }

    #[test]
    fn a_write_that_breaks_a_sequence_becomes_part_of_the_full_merge() {
        let mut bench = filled(0.0);
        write_large(&mut bench, 4);
        write_large(&mut bench, 5);
        let did = write_large(&mut bench, 5);
        assert_eq!((copies(&did), erases(&did)), (3, 2));
        bench.audit();
    }
}
