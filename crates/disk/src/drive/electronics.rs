//! The drive's electronics: command overheads and the link to the host.
//!
//! The link belongs to the drive. A shared bus is a component above the drives: it adds transfer
//! and arbitration times to each request, and the drives below it have no `host_rate`, so they
//! transfer data at the speed of the medium and no time is counted twice. With a single drive on a
//! bus, its `host_rate` can represent both: the slower of the two rates.

use hybridsim_config::effect::Needs;
use hybridsim_config::param::Kind;
use hybridsim_engine::{Op, SECTOR_BYTES, SimDuration};

hybridsim_config::choices! {
    /// The base of `read_watermark`.
    enum WatermarkOf {
        Request = "request",
        Segment = "segment",
    }
}

hybridsim_config::params! {
    pub(super) struct Parameters includes {
        extra: Extra where &[Needs::given("extra_disconnect_command_overhead")],
    } {
        read_hit_overhead: SimDuration = Kind::Duration, default "\"0us\"" needs &[BUFFERED],
            "Command time of a read found in the buffer.";
        read_miss_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Command time of reads from the medium.";
        write_hit_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Command time of a write taken into the buffer, of a flush and of a trim.";
        write_miss_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Command time of writes to the medium.";
        read_hit_overhead_after_write: Option<SimDuration> = Kind::Duration, optional
            needs &[BUFFERED],
            "As `read_hit_overhead`, when the command before was a write.";
        read_miss_overhead_after_write: Option<SimDuration> = Kind::Duration, optional,
            "As `read_miss_overhead`, when the command before was a write.";
        write_hit_overhead_after_write: Option<SimDuration> = Kind::Duration, optional,
            "As `write_hit_overhead`, when the command before was a write.";
        write_miss_overhead_after_write: Option<SimDuration> = Kind::Duration, optional,
            "As `write_miss_overhead`, when the command before was a write.";
        host_rate: Option<u64> = Kind::Rate, optional,
            "Rate of the host link. Without it data pass at the speed of the medium, and a bus \
             above the drive adds its own time.";
        host_write_rate: Option<u64> = Kind::Rate, optional, "As `host_rate`, for writes.";
        read_watermark: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0",
            "Part of a read that must be in the buffer before it goes over the link.";
        read_watermark_of: WatermarkOf = Kind::Choice(WatermarkOf::NAMES), default "\"request\""
            needs &[Needs::above_zero("read_watermark")],
            "Base of `read_watermark`: the read, or a segment of the buffer, whatever the read \
             asks for.";
        read_completion_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to report a read complete.";
        write_completion_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to report a write complete.";
        data_preparation_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to prepare data for the link.";
        first_reselect_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to connect to the host again, the first time in a command.";
        read_disconnect_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to leave the link to others after a read command.";
        read_disconnect_overhead_after_write: Option<SimDuration> = Kind::Duration, optional,
            "As `read_disconnect_overhead`, when the command before was a write.";
        write_disconnect_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to leave the link to others after the data of a write.";
        extra_disconnect_command_overhead: Option<SimDuration> = Kind::Duration, optional,
            "Given, the drive leaves the link also between the command and the data of a write to \
             the medium that follows another write and does not go on where that ended: command \
             time before it does.";
        minimum_seek_delay: SimDuration = Kind::Duration, default "\"0us\"",
            "A movement of the arm for a write takes at least so long.";
    }
}

hybridsim_config::params! {
    /// Times of a write for which the drive leaves the link before the data.
    struct Extra {
        other_reselect_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "As `first_reselect_overhead`, every other time.";
        extra_disconnect_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to leave the link before the data of a write.";
        extra_disconnect_delay: SimDuration = Kind::Duration, default "\"0us\"",
            "Time before the drive comes back for the data of a write.";
        extra_disconnect_seek_delay: SimDuration = Kind::Duration, default "\"0us\"",
            "From the command time of a write with the extra disconnect until the arm moves.";
        extra_disconnect_second_overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "As `write_disconnect_overhead`, for a write with the extra disconnect.";
    }
}

/// Reads find data in the buffer.
const BUFFERED: Needs = Needs::above_zero("cache_segments");

/// Command processing times, by operation, hit or miss, and the operation before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overheads([[[SimDuration; 2]; 2]; 2]);

impl Overheads {
    /// Reads them from the drive's parameters.
    pub(super) fn read(params: &Parameters) -> Self {
        let by_before = |usual, after_write: Option<_>| [usual, after_write.unwrap_or(usual)];
        Self([
            [
                by_before(params.read_miss_overhead, params.read_miss_overhead_after_write),
                by_before(params.read_hit_overhead, params.read_hit_overhead_after_write),
            ],
            [
                by_before(params.write_miss_overhead, params.write_miss_overhead_after_write),
                by_before(params.write_hit_overhead, params.write_hit_overhead_after_write),
            ],
        ])
    }
}

/// Disconnection between the command and the data of a write.
#[derive(Clone, Copy, Debug)]
pub struct ExtraDisconnect {
    /// From the arrival of the command until the arm moves.
    pub seek: SimDuration,
    /// From the arrival of the command until the drive reconnects for the data.
    pub away: SimDuration,
    /// Leaving the link after the data.
    pub disconnect: SimDuration,
}

/// Times of a write to the medium.
#[derive(Clone, Copy, Debug)]
pub struct WriteTimes {
    /// From the beginning of its command time until the arm moves.
    pub command: SimDuration,
    /// From the beginning of its command time until its first data may pass the link.
    pub data: SimDuration,
    /// Leaving the link after the data.
    pub disconnect: SimDuration,
    /// From the end of the write on the medium until the host has the status.
    pub report: SimDuration,
}

/// Protocol times around the data transfer, and buffering between link and medium, in DiskSim's
/// vocabulary of parallel SCSI.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// Part of a read in the buffer before it goes over the link.
    pub read_watermark: f64,
    /// Sectors of which it is a part; without it those of the read.
    pub watermark_sectors: Option<u32>,
    /// Reporting a read complete.
    pub read_completion: SimDuration,
    /// Reporting a write complete.
    pub write_completion: SimDuration,
    /// Preparing data for the link.
    pub preparation: SimDuration,
    /// Connecting again for the first and for other times.
    pub reselect: [SimDuration; 2],
    /// Leaving the link after a read command, by the command before.
    pub read_disconnect: [SimDuration; 2],
    /// Leaving the link after the data of a write.
    pub write_disconnect: SimDuration,
    /// Disconnection between the command and the data of a write, if any.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// A movement for a write takes at least so long.
    pub seek_delay: SimDuration,
}

impl Handshake {
    /// Reads it from the drive's parameters; a segment of the buffer has `segment` sectors.
    pub(super) fn read(params: &Parameters, segment: u64) -> Self {
        let read_disconnect = params.read_disconnect_overhead;
        let after_write = params.read_disconnect_overhead_after_write;
        let Extra {
            other_reselect_overhead,
            extra_disconnect_overhead,
            extra_disconnect_delay,
            extra_disconnect_seek_delay,
            extra_disconnect_second_overhead,
        } = params.extra;
        let extra = |command: SimDuration| ExtraDisconnect {
            seek: command + extra_disconnect_seek_delay,
            away: command + extra_disconnect_overhead + extra_disconnect_delay,
            disconnect: extra_disconnect_second_overhead,
        };
        Self {
            read_watermark: params.read_watermark,
            watermark_sectors: (params.read_watermark_of == WatermarkOf::Segment)
                .then(|| u32::try_from(segment).unwrap_or(u32::MAX)),
            read_completion: params.read_completion_overhead,
            write_completion: params.write_completion_overhead,
            preparation: params.data_preparation_overhead,
            reselect: [params.first_reselect_overhead, other_reselect_overhead],
            read_disconnect: [read_disconnect, after_write.unwrap_or(read_disconnect)],
            write_disconnect: params.write_disconnect_overhead,
            extra_disconnect: params.extra_disconnect_command_overhead.map(extra),
            seek_delay: params.minimum_seek_delay,
        }
    }
}

/// Rates of the link; 0 stands for a link that takes no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Bytes per second towards the host.
    pub read_bytes_per_s: u64,
    /// Bytes per second from the host.
    pub write_bytes_per_s: u64,
}

impl Link {
    /// Reads them from the drive's parameters.
    pub(super) fn read(params: &Parameters) -> Self {
        let read_bytes_per_s = params.host_rate.unwrap_or(0);
        let write_bytes_per_s = params.host_write_rate.unwrap_or(read_bytes_per_s);
        Self { read_bytes_per_s, write_bytes_per_s }
    }

    /// The time `sectors` take.
    #[inline]
    fn time(&self, op: Op, sectors: u32) -> SimDuration {
        let rate = if op == Op::Read { self.read_bytes_per_s } else { self.write_bytes_per_s };
        SimDuration::transfer(u64::from(sectors) * SECTOR_BYTES, rate)
    }
}

/// Overheads, link and command slots.
#[derive(Clone, Copy, Debug)]
pub struct Electronics {
    overheads: Overheads,
    pub handshake: Handshake,
    rates: Link,
    /// One sector over the link, reading and writing.
    pub sector: [SimDuration; 2],
    /// Commands the drive can choose from.
    pub queue_depth: usize,
    preseek: bool,
    after_write: bool,
}

impl Electronics {
    /// The electronics of a drive that can choose between `queue_depth` commands, and goes to the
    /// next one before the link is free if it may `preseek`.
    pub fn new(
        overheads: Overheads,
        handshake: Handshake,
        rates: Link,
        queue_depth: usize,
        preseek: bool,
    ) -> Self {
        Self {
            overheads,
            handshake,
            rates,
            sector: [Op::Read, Op::Write].map(|op| rates.time(op, 1)),
            queue_depth,
            preseek,
            after_write: false,
        }
    }

    pub(super) fn is_after_write(&self) -> bool {
        self.after_write
    }

    pub(super) fn set_after_write(&mut self, after_write: bool) {
        self.after_write = after_write;
    }

    /// Command time of the next command.
    #[inline]
    pub fn overhead(&self, op: Op, hit: bool) -> SimDuration {
        let op = usize::from(op != Op::Read);
        self.overheads.0[op][usize::from(hit)][usize::from(self.after_write)]
    }

    /// Command times of a read and of a write that miss the buffer, each after one of its kind.
    pub fn usual_overheads(&self) -> [SimDuration; 2] {
        [self.overheads.0[0][0][0], self.overheads.0[1][0][1]]
    }

    /// Leaving the link after the next command, a read.
    #[inline]
    pub fn read_disconnect(&self) -> SimDuration {
        self.handshake.read_disconnect[usize::from(self.after_write)]
    }

    /// A command of this kind has been processed.
    #[inline]
    pub fn processed(&mut self, op: Op) {
        self.after_write = op == Op::Write;
    }

    /// `sectors` towards the host.
    #[inline]
    pub fn to_host(&self, sectors: u32) -> SimDuration {
        self.rates.time(Op::Read, sectors)
    }

    /// `sectors` from the host.
    #[inline]
    pub fn from_host(&self, sectors: u32) -> SimDuration {
        self.rates.time(Op::Write, sectors)
    }

    /// Times of the next write to the medium, which continues where the last write ended or not
    /// (DiskSim makes the extra disconnect for a write that follows a write and does not go on
    /// there).
    #[inline]
    pub fn write_times(&self, goes_on: bool) -> WriteTimes {
        let handshake = &self.handshake;
        let extra = handshake.extra_disconnect.filter(|_| self.after_write && !goes_on);
        let command = self.overhead(Op::Write, false);
        let again = handshake.reselect[usize::from(extra.is_some())];
        let times = WriteTimes {
            command,
            data: command + handshake.preparation,
            disconnect: handshake.write_disconnect,
            report: again + handshake.write_completion,
        };
        extra.map_or(times, |extra| WriteTimes {
            command: extra.seek,
            data: extra.away + handshake.reselect[0] + handshake.preparation,
            disconnect: extra.disconnect,
            ..times
        })
    }

    /// Sectors of a read of `sectors` that are in the buffer when the drive connects again
    /// (DiskSim's "high water mark" as a part of the request).
    #[inline]
    pub fn read_mark(&self, sectors: u32) -> u32 {
        let share = self.handshake.read_watermark;
        if share == 0.0 {
            return 1;
        }
        let mark = match self.handshake.watermark_sectors {
            None => (f64::from(sectors) * share) as u32,
            // DiskSim rounds up here and down there.
            Some(segment) => ((f64::from(segment) * share).ceil() as u32).min(sectors),
        };
        mark.max(1)
    }

    /// The number of first sectors of a write of `sectors` that are in the buffer before the medium
    /// is written. DiskSim's rule for drives with the extra disconnect, for all their writes.
    #[inline]
    pub fn write_lead(&self, sectors: u32) -> u32 {
        match self.handshake.extra_disconnect {
            None => 1,
            Some(_) if sectors < 45 => sectors.min(10),
            Some(_) => 15,
        }
    }

    /// Whether the arm stays until the host has the last command's answer.
    #[inline]
    pub fn stays(&self) -> bool {
        !self.overlaps() || !self.preseek
    }

    /// Whether commands are looked at while the one before is still going on.
    #[inline]
    pub fn overlaps(&self) -> bool {
        self.queue_depth > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn electronics(read_watermark: f64, extra: bool) -> Electronics {
        let zero = SimDuration::ZERO;
        let disconnect = ExtraDisconnect { seek: zero, away: zero, disconnect: zero };
        let extra_disconnect = extra.then_some(disconnect);
        let handshake = Handshake { read_watermark, extra_disconnect, ..Handshake::default() };
        Electronics::new(Overheads::default(), handshake, Link::default(), 1, true)
    }

    #[test]
    fn marks_are_whole_sectors() {
        let check = |share, sectors, mark| {
            assert_eq!(electronics(share, false).read_mark(sectors), mark, "{share} of {sectors}");
        };
        check(0.0, 8, 1);
        check(0.75, 1, 1);
        check(0.75, 2, 1);
        check(0.75, 3, 2);
        check(0.75, 8, 6);
        check(1.0, 8, 8);
        // A part of the segment, at most all of the read; DiskSim rounds up.
        let of_segment = |share, segment, sectors, mark| {
            let mut electronics = electronics(share, false);
            electronics.handshake.watermark_sectors = Some(segment);
            assert_eq!(electronics.read_mark(sectors), mark, "{share} of {segment}: {sectors}");
        };
        of_segment(0.5, 9, 64, 5);
        of_segment(0.5, 256, 64, 64);
        of_segment(0.0, 256, 64, 1);
    }

    #[test]
    fn drives_with_the_extra_disconnect_write_with_a_lead() {
        let check = |extra, sectors, lead| {
            assert_eq!(electronics(0.0, extra).write_lead(sectors), lead, "{extra} {sectors}");
        };
        check(false, 100, 1);
        check(true, 1, 1);
        check(true, 9, 9);
        check(true, 44, 10);
        check(true, 45, 15);
    }
}
