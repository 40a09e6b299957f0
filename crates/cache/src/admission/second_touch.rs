//! Admits only sectors that were written recently before.

use super::{Admission, AdmissionEntry};
use crate::replacement::ghost::GhostLists;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        remembered: usize = Kind::Count { min: 1, max: 1 << 28 }, default "65536",
            "Blocks of 4 KiB remembered as written once.";
    }
}

pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "second-touch",
        summary: "admits writes of sectors that were written recently before",
        origin: "Huang et al., MSST 2013 (LARC), for writes",
        params: Parameters::PARAMS,
    },
    build: |settings| {
        let remembered = Parameters::from_settings(settings).remembered;
        Ok(Box::new(SecondTouch { once: GhostLists::default(), remembered }))
    },
};

/// Sectors in a block.
const BLOCK: u64 = 8;

/// The number of the list of blocks written once.
const ONCE: usize = 0;

/// Blocks written once.
#[derive(Debug, Serialize, Deserialize)]
pub struct SecondTouch {
    once: GhostLists<1>,
    remembered: usize,
}

impl Admission for SecondTouch {
    fn admit(&mut self, request: &Request, _pages: u64, cached: u64) -> bool {
        if cached > 0 {
            return true;
        }
        let (first, last) = (request.lba.0 / BLOCK, (request.end().0 - 1) / BLOCK);
        // No more blocks than are remembered can be found.
        let last = last.min(first + self.remembered as u64 - 1);
        let mut known = false;
        for block in first..=last {
            known |= self.once.take(block).is_some();
        }
        if !known {
            (first..=last).for_each(|block| self.once.add(ONCE, block, self.remembered));
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op};

    #[test]
    fn the_second_write_is_taken_if_it_comes_soon() {
        let mut policy = SecondTouch { once: GhostLists::default(), remembered: 4 };
        let mut admit = |lba, sectors, cached| {
            policy.admit(&Request::new(Op::Write, Lba(lba), sectors), 1, cached)
        };
        assert!(!admit(80, 8, 0) && admit(84, 1, 0), "the same block");
        assert!(!admit(80, 8, 0), "once taken it is forgotten");
        assert!(!admit(800, 32, 0), "four others");
        assert!(!admit(80, 8, 0), "too long ago");
        assert!(admit(5000, 8, 1), "part of it is cached");
        assert!(!admit(0, u32::MAX, 0), "a huge one ends");
    }
}
