//! Cleaning: a band is read, merged with its data in the persistent cache, and written as a whole.
//!
//! Bands are cleaned in the order of their oldest data in the log, while the disk is idle or a
//! write waits for space.

use super::cache::Extent;
use super::serve::Job;
use super::{IDLE, NEXT_BAND, Purpose, SmrDisk, Statistic};
use hybridsim_engine::{
    Completion, Ctx, DataSlice, Flags, Lba, Op, Request, SECTOR_BYTES, SimTime,
};

/// The next step.
#[derive(Clone, Copy)]
enum Stage {
    /// Reads the band from this sector on.
    Read(u32),
    /// Reads this extent from the cache.
    Merge(usize),
    /// Writes the band from this sector on.
    Write(u32),
}

/// The cleaning of a band.
pub(super) struct Cleaning {
    /// Holds the lock on the band.
    job: usize,
    pub band: u32,
    /// Whether the data of the band have to be written again, whatever is in the cache.
    pub torn: bool,
    began: SimTime,
    /// The band.
    data: DataSlice,
    /// Sectors of it that are read.
    written: u32,
    /// Sectors of it that are written.
    end: u32,
    /// Extents of the band in the cache, by position there.
    extents: Vec<Extent>,
    stage: Stage,
}

impl SmrDisk {
    fn has_cleaning(&self) -> bool {
        self.cache.as_ref().is_some_and(|it| {
            it.map.oldest().is_some() || !it.torn.is_empty() || it.streams.has_overwrites()
        })
    }

    /// Sets the timer of an idle disk that has something to clean.
    pub(super) fn set_idle_timer(&mut self, ctx: &mut Ctx<'_>) {
        let idle = self.hosts.is_empty() && self.recovering.is_none() && self.has_cleaning();
        if let (true, Some(cache)) = (idle, &mut self.cache)
            && !cache.timer_set
            && cache.cleaning.is_none()
        {
            cache.timer_set = true;
            let due = cache.idle_since + cache.parts.idle_after;
            ctx.wake_at(due.max(ctx.now()), IDLE);
        }
    }

    pub(super) fn idle_timer_expired(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(cache) = &mut self.cache {
            cache.timer_set = false;
        }
        self.clean_if_idle(ctx);
    }

    /// Begins to clean if the disk has been idle for long enough, or sets the timer again.
    pub(super) fn clean_if_idle(&mut self, ctx: &mut Ctx<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let due = cache.idle_since + cache.parts.idle_after;
        if !self.hosts.is_empty() || self.recovering.is_some() || ctx.now() < due {
            return self.set_idle_timer(ctx);
        }
        cache.torn.extend(cache.streams.give_up().map(|it| it.band));
        self.begin_cleaning(ctx);
        self.run_granted(ctx);
    }

    /// Begins to clean the next band, unless one is being cleaned.
    pub(super) fn begin_cleaning(&mut self, ctx: &mut Ctx<'_>) {
        let size = self.parts.band;
        let Some(cache) = self.cache.as_mut().filter(|it| it.cleaning.is_none()) else { return };
        let torn = cache.torn.pop_front();
        let oldest = || cache.map.oldest().map(|lba| (lba / u64::from(size)) as u32);
        let Some(band) = torn.or_else(oldest) else { return };
        let lba = u64::from(band) * u64::from(size);
        let job = self.jobs.insert(Job::new(None, lba, size, 0));
        cache.cleaning = Some(Cleaning {
            job,
            band,
            torn: torn.is_some(),
            began: ctx.now(),
            data: DataSlice::NONE,
            written: 0,
            end: 0,
            extents: Vec::new(),
            stage: Stage::Read(0),
        });
        self.start(ctx, job);
    }

    /// The band is locked: nothing in it changes until it is clean.
    pub(super) fn clean_locked(&mut self, ctx: &mut Ctx<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let Some(it) = &mut cache.cleaning else { return };
        let start = u64::from(it.band) * u64::from(self.parts.band);
        let written = self.bands.get(it.band).written;
        it.extents.extend(cache.map.extents(start, start + u64::from(self.parts.band)));
        let last = it.extents.last().map_or(0, |last| (last.lba + last.sectors - start) as u32);
        let within = |extent: &Extent| {
            (extent.lba + extent.sectors).min(start + u64::from(written)).saturating_sub(extent.lba)
        };
        let replaced: u64 = it.extents.iter().map(within).sum();
        // A band that the cache holds whole is not read.
        it.written = if replaced == u64::from(written) { 0 } else { written };
        it.end = written.max(last);
        it.extents.sort_unstable_by_key(|extent| extent.at);
        it.began = ctx.now();
        it.data = ctx.take_data(it.end);
        self.clean_on(ctx);
    }

    /// Issues the next step, or ends the cleaning.
    fn clean_on(&mut self, ctx: &mut Ctx<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let (offset, step) = (cache.parts.sectors, cache.parts.step);
        let Some(it) = &mut cache.cleaning else { return };
        let start = u64::from(it.band) * u64::from(self.parts.band);
        if let Stage::Read(next) = it.stage
            && next >= it.written
        {
            it.stage = Stage::Merge(0);
        }
        if let Stage::Merge(next) = it.stage
            && next == it.extents.len()
        {
            it.stage = Stage::Write(0);
        }
        let (op, place, skip, sectors) = match it.stage {
            Stage::Read(next) => {
                (Op::Read, offset + start + u64::from(next), next, step.min(it.written - next))
            }
            Stage::Merge(next) => {
                let Extent { lba, sectors, at } = it.extents[next];
                (Op::Read, at, (lba - start) as u32, sectors as u32)
            }
            Stage::Write(next) if next < it.end => {
                (Op::Write, offset + start + u64::from(next), next, step.min(it.end - next))
            }
            Stage::Write(_) => return self.cleaned(ctx, false),
        };
        // The band is on the medium before the cache gives its data up.
        let flags = Flags::BACKGROUND.with(if op == Op::Write { Flags::FUA } else { Flags::NONE });
        let data = it.data.skip(skip);
        let request = Request { flags, data, ..Request::new(op, Lba(place), sectors) };
        ctx.issue(0, request, Purpose::Clean.tag(0));
    }

    pub(super) fn clean_step_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if let Some(it) = self.cache.as_mut().and_then(|it| it.cleaning.as_mut()) {
            let sectors = done.request.sectors;
            it.stage = match it.stage {
                Stage::Read(next) => Stage::Read(next + sectors),
                Stage::Merge(next) => Stage::Merge(next + 1),
                Stage::Write(next) => Stage::Write(next + sectors),
            };
        }
        if done.failed() {
            self.cleaned(ctx, true)
        } else {
            self.clean_on(ctx)
        }
        self.run_granted(ctx);
    }

    /// The band is clean, or a step failed: then its data stay where they are.
    fn cleaned(&mut self, ctx: &mut Ctx<'_>, failed: bool) {
        let Some(cache) = &mut self.cache else { return };
        let Some(it) = cache.cleaning.take() else { return };
        ctx.data().give_back(it.data);
        if failed {
            cache.torn.extend(it.torn.then_some(it.band));
            cache.idle_since = ctx.now();
        } else {
            let start = u64::from(it.band) * u64::from(self.parts.band);
            cache.map.remove(start, start + u64::from(self.parts.band));
            cache.streams.cleaned(it.band);
            self.bands.fill(it.band, it.end);
            let merged: u64 = it.extents.iter().map(|extent| extent.sectors).sum();
            let read = u64::from(it.written) + merged;
            ctx.emit(Statistic::Cleaned.event(merged * SECTOR_BYTES));
            ctx.emit(Statistic::CleaningRead.event(read * SECTOR_BYTES));
            ctx.emit(Statistic::CleaningWrite.event(u64::from(it.end) * SECTOR_BYTES));
            ctx.emit(Statistic::CleaningTime.event(ctx.now().since(it.began).as_ns() / 1_000));
            ctx.emit(Statistic::Used.event(cache.map.used() * SECTOR_BYTES));
        }
        let goes_on = self.hosts.is_empty() && !failed;
        self.release(it.job);
        self.jobs.remove(it.job);
        self.resume_stalled(ctx, failed);
        if goes_on && self.has_cleaning() {
            // Nothing is in flight between two bands, so that a run may end there.
            ctx.wake_at(ctx.now(), NEXT_BAND);
        } else {
            self.set_idle_timer(ctx);
        }
    }
}
