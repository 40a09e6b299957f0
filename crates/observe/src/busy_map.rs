//! How busy channels and dies were over time, in constant memory.

use crate::pictures::{BusyMap, HeatMap};
use crate::series::MAP_COLUMNS;
use crate::timeline::{COLUMNS, Clock, Track};
use hybridsim_flash::FlashUnit;

/// Rows of a map; where there are more units, neighbours share one.
const ROWS_MAX: usize = 64;

/// The count of a cell that was busy all the time.
const WHOLE: u128 = 10_000;

/// Busy time per row of units and time bucket.
#[derive(Clone, Debug, Default)]
struct Rows {
    tracks: Vec<Track>,
    /// Units per row, as a power of two.
    shift: u32,
}

impl Rows {
    #[inline]
    fn row(&mut self, unit: usize) -> &mut Track {
        if unit >> self.shift >= self.tracks.len() {
            self.add_row(unit);
        }
        &mut self.tracks[unit >> self.shift]
    }

    #[cold]
    fn add_row(&mut self, unit: usize) {
        while unit >> self.shift >= ROWS_MAX {
            self.shift += 1;
            let pairs = self.tracks.chunks(2).map(|pair| match pair {
                [one, other] => one.plus(other),
                odd => odd[0].clone(),
            });
            self.tracks = pairs.collect();
        }
        let row = unit >> self.shift;
        if row >= self.tracks.len() {
            self.tracks.resize_with(row + 1, Track::default);
        }
    }

    /// The map of `units` units up to `end_ns`.
    fn map(&self, clock: Clock, end_ns: u64, units: usize) -> HeatMap {
        let columns = clock.column(end_ns) + 1;
        let step = columns.div_ceil(MAP_COLUMNS);
        let per_row = 1usize << self.shift;
        let rows = units.div_ceil(per_row);
        let mut counts = Vec::with_capacity(rows * columns.div_ceil(step));
        for first in (0..columns).step_by(step) {
            let begin = first as u64 * clock.width_ns();
            let width = (step as u64 * clock.width_ns()).min(end_ns - begin).max(1);
            for row in 0..rows {
                let own = per_row.min(units - row * per_row) as u64;
                let busy = self.tracks.get(row).map_or(0, |row| row.sum(first..first + step));
                let share = u128::from(busy) * WHOLE / u128::from(width * own);
                // A unit that was busy at all is seen.
                counts.push((share as u64).max(u64::from(busy > 0)));
            }
        }
        let bounds = (0..=rows).map(|row| (row * per_row).min(units) as u64).collect();
        HeatMap { buckets_per_column: step as u64, bounds, counts: HeatMap::pack(&counts) }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BusyMaps {
    clock: Clock,
    /// Channels and dies, by node.
    devices: Vec<[Rows; 2]>,
}

impl BusyMaps {
    /// The unit of a node was busy from `begin` to `end`.
    #[inline]
    pub fn add(&mut self, node: usize, unit: FlashUnit, begin: u64, end: u64) {
        if begin >= end {
            return;
        }
        if self.clock.column(end) >= COLUMNS {
            self.reach(end);
        }
        if node >= self.devices.len() {
            self.devices.resize_with(node + 1, Default::default);
        }
        let (kind, number) = match unit {
            FlashUnit::Channel(number) => (0, number),
            FlashUnit::Die(number) => (1, number),
        };
        let (clock, row) = (self.clock, self.devices[node][kind].row(number.into()));
        let mut from = begin;
        while from < end {
            let column = clock.column(from);
            let to = end.min((column as u64 + 1) * clock.width_ns());
            row.add(column, to - from);
            from = to;
        }
    }

    #[cold]
    fn reach(&mut self, time: u64) {
        while self.clock.column(time) >= COLUMNS {
            self.clock.double();
            let rows = self.devices.iter_mut().flatten();
            rows.flat_map(|rows| &mut rows.tracks).for_each(Track::halve_sum);
        }
    }

    /// The maps of a node with so many channels and dies, up to `end_ns`.
    pub fn of(&mut self, node: usize, path: &str, units: [usize; 2], end_ns: u64) -> Vec<BusyMap> {
        self.reach(end_ns);
        let Some(device) = self.devices.get(node) else { return Vec::new() };
        let map = |((rows, units), unit): ((&Rows, usize), &str)| BusyMap {
            path: path.to_owned(),
            unit: unit.to_owned(),
            map: rows.map(self.clock, end_ns, units),
        };
        let kinds = device.iter().zip(units).zip(["channel", "die"]);
        kinds.filter(|((rows, _), _)| !rows.tracks.is_empty()).map(map).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_lies_where_it_was_spent() {
        let mut maps = BusyMaps::default();
        // Three quarters of the second bucket, and a quarter of the third.
        maps.add(1, FlashUnit::Die(1), 1024 + 256, 2048 + 256);
        maps.add(1, FlashUnit::Die(0), 10, 11);
        let found = maps.of(1, "ssd", [0, 3], 3 * 1024 - 1);
        let [dies] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (&*dies.path, &*dies.unit, &dies.map.bounds[..]),
            ("ssd", "die", &[0, 1, 2, 3][..])
        );
        assert_eq!(dies.map.unpacked(), [9, 0, 0, 0, 7500, 0, 0, 2502, 0]);
        assert!(maps.of(0, "host", [0, 0], 100).is_empty());
        assert!(maps.of(7, "none", [1, 1], 100).is_empty());
    }

    #[test]
    fn many_units_and_long_runs_keep_their_share() {
        let mut maps = BusyMaps::default();
        // Every die is busy for half of each of a hundred periods.
        for period in 0..100u64 {
            for die in 0..200 {
                let begin = period * 1_000_000;
                maps.add(0, FlashUnit::Die(die), begin, begin + 500_000);
            }
        }
        let map = &maps.of(0, "ssd", [0, 200], 100_000_000)[0].map;
        assert_eq!((map.bounds.len(), map.bounds[50]), (51, 200), "four dies to a row");
        let counts = map.unpacked();
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        assert!((mean - 5000.0).abs() < 100.0, "{mean}");
    }
}
