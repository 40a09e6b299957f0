//! The clock of a trace.

/// Added to times of completion, as the first requests arrived before time 0.
const BEFORE_NS: u64 = 1_000_000_000_000;

/// The arrival of a request that took `latency_ns` and completed at `done_ns`, plus [`BEFORE_NS`].
#[inline]
pub(crate) const fn arrival_ns(done_ns: u64, latency_ns: u64) -> u64 {
    done_ns.saturating_add(BEFORE_NS).saturating_sub(latency_ns)
}

/// Removes jumps from the times of a trace and detects outliers.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: Option<u64>,
    /// The sum of the jumps so far, in ns.
    shift: i128,
}

impl Clock {
    /// A year; traces last days to months.
    pub const FAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

    /// The time without the jumps so far; `None` when it is far from the previous one.
    #[inline]
    pub fn follow(&mut self, raw_ns: u64) -> Option<u64> {
        let now = self.shifted(raw_ns);
        match &mut self.last {
            Some(last) if now.abs_diff(*last) > Self::FAR_NS => return None,
            Some(last) => *last = now,
            None => self.last = Some(now),
        }
        Some(now)
    }

    /// The time without the jumps so far.
    #[inline]
    pub fn shifted(&self, raw_ns: u64) -> u64 {
        if self.shift == 0 {
            return raw_ns;
        }
        let shifted = i128::from(raw_ns) + self.shift;
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    }

    /// The clock was set to `raw_ns`: times continue from the last one.
    pub fn jump_to(&mut self, raw_ns: u64) {
        self.shift = i128::from(self.last.unwrap_or(raw_ns)) - i128::from(raw_ns);
    }
}
