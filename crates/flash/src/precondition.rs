//! Bringing a device into the state a measurement should start from, without time or events.

use crate::ftl::{Ftl, FtlError, Hint};
use crate::geometry::Lpn;
use crate::ops::FlashOps;
use hybridsim_engine::Stream;

/// What is written before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing: a fresh device.
    None,
    /// Everything once, in order of address.
    Fill,
    /// Everything once, in random order.
    FillRandom,
    /// Everything once in order, then random pages until write amplification is stable.
    Steady,
}

impl Precondition {
    /// The names used in scenarios.
    pub const NAMES: &'static [&'static str] = &["none", "fill", "fill-random", "steady"];

    /// The one called `name`.
    pub fn named(name: &str) -> Self {
        match name {
            "fill" => Self::Fill,
            "fill-random" => Self::FillRandom,
            "steady" => Self::Steady,
            _ => Self::None,
        }
    }
}

/// Random overwrites are looked at in windows of this fraction of the filled space.
const WINDOWS_PER_FILL: u64 = 8;
/// Steady when this many windows in a row differ by at most [`STEADY_CHANGE`] from the one before.
const STEADY_WINDOWS: u32 = 2;
const STEADY_CHANGE: f64 = 0.01;
/// A window also ends when it programmed the filled space so many times: where each write moves a
/// whole block, few writes say as much, and the whole window would take minutes. Only a write
/// amplification above 4 * [`WINDOWS_PER_FILL`] = 32 gets there.
const PROGRAMS_PER_WINDOW: u64 = 4;
/// At most so many windows: four times the filled space.
const WINDOWS_MAX: u64 = 4 * WINDOWS_PER_FILL;

/// Runs `kind` over the first `pages` logical pages.
///
/// `watch` is told the share done now and then; when it returns false, all is given up.
///
/// # Errors
/// When the device is worn out, or full, before it is ready.
pub fn run(
    kind: Precondition,
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<(), FtlError> {
    if kind == Precondition::None || pages == 0 {
        return Ok(());
    }
    flash.set_recording(false);
    let mut preparing = Preparing { pages, ftl, flash, stream, watch, wanted: true };
    let done = preparing.fill(kind);
    flash.set_recording(true);
    done
}

/// Pages drawn at once, so that they can be expected together.
const DRAWN_MAX: usize = 16;

/// `watch` is asked after so many pages written, or programmed where each write costs many.
const PAGES_PER_WATCH: u64 = 1 << 14;

/// A device on its way, and who watches.
struct Preparing<'a> {
    pages: u32,
    ftl: &'a mut dyn Ftl,
    flash: &'a mut FlashOps,
    stream: &'a mut Stream,
    watch: &'a mut dyn FnMut(f64) -> bool,
    /// Whether nobody wants to stop.
    wanted: bool,
}

impl Preparing<'_> {
    fn fill(&mut self, kind: Precondition) -> Result<(), FtlError> {
        // Of the way to the steady state, filling is at least a fifth.
        let part = if kind == Precondition::Steady { 0.2 } else { 1.0 };
        if kind == Precondition::FillRandom {
            let mut order: Vec<u32> = (0..self.pages).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, self.stream.below(last as u64 + 1) as usize);
            }
            self.write_all(order.into_iter(), part)
        } else {
            self.write_all(0..self.pages, part)?;
            if kind == Precondition::Steady { self.overwrite_until_steady(part) } else { Ok(()) }
        }
    }

    /// Writes every page once; this is `part` of the work.
    fn write_all(&mut self, lpns: impl Iterator<Item = u32>, part: f64) -> Result<(), FtlError> {
        let mut watch_at = 0;
        for (done, lpn) in lpns.enumerate() {
            if self.flash.array().programs() >= watch_at {
                watch_at = self.flash.array().programs() + PAGES_PER_WATCH;
                self.wanted &= (self.watch)(part * done as f64 / f64::from(self.pages));
                if !self.wanted {
                    break;
                }
            }
            self.ftl.write(Lpn(lpn), Hint { request_pages: 1 }, self.flash)?;
        }
        Ok(())
    }

    /// Overwrites up to `count` pages at random, drawn some at a time so that they can be
    /// expected. Says how many it wrote.
    fn overwrite(&mut self, count: u64, share: f64) -> Result<u64, FtlError> {
        let pages = u64::from(self.pages);
        let programs_max = self.flash.array().programs() + PROGRAMS_PER_WINDOW * pages;
        let mut left = count;
        let mut watch_at = 0;
        let mut drawn = [Lpn(0); DRAWN_MAX];
        while left > 0 && self.flash.array().programs() < programs_max {
            if self.flash.array().programs() >= watch_at {
                watch_at = self.flash.array().programs() + PAGES_PER_WATCH;
                self.wanted &= (self.watch)(share);
                if !self.wanted {
                    break;
                }
            }
            let drawn = &mut drawn[..left.min(DRAWN_MAX as u64) as usize];
            drawn.fill_with(|| Lpn(self.stream.below(pages) as u32));
            self.ftl.expect(drawn, self.flash);
            for &lpn in &*drawn {
                self.ftl.write(lpn, Hint { request_pages: 1 }, self.flash)?;
            }
            left -= drawn.len() as u64;
        }
        Ok(count - left)
    }

    /// `part` of the work is done.
    fn overwrite_until_steady(&mut self, part: f64) -> Result<(), FtlError> {
        let window = (u64::from(self.pages) / WINDOWS_PER_FILL).max(1);
        let (mut before, mut steady) = (0.0, 0);
        for number in 0..WINDOWS_MAX {
            let programs = self.flash.array().programs();
            let share = part + (1.0 - part) * number as f64 / WINDOWS_MAX as f64;
            let written = self.overwrite(window, share)?;
            if !self.wanted {
                break;
            }
            let programs = self.flash.array().programs() - programs;
            let amplification = programs as f64 / written as f64;
            let change = (amplification - before).abs() / amplification;
            // The first windows only use up the space that was never written.
            let settled = number >= WINDOWS_PER_FILL / 2 && amplification > 1.0;
            steady = if settled && change <= STEADY_CHANGE { steady + 1 } else { 0 };
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

    /// Pages programmed to bring a device with `entry` to its steady state, in filled spaces.
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
        let watch = &mut |share: f64| (0.0..=1.0).contains(&share);
        run(Precondition::Steady, exported_pages, &mut *ftl, &mut flash, &mut stream, watch)
            .expect("there is room");
        assert_eq!(flash.violation(), None);
        assert_eq!(flash.array().valid_pages(), u64::from(exported_pages));
        flash.array().programs() as f64 / f64::from(exported_pages)
    }

    #[test]
    fn the_steady_state_is_reached_however_much_a_write_costs() {
        // Six windows settle a block map: each write costs its 256 pages, always. Counted in host
        // writes alone they would program 1 + 6 / 8 * 256 = 193 times the space.
        let block = fills(block::ENTRY);
        assert!((25.0..27.0).contains(&block), "{block}");
        let page = fills(page::ENTRY);
        assert!((1.75..20.0).contains(&page), "{page}");
    }
}
