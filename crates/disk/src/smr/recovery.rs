//! Power failures and saved states.
//!
//! The log names what it holds, so the map survives, and so do write pointers, less the writes in
//! flight. A write is in the map when it is on the medium; until a band is clean its data are in
//! the cache.

use super::cache::PersistentCache;
use super::journal::Journal;
use super::serve::Job;
use super::streams::Streams;
use super::{Purpose, SmrDisk};
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Ctx, Flags, Lba, Loader, Op, PowerFailure, Request, Saver,
    SimTime, StateError,
};
use std::cmp::Reverse;

/// Most sectors that are read at a power failure: 8 GiB.
const RECOVERY_MAX: u64 = 1 << 24;

impl PowerFailure for SmrDisk {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.retract_writes();
        self.hosts.clear();
        self.jobs.clear();
        self.locks = RangeLocks::default();
        self.granted.clear();
        self.waiting.clear();
        self.recovering = None;
        self.bands.power_lost(|_| ());
        let Some(cache) = &mut self.cache else { return Ok(()) };
        cache.map.abandon();
        cache.journal = Journal::default();
        // A band whose rewriting was interrupted is written again.
        let torn = cache.cleaning.take().filter(|it| it.torn).map(|it| it.band);
        cache.torn.extend(cache.streams.give_up().map(|it| it.band).chain(torn));
        cache.streams = Streams::default();
        (cache.idle_since, cache.timer_set) = (now, false);
        Ok(())
    }

    /// Reads the newest part of the log.
    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.report_zones(ctx);
        let Some(cache) = &self.cache else { return };
        let sectors = cache.map.used().min(cache.parts.recovery).min(RECOVERY_MAX) as u32;
        if sectors == 0 {
            return self.set_idle_timer(ctx);
        }
        self.recovering = Some(ctx.now());
        let first = cache.map.newest(u64::from(sectors));
        let request = Request {
            flags: Flags::BACKGROUND,
            data: ctx.take_data(sectors),
            ..Request::new(Op::Read, Lba(first), sectors)
        };
        ctx.issue(0, request, Purpose::Recovery.tag(0));
    }
}

impl SmrDisk {
    /// Write pointers go back to the first of the writes in flight at the end of their zone.
    fn retract_writes(&mut self) {
        if !self.is_zoned() {
            return;
        }
        let in_flight = |job: &Job| {
            let write = job.host.is_some_and(|host| self.hosts[host].request.op == Op::Write);
            (write && job.is_in_flight()).then(|| job.range())
        };
        let mut writes: Vec<_> = self.jobs.iter().filter_map(|(_, job)| in_flight(job)).collect();
        writes.sort_unstable_by_key(|range| Reverse(range.end));
        for range in writes {
            let zone = self.band_of(range.start);
            if zone >= self.parts.conventional && range.end == self.written_end(zone) {
                self.bands.retract(zone, (range.start - self.band_start(zone)) as u32);
            }
        }
    }

    /// The log has been read: requests that arrived meanwhile are served.
    pub(super) fn recovered(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let Some(began) = self.recovering.take() else { return };
        ctx.emit(CommonEvent::Recovered { took: ctx.now().since(began) });
        while let Some((id, request)) = self.waiting.pop_front() {
            self.arrive(ctx, id, &request);
        }
        self.set_idle_timer(ctx);
    }
}

impl Checkpoint for SmrDisk {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&self.bands.state());
        if let Some(it) = &self.cache {
            to.put(&(&it.map, &it.streams, &it.torn, it.idle_since, it.timer_set));
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.bands.restore(from.take()?).map_err(StateError)?;
        let bands = self.bands.len();
        if let Some(it) = &mut self.cache {
            let map: PersistentCache;
            (map, it.streams, it.torn, it.idle_since, it.timer_set) = from.take()?;
            let ends = u64::from(bands) * u64::from(self.parts.band);
            if !it.map.is_like(&map, ends)
                || it.torn.iter().copied().chain(it.streams.overwritten()).any(|band| band >= bands)
            {
                return Err(StateError("its cache is not that of this disk".to_owned()));
            }
            it.map = map;
        }
        Ok(())
    }
}
