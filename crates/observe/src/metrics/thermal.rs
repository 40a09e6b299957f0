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
    last: Option<Report>,
    /// The measured window begins here.
    from_ns: u64,
    ns: [u64; Throttling::COUNT],
    increases: u64,
    millikelvin_max: u32,
}

/// The temperature at an instant, and the throttling from then on.
#[derive(Clone, Copy, Debug)]
struct Report {
    at_ns: u64,
    throttling: Throttling,
    millikelvin: u32,
}

/// The instant that a report at `now` describes. `None` if it is before the run began: a run that
/// continues from a saved state has reported the temperature at its start.
pub(crate) fn instant(now: u64, ago: SimDuration) -> Option<u64> {
    now.checked_sub(ago.as_ns())
}

impl ThermalFold {
    pub(crate) fn measured_from(&self, from_ns: u64) -> Self {
        Self { last: self.last, from_ns, ..Self::default() }
    }

    #[inline(never)]
    pub(crate) fn add(
        &mut self,
        throttling: Throttling,
        millikelvin: u32,
        (ago, now): (SimDuration, u64),
    ) {
        let Some(at_ns) = instant(now, ago) else { return };
        let report = Report { at_ns, throttling, millikelvin };
        if let Some(last) = self.last {
            let from = last.at_ns.max(self.from_ns);
            self.ns[last.throttling as usize] += at_ns.saturating_sub(from);
            let is_measured = at_ns >= self.from_ns;
            self.increases += u64::from(is_measured && throttling > last.throttling);
            if is_measured && last.at_ns < self.from_ns {
                self.millikelvin_max = between(last, report, self.from_ns);
            }
        }
        if at_ns >= self.from_ns {
            self.millikelvin_max = self.millikelvin_max.max(millikelvin);
        }
        self.last = Some(report);
    }

    /// `None` for a component whose temperature is not simulated.
    pub(crate) fn results(&self) -> Option<Thermal> {
        let celsius = |millikelvin: u32| (f64::from(millikelvin) - ZERO_CELSIUS_MK) / 1e3;
        let end = self.last?;
        let states = Throttling::ALL.iter().map(|state| state.name().to_owned());
        Some(Thermal {
            temperature_celsius_max: celsius(match self.millikelvin_max {
                // No report is of the window.
                0 => end.millikelvin,
                max => max,
            }),
            temperature_celsius_end: celsius(end.millikelvin),
            throttling_ns: states.zip(self.ns).collect(),
            throttlings: self.increases,
        })
    }
}

/// The temperature at `ns`, which is between two reports: their distance in time and temperature is
/// small enough for a straight line.
fn between(before: Report, after: Report, ns: u64) -> u32 {
    let share = (ns - before.at_ns) as f64 / (after.at_ns - before.at_ns) as f64;
    let [from, to] = [before, after].map(|it| f64::from(it.millikelvin));
    (from + (to - from) * share).round() as u32
}

/// Temperature, and thermal throttling: `none`, `light` (TMT1) or `heavy` (TMT2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thermal {
    /// Highest temperature in °C, to 0.1 K.
    pub temperature_celsius_max: f64,
    /// Temperature at the end in °C.
    pub temperature_celsius_end: f64,
    /// Time in each state of throttling.
    pub throttling_ns: BTreeMap<String, u64>,
    /// Number of times throttling began or became heavy.
    pub throttlings: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fold of reports: when, in ns, how long ago, throttling, thousandths of a kelvin.
    fn add(fold: &mut ThermalFold, reports: &[(u64, u64, Throttling, u32)]) {
        for &(now, ago, throttling, millikelvin) in reports {
            fold.add(throttling, millikelvin, (SimDuration::from_ns(ago), now));
        }
    }

    /// Nanoseconds without, with light and with heavy throttling.
    fn times(fold: &ThermalFold) -> [u64; 3] {
        let thermal = fold.results().expect("it was reported");
        ["none", "light", "heavy"].map(|state| thermal.throttling_ns[state])
    }

    #[test]
    fn several_changes_in_one_report_count_from_their_instants() {
        let mut fold = ThermalFold::default();
        add(
            &mut fold,
            &[
                (0, 0, Throttling::Heavy, 350_000),
                // The drive reports at 1000 what it did since.
                (1_000, 998, Throttling::Light, 345_000),
                (1_000, 995, Throttling::None, 340_000),
                (1_000, 0, Throttling::None, 310_000),
            ],
        );
        assert_eq!(times(&fold), [995, 3, 2]);
        add(&mut fold, &[(1_100, 60, Throttling::Light, 340_000)]);
        add(&mut fold, &[(1_100, 30, Throttling::None, 335_000)]);
        add(&mut fold, &[(1_100, 0, Throttling::None, 330_000)]);
        assert_eq!(times(&fold), [1_065, 33, 2]);
        let thermal = fold.results().expect("it was reported");
        assert_eq!(thermal.throttlings, 1);
        assert!((thermal.temperature_celsius_max - 76.85).abs() < 1e-9);
        assert!((thermal.temperature_celsius_end - 56.85).abs() < 1e-9);
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut fold = ThermalFold::default();
        add(&mut fold, &[(0, 0, Throttling::None, 300_000), (40, 0, Throttling::Heavy, 360_000)]);
        let mut measured = fold.measured_from(60);
        // Reported in the window, but of the time before.
        add(&mut measured, &[(100, 50, Throttling::Light, 350_000)]);
        add(&mut measured, &[(100, 0, Throttling::Light, 340_000)]);
        add(&mut measured, &[(120, 0, Throttling::None, 330_000)]);
        assert_eq!(times(&measured), [0, 60, 0]);
        let thermal = measured.results().expect("it was reported");
        assert_eq!(thermal.throttlings, 0);
        // 350 K at 50 and 340 K at 100: 348 K at 60.
        assert!((thermal.temperature_celsius_max - 74.85).abs() < 1e-9);
        let silent = fold.measured_from(60).results().expect("it was reported");
        assert!((silent.temperature_celsius_max - 86.85).abs() < 1e-9);
    }

    #[test]
    fn reports_of_the_time_before_a_saved_state_do_not_count_again() {
        let mut fold = ThermalFold::default();
        add(&mut fold, &[(0, 0, Throttling::None, 320_000), (30, 90, Throttling::Light, 350_000)]);
        add(&mut fold, &[(30, 50, Throttling::None, 340_000), (30, 0, Throttling::None, 310_000)]);
        assert_eq!(times(&fold), [30, 0, 0]);
        let thermal = fold.results().expect("it was reported");
        assert_eq!(thermal.throttlings, 0);
        assert!((thermal.temperature_celsius_max - 46.85).abs() < 1e-9);
    }
}
