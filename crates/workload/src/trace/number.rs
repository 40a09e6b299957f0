//! Numbers in text traces, parsed from bytes without allocation; every error is reported.

/// An error in one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    Missing,
    /// Not a number, or not a whole one.
    Malformed,
    Negative,
    /// Does not fit in 64 bits, in the target unit.
    TooLarge,
}

impl NumberError {
    pub(crate) const fn problem(self) -> &'static str {
        match self {
            Self::Missing => "is missing",
            Self::Malformed => "is not a number",
            Self::Negative => "is negative",
            Self::TooLarge => "is too large",
        }
    }
}

use NumberError::{Malformed, Missing, Negative, TooLarge};

/// A whole number in decimal digits.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Result<u64, NumberError> {
    if text.is_empty() {
        return Err(Missing);
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return whole_slow(text);
        }
        value = match value.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit))) {
            Some(value) => value,
            None => return whole_slow(text),
        };
    }
    Ok(value)
}

/// Whole numbers in other notations (`+5`, `5.0`, `1e3`), and the errors of others.
#[cold]
fn whole_slow(text: &[u8]) -> Result<u64, NumberError> {
    if text.iter().all(u8::is_ascii_digit) {
        return Err(TooLarge);
    }
    let value = float(text)?;
    match value {
        value if value.fract() != 0.0 => Err(Malformed),
        value if value >= 9e15 => Err(TooLarge),
        value => Ok(value as u64),
    }
}

/// A whole number in hexadecimal digits, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Result<u64, NumberError> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() {
        return Err(if text.is_empty() { Missing } else { Malformed });
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit =
            (byte as char).to_digit(16).ok_or(if byte == b'-' { Negative } else { Malformed })?;
        let shifted = value.checked_mul(16).ok_or(TooLarge)?;
        Ok(shifted | u64::from(digit))
    })
}

/// A whole number in decimal digits, or in hexadecimal digits after `0x`.
#[inline]
pub(crate) fn whole_or_hexadecimal(text: &[u8]) -> Result<u64, NumberError> {
    match text {
        [b'0', b'x' | b'X', ..] => hexadecimal(text),
        _ => whole(text),
    }
}

fn float(text: &[u8]) -> Result<f64, NumberError> {
    let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
    // Rust parses "inf", "nan" and "infinity" as numbers.
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(Malformed);
    }
    let value: f64 = text.parse().map_err(|_| Malformed)?;
    if value.is_sign_negative() && value != 0.0 {
        return Err(Negative);
    }
    if value.is_finite() { Ok(value) } else { Err(TooLarge) }
}

const POWERS: [u64; 13] = {
    let mut powers = [1u64; 13];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A decimal number times 10^`shift`, rounded to the nearest whole: with `shift` 9, seconds become
/// nanoseconds. Exact as long as it is written without an exponent.
#[inline]
pub(crate) fn scaled(text: &[u8], shift: usize) -> Result<u64, NumberError> {
    if text.is_empty() {
        return Err(Missing);
    }
    let mut value = 0u64;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d <= 9) {
        value =
            value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit))).ok_or(TooLarge)?;
        at += 1;
    }
    let (whole_digits, mut kept) = (at, 0);
    if text.get(at) == Some(&b'.') {
        at += 1;
        while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d <= 9) {
            if kept < shift {
                let more = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit)));
                value = more.ok_or(TooLarge)?;
                kept += 1;
            } else if kept == shift {
                value = value.checked_add(u64::from(digit >= 5)).ok_or(TooLarge)?;
                kept += 1;
            }
            at += 1;
        }
        if at == whole_digits + 1 && whole_digits == 0 {
            return Err(Malformed);
        }
    }
    if at < text.len() || at == 0 {
        return scaled_slow(text, shift);
    }
    value.checked_mul(POWERS[shift - kept.min(shift)]).ok_or(TooLarge)
}

/// With an exponent or a sign.
#[cold]
fn scaled_slow(text: &[u8], shift: usize) -> Result<u64, NumberError> {
    let value = float(text)? * POWERS[shift] as f64;
    if value < 1.8e19 { Ok((value + 0.5) as u64) } else { Err(TooLarge) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let check = |text: &str, expect| assert_eq!(whole(text.as_bytes()), expect, "{text}");
        check("0", Ok(0));
        check("007", Ok(7));
        check("18446744073709551615", Ok(u64::MAX));
        check("18446744073709551616", Err(TooLarge));
        check("99999999999999999999999999", Err(TooLarge));
        check("", Err(Missing));
        check("-1", Err(Negative));
        check("-0", Ok(0));
        check("+5", Ok(5));
        check("5.0", Ok(5));
        check("1e3", Ok(1000));
        check("1e400", Err(TooLarge));
        check("5.5", Err(Malformed));
        check("nan", Err(Malformed));
        check("inf", Err(Malformed));
        check("12x", Err(Malformed));
        check("\u{ff11}", Err(Malformed));
    }

    #[test]
    fn hexadecimal_numbers() {
        let check = |text: &str, expect| assert_eq!(hexadecimal(text.as_bytes()), expect, "{text}");
        check("1", Ok(1));
        check("0x1f", Ok(31));
        check("FFFFFFFFFFFFFFFF", Ok(u64::MAX));
        check("10000000000000000", Err(TooLarge));
        check("0x", Err(Malformed));
        check("", Err(Missing));
        check("-1", Err(Negative));
        check("g", Err(Malformed));
    }

    #[test]
    fn scaled_numbers() {
        let check = |text: &str, shift, expect| {
            assert_eq!(scaled(text.as_bytes(), shift), expect, "{text}")
        };
        check("0", 9, Ok(0));
        check("1.5", 9, Ok(1_500_000_000));
        check("1456000000.125076000", 9, Ok(1_456_000_000_125_076_000));
        check("0.0000000004", 9, Ok(0));
        check("0.0000000005", 9, Ok(1));
        check("0.00000000049999", 9, Ok(0));
        check("0.9999999999", 9, Ok(1_000_000_000));
        check("33.33", 6, Ok(33_330_000));
        check("5.", 3, Ok(5000));
        check(".5", 3, Ok(500));
        check(".", 3, Err(Malformed));
        check("7", 0, Ok(7));
        check("7.5", 0, Ok(8));
        check("7.25e-05", 9, Ok(72_500));
        check("1e400", 9, Err(TooLarge));
        check("1e30", 9, Err(TooLarge));
        check("-0.5", 9, Err(Negative));
        check("-0.0", 9, Ok(0));
        check("99999999999", 9, Err(TooLarge));
        check("NaN", 9, Err(Malformed));
        check("inf", 9, Err(Malformed));
        check("1.2.3", 9, Err(Malformed));
        check("", 9, Err(Missing));
        check("x", 9, Err(Malformed));
    }

    #[test]
    fn scaled_agrees_with_floats() {
        let mut stream = hybridsim_engine::Stream::new(3, "number");
        for _ in 0..10_000 {
            let (whole, part) = (stream.below(1 << 30), stream.below(1_000_000));
            let text = format!("{whole}.{part:06}");
            assert_eq!(scaled(text.as_bytes(), 9), Ok(whole * 1_000_000_000 + part * 1000));
        }
    }
}
