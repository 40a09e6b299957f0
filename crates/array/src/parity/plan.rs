//! How the parity of a write is computed, and so what has to be read.

use hybridsim_config::param::Settings;

/// How an operation obtains its data or parity.
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

/// Which plan a write of part of a stripe prefers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SmallWrite {
    /// The one with fewer reads; read-modify-write on a tie.
    Cheaper,
    /// Always read-modify-write.
    Modify,
    /// Always reconstruct-write.
    Reconstruct,
    /// Read-modify-write below this share of the data units.
    BreakPoint(f64),
}

impl SmallWrite {
    /// Names of the choices.
    pub const NAMES: &'static [&'static str] =
        &["cheaper", "read-modify-write", "reconstruct-write", "break-point"];

    /// The choice in `settings`.
    pub fn read(settings: &Settings) -> Self {
        match settings.text("small_write") {
            "read-modify-write" => Self::Modify,
            "reconstruct-write" => Self::Reconstruct,
            "break-point" => Self::BreakPoint(settings.number("break_point")),
            _ => Self::Cheaper,
        }
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
    /// Chooses a plan.
    pub fn choose(&self, preferred: SmallWrite) -> Plan {
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
            SmallWrite::BreakPoint(share) => (self.touched as f64) < share * self.data as f64,
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
            assert_eq!(healthy(data, touched, parities).choose(preferred), expect);
        };
        check(4, 1, 1, SmallWrite::Cheaper, Plan::Modify); // 2 reads against 3
        check(3, 1, 1, SmallWrite::Cheaper, Plan::Modify); // even
        check(2, 1, 1, SmallWrite::Cheaper, Plan::Reconstruct); // 2 against 1
        check(8, 4, 1, SmallWrite::Cheaper, Plan::Reconstruct); // 5 against 4
        check(8, 3, 2, SmallWrite::Cheaper, Plan::Modify); // even
        check(8, 7, 1, SmallWrite::Modify, Plan::Modify);
        check(8, 8, 1, SmallWrite::Modify, Plan::Reconstruct); // nothing to read
        check(8, 1, 1, SmallWrite::Reconstruct, Plan::Reconstruct);
        check(8, 3, 1, SmallWrite::BreakPoint(0.5), Plan::Modify);
        check(8, 4, 1, SmallWrite::BreakPoint(0.5), Plan::Reconstruct);
        check(8, 1, 0, SmallWrite::Modify, Plan::Reconstruct); // no parity left
    }

    #[test]
    fn what_is_missing_decides_first() {
        let check = |misses_touched, misses_kept, expect| {
            let base =
                Situation { data: 4, touched: 2, parities: 1, kept: 2, ..Default::default() };
            let situation = Situation { misses_touched, misses_kept, ..base };
            for preferred in [SmallWrite::Cheaper, SmallWrite::Modify, SmallWrite::Reconstruct] {
                assert_eq!(situation.choose(preferred), expect);
            }
        };
        check(false, true, Plan::Modify);
        check(true, false, Plan::Reconstruct);
        check(true, true, Plan::Solve);
    }
}
