//! Columns of a block: a whole number per record, each column in the shortest of three encodings.
//!
//! Mode 0 is one value for all records, mode 1 LEB128 numbers in a common unit (times recorded in
//! microseconds are all multiples of 1,000 ns), mode 2 one byte per record.

const CONSTANT: u8 = 0;
const VARINTS: u8 = 1;
const BYTES: u8 = 2;

/// Maximum length of a LEB128 number.
const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` in LEB128.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a column.
pub fn put_column(out: &mut Vec<u8>, values: &[u64]) {
    let first = values.first().copied().unwrap_or(0);
    if values.iter().all(|&value| value == first) {
        out.push(CONSTANT);
        put_varint(out, first);
        return;
    }
    let unit = values.iter().fold(0, |unit, &value| common_divisor(unit, value)).max(1);
    if values.iter().all(|&value| value / unit < 0x80) || values.iter().any(|&v| v / unit > 0xFF) {
        out.push(VARINTS);
        put_varint(out, unit);
        values.iter().for_each(|&value| put_varint(out, value / unit));
    } else {
        out.push(BYTES);
        put_varint(out, unit);
        out.extend(values.iter().map(|&value| (value / unit) as u8));
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    if a == 1 {
        return 1;
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads numbers from a slice.
pub struct ByteCursor<'a>(pub &'a [u8]);

/// An error in a block's content.
pub type Damage = &'static str;

const TOO_LONG: Damage = "a number is longer than 64 bits";

impl<'a> ByteCursor<'a> {
    /// The next LEB128 number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Damage> {
        match self.0 {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline]
    fn long_varint(&mut self) -> Result<u64, Damage> {
        if let Some((word, _)) = self.0.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                let bits = ends.trailing_zeros() + 1;
                self.0 = &self.0[bits as usize / 8..];
                return Ok(join_sevens(word & (u64::MAX >> (64 - bits))));
            }
        }
        self.varint_by_bytes()
    }

    #[cold]
    fn varint_by_bytes(&mut self) -> Result<u64, Damage> {
        let mut value = 0u64;
        for (index, &byte) in self.0.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7F);
            if index == VARINT_BYTES_MAX - 1 && byte > 1 {
                return Err(TOO_LONG);
            }
            value |= bits << (7 * index);
            if byte < 0x80 {
                self.0 = &self.0[index + 1..];
                return Ok(value);
            }
        }
        Err("its content ends within a number")
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or("its content is shorter than its header says")?;
        self.0 = rest;
        Ok(taken)
    }

    /// Decodes a column of a number for each of `records`: `convert` checks it, `set` stores it.
    #[inline(always)]
    pub fn column<R, T: Copy>(
        &mut self,
        records: &mut [R],
        convert: impl Fn(u64) -> Result<T, Damage>,
        set: impl Fn(&mut R, T),
    ) -> Result<(), Damage> {
        if let [CONSTANT, rest @ ..] = self.0 {
            self.0 = rest;
            let value = convert(self.varint()?)?;
            records.iter_mut().for_each(|record| set(record, value));
            return Ok(());
        }
        self.differences(records, |record, value| {
            set(record, convert(value)?);
            Ok(())
        })
    }

    /// As [`Self::column`], where what a number means depends on those before it.
    #[inline(always)]
    pub fn differences<R>(
        &mut self,
        records: &mut [R],
        mut set: impl FnMut(&mut R, u64) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let mode = self.take(1)?[0];
        let number = self.varint()?;
        match mode {
            CONSTANT => records.iter_mut().try_for_each(|record| set(record, number)),
            VARINTS => records.iter_mut().try_for_each(|record| {
                let value = self.varint()?.checked_mul(number);
                set(record, value.ok_or(TOO_LONG)?)
            }),
            BYTES => {
                let bytes = self.take(records.len())?;
                records.iter_mut().zip(bytes).try_for_each(|(record, &byte)| {
                    let value = u64::from(byte).checked_mul(number);
                    set(record, value.ok_or(TOO_LONG)?)
                })
            }
            _ => Err("a column has an unknown encoding"),
        }
    }
}

/// The number whose groups of seven bits are in the bytes of `word`.
#[inline]
const fn join_sevens(word: u64) -> u64 {
    let word = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = (word & 0x0000_3fff_0000_3fff) | (word & 0x3fff_0000_3fff_0000) >> 2;
    (word & 0x0fff_ffff) | (word & 0x0fff_ffff_0000_0000) >> 4
}

/// Maps a difference to a whole number, small for small differences of either sign.
#[inline]
pub const fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(to: &mut u64, value: u64) {
        *to = value;
    }

    #[track_caller]
    fn check(values: &[u64], bytes_max: usize) {
        let mut out = Vec::new();
        put_column(&mut out, values);
        assert!(out.len() <= bytes_max, "{} bytes: {out:?}", out.len());
        let mut read = vec![0; values.len()];
        let mut bytes = ByteCursor(&out);
        assert_eq!(bytes.column(&mut read, Ok, store), Ok(()));
        assert_eq!(read, values);
        assert!(bytes.0.is_empty());
    }

    #[test]
    fn columns_round_trip_in_the_shortest_encoding() {
        check(&[7; 1000], 2);
        check(&[u64::MAX; 3], 11);
        check(&[0, 1, 2, 127], 6);
        check(&[0, 200, 255, 1], 6);
        check(&[0, 3_000_000, 1_000_000, 9_000_000], 8);
        check(&[0, u64::MAX, 1], 14);
        check(&[u64::MAX, u64::MAX - 1], 22);
        check(&[], 2);
    }

    #[test]
    fn zigzag_round_trips_and_is_small_for_small_differences() {
        for (difference, value) in [(0, 0), (u64::MAX, 1), (1, 2), (1 << 63, u64::MAX)] {
            assert_eq!(zigzag(difference), value);
            assert_eq!(unzigzag(value), difference);
        }
    }

    #[test]
    fn damaged_numbers_are_rejected() {
        assert!(ByteCursor(&[0x80; 20]).varint().is_err());
        assert!(
            ByteCursor(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2])
                .varint()
                .is_err()
        );
        assert!(ByteCursor(&[0x80]).varint().is_err());
        assert!(ByteCursor(&[]).varint().is_err());
        assert!(ByteCursor(&[9, 0]).column(&mut [0], Ok, store).is_err());
        assert!(ByteCursor(&[VARINTS, 3, 0x80]).column(&mut [0], Ok, store).is_err());
    }

    #[test]
    fn numbers_of_every_length_are_read_wherever_they_end() {
        for bits in 0..64 {
            for value in [1 << bits, (1 << bits) - 1, (1 << bits) | 1] {
                for rest in 0..9 {
                    let mut bytes = Vec::new();
                    put_varint(&mut bytes, value);
                    bytes.resize(bytes.len() + rest, 0xFF);
                    let mut cursor = ByteCursor(&bytes);
                    assert_eq!((cursor.varint(), cursor.0.len()), (Ok(value), rest));
                }
            }
        }
    }
}
