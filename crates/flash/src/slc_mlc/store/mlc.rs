//! What goes to the MLC flash: pages put together from both media, logs, folds.

use super::super::mlc::NONE;
use super::super::work::{Act, Medium, Number};
use super::{Leaves, Store};
use crate::event::Cause;
use crate::ftl::FtlError;
use crate::geometry::BlockId;

impl Store {
    /// Moves all the SLC flash has of MLC page `lpn` there.
    pub fn move_page(&mut self, lpn: u32) -> Result<(), FtlError> {
        let logical = self.mlc.logical(lpn);
        // To the MLC flash a write like any other (section 3.5).
        self.mlc.look_up(logical, Number::Scan, &mut self.work);
        // Finding room may fold the very chain.
        let Some(log) = self.log_with_room(logical, Some(lpn))? else { return Ok(()) };
        let tail = self.cache.as_ref().map(|cache| cache.log.tail);
        let written = self.gather(lpn, 0..0, tail, Leaves::Nothing, Cause::Gc);
        self.append(log, lpn, written, Cause::Gc)
    }

    /// Writes to the MLC flash.
    pub(super) fn write_mlc(
        &mut self,
        first: u32,
        sectors: u32,
        stamps: &[u64],
    ) -> Result<(), FtlError> {
        self.work.tell(Number::MlcWrite, u64::from(sectors));
        let (mut at, per_page) = (0, self.mlc.sectors);
        self.work.tell(Number::MlcChain, u64::from(self.logical_of(first)));
        while at < sectors {
            let lpn = (first + at) / per_page;
            let offset = (first + at) % per_page;
            let count = (per_page - offset).min(sectors - at);
            let logical = self.mlc.logical(lpn);
            // First of all, so that a fold of this very chain finds it scanned by the write.
            self.mlc.look_up(logical, Number::Scan, &mut self.work);
            let Some(log) = self.log_with_room(logical, None)? else { return Ok(()) };
            let own = offset..offset + count;
            self.gather(lpn, own.clone(), None, Leaves::Nothing, Cause::Partial);
            if self.verifying() {
                let range = at as usize..(at + count) as usize;
                self.page[own.start as usize..own.end as usize].copy_from_slice(&stamps[range]);
            }
            self.writes += 1;
            self.append(log, lpn, self.writes, Cause::Host)?;
            at += count;
        }
        Ok(())
    }

    /// Gets together the newest of page `lpn`, but for the sectors `own` that are being written:
    /// reads what has to be read, fills `page` with stamps in verified runs, and forgets what the
    /// SLC flash has. SLC pages in block `at_hand` were read already. Answers how new the data is.
    pub(super) fn gather(
        &mut self,
        lpn: u32,
        own: std::ops::Range<u32>,
        at_hand: Option<u32>,
        leaves: Leaves,
        cause: Cause,
    ) -> u64 {
        let per_page = self.mlc.sectors;
        let page = self.mlc.map[lpn as usize];
        let mut newest = if page == NONE { 0 } else { self.mlc.written[page as usize] };
        let logical = self.mlc.logical(lpn) as usize;
        let on_slc = self.is_on_slc(logical as u32);
        let whole = own.len() as u32 == per_page;
        let mut wanted = !whole && page != NONE && !on_slc;
        if on_slc || (self.verifying() && !whole) {
            for offset in 0..per_page {
                let (sector, is_own) = (lpn * per_page + offset, own.contains(&offset));
                let place = self.cache.as_ref().and_then(|cache| cache.log.hash.place(sector));
                if self.verifying() && !is_own {
                    self.page[offset as usize] = self.stamp_of(sector, place);
                }
                let Some((cache, place)) = self.cache.as_mut().zip(place) else {
                    wanted |= !is_own && page != NONE;
                    continue;
                };
                newest = newest.max(cache.log.written[place as usize]);
                if !is_own && at_hand != Some(cache.log.block_of(place)) {
                    self.pages.push(place / cache.log.sectors);
                }
                cache.log.forget(sector);
                cache.sectors_of[logical] -= 1;
                if leaves == Leaves::Mark {
                    cache.log.mark(sector);
                }
            }
        }
        if wanted {
            self.read_page(lpn, cause);
        }
        if !self.pages.is_empty() {
            self.read_places(Cause::Gc);
        }
        newest
    }

    /// Appends page `lpn`, gathered in `page`, to `log`.
    pub(super) fn append(
        &mut self,
        log: u32,
        lpn: u32,
        written: u64,
        cause: Cause,
    ) -> Result<(), FtlError> {
        let logical = self.mlc.logical(lpn);
        let offset = self.mlc.array.next_page(BlockId(log));
        let page = self.mlc.program(log, offset, lpn, written);
        if self.verifying() {
            let at = self.mlc.cell(page);
            self.mlc.cells.write(at, &self.page);
        }
        let dense = self.mlc.dense[logical as usize];
        self.work.pages(Medium::Mlc, Act::Program, cause, dense, 1);
        let host = cause == Cause::Host;
        self.work.tell(if host { Number::MlcPrograms } else { Number::MlcGcPrograms }, 1);
        self.mlc.chains.touch(logical);
        if offset + 1 == self.mlc.per_block {
            self.mlc.switch_if_in_order(logical, &mut self.work);
        }
        Ok(())
    }

    /// A log of `logical` with a free page; none when that is wanted for what the SLC flash has of
    /// page `moved`, and it has nothing of it any more.
    pub(super) fn log_with_room(
        &mut self,
        logical: u32,
        moved: Option<u32>,
    ) -> Result<Option<u32>, FtlError> {
        loop {
            if moved.is_some_and(|lpn| !self.holds_any(lpn)) {
                return Ok(None);
            }
            let log = self.mlc.last[logical as usize];
            if log != NONE && self.mlc.array.next_page(BlockId(log)) < self.mlc.per_block {
                return Ok(Some(log));
            }
            if log != NONE && self.mlc.logs(logical).count() as u32 >= self.mlc.logs_max {
                self.fold(logical)?;
                continue;
            }
            if self.mlc.spare_logs() > 0 {
                return self.mlc.add_log(logical).map(Some).ok_or_else(|| self.mlc.worn_out());
            }
            let victim = self.mlc.victim().ok_or_else(|| self.mlc.worn_out())?;
            // Every fold needs one spare block and frees two or more, or else ends here.
            let spares = self.mlc.spares.len();
            self.fold(victim)?;
            if self.mlc.spares.len() <= spares && self.mlc.array.retired_blocks() > 0 {
                return Err(self.mlc.worn_out());
            }
        }
    }

    /// Folds the chain of `logical`: its newest data, those on the SLC flash included, go to a
    /// spare block, in order; the old blocks are erased.
    pub fn fold(&mut self, logical: u32) -> Result<(), FtlError> {
        self.mlc.look_up(logical, Number::GcScan, &mut self.work);
        let target = self.mlc.open(true).ok_or_else(|| self.mlc.worn_out())?;
        let pull = self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.pull && cache.sectors_of[logical as usize] > 0);
        let dense = self.mlc.dense[logical as usize];
        let (mut read, mut programmed) = (0, 0);
        for offset in 0..self.mlc.per_block {
            let lpn = logical * self.mlc.per_block + offset;
            let old = self.mlc.map[lpn as usize];
            let mut written = if old == NONE { 0 } else { self.mlc.written[old as usize] };
            if pull && self.holds_any(lpn) {
                written = self.gather(lpn, 0..0, None, Leaves::Mark, Cause::Gc);
                let page = self.mlc.program(target, offset, lpn, written);
                if self.verifying() {
                    let at = self.mlc.cell(page);
                    self.mlc.cells.write(at, &self.page);
                }
            } else if old == NONE {
                continue;
            } else {
                let page = self.mlc.program(target, offset, lpn, written);
                if self.verifying() {
                    self.mlc.move_stamps(old, page);
                }
                read += 1;
            }
            programmed += 1;
        }
        self.work.pages(Medium::Mlc, Act::Read, Cause::Gc, dense, read);
        self.work.pages(Medium::Mlc, Act::Program, Cause::Gc, dense, programmed);
        self.work.tell(Number::MlcGcReads, u64::from(read));
        self.work.tell(Number::MlcGcPrograms, u64::from(programmed));
        let erased = match programmed {
            0 => self.mlc.drop_chain(logical, target, &mut self.work),
            _ => self.mlc.replace_chain(logical, target, &mut self.work),
        };
        self.work.tell(Number::FoldErases, u64::from(erased));
        Ok(())
    }
}
