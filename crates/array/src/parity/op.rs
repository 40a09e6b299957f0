//! An operation on one stripe: it may wait for a lock, reads, then writes.

use super::super::locks::Range;
use super::super::members::Members;
use super::plan::{Plan, Situation};
use super::{ParityArray, add_parts, add_wait};
use hybridsim_engine::{
    Completion, Ctx, DataSlice, Flags, LatencyBreakdown, LatencyPhase, Lba, Op, Request,
    SimDuration, SimTime,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// For a request.
    Request(Op, u32),
    /// Fills a column of a spare, for the rebuild of this number.
    Rebuild { number: u32, column: usize },
    /// Computes parity anew after a power failure.
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
    pub work: Work,
    pub plan: Plan,
    stage: Stage,
    pub stripe: u64,
    /// Sectors of the stripe's data it is about.
    pub from: u32,
    pub to: u32,
    /// Flags and volume of its requests, and where its data is.
    pub origin: Request,
    locked: bool,
    /// Whether the stripe is marked as being written to, or is being so.
    marked: bool,
    /// Whether what it writes is in the journal.
    pub(super) logged: bool,
    /// A member failed while it was read from.
    retry: bool,
    /// Requests at members, and reads among them.
    pub(super) left: u32,
    reads: u32,
    /// Its data went to the member before parity was known.
    early: bool,
    /// `breakdown` reaches until then.
    since: SimTime,
    breakdown: LatencyBreakdown,
}

/// What an operation has read of one unit of its stripe.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Sectors of the unit that were read; none if both are the same.
    pub from: u32,
    pub to: u32,
    /// Their stamps.
    pub data: DataSlice,
    /// Whether the unit was missing when the operation was planned.
    pub missing: bool,
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
            work: Work::Request(request.op, parent),
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
            since,
            breakdown: LatencyBreakdown::NONE,
        }
    }

    /// Does `work`, which is of the array's own, to a whole stripe.
    pub fn of_stripe(work: Work, stripe: u64, array: &ParityArray, now: SimTime) -> Self {
        let to = array.stripe_sectors() as u32;
        let origin = Request { flags: Flags::BACKGROUND, ..Request::new(Op::Write, Lba(0), to) };
        Self {
            work,
            plan: if work == Work::Resync { Plan::Reconstruct } else { Plan::Solve },
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
            since: now,
            breakdown: LatencyBreakdown::NONE,
        }
    }

    /// The sectors of data unit `unit` it touches; none if both are the same.
    pub fn touched(&self, unit: usize, chunk: u32) -> (u32, u32) {
        let first = unit as u32 * chunk;
        let from = self.from.clamp(first, first + chunk) - first;
        let to = self.to.clamp(first, first + chunk) - first;
        (from, to)
    }

    /// The sectors within a chunk it is about: those parity is made for.
    pub fn span(&self, chunk: u32) -> (u32, u32) {
        let (head, tail) = (self.from / chunk, (self.to - 1) / chunk);
        if head == tail {
            (self.from % chunk, (self.to - 1) % chunk + 1)
        } else {
            // Operations whose two parts do not meet were cut in two, so this is tight.
            (0, chunk)
        }
    }

    /// Its data for sector `sector` of unit `unit`.
    pub fn data_at(&self, unit: usize, sector: u32, chunk: u32) -> DataSlice {
        if self.origin.data.is_none() {
            return DataSlice::NONE;
        }
        self.origin.data.skip(unit as u32 * chunk + sector - self.from)
    }
}

impl ParityArray {
    pub(super) fn chunk32(&self) -> u32 {
        self.chunk as u32
    }

    /// The child and the row that hold a unit, unless it is missing.
    pub(super) fn holder(&self, stripe: u64, unit: usize) -> Option<(usize, u64)> {
        if !self.lost.is_empty() && self.lost.contains(&(stripe, unit)) {
            return None;
        }
        self.place(stripe, unit)
    }

    /// The child and the row for a unit, whether it could be filled or not.
    fn place(&self, stripe: u64, unit: usize) -> Option<(usize, u64)> {
        let place = self.shape.layout.place(stripe, unit);
        let child = self.members.holder(place.column, stripe, stripe + 1)?;
        Some((child, place.row))
    }

    /// Units of the stripe that are missing.
    fn missing(&self, stripe: u64) -> usize {
        if self.is_whole() {
            return 0;
        }
        (0..self.width()).filter(|unit| self.holder(stripe, *unit).is_none()).count()
    }

    /// Whether nothing is missing anywhere.
    fn is_whole(&self) -> bool {
        self.members.all_good() && self.lost.is_empty()
    }

    /// Whether the stripe misses data that parity, which may not match, cannot stand in for.
    fn is_dubious(&self, stripe: u64) -> bool {
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

    /// Takes in an operation; it is ready, or waits for its lock.
    pub(super) fn enter(&mut self, op: StripeOp) {
        let index = self.ops.insert(op) as u32;
        let units = self.units_of(index).end.max(self.units.len());
        self.units.resize(units, Unit::NOTHING);
        let direct = matches!(op.work, Work::Request(Op::Read, _));
        if direct || self.lock(index, true) {
            self.ready.push_back(index);
        }
    }

    fn lock(&mut self, index: u32, exclusive: bool) -> bool {
        let chunk = self.chunk32();
        let op = &mut self.ops[index as usize];
        op.locked = true;
        let (from, to) = op.span(chunk);
        let (from, to) = (u64::from(from), u64::from(to));
        self.locks.acquire(index, Range { key: op.stripe, from, to, exclusive })
    }

    /// Plans the operation, which holds its lock if it needs one, and issues its first requests.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops[index as usize];
        let waits = match op.work {
            Work::Rebuild { number, .. } if !self.members.is_rebuilding(number) => {
                return self.finish(ctx, index, false);
            }
            Work::Request(Op::Read, _) => {
                self.read_directly(ctx, index) || (!op.locked && !self.lock(index, false))
            }
            Work::Request(..) if !op.marked => {
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
            if matches!(op.work, Work::Rebuild { .. }) {
                self.members.give_up_rebuild(ctx);
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
        match op.work {
            Work::Request(Op::Read, _) => self.read_to_solve(ctx, index, self.lost_span(index)),
            Work::Request(Op::Write, _) => self.read_to_write(ctx, index),
            Work::Request(..) => {}
            Work::Rebuild { .. } => self.read_to_solve(ctx, index, all),
            Work::Resync => {
                (0..self.shape.data).for_each(|unit| self.read_unit(ctx, index, unit, all));
            }
        }
        if self.ops[index as usize].left == 0 {
            self.write(ctx, index);
        }
    }

    /// Ends an operation that would have to believe parity that may not match its data.
    fn refuses(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let op = self.ops[index as usize];
        let touches_missing = |unit| {
            let (from, to) = op.touched(unit, self.chunk32());
            from < to && self.holder(op.stripe, unit).is_none()
        };
        match op.work {
            Work::Resync => {
                // Parity that is missing too comes with its rebuild, from the data.
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
            _ if !self.is_dubious(op.stripe) => return false,
            Work::Rebuild { column, .. } => {
                let unit = self.shape.layout.unit_on(op.stripe, column);
                let unit = unit.expect("only stripes with a unit there are rebuilt");
                self.lost.insert((op.stripe, unit));
                self.finish(ctx, index, false);
            }
            // Nothing that was there before is needed.
            Work::Request(Op::Write, _) if self.is_full(&op) => return false,
            Work::Request(kind, _) => {
                if kind == Op::Trim || !(0..self.shape.data).any(touches_missing) {
                    return false;
                }
                Members::tell_write_hole(ctx, op.to - op.from);
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
        add_wait(&mut op.breakdown, &mut op.since, ctx.now());
    }

    fn issue(
        &mut self,
        ctx: &mut Ctx<'_>,
        index: u32,
        (unit, kind): (usize, Op),
        (from, to): (u32, u32),
        data: DataSlice,
    ) {
        let op = self.ops[index as usize];
        let holder = match kind {
            Op::Read => self.holder(op.stripe, unit),
            // Only whole stripes are written where a unit is lost.
            _ => self.place(op.stripe, unit),
        };
        let (child, row) = match (holder, op.work) {
            (Some(holder), _) => holder,
            // Only a rebuild speaks to a unit that is missing: it fills it.
            (None, Work::Rebuild { column, .. }) => {
                let row = self.shape.layout.place(op.stripe, unit).row;
                (self.members.present(column).expect("its rebuild goes on"), row)
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

    /// Reads from the units themselves, if none is missing.
    fn read_directly(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let (op, chunk) = (self.ops[index as usize], self.chunk32());
        let units = (op.from / chunk) as usize..=((op.to - 1) / chunk) as usize;
        if units.clone().any(|unit| self.holder(op.stripe, unit).is_none()) {
            return false;
        }
        self.ops[index as usize].plan = Plan::Direct;
        self.enter_stage(ctx, index, Stage::Reading);
        for unit in units {
            let range = op.touched(unit, chunk);
            self.issue(ctx, index, (unit, Op::Read), range, op.data_at(unit, range.0, chunk));
        }
        true
    }

    /// The sectors of missing units a read wants.
    fn lost_span(&self, index: u32) -> (u32, u32) {
        let op = &self.ops[index as usize];
        let units = &self.units[self.units_of(index)];
        let missing = (0..self.shape.data).filter(|unit| units[*unit].missing);
        missing.map(|unit| op.touched(unit, self.chunk32())).fold((0, 0), hull)
    }

    /// Reads what is touched, and of every unit there is what is needed to solve for the missing
    /// units' sectors `lost`; parity only as much as there are unknowns.
    fn read_to_solve(&mut self, ctx: &mut Ctx<'_>, index: u32, lost: (u32, u32)) {
        self.ops[index as usize].plan = Plan::Solve;
        let (op, start) = (self.ops[index as usize], self.units_of(index).start);
        let reads = matches!(op.work, Work::Request(Op::Read, _));
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
        self.issue(ctx, index, (unit, Op::Read), range, data);
    }

    /// Reads what a write needs to make parity.
    fn read_to_write(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let (op, chunk) = (self.ops[index as usize], self.chunk32());
        let span = op.span(chunk);
        let situation = self.situation(index, span);
        let plan = situation.choose(self.small_write);
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

    /// One request of an operation is done.
    pub(super) fn unit_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion, served: bool) {
        let index = (done.tag >> 16) as u32;
        let unit = (done.tag & 0xffff) as usize;
        let is_read = done.request.op == Op::Read;
        let op = &mut self.ops[index as usize];
        op.left -= 1;
        op.reads -= u32::from(is_read);
        op.retry |= !served && is_read;
        let own = unit >= self.shape.data || !matches!(op.work, Work::Request(..));
        if own && op.stage == Stage::Writing {
            // The data written for the operation's own account.
            ctx.data().give_back(done.request.data);
        }
        if is_read && served && self.writes_early {
            self.write_early(ctx, index, unit);
        }
        let op = &mut self.ops[index as usize];
        // Nothing is planned anew while something is at a member.
        let waits = op.stage == Stage::Writing || op.retry || !self.writes_early;
        if (if waits { op.left } else { op.reads }) > 0 {
            return;
        }
        if op.stage == Stage::Reading && !is_read && !op.retry {
            // Data written early; parity is not yet.
            return;
        }
        add_parts(&mut op.breakdown, &last_of(&done.breakdown, ctx.now().since(op.since)));
        op.since = ctx.now();
        let op = *op;
        match op.stage {
            Stage::Reading if op.retry => {
                let op = &mut self.ops[index as usize];
                (op.retry, op.early) = (false, false);
                self.give_back(ctx, index);
                self.ready.push_back(index);
            }
            Stage::Reading if matches!(op.work, Work::Request(Op::Read, _)) => {
                if op.plan == Plan::Solve {
                    self.answer_solved(ctx, index);
                    self.give_back(ctx, index);
                }
                self.finish(ctx, index, false);
            }
            Stage::Reading => self.write(ctx, index),
            _ => {
                let asked = matches!(op.work, Work::Request(..));
                let failed = asked && self.missing(op.stripe) > self.shape.parities;
                self.finish(ctx, index, failed);
            }
        }
    }

    /// Old data of `unit` has been read: where that is all the data a read-modify-write changes,
    /// new data need not wait for parity. With more than one unit they do, or the stripe could not
    /// be solved if a member failed in between.
    fn write_early(&mut self, ctx: &mut Ctx<'_>, index: u32, unit: usize) {
        let (op, chunk, data) = (self.ops[index as usize], self.chunk32(), self.shape.data);
        let writes = matches!(op.work, Work::Request(Op::Write, _)) && op.plan == Plan::Modify;
        let others = |other: usize| {
            let (from, to) = op.touched(other, chunk);
            other != unit && from < to
        };
        if !writes || op.retry || unit >= data || (0..data).any(others) {
            return;
        }
        let range = op.touched(unit, chunk);
        self.ops[index as usize].early = true;
        self.issue(ctx, index, (unit, Op::Write), range, op.data_at(unit, range.0, chunk));
    }

    /// Everything needed has been read: writes data and parity, trims, or fills the spare.
    pub(super) fn write(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let (op, chunk, data) = (self.ops[index as usize], self.chunk32(), self.shape.data);
        self.enter_stage(ctx, index, Stage::Writing);
        if self.journal.is_some() && self.log(ctx, index) {
            return;
        }
        match op.work {
            Work::Rebuild { number, column } => {
                self.prepare(ctx, index);
                self.give_back(ctx, index);
                let unit = self.shape.layout.unit_on(op.stripe, column);
                if self.members.is_rebuilding(number) {
                    let unit = unit.expect("only stripes with a unit there are rebuilt");
                    let new = self.unit_stamps(ctx, index, unit);
                    self.issue(ctx, index, (unit, Op::Write), op.span(chunk), new);
                }
            }
            Work::Request(Op::Trim, _) => {
                for unit in 0..self.width() {
                    self.issue(ctx, index, (unit, Op::Trim), (0, chunk), DataSlice::NONE);
                }
            }
            Work::Request(..) | Work::Resync => {
                self.prepare(ctx, index);
                let data_written = if op.work == Work::Resync { 0 } else { data };
                for unit in 0..data_written {
                    let (from, to) = op.touched(unit, chunk);
                    if from < to && !op.early {
                        let new = op.data_at(unit, from, chunk);
                        self.issue(ctx, index, (unit, Op::Write), (from, to), new);
                    }
                }
                for unit in data..self.width() {
                    // A whole stripe fills what could not be filled before, too.
                    let full = self.is_full(&op) && self.place(op.stripe, unit).is_some();
                    if full || self.holder(op.stripe, unit).is_some() {
                        let new = self.unit_stamps(ctx, index, unit);
                        self.issue(ctx, index, (unit, Op::Write), op.span(chunk), new);
                    }
                }
                self.give_back(ctx, index);
            }
        }
        if self.ops[index as usize].left == 0 {
            // Everything it would have written to has failed since, save for what was early. A
            // resync without parity to compute has nothing to do.
            let early = op.early || op.work == Work::Resync;
            let lost = !early || self.missing(op.stripe) > self.shape.parities;
            self.finish(ctx, index, lost);
        }
    }

    /// Returns the buffers of what was read.
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
        add_wait(&mut op.breakdown, &mut op.since, ctx.now());
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        if op.logged {
            self.forget_entry(ctx, index);
        }
        if op.marked {
            self.resync.unmark(ctx, op.stripe..op.stripe + 1);
        }
        match op.work {
            Work::Resync => self.resync.step_done(ctx, op.stripe, !failed),
            Work::Request(kind, parent) => {
                if kind == Op::Write && !failed && self.is_full(&op) {
                    self.resync.replaced(ctx, op.stripe);
                    if !self.lost.is_empty() {
                        (0..self.width()).for_each(|unit| {
                            self.lost.remove(&(op.stripe, unit));
                        });
                    }
                }
                self.active -= 1;
                self.part_done(ctx, parent, op.breakdown, failed);
            }
            Work::Rebuild { number, .. } if !failed => {
                self.members.step_done(ctx, number, op.stripe);
            }
            Work::Rebuild { .. } => {}
        }
    }
}

/// The last `time` of `breakdown`: what comes last in a member's work is taken first.
fn last_of(breakdown: &LatencyBreakdown, time: SimDuration) -> LatencyBreakdown {
    if breakdown.total() <= time {
        // It began later, when something else had been read.
        return breakdown.plus(LatencyPhase::Queue, time - breakdown.total());
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

/// The smallest range that holds both; an empty one counts for nothing.
fn hull(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    if a.0 == a.1 {
        b
    } else if b.0 == b.1 {
        a
    } else {
        (a.0.min(b.0), a.1.max(b.1))
    }
}

/// What is left of `span` without `touched`: it lies at one end of it.
fn rest(touched: (u32, u32), span: (u32, u32)) -> (u32, u32) {
    if touched.0 == touched.1 {
        span
    } else if touched.0 > span.0 {
        (span.0, touched.0)
    } else {
        (touched.1, span.1)
    }
}
