//! Requests that are done when all the requests made from them are done.

use hybridsim_engine::{Completion, Ctx, Outcome, Request, RequestId};
use slab::Slab;

#[derive(Clone, Copy, Debug)]
struct Parent {
    id: RequestId,
    request: Request,
    left: u32,
    failed: bool,
}

/// The parents in flight, named by the tag their children carry.
#[derive(Debug, Default)]
pub struct Fanout {
    parents: Slab<Parent>,
}

impl Fanout {
    /// Opens a parent that will have `children` children; answers their tag.
    pub fn open(&mut self, id: RequestId, request: &Request, children: u32) -> u64 {
        let parent = Parent { id, request: *request, left: children, failed: false };
        self.parents.insert(parent) as u64
    }

    /// Nothing is in flight any more.
    pub fn clear(&mut self) {
        self.parents.clear();
    }

    /// The request of the parent a child belongs to.
    pub fn request(&self, tag: u64) -> Request {
        self.parents[tag as usize].request
    }

    /// A child is done. The last one completes its parent, and its breakdown is the parent's: all
    /// children were issued when the parent came, so the last is the critical one.
    pub fn close(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let parent = &mut self.parents[done.tag as usize];
        parent.left -= 1;
        parent.failed |= done.outcome == Outcome::Failed;
        if parent.left > 0 {
            return;
        }
        let parent = self.parents.remove(done.tag as usize);
        if parent.failed {
            ctx.fail_request(parent.id, done.breakdown);
        } else {
            ctx.complete(parent.id, done.breakdown);
        }
    }
}
