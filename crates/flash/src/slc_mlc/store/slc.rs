//! What goes to the SLC flash, and how its log is cleaned.

use super::super::log::{Moving, SlcLog};
use super::super::work::{Act, Medium, Number, Work};
use super::{CHUNK, Cache, Store};
use crate::event::Cause;
use crate::ftl::FtlError;
use crate::geometry::BlockId;

impl Store {
    /// Writes to the SLC flash what finds room in the hash table, the rest to the MLC flash.
    pub(super) fn write_hot(
        &mut self,
        first: u32,
        sectors: u32,
        stamps: &[u64],
    ) -> Result<(), FtlError> {
        let mut at = 0;
        while at < sectors {
            let count = CHUNK.min(sectors - at);
            let range = stamps.get(at as usize..(at + count) as usize).unwrap_or(&[]);
            if !self.write_slc(first + at, count, range)? {
                self.work.tell(Number::HashReject, u64::from(count));
                self.write_mlc(first + at, count, range)?;
            }
            at += count;
        }
        Ok(())
    }

    pub(super) fn write_slc(
        &mut self,
        first: u32,
        sectors: u32,
        stamps: &[u64],
    ) -> Result<bool, FtlError> {
        let mut buckets = std::mem::take(&mut self.buckets);
        let claimed = match &mut self.cache {
            Some(cache) => cache.log.hash.claim(first, sectors, &mut buckets),
            None => false,
        };
        self.buckets = buckets;
        if !claimed {
            return Ok(false);
        }
        let mut at = 0;
        while at < sectors {
            self.make_room()?;
            let Some(cache) = &mut self.cache else { return Ok(false) };
            let count = cache.log.sectors.min(sectors - at);
            let mut updates = 0;
            // Cleaning may have moved what came before in this very request.
            self.writes += 1;
            self.moving.clear();
            for one in at..at + count {
                let sector = first + one;
                let stamp = stamps.get(one as usize).copied().unwrap_or(0);
                self.moving.push(Moving { sector, written: self.writes, stamp });
                let is_new = cache.log.hash.place(sector).is_none();
                updates += u32::from(!is_new);
                let logical = sector / self.mlc.sectors / self.mlc.per_block;
                cache.sectors_of[logical as usize] += u32::from(is_new);
            }
            program(&mut cache.log, &self.moving, Cause::Host, &mut self.work)?;
            self.work.tell(Number::SlcPrograms, 1);
            if cache.write_back.note(count, updates) {
                let active = u64::from(cache.write_back.is_active());
                self.work.tell(Number::WriteBack, active);
            }
            at += count;
        }
        if let Some(cache) = &mut self.cache {
            cache.log.hash.release();
        }
        self.work.tell(Number::SlcWrite, u64::from(sectors));
        Ok(true)
    }

    /// Sees to a free page at the head of the log.
    pub(super) fn make_room(&mut self) -> Result<(), FtlError> {
        // When what the tail held fills the new head, the next tail is emptied for good.
        for attempt in 0..3 {
            let Some(cache) = &mut self.cache else { return Ok(()) };
            if !cache.log.head_is_full() {
                return Ok(());
            }
            if !cache.log.advance() {
                break;
            }
            self.clean(attempt > 0)?;
        }
        match &self.cache {
            Some(cache) if cache.log.head_is_full() => {
                Err(FtlError::Broken("the SLC log found no room at its head".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Cleans the log down to k.
    pub(super) fn clean_to_k(&mut self) -> Result<(), FtlError> {
        self.clean(false)
    }

    /// How many blocks the log may have.
    pub(super) fn log_limit(&self, cache: &Cache) -> u32 {
        if !cache.log.works() {
            return 0;
        }
        if !cache.dynamic {
            return cache.log.k;
        }
        let free = 1.0 - self.mlc.array.valid_pages() as f64 / self.mlc.map.len() as f64;
        let limit = (f64::from(cache.log.k_max()) * free.max(0.0)) as u32;
        limit.clamp(2.min(cache.log.k), cache.log.k)
    }

    /// Cleans tail blocks while the log is longer than it may be; `empty` moves all they hold.
    pub(super) fn clean(&mut self, empty: bool) -> Result<(), FtlError> {
        let mut cleaned = 0;
        loop {
            let Some(cache) = &self.cache else { return Ok(()) };
            let limit = self.log_limit(cache);
            let (used, blocks) = (cache.log.used, cache.log.blocks());
            if used <= limit || used == 0 {
                return Ok(());
            }
            // A lap that freed nothing: everything valid was copied to the head.
            self.clean_tail(empty || cleaned >= blocks)?;
            cleaned += 1;
        }
    }

    /// Empties and erases the tail block: valid sectors go to the head while their chain has no
    /// log, to the MLC flash otherwise (section 3.6).
    pub fn clean_tail(&mut self, empty: bool) -> Result<(), FtlError> {
        let mut sectors = std::mem::take(&mut self.tail);
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let keep = match &mut self.cache {
            None => return Ok(()),
            Some(cache) => {
                cache.log.tail_sectors(&mut sectors);
                let valid = cache.log.array.valid(BlockId(cache.log.tail));
                self.work.tell(Number::TailValid, u64::from(valid));
                self.work.pages(Medium::Slc, Act::Read, Cause::Gc, false, valid);
                if valid > 0 {
                    self.work.tell(Number::SlcGcReads, u64::from(valid));
                }
                // While writes are refused, collection phases out whatever is not written often
                // (section 3.4): nothing goes back to the head.
                let keeps = cache.write_back.is_active() && !cache.throttles(&self.mlc);
                keeps && cache.log.works() && !empty
            }
        };
        for sector in &sectors {
            // A fold, or the page before, may have taken it along.
            if !self.is_in_tail(*sector) {
                continue;
            }
            if keep && !self.mlc.has_log(self.logical_of(*sector)) {
                kept.push(*sector);
            } else {
                self.move_page(sector / self.mlc.sectors)?;
            }
        }
        self.tail = sectors;
        let done = self.copy_to_head(&kept);
        self.kept = kept;
        done?;
        if let Some(cache) = &mut self.cache {
            cache.log.drop_tail(&mut self.work);
        }
        Ok(())
    }

    pub(super) fn is_in_tail(&self, sector: u32) -> bool {
        let Some(cache) = &self.cache else { return false };
        cache.log.hash.place(sector).is_some_and(|at| cache.log.block_of(at) == cache.log.tail)
    }

    /// Copies those of `kept` still in the tail block to the head.
    pub(super) fn copy_to_head(&mut self, kept: &[u32]) -> Result<(), FtlError> {
        let mut copied = 0;
        let Some(cache) = &mut self.cache else { return Ok(()) };
        let log = &mut cache.log;
        let mut rest = kept.iter().copied().peekable();
        while rest.peek().is_some() {
            self.moving.clear();
            while self.moving.len() < log.sectors as usize
                && let Some(sector) = rest.next()
            {
                let place = log.hash.place(sector).filter(|at| log.block_of(*at) == log.tail);
                if let Some(place) = place {
                    let written = log.written[place as usize];
                    let stamp = if log.verifying { log.cells.get(u64::from(place)) } else { 0 };
                    self.moving.push(Moving { sector, written, stamp });
                }
            }
            if self.moving.is_empty() {
                break;
            }
            if log.head_is_full() && !log.advance() {
                return Err(FtlError::Broken("the SLC log ran into its tail".to_owned()));
            }
            program(log, &self.moving, Cause::Gc, &mut self.work)?;
            copied += 1;
        }
        self.work.tell(Number::TailKept, copied);
        if copied > 0 {
            self.work.tell(Number::SlcGcPrograms, copied);
        }
        Ok(())
    }
}

fn program(
    log: &mut SlcLog,
    moving: &[Moving],
    cause: Cause,
    work: &mut Work,
) -> Result<(), FtlError> {
    match log.program(moving, cause, work) {
        true => Ok(()),
        false => Err(FtlError::Broken("a sector found no bucket that was its own".to_owned())),
    }
}
