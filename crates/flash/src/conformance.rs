//! What every translation layer must do, whoever wrote it: random devices, random workloads, and
//! a reference of what each page of flash holds. A failing case is shrunk before it is told.
//!
//! Checked after every operation: each read returns the last write, programs hit erased pages
//! only, valid pages are neither lost nor made, exactly one page is programmed for each write of
//! the host, errors are told and leave the old data readable, and nothing panics or runs away.
//! On the way the layer is saved and restored into a twin, which from then on has to do exactly
//! what the original does.

use crate::array::{Array, ProgramOrder};
use crate::event::Cause;
use crate::ftl::{Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::geometry::{BlockId, Geometry, Lpn, Shape};
use crate::ops::{FRESH, FlashOps, OpKind};
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Loader, Saver, Stream};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One thing the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Write a page.
    Write(u32),
    /// Read a page.
    Read(u32),
    /// Trim a page.
    Trim(u32),
    /// Let the layer work in the background.
    Idle,
}

/// A device and what is done to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The device.
    pub shape: Shape,
    /// Spare space, as (physical - offered) / offered.
    pub over_provisioning: f64,
    /// Erases a block survives.
    pub endurance: u32,
    /// The chance that an erase fails.
    pub grown_bad: f64,
    /// What is done. Pages are taken modulo what the device offers.
    pub acts: Vec<Act>,
}

/// A case the translation layer got wrong, as small as it could be made.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub reason: String,
    /// The smallest case found.
    pub case: Case,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { shape, over_provisioning, endurance, grown_bad, acts } = &self.case;
        writeln!(f, "{}", self.reason)?;
        writeln!(f, "on {shape:?}")?;
        writeln!(f, "over-provisioning {over_provisioning}, endurance {endurance}")?;
        writeln!(f, "erases fail with probability {grown_bad}")?;
        write!(f, "after {} operations: {acts:?}", acts.len())
    }
}

/// What the cases covered, so that a suite that tests nothing shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Cases run to their end or to a worn-out device.
    pub ran: u32,
    /// Cases the layer's builder refused as impossible.
    pub refused: u32,
    /// Cases that ended with a worn-out device.
    pub worn_out: u32,
    /// Host writes done.
    pub writes: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// A translation layer under test, with the settings to build it from.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The layer.
    pub entry: FtlEntry,
    /// Its settings.
    pub settings: &'a Settings,
    /// Where its policies are found.
    pub registry: &'a Registry,
    /// The chip's rule.
    pub order: ProgramOrder,
    /// Whether it can save itself.
    pub saves: bool,
}

/// Runs `cases` random cases drawn from `seed`.
///
/// # Errors
/// The first failure, shrunk.
pub fn check(subject: &Subject<'_>, cases: u32, seed: u64) -> Result<Coverage, Box<Failure>> {
    let mut coverage = Coverage::default();
    for number in 0..cases {
        let mut stream = Stream::new(seed, &format!("conformance/{number}"));
        let case = draw(&mut stream);
        if let Err(reason) = run(subject, &case, &mut coverage) {
            return Err(Box::new(shrink(subject, Failure { reason, case })));
        }
    }
    Ok(coverage)
}

fn draw(stream: &mut Stream) -> Case {
    let mut pick = |choices: &[u64]| choices[stream.below(choices.len() as u64) as usize];
    let shape = Shape {
        channels: pick(&[1, 1, 2, 3]),
        dies_per_channel: pick(&[1, 1, 2]),
        planes_per_die: pick(&[1, 1, 2]),
        blocks_per_plane: pick(&[1, 3, 4, 5, 7, 12, 20, 33]),
        pages_per_block: pick(&[1, 2, 3, 8, 16, 65]),
        page_bytes: 512 * pick(&[1, 4, 5]),
        spare_bytes: 0,
    };
    let over_provisioning = pick(&[0, 7, 12, 28, 50, 100, 100, 400, 1000]) as f64 / 100.0;
    let endurance = pick(&[1, 2, 5, 40, 100_000, 100_000, 100_000]) as u32;
    let pages = shape.channels
        * shape.dies_per_channel
        * shape.planes_per_die
        * shape.blocks_per_plane
        * shape.pages_per_block;
    let hot = 1 + stream.below(pages.min(8));
    let (write, trim) = (30 + stream.below(65), stream.below(12));
    let fill = stream.chance(0.6);
    let skew = stream.unit();
    let mut acts: Vec<Act> = Vec::new();
    if fill {
        acts.extend((0..pages as u32).map(Act::Write));
    }
    for _ in 0..(3 * pages).clamp(40, 1_500) {
        let bound = if stream.chance(skew) { hot } else { pages };
        let page = stream.below(bound) as u32;
        acts.push(match stream.below(100) {
            roll if roll < write => Act::Write(page),
            roll if roll < write + trim => Act::Trim(page),
            99 => Act::Idle,
            _ => Act::Read(page),
        });
    }
    acts.extend((0..pages as u32).map(Act::Read));
    let grown_bad = if stream.chance(0.2) { stream.unit() * 0.2 } else { 0.0 };
    Case { shape, over_provisioning, endurance, grown_bad, acts }
}

/// Runs one case; panics of the layer count as failures.
fn run(subject: &Subject<'_>, case: &Case, coverage: &mut Coverage) -> Result<(), String> {
    let guarded = catch_unwind(AssertUnwindSafe(|| run_unguarded(subject, case, coverage)));
    guarded.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("without a word")))
    })
}

fn run_unguarded(
    subject: &Subject<'_>,
    case: &Case,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let Ok(geometry) = Geometry::new(&case.shape) else {
        coverage.refused += 1;
        return Ok(());
    };
    let exported_pages = geometry.exported_pages(case.over_provisioning);
    let input = FtlInput {
        settings: subject.settings,
        geometry: &geometry,
        exported_pages,
        registry: subject.registry,
        seed: 1,
        path: "conformance",
    };
    let Some(ftl) = (exported_pages > 0).then(|| (subject.entry.build)(&input).ok()).flatten()
    else {
        coverage.refused += 1;
        return Ok(());
    };
    let fresh = || {
        let mut stream = Stream::new(1, "conformance/bad");
        let array = Array::new(geometry, subject.order, case.endurance);
        FlashOps::new(array.with_grown_bad_blocks(case.grown_bad, &mut stream))
    };
    let rebuild = || match (subject.entry.build)(&input) {
        Ok(ftl) => Ok((ftl, fresh())),
        Err(_) => Err("it was built once and refused the second time".to_owned()),
    };
    let flash = fresh();
    let mut bench = Bench {
        ftl,
        flash,
        cells: vec![0; geometry.pages() as usize],
        held: vec![u64::MAX; geometry.pages() as usize],
        expected: vec![0; exported_pages as usize],
        trimmed: vec![false; exported_pages as usize],
        next_stamp: 0,
        erases: 0,
        twin: None,
        rebuild: &rebuild,
        saves: subject.saves,
    };
    let done = bench.run(&case.acts);
    coverage.writes += bench.next_stamp;
    coverage.erases += bench.erases;
    match done {
        Err(Stop::Wrong(reason)) => return Err(reason),
        Err(Stop::GaveUp(FtlError::WornOut(_))) => {
            if !is_worn(bench.flash.array()) {
                return Err("it says worn out, but no block is".to_owned());
            }
            coverage.worn_out += 1;
        }
        Err(Stop::GaveUp(error)) => return Err(format!("it gave up on a sound device: {error}")),
        Ok(()) => {}
    }
    bench.read_everything()?;
    coverage.ran += 1;
    Ok(())
}

/// Whether blocks are retired, or would be by the next erase: a layer that rewrites blocks in
/// place has to stop one erase earlier.
fn is_worn(array: &Array) -> bool {
    let last = |block| array.erases(block) + 1 == array.endurance_of(block);
    array.retired_blocks() > 0 || (0..array.geometry().blocks()).map(BlockId).any(last)
}

/// Why a case ended before its last operation.
enum Stop {
    GaveUp(FtlError),
    Wrong(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Wrong(reason)
    }
}

/// A layer, its flash, and what each page should hold.
struct Bench<'a> {
    ftl: Box<dyn Ftl>,
    flash: FlashOps,
    /// The stamp in each physical page.
    cells: Vec<u64>,
    /// What reads of each physical page brought into the controller's memory.
    held: Vec<u64>,
    /// The last stamp written to each logical page; 0 when never.
    expected: Vec<u64>,
    trimmed: Vec<bool>,
    next_stamp: u64,
    erases: u64,
    /// What was restored from what the layer saved.
    twin: Option<Pair>,
    /// A fresh layer and fresh flash.
    rebuild: &'a dyn Fn() -> Result<Pair, String>,
    /// Whether the layer can save itself.
    saves: bool,
}

type Pair = (Box<dyn Ftl>, FlashOps);

impl Bench<'_> {
    fn run(&mut self, acts: &[Act]) -> Result<(), Stop> {
        self.ftl.prepare(&mut self.flash).map_err(Stop::GaveUp)?;
        if self.ftl.mapping_ram_bytes() == 0 && !self.ftl.is_raw() {
            return Err(Stop::Wrong("it claims to need no memory at all".to_owned()));
        }
        let audit_every = (acts.len() / 8).max(1);
        for (number, act) in acts.iter().enumerate() {
            let count = self.expected.len() as u32;
            let halfway = number == acts.len() / 4 || number == acts.len() * 5 / 8;
            if halfway && self.saves {
                self.twin = Some(self.save_and_restore()?);
            }
            match *act {
                Act::Write(page) if self.ftl.is_raw() => self.write_raw(page % count)?,
                Act::Write(page) => self.write(page % count)?,
                Act::Read(page) => self.read(page % count)?,
                Act::Trim(page) => self.trim(page % count)?,
                Act::Idle => {
                    self.flash.clear();
                    let worked = self.ftl.idle(&mut self.flash);
                    self.twin_agrees("background work", &worked, |ftl, flash| ftl.idle(flash))?;
                    // What it did before it gave up has happened.
                    self.apply(0)?;
                    worked.map_err(Stop::GaveUp)?;
                }
            }
            if (number + 1) % audit_every == 0 {
                self.flash.array().audit()?;
                self.ftl.audit(&self.flash)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, page: u32) -> Result<(), Stop> {
        self.flash.clear();
        // Large and small requests in turn; the same page is part of both at times.
        let hint = Hint { request_pages: 1 + (page / 4 + self.next_stamp as u32 / 8) % 16 };
        let result = self.ftl.write(Lpn(page), hint, &mut self.flash);
        let again = |ftl: &mut dyn Ftl, flash: &mut FlashOps| ftl.write(Lpn(page), hint, flash);
        self.twin_agrees("a write", &result, again)?;
        let programs = self.apply(if result.is_ok() { self.next_stamp + 1 } else { 0 })?;
        result.map_err(Stop::GaveUp)?;
        if programs != 1 {
            let message = format!("writing logical page {page} programmed it {programs} times");
            return Err(Stop::Wrong(message));
        }
        self.next_stamp += 1;
        self.expected[page as usize] = self.next_stamp;
        self.trimmed[page as usize] = false;
        Ok(())
    }

    /// Writes as the host of flash without translation: a block in the way is erased first.
    fn write_raw(&mut self, page: u32) -> Result<(), Stop> {
        let Err(Stop::GaveUp(FtlError::NotErased(refusal))) = self.write(page) else {
            return Ok(());
        };
        if self.expected[page as usize] == 0 && self.flash.array().order() == ProgramOrder::Any {
            let message = format!("page {page} was never written, but refused: {refusal}");
            return Err(Stop::Wrong(message));
        }
        self.read(page)?;
        let pages = self.flash.array().geometry().pages_per_block();
        let first = page - page % pages;
        for other in first..(first + pages).min(self.expected.len() as u32) {
            self.trim(other)?;
        }
        match self.write(page) {
            // In order from the first page on, the chip says.
            Err(Stop::GaveUp(FtlError::NotErased(_)))
                if self.flash.array().order() == ProgramOrder::Sequential && page != first =>
            {
                Ok(())
            }
            done => done,
        }
    }

    fn trim(&mut self, page: u32) -> Result<(), Stop> {
        self.flash.clear();
        let result = self.ftl.trim(Lpn(page), &mut self.flash);
        self.twin_agrees("a trim", &result, |ftl, flash| ftl.trim(Lpn(page), flash))?;
        self.apply(0)?;
        result.map_err(Stop::GaveUp)?;
        self.trimmed[page as usize] = true;
        Ok(())
    }

    fn read(&mut self, page: u32) -> Result<(), String> {
        self.flash.clear();
        self.ftl.read(Lpn(page), &mut self.flash);
        self.twin_agrees("a read", &(), |ftl, flash| ftl.read(Lpn(page), flash))?;
        self.apply(0)?;
        let reads = self.flash.list().iter().filter(|op| op.cause == Cause::Host);
        let found: Vec<u64> = reads.map(|op| self.cells[op.page as usize]).collect();
        let wanted = self.expected[page as usize];
        let sound = match found[..] {
            [] => wanted == 0 || self.trimmed[page as usize],
            [got] => got == wanted,
            _ => false,
        };
        if !sound {
            return Err(format!(
                "logical page {page} was last written by write {wanted}, reading it returned \
                 {found:?}"
            ));
        }
        if self.ftl.holds(Lpn(page), &self.flash) == found.is_empty() {
            return Err(format!("holds({page}) contradicts what a read does"));
        }
        Ok(())
    }

    fn read_everything(&mut self) -> Result<(), String> {
        (0..self.expected.len() as u32).try_for_each(|page| self.read(page))
    }

    /// A fresh layer and fresh flash that took over what these saved.
    fn save_and_restore(&self) -> Result<Pair, String> {
        let mut saver = Saver::default();
        self.flash.save(&mut saver);
        self.ftl.save(&mut saver).map_err(|error| format!("it cannot save itself: {error}"))?;
        let bytes = saver.into_bytes();
        let (mut ftl, mut flash) = (self.rebuild)()?;
        let mut loader = Loader::new(&bytes);
        flash
            .restore(&mut loader)
            .and_then(|()| ftl.restore(&mut loader))
            .and_then(|()| loader.end())
            .map_err(|error| format!("it cannot take back what it saved: {error}"))?;
        ftl.audit(&flash).map_err(|wrong| format!("after taking back what it saved: {wrong}"))?;
        Ok((ftl, flash))
    }

    /// Has the twin do what the layer just did, with the outcome `result`.
    fn twin_agrees<T: PartialEq + fmt::Debug>(
        &mut self,
        what: &str,
        result: &T,
        act: impl FnOnce(&mut dyn Ftl, &mut FlashOps) -> T,
    ) -> Result<(), String> {
        let Some((ftl, flash)) = &mut self.twin else { return Ok(()) };
        flash.clear();
        let second = act(&mut **ftl, flash);
        if second == *result && flash.list() == self.flash.list() {
            return Ok(());
        }
        Err(format!(
            "after save and restore {what} led to {second:?} and {:?} instead of {result:?} \
             and {:?}",
            flash.list(),
            self.flash.list()
        ))
    }

    /// Moves stamps as the noted operations move data; says how many pages of the host's were
    /// programmed.
    fn apply(&mut self, host_stamp: u64) -> Result<u32, String> {
        let mut programs = 0;
        for op in self.flash.list() {
            let page = op.page as usize;
            match op.kind {
                OpKind::Read => self.held[page] = self.cells[page],
                OpKind::Program if op.cause == Cause::Host => {
                    programs += 1;
                    self.cells[page] = host_stamp;
                }
                OpKind::Program if op.from == FRESH => self.cells[page] = 0,
                OpKind::Program => self.cells[page] = self.held[op.from as usize],
                OpKind::Copy => self.cells[page] = self.cells[op.from as usize],
                OpKind::Erase => {
                    let pages = self.flash.array().geometry().pages_per_block() as usize;
                    self.cells[page * pages..(page + 1) * pages].fill(0);
                    self.erases += 1;
                }
            }
            let links_back = op.after.index().is_none_or(|index| index < self.flash.list().len());
            if !links_back {
                return Err("an operation waits for one that is not in the list".to_owned());
            }
        }
        // Memory does not outlast a request.
        for op in self.flash.list().iter().filter(|op| op.kind == OpKind::Read) {
            self.held[op.page as usize] = u64::MAX;
        }
        self.flash.violation().map_or(Ok(programs), |violation| Err(violation.to_string()))
    }
}

/// Makes `failure` smaller while it still fails: fewer operations, a smaller device.
fn shrink(subject: &Subject<'_>, mut failure: Failure) -> Failure {
    let mut attempts = 2_000;
    let mut fails = |case: &Case| {
        attempts -= 1;
        (attempts > 0).then(|| run(subject, case, &mut Coverage::default()).err()).flatten()
    };
    loop {
        let before = (failure.case.acts.len(), size(&failure.case.shape));
        for shape in smaller_shapes(failure.case.shape) {
            let case = Case { shape, ..failure.case.clone() };
            if let Some(reason) = fails(&case) {
                failure = Failure { reason, case };
            }
        }
        let mut length = failure.case.acts.len().div_ceil(2);
        while length > 0 {
            let mut at = 0;
            while at < failure.case.acts.len() {
                let mut case = failure.case.clone();
                case.acts.drain(at..(at + length).min(case.acts.len()));
                match fails(&case) {
                    Some(reason) => failure = Failure { reason, case },
                    None => at += length,
                }
            }
            length /= 2;
        }
        if before == (failure.case.acts.len(), size(&failure.case.shape)) {
            return failure;
        }
    }
}

fn size(shape: &Shape) -> u64 {
    shape.channels
        + shape.dies_per_channel
        + shape.planes_per_die
        + shape.blocks_per_plane
        + shape.pages_per_block
        + shape.page_bytes
}

fn smaller_shapes(shape: Shape) -> Vec<Shape> {
    let mut shapes = vec![
        Shape { channels: 1, ..shape },
        Shape { dies_per_channel: 1, ..shape },
        Shape { planes_per_die: 1, ..shape },
        Shape { page_bytes: 512, ..shape },
    ];
    for blocks_per_plane in [shape.blocks_per_plane / 2, shape.blocks_per_plane - 1] {
        shapes.push(Shape { blocks_per_plane, ..shape });
    }
    for pages_per_block in [shape.pages_per_block / 2, shape.pages_per_block - 1] {
        shapes.push(Shape { pages_per_block, ..shape });
    }
    shapes.retain(|smaller| size(smaller) < size(&shape));
    shapes
}
