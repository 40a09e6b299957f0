//! The events of disks.

use hybridsim_engine::{Op, SimDuration, coded, events};

coded! {
    /// Service of a request by a disk's buffer.
    pub enum DiskCacheOutcome {
        /// From the medium.
        Miss = 0 "miss",
        /// Entirely from the buffer.
        Hit = 1 "hit",
        /// By a read-ahead in progress.
        Partial = 2 "partial",
        /// A write accepted into the buffer.
        Buffered = 3 "buffered",
    }
}

events! {
    /// Events of disks.
    pub enum DiskEvent {
        /// The arm moved.
        Seek = 4 "seek" {
            /// Cylinders crossed.
            distance: u32 => B,
            /// Seek time, including head switch and settle time.
            duration: SimDuration => C,
        },
        /// The disk waited for a sector to come under the head.
        Rotate = 5 "rotate" {
            /// Rotational latency.
            duration: SimDuration => C,
        },
        /// Sectors were transferred between medium and buffer.
        MediaTransfer = 6 "media_transfer" {
            /// Sectors transferred.
            sectors: u32 => B,
            /// Transfer time.
            duration: SimDuration => C,
        },
        /// Sectors were read or written where the arm had to be moved, or the disk to turn, first.
        /// An access with a time of 2^32 ns or more is a `seek`, `rotate` and `media_transfer`.
        Access = 34 "access" {
            /// Cylinders crossed.
            distance: u32 => B,
            /// Seek time, including head switch and settle time; zero without a seek.
            seek: SimDuration => CLow,
            /// Rotational latency.
            rotate: SimDuration => CHigh,
            /// Transfer time between medium and buffer.
            transfer: SimDuration => DLow,
            /// Sectors transferred.
            sectors: u32 => DHigh,
        },
        /// The buffer was looked up for a request.
        DiskCache = 7 "disk_cache" {
            /// Operation of the request.
            op: Op => A,
            /// The outcome.
            outcome: DiskCacheOutcome => B,
        },
    }
}

impl DiskEvent {
    /// The steps of an access in their order, or the event itself.
    #[inline(always)]
    pub fn parts(self) -> impl Iterator<Item = Self> {
        let all = match self {
            Self::Access { distance, seek, rotate, transfer, sectors } => [
                (!seek.is_zero()).then_some(Self::Seek { distance, duration: seek }),
                Some(Self::Rotate { duration: rotate }),
                Some(Self::MediaTransfer { sectors, duration: transfer }),
            ],
            other => [Some(other), None, None],
        };
        all.into_iter().flatten()
    }
}
