//! Requests by tenant, where several workloads share the host.

use crate::latency::LatencyFold;
use crate::results::{TenantResult, Tenants, ratio};
use crate::summary::latencies;
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, Lba, Op, SECTOR_BYTES};
use std::collections::BTreeMap;

/// A tenant as the scenario describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantInfo {
    pub name: String,
    pub weight: u32,
}

/// The requests of a tenant.
#[derive(Clone, Debug, Default)]
struct Sums {
    latency: LatencyFold,
    requests: u64,
    read_sectors: u64,
    write_sectors: u64,
    last_completion_ns: u64,
}

/// The fold; empty with one workload.
#[derive(Clone, Debug, Default)]
pub struct TenantFold {
    tenants: Vec<Sums>,
}

impl TenantFold {
    /// Adds an event, if it is about a tenant.
    #[inline]
    pub fn add(&mut self, record: &EventRecord) {
        let Some(CommonEvent::TenantCompleted { op, sectors, tenant, latency }) = record.event()
        else {
            return;
        };
        let at = usize::from(tenant);
        if at >= self.tenants.len() {
            self.tenants.resize_with(at + 1, Sums::default);
        }
        let sums = &mut self.tenants[at];
        sums.requests += 1;
        sums.last_completion_ns = record.time.as_ns();
        let completed = CommonEvent::Completed { op, sectors, lba: Lba(0), latency };
        sums.latency.add(&EventRecord::new(record.time, record.component(), completed));
        match op {
            Op::Read => sums.read_sectors += u64::from(sectors),
            Op::Write => sums.write_sectors += u64::from(sectors),
            Op::Trim | Op::Flush | Op::Zone(_) => {}
        }
    }

    /// The results of a window that began at `from_ns`, of the tenants `infos`.
    pub fn results(&self, infos: &[TenantInfo], from_ns: u64, end_ns: u64) -> Option<Tenants> {
        if infos.is_empty() {
            return None;
        }
        let window_ns = end_ns.saturating_sub(from_ns) as f64;
        let all: u64 = self.tenants.iter().map(|sums| sums.requests).sum();
        let none = Sums::default();
        let per_s = |amount: u64| ratio(amount as f64 * 1e9, window_ns);
        let one = |(at, info): (usize, &TenantInfo)| {
            let sums = self.tenants.get(at).unwrap_or(&none);
            let read_bytes = sums.read_sectors * SECTOR_BYTES;
            let write_bytes = sums.write_sectors * SECTOR_BYTES;
            let result = TenantResult {
                weight: info.weight,
                requests: sums.requests,
                share: ratio(sums.requests as f64, all as f64),
                iops: per_s(sums.requests),
                bytes_per_s: per_s(read_bytes + write_bytes),
                read_bytes,
                write_bytes,
                last_completion_ns: sums.last_completion_ns.saturating_sub(from_ns),
                latency_ns: latencies(&sums.latency),
                slowdown: None,
            };
            (info.name.clone(), result)
        };
        let by_name: BTreeMap<_, _> = infos.iter().enumerate().map(one).collect();
        let served: Vec<f64> =
            by_name.values().map(|one| one.requests as f64 / f64::from(one.weight)).collect();
        Some(Tenants { fairness: jain(&served), by_name })
    }
}

impl EventSink for TenantFold {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

/// Jain's fairness index: 1 when all are equal, 1/n when one has everything (Jain, Chiu and Hawe,
/// DEC-TR-301, 1984).
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    ratio(sum * sum, values.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ns, record};

    #[test]
    fn fairness_of_known_shares() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[0.0, 0.0, 7.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[]), jain(&[0.0])), (None, None));
    }

    #[test]
    fn requests_count_for_their_tenant() {
        let mut fold = TenantFold::default();
        let completed = |tenant, op, sectors, took| {
            let latency = ns(took);
            record(500, 0, CommonEvent::TenantCompleted { op, sectors, tenant, latency })
        };
        fold.take(&[
            completed(1, Op::Read, 8, 100),
            completed(1, Op::Write, 16, 300),
            completed(0, Op::Flush, 0, 50),
            record(500, 0, CommonEvent::QueueDepth { depth: 1 }),
        ]);
        let info = |name: &str, weight| TenantInfo { name: name.to_owned(), weight };
        let infos = [info("a", 1), info("b", 2), info("idle", 1)];
        let found = fold.results(&infos, 0, 1_000).expect("there are tenants");
        let b = &found.by_name["b"];
        assert_eq!((b.requests, b.read_bytes, b.write_bytes), (2, 4096, 8192));
        assert_eq!(b.share, Some(2.0 / 3.0));
        assert_eq!((b.iops, b.latency_ns.all.mean), (Some(2e6), Some(200.0)));
        assert_eq!(found.by_name["idle"].requests, 0);
        // By weight: 1, 1 and 0.
        assert_eq!(found.fairness, Some(2.0 / 3.0));
        assert_eq!(TenantFold::default().results(&[], 0, 1), None);
    }
}
