//! Only what is written a second time within a while goes to the cache.

use super::{Admission, AdmissionEntry};
use crate::replacement::ghost::Ghost;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;

/// The registered entry.
pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "second-touch",
        summary: "writes go to the cache when they touch what was written shortly before",
        origin: "Huang et al., MSST 2013 (LARC), for writes",
        params: &[Param::with(
            "remembered",
            Kind::Count { min: 1, max: 1 << 28 },
            "65536",
            "Stretches of 4 KiB that are remembered as written once",
        )],
    },
    build: |settings| {
        let remembered = settings.count("remembered") as usize;
        Ok(Box::new(SecondTouch { once: Ghost::default(), remembered }))
    },
};

/// Sectors in a stretch.
const STRETCH: u64 = 8;

/// What was written once.
#[derive(Debug)]
pub struct SecondTouch {
    once: Ghost,
    remembered: usize,
}

impl Admission for SecondTouch {
    fn admit(&mut self, request: &Request, _pages: u64, cached: u64) -> bool {
        if cached > 0 {
            return true;
        }
        let (first, last) = (request.lba.0 / STRETCH, (request.end().0 - 1) / STRETCH);
        // More than is remembered cannot all be known.
        let last = last.min(first + self.remembered as u64 - 1);
        let mut known = false;
        for stretch in first..=last {
            known |= self.once.take(stretch);
        }
        if !known {
            (first..=last).for_each(|stretch| self.once.add(stretch, self.remembered));
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
        let mut policy = SecondTouch { once: Ghost::default(), remembered: 4 };
        let mut admit = |lba, sectors, cached| {
            policy.admit(&Request::new(Op::Write, Lba(lba), sectors), 1, cached)
        };
        assert!(!admit(80, 8, 0) && admit(84, 1, 0), "the same stretch");
        assert!(!admit(80, 8, 0), "once taken it is forgotten");
        assert!(!admit(800, 32, 0), "four others");
        assert!(!admit(80, 8, 0), "too long ago");
        assert!(admit(5000, 8, 1), "part of it is cached");
        assert!(!admit(0, u32::MAX, 0), "a huge one ends");
    }
}
