//! Parity of data versions in verified runs: the code's arithmetic is applied to the versions of
//! sectors in place of their bytes.
//!
//! The matrix has a row for each data and parity unit and a column for each sector of the
//! operation's span.

use super::ParityArray;
use super::galois::{factor, inverse, solve, times};
use super::op::{Purpose, Unit};
use super::plan::Plan;
use hybridsim_engine::{Ctx, DataSlice, Op};

impl ParityArray {
    fn span_of(&self, index: u32) -> (usize, usize) {
        let (from, to) = self.ops[index as usize].span(self.chunk32());
        (from as usize, (to - from) as usize)
    }

    fn unit(&self, index: u32, unit: usize) -> Unit {
        self.units[index as usize * self.width() + unit]
    }

    /// Loads the data read into the matrix, reconstructs missing units and inserts the new data,
    /// as [`ParityArray::unit_versions`] requires.
    pub(super) fn prepare(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        if !ctx.verifying() {
            return;
        }
        let op = self.ops[index as usize];
        self.load(ctx, index);
        if op.plan == Plan::Solve {
            self.solve(index);
        }
        if matches!(op.purpose, Purpose::Request(..)) {
            self.overlay(ctx, index);
        }
    }

    fn load(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let (first, length) = self.span_of(index);
        self.matrix.clear();
        self.matrix.resize(self.width() * length, 0);
        for number in 0..self.width() {
            let unit = self.unit(index, number);
            let versions = ctx.data().versions(unit.data, unit.to - unit.from);
            if !versions.is_empty() {
                let at = number * length + unit.from as usize - first;
                self.matrix[at..at + versions.len()].copy_from_slice(versions);
            }
        }
    }

    /// Replaces old by new data. With [`Plan::Modify`] a row becomes the difference instead.
    fn overlay(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let (first, length) = self.span_of(index);
        let (op, chunk) = (self.ops[index as usize], self.chunk32());
        for unit in 0..self.shape.data {
            let (from, to) = op.touched(unit, chunk);
            if from == to {
                continue;
            }
            let new = ctx.data().versions(op.data_at(unit, from, chunk), to - from);
            let at = unit * length + from as usize - first;
            for (old, new) in self.matrix[at..].iter_mut().zip(new) {
                *old = if op.plan == Plan::Modify { *old ^ new } else { *new };
            }
        }
    }

    /// Reconstructs the missing data units from the parity units read.
    fn solve(&mut self, index: u32) {
        let (_, length) = self.span_of(index);
        let data = self.shape.data;
        let mut missing = (0..data).filter(|unit| self.unit(index, *unit).missing);
        let (a, b) = (missing.next(), missing.next());
        let Some(a) = a else { return };
        let was_read = |parity: usize| {
            let unit = self.unit(index, data + parity);
            unit.from < unit.to
        };
        let only = usize::from(!was_read(0));
        let factors: Vec<[u8; 2]> = (0..data).map(|unit| [1, factor(1, unit)]).collect();
        for sector in 0..length {
            let mut sums = [0u64; 2];
            for (parity, sum) in sums.iter_mut().enumerate().take(self.shape.parities) {
                *sum = self.matrix[(data + parity) * length + sector];
                for (unit, factors) in factors.iter().enumerate() {
                    if Some(unit) != b && unit != a {
                        *sum ^= times(factors[parity], self.matrix[unit * length + sector]);
                    }
                }
            }
            match b {
                None => {
                    let value = times(inverse(factors[a][only]), sums[only]);
                    self.matrix[a * length + sector] = value;
                }
                Some(b) => {
                    let (x, y) = solve(factors[a][1], factors[b][1], sums[0], sums[1]);
                    self.matrix[a * length + sector] = x;
                    self.matrix[b * length + sector] = y;
                }
            }
        }
    }

    /// A buffer with the versions of a unit: data as in the matrix, parity computed from it.
    pub(super) fn unit_versions(&self, ctx: &mut Ctx<'_>, index: u32, unit: usize) -> DataSlice {
        let (_, length) = self.span_of(index);
        let slice = ctx.take_data(length as u32);
        let versions = ctx.data().versions_mut(slice, length as u32);
        if versions.is_empty() {
            return slice;
        }
        let row = |unit: usize| &self.matrix[unit * length..(unit + 1) * length];
        let modify = self.ops[index as usize].plan == Plan::Modify;
        if unit < self.shape.data || modify {
            versions.copy_from_slice(row(unit));
        }
        if unit >= self.shape.data {
            for data in 0..self.shape.data {
                let factor = factor(unit - self.shape.data, data);
                for (version, value) in versions.iter_mut().zip(row(data)) {
                    *version ^= times(factor, *value);
                }
            }
        }
        slice
    }

    /// Returns reconstructed data to a degraded read.
    pub(super) fn return_solved(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        if !ctx.verifying() {
            return;
        }
        let (op, chunk) = (self.ops[index as usize], self.chunk32());
        debug_assert!(matches!(op.purpose, Purpose::Request(Op::Read, _)));
        self.load(ctx, index);
        self.solve(index);
        let (first, length) = self.span_of(index);
        for unit in 0..self.shape.data {
            let (from, to) = op.touched(unit, chunk);
            if from < to {
                let at = unit * length + from as usize - first;
                let answer = op.data_at(unit, from, chunk);
                let answer = ctx.data().versions_mut(answer, to - from);
                answer.copy_from_slice(&self.matrix[at..at + answer.len()]);
            }
        }
    }
}
