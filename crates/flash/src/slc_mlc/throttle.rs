//! The utilization throttle (chang-slc-mlc, section 3.4, Algorithm 2), and the watch over the
//! write-back policy (section 3.6).

use hybridsim_engine::state::{Loader, Saver, StateError};

/// Protects the SLC flash from wearing out before the MLC flash.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// Endurance of an SLC block over that of an MLC block.
    endurance_ratio: f64,
    /// k changes each so many requests, by so many blocks.
    every: u32,
    step: u32,
    counted: u32,
    relaxed: u32,
    enabled: bool,
}

impl Throttle {
    /// A throttle with Algorithm 2's numbers `every` = 1000 and `step` = 100.
    pub const fn new(endurance_ratio: f64, every: u32, step: u32, enabled: bool) -> Self {
        Self { endurance_ratio, every, step, counted: 0, relaxed: 0, enabled }
    }

    /// Whether the SLC flash, `slc` erases by block, wears faster than the MLC flash, `mlc`
    /// erases by block. The paper's rw_s >= rw_m would reject the first write, at 0 = 0.
    pub fn is_active(&self, slc: f64, mlc: f64) -> bool {
        self.enabled && slc / self.endurance_ratio > mlc
    }

    /// A request was refused; the new k (steps 1 and 7 to 10; all requests in throttling mode are
    /// counted, the test is on the way of refused ones). At 0 head and tail are the same block, as
    /// they are at first (section 3.3).
    pub fn refused(&mut self, k: u32) -> u32 {
        if self.counted < self.every {
            return k;
        }
        self.counted = 0;
        k.saturating_sub(self.step)
    }

    /// A request came in throttling mode.
    pub fn count(&mut self) {
        self.counted += 1;
    }

    /// A request came while the throttle was inactive; the new k.
    pub fn relax(&mut self, k: u32, k_max: u32) -> u32 {
        self.relaxed += 1;
        if self.relaxed < self.every {
            return k;
        }
        self.relaxed = 0;
        k.saturating_add(self.step).min(k_max)
    }

    /// Puts down what it has counted.
    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(self.counted, self.relaxed));
    }

    /// Takes back what [`Throttle::save`] put down.
    ///
    /// # Errors
    /// When the bytes end.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.counted, self.relaxed) = from.take()?;
        Ok(())
    }

    /// What is in memory only.
    pub fn forget(&mut self) {
        (self.counted, self.relaxed) = (0, 0);
    }
}

/// Deactivates the write-back policy while the share of updates in the SLC traffic is low. The
/// paper says "notably decreases" and "a stable level"; the numbers are assumed.
#[derive(Clone, Copy, Debug)]
pub struct WriteBack {
    enabled: bool,
    active: bool,
    written: u32,
    updates: u32,
    /// Long-run mean of the share of updates.
    usual: Option<f64>,
}

/// Sectors of a window.
const WINDOW: u32 = 1000;
/// Weight of a window in the long-run mean.
const WEIGHT: f64 = 1.0 / 64.0;
/// Below this share of the usual the policy is off; at that share it is on again.
const OFF_BELOW: f64 = 0.80;
const ON_AT: f64 = 0.95;

impl WriteBack {
    /// The policy, on at first.
    pub const fn new(enabled: bool) -> Self {
        Self { enabled, active: enabled, written: 0, updates: 0, usual: None }
    }

    /// Whether sectors whose chain has no log go back to the head.
    pub const fn is_active(&self) -> bool {
        self.active
    }

    /// Sectors were written to the SLC flash, `updates` of them over data that was there. True
    /// when the policy goes on or off.
    pub fn note(&mut self, written: u32, updates: u32) -> bool {
        self.written += written;
        self.updates += updates;
        if !self.enabled || self.written < WINDOW {
            return false;
        }
        let share = f64::from(self.updates) / f64::from(self.written);
        (self.written, self.updates) = (0, 0);
        let usual = self.usual.get_or_insert(share);
        let before = self.active;
        if share < *usual * OFF_BELOW {
            self.active = false;
        } else if share >= *usual * ON_AT {
            self.active = true;
        }
        *usual += (share - *usual) * WEIGHT;
        self.active != before
    }

    /// Puts down what it has seen.
    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(self.active, self.written, self.updates, self.usual));
    }

    /// Takes back what [`WriteBack::save`] put down.
    ///
    /// # Errors
    /// When the bytes end.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.active, self.written, self.updates, self.usual) = from.take()?;
        Ok(())
    }

    /// What is in memory only.
    pub fn forget(&mut self) {
        *self = Self::new(self.enabled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_throttles_only_when_slc_wears_faster() {
        let check = |slc, mlc, active| {
            let throttle = Throttle::new(20.0, 1000, 100, true);
            assert_eq!(throttle.is_active(slc, mlc), active, "{slc} {mlc}");
        };
        check(0.0, 0.0, false);
        check(20.0, 1.0, false);
        check(20.1, 1.0, true);
        check(1.0, 0.0, true);
        assert!(!Throttle::new(20.0, 1000, 100, false).is_active(9.0, 0.0));
    }

    #[test]
    fn k_falls_every_thousand_requests_and_rises_again() {
        let mut throttle = Throttle::new(20.0, 1000, 100, true);
        let mut k = 250;
        for request in 1..=3000 {
            throttle.count();
            // Every second is accepted.
            if request % 2 == 0 {
                k = throttle.refused(k);
            }
        }
        assert_eq!(k, 0, "250, 150, 50, and no lower than 0");
        for _ in 0..1999 {
            k = throttle.relax(k, 253);
        }
        assert_eq!(k, 100);
        for _ in 0..2000 {
            k = throttle.relax(k, 253);
        }
        assert_eq!(k, 253);
    }

    #[test]
    fn write_back_rests_while_updates_are_few() {
        let mut policy = WriteBack::new(true);
        assert!(!policy.note(1000, 800) && policy.is_active());
        assert!(!policy.note(999, 600), "the window is not full");
        assert!(policy.note(1, 0) && !policy.is_active());
        assert!(!policy.note(1000, 700) && !policy.is_active(), "not yet stable");
        assert!(policy.note(1000, 800) && policy.is_active());
        let mut never = WriteBack::new(false);
        assert!(!never.note(5000, 4000) && !never.is_active());
    }
}
