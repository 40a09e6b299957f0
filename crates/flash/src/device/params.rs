//! The parameters of kind `ssd`, and how one is built from them.

use super::timing_params::{
    ARRAY_TIMES, COPIES, SCHEDULING, SLC_MODE, TIMING_MODEL, timing_model, with_copies,
};
use super::{EnergyMeter, FrontEnd, FtlBackend, Ssd, THERMAL, Thermal};
use crate::array::{Array, ENDURANCE_MAX, ProgramOrder};
use crate::bit_errors::{self, BitErrors, initial_cycles};
use crate::event::joules::{ERASES, PROGRAMS, READS, VICTIM_SEARCH};
use crate::event::{ECC_BITS, INITIAL_ERASES, SLC_ENDURANCE};
use crate::ftl::{FtlEntry, FtlInput, SlcBlocks};
use crate::geometry::{self, Geometry, Shape};
use crate::ops::FlashOps;
use crate::packed::width_for;
use crate::precondition::Precondition;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings, joined};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{Component, ComponentInfo, Contents, PowerState, SimDuration, Stream};

/// The devices of this crate.
pub const ENTRIES: &[ComponentEntry] = &[SSD, crate::slc_mlc::ENTRY, crate::zns::ENTRY];

/// The kind that [`build_ssd`] builds.
pub const SSD_KIND: &str = "ssd";

const SSD: ComponentEntry = ComponentEntry {
    description: Description {
        name: SSD_KIND,
        summary: "An SSD: a flash translation layer over channels and dies of NAND flash.",
        origin: "structure of flashsim (FlashSim), section 3; SSD extensions of DiskSim",
        params: &PARAMS,
    },
    build,
};

/// Idle time before background work, of every SSD.
pub(crate) const IDLE_AFTER: Param = Param::optional(
    "idle_after",
    Kind::Duration,
    "Idle time after which the device starts background work (garbage collection, emptying an SLC \
     cache); without it there is none.",
);

/// The parameters of an SSD.
pub const PARAMS: [Param; 95] = joined(&[
    &geometry::PARAMS,
    FTL,
    TIMING_MODEL,
    ARRAY_TIMES,
    SLC_MODE,
    COPIES,
    SCHEDULING,
    OPERATION_ENERGY,
    CONTROLLER_ENERGY,
    POWER,
    THERMAL,
    PRECONDITION,
    bit_errors::PARAMS,
]);

/// Translation layer and endurance.
const FTL: &[Param] = &[
    Param::with(
        "over_provisioning",
        Kind::Number { min: 0.0, max: 4.0 },
        "0.07",
        "Over-provisioning as (physical - exported) / exported capacity; 0.07 is 7 %.",
    ),
    Param::with("ftl", Kind::Entry("ftl"), "\"page\"", "The flash translation layer."),
    Param::with(
        "program_order",
        Kind::Choice(&["sequential", "ascending", "any"]),
        "\"sequential\"",
        "The order in which the chip allows the pages of a block to be programmed.",
    ),
    Param::with(
        "endurance",
        Kind::Count { min: 1, max: ENDURANCE_MAX as u64 },
        "100000",
        "Program/erase cycles per block; a block is retired after its last. The device operates \
         while the remaining blocks hold the exported capacity and what the translation layer \
         needs to move data; then writes fail as worn out, which ends the run. Written data \
         remain readable.",
    ),
    Param::with(
        "factory_bad",
        Kind::Number { min: 0.0, max: 0.5 },
        "0.0",
        "Fraction of blocks that are bad from the factory, drawn at random. The controller uses \
         the same number of blocks of each plane, so the worst plane decides; bad blocks reduce \
         over-provisioning.",
    ),
    Param::with(
        "grown_bad",
        Kind::Number { min: 0.0, max: 0.5 },
        "0.0",
        "Probability that an erase fails and its block is retired before the end of its endurance.",
    ),
    Param::with(
        "recovery",
        Kind::Choice(&["none", "blocks", "pages"]),
        "\"blocks\"",
        "What is read after a power failure to rebuild the mapping, by all dies in parallel: \
         nothing, a summary page of every block (assumed), or every page's spare area.",
    ),
    Param::with(
        "search_time",
        Kind::Duration,
        "\"0ns\"",
        "Controller time per block examined by victim policies that search (`partial-search`, \
         `d-choices`); part of the request's latency.",
    ),
    IDLE_AFTER,
];

pub(crate) const OPERATION_ENERGY: &[Param] = &[
    Param::with(
        "read_energy",
        Kind::Energy,
        "\"0uJ\"",
        "Energy per page of the map read (see `read_pages`).",
    ),
    Param::with("program_energy", Kind::Energy, "\"0uJ\"", "Energy per page programmed."),
    Param::with("erase_energy", Kind::Energy, "\"0uJ\"", "Energy per block erased."),
];

const CONTROLLER_ENERGY: &[Param] = &[
    Param::with(
        "search_energy",
        Kind::Energy,
        "\"0uJ\"",
        "Energy per block examined by victim policies that search (see `search_time`).",
    ),
    Param::with(
        "ram_power",
        Kind::Power,
        "\"0W\"",
        "Power per MiB of the RAM that holds the mapping, drawn at all times.",
    ),
];

pub(crate) const POWER: &[Param] = &[
    Param::with("idle_power", Kind::Power, "\"0W\"", "Power while idle."),
    Param::with(
        "active_power",
        Kind::Power,
        "\"0W\"",
        "Power from a request's arrival until the last of its flash operations ends.",
    ),
    Param::optional("standby_power", Kind::Power, "Power in standby; reported only."),
];

const PRECONDITION: &[Param] = &[
    Param::with(
        "precondition",
        Kind::Choice(Precondition::NAMES),
        "\"none\"",
        "Written before the run, without simulated time: `fill`, every page in order; \
         `fill-random`, every page in random order; `steady`, every page in order, then random \
         pages until write amplification is stable; `steady-drawn`, the state that random writes \
         lead to, drawn from its distribution: for large devices with the FTL `page`.",
    ),
    Param::with(
        "precondition_fill",
        Kind::Number { min: 0.0, max: 1.0 },
        "1.0",
        "Fraction of the exported capacity that preconditioning writes, from address 0 on.",
    )
    .needs(&[Needs::Not("precondition", &["none"])]),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(build_ssd(input)?))
}

/// Bits of a page in the map, of which every FTL has at most one that grows with the device.
const MAP_BITS_PER_PAGE: f64 = u32::BITS as f64;
/// Page states, as bits.
const STATE_BITS_PER_PAGE: f64 = 2.0;
/// State of a block, and its place in lists of the FTL and its policies.
const BYTES_PER_BLOCK: u64 = 64;

/// What the tables of a device take in memory once every page has been written, rounded up.
fn table_bytes(geometry: &Geometry, exported_pages: u32) -> u64 {
    let owner = f64::from(width_for(exported_pages.saturating_sub(1)));
    let bits = f64::from(geometry.pages()) * (owner + STATE_BITS_PER_PAGE)
        + f64::from(exported_pages) * MAP_BITS_PER_PAGE;
    (bits / 8.0) as u64 + u64::from(geometry.blocks()) * BYTES_PER_BLOCK
}

/// Memory for the tables of an SSD with these settings once every page has been written, before it
/// is built.
pub(crate) fn ssd_table_bytes(settings: &Settings) -> u64 {
    Geometry::new(&Shape::from_settings(settings)).as_ref().map_or(0, |geometry| {
        table_bytes(geometry, geometry.exported_pages(settings.number("over_provisioning")))
    })
}

/// What of them is needed when the run begins: most memory is taken only as pages are written.
fn initial_table_bytes(settings: &Settings, exported_pages: u32) -> u64 {
    let written = match settings.text("precondition") {
        "none" => 0.0,
        _ => settings.number("precondition_fill"),
    };
    // Some FTLs fill in their map at once.
    let map = (f64::from(exported_pages) * MAP_BITS_PER_PAGE / 8.0) as u64;
    map.max((ssd_table_bytes(settings) as f64 * written) as u64)
}

/// Exported capacity of an SSD with these settings; factory-bad blocks, which reduce it, are not
/// known before it is built.
pub(crate) fn ssd_capacity_bytes(settings: &Settings) -> u64 {
    let geometry = Geometry::new(&Shape::from_settings(settings));
    geometry.map_or(0, |geometry| {
        let pages = geometry.exported_pages(settings.number("over_provisioning"));
        u64::from(pages) * u64::from(geometry.page_bytes())
    })
}

/// Rejects a device whose tables take more than the memory there is, before they are allocated.
/// `param` sets the size.
pub(crate) fn check_memory(param: &'static str, bytes: u64) -> Result<(), Vec<Problem>> {
    let mut probe: Vec<u8> = Vec::new();
    if usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok()) {
        return Ok(());
    }
    let mib = bytes >> 20;
    let message = format!("the device's tables need about {mib} MiB, more than the free memory");
    Err(vec![Problem::new(param, message)])
}

/// Checks that a steady state of `pages` logical pages can be drawn for an FTL that writes this
/// many pages before it collects garbage.
fn check_drawn(pages: u32, before_collection: Option<u64>) -> Result<(), Vec<Problem>> {
    let message = match before_collection {
        None => "`steady-drawn` is for the FTL `page` without hot/cold separation; use `steady`",
        Some(flash) if flash <= u64::from(pages) => {
            "`steady-drawn` needs more free blocks than garbage collection keeps; raise \
             over_provisioning or blocks_per_plane, or use `steady`"
        }
        Some(_) => return Ok(()),
    };
    Err(vec![Problem::new("precondition", message)])
}

/// Builds the concrete type.
///
/// # Errors
/// All problems with the parameters.
pub fn build_ssd(input: &BuildInput<'_>) -> Result<Ssd, Vec<Problem>> {
    let settings = input.settings;
    let geometry = Geometry::new(&Shape::from_settings(settings))?;
    let exported_pages = geometry.exported_pages(settings.number("over_provisioning"));
    check_memory("blocks_per_plane", initial_table_bytes(settings, exported_pages))?;
    if exported_pages == 0 {
        let message = "leaves no page to export; lower it, or add blocks";
        return Err(vec![Problem::new("over_provisioning", message)]);
    }
    let (entry, ftl_settings) = input.chosen::<FtlEntry>("ftl");
    let (geometry, bad) = without_factory_bad(input, geometry)?;
    let mut ftl = (entry.build)(&FtlInput {
        settings: ftl_settings,
        geometry: &geometry,
        exported_pages,
        registry: input.registry,
        seed: input.seed,
        path: input.path,
    })?;
    let order = match settings.text("program_order") {
        "any" => ProgramOrder::Any,
        "ascending" => ProgramOrder::Ascending,
        _ => ProgramOrder::Sequential,
    };
    let endurance = settings.count("endurance") as u32;
    let names = (entry.description().name, ftl.refreshes());
    let bit_errors = BitErrors::build(input, &geometry, names)?;
    let slc = ftl.slc_blocks();
    let slc_endurance = slc.and_then(|slc| slc_endurance(settings, &slc));
    let bits = slc.map_or(1, |slc| slc.bits);
    check_slc(settings, bits)?;
    let timing = timing_model(settings, geometry, with_copies(settings, &geometry, bits))?;
    let mut stream = Stream::new(input.seed, &format!("{}/grown-bad", input.path));
    let mut array = Array::new(geometry, order, endurance).with_logical_pages(exported_pages);
    if let Some(slc) = slc {
        array = array.with_slc_mode(slc.pages_per_block);
        if let Some(endurance) = slc_endurance {
            array = array.with_static_cache(slc.static_per_plane, endurance);
        }
    }
    let array = array.with_grown_bad_blocks(settings.number("grown_bad"), &mut stream);
    let mut flash = FlashOps::new(array);
    let initial_wear = settings.number("initial_wear");
    if initial_wear > 0.0 {
        flash.wear_out(initial_wear);
    }
    flash.set_recording(false);
    ftl.prepare(&mut flash).map_err(|error| vec![Problem::new("ftl", error.to_string())])?;
    flash.set_recording(true);
    let precondition = Precondition::named(settings.text("precondition"));
    let fill = settings.number("precondition_fill");
    let precondition_pages = (f64::from(exported_pages) * fill) as u32;
    if precondition == Precondition::SteadyDrawn {
        check_drawn(precondition_pages, ftl.pages_before_collection())?;
    }
    let sectors_per_page = geometry.sectors_per_page();
    let mut info = info(settings, &geometry, exported_pages, ftl.mapping_ram_bytes(), bad);
    info.constants.extend(slc_endurance.map(|erases| (SLC_ENDURANCE, f64::from(erases))));
    let front = FrontEnd {
        capacity: u64::from(exported_pages) * u64::from(sectors_per_page),
        idle_after: settings.duration_opt("idle_after"),
        power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
        thermal: Thermal::new(settings, &info)?,
        info,
    };
    let backend = FtlBackend {
        ftl_name: entry.description().name,
        ftl,
        flash,
        sectors_per_page,
        search_time: settings.duration("search_time"),
        host_buffer_time: host_buffer_time(ftl_settings),
        timing,
        bit_errors,
        unreadable: false,
        meter: EnergyMeter::of(settings, settings.number("search_energy")),
        recovery: recovery(settings, &geometry),
        precondition,
        precondition_pages,
        precondition_stream: Stream::new(input.seed, &format!("{}/precondition", input.path)),
        versions: Contents::default(),
        page: vec![0; sectors_per_page as usize],
    };
    Ok(Ssd::new(front, backend))
}

/// Time of a read of the host's memory, of an FTL that has part of its map there.
fn host_buffer_time(ftl: &Settings) -> SimDuration {
    match ftl.has("host_buffer_time") {
        true => ftl.duration("host_buffer_time"),
        false => SimDuration::ZERO,
    }
}

/// Endurance of the blocks of the static SLC cache, if there are any and it is not that of all.
fn slc_endurance(settings: &Settings, slc: &SlcBlocks) -> Option<u32> {
    if slc.static_per_plane == 0 {
        return None; // The key is not read, so that it is reported to have no effect.
    }
    let endurance = settings.count_opt("slc_endurance")?;
    (endurance != settings.count("endurance")).then_some(endurance as u32)
}

/// Checks a device whose cells hold `bits` bits in native mode, more than one if blocks can be in
/// SLC mode.
fn check_slc(settings: &Settings, bits: u32) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    if bits > 1 && settings.text("bit_errors") != "none" {
        let message = "error rates of blocks in SLC mode are not modelled; leave it out, or use \
                       the FTL `page`";
        problems.push(Problem::new("bit_errors", message));
    }
    if bits > 1 && settings.text("timing") == "queued" {
        let (pages, types) = (settings.count("program_pages"), settings.count("page_types"));
        if pages > 1 && !pages.is_multiple_of(u64::from(bits)) {
            let message = format!("must be a multiple of bits_per_cell ({bits})");
            problems.push(Problem::new("program_pages", message));
        }
        if settings.number("read_spread") > 0.0 && types != u64::from(bits) {
            let message = format!("must be the bits_per_cell of the FTL ({bits})");
            problems.push(Problem::new("page_types", message));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Time to read what the mapping is rebuilt from, with all dies in parallel.
fn recovery(settings: &Settings, geometry: &Geometry) -> SimDuration {
    let reads = match settings.text("recovery") {
        "none" => 0,
        "blocks" => u64::from(geometry.blocks()),
        _ => u64::from(geometry.pages()),
    };
    settings.duration("read_time") * reads.div_ceil(u64::from(geometry.dies()))
}

/// The geometry without blocks that are bad from the factory, and how many blocks are bad.
fn without_factory_bad(
    input: &BuildInput<'_>,
    geometry: Geometry,
) -> Result<(Geometry, u64), Vec<Problem>> {
    let share = input.settings.number("factory_bad");
    if share == 0.0 {
        return Ok((geometry, 0));
    }
    let mut stream = Stream::new(input.seed, &format!("{}/factory-bad", input.path));
    let mut bad = || (0..geometry.blocks_per_plane()).filter(|_| stream.chance(share)).count();
    let by_plane: Vec<u64> = (0..geometry.planes()).map(|_| bad() as u64).collect();
    let worst = by_plane.iter().copied().max().unwrap_or(0);
    let mut shape = Shape::from_settings(input.settings);
    shape.blocks_per_plane -= worst;
    if shape.blocks_per_plane == 0 {
        let message = "leaves a plane without good blocks; lower it, or add blocks";
        return Err(vec![Problem::new("factory_bad", message)]);
    }
    Ok((Geometry::new(&shape)?, by_plane.iter().sum()))
}

fn info(
    settings: &Settings,
    geometry: &Geometry,
    exported: u32,
    ram_bytes: u64,
    factory_bad: u64,
) -> ComponentInfo {
    let mut watts = [0.0; PowerState::COUNT];
    watts[PowerState::Idle as usize] = settings.number("idle_power");
    watts[PowerState::Active as usize] = settings.number("active_power");
    watts[PowerState::Standby as usize] = settings.number_opt("standby_power").unwrap_or(0.0);
    let [read, program, erase] =
        ["read_energy", "program_energy", "erase_energy"].map(|key| settings.number(key));
    let physical = f64::from(geometry.pages());
    let ram_watts = settings.number("ram_power") * ram_bytes as f64 / f64::from(1 << 20);
    let modelled = settings.text("bit_errors") != "none";
    let corrected = modelled.then(|| (ECC_BITS, settings.count("ecc_bits") as f64));
    let initial_erases = initial_cycles(settings);
    let worn = (initial_erases > 0).then_some((INITIAL_ERASES, f64::from(initial_erases)));
    ComponentInfo {
        kind: SSD_KIND,
        watts: Some(watts),
        operation_joules: vec![
            (READS, read),
            (PROGRAMS, program),
            (ERASES, erase),
            (VICTIM_SEARCH, settings.number("search_energy")),
        ],
        always_watts: vec![("mapping_ram", ram_watts)],
        constants: [
            ("channels", f64::from(geometry.channels())),
            ("dies", f64::from(geometry.dies())),
            ("planes", f64::from(geometry.planes())),
            ("blocks", f64::from(geometry.blocks())),
            ("pages_per_block", f64::from(geometry.pages_per_block())),
            ("page_bytes", f64::from(geometry.page_bytes())),
            ("physical_pages", physical),
            ("exported_pages", f64::from(exported)),
            ("over_provisioning", physical / f64::from(exported) - 1.0),
            ("mapping_ram_bytes", ram_bytes as f64),
            ("factory_bad_blocks", factory_bad as f64),
            ("endurance", settings.count("endurance") as f64),
        ]
        .into_iter()
        .chain(worn)
        .chain(corrected)
        .collect(),
        ..ComponentInfo::default()
    }
}
