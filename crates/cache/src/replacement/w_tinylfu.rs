//! W-TinyLFU: a small LRU window, and a main segment that admits a page from the window only if it
//! was used more often than the page it would replace.

use super::list::SlotList;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "w-tinylfu",
        summary: "a window by last use; what was used more often stays in the main part",
        origin: "Einziger, Friedman and Manes, ACM ToS 2017 (W-TinyLFU)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(WTinyLfu::new(pages))),
};

/// Approximate recent access counts: a count-min sketch with counters up to 15, halved after ten
/// times as many accesses as pages.
#[derive(Debug, Serialize, Deserialize)]
struct Sketch {
    rows: [Vec<u8>; 4],
    mask: u64,
    uses: u64,
    uses_max: u64,
}

const SEEDS: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];

impl Sketch {
    fn new(pages: u32) -> Self {
        let width = u64::from(pages.max(16)).next_power_of_two();
        let row = vec![0; width as usize];
        let rows = [row.clone(), row.clone(), row.clone(), row];
        Self { rows, mask: width - 1, uses: 0, uses_max: 10 * u64::from(pages.max(16)) }
    }

    fn cell(&self, row: usize, page: u64) -> usize {
        let mixed = (page ^ (page >> 31)).wrapping_mul(SEEDS[row]);
        ((mixed >> 32) & self.mask) as usize
    }

    fn count(&mut self, page: u64) {
        for row in 0..4 {
            let cell = self.cell(row, page);
            self.rows[row][cell] = (self.rows[row][cell] + 1).min(15);
        }
        self.uses += 1;
        if self.uses == self.uses_max {
            self.uses /= 2;
            self.rows.iter_mut().flatten().for_each(|cell| *cell /= 2);
        }
    }

    fn estimate(&self, page: u64) -> u8 {
        (0..4).map(|row| self.rows[row][self.cell(row, page)]).min().unwrap_or(0)
    }
}

/// The window, the probation and protected segments of the main part, and the sketch.
#[derive(Debug, Serialize, Deserialize)]
pub struct WTinyLfu {
    window: SlotList,
    probation: SlotList,
    protected: SlotList,
    sketch: Sketch,
    window_max: usize,
    protected_max: usize,
    main_max: usize,
    /// The admitted pages; reused.
    accepted: Vec<CachedPage>,
    /// By slot, the number of the call that last chose it.
    chosen: Vec<u64>,
    /// Number of calls of `victims`.
    turn: u64,
}

impl WTinyLfu {
    /// The window has a hundredth of the cache, the protected segment four fifths of the rest.
    fn new(pages: u32) -> Self {
        let window_max = (pages as usize / 100).max(1);
        Self {
            window: SlotList::default(),
            probation: SlotList::default(),
            protected: SlotList::default(),
            sketch: Sketch::new(pages),
            window_max,
            protected_max: (pages as usize).saturating_sub(window_max) * 4 / 5,
            main_max: (pages as usize).saturating_sub(window_max),
            accepted: Vec::new(),
            chosen: Vec::new(),
            turn: 0,
        }
    }

    /// While the main part is not full, pages beyond the size of the window move there.
    fn fill_main(&mut self) {
        while self.window.len() > self.window_max
            && self.probation.len() + self.protected.len() < self.main_max
        {
            let Some(oldest) = self.window.oldest() else { break };
            self.window.remove(oldest);
            self.probation.push(oldest);
        }
    }

    fn protect(&mut self, page: CachedPage) {
        self.probation.remove(page);
        self.protected.push(page);
        while self.protected.len() > self.protected_max.max(1) {
            let Some(oldest) = self.protected.oldest() else { break };
            self.protected.remove(oldest);
            self.probation.push(oldest);
        }
    }
}

impl Replacement for WTinyLfu {
    fn update(&mut self, page: CachedPage, access: Access) {
        self.sketch.count(page.page);
        if access == Access::Add {
            self.window.push(page);
            self.fill_main();
        } else if self.window.contains(page) {
            self.window.renew(page);
        } else if self.protected.contains(page) {
            self.protected.renew(page);
        } else if self.probation.contains(page) {
            self.protect(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.window.remove(page);
        self.probation.remove(page);
        self.protected.remove(page);
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        let mut accepted = std::mem::take(&mut self.accepted);
        accepted.clear();
        self.turn += 1;
        {
            // A page is about to enter the window, so its oldest has to leave.
            let beyond = (self.window.len() + 1).saturating_sub(self.window_max);
            let mut candidates = self.window.iter().take(beyond);
            let mut main = self.probation.iter().chain(self.protected.iter());
            while out.len() < wanted {
                let Some(candidate) = candidates.next() else { break };
                let Some(victim) = main.find(|page| eligible(*page)) else {
                    out.extend(Some(candidate).filter(|page| eligible(*page)));
                    continue;
                };
                let uses = |page: CachedPage| self.sketch.estimate(page.page);
                if uses(candidate) > uses(victim) || !eligible(candidate) {
                    accepted.push(candidate);
                    out.push(victim);
                } else {
                    out.push(candidate);
                }
            }
        }
        // Too few candidates: first the main part in order, then the window.
        let from = wanted - count;
        if out.len() < wanted {
            for page in &out[from..] {
                let slot = page.slot as usize;
                if slot >= self.chosen.len() {
                    self.chosen.resize(slot + 1, 0);
                }
                self.chosen[slot] = self.turn;
            }
            let is_chosen = |page: &CachedPage| {
                self.chosen.get(page.slot as usize).is_some_and(|turn| *turn == self.turn)
            };
            let all = self.probation.iter().chain(self.protected.iter()).chain(self.window.iter());
            let rest = all.filter(|page| eligible(*page) && !is_chosen(page));
            out.extend(rest.take(wanted - out.len()));
        }
        for &page in &accepted {
            self.window.remove(page);
            self.probation.push(page);
        }
        self.accepted = accepted;
    }
}
