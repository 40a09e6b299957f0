//! The constants of an SSD that calibration fits, and their ranges.

use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{Op, SimDuration};

/// Unit of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes per second.
    Rate,
    /// A part of one.
    Share,
}

/// A parameter of `ssd` that calibration fits. Times and rates are searched by their logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant {
    /// The parameter's path.
    pub name: &'static str,
    unit: Unit,
    /// Least and greatest value tried, in ns, bytes per second or as a share.
    range: (f64, f64),
    /// Requests that show the constant; any, where there is none.
    pub shown_by: Option<Op>,
    /// The constant whose value it has where it has none of its own.
    pub follows: Option<&'static str>,
}

/// The coordinate of a constant that follows another.
pub(super) const FOLLOWS: f64 = f64::NAN;

const fn time(name: &'static str, shown_by: Option<Op>, range: (f64, f64)) -> Constant {
    Constant { name, unit: Unit::Time, range, shown_by, follows: None }
}

const fn rate(name: &'static str, range: (f64, f64)) -> Constant {
    Constant { name, unit: Unit::Rate, range, shown_by: None, follows: None }
}

/// All of them.
pub(super) const CONSTANTS: [Constant; 9] = [
    time("read_time", Some(Op::Read), (2e3, 5e5)),
    Constant {
        name: "timing.read_spread",
        unit: Unit::Share,
        range: (0.0, 1.5),
        shown_by: Some(Op::Read),
        follows: None,
    },
    time("program_time", Some(Op::Write), (2e4, 5e7)),
    rate("channel_rate", (2e7, 8e9)),
    rate("controller.host_rate", (2e7, 3.2e10)),
    Constant {
        shown_by: Some(Op::Write),
        follows: Some("controller.host_rate"),
        ..rate("controller.host_write_rate", (2e7, 3.2e10))
    },
    time("controller.request_interval", None, (5e1, 1e5)),
    time("controller.read_overhead", Some(Op::Read), (1e2, 5e5)),
    time("controller.write_overhead", Some(Op::Write), (1e2, 5e5)),
];

/// First step of the search: of the logarithm, or of a share.
pub(super) const STEP: f64 = 0.25;

impl Constant {
    /// Least and greatest coordinate.
    pub fn bounds(&self) -> (f64, f64) {
        (self.coordinate(self.range.0), self.coordinate(self.range.1))
    }

    fn coordinate(&self, value: f64) -> f64 {
        match self.unit {
            Unit::Share => value,
            Unit::Time | Unit::Rate => libm::log(value.clamp(self.range.0, self.range.1)),
        }
    }

    fn value(&self, coordinate: f64) -> f64 {
        match self.unit {
            Unit::Share => coordinate,
            Unit::Time | Unit::Rate => libm::exp(coordinate),
        }
    }

    /// The coordinate in `settings`; at the end of the range for a time of zero.
    pub fn read(&self, settings: &Settings) -> f64 {
        if self.follows.is_some() && settings.rate_opt(self.name).is_none() {
            return FOLLOWS;
        }
        self.coordinate(match self.unit {
            Unit::Time => settings.duration(self.name).as_ns() as f64,
            Unit::Rate => match settings.rate(self.name) {
                0 => self.range.1,
                rate => rate as f64,
            },
            Unit::Share => settings.number(self.name),
        })
    }

    /// Puts the value at `coordinate` into `settings`; nothing where it follows another.
    pub fn write(&self, settings: &mut Settings, coordinate: f64) {
        if coordinate.is_nan() {
            return;
        }
        let value = self.value(coordinate);
        settings.set(
            self.name,
            match self.unit {
                Unit::Time => Value::Duration(SimDuration::from_ns_f64(value.round())),
                Unit::Rate => Value::Rate(value.round() as u64),
                Unit::Share => Value::Number((value * 1e3).round() / 1e3),
            },
        );
    }

    /// The value at `coordinate` in the words of people.
    pub fn words(&self, coordinate: f64) -> String {
        if let Some(followed) = self.follows.filter(|_| coordinate.is_nan()) {
            return format!("as {followed}");
        }
        let value = self.value(coordinate);
        match self.unit {
            Unit::Time if value >= 1e6 => format!("{:.2} ms", value / 1e6),
            Unit::Time => format!("{:.2} us", value / 1e3),
            Unit::Rate => format!("{:.0} MB/s", value / 1e6),
            Unit::Share => format!("{value:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::param::EntryChoice;

    /// Settings of a drive, without values.
    fn empty() -> Settings {
        let queued = EntryChoice { name: "queued".to_owned(), settings: Settings::default() };
        Settings::default()
            .and("timing", Value::Entry(queued))
            .and("controller", Value::Table(Settings::default()))
    }

    #[test]
    fn what_is_written_is_read() {
        for constant in CONSTANTS {
            let (low, high) = constant.bounds();
            let mut settings = empty();
            for at in [low, f64::midpoint(low, high), high] {
                constant.write(&mut settings, at);
                let got = constant.read(&settings);
                assert!((got - at).abs() < 0.01, "{}: {got} instead of {at}", constant.name);
            }
        }
    }

    #[test]
    fn a_constant_without_a_value_of_its_own_follows_another() {
        let constant =
            CONSTANTS.iter().find(|constant| constant.name == "controller.host_write_rate");
        let constant = constant.expect("a constant");
        let mut settings = empty();
        constant.write(&mut settings, FOLLOWS);
        assert!(constant.read(&settings).is_nan(), "nothing was written");
        assert_eq!(constant.words(FOLLOWS), "as controller.host_rate");
    }
}
