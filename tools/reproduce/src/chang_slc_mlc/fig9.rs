//! Sections 5.3.2 and 5.3.3 over a month replayed ten times: figures 9 and 10, table 3, the
//! speed-up and the energy with 256 MB of SLC flash.

use super::analysis::TABLE_3;
use super::{
    EXT3, NTFS, REPLAYS, costs, energy_percent, factors, job, number, replayed, seeds,
    slc_requests, speed_up, sum,
};
use crate::published::settings;
use crate::variants::once_each;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting};
use hybridsim_ssd::slc_mlc::STATISTIC_NAMES;
use hybridsim_ssd::slc_mlc::model::{Factors, MLC, SLC};

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig9", run: reproduce };

/// The settings that change something under each configuration and load: C3 with NTFS and with
/// ext3, C1 with NTFS.
const SETTINGS: [&[&str]; 3] = [
    &[
        "chang-slc-mlc/one-month",
        "chang-slc-mlc/one-month-c3-ntfs",
        "chang-slc-mlc/one-month-c3",
        "chang-slc-mlc/one-month-ntfs",
    ],
    &["chang-slc-mlc/one-month", "chang-slc-mlc/one-month-c3", "chang-slc-mlc/one-month-ext3"],
    &["chang-slc-mlc/one-month", "chang-slc-mlc/one-month-ntfs"],
];

/// A configuration under a load, without SLC flash and with 256 MB: a month replayed ten times, a
/// month at the other seeds, and other settings.
struct Pair {
    ran: [JobOutput; 2],
    seeds: Vec<[JobOutput; 2]>,
    others: Vec<(String, [JobOutput; 2])>,
}

impl Pair {
    fn jobs(name: &str, load: &str, settings: &[Setting]) -> Vec<Job> {
        let both = || [job(name, 0, load), job(name, 256, load)];
        let mut jobs: Vec<Job> = both().map(|job| replayed(job, REPLAYS)).to_vec();
        jobs.extend(other_seeds().flat_map(|seed| both().map(|job| job.at_seed(seed))));
        for setting in settings {
            let made = (0..).zip(both()).map(|(at, job)| {
                let name = format!("{}, {}", job.name, setting.name);
                setting.make(at, job).named(name)
            });
            jobs.extend(made);
        }
        jobs
    }

    fn take(settings: &[Setting], from: &mut impl Iterator<Item = JobOutput>) -> Self {
        let mut next = || [(); 2].map(|()| from.next().expect("an output for each job"));
        let ran = next();
        let seeds = other_seeds().map(|_| next()).collect();
        let others = settings.iter().map(|setting| (setting.name.clone(), next())).collect();
        Self { ran, seeds, others }
    }

    /// One number at every seed.
    fn at_seeds<T>(&self, of: impl Fn(&[JobOutput; 2]) -> T) -> Vec<T> {
        std::iter::once(&self.ran).chain(&self.seeds).map(of).collect()
    }

    fn number(&self, claim: Claim, of: impl Fn(&[JobOutput; 2]) -> f64) -> Claim {
        let claim = claim.ours(of(&self.ran));
        self.others.iter().fold(claim, |claim, (name, ran)| claim.sensitive(name, of(ran)))
    }

    fn order(
        &self,
        claim: Claim,
        names: [&str; 2],
        of: impl Fn(&[JobOutput; 2]) -> [f64; 2],
    ) -> Claim {
        let seeds = self.at_seeds(&of);
        let named = [0, 1].map(|at| (names[at], seeds.iter().map(|pair| pair[at]).collect()));
        let claim = claim.ranked_at_seeds(&named);
        self.others.iter().fold(claim, |claim, (name, ran)| {
            let [one, other] = of(ran);
            claim.sensitive_ranked(name, &[(names[0], one), (names[1], other)])
        })
    }
}

/// The seeds of a month each; at the first it is replayed ten times. The setting "one month" shows
/// what the length alone does.
fn other_seeds() -> std::ops::RangeInclusive<u32> {
    2..=seeds(&["H15", "H18", "H19"])
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let of = |ids: &[&str]| ids.iter().flat_map(|id| settings(id, &[])).collect::<Vec<Setting>>();
    let [of_ntfs, of_ext3, of_same] = SETTINGS.map(of);
    let mut jobs = Pair::jobs("C3", NTFS, &of_ntfs);
    jobs.extend(Pair::jobs("C3", EXT3, &of_ext3));
    jobs.extend(Pair::jobs("C1", NTFS, &of_same));
    let plain = job("C3", 256, NTFS).set("component.ssd.write_back", false);
    let plain = plain.named("C3 without write-back");
    jobs.extend((1..=seeds(&["H11"])).map(|seed| plain.at_seed(seed)));
    let mut ran = once_each(runner, &jobs)?.into_iter();
    let ntfs = Pair::take(&of_ntfs, &mut ran);
    let ext3 = Pair::take(&of_ext3, &mut ran);
    let same = Pair::take(&of_same, &mut ran);
    let mut findings = Findings::default();
    headline(&mut findings, &ntfs, &ext3, &same);
    traffic(&mut findings, &ntfs, &same);
    // A month at every seed.
    let month = std::iter::once(&ntfs.others[0].1).chain(&ntfs.seeds);
    let with = month.map(|[_, with]| with.mean_ms()).collect();
    let without = ran.map(|ran| ran.mean_ms()).collect();
    findings.row(
        Claim::of("chang-slc-mlc/write-back-policy-pays-mean-response")
            .ranked_at_seeds(&[("with", with), ("without", without)]),
    );
    for (load, pair, published) in [("NTFS", &ntfs, 0), ("ext3", &ext3, 2)] {
        for (at, name) in ["C3'", "C3"].into_iter().enumerate() {
            table_3(&mut findings, (load, name), pair, (at, &TABLE_3[published + at]));
        }
    }
    scatter(&mut findings, runner)?;
    Ok(findings)
}

/// Figure 8(a) and table 4 at 256 MB.
fn headline(findings: &mut Findings, ntfs: &Pair, ext3: &Pair, same: &Pair) {
    let tables = |at: usize| [&TABLE_3[at], &TABLE_3[at + 1]];
    let why = |pair: &Pair, at: usize| {
        format!(
            "the hash table, in which the clusters of hot data collide, refused {:.1} % of write \
             requests; {}",
            refused(&pair.ran[1], "hash_reject_sectors"),
            costs([&pair.ran[0], &pair.ran[1]], tables(at))
        )
    };
    let [without, with] = [&same.ran[0], &same.ran[1]].map(|ran| 1.0 / factors(ran).p2);
    let why_same = format!(
        "MLC blocks are folded each {without:.0} pages without SLC flash and each {with:.0} with"
    );
    let cancels = two_errors(&ext3.ran);
    for (name, published, pair, why) in [
        ("C3, NTFS", 1.84, ntfs, why(ntfs, 0)),
        ("C3, ext3", 1.38, ext3, why(ext3, 2)),
        ("C1, NTFS", 1.3, same, why_same),
    ] {
        let claim = Claim::of("chang-slc-mlc/rs-ratio-256-mb").with("name", name);
        let claim = claim.published(published).if_it_differs(&why);
        let claim = if name == "C3, ext3" { claim.remark(&cancels) } else { claim };
        findings.row(pair.number(claim, |[without, with]| speed_up(without, with)));
    }
    for (name, percent, pair, at) in [("NTFS", 54.2, ntfs, 0), ("ext3", 73.6, ext3, 2)] {
        let claim = Claim::of("chang-slc-mlc/table-4-es-ratio-mb").with("name", name);
        let claim = claim.with("size", "256").published(percent).if_it_differs(&why(pair, at));
        let claim = if name == "ext3" { claim.remark(&cancels) } else { claim };
        findings.row(pair.number(claim, |[without, with]| energy_percent(without, with)));
    }
}

/// The remark on results under ext3, to which two errors contribute that cancel.
fn two_errors(ext3: &[JobOutput; 2]) -> String {
    let [without, with] = [&ext3[0], &ext3[1]].map(|ran| factors(ran).p2);
    format!(
        "two errors cancel: without SLC flash folds are more frequent than in table 3 (p2 \
         {without:.3} of 0.011), so that it saves more; the hash table refused {:.1} % of write \
         requests, so that it saves less (p2 {with:.3} of 0.009)",
        refused(&ext3[1], "hash_reject_sectors")
    )
}

/// Figure 9 and the share of requests.
fn traffic(findings: &mut Findings, ntfs: &Pair, same: &Pair) {
    let claim = Claim::of("chang-slc-mlc/write-requests-handled-slc-flash").with("name", "C1");
    let claim = claim
        .with("throttle", refused(&same.ran[1], "throttle_reject_sectors"))
        .with("hash", refused(&same.ran[1], "hash_reject_sectors"));
    findings.row(same.number(claim, |[_, with]| slc_requests(with)));
    for (what, key) in
        [("pages written", "mlc_gc_write_pages"), ("pages read", "mlc_gc_read_pages")]
    {
        let claim = Claim::of("chang-slc-mlc/c3-slc-flash-lowers-garbage-collection");
        findings.row(ntfs.order(claim.with("what", what), ["C3'", "C3"], |ran| {
            [sum(&ran[0], key), sum(&ran[1], key)]
        }));
    }
    let erased = |ran: &JobOutput| sum(ran, "mlc_erased_blocks");
    let claim = Claim::of("chang-slc-mlc/c3-mlc-erases");
    findings
        .row(ntfs.order(claim, ["C3'", "C3"], |[without, with]| [erased(without), erased(with)]));
    let spared = |[without, with]: &[JobOutput; 2]| 1.0 - erased(with) / erased(without);
    let claim = Claim::of("chang-slc-mlc/improvement-due-to-garbage-collection");
    let (large, small) = (ntfs.at_seeds(spared), same.at_seeds(spared));
    findings.row(claim.ranked_at_seeds(&[("C3", large), ("C1", small)]));
    let written = ["slc_user_write_pages", "mlc_user_write_pages", "mlc_gc_write_pages"];
    let share = |ran: &JobOutput, name: &str, all: &[&str]| {
        100.0 * sum(ran, name) / all.iter().map(|name| sum(ran, name)).sum::<f64>()
    };
    let with = &ntfs.ran[1];
    let all: Vec<&str> = written.into_iter().chain(["wear_levelling_pages"]).collect();
    let reads = ["mlc_user_read_pages", "mlc_gc_read_pages", "scan_pages", "read_scan_pages"];
    let scanned = share(with, "scan_pages", &reads) + share(with, "read_scan_pages", &reads);
    findings.row(Claim::of("chang-slc-mlc/figure-9-shares").with_figures(&[
        ("levelled", share(with, "wear_levelling_pages", &all)),
        ("collected", share(with, "mlc_gc_write_pages", &all)),
        ("scanned", scanned),
        ("read", share(with, "mlc_gc_read_pages", &reads)),
    ]));
}

/// Percentage of write requests that were rejected.
fn refused(ran: &JobOutput, name: &str) -> f64 {
    let went = ["slc_write_sectors", "mlc_write_sectors"].map(|name| number(ran, name).0);
    100.0 * number(ran, name).0 / went.iter().sum::<f64>()
}

/// A row of table 3: output `at` of the pair, and the factors published. What the load was fitted
/// to is given: n1, n2 and what follows from them under NTFS, folds of two blocks.
fn table_3(
    findings: &mut Findings,
    (load, name): (&str, &str),
    pair: &Pair,
    (at, published): (usize, &Factors),
) {
    let ntfs = load == "NTFS";
    let row = |what: &str| {
        let claim = Claim::of("chang-slc-mlc/table-3").with("name", format!("{name}, {load}"));
        claim.with("what", what)
    };
    let mut add = |what: &str, value: f64, given: bool, of: &dyn Fn(&Factors) -> f64| {
        let claim = row(what).published(value).given_if(given);
        findings.row(pair.number(claim, |ran| round(of(&factors(&ran[at])))));
    };
    if published.alpha > 0.0 {
        add("alpha", published.alpha, true, &|factors| factors.alpha);
        add("n1", published.n1, ntfs, &|factors| factors.n1);
        add("n2", published.n2, ntfs, &|factors| factors.n2);
    }
    add("n3", published.n3, false, &|factors| factors.n3);
    add("n4", published.n4, true, &|factors| factors.n4);
    add("p1", published.p1, false, &|factors| factors.p1);
    add("p2", published.p2, ntfs, &|factors| factors.p2);
    let cost = published.write_us(&SLC, &MLC).round();
    add("section 4.1 with the factors measured here, µs", cost, ntfs, &|factors| {
        let (n1, n2) = (factors.n1.max(0.0), factors.n2.max(0.0));
        Factors { n1, n2, ..*factors }.write_us(&SLC, &MLC).round()
    });
}

/// Figure 10: how far writes to the MLC flash jump about.
fn scatter(findings: &mut Findings, runner: &Runner) -> Result<(), ExperimentError> {
    let fragment = |slc_mb, load: &str| {
        job("C3", slc_mb, load)
            .named(format!("a fragment, {slc_mb} MB SLC, {load}"))
            .set("workload.generator.requests", 200_000)
            .with_numbers()
    };
    for (name, load) in [("NTFS", NTFS), ("ext3", EXT3)] {
        let ran =
            runner.run_at_seeds(&[fragment(0, load), fragment(256, load)], seeds(&["H20"]))?;
        let of = |at: usize| ran[at].iter().map(jumps).collect::<Vec<f64>>();
        findings.row(
            Claim::of("chang-slc-mlc/writes-reach-mlc-less-random-share")
                .with("name", name)
                .ranked_at_seeds(&[("without", of(0)), ("with", of(1))]),
        );
    }
    Ok(())
}

/// The share of writes to the MLC flash that go to another logical block than the one before.
fn jumps(ran: &JobOutput) -> f64 {
    let block = STATISTIC_NAMES.iter().position(|name| *name == "mlc_write_block");
    let reported = ran.numbers.iter().filter(|(_, name, _)| Some(usize::from(*name)) == block);
    let (mut writes, mut jumps, mut last) = (0.0, 0.0, None);
    for (.., to) in reported {
        writes += 1.0;
        if last.replace(to) != Some(to) {
            jumps += 1.0;
        }
    }
    jumps / writes
}

/// `value` to four digits behind the point, so that it can be read.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
