//! Requests of the host: split by band, in order where they overlap, to the bands or the cache.

use super::management::Placement;
use super::zoned::overhead;
use super::{PHYSICAL_SECTORS, Purpose, SmrDisk, Statistic};
use hybridsim_engine::zone_table::ZoneStatus;
use hybridsim_engine::{
    Completion, Ctx, Flags, LatencyPhase, Lba, Op, Request, RequestId, SECTOR_BYTES, SimDuration,
    SimTime,
};
use std::ops::Range;

/// A request of the host, which completes when all of its jobs have.
pub(super) struct HostRequest {
    pub id: RequestId,
    pub request: Request,
    jobs: u32,
    failed: bool,
    /// Time that its last job waited for space in the cache.
    stalled: SimDuration,
}

/// The part of a request in a band, or the cleaning of a band. It holds a lock on its sectors.
pub(super) struct Job {
    /// `None` for a cleaning.
    pub host: Option<usize>,
    pub lba: u64,
    pub sectors: u32,
    /// Sectors of the request before it.
    pub skip: u32,
    /// Of a write to a drive-managed disk: sectors of its sequence so far.
    run: u64,
    /// Sectors of a read from here on are not locked, and read as zeros.
    locked_end: u64,
    pub outstanding: u32,
    failed: bool,
    /// A write at the write pointer of a zone, acknowledged in order.
    in_order: bool,
    /// Completion of a write on the medium before an earlier one of its zone.
    early: Option<Completion>,
    /// Whether it replaces data in the cache by data in the band.
    bypasses: bool,
    stalled_at: SimTime,
    stalled: SimDuration,
}

impl Job {
    pub fn new(host: Option<usize>, lba: u64, sectors: u32, skip: u32) -> Self {
        Self {
            host,
            lba,
            sectors,
            skip,
            run: 0,
            locked_end: 0,
            outstanding: 0,
            failed: false,
            in_order: false,
            early: None,
            bypasses: false,
            stalled_at: SimTime::ZERO,
            stalled: SimDuration::ZERO,
        }
    }

    pub fn range(&self) -> Range<u64> {
        self.lba..self.lba + u64::from(self.sectors)
    }

    /// Whether a write is not acknowledged yet.
    pub fn is_in_flight(&self) -> bool {
        self.outstanding > 0 || self.early.is_some()
    }

    /// It waits for space in the cache from now on.
    pub fn stall(&mut self, now: SimTime) {
        self.stalled_at = now;
    }

    /// It need not wait any more.
    pub fn resume(&mut self, now: SimTime) {
        self.stalled += now.since(self.stalled_at);
    }
}

impl SmrDisk {
    pub(super) fn arrive(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if let Some(status) = self.refusal(request) {
            return self.refuse(ctx, id, status);
        }
        let host = HostRequest {
            id,
            request: *request,
            jobs: 1,
            failed: false,
            stalled: SimDuration::ZERO,
        };
        let host = self.hosts.insert(host);
        if request.op == Op::Flush {
            // What the cache acknowledged is on the medium already.
            ctx.issue(0, *request, Purpose::Flush.tag(host));
            return;
        }
        let run = self.sequence(request);
        let (mut lba, end) = (request.lba.0, request.end().0);
        let bands = self.band_of(lba)..self.band_of(end - 1) + 1;
        self.hosts[host].jobs = bands.end - bands.start;
        for band in bands {
            let until = end.min(self.band_start(band + 1));
            let skip = (lba - request.lba.0) as u32;
            let job = Job { run, ..Job::new(Some(host), lba, (until - lba) as u32, skip) };
            let job = self.jobs.insert(job);
            self.start(ctx, job);
            lba = until;
        }
        self.run_granted(ctx);
    }

    /// Sectors of the sequence of writes that a request belongs to.
    fn sequence(&mut self, request: &Request) -> u64 {
        match (self.parts.placement, &mut self.cache) {
            (Placement::Streams(rule), Some(cache)) if request.op == Op::Write => {
                cache.streams.arrived(rule, request.lba.0, u64::from(request.sectors))
            }
            _ => 0,
        }
    }

    /// Fails a request with a status: nothing of it is written.
    pub(super) fn refuse(&self, ctx: &mut Ctx<'_>, id: RequestId, status: ZoneStatus) {
        ctx.emit(status.event());
        let time = self.parts.command_time;
        ctx.refuse_at(id, ctx.now() + time, overhead(ctx, id, time));
    }

    /// Starts a job when its sectors are not locked.
    pub(super) fn start(&mut self, ctx: &mut Ctx<'_>, number: usize) {
        let job = &self.jobs[number];
        let reads = job.host.is_some_and(|host| self.hosts[host].request.op == Op::Read);
        let Range { start, mut end } = job.range();
        if reads && self.requires_order(number) {
            // Writes do not wait for reads beyond the write pointer: others would overtake them.
            end = self.written_end(self.band_of(start)).clamp(start, end);
        }
        self.jobs[number].locked_end = end;
        if self.locks.acquire(number as u32, start, end, !reads) {
            self.execute(ctx, number);
        }
    }

    /// Starts the jobs whose locks were released, in order of arrival.
    pub(super) fn run_granted(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(number) = self.granted.pop_front() {
            self.execute(ctx, number as usize);
        }
    }

    pub(super) fn release(&mut self, number: usize) {
        let granted = &mut self.granted;
        self.locks.release(number as u32, |later| granted.push_back(later));
    }

    /// Whether a job is in a zone that has to be written in order.
    fn requires_order(&self, number: usize) -> bool {
        matches!(self.parts.placement, Placement::Required)
            && self.band_of(self.jobs[number].lba) >= self.parts.conventional
    }

    fn execute(&mut self, ctx: &mut Ctx<'_>, number: usize) {
        let Some(host) = self.jobs[number].host else { return self.clean_locked(ctx) };
        match self.hosts[host].request.op {
            Op::Read => self.read(ctx, number),
            Op::Write => self.write(ctx, number),
            Op::Zone(action) => self.manage(ctx, number, action),
            // As on a `zns-ssd`: only a reset empties a zone.
            Op::Trim if self.requires_order(number) => self.end_job(ctx, number, None),
            // What is in the cache stays; a flush has no job.
            Op::Trim | Op::Flush => {
                let Range { start, end } = self.jobs[number].range();
                self.issue_part(ctx, number, start..end, self.home(start), Flags::NONE);
            }
        }
    }

    /// Issues the sectors of a job to a place on the child.
    fn issue_part(
        &mut self,
        ctx: &mut Ctx<'_>,
        number: usize,
        sectors: Range<u64>,
        place: u64,
        flags: Flags,
    ) {
        let job = &mut self.jobs[number];
        job.outstanding += 1;
        let Some(host) = job.host else { return };
        let skip = job.skip + (sectors.start - job.lba) as u32;
        let request = &self.hosts[host].request;
        let length = (sectors.end - sectors.start) as u32;
        let part = Request { flags: flags.with(request.flags), ..*request };
        ctx.issue(0, part.part(skip, length, Lba(place)), Purpose::Part.tag(number));
    }

    /// Where the data in a band end: at the write pointer of a zone.
    pub(super) fn written_end(&self, band: u32) -> u64 {
        match self.is_zoned() && band >= self.parts.conventional {
            true => self.band_start(band) + u64::from(self.bands.get(band).written),
            false => u64::MAX,
        }
    }

    /// Reads what is in the cache there, and the rest from the band.
    fn read(&mut self, ctx: &mut Ctx<'_>, number: usize) {
        let range = self.jobs[number].range();
        let written_end = self.written_end(self.band_of(range.start));
        let written_end = written_end.min(self.jobs[number].locked_end);
        let mut extents = std::mem::take(&mut self.extents);
        if let Some(cache) = &self.cache {
            extents.extend(cache.map.extents(range.start, range.end));
        }
        let mut from = range.start;
        for it in &extents {
            self.read_band(ctx, number, from..it.lba, written_end);
            from = it.lba + it.sectors;
            self.issue_part(ctx, number, it.lba..from, it.at, Flags::NONE);
        }
        self.read_band(ctx, number, from..range.end, written_end);
        extents.clear();
        self.extents = extents;
        if self.jobs[number].outstanding == 0 {
            self.end_job(ctx, number, None);
        }
    }

    /// Reads sectors from a band; those from `written_end` on are zeros without an access.
    fn read_band(
        &mut self,
        ctx: &mut Ctx<'_>,
        number: usize,
        sectors: Range<u64>,
        written_end: u64,
    ) {
        let middle = written_end.clamp(sectors.start, sectors.end);
        if sectors.start < middle {
            let part = sectors.start..middle;
            self.issue_part(ctx, number, part, self.home(sectors.start), Flags::NONE);
        }
        let job = &self.jobs[number];
        if let (Some(host), true) = (job.host, middle < sectors.end) {
            let skip = job.skip + (middle - job.lba) as u32;
            let data = self.hosts[host].request.data.skip(skip);
            ctx.data().versions_mut(data, (sectors.end - middle) as u32).fill(0);
        }
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, number: usize) {
        let Job { lba, sectors, run, .. } = self.jobs[number];
        let band = self.band_of(lba);
        let at = (lba - self.band_start(band)) as u32;
        if band < self.parts.conventional {
            return self.write_directly(ctx, number);
        }
        let direct = match self.parts.placement {
            Placement::Streams(_) => self.joins_stream(band, (at, sectors), run),
            Placement::Required => match self.advance(ctx, band, (at, sectors)) {
                Ok(()) => true,
                Err(status) => return self.refuse_job(ctx, number, status),
            },
            Placement::Preferred => self.advance(ctx, band, (at, sectors)).is_ok(),
        };
        self.jobs[number].in_order = direct && self.is_zoned();
        if direct { self.write_directly(ctx, number) } else { self.write_to_cache(ctx, number) }
    }

    /// Checks that a write is at the write pointer of its zone.
    pub(super) fn check_order(
        &self,
        zone: u32,
        (at, sectors): (u32, u32),
    ) -> Result<(), ZoneStatus> {
        let whole = |sectors: u32| sectors.is_multiple_of(PHYSICAL_SECTORS);
        if !whole(at) || !whole(sectors) {
            return Err(ZoneStatus::InvalidField);
        }
        self.bands.check_write(zone, at, sectors)
    }

    /// Writes at the write pointer of a zone, which moves.
    fn advance(
        &mut self,
        ctx: &mut Ctx<'_>,
        zone: u32,
        (at, sectors): (u32, u32),
    ) -> Result<(), ZoneStatus> {
        self.check_order(zone, (at, sectors))?;
        self.open(ctx, zone, false)?;
        let before = self.bands.open_count();
        self.bands.advance(zone, sectors);
        self.report_open(ctx, before);
        Ok(())
    }

    /// Whether a write of a drive-managed disk goes to its band: it continues a stream, and damages
    /// no data there, or begins to write the band anew.
    fn joins_stream(&mut self, band: u32, (at, sectors): (u32, u32), run: u64) -> bool {
        let Placement::Streams(rule) = self.parts.placement else { return false };
        let Some(cache) = &mut self.cache else { return false };
        let written = self.bands.get(band).written;
        if !cache.streams.continues(band, at) {
            if run < rule.sectors_min {
                return false;
            }
            if at >= written {
                self.bands.fill(band, at + sectors);
                return true;
            }
            if at > 0 || !cache.torn.is_empty() {
                return false;
            }
            let given_up = cache.streams.begin(rule, band);
            cache.torn.extend(given_up.map(|it| it.band));
        }
        cache.streams.advance(band, at + sectors, written);
        self.bands.fill(band, at + sectors);
        true
    }

    fn write_directly(&mut self, ctx: &mut Ctx<'_>, number: usize) {
        let range = self.jobs[number].range();
        let cached = |it: &super::Cache| it.map.extents(range.start, range.end).next().is_some();
        // What it replaces in the cache was durable.
        let bypasses = self.cache.as_ref().is_some_and(cached);
        self.jobs[number].bypasses = bypasses;
        let flags = if bypasses { Flags::FUA } else { Flags::NONE };
        ctx.emit(Statistic::Direct.event((range.end - range.start) * SECTOR_BYTES));
        let place = self.home(range.start);
        self.issue_part(ctx, number, range, place, flags);
    }

    pub(super) fn part_done(&mut self, ctx: &mut Ctx<'_>, number: usize, done: &Completion) {
        let job = &mut self.jobs[number];
        job.failed |= done.failed();
        job.outstanding -= 1;
        if job.outstanding > 0 {
            return;
        }
        // Writes of a zone are acknowledged in order: after a power failure nothing is missing
        // below its write pointer.
        if self.follows_write(number) {
            self.jobs[number].early = Some(*done);
            return;
        }
        let band = self.jobs[number].in_order.then(|| self.band_of(self.jobs[number].lba));
        self.end_job(ctx, number, Some(done));
        while let Some(next) = band.and_then(|band| self.next_early(band)) {
            let done = self.jobs[next].early.take();
            self.end_job(ctx, next, done.as_ref());
        }
        self.run_granted(ctx);
    }

    /// Whether an earlier write of its zone is in flight.
    fn follows_write(&self, number: usize) -> bool {
        let Job { lba, in_order, .. } = self.jobs[number];
        let before = |job: &Job| job.in_order && job.is_in_flight() && job.lba < lba;
        let band = self.band_of(lba);
        in_order && self.jobs.iter().any(|(_, it)| before(it) && self.band_of(it.lba) == band)
    }

    /// The first write in flight of a zone, if it is on the medium.
    fn next_early(&self, band: u32) -> Option<usize> {
        let writes = self.jobs.iter().filter(|(_, job)| job.in_order && job.is_in_flight());
        let of_zone = writes.filter(|(_, job)| self.band_of(job.lba) == band);
        let (number, first) = of_zone.min_by_key(|(_, job)| job.lba)?;
        first.early.is_some().then_some(number)
    }

    /// A job ended with `done`, or without an access to the child.
    pub(super) fn end_job(&mut self, ctx: &mut Ctx<'_>, number: usize, done: Option<&Completion>) {
        self.release(number);
        self.end_unlocked(ctx, number, done);
    }

    /// As [`SmrDisk::end_job`], of a job that holds no lock.
    fn end_unlocked(&mut self, ctx: &mut Ctx<'_>, number: usize, done: Option<&Completion>) {
        let job = self.jobs.remove(number);
        let range = job.range();
        if let (true, false, Some(cache)) = (job.bypasses, job.failed, &mut self.cache) {
            cache.map.remove(range.start, range.end);
            ctx.emit(Statistic::Used.event(cache.map.used() * SECTOR_BYTES));
        }
        let Some(number) = job.host else { return };
        let host = &mut self.hosts[number];
        host.failed |= job.failed;
        host.jobs -= 1;
        host.stalled = job.stalled;
        if host.jobs == 0 {
            self.end_host(ctx, number, done);
        }
    }

    /// Ends a job that failed and holds no lock.
    pub(super) fn fail_unlocked(
        &mut self,
        ctx: &mut Ctx<'_>,
        number: usize,
        done: Option<&Completion>,
    ) {
        self.jobs[number].failed = true;
        self.end_unlocked(ctx, number, done);
    }

    /// The only job of a request is refused.
    pub(super) fn refuse_job(&mut self, ctx: &mut Ctx<'_>, number: usize, status: ZoneStatus) {
        self.release(number);
        let job = self.jobs.remove(number);
        let Some(host) = job.host else { return };
        let host = self.hosts.remove(host);
        self.refuse(ctx, host.id, status);
        self.rest(ctx);
    }

    /// Completes a request whose last step was `done`, or took no access to the child.
    pub(super) fn end_host(&mut self, ctx: &mut Ctx<'_>, number: usize, done: Option<&Completion>) {
        let HostRequest { id, failed, stalled, .. } = self.hosts.remove(number);
        if let Some(done) = done {
            let waited = ctx.now().since(ctx.issued(id)).saturating_sub(done.latency);
            let stalled = stalled.min(waited);
            let mut breakdown = done.breakdown;
            breakdown.add(LatencyPhase::Queue, waited.saturating_sub(stalled));
            breakdown.add(LatencyPhase::Destage, stalled);
            ctx.complete_as(id, breakdown, failed || done.failed());
        } else {
            let time = self.parts.command_time;
            let breakdown = overhead(ctx, id, time);
            match failed {
                true => ctx.fail_at(id, ctx.now() + time, breakdown),
                false => ctx.complete_at(id, ctx.now() + time, breakdown),
            }
        }
        self.rest(ctx);
    }

    /// Notes the time at which the last request ended.
    fn rest(&mut self, ctx: &mut Ctx<'_>) {
        if let (true, Some(cache)) = (self.hosts.is_empty(), &mut self.cache) {
            cache.idle_since = ctx.now();
            self.set_idle_timer(ctx);
        }
    }
}
