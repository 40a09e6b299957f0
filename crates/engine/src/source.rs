//! Where requests come from, as the host sees it.

use crate::request::Request;
use crate::time::SimTime;

/// A request and the time the workload wants it at.
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
    /// A located, actionable sentence when the workload cannot go on.
    fn next(&mut self) -> Result<Option<Arrival>, String>;

    /// How much has been delivered, 0 to 1, where that is known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Whether requests do not depend on what [`Source::completed`] told or on when they are asked
    /// for, so that some may be read ahead of their turn.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// Whether the end that [`Source::next`] told is none: there will be more after a completion.
    /// Such a workload is taken in an open loop only.
    fn waits(&self) -> bool {
        false
    }

    /// What was delivered last has not arrived yet and is put back, because a completion may let
    /// something else come first. Only called while [`Source::waits`] or for the last request of
    /// a workload that waited.
    fn take_back(&mut self) {}

    /// Told when a request of the workload is done, for workloads that think between requests.
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
