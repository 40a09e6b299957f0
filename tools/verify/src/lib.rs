//! Checks of the installed program: simulated figures beside oracles, which are closed forms from
//! the literature, or reference simulators of a few lines that share no code with the models.

mod array;
mod bench;
mod cache;
mod checks;
mod disk;
mod flash;
mod page_map;
mod repeat;
#[cfg(test)]
mod tests;
mod text;

pub use bench::Bench;
pub use checks::CHECKS;
pub use text::{list, table};

use serde::Serialize;

/// A comparison of a simulated figure with an oracle.
#[derive(Debug)]
pub struct Check {
    /// The name, which begins with that of a group, such as `gc-fifo`.
    pub name: &'static str,
    /// The quantity that is compared, with its unit.
    pub quantity: &'static str,
    /// The oracle, and its source.
    pub oracle: &'static str,
    /// The largest relative difference that passes; 0 where both must be equal.
    pub tolerance: f64,
    run: fn(&Bench<'_>) -> Figures,
}

/// A simulated figure and that of the oracle.
#[derive(Clone, Copy, Debug)]
struct Pair {
    simulated: f64,
    oracle: f64,
}

type Figures = Result<Pair, String>;

/// The outcome of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub check: &'static str,
    pub quantity: &'static str,
    /// The oracle, and its source.
    pub source: &'static str,
    /// The figures; absent where a run failed.
    pub simulated: Option<f64>,
    pub oracle: Option<f64>,
    /// `simulated` divided by `oracle`, less 1.
    pub difference: Option<f64>,
    pub tolerance: f64,
    /// Whether the difference is within the tolerance.
    pub ok: bool,
    /// Why a run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Check {
    /// Runs the check.
    pub fn outcome(&self, bench: &Bench<'_>) -> Outcome {
        self.judge(bench.check_interrupt().and_then(|()| (self.run)(bench)))
    }

    fn judge(&self, figures: Figures) -> Outcome {
        let (pair, error) = match figures {
            Ok(pair) => (Some(pair), None),
            Err(error) => (None, Some(error)),
        };
        let difference = pair.map(|pair| pair.simulated / pair.oracle - 1.0);
        Outcome {
            check: self.name,
            quantity: self.quantity,
            source: self.oracle,
            simulated: pair.map(|pair| pair.simulated),
            oracle: pair.map(|pair| pair.oracle),
            difference,
            tolerance: self.tolerance,
            // Not a number is no success.
            ok: difference.is_some_and(|difference| difference.abs() <= self.tolerance),
            error,
        }
    }

    /// Whether `word` is the name of the check, or of a group that it belongs to.
    fn is_named(&self, word: &str) -> bool {
        self.name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// The checks of these names or groups, in the order of [`CHECKS`]; all without any.
///
/// # Errors
/// The first name that no check has.
pub fn select(names: &[String]) -> Result<Vec<&'static Check>, String> {
    let unknown = |name: &&String| !CHECKS.iter().any(|check| check.is_named(name));
    if let Some(name) = names.iter().find(unknown) {
        return Err(name.clone());
    }
    let wanted = |check: &&Check| names.is_empty() || names.iter().any(|it| check.is_named(it));
    Ok(CHECKS.iter().filter(wanted).collect())
}
