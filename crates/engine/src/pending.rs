//! Requests of the parent that a component serves by issuing requests of its own, and the
//! accounting of their latency.

use crate::component::{Completion, Outcome};
use crate::latency::{LatencyBreakdown, LatencyPhase};
use crate::machine::Ctx;
use crate::request::{Request, RequestId};
use crate::time::SimTime;

/// A request that completes when all requests issued for it have completed.
///
/// The latency breakdown is that of the one that completed last: all were issued when the request
/// arrived, so the last is the critical path. A component whose requests depend on each other keeps
/// a [`LatencyAccount`] for each chain.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    /// The parent's name for it.
    pub id: RequestId,
    /// The request.
    pub request: Request,
    /// Requests issued for it that have not completed.
    pub outstanding: u32,
    /// Whether one of them failed, and so the request does.
    pub failed: bool,
}

impl PendingRequest {
    /// A request for which `outstanding` requests are being issued.
    #[inline]
    pub const fn new(id: RequestId, request: &Request, outstanding: u32) -> Self {
        Self { id, request: *request, outstanding, failed: false }
    }

    /// One of the outstanding requests has completed; returns whether it was the last.
    #[inline]
    pub fn one_done(&mut self, failed: bool) -> bool {
        self.failed |= failed;
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Completes the request now, as failed if one of its requests did.
    #[inline]
    pub fn complete(&self, ctx: &mut Ctx<'_>, breakdown: LatencyBreakdown) {
        ctx.complete_as(self.id, breakdown, self.failed);
    }
}

/// The latency of work that proceeds in steps, from its start to the last step accounted for.
#[derive(Clone, Copy, Debug)]
pub struct LatencyAccount {
    breakdown: LatencyBreakdown,
    until: SimTime,
}

impl LatencyAccount {
    /// Work that starts at `since`.
    #[inline]
    pub const fn new(since: SimTime) -> Self {
        Self { breakdown: LatencyBreakdown::NONE, until: since }
    }

    /// The time accounted for, by phase.
    #[inline]
    pub const fn breakdown(&self) -> LatencyBreakdown {
        self.breakdown
    }

    /// The end of the time accounted for.
    #[inline]
    pub const fn until(&self) -> SimTime {
        self.until
    }

    /// Adds the time up to `now` to the queueing time.
    #[inline]
    pub fn queued(&mut self, now: SimTime) {
        self.breakdown.add(LatencyPhase::Queue, now.since(self.until));
        self.until = now;
    }

    /// Adds `step`, the breakdown of the time up to `now`.
    #[inline]
    pub fn served(&mut self, now: SimTime, step: &LatencyBreakdown) {
        for (phase, time) in step.phases() {
            self.breakdown.add(phase, time);
        }
        self.until = now;
    }
}

impl Completion {
    /// Whether the request failed.
    #[inline]
    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }
}

impl Ctx<'_> {
    /// Completes a request of the parent now, as failed or as served.
    #[inline]
    pub fn complete_as(&mut self, id: RequestId, breakdown: LatencyBreakdown, failed: bool) {
        if failed {
            self.fail_request(id, breakdown);
        } else {
            self.complete(id, breakdown);
        }
    }
}
