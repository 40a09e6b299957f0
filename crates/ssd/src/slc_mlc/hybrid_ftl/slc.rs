//! Writes to the SLC flash, and cleaning of its log.

use super::{CHUNK, HybridFtl, SlcCache};
use crate::slc_mlc::operations::{Command, Medium, Operations, Statistic};
use crate::slc_mlc::slc_log::{SectorWrite, SlcLog};
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::geometry::BlockId;

impl HybridFtl {
    /// Writes sectors that have a bucket to the SLC flash, the others to the MLC flash.
    pub(super) fn write_hot(
        &mut self,
        first: u32,
        sectors: u32,
        versions: &[u64],
    ) -> Result<(), FtlError> {
        let mut at = 0;
        while at < sectors {
            let count = CHUNK.min(sectors - at);
            let range = versions.get(at as usize..(at + count) as usize).unwrap_or(&[]);
            if !self.write_slc(first + at, count, range)? {
                self.operations.record(Statistic::HashReject, u64::from(count));
                self.write_mlc(first + at, count, range)?;
            }
            at += count;
        }
        Ok(())
    }

    /// Returns false, with nothing written, if a sector has no bucket.
    fn write_slc(&mut self, first: u32, sectors: u32, versions: &[u64]) -> Result<bool, FtlError> {
        let Some(slc) = &mut self.slc else { return Ok(false) };
        if !slc.log.hash.reserve(first, sectors, &mut self.buckets) {
            return Ok(false);
        }
        let mut at = 0;
        while at < sectors {
            self.make_head_writable()?;
            let Some(slc) = &mut self.slc else { return Ok(false) };
            let count = slc.log.sectors_per_page.min(sectors - at);
            let mut updates = 0;
            // Cleaning may have moved earlier sectors of this request.
            self.writes += 1;
            self.sector_writes.clear();
            for one in at..at + count {
                let sector = first + one;
                let version = versions.get(one as usize).copied().unwrap_or(0);
                self.sector_writes.push(SectorWrite { sector, written: self.writes, version });
                let is_new = slc.log.hash.slot(sector).is_none();
                updates += u32::from(!is_new);
                let logical = self.mlc.logical_block(sector / self.mlc.sectors_per_page);
                slc.sectors_of[logical as usize] += u32::from(is_new);
            }
            program(&mut slc.log, &self.sector_writes, Cause::Host, &mut self.operations)?;
            self.operations.record(Statistic::SlcPrograms, 1);
            if slc.write_back.record(count, updates) {
                let active = u64::from(slc.write_back.is_active());
                self.operations.record(Statistic::WriteBack, active);
            }
            at += count;
        }
        if let Some(slc) = &mut self.slc {
            slc.log.hash.release();
        }
        self.operations.record(Statistic::SlcWrite, u64::from(sectors));
        Ok(true)
    }

    /// Ensures that the head of the log has a free page.
    fn make_head_writable(&mut self) -> Result<(), FtlError> {
        // If data copied from the tail fill the new head, the next tail block is emptied entirely.
        for attempt in 0..3 {
            let Some(slc) = &mut self.slc else { return Ok(()) };
            if !slc.log.head_is_full() {
                return Ok(());
            }
            if !slc.log.advance_head() {
                break;
            }
            self.clean(attempt > 0)?;
        }
        match &self.slc {
            Some(slc) if slc.log.head_is_full() => {
                Err(FtlError::Broken("the SLC log has no free block at its head".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// The maximum length of the log in blocks.
    fn log_limit(&self, slc: &SlcCache) -> u32 {
        let k = slc.log.ring.k;
        if !slc.log.is_usable() {
            return 0;
        }
        if !slc.dynamic {
            return k;
        }
        let free = 1.0 - self.mlc.array.valid_pages() as f64 / self.mlc.page_map.len() as f64;
        let limit = (f64::from(slc.log.k_max()) * free.max(0.0)) as u32;
        limit.clamp(2.min(k), k)
    }

    /// Cleans tail blocks while the log is longer than its limit. With `empty` all their data move
    /// to the MLC flash.
    pub(super) fn clean(&mut self, empty: bool) -> Result<(), FtlError> {
        let mut cleaned = 0;
        loop {
            let Some(slc) = &self.slc else { return Ok(()) };
            let limit = self.log_limit(slc);
            let (used, blocks) = (slc.log.ring.used, slc.log.blocks());
            if used <= limit || used == 0 {
                return Ok(());
            }
            // After a whole round that freed nothing, all valid data were copied to the head.
            self.clean_tail(empty || cleaned >= blocks)?;
            cleaned += 1;
        }
    }

    /// Moves the valid sectors of the tail block and erases it: to the head if their chain has no
    /// log, to the MLC flash otherwise, or always if `empty` (section 3.6).
    pub fn clean_tail(&mut self, empty: bool) -> Result<(), FtlError> {
        let Some(slc) = &mut self.slc else { return Ok(()) };
        let mut sectors = std::mem::take(&mut self.tail_sectors);
        slc.log.tail_sectors(&mut sectors);
        let valid = slc.log.array.valid(BlockId(slc.log.ring.tail));
        self.operations.record(Statistic::TailValid, u64::from(valid));
        self.operations.pages(Medium::Slc, Command::Read, Cause::Gc, valid);
        if valid > 0 {
            self.operations.record(Statistic::SlcGcReads, u64::from(valid));
        }
        // While writes are rejected, collection phases out data that are not written often (section
        // 3.4): none are copied to the head.
        let active = slc.write_back.is_active() && !slc.throttles(&self.mlc);
        let writes_back = active && slc.log.is_usable() && !empty;
        let mut kept = std::mem::take(&mut self.kept_sectors);
        kept.clear();
        for sector in &sectors {
            // A fold, or the previous page, may have moved it already.
            if self.slc.as_ref().is_none_or(|slc| slc.log.slot_in_tail(*sector).is_none()) {
                continue;
            }
            if writes_back && !self.mlc.has_log(self.logical_block_of(*sector)) {
                kept.push(*sector);
            } else {
                self.move_page(sector / self.mlc.sectors_per_page)?;
            }
        }
        self.tail_sectors = sectors;
        let copied = self.copy_to_head(&kept);
        self.kept_sectors = kept;
        copied?;
        if let Some(slc) = &mut self.slc {
            slc.log.erase_tail(&mut self.operations);
        }
        Ok(())
    }

    /// Copies those of `sectors` that are still in the tail block to the head.
    fn copy_to_head(&mut self, sectors: &[u32]) -> Result<(), FtlError> {
        let mut copied = 0;
        let Some(slc) = &mut self.slc else { return Ok(()) };
        let log = &mut slc.log;
        let mut rest = sectors.iter().copied().peekable();
        while rest.peek().is_some() {
            self.sector_writes.clear();
            while self.sector_writes.len() < log.sectors_per_page as usize
                && let Some(sector) = rest.next()
            {
                if let Some(slot) = log.slot_in_tail(sector) {
                    let written = log.written[slot as usize];
                    let version = if log.verifying { log.versions.get(u64::from(slot)) } else { 0 };
                    self.sector_writes.push(SectorWrite { sector, written, version });
                }
            }
            if self.sector_writes.is_empty() {
                break;
            }
            if log.head_is_full() && !log.advance_head() {
                return Err(FtlError::Broken("the head of the SLC log met its tail".to_owned()));
            }
            program(log, &self.sector_writes, Cause::Gc, &mut self.operations)?;
            copied += 1;
        }
        self.operations.record(Statistic::TailKept, copied);
        if copied > 0 {
            self.operations.record(Statistic::SlcGcPrograms, copied);
        }
        Ok(())
    }
}

fn program(
    log: &mut SlcLog,
    sectors: &[SectorWrite],
    cause: Cause,
    ops: &mut Operations,
) -> Result<(), FtlError> {
    match log.program(sectors, cause, ops) {
        true => Ok(()),
        false => Err(FtlError::Broken("a sector lost its reserved bucket".to_owned())),
    }
}
