//! Running scenarios, and the command line.

use crate::failure;
use crate::observe::Batches;
use crate::plugin;
use hybridsim_config::diagnostic::{Diagnostics, SourceText};
use hybridsim_engine::{EventRecord, EventSink, Fault};
use hybridsim_observe::{Detail, Pictures, RunResults};
use hybridsim_report::Run;
use hybridsim_report::json::pretty;
use hybridsim_simulation::exports::{self, RequestLog};
use hybridsim_simulation::run::{self as simulator, Options, RunError, RunOutput, RunProgress};
use hybridsim_simulation::scenario::{Input, Scenario};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;

/// The source of a scenario: a file, or a text with a name.
#[derive(FromPyObject)]
pub enum Source {
    Text(String, String),
    File(PathBuf),
}

/// Reads and checks a scenario with everything Python added to the registry.
pub fn read(
    py: Python<'_>,
    source: Source,
    sets: Vec<String>,
    trace: Option<PathBuf>,
) -> PyResult<Scenario> {
    input(source, &sets, trace)
        .and_then(|input| Scenario::check(input, &plugin::registry()))
        .map_err(|diagnostics| failure::scenario(py, &diagnostics))
}

/// Reads and checks a scenario whose workload is not used.
pub fn read_system(py: Python<'_>, source: Source, sets: Vec<String>) -> PyResult<Scenario> {
    input(source, &sets, None)
        .and_then(|input| Scenario::check_system(input, &plugin::registry()))
        .map_err(|diagnostics| failure::scenario(py, &diagnostics))
}

/// The input of a scenario, with its options.
pub fn input(
    source: Source,
    sets: &[String],
    trace: Option<PathBuf>,
) -> Result<Input, Diagnostics> {
    match source {
        Source::File(path) => Ok(Input { trace, ..Input::read(&path, sets)? }),
        Source::Text(name, text) => {
            let source = SourceText { name, text };
            Ok(Input { source, base: PathBuf::new(), sets: sets.to_vec(), trace })
        }
    }
}

/// The callbacks and options of a run.
struct Listeners {
    detail: Detail,
    progress: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
    /// The file that lists every request.
    requests: Option<PathBuf>,
}

/// Passes the events of a run to the callback and the request log.
struct Sinks {
    batches: Option<Batches>,
    log: Option<RequestLog>,
}

impl EventSink for Sinks {
    fn take(&mut self, events: &[EventRecord]) {
        if let Some(batches) = &mut self.batches {
            batches.take(events);
        }
        if let Some(log) = &mut self.log {
            log.take(events);
        }
    }
}

/// A file that cannot be written.
struct Unwritten(PathBuf, std::io::Error);

/// Runs a scenario. Returns a dict with the results as JSON (`json`), what pictures are drawn from
/// as JSON (`pictures`), the `resolved` scenario, files for other tools by name (`files`), the
/// `fault` that ended it early as (kind, message), and the exception (`error`) Python code raised
/// meanwhile.
#[pyfunction]
#[pyo3(signature = (source, sets, trace, full, progress, observe, requests))]
#[expect(clippy::too_many_arguments, reason = "they are keywords of a Python function")]
pub fn run<'py>(
    py: Python<'py>,
    source: Source,
    sets: Vec<String>,
    trace: Option<PathBuf>,
    full: bool,
    progress: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
    requests: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    failure::guarded(|| {
        let detail = if full { Detail::Full } else { Detail::Bare };
        let scenario = read(py, source, sets, trace)?;
        let mut listeners = Listeners { detail, progress, observe, requests };
        let (done, raised) = failure::gather(|| {
            if plugin::uses_python(&scenario) {
                // Calls into Python are cheap while the interpreter is held, and it lets go of
                // itself in between.
                return simulate(&scenario, &mut listeners);
            }
            py.detach(|| simulate(&scenario, &mut listeners))
        });
        match done {
            Ok(Ok(done)) => outcome(py, &done, raised),
            Ok(Err(error)) => Err(refusal(py, &error, raised)),
            Err(Unwritten(path, error)) => {
                let message = format!("cannot write {}: {error}", path.display());
                Err(failure::raise(py, "Error", message))
            }
        }
    })
}

/// Runs a checked scenario in this thread; the machine lives and dies in here.
fn simulate(
    scenario: &Scenario,
    listeners: &mut Listeners,
) -> Result<Result<RunOutput, RunError>, Unwritten> {
    let path = listeners.requests.clone().unwrap_or_default();
    let unwritten = |error| Unwritten(path.clone(), error);
    let log = listeners.requests.as_deref().map(RequestLog::create).transpose();
    let log = log.map_err(unwritten)?;
    let mut sinks = Sinks { batches: listeners.observe.take().map(Batches::new), log };
    let listens = sinks.batches.is_some() || sinks.log.is_some();
    let mut on_progress = |now: &RunProgress| {
        let called = Python::attach(|py| {
            py.check_signals()?;
            match &listeners.progress {
                Some(progress) => {
                    progress.call1(py, (now.fraction, now.requests, now.now.as_ns())).map(|_| ())
                }
                None => Ok(()),
            }
        });
        if let Err(error) = called {
            failure::keep(error);
        }
        !failure::is_pending()
    };
    let options = Options {
        detail: listeners.detail,
        on_progress: Some(&mut on_progress),
        sink: listens.then_some(&mut sinks as &mut (dyn EventSink + Send)),
        ..Options::default()
    };
    let done = simulator::run(scenario, &plugin::registry(), options);
    if let Some(batches) = &mut sinks.batches {
        batches.flush();
    }
    match sinks.log.filter(|_| done.is_ok()) {
        Some(log) => log.finish().map(|()| done).map_err(unwritten),
        None => Ok(done),
    }
}

pub fn outcome<'py>(
    py: Python<'py>,
    done: &RunOutput,
    raised: Option<PyErr>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("json", pretty(&done.results))?;
    dict.set_item("pictures", done.pictures.as_ref().map(one_line))?;
    dict.set_item("resolved", &done.resolved)?;
    let files = PyDict::new(py);
    for (name, text) in exports::for_tools(done) {
        files.set_item(name, text)?;
    }
    dict.set_item("files", files)?;
    let fault = done.fault.as_ref().map(|fault| (kind(fault), fault.to_string()));
    dict.set_item("fault", fault)?;
    dict.set_item("error", raised.map(|error| error.into_value(py)))?;
    Ok(dict)
}

/// A run that could not begin; an exception in a policy's constructor is the cause.
pub fn refusal(py: Python<'_>, error: &RunError, raised: Option<PyErr>) -> PyErr {
    if let Some(raised) = &raised
        && failure::is_wish_to_stop(py, raised)
    {
        return raised.clone_ref(py);
    }
    let error = match error {
        RunError::Scenario(diagnostics) => failure::scenario(py, diagnostics),
        RunError::Trace(message) => failure::raise(py, "TraceError", message.as_str()),
    };
    error.set_cause(py, raised);
    error
}

fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::WrongData { .. } => "wrong-data",
        Fault::OutOfRange { .. } => "out-of-range",
        Fault::Device { .. }
        | Fault::PowerFailureUnsupported { .. }
        | Fault::UnverifiableAppend { .. } => "device",
        Fault::Policy { .. } | Fault::Plugin(_) => "policy",
        Fault::Workload(_) => "workload",
        Fault::Overload(_) => "overload",
        Fault::TimeExhausted => "time",
        Fault::Invariant(_) => "invariant",
        Fault::Interrupted => "interrupted",
    }
}

fn one_line(pictures: &Pictures) -> String {
    serde_json::to_string(pictures).expect("pictures are plain values")
}

/// The report of some runs, each given as results, pictures (both JSON) and resolved scenario.
#[pyfunction]
pub fn report_html(
    py: Python<'_>,
    title: &str,
    runs: Vec<(String, Option<String>, String)>,
) -> PyResult<String> {
    failure::guarded(|| {
        let wrong = |error: serde_json::Error| {
            failure::raise(py, "Error", format!("this is not the result of a run: {error}"))
        };
        let mut shown = Vec::with_capacity(runs.len());
        for (results, pictures, scenario_text) in runs {
            let results: RunResults = serde_json::from_str(&results).map_err(wrong)?;
            let pictures = pictures.map(|text| serde_json::from_str(&text)).transpose();
            shown.push(Run { results, pictures: pictures.map_err(wrong)?, scenario_text });
        }
        Ok(py.detach(|| hybridsim_report::html::page(title, &shown)))
    })
}

/// Runs the command line (program name first) and returns its exit code.
#[pyfunction]
pub fn cli(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    failure::guarded(|| {
        let mut registry = plugin::registry();
        registry.take_plugin_errors_from(failure::take_message);
        let (code, raised) = failure::gather(|| py.detach(|| hybridsim::cli(&registry, args)));
        if let Some(error) = raised {
            error.print(py);
        }
        Ok(code)
    })
}
