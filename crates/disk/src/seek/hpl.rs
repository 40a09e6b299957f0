//! The six-value curve of HP Laboratories: a root below a distance, a line above it.

use super::{Curve, Pair, SeekEntry};
use hybridsim_config::param::{Kind, Problem};
use hybridsim_config::registry::Description;

const NS_PER_MS: f64 = 1e6;

pub(super) const ENTRY: SeekEntry = SeekEntry {
    description: Description {
        name: "hpl",
        summary: "V2 + V3 sqrt(d) below distance V1, V4 + V5 d from there on, V6 for d = 1.",
        origin: "C. Ruemmler and J. Wilkes, An introduction to disk drive modeling, 1994",
        params: Parameters::PARAMS,
    },
    build: |settings, _| {
        let params = Parameters::from_settings(settings);
        let mut problems = Vec::new();
        let read = values("values", &params.values, &mut problems);
        let write = params.write_values;
        let write = write.and_then(|write| values("write_values", &write, &mut problems));
        match read {
            Some(read) if problems.is_empty() => {
                Ok(Box::new(Pair { read: Hpl(read), write: write.map(Hpl) }))
            }
            _ => Err(problems),
        }
    },
};

hybridsim_config::params! {
    struct Parameters {
        values: Vec<f64> = Kind::Numbers, required,
            "V1 (cylinders), V2, V3 (ms), V4, V5 (ms), V6 (ms, the single-cylinder seek).";
        write_values: Option<Vec<f64>> = Kind::Numbers, optional, "As `values`, before a write.";
    }
}

/// The list parameter `name` with exactly `N` values; reports another length.
pub(super) fn values<const N: usize>(
    name: &'static str,
    given: &[f64],
    problems: &mut Vec<Problem>,
) -> Option<[f64; N]> {
    let values = <[f64; N]>::try_from(given).ok();
    if values.is_none() {
        let message = format!("has {} values; it needs exactly {N}", given.len());
        problems.push(Problem::new(name, message));
    }
    values
}

/// V1 to V5 at `distance`, in nanoseconds.
pub(super) fn root_or_line(values: &[f64], distance: u32) -> f64 {
    let d = f64::from(distance);
    let ms =
        if d < values[0] { values[1] + values[2] * d.sqrt() } else { values[3] + values[4] * d };
    ms * NS_PER_MS
}

struct Hpl([f64; 6]);

impl Curve for Hpl {
    fn ns(&self, distance: u32) -> f64 {
        if distance == 1 { self.0[5] * NS_PER_MS } else { root_or_line(&self.0, distance) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::times;
    use hybridsim_config::param::{Settings, Value};

    #[test]
    fn root_branch_line_branch_and_single_seek() {
        let values = Value::Numbers(vec![100.0, 2.0, 0.5, 4.0, 0.03, 1.25]);
        let table = times(ENTRY, &Settings::default().and("values", values), 1_000);
        let check = |distance, ns| assert_eq!(table.time(distance, false).as_ns(), ns);
        check(1, 1_250_000);
        check(4, 3_000_000); // 2 + 0.5 * 2
        check(81, 6_500_000); // 2 + 0.5 * 9
        check(100, 7_000_000); // 4 + 0.03 * 100
        check(900, 31_000_000);
    }

    #[test]
    fn a_wrong_number_of_values_is_a_problem() {
        let five = Settings::default().and("values", Value::Numbers(vec![1.0; 5]));
        let problems = (ENTRY.build)(&five, 100).err().expect("refused");
        assert_eq!(problems[0].to_string(), "values: has 5 values; it needs exactly 6");
    }
}
