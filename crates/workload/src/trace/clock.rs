//! The clock of a trace: outliers and jumps.

/// Follows the trace's clock over outliers and jumps.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: Option<u64>,
    /// What jumps so far are worth, in ns.
    shift: i128,
}

impl Clock {
    /// A year. Traces last days to months.
    pub const FAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

    /// The time without the jumps so far; `None` when it is far from the one before.
    #[inline]
    pub fn follow(&mut self, raw_ns: u64) -> Option<u64> {
        let Some(last) = self.last else {
            self.last = Some(raw_ns);
            return Some(raw_ns);
        };
        let now = self.shifted(raw_ns);
        if now.abs_diff(last) > Self::FAR_NS {
            return None;
        }
        self.last = Some(now);
        Some(now)
    }

    #[inline]
    /// A time without the jumps so far.
    pub fn shifted(&self, raw_ns: u64) -> u64 {
        if self.shift == 0 {
            return raw_ns;
        }
        let shifted = i128::from(raw_ns) + self.shift;
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    }

    /// The clock was set to `raw_ns`: it runs on from where it was.
    pub fn jump_to(&mut self, raw_ns: u64) {
        self.shift = i128::from(self.last.unwrap_or(raw_ns)) - i128::from(raw_ns);
    }
}
