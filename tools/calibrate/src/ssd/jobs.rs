//! Measured jobs of fio: what was asked of the drive, and what it delivered.

use crate::CalibrateError;
use crate::readings::block_size;
use hybridsim_engine::Op;
use hybridsim_simulation::text;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Workloads that are simulated, in fio's words.
const WORKLOADS: [&str; 6] = ["read", "write", "randread", "randwrite", "readwrite", "randrw"];

/// A job of fio on one drive, a closed or an open loop, and its results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredJob {
    /// fio's `rw`.
    pub workload: &'static str,
    /// fio's `bs`.
    pub bytes: u64,
    /// Requests outstanding, or at most outstanding where the rate is limited: fio's `iodepth`
    /// times `numjobs`.
    pub depth: u64,
    /// Arrival rate of an open loop; `None` for a closed one.
    pub offered: Option<OfferedRate>,
    /// Percentage of reads in a mix: fio's `rwmixread`.
    pub read_percent: u64,
    /// Reads and writes, those that there were.
    pub delivered: Vec<DirectionResult>,
}

/// The rate of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfferedRate {
    /// Requests per second, as delivered.
    pub iops: f64,
    /// Whether interarrival times are exponential (fio's `rate_process = poisson`) and not
    /// constant.
    pub is_poisson: bool,
}

/// Results of one direction of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionResult {
    #[serde(serialize_with = "name")]
    pub op: Op,
    /// Requests per second.
    pub iops: f64,
    /// Mean latency in microseconds, of the same latency as the percentiles.
    pub mean_us: f64,
    /// Percentiles of latency: percent and microseconds.
    pub percentiles: Vec<(f64, f64)>,
}

fn name<S: serde::Serializer>(op: &Op, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *op == Op::Read { "read" } else { "write" })
}

impl MeasuredJob {
    /// A job in fio's words; `None` where its workload is not one that is simulated or nothing was
    /// delivered.
    pub fn new(
        workload: &str,
        (bytes, depth): (u64, u64),
        read_percent: u64,
        delivered: Vec<DirectionResult>,
    ) -> Option<Self> {
        let workload = if workload == "rw" { "readwrite" } else { workload };
        let workload = WORKLOADS.into_iter().find(|known| *known == workload)?;
        let is_sound = |one: &DirectionResult| one.iops > 0.0 && one.mean_us > 0.0;
        let sound = !delivered.is_empty() && delivered.iter().all(is_sound);
        let real = bytes > 0 && bytes.is_multiple_of(512) && depth > 0;
        let offered = None;
        (sound && real).then_some(Self { workload, bytes, depth, offered, read_percent, delivered })
    }

    /// The job in a few words.
    pub fn label(&self) -> String {
        let size = match self.bytes {
            kib if kib.is_multiple_of(1024) => format!("{} KiB", kib / 1024),
            bytes => format!("{bytes} B"),
        };
        let load = match self.offered {
            Some(OfferedRate { iops, .. }) => format!("{iops:.0}/s"),
            None => format!("depth {}", self.depth),
        };
        format!("{} {size} {load}", self.workload)
    }

    /// Time from a completion to the request that follows it, in microseconds: what the latency
    /// leaves out of a turn of the loop, such as the submission of a request.
    pub fn host_us(&self) -> f64 {
        let iops = self.delivered.iter().map(|one| one.iops).sum::<f64>();
        let waited = self.delivered.iter().map(|one| one.iops * one.mean_us).sum::<f64>();
        ((1e6 * self.depth as f64 - waited) / iops).max(0.0)
    }

    /// The share of its requests that are writes.
    pub(super) fn write_share(&self) -> f64 {
        match self.workload {
            "read" | "randread" => 0.0,
            "write" | "randwrite" => 1.0,
            _ => 1.0 - self.read_percent as f64 / 100.0,
        }
    }

    /// The requests outstanding, and those offered a second where the rate is limited: it sorts the
    /// jobs of a row.
    pub fn load(&self) -> (u64, u64) {
        (self.depth, self.offered.map_or(0, |offered| offered.iops.round() as u64))
    }

    /// A key that sorts by workload, size and load.
    pub fn key(&self) -> impl Ord + use<> {
        (self.row(), self.load())
    }

    /// Agreement with `other` in all but the load.
    pub fn is_of_row(&self, other: &Self) -> bool {
        self.row() == other.row()
    }

    fn row(&self) -> impl Ord + use<> {
        let arrivals = self.offered.map(|offered| offered.is_poisson);
        (self.workload, self.read_percent, self.bytes, arrivals)
    }
}

/// The jobs in `path`, a result that fio wrote as JSON.
///
/// # Errors
/// When it is none, or has no job that can be simulated.
pub fn read(path: &Path) -> Result<Vec<MeasuredJob>, CalibrateError> {
    let name = path.display().to_string();
    let text = text::read(path, text::READINGS_BYTES_MAX);
    let text = text.map_err(|error| CalibrateError::Readings(format!("{name}: {error}")))?;
    parse(&name, &text)
}

/// The jobs in `text`, the result that fio wrote as JSON to the file `name`.
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, text: &str) -> Result<Vec<MeasuredJob>, CalibrateError> {
    let wrong = |message: String| CalibrateError::Readings(format!("{name}: {message}"));
    let root: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let listed = root["jobs"].as_array();
    let listed =
        listed.ok_or_else(|| wrong("has no list `jobs`, so fio did not write it".into()))?;
    let mut jobs = Vec::new();
    for (number, job) in (1..).zip(listed) {
        let found = one(job, &root["global options"]);
        jobs.extend(found.map_err(|message| wrong(format!("job {number}: {message}")))?);
    }
    match jobs.is_empty() {
        true => Err(wrong("has no job of fixed size with reads or writes".to_owned())),
        false => Ok(jobs),
    }
}

/// Engines of fio that have one request outstanding at a time.
const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

/// Engines that keep many, and go through the page cache by default like those above.
const ASYNCHRONOUS: [&str; 3] = ["libaio", "io_uring", "posixaio"];

/// Greatest mean difference of the bytes of a request from its size, as a part of it.
const SIZE_TOLERANCE: f64 = 0.05;

/// A drive that delivers at least this share of the rate offered keeps up.
const KEPT_UP: f64 = 0.98;

/// A loop is closed from this share of its depth on, as the drive has not kept up.
const FULL: f64 = 0.8;

/// More than so many times a rate is not chance, but another unit.
const FAR: f64 = 1.5;

/// The job that writes the whole drive before the others.
const FILL: &str = "fill";

/// A job; `None` if it transferred nothing, as one that only waits, or fills the drive.
fn one(job: &Value, global: &Value) -> Result<Option<MeasuredJob>, String> {
    if job["jobname"].as_str() == Some(FILL) {
        return Ok(None);
    }
    let option = |names: &[&str]| {
        let of =
            |from: &Value| names.iter().find_map(|name| from[*name].as_str().map(str::to_owned));
        of(&job["job options"]).or_else(|| of(global))
    };
    let number = |names: &[&str], default: u64| match option(names) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("`{}` is no number: {text}", names[0])),
    };
    let delivered: Vec<DirectionResult> = [("read", Op::Read), ("write", Op::Write)]
        .into_iter()
        .filter_map(|(name, op)| direction(&job[name], op))
        .collect();
    if delivered.is_empty() {
        return Ok(None);
    }
    if option(&["thinktime"]).is_some_and(|time| time != "0") {
        return Err("has `thinktime`; limit the rate with `rate_iops` instead".into());
    }
    let workload = option(&["rw", "readwrite"]).unwrap_or_else(|| "read".to_owned());
    let size = option(&["bs", "blocksize"]).unwrap_or_else(|| "4k".to_owned());
    let bytes = block_size(&size).ok_or(format!("`bs` is no size: {size}"))?;
    check_size(job, bytes)?;
    let clones = number(&["numjobs"], 1)?;
    if clones > 1 && option(&["group_reporting"]).is_none_or(|on| on == "0") {
        return Err("has `numjobs` without `group_reporting`, so it is one clone's result".into());
    }
    let iodepth = number(&["iodepth"], 1)?;
    let engine = option(&["ioengine"]);
    let kernel = engine.as_ref().is_some_and(|it| {
        SYNCHRONOUS.contains(&it.as_str()) || ASYNCHRONOUS.contains(&it.as_str())
    });
    if option(&["direct"]).map_or(kernel, |direct| direct == "0") {
        return Err("went through the page cache; measure with `direct = 1`".into());
    }
    if iodepth > 1 && engine.as_ref().is_some_and(|it| SYNCHRONOUS.contains(&it.as_str())) {
        return Err(format!(
            "`ioengine = {}` keeps one request outstanding whatever `iodepth` says; measure with \
             io_uring or libaio",
            engine.unwrap_or_default()
        ));
    }
    let depth = iodepth.saturating_mul(clones);
    let write_percent = number(&["rwmixwrite"], 50)?;
    let read_percent = number(&["rwmixread"], 100_u64.saturating_sub(write_percent))?;
    let found = MeasuredJob::new(&workload, (bytes, depth), read_percent, delivered);
    let found = found.ok_or(format!("`rw = {workload}` with `bs = {size}` cannot be simulated"))?;
    let limited = ["rate_iops", "rate"].iter().find_map(|key| Some((*key, option(&[*key])?)));
    let offered = match limited {
        Some((key, rate)) => {
            let process = option(&["rate_process"]).unwrap_or_else(|| "linear".to_owned());
            offered(&found, (key, &rate), clones, &process)?
        }
        None => None,
    };
    Ok(Some(MeasuredJob { offered, ..found }))
}

/// The open loop of `job`, each of whose `clones` was limited to `rate`, fio's parameter `key`;
/// `None` where as many requests as allowed were outstanding.
fn offered(
    job: &MeasuredJob,
    (key, rate): (&str, &str),
    clones: u64,
    process: &str,
) -> Result<Option<OfferedRate>, String> {
    let [one] = job.delivered.as_slice() else {
        return Err(format!("has a mix limited by `{key}`; measure reads and writes alone"));
    };
    // A rate for all, or one each for reads, writes and trims, of which any may be left out.
    let parts: Vec<&str> = rate.split(',').map(str::trim).collect();
    let own = match (parts.as_slice(), one.op) {
        ([all], _) => all,
        ([read, ..], Op::Read) => read,
        (parts, _) => parts[1],
    };
    if own.is_empty() {
        return Ok(None);
    }
    let each = block_size(own).filter(|each| *each > 0);
    let each = each.ok_or_else(|| format!("`{key}` is no rate: {rate}"))? as f64;
    let limit = clones as f64 * if key == "rate" { each / job.bytes as f64 } else { each };
    let is_poisson = match process {
        "poisson" => true,
        "linear" if clones == 1 => false,
        "linear" => {
            return Err(format!(
                "has {clones} clones of constant rate, whose phases are unknown; measure with \
                 `rate_process = poisson`"
            ));
        }
        other => return Err(format!("`rate_process` is not known: {other}")),
    };
    let iops = one.iops;
    if iops > FAR * limit {
        return Err(format!(
            "delivered {iops:.0} requests a second, far more than `{key}` allows: {limit:.0}"
        ));
    }
    // Little's law: how many were outstanding.
    let outstanding = iops * one.mean_us / 1e6;
    if iops < KEPT_UP * limit && outstanding > FULL * job.depth as f64 {
        return Ok(None);
    }
    if one.percentile(50.0).is_none() {
        return Err("has no median latency, which is all that an open loop shows".to_owned());
    }
    Ok(Some(OfferedRate { iops, is_poisson }))
}

/// `bs` is the size of all requests: not so with `bssplit`, `bsrange`, a size per direction, or
/// units that fio reads otherwise. A few requests at the ends of a run are counted apart from their
/// bytes.
fn check_size(job: &Value, bytes: u64) -> Result<(), String> {
    for direction in ["read", "write"] {
        let count = |key: &str| job[direction][key].as_f64().filter(|count| *count > 0.0);
        let (Some(transferred), Some(requests)) = (count("io_bytes"), count("total_ios")) else {
            continue;
        };
        let mean = transferred / requests;
        if (mean / bytes as f64 - 1.0).abs() > SIZE_TOLERANCE {
            return Err(format!(
                "its requests transferred {mean:.0} bytes each, not {bytes} as `bs` says; only \
                 jobs of one size can be used"
            ));
        }
    }
    Ok(())
}

/// One direction of a result of fio; `None` without requests.
fn direction(part: &Value, op: Op) -> Option<DirectionResult> {
    let iops = part["iops"].as_f64().filter(|iops| *iops > 0.0)?;
    // Mean and percentiles of the same latency: fio lists percentiles of one of the two, by
    // default of the one that leaves out the submission.
    let latencies = ["lat_ns", "clat_ns"].map(|name| &part[name]);
    let listed = |lat: &&Value| lat["percentile"].is_object() && lat["mean"].is_number();
    let either = || latencies.into_iter().find(|lat| lat["mean"].is_number());
    let latency = latencies.into_iter().find(listed).or_else(either)?;
    let mean = latency["mean"].as_f64()?;
    let percentiles = latency["percentile"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(percent, ns)| Some((percent.parse::<f64>().ok()?, ns.as_f64()? / 1e3)));
    Some(DirectionResult { op, iops, mean_us: mean / 1e3, percentiles: percentiles.collect() })
}

impl DirectionResult {
    /// The percentile `percent` in microseconds, if it was measured.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let found = self.percentiles.iter().find(|(at, _)| (at - percent).abs() < 1e-6);
        found.map(|(_, us)| *us).filter(|us| *us > 0.0)
    }
}
