//! LIRS: most of the cache for pages whose last two uses were close together, a little for the
//! others.

use super::list::SlotList;
use super::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use rustc_hash::FxHashMap;

/// The registered entry.
pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "lirs",
        summary: "keeps pages whose last two uses were close together",
        origin: "Jiang and Zhang, SIGMETRICS 2002 (LIRS)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(Lirs::new(pages))),
};

/// What is known of a page: it is in the stack, in the queue, or in both.
#[derive(Clone, Copy, Debug)]
struct Known {
    page: u64,
    /// One of those with a short distance between uses.
    close: bool,
    /// Where it is, while it is cached.
    slot: Option<u32>,
}

/// Stack, queue, and what is known of the pages in them. The lists are linked by place in `known`.
#[derive(Debug)]
pub struct Lirs {
    known: Vec<Known>,
    free: Vec<u32>,
    places: FxHashMap<u64, u32>,
    /// The stack S, bottom first; the bottom is a close page.
    stack: SlotList,
    /// The queue Q: cached pages that are not close.
    queue: SlotList,
    /// Pages of the stack that are not cached, by when they left.
    gone: SlotList,
    close: usize,
    close_max: usize,
    gone_max: usize,
}

impl Lirs {
    /// A hundredth of the cache for pages that are not close.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            known: Vec::new(),
            free: Vec::new(),
            places: FxHashMap::default(),
            stack: SlotList::default(),
            queue: SlotList::default(),
            gone: SlotList::default(),
            close: 0,
            close_max: pages.saturating_sub((pages / 100).max(1)).max(1),
            gone_max: pages,
        }
    }

    /// The page in the lists.
    fn listed(&self, at: u32) -> CachedPage {
        CachedPage { page: self.known[at as usize].page, slot: at }
    }

    fn place(&mut self, page: u64) -> u32 {
        if let Some(&at) = self.places.get(&page) {
            return at;
        }
        let known = Known { page, close: false, slot: None };
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
        self.places.insert(page, at);
        at
    }

    /// Makes room among the close pages, and takes what is not close off the bottom.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.oldest() {
            let known = &mut self.known[bottom.slot as usize];
            if known.close && self.close <= self.close_max {
                break;
            }
            self.stack.remove(bottom);
            self.gone.remove(bottom);
            if std::mem::take(&mut known.close) {
                self.close -= 1;
                self.queue.remove(bottom);
                self.queue.push(bottom);
            }
            self.keep(bottom);
        }
    }

    /// A page that is nowhere is forgotten.
    fn keep(&mut self, page: CachedPage) {
        if !self.stack.contains(page) && !self.queue.contains(page) {
            self.places.remove(&page.page);
            self.free.push(page.slot);
        }
    }

    fn used(&mut self, page: CachedPage, added: bool) {
        let at = self.place(page.page);
        let listed = self.listed(at);
        let in_stack = self.stack.contains(listed);
        let known = &mut self.known[at as usize];
        known.slot = Some(page.slot);
        let first_ones = added && !in_stack && self.close < self.close_max;
        if !known.close && (in_stack || first_ones) {
            known.close = true;
            self.close += 1;
            self.queue.remove(listed);
        } else if !known.close {
            self.queue.remove(listed);
            self.queue.push(listed);
        }
        self.gone.remove(listed);
        self.stack.remove(listed);
        self.stack.push(listed);
        self.prune();
    }

    /// A page leaves the cache; while it is in the stack it may be remembered.
    fn leave(&mut self, page: CachedPage, remembered: bool) {
        let Some(&at) = self.places.get(&page.page) else { return };
        let listed = self.listed(at);
        let known = &mut self.known[at as usize];
        known.slot = None;
        self.queue.remove(listed);
        if known.close || !remembered {
            self.stack.remove(listed);
            self.close -= usize::from(std::mem::take(&mut known.close));
        } else if self.stack.contains(listed) {
            self.gone.push(listed);
        }
        self.keep(listed);
        while self.gone.len() > self.gone_max {
            let Some(oldest) = self.gone.oldest() else { break };
            self.gone.remove(oldest);
            self.stack.remove(oldest);
            self.keep(oldest);
        }
        self.prune();
    }
}

impl Replacement for Lirs {
    fn update(&mut self, page: CachedPage, access: Access) {
        self.used(page, access == Access::Add);
    }

    fn remove(&mut self, page: CachedPage) {
        self.leave(page, false);
    }

    fn evict(&mut self, page: CachedPage) {
        self.leave(page, true);
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let close = self.stack.iter().filter(|page| self.known[page.slot as usize].close);
        let cached = |page: CachedPage| {
            let slot = self.known[page.slot as usize].slot?;
            Some(CachedPage { page: page.page, slot })
        };
        let pages = self.queue.iter().chain(close).filter_map(cached);
        out.extend(pages.filter(|page| eligible(*page)).take(count));
    }
}
