//! A bus shared by its transfers: each of n proceeds at 1/n of the rate.

use super::Claim;
use hybridsim_engine::{Checkpoint, SimDuration, SimTime};

#[derive(Clone, Copy, Debug)]
struct Transfer {
    claim: Claim,
    /// Remaining time at the full rate.
    left: u64,
}

/// Operations in progress.
#[derive(Debug, Default)]
pub struct Shared {
    transfers: Vec<Transfer>,
    advanced_to: SimTime,
    /// The timer in force; older ones are ignored.
    number: u64,
    set_for: Option<SimTime>,
}

impl Shared {
    /// A transfer starts that takes `work` at the full rate.
    pub(super) fn begin(&mut self, now: SimTime, claim: Claim, work: SimDuration) {
        self.progress(now);
        self.transfers.push(Transfer { claim, left: work.as_ns() });
    }

    fn progress(&mut self, now: SimTime) {
        let count = self.transfers.len() as u64;
        if count == 0 {
            self.advanced_to = now;
            return;
        }
        // The remainder is carried over, so that ends do not move.
        let served = now.since(self.advanced_to).as_ns() / count;
        self.advanced_to += SimDuration::from_ns(served * count);
        for transfer in &mut self.transfers {
            transfer.left = transfer.left.saturating_sub(served);
        }
    }

    /// Advances to `now`; finished transfers are added to `finished`, in order of their start.
    pub(super) fn advance(&mut self, now: SimTime, finished: &mut Vec<Claim>) {
        self.progress(now);
        let done = self.transfers.iter().filter(|transfer| transfer.left == 0);
        finished.extend(done.map(|transfer| transfer.claim));
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
        let at = self.advanced_to + SimDuration::from_ns(time);
        if self.set_for == Some(at) {
            return None;
        }
        self.set_for = Some(at);
        self.number += 1;
        Some((at, self.number))
    }

    /// A timer expired; an outdated one is ignored.
    pub(super) fn timer_expired(&mut self, token: u64) {
        if token == self.number {
            self.set_for = None;
        }
    }
}

/// No transfer is under way, but a timer may be set.
impl Checkpoint for Shared {
    hybridsim_engine::saves!(advanced_to, number, set_for);
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;

    #[test]
    fn two_transfers_take_half_of_the_rate_each() {
        let at = SimTime::from_ns;
        let claim = |op| Claim { op, phase: Phase::Command, slot: 0, since: SimTime::ZERO };
        let (mut shared, mut finished) = (Shared::default(), Vec::new());
        shared.begin(at(0), claim(1), SimDuration::from_ns(100));
        shared.begin(at(40), claim(2), SimDuration::from_ns(100));
        // The first has 60 ns left, which take 120; the second then has 40.
        for (now, done) in [(159, None), (160, Some(1)), (199, None), (200, Some(2))] {
            shared.advance(at(now), &mut finished);
            assert_eq!(finished.drain(..).map(|it| it.op).next(), done, "at {now} ns");
        }
        assert!(shared.timer().is_none());
    }
}
