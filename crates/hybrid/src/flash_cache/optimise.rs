//! The division of flash with the least mean access cost (op-fcl, algorithm 1).

use super::cost::{Costs, Demand, access};
use serde::{Deserialize, Serialize};

/// The divisions that are compared.
#[derive(Clone, Copy, Debug)]
pub struct DivisionGrid {
    /// Steps of `u` between 0 and 1.
    pub u_steps: u32,
    pub r_steps: u32,
    /// The largest possible `u`.
    pub u_max: f64,
}

/// A division of flash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Division {
    /// Share used for caching; the rest is over-provisioned.
    pub u: f64,
    /// Share of that for the read cache; the rest is the write cache.
    pub r: f64,
}

/// The cheapest division on the grid, the first of equals. With `fixed`, `u` is given.
pub fn cheapest(
    grid: &DivisionGrid,
    costs: &Costs,
    demand: &dyn Demand,
    pages: f64,
    wear: f64,
    fixed: Option<f64>,
) -> Division {
    let mut best = (f64::INFINITY, Division { u: fixed.unwrap_or(grid.u_max), r: 0.5 });
    let of_grid = |step: u32| f64::from(step) / f64::from(grid.u_steps);
    // The last `u` tried is the largest possible one.
    for step in 1..=grid.u_steps {
        let u = match fixed {
            Some(u) if step == 1 => u,
            Some(_) => break,
            None if step == grid.u_steps => grid.u_max,
            None if of_grid(step) < grid.u_max => of_grid(step),
            None => continue,
        };
        for step in 0..=grid.r_steps {
            let r = f64::from(step) / f64::from(grid.r_steps);
            let cost = access(costs, demand, pages, u, r, wear);
            if cost < best.0 {
                best = (cost, Division { u, r });
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::super::cost::published;
    use super::*;

    /// Hit rates that saturate at given sizes.
    struct Saturating {
        read_pages: f64,
        write_pages: f64,
        reads: f64,
    }

    impl Demand for Saturating {
        fn read_hits(&self, pages: f64) -> f64 {
            0.9 * (pages / self.read_pages).min(1.0)
        }
        fn write_hits(&self, pages: f64) -> f64 {
            0.9 * (pages / self.write_pages).min(1.0)
        }
        fn read_share(&self) -> f64 {
            self.reads
        }
        fn reads_of_write_hits(&self) -> f64 {
            0.2
        }
    }

    const GRID: DivisionGrid = DivisionGrid { u_steps: 16, r_steps: 32, u_max: 0.95 };

    #[test]
    fn it_is_the_minimum_of_the_grid() {
        let costs = published(102.4e-6);
        for (read_pages, write_pages, reads) in
            [(100.0, 900.0, 0.1), (900.0, 100.0, 0.9), (300.0, 300.0, 0.5), (5e3, 5e3, 0.3)]
        {
            let demand = Saturating { read_pages, write_pages, reads };
            let found = cheapest(&GRID, &costs, &demand, 1000.0, 0.0, None);
            let cost = |u, r| access(&costs, &demand, 1000.0, u, r, 0.0);
            let least = cost(found.u, found.r);
            for u in (1..16).map(|step| f64::from(step) / 16.0) {
                for r in (0..=32).map(|step| f64::from(step) / 32.0) {
                    assert!(u > GRID.u_max || least <= cost(u, r), "{u} {r} is cheaper");
                }
            }
        }
    }

    #[test]
    fn what_is_read_gets_space_and_what_is_written_leaves_some_free() {
        let costs = published(102.4e-6);
        let reads = Saturating { read_pages: 2e3, write_pages: 10.0, reads: 1.0 };
        let found = cheapest(&GRID, &costs, &reads, 1000.0, 0.0, None);
        assert!(found.u > 0.75 && found.r > 0.9, "{found:?}");
        let writes = Saturating { read_pages: 10.0, write_pages: 400.0, reads: 0.0 };
        let found = cheapest(&GRID, &costs, &writes, 1000.0, 0.0, None);
        assert!(found.u < 0.8 && found.r < 0.5, "{found:?}");
        let careful = cheapest(&GRID, &costs, &writes, 1000.0, 1.0, None);
        assert!(careful.u <= found.u, "{careful:?}: erases that cost more leave more space free");
    }
}
