//! What disks did.

use super::level::mean;
use hybridsim_disk::{DiskCacheOutcome, DiskEvent};
use hybridsim_engine::{Op, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// The sums over the events of a disk. Times are in ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskFold {
    pub(crate) seeks: u64,
    seek_cylinders: u64,
    seek_ns: u64,
    rotations: u64,
    rotation_ns: u64,
    transfers: u64,
    transfer_sectors: u64,
    transfer_ns: u64,
    /// Requests by operation and outcome.
    buffer: [[u64; DiskCacheOutcome::COUNT]; Op::COUNT],
}

impl DiskFold {
    #[inline(always)]
    pub(crate) fn add(&mut self, event: DiskEvent) {
        match event {
            DiskEvent::Seek { distance, duration } => {
                self.seeks += 1;
                self.seek_cylinders += u64::from(distance);
                self.seek_ns = self.seek_ns.saturating_add(duration.as_ns());
            }
            DiskEvent::Rotate { duration } => {
                self.rotations += 1;
                self.rotation_ns = self.rotation_ns.saturating_add(duration.as_ns());
            }
            DiskEvent::MediaTransfer { sectors, duration } => {
                self.transfers += 1;
                self.transfer_sectors += u64::from(sectors);
                self.transfer_ns = self.transfer_ns.saturating_add(duration.as_ns());
            }
            DiskEvent::Access { distance, seek, rotate, transfer, sectors } => {
                self.seeks += u64::from(!seek.is_zero());
                self.seek_cylinders += if seek.is_zero() { 0 } else { u64::from(distance) };
                self.seek_ns = self.seek_ns.saturating_add(seek.as_ns());
                self.rotations += 1;
                self.rotation_ns = self.rotation_ns.saturating_add(rotate.as_ns());
                self.transfers += 1;
                self.transfer_sectors += u64::from(sectors);
                self.transfer_ns = self.transfer_ns.saturating_add(transfer.as_ns());
            }
            DiskEvent::DiskCache { op, outcome } => {
                self.buffer[op.index()][outcome as usize] += 1;
            }
        }
    }

    /// `None` for a component that did nothing a disk does.
    pub(crate) fn results(&self, spin_ups: u64) -> Option<Disk> {
        let lookups: u64 = self.buffer.iter().flatten().sum();
        if self.seeks + self.rotations + self.transfers + spin_ups + lookups == 0 {
            return None;
        }
        Some(Disk {
            seeks: self.seeks,
            seek_ns: self.seek_ns,
            seek_ns_mean: mean(self.seek_ns, self.seeks),
            seek_cylinders_mean: mean(self.seek_cylinders, self.seeks),
            rotations: self.rotations,
            rotation_ns: self.rotation_ns,
            rotation_ns_mean: mean(self.rotation_ns, self.rotations),
            transfers: self.transfers,
            transfer_ns: self.transfer_ns,
            media_bytes: self.transfer_sectors.saturating_mul(SECTOR_BYTES),
            buffer_reads: self.by_outcome(Op::Read),
            buffer_writes: self.by_outcome(Op::Write),
            spin_ups,
        })
    }

    fn by_outcome(&self, op: Op) -> BufferResult {
        let count = |outcome: DiskCacheOutcome| self.buffer[op.index()][outcome as usize];
        BufferResult {
            miss: count(DiskCacheOutcome::Miss),
            hit: count(DiskCacheOutcome::Hit),
            partial: count(DiskCacheOutcome::Partial),
            buffered: count(DiskCacheOutcome::Buffered),
        }
    }
}

/// Disk mechanics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Seeks.
    pub seeks: u64,
    /// Time spent seeking.
    pub seek_ns: u64,
    /// Mean seek time.
    pub seek_ns_mean: Option<f64>,
    /// Mean seek distance in cylinders.
    pub seek_cylinders_mean: Option<f64>,
    /// Rotational delays.
    pub rotations: u64,
    /// Time spent in rotational delays.
    pub rotation_ns: u64,
    /// Mean rotational latency.
    pub rotation_ns_mean: Option<f64>,
    /// Transfers between medium and buffer.
    pub transfers: u64,
    /// Time spent in transfers.
    pub transfer_ns: u64,
    /// Bytes transferred.
    pub media_bytes: u64,
    /// Reads by what the drive's buffer did.
    pub buffer_reads: BufferResult,
    /// Writes by what the drive's buffer did.
    pub buffer_writes: BufferResult,
    /// Spin-ups.
    pub spin_ups: u64,
}

/// Requests by what a drive's buffer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BufferResult {
    /// The medium was accessed.
    pub miss: u64,
    /// All data were in the buffer.
    pub hit: u64,
    /// Served by a read-ahead in progress.
    pub partial: u64,
    /// A write acknowledged from the buffer.
    pub buffered: u64,
}
