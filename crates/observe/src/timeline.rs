//! A fixed number of time buckets whose width doubles when the run outgrows them.

use crate::pictures::GaugeSeries;

/// Number of time buckets; between half of them and all are in use at the end.
pub const COLUMNS: usize = 480;

/// Which bucket a time falls into.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    shift: u32,
}

impl Default for Clock {
    /// Starts with buckets of 1.024 us.
    fn default() -> Self {
        Self { shift: 10 }
    }
}

impl Clock {
    /// Width of a bucket in ns.
    pub const fn width_ns(self) -> u64 {
        1 << self.shift
    }

    /// The bucket of `time_ns`, at least [`COLUMNS`] when the buckets must double first.
    #[inline]
    pub const fn column(self, time_ns: u64) -> usize {
        (time_ns >> self.shift) as usize
    }

    /// Doubles the width of the buckets.
    pub fn double(&mut self) {
        self.shift += 1;
    }
}

/// Makes each pair of neighbours one, and empties the second half.
pub fn halve<T: Copy + Default>(columns: &mut [T], join: impl Fn(T, T) -> T) {
    let half = columns.len() / 2;
    for at in 0..half {
        columns[at] = join(columns[2 * at], columns[2 * at + 1]);
    }
    columns[half..].fill(T::default());
}

/// A sum per time bucket.
#[derive(Clone, Debug)]
pub struct Track(Vec<u64>);

impl Default for Track {
    fn default() -> Self {
        Self(vec![0; COLUMNS])
    }
}

impl Track {
    /// Adds to a bucket.
    #[inline]
    pub fn add(&mut self, column: usize, amount: u64) {
        self.0[column] = self.0[column].saturating_add(amount);
    }

    /// Raises a bucket to at least `value`, for tracks of greatest values.
    #[inline]
    pub fn raise(&mut self, column: usize, value: u64) {
        self.0[column] = self.0[column].max(value);
    }

    /// Joins neighbours by adding.
    pub fn halve_sum(&mut self) {
        halve(&mut self.0, u64::saturating_add);
    }

    /// Joins neighbours by the greater value.
    pub fn halve_max(&mut self) {
        halve(&mut self.0, u64::max);
    }

    /// The sum over some buckets; those past the last one are empty.
    pub fn sum(&self, columns: std::ops::Range<usize>) -> u64 {
        self.0[columns.start..columns.end.min(COLUMNS)].iter().sum()
    }

    /// The sum of both, bucket by bucket.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one.saturating_add(*other)).collect())
    }

    /// The first `columns` buckets.
    pub fn used(&self, columns: usize) -> Vec<u64> {
        self.0[..columns].to_vec()
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    integral: u128,
    covered: u64,
    min: u64,
    max: u64,
}

impl Default for Cell {
    fn default() -> Self {
        Self { integral: 0, covered: 0, min: u64::MAX, max: 0 }
    }
}

/// A level that changes at known times, per time bucket.
#[derive(Clone, Debug)]
pub struct Gauge {
    cells: Vec<Cell>,
    value: u64,
    since: u64,
}

impl Gauge {
    /// A level first reported at `time_ns`.
    pub fn new(time_ns: u64, value: u64) -> Self {
        Self { cells: vec![Cell::default(); COLUMNS], value, since: time_ns }
    }

    /// The value now.
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// The level is `value` from `time_ns` on. The clock must reach `time_ns`.
    #[inline]
    pub fn set(&mut self, clock: Clock, time_ns: u64, value: u64) {
        self.advance(clock, time_ns);
        self.value = value;
        let cell = &mut self.cells[clock.column(time_ns)];
        cell.min = cell.min.min(value);
        cell.max = cell.max.max(value);
    }

    /// Accounts for the time up to `time_ns`.
    #[inline]
    pub fn advance(&mut self, clock: Clock, time_ns: u64) {
        let last = clock.column(time_ns);
        loop {
            let column = clock.column(self.since);
            let end = if column >= last { time_ns } else { (column as u64 + 1) * clock.width_ns() };
            let span = end.saturating_sub(self.since);
            let cell = &mut self.cells[column];
            cell.integral += u128::from(self.value) * u128::from(span);
            cell.covered += span;
            cell.min = cell.min.min(self.value);
            cell.max = cell.max.max(self.value);
            self.since = self.since.max(end);
            if column >= last {
                break;
            }
        }
    }

    /// Joins neighbours.
    pub fn halve(&mut self) {
        halve(&mut self.cells, |a, b| Cell {
            integral: a.integral + b.integral,
            covered: a.covered + b.covered,
            min: a.min.min(b.min),
            max: a.max.max(b.max),
        });
    }

    /// The first `columns` buckets.
    pub fn used(&self, path: String, columns: usize) -> GaugeSeries {
        let cells = &self.cells[..columns];
        let seen = |cell: &Cell| cell.min <= cell.max;
        let mean = |cell: &Cell| match cell.covered {
            0 => seen(cell).then_some(cell.max as f64),
            covered => Some(cell.integral as f64 / covered as f64),
        };
        GaugeSeries {
            path,
            mean: cells.iter().map(mean).collect(),
            min: cells.iter().map(|cell| seen(cell).then_some(cell.min)).collect(),
            max: cells.iter().map(|cell| seen(cell).then_some(cell.max)).collect(),
        }
    }
}

/// Counts by time bucket and row.
#[derive(Clone, Debug)]
pub struct Map {
    rows: usize,
    cells: Vec<u32>,
}

impl Map {
    /// An empty map with so many rows.
    pub fn new(rows: usize) -> Self {
        Self { rows, cells: vec![0; rows * COLUMNS] }
    }

    /// Counts one.
    #[inline]
    pub fn count(&mut self, column: usize, row: usize) {
        let cell = &mut self.cells[column * self.rows + row];
        *cell = cell.saturating_add(1);
    }

    /// The counts of one time bucket, by row.
    pub fn column(&self, column: usize) -> &[u32] {
        &self.cells[column * self.rows..(column + 1) * self.rows]
    }

    /// Joins neighbouring time buckets.
    pub fn halve_columns(&mut self) {
        let rows = self.rows;
        for column in 0..COLUMNS / 2 {
            for row in 0..rows {
                let (left, right) = (2 * column * rows + row, (2 * column + 1) * rows + row);
                self.cells[column * rows + row] =
                    self.cells[left].saturating_add(self.cells[right]);
            }
        }
        self.cells[COLUMNS / 2 * rows..].fill(0);
    }

    /// Joins neighbouring rows.
    pub fn halve_rows(&mut self) {
        for column in self.cells.chunks_mut(self.rows) {
            halve(column, u32::saturating_add);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gauge_spreads_over_the_buckets_it_spans() {
        let clock = Clock::default();
        let mut gauge = Gauge::new(512, 4);
        gauge.set(clock, 1024 * 3, 8);
        gauge.advance(clock, 1024 * 3 + 512);
        let GaugeSeries { mean, min, max, .. } = gauge.used(String::new(), 5);
        assert_eq!(mean, [Some(4.0), Some(4.0), Some(4.0), Some(8.0), None]);
        assert_eq!((min[3], max[3]), (Some(4), Some(8)), "it was 4 until the bucket began");
        assert_eq!(min[4], None);
    }

    #[test]
    fn halving_loses_nothing() {
        let mut track = Track::default();
        (0..COLUMNS).for_each(|at| track.add(at, at as u64));
        track.halve_sum();
        assert_eq!(track.used(3), [1, 5, 9]);
        assert_eq!(track.used(COLUMNS).iter().sum::<u64>(), 480 * 479 / 2);
        let mut map = Map::new(4);
        map.count(0, 1);
        map.count(1, 1);
        map.count(479, 3);
        map.halve_columns();
        assert_eq!((map.column(0), map.column(239)), (&[0, 2, 0, 0][..], &[0, 0, 0, 1][..]));
        map.halve_rows();
        assert_eq!((map.column(0), map.column(239)), (&[2, 0, 0, 0][..], &[0, 1, 0, 0][..]));
    }

    proptest! {
        /// However the buckets doubled on the way, the integral is the integral.
        #[test]
        fn doubling_keeps_a_gauges_integral(
            steps in prop::collection::vec((0u64..400_000, 0u64..100), 1..60),
        ) {
            let (mut clock, mut gauge) = (Clock::default(), Gauge::new(0, 7));
            let (mut now, mut value, mut integral) = (0, 7, 0u128);
            for (pause, next) in steps {
                integral += u128::from(value * pause);
                (now, value) = (now + pause, next);
                while clock.column(now) >= COLUMNS {
                    clock.double();
                    gauge.halve();
                }
                gauge.set(clock, now, value);
            }
            let sum: u128 = gauge.cells.iter().map(|cell| cell.integral).sum();
            prop_assert_eq!(sum, integral);
            prop_assert_eq!(gauge.cells.iter().map(|cell| cell.covered).sum::<u64>(), now);
        }
    }
}
