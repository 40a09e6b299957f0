//! How evenly a flash device wears, and how long it will last.

use super::level::ratio;
use hybridsim_engine::ComponentInfo;
use hybridsim_flash::{INITIAL_ERASES, SLC_ENDURANCE};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NS_PER_DAY: f64 = 86_400e9;

/// Distribution of erases over the units of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseSpread {
    /// Number of units.
    pub units: u64,
    /// Erases of all units; equal at every level.
    pub sum: u64,
    /// Minimum.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: u64,
    /// Standard deviation of the population.
    pub stddev: f64,
}

/// Projected lifetime of a flash device at the rates of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Erases its blocks have left in all; like all below but the rates per day `null` with a
    /// static SLC cache of another endurance (`slc.endurance`).
    pub erases_left: Option<f64>,
    /// Erases per day.
    pub erases_per_day: f64,
    /// Bytes programmed for the host per day.
    pub host_bytes_per_day: f64,
    /// Bytes the host can still write if all blocks wear evenly.
    pub host_bytes_left: Option<f64>,
    /// Days until the last erase if all blocks wear evenly.
    pub days_even: Option<f64>,
    /// Days until the most worn block wears out if it is erased as often as the fastest one.
    pub days_first_block: Option<f64>,
}

/// A level of the device: its name, the constant that counts its units, and how a unit of it
/// follows from a block. Blocks are numbered plane by plane, planes die by die within round after
/// round of dies, so a plane belongs to die `plane % dies`, and a die to channel `die % channels`.
struct Level {
    name: &'static str,
    units: u64,
    unit_of: fn(&Shape, u64) -> u64,
}

/// The shape of a device, from its constants.
struct Shape {
    channels: u64,
    dies: u64,
    planes: u64,
    blocks: u64,
}

pub(super) fn constant(info: &ComponentInfo, name: &str) -> Option<f64> {
    info.constants.iter().find(|constant| constant.0 == name).map(|constant| constant.1)
}

impl Shape {
    fn of(info: &ComponentInfo) -> Option<Self> {
        let count = |name| {
            let value = constant(info, name)?;
            (1.0..=u32::MAX as f64).contains(&value).then_some(value as u64)
        };
        let [channels, dies, planes, blocks] =
            [count("channels")?, count("dies")?, count("planes")?, count("blocks")?];
        (channels <= dies && dies <= planes && planes <= blocks).then_some(Self {
            channels,
            dies,
            planes,
            blocks,
        })
    }

    fn plane(&self, block: u64) -> u64 {
        block / (self.blocks / self.planes)
    }

    fn levels(&self) -> [Level; 5] {
        [
            Level { name: "device", units: 1, unit_of: |_, _| 0 },
            Level {
                name: "package",
                units: self.channels,
                unit_of: |shape, block| shape.plane(block) % shape.dies % shape.channels,
            },
            Level {
                name: "die",
                units: self.dies,
                unit_of: |shape, block| shape.plane(block) % shape.dies,
            },
            Level { name: "plane", units: self.planes, unit_of: Self::plane },
            Level { name: "block", units: self.blocks, unit_of: |_, block| block },
        ]
    }
}

/// Erases after the warm-up by level; empty for a device that does not report its shape.
pub(super) fn erases_by_level(
    erases_by_block: &FxHashMap<u32, u64>,
    info: &ComponentInfo,
) -> BTreeMap<String, EraseSpread> {
    let Some(shape) = Shape::of(info) else { return BTreeMap::new() };
    let spreads = shape.levels().map(|level| {
        let mut units: BTreeMap<u64, u64> = BTreeMap::new();
        for (&block, &erases) in erases_by_block {
            *units.entry((level.unit_of)(&shape, u64::from(block))).or_default() += erases;
        }
        (level.name.to_owned(), spread(&units, level.units))
    });
    spreads.into_iter().collect()
}

/// The spread of the erases of `units` units, those not listed having none.
fn spread(erases: &BTreeMap<u64, u64>, units: u64) -> EraseSpread {
    let sum: u64 = erases.values().sum();
    let mean = sum as f64 / units as f64;
    let distance = |erases: u64| (erases as f64 - mean) * (erases as f64 - mean);
    let silent = units.saturating_sub(erases.len() as u64);
    let variance =
        erases.values().map(|erases| distance(*erases)).sum::<f64>() + distance(0) * silent as f64;
    let least = erases.values().min().copied().unwrap_or(0);
    EraseSpread {
        units,
        sum,
        min: if silent > 0 { 0 } else { least },
        mean,
        max: erases.values().max().copied().unwrap_or(0),
        stddev: (variance / units as f64).sqrt(),
    }
}

/// Remaining life at the pace of the window of `window_ns` ns; `None` for a device that does
/// not report endurance and wear, or when nothing was erased.
pub(super) fn lifetime(
    wear: &BTreeMap<u32, u64>,
    erases_by_block: &FxHashMap<u32, u64>,
    host_bytes: u64,
    info: &ComponentInfo,
    window_ns: u64,
) -> Option<Lifetime> {
    let endurance = constant(info, "endurance")? - constant(info, INITIAL_ERASES).unwrap_or(0.0);
    let blocks: u64 = wear.values().sum();
    let worn: f64 = wear.iter().map(|(erases, blocks)| f64::from(*erases) * *blocks as f64).sum();
    let most = f64::from(*wear.keys().next_back()?);
    let per_day = |count: f64| ratio(count * NS_PER_DAY, window_ns as f64);
    let erases = erases_by_block.values().sum::<u64>() as f64;
    let erases_per_day = per_day(erases)?;
    let fastest = erases_by_block.values().max().copied().unwrap_or(0);
    let host_bytes_per_day = per_day(host_bytes as f64)?;
    let erases_left = (endurance * blocks as f64 - worn).max(0.0);
    let days_even = ratio(erases_left, erases_per_day)?;
    let days_first_block = ratio((endurance - most).max(0.0), per_day(fastest as f64)?);
    // Which blocks have which erase count is not reported.
    let one_endurance = constant(info, SLC_ENDURANCE).is_none();
    Some(Lifetime {
        erases_left: one_endurance.then_some(erases_left),
        erases_per_day,
        host_bytes_per_day,
        host_bytes_left: one_endurance.then_some(days_even * host_bytes_per_day),
        days_even: one_endurance.then_some(days_even),
        days_first_block: days_first_block.filter(|_| one_endurance),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> ComponentInfo {
        let constants = vec![
            ("channels", 2.0),
            ("dies", 4.0),
            ("planes", 8.0),
            ("blocks", 24.0),
            ("endurance", 100.0),
        ];
        ComponentInfo { constants, ..ComponentInfo::default() }
    }

    fn erased<const N: usize>(blocks: [(u32, u64); N]) -> FxHashMap<u32, u64> {
        blocks.into_iter().collect()
    }

    #[test]
    fn the_sums_are_equal_at_every_level() {
        // Planes of three blocks; plane p is in die p % 4, die d in package d % 2.
        let levels = erases_by_level(&erased([(0, 5), (1, 2), (13, 4), (23, 1)]), &info());
        assert_eq!(levels.len(), 5);
        for (name, units) in
            [("device", 1), ("package", 2), ("die", 4), ("plane", 8), ("block", 24)]
        {
            assert_eq!((levels[name].units, levels[name].sum), (units, 12), "{name}");
        }
        assert_eq!((levels["package"].max, levels["package"].min), (11, 1));
        assert_eq!((levels["die"].max, levels["die"].min), (11, 0));
        assert_eq!((levels["plane"].max, levels["block"].max), (7, 5));
        assert!((levels["package"].mean - 6.0).abs() < 1e-12);
        assert!((levels["package"].stddev - 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_device_without_a_shape_or_with_an_absurd_one_has_no_levels() {
        let erased = erased([(0, 1)]);
        assert!(erases_by_level(&erased, &ComponentInfo::default()).is_empty());
        for (name, value) in [("planes", 0.0), ("blocks", f64::NAN), ("dies", 1e30)] {
            let mut info = info();
            info.constants.insert(0, (name, value));
            assert!(erases_by_level(&erased, &info).is_empty(), "{name} = {value}");
        }
    }

    #[test]
    fn the_rest_of_the_life_follows_from_the_window() {
        let wear = BTreeMap::from([(0, 20), (10, 3), (40, 1)]);
        let lifetime = |erased: &FxHashMap<u32, u64>, info: &ComponentInfo, window_ns| {
            lifetime(&wear, erased, 4_096_000, info, window_ns)
        };
        let erased = erased([(0, 6), (1, 2)]);
        // 24 blocks of 100 erases, 70 of them used; 8 erases in a tenth of a day.
        let window_ns = 8_640_000_000_000;
        let life = lifetime(&erased, &info(), window_ns).expect("all is reported");
        let near = |value: Option<f64>, expected: f64, within: f64| {
            (value.expect("known") - expected).abs() < within
        };
        assert!(near(life.erases_left, 2_330.0, 1e-9));
        assert!((life.erases_per_day - 80.0).abs() < 1e-9);
        assert!(near(life.days_even, 29.125, 1e-9));
        assert!((life.host_bytes_per_day - 40_960_000.0).abs() < 1e-3);
        assert!(near(life.host_bytes_left, 29.125 * 40_960_000.0, 1.0));
        assert!(near(life.days_first_block, 1.0, 1e-12));
        let mut worn = info();
        worn.constants.push((INITIAL_ERASES, 40.0));
        let rest = lifetime(&erased, &worn, window_ns).expect("it was reported");
        assert!(near(rest.erases_left, 2_330.0 - 40.0 * 24.0, 1e-9));
        let mut static_cache = info();
        static_cache.constants.push((SLC_ENDURANCE, 1_000.0));
        let rates = lifetime(&erased, &static_cache, window_ns).expect("rates are known");
        let left = [rates.erases_left, rates.days_even, rates.host_bytes_left];
        assert_eq!((left, rates.days_first_block), ([None; 3], None));
        assert_eq!(rates.erases_per_day, life.erases_per_day);
        assert_eq!(rates.host_bytes_per_day, life.host_bytes_per_day);
        assert_eq!(lifetime(&FxHashMap::default(), &info(), 1), None, "nothing was erased");
    }
}
