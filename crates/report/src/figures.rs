//! The metrics of the summary table, with units and number of digits.

use hybridsim_observe::RunResults;
use hybridsim_observe::results::{Component, Lifetime, Redundancy, TenantResult};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A metric of all runs, formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Group of the table.
    pub group: &'static str,
    pub label: Cow<'static, str>,
    /// Unit of all values; empty for counts and ratios.
    pub unit: &'static str,
    /// One value per run; [`NONE`] where there is none.
    pub values: Vec<String>,
}

/// Shown where a run lacks the metric.
pub const NONE: &str = "–";

type Value = fn(&RunResults) -> Option<f64>;
pub(crate) type Unit = (f64, &'static str);

/// Group, label, units and value of a metric.
type Kind = (&'static str, &'static str, &'static [Unit], Value);

const COUNT: &[Unit] = &[(1.0, "")];
const TIME: &[Unit] = &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const LENGTH: &[Unit] = &[(1e3, "µs"), (1e6, "ms"), (1e9, "s"), (3.6e12, "h")];
const RATE: &[Unit] = &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")];
const BYTES_RATE: &[Unit] = &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")];
const BYTES: &[Unit] = &[(1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB")];
const ENERGY: &[Unit] = &[(1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J"), (1e3, "kJ")];
const SHARE: &[Unit] = &[(0.01, "%")];
/// Units of bytes that a device endures.
pub(crate) const WRITTEN: &[Unit] = &[(1e9, "GB"), (1e12, "TB"), (1e15, "PB")];
/// Units of days.
pub(crate) const LIFE: &[Unit] = &[(1.0 / 24.0, "h"), (1.0, "days"), (365.25, "years")];

/// Days of the warranty that drive writes per day are stated for: five years.
const WARRANTY_DAYS: f64 = 5.0 * 365.25;

/// Drive writes per day over five years of a drive with these constants that endures
/// `host_bytes` of writes.
pub fn drive_writes_per_day(constants: &BTreeMap<String, f64>, host_bytes: f64) -> Option<f64> {
    let capacity = constants.get("exported_pages")? * constants.get("page_bytes")?;
    (capacity > 0.0).then(|| host_bytes / capacity / WARRANTY_DAYS)
}

/// Bytes that a device endures, in words.
pub fn written(bytes: f64) -> String {
    one(WRITTEN, bytes)
}

/// A percentile, if at least ten requests exceed it.
fn percentile(run: &RunResults, beyond: f64, value: Option<u64>) -> Option<f64> {
    let enough = run.latency_ns.all.count as f64 * beyond >= 10.0;
    value.filter(|_| enough).map(|ns| ns as f64)
}

/// Whether the statistics exclude a warm-up.
fn has_warmup(run: &RunResults) -> bool {
    run.warmup.ns > 0 || run.warmup.requests > 0
}

/// The maximum over all arrays.
fn redundancy(run: &RunResults, value: fn(&Redundancy) -> Option<u64>) -> Option<f64> {
    let arrays = run.components.values().filter_map(|component| component.redundancy.as_ref());
    arrays.filter_map(value).max().map(|ns| ns as f64)
}

/// The flash device whose life ends first.
fn shortest_life<'a>(run: &'a RunResults) -> Option<(&'a Lifetime, &'a BTreeMap<String, f64>)> {
    let life = |component: &'a Component| {
        component.flash.as_ref()?.lifetime.as_ref().filter(|life| life.days_even.is_some())
    };
    let all = run.components.values().filter_map(|it| Some((life(it)?, &it.constants)));
    let days = |life: &Lifetime| life.days_even.unwrap_or(f64::INFINITY);
    all.min_by(|(a, _), (b, _)| days(a).total_cmp(&days(b)))
}

const KINDS: &[Kind] = &[
    ("Work", "Requests", COUNT, |run| Some(run.requests as f64)),
    ("Work", "Simulated time", LENGTH, |run| Some(run.simulated_ns as f64)),
    ("Work", "Warm-up (excluded)", LENGTH, |run| has_warmup(run).then_some(run.warmup.ns as f64)),
    ("Work", "Measured requests", COUNT, |run| {
        has_warmup(run).then_some(run.latency_ns.all.count as f64)
    }),
    ("Work", "Throughput", RATE, |run| run.throughput.iops),
    ("Work", "Bandwidth", BYTES_RATE, |run| run.throughput.bytes_per_s),
    ("Work", "Power failures", COUNT, |run| (run.power_cuts > 0).then_some(run.power_cuts as f64)),
    ("Work", "Requests lost", COUNT, |run| {
        (run.power_cuts > 0).then_some(run.requests_lost as f64)
    }),
    ("Work", "Degraded", LENGTH, |run| redundancy(run, |it| Some(it.degraded_ns))),
    ("Work", "Longest rebuild", LENGTH, |run| redundancy(run, |it| it.rebuild_ns_max)),
    ("Latency", "Mean", TIME, |run| run.latency_ns.all.mean),
    ("Latency", "Mean, 95 % ±", TIME, |run| {
        run.steady.filter(|it| it.is_long_enough).map(|it| it.mean_ns.half_width)
    }),
    ("Latency", "Median", TIME, |run| run.latency_ns.all.p50.map(|ns| ns as f64)),
    ("Latency", "p99", TIME, |run| percentile(run, 0.01, run.latency_ns.all.p99)),
    ("Latency", "p99.9", TIME, |run| percentile(run, 0.001, run.latency_ns.all.p999)),
    ("Latency", "p99.99", TIME, |run| percentile(run, 0.0001, run.latency_ns.all.p9999)),
    ("Latency", "Maximum", TIME, |run| run.latency_ns.all.max.map(|ns| ns as f64)),
    ("Latency", "Read mean", TIME, |run| run.latency_ns.read.mean),
    ("Latency", "Write mean", TIME, |run| run.latency_ns.write.mean),
    ("Latency", "Flush mean", TIME, |run| run.latency_ns.flush.mean),
    ("Latency", "Trim mean", TIME, |run| run.latency_ns.trim.mean),
    ("Latency", "Zone reset mean", TIME, |run| run.latency_ns.zone_reset.mean),
    ("Latency", "Zone finish mean", TIME, |run| run.latency_ns.zone_finish.mean),
    ("Flash", "Write amplification", COUNT, |run| run.totals.write_amplification),
    ("Flash", "Store amplification", COUNT, |run| run.application?.write_amplification),
    ("Flash", "Total amplification", COUNT, |run| run.application?.total_write_amplification),
    ("Flash", "Erases", COUNT, |run| run.totals.erases.map(|erases| erases as f64)),
    ("Flash", "Host writes left (TBW)", WRITTEN, |run| shortest_life(run)?.0.host_bytes_left),
    ("Flash", "Drive writes a day, 5 years", COUNT, |run| {
        let (life, constants) = shortest_life(run)?;
        drive_writes_per_day(constants, life.host_bytes_left?)
    }),
    ("Flash", "Life at this rate", LIFE, |run| shortest_life(run)?.0.days_even),
    ("Cache", "Hit ratio", SHARE, |run| run.totals.hit_ratio),
    ("Cache", "Read hit ratio", SHARE, |run| run.totals.read_hit_ratio),
    ("Cache", "Write hit ratio", SHARE, |run| run.totals.write_hit_ratio),
    ("Energy", "Energy", ENERGY, |run| run.totals.energy_j),
    ("Energy", "Energy per request", ENERGY, |run| run.totals.energy_j_per_request),
    ("Simulator", "Simulation speed", RATE, |run| run.requests_per_wall_s),
    ("Simulator", "Memory", BYTES, |run| run.peak_rss_bytes.map(|bytes| bytes as f64)),
];

/// The words for the metric with this label, alone: a latency says so.
pub(crate) fn words(label: &str) -> Option<String> {
    let (group, ..) = KINDS.iter().find(|kind| kind.1 == label)?;
    Some(format!("{label}{}", if *group == "Latency" { " latency" } else { "" }))
}

/// The metrics of `runs`; those that no run has are left out.
pub fn figures(runs: &[&RunResults]) -> Vec<Figure> {
    let known = KINDS.iter().filter_map(|&(group, label, units, value)| {
        figure(group, label.into(), units, runs.iter().map(|run| value(run)).collect())
    });
    known.chain(tenant_figures(runs)).collect()
}

/// A metric, unless no run has it.
fn figure(
    group: &'static str,
    label: Cow<'static, str>,
    units: &[Unit],
    values: Vec<Option<f64>>,
) -> Option<Figure> {
    values.iter().any(Option::is_some).then(|| {
        let (unit, values) = show(units, &values);
        Figure { group, label, unit, values }
    })
}

type TenantValue = fn(&TenantResult) -> Option<f64>;

const TENANT_KINDS: &[(&str, &[Unit], TenantValue)] = &[
    ("share", SHARE, |tenant| tenant.share),
    ("throughput", RATE, |tenant| tenant.iops),
    ("bandwidth", BYTES_RATE, |tenant| tenant.bytes_per_s),
    ("mean", TIME, |tenant| tenant.latency_ns.all.mean),
    ("p99", TIME, |tenant| {
        let latency = &tenant.latency_ns.all;
        latency.p99.filter(|_| latency.count >= 1_000).map(|ns| ns as f64)
    }),
    ("slowdown", COUNT, |tenant| tenant.slowdown),
];

fn tenant_figures(runs: &[&RunResults]) -> Vec<Figure> {
    let group = "Workloads";
    let all = || runs.iter().filter_map(|run| run.tenants.as_ref());
    let names: BTreeSet<&String> = all().flat_map(|tenants| tenants.by_name.keys()).collect();
    let figure = |label, units, values| figure(group, label, units, values);
    let fairness = runs.iter().map(|run| run.tenants.as_ref()?.fairness).collect();
    let several = all().any(|tenants| tenants.by_name.len() > 1);
    let fairness = figure("Fairness (Jain)".into(), COUNT, fairness).filter(|_| several);
    let mut figures: Vec<Figure> = fairness.into_iter().collect();
    for name in names {
        for &(label, units, value) in TENANT_KINDS {
            let of = |run: &&RunResults| value(run.tenants.as_ref()?.by_name.get(name)?);
            let values = runs.iter().map(of).collect();
            figures.extend(figure(format!("{name} {label}").into(), units, values));
        }
    }
    figures
}

/// `value` with one of `units`.
pub(crate) fn one(units: &[Unit], value: f64) -> String {
    let (unit, values) = show(units, &[Some(value)]);
    format!("{} {unit}", values[0])
}

/// Formats values in a common unit, or each in its own where they differ too much.
fn show(units: &[Unit], values: &[Option<f64>]) -> (&'static str, Vec<String>) {
    let one = |value: &Option<f64>, (scale, _): Unit| {
        value.map_or(NONE.to_owned(), |value| number(value / scale))
    };
    let common = choose(units, values);
    let far_apart = |value: &&Option<f64>| value.is_some_and(|v| v > 0.0 && v < common.0 / 100.0);
    if values.iter().any(|value| far_apart(&value)) {
        let own = |value: &Option<f64>| match (value, choose(units, &[*value])) {
            (None, _) => NONE.to_owned(),
            (_, unit) => format!("{} {}", one(value, unit), unit.1).trim_end().to_owned(),
        };
        return ("", values.iter().map(own).collect());
    }
    (common.1, values.iter().map(|value| one(value, common)).collect())
}

/// The largest unit in which the minimum is at least 1, unless the maximum would then have
/// more than five digits.
fn choose(units: &[Unit], values: &[Option<f64>]) -> Unit {
    let known = values.iter().flatten().copied().filter(|&value| value > 0.0);
    let (least, most) =
        known.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    let fits = |unit: &&Unit| unit.0 <= least;
    let unit = units.iter().rev().find(fits).filter(|_| least.is_finite()).unwrap_or(&units[0]);
    let larger = units.iter().skip_while(|larger| larger.0 < unit.0);
    let short = |unit: &&Unit| most / unit.0 < 99_999.5;
    *larger.clone().find(short).unwrap_or_else(|| larger.last().unwrap_or(unit))
}

/// A number with about four significant digits and thousands separators.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if value == value.trunc() && size < 1e15 => 0,
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        1.0.. => 3,
        0.001.. => 4,
        _ => return format!("{value:.2e}"),
    };
    let plain = format!("{value:.digits$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// A number of bytes in the largest binary unit below it.
pub fn binary_size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, power)| bytes >= 1 << power).unwrap_or(("B", 0));
    format!("{} {}", number(bytes as f64 / (1u64 << unit.1) as f64), unit.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(0.0, "0");
        check(1.0, "1");
        check(1_234_567.0, "1,234,567");
        check(123_456.7, "123,457");
        check(123.45, "123.5");
        check(12.345, "12.35");
        check(1.234, "1.234");
        check(0.01234, "0.0123");
        check(0.000_012, "1.20e-5");
        check(-1234.0, "-1,234");
        check(f64::NAN, "NaN");
    }

    #[test]
    fn one_unit_serves_all_values_of_a_row() {
        let check = |values: &[f64], expect: &str| {
            let values: Vec<_> = values.iter().copied().map(Some).collect();
            assert_eq!(choose(TIME, &values).1, expect, "{values:?}");
        };
        check(&[8.1e6], "ms");
        check(&[8.1e6, 61e3], "µs");
        check(&[8.1e6, 900.0], "µs");
        check(&[90.0], "ns");
        check(&[0.0], "ns");
        check(&[], "ns");
        check(&[1e15, 5.0], "s");
    }
}
