//! Figure 8: how much of the blocks garbage collection searches for a victim.

use super::fig7::{PROGRAM_J, READ_J};
use super::{MapMemory, SEEDS, Tables, dftl, flash};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig8", run: reproduce };

const FRACTIONS: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
/// Of the others, runs at this seed alone.
const FIRST_SEED: u32 = 1;

fn job(entries: u64, fraction: f64) -> Job {
    let gc = format!("{{ kind = \"partial-search\", fraction = {fraction:?} }}");
    dftl("financial", entries).named(format!("search {fraction}")).set("component.ssd.ftl.gc", gc)
}

/// Outputs by fraction, relative to a full search.
struct Searched(Vec<JobOutput>);

impl Searched {
    fn response(&self, at: usize) -> f64 {
        self.0[at].mean_ms() / self.0[FULL].mean_ms()
    }

    fn copied(&self, at: usize) -> f64 {
        flash(&self.0[at]).gc_programs as f64
    }

    fn blocks(&self, at: usize) -> f64 {
        flash(&self.0[at]).searched_blocks as f64
    }
}

/// By seed, and by another setting.
struct Runs {
    seeds: Vec<Searched>,
    others: Vec<(&'static str, Searched)>,
}

const FULL: usize = FRACTIONS.len() - 1;

/// At every seed, and then with the addresses of a Zipf law and less memory for the map.
fn run(runner: &Runner) -> Result<Runs, ExperimentError> {
    let tables = Tables::of(runner, "financial")?;
    let drive = tables.entries(MapMemory::Drive);
    let at = |entries: u64, seed: u32| {
        FRACTIONS.map(|fraction| job(entries, fraction).at_seed(seed)).to_vec()
    };
    let mut jobs: Vec<Job> = (1..=SEEDS).flat_map(|seed| at(drive, seed)).collect();
    jobs.extend(at(tables.entries(MapMemory::Region), FIRST_SEED));
    let zipf = |job: Job| job.set("workload.generator.locality", "\"independent\"");
    jobs.extend(at(drive, FIRST_SEED).into_iter().map(zipf));
    let mut ran = runner.run(&jobs)?.into_iter();
    let mut next = || Searched(ran.by_ref().take(FRACTIONS.len()).collect());
    let seeds = (0..SEEDS).map(|_| next()).collect();
    let others = vec![
        ("DFTL with FAST's memory for the active region", next()),
        ("addresses by a Zipf law of 0.9", next()),
    ];
    Ok(Runs { seeds, others })
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let Runs { seeds, others } = run(runner)?;
    let mut findings = Findings::default();
    let mut ranked =
        |id: &str, names: &[(&'static str, usize)], of: fn(&Searched, usize) -> f64| {
            let at_seeds = |at: usize| seeds.iter().map(|ran| of(ran, at)).collect::<Vec<f64>>();
            let named: Vec<(&str, Vec<f64>)> =
                names.iter().map(|(name, at)| (*name, at_seeds(*at))).collect();
            let claim = Claim::of(id).ranked_at_seeds(&named);
            let claim = others.iter().fold(claim, |claim, (setting, ran)| {
                let named: Vec<(&str, f64)> =
                    names.iter().map(|(name, at)| (*name, of(ran, *at))).collect();
                claim.sensitive_ranked(*setting, &named)
            });
            findings.row(claim);
        };
    const ENDS: [(&str, usize); 2] = [("random victim", 0), ("full search", FULL)];
    ranked("flashsim/less-search-longer-response-mean-response", &ENDS, Searched::response);
    ranked("flashsim/fuller-search-finds-blocks-fewer-valid", &ENDS, Searched::copied);
    let between = [("random victim", 0), ("a fifth", 1), ("full search", FULL)];
    ranked("flashsim/partial-search-lies-between-mean-response", &between, Searched::response);
    let all: [(&str, usize); FRACTIONS.len()] =
        [("0", 0), ("0.2", 1), ("0.4", 2), ("0.6", 3), ("0.8", 4), ("1", 5)];
    ranked("flashsim/more-search-costs-more-energy-blocks", &all, Searched::blocks);
    findings.row(Claim::of("flashsim/energy-of-a-search").remark(&balance(&seeds[0])));
    let points = FRACTIONS.iter().enumerate();
    let points = points.map(|(at, fraction)| (*fraction, seeds[0].response(at))).collect();
    findings.plot(Plot {
        title: "Mean response against the fraction searched".to_owned(),
        caption: "Relative to a full search.".to_owned(),
        x: Axis::linear("Fraction of the blocks searched", ""),
        y: Axis::linear("Mean response, full search = 1", ""),
        curves: vec![Curve::ours("DFTL, Financial", points)],
    });
    Ok(findings)
}

/// The energy of looking at a block at which the copies that a full search saves over a search of a
/// fifth are worth it.
fn balance(ran: &Searched) -> String {
    let copies = ran.copied(1) - ran.copied(FULL);
    let looked = ran.blocks(FULL) - ran.blocks(1);
    let joules = copies * (READ_J + PROGRAM_J);
    format!(
        "from a fifth to all blocks, a search looks at {:.1} million more and saves {:.0} copies: \
         it saves energy as long as looking at a block takes less than {:.1} nJ",
        looked / 1e6,
        copies,
        1e9 * joules / looked
    )
}
