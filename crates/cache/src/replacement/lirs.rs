//! LIRS: most of the cache holds pages with a low inter-reference recency (LIR), a small part the
//! others (HIR).

use super::index::PageIndex;
use super::list::SlotList;
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

/// The entry of a page that is in the stack, in the queue, or in both.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Known {
    page: u64,
    lir: bool,
    /// Slot, while the page is cached.
    slot: Option<u32>,
}

/// Stack, queue, and the entries of the pages in them. The lists use indexes of `known` as slots.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lirs {
    known: Vec<Known>,
    free: Vec<u32>,
    indexes: PageIndex,
    /// The stack S, bottom first; the bottom is a LIR page.
    stack: SlotList,
    /// The queue Q: resident HIR pages.
    queue: SlotList,
    /// Non-resident HIR pages of the stack, in order of eviction.
    non_resident: SlotList,
    lirs: usize,
    lirs_max: usize,
    non_resident_max: usize,
    /// Pages that are in no list, where they are tracked.
    #[serde(skip)]
    forgotten: Option<Vec<u64>>,
}

impl Lirs {
    /// A hundredth of the cache is for HIR pages.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            known: Vec::new(),
            free: Vec::new(),
            indexes: PageIndex::default(),
            stack: SlotList::default(),
            queue: SlotList::default(),
            non_resident: SlotList::default(),
            lirs: 0,
            lirs_max: pages.saturating_sub((pages / 100).max(1)).max(1),
            non_resident_max: pages,
            forgotten: None,
        }
    }

    fn listed(&self, at: u32) -> CachedPage {
        CachedPage { page: self.known[at as usize].page, slot: at }
    }

    fn index_of(&mut self, page: u64) -> u32 {
        if let Some(at) = self.indexes.get(page) {
            return at;
        }
        let known = Known { page, lir: false, slot: None };
        let at = match self.free.pop() {
            Some(at) => {
                self.known[at as usize] = known;
                at
            }
            None => {
                self.known.push(known);
                self.known.len() as u32 - 1
            }
        };
        self.indexes.insert(page, at);
        at
    }

    /// Stack pruning: demotes LIR pages beyond their limit and removes HIR pages at the bottom.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.oldest() {
            let known = &mut self.known[bottom.slot as usize];
            if known.lir && self.lirs <= self.lirs_max {
                break;
            }
            self.stack.remove(bottom);
            self.non_resident.remove(bottom);
            if std::mem::take(&mut known.lir) {
                self.lirs -= 1;
                self.queue.remove(bottom);
                self.queue.push(bottom);
            }
            self.drop_unlisted(bottom);
        }
    }

    /// Drops the entry of a page that is in no list.
    fn drop_unlisted(&mut self, page: CachedPage) {
        if !self.stack.contains(page) && !self.queue.contains(page) {
            self.indexes.remove(page.page);
            self.free.push(page.slot);
            if let Some(forgotten) = &mut self.forgotten {
                forgotten.push(page.page);
            }
        }
    }

    fn used(&mut self, page: CachedPage, added: bool) {
        let at = self.index_of(page.page);
        let listed = self.listed(at);
        let in_stack = self.stack.contains(listed);
        let known = &mut self.known[at as usize];
        known.slot = Some(page.slot);
        let first_ones = added && !in_stack && self.lirs < self.lirs_max;
        if !known.lir && (in_stack || first_ones) {
            known.lir = true;
            self.lirs += 1;
            self.queue.remove(listed);
        } else if !known.lir {
            self.queue.remove(listed);
            self.queue.push(listed);
        }
        self.non_resident.remove(listed);
        self.stack.remove(listed);
        self.stack.push(listed);
        self.prune();
    }

    /// A page leaves the cache; if `remembered`, it may stay in the stack as a non-resident page.
    fn leave(&mut self, page: CachedPage, remembered: bool) {
        let Some(at) = self.indexes.get(page.page) else { return };
        let listed = self.listed(at);
        let known = &mut self.known[at as usize];
        known.slot = None;
        self.queue.remove(listed);
        if known.lir || !remembered {
            self.stack.remove(listed);
            self.lirs -= usize::from(std::mem::take(&mut known.lir));
        } else if self.stack.contains(listed) {
            self.non_resident.push(listed);
        }
        self.drop_unlisted(listed);
        while self.non_resident.len() > self.non_resident_max {
            let Some(oldest) = self.non_resident.oldest() else { break };
            self.non_resident.remove(oldest);
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
        let lir = self.stack.iter().filter(|page| self.known[page.slot as usize].lir);
        let cached = |page: CachedPage| {
            let slot = self.known[page.slot as usize].slot?;
            Some(CachedPage { page: page.page, slot })
        };
        let pages = self.queue.iter().chain(lir).filter_map(cached);
        out.extend(pages.filter(|page| eligible(*page)).take(count));
    }

    fn track_ghosts(&mut self) -> bool {
        self.forgotten = Some(Vec::new());
        true
    }

    fn forgotten(&mut self) -> Option<u64> {
        let (forgotten, indexes) = (self.forgotten.as_mut()?, &self.indexes);
        std::iter::from_fn(|| forgotten.pop()).find(|page| indexes.get(*page).is_none())
    }
}
