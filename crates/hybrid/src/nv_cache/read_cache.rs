//! Reads in the NV cache power mode: which misses are cached, and their way into the cache.
//!
//! A read miss starts a stopped disk. The read-miss cache keeps what such reads returned, so that
//! the next read of it does not. Cached reads are clean: they are dropped, oldest first, when a
//! write or a pin needs the space. The read completes first, and the cache is filled from its data;
//! the range stays locked meanwhile.

use super::NvCacheDisk;
use super::serve::{FLASH, Phase};
use hybridsim_engine::{CommonEvent, Ctx, Flags, Lba, Op, Request};

hybridsim_config::choices! {
    /// Read misses that are cached in the power mode.
    pub enum CachedReads {
        None = "none",
        /// Those that found the disk stopped.
        SpinUp = "spin-up",
        All = "all",
    }
}

impl NvCacheDisk {
    /// Whether a request that arrives now is cached if it misses.
    pub(super) fn caches_read(&self, request: &Request) -> bool {
        let wanted = match self.params.cache_reads {
            CachedReads::None => false,
            CachedReads::SpinUp => self.spindle.standby,
            CachedReads::All => true,
        };
        let past = request.flags.contains(Flags::PAST_CACHE);
        wanted && self.spindle.mode && request.op == Op::Read && !past
    }

    /// Drops clean extents, oldest first and except those in use, until `sectors` are free and at
    /// most `clean_max` are clean. Returns whether that was reached; drops nothing for more sectors
    /// than are free or clean.
    pub(super) fn make_space(&mut self, sectors: u64, clean_max: u64) -> bool {
        if self.extents.free() + self.extents.clean() < sectors {
            return false;
        }
        let locks = &self.locks;
        self.extents.drop_clean(sectors, clean_max, |lba, end| !locks.is_any_locked(lba, end))
    }

    /// A read has been served: completes it and starts writing what was not cached to the cache.
    /// Returns `false` and does nothing if there is nothing to write, or no space for it.
    pub(super) fn fill(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> bool {
        let request = self.jobs[slot as usize].request;
        let (lba, end) = (request.lba.0, request.end().0);
        let mut pieces = std::mem::take(&mut self.pieces);
        self.extents.pieces(lba, end, &mut pieces);
        pieces.retain(|piece| piece.extent.is_none());
        let sectors: u64 = pieces.iter().map(|piece| piece.sectors).sum();
        let fills = self.spindle.mode
            && (1..=self.read_sectors_max).contains(&sectors)
            && self.budget.allows(ctx.now(), sectors)
            && self.make_space(sectors, self.read_sectors_max - sectors);
        if fills {
            self.budget.spend(ctx.now(), sectors);
            ctx.emit(CommonEvent::Custom { name: super::READ_CACHED, value: sectors });
            for piece in &pieces {
                self.extents.reserve(piece.lba, piece.sectors, false);
                let end = piece.lba + piece.sectors;
                self.extents.change(piece.lba, end, |extent| extent.clean = true);
            }
            let data = ctx.copy_data(&request);
            let job = &mut self.jobs[slot as usize];
            (job.phase, job.data) = (Phase::Filling, data);
            let id = job.id.take().expect("reads come from the parent");
            ctx.complete(id, job.breakdown);
            self.spindle.active(ctx.now(), Op::Read, &self.params);
            self.extents.pieces(lba, end, &mut pieces);
            for piece in &pieces {
                let Some(extent) = piece.extent.filter(|extent| extent.clean && !extent.valid)
                else {
                    continue;
                };
                let (skip, sectors) = ((piece.lba - lba) as u32, piece.sectors as u32);
                let write = Request { data, ..Request::new(Op::Write, Lba(lba), request.sectors) };
                let part = write.part(skip, sectors, Lba(extent.at));
                self.issue(ctx, slot, FLASH, super::serve::background(part));
            }
        }
        self.pieces = pieces;
        fills
    }

    /// The cache has been filled, or that failed.
    pub(super) fn filled(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let job = &self.jobs[slot as usize];
        let (lba, end) = (job.request.lba.0, job.request.end().0);
        if job.failed {
            self.extents.remove(lba, end, |extent| extent.clean && !extent.valid);
        } else {
            self.extents.change(lba, end, |extent| extent.valid |= extent.clean);
        }
        self.step_completed(ctx, slot);
    }
}
