//! The parameters of kind `zns-ssd`, and how one is built from them.

use super::backend::{ActionTimes, ZnsBackend, ZnsSsd};
use super::stripe::Stripe;
use super::zone::{Limits, STATISTIC_NAMES, Zone, Zones};
use crate::array::{Array, ENDURANCE_MAX, ProgramOrder};
use crate::device::{
    ARRAY_TIMES, EnergyMeter, FrontEnd, OPERATION_ENERGY, POWER, SCHEDULING, THERMAL, TIMING_MODEL,
    Thermal, check_memory, operation_times, timing_model,
};
use crate::event::joules::{ERASES, PROGRAMS, READS};
use crate::geometry::{self, Geometry, Shape};
use crate::ops::FlashOps;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings, joined};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Component, ComponentInfo, Contents, PowerState, SECTOR_BYTES, Stream};
use std::collections::VecDeque;

pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: ZNS_KIND,
        summary: "A zoned SSD (ZNS): zones are written in order and reset as a whole.",
        origin: "NVMe Zoned Namespace Command Set Specification 1.1",
        params: PARAMS,
    },
    build,
};

/// The kind that [`build_zns`] builds.
pub const ZNS_KIND: &str = "zns-ssd";
const ZONES: Kind = Kind::Count { min: 1, max: 1 << 24 };

/// Concatenates lists of parameters.
macro_rules! params {
    ($($list:expr),+ $(,)?) => {
        &joined::<{ 0 $(+ $list.len())+ }>(&[$($list),+])
    };
}

/// The parameters of a zoned SSD.
pub const PARAMS: &[Param] = params![
    &geometry::PARAMS,
    ZONED,
    TIMING_MODEL,
    ARRAY_TIMES,
    SCHEDULING,
    OPERATION_ENERGY,
    POWER,
    THERMAL,
    PRECONDITION,
];

const ZONED: &[Param] = &[
    Param::required(
        "zone_capacity",
        Kind::Bytes,
        "Bytes of a zone that can be written, in whole pages. A zone takes blocks of every plane, \
         as many as its capacity needs.",
    ),
    Param::optional(
        "zone_size",
        Kind::Bytes,
        "Distance of the starts of two zones in the address space; zone_capacity when absent. \
         What is beyond the capacity cannot be written.",
    ),
    Param::optional(
        "zones",
        ZONES,
        "Zones; as many as the flash holds when absent. Flash beyond \
         them replaces blocks that are worn out.",
    ),
    Param::optional(
        "max_open_zones",
        ZONES,
        "Most zones that are open at a time. A write to another closes the least recently used \
         of those opened implicitly, and fails where the host opened all explicitly. \
         Without it there is no limit.",
    ),
    Param::optional(
        "max_active_zones",
        ZONES,
        "Most zones that are open or closed (partly written) at a time; writes to other zones \
         fail. Without it there is no limit.",
    ),
    Param::with(
        "stripe_pages",
        Kind::Count { min: 1, max: 65_536 },
        "1",
        "Consecutive pages of a zone in one block, before the zone continues on the next plane.",
    ),
    Param::with(
        "erase",
        Kind::Choice(&["reset", "open"]),
        "\"reset\"",
        "When the blocks of a zone are erased: a `reset` erases those that hold data of the host, \
         beside the time of the controller, and completes when they are erased; those with padding \
         alone are erased before they are written again; or all when a zone is next `open`ed on \
         them, before its first page.",
    ),
    Param::with(
        "append_time",
        Kind::Duration,
        "\"0us\"",
        "Controller time of a zone append beyond that of a write.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "reset_time",
        Kind::Duration,
        "\"0us\"",
        "Controller time of a reset; its erases run beside it.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "reset_data_time",
        Kind::Duration,
        "\"0us\"",
        "Controller time of a reset per MiB that the host has written to the zone, whose map is \
         dropped.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "finish_time",
        Kind::Duration,
        "\"0us\"",
        "Controller time of ending a zone that is not full: of a finish, before padding, and of a \
         reset of a zone with data that was not finished, unless less than a stripe is written. A \
         finish pads the rest of a zone that holds data at the speed of the flash, beside other \
         requests.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with("open_time", Kind::Duration, "\"0us\"", "Controller time of an explicit open.")
        .needs(&[Needs::Not("timing", &["none"])]),
    Param::with("close_time", Kind::Duration, "\"0us\"", "Controller time of a close.")
        .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "endurance",
        Kind::Count { min: 1, max: ENDURANCE_MAX as u64 },
        "100000",
        "Program/erase cycles per block. A zone that finds no flash but worn-out blocks goes \
         offline: its writes fail.",
    ),
];

const PRECONDITION: &[Param] = &[
    Param::with(
        "precondition",
        Kind::Choice(&["none", "fill"]),
        "\"none\"",
        "Written before the run, without simulated time: `fill`, zones in order.",
    ),
    Param::with(
        "precondition_fill",
        Kind::Number { min: 0.0, max: 1.0 },
        "1.0",
        "Fraction of the capacity of all zones that preconditioning writes, from zone 0 on.",
    )
    .needs(&[Needs::Not("precondition", &["none"])]),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(build_zns(input)?))
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
    fn new(settings: &Settings) -> Result<Self, Vec<Problem>> {
        let geometry = Geometry::new(&Shape::from_settings(settings))?;
        let page = u64::from(geometry.page_bytes());
        let capacity = settings.bytes("zone_capacity");
        let size = settings.bytes_opt("zone_size").unwrap_or(capacity);
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
        let pages = settings.count("stripe_pages");
        if !u64::from(geometry.pages_per_block()).is_multiple_of(pages) {
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
        let stripe = Stripe::new(geometry, pages as u32, capacity_pages);
        let fits = stripe.groups();
        let zones = settings.count_opt("zones").unwrap_or(u64::from(fits));
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

fn limits(settings: &Settings, capacity_pages: u32) -> Result<Limits, Vec<Problem>> {
    let of = |key| settings.count_opt(key).map_or(u32::MAX, |count| count as u32);
    let (open_max, active_max) = (of("max_open_zones"), of("max_active_zones"));
    if settings.has("max_open_zones") && open_max > active_max {
        let message = "must be at most max_active_zones, as open zones are active";
        return Err(vec![Problem::new("max_open_zones", message)]);
    }
    Ok(Limits { capacity_pages, open_max, active_max })
}

/// Builds the concrete type.
///
/// # Errors
/// All problems with the parameters.
pub fn build_zns(input: &BuildInput<'_>) -> Result<ZnsSsd, Vec<Problem>> {
    let settings = input.settings;
    check_memory("blocks_per_plane", table_bytes(settings))?;
    let Sizes { geometry, stripe, capacity_pages, zone_sectors, zones } = Sizes::new(settings)?;
    let limits = limits(settings, capacity_pages)?;
    let timing = timing_model(settings, geometry, operation_times(settings, &geometry))?;
    let endurance = settings.count("endurance") as u32;
    let array = Array::new(geometry, ProgramOrder::Sequential, endurance);
    let time = |key| settings.duration(key);
    let fill = match settings.text("precondition") {
        "none" => 0.0,
        _ => settings.number("precondition_fill"),
    };
    let all_pages = u64::from(zones) * u64::from(capacity_pages);
    let info = info(settings, &geometry, all_pages, [zones.into(), zone_sectors]);
    let front = FrontEnd {
        capacity: u64::from(zones) * zone_sectors,
        idle_after: None,
        power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
        thermal: Thermal::new(settings, &info)?,
        info,
    };
    let backend = ZnsBackend {
        zones: Zones::new(zones, limits),
        stripe,
        flash: FlashOps::new(array),
        timing,
        meter: EnergyMeter::of(settings, 0.0),
        times: ActionTimes {
            append: time("append_time"),
            reset: time("reset_time"),
            reset_data: time("reset_data_time"),
            finish: time("finish_time"),
            open: time("open_time"),
            close: time("close_time"),
        },
        zone_sectors,
        erase_at_open: settings.text("erase") == "open",
        free: (0..stripe.groups()).collect::<VecDeque<u32>>(),
        works: Vec::new(),
        precondition_pages: share_of(all_pages, fill),
        versions: Contents::default(),
    };
    Ok(ZnsSsd::new(front, backend))
}

/// A share of so many pages: 0.7 of 10 zones are 7 full zones, although 0.7 is a bit less.
fn share_of(pages: u64, share: f64) -> u64 {
    (pages as f64 * share).round() as u64
}

/// State of a block besides its bitmap.
const BYTES_PER_BLOCK: u64 = 16;

/// Memory for the tables of a device with these settings.
pub(crate) fn table_bytes(settings: &Settings) -> u64 {
    let flash = Geometry::new(&Shape::from_settings(settings)).map_or(0, |geometry| {
        u64::from(geometry.pages()) / 8 + u64::from(geometry.blocks()) * BYTES_PER_BLOCK
    });
    let zones = Sizes::new(settings).map_or(0, |sizes| {
        let (zone, group) = (size_of::<Zone>() as u64, size_of::<u32>() as u64);
        u64::from(sizes.zones) * zone + u64::from(sizes.stripe.groups()) * group
    });
    flash + zones
}

/// Capacity of a device with these settings, including the part of each zone beyond its capacity.
pub(crate) fn capacity_bytes(settings: &Settings) -> u64 {
    Sizes::new(settings).map_or(0, |it| u64::from(it.zones) * it.zone_sectors * SECTOR_BYTES)
}

fn info(
    settings: &Settings,
    geometry: &Geometry,
    exported_pages: u64,
    [zones, zone_sectors]: [u64; 2],
) -> ComponentInfo {
    let mut watts = [0.0; PowerState::COUNT];
    watts[PowerState::Idle as usize] = settings.number("idle_power");
    watts[PowerState::Active as usize] = settings.number("active_power");
    watts[PowerState::Standby as usize] = settings.number_opt("standby_power").unwrap_or(0.0);
    let [read, program, erase] =
        ["read_energy", "program_energy", "erase_energy"].map(|key| settings.number(key));
    let physical = f64::from(geometry.pages());
    ComponentInfo {
        kind: ZNS_KIND,
        watts: Some(watts),
        operation_joules: vec![(READS, read), (PROGRAMS, program), (ERASES, erase)],
        custom: STATISTIC_NAMES,
        constants: vec![
            ("channels", f64::from(geometry.channels())),
            ("dies", f64::from(geometry.dies())),
            ("planes", f64::from(geometry.planes())),
            ("blocks", f64::from(geometry.blocks())),
            ("pages_per_block", f64::from(geometry.pages_per_block())),
            ("page_bytes", f64::from(geometry.page_bytes())),
            ("physical_pages", physical),
            ("exported_pages", exported_pages as f64),
            ("over_provisioning", physical / exported_pages as f64 - 1.0),
            ("zones", zones as f64),
            ("zone_sectors", zone_sectors as f64),
            ("zone_capacity_pages", exported_pages as f64 / zones as f64),
            ("endurance", settings.count("endurance") as f64),
        ],
        ..ComponentInfo::default()
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
