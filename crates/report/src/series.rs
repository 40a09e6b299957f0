//! A run over time as CSV and as JSON: a column per quantity, a row per interval.

use hybridsim_observe::Pictures;
use hybridsim_observe::pictures::{BusyMap, CacheSeries, GaugeSeries, Mark};
use hybridsim_observe::results::ratio;
use serde::Serialize;

/// 0 °C in thousandths of a kelvin.
const FREEZING_MK: f64 = 273_150.0;
/// The cell of a [`BusyMap`] that was busy all the time.
const BUSY_WHOLE: f64 = 10_000.0;

/// A quantity over time.
#[derive(Serialize)]
struct Column<'a> {
    name: String,
    /// Path of the component; absent for the system as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<&'a str>,
    unit: &'static str,
    values: Values,
}

/// Values of a column, by interval; `None` where there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Values {
    Whole(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
}

impl Values {
    fn is_empty(&self) -> bool {
        match self {
            Self::Whole(values) => values.is_empty(),
            Self::Real(values) => values.is_empty(),
        }
    }

    fn cell(&self, row: usize) -> String {
        let text = match self {
            Self::Whole(values) => values[row].map(|value| value.to_string()),
            Self::Real(values) => values[row].map(|value| value.to_string()),
        };
        text.unwrap_or_default()
    }
}

/// The document around the columns.
#[derive(Serialize)]
struct Document<'a> {
    interval_ns: u64,
    end_ns: u64,
    warmup_end_ns: u64,
    marks: &'a [Mark],
    marks_left_out: u64,
    columns: Vec<Column<'a>>,
}

/// The run as CSV, warm-up included, with the columns that apply to the system: `time_ns`, the
/// start of the interval; sums and rates over it; levels as mean, minimum and maximum. Columns of
/// a component have its path in brackets.
pub fn table(pictures: &Pictures) -> String {
    let columns = columns(pictures);
    let mut rows = csv::Writer::from_writer(Vec::new());
    let mut write = |row: Vec<String>| rows.write_record(row).expect("rows are equally long");
    let title = |column: &Column<'_>| match column.component {
        Some(path) => format!("{}[{path}]", column.name),
        None => column.name.clone(),
    };
    write(columns.iter().map(title).collect());
    for row in 0..pictures.series.reads.len() {
        write(columns.iter().map(|column| column.values.cell(row)).collect());
    }
    String::from_utf8(rows.into_inner().expect("memory takes all")).expect("rows are text")
}

/// The columns of [`table`] as JSON, each with its unit, and the marks of the report's time axis.
pub fn json(pictures: &Pictures) -> String {
    let document = Document {
        interval_ns: pictures.series.bucket_ns,
        end_ns: pictures.end_ns,
        warmup_end_ns: pictures.warmup_end_ns,
        marks: &pictures.marks,
        marks_left_out: pictures.marks_left_out,
        columns: columns(pictures),
    };
    let text = serde_json::to_string(&document).expect("columns have only plain values");
    // A line per column: quotes within names are escaped.
    text.replace("{\"name\":", "\n{\"name\":") + "\n"
}

impl<'a> Column<'a> {
    fn new(name: &str, unit: &'static str, values: Values) -> Self {
        Self { name: name.to_owned(), component: None, unit, values }
    }

    fn of(self, path: &'a str) -> Self {
        // The level of the whole system has no path.
        Self { component: (!path.is_empty()).then_some(path), ..self }
    }
}

/// The columns that apply to the system, in order.
fn columns(pictures: &Pictures) -> Vec<Column<'_>> {
    let series = &pictures.series;
    let starts: Vec<u64> = (0..series.reads.len() as u64).map(|at| at * series.bucket_ns).collect();
    let mut all = vec![Column::new("time_ns", "ns", counts(&starts))];
    let sums = [
        ("requests", "requests", &series.requests, Some(("iops", "requests/s"))),
        ("reads", "requests", &series.reads, Some(("read_iops", "requests/s"))),
        ("writes", "requests", &series.writes, Some(("write_iops", "requests/s"))),
        ("read_bytes", "bytes", &series.read_bytes, Some(("read_bytes_per_s", "bytes/s"))),
        ("write_bytes", "bytes", &series.write_bytes, Some(("write_bytes_per_s", "bytes/s"))),
        ("host_programs", "pages", &series.host_programs, None),
        ("programs", "pages", &series.programs, None),
        ("erases", "blocks", &series.erases, None),
        ("destaged_sectors", "sectors", &series.destaged_sectors, None),
    ];
    for (name, unit, values, rate) in sums {
        all.push(Column::new(name, unit, counts(values)));
        all.extend(rate.map(|(name, unit)| Column::new(name, unit, rates(pictures, values))));
    }
    if series.programs.iter().any(|programs| *programs > 0) {
        let amplification = ratios(&series.programs, &series.host_programs);
        all.push(Column::new("page_write_amplification", "ratio", amplification));
    }
    all.push(Column::new("latency_ns_max", "ns", counts(&series.latency_ns_max)));
    all.push(Column::new("latency_ns_mean", "ns", Values::Real(series.latency_ns_mean.clone())));
    all.push(Column::new("latency_ns_p50", "ns", Values::Whole(series.latency_ns_p50.clone())));
    all.push(Column::new("latency_ns_p99", "ns", Values::Whole(series.latency_ns_p99.clone())));
    all.extend(series.caches.iter().flat_map(of_cache));
    all.extend(pictures.busy.iter().map(|busy| busy_fraction(busy, starts.len())));
    all.extend(level("outstanding", "requests", &series.outstanding));
    let levels = [
        ("queue_depth", "requests", &series.queue_depth),
        ("free_blocks", "blocks", &series.free_blocks),
        ("dirty_pages", "pages", &series.dirty_pages),
    ];
    for (name, unit, nodes) in levels {
        all.extend(nodes.iter().flat_map(|one| level(name, unit, one)));
    }
    all.extend(series.temperature_mk.iter().flat_map(temperature));
    all.retain(|column| !column.values.is_empty());
    all
}

fn counts(values: &[u64]) -> Values {
    Values::Whole(values.iter().copied().map(Some).collect())
}

/// `values` per second. A last interval that is shorter than half of the others has no rate.
fn rates(pictures: &Pictures, values: &[u64]) -> Values {
    let width_ns = pictures.series.bucket_ns;
    let rate = |(at, &value): (usize, &u64)| {
        let length_ns = pictures.end_ns.saturating_sub(at as u64 * width_ns).min(width_ns);
        (length_ns >= width_ns.div_ceil(2)).then(|| value as f64 * 1e9 / length_ns as f64)
    };
    Values::Real(values.iter().enumerate().map(rate).collect())
}

fn ratios(parts: &[u64], wholes: &[u64]) -> Values {
    let ratio = |(&part, &whole): (&u64, &u64)| ratio(part as f64, whole as f64);
    Values::Real(parts.iter().zip(wholes).map(ratio).collect())
}

fn of_cache(cache: &CacheSeries) -> [Column<'_>; 3] {
    let CacheSeries { path, hits, misses } = cache;
    let lookups: Vec<u64> = hits.iter().zip(misses).map(|(hits, misses)| hits + misses).collect();
    [
        Column::new("hits", "pages", counts(hits)).of(path),
        Column::new("misses", "pages", counts(misses)).of(path),
        Column::new("hit_ratio", "ratio", ratios(hits, &lookups)).of(path),
    ]
}

/// The mean over all units of a device. Maps have fewer columns than there are intervals, which
/// then share a value.
fn busy_fraction(busy: &BusyMap, intervals: usize) -> Column<'_> {
    let BusyMap { path, unit, map } = busy;
    let units: Vec<u64> = map.bounds.windows(2).map(|row| row[1] - row[0]).collect();
    let whole = units.iter().sum::<u64>() as f64 * BUSY_WHOLE;
    let counts = map.unpacked();
    let mean = |cells: &[u64]| {
        let busy: u64 = cells.iter().zip(&units).map(|(cell, units)| cell * units).sum();
        ratio(busy as f64, whole)
    };
    let means: Vec<Option<f64>> = counts.chunks(units.len().max(1)).map(mean).collect();
    let value =
        |at: usize| means.get(at / map.buckets_per_column.max(1) as usize).copied().flatten();
    let values = Values::Real((0..intervals).map(value).collect());
    Column::new(&format!("{unit}_busy_fraction"), "ratio", values).of(path)
}

fn level<'a>(name: &str, unit: &'static str, one: &'a GaugeSeries) -> [Column<'a>; 3] {
    let GaugeSeries { path, mean, min, max } = one;
    let column = |of: &str, values| Column::new(&format!("{name}_{of}"), unit, values).of(path);
    [
        column("mean", Values::Real(mean.clone())),
        column("min", Values::Whole(min.clone())),
        column("max", Values::Whole(max.clone())),
    ]
}

/// Temperatures in degrees Celsius.
fn temperature(one: &GaugeSeries) -> [Column<'_>; 3] {
    let celsius = |millikelvin: f64| (millikelvin - FREEZING_MK) / 1e3;
    level("temperature_celsius", "celsius", one).map(|column| {
        let values = match column.values {
            Values::Whole(values) => {
                values.iter().map(|value| value.map(|it| celsius(it as f64))).collect()
            }
            Values::Real(values) => values.iter().map(|value| value.map(celsius)).collect(),
        };
        Column { values: Values::Real(values), ..column }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_observe::pictures::{HeatMap, Series};

    fn pictures() -> Pictures {
        let path = "ssd, \"a\"".to_owned();
        let (mean, min, max) = (vec![None, Some(2.5)], vec![None, Some(2)], vec![None, Some(3)]);
        let (hits, misses) = (vec![1, 0], vec![3, 0]);
        let map = HeatMap {
            buckets_per_column: 2,
            bounds: vec![0, 1, 3],
            counts: HeatMap::pack(&[10_000, 2_500]),
        };
        let heat = |value: u64| vec![Some(value as f64), None];
        let series = Series {
            bucket_ns: 1_000,
            requests: vec![4, 1],
            programs: vec![6, 1],
            host_programs: vec![4, 0],
            reads: vec![3, 0],
            latency_ns_p99: vec![Some(70), None],
            caches: vec![CacheSeries { path: "cache".to_owned(), hits, misses }],
            free_blocks: vec![GaugeSeries { path: path.clone(), mean, min, max }],
            temperature_mk: vec![GaugeSeries {
                path: "ssd".to_owned(),
                mean: heat(300_150),
                ..GaugeSeries::default()
            }],
            ..Series::default()
        };
        let busy = vec![BusyMap { path, unit: "die".to_owned(), map }];
        Pictures { end_ns: 1_400, busy, series, ..Pictures::default() }
    }

    #[test]
    fn columns_that_apply_and_values_that_are_known() {
        let table = table(&pictures());
        let mut rows = csv::Reader::from_reader(table.as_bytes());
        let names: Vec<String> = rows.headers().expect("names").iter().map(Into::into).collect();
        let cells: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("cells")).collect();
        assert_eq!(cells.len(), 2);
        let of = |name: &str| {
            let at = names.iter().position(|it| it == name).unwrap_or_else(|| panic!("{name}"));
            [&cells[0][at], &cells[1][at]]
        };
        assert_eq!(of("time_ns"), ["0", "1000"]);
        assert_eq!(of("requests"), ["4", "1"]);
        assert_eq!(of("iops"), ["4000000", ""], "the last interval is too short for a rate");
        assert_eq!(of("page_write_amplification"), ["1.5", ""]);
        assert_eq!(of("latency_ns_p99"), ["70", ""]);
        assert_eq!(of("hit_ratio[cache]"), ["0.25", ""]);
        assert_eq!(of("die_busy_fraction[ssd, \"a\"]"), ["0.5", "0.5"]);
        assert_eq!(of("free_blocks_mean[ssd, \"a\"]"), ["", "2.5"]);
        assert_eq!(of("free_blocks_max[ssd, \"a\"]"), ["", "3"]);
        assert_eq!(of("temperature_celsius_mean[ssd]"), ["27", ""]);
        assert!(!names.iter().any(|name| name.starts_with("erases")), "{names:?}");
    }

    #[test]
    fn the_document_has_the_columns_of_the_table_with_units() {
        let (pictures, text) = (pictures(), json(&pictures()));
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&document["interval_ns"], &document["end_ns"]), (&1000.into(), &1400.into()));
        let columns = document["columns"].as_array().expect("columns");
        assert_eq!(columns.len(), super::columns(&pictures).len());
        let of = |name: &str| columns.iter().find(|column| column["name"] == name).expect("it");
        let free = of("free_blocks_max");
        assert_eq!((&free["component"], &free["unit"]), (&"ssd, \"a\"".into(), &"blocks".into()));
        assert_eq!(free["values"], serde_json::json!([null, 3]));
        assert_eq!(of("iops")["values"], serde_json::json!([4e6, null]));
        assert_eq!(of("iops").get("component"), None);
    }
}
