//! The parameters of kind `ssd`, and how one is built from them.

use super::{FrontEnd, FtlBackend, Ssd};
use crate::array::{Array, ENDURANCE_MAX, ProgramOrder};
use crate::event::joules::{ERASES, PROGRAMS, READS, VICTIM_SEARCH};
use crate::ftl::{FtlEntry, FtlInput};
use crate::geometry::{self, Geometry, Shape};
use crate::ops::FlashOps;
use crate::packed::width_for;
use crate::precondition::Precondition;
use crate::timing::{
    BufferPauses, ChipPages, CopyBack, DieScheduling, Interleaved, OperationTimes, Queued, Serial,
    SuspendPoints, TimingModel, WriteBuffer,
};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings, joined};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{
    Component, ComponentInfo, Contents, PowerState, SimDuration, SimTime, Stream,
};

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
pub const PARAMS: [Param; 61] = joined(&[
    &geometry::PARAMS,
    FTL,
    TIMING_MODEL,
    ARRAY_TIMES,
    COPIES,
    SCHEDULING,
    OPERATION_ENERGY,
    CONTROLLER_ENERGY,
    POWER,
    PRECONDITION,
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

/// The timing model.
pub(crate) const TIMING_MODEL: &[Param] = &[Param::with(
    "timing",
    Kind::Choice(&["interleaved", "queued", "serial", "none"]),
    "\"interleaved\"",
    "Timing model. `interleaved`: channels and dies in parallel, operations of a die in \
         order. `queued`: host reads have priority and there is a write buffer, as in current \
         drives. `serial`: one operation at a time, as in older papers. `none`: no timing (each \
         request takes 1 ns).",
)];

/// Times of operations and of transfers within the device.
pub(crate) const ARRAY_TIMES: &[Param] = &[
    Param::required("read_time", Kind::Duration, "Page read (tR): cells to page register."),
    Param::required("program_time", Kind::Duration, "Page program (tPROG): register to cells."),
    Param::required("erase_time", Kind::Duration, "Block erase (tBERS)."),
    Param::with(
        "command_time",
        Kind::Duration,
        "\"0ns\"",
        "Command and address cycles on the channel, per operation.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "channel_rate",
        Kind::Rate,
        "\"0MB/s\"",
        "Transfer rate of a channel; 0 if read_time and program_time include the transfer.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "data_command_time",
        Kind::Duration,
        "\"0ns\"",
        "Control cycles on the channel before the data transfer of a read.",
    ),
    Param::with(
        "register_time",
        Kind::Duration,
        "\"0ns\"",
        "Transfer of a page through the plane's register, once per read and once per program.",
    ),
    Param::with(
        "ram_time",
        Kind::Duration,
        "\"0ns\"",
        "Transfer of a page through the controller's RAM on its way from or to the host.",
    ),
];

const COPIES: &[Param] = &[
    Param::with(
        "copy",
        Kind::Choice(&["plane", "die", "channel"]),
        "\"channel\"",
        "Copy-back: copies within a `plane` or within a `die` stay inside the chip; with \
         `channel` every copy passes over the channel through the controller.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::optional(
        "copy_plane_time",
        Kind::Duration,
        "Copy-back within a plane; by default the sum of read and program.",
    )
    .needs(&[Needs::Not("copy", &["channel"])]),
    Param::optional(
        "copy_die_time",
        Kind::Duration,
        "Copy-back between planes of a die; by default the sum of read and program.",
    )
    .needs(&[Needs::Is("copy", &["die"])]),
];

/// What is particular to `queued`, controller and host link.
pub(crate) const SCHEDULING: &[Param] = &[
    Param::optional(
        "program_suspend_time",
        Kind::Duration,
        "`queued`: time to suspend a program for a read; without it programs are not suspended.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::optional(
        "program_suspend_interval",
        Kind::Duration,
        "`queued`: a program can be suspended only each time it has run for so long, so that a \
         read waits for the next such point; default: at any time.",
    )
    .needs(&[Needs::Is("timing", &["queued"]), Needs::given("program_suspend_time")]),
    Param::optional(
        "suspend_reads_max",
        Kind::Count { min: 1, max: 1000 },
        "`queued`: maximum reads of the host that a die executes each time a program is suspended, \
         and ahead of a program that waits; further ones wait for the next point at which the \
         program can be suspended, or its end. Default: no limit.",
    )
    .needs(&[
        Needs::Is("timing", &["queued"]),
        Needs::given("program_suspend_time"),
        Needs::given("program_suspend_interval"),
    ]),
    Param::optional(
        "erase_suspend_time",
        Kind::Duration,
        "`queued`: time to suspend an erase for a read; without it erases are not suspended.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "resume_time",
        Kind::Duration,
        "\"0ns\"",
        "`queued`: time added to a program or erase each time it resumes.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "suspends_max",
        Kind::Count { min: 0, max: 1000 },
        "8",
        "`queued`: maximum suspensions of one program or erase.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "multi_plane",
        Kind::Flag,
        "false",
        "`queued`: programs and erases of one request on several planes of a die run as one \
         multi-plane operation.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "page_types",
        Kind::Count { min: 1, max: 4 },
        "3",
        "`queued`: bits per cell; a cell's pages (LSB, CSB, MSB, ...) alternate in a block and \
         differ in read time by `read_spread`.",
    )
    .needs(&[Needs::above_zero("read_spread")]),
    Param::with(
        "read_spread",
        Kind::Number { min: 0.0, max: 1.9 },
        "0.0",
        "`queued`: read time of the slowest page type minus that of the fastest, as a fraction of \
         `read_time`, their mean.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "read_pages",
        Kind::Count { min: 1, max: 1024 },
        "1",
        "`queued`, `serial`: consecutive pages of a block that the chip reads in one operation. A \
         chip with pages of 16 KiB behind a map of 4 KiB units reads 4. `serial` keeps the page of \
         the chip that was read last, one for all dies, and one more for copies. Counts of reads \
         and `read_energy` are per page of the map.",
    )
    .needs(&[Needs::Is("timing", &["queued", "serial"])]),
    Param::with(
        "program_pages",
        Kind::Count { min: 1, max: 1024 },
        "1",
        "`queued`: consecutive pages of a block that the chip programs in one operation (one-shot \
         program), which begins with the first of them. Needs a write buffer.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "write_buffer",
        Kind::Bytes,
        "\"0B\"",
        "`queued`: size of the write buffer. A write completes when its data are in the buffer; \
         without one, when they are programmed. Writes that find it full wait in order of arrival.",
    )
    .needs(&[Needs::Is("timing", &["queued"])]),
    Param::with(
        "buffer_pause_time",
        Kind::Duration,
        "\"0ns\"",
        "`queued`: how long the write buffer frees no entry at the end of every \
         `buffer_pause_interval`. Writes that do not fit into the rest of it wait until the \
         pause ends. Some drives pause the emptying of their buffer in this way; reads and flash \
         operations continue.",
    )
    .needs(&[Needs::Is("timing", &["queued"]), Needs::above_zero("write_buffer")]),
    Param::optional(
        "buffer_pause_interval",
        Kind::Duration,
        "`queued`: time from the end of a pause of the write buffer to the end of the next.",
    )
    .needs(&[Needs::Is("timing", &["queued"]), Needs::above_zero("buffer_pause_time")]),
    Param::optional(
        "buffer_pause_full_max",
        Kind::Duration,
        "`queued`: a pause of the write buffer ends once a write has waited in it for so long; \
         default: it never ends early.",
    )
    .needs(&[Needs::Is("timing", &["queued"]), Needs::above_zero("buffer_pause_time")]),
    Param::with(
        "free_flush",
        Kind::Flag,
        "false",
        "`queued`: a flush completes at once, as in drives with power-loss protection, instead of \
         waiting for the write buffer. Acknowledged writes survive a power failure in either case.",
    )
    .formerly(&["power_loss_protection"])
    .needs(&[Needs::Is("timing", &["queued"]), Needs::above_zero("write_buffer")]),
    Param::with(
        "read_overhead",
        Kind::Duration,
        "\"0us\"",
        "Controller overhead per read request.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "write_overhead",
        Kind::Duration,
        "\"0us\"",
        "Controller overhead per request other than a read.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::with(
        "request_interval",
        Kind::Duration,
        "\"0us\"",
        "Time the controller spends on each request before it takes the next: the inverse of the \
         most requests per second.",
    )
    .needs(&[Needs::Not("timing", &["none", "serial"])]),
    Param::with(
        "host_rate",
        Kind::Rate,
        "\"0MB/s\"",
        "Transfer rate of the host link; 0 for no transfer time.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::optional(
        "host_write_rate",
        Kind::Rate,
        "As `host_rate`, for writes, where the link takes their data at another rate; 0 for no \
         transfer time of writes.",
    )
    .needs(&[Needs::above_zero("host_rate"), Needs::Not("timing", &["none"])]),
    Param::with(
        "host_duplex",
        Kind::Choice(&["full", "half"]),
        "\"half\"",
        "Whether the host link transfers in both directions at once (PCIe) or not (SATA).",
    )
    .needs(&[Needs::above_zero("host_rate")]),
    Param::optional(
        "schedule_slots",
        Kind::Count { min: 1, max: 1 << 20 },
        "Entries of each bus's schedule table; when it is full, transfers queue behind the last, \
         which costs throughput. Without it a table has as many as it needs.",
    ),
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
    let timing = timing_model(settings, geometry, with_copies(settings, &geometry))?;
    let mut stream = Stream::new(input.seed, &format!("{}/grown-bad", input.path));
    let array = Array::new(geometry, order, endurance)
        .with_logical_pages(exported_pages)
        .with_grown_bad_blocks(settings.number("grown_bad"), &mut stream);
    let mut flash = FlashOps::new(array);
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
    let front = FrontEnd {
        capacity: u64::from(exported_pages) * u64::from(sectors_per_page),
        idle_after: settings.duration_opt("idle_after"),
        power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
        info: info(settings, &geometry, exported_pages, ftl.mapping_ram_bytes(), bad),
    };
    let backend = FtlBackend {
        ftl_name: entry.description().name,
        ftl,
        flash,
        sectors_per_page,
        search_time: settings.duration("search_time"),
        timing,
        recovery: recovery(settings, &geometry),
        precondition,
        precondition_pages,
        precondition_stream: Stream::new(input.seed, &format!("{}/precondition", input.path)),
        versions: Contents::default(),
        page: vec![0; sectors_per_page as usize],
    };
    Ok(Ssd::new(front, backend))
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

/// The timing model of `settings`, with the times of [`operation_times`].
pub(crate) fn timing_model(
    settings: &Settings,
    geometry: Geometry,
    times: OperationTimes,
) -> Result<TimingModel, Vec<Problem>> {
    Ok(match settings.text("timing") {
        "queued" => {
            check_queued(settings)?;
            TimingModel::Queued(Box::new(queued(settings, geometry, times)))
        }
        "serial" => {
            divides_block(settings, "read_pages").map_or(Ok(()), |it| Err(vec![it]))?;
            let chip = ChipPages::new(times.read, 1, 0.0, settings.count("read_pages") as u32);
            TimingModel::Serial(Box::new(Serial::new(geometry, times, chip)))
        }
        "none" => TimingModel::None(SimTime::ZERO),
        _ => TimingModel::Interleaved(Box::new(Interleaved::new(geometry, times))),
    })
}

fn queued(settings: &Settings, geometry: Geometry, times: OperationTimes) -> Queued {
    let scheduling = DieScheduling {
        program_suspend: settings.duration_opt("program_suspend_time"),
        program_points: suspend_points(settings),
        erase_suspend: settings.duration_opt("erase_suspend_time"),
        resume: settings.duration("resume_time"),
        suspends_max: settings.count("suspends_max") as u32,
        multi_plane: settings.flag("multi_plane"),
    };
    let pages = settings.bytes("write_buffer") / u64::from(geometry.page_bytes());
    // A larger buffer could never fill.
    let pages = pages.min(u64::from(geometry.pages())) as usize;
    let buffer = WriteBuffer::new(pages, geometry.dies(), settings.flag("free_flush"))
        .with_pauses(buffer_pauses(settings));
    Queued::new(geometry, times, (scheduling, chip_pages(settings, times.read)), buffer)
}

fn suspend_points(settings: &Settings) -> Option<SuspendPoints> {
    // Programs that are not suspended have no points.
    settings.duration_opt("program_suspend_time")?;
    let reads_max = settings.count_opt("suspend_reads_max").map_or(u32::MAX, |most| most as u32);
    let interval = settings.duration_opt("program_suspend_interval")?;
    Some(SuspendPoints { interval, reads_max })
}

/// An interval between points of suspension is longer than none.
fn check_suspension(settings: &Settings) -> Option<Problem> {
    let interval = settings.duration_opt("program_suspend_interval")?;
    let message = "must be above 0; remove it if programs can be suspended at any time";
    interval.is_zero().then(|| Problem::new("program_suspend_interval", message))
}

fn buffer_pauses(settings: &Settings) -> BufferPauses {
    let length = settings.duration("buffer_pause_time");
    let interval = settings.duration_opt("buffer_pause_interval");
    let full_max = settings.duration_opt("buffer_pause_full_max");
    interval.map_or(BufferPauses::NONE, |interval| BufferPauses { interval, length, full_max })
}

/// A pause that is given has to leave time to free entries.
fn check_buffer_pauses(settings: &Settings) -> Option<Problem> {
    let length = settings.duration("buffer_pause_time");
    if length.is_zero() {
        return None;
    }
    let Some(interval) = settings.duration_opt("buffer_pause_interval") else {
        let message = "the interval from pause to pause is missing: set buffer_pause_interval";
        return Some(Problem::new("buffer_pause_time", message));
    };
    if interval <= length {
        let message = "the pause takes the whole interval: set a longer buffer_pause_interval";
        return Some(Problem::new("buffer_pause_interval", message));
    }
    let full_max = settings.duration_opt("buffer_pause_full_max")?;
    let message = "must be above 0 and less than buffer_pause_time; or remove it";
    (full_max.is_zero() || full_max >= length)
        .then(|| Problem::new("buffer_pause_full_max", message))
}

fn chip_pages(settings: &Settings, read: SimDuration) -> ChipPages {
    let [types, read_pages, program_pages] =
        ["page_types", "read_pages", "program_pages"].map(|key| settings.count(key) as u32);
    ChipPages::new(read, types, settings.number("read_spread"), read_pages)
        .with_program_pages(program_pages)
}

/// The problem of a block that is no multiple of the pages of `key`.
fn divides_block(settings: &Settings, key: &'static str) -> Option<Problem> {
    let (block, pages) = (settings.count("pages_per_block"), settings.count(key));
    let message = format!("{pages} pages do not divide a block of {block}");
    (!block.is_multiple_of(pages)).then(|| Problem::new(key, message))
}

/// Checks `read_pages`, `program_pages`, suspension and the pauses of the buffer.
fn check_queued(settings: &Settings) -> Result<(), Vec<Problem>> {
    let buffer = settings.count("program_pages") > 1 && settings.bytes("write_buffer") == 0;
    let unbuffered = buffer.then(|| {
        let message = "needs a write buffer, in which pages wait for those programmed with them";
        Problem::new("program_pages", message)
    });
    let problems: Vec<Problem> = ["read_pages", "program_pages"]
        .into_iter()
        .filter_map(|key| divides_block(settings, key))
        .chain(unbuffered)
        .chain(check_buffer_pauses(settings))
        .chain(check_suspension(settings))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The times of a device that copies pages.
fn with_copies(settings: &Settings, geometry: &Geometry) -> OperationTimes {
    let times = operation_times(settings, geometry);
    OperationTimes {
        copy_plane: settings.duration_opt("copy_plane_time").unwrap_or(times.copy_plane),
        copy_die: settings.duration_opt("copy_die_time").unwrap_or(times.copy_die),
        copy_back: match settings.text("copy") {
            "plane" => CopyBack::Plane,
            "die" => CopyBack::Die,
            _ => CopyBack::None,
        },
        ..times
    }
}

/// The times of a device, without copy-back.
pub(crate) fn operation_times(settings: &Settings, geometry: &Geometry) -> OperationTimes {
    let raw = u64::from(geometry.raw_page_bytes());
    let register = settings.duration("register_time");
    let read = settings.duration("read_time") + register;
    let program = settings.duration("program_time") + register;
    OperationTimes {
        read,
        program,
        copy_plane: read + program,
        copy_die: read + program,
        erase: settings.duration("erase_time"),
        command: settings.duration("command_time"),
        data_command: settings.duration("data_command_time"),
        ram: settings.duration("ram_time"),
        page_transfer: SimDuration::transfer(raw, settings.rate("channel_rate")),
        copy_back: CopyBack::None,
        request_interval: settings.duration("request_interval"),
        read_overhead: settings.duration("read_overhead"),
        write_overhead: settings.duration("write_overhead"),
        host_rate: settings.rate("host_rate"),
        host_write_rate: host_write_rate(settings),
        host_full_duplex: settings.text("host_duplex") == "full",
        schedule_slots: settings.count_opt("schedule_slots").map(|slots| slots as usize),
    }
}

/// Bytes per second of data that are written, on a link that has a rate.
fn host_write_rate(settings: &Settings) -> u64 {
    match settings.rate("host_rate") {
        0 => 0,
        rate => settings.rate_opt("host_write_rate").unwrap_or(rate),
    }
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
        constants: vec![
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
        ],
        ..ComponentInfo::default()
    }
}
