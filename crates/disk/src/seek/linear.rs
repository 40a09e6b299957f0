//! A straight line from the single-cylinder to the full-stroke seek.

use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "linear",
        summary: "A straight line from the single-cylinder to the full-stroke seek.",
        origin: "DiskSim seek type `linear`",
        params: Parameters::PARAMS,
    },
    build: |settings, cylinders| {
        let params = Parameters::from_settings(settings);
        let (single, full) = (params.single, params.full);
        let own = (params.write_single, params.write_full);
        let write = (own != (None, None))
            .then(|| Line::new(own.0.unwrap_or(single), own.1.unwrap_or(full), cylinders));
        Ok(Box::new(Pair { read: Line::new(single, full, cylinders), write }))
    },
};

hybridsim_config::params! {
    struct Parameters {
        single: SimDuration = Kind::Duration, required, "Time over one cylinder.";
        full: SimDuration = Kind::Duration, required, "Time from the first to the last cylinder.";
        write_single: Option<SimDuration> = Kind::Duration, optional,
            "As `single`, before a write.";
        write_full: Option<SimDuration> = Kind::Duration, optional, "As `full`, before a write.";
    }
}

struct Line {
    single: f64,
    slope: f64,
}

impl Line {
    fn new(single: SimDuration, full: SimDuration, cylinders: u32) -> Self {
        let (single, full) = (single.as_ns() as f64, full.as_ns() as f64);
        // The full stroke is cylinders - 1 long, the single seek 1.
        Self { single, slope: (full - single) / f64::from(cylinders.max(3) - 2) }
    }
}

impl Curve for Line {
    fn ns(&self, distance: u32) -> f64 {
        self.single + self.slope * f64::from(distance - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::times;
    use hybridsim_config::param::{Settings, Value};

    #[test]
    fn the_line_meets_both_ends_and_the_middle() {
        let us = |us| Value::Duration(SimDuration::from_us(us));
        let settings = Settings::default().and("single", us(1_000)).and("full", us(9_000));
        let table = times(ENTRY, &settings, 1_002);
        assert_eq!(table.time(1, false), SimDuration::from_us(1_000));
        assert_eq!(table.time(501, false), SimDuration::from_us(5_000));
        assert_eq!(table.time(1_001, true), SimDuration::from_us(9_000));
    }
}
