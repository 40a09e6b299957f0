//! Jobs of fio on a simulated drive.

use super::jobs::{DirectionResult, MeasuredJob, OfferedRate};
use super::{QueuedSsd, SsdPoint};
use crate::CalibrateError;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{Op, SimDuration};
use hybridsim_observe::Latencies;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;
use toml::{Table, Value as Toml};

/// Physical pages of the simulated drive, about: latencies do not depend on its size.
const PAGES: u64 = 1 << 14;
/// Blocks of a plane, and fewest pages of a block.
const BLOCKS: u64 = 8;
const BLOCK_PAGES_MIN: u64 = 24;
/// Least over-provisioning: with so few blocks, less would make sequential writes copy pages.
const SPARE_MIN: f64 = 1.0;
/// Least share of writes that the warm-up of a mix is lengthened for: with fewer, it would be most
/// of the run.
const WRITE_SHARE_MIN: f64 = 0.05;
/// Pages that are counted, at least, and requests for each that is outstanding.
const COUNTED_PAGES: u64 = 3_000;
const ROUNDS: u64 = 3;

/// A job, ready to run.
pub(super) struct JobBench<'a> {
    pub measured: &'a MeasuredJob,
    scenario: Scenario,
}

/// Results of one direction of a simulated job.
pub(super) struct SimulatedDirection {
    pub op: Op,
    pub iops: f64,
    pub latencies: Latencies,
}

impl SimulatedDirection {
    /// A percentile in microseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        self.latencies.quantile(percent / 100.0).map_or(f64::NAN, |ns| ns as f64 / 1e3)
    }

    pub fn mean_us(&self) -> f64 {
        self.latencies.mean().map_or(f64::NAN, |ns| ns / 1e3)
    }

    /// The results in the form of measured ones.
    pub fn delivered(&self) -> DirectionResult {
        let percentiles = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];
        let percentile = |percent| (percent, self.percentile(percent));
        DirectionResult {
            op: self.op,
            iops: self.iops,
            mean_us: self.mean_us(),
            percentiles: percentiles.map(percentile).to_vec(),
        }
    }
}

impl<'a> JobBench<'a> {
    /// `measured`, to be run on variants of `drive` with the dies of `point`, with `effort` times
    /// the least number of requests.
    ///
    /// # Errors
    /// When the drive cannot take such requests.
    pub fn new(
        drive: &QueuedSsd<'_>,
        point: &SsdPoint,
        measured: &'a MeasuredJob,
        effort: u64,
    ) -> Result<Self, CalibrateError> {
        let MeasuredJob { workload, bytes, depth, offered, read_percent, .. } = *measured;
        let settings = &drive.start.component.settings;
        let mut small = settings.clone();
        point.write(&mut small);
        shrink(&mut small);
        // Writes count from when the buffer is full and blocks are erased as fast as written.
        let before = settings.bytes("timing.write_buffer") + spare_bytes(&small);
        let share = measured.write_share();
        let warmup = match share > 0.0 {
            true => ((before / bytes) as f64 / share.max(WRITE_SHARE_MIN)) as u64 + depth,
            false => depth,
        };
        let pages = bytes.div_ceil(settings.bytes("page_size"));
        let counted = effort * (COUNTED_PAGES / pages).max(ROUNDS * depth);
        let mut component = drive.start.table();
        component.insert("precondition".into(), "fill".into());
        let text = |value: &str| Toml::from(value);
        let count = |value: u64| Toml::from(value as i64);
        let rw = if workload == "readwrite" { "rw" } else { workload };
        let mut generator = vec![
            ("kind", text("fio")),
            ("rw", text(rw)),
            // A small drive would collect garbage under random writes, which a measured one that
            // has free blocks does not; without garbage collection a page map treats random and
            // sequential writes alike.
            ("percentage_random", text("100,0")),
            ("bs", text(&format!("{bytes}B"))),
            ("rwmixread", count(read_percent)),
            ("norandommap", Toml::from(true)),
            ("requests", count(warmup + counted + depth)),
        ];
        let mut host = vec![
            ("queue_depth", count(depth.min(drive.host.commands_max))),
            // A short run that ended with fewer requests outstanding would have too low a rate.
            ("end", text("last-arrival")),
        ];
        match offered {
            Some(OfferedRate { iops, is_poisson }) => {
                let process = if is_poisson { "poisson" } else { "linear" };
                generator.push(("rate_iops", Toml::from(iops)));
                generator.push(("rate_process", text(process)));
                // fio's latencies begin when a request is submitted, not when it was due: beyond
                // its depth it waits in fio, beyond the limit of the drive in the host.
                let from = if depth > drive.host.commands_max { "arrival" } else { "issue" };
                host.extend([("mode", text("open")), ("latency_from", text(from))]);
            }
            None => host.extend([
                ("mode", text("closed")),
                ("outstanding", count(depth)),
                ("think_time", text(&format!("{}ns", drive.host.time_ns(measured)))),
            ]),
        }
        let run = [("warmup_requests", count(warmup))];
        let table = |keys: &[(&str, Toml)]| {
            let pair = |(key, value): &(&str, Toml)| ((*key).to_owned(), value.clone());
            Toml::Table(keys.iter().map(pair).collect())
        };
        let root = table(&[
            ("run", table(&run)),
            ("workload", table(&[("generator", table(&generator))])),
            ("host", table(&host)),
            ("component", table(&[("ssd", Toml::Table(component))])),
        ]);
        let Toml::Table(root) = root else { unreachable!("a table is a table") };
        let scenario = checked(drive, measured, &root)?;
        Ok(Self { measured, scenario })
    }

    /// Whether the job has requests of this kind.
    pub fn does(&self, op: Op) -> bool {
        self.measured.delivered.iter().any(|one| one.op == op)
    }

    /// Runs the job on `drive` at `point`.
    ///
    /// # Errors
    /// When the run fails.
    pub fn run(
        &self,
        drive: &QueuedSsd<'_>,
        point: &SsdPoint,
    ) -> Result<Vec<SimulatedDirection>, CalibrateError> {
        let ran = self.output(drive, point)?;
        let window = ran.results.simulated_ns.saturating_sub(ran.results.warmup.ns) as f64;
        let one = |measured: &DirectionResult| {
            let latencies = ran.latencies.of(measured.op).clone();
            let iops = latencies.count() as f64 * 1e9 / window;
            SimulatedDirection { op: measured.op, iops, latencies }
        };
        Ok(self.measured.delivered.iter().map(one).collect())
    }

    /// Everything that a run of the job on `drive` at `point` gives.
    ///
    /// # Errors
    /// As [`JobBench::run`].
    pub fn output(
        &self,
        drive: &QueuedSsd<'_>,
        point: &SsdPoint,
    ) -> Result<RunOutput, CalibrateError> {
        let mut scenario = self.scenario.clone();
        let settings = &mut scenario.components[scenario.system].settings;
        point.write(settings);
        shrink(settings);
        let failed = |message: String| {
            let label = self.measured.label();
            CalibrateError::Fit(format!("{label} on {}: {message}", drive.start.name))
        };
        let ran = run::run(&scenario, drive.start.registry, Options::default());
        let ran = ran.map_err(|error| failed(error.to_string()))?;
        match &ran.fault {
            Some(fault) => Err(failed(fault.to_string())),
            None => Ok(ran),
        }
    }
}

/// Bytes that a filled drive takes before it needs the first erased block.
fn spare_bytes(settings: &Settings) -> u64 {
    let pages: u64 =
        ["channels", "dies_per_channel", "planes_per_die", "blocks_per_plane", "pages_per_block"]
            .iter()
            .map(|key| settings.count(key))
            .product();
    let spare = settings.number("over_provisioning");
    ((settings.bytes("page_size") * pages) as f64 * spare / (1.0 + spare)) as u64
}

/// Makes the drive as small as it may be. Erases take the same share of the time in smaller blocks.
fn shrink(settings: &mut Settings) {
    let planes = ["channels", "dies_per_channel", "planes_per_die"]
        .map(|key| settings.count(key))
        .iter()
        .product::<u64>();
    let at_once = settings.count("read_pages").max(settings.count("program_pages"));
    let wanted = BLOCK_PAGES_MIN.max(PAGES / (planes * BLOCKS)).next_multiple_of(at_once);
    let before = settings.count("pages_per_block");
    let mut divisors = (wanted..=before).filter(|pages| before.is_multiple_of(*pages));
    let fits = |pages: &u64| {
        ["read_pages", "program_pages"].iter().all(|key| pages.is_multiple_of(settings.count(key)))
    };
    let pages = divisors.find(fits).unwrap_or(before);
    let erase = settings.duration("erase_time").as_ns() as f64 * pages as f64 / before as f64;
    settings.set("pages_per_block", Value::Count(pages));
    settings.set("blocks_per_plane", Value::Count(BLOCKS.min(settings.count("blocks_per_plane"))));
    settings.set("erase_time", Value::Duration(SimDuration::from_ns_f64(erase.round())));
    // So few blocks need more of them free, and garbage collection is not what is fitted.
    let spare = settings.number("over_provisioning").max(SPARE_MIN);
    settings.set("over_provisioning", Value::Number(spare));
}

fn checked(
    drive: &QueuedSsd<'_>,
    measured: &MeasuredJob,
    root: &Table,
) -> Result<Scenario, CalibrateError> {
    let text = toml::to_string(root).expect("tables of plain values are TOML");
    let source = SourceText { name: measured.label(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check(input, drive.start.registry)
        .map_err(|problems| CalibrateError::Start(problems.to_string()))
}
