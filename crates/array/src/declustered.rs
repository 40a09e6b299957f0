//! Parity declustering: stripes narrower than the array.
//!
//! A stripe takes `width` of the members, so rebuilding one member reads only a share of
//! (width - 1) / (members - 1) of each of the others (Holland and Gibson 1992).
//!
//! The layout consists of *tiles*. A tile is a few rows of chunks; its stripes occupy consecutive
//! positions of the rows, `width` at a time, over the members in an order specific to the tile.
//! Consecutive positions are on different members, also across the end of a row. A tile has
//! width / gcd(members, width) rows, so it ends with a complete stripe. The parity unit rotates by
//! one position from tile to tile.
//!
//! With a prime number of members the orders are the multiples 1, 2, ... of the members' numbers
//! (as PRIME by Alvarez, Burkhard, Stockmeyer and Cristian 1998): any two members then share
//! equally many stripes. Otherwise the orders are random permutations (Merchant and Yu 1996), the
//! same in every run, and shares differ by less than a tenth from their mean.

use super::parity::layout::{Layout, UnitPosition};
use super::parity::{self, Shape};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Component, Stream};

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "declustered",
        summary: "parity declustering: stripes over some of the members, spread evenly over all",
        origin: "Holland and Gibson 1992; orders after Alvarez et al. 1998, Merchant and Yu 1996",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    struct Parameters includes { common: parity::Parameters } {
        width: Option<usize> = Kind::Count { min: 2, max: 1024 }, optional,
            "Units in a stripe, parity included, at most as many as members; by default half of \
             them, but at least one more than parity units";
        parity: usize = Kind::Count { min: 1, max: 2 }, default "1",
            "Parity units in a stripe: as many members may fail";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let parities = params.parity;
    parity::build(input, &params.common, 2, |columns, problems| {
        let width = params.width.unwrap_or((columns / 2).max(parities + 1));
        if width > columns {
            let message = format!("must not exceed the {columns} members");
            problems.push(Problem::new("width", message));
        }
        if width <= parities {
            let message = format!("must exceed the {parities} parity units");
            problems.push(Problem::new("width", message));
        }
        let data = width.saturating_sub(parities).max(1);
        let layout = Declustered::new(columns, width.min(columns));
        Shape { kind: ENTRY.description.name, layout: Box::new(layout), data, parities }
    })
}

/// Number of random orders when the number of members is not prime: enough for even shares, in at
/// most 2 MiB.
fn random_orders(columns: usize) -> usize {
    ((1 << 20) / columns).clamp(1024, 8192)
}

/// The layout.
#[derive(Clone, Debug)]
pub struct Declustered {
    columns: usize,
    width: usize,
    rows_per_tile: u64,
    stripes_per_tile: u64,
    /// Orders of the members, concatenated.
    orders: Vec<u16>,
}

impl Declustered {
    /// Stripes of `width` units over `columns` members; `2 <= width <= columns`.
    pub fn new(columns: usize, width: usize) -> Self {
        let common = gcd(columns, width);
        let mut orders = Vec::new();
        if is_prime(columns) {
            for factor in 1..columns {
                orders.extend((0..columns).map(|position| (position * factor % columns) as u16));
            }
        } else {
            // The layout belongs to the array, not to the run: always the same stream.
            let mut stream = Stream::new(0, "declustered");
            for _ in 0..random_orders(columns) {
                let first = orders.len();
                orders.extend(0..columns as u16);
                for position in (1..columns).rev() {
                    let other = stream.below(position as u64 + 1) as usize;
                    orders.swap(first + position, first + other);
                }
            }
        }
        Self {
            columns,
            width,
            rows_per_tile: (width / common) as u64,
            stripes_per_tile: (columns / common) as u64,
            orders,
        }
    }

    /// Tile, order of its members, first position of the stripe in it.
    fn locate(&self, stripe: u64) -> (u64, &[u16], usize) {
        let tile = stripe / self.stripes_per_tile;
        let order = (tile % (self.orders.len() / self.columns) as u64) as usize;
        let order = &self.orders[order * self.columns..(order + 1) * self.columns];
        (tile, order, (stripe % self.stripes_per_tile) as usize * self.width)
    }

    /// Position of a unit within the stripe: rotates by one from tile to tile.
    fn turn(&self, tile: u64) -> usize {
        // One more per round of the orders, so that order and turn do not stay in step.
        let rounds = tile / (self.orders.len() / self.columns) as u64;
        ((tile + rounds) % self.width as u64) as usize
    }
}

impl Layout for Declustered {
    fn position(&self, stripe: u64, unit: usize) -> UnitPosition {
        let (tile, order, first) = self.locate(stripe);
        let at = first + (unit + self.turn(tile)) % self.width;
        UnitPosition {
            column: order[at % self.columns] as usize,
            row: tile * self.rows_per_tile + (at / self.columns) as u64,
        }
    }

    fn unit_on(&self, stripe: u64, column: usize) -> Option<usize> {
        (0..self.width).find(|unit| self.position(stripe, *unit).column == column)
    }

    fn stripes(&self, rows: u64) -> u64 {
        (rows / self.rows_per_tile).saturating_mul(self.stripes_per_tile)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn is_prime(number: usize) -> bool {
    number >= 2 && (2..number).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Chunks of parity per member, and stripes each pair of members shares.
    fn balance(columns: usize, width: usize, stripes: u64) -> (Vec<u32>, Vec<u32>) {
        let layout = Declustered::new(columns, width);
        let mut parity = vec![0; columns];
        let mut pairs = vec![0; columns * columns];
        for stripe in 0..stripes {
            let units: Vec<usize> =
                (0..width).map(|unit| layout.position(stripe, unit).column).collect();
            parity[units[width - 1]] += 1;
            for (at, a) in units.iter().enumerate() {
                for b in &units[at + 1..] {
                    pairs[a.min(b) * columns + a.max(b)] += 1;
                }
            }
        }
        (parity, pairs.into_iter().filter(|count| *count > 0).collect())
    }

    #[test]
    fn no_place_is_used_twice_and_none_is_left_out() {
        for (columns, width) in [(5, 3), (7, 4), (6, 4), (10, 5), (9, 9), (4, 2), (8, 3)] {
            let layout = Declustered::new(columns, width);
            let rows = layout.rows_per_tile * 40;
            let mut seen = HashSet::new();
            for stripe in 0..layout.stripes(rows) {
                let mut members = HashSet::new();
                for unit in 0..width {
                    let position = layout.position(stripe, unit);
                    assert!(position.row < rows && members.insert(position.column));
                    assert!(
                        seen.insert((position.column, position.row)),
                        "{columns} {width} {position:?}"
                    );
                    assert_eq!(layout.unit_on(stripe, position.column), Some(unit));
                }
            }
            assert_eq!(seen.len() as u64, rows * columns as u64);
        }
    }

    #[test]
    fn prime_arrays_are_balanced_exactly() {
        for (columns, width) in [(5, 3), (7, 3), (11, 4), (13, 5)] {
            let period = (columns - 1) * columns * width;
            let (parity, pairs) = balance(columns, width, period as u64);
            assert_eq!(pairs.len(), columns * (columns - 1) / 2);
            assert!(pairs.windows(2).all(|two| two[0] == two[1]), "{columns} {width} {pairs:?}");
            assert!(parity.windows(2).all(|two| two[0] == two[1]), "{columns} {width} {parity:?}");
        }
    }

    #[test]
    fn other_arrays_are_balanced_within_a_tenth() {
        for (columns, width) in [(6, 4), (10, 4), (12, 5), (20, 5), (21, 8)] {
            let tiles = random_orders(columns) as u64;
            let stripes = Declustered::new(columns, width).stripes_per_tile * tiles;
            let (parity, pairs) = balance(columns, width, stripes);
            for counts in [parity, pairs] {
                let mean = counts.iter().sum::<u32>() as f64 / counts.len() as f64;
                let worst =
                    counts.iter().map(|c| (f64::from(*c) / mean - 1.0).abs()).fold(0.0, f64::max);
                assert!(worst < 0.1, "{columns} {width}: {worst}");
            }
        }
    }
}
