//! S3-FIFO: a small queue for new pages, a main queue for pages used again, and a ghost list of the
//! pages evicted from the small one.

use super::ghost::CacheLists;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "s3-fifo",
        summary: "a small queue for new pages, a main one for those used again, no reordering",
        origin: "Yang et al., SOSP 2023 (S3-FIFO)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(S3Fifo::new(pages))),
};

/// Largest access count.
const USES_MAX: u8 = 3;

/// The lists: the small queue, the main queue, and pages evicted from the small one.
const SMALL: usize = 0;
const MAIN: usize = 1;
const LEFT: usize = 2;

/// The queues.
#[derive(Debug, Serialize, Deserialize)]
pub struct S3Fifo {
    lists: CacheLists<3>,
    uses: Vec<u8>,
    small_max: usize,
    pages: usize,
    /// Pages to examine, and pages spared meanwhile; reused.
    waiting: Vec<CachedPage>,
    spared: Vec<CachedPage>,
}

impl S3Fifo {
    /// The small queue has a tenth of the cache.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            lists: CacheLists::default(),
            uses: Vec::new(),
            small_max: (pages / 10).max(1),
            pages,
            waiting: Vec::new(),
            spared: Vec::new(),
        }
    }

    /// Pages beyond the size of the small queue.
    fn beyond(&self) -> usize {
        self.lists.cached.len_of(SMALL).saturating_sub(self.small_max)
    }

    /// Chooses a page of the main queue without accesses; the others lose one access and are
    /// spared.
    fn look_at(
        uses: &mut [u8],
        page: CachedPage,
        eligible: Eligible<'_>,
        spared: &mut Vec<CachedPage>,
        out: &mut Vec<CachedPage>,
    ) {
        let uses = &mut uses[page.slot as usize];
        if *uses > 0 {
            *uses -= 1;
            spared.push(page);
        } else if eligible(page) {
            out.push(page);
        }
    }

    /// Chooses pages beyond the size of the small queue that were not used again; moves the others
    /// of these to the main queue.
    fn take_from_small(
        &mut self,
        wanted: usize,
        eligible: Eligible<'_>,
        out: &mut Vec<CachedPage>,
    ) {
        let mut beyond = self.beyond();
        let mut used = std::mem::take(&mut self.waiting);
        used.clear();
        for page in self.lists.cached.iter_of(SMALL) {
            if beyond == 0 || out.len() == wanted {
                break;
            }
            beyond -= 1;
            if self.uses[page.slot as usize] > 1 {
                used.push(page);
            } else if eligible(page) {
                out.push(page);
            }
        }
        for &page in &used {
            self.lists.cached.renew_in(MAIN, page);
            self.uses[page.slot as usize] = 0;
        }
        self.waiting = used;
    }
}

impl Replacement for S3Fifo {
    fn number_densely(&mut self) -> bool {
        self.lists.number_densely();
        true
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        let slot = page.slot as usize;
        if slot >= self.uses.len() {
            self.uses.resize(slot + 1, 0);
        }
        if access != Access::Add {
            self.uses[slot] = (self.uses[slot] + 1).min(USES_MAX);
            return;
        }
        self.uses[slot] = 0;
        let list = if self.lists.take_ghost(page.page).is_some() { MAIN } else { SMALL };
        self.lists.cached.push_to(list, page);
    }

    fn remove(&mut self, page: CachedPage) {
        self.lists.cached.remove(page);
    }

    fn evict(&mut self, page: CachedPage) {
        if self.lists.cached.list_of(page.slot) == Some(SMALL) {
            self.lists.evict(page, LEFT, self.pages);
        } else {
            self.lists.forget(page);
        }
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        self.take_from_small(wanted, eligible, out);
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut spared = std::mem::take(&mut self.spared);
        waiting.clear();
        for page in self.lists.cached.iter_of(MAIN) {
            if out.len() == wanted {
                break;
            }
            Self::look_at(&mut self.uses, page, eligible, &mut waiting, out);
        }
        // A spared page is appended with one access less.
        for _ in 0..USES_MAX {
            waiting.iter().for_each(|page| self.lists.cached.renew_in(MAIN, *page));
            spared.clear();
            for page in waiting.drain(..) {
                if out.len() == wanted {
                    break;
                }
                Self::look_at(&mut self.uses, page, eligible, &mut spared, out);
            }
            std::mem::swap(&mut waiting, &mut spared);
        }
        (self.waiting, self.spared) = (waiting, spared);
        if out.len() < wanted {
            let small = self.lists.cached.iter_of(SMALL).skip(self.beyond());
            let rest = small.filter(|page| eligible(*page));
            out.extend(rest.take(wanted - out.len()));
        }
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        let cached = &mut self.lists.cached;
        while cached.len_of(SMALL) > self.small_max {
            let page = cached.oldest_of(SMALL)?;
            let uses = &mut self.uses[page.slot as usize];
            if *uses <= 1 {
                self.lists.evict(page, LEFT, self.pages);
                return Some(page);
            }
            *uses = 0;
            cached.renew_in(MAIN, page);
        }
        while let Some(page) = cached.oldest_of(MAIN) {
            let uses = &mut self.uses[page.slot as usize];
            if *uses == 0 {
                self.lists.forget(page);
                return Some(page);
            }
            *uses -= 1;
            cached.renew_in(MAIN, page);
        }
        let page = cached.oldest_of(SMALL)?;
        self.lists.evict(page, LEFT, self.pages);
        Some(page)
    }

    fn number_slots(&mut self) -> bool {
        self.lists.track();
        true
    }

    fn forgotten(&mut self, out: &mut Vec<u32>) {
        self.lists.forgotten(out);
    }

    fn touch(&self, slot: u32) -> u64 {
        self.uses.get(slot as usize).map_or(0, |uses| u64::from(*uses))
    }
}
