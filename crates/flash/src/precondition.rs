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

/// Overwrites `count` pages at random, drawn some at a time so that they can be expected.
fn overwrite(
    count: u64,
    pages: u32,
    ftl: &mut dyn Ftl,
    flash: &mut FlashOps,
    stream: &mut Stream,
) -> Result<(), FtlError> {
    let mut left = count;
    let mut drawn = [Lpn(0); EXPECTED_MAX];
    while left > 0 {
        let drawn = &mut drawn[..left.min(EXPECTED_MAX as u64) as usize];
        drawn.fill_with(|| Lpn(stream.below(u64::from(pages)) as u32));
        ftl.expect(drawn, flash);
        for &lpn in &*drawn {
            ftl.write(lpn, Hint { request_pages: 1 }, flash)?;
        }
        left -= drawn.len() as u64;
    }
    Ok(())
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
        overwrite(window, pages, ftl, flash, stream)?;
        let amplification = (flash.array().programs() - programs) as f64 / window as f64;
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
