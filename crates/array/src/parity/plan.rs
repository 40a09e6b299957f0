//! How the parity of a write is computed, and so what has to be read.

/// The way in which an operation obtains its data or parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Read the data units themselves.
    Direct,
    /// Read old data and old parity; new parity is old parity plus the difference.
    Modify,
    /// Read the data that is not written; new parity is computed from all data.
    Reconstruct,
    /// Read all units present, reconstruct the missing ones, then as above.
    Solve,
}

hybridsim_config::choices! {
    /// Which plan a write of part of a stripe prefers.
    pub enum SmallWrite {
        /// The one with fewer reads; read-modify-write on a tie.
        Cheaper = "cheaper",
        /// Always read-modify-write.
        Modify = "read-modify-write",
        Reconstruct = "reconstruct-write",
        /// Read-modify-write below a share of the data units.
        BreakPoint = "break-point",
    }
}

/// A write when it is planned. Reads are counted in requests to members.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation {
    /// Data units in the stripe.
    pub data: usize,
    /// Data units written.
    pub touched: usize,
    /// Parity units present.
    pub parities: usize,
    /// Data units not entirely overwritten, within the range that parity is computed for.
    pub kept: usize,
    /// Whether a unit that is written is missing.
    pub misses_touched: bool,
    /// Whether a unit that is kept, in part at least, is missing.
    pub misses_kept: bool,
}

impl Situation {
    /// Chooses a plan; `break_point` is the share of [`SmallWrite::BreakPoint`].
    pub fn choose(&self, preferred: SmallWrite, break_point: f64) -> Plan {
        if self.parities == 0 || self.kept == 0 {
            return Plan::Reconstruct;
        }
        match (!self.misses_touched, !self.misses_kept) {
            (true, false) => return Plan::Modify,
            (false, true) => return Plan::Reconstruct,
            (false, false) => return Plan::Solve,
            (true, true) => {}
        }
        let modify = match preferred {
            SmallWrite::Cheaper => self.touched + self.parities <= self.kept,
            SmallWrite::Modify => true,
            SmallWrite::Reconstruct => false,
            SmallWrite::BreakPoint => (self.touched as f64) < break_point * self.data as f64,
        };
        if modify { Plan::Modify } else { Plan::Reconstruct }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_way_is_taken() {
        let healthy = |data, touched, parities| Situation {
            data,
            touched,
            parities,
            kept: data - touched,
            ..Situation::default()
        };
        let check = |data, touched, parities, preferred, expect| {
            assert_eq!(healthy(data, touched, parities).choose(preferred, 0.5), expect);
        };
        check(4, 1, 1, SmallWrite::Cheaper, Plan::Modify); // 2 reads against 3
        check(3, 1, 1, SmallWrite::Cheaper, Plan::Modify); // even
        check(2, 1, 1, SmallWrite::Cheaper, Plan::Reconstruct); // 2 against 1
        check(8, 4, 1, SmallWrite::Cheaper, Plan::Reconstruct); // 5 against 4
        check(8, 3, 2, SmallWrite::Cheaper, Plan::Modify); // even
        check(8, 7, 1, SmallWrite::Modify, Plan::Modify);
        check(8, 8, 1, SmallWrite::Modify, Plan::Reconstruct); // nothing to read
        check(8, 1, 1, SmallWrite::Reconstruct, Plan::Reconstruct);
        check(8, 3, 1, SmallWrite::BreakPoint, Plan::Modify);
        check(8, 4, 1, SmallWrite::BreakPoint, Plan::Reconstruct);
        check(8, 1, 0, SmallWrite::Modify, Plan::Reconstruct); // no parity left
    }

    #[test]
    fn what_is_missing_decides_first() {
        let check = |misses_touched, misses_kept, expect| {
            let base =
                Situation { data: 4, touched: 2, parities: 1, kept: 2, ..Default::default() };
            let situation = Situation { misses_touched, misses_kept, ..base };
            for preferred in [SmallWrite::Cheaper, SmallWrite::Modify, SmallWrite::Reconstruct] {
                assert_eq!(situation.choose(preferred, 0.5), expect);
            }
        };
        check(false, true, Plan::Modify);
        check(true, false, Plan::Reconstruct);
        check(true, true, Plan::Solve);
    }
}
