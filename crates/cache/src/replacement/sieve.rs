//! SIEVE: one queue that is never reordered; a hand moves from old to new and evicts pages that
//! have not been referenced since it passed.

use super::list::SlotList;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "sieve",
        summary: "one queue and a hand that evicts pages not referenced since it passed",
        origin: "Zhang et al., NSDI 2024 (SIEVE)",
        params: &[],
    },
    build: |_, _| Ok(Box::new(Sieve::default())),
};

/// Pages in order of arrival, and the hand.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sieve {
    list: SlotList,
    used: Vec<bool>,
    /// By slot, the number of the call that last chose it.
    chosen: Vec<u64>,
    /// Number of calls of `victims`.
    turn: u64,
    hand: Option<CachedPage>,
}

impl Replacement for Sieve {
    fn number_densely(&mut self) -> bool {
        true
    }

    fn number_slots(&mut self) -> bool {
        self.list.number();
        false
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        let slot = page.slot as usize;
        if slot >= self.used.len() {
            self.used.resize(slot + 1, false);
            self.chosen.resize(slot + 1, 0);
        }
        self.used[slot] = access != Access::Add;
        if access == Access::Add {
            self.list.push(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        if self.hand == Some(page) {
            self.hand = self.list.after(page.slot);
        }
        self.list.remove(page);
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        self.turn += 1;
        // One round clears every reference bit, so two rounds find all eligible pages.
        for _ in 0..2 * self.list.len() {
            if out.len() == wanted {
                break;
            }
            let Some(page) = self.hand.or_else(|| self.list.oldest()) else { break };
            self.hand = self.list.after(page.slot);
            let used = &mut self.used[page.slot as usize];
            let chosen = &mut self.chosen[page.slot as usize];
            if !eligible(page) || std::mem::take(used) || *chosen == self.turn {
                continue;
            }
            *chosen = self.turn;
            out.push(page);
        }
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        loop {
            let page = self.hand.or_else(|| self.list.oldest())?;
            self.hand = self.list.after(page.slot);
            if !std::mem::take(&mut self.used[page.slot as usize]) {
                self.list.remove(page);
                return Some(page);
            }
        }
    }
}
