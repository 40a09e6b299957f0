//! What controllers that cache pages of a disk in flash have in common.
//!
//! A host request locks its pages, is split into sub-requests by where the newest data are, and
//! completes when the last of its sub-requests does. The controller's own requests (destages,
//! promotions, trims, metadata writes) take the same path. [`PagedPolicy`] names what differs
//! between controllers; [`PagedController`] is implemented for each of them.
//!
//! - `serve`: requests from arrival to completion.
//! - `destage`: moving pages from flash to disk.
//! - `metadata`: the flash pages reserved for a mapping table or journal, and recovery.
//!
//! Invariant: for every sector valid in the directory flash holds the newest version, for all
//! others the disk does.

mod checkpoint;
mod destage;
mod metadata;
mod serve;

pub use checkpoint::CheckpointArea;
pub use destage::Destage;
pub use metadata::{MetadataArea, Recovery};
pub use serve::PagedController;

use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::CACHED_PAGE_BYTES;
use hybridsim_cache::paged::directory::{PAGE_SECTORS_MAX, PageDirectory};
use hybridsim_cache::paged::locks::PageLocks;
use hybridsim_cache::paged::split::{Medium, SubRequest};
use hybridsim_cache::paged::trimmed::Trimmed;
use hybridsim_cache::replacement::{Access, CachedPage};
use hybridsim_config::param::{Problem, Settings};
use hybridsim_engine::{
    Completion, Ctx, LatencyBreakdown, LatencyPhase, Loader, Request, RequestId, SECTOR_BYTES,
    Saver, SimTime, StateError,
};
use slab::Slab;
use std::collections::VecDeque;

/// Memory beyond [`CACHED_PAGE_BYTES`] for a page in a cache of flash: its mapping to the flash,
/// and the pages that policies remember after they were evicted.
const FLASH_PAGE_BYTES: u64 = 96;

/// Memory for the directory of a cache in the whole of the device `flash`, where `capacity` gives
/// the bytes of devices by their names.
pub fn directory_bytes(settings: &Settings, capacity: &dyn Fn(&str) -> u64) -> u64 {
    let pages = capacity(settings.text("flash")) / settings.bytes("page_size").max(1);
    pages.saturating_mul(CACHED_PAGE_BYTES + FLASH_PAGE_BYTES)
}

/// Who issued a pending request, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Host(RequestId),
    /// Write to flash of data a host request has read from the disk.
    Promotion,
    /// Read from flash of pages that are being destaged.
    DestageRead,
    /// Write to the disk of those pages.
    DestageWrite,
    /// Trim of flash pages that are no longer used.
    Trim,
    /// Write of a page of the mapping table or journal.
    Metadata,
}

/// A request that completes when all of its sub-requests have completed.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    pub origin: Origin,
    pub request: Request,
    /// Time at which it began to wait or was issued, whichever came last.
    since: SimTime,
    /// Phase of the latency while it has no sub-request outstanding.
    pub waits_for: LatencyPhase,
    /// Time it has waited so far.
    waited: LatencyBreakdown,
    /// Sub-requests that have not completed.
    pub outstanding: u32,
    pub failed: bool,
    /// The request bypasses the cache.
    pub bypasses: bool,
}

/// State every paged controller has.
pub struct PagedCore {
    pub capacity: u64,
    pub directory: PageDirectory,
    pub locks: PageLocks,
    pub pending: Slab<PendingRequest>,
    /// The sub-requests of the request at hand; reused.
    pub sub_requests: Vec<SubRequest>,
    /// The pages at hand; reused.
    pub listed: Vec<CachedPage>,
    /// Writes that wait for free pages, in order.
    pub short_of_space: VecDeque<u32>,
    /// Host requests with sub-requests outstanding.
    pub executing: u32,
    pub metadata: MetadataArea,
    trimmed: Trimmed,
    reported_dirty: u32,
}

impl PagedCore {
    /// A controller over a disk of `capacity` sectors with an empty cache.
    pub fn new(capacity: u64, directory: PageDirectory, metadata: MetadataArea) -> Self {
        Self {
            capacity,
            directory,
            locks: PageLocks::default(),
            pending: Slab::new(),
            sub_requests: Vec::new(),
            listed: Vec::new(),
            short_of_space: VecDeque::new(),
            executing: 0,
            metadata,
            trimmed: Trimmed::default(),
            reported_dirty: 0,
        }
    }

    /// Adds a pending request that was issued at `since`.
    pub fn open(&mut self, origin: Origin, request: Request, since: SimTime) -> u32 {
        self.pending.insert(PendingRequest {
            origin,
            request,
            since,
            waits_for: LatencyPhase::Queue,
            waited: LatencyBreakdown::NONE,
            outstanding: 0,
            failed: false,
            bypasses: false,
        }) as u32
    }

    /// The pending request in `slot`.
    pub fn pending(&mut self, slot: u32) -> &mut PendingRequest {
        &mut self.pending[slot as usize]
    }

    /// The request pending in `slot`.
    pub fn request(&self, slot: u32) -> Request {
        self.pending[slot as usize].request
    }

    /// First and last page of the request pending in `slot`.
    pub fn pages_of(&self, slot: u32) -> (u64, u64) {
        self.directory.pages_of(&self.pending[slot as usize].request)
    }

    /// Adds the time since the request began to wait to what it waits for.
    pub fn charge_wait(&mut self, ctx: &Ctx<'_>, slot: u32) {
        let now = ctx.now();
        let pending = self.pending(slot);
        pending.waited.add(pending.waits_for, now.since(pending.since));
        pending.since = now;
    }

    /// Makes one sub-request to the disk of the whole request pending in `slot`.
    pub fn whole_to_disk(&mut self, slot: u32) {
        let Request { lba, sectors, .. } = self.request(slot);
        self.sub_requests.clear();
        self.sub_requests.push(SubRequest { medium: Medium::Disk, at: lba.0, sectors, skip: 0 });
    }

    /// Reports the number of dirty pages if it has changed.
    pub fn report_dirty(&mut self, ctx: &mut Ctx<'_>, pages: u32) {
        if pages != self.reported_dirty {
            self.reported_dirty = pages;
            ctx.emit(CacheEvent::DirtyPages { pages });
        }
    }

    /// Power failure: the directory keeps what is durable, everything in progress is lost.
    pub fn lose_power(&mut self) {
        self.directory.keep_durable();
        self.locks = PageLocks::default();
        self.pending.clear();
        self.short_of_space.clear();
        self.executing = 0;
        self.metadata.stop();
    }

    /// Saves the directory and the position in the metadata area.
    pub fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.pending.is_empty() || self.metadata.recovering() {
            return Err(StateError(format!("{} requests are pending", self.pending.len())));
        }
        to.put(&(&self.directory, self.metadata.position(), self.reported_dirty));
        if let Some(checkpoints) = self.metadata.checkpoints() {
            checkpoints.save(to);
        }
        Ok(())
    }

    /// Restores what [`PagedCore::save`] has saved.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (directory, position, reported_dirty) = from.take()?;
        self.directory.restore(directory)?;
        self.metadata.set_position(position)?;
        self.reported_dirty = reported_dirty;
        match self.metadata.checkpoints_mut() {
            Some(checkpoints) => checkpoints.restore(from),
            None => Ok(()),
        }
    }
}

/// The differences between paged controllers.
pub trait PagedPolicy {
    fn core(&self) -> &PagedCore;
    fn core_mut(&mut self) -> &mut PagedCore;

    /// A host request arrives: opens it and locks its pages.
    fn accept(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request);

    /// Whether a request whose pages are locked may start now. A controller that returns `false`
    /// starts it later.
    fn may_start(&mut self, _slot: u32) -> bool {
        true
    }

    fn start_read(&mut self, ctx: &mut Ctx<'_>, slot: u32);
    fn start_write(&mut self, ctx: &mut Ctx<'_>, slot: u32);

    fn page_read(&mut self, page: CachedPage);

    /// A page is written by a host request, which has just added it to the cache or was cached.
    fn page_written(&mut self, request: &Request, page: CachedPage, access: Access);

    /// A page has no valid sector any more and leaves the cache.
    fn page_invalidated(&mut self, page: CachedPage);

    /// Sends a sub-request to a medium, or queues it; `slot` is its tag.
    fn issue(&mut self, ctx: &mut Ctx<'_>, medium: Medium, slot: u32, part: Request);

    fn sub_request_completed(&mut self, ctx: &mut Ctx<'_>, of: &PendingRequest, done: &Completion);

    /// All sub-requests of a request of the controller's own have completed.
    fn background_completed(&mut self, ctx: &mut Ctx<'_>, slot: u32);

    /// A host request is about to complete. Returns the copy of its data to promote, if any.
    fn before_completion(&mut self, _ctx: &mut Ctx<'_>, _of: &PendingRequest) -> Option<Request> {
        None
    }

    /// A host request has completed; the controller closes it or promotes `copy`.
    fn completed(&mut self, ctx: &mut Ctx<'_>, slot: u32, copy: Option<Request>);

    /// The metadata have been read after a power failure.
    fn recovered(&mut self, _ctx: &mut Ctx<'_>) {}

    /// Starts everything that can start now. Called at the end of every message.
    fn advance(&mut self, ctx: &mut Ctx<'_>);
}

/// The page size `bytes` in sectors.
///
/// # Errors
/// If `page_size` is not a size a directory can have.
pub fn page_sectors(bytes: u64) -> Result<u64, Vec<Problem>> {
    let sectors = bytes / SECTOR_BYTES;
    if bytes.is_multiple_of(SECTOR_BYTES) && (1..=PAGE_SECTORS_MAX).contains(&sectors) {
        return Ok(sectors);
    }
    let message = "must be a multiple of 512 bytes, at least 512 B and at most 32 KiB";
    Err(vec![Problem::new("page_size", message)])
}

/// Builds the policies of a controller; called again after a power failure, which they forget.
pub type PolicyBuilder<T> = Box<dyn Fn() -> Result<T, Vec<Problem>>>;

/// Builds policies after a power failure.
///
/// # Errors
/// The message of a component whose policies cannot be built.
pub fn rebuild<T>(build: &PolicyBuilder<T>) -> Result<T, String> {
    build().map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!("its policies could not be built again: {}", all.join("; "))
    })
}

/// A number of pages as events report it.
pub fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
