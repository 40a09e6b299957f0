//! Only file system metadata goes to the cache (konanki, chapter 3, configuration 1, and section
//! 5.6, which suggests it).
//!
//! Metadata are short, random and rewritten often. Traces of blktrace and blkparse mark them
//! (`M` in the RWBS field); formats without the mark have none, so nothing is admitted.

use super::{Admission, AdmissionEntry};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Request};
use serde::{Deserialize, Serialize};

pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "metadata",
        summary: "only writes marked as file system metadata go to the cache, and those of cached \
                  pages",
        origin: "konanki, chapter 3 (configuration 1) and section 5.6",
        params: &[],
    },
    build: |_| Ok(Box::new(Metadata::default())),
};

/// Admits metadata.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// A write was marked.
    marked: bool,
}

impl Admission for Metadata {
    fn admit(&mut self, request: &Request, _pages: u64, cached: u64) -> bool {
        let marked = request.flags.contains(Flags::META);
        self.marked |= marked;
        marked || cached > 0
    }

    fn idle(&self) -> Option<&'static str> {
        (!self.marked).then_some("no write is marked as file system metadata in the workload")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op};

    #[test]
    fn only_marked_writes_and_rewrites_are_admitted() {
        let plain = Request::new(Op::Write, Lba(0), 8);
        let marked = Request { flags: Flags::META.with(Flags::SYNC), ..plain };
        let mut policy = Metadata::default();
        assert!(!policy.admit(&plain, 1, 0));
        assert!(policy.admit(&plain, 1, 1), "the cache keeps the newest data");
        assert!(policy.idle().is_some());
        assert!(policy.admit(&marked, 1, 0));
        assert!(policy.idle().is_none());
    }
}
