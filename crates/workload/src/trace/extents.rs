//! Addresses for objects that a trace identifies by a number or a text.

use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::hash::Hash;

/// Lays objects out one after the other, in order of first appearance.
pub(crate) struct Extents<K> {
    /// First sector and sectors by object.
    extents: FxHashMap<K, (u64, u64)>,
    end: u64,
}

impl<K> Default for Extents<K> {
    fn default() -> Self {
        Self { extents: FxHashMap::default(), end: 0 }
    }
}

impl<K: Eq + Hash> Extents<K> {
    /// The first sector of an object of at least `sectors`. One that has grown gets a new extent.
    // Inlined, it slows down readers that use addresses as they are.
    #[inline(never)]
    pub fn locate<Q>(&mut self, object: &Q, sectors: u64) -> u64
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        match self.extents.get(object) {
            Some(&(start, length)) if length >= sectors => start,
            _ => {
                let start = self.end;
                self.extents.insert(object.to_owned(), (start, sectors));
                self.end = start.saturating_add(sectors);
                start
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_follow_one_another_and_grow_to_a_new_extent() {
        let mut texts = Extents::<Vec<u8>>::default();
        let mut at = |name: &str, sectors| texts.locate(name.as_bytes(), sectors);
        assert_eq!([at("a", 8), at("b", 1), at("a", 2), at("a", 16), at("c", 1)], [0, 8, 0, 9, 25]);
        let mut numbers = Extents::<u64>::default();
        assert_eq!(numbers.locate(&7, u64::MAX), 0);
        assert_eq!(numbers.locate(&8, 8), u64::MAX);
        assert_eq!(numbers.locate(&9, 8), u64::MAX, "addresses end, and are rejected later");
    }
}
