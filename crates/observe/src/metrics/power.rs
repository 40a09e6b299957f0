//! Power states and energy.

use super::level::ratio;
use hybridsim_engine::{ComponentInfo, PowerState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The time a component spent in each power state.
#[derive(Clone, Debug, Default)]
pub(crate) struct PowerFold {
    pub(crate) state_ns: [u64; PowerState::COUNT],
    /// Changes into [`PowerState::SpinUp`].
    pub(crate) spin_ups: u64,
    last_state: Option<u8>,
    /// States are reported up to here.
    reported_ns: u64,
}

impl PowerFold {
    /// The fold of what happens later; state times still count from where they end now.
    pub(crate) fn measured_later(&self) -> Self {
        Self { reported_ns: self.reported_ns, ..Self::default() }
    }

    /// Adds `ns` in the state of this number. The state times of a component lie end to end from
    /// time zero on; those after `from` count.
    #[inline]
    pub(crate) fn add(&mut self, state: u8, ns: u64, from: u64) {
        let begin = self.reported_ns.max(from);
        self.reported_ns = self.reported_ns.saturating_add(ns);
        let ns = self.reported_ns.saturating_sub(begin);
        if ns == 0 {
            return;
        }
        let total = &mut self.state_ns[usize::from(state)];
        *total = total.saturating_add(ns);
        if state == PowerState::SpinUp as u8 && self.last_state != Some(state) {
            self.spin_ups += 1;
        }
        self.last_state = Some(state);
    }

    /// Joules by power state, by operation, and by what draws power at all times; `None` for a
    /// component whose power is not known, which is not 0 J. `count` gives how often an operation
    /// was performed.
    pub(crate) fn energy(
        &self,
        info: &ComponentInfo,
        count: impl Fn(&str) -> u64,
    ) -> Option<BTreeMap<String, f64>> {
        let watts = info.watts.unwrap_or_default();
        let state = |state: PowerState| {
            (state.name(), watts[state as usize] * self.state_ns[state as usize] as f64 / 1e9)
        };
        let operations = &info.operation_joules;
        let operations = operations.iter().map(|&(name, each)| (name, each * count(name) as f64));
        let seconds = self.state_ns.iter().sum::<u64>() as f64 / 1e9;
        let always = info.always_watts.iter().map(|&(name, watts)| (name, watts * seconds));
        let states = PowerState::ALL.into_iter().map(state);
        let mut energy = BTreeMap::new();
        for (name, joules) in states.chain(operations).chain(always) {
            if joules != 0.0 {
                *energy.entry(name.to_owned()).or_insert(0.0) += joules;
            }
        }
        let known = watts.iter().any(|&watts| watts != 0.0)
            || info.operation_joules.iter().any(|&(_, joules)| joules != 0.0)
            || info.always_watts.iter().any(|&(_, watts)| watts != 0.0);
        energy.retain(|_, joules| joules.is_finite());
        known.then_some(energy)
    }

    /// `None` for a component that reports neither states nor energy.
    pub(crate) fn results(
        &self,
        energy: Option<BTreeMap<String, f64>>,
        window_ns: u64,
    ) -> Option<Power> {
        let state_ns: BTreeMap<String, u64> = PowerState::ALL
            .into_iter()
            .map(|state| (state.name().to_owned(), self.state_ns[state as usize]))
            .filter(|state| state.1 > 0)
            .collect();
        if state_ns.is_empty() && energy.is_none() {
            return None;
        }
        let resting =
            [PowerState::Idle, PowerState::Standby].map(|state| self.state_ns[state as usize]);
        let reported: u64 = state_ns.values().sum();
        let busy = reported.saturating_sub(resting[0] + resting[1]);
        Some(Power {
            busy_fraction: ratio(busy as f64, window_ns as f64).filter(|_| reported > 0),
            energy_j: energy.as_ref().map(|by| by.values().fold(0.0, |sum, joules| sum + joules)),
            energy_by_j: energy.unwrap_or_default(),
            state_ns,
        })
    }
}

/// Time by power state, and energy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// Time by power state; states never entered are left out. Sums to the measured window, unless
    /// the run ended early: then the last state of a device may be missing.
    pub state_ns: BTreeMap<String, u64>,
    /// Utilisation: share of the window neither idle nor in standby.
    pub busy_fraction: Option<f64>,
    /// Power of each state times its time, plus energy per flash operation and per spin-up.
    pub energy_j: Option<f64>,
    /// Energy by state (`idle`, `active`, ...), by operation (`flash_reads` with their retries,
    /// `flash_programs`, `flash_erases`, `spin_ups`), of the mapping memory (`mapping_ram`) and of
    /// victim searches (`victim_search`).
    pub energy_by_j: BTreeMap<String, f64>,
}
