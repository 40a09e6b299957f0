//! What a power failure leaves, and what it costs to make sure of that.
//!
//! A page in flash carries in its spare area which page of the disk it is, so a write is durable
//! with its data, at no extra cost. What has to be noted besides is that a page is free: a newer
//! version of it may go round flash to the disk, and the old one must not come back. With a
//! journal that note is a page written to flash before the page is used for anything else. How
//! the journal is compacted is not modelled. Without it the map is taken to survive by itself,
//! as in the paper, which does not say how.

use super::HybridDisk;
use hybridsim_engine::{CommonEvent, Completion, Ctx, Flags, Lba, Op, Request, RequestId, SimTime};

/// Pages of the journal.
pub const JOURNAL_PAGES: u64 = 64;

/// What is done for durability, and what waits for recovery.
#[derive(Debug)]
pub struct Durability {
    force: bool,
    journal: bool,
    /// Where in the journal the next page goes.
    next: u64,
    /// Since when the journal has been being read.
    recovering: Option<SimTime>,
    waiting: Vec<(RequestId, Request)>,
}

impl Durability {
    /// As the parameters say.
    pub const fn new(force: bool, journal: bool) -> Self {
        Self { force, journal, next: 0, recovering: None, waiting: Vec::new() }
    }

    /// Whether destaged data go to the disk's medium at once.
    pub const fn forces(&self) -> bool {
        self.force
    }

    /// Whether freed pages are noted.
    pub const fn journals(&self) -> bool {
        self.journal
    }

    /// Where the next page of the journal goes.
    pub fn next_place(&mut self) -> u64 {
        let place = self.next;
        self.next = (place + 1) % JOURNAL_PAGES;
        place
    }

    /// Whether the journal is being read.
    pub const fn recovering(&self) -> bool {
        self.recovering.is_some()
    }

    /// Whether a request has to wait for recovery.
    pub fn holds_back(&mut self, id: RequestId, request: &Request) -> bool {
        if self.recovering() {
            self.waiting.push((id, *request));
        }
        self.recovering()
    }
}

impl HybridDisk {
    /// What policies knew was in memory only: they begin anew, with the pages that are left.
    pub(super) fn lose_power(&mut self) -> Result<(), String> {
        self.policies = (self.fresh)().map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("its policies could not be built again: {}", all.join("; "))
        })?;
        self.cache.keep_durable();
        for page in self.cache.iter() {
            if !self.cache.slot(page.slot).pinned {
                self.policies.replacement.update(page, hybridsim_cache::replacement::Access::Add);
            }
        }
        self.flow = super::Flow::default();
        self.lanes.iter_mut().for_each(super::Lane::clear);
        self.cleaning.stop();
        self.parents.clear();
        self.ready.clear();
        self.short_of_space.clear();
        (self.executing, self.present, self.idle_timer) = (0, 0, false);
        self.durability.waiting.clear();
        self.durability.recovering = None;
        Ok(())
    }

    pub(super) fn recover(&mut self, ctx: &mut Ctx<'_>) {
        self.idle_since = ctx.now();
        if !self.durability.journal {
            ctx.emit(CommonEvent::Recovered { took: Default::default() });
            self.settle(ctx);
            return;
        }
        self.durability.recovering = Some(ctx.now());
        let size = self.cache.page_sectors;
        let sectors = (JOURNAL_PAGES * size) as u32;
        let mut read = Request::new(Op::Read, Lba(u64::from(self.cache.pages) * size), sectors);
        read.flags = Flags::BACKGROUND;
        read.data = ctx.take_data(sectors);
        ctx.issue(0, read, 0);
    }

    /// The journal has been read.
    pub(super) fn recovered(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let since = self.durability.recovering.take().expect("it is being read");
        ctx.emit(CommonEvent::Recovered { took: ctx.now().since(since) });
        for (id, request) in std::mem::take(&mut self.durability.waiting) {
            self.take(ctx, id, &request);
        }
        self.settle(ctx);
    }
}
