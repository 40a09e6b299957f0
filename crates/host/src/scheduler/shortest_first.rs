//! Schedulers that estimate a cost for every request and dispatch the cheapest.
//!
//! Like a drive's command queue, they compare the oldest `window` requests only; a decision takes
//! as many estimates. The device estimates seek, rotation and transfer; where it has no moving head
//! the cost is the distance in sectors. Those without ageing can starve requests in the window.
//!
//! DiskSim's manual names `sptf-rot-opt`, `sptf-rot-weight` and `sptf-seek-weight` without defining
//! them. Here the last two weight rotation or seek; `sptf-rot-opt` takes the request with the
//! shortest rotation among those that need at most a share longer than the best.

use super::entry;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_engine::SimDuration;
use hybridsim_engine::schedule::{Head, HeadTarget, Positioner, Queued, Scheduler};
use slab::Slab;
use std::collections::VecDeque;

hybridsim_config::params! {
    /// Parameters of all of them.
    struct Window {
        window: usize = Kind::Count { min: 1, max: 65_536 }, default "256",
            "The oldest waiting requests that are compared; the run time of a decision grows with \
             it";
    }
}

hybridsim_config::choices! {
    /// The distance that `sdf` compares.
    enum Distance { Approximate = "approximate", Exact = "exact" }
}

hybridsim_config::params! {
    struct Sdf includes { window: Window } {
        distance: Distance = Kind::Choice(Distance::NAMES), default "\"approximate\"",
            "By sector numbers, or by the device's seek times";
    }
}

hybridsim_config::params! {
    /// Parameters of the schedulers that weight estimates by the time left.
    struct Weighted includes { window: Window } {
        wait_max: SimDuration = Kind::Duration, default "\"3s\"",
            "Maximum queueing time: an estimate is multiplied by the share of it that remains";
    }
}

hybridsim_config::params! {
    /// Parameters of the schedulers with ageing.
    pub(super) struct Aged includes { window: Window } {
        age_weight: f64 = Kind::Number { min: 0.0, max: 1000.0 }, default "0.006",
            "Time subtracted from an estimate for each unit of queueing time; 0 is sptf, large \
             values approach fcfs";
    }
}

hybridsim_config::params! {
    /// Parameters of the schedulers that weight a component of the estimate.
    struct Component includes { window: Window } {
        weight: f64 = Kind::Number { min: 0.0, max: 1000.0 }, default "1",
            "Factor of the weighted component; 1 is sptf";
    }
}

hybridsim_config::params! {
    struct RotOpt includes { window: Window } {
        slack: f64 = Kind::Number { min: 0.0, max: 10.0 }, default "0",
            "How much longer than the best one a request may take and still be chosen for its \
             rotation, as a share; 0 is sptf";
    }
}

const WSTF: &str = "Seltzer, Chen and Ousterhout 1990 (WSTF, 3 s at most)";
const ASATF_ORIGIN: &str = "Jacobson and Wilkes 1991 (ASATF, W = 6 ms per second)";

pub const SDF: SchedulerEntry = entry(
    "sdf",
    "the shortest travel of the arm, rotation left out",
    "DiskSim's SDF_APPROX (22) and SDF_EXACT (23)",
    Sdf::PARAMS,
    |settings| {
        let params = Sdf::from_settings(settings);
        build(
            &params.window,
            match params.distance {
                Distance::Approximate => Cost::Distance,
                Distance::Exact => Cost::Seek,
            },
        )
    },
);
pub const SPTF: SchedulerEntry = entry(
    "sptf",
    "the request the head reaches first, seek and rotation counted",
    "Seltzer, Chen and Ousterhout 1990; Jacobson and Wilkes 1991; DiskSim's 8",
    Window::PARAMS,
    |settings| build(&Window::from_settings(settings), Cost::Time(Estimate::Positioning)),
);
pub const SPCTF: SchedulerEntry = entry(
    "spctf",
    "as sptf, requests in the device's buffer before all others",
    "Worthington, Ganger and Patt 1994; DiskSim's 9",
    Window::PARAMS,
    |settings| build(&Window::from_settings(settings), Cost::Time(Estimate::Buffered)),
);
pub const SATF: SchedulerEntry = entry(
    "satf",
    "the request that completes first: seek, rotation and transfer counted",
    "Jacobson and Wilkes 1991; DiskSim's 10",
    Window::PARAMS,
    |settings| build(&Window::from_settings(settings), Cost::Time(Estimate::Access)),
);
pub const WPTF: SchedulerEntry = entry(
    "wptf",
    "as sptf, weighted by the time left until the longest wait (DiskSim's 11)",
    WSTF,
    Weighted::PARAMS,
    |settings| weighted(settings, Estimate::Positioning),
);
pub const WPCTF: SchedulerEntry = entry(
    "wpctf",
    "as spctf, weighted by the time left until the longest wait (DiskSim's 12)",
    WSTF,
    Weighted::PARAMS,
    |settings| weighted(settings, Estimate::Buffered),
);
pub const WATF: SchedulerEntry = entry(
    "watf",
    "as satf, weighted by the time left until the longest wait (DiskSim's 13)",
    WSTF,
    Weighted::PARAMS,
    |settings| weighted(settings, Estimate::Access),
);
pub const ASPTF: SchedulerEntry = entry(
    "asptf",
    "as sptf, less a share of the queueing time (DiskSim's 14)",
    ASATF_ORIGIN,
    Aged::PARAMS,
    |settings| aged(settings, Estimate::Positioning),
);
pub const ASPCTF: SchedulerEntry = entry(
    "aspctf",
    "as spctf, less a share of the queueing time (DiskSim's 15)",
    ASATF_ORIGIN,
    Aged::PARAMS,
    |settings| aged(settings, Estimate::Buffered),
);
pub const ASATF: SchedulerEntry = entry(
    "asatf",
    "as satf, less a share of the queueing time (DiskSim's 16)",
    ASATF_ORIGIN,
    Aged::PARAMS,
    |settings| aged(settings, Estimate::Access),
);
pub const ROT_WEIGHT: SchedulerEntry = entry(
    "sptf-rot-weight",
    "as sptf, rotation multiplied by a weight",
    "DiskSim's SPTF_ROT_WEIGHT (25)",
    Component::PARAMS,
    |settings| {
        let Component { window, weight: rotation } = Component::from_settings(settings);
        build(&window, Cost::SeekAndRotation { seek: 1.0, rotation })
    },
);
pub const SEEK_WEIGHT: SchedulerEntry = entry(
    "sptf-seek-weight",
    "as sptf, seek multiplied by a weight",
    "DiskSim's SPTF_SEEK_WEIGHT (26)",
    Component::PARAMS,
    |settings| {
        let Component { window, weight: seek } = Component::from_settings(settings);
        build(&window, Cost::SeekAndRotation { seek, rotation: 1.0 })
    },
);
pub const ROT_OPT: SchedulerEntry = entry(
    "sptf-rot-opt",
    "the shortest rotation among requests about as quick as the best",
    "DiskSim's SPTF_ROT_OPT (24)",
    RotOpt::PARAMS,
    |settings| {
        let RotOpt { window: Window { window }, slack } = RotOpt::from_settings(settings);
        Ok(Box::new(ShortestRotation { queue: Waiting::default(), window, slack }))
    },
);

fn build(params: &Window, cost: Cost) -> Built<dyn Scheduler> {
    Ok(Box::new(ShortestFirst::new(params.window, cost)))
}

fn weighted(settings: &Settings, estimate: Estimate) -> Built<dyn Scheduler> {
    let Weighted { window, wait_max } = Weighted::from_settings(settings);
    build(&window, Cost::Weighted { estimate, wait_max })
}

pub(super) fn aged(settings: &Settings, estimate: Estimate) -> Built<dyn Scheduler> {
    let Aged { window, age_weight } = Aged::from_settings(settings);
    let weight_millionths = (age_weight * 1e6) as i128;
    build(&window, Cost::Aged { estimate, weight_millionths })
}

/// Which of the device's estimates a cost uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// Seek and rotation.
    Positioning,
    /// Seek and rotation, 0 for requests in the device's buffer.
    Buffered,
    /// Seek, rotation and transfer.
    Access,
}

impl Estimate {
    #[inline]
    fn of(self, head: &Head<'_>, item: &Queued) -> i64 {
        let Some(device) = head.positioner else {
            return distance(head, item);
        };
        if self == Self::Buffered && device.is_buffered(&item.request) {
            return 0;
        }
        let time = device.positioning(head.now, head.last, &item.request);
        signed(match self {
            Self::Access => (time + device.transfer(&item.request)).as_ns(),
            Self::Positioning | Self::Buffered => time.as_ns(),
        })
    }
}

/// The cost of a request, in nanoseconds where the device gives estimates, else in sectors.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// Distance in sectors.
    Distance,
    /// Seek time.
    Seek,
    Time(Estimate),
    /// The estimate less a share of the queueing time.
    Aged {
        estimate: Estimate,
        /// In millionths, so that decisions are made in whole numbers.
        weight_millionths: i128,
    },
    /// The estimate times the share of `wait_max` that remains. Requests that have waited longer
    /// go before all others, oldest first.
    Weighted {
        estimate: Estimate,
        /// The longest wait.
        wait_max: SimDuration,
    },
    /// The sum of seek and rotation, each multiplied by a factor.
    SeekAndRotation {
        /// Factor of the seek time.
        seek: f64,
        /// Factor of the rotational latency.
        rotation: f64,
    },
}

impl Cost {
    #[inline]
    fn of(&self, head: &Head<'_>, item: &Queued) -> i64 {
        let waited = || head.now.since(item.since).as_ns();
        match *self {
            Self::Distance => distance(head, item),
            Self::Seek => match head.positioner {
                Some(device) => signed(device.seek(head.last, &item.request).as_ns()),
                None => distance(head, item),
            },
            Self::Time(estimate) => estimate.of(head, item),
            Self::Aged { estimate, weight_millionths } => {
                let bonus = i128::from(waited()) * weight_millionths / 1_000_000;
                let bonus = signed(u64::try_from(bonus).unwrap_or(u64::MAX));
                estimate.of(head, item).saturating_sub(bonus)
            }
            Self::Weighted { estimate, wait_max } => {
                let (max, waited) = (wait_max.as_ns(), waited());
                if waited >= max {
                    return -signed(waited - max) - 1;
                }
                let share = i128::from(estimate.of(head, item)) * i128::from(max - waited);
                (share / i128::from(max)) as i64
            }
            Self::SeekAndRotation { seek, rotation } => {
                let (seek_ns, rotation_ns) = seek_and_rotation(head, item);
                // Products and one sum, rounded alike on every platform.
                signed((seek_ns as f64 * seek + rotation_ns as f64 * rotation) as u64)
            }
        }
    }
}

/// As a signed number; 292 years are enough.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn distance(head: &Head<'_>, item: &Queued) -> i64 {
    signed(item.request.lba.0.abs_diff(head.last.0))
}

/// Seek and rotation in nanoseconds; the distance where the device gives no estimates.
fn seek_and_rotation(head: &Head<'_>, item: &Queued) -> (u64, u64) {
    let Some(device) = head.positioner else {
        return (item.request.lba.0.abs_diff(head.last.0), 0);
    };
    let both = device.positioning(head.now, head.last, &item.request);
    let seek = device.seek(head.last, &item.request).min(both);
    (seek.as_ns(), (both - seek).as_ns())
}

/// Waiting requests in order of arrival. One is removed from among the oldest by moving the places
/// of those before it, not the requests.
#[derive(Debug, Default)]
struct Waiting {
    places: VecDeque<u32>,
    requests: Slab<Queued>,
}

impl Waiting {
    fn push(&mut self, item: Queued) {
        self.places.push_back(self.requests.insert(item) as u32);
    }

    /// The requests up to number `end`, the first `skipped` left out.
    fn oldest(&self, skipped: usize, end: usize) -> impl Iterator<Item = &Queued> {
        let end = end.min(self.places.len());
        self.places.range(skipped.min(end)..end).map(|place| &self.requests[*place as usize])
    }

    fn remove(&mut self, at: usize) -> Option<Queued> {
        self.places.remove(at).map(|place| self.requests.remove(place as usize))
    }
}

/// Requests in order of arrival; the cheapest of the first `window` is dispatched.
#[derive(Debug)]
pub struct ShortestFirst {
    queue: Waiting,
    /// Head positions required for the first of them: looked up once, compared at each decision.
    targets: Vec<HeadTarget>,
    window: usize,
    cost: Cost,
}

impl ShortestFirst {
    /// Compares the oldest `window` requests by `cost`.
    pub fn new(window: usize, cost: Cost) -> Self {
        Self { queue: Waiting::default(), targets: Vec::new(), window, cost }
    }

    /// Position of the first request in the window that `device` reaches first.
    fn nearest(&mut self, device: &dyn Positioner, head: &Head<'_>) -> Option<usize> {
        for item in self.queue.oldest(self.targets.len(), self.window) {
            let Some(target) = device.target(&item.request) else {
                return self
                    .cheapest(|item| device.positioning(head.now, head.last, &item.request));
            };
            self.targets.push(target);
        }
        device.nearest(head.now, head.last, &self.targets)
    }

    /// Position of the first request in the window that costs least.
    #[inline(always)]
    fn cheapest<T: Ord>(&self, cost: impl Fn(&Queued) -> T) -> Option<usize> {
        let window = self.queue.oldest(0, self.window).enumerate();
        window.min_by_key(|(_, item)| cost(item)).map(|(at, _)| at)
    }
}

impl Scheduler for ShortestFirst {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = match (self.cost, head.positioner) {
            // The most common cost, decided once instead of for each request.
            (Cost::Time(Estimate::Positioning), Some(device)) => self.nearest(device, head),
            _ => self.cheapest(|item| self.cost.of(head, item)),
        }?;
        if at < self.targets.len() {
            self.targets.remove(at);
        }
        self.queue.remove(at)
    }

    fn len(&self) -> usize {
        self.queue.places.len()
    }

    hybridsim_engine::saves!();
}

/// Requests in order of arrival; the shortest rotation among the quick ones is dispatched.
#[derive(Debug)]
struct ShortestRotation {
    queue: Waiting,
    window: usize,
    slack: f64,
}

impl Scheduler for ShortestRotation {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let window = || self.queue.oldest(0, self.window);
        let costs = || window().map(|item| seek_and_rotation(head, item)).enumerate();
        let sum = |(seek, rotation): (u64, u64)| seek.saturating_add(rotation);
        let best = costs().map(|(_, cost)| sum(cost)).min()?;
        let limit = ((best as f64 * (1.0 + self.slack)) as u64).max(best);
        let quick = costs().filter(|(_, cost)| sum(*cost) <= limit);
        let (at, _) = quick.min_by_key(|(at, (_, rotation))| (*rotation, *at))?;
        self.queue.remove(at)
    }

    fn len(&self) -> usize {
        self.queue.places.len()
    }

    hybridsim_engine::saves!();
}
