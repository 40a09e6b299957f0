//! Moving pages from flash to disk: one read of flash, one write of the disk.

use super::{Origin, PagedController, PagedPolicy};
use hybridsim_cache::paged::split::{Split, split};
use hybridsim_engine::{Ctx, Flags, Lba, Op, Request};

/// Destaging.
pub trait Destage: PagedController {
    /// Reads `count` consecutive pages from flash, and locks the pages `locked`.
    fn destage_read(&mut self, ctx: &mut Ctx<'_>, first: u64, count: u64, locked: (u64, u64)) {
        let now = ctx.now();
        let core = self.core_mut();
        let size = core.directory.page_sectors;
        let sectors = (count * size) as u32;
        let mut request = Request::new(Op::Read, Lba(first * size), sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        let slot = core.open(Origin::DestageRead, request, now);
        core.locks.acquire(slot, locked, true, true);
        split(&core.directory, first * size, sectors, Split::Cached, &mut core.sub_requests);
        self.send(ctx, slot);
    }

    /// Writes the pages that have been read to the disk; with `force`, to its medium.
    fn destage_write(&mut self, ctx: &mut Ctx<'_>, slot: u32, force: bool) {
        let core = self.core_mut();
        let pending = core.pending(slot);
        pending.origin = Origin::DestageWrite;
        pending.request.op = Op::Write;
        if force {
            pending.request.flags = pending.request.flags.with(Flags::FUA);
        }
        let Request { lba, sectors, .. } = pending.request;
        split(&core.directory, lba.0, sectors, Split::Destage, &mut core.sub_requests);
        self.send(ctx, slot);
    }
}

impl<P: PagedPolicy> Destage for P {}
