//! Measured latencies, from files of three kinds.

use super::CalibrateError;
use hybridsim_simulation::text;
use serde_json::Value;
use std::path::Path;

/// Kind of request that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A read.
    Read,
    /// A write that goes on where the last one ended, on a device that has room.
    Write,
    /// A write somewhere.
    ScatteredWrite,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::ScatteredWrite];

    /// The word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ScatteredWrite => "random-write",
        }
    }

    fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word.trim())
    }
}

/// One latency, or the shortest of many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub kind: Kind,
    /// Length of the request.
    pub bytes: u64,
    /// Time from submission to completion.
    pub ns: f64,
}

/// Format of a file of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Comma-separated: `op,bytes,latency_ns`.
    Csv,
    /// A result of fio with `--output-format=json`.
    FioJson,
    /// A log of fio's `write_lat_log`.
    FioLog,
}

/// Reads the file at `path`; its kind is found by its content.
///
/// # Errors
/// When it cannot be read, a line of it is invalid, or it holds no latencies.
pub fn read(path: &Path) -> Result<(Source, Vec<Reading>), CalibrateError> {
    let problem =
        |message: String| CalibrateError::Readings(format!("{}: {message}", path.display()));
    let text = text::read(path, text::READINGS_BYTES_MAX);
    let text = text.map_err(|error| problem(error.to_string()))?;
    let (source, readings) = match text.trim_start().chars().next() {
        Some('{') => (Source::FioJson, fio_json(&text)),
        Some('0'..='9') => (Source::FioLog, fio_log(&text)),
        _ => (Source::Csv, own(&text)),
    };
    let readings = readings.map_err(problem)?;
    match readings.is_empty() {
        true => Err(problem("holds no latencies".to_owned())),
        false => Ok((source, readings)),
    }
}

/// The readings as a file [`read`] takes.
pub fn write_csv(readings: &[Reading]) -> String {
    let mut text = "op,bytes,latency_ns\n".to_owned();
    for Reading { kind, bytes, ns } in readings {
        text.push_str(&format!("{},{bytes},{ns:.0}\n", kind.word()));
    }
    text
}

fn reading(kind: Kind, bytes: u64, ns: f64) -> Result<Reading, String> {
    if bytes == 0 || bytes > 1 << 40 || !ns.is_finite() || !(0.0..=1e15).contains(&ns) {
        return Err(format!("{bytes} bytes in {ns} ns make no sense"));
    }
    Ok(Reading { kind, bytes, ns })
}

fn own(text: &str) -> Result<Vec<Reading>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |name: &str| {
        let at = header.iter().position(|field| field.trim() == name);
        at.ok_or_else(|| {
            format!(
                "no column `{name}`; a file of latencies has the columns op, bytes and latency_ns \
                 (or is what fio writes as JSON or latency log)"
            )
        })
    };
    let (op, bytes, ns) = (column("op")?, column("bytes")?, column("latency_ns")?);
    let mut readings = Vec::new();
    for (row, record) in reader.records().enumerate() {
        let line = row + 2;
        let record = record.map_err(|error| format!("line {line}: {error}"))?;
        let field = |at: usize| record.get(at).unwrap_or_default().trim();
        let kind = Kind::named(field(op)).ok_or_else(|| {
            format!("line {line}: `{}` is not read, write or random-write", field(op))
        })?;
        let bytes = field(bytes).parse().map_err(|_| format!("line {line}: bytes is no number"))?;
        let ns = field(ns).parse().map_err(|_| format!("line {line}: latency_ns is no number"))?;
        readings.push(reading(kind, bytes, ns).map_err(|error| format!("line {line}: {error}"))?);
    }
    Ok(readings)
}

/// fio's log of latencies: time in ms, latency in ns, direction, bytes, and more.
fn fio_log(text: &str) -> Result<Vec<Reading>, String> {
    let mut readings = Vec::new();
    for (line, row) in (1..).zip(text.lines()).filter(|(_, row)| !row.trim().is_empty()) {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let number = |at: usize, what: &str| -> Result<u64, String> {
            let field = fields.get(at).and_then(|field| field.parse().ok());
            field.ok_or_else(|| format!("line {line}: {what} is no number"))
        };
        let kind = match number(2, "direction")? {
            0 => Kind::Read,
            1 => Kind::Write,
            _ => continue,
        };
        let (bytes, ns) = (number(3, "block size")?, number(1, "latency")? as f64);
        readings.push(reading(kind, bytes, ns).map_err(|error| format!("line {line}: {error}"))?);
    }
    Ok(readings)
}

/// fio's summary: one reading per job and direction, the shortest latency; of scattered writes
/// the mean.
fn fio_json(text: &str) -> Result<Vec<Reading>, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let jobs = root["jobs"].as_array().ok_or("has no list `jobs`, so fio did not write it")?;
    let global = &root["global options"];
    let mut readings = Vec::new();
    for job in jobs {
        let option = |name: &str| {
            let own = job["job options"][name].as_str();
            own.or_else(|| global[name].as_str()).unwrap_or_default().to_owned()
        };
        let bytes = block_size(&option("bs"));
        let scattered = option("rw").contains("rand");
        for (direction, kind) in [("read", Kind::Read), ("write", Kind::Write)] {
            let part = &job[direction];
            if part["total_ios"].as_u64().unwrap_or(0) == 0 {
                continue;
            }
            let bytes = bytes.ok_or("a job has no `bs` option; set it in the job file")?;
            let (kind, name) = match (kind, scattered) {
                (Kind::Write, true) => (Kind::ScatteredWrite, "mean"),
                _ => (kind, "min"),
            };
            let ns = ["lat_ns", "clat_ns"].iter().find_map(|lat| part[lat][name].as_f64());
            let ns =
                ns.ok_or(format!("a job has no latency `{name}` in ns; fio 3 or later is needed"))?;
            readings.push(reading(kind, bytes, ns)?);
        }
    }
    Ok(readings)
}

/// A size in fio's words, by default with powers of 1024; `None` if it is none.
pub fn block_size(text: &str) -> Option<u64> {
    let first = text.split(',').next()?.trim().to_ascii_lowercase();
    let digits = first.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &first[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" | "ki" | "kib" => 1 << 10,
        "m" | "mb" | "mi" | "mib" => 1 << 20,
        "g" | "gb" | "gi" | "gib" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn check(text: &str, expect: &[(Kind, u64, f64)]) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("readings");
        fs::write(&path, text).expect("it can be written");
        let (_, got) = read(&path).unwrap_or_else(|error| panic!("{text}: {error}"));
        let got: Vec<_> = got.iter().map(|one| (one.kind, one.bytes, one.ns)).collect();
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn three_kinds_of_files_are_read() {
        check(
            "op,bytes,latency_ns\nread,4096,1000\nrandom-write, 8192 ,2.5e3\n",
            &[(Kind::Read, 4096, 1000.0), (Kind::ScatteredWrite, 8192, 2500.0)],
        );
        check(
            "1, 1000, 0, 4096, 0\n2, 2000, 1, 8192, 0, 0\n3, 9, 2, 0, 0\n",
            &[(Kind::Read, 4096, 1000.0), (Kind::Write, 8192, 2000.0)],
        );
        let lat = |min| format!("{{\"total_ios\":3,\"lat_ns\":{{\"min\":{min},\"mean\":99.5}}}}");
        let job = |rw: &str, part: &str, min| {
            format!("{{\"job options\":{{\"bs\":\"4k\",\"rw\":\"{rw}\"}},\"{part}\":{}}}", lat(min))
        };
        let text = format!(
            "{{\"jobs\":[{},{}]}}",
            job("randread", "read", 7),
            job("randwrite", "write", 8)
        );
        check(&text, &[(Kind::Read, 4096, 7.0), (Kind::ScatteredWrite, 4096, 99.5)]);
    }

    #[test]
    fn what_is_none_of_them_says_where() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (text, word) in [
            ("", "no column"),
            ("a,b\n1,2\n", "`op`"),
            ("op,bytes,latency_ns\n", "no latencies"),
            ("op,bytes,latency_ns\nread,4096,fast\n", "line 2"),
            ("op,bytes,latency_ns\nread,0,1\n", "make no sense"),
            ("op,bytes,latency_ns\nread,4096,1e300\n", "make no sense"),
            ("1, 1000\n", "line 1"),
            ("{\"jobs\":3}", "jobs"),
            ("{", "EOF"),
            ("{\"jobs\":[{\"read\":{\"total_ios\":1}}]}", "bs"),
        ] {
            let path = folder.path().join("readings");
            fs::write(&path, text).expect("it can be written");
            let error = read(&path).expect_err(text).to_string();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let readings = [Reading { kind: Kind::Write, bytes: 512, ns: 17.0 }];
        check(&write_csv(&readings), &[(Kind::Write, 512, 17.0)]);
    }
}
