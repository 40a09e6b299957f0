//! Quantities as people write them: a number and a unit, in one string.
//!
//! Only units that mean one thing everywhere are taken. A bare `k` or `M` is 1000 to some programs
//! and 1024 to others, so it is refused with both readings named.

use hybridsim_engine::SimDuration;

/// A unit and what one of it is in the base unit.
type Units = &'static [(&'static str, f64)];

const TIMES: Units = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];
const SIZES: Units = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const POWERS: Units = &[("W", 1.0), ("mW", 1e-3), ("uW", 1e-6), ("µW", 1e-6)];
const ENERGIES: Units =
    &[("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6), ("µJ", 1e-6), ("nJ", 1e-9), ("pJ", 1e-12)];
const SPEEDS: Units = &[("rpm", 1.0)];

/// Splits `"25 us"` into 25 and `us`.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || c == '.' || c == '_' || is_sign(text, at)))
        .map_or(text.len(), |(at, _)| at);
    let digits = text[..end].replace('_', "");
    let value: f64 =
        digits.parse().map_err(|_| format!("`{text}` does not start with a number"))?;
    if !value.is_finite() || value < 0.0 {
        return Err(format!("`{text}` is not a quantity: it must be finite and not negative"));
    }
    Ok((value, text[end..].trim()))
}

fn is_sign(text: &str, at: usize) -> bool {
    at == 0 && matches!(text.as_bytes().first(), Some(b'-' | b'+'))
}

fn convert(text: &str, units: Units, what: &str) -> Result<f64, String> {
    let (value, unit) = split(text)?;
    if let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) {
        return Ok(value * factor);
    }
    let known: Vec<&str> = units.iter().map(|(name, _)| *name).filter(|n| n.is_ascii()).collect();
    let known = known.join(", ");
    let is_prefix = unit.len() == 1 || unit == "KB";
    let prefix = unit.chars().next().filter(|_| is_prefix);
    Err(match prefix {
        None if unit.is_empty() => {
            format!("`{text}` lacks a unit; write {what} with one of {known}")
        }
        Some(prefix @ ('k' | 'K' | 'M' | 'm' | 'G' | 'g' | 'T' | 't')) if what == "a size" => {
            let p = prefix.to_ascii_uppercase();
            let decimal = if p == 'K' { 'k' } else { p };
            format!(
                "`{text}` is ambiguous: write `{value}{decimal}B` (powers of 1000) or \
                 `{value}{p}iB` (powers of 1024)"
            )
        }
        _ => format!("`{unit}` is not a unit of {what}; use one of {known}"),
    })
}

fn whole(value: f64, text: &str) -> Result<u64, String> {
    if value > 9.0e18 {
        return Err(format!("`{text}` is too large"));
    }
    Ok(value.round() as u64)
}

/// Longer times would let sums of them leave the 64 bits of simulated time.
const DURATION_NS_MAX: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// A time, to the nearest nanosecond.
pub fn duration(text: &str) -> Result<SimDuration, String> {
    match whole(convert(text, TIMES, "a time")?, text)? {
        ns if ns <= DURATION_NS_MAX => Ok(SimDuration::from_ns(ns)),
        _ => Err(format!("`{text}` is too long; the longest time is ten years")),
    }
}

/// A size in bytes; must come out whole.
pub fn bytes(text: &str) -> Result<u64, String> {
    let value = convert(text, SIZES, "a size")?;
    let rounded = whole(value, text)?;
    if (value - rounded as f64).abs() > 1e-6 * value.max(1.0) {
        return Err(format!("`{text}` is not a whole number of bytes"));
    }
    Ok(rounded)
}

/// A mean size in bytes, which need not be whole.
pub fn mean_bytes(text: &str) -> Result<f64, String> {
    convert(text, SIZES, "a size")
}

/// A rate in bytes per second.
pub fn rate(text: &str) -> Result<u64, String> {
    let Some(size) = text.trim().strip_suffix("/s") else {
        return Err(format!("`{text}` is not a rate; write it like `100MB/s` or `95MiB/s`"));
    };
    bytes(size)
}

/// A rotation speed in turns per minute.
pub fn rpm(text: &str) -> Result<f64, String> {
    convert(text, SPEEDS, "a rotation speed")
}

/// Power in watts.
pub fn power(text: &str) -> Result<f64, String> {
    convert(text, POWERS, "power")
}

/// Energy in joules.
pub fn energy(text: &str) -> Result<f64, String> {
    convert(text, ENERGIES, "energy")
}

/// A ratio written as a percentage.
pub fn percent(text: &str) -> Result<f64, String> {
    let (value, unit) = split(text)?;
    if unit == "%" {
        Ok(value / 100.0)
    } else {
        Err(format!("`{text}` is not a ratio; write a number such as 0.07, or `\"7%\"`"))
    }
}

/// A size as the shortest exact quantity, for resolved scenarios.
pub fn write_bytes(value: u64) -> String {
    for (name, factor) in SIZES.iter().rev() {
        let factor = *factor as u64;
        if value > 0 && factor > 1 && value.is_multiple_of(factor) {
            return format!("{}{name}", value / factor);
        }
    }
    format!("{value}B")
}

/// A time as the shortest exact quantity, for resolved scenarios.
pub fn write_duration(value: SimDuration) -> String {
    let ns = value.as_ns();
    for (name, factor) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if ns > 0 && ns.is_multiple_of(factor) {
            return format!("{}{name}", ns / factor);
        }
    }
    format!("{ns}ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_with_clear_units_are_taken() {
        assert_eq!(duration("25us"), Ok(SimDuration::from_us(25)));
        assert_eq!(duration("0.5525 ms"), Ok(SimDuration::from_ns(552_500)));
        assert_eq!(duration("2min"), Ok(SimDuration::from_s(120)));
        assert_eq!(bytes("4KiB"), Ok(4096));
        assert_eq!(bytes("4kB"), Ok(4000));
        assert_eq!(bytes("146.8GB"), Ok(146_800_000_000));
        assert_eq!(bytes("1_024B"), Ok(1024));
        assert_eq!(rate("800MB/s"), Ok(800_000_000));
        assert_eq!(rpm("7200rpm"), Ok(7200.0));
        assert_eq!(power("33uW").map(|w| (w * 1e9).round()), Ok(33_000.0));
        assert_eq!(percent("7%"), Ok(0.07));
        assert_eq!(mean_bytes("4.38KiB"), Ok(4.38 * 1024.0));
    }

    #[test]
    fn doubtful_quantities_are_refused_with_a_remedy() {
        let says = |result: Result<u64, String>, word: &str| {
            let message = result.expect_err(word);
            assert!(message.contains(word), "{message}");
        };
        says(bytes("4k"), "4kB");
        says(bytes("4M"), "4MiB");
        says(bytes("4.38KB"), "write `4.38kB` (powers of 1000) or `4.38KiB`");
        says(bytes("4096"), "lacks a unit");
        says(bytes("4XB"), "not a unit");
        says(bytes("0.3B"), "whole number of bytes");
        says(bytes("-1B"), "negative");
        says(bytes("1e9B"), "not a unit");
        says(bytes("99999999TiB"), "too large");
        says(bytes(""), "number");
        says(rate("800MB"), "100MB/s");
        assert!(duration("3650d").is_ok() && duration("3651d").is_err());
        assert!(duration("5").is_err() && duration("5m").is_err() && percent("7").is_err());
    }

    #[test]
    fn what_is_written_reads_back() {
        for value in [1, 512, 4096, 4000, 1_000_000, 146_815_737_856, 7 << 30] {
            assert_eq!(bytes(&write_bytes(value)), Ok(value));
        }
        for ns in [0, 1, 999, 1000, 552_500, 1_500_000, 60_000_000_000] {
            let value = SimDuration::from_ns(ns);
            assert_eq!(duration(&write_duration(value)), Ok(value));
        }
    }
}
