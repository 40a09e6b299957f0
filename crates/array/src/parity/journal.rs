//! A write journal that closes the write hole: before a stripe is written, its data and parity are
//! written to a separate device with forced unit access. After a power failure interrupted writes
//! are replayed from there, so parity always matches the data, whichever member is missing (as
//! Linux md's write journal in write-through mode).
//!
//! Entries form a ring: a header sector, then the data. Space is reclaimed when the stripe and all
//! earlier entries' stripes have been written. When the journal device fails, the array continues
//! without a journal.

use super::super::rebuild::Members;
use super::op::{Purpose, StripeOp};
use super::{Parameters, ParityArray, Trims, WriteOrder};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::Problem;
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Ctx, Flags, Lba, Op, Request, SimTime,
};
use std::collections::VecDeque;

/// Marks the tags of journal requests; the other bits are the operation, or [`ALL`].
pub(super) const JOURNAL_TAG: u64 = 1 << 61;
pub(super) const REPLAY_TAG: u64 = 1 << 60;
/// The read of all entries.
const ALL: u64 = 0xffff_ffff;

/// A write to a unit: the unit, its sectors, their data versions in verified runs.
type UnitWrite = (usize, (u32, u32), Vec<u64>);

/// The journal entry of an operation in progress.
#[derive(Debug)]
struct Entry {
    index: u32,
    stripe: u64,
    /// Sectors in the journal.
    length: u64,
    writes: Vec<UnitWrite>,
    /// The stripe has been written.
    done: bool,
}

#[derive(Debug)]
pub(super) struct Journal {
    child: usize,
    capacity: u64,
    /// Start of the next entry.
    at: u64,
    /// Sectors of all entries, which are contiguous in the ring.
    used: u64,
    entries: VecDeque<Entry>,
    /// Recycled lists of writes.
    spare: Vec<Vec<UnitWrite>>,
    /// Operations that wait for space.
    waiting: VecDeque<u32>,
    /// Replayed writes in flight; `None` when no replay is in progress.
    replaying: Option<u32>,
    since: SimTime,
}

/// No operation is under way, so there are no entries.
impl Checkpoint for Journal {
    hybridsim_engine::saves!(at);
}

impl Journal {
    /// The journal configured in `input`, for stripes of `stripe_sectors` sectors with parity.
    pub(super) fn read(
        input: &BuildInput<'_>,
        params: &Parameters,
        stripe_sectors: u64,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        params.journal.as_ref()?;
        let child = input.children.len().checked_sub(1)?;
        let capacity = input.children[child].capacity;
        if capacity <= stripe_sectors {
            let message = format!("must hold more than the {stripe_sectors} sectors of a stripe");
            problems.push(Problem::new("journal", message));
        }
        if params.trim == Trims::Pass {
            problems.push(Problem::new("trim", "`pass` cannot be combined with a journal"));
        }
        if params.write_order == WriteOrder::Early {
            problems.push(Problem::new("write_order", "`early` cannot be combined with a journal"));
        }
        Some(Self {
            child,
            capacity,
            at: 0,
            used: 0,
            entries: VecDeque::new(),
            spare: Vec::new(),
            waiting: VecDeque::new(),
            replaying: None,
            since: SimTime::ZERO,
        })
    }

    fn drop_done(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.done) {
            let Entry { length, writes, .. } = self.entries.pop_front().expect("checked above");
            self.used -= length;
            self.spare.push(writes);
        }
    }
}

impl ParityArray {
    /// The journal, unless it has failed.
    pub(super) fn journal(&mut self) -> Option<&mut Journal> {
        let members = &self.members;
        self.journal.as_mut().filter(|journal| !members.has_failed(journal.child))
    }

    /// Whether a replay is in progress, which all requests wait for.
    pub(super) fn is_replaying(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.replaying.is_some())
    }

    /// Writes the journal entry of an operation. Returns whether the operation has to wait for it.
    pub(super) fn log(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let op = self.ops[index as usize];
        if op.logged || !matches!(op.purpose, Purpose::Request(Op::Write, _)) {
            return false;
        }
        let length = self.entry_sectors(&op);
        let Some(journal) = self.journal() else { return false };
        if journal.used + length > journal.capacity || !journal.waiting.is_empty() {
            journal.waiting.push_back(index);
            return true;
        }
        self.append(ctx, index, op.stripe, length);
        true
    }

    fn entry_sectors(&self, op: &StripeOp) -> u64 {
        let (from, to) = op.span(self.chunk32());
        1 + u64::from(op.to - op.from) + self.shape.parities as u64 * u64::from(to - from)
    }

    fn append(&mut self, ctx: &mut Ctx<'_>, index: u32, stripe: u64, length: u64) {
        let journal = self.journal().expect("checked by the caller");
        // An entry that wraps around the end is written in two pieces.
        let first = length.min(journal.capacity - journal.at);
        let pieces = [(journal.at, first), (0, length - first)];
        journal.at = (journal.at + length) % journal.capacity;
        journal.used += length;
        let writes = journal.spare.pop().unwrap_or_default();
        journal.entries.push_back(Entry { index, stripe, length, writes, done: false });
        let child = journal.child;
        for (at, sectors) in pieces.into_iter().filter(|piece| piece.1 > 0) {
            let mut request = Request::new(Op::Write, Lba(at), sectors as u32);
            request.flags = Flags::FUA;
            request.data = ctx.take_data(sectors as u32);
            self.ops[index as usize].left += 1;
            ctx.issue(child, request, JOURNAL_TAG | u64::from(index));
        }
    }

    /// The journal device completed a request.
    pub(super) fn journal_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        if done.tag & ALL == ALL {
            return self.replay(ctx);
        }
        let index = (done.tag & ALL) as u32;
        self.ops[index as usize].left -= 1;
        if self.ops[index as usize].left == 0 {
            self.ops[index as usize].logged = true;
            self.write(ctx, index);
        }
        if self.journal().is_none() {
            // The journal failed: operations need not wait for space.
            self.log_waiting(ctx);
        }
    }

    /// Records a write to a unit in the journal entry of its operation.
    pub(super) fn note_write(
        &mut self,
        ctx: &mut Ctx<'_>,
        index: u32,
        (unit, span): (usize, (u32, u32)),
        data: hybridsim_engine::DataSlice,
    ) {
        if !self.ops[index as usize].logged {
            return;
        }
        let versions = ctx.data().versions(data, span.1 - span.0).to_vec();
        let Some(journal) = &mut self.journal else { return };
        let entry = journal.entries.iter_mut().rev().find(|it| it.index == index && !it.done);
        if let Some(entry) = entry {
            entry.writes.push((unit, span, versions));
        }
    }

    /// The operation is complete: its entry can be reclaimed.
    pub(super) fn retire_entry(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let Some(journal) = &mut self.journal else { return };
        let entry = journal.entries.iter_mut().find(|it| it.index == index && !it.done);
        let Some(entry) = entry else { return };
        entry.done = true;
        entry.writes.clear();
        journal.drop_done();
        self.log_waiting(ctx);
    }

    /// Logs waiting operations as far as there is space.
    fn log_waiting(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(index) = self.journal.as_ref().and_then(|it| it.waiting.front().copied()) {
            let op = self.ops[index as usize];
            let length = self.entry_sectors(&op);
            match self.journal() {
                Some(journal) if journal.used + length > journal.capacity => return,
                Some(journal) => {
                    journal.waiting.pop_front();
                    self.append(ctx, index, op.stripe, length);
                }
                None => {
                    self.journal.as_mut().expect("checked above").waiting.pop_front();
                    self.write(ctx, index);
                }
            }
        }
    }

    /// The power fails. Returns whether the journal covers all writes in flight.
    pub(super) fn cut_journal(&mut self) -> bool {
        // Also of a journal that has failed: a replay it did not survive must not stop the array.
        let Some(journal) = &mut self.journal else { return false };
        journal.waiting.clear();
        journal.replaying = None;
        // Operations without a journal entry have not written to any member.
        journal.entries.retain(|entry| !entry.done && !entry.writes.is_empty());
        journal.used = journal.entries.iter().map(|entry| entry.length).sum();
        !self.members.has_failed(journal.child)
    }

    /// The power is back: reads the entries, then replays their writes.
    pub(super) fn read_journal(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let Some(journal) = self.journal() else { return };
        if journal.entries.is_empty() {
            return;
        }
        (journal.replaying, journal.since) = (Some(0), now);
        let sectors = journal.used.min(journal.capacity).min(u64::from(u32::MAX)) as u32;
        let child = journal.child;
        let mut request = Request::new(Op::Read, Lba(0), sectors);
        request.data = ctx.take_data(sectors);
        ctx.issue(child, request, JOURNAL_TAG | ALL);
    }

    fn replay(&mut self, ctx: &mut Ctx<'_>) {
        let Some(journal) = &mut self.journal else { return };
        let entries = std::mem::take(&mut journal.entries);
        let mut count = 0;
        for entry in &entries {
            for (unit, (from, to), versions) in &entry.writes {
                let Some((child, row)) = self.holder(entry.stripe, *unit) else { continue };
                let lba = Lba(row * self.chunk + u64::from(*from));
                let mut request = Request::new(Op::Write, lba, to - from);
                request.data = ctx.take_data(to - from);
                if ctx.verifying() {
                    ctx.data().versions_mut(request.data, to - from).copy_from_slice(versions);
                }
                ctx.issue(child, request, REPLAY_TAG);
                count += 1;
            }
        }
        let journal = self.journal.as_mut().expect("checked above");
        // Entries are kept until all writes are done: the power may fail again.
        journal.entries = entries;
        journal.replaying = Some(count);
        self.end_replay(ctx);
    }

    pub(super) fn replay_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let left = self.journal.as_mut().and_then(|journal| journal.replaying.as_mut());
        *left.expect("a replay is in progress") -= 1;
        self.end_replay(ctx);
    }

    fn end_replay(&mut self, ctx: &mut Ctx<'_>) {
        let Some(journal) = self.journal.as_mut().filter(|it| it.replaying == Some(0)) else {
            return;
        };
        journal.replaying = None;
        journal.entries.clear();
        journal.used = 0;
        let took = ctx.now().since(journal.since);
        ctx.emit(CommonEvent::Recovered { took });
        ctx.emit(CommonEvent::Custom { name: Members::REPLAYED, value: took.as_ns() });
    }
}
