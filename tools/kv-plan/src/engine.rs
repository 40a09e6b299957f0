//! The storage engine: requests of the tier's layout go to a simulated system, loads and writes in
//! turn, each in their order, and the loads of a request of the trace are timed together.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime};
use hybridsim_kv::layout::{Layout, LayoutCounts};
use hybridsim_kv::level::Held;
use hybridsim_kv::lifetime::Lifetimes;
use hybridsim_kv::tier::Storage;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{Answer, Answered, Options, Session};
use serde::Serialize;
use std::collections::VecDeque;
use std::path::PathBuf;

/// A request to the system that loads nothing.
const NO_REQUEST: u32 = u32::MAX;

/// The scenario of a system without a workload.
///
/// # Errors
/// The problems of the scenario.
pub fn system(text: String, name: &str, registry: &Registry) -> Result<Scenario, String> {
    let source = SourceText { name: name.to_owned(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check_system(input, registry).map_err(|problems| problems.to_string())
}

/// Times and writes of a system.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SystemCounts {
    /// Bytes read and written, in the unit of the system.
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub write_amplification: Option<f64>,
    /// Time from the last arrival to the last completion.
    pub drain_ns: u64,
    /// The longest time that loads of a request took, and by request of the trace.
    #[serde(skip)]
    pub load_ns: Vec<u64>,
    pub layout: LayoutCounts,
}

/// Storage of a tier on a simulated system.
pub struct Engine {
    session: Session,
    layout: Box<dyn Layout>,
    lifetimes: Lifetimes,
    /// Requests that wait: loads, and writes with what belongs to them.
    queues: [VecDeque<(Request, u32)>; 2],
    /// The queue from which the last request was taken.
    turn: usize,
    /// Requests outstanding at the system.
    depth: u64,
    /// Sectors of the largest request; longer ones are split.
    split: u32,
    /// Requests of one load that are submitted together; the next follow when all are answered.
    batch: usize,
    /// By request to the system: the request of the trace that it loads for.
    owners: Vec<u32>,
    loads: Vec<Load>,
    /// Loads of which requests wait for others.
    waiting: usize,
    requests: Vec<Request>,
    counts: SystemCounts,
    failed: Option<String>,
    /// The last arrival of a request.
    arrived: SimTime,
}

/// Loads of a request of the trace.
#[derive(Clone, Default)]
struct Load {
    arrival: SimTime,
    outstanding: u32,
    waiting: Vec<Request>,
}

/// Options of an [`Engine`].
pub struct EngineOptions {
    pub depth: u32,
    pub split: u32,
    pub batch: usize,
    pub requests: usize,
}

impl Engine {
    /// Opens the system; `layout` returns the layout for its sectors, and those that it uses.
    ///
    /// # Errors
    /// A system that cannot be built, or that has no room for the layout.
    pub fn open(
        scenario: &Scenario,
        registry: &Registry,
        layout: impl FnOnce(u64) -> Result<(Box<dyn Layout>, u64), String>,
        lifetimes: Lifetimes,
        options: &EngineOptions,
    ) -> Result<Self, String> {
        let session = Session::open(scenario, registry, Options::default())
            .map_err(|error| error.to_string())?;
        let (layout, used_sectors) = layout(session.capacity())?;
        let mut engine = Self {
            session,
            layout,
            lifetimes,
            queues: Default::default(),
            turn: 0,
            depth: u64::from(options.depth.max(1)),
            split: options.split.max(1),
            batch: options.batch.max(1),
            owners: Vec::new(),
            loads: vec![Load::default(); options.requests],
            waiting: 0,
            requests: Vec::new(),
            counts: SystemCounts { load_ns: vec![0; options.requests], ..SystemCounts::default() },
            failed: None,
            arrived: SimTime::ZERO,
        };
        engine.trim(used_sectors);
        Ok(engine)
    }

    /// Whether all requests so far were served.
    ///
    /// # Errors
    /// Why a request could not be served.
    pub fn check(&self) -> Result<(), String> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// The range that the tier does not use is unwritten.
    fn trim(&mut self, from: u64) {
        let (mut at, end) = (from, self.session.capacity());
        while at < end {
            let sectors = (end - at).min(1 << 30) as u32;
            self.submit(Request::new(Op::Trim, Lba(at), sectors), SimTime::ZERO, NO_REQUEST);
            at += u64::from(sectors);
        }
    }

    /// Queues a request in parts; returns their number.
    fn submit(&mut self, request: Request, at: SimTime, owner: u32) -> u32 {
        let (mut skip, mut parts) = (0, 0);
        while skip < request.sectors {
            let part = match request.op {
                Op::Read | Op::Write => (request.sectors - skip).min(self.split),
                _ => request.sectors - skip,
            };
            let one = request.part(skip, part, request.lba.offset(skip.into()));
            self.queues[usize::from(owner == NO_REQUEST)].push_back((one, owner));
            let bytes = u64::from(part) * hybridsim_engine::SECTOR_BYTES;
            match request.op {
                Op::Read => self.counts.read_bytes += bytes,
                Op::Write => self.counts.written_bytes += bytes,
                _ => {}
            }
            skip += part;
            parts += 1;
        }
        self.dispatch(at);
        parts
    }

    /// Sends queued requests to the system up to the depth: loads and writes in turn.
    fn dispatch(&mut self, at: SimTime) {
        while self.session.outstanding() < self.depth && self.failed.is_none() {
            self.turn = 1 - self.turn;
            let next = self.queues[self.turn].pop_front();
            let Some((request, owner)) = next.or_else(|| self.queues[1 - self.turn].pop_front())
            else {
                return;
            };
            match self.session.submit(request, at) {
                Ok(_) => self.owners.push(owner),
                Err(rejected) => self.failed = Some(rejected.to_string()),
            }
        }
    }

    fn is_queued(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    fn submit_all(&mut self, at: SimTime) {
        let requests = std::mem::take(&mut self.requests);
        for request in &requests {
            self.submit(*request, at, NO_REQUEST);
        }
        self.requests = requests;
    }

    /// Submits the next batch of a load.
    fn next_batch(&mut self, owner: u32, at: SimTime) {
        let load = &mut self.loads[owner as usize];
        let count = load.waiting.len().min(self.batch);
        let batch: Vec<Request> = load.waiting.drain(..count).collect();
        self.waiting -= usize::from(load.waiting.is_empty());
        for request in batch {
            let parts = self.submit(request, at, owner);
            self.loads[owner as usize].outstanding += parts;
        }
    }

    /// Simulates up to `time`.
    fn pass_time(&mut self, time: SimTime) {
        loop {
            // Only where requests wait does an answer let one begin before `time`.
            let waits = self.waiting > 0 || self.is_queued();
            let next = if waits { self.session.next_event() } else { None };
            let stop = next.map_or(time, |next| next + SimDuration::from_ns(1)).min(time);
            if let Err(fault) = self.session.advance_to(stop) {
                self.failed.get_or_insert(fault.to_string());
            }
            self.answers();
            if stop == time || self.failed.is_some() {
                return;
            }
        }
    }

    fn answers(&mut self) {
        while let Some(answer) = self.session.answer() {
            self.take(&answer);
        }
    }

    fn take(&mut self, answer: &Answer) {
        if answer.outcome != Answered::Done {
            self.failed.get_or_insert_with(|| "the system failed a request".to_owned());
        }
        self.dispatch(answer.at);
        let owner = self.owners[answer.number as usize];
        if owner == NO_REQUEST {
            return;
        }
        let load = &mut self.loads[owner as usize];
        load.outstanding -= 1;
        let took = answer.at.since(load.arrival).as_ns();
        let longest = &mut self.counts.load_ns[owner as usize];
        *longest = took.max(*longest);
        if load.outstanding == 0 && !load.waiting.is_empty() {
            self.next_batch(owner, answer.at);
        }
    }

    /// Serves what is outstanding; returns the counts.
    ///
    /// # Errors
    /// Why a request could not be served.
    pub fn finish(mut self, registry: &Registry) -> Result<SystemCounts, String> {
        while self.failed.is_none() {
            match self.session.next_completion() {
                Ok(Some(answer)) => self.take(&answer),
                Ok(None) => break,
                Err(fault) => self.failed = Some(fault.to_string()),
            }
        }
        self.check()?;
        self.counts.layout = self.layout.counts();
        let now = self.session.now();
        let output =
            self.session.finish(registry, None, Vec::new()).map_err(|it| it.to_string())?;
        if let Some(fault) = output.fault {
            return Err(fault.to_string());
        }
        self.counts.write_amplification = output.results.totals.write_amplification;
        self.counts.drain_ns = now.since(self.arrived).as_ns();
        Ok(self.counts)
    }
}

impl Storage for Engine {
    fn write(&mut self, at: SimTime, held: Held) {
        let handle = self.lifetimes.written(held.block, at);
        self.pass_time(at);
        self.requests.clear();
        let mut requests = std::mem::take(&mut self.requests);
        let written = self.layout.write(held, handle, &mut requests);
        self.requests = requests;
        self.failed = self.failed.take().or(written.err());
        self.submit_all(at);
        self.arrived = at;
    }

    fn load(&mut self, at: SimTime, request: usize, held: Held) {
        let load = &mut self.loads[request];
        load.arrival = at;
        self.layout.load(held, &mut load.waiting);
    }

    fn begin_loads(&mut self, at: SimTime, request: usize) {
        self.pass_time(at);
        self.waiting += 1;
        self.next_batch(request as u32, at);
        self.arrived = at;
    }

    fn discard(&mut self, at: SimTime, held: Held) {
        self.lifetimes.dropped(held.block, at);
        self.pass_time(at);
        self.requests.clear();
        let mut requests = std::mem::take(&mut self.requests);
        let dropped = self.layout.discard(held, &mut requests);
        self.requests = requests;
        self.failed = self.failed.take().or(dropped.err());
        self.submit_all(at);
        self.arrived = at;
    }
}
