//! A run over time as CSV: a row per interval.

use hybridsim_observe::pictures::{GaugeSeries, Series};

/// Values of a column, by interval.
type Values = Vec<Option<f64>>;

/// The run as CSV, warm-up included, with the columns that apply to the system: `time_ns`, the
/// start of the interval; sums over it; levels as mean, minimum and maximum, those of a node with
/// its path.
pub fn table(series: &Series) -> String {
    let columns = columns(series);
    let mut rows = csv::Writer::from_writer(Vec::new());
    let mut write = |row: Vec<String>| rows.write_record(row).expect("rows are equally long");
    write(columns.iter().map(|(name, _)| name.clone()).collect());
    for row in 0..series.reads.len() {
        let cells = columns.iter().map(|(_, values)| values[row]);
        write(cells.map(|value| value.map_or_else(String::new, |it| it.to_string())).collect());
    }
    String::from_utf8(rows.into_inner().expect("memory takes all")).expect("rows are text")
}

fn columns(series: &Series) -> Vec<(String, Values)> {
    let starts = (0..series.reads.len() as u64).map(|at| at * series.bucket_ns).collect::<Vec<_>>();
    let mut all = vec![("time_ns".to_owned(), counts(&starts))];
    let sums = [
        ("reads", &series.reads),
        ("writes", &series.writes),
        ("read_bytes", &series.read_bytes),
        ("write_bytes", &series.write_bytes),
        ("host_programs", &series.host_programs),
        ("programs", &series.programs),
        ("erases", &series.erases),
        ("destaged_sectors", &series.destaged_sectors),
    ];
    all.extend(sums.map(|(name, values)| (name.to_owned(), counts(values))));
    all.push(("latency_ns_max".to_owned(), counts(&series.latency_ns_max)));
    all.push(("latency_ns_mean".to_owned(), series.latency_ns_mean.clone()));
    all.push(("latency_ns_p50".to_owned(), levels(&series.latency_ns_p50)));
    all.push(("latency_ns_p99".to_owned(), levels(&series.latency_ns_p99)));
    for cache in &series.caches {
        all.push((format!("hits[{}]", cache.path), counts(&cache.hits)));
        all.push((format!("misses[{}]", cache.path), counts(&cache.misses)));
    }
    let mut gauge = |name: &str, one: &GaugeSeries| {
        let of = if one.path.is_empty() { String::new() } else { format!("[{}]", one.path) };
        all.push((format!("{name}_mean{of}"), one.mean.clone()));
        all.push((format!("{name}_min{of}"), levels(&one.min)));
        all.push((format!("{name}_max{of}"), levels(&one.max)));
    };
    gauge("outstanding", &series.outstanding);
    let gauges = [
        ("queue_depth", &series.queue_depth),
        ("free_blocks", &series.free_blocks),
        ("dirty_pages", &series.dirty_pages),
        ("temperature_mk", &series.temperature_mk),
    ];
    for (name, nodes) in gauges {
        nodes.iter().for_each(|one| gauge(name, one));
    }
    all.retain(|(_, values)| !values.is_empty());
    all
}

fn counts(values: &[u64]) -> Values {
    values.iter().map(|value| Some(*value as f64)).collect()
}

fn levels(values: &[Option<u64>]) -> Values {
    values.iter().map(|value| value.map(|value| value as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_apply_and_values_that_are_known() {
        let path = "ssd, \"a\"".to_owned();
        let (mean, min, max) = (vec![None, Some(2.5)], vec![None, Some(2)], vec![None, Some(3)]);
        let series = Series {
            bucket_ns: 1_000,
            reads: vec![3, 0],
            latency_ns_p99: vec![Some(70), None],
            free_blocks: vec![GaugeSeries { path, mean, min, max }],
            ..Series::default()
        };
        let text = "time_ns,reads,latency_ns_p99,\"free_blocks_mean[ssd, \"\"a\"\"]\",\
                    \"free_blocks_min[ssd, \"\"a\"\"]\",\"free_blocks_max[ssd, \"\"a\"\"]\"\n\
                    0,3,70,,,\n1000,0,,2.5,2,3\n";
        assert_eq!(table(&series), text);
    }
}
