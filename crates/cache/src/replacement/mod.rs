//! Replacement policies: the eviction order of cached pages. One file for each policy.

pub mod arc;
pub mod clock;
pub mod counting;
mod directory;
pub mod fifo;
pub mod ghost;
pub mod index;
pub mod lirs;
pub mod list;
pub mod lru;
#[cfg(test)]
mod reference;
pub mod s3_fifo;
pub mod sieve;
pub mod two_queue;
pub mod w_tinylfu;

use crate::policy_state::PolicyState;
use counting::{Contents, PageAccess};
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::params::field;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

/// A cached page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedPage {
    /// Page number on the backing device.
    pub page: u64,
    /// Slot in the cache: a small number, unique among the cached pages.
    pub slot: u32,
}

/// Whether a page may be evicted.
pub type Eligible<'a> = &'a dyn Fn(CachedPage) -> bool;

/// An access to a cached page (`update_cache` in konanki, figure 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Add,
}

/// A replacement policy.
///
/// The cache has the directory of its pages (`is_in_cache` in konanki), so no policy can lose data.
/// Pinned pages are removed from the policy with [`Replacement::remove`].
pub trait Replacement: PolicyState + Send {
    /// Called before anything else where pages are numbered densely from zero, so that tables by
    /// page number can replace hash maps. Returns whether the policy only compares page numbers:
    /// if not, it is given the numbers of the device after all. With ghost lists it has to have
    /// [`Replacement::number_slots`] as well.
    fn number_densely(&mut self) -> bool {
        false
    }

    /// A page that is not cached is about to be added and there is no free slot for it. Called
    /// before victims are chosen, perhaps more than once.
    fn expect(&mut self, _page: u64) {}

    /// A page was accessed.
    fn update(&mut self, page: CachedPage, access: Access);

    /// A page was trimmed or pinned.
    fn remove(&mut self, page: CachedPage);

    /// A page was evicted. Policies with ghost lists add it to one of them.
    fn evict(&mut self, page: CachedPage) {
        self.remove(page);
    }

    /// Appends the next `count` eligible pages in eviction order to `out`. They stay in the policy
    /// until [`Replacement::evict`].
    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>);

    /// Evicts the page that [`Replacement::victims`] and [`Replacement::evict`] would evict with
    /// all pages eligible; in the memory of `out`.
    fn evict_next(&mut self, out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        out.clear();
        self.victims(1, &|_| true, out);
        let victim = *out.first()?;
        self.evict(victim);
        Some(victim)
    }

    /// Called before anything else, where pages are numbered densely, every page has its number as
    /// its slot, and numbers are used again: from now on, [`Replacement::forgotten`] appends those
    /// that are free. Returns whether the policy keeps ghost lists; others forget a page that is
    /// evicted.
    fn number_slots(&mut self) -> bool {
        false
    }

    /// Appends to `out` the slots of pages that are neither cached nor in a ghost list any more, so
    /// that their numbers can be given to others. Called after several accesses; a slot may be
    /// appended twice.
    fn forgotten(&mut self, _out: &mut Vec<u32>) {}

    /// Reads what [`Replacement::update`] will read for a slot, so that the processor's cache has
    /// it. The value has no meaning.
    fn touch(&self, _slot: u32) -> u64 {
        0
    }

    /// Processes accesses to a cache without data: a method of the policy, so that its own methods
    /// are not called one by one through a table.
    fn process(&mut self, contents: &mut Contents, batch: &[PageAccess]) {
        contents.process(self, batch);
    }
}

/// Builds a policy from its parameters and the number of pages of the cache.
pub type BuildReplacement = fn(&Settings, u32) -> Built<dyn Replacement>;

/// A registered replacement policy.
#[derive(Clone, Copy)]
pub struct ReplacementEntry {
    pub description: Description,
    pub build: BuildReplacement,
}

hybridsim_config::entry!(ReplacementEntry, "replacement");

/// The error of a policy that returned too few pages: `found` of the `wanted`, although `evictable`
/// are in the cache. `None` when there is nothing wrong with it.
pub fn too_few_victims(
    policy: &str,
    found: usize,
    wanted: usize,
    evictable: usize,
) -> Option<String> {
    (found < wanted.min(evictable)).then(|| {
        format!(
            "replacement policy `{policy}` returned {found} of {wanted} victims, and {evictable} \
             cached pages can be evicted: a policy must return all pages it was given and has not \
             been asked to remove"
        )
    })
}

/// The name of `entry` in messages: its own, or the class it is written in.
pub fn policy_name(entry: &ReplacementEntry, settings: &Settings) -> String {
    field::<Option<String>>(settings, "class").unwrap_or(entry.description.name.to_owned())
}

/// All replacement policies.
pub const ENTRIES: &[ReplacementEntry] = &[
    lru::ENTRY,
    fifo::ENTRY,
    clock::ENTRY,
    two_queue::ENTRY,
    arc::ENTRY,
    lirs::ENTRY,
    s3_fifo::ENTRY,
    sieve::ENTRY,
    w_tinylfu::ENTRY,
];

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

    /// Hit ratio of a cache of `pages` pages for a trace of page numbers.
    fn hits(entry: &ReplacementEntry, pages: u32, trace: &[u64]) -> f64 {
        let mut policy = (entry.build)(&Settings::default(), pages).expect("no parameters");
        let mut slots: std::collections::BTreeMap<u64, u32> = Default::default();
        let mut free: Vec<u32> = (0..pages).collect();
        let (mut hits, mut out) = (0, Vec::new());
        for &page in trace {
            if let Some(&slot) = slots.get(&page) {
                hits += 1;
                policy.update(CachedPage { page, slot }, Read);
                continue;
            }
            if free.is_empty() {
                out.clear();
                policy.expect(page);
                policy.victims(1, &|_| true, &mut out);
                policy.evict(out[0]);
                slots.remove(&out[0].page).expect("a cached page");
                free.push(out[0].slot);
            }
            let slot = free.pop().expect("there is room");
            slots.insert(page, slot);
            policy.update(CachedPage { page, slot }, Add);
        }
        f64::from(hits) / trace.len() as f64
    }

    #[test]
    fn scan_resistant_policies_resist_scans() {
        let mut stream = hybridsim_engine::Stream::new(1, "scan");
        let zipf = hybridsim_engine::sample::Zipf::new(2_000, 0.9);
        let (mut trace, mut scan) = (Vec::new(), 1_000_000);
        for _ in 0..200 {
            trace.extend((0..400).map(|_| zipf.draw(&mut stream)));
            trace.extend(scan..scan + 200);
            scan += 200;
        }
        let share = |name: &str| {
            let entry = ENTRIES.iter().find(|entry| entry.description.name == name);
            hits(entry.expect("it is registered"), 300, &trace)
        };
        let lru = share("lru");
        assert!((0.1..0.5).contains(&lru), "{lru}");
        for name in ["2q", "arc", "lirs", "s3-fifo", "sieve", "w-tinylfu"] {
            assert!(share(name) > lru + 0.02, "{name}: {} against {lru}", share(name));
        }
        let (clock, fifo) = (share("clock"), share("fifo"));
        assert!(clock > fifo, "clock {clock}, fifo {fifo}");
    }

    #[test]
    fn a_loop_a_little_longer_than_the_cache_defeats_lru_and_not_lirs() {
        let trace: Vec<u64> = (0..20_000).map(|at| at % 110).collect();
        assert_eq!(hits(&lru::ENTRY, 100, &trace), 0.0);
        assert!(hits(&lirs::ENTRY, 100, &trace) > 0.8, "{}", hits(&lirs::ENTRY, 100, &trace));
    }
}
