//! Results in the format of `fio --output-format=json`. `docs/reference/results.md` lists what
//! has no counterpart.

use hybridsim_observe::results::Throughput;
use hybridsim_observe::{Latencies, LatencyFold, Op, RunResults};
use serde_json::{Map, Value, json};

/// The percentiles fio reports by default.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
/// Upper bounds of fio's latency classes, in ns, us and ms.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The document: one job represents the whole workload.
pub fn json(results: &RunResults, latencies: &LatencyFold) -> Value {
    let window_ns = results.simulated_ns.saturating_sub(results.warmup.ns);
    let done = &results.throughput;
    let all = latencies.all();
    let direction = |op| direction(latencies.of(op), op, done, window_ns);
    let classes = classes(&all);
    let version = results.label.versions.get("hybridsim").cloned().unwrap_or_default();
    let job = json!({
        "jobname": results.label.title,
        "groupid": 0,
        "error": i32::from(!results.complete),
        "eta": 0,
        "elapsed": window_ns.div_ceil(1_000_000_000),
        "job options": { "name": results.label.title },
        "read": direction(Op::Read),
        "write": direction(Op::Write),
        "trim": direction(Op::Trim),
        "sync": {
            "total_ios": latencies.of(Op::Flush).count(),
            "lat_ns": spread(latencies.of(Op::Flush), true),
        },
        "job_runtime": window_ns / 1_000_000,
        "latency_ns": classes[0],
        "latency_us": classes[1],
        "latency_ms": classes[2],
    });
    json!({
        "fio version": format!("hybridsim-{version}"),
        "global options": { "ioengine": "hybridsim" },
        "jobs": [job],
    })
}

fn direction(latencies: &Latencies, op: Op, done: &Throughput, window_ns: u64) -> Value {
    let bytes = match op {
        Op::Read => done.read_bytes,
        Op::Write => done.write_bytes,
        Op::Trim => done.trim_bytes,
        Op::Flush | Op::Zone(_) => 0,
    };
    let per_s = |amount: u64| match window_ns {
        0 => 0.0,
        ns => amount as f64 * 1e9 / ns as f64,
    };
    let bytes_per_s = per_s(bytes);
    json!({
        "io_bytes": bytes,
        "io_kbytes": bytes / 1024,
        "bw_bytes": bytes_per_s as u64,
        "bw": (bytes_per_s / 1024.0) as u64,
        "iops": per_s(latencies.count()),
        "runtime": window_ns / 1_000_000,
        "total_ios": latencies.count(),
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": spread(&Latencies::default(), false),
        "clat_ns": spread(latencies, true),
        "lat_ns": spread(latencies, false),
    })
}

fn spread(latencies: &Latencies, percentiles: bool) -> Value {
    let mut spread = json!({
        "min": latencies.min().unwrap_or(0),
        "max": latencies.max().unwrap_or(0),
        "mean": latencies.mean().unwrap_or(0.0),
        "stddev": latencies.stddev().unwrap_or(0.0),
        "N": latencies.count(),
    });
    if percentiles && latencies.count() > 0 {
        let of = |percent: f64| {
            (format!("{percent:.6}"), latencies.quantile(percent / 100.0).unwrap_or(0).into())
        };
        let list: Map<String, Value> = PERCENTILES.into_iter().map(of).collect();
        spread["percentile"] = Value::Object(list);
    }
    spread
}

/// Percentage of requests by latency class: below 1 us, below 1 ms, and above.
fn classes(all: &Latencies) -> [Value; 3] {
    let mut below_before = 0;
    let mut share = |bound_ns: u64| {
        let below = all.count_up_to(bound_ns - 1);
        let count = below - below_before;
        below_before = below;
        let percent = count as f64 * 100.0 / all.count().max(1) as f64;
        (percent * 1e6).round() / 1e6
    };
    let mut group = |unit_ns: u64, bounds: &[u64]| {
        let class = |bound: &u64| (bound.to_string(), share(bound * unit_ns).into());
        bounds.iter().map(class).collect::<Map<String, Value>>()
    };
    let (nanos, micros) = (group(1, &CLASSES), group(1_000, &CLASSES));
    let mut millis = group(1_000_000, &[&CLASSES[..], &[2000]].concat());
    let rest = (all.count() - below_before) as f64 * 100.0 / all.count().max(1) as f64;
    millis.insert(">=2000".to_owned(), rest.into());
    [nanos.into(), micros.into(), millis.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_match_fio_and_sum_to_all() {
        let mut all = Latencies::default();
        for ns in [1, 2, 999, 1_000, 1_999, 2_000, 999_999, 3_000_000_000, 3_000_000] {
            all.record(ns);
        }
        let [nanos, micros, millis] = classes(&all);
        let ninth = |value: &Value| (value.as_f64().expect("a number") * 9.0 / 100.0).round();
        assert_eq!([&nanos["2"], &nanos["4"], &nanos["1000"]].map(ninth), [1.0, 1.0, 1.0]);
        assert_eq!([&micros["2"], &micros["4"], &micros["1000"]].map(ninth), [2.0, 1.0, 1.0]);
        assert_eq!([&millis["4"], &millis["2000"], &millis[">=2000"]].map(ninth), [1.0, 0.0, 1.0]);
        let of = |group: &Value| {
            group
                .as_object()
                .expect("a map")
                .values()
                .map(|v| v.as_f64().expect("one"))
                .sum::<f64>()
        };
        assert!((of(&nanos) + of(&micros) + of(&millis) - 100.0).abs() < 1e-4);
    }

    #[test]
    fn percentiles_have_the_names_fio_gives_them() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|us| latencies.record(us * 1000));
        let spread = spread(&latencies, true);
        let at = |name: &str| spread["percentile"][name].as_f64().expect("the percentile is there");
        assert!((at("99.000000") / 990e3 - 1.0).abs() < 0.001);
        assert!((at("99.950000") / 1000e3 - 1.0).abs() < 0.001);
        assert_eq!(spread["percentile"].as_object().map(Map::len), Some(17));
        assert_eq!((&spread["N"], &spread["min"]), (&1000.into(), &1000.into()));
    }
}
