//! How simulated time relates to the time of the clients.
//!
//! With a *virtual* clock the simulated device is never waited for: a reply leaves as soon as it is
//! computed, and simulated time is the sum of simulated latencies and of what clients leave between
//! a reply and their next request. With a *paced* clock simulated time is real time: a reply
//! leaves when the simulated device has completed the request.

use hdrhistogram::Histogram;
use hybridsim_engine::{SimDuration, SimTime};
use std::time::{Duration, Instant};

/// Real time in which a client may follow a reply with its next request before the simulation goes
/// on without it.
const GRACE: Duration = Duration::from_micros(200);
/// Replies that are later on average than this share of the mean simulated latency cause a warning.
const LATE_SHARE_MAX: f64 = 0.05;
/// The latest a reply can be recorded to leave: an hour.
const LATE_NS_MAX: u64 = 3_600_000_000_000;

/// The relation of the two times.
pub struct Clock {
    scale: f64,
    grace: Duration,
    paced: Option<Paced>,
    /// Virtual: since when the clients have had the last reply; `None` before the first request.
    idle_since: Option<Instant>,
    /// Virtual: the last arrival.
    last: SimTime,
}

struct Paced {
    /// The first request, which arrives at time zero.
    start: Option<Instant>,
    /// Time that a request and its reply take between client and server.
    round_trip: Duration,
    late: Histogram<u64>,
    /// Sum of the simulated latencies, in nanoseconds of real time.
    latency_ns: f64,
}

/// Lateness of replies, in nanoseconds of real time.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Lateness {
    pub mean: f64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

impl Clock {
    /// A virtual clock that counts the time between requests `scale` times.
    pub fn virtual_time(scale: f64) -> Self {
        Self { scale, grace: GRACE, paced: None, idle_since: None, last: SimTime::ZERO }
    }

    /// A paced clock, `scale` times as fast as real time. Replies leave `round_trip` early, so that
    /// clients measure the simulated latency.
    pub fn paced(scale: f64, round_trip: Duration) -> Self {
        let late =
            Histogram::new_with_bounds(1, LATE_NS_MAX, 3).expect("three digits are possible");
        let paced = Some(Paced { start: None, round_trip, late, latency_ns: 0.0 });
        Self { scale, grace: GRACE, paced, idle_since: None, last: SimTime::ZERO }
    }

    pub fn is_paced(&self) -> bool {
        self.paced.is_some()
    }

    pub fn name(&self) -> &'static str {
        if self.is_paced() { "paced" } else { "virtual" }
    }

    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Virtual: waits `grace` instead of 200 us for the next requests of clients.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// The arrival time of a request received at `wall`; the simulation is at `now`.
    pub fn arrival(&mut self, wall: Instant, now: SimTime) -> SimTime {
        if self.paced.is_some() {
            return self.at(wall).max(now);
        }
        let left = self.idle_since.map_or(Duration::ZERO, |since| wall.duration_since(since));
        self.idle_since = Some(wall);
        self.last = now.max(self.last) + scaled(left, self.scale);
        self.last
    }

    /// Virtual: the simulated time at `wall`, after the think time of clients since the last reply;
    /// `None` if that does not count, or before the first request.
    pub fn after_think_time(&self, wall: Instant, now: SimTime) -> Option<SimTime> {
        let taken = wall.saturating_duration_since(self.idle_since?);
        (self.scale > 0.0).then(|| now.max(self.last) + scaled(taken, self.scale))
    }

    /// Virtual: the clients have all replies there are, at `wall`.
    pub fn client_continues(&mut self, wall: Instant) {
        self.idle_since = Some(wall);
    }

    /// Paced: the simulated time at `wall`. The first call starts the clock.
    pub fn at(&mut self, wall: Instant) -> SimTime {
        let Some(paced) = &mut self.paced else { return self.last };
        let start = *paced.start.get_or_insert(wall);
        SimTime::ZERO + scaled(wall.duration_since(start), self.scale)
    }

    /// Paced: the time up to which the system is simulated at `wall`: ahead of [`Clock::at`], as
    /// replies leave early.
    pub fn ahead(&mut self, wall: Instant) -> SimTime {
        let round_trip = self.paced.as_ref().map_or(Duration::ZERO, |paced| paced.round_trip);
        // The first call starts the clock.
        self.at(wall);
        self.at(wall + round_trip)
    }

    /// Paced: when what happens at `time` is simulated.
    pub fn instant(&self, time: SimTime) -> Option<Instant> {
        let paced = self.paced.as_ref()?;
        let seconds = time.as_ns() as f64 / 1e9 / self.scale;
        let after = Duration::try_from_secs_f64(seconds).ok()?;
        paced.start?.checked_add(after.saturating_sub(paced.round_trip))
    }

    /// Paced: the reply due at `due` to a request that arrived at `at` leaves at `wall`.
    pub fn replied(&mut self, at: SimTime, due: SimTime, wall: Instant) {
        let Some(instant) = self.instant(due) else { return };
        let Some(paced) = &mut self.paced else { return };
        let late = wall.saturating_duration_since(instant).as_nanos() as u64;
        paced.late.saturating_record(late);
        paced.latency_ns += due.since(at).as_ns() as f64 / self.scale;
    }

    /// Paced: how late replies left.
    pub fn lateness(&self) -> Option<Lateness> {
        let Paced { late, .. } = self.paced.as_ref()?;
        Some(Lateness {
            mean: late.mean(),
            p50: late.value_at_quantile(0.5),
            p99: late.value_at_quantile(0.99),
            max: late.max(),
        })
    }

    /// Paced: a warning where the simulated device was faster than this host.
    pub fn warning(&self) -> Option<String> {
        let paced = self.paced.as_ref()?;
        let latency = paced.latency_ns / paced.late.len().max(1) as f64;
        let share = paced.late.mean() / latency.max(1.0);
        (share > LATE_SHARE_MAX).then(|| {
            format!(
                "the simulated device is faster than this host: replies left {:.0} us late on \
                 average, {:.0} % of the simulated latency; clients measured more than was \
                 simulated; use --clock virtual, or a slower clock (--time-scale below {})",
                paced.late.mean() / 1e3,
                share * 100.0,
                self.scale
            )
        })
    }
}

fn scaled(time: Duration, scale: f64) -> SimDuration {
    SimDuration::from_ns((time.as_nanos() as f64 * scale) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_counts_what_clients_leave() {
        let mut clock = Clock::virtual_time(2.0);
        let start = Instant::now();
        let after = |us| start + Duration::from_micros(us);
        assert_eq!(clock.arrival(start, SimTime::ZERO), SimTime::ZERO);
        assert_eq!(clock.arrival(after(5), SimTime::ZERO), SimTime::from_ns(10_000));
        // The reply left after 50 us of real and 7 ms of simulated time.
        clock.client_continues(after(50));
        let now = SimTime::from_ns(7_000_000);
        assert_eq!(clock.arrival(after(60), now), SimTime::from_ns(7_020_000));
        // Think time passes also while requests are outstanding.
        assert_eq!(clock.after_think_time(after(65), now), Some(SimTime::from_ns(7_030_000)));
        let mut still = Clock::virtual_time(0.0);
        assert_eq!(still.after_think_time(start, now), None);
        still.client_continues(start);
        assert_eq!(still.after_think_time(after(9), now), None);
        assert_eq!(still.arrival(after(999), now), now);
    }

    #[test]
    fn a_paced_clock_measures_how_late_replies_leave() {
        let mut clock = Clock::paced(1.0, Duration::ZERO);
        let start = Instant::now();
        assert_eq!(clock.arrival(start, SimTime::ZERO), SimTime::ZERO);
        let due = SimTime::from_ns(100_000);
        let instant = clock.instant(due).expect("it has started");
        assert_eq!(instant, start + Duration::from_micros(100));
        clock.replied(SimTime::ZERO, due, instant + Duration::from_micros(2));
        assert_eq!(clock.warning(), None);
        clock.replied(SimTime::ZERO, due, instant + Duration::from_micros(60));
        let lateness = clock.lateness().expect("it is paced");
        assert!((59_900..60_100).contains(&lateness.max), "{lateness:?}");
        let warning = clock.warning().expect("a third of the latency");
        assert!(warning.contains("31 us late on average, 31 %"), "{warning}");
    }

    #[test]
    fn a_paced_clock_replies_early_by_the_round_trip() {
        let mut clock = Clock::paced(2.0, Duration::from_micros(30));
        let start = Instant::now();
        let after = |us| start + Duration::from_micros(us);
        assert_eq!(clock.arrival(start, SimTime::ZERO), SimTime::ZERO);
        assert_eq!(clock.ahead(after(20)), SimTime::from_ns(100_000));
        assert_eq!(clock.instant(SimTime::from_ns(100_000)), Some(after(20)));
        assert_eq!(clock.instant(SimTime::from_ns(20_000)), Some(start), "not before it started");
        assert_eq!(clock.arrival(after(70), SimTime::ZERO), SimTime::from_ns(140_000));
    }
}
