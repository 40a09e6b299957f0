//! The commands waiting in a drive: those its scheduler chooses between, and those beyond the queue
//! depth.

use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Lba, Loader, Saver, SimTime, StateError};
use std::collections::VecDeque;

/// The commands waiting for the mechanism.
pub(super) struct CommandQueue {
    scheduler: Box<dyn Scheduler>,
    depth: usize,
    /// Commands the scheduler chooses between.
    scheduled: usize,
    /// The command of a drive that has only one at a time, which leaves a scheduler no choice.
    only: Option<Queued>,
    single: bool,
    /// Commands beyond the queue depth, in order of arrival.
    overflow: VecDeque<Queued>,
    /// The scheduler has chosen between commands, or held one.
    chose: bool,
    /// Whether the scheduler may hold commands.
    holds: bool,
}

impl CommandQueue {
    /// An empty queue whose scheduler chooses between `depth` commands.
    pub fn new(scheduler: Box<dyn Scheduler>, depth: usize) -> Self {
        let holds = scheduler.sees_all();
        Self {
            scheduler,
            depth,
            scheduled: 0,
            only: None,
            single: depth == 1 && !holds,
            overflow: VecDeque::new(),
            chose: false,
            holds,
        }
    }

    /// Whether no command waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.scheduled == 0
    }

    /// Whether the scheduler has chosen between commands, or held one.
    pub fn has_chosen(&self) -> bool {
        self.chose
    }

    /// Adds a command.
    #[inline]
    pub fn push(&mut self, item: Queued) {
        if self.scheduled < self.depth {
            self.scheduled += 1;
            self.schedule(item);
        } else {
            self.overflow.push_back(item);
        }
    }

    #[inline]
    fn schedule(&mut self, item: Queued) {
        if self.single {
            self.only = Some(item);
        } else {
            self.scheduler.push(item);
        }
    }

    /// Until when the scheduler holds its commands, if it does.
    #[inline]
    pub fn held_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        if !self.holds {
            return None;
        }
        let until = self.scheduler.hold_until(head).filter(|until| *until > head.now);
        self.chose |= until.is_some();
        until
    }

    /// The next command.
    #[inline]
    pub fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        self.chose |= self.scheduled > 1;
        let item = if self.single { self.only.take() } else { self.scheduler.pop(head) }?;
        match self.overflow.pop_front() {
            Some(next) => self.schedule(next),
            None => self.scheduled -= 1,
        }
        Some(item)
    }

    /// Discards all commands: the power failed when the last one had ended at `last`.
    pub fn clear(&mut self, last: Lba) {
        self.overflow.clear();
        // At the end of time no scheduler holds requests.
        let head = Head { now: SimTime::NEVER, last, positioner: None };
        let chose = self.chose;
        while self.scheduled > 0 && self.pop(&head).is_some() {}
        self.chose = chose;
    }

    /// Writes the state of the scheduler; no command waits.
    pub fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.scheduler.save(to)
    }

    /// Reads back what [`CommandQueue::save`] wrote.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.scheduler.restore(from)
    }
}
