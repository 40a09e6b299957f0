//! A third tier (the future work of chang-slc-mlc, section 6): a small non-volatile memory in front
//! of both media that collects small writes. Its policy is not in the paper and is assumed: MLC
//! pages in LRU order, writes of up to one page enter the buffer, and when it is full the least
//! recently written page is written to flash.

use super::hybrid_ftl::HybridFtl;
use super::operations::Statistic;
use hybridsim_engine::state::{Loader, Saver, StateError, same_length};
use hybridsim_flash::LruList;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::restore;
use rustc_hash::FxHashMap;

#[derive(Clone, Debug, Default)]
struct BufferedPage {
    lpn: u32,
    /// Bit mask of its buffered sectors.
    sectors: u64,
    versions: Vec<u64>,
}

pub struct NvramBuffer {
    pages: Vec<BufferedPage>,
    /// Logical page to index in `pages`.
    index: FxHashMap<u32, u32>,
    lru: LruList,
    free: Vec<u32>,
    sectors_per_page: u32,
}

impl NvramBuffer {
    /// A buffer of `pages` pages of at most 64 sectors.
    pub fn new(pages: u32, sectors_per_page: u32) -> Self {
        let page = || BufferedPage {
            versions: vec![0; sectors_per_page as usize],
            ..BufferedPage::default()
        };
        Self {
            pages: (0..pages).map(|_| page()).collect(),
            index: FxHashMap::default(),
            lru: LruList::new(pages),
            free: (0..pages).rev().collect(),
            sectors_per_page,
        }
    }

    /// Index of the page and offset in it, if `sector` is buffered.
    fn find(&self, sector: u32) -> Option<(usize, usize)> {
        let at = *self.index.get(&(sector / self.sectors_per_page))? as usize;
        let offset = (sector % self.sectors_per_page) as usize;
        (self.pages[at].sectors >> offset & 1 == 1).then_some((at, offset))
    }

    /// Reads a range, from `ftl` where it is not buffered.
    pub fn read(
        &mut self,
        ftl: &mut HybridFtl,
        first: u32,
        sectors: u32,
        into: &mut [u64],
    ) -> Result<(), FtlError> {
        let mut at = 0;
        while at < sectors {
            let buffered = self.find(first + at).is_some();
            let same = |more: &u32| self.find(first + more).is_some() == buffered;
            let count = (at..sectors).take_while(same).count() as u32;
            let end = (at + count) as usize;
            let range = into.get_mut(at as usize..end).unwrap_or(&mut []);
            if buffered {
                for (sector, version) in (first + at..).zip(range) {
                    if let Some((page, offset)) = self.find(sector) {
                        *version = self.pages[page].versions[offset];
                    }
                }
            } else {
                ftl.read(first + at, count, range)?;
            }
            at += count;
        }
        Ok(())
    }

    pub fn write(
        &mut self,
        ftl: &mut HybridFtl,
        first: u32,
        sectors: u32,
        versions: &[u64],
    ) -> Result<(), FtlError> {
        if sectors > self.sectors_per_page {
            // Large writes bypass the buffer; buffered data of the range are stale.
            (first..first + sectors).for_each(|sector| self.discard(sector));
            return ftl.write(first, sectors, versions);
        }
        ftl.operations.record(Statistic::BufferWrite, u64::from(sectors));
        for (at, sector) in (first..first + sectors).enumerate() {
            let page = self.page_for(ftl, sector / self.sectors_per_page)?;
            let offset = (sector % self.sectors_per_page) as usize;
            let page = &mut self.pages[page as usize];
            page.sectors |= 1 << offset;
            page.versions[offset] = versions.get(at).copied().unwrap_or(0);
        }
        Ok(())
    }

    /// The index of logical page `lpn`; evicts another page if the buffer is full.
    fn page_for(&mut self, ftl: &mut HybridFtl, lpn: u32) -> Result<u32, FtlError> {
        if let Some(&page) = self.index.get(&lpn) {
            self.lru.touch(page);
            return Ok(page);
        }
        if self.free.is_empty()
            && let Some(victim) = self.lru.least_recent()
        {
            self.evict(ftl, victim)?;
        }
        let full = || FtlError::Broken("the buffer has no free page".to_owned());
        let at = self.free.pop().ok_or_else(full)?;
        let page = &mut self.pages[at as usize];
        (page.lpn, page.sectors) = (lpn, 0);
        self.index.insert(lpn, at);
        self.lru.touch(at);
        Ok(at)
    }

    /// Writes a page to flash, one request per run of adjacent sectors.
    fn evict(&mut self, ftl: &mut HybridFtl, page: u32) -> Result<(), FtlError> {
        let BufferedPage { lpn, sectors, ref versions } = self.pages[page as usize];
        let mut offset = 0;
        while offset < self.sectors_per_page {
            let rest = sectors >> offset;
            if rest & 1 == 0 {
                offset += 1;
                continue;
            }
            let count = rest.trailing_ones();
            let range = &versions[offset as usize..(offset + count) as usize];
            ftl.write(lpn * self.sectors_per_page + offset, count, range)?;
            offset += count;
        }
        self.remove_page(page);
        Ok(())
    }

    fn remove_page(&mut self, page: u32) {
        self.index.remove(&self.pages[page as usize].lpn);
        self.pages[page as usize].sectors = 0;
        self.lru.remove(page);
        self.free.push(page);
    }

    fn discard(&mut self, sector: u32) {
        if let Some((at, offset)) = self.find(sector) {
            self.pages[at].sectors &= !(1 << offset);
            if self.pages[at].sectors == 0 {
                self.remove_page(at as u32);
            }
        }
    }

    /// Discards the whole pages of a range.
    pub fn trim(&mut self, first: u32, sectors: u32) {
        let per_page = self.sectors_per_page;
        let range = first.div_ceil(per_page)..(first + sectors) / per_page;
        if range.len() > self.pages.len() {
            for page in 0..self.pages.len() as u32 {
                let lpn = self.pages[page as usize].lpn;
                if self.lru.contains(page) && range.contains(&lpn) {
                    self.remove_page(page);
                }
            }
            return;
        }
        for lpn in range {
            if let Some(&page) = self.index.get(&lpn) {
                self.remove_page(page);
            }
        }
    }

    /// Overwrites the version of a sector after a power failure. Returns whether it is buffered.
    pub fn restore_version(&mut self, sector: u32, version: u64) -> bool {
        let found = self.find(sector);
        if let Some((at, offset)) = found {
            self.pages[at].versions[offset] = version;
        }
        found.is_some()
    }

    pub fn save(&self, to: &mut Saver) {
        let pages: Vec<_> = self.pages.iter().map(|page| (page.lpn, page.sectors)).collect();
        to.put(&(pages, &self.lru, &self.free));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let pages: Vec<(u32, u64)> = from.take()?;
        same_length("the list of buffered pages", pages.len(), self.pages.len())?;
        self.lru.restore(from)?;
        self.free = from.take()?;
        restore::check_below("the list of free pages", &self.free, self.pages.len())?;
        self.index.clear();
        for (at, (page, saved)) in (0..).zip(self.pages.iter_mut().zip(pages)) {
            (page.lpn, page.sectors) = saved;
            if self.lru.contains(at) {
                self.index.insert(page.lpn, at);
            }
        }
        let used = self.index.len();
        let consistent = used == self.lru.len() as usize
            && used + self.free.len() == self.pages.len()
            && !self.free.iter().any(|page| self.lru.contains(*page));
        restore::check(consistent, "the lists of the buffer are inconsistent")
    }
}
