//! Lee's three-point curve: everything from the single-cylinder, average and full-stroke times.

use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "curve",
        summary: "a sqrt(d-1) + b (d-1) + c, from single, average and full-stroke time.",
        origin: "E. K. Lee and R. H. Katz, An analytic performance model of disk arrays, 1993",
        params: Parameters::PARAMS,
    },
    build: |settings, cylinders| {
        let params = Parameters::from_settings(settings);
        let read = [params.single, params.average, params.full];
        let own = [params.write_single, params.write_average, params.write_full];
        let write = own.iter().any(Option::is_some).then(|| {
            let points: [_; 3] = std::array::from_fn(|i| own[i].unwrap_or(read[i]));
            Lee::new(points, cylinders)
        });
        Ok(Box::new(Pair { read: Lee::new(read, cylinders), write }))
    },
};

hybridsim_config::params! {
    struct Parameters {
        single: SimDuration = Kind::Duration, required, "Time over one cylinder.";
        average: SimDuration = Kind::Duration, required, "Mean over random pairs of cylinders.";
        full: SimDuration = Kind::Duration, required, "Time from the first to the last cylinder.";
        write_single: Option<SimDuration> = Kind::Duration, optional,
            "As `single`, before a write.";
        write_average: Option<SimDuration> = Kind::Duration, optional,
            "As `average`, before a write.";
        write_full: Option<SimDuration> = Kind::Duration, optional, "As `full`, before a write.";
    }
}

struct Lee {
    root: f64,
    linear: f64,
    constant: f64,
}

impl Lee {
    fn new(points: [SimDuration; 3], cylinders: u32) -> Self {
        let [min, average, max] = points.map(|time| time.as_ns() as f64);
        let c = f64::from(cylinders);
        Self {
            root: (-10.0 * min + 15.0 * average - 5.0 * max) / (3.0 * c.sqrt()),
            linear: (7.0 * min - 15.0 * average + 8.0 * max) / (3.0 * c),
            constant: min,
        }
    }
}

impl Curve for Lee {
    fn ns(&self, distance: u32) -> f64 {
        let x = f64::from(distance - 1);
        self.root * x.sqrt() + self.linear * x + self.constant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::times;
    use hybridsim_config::param::{Settings, Value};

    #[test]
    fn the_curve_meets_its_three_points() {
        let us = |us| Value::Duration(SimDuration::from_us(us));
        let settings = Settings::default()
            .and("single", us(1_000))
            .and("average", us(11_000))
            .and("full", us(20_000))
            .and("write_average", us(13_000));
        let cylinders = 50_000u32;
        let table = times(ENTRY, &settings, cylinders);
        let close = |got: f64, expected_ms: f64| {
            assert!((got / 1e6 - expected_ms).abs() < 0.002 * expected_ms, "{got} {expected_ms}");
        };
        close(table.time(1, false).as_ns() as f64, 1.0);
        close(table.time(cylinders - 1, false).as_ns() as f64, 20.0);
        // Random pairs of cylinders: distance d has weight 2 (C - d) / C^2.
        let c = f64::from(cylinders);
        let mean = |write| {
            let weighted =
                |d: u32| table.time(d, write).as_ns() as f64 * 2.0 * (c - f64::from(d)) / (c * c);
            (1..cylinders).map(weighted).sum::<f64>()
        };
        close(mean(false), 11.0);
        close(mean(true), 13.0);
    }
}
