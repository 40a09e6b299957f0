//! Superblock: pages map freely within a few neighbouring logical blocks.
//!
//! Kang, Jo, Kim, Lee, EMSOFT 2006 (reference 10 of flashsim, which takes its 3 % of log space
//! from it). Neighbouring logical blocks form a superblock. Its pages go in the order of writing to
//! the physical blocks it has, of which it may have a few more than it has logical ones (update
//! blocks, shared by all superblocks). Where each page is stands in the spare areas; the
//! controller keeps the maps of the superblocks used last and reads a spare area for another.
//!
//! When update blocks run out, the superblock that took one longest ago gives one back: blocks
//! without valid pages are erased at once, otherwise the block with the fewest moves to others.
//! The depth of the maps in the spare areas and the size of the cache are assumed.
//!
//! Why it never gets stuck: a superblock with more blocks than logical ones holds at least one
//! block's worth of pages that are not valid, and one block is always free to move into.

use super::merge::{self, FreeBlocks, Lists, NOBODY};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, log_map};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

/// Superblock.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "superblock",
        summary: "Maps pages freely within groups of neighbouring blocks.",
        origin: "Kang, Jo, Kim, Lee, EMSOFT 2006; named in flashsim, section 2.3. Unlike there, a \
                 map that is not cached costs one read, whatever its depth; sizes are assumed",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 4] = [
    log_map::LOG_SHARE,
    Param::with(
        "superblock_blocks",
        Kind::Count { min: 1, max: 1024 },
        "8",
        "Logical blocks in a superblock (assumed).",
    ),
    Param::with(
        "update_blocks",
        Kind::Count { min: 1, max: 1024 },
        "8",
        "Physical blocks a superblock may have beyond its logical ones (assumed).",
    ),
    Param::with(
        "cached_maps",
        Kind::Count { min: 1, max: u32::MAX as u64 },
        "64",
        "Superblocks whose page maps the controller keeps in memory (assumed).",
    ),
];

/// Where the pages of one superblock are.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Group {
    /// Its blocks are the first `count` of its row of members.
    count: u32,
    /// The block being filled.
    open: u32,
    /// The page written last of those still there, whose spare area leads to the map.
    last: Ppn,
    /// Whether its map is in memory.
    cached: bool,
}

struct Superblock {
    geometry: Geometry,
    pages_per_group: u32,
    /// Where each logical page is.
    newest: Vec<Ppn>,
    groups: Vec<Group>,
    /// Per superblock a row of `width` blocks.
    members: Vec<u32>,
    width: u32,
    free: FreeBlocks,
    /// Blocks held by superblocks, and how many there may be.
    used: u32,
    used_max: u32,
    /// Blocks that are not worn out.
    usable: u32,
    /// Superblocks with update blocks, the one that took one longest ago first.
    extended: Lists,
    is_extended: Vec<bool>,
    /// Superblocks whose maps are in memory, least recently used first.
    recency: Lists,
    cached: u32,
    cached_max: u32,
}

fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let (geometry, settings) = (*input.geometry, input.settings);
    let log_blocks = log_map::log_blocks(input, 1)?;
    let logical = input.exported_pages.div_ceil(geometry.pages_per_block());
    let blocks = (settings.count("superblock_blocks") as u32).min(logical);
    let update = (settings.count("update_blocks") as u32).min(log_blocks);
    let count = logical.div_ceil(blocks);
    // One more than a superblock may have: while one is moved, the block it moves to comes first.
    let width = blocks + update + 1;
    let none = Group { count: 0, open: NOBODY, last: Ppn::NONE, cached: false };
    Ok(Box::new(Superblock {
        geometry,
        pages_per_group: blocks * geometry.pages_per_block(),
        newest: vec![Ppn::NONE; input.exported_pages as usize],
        groups: vec![none; count as usize],
        members: vec![NOBODY; count as usize * width as usize],
        width,
        free: FreeBlocks::striped(&geometry),
        used: 0,
        used_max: logical + log_blocks,
        usable: geometry.blocks(),
        extended: Lists::new(1, count as usize),
        is_extended: vec![false; count as usize],
        recency: Lists::new(1, count as usize),
        cached: 0,
        cached_max: settings.count("cached_maps").min(u64::from(count)) as u32,
    }))
}

impl Superblock {
    #[inline]
    fn group_of(&self, lpn: Lpn) -> usize {
        (lpn.0 / self.pages_per_group) as usize
    }

    /// Logical blocks of superblock `group`; the last one may have fewer.
    fn logical_blocks(&self, group: usize) -> u32 {
        let first = group as u32 * self.pages_per_group;
        let pages = (self.newest.len() as u32 - first).min(self.pages_per_group);
        pages.div_ceil(self.geometry.pages_per_block())
    }

    fn row(&self, group: usize) -> &[u32] {
        let first = group * self.width as usize;
        &self.members[first..first + self.groups[group].count as usize]
    }

    /// Brings the map of `group` into memory; says what has to be waited for.
    #[inline]
    fn load(&mut self, group: usize, flash: &mut FlashOps) -> After {
        if self.groups[group].cached {
            self.recency.remove(0, group as u32);
            self.recency.push(0, group as u32);
            return After::NOTHING;
        }
        if self.cached == self.cached_max {
            let leaves = self.recency.first(0).expect("a full cache holds something");
            self.recency.remove(0, leaves);
            self.groups[leaves as usize].cached = false;
            self.cached -= 1;
        }
        self.groups[group].cached = true;
        self.recency.push(0, group as u32);
        self.cached += 1;
        let page = self.groups[group].last;
        if page == Ppn::NONE {
            return After::NOTHING; // Nothing is stored, so there is no map.
        }
        flash.read(page, Cause::Mapping, After::NOTHING)
    }

    /// Keeps the list of superblocks with update blocks.
    fn note_extent(&mut self, group: usize, took: bool) {
        let extended = self.groups[group].count > self.logical_blocks(group);
        if self.is_extended[group] && (took || !extended) {
            self.extended.remove(0, group as u32);
            self.is_extended[group] = false;
        }
        if extended && !self.is_extended[group] {
            self.extended.push(0, group as u32);
            self.is_extended[group] = true;
        }
    }

    /// Takes a free block for `group` to fill.
    fn extend(&mut self, group: usize, flash: &FlashOps) -> Result<(), FtlError> {
        let block = self.free.take().ok_or_else(|| self.worn_out(flash))?;
        let Group { count, open, .. } = &mut self.groups[group];
        self.members[group * self.width as usize + *count as usize] = block.0;
        *open = block.0;
        *count += 1;
        self.used += 1;
        self.note_extent(group, true);
        Ok(())
    }

    /// Erases `block` of `group`, in which nothing is needed any more.
    fn release(&mut self, group: usize, block: BlockId, after: After, flash: &mut FlashOps) {
        let at = self.row(group).iter().position(|member| *member == block.0);
        let at = at.expect("a block of the superblock") as u32;
        let Group { count, open, .. } = &mut self.groups[group];
        *count -= 1;
        if *open == block.0 {
            *open = NOBODY;
        }
        let first = group * self.width as usize;
        self.members.swap(first + at as usize, first + *count as usize);
        self.used -= 1;
        self.usable -= u32::from(!self.free.recycle(block, after, flash));
        if self.groups[group].last != Ppn::NONE
            && self.geometry.block_of(self.groups[group].last) == block
        {
            self.groups[group].last = self.last_page_left(group, flash);
        }
        self.note_extent(group, false);
    }

    /// A page of `group` that can lead to its map when the one written last is gone, which happens
    /// when what it held was trimmed.
    #[cold]
    fn last_page_left(&self, group: usize, flash: &FlashOps) -> Ppn {
        let written = |block: &BlockId| flash.array().next_page(*block) > 0;
        let block = self.row(group).iter().rev().map(|block| BlockId(*block)).find(written);
        block.map_or(Ppn::NONE, |block| {
            self.geometry.page(block, flash.array().next_page(block) - 1)
        })
    }

    /// Free pages in the block that `group` fills.
    fn room(&self, group: usize, flash: &FlashOps) -> u32 {
        match self.groups[group].open {
            NOBODY => 0,
            open => self.geometry.pages_per_block() - flash.array().next_page(BlockId(open)),
        }
    }

    #[cold]
    fn worn_out(&self, flash: &FlashOps) -> FtlError {
        let pages_per_block = self.geometry.pages_per_block() as usize;
        merge::worn_out(self.newest.len().div_ceil(pages_per_block), flash)
    }

    /// Makes sure that `group` has a free page.
    #[cold]
    fn make_room(&mut self, group: usize, flash: &mut FlashOps) -> Result<(), FtlError> {
        while self.room(group, flash) == 0 {
            // One block stays free to move into; blocks that wear out are lost to updates.
            let used_max = self.used_max.min(self.usable.saturating_sub(1));
            if self.groups[group].count + 1 >= self.width {
                self.collect(group, flash)?;
            } else if self.used < used_max {
                self.extend(group, flash)?;
            } else {
                let giver = self.extended.first(0).ok_or_else(|| self.worn_out(flash))?;
                self.collect(giver as usize, flash)?;
            }
        }
        Ok(())
    }

    /// Moves the valid pages of the block of `group` that has the fewest, and erases it.
    fn collect(&mut self, group: usize, flash: &mut FlashOps) -> Result<(), FtlError> {
        let open = self.groups[group].open;
        let is_full = self.room(group, flash) == 0;
        // A block being filled is taken only if nothing in it is valid.
        let candidate =
            |block: &&u32| is_full || **block != open || flash.array().valid(BlockId(open)) == 0;
        let fewest = |block: &&u32| flash.array().valid(BlockId(**block));
        let victim = self.row(group).iter().filter(candidate).min_by_key(fewest);
        let victim = BlockId(*victim.ok_or_else(|| self.worn_out(flash))?);
        let valid = flash.array().valid(victim);
        if valid == self.geometry.pages_per_block()
            || (valid > self.room(group, flash) && self.free.is_empty())
        {
            return Err(self.worn_out(flash));
        }
        let (mut offset, mut last) = (0, After::NOTHING);
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            if self.room(group, flash) == 0 {
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

    /// Marks `page` of `group` as no longer needed; a full block without valid pages is erased.
    fn give_up(&mut self, group: usize, page: Ppn, flash: &mut FlashOps) {
        if flash.invalidate(page) == 0 {
            let block = self.geometry.block_of(page);
            if self.groups[group].open != block.0 || self.room(group, flash) == 0 {
                self.release(group, block, After::NOTHING, flash);
            }
        }
    }
}

impl Ftl for Superblock {
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
        if self.room(group, flash) == 0 {
            self.make_room(group, flash)?;
        }
        let page = self.next_page(group, flash);
        flash.host_program(page, lpn, after);
        // Read only now: making room may have moved the old copy.
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], page);
        if old != Ppn::NONE {
            self.give_up(group, old, flash);
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let group = self.group_of(lpn);
        self.load(group, flash);
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], Ppn::NONE);
        if old != Ppn::NONE {
            self.give_up(group, old, flash);
        }
        Ok(())
    }

    fn holds(&self, lpn: Lpn, _flash: &FlashOps) -> bool {
        self.newest[lpn.0 as usize] != Ppn::NONE
    }

    fn mapping_ram_bytes(&self) -> u64 {
        // The blocks of each superblock and its last page; a page map for each one cached.
        let rows = self.members.len() as u64 + self.groups.len() as u64;
        let maps = u64::from(self.cached_max) * u64::from(self.pages_per_group);
        (rows + maps.min(self.newest.len() as u64)) * 4
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.newest, &self.groups, &self.members, &self.free));
        to.put(&(self.used, self.usable, &self.extended, &self.is_extended));
        to.put(&(&self.recency, self.cached));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        type Maps = (Vec<Ppn>, Vec<Group>, Vec<u32>, FreeBlocks);
        let (newest, groups, members, free): Maps = from.take()?;
        let (used, usable, extended, is_extended): (u32, u32, Lists, Vec<bool>) = from.take()?;
        let (recency, cached): (Lists, u32) = from.take()?;
        state::same_length("the page map", newest.len(), self.newest.len())?;
        state::same_length("the list of superblocks", groups.len(), self.groups.len())?;
        state::same_length("the table of blocks", members.len(), self.members.len())?;
        state::same_length("the list of superblocks", is_extended.len(), self.groups.len())?;
        self.extended.same_shape(&extended)?;
        self.recency.same_shape(&recency)?;
        (self.newest, self.groups, self.members, self.free) = (newest, groups, members, free);
        (self.used, self.usable, self.extended) = (used, usable, extended);
        (self.is_extended, self.recency, self.cached) = (is_extended, recency, cached);
        Ok(())
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let array = flash.array();
        let mut books = merge::Books::new(flash);
        for group in 0..self.groups.len() {
            for &block in self.row(group) {
                books.logs(BlockId(block));
            }
            let extended = self.groups[group].count > self.logical_blocks(group);
            if extended != self.is_extended[group] {
                return Err(format!("superblock {group} is in the wrong list"));
            }
        }
        books.close(&self.free)?;
        let used: u32 = self.groups.iter().map(|group| group.count).sum();
        let cached = self.groups.iter().filter(|group| group.cached).count() as u32;
        let usable = self.geometry.blocks() - array.retired_blocks();
        if (used, cached, usable) != (self.used, self.cached, self.usable) {
            return Err(format!("{used} blocks used, {cached} maps cached, {usable} usable"));
        }
        let mut mapped = 0;
        for (lpn, page) in (0..).zip(&self.newest).filter(|(_, page)| **page != Ppn::NONE) {
            let group = self.group_of(Lpn(lpn));
            let block = self.geometry.block_of(*page).0;
            if array.owner(*page) != Lpn(lpn) || !self.row(group).contains(&block) {
                return Err(format!("logical page {lpn} is mapped to a page of another"));
            }
            mapped += 1;
        }
        match mapped == array.valid_pages() {
            true => Ok(()),
            false => Err(format!("{mapped} pages mapped, {} valid", array.valid_pages())),
        }
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
    fn the_superblock_that_took_a_block_first_gives_it_back() {
        let mut bench = filled(2);
        bench.write_all(&[0, 1]);
        // Blocks 0, 1, 4 hold 8 pages: block 0 has two, which fit behind the two in block 4.
        assert_eq!(bench.write(8), [(Copy, 18), (Copy, 19), (Erase, 0), (Program, 20)]);
        bench.audit();
    }

    #[test]
    fn a_superblock_with_all_its_blocks_collects_its_own() {
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
        assert_eq!(bench.read(0), [(Read, 7), (Read, 0)], "by way of the last page written");
        assert_eq!(bench.flash.list()[0].cause, Cause::Mapping);
        assert_eq!(bench.flash.list()[1].after.index(), Some(0));
        assert_eq!(bench.read(1), [(Read, 1)]);
        assert_eq!(bench.write(8), [(Read, 15), (Program, 16)]);
    }

    #[test]
    fn a_map_is_found_when_the_page_written_last_is_gone() {
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
    fn memory_is_that_of_block_lists_and_cached_maps() {
        assert_eq!(filled(1).ftl.mapping_ram_bytes(), (2 * 4 + 2 + 8) * 4);
    }
}
