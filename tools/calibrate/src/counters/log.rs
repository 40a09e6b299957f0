//! A series of a drive's counters: host bytes and bytes programmed over time.

use super::printed;
use crate::CalibrateError;
use hybridsim_simulation::text;
use std::path::Path;

/// Bytes of NVMe's "data unit".
const UNIT_BYTES: f64 = 512_000.0;
/// The part of the host bytes that counts: the drive comes closer to its steady state before.
const COUNTED_FROM: f64 = 0.6;
/// Least number of updates of `media_bytes` in the part that counts.
const MEDIA_UPDATES_MIN: usize = 2;
/// Least number of updates of the host's counter there, where its rate is fitted to.
const HOST_UPDATES_MIN: usize = 8;
/// Less is an error of units. A sequential load may seem to have less than 1, as both counters are
/// not updated at the same time.
const AMPLIFICATION_MIN: f64 = 0.9;

/// One reading of the counters, since the first of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterReading {
    pub time_s: f64,
    pub host_bytes: f64,
    /// Bytes programmed; `None` in the log of a drive that does not count them.
    pub media_bytes: Option<f64>,
}

/// A series of readings.
#[derive(Clone, Debug)]
pub struct CounterLog {
    readings: Vec<CounterReading>,
}

/// The part of a log that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Begin and end, as parts of all host bytes.
    pub part: (f64, f64),
    /// `None` for a drive that does not count bytes programmed.
    pub amplification: Option<f64>,
    pub host_mb_s: f64,
}

/// Columns, in the order of [`CounterReading`]; host bytes may be in data units.
const COLUMNS: &str =
    "time_s, host_bytes (or host_units, of 512,000 bytes) and, if counted, media_bytes";

impl CounterLog {
    /// The series in `path`: a CSV file with a header, or what nvme-cli and smartctl print.
    ///
    /// # Errors
    /// When it is not such a file, a counter decreases, or too few readings count.
    pub fn read(path: &Path) -> Result<Self, CalibrateError> {
        let wrong =
            |message: String| CalibrateError::Readings(format!("{}: {message}", path.display()));
        let text = text::read(path, text::READINGS_BYTES_MAX);
        let text = text.map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    /// The series in `text`, CSV or printed.
    ///
    /// # Errors
    /// The first problem, with its line where it has one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut readings = match printed::is_printed(text) {
            true => printed::readings(text)?,
            false => rows(text)?,
        };
        let first = readings.first().copied().ok_or("has no readings")?;
        for reading in &mut readings {
            reading.time_s -= first.time_s;
            reading.host_bytes -= first.host_bytes;
            reading.media_bytes = difference(*reading, first);
        }
        let log = Self { readings };
        log.window()?;
        Ok(log)
    }

    /// Whether the drive counted the bytes that it programmed.
    fn has_media_bytes(&self) -> bool {
        self.readings.iter().any(|reading| reading.media_bytes.is_some())
    }

    /// Bytes that the host wrote.
    pub fn host_bytes(&self) -> f64 {
        self.readings.last().map_or(0.0, |last| last.host_bytes)
    }

    /// The part that counts: between the first and the last reading from 60 % of the host bytes on
    /// at which the drive had updated its counter.
    ///
    /// # Errors
    /// A log with too few updates, or without host writes between them.
    pub fn window(&self) -> Result<Window, String> {
        let total = self.host_bytes();
        // After the load, drives go on collecting in the background.
        let mut end = self.readings.partition_point(|reading| reading.host_bytes < total) + 1;
        if !self.has_media_bytes() && end < self.readings.len() {
            // The load ended at some time before this reading.
            end -= 1;
        }
        let is_updated = |pair: &&[CounterReading]| match difference(pair[1], pair[0]) {
            Some(media) => media > 0.0,
            None => pair[1].host_bytes > pair[0].host_bytes,
        };
        let updates: Vec<CounterReading> = self.readings[..end.min(self.readings.len())]
            .windows(2)
            .filter(is_updated)
            .map(|pair| pair[1])
            .filter(|reading| reading.host_bytes >= COUNTED_FROM * total)
            .collect();
        let least = if self.has_media_bytes() { MEDIA_UPDATES_MIN } else { HOST_UPDATES_MIN };
        let (from, to) = match updates[..] {
            [from, .., to] if updates.len() >= least && to.host_bytes > from.host_bytes => {
                (from, to)
            }
            _ => return Err(self.too_few_updates(least)),
        };
        let host = to.host_bytes - from.host_bytes;
        let amplification = difference(to, from).map(|media| media / host);
        if let Some(amplification) = amplification.filter(|it| *it < AMPLIFICATION_MIN) {
            return Err(format!(
                "the drive programmed {amplification:.3} bytes for each byte of the host; is \
                 media_bytes in bytes, and are the data incompressible?"
            ));
        }
        Ok(Window {
            part: (from.host_bytes / total, to.host_bytes / total),
            amplification,
            host_mb_s: host / (to.time_s - from.time_s) / 1e6,
        })
    }

    fn too_few_updates(&self, least: usize) -> String {
        let name = if self.has_media_bytes() { "media_bytes" } else { "the host's counter" };
        let remedy = match self.readings.last().and_then(|last| last.media_bytes) {
            Some(0.0) => "leave it out if the drive does not count it",
            _ => "log the counters more often, or write more",
        };
        format!(
            "{name} changes less than {least} times after {:.0} % of the host bytes; {remedy}",
            100.0 * COUNTED_FROM
        )
    }
}

/// Bytes programmed between two readings, if they are counted.
fn difference(to: CounterReading, from: CounterReading) -> Option<f64> {
    Some(to.media_bytes? - from.media_bytes?)
}

/// The rows of the CSV `text`.
fn rows(text: &str) -> Result<Vec<CounterReading>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let known = ["time_s", "host_bytes", "host_units", "media_bytes"];
    if let Some(other) = header.iter().find(|it| !known.contains(it)) {
        return Err(format!("line 1: unknown column `{other}`; columns are {COLUMNS}"));
    }
    let column = |name: &str| header.iter().position(|it| it == name);
    let (host, unit) = match (column("host_bytes"), column("host_units")) {
        (Some(at), None) => (at, 1.0),
        (None, Some(at)) => (at, UNIT_BYTES),
        (Some(_), Some(_)) => return Err("line 1: has host_bytes and host_units".to_owned()),
        (None, None) => return Err(format!("line 1: no host_bytes; columns are {COLUMNS}")),
    };
    let time = column("time_s").ok_or(format!("line 1: no time_s; columns are {COLUMNS}"))?;
    let media = column("media_bytes");
    let mut readings: Vec<CounterReading> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |at: usize| {
            let field = record.get(at).unwrap_or_default();
            let value = field.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0);
            value.ok_or_else(|| {
                format!("line {line}: `{}` is not a number of at least 0: `{field}`", &header[at])
            })
        };
        let reading = CounterReading {
            time_s: number(time)?,
            host_bytes: unit * number(host)?,
            // Empty in the log of a drive whose counter could not be read.
            media_bytes: media
                .filter(|at| record.get(*at).is_some_and(|field| !field.is_empty()))
                .map(number)
                .transpose()?,
        };
        follow(&mut readings, reading).map_err(|message| format!("line {line}: {message}"))?;
    }
    Ok(readings)
}

/// Adds `next` to `readings`, if it may follow the last.
pub(super) fn follow(
    readings: &mut Vec<CounterReading>,
    next: CounterReading,
) -> Result<(), &'static str> {
    let wrong = readings.last().and_then(|last| match next {
        _ if next.time_s <= last.time_s => Some("time_s does not increase"),
        _ if next.host_bytes < last.host_bytes => Some("the host's counter decreases"),
        _ if next.media_bytes.is_none() && last.media_bytes.is_some() => {
            Some("has no media_bytes, unlike the readings before it")
        }
        _ if next.media_bytes.is_some() && last.media_bytes.is_none() => {
            Some("has media_bytes, unlike the readings before it")
        }
        _ if next.media_bytes < last.media_bytes => Some("media_bytes decreases"),
        _ => None,
    });
    readings.push(next);
    wrong.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amplification(window: &Window) -> f64 {
        window.amplification.expect("the drive counts what it programs")
    }

    #[test]
    fn only_readings_at_updates_of_the_counter_count() {
        let mut text = "media_bytes,time_s,host_bytes\n".to_owned();
        // Twice the host bytes, updated at every fifth reading.
        for at in 0..100_u64 {
            let media = 7_000 + 2_000 * (at / 5 * 5);
            text += &format!("{media},{},{}\n", 10 * at, 500 + 1_000 * at);
        }
        let window = CounterLog::parse(&text).expect("a log").window().expect("a window");
        assert!((amplification(&window) - 2.0).abs() < 1e-9, "{window:?}");
        assert!((window.part.0 - 60.0 / 99.0).abs() < 1e-9, "{window:?}");
        assert!((window.host_mb_s - 1e-4).abs() < 1e-12, "{window:?}");
    }

    #[test]
    fn what_the_drive_collects_after_the_load_does_not_count() {
        let load = (0..100_u64).map(|at| format!("{at},{},{}\n", 1_000 * at, 2_000 * at));
        let idle = (100..200_u64).map(|at| format!("{at},99000,{}\n", 2_000 * at));
        let rows: String = load.chain(idle).collect();
        let text = format!("time_s,host_bytes,media_bytes\n{rows}");
        let window = CounterLog::parse(&text).expect("a log").window().expect("a window");
        assert!((amplification(&window) - 2.0).abs() < 1e-9, "{window:?}");
        assert!((window.host_mb_s - 1e-3).abs() < 1e-12, "{window:?}");
    }

    #[test]
    fn a_log_without_bytes_of_the_medium_has_the_rate_alone() {
        let rows: String = (0..100_u64).map(|at| format!("{at},{}\n", 1_000_000 * at)).collect();
        let log = CounterLog::parse(&format!("time_s,host_bytes\n{rows}")).expect("a log");
        let window = log.window().expect("a window");
        assert_eq!(window.amplification, None);
        assert!((window.host_mb_s - 1.0).abs() < 1e-9, "{window:?}");
        assert!((window.part.0 - 60.0 / 99.0).abs() < 1e-9, "{window:?}");
        assert!((window.part.1 - 1.0).abs() < 1e-9, "{window:?}");
        // A column may be empty, and the load may end between two readings.
        let rows: String = (0..99_u64).map(|at| format!("{at},{},\n", 1_000_000 * at)).collect();
        let idle: String = (99..200_u64).map(|at| format!("{at},98100000,\n")).collect();
        let text = format!("time_s,host_bytes,media_bytes\n{rows}{idle}");
        let window = CounterLog::parse(&text).expect("a log").window().expect("a window");
        assert_eq!(window.amplification, None);
        assert!((window.host_mb_s - 1.0).abs() < 1e-9, "{window:?}");
    }

    #[test]
    fn units_of_512_000_bytes_are_taken() {
        let rows = (0..50).map(|at| format!("{at},{at},{}\n", 1_024_000 * at));
        let text = format!("time_s,host_units,media_bytes\n{}", rows.collect::<String>());
        let window = CounterLog::parse(&text).expect("a log").window().expect("a window");
        assert!((amplification(&window) - 2.0).abs() < 1e-9, "{window:?}");
    }

    #[test]
    fn files_that_cannot_be_used_say_where_and_why() {
        let head = "time_s,host_bytes,media_bytes\n";
        for (text, words) in [
            ("", "line 1: no host_bytes"),
            ("host_bytes\n", "line 1: no time_s"),
            ("time_s,host_bytes,media_byte\n", "line 1: unknown column `media_byte`"),
            ("time_s,host_bytes\n0,0\n1,1\n", "the host's counter changes less than 8 times"),
            (&format!("{head}0,0,0\n1,1,\n"), "line 3: has no media_bytes, unlike"),
            (&format!("{head}0,0,7\n1,1,7\n2,2,7\n"), "leave it out if the drive"),
            ("time_s,host_bytes,host_units,media_bytes\n", "host_bytes and host_units"),
            (head, "no readings"),
            (
                "1764201600\nData Units Written: 5\n1764201660\nData Units Written: 6\n\
                 Physical media units written - 9\n",
                "after line 3: has media_bytes, unlike the readings before it",
            ),
            (&format!("{head}0,0,0\n1,x,1\n"), "line 3: `host_bytes`"),
            (&format!("{head}0,0,0\n1,-1,1\n"), "line 3: `host_bytes`"),
            (&format!("{head}0,0,0\n1,1\n"), "3"),
            (&format!("{head}0,0,0\n0,1,1\n"), "line 3: time_s does not increase"),
            (&format!("{head}0,9,0\n1,8,1\n"), "line 3: the host's counter decreases"),
            (&format!("{head}0,0,9\n1,1,8\n"), "line 3: media_bytes decreases"),
            (&format!("{head}0,0,0\n1,1,1\n2,2,2\n"), "changes less than 2 times"),
            (&format!("{head}0,0,0\n1,60,6\n2,70,7\n3,80,8\n"), "programmed 0.100 bytes"),
        ] {
            let error = CounterLog::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
