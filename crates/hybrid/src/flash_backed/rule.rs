//! When a write is redirected (bisson-fqueue, section III.B and figure 6).

use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime, Stream};
use std::rc::Rc;

/// Access times that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Access time from the head to the request (`h_n`).
    pub to_request: SimDuration,
    /// Time to write the request to flash (`fn`).
    pub flash: SimDuration,
    /// Access times to the next request, from this one (`n_nn`) and from the head (`h_nn`; the
    /// second "h_n" in the text is a misprint).
    pub next: Option<(SimDuration, SimDuration)>,
}

/// Whether a write is redirected. The text has ≥ (`ties`), figure 6 has >. Without a next request
/// only the access time to this one counts, and a tie is not redirected.
pub fn redirects(times: &Times, ties: bool) -> bool {
    let Times { to_request, flash, next } = *times;
    match next {
        None => to_request > flash,
        Some((on, past)) => {
            let (disk, flash) = (to_request + on, flash + past);
            disk > flash || (ties && disk == flash)
        }
    }
}

/// The access times the host assumes.
pub enum Access {
    /// The exact estimate of the disk, including rotation.
    Exact(Rc<dyn Positioner>),
    /// Mean access times by distance in sectors, ascending, as in figure 2.
    Curve(Vec<(u64, SimDuration)>),
}

/// Accesses measured per distance.
const SAMPLES: u64 = 200;

impl Access {
    /// Measures the curve of a disk, from random positions at random times.
    pub fn measure(disk: &dyn Positioner, sectors: u64, mut stream: Stream) -> Self {
        let mut points = vec![(0, SimDuration::ZERO)];
        let mut distance = 1;
        while distance < sectors {
            let mean = mean(disk, sectors, distance, &mut stream);
            points.push((distance, mean));
            // Four points per octave.
            distance = (distance + 1).max((distance as f64 * 1.19) as u64);
        }
        Self::Curve(points)
    }

    /// Access time from sector `head` to sector `to`.
    pub fn time(&self, now: SimTime, head: Lba, to: Lba) -> SimDuration {
        match self {
            Self::Exact(disk) => disk.positioning(now, head, &Request::new(Op::Write, to, 1)),
            Self::Curve(points) => interpolate(points, head.0.abs_diff(to.0)),
        }
    }
}

fn mean(disk: &dyn Positioner, sectors: u64, distance: u64, stream: &mut Stream) -> SimDuration {
    let mut sum = 0.0;
    for at in 0..SAMPLES {
        let low = stream.below(sectors - distance);
        let (from, to) = if at % 2 == 0 { (low, low + distance) } else { (low + distance, low) };
        let now = SimTime::from_ns(stream.below(1_000_000_000));
        let request = Request::new(Op::Write, Lba(to), 1);
        sum += disk.positioning(now, Lba(from), &request).as_ns() as f64;
    }
    SimDuration::from_ns_f64(sum / SAMPLES as f64)
}

fn interpolate(points: &[(u64, SimDuration)], distance: u64) -> SimDuration {
    let after = points.partition_point(|(at, _)| *at < distance);
    let Some(&(high, above)) = points.get(after) else {
        return points.last().map_or(SimDuration::ZERO, |point| point.1);
    };
    if high == distance || after == 0 {
        return above;
    }
    let (low, below) = points[after - 1];
    let share = (distance - low) as f64 / (high - low) as f64;
    let ns = |time: SimDuration| time.as_ns() as f64;
    SimDuration::from_ns_f64(ns(below) + (ns(above) - ns(below)) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(h_n: u64, flash: u64, next: Option<(u64, u64)>, ties: bool, expect: bool) {
        let ms = SimDuration::from_ms;
        let next = next.map(|(n_nn, h_nn)| (ms(n_nn), ms(h_nn)));
        let times = Times { to_request: ms(h_n), flash: ms(flash), next };
        assert_eq!(redirects(&times, ties), expect, "{times:?}");
    }

    #[test]
    fn worked_examples() {
        // Far away, with the next request near the head: saves the detour.
        check(20, 2, Some((20, 7)), true, true);
        // On the way to the next request: flash would only add to it.
        check(9, 2, Some((7, 15)), true, false);
        // The example of the paper: far from the head, with the next requests nearby. The disk has
        // to seek there anyway; redirecting all of them would pollute the FQueue.
        check(20, 2, Some((0, 20)), true, false);
        // Under the head: the disk is fastest.
        check(0, 2, Some((7, 7)), true, false);
        // Ties: 10 + 5 = 3 + 12.
        check(10, 3, Some((5, 12)), true, true);
        check(10, 3, Some((5, 12)), false, false);
        check(10, 3, Some((6, 12)), false, true);
        check(10, 3, Some((4, 12)), true, false);
    }

    #[test]
    fn without_a_next_request_the_disk_alone_counts() {
        check(10, 3, None, true, true);
        check(3, 3, None, true, false);
        check(2, 3, None, true, false);
    }

    #[test]
    fn the_curve_is_met_at_its_points_and_between_them() {
        let us = SimDuration::from_us;
        let points = [(0, us(0)), (10, us(100)), (20, us(300))];
        for (distance, expect) in [(0, 0), (5, 50), (10, 100), (15, 200), (20, 300), (99, 300)] {
            assert_eq!(interpolate(&points, distance), us(expect), "{distance}");
        }
    }
}
