//! The reference model of placement: the reclaim units of a device and the data in them.

use super::Disagreement;
use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_flash::array::Array;
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::Ftl;
use hybridsim_flash::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use hybridsim_flash::ops::{FlashOp, FlashOps, OpKind};
use std::collections::BTreeMap;

/// Placement as the settings of an FTL ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Reclaim groups.
    pub groups: u8,
    /// Reclaim unit handles of each group.
    pub handles: u8,
    /// Whether copies stay with the data of their handle.
    pub is_persistent: bool,
    /// Whether copies have reclaim units of their own.
    pub separates_copies: bool,
}

impl Rules {
    /// The rules of the FTL `page` with these settings.
    ///
    /// # Panics
    /// Without `placement = "handles"`.
    pub fn of(ftl: &Settings) -> Self {
        let Some(Value::Entry(EntryChoice { name, settings })) = ftl.value("placement") else {
            panic!("no placement is chosen");
        };
        let count = |key: &str| match settings.value(key) {
            Some(Value::Count(count)) => *count as u8,
            _ => panic!("`{name}` places nothing by handle: it has no `{key}`"),
        };
        let persistently = Value::Text("persistently".to_owned());
        Self {
            groups: count("reclaim_groups"),
            handles: count("handles"),
            is_persistent: settings.value("isolation") == Some(&persistently),
            separates_copies: ftl.value("gc_separate") == Some(&Value::Flag(true)),
        }
    }

    /// Values of the part of an identifier of 8 bits that is the handle.
    pub(super) fn handles_max(self) -> u32 {
        let mut groups_max = 1;
        while groups_max < u32::from(self.groups) {
            groups_max *= 2;
        }
        256 / groups_max
    }

    /// The reclaim group and handle that an identifier names.
    fn find(self, identifier: u8) -> Option<(u8, u8)> {
        let [group, handle] = [
            u32::from(identifier) / self.handles_max(),
            u32::from(identifier) % self.handles_max(),
        ];
        let exists = group < u32::from(self.groups) && handle < u32::from(self.handles);
        exists.then_some((group as u8, handle as u8))
    }

    /// The reclaim group and handle of a write: the defaults for an identifier that names none.
    pub(super) fn place(self, identifier: u8) -> (u8, u8) {
        self.find(identifier).unwrap_or((0, 0))
    }

    /// The use of a block that data of `handle` are copied to.
    const fn copies(self, cause: Cause, handle: u8) -> Use {
        let handle = if self.is_persistent { handle } else { 0 };
        match cause {
            Cause::Wear => Use::Wear(handle),
            _ if self.separates_copies => Use::Copies(handle),
            _ => Use::Host(handle),
        }
    }
}

/// The use of an open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Host writes with this handle.
    Host(u8),
    /// Copies of garbage collection and refresh.
    Copies(u8),
    /// Copies of wear levelling.
    Wear(u8),
}

/// A block of the reference model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    /// `None` while it is erased.
    used: Option<Use>,
    /// Pages programmed.
    next: u32,
    /// Valid pages.
    valid: u32,
}

/// Valid data of the reference model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub lpn: u32,
    /// The reclaim group that the host named.
    pub group: u8,
    pub handle: u8,
    /// Number of the program with which the host wrote it.
    pub number: u64,
}

impl Data {
    /// The reclaim group and handle that the host named.
    pub const fn place(self) -> (u8, u8) {
        (self.group, self.handle)
    }
}

/// A host write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub data: Data,
    pub succeeds: bool,
}

/// Flash operations of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Pages of host writes.
    pub host: u64,
    /// Copied pages, by the number of the cause.
    pub copies: BTreeMap<u8, u64>,
    /// Erases, by the number of the cause and block.
    pub erases: BTreeMap<(u8, u32), u64>,
    /// Host writes that opened a block of a handle.
    pub opened: u64,
    /// Pages written to another reclaim group, as theirs was full.
    pub moved_on: u64,
}

impl Counts {
    pub(super) fn copied(&self) -> u64 {
        self.copies.values().sum()
    }

    pub(super) fn erased(&self) -> u64 {
        self.erases.values().sum()
    }
}

/// The reference model of one device.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub rules: Rules,
    pub geometry: Geometry,
    /// By physical page.
    pub pages: Vec<Option<Data>>,
    pub map: BTreeMap<u32, Ppn>,
    pub blocks: Vec<Block>,
    /// Most valid pages of a plane.
    pub limit: u64,
    /// The block last opened for each use in each plane, until it is erased.
    pub open: BTreeMap<(u32, Use), BlockId>,
    pub counts: Counts,
    /// The first disagreement.
    pub wrong: Option<Disagreement>,
}

impl Model {
    pub(super) fn new(rules: Rules, geometry: Geometry, data_pages: u64) -> Self {
        Self {
            rules,
            geometry,
            pages: vec![None; geometry.pages() as usize],
            map: BTreeMap::new(),
            blocks: vec![Block::default(); geometry.blocks() as usize],
            limit: data_pages / u64::from(geometry.planes()),
            open: BTreeMap::new(),
            counts: Counts::default(),
            wrong: None,
        }
    }

    fn block(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.0 as usize]
    }

    /// The reclaim group of a plane: the dies are divided into equal parts.
    fn group_of(&self, plane: u32) -> u8 {
        let die = u32::from(self.geometry.die_of_plane(PlaneId(plane)).0);
        (die * u32::from(self.rules.groups) / self.geometry.dies()) as u8
    }

    fn planes_of(&self, group: u8) -> impl Iterator<Item = u32> + '_ {
        (0..self.geometry.planes()).filter(move |plane| self.group_of(*plane) == group)
    }

    /// Whether a reclaim group holds as much data as it can.
    fn is_full(&self, group: u8) -> bool {
        let valid = |plane| {
            let blocks = (0..).map(BlockId).zip(&self.blocks);
            let of_plane = blocks.filter(|it| self.geometry.plane_of(it.0).0 == plane);
            of_plane.map(|(_, block)| u64::from(block.valid)).sum::<u64>()
        };
        self.planes_of(group).all(|plane| valid(plane) >= self.limit)
    }

    /// Checks that host data for `group` go to `page`: to another group only if it and all between
    /// are full.
    fn check_group(&mut self, page: Ppn, group: u8) -> Result<(), Disagreement> {
        let plane = self.geometry.plane_of(self.geometry.block_of(page)).0;
        let found = self.group_of(plane);
        let mut at = group;
        while at != found {
            if !self.is_full(at) {
                return Err(format!("{page:?} in group {found}, but group {at} is not full"));
            }
            at = (at + 1) % self.rules.groups;
        }
        self.counts.moved_on += u64::from(found != group);
        Ok(())
    }

    pub(super) fn discard(&mut self, lpn: u32) {
        if let Some(page) = self.map.remove(&lpn) {
            self.pages[page.0 as usize] = None;
            self.block(self.geometry.block_of(page)).valid -= 1;
        }
    }

    /// Puts `data` on `page`, whose block has to be open for `used`, and `page` its next page. A
    /// unit switches only when it is full.
    fn put(&mut self, page: Ppn, data: Data, used: Use) -> Result<(), Disagreement> {
        let (block, offset) = (self.geometry.block_of(page), self.geometry.offset_of(page));
        let plane = self.geometry.plane_of(block).0;
        let pages = self.geometry.pages_per_block();
        let open = self.open.get(&(plane, used)).copied();
        let Block { used: before, next, .. } = *self.block(block);
        match before {
            None => {
                if let Some(open) = open
                    && self.block(open).next < pages
                {
                    let next = self.block(open).next;
                    return Err(format!("{used:?} leaves {open:?} at {next} for {block:?}"));
                }
                self.open.insert((plane, used), block);
                self.counts.opened += u64::from(matches!(used, Use::Host(_)));
            }
            Some(before) if before != used => {
                return Err(format!("{used:?} writes {block:?} of {before:?}"));
            }
            Some(_) if open != Some(block) => {
                return Err(format!("{used:?} writes {block:?}, but {open:?} is open"));
            }
            Some(_) => {}
        }
        if offset != next {
            return Err(format!("page {offset} of {block:?} comes after {next} pages"));
        }
        let it = self.block(block);
        (it.used, it.next, it.valid) = (Some(used), next + 1, it.valid + 1);
        self.pages[page.0 as usize] = Some(data);
        self.map.insert(data.lpn, page);
        Ok(())
    }

    /// Follows an operation during a call that makes a write, or none.
    fn follow(&mut self, op: &FlashOp, write: Option<Write>) -> Result<(), Disagreement> {
        match op.kind {
            OpKind::Read => match self.pages[op.page as usize] {
                Some(_) => Ok(()),
                None => Err(format!("page {} is read without data", op.page)),
            },
            OpKind::Program => {
                let write = write.ok_or("a page is programmed without a write")?;
                let Write { data, .. } = write;
                self.counts.host += 1;
                let data = Data { number: self.counts.host, ..data };
                self.check_group(Ppn(op.page), data.group)?;
                self.discard(data.lpn);
                self.put(Ppn(op.page), data, Use::Host(data.handle))
            }
            OpKind::Copy => {
                let data = self.pages[op.from as usize].ok_or("no data are copied")?;
                *self.counts.copies.entry(op.cause as u8).or_default() += 1;
                let [from, to] = [op.from, op.page].map(|it| self.geometry.block_of(Ppn(it)));
                let [from, to] = [from, to].map(|it| self.geometry.plane_of(it));
                if from != to {
                    return Err(format!("data are copied from {from:?} to {to:?}"));
                }
                self.discard(data.lpn);
                self.put(Ppn(op.page), data, self.rules.copies(op.cause, data.handle))
            }
            OpKind::Erase => {
                let block = BlockId(op.page);
                *self.counts.erases.entry((op.cause as u8, op.page)).or_default() += 1;
                let Block { valid, next, .. } = *self.block(block);
                if valid > 0 || next < self.geometry.pages_per_block() {
                    return Err(format!("{block:?} is erased with {valid} pages, at {next}"));
                }
                self.open.retain(|_, open| *open != block);
                *self.block(block) = Block::default();
                Ok(())
            }
        }
    }

    /// Follows a call, perhaps a write, which recorded `ops`.
    pub(super) fn follow_all(
        &mut self,
        write: Option<Write>,
        ops: &[FlashOp],
    ) -> Result<(), Disagreement> {
        let before = self.counts.host;
        ops.iter().try_for_each(|op| self.follow(op, write))?;
        let wanted = u64::from(write.is_some_and(|write| write.succeeds));
        match self.counts.host - before {
            programs if programs == wanted => Ok(()),
            programs => Err(format!("{write:?} programs {programs} pages")),
        }
    }

    /// Pages that fit into the open unit of an identifier: a full block gives way to an empty one.
    pub(super) fn left(&self, identifier: u8) -> Option<u64> {
        let (group, handle) = self.rules.find(identifier)?;
        let pages = self.geometry.pages_per_block();
        let left = |plane| match self.open.get(&(plane, Use::Host(handle))) {
            Some(open) if self.blocks[open.0 as usize].next < pages => {
                pages - self.blocks[open.0 as usize].next
            }
            _ => pages,
        };
        Some(self.planes_of(group).map(|plane| u64::from(left(plane))).sum())
    }

    /// The data of a logical page.
    pub(super) fn data(&self, lpn: u64) -> Option<Data> {
        self.map.get(&(lpn as u32)).and_then(|page| self.pages[page.0 as usize])
    }

    /// Compares what the FTL says of itself, and the array.
    pub(super) fn compare(
        &self,
        ftl: &dyn Ftl,
        lpn: Option<Lpn>,
        flash: &FlashOps,
    ) -> Result<(), String> {
        for handle in 0..=u8::MAX {
            let (left, wanted) = (ftl.unit_left(handle), self.left(handle));
            if left != wanted {
                return Err(format!("{left:?} pages left for handle {handle}, not {wanted:?}"));
            }
        }
        let Some(lpn) = lpn else { return Ok(()) };
        let (found, wanted) = (ftl.lookup(lpn, flash), self.map.get(&lpn.0));
        if found != wanted.copied().unwrap_or(Ppn::NONE) {
            return Err(format!("{lpn:?} is on {found:?}, not on {wanted:?}"));
        }
        Ok(())
    }

    /// Compares the state of all pages with an array.
    pub(super) fn compare_array(&self, array: &Array) -> Result<(), Disagreement> {
        for (block, it) in (0..).map(BlockId).zip(&self.blocks) {
            let found = (array.valid(block), array.next_page(block));
            if found != (it.valid, it.next) {
                return Err(format!("{block:?} has {found:?} pages, not {it:?}"));
            }
        }
        let wrong = self.map.iter().find(|(lpn, page)| array.owner(**page) != Lpn(**lpn));
        wrong.map_or(Ok(()), |it| Err(format!("another page has the data of {it:?}")))
    }
}
