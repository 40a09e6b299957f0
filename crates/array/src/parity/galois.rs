//! Arithmetic of RAID 6: GF(2^8) over x^8 + x^4 + x^3 + x^2 + 1, on the eight bytes of a data
//! version at once.
//!
//! P is the sum (exclusive or) of the data, Q the sum of the data times powers of g = 2, one power
//! per unit; any two units can be solved for (H. P. Anvin, "The mathematics of RAID-6").

/// Data units for which the powers of g differ.
pub const DATA_UNITS_MAX: usize = 255;

const LOW: u64 = 0x0101_0101_0101_0101;

/// Each byte of `value` times g.
const fn double(value: u64) -> u64 {
    let carry = (value >> 7) & LOW;
    ((value & (LOW * 0x7f)) << 1) ^ (carry * 0x1d)
}

/// Each byte of `value` times `factor`.
pub fn times(factor: u8, value: u64) -> u64 {
    let (mut factor, mut value, mut sum) = (factor, value, 0);
    while factor != 0 {
        if factor & 1 == 1 {
            sum ^= value;
        }
        value = double(value);
        factor >>= 1;
    }
    sum
}

/// g to the power of `exponent`.
pub const fn power(exponent: usize) -> u8 {
    let mut value = 1;
    let mut left = exponent % 255;
    while left > 0 {
        value = double(value) & 0xff;
        left -= 1;
    }
    value as u8
}

/// The factor that undoes `factor`, which is not 0.
pub fn inverse(factor: u8) -> u8 {
    debug_assert!(factor != 0, "zero has no inverse");
    // The multiplicative group has 255 elements, so the 254th power is the inverse.
    (0..254).fold(1u64, |product, _| times(factor, product) & 0xff) as u8
}

/// The factor of data unit `unit` in parity 0 (P) or 1 (Q).
pub fn factor(parity: usize, unit: usize) -> u8 {
    if parity == 0 { 1 } else { power(unit) }
}

/// Solves a + b = `p` and `first` a + `second` b = `q`; the factors differ.
pub fn solve(first: u8, second: u8, p: u64, q: u64) -> (u64, u64) {
    let a = times(inverse(first ^ second), q ^ times(second, p));
    (a, a ^ p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_differ_and_inverses_undo() {
        let mut seen = [false; 256];
        for exponent in 0..DATA_UNITS_MAX {
            assert!(!std::mem::replace(&mut seen[power(exponent) as usize], true));
        }
        assert!(!seen[0]);
        for factor in 1..=255 {
            assert_eq!(times(inverse(factor), u64::from(factor)), 1);
        }
        // Known: 0x80 * 2 = 0x1d in this field; the bytes do not disturb each other.
        assert_eq!(times(2, 0x80_00_01), 0x1d_00_02);
        assert_eq!(times(0x53, 0xca), times(0xca, 0x53));
    }

    #[test]
    fn any_two_can_be_solved_for() {
        let (a, b) = (0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3211);
        for first in 0..20 {
            for second in (0..20).filter(|second| *second != first) {
                let (f, s) = (power(first), power(second));
                assert_eq!(solve(f, s, a ^ b, times(f, a) ^ times(s, b)), (a, b));
            }
        }
    }
}
