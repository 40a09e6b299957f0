//! The scenario's `[host]` table: how the host submits requests.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::Entry;
use hybridsim_engine::SimDuration;

/// The parameters of a scenario's `[host]` table.
pub const PARAMS: &[Param] = &[
    Param::with(
        "mode",
        Kind::Choice(&["open", "closed"]),
        "\"open\"",
        "open: requests arrive at their recorded times; closed: a new one follows every completion",
    ),
    Param::with(
        "queue_depth",
        Kind::Count { min: 1, max: 65_536 },
        "32",
        "Requests at the device at a time; in an open loop the others are queued in the scheduler",
    ),
    Param::optional(
        "outstanding",
        Kind::Count { min: 1, max: 1_000_000 },
        "Closed loop: requests kept outstanding, those beyond queue_depth wait in the scheduler; \
         default queue_depth",
    ),
    Param::with(
        "scheduler",
        Kind::Entry(SchedulerEntry::CATEGORY),
        "\"fcfs\"",
        "Order in which queued requests are dispatched",
    ),
    Param::with(
        "think_time",
        Kind::Duration,
        "\"0ns\"",
        "Closed loop: time between a completion and the request that follows it",
    ),
    Param::with(
        "outstanding_max",
        Kind::Count { min: 1, max: 100_000_000 },
        "1000000",
        "Open loop: the run ends with an error when this many requests are outstanding, as the \
         workload asks for more than the system can serve",
    ),
    Param::with(
        "latency_from",
        Kind::Choice(&["arrival", "issue"]),
        "\"arrival\"",
        "Where latencies begin: at the arrival of a request, or when it is issued to the device. \
         With `issue` the time that a request waits in the host is in no latency, as in load \
         generators that measure from the submission, and no warning says that an open loop falls \
         behind",
    ),
    Param::with(
        "end",
        Kind::Choice(&["completed", "last-arrival"]),
        "\"completed\"",
        "When the run ends: when every request has completed, or when the last one has arrived, as \
         in DiskSim and konanki; a closed loop then ends with the first completion that no request \
         follows, so that rates do not include the end, when fewer are outstanding. Requests that \
         have not completed then are counted as `unfinished_requests` and are in no latency",
    ),
];

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At the times the workload gives.
    Open,
    /// As soon as the number outstanding allows; times are ignored.
    Closed,
}

/// How the host submits requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// When requests arrive.
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
        let mode = if settings.text("mode") == "open" { Mode::Open } else { Mode::Closed };
        let queue_depth = settings.count("queue_depth") as u32;
        let outstanding = settings.count_opt("outstanding").map(|count| count as u32);
        let think_time = settings.duration("think_time");
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
            outstanding_max: settings.count("outstanding_max"),
            ends_early: settings.text("end") == "last-arrival",
            from_issue: settings.text("latency_from") == "issue",
        })
    }
}
