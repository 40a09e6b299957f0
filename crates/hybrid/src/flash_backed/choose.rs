//! Selection of the next operation: a request, or a destage of part of the FQueue.

use super::rule::{Times, redirects};
use super::work::Flushing;
use super::{Coalesced, FlashBacked, Last, Metric, Overwrites, Ties};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::{Head, Queued};
use hybridsim_engine::{Ctx, Lba, Op, Request, SimDuration};

impl FlashBacked {
    /// Starts operations while none is executing.
    pub(super) fn advance(&mut self, ctx: &mut Ctx<'_>) {
        // Requests served from memory complete at once, so there may be several.
        while self.active.is_none() {
            self.look_at_watermarks();
            let nothing = self.waiting == 0;
            if self.flushing && (self.flush_turn || nothing) {
                self.flush_turn = false;
                if !self.flush(ctx, Flushing::Watermark) {
                    break;
                }
            } else if !nothing {
                self.flush_turn = true;
                let item = self.take_next(ctx, self.last).expect("one waits");
                if !self.start_request(ctx, item) {
                    self.held = Some(item);
                    break;
                }
                self.waiting -= 1;
            } else if !self.wants_idle(ctx) || !self.flush(ctx, Flushing::Idle) {
                break;
            }
        }
        let level = self.fqueue.used();
        if level != self.reported_level {
            self.reported_level = level;
            self.report(ctx, Metric::Level, level);
        }
    }

    pub(super) fn report(&self, ctx: &mut Ctx<'_>, what: Metric, value: u64) {
        ctx.emit(CommonEvent::Custom { name: what as u8, value });
    }

    fn look_at_watermarks(&mut self) {
        let used = self.fqueue.used();
        if self.broken || self.fqueue.is_empty() {
            self.flushing = false;
        } else if self.flushing {
            self.flushing = used > self.flush_to;
        } else if used as f64 >= self.params.high * self.fqueue.size() as f64 {
            (self.flushing, self.flush_turn) = (true, true);
            self.flush_to = self.low();
        }
    }

    fn low(&self) -> u64 {
        (self.params.low * self.fqueue.size() as f64) as u64
    }

    /// Whether the FQueue is to be destaged now because the queue is empty.
    fn wants_idle(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let writing = self.redirects.iter().any(Option::is_some);
        if !self.params.idle || self.broken || writing || self.fqueue.is_empty() {
            return false;
        }
        if self.fqueue.used() <= (self.params.idle_to * self.fqueue.size() as f64) as u64 {
            return false;
        }
        let due = self.idle_since + self.params.idle_delay;
        if due > ctx.now() && !self.idle_armed {
            self.idle_armed = true;
            ctx.wake_at(due, 0);
        }
        due <= ctx.now()
    }

    /// The next request with the head at `last`.
    fn take_next(&mut self, ctx: &Ctx<'_>, last: Lba) -> Option<Queued> {
        if let Some(item) = self.held.take().or_else(|| self.lookahead.take()) {
            return Some(item);
        }
        let positioner = self.positioner.as_deref();
        self.scheduler.pop(&Head { now: ctx.now(), last, positioner })
    }

    /// Starts a request; returns `false` if it has to wait for a concurrent redirected write.
    fn start_request(&mut self, ctx: &mut Ctx<'_>, item: Queued) -> bool {
        let request = item.request;
        let (lba, end) = (request.lba.0, request.end().0);
        if request.op != Op::Flush && self.overlaps_redirect(lba, end) {
            return false;
        }
        match request.op {
            Op::Flush => self.pass(ctx, item),
            Op::Trim => {
                self.fqueue.find(lba, end, false, &mut self.overlaps);
                self.pass_gaps(ctx, item);
            }
            Op::Read => {
                self.fqueue.find(lba, end, false, &mut self.overlaps);
                self.read(ctx, item);
            }
            Op::Write => return self.start_write(ctx, item),
            Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
        }
        true
    }

    /// Whether a range overlaps a concurrent redirected write, or is adjacent with `touching`.
    pub(super) fn overlaps_redirect(&self, lba: u64, end: u64) -> bool {
        let reach = u64::from(self.params.coalesce == Coalesced::Touching);
        let meets =
            |range: std::ops::Range<u64>| lba < range.end + reach && range.start < end + reach;
        self.redirects.iter().flatten().any(|active| meets(active.range()))
    }

    /// bisson-fqueue, figure 6. Returns whether the write could be started.
    fn start_write(&mut self, ctx: &mut Ctx<'_>, item: Queued) -> bool {
        let Request { lba, sectors, .. } = item.request;
        let (first, end) = (lba.0, item.request.end().0);
        let touching = self.params.coalesce == Coalesced::Touching;
        self.fqueue.find(first, end, touching, &mut self.overlaps);
        let covers = self.overlaps.iter().all(|(at, length)| *at >= first && at + length <= end);
        let may_replace = self.params.overwrites == Overwrites::Replace && covers;
        if !self.overlaps.is_empty() && !may_replace {
            self.coalesce(ctx, item);
            return true;
        }
        let obsolete: u64 = self.overlaps.iter().map(|entry| entry.1).sum();
        let more = u64::from(sectors) - obsolete;
        if self.redirecting() && self.rule_says_so(ctx, &item.request) {
            if self.fqueue.used() + self.reserved + more <= self.fqueue.size() {
                return self.redirect(ctx, item, more);
            }
            // Too full for this write: flush for the next ones, if they can fit at all, perhaps
            // below the low watermark.
            if more <= self.fqueue.size() && !self.fqueue.is_empty() {
                self.flushing = true;
                self.flush_to = self.low().min(self.fqueue.size() - more);
            }
        }
        if self.overlaps.is_empty() {
            self.write(ctx, item)
        } else {
            self.coalesce(ctx, item)
        }
        true
    }

    fn redirecting(&self) -> bool {
        self.params.redirect && !self.broken && !self.flushing && self.fqueue.size() > 0
    }

    /// The inequality of bisson-fqueue, section III.B.
    fn rule_says_so(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> bool {
        let now = ctx.now();
        if self.lookahead.is_none() && self.waiting > 0 {
            self.lookahead = self.take_next(ctx, request.end());
        }
        let next = self.lookahead.map(|item| item.request).filter(|next| next.op != Op::Flush);
        let access = |from, to| self.access.time(now, from, to);
        let to_request = access(self.last, request.lba);
        let next = next.map(|next| (access(request.lba, next.lba), access(self.last, next.lba)));
        if next.is_none() && self.params.last == Last::Disk {
            return false;
        }
        let flash = self.flash_time(request);
        redirects(&Times { to_request, flash, next }, self.params.ties == Ties::Redirect)
    }

    fn flash_time(&self, request: &Request) -> SimDuration {
        let data = SimDuration::transfer(request.bytes(), self.params.flash_rate);
        self.params.flash_latency + data
    }
}
