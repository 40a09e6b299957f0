//! A straight line from the single-cylinder to the full-stroke seek.

use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "linear",
        summary: "A straight line from the single-cylinder to the full-stroke seek.",
        origin: "DiskSim seek type `linear`",
        params: &[
            Param::required("single", Kind::Duration, "Time over one cylinder."),
            Param::required("full", Kind::Duration, "Time from the first to the last cylinder."),
            Param::optional("write_single", Kind::Duration, "As `single`, before a write."),
            Param::optional("write_full", Kind::Duration, "As `full`, before a write."),
        ],
    },
    build: |settings, cylinders| {
        let (single, full) = (settings.duration("single"), settings.duration("full"));
        let write_single = settings.duration_opt("write_single");
        let write_full = settings.duration_opt("write_full");
        let write = (write_single.is_some() || write_full.is_some()).then(|| {
            Line::new(write_single.unwrap_or(single), write_full.unwrap_or(full), cylinders)
        });
        Ok(Box::new(Pair { read: Line::new(single, full, cylinders), write }))
    },
};

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
