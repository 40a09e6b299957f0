//! The keys of tenants in scenarios.

use super::arbitration::Arbitration;
use crate::driver::{HostOptions, Mode};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::SimDuration;

/// The keys of `[host]` that matter with several workloads, all optional.
pub const HOST_PARAMS: &[Param] = HostParameters::PARAMS;

/// The keys of `[workload.NAME]` beside those of `[workload]`.
pub const PARAMS: &[Param] = Parameters::PARAMS;

hybridsim_config::params! {
    struct HostParameters {
        arbitration: Option<Arbitration> = Kind::Choice(Arbitration::NAMES), optional,
            "Several workloads: how requests are taken from their queues, as in NVMe; default \
             round-robin";
        arbitration_burst: Option<u32> = Kind::Count { min: 1, max: 256 }, optional,
            "Several workloads: requests taken from a queue in its turn; default 1";
    }
}

hybridsim_config::choices! {
    enum Class { Weighted = "weighted", Urgent = "urgent" }
}

hybridsim_config::params! {
    /// Parameters of a workload of several.
    pub struct Parameters {
        weight: u32 = Kind::Count { min: 1, max: 256 }, default "1"
            needs &[Needs::Is("priority", &["weighted"])],
            "Requests taken from the workload's queue in a round of `weighted-round-robin`";
        priority: Class = Kind::Choice(Class::NAMES), default "\"weighted\"",
            "Class of the queue: requests of the urgent class precede all others";
        iops_max: Option<u64> = Kind::Count { min: 1, max: 1_000_000_000 }, optional,
            "Rate limit in requests per second";
        bandwidth_max: Option<u64> = Kind::Rate, optional,
            "Rate limit in bytes read and written per second";
        queue_depth: Option<u32> = Kind::Count { min: 1, max: 65_536 }, optional,
            "Requests of the workload at the device at a time; default that of [host]";
        mode: Option<Mode> = Kind::Choice(Mode::NAMES), optional,
            "As in [host], for this workload; default that of [host]";
        outstanding: Option<u32> = Kind::Count { min: 1, max: 1_000_000 }, optional,
            "Closed loop: requests of the workload kept outstanding; default its queue_depth, \
             else that of [host]";
        think_time: Option<SimDuration> = Kind::Duration, optional,
            "Closed loop: time between a completion and the request that follows it; default that \
             of [host]";
        pub namespace_start: Option<u64> = Kind::Bytes, optional,
            "First byte of the part of the device that the workload addresses; default 0";
        pub namespace_size: Option<u64> = Kind::Bytes, optional,
            "Size of this part; default up to the end of the device";
    }
}

/// Service of all tenants by the host.
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
        let params = HostParameters::from_settings(settings);
        Self {
            queue_depth: host.queue_depth,
            outstanding_max: host.outstanding_max,
            ends_early: host.ends_early,
            from_issue: host.from_issue,
            arbitration: params.arbitration.unwrap_or_default(),
            burst: params.arbitration_burst.unwrap_or(1),
        }
    }
}

/// Submission of requests by a tenant.
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
        let params = Parameters::from_settings(settings);
        let Parameters { queue_depth: own_depth, outstanding, think_time, .. } = params;
        let mode = params.mode.unwrap_or(host.mode);
        let queue_depth = own_depth.unwrap_or(host.queue_depth);
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
            weight: params.weight,
            urgent: params.priority == Class::Urgent,
            iops_max: params.iops_max,
            bandwidth_max: params.bandwidth_max,
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
