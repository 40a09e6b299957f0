//! The clean and the dirty pages of the cache, each in eviction order.
//!
//! The paper has two LRU lists; any replacement policy can take their place. Each policy is built
//! for as many pages as there are slots, because the partition limits move.

use super::{Parameters, Scheme};
use crate::paged_controller::PolicyBuilder;
use hybridsim_cache::replacement::{
    Access, CachedPage, Eligible, Replacement, ReplacementEntry, policy_name,
};
use hybridsim_config::registry::Registry;
use hybridsim_engine::state::same_length;
use hybridsim_engine::{Loader, Saver, StateError};

/// Pages in the eviction order of one replacement policy.
pub struct EvictionOrder {
    policy: Box<dyn Replacement>,
    count: u64,
    found: Vec<CachedPage>,
}

impl EvictionOrder {
    fn new(policy: Box<dyn Replacement>) -> Self {
        Self { policy, count: 0, found: Vec::new() }
    }

    /// Number of pages.
    pub fn len(&self) -> u64 {
        self.count
    }

    fn add(&mut self, page: CachedPage) {
        self.count += 1;
        self.policy.update(page, Access::Add);
    }

    fn remove(&mut self, page: CachedPage, why: Removal) {
        self.count -= 1;
        match why {
            Removal::Evict => self.policy.evict(page),
            Removal::Invalidate => self.policy.remove(page),
        }
    }

    /// The eligible page evicted next.
    pub fn first(&mut self, eligible: Eligible<'_>) -> Option<CachedPage> {
        self.found.clear();
        self.policy.victims(1, eligible, &mut self.found);
        self.found.first().copied()
    }

    /// The next `count` eligible pages in eviction order.
    pub fn list(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        out.clear();
        self.policy.victims(count, eligible, out);
    }

    hybridsim_engine::saves!(count; policy);
}

/// Why a page is removed from a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// To free its slot; policies with ghost lists remember it.
    Evict,
    /// It was trimmed or overwritten on the disk, or changes lists.
    Invalidate,
}

/// The clean and the dirty pages.
pub struct CleanDirtyLists {
    pub clean: EvictionOrder,
    pub dirty: EvictionOrder,
    /// Both together, for the scheme with one list.
    pub all: Option<EvictionOrder>,
    /// By slot.
    is_dirty: Vec<bool>,
    /// By slot: dirty pages that have been written back ahead of need, and their number.
    is_written_back: Vec<bool>,
    written_back: u64,
    /// The name of the replacement policy, and whether it has chosen a page.
    pub policy: String,
    pub chose: bool,
}

impl CleanDirtyLists {
    /// Returns what builds the lists of a cache of `pages` slots; also the list of all pages, if
    /// the cache is not divided.
    pub fn builder(registry: &Registry, params: &Parameters, pages: u32) -> PolicyBuilder<Self> {
        let one_list = params.scheme == Scheme::Fixed;
        let (entry, own) = registry.chosen::<ReplacementEntry>(&params.replacement);
        let own = own.clone();
        let policy = policy_name(&entry, &own);
        Box::new(move || {
            let order = || (entry.build)(&own, pages).map(EvictionOrder::new);
            Ok(Self {
                clean: order()?,
                dirty: order()?,
                all: one_list.then(order).transpose()?,
                is_dirty: vec![false; pages as usize],
                is_written_back: vec![false; pages as usize],
                written_back: 0,
                policy: policy.clone(),
                chose: false,
            })
        })
    }

    /// Whether a cached page is dirty.
    pub fn is_dirty(&self, slot: u32) -> bool {
        self.is_dirty[slot as usize]
    }

    /// Whether a dirty page has been written back ahead of need, so that it can be evicted at once.
    pub fn is_written_back(&self, slot: u32) -> bool {
        self.is_written_back[slot as usize]
    }

    /// Number of such pages.
    pub fn written_back(&self) -> u64 {
        self.written_back
    }

    /// Marks a dirty page as written back ahead of need, or not.
    pub fn set_written_back(&mut self, page: CachedPage, now: bool) {
        let before = std::mem::replace(&mut self.is_written_back[page.slot as usize], now);
        self.written_back = self.written_back + u64::from(now) - u64::from(before);
    }

    fn list(&mut self, dirty: bool) -> &mut EvictionOrder {
        if dirty { &mut self.dirty } else { &mut self.clean }
    }

    /// The next `count` eligible dirty pages in eviction order; with `not_written_back`, without
    /// those that have been written back ahead of need.
    pub fn next_dirty(
        &mut self,
        count: usize,
        not_written_back: bool,
        eligible: Eligible<'_>,
        out: &mut Vec<CachedPage>,
    ) {
        let is_written_back = &self.is_written_back;
        let suits = |page: CachedPage| !(not_written_back && is_written_back[page.slot as usize]);
        self.dirty.list(count, &|page| suits(page) && eligible(page), out);
    }

    /// Announces a page that is about to be cached and may need a slot.
    pub fn expect(&mut self, page: u64, dirty: bool) {
        let order = match &mut self.all {
            Some(all) => all,
            None => self.list(dirty),
        };
        order.policy.expect(page);
    }

    /// A page has been added to the cache.
    pub fn add(&mut self, page: CachedPage, dirty: bool) {
        self.is_dirty[page.slot as usize] = dirty;
        self.list(dirty).add(page);
        if let Some(all) = &mut self.all {
            all.add(page);
        }
    }

    /// A page has been read.
    pub fn read(&mut self, page: CachedPage) {
        let dirty = self.is_dirty(page.slot);
        self.list(dirty).policy.update(page, Access::Read);
        if let Some(all) = &mut self.all {
            all.policy.update(page, Access::Read);
        }
    }

    /// A cached page has been written.
    pub fn written(&mut self, page: CachedPage) {
        self.set_written_back(page, false);
        if self.is_dirty(page.slot) {
            self.dirty.policy.update(page, Access::Write);
        } else {
            self.clean.remove(page, Removal::Invalidate);
            self.is_dirty[page.slot as usize] = true;
            self.dirty.add(page);
        }
        if let Some(all) = &mut self.all {
            all.policy.update(page, Access::Write);
        }
    }

    /// A dirty page has been written back and stays in the cache.
    pub fn cleaned(&mut self, page: CachedPage) {
        self.set_written_back(page, false);
        self.dirty.remove(page, Removal::Invalidate);
        self.is_dirty[page.slot as usize] = false;
        self.clean.add(page);
    }

    /// A page is removed from the cache.
    pub fn remove(&mut self, page: CachedPage, why: Removal) {
        self.set_written_back(page, false);
        let dirty = self.is_dirty(page.slot);
        self.list(dirty).remove(page, why);
        if let Some(all) = &mut self.all {
            all.remove(page, why);
        }
    }

    /// Saves the lists and the state of each page.
    pub fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.clean.save(to)?;
        self.dirty.save(to)?;
        self.all.iter().try_for_each(|all| all.save(to))?;
        to.put(&(&self.is_dirty, &self.is_written_back, self.written_back));
        Ok(())
    }

    /// Restores what [`CleanDirtyLists::save`] has saved.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.clean.restore(from)?;
        self.dirty.restore(from)?;
        self.all.iter_mut().try_for_each(|all| all.restore(from))?;
        let (is_dirty, is_written_back, written_back): (Vec<bool>, Vec<bool>, _) = from.take()?;
        same_length("the list of dirty pages", is_dirty.len(), self.is_dirty.len())?;
        same_length("the list of written pages", is_written_back.len(), self.is_dirty.len())?;
        self.is_dirty = is_dirty;
        self.is_written_back = is_written_back;
        self.written_back = written_back;
        Ok(())
    }
}
