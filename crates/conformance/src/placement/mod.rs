//! The test suite of placement semantics (NVM Express Base Specification 2.1, Flexible Data
//! Placement), for SSDs that place writes by handle and for components above them.
//!
//! [`OBSERVED`] is the FTL `page` within an observer: a reference model follows every flash
//! operation and says in which reclaim unit it has to be. A [`PlacementRig`] drives devices with
//! that FTL by random requests, across power failures and saved states, and compares data,
//! statistics and events too.

mod model;
mod observed;

pub use model::Rules;
pub use observed::OBSERVED;

use hybridsim_engine::{
    Arrival, ComponentTree, Event, EventRecord, Flags, Lba, Machine, Op, Request, SECTOR_BYTES,
    SimDuration, SimTime, Stream,
};
use hybridsim_flash::array::Array;
use hybridsim_flash::event::{Cause, FlashEvent};
use hybridsim_host::scheduler::fcfs::Fcfs;
use hybridsim_host::{Answer, Answered, Host, HostOptions, QueuePair};
use model::{Counts, Model};
use observed::MODELS;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A disagreement with the model.
pub type Disagreement = String;

/// A page of which a part waits in a merge buffer, unless it has been programmed since.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Reclaim group and handle of the last part; `None` after a power failure, when it is not
    /// known whether a part that came then waits.
    place: Option<(u8, u8)>,
    /// [`Data::number`] when the part came.
    number: u64,
}

/// A system of devices with the FTL [`OBSERVED`].
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
    /// Time at which the machine began, from which arrivals count.
    start: SimTime,
    events: Vec<EventRecord>,
    /// Operations until the last power failure: those that it interrupted are not reported, so that
    /// events are compared from then on.
    before: Operations,
    /// Pages that completed writes touched, and those before the last power failure.
    pages_written: u64,
    /// By device and page.
    waiting: BTreeMap<(usize, u64), Waiting>,
}

/// Coverage of a random run, by which tests check that they try anything.
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
            before: Operations::default(),
            pages_written: 0,
            waiting: BTreeMap::new(),
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
        let parts = self.parts(requests);
        requests.iter().for_each(|request| self.submit(request));
        let answers = self.answers(requests.len())?;
        if let Some(answer) = answers.iter().find(|it| it.outcome != Answered::Done) {
            return Err(format!("{answer:?} of {requests:?}"));
        }
        for request in requests.iter().filter(|it| it.op == Op::Write) {
            self.check_write(request)?;
        }
        self.check_waiting(parts)?;
        self.compare_reports()
    }

    fn number(&self, (device, page): (usize, u64)) -> u64 {
        self.models[device].borrow().data(page).map_or(0, |data| data.number)
    }

    /// The parts of pages that `requests` will put into merge buffers. Whole pages leave them.
    fn parts(&mut self, requests: &[Request]) -> BTreeMap<(usize, u64), Waiting> {
        let mut parts = BTreeMap::new();
        let changes = |it: &&Request| matches!(it.op, Op::Write | Op::Trim);
        for request in requests.iter().filter(changes).filter(|_| self.system.merges) {
            let place = self.models[0].borrow().rules.place(request.flags.handle());
            for (page, is_whole) in self.pages(request) {
                if is_whole {
                    self.waiting.remove(&page);
                } else if request.op == Op::Write {
                    parts.insert(page, Waiting { place: Some(place), number: self.number(page) });
                }
            }
        }
        parts
    }

    /// Checks that pages which waited and have been programmed have the handle of their last part;
    /// a page of which another of `parts` just came may have been programmed before that.
    fn check_waiting(
        &mut self,
        parts: BTreeMap<(usize, u64), Waiting>,
    ) -> Result<(), Disagreement> {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (page, part) in parts {
            let before = waiting.insert(page, Waiting { number: self.number(page), ..part });
            let data = self.models[page.0].borrow().data(page.1);
            let allowed = [Some(part.place), before.map(|it| it.place)];
            if allowed.contains(&Some(None)) {
                continue;
            }
            if data.is_some_and(|it| {
                it.number > part.number && !allowed.contains(&Some(Some(it.place())))
            }) {
                return Err(format!("page {page:?} of {allowed:?} became {data:?}"));
            }
        }
        for (page, part) in &mut waiting {
            let data = self.models[page.0].borrow().data(page.1);
            match data.filter(|data| data.number != part.number) {
                None => {}
                Some(data) if part.place.is_none_or(|place| place == data.place()) => {
                    part.number = data.number;
                }
                other => return Err(format!("page {page:?}, {part:?}, became {other:?}")),
            }
        }
        self.waiting = waiting;
        Ok(())
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
            let wanted = model.rules.place(request.flags.handle());
            match model.data(page) {
                Some(data) if data.place() == wanted => {}
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
        match agrees {
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
        let pages = requests.iter().flat_map(|request| self.pages(request).into_keys());
        for page in pages.filter(|_| self.system.merges).collect::<Vec<_>>() {
            self.waiting.insert(page, Waiting { place: None, number: self.number(page) });
        }
        requests.iter().for_each(|request| self.submit(request));
        let at = self.machine.earliest_arrival() + after;
        while self.machine.step(Some(at), &mut self.events).map_err(|it| it.to_string())? {}
        self.machine.pass_time(at.max(self.machine.now()));
        self.machine.cut_power_now(&mut self.events).map_err(|it| it.to_string())?;
        self.agree()?;
        let answers = self.answers(requests.len())?;
        if let Some(answer) = answers.iter().find(|it| it.outcome == Answered::Failed) {
            return Err(format!("{answer:?} of {requests:?}"));
        }
        while self.step()? {}
        self.machine.flush_events(&mut self.events);
        self.events.clear();
        self.before = self.operations();
        let host: u64 = self.models.iter().map(|model| model.borrow().counts.host).sum();
        self.pages_written = host + self.waiting.len() as u64;
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

    /// The operations that the models followed.
    fn operations(&self) -> Operations {
        let mut all = Operations::default();
        for model in &self.models {
            let counts = &model.borrow().counts;
            *all.programs.entry(Cause::Host as u8).or_default() += counts.host;
            for (cause, copies) in &counts.copies {
                *all.programs.entry(*cause).or_default() += copies;
            }
            for (erase, count) in &counts.erases {
                *all.erases.entry(*erase).or_default() += count;
            }
        }
        all
    }

    /// Compares all events of flash operations with those that the models followed: none without a
    /// cause.
    ///
    /// # Errors
    /// The first disagreement.
    fn compare_events(&mut self) -> Result<(), Disagreement> {
        self.machine.end(&mut self.events).map_err(|it| it.to_string())?;
        let mut found = Operations::default();
        for event in self.events.iter().filter_map(FlashEvent::decode) {
            found.add(event);
        }
        let wanted = self.operations().since(&self.before);
        match found == wanted {
            true => Ok(()),
            false => Err(format!("events of {found:?}, not of {wanted:?}")),
        }
    }

    /// A random request: hostile handles and lengths, and parts of pages, included. With
    /// `one_group` nearly all data go to the first reclaim group, which they fill.
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
    /// Those that are not in `before`.
    fn since(mut self, before: &Self) -> Self {
        subtract(&mut self.programs, &before.programs);
        subtract(&mut self.erases, &before.erases);
        self
    }

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

/// Subtracts counts that are at most as high.
fn subtract<K: Ord>(from: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (key, count) in counts {
        *from.get_mut(key).expect("counts never fall") -= count;
    }
    from.retain(|_, count| *count > 0);
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
