//! The block-mapped translation layer: one logical block, one physical block, pages in place.
//!
//! The oldest layer there is (SmartMedia; konanki, chapter 2; flashsim, section 3): the map has
//! one entry per block, and a page keeps its offset. A page can be written once in place; writing
//! it again moves the whole block, so random writes cost a block of copies each.

use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::array::{PageState, ProgramOrder};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use std::collections::VecDeque;

/// The block-mapped translation layer.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "block",
        summary: "Maps whole blocks; a page written again moves its block.",
        origin: "flashsim, section 3 (block-level mapping); konanki, chapter 2 (SmartMedia). \
                 Beyond that, a block whose last page is trimmed is erased at once",
        params: &[],
    },
    build,
};

struct BlockMap {
    geometry: Geometry,
    /// The physical block of each logical one.
    map: Vec<Option<BlockId>>,
    /// First in, first out, which spreads erases.
    free: VecDeque<BlockId>,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let geometry = *input.geometry;
    let logical = input.exported_pages.div_ceil(geometry.pages_per_block());
    if logical >= geometry.blocks() {
        let message = format!(
            "{logical} logical blocks need at least one physical block more to be moved into; \
             there are {}",
            geometry.blocks()
        );
        return Err(vec![Problem::new("over_provisioning", message)]);
    }
    // Neighbours go to different planes, so that large requests use several dies.
    let row =
        |at: u32| (0..geometry.planes()).map(move |plane| plane * geometry.blocks_per_plane() + at);
    let free = (0..geometry.blocks_per_plane()).flat_map(row).map(BlockId).collect();
    Ok(Box::new(BlockMap { geometry, map: vec![None; logical as usize], free }))
}

impl BlockMap {
    /// Logical block and offset of `lpn`.
    fn split(&self, lpn: Lpn) -> (usize, u32) {
        let pages = self.geometry.pages_per_block();
        ((lpn.0 / pages) as usize, lpn.0 % pages)
    }

    /// Where `lpn` is, if it holds data.
    fn find(&self, lpn: Lpn, flash: &FlashOps) -> Option<Ppn> {
        let (logical, offset) = self.split(lpn);
        let page = self.geometry.page(self.map[logical]?, offset);
        (flash.array().state(page) == PageState::Valid).then_some(page)
    }

    fn take_free(&mut self, flash: &FlashOps) -> Result<BlockId, FtlError> {
        self.free.pop_front().ok_or_else(|| {
            let retired = flash.array().retired_blocks();
            FtlError::WornOut(format!("{retired} blocks are retired and none is left to move into"))
        })
    }

    /// Programs what lies before `offset`, where the chip does not let pages be left out.
    fn pad(&self, block: BlockId, offset: u32, logical: usize, flash: &mut FlashOps) {
        if flash.array().order() != ProgramOrder::Sequential {
            return;
        }
        for gap in flash.array().next_page(block)..offset {
            let page = self.geometry.page(block, gap);
            let owner = Lpn(logical as u32 * self.geometry.pages_per_block() + gap);
            flash.program(page, owner, Cause::Merge, After::NOTHING);
            flash.invalidate(page);
        }
    }

    /// Moves the block to a fresh one, with the host's page at `offset` replaced.
    fn move_block(&mut self, lpn: Lpn, old: BlockId, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.split(lpn);
        let new = self.take_free(flash)?;
        let mut last = After::NOTHING;
        for at in 0..self.geometry.pages_per_block() {
            let (from, to) = (self.geometry.page(old, at), self.geometry.page(new, at));
            let needed = flash.array().state(from) == PageState::Valid;
            if at == offset {
                self.pad(new, at, logical, flash);
                flash.host_program(to, lpn, After::NOTHING);
                if needed {
                    flash.invalidate(from);
                }
            } else if needed {
                self.pad(new, at, logical, flash);
                last = flash.copy(from, to, Cause::Merge, After::NOTHING);
            }
        }
        self.map[logical] = Some(new);
        self.recycle(old, last, flash);
        Ok(())
    }

    fn recycle(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        if flash.erase(block, Cause::Merge, after) {
            self.free.push_back(block);
        }
    }
}

impl Ftl for BlockMap {
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        if let Some(page) = self.find(lpn, flash) {
            flash.host_read(page, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.split(lpn);
        let block = match self.map[logical] {
            Some(block) => block,
            None => {
                let block = self.take_free(flash)?;
                self.map[logical] = Some(block);
                block
            }
        };
        let page = self.geometry.page(block, offset);
        let in_order =
            flash.array().order() == ProgramOrder::Any || offset >= flash.array().next_page(block);
        if flash.array().state(page) != PageState::Free || !in_order {
            return self.move_block(lpn, block, flash);
        }
        self.pad(block, offset, logical, flash);
        flash.host_program(page, lpn, After::NOTHING);
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let Some(page) = self.find(lpn, flash) else { return Ok(()) };
        let (block, logical) = (self.geometry.block_of(page), self.split(lpn).0);
        if flash.invalidate(page) == 0 {
            self.map[logical] = None;
            self.recycle(block, After::NOTHING, flash);
        }
        Ok(())
    }

    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        self.find(lpn, flash).is_some()
    }

    fn mapping_ram_bytes(&self) -> u64 {
        self.map.len() as u64 * 4
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.map, &self.free));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (map, free): (Vec<Option<BlockId>>, VecDeque<BlockId>) = from.take()?;
        state::same_length("the block map", map.len(), self.map.len())?;
        (self.map, self.free) = (map, free);
        Ok(())
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let array = flash.array();
        let mut uses = vec![0u32; self.geometry.blocks() as usize];
        for (logical, block) in self.map.iter().enumerate() {
            let Some(block) = *block else { continue };
            uses[block.0 as usize] += 1;
            for offset in 0..self.geometry.pages_per_block() {
                let page = self.geometry.page(block, offset);
                let owner = Lpn(logical as u32 * self.geometry.pages_per_block() + offset);
                if array.state(page) == PageState::Valid && array.owner(page) != owner {
                    return Err(format!("{page:?} is {owner:?}, owned by {:?}", array.owner(page)));
                }
            }
        }
        for block in &self.free {
            uses[block.0 as usize] += 1;
            if array.next_page(*block) != 0 {
                return Err(format!("{block:?} is listed as free, but written"));
            }
        }
        // Each sound block is mapped or free, never both and never lost.
        match (0..)
            .map(BlockId)
            .zip(&uses)
            .find(|(block, uses)| **uses != u32::from(!array.is_retired(*block)))
        {
            Some((block, uses)) => Err(format!("{block:?} is mapped or free {uses} times")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::geometry::Shape;
    use crate::ops::OpKind;
    use hybridsim_config::param::Settings;
    use hybridsim_config::registry::Registry;

    fn geometry(blocks_per_plane: u64) -> Geometry {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane,
            pages_per_block: 4,
            page_bytes: 4096,
            spare_bytes: 0,
        };
        Geometry::new(&shape).expect("a small shape")
    }

    /// The layer with three blocks' worth of pages offered.
    fn layer(geometry: &Geometry) -> BuiltFtl {
        (ENTRY.build)(&FtlInput {
            settings: &Settings::default(),
            geometry,
            exported_pages: 12,
            registry: &Registry::default(),
            seed: 1,
            path: "test",
        })
    }

    /// Writes `pages` in order to four blocks of four pages; says what the last write did.
    fn last_write(order: ProgramOrder, pages: &[u32]) -> Vec<(OpKind, u32)> {
        let geometry = geometry(4);
        let mut flash = FlashOps::new(Array::new(geometry, order, 100));
        let mut ftl = layer(&geometry).unwrap_or_else(|problems| panic!("{problems:?}"));
        for &page in pages {
            flash.clear();
            ftl.write(Lpn(page), Hint { request_pages: 1 }, &mut flash).expect("there is room");
        }
        flash.list().iter().map(|op| (op.kind, op.page)).collect()
    }

    use OpKind::{Copy, Erase, Program};
    use ProgramOrder::{Any, Ascending, Sequential};

    #[test]
    fn a_page_is_written_in_place_once() {
        assert_eq!(last_write(Any, &[0, 1, 2]), [(Program, 2)]);
        assert_eq!(last_write(Any, &[2, 0]), [(Program, 0)]);
        assert_eq!(last_write(Any, &[0, 5]), [(Program, 5)], "the next block, the same offset");
    }

    #[test]
    fn writing_it_again_moves_the_block() {
        let moved = [(Copy, 4), (Program, 5), (Copy, 6), (Erase, 0)];
        assert_eq!(last_write(Any, &[0, 1, 2, 1]), moved);
    }

    #[test]
    fn going_back_moves_the_block_where_the_chip_wants_ascending_pages() {
        assert_eq!(last_write(Ascending, &[2, 0]), [(Program, 4), (Copy, 6), (Erase, 0)]);
    }

    #[test]
    fn gaps_are_filled_where_the_chip_wants_every_page() {
        assert_eq!(last_write(Sequential, &[2]), [(Program, 0), (Program, 1), (Program, 2)]);
    }

    #[test]
    fn a_block_whose_last_page_is_trimmed_is_erased_and_comes_last_in_turn() {
        let geometry = geometry(4);
        let mut flash = FlashOps::new(Array::new(geometry, Any, 100));
        let mut ftl = layer(&geometry).unwrap_or_else(|problems| panic!("{problems:?}"));
        let hint = Hint { request_pages: 1 };
        for page in [0, 1] {
            ftl.write(Lpn(page), hint, &mut flash).expect("there is room");
        }
        flash.clear();
        ftl.trim(Lpn(0), &mut flash).expect("nothing to write");
        assert!(flash.list().is_empty() && !ftl.holds(Lpn(0), &flash));
        ftl.trim(Lpn(1), &mut flash).expect("nothing to write");
        ftl.trim(Lpn(1), &mut flash).expect("trimming twice changes nothing");
        for page in [0, 4, 8, 0] {
            ftl.write(Lpn(page), hint, &mut flash).expect("there is room");
        }
        let did: Vec<_> = flash.list().iter().map(|op| (op.kind, op.page)).collect();
        // Blocks 1, 2, 3 are taken first; moving block 1 finds block 0 again.
        let moved = [(Program, 0), (Erase, 1)];
        assert_eq!(did[..1], [(Erase, 0)]);
        assert_eq!(did[1..4], [(Program, 4), (Program, 8), (Program, 12)]);
        assert_eq!(did[4..], moved);
        ftl.audit(&flash).expect("sound books");
    }

    #[test]
    fn without_a_block_to_move_into_it_is_refused() {
        let Err(problems) = layer(&geometry(3)) else { panic!("must be refused") };
        assert_eq!(problems[0].param, "over_provisioning");
    }
}
