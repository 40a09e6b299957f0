//! Writing back ahead of need (beyond the paper): while nobody waits, the disk gets some of the
//! dirty pages that go next. They stay as they are until room is needed, and then go at once.

use super::FlashCache;
use super::evict::Purpose;
use hybridsim_engine::{Ctx, SimDuration, SimTime};

/// When and how much.
#[derive(Debug)]
pub struct Ahead {
    /// Most pages that are kept ready to go; none turns it off.
    pages_max: u64,
    /// A pause that long has to come before.
    pause: SimDuration,
    idle_since: SimTime,
    timer: bool,
}

impl Ahead {
    /// So many pages, after such a pause.
    pub fn new(pages_max: u64, pause: SimDuration) -> Self {
        let pause = pause.max(SimDuration::from_us(1));
        Self { pages_max, pause, idle_since: SimTime::ZERO, timer: false }
    }

    /// Somebody is served: the pause, if there was one, is over.
    pub fn served(&mut self, now: SimTime) {
        self.idle_since = now;
    }

    /// No timer is set any more.
    pub fn stop(&mut self) {
        self.timer = false;
    }
}

impl FlashCache {
    /// Pages to be written back now, were it idle for long enough.
    fn to_write_ahead(&self) -> u64 {
        let ready = self.sides.ready();
        let room = self.ahead.pages_max.saturating_sub(ready);
        room.min(self.sides.dirty.len().saturating_sub(ready))
    }

    fn is_idle(&self) -> bool {
        self.executing == 0 && self.destaging == 0 && self.short_of_space.is_empty()
    }

    pub(super) fn set_ahead_timer(&mut self, ctx: &mut Ctx<'_>) {
        if self.ahead.timer || !self.is_idle() || self.to_write_ahead() == 0 {
            return;
        }
        self.ahead.timer = true;
        ctx.wake_at((self.ahead.idle_since + self.ahead.pause).max(ctx.now()), 0);
    }

    /// The timer went off; there may have been requests since it was set.
    pub(super) fn write_ahead(&mut self, ctx: &mut Ctx<'_>) {
        self.ahead.timer = false;
        let idle = self.is_idle() && ctx.now().since(self.ahead.idle_since) >= self.ahead.pause;
        if idle {
            self.destage(ctx, self.to_write_ahead() as usize, Purpose::Ahead);
            // All of them are in use: asked again after the next pause, not in this instant.
            if self.destaging == 0 {
                self.ahead.idle_since = ctx.now();
            }
        }
    }
}
