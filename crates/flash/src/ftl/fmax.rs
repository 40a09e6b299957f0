//! FMAX: ANAND with chains of two units, whose second unit takes pages at any offset.
//!
//! konanki, figures 4.6 and 4.7. A logical block has a primary unit, in which pages keep their
//! offsets, and at most one replacement unit for overwritten pages: the search for an erased page
//! begins at the page's own offset and wraps around. When no page is left both units are folded
//! into a free one.
//!
//! Where the figure is silent or wrong: the "compount" unit is the replacement unit, and its first
//! page goes to its own offset; the page that made the units fold is written directly to the free
//! unit; one free unit is reserved for folds, which explains the "less than 2 free units".
//!
//! Chips that do not program pages in any order fill the replacement unit from the front. Without
//! a free unit, once blocks are worn out, a fold goes through the controller's memory.
//!
//! A real device can find the newest copy by searching the spare areas of the replacement unit;
//! here a page table in memory holds the page of each offset.

use super::merge::{self, BlockAudit, BlockBuffer, LogPageTables, NONE};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::heap::{BlockHeap, Top};
use crate::ops::{After, FlashOps};
use crate::wear::FreeBlocks;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "fmax",
        summary: "At most two blocks per logical block: pages in place, and overwritten pages.",
        origin: "konanki, figures 4.6 and 4.7. Unlike there, the page that makes units fold is \
                 written directly to the free one; finding the newest copy costs no reads of \
                 spare areas",
        params: &[],
    },
    provides: &[REFRESH],
    build,
};

#[derive(Serialize, Deserialize)]
struct Fmax {
    geometry: Geometry,
    chains: Vec<Chain>,
    /// Chains with a replacement unit, the lowest number on top.
    replaced: BlockHeap,
    /// The page tables of the replacement units.
    tables: LogPageTables,
    free: FreeBlocks,
    #[serde(skip)]
    buffer: BlockBuffer,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chain {
    primary: u32,
    replacement: u32,
    /// The page table of the replacement unit.
    slot: u32,
}

const NO_CHAIN: Chain = Chain { primary: NONE, replacement: NONE, slot: NONE };

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let geometry = *input.geometry;
    if let Some(problem) = LogPageTables::problem(&geometry) {
        return Err(vec![problem]);
    }
    let logical = input.logical_blocks();
    // A chain with a replacement unit has a primary unit too.
    let slots = logical.min(geometry.blocks() / 2);
    Ok(Box::new(Fmax {
        geometry,
        chains: vec![NO_CHAIN; logical as usize],
        replaced: BlockHeap::new(Top::Least, 0, logical),
        tables: LogPageTables::new(slots, &geometry),
        free: FreeBlocks::striped(&geometry),
        buffer: BlockBuffer::default(),
    }))
}

impl Fmax {
    /// The page that holds the data of `offset`, if any.
    fn find(&self, chain: u32, offset: u32, flash: &FlashOps) -> Option<Ppn> {
        let Chain { primary, replacement, slot } = self.chains[chain as usize];
        if slot != NONE
            && let Some(page) = self.tables.get(slot, offset)
        {
            return Some(self.geometry.page(BlockId(replacement), page));
        }
        if primary == NONE {
            return None;
        }
        let page = self.geometry.page(BlockId(primary), offset);
        merge::is_valid(page, flash).then_some(page)
    }

    /// The page of replacement unit `unit` that takes data of `offset`, if any is left.
    fn next_page(&self, unit: BlockId, offset: u32, flash: &FlashOps) -> Option<u32> {
        let array = flash.array();
        if array.order() == ProgramOrder::Any {
            return array.next_erased(unit, offset).or_else(|| array.next_erased(unit, 0));
        }
        Some(array.next_page(unit)).filter(|next| *next < self.geometry.pages_per_block())
    }

    /// Programs `lpn` to page `at` of the replacement unit.
    fn replace(&mut self, lpn: Lpn, at: u32, flash: &mut FlashOps) {
        let (chain, offset) = self.geometry.split(lpn);
        let Chain { replacement, slot, .. } = self.chains[chain as usize];
        let old = self.find(chain, offset, flash);
        let page = self.geometry.page(BlockId(replacement), at);
        flash.host_program(page, lpn, After::NOTHING);
        self.tables.set(slot, offset, at);
        if let Some(old) = old {
            flash.invalidate(old);
        }
    }

    fn add_replacement(&mut self, chain: u32, unit: BlockId) {
        let slot = self.tables.allocate();
        let primary = self.chains[chain as usize].primary;
        self.chains[chain as usize] = Chain { primary, replacement: unit.0, slot };
        self.replaced.set(BlockId(chain), 0);
    }

    /// Makes `primary` the only unit of `chain` and erases the others after the operation `after`.
    fn shrink(&mut self, chain: u32, primary: Option<BlockId>, after: After, flash: &mut FlashOps) {
        let only = Chain { primary: primary.map_or(NONE, |unit| unit.0), ..NO_CHAIN };
        let old = std::mem::replace(&mut self.chains[chain as usize], only);
        if old.slot != NONE {
            self.tables.release(old.slot);
            self.replaced.remove(BlockId(chain));
        }
        for unit in [old.primary, old.replacement] {
            if unit != NONE && unit != only.primary {
                merge::recycle(&mut self.free, BlockId(unit), after, flash);
            }
        }
    }

    /// Folds `chain` into a free unit, with the host's page `pending` in place of its old version.
    fn fold(
        &mut self,
        chain: u32,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        let Some(fresh) = self.free.take(false) else {
            return self.rewrite(chain, pending, flash);
        };
        self.fold_into(chain, fresh, pending, flash);
        Ok(())
    }

    fn fold_into(
        &mut self,
        chain: u32,
        fresh: BlockId,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) {
        let newest = |offset, flash: &FlashOps| self.find(chain, offset, flash);
        let last = merge::merge_into(fresh, chain, pending, newest, flash);
        self.shrink(chain, Some(fresh), last, flash);
    }

    /// Folds `chain` through the controller's memory into one of its own units.
    fn rewrite(
        &mut self,
        chain: u32,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        let Chain { primary, replacement, .. } = self.chains[chain as usize];
        let units = [primary, replacement].map(|unit| Some(BlockId(unit)));
        let units = units.map(|unit| unit.filter(|unit| unit.0 != NONE));
        let survives = |unit: &BlockId| merge::survives_erase(*unit, flash);
        let Some(target) = units.into_iter().flatten().find(survives) else {
            // Neither unit survives an erase: only a free unit can take the data.
            let fresh =
                self.free.take(false).map_or_else(|| self.reclaim_unit(chain, flash), Ok)?;
            self.fold_into(chain, fresh, pending, flash);
            return Ok(());
        };
        for unit in units.into_iter().flatten() {
            self.buffer.load(unit, flash);
        }
        let last = self.buffer.store(target, pending, flash);
        self.shrink(chain, Some(target), last, flash);
        Ok(())
    }

    /// Frees a unit by folding a chain other than `chain`.
    #[cold]
    fn reclaim_unit(&mut self, chain: u32, flash: &mut FlashOps) -> Result<BlockId, FtlError> {
        let frees_one = |number: &u32| {
            let Chain { primary, replacement, .. } = self.chains[*number as usize];
            let survives = |unit| merge::survives_erase(BlockId(unit), flash);
            *number != chain && replacement != NONE && survives(primary) && survives(replacement)
        };
        let other = (0..self.chains.len() as u32).find(frees_one);
        let other = other.ok_or_else(|| self.no_room(flash))?;
        self.rewrite(other, None, flash)?;
        Ok(self.free.take(false).expect("the other unit survived its erase"))
    }

    /// Adds a primary unit to `chain`, which has none.
    fn begin(&mut self, chain: u32, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.free.len() < 2
            && let Some((_, BlockId(first))) = self.replaced.top()
        {
            self.fold(first, None, flash)?;
        }
        loop {
            if let Some(unit) = self.free.take(false) {
                self.chains[chain as usize] = Chain { primary: unit.0, ..NO_CHAIN };
                return Ok(());
            }
            // Only when folding wore blocks out.
            let (_, BlockId(first)) = self.replaced.top().ok_or_else(|| self.no_room(flash))?;
            self.fold(first, None, flash)?;
        }
    }

    #[cold]
    fn no_room(&self, flash: &FlashOps) -> FtlError {
        merge::worn_out(self.chains.len(), flash)
    }
}

impl Ftl for Fmax {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        let (chain, offset) = self.geometry.split(lpn);
        self.find(chain, offset, flash).unwrap_or(Ppn::NONE)
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, offset) = self.geometry.split(lpn);
        if self.chains[chain as usize].primary == NONE {
            self.begin(chain, flash)?;
        }
        let Chain { primary, replacement, .. } = self.chains[chain as usize];
        if merge::is_open(BlockId(primary), offset, flash) {
            merge::program_to(lpn, BlockId(primary), offset, flash);
            return Ok(());
        }
        if replacement != NONE {
            match self.next_page(BlockId(replacement), offset, flash) {
                Some(at) => self.replace(lpn, at, flash),
                None => self.fold(chain, Some(lpn), flash)?,
            }
            return Ok(());
        }
        if self.free.len() < 2 {
            return self.rewrite(chain, Some(lpn), flash);
        }
        let unit = self.free.take(false).expect("two at least");
        self.add_replacement(chain, unit);
        let at = self.next_page(unit, offset, flash).expect("the unit is erased");
        self.replace(lpn, at, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, offset) = self.geometry.split(lpn);
        let Some(page) = self.find(chain, offset, flash) else { return Ok(()) };
        let Chain { primary, replacement, slot } = self.chains[chain as usize];
        if slot != NONE {
            self.tables.clear(slot, offset);
        }
        flash.invalidate(page);
        let units = [primary, replacement].into_iter().filter(|unit| *unit != NONE);
        if units.into_iter().all(|unit| flash.array().valid(BlockId(unit)) == 0) {
            self.shrink(chain, None, After::NOTHING, flash);
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        let mapping_ram_bytes =
            (self.chains.len() * size_of::<Chain>() + self.tables.bytes()) as u64;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mut blocks = BlockAudit::new(flash);
        for (number, chain) in (0u32..).zip(&self.chains) {
            let Chain { primary, replacement, slot } = *chain;
            if primary != NONE {
                blocks.data(BlockId(primary), number, true)?;
            }
            let valid =
                (replacement == NONE) == (slot == NONE) && (primary != NONE || replacement == NONE);
            if !valid {
                return Err(format!("chain {number} is {chain:?}"));
            }
            if replacement == NONE {
                continue;
            }
            blocks.data(BlockId(replacement), number, false)?;
            let mapped = self.tables.mapped(slot);
            if mapped != flash.array().valid(BlockId(replacement)) {
                return Err(format!("chain {number} maps {mapped} pages of its replacement unit"));
            }
        }
        blocks.finish(self.free.iter())
    }
}

impl Maintenance for Fmax {
    /// Folds the chain of `block`.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        merge::logical_block(block, flash)
            .is_some_and(|chain| self.fold(chain, None, flash).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::bench::{Bench, Operation, copies, erases, writes};
    use crate::ops::OpKind::{Copy, Erase, Program, Read};
    use ProgramOrder::{Any, Ascending, Sequential};

    /// Eight units of four pages; five chains of them are exported.
    fn bench(order: ProgramOrder) -> Bench {
        Bench::new(&ENTRY, order, (8, 4), 20, &[])
    }

    fn check(order: ProgramOrder, pages: &[u32], expected: &[Operation]) {
        let mut bench = bench(order);
        let (last, before) = pages.split_last().expect("a page at least");
        bench.write_all(before);
        assert_eq!(bench.write(*last), expected, "{order:?}, {pages:?}");
        bench.audit();
    }

    #[test]
    fn the_first_copy_goes_to_its_offset_of_the_primary_unit() {
        check(Any, &[5], &[(Program, 1)]);
        check(Any, &[3, 1], &[(Program, 1)]);
        check(Any, &[1, 1, 1, 2], &[(Program, 2)]);
        check(Sequential, &[2], &[(Program, 0), (Program, 1), (Program, 2)]);
    }

    #[test]
    fn an_overwritten_page_wraps_around_the_replacement_unit() {
        check(Any, &[2, 2], &[(Program, 6)]);
        check(Any, &[2, 2, 2], &[(Program, 7)]);
        check(Any, &[2, 2, 2, 2], &[(Program, 4)]);
        check(Any, &[2, 1, 2, 2, 1], &[(Program, 5)]);
        check(Any, &[0, 3, 0, 3, 3], &[(Program, 5)]);
        check(Ascending, &[2, 2], &[(Program, 4)]);
        check(Ascending, &[0, 2, 2, 0], &[(Program, 5)]);
    }

    #[test]
    fn reads_return_the_newest_copy_in_the_replacement_unit() {
        let mut bench = bench(Any);
        bench.write_all(&[3, 2, 3, 2, 3, 3]);
        assert_eq!(bench.read(3), [(Read, 5)]);
        assert_eq!(bench.read(2), [(Read, 6)]);
        assert_eq!(bench.read(1), []);
    }

    #[test]
    fn a_full_replacement_unit_is_folded_into_a_free_one_with_the_new_page() {
        let folded = [(Copy, 8), (Program, 9), (Copy, 10), (Erase, 0), (Erase, 1)];
        check(Any, &[0, 1, 2, 1, 1, 1, 1, 1], &folded);
        check(Sequential, &[0, 1, 2, 1, 1, 1, 1, 1], &folded);
        // The newest copy is in the replacement unit for 0, and in the primary one for 3.
        let folded = [(Copy, 8), (Program, 9), (Copy, 11), (Erase, 0), (Erase, 1)];
        check(Any, &[0, 1, 3, 0, 1, 1, 1, 1], &folded);
    }

    #[test]
    fn with_fewer_than_two_free_units_a_primary_unit_is_rewritten_in_place() {
        let mut bench = Bench::new(&ENTRY, Any, (3, 4), 8, &[]);
        bench.write_all(&[0, 1, 4]);
        let rewritten = [(Read, 0), (Read, 1), (Erase, 0), (Program, 0), (Program, 1)];
        assert_eq!(bench.write(1), rewritten);
        bench.audit();
    }

    #[test]
    fn a_new_chain_folds_the_first_chain_with_a_replacement_when_units_are_short() {
        let mut bench = Bench::new(&ENTRY, Any, (6, 4), 16, &[]);
        // Chains 1 and 0 get replacement units, in this order; one free unit is left.
        bench.write_all(&[4, 0, 4, 0, 8]);
        let did = bench.write(12);
        assert_eq!((copies(&did), erases(&did), writes(&did)), (1, 2, 1), "{did:?}");
        assert_eq!(did[1..3], [(Erase, 1), (Erase, 3)], "chain 0 comes first");
        bench.audit();
    }

    #[test]
    fn a_chain_whose_last_page_is_trimmed_is_erased() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1, 1]);
        assert_eq!(bench.trim(1), []);
        assert_eq!(bench.read(1), [], "not the old copy");
        assert_eq!(bench.trim(0), [(Erase, 0), (Erase, 1)]);
        bench.audit();
    }
}
