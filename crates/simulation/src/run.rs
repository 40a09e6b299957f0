//! Runs a checked scenario: workload, host and system on one machine, observed.

use crate::application::ApplicationWrites;
use crate::build;
use crate::draw;
pub use crate::error::RunError;
use crate::error::{PluginFaults, section};
use crate::faults;
use crate::memory;
use crate::observer;
use crate::power;
use crate::progress::{MeteredSource, ReportTimer, WorkloadProgress};
pub use crate::progress::{OnProgress, RunProgress};
use crate::scenario::resolve::{self, Resolved};
use crate::scenario::{Scenario, Tenant};
use crate::state::{self, CachedStates, PreconditionCache};
use crate::warnings;
use crate::workload::{self, Opened};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::diagnostic::Diagnostics;
use hybridsim_config::param::{EntryChoice, Problem};
use hybridsim_config::params::field;
use hybridsim_config::registry::Registry;
use hybridsim_engine::schedule::Scheduler;
use hybridsim_engine::{
    ComponentTree, EventSink, Fault, Machine, PowerFailureInjector, PreparedStates, SimDuration,
    SimTime, Source, StateError, Stream,
};
use hybridsim_host::tenants::{Shared, TenantOptions};
use hybridsim_host::{Host, HostOptions, Mode, TenantHost};
use hybridsim_observe::results::ratio;
use hybridsim_observe::{
    Cost, Detail, EndedBy, Ending, Label, LatencyFold, Pictures, Recorder, RunResults, TenantInfo,
    Warmup,
};
use web_time::Instant;

/// Options of a run.
#[derive(Default)]
pub struct Options<'a> {
    /// The level of observation.
    pub detail: Detail,
    /// Called about ten times a second; returning `false` interrupts the run.
    pub on_progress: Option<&'a mut OnProgress<'a>>,
    /// Receives every event as well.
    pub sink: Option<&'a mut (dyn EventSink + Send)>,
    /// Whether a second thread observes, sink included: for a run that has two processors to
    /// itself. The results are the same.
    pub observer_thread: bool,
    /// Whether to return [`RunOutput::state`].
    pub save_state: bool,
    /// Stores the states of preconditioned devices between runs.
    pub cache: Option<PreconditionCache>,
}

/// The output of a run.
pub struct RunOutput {
    /// The results.
    pub results: RunResults,
    /// Requests that failed, in the warm-up as well.
    pub failed_requests: u64,
    /// The distributions and series of reports, with [`Detail::Full`].
    pub pictures: Option<Pictures>,
    /// The scenario with every value spelt out.
    pub resolved: String,
    /// The latencies of the measured window, as histograms.
    pub latencies: LatencyFold,
    /// The paths of all components, indexed by the component numbers of events.
    pub paths: Vec<String>,
    /// Why the run ended early, if it did. The results cover the time before.
    pub fault: Option<Fault>,
    /// The system's state after a complete run, in the form of `[run] state`, if
    /// [`Options::save_state`] is set.
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

/// Whether `fault` is a correct response of a device (full, worn out) and not a defect.
pub fn is_device_answer(fault: &Fault) -> bool {
    matches!(fault, Fault::Device { .. })
}

/// Runs `scenario`.
///
/// # Errors
/// Fails when the scenario's components do not fit together, or its trace cannot be opened. Errors
/// during the run are in [`RunOutput::fault`].
pub fn run(
    scenario: &Scenario,
    registry: &Registry,
    options: Options<'_>,
) -> Result<RunOutput, RunError> {
    let mut plugins = PluginFaults::begin(registry);
    let progress = WorkloadProgress::default();
    let (root, warnings, mode, writes) = assemble(scenario, registry, &progress)?;
    let Options { detail, mut on_progress, sink, observer_thread, save_state, cache } = options;
    let verify = scenario.run.verify;
    let mut assembled = Assembled::new(scenario, registry, root, detail, verify, save_state)?;
    if let Some(sink) = sink {
        assembled.recorder = assembled.recorder.forwarding_to(sink);
    }
    assembled.schedule_faults(scenario)?;
    let prepared = assembled.prepare(scenario, registry, cache.as_ref(), &mut on_progress);
    let Assembled { machine, recorder, base, .. } = &mut assembled;
    // The speed of the simulation does not include preconditioning.
    let (began, mut timer) = (Instant::now(), ReportTimer::default());
    let ended = prepared.and_then(|()| {
        machine.start();
        let mut go_on = |now| {
            let go_on = !timer.is_due() || report(&mut on_progress, &progress.at(now - *base));
            !plugins.raised() && go_on
        };
        match observer_thread {
            true => observer::beside(recorder, |sink| machine.run(sink, &mut go_on)),
            false => machine.run(recorder, &mut go_on),
        }
    });
    let ended = plugins.or(ended);
    let wall_s = began.elapsed().as_secs_f64();
    // A run that ends with the last arrival may leave requests in flight.
    let by = match scenario.host_word("end") == "last-arrival" {
        true => EndedBy::LastArrival,
        false => EndedBy::Completion,
    };
    let is_open = mode == Mode::Open;
    let mut output = assembled.conclude(
        scenario,
        registry,
        Conclusion {
            fault: ended.err(),
            by,
            wall_s,
            warnings: warnings.list(),
            is_open,
            save_state,
        },
    )?;
    let results = &mut output.results;
    let system = &scenario.components[scenario.system];
    let of_system = match results.components.get(&system.name).and_then(|it| it.log) {
        Some(log) => log.total_write_amplification,
        None if system.children.is_empty() => results.totals.write_amplification,
        None => None,
    };
    let of_system = of_system.filter(|_| scenario.run.warmup_time.is_zero());
    results.application = writes.result(of_system);
    Ok(output)
}

/// A system with its observers, ready to run.
pub(crate) struct Assembled<'a> {
    pub machine: Machine,
    pub recorder: Recorder<'a>,
    /// Start of the run: after time zero where it continues from a restored state.
    pub base: SimDuration,
    resolved: Resolved,
    diagram: String,
}

/// The end of a run, and the results asked for.
pub(crate) struct Conclusion {
    pub fault: Option<Fault>,
    /// The cause, unless a fault ended the run.
    pub by: EndedBy,
    pub wall_s: f64,
    pub warnings: Vec<String>,
    /// Whether requests arrived at times of their own.
    pub is_open: bool,
    pub save_state: bool,
}

impl<'a> Assembled<'a> {
    /// `root` on a machine; requests carry data versions when `versions` is set.
    pub fn new(
        scenario: &Scenario,
        registry: &Registry,
        root: ComponentTree,
        detail: Detail,
        versions: bool,
        save_state: bool,
    ) -> Result<Self, RunError> {
        let resolved = Resolved::new(scenario, registry);
        let is_full = detail == Detail::Full;
        let diagram = if is_full { draw::inline(scenario, &root) } else { String::new() };
        let mut machine = Machine::new(root, versions);
        if let Some(every) = scenario.run.power_cut_every {
            let stream = Stream::new(scenario.seed(), "power");
            let cuts = PowerFailureInjector::new(every, scenario.run.power_cuts_max, stream);
            machine.fail_power(cuts);
        }
        if is_full {
            machine.enable_detailed_events();
        }
        let mut recorder = Recorder::new(machine.describe(), detail, warmup(scenario))
            .with_tenants(tenant_infos(scenario));
        if save_state {
            // Fail before the run, not hours later.
            let tried = machine.try_save();
            tried.map_err(|error| state_problem("the state cannot be saved", &error))?;
            machine.finish_requests_at_end();
        }
        restore(&mut machine, scenario, &resolved)?;
        let base = machine.now().since(SimTime::ZERO);
        recorder.start_at(base);
        Ok(Self { machine, recorder, base, resolved, diagram })
    }

    /// Schedules the faults of the scenario; to be called once the time the run begins is known.
    pub fn schedule_faults(&mut self, scenario: &Scenario) -> Result<(), RunError> {
        for (number, (at, order)) in (0..).zip(faults::scheduled(&scenario.run.faults)) {
            let at = SimTime::ZERO + at + self.base;
            let scheduled =
                self.machine.schedule_fault(at, order.component.as_deref(), order.fault);
            scheduled.map_err(|reason| fault_problem(number, &reason))?;
        }
        Ok(())
    }

    /// Preconditions every device or restores its cached state.
    pub fn prepare(
        &mut self,
        scenario: &Scenario,
        registry: &Registry,
        cache: Option<&PreconditionCache>,
        on_progress: &mut Option<&mut OnProgress<'_>>,
    ) -> Result<(), Fault> {
        let mut cached = cached_states(scenario, registry, cache);
        let cached = cached.as_mut().map(|cached| cached as &mut dyn PreparedStates);
        self.machine
            .prepare(cached, &mut |share| report(on_progress, &RunProgress::preparing(share)))
    }

    /// Description of the system, which a saved state belongs to.
    pub fn system(&self) -> String {
        self.resolved.system()
    }

    /// The results.
    pub fn conclude(
        mut self,
        scenario: &Scenario,
        registry: &Registry,
        conclusion: Conclusion,
    ) -> Result<RunOutput, RunError> {
        let Conclusion { fault, by, wall_s, mut warnings, is_open, save_state } = conclusion;
        let cost = Cost { wall_s, peak_rss_bytes: peak_rss_bytes() };
        let events = self.machine.events_handled();
        let state = match fault {
            None if save_state => Some(save(&mut self.machine, &self.resolved)?),
            _ => None,
        };
        let by = if fault.is_some() { EndedBy::Interruption } else { by };
        let ending = Ending { time: self.machine.now() - self.base, events, by };
        if let Some(fault) = &fault {
            warnings.push(format!("the run ended early: {fault}"));
        }
        for (number, at) in self.machine.faults_to_come() {
            let name = match number < scenario.run.faults.len() {
                true => format!("run.faults[{number}]"),
                false => "an injected fault".to_owned(),
            };
            let at = at - self.base;
            let end = ending.time;
            warnings.push(format!("{name}, at {at}, did not occur: the run ended at {end}"));
        }
        let mut finished = self.recorder.finish(ending, label(scenario), cost, warnings);
        if let Some(pictures) = &mut finished.pictures {
            pictures.diagram = self.diagram;
        }
        finished.results.warnings.extend(finished.behind.filter(|_| is_open));
        let (components, failed) = (self.machine.describe(), finished.failed_requests);
        warnings::add(scenario, registry, &components, failed, &mut finished.results);
        Ok(RunOutput {
            results: finished.results,
            failed_requests: failed + finished.failed_in_warmup,
            pictures: finished.pictures,
            latencies: finished.latencies,
            paths: components.into_iter().map(|(path, _)| path).collect(),
            resolved: self.resolved.text(),
            fault,
            state,
        })
    }
}

fn fault_problem(number: usize, reason: &str) -> RunError {
    RunError::Scenario(Diagnostics::single(format!("run.faults[{number}]: {reason}")))
}

pub(crate) fn state_problem(what: &str, error: &StateError) -> RunError {
    RunError::Scenario(Diagnostics::single(format!("{what}: {error}")))
}

/// Passes `progress` on; returns whether the run is to continue.
pub(crate) fn report(
    on_progress: &mut Option<&mut OnProgress<'_>>,
    progress: &RunProgress,
) -> bool {
    on_progress.as_mut().is_none_or(|on_progress| on_progress(progress))
}

fn save(machine: &mut Machine, resolved: &Resolved) -> Result<Vec<u8>, RunError> {
    let state = machine.save();
    let state = state.map_err(|error| state_problem("the state cannot be saved", &error))?;
    Ok(state::pack(&resolved.system(), &state))
}

/// Restores the state that the scenario names, if any.
fn restore(
    machine: &mut Machine,
    scenario: &Scenario,
    resolved: &Resolved,
) -> Result<(), RunError> {
    let Some(name) = &scenario.run.state else { return Ok(()) };
    let path = scenario.base.join(name);
    let what = format!("the state {} cannot be used", path.display());
    let problem = |error: StateError| state_problem(&what, &error);
    let about = std::fs::metadata(&path);
    if about.is_ok_and(|about| !about.is_file()) {
        return Err(problem(StateError("it is not a regular file".to_owned())));
    }
    let bytes = std::fs::read(&path).map_err(|error| problem(StateError(error.to_string())))?;
    let state = state::unpack(&bytes, &resolved.system()).map_err(problem)?;
    machine.restore(&state).map_err(problem)
}

/// The cached states of the components of `scenario`, if there is memory for them.
pub(crate) fn cached_states<'c>(
    scenario: &Scenario,
    registry: &Registry,
    cache: Option<&'c PreconditionCache>,
) -> Option<CachedStates<'c>> {
    let cache = cache.filter(|_| memory::holds_states_twice(scenario, registry))?;
    let components = scenario.components.iter().zip(build::paths(scenario));
    let key = |(component, path): (_, String)| {
        let resolved = resolve::component(component, registry);
        let key = format!("seed = {}\npath = {path:?}\n{resolved}", scenario.seed());
        (path, key)
    };
    Some(CachedStates::new(cache, components.map(key).collect()))
}

/// Checks everything that [`run`] checks before it simulates, and reads the first request.
///
/// # Errors
/// As [`run`].
pub fn check(scenario: &Scenario, registry: &Registry) -> Result<Checked, RunError> {
    let Parts { system, submitter, warnings } = parts(scenario, registry)?;
    let sources = match submitter {
        Submitter::One { source, .. } => vec![(workload::name(scenario), source)],
        Submitter::Tenants(_, tenants) => {
            let names = scenario.tenants.iter().map(|tenant| tenant.name.clone());
            names.zip(tenants.into_iter().map(|(_, source)| source)).collect()
        }
    };
    for (name, source) in sources {
        let read = MeteredSource::new(source, WorkloadProgress::default()).next();
        read.map_err(|reason| RunError::Trace(format!("{name}: {reason}")))?;
    }
    let checked = Checked {
        capacity_sectors: system.component.capacity(),
        loses_writes: system.loses_writes(),
        system: system.path.clone(),
        warnings: warnings.list(),
    };
    let mut machine = Machine::new(system, false);
    for (number, (_, order)) in (0..).zip(faults::scheduled(&scenario.run.faults)) {
        let possible = machine.check_fault(order.component.as_deref(), &order.fault);
        possible.map_err(|reason| fault_problem(number, &reason))?;
    }
    Ok(checked)
}

/// A scenario that can run.
pub struct Checked {
    /// The path of its top component.
    pub system: String,
    pub capacity_sectors: u64,
    /// Whether any component may lose acknowledged writes at a power failure.
    pub loses_writes: bool,
    /// Warnings about its workload.
    pub warnings: Vec<String>,
}

/// A system with its workload.
struct Parts {
    system: ComponentTree,
    submitter: Submitter,
    warnings: workload::Warnings,
}

/// A system without its workload.
pub(crate) struct Attachment {
    pub system: ComponentTree,
    pub host: HostOptions,
    pub scheduler: Box<dyn Scheduler>,
}

pub(crate) fn attachment(scenario: &Scenario, registry: &Registry) -> Result<Attachment, RunError> {
    let system = build::system(scenario, registry)?;
    let host = HostOptions::read(&scenario.host).map_err(|list| section(scenario, "host", list))?;
    let scheduler = scheduler(scenario, registry)?;
    Ok(Attachment { system, host, scheduler })
}

fn scheduler(scenario: &Scenario, registry: &Registry) -> Result<Box<dyn Scheduler>, RunError> {
    let choice = field::<EntryChoice>(&scenario.host, "scheduler");
    let (entry, own) = registry.chosen::<SchedulerEntry>(&choice);
    Ok((entry.build)(own).map_err(|list| section(scenario, "host", list))?)
}

/// The source of the system's requests.
enum Submitter {
    One { host: HostOptions, scheduler: Box<dyn Scheduler>, source: Box<dyn Source> },
    Tenants(Shared, Vec<(TenantOptions, Box<dyn Source>)>),
}

impl Submitter {
    /// Whether a workload waits for completions.
    fn waits(&self) -> bool {
        match self {
            Self::One { source, .. } => source.waits(),
            Self::Tenants(_, tenants) => tenants.iter().any(|(_, source)| source.waits()),
        }
    }
}

/// Builds the system and the scheduler, and opens the workload.
fn parts(scenario: &Scenario, registry: &Registry) -> Result<Parts, RunError> {
    let mut system = build::system(scenario, registry)?;
    let host = HostOptions::read(&scenario.host).map_err(|list| section(scenario, "host", list))?;
    let capacity = system.component.capacity();
    let (submitter, mut warnings) = match scenario.tenants.is_empty() {
        true => one_workload(scenario, registry, host, capacity)?,
        false => tenants(scenario, registry, host, capacity)?,
    };
    power::check(scenario, &mut system, submitter.waits())?;
    warnings.before.extend(warnings::without_effect(scenario, registry));
    warnings.before.extend(warnings::small_spares(scenario, &system));
    warnings.before.extend(memory::shortage(scenario, registry));
    Ok(Parts { system, submitter, warnings })
}

fn one_workload(
    scenario: &Scenario,
    registry: &Registry,
    mut host: HostOptions,
    capacity: u64,
) -> Result<(Submitter, workload::Warnings), RunError> {
    let scheduler = scheduler(scenario, registry)?;
    let mut opened = workload::open(scenario, registry, capacity)?;
    if let Some(depth) = closed_loop(scenario, (host.mode, host.queue_depth), &mut opened)? {
        host = HostOptions { from_issue: host.from_issue, ..HostOptions::closed(depth) };
    }
    let Opened { source, warnings, .. } = opened;
    Ok((Submitter::One { host, scheduler, source }, warnings))
}

fn tenants(
    scenario: &Scenario,
    registry: &Registry,
    host: HostOptions,
    capacity: u64,
) -> Result<(Submitter, workload::Warnings), RunError> {
    let (mut list, mut all) = (Vec::new(), workload::Warnings::default());
    for opened in workload::open_tenants(scenario, registry, capacity)? {
        let workload::OpenedTenant { tenant, view, mut opened } = opened;
        let problems = |list| section(&view, &view.workload_key, list);
        let mut options = TenantOptions::read(&tenant.settings, &host).map_err(problems)?;
        let configured = (options.mode, options.queue_depth);
        if let Some(depth) = closed_loop(&view, configured, &mut opened)? {
            (options.mode, options.queue_depth, options.outstanding) = (Mode::Closed, depth, depth);
        }
        all.add(&tenant.name, opened.warnings);
        list.push((options, opened.source));
    }
    all.before.extend(warnings::unused_weights(scenario));
    Ok((Submitter::Tenants(Shared::read(&scenario.host, &host), list), all))
}

/// The depth of the closed loop that replaces the configured mode for a workload, if one does.
fn closed_loop(
    scenario: &Scenario,
    (mode, queue_depth): (Mode, u32),
    opened: &mut Opened,
) -> Result<Option<u32>, RunError> {
    let source = &opened.source;
    let by_time = scenario.source.generator.as_ref();
    let by_time = by_time.is_some_and(|choice| choice.settings.has("duration"));
    if mode == Mode::Open && opened.one_at_a_time {
        return Ok(Some(1));
    }
    if mode == Mode::Open && !source.has_times() && is_untimed(scenario) {
        let message = "neither the workload nor the system has times (`timing.kind = \"none\"`): \
                       requests follow each other in a closed loop";
        opened.warnings.before.push(message.to_owned());
        return Ok(Some(queue_depth));
    }
    if mode == Mode::Open && by_time && !source.has_times() {
        let message = "needs arrival times (`interarrival_ms`), or a closed loop, which ends after \
                       this time (`mode = \"closed\"` under [host])";
        let problem = Problem::new("duration", message);
        let key = format!("{}.generator", scenario.workload_key);
        return Err(section(scenario, &key, vec![problem]).into());
    }
    if mode == Mode::Closed && source.waits() {
        let message = "this workload waits for completions itself: use \"open\"";
        let problem = Problem::new("mode", message);
        let asked = scenario.workload.has("mode");
        let key = if asked { scenario.workload_key.as_str() } else { "host" };
        return Err(section(scenario, key, vec![problem]).into());
    }
    Ok(None)
}

/// Builds the tree of host and system; returns it with the warnings of the workload, the mode, and
/// the writes of a single workload's application.
fn assemble(
    scenario: &Scenario,
    registry: &Registry,
    progress: &WorkloadProgress,
) -> Result<(ComponentTree, workload::Warnings, Mode, ApplicationWrites), RunError> {
    let Parts { system, submitter, warnings } = parts(scenario, registry)?;
    let metered =
        |source, progress: &WorkloadProgress| MeteredSource::new(source, progress.clone());
    let mut writes = ApplicationWrites::default();
    let (root, mode) = match submitter {
        Submitter::One { host, scheduler, source } => {
            let meter;
            (writes, meter) = ApplicationWrites::of(&*source, scenario.run.warmup_requests);
            let positioner = system.component.positioner();
            let source = metered(source, progress).with_application(meter);
            let root = Host::new(host, Box::new(source), scheduler);
            let root = root
                .with_positioner(positioner)
                .configured_as(resolve::scheduler(scenario, registry));
            (ComponentTree::inner("host", root, vec![system]), host.mode)
        }
        Submitter::Tenants(shared, tenants) => {
            let closed = tenants.iter().any(|(options, _)| options.mode == Mode::Closed);
            // The progress shown is that of the first.
            let own = |at: usize| if at == 0 { progress.clone() } else { Default::default() };
            let tenants = tenants.into_iter().enumerate();
            let tenants = tenants.map(|(at, (options, source))| -> (_, Box<dyn Source>) {
                (options, Box::new(metered(source, &own(at))))
            });
            let root = TenantHost::new(shared, tenants.collect());
            let mode = if closed { Mode::Closed } else { Mode::Open };
            (ComponentTree::inner("host", root, vec![system]), mode)
        }
    };
    Ok((root, warnings, mode, writes))
}

/// Sets the slowdown of each workload of several: its mean latency in `results` divided by that in
/// a run of the same requests without the others. Where that cannot run, or ends early, the
/// slowdown is left out with a warning.
pub fn add_slowdowns(
    scenario: &Scenario,
    registry: &Registry,
    results: &mut RunResults,
    cache: Option<&PreconditionCache>,
    on_progress: &mut OnProgress<'_>,
) {
    let Some(tenants) = &mut results.tenants else { return };
    for (at, tenant) in scenario.tenants.iter().enumerate() {
        let mut on_progress = |now: &RunProgress| on_progress(now);
        let options = Options {
            on_progress: Some(&mut on_progress),
            cache: cache.cloned(),
            ..Options::default()
        };
        let alone = match run(&scenario.alone(at), registry, options) {
            Ok(RunOutput { fault: Some(fault), .. }) => Err(fault.to_string()),
            Ok(alone) => Ok(alone.results.latency_ns.all.mean),
            Err(error) => Err(error.to_string()),
        };
        let mean = alone.unwrap_or_else(|error| {
            results.warnings.push(format!("no slowdown of `{}`: alone, {error}", tenant.name));
            None
        });
        if let Some(result) = tenants.by_name.get_mut(&tenant.name) {
            let shared = result.latency_ns.all.mean;
            result.slowdown = shared.zip(mean).and_then(|(shared, mean)| ratio(shared, mean));
        }
    }
}

/// The workloads of several, as results show them.
fn tenant_infos(scenario: &Scenario) -> Vec<TenantInfo> {
    let info = |tenant: &Tenant| TenantInfo {
        name: tenant.name.clone(),
        weight: field(&tenant.settings, "weight"),
    };
    scenario.tenants.iter().map(info).collect()
}

/// Whether no device of the scenario models time.
fn is_untimed(scenario: &Scenario) -> bool {
    let mut devices = scenario.components.iter().filter(|device| device.children.is_empty());
    devices.all(|device| device.settings.value("timing").is_some_and(|it| it.word() == "none"))
}

fn warmup(scenario: &Scenario) -> Warmup {
    match scenario.run.warmup_requests {
        0 => Warmup::Time(scenario.run.warmup_time),
        requests => Warmup::Requests(requests),
    }
}

pub(crate) fn label(scenario: &Scenario) -> Label {
    let versions = [("hybridsim", env!("CARGO_PKG_VERSION")), ("sources", state::SOURCES)];
    Label {
        title: scenario.title.clone(),
        scenario: scenario.name.clone(),
        trace: workload::name(scenario),
        seed: scenario.seed(),
        versions: versions.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
    }
}

/// Resets the peak memory of the process, so that a run does not report the peak of one before.
/// Linux only.
pub fn forget_peak_memory() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// The peak memory of the process; Linux only.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}
