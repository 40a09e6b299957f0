//! The flash pages reserved for metadata (mapping table or journal) and recovery from them.
//!
//! Metadata pages are written in turn, in a circle. After a power failure all of them are read
//! before any request is served, or, with checkpoints, the newest checkpoint and the pages written
//! since. Compaction of the metadata is not modelled.

use super::PagedPolicy;
use super::checkpoint::CheckpointArea;
use hybridsim_cache::paged::split::Medium;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Completion, Ctx, Flags, Lba, Op, Request, RequestId, SimDuration, SimTime, StateError,
};

/// Longest request for metadata, in pages.
const RUN_PAGES: u64 = 256;

/// The metadata area. It follows the cached pages on flash.
#[derive(Debug)]
pub struct MetadataArea {
    pages: u64,
    next: u64,
    checkpoints: Option<CheckpointArea>,
    /// Start of recovery.
    recovery: Option<SimTime>,
    /// Runs that recovery has yet to read: first page and number of pages, the next run last.
    unread: Vec<(u64, u64)>,
    /// Requests that have arrived during recovery.
    deferred: Vec<(RequestId, Request)>,
}

impl MetadataArea {
    /// An area of `pages` pages; 0 if the metadata survive a power failure at no cost.
    pub const fn new(pages: u64) -> Self {
        Self {
            pages,
            next: 0,
            checkpoints: None,
            recovery: None,
            unread: Vec::new(),
            deferred: Vec::new(),
        }
    }

    /// An area that `checkpoints` follow.
    pub fn with_checkpoints(self, checkpoints: Option<CheckpointArea>) -> Self {
        Self { checkpoints, ..self }
    }

    /// Size of the area.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Number of the page to write now.
    pub fn next_page(&mut self) -> u64 {
        let page = self.next;
        self.next = (page + 1) % self.pages;
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.metadata_written();
        }
        page
    }

    /// Counts `pages` data pages written. Returns whether a checkpoint begins.
    pub fn data_written(&mut self, pages: u64) -> bool {
        self.checkpoints.as_mut().is_some_and(|checkpoints| checkpoints.data_written(pages))
    }

    /// First page and number of pages of the checkpoint to write next, if it is incomplete.
    pub fn next_checkpoint_run(&mut self) -> Option<(u64, u64)> {
        let (first, count) = self.checkpoints.as_mut()?.next_run(RUN_PAGES)?;
        Some((self.pages + first, count))
    }

    pub(super) const fn checkpoints(&self) -> Option<&CheckpointArea> {
        self.checkpoints.as_ref()
    }

    pub(super) const fn checkpoints_mut(&mut self) -> Option<&mut CheckpointArea> {
        self.checkpoints.as_mut()
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
        self.unread.clear();
        self.recovery = None;
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.stop();
        }
    }

    fn start_recovery(&mut self, now: SimTime) {
        self.recovery = Some(now);
        let newest = self.checkpoints.as_ref();
        let newest = newest.and_then(|checkpoints| checkpoints.recovery(self.pages, self.next));
        self.unread = newest.map_or_else(|| vec![(0, self.pages)], |runs| runs.to_vec());
        self.unread.reverse();
    }

    /// First page and number of pages to read next in recovery.
    fn next_unread(&mut self) -> Option<(u64, u64)> {
        while let Some((first, count)) = self.unread.pop() {
            let now = count.min(RUN_PAGES);
            if count > now {
                self.unread.push((first + now, count - now));
            }
            if now > 0 {
                return Some((first, now));
            }
        }
        None
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
        self.core_mut().metadata.start_recovery(ctx.now());
        self.read_metadata(ctx);
    }

    /// Reads the next metadata pages. Returns false when all have been read.
    fn read_metadata(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let core = self.core_mut();
        let Some((first, count)) = core.metadata.next_unread() else { return false };
        let size = core.directory.page_sectors;
        let sectors = (count * size) as u32;
        let at = Lba((u64::from(core.directory.pages) + first) * size);
        let mut request = Request::new(Op::Read, at, sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        ctx.issue(Medium::Flash as usize, request, 0);
        true
    }

    fn metadata_read(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        if self.read_metadata(ctx) {
            return;
        }
        let core = self.core_mut();
        let since = core.metadata.recovery.expect("recovery reads the metadata");
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
