//! The block-mapped FTL: one logical block, one physical block, pages in place.
//!
//! The oldest FTL (SmartMedia; konanki, chapter 2; flashsim, section 3): the map has one entry per
//! block, and a page keeps its offset. A page can be written once in place; overwriting it moves
//! the whole block, so a random write costs copying a block.

use super::merge::{self, BlockAudit};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use crate::wear::FreeBlocks;
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "block",
        summary: "Maps whole blocks; overwriting a page moves its block.",
        origin: "flashsim, section 3 (block-level mapping); konanki, chapter 2 (SmartMedia). \
                 Beyond that, a block whose last page is trimmed is erased at once",
        params: &[],
    },
    provides: &[REFRESH],
    build,
};

#[derive(Serialize, Deserialize)]
struct BlockMap {
    geometry: Geometry,
    /// The physical block of each logical block.
    map: Vec<Option<BlockId>>,
    free: FreeBlocks,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let (geometry, logical) = (*input.geometry, input.logical_blocks());
    if logical >= geometry.blocks() {
        let message = format!(
            "{logical} logical blocks need at least one more physical block to move data to; \
             there are {}; raise over_provisioning or blocks_per_plane",
            geometry.blocks()
        );
        return Err(vec![Problem::new("over_provisioning", message)]);
    }
    let free = FreeBlocks::striped(&geometry);
    Ok(Box::new(BlockMap { geometry, map: vec![None; logical as usize], free }))
}

impl BlockMap {
    fn take_free(&mut self, flash: &FlashOps) -> Result<BlockId, FtlError> {
        self.free.take(false).ok_or_else(|| merge::worn_out(self.map.len(), flash))
    }

    /// Moves `old`, the block of `logical`, to a free one, with the host's page `pending` in place
    /// of its old version.
    fn move_block(
        &mut self,
        (logical, old): (u32, BlockId),
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        let new = self.take_free(flash)?;
        let newest = |offset, flash: &FlashOps| {
            Some(self.geometry.page(old, offset)).filter(|page| merge::is_valid(*page, flash))
        };
        let last = merge::merge_into(new, logical, pending, newest, flash);
        self.map[logical as usize] = Some(new);
        merge::recycle(&mut self.free, old, last, flash);
        Ok(())
    }
}

impl Ftl for BlockMap {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        let (logical, offset) = self.geometry.split(lpn);
        let page = self.map[logical as usize].map(|block| self.geometry.page(block, offset));
        page.filter(|page| merge::is_valid(*page, flash)).unwrap_or(Ppn::NONE)
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.geometry.split(lpn);
        let block = match self.map[logical as usize] {
            Some(block) => block,
            None => {
                let block = self.take_free(flash)?;
                *self.map[logical as usize].insert(block)
            }
        };
        if !merge::is_open(block, offset, flash) {
            return self.move_block((logical, block), Some(lpn), flash);
        }
        merge::program_to(lpn, block, offset, flash);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let page = self.lookup(lpn, flash);
        if page != Ppn::NONE && flash.invalidate(page) == 0 {
            let block = self.geometry.block_of(page);
            self.map[self.geometry.split(lpn).0 as usize] = None;
            merge::recycle(&mut self.free, block, After::NOTHING, flash);
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        let mapping_ram_bytes = self.map.len() as u64 * 4;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mut blocks = BlockAudit::new(flash);
        for (logical, block) in (0..).zip(&self.map) {
            block.map_or(Ok(()), |block| blocks.data(block, logical, true))?;
        }
        blocks.finish(self.free.iter())
    }
}

impl Maintenance for BlockMap {
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        merge::logical_block(block, flash)
            .is_some_and(|logical| self.move_block((logical, block), None, flash).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder::{self, Any, Ascending, Sequential};
    use crate::ftl::bench::{Bench, Operation};
    use crate::geometry::Shape;
    use crate::ops::OpKind::{Copy, Erase, Program};
    use hybridsim_config::param::Settings;
    use hybridsim_config::registry::Registry;

    /// Four blocks of four pages, of which three are exported.
    fn bench(order: ProgramOrder) -> Bench {
        Bench::new(&ENTRY, order, (4, 4), 12, &[])
    }

    /// Operations of the last of the writes of `pages`.
    fn last_write(order: ProgramOrder, pages: &[u32]) -> Vec<Operation> {
        let mut bench = bench(order);
        let (last, before) = pages.split_last().expect("a page at least");
        bench.write_all(before);
        bench.write(*last)
    }

    #[test]
    fn a_page_is_written_in_place_once() {
        assert_eq!(last_write(Any, &[0, 1, 2]), [(Program, 2)]);
        assert_eq!(last_write(Any, &[2, 0]), [(Program, 0)]);
        assert_eq!(last_write(Any, &[0, 5]), [(Program, 5)], "the next block, the same offset");
    }

    #[test]
    fn overwriting_it_moves_the_block() {
        let moved = [(Copy, 4), (Program, 5), (Copy, 6), (Erase, 0)];
        assert_eq!(last_write(Any, &[0, 1, 2, 1]), moved);
    }

    #[test]
    fn writing_a_lower_page_moves_the_block_where_pages_must_ascend() {
        assert_eq!(last_write(Ascending, &[2, 0]), [(Program, 4), (Copy, 6), (Erase, 0)]);
    }

    #[test]
    fn gaps_are_padded_where_every_page_must_be_programmed() {
        assert_eq!(last_write(Sequential, &[2]), [(Program, 0), (Program, 1), (Program, 2)]);
    }

    #[test]
    fn a_block_whose_last_page_is_trimmed_is_erased_and_becomes_the_last_free_one() {
        let mut bench = bench(Any);
        bench.write_all(&[0, 1]);
        assert_eq!(bench.trim(0), []);
        assert!(!bench.holds(0));
        assert_eq!((bench.trim(1), bench.trim(1)), (vec![(Erase, 0)], vec![]));
        // Blocks 1, 2, 3 are taken first; moving block 1 takes block 0 again.
        let did = [0, 4, 8, 0].map(|page| bench.write(page));
        let first = [4, 8, 12].map(|page| vec![(Program, page)]);
        assert_eq!((&did[..3], &did[3][..]), (&first[..], &[(Program, 0), (Erase, 1)][..]));
        bench.audit();
    }

    #[test]
    fn a_device_without_a_spare_block_is_rejected() {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 3,
            pages_per_block: 4,
            page_bytes: 4096,
            spare_bytes: 0,
        };
        let built = (ENTRY.build)(&FtlInput {
            settings: &Settings::default(),
            geometry: &Geometry::new(&shape).expect("a valid shape"),
            exported_pages: 12,
            registry: &Registry::default(),
            seed: 1,
            path: "test",
        });
        let Err(problems) = built else { panic!("must be rejected") };
        assert_eq!(problems[0].param, "over_provisioning");
    }
}
