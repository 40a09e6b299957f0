//! The HP Laboratories curve with the first ten distances measured one by one.

use super::hpl::{root_or_line, values};
use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "hpl-plus-10",
        summary: "Ten measured values for distances 1 to 10, the `hpl` curve beyond.",
        origin: "DiskSim seek type `hplplus10`",
        params: Parameters::PARAMS,
    },
    build: |settings, _| {
        let params = Parameters::from_settings(settings);
        let mut problems = Vec::new();
        let first_ten = values("first_ten", &params.first_ten, &mut problems);
        let tail = values("values", &params.values, &mut problems);
        let write_ten = params.write_first_ten;
        let write_ten = write_ten.and_then(|ten| values("write_first_ten", &ten, &mut problems));
        let write_tail = params.write_values;
        let write_tail = write_tail.and_then(|tail| values("write_values", &tail, &mut problems));
        let (Some(first_ten), Some(tail), true) = (first_ten, tail, problems.is_empty()) else {
            return Err(problems);
        };
        let write = (write_ten.is_some() || write_tail.is_some()).then(|| PlusTen {
            first_ten: write_ten.unwrap_or(first_ten),
            tail: write_tail.unwrap_or(tail),
        });
        Ok(Box::new(Pair { read: PlusTen { first_ten, tail }, write }))
    },
};

hybridsim_config::params! {
    struct Parameters {
        first_ten: Vec<f64> = Kind::Numbers, required, "Ten times, for 1 to 10 cylinders (ms).";
        values: Vec<f64> = Kind::Numbers, required,
            "V1 (cylinders), V2, V3 (ms), V4, V5 (ms), as in `hpl`.";
        write_first_ten: Option<Vec<f64>> = Kind::Numbers, optional,
            "As `first_ten`, before a write.";
        write_values: Option<Vec<f64>> = Kind::Numbers, optional, "As `values`, before a write.";
    }
}

struct PlusTen {
    first_ten: [f64; 10],
    tail: [f64; 5],
}

impl Curve for PlusTen {
    fn ns(&self, distance: u32) -> f64 {
        match self.first_ten.get(distance as usize - 1) {
            Some(ms) => ms * 1e6,
            None => root_or_line(&self.tail, distance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::times;
    use hybridsim_config::param::{Settings, Value};

    #[test]
    fn ten_values_then_the_curve() {
        let ten = (1..=10).map(|d| 1.0 + f64::from(d) / 10.0).collect();
        let settings = Settings::default()
            .and("first_ten", Value::Numbers(ten))
            .and("values", Value::Numbers(vec![100.0, 2.0, 0.5, 4.0, 0.03]));
        let table = times(ENTRY, &settings, 1_000);
        let check = |distance, ns| assert_eq!(table.time(distance, true).as_ns(), ns);
        check(1, 1_100_000);
        check(10, 2_000_000);
        check(16, 4_000_000);
        check(200, 10_000_000);
    }
}
