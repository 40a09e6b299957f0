//! What a power failure does to a flash device.
//!
//! The mapping is rebuilt from the spare areas of the pages, which name what was written, so all
//! that is lost is what was being written: its old version is found instead. That version may
//! have been collected by then in this model, which places pages before their time has come; the
//! old data are therefore put where the new would be. Operations that were under way are not cut
//! short on dies and channels. What a drive acknowledges from a write buffer is taken to be safe,
//! as in drives with capacitors for that.

use super::{Piece, Ssd, is_host_read, pieces};
use crate::geometry::Lpn;
use hybridsim_engine::{
    CommonEvent, Contents, Ctx, Durable, InFlightWrites, Op, Request, RequestId, SimTime,
};

/// The timer that goes off when the mapping has been rebuilt.
pub const RECOVERED: u64 = 1;

/// What was asked and is not durable yet, by logical sector; and what has to wait for recovery.
#[derive(Default)]
pub struct InFlight {
    undo: InFlightWrites,
    contents: Contents,
    recovering: bool,
    waiting: Vec<(RequestId, Request)>,
}

impl InFlight {
    /// `request` is done at `end`.
    pub fn note(&mut self, ctx: &mut Ctx<'_>, request: &Request, per_page: u32, end: SimTime) {
        let now = ctx.now();
        match request.op {
            Op::Write => {
                let stamps = ctx.data().stamps(request.data, request.sectors);
                let (at, durable) = (request.lba.0, Durable::At(end));
                self.undo.note(&self.contents, at, stamps, durable, now, |_| false);
                self.contents.write(at, stamps);
            }
            Op::Trim => {
                for Piece { skip, sectors, .. } in pieces(request, per_page) {
                    if sectors == per_page {
                        let at = request.lba.0 + u64::from(skip);
                        self.contents.clear(at, u64::from(sectors));
                    }
                }
            }
            Op::Read | Op::Flush => {}
        }
    }

    /// Whether a request has to wait until the device has recovered.
    #[inline]
    pub fn holds_back(&mut self, id: RequestId, request: &Request) -> bool {
        if self.recovering {
            self.waiting.push((id, *request));
        }
        self.recovering
    }
}

impl Ssd {
    pub(super) fn lose_power(&mut self, now: SimTime) {
        let InFlight { undo, contents, waiting, .. } = &mut self.in_flight;
        waiting.clear();
        let mut undone = undo.cut(contents, now, &mut self.parts.power, |_| false);
        undone.sort_unstable();
        undone.dedup();
        for sector in undone {
            self.put_back(sector);
        }
        self.wake_set = false;
    }

    /// Makes the flash hold what the sector held before, wherever it is mapped to.
    fn put_back(&mut self, sector: u64) {
        let per_page = u64::from(self.sectors_per_page);
        self.parts.flash.clear();
        let lpn = Lpn((sector / per_page) as u32);
        self.parts.ftl.read(lpn, &mut self.parts.flash);
        // Nothing is read of what has been trimmed.
        if let Some(op) = self.parts.flash.list().iter().rfind(is_host_read) {
            let at = u64::from(op.page) * per_page + sector % per_page;
            self.contents.write(at, &[self.in_flight.contents.get(sector)]);
        }
    }

    pub(super) fn recover(&mut self, ctx: &mut Ctx<'_>) {
        self.tell_states(ctx, true);
        self.in_flight.recovering = true;
        let ready = ctx.now() + self.parts.recovery;
        self.active_until = self.active_until.max(ready);
        ctx.wake_at(ready, RECOVERED);
        self.set_wake(ctx);
    }

    pub(super) fn recovered(&mut self, ctx: &mut Ctx<'_>) {
        ctx.emit(CommonEvent::Recovered { took: self.parts.recovery });
        self.in_flight.recovering = false;
        for (id, request) in std::mem::take(&mut self.in_flight.waiting) {
            self.serve(ctx, id, &request);
        }
    }
}
