//! The parameters that say how flash operations are timed, and how a timing model is built from
//! them: of kinds `ssd` and `zns-ssd`.

use crate::array::ENDURANCE_MAX;
use crate::bit_errors;
use crate::geometry::Geometry;
use crate::timing::{
    BufferPauses, ChipPages, CopyBack, DieScheduling, Interleaved, OperationTimes, Queued, Serial,
    SlcTimes, SuspendPoints, TimingModel, WriteBuffer,
};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::{SimDuration, SimTime};

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

/// Times of blocks in SLC mode, and how often they can be erased.
pub(super) const SLC_MODE: &[Param] = &[
    Param::optional(
        "slc_read_time",
        Kind::Duration,
        "Page read in SLC mode, whatever the page; default: `read_time`.",
    )
    .needs(SLC_TIMES),
    Param::optional(
        "slc_program_time",
        Kind::Duration,
        "Page program in SLC mode; default: `program_time`. Of `program_pages` a program takes \
         the part that the cells hold with one bit each.",
    )
    .needs(SLC_TIMES),
    Param::optional(
        "slc_erase_time",
        Kind::Duration,
        "Block erase in SLC mode; default: `erase_time`.",
    )
    .needs(SLC_TIMES),
    Param::optional(
        "slc_endurance",
        Kind::Count { min: 1, max: ENDURANCE_MAX as u64 },
        "Program/erase cycles of a block of the static SLC cache, if there is one (`static_size`); \
         default: `endurance`. Blocks of the dynamic cache count every erase as one of \
         `endurance`, in whichever mode.",
    )
    .needs(&[SLC_CACHE]),
];

/// What acts only with an SLC cache.
const SLC_CACHE: Needs = Needs::Is("ftl", &["slc-cache"]);
const SLC_TIMES: &[Needs] = &[SLC_CACHE, Needs::Not("timing", &["none"])];

pub(super) const COPIES: &[Param] = &[
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
         and `read_energy` are per page of the map. `rber_types` uses it with any timing.",
    ),
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
    Param::optional(
        "firmware_cores",
        Kind::Count { min: 1, max: 256 },
        "Processor cores of the controller: each request occupies one for its overhead and waits \
         where none is free, in order of arrival. Without it the overhead only adds latency.",
    )
    .needs(&[Needs::Not("timing", &["none", "serial"])]),
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
    Queued::new(geometry, times, (scheduling, chip_pages(settings, &times)), buffer)
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

fn chip_pages(settings: &Settings, times: &OperationTimes) -> ChipPages {
    let [types, read_pages, program_pages] =
        ["page_types", "read_pages", "program_pages"].map(|key| settings.count(key) as u32);
    ChipPages::new(times.read, types, settings.number("read_spread"), read_pages)
        .with_program_pages(program_pages, times.slc.bits)
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

/// The times of a device that copies pages, and whose cells hold `bits` bits in native mode.
pub(super) fn with_copies(settings: &Settings, geometry: &Geometry, bits: u32) -> OperationTimes {
    let times = operation_times(settings, geometry);
    let register = settings.duration("register_time");
    let slc = |key, native| settings.duration_opt(key).map_or(native, |time| time + register);
    OperationTimes {
        slc: SlcTimes {
            read: slc("slc_read_time", times.read),
            program: slc("slc_program_time", times.program),
            erase: settings.duration_opt("slc_erase_time").unwrap_or(times.erase),
            bits,
        },
        copy_plane: settings.duration_opt("copy_plane_time").unwrap_or(times.copy_plane),
        copy_die: settings.duration_opt("copy_die_time").unwrap_or(times.copy_die),
        copy_back: match settings.text("copy") {
            "plane" => CopyBack::Plane,
            "die" => CopyBack::Die,
            _ => CopyBack::None,
        },
        retry: bit_errors::retry_time(settings),
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
        retry: SimDuration::ZERO,
        slc: SlcTimes::NONE,
        command: settings.duration("command_time"),
        data_command: settings.duration("data_command_time"),
        ram: settings.duration("ram_time"),
        page_transfer: SimDuration::transfer(raw, settings.rate("channel_rate")),
        copy_back: CopyBack::None,
        firmware_cores: firmware_cores(settings),
        request_interval: settings.duration("request_interval"),
        read_overhead: settings.duration("read_overhead"),
        write_overhead: settings.duration("write_overhead"),
        host_rate: settings.rate("host_rate"),
        host_write_rate: host_write_rate(settings),
        host_full_duplex: settings.text("host_duplex") == "full",
        schedule_slots: settings.count_opt("schedule_slots").map(|slots| slots as usize),
    }
}

/// Read only where requests have an overhead, so that it is reported where they have none.
fn firmware_cores(settings: &Settings) -> usize {
    let overheads = ["read_overhead", "write_overhead"].map(|key| settings.duration(key));
    match overheads == [SimDuration::ZERO; 2] {
        true => 0,
        false => settings.count_opt("firmware_cores").unwrap_or(0) as usize,
    }
}

/// Bytes per second of data that are written, on a link that has a rate.
fn host_write_rate(settings: &Settings) -> u64 {
    match settings.rate("host_rate") {
        0 => 0,
        rate => settings.rate_opt("host_write_rate").unwrap_or(rate),
    }
}
