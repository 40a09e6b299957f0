//! A host I/O policy for a drive with an NV cache: pins, unpins, queries and flushes the ranges
//! that a scenario names, and enters the power mode (bisson-fqueue, section II.B: the host controls
//! the pinned set).
//!
//! Requests pass unchanged. Commands are issued one at a time: when the run begins, after a power
//! failure (pinned ranges without data and the power mode do not survive one), and at the times the
//! scenario gives.

use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Checkpoint, Command, Completion, Component, ComponentInfo, Ctx, Lba, Loader, PowerFailure,
    Request, RequestId, SECTOR_BYTES, Saver, SimDuration, SimTime, StateError,
};
use std::collections::VecDeque;
use std::rc::Rc;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "nv-cache-host",
        summary: "a host I/O policy that pins, queries and flushes the NV cache of the drive below",
        origin: "bisson-fqueue, section II.B; T13 ATA8-ACS, NV cache feature set",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    /// A range to pin.
    struct Range {
        start: u64 = Kind::Bytes, required, "Start of the range.";
        size: u64 = Kind::Bytes, required, "Length of the range; whole sectors of 512 bytes.";
    }
}

hybridsim_config::params! {
    pub struct Parameters {
        pub drive: String = Kind::Component, required,
            "A component with NV cache commands: `nv-cache-disk`.";
        pin: Vec<Settings> = Kind::Tables(Range::PARAMS), default "[]",
            "Ranges that are pinned when the run begins.";
        populate: bool = Kind::Flag, default "true" needs &[Needs::given("pin")],
            "Whether the drive reads the pinned ranges into its cache at once; otherwise writes \
             do.";
        unpin_after: Option<SimDuration> = Kind::Duration, optional needs &[Needs::given("pin")],
            "When the ranges are unpinned.";
        power_mode: bool = Kind::Flag, default "false", "Enters the NV cache power mode.";
        spinning_min: SimDuration = Kind::Duration, default "\"0s\""
            needs &[Needs::Is("power_mode", &["true"])],
            "In the power mode: minimum spinning time of the disk after a start, in whole seconds.";
        query_every: Option<SimDuration> = Kind::Duration, optional,
            "Interval at which the pinned set is queried.";
        flush_every: Option<SimDuration> = Kind::Duration, optional,
            "Interval at which the unpinned set is flushed.";
        flush_room: Option<u64> = Kind::Bytes, optional needs &[Needs::given("flush_every")],
            "Free space to which the unpinned set is flushed; all of the cache when absent.";
    }
}

/// Shortest interval between two commands of a kind.
const EVERY_MIN: SimDuration = SimDuration::from_ms(1);
/// Tag of commands; a request has its own number.
const COMMAND: u64 = u64::MAX;

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let (params, drive) = (Parameters::from_settings(input.settings), &input.children[0]);
    let mut problems = Vec::new();
    let pin = ranges(&params.pin, drive.capacity, &mut problems);
    for (name, every) in [("query_every", params.query_every), ("flush_every", params.flush_every)]
    {
        if every.is_some_and(|every| every < EVERY_MIN) {
            problems.push(Problem::new(name, format!("must be at least {EVERY_MIN}")));
        }
    }
    let spinning_s_min = params.spinning_min.as_ns() / 1_000_000_000;
    if params.spinning_min != SimDuration::from_s(spinning_s_min)
        || spinning_s_min > u64::from(u32::MAX)
    {
        let message = "must be whole seconds, fewer than 2^32: the command has no other unit";
        problems.push(Problem::new("spinning_min", message));
    }
    let room = params.flush_room.map(|bytes| bytes.div_ceil(SECTOR_BYTES));
    if room.is_some_and(|room| room > drive.capacity.min(u64::from(u32::MAX))) {
        problems.push(Problem::new("flush_room", "is larger than the drive or 2 TiB"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Box::new(NvCacheHost {
        capacity: drive.capacity,
        positioner: drive.positioner.clone(),
        pin,
        populate: params.populate,
        power_mode: params.power_mode.then_some(spinning_s_min as u32),
        timers: [
            params.unpin_after.map(|after| (Timer::Unpin, after)),
            params.query_every.map(|every| (Timer::Query, every)),
            params.flush_every.map(|every| (Timer::Flush, every)),
        ],
        room: params.flush_every.and(room).map(|room| room as u32),
        queue: VecDeque::new(),
        outstanding: None,
        pinned: 0,
        restored: false,
    }))
}

/// The ranges to pin, in sectors, split to the longest range of one command.
fn ranges(ranges: &[Settings], capacity: u64, problems: &mut Vec<Problem>) -> Vec<(Lba, u32)> {
    let mut found = Vec::new();
    for (at, range) in ranges.iter().map(Range::from_settings).enumerate() {
        let Range { start, size } = range;
        let whole = start.is_multiple_of(SECTOR_BYTES) && size.is_multiple_of(SECTOR_BYTES);
        let (mut lba, mut left) = (start / SECTOR_BYTES, size / SECTOR_BYTES);
        let fits = lba.checked_add(left).is_some_and(|end| end <= capacity);
        if !whole || !fits || left == 0 {
            let message = format!(
                "range {at} is {size} bytes from {start} on; it must be some sectors of 512 bytes \
                 within the {capacity} of the drive"
            );
            problems.push(Problem::new("pin", message));
            continue;
        }
        while left > 0 {
            let sectors = left.min(u64::from(u32::MAX));
            found.push((Lba(lba), sectors as u32));
            (lba, left) = (lba + sectors, left - sectors);
        }
    }
    found
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    Unpin = 0,
    Query = 1,
    Flush = 2,
}

struct NvCacheHost {
    capacity: u64,
    positioner: Option<Rc<dyn Positioner>>,
    pin: Vec<(Lba, u32)>,
    populate: bool,
    /// Minimum spinning time in the NV cache power mode, in seconds.
    power_mode: Option<u32>,
    timers: [Option<(Timer, SimDuration)>; 3],
    /// Free space that a flush makes, in sectors; the size of the cache once that is known.
    room: Option<u32>,
    queue: VecDeque<(Command, (Lba, u32))>,
    outstanding: Option<Command>,
    pinned: u64,
    /// The state comes from an earlier run, which has issued the first commands.
    restored: bool,
}

const ALL: (Lba, u32) = (Lba(0), 0);

impl NvCacheHost {
    /// Issues the commands due at the start of a run or after a power failure.
    fn set_up(&mut self, ctx: &mut Ctx<'_>) {
        if self.room.is_none() {
            self.queue.push_back((Command::QuerySize, ALL));
        }
        let pin = Command::Pin { populate: self.populate };
        let after = self.timers[Timer::Unpin as usize].map(|timer| SimTime::ZERO + timer.1);
        if after.is_none_or(|after| ctx.now() < after) {
            self.queue.extend(self.pin.iter().map(|range| (pin, *range)));
        }
        if let Some(spinning_s_min) = self.power_mode {
            self.queue.push_back((Command::EnterPowerMode { spinning_s_min }, ALL));
        }
        for &(timer, time) in self.timers.iter().flatten() {
            let at = match timer {
                Timer::Unpin => SimTime::ZERO + time,
                Timer::Query | Timer::Flush => ctx.now() + time,
            };
            if at >= ctx.now() {
                ctx.wake_at(at, timer as u64);
            }
        }
        self.send(ctx);
    }

    fn send(&mut self, ctx: &mut Ctx<'_>) {
        if self.outstanding.is_none()
            && let Some((command, range)) = self.queue.pop_front()
        {
            self.outstanding = Some(command);
            ctx.command(0, command, range, COMMAND);
        }
    }

    fn command_completed(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let command = self.outstanding.take().expect("a command is outstanding");
        let sectors = ctx.take_answer(done.id).iter().map(|range| range.1).sum::<u64>();
        match command {
            Command::QuerySize => self.room = Some(u32::try_from(sectors).unwrap_or(u32::MAX)),
            Command::QueryPinned if sectors != self.pinned => {
                self.pinned = sectors;
                ctx.emit(CommonEvent::Custom { name: 0, value: sectors });
            }
            _ => {}
        }
        if done.failed() {
            ctx.device_fault(format!(
                "the drive refused `{}` of {} sectors from {}; its NV cache has no space for them \
                 (pin less, or flush before) or has failed",
                command.name(),
                done.request.sectors,
                done.request.lba
            ));
        }
        self.send(ctx);
    }
}

impl Component for NvCacheHost {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        let kind = ENTRY.description.name;
        ComponentInfo { kind, custom: &["pinned_sectors"], ..ComponentInfo::default() }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.positioner.clone()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if !std::mem::take(&mut self.restored) {
            self.set_up(ctx);
        }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        ctx.issue(0, *request, u64::from(id.0));
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.tag == COMMAND {
            return self.command_completed(ctx, done);
        }
        ctx.complete_as(RequestId(done.tag as u32), done.breakdown, done.failed());
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let Some((timer, every)) = self.timers.get(token as usize).copied().flatten() else {
            return;
        };
        // A command that is still queued from the last time is not queued again.
        let again = |queue: &VecDeque<(Command, (Lba, u32))>, command| {
            queue.iter().all(|(waiting, _)| *waiting != command)
        };
        match timer {
            Timer::Unpin => {
                let unpin = Command::Unpin { discard: false };
                self.queue.extend(self.pin.iter().map(|range| (unpin, *range)));
            }
            Timer::Query if again(&self.queue, Command::QueryPinned) => {
                self.queue.push_back((Command::QueryPinned, ALL));
            }
            Timer::Flush if again(&self.queue, Command::FlushUnpinned) => {
                let most = u32::try_from(self.capacity).unwrap_or(u32::MAX);
                let room = self.room.unwrap_or(0).min(most);
                self.queue.push_back((Command::FlushUnpinned, (Lba(0), room)));
            }
            Timer::Query | Timer::Flush => {}
        }
        if !matches!(timer, Timer::Unpin) {
            ctx.wake_after(every, token);
        }
        self.send(ctx);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl PowerFailure for NvCacheHost {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.queue.clear();
        self.outstanding = None;
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.set_up(ctx);
    }
}

impl Checkpoint for NvCacheHost {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if self.outstanding.is_some() || !self.queue.is_empty() {
            return Err(StateError("NV cache commands are outstanding".to_owned()));
        }
        to.put(&(self.room, self.pinned));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.room, self.pinned) = from.take()?;
        self.restored = true;
        Ok(())
    }
}
