//! Keeping the map on flash (op-fcl, mapping manager): the last page of every block names what
//! is in the other 63, so a page of map is written for every 63 pages of data.
//!
//! Modelled as a part of flash of its own, a sixty-fourth of it, that map pages go round in. After
//! a power failure all of it is read; what was written since the last complete one is found in the
//! spare areas of its pages, as the device below finds its own.

use super::FlashCache;
use super::serve::Kind;
use hybridsim_engine::{
    CommonEvent, Completion, Ctx, DataSlice, Flags, Lba, Op, Request, RequestId, SimTime,
};

/// Data pages per map page.
const DATA_PAGES: u64 = 63;
/// The longest read of the map, in pages.
const READ_PAGES: u64 = 256;

/// Where the map goes, and what waits for it.
#[derive(Debug)]
pub struct Mapping {
    pages: u64,
    /// Data pages written since the last map page.
    written: u64,
    next: u64,
    /// Since when the map has been being read, and how much of it.
    recovering: Option<(SimTime, u64)>,
    waiting: Vec<(RequestId, Request)>,
}

impl Mapping {
    /// For flash that offers `offered` pages.
    pub fn new(on: bool, offered: u64) -> Self {
        let pages = if on { offered.div_ceil(DATA_PAGES + 1) } else { 0 };
        Self { pages, written: 0, next: 0, recovering: None, waiting: Vec::new() }
    }

    /// Pages set aside for it.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether the map is being read.
    pub const fn recovering(&self) -> bool {
        self.recovering.is_some()
    }

    /// Whether a request has to wait for that.
    pub fn holds_back(&mut self, id: RequestId, request: &Request) -> bool {
        if self.recovering() {
            self.waiting.push((id, *request));
        }
        self.recovering()
    }
}

impl FlashCache {
    /// `pages` data pages are being written: the map pages that fall due.
    pub(super) fn write_map(&mut self, ctx: &mut Ctx<'_>, pages: u64) {
        if self.mapping.pages == 0 {
            return;
        }
        self.mapping.written += pages;
        while self.mapping.written >= DATA_PAGES {
            self.mapping.written -= DATA_PAGES;
            let size = self.cache.page_sectors;
            let place = u64::from(self.cache.pages) + self.mapping.next;
            self.mapping.next = (self.mapping.next + 1) % self.mapping.pages;
            let mut request = Request::new(Op::Write, Lba(place * size), size as u32);
            request.flags = Flags::BACKGROUND;
            request.data = ctx.take_data(size as u32);
            let slot = self.open(Kind::Map, request, ctx.now());
            self.parent(slot).left = 1;
            ctx.issue(0, request, u64::from(slot));
        }
    }

    /// The order of use was in memory only; what is dirty the map says.
    pub(super) fn lose_power(&mut self) -> Result<(), String> {
        self.cache.keep_durable();
        let fresh = (self.fresh)().map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("its policy could not be built again: {}", all.join("; "))
        })?;
        let before = std::mem::replace(&mut self.sides, fresh);
        for page in self.cache.iter() {
            self.sides.add(page, before.is_dirty(page.slot));
        }
        self.tracker.clear();
        self.streams.clear();
        self.observed = self.observed.map(|_| Default::default());
        self.accessed = 0;
        self.flow = super::Flow::default();
        self.parents.clear();
        self.short_of_space.clear();
        (self.executing, self.destaging) = (0, 0);
        self.resizer.stop();
        self.ahead.stop();
        self.mapping.waiting.clear();
        self.mapping.recovering = None;
        Ok(())
    }

    pub(super) fn recover(&mut self, ctx: &mut Ctx<'_>) {
        if self.mapping.pages == 0 {
            ctx.emit(CommonEvent::Recovered { took: Default::default() });
            self.trim_again(ctx);
            self.settle(ctx);
            return;
        }
        self.mapping.recovering = Some((ctx.now(), 0));
        self.read_map(ctx);
    }

    fn read_map(&mut self, ctx: &mut Ctx<'_>) {
        let Some((_, read)) = self.mapping.recovering else { return };
        let size = self.cache.page_sectors;
        let sectors = (self.mapping.pages - read).min(READ_PAGES) * size;
        let at = (u64::from(self.cache.pages) + read) * size;
        let mut request = Request::new(Op::Read, Lba(at), sectors as u32);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(request.sectors);
        ctx.issue(0, request, 0);
    }

    /// A part of the map has been read.
    pub(super) fn recovered(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let (since, read) = self.mapping.recovering.expect("it is being read");
        let read = read + u64::from(done.request.sectors) / self.cache.page_sectors;
        if read < self.mapping.pages {
            self.mapping.recovering = Some((since, read));
            self.read_map(ctx);
            return;
        }
        self.mapping.recovering = None;
        ctx.emit(CommonEvent::Recovered { took: ctx.now().since(since) });
        self.trim_again(ctx);
        for (id, request) in std::mem::take(&mut self.mapping.waiting) {
            self.take(ctx, id, &request);
        }
        self.settle(ctx);
    }

    /// Gives the buffer of a request of the cache's own back.
    pub(super) fn give_back(&self, ctx: &mut Ctx<'_>, data: DataSlice) {
        ctx.data().give_back(data);
    }
}
