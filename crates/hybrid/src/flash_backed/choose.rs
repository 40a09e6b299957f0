//! What is done next: a request, or a piece of the FQueue.

use super::rule::{Times, redirects};
use super::work::Flushing;
use super::{FlashBacked, Told};
use hybridsim_engine::schedule::{Head, Queued};
use hybridsim_engine::{CommonEvent, Ctx, Lba, Op, Request, SimDuration};

impl FlashBacked {
    /// Begins what is next, if nothing is under way.
    pub(super) fn advance(&mut self, ctx: &mut Ctx<'_>) {
        // Requests answered from memory end at once, so there may be several.
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
        if level != self.level_told {
            self.level_told = level;
            self.tell(ctx, Told::Level, level);
        }
    }

    pub(super) fn tell(&self, ctx: &mut Ctx<'_>, what: Told, value: u64) {
        ctx.emit(CommonEvent::Custom { name: what as u8, value });
    }

    fn look_at_watermarks(&mut self) {
        let used = self.fqueue.used();
        if self.broken || self.fqueue.is_empty() {
            self.flushing = false;
        } else if self.flushing {
            self.flushing = used > self.flush_to;
        } else if used as f64 >= self.options.high * self.fqueue.size() as f64 {
            (self.flushing, self.flush_turn) = (true, true);
            self.flush_to = self.low();
        }
    }

    /// The low watermark in sectors.
    fn low(&self) -> u64 {
        (self.options.low * self.fqueue.size() as f64) as u64
    }

    /// Whether the FQueue is to be written back now because nothing else is to do.
    fn wants_idle(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let writing = self.beside.iter().any(Option::is_some);
        if !self.options.idle || self.broken || writing || self.fqueue.is_empty() {
            return false;
        }
        let due = self.idle_since + self.options.idle_delay;
        if due > ctx.now() && !self.idle_armed {
            self.idle_armed = true;
            ctx.wake_at(due, 0);
        }
        due <= ctx.now()
    }

    /// The request that goes next when the disk's head is at `last`.
    fn take_next(&mut self, ctx: &Ctx<'_>, last: Lba) -> Option<Queued> {
        if let Some(item) = self.held.take().or_else(|| self.staged.take()) {
            return Some(item);
        }
        let positioner = self.positioner.as_deref();
        self.scheduler.pop(&Head { now: ctx.now(), last, positioner })
    }

    /// Whether it could be started; otherwise it has to wait for a write beside.
    fn start_request(&mut self, ctx: &mut Ctx<'_>, item: Queued) -> bool {
        let request = item.request;
        let (lba, end) = (request.lba.0, request.end().0);
        if request.op != Op::Flush && self.meets_beside(lba, end) {
            return false;
        }
        match request.op {
            Op::Flush => self.pass(ctx, item),
            Op::Trim => {
                self.fqueue.find(lba, end, false, &mut self.met);
                self.pass_gaps(ctx, item);
            }
            Op::Read => {
                self.fqueue.find(lba, end, false, &mut self.met);
                self.read(ctx, item);
            }
            Op::Write => return self.start_write(ctx, item),
        }
        true
    }

    /// Whether these sectors overlap (or touch, where that counts) one of the writes beside.
    pub(super) fn meets_beside(&self, lba: u64, end: u64) -> bool {
        let reach = u64::from(self.options.touching);
        let meets =
            |range: std::ops::Range<u64>| lba < range.end + reach && range.start < end + reach;
        self.beside.iter().flatten().any(|active| meets(active.range()))
    }

    /// bisson-fqueue, figure 6. Whether it could be started.
    fn start_write(&mut self, ctx: &mut Ctx<'_>, item: Queued) -> bool {
        let Request { lba, sectors, .. } = item.request;
        let (first, end) = (lba.0, item.request.end().0);
        self.fqueue.find(first, end, self.options.touching, &mut self.met);
        let covers = self.met.iter().all(|(at, length)| *at >= first && at + length <= end);
        let may_replace = self.options.replace && covers;
        if !self.met.is_empty() && !may_replace {
            self.coalesce(ctx, item);
            return true;
        }
        let obsolete: u64 = self.met.iter().map(|entry| entry.1).sum();
        let more = u64::from(sectors) - obsolete;
        if self.redirecting() && self.rule_says_so(ctx, &item.request) {
            if self.fqueue.used() + self.reserved + more <= self.fqueue.size() {
                return self.redirect(ctx, item, more);
            }
            // Full for this one: make room for those to come, if they can fit at all. That may take
            // more than the low watermark.
            if more <= self.fqueue.size() && !self.fqueue.is_empty() {
                self.flushing = true;
                self.flush_to = self.low().min(self.fqueue.size() - more);
            }
        }
        if self.met.is_empty() {
            self.write(ctx, item)
        } else {
            self.coalesce(ctx, item)
        }
        true
    }

    fn redirecting(&self) -> bool {
        self.options.redirect && !self.broken && !self.flushing && self.fqueue.size() > 0
    }

    /// bisson-fqueue, section III.B: the inequality.
    fn rule_says_so(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> bool {
        let now = ctx.now();
        if self.staged.is_none() && self.waiting > 0 {
            self.staged = self.take_next(ctx, request.end());
        }
        let next = self.staged.map(|item| item.request).filter(|next| next.op != Op::Flush);
        let access = |from, to| self.access.time(now, from, to);
        let to_request = access(self.last, request.lba);
        let next = next.map(|next| (access(request.lba, next.lba), access(self.last, next.lba)));
        let flash = self.flash_time(request);
        redirects(&Times { to_request, flash, next }, self.options.ties)
    }

    fn flash_time(&self, request: &Request) -> SimDuration {
        let data = SimDuration::transfer(request.bytes(), self.options.flash_rate);
        self.options.flash_latency + data
    }
}
