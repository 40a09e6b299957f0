//! Preconditioning: writes before the run, without simulated time or events, that bring the flash
//! into the state a measurement should start from.

use crate::ftl::{Ftl, FtlError};
use crate::geometry::Lpn;
use crate::ops::FlashOps;
use hybridsim_engine::{Permutation, Stream};

hybridsim_config::choices! {
    /// Data written before the run.
    pub enum Precondition {
        None = "none",
        /// Every page once, in order.
        Fill = "fill",
        /// Every page once, in random order.
        FillRandom = "fill-random",
        /// Every page once in order, then random pages until write amplification is stable.
        Steady = "steady",
        /// The state that random writes lead to, drawn from its distribution.
        SteadyDrawn = "steady-drawn",
    }
}

/// Write amplification is measured in windows of this fraction of the filled capacity.
const WINDOWS_PER_FILL: u64 = 8;
/// Steady when this many successive windows each differ from the one before by at most
/// [`STEADY_CHANGE`].
const STEADY_WINDOWS: u32 = 2;
const STEADY_CHANGE: f64 = 0.01;
/// A window also ends after programming this multiple of the filled capacity: if each write moves
/// a whole block, fewer writes give the same accuracy, and the whole window would take minutes.
/// This takes a write amplification above 4 * [`WINDOWS_PER_FILL`] = 32.
const PROGRAMS_PER_WINDOW: u64 = 4;
/// Maximum number of windows: four times the filled capacity.
const WINDOWS_MAX: u64 = 4 * WINDOWS_PER_FILL;
/// Pages drawn at once, so that the translation layer can prefetch their mapping.
const DRAWN_MAX: usize = 16;
/// Progress is reported after this many page programs.
const PROGRAMS_PER_REPORT: u64 = 1 << 14;
/// A drawn steady state is overwritten by one of this many logical pages: in it greedy collection
/// takes the blocks that lost more pages by chance, which no draw leaves out.
const PAGES_PER_SETTLING: u32 = 16;
/// Filling is at least this fraction of the work to reach the steady state.
const FILL_FRACTION: f64 = 0.2;
/// Drawing is about this fraction of the work to draw the steady state.
const DRAWING_FRACTION: f64 = 0.7;

/// Preconditions the first `pages` logical pages.
///
/// `progress` receives the fraction done; preconditioning stops when it returns false.
///
/// # Errors
/// When the flash is worn out, or full.
pub fn run(
    kind: Precondition,
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<(), FtlError> {
    if kind == Precondition::None || pages == 0 {
        return Ok(());
    }
    expect_filling(pages, ftl, flash);
    flash.set_recording(false);
    let mut preconditioning =
        Preconditioning { pages, ftl, flash, stream, progress, report_at: 0, stopped: false };
    let done = preconditioning.fill(kind).and_then(|()| preconditioning.settle());
    flash.set_recording(true);
    done
}

/// Prepares the tables of `ftl` and `flash` for writes to the first `pages` logical pages, if
/// these are half of the flash or more: the tables of a smaller part need less memory as they are.
pub fn expect_filling(pages: u32, ftl: &mut dyn Ftl, flash: &mut FlashOps) {
    if pages >= flash.array().geometry().pages() / 2 {
        ftl.expect_filling();
        flash.expect_filling();
    }
}

struct Preconditioning<'a> {
    pages: u32,
    ftl: &'a mut dyn Ftl,
    flash: &'a mut FlashOps,
    stream: &'a mut Stream,
    progress: &'a mut dyn FnMut(f64) -> bool,
    /// Page programs at the next progress report.
    report_at: u64,
    stopped: bool,
}

impl Preconditioning<'_> {
    fn fill(&mut self, kind: Precondition) -> Result<(), FtlError> {
        match kind {
            Precondition::None => Ok(()),
            Precondition::Fill => self.write_all(0..self.pages, 1.0),
            Precondition::FillRandom => {
                let mut order: Vec<u32> = (0..self.pages).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, self.stream.below(last as u64 + 1) as usize);
                }
                self.write_all(order.into_iter(), 1.0)
            }
            Precondition::Steady => {
                self.write_all(0..self.pages, FILL_FRACTION)?;
                self.overwrite_until_steady()
            }
            Precondition::SteadyDrawn => self.draw_steady(),
        }
    }

    /// Lets the translation layer complete its background work, if it does so.
    fn settle(&mut self) -> Result<(), FtlError> {
        let settles = self.ftl.properties().settles;
        while settles && self.goes_on(1.0) && self.ftl.idle(self.flash)? {}
        Ok(())
    }

    /// Reports progress now and then. Returns false when preconditioning has been stopped.
    fn goes_on(&mut self, done: f64) -> bool {
        let programs = self.flash.array().programs();
        if programs >= self.report_at {
            self.report_at = programs + PROGRAMS_PER_REPORT;
            self.stopped |= !(self.progress)(done);
        }
        !self.stopped
    }

    /// Writes every page once, which is `fraction` of the work.
    fn write_all(
        &mut self,
        lpns: impl Iterator<Item = u32>,
        fraction: f64,
    ) -> Result<(), FtlError> {
        for (written, lpn) in lpns.enumerate() {
            if !self.goes_on(fraction * written as f64 / f64::from(self.pages)) {
                break;
            }
            self.ftl.write_each(&[Lpn(lpn)], self.flash)?;
        }
        Ok(())
    }

    /// Overwrites up to `count` random pages. Returns how many were written.
    fn overwrite(&mut self, count: u64, done: f64) -> Result<u64, FtlError> {
        let pages = u64::from(self.pages);
        let programs_max = self.flash.array().programs() + PROGRAMS_PER_WINDOW * pages;
        let mut left = count;
        let mut drawn = [Lpn(0); DRAWN_MAX];
        while left > 0 && self.flash.array().programs() < programs_max && self.goes_on(done) {
            let drawn = &mut drawn[..left.min(DRAWN_MAX as u64) as usize];
            drawn.fill_with(|| Lpn(self.stream.below(pages) as u32));
            self.ftl.expect(drawn, self.flash);
            self.ftl.write_each(drawn, self.flash)?;
            left -= drawn.len() as u64;
        }
        Ok(count - left)
    }

    /// Writes the flash once, up to the first collection, so that pages are valid as they would be
    /// after many random writes, and lets collection begin.
    fn draw_steady(&mut self) -> Result<(), FtlError> {
        let flash_pages = self.ftl.properties().pages_before_collection.unwrap_or(0);
        let mut draw = SteadyDraw::new(u64::from(self.pages), flash_pages, self.stream);
        let mut drawn = [Lpn(0); DRAWN_MAX];
        while self.goes_on(DRAWING_FRACTION * draw.written as f64 / flash_pages as f64) {
            let batch = drawn.iter_mut().zip(std::iter::from_fn(|| draw.next(self.stream)));
            let count = batch.map(|(slot, lpn)| *slot = lpn).count();
            self.ftl.expect(&drawn[..count], self.flash);
            self.ftl.write_each(&drawn[..count], self.flash)?;
            if count < DRAWN_MAX {
                break;
            }
        }
        let settling = self.pages.div_ceil(PAGES_PER_SETTLING);
        self.overwrite(u64::from(settling), DRAWING_FRACTION).map(drop)
    }

    fn overwrite_until_steady(&mut self) -> Result<(), FtlError> {
        let window = (u64::from(self.pages) / WINDOWS_PER_FILL).max(1);
        let (mut before, mut steady) = (0.0, 0);
        for number in 0..WINDOWS_MAX {
            let programs = self.flash.array().programs();
            let done = number as f64 / WINDOWS_MAX as f64;
            let written = self.overwrite(window, FILL_FRACTION + (1.0 - FILL_FRACTION) * done)?;
            if self.stopped {
                break;
            }
            let programs = self.flash.array().programs() - programs;
            let amplification = programs as f64 / written as f64;
            let change = (amplification - before).abs() / amplification;
            // The first windows only use up the over-provisioned space.
            let warmed_up = number >= WINDOWS_PER_FILL / 2 && amplification > 1.0;
            steady = if warmed_up && change <= STEADY_CHANGE { steady + 1 } else { 0 };
            if steady == STEADY_WINDOWS {
                break;
            }
            before = amplification;
        }
        Ok(())
    }
}

/// Writes after which the pages of a device are valid as in the steady state of uniform random
/// writes.
///
/// With `L` logical pages in `P` pages of flash, collected in the order they were written, a page
/// that was programmed `p` programs ago is still valid with probability `exp(-p (1 - u) / L)`, as
/// the share `1 - u` of programs are host writes. `u`, the share of valid pages in a victim, is the
/// probability at `p = P` (Desnoyers, SYSTOR 2012). A page written to be invalid holds a logical
/// page that is written again later.
struct SteadyDraw {
    order: Permutation,
    /// Logical pages, and how many have been written for the last time.
    pages: u64,
    settled: u64,
    /// Pages of flash to write, and how many have been written.
    flash_pages: u64,
    written: u64,
    /// `(1 - u) / L`.
    decay: f64,
}

impl SteadyDraw {
    fn new(pages: u64, flash_pages: u64, stream: &mut Stream) -> Self {
        let ratio = flash_pages as f64 / pages as f64;
        let decay = (1.0 - victim_utilisation(ratio)) / pages as f64;
        let order = Permutation::new(pages, stream);
        Self { order, pages, settled: 0, flash_pages, written: 0, decay }
    }

    /// The next logical page to write.
    fn next(&mut self, stream: &mut Stream) -> Option<Lpn> {
        let (pages_left, flash_left) = (self.pages - self.settled, self.flash_pages - self.written);
        if pages_left == 0 || flash_left == 0 {
            return None;
        }
        self.written += 1;
        // Its share of the sum over all pages to come, a geometric series: so the logical pages
        // left are as many as expected.
        let share = libm::expm1(self.decay) / libm::expm1(self.decay * flash_left as f64);
        let chance = pages_left as f64 * share;
        let stays = flash_left <= pages_left || stream.chance(chance);
        let rank = if stays { 0 } else { stream.below(pages_left) };
        let lpn = self.order.map(self.settled + rank);
        self.settled += u64::from(stays);
        Some(Lpn(lpn as u32))
    }
}

/// The share of valid pages in a victim when `ratio` pages of flash for each logical one, more than
/// one, are collected in the order they were written: the solution below one of
/// `u = exp(-(1 - u) ratio)`.
fn victim_utilisation(ratio: f64) -> f64 {
    // The difference of both sides falls up to this point, and is negative there.
    let (mut low, mut high) = (0.0, 1.0 - libm::log(ratio) / ratio);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        let is_below = libm::exp(-(1.0 - middle) * ratio) > middle;
        *(if is_below { &mut low } else { &mut high }) = middle;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, ProgramOrder};
    use crate::defaults;
    use crate::ftl::{FtlEntry, FtlInput, block, page};
    use crate::geometry::{Geometry, Shape};
    use std::collections::{BTreeMap, BTreeSet};

    const SHAPE: Shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 80,
        pages_per_block: 256,
        page_bytes: 4096,
        spare_bytes: 0,
    };

    /// A device with `entry`.
    struct Device {
        ftl: Box<dyn Ftl>,
        flash: FlashOps,
        stream: Stream,
        pages: u32,
    }

    impl Device {
        fn new(entry: FtlEntry, shape: &Shape, over_provisioning: f64) -> Self {
            let registry = defaults::registry();
            let geometry = Geometry::new(shape).expect("a sound shape");
            let pages = geometry.exported_pages(over_provisioning);
            let input = FtlInput {
                settings: &defaults::settings(entry.description.params, &registry),
                geometry: &geometry,
                exported_pages: pages,
                registry: &registry,
                seed: 1,
                path: "test",
            };
            let ftl = (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
            let flash = FlashOps::new(Array::new(geometry, ProgramOrder::Sequential, 100_000));
            Self { ftl, flash, stream: Stream::new(1, "test"), pages }
        }

        fn precondition(&mut self, kind: Precondition) {
            let Self { ftl, flash, stream, pages } = self;
            let progress = &mut |done: f64| (0.0..=1.0).contains(&done);
            run(kind, *pages, &mut **ftl, flash, stream, progress)
                .expect("the flash is large enough");
            assert_eq!(flash.violation(), None);
            assert_eq!(flash.array().valid_pages(), u64::from(*pages));
            ftl.audit(flash).expect("consistent tables");
        }

        /// The write amplification of `count` random writes.
        fn amplification(&mut self, count: u32) -> f64 {
            let before = self.flash.array().programs();
            self.flash.set_recording(false);
            for _ in 0..count {
                let lpn = Lpn(self.stream.below(u64::from(self.pages)) as u32);
                self.ftl.write_each(&[lpn], &mut self.flash).expect("there are free blocks");
            }
            (self.flash.array().programs() - before) as f64 / f64::from(count)
        }
    }

    /// Page programs to bring a device with `entry` to its steady state, per logical page.
    fn fills(entry: FtlEntry) -> f64 {
        let mut device = Device::new(entry, &SHAPE, 0.25);
        device.precondition(Precondition::Steady);
        device.flash.array().programs() as f64 / f64::from(device.pages)
    }

    #[test]
    fn a_drawn_steady_state_amplifies_writes_as_one_that_was_reached() {
        for (over_provisioning, pages_per_block) in
            [(0.07, 1024), (0.07, 256), (0.28, 256), (0.28, 64)]
        {
            let blocks_per_plane = 102_400 / pages_per_block;
            let shape = Shape { channels: 4, blocks_per_plane, pages_per_block, ..SHAPE };
            let new = || Device::new(page::ENTRY, &shape, over_provisioning);
            let (mut drawn, mut reached) = (new(), new());
            drawn.precondition(Precondition::SteadyDrawn);
            let programs = drawn.flash.array().programs();
            let once = u64::from(drawn.flash.array().geometry().pages());
            assert!(programs < 5 * once / 3, "{programs} of {once}");
            let first = drawn.amplification(drawn.pages / 4);
            reached.precondition(Precondition::Steady);
            reached.amplification(3 * reached.pages);
            let later = reached.amplification(2 * reached.pages);
            let error = first / later - 1.0;
            assert!(error.abs() < 0.005, "{first} instead of {later}: {shape:?}");
        }
    }

    #[test]
    fn the_steady_state_is_reached_however_much_a_write_costs() {
        // A block map is steady after six windows: each write always programs 256 pages. Counted
        // in host writes alone they would program 1 + 6 / 8 * 256 = 193 times the capacity.
        let block = fills(block::ENTRY);
        assert!((25.0..27.0).contains(&block), "{block}");
        let page = fills(page::ENTRY);
        assert!((1.75..20.0).contains(&page), "{page}");
    }

    #[test]
    fn victims_of_fifo_collection_by_hand() {
        // With u = 0.5 in the equation, the ratio is 2 ln 2.
        assert!((victim_utilisation(2.0 * std::f64::consts::LN_2) - 0.5).abs() < 1e-12);
        assert!(victim_utilisation(1.07) > 0.85 && victim_utilisation(1e3) < 1e-9);
    }

    #[test]
    fn valid_pages_of_a_draw_become_rarer_with_age() {
        // Of 1,000 logical pages, 1,000 (e^-1 - e^-2) are between 1,000 and 2,000 programs old; the
        // standard deviation is below 16. The oldest of the flash are a million old.
        let mut stream = Stream::new(1, "ages");
        let flash_pages = 1_000_000;
        let mut draw = SteadyDraw::new(1_000, flash_pages, &mut stream);
        let mut written = BTreeMap::new();
        for age in (0..flash_pages).rev() {
            let Some(lpn) = draw.next(&mut stream) else { break };
            written.insert(lpn.0, age);
        }
        let aged = written.values().filter(|age| (1_000..2_000).contains(*age)).count() as f64;
        assert!((aged - 232.5).abs() < 5.0 * 16.0, "{aged}");
    }

    #[test]
    fn a_draw_writes_every_page_for_the_last_time_once() {
        for (pages, flash_pages) in [(1, 2), (10, 11), (1000, 1070), (1000, 5000), (9, 90_000)] {
            let mut stream = Stream::new(flash_pages, "draw");
            let mut draw = SteadyDraw::new(pages, flash_pages, &mut stream);
            let written: Vec<Lpn> = std::iter::from_fn(|| draw.next(&mut stream)).collect();
            let distinct: BTreeSet<u32> = written.iter().map(|it| it.0).collect();
            assert_eq!(distinct.len() as u64, pages);
            assert!(written.len() as u64 <= flash_pages);
            assert!(written.len() as u64 + 5 >= flash_pages, "{} of {flash_pages}", written.len());
        }
    }
}
