//! Write-back ahead of need (beyond the paper): while the cache is idle, the next dirty pages in
//! eviction order are written to the disk. They stay cached and can be evicted at once later.

use super::FlashCache;
use super::evict::Purpose;
use hybridsim_engine::{Ctx, SimDuration, SimTime};

/// Times at which pages are written back ahead of need, and their number.
#[derive(Debug)]
pub struct WriteAhead {
    /// Most pages written back ahead of need; 0 turns it off.
    pages_max: u64,
    /// Idle time after which it starts.
    pause: SimDuration,
    pub(super) idle_since: SimTime,
    pub(super) timer: bool,
}

impl WriteAhead {
    pub fn new(pages_max: u64, pause: SimDuration) -> Self {
        let pause = pause.max(SimDuration::from_us(1));
        Self { pages_max, pause, idle_since: SimTime::ZERO, timer: false }
    }
}

impl FlashCache {
    /// Pages to write back once the cache has been idle for long enough.
    fn to_write_ahead(&self) -> u64 {
        let done = self.lists.written_back();
        let missing = self.write_ahead.pages_max.saturating_sub(done);
        missing.min(self.lists.dirty.len().saturating_sub(done))
    }

    fn is_idle(&self) -> bool {
        self.core.executing == 0 && self.destaging == 0 && self.core.short_of_space.is_empty()
    }

    pub(super) fn set_write_ahead_timer(&mut self, ctx: &mut Ctx<'_>) {
        if self.write_ahead.timer || !self.is_idle() || self.to_write_ahead() == 0 {
            return;
        }
        self.write_ahead.timer = true;
        ctx.wake_at((self.write_ahead.idle_since + self.write_ahead.pause).max(ctx.now()), 0);
    }

    /// The timer has expired; requests may have arrived since it was set.
    pub(super) fn write_ahead_timer_expired(&mut self, ctx: &mut Ctx<'_>) {
        self.write_ahead.timer = false;
        let idle_for = ctx.now().since(self.write_ahead.idle_since);
        if self.is_idle() && idle_for >= self.write_ahead.pause {
            self.destage(ctx, self.to_write_ahead() as usize, Purpose::WriteAhead);
            // All pages are locked: tries again after the next pause, not in this instant.
            if self.destaging == 0 {
                self.write_ahead.idle_since = ctx.now();
            }
        }
    }
}
