//! The parameters of a hard disk, and how they are built into one.

use super::electronics::{self, Electronics, Handshake, Link, Overheads};
use super::{DriveParts, DrivePolicy, HardDisk};
use crate::cache::{ReadAheadLimit, ReadAheadPolicy, SegmentsSpec};
use crate::geometry::{self, Layout};
use crate::mechanics::{Mechanics, WriteMoves};
use crate::power::SpinDown;
use crate::rotation::{RPM_MAX, RPM_MIN, Rotation};
use crate::seek::{SeekEntry, SeekTable};
use hybridsim_config::build::BuildInput;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Param, Problem, Settings, Value};
use hybridsim_engine::{Component, ComponentInfo, PowerState, SECTOR_BYTES, SimDuration, Stream};
use std::rc::Rc;

/// No time of a drive may be longer: such a value is a slip of the unit.
const DURATION_MAX: SimDuration = SimDuration::from_s(24 * 3600);
const SECTORS: Kind = Kind::Count { min: 0, max: 1 << 32 };

const BUFFER: Needs = Needs::above_zero("cache_segments");
/// The buffer takes writes.
const WRITE_CACHE: &[Needs] =
    &[BUFFER, Needs::Is("write_cache", &["true"]), Needs::Not("cache_write_segments", &["0"])];

hybridsim_config::params! {
    struct Parameters includes {
        geometry: geometry::Parameters,
        electronics: electronics::Parameters,
        buffer: Buffer,
        power: Power,
    } {
        rpm: f64 = Kind::Rpm, required, "Rotation speed.";
        synchronised: bool = Kind::Flag, default "false",
            "Whether the platters start at angle zero, as those of every synchronised drive do; \
             otherwise the angle is drawn at random.";
        seek: EntryChoice = Kind::Entry("seek-model"), required, "How long the arm takes.";
        head_switch: SimDuration = Kind::Duration, default "\"0us\""
            needs &[Needs::Not("heads", &["1"])],
            "Time to change to another surface.";
        write_settle: SimDuration = Kind::Duration, default "\"0us\"",
            "Added to a seek or head switch before a write.";
        write_seek_reduction: SimDuration = Kind::Duration, default "\"0us\"",
            "Subtracted from a seek or head switch before a write, which it can reduce to nothing. \
             DiskSim's files for some drives have it as a negative settling delay.";
        resettle_share: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.5",
            "Part of the shortest seek that a read takes at least when the drive has rested for a \
             turn, even on the track the head is on. Assumed: half of the shortest seek is \
             settling. That there is such a time was learnt from the logs of four measured drives; \
             fitted to them it would be 0.8, which does not hold for each of them \
             (docs/models/disk.md).";
        zero_latency: bool = Kind::Flag, default "false",
            "Whether a track is read or written from wherever the head arrives.";
        scheduler: EntryChoice = Kind::Entry("scheduler"), default "\"fcfs\"",
            "Order of the drive's queue.";
        queue_depth: usize = Kind::Count { min: 1, max: 65_536 }, default "32",
            "Commands the drive can choose from. With 1 a command is not looked at before the one \
             before is complete.";
        preseek: bool = Kind::Flag, default "true" needs &[Needs::Not("queue_depth", &["1"])],
            "Whether a drive with several commands moves its arm to the next while the data of the \
             one before are still on the link.";
    }
}

hybridsim_config::params! {
    struct Buffer includes {
        reads: ReadAheadParameters where &[BUFFER, Needs::Not("read_ahead", &["none"])],
        writes: WriteCache where WRITE_CACHE,
    } {
        cache_segments: u64 = Kind::Count { min: 0, max: 4096 }, default "16", "Buffer segments.";
        cache_segment_size: u64 = Kind::Bytes, default "\"512KiB\""
            needs &[
                Needs::Any(&[BUFFER, Needs::above_zero("read_watermark")]),
                Needs::Any(&[BUFFER, Needs::Is("read_watermark_of", &["segment"])]),
            ],
            "Size of a segment.";
        cache_write_segments: Option<u64> = Kind::Count { min: 0, max: 4096 }, optional
            needs &[BUFFER, Needs::Is("write_cache", &["true"])],
            "Most segments that may wait to be written; all but one if absent.";
        separate_write_segment: bool = Kind::Flag, default "false",
            "Whether one segment takes all writes and none of the reads.";
        read_ahead: ReadAheadLimit = Kind::Choice(ReadAheadLimit::NAMES), default "\"segment\""
            needs &[BUFFER],
            "How far the drive reads on after a read when nothing else is to do; `next-track` goes \
             beyond the end of the track only behind a sequential stream.";
        read_free_blocks: bool = Kind::Flag, default "false" needs &[BUFFER],
            "Whether a read also keeps the sectors before it that pass under the head while it \
             waits for its first.";
        hits_overtake: bool = Kind::Flag, default "true" needs &[BUFFER],
            "Whether a read found whole in the buffer is served while another command has the \
             mechanism.";
        write_cache: bool = Kind::Flag, default "true"
            needs &[BUFFER, Needs::Not("cache_write_segments", &["0"])],
            "Whether a write is complete when it is in the buffer.";
    }
}

hybridsim_config::params! {
    struct ReadAheadParameters {
        read_ahead_min: u64 = SECTORS, default "0", "Sectors read ahead before the next request.";
        read_ahead_max: Option<u64> = SECTORS, optional, "Most sectors read ahead.";
        read_ahead_over_requested: bool = Kind::Flag, default "true"
            needs &[Needs::Any(&[
                Needs::absent("read_ahead_max"),
                Needs::Is("read_ahead", &["next-track"]),
            ])],
            "Whether sectors read ahead may replace those just returned; with `read_ahead_max` \
             they do as far as that goes (as in DiskSim).";
        read_ahead_on_hit: bool = Kind::Flag, default "false",
            "Whether an idle drive goes on reading ahead behind a read found whole in the buffer.";
        read_ahead_stops_in_sector: bool = Kind::Flag, default "true",
            "Whether a read-ahead is broken off at once, and not at the end of the sector.";
    }
}

hybridsim_config::params! {
    struct WriteCache {
        write_prebuffering: bool = Kind::Flag, default "true",
            "Whether the write cache takes a write while the mechanism is busy. Otherwise only one \
             that goes on where the last one ended; others wait until the mechanism is free, which \
             then writes them at once (DiskSim's `Allow write prebuffering`).";
        write_cache_appends_only: bool = Kind::Flag, default "false",
            "Whether the write cache takes a write only when it is empty or the write goes on \
             where the last one ended (DiskSim's fast write level 1; otherwise level 2).";
        read_hits_on_writes: bool = Kind::Flag, default "true",
            "Whether a read may be served from a segment that was written by the host.";
        combine_writes: bool = Kind::Flag, default "true",
            "Join buffered writes that are adjacent.";
        destage_delay: SimDuration = Kind::Duration, default "\"0us\"",
            "How long a buffered write waits for company before an idle drive writes it.";
    }
}

hybridsim_config::params! {
    /// Power in each state, and the rule that stops the spindle.
    struct Power {
        idle_power: f64 = Kind::Power, default "\"0W\"", "Ready, nothing to do.";
        active_power: Option<f64> = Kind::Power, optional,
            "Waiting for a sector; as reading if absent.";
        seek_power: f64 = Kind::Power, default "\"0W\"", "Moving the arm.";
        read_power: f64 = Kind::Power, default "\"0W\"", "Reading from the medium.";
        write_power: f64 = Kind::Power, default "\"0W\"", "Writing to the medium.";
        standby_power: f64 = Kind::Power, default "\"0W\"", "Spindle stopped.";
        spin_up_power: f64 = Kind::Power, default "\"0W\"", "Starting the spindle.";
        spin_down_power: f64 = Kind::Power, default "\"0W\"", "Stopping the spindle.";
        spin_down_after: Option<SimDuration> = Kind::Duration, optional,
            "Idle time before the spindle stops.";
        spin_down_at_break_even: bool = Kind::Flag, default "false",
            "Stops the spindle after the idle time whose energy is that of a stop and a start, \
             which costs at most twice what the best choice in hindsight does.";
        spin_up_time: SimDuration = Kind::Duration, default "\"0s\"", "From standby to ready.";
        spin_down_time: SimDuration = Kind::Duration, default "\"0s\"", "From ready to standby.";
    }
}

pub(super) const PARAMS: &[Param] = Parameters::PARAMS;

pub(super) fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let settings = input.settings;
    let params = Parameters::from_settings(settings);
    let mut problems = check(&params, settings);
    let layout = Layout::read(&params.geometry).map_err(|more| problems.extend(more)).ok();
    let cylinders = layout.as_ref().map_or(2, Layout::cylinders);
    let seeks = seeks(input, &params.seek, cylinders).map_err(|more| problems.extend(more)).ok();
    let (scheduler, settings_of_entry) = input.registry.chosen::<SchedulerEntry>(&params.scheduler);
    let name_scheduler = |more: Vec<Problem>| more.into_iter().map(|p| within("scheduler", &p));
    let scheduler = (scheduler.build)(settings_of_entry)
        .map_err(|more| problems.extend(name_scheduler(more)))
        .ok();
    let (Some(layout), Some(seeks), Some(scheduler), true) =
        (layout, seeks, scheduler, problems.is_empty())
    else {
        return Err(problems);
    };
    let synchronised = params.synchronised;
    let offset = if synchronised { 0 } else { Stream::new(input.seed, input.path).bits() };
    let info = info(&params, &layout);
    // A drive with one cylinder does not seek.
    let shortest = seeks.time(cylinders.min(2) - 1, false).as_ns() as f64;
    let settle = SimDuration::from_ns_f64(shortest * params.resettle_share);
    let mechanics = Mechanics::new(
        layout,
        seeks,
        Rotation::new(params.rpm, offset),
        params.head_switch,
        WriteMoves { settle: params.write_settle, reduction: params.write_seek_reduction },
        params.zero_latency,
    );
    let buffer = segments(&params.buffer);
    let (reads, writes) = (&params.buffer.reads, &params.buffer.writes);
    Ok(Box::new(HardDisk::new(DriveParts {
        mechanics: Rc::new(mechanics),
        electronics: Electronics::new(
            Overheads::read(&params.electronics),
            Handshake::read(&params.electronics, buffer.sectors),
            Link::read(&params.electronics),
            params.queue_depth,
            params.preseek,
        ),
        ahead: ahead(&params.buffer, &buffer),
        buffer,
        policy: DrivePolicy {
            write_cache: params.buffer.write_cache,
            prebuffers: writes.write_prebuffering,
            appends_only: writes.write_cache_appends_only,
            stops_in_sector: reads.read_ahead_stops_in_sector,
            free_blocks: params.buffer.read_free_blocks,
            hits_overtake: params.buffer.hits_overtake,
            destage_delay: writes.destage_delay,
            settle,
        },
        power: Stream::new(input.seed, &format!("{}/power", input.path)),
        scheduler,
        spin_down: SpinDown {
            after: break_even(&params.power).or(params.power.spin_down_after),
            down: params.power.spin_down_time,
            up: params.power.spin_up_time,
        },
        info,
    })))
}

/// (E_up + E_down - P_standby (t_up + t_down)) / (P_idle - P_standby), if the drive stops then.
fn break_even(params: &Power) -> Option<SimDuration> {
    if !params.spin_down_at_break_even {
        return None;
    }
    let (up, down) = (params.spin_up_time, params.spin_down_time);
    let (up, down) = (up.as_s_f64(), down.as_s_f64());
    let joules = params.spin_up_power * up + params.spin_down_power * down
        - params.standby_power * (up + down);
    let seconds = joules / (params.idle_power - params.standby_power);
    Some(SimDuration::from_ns_f64(seconds * 1e9).min(DURATION_MAX))
}

/// Checks the rule that stops the spindle.
fn check_spin_down(params: &Power, problems: &mut Vec<Problem>) {
    if !params.spin_down_at_break_even {
        return;
    }
    let name = "spin_down_at_break_even";
    if params.spin_down_after.is_some() {
        problems.push(Problem::new(name, "and `spin_down_after` are both given; choose one"));
    }
    let (idle, standby) = (params.idle_power, params.standby_power);
    if idle <= standby {
        let message =
            format!("needs an `idle_power` above `standby_power` ({idle} W, {standby} W)");
        problems.push(Problem::new(name, message));
    }
}

fn check(params: &Parameters, settings: &Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    let rpm = params.rpm;
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
    let buffer = &params.buffer;
    let (size, segments) = (buffer.cache_segment_size, buffer.cache_segments);
    if segments > 0 && !(SECTOR_BYTES..=1 << 40).contains(&size) {
        let message = format!("{size} bytes; a segment holds 512 bytes to 1 TiB");
        problems.push(Problem::new("cache_segment_size", message));
    }
    if buffer.separate_write_segment && segments < 2 {
        let message = format!("takes one of the `cache_segments`, of which there are {segments}");
        problems.push(Problem::new("separate_write_segment", message));
    }
    if buffer.cache_write_segments.is_some_and(|writes| writes > segments) {
        let message = format!("there are only {segments} `cache_segments`");
        problems.push(Problem::new("cache_write_segments", message));
    }
    check_spin_down(&params.power, &mut problems);
    let min = buffer.reads.read_ahead_min;
    if buffer.reads.read_ahead_max.is_some_and(|max| max < min) {
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

fn seeks(
    input: &BuildInput<'_>,
    choice: &EntryChoice,
    cylinders: u32,
) -> Result<SeekTable, Vec<Problem>> {
    let (entry, settings_of_entry) = input.registry.chosen::<SeekEntry>(choice);
    (entry.build)(settings_of_entry, cylinders)
        .and_then(|model| SeekTable::new(&*model, cylinders))
        .map_err(|problems| problems.iter().map(|problem| within("seek", problem)).collect())
}

fn segments(params: &Buffer) -> SegmentsSpec {
    let count = params.cache_segments;
    let write_max = params.cache_write_segments.unwrap_or(match count {
        0 | 1 => count,
        more => more - 1,
    });
    SegmentsSpec {
        count: count as usize,
        sectors: params.cache_segment_size / SECTOR_BYTES,
        write_max: write_max as usize,
        combine: params.writes.combine_writes,
        dedicated: params.separate_write_segment,
        read_written: params.writes.read_hits_on_writes,
    }
}

fn ahead(params: &Buffer, buffer: &SegmentsSpec) -> ReadAheadPolicy {
    ReadAheadPolicy {
        limit: if buffer.count == 0 { ReadAheadLimit::None } else { params.read_ahead },
        min: params.reads.read_ahead_min,
        max: params.reads.read_ahead_max.unwrap_or(u64::MAX),
        over_requested: params.reads.read_ahead_over_requested,
        on_hit: params.reads.read_ahead_on_hit,
        segment: buffer.sectors,
    }
}

fn info(params: &Parameters, layout: &Layout) -> ComponentInfo {
    let mut watts = [0.0; PowerState::COUNT];
    let mut set = |state: PowerState, value: f64| watts[state as usize] = value;
    let power = &params.power;
    set(PowerState::Idle, power.idle_power);
    set(PowerState::Active, power.active_power.unwrap_or(power.read_power));
    set(PowerState::Seek, power.seek_power);
    set(PowerState::Read, power.read_power);
    set(PowerState::Write, power.write_power);
    set(PowerState::Standby, power.standby_power);
    set(PowerState::SpinUp, power.spin_up_power);
    set(PowerState::SpinDown, power.spin_down_power);
    ComponentInfo {
        kind: "hard-disk",
        watts: Some(watts),
        constants: vec![
            ("capacity_bytes", (layout.capacity() * SECTOR_BYTES) as f64),
            ("cylinders", f64::from(layout.cylinders())),
            ("heads", f64::from(layout.heads())),
            ("zones", layout.zones() as f64),
            ("rpm", params.rpm),
        ],
        ..ComponentInfo::default()
    }
}
