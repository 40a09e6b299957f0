//! Writes to the MLC flash: pages assembled from both media, logs, folds.

use super::HybridFtl;
use crate::slc_mlc::NONE;
use crate::slc_mlc::operations::{Command, Statistic};
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::geometry::BlockId;

use std::ops::Range;

/// Sources of an MLC page that is assembled.
struct Assembly {
    lpn: u32,
    /// Sectors of the page that the host is writing.
    host: Range<u32>,
    /// An SLC block whose pages have been read already.
    read_block: Option<u32>,
    /// Leave virtual entries for SLC sectors: they move before they are cold (section 3.6).
    leave_virtual: bool,
    cause: Cause,
}

impl HybridFtl {
    /// Moves all data of MLC page `lpn` on the SLC flash to the MLC flash.
    pub(super) fn move_page(&mut self, lpn: u32) -> Result<(), FtlError> {
        let logical = self.mlc.logical_block(lpn);
        // For the MLC flash this is a write like any other (section 3.5).
        self.mlc.look_up(logical, Statistic::Scan, &mut self.operations);
        // Freeing a block may fold this very chain.
        let Some(log) = self.writable_log(logical, Some(lpn))? else { return Ok(()) };
        let read_block = self.slc.as_ref().map(|slc| slc.log.ring.tail);
        let cause = Cause::Gc;
        let written =
            self.assemble(Assembly { lpn, host: 0..0, read_block, leave_virtual: false, cause });
        self.append(log, lpn, written, cause);
        Ok(())
    }

    pub(super) fn write_mlc(
        &mut self,
        first: u32,
        sectors: u32,
        versions: &[u64],
    ) -> Result<(), FtlError> {
        self.operations.record(Statistic::MlcWrite, u64::from(sectors));
        let (mut at, per_page) = (0, self.mlc.sectors_per_page);
        self.operations.record(Statistic::MlcChain, u64::from(self.logical_block_of(first)));
        while at < sectors {
            let lpn = (first + at) / per_page;
            let offset = (first + at) % per_page;
            let count = (per_page - offset).min(sectors - at);
            let logical = self.mlc.logical_block(lpn);
            // Looked up first, so that a fold of this very chain finds it cached.
            self.mlc.look_up(logical, Statistic::Scan, &mut self.operations);
            let Some(log) = self.writable_log(logical, None)? else { return Ok(()) };
            let (host, cause) = (offset..offset + count, Cause::Partial);
            let (read_block, leave_virtual) = (None, false);
            self.assemble(Assembly { lpn, host: host.clone(), read_block, leave_virtual, cause });
            if self.verifying() {
                let range = at as usize..(at + count) as usize;
                let page = &mut self.page[host.start as usize..host.end as usize];
                page.copy_from_slice(&versions[range]);
            }
            self.writes += 1;
            self.append(log, lpn, self.writes, Cause::Host);
            at += count;
        }
        Ok(())
    }

    /// Assembles the newest data of a page, except for the sectors that the host is writing: reads
    /// pages of both media, removes the entries for SLC sectors, and fills `page` with versions in
    /// verified runs. Returns when the data were written.
    fn assemble(&mut self, assembly: Assembly) -> u64 {
        let Assembly { lpn, host, read_block, leave_virtual, cause } = assembly;
        let per_page = self.mlc.sectors_per_page;
        let on_mlc = self.mlc.page_map[lpn as usize] != NONE;
        let mut newest = self.mlc.written_at(lpn);
        let logical = self.mlc.logical_block(lpn);
        let on_slc = self.is_on_slc(logical);
        let whole = host.len() as u32 == per_page;
        let mut reads_mlc = !whole && on_mlc && !on_slc;
        if on_slc || (self.verifying() && !whole) {
            for offset in 0..per_page {
                let (sector, is_host) = (lpn * per_page + offset, host.contains(&offset));
                let slot = self.slc_slot(sector);
                if self.verifying() && !is_host {
                    self.page[offset as usize] = self.version_of(sector, slot);
                }
                let Some((slc, slot)) = self.slc.as_mut().zip(slot) else {
                    reads_mlc |= !is_host && on_mlc;
                    continue;
                };
                newest = newest.max(slc.log.written[slot as usize]);
                if !is_host && read_block != Some(slc.log.block_of(slot)) {
                    self.slc_pages.push(slot / slc.log.sectors_per_page);
                }
                slc.log.discard(sector);
                slc.sectors_of[logical as usize] -= 1;
                if leave_virtual {
                    slc.log.insert_virtual(sector);
                }
            }
        }
        if reads_mlc {
            self.read_mlc_page(lpn, cause);
        }
        if !self.slc_pages.is_empty() {
            self.read_slc_pages(Cause::Gc);
        }
        newest
    }

    /// Programs the assembled page to page `offset` of `block`.
    fn program_assembled(&mut self, block: u32, offset: u32, lpn: u32, written: u64) {
        let page = self.mlc.program(block, offset, lpn, written);
        if self.verifying() {
            let at = self.mlc.first_sector(page);
            self.mlc.versions.write(at, &self.page);
        }
    }

    /// Appends the assembled page to `log`.
    fn append(&mut self, log: u32, lpn: u32, written: u64, cause: Cause) {
        let logical = self.mlc.logical_block(lpn);
        let offset = self.mlc.array.next_page(BlockId(log));
        self.program_assembled(log, offset, lpn, written);
        self.operations.pages(self.mlc.medium(logical), Command::Program, cause, 1);
        let host = cause == Cause::Host;
        let programs = if host { Statistic::MlcPrograms } else { Statistic::MlcGcPrograms };
        self.operations.record(programs, 1);
        self.mlc.logged.touch(logical);
        if offset + 1 == self.mlc.pages_per_block {
            self.mlc.switch_if_in_order(logical, &mut self.operations);
        }
    }

    /// A log of `logical` with a free page; none if it is needed for SLC data of page `moved` and a
    /// fold has moved these already.
    fn writable_log(&mut self, logical: u32, moved: Option<u32>) -> Result<Option<u32>, FtlError> {
        loop {
            if moved.is_some_and(|lpn| !self.page_is_on_slc(lpn)) {
                return Ok(None);
            }
            let log = self.mlc.last_log[logical as usize];
            if log != NONE && self.mlc.array.next_page(BlockId(log)) < self.mlc.pages_per_block {
                return Ok(Some(log));
            }
            if log != NONE && self.mlc.logs(logical).count() as u32 >= self.mlc.config.logs_max {
                self.fold(logical)?;
                continue;
            }
            if self.mlc.free_for_logs() > 0 {
                return self.mlc.add_log(logical).map(Some).ok_or_else(|| self.mlc.worn_out());
            }
            let victim = self.mlc.victim().ok_or_else(|| self.mlc.worn_out())?;
            // A fold uses one free block and frees two or more, unless blocks are worn out.
            let free = self.mlc.free.len();
            self.fold(victim)?;
            if self.mlc.free.len() <= free && self.mlc.array.retired_blocks() > 0 {
                return Err(self.mlc.worn_out());
            }
        }
    }

    /// Folds the chain of `logical`: copies its newest data, including those on the SLC flash, to a
    /// free block in order, and erases the old blocks.
    pub fn fold(&mut self, logical: u32) -> Result<(), FtlError> {
        self.mlc.look_up(logical, Statistic::GcScan, &mut self.operations);
        let target = self.mlc.open(true).ok_or_else(|| self.mlc.worn_out())?;
        let pull = self.slc.as_ref().is_some_and(|slc| slc.pull) && self.is_on_slc(logical);
        let (mut read, mut programmed) = (0, 0);
        for offset in 0..self.mlc.pages_per_block {
            let lpn = logical * self.mlc.pages_per_block + offset;
            let old = self.mlc.page_map[lpn as usize];
            if pull && self.page_is_on_slc(lpn) {
                let (host, read_block, cause) = (0..0, None, Cause::Gc);
                let assembly = Assembly { lpn, host, read_block, leave_virtual: true, cause };
                let written = self.assemble(assembly);
                self.program_assembled(target, offset, lpn, written);
            } else if old == NONE {
                continue;
            } else {
                let page = self.mlc.program(target, offset, lpn, self.mlc.written_at(lpn));
                if self.verifying() {
                    self.mlc.move_versions(old, page);
                }
                read += 1;
            }
            programmed += 1;
        }
        let medium = self.mlc.medium(logical);
        let ops = &mut self.operations;
        ops.pages(medium, Command::Read, Cause::Gc, read);
        ops.pages(medium, Command::Program, Cause::Gc, programmed);
        ops.record(Statistic::MlcGcReads, u64::from(read));
        ops.record(Statistic::MlcGcPrograms, u64::from(programmed));
        let erased = match programmed {
            0 => self.mlc.drop_chain(logical, target, ops),
            _ => self.mlc.replace_chain(logical, target, ops),
        };
        ops.record(Statistic::FoldErases, u64::from(erased));
        Ok(())
    }
}
