//! Power states of a drive, and spin-down after an idle time-out or at the host's command.
//!
//! The drive plans its states ahead (seek until t1, read until t2); they are reported once they
//! have passed. Unplanned time is idle and, after the idle time-out, spin-down and standby. Without
//! any timer the times in all states sum to the run time.

use hybridsim_engine::event::Times;
use hybridsim_engine::{Ctx, PowerState, SimDuration, SimTime};
use serde::{Deserialize, Serialize};

/// Idle time after which a drive stops its spindle, and the times to stop and to start it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SpinDown {
    /// Idle time before the spindle stops; `None` for never.
    pub after: Option<SimDuration>,
    /// From ready to standby.
    pub down: SimDuration,
    /// From standby to ready.
    pub up: SimDuration,
}

/// Past and planned power states of a drive.
#[derive(Debug, Serialize, Deserialize)]
pub struct StateClock {
    spin_down: SpinDown,
    plan: Vec<(PowerState, SimTime)>,
    /// Index of the next planned state to report.
    at: usize,
    reported: SimTime,
    /// End of the plan; idle from then on.
    idle_from: SimTime,
    /// Spun down at the host's command: standby from the end of the plan on, not idle.
    stopped: bool,
    /// End of the last spin-up.
    turns_from: SimTime,
}

impl StateClock {
    /// A drive ready and idle at time zero.
    pub fn new(spin_down: SpinDown) -> Self {
        let plan = Vec::with_capacity(16);
        let zero = SimTime::ZERO;
        let (reported, idle_from, turns_from) = (zero, zero, zero);
        Self { spin_down, plan, at: 0, reported, idle_from, stopped: false, turns_from }
    }

    /// After what is planned so far, the drive is in `state` until `until`.
    #[inline]
    pub fn plan(&mut self, state: PowerState, until: SimTime) {
        if until > self.idle_from {
            self.plan.push((state, until));
            self.idle_from = until;
        }
    }

    /// The mechanism is needed at `time`: plans the states of an idle drive until then and returns
    /// when the drive is ready. A spin-down in progress completes before the spin-up.
    #[inline]
    pub fn wake(&mut self, time: SimTime) -> SimTime {
        if time <= self.idle_from && !self.stopped {
            return time;
        }
        if self.is_stopped(time) {
            let standby = self.stop(time);
            let ready = standby + self.spin_down.up;
            self.plan(PowerState::SpinUp, ready);
            (self.stopped, self.turns_from) = (false, ready);
            return ready;
        }
        self.plan(PowerState::Idle, time);
        time
    }

    /// Whether the drive is in standby or spinning down at `time`, if no more states are planned.
    #[inline]
    pub fn is_stopped(&self, time: SimTime) -> bool {
        self.stopped || self.spin_down.after.is_some_and(|after| time > self.idle_from + after)
    }

    /// Spins down at `time`, unless an idle time-out came first; returns when the spindle has
    /// stopped.
    pub fn stop(&mut self, time: SimTime) -> SimTime {
        if !self.stopped {
            let time_out = self.spin_down.after.map_or(SimTime::NEVER, |at| self.idle_from + at);
            let from = time.min(time_out).max(self.idle_from);
            self.plan(PowerState::Idle, from);
            self.plan(PowerState::SpinDown, from + self.spin_down.down);
            self.stopped = true;
        }
        self.plan(PowerState::Standby, time);
        self.idle_from.max(time)
    }

    /// End of the last spin-up, which may be in the future.
    pub const fn turns_from(&self) -> SimTime {
        self.turns_from
    }

    /// The power failed and is back at `now`, up to where everything has been reported: forgets
    /// what was planned. Says when the spindle turns again.
    pub fn start_again(&mut self, now: SimTime) -> SimTime {
        self.plan.clear();
        (self.at, self.idle_from, self.stopped) = (0, now, false);
        self.turns_from = now + self.spin_down.up;
        self.turns_from
    }

    /// Emits the states until now that have not been reported.
    #[inline]
    pub fn emit(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        if now > self.reported {
            let mut times = ctx.emit_times(Times::STATES, 0, now.since(self.reported));
            self.report(now, |state, time| times.add(state as u8, time));
        }
    }

    /// Reports the states up to `now` that have not been reported.
    #[inline]
    fn report(&mut self, now: SimTime, mut report: impl FnMut(PowerState, SimDuration)) {
        for &(state, until) in &self.plan[self.at..] {
            let reported = until.min(now);
            if reported > self.reported {
                report(state, reported.since(self.reported));
                self.reported = reported;
            }
            if until > now {
                return;
            }
            self.at += 1;
        }
        self.plan.clear();
        self.at = 0;
        if self.stopped {
            return self.report_span(PowerState::Standby, now, &mut report);
        }
        let Some(after) = self.spin_down.after else {
            return self.report_span(PowerState::Idle, now, &mut report);
        };
        let stop = self.idle_from + after;
        let standby = stop + self.spin_down.down;
        self.report_span(PowerState::Idle, stop.min(now), &mut report);
        self.report_span(PowerState::SpinDown, standby.min(now), &mut report);
        self.report_span(PowerState::Standby, now, &mut report);
    }

    #[inline]
    fn report_span(
        &mut self,
        state: PowerState,
        until: SimTime,
        report: &mut impl FnMut(PowerState, SimDuration),
    ) {
        if until > self.reported {
            report(state, until.since(self.reported));
            self.reported = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PowerState::{Idle, Read, SpinDown as Down, SpinUp, Standby};

    fn clock(after_ms: Option<u64>) -> StateClock {
        let ms = SimDuration::from_ms;
        StateClock::new(SpinDown { after: after_ms.map(ms), down: ms(20), up: ms(30) })
    }

    fn at(ms: u64) -> SimTime {
        SimTime::ZERO + SimDuration::from_ms(ms)
    }

    fn reported(clock: &mut StateClock, now_ms: u64) -> Vec<(PowerState, u64)> {
        let mut reported = Vec::new();
        clock.report(at(now_ms), |state, time| reported.push((state, time.as_ns() / 1_000_000)));
        reported
    }

    #[test]
    fn without_a_time_out_the_drive_is_idle_between_its_work() {
        let mut clock = clock(None);
        assert_eq!(clock.wake(at(5)), at(5));
        clock.plan(Read, at(9));
        assert_eq!(reported(&mut clock, 7), [(Idle, 5), (Read, 2)]);
        assert_eq!(reported(&mut clock, 1_000), [(Read, 2), (Idle, 991)]);
    }

    #[test]
    fn spins_down_when_idle_and_up_on_demand() {
        let mut clock = clock(Some(100));
        assert_eq!(reported(&mut clock, 99), [(Idle, 99)]);
        assert_eq!(reported(&mut clock, 101), [(Idle, 1), (Down, 1)]);
        assert_eq!(reported(&mut clock, 150), [(Down, 19), (Standby, 30)]);
        assert_eq!(clock.wake(at(160)), at(190));
        clock.plan(Read, at(195));
        let all = [(Standby, 10), (SpinUp, 30), (Read, 5), (Idle, 5)];
        assert_eq!(reported(&mut clock, 200), all);
    }

    #[test]
    fn a_stop_is_finished_before_the_next_start() {
        let mut clock = clock(Some(100));
        assert_eq!(clock.wake(at(100)), at(100), "just not yet");
        assert_eq!(clock.wake(at(205)), at(250), "stops until 220");
        let all = [(Idle, 100), (Idle, 100), (Down, 20), (SpinUp, 30), (Idle, 10)];
        assert_eq!(reported(&mut clock, 260), all, "two spans: planned, and until the stop");
    }

    #[test]
    fn stops_at_the_hosts_command_and_starts_on_demand() {
        for after in [None, Some(1_000)] {
            let mut clock = clock(after);
            clock.plan(Read, at(10));
            assert_eq!(clock.stop(at(5)), at(30), "when it has read: 10, and 20 to stop");
            assert!(clock.is_stopped(at(12)));
            assert_eq!(clock.stop(at(15)), at(30), "it is being stopped");
            assert_eq!(reported(&mut clock, 40), [(Read, 10), (Down, 20), (Standby, 10)]);
            assert_eq!(clock.stop(at(50)), at(50), "it stands");
            assert_eq!(clock.wake(at(60)), at(90));
            assert!(!clock.is_stopped(at(90)));
            assert_eq!(clock.turns_from(), at(90));
            let all = [(Standby, 10), (Standby, 10), (SpinUp, 30), (Idle, 10)];
            assert_eq!(reported(&mut clock, 100), all);
        }
    }

    #[test]
    fn wanted_while_it_stops_it_starts_when_it_stands() {
        let mut clock = clock(None);
        assert_eq!(clock.stop(at(10)), at(30));
        assert_eq!(clock.wake(at(15)), at(60));
        assert_eq!(reported(&mut clock, 70), [(Idle, 10), (Down, 20), (SpinUp, 30), (Idle, 10)]);
    }

    #[test]
    fn a_time_out_before_the_command_counts() {
        let mut clock = clock(Some(100));
        assert_eq!(clock.stop(at(110)), at(120), "it began to stop at 100");
        assert_eq!(reported(&mut clock, 130), [(Idle, 100), (Down, 20), (Standby, 10)]);
        let mut clock = self::clock(Some(100));
        assert_eq!(clock.stop(at(500)), at(500));
        assert_eq!(
            reported(&mut clock, 510),
            [(Idle, 100), (Down, 20), (Standby, 380), (Standby, 10)]
        );
    }
}
