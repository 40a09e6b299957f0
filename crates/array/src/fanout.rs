//! Requests that complete when all requests issued to members for them have completed.

use hybridsim_engine::{Completion, Ctx, PendingRequest, Request, RequestId};
use slab::Slab;

/// The requests in flight, by the tag of the requests issued for them.
#[derive(Debug, Default)]
pub struct Fanout {
    pending: Slab<PendingRequest>,
}

impl Fanout {
    /// Enters a request for which `count` requests will be issued; returns their tag.
    pub fn open(&mut self, id: RequestId, request: &Request, count: u32) -> u64 {
        self.pending.insert(PendingRequest::new(id, request, count)) as u64
    }

    /// Discards all requests: the power failed.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// The request that the requests with `tag` were issued for.
    pub fn request(&self, tag: u64) -> Request {
        self.pending[tag as usize].request
    }

    /// A member completed a request; the last one completes the request it was issued for.
    pub fn close(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if let Some(pending) = self.one_done(done, done.failed()) {
            pending.complete(ctx, done.breakdown);
        }
    }

    /// A member completed a request, which counts as failed if `failed`; returns the request it was
    /// issued for if it was the last.
    pub fn one_done(&mut self, done: &Completion, failed: bool) -> Option<PendingRequest> {
        let at = done.tag as usize;
        self.pending[at].one_done(failed).then(|| self.pending.remove(at))
    }
}
