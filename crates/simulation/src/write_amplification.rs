//! Write amplification without a clock: the requests of a scenario's workload go to its SSD in
//! their order, and flash operations are counted.
//!
//! Translation layer, policies, preconditioning and workload are those of a run; host, messages,
//! events and times are left out. A scenario with `timing = "none"` has the same flash operations
//! in a run, in three times the processor time.

use crate::application::ApplicationWrites;
use crate::build;
use crate::error::PluginFaults;
pub use crate::error::RunError;
use crate::memory;
use crate::progress::{MeteredSource, OnProgress, ReportTimer, RunProgress, WorkloadProgress};
use crate::run::{cached_states, label, report};
use crate::scenario::Scenario;
use crate::scenario::resolve::Resolved;
use crate::state::PreconditionCache;
use crate::{warnings, workload};
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::registry::Registry;
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_engine::{Arrival, Component, Fault, PreparedStates, SimTime, Source, prepare};
use hybridsim_flash::ftl::EXPECTED_MAX;
use hybridsim_flash::ops::OpCounts;
use hybridsim_flash::{Cause, INITIAL_ERASES, SLC_ENDURANCE};
use hybridsim_observe::Label;
use hybridsim_observe::results::{Application, EraseCount, ratio};
use hybridsim_ssd::device::{Served, Untimed};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Most points of a curve; when there are more, pairs are joined.
const POINTS_MAX: usize = 1024;

/// Points of a curve for each drive write, until there are too many.
const POINTS_PER_DRIVE_WRITE: u64 = 32;

/// Options of a count.
#[derive(Default)]
pub struct Options<'a> {
    /// Called about ten times a second; returning `false` interrupts the count.
    pub on_progress: Option<&'a mut OnProgress<'a>>,
    /// Stores the states of preconditioned devices between runs.
    pub cache: Option<PreconditionCache>,
}

/// The output of a count.
pub struct Counted {
    /// The counts.
    pub results: WriteAmplification,
    /// Why the count ended early, if it did. The results cover the requests before.
    pub fault: Option<Fault>,
    /// The scenario with every value spelt out.
    pub resolved: String,
}

/// Flash operations of an SSD, counted without a clock. Preconditioning and warm-up requests are
/// left out, except in `erase_count` and `free_blocks_end`. Causes are those of the results of a
/// run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WriteAmplification {
    /// Identification of the run.
    pub label: Label,
    /// Name of the SSD in the scenario.
    pub component: String,
    /// Geometry and other constants of the SSD.
    pub constants: BTreeMap<String, f64>,
    /// Requests in all.
    pub requests: u64,
    /// Requests by operation: `read`, `write`, `trim`, `flush`.
    pub requests_by_op: BTreeMap<&'static str, u64>,
    /// `host_bytes` divided by the capacity.
    pub drive_writes: f64,
    /// `programmed_bytes` divided by `host_bytes`, as the counters of drives have it.
    pub write_amplification: Option<f64>,
    /// `programs` divided by `host_programs`: what garbage collection and the mapping add, without
    /// the rest of partly written pages.
    pub page_write_amplification: Option<f64>,
    /// Writes of the application whose store the workload models; absent for other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// Bytes written by the host.
    pub host_bytes: u64,
    /// Bytes programmed in all.
    pub programmed_bytes: u64,
    /// Bytes of the host that a drive with its `initial_wear` endures in all, evenly worn, at the
    /// erases per byte of this run; `null` when nothing was erased.
    pub life_host_bytes: Option<f64>,
    /// Pages programmed for the host.
    pub host_programs: u64,
    /// Pages programmed by garbage collection.
    pub gc_programs: u64,
    /// Pages programmed in all.
    pub programs: u64,
    /// Pages read in all.
    pub reads: u64,
    /// Blocks erased in all.
    pub erases: u64,
    /// Pages read, by cause.
    pub reads_by_cause: BTreeMap<&'static str, u64>,
    /// Pages programmed, by cause.
    pub programs_by_cause: BTreeMap<&'static str, u64>,
    /// Blocks erased, by cause.
    pub erases_by_cause: BTreeMap<&'static str, u64>,
    /// Mean share of valid pages in the blocks that garbage collection erases: pages that it copied
    /// divided by those of the blocks that it erased. `null` for fewer than 8 erases in each plane,
    /// as it copies pages before it erases their block.
    pub victim_utilisation: Option<f64>,
    /// Whole pages trimmed, whether or not they held data.
    pub trimmed_pages: u64,
    /// Reads of pages never written, or trimmed, which take no flash operation.
    pub unwritten_reads: u64,
    /// Blocks examined in victim searches, by policies that search.
    pub searched_blocks: u64,
    /// Erase counts of all blocks over the device's life, preconditioning included.
    pub erase_count: Option<EraseCount>,
    /// Free (erased) blocks at the end.
    pub free_blocks_end: u64,
    /// Write amplification over drive writes, from the first request after the warm-up.
    pub curve: Vec<CurvePoint>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// An interval of a curve, which begins at the end of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Drive writes at its end.
    pub drive_writes: f64,
    /// Write amplification in the interval.
    pub write_amplification: f64,
    /// Mean share of valid pages in the blocks that garbage collection erased in the interval;
    /// `null` for few, as above.
    pub victim_utilisation: Option<f64>,
}

/// Counts the flash operations of `scenario`.
///
/// # Errors
/// Fails when the system is no single SSD, when results would depend on time, or when the workload
/// cannot be opened. Errors during the count are in [`Counted::fault`].
pub fn count(
    scenario: &Scenario,
    registry: &Registry,
    options: Options<'_>,
) -> Result<Counted, RunError> {
    let mut plugins = PluginFaults::begin(registry);
    check(scenario)?;
    let (path, mut ssd) = build::only_ssd(scenario, registry)?;
    let workload::Opened { source, warnings, .. } =
        workload::open_in_order(scenario, registry, ssd.capacity())?;
    let Options { mut on_progress, cache } = options;
    let constants = ssd.info().constants;
    let mut cached = cached_states(scenario, registry, cache.as_ref());
    let cached = cached.as_mut().map(|cached| cached as &mut dyn PreparedStates);
    let prepared = prepare(&mut ssd, &path, cached, &mut |share| {
        report(&mut on_progress, &RunProgress::preparing(share))
    });
    let progress = WorkloadProgress::default();
    let (writes, meter) = ApplicationWrites::of(&*source, scenario.run.warmup_requests);
    let source = MeteredSource::new(source, progress.clone()).with_application(meter);
    let mut counting = Counting {
        ssd: ssd.untimed(&path),
        source,
        before: Snapshot::default(),
        curve: Curve::default(),
    };
    counting.begin();
    let mut timer = ReportTimer::default();
    let ended = prepared.and_then(|()| {
        counting.run(scenario.run.warmup_requests, &mut || {
            let go_on = !timer.is_due() || report(&mut on_progress, &progress.at(SimTime::ZERO));
            if go_on && !plugins.raised() { Ok(()) } else { Err(Fault::Interrupted) }
        })
    });
    let ended = plugins.or(ended);
    let mut results = counting.results();
    let erases = counting.erases();
    drop(counting);
    results.application = writes.result(results.write_amplification);
    results.label = label(scenario);
    results.component.clone_from(&path);
    let component = &scenario.components[scenario.system];
    let small_spare = warnings::small_spare(component, &constants);
    results.life_host_bytes = life_host_bytes(&results, &constants);
    results.constants = constants.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
    let mut notes = warnings::without_effect_untimed(scenario, registry);
    notes.extend(warnings.list());
    notes.extend(small_spare);
    notes.extend(memory::shortage(scenario, registry));
    let erased = |_: &str| erases > 0;
    notes.extend(warnings::idle_flash_policies(scenario, registry, &erased));
    notes.extend(warnings::placement(scenario));
    let fault = ended.err();
    if scenario.run.warmup_requests > 0 && results.requests == 0 {
        notes.push("the warm-up took all requests: nothing was counted".to_owned());
    }
    notes.extend(fault.as_ref().map(|fault| format!("the count ended early: {fault}")));
    notes.extend(rising(&results));
    results.warnings = notes;
    Ok(Counted { results, fault, resolved: Resolved::new(scenario, registry).text() })
}

/// Write amplification at the end that differs by more than this share from the whole count's
/// causes a warning.
const CHANGE_MAX: f64 = 0.1;

/// The warning that write amplification was not constant, as on a drive that is not full yet: its
/// figure for the whole count is then not that of a drive in use.
fn rising(results: &WriteAmplification) -> Option<String> {
    let mean = results.write_amplification.filter(|_| results.curve.len() >= 8)?;
    let from = results.curve.len() - results.curve.len().div_ceil(4);
    let (before, last) = results.curve.split_at_checked(from)?;
    let mut begin = before.last().map_or(0.0, |point| point.drive_writes);
    let (mut programs, from) = (0.0, begin);
    for point in last {
        programs += point.write_amplification * (point.drive_writes - begin);
        begin = point.drive_writes;
    }
    let end = ratio(programs, begin - from)?;
    ((end / mean - 1.0).abs() > CHANGE_MAX).then(|| {
        format!(
            "write amplification was not constant: {end:.2} in the last quarter, {mean:.2} in \
             all; for that of a drive in use precondition it (precondition = \"steady\"), count \
             after a warm-up (run.warmup_requests), or write more"
        )
    })
}

/// Rejects what needs a clock or a whole system.
fn check(scenario: &Scenario) -> Result<(), RunError> {
    let run = &scenario.run;
    let needs_clock = "needs simulated time";
    let help = "leave it out, or simulate the scenario (`hybridsim run`)";
    let refused = [
        (!scenario.tenants.is_empty(), "workload", "several workloads share the system by time"),
        (run.verify, "run.verify", "versions of data are not followed here"),
        (run.power_cut_every.is_some(), "run.power_cut_every", needs_clock),
        (!run.faults.is_empty(), "run.faults", needs_clock),
        (run.state.is_some(), "run.state", "is the state of a simulated run"),
    ];
    let list: Vec<Diagnostic> = refused
        .into_iter()
        .filter(|(given, ..)| *given)
        .map(|(_, key, message)| Diagnostic {
            span: None,
            key: key.to_owned(),
            message: message.to_owned(),
            help: Some(help.to_owned()),
        })
        .collect();
    match list.is_empty() {
        true => Ok(()),
        false => Err(RunError::Scenario(Diagnostics { sources: scenario.sources.clone(), list })),
    }
}

#[derive(Clone, Copy, Default)]
struct Snapshot {
    operations: OpCounts,
    served: Served,
}

impl Snapshot {
    fn since(&self, earlier: &Self) -> Self {
        let operations = self.operations.since(&earlier.operations);
        Self { operations, served: self.served.since(&earlier.served) }
    }

    const fn host_bytes(&self) -> u64 {
        self.served.write_sectors * SECTOR_BYTES
    }

    fn programmed_bytes(&self, page_bytes: u32) -> u64 {
        let programs = Cause::ALL.iter().map(|&cause| self.operations.programs(cause));
        programs.sum::<u64>() * u64::from(page_bytes)
    }

    fn write_amplification(&self, page_bytes: u32) -> Option<f64> {
        ratio(self.programmed_bytes(page_bytes) as f64, self.host_bytes() as f64)
    }
}

struct Counting<'a> {
    ssd: Untimed<'a>,
    source: MeteredSource,
    /// At the start of what is counted.
    before: Snapshot,
    curve: Curve,
}

impl Counting<'_> {
    /// Counts from here on.
    fn begin(&mut self) {
        self.before = self.snapshot();
        let interval = (self.ssd.capacity() / POINTS_PER_DRIVE_WRITE).max(1);
        let samples = Vec::with_capacity(POINTS_MAX);
        let next = self.before.served.write_sectors + interval;
        self.curve = Curve { interval, next, samples };
    }

    /// Blocks erased since preconditioning, warm-up included.
    fn erases(&self) -> u64 {
        let operations = self.ssd.operations();
        Cause::ALL.iter().map(|&cause| operations.erases(cause)).sum()
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { operations: self.ssd.operations(), served: *self.ssd.served() }
    }

    /// Serves the workload, and begins to count after `warmup` requests. `go_on` is called often.
    fn run(
        &mut self,
        warmup: u64,
        go_on: &mut dyn FnMut() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut batch = VecDeque::with_capacity(EXPECTED_MAX);
        let mut warmup = warmup;
        loop {
            let most =
                if warmup > 0 { warmup.min(EXPECTED_MAX as u64) } else { EXPECTED_MAX as u64 };
            batch.clear();
            let read = self.source.read(most as usize, &mut batch);
            self.serve(batch.make_contiguous())?;
            if warmup > 0 {
                warmup -= batch.len() as u64;
                self.begin();
            }
            go_on()?;
            if !read.map_err(Fault::Workload)? {
                return Ok(());
            }
        }
    }

    fn serve(&mut self, batch: &[Arrival]) -> Result<(), Fault> {
        let served = self.ssd.serve(batch);
        let written = self.ssd.served().write_sectors;
        if written >= self.curve.next {
            self.curve.add(self.snapshot().since(&self.before));
            self.curve.next = written + self.curve.interval;
        }
        served
    }

    fn results(&mut self) -> WriteAmplification {
        let now = self.snapshot().since(&self.before);
        let Snapshot { operations, served } = now;
        let array = self.ssd.array();
        let pages_per_block = array.geometry().pages_per_block();
        let by_cause = |count: &dyn Fn(Cause) -> u64| -> BTreeMap<&'static str, u64> {
            Cause::ALL.iter().map(|&cause| (cause.name(), count(cause))).collect()
        };
        let reads_by_cause = by_cause(&|cause| operations.reads(cause));
        let programs_by_cause = by_cause(&|cause| operations.programs(cause));
        let erases_by_cause = by_cause(&|cause| operations.erases(cause));
        let host_programs = operations.programs(Cause::Host);
        let programs = programs_by_cause.values().sum();
        let mut wear = BTreeMap::new();
        array.count_wear(&mut wear);
        let Served { reads, writes, trims, flushes, .. } = served;
        let ops = [("read", reads), ("write", writes), ("trim", trims), ("flush", flushes)];
        let page_bytes = array.geometry().page_bytes();
        let capacity = self.ssd.capacity() as f64;
        let blocks = Victims { pages_per_block, page_bytes, planes: array.geometry().planes() };
        let curve = self.curve.points(now, capacity, blocks);
        WriteAmplification {
            requests: served.requests(),
            requests_by_op: ops.into(),
            drive_writes: served.write_sectors as f64 / capacity,
            write_amplification: now.write_amplification(page_bytes),
            page_write_amplification: ratio(programs as f64, host_programs as f64),
            host_bytes: now.host_bytes(),
            programmed_bytes: now.programmed_bytes(page_bytes),
            host_programs,
            gc_programs: operations.programs(Cause::Gc),
            programs,
            reads: reads_by_cause.values().sum(),
            erases: erases_by_cause.values().sum(),
            reads_by_cause,
            programs_by_cause,
            erases_by_cause,
            victim_utilisation: blocks.utilisation(&operations),
            trimmed_pages: served.trimmed_pages,
            unwritten_reads: served.unwritten_reads,
            searched_blocks: operations.searched_blocks,
            erase_count: EraseCount::of(&wear),
            free_blocks_end: u64::from(self.ssd.array().free_blocks()),
            curve,
            ..WriteAmplification::default()
        }
    }
}

fn life_host_bytes(results: &WriteAmplification, constants: &[(&str, f64)]) -> Option<f64> {
    let constant = |wanted: &str| constants.iter().find(|it| it.0 == wanted).map(|it| it.1);
    // Blocks in SLC mode endure more, and are not erased as often.
    if constant(SLC_ENDURANCE).is_some() {
        return None;
    }
    let endurance = constant("endurance")? - constant(INITIAL_ERASES).unwrap_or(0.0);
    let erases = endurance * constant("blocks")?;
    ratio(erases * results.host_bytes as f64, results.erases as f64)
}

/// Erases in each plane below which there is no mean of them.
const VICTIMS_MIN: u64 = 8;

/// The blocks that garbage collection erases.
#[derive(Clone, Copy)]
struct Victims {
    pages_per_block: u32,
    page_bytes: u32,
    planes: u32,
}

impl Victims {
    /// Mean share of valid pages in those that were erased.
    fn utilisation(self, operations: &OpCounts) -> Option<f64> {
        let erases = operations.erases(Cause::Gc);
        let pages = erases as f64 * f64::from(self.pages_per_block);
        let share = ratio(operations.programs(Cause::Gc) as f64, pages);
        share.filter(|_| erases >= VICTIMS_MIN * u64::from(self.planes))
    }
}

/// Counts at intervals of sectors written.
#[derive(Default)]
struct Curve {
    interval: u64,
    /// Sectors written at the next point, warm-up included.
    next: u64,
    samples: Vec<Snapshot>,
}

impl Curve {
    #[cold]
    fn add(&mut self, counts: Snapshot) {
        if self.samples.len() == POINTS_MAX {
            self.interval *= 2;
            let mut number = 0;
            self.samples.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
        self.samples.push(counts);
    }

    /// The points of a device of `capacity` sectors; `end` is the last.
    fn points(&self, end: Snapshot, capacity: f64, victims: Victims) -> Vec<CurvePoint> {
        let mut before = Snapshot::default();
        let mut points = Vec::with_capacity(self.samples.len() + 1);
        for &sample in self.samples.iter().chain([&end]) {
            let within = sample.since(&before);
            let ratio = within.write_amplification(victims.page_bytes);
            points.extend(ratio.map(|write_amplification| CurvePoint {
                drive_writes: sample.served.write_sectors as f64 / capacity,
                write_amplification,
                victim_utilisation: victims.utilisation(&within.operations),
            }));
            before = sample;
        }
        points
    }
}
