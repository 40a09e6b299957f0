//! Write-back of dirty pages, flushes, and the timers that trigger them.

use super::{IDLE, MemoryCache, PERIOD, UNSAVED_SECTORS, WRITE_BACK};
use crate::event::CacheEvent;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{Completion, Ctx, Flags, Lba, Op, Outcome, Request};

impl MemoryCache {
    /// Writes back the pages dirtied up to `wanted`, oldest first, with their neighbours.
    pub(super) fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        /// Write-backs outstanding at once.
        const WRITE_BACKS_MAX: usize = 4;
        while self.writing.len() < WRITE_BACKS_MAX {
            let Some((since, slot)) = self.pages.oldest_dirty() else { return };
            if since > self.wanted {
                return;
            }
            self.write_page(ctx, slot);
        }
    }

    /// Writes back the first run of dirty sectors of a page, continued into the following pages.
    /// Returns the number of the write that made the page dirty.
    pub(super) fn write_page(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> u64 {
        let page = *self.pages.get(slot);
        let since = page.since;
        let from = page.number * self.page_sectors + u64::from(page.dirty.trailing_zeros());
        let mut end = from;
        for number in page.number..page.number.saturating_add(self.params.flush_cluster) {
            let Some(slot) = self.pages.find(number) else { break };
            let page = *self.pages.get(slot);
            if page.flushing || page.pins > 0 {
                break;
            }
            let start = number * self.page_sectors;
            let run = (!(page.dirty >> (end - start))).trailing_zeros();
            if run == 0 {
                break;
            }
            let stop = (end + u64::from(run)).min(start + self.page_sectors);
            let sectors = self.bits_of(number, end, stop);
            self.pages.change(slot, |page| {
                page.dirty &= !sectors;
                page.flushing = true;
            });
            end = stop;
            if end < start + self.page_sectors {
                break;
            }
        }
        let sectors = (end - from) as u32;
        let data = ctx.take_data(sectors);
        if ctx.verifying() {
            self.contents.read(from, ctx.data().versions_mut(data, sectors));
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
        let failed = done.failed();
        if failed {
            let value = u64::from(done.request.sectors);
            ctx.emit(CommonEvent::Custom { name: UNSAVED_SECTORS, value });
            // Retried for the next eviction, flush or timer.
            self.wanted = 0;
            self.fail_flushes(ctx, since);
        }
        self.broken = failed;
        let (lba, end) = (done.request.lba.0, done.request.end().0);
        for number in self.numbers(&done.request) {
            let lost = if failed { self.bits_of(number, lba, end) } else { 0 };
            if let Some(slot) = self.pages.find(number) {
                self.pages.change(slot, |page| {
                    page.flushing = false;
                    page.dirty |= lost & page.valid;
                });
            }
        }
    }

    /// Fails the flushes that cover write `since`, whose write-back has failed.
    pub(super) fn fail_flushes(&mut self, ctx: &mut Ctx<'_>, since: u64) {
        for at in (0..self.flushes.len()).rev() {
            let (index, until) = self.flushes[at];
            if until >= since {
                self.flushes.remove(at);
                self.finish(ctx, index, Outcome::Failed);
            }
        }
    }

    /// Passes flushes to the device once the writes they cover have been written back.
    pub(super) fn end_flushes(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(&(index, until)) = self.flushes.front() {
            let busy = self.writing.iter().any(|since| *since <= until);
            if busy || self.pages.is_dirty_until(until) {
                return;
            }
            self.flushes.pop_front();
            let request = self.ops[index as usize].request;
            ctx.issue(0, request, u64::from(index));
        }
    }

    /// Sets the timers while any page is dirty.
    pub(super) fn set_timers(&mut self, ctx: &mut Ctx<'_>) {
        let dirty = self.pages.is_dirty_until(u64::MAX);
        if let Some(period) = self.period
            && dirty
            && !std::mem::replace(&mut self.period_set, true)
        {
            ctx.wake_after(period, PERIOD);
        }
        if let Some(idle) = self.params.flush_idle
            && dirty
            && !std::mem::replace(&mut self.idle_set, true)
        {
            ctx.wake_after(idle, IDLE);
        }
    }
}
