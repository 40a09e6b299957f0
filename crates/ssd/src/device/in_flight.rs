//! Writes in flight at a power failure, and requests that arrive during recovery.
//!
//! The spare area of a page names its logical page, so the mapping can be rebuilt, and only writes
//! still in flight are lost: the previous version of their sectors is found instead. The models
//! place a page before its program has ended and may have erased that previous version already, so
//! the old data are put where the new data are. Writes acknowledged from a write buffer survive, as
//! in drives with power-loss protection.

use super::split::{PagePart, split};
use hybridsim_engine::{
    Contents, Ctx, Durable, InFlightWrites, Op, Request, RequestId, SimTime, Stream, ZoneAction,
};

#[derive(Default)]
pub struct InFlight {
    writes: InFlightWrites,
    /// Versions by logical sector, writes in flight included.
    versions: Contents,
    /// Requests that arrived during recovery.
    pub waiting: Vec<(RequestId, Request)>,
}

impl InFlight {
    /// `request` has been served; its data become `durable` if it is a write.
    pub fn record(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        per_page: u32,
        durable: Durable,
    ) {
        match request.op {
            Op::Write => {
                let now = ctx.now();
                let versions = ctx.data().versions(request.data, request.sectors);
                let at = request.lba.0;
                self.writes.note(&self.versions, at, versions, durable, now);
                self.versions.write(at, versions);
            }
            Op::Trim | Op::Zone(ZoneAction::Reset) => {
                for PagePart { skip, sectors, .. } in split(request, per_page) {
                    if sectors == per_page {
                        let at = request.lba.0 + u64::from(skip);
                        self.versions.clear(at, u64::from(sectors));
                    }
                }
            }
            Op::Read | Op::Flush | Op::Zone(_) => {}
        }
    }

    /// The write `id`, which waited for the write buffer, completes at `end`.
    pub fn settle(&mut self, id: RequestId, end: SimTime) {
        self.writes.settle(u64::from(id.0), Durable::At(end));
    }

    /// Drops waiting requests and undoes writes in flight at `now`. Returns the sectors that hold
    /// their previous version again, with that version.
    pub fn undo(&mut self, now: SimTime, stream: &mut Stream) -> Vec<(u64, u64)> {
        self.waiting.clear();
        let mut undone = self.writes.cut(&mut self.versions, now, stream);
        undone.sort_unstable();
        undone.dedup();
        undone.into_iter().map(|sector| (sector, self.versions.get(sector))).collect()
    }
}
