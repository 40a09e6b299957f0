//! Tables of numbers that take as many bits each as the largest of them needs.
//!
//! On a device of 64 GiB the table from logical to physical pages and back are what memory goes to
//! and what misses the processor's caches; 24 or 25 bits to the entry instead of 32 save a quarter
//! of both.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// No number: what every entry holds at first.
const NONE: u32 = u32::MAX;

/// What processors load at once, mostly; only speed depends on it.
const CACHE_LINE_BYTES: usize = 64;

/// A table of numbers below 2^32 - 1, or [`u32::MAX`] for none.
///
/// Entries widen when a number needs it, all of them at once; whoever knows the largest number
/// beforehand spares the table that.
#[derive(Clone)]
pub struct Packed {
    /// The entries one behind the other, from the lowest bit on, and one word more, so that every
    /// entry can be reached by looking at two words.
    words: Vec<u32>,
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

impl Packed {
    /// A table of `length` entries without a number, with room for numbers up to `largest`.
    pub fn new(length: usize, largest: u32) -> Self {
        let width = width_for(largest);
        let words = (length as u64 * u64::from(width)).div_ceil(32) as usize + 1;
        Self { words: vec![u32::MAX; words], length, width, mask: u32::MAX >> (32 - width) }
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
    pub const fn bytes(&self) -> usize {
        self.words.len() * size_of::<u32>()
    }

    /// Where entry `index` begins: its first word, and the bit in it.
    #[inline]
    const fn place(&self, index: usize) -> (usize, u32) {
        let bit = index as u64 * self.width as u64;
        ((bit / 32) as usize, (bit % 32) as u32)
    }

    /// The number at `index`, or [`u32::MAX`].
    ///
    /// # Panics
    /// When there is no such entry.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        assert!(index < self.length, "no entry {index}");
        let (word, shift) = self.place(index);
        let pair = &self.words[word..word + 2];
        let both = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        let value = (both >> shift) as u32 & self.mask;
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
        let (word, shift) = self.place(index);
        let pair = &mut self.words[word..word + 2];
        let both = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        let mask = u64::from(self.mask);
        let new = both & !(mask << shift) | (u64::from(value) & mask) << shift;
        pair[0] = new as u32;
        pair[1] = (new >> 32) as u32;
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
        let (word, shift) = self.place(first);
        let end = self.place(first + values.len()).0;
        let words = &mut self.words[word..=end];
        let mut at = 0;
        let mut bits = u64::from(words[0]) & ((1 << shift) - 1);
        let mut filled = shift;
        for value in values {
            bits |= u64::from(value & self.mask) << filled;
            filled += self.width;
            if filled >= u32::BITS {
                words[at] = bits as u32;
                at += 1;
                bits >>= u32::BITS;
                filled -= u32::BITS;
            }
        }
        let kept = u64::MAX << filled;
        words[at] = (u64::from(words[at]) & kept | bits) as u32;
    }

    /// Looks at all the entries in `indices` that there are. In a table larger than the caches
    /// they are best looked up together, as soon as it is known that they will be needed: then the
    /// misses overlap. The sum is of no use but that a compiler may not leave the work out.
    #[inline]
    pub fn touch(&self, indices: &[u32]) -> u32 {
        // Both words, as when it is used: they may be in two lines of the caches.
        let pair = |index: &u32| {
            let word = self.place(*index as usize).0;
            self.words.get(word..word + 2).map_or(0, |pair| pair[0] ^ pair[1])
        };
        indices.iter().fold(0, |sum, index| sum ^ pair(index))
    }

    /// As [`Packed::touch`] for the `count` entries from `first` on, as far as there are so many.
    #[inline]
    pub fn touch_run(&self, first: usize, count: usize) -> u32 {
        let (first, last) = (self.place(first).0, self.place(first + count).0);
        let lines = (first..=last).step_by(CACHE_LINE_BYTES / size_of::<u32>());
        let seen = lines.map(|word| self.words.get(word).copied().unwrap_or(0));
        seen.fold(0, |sum, word| sum ^ word)
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

/// As a list of numbers: how wide they are here is nobody's business.
impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut list = serializer.serialize_seq(Some(self.length))?;
        self.iter().try_for_each(|value| list.serialize_element(&value))?;
        list.end()
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Packed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Packed, A::Error> {
        // The length it says may be a lie, so the table grows with what is there.
        let mut packed = Packed::new(0, 0);
        while let Some(value) = list.next_element::<u32>()? {
            packed.push(value);
        }
        packed.words.shrink_to_fit();
        Ok(packed)
    }
}

impl Packed {
    fn push(&mut self, value: u32) {
        if value >= self.mask && value != NONE {
            self.widen(value);
        }
        self.length += 1;
        let words = (self.length as u64 * u64::from(self.width)).div_ceil(32) as usize + 1;
        self.words.resize(words, u32::MAX);
        self.set(self.length - 1, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Loader, Saver, Stream};

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
    fn it_is_saved_as_a_list() {
        let numbers = vec![3, NONE, 70_000, 0, NONE - 1];
        let mut saver = Saver::default();
        saver.put(&numbers);
        let bytes = saver.into_bytes();
        let table: Packed = Loader::new(&bytes).take().expect("a list of numbers");
        assert!(table.iter().eq(numbers));
        let mut saver = Saver::default();
        saver.put(&table);
        assert_eq!(saver.into_bytes(), bytes);
        for length in 0..bytes.len() {
            assert!(Loader::new(&bytes[..length]).take::<Packed>().is_err(), "cut at {length}");
        }
    }

    #[test]
    #[should_panic(expected = "no entry 4")]
    fn there_is_nothing_behind_the_end() {
        Packed::new(4, 1).get(4);
    }
}
