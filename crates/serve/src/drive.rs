//! The served device: a simulated system, what it holds, and the clock that relates its time to
//! that of its clients.

use crate::clock::{Clock, Lateness};
use crate::contents::{Contents, Data, SECTOR, of_contents};
use crate::record::TraceFile;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{
    Component, Fault, Flags, Health, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime,
    ZoneAction, ZoneInfo, ZoneLayout,
};
use hybridsim_simulation::faults::FaultOrder;
use hybridsim_simulation::run::{RunError, RunOutput};
use hybridsim_simulation::session::{Answer, Answered, Handles, Session, Submitted};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The longest part of a request that writes zeros, in sectors: 4 MiB.
const ZEROS_SECTORS_MAX: u64 = 8192;
/// Data kept of writes that a power failure could undo; beyond it the device is asked to flush.
const HISTORY_BYTES_MAX: u64 = 1 << 30;
/// Data kept of writes that failed; beyond it the device is read to find out what it holds.
const FAILED_BYTES_MAX: u64 = 64 << 20;

/// The operation of a client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write(Data),
    Flush,
    Trim,
    /// Zone management, of one whole zone.
    Zone(ZoneAction),
}

impl Kind {
    /// Whether it changes the data of its range.
    const fn changes_data(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Trim | Self::Zone(ZoneAction::Reset))
    }
}

/// A request of a client, in sectors of the device.
#[derive(Clone, Debug)]
pub struct Job {
    /// The client, and its number of the request.
    pub client: u64,
    pub number: u64,
    pub kind: Kind,
    pub first: u64,
    pub sectors: u64,
    /// Properties of the requests to the system: force unit access, a placement handle, an append.
    pub flags: Flags,
}

/// The end of a [`Job`]; a read that succeeded has bytes.
#[derive(Debug)]
pub struct Finished {
    pub client: u64,
    pub number: u64,
    pub outcome: Result<Vec<u8>, &'static str>,
}

struct Pending {
    job: Job,
    /// Parts that have not ended.
    left: u32,
    failed: bool,
    /// The number that [`crate::contents::History::flush`] returned.
    flush: u64,
}

/// A part of a job, which is one request to the device.
struct Part {
    pending: u64,
    at: SimTime,
    first: u64,
    sectors: u64,
}

/// Counts of the server, besides the results of the simulation.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Served {
    /// `virtual` or `paced`.
    pub clock: &'static str,
    pub time_scale: f64,
    /// Connections that got through the handshake.
    pub connections: u64,
    /// Connections refused because there were too many, or dropped for violating the protocol.
    pub refused_connections: u64,
    pub dropped_connections: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Power failures on request.
    pub power_cuts: u64,
    /// Other faults on request.
    pub faults: u64,
    /// Sectors read whose last acknowledged write a power failure took away.
    pub lost_sectors: u64,
    /// Lateness of replies, with a paced clock.
    pub lateness_ns: Option<Lateness>,
}

/// The results of serving.
pub struct Ended {
    pub output: RunOutput,
    pub served: Served,
    /// The contents as saved, if the state is, or why not all of them could be stored.
    pub contents: io::Result<Option<Vec<u8>>>,
    /// Whether the trace was completed.
    pub recorded: io::Result<()>,
}

/// The served device.
pub struct Drive {
    session: Session,
    contents: Contents,
    clock: Clock,
    record: Option<TraceFile>,
    jobs: FxHashMap<u64, Pending>,
    jobs_begun: u64,
    parts: FxHashMap<u64, Part>,
    /// Writes of sectors that are being written; they begin when the others have ended.
    deferred: VecDeque<Job>,
    finished: Vec<Finished>,
    fault: Option<Fault>,
    /// Accesses to the contents that failed, and the first error.
    contents_failed: (u64, Option<io::Error>),
    /// Acknowledged writes could not be stored, and no flush has stored them since.
    is_unsettled: bool,
    /// The power is failing: replies no longer reach clients.
    is_failing: bool,
    own_client: u64,
    /// Sectors of zoned devices.
    zoned: Vec<Range<u64>>,
    pub served: Served,
}

impl Drive {
    pub fn new(
        session: Session,
        contents: Contents,
        clock: Clock,
        record: Option<TraceFile>,
    ) -> Self {
        let served = Served { clock: clock.name(), time_scale: clock.scale(), ..Served::default() };
        let devices = session.zoned_devices().map(|(first, it)| (first, it.layout()));
        let zoned = devices.map(|(first, it)| first..first + it.size * it.zones).collect();
        Self {
            session,
            contents,
            clock,
            record,
            jobs: FxHashMap::default(),
            jobs_begun: 0,
            parts: FxHashMap::default(),
            deferred: VecDeque::new(),
            finished: Vec::new(),
            fault: None,
            contents_failed: (0, None),
            is_unsettled: false,
            is_failing: false,
            own_client: u64::MAX,
            zoned,
            served,
        }
    }

    /// Capacity in sectors.
    pub fn capacity(&self) -> u64 {
        self.session.capacity()
    }

    /// Jobs that have not ended.
    pub fn outstanding(&self) -> usize {
        self.jobs.len() + self.deferred.len()
    }

    pub fn is_paced(&self) -> bool {
        self.clock.is_paced()
    }

    /// Why the simulation ended, if it did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The zoned devices of the system, with the first sectors of their zones.
    pub fn zoned(&self) -> Vec<(u64, ZoneLayout)> {
        self.session.zoned_devices().map(|(first, it)| (first, it.layout())).collect()
    }

    /// Whether the system has zones, those of a stripe included, which are of several devices.
    pub const fn has_zones(&self) -> bool {
        self.session.has_zones()
    }

    fn is_zoned(&self, sector: u64) -> bool {
        self.zoned.iter().any(|it| it.contains(&sector))
    }

    /// Whether writes or management of zones by this client are outstanding.
    pub fn changes_zones(&self, client: u64) -> bool {
        let mut jobs = self.jobs.values().map(|it| &it.job).chain(&self.deferred);
        jobs.any(|it| {
            it.client == client
                && matches!(it.kind, Kind::Write(_) | Kind::Zone(_))
                && self.is_zoned(it.first)
        })
    }

    /// Zone `zone` of the zoned device number `device`.
    pub fn zone(&self, device: usize, zone: u64) -> Option<ZoneInfo> {
        let (_, it) = self.session.zoned_devices().nth(device)?;
        (zone < it.layout().zones).then(|| it.zone(zone))
    }

    /// Open zones of the zoned device number `device`, and open or closed ones.
    pub fn active_zones(&self, device: usize) -> (u32, u32) {
        self.session.zoned_devices().nth(device).map_or((0, 0), |(_, it)| it.active())
    }

    /// The health of the flash devices: sums, the worst shares and the highest temperature.
    pub fn health(&self) -> Option<Health> {
        let all = self.session.devices().filter_map(Component::health);
        all.reduce(|a, b| Health {
            programmed_bytes: a.programmed_bytes + b.programmed_bytes,
            erased_bytes: a.erased_bytes + b.erased_bytes,
            used: a.used.max(b.used),
            spare: a.spare.min(b.spare),
            retired_blocks: a.retired_blocks + b.retired_blocks,
            free: a.free.min(b.free),
            erases: [a.erases[0].min(b.erases[0]), a.erases[1].max(b.erases[1])],
            unit_bytes: a.unit_bytes.max(b.unit_bytes),
            celsius: [a.celsius, b.celsius].into_iter().flatten().reduce(f64::max),
        })
    }

    /// Sectors of a reclaim unit of each group: of several SSDs those of their units together,
    /// which is what a host fills where data are striped or concatenated, but not where they are
    /// stored twice or with parity.
    pub fn unit(&self, groups: u8) -> u64 {
        let devices = self.session.devices().filter(|device| device.unit_left(0).is_some());
        let bytes = devices.filter_map(Component::health).map(|health| health.unit_bytes);
        (bytes.sum::<u64>() / u64::from(groups) / SECTOR_BYTES).max(1)
    }

    /// Sectors that still fit into the open reclaim units of a placement handle, those of all SSDs.
    pub fn unit_left(&self, handle: u8) -> u64 {
        self.session.devices().filter_map(|device| device.unit_left(handle)).sum()
    }

    /// Placement handles of the system's SSDs, if one places data by them.
    pub fn placement_handles(&self) -> Option<Handles> {
        self.session.placement_handles()
    }

    /// The first `count` allocated and free ranges, lengths in sectors.
    pub fn extents(&self, first: u64, sectors: u64, count: usize) -> Vec<(u64, bool)> {
        self.contents.extents(first, sectors, count)
    }

    /// Removes the jobs that have ended.
    pub fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }

    /// A job arrives at `wall`; its range is within the device.
    pub fn receive(&mut self, job: Job, wall: Instant) {
        if self.fault.is_some() {
            self.end(&job, Err("the simulation has ended"));
        } else if self.must_wait(&job) {
            self.deferred.push_back(job);
        } else {
            let at = self.clock.arrival(wall, self.session.now());
            self.begin(job, at);
        }
    }

    /// Whether `job` writes sectors that another is writing, in a history that cannot order them,
    /// or too much is being written already.
    fn must_wait(&self, job: &Job) -> bool {
        if !self.contents.has_history() || !job.kind.changes_data() {
            return false;
        }
        let overlaps = |other: &Job| {
            other.kind.changes_data()
                && job.first < other.first + other.sectors
                && other.first < job.first + job.sectors
        };
        // What is outstanding at a power failure takes memory for each of its sectors.
        let jobs = self.jobs.values().map(|it| &it.job);
        let written = jobs.filter(|it| matches!(it.kind, Kind::Write(_))).map(|it| it.sectors);
        if written.sum::<u64>() * SECTOR as u64 > HISTORY_BYTES_MAX {
            return true;
        }
        self.jobs.values().any(|it| overlaps(&it.job)) || self.deferred.iter().any(overlaps)
    }

    fn begin(&mut self, mut job: Job, at: SimTime) {
        if matches!(job.kind, Kind::Write(_)) && self.is_unsettled && self.keeps_too_much() {
            self.end(&job, Err("the contents cannot be written"));
            // Perhaps they can again.
            return self.flush_device();
        }
        let (op, step) = match &job.kind {
            Kind::Read => (Op::Read, job.sectors),
            Kind::Write(Data::Bytes(_)) => (Op::Write, job.sectors),
            Kind::Write(Data::Zeros) => (Op::Write, ZEROS_SECTORS_MAX),
            Kind::Flush => (Op::Flush, 0),
            Kind::Trim => (Op::Trim, job.sectors),
            Kind::Zone(action) => (Op::Zone(*action), job.sectors),
        };
        let flags = job.flags;
        let id = self.jobs_begun;
        self.jobs_begun += 1;
        let (mut at_sector, end) = (job.first, job.first + job.sectors);
        let (mut left, mut failed) = (0, false);
        let flush = match &self.contents {
            Contents::History(history) => history.flush(),
            Contents::Plain(_) => 0,
        };
        loop {
            let sectors = step.min(end - at_sector);
            let request = Request { flags, ..Request::new(op, Lba(at_sector), sectors as u32) };
            match self.submit(request, at) {
                Ok(Submitted { number, at }) => {
                    let part = Part { pending: id, at, first: at_sector, sectors };
                    self.parts.insert(number, part);
                    left += 1;
                    failed |= !self.store(&mut job.kind, number, at_sector, sectors);
                }
                Err(message) => self.fail(Fault::Invariant(message)),
            }
            at_sector += sectors;
            if at_sector >= end || sectors == 0 || self.fault.is_some() {
                break;
            }
        }
        self.jobs.insert(id, Pending { job, left, failed, flush });
        if self.fault.is_some() {
            self.fail_all();
        }
    }

    fn submit(&mut self, request: Request, at: SimTime) -> Result<Submitted, String> {
        let submitted = self.session.submit(request, at).map_err(|error| error.to_string())?;
        if let Some(record) = &mut self.record {
            record.write(submitted.at, request);
        }
        Ok(submitted)
    }

    /// Stores what a part writes, and takes the bytes out of `kind`. Returns whether that was
    /// possible.
    fn store(&mut self, kind: &mut Kind, number: u64, first: u64, sectors: u64) -> bool {
        if matches!(self.contents, Contents::Plain(_)) && self.is_zoned(first) {
            // The device may refuse it: see `answered`.
            return true;
        }
        let stored = match (&mut self.contents, &mut *kind) {
            (Contents::Plain(store), Kind::Write(Data::Bytes(bytes))) => store.write(first, bytes),
            (
                Contents::Plain(store),
                Kind::Write(Data::Zeros) | Kind::Trim | Kind::Zone(ZoneAction::Reset),
            ) => store.free(first, sectors),
            (Contents::History(history), Kind::Write(data)) => {
                history.write(number + 1, first, sectors, std::mem::replace(data, Data::Zeros));
                Ok(())
            }
            (Contents::History(history), Kind::Trim | Kind::Zone(ZoneAction::Reset)) => {
                history.trim(number + 1, first, sectors)
            }
            _ => Ok(()),
        };
        if let Kind::Write(data) = kind {
            *data = Data::Zeros;
        }
        match stored {
            Ok(()) => true,
            Err(error) => {
                self.note_contents(error);
                false
            }
        }
    }

    /// The contents could not be read or written, because the disk is full for example: a request
    /// fails, and the device continues.
    fn note_contents(&mut self, error: io::Error) {
        let (count, first) = &mut self.contents_failed;
        *count += 1;
        first.get_or_insert(error);
    }

    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn fail_all(&mut self) {
        self.parts.clear();
        let jobs: Vec<Job> = self.jobs.drain().map(|(_, pending)| pending.job).collect();
        let deferred = std::mem::take(&mut self.deferred);
        for job in jobs.into_iter().chain(deferred) {
            self.end(&job, Err("the simulation has ended"));
        }
    }

    fn end(&mut self, job: &Job, outcome: Result<Vec<u8>, &'static str>) {
        if job.client != self.own_client {
            self.served.errors += u64::from(outcome.is_err());
            let Job { client, number, .. } = *job;
            self.finished.push(Finished { client, number, outcome });
        }
    }

    /// Simulates until a request ends, with a virtual clock.
    pub fn advance(&mut self) {
        if self.fault.is_some() {
            return;
        }
        let began = Instant::now();
        match self.session.next_completion() {
            Ok(Some(answer)) => self.answered(answer),
            Ok(None) => {}
            Err(fault) => self.fail(fault),
        }
        self.after_steps(began);
        self.clock.client_continues(Instant::now());
    }

    /// Simulates the think time of the clients up to `wall`, with a virtual clock.
    pub fn pass_think_time(&mut self, wall: Instant) {
        if self.fault.is_some() {
            return;
        }
        let Some(until) = self.clock.after_think_time(wall, self.session.now()) else { return };
        if self.session.next_event().is_none_or(|next| next > until) {
            return;
        }
        if let Err(fault) = self.session.advance_to(until) {
            self.fail(fault);
        }
        self.after_steps(wall);
        self.clock.client_continues(Instant::now());
    }

    /// Simulates up to what a paced clock shows at `wall`.
    pub fn advance_to(&mut self, wall: Instant) {
        let (shown, ahead) = (self.clock.at(wall), self.clock.ahead(wall));
        // From event to event: requests arrive no earlier than what is simulated.
        let mut until = shown;
        loop {
            if let Err(fault) = self.session.advance_to(until) {
                self.fail(fault);
            }
            let next = self.session.next_event().filter(|next| *next <= ahead);
            match next.filter(|_| self.fault.is_none() && self.session.outstanding() > 0) {
                Some(next) => until = next + SimDuration::from_ns(1),
                None => break,
            }
        }
        self.after_steps(wall);
    }

    fn after_steps(&mut self, began: Instant) {
        while let Some(answer) = self.session.answer() {
            self.answered(answer);
        }
        self.session.add_wall(began.elapsed());
        if self.fault.is_some() {
            self.fail_all();
        } else {
            self.begin_deferred();
            self.limit_history();
        }
    }

    fn begin_deferred(&mut self) {
        for job in std::mem::take(&mut self.deferred) {
            if self.must_wait(&job) {
                self.deferred.push_back(job);
            } else {
                let now = self.session.now();
                let at = if self.is_paced() { self.clock.at(Instant::now()) } else { now };
                self.begin(job, at);
            }
        }
    }

    /// Asks the device to flush when it has not been asked for long, as hosts do by timers.
    fn limit_history(&mut self) {
        if self.keeps_too_much() && !self.is_unsettled {
            self.flush_device();
        }
        self.limit_failed();
    }

    /// Whether acknowledged writes that are not stored take more memory than they may.
    fn keeps_too_much(&self) -> bool {
        let Contents::History(history) = &self.contents else { return false };
        history.kept_bytes() > HISTORY_BYTES_MAX
    }

    /// Asks the device to flush, unless it has been asked.
    fn flush_device(&mut self) {
        if self.jobs.values().all(|it| it.job.client != self.own_client) {
            self.begin_own(Kind::Flush, 0, 0);
        }
    }

    /// Begins a job of the server's own.
    fn begin_own(&mut self, kind: Kind, first: u64, sectors: u64) {
        let (client, flags) = (self.own_client, Flags::NONE);
        let job = Job { client, number: 0, kind, first, sectors, flags };
        self.begin(job, self.session.now());
    }

    /// Reads what failed writes left undecided, when that takes much memory.
    fn limit_failed(&mut self) {
        let Contents::History(history) = &mut self.contents else { return };
        if !history.take_failed(FAILED_BYTES_MAX) {
            return;
        }
        for (first, sectors) in history.undecided() {
            self.begin_own(Kind::Read, first, sectors);
        }
    }

    /// The time at which [`Drive::advance_to`] has something to do next, with a paced clock.
    pub fn next_event(&mut self) -> Option<Instant> {
        self.session.next_event().and_then(|time| self.clock.instant(time))
    }

    fn answered(&mut self, answer: Answer) {
        let Some(part) = self.parts.remove(&answer.number) else { return };
        let is_zoned = self.is_zoned(part.first);
        let Some(pending) = self.jobs.get_mut(&part.pending) else { return };
        if self.clock.is_paced() {
            self.clock.replied(part.at, answer.at, Instant::now());
        }
        pending.left -= 1;
        pending.failed |= answer.outcome == Answered::Failed;
        let (flush, fua) = (pending.flush, pending.job.flags.contains(Flags::FUA));
        let last = pending.left == 0;
        let mut bytes = Vec::new();
        let stored = match (&mut self.contents, &pending.job.kind) {
            (Contents::History(history), Kind::Write(_)) if answer.outcome == Answered::Failed => {
                history.failed(answer.number + 1);
                Ok(Ok(()))
            }
            // Undecidable while reads fail, and candidates would grow without bound.
            (Contents::History(history), Kind::Read)
                if answer.outcome == Answered::Failed && pending.job.client == self.own_client =>
            {
                history.assume_newest(part.first, part.sectors).map(Ok)
            }
            _ if answer.outcome != Answered::Done => Ok(Ok(())),
            // Not acknowledged, but durable if it was forced.
            (Contents::History(_), Kind::Write(_)) if self.is_failing && !fua => Ok(Ok(())),
            (Contents::Plain(store), Kind::Write(Data::Bytes(bytes))) if is_zoned => {
                store.write(part.first, bytes).map(Ok)
            }
            (Contents::Plain(store), kind) if is_zoned && kind.changes_data() => {
                store.free(part.first, part.sectors).map(Ok)
            }
            (contents, Kind::Read) => {
                bytes = vec![0; part.sectors as usize * SECTOR];
                match contents {
                    Contents::Plain(store) => store.read(part.first, &mut bytes).map(Ok),
                    Contents::History(history) => {
                        history.read(part.first, &answer.versions, &mut bytes)
                    }
                }
            }
            (Contents::History(history), Kind::Write(_)) => {
                history.written(answer.number + 1, fua).map(Ok)
            }
            (Contents::History(history), Kind::Flush) => history.flushed(flush).map(Ok),
            _ => Ok(Ok(())),
        };
        match stored {
            Ok(Ok(())) => {
                let flushed = matches!(pending.job.kind, Kind::Flush);
                self.is_unsettled &= !(flushed && answer.outcome == Answered::Done);
            }
            Ok(Err(_stale)) => pending.failed = true,
            Err(error) => {
                pending.failed = true;
                self.is_unsettled |= matches!(pending.job.kind, Kind::Flush | Kind::Write(_));
                self.note_contents(error);
            }
        }
        if last && let Some(pending) = self.jobs.remove(&part.pending) {
            match answer.outcome {
                Answered::Lost => {}
                _ if pending.failed => self.end(&pending.job, Err("the device failed")),
                _ => self.end(&pending.job, Ok(bytes)),
            }
        }
    }

    /// The power fails now. Jobs that have not ended never will.
    ///
    /// # Errors
    /// Fails when the system does not model power failures, which ends the simulation.
    pub fn cut_power(&mut self, wall: Instant) -> Result<(), String> {
        let at = self.clock.arrival(wall, self.session.now());
        let cut = self.session.cut_power(at);
        self.is_failing = true;
        while let Some(answer) = self.session.answer() {
            self.answered(answer);
        }
        self.is_failing = false;
        self.parts.clear();
        self.jobs.clear();
        self.deferred.clear();
        if let Contents::History(history) = &mut self.contents {
            history.power_cut();
        }
        // Sectors that could not be stored are uncertain now, which takes no more memory.
        self.is_unsettled = false;
        self.clock.client_continues(Instant::now());
        self.served.power_cuts += 1;
        cut.map_err(|fault| {
            let message = fault.to_string();
            self.fail(fault);
            message
        })
    }

    /// A fault occurs now, before requests that arrive from now on. Returns its time.
    ///
    /// # Errors
    /// Why it cannot occur; nothing has changed then.
    pub fn inject(&mut self, order: &FaultOrder, wall: Instant) -> Result<SimTime, String> {
        if self.fault.is_some() {
            return Err("the simulation has ended".to_owned());
        }
        let at = self.clock.arrival(wall, self.session.now());
        let at = self.session.inject(order, at)?;
        self.served.faults += 1;
        Ok(at)
    }

    /// The names of the components that support faults, with the faults.
    pub fn supported_faults(&mut self) -> Vec<(String, &'static [&'static str])> {
        self.session.supported_faults()
    }

    /// Whether requests are being recorded.
    pub fn is_recording(&self) -> bool {
        self.record.is_some()
    }

    /// The time of the simulated system.
    pub fn now(&self) -> SimTime {
        self.session.now()
    }

    /// Serves what is outstanding and completes the trace; the contents are saved if `saves`. A
    /// trace that cannot be completed does not keep the state and the results from being returned.
    ///
    /// # Errors
    /// Fails when the state cannot be saved.
    pub fn finish(mut self, registry: &Registry, saves: bool) -> Result<Ended, RunError> {
        if saves && self.fault.is_none() {
            self.decide_all();
        }
        while self.outstanding() > 0 && self.fault.is_none() {
            self.advance();
        }
        let faults = self.session.faults();
        let recorded = self.record.map_or(Ok(()), |record| record.finish(faults));
        let (contents, settled) = match &mut self.contents {
            Contents::History(history) => {
                self.served.lost_sectors = history.lost_sectors();
                let settled = history.settle_all();
                (history.store(), settled)
            }
            Contents::Plain(store) => (store, Ok(())),
        };
        let saves = saves && self.fault.is_none();
        let saved = settled.and_then(|()| saves.then(|| contents.save()).transpose());
        self.served.lateness_ns = self.clock.lateness();
        let mut warnings: Vec<String> = self.clock.warning().into_iter().collect();
        if let (count, Some(error)) = self.contents_failed {
            let error = of_contents(error);
            warnings.push(format!("{count} accesses to the contents failed: {error}"));
        }
        let output = self.session.finish(registry, self.fault, warnings)?;
        Ok(Ended { output, served: self.served, contents: saved, recorded })
    }

    /// Reads what a power failure left undecided, so that the contents can be saved.
    fn decide_all(&mut self) {
        let Contents::History(history) = &self.contents else { return };
        for (first, sectors) in history.undecided() {
            self.begin_own(Kind::Read, first, sectors);
            while self.outstanding() > 0 && self.fault.is_none() {
                self.advance();
            }
        }
    }

    /// The maximum wait for the next requests of clients that have had replies, with a virtual
    /// clock.
    pub fn grace(&self) -> Duration {
        self.clock.grace()
    }
}
