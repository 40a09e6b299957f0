//! The parameters that timing models have in common: times of the chip, of the controller and of
//! the host link. They belong to the device, so that another timing model keeps them.

use super::{OperationTimes, PARALLEL, SlcTimes, TIMES, TimingEntry};
use crate::array::ENDURANCE_MAX;
use crate::gc::SEARCH;
use crate::geometry::Geometry;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind};
use hybridsim_config::registry::Entry;
use hybridsim_engine::SimDuration;

const TIMED: &[Needs] = &[Needs::Provides("timing", TIMES)];
/// As [`TIMED`], for a table of the device.
const TIMED_AROUND: Needs = Needs::Provides("^.timing", TIMES);
/// Requests are served side by side.
const OVERLAPPED: Needs = Needs::Provides("^.timing", PARALLEL);

hybridsim_config::params! {
    /// Times of blocks in SLC mode, and how often they can be erased.
    pub struct SlcMode {
        read_time: Option<SimDuration> = Kind::Duration, optional needs &[TIMED_AROUND],
            "Page read in SLC mode, whatever the page; default: that of the device.";
        program_time: Option<SimDuration> = Kind::Duration, optional needs &[TIMED_AROUND],
            "Page program in SLC mode; default: that of the device. Of `program_pages` a program \
             takes the part that the cells hold with one bit each.";
        erase_time: Option<SimDuration> = Kind::Duration, optional needs &[TIMED_AROUND],
            "Block erase in SLC mode; default: that of the device.";
        pub endurance: Option<u32> = Kind::Count { min: 1, max: ENDURANCE_MAX as u64 }, optional
            needs &[Needs::above_zero("^.ftl.static_size")],
            "Program/erase cycles of a block of the static SLC cache (`ftl.static_size`); default: \
             those of the device. Blocks of the dynamic cache count every erase as one of \
             `endurance`, in whichever mode.";
    }
}

hybridsim_config::choices! {
    /// Extent of copies that stay inside the chip.
    pub enum CopyBack {
        /// Every copy passes over the channel through the controller.
        None = "none",
        /// Copies within a plane, through its register.
        Plane = "plane",
        /// Copies within a die, between planes too.
        Die = "die",
    }
}

/// Whether a copy-back takes another time than a copy through the controller.
const DIFFERS: Needs = Needs::Any(&[
    Needs::above_zero("^.channel_rate"),
    Needs::above_zero("^.command_time"),
    Needs::above_zero("^.data_command_time"),
    Needs::given("plane_time"),
    Needs::given("die_time"),
]);

hybridsim_config::params! {
    /// Copies inside the chip.
    pub struct CopyBackParams {
        within: CopyBack = Kind::Choice(CopyBack::NAMES), default "none" needs &[DIFFERS],
            "Copies within a `plane` or within a `die` stay inside the chip; with `none` every \
             copy passes over the channel through the controller.";
        plane_time: Option<SimDuration> = Kind::Duration, optional
            needs &[Needs::Not("within", &["none"])],
            "Copy-back within a plane; by default the sum of read and program.";
        die_time: Option<SimDuration> = Kind::Duration, optional
            needs &[Needs::Is("within", &["die"])],
            "Copy-back between planes of a die; by default the sum of read and program.";
    }
}

hybridsim_config::choices! {
    /// Directions in which a link transfers at once.
    pub enum Duplex { Full = "full", Half = "half" }
}

hybridsim_config::params! {
    /// Times of the controller and of the host link.
    pub struct ControllerParams {
        read_overhead: SimDuration = Kind::Duration, default "0us",
            "Controller overhead per read request.";
        write_overhead: SimDuration = Kind::Duration, default "0us",
            "Controller overhead per request other than a read.";
        firmware_cores: Option<usize> = Kind::Count { min: 1, max: 256 }, optional
            needs &[OVERLAPPED, Needs::Any(&[
                Needs::above_zero("read_overhead"),
                Needs::above_zero("write_overhead"),
            ])],
            "Processor cores of the controller: each request occupies one for its overhead and \
             waits where none is free, in order of arrival. Without it the overhead only adds \
             latency.";
        request_interval: SimDuration = Kind::Duration, default "0us" needs &[OVERLAPPED],
            "Time the controller spends on each request before it takes the next: the inverse of \
             the most requests per second.";
        host_rate: u64 = Kind::Rate, default "0MB/s",
            "Transfer rate of the host link; 0 for no transfer time.";
        host_write_rate: Option<u64> = Kind::Rate, optional needs &[Needs::above_zero("host_rate")],
            "As `host_rate`, for writes, where the link takes their data at another rate; 0 for no \
             transfer time of writes.";
        host_duplex: Duplex = Kind::Choice(Duplex::NAMES), default "half"
            needs &[OVERLAPPED, Needs::above_zero("host_rate")],
            "Whether the host link transfers in both directions at once (PCIe) or not (SATA).";
        ram_time: SimDuration = Kind::Duration, default "0ns",
            "Transfer of a page through the controller's RAM on its way from or to the host.";
        pub search_time: SimDuration = Kind::Duration, default "0ns"
            needs &[Needs::Provides("^.ftl.gc", SEARCH)],
            "Controller time per block examined by garbage collection policies that search; part \
             of the request's latency.";
        pub host_buffer_time: SimDuration = Kind::Duration, default "1us"
            needs &[Needs::above_zero("^.ftl.host_buffer")],
            "Time of a read of the host's memory, where an FTL has part of its map there (assumed: \
             a read over PCIe).";
    }
}

hybridsim_config::params! {
    /// Times of the chip and of transfers over its channel, and the timing model of a device.
    pub struct TimingParams {
        pub read_time: Option<SimDuration> = Kind::Duration, optional,
            "Page read (tR): cells to page register; required unless `timing` is `none`.";
        program_time: Option<SimDuration> = Kind::Duration, optional needs TIMED,
            "Page program (tPROG): register to cells; required unless `timing` is `none`.";
        erase_time: Option<SimDuration> = Kind::Duration, optional needs TIMED,
            "Block erase (tBERS); required unless `timing` is `none`.";
        command_time: SimDuration = Kind::Duration, default "0ns" needs TIMED,
            "Command and address cycles on the channel, per operation.";
        channel_rate: u64 = Kind::Rate, default "0MB/s" needs TIMED,
            "Transfer rate of a channel; 0 if read_time and program_time include the transfer.";
        data_command_time: SimDuration = Kind::Duration, default "0ns" needs TIMED,
            "Control cycles on the channel before the data transfer of a read.";
        register_time: SimDuration = Kind::Duration, default "0ns" needs TIMED,
            "Transfer of a page through the plane's register, once per read and once per program.";
        pub timing: EntryChoice = Kind::Entry(TimingEntry::CATEGORY), default "interleaved",
            "The timing model: when flash operations execute.";
        copy_back: CopyBackParams = Kind::Table(CopyBackParams::PARAMS), default "{}" needs TIMED,
            "Copies inside the chip.";
        pub controller: ControllerParams = Kind::Table(ControllerParams::PARAMS), default "{}"
            needs TIMED,
            "Times of the controller and of the host link.";
    }
}

impl TimingParams {
    /// The times that are missing where operations take time.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> {
        let times = [
            ("read_time", self.read_time),
            ("program_time", self.program_time),
            ("erase_time", self.erase_time),
        ];
        times.into_iter().filter(|(_, time)| time.is_none()).map(|(name, _)| name)
    }

    /// The times of operations on `geometry`; `slc` and `bits` per cell are those of a device that
    /// has blocks in SLC mode, `retry` that of a read that is repeated.
    pub fn operation_times(
        &self,
        geometry: &Geometry,
        slc: Option<(&SlcMode, u32)>,
        retry: Option<SimDuration>,
    ) -> OperationTimes {
        let Self { copy_back, controller, .. } = self;
        let raw = u64::from(geometry.raw_page_bytes());
        let planes = u64::from(geometry.planes_per_page());
        let [read_time, program_time, erase] =
            [self.read_time, self.program_time, self.erase_time].map(Option::unwrap_or_default);
        let read = read_time + self.register_time;
        let program = program_time + self.register_time;
        let register = |time| time + self.register_time;
        let slc = slc.map_or(SlcTimes::NONE, |(mode, bits)| SlcTimes {
            read: mode.read_time.map_or(read, register),
            program: mode.program_time.map_or(program, register),
            erase: mode.erase_time.unwrap_or(erase),
            bits,
        });
        let host_write_rate = match controller.host_rate {
            0 => 0,
            rate => controller.host_write_rate.unwrap_or(rate),
        };
        let overheads = [controller.read_overhead, controller.write_overhead];
        let occupies_cores = overheads != [SimDuration::ZERO; 2];
        OperationTimes {
            read,
            program,
            copy_plane: copy_back.plane_time.unwrap_or(read + program),
            copy_die: copy_back.die_time.unwrap_or(read + program),
            erase,
            retry: retry.unwrap_or(read_time),
            slc,
            command: self.command_time,
            data_command: self.data_command_time,
            ram: controller.ram_time,
            page_transfer: SimDuration::transfer(raw, self.channel_rate),
            plane_transfer: SimDuration::transfer(raw / planes, self.channel_rate),
            copy_back: copy_back.within,
            firmware_cores: controller.firmware_cores.filter(|_| occupies_cores).unwrap_or(0),
            request_interval: controller.request_interval,
            read_overhead: controller.read_overhead,
            write_overhead: controller.write_overhead,
            host_rate: controller.host_rate,
            host_write_rate,
            host_full_duplex: controller.host_duplex == Duplex::Full,
            schedule_slots: None,
        }
    }
}
