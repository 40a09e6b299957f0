//! ARC: pages seen once and pages seen again share the cache in a proportion that learns from
//! which of the two should have been kept.

use super::ghost::Ghost;
use super::list::SlotList;
use super::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_engine::registry::Description;

/// The registered entry.
pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "arc",
        summary: "pages seen once and pages seen again, in a proportion that adapts",
        origin: "Megiddo and Modha, FAST 2003 (ARC)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(Arc::new(pages))),
};

/// The lists T1, T2, B1 and B2, and the wanted length of T1.
#[derive(Debug)]
pub struct Arc {
    once: SlotList,
    again: SlotList,
    once_left: Ghost,
    again_left: Ghost,
    wanted_once: f64,
    pages: usize,
}

impl Arc {
    fn new(pages: u32) -> Self {
        Self {
            once: SlotList::default(),
            again: SlotList::default(),
            once_left: Ghost::default(),
            again_left: Ghost::default(),
            wanted_once: 0.0,
            pages: pages as usize,
        }
    }

    fn add(&mut self, page: CachedPage) {
        let (once, again) = (self.once_left.len() as f64, self.again_left.len() as f64);
        if self.once_left.take(page.page) {
            let step = (again / once).max(1.0);
            self.wanted_once = (self.wanted_once + step).min(self.pages as f64);
            self.again.push(page);
        } else if self.again_left.take(page.page) {
            let step = (once / again).max(1.0);
            self.wanted_once = (self.wanted_once - step).max(0.0);
            self.again.push(page);
        } else {
            self.once.push(page);
        }
    }
}

impl Replacement for Arc {
    fn update(&mut self, page: CachedPage, access: Access) {
        if access == Access::Add {
            self.add(page);
            return;
        }
        self.once.remove(page);
        self.again.remove(page);
        self.again.push(page);
    }

    fn remove(&mut self, page: CachedPage) {
        if self.once.contains(page) {
            self.once.remove(page);
            self.once_left.add(page.page, self.pages.saturating_sub(self.once.len()).max(1));
        } else if self.again.contains(page) {
            self.again.remove(page);
            let others = self.once.len() + self.again.len() + self.once_left.len();
            self.again_left.add(page.page, (2 * self.pages).saturating_sub(others).max(1));
        }
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let wanted = out.len() + count;
        let mut once = self.once.iter().filter(|page| eligible(*page)).peekable();
        let mut again = self.again.iter().filter(|page| eligible(*page)).peekable();
        let mut left = self.once.len() as f64;
        while out.len() < wanted {
            let from_once = left > self.wanted_once && left > 0.0;
            let next = match (from_once, once.peek().is_some(), again.peek().is_some()) {
                (_, false, false) => break,
                (true, true, _) | (false, true, false) => {
                    left -= 1.0;
                    once.next()
                }
                _ => again.next(),
            };
            out.extend(next);
        }
    }
}
