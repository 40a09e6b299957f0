//! Preconditioning: writes before the run, without simulated time or events, that bring the flash
//! into the state a measurement should start from.

use crate::ftl::{Ftl, FtlError};
use crate::geometry::Lpn;
use crate::ops::FlashOps;
use hybridsim_engine::Stream;

/// What is written before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    None,
    /// Every page once, in order.
    Fill,
    /// Every page once, in random order.
    FillRandom,
    /// Every page once in order, then random pages until write amplification is stable.
    Steady,
}

impl Precondition {
    pub const NAMES: &'static [&'static str] = &["none", "fill", "fill-random", "steady"];

    pub fn named(name: &str) -> Self {
        match name {
            "fill" => Self::Fill,
            "fill-random" => Self::FillRandom,
            "steady" => Self::Steady,
            _ => Self::None,
        }
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
/// Filling is at least this fraction of the work to reach the steady state.
const FILL_FRACTION: f64 = 0.2;

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
    flash.set_recording(false);
    let mut preconditioning =
        Preconditioning { pages, ftl, flash, stream, progress, report_at: 0, stopped: false };
    let done = preconditioning.fill(kind);
    flash.set_recording(true);
    done
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
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, ProgramOrder};
    use crate::defaults;
    use crate::ftl::{FtlEntry, FtlInput, block, page};
    use crate::geometry::{Geometry, Shape};

    const SHAPE: Shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 80,
        pages_per_block: 256,
        page_bytes: 4096,
        spare_bytes: 0,
    };

    /// Page programs to bring a device with `entry` to its steady state, per logical page.
    fn fills(entry: FtlEntry) -> f64 {
        let registry = defaults::registry();
        let geometry = Geometry::new(&SHAPE).expect("a sound shape");
        let exported_pages = geometry.exported_pages(0.25);
        let input = FtlInput {
            settings: &defaults::settings(entry.description.params, &registry),
            geometry: &geometry,
            exported_pages,
            registry: &registry,
            seed: 1,
            path: "test",
        };
        let mut ftl = (entry.build)(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        let mut flash = FlashOps::new(Array::new(geometry, ProgramOrder::Sequential, 100_000));
        let mut stream = Stream::new(1, "test");
        let progress = &mut |done: f64| (0.0..=1.0).contains(&done);
        run(Precondition::Steady, exported_pages, &mut *ftl, &mut flash, &mut stream, progress)
            .expect("the flash is large enough");
        assert_eq!(flash.violation(), None);
        assert_eq!(flash.array().valid_pages(), u64::from(exported_pages));
        flash.array().programs() as f64 / f64::from(exported_pages)
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
}
