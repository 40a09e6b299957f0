//! Temperature and thermal throttling.

use hybridsim_engine::SimDuration;
use hybridsim_flash::Throttling;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// 0 °C in thousandths of a kelvin.
const ZERO_CELSIUS_MK: f64 = 273_150.0;

/// The temperature of a component and its throttling, up to the last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThermalFold {
    reported: Option<Reported>,
    ns: [u64; Throttling::COUNT],
    increases: u64,
    millikelvin_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    throttling: Throttling,
    millikelvin: u32,
    at_ns: u64,
}

impl ThermalFold {
    /// The fold of what happens from `from_ns` on.
    pub(crate) fn measured_from(&self, from_ns: u64) -> Self {
        let reported = self.reported.map(|it| Reported { at_ns: from_ns, ..it });
        let millikelvin_max = reported.map_or(0, |it| it.millikelvin);
        Self { reported, millikelvin_max, ..Self::default() }
    }

    /// A report at `now`, of temperatures in thousandths of a kelvin: now, and the highest since
    /// the last report. Throttling is as it is for `elapsed`.
    #[inline(never)]
    pub(crate) fn add(
        &mut self,
        throttling: Throttling,
        elapsed: SimDuration,
        [millikelvin, max]: [u32; 2],
        now: u64,
    ) {
        if let Some(last) = self.reported {
            let changed = now.saturating_sub(elapsed.as_ns()).clamp(last.at_ns.min(now), now);
            self.ns[last.throttling as usize] += changed.saturating_sub(last.at_ns);
            self.ns[throttling as usize] += now - changed;
            self.increases += u64::from(throttling > last.throttling);
        }
        self.reported = Some(Reported { throttling, millikelvin, at_ns: now });
        self.millikelvin_max = self.millikelvin_max.max(max);
    }

    /// `None` for a component whose temperature is not simulated.
    pub(crate) fn results(&self) -> Option<Thermal> {
        let celsius = |millikelvin: u32| (f64::from(millikelvin) - ZERO_CELSIUS_MK) / 1e3;
        let end = self.reported?;
        let states = Throttling::ALL.iter().map(|state| state.name().to_owned());
        Some(Thermal {
            temperature_celsius_max: celsius(self.millikelvin_max),
            temperature_celsius_end: celsius(end.millikelvin),
            throttling_ns: states.zip(self.ns).collect(),
            throttlings: self.increases,
        })
    }
}

/// Temperature, and thermal throttling: `none`, `light` (TMT1) or `heavy` (TMT2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thermal {
    /// Highest temperature in °C.
    pub temperature_celsius_max: f64,
    /// Temperature at the end in °C.
    pub temperature_celsius_end: f64,
    /// Time in each state of throttling.
    pub throttling_ns: BTreeMap<String, u64>,
    /// How often throttling began or became heavy.
    pub throttlings: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_change_and_in_the_measured_window() {
        let ns = SimDuration::from_ns;
        let mut fold = ThermalFold::default();
        fold.add(Throttling::None, ns(0), [300_000, 300_000], 0);
        // Two changes since then, at 40 and 70.
        fold.add(Throttling::Light, ns(60), [340_000, 345_000], 100);
        fold.add(Throttling::None, ns(30), [330_000, 340_000], 100);
        fold.add(Throttling::None, ns(90), [320_000, 330_000], 160);
        let all = fold.results().expect("it was reported");
        let of = |thermal: &Thermal, state: &str| thermal.throttling_ns[state];
        assert_eq!((of(&all, "none"), of(&all, "light"), of(&all, "heavy")), (100, 60, 0));
        assert_eq!(all.throttlings, 1);
        assert!((all.temperature_celsius_max - 71.85).abs() < 1e-9);
        let mut later = fold.measured_from(160);
        later.add(Throttling::Heavy, ns(10), [350_000, 350_000], 200);
        let later = later.results().expect("it was reported");
        assert_eq!((of(&later, "none"), of(&later, "heavy")), (30, 10));
        assert!((later.temperature_celsius_end - 76.85).abs() < 1e-9);
    }
}
