//! What a results folder holds for other tools: percentile tables, results in fio's shape, a list
//! of all requests, a timeline.

use super::SimulateArgs;
use super::output::{Exit, Failure, note, write_file};
use crate::run::Done;
use crate::scenario::units;
use hybridsim_engine::{Fact, FactSink, Op, Part, Stamped};
use hybridsim_observe::spans::SpanFold;
use hybridsim_report::{fio, hgrm, timeline};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A timeline with more events than this is slow to look at.
const EVENTS_MAX: usize = 500_000;
/// The files this module writes, beside the percentile tables.
const FILES: [&str; 3] = ["fio.json", "requests.csv", "timeline.json"];
const TABLES: [(&str, Option<Op>); 3] = [
    ("latency-all.hgrm", None),
    ("latency-read.hgrm", Some(Op::Read)),
    ("latency-write.hgrm", Some(Op::Write)),
];

/// A window of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from_ns: u64,
    to_ns: u64,
}

impl Window {
    /// Reads `FROM..TO`, such as `1s..1.5s`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Err("write it as FROM..TO, such as 1s..1200ms".to_owned());
        };
        let (from_ns, to_ns) =
            (units::duration(from.trim())?.as_ns(), units::duration(to.trim())?.as_ns());
        match from_ns < to_ns {
            true => Ok(Self { from_ns, to_ns }),
            false => Err("it ends before it begins".to_owned()),
        }
    }
}

/// Takes the facts of a run for the files that were asked for.
pub struct Exports {
    requests: Option<RequestLog>,
    spans: Option<SpanFold>,
}

impl Exports {
    /// Begins the files of a run whose results go into `folder`.
    pub fn begin(args: &SimulateArgs, folder: &Path) -> Result<Self, Failure> {
        let requests = match args.requests {
            true => Some(RequestLog::create(folder)?),
            false => None,
        };
        let fold = |window: Window| SpanFold::new(window.from_ns, window.to_ns, EVENTS_MAX);
        Ok(Self { requests, spans: args.timeline.map(fold) })
    }

    /// Whether it wants facts at all.
    pub fn listens(&self) -> bool {
        self.requests.is_some() || self.spans.is_some()
    }

    /// Writes what came of it, and takes away what an earlier run left there.
    pub fn save(self, folder: &Path, done: &Done) -> Result<(), Failure> {
        for name in FILES.iter().chain(TABLES.iter().map(|(name, _)| name)) {
            drop(fs::remove_file(folder.join(name)));
        }
        let shape = fio::json(&done.results, &done.latencies);
        write_file(folder, "fio.json", &format!("{shape:#}\n"))?;
        for (name, op) in TABLES {
            let table = match op {
                None => hgrm::table(&done.latencies.all()),
                Some(op) => hgrm::table(done.latencies.of(op)),
            };
            if !table.is_empty() {
                write_file(folder, name, &table)?;
            }
        }
        if let Some(log) = self.requests {
            log.finish(folder)?;
        }
        self.spans.map_or(Ok(()), |fold| save_timeline(folder, done, fold))
    }
}

fn save_timeline(folder: &Path, done: &Done, fold: SpanFold) -> Result<(), Failure> {
    let title = &done.results.label.title;
    let (left_out, window_ns) = (fold.left_out(), fold.window_ns());
    let spans = fold.finish();
    if spans.is_empty() {
        note(&format!("warning: {title}: nothing happened in the window of the timeline"));
    }
    if left_out > 0 {
        note(&format!(
            "warning: {title}: the timeline keeps the first {EVENTS_MAX} events and leaves out \
             {left_out}; choose a shorter window"
        ));
    }
    let mut text = Vec::new();
    let about = timeline::About { title, window_ns, left_out };
    timeline::write(&mut text, about, &done.paths, &spans)?;
    write_file(folder, "timeline.json", &String::from_utf8(text).expect("JSON is UTF-8"))
}

impl FactSink for Exports {
    fn take(&mut self, facts: &[Stamped]) {
        if let Some(log) = &mut self.requests {
            log.take(facts);
        }
        if let Some(spans) = &mut self.spans {
            spans.take(facts);
        }
    }
}

/// Every request that completed, a row each, in the order of completion.
struct RequestLog {
    out: BufWriter<File>,
    partial: PathBuf,
    parts_ns: [u64; Part::COUNT],
    failed: Option<io::Error>,
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Message(Exit::Run, format!("cannot write {}: {error}", path.display()))
}

impl RequestLog {
    fn create(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let partial = folder.join(".requests.csv.partial");
        let file = File::create(&partial).map_err(|error| unwritable(&partial, &error))?;
        let mut out = BufWriter::new(file);
        let parts = Part::ALL.map(|part| format!("{}_ns", part.name())).join(",");
        let head = writeln!(out, "arrival_ns,latency_ns,op,first_sector,sectors,{parts}");
        Ok(Self { out, partial, parts_ns: [0; Part::COUNT], failed: head.err() })
    }

    fn row(&mut self, stamped: &Stamped) -> io::Result<()> {
        match stamped.fact {
            Fact::Spent { part, time, .. } => self.parts_ns[part as usize] += time.as_ns(),
            Fact::Completed { op, sectors, lba, latency } => {
                let latency_ns = latency.as_ns();
                let arrival_ns = stamped.time.as_ns().saturating_sub(latency_ns);
                let (op, lba) = (op.name(), lba.0);
                write!(self.out, "{arrival_ns},{latency_ns},{op},{lba},{sectors}")?;
                for ns in std::mem::take(&mut self.parts_ns) {
                    write!(self.out, ",{ns}")?;
                }
                self.out.write_all(b"\n")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join("requests.csv");
        let ended = match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush().and_then(|()| fs::rename(&self.partial, &path)),
        };
        ended.map_err(|error| unwritable(&path, &error))
    }
}

impl Drop for RequestLog {
    /// A run that did not begin leaves nothing behind.
    fn drop(&mut self) {
        drop(fs::remove_file(&self.partial));
    }
}

impl FactSink for RequestLog {
    fn take(&mut self, facts: &[Stamped]) {
        for stamped in facts {
            if self.failed.is_none() {
                self.failed = self.row(stamped).err();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_time() {
        let window = |text: &str| Window::parse(text).map(|window| (window.from_ns, window.to_ns));
        assert_eq!(window("1s..1200ms"), Ok((1_000_000_000, 1_200_000_000)));
        assert_eq!(window("0s .. 5us"), Ok((0, 5_000)));
        assert!(window("1s").is_err_and(|error| error.contains("FROM..TO")));
        assert!(window("2s..1s").is_err() && window("1..2").is_err());
    }
}
