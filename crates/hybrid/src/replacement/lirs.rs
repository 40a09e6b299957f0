//! LIRS: most of the cache for pages whose last two uses were close together, a little for the
//! others.

use super::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_engine::registry::Description;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

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

/// What is known of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// One of those with a short distance between uses.
    close: bool,
    /// Where it is, while it is cached.
    slot: Option<u32>,
    /// Its turn in the stack S.
    stack: Option<u64>,
    /// Its turn in the queue Q.
    queue: Option<u64>,
}

/// Stack, queue, and what is known of the pages in them.
#[derive(Debug)]
pub struct Lirs {
    known: FxHashMap<u64, Known>,
    /// By turn; the lowest is the bottom, which is a close page.
    stack: BTreeMap<u64, u64>,
    /// Cached pages that are not close, by turn.
    queue: BTreeMap<u64, u64>,
    /// Pages of the stack that are not cached, by turn.
    gone: BTreeMap<u64, u64>,
    turn: u64,
    close: usize,
    close_max: usize,
    gone_max: usize,
}

impl Lirs {
    /// A hundredth of the cache for pages that are not close.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            known: FxHashMap::default(),
            stack: BTreeMap::new(),
            queue: BTreeMap::new(),
            gone: BTreeMap::new(),
            turn: 0,
            close: 0,
            close_max: pages.saturating_sub((pages / 100).max(1)).max(1),
            gone_max: pages,
        }
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn stack_top(&mut self, page: u64, known: &mut Known) {
        if let Some(turn) = known.stack.take() {
            self.stack.remove(&turn);
            self.gone.remove(&turn);
        }
        let turn = self.next_turn();
        self.stack.insert(turn, page);
        known.stack = Some(turn);
    }

    fn queue_last(&mut self, page: u64, known: &mut Known) {
        self.out_of_queue(known);
        let turn = self.next_turn();
        self.queue.insert(turn, page);
        known.queue = Some(turn);
    }

    fn out_of_queue(&mut self, known: &mut Known) {
        if let Some(turn) = known.queue.take() {
            self.queue.remove(&turn);
        }
    }

    /// Makes room among the close pages, and takes what is not close off the bottom.
    fn prune(&mut self) {
        while let Some((&turn, &page)) = self.stack.first_key_value() {
            let mut known = self.known[&page];
            if known.close && self.close <= self.close_max {
                break;
            }
            self.stack.remove(&turn);
            self.gone.remove(&turn);
            known.stack = None;
            if known.close {
                known.close = false;
                self.close -= 1;
                self.queue_last(page, &mut known);
            }
            self.keep(page, known);
        }
    }

    /// Notes what is known now; a page that is nowhere is forgotten.
    fn keep(&mut self, page: u64, known: Known) {
        if known.stack.is_none() && known.queue.is_none() {
            self.known.remove(&page);
        } else {
            self.known.insert(page, known);
        }
    }

    fn used(&mut self, page: CachedPage, added: bool) {
        let mut known = self.known.get(&page.page).copied().unwrap_or_default();
        let in_stack = known.stack.is_some();
        known.slot = Some(page.slot);
        let first_ones = added && !in_stack && self.close < self.close_max;
        if !known.close && (in_stack || first_ones) {
            known.close = true;
            self.close += 1;
            self.out_of_queue(&mut known);
        } else if !known.close {
            self.queue_last(page.page, &mut known);
        }
        self.stack_top(page.page, &mut known);
        self.known.insert(page.page, known);
        self.prune();
    }
}

impl Replacement for Lirs {
    fn update(&mut self, page: CachedPage, access: Access) {
        self.used(page, access == Access::Add);
    }

    fn remove(&mut self, page: CachedPage) {
        let Some(mut known) = self.known.remove(&page.page) else { return };
        self.out_of_queue(&mut known);
        if let Some(turn) = known.stack {
            self.stack.remove(&turn);
        }
        self.close -= usize::from(known.close);
        self.prune();
    }

    fn evict(&mut self, page: CachedPage) {
        let Some(mut known) = self.known.get(&page.page).copied() else { return };
        self.out_of_queue(&mut known);
        known.slot = None;
        match known.stack {
            Some(turn) if known.close => {
                self.stack.remove(&turn);
                (known.stack, known.close) = (None, false);
                self.close -= 1;
            }
            Some(turn) => drop(self.gone.insert(turn, page.page)),
            None => {}
        }
        self.keep(page.page, known);
        while self.gone.len() > self.gone_max {
            let Some((turn, page)) = self.gone.pop_first() else { break };
            self.stack.remove(&turn);
            self.known.remove(&page);
        }
        self.prune();
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let cached = |page: &u64| {
            let slot = self.known[page].slot?;
            Some(CachedPage { page: *page, slot })
        };
        let close = self.stack.values().filter(|page| self.known[page].close);
        let pages = self.queue.values().chain(close).filter_map(cached);
        out.extend(pages.filter(|page| eligible(*page)).take(count));
    }
}
