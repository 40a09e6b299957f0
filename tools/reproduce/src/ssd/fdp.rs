//! Two drives with flexible data placement (FDP): write amplification by their own counters, minute
//! by minute, under random writes and under the two engines of a flash cache, with and without
//! placement handles.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use flate2::read::MultiGzDecoder;
use hybridsim_hybrid::flash_cache::cost::victim_utilisation;
use hybridsim_report::study::Curve;
use hybridsim_simulation::write_amplification::WriteAmplification;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/fdp", run };

const PAGE_BYTES: u64 = 4096;
/// Parts of a pass over the drive.
const PARTS: u32 = 20;
/// Simulated passes; measured ones are the first that is judged and those after it.
const PASSES: (u32, u32) = (2, 5);
/// Share of the metadata of the cache, at the start of the device.
const METADATA: f64 = 0.005;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    drives: Vec<Drive>,
    isolation: String,
    /// Small objects have so many keys, and this exponent of the power law of insertions.
    keys: f64,
    theta: f64,
    runs: Vec<CacheRun>,
    objects: Objects,
}

/// A drive: its capacity in bytes, and that of its flash relative to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Drive {
    name: String,
    series: String,
    capacity: f64,
    space: f64,
    reclaim_units: u32,
}

/// A load of the cache: areas in TB, and the share of its writes that small objects are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheRun {
    name: String,
    /// The area of small objects as configured, and as much of it as the drive has.
    configured: f64,
    inside: f64,
    small_writes: f64,
    /// The bound of the course.
    course: f64,
    /// Runs that constants were fitted to: `fdp`, with handles, or `nofdp`, without.
    #[serde(default)]
    fitted: Vec<String>,
    /// Why the run without handles is not compared.
    not_modelled: Option<String>,
}

/// The load of LMCache: sizes of objects in MiB, and of their areas in GiB.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Objects {
    capacity_gib: f64,
    reclaim_unit_gib: u32,
    areas: Vec<(u32, u32)>,
    without: f64,
    with: f64,
}

/// A point of a measured course.
#[derive(Deserialize)]
struct CoursePoint {
    run: String,
    dw_mid: f64,
    waf: f64,
    step_dw: f64,
}

#[derive(Deserialize)]
struct RunTotals {
    run: String,
    waf_last_dw: f64,
}

/// A reading of the counters of a drive.
#[derive(Deserialize)]
struct Counters {
    host_bytes: f64,
    media_bytes: f64,
}

fn rows<T: DeserializeOwned>(source: impl Read, of: &str) -> Result<Vec<T>, ExperimentError> {
    let mut reader = csv::Reader::from_reader(source);
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| ExperimentError::of(of, error))
}

fn open(runner: &Runner, path: &str) -> Result<File, ExperimentError> {
    let path = runner.data(path)?;
    File::open(&path).map_err(|error| ExperimentError::of(path.display(), error))
}

/// Media bytes over host bytes, both in drive writes.
struct Course(Vec<(f64, f64)>);

impl Course {
    fn simulated(counted: &WriteAmplification) -> Self {
        let (mut before, mut media) = (0.0, 0.0);
        let mut all = vec![(0.0, 0.0)];
        for point in &counted.curve {
            media += point.write_amplification * (point.drive_writes - before);
            before = point.drive_writes;
            all.push((before, media));
        }
        Self(all)
    }

    fn measured(counters: &[Counters], capacity: f64) -> Self {
        let of = |it: &Counters| (it.host_bytes / capacity, it.media_bytes / capacity);
        Self(counters.iter().map(of).collect())
    }

    /// Media bytes after `host`.
    fn media(&self, host: f64) -> f64 {
        let at = self.0.partition_point(|(x, _)| *x < host).min(self.0.len() - 1).max(1);
        let ((from, low), (to, high)) = (self.0[at - 1], self.0[at]);
        if to > from { low + (high - low) * (host - from) / (to - from) } else { low }
    }

    /// Write amplification from `from` to `to`.
    fn between(&self, from: f64, to: f64) -> f64 {
        (self.media(to) - self.media(from)) / (to - from)
    }

    fn end(&self) -> f64 {
        self.0.last().map_or(0.0, |last| last.0)
    }

    fn last(&self) -> f64 {
        self.between(self.end() - 1.0, self.end())
    }

    /// The parts of a pass, on average over the passes from the first that is judged to `last`.
    fn parts(&self, last: u32) -> Vec<f64> {
        let passes = PASSES.0..last;
        let part = |part: u32| {
            let begin = |pass: u32| f64::from(pass) + f64::from(part) / f64::from(PARTS);
            let of = |pass| self.between(begin(pass), begin(pass) + f64::from(PARTS).recip());
            passes.clone().map(of).sum::<f64>() / f64::from(last - PASSES.0)
        };
        (0..PARTS).map(part).collect()
    }
}

impl Drive {
    fn job(&self, name: String) -> Job {
        Job::paper("ssd/fdp.toml")
            .named(name)
            .set("component.ssd.over_provisioning", self.space - 1.0)
            .set("component.ssd.blocks_per_plane", self.reclaim_units)
    }

    /// Simulated pages that are exported.
    fn pages(&self) -> f64 {
        (f64::from(self.reclaim_units) * 512.0 / self.space).floor()
    }

    /// Every block once per pass, in a new random order.
    fn passes(&self) -> Job {
        let requests = self.pages() * f64::from(PASSES.1);
        let generator = format!("{{ kind = \"fio\", rw = \"randwrite\", requests = {requests} }}");
        self.job(format!("passes over {}", self.name)).set("workload.generator", generator)
    }
}

impl CacheRun {
    /// The share of small objects in the bytes that arrive: writes beyond the drive fail.
    fn small_share(&self) -> f64 {
        let small = self.small_writes * self.inside / self.configured;
        small / (small + 1.0 - self.small_writes)
    }

    fn job(&self, drive: &Drive, of: &Parameters, with_handles: bool, writes: f64) -> Job {
        let pages = drive.pages();
        let small = self.inside * 1e12 / drive.capacity * pages;
        let metadata = (METADATA * pages).round();
        // Requests are for insertions, of a page each; that of a small object also reads it.
        let share = self.small_share();
        let requests = (writes * pages * (1.0 + share)) as u64;
        let keys = of.keys * PAGE_BYTES as f64 * pages / drive.capacity;
        let generator = format!(
            "{{ kind = \"navy\", requests = {requests}, start = \"{}B\", small_area = {}, \
             small_requests = {share}, small_keys = {}, theta = {}, large_object = \"4KiB\", \
             large_keys = 1000, region = \"4KiB\", block = \"4KiB\", \
             engine_handles = {with_handles} }}",
            metadata as u64 * PAGE_BYTES,
            small / (pages - metadata),
            keys as u64,
            of.theta,
        );
        let job = drive.job(self.name.clone()).set("workload.generator", generator);
        match with_handles {
            true => job.set("component.ssd.ftl.placement", placed(3, &of.isolation)),
            false => job,
        }
    }
}

fn placed(handles: u32, isolation: &str) -> String {
    format!("{{ kind = \"handles\", handles = {handles}, isolation = \"{isolation}\" }}")
}

impl Objects {
    /// Four drive writes of whole objects after a sequential fill, in the order `rw` of fio.
    fn job(&self, order: &str, space: f64, isolation: Option<&str>) -> Job {
        let mib = |mib: u64| format!("\"{}B\"", mib * PAGE_BYTES);
        let (mut start, mut jobs) = (0, Vec::new());
        for (number, (object, area)) in (1u32..).zip(&self.areas) {
            let (span, handle) = (u64::from(*area) * 1024, isolation.map_or(0, |_| number));
            jobs.push(format!(
                "{{ kind = \"fio\", {order}, bs = {}, start = {}, span = {}, handle = {handle} }}",
                mib(u64::from(*object)),
                mib(start),
                mib(span),
            ));
            start += span;
        }
        let bytes = mib((4.0 * self.capacity_gib * 1024.0) as u64);
        let generator =
            format!("{{ kind = \"jobs\", bytes = {bytes}, jobs = [{}] }}", jobs.join(", "));
        let unit = self.reclaim_unit_gib;
        let blocks = (self.capacity_gib * space / f64::from(unit)) as u32;
        let filled = start as f64 / (self.capacity_gib * 1024.0);
        let job = Job::paper("ssd/fdp.toml")
            .named(format!("objects, {order}"))
            .set("workload.generator", generator)
            .set("component.ssd.over_provisioning", space - 1.0)
            .set("component.ssd.blocks_per_plane", blocks)
            .set("component.ssd.pages_per_block", unit * 1024)
            .set("component.ssd.precondition", "\"fill\"")
            .set("component.ssd.precondition_fill", filled);
        let handles = self.areas.len() as u32 + 1;
        match isolation {
            Some(isolation) => job.set("component.ssd.ftl.placement", placed(handles, isolation)),
            None => job,
        }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn passes(runner: &Runner, drive: &Drive, findings: &mut Findings) -> Result<(), ExperimentError> {
    let path = format!("fdp/series/{}.csv.gz", drive.series);
    let counters = rows(MultiGzDecoder::new(open(runner, &path)?), &path)?;
    let measured = Course::measured(&counters, drive.capacity);
    if measured.end() < f64::from(PASSES.1) {
        return Err(ExperimentError::of(path, "too few drive writes"));
    }
    let counted = runner.count(&[drive.passes()])?;
    let simulated = Course::simulated(&counted[0]);
    let all = (measured.parts(measured.end() as u32), simulated.parts(PASSES.1));
    let errors: Vec<f64> = all
        .0
        .iter()
        .zip(&all.1)
        .map(|(theirs, ours)| 100.0 * (ours / theirs - 1.0).abs())
        .collect();
    let row = |id: &str| {
        let worst = super::worst(&errors);
        Claim::of(id).with("name", &drive.name).with("space", drive.space).with("worst", worst)
    };
    findings.row(row("ssd/parts-of-a-pass").ours(mean(errors.iter().copied())));
    let whole = |parts: &[f64]| mean(parts.iter().copied());
    findings.row(row("ssd/whole-pass").published(whole(&all.0)).ours(whole(&all.1)));
    let at = |parts: &[f64]| -> Vec<(f64, f64)> {
        (0..PARTS)
            .map(|it| (f64::from(it) + 0.5) / f64::from(PARTS))
            .zip(parts.iter().copied())
            .collect()
    };
    let curves = super::compared(at(&all.1), at(&all.0));
    findings.plot("ssd/parts-of-a-pass", &[("name", &drive.name)], curves);
    Ok(())
}

/// Both runs of a load of the cache, and the last drive write of each, measured and simulated.
fn cache(
    runner: &Runner,
    parameters: &Parameters,
    run: &CacheRun,
    (points, totals): (&[CoursePoint], &[RunTotals]),
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    let drive = &parameters.drives[0];
    for (placement, with_handles) in [("nofdp", false), ("fdp", true)] {
        let name = format!("{}-{placement}", run.name);
        let claim = |id: &str| {
            let share = run.small_share();
            Claim::of(id).with("name", &name).with("share", share).with("writes", run.small_writes)
        };
        if let (Some(reason), false) = (&run.not_modelled, with_handles) {
            findings.row(claim("ssd/placement-course").not_comparable(reason));
            continue;
        }
        let course: Vec<&CoursePoint> = points.iter().filter(|point| point.run == name).collect();
        let end = course.last().map_or(0.0, |point| point.dw_mid + point.step_dw / 2.0);
        let counted = runner.count(&[run.job(drive, parameters, with_handles, end)])?;
        let simulated = Course::simulated(&counted[0]);
        let ours = |point: &CoursePoint| {
            let half = point.step_dw / 2.0;
            simulated.between(point.dw_mid - half, (point.dw_mid + half).min(simulated.end()))
        };
        let squares = course.iter().map(|point| libm::pow(libm::log(ours(point) / point.waf), 2.0));
        let rms = libm::sqrt(mean(squares));
        let judged = claim("ssd/placement-course").between("", f64::NEG_INFINITY, run.course);
        let given = run.fitted.iter().any(|fitted| fitted == placement);
        findings.row(judged.given_if(given).ours(rms));
        let of_last = totals.iter().find(|it| it.run == name);
        if let (Some(measured), true) = (of_last, with_handles) {
            let used =
                run.inside * 1e12 / (run.inside * 1e12 + (drive.space - 1.0) * drive.capacity);
            let (theirs, ours) = (measured.waf_last_dw, simulated.last());
            let form = (1.0 - victim_utilisation(used)).recip();
            let row = |id: &str| claim(id).with("form", form).given_if(given);
            findings.row(row("ssd/placement-plateau").published(theirs).ours(ours));
            if theirs > 1.01 {
                let excess = row("ssd/placement-excess").published(theirs - 1.0);
                findings.row(excess.ours(ours - 1.0));
            }
        }
        let theirs = course.iter().map(|point| (point.dw_mid, point.waf)).collect();
        let ours = course.iter().map(|point| (point.dw_mid, ours(point))).collect();
        let curves: [Curve; 2] = super::compared(ours, theirs);
        findings.plot("ssd/placement-course", &[("name", &name)], curves);
    }
    Ok(())
}

/// The load of LMCache, by readings of what its description leaves open.
fn objects(
    runner: &Runner,
    (drive, isolation): (&Drive, &str),
    objects: &Objects,
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    const READINGS: [(&str, &str); 3] = [
        ("objects drawn independently", "rw = \"randwrite\", norandommap = true"),
        ("each object once per pass", "rw = \"randwrite\""),
        ("in order", "rw = \"write\""),
    ];
    for (id, published, isolation) in [
        ("ssd/objects-without-handles", objects.without, None),
        ("ssd/objects-with-handles", objects.with, Some(isolation)),
    ] {
        let jobs = READINGS.map(|(_, order)| objects.job(order, drive.space, isolation));
        let counted = runner.count(&jobs)?;
        let value = |at: usize| counted[at].write_amplification.unwrap_or(f64::NAN);
        let claim = Claim::of(id).published(published).ours(value(0));
        let rest = READINGS.iter().enumerate().skip(1);
        findings
            .row(rest.fold(claim, |claim, (at, (words, _))| claim.sensitive(*words, value(at))));
    }
    Ok(())
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let parameters = parameters::<Parameters>("ssd/fdp");
    let points = rows(open(runner, "fdp/tables/curve.csv")?, "curve.csv")?;
    let totals = rows(open(runner, "fdp/tables/runs.csv")?, "runs.csv")?;
    let mut findings = Findings::default();
    for drive in &parameters.drives {
        passes(runner, drive, &mut findings)?;
    }
    for of in &parameters.runs {
        cache(runner, &parameters, of, (&points, &totals), &mut findings)?;
    }
    let drive = (&parameters.drives[0], parameters.isolation.as_str());
    objects(runner, drive, &parameters.objects, &mut findings)?;
    Ok(findings)
}
