//! Power failures: memory is lost, the NV cache is not. Recovery reads the pinned ranges into
//! memory.

use super::FlashBacked;
use super::work::{Active, Step};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::Head;
use hybridsim_engine::{Command, Ctx, Fault, Flags, Lba, Op, Request, RequestId, SimTime};

/// Longest read during recovery: 1 MiB.
const READ_SECTORS_MAX: u64 = 2048;

impl FlashBacked {
    pub(super) fn lose_power(&mut self) {
        let head = Head { now: SimTime::NEVER, last: self.last, positioner: None };
        while !self.scheduler.is_empty() && self.scheduler.pop(&head).is_some() {}
        (self.lookahead, self.held) = (None, None);
        self.redirects.fill(None);
        self.reserved = 0;
        self.fqueue.clear();
        self.active = None;
        (self.flushing, self.idle_armed, self.waiting) = (false, false, 0);
        self.recovering = None;
        self.restores.clear();
    }

    pub(super) fn recover(&mut self, ctx: &mut Ctx<'_>) {
        self.idle_since = ctx.now();
        if !self.params.redirect {
            return;
        }
        self.recovering = Some(ctx.now());
        if self.fqueue.size() > 0 {
            self.query(ctx);
            return;
        }
        // The power failed before the size was known.
        self.active = Some(Active::own(Step::Sizing, ctx.now()));
        ctx.command(0, Command::QuerySize, (Lba(0), 0), 0);
    }

    pub(super) fn query(&mut self, ctx: &mut Ctx<'_>) {
        self.active = Some(Active::own(Step::Query, ctx.now()));
        ctx.command(0, Command::QueryPinned, (Lba(0), 0), 0);
    }

    /// Reads the next pinned range, or ends recovery.
    pub(super) fn restore_next(&mut self, ctx: &mut Ctx<'_>) {
        let Some((lba, sectors)) = self.restores.last_mut() else {
            self.active = None;
            let since = self.recovering.take().expect("recovery is in progress");
            ctx.emit(CommonEvent::Recovered { took: ctx.now().since(since) });
            return;
        };
        let length = (*sectors).min(READ_SECTORS_MAX);
        let mut read = Request::new(Op::Read, *lba, length as u32);
        (*lba, *sectors) = (lba.offset(length), *sectors - length);
        if *sectors == 0 {
            self.restores.pop();
        }
        read.flags = Flags::BACKGROUND;
        read.data = ctx.take_data(read.sectors);
        self.active = Some(Active::own(Step::Restore, ctx.now()));
        let _: RequestId = ctx.issue(0, read, 0);
    }

    pub(super) fn restored(&mut self, ctx: &mut Ctx<'_>, read: &Request, failed: bool) {
        let sectors = u64::from(read.sectors);
        if failed || self.fqueue.used() + sectors > self.fqueue.size() {
            let reason = format!(
                "sectors {} to {} are pinned in the NV cache and cannot be read back into the \
                 FQueue; the drive has failed, or another host component pins ranges as well",
                read.lba,
                read.end()
            );
            ctx.fault(Fault::Device { device: ctx.path().to_owned(), reason });
            return;
        }
        self.fqueue.add(read.lba.0, sectors);
        self.fqueue.data.write(read.lba.0, ctx.data().versions(read.data, read.sectors));
        ctx.data().give_back(read.data);
        self.restore_next(ctx);
    }
}
