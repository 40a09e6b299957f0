//! What one operation of a chip covers: a chip's page is larger than a page of the translation
//! layer in drives that map 4 KiB units, and several pages are programmed at once.

use crate::ops::FlashOp;
use hybridsim_engine::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

/// Bits per cell, at most.
const TYPES_MAX: usize = 4;

/// Pages per operation, and read times by page type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipPages {
    /// Consecutive pages that are read at once.
    read_pages: u32,
    /// Consecutive pages that are programmed at once.
    program_pages: u32,
    /// Consecutive pages that are programmed at once in a block in SLC mode.
    slc_program_pages: u32,
    types: u32,
    /// By page type.
    read_times: [SimDuration; TYPES_MAX],
}

/// A program that takes further pages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct OpenProgram {
    /// The first of the pages programmed at once.
    pub first: u32,
    pub end: SimTime,
}

impl ChipPages {
    /// A chip that reads in `read` and works on single pages.
    pub const fn single(read: SimDuration) -> Self {
        let [read_pages, program_pages, slc_program_pages, types] = [1; 4];
        let read_times = [read; TYPES_MAX];
        Self { read_pages, program_pages, slc_program_pages, types, read_times }
    }

    /// A chip whose page types, `types` of them and 4 at most, take `read` on average and differ
    /// by `spread` of it; `read_pages` and `program_pages` are read and programmed at once.
    pub fn new(read: SimDuration, types: u32, spread: f64, read_pages: u32) -> Self {
        let mut chip = Self { types, read_pages, ..Self::single(read) };
        if types > 1 {
            for (page_type, time) in chip.read_times.iter_mut().enumerate() {
                let place = page_type as f64 / f64::from(types - 1) - 0.5;
                *time = SimDuration::from_ns_f64(read.as_ns() as f64 * (1.0 + spread * place));
            }
        }
        chip
    }

    /// The chip with `program_pages` pages programmed at once, which are those of cells of `bits`
    /// bits: in SLC mode there are fewer, of which `units` share a page of the chip.
    #[must_use]
    pub const fn with_program_pages(self, program_pages: u32, bits: u32, units: u32) -> Self {
        let slc_program_pages = units * (program_pages / units).div_ceil(bits);
        Self { program_pages, slc_program_pages, ..self }
    }

    /// Read time of the page at `offset` of a block.
    #[inline]
    pub(super) const fn read_time(&self, offset: u32) -> SimDuration {
        if self.types == 1 {
            return self.read_times[0];
        }
        self.read_times[(offset / self.read_pages % self.types) as usize]
    }

    #[inline]
    pub(super) const fn reads_several(&self) -> bool {
        self.read_pages > 1
    }

    #[inline]
    pub(super) const fn programs_several(&self) -> bool {
        self.program_pages > 1
    }

    /// The number of the chip's page that holds `page`.
    #[inline]
    pub(super) const fn page_read(&self, page: u32) -> u32 {
        page / self.read_pages
    }

    /// Pages that are programmed at once with that of `op`.
    #[inline]
    const fn pages_programmed(&self, op: &FlashOp) -> u32 {
        if op.slc.target() { self.slc_program_pages } else { self.program_pages }
    }

    /// The first of the pages that are programmed at once with that of `op`.
    #[inline]
    pub(super) const fn first_programmed(&self, op: &FlashOp) -> u32 {
        op.page - op.page % self.pages_programmed(op)
    }

    /// Whether the page of `op` is the last of those that are programmed at once.
    #[inline]
    pub(super) const fn is_last_programmed(&self, op: &FlashOp) -> bool {
        (op.page + 1).is_multiple_of(self.pages_programmed(op))
    }
}

#[cfg(test)]
mod tests {
    use super::ChipPages;
    use crate::event::Cause;
    use crate::geometry::DieId;
    use crate::ops::{After, FRESH, FlashOp, OpKind, SlcMode};
    use hybridsim_engine::SimDuration;

    #[test]
    fn page_types_alternate_and_keep_the_mean() {
        let chip = ChipPages::new(SimDuration::from_us(60), 3, 0.5, 4);
        let us = |offset: u32| chip.read_time(offset).as_ns() / 1_000;
        assert_eq!([0, 3, 4, 8, 11, 12].map(us), [45, 45, 60, 75, 75, 45]);
        assert_eq!((chip.page_read(7), chip.page_read(8)), (1, 2));
    }

    #[test]
    fn one_program_takes_several_pages() {
        let chip = ChipPages::single(SimDuration::from_us(60)).with_program_pages(12, 3, 1);
        assert!(chip.programs_several() && !chip.reads_several());
        let (native, slc) = (SlcMode::default(), SlcMode::new(false, true));
        let program = |page, slc| FlashOp {
            kind: OpKind::Program,
            cause: Cause::Host,
            die: DieId(0),
            from_die: DieId(0),
            retries: 0,
            transfers: 0,
            after: After::NOTHING,
            page,
            slc,
            from: FRESH,
        };
        let first = |page, slc| chip.first_programmed(&program(page, slc));
        let is_last = |page, slc| chip.is_last_programmed(&program(page, slc));
        assert_eq!([11, 12].map(|page| first(page, native)), [0, 12]);
        assert!(is_last(23, native) && !is_last(22, native));
        assert_eq!([11, 12, 15, 16].map(|page| first(page, slc)), [8, 12, 12, 16]);
        assert!(is_last(15, slc) && !is_last(16, slc));
    }
}
