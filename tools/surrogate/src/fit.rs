//! Tables of a system: knots, refinement, validation.

use crate::bench::{Access, Arrivals, BYTES_MAX, Bench, DeviceState, Load};
use crate::table::{ErrorSummary, Loop, Measured, PROBABILITIES, StateTables, Table, Validation};
use crate::{FORMAT, Surrogate};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{SECTOR_BYTES, Stream};
use hybridsim_report::figures::{binary_size, number};
use hybridsim_simulation::parallel::parallel_map;
use hybridsim_simulation::scenario::{Scenario, resolve};
use hybridsim_simulation::state::PreconditionCache;
use std::collections::{BTreeMap, HashMap};

/// Errors of interpolated means and 99th percentiles beyond which a grid is refined.
pub const MEAN_GOAL: f64 = 0.05;
pub const P99_GOAL: f64 = 0.10;
/// Loads between two knots that decide whether to add one.
const PROBES: usize = 3;
/// Loads that are simulated twice, to find out how far two simulations differ.
const REPEATED: usize = 12;
/// Least share of an operation in the mixes that are validation.
const VALIDATED_SHARE_MIN: f64 = 0.02;
/// Share of the loads for validation that only read, and of those that only write.
const PURE: f64 = 0.25;
/// Draws for each load that is validation, at most: few are new where axes have one knot.
const DRAWS: usize = 100;
/// Largest rate of an open loop, as a part of the throughput. Beyond, queues take longer to settle
/// than a load lasts.
pub const UTILIZATION_MAX: f64 = 0.9;
/// Least share of an operation in a mix: fewer would take too many requests.
const SHARE_MIN: f64 = 0.001;

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// A state or an axis that does not suit the system.
    #[error("{0}")]
    Unsuitable(String),
    /// A load that could not be simulated.
    #[error("{0}")]
    Failed(String),
}

/// First knots of each axis.
#[derive(Clone, Debug)]
pub struct Axes {
    /// Fractions of requests that are reads.
    pub read_share: Vec<f64>,
    /// Sizes in bytes.
    pub bytes: Vec<u64>,
    /// Requests outstanding in closed loops.
    pub depth: Vec<u64>,
    /// Rates of open loops, as fractions of the throughput of a closed loop with the most requests
    /// outstanding.
    pub utilization: Vec<f64>,
}

impl Axes {
    /// Sorts the knots.
    ///
    /// # Errors
    /// Values that no load can have.
    fn checked(mut self, capacity: u64) -> Result<Self, String> {
        for list in [&mut self.read_share, &mut self.utilization] {
            // A negative zero is another knot.
            list.iter_mut().for_each(|value| *value += 0.0);
            list.sort_by(f64::total_cmp);
            list.dedup();
        }
        for list in [&mut self.bytes, &mut self.depth] {
            list.sort_unstable();
            list.dedup();
        }
        let lengths =
            [self.read_share.len(), self.bytes.len(), self.depth.len(), self.utilization.len()];
        if lengths.contains(&0) {
            return Err("each axis needs a value".to_owned());
        }
        if !self.read_share.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Err("read shares are 0 to 1".to_owned());
        }
        let is_rare = |share: &f64| *share > 0.0 && *share < SHARE_MIN;
        if self.read_share.iter().any(|share| is_rare(share) || is_rare(&(1.0 - share))) {
            let most = 1.0 - SHARE_MIN;
            return Err(format!("read shares between 0 and 1 are {SHARE_MIN} to {most}"));
        }
        if !self.utilization.iter().all(|load| *load > 0.0 && *load <= UTILIZATION_MAX) {
            return Err(format!("utilizations are above 0 and up to {UTILIZATION_MAX}"));
        }
        let align = self.bytes[0];
        if !align.is_multiple_of(SECTOR_BYTES) || align == 0 {
            return Err(format!("sizes are multiples of {SECTOR_BYTES} bytes"));
        }
        if let Some(odd) = self.bytes.iter().find(|bytes| !bytes.is_multiple_of(align)) {
            let [odd, align] = [*odd, align].map(binary_size);
            return Err(format!("size {odd} is not a multiple of the smallest, {align}"));
        }
        let most = BYTES_MAX.min(capacity / 2);
        if let Some(long) = self.bytes.iter().find(|bytes| **bytes > most) {
            let [long, most] = [*long, most].map(binary_size);
            return Err(format!("size {long}: at most {most} here"));
        }
        if self.depth[0] == 0 {
            return Err("depths begin at 1".to_owned());
        }
        Ok(self)
    }

    fn knots(&self, kind: Loop) -> [Vec<f64>; 3] {
        let bytes = self.bytes.iter().map(|bytes| *bytes as f64).collect();
        let load = match kind {
            Loop::Closed => self.depth.iter().map(|depth| *depth as f64).collect(),
            Loop::Open => self.utilization.clone(),
        };
        [self.read_share.clone(), bytes, load]
    }
}

/// Options of [`fit`].
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// States of the devices.
    pub states: Vec<DeviceState>,
    /// Order of addresses.
    pub access: Access,
    /// First knots.
    pub axes: Axes,
    /// Requests of each load.
    pub requests: u64,
    /// Most knots of each table.
    pub knots_max: usize,
    /// Loads for the validation of each table.
    pub validation: usize,
    /// Seed of all loads.
    pub seed: u64,
    /// Simulations at once.
    pub jobs: usize,
    /// Stores the states of preconditioned devices.
    pub cache: Option<PreconditionCache>,
}

/// Fits tables to `scenario`, whose workload is ignored. `finished` is called with the number of
/// simulations so far.
///
/// # Errors
/// [`FitError`].
pub fn fit(
    scenario: &Scenario,
    registry: &Registry,
    options: &FitOptions,
    finished: &mut dyn FnMut(usize),
) -> Result<Surrogate, FitError> {
    let align = options.axes.bytes.iter().copied().min().unwrap_or(SECTOR_BYTES);
    let load = (options.access, align.max(SECTOR_BYTES), options.requests);
    // All that may be unsuitable, before the first table.
    let mut benches = BTreeMap::new();
    for &state in &options.states {
        let bench = Bench::new(scenario, registry, state, load, options.cache.clone());
        benches.insert(state.name(), (state, bench.map_err(FitError::Unsuitable)?));
    }
    let Some((_, first)) = benches.values().next() else {
        return Err(FitError::Unsuitable("no state is given".to_owned()));
    };
    let (capacity, queue_depth) = (first.capacity, first.queue_depth());
    let axes = options.axes.clone().checked(capacity).map_err(FitError::Unsuitable)?;
    for kind in [Loop::Closed, Loop::Open] {
        let (knots, most) = (Grid::new(kind, axes.knots(kind)).len(), options.knots_max);
        if knots > most {
            let message = format!("the initial grid has {knots} knots, and {most} are allowed");
            return Err(FitError::Unsuitable(message));
        }
    }
    for (state, bench) in benches.values_mut() {
        if *state == DeviceState::CacheFull {
            bench.fill_cache().map_err(FitError::Unsuitable)?;
        }
    }
    let (mut states, mut done) = (BTreeMap::new(), 0);
    for (name, (_, bench)) in &benches {
        let mut finished = || {
            done += 1;
            finished(done);
        };
        let fitting = Fitting {
            bench,
            options,
            axes: &axes,
            closed: None,
            written_share: 0.0,
            finished: &mut finished,
        };
        let tables = fitting.tables().map_err(|error| match error {
            FitError::Failed(message) => FitError::Failed(format!("state {name}: {message}")),
            other => other,
        })?;
        states.insert((*name).to_owned(), tables);
    }
    Ok(Surrogate {
        format: "hybridsim-surrogate",
        version: FORMAT,
        title: scenario.title.clone(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        system: resolve::Resolved::new(scenario, registry).system(),
        capacity_bytes: capacity,
        queue_depth,
        access: options.access,
        alignment_bytes: align,
        probabilities: PROBABILITIES,
        states,
    })
}

/// A load of a table: read share, bytes, and depth or utilization.
type GridPoint = [f64; 3];

/// A grid that grows.
struct Grid {
    kind: Loop,
    knots: [Vec<f64>; 3],
    /// Results at knots and between them.
    simulated: HashMap<[u64; 3], Measured>,
}

impl Grid {
    fn new(kind: Loop, knots: [Vec<f64>; 3]) -> Self {
        Self { kind, knots, simulated: HashMap::new() }
    }

    fn table(&self) -> Table {
        Table::new(self.kind, &self.knots, |point| self.simulated[&key(point)])
    }

    fn points(&self) -> Vec<GridPoint> {
        let mut points = Vec::new();
        for &share in &self.knots[0] {
            for &bytes in &self.knots[1] {
                points.extend(self.knots[2].iter().map(|load| [share, bytes, *load]));
            }
        }
        points
    }

    fn len(&self) -> usize {
        self.knots.iter().map(Vec::len).product()
    }

    /// The value in the middle between two knots of an axis, if there is one.
    fn middle(&self, axis: usize, at: usize, align: f64) -> Option<f64> {
        let [from, to] = [self.knots[axis][at], self.knots[axis][at + 1]];
        let geometric = (from * to).sqrt();
        let middle = match (axis, self.kind) {
            (1, _) => power_of_two(geometric, align),
            (2, Loop::Closed) => geometric.round(),
            _ => f64::midpoint(from, to),
        };
        // Closer shares and rates make no difference.
        let apart = if axis == 0 || (axis, self.kind) == (2, Loop::Open) { 0.01 } else { 0.0 };
        (middle > from + apart && middle < to - apart).then_some(middle)
    }

    /// The probes between neighbouring knots of an axis, at knots of the others drawn from
    /// `stream`.
    fn probes(&self, align: f64, stream: &mut Stream) -> Vec<Probe> {
        let mut probes: Vec<Probe> = Vec::new();
        for axis in 0..3 {
            let middles =
                (1..self.knots[axis].len()).filter_map(|at| self.middle(axis, at - 1, align));
            for middle in middles {
                for _ in 0..PROBES {
                    let mut point = [0, 1, 2].map(|axis| {
                        let knots = &self.knots[axis];
                        knots[stream.below(knots.len() as u64) as usize]
                    });
                    point[axis] = middle;
                    let probe = Probe { axis, point };
                    if !probes.contains(&probe) {
                        probes.push(probe);
                    }
                }
            }
        }
        probes
    }

    /// Values for new knots, with their axes, where errors at `probes` are too large: worst first.
    fn wanted(&self, probes: &[Probe], goals: [f64; 2]) -> Vec<(usize, f64)> {
        let table = self.table();
        let mut sums: BTreeMap<(usize, u64), (f64, f64)> = BTreeMap::new();
        for Probe { axis, point } in probes {
            let sum = sums.entry((*axis, point[*axis].to_bits())).or_default();
            let excess = excess(&table, *point, &self.simulated[&key(*point)], goals);
            *sum = (sum.0 + excess, sum.1 + 1.0);
        }
        let mut wanted: Vec<(f64, usize, f64)> = sums
            .into_iter()
            .map(|((axis, value), (sum, count))| (sum / count, axis, f64::from_bits(value)))
            .filter(|(excess, ..)| *excess > 1.0)
            .collect();
        wanted.sort_by(|one, other| other.0.total_cmp(&one.0));
        wanted.into_iter().map(|(_, axis, value)| (axis, value)).collect()
    }

    /// Adds knots as long as there are no more than `most`. Returns whether there are new ones.
    fn grow(&mut self, wanted: &[(usize, f64)], most: usize) -> bool {
        let before = self.len();
        for &(axis, value) in wanted {
            if self.len() + self.len() / self.knots[axis].len() <= most {
                let at = self.knots[axis].partition_point(|knot| *knot < value);
                self.knots[axis].insert(at, value);
            }
        }
        self.len() > before
    }
}

/// A load between two knots of an axis, which decides whether to add one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Probe {
    axis: usize,
    point: GridPoint,
}

/// The fit of a state.
struct Fitting<'a> {
    bench: &'a Bench<'a>,
    options: &'a FitOptions,
    axes: &'a Axes,
    /// The table of closed loops, once it is fitted: rates of open loops are fractions of its
    /// throughput.
    closed: Option<Table>,
    /// Largest part of the capacity that a load wrote.
    written_share: f64,
    finished: &'a mut dyn FnMut(),
}

impl Fitting<'_> {
    fn tables(mut self) -> Result<StateTables, FitError> {
        let holds_data = self.axes.read_share.last() == Some(&0.0)
            || self.bench.holds_data().map_err(FitError::Failed)?;
        let closed = self.refined(Grid::new(Loop::Closed, self.axes.knots(Loop::Closed)))?;
        self.closed = Some(closed.table());
        // At knots of closed loops the throughput is simulated, not interpolated.
        let [share, bytes, _] = closed.knots.clone();
        let [.., load] = self.axes.knots(Loop::Open);
        let open = match share.len() * bytes.len() * load.len() <= self.options.knots_max {
            true => [share, bytes, load],
            false => self.axes.knots(Loop::Open),
        };
        let open = self.refined(Grid::new(Loop::Open, open))?;
        let validation = self.validation([&closed, &open])?;
        let written_share = self.written_share;
        let (closed, open) = (closed.table(), open.table());
        Ok(StateTables { closed, open, holds_data, written_share, validation })
    }

    /// `grid` with as many knots as are needed or allowed.
    fn refined(&mut self, mut grid: Grid) -> Result<Grid, FitError> {
        let most = self.options.knots_max;
        let points = grid.points();
        self.simulate(&mut grid, &points)?;
        let mut stream = Stream::new(self.options.seed, "probes");
        let goals = self.goals(&grid, &points, &mut stream)?;
        loop {
            let mut probes = grid.probes(self.axes.bytes[0] as f64, &mut stream);
            probes.retain(|probe| self.load(grid.kind, probe.point).is_some());
            let points: Vec<GridPoint> = probes.iter().map(|probe| probe.point).collect();
            self.simulate(&mut grid, &points)?;
            let wanted = grid.wanted(&probes, goals);
            // The worse half: the others may then be good enough.
            if !grid.grow(&wanted[..wanted.len().div_ceil(2)], most) {
                return Ok(grid);
            }
            let points = grid.points();
            self.simulate(&mut grid, &points)?;
        }
    }

    /// Errors of means and 99th percentiles up to which a grid is good enough: not below how far
    /// two simulations of the same load differ.
    fn goals(
        &mut self,
        grid: &Grid,
        points: &[GridPoint],
        stream: &mut Stream,
    ) -> Result<[f64; 2], FitError> {
        let drawn: Vec<GridPoint> =
            (0..REPEATED).map(|_| points[stream.below(points.len() as u64) as usize]).collect();
        let again = self.measure(grid.kind, &drawn, self.options.seed.wrapping_add(3))?;
        let mut errors = Errors::default();
        for (point, again) in drawn.iter().zip(again) {
            if let Some(load) = self.load(grid.kind, *point) {
                let first = &grid.simulated[&key(*point)];
                errors.add(&load, first, [&again, &again]);
            }
        }
        let validation = errors.validation();
        let noise = [validation.mean, validation.p99].map(|it| it.map_or(0.0, |it| it.mean));
        Ok([MEAN_GOAL.max(noise[0]), P99_GOAL.max(noise[1])])
    }

    /// The load at a point; `None` where its rate is a part of a throughput that is not known.
    fn load(&self, kind: Loop, point: GridPoint) -> Option<Load> {
        let [read_share, bytes, load] = point;
        let arrivals = match kind {
            Loop::Closed => Arrivals::Closed { depth: load as u64 },
            Loop::Open => {
                let closed = self.closed.as_ref()?;
                let depth = *closed.load.last()?;
                Arrivals::Open { iops: load * closed.iops([read_share, bytes, depth])? }
            }
        };
        Some(Load { read_share, bytes: bytes as u64, arrivals })
    }

    /// Simulates the loads at `points` that have not been.
    fn simulate(&mut self, grid: &mut Grid, points: &[GridPoint]) -> Result<(), FitError> {
        let mut new: Vec<GridPoint> = points.to_vec();
        new.retain(|point| !grid.simulated.contains_key(&key(*point)));
        let measured = self.measure(grid.kind, &new, self.options.seed)?;
        grid.simulated.extend(new.into_iter().map(key).zip(measured));
        Ok(())
    }

    fn measure(
        &mut self,
        kind: Loop,
        points: &[GridPoint],
        seed: u64,
    ) -> Result<Vec<Measured>, FitError> {
        let loads = points.iter().map(|point| self.load(kind, *point));
        let loads: Vec<Load> = loads.map(|it| it.expect("the throughput is known")).collect();
        let bench = self.bench;
        let written = loads.iter().map(|load| bench.written_share(load));
        self.written_share = written.fold(self.written_share, f64::max);
        let one = |load: Load| {
            let failed = |error| FitError::Failed(format!("{}: {error}", describe(&load)));
            bench.run(&load, seed).map_err(failed)
        };
        let results = parallel_map(loads, self.options.jobs, one, |_, _| (self.finished)());
        results.into_iter().collect()
    }

    /// Validates both tables on loads drawn at random, none of which a table was fitted to.
    fn validation(&mut self, grids: [&Grid; 2]) -> Result<Validation, FitError> {
        let mut stream = Stream::new(self.options.seed, "validation");
        let mut errors = Errors::default();
        for grid in grids {
            let (kind, table) = (grid.kind, grid.table());
            let mut points: Vec<GridPoint> = Vec::new();
            for _ in 0..DRAWS * self.options.validation {
                let point = self.drawn(grid, &mut stream);
                let is_new = !grid.simulated.contains_key(&key(point)) && !points.contains(&point);
                let is_known = table.at(point).is_some_and(|it| it != Measured::default());
                if is_new && is_known && self.load(kind, point).is_some() {
                    points.push(point);
                }
                if points.len() == self.options.validation {
                    break;
                }
            }
            let [first, second] = [1, 2].map(|more| self.options.seed.wrapping_add(more));
            let first = self.measure(kind, &points, first)?;
            let second = self.measure(kind, &points, second)?;
            for ((point, first), second) in points.iter().zip(first).zip(second) {
                if let Some((load, expected)) = self.load(kind, *point).zip(table.at(*point)) {
                    errors.add(&load, &expected, [&first, &second]);
                }
            }
        }
        Ok(errors.validation())
    }

    /// A load within the grid: the logarithms of size and depth uniform, and so the utilization.
    /// Sizes are the smallest times a power of two.
    fn drawn(&self, grid: &Grid, stream: &mut Stream) -> GridPoint {
        let align = self.axes.bytes[0] as f64;
        let ends = |axis: usize| {
            let knots: &[f64] = &grid.knots[axis];
            (knots[0], knots[knots.len() - 1])
        };
        let mut log_uniform = |axis: usize| {
            let (from, to) = ends(axis);
            (from.ln() + stream.unit() * (to / from).ln()).exp()
        };
        let bytes = power_of_two(log_uniform(1), align);
        let load = match grid.kind {
            Loop::Closed => log_uniform(2).round(),
            Loop::Open => {
                let (from, to) = ends(2);
                from + stream.unit() * (to - from)
            }
        };
        let (least, most) = ends(0);
        let pure = stream.unit();
        let share = match pure {
            _ if pure < PURE && most == 1.0 => 1.0,
            _ if pure > 1.0 - PURE && least == 0.0 => 0.0,
            _ => (least + stream.unit() * (most - least))
                .clamp(VALIDATED_SHARE_MIN, 1.0 - VALIDATED_SHARE_MIN),
        };
        [share.clamp(least, most), bytes, load]
    }
}

/// Relative errors of loads, of which a [`Validation`] is made.
#[derive(Default)]
struct Errors {
    loads: usize,
    means: Vec<f64>,
    p99s: Vec<f64>,
    repeated: Vec<f64>,
    largest: f64,
    worst: String,
}

impl Errors {
    /// Adds a load: the interpolated results, and those of two simulations.
    fn add(&mut self, load: &Load, expected: &Measured, [first, second]: [&Measured; 2]) {
        self.loads += 1;
        for ((expected, first), second) in expected.0.iter().zip(first.0).zip(second.0) {
            let (Some(expected), Some(first), Some(second)) = (expected, first, second) else {
                continue;
            };
            let mean = expected.mean() / first.mean() - 1.0;
            if mean.abs() > self.largest {
                (self.largest, self.worst) = (mean.abs(), describe(load));
            }
            self.means.push(mean);
            self.p99s.push(expected.p99() / first.p99() - 1.0);
            self.repeated.push(second.p99() / first.p99() - 1.0);
        }
    }

    fn validation(self) -> Validation {
        let [mean, p99, p99_repeated] =
            [self.means, self.p99s, self.repeated].map(ErrorSummary::of);
        Validation { loads: self.loads, mean, p99, p99_repeated, worst: self.worst }
    }
}

fn key(point: GridPoint) -> [u64; 3] {
    point.map(f64::to_bits)
}

/// The multiple of `align` by a power of two that is nearest to `bytes`. Other sizes are divided
/// unevenly among dies, and their latencies are not between those of their neighbours.
fn power_of_two(bytes: f64, align: f64) -> f64 {
    align * (bytes / align).log2().round().exp2()
}

/// The error of a table at a load as a part of what is allowed; infinite between loads that only
/// read and loads that only write, where the table has nothing.
fn excess(table: &Table, point: GridPoint, measured: &Measured, [mean, p99]: [f64; 2]) -> f64 {
    let Some(expected) = table.at(point) else { return 0.0 };
    if expected == Measured::default() {
        return f64::INFINITY;
    }
    let pairs = expected.0.into_iter().zip(measured.0);
    let errors = pairs.filter_map(|(expected, measured)| {
        let (expected, measured) = (expected?, measured?);
        let mean = (expected.mean() / measured.mean() - 1.0).abs() / mean;
        let p99 = (expected.p99() / measured.p99() - 1.0).abs() / p99;
        Some(mean.max(p99))
    });
    errors.fold(0.0, f64::max)
}

/// A load in describe.
fn describe(load: &Load) -> String {
    let reads = number(100.0 * load.read_share);
    let size = binary_size(load.bytes);
    match load.arrivals {
        Arrivals::Closed { depth } => format!("{reads} % reads of {size}, {depth} outstanding"),
        Arrivals::Open { iops } => {
            format!("{reads} % reads of {size}, {} requests per second", number(iops))
        }
    }
}
