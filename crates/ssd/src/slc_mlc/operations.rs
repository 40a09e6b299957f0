//! Flash operations that a request caused, in batches, and statistics. The back end gives the
//! operations their time and reports both.

use hybridsim_engine::SimDuration;
use hybridsim_flash::event::Cause;

/// A medium, and an index into the table of [`MediumTimes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Medium {
    Slc = 0,
    Mlc = 1,
    /// MLC flash used with one bit per cell (density control): SLC times per byte.
    DenseMlc = 2,
}

impl Medium {
    /// All dies of a medium count as one (chang-slc-mlc, section 5.1).
    pub const fn die(self) -> u16 {
        match self {
            Self::Slc => 0,
            Self::Mlc | Self::DenseMlc => 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Read,
    Program,
    Erase,
}

/// Consecutive operations of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    pub medium: Medium,
    pub command: Command,
    pub cause: Cause,
    /// Pages, or blocks erased.
    pub count: u32,
    /// The erased block, and how often it has been erased.
    pub block: u32,
    pub erases: u32,
}

hybridsim_engine::statistics! {
    /// Numbers reported as custom events. `docs/models/slc-mlc.md` describes each.
    enum Statistic {
        Threshold = "threshold_sectors",
        SlcWrite = "slc_write_sectors",
        MlcWrite = "mlc_write_sectors",
        HashReject = "hash_reject_sectors",
        ThrottleReject = "throttle_reject_sectors",
        TailValid = "tail_valid_pages",
        TailKept = "tail_kept_pages",
        Scan = "scan_pages",
        ReadScan = "read_scan_pages",
        FoldErases = "fold_erases",
        Switch = "switches",
        LogBlocks = "log_space_blocks",
        WriteBack = "write_back_active",
        SlcWear = "slc_wear",
        MlcWear = "mlc_wear",
        SlcReads = "slc_user_read_pages",
        SlcPrograms = "slc_user_write_pages",
        SlcGcReads = "slc_gc_read_pages",
        SlcGcPrograms = "slc_gc_write_pages",
        MlcReads = "mlc_user_read_pages",
        MlcPrograms = "mlc_user_write_pages",
        MlcGcReads = "mlc_gc_read_pages",
        MlcGcPrograms = "mlc_gc_write_pages",
        WearPrograms = "wear_levelling_pages",
        SlcErases = "slc_erased_blocks",
        MlcErases = "mlc_erased_blocks",
        MlcChain = "mlc_write_block",
        Dense = "dense_blocks",
        BufferWrite = "buffer_write_sectors",
        GcScan = "gc_scan_pages",
    }
}

/// Operations and statistics since the last report.
#[derive(Debug)]
pub struct Operations {
    batches: Vec<Batch>,
    statistics: Vec<(Statistic, u64)>,
    /// Pages read that were never written.
    pub unwritten: u32,
}

impl Default for Operations {
    fn default() -> Self {
        let (batches, statistics) = (Vec::with_capacity(256), Vec::with_capacity(256));
        Self { batches, statistics, unwritten: 0 }
    }
}

impl Operations {
    #[inline]
    pub fn pages(&mut self, medium: Medium, command: Command, cause: Cause, count: u32) {
        if count == 0 {
            return;
        }
        if let Some(last) = self.batches.last_mut()
            && (last.medium, last.command, last.cause) == (medium, command, cause)
        {
            last.count += count;
            return;
        }
        self.batches.push(Batch { medium, command, cause, count, block: 0, erases: 0 });
    }

    /// Records that `block` was erased for the `erases`-th time.
    #[inline]
    pub fn erase(&mut self, medium: Medium, cause: Cause, block: u32, erases: u32) {
        let command = Command::Erase;
        self.batches.push(Batch { medium, command, cause, count: 1, block, erases });
    }

    #[inline]
    pub fn record(&mut self, statistic: Statistic, value: u64) {
        self.statistics.push((statistic, value));
    }

    #[inline]
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    #[inline]
    pub fn statistics(&self) -> &[(Statistic, u64)] {
        &self.statistics
    }

    #[inline]
    pub fn clear(&mut self) {
        self.batches.clear();
        self.statistics.clear();
        self.unwritten = 0;
    }
}

#[derive(Clone, Copy, Debug)]
pub struct MediumTimes {
    pub read: SimDuration,
    pub program: SimDuration,
    pub erase: SimDuration,
    /// Sectors of a page.
    pub page_sectors: u32,
    /// Pages of a batch that are read or programmed in parallel, on as many dies.
    pub ways: u32,
}

impl MediumTimes {
    #[inline]
    pub fn of(&self, command: Command, count: u32) -> SimDuration {
        let rounds = if self.ways > 1 { count.div_ceil(self.ways) } else { count };
        match command {
            Command::Read => self.read * u64::from(rounds),
            Command::Program => self.program * u64::from(rounds),
            // The dies erase their parts of a block in parallel.
            Command::Erase => self.erase * u64::from(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_one_kind_make_one_batch() {
        let mut operations = Operations::default();
        for cause in [Cause::Host, Cause::Host, Cause::Gc] {
            operations.pages(Medium::Mlc, Command::Program, cause, 3);
        }
        operations.pages(Medium::Slc, Command::Program, Cause::Gc, 0);
        let counts: Vec<u32> = operations.batches().iter().map(|batch| batch.count).collect();
        assert_eq!(counts, [6, 3]);
    }

    #[test]
    fn dies_share_a_batch() {
        let us = SimDuration::from_us;
        let times = MediumTimes {
            read: us(60),
            program: us(800),
            erase: us(1500),
            page_sectors: 8,
            ways: 4,
        };
        assert_eq!(times.of(Command::Program, 9), us(2400));
        assert_eq!(times.of(Command::Erase, 2), us(3000));
        assert_eq!(MediumTimes { ways: 1, ..times }.of(Command::Read, 9), us(540));
    }
}
