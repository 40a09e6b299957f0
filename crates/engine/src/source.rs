//! The interface of workloads: sources of requests for the host.

use crate::request::Request;
use crate::time::SimTime;
use std::collections::VecDeque;

/// A request and its arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the start of the workload; a closed loop ignores it.
    pub at: SimTime,
    /// The request.
    pub request: Request,
}

/// A workload: a trace reader, a generator, or a chain of them.
pub trait Source {
    /// The next request, `None` at the end. Times never decrease.
    ///
    /// # Errors
    /// A message with position and remedy when the workload cannot continue.
    fn next(&mut self) -> Result<Option<Arrival>, String>;

    /// Appends the next requests to `to`, up to `count` of them; returns `false` at the end.
    ///
    /// # Errors
    /// As [`Source::next`]; the requests before the error have been appended.
    fn read(&mut self, count: usize, to: &mut VecDeque<Arrival>) -> Result<bool, String> {
        for _ in 0..count {
            let Some(arrival) = self.next()? else { return Ok(false) };
            to.push_back(arrival);
        }
        Ok(true)
    }

    /// The share delivered, 0 to 1, where known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Bytes that applications have written so far to the store that the workload models, such as
    /// a database; `None` where the requests are those of the application.
    fn application_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether requests have arrival times; otherwise all arrive at time 0, for a closed loop.
    fn has_times(&self) -> bool {
        true
    }

    /// Whether requests are independent of [`Source::completed`] and of when they are read, so that
    /// several may be read ahead.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// Whether an end returned by [`Source::next`] is temporary: more requests follow a completion.
    /// Such a workload runs in an open loop only.
    fn waits(&self) -> bool {
        false
    }

    /// Returns the request delivered last, which has not arrived yet, because a completion may
    /// cause an earlier one. Only called while [`Source::waits`] or for the last request of
    /// a workload that waited.
    fn take_back(&mut self) {}

    /// Called when a request of the workload completes, for workloads with think time.
    fn completed(&mut self, _request: &Request, _now: SimTime) {}
}

/// Delivers a list; for tests.
#[derive(Debug, Clone)]
pub struct ListSource {
    items: Vec<Arrival>,
    at: usize,
}

impl ListSource {
    /// The arrivals, in order of time.
    pub fn new(items: Vec<Arrival>) -> Self {
        Self { items, at: 0 }
    }
}

impl Source for ListSource {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let item = self.items.get(self.at).copied();
        self.at += usize::from(item.is_some());
        Ok(item)
    }

    fn progress(&self) -> Option<f64> {
        Some(self.at as f64 / self.items.len().max(1) as f64)
    }

    fn reads_ahead(&self) -> bool {
        true
    }
}
