//! A map from page numbers to small numbers.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// The map. A hash map, or, where page numbers are dense, a table by page number.
#[derive(Debug, Serialize, Deserialize)]
pub enum PageIndex {
    Sparse(FxHashMap<u64, u32>),
    Dense { table: Vec<u32>, len: usize },
}

impl Default for PageIndex {
    fn default() -> Self {
        Self::Sparse(FxHashMap::default())
    }
}

impl PageIndex {
    /// A map of pages that are numbered densely from zero.
    pub const fn dense() -> Self {
        Self::Dense { table: Vec::new(), len: 0 }
    }

    /// Number of pages.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Sparse(map) => map.len(),
            Self::Dense { len, .. } => *len,
        }
    }

    /// Whether the map is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of `page`.
    #[inline]
    pub fn get(&self, page: u64) -> Option<u32> {
        match self {
            Self::Sparse(map) => map.get(&page).copied(),
            Self::Dense { table, .. } => {
                table.get(page as usize).copied().filter(|number| *number != NONE)
            }
        }
    }

    /// Sets the number of `page`, below `u32::MAX`; returns the one it had.
    #[inline]
    pub fn insert(&mut self, page: u64, number: u32) -> Option<u32> {
        match self {
            Self::Sparse(map) => map.insert(page, number),
            Self::Dense { table, len } => {
                let page = page as usize;
                if page >= table.len() {
                    table.resize((page + 1).next_power_of_two(), NONE);
                }
                let before = std::mem::replace(&mut table[page], number);
                *len += usize::from(before == NONE);
                (before != NONE).then_some(before)
            }
        }
    }

    /// Removes `page`; returns its number.
    #[inline]
    pub fn remove(&mut self, page: u64) -> Option<u32> {
        match self {
            Self::Sparse(map) => map.remove(&page),
            Self::Dense { table, len } => {
                let number = std::mem::replace(table.get_mut(page as usize)?, NONE);
                *len -= usize::from(number != NONE);
                (number != NONE).then_some(number)
            }
        }
    }

    /// Removes all pages.
    pub fn clear(&mut self) {
        match self {
            Self::Sparse(map) => map.clear(),
            Self::Dense { table, len } => {
                table.fill(NONE);
                *len = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;

    #[test]
    fn a_dense_index_is_a_map() {
        let (mut sparse, mut dense) = (PageIndex::default(), PageIndex::dense());
        let mut stream = Stream::new(1, "index");
        for turn in 0..10_000 {
            let page = stream.below(300);
            match stream.below(3) {
                0 => assert_eq!(sparse.remove(page), dense.remove(page)),
                _ => assert_eq!(sparse.insert(page, turn), dense.insert(page, turn)),
            }
            let page = stream.below(400);
            assert_eq!(sparse.get(page), dense.get(page));
            assert_eq!(sparse.len(), dense.len());
        }
        [&mut sparse, &mut dense].into_iter().for_each(PageIndex::clear);
        assert!(sparse.is_empty() && dense.is_empty() && dense.get(7).is_none());
    }
}
