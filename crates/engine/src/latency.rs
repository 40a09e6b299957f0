//! Where the time of a request went.

use crate::coded;
use crate::time::SimDuration;

coded! {
    /// A phase of a request's latency.
    pub enum LatencyPhase {
        /// Queued, or waiting for a resource that serves another request.
        Queue = 0 "queue",
        /// Command processing in a controller or a drive.
        Overhead = 1 "overhead",
        /// Data transfer over a host or back-end bus.
        Bus = 2 "bus",
        /// Disk arm movement, including head switch and settle time.
        Seek = 3 "seek",
        /// Rotational latency.
        Rotate = 4 "rotate",
        /// Media transfer: sectors pass under the head.
        Transfer = 5 "transfer",
        /// Reading flash cells.
        FlashRead = 6 "flash_read",
        /// Programming flash cells.
        FlashProgram = 7 "flash_program",
        /// Erasing flash blocks as part of the request itself.
        FlashErase = 8 "flash_erase",
        /// Data transfer over a flash channel.
        FlashBus = 9 "flash_bus",
        /// Waiting for garbage collection, merging or wear levelling.
        Gc = 10 "gc",
        /// Waiting for a cache to destage or clean.
        Destage = 11 "destage",
        /// Waiting for a disk to spin up.
        SpinUp = 12 "spin_up",
    }
}

/// A request's latency, split into phases, which sum to the latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyBreakdown {
    times: [SimDuration; LatencyPhase::COUNT],
    /// The phases that took time, as bits: most requests have a few of them.
    present: u32,
}

impl LatencyBreakdown {
    /// No time in any phase.
    pub const NONE: Self = Self { times: [SimDuration::ZERO; LatencyPhase::COUNT], present: 0 };

    /// These times of these phases, each named once.
    #[inline]
    pub fn of<const N: usize>(phases: [(LatencyPhase, SimDuration); N]) -> Self {
        let mut breakdown = Self::NONE;
        for (phase, time) in phases {
            breakdown.times[phase as usize] = time;
            breakdown.present |= u32::from(!time.is_zero()) << phase as u32;
        }
        breakdown
    }

    /// Adds `time` to one phase.
    #[inline]
    pub fn add(&mut self, phase: LatencyPhase, time: SimDuration) {
        self.times[phase as usize] += time;
        self.present |= u32::from(!time.is_zero()) << phase as u32;
    }

    /// The phases that took time, in their order, and how long.
    #[inline]
    pub fn phases(&self) -> impl Iterator<Item = (LatencyPhase, SimDuration)> {
        self.of_phases(self.present)
    }

    /// As [`LatencyBreakdown::phases`], without those up to `phase`.
    #[inline]
    pub fn phases_after(
        &self,
        phase: LatencyPhase,
    ) -> impl Iterator<Item = (LatencyPhase, SimDuration)> {
        self.of_phases(self.present & (u32::MAX << (phase as u32 + 1)))
    }

    #[inline]
    fn of_phases(&self, mut left: u32) -> impl Iterator<Item = (LatencyPhase, SimDuration)> {
        std::iter::from_fn(move || {
            let at = left.trailing_zeros() as usize;
            let phase = *LatencyPhase::ALL.get(at)?;
            left &= left - 1;
            Some((phase, self.times[at]))
        })
    }

    /// This breakdown with `time` more in one phase.
    #[inline]
    #[must_use]
    pub fn plus(mut self, phase: LatencyPhase, time: SimDuration) -> Self {
        self.add(phase, time);
        self
    }

    /// The time of one phase.
    #[inline]
    pub const fn get(&self, phase: LatencyPhase) -> SimDuration {
        self.times[phase as usize]
    }

    /// The sum of all phases.
    pub fn total(&self) -> SimDuration {
        self.phases().map(|(_, time)| time).sum()
    }
}
