//! Superblock: page mapping within groups of neighbouring logical blocks.
//!
//! Kang, Jo, Kim, Lee, EMSOFT 2006 (reference 10 of flashsim, which takes its 3 % of log space
//! from it). Neighbouring logical blocks form a superblock. Its pages are appended to its physical
//! blocks, of which it may have a few more than logical ones (update blocks, shared by all
//! superblocks). The page map is in the spare areas; the controller caches the maps of the most
//! recently used superblocks and reads a spare area for any other.
//!
//! When update blocks run out, the superblock that took one longest ago returns one: blocks without
//! valid pages are erased at once, otherwise the valid pages of the block with the fewest move to
//! others. The depth of the maps in the spare areas and the size of the cache are assumed.
//!
//! Why it cannot deadlock: a superblock with more blocks than logical ones holds at least one
//! block's worth of pages that are not valid, and one block is always free to copy to.

use super::merge::{self, BlockAudit, NONE};
use super::{
    BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH, log_map,
};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::lists::{Lists, LruList};
use crate::ops::{After, FlashOps};
use crate::wear::FreeBlocks;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;

use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "superblock",
        summary: "Maps pages freely within groups of neighbouring blocks.",
        origin: "Kang, Jo, Kim, Lee, EMSOFT 2006; named in flashsim, section 2.3. Unlike there, a \
                 map that is not cached costs one read, whatever its depth; sizes are assumed",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

hybridsim_config::params! {
    struct Parameters includes { log: log_map::LogShare } {
        superblock_blocks: u32 = Kind::Count { min: 1, max: 1024 }, default "8",
            "Logical blocks in a superblock (assumed).";
        update_blocks: u32 = Kind::Count { min: 1, max: 1024 }, default "8",
            "Most physical blocks of a superblock beyond its logical ones (assumed).";
        cached_maps: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "64",
            "Superblocks whose page maps the controller caches (assumed).";
    }
}

/// A superblock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Group {
    /// Blocks: the first ones of the row of members.
    count: u32,
    /// The block being filled.
    open: u32,
    /// The most recently written page that is not erased, whose spare area holds the map.
    last: Ppn,
}

#[derive(Serialize, Deserialize)]
struct Superblock {
    geometry: Geometry,
    pages_per_group: u32,
    /// The physical page of each logical page.
    newest: Vec<Ppn>,
    groups: Vec<Group>,
    /// A row of `width` blocks for each superblock.
    members: Vec<u32>,
    width: u32,
    free: FreeBlocks,
    /// Blocks of all superblocks.
    used: u32,
    used_max: u32,
    /// Blocks that are not worn out.
    usable: u32,
    /// Superblocks with update blocks, the one that took one longest ago first.
    extended: Lists,
    cached_maps: LruList,
    cached_max: u32,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let (geometry, params) = (*input.geometry, Parameters::from_settings(input.settings));
    let log_blocks = log_map::log_blocks(input, &params.log, 1)?;
    let logical = input.logical_blocks();
    let blocks = params.superblock_blocks.min(logical);
    let update = params.update_blocks.min(log_blocks);
    let count = logical.div_ceil(blocks);
    // One more than the limit: during a collection the new block is added before the victim leaves.
    let width = blocks + update + 1;
    let none = Group { count: 0, open: NONE, last: Ppn::NONE };
    Ok(Box::new(Superblock {
        geometry,
        pages_per_group: blocks * geometry.pages_per_block(),
        newest: vec![Ppn::NONE; input.exported_pages as usize],
        groups: vec![none; count as usize],
        members: vec![NONE; count as usize * width as usize],
        width,
        free: FreeBlocks::striped(&geometry),
        used: 0,
        used_max: logical + log_blocks,
        usable: geometry.blocks(),
        extended: Lists::new(1, count as usize),
        cached_maps: LruList::new(count),
        cached_max: params.cached_maps.min(count),
    }))
}

impl Superblock {
    #[inline]
    fn group_of(&self, lpn: Lpn) -> usize {
        (lpn.0 / self.pages_per_group) as usize
    }

    /// Logical blocks of superblock `group`; the last superblock may have fewer.
    fn logical_blocks(&self, group: usize) -> u32 {
        let first = group as u32 * self.pages_per_group;
        let pages = (self.newest.len() as u32 - first).min(self.pages_per_group);
        pages.div_ceil(self.geometry.pages_per_block())
    }

    fn row(&self, group: usize) -> &[u32] {
        let first = group * self.width as usize;
        &self.members[first..first + self.groups[group].count as usize]
    }

    /// Caches the map of `group`; returns the read that the access depends on.
    #[inline]
    fn load(&mut self, group: usize, flash: &mut FlashOps) -> After {
        let hit = self.cached_maps.contains(group as u32);
        self.cached_maps.touch(group as u32);
        if hit {
            return After::NOTHING;
        }
        if self.cached_maps.len() > self.cached_max
            && let Some(victim) = self.cached_maps.least_recent()
        {
            self.cached_maps.remove(victim);
        }
        let page = self.groups[group].last;
        if page == Ppn::NONE {
            return After::NOTHING; // Nothing is stored, so there is no map.
        }
        flash.read(page, Cause::Mapping, After::NOTHING)
    }

    fn is_extended(&self, group: usize) -> bool {
        self.groups[group].count > self.logical_blocks(group)
    }

    fn extend(&mut self, group: usize, flash: &FlashOps) -> Result<(), FtlError> {
        let block = self.free.take(false).ok_or_else(|| self.worn_out(flash))?;
        let Group { count, open, .. } = &mut self.groups[group];
        self.members[group * self.width as usize + *count as usize] = block.0;
        *open = block.0;
        *count += 1;
        self.used += 1;
        if self.is_extended(group) {
            self.extended.move_to(0, group as u32);
        }
        Ok(())
    }

    /// Erases `block` of `group`, which has no valid pages.
    fn release(&mut self, group: usize, block: BlockId, after: After, flash: &mut FlashOps) {
        let at = self.row(group).iter().position(|member| *member == block.0);
        let at = at.expect("a block of the superblock") as u32;
        let Group { count, open, .. } = &mut self.groups[group];
        *count -= 1;
        if *open == block.0 {
            *open = NONE;
        }
        let first = group * self.width as usize;
        self.members.swap(first + at as usize, first + *count as usize);
        self.used -= 1;
        self.usable -= u32::from(!merge::recycle(&mut self.free, block, after, flash));
        if self.groups[group].last != Ppn::NONE
            && self.geometry.block_of(self.groups[group].last) == block
        {
            self.groups[group].last = self.last_page_left(group, flash);
        }
        if !self.is_extended(group) {
            self.extended.remove(group as u32);
        }
    }

    /// The page of `group` that holds its map when the page written last is erased, which happens
    /// when its data were trimmed.
    #[cold]
    fn last_page_left(&self, group: usize, flash: &FlashOps) -> Ppn {
        let written = |block: &BlockId| flash.array().next_page(*block) > 0;
        let block = self.row(group).iter().rev().map(|block| BlockId(*block)).find(written);
        block.map_or(Ppn::NONE, |block| {
            self.geometry.page(block, flash.array().next_page(block) - 1)
        })
    }

    /// Free pages in the open block of `group`.
    fn free_pages(&self, group: usize, flash: &FlashOps) -> u32 {
        match self.groups[group].open {
            NONE => 0,
            open => self.geometry.pages_per_block() - flash.array().next_page(BlockId(open)),
        }
    }

    #[cold]
    fn worn_out(&self, flash: &FlashOps) -> FtlError {
        let pages_per_block = self.geometry.pages_per_block() as usize;
        merge::worn_out(self.newest.len().div_ceil(pages_per_block), flash)
    }

    /// Ensures that `group` has a free page.
    #[cold]
    fn make_room(&mut self, group: usize, flash: &mut FlashOps) -> Result<(), FtlError> {
        while self.free_pages(group, flash) == 0 {
            // One block stays free to copy to; worn-out blocks reduce the update blocks.
            let used_max = self.used_max.min(self.usable.saturating_sub(1));
            if self.groups[group].count + 1 >= self.width {
                self.collect(group, flash)?;
            } else if self.used < used_max {
                self.extend(group, flash)?;
            } else {
                let victim = self.extended.first(0).ok_or_else(|| self.worn_out(flash))?;
                self.collect(victim as usize, flash)?;
            }
        }
        Ok(())
    }

    /// Collects the block of `group` with the fewest valid pages.
    fn collect(&mut self, group: usize, flash: &mut FlashOps) -> Result<(), FtlError> {
        let open = self.groups[group].open;
        let is_full = self.free_pages(group, flash) == 0;
        // The open block is a candidate only without valid pages.
        let candidate =
            |block: &&u32| is_full || **block != open || flash.array().valid(BlockId(open)) == 0;
        let fewest = |block: &&u32| flash.array().valid(BlockId(**block));
        let victim = self.row(group).iter().filter(candidate).min_by_key(fewest);
        let victim = BlockId(*victim.ok_or_else(|| self.worn_out(flash))?);
        if flash.array().valid(victim) == self.geometry.pages_per_block() {
            return Err(self.worn_out(flash));
        }
        self.empty(group, victim, flash)
    }

    /// Moves the valid pages of `victim`, a block of `group`, to its others or a new one, and
    /// erases it.
    fn empty(
        &mut self,
        group: usize,
        victim: BlockId,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        if flash.array().valid(victim) > self.free_pages(group, flash) && self.free.is_empty() {
            return Err(self.worn_out(flash));
        }
        let (mut offset, mut last) = (0, After::NOTHING);
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            if self.free_pages(group, flash) == 0 {
                self.extend(group, flash)?;
            }
            let from = self.geometry.page(victim, at);
            let lpn = flash.array().owner(from);
            let to = self.next_page(group, flash);
            last = flash.copy(from, to, Cause::Merge, After::NOTHING);
            self.newest[lpn.0 as usize] = to;
        }
        self.release(group, victim, last, flash);
        Ok(())
    }

    /// Takes the next free page of `group`, which has one.
    #[inline]
    fn next_page(&mut self, group: usize, flash: &FlashOps) -> Ppn {
        let open = BlockId(self.groups[group].open);
        let page = self.geometry.page(open, flash.array().next_page(open));
        self.groups[group].last = page;
        page
    }

    /// Invalidates `page` of `group`; a full block without valid pages is erased.
    fn invalidate(&mut self, group: usize, page: Ppn, flash: &mut FlashOps) {
        if flash.invalidate(page) == 0 {
            let block = self.geometry.block_of(page);
            if self.groups[group].open != block.0 || self.free_pages(group, flash) == 0 {
                self.release(group, block, After::NOTHING, flash);
            }
        }
    }
}

impl Ftl for Superblock {
    fn lookup(&self, lpn: Lpn, _flash: &FlashOps) -> Ppn {
        self.newest[lpn.0 as usize]
    }

    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let after = self.load(self.group_of(lpn), flash);
        let page = self.newest[lpn.0 as usize];
        if page != Ppn::NONE {
            flash.host_read(page, after);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let group = self.group_of(lpn);
        let after = self.load(group, flash);
        if self.free_pages(group, flash) == 0 {
            self.make_room(group, flash)?;
        }
        let page = self.next_page(group, flash);
        flash.host_program(page, lpn, after);
        // Looked up only now: a collection may have moved the old copy.
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], page);
        if old != Ppn::NONE {
            self.invalidate(group, old, flash);
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let group = self.group_of(lpn);
        self.load(group, flash);
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], Ppn::NONE);
        if old != Ppn::NONE {
            self.invalidate(group, old, flash);
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        // The blocks of each superblock and its last page; the cached page maps.
        let rows = self.members.len() as u64 + self.groups.len() as u64;
        let maps = u64::from(self.cached_max) * u64::from(self.pages_per_group);
        let mapping_ram_bytes = (rows + maps.min(self.newest.len() as u64)) * 4;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let array = flash.array();
        let mut blocks = BlockAudit::new(flash);
        for group in 0..self.groups.len() {
            for &block in self.row(group) {
                blocks.log(BlockId(block));
            }
            if self.is_extended(group) != self.extended.list_of(group as u32).is_some() {
                return Err(format!("superblock {group} is in the wrong list"));
            }
        }
        blocks.finish(self.free.iter())?;
        let used: u32 = self.groups.iter().map(|group| group.count).sum();
        let usable = self.geometry.blocks() - array.retired_blocks();
        if (used, usable) != (self.used, self.usable) {
            return Err(format!("{used} blocks used, {usable} usable"));
        }
        let mut mapped = 0;
        for (lpn, page) in (0..).zip(&self.newest).filter(|(_, page)| **page != Ppn::NONE) {
            let group = self.group_of(Lpn(lpn));
            let block = self.geometry.block_of(*page).0;
            if array.owner(*page) != Lpn(lpn) || !self.row(group).contains(&block) {
                return Err(format!(
                    "logical page {lpn} is mapped to a page of another logical page"
                ));
            }
            mapped += 1;
        }
        match mapped == array.valid_pages() {
            true => Ok(()),
            false => Err(format!("{mapped} pages mapped, {} valid", array.valid_pages())),
        }
    }
}

impl Maintenance for Superblock {
    /// Moves the pages of `block` within its superblock. Returns false for the block being filled.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let Some(first) = flash.array().next_valid(block, 0) else { return false };
        let group = self.group_of(flash.array().owner(self.geometry.page(block, first)));
        let open = self.groups[group].open == block.0 && self.free_pages(group, flash) > 0;
        !open && self.empty(group, block, flash).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, copies, erases};
    use super::*;
    use crate::array::ProgramOrder;
    use crate::ops::OpKind::{Copy, Erase, Program, Read};
    use hybridsim_config::param::Value;

    /// Two superblocks of two logical blocks of four pages, one update block for both, one spare.
    /// Everything is written once.
    fn filled(cached: u64) -> Bench {
        let params = [
            ("superblock_blocks", Value::Count(2)),
            ("update_blocks", Value::Count(1)),
            ("cached_maps", Value::Count(cached)),
        ];
        let mut bench = Bench::new(&ENTRY, ProgramOrder::Sequential, (6, 4), 16, &params);
        bench.write_all(&(0..16).collect::<Vec<_>>());
        bench
    }

    #[test]
    fn pages_go_anywhere_in_the_superblock() {
        let mut bench = filled(2);
        assert_eq!(bench.write(5), [(Program, 16)]);
        assert_eq!(bench.write(0), [(Program, 17)]);
        assert_eq!(bench.read(5), [(Read, 16)]);
        bench.audit();
    }

    #[test]
    fn a_block_without_valid_pages_is_erased_at_once() {
        let mut bench = filled(2);
        bench.write_all(&[0, 1, 2]);
        assert_eq!(bench.write(3), [(Program, 19), (Erase, 0)]);
        bench.audit();
    }

    #[test]
    fn the_superblock_that_took_an_update_block_first_returns_it() {
        let mut bench = filled(2);
        bench.write_all(&[0, 1]);
        // Blocks 0, 1, 4 hold 8 pages: block 0 has two, which fit behind the two in block 4.
        assert_eq!(bench.write(8), [(Copy, 18), (Copy, 19), (Erase, 0), (Program, 20)]);
        bench.audit();
    }

    #[test]
    fn a_superblock_with_all_its_blocks_is_collected_itself() {
        let mut bench = filled(2);
        bench.write_all(&[0, 4, 1, 5]);
        let did = bench.write(2);
        assert_eq!((copies(&did), erases(&did)), (2, 1));
        bench.audit();
    }

    #[test]
    fn a_map_that_is_not_cached_is_read_from_a_spare_area() {
        let mut bench = filled(1);
        assert_eq!(bench.read(15), [(Read, 15)]);
        assert_eq!(bench.read(0), [(Read, 7), (Read, 0)], "through the page written last");
        assert_eq!(bench.flash.list()[0].cause, Cause::Mapping);
        assert_eq!(bench.flash.list()[1].after.index(), Some(0));
        assert_eq!(bench.read(1), [(Read, 1)]);
        assert_eq!(bench.write(8), [(Read, 15), (Program, 16)]);
    }

    #[test]
    fn the_map_is_found_when_the_page_written_last_is_erased() {
        let mut bench = filled(1);
        bench.write_all(&[0, 1, 2, 3]);
        (0..4).for_each(|page| drop(bench.trim(page)));
        bench.read(8);
        assert_eq!(bench.read(4), [(Read, 7), (Read, 4)], "block 1 is all that is left");
        (4..8).for_each(|page| drop(bench.trim(page)));
        bench.read(8);
        assert_eq!(bench.read(4), [], "neither data nor a map");
        assert_eq!(bench.write(4).len(), 1);
        bench.audit();
    }

    #[test]
    fn memory_holds_block_lists_and_cached_maps() {
        assert_eq!(filled(1).ftl.properties().mapping_ram_bytes, (2 * 4 + 2 + 8) * 4);
    }
}
