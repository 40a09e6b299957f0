//! First in, first out: evicts the page that was added first.

use super::list::SlotList;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "fifo",
        summary: "first in, first out: evicts the page that was added first",
        origin: "common knowledge",
        params: &[],
    },
    build: |_, _| Ok(Box::new(Fifo::default())),
};

/// Pages in order of arrival.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Fifo(SlotList);

impl Replacement for Fifo {
    fn number_densely(&mut self) -> bool {
        true
    }

    fn number_slots(&mut self) -> bool {
        self.0.number();
        false
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        if access == Access::Add {
            self.0.push(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.0.remove(page);
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        out.extend(self.0.iter().filter(|page| eligible(*page)).take(count));
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        self.0.pop()
    }
}
