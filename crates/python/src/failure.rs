//! Errors on their way to Python, and Python's errors on their way through the simulator.

use hybridsim_config::diagnostic::Diagnostics;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The exception Python code raised inside a run; policies have no way to return it.
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Remembers what Python code raised inside the run of this thread. The first error counts.
pub fn keep(error: PyErr) {
    PENDING.with_borrow_mut(|pending| {
        pending.get_or_insert(error);
    });
}

/// Whether Python code raised something inside the run of this thread.
pub fn is_pending() -> bool {
    PENDING.with_borrow(Option::is_some)
}

/// What Python code raised inside the run of this thread, in words.
pub fn told() -> Option<String> {
    let words = |error: &PyErr| Python::attach(|_| format!("Python code ended the run: {error}"));
    PENDING.with_borrow(|pending| pending.as_ref().map(words))
}

/// Takes what Python code raised.
pub fn take() -> Option<PyErr> {
    PENDING.take()
}

/// Runs `act` with nothing pending; gives what it returned and what was raised meanwhile.
///
/// Runs inside of runs (a policy that simulates) do not see each other's errors.
pub fn gather<T>(act: impl FnOnce() -> T) -> (T, Option<PyErr>) {
    let outer = take();
    let result = act();
    let inner = take();
    PENDING.set(outer);
    (result, inner)
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
