//! Parameters of a flash device from measured latencies (konanki, section 5.2), in [`disk`] of a
//! hard disk from a measured log, in [`ssd`] of an SSD from results of fio, and in [`counters`] of
//! an SSD from its counters of bytes written.
//!
//! The paper's model of a request of `n` pages is `L(n) = n R + C`: a time per page and a command
//! overhead. Both are fitted by a straight line to the shortest of several measurements at each
//! length, since disturbances only add to a latency. Erases cannot be measured from outside: the
//! erase time is taken from a datasheet, and the excess latency of scattered writes gives the mean
//! number of erases per write, `L(n) = n W + C + k E`. The paper prints this formula without `C`;
//! both values of `k` are reported.

pub mod counters;
pub mod disk;
mod lines;
mod measure;
mod pattern_search;
mod preset;
mod readings;
pub mod ssd;
mod start;

pub use lines::{Estimate, LatencyFit, Line, ScatteredWrites};
pub use measure::{Measure, measure};
pub use preset::preset;
pub use readings::{Kind, Reading, Source, block_size, read, write_csv};

use serde::Serialize;
use thiserror::Error;

/// Failure of a calibration.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// A file of latencies is invalid.
    #[error("{0}")]
    Readings(String),
    /// The start is not a valid component of the kind that is calibrated.
    #[error("{0}")]
    Start(String),
    /// There are too few latencies, or they do not fit a line.
    #[error("{0}")]
    Fit(String),
    /// A device could not be measured.
    #[error("{0}")]
    Device(String),
    /// The caller asked for an end.
    #[error("interrupted")]
    Interrupted,
}

/// Known parameters.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct KnownParameters {
    /// Bytes per flash page.
    pub page_bytes: u64,
    /// Time to erase a block, in ns, from a datasheet.
    pub erase_ns: f64,
}

/// The device's parameters, as far as the readings identify them.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// Known parameters.
    pub known: KnownParameters,
    /// The line of reads.
    pub read: Option<Line>,
    /// The line of writes in order.
    pub write: Option<Line>,
    /// Erases per scattered write, by length.
    pub scattered: Vec<ScatteredWrites>,
    /// Readings used.
    pub readings: usize,
}

/// Fits all parameters that the readings identify.
///
/// # Errors
/// When they give no line.
pub fn calibrate(
    readings: &[Reading],
    known: KnownParameters,
) -> Result<Calibration, CalibrateError> {
    let fit = LatencyFit::new(readings, known);
    let read = fit.line(Kind::Read)?;
    let write = fit.line(Kind::Write)?;
    if read.is_none() && write.is_none() {
        let message = "neither reads nor writes were measured at two lengths or more; measure \
                       several, such as 4 KiB to 256 KiB";
        return Err(CalibrateError::Fit(message.to_owned()));
    }
    let scattered = write.as_ref().map_or_else(Vec::new, |line| fit.scattered(line));
    Ok(Calibration { known, read, write, scattered, readings: readings.len() })
}
