//! Tables of numbers with as many bits per entry as the largest number needs.
//!
//! On a device of 64 GiB the tables from logical to physical pages and back take most of the memory
//! and cause most cache misses; entries of 24 or 25 bits instead of 32 save a quarter of both.
//!
//! Entries are stored complemented, so that one without a number is zero: memory that the system
//! provides zeroed is a table without numbers, and takes space only where one is stored.

use crate::bytes::Bytes;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use std::fmt;

/// The initial value of every entry: no number.
const NONE: u32 = u32::MAX;

/// The usual size of a cache line; only speed depends on it.
const CACHE_LINE_BYTES: usize = 64;

/// An entry lies within this many bytes from its first one.
const WORD_BYTES: usize = size_of::<u64>();

/// A table of numbers below 2^32 - 1, or [`u32::MAX`] for none.
///
/// All entries widen when a number needs more bits.
pub struct Packed {
    /// The entries from the lowest bit on, and padding so that a whole word can be read at the last
    /// entry.
    bytes: Bytes,
    length: usize,
    /// Bits of an entry.
    width: u32,
    /// All bits of an entry: those of no number, before they are complemented.
    mask: u32,
}

/// Bits of an entry for numbers up to `largest` and for none.
pub const fn width_for(largest: u32) -> u32 {
    match largest {
        NONE => 32,
        _ => u32::BITS - (largest + 1).leading_zeros(),
    }
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("the slice has the length of a word"))
}

#[inline]
fn word_mut(bytes: &mut [u8], at: usize) -> &mut [u8; WORD_BYTES] {
    bytes[at..].first_chunk_mut().expect("there is padding behind the last entry")
}

/// Bytes of `length` entries and the padding behind them.
const fn bytes_for(length: usize, width: u32) -> usize {
    (length as u64 * width as u64).div_ceil(8) as usize + WORD_BYTES - 1
}

impl Packed {
    /// A table of `length` entries, none of which holds a number, for numbers up to `largest`.
    pub fn new(length: usize, largest: u32) -> Self {
        let width = width_for(largest);
        let bytes = Bytes::zeroed(bytes_for(length, width));
        Self { bytes, length, width, mask: u32::MAX >> (32 - width) }
    }

    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes of memory once all entries hold numbers.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Prepares for most entries to hold numbers soon ([`Bytes::expect_filling`]).
    pub fn expect_filling(&mut self) {
        self.bytes.expect_filling();
    }

    /// The first byte of entry `index`, and its first bit there.
    #[inline]
    const fn position(&self, index: usize) -> (usize, u32) {
        let bit = index as u64 * self.width as u64;
        ((bit / 8) as usize, (bit % 8) as u32)
    }

    /// The number at `index`, or [`u32::MAX`].
    ///
    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        assert!(index < self.length, "no entry {index}");
        let (at, shift) = self.position(index);
        let value = !(word(&self.bytes[at..at + WORD_BYTES]) >> shift) as u32 & self.mask;
        if value == self.mask { NONE } else { value }
    }

    /// Stores `value` at `index`.
    ///
    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn set(&mut self, index: usize, value: u32) {
        self.replace(index, value);
    }

    /// Stores at each of `indices` the next number from `first` on, without its lowest `dropped`
    /// bits.
    ///
    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn set_ascending(&mut self, indices: &[u32], first: u32, dropped: u32) {
        let Some(last) = indices.len().checked_sub(1) else { return };
        let largest = (first + last as u32) >> dropped;
        if largest >= self.mask {
            self.widen(largest);
        }
        let (length, width, mask) = (self.length, self.width, u64::from(self.mask));
        let bytes = &mut self.bytes[..];
        for (number, index) in (first..).zip(indices) {
            let index = *index as usize;
            assert!(index < length, "no entry {index}");
            let bit = index as u64 * u64::from(width);
            let (at, shift) = ((bit / 8) as usize, bit % 8);
            let stored = word_mut(bytes, at);
            let others = u64::from_le_bytes(*stored) & !(mask << shift);
            let complement = mask ^ u64::from(number >> dropped);
            *stored = (others | complement << shift).to_le_bytes();
        }
    }

    /// Stores `value` at `index` and returns the previous value.
    ///
    /// # Panics
    /// When there is no such entry.
    // Always inlined: every page written changes an entry of two tables.
    #[inline(always)]
    pub fn replace(&mut self, index: usize, value: u32) -> u32 {
        assert!(index < self.length, "no entry {index}");
        if value >= self.mask && value != NONE {
            self.widen(value);
        }
        let (at, shift) = self.position(index);
        let stored = word_mut(&mut self.bytes, at);
        let (both, mask) = (u64::from_le_bytes(*stored), u64::from(self.mask));
        let new = both & !(mask << shift) | (!u64::from(value) & mask) << shift;
        *stored = new.to_le_bytes();
        let before = !(both >> shift) as u32 & self.mask;
        if before == self.mask { NONE } else { before }
    }

    /// Stores `values` from entry `first` on. Faster than single stores: each word is written once,
    /// so that no load waits for a preceding partial store.
    ///
    /// # Panics
    /// When the table is too short.
    #[inline]
    pub fn set_run(&mut self, first: usize, values: &[u32]) {
        if let [value] = values {
            return self.set(first, *value);
        }
        assert!(first + values.len() <= self.length, "no {} entries from {first}", values.len());
        let largest = values.iter().copied().filter(|value| *value != NONE).max().unwrap_or(0);
        if largest >= self.mask {
            self.widen(largest);
        }
        let (start, shift) = self.position(first);
        let bytes = &mut self.bytes[start..];
        let mut at = 0;
        let mut bits = u64::from(bytes[0]) & ((1 << shift) - 1);
        let mut filled = shift;
        for value in values {
            bits |= u64::from(!value & self.mask) << filled;
            filled += self.width;
            if filled >= u32::BITS {
                let half: &mut [u8; 4] = bytes[at..].first_chunk_mut().expect("there is padding");
                *half = (bits as u32).to_le_bytes();
                at += 4;
                bits >>= u32::BITS;
                filled -= u32::BITS;
            }
        }
        let rest = &mut bytes[at..at + 4];
        let behind = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
        let rest_of_word = behind & u32::MAX << filled;
        rest.copy_from_slice(&(rest_of_word | bits as u32).to_le_bytes());
    }

    /// Prefetches the entries in `indices` that exist. In a table larger than the caches misses
    /// issued together overlap. The returned sum only keeps the compiler from removing the loads.
    #[inline]
    pub fn prefetch(&self, indices: impl Iterator<Item = u32>) -> u32 {
        indices.fold(0, |sum, index| sum ^ self.load(index as usize))
    }

    /// Loads from entry `index`, if it exists.
    #[inline]
    pub fn load(&self, index: usize) -> u32 {
        // A whole word, as when it is used: it may span two cache lines.
        let at = self.position(index).0;
        self.bytes.get(at..at + WORD_BYTES).map_or(0, word) as u32
    }

    /// As [`Packed::prefetch`] for up to `count` entries from `first` on.
    #[inline]
    pub fn prefetch_run(&self, first: usize, count: usize) -> u32 {
        let (mut at, last) = (self.position(first).0, self.position(first + count).0);
        let bytes = &self.bytes[..];
        let load = |at: usize| bytes.get(at).copied().map_or(0, u32::from);
        let mut sum = load(last);
        while at < last {
            sum ^= load(at);
            at += CACHE_LINE_BYTES;
        }
        sum
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.length).map(|index| self.get(index))
    }

    #[cold]
    fn widen(&mut self, largest: u32) {
        let mut wider = Self::new(self.length, largest);
        if self.bytes.uses_huge_pages() {
            wider.expect_filling();
        }
        for (index, value) in self.iter().enumerate().filter(|(_, value)| *value != NONE) {
            wider.set(index, value);
        }
        *self = wider;
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries of {} bits", self.length, self.width)
    }
}

impl Packed {
    pub fn save(&self, to: &mut Saver) {
        to.put(&(self.length as u64, self.width));
        to.put_bytes(&self.bytes);
    }

    /// Restores what [`Packed::save`] saved, with entries as wide as they were.
    ///
    /// # Errors
    /// When the saved table has another length.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (length, width): (u64, u32) = from.take()?;
        state::same_length("a table", length as usize, self.length)?;
        if !(1..=u32::BITS).contains(&width) {
            return Err(StateError(format!("a table has entries of {width} bits")));
        }
        let bytes = from.take_bytes()?;
        let wanted = bytes_for(self.length, width);
        state::same_length("the bytes of a table", bytes.len(), wanted)?;
        if width != self.width {
            // There may not be enough memory for two tables.
            self.bytes = Bytes::zeroed(0);
            self.bytes = Bytes::zeroed(wanted);
            (self.width, self.mask) = (width, u32::MAX >> (u32::BITS - width));
        }
        self.bytes.expect_filling();
        self.bytes.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;

    #[test]
    fn entries_are_stored_at_every_width() {
        for width in 1..=32 {
            let mut stream = Stream::new(width, "packed");
            let below = 1u64 << width;
            let mut table = Packed::new(61, (below - 1).min(u64::from(NONE - 1)) as u32);
            let mut plain = [NONE; 61];
            for _ in 0..600 {
                let index = stream.below(61) as usize;
                let value = if stream.chance(0.1) { NONE } else { stream.below(below) as u32 };
                assert_eq!(table.get(index), plain[index]);
                table.set(index, value);
                plain[index] = value;
                assert!(table.iter().eq(plain), "{width} bits: {table:?}");
            }
            assert!(table.bytes() <= 61 * (width as usize + 1) / 8 + 8, "{width} bits");
        }
    }

    #[test]
    fn a_run_equals_single_stores() {
        for width in 1..=32 {
            let mut stream = Stream::new(width, "run");
            let largest = ((1u64 << width) - 1).min(u64::from(NONE - 1)) as u32;
            let (mut runs, mut singles) = (Packed::new(150, largest), Packed::new(150, largest));
            for _ in 0..200 {
                let first = stream.below(150) as usize;
                let length = stream.below(151 - first as u64) as usize;
                let mut draw = || match stream.below(1 << width) as u32 {
                    value if value > largest => NONE,
                    value => value,
                };
                let values: Vec<u32> = (0..length).map(|_| draw()).collect();
                runs.set_run(first, &values);
                (first..).zip(&values).for_each(|(at, value)| singles.set(at, *value));
                assert!(runs.iter().eq(singles.iter()), "{width} bits, {length} from {first}");
            }
        }
        let mut table = Packed::new(4, 2);
        table.set_run(1, &[1, NONE, 70_000]);
        assert!(table.iter().eq([NONE, 1, NONE, 70_000]));
    }

    #[test]
    fn ascending_numbers_equal_single_stores() {
        for dropped in 0..3u32 {
            let mut stream = Stream::new(u64::from(dropped), "ascending");
            let (mut all, mut singles) = (Packed::new(150, 20), Packed::new(150, 20));
            for _ in 0..100 {
                let (count, bits) = (stream.below(70), stream.below(20));
                let first = stream.below(1 << bits) as u32;
                let indices: Vec<u32> = (0..count).map(|_| stream.below(150) as u32).collect();
                all.set_ascending(&indices, first, dropped);
                let numbers = (first..).zip(&indices);
                numbers.for_each(|(at, index)| singles.set(*index as usize, at >> dropped));
                assert!(all.iter().eq(singles.iter()), "{indices:?} from {first}");
            }
        }
    }

    #[test]
    fn a_larger_number_widens_the_entries() {
        let mut table = Packed::new(5, 2);
        assert_eq!(table.width, 2);
        for (value, width) in [(2, 2), (3, 3), (NONE, 3), (6, 3), (7, 4), (1 << 30, 31)] {
            let before: Vec<u32> = table.iter().collect();
            table.set(3, value);
            assert_eq!((table.width, table.get(3)), (width, value));
            assert!(table.iter().take(3).eq(before[..3].iter().copied()));
        }
        table.set(0, NONE - 1);
        assert_eq!((table.width, table.get(0), table.get(3)), (32, NONE - 1, 1 << 30));
    }

    #[test]
    fn a_saved_table_is_restored() {
        let mut stream = Stream::new(4, "saved");
        let mut draw = |index: usize| match index % 5 {
            0 => NONE,
            _ => (stream.below(1 << 24) >> (index % 20)) as u32,
        };
        for length in [0, 1, 5, 7_919, 2_000_003] {
            let numbers: Vec<u32> = (0..length).map(&mut draw).collect();
            let mut table = Packed::new(length, 0);
            table.set_run(0, &numbers);
            let mut saver = Saver::default();
            table.save(&mut saver);
            let bytes = saver.into_bytes();
            let mut back = Packed::new(length, 9);
            let mut loader = Loader::new(&bytes);
            back.restore(&mut loader).and_then(|()| loader.end()).expect("the saved table");
            assert!(back.iter().eq(numbers));
            assert!(Packed::new(length + 1, 9).restore(&mut Loader::new(&bytes)).is_err());
            for cut in (0..bytes.len()).step_by(bytes.len() / 50 + 1) {
                assert!(Packed::new(length, 9).restore(&mut Loader::new(&bytes[..cut])).is_err());
            }
        }
    }

    #[test]
    #[should_panic(expected = "no entry 4")]
    fn an_index_behind_the_end_panics() {
        Packed::new(4, 1).get(4);
    }
}
