//! The keys of components, and of the entries they choose, that random systems gave.

use crate::Verdict;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The name of `key` in `owner`: a kind of component, an entry or a table of either.
pub(crate) fn label(owner: &str, key: &str) -> String {
    format!("{owner}.{key}")
}

/// The owner of the keys of entry `name` of `category`.
pub(crate) fn owner(category: &str, name: &str) -> String {
    if category == "component" { name.to_owned() } else { format!("{category} {name}") }
}

/// Numbers of systems by verdict, and of the keys in them.
#[derive(Debug, Default)]
pub struct Coverage {
    /// Every key, and in how many systems it was given: in all, and in those that passed.
    keys: BTreeMap<String, [u64; 2]>,
    passed: u64,
    refused: u64,
    failed: u64,
}

impl Coverage {
    /// No key of `registry` was given yet.
    pub fn new(registry: &Registry) -> Self {
        let mut coverage = Self::default();
        let mut seen = BTreeSet::new();
        coverage.declare_category(registry, "component", &mut seen);
        coverage
    }

    fn declare_category(
        &mut self,
        registry: &Registry,
        category: &'static str,
        seen: &mut BTreeSet<&'static str>,
    ) {
        if seen.insert(category) {
            for entry in registry.descriptions(category) {
                self.declare(registry, &owner(category, entry.name), entry.params, seen);
            }
        }
    }

    fn declare(
        &mut self,
        registry: &Registry,
        owner: &str,
        params: &'static [Param],
        seen: &mut BTreeSet<&'static str>,
    ) {
        for param in params {
            let label = label(owner, param.name);
            match param.kind {
                Kind::Entry(category) | Kind::Entries(category) => {
                    self.declare_category(registry, category, seen);
                }
                Kind::Table(inner) | Kind::Tables(inner) => {
                    self.declare(registry, &label, inner, seen);
                }
                _ => {}
            }
            self.keys.insert(label, [0; 2]);
        }
    }

    pub(crate) fn add(&mut self, keys: BTreeSet<String>, verdict: &Verdict) {
        let passed = matches!(verdict, Verdict::Passed);
        for key in keys {
            let counts = self.keys.entry(key).or_default();
            counts[0] += 1;
            counts[1] += u64::from(passed);
        }
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Refused(_) => self.refused += 1,
            Verdict::Failed { .. } => self.failed += 1,
        }
    }

    /// The share of keys that were given, and of those given in systems that passed.
    pub fn shares(&self) -> [f64; 2] {
        let all = self.keys.len().max(1) as f64;
        [0, 1].map(|at| self.keys.values().filter(|counts| counts[at] > 0).count() as f64 / all)
    }

    /// Keys that no system gave.
    pub fn never(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter(|(_, counts)| counts[0] == 0).map(|(key, _)| &**key)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, refused, failed, .. } = self;
        writeln!(
            f,
            "{passed} systems passed, {refused} were rejected as invalid, {failed} failed"
        )?;
        let mut owners: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        for (key, counts) in &self.keys {
            let of = owners.entry(key.split('.').next().unwrap_or(key)).or_default();
            of[0] += u64::from(counts[0] > 0);
            of[1] += 1;
        }
        let incomplete = owners.iter().filter(|(_, [given, all])| given < all);
        for (owner, [given, all]) in incomplete {
            writeln!(f, "{owner}: {given} of {all} keys")?;
        }
        let never: Vec<&str> = self.never().collect();
        if !never.is_empty() {
            writeln!(f, "keys never given: {}", never.join(", "))?;
        }
        let given = self.keys.len() - never.len();
        let [share, in_passed] = self.shares().map(|share| 100.0 * share);
        write!(
            f,
            "{given} of {} keys were given ({share:.1} %), {in_passed:.1} % in systems that passed",
            self.keys.len()
        )
    }
}
