//! Claims, plots and parameters of the sources: `papers/<key>/claims.toml`, embedded and read once.

use crate::claim::Order;
use crate::variants::Setting;
use hybridsim_data::PAPERS;
use hybridsim_report::study::{Axis, Curve, Plot};
use include_dir::Dir;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The claims of one source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    #[serde(default)]
    experiment: BTreeMap<String, ExperimentText>,
    #[serde(default)]
    claim: BTreeMap<String, PublishedClaim>,
    #[serde(default)]
    plot: BTreeMap<String, PlotText>,
    #[serde(default)]
    settings: BTreeMap<String, Vec<Setting>>,
}

/// Title, method and parameters of an experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentText {
    /// The title in reports.
    pub title: String,
    /// The runs and the assumptions, in a few sentences.
    method: Option<String>,
    /// The experiment of the same source that has the same method.
    method_of: Option<String>,
    /// Drives, rates and other data that the experiment's code reads.
    parameters: Option<toml::Table>,
}

/// The texts of a plot; `{name}` stands for a value that the experiment fills in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlotText {
    title: String,
    caption: String,
    x: AxisText,
    y: AxisText,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisText {
    label: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    logarithmic: bool,
}

/// A value as published.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum PublishedValue {
    Number(f64),
    Words(String),
}

/// One claim. At most one of `exactly`, `exactly_published`, `within`, `within_share`, `between`,
/// `at_least`, `at_most`, `at_most_published` and `order` says what counts as agreement; without
/// any, the experiment does. The experiment gives the published number where it is not here.
#[derive(Clone, Debug, Default, Deserialize)]
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
    #[serde(default)]
    pub exactly_published: bool,
    pub within: Option<f64>,
    pub within_share: Option<f64>,
    pub between: Option<(f64, f64)>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    #[serde(default)]
    pub at_most_published: bool,
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
    /// Settings that read the source as well as the claim's own does: where one of them is judged
    /// otherwise, the claim is undecided.
    #[serde(default)]
    pub readings: Vec<String>,
    /// The source does not say it: it follows from what it says, or is expected of a model.
    #[serde(default)]
    pub unpublished: bool,
    /// The reason of a difference, printed only if there is one.
    pub if_it_differs: Option<String>,
    pub remark: Option<String>,
    /// The reason why there is nothing to compare.
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

/// The runs and the assumptions of experiment `id`.
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

/// The parameters of experiment `id`.
///
/// # Panics
/// As [`experiment`], and when they are not of this type.
pub fn parameters<T: DeserializeOwned>(id: &str) -> T {
    let table = experiment(id).parameters.clone().unwrap_or_default();
    table.try_into().unwrap_or_else(|error| panic!("the parameters of `{id}`: {error}"))
}

/// The settings `id`, such as `konanki/stick`; each `{name}` in them is one of `values`.
///
/// # Panics
/// As [`experiment`].
pub fn settings(id: &str, values: &[(&str, &dyn std::fmt::Display)]) -> Vec<Setting> {
    let each = |sets: &[String]| sets.iter().map(|set| filled(set, values)).collect();
    let fill = |Setting { name, set, jobs, set_all }: &Setting| Setting {
        name: filled(name, values),
        set: each(set),
        jobs: jobs.clone(),
        set_all: each(set_all),
    };
    find(id, |source| &source.settings).iter().map(fill).collect()
}

/// The setting `name` among the settings `id`.
///
/// # Panics
/// As [`experiment`], and when none of them has this name.
pub fn setting(id: &str, name: &str, values: &[(&str, &dyn std::fmt::Display)]) -> Setting {
    let found = settings(id, values).into_iter().find(|setting| setting.name == name);
    found.unwrap_or_else(|| panic!("papers/ has no `{name}` of `{id}`"))
}

/// The plot `id` with `curves`; each `{name}` in its texts is one of `values`.
///
/// # Panics
/// As [`experiment`].
pub fn plot(id: &str, values: &[(&str, &dyn std::fmt::Display)], curves: Vec<Curve>) -> Plot {
    let PlotText { title, caption, x, y } = find(id, |source| &source.plot);
    let axis = |axis: &AxisText| Axis {
        label: filled(&axis.label, values),
        unit: filled(&axis.unit, values),
        logarithmic: axis.logarithmic,
    };
    let (title, caption) = (filled(title, values), filled(caption, values));
    Plot { title, caption, x: axis(x), y: axis(y), curves }
}

/// `text` with each of `values` where it says `{name}`, or `{name:.2}` for a number with two digits
/// behind the point.
pub fn filled(text: &str, values: &[(&str, &dyn std::fmt::Display)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        let text = text.replace(&format!("{{{name}}}"), &value.to_string());
        let opening = format!("{{{name}:.");
        let (first, rounded) = text.split_once(&opening).unwrap_or((&text, ""));
        let rounded = rounded.split(&opening).filter_map(|part| part.split_once('}'));
        rounded.fold(first.to_owned(), |text, (digits, rest)| {
            let digits = digits.parse().expect("a number of digits");
            format!("{text}{value:.digits$}{rest}")
        })
    })
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
        // Experiments name some of their claims in their parameters.
        for folder in PAPERS.dirs() {
            let claims = folder.get_file(folder.path().join("claims.toml"));
            code += claims.and_then(|file| file.contents_utf8()).unwrap_or_default();
        }
        for (key, source) in SOURCES.iter() {
            let named = source.claim.keys().chain(source.experiment.keys());
            for name in named.chain(source.plot.keys()).chain(source.settings.keys()) {
                assert!(code.contains(&format!("\"{key}/{name}\"")), "nothing uses {key}/{name}");
            }
        }
        let uses = code.split("Claim::of(\"").skip(1).chain(code.split("\nid = \"").skip(1));
        let uses = uses.filter_map(|rest| rest.split_once('"'));
        for (id, _) in uses.filter(|(id, _)| id.contains('/')) {
            assert!(!claim(id).claim.is_empty(), "{id}");
        }
        for experiment in crate::all() {
            assert!(!experiment.title().is_empty() && !experiment.method().is_empty());
        }
    }

    #[test]
    fn readings_are_settings_that_are_run() {
        let mut code = String::new();
        gather(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut code);
        let mut readings = 0;
        for (key, source) in SOURCES.iter() {
            let settings: Vec<&str> =
                source.settings.values().flatten().map(|setting| &*setting.name).collect();
            let text = PAPERS.get_file(format!("{key}/claims.toml")).expect("the claims");
            let text = text.contents_utf8().expect("UTF-8");
            for (name, claim) in &source.claim {
                for reading in &claim.readings {
                    let is_known = settings.contains(&reading.as_str())
                        || text.contains(&format!("\nname = \"{reading}\"\n"))
                        || code.contains(&format!("\"{reading}\""));
                    assert!(is_known, "{key}/{name}: nothing runs `{reading}`");
                    readings += 1;
                }
            }
        }
        assert!(readings > 5, "only {readings} readings");
    }

    #[test]
    fn texts_are_filled_with_numbers_as_precise_as_they_say() {
        let values: [(&str, &dyn std::fmt::Display); 2] = [("a", &2.345), ("b", &"{ none }")];
        assert_eq!(filled("{a} {a:.1} {b}, {a:.0}. {c}", &values), "2.345 2.3 { none }, 2. {c}");
        assert_eq!(filled("", &values), "");
    }

    #[test]
    fn a_claim_says_one_thing_about_agreement() {
        for (key, source) in SOURCES.iter() {
            for (name, claim) in &source.claim {
                let says = [
                    claim.exactly.is_some(),
                    claim.exactly_published,
                    claim.within.is_some(),
                    claim.within_share.is_some(),
                    claim.between.is_some(),
                    claim.at_least.is_some(),
                    claim.at_most.is_some(),
                    claim.at_most_published,
                    claim.order.is_some(),
                ];
                let count = says.into_iter().filter(|said| *said).count();
                assert!(count <= 1, "{key}/{name} has {count} criteria");
            }
        }
    }
}
