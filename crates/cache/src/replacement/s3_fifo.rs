//! S3-FIFO: a small queue for new pages, a main queue for pages used again, and a ghost list of the
//! pages evicted from the small one.

use super::ghost::Ghosts;
use super::list::SlotList;
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

/// The number of the ghost list.
const LEFT: usize = 0;

/// The queues.
#[derive(Debug, Serialize, Deserialize)]
pub struct S3Fifo {
    small: SlotList,
    main: SlotList,
    left: Ghosts,
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
            small: SlotList::default(),
            main: SlotList::default(),
            left: Ghosts::default(),
            uses: Vec::new(),
            small_max: (pages / 10).max(1),
            pages,
            waiting: Vec::new(),
            spared: Vec::new(),
        }
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
        let mut beyond = self.small.len().saturating_sub(self.small_max);
        let mut used = std::mem::take(&mut self.waiting);
        used.clear();
        for page in self.small.iter() {
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
            self.small.remove(page);
            self.main.push(page);
            self.uses[page.slot as usize] = 0;
        }
        self.waiting = used;
    }
}

impl Replacement for S3Fifo {
    fn number_densely(&mut self) -> bool {
        self.left.number_densely();
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
        match self.left.take(page.page) {
            Some(_) => self.main.push(page),
            None => self.small.push(page),
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.small.remove(page);
        self.main.remove(page);
    }

    fn evict(&mut self, page: CachedPage) {
        if self.small.contains(page) {
            self.small.remove(page);
            self.left.add(LEFT, page.page, self.pages);
        } else {
            self.main.remove(page);
            self.left.forget(page.page);
        }
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        self.take_from_small(wanted, eligible, out);
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut spared = std::mem::take(&mut self.spared);
        waiting.clear();
        for page in self.main.iter() {
            if out.len() == wanted {
                break;
            }
            Self::look_at(&mut self.uses, page, eligible, &mut waiting, out);
        }
        // A spared page is appended with one access less.
        for _ in 0..USES_MAX {
            waiting.iter().for_each(|page| self.main.renew(*page));
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
            let beyond = self.small.len().saturating_sub(self.small_max);
            let rest = self.small.iter().skip(beyond).filter(|page| eligible(*page));
            out.extend(rest.take(wanted - out.len()));
        }
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        while self.small.len() > self.small_max {
            let page = self.small.pop()?;
            let uses = &mut self.uses[page.slot as usize];
            if *uses <= 1 {
                self.left.add(LEFT, page.page, self.pages);
                return Some(page);
            }
            *uses = 0;
            self.main.push(page);
        }
        while let Some(page) = self.main.oldest() {
            let uses = &mut self.uses[page.slot as usize];
            if *uses == 0 {
                self.left.forget(page.page);
                return self.main.pop();
            }
            *uses -= 1;
            self.main.renew(page);
        }
        let page = self.small.pop()?;
        self.left.add(LEFT, page.page, self.pages);
        Some(page)
    }

    fn track_ghosts(&mut self) -> bool {
        self.left.track();
        true
    }

    fn forgotten(&mut self) -> Option<u64> {
        self.left.forgotten()
    }
}
