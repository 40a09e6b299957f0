//! The conformance suite for FTLs: random devices, random workloads, and a reference model of the
//! data in each page of flash. A failing case is shrunk before it is reported.
//!
//! Checked after every operation: each read returns the last write, only erased pages are
//! programmed, the number of valid pages is consistent, each host write programs exactly one page
//! with host data, errors are reported and leave the old data readable, and nothing panics or loops
//! forever. During each case the FTL is saved and restored into a twin, which from then on has to
//! do exactly what the original does.

use crate::array::{Array, ProgramOrder};
use crate::event::Cause;
use crate::ftl::{self, Ftl, FtlEntry, FtlError, FtlInput, Hint, Properties};
use crate::geometry::{BlockId, Geometry, Lpn, Shape};
use crate::ops::{FRESH, FlashOps, OpKind};
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Loader, Saver, Stream};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An operation of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOp {
    Write(u32),
    Read(u32),
    Trim(u32),
    /// The data of a block are to be moved.
    Refresh(u32),
    /// The device is idle, and the FTL may work in the background.
    Idle,
}

/// A device and a workload.
#[derive(Clone, Debug)]
pub struct Case {
    pub shape: Shape,
    /// (physical - exported) / exported.
    pub over_provisioning: f64,
    pub endurance: u32,
    /// The probability that an erase fails.
    pub grown_bad: f64,
    /// Pages are taken modulo the exported capacity.
    pub ops: Vec<HostOp>,
}

/// A case the FTL failed, shrunk.
#[derive(Clone, Debug)]
pub struct Failure {
    pub reason: String,
    pub case: Case,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { shape, over_provisioning, endurance, grown_bad, ops } = &self.case;
        writeln!(f, "{}", self.reason)?;
        writeln!(f, "on {shape:?}")?;
        writeln!(f, "over-provisioning {over_provisioning}, endurance {endurance}")?;
        writeln!(f, "erases fail with probability {grown_bad}")?;
        write!(f, "after {} operations: {ops:?}", ops.len())
    }
}

/// Coverage of the cases, for checks that a suite tests anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Cases run to their end or to a worn-out device.
    pub ran: u32,
    /// Cases rejected by the FTL's builder.
    pub refused: u32,
    /// Cases that ended with a worn-out device.
    pub worn_out: u32,
    /// Host writes.
    pub writes: u64,
    pub erases: u64,
    /// Blocks that the FTL refreshed when asked to.
    pub refreshed: u64,
}

/// An FTL under test.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub entry: FtlEntry,
    pub settings: &'a Settings,
    pub registry: &'a Registry,
    pub order: ProgramOrder,
    /// Whether its state can be saved.
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
    let mut ops: Vec<HostOp> = Vec::new();
    if fill {
        ops.extend((0..pages as u32).map(HostOp::Write));
    }
    for _ in 0..(3 * pages).clamp(40, 1_500) {
        let bound = if stream.chance(skew) { hot } else { pages };
        let page = stream.below(bound) as u32;
        ops.push(match stream.below(100) {
            roll if roll < write => HostOp::Write(page),
            roll if roll < write + trim => HostOp::Trim(page),
            99 => HostOp::Idle,
            98 => HostOp::Refresh(page),
            _ => HostOp::Read(page),
        });
    }
    ops.extend((0..pages as u32).map(HostOp::Read));
    let grown_bad = if stream.chance(0.2) { stream.unit() * 0.2 } else { 0.0 };
    Case { shape, over_provisioning, endurance, grown_bad, ops }
}

/// Runs one case; a panic of the FTL is a failure.
fn run(subject: &Subject<'_>, case: &Case, coverage: &mut Coverage) -> Result<(), String> {
    let guarded = catch_unwind(AssertUnwindSafe(|| run_unguarded(subject, case, coverage)));
    guarded.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("without a message")))
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
    let slc_pages = ftl.properties().slc_blocks.map_or(0, |slc| slc.pages_per_block);
    let fresh = || {
        let mut stream = Stream::new(1, "conformance/bad");
        let array = Array::new(geometry, subject.order, case.endurance).with_slc_mode(slc_pages);
        FlashOps::new(array.with_grown_bad_blocks(case.grown_bad, &mut stream))
    };
    let rebuild = || match (subject.entry.build)(&input) {
        Ok(ftl) => Ok((ftl, fresh())),
        Err(_) => {
            Err("the builder accepted the device once and rejected it the second time".to_owned())
        }
    };
    let flash = fresh();
    let mut device = TestDevice {
        ftl,
        flash,
        stored: vec![0; geometry.pages() as usize],
        buffered: vec![u64::MAX; geometry.pages() as usize],
        expected: vec![0; exported_pages as usize],
        trimmed: vec![false; exported_pages as usize],
        versions: 0,
        erases: 0,
        refreshed: 0,
        twin: None,
        rebuild: &rebuild,
        saves: subject.saves,
    };
    let result = device.run(&case.ops);
    coverage.writes += device.versions;
    coverage.erases += device.erases;
    coverage.refreshed += device.refreshed;
    match result {
        Err(Stop::Failure(reason)) => return Err(reason),
        Err(Stop::Error(FtlError::WornOut(_))) => {
            if !is_worn(device.flash.array()) {
                return Err("it reports a worn-out device, but no block is worn out".to_owned());
            }
            coverage.worn_out += 1;
        }
        Err(Stop::Error(error)) => {
            return Err(format!("it failed although no block is worn out: {error}"));
        }
        Ok(()) => {}
    }
    device.read_everything()?;
    coverage.ran += 1;
    Ok(())
}

/// Whether blocks are retired, or would be by the next erase: an FTL that rewrites blocks in place
/// has to stop one erase earlier.
fn is_worn(array: &Array) -> bool {
    let last = |block| array.erases(block) + 1 == array.endurance_of(block);
    array.retired_blocks() > 0 || (0..array.geometry().blocks()).map(BlockId).any(last)
}

/// Why a case ended before its last operation.
enum Stop {
    Error(FtlError),
    Failure(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Failure(reason)
    }
}

/// An FTL, its flash, and the reference model.
struct TestDevice<'a> {
    ftl: Box<dyn Ftl>,
    flash: FlashOps,
    /// The version in each physical page.
    stored: Vec<u64>,
    /// The version that a read of each physical page brought into the controller's memory.
    buffered: Vec<u64>,
    /// The last version written to each logical page; 0 if none.
    expected: Vec<u64>,
    trimmed: Vec<bool>,
    /// Versions written so far.
    versions: u64,
    erases: u64,
    /// Blocks refreshed.
    refreshed: u64,
    /// The FTL and flash restored from the saved state.
    twin: Option<Pair>,
    /// Builds a new FTL and new flash.
    rebuild: &'a dyn Fn() -> Result<Pair, String>,
    saves: bool,
}

type Pair = (Box<dyn Ftl>, FlashOps);

impl TestDevice<'_> {
    fn run(&mut self, ops: &[HostOp]) -> Result<(), Stop> {
        if let Some(maintenance) = self.ftl.maintenance() {
            maintenance.prepare(&mut self.flash).map_err(Stop::Error)?;
        }
        let Properties { is_raw, mapping_ram_bytes, .. } = self.ftl.properties();
        if mapping_ram_bytes == 0 && !is_raw {
            return Err(Stop::Failure("it reports that it needs no controller memory".to_owned()));
        }
        let audit_every = (ops.len() / 8).max(1);
        for (number, op) in ops.iter().enumerate() {
            let count = self.expected.len() as u32;
            let save_here = number == ops.len() / 4 || number == ops.len() * 5 / 8;
            if save_here && self.saves {
                self.twin = Some(self.save_and_restore()?);
            }
            match *op {
                HostOp::Write(page) if is_raw => self.write_raw(page % count)?,
                HostOp::Write(page) => self.write_request(page % count)?,
                HostOp::Read(page) => self.read(page % count)?,
                HostOp::Trim(page) => self.trim(page % count)?,
                HostOp::Refresh(number) => self.refresh(number)?,
                HostOp::Idle => drop(self.idle()?),
            }
            if (number + 1) % audit_every == 0 {
                self.flash.array().audit()?;
                self.ftl.audit(&self.flash)?;
            }
        }
        Ok(())
    }

    /// Writes a request of pages from `first` on: one, or sometimes up to four, of which the last
    /// may be written in part.
    fn write_request(&mut self, first: u32) -> Result<(), Stop> {
        let pages = if self.versions.is_multiple_of(5) { 1 + self.versions as u32 % 4 } else { 1 };
        let end = (first + pages).min(self.expected.len() as u32);
        let whole_end = end - u32::from(self.versions.is_multiple_of(3));
        (first..end).try_for_each(|page| self.write(page, whole_end.saturating_sub(page)))
    }

    fn write(&mut self, page: u32, whole_pages: u32) -> Result<(), Stop> {
        self.flash.clear();
        // Large and small requests alternate; the same page is part of both at times.
        let request_pages = 1 + (page / 4 + self.versions as u32 / 8) % 16;
        // Half of them name the second of two reclaim groups.
        let handle = ((page % 3) | ((page & 1) << 7)) as u8;
        let hint = Hint { request_pages, whole_pages, handle };
        let result = self.ftl.write(Lpn(page), hint, &mut self.flash);
        let again = |ftl: &mut dyn Ftl, flash: &mut FlashOps| ftl.write(Lpn(page), hint, flash);
        self.twin_agrees("a write", &result, again)?;
        let programs = self.apply(if result.is_ok() { self.versions + 1 } else { 0 })?;
        result.map_err(Stop::Error)?;
        if programs != 1 {
            let message = format!("writing logical page {page} programmed it {programs} times");
            return Err(Stop::Failure(message));
        }
        self.versions += 1;
        self.expected[page as usize] = self.versions;
        self.trimmed[page as usize] = false;
        Ok(())
    }

    /// Writes as the host of raw flash, which erases a block before it overwrites its pages.
    fn write_raw(&mut self, page: u32) -> Result<(), Stop> {
        let Err(Stop::Error(FtlError::NotErased(refusal))) = self.write(page, 1) else {
            return Ok(());
        };
        if self.expected[page as usize] == 0 && self.flash.array().order() == ProgramOrder::Any {
            let message = format!("page {page} was never written, but the write failed: {refusal}");
            return Err(Stop::Failure(message));
        }
        self.read(page)?;
        let pages = self.flash.array().geometry().pages_per_block();
        let first = page - page % pages;
        for other in first..(first + pages).min(self.expected.len() as u32) {
            self.trim(other)?;
        }
        match self.write(page, 1) {
            // The chip programs pages in order from the first one on.
            Err(Stop::Error(FtlError::NotErased(_)))
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
        result.map_err(Stop::Error)?;
        self.trimmed[page as usize] = true;
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, Stop> {
        self.flash.clear();
        let worked = self.ftl.idle(&mut self.flash);
        self.twin_agrees("background work", &worked, |ftl, flash| ftl.idle(flash))?;
        // Operations before an error have been executed.
        self.apply(0)?;
        worked.map_err(Stop::Error)
    }

    /// Has the FTL refresh a block, which it then erases within the following background work.
    fn refresh(&mut self, number: u32) -> Result<(), Stop> {
        let block = BlockId(number % self.flash.array().geometry().blocks());
        let erased = |array: &Array| (array.erases(block), array.is_retired(block));
        let before = erased(self.flash.array());
        self.flash.clear();
        let begun = ftl::refresh(&mut *self.ftl, block, &mut self.flash);
        let again = |ftl: &mut dyn Ftl, flash: &mut FlashOps| ftl::refresh(ftl, block, flash);
        self.twin_agrees("a refresh", &begun, again)?;
        self.apply(0)?;
        self.refreshed += u64::from(begun);
        while begun && erased(self.flash.array()) == before {
            if !self.idle()? {
                return Err(Stop::Failure(format!("it began to refresh {block:?}, but stopped")));
            }
        }
        Ok(())
    }

    fn read(&mut self, page: u32) -> Result<(), String> {
        self.flash.clear();
        self.ftl.read(Lpn(page), &mut self.flash);
        self.twin_agrees("a read", &(), |ftl, flash| ftl.read(Lpn(page), flash))?;
        self.apply(0)?;
        let reads = self.flash.list().iter().filter(|op| op.cause == Cause::Host);
        let found: Vec<u64> = reads.map(|op| self.stored[op.page as usize]).collect();
        let wanted = self.expected[page as usize];
        let valid = match found[..] {
            [] => wanted == 0 || self.trimmed[page as usize],
            [got] => got == wanted,
            _ => false,
        };
        if !valid {
            return Err(format!(
                "logical page {page} was last written by write {wanted}, reading it returned \
                 {found:?}"
            ));
        }
        if self.ftl.holds(Lpn(page), &self.flash) == found.is_empty() {
            return Err(format!("holds({page}) contradicts a read of the page"));
        }
        Ok(())
    }

    fn read_everything(&mut self) -> Result<(), String> {
        (0..self.expected.len() as u32).try_for_each(|page| self.read(page))
    }

    /// A new FTL and new flash with the saved state of these.
    fn save_and_restore(&self) -> Result<Pair, String> {
        let mut saver = Saver::default();
        self.flash.save(&mut saver);
        if let Some(error) = self.ftl.properties().unsaveable {
            return Err(format!("it cannot be saved: {error}"));
        }
        self.ftl.save(&mut saver);
        let bytes = saver.into_bytes();
        let (mut ftl, mut flash) = (self.rebuild)()?;
        let mut loader = Loader::new(&bytes);
        flash
            .restore(&mut loader)
            .and_then(|()| ftl.restore(&mut loader))
            .and_then(|()| loader.end())
            .map_err(|error| format!("it cannot restore what it saved: {error}"))?;
        ftl.audit(&flash).map_err(|error| format!("after a restore: {error}"))?;
        Ok((ftl, flash))
    }

    /// Repeats an operation on the twin, whose result and flash operations must be the same.
    fn twin_agrees<T: PartialEq + fmt::Debug>(
        &mut self,
        what: &str,
        result: &T,
        repeat: impl FnOnce(&mut dyn Ftl, &mut FlashOps) -> T,
    ) -> Result<(), String> {
        let Some((ftl, flash)) = &mut self.twin else { return Ok(()) };
        flash.clear();
        let second = repeat(&mut **ftl, flash);
        if second == *result && flash.list() == self.flash.list() {
            return Ok(());
        }
        Err(format!(
            "after a restore {what} returned {second:?} with {:?} instead of {result:?} \
             with {:?}",
            flash.list(),
            self.flash.list()
        ))
    }

    /// Applies the recorded operations to the model, with `version` as host data. Returns how many
    /// pages were programmed with host data.
    fn apply(&mut self, version: u64) -> Result<u32, String> {
        let mut programs = 0;
        for op in self.flash.list() {
            let page = op.page as usize;
            match op.kind {
                OpKind::Read => self.buffered[page] = self.stored[page],
                OpKind::Program if op.cause == Cause::Host => {
                    programs += 1;
                    self.stored[page] = version;
                }
                OpKind::Program if op.from == FRESH => self.stored[page] = 0,
                OpKind::Program => self.stored[page] = self.buffered[op.from as usize],
                OpKind::Copy => self.stored[page] = self.stored[op.from as usize],
                OpKind::Erase => {
                    let pages = self.flash.array().geometry().pages_per_block() as usize;
                    self.stored[page * pages..(page + 1) * pages].fill(0);
                    self.erases += 1;
                }
            }
            let links_back = op.after.index().is_none_or(|index| index < self.flash.list().len());
            if !links_back {
                return Err("an operation depends on one that is not in the list".to_owned());
            }
        }
        // The controller's memory is not kept beyond a request.
        for op in self.flash.list().iter().filter(|op| op.kind == OpKind::Read) {
            self.buffered[op.page as usize] = u64::MAX;
        }
        self.flash.violation().map_or(Ok(programs), |violation| Err(violation.to_string()))
    }
}

/// Shrinks `failure` while it still fails: fewer operations, a smaller device.
fn shrink(subject: &Subject<'_>, mut failure: Failure) -> Failure {
    let mut attempts = 2_000;
    let mut fails = |case: &Case| {
        attempts -= 1;
        (attempts > 0).then(|| run(subject, case, &mut Coverage::default()).err()).flatten()
    };
    loop {
        let before = (failure.case.ops.len(), size(&failure.case.shape));
        for shape in smaller_shapes(failure.case.shape) {
            let case = Case { shape, ..failure.case.clone() };
            if let Some(reason) = fails(&case) {
                failure = Failure { reason, case };
            }
        }
        let mut length = failure.case.ops.len().div_ceil(2);
        while length > 0 {
            let mut at = 0;
            while at < failure.case.ops.len() {
                let mut case = failure.case.clone();
                case.ops.drain(at..(at + length).min(case.ops.len()));
                match fails(&case) {
                    Some(reason) => failure = Failure { reason, case },
                    None => at += length,
                }
            }
            length /= 2;
        }
        if before == (failure.case.ops.len(), size(&failure.case.shape)) {
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
