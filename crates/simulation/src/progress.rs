//! The progress of a run.

use crate::application::ApplicationMeter;
use hybridsim_engine::{Arrival, Request, SimTime, Source};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use web_time::Instant;

/// The state of a run, for progress displays.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Share of the workload delivered, where known.
    pub fraction: Option<f64>,
    /// Requests delivered.
    pub requests: u64,
    /// Simulated time.
    pub now: SimTime,
    /// Whether a device is being preconditioned; `fraction` is then of that device.
    pub preparing: bool,
}

impl RunProgress {
    /// A device is being preconditioned, of which `share` is done.
    pub(crate) fn preparing(share: f64) -> Self {
        Self { fraction: Some(share), requests: 0, now: SimTime::ZERO, preparing: true }
    }
}

/// Receives the progress of a run; returns `false` to interrupt it.
pub type OnProgress<'a> = dyn FnMut(&RunProgress) -> bool + 'a;

const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Decides by the real time when progress is reported and interrupts are looked for.
#[derive(Default)]
pub(crate) struct ReportTimer(Option<Instant>);

impl ReportTimer {
    /// Whether a report is due, as is the first.
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = self.0.is_none_or(|last| now.duration_since(last) >= REPORT_EVERY);
        if due {
            self.0 = Some(now);
        }
        due
    }
}

/// The progress of a workload, shared between a [`MeteredSource`] and the run.
#[derive(Clone, Default)]
pub(crate) struct WorkloadProgress(Rc<Shared>);

#[derive(Default)]
struct Shared {
    requests: Cell<u64>,
    fraction: Cell<Option<f64>>,
}

impl WorkloadProgress {
    pub fn at(&self, now: SimTime) -> RunProgress {
        let (requests, fraction) = (self.0.requests.get(), self.0.fraction.get());
        RunProgress { fraction, requests, now, preparing: false }
    }
}

/// Requests between two updates; querying the source for each would cost more than replaying.
const UPDATE_EVERY: u64 = 256;

/// A source that reports its progress, and rejects an empty workload.
pub(crate) struct MeteredSource {
    inner: Box<dyn Source>,
    requests: u64,
    progress: WorkloadProgress,
    application: Option<ApplicationMeter>,
}

impl MeteredSource {
    pub fn new(inner: Box<dyn Source>, progress: WorkloadProgress) -> Self {
        Self { inner, requests: 0, progress, application: None }
    }

    /// Counts the writes of the workload's application as well.
    #[must_use]
    pub fn with_application(self, application: Option<ApplicationMeter>) -> Self {
        Self { application, ..self }
    }

    /// Counts `read` more requests; without any so far, the workload has ended too early.
    fn count(&mut self, read: usize) -> Result<(), String> {
        let before = self.requests;
        self.requests += read as u64;
        if self.requests == 0 {
            // A run without requests would succeed with empty statistics.
            return Err("the workload has no requests; check the trace and the slice (`first`, \
                        `count`, `from`, `until`, `volumes`)"
                .to_owned());
        }
        if self.requests / UPDATE_EVERY > before / UPDATE_EVERY {
            self.progress.0.requests.set(self.requests);
            self.progress.0.fraction.set(self.inner.progress());
        }
        Ok(())
    }
}

impl Source for MeteredSource {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let written = self.application.as_ref().and_then(|_| self.inner.application_bytes());
        let next = self.inner.next()?;
        self.count(usize::from(next.is_some()))?;
        if let (Some(meter), Some(written), Some(arrival)) = (&mut self.application, written, &next)
        {
            meter.count(written, &arrival.request);
        }
        Ok(next)
    }

    fn read(&mut self, count: usize, to: &mut VecDeque<Arrival>) -> Result<bool, String> {
        if self.application.is_some() {
            for _ in 0..count {
                let Some(arrival) = self.next()? else { return Ok(false) };
                to.push_back(arrival);
            }
            return Ok(true);
        }
        let before = to.len();
        let more = self.inner.read(count, to)?;
        self.count(to.len() - before)?;
        Ok(more)
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    fn reads_ahead(&self) -> bool {
        self.inner.reads_ahead()
    }

    fn waits(&self) -> bool {
        self.inner.waits()
    }

    fn take_back(&mut self) {
        self.requests = self.requests.saturating_sub(1);
        self.inner.take_back();
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        self.inner.completed(request, now);
    }
}
