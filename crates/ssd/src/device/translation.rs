//! The interfaces of a translation, which serves requests by recording flash operations, and of the
//! back end, which executes them.

use hybridsim_engine::{Ctx, Injected, Request, SimDuration, SimTime, Zoned};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::Array;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::timing::{Scheduled, Timed};

/// The outcome of a request that a translation has served.
pub enum Outcome {
    /// It has been scheduled.
    Scheduled(Scheduled),
    /// It fails then, as its data cannot be read.
    Unreadable(Timed),
    /// The device does not accept it: it fails then, and nothing is written.
    Refused(Timed),
    /// It continues at this time, by [`Translation::resume`].
    InProgress(SimTime),
}

/// A period whose power states have not been reported.
#[derive(Clone, Copy)]
pub struct StatePeriod {
    pub from: SimTime,
    pub busy_until: SimTime,
    pub now: SimTime,
    /// Report up to `now` even if the device is busy.
    pub everything: bool,
}

/// The flash of a device below its translation, and its clock.
pub trait BackEnd: SavedState {
    /// The run begins, or goes on from a saved state.
    fn start(&mut self, _ctx: &mut Ctx<'_>) {}

    /// Completes or schedules a write that waited, if there is one: write `number`, which waits for
    /// its programs, or else the first of those that wait for the write buffer.
    fn continue_write(&mut self, _now: SimTime, _number: Option<u64>) -> Option<Scheduled> {
        None
    }

    /// Time of the next background work, if it is only a matter of time.
    fn next_background(&self) -> Option<SimTime> {
        None
    }

    /// Reports power states of a period. Returns false to defer the report.
    fn report_states(&mut self, ctx: &mut Ctx<'_>, period: StatePeriod) -> bool;

    /// Reports busy intervals of dies and channels where they are not reported with operations.
    fn report_busy(&mut self, _ctx: &mut Ctx<'_>, _everything: bool) {}

    /// Energy of the operations reported since the last call, where the temperature is simulated.
    fn take_energy(&mut self) -> f64 {
        0.0
    }

    /// The power failed at `now`; writes that wait are scheduled no more. Returns until when
    /// operations under way still occupy the flash.
    fn power_lost(&mut self, now: SimTime, busy_until: SimTime) -> SimTime;

    /// A fault of the flash occurs.
    fn inject(&mut self, _fault: &Injected) {}
}

/// The mapping of an SSD: where data are on its flash.
pub trait Translation: Recovery {
    type BackEnd: BackEnd;

    fn back_end(&mut self) -> &mut Self::BackEnd;

    /// The arrays of the device. The blocks reported as free are those of the first.
    fn arrays(&self) -> [Option<&Array>; 2];

    /// The zones of a zoned translation.
    fn zones(&self) -> Option<&dyn Zoned> {
        None
    }

    /// Pages that still fit into the open reclaim unit of a placement handle, if it has this one.
    fn unit_left(&self, _handle: u8) -> Option<u64> {
        None
    }

    /// Serves `request` on a device busy until `busy_until`. An error is reported with the outcome,
    /// as operations before it have been executed.
    fn serve(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        busy_until: SimTime,
    ) -> (Outcome, Result<(), FtlError>);

    /// Continues a request that is [in progress](Outcome::InProgress).
    fn resume(&mut self, _ctx: &mut Ctx<'_>, _request: &Request) -> Outcome {
        unreachable!("no request is in progress")
    }

    /// Executes one step of background work. Returns when the flash is idle again, and whether
    /// there is more to do.
    fn idle_step(&mut self, ctx: &mut Ctx<'_>) -> (SimTime, Result<bool, FtlError>);

    /// Filling without simulated time, if it is supported.
    fn filling(&mut self) -> Option<&mut dyn Fill> {
        None
    }

    /// Prefetches what `requests` will need into the processor's caches.
    fn expect(&self, _requests: &[Request]) {}

    /// The run ends: reports statistics of its own.
    fn finish(&self, _ctx: &mut Ctx<'_>) {}
}

/// Filling the flash of an SSD without simulated time.
pub trait Fill {
    /// Preconditions new flash. `progress` returns false to end it.
    ///
    /// # Errors
    /// Fails when the flash takes no more data.
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String>;

    /// Writes those of the first `pages` logical pages that hold no data; they read as zeros, as
    /// before.
    ///
    /// # Errors
    /// Fails when the flash takes no more data.
    fn fill(&mut self, ctx: &Ctx<'_>, pages: u32) -> Result<(), FtlError>;
}

/// The mapping of an SSD across power failures and checkpoints.
pub trait Recovery: SavedState {
    /// The power failed.
    ///
    /// # Errors
    /// When the mapping cannot be rebuilt.
    fn power_lost(&mut self) -> Result<(), String>;

    /// Reads what the mapping is rebuilt from. Returns how long that takes.
    fn recover(&mut self, ctx: &mut Ctx<'_>) -> SimDuration;

    /// Puts `version` where the mapping says that logical `sector` is.
    fn restore_sector(&mut self, sector: u64, version: u64);
}
