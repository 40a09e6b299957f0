//! Tables of a system: knots, refinement, judgement.

use crate::bench::{Access, BYTES_MAX, Bench, DeviceState, Load, Pressure};
use crate::table::{Judged, Loop, Measured, PROBABILITIES, Spread, StateTables, Table};
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
/// Mixes with less of an operation are not drawn for judgement: too few requests.
const RARE: f64 = 0.02;
/// Share of the loads for judgement that only read, and of those that only write.
const PURE: f64 = 0.25;
/// Largest rate of an open loop, as a part of the throughput.
pub const UTILIZATION_MAX: f64 = 0.98;

/// First knots of each axis.
#[derive(Clone, Debug)]
pub struct Axes {
    /// Parts of requests that read.
    pub read_share: Vec<f64>,
    /// Sizes in bytes.
    pub bytes: Vec<u64>,
    /// Requests outstanding in closed loops.
    pub depth: Vec<u64>,
    /// Rates of open loops, as parts of the throughput of a closed loop with the most outstanding.
    pub utilization: Vec<f64>,
}

impl Axes {
    /// Sorts the knots.
    ///
    /// # Errors
    /// Values that no load can have.
    fn checked(mut self, capacity: u64) -> Result<Self, String> {
        for list in [&mut self.read_share, &mut self.utilization] {
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
        if !self.utilization.iter().all(|load| *load > 0.0 && *load <= UTILIZATION_MAX) {
            return Err(format!("utilizations are above 0 and up to {UTILIZATION_MAX}"));
        }
        let align = self.bytes[0];
        if !align.is_multiple_of(SECTOR_BYTES) || align == 0 {
            return Err(format!("sizes are multiples of {SECTOR_BYTES} bytes"));
        }
        if let Some(odd) = self.bytes.iter().find(|bytes| !bytes.is_multiple_of(align)) {
            let [odd, align] = [*odd, align].map(binary_size);
            return Err(format!("size {odd} is no multiple of the smallest, {align}"));
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
    /// Loads for the judgement of each table.
    pub judged: usize,
    /// Seed of all loads.
    pub seed: u64,
    /// Simulations at once.
    pub jobs: usize,
    /// Stores the states of preconditioned devices.
    pub cache: Option<PreconditionCache>,
}

/// Fits tables to `scenario`, whose workload is ignored. `finished` is called with the number of
/// simulations so far; the fit stops when `go_on` returns `false`.
///
/// # Errors
/// When a state or an axis does not suit the system, or a load fails.
pub fn fit(
    scenario: &Scenario,
    registry: &Registry,
    options: &FitOptions,
    finished: &mut dyn FnMut(usize),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Surrogate, String> {
    let mut states = BTreeMap::new();
    let (mut capacity, mut done) = (0, 0);
    let align = options.axes.bytes.iter().copied().min().unwrap_or(SECTOR_BYTES);
    let load = (options.access, align.max(SECTOR_BYTES), options.requests);
    for &state in &options.states {
        let bench = Bench::new(scenario, registry, state, load, options.cache.clone())?;
        capacity = bench.capacity;
        let axes = options.axes.clone().checked(capacity)?;
        let mut finished = || {
            done += 1;
            finished(done);
        };
        let mut fitting =
            Fitting { bench: &bench, options, axes: &axes, finished: &mut finished, go_on };
        let tables = fitting.tables().map_err(|error| match error == INTERRUPTED {
            true => error,
            false => format!("state {}: {error}", state.name()),
        })?;
        states.insert(state.name().to_owned(), tables);
    }
    Ok(Surrogate {
        format: "hybridsim-surrogate",
        version: FORMAT,
        title: scenario.title.clone(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        system: resolve::Resolved::new(scenario, registry).system(),
        capacity_bytes: capacity,
        access: options.access,
        alignment_bytes: align,
        probabilities: PROBABILITIES,
        states,
    })
}

/// A load of a table: read share, bytes, and depth or utilization.
type Place = [f64; 3];

/// A grid that grows.
struct Grid {
    kind: Loop,
    knots: [Vec<f64>; 3],
    simulated: HashMap<[u64; 3], Measured>,
}

impl Grid {
    fn table(&self) -> Table {
        Table::new(self.kind, &self.knots, |place| self.simulated[&place.map(f64::to_bits)])
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for &share in &self.knots[0] {
            for &bytes in &self.knots[1] {
                places.extend(self.knots[2].iter().map(|load| [share, bytes, *load]));
            }
        }
        places
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
        // Nearer knots would be resolved by no load.
        let apart = if axis == 1 || self.kind == Loop::Closed { 0.0 } else { 0.01 };
        (middle > from + apart && middle < to - apart).then_some(middle)
    }
}

/// The fit of a state.
struct Fitting<'a> {
    bench: &'a Bench<'a>,
    options: &'a FitOptions,
    axes: &'a Axes,
    finished: &'a mut dyn FnMut(),
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl Fitting<'_> {
    fn tables(&mut self) -> Result<StateTables, String> {
        let closed = self.refined(Loop::Closed, None)?;
        let open = self.refined(Loop::Open, Some(&closed.table()))?;
        let judged = self.judged([&closed, &open])?;
        Ok(StateTables { closed: closed.table(), open: open.table(), judged })
    }

    /// A grid with as many knots as are needed or allowed. `closed` has the throughput that rates
    /// of an open loop are parts of.
    fn refined(&mut self, kind: Loop, closed: Option<&Table>) -> Result<Grid, String> {
        let mut grid = Grid { kind, knots: self.axes.knots(kind), simulated: HashMap::new() };
        let mut stream = Stream::new(self.options.seed, "probes");
        loop {
            self.simulate(&mut grid, closed)?;
            let mut probes = self.probes(&grid, &mut stream);
            probes.retain(|probe| load(kind, closed, probe.place).is_some());
            let places: Vec<Place> = probes.iter().map(|probe| probe.place).collect();
            let measured = self.measure(kind, closed, &places, self.options.seed)?;
            let table = grid.table();
            let mut sums: BTreeMap<(usize, u64), (f64, f64)> = BTreeMap::new();
            for (probe, measured) in probes.iter().zip(&measured) {
                // The same load may become a knot.
                grid.simulated.insert(probe.place.map(f64::to_bits), *measured);
                let sum = sums.entry((probe.axis, probe.place[probe.axis].to_bits())).or_default();
                *sum = (sum.0 + excess(&table, probe.place, measured), sum.1 + 1.0);
            }
            let mut candidates: Vec<(f64, usize, f64)> = sums
                .into_iter()
                .map(|((axis, value), (sum, count))| (sum / count, axis, f64::from_bits(value)))
                .filter(|(excess, ..)| *excess > 1.0)
                .collect();
            candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
            let mut grew = false;
            // The worse half at once: each round simulates new probes.
            for (_, axis, value) in candidates.iter().take(candidates.len().div_ceil(2)) {
                let more = grid.len() / grid.knots[*axis].len();
                if grid.len() + more <= self.options.knots_max {
                    let at = grid.knots[*axis].partition_point(|knot| knot < value);
                    grid.knots[*axis].insert(at, *value);
                    grew = true;
                }
            }
            if !grew {
                return Ok(grid);
            }
        }
    }

    /// Simulates the knots that have not been.
    fn simulate(&mut self, grid: &mut Grid, closed: Option<&Table>) -> Result<(), String> {
        let mut places = grid.places();
        places.retain(|place| !grid.simulated.contains_key(&place.map(f64::to_bits)));
        let measured = self.measure(grid.kind, closed, &places, self.options.seed)?;
        let keys = places.iter().map(|place| place.map(f64::to_bits));
        grid.simulated.extend(keys.zip(measured));
        Ok(())
    }

    /// Loads in the middle between neighbouring knots of an axis, at knots of the others.
    fn probes(&self, grid: &Grid, stream: &mut Stream) -> Vec<Probe> {
        let align = self.axes.bytes[0] as f64;
        let mut probes: Vec<Probe> = Vec::new();
        for axis in 0..3 {
            for at in 0..grid.knots[axis].len() - 1 {
                let Some(middle) = grid.middle(axis, at, align) else { continue };
                for _ in 0..PROBES {
                    let any = |axis: usize, stream: &mut Stream| {
                        let knots = &grid.knots[axis];
                        knots[stream.below(knots.len() as u64) as usize]
                    };
                    let mut place = [0, 1, 2].map(|axis| any(axis, stream));
                    place[axis] = middle;
                    if !probes.iter().any(|probe| probe.axis == axis && probe.place == place) {
                        probes.push(Probe { axis, place });
                    }
                }
            }
        }
        probes
    }

    /// Simulates loads at `places`.
    fn measure(
        &mut self,
        kind: Loop,
        closed: Option<&Table>,
        places: &[Place],
        seed: u64,
    ) -> Result<Vec<Measured>, String> {
        let loads: Option<Vec<Load>> =
            places.iter().map(|place| load(kind, closed, *place)).collect();
        let loads = loads.ok_or("closed loops have no throughput at a load of open ones")?;
        let (bench, go_on) = (self.bench, self.go_on);
        let one = |load: Load| match go_on() {
            true => bench.run(&load, seed).map_err(|error| format!("{}: {error}", words(&load))),
            false => Err(INTERRUPTED.to_owned()),
        };
        let results = parallel_map(loads, self.options.jobs, one, |_, _| (self.finished)());
        results.into_iter().collect()
    }

    /// Judges both tables on loads drawn at random, none of which a table was fitted to.
    fn judged(&mut self, grids: [&Grid; 2]) -> Result<Judged, String> {
        let mut stream = Stream::new(self.options.seed, "judgement");
        let tables = grids.map(Grid::table);
        let (mut means, mut p99s, mut repeats) = (Vec::new(), Vec::new(), Vec::new());
        let (mut loads, mut worst) = (0, (0.0, String::new()));
        for (grid, table) in grids.iter().zip(&tables) {
            let closed = Some(&tables[0]);
            let mut places = Vec::new();
            // On axes with one knot each, every load is fitted to.
            for _ in 0..100 * self.options.judged {
                let place = self.drawn(grid, &mut stream);
                let is_new = !grid.simulated.contains_key(&place.map(f64::to_bits));
                if is_new && load(grid.kind, closed, place).is_some() && !places.contains(&place) {
                    places.push(place);
                }
                if places.len() == self.options.judged {
                    break;
                }
            }
            let [first, second] = [1, 2].map(|more| {
                self.measure(grid.kind, closed, &places, self.options.seed.wrapping_add(more))
            });
            let (first, second) = (first?, second?);
            loads += places.len();
            for ((place, first), second) in places.iter().zip(first).zip(second) {
                let Some(expected) = table.at(*place) else { continue };
                for ((expected, first), second) in expected.0.into_iter().zip(first.0).zip(second.0)
                {
                    let (Some(expected), Some(first), Some(second)) = (expected, first, second)
                    else {
                        continue;
                    };
                    let mean = expected.mean() / first.mean() - 1.0;
                    if mean.abs() > worst.0 {
                        let load = load(grid.kind, closed, *place);
                        worst = (mean.abs(), load.map_or_else(String::new, |it| words(&it)));
                    }
                    means.push(mean);
                    p99s.push(expected.p99() / first.p99() - 1.0);
                    repeats.push(second.p99() / first.p99() - 1.0);
                }
            }
        }
        let [mean, p99, p99_repeated] = [means, p99s, repeats].map(Spread::of);
        Ok(Judged { loads, mean, p99, p99_repeated, worst: worst.1 })
    }

    /// A load within the grid: the logarithms of size and depth uniform, and so the utilization.
    /// Sizes are the smallest times a power of two.
    fn drawn(&self, grid: &Grid, stream: &mut Stream) -> Place {
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
            _ if pure < 2.0 * PURE && least == 0.0 => 0.0,
            _ => (least + stream.unit() * (most - least)).clamp(RARE, 1.0 - RARE),
        };
        [share.clamp(least, most), bytes, load]
    }
}

/// The message of a fit that was interrupted.
pub const INTERRUPTED: &str = "interrupted";

/// The multiple of `align` by a power of two that is nearest to `bytes`. Other sizes are divided
/// unevenly among dies, which no interpolation meets.
fn power_of_two(bytes: f64, align: f64) -> f64 {
    align * (bytes / align).log2().round().exp2()
}

struct Probe {
    axis: usize,
    place: Place,
}

/// The load at a place; `None` where its rate is a part of a throughput that `closed` lacks.
fn load(kind: Loop, closed: Option<&Table>, place: Place) -> Option<Load> {
    let [read_share, bytes, load] = place;
    let pressure = match kind {
        Loop::Closed => Pressure::Closed { depth: load as u64 },
        Loop::Open => {
            let closed = closed?;
            let depth = closed.load[closed.load.len() - 1];
            Pressure::Open { iops: load * closed.iops([read_share, bytes, depth])? }
        }
    };
    Some(Load { read_share, bytes: bytes as u64, pressure })
}

/// The error of a table at a load as a part of what is allowed.
fn excess(table: &Table, place: Place, measured: &Measured) -> f64 {
    let Some(expected) = table.at(place) else { return 0.0 };
    let pairs = expected.0.into_iter().zip(measured.0);
    let errors = pairs.filter_map(|(expected, measured)| {
        let (expected, measured) = (expected?, measured?);
        let mean = (expected.mean() / measured.mean() - 1.0).abs() / MEAN_GOAL;
        let p99 = (expected.p99() / measured.p99() - 1.0).abs() / P99_GOAL;
        Some(mean.max(p99))
    });
    errors.fold(0.0, f64::max)
}

/// A load in words.
fn words(load: &Load) -> String {
    let reads = number(100.0 * load.read_share);
    let size = binary_size(load.bytes);
    match load.pressure {
        Pressure::Closed { depth } => format!("{reads} % reads of {size}, {depth} outstanding"),
        Pressure::Open { iops } => {
            format!("{reads} % reads of {size}, {} requests per second", number(iops))
        }
    }
}
