//! Flash without translation: read, program and erase, as the host asks.
//!
//! konanki, section 3.2: logical page `p` is physical page `p`, and whoever is above erases
//! before writing again. Programming a page that is not erased (or, on chips that want an order,
//! out of order) is an error that ends the run and leaves the data as they are. Reading returns
//! what was programmed.
//!
//! A host asks for an erase by trimming: a block is erased when the last page of it that holds
//! data is trimmed, so that a trim of the whole block erases it. A block without data needs none.

use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, merge};
use crate::array::PageState;
use crate::event::Cause;
use crate::geometry::{Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Flash without translation.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "raw",
        summary: "No translation: trimming a block erases it, rewriting a page is an error.",
        origin: "konanki, section 3.2 (flash visible to the host). Erasing is asked for by \
                 trimming",
        params: &[],
    },
    build,
};

struct Raw {
    geometry: Geometry,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    Ok(Box::new(Raw { geometry: *input.geometry }))
}

impl Raw {
    #[cold]
    fn refuse(&self, page: Ppn, flash: &FlashOps) -> FtlError {
        let block = self.geometry.block_of(page);
        let (offset, number) = (self.geometry.offset_of(page), block.0);
        let array = flash.array();
        if array.is_retired(block) {
            let endurance = array.endurance();
            return FtlError::WornOut(format!("block {number} has had its {endurance} erases"));
        }
        if array.state(page) == PageState::Free {
            let next = match array.next_page(block) {
                next if next < self.geometry.pages_per_block() => format!("page {next} is next"),
                _ => "none is left until it is erased".to_owned(),
            };
            return FtlError::NotErased(format!(
                "page {offset} of block {number} is erased, but its turn has not come or is over: \
                 the chip programs the pages of a block in order, and {next}; write them in \
                 that order, set program_order = \"any\", or choose a translation layer"
            ));
        }
        FtlError::NotErased(format!(
            "page {offset} of block {number} has been programmed since the block was erased; trim \
             the whole block first, which erases it, or choose a translation layer"
        ))
    }
}

impl Ftl for Raw {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        if self.holds(lpn, flash) {
            flash.host_read(Ppn(lpn.0), After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let page = Ppn(lpn.0);
        let (block, offset) = (self.geometry.block_of(page), self.geometry.offset_of(page));
        let in_turn = merge::pads(block, offset, flash) == 0;
        if flash.array().is_retired(block) || !merge::is_open(block, offset, flash) || !in_turn {
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

    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        merge::is_valid(Ppn(lpn.0), flash)
    }

    fn is_raw(&self) -> bool {
        true
    }

    fn mapping_ram_bytes(&self) -> u64 {
        0
    }

    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
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
    fn a_page_is_where_its_number_says() {
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
            // Whether the page holds data or only came out of turn, it says which.
            let why = if before.contains(&page) { "has been programmed" } else { "in order" };
            let told = matches!(&done, Err(FtlError::NotErased(text))
                if text.contains("block 0") && text.contains(why));
            assert_eq!((told, done.is_err()), (refused, refused), "{order:?} {before:?} {page}");
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
    fn trimming_the_whole_block_erases_it() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1, 4]);
        assert_eq!((bench.trim(0), bench.trim(3)), (vec![], vec![]));
        assert!(bench.try_write(0).is_err(), "trimmed, but not erased");
        assert_eq!(bench.trim(1), [(Erase, 0)]);
        assert_eq!(bench.write(1), [(Program, 1)]);
        assert!(bench.holds(4), "the other block is left alone");
    }

    #[test]
    fn a_worn_block_takes_no_more() {
        let mut bench = bench(Any).with_endurance(1);
        bench.write_all(&[0, 4]);
        bench.trim(0);
        assert!(matches!(bench.try_write(0), Err(FtlError::WornOut(_))));
        assert!(bench.holds(4) && bench.try_write(5).is_ok());
    }
}
