//! The parameters of an SSD, and how one is built from them.

use super::{Ssd, SsdParts};
use crate::array::{Array, ENDURANCE_MAX, ProgramOrder};
use crate::ftl::{FtlEntry, FtlInput};
use crate::geometry::{self, Geometry, Shape};
use crate::ops::FlashOps;
use crate::precondition::Precondition;
use crate::timing::{Clock, CopyReach, Delays, Interleaved, Queued, Queueing, Serial, WriteBuffer};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{Component, ComponentInfo, PowerState, SimDuration, Stream};

/// The device layers of this crate.
pub const ENTRIES: &[ComponentEntry] = &[SSD, crate::slc_mlc::ENTRY];

const SSD: ComponentEntry = ComponentEntry {
    description: Description {
        name: "ssd",
        summary: "A flash device: a translation layer over channels and dies of NAND.",
        origin: "structure of flashsim (FlashSim), section 3; SSD extensions of DiskSim",
        params: &PARAMS,
    },
    build,
};

const G: [Param; 7] = geometry::PARAMS;

/// The parameters of an SSD.
pub const PARAMS: [Param; 50] = [
    G[0],
    G[1],
    G[2],
    G[3],
    G[4],
    G[5],
    G[6],
    Param::with(
        "over_provisioning",
        Kind::Number { min: 0.0, max: 4.0 },
        "0.07",
        "Spare space as (physical - offered) / offered; 0.07 is 7 %.",
    ),
    Param::with("ftl", Kind::Entry("ftl"), "\"page\"", "The translation layer."),
    Param::with(
        "program_order",
        Kind::Choice(&["sequential", "ascending", "any"]),
        "\"sequential\"",
        "In which order the chip lets pages of a block be programmed.",
    ),
    Param::with(
        "endurance",
        Kind::Count { min: 1, max: ENDURANCE_MAX as u64 },
        "100000",
        "Erases a block survives; it is retired at the last. A device whose blocks wear out goes \
         on while the others hold what is offered and what the layer needs to move it; then \
         writes end with an error that says so, and the run with it. What was written stays \
         readable. \
         (Erases are counted in 29 bits: a block erased without pause for a week.)",
    ),
    Param::with(
        "factory_bad",
        Kind::Number { min: 0.0, max: 0.5 },
        "0.0",
        "The share of blocks that are bad from the factory, drawn at random. The controller uses \
         equally many blocks of each plane, so the worst plane decides; spare space pays for it.",
    ),
    Param::with(
        "grown_bad",
        Kind::Number { min: 0.0, max: 0.5 },
        "0.0",
        "The chance that an erase fails and its block is retired before its endurance is used up.",
    ),
    Param::with(
        "timing",
        Kind::Choice(&["interleaved", "queued", "serial", "none"]),
        "\"interleaved\"",
        "`interleaved` works on channels and dies in parallel, each in order; `queued` lets reads \
         go first and has a write buffer, as modern drives; `serial` does one operation at a \
         time, as the older papers; `none` only counts (each request takes 1 ns).",
    ),
    Param::with(
        "recovery",
        Kind::Choice(&["none", "blocks", "pages"]),
        "\"blocks\"",
        "What is read after a power failure to rebuild the mapping, all dies at a time: nothing, \
         a summary page of every block (assumed), or every page's spare area.",
    ),
    Param::required("read_time", Kind::Duration, "Cells to page register."),
    Param::required("program_time", Kind::Duration, "Page register to cells."),
    Param::required("erase_time", Kind::Duration, "Erasing a block."),
    Param::with(
        "command_time",
        Kind::Duration,
        "\"0ns\"",
        "Command and address cycles on the channel, per operation.",
    ),
    Param::with(
        "channel_rate",
        Kind::Rate,
        "\"0MB/s\"",
        "Bytes per second of a channel; 0 when read_time and program_time include the transfer.",
    ),
    Param::with(
        "data_command_time",
        Kind::Duration,
        "\"0ns\"",
        "Control on the channel before the data of a read: its second slot.",
    ),
    Param::with(
        "register_time",
        Kind::Duration,
        "\"0ns\"",
        "A page through the plane's register, once per read and once per program.",
    ),
    Param::with(
        "ram_time",
        Kind::Duration,
        "\"0ns\"",
        "A page into the controller's memory and out again, on its way from or to the host.",
    ),
    Param::with(
        "copy",
        Kind::Choice(&["plane", "die", "channel"]),
        "\"channel\"",
        "What copies stay inside the chip: those within a plane (copy-back), those within a die, \
         or none. The others go over the channel through the controller.",
    ),
    Param::optional(
        "copy_plane_time",
        Kind::Duration,
        "A copy inside a plane; without it the time of a read and a program.",
    ),
    Param::optional(
        "copy_die_time",
        Kind::Duration,
        "A copy between planes of a die; without it the time of a read and a program.",
    ),
    Param::optional(
        "program_suspend_time",
        Kind::Duration,
        "`queued`: how long a program takes to pause for a read; without it programs do not pause.",
    ),
    Param::optional(
        "erase_suspend_time",
        Kind::Duration,
        "`queued`: how long an erase takes to pause for a read; without it erases do not pause.",
    ),
    Param::with(
        "resume_time",
        Kind::Duration,
        "\"0ns\"",
        "`queued`: what is added to a program or an erase each time it goes on after a pause.",
    ),
    Param::with(
        "suspends_max",
        Kind::Count { min: 0, max: 1000 },
        "8",
        "`queued`: how often one program or erase pauses.",
    ),
    Param::with(
        "multi_plane",
        Kind::Flag,
        "false",
        "`queued`: planes of a die program and erase together when one request asks for it.",
    ),
    Param::with(
        "write_buffer",
        Kind::Bytes,
        "\"0B\"",
        "`queued`: memory for pages on their way to the cells; a write is answered when it is in \
         there. Without it, when it is programmed.",
    ),
    Param::with(
        "power_loss_protection",
        Kind::Flag,
        "false",
        "`queued`: the write buffer survives a loss of power, so that a flush need not wait.",
    ),
    Param::with("read_overhead", Kind::Duration, "\"0us\"", "Controller time per read request."),
    Param::with(
        "write_overhead",
        Kind::Duration,
        "\"0us\"",
        "Controller time per request of another kind.",
    ),
    Param::with(
        "host_rate",
        Kind::Rate,
        "\"0MB/s\"",
        "Bytes per second of the host link; 0 for a link that takes no time.",
    ),
    Param::with(
        "host_duplex",
        Kind::Choice(&["full", "half"]),
        "\"half\"",
        "Whether the host link moves data both ways at once (PCIe) or not (SATA).",
    ),
    Param::with(
        "schedule_slots",
        Kind::Count { min: 1, max: 1 << 20 },
        "512",
        "Entries of each bus's schedule table; when it is full, transfers queue behind the last.",
    ),
    Param::optional(
        "idle_after",
        Kind::Duration,
        "Let the translation layer work in the background once the device was idle this long.",
    ),
    Param::with("read_energy", Kind::Energy, "\"0uJ\"", "Energy per page read."),
    Param::with("program_energy", Kind::Energy, "\"0uJ\"", "Energy per page programmed."),
    Param::with("erase_energy", Kind::Energy, "\"0uJ\"", "Energy per block erased."),
    Param::with(
        "search_energy",
        Kind::Energy,
        "\"0uJ\"",
        "Energy per block looked at by victim policies that search (`partial-search`, \
         `d-choices`).",
    ),
    Param::with(
        "search_time",
        Kind::Duration,
        "\"0ns\"",
        "Controller time per block looked at in such a search; the request waits for it.",
    ),
    Param::with(
        "ram_power",
        Kind::Power,
        "\"0W\"",
        "Power per MiB of the memory that holds the mapping, drawn all the time.",
    ),
    Param::with("idle_power", Kind::Power, "\"0W\"", "Power while nothing happens."),
    Param::with(
        "active_power",
        Kind::Power,
        "\"0W\"",
        "Power from a request's arrival until the last of its flash operations ends.",
    ),
    Param::with(
        "precondition",
        Kind::Choice(Precondition::NAMES),
        "\"none\"",
        "What is written before the run, untimed: `fill` everything in order, `fill-random` in \
         random order, `steady` in order and then random pages until write amplification is \
         stable.",
    ),
    Param::with(
        "precondition_fill",
        Kind::Number { min: 0.0, max: 1.0 },
        "1.0",
        "The fraction of the offered capacity that preconditioning writes, from address 0 on.",
    ),
    Param::optional("standby_power", Kind::Power, "Power in standby, for the report."),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(build_ssd(input)?))
}

/// Map, reverse map and page states, generously.
const TABLE_BYTES_PER_PAGE: u64 = 10;

/// Refuses a device whose tables the machine cannot hold, before half of them are there.
fn check_memory(geometry: &Geometry) -> Result<(), Vec<Problem>> {
    let bytes = u64::from(geometry.pages()) * TABLE_BYTES_PER_PAGE;
    let mut probe: Vec<u8> = Vec::new();
    let fits = usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok());
    if fits {
        return Ok(());
    }
    let message = format!(
        "the tables of {} pages need about {} MiB of memory, more than can be had; use fewer \
         blocks or larger pages",
        geometry.pages(),
        bytes >> 20
    );
    Err(vec![Problem::new("blocks_per_plane", message)])
}

/// As the registered entry, with the concrete type.
///
/// # Errors
/// Everything that is wrong with the parameters.
pub fn build_ssd(input: &BuildInput<'_>) -> Result<Ssd, Vec<Problem>> {
    let settings = input.settings;
    let geometry = Geometry::new(&Shape::from_settings(settings))?;
    let mut problems = Vec::new();
    check_memory(&geometry)?;
    let exported_pages = geometry.exported_pages(settings.number("over_provisioning"));
    if exported_pages == 0 {
        let message = "no page is left to offer; lower it, or add blocks";
        problems.push(Problem::new("over_provisioning", message));
        return Err(problems);
    }
    let (entry, ftl_settings) = input.chosen::<FtlEntry>("ftl");
    let (geometry, bad) = without_factory_bad(input, geometry)?;
    let ftl = (entry.build)(&FtlInput {
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
    let delays = delays(settings, &geometry);
    let clock = match settings.text("timing") {
        "queued" => Clock::Queued(Box::new(queued(settings, geometry, delays))),
        "serial" => Clock::Serial(Box::new(Serial::new(geometry, delays))),
        "none" => Clock::Untimed(hybridsim_engine::SimTime::ZERO),
        _ => Clock::Interleaved(Box::new(Interleaved::new(geometry, delays))),
    };
    let mut stream = Stream::new(input.seed, &format!("{}/grown-bad", input.path));
    let array = Array::new(geometry, order, endurance)
        .with_logical_pages(exported_pages)
        .with_grown_bad_blocks(settings.number("grown_bad"), &mut stream);
    let fill = settings.number("precondition_fill");
    Ok(Ssd::new(SsdParts {
        search_time: settings.duration("search_time"),
        ftl_name: entry.description().name,
        info: info(settings, &geometry, exported_pages, ftl.mapping_ram_bytes(), bad),
        flash: FlashOps::new(array),
        ftl,
        clock,
        exported_pages,
        recovery: recovery(settings, &geometry),
        idle_after: settings.duration_opt("idle_after"),
        precondition: Precondition::named(settings.text("precondition")),
        precondition_pages: (f64::from(exported_pages) * fill) as u32,
        stream: Stream::new(input.seed, &format!("{}/precondition", input.path)),
        power: Stream::new(input.seed, &format!("{}/power", input.path)),
    }))
}

/// How long it takes to read what the mapping is rebuilt from, all dies working at a time.
fn recovery(settings: &Settings, geometry: &Geometry) -> SimDuration {
    let reads = match settings.text("recovery") {
        "none" => 0,
        "blocks" => u64::from(geometry.blocks()),
        _ => u64::from(geometry.pages()),
    };
    settings.duration("read_time") * reads.div_ceil(u64::from(geometry.dies()))
}

/// What is left to use of each plane when bad blocks are left out, and how many blocks are bad.
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
        let message = "a plane has no good block left; lower it, or add blocks";
        return Err(vec![Problem::new("factory_bad", message)]);
    }
    Ok((Geometry::new(&shape)?, by_plane.iter().sum()))
}

fn queued(settings: &Settings, geometry: Geometry, delays: Delays) -> Queued {
    let queueing = Queueing {
        program_suspend: settings.duration_opt("program_suspend_time"),
        erase_suspend: settings.duration_opt("erase_suspend_time"),
        resume: settings.duration("resume_time"),
        suspends_max: settings.count("suspends_max") as u32,
        multi_plane: settings.flag("multi_plane"),
    };
    let pages = settings.bytes("write_buffer") / u64::from(geometry.page_bytes());
    // More than there are pages could never fill.
    let pages = pages.min(u64::from(geometry.pages())) as usize;
    let buffer = WriteBuffer::new(pages, settings.flag("power_loss_protection"));
    Queued::new(geometry, delays, queueing, buffer)
}

fn delays(settings: &Settings, geometry: &Geometry) -> Delays {
    let raw = u64::from(geometry.raw_page_bytes());
    let register = settings.duration("register_time");
    let read = settings.duration("read_time") + register;
    let program = settings.duration("program_time") + register;
    Delays {
        read,
        program,
        copy_plane: settings.duration_opt("copy_plane_time").unwrap_or(read + program),
        copy_die: settings.duration_opt("copy_die_time").unwrap_or(read + program),
        erase: settings.duration("erase_time"),
        command: settings.duration("command_time"),
        data_command: settings.duration("data_command_time"),
        ram: settings.duration("ram_time"),
        page_transfer: SimDuration::transfer(raw, settings.rate("channel_rate")),
        copy_reach: match settings.text("copy") {
            "plane" => CopyReach::Plane,
            "die" => CopyReach::Die,
            _ => CopyReach::Nowhere,
        },
        read_overhead: settings.duration("read_overhead"),
        write_overhead: settings.duration("write_overhead"),
        host_rate: settings.rate("host_rate"),
        host_full_duplex: settings.text("host_duplex") == "full",
        schedule_slots: settings.count("schedule_slots") as usize,
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
    let joules = ["read_energy", "program_energy", "erase_energy"].map(|key| settings.number(key));
    let physical = f64::from(geometry.pages());
    let ram_watts = settings.number("ram_power") * ram_bytes as f64 / f64::from(1 << 20);
    ComponentInfo {
        kind: "ssd",
        watts: Some(watts),
        flash_joules: Some(joules),
        always_watts: vec![("mapping_ram", ram_watts)],
        search_joules: settings.number("search_energy"),
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
