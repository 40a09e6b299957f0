//! Replays a trace on a device.

use super::address::{self, AddressMap};
use super::rescale::{self, Rescale};
use super::slice::{self, Slice, SliceDecision};
use super::survey::{granules, volume_ends};
use super::times::{self, ArrivalTimes, CompletionPacing, Times};
use super::volumes::{self, VolumeLayout, VolumeSelection};
use crate::record::{Record, RecordReader, SourceLocation, TraceError, TraceResult, Warning};
use hybridsim_config::param::{Kind, Problem, Settings};
use hybridsim_engine::{Arrival, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime, Source};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

hybridsim_config::params! {
    /// Parameters of a replay.
    pub struct Parameters includes {
        times: times::Parameters,
        slice: slice::Parameters,
        rescale: rescale::Parameters,
        volumes: volumes::Parameters,
        address: address::Parameters,
    } {
        loops: u64 = Kind::Count { min: 1, max: u64::MAX }, default "1",
            "Number of passes over the trace, or of the same generated requests. A pass starts one \
             mean interarrival time after the last request of the previous pass.";
        request_max: Option<u64> = Kind::Bytes, optional,
            "Larger requests are split into requests of this size that arrive together.";
    }
}

/// Why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayError {
    Settings(Vec<Problem>),
    Trace(TraceError),
    /// The trace does not fit the device, and the remedy.
    DoesNotFit(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::DoesNotFit(message) => f.write_str(message),
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

/// The warnings of a replay, shared with the caller that reports them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Rc<RefCell<Vec<Warning>>>);

impl Warnings {
    /// The warnings so far, of the reader and of the replay.
    pub fn list(&self) -> Vec<Warning> {
        self.0.borrow().clone()
    }

    fn add(&self, number: u64, message: &str) {
        self.add_at(SourceLocation::Record(number), message);
    }

    fn add_at(&self, location: SourceLocation, message: &str) {
        let mut list = self.0.borrow_mut();
        match list.iter_mut().find(|warning| warning.message == message) {
            Some(warning) => warning.count += 1,
            None => list.push(Warning { location, count: 1, message: message.to_owned() }),
        }
    }

    /// Adds the reader's warnings, replacing its earlier ones.
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

/// Opens the trace at its start.
type Open = Box<dyn Fn() -> TraceResult<Box<dyn RecordReader>>>;

/// A trace as a workload.
pub struct Replay {
    open: Open,
    reader: Box<dyn RecordReader>,
    /// The slice before the first record of a pass.
    initial_slice: Slice,
    slice: Slice,
    selection: VolumeSelection,
    layout: VolumeLayout,
    address: AddressMap,
    times: ArrivalTimes,
    /// With `times = "after-completions"`.
    pacing: Option<CompletionPacing>,
    request_sectors_max: u32,
    loops: u64,
    passes_done: u64,
    /// Start of the pass, before scaling.
    pass_start: SimDuration,
    /// Time of the last record of the pass, before scaling.
    last: SimDuration,
    /// Records read in this pass, and those of them replayed.
    number: u64,
    kept: u64,
    /// The part of the current request that has not been issued, before mapping.
    rest: Option<(SimTime, Request)>,
    ended: bool,
    warnings: Warnings,
}

/// Builds the replay of a trace on a device of `capacity_sectors`. `open` opens the trace at its
/// start; it is called again for a first pass and for every loop.
///
/// # Errors
/// Inconsistent parameters, and traces that cannot be opened or read in the first pass.
pub fn replay(
    settings: &Settings,
    open: impl Fn() -> TraceResult<Box<dyn RecordReader>> + 'static,
    capacity_sectors: u64,
) -> Result<Replay, ReplayError> {
    let params = Parameters::from_settings(settings);
    let mut problems = Vec::new();
    let rescale = Rescale::new(&params.rescale, &mut problems);
    let open = move || Ok(rescale.over(open()?));
    let slice = Slice::new(&params.slice, &mut problems);
    let selection = VolumeSelection::new(&params.volumes, &mut problems);
    let mut address = AddressMap::new(&params.address, capacity_sectors, &mut problems);
    let mut layout = VolumeLayout::new(&params.volumes, address.maps_volumes(), &mut problems);
    let request_max = params.request_max;
    let request_sectors_max = request_max.map_or(u64::from(u32::MAX), |max| max / SECTOR_BYTES);
    if request_sectors_max == 0 || request_max.is_some_and(|max| !max.is_multiple_of(SECTOR_BYTES))
    {
        problems.push(Problem::new("request_max", "must be a multiple of 512 bytes"));
    }
    if !problems.is_empty() {
        return Err(ReplayError::Settings(problems));
    }
    let warnings = Warnings::default();
    let trace = FirstPass { open: &open, slice: &slice, selection: &selection };
    if let Some(note) = trace.lay_out(&params.address, &mut layout, &mut address)? {
        warnings.add_at(SourceLocation::File, &note);
    }
    let reader = open()?;
    let mut times = ArrivalTimes::new(&params.times);
    if !reader.has_times() && !matches!(times, ArrivalTimes::AtOnce) {
        warnings.add(1, "the trace has no times: all requests arrive at once");
        times = ArrivalTimes::AtOnce;
    }
    let waits = params.times.times == Times::AfterCompletions;
    Ok(Replay {
        open: Box::new(open),
        reader,
        initial_slice: slice.clone(),
        slice,
        selection,
        layout,
        address,
        times,
        pacing: waits.then(CompletionPacing::default),
        request_sectors_max: u32::try_from(request_sectors_max).unwrap_or(u32::MAX),
        loops: params.loops,
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

/// Input of the first pass over a trace.
struct FirstPass<'a> {
    open: &'a dyn Fn() -> TraceResult<Box<dyn RecordReader>>,
    slice: &'a Slice,
    selection: &'a VolumeSelection,
}

impl FirstPass<'_> {
    /// Lays out volumes and maps addresses, reading the trace as often as necessary. Returns what
    /// `fit` did, if anything.
    fn lay_out(
        &self,
        params: &address::Parameters,
        layout: &mut VolumeLayout,
        address: &mut AddressMap,
    ) -> Result<Option<String>, ReplayError> {
        let fit = params.fit && matches!(address, AddressMap::Error { .. });
        if layout.needs_first_pass() || address.needs_address_range() || fit {
            let ends = volume_ends(&mut *(self.open)()?, self.slice.clone(), self.selection)?;
            let end = layout.set_volume_ends(&ends, self.selection);
            match address.set_trace_end(end) {
                Ok(()) => return Ok(None),
                Err(message) if !fit => return Err(ReplayError::DoesNotFit(message)),
                Err(_) => {}
            }
        }
        if fit && layout.needs_first_pass() {
            *layout = VolumeLayout::Virtual;
        }
        let find = |granule: u64, max: u64| {
            let volumes = (self.selection, &*layout);
            granules(&mut *(self.open)()?, self.slice.clone(), volumes, granule, max)
        };
        let done = match fit {
            true => address.fit(params.granule, find)?.map(Some),
            false => address.set_granules(find)?.map(|()| None),
        };
        done.map_err(ReplayError::DoesNotFit)
    }
}

impl Replay {
    /// The warnings, readable during and after the run.
    pub fn warnings(&self) -> Warnings {
        self.warnings.clone()
    }

    /// The requests in the order of the trace, without arrival times and without waiting for
    /// completions.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        (self.times, self.pacing) = (ArrivalTimes::AtOnce, None);
        self
    }

    /// Whether requests have arrival times. Without them only a closed loop is possible.
    pub const fn has_times(&self) -> bool {
        !matches!(self.times, ArrivalTimes::AtOnce)
    }

    /// The next record of the pass in the slice and the chosen volumes.
    fn next_record(&mut self) -> Result<Option<Record>, String> {
        loop {
            let next = self.reader.next().map_err(|error| error.to_string())?;
            let Some(record) = next else { return Ok(None) };
            self.number += 1;
            match self.slice.decide(self.number, &record) {
                SliceDecision::Stop => return Ok(None),
                SliceDecision::Skip => continue,
                SliceDecision::Keep => {}
            }
            if !self.selection.contains(record.request.volume) {
                continue;
            }
            if record.request.sectors == 0 && record.request.op != Op::Flush {
                self.warnings.add(self.number, "requests of length zero were left out");
                continue;
            }
            self.kept += 1;
            return Ok(Some(record));
        }
    }

    /// Makes the next record current; `false` at the end of the last pass.
    fn advance(&mut self) -> Result<bool, String> {
        let record = loop {
            if let Some(record) = self.next_record()? {
                break record;
            }
            self.warnings.merge(self.reader.warnings());
            if self.passes_done == 0
                && let Some(note) = self.reader.block_events().and_then(|events| events.note())
            {
                self.warnings.add_at(SourceLocation::File, &note);
            }
            if self.kept == 0 {
                return Err(self.no_requests());
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
            let located = self.layout.locate(&request, &self.selection);
            request.lba = Lba(located.map_err(|message| self.located(&message))?);
        } else {
            (request.lba, request.sectors) = (Lba(0), 0);
        }
        self.rest = Some((at, request));
        Ok(true)
    }

    /// The arrival of the current record.
    fn arrival(&mut self, response: Option<SimDuration>) -> SimTime {
        let since_start = self.pass_start + self.last;
        let Some(pacing) = &mut self.pacing else { return self.times.arrival(since_start) };
        if response.is_none() {
            let message = "requests without a recorded response time: the time to the next one \
                           counts as think time";
            self.warnings.add(self.number, message);
        }
        pacing.arrival(self.times, since_start, response.unwrap_or_default())
    }

    fn rewind(&mut self) -> Result<(), String> {
        let gap = self.last / self.kept.saturating_sub(1).max(1);
        self.pass_start = self.pass_start + self.last + gap;
        self.reader = (self.open)().map_err(|error| error.to_string())?;
        self.slice = self.initial_slice.clone();
        (self.number, self.kept) = (0, 0);
        Ok(())
    }

    fn no_requests(&self) -> String {
        let what = match (self.slice.is_partial(), self.selection.is_partial()) {
            (false, false) => "the trace has no requests",
            (true, false) => {
                "no request is in the part given by `first`, `count`, `from` and `until`"
            }
            (_, true) => "no request of the chosen part is on the chosen `volumes`",
        };
        format!("{what} ({} records read)", self.number)
    }

    fn located(&self, message: &str) -> String {
        format!("record {} of the trace: {message}", self.number)
    }

    /// The next contiguous part of the current request.
    fn next_part(&mut self, at: SimTime, request: Request) -> Result<Arrival, String> {
        if request.op == Op::Flush {
            return Ok(Arrival { at, request });
        }
        let sectors_max = request.sectors.min(self.request_sectors_max);
        let mapped = match self.address.map(request.lba.0, sectors_max) {
            Ok(mapped) => mapped,
            Err(message) => return Err(self.located(&message)),
        };
        if mapped.wrapped {
            let message = "addresses beyond the device were wrapped modulo its capacity";
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
        self.pacing.is_none()
    }

    fn waits(&self) -> bool {
        self.pacing.is_some() && !self.ended
    }

    fn completed(&mut self, _request: &Request, now: SimTime) {
        if let Some(pacing) = &mut self.pacing {
            pacing.completed(now);
        }
    }

    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.ended {
            return Ok(None);
        }
        if self.rest.is_none() {
            if self.pacing.is_some_and(|pacing| pacing.must_wait()) {
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
        let arrival = self.next_part(at, request);
        self.ended = arrival.is_err();
        if let Some(pacing) = &mut self.pacing {
            pacing.issued();
        }
        arrival.map(Some)
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
