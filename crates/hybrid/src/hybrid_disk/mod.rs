//! Flash in front of a disk: the hybrid controller of konanki (configuration 2, section 3.3,
//! figures 3.3, 3.7, 3.8, 4.8 and 4.9) with its policies as plugs.
//!
//! Flash is a write cache: reads are never promoted, so every cached page is dirty. A read is cut
//! into runs on flash and on the disk, and is done when all its runs are. A write goes to flash,
//! or, when the admission policy refuses it, to the disk but for its pages that are cached.
//!
//! - `serve`: requests from above.
//! - `clean`: writing cached pages back.
//! - `lane`: dispatch queues.
//!
//! Invariant: flash holds the newest data of every sector marked in the cache, the disk that of
//! all others.
//!
//! A trim drops cached sectors, so that they are never written back, and is passed on to the disk,
//! which may answer zeros from then on or what it was last sent (see `paged::trimmed`). A flush is
//! passed on to both media: what flash has acknowledged it keeps, so nothing is destaged for it.
//! Time in dispatch queues and behind conflicting requests is told as `Queue`; time behind
//! cleaning, and waiting for a free page, as `Destage`.

mod clean;
mod lane;
mod power_cut;
mod serve;

use clean::Cleaning;
use hybridsim_cache::admission::{Admission, AdmissionEntry};
use hybridsim_cache::cleanup::{Cleanup, CleanupEntry};
use hybridsim_cache::paged::cache::{Cache, PAGE_SECTORS_MAX};
use hybridsim_cache::paged::cut::{Cut, Run};
use hybridsim_cache::paged::flow::Flow;
use hybridsim_cache::paged::trimmed::Trimmed;
use hybridsim_cache::replacement::{Replacement, ReplacementEntry};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, PowerFailure, Request, RequestId, SECTOR_BYTES,
    SimTime,
};
use lane::{HELD, Lane, Order};
use power_cut::{Durability, JOURNAL_PAGES};
use serve::Parent;
use slab::Slab;
use std::collections::VecDeque;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "hybrid-disk",
        summary: "flash as a write cache in front of a disk, one device to the outside",
        origin: "konanki, configuration 2: sections 3.3 and 4.2",
        params: PARAMS,
    },
    build,
};

const PARAMS: &[Param] = &[
    Param::required("flash", Kind::Component, "The cache; all of its capacity is used"),
    Param::required("disk", Kind::Component, "The backing store; its capacity is the hybrid's"),
    Param::with(
        "page_bytes",
        Kind::Bytes,
        "\"4KiB\"",
        "What the cache is managed in: a multiple of 512 bytes up to 32 KiB",
    ),
    Param::with(
        "admission",
        Kind::Entry(AdmissionEntry::CATEGORY),
        "\"threshold\"",
        "Which writes go to flash",
    ),
    Param::with(
        "replacement",
        Kind::Entry(ReplacementEntry::CATEGORY),
        "\"lru\"",
        "Which pages go first when not all are written back",
    ),
    Param::with(
        "cleanup",
        Kind::Entry(CleanupEntry::CATEGORY),
        "\"on-demand-complete\"",
        "When pages are written back, and how many",
    ),
    Param::with(
        "pinned",
        Kind::Tables(RANGE),
        "[]",
        "Ranges the host wants to stay in flash once written, as `{ start = \"0B\", length = \
         \"4MiB\" }` (konanki, section 3.5); requests may also carry the flag themselves",
    ),
    Param::with(
        "flash_depth",
        Kind::Count { min: 1, max: 65_536 },
        "32",
        "Requests at the flash at a time",
    ),
    Param::with(
        "disk_depth",
        Kind::Count { min: 1, max: 65_536 },
        "32",
        "Requests at the disk at a time",
    ),
    Param::with(
        "disk_scheduler",
        Kind::Entry(SchedulerEntry::CATEGORY),
        "\"fcfs\"",
        "Which request of the disk dispatch queue goes next",
    ),
    Param::with(
        "destage_bytes",
        Kind::Bytes,
        "\"128KiB\"",
        "The longest write to the disk while cleaning, at least a page",
    ),
    Param::with(
        "destage_depth",
        Kind::Count { min: 1, max: 4096 },
        "8",
        "Such writes in progress at a time, reading them from flash included",
    ),
    Param::with(
        "force_destage",
        Kind::Flag,
        "true",
        "Have the disk put destaged data on its medium before flash gives them up, whatever its \
         write cache does; without it a power failure may lose them",
    ),
    Param::with(
        "journal",
        Kind::Flag,
        "false",
        "Note freed pages in a journal of 64 pages at the end of flash before they are used \
         again, and read it after a power failure; else the map costs nothing and survives",
    ),
    Param::with(
        "merge_writes",
        Kind::Flag,
        "false",
        "Write neighbouring pages to flash as one request; the paper writes page by page",
    ),
];

const RANGE: &[Param] = &[
    Param::required("start", Kind::Bytes, "Where it begins"),
    Param::required("length", Kind::Bytes, "How long it is"),
];

/// The ranges that are pinned, in sectors: first, and first after.
fn pinned_ranges(input: &BuildInput<'_>, problems: &mut Vec<Problem>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for table in input.settings.tables("pinned") {
        let (start, length) = (table.bytes("start"), table.bytes("length"));
        let whole = start.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES);
        match start.checked_add(length) {
            Some(end) if whole => ranges.push((start / SECTOR_BYTES, end / SECTOR_BYTES)),
            _ => problems.push(Problem::new("pinned", "ranges are in multiples of 512 bytes")),
        }
    }
    ranges
}

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let (flash, disk) = (&input.children[0], &input.children[1]);
    let page_bytes = settings.bytes("page_bytes");
    let page_sectors = page_bytes / SECTOR_BYTES;
    let whole = page_bytes.is_multiple_of(SECTOR_BYTES);
    if !whole || page_sectors == 0 || page_sectors > PAGE_SECTORS_MAX {
        let message = "must be a multiple of 512 bytes, at least 512 B and at most 32 KiB";
        return Err(vec![Problem::new("page_bytes", message)]);
    }
    let journal = settings.flag("journal");
    let journal_pages = if journal { JOURNAL_PAGES } else { 0 };
    let pages = (flash.capacity / page_sectors).saturating_sub(journal_pages);
    if pages == 0 || pages >= u64::from(u32::MAX) {
        problems.push(Problem::new(
            "flash",
            format!("holds {pages} pages of page_bytes; must be 1 to {}", u32::MAX - 1),
        ));
    }
    let pinned = pinned_ranges(input, &mut problems);
    let destage_pages = settings.bytes("destage_bytes") / page_bytes;
    if destage_pages == 0 || destage_pages > u64::from(u32::MAX) / PAGE_SECTORS_MAX {
        let message = "must be at least one page, and less than 2 TiB";
        problems.push(Problem::new("destage_bytes", message));
    }
    let pages = pages as u32;
    let fresh = Policies::builder(input, pages);
    let policies = keep(fresh(), &mut problems);
    let (scheduler, own) = input.chosen::<SchedulerEntry>("disk_scheduler");
    let scheduler = keep((scheduler.build)(own), &mut problems);
    let (Some(policies), Some(scheduler), true) = (policies, scheduler, problems.is_empty()) else {
        return Err(problems);
    };
    let depth = |name| settings.count(name) as u32;
    let by_scheduler = Order::Scheduled(scheduler, disk.positioner.clone());
    Ok(Box::new(HybridDisk {
        capacity: disk.capacity,
        write_cut: if settings.flag("merge_writes") { Cut::Write } else { Cut::WritePages },
        cache: Cache::new(page_sectors, pages),
        pinned,
        flow: Flow::default(),
        lanes: [
            Lane::new(0, depth("flash_depth"), Order::Fifo(VecDeque::new())),
            Lane::new(1, depth("disk_depth"), by_scheduler),
        ],
        policies,
        fresh,
        cleaning: Cleaning::new(destage_pages as u32, depth("destage_depth")),
        parents: Slab::new(),
        trimmed: Trimmed::default(),
        durability: Durability::new(settings.flag("force_destage"), journal),
        runs: Vec::new(),
        ready: VecDeque::new(),
        short_of_space: VecDeque::new(),
        executing: 0,
        present: 0,
        idle_since: SimTime::ZERO,
        idle_timer: false,
        dirty_told: 0,
    }))
}

/// The value, or its problems added to the others.
fn keep<T>(result: Result<T, Vec<Problem>>, problems: &mut Vec<Problem>) -> Option<T> {
    result.map_err(|more| problems.extend(more)).ok()
}

/// Builds policies from the same parameters again and again.
type Fresh = Box<dyn Fn() -> Result<Policies, Vec<Problem>>>;

/// The policies.
struct Policies {
    admission: Box<dyn Admission>,
    replacement: Box<dyn Replacement>,
    cleanup: Box<dyn Cleanup>,
}

impl Policies {
    fn builder(input: &BuildInput<'_>, pages: u32) -> Fresh {
        fn chosen<E: Entry>(input: &BuildInput<'_>) -> (E, Settings) {
            let (entry, own) = input.chosen::<E>(E::CATEGORY);
            (entry, own.clone())
        }
        let (admission, of_admission) = chosen::<AdmissionEntry>(input);
        let (replacement, of_replacement) = chosen::<ReplacementEntry>(input);
        let (cleanup, of_cleanup) = chosen::<CleanupEntry>(input);
        Box::new(move || {
            let mut problems = Vec::new();
            let admission = keep((admission.build)(&of_admission), &mut problems);
            let replacement = keep((replacement.build)(&of_replacement, pages), &mut problems);
            let cleanup = keep((cleanup.build)(&of_cleanup, pages), &mut problems);
            match (admission, replacement, cleanup) {
                (Some(admission), Some(replacement), Some(cleanup)) => {
                    Ok(Self { admission, replacement, cleanup })
                }
                _ => Err(problems),
            }
        })
    }
}

/// The controller.
pub struct HybridDisk {
    capacity: u64,
    write_cut: Cut,
    cache: Cache,
    /// Ranges that stay in flash once written.
    pinned: Vec<(u64, u64)>,
    flow: Flow,
    /// Dispatch queues, by [`Medium`](hybridsim_cache::paged::cut::Medium).
    lanes: [Lane; 2],
    policies: Policies,
    /// Builds policies that know nothing yet.
    fresh: Fresh,
    cleaning: Cleaning,
    parents: Slab<Parent>,
    trimmed: Trimmed,
    durability: Durability,
    /// Reused for every cut.
    runs: Vec<Run>,
    /// Free to go, but everything waits for cleaning.
    ready: VecDeque<u32>,
    /// Writes that found too few free pages.
    short_of_space: VecDeque<u32>,
    /// Requests from above with something in a dispatch queue or at a medium.
    executing: u32,
    /// Requests from above, whatever they do.
    present: u32,
    /// When the last request from above was done.
    idle_since: SimTime,
    idle_timer: bool,
    dirty_told: u32,
}

impl Component for HybridDisk {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("cache_pages", f64::from(self.cache.pages)),
                ("page_sectors", self.cache.page_sectors as f64),
            ],
            ..ComponentInfo::default()
        }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.durability.holds_back(id, request) {
            return;
        }
        self.take(ctx, id, request);
        self.settle(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if self.durability.recovering() {
            self.recovered(ctx, done);
            return;
        }
        self.lanes[done.child].done();
        self.child_done(ctx, done);
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token != HELD {
            self.idle_timer = false;
            self.clean_when_idle(ctx);
        }
        self.settle(ctx);
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for HybridDisk {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.lose_power()
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.recover(ctx);
    }
}
