//! Writes of an application through the store that a workload models.

use hybridsim_engine::{Arrival, Op, Request, SECTOR_BYTES, SimTime, Source};
use hybridsim_observe::results::Application;
use std::cell::Cell;
use std::rc::Rc;

/// Bytes written so far by the application, and by its store to the system.
#[derive(Clone, Copy, Default)]
struct Written {
    application: u64,
    store: u64,
}

/// The writes of the application of a workload, if it has one.
#[derive(Clone, Default)]
pub(crate) struct ApplicationWrites(Option<Rc<Cell<Written>>>);

impl ApplicationWrites {
    /// Counts the writes of `source` after its first `warmup` requests.
    pub fn of(source: Box<dyn Source>, warmup: u64) -> (Box<dyn Source>, Self) {
        if source.application_bytes().is_none() {
            return (source, Self(None));
        }
        let counted = Rc::new(Cell::new(Written::default()));
        let shared = counted.clone();
        let metered = Metered { inner: source, warmup, before: 0, store: 0, counted: shared };
        (Box::new(metered), Self(Some(counted)))
    }

    /// The result, with the write amplification of the system, where it is known.
    pub fn result(&self, of_system: Option<f64>) -> Option<Application> {
        let Written { application, store } = self.0.as_ref()?.get();
        Some(Application::new(application, store, of_system))
    }
}

struct Metered {
    inner: Box<dyn Source>,
    /// Requests left that are not counted.
    warmup: u64,
    /// Bytes of the application in them.
    before: u64,
    store: u64,
    counted: Rc<Cell<Written>>,
}

impl Source for Metered {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        // Before the request is drawn, since the source then goes on to the one after it.
        let application = self.inner.application_bytes().unwrap_or(0);
        let next = self.inner.next()?;
        if let Some(Arrival { request, .. }) = next {
            if self.warmup > 0 {
                self.warmup -= 1;
                self.before = application;
            } else {
                let written = if request.op == Op::Write { request.sectors } else { 0 };
                self.store += u64::from(written) * SECTOR_BYTES;
                let application = application - self.before;
                self.counted.set(Written { application, store: self.store });
            }
        }
        Ok(next)
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    fn application_bytes(&self) -> Option<u64> {
        self.inner.application_bytes()
    }

    fn has_times(&self) -> bool {
        self.inner.has_times()
    }

    fn reads_ahead(&self) -> bool {
        self.inner.reads_ahead()
    }

    fn waits(&self) -> bool {
        self.inner.waits()
    }

    fn take_back(&mut self) {
        self.inner.take_back();
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        self.inner.completed(request, now);
    }
}
