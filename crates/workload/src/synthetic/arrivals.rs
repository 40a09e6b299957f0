//! Common to all generators: arrival times and the end of the workload.

use super::{GeneratorInput, distribution};
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{
    Arrival, Flags, Op, Request, SECTOR_BYTES, SimDuration, SimTime, Source, Stream,
};

/// Draws requests.
pub trait Generator {
    /// The next request.
    fn draw(&mut self) -> Request;

    /// Time from the previous request to the one just drawn; `None` where `interarrival_ms`
    /// determines it.
    fn interarrival(&mut self) -> Option<SimDuration> {
        None
    }

    /// Whether [`Generator::interarrival`] determines the arrivals.
    fn sets_times(&self) -> bool {
        false
    }

    /// Whether the generator has no more requests; an error where it cannot continue.
    fn end(&self) -> Option<Result<(), String>> {
        None
    }

    /// See [`Source::application_bytes`].
    fn application_bytes(&self) -> Option<u64> {
        None
    }
}

hybridsim_config::params! {
    /// Parameters that end a workload.
    pub struct LimitParameters {
        pub(crate) requests: Option<u64> = Kind::Count { min: 1, max: u64::MAX - 1 }, optional,
            "Ends after this number of requests. One of `requests`, `bytes` and `duration` must be \
             given.";
        pub(crate) bytes: Option<u64> = Kind::Bytes, optional,
            "Ends after this number of bytes; the last request is shortened to fit.";
        pub(crate) duration: Option<SimDuration> = Kind::Duration, optional,
            "Ends before the first arrival later than this. Without arrival times a closed loop \
             ends after this time: no request follows a later completion (fio's `runtime` with \
             `time_based`).";
    }
}

hybridsim_config::params! {
    /// Parameters that end a workload and set its arrival times.
    pub struct Parameters includes { pub(crate) limits: LimitParameters } {
        pub(crate) interarrival_ms: Option<EntryChoice> = distribution::KIND, optional,
            "Milliseconds between arrivals. Without it all requests arrive at time 0, as a closed \
             loop needs.";
        pub(crate) handle: u8 = Kind::Count { min: 0, max: 255 }, default "0",
            "Placement handle of writes, for SSDs that place data by it; 0 is the default handle.";
    }
}

impl From<LimitParameters> for Parameters {
    /// Limits of a generator that has its own arrival times.
    fn from(limits: LimitParameters) -> Self {
        Self { limits, interarrival_ms: None, handle: 0 }
    }
}

impl LimitParameters {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some() || self.duration.is_some()
    }
}

/// Times between arrivals.
#[derive(Clone, Debug)]
pub enum Interarrival {
    /// All requests arrive at time 0.
    None,
    Fixed(SimDuration),
    /// Milliseconds, drawn; negative ones are drawn again.
    Drawn(Distribution, Stream),
}

/// Draws milliseconds until they are not negative.
pub(crate) fn draw_ms(distribution: &Distribution, stream: &mut Stream) -> SimDuration {
    for _ in 0..REDRAWS_MAX {
        let ms = distribution.draw(stream);
        if ms >= 0.0 {
            return SimDuration::from_ns_f64(ms * 1e6);
        }
    }
    SimDuration::ZERO
}

/// After so many draws in a row that are not allowed, an allowed value is used instead. Builders
/// reject distributions for which that would not be rare.
pub(crate) const REDRAWS_MAX: u32 = 1_000;

/// Adds a problem when less than 1 % of the values of `distribution` are `allowed`.
pub(crate) fn check_draws(
    param: &'static str,
    distribution: &Distribution,
    allowed: impl Fn(f64) -> bool,
    what: &str,
    problems: &mut Vec<Problem>,
) {
    let mut stream = Stream::new(0, param);
    let draws = 2_000;
    let good = (0..draws).filter(|_| allowed(distribution.draw(&mut stream))).count();
    if good * 100 < draws {
        let message = format!("less than 1 % of the values of this distribution are {what}");
        problems.push(Problem::new(param, message));
    }
}

/// The end of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub requests: u64,
    pub sectors: u64,
    /// The last possible arrival; without arrival times, the last completion that another request
    /// follows.
    pub until: SimTime,
}

impl Limits {
    pub const NONE: Self = Self { requests: u64::MAX, sectors: u64::MAX, until: SimTime::NEVER };

    pub const fn requests(requests: u64) -> Self {
        Self { requests, ..Self::NONE }
    }
}

/// A workload of a generator's requests with arrival times and limits.
#[derive(Clone, Debug)]
pub struct GeneratedWorkload<G> {
    generator: G,
    gaps: Interarrival,
    limits: Limits,
    /// Flags of writes.
    flags: Flags,
    at: SimTime,
    requests: u64,
    sectors_left: u64,
    /// Completion time of the last request, and the requests since then.
    completed: SimTime,
    at_once: u64,
}

/// More requests than this at one instant never end by time: the device takes none.
const AT_ONCE_MAX: u64 = 10_000_000;

impl<G: Generator> GeneratedWorkload<G> {
    pub fn new(generator: G, gaps: Interarrival, limits: Limits) -> Self {
        let sectors_left = limits.sectors;
        let (at, completed) = (SimTime::ZERO, SimTime::ZERO);
        Self {
            generator,
            gaps,
            limits,
            flags: Flags::NONE,
            at,
            requests: 0,
            sectors_left,
            completed,
            at_once: 0,
        }
    }

    /// Gives writes that have none this placement handle.
    #[must_use]
    pub fn with_handle(self, handle: u8) -> Self {
        Self { flags: Flags::NONE.with_handle(handle), ..self }
    }

    /// Advances to the next arrival; the first request arrives at 0.
    #[inline]
    fn advance(&mut self) {
        let own = self.generator.interarrival();
        if self.requests == 0 {
            return;
        }
        let gap = match (&mut self.gaps, own) {
            (_, Some(gap)) => gap,
            (Interarrival::None, None) => return,
            (Interarrival::Fixed(gap), None) => *gap,
            (Interarrival::Drawn(distribution, stream), None) => draw_ms(distribution, stream),
        };
        self.at += gap;
    }
}

/// The message where no instant is left for a request.
pub(super) fn too_late(request: u64) -> String {
    format!(
        "request {request} of the generator would arrive after 584 years of simulated time (2^64 \
         ns), the longest there can be: shorten the times between requests, or end the workload \
         by `requests` or `duration`"
    )
}

impl<G: Generator> Source for GeneratedWorkload<G> {
    fn has_times(&self) -> bool {
        self.generator.sets_times() || !matches!(self.gaps, Interarrival::None)
    }

    fn reads_ahead(&self) -> bool {
        self.has_times() || self.limits.until == SimTime::NEVER
    }

    // Inlined into `read`: a `Result` with an arrival is passed through memory.
    #[inline(always)]
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if self.requests >= self.limits.requests || self.sectors_left == 0 {
            return Ok(None);
        }
        if let Some(end) = self.generator.end() {
            return end.map(|()| None);
        }
        if self.limits.until != SimTime::NEVER && !self.has_times() {
            if self.completed > self.limits.until {
                return Ok(None);
            }
            self.at_once += 1;
            if self.at_once > AT_ONCE_MAX {
                return Err(format!(
                    "{AT_ONCE_MAX} requests took no time at all, so a workload that ends by \
                     `duration` would not end; give `requests` instead"
                ));
            }
        }
        let mut request = self.generator.draw();
        self.advance();
        if self.at > self.limits.until {
            self.limits.requests = self.requests;
            return Ok(None);
        }
        // A shorter workload than asked for would look like a complete one.
        if self.at == SimTime::NEVER {
            return Err(too_late(self.requests + 1));
        }
        if request.op != Op::Flush && self.limits.sectors != u64::MAX {
            let sectors = u64::from(request.sectors).min(self.sectors_left);
            request.sectors = sectors as u32;
            self.sectors_left -= sectors;
        }
        if request.op == Op::Write && self.flags != Flags::NONE {
            request.flags = request.flags.with(self.flags);
        }
        self.requests += 1;
        Ok(Some(Arrival { at: self.at, request }))
    }

    fn progress(&self) -> Option<f64> {
        let share = |done: u64, of: u64| if of == u64::MAX { 0.0 } else { done as f64 / of as f64 };
        let Limits { requests, sectors, until } = self.limits;
        let progress = share(self.requests, requests)
            .max(share(sectors - self.sectors_left, sectors))
            .max(share(self.at.max(self.completed).as_ns(), until.as_ns()));
        Some(progress.min(1.0))
    }

    fn application_bytes(&self) -> Option<u64> {
        self.generator.application_bytes()
    }

    fn completed(&mut self, _request: &Request, now: SimTime) {
        if now > self.completed {
            (self.completed, self.at_once) = (now, 0);
        }
    }
}

/// Builds the workload of `generator`. `own` limits and interarrival times are the generator's
/// defaults.
pub(crate) fn build_workload<G: Generator + 'static>(
    input: &GeneratorInput<'_>,
    params: &Parameters,
    generator: Option<G>,
    own: Limits,
    own_gaps: Option<Interarrival>,
    mut problems: Vec<Problem>,
) -> Built<dyn Source> {
    let asked = params.interarrival_ms.as_ref();
    let asked = asked.and_then(|it| input.distribution("interarrival_ms", it, &mut problems));
    if let Some(distribution) = &asked {
        let what = "a time of at least 0";
        check_draws("interarrival_ms", distribution, |ms| ms >= 0.0, what, &mut problems);
    }
    let drawn = asked.map(|distribution| Interarrival::Drawn(distribution, input.stream("gap")));
    let gaps = drawn.or(own_gaps).unwrap_or(Interarrival::None);
    let sectors = params.limits.bytes.map(|bytes| bytes / SECTOR_BYTES);
    if sectors == Some(0) {
        problems.push(Problem::new("bytes", "is less than a sector of 512 bytes"));
    }
    let limits = Limits {
        requests: params.limits.requests.unwrap_or(own.requests),
        sectors: sectors.unwrap_or(own.sectors),
        until: params.limits.duration.map_or(own.until, |time| SimTime::ZERO + time),
    };
    let endless =
        limits.requests == u64::MAX && limits.sectors == u64::MAX && limits.until == SimTime::NEVER;
    if endless && !input.may_be_endless {
        problems.push(Problem::new("requests", "give `requests`, `bytes` or `duration`"));
    }
    match generator {
        Some(generator) if problems.is_empty() => {
            let workload = GeneratedWorkload::new(generator, gaps, limits);
            Ok(Box::new(workload.with_handle(params.handle)))
        }
        _ => Err(problems),
    }
}
