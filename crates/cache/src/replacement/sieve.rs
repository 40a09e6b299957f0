//! One queue that is never reordered; a hand goes from old to new and takes what was not used.

use super::list::SlotList;
use super::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;

/// The registered entry.
pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "sieve",
        summary: "one queue and a hand that spares what was used since it came by",
        origin: "Zhang et al., NSDI 2024 (SIEVE)",
        params: &[],
    },
    build: |_, _| Ok(Box::new(Sieve::default())),
};

/// Pages in the order they came, and the hand.
#[derive(Debug, Default)]
pub struct Sieve {
    list: SlotList,
    used: Vec<bool>,
    /// By slot, the last choice of victims that took it.
    chosen: Vec<u64>,
    /// Choices so far.
    turn: u64,
    hand: Option<CachedPage>,
}

impl Replacement for Sieve {
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

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let wanted = out.len() + count;
        self.turn += 1;
        // Once round clears every mark, so what is eligible is found in two rounds.
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
}
