//! Layouts: the placement of a stripe's units on the members.

use std::fmt::Debug;

/// Position of a unit: a column, and a chunk on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitPosition {
    /// The column, counted from 0.
    pub column: usize,
    /// The chunk on it.
    pub row: u64,
}

/// Maps stripes to members: the units of a stripe are on different columns, and no two units of
/// all stripes share a position.
pub trait Layout: Debug {
    /// Position of unit number `unit` of `stripe`: first the data units, then P, then Q.
    fn position(&self, stripe: u64, unit: usize) -> UnitPosition;

    /// The unit of `stripe` that is on `column`, if one is.
    fn unit_on(&self, stripe: u64, column: usize) -> Option<usize>;

    /// Stripes that fit on columns of `rows` chunks.
    fn stripes(&self, rows: u64) -> u64;
}

hybridsim_config::choices! {
    /// Rotation of parity over the members, with DiskSim's numbers.
    pub enum Rotation {
        /// Parity goes from the last member to the first, data starts behind it (DiskSim's 1).
        LeftSymmetric = "left-symmetric",
        /// Parity goes from the last member to the first, data starts at the first (DiskSim's 2).
        LeftAsymmetric = "left-asymmetric",
        /// Parity goes from the first member to the last, data starts at the first (DiskSim's 3).
        RightAsymmetric = "right-asymmetric",
        /// Parity goes from the first member to the last, data starts behind it (DiskSim's 4).
        RightSymmetric = "right-symmetric",
    }
}

/// One stripe per row, over all columns; P, then Q.
#[derive(Clone, Copy, Debug)]
pub struct Rotated {
    pub columns: usize,
    /// Parity units of a stripe, 1 or 2.
    pub parities: usize,
    /// Their rotation; without it they stay on the last members (RAID 4).
    pub rotation: Option<Rotation>,
    /// Stripes after which they rotate by one member.
    pub rows: u64,
}

impl Rotated {
    /// The column of P.
    fn parity(&self, stripe: u64) -> usize {
        let turn = (stripe / self.rows % self.columns as u64) as usize;
        match self.rotation {
            Some(Rotation::LeftSymmetric | Rotation::LeftAsymmetric) => self.columns - 1 - turn,
            Some(Rotation::RightSymmetric | Rotation::RightAsymmetric) => turn,
            None => self.columns - self.parities,
        }
    }

    fn is_symmetric(&self) -> bool {
        matches!(self.rotation, Some(Rotation::LeftSymmetric | Rotation::RightSymmetric))
    }
}

impl Layout for Rotated {
    fn position(&self, stripe: u64, unit: usize) -> UnitPosition {
        let (columns, parity) = (self.columns, self.parity(stripe));
        let data = columns - self.parities;
        let column = if unit >= data {
            (parity + unit - data) % columns
        } else if self.is_symmetric() {
            (parity + self.parities + unit) % columns
        } else {
            // Parity units that wrapped around the end precede the data, the others in between.
            let before = (parity + self.parities).saturating_sub(columns);
            let skip = if unit + before < parity { before } else { self.parities };
            unit + skip
        };
        UnitPosition { column, row: stripe }
    }

    fn unit_on(&self, stripe: u64, column: usize) -> Option<usize> {
        (0..self.columns).find(|unit| self.position(stripe, *unit).column == column)
    }

    fn stripes(&self, rows: u64) -> u64 {
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per stripe, one word per column.
    fn table(rotation: Option<Rotation>, columns: usize, parities: usize) -> Vec<String> {
        let layout = Rotated { columns, parities, rotation, rows: 1 };
        let line = |stripe| {
            let word = |column| match layout.unit_on(stripe, column).expect("every column") {
                unit if unit < columns - parities => unit.to_string(),
                unit => ["P", "Q"][unit - (columns - parities)].to_owned(),
            };
            (0..columns).map(word).collect::<Vec<_>>().join(" ")
        };
        (0..columns as u64).map(line).collect()
    }

    #[test]
    fn single_parity_goes_round_as_the_words_say() {
        // By hand, for four members; the numbers are data units within the stripe.
        let check = |rotation, expect: [&str; 4]| assert_eq!(table(rotation, 4, 1), expect);
        check(Some(Rotation::LeftSymmetric), ["0 1 2 P", "1 2 P 0", "2 P 0 1", "P 0 1 2"]);
        check(Some(Rotation::LeftAsymmetric), ["0 1 2 P", "0 1 P 2", "0 P 1 2", "P 0 1 2"]);
        check(Some(Rotation::RightAsymmetric), ["P 0 1 2", "0 P 1 2", "0 1 P 2", "0 1 2 P"]);
        check(Some(Rotation::RightSymmetric), ["P 0 1 2", "2 P 0 1", "1 2 P 0", "0 1 2 P"]);
        check(None, ["0 1 2 P"; 4]);
    }

    #[test]
    fn parity_may_stay_for_several_stripes() {
        let layout =
            Rotated { columns: 4, parities: 1, rotation: Some(Rotation::LeftSymmetric), rows: 2 };
        let columns = |unit| (0..8).map(|stripe| layout.position(stripe, unit).column).collect();
        let (first, parity): (Vec<usize>, Vec<usize>) = (columns(0), columns(3));
        assert_eq!(parity, [3, 3, 2, 2, 1, 1, 0, 0]);
        // As DiskSim's tables have it: data start where parity was before.
        assert_eq!(first, [0, 0, 3, 3, 2, 2, 1, 1]);
    }

    #[test]
    fn double_parity_goes_round_as_in_linux() {
        let check = |rotation, expect: [&str; 5]| assert_eq!(table(rotation, 5, 2), expect);
        check(
            Some(Rotation::LeftSymmetric),
            ["Q 0 1 2 P", "0 1 2 P Q", "1 2 P Q 0", "2 P Q 0 1", "P Q 0 1 2"],
        );
        check(
            Some(Rotation::LeftAsymmetric),
            ["Q 0 1 2 P", "0 1 2 P Q", "0 1 P Q 2", "0 P Q 1 2", "P Q 0 1 2"],
        );
        check(
            Some(Rotation::RightAsymmetric),
            ["P Q 0 1 2", "0 P Q 1 2", "0 1 P Q 2", "0 1 2 P Q", "Q 0 1 2 P"],
        );
        check(
            Some(Rotation::RightSymmetric),
            ["P Q 0 1 2", "2 P Q 0 1", "1 2 P Q 0", "0 1 2 P Q", "Q 0 1 2 P"],
        );
        check(None, ["0 1 2 P Q"; 5]);
    }

    #[test]
    fn left_symmetric_reads_in_order_touch_every_member_in_turn() {
        let layout =
            Rotated { columns: 5, parities: 1, rotation: Some(Rotation::LeftSymmetric), rows: 1 };
        for first in 0..40u64 {
            let column = |at: u64| layout.position(at / 4, (at % 4) as usize).column;
            let mut seen: Vec<_> = (first..first + 5).map(column).collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
        }
    }
}
