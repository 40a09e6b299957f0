//! Second chance: first in, first out, but a page used since it was looked at last is spared once.

use super::list::SlotList;
use super::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;

/// The registered entry.
pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "clock",
        summary: "first in, first out; a page used meanwhile gets a second chance",
        origin: "Corbato 1969 (CLOCK)",
        params: &[],
    },
    build: |_, _| Ok(Box::new(Clock::default())),
};

/// Pages in a row and whether they were used.
#[derive(Debug, Default)]
pub struct Clock {
    list: SlotList,
    used: Vec<bool>,
    /// Reused to choose.
    spared: Vec<CachedPage>,
}

impl Replacement for Clock {
    fn update(&mut self, page: CachedPage, access: Access) {
        let slot = page.slot as usize;
        if slot >= self.used.len() {
            self.used.resize(slot + 1, false);
        }
        self.used[slot] = access != Access::Add;
        if access == Access::Add {
            self.list.push(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.list.remove(page);
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let wanted = out.len() + count;
        let mut spared = std::mem::take(&mut self.spared);
        spared.clear();
        for page in self.list.iter().filter(|page| eligible(*page)) {
            if out.len() == wanted {
                break;
            }
            match std::mem::take(&mut self.used[page.slot as usize]) {
                true => spared.push(page),
                false => out.push(page),
            }
        }
        for &page in &spared {
            self.list.renew(page);
            if out.len() < wanted {
                out.push(page);
            }
        }
        self.spared = spared;
    }
}
