//! What the sources claim: `papers/<key>/claims.toml`, embedded and read once.

use crate::claim::Order;
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The scenarios and claims of all sources.
pub static PAPERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// The claims of one source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    #[serde(default)]
    experiment: BTreeMap<String, ExperimentText>,
    #[serde(default)]
    claim: BTreeMap<String, PublishedClaim>,
}

/// What an experiment is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentText {
    /// What it shows.
    pub title: String,
    /// What is run and what is assumed, in a few sentences.
    method: Option<String>,
    /// The experiment of the same source that has the same method.
    method_of: Option<String>,
}

/// A value as published.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum PublishedValue {
    Number(f64),
    Words(String),
}

/// One claim. At most one of `exactly`, `within`, `within_share`, `between`, `at_least`, `at_most`
/// and `order` says what counts as agreement; without any, the experiment does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedClaim {
    /// Row of the checklist.
    pub row: String,
    /// The claim; `{name}` stands for a value that the experiment fills in.
    pub claim: String,
    /// Unit of all its numbers.
    #[serde(default)]
    pub unit: String,
    pub published: Option<PublishedValue>,
    pub exactly: Option<f64>,
    pub within: Option<f64>,
    pub within_share: Option<f64>,
    pub between: Option<(f64, f64)>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    pub order: Option<Order>,
    /// Whether the published number went into the run.
    #[serde(default)]
    pub given: bool,
    /// Runs at different seeds, all of which have to agree for a verdict.
    #[serde(default = "one")]
    pub seeds: u32,
    /// Parameters the source leaves open that the result depends on: other values of them are run
    /// as well and printed with the claim.
    #[serde(default)]
    pub free: Vec<String>,
    /// The source does not say it: it follows from what it says, or is expected of a model.
    #[serde(default)]
    pub unpublished: bool,
    /// Why the result differs, where it does.
    pub if_it_differs: Option<String>,
    pub remark: Option<String>,
    /// Why there is nothing to compare.
    pub not_comparable: Option<String>,
}

const fn one() -> u32 {
    1
}

/// The most seeds that a claim of the source `key` asks for whose row is one of `rows`.
pub fn seeds(key: &str, rows: &[&str]) -> u32 {
    let claims = SOURCES.get(key).into_iter().flat_map(|source| source.claim.values());
    let asked = claims.filter(|claim| rows.contains(&claim.row.as_str())).map(|claim| claim.seeds);
    asked.max().unwrap_or(1)
}

static SOURCES: LazyLock<BTreeMap<String, Source>> = LazyLock::new(|| {
    let source = |folder: &Dir<'static>| {
        let key = folder.path().to_str().expect("ASCII").to_owned();
        let text = folder.get_file(folder.path().join("claims.toml"))?.contents_utf8()?;
        let source = toml::from_str(text).unwrap_or_else(|error| panic!("{key}: {error}"));
        Some((key, source))
    };
    PAPERS.dirs().filter_map(source).collect()
});

fn find<T>(id: &str, of: impl Fn(&'static Source) -> &'static BTreeMap<String, T>) -> &'static T {
    let found = id.split_once('/').and_then(|(key, name)| of(SOURCES.get(key)?).get(name));
    found.unwrap_or_else(|| panic!("papers/ has no `{id}`"))
}

/// The title and method of experiment `id`, such as `flashsim/fig6a`.
///
/// # Panics
/// When `papers/` has none: a test finds that.
pub fn experiment(id: &str) -> &'static ExperimentText {
    find(id, |source| &source.experiment)
}

/// What experiment `id` runs and assumes.
///
/// # Panics
/// As [`experiment`].
pub fn method(id: &str) -> &'static str {
    let text = experiment(id);
    if let Some(method) = &text.method {
        return method;
    }
    let (key, _) = id.split_once('/').expect("found above");
    let other = text.method_of.as_ref().unwrap_or_else(|| panic!("`{id}` has no method"));
    method(&format!("{key}/{other}"))
}

/// The claim `id`, such as `flashsim/erases-fast-over-dftl`.
///
/// # Panics
/// When `papers/` has none: a test finds that.
pub fn claim(id: &str) -> &'static PublishedClaim {
    find(id, |source| &source.claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn gather(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).expect("the sources of this crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                gather(&path, text);
            } else {
                *text += &fs::read_to_string(&path).expect("UTF-8");
            }
        }
    }

    #[test]
    fn every_claim_has_an_experiment_and_every_experiment_its_claims() {
        let mut code = String::new();
        gather(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut code);
        for (key, source) in SOURCES.iter() {
            for name in source.claim.keys().chain(source.experiment.keys()) {
                assert!(code.contains(&format!("\"{key}/{name}\"")), "nothing uses {key}/{name}");
            }
        }
        let uses = code.split("Claim::of(\"").skip(1).filter_map(|rest| rest.split_once('"'));
        for (id, _) in uses.filter(|(id, _)| id.contains('/')) {
            assert!(!claim(id).claim.is_empty(), "{id}");
        }
        for experiment in crate::all() {
            assert!(!experiment.title().is_empty() && !experiment.method().is_empty());
        }
    }

    #[test]
    fn a_claim_says_one_thing_about_agreement() {
        for (key, source) in SOURCES.iter() {
            for (name, claim) in &source.claim {
                let says = [
                    claim.exactly.is_some(),
                    claim.within.is_some(),
                    claim.within_share.is_some(),
                    claim.between.is_some(),
                    claim.at_least.is_some(),
                    claim.at_most.is_some(),
                    claim.order.is_some(),
                ];
                let count = says.into_iter().filter(|said| *said).count();
                assert!(count <= 1, "{key}/{name} has {count} criteria");
            }
        }
    }
}
