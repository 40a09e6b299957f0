//! Raw flash: no translation; the host reads, programs and erases.
//!
//! konanki, section 3.2: logical page `p` is physical page `p`, and the host erases a block before
//! it overwrites its pages. Programming a page that is not erased (or, on chips that program in
//! order, out of order) is an error that ends the run and leaves the data as they are. Reads return
//! what was programmed.
//!
//! The host erases by trimming: a block is erased when the last of its valid pages is trimmed, so a
//! trim of the whole block erases it. A block without data needs no erase.

use super::{Ftl, FtlEntry, FtlError, Hint, Properties, merge};
use crate::array::PageState;
use crate::event::Cause;
use crate::geometry::{Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::registry::Description;

use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "raw",
        summary: "No translation: trimming a block erases it, overwriting a page is an error.",
        origin: "konanki, section 3.2 (flash visible to the host). The host \
                 erases blocks by trimming them",
        params: &[],
    },
    provides: &[],
    build: |input| Ok(Box::new(Raw { geometry: *input.geometry })),
};

#[derive(Serialize, Deserialize)]
struct Raw {
    geometry: Geometry,
}

impl Raw {
    #[cold]
    fn refuse(&self, page: Ppn, flash: &FlashOps) -> FtlError {
        let block = self.geometry.block_of(page);
        let (offset, number) = (self.geometry.offset_of(page), block.0);
        let array = flash.array();
        if array.is_retired(block) {
            let endurance = array.endurance();
            return FtlError::WornOut(format!("block {number} has reached its {endurance} erases"));
        }
        if array.state(page) == PageState::Free {
            let next = match array.next_page(block) {
                next if next < self.geometry.pages_per_block() => format!("page {next} is next"),
                _ => "no page is left until the block is erased".to_owned(),
            };
            return FtlError::NotErased(format!(
                "page {offset} of block {number} is erased, but the chip programs the pages of a \
                 block in order, and {next}; write them in that order, set program_order = \
                 \"any\", or choose an FTL"
            ));
        }
        FtlError::NotErased(format!(
            "page {offset} of block {number} has been programmed since the block was erased; trim \
             the whole block first, which erases it, or choose an FTL"
        ))
    }
}

impl Ftl for Raw {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        let page = Ppn(lpn.0);
        if merge::is_valid(page, flash) { page } else { Ppn::NONE }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let page = Ppn(lpn.0);
        let (block, offset) = (self.geometry.block_of(page), self.geometry.offset_of(page));
        let in_order = merge::pads(block, offset, flash) == 0;
        if flash.array().is_retired(block) || !merge::is_open(block, offset, flash) || !in_order {
            return Err(self.refuse(page, flash));
        }
        flash.host_program(page, lpn, After::NOTHING);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        if self.holds(lpn, flash) && flash.invalidate(Ppn(lpn.0)) == 0 {
            flash.erase(self.geometry.block_of(Ppn(lpn.0)), Cause::Host, After::NOTHING);
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        Properties { is_raw: true, ..Properties::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder::{self, Any, Ascending, Sequential};
    use crate::ftl::bench::Bench;
    use crate::ops::OpKind::{Erase, Program, Read};

    fn bench(order: ProgramOrder) -> Bench {
        Bench::new(&ENTRY, order, (2, 4), 8, &[])
    }

    #[test]
    fn logical_and_physical_pages_have_the_same_numbers() {
        let mut bench = bench(Any);
        assert_eq!(bench.write(6), [(Program, 6)]);
        assert_eq!(bench.write(4), [(Program, 4)]);
        assert_eq!(bench.read(6), [(Read, 6)]);
        assert_eq!(bench.read(5), []);
    }

    #[test]
    fn programming_a_page_that_is_not_erased_is_refused() {
        let check = |order, before: &[u32], page, refused: bool| {
            let mut bench = bench(order);
            bench.write_all(before);
            let done = bench.try_write(page);
            // The message says whether the page holds data or is only out of order.
            let why = if before.contains(&page) { "has been programmed" } else { "in order" };
            let explained = matches!(&done, Err(FtlError::NotErased(text))
                if text.contains("block 0") && text.contains(why));
            assert_eq!(
                (explained, done.is_err()),
                (refused, refused),
                "{order:?} {before:?} {page}"
            );
            assert_eq!(bench.flash.list().is_empty(), refused);
            assert!(before.iter().all(|page| bench.holds(*page)), "the data stay");
        };
        check(Any, &[1], 1, true);
        check(Any, &[1], 0, false);
        check(Ascending, &[1], 0, true);
        check(Ascending, &[0], 3, false);
        check(Sequential, &[0], 3, true);
        check(Sequential, &[0], 1, false);
    }

    #[test]
    fn the_refusal_says_which_page_is_next() {
        for (before, expected) in [(1, "page 2 is next"), (3, "no page is left")] {
            let mut bench = bench(Ascending);
            bench.write_all(&[before]);
            let refused = bench.try_write(0);
            let explained =
                matches!(&refused, Err(FtlError::NotErased(text)) if text.contains(expected));
            assert!(explained, "{before}: {refused:?}");
        }
    }

    #[test]
    fn trimming_the_whole_block_erases_it() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1, 4]);
        assert_eq!((bench.trim(0), bench.trim(3)), (vec![], vec![]));
        assert!(bench.try_write(0).is_err(), "trimmed, but not erased");
        assert_eq!(bench.trim(1), [(Erase, 0)]);
        assert_eq!(bench.write(1), [(Program, 1)]);
        assert!(bench.holds(4), "the other block keeps its data");
    }

    #[test]
    fn a_worn_out_block_cannot_be_programmed() {
        let mut bench = bench(Any).with_endurance(1);
        bench.write_all(&[0, 4]);
        bench.trim(0);
        assert!(matches!(bench.try_write(0), Err(FtlError::WornOut(_))));
        assert!(bench.holds(4) && bench.try_write(5).is_ok());
    }
}
