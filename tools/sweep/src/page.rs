//! The page of a sweep.

use super::format::bare;
use super::table::{Cell, Row, Table};
use hybridsim_report::sweep;

/// Ends of the names of statistics of which more is better.
const MORE_IS_BETTER: &[&str] =
    &["iops", "bytes_per_s", "per_wall_s", "hit_ratio", "hits", "lifetime_s"];

impl Table<'_> {
    /// The sweep as one self-contained HTML file.
    pub fn html(&self, title: &str) -> String {
        let keys: Vec<sweep::Key> = self.keys.iter().enumerate().map(|it| self.key(it)).collect();
        let columns = self.columns.iter().map(|column| sweep::Column {
            name: column.name.clone(),
            is_shown: column.is_shown,
            more_is_better: MORE_IS_BETTER.iter().any(|end| column.name.ends_with(end)),
        });
        let rows = self.rows.iter().map(|row| page_row(row, &keys)).collect();
        let (columns, title) = (columns.collect(), title.to_owned());
        sweep::page(&sweep::Sweep { title, seeds: self.seeds(), keys, columns, rows })
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
    }
}
