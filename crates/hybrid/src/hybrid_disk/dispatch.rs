//! The dispatch queue of one medium: a bounded number of requests at the device, the rest queued.

use hybridsim_cache::paged::split::Medium;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler};
use hybridsim_engine::{Ctx, Lba, Loader, Op, Request, Saver, SimTime, StateError};
use std::collections::VecDeque;
use std::rc::Rc;

/// The order in which requests are dispatched.
pub enum DispatchOrder {
    Fifo(VecDeque<Queued>),
    /// As a scheduler chooses, with the positioning estimates of the device if it has any.
    Scheduled(Box<dyn Scheduler>, Option<Rc<dyn Positioner>>),
}

impl DispatchOrder {
    fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(queue) => queue.is_empty(),
            Self::Scheduled(scheduler, _) => scheduler.is_empty(),
        }
    }
}

/// A dispatch queue.
pub struct DispatchQueue {
    medium: Medium,
    queue_depth: u32,
    outstanding: u32,
    order: DispatchOrder,
    /// The sector after the last request dispatched.
    last: Lba,
    /// Time at which the scheduler releases the requests it holds.
    held_until: SimTime,
    /// The scheduler has chosen between requests, or held one.
    chose: bool,
}

/// Token of the timer for held requests.
pub const HELD: u64 = 1;

impl DispatchQueue {
    /// A first-in, first-out queue.
    pub fn fifo(medium: Medium, queue_depth: u32) -> Self {
        Self::new(medium, queue_depth, DispatchOrder::Fifo(VecDeque::new()))
    }

    /// A queue ordered by `scheduler`.
    pub fn scheduled(
        medium: Medium,
        queue_depth: u32,
        scheduler: Box<dyn Scheduler>,
        positioner: Option<Rc<dyn Positioner>>,
    ) -> Self {
        Self::new(medium, queue_depth, DispatchOrder::Scheduled(scheduler, positioner))
    }

    fn new(medium: Medium, queue_depth: u32, order: DispatchOrder) -> Self {
        let (outstanding, last, held_until) = (0, Lba(0), SimTime::ZERO);
        Self { medium, queue_depth, outstanding, order, last, held_until, chose: false }
    }

    /// Queues a sub-request of the request pending in `slot`.
    pub fn push(&mut self, ctx: &Ctx<'_>, slot: u32, request: Request) {
        let item = Queued { key: u64::from(slot), request, since: ctx.now() };
        match &mut self.order {
            DispatchOrder::Fifo(queue) => queue.push_back(item),
            DispatchOrder::Scheduled(scheduler, _) => scheduler.push(item),
        }
    }

    /// Drops everything queued and outstanding.
    pub fn clear(&mut self) {
        (self.outstanding, self.held_until) = (0, SimTime::ZERO);
        match &mut self.order {
            DispatchOrder::Fifo(queue) => queue.clear(),
            DispatchOrder::Scheduled(scheduler, _) => {
                let head = Head { now: SimTime::NEVER, last: self.last, positioner: None };
                while !scheduler.is_empty() && scheduler.pop(&head).is_some() {}
            }
        }
    }

    /// The device has completed a request.
    pub fn completed(&mut self) {
        self.outstanding -= 1;
    }

    /// Issues requests up to the queue depth. The tag of a request is its slot.
    pub fn dispatch(&mut self, ctx: &mut Ctx<'_>) {
        while self.outstanding < self.queue_depth && !self.order.is_empty() {
            let item = match &mut self.order {
                DispatchOrder::Fifo(queue) => queue.pop_front(),
                DispatchOrder::Scheduled(scheduler, positioner) => {
                    let positioner = positioner.as_deref();
                    let head = Head { now: ctx.now(), last: self.last, positioner };
                    let held = scheduler.hold_until(&head).filter(|until| *until > ctx.now());
                    if let Some(until) = held {
                        if self.held_until != until {
                            self.held_until = until;
                            self.chose = true;
                            ctx.wake_at(until, HELD);
                        }
                        return;
                    }
                    self.chose = self.chose || scheduler.len() > 1;
                    scheduler.pop(&head)
                }
            };
            let Some(item) = item else { return };
            self.outstanding += 1;
            if item.request.op != Op::Flush {
                self.last = item.request.end();
            }
            ctx.issue(self.medium as usize, item.request, item.key);
        }
    }

    /// Whether its scheduler has chosen between requests.
    pub fn chose(&self) -> bool {
        self.chose
    }

    /// Saves the position of the head and the state of the scheduler.
    pub fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(self.last.0, self.held_until));
        match &self.order {
            DispatchOrder::Fifo(_) => Ok(()),
            DispatchOrder::Scheduled(scheduler, _) => scheduler.save(to),
        }
    }

    /// Restores what [`DispatchQueue::save`] has saved.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (last, held_until) = from.take()?;
        (self.last, self.held_until) = (Lba(last), held_until);
        match &mut self.order {
            DispatchOrder::Fifo(_) => Ok(()),
            DispatchOrder::Scheduled(scheduler, _) => scheduler.restore(from),
        }
    }
}
