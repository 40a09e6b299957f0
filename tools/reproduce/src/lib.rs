//! Published figures and measured drives, each beside what comes out here.
//!
//! One file per artefact (a figure, a table, a set of drives): it says which scenarios to run,
//! what the source claims, with which tolerance, and draws the curves. Scenarios are in `papers/`.
//! An artefact never judges with a number tuned to pass: tolerances are those of the checklist
//! the project was begun with, parameters come from the paper or a datasheet, and where a claim
//! does not hold, the row says `differs` and why.

mod bisson_fqueue;
mod chang_slc_mlc;
mod claim;
mod disk;
mod flashsim;
mod konanki;
mod lab;
mod op_fcl;

pub use claim::{Claim, Findings, Order};
pub use lab::{Job, Lab, LabError, Ran};

use hybridsim_report::study::Study;

/// A figure, a table, or a set of measurements that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Artefact {
    /// Its name, such as `flashsim/fig6`: the source, then the artefact.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What is done here and what is assumed, in a few sentences.
    pub method: &'static str,
    /// Does it.
    pub run: fn(&Lab) -> Result<Findings, LabError>,
}

/// All artefacts, in the order they are told.
pub const ARTEFACTS: &[&[Artefact]] = &[
    disk::ARTEFACTS,
    konanki::ARTEFACTS,
    bisson_fqueue::ARTEFACTS,
    flashsim::ARTEFACTS,
    op_fcl::ARTEFACTS,
    chang_slc_mlc::ARTEFACTS,
];

/// All artefacts in one row.
pub fn all() -> impl Iterator<Item = &'static Artefact> {
    ARTEFACTS.iter().copied().flatten()
}

/// Numbers that earlier versions named the papers by, and the keys that replaced them.
const NUMBERS: [(&str, &str); 5] = [
    ("000", "konanki"),
    ("001", "bisson-fqueue"),
    ("002", "flashsim"),
    ("003", "op-fcl"),
    ("004", "chang-slc-mlc"),
];

/// `id` with the key of its paper where it starts with the paper's former number.
fn with_key(id: &str) -> String {
    let (source, rest) = id.split_at(id.find('/').unwrap_or(id.len()));
    let key = NUMBERS.iter().find(|(number, _)| *number == source).map_or(source, |(_, key)| key);
    format!("{key}{rest}")
}

/// The artefacts `ids` name: a whole source (`flashsim`) or one of its artefacts (`flashsim/fig6`);
/// all without any. The former number of a paper (`002`) stands for its key.
///
/// # Errors
/// The id that names nothing.
pub fn select(ids: &[String]) -> Result<Vec<&'static Artefact>, String> {
    let names = |id: &str, artefact: &Artefact| {
        let id = with_key(id);
        let rest = artefact.id.strip_prefix(id.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(unknown) = ids.iter().find(|id| !all().any(|artefact| names(id, artefact))) {
        return Err(unknown.clone());
    }
    let wanted = |artefact: &&Artefact| ids.is_empty() || ids.iter().any(|id| names(id, artefact));
    Ok(all().filter(wanted).collect())
}

/// Runs `artefact`.
///
/// # Errors
/// When a scenario does not run, or the run was interrupted. Missing data is no error: its rows
/// say so.
pub fn run(artefact: &Artefact, lab: &Lab) -> Result<Study, LabError> {
    let findings = match (artefact.run)(lab) {
        Err(LabError::NoData(reason)) => {
            let mut findings = Findings::default();
            findings.row(Claim::new("–", artefact.title).not_comparable(&reason));
            findings
        }
        other => other?,
    };
    Ok(Study {
        artefact: artefact.id.to_owned(),
        title: artefact.title.to_owned(),
        method: artefact.method.to_owned(),
        rows: findings.rows.into_iter().map(|claim| claim.judged(artefact.id)).collect(),
        plots: findings.plots,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_select_sources_and_artefacts() {
        let check = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            select(&ids).map(|found| found.len())
        };
        assert_eq!(check(&[]), Ok(all().count()));
        assert_eq!(check(&["flashsim/table3"]), Ok(1));
        assert_eq!(check(&["002/table3"]), Ok(1));
        assert!(check(&["konanki"]).is_ok_and(|found| found > 0 && found < all().count()));
        assert_eq!(check(&["002/"]), check(&["flashsim"]));
        assert_eq!(check(&["00"]), Err("00".to_owned()));
        assert_eq!(check(&["flashsim/fig"]), Err("flashsim/fig".to_owned()));
    }

    #[test]
    fn ids_are_unique() {
        let ids: BTreeSet<&str> = all().map(|artefact| artefact.id).collect();
        assert_eq!(ids.len(), all().count());
    }
}
