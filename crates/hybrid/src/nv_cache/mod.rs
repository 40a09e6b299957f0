//! A drive with a non-volatile cache beside its platters, and the ATA-8 commands for it (paper
//! 001, section II.B; ATA8-ACS, NV cache feature set).
//!
//! The host pins ranges ([`Command::Pin`]); requests for pinned sectors are served by the cache.
//! What the drive caches on its own account is the unpinned set: in the NV cache power mode all
//! writes go there while there is room, and the disk is stopped ([`spindle`]).
//!
//! Rules where the standard leaves room:
//! - A pinned sector has its data on the medium until they are written to the cache.
//! - Unpinned sectors leave the cache with their data (`unpin = "discard"`, as bisson-fqueue uses it)
//!   or become the drive's own (`"keep"`) and are written back when asked for.
//! - A trim of cached sectors changes nothing; it is passed on for the others.
//! - [`Flags::PAST_CACHE`] writes the medium and leaves the cache as it is: whoever does that to
//!   pinned sectors unpins them next.
//!
//! After a power failure everything that had its data in the cache is there again, pinned or not:
//! which sector a page of flash holds is in its spare area, and unpinning is durable when it is
//! acknowledged (assumed). Reservations without data and the power mode are forgotten.

mod extents;
pub mod host;
mod serve;
mod spindle;
#[cfg(test)]
mod tests;

pub use extents::{Extent, Extents};

use extents::Piece;
use hybridsim_cache::paged::flow::Flow;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Command, CommonEvent, Completion, Component, ComponentInfo, Ctx, PowerFailure, Request,
    RequestId, SECTOR_BYTES, SimDuration, SimTime,
};
use serve::Job;
use slab::Slab;
use spindle::Spindle;
use std::rc::Rc;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "nv-cache-disk",
        summary: "a disk with a flash cache that the host controls by ATA-8 NV cache commands",
        origin: "bisson-fqueue, section II.B; T13 ATA8-ACS, NV cache feature set",
        params: PARAMS,
    },
    build,
};

const PARAMS: &[Param] = &[
    Param::required("flash", Kind::Component, "The NV cache"),
    Param::required("disk", Kind::Component, "The rotating medium; its capacity is the drive's"),
    Param::with(
        "command_time",
        Kind::Duration,
        "\"10us\"",
        "Time of an NV cache command; bisson-fqueue says microseconds",
    ),
    Param::with(
        "entry_time",
        Kind::Duration,
        "\"1us\"",
        "Added for each LBA range entry of at most 65,535 sectors (assumed)",
    ),
    Param::optional(
        "size",
        Kind::Bytes,
        "The NV cache's size, whole sectors of 512 bytes; all of the flash when absent. On larger \
         flash what is written together finds room together, and takes one access (bisson-fqueue has \
         one access for each request)",
    ),
    Param::with(
        "unpin",
        Kind::Choice(&["discard", "keep"]),
        "\"discard\"",
        "Unpinned sectors leave the cache at once, or become the drive's own",
    ),
];

/// Sectors an LBA range entry describes at most: its length has 16 bits.
pub const ENTRY_SECTORS_MAX: u64 = 65_535;

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let (size, flash) = (size(input), input.children[0].capacity);
    if size == 0 || size > flash {
        let message = format!("is {size} sectors; the flash has {flash}, and some are needed");
        return Err(vec![Problem::new("size", message)]);
    }
    Ok(Box::new(make(input)))
}

/// Sectors of the NV cache.
fn size(input: &BuildInput<'_>) -> u64 {
    let size = input.settings.bytes_opt("size").map(|bytes| bytes / SECTOR_BYTES);
    size.unwrap_or(input.children[0].capacity)
}

pub(crate) fn make(input: &BuildInput<'_>) -> NvCacheDisk {
    let settings = input.settings;
    let (flash, disk) = (&input.children[0], &input.children[1]);
    NvCacheDisk {
        capacity: disk.capacity,
        positioner: disk.positioner.clone(),
        command_time: settings.duration("command_time"),
        entry_time: settings.duration("entry_time"),
        keeps: settings.text("unpin") == "keep",
        extents: Extents::new(size(input), flash.capacity),
        spindle: Spindle::default(),
        flow: Flow::default(),
        jobs: Slab::new(),
        pieces: Vec::new(),
        told: 0,
    }
}

/// The drive.
pub struct NvCacheDisk {
    capacity: u64,
    positioner: Option<Rc<dyn Positioner>>,
    command_time: SimDuration,
    entry_time: SimDuration,
    /// Unpinned sectors stay in the cache.
    keeps: bool,
    /// Durable where valid.
    pub(crate) extents: Extents,
    spindle: Spindle,
    flow: Flow,
    jobs: Slab<Job>,
    /// Reused for every request.
    pieces: Vec<Piece>,
    told: u64,
}

/// Names of [`CommonEvent::Custom`].
const CUSTOM: &[&str] = &["cached_sectors"];

impl NvCacheDisk {
    /// After every message.
    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        self.mind_spindle(ctx);
        let cached = self.extents.size() - self.extents.free();
        if cached != self.told {
            self.told = cached;
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
            constants: vec![("nv_cache_sectors", self.extents.size() as f64)],
            custom: CUSTOM,
            ..ComponentInfo::default()
        }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.positioner.clone()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.take(ctx, Some(id), request, None);
        self.settle(ctx);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, request: &Request) {
        if command.is_about_spindle() {
            self.spindle.told(ctx.now(), command);
            ctx.broadcast(id, command);
            return self.settle(ctx);
        }
        self.take(ctx, Some(id), request, Some(command));
        self.settle(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.tag != spindle::TAG {
            self.child_done(ctx, done);
        }
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token != spindle::TAG {
            self.leave(ctx, token as u32);
        }
        self.settle(ctx);
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for NvCacheDisk {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.extents.remove(0, self.capacity, |extent| !extent.valid);
        self.spindle = Spindle::default();
        self.flow = Flow::default();
        self.jobs.clear();
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        ctx.emit(CommonEvent::Recovered { took: SimDuration::ZERO });
    }
}
