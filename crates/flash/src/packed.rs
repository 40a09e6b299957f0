//! Tables of numbers that take as many bits each as the largest of them needs.
//!
//! On a device of 64 GiB the table from logical to physical pages and back are what memory goes to
//! and what misses the processor's caches; 24 or 25 bits to the entry instead of 32 save a quarter
//! of both.

use crate::bytes::Bytes;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use std::fmt;

/// No number: what every entry holds at first.
const NONE: u32 = u32::MAX;

/// What processors load at once, mostly; only speed depends on it.
const CACHE_LINE_BYTES: usize = 64;

/// An entry lies in so many bytes, wherever it begins.
const WORD_BYTES: usize = size_of::<u64>();

/// A table of numbers below 2^32 - 1, or [`u32::MAX`] for none.
///
/// Entries widen when a number needs it, all of them at once; whoever knows the largest number
/// beforehand spares the table that.
pub struct Packed {
    /// The entries one behind the other, from the lowest bit on, and behind them enough that a
    /// whole word can be read from where the last one begins.
    bytes: Bytes,
    length: usize,
    /// Bits of an entry.
    width: u32,
    /// An entry with all bits set: none.
    mask: u32,
}

/// Bits for numbers up to `largest`, and for none.
pub const fn width_for(largest: u32) -> u32 {
    match largest {
        NONE => 32,
        _ => u32::BITS - (largest + 1).leading_zeros(),
    }
}

/// The word that begins with the first of `bytes`.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a word is asked for"))
}

/// Bytes for so many entries of so many bits, and a word from the last one's first byte on.
const fn bytes_for(length: usize, width: u32) -> usize {
    (length as u64 * width as u64).div_ceil(8) as usize + WORD_BYTES - 1
}

impl Packed {
    /// A table of `length` entries without a number, with room for numbers up to `largest`.
    pub fn new(length: usize, largest: u32) -> Self {
        let width = width_for(largest);
        let bytes = Bytes::filled(bytes_for(length, width), u8::MAX);
        Self { bytes, length, width, mask: u32::MAX >> (32 - width) }
    }

    /// Number of entries.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Where entry `index` begins: its first byte, and the bit in it.
    #[inline]
    const fn place(&self, index: usize) -> (usize, u32) {
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
        let (at, shift) = self.place(index);
        let value = (word(&self.bytes[at..at + WORD_BYTES]) >> shift) as u32 & self.mask;
        if value == self.mask { NONE } else { value }
    }

    /// Puts `value` at `index`.
    ///
    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn set(&mut self, index: usize, value: u32) {
        self.replace(index, value);
    }

    /// Puts `value` at `index`, and says what was there.
    ///
    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn replace(&mut self, index: usize, value: u32) -> u32 {
        assert!(index < self.length, "no entry {index}");
        if value >= self.mask && value != NONE {
            self.widen(value);
        }
        let (at, shift) = self.place(index);
        let place = &mut self.bytes[at..at + WORD_BYTES];
        let (both, mask) = (word(place), u64::from(self.mask));
        let new = both & !(mask << shift) | (u64::from(value) & mask) << shift;
        place.copy_from_slice(&new.to_le_bytes());
        let before = (both >> shift) as u32 & self.mask;
        if before == self.mask { NONE } else { before }
    }

    /// Puts `values` at `first` and behind it. Faster than one by one: each word is written once,
    /// so that no load waits for parts of it that were stored just before.
    ///
    /// # Panics
    /// When there are not so many entries.
    #[inline]
    pub fn set_run(&mut self, first: usize, values: &[u32]) {
        assert!(first + values.len() <= self.length, "no {} entries from {first}", values.len());
        let largest = values.iter().copied().filter(|value| *value != NONE).max().unwrap_or(0);
        if largest >= self.mask {
            self.widen(largest);
        }
        let (start, shift) = self.place(first);
        let bytes = &mut self.bytes[start..];
        let mut at = 0;
        let mut bits = u64::from(bytes[0]) & ((1 << shift) - 1);
        let mut filled = shift;
        for value in values {
            bits |= u64::from(value & self.mask) << filled;
            filled += self.width;
            if filled >= u32::BITS {
                bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
                at += 4;
                bits >>= u32::BITS;
                filled -= u32::BITS;
            }
        }
        let rest = &mut bytes[at..at + 4];
        let behind = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
        let kept = behind & u32::MAX << filled;
        rest.copy_from_slice(&(kept | bits as u32).to_le_bytes());
    }

    /// Looks at all the entries in `indices` that there are. In a table larger than the caches
    /// they are best looked up together, as soon as it is known that they will be needed: then the
    /// misses overlap. The sum is of no use but that a compiler may not leave the work out.
    #[inline]
    pub fn touch(&self, indices: &[u32]) -> u32 {
        // A whole word, as when it is used: it may be in two lines of the caches.
        let seen = |index: &u32| {
            let at = self.place(*index as usize).0;
            self.bytes.get(at..at + WORD_BYTES).map_or(0, word)
        };
        indices.iter().fold(0, |sum, index| sum ^ seen(index)) as u32
    }

    /// As [`Packed::touch`] for the `count` entries from `first` on, as far as there are so many.
    #[inline]
    pub fn touch_run(&self, first: usize, count: usize) -> u32 {
        let (first, last) = (self.place(first).0, self.place(first + count).0);
        let lines = (first..=last).step_by(CACHE_LINE_BYTES);
        let seen = lines.map(|at| self.bytes.get(at).copied().unwrap_or(0));
        seen.fold(0, |sum, byte| sum ^ u32::from(byte))
    }

    /// All numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.length).map(|index| self.get(index))
    }

    /// Makes room for numbers up to `largest`.
    pub fn make_room(&mut self, largest: u32) {
        if width_for(largest) > self.width {
            self.widen(largest);
        }
    }

    /// The largest number there is room for now.
    pub const fn room(&self) -> u32 {
        self.mask - 1
    }

    #[cold]
    fn widen(&mut self, largest: u32) {
        let mut wider = Self::new(self.length, largest);
        for (index, value) in self.iter().enumerate() {
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

/// Numbers that are put down together.
const PART: usize = 1 << 16;

impl Packed {
    /// Puts the numbers down; how wide they are here is nobody's business.
    pub fn save(&self, to: &mut Saver) {
        to.put(&(self.length as u64));
        let mut part = Vec::with_capacity(PART.min(self.length));
        for first in (0..self.length).step_by(PART) {
            part.clear();
            part.extend((first..self.length.min(first + PART)).map(|index| self.get(index)));
            to.put(&part);
        }
    }

    /// Takes back what [`Packed::save`] put down, into a table of the same length: there may be
    /// no memory for two.
    ///
    /// # Errors
    /// When it is of another length; some of the entries may have changed then.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let length: u64 = from.take()?;
        if length != self.length as u64 {
            let own = self.length;
            return Err(StateError(format!("a table has {length} entries, not {own}")));
        }
        for first in (0..self.length).step_by(PART) {
            let part: Vec<u32> = from.take()?;
            let wanted = PART.min(self.length - first);
            state::same_length("part of a table", part.len(), wanted)?;
            self.set_run(first, &part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;

    #[test]
    fn it_is_a_table_at_every_width() {
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
    fn a_run_is_as_many_single_ones() {
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
    fn a_number_too_large_widens_it() {
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
    fn what_is_saved_comes_back() {
        let mut stream = Stream::new(4, "saved");
        let mut draw = |index: usize| match index % 5 {
            0 => NONE,
            _ => (stream.below(1 << 24) >> (index % 20)) as u32,
        };
        for length in [0, 1, 5, PART - 1, PART, PART + 1, 3 * PART + 17] {
            let numbers: Vec<u32> = (0..length).map(&mut draw).collect();
            let mut table = Packed::new(length, 0);
            table.set_run(0, &numbers);
            let mut saver = Saver::default();
            table.save(&mut saver);
            let bytes = saver.into_bytes();
            let mut back = Packed::new(length, 9);
            let mut loader = Loader::new(&bytes);
            back.restore(&mut loader).and_then(|()| loader.end()).expect("as it was put");
            assert!(back.iter().eq(numbers));
            assert!(Packed::new(length + 1, 9).restore(&mut Loader::new(&bytes)).is_err());
            for cut in (0..bytes.len()).step_by(bytes.len() / 50 + 1) {
                assert!(Packed::new(length, 9).restore(&mut Loader::new(&bytes[..cut])).is_err());
            }
        }
    }

    #[test]
    #[should_panic(expected = "no entry 4")]
    fn there_is_nothing_behind_the_end() {
        Packed::new(4, 1).get(4);
    }
}
