//! A part of a trace: by record number, by time, or both.

use crate::record::Record;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::{SimDuration, SimTime};

hybridsim_config::params! {
    /// Parameters of the part of a trace.
    pub struct Parameters {
        first: u64 = Kind::Count { min: 1, max: u64::MAX }, default "1",
            "Number of the first record used, counted from 1; it then arrives at time 0.";
        count: Option<u64> = Kind::Count { min: 1, max: u64::MAX }, optional,
            "Number of records used, from `first` on.";
        from: Option<SimDuration> = Kind::Duration, optional,
            "Records that arrive earlier are left out; this time becomes time 0.";
        until: Option<SimDuration> = Kind::Duration, optional,
            "Records that arrive at this time or later are left out.";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceDecision {
    Keep,
    Skip,
    /// Neither it nor any later record is in the slice.
    Stop,
}

/// The chosen part of a trace.
#[derive(Clone, Debug)]
pub struct Slice {
    first: u64,
    end: u64,
    from: Option<SimTime>,
    until: SimTime,
    base: Option<SimTime>,
}

impl Slice {
    pub fn new(params: &Parameters, problems: &mut Vec<Problem>) -> Self {
        let first = params.first;
        let from = params.from.map(|time| SimTime::ZERO + time);
        let until = params.until.map_or(SimTime::NEVER, |time| SimTime::ZERO + time);
        if from.is_some_and(|from| from >= until) {
            problems.push(Problem::new("until", "must be later than `from`"));
        }
        let count = params.count.unwrap_or(u64::MAX);
        Self { first, end: first.saturating_add(count), from, until, base: None }
    }

    pub const fn is_partial(&self) -> bool {
        self.first > 1
            || self.end != u64::MAX
            || self.from.is_some()
            || self.until.as_ns() != u64::MAX
    }

    /// Decides on record `number`, counted from 1.
    #[inline]
    pub fn decide(&mut self, number: u64, record: &Record) -> SliceDecision {
        if number >= self.end || record.at >= self.until {
            return SliceDecision::Stop;
        }
        if number < self.first || self.from.is_some_and(|from| record.at < from) {
            return SliceDecision::Skip;
        }
        if self.base.is_none() {
            let whole = self.first == 1;
            self.base = Some(self.from.unwrap_or(if whole { SimTime::ZERO } else { record.at }));
        }
        SliceDecision::Keep
    }

    /// Time since the start of the slice.
    #[inline]
    pub fn since_start(&self, at: SimTime) -> SimDuration {
        at.since(self.base.unwrap_or(SimTime::ZERO))
    }

    /// Fraction of the slice read, where its length is known.
    pub fn share_done(&self, number: u64) -> Option<f64> {
        if self.end == u64::MAX {
            return None;
        }
        let done = number.saturating_sub(self.first) as f64;
        Some(done / (self.end - self.first).max(1) as f64)
    }
}
