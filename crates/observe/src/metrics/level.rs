//! Means, and levels over time.

/// A level that changes at known times: mean over time, least and most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// The value now.
    pub now: u64,
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    since: u64,
    first: u64,
    integral: u128,
}

impl Level {
    /// A level first reported at `time` ns.
    pub const fn new(time: u64, value: u64) -> Self {
        Self { now: value, min: value, max: value, since: time, first: time, integral: 0 }
    }

    /// The level is `value` from `time` ns on.
    #[inline]
    pub fn set(&mut self, time: u64, value: u64) {
        self.integral += u128::from(self.now) * u128::from(time.saturating_sub(self.since));
        self.since = time;
        self.now = value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The level from `from_ns` on.
    pub fn measured_from(self, from_ns: u64) -> Self {
        Self::new(from_ns, self.now)
    }

    /// The time since the last change up to `end` ns, if the value is above zero.
    pub fn positive_until(&self, end: u64) -> u64 {
        if self.now > 0 { end.saturating_sub(self.since) } else { 0 }
    }

    /// Mean over the time from the first value to `end` ns.
    pub fn mean(&self, end: u64) -> Option<f64> {
        let last = u128::from(self.now) * u128::from(end.saturating_sub(self.since));
        let span = end.saturating_sub(self.first);
        (span > 0).then(|| (self.integral + last) as f64 / span as f64)
    }
}

#[inline]
pub(crate) fn set_level(level: &mut Option<Level>, now: u64, value: u64) {
    level.get_or_insert_with(|| Level::new(now, value)).set(now, value);
}

/// `total / count`, `None` without any.
pub(crate) fn mean(total: u64, count: u64) -> Option<f64> {
    ratio(total as f64, count as f64)
}

/// `part / whole`, `None` where that is not a finite number.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    Some(part / whole).filter(|ratio| ratio.is_finite())
}
