//! A bus whose transfers share it: each of n goes on at the nth part of its speed.

use super::Claim;
use hybridsim_engine::{Loader, Saver, SimDuration, SimTime, StateError};

#[derive(Clone, Copy, Debug)]
struct Transfer {
    claim: Claim,
    /// Time it would still take alone.
    left: u64,
}

/// What is under way.
#[derive(Debug, Default)]
pub struct Shared {
    transfers: Vec<Transfer>,
    told: SimTime,
    /// The timer in force; older ones are ignored.
    number: u64,
    set_for: Option<SimTime>,
}

impl Shared {
    /// A transfer begins that would take `work` alone.
    pub(super) fn begin(&mut self, now: SimTime, claim: Claim, work: SimDuration) {
        self.progress(now);
        self.transfers.push(Transfer { claim, left: work.as_ns() });
    }

    fn progress(&mut self, now: SimTime) {
        let count = self.transfers.len() as u64;
        if count == 0 {
            self.told = now;
            return;
        }
        // What does not divide evenly is kept for the next time, so that ends do not move.
        let served = now.since(self.told).as_ns() / count;
        self.told += SimDuration::from_ns(served * count);
        for transfer in &mut self.transfers {
            transfer.left = transfer.left.saturating_sub(served);
        }
    }

    /// Moves on to `now`; what is over goes to `over`, in order of beginning.
    pub(super) fn advance(&mut self, now: SimTime, over: &mut Vec<Claim>) {
        self.progress(now);
        let done = self.transfers.iter().filter(|transfer| transfer.left == 0);
        over.extend(done.map(|transfer| transfer.claim));
        self.transfers.retain(|transfer| transfer.left > 0);
    }

    /// A timer to set: when, and its token.
    pub(super) fn timer(&mut self) -> Option<(SimTime, u64)> {
        let least = self.transfers.iter().map(|transfer| transfer.left).min();
        let Some(least) = least else {
            self.set_for = None;
            return None;
        };
        let time = least.saturating_mul(self.transfers.len() as u64);
        let at = self.told + SimDuration::from_ns(time);
        if self.set_for == Some(at) {
            return None;
        }
        self.set_for = Some(at);
        self.number += 1;
        Some((at, self.number))
    }

    /// A timer went off; one that is out of date changes nothing.
    pub(super) fn timer_went_off(&mut self, token: u64) {
        if token == self.number {
            self.set_for = None;
        }
    }

    /// Writes its state: no transfer is under way, but a timer may be.
    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(self.told, self.number, self.set_for));
    }

    /// Reads back what [`Shared::save`] wrote.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.told, self.number, self.set_for) = from.take()?;
        Ok(())
    }
}
