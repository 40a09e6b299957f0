//! CLOCK, or second chance: first in, first out, except that a referenced page gets another round.

use super::list::SlotList;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "clock",
        summary: "first in, first out, with a second chance for referenced pages",
        origin: "Corbato 1969 (CLOCK)",
        params: &[],
    },
    build: |_, _| Ok(Box::new(Clock::default())),
};

/// The queue and the reference bits.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Clock {
    list: SlotList,
    referenced: Vec<bool>,
    /// The referenced pages passed by; reused.
    spared: Vec<CachedPage>,
}

impl Replacement for Clock {
    fn number_densely(&mut self) -> bool {
        true
    }

    fn number_slots(&mut self) -> bool {
        self.list.number();
        false
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        let slot = page.slot as usize;
        if slot >= self.referenced.len() {
            self.referenced.resize(slot + 1, false);
        }
        self.referenced[slot] = access != Access::Add;
        if access == Access::Add {
            self.list.push(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.list.remove(page);
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        let mut spared = std::mem::take(&mut self.spared);
        spared.clear();
        for page in self.list.iter().filter(|page| eligible(*page)) {
            if out.len() == wanted {
                break;
            }
            match std::mem::take(&mut self.referenced[page.slot as usize]) {
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

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        loop {
            let page = self.list.oldest()?;
            if !std::mem::take(&mut self.referenced[page.slot as usize]) {
                return self.list.pop();
            }
            self.list.renew(page);
        }
    }
}
