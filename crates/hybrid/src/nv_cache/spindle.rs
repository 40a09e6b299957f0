//! Spin-down in the NV cache power mode: the disk stops as soon as possible, and spins for a
//! minimum time after an access has started it (ATA8-ACS: minimum high-power time).
//!
//! bisson-fqueue says that in this mode all I/O goes to the cache if possible and the spin-down is
//! aggressive. Assumed where it is silent: the disk stops when no request is outstanding at it, the
//! minimum time is over (it begins with the first access after a spin-up), and the time-out has
//! passed, which is zero by default; and while the disk spins, the dirty extents of the unpinned
//! set are destaged, oldest first, to free space for the next standby.
//!
//! Section V of bisson-fqueue cites four algorithms for hybrid disks (Bisson, Brandt, Long: A
//! hybrid disk-aware spin-down algorithm with I/O subsystem support, IPCCC 2007). Two are here:
//! with artificial idle periods only reads restart the time-out, as writes can go to the cache;
//! an anticipatory spin-up starts the disk before the cache is full. The read-miss cache is in
//! `read_cache`, write throttling in `throttle`.

use super::serve::DISK;
use super::{NvCacheDisk, Parameters};
use hybridsim_engine::{
    Command, Completion, Ctx, LatencyPhase, Lba, Op, Request, SimDuration, SimTime,
};
use serde::{Deserialize, Serialize};

/// Tag of spindle commands, and token of the timer.
pub const TAG: u64 = u64::MAX;
/// Tag of the command of an anticipatory spin-up.
pub const START: u64 = u64::MAX - 1;

/// State of the spindle, as the drive sees it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Spindle {
    /// In the NV cache power mode.
    pub mode: bool,
    spinning_min: SimDuration,
    /// The disk is in standby and has not been accessed since.
    pub standby: bool,
    /// An anticipatory spin-up is in progress.
    starting: bool,
    /// The last request that ends an idle period.
    idle_from: SimTime,
    /// End of the minimum spinning time.
    until: SimTime,
    /// The time the timer is set for.
    timer: SimTime,
    /// The unpinned set is being destaged.
    destaging: bool,
    /// An extent of it is being moved.
    moving: bool,
    /// Destaging has failed: the disk is not started for it again.
    broken: bool,
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
        self.broken = self.broken || failed;
        self.destaging = self.destaging && !failed;
    }

    /// A request of the host has arrived or completed.
    pub fn active(&mut self, now: SimTime, op: Op, params: &Parameters) {
        if op == Op::Read || !params.artificial_idle {
            self.idle_from = now;
        }
    }

    /// An anticipatory spin-up has completed.
    pub fn started(&mut self, now: SimTime) {
        self.starting = false;
        self.spins(now);
    }
}

impl NvCacheDisk {
    /// Destages the unpinned set while the disk spins; then stops it, and starts it when the cache
    /// is nearly full.
    pub(super) fn advance_spindle(&mut self, ctx: &mut Ctx<'_>) {
        if !self.spindle.mode {
            return;
        }
        while self.spindle.destaging && !self.spindle.moving {
            let Some((lba, sectors, ..)) = self.dirty_extent() else {
                self.spindle.destaging = false;
                break;
            };
            self.spindle.moving = true;
            let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
            self.accept(ctx, None, &Request::new(Op::Read, Lba(lba), sectors), None);
        }
        let full = self.is_nearly_full();
        let spindle = &mut self.spindle;
        if spindle.standby {
            if full && !spindle.starting && !spindle.broken {
                spindle.starting = true;
                ctx.command(DISK, Command::Idle, (Lba(0), 0), START);
            }
            return;
        }
        if spindle.destaging || spindle.moving || spindle.busy > 0 {
            return;
        }
        let due = spindle.until.max(spindle.idle_from + self.params.spin_down_after);
        if ctx.now() >= due {
            spindle.standby = true;
            ctx.command(DISK, Command::Standby, (Lba(0), 0), TAG);
        } else if spindle.timer <= ctx.now() || spindle.timer > due {
            spindle.timer = due;
            ctx.wake_at(due, TAG);
        }
    }

    /// Whether so much of the unpinned set is dirty that a stopped disk is started in advance.
    fn is_nearly_full(&self) -> bool {
        let (dirty, clean) = (self.extents.dirty(), self.extents.clean());
        let space = (self.extents.free() + dirty + clean) as f64;
        let at = self.params.spin_up_at.map(|share| share * space);
        dirty > 0 && at.is_some_and(|at| dirty as f64 >= at)
    }

    /// A range of the unpinned set has been locked: moves it if it is still dirty.
    pub(super) fn start_destage(&mut self, ctx: &mut Ctx<'_>, slot: u32, range: &Request) {
        let (lba, end) = (range.lba.0, range.end().0);
        self.extents.pieces(lba, end, &mut self.pieces);
        let first = self.pieces.first().copied();
        let extent = first.and_then(|piece| piece.extent).filter(super::Extent::is_dirty);
        if let Some(extent) = extent {
            self.begin_move(ctx, slot, (lba, extent.sectors), (super::serve::FLASH, extent.at));
        }
    }
}
