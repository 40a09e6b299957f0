//! ANAND: each logical block is a chain of physical blocks (units) in which pages keep their
//! offsets.
//!
//! konanki, figures 4.4 and 4.5 (known to Linux as NFTL). A page goes to the first unit of its
//! chain whose page of that offset is erased. Where there is none the chain is extended, and a
//! chain of maximum length is folded into its last unit, which holds the newest data already.
//!
//! Where the figure is silent or wrong: the offset is that of the page, not of the unit; "free
//! virtual units" are free physical units; the page that made a chain fold goes to a unit appended
//! afterwards, because its page in the last unit is programmed (there would be no fold otherwise).
//!
//! The figure assumes chips that program pages in any order. On other chips an offset counts as
//! programmed when the chip can no longer program it, and a fold that would have to go back is done
//! through the controller's memory, as the figure does with a chain of one unit.
//!
//! A real device finds the newest copy in the spare areas; here the array provides it.

use super::merge::{self, BlockAudit, BlockBuffer, NONE};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::lists::Lists;
use crate::ops::{After, FlashOps};
use crate::wear::FreeBlocks;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "anand",
        summary: "Chains of blocks per logical block, pages in place, folded when too long.",
        origin: "konanki, figures 4.4 and 4.5 (NFTL). Unlike there, the page that makes a chain \
                 fold goes to a unit appended afterwards; walking a chain costs no reads of spare \
                 areas",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

/// Upper bound of `chain_max`: a read may visit every unit of a chain.
const CHAIN_MAX: u64 = 64;

hybridsim_config::choices! {
    /// Target of a fold.
    enum FoldInto { Last = "last", Fresh = "fresh" }
}

hybridsim_config::choices! {
    /// Remedy when no unit is free.
    enum NoFreeUnit { Own = "own", Longest = "longest" }
}

hybridsim_config::params! {
    struct Parameters {
        // The paper gives no number; figure 5.8 is reproduced by 3, 4 and 5 only.
        chain_max: u32 = Kind::Count { min: 1, max: CHAIN_MAX }, default "4",
            "Most units in a chain; a full chain is folded.";
        fold_into: FoldInto = Kind::Choice(FoldInto::NAMES), default "\"last\""
            needs &[Needs::Not("chain_max", &["1"])],
            "Whether a chain is folded into its last unit, as in the paper, or into a free unit \
             together with the new page (if a unit is free).";
        no_free_unit: NoFreeUnit = Kind::Choice(NoFreeUnit::NAMES), default "\"own\""
            needs &[Needs::Not("chain_max", &["1"])],
            "What makes room for a longer chain when no unit is free: its own chain is folded or \
             rewritten, as in figure 4.4, or the longest of all chains is folded, as the figure \
             does for a new chain.";
    }
}

#[derive(Serialize, Deserialize)]
struct Anand {
    geometry: Geometry,
    chains: Vec<Chain>,
    /// By unit, the next unit of its chain.
    next: Vec<u32>,
    /// A list of chains for each length.
    by_length: Lists,
    free: FreeBlocks,
    chain_max: u32,
    into_fresh: bool,
    folds_longest: bool,
    #[serde(skip)]
    buffer: BlockBuffer,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chain {
    first: u32,
    last: u32,
    units: u32,
}

const EMPTY: Chain = Chain { first: NONE, last: NONE, units: 0 };

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let geometry = *input.geometry;
    let logical = input.logical_blocks() as usize;
    let params = Parameters::from_settings(input.settings);
    Ok(Box::new(Anand {
        geometry,
        chains: vec![EMPTY; logical],
        next: vec![NONE; geometry.blocks() as usize],
        by_length: Lists::new(params.chain_max as usize + 1, logical),
        free: FreeBlocks::striped(&geometry),
        chain_max: params.chain_max,
        into_fresh: params.fold_into == FoldInto::Fresh,
        folds_longest: params.no_free_unit == NoFreeUnit::Longest,
        buffer: BlockBuffer::default(),
    }))
}

impl Anand {
    fn units(&self, chain: u32) -> impl Iterator<Item = BlockId> + '_ {
        let first = self.chains[chain as usize].first;
        let behind = |unit: &u32| Some(self.next[*unit as usize]).filter(|next| *next != NONE);
        std::iter::successors(Some(first).filter(|unit| *unit != NONE), behind).map(BlockId)
    }

    /// The page that holds the data of `offset`, if any.
    fn find(&self, chain: u32, offset: u32, flash: &FlashOps) -> Option<Ppn> {
        let pages = self.units(chain).map(|unit| self.geometry.page(unit, offset));
        pages.into_iter().find(|page| merge::is_valid(*page, flash))
    }

    fn append(&mut self, chain: u32, unit: BlockId) {
        let Chain { first, last, units } = &mut self.chains[chain as usize];
        match *last {
            NONE => *first = unit.0,
            last => self.next[last as usize] = unit.0,
        }
        self.next[unit.0 as usize] = NONE;
        *last = unit.0;
        *units += 1;
        self.by_length.move_to(*units as usize, chain);
    }

    /// Erases every unit of `chain` except `keep`, after the operation `after`.
    fn shrink(&mut self, chain: u32, keep: Option<BlockId>, after: After, flash: &mut FlashOps) {
        let mut unit = std::mem::replace(&mut self.chains[chain as usize], EMPTY).first;
        self.by_length.remove(chain);
        while unit != NONE {
            let next = self.next[unit as usize];
            if keep != Some(BlockId(unit)) {
                merge::recycle(&mut self.free, BlockId(unit), after, flash);
            }
            unit = next;
        }
        if let Some(unit) = keep {
            self.append(chain, unit);
        }
    }

    fn program(&self, lpn: Lpn, unit: BlockId, flash: &mut FlashOps) {
        let (chain, offset) = self.geometry.split(lpn);
        let old = self.find(chain, offset, flash);
        merge::program_to(lpn, unit, offset, flash);
        if let Some(old) = old {
            flash.invalidate(old);
        }
    }

    /// Whether the last unit can take the data of the units before it.
    fn can_fold_into_last(&self, chain: u32, flash: &FlashOps) -> bool {
        let array = flash.array();
        let last = BlockId(self.chains[chain as usize].last);
        let lowest = self.units(chain).filter(|unit| *unit != last);
        let lowest = lowest.filter_map(|unit| array.next_valid(unit, 0)).min();
        array.order() == ProgramOrder::Any
            || lowest.is_none_or(|offset| offset >= array.next_page(last))
    }

    /// Folds `chain` into `target`, with the host's page `pending` in place of its old version.
    fn fold_into(
        &mut self,
        chain: u32,
        target: BlockId,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) {
        let newest = |offset, flash: &FlashOps| self.find(chain, offset, flash);
        let last = merge::merge_into(target, chain, pending, newest, flash);
        self.shrink(chain, Some(target), last, flash);
    }

    /// Folds `chain` through the controller's memory, with the host's page `pending`.
    fn rewrite(
        &mut self,
        chain: u32,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        let last = BlockId(self.chains[chain as usize].last);
        let survives = |unit: &BlockId| merge::survives_erase(*unit, flash);
        let target = Some(last).filter(survives).or_else(|| self.units(chain).find(survives));
        let Some(target) = target else {
            // No unit of the chain survives an erase: only a unit of another chain can take the
            // data.
            let fresh = self.take_unit(flash)?;
            self.fold_into(chain, fresh, pending, flash);
            return Ok(());
        };
        let units: Vec<BlockId> = self.units(chain).collect();
        units.into_iter().for_each(|unit| self.buffer.load(unit, flash));
        let last = self.buffer.store(target, pending, flash);
        self.shrink(chain, Some(target), last, flash);
        Ok(())
    }

    /// Folds `chain`, which has at least two units, without a new page.
    fn fold(&mut self, chain: u32, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.can_fold_into_last(chain, flash) {
            let last = BlockId(self.chains[chain as usize].last);
            self.fold_into(chain, last, None, flash);
            return Ok(());
        }
        self.rewrite(chain, None, flash)
    }

    /// Whether `chain` can be folded without another unit.
    fn can_fold(&self, chain: u32, flash: &FlashOps) -> bool {
        self.can_fold_into_last(chain, flash)
            || self.units(chain).any(|unit| merge::survives_erase(unit, flash))
    }

    /// The longest chain that frees a unit when folded and can be folded.
    fn longest(&self, flash: &FlashOps) -> Option<u32> {
        let lengths = (2..=self.chain_max as usize).rev();
        let mut chains = lengths.flat_map(|units| self.by_length.iter(units));
        chains.find(|chain| self.can_fold(*chain, flash))
    }

    /// Takes a free unit, folding the longest chain if there is none.
    fn take_unit(&mut self, flash: &mut FlashOps) -> Result<BlockId, FtlError> {
        loop {
            if let Some(unit) = self.free.take(false) {
                return Ok(unit);
            }
            let longest = self.longest(flash).ok_or_else(|| self.no_room(flash))?;
            self.fold(longest, flash)?;
        }
    }

    /// A unit to make a chain longer, if there is one or may be.
    fn unit_to_append(&mut self, flash: &mut FlashOps) -> Option<BlockId> {
        match self.free.take(false) {
            None if self.folds_longest => self.take_unit(flash).ok(),
            free => free,
        }
    }

    /// Writes a page whose offset is programmed in every unit of its chain.
    fn extend(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, _) = self.geometry.split(lpn);
        let units = self.chains[chain as usize].units;
        if units < self.chain_max
            && let Some(unit) = self.unit_to_append(flash)
        {
            self.append(chain, unit);
            self.program(lpn, unit, flash);
            return Ok(());
        }
        if units > 1
            && self.into_fresh
            && let Some(unit) = self.free.take(false)
        {
            self.fold_into(chain, unit, Some(lpn), flash);
            return Ok(());
        }
        if units > 1 && self.can_fold_into_last(chain, flash) {
            self.fold(chain, flash)?;
            // The erased units may be worn out; then another chain has to be folded.
            if let Ok(unit) = self.take_unit(flash) {
                self.append(chain, unit);
                self.program(lpn, unit, flash);
                return Ok(());
            }
        }
        self.rewrite(chain, Some(lpn), flash)
    }

    #[cold]
    fn no_room(&self, flash: &FlashOps) -> FtlError {
        merge::worn_out(self.chains.len(), flash)
    }
}

impl Ftl for Anand {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        let (chain, offset) = self.geometry.split(lpn);
        self.find(chain, offset, flash).unwrap_or(Ppn::NONE)
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, offset) = self.geometry.split(lpn);
        if self.chains[chain as usize].units == 0 {
            let unit = self.take_unit(flash)?;
            self.append(chain, unit);
        }
        let open = self.units(chain).find(|unit| merge::is_open(*unit, offset, flash));
        match open {
            Some(unit) => self.program(lpn, unit, flash),
            None => self.extend(lpn, flash)?,
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (chain, offset) = self.geometry.split(lpn);
        if let Some(page) = self.find(chain, offset, flash) {
            let left = flash.invalidate(page);
            if left == 0 && self.units(chain).all(|unit| flash.array().valid(unit) == 0) {
                self.shrink(chain, None, After::NOTHING, flash);
            }
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        // The chains and the link of each unit.
        let mapping_ram_bytes =
            (self.chains.len() * size_of::<Chain>() + self.next.len() * 4) as u64;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mut blocks = BlockAudit::new(flash);
        for (chain, ends) in (0u32..).zip(&self.chains) {
            let units: Vec<_> = self.units(chain).take(self.next.len()).collect();
            let last = units.last().map_or(NONE, |unit| unit.0);
            if (units.len(), last) != (ends.units as usize, ends.last)
                || ends.units > self.chain_max
            {
                return Err(format!("chain {chain} is {ends:?}, but has {units:?}"));
            }
            for unit in units {
                blocks.data(unit, chain, true)?;
            }
        }
        blocks.finish(self.free.iter())
    }
}

impl Maintenance for Anand {
    /// Folds the chain of `block` into a free unit, or through the controller's memory.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let Some(chain) = merge::logical_block(block, flash) else { return false };
        if let Some(unit) = self.free.take(false) {
            self.fold_into(chain, unit, None, flash);
            return true;
        }
        self.rewrite(chain, None, flash).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::bench::{Bench, copies, erases, writes};
    use crate::ops::OpKind::{Copy, Erase, Program, Read};
    use hybridsim_config::param::Value;

    /// Eight units of four pages; five chains of them are exported.
    fn bench(order: ProgramOrder, chain_max: u64) -> Bench {
        Bench::new(&ENTRY, order, (8, 4), 20, &[("chain_max", Value::Count(chain_max))])
    }

    fn check(order: ProgramOrder, chain_max: u64, pages: &[u32], expected: &[(OpKind, u32)]) {
        let mut bench = bench(order, chain_max);
        let (last, before) = pages.split_last().expect("a page at least");
        bench.write_all(before);
        assert_eq!(bench.write(*last), expected, "{order:?}, {pages:?}");
        bench.audit();
    }

    use crate::ops::OpKind;
    use ProgramOrder::{Any, Ascending, Sequential};

    #[test]
    fn a_page_goes_to_the_first_unit_with_its_offset_erased() {
        check(Any, 4, &[5], &[(Program, 1)]);
        check(Any, 4, &[1, 3, 2], &[(Program, 2)]);
        check(Any, 4, &[1, 1], &[(Program, 5)]);
        check(Any, 4, &[1, 1, 1, 2], &[(Program, 2)]);
        check(Any, 4, &[1, 1, 2, 2], &[(Program, 6)]);
    }

    #[test]
    fn a_chain_of_maximum_length_is_folded_into_its_last_unit() {
        // Units 0, 1; the last holds page 1 already, so 0, 2 and 3 are copied beside it.
        let folded = [(Copy, 4), (Copy, 6), (Copy, 7), (Erase, 0), (Program, 9)];
        check(Any, 2, &[0, 1, 2, 3, 1, 1], &folded);
        // Nothing but the last unit holds data: no copies.
        let folded = [(Erase, 0), (Program, 8)];
        check(Any, 2, &[0, 1, 2, 3, 0, 1, 2, 3, 0], &folded);
    }

    #[test]
    fn a_chain_of_one_unit_is_rewritten_in_place() {
        let rewritten = [(Read, 0), (Read, 1), (Erase, 0), (Program, 0), (Program, 1)];
        check(Any, 1, &[0, 1, 1], &rewritten);
        check(Sequential, 1, &[0, 1, 0], &rewritten);
    }

    #[test]
    fn a_fold_into_a_free_unit_includes_the_new_page() {
        let params =
            [("chain_max", Value::Count(2)), ("fold_into", Value::Text("fresh".to_owned()))];
        let mut bench = Bench::new(&ENTRY, Any, (8, 4), 20, &params);
        bench.write_all(&[0, 1, 2, 1]);
        let folded = [(Copy, 8), (Program, 9), (Copy, 10), (Erase, 0), (Erase, 1)];
        assert_eq!(bench.write(1), folded);
        bench.audit();
    }

    #[test]
    fn chips_that_program_in_order_fold_through_memory() {
        // Unit 0 holds page 0; unit 1 was begun with page 1, so page 0 cannot join it.
        let folded = [(Read, 0), (Read, 5), (Erase, 1), (Program, 4), (Program, 5), (Erase, 0)];
        check(Ascending, 2, &[0, 1, 1, 1], &folded);
    }

    #[test]
    fn without_a_free_unit_the_longest_chain_is_folded() {
        let mut bench = bench(Any, 4);
        // Chain 0 has four units, chains 1 and 2 two each.
        bench.write_all(&[0, 0, 0, 0, 4, 4, 8, 8]);
        let did = bench.write(12);
        assert_eq!((copies(&did), erases(&did), writes(&did)), (0, 3, 1), "{did:?}");
        assert_eq!(did[3], (Program, 0), "the unit that was erased first");
        bench.audit();
    }

    #[test]
    fn a_longer_chain_may_fold_the_longest() {
        let write_again = |choice: &str| {
            let params = [("no_free_unit", Value::Text(choice.to_owned()))];
            let mut bench = Bench::new(&ENTRY, Any, (8, 4), 20, &params);
            // Chain 0 has four units, chain 1 two, chains 2 and 3 one each: none is free.
            bench.write_all(&[0, 0, 0, 0, 4, 4, 8, 9, 12]);
            let did = bench.write(8);
            bench.audit();
            did
        };
        let own = [(Read, 24), (Read, 25), (Erase, 6), (Program, 24), (Program, 25)];
        assert_eq!(write_again("own"), own, "the figure: its only unit is rewritten");
        let longest = [(Erase, 0), (Erase, 1), (Erase, 2), (Program, 0)];
        assert_eq!(write_again("longest"), longest);
    }

    #[test]
    fn a_device_without_spare_units_rewrites_in_place() {
        let mut bench = Bench::new(&ENTRY, Any, (3, 4), 12, &[]);
        bench.write_all(&(0..12).collect::<Vec<_>>());
        let did = bench.write(5);
        assert_eq!((erases(&did), writes(&did)), (1, 4), "{did:?}");
        bench.audit();
    }

    #[test]
    fn a_chain_whose_last_page_is_trimmed_is_erased() {
        let mut bench = bench(Any, 4);
        bench.write_all(&[0, 1, 1]);
        assert_eq!(bench.trim(1), []);
        assert_eq!(bench.trim(0), [(Erase, 0), (Erase, 1)]);
        bench.audit();
    }

    #[test]
    fn it_works_while_as_many_units_are_left_as_chains() {
        // Where a chain is folded through memory, one of its units has to survive that.
        for (order, left) in [(Any, 3), (Ascending, 4), (Sequential, 4)] {
            let mut bench = Bench::new(&ENTRY, order, (7, 4), 12, &[]).with_endurance(5);
            bench.write_all(&(0..12).collect::<Vec<_>>());
            let writes = (0..2_000).map(|number| number * 7 % 12);
            let error = writes.filter_map(|page| bench.try_write(page).err()).next();
            assert!(matches!(error, Some(FtlError::WornOut(_))), "{error:?}");
            let usable = 7 - bench.flash.array().retired_blocks();
            assert!(usable <= left, "{order:?}: {usable} left");
            bench.audit();
        }
    }

    #[test]
    fn the_last_erase_is_not_spent_on_the_only_copy() {
        let mut bench = Bench::new(&ENTRY, Any, (2, 2), 4, &[]).with_endurance(3);
        bench.write_all(&[0, 1, 2, 3]);
        let error = (0..100).find_map(|_| bench.try_write(0).err()).expect("it wears out");
        assert!(matches!(error, FtlError::WornOut(_)), "{error}");
        assert!((0..4).all(|page| bench.holds(page)), "old data stay readable");
        bench.audit();
    }
}
