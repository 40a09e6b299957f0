//! Figure 8: how much of the blocks garbage collection searches for a victim.

use super::fig7::{PROGRAM_J, READ_J};
use super::{MapMemory, Tables, dftl, flash, seeds};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Variants};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig8", run: reproduce };

const FRACTIONS: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];

fn job(entries: u64, fraction: f64) -> Job {
    let gc = format!("{{ kind = \"partial-search\", fraction = {fraction:?} }}");
    dftl("financial", entries).named(format!("search {fraction}")).set("component.ssd.ftl.gc", gc)
}

/// The response time, relative to a full search.
fn response(ran: &[JobOutput], at: usize) -> f64 {
    ran[at].mean_ms() / ran[FULL].mean_ms()
}

fn copied(ran: &[JobOutput], at: usize) -> f64 {
    flash(&ran[at]).gc_programs as f64
}

fn blocks(ran: &[JobOutput], at: usize) -> f64 {
    flash(&ran[at]).searched_blocks as f64
}

const FULL: usize = FRACTIONS.len() - 1;

fn run(runner: &Runner) -> Result<Variants, ExperimentError> {
    let tables = Tables::of(runner, "financial")?;
    let drive = tables.entries(MapMemory::Drive);
    let jobs = FRACTIONS.map(|fraction| job(drive, fraction));
    Variants::run(runner, &jobs, seeds(&["F30"]), &tables.settings("flashsim/fig8"))
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = run(runner)?;
    let mut findings = Findings::default();
    let mut ranked =
        |id: &str, names: &[(&'static str, usize)], of: fn(&[JobOutput], usize) -> f64| {
            findings.row(ran.order(Claim::of(id), |ran| {
                names.iter().map(|(name, at)| (*name, of(ran, *at))).collect()
            }));
        };
    const ENDS: [(&str, usize); 2] = [("random victim", 0), ("full search", FULL)];
    ranked("flashsim/less-search-longer-response-mean-response", &ENDS, response);
    ranked("flashsim/fuller-search-finds-blocks-fewer-valid", &ENDS, copied);
    let between = [("random victim", 0), ("a fifth", 1), ("full search", FULL)];
    ranked("flashsim/partial-search-lies-between-mean-response", &between, response);
    let all: [(&str, usize); FRACTIONS.len()] =
        [("0", 0), ("0.2", 1), ("0.4", 2), ("0.6", 3), ("0.8", 4), ("1", 5)];
    ranked("flashsim/more-search-costs-more-energy-blocks", &all, blocks);
    let fifth = Claim::of("flashsim/a-fifth-takes-slightly-longer");
    findings.row(ran.number(fifth, |ran| response(ran, 1)));
    findings.row(balance(ran.first()));
    let points = FRACTIONS.iter().enumerate();
    let points = points.map(|(at, fraction)| (*fraction, response(ran.first(), at))).collect();
    findings.plot("flashsim/response-by-search", &[], vec![Curve::ours("DFTL, Financial", points)]);
    Ok(findings)
}

/// The energy of looking at a block below which the copies that a search of a fifth saves over a
/// random victim are worth it, and what a full search changes.
fn balance(ran: &[JobOutput]) -> Claim {
    let copies = copied(ran, 0) - copied(ran, 1);
    let looks = blocks(ran, 1) - blocks(ran, 0);
    let joules = copies * (READ_J + PROGRAM_J);
    Claim::of("flashsim/energy-of-a-search").with_figures(&[
        ("looks", looks / 1e6),
        ("copies", copies),
        ("nanojoules", 1e9 * joules / looks),
        ("more", (blocks(ran, FULL) - blocks(ran, 1)) / 1e6),
        ("change", copied(ran, FULL) - copied(ran, 1)),
    ])
}
