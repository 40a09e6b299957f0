//! The cached pages, clean and dirty, each kind in the order in which they should go.
//!
//! The paper has two lists by last use; any replacement policy serves. Policies are built for a
//! cache of all the slots, as sides change their size.

use hybridsim_cache::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Entry;

/// Pages under one policy.
pub struct Order {
    policy: Box<dyn Replacement>,
    count: u64,
    found: Vec<CachedPage>,
}

impl Order {
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

    fn leaves(&mut self, page: CachedPage, why: Why) {
        self.count -= 1;
        match why {
            Why::MakesRoom => self.policy.evict(page),
            Why::NoLongerHere => self.policy.remove(page),
        }
    }

    /// The page that should go first, of those that may.
    pub fn first(&mut self, may_go: &dyn Fn(CachedPage) -> bool) -> Option<CachedPage> {
        self.found.clear();
        self.policy.victims(1, may_go, &mut self.found);
        self.found.first().copied()
    }

    /// Puts the `count` pages into `out` that should go first, of those that may.
    pub fn list(
        &mut self,
        count: usize,
        may_go: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        out.clear();
        self.policy.victims(count, may_go, out);
    }
}

/// Why a page leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another page needs its room.
    MakesRoom,
    /// It was dropped, or changes its side.
    NoLongerHere,
}

/// Builds the sides, as at the beginning and after a power failure.
pub type Fresh = Box<dyn Fn() -> Result<Sides, Vec<Problem>>>;

/// Both kinds of pages.
pub struct Sides {
    /// Pages the disk has too.
    pub clean: Order,
    /// Pages of which the disk lacks something.
    pub dirty: Order,
    /// All together, for the scheme that does not tell them apart.
    pub all: Option<Order>,
    /// By slot.
    is_dirty: Vec<bool>,
    /// By slot: dirty pages that the disk has by now, and how many they are.
    is_ready: Vec<bool>,
    ready: u64,
}

impl Sides {
    /// What builds them with the policy of the scenario for a cache of `pages`.
    pub fn builder(input: &BuildInput<'_>, pages: u32, together: bool) -> Fresh {
        let (entry, own) = input.chosen::<ReplacementEntry>(ReplacementEntry::CATEGORY);
        let own = own.clone();
        Box::new(move || {
            let order = || (entry.build)(&own, pages).map(Order::new);
            Ok(Self {
                clean: order()?,
                dirty: order()?,
                all: together.then(order).transpose()?,
                is_dirty: vec![false; pages as usize],
                is_ready: vec![false; pages as usize],
                ready: 0,
            })
        })
    }

    /// Whether the disk lacks something of a cached page.
    pub fn is_dirty(&self, slot: u32) -> bool {
        self.is_dirty[slot as usize]
    }

    /// Whether a dirty page may go without being written back: it has been, ahead of need.
    pub fn is_ready(&self, slot: u32) -> bool {
        self.is_ready[slot as usize]
    }

    /// Number of such pages.
    pub fn ready(&self) -> u64 {
        self.ready
    }

    /// A dirty page may go, or no longer.
    pub fn set_ready(&mut self, page: CachedPage, ready: bool) {
        let before = std::mem::replace(&mut self.is_ready[page.slot as usize], ready);
        self.ready = self.ready + u64::from(ready) - u64::from(before);
    }

    fn side(&mut self, dirty: bool) -> &mut Order {
        if dirty { &mut self.dirty } else { &mut self.clean }
    }

    /// Puts the `count` dirty pages into `out` that should go first, of those that may.
    pub fn next_dirty(
        &mut self,
        count: usize,
        unready_only: bool,
        may_go: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let is_ready = &self.is_ready;
        let suits = |page: CachedPage| !(unready_only && is_ready[page.slot as usize]);
        self.dirty.list(count, &|page| suits(page) && may_go(page), out);
    }

    /// A page is going to come and may need room.
    pub fn expect(&mut self, page: u64, dirty: bool) {
        let order = match &mut self.all {
            Some(all) => all,
            None => self.side(dirty),
        };
        order.policy.expect(page);
    }

    /// A page has come.
    pub fn add(&mut self, page: CachedPage, dirty: bool) {
        self.is_dirty[page.slot as usize] = dirty;
        self.side(dirty).add(page);
        if let Some(all) = &mut self.all {
            all.add(page);
        }
    }

    /// A page has been read.
    pub fn read(&mut self, page: CachedPage) {
        let dirty = self.is_dirty(page.slot);
        self.side(dirty).policy.update(page, Access::Read);
        if let Some(all) = &mut self.all {
            all.policy.update(page, Access::Read);
        }
    }

    /// A cached page has been written.
    pub fn written(&mut self, page: CachedPage) {
        self.set_ready(page, false);
        if self.is_dirty(page.slot) {
            self.dirty.policy.update(page, Access::Write);
        } else {
            self.clean.leaves(page, Why::NoLongerHere);
            self.is_dirty[page.slot as usize] = true;
            self.dirty.add(page);
        }
        if let Some(all) = &mut self.all {
            all.policy.update(page, Access::Write);
        }
    }

    /// The disk has all of a dirty page now, and it stays.
    pub fn cleaned(&mut self, page: CachedPage) {
        self.set_ready(page, false);
        self.dirty.leaves(page, Why::NoLongerHere);
        self.is_dirty[page.slot as usize] = false;
        self.clean.add(page);
    }

    /// A page leaves the cache.
    pub fn leaves(&mut self, page: CachedPage, why: Why) {
        self.set_ready(page, false);
        let dirty = self.is_dirty(page.slot);
        self.side(dirty).leaves(page, why);
        if let Some(all) = &mut self.all {
            all.leaves(page, why);
        }
    }
}
