//! The parameters of a hard disk, and how they are built into one.

use super::electronics::{self, Electronics, Handshake, Link, Overheads};
use super::{DriveParts, HardDisk};
use crate::cache::{ReadAheadLimit, ReadAheadPolicy, SegmentsSpec};
use crate::geometry::{Layout, Sparing, index, zone};
use crate::mechanics::{Mechanics, WriteMoves};
use crate::power::SpinDown;
use crate::rotation::{RPM_MAX, RPM_MIN, Rotation};
use crate::seek::{SeekEntry, SeekTable};
use hybridsim_config::build::BuildInput;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings, Value, joined};
use hybridsim_engine::{Component, ComponentInfo, PowerState, SECTOR_BYTES, SimDuration, Stream};
use std::rc::Rc;

const SKEW: Kind = Kind::Number { min: 0.0, max: zone::SECTORS_PER_TRACK_MAX as f64 };
const TRACK: Kind = Kind::Count { min: 1, max: zone::SECTORS_PER_TRACK_MAX };
const CYLINDERS: Kind = Kind::Count { min: 1, max: zone::CYLINDERS_MAX };
const SECTORS: Kind = Kind::Count { min: 0, max: 1 << 32 };
/// No time of a drive may be longer: such a value is a slip of the unit.
const DURATION_MAX: SimDuration = SimDuration::from_s(24 * 3600);

/// The parameters of `hard-disk`.
pub const PARAMS: &[Param] = &joined::<COUNT>(&[MECHANICS, electronics::PARAMS, BUFFER]);
const COUNT: usize = MECHANICS.len() + electronics::PARAMS.len() + BUFFER.len();

/// What turns and moves.
const MECHANICS: &[Param] = &[
    Param::required("rpm", Kind::Rpm, "Rotation speed."),
    Param::with(
        "synchronised",
        Kind::Flag,
        "false",
        "Whether the platters start at angle zero, as those of every synchronised drive do; \
         otherwise the angle is drawn at random.",
    ),
    Param::required("heads", Kind::Count { min: 1, max: zone::HEADS_MAX }, "Surfaces with data."),
    Param::optional(
        "zones",
        Kind::Tables(zone::PARAMS),
        "The zones, outermost first. Without it they are interpolated between \
         `outer_sectors_per_track` and `inner_sectors_per_track`.",
    ),
    Param::optional("cylinders", CYLINDERS, "Cylinders, when no `zones` are given."),
    Param::optional("outer_sectors_per_track", TRACK, "Sectors on the outermost tracks."),
    Param::optional("inner_sectors_per_track", TRACK, "Sectors on the innermost tracks."),
    Param::with("zone_count", Kind::Count { min: 1, max: 1024 }, "16", "Zones to interpolate."),
    Param::optional(
        "sectors",
        Kind::Count { min: 1, max: 1 << 50 },
        "Capacity in sectors of 512 bytes, when it is less than the zones hold.",
    ),
    Param::with(
        "mapping",
        Kind::Choice(&["cylinder", "serpentine", "serpentine-odd", "surface"]),
        "\"cylinder\"",
        "Order of the tracks: all surfaces of a cylinder; the same with every other cylinder of a \
         zone, or every odd cylinder of the drive, in reverse; or bands of cylinders surface by \
         surface.",
    ),
    Param::with(
        "sparing",
        Kind::Choice(Sparing::WORDS),
        "\"none\"",
        "Where the `spares` of the zones are, and so how far slips push the data on.",
    ),
    Param::with(
        "sparing_range_cylinders",
        CYLINDERS,
        "1",
        "Cylinders that share spares with sparing `cylinder-range`.",
    )
    .needs(&[Needs::Is("sparing", &["cylinder-range"])]),
    Param::optional(
        "track_patterns",
        Kind::Counts,
        "Triples for `layout_index`: first and last sector used on a track, sectors on it.",
    )
    .needs(&[Needs::given("layout_index")]),
    Param::optional(
        "layout_index",
        Kind::Tables(index::PARAMS),
        "The layout as tables of repeated patterns (DiskSim's layout G4), the last one the root; \
         takes the place of `zones`.",
    ),
    Param::optional(
        "slips",
        Kind::Counts,
        "Pairs for `layout_index`: a bad sector, and how many that are left out from there on.",
    )
    .needs(&[Needs::given("layout_index")]),
    Param::optional(
        "remaps",
        Kind::Counts,
        "Triples for `layout_index`: first block moved, how many, first sector they moved to.",
    )
    .needs(&[Needs::given("layout_index")]),
    Param::with("band_cylinders", CYLINDERS, "64", "Cylinders in a band of mapping `surface`.")
        .needs(&[Needs::Is("mapping", &["surface"])]),
    Param::with(
        "skew_unit",
        Kind::Choice(&["sectors", "turns"]),
        "\"sectors\"",
        "What skews are written in: sectors of their zone, or fractions of a turn.",
    ),
    Param::with("track_skew", SKEW, "0", "Turn of the next track on another surface."),
    Param::with("cylinder_skew", SKEW, "0", "Turn of the next track on the next cylinder."),
    Param::optional(
        "band_skew",
        SKEW,
        "Turn of the first track of the next band (mapping `surface`); as `cylinder_skew` if \
         absent.",
    )
    .needs(&[Needs::Is("mapping", &["surface"])]),
    Param::required("seek", Kind::Entry("seek-model"), "How long the arm takes."),
    Param::with("head_switch", Kind::Duration, "\"0us\"", "Time to change to another surface."),
    Param::with(
        "write_settle",
        Kind::Duration,
        "\"0us\"",
        "Added to a seek or head switch before a write.",
    ),
    Param::with(
        "write_seek_reduction",
        Kind::Duration,
        "\"0us\"",
        "Subtracted from a seek or head switch before a write, which it can reduce to nothing. \
         DiskSim's files for some drives have it as a negative settling delay.",
    ),
    Param::with(
        "resettle_share",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.5",
        "Part of the shortest seek that a read takes at least when the drive has rested for a \
         turn, even on the track the head is on. Assumed: half of the shortest seek is settling. \
         That there is such a time was learnt from the logs of four measured drives; fitted to \
         them it would be 0.8, which does not hold for each of them (docs/models/disk.md).",
    ),
    Param::with(
        "zero_latency",
        Kind::Flag,
        "false",
        "Whether a track is read or written from wherever the head arrives.",
    ),
];

/// What it has of a buffer, a queue and power.
const BUFFER: &[Param] = &[
    Param::with("cache_segments", Kind::Count { min: 0, max: 4096 }, "16", "Buffer segments."),
    Param::with("cache_segment_size", Kind::Bytes, "\"512KiB\"", "Size of a segment."),
    Param::optional(
        "cache_write_segments",
        Kind::Count { min: 0, max: 4096 },
        "Most segments that may wait to be written; all but one if absent.",
    )
    .needs(&[Needs::Is("write_cache", &["true"])]),
    Param::with(
        "separate_write_segment",
        Kind::Flag,
        "false",
        "Whether one segment takes all writes and none of the reads.",
    ),
    Param::with(
        "read_ahead",
        Kind::Choice(&["none", "track", "cylinder", "segment", "next-track"]),
        "\"segment\"",
        "How far the drive reads on after a read when nothing else is to do; `next-track` goes \
         beyond the end of the track only behind a sequential stream.",
    ),
    Param::with("read_ahead_min", SECTORS, "0", "Sectors read ahead before the next request.")
        .needs(&[Needs::Not("read_ahead", &["none"])]),
    Param::optional("read_ahead_max", SECTORS, "Most sectors read ahead.")
        .needs(&[Needs::Not("read_ahead", &["none"])]),
    Param::with(
        "read_ahead_over_requested",
        Kind::Flag,
        "true",
        "Whether sectors read ahead may replace those just returned; with `read_ahead_max` they do \
         as far as that goes (as in DiskSim).",
    )
    .needs(&[Needs::Not("read_ahead", &["none"])]),
    Param::with(
        "read_ahead_on_hit",
        Kind::Flag,
        "false",
        "Whether an idle drive goes on reading ahead behind a read found whole in the buffer.",
    )
    .needs(&[Needs::Not("read_ahead", &["none"])]),
    Param::with(
        "read_free_blocks",
        Kind::Flag,
        "false",
        "Whether a read also keeps the sectors before it that pass under the head while it waits \
         for its first.",
    ),
    Param::with(
        "hits_overtake",
        Kind::Flag,
        "true",
        "Whether a read found whole in the buffer is served while another command has the \
         mechanism.",
    ),
    Param::with(
        "write_cache",
        Kind::Flag,
        "true",
        "Whether a write is complete when it is in the buffer.",
    ),
    Param::with(
        "write_prebuffering",
        Kind::Flag,
        "true",
        "Whether the write cache takes a write while the mechanism is busy. Otherwise only one \
         that goes on where the last one ended; others wait until the mechanism is free, which \
         then writes them at once (DiskSim's `Allow write prebuffering`).",
    )
    .needs(&[Needs::Is("write_cache", &["true"])]),
    Param::with(
        "write_cache_appends_only",
        Kind::Flag,
        "false",
        "Whether the write cache takes a write only when it is empty or the write goes on where \
         the last one ended (DiskSim's fast write level 1; otherwise level 2).",
    )
    .needs(&[Needs::Is("write_cache", &["true"])]),
    Param::with(
        "read_ahead_stops_in_sector",
        Kind::Flag,
        "true",
        "Whether a read-ahead is broken off at once, and not at the end of the sector.",
    )
    .needs(&[Needs::Not("read_ahead", &["none"])]),
    Param::with(
        "read_hits_on_writes",
        Kind::Flag,
        "true",
        "Whether a read may be served from a segment that was written by the host.",
    ),
    Param::with("combine_writes", Kind::Flag, "true", "Join buffered writes that are adjacent.")
        .needs(&[Needs::Is("write_cache", &["true"])]),
    Param::with(
        "destage_delay",
        Kind::Duration,
        "\"0us\"",
        "How long a buffered write waits for company before an idle drive writes it.",
    )
    .needs(&[Needs::Is("write_cache", &["true"])]),
    Param::with("scheduler", Kind::Entry("scheduler"), "\"fcfs\"", "Order of the drive's queue."),
    Param::with(
        "queue_depth",
        Kind::Count { min: 1, max: 65_536 },
        "32",
        "Commands the drive can choose from. With 1 a command is not looked at before the one \
         before is complete.",
    ),
    Param::with(
        "preseek",
        Kind::Flag,
        "true",
        "Whether a drive with several commands moves its arm to the next while the data of the one \
         before are still on the link.",
    ),
    Param::with("idle_power", Kind::Power, "\"0W\"", "Ready, nothing to do."),
    Param::optional("active_power", Kind::Power, "Waiting for a sector; as reading if absent."),
    Param::with("seek_power", Kind::Power, "\"0W\"", "Moving the arm."),
    Param::with("read_power", Kind::Power, "\"0W\"", "Reading from the medium."),
    Param::with("write_power", Kind::Power, "\"0W\"", "Writing to the medium."),
    Param::with("standby_power", Kind::Power, "\"0W\"", "Spindle stopped."),
    Param::with("spin_up_power", Kind::Power, "\"0W\"", "Starting the spindle."),
    Param::with("spin_down_power", Kind::Power, "\"0W\"", "Stopping the spindle."),
    Param::optional("spin_down_after", Kind::Duration, "Idle time before the spindle stops."),
    Param::with(
        "spin_down_at_break_even",
        Kind::Flag,
        "false",
        "Stops the spindle after the idle time whose energy is that of a stop and a start, which \
         costs at most twice what the best choice in hindsight does.",
    ),
    Param::with("spin_up_time", Kind::Duration, "\"0s\"", "From standby to ready."),
    Param::with("spin_down_time", Kind::Duration, "\"0s\"", "From ready to standby."),
];

// Each of the electronics' parameters is listed above by its number.
const _: () = assert!(electronics::PARAMS.len() == 26);

pub(super) fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = check(settings);
    let layout = Layout::read(settings).map_err(|more| problems.extend(more)).ok();
    let cylinders = layout.as_ref().map_or(2, Layout::cylinders);
    let seeks = seeks(input, cylinders).map_err(|more| problems.extend(more)).ok();
    let (scheduler, settings_of_entry) = input.chosen::<SchedulerEntry>("scheduler");
    let name_scheduler = |more: Vec<Problem>| more.into_iter().map(|p| within("scheduler", &p));
    let scheduler = (scheduler.build)(settings_of_entry)
        .map_err(|more| problems.extend(name_scheduler(more)))
        .ok();
    let (Some(layout), Some(seeks), Some(scheduler), true) =
        (layout, seeks, scheduler, problems.is_empty())
    else {
        return Err(problems);
    };
    let synchronised = settings.flag("synchronised");
    let offset = if synchronised { 0 } else { Stream::new(input.seed, input.path).bits() };
    let info = info(settings, &layout);
    let shortest = seeks.time(1, false).as_ns() as f64;
    let settle = SimDuration::from_ns_f64(shortest * settings.number("resettle_share"));
    let mechanics = Mechanics::new(
        layout,
        seeks,
        Rotation::new(settings.number("rpm"), offset),
        settings.duration("head_switch"),
        WriteMoves {
            settle: settings.duration("write_settle"),
            reduction: settings.duration("write_seek_reduction"),
        },
        settings.flag("zero_latency"),
    );
    let buffer = segments(settings);
    Ok(Box::new(HardDisk::new(DriveParts {
        mechanics: Rc::new(mechanics),
        electronics: Electronics::new(
            Overheads::read(settings),
            Handshake::read(settings),
            link(settings),
            settings.count("queue_depth") as usize,
            settings.flag("preseek"),
        ),
        ahead: ahead(settings, &buffer),
        buffer,
        write_cache: settings.flag("write_cache"),
        prebuffers: settings.flag("write_prebuffering"),
        power: Stream::new(input.seed, &format!("{}/power", input.path)),
        appends_only: settings.flag("write_cache_appends_only"),
        stops_in_sector: settings.flag("read_ahead_stops_in_sector"),
        free_blocks: settings.flag("read_free_blocks"),
        hits_overtake: settings.flag("hits_overtake"),
        destage_delay: settings.duration("destage_delay"),
        settle,
        scheduler,
        spin_down: SpinDown {
            after: break_even(settings).or(settings.duration_opt("spin_down_after")),
            down: settings.duration("spin_down_time"),
            up: settings.duration("spin_up_time"),
        },
        info,
    })))
}

/// (E_up + E_down - P_standby (t_up + t_down)) / (P_idle - P_standby), if the drive stops then.
fn break_even(settings: &Settings) -> Option<SimDuration> {
    if !settings.flag("spin_down_at_break_even") {
        return None;
    }
    let watts = |name| settings.number(name);
    let (up, down) = (settings.duration("spin_up_time"), settings.duration("spin_down_time"));
    let (up, down) = (up.as_s_f64(), down.as_s_f64());
    let joules = watts("spin_up_power") * up + watts("spin_down_power") * down
        - watts("standby_power") * (up + down);
    let seconds = joules / (watts("idle_power") - watts("standby_power"));
    Some(SimDuration::from_ns_f64(seconds * 1e9).min(DURATION_MAX))
}

/// What is wrong with the rule that stops the spindle.
fn check_spin_down(settings: &Settings, problems: &mut Vec<Problem>) {
    if !settings.flag("spin_down_at_break_even") {
        return;
    }
    let name = "spin_down_at_break_even";
    if settings.has("spin_down_after") {
        problems.push(Problem::new(name, "and `spin_down_after` are both given; choose one"));
    }
    let (idle, standby) = (settings.number("idle_power"), settings.number("standby_power"));
    if idle <= standby {
        let message =
            format!("needs an `idle_power` above `standby_power` ({idle} W, {standby} W)");
        problems.push(Problem::new(name, message));
    }
}

fn link(settings: &Settings) -> Link {
    let read_bytes_per_s = settings.rate_opt("host_rate").unwrap_or(0);
    let write_bytes_per_s = settings.rate_opt("host_write_rate").unwrap_or(read_bytes_per_s);
    Link { read_bytes_per_s, write_bytes_per_s }
}

fn check(settings: &Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    let rpm = settings.number("rpm");
    if !(RPM_MIN..=RPM_MAX).contains(&rpm) {
        let message = format!("{rpm} rpm; a drive turns at {RPM_MIN} to {RPM_MAX} rpm");
        problems.push(Problem::new("rpm", message));
    }
    for (name, value) in settings.iter() {
        if let Value::Duration(time) = value
            && *time > DURATION_MAX
        {
            let message = format!("{time} is longer than a day ({DURATION_MAX})");
            problems.push(Problem::new(name, message));
        }
    }
    let size = settings.bytes("cache_segment_size");
    let segments = settings.count("cache_segments");
    if segments > 0 && !(SECTOR_BYTES..=1 << 40).contains(&size) {
        let message = format!("{size} bytes; a segment holds 512 bytes to 1 TiB");
        problems.push(Problem::new("cache_segment_size", message));
    }
    if settings.flag("separate_write_segment") && segments < 2 {
        let message = format!("takes one of the `cache_segments`, of which there are {segments}");
        problems.push(Problem::new("separate_write_segment", message));
    }
    if settings.count_opt("cache_write_segments").is_some_and(|writes| writes > segments) {
        let message = format!("there are only {segments} `cache_segments`");
        problems.push(Problem::new("cache_write_segments", message));
    }
    check_spin_down(settings, &mut problems);
    let min = settings.count("read_ahead_min");
    if settings.count_opt("read_ahead_max").is_some_and(|max| max < min) {
        let message = format!("is less than `read_ahead_min`, which is {min}");
        problems.push(Problem::new("read_ahead_max", message));
    }
    if segments > 0 && min > size / SECTOR_BYTES {
        let message = format!("a segment holds only {} sectors", size / SECTOR_BYTES);
        problems.push(Problem::new("read_ahead_min", message));
    }
    problems
}

/// A problem of a chosen-in policy, seen from the drive.
fn within(param: &'static str, problem: &Problem) -> Problem {
    Problem::new(param, problem.to_string())
}

fn seeks(input: &BuildInput<'_>, cylinders: u32) -> Result<SeekTable, Vec<Problem>> {
    let (entry, settings_of_entry) = input.chosen::<SeekEntry>("seek");
    (entry.build)(settings_of_entry, cylinders)
        .and_then(|model| SeekTable::new(&*model, cylinders))
        .map_err(|problems| problems.iter().map(|problem| within("seek", problem)).collect())
}

fn segments(settings: &Settings) -> SegmentsSpec {
    let count = settings.count("cache_segments");
    let write_max = settings.count_opt("cache_write_segments").unwrap_or(match count {
        0 | 1 => count,
        more => more - 1,
    });
    SegmentsSpec {
        count: count as usize,
        sectors: settings.bytes("cache_segment_size") / SECTOR_BYTES,
        write_max: write_max as usize,
        combine: settings.flag("combine_writes"),
        dedicated: settings.flag("separate_write_segment"),
        read_written: settings.flag("read_hits_on_writes"),
    }
}

fn ahead(settings: &Settings, buffer: &SegmentsSpec) -> ReadAheadPolicy {
    let limit = match settings.text("read_ahead") {
        _ if buffer.count == 0 => ReadAheadLimit::None,
        "track" => ReadAheadLimit::Track,
        "cylinder" => ReadAheadLimit::Cylinder,
        "segment" => ReadAheadLimit::Segment,
        "next-track" => ReadAheadLimit::NextTrack,
        _ => ReadAheadLimit::None,
    };
    ReadAheadPolicy {
        limit,
        min: settings.count("read_ahead_min"),
        max: settings.count_opt("read_ahead_max").unwrap_or(u64::MAX),
        over_requested: settings.flag("read_ahead_over_requested"),
        on_hit: settings.flag("read_ahead_on_hit"),
        segment: buffer.sectors,
    }
}

fn info(settings: &Settings, layout: &Layout) -> ComponentInfo {
    let mut watts = [0.0; PowerState::COUNT];
    let mut set = |state: PowerState, value: f64| watts[state as usize] = value;
    let read = settings.number("read_power");
    set(PowerState::Idle, settings.number("idle_power"));
    set(PowerState::Active, settings.number_opt("active_power").unwrap_or(read));
    set(PowerState::Seek, settings.number("seek_power"));
    set(PowerState::Read, read);
    set(PowerState::Write, settings.number("write_power"));
    set(PowerState::Standby, settings.number("standby_power"));
    set(PowerState::SpinUp, settings.number("spin_up_power"));
    set(PowerState::SpinDown, settings.number("spin_down_power"));
    ComponentInfo {
        kind: "hard-disk",
        watts: Some(watts),
        constants: vec![
            ("capacity_bytes", (layout.capacity() * SECTOR_BYTES) as f64),
            ("cylinders", f64::from(layout.cylinders())),
            ("heads", f64::from(layout.heads())),
            ("zones", layout.zones() as f64),
            ("rpm", settings.number("rpm")),
        ],
        ..ComponentInfo::default()
    }
}
