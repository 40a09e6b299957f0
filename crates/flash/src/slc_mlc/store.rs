//! Both media together: where writes go, and what moves from one to the other.
//!
//! Invariant: the newest data of a sector are where the hash table says, if it has a regular
//! entry, or else where the MLC tables say. A page programmed to the MLC flash holds the newest
//! of each of its sectors; whatever the SLC flash had of them is forgotten.

use super::density::Density;
use super::filter::Filter;
use super::log::{Moving, SlcLog};
use super::mlc::{Mlc, NONE};
use super::throttle::{Throttle, WriteBack};
use super::work::{Act, Medium, Number, Work};
use crate::ftl::FtlError;
use crate::geometry::BlockId;
use hybridsim_engine::Cause;

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

    /// Writes to the SLC flash what finds room in the hash table, the rest to the MLC flash.
    fn write_hot(&mut self, first: u32, sectors: u32, stamps: &[u64]) -> Result<(), FtlError> {
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

    fn write_slc(&mut self, first: u32, sectors: u32, stamps: &[u64]) -> Result<bool, FtlError> {
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
    fn make_room(&mut self) -> Result<(), FtlError> {
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
    fn clean_to_k(&mut self) -> Result<(), FtlError> {
        self.clean(false)
    }

    /// How many blocks the log may have.
    fn log_limit(&self, cache: &Cache) -> u32 {
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
    fn clean(&mut self, empty: bool) -> Result<(), FtlError> {
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

    fn is_in_tail(&self, sector: u32) -> bool {
        let Some(cache) = &self.cache else { return false };
        cache.log.hash.place(sector).is_some_and(|at| cache.log.block_of(at) == cache.log.tail)
    }

    /// Copies those of `kept` still in the tail block to the head.
    fn copy_to_head(&mut self, kept: &[u32]) -> Result<(), FtlError> {
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
    fn write_mlc(&mut self, first: u32, sectors: u32, stamps: &[u64]) -> Result<(), FtlError> {
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
    fn gather(
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
    fn append(&mut self, log: u32, lpn: u32, written: u64, cause: Cause) -> Result<(), FtlError> {
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
    fn log_with_room(&mut self, logical: u32, moved: Option<u32>) -> Result<Option<u32>, FtlError> {
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
