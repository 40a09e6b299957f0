//! Every seek takes the same time.

use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "constant",
        summary: "Every seek takes the same time.",
        origin: "DiskSim seek type `constant`",
        params: Parameters::PARAMS,
    },
    build: |settings, _| {
        let params = Parameters::from_settings(settings);
        let read = Constant(params.time.as_ns() as f64);
        let write = params.write_time.map(|time| Constant(time.as_ns() as f64));
        Ok(Box::new(Pair { read, write }))
    },
};

hybridsim_config::params! {
    struct Parameters {
        time: SimDuration = Kind::Duration, required, "Time of every seek.";
        write_time: Option<SimDuration> = Kind::Duration, optional,
            "Time before a write, if different.";
    }
}

struct Constant(f64);

impl Curve for Constant {
    fn ns(&self, _distance: u32) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::times;
    use hybridsim_config::param::{Settings, Value};

    #[test]
    fn the_time_is_the_same_everywhere_but_at_zero() {
        let settings =
            Settings::default().and("time", Value::Duration(SimDuration::from_us(8_500)));
        let table = times(ENTRY, &settings, 100);
        assert_eq!(table.time(0, false), SimDuration::ZERO);
        assert_eq!(table.time(1, false), SimDuration::from_us(8_500));
        assert_eq!(table.time(99, true), SimDuration::from_us(8_500));
        let settings = settings.and("write_time", Value::Duration(SimDuration::from_us(9_000)));
        let table = times(ENTRY, &settings, 100);
        assert_eq!(table.time(50, false), SimDuration::from_us(8_500));
        assert_eq!(table.time(50, true), SimDuration::from_us(9_000));
    }
}
