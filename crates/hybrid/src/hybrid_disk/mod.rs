//! Flash in front of a disk: the hybrid controller of konanki (configuration 2, section 3.3,
//! figures 3.3, 3.7, 3.8, 4.8 and 4.9) with exchangeable policies.
//!
//! Flash is a write cache: reads are never promoted, so every cached page is dirty. A read is
//! split into sub-requests to flash and to the disk. A write goes to flash; if the admission
//! policy rejects it, it bypasses the cache except for its pages that are cached already.
//!
//! - `serve`: host requests.
//! - `cleanup`: destaging cached pages.
//! - `dispatch`: dispatch queues.
//! - [`crate::paged_controller`]: the request path shared with the flash cache.
//!
//! A trim drops cached sectors, so they are never destaged, and is passed to the disk, which may
//! return zeros or older data afterwards (see `paged::trimmed`). A flush is passed to both media;
//! flash is non-volatile, so a flush destages nothing. Latency breakdown: time in dispatch queues
//! and behind conflicting requests is `Queue`; time behind cleanup, and waiting for a free page, is
//! `Destage`.
//!
//! Power failures: the spare area of a flash page names its disk page, so a write is durable with
//! its data at no extra cost. That a page has been *freed* needs a record, because a newer version
//! may bypass flash and the old one must not come back. With a journal that record is a page
//! written to flash before the freed page is reused. Without one the mapping survives by itself;
//! the paper does not say how.

mod cleanup;
mod dispatch;
mod serve;

use crate::paged_controller::{
    MetadataArea, PagedController, PagedCore, PolicyBuilder, Recovery, directory_bytes,
    page_sectors, rebuild,
};
use cleanup::Cleanups;
use dispatch::{DispatchQueue, HELD};
use hybridsim_cache::admission::{Admission, AdmissionEntry};
use hybridsim_cache::cleanup::{Cleanup, CleanupEntry};
use hybridsim_cache::paged::directory::{PAGE_SECTORS_MAX, PageDirectory};
use hybridsim_cache::paged::split::{Medium, Split};
use hybridsim_cache::replacement::{Access, Replacement, ReplacementEntry, policy_name};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem, Settings};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::schedule::idle_scheduler;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, Loader, PowerFailure, Request,
    RequestId, SECTOR_BYTES, Saver, SimTime, StateError,
};
use std::collections::VecDeque;

const JOURNAL_PAGES: u64 = 64;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "hybrid-disk",
        summary: "flash as a write cache in front of a disk, one device to the outside",
        origin: "konanki, configuration 2: sections 3.3 and 4.2. Unlike in figure 4.9 a write gets \
                 all of its pages before the first is written; there a cleanup may come between \
                 two pages",
        params: Parameters::PARAMS,
    },
    build,
)
.with_memory(directory_bytes);

hybridsim_config::params! {
    pub struct Parameters {
        pub flash: String = Kind::Component, required,
            "The flash device; all of its capacity is the cache.";
        pub disk: String = Kind::Component, required,
            "The disk; its capacity is that of the hybrid disk.";
        page_size: u64 = Kind::Bytes, default "\"4KiB\"",
            "Cache page size: a multiple of 512 bytes, at most 32 KiB.";
        admission: EntryChoice = Kind::Entry(AdmissionEntry::CATEGORY), default "\"threshold\"",
            "Admission policy: which writes go to flash.";
        replacement: EntryChoice = Kind::Entry(ReplacementEntry::CATEGORY), default "\"lru\""
            needs &[Needs::Not("cleanup", &["on-demand-complete", "idle-periodic"])],
            "Replacement policy: which pages a cleanup destages, when it does not destage all.";
        cleanup: EntryChoice = Kind::Entry(CleanupEntry::CATEGORY), default "\"low-watermark\"",
            "Cleanup policy: when pages are destaged, and how many. The thesis has \
             `on-demand-complete`, with which `replacement` has nothing to choose; drives and \
             flash caches on the market write back in the background.";
        pinned: Vec<Settings> = Kind::Tables(Range::PARAMS), default "[]",
            "Ranges that are pinned in flash once written, as `{ start = \"0B\", length = \"4MiB\" \
             }` (konanki, section 3.5); requests may also carry the flag themselves.";
        queue_depth: Option<u32> = Kind::Count { min: 1, max: 65_536 }, optional,
            "Requests of the host that the controller serves at a time; others wait in their \
             order. With 1 it is busy while it serves a request, as in figure 4.8; without it, \
             requests for different pages execute at once.";
        flash_queue_depth: u32 = Kind::Count { min: 1, max: 65_536 }, default "32",
            "Requests outstanding at the flash device.";
        disk_queue_depth: u32 = Kind::Count { min: 1, max: 65_536 }, default "32",
            "Requests outstanding at the disk.";
        disk_scheduler: EntryChoice = Kind::Entry(SchedulerEntry::CATEGORY), default "\"fcfs\"",
            "Scheduler of the dispatch queue of the disk.";
        destage_bytes: u64 = Kind::Bytes, default "\"128KiB\"",
            "Longest write to the disk while destaging, at least a page.";
        destage_depth: u32 = Kind::Count { min: 1, max: 4096 }, default "8",
            "Such writes in progress at once, including their reads from flash.";
        force_destage: bool = Kind::Flag, default "true",
            "Destage with forced writes (FUA), so that the data are on the medium before their \
             flash pages are freed; without it a power failure may lose data in the disk's write \
             cache.";
        journal: bool = Kind::Flag, default "false",
            "Record freed pages in a journal of 64 pages at the end of flash before reuse, and \
             read it after a power failure; without it the mapping survives at no cost.";
        trim_cleaned: bool = Kind::Flag, default "false",
            "Trim flash pages that have been destaged, so that the FTL need not keep their data; \
             the paper does not say whether its controller does.";
        merge_writes: bool = Kind::Flag, default "false",
            "Write adjacent pages to flash as one request; the paper writes page by page.";
    }
}

hybridsim_config::params! {
    struct Range {
        start: u64 = Kind::Bytes, required, "Start of the range.";
        length: u64 = Kind::Bytes, required, "Length of the range.";
    }
}

/// The pinned ranges: first sector, and the one after the last.
fn pinned_ranges(tables: &[Settings], problems: &mut Vec<Problem>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for Range { start, length } in tables.iter().map(Range::from_settings) {
        let whole = start.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES);
        match start.checked_add(length) {
            Some(end) if whole => ranges.push((start / SECTOR_BYTES, end / SECTOR_BYTES)),
            _ => problems.push(Problem::new("pinned", "ranges are in multiples of 512 bytes")),
        }
    }
    ranges
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let (flash, disk) = (&input.children[0], &input.children[1]);
    let page_sectors = page_sectors(params.page_size)?;
    let journal = MetadataArea::new(if params.journal { JOURNAL_PAGES } else { 0 });
    let pages = (flash.capacity / page_sectors).saturating_sub(journal.pages());
    if pages == 0 || pages >= u64::from(u32::MAX) {
        problems.push(Problem::new(
            "flash",
            format!("has {pages} pages of `page_size`; must be 1 to {}", u32::MAX - 1),
        ));
    }
    let pinned = pinned_ranges(&params.pinned, &mut problems);
    let destage_pages = params.destage_bytes / (page_sectors * SECTOR_BYTES);
    if destage_pages == 0 || destage_pages > u64::from(u32::MAX) / PAGE_SECTORS_MAX {
        let message = "must be at least one page, and less than 2 TiB";
        problems.push(Problem::new("destage_bytes", message));
    }
    let pages = pages as u32;
    let build_policies = Policies::builder(input.registry, &params, pages);
    let policies = keep(build_policies(), &mut problems);
    let (entry, own) = input.registry.chosen::<SchedulerEntry>(&params.disk_scheduler);
    let scheduler = keep((entry.build)(own), &mut problems);
    let (Some(policies), Some(scheduler), true) = (policies, scheduler, problems.is_empty()) else {
        return Err(problems);
    };
    let positioner = disk.positioner.clone();
    Ok(Box::new(HybridDisk {
        core: PagedCore::new(disk.capacity, PageDirectory::new(page_sectors, pages), journal),
        write_split: if params.merge_writes { Split::Write } else { Split::WritePages },
        pinned,
        queues: [
            DispatchQueue::fifo(Medium::Flash, params.flash_queue_depth),
            DispatchQueue::scheduled(Medium::Disk, params.disk_queue_depth, scheduler, positioner),
        ],
        policies,
        build_policies,
        decided: Decided::default(),
        cleanups: Cleanups::new(destage_pages as u32, params.destage_depth),
        force_destage: params.force_destage,
        trim_cleaned: params.trim_cleaned,
        queue_depth: params.queue_depth.unwrap_or(u32::MAX),
        waiting: VecDeque::new(),
        ready: VecDeque::new(),
        present: 0,
        idle_since: SimTime::ZERO,
        idle_timer: false,
    }))
}

/// The value, or its problems added to the others.
fn keep<T>(result: Result<T, Vec<Problem>>, problems: &mut Vec<Problem>) -> Option<T> {
    result.map_err(|more| problems.extend(more)).ok()
}

struct Policies {
    admission: Box<dyn Admission>,
    replacement: Box<dyn Replacement>,
    cleanup: Box<dyn Cleanup>,
    replacement_name: String,
}

/// Which policies have made a decision.
#[derive(Default)]
struct Decided {
    admission: bool,
    /// The admission policy that a power failure ended had distinguished writes.
    distinguished: bool,
    replacement: bool,
    cleanup: bool,
}

impl Decided {
    /// Those that have not, by parameter, with the reason.
    fn idle_policies(&self) -> Vec<(&'static str, &'static str)> {
        let replacement = match self.cleanup {
            true => "every cleanup destaged all pages, so none had to be chosen",
            false => "no page was destaged, so none had to be chosen",
        };
        let all = [
            (self.admission, "admission", "no write reached the cache"),
            (self.cleanup, "cleanup", "no page was destaged"),
            (self.replacement, "replacement", replacement),
        ];
        all.iter().filter(|it| !it.0).map(|&(_, key, why)| (key, why)).collect()
    }
}

impl Policies {
    fn builder(registry: &Registry, params: &Parameters, pages: u32) -> PolicyBuilder<Self> {
        fn chosen<E: Entry>(registry: &Registry, choice: &EntryChoice) -> (E, Settings) {
            let (entry, own) = registry.chosen(choice);
            (entry, own.clone())
        }
        let (admission, of_admission) = chosen::<AdmissionEntry>(registry, &params.admission);
        let (replacement, of_replacement) =
            chosen::<ReplacementEntry>(registry, &params.replacement);
        let replacement_name = policy_name(&replacement, &of_replacement);
        let (cleanup, of_cleanup) = chosen::<CleanupEntry>(registry, &params.cleanup);
        Box::new(move || {
            let mut problems = Vec::new();
            let admission = keep((admission.build)(&of_admission), &mut problems);
            let replacement = keep((replacement.build)(&of_replacement, pages), &mut problems);
            let cleanup = keep((cleanup.build)(&of_cleanup, pages), &mut problems);
            match (admission, replacement, cleanup) {
                (Some(admission), Some(replacement), Some(cleanup)) => {
                    let replacement_name = replacement_name.clone();
                    Ok(Self { admission, replacement, cleanup, replacement_name })
                }
                _ => Err(problems),
            }
        })
    }
}

/// The controller.
pub struct HybridDisk {
    core: PagedCore,
    write_split: Split,
    /// Ranges that are pinned once written.
    pinned: Vec<(u64, u64)>,
    /// Dispatch queues, by [`Medium`].
    queues: [DispatchQueue; 2],
    policies: Policies,
    build_policies: PolicyBuilder<Policies>,
    decided: Decided,
    cleanups: Cleanups,
    force_destage: bool,
    trim_cleaned: bool,
    queue_depth: u32,
    /// Requests of the host beyond `queue_depth`.
    waiting: VecDeque<u32>,
    /// Requests that may start once an exclusive cleanup has ended.
    ready: VecDeque<u32>,
    /// Host requests that have not completed.
    present: u32,
    /// Completion time of the last host request.
    idle_since: SimTime,
    idle_timer: bool,
}

impl Component for HybridDisk {
    fn capacity(&self) -> u64 {
        self.core.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("cache_pages", f64::from(self.core.directory.pages)),
                ("page_sectors", self.core.directory.page_sectors as f64),
            ],
            idle_policies: {
                let mut idle = self.decided.idle_policies();
                if self.decided.admission && !self.decided.distinguished {
                    idle.extend(self.policies.admission.idle().map(|why| ("admission", why)));
                }
                idle.extend(idle_scheduler("disk_scheduler", self.queues[1].chose()));
                idle
            },
            ..ComponentInfo::default()
        }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.serve(ctx, id, request);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.child_completed(ctx, done);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        self.timer_expired(ctx, token != HELD);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl PowerFailure for HybridDisk {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        // Policies hold their state in memory: they start again with the pages that remain.
        self.decided.distinguished |= self.policies.admission.idle().is_none();
        self.policies = rebuild(&self.build_policies)?;
        self.core.lose_power();
        let mut trimmed = Vec::new();
        self.core.directory.retired(&mut trimmed);
        trimmed.into_iter().for_each(|slot| self.core.directory.release(slot));
        for page in self.core.directory.iter() {
            if !self.core.directory.slot(page.slot).pinned {
                self.policies.replacement.update(page, Access::Add);
            }
        }
        self.queues.iter_mut().for_each(DispatchQueue::clear);
        self.cleanups.stop();
        self.waiting.clear();
        self.ready.clear();
        (self.present, self.idle_timer) = (0, false);
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.idle_since = ctx.now();
        self.recover(ctx);
    }
}

impl Checkpoint for HybridDisk {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.core.save(to)?;
        self.queues.iter().try_for_each(|queue| queue.save(to))?;
        self.policies.admission.save(to)?;
        self.policies.replacement.save(to)?;
        self.policies.cleanup.save(to)?;
        to.put(&(self.idle_since, self.idle_timer));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.core.restore(from)?;
        self.queues.iter_mut().try_for_each(|queue| queue.restore(from))?;
        self.policies.admission.restore(from)?;
        self.policies.replacement.restore(from)?;
        self.policies.cleanup.restore(from)?;
        (self.idle_since, self.idle_timer) = from.take()?;
        Ok(())
    }
}
