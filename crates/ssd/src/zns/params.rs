//! The parameters of kind `zns-ssd`, and how one is built from them.

use super::random_area::RandomPages;
use super::stripe::Stripe;
use super::translation::{ActionTimes, ZnsSsd, ZoneTranslation};
use super::zone::{STATISTIC_NAMES, Zones};
use crate::device::{DriveParams, FrontEnd, TranslationTraits, check_memory};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::zone_table::{ZONE_SECTORS, ZoneLimits};
use hybridsim_engine::{ComponentInfo, RandomWriteAreas, SECTOR_BYTES, SimDuration};
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::geometry::Geometry;
use hybridsim_flash::timing::TIMES;
use std::collections::VecDeque;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: ZNS_KIND,
        summary: "A zoned SSD (ZNS): zones are written in order and reset as a whole.",
        origin: "NVMe Zoned Namespace Command Set Specification 1.1",
        params: ZnsParams::PARAMS,
    },
    |input| Ok(Box::new(build_zns(input)?)),
)
.with_memory(|settings, _| ZnsParams::from_settings(settings).table_bytes())
.with_capacity(capacity_bytes)
.with_zones();

/// The kind that [`build_zns`] builds.
const ZNS_KIND: &str = "zns-ssd";
const ZONES: Kind = Kind::Count { min: 1, max: 1 << 24 };

const TIMED: &[Needs] = &[Needs::Provides("timing", TIMES)];

hybridsim_config::choices! {
    /// Time at which the blocks of a zone are erased.
    enum Erased { AtReset = "reset", AtOpen = "open" }
}

hybridsim_config::choices! {
    /// Data written before the run.
    enum Filled { None = "none", Fill = "fill" }
}

hybridsim_config::params! {
    /// Parameters of kind `zns-ssd`. A zone that finds no flash but worn-out blocks goes offline.
    pub struct ZnsParams includes { drive: DriveParams } {
        zone_capacity: u64 = Kind::Bytes, required,
            "Bytes of a zone that can be written, in whole pages. A zone takes blocks of every \
             plane, as many as its capacity needs.";
        zone_size: Option<u64> = Kind::Bytes, optional,
            "Distance of the starts of two zones in the address space; zone_capacity when absent. \
             What is beyond the capacity cannot be written.";
        zones: Option<u64> = ZONES, optional,
            "Zones; as many as the flash holds when absent. Flash beyond them replaces blocks that \
             are worn out.";
        max_open_zones: Option<u32> = ZONES, optional,
            "Most zones that are open at a time. A write to another closes the least recently used \
             of those opened implicitly, and fails where the host opened all explicitly. Without \
             it there is no limit.";
        max_active_zones: Option<u32> = ZONES, optional,
            "Most zones that are open or closed (partly written) at a time; writes to other zones \
             fail. Without it there is no limit.";
        zrwa_size: Option<u64> = Kind::Bytes, optional,
            "Size of a random write area (ZRWA), in whole pages. A zone that is opened with one \
             takes writes in any order from its write pointer on, also of what is written, in the \
             memory of the device, which survives power failures; the pages that the write pointer \
             passes are programmed. Without it zones have none.";
        zrwa_granularity: Option<u64> = Kind::Bytes, optional
            needs &[Needs::given("zrwa_size")],
            "Steps in which the write pointer of a zone with a random write area moves \
             (ZRWAFG); page_size when absent.";
        zrwa_zones: Option<u32> = ZONES, optional needs &[Needs::given("zrwa_size")],
            "Most zones with a random write area at a time; max_active_zones when absent.";
        stripe_pages: u32 = Kind::Count { min: 1, max: 65_536 }, default "1",
            "Consecutive pages of a zone in one block, before it continues on the next plane.";
        erase: Erased = Kind::Choice(Erased::NAMES), default "reset",
            "When the blocks of a zone are erased: a `reset` erases those that hold data of the \
             host, beside the time of the controller, and completes when they are erased; those \
             with padding alone are erased before they are written again; or all when a zone is \
             next `open`ed on them, before its first page.";
        append_time: SimDuration = Kind::Duration, default "0us" needs TIMED,
            "Controller time of a zone append beyond that of a write.";
        reset_time: SimDuration = Kind::Duration, default "0us" needs TIMED,
            "Controller time of a reset; its erases run beside it.";
        reset_data_time: SimDuration = Kind::Duration, default "0us" needs TIMED,
            "Controller time of a reset per MiB that the host has written to the zone, whose map \
             is dropped.";
        finish_time: SimDuration = Kind::Duration, default "0us" needs TIMED,
            "Controller time of ending a zone that is not full: of a finish, before padding, and \
             of a reset of a zone with data that was not finished, unless less than a stripe is \
             written. A finish pads the rest of a zone that holds data at the speed of the flash, \
             beside other requests.";
        open_time: SimDuration = Kind::Duration, default "0us" needs TIMED,
            "Controller time of an explicit open.";
        close_time: SimDuration = Kind::Duration, default "0us" needs TIMED,
            "Controller time of a close.";
        precondition: Filled = Kind::Choice(Filled::NAMES), default "none",
            "Written before the run, without simulated time: `fill`, zones in order.";
    }
}

/// Sizes that follow from the settings.
struct Sizes {
    geometry: Geometry,
    stripe: Stripe,
    capacity_pages: u32,
    zone_sectors: u64,
    zones: u32,
}

impl Sizes {
    /// # Errors
    /// All problems with the geometry, or with the zones.
    fn new(params: &ZnsParams) -> Result<Self, Vec<Problem>> {
        let geometry = params.drive.geometry.geometry()?;
        let page = u64::from(geometry.page_bytes());
        let capacity = params.zone_capacity;
        let size = params.zone_size.unwrap_or(capacity);
        let mut problems = Vec::new();
        for (key, bytes) in [("zone_capacity", capacity), ("zone_size", size)] {
            if bytes == 0 || !bytes.is_multiple_of(page) {
                let message = format!("{bytes} bytes: must be a multiple of page_size ({page})");
                problems.push(Problem::new(key, message));
            }
        }
        if size < capacity {
            problems.push(Problem::new("zone_size", "must be at least zone_capacity"));
        }
        if size / SECTOR_BYTES > u64::from(u32::MAX) {
            problems.push(Problem::new("zone_size", "must be below 2 TiB"));
        }
        let pages = params.stripe_pages;
        if !geometry.pages_per_block().is_multiple_of(pages) {
            let block = geometry.pages_per_block();
            let message = format!("{pages} pages do not divide a block of {block}");
            problems.push(Problem::new("stripe_pages", message));
        }
        let capacity_pages = u32::try_from(capacity / page).unwrap_or(u32::MAX);
        if capacity_pages > geometry.pages() {
            let message = "is more than the flash; lower it, or add blocks";
            problems.push(Problem::new("zone_capacity", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let stripe = Stripe::new(geometry, pages, capacity_pages);
        let fits = stripe.groups();
        let zones = params.zones.unwrap_or(u64::from(fits));
        if zones > u64::from(fits) {
            let rows = stripe.rows;
            let message = format!(
                "the flash holds {fits} zones, of {rows} of the {} blocks of each plane; use \
                 fewer or smaller zones, or add blocks",
                geometry.blocks_per_plane()
            );
            return Err(vec![Problem::new("zones", message)]);
        }
        let zone_sectors = size / SECTOR_BYTES;
        if zones * (size / page) > u64::from(u32::MAX) {
            let message = "the address space has more than 4,294,967,295 pages; use larger pages";
            return Err(vec![Problem::new("zone_size", message)]);
        }
        Ok(Self { geometry, stripe, capacity_pages, zone_sectors, zones: zones as u32 })
    }
}

/// The random write areas, in pages.
fn random_areas(
    params: &ZnsParams,
    page: u64,
    capacity: u32,
) -> Result<Option<RandomWriteAreas>, Vec<Problem>> {
    let Some(size) = params.zrwa_size else { return Ok(None) };
    let granularity = params.zrwa_granularity.unwrap_or(page);
    let mut problems = Vec::new();
    for (key, bytes, unit) in [
        ("zrwa_granularity", granularity, ("page_size", page)),
        ("zrwa_size", size, ("zrwa_granularity", granularity)),
    ] {
        if bytes == 0 || unit.1 == 0 || !bytes.is_multiple_of(unit.1) {
            let message = format!("{bytes} bytes: must be a multiple of {} ({})", unit.0, unit.1);
            problems.push(Problem::new(key, message));
        }
    }
    if size / page > capacity.into() {
        problems.push(Problem::new("zrwa_size", "must be at most zone_capacity"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let zones_max = params.zrwa_zones.or(params.max_active_zones).unwrap_or(u32::MAX);
    let [size, granularity] = [size, granularity].map(|bytes| (bytes / page) as u32);
    Ok(Some(RandomWriteAreas { size, granularity, zones_max }))
}

fn limits(params: &ZnsParams, page: u64, capacity: u32) -> Result<ZoneLimits, Vec<Problem>> {
    let of = |limit: Option<u32>| limit.unwrap_or(u32::MAX);
    let (open_max, active_max) = (of(params.max_open_zones), of(params.max_active_zones));
    if params.max_open_zones.is_some() && open_max > active_max {
        let message = "must be at most max_active_zones, as open zones are active";
        return Err(vec![Problem::new("max_open_zones", message)]);
    }
    let random = random_areas(params, page, capacity)?;
    Ok(ZoneLimits { capacity, open_max, active_max, random })
}

/// Builds the concrete type.
///
/// # Errors
/// All problems with the parameters.
pub fn build_zns(input: &BuildInput<'_>) -> Result<ZnsSsd, Vec<Problem>> {
    let params = ZnsParams::from_settings(input.settings);
    let drive = &params.drive;
    check_memory("blocks_per_plane", params.table_bytes())?;
    let Sizes { geometry, capacity_pages, zone_sectors, zones, .. } = Sizes::new(&params)?;
    let limits = limits(&params, geometry.page_bytes().into(), capacity_pages)?;
    let (geometry, bad) = drive.without_factory_bad(input, geometry)?;
    let stripe = Stripe::new(geometry, params.stripe_pages, capacity_pages);
    check_holds(&stripe, zones)?;
    let array = Array::new(geometry, ProgramOrder::Sequential, drive.endurance);
    let translation = TranslationTraits { name: "zones", refreshes: true, fills: true };
    let mut back_end = drive.back_end(input, array, None, translation)?;
    let fill = if params.precondition == Filled::Fill { drive.precondition_fill } else { 0.0 };
    let all_pages = u64::from(zones) * u64::from(capacity_pages);
    let constants = drive.constants(&back_end, all_pages as f64, bad);
    let info = params.info(constants, all_pages, [zones.into(), zone_sectors]);
    let pages = u64::from(zones) * (zone_sectors / u64::from(geometry.sectors_per_page()));
    let precondition_pages = share_of(all_pages, fill);
    let front = FrontEnd {
        has_zones: true,
        preconditions: precondition_pages > 0,
        ..drive.front_end(input, &mut back_end, (pages, translation), info)?
    };
    let translation = ZoneTranslation {
        zones: Zones::new(zones, limits),
        stripe,
        random: RandomPages::default(),
        back_end,
        times: ActionTimes {
            append: params.append_time,
            reset: params.reset_time,
            reset_data: params.reset_data_time,
            finish: params.finish_time,
            open: params.open_time,
            close: params.close_time,
        },
        zone_sectors,
        erase_at_open: params.erase == Erased::AtOpen,
        free: (0..stripe.groups()).collect::<VecDeque<u32>>(),
        free_is_erased: false,
        operations: Vec::new(),
        refresh: None,
        precondition_pages,
    };
    Ok(ZnsSsd::new(front, translation))
}

fn check_holds(good: &Stripe, zones: u32) -> Result<(), Vec<Problem>> {
    let fits = good.groups();
    if fits >= zones {
        return Ok(());
    }
    let message = format!(
        "leaves good blocks for {fits} of the {zones} zones; lower it, set zones to {fits} or \
         fewer, or add blocks"
    );
    Err(vec![Problem::new("factory_bad", message)])
}

/// A share of so many pages: 0.7 of 10 zones are 7 full zones, although 0.7 is a bit less.
fn share_of(pages: u64, share: f64) -> u64 {
    (pages as f64 * share).round() as u64
}

/// State of a block besides its bitmap.
const BYTES_PER_BLOCK: u64 = 16;

/// Capacity of a device with these settings, including the part of each zone beyond its capacity.
fn capacity_bytes(settings: &Settings) -> u64 {
    let sizes = Sizes::new(&ZnsParams::from_settings(settings));
    sizes.map_or(0, |it| u64::from(it.zones) * it.zone_sectors * SECTOR_BYTES)
}

impl ZnsParams {
    fn table_bytes(&self) -> u64 {
        let flash = self.drive.geometry.geometry().map_or(0, |geometry| {
            u64::from(geometry.pages()) / 8 + u64::from(geometry.blocks()) * BYTES_PER_BLOCK
        });
        let zones = Sizes::new(self).map_or(0, |sizes| {
            let group = size_of::<u32>() as u64;
            u64::from(sizes.zones) * Zones::BYTES + u64::from(sizes.stripe.groups()) * group
        });
        flash + zones
    }

    fn info(
        &self,
        mut constants: Vec<(&'static str, f64)>,
        exported_pages: u64,
        [zones, zone_sectors]: [u64; 2],
    ) -> ComponentInfo {
        constants.extend([
            ("zones", zones as f64),
            (ZONE_SECTORS, zone_sectors as f64),
            ("zone_capacity_pages", exported_pages as f64 / zones as f64),
        ]);
        ComponentInfo {
            kind: ZNS_KIND,
            watts: Some(self.drive.energy.watts()),
            operation_joules: self.drive.energy.joules(),
            custom: STATISTIC_NAMES,
            constants,
            ..ComponentInfo::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn shares_of_zones_are_whole_zones() {
        for (zones, share, full) in [(10, 0.7, 7), (100, 0.29, 29), (100, 0.57, 57), (3, 1.0, 3)] {
            assert_eq!(share_of(zones * 1_000, share), full * 1_000, "{share}");
        }
    }
}
