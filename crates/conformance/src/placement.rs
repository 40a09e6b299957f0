//! The test suite of placement semantics (NVM Express Base Specification 2.1, Flexible Data
//! Placement), for SSDs that place writes by handle and for components above them.
//!
//! [`WATCHED`] is the FTL `page` within an observer: a reference model follows every flash
//! operation and says in which reclaim unit it has to be. A [`PlacementRig`] drives devices with
//! that FTL by random requests, across power failures and saved states, and compares data,
//! statistics and events too.

use hybridsim_config::param::{EntryChoice, Settings, Value};
use hybridsim_engine::{
    Arrival, ComponentTree, Event, EventRecord, Flags, Lba, Loader, Machine, Op, Request,
    SECTOR_BYTES, Saver, SimDuration, SimTime, StateError, Stream,
};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::Array;
use hybridsim_flash::event::{Cause, FlashEvent};
use hybridsim_flash::ftl::{
    BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, WriteRun, page,
};
use hybridsim_flash::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use hybridsim_flash::ops::{FlashOp, FlashOps, OpKind};
use hybridsim_host::scheduler::fcfs::Fcfs;
use hybridsim_host::{Answer, Answered, Host, HostOptions, QueuePair};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A disagreement with the model.
pub type Disagreement = String;

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
    fn handles_max(self) -> u32 {
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
    fn place(self, identifier: u8) -> (u8, u8) {
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

/// What a block is open for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Host writes with this handle.
    Host(u8),
    /// Copies of garbage collection and refresh.
    Copies(u8),
    /// Copies of wear levelling.
    Wear(u8),
}

/// A block of the reference model.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// `None` while it is erased.
    used: Option<Use>,
    /// Pages programmed.
    next: u32,
    /// Valid pages.
    valid: u32,
}

/// Valid data of the reference model.
#[derive(Clone, Copy, Debug)]
struct Data {
    lpn: u32,
    handle: u8,
}

/// A host write.
#[derive(Clone, Copy, Debug)]
struct Write {
    data: Data,
    group: u8,
    succeeds: bool,
}

/// Flash operations of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Pages of host writes.
    host: u64,
    /// Copied pages, by the number of the cause.
    copies: BTreeMap<u8, u64>,
    /// Erases, by the number of the cause and block.
    erases: BTreeMap<(u8, u32), u64>,
    /// Host writes that opened a block of a handle.
    opened: u64,
    /// Pages written to another reclaim group, as theirs was full.
    moved_on: u64,
}

impl Counts {
    fn copied(&self) -> u64 {
        self.copies.values().sum()
    }

    fn erased(&self) -> u64 {
        self.erases.values().sum()
    }
}

/// The reference model of one device.
#[derive(Clone, Debug)]
struct Model {
    rules: Rules,
    geometry: Geometry,
    /// By physical page.
    pages: Vec<Option<Data>>,
    map: BTreeMap<u32, Ppn>,
    blocks: Vec<Block>,
    /// Most valid pages of a plane.
    limit: u64,
    /// The block last opened for each use in each plane, until it is erased.
    open: BTreeMap<(u32, Use), BlockId>,
    counts: Counts,
    /// The first disagreement.
    wrong: Option<Disagreement>,
}

impl Model {
    fn new(rules: Rules, geometry: Geometry, data_pages: u64) -> Self {
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

    fn discard(&mut self, lpn: u32) {
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
                let Write { data, group, .. } = write;
                self.counts.host += 1;
                self.check_group(Ppn(op.page), group)?;
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
    fn follow_all(&mut self, write: Option<Write>, ops: &[FlashOp]) -> Result<(), Disagreement> {
        let before = self.counts.host;
        ops.iter().try_for_each(|op| self.follow(op, write))?;
        let wanted = u64::from(write.is_some_and(|write| write.succeeds));
        match self.counts.host - before {
            programs if programs == wanted => Ok(()),
            programs => Err(format!("{write:?} programs {programs} pages")),
        }
    }

    /// Pages that fit into the open unit of an identifier: a full block gives way to an empty one.
    fn left(&self, identifier: u8) -> Option<u64> {
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

    /// Compares what the FTL says of itself, and the array.
    fn compare(&self, ftl: &dyn Ftl, lpn: Option<Lpn>, flash: &FlashOps) -> Result<(), String> {
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
    fn compare_array(&self, array: &Array) -> Result<(), Disagreement> {
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

thread_local! {
    /// Models of the FTLs built in this thread that no rig has taken, in the order of building.
    static MODELS: RefCell<Vec<Rc<RefCell<Model>>>> = const { RefCell::new(Vec::new()) };
}

/// The FTL `page` within an observer, to be registered in its place.
pub const WATCHED: FtlEntry = FtlEntry { build: build_watched, ..page::ENTRY };

fn build_watched(input: &FtlInput<'_>) -> BuiltFtl {
    let ftl = (page::ENTRY.build)(input)?;
    let data_pages = ftl.properties().data_pages.unwrap_or(0);
    let model = Model::new(Rules::of(input.settings), *input.geometry, data_pages);
    let model = Rc::new(RefCell::new(model));
    MODELS.with_borrow_mut(|models| models.push(model.clone()));
    Ok(Box::new(Watched { ftl, model }))
}

/// An FTL, each of whose operations the model follows.
struct Watched {
    ftl: Box<dyn Ftl>,
    model: Rc<RefCell<Model>>,
}

impl Watched {
    /// Has the FTL serve a call, for `lpn` if it is about a page, and the model follow it. A write
    /// comes with its handle.
    fn watch<T, E>(
        &mut self,
        (lpn, handle): (Option<Lpn>, Option<u8>),
        flash: &mut FlashOps,
        call: impl FnOnce(&mut dyn Ftl, &mut FlashOps) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = flash.list().len();
        let result = call(&mut *self.ftl, flash);
        let mut model = self.model.borrow_mut();
        if model.wrong.is_none() {
            let rules = model.rules;
            let write = lpn.zip(handle).map(|(Lpn(lpn), handle)| {
                let (group, handle) = rules.place(handle);
                Write { data: Data { lpn, handle }, group, succeeds: result.is_ok() }
            });
            let followed = model.follow_all(write, &flash.list()[before..]);
            let agrees = followed.and_then(|()| model.compare(&*self.ftl, lpn, flash));
            let has_erased = flash.list()[before..].iter().any(|op| op.kind == OpKind::Erase);
            model.wrong = agrees
                .and_then(|()| if has_erased { model.compare_array(flash.array()) } else { Ok(()) })
                .and_then(|()| if has_erased { self.ftl.audit(flash) } else { Ok(()) })
                .err();
        }
        result
    }
}

impl SavedState for Watched {
    fn save(&self, to: &mut Saver) {
        self.ftl.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.ftl.restore(from)
    }
}

impl Ftl for Watched {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        self.ftl.lookup(lpn, flash)
    }

    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let read = |ftl: &mut dyn Ftl, flash: &mut FlashOps| {
            ftl.read(lpn, flash);
            Ok::<_, FtlError>(())
        };
        let _never_fails = self.watch((Some(lpn), None), flash, read);
    }

    fn begin_write(&mut self, run: WriteRun) {
        self.ftl.begin_write(run);
    }

    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let about = (Some(lpn), Some(hint.handle));
        self.watch(about, flash, |ftl, flash| ftl.write(lpn, hint, flash))
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        self.model.borrow_mut().discard(lpn.0);
        self.watch((Some(lpn), None), flash, |ftl, flash| ftl.trim(lpn, flash))
    }

    fn expect(&self, lpns: &[Lpn], flash: &FlashOps) {
        self.ftl.expect(lpns, flash);
    }

    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        self.ftl.holds(lpn, flash)
    }

    fn unit_left(&self, handle: u8) -> Option<u64> {
        self.ftl.unit_left(handle)
    }

    fn idle(&mut self, flash: &mut FlashOps) -> Result<bool, FtlError> {
        self.watch((None, None), flash, |ftl, flash| ftl.idle(flash))
    }

    fn properties(&self) -> Properties {
        self.ftl.properties()
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        self.ftl.maintenance().is_some().then_some(self as &mut dyn Maintenance)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        self.ftl.audit(flash)
    }
}

impl Maintenance for Watched {
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let refresh = |ftl: &mut dyn Ftl, flash: &mut FlashOps| {
            ftl.maintenance().map(|it| it.refresh(block, flash)).ok_or(())
        };
        self.watch((None, None), flash, refresh).unwrap_or(false)
    }

    fn power_lost(&mut self) {
        if let Some(maintenance) = self.ftl.maintenance() {
            maintenance.power_lost();
        }
    }
}

/// A system of devices with the FTL [`WATCHED`].
pub struct System {
    /// The tree, whose path begins with `host/`. Called again for each saved state.
    pub build: Box<dyn Fn() -> ComponentTree>,
    /// The device that a sector of the system is on, and the sector there.
    pub locate: Box<dyn Fn(u64) -> (usize, u64)>,
    /// Whether parts of pages wait in a merge buffer.
    pub merges: bool,
}

/// A system beside the models of its devices.
pub struct PlacementRig {
    system: System,
    machine: Machine,
    pair: QueuePair,
    models: Vec<Rc<RefCell<Model>>>,
    capacity: u64,
    verifies: bool,
    /// When the machine began: arrivals are counted from then on.
    start: SimTime,
    events: Vec<EventRecord>,
    /// Whether the power has failed.
    cut: bool,
    /// Pages that completed writes touched.
    pages_written: u64,
}

/// What a random run covered, for checks that it tests anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Pages of host writes.
    pub host: u64,
    /// Copied pages, by cause.
    pub copies: BTreeMap<&'static str, u64>,
    pub erases: u64,
    /// Blocks opened for host writes.
    pub opened: u64,
    /// Pages written to another reclaim group, as theirs was full.
    pub moved_on: u64,
    pub power_failures: u64,
    pub saves: u64,
}

impl PlacementRig {
    /// A rig around `system`. With `verifies`, the host compares reads with its reference model;
    /// without, states are saved.
    pub fn new(system: System, verifies: bool) -> Self {
        let (machine, pair, models) = assemble(&system, verifies);
        let capacity = (system.build)().component.capacity();
        MODELS.take();
        Self {
            system,
            machine,
            pair,
            models,
            capacity,
            verifies,
            start: SimTime::ZERO,
            events: Vec::new(),
            cut: false,
            pages_written: 0,
        }
    }

    /// Sectors of the system.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    fn page_sectors(&self) -> u64 {
        u64::from(self.models[0].borrow().geometry.sectors_per_page())
    }

    fn submit(&mut self, request: &Request) {
        let at = self.machine.earliest_arrival();
        let since_start = at.since(self.start);
        self.pair.submit(Arrival { at: SimTime::ZERO + since_start, request: *request });
        self.machine.wake_root(at);
    }

    fn step(&mut self) -> Result<bool, Disagreement> {
        let stepped = self.machine.step(None, &mut self.events).map_err(|it| it.to_string())?;
        self.agree()?;
        Ok(stepped)
    }

    /// The first disagreement of a device.
    fn agree(&self) -> Result<(), Disagreement> {
        let wrong = self.models.iter().find_map(|model| model.borrow().wrong.clone());
        wrong.map_or(Ok(()), Err)
    }

    fn answers(&mut self, count: usize) -> Result<Vec<Answer>, Disagreement> {
        let mut answers: Vec<_> = std::iter::from_fn(|| self.pair.pop()).collect();
        while answers.len() < count {
            if !self.step()? {
                return Err("a request never completes".to_owned());
            }
            answers.extend(std::iter::from_fn(|| self.pair.pop()));
        }
        Ok(answers)
    }

    /// Serves `requests`, which arrive at once and whose writes and trims have no page in common,
    /// and compares the place of each written page, what the devices report, and their statistics.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn serve(&mut self, requests: &[Request]) -> Result<(), Disagreement> {
        requests.iter().for_each(|request| self.submit(request));
        let answers = self.answers(requests.len())?;
        if let Some(answer) = answers.iter().find(|it| it.outcome != Answered::Done) {
            return Err(format!("{answer:?} of {requests:?}"));
        }
        for request in requests.iter().filter(|it| it.op == Op::Write) {
            self.check_write(request)?;
        }
        self.compare_reports()
    }

    /// The device and the page there of each page of a request, and whether it covers all of it.
    fn pages(&self, request: &Request) -> BTreeMap<(usize, u64), bool> {
        let size = self.page_sectors();
        let mut sectors: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for sector in request.lba.0..request.end().0 {
            let (device, sector) = (self.system.locate)(sector);
            *sectors.entry((device, sector / size)).or_default() += 1;
        }
        sectors.into_iter().map(|(page, covered)| (page, covered == size)).collect()
    }

    /// Checks that the pages of a write that has completed belong to its handle.
    fn check_write(&mut self, request: &Request) -> Result<(), Disagreement> {
        let pages = self.pages(request);
        self.pages_written += pages.len() as u64;
        for ((device, page), is_whole) in pages {
            let model = self.models[device].borrow();
            if self.system.merges && !is_whole {
                continue;
            }
            let (_, wanted) = model.rules.place(request.flags.handle());
            let data = model.map.get(&(page as u32)).map(|page| model.pages[page.0 as usize]);
            match data.flatten() {
                Some(Data { handle, .. }) if handle == wanted => {}
                other => return Err(format!("page {page} of {request:?} is {other:?}")),
            }
        }
        Ok(())
    }

    /// Compares what the devices report of open units and of operations.
    fn compare_reports(&self) -> Result<(), Disagreement> {
        let sectors = self.page_sectors();
        let mut host = 0;
        for (device, model) in self.machine.devices().zip(&self.models) {
            let model = model.borrow();
            let Counts { host: of_host, .. } = model.counts;
            host += of_host;
            let health = device.health().ok_or("a device without health")?;
            let programs = of_host + model.counts.copied();
            let block = u64::from(model.geometry.pages_per_block()) * sectors * SECTOR_BYTES;
            let wanted = (programs * sectors * SECTOR_BYTES, model.counts.erased() * block);
            if (health.programmed_bytes, health.erased_bytes) != wanted {
                let found = (health.programmed_bytes, health.erased_bytes);
                return Err(format!("{found:?} bytes programmed and erased, not {wanted:?}"));
            }
            if health.unit_bytes != block * u64::from(model.geometry.planes()) {
                return Err(format!("a reclaim unit of {} bytes", health.unit_bytes));
            }
            for handle in 0..=u8::MAX {
                let wanted = model.left(handle).map(|pages| pages * sectors);
                let left = device.unit_left(handle);
                let unit = health.unit_bytes / u64::from(model.rules.groups) / SECTOR_BYTES;
                if left != wanted || left.is_some_and(|left| !(1..=unit).contains(&left)) {
                    return Err(format!("handle {handle} has {left:?} left, not {wanted:?}"));
                }
            }
        }
        // Parts of a page that wait together are programmed at once.
        let agrees = match self.system.merges {
            true => host <= self.pages_written,
            false => host == self.pages_written,
        };
        match agrees || self.cut {
            true => Ok(()),
            false => Err(format!("{host} programs of {} pages written", self.pages_written)),
        }
    }

    /// Compares the flash of device number `device` with that of another one, which served the same
    /// requests.
    ///
    /// # Errors
    /// The first page that is in another state.
    pub fn compare_array(&self, device: usize, array: &Array) -> Result<(), Disagreement> {
        self.models[device].borrow().compare_array(array)
    }

    /// Serves all that is left to do, background work included.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn settle(&mut self) -> Result<(), Disagreement> {
        while self.step()? {}
        self.compare_reports()
    }

    /// Reads all data back, which the host compares with its reference model.
    ///
    /// # Errors
    /// The first sector with other data.
    pub fn read_back(&mut self) -> Result<(), Disagreement> {
        for lba in (0..self.capacity).step_by(64) {
            let sectors = (self.capacity - lba).min(64) as u32;
            self.serve(&[Request::new(Op::Read, Lba(lba), sectors)])?;
        }
        Ok(())
    }

    /// The power fails `after` the arrival of `requests`, which may have been served in part.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn cut_power_during(
        &mut self,
        requests: &[Request],
        after: SimDuration,
    ) -> Result<(), Disagreement> {
        requests.iter().for_each(|request| self.submit(request));
        let at = self.machine.earliest_arrival() + after;
        while self.machine.step(Some(at), &mut self.events).map_err(|it| it.to_string())? {}
        self.machine.pass_time(at.max(self.machine.now()));
        self.machine.cut_power_now(&mut self.events).map_err(|it| it.to_string())?;
        self.cut = true;
        self.agree()?;
        let answers = self.answers(requests.len())?;
        if let Some(answer) = answers.iter().find(|it| it.outcome == Answered::Failed) {
            return Err(format!("{answer:?} of {requests:?}"));
        }
        self.compare_reports()
    }

    /// Saves the state and continues from it in another machine.
    ///
    /// # Errors
    /// A state that cannot be saved or restored, or the first disagreement afterwards.
    pub fn save_and_restore(&mut self) -> Result<(), Disagreement> {
        self.settle()?;
        let state = self.machine.save().map_err(|error| error.to_string())?;
        let (mut machine, pair, models) = assemble(&self.system, self.verifies);
        for (model, before) in models.iter().zip(&self.models) {
            model.replace(before.borrow().clone());
        }
        machine.restore(&state).map_err(|error| error.to_string())?;
        self.machine.flush_events(&mut self.events);
        self.start = machine.now();
        (self.machine, self.pair, self.models) = (machine, pair, models);
        self.compare_reports()
    }

    /// Compares all events of flash operations with those that the models followed: none without a
    /// cause. Operations that a power failure interrupts are not reported.
    ///
    /// # Errors
    /// The first disagreement.
    fn compare_events(&mut self) -> Result<(), Disagreement> {
        self.machine.end(&mut self.events).map_err(|it| it.to_string())?;
        let (mut found, mut wanted) = ([Operations::default(), Operations::default()]).into();
        for event in self.events.iter().filter_map(FlashEvent::decode) {
            found.add(event);
        }
        for model in &self.models {
            let counts = &model.borrow().counts;
            *wanted.programs.entry(Cause::Host as u8).or_default() += counts.host;
            for (cause, copies) in &counts.copies {
                *wanted.programs.entry(*cause).or_default() += copies;
            }
            for (erase, count) in &counts.erases {
                *wanted.erases.entry(*erase).or_default() += count;
            }
        }
        wanted.programs.retain(|_, count| *count > 0);
        match self.cut || found == wanted {
            true => Ok(()),
            false => Err(format!("events tell of {found:?}, not of {wanted:?}")),
        }
    }

    /// A random request: hostile handles and lengths, and parts of pages, included. With `one_group`
    /// nearly all data go to the first reclaim group, which they fill.
    fn draw(&self, stream: &mut Stream, one_group: bool) -> Request {
        let page = self.page_sectors();
        let rules = self.models[0].borrow().rules;
        let Rules { groups, handles, .. } = rules;
        let op = match stream.below(20) {
            0..2 => Op::Read,
            2..4 => Op::Trim,
            4 => Op::Flush,
            _ => Op::Write,
        };
        if op == Op::Flush {
            return Request::new(op, Lba(0), 0);
        }
        // Each handle overwrites a part of its own most of the time, so that units differ.
        let group = if one_group { 0 } else { stream.below(groups.into()) };
        let handle = stream.below(handles.into());
        let shares = u64::from(handles) * u64::from(groups) + 1;
        let (identifier, share) = match stream.below(20) {
            0 => (stream.below(256), shares - 1),
            1 => (u64::from(handles), shares - 1),
            2..5 => (0, 0),
            _ => {
                let identifier = group * u64::from(rules.handles_max()) + handle;
                (identifier, group * u64::from(handles) + handle)
            }
        };
        let (from, reach) = match stream.below(10) {
            0..7 if !one_group => {
                (self.capacity * share / shares, (self.capacity / shares / 3).max(1))
            }
            _ => (0, self.capacity),
        };
        let longest = if stream.chance(0.1) { 12 * page } else { 2 * page };
        let (mut lba, mut sectors) = (from + stream.below(reach), 1 + stream.below(longest));
        if stream.chance(0.8) {
            lba = lba / page * page;
            sectors = sectors.next_multiple_of(page);
        }
        let sectors = sectors.min(self.capacity - lba) as u32;
        let flags =
            if op == Op::Trim { Flags::NONE } else { Flags::NONE.with_handle(identifier as u8) };
        Request { flags, ..Request::new(op, Lba(lba), sectors) }
    }

    /// Random requests that arrive at once, whose writes and trims have no page in common.
    pub fn draw_batch(&self, stream: &mut Stream, one_group: bool) -> Vec<Request> {
        let mut changed: BTreeSet<(usize, u64)> = BTreeSet::new();
        let mut requests = Vec::new();
        for _ in 0..1 + stream.below(8) {
            let request = self.draw(stream, one_group);
            let pages: Vec<_> = match request.op {
                Op::Write | Op::Trim => self.pages(&request).into_keys().collect(),
                _ => Vec::new(),
            };
            if !pages.iter().any(|page| changed.contains(page)) {
                changed.extend(pages);
                requests.push(request);
            }
        }
        requests
    }

    /// Serves `batches` of random requests; idle time, power failures with `cuts_power`, and in
    /// unverified runs saved states come between them. Then compares all data and events.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check_random(
        &mut self,
        seed: u64,
        batches: usize,
        cuts_power: bool,
    ) -> Result<Coverage, Disagreement> {
        let mut stream = Stream::new(seed, "placement");
        let mut covered = Coverage::default();
        for batch in 0..batches {
            let requests = self.draw_batch(&mut stream, batch % 300 >= 150);
            let checked = match stream.below(60) {
                0 if cuts_power => {
                    covered.power_failures += 1;
                    let after = SimDuration::from_ns(stream.below(3_000_000));
                    self.cut_power_during(&requests, after)
                }
                1 if !self.verifies => {
                    covered.saves += 1;
                    self.serve(&requests).and_then(|()| self.save_and_restore())
                }
                2..5 => self.serve(&requests).and_then(|()| self.settle()),
                _ => self.serve(&requests),
            };
            checked.map_err(|error| format!("seed {seed}, batch {batch}: {error}"))?;
        }
        let ended = self.settle().and_then(|()| self.read_back());
        ended.and_then(|()| self.compare_events()).map_err(|it| format!("seed {seed}: {it}"))?;
        for model in &self.models {
            let counts = &model.borrow().counts;
            covered.host += counts.host;
            covered.erases += counts.erased();
            covered.opened += counts.opened;
            covered.moved_on += counts.moved_on;
            for (cause, copies) in &counts.copies {
                let name = Cause::ALL[usize::from(*cause)].name();
                *covered.copies.entry(name).or_default() += copies;
            }
        }
        Ok(covered)
    }
}

/// Flash operations by the number of their cause.
#[derive(Debug, Default, PartialEq, Eq)]
struct Operations {
    programs: BTreeMap<u8, u64>,
    /// By cause and block.
    erases: BTreeMap<(u8, u32), u64>,
}

impl Operations {
    fn add(&mut self, event: FlashEvent) {
        match event {
            FlashEvent::Program { cause, .. } => {
                *self.programs.entry(cause as u8).or_default() += 1;
            }
            FlashEvent::Erase { cause, block, .. } => {
                *self.erases.entry((cause as u8, block)).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// A machine of the system, and the models of its devices.
fn assemble(system: &System, verifies: bool) -> (Machine, QueuePair, Vec<Rc<RefCell<Model>>>) {
    let _of_other_systems = MODELS.take();
    let pair = QueuePair::default();
    let options = HostOptions { outstanding_max: u64::MAX, ..HostOptions::open(1 << 16) };
    let host = Host::attached(options, pair.clone(), false, Box::new(Fcfs::default()));
    let root = ComponentTree::inner("host", host, vec![(system.build)()]);
    let mut machine = Machine::new(root, verifies);
    machine.power_may_fail();
    (machine, pair, MODELS.take())
}
