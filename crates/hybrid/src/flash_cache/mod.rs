//! A flash cache in front of a disk that divides its flash into read cache, write cache and
//! over-provisioned space (op-fcl: FP-FCL, RW-FCL and OP-FCL).
//!
//! - `serve`: requests from above. `evict`: making room, destaging. `resize`: the partition
//!   resizer.
//! - `tracker`, `cost`, `optimise`: what division is cheapest.
//! - `ahead`: writing back while nobody waits.
//! - `mapping`: what keeping the map on flash costs, and recovery.
//!
//! Space is counted in pages of the whole flash: `u` of it is cached data, the rest is left to the
//! device below, trimmed, so that its over-provisioned space really grows and shrinks. Limits move
//! at once; pages follow in the background.
//!
//! Invariant: flash holds the newest data of every sector marked in the cache; of pages that are
//! not dirty the disk holds the same.

mod ahead;
pub mod cost;
mod evict;
mod mapping;
mod observed;
pub mod optimise;
mod resize;
mod serve;
mod sides;
mod tracker;

use ahead::Ahead;
use cost::Costs;
use hybridsim_cache::paged::cache::{Cache, PAGE_SECTORS_MAX};
use hybridsim_cache::paged::cut::Run;
use hybridsim_cache::paged::flow::Flow;
use hybridsim_cache::paged::trimmed::Trimmed;
use hybridsim_cache::replacement::CachedPage;
use hybridsim_cache::streams::Streams;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, PowerFailure, Request, RequestId, SECTOR_BYTES,
    SimTime,
};
use mapping::Mapping;
use observed::Observed;
use optimise::{Division, Grid};
use resize::Resizer;
use serve::Parent;
use sides::{Fresh, Sides};
use slab::Slab;
use std::collections::VecDeque;
use tracker::Tracker;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "flash-cache",
        summary: "a flash cache that sizes its own read, write and over-provisioned space",
        origin: "op-fcl (OP-FCL) and its authors' released code",
        params: PARAMS,
    },
    build,
};

const PARAMS: &[Param] = &[
    Param::required("flash", Kind::Component, "The flash device below"),
    Param::required("disk", Kind::Component, "What is cached: a disk, or a volume of several"),
    Param::with(
        "scheme",
        Kind::Choice(&["fp", "rw", "op"]),
        "\"op\"",
        "`fp`: one cache of fixed size; `rw`: of fixed size, divided into read and write cache by \
         the cost model; `op`: size and division by the cost model",
    ),
    Param::with(
        "caching_space",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.95",
        "`fp` and `rw`: share of all flash that holds cached data; `op`: what it begins with",
    ),
    Param::with(
        "flash_spare",
        Kind::Number { min: 0.0, max: 0.9 },
        "0.05",
        "Share of all flash that the device below keeps to itself and does not offer",
    ),
    Param::with("page_bytes", Kind::Bytes, "\"4KiB\"", "What is cached: up to 32 KiB"),
    Param::with(
        "sequential_bytes",
        Kind::Bytes,
        "\"128KiB\"",
        "A stream of so many bytes in a row goes round the cache",
    ),
    Param::with("streams", Kind::Count { min: 1, max: 1024 }, "1", "Streams followed at a time"),
    Param::with(
        "destage_pages",
        Kind::Count { min: 1, max: 65_536 },
        "128",
        "Dirty pages written back at a time, in order of their place on the disk, and most pages \
         moved in a step of resizing",
    ),
    Param::with(
        "adjust",
        Kind::Choice(&["idle", "always"]),
        "\"idle\"",
        "When pages are given up to follow a new division. `idle`: only while nobody waits, as \
         the paper's authors do in their simulator; `always`: a system that is never idle, too, \
         gives up as many as it accesses (beyond the paper)",
    ),
    Param::with(
        "write_ahead",
        Kind::Count { min: 0, max: 1 << 32 },
        "0",
        "Most dirty pages that are written back ahead of need, while nobody waits, so that they \
         can go at once when others need their room (beyond the paper)",
    ),
    Param::with(
        "write_ahead_pause",
        Kind::Duration,
        "\"100ms\"",
        "Nobody must have waited for so long before that",
    ),
    Param::with(
        "period_pages",
        Kind::Count { min: 1000, max: 1 << 40 },
        "60000",
        "Pages of I/O after which the division is decided anew",
    ),
    Param::with(
        "segments",
        Kind::Count { min: 1, max: 256 },
        "16",
        "Segments of the stacks that hit rates are taken from",
    ),
    Param::with(
        "sampled",
        Kind::Count { min: 1, max: 10_000 },
        "1",
        "One page in so many is followed by the stacks; 1 follows all, as the paper",
    ),
    Param::with("u_steps", Kind::Count { min: 2, max: 100 }, "16", "Sizes tried"),
    Param::with("r_steps", Kind::Count { min: 1, max: 100 }, "32", "Divisions tried"),
    Param::with(
        "shrink_max_pages",
        Kind::Count { min: 1, max: 1 << 40 },
        "65536",
        "Most pages the write cache gives up in a period",
    ),
    Param::with(
        "replacement",
        Kind::Entry("replacement"),
        "\"lru\"",
        "Which pages go first; the model judges by last use whatever is chosen (beyond the paper)",
    ),
    Param::with(
        "costs",
        Kind::Choice(&["given", "observed"]),
        "\"given\"",
        "`given`: the cost model's times below; `observed`: what operations took lately on flash \
         and disk, the times below where too little was seen (beyond the paper)",
    ),
    Param::with("program_time", Kind::Duration, "\"200us\"", "Cost model: programming a page"),
    Param::with("read_time", Kind::Duration, "\"25us\"", "Cost model: reading a page"),
    Param::with("erase_time", Kind::Duration, "\"1.5ms\"", "Cost model: erasing a block"),
    Param::with("bus_time", Kind::Duration, "\"102.4us\"", "Cost model: a page over the bus"),
    Param::with(
        "pages_per_block",
        Kind::Count { min: 1, max: 1 << 20 },
        "64",
        "Cost model: pages in a block",
    ),
    Param::with(
        "disk_read_position",
        Kind::Duration,
        "\"4.4ms\"",
        "Cost model: positioning for a read",
    ),
    Param::with(
        "disk_write_position",
        Kind::Duration,
        "\"4.9ms\"",
        "Cost model: positioning for a write",
    ),
    Param::with("disk_rate", Kind::Rate, "\"72MB/s\"", "Cost model: the disk's bandwidth"),
    Param::with(
        "erase_worth",
        Kind::Duration,
        "\"0us\"",
        "What an erase costs in the model besides its time: more of it lengthens the life of flash \
         at the price of response time (beyond the paper)",
    ),
    Param::with(
        "mapping",
        Kind::Flag,
        "true",
        "Keep the map on flash: a page for every 63 written, read again after a power failure",
    ),
];

/// How flash is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// One cache of fixed size.
    Fixed,
    /// Fixed size, divided by the model.
    Divided,
    /// All by the model.
    Full,
}

fn costs(settings: &Settings) -> Costs {
    let seconds = |name| settings.duration(name).as_ns() as f64 / 1e9;
    let (read, bus) = (seconds("read_time"), seconds("bus_time"));
    let transfer = settings.bytes("page_bytes") as f64 / settings.rate("disk_rate").max(1) as f64;
    Costs {
        program: seconds("program_time"),
        read,
        erase: seconds("erase_time"),
        bus,
        host_read: read + bus,
        pages_per_block: settings.count("pages_per_block") as f64,
        disk_read: seconds("disk_read_position") + transfer,
        disk_write: seconds("disk_write_position") + transfer,
    }
}

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let settings = input.settings;
    let page_bytes = settings.bytes("page_bytes");
    let page_sectors = page_bytes / SECTOR_BYTES;
    let whole = page_bytes.is_multiple_of(SECTOR_BYTES);
    if !whole || page_sectors == 0 || page_sectors > PAGE_SECTORS_MAX {
        let message = "must be a multiple of 512 bytes, at least 512 B and at most 32 KiB";
        return Err(vec![Problem::new("page_bytes", message)]);
    }
    let offered = input.children[0].capacity / page_sectors;
    let mapping = Mapping::new(settings.flag("mapping"), offered);
    let usable = offered - mapping.pages();
    if usable < 4 || usable >= u64::from(u32::MAX) {
        let message = format!("leaves {usable} pages of page_bytes for the cache; 4 are needed");
        return Err(vec![Problem::new("flash", message)]);
    }
    let all = offered as f64 / (1.0 - settings.number("flash_spare"));
    let u_max = usable as f64 / all;
    let scheme = match settings.text("scheme") {
        "fp" => Scheme::Fixed,
        "rw" => Scheme::Divided,
        _ => Scheme::Full,
    };
    let begun = settings.number("caching_space").min(u_max);
    let segments = settings.count("segments") as usize;
    let fresh = Sides::builder(input, usable as u32, scheme == Scheme::Fixed);
    let mut cache = FlashCache {
        capacity: input.children[1].capacity,
        scheme,
        cache: Cache::new(page_sectors, usable as u32),
        sides: fresh()?,
        fresh,
        limits: Limits { read: 0, write: 0 },
        flash_pages: all,
        division: Division { u: begun, r: 0.5 },
        flow: Flow::default(),
        parents: Slab::new(),
        runs: Vec::new(),
        listed: Vec::new(),
        short_of_space: VecDeque::new(),
        streams: Streams::new(
            settings.count("streams") as usize,
            settings.bytes("sequential_bytes") / SECTOR_BYTES,
        ),
        tracker: Tracker::new(segments, usable, settings.count("sampled")),
        costs: costs(settings),
        observed: (settings.text("costs") == "observed").then(Observed::default),
        grid: Grid {
            u_steps: settings.count("u_steps") as u32,
            r_steps: settings.count("r_steps") as u32,
            u_max,
        },
        erase_worth: settings.duration("erase_worth").as_ns() as f64 / 1e9,
        period_pages: settings.count("period_pages"),
        accessed: 0,
        shrink_max: settings.count("shrink_max_pages"),
        resizer: Resizer::new(
            settings.count("destage_pages") as usize,
            settings.text("adjust") == "always",
        ),
        mapping,
        ahead: Ahead::new(settings.count("write_ahead"), settings.duration("write_ahead_pause")),
        trimmed: Trimmed::default(),
        executing: 0,
        destaging: 0,
        dirty_told: 0,
    };
    cache.set_limits();
    Ok(Box::new(cache))
}

/// Most pages of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    read: u64,
    write: u64,
}

/// The cache.
pub struct FlashCache {
    capacity: u64,
    scheme: Scheme,
    cache: Cache,
    sides: Sides,
    fresh: Fresh,
    limits: Limits,
    /// Pages of all flash, those the device keeps to itself included.
    flash_pages: f64,
    division: Division,
    flow: Flow,
    parents: Slab<Parent>,
    /// Reused for every cut.
    runs: Vec<Run>,
    /// Reused wherever pages are listed.
    listed: Vec<CachedPage>,
    /// Writes that wait for room.
    short_of_space: VecDeque<u32>,
    /// Sequential ones go round the cache.
    streams: Streams,
    tracker: Tracker,
    costs: Costs,
    /// What operations took, where the model is to go by that.
    observed: Option<Observed>,
    grid: Grid,
    erase_worth: f64,
    period_pages: u64,
    /// Pages accessed in this period.
    accessed: u64,
    shrink_max: u64,
    resizer: Resizer,
    mapping: Mapping,
    ahead: Ahead,
    trimmed: Trimmed,
    /// Requests from above at flash or disk.
    executing: u32,
    /// Runs being destaged.
    destaging: u32,
    dirty_told: u32,
}

/// Names of the numbers told at the end of every period: see [`resize`].
const CUSTOM: &[&str] = &["read_cache_pages", "write_cache_pages", "over_provisioned_pages"];

impl Component for FlashCache {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("cache_pages_max", f64::from(self.cache.pages)),
                ("flash_pages", self.flash_pages),
                ("page_sectors", self.cache.page_sectors as f64),
            ],
            custom: CUSTOM,
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.tell_division(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.mapping.holds_back(id, request) {
            return;
        }
        self.take(ctx, id, request);
        self.settle(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if self.mapping.recovering() {
            self.recovered(ctx, done);
            return;
        }
        self.child_done(ctx, done);
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        self.write_ahead(ctx);
        self.settle(ctx);
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for FlashCache {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.lose_power()
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.recover(ctx);
    }
}
