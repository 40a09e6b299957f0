//! Runs a system step by step: requests come from outside while simulated time passes, from a
//! server, from C, from Python.
//!
//! Invariant: a session gives the results of a run that reads the same requests from a trace with
//! the same arrival times, bit for bit. Two rules follow. A request cannot arrive at an instant
//! that has been simulated: [`Session::submit`] moves it to the next nanosecond. And without a
//! request outstanding nothing is simulated until the next one is submitted, because a run ends
//! with its last completion.

use crate::error::{PluginFaults, RunError};
use crate::faults::{self, FaultOrder};
use crate::progress::OnProgress;
use crate::run::{self, Assembled, Attachment, Conclusion, RunOutput};
use crate::scenario::{Scenario, resolve};
use crate::state::{self, PreconditionCache};
pub use crate::warnings::Handles;
use hybridsim_config::diagnostic::Diagnostics;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{
    Arrival, Component, ComponentTree, DataSlice, Fault, Op, Request, SimDuration, SimTime,
    StateError, Zoned,
};
pub use hybridsim_host::{Answer, Answered};
use hybridsim_host::{Host, HostOptions, QueuePair, not_completed};
use hybridsim_observe::{Detail, EndedBy};
use std::time::Duration;

/// The longest request whose data versions are tracked.
const VERSIONED_SECTORS_MAX: u32 = 1 << 22;

/// Options of a [`Session`].
#[derive(Default)]
pub struct Options<'a> {
    /// The level of observation.
    pub detail: Detail,
    /// Called while devices are preconditioned; returning `false` interrupts that.
    pub on_progress: Option<&'a mut OnProgress<'a>>,
    /// Stores the states of preconditioned devices between runs.
    pub cache: Option<PreconditionCache>,
    /// Whether reads return the versions of their data ([`Answer::versions`]).
    pub versions: bool,
    /// Whether [`Session::cut_power`] will be called.
    pub power_may_fail: bool,
    /// A state saved from the same system, to start from instead of `[run] state`.
    pub state: Option<Vec<u8>>,
    /// Whether to return [`RunOutput::state`].
    pub save_state: bool,
}

/// A request that was not submitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the request is empty, or not within the {capacity} sectors of the device")]
    OutOfRange { capacity: u64 },
    #[error("the request is longer than {sectors_max} sectors: split it")]
    TooLong { sectors_max: u32 },
}

/// A request that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The request's number, counted from 0.
    pub number: u64,
    /// Arrival time, since the start of the session.
    pub at: SimTime,
}

/// A system that runs step by step.
pub struct Session {
    scenario: Scenario,
    assembled: Assembled<'static>,
    pair: QueuePair,
    capacity: u64,
    submitted: u64,
    last: SimTime,
    /// Faults of the scenario, and those of [`Session::inject`], with their times.
    faults: Vec<(SimDuration, FaultOrder)>,
    injected: SimTime,
    /// The time the caller has advanced to; components may be behind it.
    advanced: SimTime,
    wall: Duration,
    power_may_fail: bool,
    /// Whether data versions are tracked.
    versions: bool,
    save_state: bool,
}

impl Session {
    /// Builds the system of `scenario`, whose workload is ignored, and preconditions it. Requests
    /// arrive in an open loop; `queue_depth`, `scheduler` and `latency_from` of the scenario's host
    /// apply.
    ///
    /// # Errors
    /// Fails when the scenario's components do not fit together, or cannot be prepared.
    pub fn open(
        scenario: &Scenario,
        registry: &Registry,
        options: Options<'_>,
    ) -> Result<Self, RunError> {
        let Options { detail, mut on_progress, cache, .. } = options;
        let mut scenario = scenario.clone();
        if options.state.is_some() {
            scenario.run.state = None;
        }
        let scenario = &scenario;
        drop(PluginFaults::begin(registry));
        let Attachment { system, host, scheduler } = run::attachment(scenario, registry)?;
        let host = HostOptions {
            outstanding_max: u64::MAX,
            from_issue: host.from_issue,
            ..HostOptions::open(host.queue_depth)
        };
        let (pair, capacity) = (QueuePair::default(), system.component.capacity());
        let positioner = system.component.positioner();
        let host = Host::attached(host, pair.clone(), options.versions, scheduler)
            .with_positioner(positioner)
            .configured_as(resolve::scheduler(scenario, registry));
        let root = ComponentTree::inner("host", host, vec![system]);
        let versions = options.versions || scenario.run.verify;
        let mut assembled =
            Assembled::new(scenario, registry, root, detail, versions, options.save_state)?;
        if let Some(bytes) = &options.state {
            let problem =
                |error: StateError| run::state_problem("the state cannot be used", &error);
            let state = state::unpack(bytes, &assembled.system()).map_err(problem)?;
            assembled.restore(&state).map_err(problem)?;
        }
        assembled.schedule_faults(scenario)?;
        if options.power_may_fail {
            assembled.machine.power_may_fail();
        }
        assembled
            .prepare(scenario, registry, cache.as_ref(), &mut on_progress)
            .map_err(|fault| RunError::Scenario(Diagnostics::single(fault.to_string())))?;
        Ok(Self {
            scenario: scenario.clone(),
            assembled,
            pair,
            capacity,
            submitted: 0,
            last: SimTime::ZERO,
            faults: faults::scheduled(&scenario.run.faults),
            injected: SimTime::ZERO,
            advanced: SimTime::ZERO,
            wall: Duration::ZERO,
            power_may_fail: options.power_may_fail,
            versions,
            save_state: options.save_state,
        })
    }

    /// Capacity of the system in sectors of 512 bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The time the session has advanced to, since its start.
    pub fn now(&self) -> SimTime {
        self.advanced
    }

    /// The devices at the leaves of the system.
    pub fn devices(&self) -> impl Iterator<Item = &dyn Component> {
        self.assembled.machine.devices()
    }

    /// The devices whose zones the host can reach one by one, with their first sectors.
    pub fn zoned_devices(&self) -> impl Iterator<Item = (u64, &dyn Zoned)> {
        self.assembled.machine.zoned_devices()
    }

    /// Whether the host can reach zones, those of a stripe included, which are of several devices.
    pub const fn has_zones(&self) -> bool {
        self.assembled.machine.has_zones()
    }

    /// Placement handles of the system's SSDs, if one places data by them.
    pub fn placement_handles(&self) -> Option<Handles> {
        Handles::of(&self.scenario)
    }

    /// Requests submitted that have not ended.
    pub fn outstanding(&self) -> u64 {
        self.submitted - self.pair.ended()
    }

    /// Submits a request that arrives at `at`, or as soon after as is still possible.
    ///
    /// # Errors
    /// [`Rejected`]; nothing has changed then.
    pub fn submit(&mut self, request: Request, at: SimTime) -> Result<Submitted, Rejected> {
        let within = request.sectors > 0 && request.end().0 <= self.capacity;
        if request.op != Op::Flush && !within {
            return Err(Rejected::OutOfRange { capacity: self.capacity });
        }
        let carries_versions = self.versions && matches!(request.op, Op::Read | Op::Write);
        if carries_versions && request.sectors > VERSIONED_SECTORS_MAX {
            return Err(Rejected::TooLong { sectors_max: VERSIONED_SECTORS_MAX });
        }
        let Assembled { machine, base, .. } = &mut self.assembled;
        let earliest = machine.earliest_arrival() - *base;
        let at = at.max(self.advanced).max(self.last).max(earliest);
        let request = Request { data: DataSlice::NONE, ..request };
        self.pair.submit(Arrival { at, request });
        // Otherwise the host has set a timer for an earlier one, or has not started.
        machine.wake_root(at + *base);
        (self.submitted, self.last) = (self.submitted + 1, at);
        Ok(Submitted { number: self.submitted - 1, at })
    }

    /// Simulates up to `time`, without what might follow an arrival at that very instant.
    ///
    /// # Errors
    /// The fault that ends the run.
    pub fn advance_to(&mut self, time: SimTime) -> Result<(), Fault> {
        self.advanced = self.advanced.max(time);
        while self.outstanding() > 0 && self.step(Some(time))? {}
        if self.outstanding() > 0 && self.assembled.machine.next_event().is_none() {
            return Err(self.stuck());
        }
        Ok(())
    }

    /// Removes the oldest answer there is, without simulating.
    pub fn answer(&mut self) -> Option<Answer> {
        self.pair.pop()
    }

    /// Simulates until a request ends and returns its answer; `None` when none is outstanding.
    ///
    /// # Errors
    /// The fault that ends the run.
    pub fn next_completion(&mut self) -> Result<Option<Answer>, Fault> {
        while self.outstanding() > 0 && !self.pair.is_answered() {
            if !self.step(None)? {
                return Err(self.stuck());
            }
        }
        let answer = self.pair.pop();
        if let Some(answer) = &answer {
            self.advanced = self.advanced.max(answer.at);
        }
        Ok(answer)
    }

    /// The time of the next event inside the system, while requests are outstanding. It may be
    /// earlier than their arrival: devices catch up with the time without requests.
    pub fn next_event(&mut self) -> Option<SimTime> {
        if self.outstanding() == 0 {
            return None;
        }
        let Assembled { machine, base, .. } = &mut self.assembled;
        // Without an event the system has not started.
        let next = machine.next_event().map_or(self.advanced, |next| next - *base);
        Some(next.max(self.advanced))
    }

    /// The power fails a nanosecond after `at`, or as soon after as possible, and comes back at
    /// once. Requests that have arrived, also at `at` itself, end as [`Answered::Lost`].
    ///
    /// # Errors
    /// A session without `power_may_fail`, a component that does not model power failures, or the
    /// fault that ends the run.
    pub fn cut_power(&mut self, at: SimTime) -> Result<(), Fault> {
        if !self.power_may_fail {
            let message = "the session was opened without `power_may_fail`";
            return Err(Fault::Workload(message.to_owned()));
        }
        let Assembled { machine, base, .. } = &self.assembled;
        let earliest = machine.earliest_arrival() - *base;
        // A request that arrives at the instant of the failure would be issued after it.
        let at = at.max(self.advanced).max(earliest) + SimDuration::from_ns(1);
        self.advanced = at;
        while self.step(Some(at))? {}
        let Assembled { machine, recorder, base, .. } = &mut self.assembled;
        machine.pass_time(at + *base);
        machine.cut_power_now(recorder)
    }

    /// A fault occurs at `at`, or as soon after as is possible, before everything else of that
    /// instant; requests submitted later arrive after it. Returns the time. In a run of a scenario
    /// that schedules the fault at this time ([`FaultOrder::to_toml`]) it has the same effect.
    ///
    /// # Errors
    /// Why it cannot occur; nothing has changed then.
    pub fn inject(&mut self, order: &FaultOrder, at: SimTime) -> Result<SimTime, String> {
        let Assembled { machine, base, .. } = &mut self.assembled;
        let passed = machine.now() - *base + SimDuration::from_ns(1);
        let at = at.max(self.advanced).max(passed);
        machine.schedule_fault(at + *base, order.component.as_deref(), order.fault)?;
        self.last = self.last.max(at);
        self.injected = self.injected.max(at);
        self.faults.push((at.since(SimTime::ZERO), order.clone()));
        Ok(at)
    }

    /// The faults of the scenario, and those of [`Session::inject`], with their times: what a run
    /// has to schedule to be the same.
    pub fn faults(&self) -> &[(SimDuration, FaultOrder)] {
        &self.faults
    }

    /// The names of the components that support faults, with the faults.
    pub fn supported_faults(&mut self) -> Vec<(String, &'static [&'static str])> {
        self.assembled.machine.supported_faults()
    }

    fn step(&mut self, before: Option<SimTime>) -> Result<bool, Fault> {
        let Assembled { machine, recorder, base, .. } = &mut self.assembled;
        machine.step(before.map(|time| time + *base), recorder)
    }

    fn stuck(&self) -> Fault {
        not_completed(self.outstanding(), self.assembled.machine.now())
    }

    /// Adds to the time the simulation took, which results report.
    pub fn add_wall(&mut self, wall: Duration) {
        self.wall += wall;
    }

    /// Serves what is outstanding and returns the results. With `fault`, the run ended early.
    ///
    /// # Errors
    /// Fails when the state cannot be saved.
    pub fn finish(
        mut self,
        registry: &Registry,
        fault: Option<Fault>,
        warnings: Vec<String>,
    ) -> Result<RunOutput, RunError> {
        let ended = fault.map_or_else(|| self.serve_all(), Err);
        let Assembled { machine, recorder, .. } = &mut self.assembled;
        let ended = match ended {
            Ok(()) => machine.end(recorder),
            failed => {
                machine.flush_events(recorder);
                failed
            }
        };
        let fault = PluginFaults::pending(registry).or(ended).err();
        self.assembled.conclude(
            &self.scenario,
            registry,
            Conclusion {
                fault,
                by: EndedBy::Completion,
                wall_s: self.wall.as_secs_f64(),
                warnings,
                is_open: true,
                save_state: self.save_state,
            },
        )
    }

    fn serve_all(&mut self) -> Result<(), Fault> {
        while self.outstanding() > 0 {
            if !self.step(None)? {
                return Err(self.stuck());
            }
        }
        // Faults that were asked for when no request was left are part of the state.
        let injected = |session: &Self| {
            let Assembled { machine, base, .. } = &session.assembled;
            machine.now() - *base >= session.injected
        };
        while self.save_state && !injected(self) && self.step(None)? {}
        // A state is saved with no request in flight between components either.
        while self.save_state && self.assembled.machine.in_flight() > 0 && self.step(None)? {}
        Ok(())
    }
}

impl Assembled<'_> {
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        self.machine.restore(state)?;
        self.base = self.machine.now().since(SimTime::ZERO);
        self.recorder.start_at(self.base);
        Ok(())
    }
}
