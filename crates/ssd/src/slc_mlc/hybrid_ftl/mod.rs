//! The translation layer over both media: where writes go, and what moves to the MLC flash.
//!
//! Invariant: the newest data of a sector are where the hash table says, if it has a regular entry,
//! or else where the MLC tables say. A page programmed to the MLC flash has the newest data of each
//! of its sectors, and their entries for the SLC flash are removed.

mod mlc;
mod recovery;
mod slc;

use super::NONE;
use super::block_chains::BlockChains;
use super::density::{Conversion, DensityControl};
use super::hash_table::Bucket;
use super::hot_data_filter::HotDataFilter;
use super::operations::{Command, Medium, Operations, Statistic};
use super::slc_log::{SectorWrite, SlcLog};
use super::throttle::{UtilisationThrottle, WriteBackPolicy};
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::geometry::Ppn;
use hybridsim_flash::restore;

use hybridsim_engine::state::{Loader, Saver, StateError};

/// Sectors written to the SLC flash at a time.
const CHUNK: u32 = 256;

/// The SLC flash and its policies.
pub struct SlcCache {
    pub log: SlcLog,
    pub filter: HotDataFilter,
    pub throttle: UtilisationThrottle,
    pub write_back: WriteBackPolicy,
    /// Sectors on the SLC flash by logical block.
    pub sectors_of: Vec<u32>,
    /// Folds include the data of the chain on the SLC flash.
    pub pull: bool,
    /// Background work cleans the log to this many blocks.
    pub idle_blocks: u32,
    /// The length of the log is limited by the free fraction of the device (dynamic cache).
    pub dynamic: bool,
}

impl SlcCache {
    /// Whether the SLC flash wears faster than `mlc`, relative to endurance.
    fn throttles(&self, mlc: &BlockChains) -> bool {
        let slc = self.log.erases as f64 / f64::from(self.log.blocks());
        self.throttle.is_active(slc, mlc.erases as f64 / mlc.next.len() as f64)
    }

    /// Whether the log is longer than background work leaves it.
    fn exceeds_idle_length(&self) -> bool {
        self.log.ring.used > self.idle_blocks
    }

    fn save(&self, to: &mut Saver) {
        self.log.save(to);
        self.filter.save(to);
        to.put(&(self.throttle, self.write_back, &self.sectors_of));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.log.restore(from)?;
        self.filter.restore(from)?;
        (self.throttle, self.write_back) = from.take()?;
        restore::table(from, "the count by logical block", &mut self.sectors_of)
    }
}

/// Both media, without simulated time.
pub struct HybridFtl {
    pub mlc: BlockChains,
    pub slc: Option<Box<SlcCache>>,
    pub density: Option<DensityControl>,
    pub operations: Operations,
    /// Pages written by the host, and trims: the age of data.
    writes: u64,
    /// Versions of the MLC page being assembled, in verified runs.
    page: Vec<u64>,
    // Scratch space, to avoid allocations.
    buckets: Vec<Bucket>,
    sector_writes: Vec<SectorWrite>,
    tail_sectors: Vec<u32>,
    kept_sectors: Vec<u32>,
    slc_pages: Vec<u32>,
}

/// Destination of a write, by filter and throttle.
enum WriteTarget {
    Mlc,
    Slc,
    /// To the MLC flash, although the data are hot.
    Throttled,
}

impl HybridFtl {
    pub fn new(mlc: BlockChains, slc: Option<SlcCache>, density: Option<DensityControl>) -> Self {
        Self {
            page: vec![0; mlc.sectors_per_page as usize],
            mlc,
            slc: slc.map(Box::new),
            density,
            operations: Operations::default(),
            writes: 0,
            buckets: Vec::with_capacity(CHUNK as usize),
            sector_writes: Vec::with_capacity(CHUNK as usize),
            tail_sectors: Vec::new(),
            kept_sectors: Vec::new(),
            slc_pages: Vec::with_capacity(64),
        }
    }

    /// Enables data versions.
    pub fn verify(&mut self) {
        self.mlc.verifying = true;
        if let Some(slc) = &mut self.slc {
            slc.log.verifying = true;
        }
    }

    const fn verifying(&self) -> bool {
        self.mlc.verifying
    }

    fn logical_block_of(&self, sector: u32) -> u32 {
        self.mlc.logical_block(sector / self.mlc.sectors_per_page)
    }

    /// The slot of `sector` if its newest data are on the SLC flash.
    fn slc_slot(&self, sector: u32) -> Option<u32> {
        self.slc.as_ref().and_then(|slc| slc.log.hash.slot(sector))
    }

    /// Reads a range; in verified runs `into` receives the versions.
    pub fn read(&mut self, first: u32, sectors: u32, into: &mut [u64]) -> Result<(), FtlError> {
        self.count_access(first, sectors)?;
        self.slc_pages.clear();
        let (mut sector, end) = (first, first + sectors);
        while sector < end {
            let lpn = sector / self.mlc.sectors_per_page;
            let next = ((lpn + 1) * self.mlc.sectors_per_page).min(end);
            let mut reads_mlc = false;
            let on_slc = self.is_on_slc(self.mlc.logical_block(lpn));
            if !on_slc && into.is_empty() {
                (reads_mlc, sector) = (true, next);
            }
            for sector in sector..next {
                let cache = self.slc.as_ref().filter(|_| on_slc);
                let slot = cache.and_then(|slc| slc.log.hash.slot(sector));
                reads_mlc |= slot.is_none();
                if let Some((slc, slot)) = self.slc.as_ref().zip(slot) {
                    self.slc_pages.push(slot / slc.log.sectors_per_page);
                }
                if let Some(version) = into.get_mut((sector - first) as usize) {
                    *version = self.version_of(sector, slot);
                }
            }
            let written = self.mlc.page_map[lpn as usize] != NONE;
            match reads_mlc {
                true if written => self.read_mlc_page(lpn, Cause::Host),
                true => self.operations.unwritten += 1,
                false => {}
            }
            sector = next;
        }
        self.read_slc_pages(Cause::Host);
        Ok(())
    }

    fn read_mlc_page(&mut self, lpn: u32, cause: Cause) {
        let logical = self.mlc.logical_block(lpn);
        let (scan, reads) = match cause {
            Cause::Host => (Statistic::ReadScan, Statistic::MlcReads),
            Cause::Partial => (Statistic::Scan, Statistic::MlcReads),
            _ => (Statistic::GcScan, Statistic::MlcGcReads),
        };
        self.mlc.look_up(logical, scan, &mut self.operations);
        self.operations.pages(self.mlc.medium(logical), Command::Read, cause, 1);
        self.operations.record(reads, 1);
    }

    /// Reads the SLC pages collected in `slc_pages`, each once.
    fn read_slc_pages(&mut self, cause: Cause) {
        self.slc_pages.sort_unstable();
        self.slc_pages.dedup();
        let count = self.slc_pages.len() as u32;
        self.operations.pages(Medium::Slc, Command::Read, cause, count);
        if count > 0 {
            let host = cause == Cause::Host;
            let statistic = if host { Statistic::SlcReads } else { Statistic::SlcGcReads };
            self.operations.record(statistic, u64::from(count));
        }
        self.slc_pages.clear();
    }

    /// The physical sector of `sector` on the MLC flash.
    fn mlc_sector(&self, sector: u32) -> Option<u64> {
        let page = self.mlc.page_map[(sector / self.mlc.sectors_per_page) as usize];
        let within = u64::from(sector % self.mlc.sectors_per_page);
        (page != NONE).then(|| self.mlc.first_sector(page) + within)
    }

    /// The version of `sector`, which is in `slot` of the SLC flash or else on the MLC flash.
    fn version_of(&self, sector: u32, slot: Option<u32>) -> u64 {
        match (slot, &self.slc) {
            (Some(slot), Some(slc)) => slc.log.versions.get(u64::from(slot)),
            _ => self.mlc_sector(sector).map_or(0, |at| self.mlc.versions.get(at)),
        }
    }

    /// Overwrites the version of `sector`, after a power failure.
    pub fn restore_version(&mut self, sector: u32, version: u64) {
        match (self.slc_slot(sector), self.mlc_sector(sector), &mut self.slc) {
            (Some(slot), _, Some(slc)) => slc.log.versions.write(u64::from(slot), &[version]),
            (_, Some(at), _) => self.mlc.versions.write(at, &[version]),
            _ => {}
        }
    }

    /// Writes a range; `versions` is empty unless the run is verified.
    ///
    /// # Errors
    /// When the flash is worn out.
    pub fn write(&mut self, first: u32, sectors: u32, versions: &[u64]) -> Result<(), FtlError> {
        self.count_access(first, sectors)?;
        if self.slc.is_none() {
            return self.write_mlc(first, sectors, versions);
        }
        if self.slc.as_ref().is_some_and(|slc| !slc.log.is_usable()) {
            // The SLC flash is worn out: move its remaining data.
            self.clean(true)?;
        }
        match self.write_target(first, sectors) {
            WriteTarget::Mlc => self.write_mlc(first, sectors, versions),
            WriteTarget::Slc => self.write_hot(first, sectors, versions),
            WriteTarget::Throttled => {
                self.operations.record(Statistic::ThrottleReject, u64::from(sectors));
                self.write_mlc(first, sectors, versions)?;
                if let Some(slc) = &mut self.slc {
                    (first..first + sectors).for_each(|sector| slc.log.insert_virtual(sector));
                }
                self.clean(false)
            }
        }
    }

    /// Filter and throttle (figure 2).
    fn write_target(&mut self, first: u32, sectors: u32) -> WriteTarget {
        let Some(slc) = &mut self.slc else { return WriteTarget::Mlc };
        if let Some(threshold) = slc.filter.record(sectors) {
            self.operations.record(Statistic::Threshold, u64::from(threshold));
        }
        if !slc.log.is_usable() || !slc.filter.is_hot(sectors) {
            return WriteTarget::Mlc;
        }
        let throttles = slc.throttles(&self.mlc);
        let SlcCache { log, throttle, .. } = &mut **slc;
        let before = log.ring.k;
        let target = if !throttles {
            log.ring.k = throttle.relax(before, log.k_max());
            WriteTarget::Slc
        } else {
            throttle.count();
            if (first..first + sectors).all(|sector| log.hash.get(sector).is_some()) {
                return WriteTarget::Slc;
            }
            log.ring.k = throttle.rejected(before);
            WriteTarget::Throttled
        };
        if log.ring.k != before {
            self.operations.record(Statistic::LogBlocks, u64::from(log.ring.k));
        }
        target
    }

    /// Whether the SLC flash has any data of a logical block.
    #[inline]
    fn is_on_slc(&self, logical: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.sectors_of[logical as usize] > 0)
    }

    /// Whether the SLC flash has any data of a logical page.
    fn page_is_on_slc(&self, lpn: u32) -> bool {
        let first = lpn * self.mlc.sectors_per_page;
        self.is_on_slc(self.mlc.logical_block(lpn))
            && (first..first + self.mlc.sectors_per_page).any(|one| self.slc_slot(one).is_some())
    }

    /// Discards the whole MLC pages of a range; the rest keeps its data.
    pub fn trim(&mut self, first: u32, sectors: u32) {
        let per_page = self.mlc.sectors_per_page;
        self.writes += 1;
        let pages = first.div_ceil(per_page)..(first + sectors) / per_page;
        if pages.is_empty() {
            return;
        }
        if let Some(slc) = &mut self.slc {
            let SlcCache { log, sectors_of, .. } = &mut **slc;
            let block = per_page * self.mlc.pages_per_block;
            log.discard_range(pages.start * per_page..pages.end * per_page, |sector| {
                sectors_of[(sector / block) as usize] -= 1;
            });
        }
        for lpn in pages.clone() {
            let page = std::mem::replace(&mut self.mlc.page_map[lpn as usize], NONE);
            if page != NONE {
                self.mlc.array.invalidate(Ppn(page));
            }
        }
        self.mlc.trims.record(pages, self.writes);
    }

    /// Cleans one tail block in the background. Returns whether there is more to do.
    pub fn idle(&mut self) -> Result<bool, FtlError> {
        if !self.slc.as_deref().is_some_and(SlcCache::exceeds_idle_length) {
            return Ok(false);
        }
        self.clean_tail(true)?;
        Ok(self.slc.as_deref().is_some_and(SlcCache::exceeds_idle_length))
    }

    /// Density control counts an access to a range, and converts logical blocks.
    fn count_access(&mut self, first: u32, sectors: u32) -> Result<(), FtlError> {
        let blocks = self.logical_block_of(first)..=self.logical_block_of(first + sectors - 1);
        for logical in blocks {
            let Some(density) = &mut self.density else { return Ok(()) };
            let Conversion { to_mlc, to_dense } = density.access(logical);
            if let Some(logical) = to_mlc {
                self.convert(logical, false)?;
            }
            if let Some(logical) = to_dense {
                self.convert(logical, true)?;
            }
        }
        Ok(())
    }

    /// Copies the data of `logical` to blocks of the other density.
    fn convert(&mut self, logical: u32, dense: bool) -> Result<(), FtlError> {
        self.mlc.dense[logical as usize] = dense;
        let folded = self.fold(logical);
        self.mlc.dense_count = self.mlc.dense_count + u32::from(dense) - u32::from(!dense);
        self.operations.record(Statistic::Dense, u64::from(self.mlc.dense_count));
        folded
    }

    pub fn save(&self, to: &mut Saver) {
        self.mlc.save(to);
        to.put(&self.writes);
        if let Some(slc) = &self.slc {
            slc.save(to);
        }
        if let Some(density) = &self.density {
            density.save(to);
        }
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.mlc.restore(from)?;
        self.writes = from.take()?;
        if let Some(slc) = &mut self.slc {
            slc.restore(from)?;
            let sectors = self.mlc.page_map.len() as u64 * u64::from(self.mlc.sectors_per_page);
            let last = slc.log.hash.entries().last().map_or(0, |last| u64::from(last.0));
            restore::check(last < sectors, "the hash table has a sector beyond the capacity")?;
        }
        if let Some(density) = &mut self.density {
            density.restore(from)?;
        }
        self.audit().map_err(StateError)
    }

    pub fn audit(&self) -> Result<(), String> {
        self.mlc.audit()?;
        let Some(slc) = &self.slc else { return Ok(()) };
        slc.log.audit()?;
        let mut sectors_of = vec![0; slc.sectors_of.len()];
        for (sector, _) in slc.log.hash.entries() {
            sectors_of[self.logical_block_of(sector) as usize] += 1;
        }
        match sectors_of == slc.sectors_of {
            true => Ok(()),
            false => Err("the counts of SLC sectors by logical block are wrong".to_owned()),
        }
    }
}
