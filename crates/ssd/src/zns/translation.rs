//! The translation of kind `zns-ssd`: checks requests against the state of their zone and places
//! pages on the flash.

use super::random_area::RandomPages;
use super::stripe::Stripe;
use super::zone::{Statistic, Zone, Zones};
use super::{NO_OWNER, NONE};
use crate::device::{
    Fill, FlashBackEnd, Outcome, PagePart, Recovery, SsdDevice, Translation, split,
};
use hybridsim_engine::zone_table::ZoneStatus;
use hybridsim_engine::{
    Ctx, Flags, LatencyBreakdown, LatencyPhase, Lba, Loader, Op, Request, SECTOR_BYTES, Saver,
    SimDuration, SimTime, StateError, ZoneAction, ZoneState, Zoned,
};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::Array;
use hybridsim_flash::event::{Cause, FlashEvent};
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::geometry::Lpn;
use hybridsim_flash::ops::After;
use hybridsim_flash::restore;
use hybridsim_flash::timing::{Scheduled, Timed};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Time of the controller for appends and zone management.
#[derive(Clone, Copy, Debug)]
pub struct ActionTimes {
    /// Time of an append beyond that of a write.
    pub append: SimDuration,
    pub reset: SimDuration,
    /// Time of a reset per MiB that the host has written.
    pub reset_data: SimDuration,
    /// Time to end a zone that is not full: by a finish, or a reset.
    pub finish: SimDuration,
    pub open: SimDuration,
    pub close: SimDuration,
}

/// A zone that is being finished or reset, step by step: a program or an erase of each die. At
/// most two programs or one erase are in the queue of a die, so that other requests are served in
/// between.
#[derive(Clone, Copy)]
pub(super) struct ZoneOperation {
    pub zone: u32,
    began: SimTime,
    /// Time of the controller: padding begins after it, erases beside it.
    overhead: SimDuration,
    /// End of the last step scheduled; before the first, the time at which it begins.
    until: SimTime,
    /// Blocks to erase; pages are padded without.
    erase: Option<Erase>,
}

/// The blocks of a zone that is reset.
#[derive(Clone, Copy)]
struct Erase {
    group: u32,
    /// Blocks of each plane that have been erased.
    row: u32,
    /// Blocks whose first page in the zone is before this one hold data of the host.
    written: u32,
    /// Whether none of them is worn out.
    usable: bool,
}

/// The data of a zone on their way to another group of blocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Refresh {
    pub zone: u32,
    /// The group that they are moved to.
    pub to: u32,
    /// The page to move next.
    pub next: u32,
}

/// Zones on flash.
pub struct ZoneTranslation {
    pub(super) zones: Zones,
    pub(super) stripe: Stripe,
    pub(super) random: RandomPages,
    pub(super) back_end: FlashBackEnd,
    pub(super) times: ActionTimes,
    /// Address stride of zones in sectors.
    pub(super) zone_sectors: u64,
    /// Blocks are erased when their zone is next opened, not when it is reset.
    pub(super) erase_at_open: bool,
    /// Groups that no zone has, in the order in which they became free.
    pub(super) free: VecDeque<u32>,
    /// Whether all blocks of these groups are erased.
    pub(super) free_is_erased: bool,
    pub(super) operations: Vec<ZoneOperation>,
    /// The zone whose data are being moved.
    pub(super) refresh: Option<Refresh>,
    pub(super) precondition_pages: u64,
}

/// The SSD of kind `zns-ssd`.
pub type ZnsSsd = SsdDevice<ZoneTranslation>;

impl ZoneTranslation {
    pub(super) fn sectors_per_page(&self) -> u64 {
        u64::from(self.stripe.geometry.sectors_per_page())
    }

    /// The zone and the page in it of a sector, where it begins a page.
    pub(super) fn place(&self, lba: Lba) -> Result<(u32, u32), ZoneStatus> {
        let (zone, within) = (lba.0 / self.zone_sectors, lba.0 % self.zone_sectors);
        if zone >= u64::from(self.zones.len()) || !within.is_multiple_of(self.sectors_per_page()) {
            return Err(ZoneStatus::InvalidField);
        }
        Ok((zone as u32, (within / self.sectors_per_page()) as u32))
    }

    /// The zone that a management request names.
    fn whole_zone(&self, request: &Request) -> Result<u32, ZoneStatus> {
        let (zone, page) = self.place(request.lba)?;
        if page != 0 || u64::from(request.sectors) != self.zone_sectors {
            return Err(ZoneStatus::InvalidField);
        }
        if self.has_operation(zone) { Err(ZoneStatus::InvalidTransition) } else { Ok(zone) }
    }

    pub(super) fn has_operation(&self, zone: u32) -> bool {
        self.operations.iter().any(|it| it.zone == zone)
    }

    /// Fails a request with `status`, after the overhead of a command and the recorded operations,
    /// and not at the same instant: a host that repeats it at once would stop the time.
    fn refuse(&mut self, ctx: &mut Ctx<'_>, status: ZoneStatus) -> Outcome {
        ctx.emit(status.event());
        let mut timed = self.timed_command(ctx, SimDuration::ZERO);
        if timed.end == ctx.now() {
            let tick = SimDuration::from_ns(1);
            timed.end += tick;
            timed.breakdown.add(LatencyPhase::Overhead, tick);
        }
        Outcome::Refused(timed)
    }

    /// Opens a zone, and gives an empty one its flash: records the erases of what is left on it.
    fn open(&mut self, ctx: &mut Ctx<'_>, zone: u32, explicitly: bool) -> Result<(), ZoneStatus> {
        self.zones.table().check_open(zone)?;
        self.abandon_refresh(zone);
        if self.zones.get(zone).group == NONE {
            let group = self.take_group().or_else(|| {
                // The last is that which the data of another zone are moved to.
                self.abandon_refresh(self.refresh?.zone);
                self.take_group()
            });
            let Some(group) = group else {
                self.zones.take_offline(zone);
                return Err(ZoneStatus::ZoneIsOffline);
            };
            self.zones.assign(zone, group);
        }
        let before = self.zones.open_count();
        if self.zones.open(zone, explicitly)? {
            ctx.emit(Statistic::ImplicitClose.event(1));
        }
        self.report_open(ctx, before);
        Ok(())
    }

    /// Reports the number of open zones if it is not `before`.
    pub(super) fn report_open(&self, ctx: &mut Ctx<'_>, before: usize) {
        let open = self.zones.open_count();
        if open != before {
            ctx.emit(Statistic::Open.event(open as u64));
        }
    }

    /// A group for a zone, erased: what the host reset before. `None` where all that are left are
    /// worn out.
    pub(super) fn take_group(&mut self) -> Option<u32> {
        while let Some(group) = self.free.pop_front() {
            if self.erase(group, 0..self.stripe.rows, (u32::MAX, Cause::Host)) {
                return Some(group);
            }
        }
        None
    }

    /// Erases the blocks of `group` in these rows that are programmed, and whose first page in the
    /// zone is before `first_max`. Returns whether the group can be used again.
    pub(super) fn erase(
        &mut self,
        group: u32,
        rows: Range<u32>,
        (first_max, cause): (u32, Cause),
    ) -> bool {
        let mut usable = true;
        for (block, first) in self.stripe.blocks(group, rows) {
            if first < first_max && self.back_end.flash.array().next_page(block) > 0 {
                usable &= self.back_end.flash.erase(block, cause, After::NOTHING);
            }
        }
        usable
    }

    /// Whether a read names a sector of a zone that is offline.
    fn is_offline(&self, request: &Request) -> bool {
        let zone = |sector: u64| (sector / self.zone_sectors).min(self.zones.len().into()) as u32;
        let (first, end) = (zone(request.lba.0), zone(request.end().0 + self.zone_sectors - 1));
        (first..end).any(|zone| self.zones.get(zone).state == ZoneState::Offline)
    }

    fn read(&mut self, ctx: &mut Ctx<'_>, request: &Request) {
        let mut unwritten = 0;
        let per_page = self.sectors_per_page();
        for part in split(request, per_page as u32) {
            self.back_end.flash.clear();
            let place = self.place(Lba(u64::from(part.lpn.0) * per_page)).ok();
            let waiting = place.and_then(|(zone, page)| self.random.get(zone, page));
            let found = place.filter(|_| waiting.is_none()).and_then(|(zone, page)| {
                let Zone { group, written, programmed, .. } = self.zones.get(zone);
                (page < written.min(programmed)).then(|| self.stripe.page(group, page))
            });
            if let Some(page) = found {
                self.back_end.flash.host_read(page, After::NOTHING);
            }
            let holds_data = self.back_end.execute_read(ctx, request, &part);
            unwritten += u32::from(!holds_data && waiting.is_none());
            if let Some(versions) = waiting.and_then(|it| it.get(part.range())) {
                let into = ctx.data().versions_mut(request.data.skip(part.skip), part.sectors);
                into.iter_mut().zip(versions).for_each(|(into, version)| *into = *version);
            }
        }
        if unwritten > 0 {
            ctx.emit(FlashEvent::ReadUnwritten { pages: unwritten });
        }
    }

    /// Target of a write or an append: zone, first page there, and number of pages.
    fn target(&self, request: &Request) -> Result<(u32, u32, u32), ZoneStatus> {
        let per_page = self.sectors_per_page();
        let (zone, named) = self.place(request.lba)?;
        if !u64::from(request.sectors).is_multiple_of(per_page) {
            return Err(ZoneStatus::InvalidField);
        }
        let pages = (u64::from(request.sectors) / per_page) as u32;
        let is_append = request.flags.contains(Flags::APPEND);
        if is_append && self.zones.get(zone).is_random {
            return Err(ZoneStatus::InvalidOperation);
        }
        let first = if is_append && named == 0 { self.zones.get(zone).written } else { named };
        self.zones.table().check_write(zone, first, pages)?;
        if self.has_operation(zone) {
            return Err(ZoneStatus::InvalidTransition);
        }
        Ok((zone, first, pages))
    }

    /// Writes to the write pointer of a zone.
    ///
    /// # Errors
    /// The status it fails with; nothing has been written then.
    fn write(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), ZoneStatus> {
        let (zone, first, pages) = self.target(request)?;
        let per_page = self.sectors_per_page() as u32;
        let lba = u64::from(zone) * self.zone_sectors + u64::from(first) * u64::from(per_page);
        ctx.check_append(request.lba, Lba(lba));
        self.open(ctx, zone, false)?;
        let Zone { group, is_random, .. } = self.zones.get(zone);
        self.back_end.begin(ctx, request);
        if is_random {
            self.write_random(ctx, request, (zone, first, pages));
            return Ok(());
        }
        if request.flags.contains(Flags::APPEND) {
            self.back_end.timing.work(self.times.append, LatencyPhase::Overhead);
        }
        let lpn = Lpn(first);
        for index in 0..pages {
            let part = PagePart { lpn, skip: index * per_page, offset: 0, sectors: per_page };
            let page = self.stripe.page(group, first + index);
            self.back_end.flash.host_program(page, NO_OWNER, After::NOTHING);
            if ctx.verifying() {
                self.back_end.load_write(ctx, request, &part, false);
                self.back_end.move_versions(0);
            }
            self.back_end.execute_part(ctx, request, &part);
            self.back_end.flash.clear();
        }
        let before = self.zones.open_count();
        self.zones.advance(zone, pages);
        self.report_open(ctx, before);
        Ok(())
    }

    fn manage(&mut self, ctx: &mut Ctx<'_>, request: &Request, action: ZoneAction) -> Outcome {
        let zone = match action {
            // Its range is a part of the zone.
            ZoneAction::Commit => Ok(0),
            _ => self.whole_zone(request),
        };
        let done = zone.and_then(|zone| match action {
            ZoneAction::Commit => self.commit(ctx, request).map(Outcome::Scheduled),
            ZoneAction::Open => {
                let is_random = request.flags.contains(Flags::RANDOM_WRITE_AREA);
                if is_random {
                    self.zones.table().check_open_random(zone)?;
                }
                self.open(ctx, zone, true)?;
                if is_random {
                    self.zones.give_area(zone);
                }
                Ok(self.command(ctx, self.times.open))
            }
            ZoneAction::Close => {
                let before = self.zones.open_count();
                self.zones.close(zone)?;
                self.report_open(ctx, before);
                Ok(self.command(ctx, self.times.close))
            }
            ZoneAction::Reset => self.reset(ctx, zone),
            ZoneAction::Finish => self.finish(ctx, zone),
        });
        done.unwrap_or_else(|status| self.refuse(ctx, status))
    }

    /// A command that takes the controller `time` before the recorded operations.
    fn command(&mut self, ctx: &mut Ctx<'_>, time: SimDuration) -> Outcome {
        Outcome::Scheduled(Scheduled::Completes(self.timed_command(ctx, time)))
    }

    fn timed_command(&mut self, ctx: &mut Ctx<'_>, time: SimDuration) -> Timed {
        self.back_end.timing.begin(ctx.now(), Op::Trim, 0);
        self.back_end.timing.work(time, LatencyPhase::Overhead);
        self.back_end.execute_all(ctx);
        match self.back_end.timing.end() {
            Scheduled::Completes(timed) => timed,
            Scheduled::Waits(_) | Scheduled::Programs { .. } => {
                unreachable!("only writes wait for the write buffer or for programs")
            }
        }
    }

    fn reset(&mut self, ctx: &mut Ctx<'_>, zone: u32) -> Result<Outcome, ZoneStatus> {
        let before = self.zones.open_count();
        let reset = self.zones.reset(zone)?;
        self.random.discard(zone);
        self.abandon_refresh(zone);
        let Zone { group, written, .. } = reset;
        self.report_open(ctx, before);
        if group != NONE {
            self.invalidate(group);
        }
        let time = self.reset_time(&reset);
        if written == 0 || self.erase_at_open {
            self.release((group != NONE).then_some(group));
            return Ok(self.command(ctx, time));
        }
        let erase = Erase { group, row: 0, written, usable: true };
        Ok(self.begin_operation(ctx, zone, (time, Some(erase))))
    }

    /// Controller time of the reset of a zone: one that is neither full nor finished is ended
    /// first, unless less than a stripe of it is written.
    fn reset_time(&self, zone: &Zone) -> SimDuration {
        let bytes = u64::from(zone.written) * self.sectors_per_page() * SECTOR_BYTES;
        let data_ns = (u128::from(self.times.reset_data.as_ns()) * u128::from(bytes)) >> 20;
        let data = SimDuration::from_ns(u64::try_from(data_ns).unwrap_or(u64::MAX));
        let ends = zone.state != ZoneState::Full && zone.written >= self.stripe.pages;
        let end = if ends { self.times.finish } else { SimDuration::ZERO };
        self.times.reset + data + end
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>, zone: u32) -> Result<Outcome, ZoneStatus> {
        let before = self.zones.open_count();
        let area_end = self.random.end(zone);
        if let Some(end) = area_end {
            self.zones.count_written(zone, end);
        }
        let pads = self.zones.finish(zone)? || area_end.is_some();
        self.abandon_refresh(zone);
        self.report_open(ctx, before);
        match pads {
            true => Ok(self.begin_operation(ctx, zone, (self.times.finish, None))),
            false => Ok(self.command(ctx, self.times.finish)),
        }
    }

    /// Begins an operation that takes the controller `time`.
    fn begin_operation(
        &mut self,
        ctx: &mut Ctx<'_>,
        zone: u32,
        (time, erase): (SimDuration, Option<Erase>),
    ) -> Outcome {
        let (began, controlled) = (ctx.now(), self.timed_command(ctx, time).end);
        let overhead = controlled.since(began);
        let until = if erase.is_some() { began } else { controlled };
        self.operations.push(ZoneOperation { zone, began, overhead, until, erase });
        Outcome::InProgress(until)
    }

    /// Schedules one more step of operation `at`.
    fn step(&mut self, ctx: &mut Ctx<'_>, at: usize) -> Outcome {
        let ZoneOperation { zone, began, overhead, until, erase } = self.operations[at];
        self.back_end.timing.begin_background(ctx.now());
        self.back_end.flash.clear();
        let more = match erase {
            Some(erase) => self.erase_row(at, erase),
            None => self.pad(ctx, zone),
        };
        self.back_end.execute_all(ctx);
        let ends = self.back_end.timing.end().busy_until().max(ctx.now());
        if more {
            self.operations[at].until = ends;
            let queued = if erase.is_some() { ends } else { until };
            return Outcome::InProgress(queued.max(ctx.now()));
        }
        self.operations.swap_remove(at);
        let controlled = began + overhead;
        let end = ends.max(until).max(controlled);
        let phase = match erase {
            Some(_) => LatencyPhase::FlashErase,
            None => LatencyPhase::FlashProgram,
        };
        let mut breakdown = LatencyBreakdown::NONE;
        breakdown.add(LatencyPhase::Overhead, overhead);
        breakdown.add(phase, end.since(controlled));
        Outcome::Scheduled(Scheduled::Completes(Timed { end, breakdown, idle_from: end }))
    }

    /// Erases a block of each plane; those that hold data of the host. Returns whether more follow.
    fn erase_row(&mut self, at: usize, erase: Erase) -> bool {
        let Erase { group, row, written, usable } = erase;
        let usable = self.erase(group, row..row + 1, (written, Cause::Host)) && usable;
        let next = row + 1;
        let mut rest = self.stripe.blocks(group, next..self.stripe.rows);
        if rest.next().is_some_and(|(_, first)| first < written) {
            self.operations[at].erase = Some(Erase { row: next, usable, ..erase });
            return true;
        }
        self.release(usable.then_some(group));
        false
    }

    /// Pads a stripe of a zone, `stripe_pages` on each plane. Returns whether more follow.
    fn pad(&mut self, ctx: &mut Ctx<'_>, zone: u32) -> bool {
        let Zone { programmed, .. } = self.zones.get(zone);
        let step = self.stripe.geometry.planes() * self.stripe.pages;
        let end = self.zones.capacity_pages().min((programmed / step + 1) * step);
        let mut with_data = 0;
        for index in programmed..end {
            if self.program_page(zone, index) {
                // The back end has the versions of one page.
                with_data += 1;
                self.back_end.execute_all(ctx);
                self.back_end.flash.clear();
            }
        }
        if with_data > 0 {
            ctx.emit(FlashEvent::HostWrite { sectors: 0, pages: with_data });
        }
        let padded = end - programmed - with_data;
        if padded > 0 {
            ctx.emit(Statistic::Padding.event(padded.into()));
        }
        self.zones.pad(zone, end - programmed);
        end < self.zones.capacity_pages()
    }
}

impl Translation for ZoneTranslation {
    type BackEnd = FlashBackEnd;

    fn back_end(&mut self) -> &mut FlashBackEnd {
        &mut self.back_end
    }

    fn zones(&self) -> Option<&dyn Zoned> {
        Some(self)
    }

    fn arrays(&self) -> [Option<&Array>; 2] {
        [Some(self.back_end.array()), None]
    }

    fn serve(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        _busy_until: SimTime,
    ) -> (Outcome, Result<(), FtlError>) {
        self.back_end.flash.clear();
        let served = match request.op {
            Op::Zone(action) => return (self.manage(ctx, request, action), Ok(())),
            Op::Write => self.write(ctx, request),
            Op::Read if self.is_offline(request) => Err(ZoneStatus::ZoneIsOffline),
            Op::Read => {
                self.back_end.begin(ctx, request);
                self.read(ctx, request);
                Ok(())
            }
            // A trim is advice, which this device does not take: a zone is emptied by a reset.
            Op::Trim | Op::Flush => {
                self.back_end.begin(ctx, request);
                Ok(())
            }
        };
        let outcome = match served {
            Ok(()) => self.back_end.end(),
            Err(status) => self.refuse(ctx, status),
        };
        (outcome, Ok(()))
    }

    fn resume(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Outcome {
        let zone = (request.lba.0 / self.zone_sectors) as u32;
        let at = self.operations.iter().position(|it| it.zone == zone);
        self.step(ctx, at.expect("a request in progress has an operation"))
    }

    /// Moves data of a zone that need it, or erases blocks of a zone that was reset.
    fn idle_step(&mut self, ctx: &mut Ctx<'_>) -> (SimTime, Result<bool, FtlError>) {
        self.back_end.flash.clear();
        self.back_end.timing.begin_background(ctx.now());
        let more = self.refresh_step() || self.erase_free_row() || self.begin_refresh(ctx.now());
        self.back_end.execute_all(ctx);
        (self.back_end.timing.end().busy_until(), Ok(more))
    }

    fn filling(&mut self) -> Option<&mut dyn Fill> {
        Some(self)
    }
}

impl Fill for ZoneTranslation {
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String> {
        let all = self.precondition_pages as f64;
        self.back_end.flash.set_recording(false);
        self.fill_zones(self.precondition_pages, |_| {}, |left| progress(1.0 - left as f64 / all));
        self.back_end.flash.set_recording(true);
        Ok(())
    }

    /// Fills zones in order, as far as they can be opened.
    fn fill(&mut self, ctx: &Ctx<'_>, pages: u32) -> Result<(), FtlError> {
        let per_zone = self.zone_sectors / self.sectors_per_page();
        let share = f64::from(pages) / (u64::from(self.zones.len()) * per_zone) as f64;
        let capacity = u64::from(self.zones.len()) * u64::from(self.zones.capacity_pages());
        self.back_end.begin_untimed(ctx);
        let pages = (share * capacity as f64).round() as u64;
        self.fill_zones(pages, |back_end| back_end.follow_untimed(ctx), |_| true);
        self.back_end.end_untimed();
        Ok(())
    }
}

impl Recovery for ZoneTranslation {
    /// Write pointers are non-volatile and are not rolled back: sectors of writes in flight hold
    /// zeros where they had not reached the flash. A zone that was being finished is full, one that
    /// was being reset is empty.
    fn power_lost(&mut self) -> Result<(), String> {
        // What has not been erased is erased before it is written.
        let erases = std::mem::take(&mut self.operations).into_iter().filter_map(|it| it.erase);
        self.release(erases.filter(|erase| erase.usable).map(|erase| erase.group));
        let emptied = self.zones.power_lost();
        self.release(emptied);
        if let Some(Refresh { zone, .. }) = self.refresh {
            self.abandon_refresh(zone);
        }
        Ok(())
    }

    fn recover(&mut self, ctx: &mut Ctx<'_>) -> SimDuration {
        ctx.emit(Statistic::Open.event(self.zones.open_count() as u64));
        SimDuration::ZERO
    }

    fn restore_sector(&mut self, sector: u64, version: u64) {
        let per_page = self.sectors_per_page();
        let place = self.place(Lba(sector / per_page * per_page));
        let Ok((zone, page)) = place else { return };
        let Zone { group, written, .. } = self.zones.get(zone);
        if self.random.restore_sector((zone, page), sector % per_page, version) {
            return;
        }
        if page < written {
            self.back_end.set_version(self.stripe.page(group, page), sector, version);
        }
    }
}

impl SavedState for ZoneTranslation {
    fn save(&self, to: &mut Saver) {
        self.back_end.save(to);
        to.put(&self.zones.state());
        to.put(&(&self.free, self.refresh, self.random.places()));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.back_end.restore(from)?;
        let groups = self.stripe.groups();
        self.zones.restore(from, groups).map_err(StateError)?;
        let (free, refresh, places): (VecDeque<u32>, Option<Refresh>, Vec<(u32, u32)>) =
            from.take()?;
        let is_in_area = |&(zone, page): &(u32, u32)| {
            zone < self.zones.len() && page < self.zones.capacity_pages() && {
                let Zone { state, written, is_random, programmed, .. } = self.zones.get(zone);
                let size = self.zones.table().limits().random.map_or(0, |area| area.size);
                let unfinished = state == ZoneState::Full && page >= programmed;
                unfinished || (is_random && page >= written && page - written < size)
            }
        };
        let fits = places.iter().all(is_in_area);
        restore::check(fits, "a page is in no random write area")?;
        restore::check(free.iter().all(|group| *group < groups), "a free group does not exist")?;
        let mut owned: Vec<u32> = free.iter().copied().collect();
        owned.extend((0..self.zones.len()).map(|zone| self.zones.get(zone).group));
        owned.extend(refresh.map(|it| it.to));
        owned.retain(|group| *group != NONE);
        owned.sort_unstable();
        restore::check(owned.windows(2).all(|two| two[0] != two[1]), "zones share a group")?;
        let moves = refresh.is_none_or(|it| {
            it.zone < self.zones.len() && it.to < groups && self.zones.get(it.zone).group != NONE
        });
        restore::check(moves, "data of a zone without flash are being moved")?;
        (self.free, self.refresh, self.random) = (free, refresh, RandomPages::at(places));
        Ok(())
    }
}
