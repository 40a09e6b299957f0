//! ATA-8's immediate power commands: STANDBY IMMEDIATE stops the spindle, IDLE IMMEDIATE starts it.
//!
//! Assumed where the standard leaves it open: a drive spins down when it has written its buffer and
//! is idle, so commands that arrive before are served first; STANDBY IMMEDIATE completes when the
//! spindle has stopped. Power commands execute in order of arrival. The next access to the medium
//! starts the spindle; buffer hits do not.

use super::HardDisk;
use hybridsim_engine::{Command, Ctx, LatencyBreakdown, LatencyPhase, RequestId, SimTime};

impl HardDisk {
    pub(super) fn power_command_arrived(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: RequestId,
        command: Command,
    ) {
        self.commands.push_back((id, command));
        self.schedule_next(ctx);
    }

    /// Executes the power commands that need not wait for other work.
    pub(super) fn run_power_commands(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        while let Some(&(id, command)) = self.commands.front() {
            if command == Command::Standby && (now < self.free_at || self.has_work()) {
                return;
            }
            self.commands.pop_front();
            let (end, part) = if command == Command::Standby {
                self.read_ahead = None;
                (self.clock.stop(now), LatencyPhase::Overhead)
            } else {
                if self.clock.is_stopped(now) && now >= self.free_at {
                    self.free_at = self.clock.wake(now);
                }
                (self.clock.turns_from().max(now), LatencyPhase::SpinUp)
            };
            let waited = now.since(ctx.issued(id));
            let breakdown =
                LatencyBreakdown::NONE.plus(LatencyPhase::Queue, waited).plus(part, end.since(now));
            ctx.complete_at(id, end, breakdown);
        }
    }

    /// Whether commands or buffered writes are waiting for the medium.
    fn has_work(&self) -> bool {
        !self.queue.is_empty()
            || !self.stalled_writes.is_empty()
            || !self.flushes.is_empty()
            || self.buffer.borrow().dirty() > 0
    }

    /// Buffered writes due by this time are destaged by an idle drive.
    pub(super) fn destage_due(&self, now: SimTime) -> SimTime {
        if self.commands.is_empty() { now } else { SimTime::NEVER }
    }
}
