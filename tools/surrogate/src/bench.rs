//! One load on the system in one state.

use crate::table::{Distribution, Measured};
use hybridsim_config::param::{Kind, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Fault, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime, Stream};
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::session::{Answer, Answered, Options, Session};
use hybridsim_simulation::state::PreconditionCache;
use serde::Serialize;

/// Longest request in bytes.
pub const BYTES_MAX: u64 = 1 << 30;
/// Request size up to which a load has as many requests as asked for. Longer requests take longer
/// to simulate and vary less: their number falls with the square root of the size.
const NOMINAL_BYTES: f64 = 4096.0;
/// Requests of a load, at least, and of each operation of a mix: of short requests, and of any.
const REQUESTS_MIN: u64 = 400;
const RARE_MIN: [f64; 2] = [400.0, 100.0];
/// Part of the capacity that a load writes at most, if fewer requests than asked for allow it: more
/// changes the state of the devices.
pub const WRITTEN_SHARE: f64 = 0.05;
/// Reads that find out whether devices hold data.
const READS_PROBED: u64 = 200;
/// Requests before those measured, as a part of these.
const WARMUP: f64 = 0.25;
/// Requests that fill a cache: their size, number outstanding, and how many make up a rate.
const FILLING_BYTES: u64 = 128 << 10;
const FILLING_DEPTH: u64 = 32;
const RATE_SHARE: f64 = 1.0 / 512.0;
/// A cache is full once the rate of writes is below this part of the highest.
const FULL_RATE: f64 = 0.5;

/// Order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Uniform over the capacity.
    Random,
    /// One after the other, reads and writes each from a start of their own.
    Sequential,
}

/// The state of the devices when a load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// As the scenario prepares them.
    AsGiven,
    /// Flash written once, in order.
    Fresh,
    /// Flash overwritten at random until write amplification is constant.
    Steady,
    /// As in `Fresh`, then written in order until the rate falls to less than half.
    CacheFull,
}

impl DeviceState {
    /// All states, by name.
    pub const ALL: [(&str, Self); 4] = [
        ("as-given", Self::AsGiven),
        ("fresh", Self::Fresh),
        ("steady", Self::Steady),
        ("cache-full", Self::CacheFull),
    ];

    /// The state called `name`.
    ///
    /// # Errors
    /// Another name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, state)| *state).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("unknown state `{name}`; expected {names}")
        })
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, state)| *state == self).expect("all states have names").0
    }

    const fn precondition(self) -> Option<&'static str> {
        match self {
            Self::AsGiven => None,
            Self::Fresh | Self::CacheFull => Some("fill"),
            Self::Steady => Some("steady"),
        }
    }
}

/// Requests of one size, reads and writes in random order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub read_share: f64,
    pub bytes: u64,
    pub arrivals: Arrivals,
}

/// Arrival process of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A fixed number of requests outstanding: the next arrives when one completes.
    Closed { depth: u64 },
    /// Poisson arrivals at a fixed rate.
    Open { iops: f64 },
}

/// The system in one state, ready for loads.
pub struct Bench<'a> {
    scenario: Scenario,
    registry: &'a Registry,
    cache: Option<PreconditionCache>,
    /// The state that loads start from, where no cache has it.
    state: Option<Vec<u8>>,
    access: Access,
    alignment: u64,
    /// Requests measured.
    requests: u64,
    pub capacity: u64,
}

impl<'a> Bench<'a> {
    /// `scenario` with its devices preconditioned; [`Bench::fill_cache`] is still to be called.
    ///
    /// # Errors
    /// A system that cannot be built, or has no such state.
    pub fn new(
        scenario: &Scenario,
        registry: &'a Registry,
        state: DeviceState,
        (access, alignment, requests): (Access, u64, u64),
        cache: Option<PreconditionCache>,
    ) -> Result<Self, String> {
        let mut scenario = scenario.clone();
        if let Some(precondition) = state.precondition() {
            set_precondition(&mut scenario, precondition, state)?;
        }
        let mut bench = Self {
            scenario,
            registry,
            cache,
            state: None,
            access,
            alignment,
            requests,
            capacity: 0,
        };
        // Without a cache each load would precondition the devices again.
        let keeps_state = bench.cache.is_none();
        let session = bench.open(keeps_state)?;
        bench.capacity = session.capacity() * SECTOR_BYTES;
        if keeps_state {
            let output = session.finish(registry, None, Vec::new());
            bench.state = output.map_err(|error| error.to_string())?.state;
        }
        Ok(bench)
    }

    /// Has all loads start from the state with full caches.
    ///
    /// # Errors
    /// A system without such a state, or whose state cannot be saved.
    pub fn fill_cache(&mut self) -> Result<(), String> {
        self.state = Some(self.filled()?);
        Ok(())
    }

    /// Requests that the host submits to the system at a time; the others wait in the host.
    pub fn queue_depth(&self) -> u64 {
        self.scenario.host.count("queue_depth")
    }

    /// Whether reads find data that was written, as far as devices know.
    ///
    /// # Errors
    /// Why a read could not be served.
    pub fn holds_data(&self) -> Result<bool, String> {
        let mut session = self.open(false)?;
        let arrivals = Arrivals::Closed { depth: READS_PROBED };
        let load = Load { read_share: 1.0, bytes: self.alignment, arrivals };
        let mut requests = Requests::new(self, &load, 0);
        (0..READS_PROBED)
            .try_for_each(|_| requests.submit(&mut session, SimTime::ZERO).map(drop))?;
        let output = session.finish(self.registry, None, Vec::new());
        let results = output.map_err(|error| error.to_string())?.results;
        let flash = results.components.values().filter_map(|it| it.flash.as_ref());
        Ok(flash.map(|it| it.unwritten_reads).sum::<u64>() == 0)
    }

    fn open(&self, save_state: bool) -> Result<Session, String> {
        let (cache, state) = (self.cache.clone(), self.state.clone());
        let options = Options { cache, state, save_state, ..Options::default() };
        Session::open(&self.scenario, self.registry, options).map_err(|error| error.to_string())
    }

    /// The state once sequential writes have become slow.
    fn filled(&self) -> Result<Vec<u8>, String> {
        let mut session = self.open(true)?;
        let requests = self.capacity / FILLING_BYTES;
        let each = ((requests as f64 * RATE_SHARE) as u64).max(FILLING_DEPTH);
        let (mut ended, mut since, mut highest) = (0u64, SimTime::ZERO, 0.0f64);
        let submit = |session: &mut Session, number: u64, at| {
            let sectors = (FILLING_BYTES / SECTOR_BYTES) as u32;
            let lba = Lba(number * u64::from(sectors));
            session.submit(Request::new(Op::Write, lba, sectors), at).map_err(|it| it.to_string())
        };
        for number in 0..FILLING_DEPTH.min(requests) {
            submit(&mut session, number, SimTime::ZERO)?;
        }
        while let Some(answer) = session.next_completion().map_err(|fault| fault.to_string())? {
            ended += 1;
            if ended.is_multiple_of(each) {
                let rate = each as f64 / answer.at.since(since).as_ns().max(1) as f64;
                if rate < FULL_RATE * highest {
                    let output = session.finish(self.registry, None, Vec::new());
                    let output = output.map_err(|error| error.to_string())?;
                    return output.state.ok_or_else(|| "the state cannot be saved".to_owned());
                }
                (since, highest) = (answer.at, highest.max(rate));
            }
            let next = ended + FILLING_DEPTH - 1;
            if next < requests {
                submit(&mut session, next, answer.at)?;
            }
        }
        Err("no cache becomes full: sequential writes kept their rate over the whole capacity; \
             leave out the state cache-full"
            .to_owned())
    }

    /// Simulates `load`.
    ///
    /// # Errors
    /// Why a request could not be served.
    pub fn run(&self, load: &Load, seed: u64) -> Result<Measured, String> {
        let mut session = self.open(false)?;
        let [warmup, measured] = self.counts(load);
        let mut requests = Requests::new(self, load, seed);
        let (mut ended, mut latencies) = (0, [Vec::new(), Vec::new()]);
        let mut measure = |requests: &Requests, answer: &Answer| {
            let (arrival, op) = requests.submitted[answer.number as usize];
            if answer.outcome != Answered::Done {
                let name = if op == Op::Write { "write" } else { "read" };
                return Err(format!("a {name} failed: each address has to accept both"));
            }
            if (warmup..warmup + measured).contains(&ended) {
                latencies[usize::from(op == Op::Write)].push(answer.at.since(arrival).as_ns());
            }
            ended += 1;
            Ok(ended < warmup + measured)
        };
        let fault = |fault: Fault| fault.to_string();
        match load.arrivals {
            Arrivals::Closed { depth } => {
                (0..depth)
                    .try_for_each(|_| requests.submit(&mut session, SimTime::ZERO).map(drop))?;
                loop {
                    let answer = session.next_completion().map_err(fault)?;
                    let answer = answer.ok_or("the system lost a request")?;
                    if !measure(&requests, &answer)? {
                        break;
                    }
                    requests.submit(&mut session, answer.at)?;
                }
            }
            Arrivals::Open { .. } => 'arrivals: loop {
                let at = requests.submit(&mut session, SimTime::ZERO)?;
                session.advance_to(at).map_err(fault)?;
                while let Some(answer) = session.answer() {
                    if !measure(&requests, &answer)? {
                        break 'arrivals;
                    }
                }
            },
        }
        Ok(Measured(latencies.map(Distribution::of)))
    }

    /// Requests of `load` before those measured, and those measured.
    fn counts(&self, load: &Load) -> [u64; 2] {
        let outstanding = match load.arrivals {
            Arrivals::Closed { depth } => depth,
            Arrivals::Open { .. } => 0,
        };
        let fewer = (NOMINAL_BYTES / load.bytes as f64).sqrt().min(1.0);
        let shares = [load.read_share, 1.0 - load.read_share];
        let rarer = shares.into_iter().filter(|share| *share > 0.0).fold(1.0, f64::min);
        let written = (1.0 - load.read_share) * load.bytes as f64 * (1.0 + WARMUP);
        let few = WRITTEN_SHARE * self.capacity as f64 / written.max(f64::MIN_POSITIVE);
        let rare = (RARE_MIN[0] * fewer).max(RARE_MIN[1]) / rarer;
        let measured = ((self.requests as f64 * fewer).min(few) as u64)
            .max(rare.ceil() as u64)
            .max(REQUESTS_MIN);
        [((measured as f64 * WARMUP) as u64).max(2 * outstanding), measured]
    }

    /// The part of the capacity that `load` writes.
    pub fn written_share(&self, load: &Load) -> f64 {
        let requests: u64 = self.counts(load).iter().sum();
        (1.0 - load.read_share) * (requests * load.bytes) as f64 / self.capacity as f64
    }
}

/// Requests of a load in order.
struct Requests {
    stream: Stream,
    read_share: f64,
    sectors: u32,
    access: Access,
    /// Places that requests may begin at, a `step` of sectors apart.
    places: u64,
    step: u64,
    /// The next places of reads and of writes.
    next: [u64; 2],
    /// Requests per second of an open loop, and when the next one arrives, in ns.
    iops: Option<f64>,
    arrival_ns: f64,
    /// Arrivals by number, with the operation.
    submitted: Vec<(SimTime, Op)>,
}

impl Requests {
    fn new(bench: &Bench<'_>, load: &Load, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "requests");
        let step = match bench.access {
            Access::Random => bench.alignment,
            Access::Sequential => load.bytes,
        };
        let places = (bench.capacity - load.bytes) / step + 1;
        let next = [0; 2].map(|_| stream.below(places));
        Self {
            stream,
            read_share: load.read_share,
            sectors: (load.bytes / SECTOR_BYTES) as u32,
            access: bench.access,
            places,
            step: step / SECTOR_BYTES,
            next,
            iops: match load.arrivals {
                Arrivals::Closed { .. } => None,
                Arrivals::Open { iops } => Some(iops),
            },
            arrival_ns: 0.0,
            submitted: Vec::new(),
        }
    }

    /// Submits the next request, which arrives at `at` in a closed loop; returns its arrival.
    fn submit(&mut self, session: &mut Session, mut at: SimTime) -> Result<SimTime, String> {
        let request = self.request();
        if let Some(iops) = self.iops {
            at = SimTime::ZERO + SimDuration::from_ns_f64(self.arrival_ns);
            self.arrival_ns += -(1.0 - self.stream.unit()).ln() * 1e9 / iops;
        }
        let submitted = session.submit(request, at).map_err(|error| error.to_string())?;
        self.submitted.push((submitted.at, request.op));
        Ok(submitted.at)
    }

    fn request(&mut self) -> Request {
        let op = if self.stream.chance(self.read_share) { Op::Read } else { Op::Write };
        let next = &mut self.next[usize::from(op == Op::Write)];
        let place = match self.access {
            Access::Random => self.stream.below(self.places),
            Access::Sequential => *next,
        };
        *next = (place + 1) % self.places;
        Request::new(op, Lba(place * self.step), self.sectors)
    }
}

/// Sets how flash is preconditioned.
fn set_precondition(scenario: &mut Scenario, word: &str, state: DeviceState) -> Result<(), String> {
    let mut is_set = false;
    for component in &mut scenario.components {
        let param = component.description.params.iter().find(|it| it.name == "precondition");
        let Some(Kind::Choice(names)) = param.map(|param| param.kind) else { continue };
        if let Some(at) = names.iter().position(|name| *name == word) {
            component.settings.set("precondition", Value::Text(names[at].to_owned()));
            is_set = true;
        }
    }
    if is_set {
        return Ok(());
    }
    let name = state.name();
    Err(format!("the system has no state {name}: no component has `precondition = \"{word}\"`"))
}
