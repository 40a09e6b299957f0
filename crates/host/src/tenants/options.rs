//! The keys of tenants in scenarios.

use super::arbitration::Arbitration;
use crate::driver::{HostOptions, Mode};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::SimDuration;

/// The keys of `[host]` that matter with several workloads, all optional.
pub const HOST_PARAMS: &[Param] = &[
    Param::optional(
        "arbitration",
        Kind::Choice(&["round-robin", "weighted-round-robin"]),
        "Several workloads: how requests are taken from their queues, as in NVMe; default \
         round-robin",
    ),
    Param::optional(
        "arbitration_burst",
        Kind::Count { min: 1, max: 256 },
        "Several workloads: requests taken from a queue in its turn; default 1",
    ),
];

/// The keys of `[workload.NAME]` beside those of `[workload]`.
pub const PARAMS: &[Param] = &[
    Param::with(
        "weight",
        Kind::Count { min: 1, max: 256 },
        "1",
        "Requests taken from the workload's queue in a round of `weighted-round-robin`",
    ),
    Param::with(
        "priority",
        Kind::Choice(&["weighted", "urgent"]),
        "\"weighted\"",
        "Class of the queue: requests of the urgent class precede all others",
    ),
    Param::optional(
        "iops_max",
        Kind::Count { min: 1, max: 1_000_000_000 },
        "Rate limit in requests per second",
    ),
    Param::optional("bandwidth_max", Kind::Rate, "Rate limit in bytes read and written per second"),
    Param::optional(
        "queue_depth",
        Kind::Count { min: 1, max: 65_536 },
        "Requests of the workload at the device at a time; default that of [host]",
    ),
    Param::optional(
        "mode",
        Kind::Choice(&["open", "closed"]),
        "As in [host], for this workload; default that of [host]",
    ),
    Param::optional(
        "outstanding",
        Kind::Count { min: 1, max: 1_000_000 },
        "Closed loop: requests of the workload kept outstanding; default its queue_depth, else \
         that of [host]",
    ),
    Param::optional(
        "think_time",
        Kind::Duration,
        "Closed loop: time between a completion and the request that follows it; default that of \
         [host]",
    ),
    Param::optional(
        "namespace_start",
        Kind::Bytes,
        "First byte of the part of the device that the workload addresses; default 0",
    ),
    Param::optional(
        "namespace_size",
        Kind::Bytes,
        "Size of this part; default up to the end of the device",
    ),
];

/// How the host serves all tenants.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Requests at the device at a time, of all tenants together.
    pub queue_depth: u32,
    /// More outstanding requests of tenants in an open loop than this end the run.
    pub outstanding_max: u64,
    /// The run ends with the last arrival.
    pub ends_early: bool,
    /// Latencies begin when a request is issued, not when it arrives.
    pub from_issue: bool,
    pub arbitration: Arbitration,
    /// Requests taken from a queue in its turn.
    pub burst: u32,
}

impl Shared {
    /// From the checked `[host]` and its options.
    pub fn read(settings: &Settings, host: &HostOptions) -> Self {
        let weighted = settings.text_opt("arbitration") == Some("weighted-round-robin");
        Self {
            queue_depth: host.queue_depth,
            outstanding_max: host.outstanding_max,
            ends_early: host.ends_early,
            from_issue: host.from_issue,
            arbitration: if weighted {
                Arbitration::WeightedRoundRobin
            } else {
                Arbitration::RoundRobin
            },
            burst: settings.count_opt("arbitration_burst").unwrap_or(1) as u32,
        }
    }
}

/// How a tenant submits requests.
#[derive(Clone, Copy, Debug)]
pub struct TenantOptions {
    pub mode: Mode,
    /// Requests at the device at a time.
    pub queue_depth: u32,
    /// Closed loop: requests outstanding.
    pub outstanding: u32,
    pub think_time: SimDuration,
    pub weight: u32,
    pub urgent: bool,
    /// Requests per second.
    pub iops_max: Option<u64>,
    /// Bytes per second.
    pub bandwidth_max: Option<u64>,
}

impl TenantOptions {
    /// From checked settings that have [`PARAMS`], where `host` has the defaults.
    ///
    /// # Errors
    /// Every parameter that makes no sense in the mode of the tenant.
    pub fn read(settings: &Settings, host: &HostOptions) -> Result<Self, Vec<Problem>> {
        let mode = match settings.text_opt("mode") {
            Some("open") => Mode::Open,
            Some(_) => Mode::Closed,
            None => host.mode,
        };
        let own_depth = settings.count_opt("queue_depth").map(|depth| depth as u32);
        let queue_depth = own_depth.unwrap_or(host.queue_depth);
        let outstanding = settings.count_opt("outstanding").map(|count| count as u32);
        let think_time = settings.duration_opt("think_time");
        let mut problems = Vec::new();
        if mode == Mode::Open {
            let message = "belongs to `mode = \"closed\"`; remove it, or change the mode";
            let closed =
                [("outstanding", outstanding.is_some()), ("think_time", think_time.is_some())];
            let given = closed.into_iter().filter(|(_, given)| *given);
            problems.extend(given.map(|(key, _)| Problem::new(key, message)));
        }
        if outstanding.is_some_and(|count| own_depth.is_some_and(|depth| count < depth)) {
            let message = format!("must be at least queue_depth ({queue_depth})");
            problems.push(Problem::new("outstanding", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // `outstanding` of [host] is for each workload.
        let default = own_depth.unwrap_or(host.outstanding);
        Ok(Self {
            mode,
            queue_depth,
            outstanding: outstanding.unwrap_or(default),
            think_time: think_time.unwrap_or(host.think_time),
            weight: settings.count("weight") as u32,
            urgent: settings.text("priority") == "urgent",
            iops_max: settings.count_opt("iops_max"),
            bandwidth_max: settings.rate_opt("bandwidth_max"),
        })
    }

    /// A tenant without limits that behaves as a host with these options.
    pub const fn of(host: &HostOptions) -> Self {
        Self {
            mode: host.mode,
            queue_depth: host.queue_depth,
            outstanding: host.outstanding,
            think_time: host.think_time,
            weight: 1,
            urgent: false,
            iops_max: None,
            bandwidth_max: None,
        }
    }
}
