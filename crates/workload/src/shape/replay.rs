//! Replays a trace: the adapters in line, piece by piece, pass by pass.

use super::address::Address;
use super::rescale::Rescale;
use super::slice::{Slice, Verdict};
use super::survey::Survey;
use super::times::{Times, Waiting};
use super::volumes::{Layout, Selection};
use crate::record::{Place, Record, RecordReader, TraceError, Warning};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::{Arrival, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime, Source};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// How often.
pub const LOOPS: Param = Param::with(
    "loops",
    Kind::Count { min: 1, max: u64::MAX },
    "1",
    "How often the trace is replayed. Times go on: a pass begins one mean gap after the last \
     request of the pass before.",
);
/// Largest request.
pub const REQUEST_MAX: Param = Param::optional(
    "request_max",
    Kind::Bytes,
    "Larger requests are cut into pieces of this size that arrive together.",
);

/// Why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayError {
    /// The parameters are wrong.
    Settings(Vec<Problem>),
    /// The trace is.
    Trace(TraceError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::Settings(problems) => {
                for (index, problem) in problems.iter().enumerate() {
                    write!(f, "{}{problem}", if index == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<TraceError> for ReplayError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

/// What a replay warned of; shared with whoever reports it.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Rc<RefCell<Vec<Warning>>>);

impl Warnings {
    /// The warnings so far: the reader's and the replay's own.
    pub fn list(&self) -> Vec<Warning> {
        self.0.borrow().clone()
    }

    fn add(&self, number: u64, message: &str) {
        let mut list = self.0.borrow_mut();
        match list.iter_mut().find(|warning| warning.message == message) {
            Some(warning) => warning.count += 1,
            None => list.push(Warning {
                place: Place::Record(number),
                count: 1,
                message: message.to_owned(),
            }),
        }
    }

    /// Takes over the reader's warnings; what it told before is replaced.
    fn merge(&self, warnings: &[Warning]) {
        let mut list = self.0.borrow_mut();
        for warning in warnings {
            match list.iter_mut().find(|known| known.message == warning.message) {
                Some(known) => known.clone_from(warning),
                None => list.push(warning.clone()),
            }
        }
    }
}

/// Opens the trace from its start.
type Open = Box<dyn Fn() -> Result<Box<dyn RecordReader>, TraceError>>;

/// A trace as a workload.
pub struct Replay {
    open: Open,
    reader: Box<dyn RecordReader>,
    unused: Slice,
    slice: Slice,
    selection: Selection,
    layout: Layout,
    address: Address,
    times: Times,
    /// With `times = "after-completions"`.
    waiting: Option<Waiting>,
    request_sectors_max: u32,
    loops: u64,
    passes_done: u64,
    /// Time at which the pass began, before scaling.
    pass_start: SimDuration,
    /// Time of the last record of the pass, before scaling.
    last: SimDuration,
    number: u64,
    kept: u64,
    /// What is left of a request that goes in pieces, at its place before mapping.
    rest: Option<(SimTime, Request)>,
    ended: bool,
    warnings: Warnings,
}

/// Builds the replay of a trace on a device of `capacity_sectors`. `open` opens the trace from its
/// start; it is called again for a first pass and for every loop.
///
/// # Errors
/// Parameters that make no sense together, and traces that cannot be opened or surveyed.
pub fn replay(
    settings: &Settings,
    open: impl Fn() -> Result<Box<dyn RecordReader>, TraceError> + 'static,
    capacity_sectors: u64,
) -> Result<Replay, ReplayError> {
    let mut problems = Vec::new();
    let rescale = Rescale::new(settings, &mut problems);
    let open = move || Ok(rescale.over(open()?));
    let slice = Slice::new(settings, &mut problems);
    let selection = Selection::new(settings, &mut problems);
    let mut address = Address::new(settings, capacity_sectors, &mut problems);
    let mut layout = Layout::new(settings, address.names_places(), &mut problems);
    let request_max = settings.bytes_opt("request_max");
    let request_sectors_max = request_max.map_or(u64::from(u32::MAX), |max| max / SECTOR_BYTES);
    if request_sectors_max == 0 || request_max.is_some_and(|max| !max.is_multiple_of(SECTOR_BYTES))
    {
        problems.push(Problem::new("request_max", "must be a multiple of 512 bytes"));
    }
    if !problems.is_empty() {
        return Err(ReplayError::Settings(problems));
    }
    if layout.needs_survey() || address.needs_survey() {
        let survey = Survey::of(&mut *open()?, slice.clone(), &selection)?;
        address.survey(layout.survey(&survey, &selection));
    }
    let reader = open()?;
    let warnings = Warnings::default();
    let mut times = Times::new(settings);
    if !reader.has_times() && !matches!(times, Times::AtOnce) {
        warnings.add(1, "the trace has no times: all requests arrive at once");
        times = Times::AtOnce;
    }
    let waits = settings.text("times") == "after-completions";
    Ok(Replay {
        open: Box::new(open),
        reader,
        unused: slice.clone(),
        slice,
        selection,
        layout,
        address,
        times,
        waiting: waits.then(Waiting::default),
        request_sectors_max: u32::try_from(request_sectors_max).unwrap_or(u32::MAX),
        loops: settings.count("loops"),
        passes_done: 0,
        pass_start: SimDuration::ZERO,
        last: SimDuration::ZERO,
        number: 0,
        kept: 0,
        rest: None,
        ended: false,
        warnings,
    })
}

impl Replay {
    /// The warnings, to be looked at during and after the run.
    pub fn warnings(&self) -> Warnings {
        self.warnings.clone()
    }

    /// Whether requests arrive at times of their own. Without, only a closed loop makes sense.
    pub const fn has_times(&self) -> bool {
        !matches!(self.times, Times::AtOnce)
    }

    /// The next record of the pass that is wanted.
    fn record(&mut self) -> Result<Option<Record>, String> {
        loop {
            let next = self.reader.next().map_err(|error| error.to_string())?;
            let Some(record) = next else { return Ok(None) };
            self.number += 1;
            match self.slice.judge(self.number, &record) {
                Verdict::Stop => return Ok(None),
                Verdict::Skip => continue,
                Verdict::Keep => {}
            }
            if !self.selection.contains(record.request.volume) {
                continue;
            }
            if record.request.sectors == 0 && record.request.op != Op::Flush {
                self.warnings.add(self.number, "requests without length were left out");
                continue;
            }
            self.kept += 1;
            return Ok(Some(record));
        }
    }

    /// Takes up the next record; `false` at the end of the last pass.
    fn advance(&mut self) -> Result<bool, String> {
        let record = loop {
            if let Some(record) = self.record()? {
                break record;
            }
            self.warnings.merge(self.reader.warnings());
            if self.kept == 0 {
                return Err(self.nothing_left());
            }
            self.passes_done += 1;
            if self.passes_done >= self.loops {
                return Ok(false);
            }
            self.rewind()?;
        };
        self.last = self.slice.since_start(record.at);
        let at = self.arrival(record.response);
        if at == SimTime::NEVER {
            return Err(format!("record {}: its time is too late", self.number));
        }
        let mut request = record.request;
        if request.op != Op::Flush {
            let placed = self.layout.place(&request, &self.selection);
            request.lba = Lba(placed.map_err(|message| self.located(&message))?);
        } else {
            (request.lba, request.sectors) = (Lba(0), 0);
        }
        self.rest = Some((at, request));
        Ok(true)
    }

    /// When the record at hand arrives.
    fn arrival(&mut self, response: Option<SimDuration>) -> SimTime {
        let since_start = self.pass_start + self.last;
        let Some(waiting) = &mut self.waiting else { return self.times.arrival(since_start) };
        if response.is_none() {
            let message = "requests without a recorded response time: the whole time to the next \
                           counts as a pause";
            self.warnings.add(self.number, message);
        }
        waiting.arrival(self.times, since_start, response.unwrap_or_default())
    }

    fn rewind(&mut self) -> Result<(), String> {
        let gap = self.last / self.kept.saturating_sub(1).max(1);
        self.pass_start = self.pass_start + self.last + gap;
        self.reader = (self.open)().map_err(|error| error.to_string())?;
        self.slice = self.unused.clone();
        (self.number, self.kept) = (0, 0);
        Ok(())
    }

    fn nothing_left(&self) -> String {
        let what = match (self.slice.is_partial(), self.selection.is_partial()) {
            (false, false) => "the trace holds no request",
            (true, false) => "no request lies between `first`, `count`, `from` and `until`",
            (_, true) => "no request of the chosen part goes to the chosen `volumes`",
        };
        format!("{what} ({} records read)", self.number)
    }

    fn located(&self, message: &str) -> String {
        format!("record {} of the trace: {message}", self.number)
    }

    /// The next piece of the request at hand.
    fn piece(&mut self, at: SimTime, request: Request) -> Result<Arrival, String> {
        if request.op == Op::Flush {
            return Ok(Arrival { at, request });
        }
        let wanted = request.sectors.min(self.request_sectors_max);
        let mapped = match self.address.map(request.lba.0, wanted) {
            Ok(mapped) => mapped,
            Err(message) => return Err(self.located(&message)),
        };
        if mapped.wrapped {
            let message = "addresses beyond the device were taken modulo its capacity";
            self.warnings.add(self.number, message);
        }
        if mapped.sectors < request.sectors {
            let left = request.sectors - mapped.sectors;
            let next = request.lba.offset(u64::from(mapped.sectors));
            self.rest = Some((at, request.part(mapped.sectors, left, next)));
        }
        Ok(Arrival { at, request: request.part(0, mapped.sectors, Lba(mapped.lba)) })
    }
}

impl Source for Replay {
    fn reads_ahead(&self) -> bool {
        self.waiting.is_none()
    }

    fn waits(&self) -> bool {
        self.waiting.is_some() && !self.ended
    }

    fn completed(&mut self, _request: &Request, now: SimTime) {
        if let Some(waiting) = &mut self.waiting {
            waiting.completed(now);
        }
    }

    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.ended {
            return Ok(None);
        }
        if self.rest.is_none() {
            if self.waiting.is_some_and(|waiting| waiting.must_wait()) {
                return Ok(None);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => {
                    self.ended = true;
                    return Ok(None);
                }
                Err(message) => {
                    self.ended = true;
                    return Err(message);
                }
            }
        }
        let (at, request) = self.rest.take().expect("advance leaves a request");
        let piece = self.piece(at, request);
        self.ended = piece.is_err();
        if let Some(waiting) = &mut self.waiting {
            waiting.delivered();
        }
        piece.map(Some)
    }

    fn progress(&self) -> Option<f64> {
        let of_file = self.reader.progress();
        let of_slice = self.slice.share_done(self.number);
        let pass = match (of_file, of_slice) {
            (Some(file), Some(slice)) => file.max(slice),
            (one, other) => one.or(other)?,
        };
        if self.ended {
            return Some(1.0);
        }
        Some(((self.passes_done as f64 + pass.min(1.0)) / self.loops as f64).min(1.0))
    }
}
