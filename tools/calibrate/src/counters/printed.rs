//! Readings of counters as nvme-cli and smartctl print them, one after the other, each after its
//! time.

use super::log::{CounterReading, follow};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Bytes of NVMe's "data unit", of an ATA sector, and of the unit of NAND writes.
const UNIT_BYTES: f64 = 512_000.0;
const SECTOR_BYTES: f64 = 512.0;
const GIB: f64 = 1_073_741_824.0;

/// The log that a counter is in. A later one replaces an earlier one: the host bytes of the
/// placement log are as exact as its media bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Smart,
    Ocp,
    Placement,
}

/// A counter: words that its line contains, and the bytes of a unit.
struct Counter {
    words: &'static str,
    of_host: bool,
    source: Source,
    unit: f64,
}

const fn counter(words: &'static str, of_host: bool, source: Source, unit: f64) -> Counter {
    Counter { words, of_host, source, unit }
}

/// Counters in the texts of `nvme fdp stats`, `nvme ocp smart-add-log`, `nvme smart-log` and
/// `smartctl`.
const COUNTERS: [Counter; 6] = [
    counter("(hbmw)", true, Source::Placement, 1.0),
    counter("(mbmw)", false, Source::Placement, 1.0),
    counter("physical media units written", false, Source::Ocp, 1.0),
    counter("data units written", true, Source::Smart, UNIT_BYTES),
    counter("logical sectors written", true, Source::Smart, SECTOR_BYTES),
    counter("nand_writes_1gib", false, Source::Smart, GIB),
];

/// Whether `text` is printed rather than CSV.
pub(super) fn is_printed(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.to_lowercase().replace('_', " ");
        COUNTERS.iter().any(|it| line.contains(&it.words.replace('_', " ")))
    })
}

/// The whole number at the start of `text`, without separators of thousands.
fn number(text: &str) -> Option<f64> {
    let end = text.find(['[', '(']).unwrap_or(text.len());
    let is_separator = |letter: char| letter.is_whitespace() || ",.'\u{2019}".contains(letter);
    let digits: String = text[..end].chars().filter(|letter| !is_separator(*letter)).collect();
    digits.parse::<u128>().ok().map(|number| number as f64)
}

/// The value of `counter` in `line`, in bytes.
fn value(counter: &Counter, line: &str) -> Option<f64> {
    let (before, after) = line.split_once(counter.words)?;
    let after = after.trim_start();
    let value = match counter.words {
        // Its two halves, the higher first, after a dash.
        "physical media units written" => {
            let halves: Vec<&str> = after.strip_prefix('-')?.split_whitespace().collect();
            match halves[..] {
                [one] => number(one)?,
                [high, low] => number(high)? * 2.0_f64.powi(64) + number(low)?,
                _ => return None,
            }
        }
        // Attributes of smartctl end with the raw value.
        "nand_writes_1gib" => number(after.split_whitespace().next_back()?)?,
        // Its device statistics have page, offset, size, value and flags before the name.
        "logical sectors written" => number(before.split_whitespace().nth(3)?)?,
        _ => number(after.strip_prefix(':')?)?,
    };
    Some(value * counter.unit)
}

/// The time that smartctl states in its output.
const OF_SMARTCTL: &str = "Local Time is:";

/// The time that `line` states: seconds since 1970, ISO 8601, or as `date` prints it. The zone of
/// the last is left out.
fn time(line: &str) -> Option<f64> {
    let line = line.trim();
    let line = line.strip_prefix(OF_SMARTCTL).unwrap_or(line).trim();
    if let Ok(seconds) = line.parse::<f64>() {
        return Some(seconds).filter(|it| (1e8..1e11).contains(it));
    }
    if let Ok(instant) = line.parse::<jiff::Timestamp>() {
        return Some(instant.as_second() as f64);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, month, day, clock, rest @ ..] = words.as_slice() else { return None };
    let year = rest.iter().find(|word| word.len() == 4 && word.parse::<u16>().is_ok())?;
    let (format, half) = match rest.iter().find(|word| ["AM", "PM"].contains(word)) {
        Some(half) => ("%b %d %I:%M:%S %Y %p", *half),
        None => ("%b %d %H:%M:%S %Y", ""),
    };
    let text = format!("{month} {day} {clock} {year} {half}");
    let date = DateTime::strptime(format, text.trim_end()).ok()?;
    Some(TimeZone::UTC.to_timestamp(date).ok()?.as_second() as f64)
}

/// A reading that is not complete yet; counters with their source.
#[derive(Default)]
struct Partial {
    time: Option<(usize, f64)>,
    /// Whether the time is the one that smartctl states.
    is_of_smartctl: bool,
    host: Option<(Source, f64)>,
    media: Option<(Source, f64)>,
}

impl Partial {
    fn add(&mut self, line: &str) {
        for counter in &COUNTERS {
            let found = value(counter, line);
            let slot = if counter.of_host { &mut self.host } else { &mut self.media };
            if let Some(bytes) = found
                && slot.is_none_or(|(source, _)| source <= counter.source)
            {
                *slot = Some((counter.source, bytes));
            }
        }
    }

    /// Adds the reading to `all`, unless there is no counter.
    fn complete(self, all: &mut Vec<CounterReading>) -> Result<(), String> {
        let at = |line: usize| format!("the reading after line {line}");
        match (self.time, self.host, self.media) {
            (_, None, None) => Ok(()),
            (None, ..) => Err("counters before the first time; print `date +%s` before each \
                               reading"
                .to_owned()),
            (Some((line, time_s)), Some((_, host_bytes)), media) => {
                let media_bytes = media.map(|(_, bytes)| bytes);
                let reading = CounterReading { time_s, host_bytes, media_bytes };
                follow(all, reading).map_err(|message| format!("{}: {message}", at(line)))
            }
            (Some((line, _)), None, _) => {
                Err(format!("{} has no bytes of the host: print `nvme smart-log` too", at(line)))
            }
        }
    }
}

/// The readings in `text`, in their order.
///
/// # Errors
/// A reading without a time or the host's counter.
pub(super) fn readings(text: &str) -> Result<Vec<CounterReading>, String> {
    let mut all = Vec::new();
    let mut partial = Partial::default();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(time_s) = time(line) {
            // The reading may have its time, and other counters.
            let is_complete = partial.host.is_some() && partial.media.is_some();
            let is_of_smartctl = line.trim().starts_with(OF_SMARTCTL);
            let has_time = partial.time.is_some() && !partial.is_of_smartctl;
            if is_of_smartctl && has_time && !is_complete {
                continue;
            }
            std::mem::take(&mut partial).complete(&mut all)?;
            (partial.time, partial.is_of_smartctl) = (Some((number, time_s)), is_of_smartctl);
        }
        partial.add(&line.to_lowercase().replace("data_units_written", "data units written"));
    }
    partial.complete(&mut all)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(time_s: f64, host_bytes: f64, media_bytes: f64) -> CounterReading {
        CounterReading { time_s, host_bytes, media_bytes: Some(media_bytes) }
    }

    #[test]
    fn the_statistics_of_placement_are_read() {
        let text = "1764201600\nHost Bytes with Metadata Written (HBMW): 173,768,411,865,088\n\
                    Media Bytes with Metadata Written (MBMW): 214,255,000,000,000\n\
                    Media Bytes Erased (MBE): 214,905,000,000,000\n\n1764201660\n\
                    Host Bytes with Metadata Written (HBMW): 173,768,411,869,184\n\
                    Media Bytes with Metadata Written (MBMW): 214,255,000,004,096\n";
        assert!(is_printed(text));
        let expected = [
            reading(1_764_201_600.0, 173_768_411_865_088.0, 214_255e9),
            reading(1_764_201_660.0, 173_768_411_869_184.0, 214_255_000_004_096.0),
        ];
        assert_eq!(readings(text).expect("it is complete"), expected);
    }

    #[test]
    fn both_logs_of_a_drive_make_a_reading() {
        let text = "Thu Nov 27 00:00:00 UTC 2025\nSmart Log for NVME device:nvme0 namespace-id:1\n\
                    data_units_read                     : 203,913,228\n\
                    data_units_written                  : 64,663,716\n\
                    SMART Cloud Attributes :-\n\
                    Physical media units written -               \t1 5\n\
                    Physical media units read    -               \t0 9\n";
        let expected = reading(1_764_201_600.0, 64_663_716.0 * 512e3, 18_446_744_073_709_551_621.0);
        assert_eq!(readings(text).expect("it is complete"), [expected]);
        let newer = "2025-11-27T00:00:00Z\nData Units Written\t: 64663716 (33.11 TB)\n\
                     Physical media units written - 7000\n";
        let expected = reading(1_764_201_600.0, 64_663_716.0 * 512e3, 7_000.0);
        assert_eq!(readings(newer).expect("it is complete"), [expected]);
    }

    #[test]
    fn smartctl_of_nvme_and_sata_drives_is_read() {
        let nvme = "1764201599\nLocal Time is:                      Thu Nov 27 00:00:00 2025 CET\n\
                    Data Units Written:                 1.234.567 [632 GB]\n\
                    Physical media units written - 0 9000\n";
        let expected = reading(1_764_201_599.0, 1_234_567.0 * 512e3, 9_000.0);
        assert_eq!(readings(nvme).expect("it is complete"), [expected]);
        let sata = "1764201599\n\
            249 NAND_Writes_1GiB        -O--CK   100   100   000    -    12\n\
            0x01  0x018  6      8589934592  ---  Logical Sectors Written\n";
        let expected = reading(1_764_201_599.0, 8_589_934_592.0 * 512.0, 12.0 * GIB);
        assert_eq!(readings(sata).expect("it is complete"), [expected]);
    }

    #[test]
    fn the_host_s_counter_is_read_alone() {
        let text = "Local Time is:    Thu Nov 27 14:00:00 2025 CET\n\
                    Data Units Written:                 64 [32.7 MB]\n\
                    Local Time is:    Thu Nov 27 14:01:00 2025 CET\n\
                    Data Units Written:                 65 [33.2 MB]\n";
        let one =
            |time_s, units| CounterReading { time_s, host_bytes: units * 512e3, media_bytes: None };
        let expected = [one(1_764_252_000.0, 64.0), one(1_764_252_060.0, 65.0)];
        assert_eq!(readings(text).expect("it is complete"), expected);
    }

    #[test]
    fn logs_of_several_tools_and_languages_make_a_reading() {
        let text = "Thu Nov 27 01:00:00 PM UTC 2025\nPhysical media units written - 0 9000\n\
                    Local Time is:    Thu Nov 27 14:00:01 2025 CET\n\
                    Data Units Written:                 64\u{202f}663\u{202f}716 [33,1 TB]\n\
                    Thu Nov 27 01:01:00 PM UTC 2025\nPhysical media units written - 0 9500\n\
                    Data Units Written:                 64'663'717 [33.1 TB]\n\
                    Physical Media Units Written - TLC : 484533969\n\
                    \u{20} - SLC : 12271117\n\
                    0x01  0x018  6               -  ---  Logical Sectors Written\n";
        let expected = [
            reading(1_764_248_400.0, 64_663_716.0 * 512e3, 9_000.0),
            reading(1_764_248_460.0, 64_663_717.0 * 512e3, 9_500.0),
        ];
        assert_eq!(readings(text).expect("it is complete"), expected);
    }

    #[test]
    fn readings_that_lack_something_say_where_and_what() {
        let host = "Data Units Written: 5\n";
        for (text, words) in [
            (host.to_owned(), "before the first time"),
            ("1764201599\nPhysical media units written - 5\n".to_owned(), "no bytes of the host"),
        ] {
            let error = readings(&text).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
        assert!(!is_printed("time_s,host_bytes,media_bytes\n1,2,3\n"));
    }
}
