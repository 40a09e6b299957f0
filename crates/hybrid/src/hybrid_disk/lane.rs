//! The dispatch queue of one medium: so many requests there at a time, the others wait here.

use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler};
use hybridsim_engine::{Ctx, Lba, Op, Request, SimTime};
use std::collections::VecDeque;
use std::rc::Rc;

/// In which order requests leave.
pub enum Order {
    /// As they came.
    Fifo(VecDeque<Queued>),
    /// As a scheduler chooses, with the device's estimates if it has any.
    Scheduled(Box<dyn Scheduler>, Option<Rc<dyn Positioner>>),
}

/// A dispatch queue.
pub struct Lane {
    child: usize,
    depth: u32,
    in_flight: u32,
    order: Order,
    last: Lba,
    /// Until when the scheduler holds its requests back.
    held_until: SimTime,
}

/// The timer of a scheduler that holds requests back.
pub const HELD: u64 = 1;

impl Lane {
    /// The queue of child number `child`, which gets `depth` requests at a time.
    pub fn new(child: usize, depth: u32, order: Order) -> Self {
        Self { child, depth, in_flight: 0, order, last: Lba(0), held_until: SimTime::ZERO }
    }

    /// A request of `owner` joins.
    pub fn push(&mut self, ctx: &Ctx<'_>, owner: u32, request: Request) {
        let item = Queued { key: u64::from(owner), request, since: ctx.now() };
        match &mut self.order {
            Order::Fifo(queue) => queue.push_back(item),
            Order::Scheduled(scheduler, _) => scheduler.push(item),
        }
    }

    /// Nothing waits and nothing is at the device.
    pub fn clear(&mut self) {
        (self.in_flight, self.held_until) = (0, SimTime::ZERO);
        match &mut self.order {
            Order::Fifo(queue) => queue.clear(),
            Order::Scheduled(scheduler, _) => {
                let head = Head { now: SimTime::NEVER, last: self.last, positioner: None };
                while !scheduler.is_empty() && scheduler.pop(&head).is_some() {}
            }
        }
    }

    /// One of its requests is done.
    pub fn done(&mut self) {
        self.in_flight -= 1;
    }

    /// Sends what the device takes. The tag of a request is its owner.
    pub fn dispatch(&mut self, ctx: &mut Ctx<'_>) {
        while self.in_flight < self.depth {
            let item = match &mut self.order {
                Order::Fifo(queue) => queue.pop_front(),
                Order::Scheduled(scheduler, positioner) => {
                    let positioner = positioner.as_deref();
                    let head = Head { now: ctx.now(), last: self.last, positioner };
                    let held = scheduler.hold_until(&head).filter(|until| *until > ctx.now());
                    if let Some(until) = held {
                        if self.held_until != until {
                            self.held_until = until;
                            ctx.wake_at(until, HELD);
                        }
                        return;
                    }
                    scheduler.pop(&head)
                }
            };
            let Some(item) = item else { return };
            self.in_flight += 1;
            if item.request.op != Op::Flush {
                self.last = item.request.end();
            }
            ctx.issue(self.child, item.request, item.key);
        }
    }
}
