//! Dirty lines on their way to the device: who asks for it, and what follows.

use super::{IDLE, MemoryCache, PERIOD, UNSAVED_SECTORS, WRITE_BACK};
use crate::event::CacheEvent;
use hybridsim_engine::{CommonEvent, Completion, Ctx, Flags, Lba, Op, Outcome, Request};

impl MemoryCache {
    /// Writes back what is wanted, oldest first, and what stands beside it.
    pub(super) fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        /// Write-backs at the device at a time.
        const AT_A_TIME: usize = 4;
        while self.writing.len() < AT_A_TIME {
            let Some((since, slot)) = self.lines.oldest_dirty() else { return };
            if since > self.wanted {
                return;
            }
            self.write_line(ctx, slot);
        }
    }

    /// Writes back the first dirty sectors of a line, and what stands beside them in the lines
    /// after it; answers the number of the write that made it dirty.
    pub(super) fn write_line(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> u64 {
        let line = *self.lines.get(slot);
        let since = line.since;
        let from = line.number * self.line_sectors + u64::from(line.dirty.trailing_zeros());
        let mut end = from;
        for number in line.number..line.number.saturating_add(self.cluster) {
            let Some(slot) = self.lines.find(number) else { break };
            let line = *self.lines.get(slot);
            if line.flushing || line.pins > 0 {
                break;
            }
            let start = number * self.line_sectors;
            let run = (!(line.dirty >> (end - start))).trailing_zeros();
            if run == 0 {
                break;
            }
            let stop = (end + u64::from(run)).min(start + self.line_sectors);
            let sectors = self.bits_of(number, end, stop);
            self.lines.change(slot, |line| {
                line.dirty &= !sectors;
                line.flushing = true;
            });
            end = stop;
            if end < start + self.line_sectors {
                break;
            }
        }
        let sectors = (end - from) as u32;
        let data = ctx.take_data(sectors);
        if ctx.verifying() {
            self.contents.read(from, ctx.data().stamps_mut(data, sectors));
        }
        let write = Request::new(Op::Write, Lba(from), sectors);
        let write = Request { flags: Flags::BACKGROUND, data, ..write };
        self.writing.push(since);
        ctx.emit(CacheEvent::Destaged { sectors });
        ctx.issue(0, write, WRITE_BACK | since);
        since
    }

    pub(super) fn written_back(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let since = done.tag & !WRITE_BACK;
        if let Some(at) = self.writing.iter().position(|other| *other == since) {
            self.writing.swap_remove(at);
        }
        for index in &self.stalled {
            let op = &mut self.ops[*index as usize];
            op.awaits = op.awaits.filter(|number| *number != since);
        }
        ctx.data().give_back(done.request.data);
        let failed = done.outcome == Outcome::Failed;
        if failed {
            let value = u64::from(done.request.sectors);
            ctx.emit(CommonEvent::Custom { name: UNSAVED_SECTORS, value });
            // Tried again when room, a flush or the next round asks for it.
            self.wanted = 0;
            self.fail_flushes(ctx, since);
        }
        self.broken = failed;
        let (lba, end) = (done.request.lba.0, done.request.end().0);
        for number in self.numbers(&done.request) {
            let lost = if failed { self.bits_of(number, lba, end) } else { 0 };
            if let Some(slot) = self.lines.find(number) {
                self.lines.change(slot, |line| {
                    line.flushing = false;
                    line.dirty |= lost & line.valid;
                });
            }
        }
    }

    /// What a write numbered `since` brought is not where flushes after it want it.
    pub(super) fn fail_flushes(&mut self, ctx: &mut Ctx<'_>, since: u64) {
        for at in (0..self.flushes.len()).rev() {
            let (index, until) = self.flushes[at];
            if until >= since {
                self.flushes.remove(at);
                self.finish(ctx, index, Outcome::Failed);
            }
        }
    }

    /// Flushes go on to the device once what they are about is there.
    pub(super) fn end_flushes(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(&(index, until)) = self.flushes.front() {
            let busy = self.writing.iter().any(|since| *since <= until);
            if busy || self.lines.is_dirty_until(until) {
                return;
            }
            self.flushes.pop_front();
            let request = self.ops[index as usize].request;
            ctx.issue(0, request, u64::from(index));
        }
    }

    /// Sets the timers there is something to do for.
    pub(super) fn set_timers(&mut self, ctx: &mut Ctx<'_>) {
        let dirty = self.lines.is_dirty_until(u64::MAX);
        if let Some(period) = self.period
            && dirty
            && !std::mem::replace(&mut self.period_set, true)
        {
            ctx.wake_after(period, PERIOD);
        }
        if let Some(idle) = self.idle
            && dirty
            && !std::mem::replace(&mut self.idle_set, true)
        {
            ctx.wake_after(idle, IDLE);
        }
    }
}
