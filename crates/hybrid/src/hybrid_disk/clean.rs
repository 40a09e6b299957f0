//! Writing cached pages back: read from flash, sorted and merged by disk address, written to the
//! disk, freed (`cache_cleanup` in konanki, figure 3.7).

use super::HybridDisk;
use super::serve::{Kind, Parent};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::cleanup::{CacheState, Plan};
use hybridsim_cache::paged::cut::{Cut, Medium, Run, cut};
use hybridsim_cache::replacement::CachedPage;
use hybridsim_engine::{Ctx, Flags, LatencyBreakdown, LatencyPhase, Lba, Op, Request, SimDuration};

/// How far cleaning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing is being cleaned.
    Off,
    /// Everything is to be cleaned exclusively, once what is being executed is done.
    Draining,
    /// Pages are being written back.
    Running,
}

/// A cleaning in progress.
#[derive(Debug)]
pub struct Cleaning {
    /// Most pages in one disk write.
    run_pages: u32,
    /// Most runs in progress.
    depth: u32,
    stage: Stage,
    plan: Plan,
    /// Pages to write back, ascending.
    pages: Vec<u64>,
    /// How many of them have been begun or skipped.
    begun: usize,
    /// Runs in progress.
    running: u32,
    freed: u32,
    /// Reused to choose pages.
    victims: Vec<CachedPage>,
}

impl Cleaning {
    /// Nothing in progress.
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

    /// Whether everybody waits for it.
    pub fn gate_closed(&self) -> bool {
        self.stage != Stage::Off && self.plan.exclusive
    }
}

impl Cleaning {
    /// Nothing is being cleaned any more.
    pub fn stop(&mut self) {
        self.stage = Stage::Off;
        self.pages.clear();
        (self.begun, self.running, self.freed) = (0, 0, 0);
    }
}

impl HybridDisk {
    fn cache_state(&self) -> CacheState {
        CacheState { pages: self.cache.pages, free: self.cache.free() }
    }

    /// Serves writes that wait for free pages, in order; asks for cleaning when there are too few.
    pub(super) fn make_space(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(&slot) = self.short_of_space.front() {
            if self.cleaning.gate_closed() {
                return;
            }
            let needed = self.pages_needed(slot);
            let fits = needed <= u64::from(self.cache.free());
            if !fits {
                if self.cleaning.stage != Stage::Off {
                    return;
                }
                self.expect_pages(slot);
                let needed = needed as u32;
                let mut plan = self.policies.cleanup.on_demand(self.cache_state(), needed);
                plan.pages = plan.pages.max(needed - self.cache.free());
                // Without anything to clean now, a request that is executed may leave something.
                if self.start_cleaning(ctx, plan) || self.executing > 0 {
                    return;
                }
            }
            self.short_of_space.pop_front();
            self.write_after_wait(ctx, slot, fits);
        }
    }

    /// Begins to clean; `false` when there is nothing that may be.
    fn start_cleaning(&mut self, ctx: &mut Ctx<'_>, plan: Plan) -> bool {
        if !self.cache.has_unpinned() {
            return false;
        }
        self.cleaning.plan = plan;
        if plan.exclusive {
            self.cleaning.stage = Stage::Draining;
            return true;
        }
        self.choose_pages(ctx)
    }

    /// Chooses what to write back, sorts it, and starts if it is anything.
    fn choose_pages(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let Plan { pages, exclusive, .. } = self.cleaning.plan;
        let mut victims = std::mem::take(&mut self.cleaning.victims);
        victims.clear();
        let flow = &self.flow;
        let eligible = |page: CachedPage| exclusive || !flow.touches(page.page);
        if pages >= self.cache.used() {
            let cache = &self.cache;
            let unpinned = cache.iter().filter(|page| !cache.slot(page.slot).pinned);
            victims.extend(unpinned.filter(|page| eligible(*page)));
        } else {
            self.policies.replacement.victims(pages as usize, &eligible, &mut victims);
        }
        let cleaning = &mut self.cleaning;
        cleaning.pages.clear();
        cleaning.pages.extend(victims.iter().map(|victim| victim.page));
        cleaning.pages.sort_unstable();
        cleaning.victims = victims;
        (cleaning.begun, cleaning.running, cleaning.freed) = (0, 0, 0);
        let some = !cleaning.pages.is_empty();
        cleaning.stage = if some { Stage::Running } else { Stage::Off };
        if some {
            ctx.emit(CacheEvent::CleanupStarted);
        }
        some
    }

    /// Goes on cleaning; `true` when that ended just now, so that others may go on.
    pub(super) fn advance_cleaning(&mut self, ctx: &mut Ctx<'_>) -> bool {
        match self.cleaning.stage {
            Stage::Off => return false,
            Stage::Draining if self.executing > 0 => return false,
            Stage::Draining => {
                if !self.choose_pages(ctx) {
                    return true;
                }
            }
            Stage::Running => {}
        }
        while self.cleaning.running < self.cleaning.depth {
            if self.cleaning.plan.yields && self.present > 0 {
                self.cleaning.begun = self.cleaning.pages.len();
            }
            let Some((first, count)) = self.next_run() else { break };
            self.destage_read(ctx, first, count);
        }
        if self.cleaning.running > 0 {
            return false;
        }
        self.cleaning.stage = Stage::Off;
        ctx.emit(CacheEvent::CleanupEnded { pages: self.cleaning.freed });
        // The next pause is counted from here.
        self.idle_since = ctx.now();
        true
    }

    /// The next pages in a row that may be written back: the first, and how many.
    fn next_run(&mut self) -> Option<(u64, u32)> {
        let mut run: Option<(u64, u32)> = None;
        while let Some(&page) = self.cleaning.pages.get(self.cleaning.begun) {
            let may = self.may_clean(page);
            match run {
                Some((_, count)) if !may || count == self.cleaning.run_pages => break,
                Some((first, count)) if first + u64::from(count) != page => break,
                Some((first, count)) => run = Some((first, count + 1)),
                None if may => run = Some((page, 1)),
                None => {}
            }
            self.cleaning.begun += 1;
        }
        run
    }

    /// Since it was chosen, a page may have been trimmed, pinned or come into use.
    fn may_clean(&self, page: u64) -> bool {
        let unpinned = |slot| !self.cache.slot(slot).pinned;
        self.cache.find(page).is_some_and(unpinned)
            && (self.cleaning.plan.exclusive || !self.flow.touches(page))
    }

    fn destage_read(&mut self, ctx: &mut Ctx<'_>, first: u64, count: u32) {
        let size = self.cache.page_sectors;
        let sectors = count * size as u32;
        let mut request = Request::new(Op::Read, Lba(first * size), sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        let slot = self.open(Parent {
            kind: Kind::DestageRead,
            request,
            since: ctx.now(),
            waits: LatencyPhase::Destage,
            own: LatencyBreakdown::NONE,
            left: 0,
            failed: false,
        });
        // Everybody else stands still while cleaning is exclusive; else nobody touches the pages.
        let last = first + u64::from(count) - 1;
        if self.cleaning.plan.exclusive {
            self.flow.enter(slot, (u64::MAX, 0), true, true);
        } else {
            self.flow.enter(slot, (first, last), true, true);
        }
        self.cleaning.running += 1;
        cut(&self.cache, request.lba.0, sectors, Cut::Cached, &mut self.runs);
        self.send(ctx, slot, &request);
    }

    pub(super) fn destage_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let force = self.durability.forces();
        let parent = self.parent(slot);
        parent.kind = Kind::DestageWrite;
        parent.request.op = Op::Write;
        if force {
            parent.request.flags = parent.request.flags.with(Flags::FUA);
        }
        let request = parent.request;
        cut(&self.cache, request.lba.0, request.sectors, Cut::Destage, &mut self.runs);
        self.send(ctx, slot, &request);
    }

    /// The pages are on the disk: flash notes that they are free.
    pub(super) fn journal_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let place = u64::from(self.cache.pages) + self.durability.next_place();
        let sectors = self.cache.page_sectors as u32;
        self.runs.clear();
        let at = place * self.cache.page_sectors;
        self.runs.push(Run { medium: Medium::Flash, at, sectors, skip: 0 });
        let parent = self.parent(slot);
        parent.kind = Kind::JournalWrite;
        let request = parent.request;
        self.send(ctx, slot, &request);
    }

    pub(super) fn destage_end(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let Parent { request, failed, .. } = *self.parent(slot);
        if failed {
            let (lba, end) = (request.lba, request.end());
            ctx.device_fault(format!(
                "sectors {lba}..{end} could not be moved from flash to the disk because one of \
                 them failed"
            ));
        }
        ctx.data().give_back(request.data);
        let (first, last) = self.cache.pages_of(&request);
        for page in first..=last {
            let at = self.cache.find(page).expect("nobody else takes pages that are cleaned");
            self.policies.replacement.evict(CachedPage { page, slot: at });
            self.cache.remove(at);
            self.cleaning.freed += 1;
        }
        self.cleaning.running -= 1;
        self.leave(ctx, slot);
    }

    /// Asks the policy whether to clean while others go on.
    pub(super) fn clean_in_background(&mut self, ctx: &mut Ctx<'_>) {
        if self.cleaning.stage != Stage::Off || self.cache.used() == 0 {
            return;
        }
        if let Some(plan) = self.policies.cleanup.background(self.cache_state()) {
            self.start_cleaning(ctx, plan);
        }
    }

    /// Nothing to do for anybody above, and something to clean.
    fn is_idle(&self) -> bool {
        self.present == 0 && self.cleaning.stage == Stage::Off && self.cache.has_unpinned()
    }

    /// The policy's pause; never so short that a policy that declines would be asked for ever.
    fn pause(&self) -> Option<SimDuration> {
        self.policies.cleanup.idle_after().map(|pause| pause.max(SimDuration::from_us(1)))
    }

    pub(super) fn set_idle_timer(&mut self, ctx: &mut Ctx<'_>) {
        if self.idle_timer || !self.is_idle() {
            return;
        }
        if let Some(pause) = self.pause() {
            self.idle_timer = true;
            // The pause may have begun before the timer that just went off was set.
            ctx.wake_at((self.idle_since + pause).max(ctx.now()), 0);
        }
    }

    /// The timer went off: there may have been requests since it was set.
    pub(super) fn clean_when_idle(&mut self, ctx: &mut Ctx<'_>) {
        let Some(pause) = self.pause() else { return };
        if !self.is_idle() || ctx.now().since(self.idle_since) < pause {
            return;
        }
        match self.policies.cleanup.idle(self.cache_state()) {
            Some(plan) => drop(self.start_cleaning(ctx, plan)),
            // Asked again after the next pause.
            None => self.idle_since = ctx.now(),
        }
    }
}
