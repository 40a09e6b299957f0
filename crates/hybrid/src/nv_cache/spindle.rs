//! The disk's spindle in the NV cache power mode: stopped as soon as it may be, and kept turning
//! for a minimum time once an access has started it (ATA8-ACS: minimum high-power time).
//!
//! bisson-fqueue says of the mode that all I/O goes to the cache if possible and the spin-down is
//! aggressive. What it leaves open (assumed): the disk stops as soon as nothing is under way at it
//! and the minimum time is over; that time runs from the first access it served; and whenever it
//! turns, the drive's own set is written back, oldest first, to have room for the next rest.

use super::NvCacheDisk;
use super::serve::DISK;
use hybridsim_engine::{
    Command, Completion, Ctx, LatencyPhase, Lba, Op, Request, SimDuration, SimTime,
};

/// The tag of commands and timers about the spindle.
pub const TAG: u64 = u64::MAX;

/// What the drive knows of its disk.
#[derive(Debug, Default)]
pub struct Spindle {
    /// In the NV cache power mode.
    pub mode: bool,
    spinning_min: SimDuration,
    /// The disk was told to stop and has not been needed since.
    rests: bool,
    /// It is kept turning until then.
    until: SimTime,
    /// A timer is set for then.
    timer: SimTime,
    /// The drive's own set is being written back while the disk turns.
    drains: bool,
    /// A part of it is on its way.
    moving: bool,
    /// Requests at the disk not done.
    pub busy: u32,
}

impl Spindle {
    /// The mode begins: the disk may stop.
    pub fn enter(&mut self, spinning_s_min: u32) {
        self.mode = true;
        self.spinning_min = SimDuration::from_s(u64::from(spinning_s_min));
        (self.until, self.rests) = (SimTime::ZERO, false);
    }

    /// It ends. The next access starts the disk.
    pub const fn leave(&mut self) {
        (self.mode, self.drains) = (false, false);
    }

    /// The disk turns, from now on.
    fn turns(&mut self, now: SimTime) {
        if self.rests {
            self.rests = false;
            self.until = now + self.spinning_min;
        }
        self.drains = self.mode;
    }

    /// The host commands the spindle itself.
    pub fn told(&mut self, now: SimTime, command: Command) {
        if command == Command::Idle {
            self.turns(now);
        }
    }

    /// The disk has served a request; was the medium needed for it?
    pub fn served(&mut self, now: SimTime, done: &Completion) {
        self.busy -= 1;
        let moving = [
            LatencyPhase::SpinUp,
            LatencyPhase::Seek,
            LatencyPhase::Rotate,
            LatencyPhase::Transfer,
        ];
        let medium = moving.iter().any(|part| !done.breakdown.get(*part).is_zero());
        // A write may be in a buffer now, from where it goes to the medium.
        if done.request.op == Op::Write || medium {
            self.turns(now);
        }
    }

    /// A part of the drive's own set is back, or failed to get there; it stays in the cache then.
    pub const fn drained(&mut self, failed: bool) {
        self.moving = false;
        self.drains = self.drains && !failed;
    }
}

impl NvCacheDisk {
    /// Writes back what there is while the disk turns; then stops it.
    pub(super) fn mind_spindle(&mut self, ctx: &mut Ctx<'_>) {
        if !self.spindle.mode {
            return;
        }
        while self.spindle.drains && !self.spindle.moving {
            let Some((lba, sectors, ..)) = self.own_extent() else {
                self.spindle.drains = false;
                break;
            };
            self.spindle.moving = true;
            let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
            self.take(ctx, None, &Request::new(Op::Read, Lba(lba), sectors), None);
        }
        let spindle = &mut self.spindle;
        if spindle.rests || spindle.drains || spindle.moving || spindle.busy > 0 {
            return;
        }
        if ctx.now() >= spindle.until {
            spindle.rests = true;
            ctx.command(DISK, Command::Standby, (Lba(0), 0), TAG);
        } else if spindle.timer != spindle.until {
            spindle.timer = spindle.until;
            ctx.wake_at(spindle.until, TAG);
        }
    }

    /// The range is the drive's alone now; moves it if it still is of its own set.
    pub(super) fn start_draining(&mut self, ctx: &mut Ctx<'_>, slot: u32, range: &Request) {
        let (lba, end) = (range.lba.0, range.end().0);
        self.extents.pieces(lba, end, &mut self.pieces);
        let first = self.pieces.first().copied();
        let extent = first.and_then(|piece| piece.extent).filter(super::Extent::is_own);
        if let Some(extent) = extent {
            self.begin_move(ctx, slot, (lba, extent.sectors), (super::serve::FLASH, extent.at));
        }
    }
}
