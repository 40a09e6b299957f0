//! Errors on their way to Python, and Python's errors on their way through the simulator.

use hybridsim_config::diagnostic::Diagnostics;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exceptions that Python code raised in callbacks, whose interfaces cannot return them.
struct Raised {
    /// Ends the current run.
    pending: Option<PyErr>,
    /// The first that ended a run, kept for its traceback.
    reported: Option<PyErr>,
}

thread_local! {
    static RAISED: RefCell<Raised> =
        const { RefCell::new(Raised { pending: None, reported: None }) };
}

/// Keeps an exception until the run of this thread ends; later ones are dropped.
pub fn keep(error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.pending.get_or_insert(error);
    });
}

/// Whether Python code raised an exception during the run of this thread.
pub fn is_pending() -> bool {
    RAISED.with_borrow(|raised| raised.pending.is_some())
}

/// Returns and clears the exception of this thread's run as a message; [`gather`] returns the
/// exception itself.
pub fn take_message() -> Option<String> {
    let error = RAISED.with_borrow_mut(|raised| raised.pending.take())?;
    let message = Python::attach(|_| format!("Python code ended the run: {error}"));
    RAISED.with_borrow_mut(|raised| {
        raised.reported.get_or_insert(error);
    });
    Some(message)
}

/// Runs `act` with nothing pending; returns its result and the first exception raised in it.
///
/// A policy that runs a simulation does not see that simulation's exceptions.
pub fn gather<T>(act: impl FnOnce() -> T) -> (T, Option<PyErr>) {
    let outer = RAISED.replace(Raised { pending: None, reported: None });
    let result = act();
    let Raised { pending, reported } = RAISED.replace(outer);
    (result, reported.or(pending))
}

/// Runs `act`; a panic in it becomes an exception.
pub fn guarded<T>(act: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| Err(from_panic(&*panic)))
}

fn from_panic(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let message = format!("a defect of the simulator, please report it: {text}");
    Python::attach(|py| raise(py, "Error", message))
}

/// An exception of class `name` of `hybridsim.errors`.
pub fn raise(py: Python<'_>, name: &str, message: impl Into<String>) -> PyErr {
    let message: String = message.into();
    let class = py.import("hybridsim.errors").and_then(|errors| errors.getattr(name));
    let made = class.and_then(|class| class.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A `ScenarioError` with every problem.
pub fn scenario(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let errors = py.import("hybridsim.errors")?;
        let class = errors.getattr("Problem")?;
        let mut problems = Vec::with_capacity(diagnostics.list.len());
        for problem in &diagnostics.list {
            let span = problem.span.as_ref();
            let file = span.map(|span| diagnostics.sources[span.file].name.as_str());
            let line = span.map(|span| diagnostics.position(span).0);
            let fields = (&problem.key, &problem.message, &problem.help, file, line);
            problems.push(class.call1(fields)?);
        }
        let error = errors.getattr("ScenarioError")?.call1((diagnostics.to_string(), problems))?;
        Ok(PyErr::from_value(error))
    };
    make().unwrap_or_else(|error| error)
}

/// Whether an error is a wish to stop (`KeyboardInterrupt`, `SystemExit`) and not a failure.
pub fn is_wish_to_stop(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}
