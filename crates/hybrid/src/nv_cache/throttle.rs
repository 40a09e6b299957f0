//! NV cache write throttling: how much may be written to the flash.

use hybridsim_engine::{SECTOR_BYTES, SimDuration, SimTime};

/// A budget of bytes that grows at a rate, up to a limit.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes per second; `None` for no limit.
    rate: Option<u64>,
    /// Time in which an empty budget becomes full.
    fills_in: SimDuration,
    /// Time at which it will be full, if nothing more is written.
    pub full_at: SimTime,
}

impl Budget {
    /// A full budget of `sectors`, which grows by `rate` bytes a second.
    pub fn new(rate: Option<u64>, sectors: u64) -> Self {
        let fills_in = rate.map_or(SimDuration::ZERO, |rate| cost(sectors, rate));
        Self { rate, fills_in, full_at: SimTime::ZERO }
    }

    /// Whether `sectors` may be written at `now`.
    pub fn allows(&self, now: SimTime, sectors: u64) -> bool {
        let within = |rate| self.full_at.max(now) + cost(sectors, rate) <= now + self.fills_in;
        self.rate.is_none_or(within)
    }

    /// `sectors` are written at `now`, allowed or not.
    pub fn spend(&mut self, now: SimTime, sectors: u64) {
        if let Some(rate) = self.rate {
            self.full_at = self.full_at.max(now) + cost(sectors, rate);
        }
    }
}

fn cost(sectors: u64, rate: u64) -> SimDuration {
    SimDuration::transfer(sectors.saturating_mul(SECTOR_BYTES), rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_spent_and_grows_again() {
        let at = |ms: u64| SimTime::ZERO + SimDuration::from_ms(ms);
        // 100 sectors, ten a second.
        let mut budget = Budget::new(Some(5120), 100);
        assert!(budget.allows(at(0), 100) && !budget.allows(at(0), 101));
        budget.spend(at(0), 60);
        assert!(budget.allows(at(0), 40) && !budget.allows(at(0), 41));
        assert!(budget.allows(at(1000), 50) && !budget.allows(at(1000), 51));
        budget.spend(at(1000), 50);
        assert!(!budget.allows(at(1099), 1) && budget.allows(at(1100), 1));
        // Overspent: the debt is paid first.
        budget.spend(at(1100), 21);
        assert!(!budget.allows(at(3000), 0) && !budget.allows(at(3199), 1));
        assert!(budget.allows(at(3200), 1));
        // It never holds more than at first.
        assert!(budget.allows(at(1_000_000), 100) && !budget.allows(at(1_000_000), 101));
    }

    #[test]
    fn without_a_rate_everything_is_allowed() {
        let mut budget = Budget::new(None, 1);
        budget.spend(SimTime::ZERO, 1_000_000);
        assert!(budget.allows(SimTime::ZERO, u64::MAX));
    }
}
