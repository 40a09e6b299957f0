//! A flash cache in front of a disk that divides its flash into read cache, write cache and
//! over-provisioned space (op-fcl: FP-FCL, RW-FCL and OP-FCL).
//!
//! - `serve`: host requests. `evict`: eviction and destaging. `resize`: the partition resizer.
//! - `tracker`, `cost`, `optimise`, `observed`: the cost model and the cheapest division.
//! - `write_ahead`: write-back ahead of need. `promotion`: write policy and promotion.
//! - [`crate::paged_controller`]: the request path shared with the hybrid disk.
//!
//! Space is counted in pages of the physical flash: a share `u` of it is cached data, the rest is
//! trimmed, so that the over-provisioned space of the flash device grows and shrinks. New limits
//! take effect at once; pages are evicted or destaged to meet them in the background.
//!
//! Clean pages have the same data on flash and disk. The mapping table is kept on flash (op-fcl,
//! mapping manager): the last page of every block names the contents of the other 63, so one
//! mapping page is written for every 63 data pages. It is modelled as an area of its own, a
//! sixty-fourth of the flash, written in a circle. After a power failure all of it is read, or the
//! newest checkpoint and what follows it; what was written after the last mapping page is found in
//! the spare areas of its pages.

pub mod cost;
mod evict;
mod lists;
mod observed;
pub mod optimise;
mod promotion;
mod resize;
mod serve;
mod tracker;
mod write_ahead;

use crate::paged_controller::{
    CheckpointArea, MetadataArea, Origin, PagedController, PagedCore, PolicyBuilder, Recovery,
    directory_bytes, page_sectors, rebuild,
};
use cost::Costs;
use hybridsim_cache::paged::directory::PageDirectory;
use hybridsim_cache::paged::split::Medium;
use hybridsim_cache::streams::Streams;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, Flags, Lba, Loader, Op, PowerFailure,
    Request, RequestId, SECTOR_BYTES, Saver, SimDuration, SimTime, StateError,
};
use lists::CleanDirtyLists;
use observed::Observed;
use optimise::{Division, DivisionGrid};
use promotion::{Promotion, WritePolicy};
use resize::Resizer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tracker::Tracker;
use write_ahead::WriteAhead;

/// Data pages per mapping page.
const DATA_PAGES: u64 = 63;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "flash-cache",
        summary: "a flash cache that sizes its own read, write and over-provisioned space",
        origin: "op-fcl (OP-FCL) and its authors' released code",
        params: Parameters::PARAMS,
    },
    build,
)
.with_memory(directory_bytes);

hybridsim_config::choices! {
    /// Partitioning of flash.
    enum Scheme {
        /// One cache of fixed size.
        Fixed = "fp",
        /// Fixed size, partitioned by the cost model.
        Divided = "rw",
        /// Size and partition by the cost model.
        Full = "op",
    }
}

hybridsim_config::choices! {
    /// Times at which pages are moved to meet new limits.
    enum Adjust { Idle = "idle", Always = "always" }
}

hybridsim_config::choices! {
    enum CostSource { Given = "given", Observed = "observed" }
}

const DIVIDED: &[Needs] = &[Needs::Not("scheme", &["fp"])];

hybridsim_config::params! {
    pub struct Parameters {
        pub flash: String = Kind::Component, required, "The flash device.";
        pub disk: String = Kind::Component, required,
            "The disk, or array of disks, that is cached.";
        scheme: Scheme = Kind::Choice(Scheme::NAMES), default "op",
            "`fp`: one cache of fixed size; `rw`: fixed size, partitioned into read and write \
             cache by the cost model; `op`: size and partition by the cost model.";
        caching_space: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.95",
            "`fp` and `rw`: share of the physical flash capacity used as cache; `op`: initial \
             value.";
        over_provisioning: f64 = Kind::Number { min: 0.0, max: 9.0 }, default "0.05263157894736842"
            needs &[Needs::Is("flash_spare", &["absent"])],
            "Over-provisioning of the flash device, spare over logical capacity; give the same \
             value as there. The default leaves 5 % of the physical capacity spare.";
        flash_spare: Option<f64> = Kind::Number { min: 0.0, max: 0.9 }, optional,
            "Former way to give `over_provisioning`: spare over physical capacity. A value s is \
             converted to over_provisioning = s / (1 - s).";
        page_size: u64 = Kind::Bytes, default "\"4KiB\"",
            "Cache page size: a multiple of 512 bytes, at most 32 KiB.";
        sequential_bytes: u64 = Kind::Bytes, default "\"128KiB\"",
            "A sequential stream bypasses the cache after this many bytes.";
        streams: usize = Kind::Count { min: 1, max: 1024 }, default "1",
            "Sequential streams tracked at once.";
        destage_pages: usize = Kind::Count { min: 1, max: 65_536 }, default "128"
            needs &[Needs::Is("write_policy", &["back"])],
            "Dirty pages destaged together, sorted by disk address, and largest step of the \
             partition resizer.";
        adjust: Adjust = Kind::Choice(Adjust::NAMES), default "idle" needs DIVIDED,
            "When pages are evicted or destaged to meet new partition limits. `idle`: only while \
             no request is outstanding, as in the simulator of the paper's authors; `always`: also \
             while busy, as many pages as are accessed (beyond the paper).";
        write_ahead: u64 = Kind::Count { min: 0, max: 1 << 32 }, default "0"
            needs &[Needs::Is("write_policy", &["back"])],
            "Most dirty pages written back ahead of need, while idle, so that they can be evicted \
             at once later (beyond the paper).";
        write_ahead_pause: SimDuration = Kind::Duration, default "\"100ms\""
            needs &[Needs::Is("write_policy", &["back"]), Needs::above_zero("write_ahead")],
            "Idle time before write-back ahead of need starts.";
        dirty_share: Option<f64> = Kind::Number { min: 0.0, max: 1.0 }, optional
            needs &[Needs::Is("scheme", &["fp"]), Needs::Is("write_policy", &["back"])],
            "Share of the cache that may be dirty: pages above it are written back in the \
             background, also while requests are outstanding, and stay cached (beyond the paper).";
        write_policy: WritePolicy = Kind::Choice(WritePolicy::NAMES), default "back",
            "back: a write completes when flash has it; through: when the disk has it, whereupon \
             it is written to flash; around: when the disk has it, and flash drops its copy. \
             `through` and `around` need `scheme = \"fp\"` (beyond the paper).";
        promote_after: u32 = Kind::Count { min: 1, max: 1000 }, default "1",
            "Accesses to a page until it is cached; 1 caches every page that is accessed (beyond \
             the paper).";
        promote_all_below: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0"
            needs &[Needs::Not("promote_after", &["1"])],
            "Share of the cache in use below which every access caches its pages.";
        promote_rate: Option<u64> = Kind::Rate, optional,
            "Most data written to flash in a second for reads that missed, and for writes with \
             `write_policy = \"through\"` (beyond the paper).";
        period_pages: u64 = Kind::Count { min: 1000, max: 1 << 40 }, default "60000",
            "Page accesses after which the division is decided again, and reported.";
        segments: u32 = Kind::Count { min: 1, max: 256 }, default "16" needs DIVIDED,
            "Segments of the LRU stacks that give the hit ratios.";
        sampled: u64 = Kind::Count { min: 1, max: 10_000 }, default "1" needs DIVIDED,
            "The stacks track one page in this many; 1 tracks all, as in the paper.";
        u_steps: Option<u32> = Kind::Count { min: 2, max: 256 }, optional
            needs &[Needs::Is("scheme", &["op"])],
            "Cache sizes compared; by default `segments`, the one step of algorithm 1 (segment \
             size over cache size). The authors' released code has 16.";
        r_steps: Option<u32> = Kind::Count { min: 1, max: 256 }, optional needs DIVIDED,
            "Partitions compared for each size; by default `segments`. The authors' released code \
             has 32.";
        shrink_max_pages: u64 = Kind::Count { min: 1, max: 1 << 40 }, default "65536" needs DIVIDED,
            "Most pages by which the write cache shrinks in a period.";
        replacement: EntryChoice = Kind::Entry("replacement"), default "\"lru\"",
            "Replacement policy (beyond the paper); the cost model assumes LRU whichever is \
             chosen.";
        costs: CostSource = Kind::Choice(CostSource::NAMES), default "given" needs DIVIDED,
            "`given`: the cost model uses the times below; `observed`: measured service times of \
             flash and disk, or the times below while too few operations were measured (beyond the \
             paper).";
        program_time: SimDuration = Kind::Duration, default "\"200us\"" needs DIVIDED,
            "Cost model: programming a page.";
        read_time: SimDuration = Kind::Duration, default "\"25us\"" needs DIVIDED,
            "Cost model: reading a page.";
        erase_time: SimDuration = Kind::Duration, default "\"1.5ms\"" needs DIVIDED,
            "Cost model: erasing a block.";
        bus_time: SimDuration = Kind::Duration, default "\"102.4us\"" needs DIVIDED,
            "Cost model: a page over the bus.";
        pages_per_block: u32 = Kind::Count { min: 1, max: 1 << 20 }, default "64" needs DIVIDED,
            "Cost model: pages in a block.";
        disk_read_position: SimDuration = Kind::Duration, default "\"4.4ms\"" needs DIVIDED,
            "Cost model: positioning for a read.";
        disk_write_position: SimDuration = Kind::Duration, default "\"4.9ms\"" needs DIVIDED,
            "Cost model: positioning for a write.";
        disk_rate: u64 = Kind::Rate, default "\"72MB/s\"" needs DIVIDED,
            "Cost model: the disk's bandwidth.";
        erase_worth: SimDuration = Kind::Duration, default "\"0us\"" needs DIVIDED,
            "Added to the cost of an erase in the model: a higher value leaves more space \
             over-provisioned, trading hit ratio for endurance (beyond the paper).";
        mapping: bool = Kind::Flag, default "true",
            "Keep the mapping table on flash: a page for every 63 written, read after a power \
             failure.";
        checkpoint_pages: u64 = Kind::Count { min: 0, max: 1 << 40 }, default "0"
            needs &[Needs::Is("mapping", &["true"])],
            "Pages written to flash between two checkpoints of the mapping table, so that less is \
             read after a power failure; 0: none (the paper has checkpoints and no interval).";
    }
}

impl Parameters {
    fn costs(&self) -> Costs {
        let seconds = |time: SimDuration| time.as_ns() as f64 / 1e9;
        let (read, bus) = (seconds(self.read_time), seconds(self.bus_time));
        let transfer = self.page_size as f64 / self.disk_rate.max(1) as f64;
        Costs {
            program: seconds(self.program_time),
            read,
            erase: seconds(self.erase_time),
            bus,
            host_read: read + bus,
            pages_per_block: self.pages_per_block as f64,
            disk_read: seconds(self.disk_read_position) + transfer,
            disk_write: seconds(self.disk_write_position) + transfer,
        }
    }

    /// The physical flash capacity in pages, of which the device offers `logical`.
    fn physical_pages(&self, logical: u64) -> f64 {
        let spare = self.flash_spare;
        logical as f64 * spare.map_or(1.0 + self.over_provisioning, |spare| 1.0 / (1.0 - spare))
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let page_sectors = page_sectors(params.page_size)?;
    let logical = input.children[0].capacity / page_sectors;
    let mapping = if params.mapping { logical.div_ceil(DATA_PAGES + 1) } else { 0 };
    let mapping = MetadataArea::new(mapping);
    let interval = params.checkpoint_pages;
    if interval > 0 && mapping.pages() == 0 {
        let message = "there is no mapping table on flash to write checkpoints of: set `mapping`";
        return Err(vec![Problem::new("checkpoint_pages", message)]);
    }
    let checkpoints =
        (interval > 0).then(|| CheckpointArea::new(logical, page_sectors * SECTOR_BYTES, interval));
    let reserved = checkpoints.as_ref().map_or(0, CheckpointArea::reserved);
    let usable = logical.saturating_sub(mapping.pages() + reserved);
    if usable < 4 || usable >= u64::from(u32::MAX) {
        let message = format!("leaves {usable} pages of `page_size` for the cache; 4 are needed");
        return Err(vec![Problem::new("flash", message)]);
    }
    if params.write_policy != WritePolicy::Back && params.scheme != Scheme::Fixed {
        let message = "`through` and `around` need `scheme = \"fp\"`: without dirty pages there \
                       is no write cache to size";
        return Err(vec![Problem::new("write_policy", message)]);
    }
    let flash_pages = params.physical_pages(logical);
    let u_max = usable as f64 / flash_pages;
    let build_lists = CleanDirtyLists::builder(input.registry, &params, usable as u32);
    let directory = PageDirectory::new(page_sectors, usable as u32);
    let mut cache = FlashCache {
        core: PagedCore::new(
            input.children[1].capacity,
            directory,
            mapping.with_checkpoints(checkpoints),
        ),
        lists: build_lists()?,
        build_lists,
        limits: Limits { read: 0, write: 0 },
        flash_pages,
        division: Division { u: params.caching_space.min(u_max), r: 0.5 },
        streams: Streams::new(params.streams, params.sequential_bytes / SECTOR_BYTES),
        tracker: Tracker::new(params.segments as usize, usable, params.sampled),
        costs: params.costs(),
        observed: (params.costs == CostSource::Observed).then(Observed::default),
        grid: DivisionGrid {
            u_steps: params.u_steps.unwrap_or(params.segments).max(2),
            r_steps: params.r_steps.unwrap_or(params.segments),
            u_max,
        },
        accessed: 0,
        resizer: Resizer::new(params.destage_pages, params.adjust == Adjust::Always),
        unmapped: 0,
        write_ahead: WriteAhead::new(params.write_ahead, params.write_ahead_pause),
        promotion: Promotion::new(
            params.promote_after,
            params.promote_all_below,
            params.promote_rate,
        ),
        destaging: 0,
        waiting_promotions: VecDeque::new(),
        params,
    };
    cache.set_limits();
    Ok(Box::new(cache))
}

/// Partition limits in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Limits {
    read: u64,
    write: u64,
}

/// The cache.
pub struct FlashCache {
    core: PagedCore,
    lists: CleanDirtyLists,
    build_lists: PolicyBuilder<CleanDirtyLists>,
    limits: Limits,
    /// Physical flash capacity.
    flash_pages: f64,
    division: Division,
    /// Sequential streams, which bypass the cache.
    streams: Streams,
    tracker: Tracker,
    costs: Costs,
    /// Measured service times, with `costs = "observed"`.
    observed: Option<Observed>,
    grid: DivisionGrid,
    /// Pages accessed in this period.
    accessed: u64,
    resizer: Resizer,
    /// Data pages written since the last mapping page.
    unmapped: u64,
    write_ahead: WriteAhead,
    promotion: Promotion,
    /// Runs of pages being destaged.
    destaging: u32,
    /// Promotions that wait for a destage, in order.
    waiting_promotions: VecDeque<u32>,
    params: Parameters,
}

/// Names of the numbers reported at the end of every period: see [`resize`].
const CUSTOM: &[&str] = &["read_cache_pages", "write_cache_pages", "over_provisioned_pages"];

impl FlashCache {
    /// Writes the mapping pages that are due when `pages` more data pages are written.
    fn write_mapping(&mut self, ctx: &mut Ctx<'_>, pages: u64) {
        if self.core.metadata.pages() == 0 {
            return;
        }
        self.unmapped += pages;
        while self.unmapped >= DATA_PAGES {
            self.unmapped -= DATA_PAGES;
            let page = self.core.metadata.next_page();
            self.write_metadata(ctx, page, 1);
        }
        if self.core.metadata.data_written(pages) {
            self.write_checkpoint(ctx);
        }
    }

    fn write_checkpoint(&mut self, ctx: &mut Ctx<'_>) {
        if let Some((first, count)) = self.core.metadata.next_checkpoint_run() {
            self.write_metadata(ctx, first, count);
        }
    }

    /// Writes `count` pages from page `first` of the metadata area on.
    fn write_metadata(&mut self, ctx: &mut Ctx<'_>, first: u64, count: u64) {
        let size = self.core.directory.page_sectors;
        let (at, sectors) = (u64::from(self.core.directory.pages) + first, (count * size) as u32);
        let mut request = Request::new(Op::Write, Lba(at * size), sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        let slot = self.core.open(Origin::Metadata, request, ctx.now());
        self.core.pending(slot).outstanding = 1;
        ctx.issue(Medium::Flash as usize, request, u64::from(slot));
    }
}

impl Component for FlashCache {
    fn capacity(&self) -> u64 {
        self.core.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("cache_pages_max", f64::from(self.core.directory.pages)),
                ("flash_pages", self.flash_pages),
                ("page_sectors", self.core.directory.page_sectors as f64),
            ],
            custom: CUSTOM,
            idle_policies: match self.lists.chose {
                true => Vec::new(),
                false => vec![("replacement", "no page was evicted or destaged")],
            },
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.report_division(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.serve(ctx, id, request);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.child_completed(ctx, done);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        self.write_ahead_timer_expired(ctx);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl PowerFailure for FlashCache {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        // Eviction orders are in memory only; the mapping says which pages are dirty.
        self.core.lose_power();
        let lists = rebuild(&self.build_lists)?;
        let before = std::mem::replace(&mut self.lists, lists);
        for page in self.core.directory.iter() {
            self.lists.add(page, before.is_dirty(page.slot));
        }
        self.tracker.clear();
        self.streams.clear();
        self.promotion.clear();
        self.observed = self.observed.map(|_| Observed::default());
        self.accessed = 0;
        self.destaging = 0;
        self.waiting_promotions.clear();
        self.resizer.stop();
        self.write_ahead.timer = false;
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.recover(ctx);
    }
}

impl Checkpoint for FlashCache {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.core.save(to)?;
        self.lists.save(to)?;
        to.put(&(self.limits, self.division, self.accessed, self.unmapped));
        to.put(&(&self.streams, &self.tracker, self.observed, self.resizer.accessed));
        to.put(&(self.write_ahead.idle_since, self.write_ahead.timer, &self.promotion));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.core.restore(from)?;
        self.lists.restore(from)?;
        (self.limits, self.division, self.accessed, self.unmapped) = from.take()?;
        (self.streams, self.tracker, self.observed, self.resizer.accessed) = from.take()?;
        (self.write_ahead.idle_since, self.write_ahead.timer, self.promotion) = from.take()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::check;
    use hybridsim_config::registry::Registry;

    #[test]
    fn spare_over_physical_capacity_is_converted() {
        let pages = |text: &str| {
            let text = format!("flash = \"f\"\ndisk = \"d\"\n{text}");
            let mut registry = Registry::default();
            hybridsim_cache::register(&mut registry);
            let settings = check::read(&text, &[Parameters::PARAMS], &registry).expect("valid");
            Parameters::from_settings(&settings).physical_pages(800)
        };
        assert_eq!(pages("over_provisioning = 0.25"), 1000.0);
        assert!((pages("flash_spare = 0.2") - 1000.0).abs() < 1e-9);
    }
}
