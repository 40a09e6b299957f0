//! Power: which state the drive is in, told as time passes; the spin-down after an idle time.
//!
//! The drive knows what it will do next (seek until then, read until then); those spans are
//! planned here and told once they are past. What is not planned is idle, and after the idle
//! time-out, spinning down and standby. States thus add up to the run time without an event.

use hybridsim_engine::{PowerState, SimDuration, SimTime};

/// When an idle drive stops its spindle, and how long that and starting it again take.
#[derive(Clone, Copy, Debug)]
pub struct SpinDown {
    /// Idle time before the spindle stops; `None` for never.
    pub after: Option<SimDuration>,
    /// From ready to standby.
    pub down: SimDuration,
    /// From standby to ready.
    pub up: SimDuration,
}

/// What the drive has been and will be doing.
#[derive(Debug)]
pub struct StateClock {
    spin_down: SpinDown,
    plan: Vec<(PowerState, SimTime)>,
    /// The next of the plan.
    at: usize,
    told: SimTime,
    /// End of the plan: idle from here on.
    idle_from: SimTime,
}

impl StateClock {
    /// A drive ready and idle at time zero.
    pub fn new(spin_down: SpinDown) -> Self {
        let plan = Vec::with_capacity(16);
        Self { spin_down, plan, at: 0, told: SimTime::ZERO, idle_from: SimTime::ZERO }
    }

    /// After what is planned so far, the drive is in `state` until `until`.
    #[inline]
    pub fn plan(&mut self, state: PowerState, until: SimTime) {
        if until > self.idle_from {
            self.plan.push((state, until));
            self.idle_from = until;
        }
    }

    /// The arm is wanted at `time`: plans what an idle drive does until then, and says when the
    /// drive is ready. A stop of the spindle that has begun is finished before it starts again.
    #[inline]
    pub fn wake(&mut self, time: SimTime) -> SimTime {
        if time <= self.idle_from {
            return time;
        }
        match self.spin_down.after {
            Some(after) if time > self.idle_from + after => self.spin_up(time, after),
            _ => {
                self.plan(PowerState::Idle, time);
                time
            }
        }
    }

    fn spin_up(&mut self, time: SimTime, after: SimDuration) -> SimTime {
        let stop = self.idle_from + after;
        let standby = stop + self.spin_down.down;
        self.plan(PowerState::Idle, stop);
        self.plan(PowerState::SpinDown, standby);
        self.plan(PowerState::Standby, time);
        let ready = standby.max(time) + self.spin_down.up;
        self.plan(PowerState::SpinUp, ready);
        ready
    }

    /// The power failed and is back at `now`, up to where everything has been told: forgets what
    /// was planned. Says when the spindle turns again.
    pub fn start_again(&mut self, now: SimTime) -> SimTime {
        self.plan.clear();
        (self.at, self.idle_from) = (0, now);
        now + self.spin_down.up
    }

    /// Tells how the time up to `now` was spent, as far as it has not been told.
    #[inline]
    pub fn tell(&mut self, now: SimTime, mut tell: impl FnMut(PowerState, SimDuration)) {
        while let Some(&(state, until)) = self.plan.get(self.at) {
            self.tell_span(state, until.min(now), &mut tell);
            if until > now {
                return;
            }
            self.at += 1;
        }
        self.plan.clear();
        self.at = 0;
        let stop = self.spin_down.after.map_or(SimTime::NEVER, |after| self.idle_from + after);
        let standby = stop + self.spin_down.down;
        self.tell_span(PowerState::Idle, stop.min(now), &mut tell);
        self.tell_span(PowerState::SpinDown, standby.min(now), &mut tell);
        self.tell_span(PowerState::Standby, now, &mut tell);
    }

    #[inline]
    fn tell_span(
        &mut self,
        state: PowerState,
        until: SimTime,
        tell: &mut impl FnMut(PowerState, SimDuration),
    ) {
        if until > self.told {
            tell(state, until.since(self.told));
            self.told = until;
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

    fn told(clock: &mut StateClock, now_ms: u64) -> Vec<(PowerState, u64)> {
        let mut told = Vec::new();
        clock.tell(at(now_ms), |state, time| told.push((state, time.as_ns() / 1_000_000)));
        told
    }

    #[test]
    fn without_a_time_out_the_drive_is_idle_between_its_work() {
        let mut clock = clock(None);
        assert_eq!(clock.wake(at(5)), at(5));
        clock.plan(Read, at(9));
        assert_eq!(told(&mut clock, 7), [(Idle, 5), (Read, 2)]);
        assert_eq!(told(&mut clock, 1_000), [(Read, 2), (Idle, 991)]);
    }

    #[test]
    fn spins_down_when_idle_and_up_on_demand() {
        let mut clock = clock(Some(100));
        assert_eq!(told(&mut clock, 99), [(Idle, 99)]);
        assert_eq!(told(&mut clock, 101), [(Idle, 1), (Down, 1)]);
        assert_eq!(told(&mut clock, 150), [(Down, 19), (Standby, 30)]);
        assert_eq!(clock.wake(at(160)), at(190));
        clock.plan(Read, at(195));
        let all = [(Standby, 10), (SpinUp, 30), (Read, 5), (Idle, 5)];
        assert_eq!(told(&mut clock, 200), all);
    }

    #[test]
    fn a_stop_is_finished_before_the_next_start() {
        let mut clock = clock(Some(100));
        assert_eq!(clock.wake(at(100)), at(100), "just not yet");
        assert_eq!(clock.wake(at(205)), at(250), "stops until 220");
        let all = [(Idle, 100), (Idle, 100), (Down, 20), (SpinUp, 30), (Idle, 10)];
        assert_eq!(told(&mut clock, 260), all, "two spans: planned, and until the stop");
    }
}
