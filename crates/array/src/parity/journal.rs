//! A journal that closes the write hole: before a stripe is written, what will be written goes to
//! a device of its own, forced to its medium. After a power failure writes that had begun are done
//! again from there, so that parity always matches, whoever is missing (as Linux md's write
//! journal, written through).
//!
//! Entries lie one behind the other, round and round: a sector that says what follows, then the
//! data. Room is free again when the stripe has been written and everything before it. A journal
//! that fails is done without, and the array is as one that never had it.

use super::super::members::{self, Members};
use super::ParityArray;
use super::op::{StripeOp, Work};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_engine::{CommonEvent, Completion, Ctx, Flags, Lba, Op, Request, SimTime};
use std::collections::VecDeque;

/// The device.
pub const JOURNAL: Param = Param::optional(
    "journal",
    Kind::Component,
    "A device that holds what is about to be written until it is: closes the write hole; trims do \
     not pass and data do not go before parity then",
);

/// Marks the tags of journal requests; the rest is the operation, or [`ALL`].
pub(super) const JOURNAL_TAG: u64 = 1 << 61;
/// Marks the tags of writes done again.
pub(super) const REPLAY_TAG: u64 = 1 << 60;
/// All entries are read.
const ALL: u64 = 0xffff_ffff;

/// A write to a unit: the unit, its sectors, their stamps in verified runs.
type UnitWrite = (usize, (u32, u32), Vec<u64>);

/// What was written to the journal for an operation under way.
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

/// The journal.
#[derive(Debug)]
pub(super) struct Journal {
    child: usize,
    capacity: u64,
    /// Where the next entry begins.
    at: u64,
    /// Sectors of all entries, which lie behind one another.
    used: u64,
    entries: VecDeque<Entry>,
    /// Lists of writes of entries that are gone, for the next ones.
    spare: Vec<Vec<UnitWrite>>,
    /// Operations that wait for room.
    waiting: VecDeque<u32>,
    /// Writes done again that have not come back, and whether entries are still read.
    replaying: Option<u32>,
    since: SimTime,
}

impl Journal {
    /// The journal `input` asks for, for stripes of `stripe_sectors` sectors, parity included.
    pub(super) fn read(
        input: &BuildInput<'_>,
        stripe_sectors: u64,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let child = members::journal_of(input)?;
        let capacity = input.children[child].capacity;
        if capacity <= stripe_sectors {
            let message = format!("must hold more than the {stripe_sectors} sectors of a stripe");
            problems.push(Problem::new("journal", message));
        }
        for (key, word) in [("trim", "pass"), ("write_order", "early")] {
            if input.settings.text(key) == word {
                problems.push(Problem::new(key, format!("`{word}` does not go with a journal")));
            }
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
            let Entry { length, writes, .. } = self.entries.pop_front().expect("just seen");
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

    /// Whether writes are being done again, so that nothing else may happen.
    pub(super) fn is_replaying(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.replaying.is_some())
    }

    /// Writes what the operation is about to write to the journal. Answers whether it has to wait
    /// for that.
    pub(super) fn log(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let op = self.ops[index as usize];
        if op.logged || !matches!(op.work, Work::Request(Op::Write, _)) {
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
        let journal = self.journal().expect("the caller has seen it");
        // An entry may go round the end; what counts is that it is one piece most of the time.
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

    /// The journal answered.
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
            // It is gone: who waits for room need not.
            self.let_log(ctx);
        }
    }

    /// Notes what is written to a unit for an operation in the journal.
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
        let stamps = ctx.data().stamps(data, span.1 - span.0).to_vec();
        let Some(journal) = &mut self.journal else { return };
        let entry = journal.entries.iter_mut().rev().find(|it| it.index == index && !it.done);
        if let Some(entry) = entry {
            entry.writes.push((unit, span, stamps));
        }
    }

    /// The operation is over: its entry is not needed any more.
    pub(super) fn forget_entry(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let Some(journal) = &mut self.journal else { return };
        let entry = journal.entries.iter_mut().find(|it| it.index == index && !it.done);
        let Some(entry) = entry else { return };
        entry.done = true;
        entry.writes.clear();
        journal.drop_done();
        self.let_log(ctx);
    }

    /// Lets operations that wait for room log, as far as there is some.
    fn let_log(&mut self, ctx: &mut Ctx<'_>) {
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
                    self.journal.as_mut().expect("just seen").waiting.pop_front();
                    self.write(ctx, index);
                }
            }
        }
    }

    /// The power fails. Answers whether the journal knows all that was under way.
    pub(super) fn cut_journal(&mut self) -> bool {
        let Some(journal) = self.journal() else { return false };
        journal.waiting.clear();
        journal.replaying = None;
        // What is not in the journal yet has not been written anywhere.
        journal.entries.retain(|entry| !entry.done && !entry.writes.is_empty());
        journal.used = journal.entries.iter().map(|entry| entry.length).sum();
        true
    }

    /// The power is back: the entries are read, then their writes are done again.
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
            for (unit, (from, to), stamps) in &entry.writes {
                let Some((child, row)) = self.holder(entry.stripe, *unit) else { continue };
                let lba = Lba(row * self.chunk + u64::from(*from));
                let mut request = Request::new(Op::Write, lba, to - from);
                request.data = ctx.take_data(to - from);
                if ctx.verifying() {
                    ctx.data().stamps_mut(request.data, to - from).copy_from_slice(stamps);
                }
                ctx.issue(child, request, REPLAY_TAG);
                count += 1;
            }
        }
        let journal = self.journal.as_mut().expect("just seen");
        // They stay until all is written: the power may fail again.
        journal.entries = entries;
        journal.replaying = Some(count);
        self.end_replay(ctx);
    }

    /// A write done again came back.
    pub(super) fn replay_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let left = self.journal.as_mut().and_then(|journal| journal.replaying.as_mut());
        *left.expect("something is being done again") -= 1;
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
