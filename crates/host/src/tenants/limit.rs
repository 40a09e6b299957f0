//! Rate limits of a tenant: requests and bytes per second.

use hybridsim_engine::{Op, Request, SECTOR_BYTES, SimDuration, SimTime};

const SECOND_NS: u64 = 1_000_000_000;

/// The limits of a tenant. Each request moves the time of the next by what it costs at the rate. A
/// request that was issued late, because the device was busy, lets the next be as much earlier,
/// but no further ones. So in no time are more issued than the rate times its length, plus two.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateLimit {
    /// Requests per second.
    pub requests: Option<u64>,
    /// Bytes read and written per second.
    pub bytes: Option<u64>,
    /// Time from which the next request may be issued.
    next: SimTime,
}

impl RateLimit {
    /// A limit of requests, bytes, or both per second.
    pub const fn new(requests: Option<u64>, bytes: Option<u64>) -> Self {
        Self { requests, bytes, next: SimTime::ZERO }
    }

    /// Time from which the next request may be issued.
    pub const fn next(&self) -> SimTime {
        self.next
    }

    /// Continues from the `next` of an earlier run.
    pub const fn set_next(&mut self, next: SimTime) {
        self.next = next;
    }

    /// `request` is issued at `now`.
    pub fn issued(&mut self, request: &Request, now: SimTime) {
        let per = |amount: u64, rate: Option<u64>| {
            let ns = |rate| (u128::from(amount) * u128::from(SECOND_NS)).div_ceil(u128::from(rate));
            rate.map_or(0, |rate| u64::try_from(ns(rate)).unwrap_or(u64::MAX))
        };
        let bytes = match request.op {
            Op::Read | Op::Write => u64::from(request.sectors) * SECTOR_BYTES,
            Op::Trim | Op::Flush | Op::Zone(_) => 0,
        };
        let gap = per(1, self.requests).max(per(bytes, self.bytes));
        self.next = now.max(self.next + SimDuration::from_ns(gap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Lba;

    #[test]
    fn the_stricter_limit_applies() {
        let issue = |requests, bytes, op, sectors| {
            let mut limit = RateLimit::new(requests, bytes);
            limit.issued(&Request::new(op, Lba(0), sectors), SimTime::ZERO);
            limit.next().as_ns()
        };
        assert_eq!(issue(None, None, Op::Read, 8), 0, "no limit");
        assert_eq!(issue(Some(3), None, Op::Read, 8), 333_333_334, "rounded up");
        assert_eq!(issue(Some(1_000), Some(4_096_000), Op::Write, 16), 2_000_000);
        assert_eq!(issue(Some(1_000), Some(4_096_000), Op::Write, 4), 1_000_000);
        assert_eq!(issue(Some(1_000), Some(1), Op::Trim, 4), 1_000_000, "trims carry no data");
    }

    #[test]
    fn time_that_was_not_used_is_made_up_for_by_one_request() {
        let mut limit = RateLimit::new(Some(1_000_000), None);
        let read = Request::new(Op::Read, Lba(0), 8);
        let mut issue = |at: u64| {
            limit.issued(&read, SimTime::from_ns(at));
            limit.next().as_ns()
        };
        assert_eq!([issue(0), issue(1_300), issue(2_000)], [1_000, 2_000, 3_000]);
        assert_eq!([issue(50_000), issue(50_000)], [50_000, 51_000], "not by 47 of them");
    }
}
