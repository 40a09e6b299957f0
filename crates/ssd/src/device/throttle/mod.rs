//! Throttling: what delays requests before the device serves them.

mod thermal;

use super::{BackEnd, DELAYED, SsdDevice, Translation};
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    ComponentInfo, Ctx, Loader, Request, RequestId, Saver, SimTime, StateError,
};
use hybridsim_flash::event::FlashEvent;
use std::collections::VecDeque;

/// Decides when the next request may begin. It never sees the machine: its state is brought up to
/// date when something happens, and it reports changes with the time since they took place.
pub trait Throttle {
    /// Brings the state up to `now`, of a device that is active until `busy_until` and whose
    /// operations since the last call take `joules`, and emits changes.
    fn advance(&mut self, at: (SimTime, SimTime), joules: f64, emit: &mut dyn FnMut(FlashEvent));

    /// Emits the state at the start or the end of a run, at the same instants as
    /// [`Throttle::advance`].
    fn report(
        &mut self,
        end: End,
        at: (SimTime, SimTime),
        joules: f64,
        emit: &mut dyn FnMut(FlashEvent),
    );

    /// The earliest time at which the next request may begin, or the throttle changes so that it
    /// has to be asked again; `None` for now.
    fn held_until(&self, now: SimTime, busy_until: SimTime) -> Option<SimTime>;

    /// `request` begins now.
    fn begin(&mut self, now: SimTime, request: &Request);

    /// The temperature, if it is simulated.
    fn celsius(&self) -> Option<f64> {
        None
    }

    fn save(&self, to: &mut Saver);

    /// # Errors
    /// When the state is of another throttle.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;
}

/// An end of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Start,
    Finish,
}

/// A throttle, if there is one, or all problems with its parameters.
pub type BuiltThrottle = Result<Option<Box<dyn Throttle>>, Vec<Problem>>;

/// A registered throttle.
#[derive(Clone, Copy)]
pub struct ThrottleEntry {
    pub description: Description,
    /// Builds one for a device with these powers and energies. Problems name keys of the device.
    pub build: fn(&Settings, &ComponentInfo) -> BuiltThrottle,
}

hybridsim_config::entry!(ThrottleEntry, "throttle");

/// All throttles.
pub const ENTRIES: &[ThrottleEntry] = &[NONE, thermal::ENTRY];

const NONE: ThrottleEntry = ThrottleEntry {
    description: Description {
        name: "none",
        summary: "No temperature and no throttling.",
        origin: "",
        params: &[],
    },
    build: |_, _| Ok(None),
};

/// A throttle with the requests that it delays.
pub struct Throttled {
    model: Box<dyn Throttle>,
    /// In order of arrival; a timer is set for the first.
    delayed: VecDeque<(RequestId, Request)>,
    timer: Option<SimTime>,
}

impl Throttled {
    pub fn new(model: Box<dyn Throttle>) -> Self {
        Self { model, delayed: VecDeque::new(), timer: None }
    }

    pub(super) fn celsius(&self) -> Option<f64> {
        self.model.celsius()
    }

    pub(super) fn holds_requests(&self) -> bool {
        !self.delayed.is_empty()
    }

    /// Sets the timer to `until`, unless it expires before.
    fn set_timer(&mut self, ctx: &mut Ctx<'_>, until: SimTime) {
        let pending = self.timer.filter(|timer| *timer > ctx.now());
        if pending.is_none_or(|timer| until < timer) {
            self.timer = Some(until);
            ctx.wake_at(until, DELAYED);
        }
    }

    /// The power failed: delayed requests never complete, and timers are lost.
    pub(super) fn power_lost(&mut self) {
        self.delayed.clear();
        self.timer = None;
    }

    pub(super) fn save(&self, to: &mut Saver) {
        self.model.save(to);
        to.put(&self.timer);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.model.restore(from)?;
        self.timer = from.take()?;
        Ok(())
    }
}

impl<T: Translation> SsdDevice<T> {
    /// Brings the throttle up to now.
    #[cold]
    pub(super) fn advance_throttle(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(throttled) = &mut self.front.throttled {
            let (at, joules) =
                ((ctx.now(), self.state.busy_until), self.translation.back_end().take_energy());
            throttled.model.advance(at, joules, &mut |event| ctx.emit(event));
        }
    }

    /// Reports the state of the throttle at the start or the end of a run.
    pub(super) fn report_throttle(&mut self, ctx: &mut Ctx<'_>, end: End) {
        if let Some(throttled) = &mut self.front.throttled {
            let (at, joules) =
                ((ctx.now(), self.state.busy_until), self.translation.back_end().take_energy());
            throttled.model.report(end, at, joules, &mut |event| ctx.emit(event));
        }
    }

    /// A request arrives at a device with a throttle, which may delay it.
    #[cold]
    pub(super) fn arrive_throttled(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if let Some(throttled) = &mut self.front.throttled {
            throttled.delayed.push_back((id, *request));
        }
        self.serve_delayed(ctx);
    }

    /// Serves the requests that the throttle delays no longer.
    #[cold]
    pub(super) fn serve_delayed(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            self.advance_throttle(ctx);
            let Some(throttled) = &mut self.front.throttled else { return };
            if throttled.delayed.is_empty() {
                return;
            }
            if let Some(until) = throttled.model.held_until(ctx.now(), self.state.busy_until) {
                return throttled.set_timer(ctx, until);
            }
            if let Some((id, request)) = throttled.delayed.pop_front() {
                throttled.model.begin(ctx.now(), &request);
                self.serve(ctx, id, &request);
            }
        }
    }
}
