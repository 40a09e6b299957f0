//! Pages at fixed addresses, without wear levelling.
//!
//! konanki, figure 4.1 ("page level FTL without wear levelling"): logical page `p` is physical
//! page `p`. Erased pages are programmed; if any page of a block that a request writes is
//! programmed already, the block is read into memory, changed, erased and written back, once for
//! the whole request. Initially each page is programmed with the prewrite probability; at 1 every
//! write costs a block, as in simple media.
//!
//! By default only valid pages are read and written back, so that erased pages stay erased; with
//! `rewrite = "block"` every page of the block is read and programmed, as in the figure, and is
//! programmed from then on (the figure marks the pages of the request alone, which flash cannot
//! do). On chips that program in order, erased pages behind the data stay erased then too. The
//! figure's page count is off by two, and its end of block is that of the first page; the pages up
//! to the end of the block or the request are meant.
//!
//! A request whose last page is written partially and holds data erases its block once more for
//! that page, whose old data are needed until then. On chips that program pages in order the same
//! holds for requests with data behind them in the block.

use super::merge::{self, BlockBuffer};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::array::{PageState, ProgramOrder};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::Stream;
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "in-place",
        summary: "Fixed addresses: overwriting a page reads, erases and rewrites its block.",
        origin: "konanki, figure 4.1 (page level FTL without wear levelling). Unlike there, only \
                 valid pages are read and written back by default, and its page counts are \
                 corrected",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

hybridsim_config::choices! {
    /// Pages that a rewrite of a block includes.
    enum Rewrite { Data = "data", Block = "block" }
}

hybridsim_config::params! {
    struct Parameters {
        prewrite_probability: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0",
            "Probability that a page is programmed when the run begins, independent of the others.";
        rewrite: Rewrite = Kind::Choice(Rewrite::NAMES), default "\"data\"",
            "What is read and programmed again when a page is overwritten: the pages of its block \
             that hold data, or all of them, as in figure 4.1.";
    }
}

#[derive(Serialize, Deserialize)]
struct InPlace {
    geometry: Geometry,
    exported_pages: u32,
    prewrite: f64,
    whole_block: bool,
    stream: Stream,
    #[serde(skip)]
    buffer: BlockBuffer,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let params = Parameters::from_settings(input.settings);
    Ok(Box::new(InPlace {
        geometry: *input.geometry,
        exported_pages: input.exported_pages,
        prewrite: params.prewrite_probability,
        whole_block: params.rewrite == Rewrite::Block,
        stream: Stream::new(input.seed, &format!("{}/prewrite", input.path)),
        buffer: BlockBuffer::default(),
    }))
}

impl InPlace {
    /// Reads, erases and writes back `block` except for the pages `request`, of which the first is
    /// programmed with the host's page `pending` and the others by the next calls.
    fn rewrite(
        &mut self,
        block: BlockId,
        request: Range<u32>,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) {
        let behind = flash.array().next_valid(block, request.end);
        if self.whole_block {
            self.read_rest(block, flash);
        }
        self.buffer.load(block, flash);
        if flash.array().order() == ProgramOrder::Any || behind.is_none() {
            self.buffer.discard(request.start, request.end);
        }
        self.buffer.store(block, pending, flash);
        if self.whole_block && flash.array().order() == ProgramOrder::Any {
            self.program_rest(block, request, flash);
        }
    }

    /// Reads as many pages of `block` as hold no data. Such a page cannot be read here: the time
    /// is that of the first page that can.
    fn read_rest(&self, block: BlockId, flash: &mut FlashOps) {
        let empty = self.geometry.pages_per_block() - flash.array().valid(block);
        let Some(first) = flash.array().next_valid(block, 0) else { return };
        for _ in 0..empty {
            flash.read(self.geometry.page(block, first), Cause::Merge, After::NOTHING);
        }
    }

    /// Programs the erased pages of `block`, except those of the request, with padding.
    fn program_rest(&self, block: BlockId, request: Range<u32>, flash: &mut FlashOps) {
        for offset in (0..self.geometry.pages_per_block()).filter(|at| !request.contains(at)) {
            let page = self.geometry.page(block, offset);
            if !self.is_programmed(block, offset, flash) {
                flash.program(page, Lpn::NONE, Cause::Merge, After::NOTHING);
                flash.invalidate(page);
            }
        }
    }

    fn is_programmed(&self, block: BlockId, offset: u32, flash: &FlashOps) -> bool {
        flash.array().state(self.geometry.page(block, offset)) != PageState::Free
    }
}

impl Ftl for InPlace {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        let page = Ppn(lpn.0);
        if merge::is_valid(page, flash) { page } else { Ppn::NONE }
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let page = Ppn(lpn.0);
        let (block, offset) = (self.geometry.block_of(page), self.geometry.offset_of(page));
        // Pages that one rewrite of the block replaces: those of the request.
        let run = hint.whole_pages.min(self.geometry.pages_per_block() - offset).max(1);
        let programmed = |at| self.is_programmed(block, at, flash);
        if merge::is_open(block, offset, flash) && !(offset..offset + run).any(programmed) {
            merge::program_to(lpn, block, offset, flash);
            return Ok(());
        }
        if !merge::survives_erase(block, flash) {
            return Err(FtlError::WornOut(format!(
                "block {} is at the last of its {} erases and its data cannot move; \
                 choose a higher endurance or an FTL with wear levelling",
                block.0,
                flash.array().endurance()
            )));
        }
        self.rewrite(block, offset..offset + run, Some(lpn), flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.holds(lpn, flash) {
            flash.invalidate(Ppn(lpn.0));
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        let mapping_ram_bytes = u64::from(self.exported_pages.div_ceil(8));
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let valid = |number: &u32| merge::is_valid(Ppn(*number), flash);
        match (0..self.geometry.pages())
            .find(|number| valid(number) && flash.array().owner(Ppn(*number)) != Lpn(*number))
        {
            Some(number) => Err(format!("page {number} holds data of another page")),
            None => Ok(()),
        }
    }
}

impl Maintenance for InPlace {
    /// Rewrites `block` where it is.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let can = flash.array().valid(block) > 0 && merge::survives_erase(block, flash);
        if can {
            self.rewrite(block, 0..0, None, flash);
        }
        can
    }

    fn prepare(&mut self, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.prewrite == 0.0 {
            return Ok(());
        }
        for number in 0..self.exported_pages {
            if self.stream.chance(self.prewrite) {
                let page = Ppn(number);
                merge::pad(self.geometry.block_of(page), self.geometry.offset_of(page), flash);
                flash.program(page, Lpn(number), Cause::Mapping, After::NOTHING);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::bench::{Bench, Operation};
    use crate::ops::OpKind::{Erase, Program, Read};
    use ProgramOrder::{Any, Sequential};
    use hybridsim_config::param::Value;

    /// Four blocks of four pages.
    fn bench(order: ProgramOrder) -> Bench {
        Bench::new(&ENTRY, order, (4, 4), 16, &[])
    }

    /// Operations of a request of `pages` pages from `first` on, after writes of `before`.
    fn request(order: ProgramOrder, before: &[u32], first: u32, pages: u32) -> Vec<Operation> {
        let mut bench = bench(order);
        bench.write_all(before);
        let end = first + pages;
        let did = (first..end).flat_map(|page| bench.write_of_request(page, end - page)).collect();
        assert!((first..end).all(|page| bench.holds(page)));
        bench.audit();
        did
    }

    #[test]
    fn the_whole_block_is_rewritten_where_the_figure_is_taken_literally() {
        let params = [("rewrite", Value::Text("block".to_owned()))];
        let mut bench = Bench::new(&ENTRY, Any, (4, 4), 16, &params);
        bench.write_all(&[1]);
        let did = bench.write(1);
        let count = |kind| did.iter().filter(|(did, _)| *did == kind).count();
        assert_eq!((count(Read), count(Erase), count(Program)), (4, 1, 4), "{did:?}");
        // All pages are programmed now, so a first write rewrites them again.
        let did = bench.write(2);
        let count = |kind| did.iter().filter(|(did, _)| *did == kind).count();
        assert_eq!((count(Read), count(Erase), count(Program)), (4, 1, 4), "{did:?}");
        bench.audit();
    }

    #[test]
    fn erased_pages_are_programmed() {
        assert_eq!(request(Any, &[0], 1, 2), [(Program, 1), (Program, 2)]);
        assert_eq!(request(Any, &[], 3, 2), [(Program, 3), (Program, 4)]);
        assert_eq!(request(Sequential, &[], 1, 1), [(Program, 0), (Program, 1)], "with a pad");
    }

    #[test]
    fn overwriting_a_page_rewrites_its_block() {
        let expected =
            [(Read, 0), (Read, 1), (Read, 3), (Erase, 0), (Program, 0), (Program, 1), (Program, 3)];
        assert_eq!(request(Any, &[0, 1, 3], 1, 1), expected);
    }

    #[test]
    fn a_request_erases_a_block_once() {
        // Page 2 is programmed: the block is rewritten although page 1 comes first and is erased.
        let expected = [(Read, 0), (Read, 2), (Erase, 0), (Program, 0), (Program, 1), (Program, 2)];
        assert_eq!(request(Any, &[0, 2], 1, 2), expected);
        // Two blocks, fully programmed.
        let did = request(Any, &[0, 1, 2, 3, 4, 5, 6, 7], 2, 4);
        let erased: Vec<_> = did.iter().filter(|(kind, _)| *kind == Erase).collect();
        assert_eq!(erased, [&(Erase, 0), &(Erase, 1)]);
        let did = request(Sequential, &[0, 1, 2, 3], 0, 4);
        assert_eq!(did.iter().filter(|(kind, _)| *kind == Erase).count(), 1, "all in order");
    }

    #[test]
    fn a_run_ends_with_its_request() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1, 2, 3]);
        bench.write_of_request(0, 2);
        assert!(!bench.holds(1));
        bench.write_of_request(1, 1);
        // A page of its own: everything else is kept.
        bench.write(1);
        assert!((0..4).all(|page| bench.holds(page)));
    }

    #[test]
    fn a_partially_written_last_page_is_kept_until_it_is_written() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1, 2]);
        bench.write_of_request(0, 2);
        assert!(bench.holds(2) && !bench.holds(1));
    }

    #[test]
    fn pages_are_prewritten_with_the_given_probability() {
        for probability in [0.0, 0.25, 0.5, 1.0] {
            let params = [("prewrite_probability", Value::Number(probability))];
            let bench = Bench::new(&ENTRY, Any, (400, 100), 40_000, &params);
            let fraction = bench.flash.array().valid_pages() as f64 / 40_000.0;
            assert!((fraction - probability).abs() < 0.01, "{fraction} for {probability}");
        }
        let mut full =
            Bench::new(&ENTRY, Any, (4, 4), 16, &[("prewrite_probability", Value::Number(1.0))]);
        for page in [3, 0, 15] {
            let did = full.write(page);
            let count = |wanted| did.iter().filter(|(kind, _)| *kind == wanted).count();
            assert_eq!((count(Read), count(Erase), count(Program)), (4, 1, 4), "every write");
        }
    }

    #[test]
    fn the_last_erase_is_not_spent_on_the_only_copy() {
        let mut bench = bench(Any).with_endurance(3);
        bench.write_all(&[0, 1, 0, 0]);
        assert!(matches!(bench.try_write(0), Err(FtlError::WornOut(_))));
        assert!(bench.holds(0) && bench.holds(1));
        bench.write(4);
    }
}
