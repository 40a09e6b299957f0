//! One bit per sector of a large device, in pages allocated when a bit of them is first set.

use crate::paged::directory::bits as word_bits;
use serde::{Deserialize, Serialize};

/// Sectors of a page.
const PAGE: u64 = 1 << 15;
const WORDS: usize = (PAGE / 64) as usize;

/// A bitmap.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Bits {
    pages: Vec<Option<Box<[u64]>>>,
    /// Number of bits set.
    count: u64,
}

/// The words that a range covers: page, word in the page, bits of the word.
fn words(from: u64, to: u64) -> impl Iterator<Item = (usize, usize, u64)> {
    let first = from / 64;
    let last = to.div_ceil(64).max(first);
    (first..last).map(move |word| {
        let start = word * 64;
        let bits = word_bits(from.saturating_sub(start), (to - start).min(64));
        ((start / PAGE) as usize, (word % WORDS as u64) as usize, bits)
    })
}

impl Bits {
    /// A bitmap of `sectors` sectors, none of them set.
    pub fn new(sectors: u64) -> Self {
        Self { pages: vec![None; sectors.div_ceil(PAGE) as usize], count: 0 }
    }

    /// Sets sectors `from..to`.
    pub fn set(&mut self, from: u64, to: u64) {
        for (page, word, bits) in words(from, to) {
            let page = self.pages[page].get_or_insert_with(|| vec![0; WORDS].into());
            self.count += u64::from((bits & !page[word]).count_ones());
            page[word] |= bits;
        }
    }

    /// Clears sectors `from..to`.
    pub fn clear(&mut self, from: u64, to: u64) {
        for (page, word, bits) in words(from, to) {
            if let Some(page) = &mut self.pages[page] {
                self.count -= u64::from((bits & page[word]).count_ones());
                page[word] &= !bits;
            }
        }
    }

    /// Whether no bit is set; takes constant time.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn word(&self, page: usize, word: usize) -> u64 {
        self.pages.get(page).and_then(Option::as_ref).map_or(0, |page| page[word])
    }

    /// Whether all of sectors `from..to` are set.
    pub fn all(&self, from: u64, to: u64) -> bool {
        words(from, to).all(|(page, word, bits)| self.word(page, word) & bits == bits)
    }

    /// Number of sectors `from..to` that are set.
    pub fn count(&self, from: u64, to: u64) -> u64 {
        let set = |(page, word, bits): (usize, usize, u64)| {
            u64::from((self.word(page, word) & bits).count_ones())
        };
        words(from, to).map(set).sum()
    }

    /// Whether any of sectors `from..to` is set.
    pub fn any(&self, from: u64, to: u64) -> bool {
        words(from, to).any(|(page, word, bits)| self.word(page, word) & bits != 0)
    }

    /// The first run of set sectors in `from..to`, cut to `longest` sectors.
    pub fn run(&self, from: u64, to: u64, longest: u64) -> Option<(u64, u64)> {
        let start = self.next(from, to, 0)?;
        let most = to.min(start.saturating_add(longest));
        Some((start, self.next(start, most, u64::MAX).unwrap_or(most)))
    }

    /// The first sector of `from..to` whose bit differs from those of `flip`, all ones or zeros.
    fn next(&self, from: u64, to: u64, flip: u64) -> Option<u64> {
        let mut at = from;
        while at < to {
            let (page, word) = ((at / PAGE) as usize, (at / 64 % WORDS as u64) as usize);
            if flip == 0 && self.pages.get(page).is_some_and(Option::is_none) {
                at = (at / PAGE + 1) * PAGE;
                continue;
            }
            let bits = (self.word(page, word) ^ flip) & word_bits(at % 64, 64);
            if bits != 0 {
                let found = at / 64 * 64 + u64::from(bits.trailing_zeros());
                return (found < to).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_set_cleared_and_found() {
        let mut bits = Bits::new(3 * PAGE);
        assert_eq!(bits.run(0, 3 * PAGE, 100), None);
        bits.set(PAGE - 3, PAGE + 5);
        assert!(bits.all(PAGE - 3, PAGE + 5) && !bits.all(PAGE - 4, PAGE) && bits.any(0, PAGE));
        assert!(!bits.any(PAGE + 5, 3 * PAGE) && !bits.any(7, 7) && bits.all(7, 7));
        assert_eq!(bits.run(0, 3 * PAGE, 100), Some((PAGE - 3, PAGE + 5)));
        assert_eq!(bits.run(PAGE, 3 * PAGE, 2), Some((PAGE, PAGE + 2)));
        assert_eq!(bits.run(0, PAGE - 1, 9), Some((PAGE - 3, PAGE - 1)));
        bits.clear(PAGE - 2, PAGE + 4);
        assert_eq!(bits.run(0, 3 * PAGE, 9), Some((PAGE - 3, PAGE - 2)));
        assert_eq!(bits.run(PAGE - 2, 3 * PAGE, 9), Some((PAGE + 4, PAGE + 5)));
        bits.clear(0, 3 * PAGE);
        assert!(!bits.any(0, 3 * PAGE));
        let mut bits = Bits::new(3 * PAGE);
        bits.set(PAGE - 3, PAGE);
        assert_eq!(bits.run(0, 3 * PAGE, 100), Some((PAGE - 3, PAGE)), "no page follows");
    }

    #[test]
    fn it_is_empty_when_the_last_bit_is_cleared() {
        let mut bits = Bits::new(2 * PAGE);
        assert!(bits.is_empty());
        bits.set(10, 200);
        bits.set(100, 300);
        bits.clear(0, 299);
        bits.clear(0, 299);
        assert!(!bits.is_empty());
        bits.clear(299, 2 * PAGE);
        assert!(bits.is_empty());
    }
}
