//! I/O schedulers written in Python.

use super::object::PythonObject;
use super::request::Request;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The entry of a Python class.
pub fn entry(description: Description) -> SchedulerEntry {
    SchedulerEntry { description, build }
}

fn build(settings: &Settings) -> Built<dyn Scheduler> {
    Python::attach(|py| {
        let object = PythonObject::new(py, "scheduler", settings, ())?;
        let estimates = object.attribute(py, "needs_positioning")?.unwrap_or(false);
        let (queue, pushed) = (BTreeMap::new(), 0);
        Ok(Box::new(PythonScheduler { object, queue, pushed, estimates }) as Box<dyn Scheduler>)
    })
}

struct PythonScheduler {
    object: PythonObject,
    /// The queued requests by the number Python knows them by, which follows arrivals.
    queue: BTreeMap<u64, Queued>,
    pushed: u64,
    /// Whether positioning times are estimated for every decision.
    estimates: bool,
}

/// Position of the head at a decision.
#[pyclass(frozen, module = "hybridsim", name = "Head")]
pub struct PythonHead {
    #[pyo3(get)]
    now_ns: u64,
    #[pyo3(get)]
    last_sector: u64,
    positioning_ns: Option<BTreeMap<u64, u64>>,
}

#[pymethods]
impl PythonHead {
    /// Time until the first sector of a queued request is under the head; `None` for devices
    /// without a moving head, and unless the class sets `needs_positioning`.
    fn positioning_ns(&self, request: &Request) -> PyResult<Option<u64>> {
        let Some(estimates) = &self.positioning_ns else { return Ok(None) };
        let estimate = estimates.get(&request.key).copied();
        let missing = || PyValueError::new_err("this request is not in the queue");
        estimate.map(Some).ok_or_else(missing)
    }
}

impl PythonScheduler {
    fn head(&self, head: &Head<'_>) -> PythonHead {
        let positioner = head.positioner.filter(|_| self.estimates);
        let estimate =
            |(key, queued): (&u64, &Queued),
             positioner: &dyn hybridsim_engine::schedule::Positioner| {
                (*key, positioner.positioning(head.now, head.last, &queued.request).as_ns())
            };
        PythonHead {
            now_ns: head.now.as_ns(),
            last_sector: head.last.0,
            positioning_ns: positioner
                .map(|positioner| self.queue.iter().map(|it| estimate(it, positioner)).collect()),
        }
    }
}

impl Scheduler for PythonScheduler {
    fn push(&mut self, item: Queued) {
        let key = self.pushed;
        self.pushed += 1;
        self.queue.insert(key, item);
        self.object.notify("push", |py| {
            let request = Request::new(item.request, key, item.since.as_ns());
            Ok((request,).into_pyobject(py)?.unbind())
        });
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        if self.queue.is_empty() {
            return None;
        }
        let head = self.head(head);
        let chosen = Python::attach(|py| {
            self.object.ask(py, "pop", (head,), |answer| Ok(answer.cast::<Request>()?.get().key))
        });
        if let Some(queued) = chosen.and_then(|key| self.queue.remove(&key)) {
            return Some(queued);
        }
        if chosen.is_some() {
            self.object.give_up("pop", "the request it returned is not in the queue");
        }
        // The run is about to end; until then requests are served in order of arrival.
        self.queue.pop_first().map(|(_, queued)| queued)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn sees_all(&self) -> bool {
        true
    }
}
