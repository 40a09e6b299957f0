//! LIRS: most of the cache holds pages with a low inter-reference recency (LIR), a small part the
//! others (HIR).

use super::index::PageIndex;
use super::list::{Lists, SlotList};
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "lirs",
        summary: "keeps pages with a low inter-reference recency",
        origin: "Jiang and Zhang, SIGMETRICS 2002 (LIRS)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(Lirs::new(pages))),
};

/// The lists of pages that are not LIR: the queue Q of resident pages, and non-resident pages of
/// the stack in order of eviction.
const QUEUE: usize = 0;
const NON_RESIDENT: usize = 1;

/// The stack and the lists of HIR pages. Pages have indexes as slots there, which are their
/// numbers where every page has its number as its slot.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lirs {
    /// The stack S, bottom first; the bottom is a LIR page.
    stack: SlotList,
    hirs: Lists<2>,
    /// By index, whether the page is LIR.
    lir: Vec<bool>,
    /// By index, the page and its slot while it is cached, unless they are the index.
    known: Vec<CachedPage>,
    free: Vec<u32>,
    indexes: PageIndex,
    lirs: usize,
    lirs_max: usize,
    non_resident_max: usize,
    /// Pages that left the lists, where they are tracked.
    #[serde(skip)]
    forgotten: Option<Vec<u32>>,
}

impl Lirs {
    /// A hundredth of the cache is for HIR pages.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            stack: SlotList::default(),
            hirs: Lists::default(),
            lir: Vec::new(),
            known: Vec::new(),
            free: Vec::new(),
            indexes: PageIndex::default(),
            lirs: 0,
            lirs_max: pages.saturating_sub((pages / 100).max(1)).max(1),
            non_resident_max: pages,
            forgotten: None,
        }
    }

    fn is_listed(&self, at: u32) -> bool {
        self.stack.list_of(at).is_some() || self.hirs.list_of(at).is_some()
    }

    /// The page as it is listed.
    fn listed(&self, at: u32) -> CachedPage {
        let page = self.known.get(at as usize).map_or(u64::from(at), |known| known.page);
        CachedPage { page, slot: at }
    }

    /// The page as it is cached.
    fn cached(&self, listed: CachedPage) -> CachedPage {
        self.known.get(listed.slot as usize).copied().unwrap_or(listed)
    }

    fn find(&self, page: u64) -> Option<u32> {
        match self.forgotten {
            Some(_) => Some(page as u32).filter(|at| self.is_listed(*at)),
            None => self.indexes.get(page),
        }
    }

    /// The index of a page that is in the cache.
    fn index_of(&mut self, page: CachedPage) -> u32 {
        if self.forgotten.is_some() {
            if page.slot as usize >= self.lir.len() {
                self.lir.resize(page.slot as usize + 1, false);
            }
            return page.slot;
        }
        let at = self.indexes.get(page.page).unwrap_or_else(|| {
            let at = self.free.pop().unwrap_or(self.known.len() as u32);
            self.indexes.insert(page.page, at);
            at
        });
        if at as usize == self.known.len() {
            self.known.push(page);
            self.lir.push(false);
        }
        self.known[at as usize] = page;
        at
    }

    /// Stack pruning: demotes LIR pages beyond their limit and removes HIR pages at the bottom.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.oldest() {
            let lir = &mut self.lir[bottom.slot as usize];
            if *lir && self.lirs <= self.lirs_max {
                break;
            }
            self.stack.remove(bottom);
            if std::mem::take(lir) {
                self.lirs -= 1;
                self.hirs.renew_in(QUEUE, bottom);
            } else if self.hirs.list_of(bottom.slot) == Some(NON_RESIDENT) {
                self.hirs.remove(bottom);
            }
            self.drop_unlisted(bottom);
        }
    }

    /// Drops the entry of a page that is in no list.
    fn drop_unlisted(&mut self, page: CachedPage) {
        if self.is_listed(page.slot) {
            return;
        }
        match &mut self.forgotten {
            Some(forgotten) => forgotten.push(page.slot),
            None => {
                self.indexes.remove(page.page);
                self.free.push(page.slot);
            }
        }
    }

    fn used(&mut self, page: CachedPage, added: bool) {
        let at = self.index_of(page);
        let listed = self.listed(at);
        let in_stack = self.stack.contains(listed);
        let lir = &mut self.lir[at as usize];
        let first_ones = added && !in_stack && self.lirs < self.lirs_max;
        if !*lir && (in_stack || first_ones) {
            *lir = true;
            self.lirs += 1;
            self.hirs.remove(listed);
        } else if !*lir {
            self.hirs.renew_in(QUEUE, listed);
        }
        self.stack.renew(listed);
        self.prune();
    }

    /// A page leaves the cache; if `remembered`, it may stay in the stack as a non-resident page.
    fn leave(&mut self, page: CachedPage, remembered: bool) {
        let Some(at) = self.find(page.page) else { return };
        let listed = self.listed(at);
        let lir = std::mem::take(&mut self.lir[at as usize]);
        self.lirs -= usize::from(lir);
        if lir || !remembered {
            self.hirs.remove(listed);
            self.stack.remove(listed);
        } else if self.stack.contains(listed) {
            self.hirs.renew_in(NON_RESIDENT, listed);
        } else {
            self.hirs.remove(listed);
        }
        self.drop_unlisted(listed);
        while self.hirs.len_of(NON_RESIDENT) > self.non_resident_max {
            let Some(oldest) = self.hirs.pop_of(NON_RESIDENT) else { break };
            self.stack.remove(oldest);
            self.drop_unlisted(oldest);
        }
        self.prune();
    }
}

impl Replacement for Lirs {
    fn number_densely(&mut self) -> bool {
        self.indexes = PageIndex::dense();
        true
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        self.used(page, access == Access::Add);
    }

    fn remove(&mut self, page: CachedPage) {
        self.leave(page, false);
    }

    fn evict(&mut self, page: CachedPage) {
        self.leave(page, true);
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let lir = self.stack.iter().filter(|page| self.lir[page.slot as usize]);
        let pages = self.hirs.iter_of(QUEUE).chain(lir).map(|page| self.cached(page));
        out.extend(pages.filter(|page| eligible(*page)).take(count));
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        let next = self.hirs.oldest_of(QUEUE).or_else(|| self.stack.oldest())?;
        let page = self.cached(next);
        self.evict(page);
        Some(page)
    }

    fn number_slots(&mut self) -> bool {
        self.stack.number();
        self.hirs.number();
        self.forgotten = Some(Vec::new());
        true
    }

    fn forgotten(&mut self, out: &mut Vec<u32>) {
        let Some(mut forgotten) = self.forgotten.take() else { return };
        out.extend(forgotten.drain(..).filter(|at| !self.is_listed(*at)));
        self.forgotten = Some(forgotten);
    }

    fn touch(&self, slot: u32) -> u64 {
        self.stack.touch(slot) ^ self.hirs.touch(slot)
    }
}
