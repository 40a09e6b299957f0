//! All folds of a run as one sink.

use crate::breakdown::Breakdown;
use crate::busy::BusyFold;
use crate::counters::Counters;
use crate::events::since;
use crate::fingerprint::Fingerprint;
use crate::invariants::Invariants;
use crate::latency::LatencyFold;
use crate::marks::MarkFold;
use crate::pictures::Pictures;
use crate::results::{Cost, Label, RunResults, WarmupResult};
use crate::series::SeriesFold;
use crate::steady::SteadyFold;
use crate::summary::{self, EndedBy, Ending};
use crate::tenants::{TenantFold, TenantInfo};
use hybridsim_cache::CacheEvent;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::event::kind_of;
use hybridsim_engine::{CommonEvent, ComponentInfo, EventRecord, EventSink, SimDuration, SimTime};
use hybridsim_flash::FlashEvent;
use std::slice::Iter;

// The kinds that come with every request, some of them with detailed events only.
const ARRIVED: u8 = kind_of::<CommonEvent>("arrived");
const COMPLETED: u8 = kind_of::<CommonEvent>("completed");
const PHASE_TIME: u8 = kind_of::<CommonEvent>("phase_time");
const QUEUE_DEPTH: u8 = kind_of::<CommonEvent>("queue_depth");
const PHASE_TIMES: u8 = kind_of::<CommonEvent>("phase_times");
const STATE_TIME: u8 = kind_of::<CommonEvent>("state_time");
const STATE_TIMES: u8 = kind_of::<CommonEvent>("state_times");
const ACCESS: u8 = kind_of::<DiskEvent>("access");
const MEDIA_TRANSFER: u8 = kind_of::<DiskEvent>("media_transfer");
const DISK_CACHE: u8 = kind_of::<DiskEvent>("disk_cache");
const READ: u8 = kind_of::<FlashEvent>("flash_read");
const PROGRAM: u8 = kind_of::<FlashEvent>("flash_program");
const DIE_BUSY: u8 = kind_of::<FlashEvent>("die_busy");
const CHANNEL_BUSY: u8 = kind_of::<FlashEvent>("channel_busy");
const CACHE_LOOKUP: u8 = kind_of::<CacheEvent>("cache_lookup");
const DESTAGED: u8 = kind_of::<CacheEvent>("destaged");
const DIRTY_PAGES: u8 = kind_of::<CacheEvent>("dirty_pages");

/// The level of observation. The fingerprint is the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The summary only.
    #[default]
    Bare,
    /// The summary, and what pictures are drawn from.
    Full,
}

/// The warm-up, excluded from statistics. The simulation is the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warmup {
    /// Nothing.
    #[default]
    None,
    /// Up to the completion of this many requests.
    Requests(u64),
    /// Up to this time.
    Time(SimDuration),
}

/// The start of the measured window.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    warmup: Warmup,
    open: bool,
    since: SimTime,
    before: u64,
}

impl Gate {
    /// The number of `events` that precede the window.
    fn closed_for(&mut self, events: &[EventRecord]) -> usize {
        for (at, record) in events.iter().enumerate() {
            if let Warmup::Time(length) = self.warmup
                && record.time >= SimTime::ZERO + length
            {
                self.open_at(SimTime::ZERO + length);
                return at;
            }
            if matches!(record.event(), Some(CommonEvent::Completed { .. })) {
                self.before += 1;
                if matches!(self.warmup, Warmup::Requests(wanted) if self.before >= wanted) {
                    self.open_at(record.time);
                    return at + 1;
                }
            }
        }
        events.len()
    }

    fn open_at(&mut self, time: SimTime) {
        (self.open, self.since) = (true, time);
    }
}

/// The folds that pictures are drawn from.
#[derive(Default)]
struct Drawn {
    series: SeriesFold,
    busy: BusyFold,
    marks: MarkFold,
}

/// The folds that observe a run.
pub struct Recorder<'a> {
    nodes: Vec<(String, ComponentInfo)>,
    gate: Gate,
    fingerprint: Fingerprint,
    invariants: Invariants,
    counters: Counters,
    /// Requests of the warm-up that failed.
    failed_before: u64,
    latency: LatencyFold,
    steady: SteadyFold,
    breakdown: Breakdown,
    tenants: TenantFold,
    tenant_infos: Vec<TenantInfo>,
    drawn: Option<Box<Drawn>>,
    /// Start of the run: after time zero where it continues from a restored state.
    base: SimDuration,
    /// The records of a batch with times since `base`.
    since_base: Vec<EventRecord>,
    sink: Option<&'a mut (dyn EventSink + Send)>,
}

/// The outcome of [`Recorder::finish`].
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The summary.
    pub results: RunResults,
    /// The data for figures, when observed with [`Detail::Full`].
    pub pictures: Option<Pictures>,
    /// The latencies of the measured window.
    pub latencies: LatencyFold,
    /// Requests of the measured window that the system could not serve.
    pub failed_requests: u64,
    /// Requests that failed in the warm-up.
    pub failed_in_warmup: u64,
    /// A warning that the system did not keep up with the workload, for runs in an open loop.
    pub behind: Option<String>,
}

impl<'a> Recorder<'a> {
    /// A recorder for the components `nodes`, as the machine describes them.
    pub fn new(nodes: Vec<(String, ComponentInfo)>, detail: Detail, warmup: Warmup) -> Self {
        let paths = nodes.iter().map(|node| node.0.clone()).collect();
        let mut gate = Gate { warmup, ..Gate::default() };
        if matches!(warmup, Warmup::None | Warmup::Requests(0) | Warmup::Time(SimDuration::ZERO)) {
            gate.open_at(SimTime::ZERO);
        }
        Self {
            gate,
            fingerprint: Fingerprint::default(),
            invariants: Invariants::new(paths),
            counters: Counters::new(nodes.len(), SimTime::ZERO),
            failed_before: 0,
            latency: LatencyFold::default(),
            steady: SteadyFold::default(),
            breakdown: Breakdown::default(),
            tenants: TenantFold::default(),
            tenant_infos: Vec::new(),
            drawn: (detail == Detail::Full).then(Box::default),
            nodes,
            base: SimDuration::ZERO,
            since_base: Vec::new(),
            sink: None,
        }
    }

    /// For a run that continues from a restored state at `base`: all times are since then. To be
    /// called before the first event.
    pub fn start_at(&mut self, base: SimDuration) {
        self.base = base;
    }

    /// For a system that these workloads share, in the order of their numbers in events.
    #[must_use]
    pub fn with_tenants(mut self, tenants: Vec<TenantInfo>) -> Self {
        self.tenant_infos = tenants;
        self
    }

    /// Passes every event on to `sink`, with times since the start of the run.
    #[must_use]
    pub fn forwarding_to(mut self, sink: &'a mut (dyn EventSink + Send)) -> Self {
        self.sink = Some(sink);
        self
    }

    fn measure(&mut self, events: &[EventRecord]) {
        self.counters.take(events);
        self.latency.take(events);
        events.iter().for_each(|record| self.steady.add(record));
        self.breakdown.take(events);
        self.tenants.take(events);
    }

    #[cold]
    fn warm_up(&mut self, events: &[EventRecord]) {
        let skipped = self.gate.closed_for(events);
        self.counters.take(&events[..skipped]);
        if let Some(drawn) = &mut self.drawn {
            drawn.busy.take(&events[..skipped]);
        }
        if self.gate.open {
            self.failed_before += self.counters.failed;
            self.counters = self.counters.measured_from(self.gate.since);
            if let Some(drawn) = &mut self.drawn {
                drawn.busy.measure_from(self.gate.since.as_ns());
                drawn.busy.take(&events[skipped..]);
            }
            self.measure(&events[skipped..]);
        }
        if let Some(drawn) = &mut self.drawn {
            drawn.series.take(events);
            events.iter().for_each(|record| drawn.marks.add(record));
        }
    }

    /// The results of the run. Violated invariants and remarks on the statistics are added to
    /// `warnings`.
    pub fn finish(
        mut self,
        ending: Ending,
        label: Label,
        cost: Cost,
        warnings: Vec<String>,
    ) -> Finished {
        if !self.gate.open {
            self.gate.since = ending.time;
            self.failed_before += self.counters.failed;
            self.counters = self.counters.measured_from(ending.time);
            if let Some(drawn) = &mut self.drawn {
                drawn.busy.measure_from(ending.time.as_ns());
            }
        }
        let mut drawn = self.drawn.take();
        let utilisation =
            drawn.as_mut().map(|it| it.busy.utilisation(&self.nodes, ending.time.as_ns()));
        let since = self.gate.since;
        let run = summary::Run {
            nodes: &self.nodes,
            counters: &self.counters,
            latency: &self.latency,
            breakdown: &self.breakdown,
            utilisation: utilisation.unwrap_or_default(),
            warmup: WarmupResult { requests: self.gate.before, ns: since.as_ns() },
            asked_for_warmup: self.gate.warmup != Warmup::None,
            ending,
        };
        let violations = self.invariants.finish(ending.time, ending.by == EndedBy::Completion);
        let mut results =
            summary::results(&run, &self.fingerprint, label, cost, warnings, violations);
        results.steady = self.steady.finish(since);
        let end_ns = ending.time.as_ns();
        results.tenants = self.tenants.results(&self.tenant_infos, since.as_ns(), end_ns);
        let paths: Vec<String> = self.nodes.iter().map(|node| node.0.clone()).collect();
        let pictures = drawn.map(|drawn| {
            let Drawn { series, mut busy, marks } = *drawn;
            let mut pictures = summary::pictures(&run, series.finish(ending.time, &paths));
            pictures.busy = busy.maps(&self.nodes, end_ns);
            pictures.activity = busy.activity(&self.nodes);
            (pictures.marks, pictures.marks_left_out) = marks.finish(&paths);
            pictures
        });
        let behind = summary::fell_behind(&run).or_else(|| summary::backlog(&run));
        Finished {
            results,
            pictures,
            latencies: self.latency,
            failed_requests: self.counters.failed,
            failed_in_warmup: self.failed_before,
            behind,
        }
    }
}

impl Recorder<'_> {
    /// One pass for all folds of the measured window, after one for the fingerprint; those for
    /// pictures are included only if they are `DRAWN`.
    fn observe<const DRAWN: bool>(&mut self, events: &[EventRecord]) {
        self.fingerprint.take(events);
        let mut rest = events.iter();
        while let Some(record) = rest.next() {
            match record.kind() {
                PROGRAM | READ if !DRAWN => self.add_flash_operations(record, &mut rest),
                PROGRAM => self.add_kind::<PROGRAM, DRAWN>(record),
                READ => self.add_kind::<READ, DRAWN>(record),
                PHASE_TIME => self.add_kind::<PHASE_TIME, DRAWN>(record),
                PHASE_TIMES => self.add_kind::<PHASE_TIMES, DRAWN>(record),
                STATE_TIME => self.add_kind::<STATE_TIME, DRAWN>(record),
                STATE_TIMES => self.add_kind::<STATE_TIMES, DRAWN>(record),
                ARRIVED => self.add_kind::<ARRIVED, DRAWN>(record),
                COMPLETED => self.add_kind::<COMPLETED, DRAWN>(record),
                ACCESS => self.add_kind::<ACCESS, DRAWN>(record),
                MEDIA_TRANSFER => self.add_kind::<MEDIA_TRANSFER, DRAWN>(record),
                DISK_CACHE => self.add_kind::<DISK_CACHE, DRAWN>(record),
                QUEUE_DEPTH => self.add_kind::<QUEUE_DEPTH, DRAWN>(record),
                CACHE_LOOKUP => self.add_kind::<CACHE_LOOKUP, DRAWN>(record),
                DESTAGED => self.add_kind::<DESTAGED, DRAWN>(record),
                DIRTY_PAGES => self.add_kind::<DIRTY_PAGES, DRAWN>(record),
                DIE_BUSY => self.add_busy::<DIE_BUSY>(record),
                CHANNEL_BUSY => self.add_busy::<CHANNEL_BUSY>(record),
                _ => self.add_rare(record),
            }
        }
    }

    /// Adds a record whose kind the compiler knows: it decides every fold's `match`, so nothing is
    /// left of the folds that do not use the event.
    #[inline(always)]
    fn add_kind<const KIND: u8, const DRAWN: bool>(&mut self, record: &EventRecord) {
        let record = record.with_kind(KIND);
        self.add(&record);
        if DRAWN && let Some(drawn) = &mut self.drawn {
            drawn.series.add(&record);
            drawn.busy.add(&record);
        }
    }

    /// Adds `record`, a read or program of a flash device, and those of the device that follow it
    /// without a record in between: most records of a run with flash are of these kinds.
    #[inline(always)]
    fn add_flash_operations<'e>(
        &mut self,
        mut record: &'e EventRecord,
        rest: &mut Iter<'e, EventRecord>,
    ) {
        let source = |kind| record.with_kind(kind).source();
        let (read, program) = (source(READ), source(PROGRAM));
        let Some((device, from)) = self.counters.component(record.component()) else { return };
        let mut is_read = record.source() == read;
        loop {
            self.invariants.pass_time(record.time);
            match is_read {
                true => device.add(&record.with_kind(READ), from),
                false => device.add(&record.with_kind(PROGRAM), from),
            }
            let Some(next) = rest.as_slice().first() else { return };
            is_read = next.source() == read;
            if !is_read && next.source() != program {
                return;
            }
            record = next;
            rest.next();
        }
    }

    /// Adds a detailed event, which is not for the folds of the summary.
    #[inline(always)]
    fn add_busy<const KIND: u8>(&mut self, record: &EventRecord) {
        self.invariants.pass_time(record.time);
        if let Some(drawn) = &mut self.drawn {
            drawn.busy.add(&record.with_kind(KIND));
        }
    }

    #[inline(always)]
    fn add(&mut self, record: &EventRecord) {
        self.invariants.add(record);
        self.counters.add(record);
        self.latency.add(record);
        self.steady.add(record);
        self.breakdown.add(record);
    }

    fn take_since_base(&mut self, events: &[EventRecord]) {
        match (self.gate.open, self.drawn.is_some()) {
            (true, true) => self.observe::<true>(events),
            (true, false) => self.observe::<false>(events),
            (false, _) => {
                self.fingerprint.take(events);
                self.invariants.take(events);
                self.warm_up(events);
            }
        }
        if let Some(sink) = &mut self.sink {
            sink.take(events);
        }
    }

    #[inline(never)]
    fn add_rare(&mut self, record: &EventRecord) {
        self.add(record);
        self.tenants.add(record);
        if let Some(drawn) = &mut self.drawn {
            drawn.series.add(record);
            drawn.marks.add(record);
        }
    }
}

impl EventSink for Recorder<'_> {
    fn take(&mut self, events: &[EventRecord]) {
        if self.base.is_zero() {
            return self.take_since_base(events);
        }
        let mut records = std::mem::take(&mut self.since_base);
        records.clear();
        records.extend(events.iter().map(|record| since(record, self.base)));
        self.take_since_base(&records);
        self.since_base = records;
    }
}
