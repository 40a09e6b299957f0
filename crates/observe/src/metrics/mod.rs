//! The metrics of a component: for each family of devices, the sums kept during the run and the
//! results computed from them, in one file.

mod cache;
mod disk;
mod flash;
mod level;
mod log;
mod power;
mod redundancy;
mod thermal;
mod wear;

pub use cache::Cache;
pub use disk::{BufferResult, Disk};
pub use flash::{BitErrors, Busy, EraseCount, Flash, Utilisation};
pub use level::ratio;
pub use log::Log;
pub use power::Power;
pub use redundancy::Redundancy;
pub use thermal::Thermal;
pub(crate) use thermal::instant;
pub use wear::{EraseSpread, Lifetime};

use crate::events::AnyEvent;
use hybridsim_engine::event::Times;
use hybridsim_engine::{CommonEvent, ComponentInfo, EventRecord};
use hybridsim_flash::FlashEvent;
use level::{Level, mean, set_level};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of `CommonEvent::Custom` kept apart per component.
const CUSTOM: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Custom {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    last: u64,
}

/// The sums over the events of one component.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComponentFold {
    pub(crate) disk: disk::DiskFold,
    pub(crate) flash: flash::FlashFold,
    pub(crate) cache: cache::CacheFold,
    log: log::LogFold,
    pub(crate) power: power::PowerFold,
    thermal: thermal::ThermalFold,
    queue_depth: Option<Level>,
    recoveries: u64,
    recovery_ns: u64,
    recovery_ns_max: u64,
    redundancy: redundancy::RedundancyFold,
    custom: Vec<Option<Custom>>,
}

impl ComponentFold {
    /// The fold of what happens from `from_ns` on: levels are what they are.
    pub(crate) fn measured_from(&self, from_ns: u64) -> Self {
        Self {
            flash: self.flash.measured_from(from_ns),
            cache: self.cache.measured_from(from_ns),
            power: self.power.measured_later(),
            thermal: self.thermal.measured_from(from_ns),
            queue_depth: self.queue_depth.map(|level| level.measured_from(from_ns)),
            redundancy: self.redundancy.measured_from(from_ns),
            ..Self::default()
        }
    }

    /// The next event, of which state times count after `from_ns`.
    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord, from_ns: u64) {
        let now = record.time.as_ns();
        match AnyEvent::of(record) {
            Some(AnyEvent::Disk(event)) => self.disk.add(event),
            Some(AnyEvent::Flash(FlashEvent::Temperature { throttling, millikelvin, ago })) => {
                self.thermal.add(throttling, millikelvin, (ago, now))
            }
            Some(AnyEvent::Flash(event)) => self.flash.add(event, now),
            Some(AnyEvent::Cache(event)) => self.cache.add(event, now),
            Some(AnyEvent::Layer(event)) => self.log.add(event),
            Some(AnyEvent::Common(CommonEvent::StateTimes { .. })) => {
                for (state, ns) in Times::of(record) {
                    self.power.add(state, ns, from_ns);
                }
            }
            Some(AnyEvent::Common(event)) => self.add_common(event, now, from_ns),
            None => {}
        }
    }

    #[inline(always)]
    fn add_common(&mut self, event: CommonEvent, now: u64, from_ns: u64) {
        match event {
            CommonEvent::StateTime { state, duration } => {
                self.power.add(state as u8, duration.as_ns(), from_ns);
            }
            CommonEvent::QueueDepth { depth } => {
                set_level(&mut self.queue_depth, now, u64::from(depth));
            }
            CommonEvent::Recovered { took } => {
                self.recoveries += 1;
                self.recovery_ns = self.recovery_ns.saturating_add(took.as_ns());
                self.recovery_ns_max = self.recovery_ns_max.max(took.as_ns());
            }
            CommonEvent::Redundancy { change, degraded, took } => {
                self.redundancy.add(change, degraded, took, now);
            }
            CommonEvent::Custom { name, value } => self.add_custom(name, value),
            _ => {}
        }
    }

    #[inline(never)]
    fn add_custom(&mut self, name: u8, value: u64) {
        if self.custom.is_empty() {
            self.custom.resize(CUSTOM, None);
        }
        let first = Custom { count: 0, sum: 0, min: value, max: value, last: value };
        let custom = self.custom[name as usize].get_or_insert(first);
        custom.count += 1;
        custom.sum += u128::from(value);
        custom.min = custom.min.min(value);
        custom.max = custom.max.max(value);
        custom.last = value;
    }

    /// Joules by what they were spent on.
    pub(crate) fn energy(&self, info: &ComponentInfo) -> Option<BTreeMap<String, f64>> {
        self.power.energy(info, |operation| self.flash.energy_count(operation))
    }

    /// The metrics of a window of `window_ns` that ends at `end_ns`.
    pub(crate) fn results(&self, info: &ComponentInfo, window_ns: u64, end_ns: u64) -> Component {
        Component {
            kind: info.kind.to_owned(),
            constants: constants(info),
            power: self.power.results(self.energy(info), window_ns),
            thermal: self.thermal.results(),
            disk: self.disk.results(self.power.spin_ups),
            flash: self.flash.results(info, window_ns),
            cache: self.cache.results(),
            log: self.log.results(),
            queue: self.queue_depth.map(|depth| Queue {
                queue_depth_mean: depth.mean(end_ns),
                queue_depth_max: depth.max,
            }),
            recovery: (self.recoveries > 0).then(|| Recovery {
                recoveries: self.recoveries,
                recovery_ns_mean: mean(self.recovery_ns, self.recoveries),
                recovery_ns_max: self.recovery_ns_max,
            }),
            redundancy: self.redundancy.results(end_ns),
            custom: self.custom_results(info),
        }
    }

    fn custom_results(&self, info: &ComponentInfo) -> BTreeMap<String, CustomResult> {
        let emitted = self.custom.iter().enumerate();
        let emitted = emitted.filter_map(|(at, custom)| Some((at, custom.as_ref()?)));
        emitted
            .map(|(at, custom)| {
                let unnamed = || format!("number {at}");
                let name = info.custom.get(at).map_or_else(unnamed, |&name| name.to_owned());
                let mean = ratio(custom.sum as f64, custom.count as f64);
                let Custom { count, min, max, last, .. } = *custom;
                (name, CustomResult { count, mean, min, max, last })
            })
            .collect()
    }
}

fn constants(info: &ComponentInfo) -> BTreeMap<String, f64> {
    let finite = info.constants.iter().filter(|constant| constant.1.is_finite());
    finite.map(|&(name, value)| (name.to_owned(), value)).collect()
}

/// Metrics of one component; groups that do not apply are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// Registered name of its kind.
    pub kind: String,
    /// Constants of its model, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
    /// Time and energy.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// Temperature and thermal throttling.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub thermal: Option<Thermal>,
    /// Disk mechanics.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// Flash operations.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
    /// Cache accesses and destaging.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// The log of a translation layer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub log: Option<Log>,
    /// Queue depth.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Recovery from power failures.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Failed members and rebuilds of an array.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<Redundancy>,
    /// Statistics that only this kind of component has, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom: BTreeMap<String, CustomResult>,
}

/// Recovery from power failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Number of recoveries.
    pub recoveries: u64,
    /// Mean time from the return of power to service.
    pub recovery_ns_mean: Option<f64>,
    /// Maximum time from the return of power to service.
    pub recovery_ns_max: u64,
}

/// Queue depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Mean number of queued requests, over time.
    pub queue_depth_mean: Option<f64>,
    /// Maximum number of queued requests.
    pub queue_depth_max: u64,
}

/// A statistic that only this kind of component has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CustomResult {
    /// Number of samples.
    pub count: u64,
    /// Mean of the samples.
    pub mean: Option<f64>,
    /// Minimum.
    pub min: u64,
    /// Maximum.
    pub max: u64,
    /// Last sample.
    pub last: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use hybridsim_flash::Cause;
    use hybridsim_flash::event::joules::READS;

    #[test]
    fn each_retry_takes_the_energy_of_a_read() {
        let mut fold = ComponentFold::default();
        let (cause, die) = (Cause::Host, 0);
        let events = [
            FlashEvent::Read { cause, die },
            FlashEvent::Read { cause, die },
            FlashEvent::ReadRetried { cause, die, retries: 3 },
        ];
        events.into_iter().for_each(|event| fold.add(&record(5, 0, event), 0));
        let info = ComponentInfo { operation_joules: vec![(READS, 0.5)], ..Default::default() };
        let energy = fold.energy(&info).expect("a read takes energy");
        assert_eq!(energy.get(READS), Some(&2.5));
        assert_eq!(fold.flash.count(READS), 2);
    }

    #[test]
    fn a_level_is_averaged_over_time() {
        let mut level = Level::new(100, 4);
        level.set(110, 10);
        level.set(130, 0);
        // 10 ns of 4, 20 ns of 10, 10 ns of 0.
        assert_eq!(level.mean(140), Some(6.0));
        assert_eq!((level.min, level.max, level.now), (0, 10, 0));
        assert_eq!(Level::new(5, 1).mean(5), None);
    }
}
