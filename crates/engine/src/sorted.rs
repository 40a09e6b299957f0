//! A sorted map that allocates no memory once it has reached its largest size, and on top of it a
//! queue of requests sorted by address.
//!
//! Entries are stored in order in chunks of bounded length. A search is two binary searches; an
//! insertion moves at most the entries of one chunk and, once per chunk's worth of insertions, the
//! list of chunks. Freed chunks are reused.

use crate::schedule::Queued;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Entries in a chunk at most.
const CHUNK: usize = 64;

/// A map sorted by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SortedMap<K, V> {
    /// In order; none is empty.
    chunks: Vec<Vec<(K, V)>>,
    spare: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), spare: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Copy, V: Copy> SortedMap<K, V> {
    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the map has no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries and keeps their memory.
    pub fn clear(&mut self) {
        while let Some(mut chunk) = self.chunks.pop() {
            chunk.clear();
            self.spare.push(chunk);
        }
        self.len = 0;
    }

    /// Chunk and index of the first entry at or after `key`; past the last entry if there is none.
    // Always inlined: a lock of a range searches three times, mostly in a chunk of few entries.
    #[inline(always)]
    fn position(&self, key: K) -> (usize, usize) {
        let chunk = self.chunks.partition_point(|chunk| chunk[chunk.len() - 1].0 < key);
        let at = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(|(k, _)| *k < key));
        (chunk, at)
    }

    fn at(&self, (chunk, at): (usize, usize)) -> Option<(K, V)> {
        self.chunks.get(chunk)?.get(at).copied()
    }

    /// The value of `key`.
    pub fn get(&self, key: K) -> Option<V> {
        self.at(self.position(key)).filter(|entry| entry.0 == key).map(|entry| entry.1)
    }

    /// A reference to the value of `key`.
    pub fn get_ref(&self, key: K) -> Option<&V> {
        let (chunk, at) = self.position(key);
        let (found, value) = self.chunks.get(chunk)?.get(at)?;
        (*found == key).then_some(value)
    }

    /// The value of `key`, mutably.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let (chunk, at) = self.position(key);
        let entry = self.chunks.get_mut(chunk)?.get_mut(at)?;
        (entry.0 == key).then_some(&mut entry.1)
    }

    /// The first entry at or after `key`.
    pub fn at_or_after(&self, key: K) -> Option<(K, V)> {
        self.at(self.position(key))
    }

    /// The last entry before `key`.
    pub fn before(&self, key: K) -> Option<(K, V)> {
        match self.position(key) {
            (0, 0) => None,
            (chunk, 0) => self.chunks[chunk - 1].last().copied(),
            (chunk, at) => self.at((chunk, at - 1)),
        }
    }

    /// The first entry.
    pub fn first(&self) -> Option<(K, V)> {
        self.at((0, 0))
    }

    /// Entries with keys in `range`, in order.
    pub fn range(&self, range: Range<K>) -> impl Iterator<Item = (K, V)> + '_ {
        self.from(range.start).take_while(move |entry| entry.0 < range.end)
    }

    /// Entries at or after `key`, in order.
    pub fn from(&self, key: K) -> impl Iterator<Item = (K, V)> + '_ {
        let (chunk, at) = self.position(key);
        let rest = self.chunks.get(chunk).map_or(&[][..], |chunk| &chunk[at..]);
        let more = self.chunks.get(chunk + 1..).unwrap_or(&[]);
        rest.iter().chain(more.iter().flatten()).copied()
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// Sets the value of `key` and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (mut chunk, mut at) = self.position(key);
        if let Some(entry) = self.chunks.get_mut(chunk).and_then(|chunk| chunk.get_mut(at))
            && entry.0 == key
        {
            return Some(std::mem::replace(&mut entry.1, value));
        }
        self.len += 1;
        if chunk == self.chunks.len() {
            // After all others: into the last chunk.
            if chunk == 0 {
                let empty = self.empty();
                self.chunks.push(empty);
            }
            chunk = self.chunks.len() - 1;
            at = self.chunks[chunk].len();
        }
        if self.chunks[chunk].len() == CHUNK {
            let mut upper = self.empty();
            // Ascending keys leave full chunks.
            let keep = if at == CHUNK { CHUNK } else { CHUNK / 2 };
            upper.extend(self.chunks[chunk].drain(keep..));
            self.chunks.insert(chunk + 1, upper);
            if at >= keep {
                (chunk, at) = (chunk + 1, at - keep);
            }
        }
        self.chunks[chunk].insert(at, (key, value));
        None
    }

    fn empty(&mut self) -> Vec<(K, V)> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK))
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let (chunk, at) = self.position(key);
        self.at((chunk, at)).filter(|entry| entry.0 == key)?;
        let (_, value) = self.chunks[chunk].remove(at);
        self.len -= 1;
        let few = |chunk: Option<&Vec<(K, V)>>| chunk.map_or(CHUNK, Vec::len);
        let left = self.chunks[chunk].len();
        // The usual case of a lock: one chunk, with none to join.
        if self.chunks.len() == 1 && left > 0 {
            return Some(value);
        }
        if left == 0 {
            let empty = self.chunks.remove(chunk);
            self.spare.push(empty);
        } else if left + few(self.chunks.get(chunk + 1)) <= CHUNK / 2 {
            self.join(chunk);
        } else if chunk > 0 && left + self.chunks[chunk - 1].len() <= CHUNK / 2 {
            self.join(chunk - 1);
        }
        Some(value)
    }

    /// Appends the entries of the next chunk to this one.
    fn join(&mut self, chunk: usize) {
        let mut next = self.chunks.remove(chunk + 1);
        self.chunks[chunk].append(&mut next);
        self.spare.push(next);
    }
}

/// Sort key of a queued request: its position (first sector or cylinder), then its arrival number.
pub type Key = (u64, u64);

/// A queue of requests sorted by position, those at the same position by arrival.
#[derive(Debug, Default)]
pub struct Sorted {
    items: SortedMap<Key, Queued>,
    arrivals: u64,
}

impl Sorted {
    /// Number of requests in the queue.
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the queue is empty.
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds a request, sorted by its address.
    pub fn push(&mut self, item: Queued) {
        self.push_at(item.request.lba.0, item);
    }

    /// Adds a request, sorted by `position`.
    pub fn push_at(&mut self, position: u64, item: Queued) {
        self.insert((position, self.arrivals), item);
        self.arrivals += 1;
    }

    /// Adds a request whose arrival number the caller counts.
    pub fn insert(&mut self, key: Key, item: Queued) {
        self.items.insert(key, item);
    }

    /// The first key at or after `position`.
    pub fn at_or_after(&self, position: u64) -> Option<Key> {
        self.items.at_or_after((position, 0)).map(|entry| entry.0)
    }

    /// The key that follows `key`.
    pub fn after(&self, (position, arrival): Key) -> Option<Key> {
        self.items.at_or_after((position, arrival + 1)).map(|entry| entry.0)
    }

    /// Key of the first request to arrive at the largest position below `position`.
    pub fn below(&self, position: u64) -> Option<Key> {
        let ((below, _), _) = self.items.before((position, 0))?;
        self.at_or_after(below)
    }

    /// The request with `key`.
    pub fn get(&self, key: Key) -> Option<&Queued> {
        self.items.get_ref(key)
    }

    /// Removes the request with `key` and returns it.
    pub fn take(&mut self, key: Key) -> Option<Queued> {
        self.items.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn does_what_a_tree_does() {
        let mut stream = Stream::new(1, "sorted");
        for keys in [10, 300, 5000] {
            let (mut map, mut tree) = (SortedMap::default(), BTreeMap::new());
            for step in 0..20_000u64 {
                let key = stream.below(keys);
                // It grows, then shrinks.
                if stream.chance(if step < 10_000 { 0.7 } else { 0.3 }) {
                    assert_eq!(map.insert(key, step), tree.insert(key, step));
                } else {
                    assert_eq!(map.remove(key), tree.remove(&key));
                }
                assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
                let key = stream.below(keys);
                assert_eq!(map.get(key), tree.get(&key).copied());
                let own = |entry: Option<(&u64, &u64)>| entry.map(|(key, value)| (*key, *value));
                assert_eq!(map.before(key), own(tree.range(..key).next_back()));
                assert_eq!(map.at_or_after(key), own(tree.range(key..).next()));
                assert_eq!(map.first(), own(tree.first_key_value()));
                if step % 100 == 0 {
                    let to = key + stream.below(100);
                    let range: Vec<_> = tree.range(key..to).map(|(k, v)| (*k, *v)).collect();
                    assert_eq!(map.range(key..to).collect::<Vec<_>>(), range);
                    assert!(map.iter().eq(tree.iter().map(|(k, v)| (*k, *v))));
                    assert!(map.chunks.iter().all(|chunk| !chunk.is_empty()));
                }
            }
            map.clear();
            assert_eq!((map.len(), map.first()), (0, None));
        }
    }

    #[test]
    fn rising_keys_fill_chunks_and_freed_ones_are_used_again() {
        let mut map = SortedMap::default();
        for round in 0..50u64 {
            (0..6400).for_each(|key| assert_eq!(map.insert(round * 6400 + key, ()), None));
            (0..6400).for_each(|key| assert_eq!(map.remove(round * 6400 + key), Some(())));
            assert_eq!((map.chunks.len(), map.spare.len()), (0, 100));
        }
    }
}
