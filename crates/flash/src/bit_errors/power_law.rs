//! Raw bit error rates as sums of powers of wear, age and reads.

use super::{Correction, ErrorEntry, ErrorInput, ErrorRates, Exposure};
use crate::bit_errors::BitErrors;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub const ENTRY: ErrorEntry = ErrorEntry {
    description: Description {
        name: "power-law",
        summary: "Bit errors of pages that are read, with a raw bit error rate (RBER) of rber_base \
                  + rber_wear c^wear_exponent + rber_retention c^retention_wear_exponent \
                  d^retention_exponent + rber_read c^read_wear_exponent r, with c erases of the \
                  block in thousands, d days since it was programmed, r reads of the block since \
                  its erase.",
        origin: "terms as in Mielke et al., Reliability of Solid-State Drives, 2017",
        params: PowerLaw::PARAMS,
    },
    build,
};

/// A rate of bit errors.
const RATE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const EXPONENT: Kind = Kind::Number { min: 0.0, max: 10.0 };
const RETAINED: Needs = Needs::above_zero("rber_retention");

hybridsim_config::params! {
    /// The terms of the rate.
    pub(super) struct PowerLaw includes { correction: Correction } {
        rber_base: f64 = RATE, default "0.0", "RBER of new flash.";
        rber_wear: f64 = RATE, default "0.0", "RBER that 1,000 erases of the block add.";
        wear_exponent: f64 = EXPONENT, default "1.0" needs &[Needs::above_zero("rber_wear")],
            "Exponent of erases in that term.";
        rber_retention: f64 = RATE, default "0.0",
            "RBER that the first day after programming adds, after 1,000 erases of the block.";
        retention_exponent: f64 = EXPONENT, default "1.0" needs &[RETAINED],
            "Exponent of time in that term.";
        retention_wear_exponent: f64 = EXPONENT, default "0.0" needs &[RETAINED],
            "Exponent of erases in that term.";
        rber_read: f64 = RATE, default "0.0",
            "RBER that each read operation of the chip in the block since its erase adds (read \
             disturb), after 1,000 erases of the block.";
        read_wear_exponent: f64 = EXPONENT, default "0.0" needs &[Needs::above_zero("rber_read")],
            "Exponent of erases in that term.";
        retention_age: SimDuration = Kind::Duration, default "0s" needs &[
            Needs::Any(&[RETAINED, Needs::given("refresh_age")]),
            Needs::Not("^.precondition", &["none"]),
        ],
            "Age, at the start of the run, of the data that were written before it \
             (`precondition`). Simulated time adds to it.";
    }
}

fn build(input: &ErrorInput<'_>) -> Result<Option<Box<BitErrors>>, Vec<Problem>> {
    let law = PowerLaw::from_settings(input.settings);
    let terms = [law.rber_base, law.rber_wear, law.rber_retention, law.rber_read];
    let mut problems = Vec::new();
    if terms == [0.0; 4] && !law.correction.refreshes() {
        let message = "there are no bit errors: give rber_base, rber_wear, rber_retention or \
                       rber_read";
        problems.push(Problem::new("errors", message));
    }
    let (age, correction) = (law.retention_age, law.correction.clone());
    match correction.build(input, Box::new(law), age) {
        Ok(model) if problems.is_empty() => Ok(Some(model)),
        Ok(_) => Err(problems),
        Err(others) => Err(problems.into_iter().chain(others).collect()),
    }
}

impl ErrorRates for PowerLaw {
    fn rate(&self, of: &Exposure) -> f64 {
        let worn = self.rber_wear * libm::pow(of.kilocycles, self.wear_exponent);
        let kept = self.rber_retention
            * libm::pow(of.kilocycles, self.retention_wear_exponent)
            * libm::pow(of.days, self.retention_exponent);
        let per_read = self.rber_read * libm::pow(of.kilocycles, self.read_wear_exponent);
        self.rber_base + worn + kept + per_read * f64::from(of.reads)
    }
}
