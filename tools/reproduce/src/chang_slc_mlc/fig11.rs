//! Figure 11: the hash table.

use super::{EXT3, NTFS, job, mean, number, speed_up};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Order, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig11", run: reproduce };

const ENTRIES: [u64; 3] = [16_384, 32_768, 65_536];
const PROBES: [u64; 3] = [1, 8, 32];

/// 256 MB of blocks of 64 pages of 2 KB, and the valid data of section 5.4.
const SLC_BLOCKS: f64 = 2048.0;
const PAGE_BYTES: f64 = 2048.0;
const VALID_MB: f64 = 16.8;

/// A table size and a probing method, and the result of each number of probes.
struct Line {
    entries: u64,
    probing: &'static str,
    ran: Vec<JobOutput>,
}

impl Line {
    fn rejects(&self, probes: u64) -> f64 {
        self.with(probes).map_or(f64::NAN, |ran| number(ran, "hash_reject_sectors").0)
    }

    fn with(&self, probes: u64) -> Option<&JobOutput> {
        self.ran.get(PROBES.iter().position(|other| *other == probes)?)
    }
}

const REASON: &str = "more small writes are to blocks of their own than the table has room for";

fn quadratic_reason(linear: Option<&Line>, quadratic: &Line) -> String {
    let counts = |line: &Line| [1, 8, 32].map(|probes| line.rejects(probes).round());
    let ours = linear.map(counts).unwrap_or_default();
    format!(
        "measured with 1, 8 and 32 probes: linear {ours:?}, quadratic {:?}; with entries of \
         sectors (`hash_unit`) and 8 probes 36 % of small writes and 30 % under NTFS. Each sector \
         only needs room of its own, wherever that is: nothing in the scheme asks for sequences \
         to stay together, which is the paper's reason",
        counts(quadratic)
    )
}

fn study(runner: &Runner, load: &str) -> Result<Vec<Line>, ExperimentError> {
    let job = |entries: u64, probing: &str, probes: u64| {
        job("C3", 256, load)
            .named(format!("hash table of {entries}, {probing}, {probes} probes, {load}"))
            .set("component.ssd.hash_entries", entries)
            .set("component.ssd.probing", format!("\"{probing}\""))
            .set("component.ssd.probes", probes)
    };
    // The paper compares the two methods on the smallest table.
    let kinds = ENTRIES.map(|entries| (entries, "linear")).into_iter();
    let kinds: Vec<(u64, &str)> = kinds.chain([(ENTRIES[0], "quadratic")]).collect();
    let jobs = kinds
        .iter()
        .flat_map(|(entries, probing)| PROBES.map(|probes| job(*entries, probing, probes)));
    let mut ran = runner.run(&jobs.collect::<Vec<_>>())?.into_iter();
    let mut line = |(entries, probing)| {
        let ran = ran.by_ref().take(PROBES.len()).collect();
        Line { entries, probing, ran }
    };
    Ok(kinds.into_iter().map(&mut line).collect())
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut eight = Vec::new();
    for (load, name) in [(NTFS, "NTFS"), (EXT3, "ext3")] {
        let lines = study(runner, load)?;
        let linear = |entries: u64| {
            lines.iter().find(|line| line.entries == entries && line.probing == "linear")
        };
        let at =
            |entries: u64, probes: u64| linear(entries).map_or(f64::NAN, |l| l.rejects(probes));
        let sizes = [
            ("16,384", at(ENTRIES[0], 8)),
            ("32,768", at(ENTRIES[1], 8)),
            ("65,536", at(ENTRIES[2], 8)),
        ];
        let claim = format!("{name}: the smaller the table, the more rejects, 8 probes");
        findings.row(
            Claim::new("H21", claim).ordered(Order::Falling).ranked(&sizes).if_it_differs(REASON),
        );
        let probes = [("1", at(16_384, 1)), ("8", at(16_384, 8)), ("32", at(16_384, 32))];
        let claim = format!("{name}: a small table needs probes: rejects with 16,384 entries");
        findings.row(
            Claim::new("H21", claim).ordered(Order::Falling).ranked(&probes).if_it_differs(REASON),
        );
        let spared = [at(32_768, 1) - at(32_768, 8), at(32_768, 8) - at(32_768, 32)];
        findings.row(
            Claim::of("chang-slc-mlc/32-768-beyond-8-probes-little")
                .with("name", name)
                .ranked(&[("1 to 8 probes", spared[0]), ("8 to 32", spared[1])]),
        );
        let without = runner.run(&[job("C3", 0, load)])?;
        let speed = |entries: u64| {
            let ran = linear(entries).and_then(|line| line.with(8));
            ran.map_or(f64::NAN, |ran| speed_up(&without[0], ran))
        };
        let speeds = ENTRIES.map(speed);
        let gains =
            [("16,384 to 32,768", speeds[1] - speeds[0]), ("to 65,536", speeds[2] - speeds[1])];
        findings.row(
            Claim::of("chang-slc-mlc/rs-levels-off-beyond-32-768")
                .with("name", name)
                .ranked(&gains)
                .remark(&format!(
                    "RS {:.2}, {:.2} and {:.2} with 8 probes",
                    speeds[0], speeds[1], speeds[2]
                )),
        );
        if let Some(ran) = linear(65_536).and_then(|line| line.with(8)) {
            // A tail block has as many valid pages as the others at least once were to have.
            let megabytes = mean(ran, "tail_valid_pages") * SLC_BLOCKS * PAGE_BYTES / 1e6;
            let claim = Claim::of("chang-slc-mlc/valid-data-of-the-slc-flash").with("name", name);
            findings.row(claim.within_share(VALID_MB, 0.25).ours(megabytes));
        }
        if let Some(quadratic) =
            lines.iter().find(|line| line.entries == 16_384 && line.probing == "quadratic")
        {
            let pair = [("quadratic", quadratic.rejects(8)), ("linear", at(16_384, 8))];
            findings.row(
                Claim::of("chang-slc-mlc/quadratic-probing-rejects-more-16-384")
                    .with("name", name)
                    .ranked(&pair)
                    .if_it_differs(&quadratic_reason(linear(16_384), quadratic)),
            );
        }
        eight.push(at(16_384, 8));
        findings.plot(plot(name, &lines));
    }
    let pair = [("ext3", eight[1]), ("NTFS", eight[0])];
    findings.row(Claim::of("chang-slc-mlc/ext3-rejects-more-ntfs-16-384").ranked(&pair));
    Ok(findings)
}

fn plot(name: &str, lines: &[Line]) -> Plot {
    let curve = |line: &Line| {
        let points = PROBES.iter().map(|probes| (*probes as f64, line.rejects(*probes)));
        Curve::ours(&format!("{}, {}", line.entries, line.probing), points.collect())
    };
    Plot {
        title: format!("Figure 11, {name}"),
        caption: "Small writes refused by the hash table.".to_owned(),
        x: Axis::logarithmic("Probes", "count"),
        y: Axis::linear("Writes refused", "count"),
        curves: lines.iter().map(curve).collect(),
    }
}
