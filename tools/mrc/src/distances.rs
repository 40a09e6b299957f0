//! LRU stack distances of pages that are numbered densely, of all accesses.

use hybridsim_workload::profile::SlotSet;

const NEVER: u32 = u32::MAX;
const SLOTS_MIN: usize = 1 << 16;

/// Counts accesses by the number of other pages accessed since the last access to the page.
pub struct Distances {
    /// Slot of the last access by page; slots are in order of the last access.
    last: Vec<u32>,
    pages: Vec<u32>,
    slots: SlotSet,
    /// Distinct pages so far.
    distinct: u32,
    counts: Vec<u64>,
}

impl Default for Distances {
    fn default() -> Self {
        let (last, pages, counts) = (Vec::new(), Vec::new(), Vec::new());
        Self { last, pages, slots: SlotSet::new(SLOTS_MIN), distinct: 0, counts }
    }
}

impl Distances {
    /// Counts accesses to pages below `pages`.
    pub fn add(&mut self, accesses: impl Iterator<Item = u32>, pages: usize) {
        self.last.resize(pages, NEVER);
        self.counts.resize(pages, 0);
        for page in accesses {
            if self.pages.len() == self.slots.capacity() {
                self.renumber();
            }
            let slot = self.pages.len() as u32;
            let before = std::mem::replace(&mut self.last[page as usize], slot);
            if before == NEVER {
                self.distinct += 1;
            } else {
                let since = self.distinct - self.slots.count_up_to(before);
                self.counts[since as usize] += 1;
                self.slots.remove(before);
            }
            self.slots.insert(slot);
            self.pages.push(page);
        }
    }

    /// Drops slots of former accesses; the set keeps space for as many again as there are pages.
    fn renumber(&mut self) {
        let mut count = 0;
        for slot in 0..self.pages.len() {
            let page = self.pages[slot];
            if self.last[page as usize] == slot as u32 {
                self.last[page as usize] = count;
                self.pages[count as usize] = page;
                count += 1;
            }
        }
        self.pages.truncate(count as usize);
        if count as usize > self.slots.capacity() / 2 {
            self.slots = SlotSet::new(self.slots.capacity() * 2);
        }
        self.slots.fill(count);
    }

    /// Hits of LRU caches of these sizes in pages, in ascending order.
    pub fn hits(&self, sizes: &[u64]) -> Vec<u64> {
        let (mut at, mut sum) = (0, 0);
        let mut up_to = |size: &u64| {
            let end = usize::try_from(*size).unwrap_or(usize::MAX).min(self.counts.len());
            sum += self.counts[at..end].iter().sum::<u64>();
            at = end;
            sum
        };
        sizes.iter().map(&mut up_to).collect()
    }
}
