//! Cache cleanup policies written in Python.

use super::object::PythonObject;
use hybridsim_cache::cleanup::{CacheState, Cleanup, CleanupEntry, Plan};
use hybridsim_cache::policy_state::PolicyState;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, SimDuration, StateError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The entry of a Python class.
pub fn entry(description: Description) -> CleanupEntry {
    CleanupEntry { description, build }
}

fn build(settings: &Settings, pages: u32) -> Result<Box<dyn Cleanup>, Vec<Problem>> {
    Python::attach(|py| {
        let object = PythonObject::new(py, "cleanup", settings, (pages,))?;
        let free_min = object.attribute(py, "free_min")?.unwrap_or(0);
        let idle_after: Option<u64> = object.attribute(py, "idle_after_ns")?;
        let idle_after = idle_after.map(SimDuration::from_ns);
        Ok(Box::new(PythonCleanup { object, free_min, idle_after }) as Box<dyn Cleanup>)
    })
}

struct PythonCleanup {
    object: PythonObject,
    free_min: u32,
    idle_after: Option<SimDuration>,
}

impl PythonCleanup {
    fn plan(&self, method: &str, state: CacheState) -> Option<Plan> {
        Python::attach(|py| self.object.ask(py, method, (state.free,), optional_plan))?
    }
}

fn optional_plan(answer: &Bound<'_, PyAny>) -> PyResult<Option<Plan>> {
    if answer.is_none() { Ok(None) } else { plan(answer).map(Some) }
}

/// A `hybridsim.Plan`.
fn plan(answer: &Bound<'_, PyAny>) -> PyResult<Plan> {
    let class = answer.py().import("hybridsim.plugins")?.getattr("Plan")?;
    if !answer.is_instance(&class)? {
        return Err(PyTypeError::new_err("a hybridsim.Plan is expected"));
    }
    let pages: Option<u32> = answer.getattr("pages")?.extract()?;
    if pages == Some(0) {
        return Err(PyValueError::new_err("a plan has to destage at least one page"));
    }
    let flag = |name| answer.getattr(name)?.extract();
    Ok(Plan {
        pages: pages.unwrap_or(Plan::ALL),
        exclusive: flag("exclusive")?,
        yields: flag("yields")?,
    })
}

impl PolicyState for PythonCleanup {
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Err(self.object.cannot_be_saved())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(self.object.cannot_be_saved())
    }
}

impl Cleanup for PythonCleanup {
    fn on_demand(&mut self, state: CacheState, needed: u32) -> Plan {
        let answer =
            Python::attach(|py| self.object.ask(py, "on_demand", (state.free, needed), plan));
        answer.unwrap_or(Plan { pages: Plan::ALL, exclusive: true, yields: false })
    }

    fn free_min(&self) -> u32 {
        self.free_min
    }

    fn background(&mut self, state: CacheState) -> Option<Plan> {
        self.plan("background", state)
    }

    fn idle_after(&self) -> Option<SimDuration> {
        self.idle_after
    }

    fn idle(&mut self, state: CacheState) -> Option<Plan> {
        self.plan("idle", state)
    }
}
