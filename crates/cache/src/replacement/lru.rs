//! Evicts the least recently used page.

use super::list::SlotList;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "lru",
        summary: "least recently used: evicts the page not read or written for longest",
        origin: "konanki, section 3.3 (the scheme it supplies)",
        params: &[],
    },
    build: |_, _| Ok(Box::new(Lru::default())),
};

/// Pages by last use.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Lru(SlotList);

impl Replacement for Lru {
    fn number_densely(&mut self) -> bool {
        true
    }

    fn number_slots(&mut self) -> bool {
        self.0.number();
        false
    }

    #[inline(always)]
    fn update(&mut self, page: CachedPage, _access: Access) {
        self.0.renew(page);
    }

    fn remove(&mut self, page: CachedPage) {
        self.0.remove(page);
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        out.extend(self.0.iter().filter(|page| eligible(*page)).take(count));
    }

    #[inline(always)]
    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        self.0.pop()
    }

    fn touch(&self, slot: u32) -> u64 {
        self.0.touch(slot)
    }
}
