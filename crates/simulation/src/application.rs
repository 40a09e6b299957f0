//! Writes of an application through the store that a workload models.

use hybridsim_engine::{Op, Request, Source};
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
    /// The writes of the application of `source` after its first `warmup` requests, and the meter
    /// that counts them.
    pub fn of(source: &dyn Source, warmup: u64) -> (Self, Option<ApplicationMeter>) {
        if source.application_bytes().is_none() {
            return (Self(None), None);
        }
        let counted = Rc::new(Cell::new(Written::default()));
        let meter = ApplicationMeter { warmup, before: 0, store: 0, counted: counted.clone() };
        (Self(Some(counted)), Some(meter))
    }

    /// The result, with the write amplification of the system, where it is known.
    pub fn result(&self, of_system: Option<f64>) -> Option<Application> {
        let Written { application, store } = self.0.as_ref()?.get();
        Some(Application::new(application, store, of_system))
    }
}

/// Counts the writes of a workload with an application.
pub(crate) struct ApplicationMeter {
    /// Requests left that are not counted.
    warmup: u64,
    /// Bytes of the application in them.
    before: u64,
    store: u64,
    counted: Rc<Cell<Written>>,
}

impl ApplicationMeter {
    /// Counts `request`; the application had written `application` bytes before it was drawn, since
    /// a store then goes on to the next.
    pub fn count(&mut self, application: u64, request: &Request) {
        if self.warmup > 0 {
            self.warmup -= 1;
            self.before = application;
            return;
        }
        self.store += if request.op == Op::Write { request.bytes() } else { 0 };
        self.counted.set(Written { application: application - self.before, store: self.store });
    }
}
