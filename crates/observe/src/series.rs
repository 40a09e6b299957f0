//! How a run went over time, in constant memory: what pictures are drawn from.

use crate::events::AnyEvent::{self, Cache, Common, Disk, Flash};
use crate::logarithm;
use crate::metrics::instant;
use crate::pictures::{CacheSeries, GaugeSeries, HeatMap, Series};
use crate::timeline::{COLUMNS, Clock, Gauge, Map, Track};
use hybridsim_cache::CacheEvent;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::{CommonEvent, ComponentId, EventRecord, EventSink, Lba, Op, SimTime};
use hybridsim_flash::{Cause, FlashEvent};

const ADDRESS_ROWS: usize = 192;
/// Columns a map is stored with at most; pictures are not wider.
pub(crate) const MAP_COLUMNS: usize = 240;

/// The sums kept per time bucket.
#[derive(Clone, Debug, Default)]
struct Tracks {
    reads: Track,
    writes: Track,
    read_bytes: Track,
    write_bytes: Track,
    latency_ns: Track,
    latency_ns_max: Track,
    host_programs: Track,
    programs: Track,
    erases: Track,
    destaged_sectors: Track,
}

impl Tracks {
    fn halve(&mut self) {
        let sums = [
            &mut self.reads,
            &mut self.writes,
            &mut self.read_bytes,
            &mut self.write_bytes,
            &mut self.latency_ns,
            &mut self.host_programs,
            &mut self.programs,
            &mut self.erases,
            &mut self.destaged_sectors,
        ];
        sums.into_iter().for_each(Track::halve_sum);
        self.latency_ns_max.halve_max();
    }
}

/// Pages found and not found in a cache.
#[derive(Clone, Debug, Default)]
struct Lookups {
    hits: Track,
    misses: Track,
}

/// One level per component that reports it.
#[derive(Clone, Debug, Default)]
struct Gauges(Vec<Option<Gauge>>);

impl Gauges {
    #[inline]
    fn set(&mut self, component: ComponentId, now: u64, clock: Clock, value: u32) {
        let at = usize::from(component.0);
        if at >= self.0.len() {
            self.0.resize(at + 1, None);
        }
        let value = u64::from(value);
        self.0[at].get_or_insert_with(|| Gauge::new(now, value)).set(clock, now, value);
    }

    fn halve(&mut self) {
        self.0.iter_mut().flatten().for_each(Gauge::halve);
    }

    fn finish(
        mut self,
        clock: Clock,
        end_ns: u64,
        columns: usize,
        paths: &[String],
    ) -> Vec<GaugeSeries> {
        let named = self.0.iter_mut().enumerate();
        let reported = named.filter_map(|(at, gauge)| gauge.as_mut().map(|gauge| (at, gauge)));
        reported
            .map(|(at, gauge)| {
                let path = paths.get(at).cloned().unwrap_or_else(|| format!("node {at}"));
                gauge_series(path, gauge, clock, end_ns, columns)
            })
            .collect()
    }
}

fn gauge_series(
    path: String,
    gauge: &mut Gauge,
    clock: Clock,
    end_ns: u64,
    columns: usize,
) -> GaugeSeries {
    gauge.advance(clock, end_ns);
    gauge.used(path, columns)
}

/// The fold.
#[derive(Clone, Debug)]
pub struct SeriesFold {
    clock: Clock,
    tracks: Tracks,
    outstanding: Gauge,
    queues: Gauges,
    free_blocks: Gauges,
    dirty_pages: Gauges,
    temperatures: Gauges,
    lookups: Vec<Option<Box<Lookups>>>,
    latencies: Map,
    address_shift: u32,
    read_addresses: Map,
    write_addresses: Map,
    seek_distances: Vec<u64>,
}

impl Default for SeriesFold {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            tracks: Tracks::default(),
            outstanding: Gauge::new(0, 0),
            queues: Gauges::default(),
            free_blocks: Gauges::default(),
            dirty_pages: Gauges::default(),
            temperatures: Gauges::default(),
            lookups: Vec::new(),
            latencies: Map::new(logarithm::BUCKETS),
            address_shift: 3,
            read_addresses: Map::new(ADDRESS_ROWS),
            write_addresses: Map::new(ADDRESS_ROWS),
            seek_distances: vec![0; 34],
        }
    }
}

impl EventSink for SeriesFold {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

impl SeriesFold {
    #[inline(always)]
    fn column(&mut self, now: u64) -> usize {
        if self.clock.column(now) >= COLUMNS {
            self.reach(now);
        }
        self.clock.column(now)
    }

    #[cold]
    fn reach(&mut self, now: u64) {
        while self.clock.column(now) >= COLUMNS {
            self.clock.double();
            self.tracks.halve();
            self.outstanding.halve();
            self.queues.halve();
            self.free_blocks.halve();
            self.dirty_pages.halve();
            self.temperatures.halve();
            for lookups in self.lookups.iter_mut().flatten() {
                lookups.hits.halve_sum();
                lookups.misses.halve_sum();
            }
            self.latencies.halve_columns();
            self.read_addresses.halve_columns();
            self.write_addresses.halve_columns();
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        let now = record.time.as_ns();
        match AnyEvent::of(record) {
            Some(Common(CommonEvent::Arrived { op, lba, .. })) => self.arrive(op, lba, now),
            Some(Common(CommonEvent::Completed { op, sectors, latency, .. })) => {
                self.complete(op, u64::from(sectors) * 512, latency.as_ns(), now);
            }
            Some(Flash(FlashEvent::Program { cause, .. })) => {
                let column = self.column(now);
                self.tracks.programs.add(column, 1);
                if cause == Cause::Host {
                    self.tracks.host_programs.add(column, 1);
                }
            }
            Some(Cache(CacheEvent::CacheLookup { hits, misses, .. })) => {
                let column = self.column(now);
                let lookups = self.lookups(record.component().0.into());
                lookups.hits.add(column, u64::from(hits));
                lookups.misses.add(column, u64::from(misses));
            }
            Some(Disk(DiskEvent::Seek { distance, .. })) => self.seek(distance),
            Some(Disk(DiskEvent::Access { distance, seek, .. })) if !seek.is_zero() => {
                self.seek(distance);
            }
            Some(Common(CommonEvent::QueueDepth { depth })) => {
                self.column(now);
                self.queues.set(record.component(), now, self.clock, depth)
            }
            Some(event) => self.add_rare(event, record.component(), now),
            None => {}
        }
    }

    #[inline(always)]
    fn add_rare(&mut self, event: AnyEvent, component: ComponentId, now: u64) {
        match event {
            Flash(FlashEvent::Erase { .. }) => {
                let column = self.column(now);
                self.tracks.erases.add(column, 1);
            }
            Flash(FlashEvent::FreeBlocks { free }) => {
                self.column(now);
                self.free_blocks.set(component, now, self.clock, free)
            }
            Flash(FlashEvent::Temperature { millikelvin, ago, .. }) => {
                self.column(now);
                if let Some(at) = instant(now, ago) {
                    self.temperatures.set(component, at, self.clock, millikelvin);
                }
            }
            Cache(CacheEvent::DirtyPages { pages }) => {
                self.column(now);
                self.dirty_pages.set(component, now, self.clock, pages)
            }
            Cache(CacheEvent::Destaged { sectors }) => {
                let column = self.column(now);
                self.tracks.destaged_sectors.add(column, u64::from(sectors));
            }
            Common(CommonEvent::PowerCut { .. }) => {
                self.column(now);
                self.outstanding.set(self.clock, now, 0);
            }
            _ => {}
        }
    }

    #[inline]
    fn seek(&mut self, distance: u32) {
        let octave = 64 - u64::from(distance).leading_zeros();
        self.seek_distances[octave as usize] += 1;
    }

    #[inline]
    fn lookups(&mut self, node: usize) -> &mut Lookups {
        if node >= self.lookups.len() {
            self.lookups.resize(node + 1, None);
        }
        self.lookups[node].get_or_insert_default()
    }

    #[inline]
    fn arrive(&mut self, op: Op, lba: Lba, now: u64) {
        let column = self.column(now);
        self.outstanding.set(self.clock, now, self.outstanding.value() + 1);
        let map = match op {
            Op::Read => &mut self.read_addresses,
            Op::Write => &mut self.write_addresses,
            Op::Trim | Op::Flush | Op::Zone(_) => return,
        };
        let row = (lba.0 >> self.address_shift) as usize;
        if row < ADDRESS_ROWS {
            map.count(column, row);
        } else {
            self.arrive_beyond(op, lba, column);
        }
    }

    #[cold]
    fn arrive_beyond(&mut self, op: Op, lba: Lba, column: usize) {
        while (lba.0 >> self.address_shift) as usize >= ADDRESS_ROWS {
            self.address_shift += 1;
            self.read_addresses.halve_rows();
            self.write_addresses.halve_rows();
        }
        let reading = op == Op::Read;
        let map = if reading { &mut self.read_addresses } else { &mut self.write_addresses };
        map.count(column, (lba.0 >> self.address_shift) as usize);
    }

    #[inline]
    fn complete(&mut self, op: Op, bytes: u64, latency_ns: u64, now: u64) {
        let column = self.column(now);
        self.outstanding.set(self.clock, now, self.outstanding.value().saturating_sub(1));
        match op {
            Op::Read => {
                self.tracks.reads.add(column, 1);
                self.tracks.read_bytes.add(column, bytes);
            }
            Op::Write => {
                self.tracks.writes.add(column, 1);
                self.tracks.write_bytes.add(column, bytes);
            }
            Op::Trim | Op::Flush | Op::Zone(_) => {}
        }
        self.tracks.latency_ns.add(column, latency_ns);
        self.tracks.latency_ns_max.raise(column, latency_ns);
        self.latencies.count(column, logarithm::bucket(latency_ns));
    }

    /// The series of a run that ended at `end`; `paths` names the nodes.
    pub fn finish(mut self, end: SimTime, paths: &[String]) -> Series {
        let end_ns = end.as_ns();
        self.reach(end_ns);
        let clock = self.clock;
        let columns = clock.column(end_ns) + 1;
        let of = |gauges: Gauges| gauges.finish(clock, end_ns, columns, paths);
        let outstanding =
            gauge_series(String::new(), &mut self.outstanding, clock, end_ns, columns);
        let tracks = &self.tracks;
        Series {
            bucket_ns: clock.width_ns(),
            requests: (0..columns).map(|at| requests(&self.latencies, at)).collect(),
            reads: tracks.reads.used(columns),
            writes: tracks.writes.used(columns),
            read_bytes: tracks.read_bytes.used(columns),
            write_bytes: tracks.write_bytes.used(columns),
            latency_ns_mean: means(&self.latencies, &tracks.latency_ns, columns),
            latency_ns_p50: quantiles(&self.latencies, columns, 0.5),
            latency_ns_p99: quantiles(&self.latencies, columns, 0.99),
            latency_ns_max: tracks.latency_ns_max.used(columns),
            host_programs: tracks.host_programs.used(columns),
            programs: tracks.programs.used(columns),
            erases: tracks.erases.used(columns),
            caches: caches(&self.lookups, columns, paths),
            destaged_sectors: tracks.destaged_sectors.used(columns),
            outstanding,
            queue_depth: of(self.queues),
            free_blocks: of(self.free_blocks),
            dirty_pages: of(self.dirty_pages),
            temperature_mk: of(self.temperatures),
            latency_map: latency_map(&self.latencies, columns),
            read_map: address_map(&self.read_addresses, columns, self.address_shift),
            write_map: address_map(&self.write_addresses, columns, self.address_shift),
            seek_distances: octaves(&self.seek_distances),
        }
    }
}

fn caches(lookups: &[Option<Box<Lookups>>], columns: usize, paths: &[String]) -> Vec<CacheSeries> {
    let used = lookups.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref()?)));
    used.map(|(at, one)| CacheSeries {
        path: paths.get(at).cloned().unwrap_or_else(|| format!("node {at}")),
        hits: one.hits.used(columns),
        misses: one.misses.used(columns),
    })
    .collect()
}

/// Requests of a time bucket.
fn requests(latencies: &Map, column: usize) -> u64 {
    latencies.column(column).iter().map(|&count| u64::from(count)).sum()
}

fn means(map: &Map, sums: &Track, columns: usize) -> Vec<Option<f64>> {
    let sums = sums.used(columns);
    let mean = |(column, sum): (usize, u64)| {
        let count = requests(map, column);
        (count > 0).then(|| sum as f64 / count as f64)
    };
    sums.into_iter().enumerate().map(mean).collect()
}

/// The middle of the bucket that holds the quantile, per time bucket.
fn quantiles(map: &Map, columns: usize, quantile: f64) -> Vec<Option<u64>> {
    let of = |column: usize| {
        let counts = map.column(column);
        let rank = (requests(map, column) as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        let at = counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank.max(1)
        })?;
        let (low, high) = (logarithm::lower_bound(at), logarithm::lower_bound(at + 1));
        Some(low + (high - low) / 2)
    };
    (0..columns).map(of).collect()
}

fn octaves(counts: &[u64]) -> Vec<(u64, u64)> {
    let used = counts.iter().rposition(|&count| count > 0).map_or(0, |at| at + 1);
    let from = |at: usize| if at == 0 { 0 } else { 1u64 << (at - 1) };
    counts[..used].iter().enumerate().map(|(at, &count)| (from(at), count)).collect()
}

fn latency_map(map: &Map, columns: usize) -> HeatMap {
    let bounds = |rows: std::ops::RangeInclusive<usize>| rows.map(logarithm::lower_bound).collect();
    heat_map(map, columns, bounds)
}

fn address_map(map: &Map, columns: usize, shift: u32) -> HeatMap {
    let bytes = |row: usize| u64::try_from((row as u128) << (shift + 9)).unwrap_or(u64::MAX);
    heat_map(map, columns, |rows| rows.map(bytes).collect())
}

/// The rows in use and their bounds, of at most [`MAP_COLUMNS`] columns.
fn heat_map(
    map: &Map,
    columns: usize,
    bounds: impl Fn(std::ops::RangeInclusive<usize>) -> Vec<u64>,
) -> HeatMap {
    let step = columns.div_ceil(MAP_COLUMNS);
    let used = |row: usize| (0..columns).any(|column| map.column(column)[row] > 0);
    let rows = map.column(0).len();
    let Some(first) = (0..rows).find(|&row| used(row)) else {
        return HeatMap { buckets_per_column: step as u64, ..HeatMap::default() };
    };
    let last = (first..rows).rev().find(|&row| used(row)).unwrap_or(first);
    let mut counts = Vec::new();
    for start in (0..columns).step_by(step) {
        for row in first..=last {
            let group = start..(start + step).min(columns);
            counts.push(group.map(|column| u64::from(map.column(column)[row])).sum());
        }
    }
    HeatMap {
        buckets_per_column: step as u64,
        bounds: bounds(first..=last + 1),
        counts: HeatMap::pack(&counts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_event, ns, record};
    use hybridsim_engine::{PowerState, SECTOR_BYTES};

    fn requests(gap_ns: u64, count: u64) -> Vec<EventRecord> {
        let pair = |at: u64| {
            let (op, sectors, lba) = (Op::Read, 8, Lba(at * 8));
            let arrived = CommonEvent::Arrived { op, sectors, lba };
            let completed = CommonEvent::Completed { op, sectors, lba, latency: ns(gap_ns / 2) };
            let start = at * gap_ns;
            [record(start, 0, arrived), record(start + gap_ns / 2, 0, completed)]
        };
        (0..count).flat_map(pair).collect()
    }

    #[test]
    fn nothing_is_lost_however_long_the_run() {
        for gap in [10, 1_000, 1_000_000, 3_600_000_000_000] {
            let mut fold = SeriesFold::default();
            fold.take(&requests(gap, 1000));
            let series = fold.finish(SimTime::from_ns(gap * 1000), &[]);
            assert_eq!(series.reads.iter().sum::<u64>(), 1000, "gap {gap}");
            assert_eq!(series.read_bytes.iter().sum::<u64>(), 1000 * 8 * SECTOR_BYTES);
            assert_eq!(series.latency_map.unpacked().iter().sum::<u64>(), 1000);
            assert_eq!(series.read_map.unpacked().iter().sum::<u64>(), 1000);
            assert!(series.reads.len() <= COLUMNS);
            assert!(gap < 1000 || series.reads.len() > COLUMNS / 2, "{}", series.reads.len());
            let middle = series.outstanding.mean[series.reads.len() / 2].expect("covered");
            assert!((middle - 0.5).abs() < 0.2, "half of the time one is in flight: {middle}");
            let p99 = series.latency_ns_p99[0].expect("seen") as f64;
            assert!((p99 / (gap / 2) as f64 - 1.0).abs() < 0.13, "{p99}");
        }
    }

    #[test]
    fn the_end_of_time_is_survived() {
        let mut fold = SeriesFold::default();
        fold.take(&every_event());
        let state = CommonEvent::StateTime { state: PowerState::Idle, duration: ns(u64::MAX) };
        fold.take(&[record(u64::MAX, 3, state)]);
        let far = CommonEvent::Arrived { op: Op::Write, sectors: u32::MAX, lba: Lba(u64::MAX) };
        fold.take(&[record(u64::MAX, 0, far)]);
        let series = fold.finish(SimTime::NEVER, &[]);
        assert!(series.reads.len() <= COLUMNS);
        assert_eq!(series.write_map.bounds.last(), Some(&u64::MAX));
    }

    #[test]
    fn every_cache_has_its_own_hits() {
        let mut fold = SeriesFold::default();
        let lookup = |hits, misses| CacheEvent::CacheLookup { op: Op::Read, hits, misses };
        fold.take(&[record(1, 1, lookup(3, 1)), record(1, 2, lookup(0, 1))]);
        // Long after, so that buckets were joined.
        fold.take(&[record(3_000_000, 1, lookup(5, 0))]);
        let paths = ["host", "a", "a/b"].map(str::to_owned);
        let caches = fold.finish(SimTime::from_ns(3_000_000), &paths).caches;
        let sums = |at: usize| {
            let cache = &caches[at];
            let sum = |of: &[u64]| of.iter().sum::<u64>();
            (&cache.path[..], sum(&cache.hits), sum(&cache.misses))
        };
        assert_eq!((sums(0), sums(1), caches.len()), (("a", 8, 1), ("a/b", 0, 1), 2));
    }

    #[test]
    fn seek_distances_are_reported_by_octave() {
        let mut fold = SeriesFold::default();
        for distance in [0, 1, 2, 3, 4, u32::MAX] {
            fold.take(&[record(1, 0, DiskEvent::Seek { distance, duration: ns(1) })]);
        }
        let series = fold.finish(SimTime::from_ns(2), &[]);
        assert_eq!(series.seek_distances[..4], [(0, 1), (1, 1), (2, 2), (4, 1)]);
        assert_eq!(series.seek_distances.last(), Some(&(1 << 31, 1)));
    }
}
