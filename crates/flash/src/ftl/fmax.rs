//! FMAX: ANAND with chains of two, whose second unit takes pages anywhere.
//!
//! konanki, figures 4.6 and 4.7. A logical block has a primary unit, in which pages keep their
//! offsets, and at most one replacement unit for pages written again: the search for an erased
//! page begins at the page's own offset and goes round. When none is left both units are folded
//! into a fresh one.
//!
//! Where the figure is silent or wrong: the "compount" unit is the replacement unit, and its first
//! page goes to its own offset; the page that made the units fold is written straight into the
//! fresh one; one free unit is kept for folds, which is what "less than 2 free units" is for.
//!
//! Chips that do not program pages in any order fill the replacement unit from the front. Without
//! a free unit, which takes worn-out blocks, a fold goes through the controller's memory.
//!
//! A real device can find the newest copy by searching the spare areas of the replacement unit;
//! here a table in memory says where each offset went.

use super::merge::{self, FreeBlocks, Memory, NOBODY, NumberSet};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// The FMAX translation layer.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "fmax",
        summary: "Two blocks at most per logical one: pages in place, and pages written again.",
        origin: "konanki, figures 4.6 and 4.7. Unlike there, the page that makes units fold is \
                 written straight into the fresh one; finding the newest copy costs no reads of \
                 spare areas",
        params: &[],
    },
    build,
};

/// No place in a replacement unit.
const NOWHERE: u16 = u16::MAX;

struct Fmax {
    geometry: Geometry,
    chains: Vec<Chain>,
    /// Chains with a replacement unit.
    replaced: NumberSet,
    /// By slot and offset: the page of the replacement unit that holds the newest copy.
    places: Vec<u16>,
    free_slots: Vec<u32>,
    free: FreeBlocks,
    memory: Memory,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chain {
    primary: u32,
    replacement: u32,
    /// The row of `places`, while there is a replacement unit.
    slot: u32,
}

const NO_CHAIN: Chain = Chain { primary: NOBODY, replacement: NOBODY, slot: NOBODY };

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let geometry = *input.geometry;
    if geometry.pages_per_block() > u32::from(NOWHERE) {
        let message = format!("the layer's table takes at most {NOWHERE} pages to the block");
        return Err(vec![Problem::new("pages_per_block", message)]);
    }
    let logical = input.exported_pages.div_ceil(geometry.pages_per_block());
    // Each replacement unit has a primary unit beside it.
    let slots = logical.min(geometry.blocks() / 2);
    Ok(Box::new(Fmax {
        geometry,
        chains: vec![NO_CHAIN; logical as usize],
        replaced: NumberSet::new(logical as usize),
        places: vec![0; slots as usize * geometry.pages_per_block() as usize],
        free_slots: (0..slots).rev().collect(),
        free: FreeBlocks::striped(&geometry),
        memory: Memory::new(&geometry),
    }))
}

impl Fmax {
    fn place_index(&self, slot: u32, offset: u32) -> usize {
        slot as usize * self.geometry.pages_per_block() as usize + offset as usize
    }

    /// Where the data of `offset` are, if there are any.
    fn find(&self, chain: u32, offset: u32, flash: &FlashOps) -> Option<Ppn> {
        let Chain { primary, replacement, slot } = self.chains[chain as usize];
        if slot != NOBODY {
            let place = self.places[self.place_index(slot, offset)];
            if place != NOWHERE {
                return Some(self.geometry.page(BlockId(replacement), u32::from(place)));
            }
        }
        if primary == NOBODY {
            return None;
        }
        let page = self.geometry.page(BlockId(primary), offset);
        merge::is_valid(page, flash).then_some(page)
    }

    /// The page of `unit` that takes data of `offset`, if one is left.
    fn next_place(&self, unit: BlockId, offset: u32, flash: &FlashOps) -> Option<u32> {
        let array = flash.array();
        if array.order() == ProgramOrder::Any {
            return array.next_erased(unit, offset).or_else(|| array.next_erased(unit, 0));
        }
        Some(array.next_page(unit)).filter(|next| *next < self.geometry.pages_per_block())
    }

    fn replace(&mut self, lpn: Lpn, place: u32, flash: &mut FlashOps) {
        let (chain, offset) = self.geometry.split(lpn);
        let Chain { replacement, slot, .. } = self.chains[chain as usize];
        let old = self.find(chain, offset, flash);
        let page = self.geometry.page(BlockId(replacement), place);
        flash.host_program(page, lpn, After::NOTHING);
        let index = self.place_index(slot, offset);
        self.places[index] = place as u16;
        if let Some(old) = old {
            flash.invalidate(old);
        }
    }

    fn add_replacement(&mut self, chain: u32, unit: BlockId) {
        let slot = self.free_slots.pop().expect("a slot for every two blocks");
        let first = self.place_index(slot, 0);
        self.places[first..][..self.geometry.pages_per_block() as usize].fill(NOWHERE);
        let primary = self.chains[chain as usize].primary;
        self.chains[chain as usize] = Chain { primary, replacement: unit.0, slot };
        self.replaced.insert(chain);
    }

    /// Makes `primary` the only unit of `chain`; the others are erased after the operation `after`.
    fn settle(&mut self, chain: u32, primary: Option<BlockId>, after: After, flash: &mut FlashOps) {
        let only = Chain { primary: primary.map_or(NOBODY, |unit| unit.0), ..NO_CHAIN };
        let old = std::mem::replace(&mut self.chains[chain as usize], only);
        if old.slot != NOBODY {
            self.free_slots.push(old.slot);
            self.replaced.remove(chain);
        }
        for unit in [old.primary, old.replacement] {
            if unit != NOBODY && unit != only.primary {
                self.free.recycle(BlockId(unit), after, flash);
            }
        }
    }

    /// Folds `chain` into a fresh unit, with `pending` from the host.
    fn fold(
        &mut self,
        chain: u32,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        let Some(fresh) = self.free.take() else {
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
        let mut last = After::NOTHING;
        for offset in 0..self.geometry.pages_per_block() {
            let lpn = Lpn(chain * self.geometry.pages_per_block() + offset);
            let from = self.find(chain, offset, flash);
            if pending == Some(lpn) {
                last = merge::program_to(lpn, fresh, offset, flash);
                if let Some(from) = from {
                    flash.invalidate(from);
                }
            } else if let Some(from) = from {
                last = merge::copy_to(from, fresh, offset, flash);
            }
        }
        self.settle(chain, Some(fresh), last, flash);
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
        let units = units.map(|unit| unit.filter(|unit| unit.0 != NOBODY));
        let sound = |unit: &BlockId| merge::survives_erase(*unit, flash);
        let Some(target) = units.into_iter().flatten().find(sound) else {
            // Neither survives: a free unit is the only way.
            let fresh = self.free.take().map_or_else(|| self.win_unit(chain, flash), Ok)?;
            self.fold_into(chain, fresh, pending, flash);
            return Ok(());
        };
        for unit in units.into_iter().flatten() {
            self.memory.load(unit, flash);
        }
        let last = self.memory.store(target, pending, flash);
        self.settle(chain, Some(target), last, flash);
        Ok(())
    }

    /// A free unit where there is none, from a chain other than `chain` whose two units become one.
    #[cold]
    fn win_unit(&mut self, chain: u32, flash: &mut FlashOps) -> Result<BlockId, FtlError> {
        let gives_one = |number: &u32| {
            let Chain { primary, replacement, .. } = self.chains[*number as usize];
            let survives = |unit| merge::survives_erase(BlockId(unit), flash);
            *number != chain && replacement != NOBODY && survives(primary) && survives(replacement)
        };
        let other = (0..self.chains.len() as u32).find(gives_one);
        let other = other.ok_or_else(|| self.no_room(flash))?;
        self.rewrite(other, None, flash)?;
        Ok(self.free.take().expect("the unit that was not written survived its erase"))
    }

    /// A primary unit for `chain`, which has none.
    fn begin(&mut self, chain: u32, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.free.len() < 2
            && let Some(first) = self.replaced.first()
        {
            self.fold(first, None, flash)?;
        }
        loop {
            if let Some(unit) = self.free.take() {
                self.chains[chain as usize] = Chain { primary: unit.0, ..NO_CHAIN };
                return Ok(());
            }
            // Only where folding wore blocks out.
            let Some(first) = self.replaced.first() else { return Err(self.no_room(flash)) };
            self.fold(first, None, flash)?;
        }
    }

    #[cold]
    fn no_room(&self, flash: &FlashOps) -> FtlError {
        merge::worn_out(self.chains.len(), flash)
    }
}

impl Ftl for Fmax {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let (chain, offset) = self.geometry.split(lpn);
        if let Some(page) = self.find(chain, offset, flash) {
            flash.host_read(page, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, offset) = self.geometry.split(lpn);
        if self.chains[chain as usize].primary == NOBODY {
            self.begin(chain, flash)?;
        }
        let Chain { primary, replacement, .. } = self.chains[chain as usize];
        if merge::is_open(BlockId(primary), offset, flash) {
            // Only a place that was used once sends its page to the replacement unit.
            merge::program_to(lpn, BlockId(primary), offset, flash);
            return Ok(());
        }
        if replacement != NOBODY {
            match self.next_place(BlockId(replacement), offset, flash) {
                Some(place) => self.replace(lpn, place, flash),
                None => self.fold(chain, Some(lpn), flash)?,
            }
            return Ok(());
        }
        if self.free.len() < 2 {
            return self.rewrite(chain, Some(lpn), flash);
        }
        let unit = self.free.take().expect("two at least");
        self.add_replacement(chain, unit);
        let place = self.next_place(unit, offset, flash).expect("the unit is erased");
        self.replace(lpn, place, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, offset) = self.geometry.split(lpn);
        let Some(page) = self.find(chain, offset, flash) else { return Ok(()) };
        let Chain { primary, replacement, slot } = self.chains[chain as usize];
        if slot != NOBODY {
            let index = self.place_index(slot, offset);
            self.places[index] = NOWHERE;
        }
        flash.invalidate(page);
        let units = [primary, replacement].into_iter().filter(|unit| *unit != NOBODY);
        if units.into_iter().all(|unit| flash.array().valid(BlockId(unit)) == 0) {
            self.settle(chain, None, After::NOTHING, flash);
        }
        Ok(())
    }

    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        let (chain, offset) = self.geometry.split(lpn);
        self.find(chain, offset, flash).is_some()
    }

    fn mapping_ram_bytes(&self) -> u64 {
        (self.chains.len() * size_of::<Chain>() + self.places.len() * 2) as u64
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.chains, &self.replaced, &self.places, &self.free_slots, &self.free));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        type State = (Vec<Chain>, NumberSet, Vec<u16>, Vec<u32>, FreeBlocks);
        let (chains, replaced, places, free_slots, free): State = from.take()?;
        state::same_length("the table of chains", chains.len(), self.chains.len())?;
        state::same_length("the table of places", places.len(), self.places.len())?;
        self.replaced.same_shape(&replaced)?;
        (self.chains, self.replaced, self.places) = (chains, replaced, places);
        (self.free_slots, self.free) = (free_slots, free);
        Ok(())
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mut books = merge::Books::new(flash);
        for (number, chain) in (0u32..).zip(&self.chains) {
            let Chain { primary, replacement, slot } = *chain;
            if primary != NOBODY {
                books.holds(BlockId(primary), number, true)?;
            }
            let sound = (replacement == NOBODY) == (slot == NOBODY)
                && (primary != NOBODY || replacement == NOBODY);
            if !sound {
                return Err(format!("chain {number} is {chain:?}"));
            }
            if replacement == NOBODY {
                continue;
            }
            books.holds(BlockId(replacement), number, false)?;
            let first = self.place_index(slot, 0);
            let row = &self.places[first..][..self.geometry.pages_per_block() as usize];
            let placed = row.iter().filter(|place| **place != NOWHERE).count() as u32;
            if placed != flash.array().valid(BlockId(replacement)) {
                return Err(format!("chain {number} knows {placed} pages of its replacement"));
            }
        }
        books.close(&self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::bench::{Bench, Did, copies, erases, writes};
    use crate::ops::OpKind::{Copy, Erase, Program, Read};
    use ProgramOrder::{Any, Ascending, Sequential};

    /// Eight units of four pages; five chains of them are offered.
    fn bench(order: ProgramOrder) -> Bench {
        Bench::new(&ENTRY, order, (8, 4), 20, &[])
    }

    fn check(order: ProgramOrder, pages: &[u32], expected: &[Did]) {
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
    fn a_page_written_again_goes_round_the_replacement_unit() {
        check(Any, &[2, 2], &[(Program, 6)]);
        check(Any, &[2, 2, 2], &[(Program, 7)]);
        check(Any, &[2, 2, 2, 2], &[(Program, 4)]);
        check(Any, &[2, 1, 2, 2, 1], &[(Program, 5)]);
        check(Any, &[0, 3, 0, 3, 3], &[(Program, 5)]);
        check(Ascending, &[2, 2], &[(Program, 4)]);
        check(Ascending, &[0, 2, 2, 0], &[(Program, 5)]);
    }

    #[test]
    fn reads_find_the_last_copy_round_the_unit() {
        let mut bench = bench(Any);
        bench.write_all(&[3, 2, 3, 2, 3, 3]);
        assert_eq!(bench.read(3), [(Read, 5)]);
        assert_eq!(bench.read(2), [(Read, 6)]);
        assert_eq!(bench.read(1), []);
    }

    #[test]
    fn a_full_replacement_unit_is_folded_into_a_fresh_one_with_the_new_page() {
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
    fn a_new_chain_folds_the_first_replaced_one_when_units_are_short() {
        let mut bench = Bench::new(&ENTRY, Any, (6, 4), 16, &[]);
        // Chains 1 and 0 get replacement units, in this order; one free unit is left.
        bench.write_all(&[4, 0, 4, 0, 8]);
        let did = bench.write(12);
        assert_eq!((copies(&did), erases(&did), writes(&did)), (1, 2, 1), "{did:?}");
        assert_eq!(did[1..3], [(Erase, 1), (Erase, 3)], "chain 0 comes first");
        bench.audit();
    }

    #[test]
    fn a_chain_whose_last_page_is_trimmed_is_given_back() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1, 1]);
        assert_eq!(bench.trim(1), []);
        assert_eq!(bench.read(1), [], "not the old copy");
        assert_eq!(bench.trim(0), [(Erase, 0), (Erase, 1)]);
        bench.audit();
    }
}
