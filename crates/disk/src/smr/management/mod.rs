//! Who manages the shingled bands of a disk: the host, the drive, or both. One file each.
//!
//! An entry chooses the parts of the disk: zones that the host sees, and the persistent cache for
//! writes that cannot be made in place.

mod drive_managed;
mod host_aware;
mod host_managed;

use super::streams::StreamRule;
use hybridsim_config::param::{EntryChoice, Kind, Problem, Settings};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::{SECTOR_BYTES, SimDuration};

/// A registered way to manage bands.
#[derive(Clone, Copy)]
pub struct ManagementEntry {
    pub description: Description,
    /// The parts of the disk, or all problems with the parameters.
    pub parts: fn(&Settings) -> Result<Parts, Vec<Problem>>,
}

hybridsim_config::entry!(ManagementEntry, "smr-management");

/// All of them.
pub const ENTRIES: &[ManagementEntry] =
    &[drive_managed::ENTRY, host_aware::ENTRY, host_managed::ENTRY];

/// Which writes go to their band directly; the others go to the persistent cache.
#[derive(Clone, Copy, Debug)]
pub enum Placement {
    /// Sequential streams.
    Streams(StreamRule),
    /// Those at the write pointer of their zone.
    Preferred,
    /// Those at the write pointer of their zone, and all others are refused.
    Required,
}

/// The parts of a shingled disk.
#[derive(Clone, Debug)]
pub struct Parts {
    pub placement: Placement,
    /// Sectors of a band or zone.
    pub band: u32,
    /// Zones that hold no shingled tracks, before the others.
    pub conventional: u32,
    pub open_max: Option<u32>,
    /// Time of a command that does not access the medium.
    pub command_time: SimDuration,
    /// The share of the bands that hold data before the run.
    pub fill: f64,
    pub cache: Option<CacheParts>,
}

/// The persistent cache and its cleaning.
#[derive(Clone, Copy, Debug)]
pub struct CacheParts {
    pub sectors: u64,
    pub records_max: usize,
    /// Sectors of a header.
    pub header: u64,
    pub idle_after: SimDuration,
    /// Sectors that are read or written at a time to clean a band.
    pub step: u32,
    /// Sectors of the log that are read after a power failure.
    pub recovery: u64,
}

hybridsim_config::params! {
    /// Zones that the host sees.
    pub struct ZoneParameters {
        pub zone_size: u64 = Kind::Bytes, default "\"256MiB\"",
            "Size of a zone, in whole physical sectors of 4 KiB.";
        pub conventional_zones: u32 = Kind::Count { min: 0, max: 1 << 24 }, default "0",
            "Zones at the start that are not shingled: they are written in any order.";
        pub max_open_zones: Option<u32> = Kind::Count { min: 1, max: 1 << 24 }, optional,
            "Most zones that are open at a time; a write to another closes the least recently used \
             of those opened implicitly. Without it there is no limit.";
        pub command_time: SimDuration = Kind::Duration, default "\"50us\"",
            "Time of a command that does not access the medium: zone management, a refused \
             request, a read of sectors that are not written; at least 1 ns. Assumed.";
        pub precondition_fill: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0",
            "Share of the zones that are full before the run, from the first on.";
    }
}

hybridsim_config::params! {
    /// The persistent cache.
    pub struct CacheParameters {
        pub cache_size: u64 = Kind::Bytes, default "\"20GB\"",
            "Size of the persistent cache, a log at the start of the device, which is its outer \
             diameter: at least a band and a header.";
        pub cache_records: usize = Kind::Count { min: 1, max: 1 << 26 }, default "200000",
            "Most writes in the persistent cache: entries of its map. It is full when they, or \
             its space, are used up.";
        pub cache_header: u64 = Kind::Bytes, default "\"4KiB\"",
            "Written to the log with the data of writes that are appended together: those that \
             arrived while the one before was written. Assumed.";
        pub clean_after: SimDuration = Kind::Duration, default "\"1s\"",
            "Idle time after which the drive cleans: band after band, until a request arrives.";
        pub clean_step: u64 = Kind::Bytes, default "\"8MiB\"",
            "A band is read, and written, in steps of this size; requests are served in between. \
             Assumed.";
        pub recovery_read: u64 = Kind::Bytes, default "\"64MiB\"",
            "What is read of the log after a power failure, if it holds as much, before requests \
             are served: the writes since the map was last saved. Assumed.";
    }
}

/// Whole sectors, at least one, of a size.
fn sectors(key: &'static str, bytes: u64, problems: &mut Vec<Problem>) -> u64 {
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        problems.push(Problem::new(key, format!("{bytes} bytes: must be whole sectors of 512")));
    }
    bytes / SECTOR_BYTES
}

/// Sectors of a band, in whole physical sectors.
fn band(key: &'static str, bytes: u64, problems: &mut Vec<Problem>) -> u32 {
    const PHYSICAL: u64 = super::PHYSICAL_SECTORS as u64 * SECTOR_BYTES;
    if bytes == 0 || !bytes.is_multiple_of(PHYSICAL) {
        let message = format!("{bytes} bytes: must be a multiple of 4 KiB, a physical sector");
        problems.push(Problem::new(key, message));
    }
    u32::try_from(bytes / SECTOR_BYTES).unwrap_or_else(|_| {
        problems.push(Problem::new(key, "must be below 2 TiB"));
        1
    })
}

impl CacheParameters {
    fn parts(&self, band: u32, problems: &mut Vec<Problem>) -> CacheParts {
        let mut of = |key, bytes| sectors(key, bytes, problems);
        let size = of("cache_size", self.cache_size);
        let header = match self.cache_header {
            0 => 0,
            bytes => of("cache_header", bytes),
        };
        let step = of("clean_step", self.clean_step);
        // A group is one request, whose sectors are counted in 32 bits.
        if header + u64::from(band) > u64::from(u32::MAX / 2) {
            let message = "must be below 1 TiB, together with a band";
            problems.push(Problem::new("cache_header", message));
        }
        if size < header + u64::from(band) {
            let message = "must hold at least a band and `cache_header`";
            problems.push(Problem::new("cache_size", message));
        }
        CacheParts {
            sectors: size,
            records_max: self.cache_records,
            header,
            idle_after: self.clean_after,
            step: u32::try_from(step).unwrap_or(u32::MAX),
            recovery: self.recovery_read / SECTOR_BYTES,
        }
    }
}

impl ZoneParameters {
    /// The parts of a disk without a persistent cache.
    fn parts(&self, placement: Placement, problems: &mut Vec<Problem>) -> Parts {
        Parts {
            placement,
            band: band("zone_size", self.zone_size, problems),
            conventional: self.conventional_zones,
            open_max: self.max_open_zones,
            command_time: self.command_time.max(SimDuration::from_ns(1)),
            fill: self.precondition_fill,
            cache: None,
        }
    }
}

fn result(parts: Parts, problems: Vec<Problem>) -> Result<Parts, Vec<Problem>> {
    if problems.is_empty() { Ok(parts) } else { Err(problems) }
}

/// The kind of the parameter that chooses one.
pub const KIND: Kind = Kind::Entry(ManagementEntry::CATEGORY);

/// The parts that a disk chooses. Problems name its key `management`.
pub fn chosen(registry: &Registry, choice: &EntryChoice) -> Result<Parts, Vec<Problem>> {
    let (entry, settings) = registry.chosen::<ManagementEntry>(choice);
    (entry.parts)(settings).map_err(|problems| {
        problems.iter().map(|it| Problem::new("management", it.to_string())).collect()
    })
}
