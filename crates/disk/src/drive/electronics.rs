//! The drive's electronics: command overheads and the link to the host.

use hybridsim_engine::param::{Kind, Param, Settings};
use hybridsim_engine::{Op, SECTOR_BYTES, SimDuration};

/// Their parameters.
pub(super) const PARAMS: [Param; 9] = [
    Param::with(
        "read_hit_overhead",
        Kind::Duration,
        "\"0us\"",
        "Command time of a read found in the buffer.",
    ),
    Param::with(
        "read_miss_overhead",
        Kind::Duration,
        "\"0us\"",
        "Command time of reads from the medium.",
    ),
    Param::with(
        "write_hit_overhead",
        Kind::Duration,
        "\"0us\"",
        "Command time of a write taken into the buffer.",
    ),
    Param::with(
        "write_miss_overhead",
        Kind::Duration,
        "\"0us\"",
        "Command time of writes to the medium.",
    ),
    Param::optional(
        "read_hit_overhead_after_write",
        Kind::Duration,
        "As `read_hit_overhead`, when the command before was a write.",
    ),
    Param::optional(
        "read_miss_overhead_after_write",
        Kind::Duration,
        "As `read_miss_overhead`, when the command before was a write.",
    ),
    Param::optional(
        "write_hit_overhead_after_write",
        Kind::Duration,
        "As `write_hit_overhead`, when the command before was a write.",
    ),
    Param::optional(
        "write_miss_overhead_after_write",
        Kind::Duration,
        "As `write_miss_overhead`, when the command before was a write.",
    ),
    Param::optional("host_rate", Kind::Rate, "Rate of the host link; takes no time if absent."),
];

/// Command processing times, by operation, hit or miss, and the operation before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overheads([[[SimDuration; 2]; 2]; 2]);

impl Overheads {
    /// Reads them from the drive's parameters.
    pub fn read(settings: &Settings) -> Self {
        let mut all = [[[SimDuration::ZERO; 2]; 2]; 2];
        for (op, hit, name, after_write) in [
            (0, 1, "read_hit_overhead", "read_hit_overhead_after_write"),
            (0, 0, "read_miss_overhead", "read_miss_overhead_after_write"),
            (1, 1, "write_hit_overhead", "write_hit_overhead_after_write"),
            (1, 0, "write_miss_overhead", "write_miss_overhead_after_write"),
        ] {
            let usual = settings.duration(name);
            all[op][hit] = [usual, settings.duration_opt(after_write).unwrap_or(usual)];
        }
        Self(all)
    }
}

/// Overheads, link and command slots.
#[derive(Clone, Copy, Debug)]
pub struct Electronics {
    overheads: Overheads,
    link_bytes_per_s: u64,
    /// One sector over the link.
    pub sector: SimDuration,
    /// Commands the drive can choose from.
    pub queue_depth: usize,
    after_write: bool,
}

impl Electronics {
    /// `link_bytes_per_s` of 0 stands for a link that takes no time.
    pub fn new(overheads: Overheads, link_bytes_per_s: u64, queue_depth: usize) -> Self {
        let sector = SimDuration::transfer(SECTOR_BYTES, link_bytes_per_s);
        Self { overheads, link_bytes_per_s, sector, queue_depth, after_write: false }
    }

    /// Command time of the next command.
    #[inline]
    pub fn overhead(&self, op: Op, hit: bool) -> SimDuration {
        let op = usize::from(op != Op::Read);
        self.overheads.0[op][usize::from(hit)][usize::from(self.after_write)]
    }

    /// A command of this kind has been processed.
    #[inline]
    pub fn processed(&mut self, op: Op) {
        self.after_write = op == Op::Write;
    }

    /// `bytes` over the link.
    #[inline]
    pub fn link(&self, bytes: u64) -> SimDuration {
        SimDuration::transfer(bytes, self.link_bytes_per_s)
    }

    /// Whether commands are looked at while the one before is still going on.
    #[inline]
    pub fn overlaps(&self) -> bool {
        self.queue_depth > 1
    }
}
