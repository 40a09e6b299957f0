//! The requests of a workload on their way to a host.
//!
//! Invariant: no request is read from the workload before it is due, except for a look-ahead of
//! one, or of [`AHEAD_MAX`] where the workload allows it.

use hybridsim_engine::{Arrival, Ctx, DataSlice, Fault, Request, SimDuration, SimTime, Source};
use std::collections::VecDeque;

/// Requests read at once from a workload that does not depend on completions.
pub const AHEAD_MAX: usize = 16;

/// Reads a workload.
pub struct Arrivals {
    source: Box<dyn Source>,
    /// Open loop: the one request read ahead of its time.
    next: Option<Arrival>,
    /// Read from the workload and not due yet.
    ahead: VecDeque<Arrival>,
    /// Result of reading past the last of `ahead`: the end of the workload, or an error.
    ahead_end: Option<Result<(), String>>,
    exhausted: bool,
    /// The workload does not depend on completions, and several requests are read at once.
    reads_ahead: bool,
    /// The workload waits for completions.
    reacts: bool,
    last: SimTime,
    /// The timer for the next request, while it is in the future.
    armed: SimTime,
    /// Start of the run, after time zero where it continues from a restored state. Times of the
    /// workload count from here.
    began: SimDuration,
}

impl Arrivals {
    pub fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            next: None,
            ahead: VecDeque::with_capacity(AHEAD_MAX),
            ahead_end: None,
            exhausted: false,
            reads_ahead: false,
            reacts: false,
            last: SimTime::ZERO,
            armed: SimTime::ZERO,
            began: SimDuration::ZERO,
        }
    }

    /// The run begins. With `announce`, several requests are read at once where the workload
    /// allows it, and the device receives them as advice.
    pub fn start(&mut self, ctx: &Ctx<'_>, announce: bool) {
        self.began = ctx.now().since(SimTime::ZERO);
        self.reads_ahead = announce && self.source.reads_ahead();
        self.reacts = self.source.waits();
    }

    /// The workload waits for completions, some of which a power failure would take away.
    pub const fn reacts(&self) -> bool {
        self.reacts
    }

    /// Requests come from outside: they follow completions in another way than those of a workload.
    pub fn ignore_completions(&mut self) {
        self.reacts = false;
    }

    /// No request follows.
    #[inline]
    pub const fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Start of the run.
    #[inline]
    pub const fn began(&self) -> SimDuration {
        self.began
    }

    /// Stops reading the workload.
    pub fn end(&mut self) {
        (self.next, self.exhausted) = (None, true);
    }

    /// Forgets the pending timer, as a power failure cleared it.
    pub fn power_cut(&mut self) {
        self.armed = SimTime::ZERO;
    }

    /// The next request; `None` at the end of the workload and after an error.
    #[inline]
    pub fn pull(&mut self, ctx: &mut Ctx<'_>) -> Option<Arrival> {
        if self.exhausted {
            return None;
        }
        match self.ahead.pop_front() {
            None => self.read(ctx),
            arrival => arrival,
        }
    }

    /// As [`Arrivals::pull`], where no request has been read ahead.
    #[inline(never)]
    fn read(&mut self, ctx: &mut Ctx<'_>) -> Option<Arrival> {
        if self.ahead_end.is_none() {
            self.read_ahead(ctx);
        }
        let arrival = self.ahead.pop_front();
        if arrival.is_none() {
            if let Some(Err(reason)) = self.ahead_end.take() {
                ctx.fault(Fault::Workload(reason));
            } else if self.source.waits() {
                return None;
            }
            self.exhausted = true;
        }
        arrival
    }

    fn read_ahead(&mut self, ctx: &mut Ctx<'_>) {
        let count = if self.reads_ahead { AHEAD_MAX } else { 1 };
        match self.source.read(count, &mut self.ahead) {
            Ok(true) => {}
            Ok(false) => self.ahead_end = Some(Ok(())),
            Err(reason) => self.ahead_end = Some(Err(reason)),
        }
        if !self.began.is_zero() {
            self.ahead.iter_mut().for_each(|arrival| arrival.at += self.began);
        }
        if self.ahead.len() > 1 {
            ctx.expect(0, self.ahead.iter().map(|arrival| arrival.request));
        }
    }

    /// Open loop: reads the next request, where none has been read.
    pub fn look_again(&mut self, ctx: &mut Ctx<'_>) {
        if self.next.is_none() {
            self.look_ahead(ctx);
        }
    }

    /// Open loop: reads the next request.
    pub fn look_ahead(&mut self, ctx: &mut Ctx<'_>) {
        self.next = self.pull(ctx);
        let Some(arrival) = self.next else { return };
        if arrival.at < self.last || arrival.at == SimTime::NEVER {
            let before = self.last;
            ctx.fault(Fault::Workload(format!(
                "a request arrives at {} after one at {before}; times must not go back and must \
                 stay below 584 years: sort or scale the workload",
                arrival.at
            )));
            self.end();
        }
        self.last = arrival.at;
    }

    /// Open loop: the next request if it is due; otherwise sets `timer` for it. The next one is
    /// read by [`Arrivals::look_ahead`] when this one has arrived.
    pub fn due(&mut self, ctx: &mut Ctx<'_>, timer: u64) -> Option<Request> {
        let arrival = self.next?;
        if arrival.at <= ctx.now() {
            return Some(arrival.request);
        }
        // An earlier timer will set this one.
        if self.armed <= ctx.now() || arrival.at < self.armed {
            self.armed = arrival.at;
            ctx.wake_at(arrival.at, timer);
        }
        None
    }

    /// Whether a request read ahead waits for its time.
    #[inline]
    pub const fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// Reports a completion to a workload that may depend on it. Returns whether it does, so that
    /// an earlier request may precede the one read ahead.
    #[inline]
    pub fn completed(&mut self, ctx: &mut Ctx<'_>, done: &Request) -> bool {
        !self.reads_ahead && self.report_completed(ctx, done)
    }

    fn report_completed(&mut self, ctx: &mut Ctx<'_>, done: &Request) -> bool {
        let request = Request { data: DataSlice::NONE, ..*done };
        let now = ctx.now();
        if !self.reacts || self.exhausted {
            self.source.completed(&request, now - self.began);
            return false;
        }
        if self.next.take().is_some() {
            self.source.take_back();
        }
        self.source.completed(&request, now - self.began);
        self.last = now;
        self.look_ahead(ctx);
        true
    }
}
