//! The page of a sweep.

use super::format::bare;
use super::statistics::{Estimate, may_be_equal};
use super::table::{Cell, Row, Table};
use hybridsim_report::sweep;
use std::collections::BTreeSet;

/// Ends of the names of statistics of which more is better.
const MORE_IS_BETTER: &[&str] =
    &["iops", "bytes_per_s", "per_wall_s", "hit_ratio", "hits", "lifetime_s"];

/// The note of a page without sensitivities.
const NO_GRID: &str = "Sensitivities are shown for grids only, where every combination of values \
    has run: elsewhere a difference between two values of one key may come from another key.";

/// Whether there is a row for every combination of values.
fn is_grid(keys: &[sweep::Key], rows: &[sweep::Row]) -> bool {
    let combinations = keys.iter().map(|key| key.values.len()).try_fold(1, usize::checked_mul);
    let places: BTreeSet<&[usize]> = rows.iter().map(|row| row.at.as_slice()).collect();
    combinations == Some(places.len())
}

/// Additions of the page of a search to that of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// Sentences above the table.
    pub notes: Vec<String>,
    /// Names of the columns that were searched for, and whether more is better.
    pub objectives: Vec<(String, bool)>,
    /// The best rows.
    pub best: Vec<usize>,
}

impl Table<'_> {
    /// The sweep as one self-contained HTML file, which names the file with the same figures.
    pub fn html(&self, title: &str, data_file: &str) -> String {
        self.search_html(title, data_file, &Search::default())
    }

    /// The points of a search as [`Table::html`], with its objectives and best rows marked.
    pub fn search_html(&self, title: &str, data_file: &str, search: &Search) -> String {
        let keys: Vec<sweep::Key> = self.keys.iter().enumerate().map(|it| self.key(it)).collect();
        let mut rows: Vec<sweep::Row> = self.rows.iter().map(|row| page_row(row, &keys)).collect();
        for at in &search.best {
            if let Some(row) = rows.get_mut(*at) {
                row.best = true;
            }
        }
        let is_grid = is_grid(&keys, &rows);
        let columns = self.columns.iter().enumerate().map(|(at, column)| {
            let name = &column.name;
            let objective = search.objectives.iter().find(|objective| objective.0 == *name);
            let guess = MORE_IS_BETTER.iter().any(|end| name.ends_with(end));
            sweep::Column {
                name: name.clone(),
                title: sweep::title(name),
                is_objective: objective.is_some(),
                is_shown: column.is_shown,
                more_is_better: objective.map_or(guess, |objective| objective.1),
                bound: None,
                // Elsewhere the change along a key would have in it that of other keys.
                effects: (0..keys.len())
                    .filter(|_| is_grid)
                    .filter_map(|key| self.effect(at, key, &keys, &rows))
                    .collect(),
            }
        });
        let (columns, title) = (columns.collect(), title.to_owned());
        let no_grid = (!is_grid).then(|| NO_GRID.to_owned());
        sweep::page(&sweep::Sweep {
            title,
            notes: search.notes.iter().cloned().chain(no_grid).collect(),
            data_file: data_file.to_owned(),
            seeds: self.seeds(),
            keys,
            columns,
            rows,
        })
    }

    /// By how much the statistic in column `at` changes along `key`; `None` with fewer than two
    /// values. The means of all combinations at a value are compared as those of two rows are: seed
    /// by seed.
    fn effect(
        &self,
        at: usize,
        key: usize,
        keys: &[sweep::Key],
        places: &[sweep::Row],
    ) -> Option<sweep::Effect> {
        let levels = (0..keys[key].values.len()).filter_map(|value| {
            let rows = self.rows.iter().zip(places).filter(|(_, place)| place.at[key] == value);
            let cells: Vec<&Cell> = rows.filter_map(|(row, _)| row.cells[at].as_ref()).collect();
            let mean =
                Estimate::of(&cells.iter().map(|cell| cell.estimate.mean).collect::<Vec<_>>());
            Some((sweep::Level { value, mean: mean?.mean }, by_seed(&cells)))
        });
        let levels: Vec<(sweep::Level, Vec<(u64, f64)>)> = levels.collect();
        let by_mean = |one: &&(sweep::Level, _), other: &&(sweep::Level, _)| {
            one.0.mean.total_cmp(&other.0.mean)
        };
        let (least, most) = (levels.iter().min_by(by_mean)?, levels.iter().max_by(by_mean)?);
        let whole = levels.iter().map(|(level, _)| level.mean).sum::<f64>() / levels.len() as f64;
        let share = (most.0.mean - least.0.mean) / whole.abs();
        (levels.len() > 1).then(|| sweep::Effect {
            key,
            least: least.0,
            most: most.0,
            share: if share.is_finite() { share } else { 0.0 },
            noise: may_be_equal(&least.1, &most.1) == Some(true),
        })
    }

    /// A key with its values in the order in which they appear.
    fn key(&self, (at, name): (usize, &String)) -> sweep::Key {
        let mut values: Vec<String> = Vec::new();
        for row in &self.rows {
            let value = bare(&row.point.values[at]);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        sweep::Key { name: name.clone(), values }
    }
}

/// The mean over several cells at each seed that all of them have.
fn by_seed(cells: &[&Cell]) -> Vec<(u64, f64)> {
    let Some((first, others)) = cells.split_first() else { return Vec::new() };
    let at = |cell: &Cell, seed: u64| cell.values.iter().find(|it| it.0 == seed).map(|it| it.1);
    let mean = |&(seed, value): &(u64, f64)| {
        let rest: Option<f64> = others.iter().map(|cell| at(cell, seed)).sum();
        Some((seed, (value + rest?) / cells.len() as f64))
    };
    first.values.iter().filter_map(mean).collect()
}

fn page_row(row: &Row<'_>, keys: &[sweep::Key]) -> sweep::Row {
    let index = |(key, value): (&sweep::Key, &String)| {
        let value = bare(value);
        key.values.iter().position(|other| *other == value).unwrap_or(0)
    };
    let cell = |cell: &Option<Cell>| {
        cell.as_ref().map(|cell| {
            let (mean, half) = (cell.estimate.mean, cell.estimate.half_width);
            sweep::Cell { mean, half, noise: cell.is_noise == Some(true) }
        })
    };
    sweep::Row {
        at: keys.iter().zip(&row.point.values).map(index).collect(),
        cells: row.cells.iter().map(cell).collect(),
        error: row.error().map(str::to_owned),
        unmet: Vec::new(),
        best: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitivities_need_every_combination() {
        let key = |count: usize| sweep::Key {
            name: "key".to_owned(),
            values: (0..count).map(|value| value.to_string()).collect(),
        };
        let rows = |places: &[[usize; 2]]| -> Vec<sweep::Row> {
            let row = |at: &[usize; 2]| sweep::Row {
                at: at.to_vec(),
                cells: Vec::new(),
                error: None,
                unmet: Vec::new(),
                best: false,
            };
            places.iter().map(row).collect()
        };
        let keys = [key(2), key(2)];
        assert!(is_grid(&keys, &rows(&[[0, 0], [0, 1], [1, 0], [1, 1]])));
        assert!(!is_grid(&keys, &rows(&[[0, 0], [1, 1]])));
        assert!(!is_grid(&keys, &rows(&[[0, 0], [1, 1], [1, 1], [0, 1]])), "one twice");
    }
}
