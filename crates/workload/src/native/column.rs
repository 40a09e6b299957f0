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

    fn long_varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0u64;
        for (index, &byte) in self.0.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7F);
            if index == VARINT_BYTES_MAX - 1 && byte > 1 {
                return Err("a number is longer than 64 bits");
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

    /// Decodes a column of `count` numbers; calls `each` with the index and value of each.
    #[inline]
    pub fn column(
        &mut self,
        count: usize,
        mut each: impl FnMut(usize, u64) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let mode = self.take(1)?[0];
        match mode {
            CONSTANT => {
                let value = self.varint()?;
                (0..count).try_for_each(|index| each(index, value))
            }
            VARINTS => {
                let unit = self.varint()?;
                for index in 0..count {
                    let value = self.varint()?.checked_mul(unit);
                    each(index, value.ok_or("a number is longer than 64 bits")?)?;
                }
                Ok(())
            }
            BYTES => {
                let unit = self.varint()?;
                let bytes = self.take(count)?;
                for (index, &byte) in bytes.iter().enumerate() {
                    let value = u64::from(byte).checked_mul(unit);
                    each(index, value.ok_or("a number is longer than 64 bits")?)?;
                }
                Ok(())
            }
            _ => Err("a column has an unknown encoding"),
        }
    }
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

    #[track_caller]
    fn check(values: &[u64], bytes_max: usize) {
        let mut out = Vec::new();
        put_column(&mut out, values);
        assert!(out.len() <= bytes_max, "{} bytes: {out:?}", out.len());
        let mut read = Vec::new();
        let mut bytes = ByteCursor(&out);
        let result = bytes.column(values.len(), |_, value| {
            read.push(value);
            Ok(())
        });
        assert_eq!(result, Ok(()));
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
        assert!(ByteCursor(&[9, 0]).column(1, |_, _| Ok(())).is_err());
        assert!(ByteCursor(&[VARINTS, 3, 0x80]).column(1, |_, _| Ok(())).is_err());
    }
}
