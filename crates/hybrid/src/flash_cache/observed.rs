//! Measured service times for the cost model, instead of the configured ones: the model then fits
//! the devices below, such as an array of disks or an SSD with many dies.

use super::cost::Costs;
use hybridsim_cache::paged::split::Medium;
use hybridsim_engine::{Completion, LatencyPhase, Op};
use serde::{Deserialize, Serialize};

/// A mean needs at least this many pages.
const PAGES_MIN: f64 = 100.0;

/// Total service time and number of pages of one kind of operation.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct ServiceTime {
    seconds: f64,
    pages: f64,
}

impl ServiceTime {
    fn mean(self) -> Option<f64> {
        (self.pages >= PAGES_MIN).then(|| self.seconds / self.pages)
    }
}

/// Recent service times, without queueing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Observed {
    flash_read: ServiceTime,
    flash_write: ServiceTime,
    disk_read: ServiceTime,
    disk_write: ServiceTime,
}

impl Observed {
    /// Counts a completed operation.
    pub fn record(&mut self, done: &Completion, page_sectors: u64) {
        let flash = done.child == Medium::Flash as usize;
        let total = match (done.request.op, flash) {
            (Op::Read, true) => &mut self.flash_read,
            (Op::Write, true) => &mut self.flash_write,
            (Op::Read, false) => &mut self.disk_read,
            (Op::Write, false) => &mut self.disk_write,
            (Op::Trim | Op::Flush | Op::Zone(_), _) => return,
        };
        let waited = done.breakdown.get(LatencyPhase::Queue).min(done.latency);
        total.seconds += (done.latency - waited).as_ns() as f64 / 1e9;
        total.pages += f64::from(done.request.sectors) / page_sectors as f64;
    }

    /// Halves all counts, like those of the hit ratios.
    pub fn end_period(&mut self) {
        let all = [
            &mut self.flash_read,
            &mut self.flash_write,
            &mut self.disk_read,
            &mut self.disk_write,
        ];
        for total in all {
            total.seconds /= 2.0;
            total.pages /= 2.0;
        }
    }

    /// Costs as measured while a share `u` of flash was in use; those `given` where too few
    /// operations were measured.
    ///
    /// The service time of a write includes its share of garbage collection at `u`. How that share
    /// depends on `u` is taken from the model with the given times; the measurement scales it.
    pub fn costs(&self, given: &Costs, u: f64) -> Costs {
        let level = self.flash_write.mean().map_or(1.0, |mean| mean / given.page_write(u));
        Costs {
            program: level * given.program,
            read: level * given.read,
            erase: level * given.erase,
            bus: level * given.bus,
            pages_per_block: given.pages_per_block,
            host_read: self.flash_read.mean().unwrap_or(given.host_read),
            disk_read: self.disk_read.mean().unwrap_or(given.disk_read),
            disk_write: self.disk_write.mean().unwrap_or(given.disk_write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::published;
    use super::*;

    #[test]
    fn what_was_observed_sets_the_level() {
        let given = published(0.0);
        let mut observed = Observed::default();
        let near = |got: f64, expect: f64| assert!((got / expect - 1.0).abs() < 1e-9, "{got}");
        assert_eq!(observed.costs(&given, 0.8), given);
        // Twice as fast as the model says at 0.8: so everywhere.
        let seconds = 100.0 * given.page_write(0.8) / 2.0;
        observed.flash_write = ServiceTime { seconds, pages: 100.0 };
        observed.disk_read = ServiceTime { seconds: 1.0, pages: 1000.0 };
        observed.disk_write = ServiceTime { seconds: 1.0, pages: 99.0 };
        let costs = observed.costs(&given, 0.8);
        near(costs.page_write(0.5), given.page_write(0.5) / 2.0);
        near(costs.page_read(), given.page_read());
        near(costs.disk_read, 1e-3);
        near(costs.disk_write, given.disk_write);
        observed.end_period();
        near(observed.costs(&given, 0.8).disk_read, 1e-3);
        near(observed.costs(&given, 0.8).page_write(0.5), given.page_write(0.5));
    }
}
