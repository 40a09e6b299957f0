//! FAST: log blocks shared by all logical blocks, one of them reserved for sequential writes.
//!
//! Lee, Park, Chung, Lee, Park, Song, TECS 6(3), 2007; the hybrid FTL of flashsim, section 4. A
//! page goes to its data block while its page there is erased. A write to the first page of a
//! block begins the sequential log block, which becomes the data block by a switch merge when it is
//! full, or by a partial merge. All other writes fill the random log blocks in turn. When these are
//! full the oldest is reclaimed: each logical block with a valid page in it is merged fully, up to
//! a block of full merges for one write.
//!
//! A write that breaks the sequence of the sequential log block becomes part of its merge.

use super::log_map::{self, LogMap, LogShare, Sequential};
use super::merge;
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "fast",
        summary: "Block map with log blocks shared by all, one of them for sequential writes.",
        origin: "Lee et al., TECS 6(3), 2007; flashsim, section 4. Unlike there, a write that \
                 breaks a sequence becomes part of the merge it causes, and on chips that program \
                 pages in order a first write goes in place only if it is the next page",
        params: LogShare::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

#[derive(Serialize, Deserialize)]
struct Fast {
    map: LogMap,
    sequential: Option<Sequential>,
    /// The random log blocks; the first is the oldest, the last is being filled.
    random: VecDeque<u32>,
    random_max: u32,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let log_blocks = log_map::log_blocks(input, &LogShare::from_settings(input.settings), 2)?;
    Ok(Box::new(Fast {
        map: LogMap::new(input),
        sequential: None,
        random: VecDeque::with_capacity(log_blocks as usize),
        random_max: log_blocks - 1,
    }))
}

impl Fast {
    #[inline]
    fn sequential_of(&self, logical: u32) -> Option<Sequential> {
        self.sequential.filter(|log| log.logical == logical)
    }

    /// Merges the sequential log block, with the host's page `pending` in place of its old version.
    fn finish_sequential(
        &mut self,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<After, FtlError> {
        let Some(log) = self.sequential else { return Ok(After::NOTHING) };
        if pending.is_some_and(|lpn| self.map.split(lpn).1 < log.next) {
            // The log block holds an old version of the page: only a full merge can replace it.
            return self.replace_sequential(log, pending, flash);
        }
        self.sequential = None;
        Ok(self.map.complete(log, pending, flash))
    }

    /// Merges the logical block of the sequential log block `log` fully, and erases `log`.
    fn replace_sequential(
        &mut self,
        log: Sequential,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<After, FtlError> {
        let last = self.map.merge_fully(log.logical, pending, flash)?;
        self.map.erase(BlockId(log.block), last, flash);
        self.sequential = None;
        Ok(last)
    }

    fn begin_sequential(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.finish_sequential(None, flash)?;
        let block = self.map.take(flash)?;
        self.map.program(lpn, block, 0, flash);
        let logical = self.map.split(lpn).0;
        self.sequential = Some(Sequential { logical, block: block.0, next: 1 });
        Ok(())
    }

    fn append_random(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let block = self.open_random(flash)?;
        let offset = flash.array().next_page(block);
        self.map.program(lpn, block, offset, flash);
        Ok(())
    }

    /// The random log block being filled.
    #[inline]
    fn open_random(&mut self, flash: &mut FlashOps) -> Result<BlockId, FtlError> {
        let full = self.map.geometry().pages_per_block();
        let last = self.random.back().map(|block| BlockId(*block));
        if let Some(block) = last.filter(|block| flash.array().next_page(*block) < full) {
            return Ok(block);
        }
        loop {
            // Reclaiming may wear out blocks, which leaves fewer log blocks.
            let limit = self.map.log_blocks().saturating_sub(1).min(self.random_max) as usize;
            if limit == 0 {
                return Err(self.map.worn_out(flash));
            }
            if self.random.len() < limit {
                break;
            }
            // There is one: the limit is above 0.
            self.reclaim(0, flash)?;
        }
        let block = self.map.take(flash)?;
        self.random.push_back(block.0);
        Ok(block)
    }

    /// Merges every logical block that has a page in the random log block `at`, and erases it.
    fn reclaim(&mut self, at: usize, flash: &mut FlashOps) -> Result<(), FtlError> {
        let victim = BlockId(self.random[at]);
        let (mut offset, mut last) = (0, After::NOTHING);
        while let Some(page) = flash.array().next_valid(victim, offset) {
            offset = page + 1;
            let lpn = flash.array().owner(self.map.geometry().page(victim, page));
            let logical = self.map.split(lpn).0;
            last = match self.sequential_of(logical) {
                Some(_) => self.finish_sequential(None, flash)?,
                None => self.map.merge_fully(logical, None, flash)?,
            };
        }
        self.random.remove(at);
        self.map.erase(victim, last, flash);
        // Log blocks are reclaimed in order, even without valid pages.
        while self.map.emptied().is_some() {}
        Ok(())
    }
}

impl Ftl for Fast {
    fn lookup(&self, lpn: Lpn, _flash: &FlashOps) -> Ppn {
        self.map.find(lpn)
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.map.split(lpn);
        if let Some(log) = self.sequential_of(logical) {
            if offset == log.next {
                self.map.program(lpn, BlockId(log.block), offset, flash);
                self.sequential = Some(Sequential { next: offset + 1, ..log });
                return Ok(());
            }
            if offset != 0 {
                return self.finish_sequential(Some(lpn), flash).map(drop);
            }
        } else if self.map.write_in_place(lpn, flash)? {
            return Ok(());
        }
        if offset == 0 { self.begin_sequential(lpn, flash) } else { self.append_random(lpn, flash) }
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.map.trim(lpn, flash);
        Ok(())
    }

    fn properties(&self) -> Properties {
        // Logical block, block and next page of the sequential log block.
        let mapping_ram_bytes = self.map.ram_bytes(self.random_max) + 12;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let sequential: Vec<_> = self.sequential.into_iter().collect();
        self.map.audit(&sequential, self.random.iter().copied(), flash)
    }
}

impl Maintenance for Fast {
    /// Merges the logical blocks with pages in `block`.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let Some(logical) = merge::logical_block(block, flash) else { return false };
        if let Some(at) = self.random.iter().position(|log| *log == block.0) {
            return self.reclaim(at, flash).is_ok();
        }
        let merged = match self.sequential_of(logical) {
            Some(log) if log.block == block.0 => self.replace_sequential(log, None, flash),
            Some(_) => self.finish_sequential(None, flash),
            None => self.map.merge_fully(logical, None, flash),
        };
        merged.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, copies, erases, writes};
    use super::*;
    use crate::array::ProgramOrder;
    use crate::ops::OpKind::{Copy, Erase, Program};
    use hybridsim_config::param::Value;

    /// Three logical blocks of four pages, one sequential and `log_blocks - 1` random log blocks.
    /// Everything is written once: blocks 0, 1, 2 hold the data.
    fn filled(log_blocks: u32) -> Bench {
        let share = Value::Number(f64::from(log_blocks) / 3.0);
        let order = ProgramOrder::Sequential;
        let mut bench = Bench::new(&ENTRY, order, (9, 4), 12, &[("log_share", share)]);
        bench.write_all(&(0..12).collect::<Vec<_>>());
        bench
    }

    #[test]
    fn a_block_rewritten_in_order_is_switched() {
        let mut bench = filled(2);
        for (page, at) in [(4, 12), (5, 13), (6, 14), (7, 15)] {
            assert_eq!(bench.write(page), [(Program, at)]);
        }
        assert_eq!(bench.write(0), [(Erase, 1), (Program, 16)], "no copies");
        bench.audit();
    }

    #[test]
    fn a_sequence_that_ends_early_is_merged_partially() {
        let mut bench = filled(2);
        bench.write_all(&[4, 5]);
        let merged = [(Copy, 14), (Copy, 15), (Erase, 1), (Program, 16)];
        assert_eq!(bench.write(8), merged);
        bench.audit();
    }

    #[test]
    fn a_write_further_on_becomes_part_of_the_partial_merge() {
        let mut bench = filled(2);
        bench.write_all(&[4, 5]);
        assert_eq!(bench.write(7), [(Copy, 14), (Program, 15), (Erase, 1)]);
        bench.audit();
    }

    #[test]
    fn a_write_before_the_end_of_the_sequence_costs_a_full_merge() {
        let mut bench = filled(2);
        bench.write_all(&[4, 5, 6]);
        let did = bench.write(5);
        let merged = [(Copy, 16), (Program, 17), (Copy, 18), (Copy, 19), (Erase, 1), (Erase, 3)];
        assert_eq!(did, merged);
        bench.audit();
    }

    #[test]
    fn reclaiming_a_random_log_block_merges_every_block_in_it() {
        let mut bench = filled(2);
        bench.write_all(&[1, 5, 9, 2]);
        let did = bench.write(6);
        assert_eq!((copies(&did), erases(&did), writes(&did)), (12, 4, 1));
        bench.audit();
        assert_eq!(bench.read(9).len(), 1);
    }

    #[test]
    fn invalid_pages_in_the_log_block_cost_nothing() {
        let mut bench = filled(2);
        bench.write_all(&[1, 1, 1, 1]);
        let did = bench.write(1);
        assert_eq!((copies(&did), erases(&did)), (4, 2), "one block is merged");
        bench.audit();
    }

    #[test]
    fn a_logical_block_with_a_sequential_log_block_is_merged_with_it() {
        let mut bench = filled(2);
        bench.write_all(&[6, 6, 7, 9]); // The random log block is full.
        bench.write_all(&[4, 5]); // The sequential one holds half of the same block.
        let did = bench.write(10);
        assert_eq!((copies(&did), erases(&did), writes(&did)), (2 + 4, 3, 1));
        bench.audit();
    }

    #[test]
    fn the_oldest_of_several_random_log_blocks_is_reclaimed() {
        let mut bench = filled(3);
        bench.write_all(&[1, 1, 1, 1, 5, 5, 5, 5]);
        assert_eq!(copies(&bench.write(9)), 4);
        let did = bench.read(5);
        assert_eq!(did.len(), 1);
        bench.audit();
    }

    #[test]
    fn a_trimmed_block_is_erased_and_its_pages_are_gone() {
        let mut bench = filled(2);
        assert!(bench.trim(4).is_empty() && bench.trim(5).is_empty() && bench.trim(6).is_empty());
        assert_eq!(bench.trim(7), [(Erase, 1)]);
        assert!(!bench.holds(5) && bench.read(5).is_empty());
        bench.audit();
    }

    #[test]
    fn memory_holds_a_block_map_and_the_pages_of_log_blocks() {
        assert_eq!(filled(3).ftl.properties().mapping_ram_bytes, (3 + 2 * 4) * 4 + 12);
    }

    #[test]
    fn a_worn_out_device_reports_it_and_keeps_its_data() {
        let share = Value::Number(0.7);
        let order = ProgramOrder::Any;
        let mut bench =
            Bench::new(&ENTRY, order, (7, 4), 12, &[("log_share", share)]).with_endurance(5);
        let mut stream = hybridsim_engine::Stream::new(3, "test");
        let error = (0..10_000).find_map(|_| bench.try_write(stream.below(12) as u32).err());
        assert!(matches!(error, Some(FtlError::WornOut(_))), "{error:?}");
        bench.audit();
        assert!((0..12).all(|page| !bench.holds(page) || bench.read(page).len() == 1));
    }
}
