//! Runs a checked scenario: workload, host and system on one machine, observed.

use crate::build;
use crate::scenario::Scenario;
use crate::scenario::resolve::{self, resolve};
use crate::state::{self, Cache, Kept};
use crate::workload::{self, Meter, MeteredSource};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{
    ComponentTree, EventRecord, EventSink, Fault, Keeper, Machine, PowerFailureInjector,
    SimDuration, SimTime, StateError, Stream,
};
use hybridsim_host::{Host, HostOptions};
use hybridsim_observe::events::since;
use hybridsim_observe::results::Component;
use hybridsim_observe::{
    Cost, Detail, Ending, Label, LatencyFold, Pictures, Recorder, RunResults, Warmup,
};
use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

/// Reads of data nobody wrote are told of when they are more than this share.
const UNWRITTEN_SHARE_MAX: f64 = 0.2;

/// Requests lost to power failures are told of when they are more than this share.
const LOST_SHARE_MAX: f64 = 0.1;

/// How to run.
#[derive(Default)]
pub struct Options<'a> {
    /// How much is observed.
    pub detail: Detail,
    /// Called now and then; returning `false` interrupts the run.
    pub watch: Option<&'a mut dyn FnMut(&RunProgress) -> bool>,
    /// Takes every event as well.
    pub sink: Option<&'a mut dyn EventSink>,
    /// Whether [`RunOutput::state`] is wanted.
    pub save_state: bool,
    /// Where preconditioned devices are remembered; nowhere without.
    pub cache: Option<Cache>,
}

/// A moment of a run, for progress displays.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Share of the workload delivered, where known.
    pub fraction: Option<f64>,
    /// Requests delivered.
    pub requests: u64,
    /// Simulated time.
    pub now: SimTime,
    /// Whether devices are still being preconditioned; then `fraction` is of the one at hand.
    pub preparing: bool,
}

/// What came of a run.
pub struct RunOutput {
    /// The figures.
    pub results: RunResults,
    /// What reports draw from, with [`Detail::Full`].
    pub pictures: Option<Pictures>,
    /// The scenario with every value spelt out.
    pub resolved: String,
    /// The latencies of the measured window, as histograms.
    pub latencies: LatencyFold,
    /// The paths of all components, by the number events name them by.
    pub paths: Vec<String>,
    /// Why the run ended early, if it did. The figures are of what came before.
    pub fault: Option<Fault>,
    /// The system's state after the run as `[run] state` takes it, if it was wanted and the run
    /// came to its end.
    pub state: Option<Vec<u8>>,
}

impl RunOutput {
    /// The run as reports show it.
    pub fn shown(&self) -> hybridsim_report::Run {
        hybridsim_report::Run {
            results: self.results.clone(),
            pictures: self.pictures.clone(),
            scenario_text: self.resolved.clone(),
        }
    }
}

/// Why a run did not begin.
#[derive(Debug)]
pub enum RunError {
    /// The scenario's components do not fit together.
    Scenario(Diagnostics),
    /// The trace cannot be opened.
    Trace(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(diagnostics) => diagnostics.fmt(f),
            Self::Trace(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Diagnostics> for RunError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Scenario(diagnostics)
    }
}

/// Whether `fault` is a correct answer of a device (full, worn out) and not a defect.
pub fn is_device_answer(fault: &Fault) -> bool {
    matches!(fault, Fault::Device { .. })
}

/// Tells what went wrong in policies that have no way to return it, in the thread that asks.
pub type PluginError = fn() -> Option<String>;

static PLUGIN_ERROR: OnceLock<PluginError> = OnceLock::new();

/// Has every run fail that `ask` tells something of. The first call counts.
pub fn watch_policies(ask: PluginError) {
    PLUGIN_ERROR.get_or_init(|| ask);
}

/// What is wrong with a policy of the run of this thread.
pub fn plugin_error() -> Option<String> {
    PLUGIN_ERROR.get().and_then(|ask| ask())
}

/// Runs `scenario`.
///
/// # Errors
/// When the scenario's components do not fit together, or its trace cannot be opened. What happens
/// later is told by [`RunOutput::fault`].
pub fn run(
    scenario: &Scenario,
    registry: &Registry,
    options: Options<'_>,
) -> Result<RunOutput, RunError> {
    let meter = Meter::default();
    let (root, warnings) = assemble(scenario, registry, &meter)?;
    let mut machine = Machine::new(root, scenario.run.flag("verify"));
    if let Some(every) = scenario.run.count_opt("power_cut_every") {
        let stream = Stream::new(scenario.seed(), "power");
        machine.fail_power(PowerFailureInjector::new(
            every,
            scenario.run.count("power_cuts_max"),
            stream,
        ));
    }
    if options.detail == Detail::Full {
        machine.enable_detailed_events();
    }
    let mut recorder = Recorder::new(machine.describe(), options.detail, warmup(scenario));
    let Options { mut watch, sink, save_state, cache, .. } = options;
    if save_state {
        // Better refused now than after hours.
        machine.save().map_err(|error| state_problem("the state cannot be saved", &error))?;
        machine.settle_at_end();
    }
    restore(&mut machine, scenario, registry)?;
    let base = machine.now().since(SimTime::ZERO);
    meter.begin(base);
    // Preconditioning takes wall time too, but is no part of the speed of the simulation.
    let prepared = prepare(&mut machine, scenario, registry, cache.as_ref(), &mut watch);
    let began = Instant::now();
    let ended = prepared.and_then(|()| {
        machine.start();
        let mut tee = Tee { first: &mut recorder, second: sink, base, shifted: Vec::new() };
        machine.run(&mut tee, &mut |now| {
            let go_on = watch.as_mut().is_none_or(|watch| watch(&meter.beat(now - base)));
            go_on && plugin_error().is_none()
        })
    });
    let ended = plugin_error().map_or(ended, |words| Err(Fault::Invariant(words)));
    let cost = Cost { wall_s: began.elapsed().as_secs_f64(), peak_rss_bytes: peak_rss_bytes() };
    let (fault, events) = (ended.err(), machine.events_handled());
    let state = match fault {
        None if save_state => Some(save(&mut machine, scenario, registry)?),
        _ => None,
    };
    let ending = Ending { time: machine.now() - base, events, complete: fault.is_none() };
    let mut warnings = warnings.list();
    if let Some(fault) = &fault {
        warnings.push(format!("the run ended early: {fault}"));
    }
    let mut finished = recorder.finish(ending, label(scenario), cost, warnings);
    let open = scenario.host.text("mode") == "open";
    finished.results.warnings.extend(finished.behind.filter(|_| open));
    finished.results.warnings.extend(unwritten_reads(&finished.results));
    finished.results.warnings.extend(failed_requests(&finished.results));
    finished.results.warnings.extend(lost_requests(scenario, &finished.results));
    Ok(RunOutput {
        results: finished.results,
        pictures: finished.pictures,
        latencies: finished.latencies,
        paths: machine.describe().into_iter().map(|(path, _)| path).collect(),
        resolved: resolve(scenario, registry),
        fault,
        state,
    })
}

fn state_problem(what: &str, error: &StateError) -> RunError {
    RunError::Scenario(Diagnostics::single(format!("{what}: {error}")))
}

fn save(
    machine: &mut Machine,
    scenario: &Scenario,
    registry: &Registry,
) -> Result<Vec<u8>, RunError> {
    let state = machine.save();
    let state = state.map_err(|error| state_problem("the state cannot be saved", &error))?;
    Ok(state::pack(&resolve::system(scenario, registry), &state))
}

/// Puts the system into the state the scenario names, if it names one.
fn restore(
    machine: &mut Machine,
    scenario: &Scenario,
    registry: &Registry,
) -> Result<(), RunError> {
    let Some(name) = scenario.run.text_opt("state") else { return Ok(()) };
    let path = scenario.base.join(name);
    let what = format!("the state {} cannot be used", path.display());
    let problem = |error: StateError| state_problem(&what, &error);
    let about = std::fs::metadata(&path);
    if about.is_ok_and(|about| !about.is_file()) {
        return Err(problem(StateError("it is no regular file".to_owned())));
    }
    let bytes = std::fs::read(&path).map_err(|error| problem(StateError(error.to_string())))?;
    let state = state::unpack(&bytes, &resolve::system(scenario, registry)).map_err(problem)?;
    machine.restore(&state).map_err(problem)
}

/// Preconditions every device, or has it from the cache.
fn prepare(
    machine: &mut Machine,
    scenario: &Scenario,
    registry: &Registry,
    cache: Option<&Cache>,
    watch: &mut Option<&mut dyn FnMut(&RunProgress) -> bool>,
) -> Result<(), Fault> {
    let keys = || {
        let components = scenario.components.iter().zip(build::paths(scenario));
        let key = |(component, path): (_, String)| {
            let resolved = resolve::component(component, registry);
            let key = format!("seed = {}\npath = {path:?}\n{resolved}", scenario.seed());
            (path, key)
        };
        components.map(key).collect()
    };
    let mut kept = cache.map(|cache| Kept::new(cache, keys()));
    let keeper = kept.as_mut().map(|kept| kept as &mut dyn Keeper);
    machine.prepare(keeper, &mut |share| match watch {
        Some(watch) => watch(&RunProgress {
            fraction: Some(share),
            requests: 0,
            now: SimTime::ZERO,
            preparing: true,
        }),
        None => true,
    })
}

/// What to say when the system could not serve everything it was asked.
fn failed_requests(results: &RunResults) -> Option<String> {
    let failed = results.components.get("host")?.custom.get("failed_requests")?;
    let count = failed.count;
    Some(format!(
        "{count} requests failed: the devices could not serve them; their latencies are counted \
         with the others"
    ))
}

/// What to say when power failures took away so many requests that what is left is no fair sample:
/// those that waited longest were the likeliest to be lost.
fn lost_requests(scenario: &Scenario, results: &RunResults) -> Option<String> {
    let (lost, every) = (results.requests_lost, scenario.run.count_opt("power_cut_every")?);
    let share = lost as f64 / (results.requests + lost).max(1) as f64;
    let remedy = match scenario.host.text("mode") {
        "open" => "; or have the workload wait for the system (host.mode = \"closed\")",
        _ => "",
    };
    (share > LOST_SHARE_MAX).then(|| {
        format!(
            "{lost} requests ({:.0} %) were lost in {} power failures, and latencies are of the \
             others alone: they look better than they are; let the power fail less often \
             (run.power_cut_every above {every}){remedy}",
            share * 100.0,
            results.power_cuts
        )
    })
}

/// What to say when flash devices, wherever they are in the system, were asked for data nobody
/// wrote: they answer without touching their flash, much faster than drives in use would.
fn unwritten_reads(results: &RunResults) -> Option<String> {
    let share = |component: &Component| {
        let flash = component.flash.as_ref()?;
        let found = flash.reads_by_cause.get("host").copied().unwrap_or(0);
        let asked = found + flash.unwritten_reads;
        Some(flash.unwritten_reads as f64 / asked as f64).filter(|_| asked > 0)
    };
    let shares = results.components.iter().filter_map(|(path, it)| Some((path, share(it)?)));
    let much: Vec<_> = shares.filter(|(_, share)| *share > UNWRITTEN_SHARE_MAX).collect();
    let (first, most) = much.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let others = match much.len() - 1 {
        0 => String::new(),
        count => format!(" (and much of {count} more)"),
    };
    Some(format!(
        "about {:.0} % of what was read from {first}{others} had never been written, or was \
         trimmed: such reads touch no flash and are too fast; precondition the drive (key \
         `precondition` of its component)",
        most * 100.0
    ))
}

/// Host, workload and system as one tree, and where the workload's warnings will be.
fn assemble(
    scenario: &Scenario,
    registry: &Registry,
    meter: &Meter,
) -> Result<(ComponentTree, workload::Warnings), RunError> {
    let system = build::system(scenario, registry)?;
    let host = HostOptions::read(&scenario.host).map_err(|list| section(scenario, "host", list))?;
    let scheduler = scenario.host.entry("scheduler");
    let entry = registry
        .find::<SchedulerEntry>(&scheduler.name)
        .expect("a checked scenario names a registered scheduler");
    let scheduler =
        (entry.build)(&scheduler.settings).map_err(|list| section(scenario, "host", list))?;
    let capacity = system.component.capacity();
    let (source, warnings) = workload::open(scenario, registry, capacity)?;
    let source = Box::new(MeteredSource::new(source, meter.clone()));
    let host = Host::new(host, source, scheduler).with_positioner(system.component.positioner());
    Ok((ComponentTree::inner("host", host, vec![system]), warnings))
}

/// Problems of one of the scenario's own tables.
pub(crate) fn section(scenario: &Scenario, key: &str, list: Vec<Problem>) -> Diagnostics {
    let list = list
        .into_iter()
        .map(|problem| Diagnostic {
            span: None,
            key: hybridsim_config::check::join(key, problem.param),
            message: problem.message,
            help: None,
        })
        .collect();
    Diagnostics { sources: scenario.sources.clone(), list }
}

fn warmup(scenario: &Scenario) -> Warmup {
    match scenario.run.count("warmup_requests") {
        0 => Warmup::Time(scenario.run.duration("warmup_time")),
        requests => Warmup::Requests(requests),
    }
}

fn label(scenario: &Scenario) -> Label {
    let versions = [("hybridsim", env!("CARGO_PKG_VERSION")), ("sources", state::SOURCES)];
    Label {
        title: scenario.title.clone(),
        scenario: scenario.name.clone(),
        trace: workload::name(scenario),
        seed: scenario.seed(),
        versions: versions.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
    }
}

/// Hands events to two sinks.
struct Tee<'a, 'b> {
    first: &'a mut Recorder,
    second: Option<&'b mut dyn EventSink>,
    /// When the run began: not zero where it goes on from a state.
    base: SimDuration,
    shifted: Vec<EventRecord>,
}

impl EventSink for Tee<'_, '_> {
    fn take(&mut self, events: &[EventRecord]) {
        let mut batch = events;
        if !self.base.is_zero() {
            self.shifted.clear();
            self.shifted.extend(events.iter().map(|record| since(record, self.base)));
            batch = &self.shifted;
        }
        self.first.take(batch);
        if let Some(second) = &mut self.second {
            second.take(batch);
        }
    }
}

/// Begins to measure peak memory anew, so that one run is not told the peak of another before it.
/// Only Linux can; elsewhere nothing happens.
pub fn forget_peak_memory() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// The process's peak memory as Linux tells it; `None` elsewhere.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}
