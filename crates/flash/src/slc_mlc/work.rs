//! What a request made the flash do: operations in runs, with their causes, and numbers worth
//! telling. The layer gives them their time and tells them.

use crate::event::Cause;
use hybridsim_engine::SimDuration;

/// The two media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Medium {
    /// One bit to the cell: die 0.
    Slc = 0,
    /// Several bits to the cell: die 1.
    Mlc = 1,
}

/// What is done to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Pages are read.
    Read,
    /// Pages are programmed.
    Program,
    /// A block is erased.
    Erase,
}

/// A run of like operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where.
    pub medium: Medium,
    /// What.
    pub act: Act,
    /// Why.
    pub cause: Cause,
    /// MLC pages used with one bit to the cell (density control): SLC times by the byte.
    pub dense: bool,
    /// Pages, or blocks erased.
    pub count: u32,
    /// For an erase: the block, and how often it has been erased.
    pub block: u32,
    /// See `block`.
    pub erases: u32,
}

/// Numbers told as events, by their place in [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Number {
    Threshold,
    SlcWrite,
    MlcWrite,
    HashReject,
    ThrottleReject,
    TailValid,
    TailKept,
    Scan,
    ReadScan,
    FoldErases,
    Switch,
    LogBlocks,
    WriteBack,
    SlcWear,
    MlcWear,
    SlcReads,
    SlcPrograms,
    SlcGcReads,
    SlcGcPrograms,
    MlcReads,
    MlcPrograms,
    MlcGcReads,
    MlcGcPrograms,
    WearPrograms,
    SlcErases,
    MlcErases,
    MlcChain,
    Dense,
    BufferWrite,
    GcScan,
}

/// Names of [`Number`] in results. `docs/slc-mlc.md` says what each means.
pub const NAMES: &[&str] = &[
    "threshold_sectors",
    "slc_write_sectors",
    "mlc_write_sectors",
    "hash_reject_sectors",
    "throttle_reject_sectors",
    "tail_valid_pages",
    "tail_kept_pages",
    "scan_pages",
    "read_scan_pages",
    "fold_erases",
    "switches",
    "log_space_blocks",
    "write_back_active",
    "slc_wear",
    "mlc_wear",
    "slc_user_read_pages",
    "slc_user_write_pages",
    "slc_gc_read_pages",
    "slc_gc_write_pages",
    "mlc_user_read_pages",
    "mlc_user_write_pages",
    "mlc_gc_read_pages",
    "mlc_gc_write_pages",
    "wear_levelling_pages",
    "slc_erased_blocks",
    "mlc_erased_blocks",
    "mlc_write_block",
    "dense_blocks",
    "buffer_write_sectors",
    "gc_scan_pages",
];

/// Operations and numbers since they were last told.
#[derive(Debug)]
pub struct Work {
    runs: Vec<Run>,
    numbers: Vec<(Number, u64)>,
    /// Pages asked for that hold nothing.
    pub unwritten: u32,
    /// Off while a device is filled before a run.
    pub recording: bool,
}

impl Default for Work {
    fn default() -> Self {
        let (runs, numbers) = (Vec::with_capacity(256), Vec::with_capacity(256));
        Self { runs, numbers, unwritten: 0, recording: true }
    }
}

impl Work {
    /// Notes `count` pages.
    #[inline]
    pub fn pages(&mut self, medium: Medium, act: Act, cause: Cause, dense: bool, count: u32) {
        if count == 0 || !self.recording {
            return;
        }
        if let Some(last) = self.runs.last_mut()
            && (last.medium, last.act, last.cause, last.dense) == (medium, act, cause, dense)
        {
            last.count += count;
            return;
        }
        self.runs.push(Run { medium, act, cause, dense, count, block: 0, erases: 0 });
    }

    /// Notes the erase of `block`, its `erases`-th.
    #[inline]
    pub fn erase(&mut self, medium: Medium, cause: Cause, block: u32, erases: u32) {
        if self.recording {
            let act = Act::Erase;
            self.runs.push(Run { medium, act, cause, dense: false, count: 1, block, erases });
        }
    }

    /// Notes a number.
    #[inline]
    pub fn tell(&mut self, number: Number, value: u64) {
        if self.recording {
            self.numbers.push((number, value));
        }
    }

    /// The runs of operations.
    #[inline]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The numbers.
    #[inline]
    pub fn numbers(&self) -> &[(Number, u64)] {
        &self.numbers
    }

    /// Begins anew.
    #[inline]
    pub fn clear(&mut self) {
        self.runs.clear();
        self.numbers.clear();
        self.unwritten = 0;
    }
}

/// How long operations of a medium take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// A page read.
    pub read: SimDuration,
    /// A page programmed.
    pub program: SimDuration,
    /// A block erased.
    pub erase: SimDuration,
    /// Pages of one run that are worked on at a time, on as many dies.
    pub ways: u32,
}

impl Times {
    /// How long `count` operations take.
    #[inline]
    pub fn of(&self, act: Act, count: u32) -> SimDuration {
        let rounds = if self.ways > 1 { count.div_ceil(self.ways) } else { count };
        let one = match act {
            Act::Read => self.read,
            Act::Program => self.program,
            // The dies erase their parts of a block together.
            Act::Erase => return self.erase * u64::from(count),
        };
        one * u64::from(rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_operations_make_one_run() {
        let mut work = Work::default();
        for cause in [Cause::Host, Cause::Host, Cause::Gc] {
            work.pages(Medium::Mlc, Act::Program, cause, false, 3);
        }
        work.pages(Medium::Slc, Act::Program, Cause::Gc, false, 0);
        let counts: Vec<u32> = work.runs().iter().map(|run| run.count).collect();
        assert_eq!(counts, [6, 3]);
        assert_eq!(NAMES.len(), Number::GcScan as usize + 1);
    }

    #[test]
    fn dies_share_a_run() {
        let us = SimDuration::from_us;
        let times = Times { read: us(60), program: us(800), erase: us(1500), ways: 4 };
        assert_eq!(times.of(Act::Program, 9), us(2400));
        assert_eq!(times.of(Act::Erase, 2), us(3000));
        assert_eq!(Times { ways: 1, ..times }.of(Act::Read, 9), us(540));
    }
}
