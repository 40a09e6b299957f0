//! A drive with a non-volatile cache that the host controls by ATA-8 commands (bisson-fqueue,
//! section II.B; ATA8-ACS, NV cache feature set).
//!
//! The host pins ranges ([`Command::Pin`]); requests for pinned sectors are served by the cache.
//! The drive caches other sectors in its unpinned set: in the NV cache power mode all writes go
//! there while space is free, and the disk is stopped ([`spindle`]).
//!
//! Rules where the standard is silent:
//! - The data of a pinned sector stay on the medium until they are written to the cache.
//! - Unpinned sectors that only the cache holds join the unpinned set, which is destaged on
//!   command; a host that writes them to the medium itself, as in bisson-fqueue, has their data
//!   evicted.
//! - A trim of cached sectors changes nothing; it is passed to the disk for the others.
//! - [`Flags::PAST_CACHE`] writes the medium and leaves the cache as it is: a host that does so to
//!   pinned sectors unpins them next.
//!
//! All data in the cache, pinned or not, survive a power failure: the spare area of a flash page
//! names its sectors, and unpinning is durable when it completes (assumed). Pinned ranges without
//! data and the power mode do not survive.

mod extents;
mod read_cache;
mod serve;
mod spindle;
#[cfg(test)]
mod tests;
mod throttle;

pub use extents::{Extent, Extents};

use extents::Piece;
use hybridsim_cache::paged::locks::PageLocks;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Checkpoint, Command, Completion, Component, ComponentInfo, Ctx, Loader, PowerFailure, Request,
    RequestId, SECTOR_BYTES, Saver, SimDuration, SimTime, StateError,
};
use read_cache::CachedReads;
use serve::Job;
use slab::Slab;
use spindle::Spindle;
use std::rc::Rc;
use throttle::Budget;

/// The constant with the size of the NV cache.
pub const NV_CACHE_SECTORS: &str = "nv_cache_sectors";

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "nv-cache-disk",
        summary: "a disk with a flash cache that the host controls by ATA-8 NV cache commands",
        origin: "bisson-fqueue, section II.B; T13 ATA8-ACS, NV cache feature set",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::choices! {
    /// Writes that are cached in the power mode.
    enum CachedWrites { Always = "always", Standby = "standby" }
}

hybridsim_config::params! {
    pub struct Parameters {
        pub flash: String = Kind::Component, required, "The NV cache.";
        pub disk: String = Kind::Component, required,
            "The disk; its capacity is that of the drive.";
        command_time: SimDuration = Kind::Duration, default "\"10us\"",
            "Processing time of an NV cache command; microseconds according to bisson-fqueue.";
        entry_time: SimDuration = Kind::Duration, default "\"1us\"",
            "Added for each LBA range entry of at most 65,535 sectors (assumed).";
        size: Option<u64> = Kind::Bytes, optional,
            "Size of the NV cache in whole sectors of 512 bytes; all of the flash when absent. \
             Flash in excess of it keeps fragmentation low, so that a request is one flash access, \
             as in bisson-fqueue.";
        spin_down_after: SimDuration = Kind::Duration, default "\"0ns\"",
            "In the NV cache power mode: idle time after which the disk stops.";
        artificial_idle: bool = Kind::Flag, default "false"
            needs &[Needs::above_zero("spin_down_after")],
            "In the power mode: only reads end an idle period, as writes can go to the cache; \
             otherwise all requests of the host do.";
        cache_writes: CachedWrites = Kind::Choice(CachedWrites::NAMES), default "always",
            "In the power mode: writes go to the cache while there is space, or only while the \
             disk is in standby.";
        cache_reads: CachedReads = Kind::Choice(CachedReads::NAMES), default "none",
            "In the power mode: read misses that are cached; spin-up: those that find the disk \
             stopped.";
        read_share: f64 = SHARE, default "0.5" needs &[Needs::Not("cache_reads", &["none"])],
            "Share of the cache that cached reads may occupy (assumed).";
        spin_up_at: Option<f64> = SHARE, optional,
            "In the power mode: dirty share of the cache, pinned data excluded, at which a stopped \
             disk is started in advance; without, the first write that does not fit starts it.";
        write_rate_max: Option<u64> = Kind::Rate, optional,
            "In the power mode: long-term rate at which requests are cached, for endurance; bursts \
             up to the size of the cache are allowed. Requests beyond it go to the disk.";
    }
}

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };

/// Sectors an LBA range entry describes at most: its length has 16 bits.
pub const ENTRY_SECTORS_MAX: u64 = 65_535;

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let flash = input.children[0].capacity;
    let size = params.sectors(flash);
    let mut problems = Vec::new();
    if size == 0 || size > flash {
        let message = format!("is {size} sectors; the flash has {flash}, and some are needed");
        problems.push(Problem::new("size", message));
    }
    if params.write_rate_max == Some(0) {
        let message = "must be more than 0; leave it out for no limit";
        problems.push(Problem::new("write_rate_max", message));
    }
    if problems.is_empty() { Ok(Box::new(make(input, params))) } else { Err(problems) }
}

impl Parameters {
    /// Sectors of the NV cache on flash of `capacity` sectors.
    fn sectors(&self, capacity: u64) -> u64 {
        self.size.map_or(capacity, |bytes| bytes / SECTOR_BYTES)
    }
}

pub(crate) fn make(input: &BuildInput<'_>, params: Parameters) -> NvCacheDisk {
    let (flash, disk) = (&input.children[0], &input.children[1]);
    let size = params.sectors(flash.capacity);
    NvCacheDisk {
        capacity: disk.capacity,
        positioner: disk.positioner.clone(),
        read_sectors_max: (params.read_share * size as f64) as u64,
        budget: Budget::new(params.write_rate_max, size),
        extents: Extents::new(size, flash.capacity),
        params,
        spindle: Spindle::default(),
        locks: PageLocks::default(),
        jobs: Slab::new(),
        pieces: Vec::new(),
        reported: 0,
    }
}

/// The drive.
pub struct NvCacheDisk {
    capacity: u64,
    positioner: Option<Rc<dyn Positioner>>,
    read_sectors_max: u64,
    budget: Budget,
    /// Durable where valid.
    pub(crate) extents: Extents,
    params: Parameters,
    spindle: Spindle,
    locks: PageLocks,
    jobs: Slab<Job>,
    /// Reused for every request.
    pieces: Vec<Piece>,
    reported: u64,
}

/// Names of [`CommonEvent::Custom`].
const CUSTOM: &[&str] = &["cached_sectors", "read_cached_sectors", "write_cached_sectors"];
/// Index of `read_cached_sectors`: sectors of a read that are written to the cache.
const READ_CACHED: u8 = 1;
/// Index of `write_cached_sectors`: sectors of a write that go to the cache, in the power mode.
const WRITE_CACHED: u8 = 2;

impl NvCacheDisk {
    /// Starts what can start now. Called after every message.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        self.advance_spindle(ctx);
        let cached = self.extents.size() - self.extents.free();
        if cached != self.reported {
            self.reported = cached;
            ctx.emit(CommonEvent::Custom { name: 0, value: cached });
        }
    }
}

impl Component for NvCacheDisk {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![(NV_CACHE_SECTORS, self.extents.size() as f64)],
            custom: CUSTOM,
            ..ComponentInfo::default()
        }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.positioner.clone()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.spindle.active(ctx.now(), request.op, &self.params);
        self.accept(ctx, Some(id), request, None);
        self.advance(ctx);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, request: &Request) {
        if command.is_about_spindle() {
            self.spindle.commanded(ctx.now(), command);
            ctx.broadcast(id, command);
            return self.advance(ctx);
        }
        self.accept(ctx, Some(id), request, Some(command));
        self.advance(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        match done.tag {
            spindle::TAG => {}
            spindle::START => self.spindle.started(ctx.now()),
            _ => self.child_done(ctx, done),
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token != spindle::TAG {
            self.step_completed(ctx, token as u32);
        }
        self.advance(ctx);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl PowerFailure for NvCacheDisk {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.extents.remove(0, self.capacity, |extent| !extent.valid);
        self.spindle = Spindle::default();
        self.locks = PageLocks::default();
        self.jobs.clear();
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        ctx.emit(CommonEvent::Recovered { took: SimDuration::ZERO });
    }
}

impl Checkpoint for NvCacheDisk {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.jobs.is_empty() {
            return Err(StateError(format!("{} operations are in progress", self.jobs.len())));
        }
        to.put(&(&self.extents, &self.spindle, self.reported, self.budget.full_at));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let extents: Extents;
        (extents, self.spindle, self.reported, self.budget.full_at) = from.take()?;
        if !extents.is_like(&self.extents) {
            return Err(StateError("it is of an NV cache of another size".to_owned()));
        }
        self.extents = extents;
        Ok(())
    }
}
