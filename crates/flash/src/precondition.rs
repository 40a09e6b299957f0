//! Bringing a device into the state a measurement should start from, without time or facts.

use crate::ftl::{EXPECTED_MAX, Ftl, FtlError, Hint};
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
/// # Errors
/// When the device is worn out, or full, before it is ready.
pub fn run(
    kind: Precondition,
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
) -> Result<(), FtlError> {
    if kind == Precondition::None || pages == 0 {
        return Ok(());
    }
    flash.set_recording(false);
    let done = fill(kind, pages, ftl, flash, stream);
    flash.set_recording(true);
    done
}

fn fill(
    kind: Precondition,
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
) -> Result<(), FtlError> {
    let hint = Hint { request_pages: 1 };
    if kind == Precondition::FillRandom {
        let mut order: Vec<u32> = (0..pages).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, stream.below(last as u64 + 1) as usize);
        }
        return order.into_iter().try_for_each(|lpn| ftl.write(Lpn(lpn), hint, flash));
    }
    for lpn in 0..pages {
        ftl.write(Lpn(lpn), hint, flash)?;
    }
    if kind == Precondition::Steady {
        overwrite_until_steady(pages, ftl, flash, stream)
    } else {
        Ok(())
    }
}

/// Overwrites up to `count` pages at random, drawn some at a time so that they can be expected.
/// Says how many it wrote.
fn overwrite(
    count: u64,
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
) -> Result<u64, FtlError> {
    let programs_max = flash.array().programs() + PROGRAMS_PER_WINDOW * u64::from(pages);
    let mut left = count;
    let mut drawn = [Lpn(0); EXPECTED_MAX];
    while left > 0 && flash.array().programs() < programs_max {
        let drawn = &mut drawn[..left.min(EXPECTED_MAX as u64) as usize];
        drawn.fill_with(|| Lpn(stream.below(u64::from(pages)) as u32));
        ftl.expect(drawn, flash);
        for &lpn in &*drawn {
            ftl.write(lpn, Hint { request_pages: 1 }, flash)?;
        }
        left -= drawn.len() as u64;
    }
    Ok(count - left)
}

fn overwrite_until_steady(
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
) -> Result<(), FtlError> {
    let window = (u64::from(pages) / WINDOWS_PER_FILL).max(1);
    let (mut before, mut steady) = (0.0, 0);
    for number in 0..WINDOWS_MAX {
        let programs = flash.array().programs();
        let written = overwrite(window, pages, ftl, flash, stream)?;
        let amplification = (flash.array().programs() - programs) as f64 / written as f64;
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
        run(Precondition::Steady, exported_pages, &mut *ftl, &mut flash, &mut stream)
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
