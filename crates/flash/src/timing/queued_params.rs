//! The parameters of timing model `queued`.

use super::{
    BufferPauses, ChipPages, DieScheduling, ONE_SHOT, OperationTimes, PARALLEL, Queued,
    SuspendPoints, TIMES, TimingEntry, TimingInput, TimingModel, WriteBuffer,
};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub const ENTRY: TimingEntry = TimingEntry {
    description: Description {
        name: "queued",
        summary: "A queue per die: host reads pass the programs, copies and erases that wait, \
                  suspend running ones where times to suspend are given, and there is a write \
                  buffer, as in current drives.",
        origin: "controllers of current drives; suspension: Wu and He, FAST 2012",
        params: Parameters::PARAMS,
    },
    provides: &[TIMES, PARALLEL, ONE_SHOT],
    build,
};

const SUSPENDS: Needs =
    Needs::Any(&[Needs::given("program_suspend_time"), Needs::given("erase_suspend_time")]);
const BUFFERED: Needs = Needs::above_zero("write_buffer");
const PAUSES: Needs = Needs::above_zero("buffer_pause_time");

hybridsim_config::params! {
    /// Scheduling of dies, and the write buffer.
    struct Parameters {
        program_suspend_time: Option<SimDuration> = Kind::Duration, optional,
            "Time to suspend a program for a host read, or a copy while it programs; without it \
             programs are not suspended, and reads pass only those that have not begun.";
        program_suspend_interval: Option<SimDuration> = Kind::Duration, optional
            needs &[Needs::given("program_suspend_time")],
            "A program can be suspended only each time it has run for so long, so that a read \
             waits for the next such point; default: at any time.";
        suspend_reads_max: Option<u32> = Kind::Count { min: 1, max: 1000 }, optional
            needs &[Needs::given("program_suspend_time"), Needs::given("program_suspend_interval")],
            "Maximum reads of the host that a die executes each time a program is suspended, and \
             ahead of a program that waits; further ones wait for the next point at which the \
             program can be suspended, or its end. Default: no limit.";
        erase_suspend_time: Option<SimDuration> = Kind::Duration, optional,
            "Time to suspend an erase for a read; without it erases are not suspended.";
        resume_time: SimDuration = Kind::Duration, default "0ns" needs &[SUSPENDS],
            "Time added to a program or erase each time it resumes.";
        suspends_max: u32 = Kind::Count { min: 0, max: 1000 }, default "8" needs &[SUSPENDS],
            "Maximum suspensions of one program or erase.";
        multi_plane: bool = Kind::Flag, default "false"
            needs &[Needs::Not("^.planes_per_die", &["1"])],
            "Programs and erases of one request on several planes of a die run as one multi-plane \
             operation.";
        page_types: u32 = Kind::Count { min: 1, max: 4 }, default "3"
            needs &[Needs::above_zero("read_spread")],
            "Bits per cell; a cell's pages (LSB, CSB, MSB, ...) alternate in a block and differ in \
             read time by `read_spread`.";
        read_spread: f64 = Kind::Number { min: 0.0, max: 1.9 }, default "0.0",
            "Read time of the slowest page type minus that of the fastest, as a fraction of \
             `read_time`, their mean.";
        write_buffer: u64 = Kind::Bytes, default "4MiB",
            "Size of the write buffer; the default is assumed. A write completes when its data are \
             in the buffer; without one (`\"0B\"`), when they are programmed, and host reads delay \
             that as they pass or suspend its programs. Writes that find the buffer full wait in \
             order of arrival.";
        buffer_pause_time: SimDuration = Kind::Duration, default "0ns" needs &[BUFFERED],
            "How long the write buffer frees no entry at the end of every `buffer_pause_interval`. \
             Writes that do not fit into the rest of it wait until the pause ends. Some drives \
             pause the emptying of their buffer in this way; reads and flash operations continue.";
        buffer_pause_interval: Option<SimDuration> = Kind::Duration, optional needs &[PAUSES],
            "Time from the end of a pause of the write buffer to the end of the next.";
        buffer_pause_full_max: Option<SimDuration> = Kind::Duration, optional needs &[PAUSES],
            "A pause of the write buffer ends once a write has waited in it for so long; default: \
             it never ends early.";
        power_loss_protection: bool = Kind::Flag, default "false" needs &[BUFFERED],
            "A flush completes at once, as in drives with power-loss protection, instead of \
             waiting for the write buffer. Acknowledged writes survive a power failure in either \
             case.";
        schedule_slots: Option<usize> = super::SLOTS, optional,
            "Entries of each bus's schedule table; when it is full, transfers queue behind the \
             last, which costs throughput. Without it a table has as many as it needs.";
    }
}

fn build(input: &TimingInput<'_>) -> Built<dyn TimingModel> {
    let params = Parameters::from_settings(input.settings);
    let problems = params.problems(input);
    if !problems.is_empty() {
        return Err(problems);
    }
    let geometry = *input.geometry;
    let times = OperationTimes { schedule_slots: params.schedule_slots, ..input.times };
    let (types, spread) = (params.page_types, params.read_spread);
    let pages = ChipPages::new(times.read, types, spread, geometry.read_pages())
        .with_program_pages(geometry.program_pages(), times.slc.bits, geometry.units_per_page());
    let buffered = params.write_buffer / u64::from(geometry.page_bytes());
    // A larger buffer could never fill.
    let buffered = buffered.min(u64::from(geometry.pages())) as usize;
    let buffer = WriteBuffer::new(buffered, geometry.dies(), params.power_loss_protection)
        .with_pauses(params.pauses());
    let queued = Queued::new(geometry, times, (params.scheduling(), pages), buffer);
    Ok(Box::new(queued))
}

impl Parameters {
    fn scheduling(&self) -> DieScheduling {
        let points = |interval| SuspendPoints {
            interval,
            reads_max: self.suspend_reads_max.unwrap_or(u32::MAX),
        };
        // Programs that are not suspended have no points.
        let interval =
            self.program_suspend_interval.filter(|_| self.program_suspend_time.is_some());
        DieScheduling {
            program_suspend: self.program_suspend_time,
            program_points: interval.map(points),
            erase_suspend: self.erase_suspend_time,
            resume: self.resume_time,
            suspends_max: self.suspends_max,
            multi_plane: self.multi_plane,
        }
    }

    fn pauses(&self) -> BufferPauses {
        let (length, full_max) = (self.buffer_pause_time, self.buffer_pause_full_max);
        let pauses = |interval| BufferPauses { interval, length, full_max };
        self.buffer_pause_interval.map_or(BufferPauses::NONE, pauses)
    }

    fn problems(&self, input: &TimingInput<'_>) -> Vec<Problem> {
        let unbuffered =
            (input.geometry.program_pages() > 1 && self.write_buffer == 0).then(|| {
                let message =
                    "needs a write buffer, in which pages wait for those programmed with them";
                Problem::new("program_pages", message)
            });
        unbuffered
            .into_iter()
            .chain(self.pause_problem())
            .chain(self.suspension_problem())
            .chain(self.slc_problems(input))
            .collect()
    }

    /// A device whose cells hold several bits in native mode programs as many pages at once.
    fn slc_problems(&self, input: &TimingInput<'_>) -> Vec<Problem> {
        let pages = input.geometry.program_pages() / input.geometry.units_per_page();
        let bits = input.times.slc.bits;
        let mut problems = Vec::new();
        if bits > 1 && pages > 1 && !pages.is_multiple_of(bits) {
            let message = format!("must be a multiple of bits_per_cell ({bits})");
            problems.push(Problem::new("program_pages", message));
        }
        if bits > 1 && self.read_spread > 0.0 && self.page_types != bits {
            let message = format!("must be the bits_per_cell of the FTL ({bits})");
            problems.push(Problem::new("timing.page_types", message));
        }
        problems
    }

    /// An interval between points of suspension is longer than none.
    fn suspension_problem(&self) -> Option<Problem> {
        let message = "must be above 0; remove it if programs can be suspended at any time";
        self.program_suspend_interval?
            .is_zero()
            .then(|| Problem::new("timing.program_suspend_interval", message))
    }

    /// A pause that is given has to leave time to free entries.
    fn pause_problem(&self) -> Option<Problem> {
        let length = self.buffer_pause_time;
        if length.is_zero() {
            return None;
        }
        let Some(interval) = self.buffer_pause_interval else {
            let message = "the interval from pause to pause is missing: set buffer_pause_interval";
            return Some(Problem::new("timing.buffer_pause_time", message));
        };
        if interval <= length {
            let message = "the pause takes the whole interval: set a longer buffer_pause_interval";
            return Some(Problem::new("timing.buffer_pause_interval", message));
        }
        let full_max = self.buffer_pause_full_max?;
        let message = "must be above 0 and less than buffer_pause_time; or remove it";
        (full_max.is_zero() || full_max >= length)
            .then(|| Problem::new("timing.buffer_pause_full_max", message))
    }
}
