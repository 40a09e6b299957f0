//! Cache admission policies written in Python.

use super::object::PythonObject;
use super::request::Request;
use hybridsim_cache::admission::{Admission, AdmissionEntry};
use hybridsim_cache::policy_state::PolicyState;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use pyo3::prelude::*;

/// The entry of a Python class.
pub fn entry(description: Description) -> AdmissionEntry {
    AdmissionEntry { description, build }
}

fn build(settings: &Settings) -> Result<Box<dyn Admission>, Vec<Problem>> {
    let object = Python::attach(|py| PythonObject::new(py, "admission", settings, ()))?;
    Ok(Box::new(PythonAdmission(object)))
}

struct PythonAdmission(PythonObject);

impl PolicyState for PythonAdmission {
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Err(self.0.cannot_be_saved())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(self.0.cannot_be_saved())
    }
}

impl Admission for PythonAdmission {
    fn admit(&mut self, request: &hybridsim_engine::Request, pages: u64, cached: u64) -> bool {
        Python::attach(|py| {
            let request = Request::new(*request, 0, 0);
            self.0.ask(py, "admit", (request, pages, cached), |answer| answer.extract())
        })
        .unwrap_or(true)
    }
}
