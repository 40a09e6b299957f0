//! Cleanup: cached pages are read from flash, sorted and merged by disk address, written to the
//! disk, and freed (`cache_cleanup` in konanki, figure 3.7).

use super::HybridDisk;
use crate::paged_controller::{Destage, Origin, PagedController, PagedPolicy, PendingRequest};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::cleanup::{CacheState, Plan};
use hybridsim_cache::paged::split::{Medium, SubRequest};
use hybridsim_cache::replacement::{CachedPage, too_few_victims};
use hybridsim_engine::{Ctx, Flags, Lba, Op, Request, SimDuration};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No cleanup.
    Off,
    /// An exclusive cleanup waits until the executing requests have completed.
    Draining,
    /// Pages are being destaged.
    Running,
}

/// The cleanup in progress.
#[derive(Debug)]
pub struct Cleanups {
    /// Longest disk write, in pages.
    run_pages: u32,
    /// Most runs in progress.
    depth: u32,
    stage: Stage,
    plan: Plan,
    /// Pages to destage, ascending.
    pages: Vec<u64>,
    /// Number of them started or skipped.
    begun: usize,
    /// Runs in progress.
    running: u32,
    freed: u32,
    /// The chosen pages; reused.
    victims: Vec<CachedPage>,
}

impl Cleanups {
    /// No cleanup in progress.
    pub fn new(run_pages: u32, depth: u32) -> Self {
        Self {
            run_pages,
            depth,
            stage: Stage::Off,
            plan: Plan { pages: 0, exclusive: false, yields: false },
            pages: Vec::new(),
            begun: 0,
            running: 0,
            freed: 0,
            victims: Vec::new(),
        }
    }

    /// Whether all host requests wait for it.
    pub fn exclusive(&self) -> bool {
        self.stage != Stage::Off && self.plan.exclusive
    }

    /// Aborts the cleanup.
    pub fn stop(&mut self) {
        self.stage = Stage::Off;
        self.pages.clear();
        (self.begun, self.running, self.freed) = (0, 0, 0);
    }
}

impl HybridDisk {
    fn occupancy(&self) -> CacheState {
        CacheState { pages: self.core.directory.pages, free: self.core.directory.free() }
    }

    /// Serves writes that wait for free pages, in order; starts a cleanup when there are too few.
    pub(super) fn serve_short_of_space(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(&slot) = self.core.short_of_space.front() {
            if self.cleanups.exclusive() {
                return;
            }
            let needed = self.pages_needed(slot);
            let free = u64::from(self.core.directory.free());
            let fits = needed <= free;
            // With nothing to destage, a write that fits need not leave pages free.
            if !fits || needed + self.free_min() > free {
                if self.cleanups.stage != Stage::Off {
                    return;
                }
                self.expect_pages(slot);
                let needed = needed as u32;
                let mut plan = self.policies.cleanup.on_demand(self.occupancy(), needed);
                plan.pages = plan.pages.max(needed.saturating_sub(self.core.directory.free()));
                // If nothing can be destaged now, an executing request may leave pages that can.
                if self.start_cleanup(ctx, plan) || self.core.executing > 0 {
                    return;
                }
            }
            self.core.short_of_space.pop_front();
            self.write_after_wait(ctx, slot, fits);
        }
    }

    /// Starts a cleanup; returns `false` when no page may be destaged.
    fn start_cleanup(&mut self, ctx: &mut Ctx<'_>, plan: Plan) -> bool {
        if !self.core.directory.has_unpinned() {
            return false;
        }
        self.cleanups.plan = plan;
        if plan.exclusive {
            self.cleanups.stage = Stage::Draining;
            return true;
        }
        self.choose_pages(ctx)
    }

    /// Chooses the pages to destage and sorts them; returns whether there are any.
    fn choose_pages(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let Plan { pages, exclusive, .. } = self.cleanups.plan;
        let mut victims = std::mem::take(&mut self.cleanups.victims);
        victims.clear();
        let locks = &self.core.locks;
        let eligible = |page: CachedPage| exclusive || !locks.is_locked(page.page);
        if pages >= self.core.directory.used() {
            let cache = &self.core.directory;
            let unpinned = cache.iter().filter(|page| !cache.slot(page.slot).pinned);
            victims.extend(unpinned.filter(|page| eligible(*page)));
        } else {
            self.decided.replacement = true;
            self.policies.replacement.victims(pages as usize, &eligible, &mut victims);
            if victims.len() < pages as usize {
                let cache = &self.core.directory;
                let unpinned = cache.iter().filter(|page| !cache.slot(page.slot).pinned);
                let evictable = unpinned.filter(|page| eligible(*page)).count();
                let name = &self.policies.replacement_name;
                let problem = too_few_victims(name, victims.len(), pages as usize, evictable);
                problem.into_iter().for_each(|problem| ctx.policy_fault(problem));
            }
        }
        let cleanups = &mut self.cleanups;
        cleanups.pages.clear();
        cleanups.pages.extend(victims.iter().map(|victim| victim.page));
        cleanups.pages.sort_unstable();
        cleanups.victims = victims;
        (cleanups.begun, cleanups.running, cleanups.freed) = (0, 0, 0);
        let some = !cleanups.pages.is_empty();
        cleanups.stage = if some { Stage::Running } else { Stage::Off };
        if some {
            self.decided.cleanup = true;
            ctx.emit(CacheEvent::CleanupStarted);
        }
        some
    }

    /// Continues a cleanup; returns `true` when it has just ended.
    pub(super) fn advance_cleanup(&mut self, ctx: &mut Ctx<'_>) -> bool {
        match self.cleanups.stage {
            Stage::Off => return false,
            Stage::Draining if self.core.executing > 0 => return false,
            Stage::Draining => {
                if !self.choose_pages(ctx) {
                    return true;
                }
            }
            Stage::Running => {}
        }
        while self.cleanups.running < self.cleanups.depth {
            if self.cleanups.plan.yields && self.present > 0 {
                self.cleanups.begun = self.cleanups.pages.len();
            }
            let Some((first, count)) = self.next_run() else { break };
            self.destage_pages(ctx, first, count);
        }
        if self.cleanups.running > 0 {
            return false;
        }
        self.cleanups.stage = Stage::Off;
        ctx.emit(CacheEvent::CleanupEnded { pages: self.cleanups.freed });
        // The next idle period counts from here.
        self.idle_since = ctx.now();
        true
    }

    /// The next run of consecutive pages to destage: the first page, and the number of pages.
    fn next_run(&mut self) -> Option<(u64, u32)> {
        let mut run: Option<(u64, u32)> = None;
        while let Some(&page) = self.cleanups.pages.get(self.cleanups.begun) {
            let may = self.may_clean(page);
            match run {
                Some((_, count)) if !may || count == self.cleanups.run_pages => break,
                Some((first, count)) if first + u64::from(count) != page => break,
                Some((first, count)) => run = Some((first, count + 1)),
                None if may => run = Some((page, 1)),
                None => {}
            }
            self.cleanups.begun += 1;
        }
        run
    }

    /// A page may have been trimmed, pinned or locked since it was chosen.
    fn may_clean(&self, page: u64) -> bool {
        let unpinned = |slot| !self.core.directory.slot(slot).pinned;
        self.core.directory.find(page).is_some_and(unpinned)
            && (self.cleanups.plan.exclusive || !self.core.locks.is_locked(page))
    }

    fn destage_pages(&mut self, ctx: &mut Ctx<'_>, first: u64, count: u32) {
        let last = first + u64::from(count) - 1;
        // During an exclusive cleanup no other request is executing.
        let locked = if self.cleanups.plan.exclusive { (u64::MAX, 0) } else { (first, last) };
        self.cleanups.running += 1;
        self.destage_read(ctx, first, u64::from(count), locked);
    }

    /// The pages are on the disk: records in the journal that they are free.
    pub(super) fn journal_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let page = u64::from(self.core.directory.pages) + self.core.metadata.next_page();
        let size = self.core.directory.page_sectors;
        let (at, sectors) = (page * size, size as u32);
        let part = SubRequest { medium: Medium::Flash, at, sectors, skip: 0 };
        self.core.sub_requests.clear();
        self.core.sub_requests.push(part);
        self.core.pending(slot).origin = Origin::Metadata;
        self.send(ctx, slot);
    }

    /// The pages have been destaged: frees them.
    pub(super) fn destaged(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let PendingRequest { request, failed, .. } = *self.core.pending(slot);
        if failed {
            let (lba, end) = (request.lba, request.end());
            ctx.device_fault(format!(
                "sectors {lba}..{end} could not be destaged: a read of flash or a write of the \
                 disk failed"
            ));
        }
        ctx.data().give_back(request.data);
        let (first, last) = self.core.directory.pages_of(&request);
        for page in first..=last {
            let slot = self.core.directory.find(page).expect("locked pages stay cached");
            self.policies.replacement.evict(CachedPage { page, slot });
            if self.trim_cleaned {
                self.core.directory.retire(slot);
                self.trim_slot(ctx, slot);
            } else {
                self.core.directory.remove(slot);
            }
            self.cleanups.freed += 1;
        }
        self.cleanups.running -= 1;
        self.close(ctx, slot);
    }

    /// Trims the flash page of a slot that holds no page any more; the cleanup lasts until then.
    fn trim_slot(&mut self, ctx: &mut Ctx<'_>, of: u32) {
        let size = self.core.directory.page_sectors;
        let mut request = Request::new(Op::Trim, Lba(u64::from(of) * size), size as u32);
        request.flags = Flags::BACKGROUND;
        let slot = self.core.open(Origin::Trim, request, ctx.now());
        self.core.pending(slot).outstanding = 1;
        self.cleanups.running += 1;
        self.issue(ctx, Medium::Flash, slot, request);
    }

    /// A trim has completed: the slot is free.
    pub(super) fn trimmed(&mut self, slot: u32) {
        let at = self.core.request(slot).lba.0 / self.core.directory.page_sectors;
        self.core.pending.remove(slot as usize);
        self.core.directory.release(at as u32);
        self.core.directory.start_over_if_empty();
        self.cleanups.running -= 1;
    }

    /// Asks the policy whether to clean up while requests are served.
    pub(super) fn clean_in_background(&mut self, ctx: &mut Ctx<'_>) {
        if self.cleanups.stage != Stage::Off || self.core.directory.used() == 0 {
            return;
        }
        if let Some(plan) = self.policies.cleanup.background(self.occupancy()) {
            self.start_cleanup(ctx, plan);
        }
    }

    /// No host request, no cleanup, and something to destage.
    fn is_idle(&self) -> bool {
        self.present == 0 && self.cleanups.stage == Stage::Off && self.core.directory.has_unpinned()
    }

    /// The idle time after which the policy is asked; at least 1 us, so that asking a policy that
    /// declines makes progress in time.
    fn idle_time(&self) -> Option<SimDuration> {
        self.policies.cleanup.idle_after().map(|pause| pause.max(SimDuration::from_us(1)))
    }

    pub(super) fn set_idle_timer(&mut self, ctx: &mut Ctx<'_>) {
        if self.idle_timer || !self.is_idle() {
            return;
        }
        if let Some(pause) = self.idle_time() {
            self.idle_timer = true;
            // The idle period may have begun before the timer that has just expired was set.
            ctx.wake_at((self.idle_since + pause).max(ctx.now()), 0);
        }
    }

    /// The idle timer has expired; requests may have arrived since it was set.
    fn clean_when_idle(&mut self, ctx: &mut Ctx<'_>) {
        let Some(pause) = self.idle_time() else { return };
        if !self.is_idle() || ctx.now().since(self.idle_since) < pause {
            return;
        }
        match self.policies.cleanup.idle(self.occupancy()) {
            Some(plan) => drop(self.start_cleanup(ctx, plan)),
            // The policy is asked again after the next idle period.
            None => self.idle_since = ctx.now(),
        }
    }

    /// A timer has expired: the idle timer, or that of requests a scheduler holds.
    pub(super) fn timer_expired(&mut self, ctx: &mut Ctx<'_>, idle: bool) {
        if idle {
            self.idle_timer = false;
            self.clean_when_idle(ctx);
        }
        self.advance(ctx);
    }
}
