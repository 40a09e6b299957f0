//! Running a machine step by step, with requests that come from outside while it runs.
//!
//! The root sets no timer for its next arrival, which it cannot know; it reserves the place that
//! timer would have ([`super::Ctx::reserve_wake`]). Ties between an arrival and other timers of the
//! same instant are therefore broken as in a run that had read the arrival from a trace, and both
//! give the same results.

use super::Machine;
use super::traffic::Timer;
use crate::event::{ComponentId, EventSink};
use crate::fault::Fault;
use crate::time::{SimDuration, SimTime};
use crate::timer::TimerPhase;

const ROOT: ComponentId = ComponentId(0);

impl Machine {
    /// Wakes the root at `time`, with token 0, at the place it reserved. Returns whether it had
    /// reserved one; otherwise it has set a timer itself.
    pub fn wake_root(&mut self, time: SimTime) -> bool {
        debug_assert!(time >= self.core.now, "wake in the past");
        let Some(reserved) = self.core.reserved.take() else { return false };
        self.core.timers.push_reserved(time, TimerPhase::Wake, reserved, Timer::Wake(ROOT, 0));
        true
    }

    /// Handles the earliest pending event, the messages of the start included; returns `false`
    /// when none is pending. With `before`, only an event that precedes an arrival at that time.
    ///
    /// # Errors
    /// The first [`Fault`] a component reported.
    pub fn step(
        &mut self,
        before: Option<SimTime>,
        sink: &mut dyn EventSink,
    ) -> Result<bool, Fault> {
        if !self.started {
            self.start();
            self.core.arrivals_passed = true;
            return self.drain(sink).map(|()| true);
        }
        let core = &mut self.core;
        let Some(first) = core.timers.first_time() else { return Ok(false) };
        // Where the root has set its timer itself, that timer is pending.
        let reserved = core.reserved.unwrap_or(0);
        if before.is_some_and(|it| !core.timers.first_precedes(it, TimerPhase::Wake, reserved)) {
            return Ok(false);
        }
        let passes = !core.timers.first_precedes(first, TimerPhase::Wake, reserved);
        core.arrivals_passed = passes || (core.arrivals_passed && first == core.now);
        let Some((time, event)) = core.timers.pop() else { return Ok(false) };
        self.handled += 1;
        self.handle(time, event, sink).map(|()| true)
    }

    /// The earliest time a request from outside can still arrive.
    pub fn earliest_arrival(&self) -> SimTime {
        let passed = u64::from(self.core.arrivals_passed);
        self.core.now + SimDuration::from_ns(passed)
    }

    /// The time of the earliest pending event.
    pub fn next_event(&mut self) -> Option<SimTime> {
        self.core.timers.first_time()
    }

    /// The time passes up to `time`, with no event pending before it.
    pub fn pass_time(&mut self, time: SimTime) {
        let nothing = !self.core.timers.first_precedes(time, TimerPhase::Fault, 0);
        debug_assert!(nothing, "events are pending before {time}");
        if time > self.core.now {
            (self.core.now, self.core.arrivals_passed) = (time, false);
        }
    }

    /// To be called before the first step: the power may fail ([`Machine::cut_power_now`]).
    pub fn power_may_fail(&mut self) {
        self.core.power_fails = true;
    }

    /// The power fails now and comes back at once; see [`Machine::fail_power`].
    ///
    /// # Errors
    /// A component that does not model power failures.
    pub fn cut_power_now(&mut self, sink: &mut dyn EventSink) -> Result<(), Fault> {
        (self.core.reserved, self.core.arrivals_passed) = (None, true);
        self.cut_power()?;
        self.drain(sink)
    }

    /// Ends a run by steps: components report the time they have not reported yet.
    ///
    /// # Errors
    /// The first [`Fault`] a component reported.
    pub fn end(&mut self, sink: &mut dyn EventSink) -> Result<(), Fault> {
        let ended = self.finish_components();
        self.flush_events(sink);
        ended
    }

    /// Passes all events so far to the sink.
    pub fn flush_events(&mut self, sink: &mut dyn EventSink) {
        sink.take(&self.core.events);
        self.core.events.clear();
    }
}
