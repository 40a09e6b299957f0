//! The flash pages reserved for metadata (mapping table or journal) and recovery from them.
//!
//! Metadata pages are written in turn, in a circle. After a power failure all of them are read
//! before any request is served. Compaction of the metadata is not modelled.

use super::PagedPolicy;
use hybridsim_cache::paged::split::Medium;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Completion, Ctx, Flags, Lba, Op, Request, RequestId, SimDuration, SimTime, StateError,
};

/// Longest read during recovery, in pages.
const READ_PAGES: u64 = 256;

/// The metadata area. It follows the cached pages on flash.
#[derive(Debug)]
pub struct MetadataArea {
    pages: u64,
    /// The page written next.
    next: u64,
    /// Start of recovery, and pages read so far.
    recovery: Option<(SimTime, u64)>,
    /// Requests that have arrived during recovery.
    deferred: Vec<(RequestId, Request)>,
}

impl MetadataArea {
    /// An area of `pages` pages; 0 if the metadata survive a power failure at no cost.
    pub const fn new(pages: u64) -> Self {
        Self { pages, next: 0, recovery: None, deferred: Vec::new() }
    }

    /// Size of the area.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Number of the page to write now.
    pub fn next_page(&mut self) -> u64 {
        let page = self.next;
        self.next = (page + 1) % self.pages;
        page
    }

    /// Whether the metadata are being read.
    pub const fn recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// During recovery, defers a request until its end.
    pub fn defers(&mut self, id: RequestId, request: &Request) -> bool {
        if self.recovering() {
            self.deferred.push((id, *request));
        }
        self.recovering()
    }

    pub(super) fn stop(&mut self) {
        self.deferred.clear();
        self.recovery = None;
    }

    pub(super) const fn position(&self) -> u64 {
        self.next
    }

    pub(super) fn set_position(&mut self, next: u64) -> Result<(), StateError> {
        if next >= self.pages.max(1) {
            return Err(StateError(format!("its metadata area has fewer than {next} pages")));
        }
        self.next = next;
        Ok(())
    }
}

/// Recovery after a power failure.
pub trait Recovery: PagedPolicy {
    /// Begins to read the metadata, or ends recovery at once if there are none.
    fn recover(&mut self, ctx: &mut Ctx<'_>) {
        if self.core().metadata.pages == 0 {
            ctx.emit(CommonEvent::Recovered { took: SimDuration::ZERO });
            self.recovered(ctx);
            self.advance(ctx);
            return;
        }
        self.core_mut().metadata.recovery = Some((ctx.now(), 0));
        self.read_metadata(ctx, 0);
    }

    /// Reads metadata pages from page `from` on.
    fn read_metadata(&mut self, ctx: &mut Ctx<'_>, from: u64) {
        let core = self.core();
        let size = core.directory.page_sectors;
        let sectors = ((core.metadata.pages - from).min(READ_PAGES) * size) as u32;
        let at = Lba((u64::from(core.directory.pages) + from) * size);
        let mut request = Request::new(Op::Read, at, sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        ctx.issue(Medium::Flash as usize, request, 0);
    }

    /// Part of the metadata has been read.
    fn metadata_read(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let core = self.core_mut();
        let (since, read) = core.metadata.recovery.expect("recovery reads the metadata");
        let read = read + u64::from(done.request.sectors) / core.directory.page_sectors;
        if read < core.metadata.pages {
            core.metadata.recovery = Some((since, read));
            self.read_metadata(ctx, read);
            return;
        }
        core.metadata.recovery = None;
        let deferred = std::mem::take(&mut core.metadata.deferred);
        ctx.emit(CommonEvent::Recovered { took: ctx.now().since(since) });
        self.recovered(ctx);
        for (id, request) in deferred {
            self.accept(ctx, id, &request);
        }
        self.advance(ctx);
    }
}

impl<P: PagedPolicy> Recovery for P {}
