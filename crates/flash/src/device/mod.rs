//! The SSD as a layer: cuts requests into pages, has the translation layer place them and the
//! clock time them, and tells what happened.

mod params;
mod pieces;
mod power_cut;
mod stamps;

pub use params::{ENTRIES, PARAMS, build_ssd};

use crate::event::{Cause, FlashEvent};
use crate::ftl::{EXPECTED_MAX, Ftl, FtlError, Hint};
use crate::geometry::{BlockId, Lpn};
use crate::ops::{After, FlashOp, FlashOps, OpKind};
use crate::precondition::{self, Precondition};
use crate::timing::Clock;
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Component, ComponentInfo, Contents, Ctx, Fault,
    LatencyPhase, Loader, Lookahead, Op, PowerFailure, PowerState, Prepare, Request, RequestId,
    SECTOR_BYTES, Saver, SimDuration, SimTime, StateError, Stream,
};
use pieces::{Piece, pieces, write_run};
use power_cut::{InFlight, RECOVERED};
use stamps::is_host_read;
use std::collections::BTreeMap;

/// While a device is busy without a pause, its active time is told this often.
const TELL_ACTIVE_AFTER: SimDuration = SimDuration::from_ms(100);

/// What an [`Ssd`] is put together from.
pub struct SsdParts {
    /// The registered name of the translation layer, for error messages.
    pub ftl_name: &'static str,
    /// The translation layer.
    pub ftl: Box<dyn Ftl>,
    /// Fresh flash.
    pub flash: FlashOps,
    /// Controller time per block looked at in search of a victim.
    pub search_time: SimDuration,
    /// When things happen.
    pub clock: Clock,
    /// Logical pages offered.
    pub exported_pages: u32,
    /// From the return of the power until the mapping is in memory again.
    pub recovery: SimDuration,
    /// Background work begins after this much idle time.
    pub idle_after: Option<SimDuration>,
    /// What to write before the run.
    pub precondition: Precondition,
    /// How many pages of it.
    pub precondition_pages: u32,
    /// Random numbers for preconditioning.
    pub stream: Stream,
    /// How far writes got when the power fails; each device has its own.
    pub power: Stream,
    /// Constants for the report.
    pub info: ComponentInfo,
}

/// A flash device.
pub struct Ssd {
    parts: SsdParts,
    sectors_per_page: u32,
    /// Stamps by physical sector, in verified runs.
    contents: Contents,
    /// What a power failure takes back, in verified runs where there are any.
    in_flight: InFlight,
    /// The stamps of the page being written, in verified runs.
    page: Vec<u64>,
    /// State time is told up to here.
    told_until: SimTime,
    /// Something of what was asked so far goes on until then.
    active_until: SimTime,
    free_told: u32,
    wake_set: bool,
}

impl Ssd {
    /// A device put together from `parts`.
    pub fn new(parts: SsdParts) -> Self {
        let sectors_per_page = parts.flash.array().geometry().sectors_per_page();
        Self {
            sectors_per_page,
            contents: Contents::default(),
            in_flight: InFlight::default(),
            page: vec![0; sectors_per_page as usize],
            told_until: SimTime::ZERO,
            active_until: SimTime::ZERO,
            free_told: u32::MAX,
            wake_set: false,
            parts,
        }
    }

    /// The state of the cells; for tests and figures.
    pub fn flash(&self) -> &FlashOps {
        &self.parts.flash
    }

    /// The translation layer and its flash, to be driven without a clock.
    pub fn untimed(&mut self) -> (&mut dyn Ftl, &mut FlashOps) {
        (&mut *self.parts.ftl, &mut self.parts.flash)
    }

    /// A request is looked at: at its arrival, or when the device has recovered.
    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let now = ctx.now();
        self.tell_states(ctx, false);
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let bytes = if moves_data { request.bytes() } else { 0 };
        self.parts.clock.begin(now, request.op, bytes);
        let done = match request.op {
            Op::Read => {
                self.read(ctx, request);
                Ok(())
            }
            Op::Write => self.write(ctx, request),
            Op::Trim => self.trim(ctx, request),
            // Nothing is acknowledged before it is programmed.
            Op::Flush => Ok(()),
        };
        self.check(ctx, done);
        let timed = self.parts.clock.end();
        self.active_until = self.active_until.max(timed.settled);
        if ctx.power_may_fail() {
            self.in_flight.note(ctx, request, self.sectors_per_page, timed.end);
        }
        let breakdown = timed.breakdown.plus(LatencyPhase::Queue, now.since(ctx.issued(id)));
        ctx.complete_at(id, timed.end, breakdown);
        self.tell_busy(ctx, false);
        self.tell_free_blocks(ctx);
        self.set_wake(ctx);
    }

    fn read(&mut self, ctx: &mut Ctx<'_>, request: &Request) {
        let mut unwritten = 0;
        for piece in pieces(request, self.sectors_per_page) {
            self.parts.flash.clear();
            self.parts.ftl.read(piece.lpn, &mut self.parts.flash);
            unwritten += u32::from(!self.parts.flash.list().iter().any(|op| is_host_read(&op)));
            if ctx.verifying() {
                self.move_contents(0);
                let stamps = self.page_of_host_read();
                let range = piece.offset as usize..(piece.offset + piece.sectors) as usize;
                let data = request.data.skip(piece.skip);
                let into = ctx.data().stamps_mut(data, piece.sectors);
                match stamps {
                    _ if into.is_empty() => {}
                    true => into.copy_from_slice(&self.page[range]),
                    false => into.fill(0),
                }
            }
            self.time_page(ctx, request, &piece);
        }
        if unwritten > 0 {
            ctx.emit(FlashEvent::ReadUnwritten { pages: unwritten });
        }
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        let run = write_run(request, self.sectors_per_page);
        let hint = Hint { request_pages: run.pages };
        self.parts.ftl.begin_write(run);
        for piece in pieces(request, self.sectors_per_page) {
            let SsdParts { ftl, flash, .. } = &mut self.parts;
            flash.clear();
            let partial = piece.sectors < self.sectors_per_page && ftl.holds(piece.lpn, flash);
            if partial {
                flash.set_host_cause(Cause::Partial);
                ftl.read(piece.lpn, flash);
                flash.set_host_cause(Cause::Host);
                let read = flash.list().iter().rposition(|op| op.cause == Cause::Partial);
                flash.host_waits_for(read.map_or(After::NOTHING, After::index_of));
            }
            let before = flash.list().len();
            if ctx.verifying() {
                if !(partial && self.page_of_host_read()) {
                    self.page.fill(0);
                }
                let from = request.data.skip(piece.skip);
                let stamps = ctx.data().stamps(from, piece.sectors);
                self.page[piece.offset as usize..][..stamps.len()].copy_from_slice(stamps);
            }
            let SsdParts { ftl, flash, .. } = &mut self.parts;
            ftl.write(piece.lpn, hint, flash)?;
            if ctx.verifying() {
                self.move_contents(before);
            }
            self.time_page(ctx, request, &piece);
        }
        Ok(())
    }

    /// Only whole pages can be given up; the rest of the range keeps its data.
    fn trim(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        for piece in pieces(request, self.sectors_per_page) {
            if piece.sectors == self.sectors_per_page {
                self.parts.flash.clear();
                self.parts.ftl.trim(piece.lpn, &mut self.parts.flash)?;
                if ctx.verifying() {
                    self.move_contents(0);
                }
                self.time_page(ctx, request, &piece);
            }
        }
        Ok(())
    }

    /// Books the operations noted for `piece` and tells them.
    #[inline]
    fn time_page(&mut self, ctx: &mut Ctx<'_>, request: &Request, piece: &Piece) {
        self.time_search(ctx);
        let behind = u64::from(request.sectors - piece.skip - piece.sectors) * SECTOR_BYTES;
        let bytes = u64::from(piece.sectors) * SECTOR_BYTES;
        self.parts.clock.page(self.parts.flash.list(), bytes, behind);
        self.tell_operations(ctx);
    }

    /// Books the controller's search for victims and tells it.
    #[inline]
    fn time_search(&mut self, ctx: &mut Ctx<'_>) {
        let blocks = self.parts.flash.searched_blocks();
        if blocks > 0 {
            self.parts.clock.delay(self.parts.search_time * u64::from(blocks));
            ctx.emit(FlashEvent::VictimSearch { blocks });
        }
    }

    #[inline]
    fn tell_operations(&mut self, ctx: &mut Ctx<'_>) {
        for op in self.parts.flash.list() {
            let FlashOp { kind, cause, die, page, .. } = *op;
            let die = die.0;
            match kind {
                OpKind::Read => ctx.emit(FlashEvent::Read { cause, die }),
                OpKind::Program => ctx.emit(FlashEvent::Program { cause, die }),
                OpKind::Copy => {
                    ctx.emit(FlashEvent::Read { cause, die });
                    ctx.emit(FlashEvent::Program { cause, die });
                }
                OpKind::Erase => {
                    let erases = self.parts.flash.array().erases(BlockId(page));
                    ctx.emit(FlashEvent::Erase { cause, die, block: page, erases });
                }
            }
        }
    }

    /// Tells what each die and channel does when, if somebody looks.
    #[inline]
    fn tell_busy(&mut self, ctx: &mut Ctx<'_>, everything: bool) {
        if ctx.detailed_events() {
            self.parts.clock.told(ctx.now(), everything, |busy| ctx.emit(busy));
        }
    }

    /// Ends the run when the translation layer gave up or broke a rule of flash.
    #[inline]
    fn check(&self, ctx: &mut Ctx<'_>, done: Result<(), FtlError>) {
        if let Err(error) = done {
            ctx.device_fault(error.to_string());
        }
        if let Some(violation) = self.parts.flash.violation() {
            let (path, ftl) = (ctx.path().to_owned(), self.parts.ftl_name);
            let message = format!("{path}: translation layer `{ftl}`: {violation}");
            ctx.fault(Fault::Invariant(message));
        }
    }

    /// Tells how the time up to now was spent: a device is active while anything of it works.
    #[inline]
    fn tell_states(&mut self, ctx: &mut Ctx<'_>, everything: bool) {
        let now = ctx.now();
        let busy_until = self.active_until.min(now);
        let idle = now.since(busy_until);
        let active = busy_until.since(self.told_until);
        if idle.is_zero() && active < TELL_ACTIVE_AFTER && !everything {
            return;
        }
        if !active.is_zero() {
            ctx.emit(CommonEvent::StateTime { state: PowerState::Active, duration: active });
        }
        let idle = now.since(busy_until.max(self.told_until));
        if !idle.is_zero() {
            ctx.emit(CommonEvent::StateTime { state: PowerState::Idle, duration: idle });
        }
        self.told_until = now;
    }

    #[inline]
    fn tell_free_blocks(&mut self, ctx: &mut Ctx<'_>) {
        let free = self.parts.flash.array().free_blocks();
        if free != self.free_told {
            self.free_told = free;
            ctx.emit(FlashEvent::FreeBlocks { free });
        }
    }

    fn set_wake(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(delay) = self.parts.idle_after.filter(|_| !self.wake_set) {
            self.wake_set = true;
            ctx.wake_at(self.active_until.max(ctx.now()) + delay, 0);
        }
    }
}

impl Component for Ssd {
    fn capacity(&self) -> u64 {
        u64::from(self.parts.exported_pages) * u64::from(self.sectors_per_page)
    }

    fn info(&self) -> ComponentInfo {
        self.parts.info.clone()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.detailed_events() {
            self.parts.clock.watch();
        }
        self.check(ctx, Ok(()));
        self.tell_free_blocks(ctx);
        self.set_wake(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.in_flight.holds_back(id, request) {
            return;
        }
        self.serve(ctx, id, request);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {
        unreachable!("a device has no children");
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token == RECOVERED {
            self.recovered(ctx);
            return;
        }
        self.wake_set = false;
        let Some(delay) = self.parts.idle_after else { return };
        if ctx.now() < self.active_until + delay {
            self.set_wake(ctx);
            return;
        }
        self.tell_states(ctx, false);
        let SsdParts { ftl, flash, clock, .. } = &mut self.parts;
        flash.clear();
        clock.begin_background(ctx.now());
        let worked = ftl.idle(flash);
        self.time_search(ctx);
        let SsdParts { flash, clock, .. } = &mut self.parts;
        clock.page(flash.list(), 0, 0);
        self.active_until = self.active_until.max(clock.end().settled);
        if ctx.verifying() {
            self.move_contents(0);
        }
        self.tell_operations(ctx);
        self.tell_busy(ctx, false);
        self.tell_free_blocks(ctx);
        if worked == Ok(true) {
            // Go on at once: a request that comes meanwhile waits for one page at most.
            self.wake_set = true;
            ctx.wake_at(self.active_until.max(ctx.now() + SimDuration::from_ns(1)), 0);
        }
        self.check(ctx, worked.map(drop));
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        self.tell_states(ctx, true);
        self.tell_busy(ctx, true);
        let array = self.parts.flash.array();
        let mut wear = BTreeMap::new();
        for block in 0..array.geometry().blocks() {
            *wear.entry(array.erases(BlockId(block))).or_insert(0) += 1;
        }
        for (erases, blocks) in wear {
            ctx.emit(FlashEvent::Wear { erases, blocks });
        }
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }

    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        (self.parts.precondition != Precondition::None).then_some(self as &mut dyn Prepare)
    }

    fn lookahead(&self) -> Option<&dyn Lookahead> {
        Some(self)
    }
}

impl Checkpoint for Ssd {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        let SsdParts { ftl, flash, clock, stream, .. } = &self.parts;
        flash.save(to);
        ftl.save(to)?;
        clock.save(to);
        to.put(&(stream, self.told_until, self.active_until, self.free_told, self.wake_set));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let SsdParts { ftl, flash, clock, stream, .. } = &mut self.parts;
        flash.restore(from)?;
        ftl.restore(from)?;
        clock.restore(from)?;
        (*stream, self.told_until, self.active_until, self.free_told, self.wake_set) =
            from.take()?;
        Ok(())
    }
}

impl PowerFailure for Ssd {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.lose_power(now);
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.recover(ctx);
    }
}

impl Prepare for Ssd {
    fn prepare(&mut self, watch: &mut dyn FnMut(f64) -> bool) -> Result<(), String> {
        let SsdParts { ftl, flash, precondition, precondition_pages, stream, .. } = &mut self.parts;
        flash.set_recording(false);
        let prepared = ftl.prepare(flash);
        flash.set_recording(true);
        prepared
            .and_then(|()| {
                let pages = *precondition_pages;
                precondition::run(*precondition, pages, &mut **ftl, flash, stream, watch)
            })
            .map_err(|error| error.to_string())
    }
}

impl Lookahead for Ssd {
    fn expect(&self, requests: &[Request]) {
        let mut lpns = [Lpn(0); EXPECTED_MAX];
        let count = requests.len().min(EXPECTED_MAX);
        for (lpn, request) in lpns.iter_mut().zip(requests) {
            let number = request.lba.0 / u64::from(self.sectors_per_page);
            *lpn = Lpn(u32::try_from(number).unwrap_or(u32::MAX));
        }
        self.parts.ftl.expect(&lpns[..count], &self.parts.flash);
    }
}
