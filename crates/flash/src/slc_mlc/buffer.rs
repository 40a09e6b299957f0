//! A third tier (the future work of chang-slc-mlc, section 6): a little non-volatile memory in front
//! of both media that gathers small writes. It is not in the paper; what it does is assumed: MLC
//! pages are kept by last write, writes of up to a page's size go there, and when it is full the
//! page written to longest ago goes on to the hot-data filter as one write.

use super::recent::Recent;
use super::state::below;
use super::store::Store;
use super::work::Number;
use crate::ftl::FtlError;
use hybridsim_engine::state::{Loader, Saver, StateError, same_length};
use rustc_hash::FxHashMap;

/// A page of the buffer.
#[derive(Clone, Debug, Default)]
struct Held {
    lpn: u32,
    /// Which of its sectors are here.
    mask: u64,
    stamps: Vec<u64>,
}

/// The buffer.
pub struct Buffer {
    pages: Vec<Held>,
    /// Page numbers to places in `pages`.
    index: FxHashMap<u32, u32>,
    by_use: Recent,
    free: Vec<u32>,
    per_page: u32,
}

impl Buffer {
    /// Room for `pages` pages of `per_page` sectors, at most 64.
    pub fn new(pages: u32, per_page: u32) -> Self {
        let held = || Held { stamps: vec![0; per_page as usize], ..Held::default() };
        Self {
            pages: (0..pages).map(|_| held()).collect(),
            index: FxHashMap::default(),
            by_use: Recent::new(pages),
            free: (0..pages).rev().collect(),
            per_page,
        }
    }

    fn holds(&self, sector: u32) -> Option<(usize, usize)> {
        let at = *self.index.get(&(sector / self.per_page))? as usize;
        let offset = (sector % self.per_page) as usize;
        (self.pages[at].mask >> offset & 1 == 1).then_some((at, offset))
    }

    /// Reads a range; what is not here comes from `store`.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read(
        &mut self,
        store: &mut Store,
        first: u32,
        sectors: u32,
        into: &mut [u64],
    ) -> Result<(), FtlError> {
        let mut at = 0;
        while at < sectors {
            let here = self.holds(first + at).is_some();
            let same = |more: &u32| self.holds(first + more).is_some() == here;
            let count = (at..sectors).take_while(same).count() as u32;
            let end = (at + count) as usize;
            let range = into.get_mut(at as usize..end).unwrap_or(&mut []);
            if here {
                for (sector, stamp) in (first + at..).zip(range) {
                    if let Some((page, offset)) = self.holds(sector) {
                        *stamp = self.pages[page].stamps[offset];
                    }
                }
            } else {
                store.read(first + at, count, range)?;
            }
            at += count;
        }
        Ok(())
    }

    /// Writes a range.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write(
        &mut self,
        store: &mut Store,
        first: u32,
        sectors: u32,
        stamps: &[u64],
    ) -> Result<(), FtlError> {
        if sectors > self.per_page {
            // The buffer has nothing to gain; what it holds of the range is old now.
            (first..first + sectors).for_each(|sector| self.forget(sector));
            return store.write(first, sectors, stamps);
        }
        store.work.tell(Number::BufferWrite, u64::from(sectors));
        for (at, sector) in (first..first + sectors).enumerate() {
            let place = self.place(store, sector / self.per_page)?;
            let offset = (sector % self.per_page) as usize;
            let page = &mut self.pages[place as usize];
            page.mask |= 1 << offset;
            page.stamps[offset] = stamps.get(at).copied().unwrap_or(0);
        }
        Ok(())
    }

    /// The place of page `lpn`, made free if need be.
    fn place(&mut self, store: &mut Store, lpn: u32) -> Result<u32, FtlError> {
        if let Some(&place) = self.index.get(&lpn) {
            self.by_use.touch(place);
            return Ok(place);
        }
        if self.free.is_empty()
            && let Some(oldest) = self.by_use.oldest()
        {
            self.send(store, oldest)?;
        }
        let place = self.free.pop().ok_or_else(|| FtlError::Broken("no place".to_owned()))?;
        let page = &mut self.pages[place as usize];
        (page.lpn, page.mask) = (lpn, 0);
        self.index.insert(lpn, place);
        self.by_use.touch(place);
        Ok(place)
    }

    /// Sends a page on, in runs of neighbouring sectors.
    fn send(&mut self, store: &mut Store, place: u32) -> Result<(), FtlError> {
        let Held { lpn, mask, ref stamps } = self.pages[place as usize];
        let mut offset = 0;
        while offset < self.per_page {
            let rest = mask >> offset;
            if rest & 1 == 0 {
                offset += 1;
                continue;
            }
            let count = rest.trailing_ones();
            let range = &stamps[offset as usize..(offset + count) as usize];
            store.write(lpn * self.per_page + offset, count, range)?;
            offset += count;
        }
        self.drop_page(place);
        Ok(())
    }

    fn drop_page(&mut self, place: u32) {
        self.index.remove(&self.pages[place as usize].lpn);
        self.pages[place as usize].mask = 0;
        self.by_use.remove(place);
        self.free.push(place);
    }

    fn forget(&mut self, sector: u32) {
        if let Some((at, offset)) = self.holds(sector) {
            self.pages[at].mask &= !(1 << offset);
            if self.pages[at].mask == 0 {
                self.drop_page(at as u32);
            }
        }
    }

    /// Forgets the whole pages of a range.
    pub fn trim(&mut self, first: u32, sectors: u32) {
        let range = first.div_ceil(self.per_page)..(first + sectors) / self.per_page;
        if range.len() > self.pages.len() {
            for place in 0..self.pages.len() as u32 {
                let lpn = self.pages[place as usize].lpn;
                if self.by_use.contains(place) && range.contains(&lpn) {
                    self.drop_page(place);
                }
            }
            return;
        }
        for lpn in range {
            if let Some(&place) = self.index.get(&lpn) {
                self.drop_page(place);
            }
        }
    }

    /// Puts down which sectors it holds.
    pub(super) fn save(&self, to: &mut Saver) {
        let pages: Vec<(u32, u64)> = self.pages.iter().map(|page| (page.lpn, page.mask)).collect();
        to.put(&(pages, &self.by_use, &self.free));
    }

    /// Takes back what [`Buffer::save`] put down.
    ///
    /// # Errors
    /// When it is of another buffer, or its lists do not agree.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (pages, by_use, free): (Vec<(u32, u64)>, Recent, Vec<u32>) = from.take()?;
        same_length("the list of buffered pages", pages.len(), self.pages.len())?;
        below("the list of free places", &free, self.pages.len())?;
        self.by_use.replace(by_use)?;
        self.index.clear();
        for (place, (page, held)) in (0..).zip(self.pages.iter_mut().zip(pages)) {
            (page.lpn, page.mask) = held;
            if self.by_use.contains(place) {
                self.index.insert(page.lpn, place);
            }
        }
        let used = self.index.len();
        let listed = free.iter().any(|place| self.by_use.contains(*place));
        if used != self.by_use.len() as usize || used + free.len() != self.pages.len() || listed {
            return Err(StateError("the lists of the buffer do not agree".to_owned()));
        }
        self.free = free;
        Ok(())
    }

    /// Sets what a sector holds, if it is here.
    pub fn put_back(&mut self, sector: u32, stamp: u64) -> bool {
        let found = self.holds(sector);
        if let Some((at, offset)) = found {
            self.pages[at].stamps[offset] = stamp;
        }
        found.is_some()
    }
}
