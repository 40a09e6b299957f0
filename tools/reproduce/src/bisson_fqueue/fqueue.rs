//! Figures 8, 9, 10, 12 and 13: the effect of the FQueue's size.

use super::{Machine, count, foreground_ns, reasons, seeds, sum, weeks};
use crate::published::{parameters, settings};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Variants};
use hybridsim_report::study::Curve;
use serde::Deserialize;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/fig8-13", run: reproduce };

pub(super) const SIZES: [f64; 4] = [10.0, 40.0, 80.0, 100.0];
const SIZE_NAMES: [&str; 4] = ["10 MB", "40 MB", "80 MB", "100 MB"];
/// Times of writes to the disk.
pub(super) const DISK_WRITES: &[&str] =
    &["disk_write_ns", "coalesced_write_ns", "flush_back_ns", "idle_sync_ns"];
/// An erase block of the flash: 128 KiB, as of large pages (assumed).
pub(super) const BLOCK_BYTES: f64 = 131_072.0;
/// Erases a block stands (the paper's).
pub(super) const ERASES: f64 = 100_000.0;
/// Weeks in a year.
pub(super) const WEEKS_PER_YEAR: f64 = 365.25 / 7.0;

/// The jobs of a week, by number: without an FQueue, with one of each of [`SIZES`], and of the
/// largest size without idle processing and with every write redirected.
pub(super) const PLAIN: usize = 0;
pub(super) const SMALLEST: usize = 1;
pub(super) const LARGEST: usize = SIZES.len();
pub(super) const NO_IDLE: usize = 1 + SIZES.len();
pub(super) const ALL_CACHED: usize = 2 + SIZES.len();

fn jobs(machine: &Machine) -> Vec<Job> {
    let largest = || machine.backed(SIZES[3]);
    let mut jobs = vec![machine.plain("c-look")];
    jobs.extend(SIZES.map(|mb| machine.backed(mb)));
    jobs.push(
        largest()
            .named(format!("{}, no idle processing", machine.name))
            .set("component.scheduler.idle", false),
    );
    // Flash that costs the host nothing is always chosen; what it takes stays the card's.
    jobs.push(
        largest()
            .named(format!("{}, all redirected", machine.name))
            .set("component.scheduler.flash_latency", "\"0ns\"")
            .set("component.scheduler.flash_rate", "\"1000GB/s\""),
    );
    jobs
}

/// A week of one machine.
struct Week {
    name: &'static str,
    ran: Variants,
}

/// Write access time without an FQueue.
pub(super) fn base(ran: &[JobOutput]) -> f64 {
    sum(&ran[PLAIN], "disk_write_ns")
}

/// Foreground write access time of job `at` over that without an FQueue.
pub(super) fn access(ran: &[JobOutput], at: usize) -> f64 {
    foreground_ns(&ran[at]) / base(ran)
}

pub(super) fn synchronised(ran: &[JobOutput], at: usize) -> f64 {
    sum(&ran[at], "idle_sync_ns") / base(ran)
}

/// "The percentage of I/O that occurs due to flush-back I/O."
pub(super) fn flushed(ran: &[JobOutput], at: usize) -> f64 {
    let operations = [DISK_WRITES, &["flash_write_ns", "disk_read_ns"]].concat();
    let all: f64 = operations.iter().map(|name| count(&ran[at], name)).sum();
    count(&ran[at], "flush_back_ns") / all
}

fn access_with_idle(ran: &[JobOutput], at: usize) -> f64 {
    access(ran, at) + synchronised(ran, at)
}

/// Response times of writes in place of access times: waiting in the request queue counts.
fn response_with_idle(ran: &[JobOutput], at: usize) -> f64 {
    let all = |ran: &JobOutput| {
        let writes = &ran.results.latency_ns.write;
        writes.mean.unwrap_or(f64::NAN) * writes.count as f64
    };
    (all(&ran[at]) + sum(&ran[at], "idle_sync_ns")) / all(&ran[PLAIN])
}

/// Years to [`ERASES`] if the blocks of `mb` megabytes are filled one after the other.
fn years_packed(ran: &[JobOutput], at: usize, mb: f64) -> f64 {
    mb * 1e6 * ERASES / (sum(&ran[at], "redirected_sectors") * 512.0 * WEEKS_PER_YEAR)
}

/// Years to [`ERASES`] if each write to flash erases a block.
fn years_by_write(ran: &[JobOutput], at: usize, mb: f64) -> f64 {
    let writes = count(&ran[at], "redirected_sectors");
    mb * 1e6 / BLOCK_BYTES * ERASES / (writes * WEEKS_PER_YEAR)
}

/// Years for a megabyte with the largest FQueue over those with the smallest.
fn linearity(ran: &[JobOutput]) -> f64 {
    let each = |at: usize| years_packed(ran, at, SIZES[at - 1]) / SIZES[at - 1];
    each(LARGEST) / each(SMALLEST)
}

/// Share of writes that overwrite data of the FQueue.
fn overwritten(ran: &[JobOutput], at: usize) -> f64 {
    count(&ran[at], "overwritten_sectors") / count(&ran[PLAIN], "disk_write_ns")
}

fn disk_time(ran: &[JobOutput], at: usize) -> f64 {
    let busy = |ran: &JobOutput| {
        DISK_WRITES.iter().map(|name| sum(ran, name)).sum::<f64>() + sum(ran, "disk_read_ns")
    };
    busy(&ran[at]) / busy(&ran[PLAIN])
}

pub(super) fn disk_writes(ran: &[JobOutput], at: usize) -> f64 {
    let writes = |ran: &JobOutput| DISK_WRITES.iter().map(|name| count(ran, name)).sum::<f64>();
    writes(&ran[at]) / writes(&ran[PLAIN])
}

type ByJob = fn(&[JobOutput], usize) -> f64;

/// `value` by size.
fn by_size(value: ByJob) -> impl Fn(&[JobOutput]) -> Vec<(&'static str, f64)> {
    move |ran: &[JobOutput]| {
        SIZE_NAMES.iter().zip(SMALLEST..).map(|(name, at)| (*name, value(ran, at))).collect()
    }
}

/// Access time by the share that is flushed back.
fn by_flushed(ran: &[JobOutput]) -> Vec<(&'static str, f64)> {
    let mut pairs: Vec<(f64, f64)> =
        (SMALLEST..=LARGEST).map(|at| (flushed(ran, at), access(ran, at))).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let names = ["least flushed", "more", "still more", "most flushed"];
    names.into_iter().zip(pairs).map(|(name, (_, time))| (name, time)).collect()
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut weeks_run = Vec::new();
    let mut readings = settings("bisson-fqueue/idle-readings", &[]);
    readings.extend(settings("bisson-fqueue/other-readings", &[]));
    for machine in weeks(runner) {
        let ran = Variants::run(runner, &jobs(&machine), seeds("B12"), &readings)?;
        let week = Week { name: machine.name, ran };
        times(&week, &mut findings);
        with_idle(&week, &mut findings);
        endurance(&week, &mut findings);
        duty(&week, &mut findings);
        weeks_run.push(week);
    }
    groups(&weeks_run, &mut findings);
    plots(&weeks_run, &mut findings);
    Ok(findings)
}

impl Week {
    /// The claim `id`, with the numbers of the reason why it differs.
    fn claim(&self, id: &str) -> Claim {
        Claim::of(id).with("name", self.name).with_figures(&reasons::figures(self.ran.first()))
    }

    /// `claim` about `value` by size.
    fn by_size(&self, claim: Claim, value: ByJob) -> Claim {
        self.if_size_has_an_effect(claim, |claim| self.ran.order(claim, by_size(value)))
    }

    /// `judged` of `claim`, unless the smallest FQueue is never full.
    fn if_size_has_an_effect(&self, claim: Claim, judged: impl Fn(Claim) -> Claim) -> Claim {
        let others = self.ran.others.iter().map(|(_, ran)| ran);
        let levels = self.ran.seeds.iter().chain(others).map(|ran| reasons::level(ran, LARGEST));
        let most = levels.fold(0.0, f64::max);
        match most < SIZES[0] {
            true => claim.not_comparable(&format!(
                "in no reading does the FQueue hold more than {most:.1} MB, so its size from 10 MB \
                 on can have no effect"
            )),
            false => judged(claim),
        }
    }

    /// `claim` about `value` with the FQueue of job `at`.
    fn number(&self, claim: Claim, at: usize, value: ByJob) -> Claim {
        self.ran.number(claim, |ran| value(ran, at))
    }
}

fn times(week: &Week, findings: &mut Findings) {
    let falls = week.claim("bisson-fqueue/access-time-falls-with-size");
    findings.row(week.by_size(falls, access));
    for id in ["bisson-fqueue/synchronised-idle-time-10-mb", "bisson-fqueue/same-hp-s-claim"] {
        let claim = week.claim(id);
        if id.ends_with("10-mb") || week.name.starts_with("HP") {
            findings.row(week.number(claim, SMALLEST, synchronised));
        }
    }
    let grows = week.claim("bisson-fqueue/more-idle-processing-with-size");
    findings.row(week.by_size(grows, synchronised));
    let claim = week.claim("bisson-fqueue/the-more-flushed-the-less-gained");
    findings.row(week.if_size_has_an_effect(claim, |claim| week.ran.order(claim, by_flushed)));
    let claim = week.claim("bisson-fqueue/idle-processing-is-a-major-contributor");
    let both =
        |ran: &[JobOutput]| vec![("without", access(ran, NO_IDLE)), ("with", access(ran, LARGEST))];
    findings.row(week.ran.order(claim, both));
}

fn with_idle(week: &Week, findings: &mut Findings) {
    for (id, value) in [
        ("bisson-fqueue/idle-time-processing-counted-100-mb", access_with_idle as ByJob),
        ("bisson-fqueue/response-time-with-idle-counted", response_with_idle),
    ] {
        let claim = week.claim(id);
        let claim = match week.name {
            "Mac" | "WinPC" => claim.between("more than without", 1.0, f64::INFINITY),
            _ => claim.between("0.5 to 0.7", 0.4, 0.8),
        };
        findings.row(week.number(claim, LARGEST, value));
    }
}

/// Whether the machines fall into the groups of figure 9: Eng and HP below Mac and WinPC.
fn groups(weeks: &[Week], findings: &mut Findings) {
    // The higher of Eng and HP, and the lower of Mac and WinPC.
    let ends = |value: ByJob, outputs: &dyn Fn(&Variants) -> &[JobOutput]| {
        let of = |names: [&'static str; 2]| {
            let of = weeks.iter().filter(move |week| names.contains(&week.name));
            of.map(|week| value(outputs(&week.ran), LARGEST))
        };
        (of(["Eng", "HP"]).fold(0.0, f64::max), of(["Mac", "WinPC"]).fold(f64::MAX, f64::min))
    };
    for (id, value) in [
        ("bisson-fqueue/groups-of-machines-by-access-time", access_with_idle as ByJob),
        ("bisson-fqueue/groups-of-machines-by-response-time", response_with_idle),
    ] {
        let seeds = weeks.first().map_or(0, |week| week.ran.seeds.len());
        let at_seeds = (0..seeds).map(|seed| ends(value, &|ran| &ran.seeds[seed]));
        let (low, high): (Vec<f64>, Vec<f64>) = at_seeds.unzip();
        let named = [
            ("higher of Eng and HP", low),
            ("without an FQueue", vec![1.0; seeds]),
            ("lower of Mac and WinPC", high),
        ];
        let each: Vec<String> = weeks
            .iter()
            .map(|week| format!("{} {:.2}", week.name, value(week.ran.first(), LARGEST)))
            .collect();
        let claim = Claim::of(id).with("each", each.join(", "));
        let mut claim = claim.ranked_at_seeds(&named);
        for (at, (name, _)) in weeks[0].ran.others.iter().enumerate() {
            let (low, high) = ends(value, &|ran| &ran.others[at].1);
            let named = [("Eng and HP", low), ("without", 1.0), ("Mac and WinPC", high)];
            claim = claim.sensitive_ranked(name, &named);
        }
        findings.row(claim);
    }
}

fn endurance(week: &Week, findings: &mut Findings) {
    let linear = week.claim("bisson-fqueue/endurance-is-linear");
    findings.row(week.ran.number(linear, linearity));
    let claim = week.claim("bisson-fqueue/years-100-000-erases-100-mb");
    let claim = week.ran.number(claim, |ran| years_packed(ran, LARGEST, SIZES[3]));
    let by_write = years_by_write(week.ran.first(), LARGEST, SIZES[3]);
    findings.row(claim.sensitive("an erase for each write", by_write));
}

fn duty(week: &Week, findings: &mut Findings) {
    let grow = week.claim("bisson-fqueue/overwrites-grow-with-size");
    findings.row(week.by_size(grow, overwritten));
    let claim = week.claim("bisson-fqueue/share-writes-100-mb");
    findings.row(week.number(claim, LARGEST, overwritten));
    let id = "bisson-fqueue/all-cached-overwrites-twice-as-many";
    let claim = week.claim(id);
    findings.row(match overwritten(week.ran.first(), LARGEST) > 0.0 {
        true => {
            let ratio =
                |ran: &[JobOutput]| overwritten(ran, ALL_CACHED) / overwritten(ran, LARGEST);
            week.ran.number(claim, ratio)
        }
        false => claim.not_comparable("no write overwrites data of the FQueue, however chosen"),
    });
    let claim = week.claim("bisson-fqueue/all-cached-takes-longer");
    findings.row(week.ran.order(claim, |ran| {
        vec![("all", access_with_idle(ran, ALL_CACHED)), ("chosen", access_with_idle(ran, LARGEST))]
    }));
    let claim = week.claim("bisson-fqueue/disk-time-without-100-mb");
    findings.row(week.number(claim, LARGEST, disk_time));
    let claim = week.claim("bisson-fqueue/disk-writes-those-without-100-mb");
    findings.row(week.number(claim, LARGEST, disk_writes));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    figures: [Figure; 8],
}

/// A figure: its title, the label of its axis, and what the paper says of it, as points.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    title: String,
    label: String,
    #[serde(default)]
    published: Vec<(String, Vec<(f64, f64)>)>,
}

/// The values of the figures, in their order.
const VALUES: [ByJob; 8] = [
    access,
    synchronised,
    flushed,
    access_with_idle,
    |ran, at| years_packed(ran, at, SIZES[at - 1]),
    overwritten,
    disk_time,
    disk_writes,
];

fn plots(weeks: &[Week], findings: &mut Findings) {
    let Parameters { figures } = parameters("bisson-fqueue/fig8-13");
    for (Figure { title, label, published }, value) in figures.iter().zip(VALUES) {
        let ours = weeks.iter().map(|week| {
            let points = SIZES.iter().zip(SMALLEST..);
            let points = points.map(|(mb, at)| (*mb, value(week.ran.first(), at)));
            Curve::ours(week.name, points.collect())
        });
        let theirs = published.iter().map(|(name, points)| Curve::published(name, points.clone()));
        findings.plot(
            "bisson-fqueue/by-size-of-the-fqueue",
            &[("title", title), ("label", label)],
            ours.chain(theirs).collect::<Vec<_>>(),
        );
    }
}
