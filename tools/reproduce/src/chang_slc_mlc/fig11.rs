//! Figure 11: the hash table.

use super::{EXT3, NTFS, job, mean, number, seeds, speed_up};
use crate::published::setting;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig11", run: reproduce };

const ENTRIES: [u64; 3] = [16_384, 32_768, 65_536];
const PROBES: [u64; 3] = [1, 8, 32];

/// 256 MB of blocks of 64 pages of 2 KB.
const SLC_BLOCKS: f64 = 2048.0;
const PAGE_BYTES: f64 = 2048.0;
/// The length of the log that section 5.4's valid data fit.
const SHORTER_LOG_BLOCKS: f64 = 651.0;

/// A table size and a probing method, and by number of probes the outputs at every seed.
struct Line {
    entries: u64,
    probing: &'static str,
    ran: Vec<Vec<JobOutput>>,
}

impl Line {
    /// Small writes refused with `probes`, at every seed.
    fn rejects(&self, probes: u64) -> Vec<f64> {
        self.with(probes).iter().map(|ran| number(ran, "hash_reject_sectors").0).collect()
    }

    fn with(&self, probes: u64) -> &[JobOutput] {
        let at = PROBES.iter().position(|other| *other == probes);
        at.map_or(&[], |at| &self.ran[at])
    }
}

/// A month on C3 with 256 MB of SLC flash and a hash table of `entries`.
fn with_table(load: &str, entries: u64, probing: &str, probes: u64) -> Job {
    job("C3", 256, load)
        .named(format!("hash table of {entries}, {probing}, {probes} probes, {load}"))
        .set("component.ssd.hash_entries", entries)
        .set("component.ssd.probing", format!("\"{probing}\""))
        .set("component.ssd.probes", probes)
}

/// The four lines of a panel: linear probing for every table size, quadratic for the smallest, on
/// which the paper compares the two methods.
fn study(runner: &Runner, load: &str) -> Result<Vec<Line>, ExperimentError> {
    let kinds = ENTRIES.map(|entries| (entries, "linear")).into_iter();
    let kinds: Vec<(u64, &str)> = kinds.chain([(ENTRIES[0], "quadratic")]).collect();
    let jobs = kinds.iter().flat_map(|(entries, probing)| {
        PROBES.map(|probes| with_table(load, *entries, probing, probes))
    });
    let mut ran = runner.run_at_seeds(&jobs.collect::<Vec<_>>(), seeds(&["H21"]))?.into_iter();
    let mut line = |(entries, probing)| {
        let ran = ran.by_ref().take(PROBES.len()).collect();
        Line { entries, probing, ran }
    };
    Ok(kinds.into_iter().map(&mut line).collect())
}

/// The setting with another length of the log, and its outputs under NTFS: without SLC flash, and
/// with 8 probes of tables of each size.
fn shorter_log(runner: &Runner) -> Result<(Setting, Vec<JobOutput>), ExperimentError> {
    let name = "one month, k = 651, hot data of 28 MiB in clusters of 2";
    let setting = setting("chang-slc-mlc/one-month-c3-ntfs", name, &[]);
    let with = ENTRIES.map(|entries| with_table(NTFS, entries, "linear", 8));
    let jobs = [job("C3", 0, NTFS)].into_iter().chain(with);
    let other = |job: Job| {
        let name = format!("{}, {}", job.name, setting.name);
        job.at(&setting).named(name)
    };
    let jobs: Vec<Job> = jobs.map(other).collect();
    let ran = runner.run(&jobs)?;
    Ok((setting, ran))
}

fn less(from: &[f64], to: &[f64]) -> Vec<f64> {
    from.iter().zip(to).map(|(from, to)| from - to).collect()
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut eight = Vec::new();
    for (load, name) in [(NTFS, "NTFS"), (EXT3, "ext3")] {
        let lines = study(runner, load)?;
        let without = runner.run_at_seeds(&[job("C3", 0, load)], seeds(&["H21"]))?.remove(0);
        rejected(&mut findings, name, &lines);
        let other = if load == NTFS { Some(shorter_log(runner)?) } else { None };
        speed(&mut findings, name, &lines, &without, other);
        eight.push(lines[0].rejects(8));
        let curves: Vec<Curve> = lines.iter().map(curve).collect();
        findings.plot("chang-slc-mlc/writes-refused", &[("name", &name)], curves);
    }
    let pair = [("ext3", eight.remove(1)), ("NTFS", eight.remove(0))];
    findings.row(Claim::of("chang-slc-mlc/ext3-rejects-more-ntfs-16-384").ranked_at_seeds(&pair));
    Ok(findings)
}

/// Figure 11(a) and (c): writes refused.
fn rejected(findings: &mut Findings, name: &str, lines: &[Line]) {
    let [small, medium, large, quadratic] = lines else { panic!("a panel has four lines") };
    let claim = |id: &str| Claim::of(id).with("name", name);
    let sizes =
        [("16,384", small.rejects(8)), ("32,768", medium.rejects(8)), ("65,536", large.rejects(8))];
    findings.row(claim("chang-slc-mlc/smaller-table-more-rejects").ranked_at_seeds(&sizes));
    let probes = [("1", small.rejects(1)), ("8", small.rejects(8)), ("32", small.rejects(32))];
    findings.row(claim("chang-slc-mlc/small-table-needs-probes").ranked_at_seeds(&probes));
    let [one, eight, most] = PROBES.map(|probes| medium.rejects(probes));
    let avoided = [("1 to 8 probes", less(&one, &eight)), ("8 to 32", less(&eight, &most))];
    findings.row(claim("chang-slc-mlc/32-768-beyond-8-probes-little").ranked_at_seeds(&avoided));
    let counts =
        |line: &Line| format!("{:?}", PROBES.map(|probes| line.rejects(probes)[0].round()));
    let pair = [("quadratic", quadratic.rejects(8)), ("linear", small.rejects(8))];
    findings.row(
        claim("chang-slc-mlc/quadratic-probing-rejects-more-16-384")
            .with("linear", counts(small))
            .with("quadratic", counts(quadratic))
            .ranked_at_seeds(&pair),
    );
}

/// Figure 11(b) and (d): the speed-up; and the valid data of section 5.4.
fn speed(
    findings: &mut Findings,
    name: &str,
    lines: &[Line],
    without: &[JobOutput],
    other: Option<(Setting, Vec<JobOutput>)>,
) {
    let speeds: Vec<Vec<f64>> = lines[..ENTRIES.len()]
        .iter()
        .map(|line| without.iter().zip(line.with(8)).map(|(a, b)| speed_up(a, b)).collect())
        .collect();
    let gains = [
        ("16,384 to 32,768", less(&speeds[1], &speeds[0])),
        ("to 65,536", less(&speeds[2], &speeds[1])),
    ];
    let mut levels_off = Claim::of("chang-slc-mlc/rs-levels-off-beyond-32-768")
        .with("name", name)
        .with_figures(&[("small", speeds[0][0]), ("medium", speeds[1][0])])
        .with("large", speeds[2][0])
        .ranked_at_seeds(&gains);
    let megabytes = |ran: &JobOutput| valid_megabytes(ran, SLC_BLOCKS);
    let megabytes: Vec<f64> = lines[2].with(8).iter().map(megabytes).collect();
    let valid = Claim::of("chang-slc-mlc/valid-data-of-the-slc-flash").with("name", name);
    let mut valid = valid.ours_at_seeds(&megabytes);
    if let Some((setting, ran)) = other {
        let [without, small, medium, large] = ran.as_slice() else { panic!("four jobs are run") };
        let gain = |from, to| speed_up(without, to) - speed_up(without, from);
        let gains = [("16,384 to 32,768", gain(small, medium)), ("to 65,536", gain(medium, large))];
        levels_off = levels_off.sensitive_ranked(&setting.name, &gains);
        valid = valid.sensitive(&setting.name, valid_megabytes(large, SHORTER_LOG_BLOCKS));
    }
    findings.row(levels_off);
    findings.row(valid);
}

/// The valid data of a log of so many blocks: a tail block has as many valid pages as the others at
/// least once were to have.
fn valid_megabytes(ran: &JobOutput, blocks: f64) -> f64 {
    mean(ran, "tail_valid_pages") * blocks * PAGE_BYTES / 1e6
}

fn curve(line: &Line) -> Curve {
    let points = PROBES.iter().map(|probes| (*probes as f64, line.rejects(*probes)[0]));
    Curve::ours(&format!("{}, {}", line.entries, line.probing), points.collect())
}
