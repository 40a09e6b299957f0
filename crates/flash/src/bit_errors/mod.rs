//! Bit errors: how many bits of a page are wrong when it is read, and what the controller does.
//!
//! The raw bit error rate (RBER) of a page is a sum of terms ([`ErrorRates`]): a constant, a power
//! of the erase count, and, growing with the erase count too, a power of the time since the page
//! was programmed (retention) and one term per read of the block since its erase (read disturb).
//! Measured chips are published in this form (Kim et al., FAST 2019; Hetzler, 2012); that read
//! disturb is linear in reads and steeper on worn blocks is Cai et al. (DSN 2015).
//!
//! Errors fall on the codewords of a page independently. A page of which a codeword has more errors
//! than are corrected is read again with other read voltages: a retry, with a lower rate, until it
//! can be corrected or `retries_max` is reached. Each attempt is drawn anew. Then the page is lost:
//! a read request fails, a copy carries the loss on, and later reads fail at once.
//!
//! Translation layers have no clock, so the model follows the list of flash operations, in its
//! order, at the time at which the device schedules it. It keeps the age of data per block: pages
//! programmed before the run have `retention_age` at its start, all others that of the first page
//! programmed in the run since the erase.

mod ecc;
mod params;
mod power_law;

pub use params::Correction;

use crate::array::Array;
use crate::event::{Cause, FlashEvent};
use crate::geometry::{BlockId, Geometry, Ppn};
use crate::ops::{FRESH, FlashOp, OpKind};
use ecc::Ecc;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, SimDuration, SimTime, StateError, Stream};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::mem;

const NS_PER_DAY: f64 = 86_400e9;

/// Wear, age and reads of a page.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    /// Erases of its block, in thousands.
    pub kilocycles: f64,
    /// Days since it was programmed.
    pub days: f64,
    /// Reads of its block since the erase, retries included.
    pub reads: u32,
}

/// Raw bit error rates.
pub trait ErrorRates: std::fmt::Debug {
    /// The rate of a page on average over the page types.
    fn rate(&self, of: &Exposure) -> f64;
}

/// The input of an error model's builder.
pub struct ErrorInput<'a> {
    pub settings: &'a Settings,
    pub geometry: &'a Geometry,
    /// Erases of every block before the run.
    pub initial_cycles: u32,
    /// The registered name of the translation, and whether it can refresh blocks.
    pub translation: &'static str,
    pub refreshes: bool,
    pub seed: u64,
    pub path: &'a str,
}

/// An error model, if there is one, or all problems with its parameters.
pub type BuiltErrors = Result<Option<Box<BitErrors>>, Vec<Problem>>;

/// A registered error model.
#[derive(Clone, Copy)]
pub struct ErrorEntry {
    pub description: Description,
    /// Problems name keys of the device.
    pub build: fn(&ErrorInput<'_>) -> BuiltErrors,
}

hybridsim_config::entry!(ErrorEntry, "errors");

/// All error models.
pub const ENTRIES: &[ErrorEntry] = &[NONE, power_law::ENTRY];

const NONE: ErrorEntry = ErrorEntry {
    description: Description { name: "none", summary: "No bit errors.", origin: "", params: &[] },
    build: |_| Ok(None),
};

#[derive(Clone, Copy, Debug)]
struct Retries {
    max: u8,
    /// Factor of the bit error rate at each retry.
    factor: f64,
}

/// Limits at which a block is refreshed.
#[derive(Clone, Copy, Debug, Default)]
struct RefreshRules {
    reads: Option<u32>,
    age: Option<SimDuration>,
    retries: Option<u8>,
}

/// Time at which data were programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Programmed {
    Before,
    At(SimTime),
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Block {
    /// Pages, the first ones, programmed before the run.
    before: u32,
    /// Time of the first program since the erase, in the run.
    first: Option<SimTime>,
    /// Reads since the erase, retries included.
    reads: u32,
    /// Erases, those of injected and initial wear included.
    cycles: u32,
    due: bool,
    /// In the list of blocks to refresh; may have been erased since.
    listed: bool,
}

impl Block {
    /// Time at which the page at `offset` was programmed; `None` if it was not.
    const fn programmed(&self, offset: u32) -> Option<Programmed> {
        match self.first {
            _ if offset < self.before => Some(Programmed::Before),
            Some(time) => Some(Programmed::At(time)),
            None => None,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct State {
    /// Empty before the run.
    blocks: Vec<Block>,
    /// Pages whose data could not be read, here or where they were copied from.
    lost: BTreeSet<u32>,
    last_read: u32,
    stream: Stream,
    due: VecDeque<BlockId>,
    /// Blocks that could not be refreshed when it was their turn.
    deferred: Vec<BlockId>,
    /// Blocks with data and not yet to be refreshed for their age, the oldest first.
    by_age: BTreeSet<(Programmed, BlockId)>,
}

/// The model of a device.
#[derive(Debug)]
pub struct BitErrors {
    geometry: Geometry,
    rates: Box<dyn ErrorRates>,
    /// Operations take no time and lose no data.
    muted: bool,
    ecc: Ecc,
    ecc_bits: u64,
    retries: Retries,
    retry_time: Option<SimDuration>,
    refresh: RefreshRules,
    /// Age of data that were written before the run, at its start.
    retention_age: SimDuration,
    /// Erases of every block before the run.
    initial_cycles: u32,
    /// Factors of the rate by page type; empty if all pages of a block are alike.
    types: Vec<f64>,
    /// Consecutive pages of one type.
    type_pages: u32,
    /// Factor of the rate of blocks in SLC mode.
    slc_factor: f64,
    state: State,
    /// Pages that an earlier operation of the list could not read.
    unread: Vec<u32>,
}

impl BitErrors {
    /// The run begins, or goes on from a saved state.
    pub fn begin(&mut self, array: &Array) {
        if !self.state.blocks.is_empty() {
            return;
        }
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        let of = |block| Block {
            before: array.next_page(block),
            cycles: array.erases(block).saturating_add(self.initial_cycles),
            ..Block::default()
        };
        self.state.blocks = blocks.clone().map(of).collect();
        if self.refresh.age.is_some() {
            let written = blocks.filter(|block| array.next_page(*block) > 0);
            self.state.by_age = written.map(|block| (Programmed::Before, block)).collect();
        }
    }

    /// Wear was injected: no block has fewer erases than `cycles`.
    pub fn wear_out(&mut self, cycles: u32) {
        self.state.blocks.iter_mut().for_each(|block| block.cycles = block.cycles.max(cycles));
    }

    /// Follows `list`, whose operations are scheduled at `now`: draws how often each page has to be
    /// read, and reports it. Returns whether data for the host could not be read.
    pub fn follow(
        &mut self,
        now: SimTime,
        list: &mut [FlashOp],
        mut report: impl FnMut(FlashEvent),
    ) -> bool {
        self.unread.clear();
        let (mut failed, mut rest_lost) = (false, false);
        let mut read_before = None;
        for op in list {
            let is_read = op.kind == OpKind::Read;
            let before = mem::replace(&mut read_before, is_read.then_some(op.page));
            match op.kind {
                // Only timed: `in-place` has the time of reading a page without data from this one.
                OpKind::Read if before == Some(op.page) => {}
                OpKind::Read => {
                    if !self.read(now, op, op.page, &mut report) {
                        self.unread.push(op.page);
                        failed |= op.cause == Cause::Host;
                        rest_lost |= op.cause == Cause::Partial;
                    }
                }
                OpKind::Program => {
                    let rest = rest_lost && op.cause == Cause::Host;
                    let moved = op.from != FRESH && self.unread.contains(&op.from);
                    self.programmed(now, op.page, rest || moved);
                }
                OpKind::Copy => {
                    let lost = !self.read(now, op, op.from, &mut report);
                    self.programmed(now, op.page, lost);
                }
                OpKind::Erase => self.erased(BlockId(op.page)),
            }
        }
        failed
    }

    /// Follows `list`, whose operations take no time and do not fail: their pages lose no data, but
    /// those that are lost move.
    pub fn follow_untimed(&mut self, now: SimTime, list: &mut [FlashOp]) {
        self.muted = true;
        self.follow(now, list, |_| {});
        self.muted = false;
    }

    /// Bit errors that are corrected in a codeword.
    pub const fn ecc_bits(&self) -> u64 {
        self.ecc_bits
    }

    /// Time that each retry adds to a read, if it is not that of a read.
    pub const fn retry_time(&self) -> Option<SimDuration> {
        self.retry_time
    }

    /// The raw bit error rate of the page at `offset` of `block`, in SLC mode or not.
    fn rate(&self, block: &Block, age: SimDuration, (offset, slc): (u32, bool)) -> f64 {
        if self.muted {
            return 0.0;
        }
        let kilocycles = f64::from(block.cycles) / 1e3;
        let days = age.as_ns() as f64 / NS_PER_DAY;
        let rate = self.rates.rate(&Exposure { kilocycles, days, reads: block.reads });
        match self.types.len() {
            _ if slc => rate * self.slc_factor,
            0 => rate,
            types => rate * self.types[(offset / self.type_pages) as usize % types],
        }
    }

    /// Reads `page` for `op`. Returns whether its data are correct in the end.
    fn read(
        &mut self,
        now: SimTime,
        op: &mut FlashOp,
        page: u32,
        report: &mut impl FnMut(FlashEvent),
    ) -> bool {
        let number = self.geometry.block_of(Ppn(page));
        let offset = self.geometry.offset_of(Ppn(page));
        let block = &mut self.state.blocks[number.0 as usize];
        let (cause, die) = (op.cause, op.die.0);
        // The controller has marked it: there is nothing to try.
        if self.state.lost.contains(&page) {
            block.reads = block.reads.saturating_add(1);
            report(FlashEvent::Uncorrectable { cause, die, page });
            return false;
        }
        let age =
            block.programmed(offset).map_or(SimDuration::ZERO, |programmed| match programmed {
                Programmed::Before => self.retention_age + now.since(SimTime::ZERO),
                Programmed::At(time) => now.since(time),
            });
        let block = self.state.blocks[number.0 as usize];
        let mut rate = self.rate(&block, age, (offset, op.slc.source()));
        let mut fails = |rate: f64| {
            let chance = self.ecc.page_fails(rate.min(1.0));
            chance > 0.0 && self.state.stream.chance(chance)
        };
        let (mut retries, mut failed) = (0, fails(rate));
        while failed && retries < self.retries.max {
            retries += 1;
            rate *= self.retries.factor;
            failed = fails(rate);
        }
        op.retries = retries;
        // The next page of the chip's page comes with the one before.
        let last = mem::replace(&mut self.state.last_read, page);
        let shares = !offset.is_multiple_of(self.geometry.read_pages()) && last == page - 1;
        let block = &mut self.state.blocks[number.0 as usize];
        block.reads = block.reads.saturating_add(u32::from(!shares) + u32::from(retries));
        let by_reads = self.refresh.reads.is_some_and(|most| block.reads >= most);
        let by_retries = self.refresh.retries.is_some_and(|most| retries >= most);
        if by_reads || by_retries {
            block.due = true;
            if !mem::replace(&mut block.listed, true) {
                self.state.due.push_back(number);
            }
        }
        if retries > 0 {
            report(FlashEvent::ReadRetried { cause, die, retries: u32::from(retries) });
        }
        if failed {
            self.state.lost.insert(page);
            report(FlashEvent::Uncorrectable { cause, die, page });
        }
        !failed
    }

    /// `page` is programmed, with data that are `lost` or not.
    fn programmed(&mut self, now: SimTime, page: u32, lost: bool) {
        let number = self.geometry.block_of(Ppn(page));
        let block = &mut self.state.blocks[number.0 as usize];
        if block.first.is_none() {
            block.first = Some(now);
            if self.refresh.age.is_some() && block.before == 0 {
                self.state.by_age.insert((Programmed::At(now), number));
            }
        }
        if lost {
            self.state.lost.insert(page);
        }
        if self.geometry.offset_of(Ppn(page)) + 1 == self.geometry.pages_per_block() {
            self.retry_deferred();
        }
    }

    fn erased(&mut self, number: BlockId) {
        let block = &mut self.state.blocks[number.0 as usize];
        if let Some(programmed) = block.programmed(0) {
            self.state.by_age.remove(&(programmed, number));
        }
        let (cycles, listed) = (block.cycles.saturating_add(1), block.listed);
        *block = Block { cycles, listed, ..Block::default() };
        if !self.state.lost.is_empty() {
            let first = self.geometry.page(number, 0).0;
            let pages = first..first + self.geometry.pages_per_block();
            let gone: Vec<u32> = self.state.lost.range(pages).copied().collect();
            gone.iter().for_each(|page| _ = self.state.lost.remove(page));
        }
        self.retry_deferred();
    }

    /// A block is full or erased: blocks that could not be refreshed get another turn.
    #[inline]
    fn retry_deferred(&mut self) {
        if !self.state.deferred.is_empty() {
            self.state.due.extend(self.state.deferred.drain(..));
        }
    }

    /// The next block to refresh at `now`, which is not returned again unless it is
    /// [deferred](Self::defer).
    pub fn next_refresh(&mut self, now: SimTime) -> Option<BlockId> {
        while let Some(number) = self.state.due.pop_front() {
            let block = &mut self.state.blocks[number.0 as usize];
            block.listed = false;
            if mem::take(&mut block.due) {
                return Some(number);
            }
        }
        if self.next_too_old()? > now {
            return None;
        }
        self.state.by_age.pop_first().map(|(_, number)| number)
    }

    /// Time at which the next block is due to be refreshed for its age.
    pub fn next_too_old(&self) -> Option<SimTime> {
        let most = self.refresh.age?;
        let (programmed, _) = self.state.by_age.first()?;
        Some(match *programmed {
            Programmed::At(time) => time + most,
            Programmed::Before => SimTime::ZERO + most.saturating_sub(self.retention_age),
        })
    }

    /// `block` cannot be refreshed now; it is tried again when a block is full or erased.
    pub fn defer(&mut self, number: BlockId) {
        let block = &mut self.state.blocks[number.0 as usize];
        block.due = true;
        if !mem::replace(&mut block.listed, true) {
            self.state.deferred.push(number);
        }
    }

    pub fn save(&self, to: &mut Saver) {
        to.put(&self.state);
    }

    /// # Errors
    /// When the state is of another device.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let mut state: State = from.take()?;
        let blocks = self.geometry.blocks();
        // None before a run.
        if !state.blocks.is_empty() {
            let what = "the list of ages and reads of blocks";
            hybridsim_engine::state::same_length(what, state.blocks.len(), blocks as usize)?;
        }
        let listed = state.by_age.iter().map(|(_, block)| block).chain(&state.due);
        let mut numbers = listed.chain(&state.deferred);
        if numbers.any(|block| block.0 >= blocks) {
            let message = "the list of blocks to refresh names one that does not exist";
            return Err(StateError(message.to_owned()));
        }
        mem::swap(&mut self.state, &mut state);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
