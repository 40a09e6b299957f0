//! The scenario's `[host]` table: how the host submits requests.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{EntryChoice, Kind, Param, Problem, Settings};
use hybridsim_config::registry::Entry;
use hybridsim_engine::SimDuration;

/// The parameters of a scenario's `[host]` table.
pub const PARAMS: &[Param] = Parameters::PARAMS;

hybridsim_config::choices! {
    /// Arrival of requests.
    pub enum Mode {
        /// At the times the workload gives.
        Open = "open",
        /// As soon as the number outstanding allows; times are ignored.
        Closed = "closed",
    }
}

hybridsim_config::choices! {
    /// The beginning of latencies.
    enum LatencyFrom { Arrival = "arrival", Issue = "issue" }
}

hybridsim_config::choices! {
    enum End { Completed = "completed", LastArrival = "last-arrival" }
}

hybridsim_config::params! {
    /// Parameters of the host.
    pub struct Parameters {
        mode: Mode = Kind::Choice(Mode::NAMES), default "\"open\"",
            "open: requests arrive at their recorded times; closed: a new one follows every \
             completion";
        queue_depth: u32 = Kind::Count { min: 1, max: 65_536 }, default "32",
            "Requests at the device at a time; in an open loop the others are queued in the \
             scheduler";
        outstanding: Option<u32> = Kind::Count { min: 1, max: 1_000_000 }, optional,
            "Closed loop: requests kept outstanding, those beyond queue_depth wait in the \
             scheduler; default queue_depth";
        pub scheduler: EntryChoice = Kind::Entry(SchedulerEntry::CATEGORY), default "\"fcfs\"",
            "Order in which queued requests are dispatched";
        think_time: SimDuration = Kind::Duration, default "\"0ns\"",
            "Closed loop: time between a completion and the request that follows it";
        outstanding_max: u64 = Kind::Count { min: 1, max: 100_000_000 }, default "1000000",
            "Open loop: the run ends with an error when this many requests are outstanding, as \
             the workload asks for more than the system can serve";
        latency_from: LatencyFrom = Kind::Choice(LatencyFrom::NAMES), default "\"arrival\"",
            "Where latencies begin: at the arrival of a request, or when it is issued to the \
             device. With `issue` the time that a request waits in the host is in no latency, as \
             in load generators that measure from the submission, and no warning says that an \
             open loop falls behind";
        end: End = Kind::Choice(End::NAMES), default "\"completed\"",
            "When the run ends: when every request has completed, or when the last one has \
             arrived, as in DiskSim and konanki; a closed loop then ends with the first \
             completion that no request follows, so that rates do not include the end, when fewer \
             are outstanding. Requests that have not completed then are counted as \
             `unfinished_requests` and are in no latency";
    }
}

/// Submission of requests by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Arrival of requests.
    pub mode: Mode,
    /// Requests at the device at a time.
    pub queue_depth: u32,
    /// Closed loop: requests outstanding in all.
    pub outstanding: u32,
    /// Closed loop: from a completion to the next arrival.
    pub think_time: SimDuration,
    /// Open loop: more outstanding requests than this end the run.
    pub outstanding_max: u64,
    /// The run ends with the last arrival.
    pub ends_early: bool,
    /// Latencies begin when a request is issued, not when it arrives.
    pub from_issue: bool,
}

impl HostOptions {
    /// A closed loop of `queue_depth` requests.
    pub const fn closed(queue_depth: u32) -> Self {
        Self { mode: Mode::Closed, outstanding: queue_depth, ..Self::open(queue_depth) }
    }

    /// An open loop with at most `queue_depth` requests at the device.
    pub const fn open(queue_depth: u32) -> Self {
        Self {
            mode: Mode::Open,
            queue_depth,
            outstanding: queue_depth,
            think_time: SimDuration::ZERO,
            outstanding_max: 1_000_000,
            ends_early: false,
            from_issue: false,
        }
    }

    /// Reads checked settings that hold [`PARAMS`].
    ///
    /// # Errors
    /// Every parameter that makes no sense in the chosen mode.
    pub fn read(settings: &Settings) -> Result<Self, Vec<Problem>> {
        let params = Parameters::from_settings(settings);
        let Parameters { mode, queue_depth, outstanding, think_time, .. } = params;
        let mut problems = Vec::new();
        if mode == Mode::Open {
            let closed_only = "belongs to `mode = \"closed\"`; remove it, or change the mode";
            if outstanding.is_some() {
                problems.push(Problem::new("outstanding", closed_only));
            }
            if !think_time.is_zero() {
                problems.push(Problem::new("think_time", closed_only));
            }
        }
        if outstanding.is_some_and(|count| count < queue_depth) {
            let message = format!("must be at least queue_depth ({queue_depth})");
            problems.push(Problem::new("outstanding", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            mode,
            queue_depth,
            outstanding: outstanding.unwrap_or(queue_depth),
            think_time,
            outstanding_max: params.outstanding_max,
            ends_early: params.end == End::LastArrival,
            from_issue: params.latency_from == LatencyFrom::Issue,
        })
    }
}
