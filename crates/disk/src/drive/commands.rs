//! ATA-8's immediate power commands: STANDBY IMMEDIATE stops the spindle, IDLE IMMEDIATE starts it.
//!
//! Where the standard leaves room (assumed): a drive stops when it has written its buffer and has
//! nothing else to do, so requests that come before that are served first, and the command is done
//! when the spindle stands. Commands are taken in the order they come. The next access to the
//! medium starts the spindle; what the buffer can serve does not.

use super::HardDisk;
use hybridsim_engine::{Command, Ctx, LatencyBreakdown, LatencyPhase, RequestId, SimTime};

impl HardDisk {
    /// A command about the spindle.
    pub(super) fn take_command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command) {
        self.commands.push_back((id, command));
        self.pump(ctx);
    }

    /// Obeys commands that nothing stands in the way of any more.
    pub(super) fn obey(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        while let Some(&(id, command)) = self.commands.front() {
            if command == Command::Standby && (now < self.free_at || self.has_work()) {
                return;
            }
            self.commands.pop_front();
            let (end, part) = if command == Command::Standby {
                self.sweep = None;
                (self.clock.stop(now), LatencyPhase::Overhead)
            } else {
                if self.clock.rests(now) && now >= self.free_at {
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

    /// Whether anything is left to do with the medium.
    fn has_work(&self) -> bool {
        !self.scheduler.is_empty()
            || !self.stalled.is_empty()
            || !self.flushes.is_empty()
            || self.buffer.borrow().dirty() > 0
    }

    /// By when buffered writes are wanted on the medium by an otherwise idle drive.
    pub(super) fn destage_due(&self, now: SimTime) -> SimTime {
        if self.commands.is_empty() { now } else { SimTime::NEVER }
    }
}
