//! An operation on one stripe: waits for its lock if it needs one, reads, then writes.

use super::super::rebuild::Members;
use super::ParityArray;
use super::plan::{Plan, Situation};
use crate::redundant::RedundantArray;
use hybridsim_engine::{
    Completion, Ctx, DataSlice, Flags, LatencyAccount, LatencyBreakdown, LatencyPhase, Lba, Op,
    Request, SimDuration, SimTime,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Part of a request.
    Request(Op, u32),
    /// A rebuild step: writes a unit to the spare, for the rebuild with this number.
    Rebuild { number: u32, column: usize },
    /// A resync step: recomputes parity after a power failure.
    Resync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Reading,
    Writing,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct StripeOp {
    pub purpose: Purpose,
    pub plan: Plan,
    stage: Stage,
    pub stripe: u64,
    /// Range within the stripe's data.
    pub from: u32,
    pub to: u32,
    /// Flags, volume and data of the request it is part of.
    pub origin: Request,
    locked: bool,
    /// Whether the stripe is marked in the write-intent bitmap, or is being marked.
    marked: bool,
    /// Whether its writes are in the journal.
    pub(super) logged: bool,
    /// A member failed during a read.
    retry: bool,
    /// Requests in flight, and reads among them.
    pub(super) left: u32,
    reads: u32,
    /// The data were written before parity was computed.
    early: bool,
    latency: LatencyAccount,
}

/// The part of one unit of its stripe that an operation has read.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Range of sectors read; empty if both are equal.
    pub from: u32,
    pub to: u32,
    pub data: DataSlice,
    /// Whether the unit was missing when the operation was planned.
    pub missing: bool,
}

/// A request for some sectors of one unit of a stripe.
#[derive(Clone, Copy, Debug)]
struct UnitRequest {
    op: Op,
    unit: usize,
    range: (u32, u32),
    data: DataSlice,
}

impl Unit {
    const NOTHING: Self = Self { from: 0, to: 0, data: DataSlice::NONE, missing: false };
}

impl StripeOp {
    /// Serves sectors `range` of the array, all of one stripe, for `request`.
    pub fn of_request(
        parent: u32,
        request: &Request,
        range: (u64, u64),
        array: &ParityArray,
        since: SimTime,
    ) -> Self {
        let stripe = range.0 / array.stripe_sectors();
        let first = stripe * array.stripe_sectors();
        let data = request.data.skip((range.0 - request.lba.0) as u32);
        Self {
            purpose: Purpose::Request(request.op, parent),
            plan: Plan::Direct,
            stage: Stage::Waiting,
            stripe,
            from: (range.0 - first) as u32,
            to: (range.1 - first) as u32,
            origin: Request { data, ..*request },
            locked: false,
            marked: false,
            logged: false,
            retry: false,
            left: 0,
            reads: 0,
            early: false,
            latency: LatencyAccount::new(since),
        }
    }

    /// A background operation on a full stripe.
    pub fn of_stripe(purpose: Purpose, stripe: u64, array: &ParityArray, now: SimTime) -> Self {
        let to = array.stripe_sectors() as u32;
        let origin = Request { flags: Flags::BACKGROUND, ..Request::new(Op::Write, Lba(0), to) };
        Self {
            purpose,
            plan: if purpose == Purpose::Resync { Plan::Reconstruct } else { Plan::Solve },
            stage: Stage::Waiting,
            stripe,
            from: 0,
            to,
            origin,
            locked: false,
            marked: false,
            logged: false,
            retry: false,
            left: 0,
            reads: 0,
            early: false,
            latency: LatencyAccount::new(now),
        }
    }

    /// The sectors of data unit `unit` it touches; none if both are equal.
    #[inline]
    pub fn touched(&self, unit: usize, chunk: u32) -> (u32, u32) {
        let first = unit as u32 * chunk;
        let from = self.from.clamp(first, first + chunk) - first;
        let to = self.to.clamp(first, first + chunk) - first;
        (from, to)
    }

    /// The sectors within a chunk that parity is computed for.
    #[inline]
    pub fn span(&self, chunk: u32) -> (u32, u32) {
        let (head, tail) = (self.from / chunk, (self.to - 1) / chunk);
        if head == tail {
            (self.from % chunk, (self.to - 1) % chunk + 1)
        } else {
            // Exact: requests whose two parts do not overlap are split into two operations.
            (0, chunk)
        }
    }

    /// Data for sector `sector` of unit `unit`.
    #[inline]
    pub fn data_at(&self, unit: usize, sector: u32, chunk: u32) -> DataSlice {
        if self.origin.data.is_none() {
            return DataSlice::NONE;
        }
        self.origin.data.skip(unit as u32 * chunk + sector - self.from)
    }
}

impl ParityArray {
    #[inline]
    pub(super) fn chunk32(&self) -> u32 {
        self.chunk as u32
    }

    /// The child and the row that hold a unit, unless it is missing.
    #[inline]
    pub(super) fn holder(&self, stripe: u64, unit: usize) -> Option<(usize, u64)> {
        if !self.lost.is_empty() && self.lost.contains(&(stripe, unit)) {
            return None;
        }
        self.position(stripe, unit)
    }

    /// The child and the row for a unit, including units lost in a rebuild.
    fn position(&self, stripe: u64, unit: usize) -> Option<(usize, u64)> {
        let position = self.shape.layout.position(stripe, unit);
        let child = self.members.holder(position.column, stripe, stripe + 1)?;
        Some((child, position.row))
    }

    /// Units of the stripe that are missing.
    fn missing(&self, stripe: u64) -> usize {
        if self.is_whole() {
            return 0;
        }
        (0..self.width()).filter(|unit| self.holder(stripe, *unit).is_none()).count()
    }

    /// Whether no unit is missing in any stripe.
    fn is_whole(&self) -> bool {
        self.members.all_good() && self.lost.is_empty()
    }

    /// Whether the stripe has missing data and parity that may not match it.
    fn has_untrusted_parity(&self, stripe: u64) -> bool {
        let unsynced = self.resync.unsynced_of(stripe..stripe + 1).is_some();
        unsynced && !self.trusts_parity && self.misses_data(stripe)
    }

    fn misses_data(&self, stripe: u64) -> bool {
        !self.is_whole() && (0..self.shape.data).any(|unit| self.holder(stripe, unit).is_none())
    }

    fn units_of(&self, index: u32) -> std::ops::Range<usize> {
        let width = self.width();
        index as usize * width..(index as usize + 1) * width
    }

    /// Enters an operation; it is ready or waits for its lock.
    pub(super) fn enter(&mut self, op: StripeOp) {
        let index = self.ops.insert(op) as u32;
        let units = self.units_of(index).end.max(self.units.len());
        self.units.resize(units, Unit::NOTHING);
        let direct = matches!(op.purpose, Purpose::Request(Op::Read, _));
        if direct || self.lock(index, true) {
            self.ready.push_back(index);
        }
    }

    fn lock(&mut self, index: u32, exclusive: bool) -> bool {
        let chunk = self.chunk32();
        let op = &mut self.ops[index as usize];
        op.locked = true;
        let (from, to) = op.span(chunk);
        let first = op.stripe * self.chunk;
        self.locks.acquire(index, first + u64::from(from), first + u64::from(to), exclusive)
    }

    /// Plans an operation, which holds its lock if it needs one, and issues its first requests.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops[index as usize];
        let waits = match op.purpose {
            Purpose::Rebuild { number, .. } if !self.members.is_rebuilding(number) => {
                return self.finish(ctx, index, false);
            }
            Purpose::Request(Op::Read, _) => {
                self.read_directly(ctx, index) || (!op.locked && !self.lock(index, false))
            }
            Purpose::Request(..) if !op.marked => {
                self.ops[index as usize].marked = true;
                let stripe = op.stripe..op.stripe + 1;
                !self.resync.mark(ctx, &self.members, index, stripe)
            }
            _ => false,
        };
        if waits {
            return;
        }
        if self.missing(op.stripe) > self.shape.parities {
            if matches!(op.purpose, Purpose::Rebuild { .. }) {
                self.members.abandon_rebuild(ctx);
            }
            self.finish(ctx, index, true);
            return;
        }
        if self.refuses(ctx, index) {
            return;
        }
        let whole = self.is_whole();
        for unit in 0..self.width() {
            let missing = !whole && self.holder(op.stripe, unit).is_none();
            let at = self.units_of(index).start + unit;
            self.units[at] = Unit { missing, ..Unit::NOTHING };
        }
        self.enter_stage(ctx, index, Stage::Reading);
        let all = op.span(self.chunk32());
        match op.purpose {
            Purpose::Request(Op::Read, _) => self.read_to_solve(ctx, index, self.lost_span(index)),
            Purpose::Request(Op::Write, _) => self.read_to_write(ctx, index),
            Purpose::Request(..) => {}
            Purpose::Rebuild { .. } => self.read_to_solve(ctx, index, all),
            Purpose::Resync => {
                (0..self.shape.data).for_each(|unit| self.read_unit(ctx, index, unit, all));
            }
        }
        if self.ops[index as usize].left == 0 {
            self.write(ctx, index);
        }
    }

    /// Fails an operation that would depend on parity that may not match its data.
    fn refuses(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let op = self.ops[index as usize];
        let touches_missing = |unit| {
            let (from, to) = op.touched(unit, self.chunk32());
            from < to && self.holder(op.stripe, unit).is_none()
        };
        match op.purpose {
            Purpose::Resync => {
                // Missing parity is recomputed from the data by its rebuild.
                let data = self.shape.data;
                let parity =
                    (data..self.width()).any(|unit| self.holder(op.stripe, unit).is_some());
                if self.misses_data(op.stripe) {
                    self.finish(ctx, index, true);
                } else if !parity {
                    self.finish(ctx, index, false);
                } else {
                    return false;
                }
            }
            _ if !self.has_untrusted_parity(op.stripe) => return false,
            Purpose::Rebuild { column, .. } => {
                let unit = self.shape.layout.unit_on(op.stripe, column);
                let unit = unit.expect("only stripes with a unit there are rebuilt");
                self.lost.insert((op.stripe, unit));
                self.finish(ctx, index, false);
            }
            // It needs no old data or parity.
            Purpose::Request(Op::Write, _) if self.is_full(&op) => return false,
            Purpose::Request(kind, _) => {
                if kind == Op::Trim || !(0..self.shape.data).any(touches_missing) {
                    return false;
                }
                Members::report_write_hole(ctx, op.to - op.from);
                self.finish(ctx, index, true);
            }
        }
        true
    }

    fn is_full(&self, op: &StripeOp) -> bool {
        op.from == 0 && u64::from(op.to) == self.stripe_sectors()
    }

    fn enter_stage(&mut self, ctx: &Ctx<'_>, index: u32, stage: Stage) {
        let op = &mut self.ops[index as usize];
        op.stage = stage;
        op.latency.queued(ctx.now());
    }

    /// Issues a request for sectors of one unit to the member that holds it, if any does.
    fn issue(
        &mut self,
        ctx: &mut Ctx<'_>,
        index: u32,
        UnitRequest { op: kind, unit, range: (from, to), data }: UnitRequest,
    ) {
        let op = self.ops[index as usize];
        let holder = match kind {
            Op::Read => self.holder(op.stripe, unit),
            // Lost units are written only by full-stripe writes.
            _ => self.position(op.stripe, unit),
        };
        let (child, row) = match (holder, op.purpose) {
            (Some(holder), _) => holder,
            // Only a rebuild issues requests to a missing unit: it writes it.
            (None, Purpose::Rebuild { column, .. }) => {
                let row = self.shape.layout.position(op.stripe, unit).row;
                (self.members.present(column).expect("the rebuild is in progress"), row)
            }
            (None, _) => return,
        };
        let lba = Lba(row * self.chunk + u64::from(from));
        let request = Request { op: kind, lba, sectors: to - from, data, ..op.origin };
        let op = &mut self.ops[index as usize];
        op.left += 1;
        op.reads += u32::from(kind == Op::Read);
        if kind == Op::Write && self.journal.is_some() {
            self.note_write(ctx, index, (unit, (from, to)), data);
        }
        ctx.issue(child, request, u64::from(index) << 16 | unit as u64);
    }

    /// Reads the units themselves; returns `false` if one is missing.
    fn read_directly(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let (op, chunk) = (self.ops[index as usize], self.chunk32());
        let units = (op.from / chunk) as usize..=((op.to - 1) / chunk) as usize;
        let is_missing = |unit| self.holder(op.stripe, unit).is_none();
        if !self.is_whole() && units.clone().any(is_missing) {
            return false;
        }
        self.ops[index as usize].plan = Plan::Direct;
        self.enter_stage(ctx, index, Stage::Reading);
        for unit in units {
            let range = op.touched(unit, chunk);
            let data = op.data_at(unit, range.0, chunk);
            self.issue(ctx, index, UnitRequest { op: Op::Read, unit, range, data });
        }
        true
    }

    /// The sectors of missing units that a read needs.
    fn lost_span(&self, index: u32) -> (u32, u32) {
        let op = &self.ops[index as usize];
        let units = &self.units[self.units_of(index)];
        let missing = (0..self.shape.data).filter(|unit| units[*unit].missing);
        missing.map(|unit| op.touched(unit, self.chunk32())).fold((0, 0), hull)
    }

    /// Reads the touched sectors, and from the units present those needed to reconstruct sectors
    /// `lost` of the missing units; as many parity units as there are unknowns.
    fn read_to_solve(&mut self, ctx: &mut Ctx<'_>, index: u32, lost: (u32, u32)) {
        self.ops[index as usize].plan = Plan::Solve;
        let (op, start) = (self.ops[index as usize], self.units_of(index).start);
        let reads = matches!(op.purpose, Purpose::Request(Op::Read, _));
        let mut unknown = 0;
        for unit in 0..self.width() {
            if self.units[start + unit].missing {
                unknown += usize::from(unit < self.shape.data);
            } else if unit < self.shape.data {
                let touched = if reads { op.touched(unit, self.chunk32()) } else { (0, 0) };
                self.read_unit(ctx, index, unit, hull(touched, lost));
            } else if unknown > 0 {
                unknown -= 1;
                self.read_unit(ctx, index, unit, lost);
            }
        }
    }

    fn read_unit(&mut self, ctx: &mut Ctx<'_>, index: u32, unit: usize, range: (u32, u32)) {
        let (from, to) = range;
        if from == to {
            return;
        }
        let data = ctx.take_data(to - from);
        let at = self.units_of(index).start + unit;
        self.units[at] = Unit { from, to, data, missing: false };
        self.issue(ctx, index, UnitRequest { op: Op::Read, unit, range, data });
    }

    /// Reads the input of the parity computation of a write.
    fn read_to_write(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let (op, chunk) = (self.ops[index as usize], self.chunk32());
        let span = op.span(chunk);
        let situation = self.situation(index, span);
        let plan = situation.choose(self.small_write, self.break_point);
        self.ops[index as usize].plan = plan;
        if situation.parities == 0 {
            return;
        }
        if plan == Plan::Solve {
            self.read_to_solve(ctx, index, span);
            return;
        }
        let start = self.units_of(index).start;
        for unit in 0..self.width() {
            if self.units[start + unit].missing {
                continue;
            }
            let range = match (plan, unit < self.shape.data) {
                (Plan::Modify, true) => op.touched(unit, chunk),
                (Plan::Modify, false) => span,
                (_, true) => rest(op.touched(unit, chunk), span),
                (_, false) => (0, 0),
            };
            self.read_unit(ctx, index, unit, range);
        }
    }

    fn situation(&self, index: u32, span: (u32, u32)) -> Situation {
        let (op, units) = (&self.ops[index as usize], &self.units[self.units_of(index)]);
        let data = self.shape.data;
        let mut situation = Situation { data, ..Situation::default() };
        for (number, unit) in units[..data].iter().enumerate() {
            let touched = op.touched(number, self.chunk32());
            let (touches, keeps) = (touched.0 < touched.1, touched != span);
            situation.touched += usize::from(touches);
            situation.kept += usize::from(keeps);
            situation.misses_touched |= touches && unit.missing;
            situation.misses_kept |= keeps && unit.missing;
        }
        situation.parities = units[data..].iter().filter(|unit| !unit.missing).count();
        situation
    }

    /// A member completed a request of an operation.
    pub(super) fn unit_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion, served: bool) {
        let index = (done.tag >> 16) as u32;
        let unit = (done.tag & 0xffff) as usize;
        let is_read = done.request.op == Op::Read;
        let op = &mut self.ops[index as usize];
        op.left -= 1;
        op.reads -= u32::from(is_read);
        op.retry |= !served && is_read;
        let own = unit >= self.shape.data || !matches!(op.purpose, Purpose::Request(..));
        if own && op.stage == Stage::Writing {
            // A buffer of the operation's own.
            ctx.data().give_back(done.request.data);
        }
        if is_read && served && self.writes_early {
            self.write_early(ctx, index, unit);
        }
        let op = &mut self.ops[index as usize];
        // Plan again only when no request is in flight.
        let waits = op.stage == Stage::Writing || op.retry || !self.writes_early;
        if (if waits { op.left } else { op.reads }) > 0 {
            return;
        }
        if op.stage == Stage::Reading && !is_read && !op.retry {
            // Only the early data write is done; parity is still to come.
            return;
        }
        let now = ctx.now();
        let step = last_of(&done.breakdown, now.since(op.latency.until()));
        op.latency.served(now, &step);
        let op = *op;
        match op.stage {
            Stage::Reading if op.retry => {
                let op = &mut self.ops[index as usize];
                (op.retry, op.early) = (false, false);
                self.give_back(ctx, index);
                self.ready.push_back(index);
            }
            Stage::Reading if matches!(op.purpose, Purpose::Request(Op::Read, _)) => {
                if op.plan == Plan::Solve {
                    self.return_solved(ctx, index);
                    self.give_back(ctx, index);
                }
                self.finish(ctx, index, false);
            }
            Stage::Reading => self.write(ctx, index),
            _ => {
                let asked = matches!(op.purpose, Purpose::Request(..));
                let failed = asked && self.missing(op.stripe) > self.shape.parities;
                self.finish(ctx, index, failed);
            }
        }
    }

    /// The old data of `unit` have been read: if a read-modify-write changes only this unit, its
    /// new data are written before parity. With more units the stripe could not be reconstructed
    /// if a member failed in between.
    fn write_early(&mut self, ctx: &mut Ctx<'_>, index: u32, unit: usize) {
        let (op, chunk, data) = (self.ops[index as usize], self.chunk32(), self.shape.data);
        let writes =
            matches!(op.purpose, Purpose::Request(Op::Write, _)) && op.plan == Plan::Modify;
        let others = |other: usize| {
            let (from, to) = op.touched(other, chunk);
            other != unit && from < to
        };
        if !writes || op.retry || unit >= data || (0..data).any(others) {
            return;
        }
        let range = op.touched(unit, chunk);
        self.ops[index as usize].early = true;
        let data = op.data_at(unit, range.0, chunk);
        self.issue(ctx, index, UnitRequest { op: Op::Write, unit, range, data });
    }

    /// All input has been read: writes data and parity, trims, or writes to the spare.
    pub(super) fn write(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let (op, chunk, data) = (self.ops[index as usize], self.chunk32(), self.shape.data);
        self.enter_stage(ctx, index, Stage::Writing);
        if self.journal.is_some() && self.log(ctx, index) {
            return;
        }
        match op.purpose {
            Purpose::Rebuild { number, column } => {
                self.prepare(ctx, index);
                self.give_back(ctx, index);
                let unit = self.shape.layout.unit_on(op.stripe, column);
                if self.members.is_rebuilding(number) {
                    let unit = unit.expect("only stripes with a unit there are rebuilt");
                    self.write_computed(ctx, index, unit);
                }
            }
            Purpose::Request(Op::Trim, _) => {
                for unit in 0..self.width() {
                    let (range, data) = ((0, chunk), DataSlice::NONE);
                    self.issue(ctx, index, UnitRequest { op: Op::Trim, unit, range, data });
                }
            }
            Purpose::Request(..) | Purpose::Resync => {
                self.prepare(ctx, index);
                let data_written = if op.purpose == Purpose::Resync { 0 } else { data };
                for unit in 0..data_written {
                    let range = op.touched(unit, chunk);
                    if range.0 < range.1 && !op.early {
                        let data = op.data_at(unit, range.0, chunk);
                        self.issue(ctx, index, UnitRequest { op: Op::Write, unit, range, data });
                    }
                }
                for unit in data..self.width() {
                    // A full-stripe write also restores units lost in a rebuild.
                    let full = self.is_full(&op) && self.position(op.stripe, unit).is_some();
                    if full || self.is_whole() || self.holder(op.stripe, unit).is_some() {
                        self.write_computed(ctx, index, unit);
                    }
                }
                self.give_back(ctx, index);
            }
        }
        if self.ops[index as usize].left == 0 {
            // All targets have failed since, except for an early data write; a resync without a
            // parity unit present has nothing to write.
            let early = op.early || op.purpose == Purpose::Resync;
            let lost = !early || self.missing(op.stripe) > self.shape.parities;
            self.finish(ctx, index, lost);
        }
    }

    /// Writes a unit of the operation's span as computed from what was read.
    fn write_computed(&mut self, ctx: &mut Ctx<'_>, index: u32, unit: usize) {
        let range = self.ops[index as usize].span(self.chunk32());
        let data = self.unit_versions(ctx, index, unit);
        self.issue(ctx, index, UnitRequest { op: Op::Write, unit, range, data });
    }

    /// Releases the buffers of the data read.
    fn give_back(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        if self.ops[index as usize].plan == Plan::Direct || !ctx.verifying() {
            return;
        }
        for at in self.units_of(index) {
            let data = std::mem::replace(&mut self.units[at].data, DataSlice::NONE);
            ctx.data().give_back(data);
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>, index: u32, failed: bool) {
        let mut op = self.ops.remove(index as usize);
        op.latency.queued(ctx.now());
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        if op.logged {
            self.retire_entry(ctx, index);
        }
        if op.marked {
            self.resync.unmark(ctx, op.stripe..op.stripe + 1);
        }
        match op.purpose {
            Purpose::Resync => self.resync.step_done(ctx, op.stripe, !failed),
            Purpose::Request(kind, parent) => {
                if kind == Op::Write && !failed && self.is_full(&op) {
                    self.resync.replaced(ctx, op.stripe);
                    if !self.lost.is_empty() {
                        (0..self.width()).for_each(|unit| {
                            self.lost.remove(&(op.stripe, unit));
                        });
                    }
                }
                self.active -= 1;
                self.part_done(ctx, parent, op.latency.breakdown(), failed);
            }
            Purpose::Rebuild { number, .. } if !failed => {
                self.members.step_done(ctx, number, op.stripe);
            }
            Purpose::Rebuild { .. } => {}
        }
    }
}

/// The last `time` of `breakdown`, assuming the usual order of phases in a device.
fn last_of(breakdown: &LatencyBreakdown, time: SimDuration) -> LatencyBreakdown {
    let total = breakdown.total();
    if total <= time {
        // It was issued later than the step began.
        return breakdown.plus(LatencyPhase::Queue, time - total);
    }
    let (mut left, mut last) = (time, LatencyBreakdown::NONE);
    let order = [
        LatencyPhase::Bus,
        LatencyPhase::Transfer,
        LatencyPhase::Rotate,
        LatencyPhase::Seek,
        LatencyPhase::Overhead,
    ];
    for part in order {
        let some = breakdown.get(part).min(left);
        last.add(part, some);
        left -= some;
    }
    last.plus(LatencyPhase::Queue, left)
}

/// The smallest range that contains both; empty ranges are ignored.
fn hull(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    if a.0 == a.1 {
        b
    } else if b.0 == b.1 {
        a
    } else {
        (a.0.min(b.0), a.1.max(b.1))
    }
}

/// `span` without `touched`, which is at one end of it.
fn rest(touched: (u32, u32), span: (u32, u32)) -> (u32, u32) {
    if touched.0 == touched.1 {
        span
    } else if touched.0 > span.0 {
        (span.0, touched.0)
    } else {
        (touched.1, span.1)
    }
}
