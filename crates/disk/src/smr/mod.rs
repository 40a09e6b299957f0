//! Shingled magnetic recording: a layer over a disk whose tracks overlap in bands, so that a band
//! is written in order or as a whole.
//!
//! [`management`] chooses what the layer consists of: zones that the host sees, with the states of
//! [`hybridsim_engine::zone_table`], and the persistent cache ([`cache`]) for writes that a band
//! cannot take in place. [`serve`] serves requests, [`journal`] appends to the cache, [`clean`]
//! moves its data to their bands, [`streams`] finds the writes of a drive-managed disk that bypass
//! it. The child is the mechanics: the cache is at its start, the bands follow.

mod cache;
mod clean;
mod journal;
mod management;
mod recovery;
mod serve;
mod streams;
mod zoned;

pub use management::{ENTRIES, ManagementEntry};

use cache::{Extent, PersistentCache};
use clean::Cleaning;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::zone_table::{ZONE_SECTORS, Zone, ZoneLimits, ZoneStatus, ZoneTable};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, Request, RequestId, SECTOR_BYTES, SimTime, Zoned,
};
use journal::Journal;
use management::{CacheParts, Parts, Placement};
use serve::{HostRequest, Job};
use slab::Slab;
use std::collections::VecDeque;
use streams::Streams;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "smr-disk",
        summary: "Shingled recording over a disk: drive-managed, host-aware or host-managed.",
        origin: "A. Aghayev and P. Desnoyers, Skylight, FAST 2015; INCITS 536 (ZBC)",
        params: Parameters::PARAMS,
    },
    build,
)
.with_memory(memory);

hybridsim_config::params! {
    struct Parameters {
        device: String = Kind::Component, required,
            "The disk: its mechanics, buffer and power, as without shingling.";
        management: EntryChoice = management::KIND, default "\"drive-managed\"",
            "Who manages the bands.";
    }
}

/// Sectors of a physical sector: zones are written in whole ones.
const PHYSICAL_SECTORS: u32 = 8;

/// The most bands of a disk.
const BANDS_MAX: u64 = 1 << 24;

/// Memory of a write in the log: its record, and its part of the map.
const RECORD_BYTES: u64 = 96;

/// Memory of the tables of a disk whose log is full.
fn memory(settings: &Settings, bytes_of: &dyn Fn(&str) -> u64) -> u64 {
    let Parameters { device, management } = Parameters::from_settings(settings);
    let management = management.settings;
    let band = management.bytes_opt("band_size").or_else(|| management.bytes_opt("zone_size"));
    let bands = bytes_of(&device) / band.unwrap_or(u64::MAX).max(1);
    let records = management.count_opt("cache_records").unwrap_or(0);
    bands * size_of::<Zone>() as u64 + records * RECORD_BYTES
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let parts = management::chosen(input.registry, &params.management)?;
    let child = input.children[0].capacity;
    let cache = parts.cache.map_or(0, |it| it.sectors);
    let bands = child.saturating_sub(cache) / u64::from(parts.band);
    let problem = |message: String| Err(vec![Problem::new("management", message)]);
    if bands <= u64::from(parts.conventional) {
        return problem(format!(
            "the {child} sectors of the device leave {bands} bands or zones beside the cache, and \
             at least {} are needed; use a larger device, or smaller sizes",
            u64::from(parts.conventional) + 1
        ));
    }
    if bands > BANDS_MAX {
        return problem(format!("{bands} bands or zones; at most {BANDS_MAX} are possible"));
    }
    Ok(Box::new(SmrDisk::new(parts, bands as u32)))
}

hybridsim_engine::statistics! {
    /// A number that the disk reports.
    enum Statistic after ZoneStatus::NAMES {
        /// The disk closes a zone, so that it can open another.
        ImplicitClose = "implicitly_closed_zones",
        /// Zones open from now on.
        Open = "open_zones",
        /// Bytes of a write to the persistent cache.
        Cached = "cached_bytes",
        /// Bytes written to the log together, with their header.
        Logged = "log_bytes",
        /// Bytes of the log in use from now on.
        Used = "log_used_bytes",
        /// Bytes of a write to its band.
        Direct = "direct_bytes",
        /// A write that waits for space in the persistent cache.
        Stalled = "stalled_writes",
        /// Bytes that were in the cache, of a band that has been cleaned.
        Cleaned = "cleaned_bytes",
        /// Bytes read to clean a band.
        CleaningRead = "cleaning_read_bytes",
        /// Bytes written to clean a band.
        CleaningWrite = "cleaning_write_bytes",
        /// Time to clean a band, in microseconds.
        CleaningTime = "cleaning_us",
    }
}

/// The part of the disk for writes that its bands do not take in place.
struct Cache {
    parts: CacheParts,
    map: PersistentCache,
    journal: Journal,
    streams: Streams,
    /// Bands of which a part was written directly over data that have to be written again.
    torn: VecDeque<u32>,
    cleaning: Option<Cleaning>,
    /// The end of the last request.
    idle_since: SimTime,
    timer_set: bool,
}

/// The disk.
pub struct SmrDisk {
    parts: Parts,
    /// The bands, in sectors; without zones for the host, only how far they are written counts.
    bands: ZoneTable,
    cache: Option<Cache>,
    hosts: Slab<HostRequest>,
    jobs: Slab<Job>,
    locks: RangeLocks,
    /// Jobs whose locks were granted and that are to be started.
    granted: VecDeque<u32>,
    /// Kept for its memory.
    extents: Vec<Extent>,
    /// Requests that arrived during recovery.
    waiting: VecDeque<(RequestId, Request)>,
    recovering: Option<SimTime>,
}

/// What a request to the child is for, in the low bits of its tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A part of a job.
    Part = 0,
    /// A flush for the host.
    Flush = 1,
    /// A group of writes to the log.
    Log = 2,
    /// A step of cleaning.
    Clean = 3,
    /// The log after a power failure.
    Recovery = 4,
}

const PURPOSE_BITS: u32 = 3;

impl Purpose {
    const fn tag(self, number: usize) -> u64 {
        (number as u64) << PURPOSE_BITS | self as u64
    }
}

/// Wakes.
const IDLE: u64 = 0;
const NEXT_BAND: u64 = 1;

impl SmrDisk {
    fn new(parts: Parts, bands: u32) -> Self {
        let limits = ZoneLimits {
            capacity: parts.band,
            open_max: parts.open_max.unwrap_or(u32::MAX),
            active_max: u32::MAX,
            random: None,
        };
        let mut table = ZoneTable::new(bands, limits);
        let zones = bands - parts.conventional;
        let full = (f64::from(zones) * parts.fill).round() as u32;
        for band in parts.conventional..parts.conventional + full {
            table.fill(band, parts.band);
        }
        let cache = parts.cache.map(|it| Cache {
            parts: it,
            map: PersistentCache::new(it.sectors, it.records_max, it.header),
            journal: Journal::default(),
            streams: Streams::default(),
            torn: VecDeque::new(),
            cleaning: None,
            idle_since: SimTime::ZERO,
            timer_set: false,
        });
        Self {
            parts,
            bands: table,
            cache,
            hosts: Slab::new(),
            jobs: Slab::new(),
            locks: RangeLocks::default(),
            granted: VecDeque::new(),
            extents: Vec::new(),
            waiting: VecDeque::new(),
            recovering: None,
        }
    }

    /// Whether the host sees zones.
    const fn is_zoned(&self) -> bool {
        !matches!(self.parts.placement, Placement::Streams(_))
    }

    const fn band_of(&self, lba: u64) -> u32 {
        (lba / self.parts.band as u64) as u32
    }

    const fn band_start(&self, band: u32) -> u64 {
        band as u64 * self.parts.band as u64
    }

    /// Place of a sector on the child.
    fn home(&self, lba: u64) -> u64 {
        self.parts.cache.map_or(0, |it| it.sectors) + lba
    }
}

impl Component for SmrDisk {
    fn capacity(&self) -> u64 {
        self.band_start(self.bands.len())
    }

    fn info(&self) -> ComponentInfo {
        let mut constants = vec![
            ("bands", f64::from(self.bands.len())),
            ("band_bytes", f64::from(self.parts.band) * SECTOR_BYTES as f64),
        ];
        if self.is_zoned() {
            constants.push((ZONE_SECTORS, f64::from(self.parts.band)));
            constants.push(("conventional_zones", f64::from(self.parts.conventional)));
        }
        ComponentInfo {
            kind: ENTRY.description.name,
            custom: STATISTIC_NAMES,
            constants,
            ..ComponentInfo::default()
        }
    }

    fn accepts_zone_commands(&self) -> bool {
        self.is_zoned()
    }

    fn zones(&self) -> Option<&dyn Zoned> {
        self.is_zoned().then_some(self as &dyn Zoned)
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.set_idle_timer(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.recovering.is_some() {
            self.waiting.push_back((id, *request));
        } else {
            self.arrive(ctx, id, request);
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let number = (done.tag >> PURPOSE_BITS) as usize;
        match done.tag & ((1 << PURPOSE_BITS) - 1) {
            tag if tag == Purpose::Part as u64 => self.part_done(ctx, number, done),
            tag if tag == Purpose::Flush as u64 => self.end_host(ctx, number, Some(done)),
            tag if tag == Purpose::Log as u64 => self.logged(ctx, done),
            tag if tag == Purpose::Clean as u64 => self.clean_step_done(ctx, done),
            _ => self.recovered(ctx, done),
        }
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        match token {
            IDLE => self.idle_timer_expired(ctx),
            _ => self.clean_if_idle(ctx),
        }
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}
