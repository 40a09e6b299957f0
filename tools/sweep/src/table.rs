//! A sweep as a table: one row per combination, with its values and statistics over seeds.

use super::statistics::{Estimate, may_be_equal};
use super::{Outcome, Point};
use hybridsim_observe::RunResults;
use hybridsim_report::column::Numbers;

type Figure = fn(&RunResults) -> Option<f64>;

/// The standard statistics, units last in the name.
const STANDARD: &[(&str, Figure)] = &[
    ("requests", |run| Some(run.requests as f64)),
    ("mean_us", |run| run.latency_ns.all.mean.map(micros)),
    ("p50_us", |run| run.latency_ns.all.p50.map(|ns| micros(ns as f64))),
    ("p99_us", |run| run.latency_ns.all.p99.map(|ns| micros(ns as f64))),
    ("p999_us", |run| run.latency_ns.all.p999.map(|ns| micros(ns as f64))),
    ("read_mean_us", |run| run.latency_ns.read.mean.map(micros)),
    ("write_mean_us", |run| run.latency_ns.write.mean.map(micros)),
    ("iops", |run| run.throughput.iops),
    ("bytes_per_s", |run| run.throughput.bytes_per_s),
    ("energy_j", |run| run.totals.energy_j),
    ("erases", |run| run.totals.erases.map(|erases| erases as f64)),
    ("write_amplification", |run| run.totals.write_amplification),
    ("hit_ratio", |run| run.totals.hit_ratio),
    ("simulated_s", |run| Some(run.simulated_ns as f64 / 1e9)),
    ("wall_s", |run| Some(run.wall_s)),
];

const SHOWN: &[&str] =
    &["mean_us", "p99_us", "iops", "energy_j", "erases", "write_amplification", "hit_ratio"];

fn micros(ns: f64) -> f64 {
    ns / 1e3
}

/// A table of finished points.
pub struct Table<'p> {
    /// The keys that vary.
    pub keys: Vec<String>,
    /// The statistics.
    pub columns: Vec<Column>,
    /// The combinations, in the order of the plan.
    pub rows: Vec<Row<'p>>,
}

/// A statistic.
pub struct Column {
    /// The metric's name, or its path in the results.
    pub name: String,
    /// Whether the terminal shows it.
    pub is_shown: bool,
}

/// A combination.
pub struct Row<'p> {
    /// The combination's first point.
    pub point: &'p Point,
    /// The outcomes by seed.
    pub outcomes: Vec<&'p Outcome>,
    points: Vec<&'p Point>,
    /// The statistics, by column; none where a seed failed.
    pub cells: Vec<Option<Cell>>,
}

/// A statistic of a combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The mean over the seeds.
    pub estimate: Estimate,
    /// Whether the difference from the first combination is within noise; `None` with fewer than
    /// two seeds that both have.
    pub is_noise: Option<bool>,
    /// Seeds and values.
    pub(crate) values: Vec<(u64, f64)>,
}

impl Row<'_> {
    /// The results by seed.
    pub fn results(&self) -> impl Iterator<Item = &RunResults> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Done(run) => Some(&**run),
            Outcome::Failed(_) | Outcome::Refused(_) => None,
        })
    }

    /// Why the combination failed at some seed.
    pub fn error(&self) -> Option<&str> {
        self.outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Done(_) => None,
            Outcome::Failed(reason) | Outcome::Refused(reason) => Some(reason.as_str()),
        })
    }

    /// Requests measured, at the seed with the fewest.
    pub fn measured(&self) -> u64 {
        self.results().map(|run| run.latency_ns.all.count).min().unwrap_or(0)
    }
}

impl<'p> Table<'p> {
    /// The table of `finished` points, which are in the order of the plan, with further columns by
    /// their paths in the results.
    ///
    /// # Errors
    /// A path that no results have.
    pub fn new(
        keys: &[&str],
        paths: &[String],
        finished: &[(&'p Point, &'p Outcome)],
    ) -> Result<Self, String> {
        let mut rows: Vec<Row<'p>> = Vec::new();
        for (point, outcome) in finished {
            // A combination that is in the plan twice is two rows: its seeds start again.
            let repeats = |row: &&mut Row<'_>| {
                let is_later =
                    row.points.last().is_none_or(|last| point.repetition > last.repetition);
                is_later && row.point.repeats(point)
            };
            match rows.last_mut().filter(repeats) {
                Some(row) => {
                    row.outcomes.push(outcome);
                    row.points.push(point);
                }
                None => {
                    let (outcomes, points) = (vec![*outcome], vec![*point]);
                    rows.push(Row { point, outcomes, points, cells: Vec::new() });
                }
            }
        }
        check(&rows, paths)?;
        for row in &mut rows {
            row.cells = cells(row, paths);
        }
        if let Some((first, others)) = rows.split_first_mut() {
            others.iter_mut().for_each(|row| compare(&mut row.cells, &first.cells));
        }
        let standard = STANDARD.iter().map(|(name, _)| Column {
            name: (*name).to_owned(),
            is_shown: paths.is_empty() && SHOWN.contains(name),
        });
        let added = paths.iter().map(|path| Column { name: path.clone(), is_shown: true });
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Ok(Self { keys, columns: standard.chain(added).collect(), rows })
    }

    /// Shows the usual statistics next to further columns.
    #[must_use]
    pub fn with_usual(mut self) -> Self {
        for column in self.columns.iter_mut().filter(|it| SHOWN.contains(&it.name.as_str())) {
            column.is_shown = true;
        }
        self
    }

    /// Seeds per combination.
    pub fn seeds(&self) -> usize {
        self.rows.iter().map(|row| row.outcomes.len()).max().unwrap_or(1)
    }
}

/// Checks that each path leads to a number in some results: a component may be in a few only.
fn check(rows: &[Row<'_>], paths: &[String]) -> Result<(), String> {
    for path in paths {
        let mut wrong = None;
        for run in rows.iter().flat_map(Row::results) {
            match Numbers::new(run).check(path) {
                Ok(()) => {
                    wrong = None;
                    break;
                }
                Err(error) => {
                    wrong.get_or_insert(error);
                }
            }
        }
        if let Some(error) = wrong {
            return Err(error);
        }
    }
    Ok(())
}

fn cells(row: &Row<'_>, paths: &[String]) -> Vec<Option<Cell>> {
    let runs: Vec<&RunResults> = row.results().collect();
    if runs.len() < row.outcomes.len() {
        return vec![None; STANDARD.len() + paths.len()];
    }
    let cell = |values: Vec<Option<f64>>| {
        let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        let estimate = Estimate::of(&values)?;
        let seeds = row.points.iter().map(|point| point.seed.unwrap_or(point.repetition));
        let values = seeds.zip(values).collect();
        Some(Cell { estimate, is_noise: None, values })
    };
    let standard = STANDARD.iter().map(|(_, read)| runs.iter().map(|run| read(run)).collect());
    let mut cells: Vec<Option<Cell>> = standard.map(cell).collect();
    if !paths.is_empty() {
        let numbers: Vec<Numbers> = runs.iter().map(|run| Numbers::new(run)).collect();
        for path in paths {
            cells.push(cell(numbers.iter().map(|numbers| numbers.get(path)).collect()));
        }
    }
    cells
}

fn compare(cells: &mut [Option<Cell>], first: &[Option<Cell>]) {
    for (cell, first) in cells.iter_mut().zip(first) {
        if let (Some(cell), Some(first)) = (cell, first) {
            cell.is_noise = may_be_equal(&cell.values, &first.values);
        }
    }
}
