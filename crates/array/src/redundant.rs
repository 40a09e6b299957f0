//! The component of redundant arrays: failures of members, flushes, faults, power failures and
//! saved states are the same for mirrors and parity arrays.

use super::rebuild::{self, Members};
use super::resync::{BITMAP_TAG, BITMAP_TOKEN, Resync};
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, Inject, Injected, LatencyBreakdown, Op,
    PowerFailure, Request, RequestId,
};
use std::collections::VecDeque;

/// Marks the tag of a flush; the other bits are its request.
const FLUSH_TAG: u64 = 1 << 63;

/// The state that all redundant arrays have.
pub struct Shared<'a> {
    pub members: &'a mut Members,
    pub resync: &'a mut Resync,
    /// Operations that continue.
    pub ready: &'a mut VecDeque<u32>,
    /// Flushes in flight to members.
    pub flushes: &'a mut usize,
}

/// An array that stores data redundantly.
pub trait RedundantArray: Checkpoint + PowerFailure + 'static {
    fn capacity(&self) -> u64;

    fn info(&self) -> ComponentInfo;

    fn members(&self) -> &Members;

    fn shared(&mut self) -> Shared<'_>;

    /// Whether more members have failed than the redundancy covers.
    fn is_beyond_redundancy(&self) -> bool;

    /// Accepts a read, a write or a trim.
    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request);

    /// Adds a flush that completes after `parts` members; returns its number.
    fn open_flush(&mut self, id: RequestId, request: &Request, parts: u32) -> u32;

    /// An operation or flush of request number `slot` is done; `breakdown` covers the time since
    /// the request arrived.
    fn part_done(
        &mut self,
        ctx: &mut Ctx<'_>,
        slot: u32,
        breakdown: LatencyBreakdown,
        failed: bool,
    );

    /// A request of the array's own to a member has completed; `served` if the member is in the
    /// array.
    fn completed(&mut self, ctx: &mut Ctx<'_>, done: &Completion, served: bool);

    /// Advances all operations until they wait for members.
    fn advance(&mut self, ctx: &mut Ctx<'_>);
}

/// A redundant array as a component.
pub struct Redundant<A>(pub A);

impl<A: RedundantArray> Redundant<A> {
    fn report_if_beyond_redundancy(&mut self, ctx: &mut Ctx<'_>) {
        if self.0.is_beyond_redundancy() {
            self.0.shared().members.report_beyond_redundancy(ctx);
        }
    }

    /// A flush goes to every member present.
    fn flush(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let Shared { members, flushes, .. } = self.0.shared();
        let columns = 0..members.columns();
        let count = columns.clone().filter_map(|column| members.present(column)).count();
        if count == 0 {
            Members::report_unserved(ctx, request.sectors);
            ctx.fail_request(id, LatencyBreakdown::NONE);
            return;
        }
        *flushes += count;
        let parent = self.0.open_flush(id, request, count as u32);
        for column in columns {
            if let Some(child) = self.0.shared().members.present(column) {
                ctx.issue(child, *request, FLUSH_TAG | u64::from(parent));
            }
        }
    }
}

impl<A: RedundantArray> Component for Redundant<A> {
    fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    fn info(&self) -> ComponentInfo {
        self.0.info()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.0.shared().members.start(ctx);
        self.report_if_beyond_redundancy(ctx);
        self.0.advance(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        match request.op {
            Op::Flush => self.flush(ctx, id, request),
            _ => self.0.serve(ctx, id, request),
        }
        self.0.advance(ctx);
    }

    /// A member that fails a request leaves the array.
    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let members = self.0.shared().members;
        if done.failed() && !members.has_failed(done.child) {
            members.fail(ctx, done.child);
            self.report_if_beyond_redundancy(ctx);
        }
        let Shared { members, resync, ready, flushes } = self.0.shared();
        if done.tag == BITMAP_TAG {
            resync.completion(ctx, members, done, |owner| ready.push_back(owner));
        } else if done.tag & FLUSH_TAG == 0 {
            let served = !members.has_failed(done.child);
            self.0.completed(ctx, done, served);
        } else {
            *flushes -= 1;
            let failed = self.0.is_beyond_redundancy();
            self.0.part_done(ctx, (done.tag & !FLUSH_TAG) as u32, done.breakdown, failed);
        }
        self.0.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let Shared { members, resync, .. } = self.0.shared();
        if token == BITMAP_TOKEN {
            resync.wake(ctx, members);
            return;
        }
        members.wake(ctx, token);
        self.report_if_beyond_redundancy(ctx);
        self.0.advance(ctx);
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(&mut self.0)
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(&mut self.0)
    }

    hybridsim_engine::supports!(Inject);
}

impl<A: RedundantArray> Inject for Redundant<A> {
    fn supported(&self) -> &'static [&'static str] {
        rebuild::FAULTS
    }

    fn check(&self, fault: &Injected) -> Result<(), String> {
        self.0.members().check_fault(fault)
    }

    fn inject(&mut self, ctx: &mut Ctx<'_>, fault: &Injected) {
        self.0.shared().members.inject(ctx, fault);
        self.report_if_beyond_redundancy(ctx);
        self.0.advance(ctx);
    }
}
