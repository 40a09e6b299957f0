//! A policy's Python object, and calls to it.

use super::construct;
use crate::failure;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::params::field;
use hybridsim_engine::StateError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A Python object. After an exception it is not called any more, and the run ends soon.
pub struct PythonObject {
    object: Py<PyAny>,
    class: String,
}

impl PythonObject {
    /// An object of the class that `settings` name.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn new<'py>(
        py: Python<'py>,
        category: &str,
        settings: &Settings,
        arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    ) -> Result<Self, Vec<Problem>> {
        let object = construct(py, category, "", settings, arguments)?;
        Ok(Self { object, class: field(settings, "class") })
    }

    /// Calls `method` and reads what it returns; `None` after an exception.
    pub fn ask<'py, T>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if failure::is_pending() {
            return None;
        }
        let arguments = arguments.into_pyobject(py).map_err(Into::into);
        let returned =
            arguments.and_then(|arguments| self.object.bind(py).call_method1(method, arguments));
        let answer = returned.and_then(|value| {
            read(&value).map_err(|error| self.wrong_answer(py, method, &value, &error))
        });
        answer.map_err(failure::keep).ok()
    }

    /// Calls `method`, whose result is ignored.
    pub fn notify(
        &self,
        method: &str,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Py<PyTuple>>,
    ) {
        let _: Option<()> = Python::attach(|py| {
            let arguments = arguments(py).map_err(failure::keep).ok()?;
            self.ask(py, method, arguments.into_bound(py), |_| Ok(()))
        });
    }

    /// The attribute `name`; `None` where it is missing or `None`.
    ///
    /// # Errors
    /// Fails when it is something else than expected.
    pub fn attribute<T>(&self, py: Python<'_>, name: &str) -> Result<Option<T>, Vec<Problem>>
    where
        T: for<'a> FromPyObjectOwned<'a>,
    {
        let value = self.object.bind(py).getattr_opt(name).ok().flatten();
        let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
        value.extract::<T>().map(Some).map_err(|error| {
            let error: PyErr = error.into();
            let message = format!("{}.{name}: {}", self.class, error.value(py));
            vec![Problem::new("", message)]
        })
    }

    /// The error of a method that returned something else than expected.
    fn wrong_answer(
        &self,
        py: Python<'_>,
        method: &str,
        value: &Bound<'_, PyAny>,
        error: &PyErr,
    ) -> PyErr {
        let found = value.repr().map_or_else(|_| "?".to_owned(), |repr| repr.to_string());
        let message = format!("{}.{method} returned {found}: {}", self.class, error.value(py));
        failure::raise(py, "Error", message)
    }

    /// Ends the run with `message`.
    pub fn give_up(&self, method: &str, message: &str) {
        let message = format!("{}.{method}: {message}", self.class);
        Python::attach(|py| failure::keep(failure::raise(py, "Error", message)));
    }

    /// Python objects are not saved.
    pub fn cannot_be_saved(&self) -> StateError {
        StateError(format!("{} is written in Python, whose objects are not saved", self.class))
    }
}
