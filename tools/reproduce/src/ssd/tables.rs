//! The measured tables: one row per number.

use crate::{ExperimentError, Runner};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A measured number.
#[derive(Clone, Debug, Deserialize)]
pub struct MeasuredValue {
    pub device: String,
    pub workload: String,
    /// The conditions of the measurement, in words.
    pub condition: String,
    pub x: Option<f64>,
    pub metric: String,
    pub value: f64,
}

impl MeasuredValue {
    /// The drive writes of the run.
    pub fn drive_writes(&self) -> Option<f64> {
        before(&self.condition, " drive writes")
    }

    /// The regions written at a time, and their size in GiB.
    pub fn streams(&self) -> Option<(u32, f64)> {
        let mib: f64 = before(&self.condition, " MiB")?;
        Some((before::<u32>(&self.condition, " active")?, mib / 1024.0))
    }
}

/// The rate of the host at one time of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct Course {
    pub device: String,
    pub workload: String,
    pub run: String,
    pub drive_writes: f64,
    #[serde(rename = "host_MBps")]
    pub host_mb_s: f64,
}

/// A direction of a job of fio.
#[derive(Debug, Deserialize)]
pub struct FioRow {
    pub device: String,
    pub engine: String,
    pub workload: String,
    pub bs: String,
    pub qd: Option<u64>,
    pub jobs: Option<u64>,
    pub zones: Option<String>,
    pub dir: String,
    pub iops: f64,
    #[serde(rename = "MBps")]
    pub mb_per_s: f64,
    pub mean_us: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p99_9_us: Option<f64>,
    pub member: String,
}

impl FioRow {
    /// Whether the row is of direction `dir` of the file `member`, measured with SPDK.
    pub fn is_of(&self, member: &str, dir: &str) -> bool {
        (self.member.as_str(), self.engine.as_str(), self.dir.as_str()) == (member, "spdk", dir)
    }
}

/// The number that stands in front of `words`.
fn before<T: std::str::FromStr>(text: &str, words: &str) -> Option<T> {
    let (head, _) = text.split_once(words)?;
    let digits = head.trim_end_matches(|c: char| !c.is_ascii_digit());
    let from = digits.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
    digits[from..].parse().ok()
}

/// The rows of `name`, such as `wa_fill`.
///
/// # Errors
/// When the table is missing or unreadable.
pub fn read<T: DeserializeOwned>(runner: &Runner, name: &str) -> Result<Vec<T>, ExperimentError> {
    let path = runner.data(format!("ssd/tables/{name}.csv"))?;
    let failed = |error| ExperimentError::of(path.display(), error);
    let mut reader = csv::Reader::from_path(&path).map_err(failed)?;
    reader.deserialize().collect::<Result<_, _>>().map_err(failed)
}

/// Names the percentiles of `latency_rate` by what they are: the table cuts their last digit, so
/// that `p99.9` is the 99.99th and `p99.` the 99.9th. A table without that is left as it is.
pub fn name_percentiles(rows: &mut [MeasuredValue]) {
    if !rows.iter().any(|row| row.metric.ends_with("p99.")) {
        return;
    }
    for metric in rows.iter_mut().map(|row| &mut row.metric) {
        if metric.contains("p99.") {
            metric.push('9');
        }
    }
}

/// The value in the middle; of an even number, the mean of the two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        even if even.is_multiple_of(2) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::{MeasuredValue, median, name_percentiles};

    fn of(condition: &str) -> MeasuredValue {
        MeasuredValue {
            device: String::new(),
            workload: String::new(),
            condition: condition.to_owned(),
            x: None,
            metric: String::new(),
            value: 0.0,
        }
    }

    #[test]
    fn percentiles_get_the_digit_that_the_table_cuts() {
        let names = |metrics: [&str; 3]| {
            let row = |metric: &str| MeasuredValue { metric: metric.to_owned(), ..of("") };
            let mut rows = metrics.map(row).to_vec();
            name_percentiles(&mut rows);
            rows.into_iter().map(|row| row.metric).collect::<Vec<_>>()
        };
        let cut = ["read p99", "read p99.", "read p99.9"];
        assert_eq!(names(cut), ["read p99", "read p99.9", "read p99.99"]);
        let whole = ["read p99", "read p99.9", "read p99.99"];
        assert_eq!(names(whole), whole);
    }

    #[test]
    fn conditions_are_read() {
        let skew = of("4 KiB, 4 threads x QD128; campaign wa14; run 2025-01-24; 5.7 drive writes");
        assert_eq!(skew.drive_writes(), Some(5.7));
        assert_eq!(skew.streams(), None);
        let streams = of("region 8192 MiB (= 16384 x 512 KiB), 16 active; run 2025-02-12");
        assert_eq!(streams.streams(), Some((16, 8.0)));
    }

    #[test]
    fn the_median_of_an_even_number_is_a_mean() {
        assert!((median(&[4.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }
}
