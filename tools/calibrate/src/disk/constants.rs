//! The constants of a drive that calibration fits, and their ranges.

use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{SECTOR_BYTES, SimDuration};

/// The unit of a constant during the fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Milliseconds.
    Time,
    /// Milliseconds per sector: a rate is fitted by its inverse, which adds to latencies.
    Sector,
    /// A part of one.
    Share,
}

/// A parameter of `hard-disk` that calibration fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant {
    /// The parameter's name.
    pub name: &'static str,
    pub unit: Unit,
    /// The parameter that holds its negative values, if it has any.
    pub negative: Option<&'static str>,
    /// The parameter whose value it takes when it has none.
    pub falls_back_to: Option<&'static str>,
    /// Least and greatest value tried.
    pub range: (f64, f64),
    /// Maximum distance from the start: a larger change would compensate for something else.
    pub far: f64,
    /// First step of the search.
    pub step: f64,
    /// Times that compensate for it: with a slower link and shorter times, requests of the mean
    /// length take as long as before.
    pub compensated_by: &'static [&'static str],
}

const fn time(name: &'static str, falls_back_to: Option<&'static str>) -> Constant {
    Constant {
        name,
        unit: Unit::Time,
        negative: None,
        falls_back_to,
        range: (0.0, 10.0),
        far: 2.0,
        step: 0.4,
        compensated_by: &[],
    }
}

const fn sector(
    name: &'static str,
    falls_back_to: Option<&'static str>,
    compensated_by: &'static [&'static str],
) -> Constant {
    // A sector in half a microsecond is 1 GB/s; in half a millisecond, 1 MB/s.
    let (range, far) = ((0.000_5, 0.5), 0.5);
    let (unit, negative) = (Unit::Sector, None);
    Constant { name, unit, negative, falls_back_to, range, far, step: 0.032, compensated_by }
}

/// All of them. Layout and speed are excluded: logs of response times do not identify them. The
/// seek curve is corrected by distance ([`super::seeks`]).
pub(super) const CONSTANTS: [Constant; 13] = [
    time("read_hit_overhead", None),
    time("read_hit_overhead_after_write", Some("read_hit_overhead")),
    time("read_miss_overhead", None),
    time("read_miss_overhead_after_write", Some("read_miss_overhead")),
    time("write_hit_overhead", None),
    time("write_hit_overhead_after_write", Some("write_hit_overhead")),
    time("write_miss_overhead", None),
    time("write_miss_overhead_after_write", Some("write_miss_overhead")),
    Constant {
        negative: Some("write_seek_reduction"),
        range: (-10.0, 10.0),
        ..time("write_settle", None)
    },
    time("head_switch", None),
    Constant {
        name: "resettle_share",
        unit: Unit::Share,
        negative: None,
        falls_back_to: None,
        range: (0.0, 1.0),
        far: 1.0,
        step: 0.2,
        compensated_by: &[],
    },
    sector("host_rate", None, &["read_hit_overhead", "read_hit_overhead_after_write"]),
    sector(
        "host_write_rate",
        Some("host_rate"),
        &["write_hit_overhead", "write_hit_overhead_after_write"],
    ),
];

impl Constant {
    /// The value in `settings`; `None` for a link that takes no time.
    pub fn read(&self, settings: &Settings) -> Option<f64> {
        let names = [Some(self.name), self.falls_back_to];
        let names = names.into_iter().chain([self.negative]).flatten();
        let ms = |name| settings.duration_opt(name).map_or(0.0, |time| time.as_ns() as f64 / 1e6);
        let name = names.into_iter().find(|name| settings.has(name))?;
        if let Some(negative) = self.negative {
            return Some(ms(self.name) - ms(negative));
        }
        Some(match self.unit {
            Unit::Time => settings.duration(name).as_ns() as f64 / 1e6,
            Unit::Sector => SECTOR_BYTES as f64 / settings.rate_opt(name)? as f64 * 1e3,
            Unit::Share => settings.number(name),
        })
    }

    /// Puts `value` into `settings`.
    pub fn write(&self, settings: &mut Settings, value: f64) {
        if let Some(negative) = self.negative {
            settings.set(negative, self.value((-value).max(0.0)));
        }
        let value = if self.negative.is_some() { value.max(0.0) } else { value };
        settings.set(self.name, self.value(value));
    }

    fn value(&self, value: f64) -> Value {
        match self.unit {
            Unit::Time => Value::Duration(SimDuration::from_ns_f64((value * 1e6).round())),
            Unit::Sector => Value::Rate((SECTOR_BYTES as f64 / value * 1e3).round() as u64),
            Unit::Share => Value::Number((value * 1e4).round() / 1e4),
        }
    }

    /// `value` in the words of people.
    pub fn words(&self, value: f64) -> String {
        match self.unit {
            Unit::Time => format!("{value:.3} ms"),
            Unit::Sector => format!("{:.3} MB/s", rate(value)),
            Unit::Share => format!("{value:.3}"),
        }
    }

    /// `value`, which is sure to `margin`, in the words of people.
    pub fn with_margin(&self, value: f64, margin: f64) -> String {
        match self.unit {
            Unit::Time => format!("{value:.3} +- {margin:.3} ms"),
            Unit::Sector => {
                let margin = rate(value) * (margin / value);
                format!("{:.3} +- {margin:.3} MB/s", rate(value))
            }
            Unit::Share => format!("{value:.3} +- {margin:.3}"),
        }
    }
}

/// MB/s where a sector takes so many ms.
fn rate(sector_ms: f64) -> f64 {
    SECTOR_BYTES as f64 / sector_ms / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::param::Kind;

    #[test]
    fn they_are_parameters_of_the_drive() {
        let registry = hybridsim_simulation::registry::standard();
        let disk = registry.find::<hybridsim_config::build::ComponentEntry>("hard-disk");
        let params = disk.expect("it is registered").description.params;
        for constant in CONSTANTS {
            let param = params.iter().find(|param| param.name == constant.name);
            let kind = param.unwrap_or_else(|| panic!("{}", constant.name)).kind;
            let expect = match constant.unit {
                Unit::Time => matches!(kind, Kind::Duration),
                Unit::Sector => matches!(kind, Kind::Rate),
                Unit::Share => matches!(kind, Kind::Number { .. }),
            };
            assert!(expect, "{}: {kind:?}", constant.name);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for constant in CONSTANTS {
            let mut settings = Settings::default();
            assert_eq!(constant.read(&settings), None);
            constant.write(&mut settings, 0.0625);
            let got = constant.read(&settings).expect("it was written");
            assert!((got - 0.0625).abs() < 1e-6, "{}: {got}", constant.name);
            if constant.range.0 < 0.0 {
                constant.write(&mut settings, -0.5);
                assert_eq!(constant.read(&settings), Some(-0.5), "{}", constant.name);
            }
        }
    }
}
