//! A measured table, straight lines between and beyond its points.

use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::{Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "table",
        summary: "Measured distances and times, straight lines between and beyond them.",
        origin: "DiskSim seek type `extracted`, as DIXtrac measures it",
        params: Parameters::PARAMS,
    },
    build: |settings, _| {
        let params = Parameters::from_settings(settings);
        let mut problems = Vec::new();
        let read = measured("points", &params.points, &mut problems);
        let write = params.write_points;
        let write = write.map(|write| measured("write_points", &write, &mut problems));
        if problems.is_empty() { Ok(Box::new(Pair { read, write })) } else { Err(problems) }
    },
};

hybridsim_config::params! {
    struct Parameters {
        points: Vec<(f64, SimDuration)> = Kind::Curve, required,
            "Pairs of distance (cylinders) and seek time.";
        write_points: Option<Vec<(f64, SimDuration)>> = Kind::Curve, optional,
            "As `points`, before a write.";
    }
}

fn measured(
    name: &'static str,
    given: &[(f64, SimDuration)],
    problems: &mut Vec<Problem>,
) -> Measured {
    if given.is_empty() {
        problems.push(Problem::new(name, "is empty; give at least one [distance, time] pair"));
    }
    if given.first().is_some_and(|&(distance, _)| distance < 1.0) {
        problems.push(Problem::new(name, "begins below distance 1; a seek crosses one cylinder"));
    }
    if given.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        problems.push(Problem::new(name, "distances must ascend, each only once"));
    }
    let point = |&(distance, time): &(f64, SimDuration)| (distance, time.as_ns() as f64);
    Measured(given.iter().map(point).collect())
}

struct Measured(Vec<(f64, f64)>);

impl Curve for Measured {
    /// Below the first point the first time holds: short seeks are mostly settling.
    fn ns(&self, distance: u32) -> f64 {
        let points = &self.0;
        let d = f64::from(distance);
        let after = points.partition_point(|&(distance, _)| distance < d);
        if after == 0 || points.len() == 1 {
            return points[0].1;
        }
        let after = after.min(points.len() - 1);
        let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
        y0 + (y1 - y0) * (d - x0) / (x1 - x0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::times;
    use hybridsim_config::param::{Settings, Value};

    fn curve(points: &[(f64, u64)]) -> Settings {
        let points = points.iter().map(|&(d, us)| (d, SimDuration::from_us(us))).collect();
        Settings::default().and("points", Value::Curve(points))
    }

    #[test]
    fn interpolates_and_extrapolates() {
        let table = times(ENTRY, &curve(&[(2.0, 1_000), (10.0, 2_000), (110.0, 4_000)]), 300);
        let check = |distance, us| {
            assert_eq!(table.time(distance, false), SimDuration::from_us(us), "{distance}");
        };
        check(1, 1_000);
        check(2, 1_000);
        check(6, 1_500);
        check(10, 2_000);
        check(60, 3_000);
        check(110, 4_000);
        check(210, 6_000);
    }

    #[test]
    fn every_fault_of_a_table_is_reported() {
        let refused = |points| (ENTRY.build)(&curve(points), 300).err().expect("refused");
        assert!(refused(&[])[0].message.contains("is empty"));
        assert_eq!(refused(&[(0.5, 1), (0.25, 2)]).len(), 2);
        assert!(refused(&[(1.0, 1), (1.0, 2)])[0].message.contains("ascend"));
    }
}
