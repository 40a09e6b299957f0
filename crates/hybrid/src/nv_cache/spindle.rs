//! Spin-down in the NV cache power mode: the disk stops as soon as possible, and spins for a
//! minimum time after an access has started it (ATA8-ACS: minimum high-power time).
//!
//! bisson-fqueue says that in this mode all I/O goes to the cache if possible and the spin-down is
//! aggressive. Assumed where it is silent: the disk stops as soon as no request is outstanding at
//! it and the minimum time is over; that time begins with the first access after a spin-up; and
//! while the disk spins, the unpinned set is destaged, oldest first, to free space for the next
//! standby.

use super::NvCacheDisk;
use super::serve::DISK;
use hybridsim_engine::{
    Command, Completion, Ctx, LatencyPhase, Lba, Op, Request, SimDuration, SimTime,
};
use serde::{Deserialize, Serialize};

/// Tag of spindle commands, and token of the timer.
pub const TAG: u64 = u64::MAX;

/// State of the spindle, as the drive sees it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Spindle {
    /// In the NV cache power mode.
    pub mode: bool,
    spinning_min: SimDuration,
    /// The disk is in standby and has not been accessed since.
    standby: bool,
    /// End of the minimum spinning time.
    until: SimTime,
    /// The time the timer is set for.
    timer: SimTime,
    /// The unpinned set is being destaged.
    destaging: bool,
    /// An extent of it is being moved.
    moving: bool,
    /// Requests outstanding at the disk.
    pub busy: u32,
}

impl Spindle {
    /// Enters the power mode: the disk may stop.
    pub fn enter(&mut self, spinning_s_min: u32) {
        self.mode = true;
        self.spinning_min = SimDuration::from_s(u64::from(spinning_s_min));
        (self.until, self.standby) = (SimTime::ZERO, false);
    }

    /// Leaves the power mode; the next access starts the disk.
    pub const fn leave(&mut self) {
        (self.mode, self.destaging) = (false, false);
    }

    /// The disk spins from now on.
    fn spins(&mut self, now: SimTime) {
        if self.standby {
            self.standby = false;
            self.until = now + self.spinning_min;
        }
        self.destaging = self.mode;
    }

    /// The host has issued a spindle command.
    pub fn commanded(&mut self, now: SimTime, command: Command) {
        if command == Command::Idle {
            self.spins(now);
        }
    }

    /// The disk has completed a request, perhaps without accessing its medium.
    pub fn served(&mut self, now: SimTime, done: &Completion) {
        self.busy -= 1;
        let moving = [
            LatencyPhase::SpinUp,
            LatencyPhase::Seek,
            LatencyPhase::Rotate,
            LatencyPhase::Transfer,
        ];
        let medium = moving.iter().any(|part| !done.breakdown.get(*part).is_zero());
        // A write may be buffered, and goes to the medium later.
        if done.request.op == Op::Write || medium {
            self.spins(now);
        }
    }

    /// An extent has been destaged. After a failure it stays in the cache.
    pub const fn destaged(&mut self, failed: bool) {
        self.moving = false;
        self.destaging = self.destaging && !failed;
    }
}

impl NvCacheDisk {
    /// Destages the unpinned set while the disk spins; then stops it.
    pub(super) fn advance_spindle(&mut self, ctx: &mut Ctx<'_>) {
        if !self.spindle.mode {
            return;
        }
        while self.spindle.destaging && !self.spindle.moving {
            let Some((lba, sectors, ..)) = self.unpinned_extent() else {
                self.spindle.destaging = false;
                break;
            };
            self.spindle.moving = true;
            let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
            self.accept(ctx, None, &Request::new(Op::Read, Lba(lba), sectors), None);
        }
        let spindle = &mut self.spindle;
        if spindle.standby || spindle.destaging || spindle.moving || spindle.busy > 0 {
            return;
        }
        if ctx.now() >= spindle.until {
            spindle.standby = true;
            ctx.command(DISK, Command::Standby, (Lba(0), 0), TAG);
        } else if spindle.timer != spindle.until {
            spindle.timer = spindle.until;
            ctx.wake_at(spindle.until, TAG);
        }
    }

    /// A range of the unpinned set has been locked: moves it if it is still unpinned.
    pub(super) fn start_destage(&mut self, ctx: &mut Ctx<'_>, slot: u32, range: &Request) {
        let (lba, end) = (range.lba.0, range.end().0);
        self.extents.pieces(lba, end, &mut self.pieces);
        let first = self.pieces.first().copied();
        let extent = first.and_then(|piece| piece.extent).filter(super::Extent::is_unpinned);
        if let Some(extent) = extent {
            self.begin_move(ctx, slot, (lba, extent.sectors), (super::serve::FLASH, extent.at));
        }
    }
}
