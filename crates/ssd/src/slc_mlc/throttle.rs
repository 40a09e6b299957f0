//! The utilisation throttle (chang-slc-mlc, section 3.4, Algorithm 2), and the control of the
//! write-back policy (section 3.6).

use serde::{Deserialize, Serialize};

/// Protects the SLC flash from wearing out before the MLC flash.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct UtilisationThrottle {
    /// Endurance of an SLC block over that of an MLC block.
    endurance_ratio: f64,
    /// k changes by `step` blocks after `every` requests.
    every: u32,
    step: u32,
    /// Requests since the last change, while the throttle is active, and while it is not.
    active_requests: u32,
    inactive_requests: u32,
    enabled: bool,
}

impl UtilisationThrottle {
    /// Algorithm 2 has `every` = 1000 and `step` = 100.
    pub const fn new(endurance_ratio: f64, every: u32, step: u32, enabled: bool) -> Self {
        let (active_requests, inactive_requests) = (0, 0);
        Self { endurance_ratio, every, step, active_requests, inactive_requests, enabled }
    }

    /// Whether the SLC flash, `slc` erases by block, wears faster than the MLC flash, `mlc`
    /// erases by block. The paper's rw_s >= rw_m would reject the first write, at 0 = 0.
    pub fn is_active(&self, slc: f64, mlc: f64) -> bool {
        self.enabled && slc / self.endurance_ratio > mlc
    }

    /// A request was rejected. Returns the new k (steps 1 and 7 to 10; all requests in throttling
    /// mode are counted, the test is on the path of rejected ones). At k = 0 head and tail are the
    /// same block, as they are initially (section 3.3).
    pub fn rejected(&mut self, k: u32) -> u32 {
        if self.active_requests < self.every {
            return k;
        }
        self.active_requests = 0;
        k.saturating_sub(self.step)
    }

    /// A request arrived in throttling mode.
    pub fn count(&mut self) {
        self.active_requests += 1;
    }

    /// A request arrived while the throttle was inactive. Returns the new k.
    pub fn relax(&mut self, k: u32, k_max: u32) -> u32 {
        self.inactive_requests += 1;
        if self.inactive_requests < self.every {
            return k;
        }
        self.inactive_requests = 0;
        k.saturating_add(self.step).min(k_max)
    }

    /// The counters are lost at a power failure.
    pub fn reset(&mut self) {
        (self.active_requests, self.inactive_requests) = (0, 0);
    }
}

/// Deactivates the write-back policy while the share of updates in the SLC traffic is low. The
/// paper says "notably decreases" and "a stable level"; the numbers are assumed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WriteBackPolicy {
    enabled: bool,
    active: bool,
    written: u32,
    updates: u32,
    /// Long-run mean of the share of updates.
    mean: Option<f64>,
}

/// Sectors per window.
const WINDOW: u32 = 1000;
/// Weight of a window in the long-run mean.
const WEIGHT: f64 = 1.0 / 64.0;
/// Fractions of the long-run mean below which the policy is off, and from which it is on again.
const OFF_BELOW: f64 = 0.80;
const ON_AT: f64 = 0.95;

impl WriteBackPolicy {
    /// Initially active if `enabled`.
    pub const fn new(enabled: bool) -> Self {
        Self { enabled, active: enabled, written: 0, updates: 0, mean: None }
    }

    /// Whether sectors whose chain has no log are copied back to the head.
    pub const fn is_active(&self) -> bool {
        self.active
    }

    /// Sectors were written to the SLC flash, of which `updates` replaced data there. Returns true
    /// if the policy was activated or deactivated.
    pub fn record(&mut self, written: u32, updates: u32) -> bool {
        self.written += written;
        self.updates += updates;
        if !self.enabled || self.written < WINDOW {
            return false;
        }
        let share = f64::from(self.updates) / f64::from(self.written);
        (self.written, self.updates) = (0, 0);
        let mean = self.mean.get_or_insert(share);
        let before = self.active;
        if share < *mean * OFF_BELOW {
            self.active = false;
        } else if share >= *mean * ON_AT {
            self.active = true;
        }
        *mean += (share - *mean) * WEIGHT;
        self.active != before
    }

    /// The counters are lost at a power failure.
    pub fn reset(&mut self) {
        *self = Self::new(self.enabled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_throttles_only_when_slc_wears_faster() {
        let check = |slc, mlc, active| {
            let throttle = UtilisationThrottle::new(20.0, 1000, 100, true);
            assert_eq!(throttle.is_active(slc, mlc), active, "{slc} {mlc}");
        };
        check(0.0, 0.0, false);
        check(20.0, 1.0, false);
        check(20.1, 1.0, true);
        check(1.0, 0.0, true);
        assert!(!UtilisationThrottle::new(20.0, 1000, 100, false).is_active(9.0, 0.0));
    }

    #[test]
    fn k_falls_every_thousand_requests_and_rises_again() {
        let mut throttle = UtilisationThrottle::new(20.0, 1000, 100, true);
        let mut k = 250;
        for request in 1..=3000 {
            throttle.count();
            // Every second is accepted.
            if request % 2 == 0 {
                k = throttle.rejected(k);
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
    fn write_back_is_inactive_while_updates_are_few() {
        let mut policy = WriteBackPolicy::new(true);
        assert!(!policy.record(1000, 800) && policy.is_active());
        assert!(!policy.record(999, 600), "the window is not full");
        assert!(policy.record(1, 0) && !policy.is_active());
        assert!(!policy.record(1000, 700) && !policy.is_active(), "not yet stable");
        assert!(policy.record(1000, 800) && policy.is_active());
        let mut never = WriteBackPolicy::new(false);
        assert!(!never.record(5000, 4000) && !never.is_active());
    }
}
