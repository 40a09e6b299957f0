//! A scenario's workload: a trace with its replay options, or a generator.

use crate::error::{RunError, section};
use crate::scenario::{Scenario, Tenant};
use hybridsim_config::param::{Built, EntryChoice, Problem, Settings};
use hybridsim_config::params::field;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_config::units::write_bytes;
use hybridsim_engine::{Arrival, Op, Request, SECTOR_BYTES, SimTime, Source};
use hybridsim_workload::record::{RecordReader, TraceError};
use hybridsim_workload::shape::{self, Replay, ReplayError};
use hybridsim_workload::synthetic::loops::Loops;
use hybridsim_workload::synthetic::{GeneratorEntry, GeneratorInput};
use hybridsim_workload::trace::{self, FormatEntry, OpenOptions};

/// Regions smaller than this were probably meant as the size of a request.
const SPAN_BYTES_MIN: u64 = 1 << 20;

/// The warnings of a workload, during and after a run.
#[derive(Default)]
pub struct Warnings {
    trace: Option<shape::Warnings>,
    /// Those of several workloads, by name.
    tenants: Vec<(String, Warnings)>,
    /// Those known before the run.
    pub(crate) before: Vec<String>,
}

impl Warnings {
    /// One sentence per kind of warning.
    pub fn list(&self) -> Vec<String> {
        let list = self.trace.as_ref().map(shape::Warnings::list).unwrap_or_default();
        let of_trace = list.iter().map(|warning| {
            let times = match warning.count {
                1 => String::new(),
                count => format!(" ({count} times)"),
            };
            format!("trace{}: {}{times}", warning.location, warning.message)
        });
        let of_tenants = self.tenants.iter().flat_map(|(name, warnings)| {
            let list = warnings.list().into_iter();
            list.map(move |warning| format!("workload {name}: {warning}"))
        });
        self.before.iter().cloned().chain(of_trace).chain(of_tenants).collect()
    }

    pub(crate) fn add(&mut self, name: &str, warnings: Self) {
        self.tenants.push((name.to_owned(), warnings));
    }
}

/// An opened workload.
pub struct Opened {
    pub source: Box<dyn Source>,
    pub warnings: Warnings,
    /// Whether a closed loop of one request replaces the host's open loop.
    pub one_at_a_time: bool,
}

/// Opens the workload for a system of `capacity` sectors.
///
/// # Errors
/// A generator or replay that does not fit, or a trace that cannot be opened.
pub fn open(scenario: &Scenario, registry: &Registry, capacity: u64) -> Result<Opened, RunError> {
    let Some(choice) = &scenario.source.generator else {
        return trace(scenario, registry, capacity);
    };
    let source = generator(scenario, registry, choice, capacity)?;
    let before = small_span(choice).into_iter().collect();
    let warnings = Warnings { before, ..Warnings::default() };
    Ok(Opened { source, warnings, one_at_a_time: false })
}

/// Opens the workload for a system of `capacity` sectors that takes its requests in their order,
/// without times and completions.
///
/// # Errors
/// As [`open`], and a generator whose requests depend on completions.
pub fn open_in_order(
    scenario: &Scenario,
    registry: &Registry,
    capacity: u64,
) -> Result<Opened, RunError> {
    if scenario.source.generator.is_none() {
        let replay = replay(scenario, registry, capacity)?.in_order();
        let warnings = Warnings { trace: Some(replay.warnings()), ..Warnings::default() };
        return Ok(Opened { source: Box::new(replay), warnings, one_at_a_time: false });
    }
    let opened = open(scenario, registry, capacity)?;
    if opened.source.reads_ahead() {
        return Ok(opened);
    }
    let message = "its requests depend on completions, which have no times here: use another \
                   generator, give `requests` instead of `duration`, or simulate it \
                   (`hybridsim run`)";
    let key = format!("{}.generator", scenario.workload_key);
    let problem = Problem::new("", message);
    Err(RunError::Scenario(section(scenario, &key, vec![problem])))
}

/// The warning about a generator that accesses next to nothing.
fn small_span(choice: &EntryChoice) -> Option<String> {
    let span = field::<Option<u64>>(&choice.settings, "span")?;
    (span < SPAN_BYTES_MIN).then(|| format!(
        "all requests access the same {span} bytes: `workload.generator.span` is the extent of the \
         addresses, not the size of a request"
    ))
}

fn generator(
    scenario: &Scenario,
    registry: &Registry,
    choice: &EntryChoice,
    capacity_sectors: u64,
) -> Result<Box<dyn Source>, RunError> {
    let entry = registry
        .find::<GeneratorEntry>(&choice.name)
        .expect("a checked scenario names a registered generator");
    fn build(
        entry: &GeneratorEntry,
        settings: &Settings,
        registry: &Registry,
        (seed, path, capacity_sectors): (u64, &str, u64),
    ) -> Built<dyn Source> {
        let may_be_endless = false;
        let input =
            GeneratorInput { settings, registry, seed, path, capacity_sectors, may_be_endless };
        (entry.build)(&input)
    }
    let key = &scenario.workload_key;
    let problems = |key: &str, list| RunError::Scenario(section(scenario, key, list));
    let (seed, path) = (scenario.seed(), scenario.stream.clone());
    let first = build(&entry, &choice.settings, registry, (seed, &path, capacity_sectors));
    let first = first.map_err(|list| problems(&format!("{key}.generator"), list))?;
    let loops = field::<u64>(&scenario.workload, "loops");
    if loops == 1 {
        return Ok(first);
    }
    let (settings, registry) = (choice.settings.clone(), registry.clone());
    let again = Box::new(move || {
        let built = build(&entry, &settings, &registry, (seed, &path, capacity_sectors));
        built.map_err(|list| list.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))
    });
    let loops = Loops::new(loops, first, again);
    let loops = loops.map_err(|message| problems(key, vec![Problem::new("loops", message)]))?;
    Ok(Box::new(loops))
}

fn replay(scenario: &Scenario, registry: &Registry, capacity: u64) -> Result<Replay, RunError> {
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    let (path, options) = (scenario.trace_path(), open_options(scenario));
    let reopen = move || -> Result<Box<dyn RecordReader>, TraceError> {
        Ok(Box::new(trace::open_with(&formats, &path, &options)?))
    };
    shape::replay(&scenario.workload, reopen, capacity).map_err(|error| match error {
        ReplayError::Settings(list) => {
            RunError::Scenario(section(scenario, &scenario.workload_key, list))
        }
        ReplayError::Trace(error) => RunError::Trace(error.to_string()),
        ReplayError::DoesNotFit(message) => {
            RunError::Trace(format!("{}: {message}", scenario.trace_path().display()))
        }
    })
}

fn trace(scenario: &Scenario, registry: &Registry, capacity: u64) -> Result<Opened, RunError> {
    let replay = replay(scenario, registry, capacity)?;
    let mut before = Vec::new();
    let one_at_a_time = !replay.has_times() && scenario.host_word("mode") == "open";
    if one_at_a_time && !field::<bool>(&scenario.workload, "fit") {
        let message = format!(
            "{} has no arrival times, so it can only be replayed in a closed loop; write \
             `mode = \"closed\"` under [host], or pass --set host.mode=closed, or --fit \
             (`workload.fit = true`) for one request at a time",
            name(scenario)
        );
        return Err(RunError::Scenario(crate::scenario::Diagnostics::single(message)));
    }
    if one_at_a_time {
        let message = "fit: the trace has no arrival times; it is replayed in a closed loop of one \
                       request (host.mode = \"closed\", host.queue_depth = 1)";
        before.push(message.to_owned());
    }
    let warnings = Warnings { trace: Some(replay.warnings()), before, ..Warnings::default() };
    Ok(Opened { source: Box::new(replay), warnings, one_at_a_time })
}

/// A workload of several, opened.
pub struct OpenedTenant<'a> {
    pub tenant: &'a Tenant,
    /// The scenario with this workload as its only one.
    pub view: Scenario,
    pub opened: Opened,
}

/// Opens all workloads of several, each for its part of a system of `capacity` sectors.
///
/// # Errors
/// As [`open`], and a part that is not within the system.
pub fn open_tenants<'a>(
    scenario: &'a Scenario,
    registry: &Registry,
    capacity: u64,
) -> Result<Vec<OpenedTenant<'a>>, RunError> {
    let one = |tenant: &'a Tenant| {
        let view = scenario.seen_by(tenant);
        let (start, sectors) = namespace(&view, tenant, capacity)?;
        let mut opened = open(&view, registry, sectors)?;
        if start > 0 {
            opened.source = Box::new(Namespace { inner: opened.source, start });
        }
        Ok(OpenedTenant { tenant, view, opened })
    };
    scenario.tenants.iter().map(one).collect()
}

/// First sector and sectors of the part of the system that a workload addresses.
fn namespace(view: &Scenario, tenant: &Tenant, capacity: u64) -> Result<(u64, u64), RunError> {
    let start = field::<Option<u64>>(&tenant.settings, "namespace_start").unwrap_or(0);
    let problem = |key, message: String| {
        let problem = Problem::new(key, message);
        Err(RunError::Scenario(section(view, &view.workload_key, vec![problem])))
    };
    let rest = (capacity * SECTOR_BYTES).saturating_sub(start);
    if !start.is_multiple_of(SECTOR_BYTES) || rest == 0 {
        let whole = write_bytes(capacity * SECTOR_BYTES);
        let message = format!("must be a multiple of 512 bytes within the device ({whole})");
        return problem("namespace_start", message);
    }
    let size = field::<Option<u64>>(&tenant.settings, "namespace_size").unwrap_or(rest);
    if !size.is_multiple_of(SECTOR_BYTES) || size == 0 || size > rest {
        let rest = write_bytes(rest);
        let message = format!("must be a multiple of 512 bytes, at most {rest} from its start");
        return problem("namespace_size", message);
    }
    Ok((start / SECTOR_BYTES, size / SECTOR_BYTES))
}

/// A workload whose addresses count from sector `start` of the device.
struct Namespace {
    inner: Box<dyn Source>,
    start: u64,
}

impl Source for Namespace {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let mut next = self.inner.next()?;
        if let Some(arrival) = &mut next
            && arrival.request.op != Op::Flush
        {
            arrival.request.lba.0 += self.start;
        }
        Ok(next)
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    fn has_times(&self) -> bool {
        self.inner.has_times()
    }

    fn reads_ahead(&self) -> bool {
        self.inner.reads_ahead()
    }

    fn waits(&self) -> bool {
        self.inner.waits()
    }

    fn take_back(&mut self) {
        self.inner.take_back();
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        let mut request = *request;
        if request.op != Op::Flush {
            request.lba.0 -= self.start;
        }
        self.inner.completed(&request, now);
    }
}

/// Options with which to open the scenario's trace.
pub fn open_options(scenario: &Scenario) -> OpenOptions {
    let skip_bad_lines = scenario.source.skip_bad_lines;
    match &scenario.source.format {
        Some(choice) => OpenOptions {
            format: Some(choice.name.clone()),
            settings: choice.settings.clone(),
            skip_bad_lines,
            ..OpenOptions::default()
        },
        None => OpenOptions { skip_bad_lines, ..OpenOptions::default() },
    }
}

/// The formats of the scenario's traces; those that cannot be read are left out.
pub fn trace_formats(scenario: &Scenario, registry: &Registry) -> Vec<Description> {
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    let tenants = scenario.tenants.iter().map(|tenant| scenario.seen_by(tenant));
    let views = tenants.chain([scenario.clone()]).filter(|view| view.source.trace.is_some());
    let open =
        |view: Scenario| trace::open_with(&formats, &view.trace_path(), &open_options(&view));
    views.filter_map(|view| Some(open(view).ok()?.format)).collect()
}

/// The workload's name in results.
pub fn name(scenario: &Scenario) -> String {
    if !scenario.tenants.is_empty() {
        let names: Vec<&str> = scenario.tenants.iter().map(|tenant| &tenant.name[..]).collect();
        return names.join(", ");
    }
    match &scenario.source.generator {
        Some(choice) => choice.name.clone(),
        None => scenario
            .trace_path()
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    }
}
