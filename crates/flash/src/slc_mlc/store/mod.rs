//! Both media together: where writes go, and what moves from one to the other.
//!
//! Invariant: the newest data of a sector are where the hash table says, if it has a regular
//! entry, or else where the MLC tables say. A page programmed to the MLC flash holds the newest
//! of each of its sectors; whatever the SLC flash had of them is forgotten.

mod mlc;
mod slc;

use super::density::Density;
use super::filter::Filter;
use super::log::{Moving, SlcLog};
use super::mlc::{Mlc, NONE};
use super::throttle::{Throttle, WriteBack};
use super::work::{Act, Medium, Number, Work};
use crate::event::Cause;
use crate::ftl::FtlError;

/// Sectors taken to the SLC flash at a time.
const CHUNK: u32 = 256;

/// The SLC flash and what decides about it.
pub struct Cache {
    /// The log.
    pub log: SlcLog,
    /// What is hot.
    pub filter: Filter,
    /// Whether the SLC flash wears too fast.
    pub throttle: Throttle,
    /// Where cold data go.
    pub write_back: WriteBack,
    /// Sectors on the SLC flash by logical block.
    pub sectors_of: Vec<u32>,
    /// Folds take along what the SLC flash holds of a chain.
    pub pull: bool,
    /// Cleaned to this many blocks when the device is idle.
    pub idle_blocks: u32,
    /// The log may be no longer than the free share of the device (dynamic cache).
    pub dynamic: bool,
}

impl Cache {
    /// Whether the SLC flash wears faster than `mlc`, by endurance.
    fn throttles(&self, mlc: &Mlc) -> bool {
        let slc = self.log.erases as f64 / f64::from(self.log.blocks());
        self.throttle.is_active(slc, mlc.erases as f64 / mlc.next.len() as f64)
    }
}

/// The device without a clock.
pub struct Store {
    /// MLC flash.
    pub mlc: Mlc,
    /// SLC flash, unless there is none.
    pub cache: Option<Box<Cache>>,
    /// Density control, where that is simulated.
    pub density: Option<Density>,
    /// What happened.
    pub work: Work,
    /// Pages written by the host so far, and trims: how new data are.
    pub writes: u64,
    /// Stamps of the page at hand, in verified runs.
    page: Vec<u64>,
    buckets: Vec<super::hash::Bucket>,
    moving: Vec<Moving>,
    tail: Vec<u32>,
    kept: Vec<u32>,
    pages: Vec<u32>,
}

/// What is done with SLC sectors that an MLC page takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// Nothing of them.
    Nothing,
    /// A mark: they were moved against their will (section 3.6).
    Mark,
}

impl Store {
    /// A device of these parts.
    pub fn new(mlc: Mlc, cache: Option<Cache>, density: Option<Density>) -> Self {
        Self {
            page: vec![0; mlc.sectors as usize],
            mlc,
            cache: cache.map(Box::new),
            density,
            work: Work::default(),
            writes: 0,
            buckets: Vec::with_capacity(CHUNK as usize),
            moving: Vec::with_capacity(CHUNK as usize),
            tail: Vec::new(),
            kept: Vec::new(),
            pages: Vec::with_capacity(64),
        }
    }

    /// Lets stamps travel with data.
    pub fn verify(&mut self) {
        self.mlc.verifying = true;
        if let Some(cache) = &mut self.cache {
            cache.log.verifying = true;
        }
    }

    const fn verifying(&self) -> bool {
        self.mlc.verifying
    }

    fn logical_of(&self, sector: u32) -> u32 {
        sector / self.mlc.sectors / self.mlc.per_block
    }

    /// The first broken rule of flash.
    pub fn violation(&self) -> Option<crate::array::Violation> {
        let slc = self.cache.as_ref().and_then(|cache| cache.log.array.violation());
        self.mlc.array.violation().or(slc)
    }

    /// Reads `sectors` sectors from `first` on; in verified runs `into` gets their stamps.
    pub fn read(&mut self, first: u32, sectors: u32, into: &mut [u64]) -> Result<(), FtlError> {
        self.touch(first, sectors)?;
        self.pages.clear();
        let (mut sector, end) = (first, first + sectors);
        while sector < end {
            let lpn = sector / self.mlc.sectors;
            let next = ((lpn + 1) * self.mlc.sectors).min(end);
            let mut wanted = false;
            let on_slc = self.is_on_slc(self.mlc.logical(lpn));
            if !on_slc && into.is_empty() {
                (wanted, sector) = (true, next);
            }
            for sector in sector..next {
                let cache = self.cache.as_ref().filter(|_| on_slc);
                let place = cache.and_then(|cache| cache.log.hash.place(sector));
                wanted |= place.is_none();
                if let Some((log, place)) = self.cache.as_ref().map(|cache| &cache.log).zip(place) {
                    self.pages.push(place / log.sectors);
                }
                if let Some(stamp) = into.get_mut((sector - first) as usize) {
                    *stamp = self.stamp_of(sector, place);
                }
            }
            let written = self.mlc.map[lpn as usize] != NONE;
            match wanted {
                true if written => self.read_page(lpn, Cause::Host),
                true => self.work.unwritten += 1,
                false => {}
            }
            sector = next;
        }
        self.read_places(Cause::Host);
        Ok(())
    }

    /// One MLC page is read.
    fn read_page(&mut self, lpn: u32, cause: Cause) {
        let logical = self.mlc.logical(lpn);
        let number = match cause {
            Cause::Host => Number::ReadScan,
            Cause::Partial => Number::Scan,
            _ => Number::GcScan,
        };
        self.mlc.look_up(logical, number, &mut self.work);
        let dense = self.mlc.dense[logical as usize];
        self.work.pages(Medium::Mlc, Act::Read, cause, dense, 1);
        let number = match cause {
            Cause::Host | Cause::Partial => Number::MlcReads,
            _ => Number::MlcGcReads,
        };
        self.work.tell(number, 1);
    }

    /// The SLC pages collected in `pages` are read, each once.
    fn read_places(&mut self, cause: Cause) {
        self.pages.sort_unstable();
        self.pages.dedup();
        let count = self.pages.len() as u32;
        self.work.pages(Medium::Slc, Act::Read, cause, false, count);
        if count > 0 {
            let number = if cause == Cause::Host { Number::SlcReads } else { Number::SlcGcReads };
            self.work.tell(number, u64::from(count));
        }
        self.pages.clear();
    }

    /// The stamp of `sector`, which is at `place` on the SLC flash or else on the MLC flash.
    fn stamp_of(&self, sector: u32, place: Option<u32>) -> u64 {
        match (place, &self.cache) {
            (Some(place), Some(cache)) => cache.log.cells.get(u64::from(place)),
            _ => match self.mlc.map[(sector / self.mlc.sectors) as usize] {
                NONE => 0,
                page => {
                    let within = u64::from(sector % self.mlc.sectors);
                    self.mlc.cells.get(self.mlc.cell(page) + within)
                }
            },
        }
    }

    /// Writes `sectors` sectors from `first` on; `stamps` in verified runs, empty otherwise.
    ///
    /// # Errors
    /// When the flash is worn out.
    pub fn write(&mut self, first: u32, sectors: u32, stamps: &[u64]) -> Result<(), FtlError> {
        self.touch(first, sectors)?;
        if self.cache.is_none() {
            return self.write_mlc(first, sectors, stamps);
        }
        if self.cache.as_ref().is_some_and(|cache| !cache.log.works()) {
            // Worn out: what is still there moves away.
            self.clean(true)?;
        }
        match self.decide(first, sectors) {
            Verdict::Cold => self.write_mlc(first, sectors, stamps),
            Verdict::Hot => self.write_hot(first, sectors, stamps),
            Verdict::Throttled => {
                self.work.tell(Number::ThrottleReject, u64::from(sectors));
                self.write_mlc(first, sectors, stamps)?;
                if let Some(cache) = &mut self.cache {
                    (first..first + sectors).for_each(|sector| cache.log.mark(sector));
                }
                self.clean_to_k()
            }
        }
    }

    /// Filter and throttle (figure 2).
    fn decide(&mut self, first: u32, sectors: u32) -> Verdict {
        let Some(cache) = &mut self.cache else { return Verdict::Cold };
        if let Some(threshold) = cache.filter.note(sectors) {
            self.work.tell(Number::Threshold, u64::from(threshold));
        }
        if !cache.log.works() || !cache.filter.is_hot(sectors) {
            return Verdict::Cold;
        }
        let throttles = cache.throttles(&self.mlc);
        let Cache { log, throttle, .. } = &mut **cache;
        if !throttles {
            let k = throttle.relax(log.k, log.k_max());
            if k != log.k {
                log.k = k;
                self.work.tell(Number::LogBlocks, u64::from(k));
            }
            return Verdict::Hot;
        }
        throttle.count();
        if (first..first + sectors).all(|sector| log.knows(sector)) {
            return Verdict::Hot;
        }
        let k = throttle.refused(log.k);
        if k != log.k {
            log.k = k;
            self.work.tell(Number::LogBlocks, u64::from(k));
        }
        Verdict::Throttled
    }

    /// Whether the SLC flash holds anything of a logical block.
    #[inline]
    fn is_on_slc(&self, logical: u32) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.sectors_of[logical as usize] > 0)
    }

    fn holds_any(&self, lpn: u32) -> bool {
        if !self.is_on_slc(self.mlc.logical(lpn)) {
            return false;
        }
        let first = lpn * self.mlc.sectors;
        self.cache.as_ref().is_some_and(|cache| {
            (first..first + self.mlc.sectors).any(|sector| cache.log.hash.place(sector).is_some())
        })
    }

    /// Gives up the whole MLC pages of a range; the rest keeps its data.
    pub fn trim(&mut self, first: u32, sectors: u32) {
        let per_page = self.mlc.sectors;
        self.writes += 1;
        let pages = first.div_ceil(per_page)..(first + sectors) / per_page;
        if pages.is_empty() {
            return;
        }
        if let Some(cache) = &mut self.cache {
            let Cache { log, sectors_of, .. } = &mut **cache;
            let block = per_page * self.mlc.per_block;
            log.forget_range(pages.start * per_page..pages.end * per_page, |sector| {
                sectors_of[(sector / block) as usize] -= 1;
            });
        }
        for lpn in pages.clone() {
            let page = std::mem::replace(&mut self.mlc.map[lpn as usize], NONE);
            if page != NONE {
                self.mlc.array.invalidate(crate::geometry::Ppn(page));
            }
        }
        self.mlc.trims.note(pages, self.writes);
    }

    /// Cleans one tail block in the background; whether there is more to do.
    pub fn idle(&mut self) -> Result<bool, FtlError> {
        let too_long = |cache: &Cache| cache.log.used > cache.idle_blocks;
        if !self.cache.as_deref().is_some_and(too_long) {
            return Ok(false);
        }
        self.clean_tail(true)?;
        Ok(self.cache.as_deref().is_some_and(too_long))
    }

    /// The host touches a range: density control counts.
    fn touch(&mut self, first: u32, sectors: u32) -> Result<(), FtlError> {
        let Some(mut density) = self.density.take() else { return Ok(()) };
        let (from, to) = (self.logical_of(first), self.logical_of(first + sectors - 1));
        let done = (from..=to).try_for_each(|logical| density.touch(logical, self));
        self.density = Some(density);
        done
    }

    /// Checks all books.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), String> {
        self.mlc.audit()?;
        let Some(cache) = &self.cache else { return Ok(()) };
        cache.log.audit()?;
        let mut sectors_of = vec![0; cache.sectors_of.len()];
        for (sector, _) in cache.log.hash.entries() {
            sectors_of[self.logical_of(sector) as usize] += 1;
        }
        match sectors_of == cache.sectors_of {
            true => Ok(()),
            false => Err("sectors by logical block do not add up".to_owned()),
        }
    }
}

enum Verdict {
    Cold,
    Hot,
    Throttled,
}
