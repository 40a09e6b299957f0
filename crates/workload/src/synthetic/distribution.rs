//! Distributions: a generator declares a parameter of kind [`KIND`], and a scenario gives
//! `{ kind = "normal", mean = 10, stddev = 2 }`.

use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::sample::Distribution;

/// A registered distribution.
#[derive(Clone, Copy)]
pub struct DistributionEntry {
    pub description: Description,
    pub build: fn(&Settings) -> Result<Distribution, String>,
}

impl Entry for DistributionEntry {
    const CATEGORY: &'static str = "distribution";
    fn description(&self) -> Description {
        self.description
    }
}

/// The kind of a parameter that takes a distribution.
pub const KIND: Kind = Kind::Entry(DistributionEntry::CATEGORY);

const ANY: Kind = Kind::Number { min: -1e15, max: 1e15 };
const POSITIVE: Kind = Kind::Number { min: 0.0, max: 1e15 };
/// The time to draw a Poisson number is proportional to its mean.
const POISSON_MEAN: Kind = Kind::Number { min: 0.0, max: 1e6 };
const PROBABILITY: Kind = Kind::Number { min: 0.0, max: 1.0 };
const ORIGIN: &str = "DiskSim's synthetic generator";

macro_rules! entry {
    ($name:literal, $summary:literal, [$($param:expr),* $(,)?], $build:expr) => {
        DistributionEntry {
            description: Description {
                name: $name,
                summary: $summary,
                origin: ORIGIN,
                params: &[$($param),*],
            },
            build: $build,
        }
    };
}

/// All distributions.
pub const ENTRIES: &[DistributionEntry] = &[
    entry!(
        "constant",
        "Always the same value; equivalent to a plain number.",
        [Param::required("value", ANY, "The value.")],
        |s| Ok(Distribution::Constant(s.number("value")))
    ),
    entry!(
        "uniform",
        "Uniform between two bounds.",
        [
            Param::required("min", ANY, "Smallest value."),
            Param::required("max", ANY, "Largest value."),
        ],
        |s| {
            let (min, max) = (s.number("min"), s.number("max"));
            if min > max {
                return Err(format!("min {min} is larger than max {max}"));
            }
            Ok(Distribution::Uniform { min, max })
        }
    ),
    entry!(
        "normal",
        "Normal; values that make no sense where it is used are drawn again.",
        [
            Param::required("mean", ANY, "Mean."),
            Param::required("stddev", POSITIVE, "Standard deviation."),
        ],
        |s| Ok(Distribution::Normal { mean: s.number("mean"), stddev: s.number("stddev") })
    ),
    entry!(
        "exponential",
        "A smallest value plus an exponential.",
        [
            Param::with("base", ANY, "0", "Smallest value."),
            Param::required("mean", POSITIVE, "Mean of the value added to `base`."),
        ],
        |s| Ok(Distribution::Exponential { base: s.number("base"), mean: s.number("mean") })
    ),
    entry!(
        "poisson",
        "A smallest value plus a Poisson count.",
        [
            Param::with("base", ANY, "0", "Smallest value."),
            Param::required("mean", POISSON_MEAN, "Mean of the value added to `base`."),
        ],
        |s| Ok(Distribution::Poisson { base: s.number("base"), mean: s.number("mean") })
    ),
    entry!(
        "two-valued",
        "One of two values.",
        [
            Param::required("default", ANY, "The usual value."),
            Param::required("second", ANY, "The other value."),
            Param::required("probability", PROBABILITY, "Probability of the other value."),
        ],
        |s| Ok(Distribution::TwoValued {
            default: s.number("default"),
            second: s.number("second"),
            probability: s.number("probability"),
        })
    ),
];
