//! Which cached pages go first. One policy a file.

pub mod fifo;
pub mod list;
pub mod lru;

use hybridsim_engine::param::{Problem, Settings};
use hybridsim_engine::registry::{Description, Entry};

/// A page in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedPage {
    /// Its number on the slow medium.
    pub page: u64,
    /// Where it is in the cache: a small number, unique among the pages cached now.
    pub slot: u32,
}

/// What happened to a cached page (`update_cache` in paper 000, figure 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was read.
    Read,
    /// It was written again.
    Write,
    /// It came into the cache.
    Add,
}

/// Orders cached pages by how soon they should go.
///
/// The cache itself knows what is in it (`is_in_cache`), so that a policy cannot get it wrong.
/// Pinned pages are taken out with [`Replacement::remove`] and not told of again.
pub trait Replacement {
    /// A page was used.
    fn update(&mut self, page: CachedPage, access: Access);

    /// A page left the cache, or was pinned.
    fn remove(&mut self, page: CachedPage);

    /// Appends up to `count` different pages to `out`, first the one that should go first, only
    /// such that are `eligible`. They stay known until [`Replacement::remove`].
    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    );
}

/// Builds a policy for a cache of so many pages from the policy's own parameters.
pub type BuildReplacement = fn(&Settings, u32) -> Result<Box<dyn Replacement>, Vec<Problem>>;

/// A registered replacement policy.
#[derive(Clone, Copy)]
pub struct ReplacementEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one.
    pub build: BuildReplacement,
}

impl Entry for ReplacementEntry {
    const SLOT: &'static str = "replacement";
    fn description(&self) -> Description {
        self.description
    }
}

/// All replacement policies.
pub const ENTRIES: &[ReplacementEntry] = &[lru::ENTRY, fifo::ENTRY];

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{Add, Read, Write};

    fn page(page: u64) -> CachedPage {
        CachedPage { page, slot: page as u32 - 100 }
    }

    #[test]
    fn victims_in_the_expected_order() {
        let check = |entry: &ReplacementEntry, expect: &[u64]| {
            let mut policy = (entry.build)(&Settings::default(), 8).expect("no parameters");
            for number in [100, 103, 101, 104, 102] {
                policy.update(page(number), Add);
            }
            policy.update(page(103), Read);
            policy.update(page(100), Write);
            policy.remove(page(104));
            let mut out = Vec::new();
            policy.victims(9, &|page| page.page != 101, &mut out);
            let got: Vec<u64> = out.iter().map(|page| page.page).collect();
            assert_eq!(got, expect, "{}", entry.description.name);
            out.clear();
            policy.victims(1, &|_| true, &mut out);
            assert_eq!(out.len(), 1);
        };
        check(&lru::ENTRY, &[102, 103, 100]);
        check(&fifo::ENTRY, &[100, 103, 102]);
    }
}
