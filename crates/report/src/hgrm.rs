//! Percentiles as HdrHistogram tables (`.hgrm`).

use hybridsim_observe::Latencies;
use std::fmt::Write;

/// Steps per half of the remaining distance to 100 %, as in HdrHistogram's tools.
const STEPS: u32 = 5;

/// The table in microseconds; empty without requests.
pub fn table(latencies: &Latencies) -> String {
    let rows = latencies.quantile_rows(STEPS);
    let (Some(mean), Some(max)) = (latencies.mean(), latencies.max()) else { return String::new() };
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for row in rows {
        let micros = row.ns as f64 / 1e3;
        let _ = write!(out, "{micros:12.3} {:2.12} {:10}", row.quantile, row.count);
        match row.quantile < 1.0 {
            true => {
                let _ = writeln!(out, " {:14.2}", 1.0 / (1.0 - row.quantile));
            }
            false => out.push('\n'),
        }
    }
    let stddev = latencies.stddev().unwrap_or(f64::NAN) / 1e3;
    let (mean, max) = (mean / 1e3, max as f64 / 1e3);
    let _ = writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {stddev:12.3}]");
    let _ = writeln!(out, "#[Max     = {max:12.3}, Total count    = {:12}]", latencies.count());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_by_hand() {
        let mut latencies = Latencies::default();
        [1_000, 2_000, 3_000, 4_000].iter().for_each(|&ns| latencies.record(ns));
        let table = table(&latencies);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[2], "       1.000 0.000000000000          1           1.00");
        assert!(
            lines.contains(&"       2.000 0.500000000000          2           2.00"),
            "{table}"
        );
        assert!(lines.contains(&"       4.000 1.000000000000          4"), "{table}");
        let foot = &lines[lines.len() - 2..];
        assert_eq!(foot[0], "#[Mean    =        2.500, StdDeviation   =        1.118]");
        assert_eq!(foot[1], "#[Max     =        4.000, Total count    =            4]");
        assert_eq!(super::table(&Latencies::default()), "");
    }
}
