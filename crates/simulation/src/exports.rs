//! Results for other tools: percentile tables, results in fio's format, the run over time, a list
//! of all requests.

use crate::run::RunOutput;
use hybridsim_engine::event::{Times, kind_of};
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, LatencyPhase, Op};
use hybridsim_observe::Pictures;
use hybridsim_report::{fio, hgrm, series};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const COMPLETED: u8 = kind_of::<CommonEvent>("completed");

/// Digits of the largest number, and the comma behind it.
const NUMBER_MAX: usize = 21;
/// Bytes of the longest row: numbers and the name of an operation.
const ROW_MAX: usize = (4 + LatencyPhase::COUNT) * NUMBER_MAX + 16;

/// All numbers of two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The files [`for_tools`] may give.
pub const NAMES: [&str; 6] = [
    "fio.json",
    "latency-all.hgrm",
    "latency-read.hgrm",
    "latency-write.hgrm",
    "series.csv",
    "series.json",
];

/// Files by name with their content, of the measured window; the series are of the whole run, and
/// need the data of charts. A kind of request of which there was none has no table.
pub fn for_tools(done: &RunOutput) -> Vec<(&'static str, String)> {
    let [shape, all, read, write, over_time, with_units] = NAMES;
    let series = |of: fn(&Pictures) -> String| done.pictures.as_ref().map_or_else(String::new, of);
    let mut files = vec![
        (shape, format!("{:#}\n", fio::json(&done.results, &done.latencies))),
        (all, hgrm::table(&done.latencies.all())),
        (read, hgrm::table(done.latencies.of(Op::Read))),
        (write, hgrm::table(done.latencies.of(Op::Write))),
        (over_time, series(series::table)),
        (with_units, series(series::json)),
    ];
    files.retain(|(_, text)| !text.is_empty());
    files
}

/// Every request that completed, a row each, in the order of completion.
pub struct RequestLog {
    out: BufWriter<File>,
    path: PathBuf,
    partial: PathBuf,
    phases_ns: [u64; LatencyPhase::COUNT],
    row: Row,
    failed: Option<io::Error>,
}

impl RequestLog {
    /// Begins the list that will be in the file `path`.
    ///
    /// # Errors
    /// Fails when nothing can be written there.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial"));
        let mut out = BufWriter::new(File::create(&partial)?);
        let breakdown =
            LatencyPhase::ALL.map(|component| format!("{}_ns", component.name())).join(",");
        let head = writeln!(out, "arrival_ns,latency_ns,op,first_sector,sectors,{breakdown}");
        let path = path.to_owned();
        let (phases_ns, row) = ([0; LatencyPhase::COUNT], Row { bytes: [0; ROW_MAX], length: 0 });
        Ok(Self { out, path, partial, phases_ns, row, failed: head.err() })
    }

    fn row(&mut self, record: &EventRecord) -> io::Result<()> {
        match record.event() {
            Some(CommonEvent::PhaseTime { phase, duration: time, .. }) => {
                self.phases_ns[phase as usize] += time.as_ns()
            }
            Some(CommonEvent::PhaseTimes { .. }) => {
                for (phase, ns) in Times::of(record) {
                    self.phases_ns[phase as usize] += ns;
                }
            }
            Some(CommonEvent::Completed { op, sectors, lba, latency }) => {
                let latency_ns = latency.as_ns();
                let arrival_ns = record.time.as_ns().saturating_sub(latency_ns);
                let row = &mut self.row;
                row.length = 0;
                row.number(arrival_ns);
                row.number(latency_ns);
                row.text(op.name());
                row.number(lba.0);
                row.number(sectors.into());
                for ns in std::mem::take(&mut self.phases_ns) {
                    row.number(ns);
                }
                self.out.write_all(row.line())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes the file, which appears under its name only now.
    ///
    /// # Errors
    /// Fails when it could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush().and_then(|()| fs::rename(&self.partial, &self.path)),
        }
    }
}

/// The row being written: fields, each with a comma behind it.
struct Row {
    bytes: [u8; ROW_MAX],
    length: usize,
}

impl Row {
    fn text(&mut self, text: &str) {
        let end = self.length + text.len();
        self.bytes[self.length..end].copy_from_slice(text.as_bytes());
        self.bytes[end] = b',';
        self.length = end + 1;
    }

    fn number(&mut self, mut number: u64) {
        // Most phases took no time.
        if number == 0 {
            let zero = self.bytes[self.length..].first_chunk_mut().expect("the row has room");
            (*zero, self.length) = (*b"0,", self.length + 2);
            return;
        }
        let mut at = self.length + number.ilog10() as usize + 1;
        self.bytes[at] = b',';
        self.length = at + 1;
        while number >= 10 {
            at -= 2;
            let pair = self.bytes[at..].first_chunk_mut().expect("the row has room");
            *pair = PAIRS[(number % 100) as usize];
            number /= 100;
        }
        if number > 0 {
            self.bytes[at - 1] = b'0' + number as u8;
        }
    }

    /// The row, with the end of the line in the place of the last comma.
    fn line(&mut self) -> &[u8] {
        self.bytes[self.length - 1] = b'\n';
        &self.bytes[..self.length]
    }
}

impl Drop for RequestLog {
    /// Removes the file of a run that did not begin.
    fn drop(&mut self) {
        drop(fs::remove_file(&self.partial));
    }
}

impl EventSink for RequestLog {
    fn take(&mut self, events: &[EventRecord]) {
        for record in events {
            let kind = record.kind();
            let counts = [COMPLETED, Times::PHASES.one, Times::PHASES.several].contains(&kind);
            if counts && self.failed.is_none() {
                self.failed = self.row(record).err();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_full() {
        let mut numbers: Vec<u64> = (0..1100).collect();
        numbers.extend((3..20).flat_map(|digits| [10u64.pow(digits) - 1, 10u64.pow(digits)]));
        numbers.push(u64::MAX);
        for number in numbers {
            let mut row = Row { bytes: [0; ROW_MAX], length: 0 };
            row.number(number);
            row.text("read");
            row.number(number);
            let expected = format!("{number},read,{number}\n");
            assert_eq!(row.line(), expected.as_bytes());
        }
    }
}
