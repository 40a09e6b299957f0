//! Zone management of a zoned drive, and how it and other loads slow each other.

use super::fit::solve;
use super::tables::{self, FioRow};
use super::{compared, percent_off, spread};
use crate::published::{parameters, setting};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_engine::zone_table::ZoneStatus;
use serde::Deserialize;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/zns", run };

/// Pages of 4 KiB of a zone.
const CAPACITY: u64 = 275_712;
/// Size of a zone in MiB.
const MIB: f64 = 1_077.0;
/// Pages written of a zone before it is finished or reset. Those of [`FITTED`] fit.
const FILLS: [u64; 6] = [1, 17_232, 34_464, 68_928, 137_856, CAPACITY - 1];
/// Half of a zone, at which the finish is fitted.
const FITTED: u64 = CAPACITY / 2;
/// Highest rate of writes in bytes per second, for the predictor of a finish.
const WRITE_LIMIT: f64 = 1.231e9;
/// Simulated seconds of a load beside resets: the 48 full zones that are reset last longer.
const SECONDS_RESET: f64 = 0.7;
/// Simulated seconds of a load that a finish lasts longer than, in zones of an eighth of the size.
const SECONDS_SHORT: f64 = 0.1;
/// Simulated seconds of a load that lasts longer than a finish beside it.
const SECONDS_LONG: f64 = 3.0;
/// A row of the table of single commands.
#[derive(Debug, Deserialize)]
struct ZoneCommand {
    file: String,
    op: String,
    #[serde(rename = "fill_lba_4KiB")]
    fill_pages: Option<f64>,
    p50_us: f64,
}

/// A row of the table of pairs of loads.
#[derive(Debug, Deserialize)]
struct LoadPair {
    experiment: String,
    level: String,
    job: String,
    iops: f64,
}

/// A load beside which zones are reset or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneLoad {
    Write,
    Append,
    Read,
}

impl ZoneLoad {
    const ALL: [Self; 3] = [Self::Write, Self::Append, Self::Read];

    const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Append => "append",
            Self::Read => "read",
        }
    }

    /// Requests outstanding: writes of as many zones, or appends, or reads.
    const fn depths(self) -> [u32; 3] {
        match self {
            Self::Write | Self::Append => [1, 2, 4],
            Self::Read => [1, 4, 16],
        }
    }
}

/// An action that disturbs the load, and is disturbed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneAction {
    Finish,
    Reset,
}

impl ZoneAction {
    const fn name(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::Reset => "reset",
        }
    }

    /// The name in the table of pairs.
    const fn job(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::Reset => "trim",
        }
    }
}

impl ZoneLoad {
    /// Spread of the rates of the load alone between the runs of the source, at the depth where
    /// it is greatest.
    fn spread(self, pairs: &[LoadPair]) -> f64 {
        let (load, flow) = (self.name(), &self.name()[..1]);
        let at = |depth: u32| {
            spread_of(pairs, &format!("data/data-{load}_iod_{depth}-{flow}flow_100"), load)
        };
        self.depths().into_iter().map(at).fold(0.0, f64::max)
    }
}

/// The spread of the rates of `job` at `level`, in the namespace that is compared.
fn spread_of(pairs: &[LoadPair], level: &str, job: &str) -> f64 {
    let is_it = |row: &&LoadPair| {
        row.level == level && row.job == job && !row.experiment.ends_with("-namespaces")
    };
    spread(pairs.iter().filter(is_it).map(|row| row.iops))
}

/// The constants that are fitted, in microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneConstants {
    read: f64,
    write_overhead: f64,
    append: f64,
    program: f64,
    finish: f64,
    reset: f64,
    /// Per MiB.
    reset_data: f64,
    erase: f64,
    erase_suspend: f64,
}

impl ZoneConstants {
    /// By the names in texts.
    const fn figures(&self) -> [(&'static str, f64); 9] {
        [
            ("read", self.read),
            ("write_overhead", self.write_overhead),
            ("append", self.append),
            ("program", self.program),
            ("finish", self.finish),
            ("reset", self.reset),
            ("reset_data", self.reset_data),
            ("erase", self.erase),
            ("erase_suspend", self.erase_suspend),
        ]
    }

    fn job(&self, name: String) -> Job {
        let times = self.figures().map(|(name, us)| (name, us.max(0.0)));
        let values = times.each_ref().map(|(name, us)| (*name, us as &dyn std::fmt::Display));
        Job::paper("ssd/zns.toml").named(name).at(&setting("ssd/zoned-drive", "constants", &values))
    }

    /// Zones are written up to `pages`, finished if `finish` says so, and reset: five in turn, of
    /// two, of which three are reset.
    fn cycles(&self, pages: u64, finish: bool) -> Job {
        let block = if pages.is_multiple_of(48) { 48 } else { 1 };
        let name = format!("{pages} pages written{}", if finish { ", finished" } else { "" });
        let fill = (pages as f64 + 0.5) / CAPACITY as f64;
        let requests = 5 * (pages / block + 2);
        let values: [(&str, &dyn std::fmt::Display); 4] =
            [("kib", &(4 * block)), ("fill", &fill), ("finish", &finish), ("requests", &requests)];
        self.job(name).at(&setting("ssd/zone-commands", "cycles", &values))
    }

    /// Zones full when the run begins, or empty, are reset.
    fn resets(&self, full: bool) -> Job {
        let job = self.job(format!("zones {} are reset", if full { "full" } else { "empty" }));
        let job = job.at(&setting("ssd/zone-commands", "resets", &[]));
        if full { filled(job, 0.05) } else { job }
    }

    /// One request of 4 KiB outstanding.
    fn single(&self, of: ZoneLoad) -> Job {
        let job = self.job(format!("one {} outstanding", of.name()));
        let job = job.at(&setting("ssd/zone-commands", of.name(), &[]));
        if of == ZoneLoad::Read { filled(job, 0.05) } else { job }
    }
}

/// The device begins with this share of its zones full.
fn filled(job: Job, share: f64) -> Job {
    job.at(&setting("ssd/zoned-drive", "filled", &[("share", &share)]))
}

/// Mean latency in microseconds of the load's requests of a kind.
fn mean_us(ran: &JobOutput, kind: &str) -> f64 {
    let Some(load) = ran.tenant("load") else { return f64::NAN };
    let of = match kind {
        "read" => &load.latency_ns.read,
        "write" => &load.latency_ns.write,
        "reset" => &load.latency_ns.zone_reset,
        _ => &load.latency_ns.zone_finish,
    };
    of.mean.map_or(f64::NAN, |ns| ns / 1e3)
}

fn one(runner: &Runner, job: Job, kind: &str) -> Result<f64, ExperimentError> {
    Ok(mean_us(&run_all(runner, &[job])?[0], kind))
}

/// Runs the jobs.
///
/// # Errors
/// When the device fails a request: a rate or a mean would count it.
fn run_all(runner: &Runner, jobs: &[Job]) -> Result<Vec<JobOutput>, ExperimentError> {
    let ran = runner.run(jobs)?;
    for of in &ran {
        let custom = &of.results.components["ssd"].custom;
        if let Some((status, _)) =
            custom.iter().find(|(name, _)| ZoneStatus::NAMES.contains(&name.as_str()))
        {
            return Err(ExperimentError::of("the device fails requests", status));
        }
    }
    Ok(ran)
}

/// The medians of single commands.
struct ZoneCommands(Vec<ZoneCommand>);

impl ZoneCommands {
    /// The time of a command, of a zone with `pages` written: the mean over runs, but for the one
    /// whose resets take 2 us, of zones that were not reset.
    fn us(&self, op: &str, pages: Option<u64>) -> Result<f64, ExperimentError> {
        let is_it = |row: &&ZoneCommand| {
            row.op == op
                && row.fill_pages.map(|fill| fill as u64) == pages
                && !row.file.ends_with("partial_reset/run3")
        };
        let found: Vec<f64> = self.0.iter().filter(is_it).map(|row| row.p50_us).collect();
        match found.len() {
            0 => Err(ExperimentError::of("nothing measured", format!("{op} at {pages:?}"))),
            count => Ok(found.iter().sum::<f64>() / count as f64),
        }
    }
}

/// The mean latency of reads of 4 KiB, one outstanding.
fn read_us(runner: &Runner) -> Result<f64, ExperimentError> {
    let rows: Vec<FioRow> = tables::read(runner, "mixed_interference")?;
    let found = rows.iter().find(|row| row.is_of("rate_inteference/zns_0_1", "read"));
    let found = found.and_then(|row| row.mean_us);
    found.ok_or_else(|| ExperimentError::of("nothing measured", "one read"))
}

/// Fits each constant to the one command or pair of loads that it decides about.
fn fitted(
    runner: &Runner,
    commands: &ZoneCommands,
    pairs: &[LoadPair],
) -> Result<ZoneConstants, ExperimentError> {
    let start: ZoneConstants = parameters("ssd/zns");
    let mut with = start;
    let of = |us: f64| ZoneConstants { read: us, ..start };
    with.read = solve("read time", (30.0, 90.0), read_us(runner)?, |us| {
        one(runner, of(us).single(ZoneLoad::Read), "read")
    })?;
    let without = one(runner, with.single(ZoneLoad::Write), "write")?;
    with.write_overhead += commands.us("write_explicit", None)? - without;
    let without = one(runner, with.single(ZoneLoad::Append), "write")?;
    with.append = commands.us("append_explicit", None)? - without;
    let last = commands.us("finish", Some(CAPACITY - 1))?;
    with.finish = last - one(runner, with.cycles(CAPACITY - 1, true), "finish")?;
    let half = commands.us("finish", Some(FITTED))?;
    with.program = solve("program time", (100.0, 400.0), half, |us| {
        one(runner, ZoneConstants { program: us, ..with }.cycles(FITTED, true), "finish")
    })?;
    let [empty, full] = [commands.us("reset", Some(0))?, commands.us("reset", Some(CAPACITY))?];
    with.reset = empty - one(runner, with.resets(false), "reset")?;
    with.reset_data = (full - empty) / MIB;
    let [resets, reads] = FITTED_RATIOS.map(|(of, _)| of);
    let ratios = |with, of| simulated(runner, with, ZoneAction::Reset, of);
    let target = measured(pairs, ZoneAction::Reset, resets)?.action;
    with.erase = solve("erase time", (500.0, 4_000.0), target, |us| {
        Ok(ratios(ZoneConstants { erase: us, ..with }, resets)?.action)
    })?;
    let target = measured(pairs, ZoneAction::Reset, reads)?.load;
    with.erase_suspend = solve("time to suspend an erase", (0.0, 50.0), target, |us| {
        Ok(ratios(ZoneConstants { erase_suspend: us, ..with }, reads)?.load)
    })?;
    Ok(with)
}

/// A command at several fill levels, measured, simulated, and as the trivial predictor says.
struct FillSeries {
    name: &'static str,
    points: Vec<(u64, [f64; 3])>,
}

fn series(
    runner: &Runner,
    commands: &ZoneCommands,
    with: ZoneConstants,
) -> Result<[FillSeries; 3], ExperimentError> {
    let [empty, full] = [commands.us("reset", Some(0))?, commands.us("reset", Some(CAPACITY))?];
    let share = |pages: u64| pages as f64 / CAPACITY as f64;
    let linear = |pages: u64| empty + (full - empty) * share(pages);
    let rest = |pages: u64| (CAPACITY - pages) as f64 * 4096e6 / WRITE_LIMIT;
    let mut found = ["reset", "finish", "reset after a finish"]
        .map(|name| FillSeries { name, points: Vec::new() });
    for pages in FILLS {
        let jobs = [with.cycles(pages, false), with.cycles(pages, true)];
        let ran = run_all(runner, &jobs)?;
        if pages != CAPACITY - 1 {
            let point =
                [commands.us("reset", Some(pages))?, mean_us(&ran[0], "reset"), linear(pages)];
            found[0].points.push((pages, point));
        }
        let finish = commands.us("finish", Some(pages))?;
        found[1].points.push((pages, [finish, mean_us(&ran[1], "finish"), rest(pages)]));
        let after = commands.us("reset_finished", Some(pages))?;
        found[2].points.push((pages, [after, mean_us(&ran[1], "reset"), linear(pages)]));
    }
    Ok(found)
}

fn report_series(findings: &mut Findings, series: &FillSeries) {
    let is_finish = series.name == "finish";
    let is_fitted = |pages: u64| is_finish && [FITTED, CAPACITY - 1].contains(&pages);
    let judged = series.points.iter().filter(|it| !is_fitted(it.0));
    let points: Vec<[f64; 3]> = judged.map(|it| it.1).collect();
    let off = |at: usize| percent_off(points.iter().map(|point| point[at] / point[0]));
    let list = |at: usize| {
        points.iter().map(|point| format!("{:.2}", point[at] / 1e3)).collect::<Vec<_>>().join(", ")
    };
    let simple = match is_finish {
        true => "the rest of the zone at the highest rate of writes",
        false => "a line from an empty to a full zone",
    };
    // The time of a reset was concluded from all fill levels.
    let claim = Claim::of("ssd/zone-management").with("name", series.name).given_if(!is_finish);
    let claim = claim.with("measured", list(0)).with("simulated", list(1)).with("simple", simple);
    findings.row(claim.with("simple_off", off(2)).ours(off(1)));
    let of = |at: usize| {
        series.points.iter().map(|(pages, point)| (*pages as f64, point[at] / 1e3)).collect()
    };
    findings.plot("ssd/zone-management", &[("name", &series.name)], compared(of(1), of(0)));
}

/// Rates of a load and an action beside each other, of those alone.
struct Ratios {
    load: f64,
    action: f64,
}

/// The loads beside resets that the times of an erase and of its suspension are fitted to, and
/// which of the two rates of each: resets beside writes, and reads beside resets.
const FITTED_RATIOS: [((ZoneLoad, u32), Side); 2] =
    [((ZoneLoad::Write, 4), Side::ZoneAction), ((ZoneLoad::Read, 1), Side::ZoneLoad)];

/// The rate of the load or of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    ZoneLoad,
    ZoneAction,
}

impl Side {
    const fn of(self, ratios: &Ratios) -> f64 {
        match self {
            Self::ZoneLoad => ratios.load,
            Self::ZoneAction => ratios.action,
        }
    }
}

/// The measured rate of a job in a run.
fn rate(
    pairs: &[LoadPair],
    experiment: &str,
    level: &str,
    job: &str,
) -> Result<f64, ExperimentError> {
    let is_it = |row: &&LoadPair| {
        row.experiment == experiment && row.level == format!("data/{level}") && row.job == job
    };
    let found = pairs.iter().find(is_it).map(|row| row.iops);
    let missing = || format!("{experiment}, {level}, {job}");
    found.ok_or_else(|| ExperimentError::of("nothing measured", missing()))
}

fn measured(
    pairs: &[LoadPair],
    action: ZoneAction,
    (of, depth): (ZoneLoad, u32),
) -> Result<Ratios, ExperimentError> {
    let (name, load) = (action.name(), of.name());
    let both = format!("{load}-on-{name}-interference");
    let level = format!("data-{load}_iod_{depth}");
    let job = action.job();
    let flow = &load[..1];
    let alone = format!("{level}-{flow}flow_100");
    let unloaded = rate(pairs, &format!("{name}-on-{load}-interference"), &alone, load)?;
    Ok(Ratios {
        load: rate(pairs, &both, &level, load)? / unloaded,
        action: rate(pairs, &both, &level, job)? / rate(pairs, &both, "bw", job)?,
    })
}

/// Requests of a workload per second, up to its last.
fn rate_of(ran: &JobOutput, name: &str) -> f64 {
    ran.tenant(name).map_or(f64::NAN, |it| it.requests as f64 * 1e9 / it.last_completion_ns as f64)
}

/// An action and a load beside each other.
#[derive(Clone, Copy, Debug)]
struct Beside {
    /// The action; its zones are those of the device.
    action: ZoneAction,
    /// Whether it takes place; without, a single request is made instead.
    acts: bool,
    /// The load; a single request without.
    of: Option<(ZoneLoad, u32)>,
    seconds: f64,
}

/// Both loads, or one of them.
fn beside(with: ZoneConstants, Beside { action, acts, of, seconds }: Beside) -> Job {
    let name = format!("{action:?} ({acts}) beside {of:?}, {seconds} s");
    let (load, depth) = of.map_or(("none", 0), |(of, depth)| (of.name(), depth));
    let acted = if acts { action.name() } else { "none" };
    let values: [(&str, &dyn std::fmt::Display); 2] = [("depth", &depth), ("seconds", &seconds)];
    with.job(name)
        .at(&setting("ssd/zones-of-an-action", action.name(), &[]))
        .at(&setting("ssd/zone-loads", load, &values))
        .at(&setting("ssd/zone-actions", acted, &values))
}

/// The latency of the only finish of a run.
fn finish_ns(ran: &JobOutput) -> f64 {
    ran.tenant("other").and_then(|it| it.latency_ns.zone_finish.mean).unwrap_or(f64::NAN)
}

fn simulated(
    runner: &Runner,
    with: ZoneConstants,
    action: ZoneAction,
    of: (ZoneLoad, u32),
) -> Result<Ratios, ExperimentError> {
    let (short, long) = match action {
        ZoneAction::Finish => (SECONDS_SHORT, SECONDS_LONG),
        ZoneAction::Reset => (SECONDS_RESET, SECONDS_RESET),
    };
    let job = |acts, of, seconds| beside(with, Beside { action, acts, of, seconds });
    let jobs = [
        job(false, Some(of), short),
        job(true, None, long),
        job(true, Some(of), short),
        job(true, Some(of), long),
    ];
    let ran = run_all(runner, &jobs)?;
    let action = match action {
        ZoneAction::Finish => {
            let took = finish_ns(&ran[3]);
            if !(short * 1e9..long * 1e9).contains(&took) {
                let message =
                    format!("a finish beside {of:?} takes {took} ns, not {short} to {long} s");
                return Err(ExperimentError::Failed(message));
            }
            finish_ns(&ran[1]) / took
        }
        ZoneAction::Reset => rate_of(&ran[3], "other") / rate_of(&ran[1], "other"),
    };
    Ok(Ratios { load: rate_of(&ran[2], "load") / rate_of(&ran[0], "load"), action })
}

fn interference(
    runner: &Runner,
    with: ZoneConstants,
    pairs: &[LoadPair],
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    for action in [ZoneAction::Finish, ZoneAction::Reset] {
        for of in ZoneLoad::ALL {
            let (mut theirs, mut ours) = (Vec::new(), Vec::new());
            for depth in of.depths() {
                theirs.push(measured(pairs, action, (of, depth))?);
                ours.push(simulated(runner, with, action, (of, depth))?);
            }
            let rates = [
                (format!("{}s beside a {}", of.name(), action.name()), Side::ZoneLoad),
                (format!("{} beside {}s", action.name(), of.name()), Side::ZoneAction),
            ];
            let spreads = [of.spread(pairs), spread_of(pairs, "data/bw", action.job())];
            for ((what, rate), spread) in rates.into_iter().zip(spreads) {
                let fits = |depth: &u32| {
                    let is_it = |((load, at), fits)| (load, at, fits) == (of, *depth, rate);
                    action == ZoneAction::Reset && FITTED_RATIOS.into_iter().any(is_it)
                };
                let fitted = of.depths().iter().position(fits);
                let ratios = [&theirs, &ours].map(|it| it.iter().map(|it| rate.of(it)).collect());
                row(findings, &what, ratios, (fitted, spread));
            }
        }
    }
    Ok(())
}

/// The error of the ratios of rates of one kind, at all depths but the one that is fitted.
fn row(
    findings: &mut Findings,
    what: &str,
    [theirs, ours]: [Vec<f64>; 2],
    (fitted, spread): (Option<usize>, f64),
) {
    let judged = |at: &usize| Some(*at) != fitted;
    let off = |of: &dyn Fn(usize) -> f64| {
        percent_off((0..ours.len()).filter(judged).map(|at| of(at) / theirs[at]))
    };
    let (ours_off, none) = (off(&|at| ours[at]), off(&|_| 1.0));
    let list =
        |of: &[f64]| of.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(", ");
    let but = fitted.map_or(String::new(), |at| format!(", number {} fitted", at + 1));
    findings.row(
        Claim::of("ssd/rate-beside-zone-management")
            .with("what", what)
            .with("measured", list(&theirs))
            .with("simulated", format!("{}{but}", list(&ours)))
            .with("none", none)
            .with("spread", 100.0 * spread)
            .ours(ours_off),
    );
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let commands = ZoneCommands(tables::read(runner, "zns_ops")?);
    let pairs: Vec<LoadPair> = tables::read(runner, "zns_interference")?;
    let with = fitted(runner, &commands, &pairs)?;
    let mut findings = Findings::default();
    let finish = one(runner, with.cycles(FITTED, true), "finish")? / 1e3;
    let half = commands.us("finish", Some(FITTED))? / 1e3;
    let claim = Claim::of("ssd/finish-of-half-a-zone").with_figures(&with.figures());
    findings.row(claim.published(half).ours(finish));
    let full = commands.us("reset", Some(CAPACITY))? / 1e3;
    let ours = one(runner, with.resets(true), "reset")? / 1e3;
    findings.row(Claim::of("ssd/reset-of-a-full-zone").published(full).ours(ours));
    for series in series(runner, &commands, with)? {
        report_series(&mut findings, &series);
    }
    interference(runner, with, &pairs, &mut findings)?;
    Ok(findings)
}
