//! Writes that wait for entries of the write buffer or for their programs, and the completion of
//! requests.

use super::{BUFFER_FREED, BackEnd, PROGRAMMED, SsdDevice, Translation};
use hybridsim_engine::{Ctx, Durable, LatencyPhase, RequestId, SimDuration, SimTime};
use hybridsim_flash::timing::{Scheduled, Timed};

/// A write that waits for the write buffer, or for its programs, and the time for which it waited
/// for a recovery before.
pub type WaitingWrite = (RequestId, SimDuration);

impl<T: Translation> SsdDevice<T> {
    /// `write` waits for the write buffer, whose first waiting write gets an entry at `until`.
    pub(super) fn wait(&mut self, ctx: &mut Ctx<'_>, write: WaitingWrite, until: SimTime) {
        if self.waiting.is_empty() {
            ctx.wake_at(until, BUFFER_FREED);
        }
        self.waiting.push_back(write);
    }

    /// Entries of the write buffer are free, unless reads have delayed the programs that free them.
    pub(super) fn buffer_freed(&mut self, ctx: &mut Ctx<'_>) {
        self.report_states(ctx, false);
        while let Some(scheduled) = self.translation.back_end().continue_write(ctx.now(), None) {
            self.state.busy_until = self.state.busy_until.max(scheduled.busy_until());
            let timed = match scheduled {
                Scheduled::Completes(timed) => timed,
                Scheduled::Waits(until) => {
                    ctx.wake_at(until, BUFFER_FREED);
                    break;
                }
                Scheduled::Programs { .. } => unreachable!("there is a write buffer"),
            };
            let write = self.waiting.pop_front().expect("it waits here as well");
            if ctx.power_may_fail() {
                self.in_flight.settle(write.0, timed.end);
            }
            complete(ctx, write, timed);
        }
        self.translation.back_end().report_busy(ctx, false);
        self.set_idle_timer(ctx);
    }

    /// `write`, the request `number` of the timing model, waits for its programs, which end at
    /// `until` unless reads delay them.
    pub(super) fn await_programs(
        &mut self,
        ctx: &mut Ctx<'_>,
        (number, write): (u64, WaitingWrite),
        until: SimTime,
    ) {
        self.programming.insert(number, write);
        ctx.wake_at(until, PROGRAMMED + number);
    }

    /// The programs of the request `number` of the timing model have ended, unless reads have
    /// delayed them.
    pub(super) fn programmed(&mut self, ctx: &mut Ctx<'_>, number: u64) {
        match self.translation.back_end().continue_write(ctx.now(), Some(number)) {
            Some(Scheduled::Programs { until, .. }) => ctx.wake_at(until, PROGRAMMED + number),
            Some(Scheduled::Completes(Timed { end, breakdown, .. })) => {
                let write = self.programming.remove(&number);
                let (id, queued) = write.expect("it waits here as well");
                if ctx.power_may_fail() {
                    self.in_flight.settle(id, end);
                }
                ctx.complete(id, breakdown.plus(LatencyPhase::Queue, queued));
            }
            Some(Scheduled::Waits(_)) | None => {}
        }
    }
}

/// Completes a request, which waited for a recovery for `queued` before it was served.
#[inline]
pub fn complete(ctx: &mut Ctx<'_>, (id, queued): WaitingWrite, timed: Timed) {
    let mut breakdown = timed.breakdown;
    if !queued.is_zero() {
        breakdown.add(LatencyPhase::Queue, queued);
    }
    ctx.complete_at(id, timed.end, breakdown);
}

/// Durability of the data of a write: when it completes, which is not known while it waits.
pub fn durable_from(id: RequestId, scheduled: &Scheduled) -> Durable {
    match scheduled {
        Scheduled::Completes(timed) => Durable::At(timed.end),
        Scheduled::Waits(_) | Scheduled::Programs { .. } => Durable::Served(u64::from(id.0)),
    }
}
