//! Power failure of a drive: the buffer is lost, and the spindle stops.

use super::HardDisk;
use crate::cache::segments::Segments;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{Ctx, PowerState, SimTime};

impl HardDisk {
    /// Sectors are written atomically; of a write in flight any part may be on the medium.
    pub(super) fn lose_power(&mut self, now: SimTime) {
        self.undo.cut(&mut self.contents, now, &mut self.power);
        let mut buffer = self.buffer.borrow_mut();
        *buffer = Segments::new(*buffer.spec());
        drop(buffer);
        self.queue.clear(self.head);
        self.stalled_writes.clear();
        self.flushes.clear();
        self.commands.clear();
        self.owes_destage = false;
        (self.read_ahead, self.destaging) = (None, None);
        (self.free_at, self.electronics_free, self.wake_at) = (now, now, SimTime::NEVER);
        self.answered = now;
    }

    /// The drive is ready after spin-up.
    pub(super) fn spin_up_again(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.clock.emit(ctx);
        let ready = self.clock.start_again(now);
        self.free_at = ready;
        self.clock.plan(PowerState::SpinUp, ready);
        ctx.emit(CommonEvent::Recovered { took: ready.since(now) });
    }
}
