//! Zones of the host: their management, and their report.

use super::management::Placement;
use super::{PHYSICAL_SECTORS, SmrDisk, Statistic};
use hybridsim_engine::zone_table::{ZoneLimits, ZoneStatus};
use hybridsim_engine::{
    Ctx, Flags, LatencyBreakdown, LatencyPhase, Op, Request, RequestId, SECTOR_BYTES, SimDuration,
    ZoneAction, ZoneInfo, ZoneLayout, Zoned,
};

/// The latency of a request that takes `time` from now on.
pub(super) fn overhead(ctx: &Ctx<'_>, id: RequestId, time: SimDuration) -> LatencyBreakdown {
    LatencyBreakdown::of([
        (LatencyPhase::Queue, ctx.now().since(ctx.issued(id))),
        (LatencyPhase::Overhead, time),
    ])
}

impl SmrDisk {
    /// Why a request is refused whatever the state of its zone.
    pub(super) fn refusal(&self, request: &Request) -> Option<ZoneStatus> {
        let size = u64::from(self.parts.band);
        match request.op {
            // ZBC has no zone append.
            Op::Write if request.flags.contains(Flags::APPEND) => Some(ZoneStatus::InvalidField),
            // Nor random write areas.
            Op::Zone(_) if request.flags.contains(Flags::RANDOM_WRITE_AREA) => {
                Some(ZoneStatus::InvalidField)
            }
            Op::Write if matches!(self.parts.placement, Placement::Required) => {
                let [first, last] =
                    [request.lba.0, request.end().0 - 1].map(|lba| self.band_of(lba));
                if first == last || last < self.parts.conventional {
                    None
                } else if first < self.parts.conventional {
                    Some(ZoneStatus::BoundaryError)
                } else {
                    let at = (request.lba.0 - self.band_start(first)) as u32;
                    self.check_order(first, (at, request.sectors)).err()
                }
            }
            Op::Zone(_) => {
                let whole = request.lba.0.is_multiple_of(size)
                    && u64::from(request.sectors) == size
                    && self.band_of(request.lba.0) >= self.parts.conventional;
                (!whole).then_some(ZoneStatus::InvalidField)
            }
            _ => None,
        }
    }

    /// Manages a zone, which is locked.
    pub(super) fn manage(&mut self, ctx: &mut Ctx<'_>, number: usize, action: ZoneAction) {
        let range = self.jobs[number].range();
        let zone = self.band_of(range.start);
        let before = self.bands.open_count();
        let done = match action {
            ZoneAction::Open => self.open(ctx, zone, true),
            ZoneAction::Commit => Err(ZoneStatus::InvalidOperation),
            ZoneAction::Close => self.bands.close(zone),
            ZoneAction::Finish => self.bands.finish(zone).map(|_| ()),
            ZoneAction::Reset => self.bands.reset(zone).map(|_| {
                if let Some(cache) = &mut self.cache {
                    cache.map.remove(range.start, range.end);
                    ctx.emit(Statistic::Used.event(cache.map.used() * SECTOR_BYTES));
                }
            }),
        };
        match done {
            Ok(()) => {
                self.report_open(ctx, before);
                self.end_job(ctx, number, None);
            }
            Err(status) => self.refuse_job(ctx, number, status),
        }
    }

    pub(super) fn open(
        &mut self,
        ctx: &mut Ctx<'_>,
        zone: u32,
        explicitly: bool,
    ) -> Result<(), ZoneStatus> {
        let before = self.bands.open_count();
        if self.bands.open(zone, explicitly)? {
            ctx.emit(Statistic::ImplicitClose.event(1));
        }
        self.report_open(ctx, before);
        Ok(())
    }

    /// Reports the number of open zones if it is not `before`.
    pub(super) fn report_open(&self, ctx: &mut Ctx<'_>, before: usize) {
        let open = self.bands.open_count();
        if open != before {
            ctx.emit(Statistic::Open.event(open as u64));
        }
    }

    /// Reports the number of open zones, of a disk that has zones.
    pub(super) fn report_zones(&self, ctx: &mut Ctx<'_>) {
        if self.is_zoned() {
            ctx.emit(Statistic::Open.event(self.bands.open_count() as u64));
        }
    }
}

impl Zoned for SmrDisk {
    fn layout(&self) -> ZoneLayout {
        let ZoneLimits { capacity, open_max, .. } = *self.bands.limits();
        ZoneLayout {
            first: self.band_start(self.parts.conventional),
            zones: u64::from(self.bands.len() - self.parts.conventional),
            size: capacity.into(),
            capacity: capacity.into(),
            page: PHYSICAL_SECTORS.into(),
            open_max: (open_max != u32::MAX).then_some(open_max),
            active_max: None,
            in_order_only: matches!(self.parts.placement, Placement::Required),
            random: None,
        }
    }

    fn zone(&self, zone: u64) -> ZoneInfo {
        let zone = self.bands.get(zone as u32 + self.parts.conventional);
        ZoneInfo { state: zone.state, written: zone.written.into(), is_random: false }
    }

    fn active(&self) -> (u32, u32) {
        (self.bands.open_count() as u32, self.bands.active_count())
    }
}
