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

hybridsim_config::entry!(DistributionEntry, "distribution");

/// The kind of a parameter that takes a distribution.
pub const KIND: Kind = Kind::Entry(DistributionEntry::CATEGORY);

const ANY: Kind = Kind::Number { min: -1e15, max: 1e15 };
const POSITIVE: Kind = Kind::Number { min: 0.0, max: 1e15 };
/// The time to draw a Poisson number is proportional to its mean.
const POISSON_MEAN: Kind = Kind::Number { min: 0.0, max: 1e6 };
const PROBABILITY: Kind = Kind::Number { min: 0.0, max: 1.0 };
const ORIGIN: &str = "DiskSim's synthetic generator";

hybridsim_config::params! {
    struct Constant {
        value: f64 = ANY, required, "The value.";
    }
}

hybridsim_config::params! {
    struct Uniform {
        min: f64 = ANY, required, "Smallest value.";
        max: f64 = ANY, required, "Largest value.";
    }
}

hybridsim_config::params! {
    struct Normal {
        mean: f64 = ANY, required, "Mean.";
        stddev: f64 = POSITIVE, required, "Standard deviation.";
    }
}

hybridsim_config::params! {
    struct Exponential {
        base: f64 = ANY, default "0", "Smallest value.";
        mean: f64 = POSITIVE, required, "Mean of the value added to `base`.";
    }
}

hybridsim_config::params! {
    struct Poisson {
        base: f64 = ANY, default "0", "Smallest value.";
        mean: f64 = POISSON_MEAN, required, "Mean of the value added to `base`.";
    }
}

hybridsim_config::params! {
    struct TwoValued {
        default: f64 = ANY, required, "The usual value.";
        second: f64 = ANY, required, "The other value.";
        probability: f64 = PROBABILITY, required, "Probability of the other value.";
    }
}

const fn entry(
    name: &'static str,
    summary: &'static str,
    params: &'static [Param],
    build: fn(&Settings) -> Result<Distribution, String>,
) -> DistributionEntry {
    DistributionEntry { description: Description { name, summary, origin: ORIGIN, params }, build }
}

/// All distributions.
pub const ENTRIES: &[DistributionEntry] = &[
    entry(
        "constant",
        "Always the same value; equivalent to a plain number.",
        Constant::PARAMS,
        |settings| Ok(Distribution::Constant(Constant::from_settings(settings).value)),
    ),
    entry("uniform", "Uniform between two bounds.", Uniform::PARAMS, |settings| {
        let Uniform { min, max } = Uniform::from_settings(settings);
        if min > max {
            return Err(format!("min {min} is larger than max {max}"));
        }
        Ok(Distribution::Uniform { min, max })
    }),
    entry(
        "normal",
        "Normal; values that make no sense where it is used are drawn again.",
        Normal::PARAMS,
        |settings| {
            let Normal { mean, stddev } = Normal::from_settings(settings);
            Ok(Distribution::Normal { mean, stddev })
        },
    ),
    entry(
        "exponential",
        "A smallest value plus an exponential.",
        Exponential::PARAMS,
        |settings| {
            let Exponential { base, mean } = Exponential::from_settings(settings);
            Ok(Distribution::Exponential { base, mean })
        },
    ),
    entry("poisson", "A smallest value plus a Poisson count.", Poisson::PARAMS, |settings| {
        let Poisson { base, mean } = Poisson::from_settings(settings);
        Ok(Distribution::Poisson { base, mean })
    }),
    entry("two-valued", "One of two values.", TwoValued::PARAMS, |settings| {
        let TwoValued { default, second, probability } = TwoValued::from_settings(settings);
        Ok(Distribution::TwoValued { default, second, probability })
    }),
];
