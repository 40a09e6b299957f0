//! Logs of measured response times, and the classes of their requests.

use crate::CalibrateError;
use hybridsim_config::registry::Registry;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime};
use hybridsim_workload::record::{Record, RecordReader};
use hybridsim_workload::trace::{self, FormatEntry, OpenOptions};
use serde::Serialize;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Minimum number of requests in a log.
const REQUESTS_MIN: usize = 500;
/// Share of requests that may arrive before the previous one completes, as clocks are coarse.
const EARLY_SHARE_MAX: f64 = 0.01;
/// Smaller classes are merged.
const CLASS_MIN: usize = 50;

/// A request of a log.
#[derive(Clone, Copy, Debug)]
pub struct LoggedRequest {
    pub request: Request,
    /// Time from the completion before to the arrival.
    pub pause: SimDuration,
    /// Arrival by the clock of the log.
    pub at: SimTime,
    pub response_ms: f64,
}

/// A measured log.
#[derive(Clone, Debug)]
pub struct Log {
    /// The name in messages.
    pub name: String,
    /// The requests in order.
    pub lines: Arc<[LoggedRequest]>,
}

/// A request beside the one before: what drives treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Class {
    /// `read` or `write`.
    pub op: &'static str,
    /// `sequential` where it begins where the one before ended, `local` on the cylinder where that
    /// ended, else `random`.
    pub place: &'static str,
    /// The operation before; `any` where both together are few.
    pub after: &'static str,
}

impl Log {
    /// Reads the file at `path`; its format, one of `registry`, is found by content unless it is
    /// named.
    ///
    /// # Errors
    /// When it cannot be read, has no response times, is too short, or was measured with several
    /// requests at a time or on several drives.
    pub fn read(
        path: &Path,
        format: Option<&str>,
        registry: &Registry,
    ) -> Result<Self, CalibrateError> {
        let name = path.file_name().map_or_else(String::new, |it| it.to_string_lossy().into());
        let wrong = |error: &dyn std::fmt::Display| CalibrateError::Readings(error.to_string());
        let formats: Vec<FormatEntry> = registry.iter().collect();
        let options = OpenOptions { format: format.map(str::to_owned), ..OpenOptions::default() };
        let mut reader =
            trace::open_with(&formats, path, &options).map_err(|error| wrong(&error))?;
        let mut records = Vec::new();
        while let Some(record) = reader.next().map_err(|error| wrong(&error))? {
            records.push(record);
        }
        let volumes = reader.volumes().len();
        Self::new(name, &records, volumes)
            .map_err(|message| wrong(&format!("{}: {message}", path.display())))
    }

    /// The log of `records`.
    ///
    /// # Errors
    /// As [`Log::read`], without the file's name.
    pub fn new(name: String, records: &[Record], volumes: usize) -> Result<Self, String> {
        if volumes > 1 {
            return Err(format!(
                "has requests to {volumes} volumes, and a drive is one; keep those of one volume"
            ));
        }
        let moves = |record: &&Record| {
            matches!(record.request.op, Op::Read | Op::Write) && record.request.sectors > 0
        };
        let (mut lines, mut early, mut done) = (Vec::new(), 0_usize, SimTime::ZERO);
        for record in records.iter().filter(moves) {
            let Some(response) = record.response.filter(|response| !response.is_zero()) else {
                return Err(format!(
                    "its request {} has no response time; calibration needs a log with the \
                     response time of each request, such as CSV with response_ns",
                    lines.len() + 1
                ));
            };
            early += usize::from(record.at < done);
            let pause = if record.at > done { record.at.since(done) } else { SimDuration::ZERO };
            done = record.at + response;
            let response_ms = response.as_ns() as f64 / 1e6;
            let request =
                Request::new(record.request.op, record.request.lba, record.request.sectors);
            lines.push(LoggedRequest { request, pause, at: record.at, response_ms });
        }
        if lines.len() < REQUESTS_MIN {
            return Err(format!(
                "holds {} reads and writes; at least {REQUESTS_MIN} are needed, and the published \
                 logs of drives have 10000",
                lines.len()
            ));
        }
        if early as f64 > EARLY_SHARE_MAX * lines.len() as f64 {
            return Err(format!(
                "{early} of its {} requests arrive before the previous one completes; constants of \
                 a drive need a log of one request at a time (fio: iodepth=1)",
                lines.len()
            ));
        }
        Ok(Self { name, lines: lines.into() })
    }

    /// The first request that is not within `sectors`.
    pub(super) fn beyond(&self, sectors: u64) -> Option<(usize, u64)> {
        let at = self.lines.iter().position(|line| line.request.end().0 > sectors)?;
        Some((at + 1, self.lines[at].request.end().0))
    }
}

/// The cylinders of a drive, as far as it says where they are.
pub(super) struct Cylinders {
    pub positioner: Option<Rc<dyn Positioner>>,
}

impl Cylinders {
    /// The cylinder of sector `lba`; 0 where the drive does not say.
    fn of(&self, lba: u64) -> u32 {
        self.positioner.as_ref().map_or(0, |it| it.cylinder(Lba(lba)))
    }
}

/// Distances of the seeks from the last sector of the request before, as shares of the stroke, by
/// log and request.
pub(super) fn distances(logs: &[Log], cylinders: &Cylinders) -> Vec<Vec<f64>> {
    let apart = |from: u64, to: u64| f64::from(cylinders.of(from).abs_diff(cylinders.of(to)));
    let count = cylinders.positioner.as_ref().map_or(0, |it| it.cylinders());
    let stroke = f64::from(count.saturating_sub(1).max(1));
    let one = |log: &Log| {
        let mut before = 0;
        let distance = |line: &LoggedRequest| {
            let from = std::mem::replace(&mut before, line.request.end().0.saturating_sub(1));
            apart(from, line.request.lba.0) / stroke
        };
        log.lines.iter().map(distance).collect()
    };
    logs.iter().map(one).collect()
}

/// [`Class::place`] of a request on another cylinder.
pub(super) const RANDOM: &str = "random";

pub(super) const fn word(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        _ => "write",
    }
}

/// The classes there are in `logs`, and that of every request.
pub(super) fn classify(logs: &[Log], cylinders: &Cylinders) -> (Vec<Class>, Vec<Vec<usize>>) {
    let mut named: Vec<Vec<Class>> = logs.iter().map(|log| classes_of(log, cylinders)).collect();
    let count = |named: &[Vec<Class>], class: Class| {
        named.iter().flatten().filter(|other| **other == class).count()
    };
    let few: Vec<Class> =
        distinct(&named).into_iter().filter(|class| count(&named, *class) < CLASS_MIN).collect();
    for class in named.iter_mut().flatten() {
        if few.iter().any(|few| few.op == class.op && few.place == class.place) {
            class.after = "any";
        }
    }
    let all = distinct(&named);
    let number = |class: &Class| all.binary_search(class).expect("all classes are in the list");
    let numbers = named.iter().map(|classes| classes.iter().map(number).collect()).collect();
    (all, numbers)
}

fn distinct(named: &[Vec<Class>]) -> Vec<Class> {
    let mut all: Vec<Class> = named.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn classes_of(log: &Log, cylinders: &Cylinders) -> Vec<Class> {
    let mut before = (0, Op::Read);
    let class = |line: &LoggedRequest| {
        let (end, op) = before;
        let request = &line.request;
        let place = if request.lba.0 == end {
            "sequential"
        } else if cylinders.of(request.lba.0) == cylinders.of(end.saturating_sub(1)) {
            "local"
        } else {
            RANDOM
        };
        before = (request.end().0, request.op);
        Class { op: word(request.op), place, after: word(op) }
    };
    log.lines.iter().map(class).collect()
}
