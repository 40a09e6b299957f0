//! A bus with one owner at a time.

use super::Claim;
use hybridsim_engine::{Checkpoint, SimDuration, SimTime};
use std::collections::VecDeque;

hybridsim_config::choices! {
    /// Order of arbitration.
    pub enum Arbitration {
        /// The device listed first.
        Slot = "slot-priority",
        /// The first to request it.
        Arrival = "fcfs",
    }
}

/// The owner and the waiting claims.
#[derive(Debug)]
pub struct Tenured {
    pub(super) waiting: VecDeque<Claim>,
    order: Arbitration,
    owner: Option<Claim>,
    /// The operation that keeps the bus between its phases.
    holder: Option<u32>,
    idle_since: SimTime,
}

impl Tenured {
    /// A free bus.
    pub fn new(order: Arbitration) -> Self {
        Self {
            waiting: VecDeque::new(),
            order,
            owner: None,
            holder: None,
            idle_since: SimTime::ZERO,
        }
    }

    /// The claim that gets the bus now, and how long the bus has been idle.
    pub(super) fn next(&mut self, now: SimTime) -> Option<(Claim, SimDuration)> {
        if self.owner.is_some() {
            return None;
        }
        let at = match self.holder {
            Some(op) => self.waiting.iter().position(|claim| claim.op == op)?,
            None => match self.order {
                Arbitration::Arrival => 0,
                Arbitration::Slot => {
                    let slots = self.waiting.iter().enumerate();
                    slots.min_by_key(|(at, claim)| (claim.slot, *at))?.0
                }
            },
        };
        let claim = self.waiting.remove(at)?;
        Some((claim, now.since(self.idle_since)))
    }

    /// `claim` owns the bus until it is released.
    pub(super) fn take(&mut self, claim: Claim) {
        self.owner = Some(claim);
    }

    /// Operation `op` keeps the bus until [`Tenured::release_holder`].
    pub(super) fn hold(&mut self, op: u32) {
        self.holder = Some(op);
    }

    /// The phase of the owner has ended; it keeps the bus if operations `hold` it.
    pub(super) fn release(&mut self, now: SimTime, hold: bool) -> Claim {
        let claim = self.owner.take().expect("a timer runs only for an owner");
        if hold {
            self.holder = Some(claim.op);
        }
        self.idle_since = now;
        claim
    }

    /// Operation `op` is finished.
    pub(super) fn release_holder(&mut self, op: u32, now: SimTime) {
        if self.holder == Some(op) {
            self.holder = None;
            self.idle_since = now;
        }
    }
}

/// The bus is free.
impl Checkpoint for Tenured {
    hybridsim_engine::saves!(idle_since);
}
