//! What pictures are drawn from; kept apart from the summary.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything a report draws of one run. Present only when the run was observed in full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pictures {
    /// End of the run, in ns.
    pub end_ns: u64,
    /// Until here the run was warming up: not part of any statistic, only of the series.
    pub warmup_end_ns: u64,
    /// Latency distributions by `all`, `read`, `write`: (ns, requests that took at most that).
    pub latency_points: BTreeMap<String, Vec<(u64, u64)>>,
    /// Blocks by erase count, by component path: (erase count, blocks), at most 256 rows.
    pub wear: BTreeMap<String, Vec<(u32, u64)>>,
    /// Energy by power state, by component path, in joules; `operations` is what flash
    /// operations and spin-ups add to the power of the states.
    pub energy_j: BTreeMap<String, BTreeMap<String, f64>>,
    /// Activity of flash devices while one of the slowest requests waited.
    pub activity: Option<Activity>,
    /// The system's diagram as an SVG element without styles; empty if not drawn.
    pub diagram: String,
    /// Power failures, failed members, rebuilds and changes of thermal throttling, in order.
    pub marks: Vec<Mark>,
    /// Marks beyond the first 200, and the first 50 changes of thermal throttling.
    pub marks_left_out: u64,
    /// Utilisation of dies and channels over time, by device and unit.
    pub busy: Vec<BusyMap>,
    /// The run over time.
    pub series: Series,
}

/// An instant that stands out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Time since the start of the run.
    pub ns: u64,
    /// Path of the component.
    pub path: String,
    /// Name of the event, such as `member_failed`.
    pub what: String,
}

/// Utilisation of the channels or the dies of a flash device over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyMap {
    /// Path of the device.
    pub path: String,
    /// `channel` or `die`.
    pub unit: String,
    /// By time and number of the unit; counts are ten-thousandths of the time of a cell.
    pub map: HeatMap,
}

/// Activity of the dies and channels of flash devices while a request waited. The request is one of
/// the measured ones; none took longer by more than a 64th.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// The request's operation.
    pub op: String,
    /// Latency of the request.
    pub latency_ns: u64,
    /// Begin of the window: the request's arrival, or where what is remembered begins.
    pub from_ns: u64,
    /// End of the window: the request's completion.
    pub to_ns: u64,
    /// Names of acts.
    pub acts: Vec<String>,
    /// Names of causes.
    pub causes: Vec<String>,
    /// A row per die or channel that did anything.
    pub rows: Vec<ActivityRow>,
}

/// Activity of one die or channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityRow {
    /// Path of its device.
    pub path: String,
    /// Which it is, such as `die 3`.
    pub unit: String,
    /// Begin in ns from the window's, length in ns, and number of the act times the number of
    /// causes plus number of the cause.
    pub pieces: Vec<(u64, u64, usize)>,
}

/// Sums and levels per time bucket. All vectors that are not empty are equally long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Width of a bucket.
    pub bucket_ns: u64,
    /// Requests of every kind completed.
    pub requests: Vec<u64>,
    /// Reads completed.
    pub reads: Vec<u64>,
    /// Writes completed.
    pub writes: Vec<u64>,
    /// Bytes of these reads.
    pub read_bytes: Vec<u64>,
    /// Bytes of these writes.
    pub write_bytes: Vec<u64>,
    /// Mean latency of requests completed in the bucket.
    pub latency_ns_mean: Vec<Option<f64>>,
    /// Their median, within 6.3 %.
    pub latency_ns_p50: Vec<Option<u64>>,
    /// Their 99th percentile, within 6.3 %.
    pub latency_ns_p99: Vec<Option<u64>>,
    /// Their greatest latency.
    pub latency_ns_max: Vec<u64>,
    /// Flash pages programmed for the host, all devices.
    pub host_programs: Vec<u64>,
    /// Flash pages programmed for any cause, all devices.
    pub programs: Vec<u64>,
    /// Flash blocks erased, all devices.
    pub erases: Vec<u64>,
    /// Pages found and not found, by cache.
    pub caches: Vec<CacheSeries>,
    /// Sectors written back.
    pub destaged_sectors: Vec<u64>,
    /// Requests arrived and not completed.
    pub outstanding: GaugeSeries,
    /// Requests waiting, by node.
    pub queue_depth: Vec<GaugeSeries>,
    /// Free flash blocks, by node.
    pub free_blocks: Vec<GaugeSeries>,
    /// Dirty cache pages, by node.
    pub dirty_pages: Vec<GaugeSeries>,
    /// Temperatures in thousandths of a kelvin, by node.
    pub temperature_mk: Vec<GaugeSeries>,
    /// Requests by completion time and latency in ns.
    pub latency_map: HeatMap,
    /// Reads by arrival time and byte address.
    pub read_map: HeatMap,
    /// Writes by arrival time and byte address.
    pub write_map: HeatMap,
    /// Disk arm movements by distance: (least cylinders crossed, movements).
    pub seek_distances: Vec<(u64, u64)>,
}

/// A level per time bucket; `None` before it was first reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GaugeSeries {
    /// The node's path.
    pub path: String,
    /// Mean over the bucket's time.
    pub mean: Vec<Option<f64>>,
    /// Least value.
    pub min: Vec<Option<u64>>,
    /// Greatest value.
    pub max: Vec<Option<u64>>,
}

/// Hits and misses of a cache per time bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheSeries {
    /// The node's path.
    pub path: String,
    /// Pages found.
    pub hits: Vec<u64>,
    /// Pages not found.
    pub misses: Vec<u64>,
}

/// Counts by time and row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Time buckets of the series that one column covers.
    pub buckets_per_column: u64,
    /// Lower bounds of the rows, and the upper bound of the last one.
    pub bounds: Vec<u64>,
    /// Counts column by column, in each by rising row; `-n` stands for n zeros.
    pub counts: Vec<i64>,
}

impl HeatMap {
    /// Writes runs of zeros as one negative number.
    pub fn pack(counts: &[u64]) -> Vec<i64> {
        let mut packed: Vec<i64> = Vec::new();
        for &count in counts {
            match packed.last_mut() {
                Some(run) if count == 0 && *run < 0 => *run -= 1,
                _ if count == 0 => packed.push(-1),
                _ => packed.push(i64::try_from(count).unwrap_or(i64::MAX)),
            }
        }
        packed
    }

    /// The counts with zeros written out.
    pub fn unpacked(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for &entry in &self.counts {
            match u64::try_from(entry) {
                Ok(count) => counts.push(count),
                Err(_) => counts.resize(counts.len() + entry.unsigned_abs() as usize, 0),
            }
        }
        counts
    }
}

/// Joins neighbouring erase counts until at most 256 rows are left.
pub fn wear_rows(wear: &BTreeMap<u32, u64>) -> Vec<(u32, u64)> {
    let (Some(first), Some(last)) = (wear.keys().next(), wear.keys().next_back()) else {
        return Vec::new();
    };
    let width = ((last - first) / 256) + 1;
    let mut rows: Vec<(u32, u64)> = Vec::new();
    for (&erases, &blocks) in wear {
        let from = first + (erases - first) / width * width;
        match rows.last_mut() {
            Some(row) if row.0 == from => row.1 += blocks,
            _ => rows.push((from, blocks)),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_is_undone(counts in prop::collection::vec(0u64..3, 0..100)) {
            let map = HeatMap { counts: HeatMap::pack(&counts), ..HeatMap::default() };
            prop_assert_eq!(map.unpacked(), counts);
        }

        #[test]
        fn wear_rows_keep_every_block(
            wear in prop::collection::btree_map(0u32.., 1u64..1000, 0..600),
        ) {
            let rows = wear_rows(&wear);
            prop_assert!(rows.len() <= 257);
            let blocks: u64 = rows.iter().map(|row| row.1).sum();
            prop_assert_eq!(blocks, wear.values().sum::<u64>());
        }
    }
}
